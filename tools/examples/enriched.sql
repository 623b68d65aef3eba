-- Sales enriched with what the product was at the time of the sale: updates of products that come late are put in their
-- place, sales of unknown or deleted products are kept.
--
--   weir gen sales --records 1M --keys 1000 --partitions 4 --out rec
--   weir gen products --records 10000 --keys 1000 --partitions 4 --out rec
--   weir run enriched.sql --define in=rec --define out=out
--   weir dump out sale.enriched -c 5
CREATE TABLE sales (sale_id STRING, product_id STRING, qty INT, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'sale.made', 'format' = 'json');

CREATE TABLE products (product_id STRING, name STRING, category STRING, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND,
  PRIMARY KEY (product_id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'product.updated', 'format' = 'json');

CREATE TABLE enriched (sale_id STRING, qty INT, name STRING, category STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'sale.enriched', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'sale_id');

INSERT INTO enriched SELECT s.sale_id, s.qty, p.name, p.category FROM sales s
  LEFT JOIN products FOR SYSTEM_TIME AS OF s.event_time AS p ON s.product_id = p.product_id;
