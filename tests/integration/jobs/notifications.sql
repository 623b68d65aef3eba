-- Job 6: for each alert the devices of its user that are active at its time: of each device the last change up to then counts,
-- one of the alert's own time included.
CREATE TEMP TABLE device AS SELECT id, u, status, t, LEAD(t) OVER (PARTITION BY id ORDER BY t, o) until
	FROM (SELECT json_extract(j, '$.device_id') id, json_extract(j, '$.user_id') u, json_extract(j, '$.status') status,
		json_extract(j, '$.ts') t, o FROM "device.changed");
CREATE INDEX device_user ON device (u, t);
SELECT 'notification.sent', a.id, a.t, json_object('alert_id', a.id, 'device_id', d.id, 'message', a.message)
FROM (SELECT json_extract(j, '$.alert_id') id, json_extract(j, '$.user_id') u, json_extract(j, '$.message') message,
		json_extract(j, '$.ts') t FROM "alert.raised") a
	JOIN device d ON d.u = a.u AND d.t <= a.t AND (d.until IS NULL OR d.until > a.t) AND d.status = 'ACTIVE' ORDER BY a.id, d.id;
