-- ARRAY_AGG over windows and over all time (elements in order of arrival, NULLs among them), and UNNEST of arrays.
CREATE TABLE events (k STRING, v INT, s STRING, tags ARRAY<STRING>, ts BIGINT,
  at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '0.005' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE tumbled (k STRING, vs ARRAY<INT>, ss ARRAY<STRING>, n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'tumbled', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE sessions (k STRING, vs ARRAY<INT>)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'sessions', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE plain (k STRING, vs ARRAY<INT>, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'plain', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE fanned (k STRING, tag STRING, n INT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'fanned', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE kept (k STRING, tag STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'kept', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE counted (tag STRING, n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'counted', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'tag');
CREATE VIEW tagged AS SELECT tag, w.at FROM events w, UNNEST(w.tags) AS t (tag);
INSERT INTO tumbled SELECT k, ARRAY_AGG(v), ARRAY_AGG(s) FILTER (WHERE v > 1), COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO sessions SELECT k, ARRAY_AGG(v) FROM TABLE(SESSION(TABLE events PARTITION BY k, DESCRIPTOR(at), INTERVAL '0.004' SECOND))
  GROUP BY k, window_start, window_end;
INSERT INTO plain SELECT k, ARRAY_AGG(v) FROM events GROUP BY k;
INSERT INTO fanned SELECT e.k, t.tag, t.n FROM events AS e CROSS JOIN UNNEST(e.tags) WITH ORDINALITY AS t (tag, n) WHERE t.tag <> 'no';
INSERT INTO kept SELECT k, tag FROM events LEFT JOIN UNNEST(tags) AS t (tag) ON TRUE;
INSERT INTO counted SELECT tag, COUNT(*) FROM TABLE(TUMBLE(TABLE tagged, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY tag, window_start, window_end;
