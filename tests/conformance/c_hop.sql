-- Hopping windows: 10 by 5 (panes), 10 by 4 (no divisor of the size is needed), 10 s by 3 s near zero.
CREATE TABLE five (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'five', 'format' = 'json');
CREATE TABLE spans (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '1' HOUR)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'spans', 'format' = 'json');
CREATE TABLE result (kind STRING, k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, v BIGINT, least BIGINT, most BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'kind');
INSERT INTO result SELECT 'by5', k, window_start, window_end, COUNT(*), SUM(v), MIN(v), MAX(v)
  FROM TABLE(HOP(TABLE five, DESCRIPTOR(at), INTERVAL '0.005' SECOND, INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end, k;
INSERT INTO result SELECT 'by2s', k, window_start, window_end, COUNT(*), SUM(v), MIN(v), MAX(v)
  FROM TABLE(HOP(DATA => TABLE spans, TIMECOL => DESCRIPTOR(at), SLIDE => INTERVAL '2' SECONDS, SIZE => INTERVAL '10' SECONDS))
  GROUP BY window_start, window_end, k;
