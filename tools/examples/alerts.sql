-- Alerts fanned out to a user's active devices: the table of devices is grouped into an array for each user, the alert
-- takes the array as it stands at its turn, and leaves once for each device.
--
--   weir gen devices --records 100k --keys 20000 --partitions 4 --out rec
--   weir gen alerts --records 100k --keys 20000 --partitions 4 --out rec
--   weir run alerts.sql --define in=rec --define out=out
CREATE TABLE devices (device_id STRING, user_id STRING, status STRING, ts BIGINT, PRIMARY KEY (device_id) NOT ENFORCED,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'device.changed', 'format' = 'json', 'key.format' = 'raw');

CREATE TABLE alerts (alert_id STRING, user_id STRING, message STRING, ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'alert.raised', 'format' = 'json');

CREATE TABLE notifications (alert_id STRING, device_id STRING, message STRING)
WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'notification.due', 'format' = 'json',
  'key.format' = 'raw', 'key.fields' = 'device_id');

CREATE VIEW active AS SELECT user_id, ARRAY_AGG(device_id) AS devices FROM devices WHERE status = 'ACTIVE' GROUP BY user_id;
INSERT INTO notifications SELECT a.alert_id, d.device_id, a.message FROM alerts a
  JOIN active FOR SYSTEM_TIME AS OF a.event_time AS t ON a.user_id = t.user_id CROSS JOIN UNNEST(t.devices) AS d (device_id);
