-- Job 1, EMIT FINAL. Every oracle reads tables named like the topics (p partition, o offset, ts, k key, j value) and prints
-- what must come out: topic, key, timestamp, value, in the order of the records of a key.
SELECT 'revenue.by-merchant', m, w * 300000 + 299999, json_object('window_start', strftime('%Y-%m-%d %H:%M:%S', w * 300, 'unixepoch'),
	'window_end', strftime('%Y-%m-%d %H:%M:%S', w * 300 + 300, 'unixepoch'), 'merchant_id', m,
	'revenue', json(printf('%d.%02d', SUM(cents) / 100, SUM(cents) % 100)), 'orders', COUNT(*))
FROM (SELECT json_extract(j, '$.merchant_id') m, json_extract(j, '$.ts') / 300000 w, CAST(ROUND(json_extract(j, '$.amount') * 100) AS INT) cents
	FROM "order.placed") GROUP BY m, w ORDER BY m, w;
