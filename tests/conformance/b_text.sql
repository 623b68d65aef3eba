-- Times as text, both ways, in UTC.
CREATE TABLE texts (t STRING, p STRING) WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'texts', 'format' = 'json');
CREATE TABLE result (t TIMESTAMP(3), again STRING, iso STRING, d DATE, u BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json');
INSERT INTO result SELECT TRY_CAST(t AS TIMESTAMP(3)),
  DATE_FORMAT(TO_TIMESTAMP(t, p), p), DATE_FORMAT(TRY_CAST(t AS TIMESTAMP(3)), 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z'''),
  TO_DATE(SUBSTRING(t, 1, 10)), UNIX_TIMESTAMP(DATE_FORMAT(TRY_CAST(t AS TIMESTAMP(3)), 'yyyy-MM-dd HH:mm:ss')) FROM texts;
