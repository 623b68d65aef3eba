-- Kafka Streams' bytes of a session's key: key, last record's time, first record's time.
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE windowed_out (k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), v BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'windowed', 'format' = 'json', 'key.format' = 'windowed', 'key.fields' = 'k');
INSERT INTO windowed_out SELECT k, window_start, window_end, SUM(v)
  FROM TABLE(SESSION(TABLE events PARTITION BY k, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end, k EMIT CHANGES;
