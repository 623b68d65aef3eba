-- EMIT CHANGES of a tumbling window: HAVING, deletes of rows that were emitted, timestamps, windowed keys.
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE having_out (k STRING, window_start TIMESTAMP(3), n BIGINT, v BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'having', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'k;window_start');
CREATE TABLE windowed_out (k STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), v BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'windowed', 'format' = 'json', 'key.format' = 'windowed', 'key.fields' = 'k',
  'value.fields-include' = 'EXCEPT_KEY');
INSERT INTO having_out SELECT k, window_start, COUNT(*), SUM(v)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end, k
  HAVING SUM(v) > 10 EMIT CHANGES;
INSERT INTO windowed_out SELECT k, window_start, window_end, SUM(v)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end, k EMIT CHANGES;
