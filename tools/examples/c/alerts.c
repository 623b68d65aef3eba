/* alerts.c: job 6 in C (../alerts.sql): alerts fanned out to the devices of their user that are active at
 * the alert's time. */
#include "example.h"

int main(int argc, char **argv)
{
	if (!example_arguments(argc, argv))
		return 2;
	struct weir_topology *tp = weir_topology_create();
	struct weir_table *devices =
		weir_table(tp, "devices", "device_id STRING, user_id STRING, status STRING, ts BIGINT", "device_id",
			   example_source(argv, "topic=device.changed format=json"));
	struct weir_stream *alerts =
		weir_source(tp, "alerts", "alert_id STRING, user_id STRING, message STRING, ts BIGINT",
			    example_source(argv, "topic=alert.raised format=json"));
	devices = weir_table_event_time(devices, "ts", WEIR_SECONDS(5));
	alerts = weir_event_time(alerts, "ts", WEIR_SECONDS(5));

	/* One array for each user, of the table's rows as they are: what goes, or is no longer active, leaves it. */
	struct weir_stream *active = weir_filter(weir_to_stream(devices), "status = 'ACTIVE'");
	active = weir_aggregate(weir_key_by(active, "user_id"), "active-devices",
				"user_id, ARRAY_AGG(device_id) AS devices");

	struct weir_stream *met =
		weir_join_table(alerts, weir_to_table(active), "alert-devices", "user_id", WEIR_JOIN_INNER);
	met = weir_select(met, "l.alert_id AS alert_id, l.message AS message, r.devices AS devices");
	struct weir_stream *notifications = weir_unnest(met, "fan-out", "devices", "device_id", 0);
	notifications = weir_select(notifications, "alert_id, device_id, message");
	(void)weir_sink(notifications, "notifications",
			example_sink(argv, "topic=notification.due format=json key.format=raw key.fields=device_id"));
	return example_run(tp, "alerts", argc, argv);
}
