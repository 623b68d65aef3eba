-- Orders joined with their payments, within the hour; then what was paid per merchant in windows of five minutes of the
-- payment's time: how many, how much, how many a second.
--
--   weir gen orders --records 1M --keys 1000 --partitions 4 --out rec
--   weir gen payments --records 1M --partitions 4 --out rec
--   weir run paid_revenue.sql --define in=rec --define out=out
--   weir dump out paid.by-merchant -c 5
CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');

CREATE TABLE payments (payment_id STRING, order_id STRING, amount DECIMAL(12,2), ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'payment.settled', 'format' = 'json');

CREATE TABLE paid_revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, orders BIGINT,
  revenue DECIMAL(38,2), orders_per_second DOUBLE)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'paid.by-merchant', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'merchant_id');

CREATE TEMPORARY VIEW paid AS SELECT o.merchant_id, o.amount, p.event_time FROM orders o JOIN payments p
ON o.order_id = p.order_id AND p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '1' HOUR;

INSERT INTO paid_revenue SELECT window_start, window_end, merchant_id, COUNT(*), SUM(amount), CAST(COUNT(*) AS DOUBLE) / 300
FROM TABLE(TUMBLE(TABLE paid, DESCRIPTOR(event_time), INTERVAL '5' MINUTES)) GROUP BY window_start, window_end, merchant_id;
