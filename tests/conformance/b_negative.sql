-- Times before 1970 where they are allowed: windows by floor, not by cutting towards zero.
SET 'time.negative' = 'allow';
CREATE TABLE events (ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '1' MINUTE)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE result (kind STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'kind');
INSERT INTO result SELECT 'tumble', window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' SECONDS)) GROUP BY window_start, window_end;
INSERT INTO result SELECT 'hop', window_start, window_end, COUNT(*)
  FROM TABLE(HOP(TABLE events, DESCRIPTOR(at), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS)) GROUP BY window_start, window_end;
