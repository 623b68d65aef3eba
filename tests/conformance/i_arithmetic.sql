-- Sums are exact, widened, or NULL with a count; never wrapped around. Section 7's vector 14.
SET 'errors.deadletterqueue.topic.name' = 'dlq';
CREATE TABLE events (k STRING, small DECIMAL(4,2), wide DECIMAL(38,0), price DECIMAL(12,2), d DOUBLE, i INT, b BIGINT, ts BIGINT, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE result (k STRING, small DECIMAL(38,2), wide DECIMAL(38,0), price DECIMAL(38,2), avg_price DECIMAL(38,6), d DOUBLE, avg_d DOUBLE, i INT, avg_i INT, b BIGINT, n BIGINT)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'result', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE kinds (k STRING, d BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'kinds', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
CREATE TABLE by_d (d DOUBLE, n BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'by_d', 'format' = 'json');
CREATE TABLE rows_out (k STRING, b BIGINT, i INT, d DOUBLE) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'rows', 'format' = 'json');
INSERT INTO result SELECT k, SUM(small), SUM(wide), SUM(price), AVG(price), SUM(d), AVG(d), SUM(i), AVG(i), SUM(b), COUNT(*)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' SECONDS)) WHERE k <> 'row' GROUP BY window_start, window_end, k;
INSERT INTO kinds SELECT k, COUNT(DISTINCT d) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' SECONDS)) WHERE k = 'zero' GROUP BY window_start, window_end, k;
INSERT INTO by_d SELECT d, COUNT(*) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '10' SECONDS)) WHERE k = 'zero' GROUP BY window_start, window_end, d;
INSERT INTO rows_out SELECT k, b * b, i + i, 1 / d FROM events WHERE k = 'row';
