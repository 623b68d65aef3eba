-- Shapes of queries: nested views and sub-selects, renamed columns, UNION ALL, window columns passed on, metadata columns in
-- and out, computed columns, expressions as keys, a statement set over one scan.
CREATE TABLE events (user_id STRING, item STRING, qty INT, price DECIMAL(10,2), tags ARRAY<STRING>, attr MAP<STRING, STRING>,
  at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', off BIGINT METADATA FROM 'offset' VIRTUAL, part INT METADATA FROM 'partition' VIRTUAL,
  hdr MAP<STRING, BYTES> METADATA FROM 'headers', total AS qty * price, WATERMARK FOR at AS at - INTERVAL '1' SECOND)
WITH ('connector' = 'kafka', 'topic' = 'events', 'properties.bootstrap.servers' = 'broker:9092', 'properties.group.id' = 'shapes',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.ignore-parse-errors' = 'true');
CREATE TABLE flat (who STRING, item STRING, total DECIMAL(20,2), tag STRING, colour STRING, off BIGINT, part INT, trace STRING,
  at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp') WITH ('connector' = 'kafka', 'topic' = 'flat', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
CREATE TABLE per_minute (window_start TIMESTAMP(3), window_end TIMESTAMP(3), initial STRING, revenue DECIMAL(38,2), items BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'per-minute', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'initial');
CREATE TABLE per_hour (hour_start TIMESTAMP(3), minutes BIGINT, revenue DECIMAL(38,2), best DECIMAL(38,2))
WITH ('connector' = 'kafka', 'topic' = 'per-hour', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
CREATE TEMPORARY VIEW renamed (who, item, total, at, off, part, tag, colour, trace) AS
  SELECT UPPER(user_id), item, total, at, off, part, tags[1], attr['colour'], CAST(hdr['trace'] AS STRING) FROM events;
CREATE TEMPORARY VIEW kept AS SELECT * FROM (SELECT r.*, CHAR_LENGTH(who) AS len FROM renamed AS r) WHERE len > 0 AND total IS NOT NULL;
CREATE TEMPORARY VIEW minutes AS
  SELECT SUBSTRING(who FROM 1 FOR 1) AS initial, window_start, window_end, window_time AS minute_time, SUM(total) AS revenue, COUNT(*) AS items
  FROM TABLE(TUMBLE(DATA => TABLE kept, TIMECOL => DESCRIPTOR(at), SIZE => INTERVAL '1' MINUTE))
  GROUP BY window_start, window_end, window_time, SUBSTRING(who FROM 1 FOR 1);
CREATE TEMPORARY VIEW minutes_again AS SELECT window_start AS minute_start, revenue, minute_time FROM minutes;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO flat SELECT who, item, total, tag, colour, off, part, trace, at FROM kept;
  INSERT INTO per_minute SELECT window_start, window_end, initial, revenue, items FROM minutes WHERE revenue > 0;
  INSERT INTO per_hour SELECT window_start, COUNT(DISTINCT minute_start), SUM(revenue), MAX(revenue)
    FROM TABLE(TUMBLE(TABLE minutes_again, DESCRIPTOR(minute_time), INTERVAL '1' HOUR)) GROUP BY window_start, window_end;
END;
