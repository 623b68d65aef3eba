-- Flink's options of JSON: missing members, parse errors, timestamp formats, NULLs that are left out.
CREATE TABLE strict_in (k STRING, v INT) WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'strict', 'format' = 'json',
  'json.fail-on-missing-field' = 'true', 'errors.deadletterqueue.topic.name' = 'dlq');
CREATE TABLE loose_in (k STRING, v INT, t TIMESTAMP(3)) WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'loose',
  'value.format' = 'json', 'value.json.ignore-parse-errors' = 'true', 'value.json.timestamp-format.standard' = 'ISO-8601', 'errors.deadletterqueue.topic.name' = 'dlq');
CREATE TABLE o (k STRING, v INT, t TIMESTAMP(3), z TIMESTAMP_LTZ(3), d DOUBLE) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'out', 'format' = 'json',
  'json.encode.ignore-null-fields' = 'true', 'json.timestamp-format.standard' = 'ISO-8601');
INSERT INTO o SELECT k, v, CAST(NULL AS TIMESTAMP(3)), CAST(NULL AS TIMESTAMP_LTZ(3)), CAST(NULL AS DOUBLE) FROM strict_in;
INSERT INTO o SELECT k, v, t, CAST(t AS TIMESTAMP_LTZ(3)), CAST(v AS DOUBLE) / 0 FROM loose_in;
