-- Significant price shifts: each price of a product against the one before, by event time.
--
--   weir gen prices --records 1M --keys 20000 --rate 1000 --partitions 4 --out rec
--   weir run price_shifts.sql --define in=rec --define out=out
CREATE TABLE prices (product_id STRING, price DECIMAL(12,2), ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'price.changed', 'format' = 'json');

CREATE TABLE shifts (product_id STRING, event_time TIMESTAMP_LTZ(3), old_price DECIMAL(12,2), price DECIMAL(12,2))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'price.shifted', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'product_id');

INSERT INTO shifts SELECT product_id, event_time, old_price, price FROM (SELECT product_id, event_time, price,
  LAG(price, 1) OVER (PARTITION BY product_id ORDER BY event_time) AS old_price FROM prices) WHERE ABS(price - old_price) > 0.05 * old_price;
