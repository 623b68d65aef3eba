-- A session's end is its last record's time; a merge deletes what it swallows first.
CREATE TABLE events (id STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at - INTERVAL '1' HOUR)
WITH ('connector' = 'kafka', 'topic' = 'events', 'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'test',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE counts (id STRING, n BIGINT, window_start TIMESTAMP(3), window_end TIMESTAMP(3))
WITH ('connector' = 'kafka', 'topic' = 'counts', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json',
  'key.format' = 'windowed', 'key.fields' = 'id', 'value.fields-include' = 'EXCEPT_KEY');
INSERT INTO counts SELECT id, COUNT(*), window_start, window_end
  FROM TABLE(SESSION(TABLE events PARTITION BY id, DESCRIPTOR(at), INTERVAL '5' SECONDS)) GROUP BY window_start, window_end, id EMIT CHANGES;
