-- Tumbling windows of 10 ms with a grace of 5 ms: section 7's vectors and the edges of lateness, to the millisecond.
SET 'slots' = '1'; -- one slot, so that the order within it is the order of the topic
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '0.005' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE result (k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
INSERT INTO result SELECT k, window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end, k;
