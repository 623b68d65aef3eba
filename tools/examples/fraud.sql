-- Users with more than five failed attempts within a minute: windows of a minute that begin every ten seconds.
--
--   weir gen logins --records 1M --keys 20000 --rate 1000 --partitions 4 --out rec
--   weir run fraud.sql --define in=rec --define out=out
CREATE TABLE logins (user_id STRING, ok BOOLEAN, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'login.attempted', 'format' = 'json');

CREATE TABLE suspects (window_start TIMESTAMP(3), window_end TIMESTAMP(3), user_id STRING, attempts BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'fraud.suspected', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'user_id');

INSERT INTO suspects SELECT window_start, window_end, user_id, COUNT(*) AS attempts
FROM TABLE(HOP(TABLE logins, DESCRIPTOR(event_time), INTERVAL '10' SECONDS, INTERVAL '1' MINUTE)) WHERE NOT ok
GROUP BY window_start, window_end, user_id HAVING COUNT(*) > 5;
