-- Keys of joins that are no ordinary text: NULL equals nothing, but a kept side keeps its row; an empty text is a key like
-- any other. A condition on one side's rows is looked at before they are joined: what it drops is filtered.
CREATE TABLE l (id STRING, x BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'l', 'format' = 'json');
CREATE TABLE r (id STRING, y BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'r', 'format' = 'json');
CREATE TABLE t (id STRING, z BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 't', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE o (kind STRING, x BIGINT, y BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'o', 'format' = 'json');
INSERT INTO o SELECT 'within', l.x, r.y
  FROM l LEFT JOIN r ON l.id = r.id AND r.at BETWEEN l.at - INTERVAL '1' SECOND AND l.at + INTERVAL '1' SECOND;
INSERT INTO o SELECT 'within, not null', l.x, r.y
  FROM l LEFT JOIN r ON l.id = r.id AND r.at BETWEEN l.at - INTERVAL '1' SECOND AND l.at + INTERVAL '1' SECOND
  WHERE l.id IS NOT NULL;
INSERT INTO o SELECT 'table', l.x, t.z FROM l LEFT JOIN t ON l.id = t.id;
INSERT INTO o SELECT 'table, not null', l.x, t.z FROM l LEFT JOIN t ON l.id = t.id WHERE l.id IS NOT NULL;
INSERT INTO o SELECT 'as of', l.x, t.z FROM l LEFT JOIN t FOR SYSTEM_TIME AS OF l.at ON l.id = t.id;
