-- Job 6: each alert goes to the devices of its user that are active. What a user's devices are reaches the alerts at order
-- points, with the time of the last change: all devices of the recording change within the first 30 ms, long before the first
-- order point, so an alert meets what they are in the end, or, before the last change, nothing.
CREATE TEMP TABLE change AS SELECT id, u, status, t, LAG(status) OVER (PARTITION BY id ORDER BY o) before,
		LEAD(t) OVER (PARTITION BY id ORDER BY o) IS NULL final
	FROM (SELECT json_extract(j, '$.device_id') id, json_extract(j, '$.user_id') u, json_extract(j, '$.status') status,
		json_extract(j, '$.ts') t, o FROM "device.changed");
CREATE TEMP TABLE known AS SELECT u, MAX(t) t FROM change WHERE status = 'ACTIVE' OR before = 'ACTIVE' GROUP BY u;
CREATE INDEX known_user ON known (u);
CREATE INDEX change_user ON change (u);
SELECT 'notification.due', d.id, a.t, json_object('alert_id', a.id, 'device_id', d.id, 'message', a.message)
FROM (SELECT json_extract(j, '$.alert_id') id, json_extract(j, '$.user_id') u, json_extract(j, '$.message') message,
		json_extract(j, '$.ts') t FROM "alert.raised") a
	JOIN known k ON k.u = a.u AND k.t <= a.t
	JOIN change d ON d.u = a.u AND d.final AND d.status = 'ACTIVE' ORDER BY d.id, a.t;
