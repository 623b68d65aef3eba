-- A full join of a full join: a key is there while one of three tables has it.
CREATE TABLE a (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'a', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE b (k STRING, w INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'b', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE c (k STRING, x INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'c', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE three (k STRING, v INT, w INT, x INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'three', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE again (k STRING, v INT, w INT, x INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'again', 'format' = 'json', 'key.format' = 'raw');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO three SELECT COALESCE(a.k, b.k, c.k), v, w, x FROM a FULL JOIN b ON a.k = b.k FULL JOIN c ON COALESCE(a.k, b.k) = c.k;
  INSERT INTO again SELECT * FROM a FULL JOIN b USING (k) FULL JOIN c USING (k);
END;
