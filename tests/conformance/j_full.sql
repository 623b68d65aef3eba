-- FULL JOIN of tables on more than equal keys: rows of one key that do not fit each other both stand alone; the changes say which.
CREATE TABLE a (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'a', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE b (k STRING, w INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'b', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE both (ak STRING, v INT, bk STRING, w INT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'both', 'format' = 'changelog-json');
INSERT INTO both SELECT a.k, a.v, b.k, b.w FROM a FULL OUTER JOIN b ON a.k = b.k AND a.v < b.w;
