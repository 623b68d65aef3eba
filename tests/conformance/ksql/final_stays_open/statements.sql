-- EMIT FINAL: what closes leaves; windows open at the end stay open; `other` has no expected records and is not compared.
CREATE TABLE events (id STRING, v BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'events', 'properties.bootstrap.servers' = 'localhost:9092', 'properties.group.id' = 'test',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE counts (id STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'counts', 'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'id');
CREATE TABLE other (id STRING) WITH ('connector' = 'kafka', 'topic' = 'other', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json');
INSERT INTO counts SELECT id, COUNT(*) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' SECONDS))
  GROUP BY window_start, window_end, id EMIT FINAL;
INSERT INTO other SELECT id FROM events;
