/* price_shifts.c: job 4 in C (../price_shifts.sql): each price of a product against the one before, by event time. */
#include "example.h"

int main(int argc, char **argv)
{
	if (!example_arguments(argc, argv))
		return 2;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *prices = weir_source(tp, "prices",
						 "product_id STRING, price DECIMAL(12,2), ts BIGINT, "
						 "at AS TO_TIMESTAMP_LTZ(ts, 3)",
						 example_source(argv, "topic=price.changed format=json"));
	prices = weir_key_by(weir_event_time(prices, "at", WEIR_SECONDS(5)), "product_id");

	struct weir_stream *shifts =
		weir_over(prices, "last-price", "product_id, at AS event_time, LAG(price) OVER () AS old_price, price");
	shifts = weir_filter(shifts, "ABS(price - old_price) > 0.05 * old_price");
	(void)weir_sink(shifts, "shifts",
			example_sink(argv, "topic=price.shifted format=json key.format=raw key.fields=product_id"));
	return example_run(tp, "price_shifts", argc, argv);
}
