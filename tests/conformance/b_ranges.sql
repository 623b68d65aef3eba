-- Event times at the edges: beyond the calendar, missing, of another type, negative; a record's own timestamp of -1.
SET 'errors.deadletterqueue.topic.name' = 'dlq';
CREATE TABLE events (k STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE plain (k STRING, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'plain', 'format' = 'json');
CREATE TABLE typed (k STRING, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'typed', 'format' = 'json');
CREATE TABLE result (source STRING, window_start TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'source');
INSERT INTO result SELECT 'tumble', window_start, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' SECONDS)) GROUP BY window_start, window_end;
INSERT INTO result SELECT 'plain', window_start, COUNT(*)
  FROM TABLE(TUMBLE(TABLE plain, DESCRIPTOR(at), INTERVAL '10' SECONDS)) GROUP BY window_start, window_end;
INSERT INTO result SELECT 'typed', window_start, COUNT(*)
  FROM TABLE(TUMBLE(TABLE typed, DESCRIPTOR(at), INTERVAL '10' SECONDS)) GROUP BY window_start, window_end;
