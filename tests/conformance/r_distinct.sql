-- SELECT DISTINCT and UNION: rows that are equal are one. A group of NULL is grouped and joined again like any other.
CREATE TABLE clicks (page STRING, who STRING, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'clicks', 'format' = 'json');
CREATE TABLE members (id STRING, team STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'members', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE seen (page STRING, who STRING, PRIMARY KEY (page, who) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'seen', 'format' = 'json', 'key.format' = 'json');
CREATE TABLE words (word STRING, PRIMARY KEY (word) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'words', 'format' = 'json', 'key.format' = 'json');
CREATE TABLE per_window (window_start TIMESTAMP(3), window_end TIMESTAMP(3), page STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'per-window', 'format' = 'json');
CREATE TABLE teams (team STRING, PRIMARY KEY (team) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'teams', 'format' = 'json', 'key.format' = 'json');
CREATE TABLE counts (n BIGINT, pages BIGINT, PRIMARY KEY (n) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'counts', 'format' = 'json', 'key.format' = 'json');
CREATE TABLE pages (page STRING, n BIGINT, people BIGINT, PRIMARY KEY (page) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'pages', 'format' = 'json', 'key.format' = 'json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO seen SELECT DISTINCT page, who FROM clicks;
  INSERT INTO words SELECT page FROM clicks UNION SELECT who FROM clicks WHERE who IS NOT NULL;
  INSERT INTO per_window SELECT DISTINCT window_start, window_end, page
    FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(et), INTERVAL '10' SECONDS));
  INSERT INTO teams SELECT DISTINCT team FROM members;
  INSERT INTO counts SELECT n, COUNT(*) FROM (SELECT page, COUNT(*) AS n FROM clicks GROUP BY page) GROUP BY n;
  INSERT INTO pages SELECT a.page, a.n, b.people FROM (SELECT page, COUNT(*) AS n FROM clicks GROUP BY page) a
    LEFT JOIN (SELECT page, COUNT(DISTINCT who) AS people FROM clicks GROUP BY page) b ON a.page = b.page;
END;
