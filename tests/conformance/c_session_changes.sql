-- Sessions with EMIT CHANGES, every update: a merge first takes the swallowed sessions back.
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '1' MINUTE)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE result (k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'json',
  'key.fields' = 'k;window_start;window_end');
INSERT INTO result SELECT k, window_start, window_end, COUNT(*)
  FROM TABLE(SESSION(TABLE events PARTITION BY k, DESCRIPTOR(at), INTERVAL '0.005' SECOND)) GROUP BY window_start, window_end, k EMIT CHANGES;
