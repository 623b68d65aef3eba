-- A plain GROUP BY is a table: upserts into a sink with PRIMARY KEY, a null value deletes; null keys and null values.
CREATE TABLE events (k STRING, v BIGINT) WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json',
  'errors.deadletterqueue.topic.name' = 'dlq');
CREATE TABLE totals (k STRING, n BIGINT, v BIGINT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'totals', 'format' = 'json');
CREATE TABLE big (k STRING, v BIGINT, least BIGINT, first BIGINT, last BIGINT, kinds BIGINT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'big', 'key.format' = 'raw', 'value.format' = 'json');
INSERT INTO totals SELECT k, COUNT(*), SUM(v) FROM events GROUP BY k;
INSERT INTO big SELECT k, SUM(v), MIN(v), FIRST_VALUE(v), LAST_VALUE(v), COUNT(DISTINCT v) FROM events GROUP BY k HAVING SUM(v) >= 10;
