-- Users with more than five failed attempts within a minute, said at the attempt that made it so: a frame of time that
-- ends with each attempt, rather than windows that begin every ten seconds (fraud.sql).
--
--   weir gen logins --records 1M --keys 20000 --rate 1000 --partitions 4 --out rec
--   weir run fraud_over.sql --define in=rec --define out=out
CREATE TABLE logins (user_id STRING, ok BOOLEAN, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'login.attempted', 'format' = 'json');

CREATE TABLE suspects (user_id STRING, event_time TIMESTAMP_LTZ(3), attempts BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'fraud.suspected', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'user_id');

INSERT INTO suspects SELECT user_id, event_time, attempts FROM (SELECT user_id, event_time, COUNT(*) OVER
  (PARTITION BY user_id ORDER BY event_time RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW) AS attempts
  FROM logins WHERE NOT ok) WHERE attempts > 5;
