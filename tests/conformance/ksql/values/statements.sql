-- BYTES in base64, DOUBLE within 1e-6, DECIMAL digit by digit, headers, KAFKA keys of every type, nulls that may be absent.
CREATE TABLE typed (b BYTES, d DOUBLE, e DECIMAL(10,2), i INT, h MAP<STRING, BYTES> METADATA FROM 'headers')
WITH ('connector' = 'kafka', 'topic' = 'typed', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json');
CREATE TABLE bytes_out (b BYTES, n INT) WITH ('connector' = 'kafka', 'topic' = 'bytes', 'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'key.format' = 'kafka', 'key.fields' = 'b', 'value.fields-include' = 'ALL');
CREATE TABLE doubles_out (d DOUBLE, third DOUBLE) WITH ('connector' = 'kafka', 'topic' = 'doubles', 'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json', 'key.format' = 'kafka', 'key.fields' = 'd', 'value.fields-include' = 'ALL');
CREATE TABLE rest_out (i INT, e DECIMAL(10,2), nothing STRING, h MAP<STRING, BYTES> METADATA FROM 'headers')
WITH ('connector' = 'kafka', 'topic' = 'rest', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json', 'key.format' = 'kafka', 'key.fields' = 'i');
INSERT INTO bytes_out SELECT b, OCTET_LENGTH(b) FROM typed;
INSERT INTO doubles_out SELECT d, d / 3 FROM typed;
INSERT INTO rest_out SELECT i, e, CAST(NULL AS STRING), h FROM typed;
