/* split.c: job 7 in C (../split.sql): two regions' orders merged, then split by amount into two topics; each input is
 * read once, there is no state. */
#include "example.h"

static const char columns[] = "order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), "
			      "currency STRING, ts BIGINT";

int main(int argc, char **argv)
{
	if (!example_arguments(argc, argv))
		return 2;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *eu =
		weir_source(tp, "orders_eu", columns, example_source(argv, "topic=order.placed.eu format=json"));
	struct weir_stream *us =
		weir_source(tp, "orders_us", columns, example_source(argv, "topic=order.placed.us format=json"));
	struct weir_stream *all = weir_select(weir_merge(eu, us), "order_id, merchant_id, amount, ts");

	struct weir_split *by_amount = weir_split(all);
	struct weir_stream *big = weir_branch(by_amount, "amount >= 100");
	struct weir_stream *small = weir_branch(by_amount, "amount < 100");
	small = weir_select(small, "order_id, merchant_id, UPPER(merchant_id) AS m, amount");
	(void)weir_sink(big, "big_orders",
			example_sink(argv, "topic=order.big format=json key.format=raw key.fields=order_id"));
	(void)weir_sink(small, "small_orders",
			example_sink(argv, "topic=order.small format=json key.format=raw key.fields=order_id"));
	return example_run(tp, "split", argc, argv);
}
