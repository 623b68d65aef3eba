-- Job 7: both regions' orders, large ones into one topic, small ones into the other. An id may stand in both regions.
WITH orders AS (SELECT * FROM "order.placed.eu" UNION ALL SELECT * FROM "order.placed.us"),
	fields AS (SELECT json_extract(j, '$.order_id') id, json_extract(j, '$.merchant_id') m, json_extract(j, '$.ts') t,
		CAST(ROUND(json_extract(j, '$.amount') * 100) AS INT) cents FROM orders)
SELECT CASE WHEN cents >= 10000 THEN 'order.big' ELSE 'order.small' END, id, t, CASE WHEN cents >= 10000
	THEN json_object('order_id', id, 'merchant_id', m, 'amount', json(printf('%d.%02d', cents / 100, cents % 100)), 'ts', t)
	ELSE json_object('order_id', id, 'merchant_id', m, 'm', UPPER(m), 'amount', json(printf('%d.%02d', cents / 100, cents % 100))) END
FROM fields ORDER BY id;
