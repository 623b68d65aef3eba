-- What is no JSON is one rejected record each, with where it stood and what was wrong; the good ones around it count.
CREATE TABLE events (k STRING, v BIGINT, ts TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'events', 'properties.group.id' = 'bad', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json', 'errors.deadletterqueue.topic.name' = 'dlq');
CREATE TABLE counts (n BIGINT, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'counts', 'format' = 'json');
INSERT INTO counts SELECT COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
  GROUP BY window_start, window_end;
