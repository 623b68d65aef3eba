-- Joins of more than two inputs in one statement, tables and streams mixed; tables with keys of two columns that stand in
-- another order; further conditions of an outer join of tables: a row that fails them is no match.
CREATE TABLE s (k STRING, n INT, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 's', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE u (k STRING, w BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'u', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE a (k STRING, n INT, x BIGINT, PRIMARY KEY (k, n) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'a', 'value.format' = 'json', 'key.format' = 'json');
CREATE TABLE b (n INT, k STRING, y BIGINT, PRIMARY KEY (n, k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'b', 'value.format' = 'json', 'key.format' = 'json');
CREATE TABLE four (k STRING, v BIGINT, w BIGINT, x BIGINT, y BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'four', 'value.format' = 'json');
CREATE TABLE kept (k STRING, n INT, x BIGINT, y BIGINT, PRIMARY KEY (k, n) NOT ENFORCED) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'kept', 'value.format' = 'json', 'key.format' = 'json');
CREATE TABLE right_kept (k STRING, n INT, x BIGINT, y BIGINT, PRIMARY KEY (k, n) NOT ENFORCED) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'right', 'value.format' = 'json', 'key.format' = 'json');
INSERT INTO four SELECT s.k, s.v, u.w, a.x, b.y
  FROM s JOIN u ON s.k = u.k AND u.at BETWEEN s.at - INTERVAL '0.005' SECOND AND s.at + INTERVAL '0.005' SECOND
  LEFT JOIN a ON s.k = a.k AND s.n = a.n LEFT JOIN b ON b.k = s.k AND s.n = b.n AND b.y > s.v;
INSERT INTO kept SELECT a.k, a.n, a.x, b.y FROM a LEFT JOIN b ON a.n = b.n AND a.k = b.k AND a.x < b.y;
INSERT INTO right_kept SELECT b.k, b.n, a.x, b.y FROM a RIGHT JOIN b ON a.n = b.n AND a.k = b.k AND a.x < b.y;
