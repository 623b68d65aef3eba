-- A plain GROUP BY: every update of the table, a null value where HAVING deletes.
CREATE TABLE events (id STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'events', 'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'test',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE counts (id STRING, v BIGINT, avg_v DOUBLE, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'counts', 'properties.bootstrap.servers' = 'localhost:9092', 'key.format' = 'raw', 'value.format' = 'json');
INSERT INTO counts SELECT id, SUM(v), AVG(CAST(v AS DOUBLE)) FROM events GROUP BY id HAVING SUM(v) > 0;
