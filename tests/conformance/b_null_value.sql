-- A null value has no time column: the record's timestamp counts.
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at - INTERVAL '0.003' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k',
  'value.fields-include' = 'EXCEPT_KEY', 'errors.deadletterqueue.topic.name' = 'dlq');
CREATE TABLE result (k STRING, window_start TIMESTAMP(3), n BIGINT, nv BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json');
INSERT INTO result SELECT k, window_start, COUNT(*), COUNT(v)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '0.010' SECOND)) GROUP BY window_start, window_end, k;
