-- KAFKA primitives and raw payloads: big-endian numbers, text that is checked, wrong lengths refused; BYTES travel as base64.
SET 'errors.deadletterqueue.topic.name' = 'dlq';
CREATE TABLE numbers (n BIGINT, k INT) WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'numbers',
  'value.format' = 'raw', 'key.format' = 'kafka', 'key.fields' = 'k', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE texts (t STRING) WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'texts', 'format' = 'raw');
CREATE TABLE blobs (b BYTES, d DATE, tm TIME, tz TIMESTAMP_LTZ(3), x DOUBLE, ok BOOLEAN)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'blobs', 'format' = 'json');
CREATE TABLE numbers_out (k INT, n BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'numbers.out',
  'format' = 'json', 'key.format' = 'kafka', 'key.fields' = 'k');
CREATE TABLE texts_out (t STRING, n BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'texts.out', 'format' = 'json');
CREATE TABLE blobs_out (b BYTES, n INT, d DATE, tm TIME, tz TIMESTAMP_LTZ(3), x DOUBLE, ok BOOLEAN)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'blobs.out', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
INSERT INTO numbers_out SELECT k, n FROM numbers;
INSERT INTO texts_out SELECT t, CHAR_LENGTH(t) FROM texts;
INSERT INTO blobs_out SELECT b, OCTET_LENGTH(b), d, tm, tz, x, ok FROM blobs;
