-- Two regions' orders merged, then split by amount into two topics: one scan of each input, no state.
--
--   weir gen orders --topic order.placed.eu --records 1M --seed 1 --out rec
--   weir gen orders --topic order.placed.us --records 1M --seed 2 --out rec
--   weir run split.sql --define in=rec --define out=out
CREATE TABLE orders_eu (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING, ts BIGINT)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed.eu', 'format' = 'json');
CREATE TABLE orders_us (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency STRING, ts BIGINT)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed.us', 'format' = 'json');

CREATE TABLE big_orders (order_id STRING, merchant_id STRING, amount DECIMAL(12,2), ts BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'order.big', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'order_id');
CREATE TABLE small_orders (order_id STRING, merchant_id STRING, m STRING, amount DECIMAL(12,2))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'order.small', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'order_id');

CREATE VIEW all_orders AS SELECT order_id, merchant_id, amount, ts FROM orders_eu UNION ALL SELECT order_id, merchant_id, amount, ts FROM orders_us;

EXECUTE STATEMENT SET BEGIN
  INSERT INTO big_orders SELECT order_id, merchant_id, amount, ts FROM all_orders WHERE amount >= 100;
  INSERT INTO small_orders SELECT order_id, merchant_id, UPPER(merchant_id) AS m, amount FROM all_orders WHERE amount < 100;
END;
