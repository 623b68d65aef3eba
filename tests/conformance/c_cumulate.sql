-- Cumulating windows: 1 s steps up to 3 s; late for some of a row's windows; a step without rows; every update; offset.
SET 'emit.coalesce' = 'false';
CREATE TABLE steps (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'steps', 'format' = 'json');
CREATE TABLE shifted (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'shifted', 'format' = 'json');
CREATE TABLE updates (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'updates', 'format' = 'json');
CREATE TABLE result (k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, v BIGINT, most BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE changed (k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, v BIGINT,
  PRIMARY KEY (k, window_start, window_end) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'changed', 'format' = 'json');
INSERT INTO result SELECT k, window_start, window_end, COUNT(*), SUM(v), MAX(v)
  FROM TABLE(CUMULATE(TABLE steps, DESCRIPTOR(at), INTERVAL '1' SECOND, INTERVAL '3' SECONDS)) GROUP BY window_start, window_end, k;
INSERT INTO result SELECT k, window_start, window_end, COUNT(*), SUM(v), MAX(v)
  FROM TABLE(CUMULATE(DATA => TABLE shifted, TIMECOL => DESCRIPTOR(at), STEP => INTERVAL '1' SECOND, SIZE => INTERVAL '3' SECONDS,
    OFFSET => INTERVAL '1' SECOND)) GROUP BY window_start, window_end, k;
INSERT INTO changed SELECT k, window_start, window_end, COUNT(*), SUM(v)
  FROM TABLE(CUMULATE(TABLE updates, DESCRIPTOR(at), INTERVAL '1' SECOND, INTERVAL '2' SECONDS)) GROUP BY window_start, window_end, k
  EMIT CHANGES;
