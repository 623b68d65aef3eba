-- Window joins: rows of one window with equal keys meet when it closes; unmatched rows leave then, exactly once. A row's
-- time in the result is the window's last millisecond; NULL keys meet nothing; a row that is late for its windows is late.
CREATE TABLE a (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '0.002' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'a', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE b (k STRING, w BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'b', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');

CREATE TABLE full_rows (k STRING, v BIGINT, w BIGINT, ls TIMESTAMP(3), re TIMESTAMP(3))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'full', 'value.format' = 'json');
CREATE TABLE inner_rows (k STRING, v BIGINT, w BIGINT, wt TIMESTAMP_LTZ(3))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'inner', 'value.format' = 'json');
CREATE TABLE hop_rows (v BIGINT, w BIGINT, ws TIMESTAMP(3), we TIMESTAMP(3))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'hop', 'value.format' = 'json');
CREATE TABLE counted (k STRING, n BIGINT, m BIGINT, ws TIMESTAMP(3))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'counted', 'value.format' = 'json');

INSERT INTO full_rows SELECT COALESCE(l.k, r.k), l.v, r.w, l.window_start, r.window_end
  FROM (SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '0.010' SECOND))) l
  FULL JOIN (SELECT * FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(at), INTERVAL '0.010' SECOND))) r
  ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
INSERT INTO inner_rows SELECT l.k, l.v, r.w, l.window_time
  FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) l
  JOIN TABLE(TUMBLE(TABLE b, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) r
  ON l.window_start = r.window_start AND l.window_end = r.window_end AND l.k = r.k AND l.v < r.w;
INSERT INTO hop_rows SELECT l.v, r.w, l.window_start, l.window_end
  FROM (SELECT k, v, window_start, window_end FROM TABLE(HOP(TABLE a, DESCRIPTOR(at), INTERVAL '0.005' SECOND, INTERVAL '0.010' SECOND))) l
  LEFT JOIN (SELECT k, w, window_start AS s, window_end AS e FROM TABLE(HOP(TABLE b, DESCRIPTOR(at), INTERVAL '0.005' SECOND, INTERVAL '0.010' SECOND))) r
  ON l.k = r.k AND l.window_start = r.s AND l.window_end = r.e AND r.w > 10;
INSERT INTO counted SELECT l.k, l.n, r.m, l.window_start
  FROM (SELECT k, COUNT(*) AS n, window_start, window_end FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY k, window_start, window_end) l
  LEFT JOIN (SELECT k, COUNT(*) AS m, window_start, window_end FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY k, window_start, window_end) r
  ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
