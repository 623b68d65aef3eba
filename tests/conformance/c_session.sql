-- Sessions with a gap of 5 ms and no grace, EMIT FINAL: [first, last] merges at a distance of the gap; SQL's end is last + gap.
SET 'slots' = '1';
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE graced (k STRING, v DOUBLE, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '1' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'graced', 'format' = 'json');
CREATE TABLE result (k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, v BIGINT, f BIGINT, l BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE sums (k STRING, window_start TIMESTAMP(3), n BIGINT, v DOUBLE)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'sums', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
INSERT INTO result SELECT k, window_start, window_end, COUNT(*), SUM(v), FIRST_VALUE(v), LAST_VALUE(v)
  FROM TABLE(SESSION(TABLE events PARTITION BY k, DESCRIPTOR(at), INTERVAL '0.005' SECOND)) GROUP BY window_start, window_end, k;
INSERT INTO sums SELECT k, window_start, COUNT(*), SUM(v)
  FROM TABLE(SESSION(TABLE graced PARTITION BY k, DESCRIPTOR(at), INTERVAL '0.005' SECOND)) GROUP BY window_start, window_end, k;
