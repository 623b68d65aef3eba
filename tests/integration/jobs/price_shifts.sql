-- Job 4: each price of a product against the one before, by event time; five per cent of it, exactly.
WITH prices AS (SELECT json_extract(j, '$.product_id') id, json_extract(j, '$.ts') t,
		CAST(ROUND(json_extract(j, '$.price') * 100) AS INT) cents, o FROM "price.changed"),
	lagged AS (SELECT id, t, cents, LAG(cents) OVER (PARTITION BY id ORDER BY t, o) old FROM prices)
SELECT 'price.shifted', id, t, json_object('product_id', id, 'event_time', strftime('%Y-%m-%d %H:%M:%S', t / 1000, 'unixepoch') ||
	CASE t % 1000 WHEN 0 THEN '' ELSE '.' || RTRIM(printf('%03d', t % 1000), '0') END || 'Z',
	'old_price', json(printf('%d.%02d', old / 100, old % 100)), 'price', json(printf('%d.%02d', cents / 100, cents % 100)))
FROM lagged WHERE ABS(cents - old) * 20 > old ORDER BY id, t;
