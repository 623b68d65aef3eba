-- Joins that WHERE speaks of: FROM a, b, CROSS JOIN, and bounds in time that do not stand in ON.
CREATE TABLE s (id STRING, k STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 's', 'format' = 'json');
CREATE TABLE t (id STRING, k STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 't', 'format' = 'json');
CREATE TABLE named (k STRING, name STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'named', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE comma (s STRING, t STRING, name STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'comma', 'format' = 'json');
CREATE TABLE bounds (s STRING, t STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'bounds', 'format' = 'json');
INSERT INTO comma SELECT s.id, t.id, named.name FROM s, t, named
  WHERE s.k = t.k AND named.k = s.k AND s.at BETWEEN t.at - INTERVAL '0.005' SECOND AND t.at AND s.id <> 's2';
INSERT INTO bounds SELECT s.id, t.id FROM s JOIN t ON s.k = t.k WHERE t.at >= s.at AND t.at <= s.at + INTERVAL '0.005' SECOND;
