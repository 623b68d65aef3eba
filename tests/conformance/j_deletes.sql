-- Deletes: one that comes out of a join of tables is no older than the row it deletes, so that who keeps the newest by time
-- keeps nothing; a row deleted from a table joins no more.
CREATE TABLE l (k STRING, v STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'l', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE r (k STRING, v STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'r', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE s (k STRING, n BIGINT) WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 's', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE pairs (k STRING, a STRING, b STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'pairs', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE seen (n BIGINT, v STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'seen', 'format' = 'json');
CREATE TABLE alone (n BIGINT, v STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'alone', 'format' = 'json');
INSERT INTO pairs SELECT l.k, l.v, r.v FROM l JOIN r ON l.k = r.k;
INSERT INTO seen SELECT s.n, r.v FROM s JOIN r ON s.k = r.k;
INSERT INTO alone SELECT s.n, r.v FROM s LEFT JOIN r ON s.k = r.k;
