-- The same as revenue.sql, but each row is written as soon as it changes (at order points; `emit.coalesce=false`: on every
-- update). A reader keeps the last value of each key, which therefore holds the window as well.
CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');

CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, revenue DECIMAL(38,2), orders BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'revenue.by-merchant', 'format' = 'json',
  'key.format' = 'json', 'key.fields' = 'merchant_id;window_start');

INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES)) GROUP BY window_start, window_end, merchant_id
EMIT CHANGES;
