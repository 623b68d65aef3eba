/* fraud.c: job 3 in C (../fraud.sql): users with more than five failed attempts within a minute, in windows of a minute
 * that begin every ten seconds. */
#include "example.h"

int main(int argc, char **argv)
{
	if (!example_arguments(argc, argv))
		return 2;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *logins = weir_source(tp, "logins", "user_id STRING, ok BOOLEAN, ts BIGINT",
						 example_source(argv, "topic=login.attempted format=json"));
	logins = weir_filter(weir_event_time(logins, "ts", WEIR_SECONDS(5)), "NOT ok");
	logins = weir_hop(weir_key_by(logins, "user_id"), WEIR_MINUTES(1), WEIR_SECONDS(10));
	struct weir_stream *attempts =
		weir_aggregate(logins, "failed-1m", "window_start, window_end, user_id, COUNT(*) AS attempts");
	struct weir_stream *suspects = weir_filter(attempts, "attempts > 5");
	(void)weir_sink(suspects, "suspects",
			example_sink(argv, "topic=fraud.suspected format=json key.format=raw key.fields=user_id"));
	return example_run(tp, "fraud", argc, argv);
}
