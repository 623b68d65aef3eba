-- Changes with an op: what a row was (-U, -D) and what it is (+I, +U), without a key; of windows that change +I and +U, and -D
-- of sessions that grow; of streams and closed windows +I. Debezium's form of the same.
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE names (k STRING, name STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'names', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE ages (k STRING, age INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'ages', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE totals (k STRING, v BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'totals', 'format' = 'changelog-json');
CREATE TABLE people (k STRING, name STRING, age INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = 'people', 'format' = 'debezium-json', 'debezium-json.encode.ignore-null-fields' = 'true',
  'key.format' = 'raw');
CREATE TABLE open (w TIMESTAMP(3), k STRING, n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'open', 'format' = 'changelog-json');
CREATE TABLE raised (k STRING, v BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'raised', 'format' = 'changelog-json');
CREATE TABLE shown (k STRING, name STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'shown', 'format' = 'changelog-json');
CREATE TABLE visits (k STRING, until TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'visits', 'format' = 'changelog-json');
INSERT INTO visits SELECT k, window_end, COUNT(*)
  FROM TABLE(SESSION(TABLE events PARTITION BY k, DESCRIPTOR(at), INTERVAL '0.005' SECOND))
  GROUP BY window_start, window_end, k EMIT CHANGES;
INSERT INTO totals SELECT k, SUM(v) FROM events GROUP BY k HAVING SUM(v) >= 10;
INSERT INTO people SELECT n.k, n.name, a.age FROM names n LEFT JOIN ages a ON n.k = a.k;
INSERT INTO open SELECT window_start, k, COUNT(*) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '0.01' SECOND))
  GROUP BY window_start, window_end, k EMIT CHANGES;
INSERT INTO raised SELECT k, v FROM events WHERE v > 10;
INSERT INTO shown SELECT k, UPPER(name) FROM names WHERE name <> 'x';
