-- Windows with an offset, of more than a day, of more than a year; no hidden limit, no hidden grace.
CREATE TABLE events (k STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE result (kind STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'kind');
INSERT INTO result SELECT 'day6', window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '1' DAY, INTERVAL '6' HOURS)) GROUP BY window_start, window_end;
INSERT INTO result SELECT 'whole', window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '1' DAY, INTERVAL '1' DAY)) GROUP BY window_start, window_end;
INSERT INTO result SELECT 'back', window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '1' DAY, INTERVAL '-6' HOURS)) GROUP BY window_start, window_end;
INSERT INTO result SELECT '25h', window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '25' HOURS)) GROUP BY window_start, window_end;
INSERT INTO result SELECT '400d', window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '400' DAYS)) GROUP BY window_start, window_end;
INSERT INTO result SELECT 'tz', window_start, window_end, COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '1' DAY, INTERVAL '-8' HOURS)) GROUP BY window_start, window_end;
