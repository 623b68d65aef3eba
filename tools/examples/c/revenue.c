/* revenue.c: job 1 in C (../revenue.sql): revenue per merchant in windows of five minutes, one row when the window
 * closes. With -DCHANGES the rows as they change (../revenue_changes.sql). */
#include "example.h"

#ifdef CHANGES
static const char application[] = "revenue_changes";
static const char key_options[] =
	"topic=revenue.by-merchant format=json key.format=json key.fields=merchant_id;window_start";
#else
static const char application[] = "revenue";
static const char key_options[] = "topic=revenue.by-merchant format=json key.format=raw key.fields=merchant_id";
#endif

int main(int argc, char **argv)
{
	if (!example_arguments(argc, argv))
		return 2;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *orders =
		weir_source(tp, "orders",
			    "order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), "
			    "currency STRING, ts BIGINT",
			    example_source(argv, "topic=order.placed format=json"));
	orders = weir_key_by(weir_event_time(orders, "ts", WEIR_SECONDS(5)), "merchant_id");

	struct weir_stream *windows = weir_tumble(orders, WEIR_MINUTES(5));
#ifdef CHANGES
	windows = weir_emit(windows, WEIR_EMIT_CHANGES);
#endif
	struct weir_stream *revenue =
		weir_aggregate(windows, "revenue-5m",
			       "window_start, window_end, merchant_id, SUM(amount) AS revenue, COUNT(*) AS orders");
	(void)weir_sink(revenue, "revenue", example_sink(argv, key_options));
	return example_run(tp, application, argc, argv);
}
