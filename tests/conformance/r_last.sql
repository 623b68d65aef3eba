-- The last row of each key, ROW_NUMBER() OVER (.. ORDER BY time DESC) and WHERE rn = 1: a table, to write, to group, to join; and
-- the first one, which is a stream. Later is by event time; of equal times the later arrival.
CREATE TABLE prices (sku STRING, shop STRING, price INT, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'prices', 'format' = 'json');
CREATE TABLE sales (id STRING, sku STRING, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'sales', 'format' = 'json');
CREATE TABLE latest (sku STRING, price INT, n BIGINT, PRIMARY KEY (sku) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'latest', 'format' = 'json', 'key.format' = 'json');
CREATE TABLE cheap (sku STRING, price INT, PRIMARY KEY (sku) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'cheap', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE firsts (sku STRING, price INT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'firsts', 'format' = 'json');
CREATE TABLE shops (shop STRING, skus BIGINT, total INT, PRIMARY KEY (shop) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'shops', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE sold (id STRING, price INT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'sold', 'format' = 'json');
CREATE TEMPORARY VIEW ranked AS SELECT *, ROW_NUMBER() OVER w AS rn FROM prices WINDOW w AS (PARTITION BY sku ORDER BY et DESC);
CREATE TEMPORARY VIEW price_of AS SELECT sku, price, et FROM ranked WHERE rn = 1;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO latest SELECT sku, price, rn FROM ranked WHERE rn <= 1;
  INSERT INTO cheap SELECT sku, price FROM ranked AS r WHERE 1 = r.rn AND price < 10 AND sku IS NOT NULL;
  INSERT INTO firsts SELECT sku, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sku ORDER BY et) AS rn FROM prices) WHERE rn = 1;
  INSERT INTO shops SELECT shop, COUNT(*), SUM(price)
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY sku ORDER BY et DESC) AS rn FROM prices WHERE price > 0) WHERE rn = 1 GROUP BY shop;
  INSERT INTO sold SELECT id, price FROM sales LEFT JOIN price_of FOR SYSTEM_TIME AS OF sales.et ON sales.sku = price_of.sku;
END;
