-- What moves time: every partition, filtered records too; what does not: nothing at all. One key or many, one result per window.
CREATE TABLE events (k STRING, skip BOOLEAN, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE other (k STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'other', 'format' = 'json');
CREATE TABLE result (source STRING, k STRING, window_start TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'source');
CREATE VIEW both_of_them AS SELECT k, at FROM events WHERE skip IS NOT TRUE UNION ALL SELECT k, at FROM other;
INSERT INTO result SELECT 'both', k, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE both_of_them, DESCRIPTOR(at), INTERVAL '0.010' SECOND))
  GROUP BY window_start, window_end, k;
