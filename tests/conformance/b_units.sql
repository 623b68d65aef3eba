-- Integers as time: seconds, milliseconds, microseconds.
SET 'errors.deadletterqueue.topic.name' = 'dlq';
CREATE TABLE seconds (s BIGINT, at AS TO_TIMESTAMP_LTZ(s, 0), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'seconds', 'format' = 'json');
CREATE TABLE millis (ms BIGINT, at AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'millis', 'format' = 'json');
CREATE TABLE micros (us BIGINT, at AS TO_TIMESTAMP_LTZ(us / 1000, 3), exact AS TO_TIMESTAMP_LTZ(us, 6), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'micros', 'format' = 'json');
CREATE TABLE result (source STRING, window_start TIMESTAMP(3), n BIGINT, latest TIMESTAMP_LTZ(6))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json');
INSERT INTO result SELECT 's', window_start, COUNT(*), MAX(CAST(at AS TIMESTAMP_LTZ(6)))
  FROM TABLE(TUMBLE(TABLE seconds, DESCRIPTOR(at), INTERVAL '5' SECONDS)) GROUP BY window_start, window_end;
INSERT INTO result SELECT 'ms', window_start, COUNT(*), MAX(CAST(at AS TIMESTAMP_LTZ(6)))
  FROM TABLE(TUMBLE(TABLE millis, DESCRIPTOR(at), INTERVAL '5' MINUTES)) GROUP BY window_start, window_end;
INSERT INTO result SELECT 'us', window_start, COUNT(*), MAX(exact)
  FROM TABLE(TUMBLE(TABLE micros, DESCRIPTOR(at), INTERVAL '0.001' SECOND)) GROUP BY window_start, window_end;
