-- Every update leaves, in file order, whatever its time; windows are on the keys; names match in upper case.
CREATE TABLE events (id STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at - INTERVAL '1' HOUR)
WITH ('connector' = 'kafka', 'topic' = 'events', 'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'test',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE counts (id STRING, n BIGINT, v BIGINT, ws TIMESTAMP(3), we TIMESTAMP(3))
WITH ('connector' = 'kafka', 'topic' = 'counts', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json',
  'key.format' = 'windowed', 'key.fields' = 'id', 'value.fields-include' = 'EXCEPT_KEY');
INSERT INTO counts SELECT id, COUNT(*), SUM(v), window_start, window_end
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' SECONDS)) GROUP BY window_start, window_end, id EMIT CHANGES;
