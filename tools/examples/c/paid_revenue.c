/* paid_revenue.c: job 2 in C (../paid_revenue.sql): orders joined with their payments within the hour, then counts,
 * sums and rates per merchant in windows of five minutes of the payment's time. */
#include "example.h"

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
	struct weir_stream *payments =
		weir_source(tp, "payments", "payment_id STRING, order_id STRING, amount DECIMAL(12,2), ts BIGINT",
			    example_source(argv, "topic=payment.settled format=json"));
	orders = weir_key_by(weir_event_time(orders, "ts", WEIR_SECONDS(5)), "order_id");
	payments = weir_key_by(weir_event_time(payments, "ts", WEIR_SECONDS(5)), "order_id");

	/* The payment comes with the order or up to an hour after it: the result's event time is the payment's. */
	struct weir_stream *paid = weir_join_within(orders, payments, "paid", WEIR_JOIN_INNER, 0, WEIR_HOURS(1));
	paid = weir_select(paid, "l.merchant_id AS merchant_id, l.amount AS amount");
	paid = weir_tumble(weir_key_by(paid, "merchant_id"), WEIR_MINUTES(5));
	paid = weir_aggregate(paid, "paid-5m",
			      "window_start, window_end, merchant_id, COUNT(*) AS orders, SUM(amount) AS revenue, "
			      "CAST(COUNT(*) AS DOUBLE) / 300 AS orders_per_second");
	(void)weir_sink(paid, "paid_revenue",
			example_sink(argv, "topic=paid.by-merchant format=json key.format=raw key.fields=merchant_id"));
	return example_run(tp, "paid_revenue", argc, argv);
}
