-- UNION ALL of tables: a row that goes on one side leaves the other side's row of the same key alone.
CREATE TABLE a (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'a', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE b (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'b', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE tagged (side STRING, k STRING, v INT, PRIMARY KEY (side, k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'tagged', 'format' = 'json', 'key.format' = 'json');
CREATE TABLE changes (k STRING, v INT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'changes', 'format' = 'changelog-json');
CREATE TABLE sums (k STRING, n BIGINT, v INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'sums', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE names (k STRING, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'names', 'format' = 'json', 'key.format' = 'raw');
CREATE TEMPORARY VIEW all_rows AS SELECT k, v FROM a UNION ALL SELECT k, v FROM b WHERE v > 0;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO tagged SELECT 'a', k, v FROM a UNION ALL SELECT 'b', k, v FROM b WHERE v > 0;
  INSERT INTO changes SELECT * FROM all_rows;
  INSERT INTO sums SELECT k, COUNT(*), SUM(v) FROM all_rows GROUP BY k;
  INSERT INTO names SELECT k FROM a UNION SELECT k FROM b WHERE v > 0;
END;
