-- Aggregates over a table whose values come and go, and a GROUP BY over a GROUP BY: what a row was is taken out.
CREATE TABLE members (id STRING, team STRING, v BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'members', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE teams (team STRING, lo BIGINT, hi STRING, f STRING, l STRING, d BIGINT, a ARRAY<BIGINT>, n BIGINT,
  PRIMARY KEY (team) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'teams', 'format' = 'json', 'key.format' = 'raw');
CREATE TABLE clicks (page STRING, ts BIGINT)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'clicks', 'format' = 'json');
CREATE TABLE popularity (n BIGINT, pages BIGINT, least STRING, PRIMARY KEY (n) NOT ENFORCED)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'popularity', 'format' = 'json', 'key.format' = 'json');
INSERT INTO teams SELECT team, MIN(v), MAX(name), FIRST_VALUE(name), LAST_VALUE(name), COUNT(DISTINCT v), ARRAY_AGG(v), COUNT(*)
  FROM members WHERE v IS NULL OR v < 100 GROUP BY team;
INSERT INTO popularity SELECT n, COUNT(*), MIN(page) FROM (SELECT page, COUNT(*) AS n FROM clicks GROUP BY page) GROUP BY n;
