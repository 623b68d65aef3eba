-- Functions OVER (PARTITION BY k ORDER BY at): by event time, when the row is final; frames of rows, of time, of all.
CREATE TABLE ticks (k STRING, v BIGINT, d DECIMAL(10,2), s STRING, x DOUBLE, ts BIGINT,
  at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '0.005' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'ticks', 'format' = 'json');
CREATE TABLE lags (k STRING, v BIGINT, v1 BIGINT, v2 BIGINT, s1 STRING, n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'lags', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE frames (k STRING, v BIGINT, two BIGINT, n BIGINT, lo BIGINT, hi STRING, f BIGINT, l BIGINT, a DECIMAL(38,6), x DOUBLE)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'frames', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE spans (k STRING, v BIGINT, c BIGINT, t BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'spans', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE alls (v BIGINT, t BIGINT, d DECIMAL(38,2), lo STRING, f STRING, peers BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'alls', 'format' = 'json');
-- What came before: NULLs are values for LAG; a default where there is no such row.
INSERT INTO lags SELECT k, v, LAG(v) OVER w, LAG(v, 2, -1) OVER w, LAG(s, 1, 'none') OVER w, ROW_NUMBER() OVER w
  FROM ticks WHERE s <> 'f' OR s IS NULL WINDOW w AS (PARTITION BY k ORDER BY at);
-- Different frames side by side.
INSERT INTO frames SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY at ROWS 1 PRECEDING),
    COUNT(*) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL '0.010' SECOND PRECEDING AND CURRENT ROW),
    MIN(v) OVER (PARTITION BY k ORDER BY at ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
    MAX(s) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL '0.010' SECOND PRECEDING AND CURRENT ROW),
    FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY at ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
    LAST_VALUE(v) OVER (PARTITION BY k ORDER BY at ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
    AVG(d) OVER (PARTITION BY k ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
    SUM(x) OVER (PARTITION BY k ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
  FROM ticks WHERE s <> 'l' OR s IS NULL;
-- A span of time alone: nothing is kept beyond it. A filter outside sees the results.
INSERT INTO spans SELECT k, v, c, t FROM (SELECT k, v,
    COUNT(v) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL '0.010' SECOND PRECEDING AND CURRENT ROW) AS c,
    SUM(v) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL '0.020' SECOND PRECEDING AND CURRENT ROW) AS t
  FROM ticks) WHERE c > 1;
-- No partition, no frame: all rows up to those of the same time.
INSERT INTO alls SELECT v, SUM(v) OVER (ORDER BY at), SUM(d) OVER (ORDER BY at ROWS UNBOUNDED PRECEDING),
    MIN(s) OVER (ORDER BY at), FIRST_VALUE(s) OVER (ORDER BY at), COUNT(*) OVER (ORDER BY at) FROM ticks;
