-- Keys that are one primitive, and windows in keys: as a test file writes them.
CREATE TABLE events (id BIGINT, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'events', 'format' = 'json', 'key.format' = 'kafka', 'key.fields' = 'id',
  'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE small (k SMALLINT, v DOUBLE) WITH ('connector' = 'kafka', 'topic' = 'small', 'value.format' = 'raw', 'key.format' = 'raw',
  'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE windowed (id BIGINT, window_start TIMESTAMP(3), n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'windowed', 'format' = 'json', 'key.format' = 'windowed', 'key.fields' = 'id;window_start');
CREATE TABLE again (k SMALLINT, v DOUBLE) WITH ('connector' = 'kafka', 'topic' = 'again', 'value.format' = 'raw', 'key.format' = 'raw',
  'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
INSERT INTO windowed SELECT id, window_start, SUM(v) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' SECOND))
GROUP BY window_start, window_end, id;
INSERT INTO again SELECT k, v * 2 FROM small;
