-- Job 3: failed attempts in every minute that begins at a multiple of ten seconds.
WITH failed AS (SELECT json_extract(j, '$.user_id') u, json_extract(j, '$.ts') t FROM "login.attempted" WHERE NOT json_extract(j, '$.ok')),
	back(b) AS (VALUES (0), (1), (2), (3), (4), (5))
SELECT 'fraud.suspected', u, s + 59999, json_object('window_start', strftime('%Y-%m-%d %H:%M:%S', s / 1000, 'unixepoch'),
	'window_end', strftime('%Y-%m-%d %H:%M:%S', s / 1000 + 60, 'unixepoch'), 'user_id', u, 'attempts', COUNT(*))
FROM (SELECT u, t / 10000 * 10000 - b * 10000 s FROM failed, back) GROUP BY u, s HAVING COUNT(*) > 5 ORDER BY u, s;
