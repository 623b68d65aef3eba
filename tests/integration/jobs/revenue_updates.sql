-- Job 1, EMIT CHANGES with emit.coalesce=false: a row for every order.
WITH orders AS (SELECT json_extract(j, '$.merchant_id') m, json_extract(j, '$.ts') t, json_extract(j, '$.ts') / 300000 w,
		CAST(ROUND(json_extract(j, '$.amount') * 100) AS INT) cents, o FROM "order.placed"),
	running AS (SELECT m, w, o, SUM(cents) OVER sofar cents, COUNT(*) OVER sofar n, MAX(t) OVER sofar t
		FROM orders WINDOW sofar AS (PARTITION BY m, w ORDER BY o ROWS UNBOUNDED PRECEDING))
SELECT 'revenue.by-merchant', json_object('merchant_id', m, 'window_start', strftime('%Y-%m-%d %H:%M:%S', w * 300, 'unixepoch')), t,
	json_object('window_start', strftime('%Y-%m-%d %H:%M:%S', w * 300, 'unixepoch'),
	'window_end', strftime('%Y-%m-%d %H:%M:%S', w * 300 + 300, 'unixepoch'), 'merchant_id', m,
	'revenue', json(printf('%d.%02d', cents / 100, cents % 100)), 'orders', n)
FROM running ORDER BY m, w, o;
