/* fraud_over.c: job 3 in C (../fraud_over.sql): users with more than five failed attempts within a minute, said at the
 * attempt that made it so. */
#include "example.h"

int main(int argc, char **argv)
{
	if (!example_arguments(argc, argv))
		return 2;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *logins = weir_source(tp, "logins",
						 "user_id STRING, ok BOOLEAN, ts BIGINT, "
						 "at AS TO_TIMESTAMP_LTZ(ts, 3)",
						 example_source(argv, "topic=login.attempted format=json"));
	logins = weir_filter(weir_event_time(logins, "at", WEIR_SECONDS(5)), "NOT ok");

	struct weir_stream *attempts = weir_over(weir_key_by(logins, "user_id"), "failed-lately",
						 "user_id, at AS event_time, COUNT(*) OVER "
						 "(RANGE INTERVAL '1' MINUTE PRECEDING) AS attempts");
	(void)weir_sink(weir_filter(attempts, "attempts > 5"), "suspects",
			example_sink(argv, "topic=fraud.suspected format=json key.format=raw key.fields=user_id"));
	return example_run(tp, "fraud_over", argc, argv);
}
