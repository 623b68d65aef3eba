-- Functions OVER, and the last and first rows by ROW_NUMBER, of a join of two streams: by either side's time, as the query says.
CREATE TABLE orders (o STRING, k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '0.010' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE payments (p STRING, k STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '0.010' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'payments', 'format' = 'json');
CREATE TABLE sums (o STRING, p STRING, total BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'sums', 'format' = 'json');
CREATE TABLE counts (o STRING, p STRING, n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'counts', 'format' = 'json');
CREATE TABLE firsts (k STRING, o STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'firsts', 'format' = 'json');
CREATE TABLE lasts (k STRING, o STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'lasts', 'format' = 'json', 'key.format' = 'raw');
CREATE VIEW paid AS SELECT o, p, o.k AS k, v, o.at AS ot, p.at AS pt FROM orders o JOIN payments p
  ON o.k = p.k AND p.at BETWEEN o.at - INTERVAL '0.010' SECOND AND o.at + INTERVAL '0.010' SECOND;
INSERT INTO sums SELECT o, p, SUM(v) OVER (PARTITION BY k ORDER BY ot) FROM paid;
INSERT INTO counts SELECT o, p, COUNT(*) OVER (PARTITION BY k ORDER BY pt RANGE BETWEEN INTERVAL '0.010' SECOND PRECEDING AND CURRENT ROW)
  FROM paid;
INSERT INTO firsts SELECT k, o FROM (SELECT k, o, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ot) AS rn FROM paid) WHERE rn = 1;
INSERT INTO lasts SELECT k, o FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ot DESC) AS rn FROM paid) WHERE rn = 1;
