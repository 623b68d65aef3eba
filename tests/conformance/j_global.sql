-- Global tables: whole before the first record of a stream is read, joined by any expression, and their times hold nothing
-- back: a row of the table that is newer than every record of the stream is there, and windows close by the stream's time.
CREATE TABLE s (k STRING, place STRING, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 's', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE places (code STRING, name STRING, PRIMARY KEY (code) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'places', 'value.format' = 'json', 'key.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY', 'global' = 'true');
CREATE TABLE named (k STRING, name STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'named', 'value.format' = 'json');
CREATE TABLE known (k STRING, name STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'known', 'value.format' = 'json');
CREATE TABLE counted (name STRING, n BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'counted', 'value.format' = 'json');
INSERT INTO named SELECT s.k, p.name FROM s LEFT JOIN places p ON UPPER(SUBSTRING(s.place FROM 1 FOR 2)) = p.code;
INSERT INTO known SELECT s.k, p.name FROM s JOIN places p ON s.place = p.code AND p.name <> s.k;
CREATE VIEW placed AS SELECT p.name, s.at FROM s JOIN places p ON s.place = p.code;
INSERT INTO counted SELECT name, COUNT(*) FROM TABLE(TUMBLE(TABLE placed, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY name, window_start, window_end;
