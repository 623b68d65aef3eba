-- RFC 4180: quotes, doubled quotes, delimiters and line ends inside quotes; one Kafka value is one row.
CREATE TABLE rows_in (a STRING, b STRING, c STRING)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'csv', 'format' = 'csv', 'errors.deadletterqueue.topic.name' = 'dlq');
CREATE TABLE escaped_in (a STRING, b STRING, c STRING)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'escaped', 'format' = 'csv', 'csv.escape-character' = '\',
  'csv.field-delimiter' = ';', 'csv.null-literal' = 'NULL', 'errors.deadletterqueue.topic.name' = 'dlq');
CREATE TABLE rows_out (a STRING, b STRING, c STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'rows', 'format' = 'json');
CREATE TABLE csv_out (a STRING, b STRING, c STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'again', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO rows_out SELECT * FROM rows_in;
  INSERT INTO csv_out SELECT * FROM rows_in;
  INSERT INTO rows_out SELECT * FROM escaped_in;
END;
