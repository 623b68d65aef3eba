-- Job 3, OVER: at each failed attempt, how many there were within the minute up to it.
WITH failed AS (SELECT json_extract(j, '$.user_id') u, json_extract(j, '$.ts') t FROM "login.attempted" WHERE NOT json_extract(j, '$.ok')),
	counted AS (SELECT u, t, COUNT(*) OVER (PARTITION BY u ORDER BY t RANGE BETWEEN 60000 PRECEDING AND CURRENT ROW) n FROM failed)
SELECT 'fraud.suspected', u, t, json_object('user_id', u, 'event_time', strftime('%Y-%m-%d %H:%M:%S', t / 1000, 'unixepoch') ||
	CASE t % 1000 WHEN 0 THEN '' ELSE '.' || RTRIM(printf('%03d', t % 1000), '0') END || 'Z', 'attempts', n)
FROM counted WHERE n > 5 ORDER BY u, t;
