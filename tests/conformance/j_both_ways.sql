-- The two inputs of a join are alike: with the sides swapped the same rows come, of intervals, windows and tables.
CREATE TABLE a (k STRING, v STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'a', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE b (k STRING, v STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'b', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE ta (k STRING, v STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'ta', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE tb (k STRING, v STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'tb', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE o (kind STRING, k STRING, a STRING, b STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'o', 'format' = 'json');
CREATE TABLE ot1 (k STRING, a STRING, b STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'tables', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE ot2 (k STRING, a STRING, b STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'swapped', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE ot3 (k STRING, a STRING, b STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'again', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
INSERT INTO o SELECT 'interval', COALESCE(a.k, b.k), a.v, b.v
  FROM a FULL JOIN b ON a.k = b.k AND a.at BETWEEN b.at - INTERVAL '60' SECOND AND b.at + INTERVAL '60' SECOND;
INSERT INTO o SELECT 'interval swapped', COALESCE(a.k, b.k), a.v, b.v
  FROM b FULL JOIN a ON a.k = b.k AND a.at BETWEEN b.at - INTERVAL '60' SECOND AND b.at + INTERVAL '60' SECOND;
INSERT INTO o SELECT 'window', COALESCE(l.k, r.k), l.v, r.v
  FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '60' SECOND)) l
  FULL JOIN TABLE(TUMBLE(TABLE b, DESCRIPTOR(at), INTERVAL '60' SECOND)) r
  ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
INSERT INTO o SELECT 'window swapped', COALESCE(l.k, r.k), l.v, r.v
  FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(at), INTERVAL '60' SECOND)) r
  FULL JOIN TABLE(TUMBLE(TABLE a, DESCRIPTOR(at), INTERVAL '60' SECOND)) l
  ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end;
INSERT INTO ot1 SELECT ta.k, ta.v, tb.v FROM ta JOIN tb ON ta.k = tb.k;
INSERT INTO ot2 SELECT ta.k, ta.v, tb.v FROM tb JOIN ta ON ta.k = tb.k;
CREATE VIEW pairs AS SELECT tb.k AS id, ta.v AS a FROM ta JOIN tb ON ta.k = tb.k WHERE tb.v <> 'C';
INSERT INTO ot3 SELECT tb.k, pairs.a, tb.v FROM tb JOIN pairs ON tb.k = pairs.id;
