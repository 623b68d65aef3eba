-- A table's key stands in the record's key, and in its value, too, unless 'value.fields-include' = 'EXCEPT_KEY': which cell is which
-- column of a CSV value counts it, and what one job writes another one reads.
CREATE TABLE whole (a INT, k STRING, b INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'whole', 'format' = 'csv', 'key.format' = 'raw');
CREATE TABLE part (a INT, k STRING, b INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'part', 'key.format' = 'raw', 'value.format' = 'csv', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE pairs (k STRING, v INT, n INT, PRIMARY KEY (k, n) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'pairs', 'format' = 'csv', 'key.format' = 'csv');
CREATE TABLE both (k STRING, wa INT, wb INT, pa INT, pb INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'both', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE whole_again (a INT, k STRING, b INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'whole-again', 'format' = 'csv', 'key.format' = 'raw');
CREATE TABLE part_again (a INT, k STRING, b INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'part-again', 'format' = 'csv', 'key.format' = 'raw',
  'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE pairs_again (k STRING, v INT, n INT, PRIMARY KEY (k, n) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'pairs-again', 'format' = 'csv', 'key.format' = 'csv');
INSERT INTO both SELECT w.k, w.a, w.b, p.a, p.b FROM whole w JOIN part p ON w.k = p.k;
INSERT INTO whole_again SELECT * FROM whole;
INSERT INTO part_again SELECT * FROM part;
INSERT INTO pairs_again SELECT * FROM pairs;
