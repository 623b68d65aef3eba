-- Grace 0: no watermark delay, as EXPLAIN prints; tumbling, hopping with gaps between advance and size, an offset.
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE result (kind STRING, k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'kind');
INSERT INTO result SELECT 'tumble', k, window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end, k;
