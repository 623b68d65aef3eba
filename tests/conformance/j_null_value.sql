-- Joins: a null value on a stream is rejected, on a table it deletes; NULL keys meet nothing.
CREATE TABLE l (k STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'l', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k',
  'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE r (k STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'r', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k',
  'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE t (k STRING, v BIGINT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 't', 'value.format' = 'json', 'key.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE matched (l BIGINT, r BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'matched', 'format' = 'json');
CREATE TABLE enriched (l BIGINT, t BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'enriched', 'format' = 'json');
INSERT INTO matched SELECT l.v, r.v FROM l FULL OUTER JOIN r ON l.k = r.k AND r.at BETWEEN l.at - INTERVAL '0.005' SECOND AND l.at + INTERVAL '0.005' SECOND;
INSERT INTO enriched SELECT l.v, t.v FROM l LEFT JOIN t ON l.k = t.k;
