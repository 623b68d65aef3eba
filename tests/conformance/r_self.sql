-- A view joined with itself, one side kept, and again: each row is there by the key of the side that is kept.
CREATE TABLE members (id STRING, v BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'members', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE alone (id STRING, other BIGINT, w BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'alone', 'format' = 'json', 'key.format' = 'raw');
CREATE VIEW many AS SELECT id, v FROM members WHERE v > 10;
INSERT INTO alone SELECT x.id, y.v, z.v FROM many x LEFT JOIN many y ON x.id = y.id AND x.v < y.v JOIN members z ON x.id = z.id;
