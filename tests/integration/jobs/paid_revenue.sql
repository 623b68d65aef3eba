-- Job 2: orders and payments of one id, the payment with the order or up to an hour after it; by the payment's time.
WITH orders AS MATERIALIZED (SELECT json_extract(j, '$.order_id') id, json_extract(j, '$.merchant_id') m, json_extract(j, '$.ts') t,
		CAST(ROUND(json_extract(j, '$.amount') * 100) AS INT) cents FROM "order.placed" ORDER BY 1),
	payments AS MATERIALIZED (SELECT json_extract(j, '$.order_id') id, json_extract(j, '$.ts') t FROM "payment.settled" ORDER BY 1),
	paid AS (SELECT o.m, o.cents, p.t / 300000 w FROM payments p JOIN orders o USING (id) WHERE p.t BETWEEN o.t AND o.t + 3600000)
SELECT 'paid.by-merchant', m, w * 300000 + 299999, json_object('window_start', strftime('%Y-%m-%d %H:%M:%S', w * 300, 'unixepoch'),
	'window_end', strftime('%Y-%m-%d %H:%M:%S', w * 300 + 300, 'unixepoch'), 'merchant_id', m, 'orders', COUNT(*),
	'revenue', json(printf('%d.%02d', SUM(cents) / 100, SUM(cents) % 100)),
	-- The shortest digits that are this double again: the first precision that reads back as it; whole numbers have no point.
	'orders_per_second', json(CASE COUNT(*) / 300.0 WHEN COUNT(*) / 300 THEN printf('%d', COUNT(*) / 300) WHEN CAST(printf('%!.15g', COUNT(*) / 300.0) AS REAL) THEN printf('%!.15g', COUNT(*) / 300.0)
		WHEN CAST(printf('%!.16g', COUNT(*) / 300.0) AS REAL) THEN printf('%!.16g', COUNT(*) / 300.0) ELSE printf('%!.17g', COUNT(*) / 300.0) END))
FROM paid GROUP BY m, w ORDER BY m, w;
