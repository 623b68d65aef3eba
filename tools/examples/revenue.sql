-- Revenue per merchant in windows of five minutes; one row per merchant and window, when the window closes.
--
--   weir gen orders --records 1M --keys 1000 --partitions 4 --out rec
--   weir run revenue.sql --define in=rec --define out=out
--   weir dump out revenue.by-merchant -c 5
CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');

CREATE TABLE revenue (window_start TIMESTAMP(3), window_end TIMESTAMP(3), merchant_id STRING, revenue DECIMAL(38,2), orders BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'revenue.by-merchant', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'merchant_id');

INSERT INTO revenue SELECT window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(event_time), INTERVAL '5' MINUTES)) GROUP BY window_start, window_end, merchant_id;
