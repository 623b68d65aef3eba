-- Late records go to late.topic as they came, with where they came from; a row late in a later stage as JSON of its columns.
SET 'late.topic' = 'late';
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '0.005' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE result (k STRING, window_start TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
INSERT INTO result SELECT k, window_start, COUNT(*)
  FROM TABLE(HOP(TABLE events, DESCRIPTOR(at), INTERVAL '0.005' SECOND, INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end, k;
