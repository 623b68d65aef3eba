-- Integers and doubles keep every digit, out of range is a bad record, and no number that JSON does not know gets out.
SET 'errors.deadletterqueue.topic.name' = 'dlq';
CREATE TABLE events (id BIGINT, k STRING, v DOUBLE, f FLOAT, small SMALLINT, exact DECIMAL(20,4),
  ts TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR ts AS ts)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'events', 'format' = 'json');
CREATE TABLE counts (id BIGINT, n BIGINT) WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'counts',
  'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'id');
CREATE TABLE sums (k STRING, v DOUBLE, f DOUBLE, small BIGINT, exact DECIMAL(38,4))
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'sums', 'format' = 'json', 'key.format' = 'raw', 'key.fields' = 'k');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO counts SELECT id, COUNT(*) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    WHERE id IS NOT NULL GROUP BY window_start, window_end, id;
  INSERT INTO sums SELECT k, SUM(v), SUM(f), SUM(small), SUM(exact)
    FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE k IS NOT NULL GROUP BY window_start, window_end, k;
END;
