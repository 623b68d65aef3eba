-- Members whose names SQL does not like, nested values read as rows and as text, and what cannot be confused.
SET 'errors.deadletterqueue.topic.name' = 'dlq';
CREATE TABLE events (`a.b` INT, a ROW<b INT>, t STRING, u ROW<`X-Meta-Client` STRING>, `@type` STRING, `Successful Login` INT,
  `größe` INT, `from` INT, `x"y` INT, `we'ird` INT, `na``me` INT, m MAP<STRING, INT>, l ARRAY<ROW<v BIGINT>>,
  ts TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR ts AS ts)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE names (dotted INT, nested INT, t STRING, t_id STRING, t_n STRING, client STRING, client_text STRING, `size` INT,
  `x"y` INT, `we'ird` INT, `na``me` INT, `from` INT, m INT, l BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'names', 'format' = 'json');
CREATE TABLE types (`@type` STRING, logins BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'types', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = '@type');
BEGIN STATEMENT SET;
INSERT INTO names SELECT `a.b`, a.b, t, JSON_VALUE(t, '$.id'), JSON_VALUE(t, '$.n[1]'), u.`X-Meta-Client`,
  JSON_VALUE(JSON_QUERY(t, '$.u'), '$[''X-Meta-Client'']'), `größe`, `x"y`, `we'ird`, `na``me`, `from`, m['b c'], l[2].v
  FROM events WHERE `@type` IS NULL;
INSERT INTO types SELECT `@type`, SUM(`Successful Login`) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
  WHERE `@type` IS NOT NULL GROUP BY window_start, window_end, `@type`;
END;
