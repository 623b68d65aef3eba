-- NULL for a column that is declared NOT NULL: the row is rejected, whatever made it; columns left out of INSERT are NULL.
CREATE TABLE events (k STRING, v BIGINT, ts BIGINT NOT NULL, at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR at AS at)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json', 'errors.deadletterqueue.topic.name' = 'dlq');
CREATE TABLE rows_out (k STRING NOT NULL, v BIGINT, extra STRING) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'rows', 'format' = 'json');
CREATE TABLE sums (k STRING, total BIGINT NOT NULL, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'sums', 'format' = 'json');
INSERT INTO rows_out (v, k) SELECT v, k FROM events;
INSERT INTO sums SELECT k, NULLIF(SUM(v), 3) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(at), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k;
