-- NULLs in windows: a null value counts as a record, its columns are NULL; three-valued logic in WHERE, CASE and HAVING.
CREATE TABLE events (k STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE result (n BIGINT, nv BIGINT, s BIGINT, mn BIGINT, mx BIGINT, av BIGINT, fv BIGINT, lv BIGINT, kinds BIGINT, pos BIGINT, odd BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json');
CREATE TABLE filtered (k STRING, v BIGINT, e BOOLEAN, f STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'filtered', 'format' = 'json');
INSERT INTO result SELECT COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(v), AVG(v), FIRST_VALUE(v), LAST_VALUE(v), COUNT(DISTINCT v),
  COUNT(*) FILTER (WHERE v > 0), SUM(CASE WHEN MOD(v, 2) <> 0 THEN 1 ELSE 0 END)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end;
INSERT INTO filtered SELECT k, v, v = NULL OR v > 0, CASE v WHEN 1 THEN 'one' WHEN NULL THEN 'null' ELSE 'other' END
  FROM events WHERE NOT (k = 'drop') AND (v <> 5 OR v IS NULL) AND COALESCE(v, 0) IN (0, 1, 2);
