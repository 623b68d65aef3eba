/* split_functions.c: job 7 once more, with functions of the program over batches where split.c has SQL text: the
 * results are the same, byte for byte. */
#include "example.h"

static const char columns[] = "order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), "
			      "currency STRING, ts BIGINT";

/* amount >= 100: DECIMAL(12,2) comes unscaled, in cents. Runs on several workers at once: it reads nothing but its
 * rows. */
static void is_big(struct weir_batch *b, void *ctx)
{
	const int64_t *amount = weir_batch_integers(b, 0);
	uint8_t *big = weir_batch_put_booleans(b, 0);
	const uint16_t *row = weir_batch_rows(b);
	(void)ctx;
	for (uint32_t i = 0; i < weir_batch_count(b); i++)
		big[row[i]] = !weir_batch_is_null(b, 0, row[i]) && amount[row[i]] >= 10000;
}

/* UPPER(merchant_id), of ASCII. */
static void upper(struct weir_batch *b, void *ctx)
{
	const uint16_t *row = weir_batch_rows(b);
	(void)ctx;
	for (uint32_t i = 0; i < weir_batch_count(b); i++) {
		struct weir_slice from = weir_batch_string(b, 0, row[i]);
		char text[64];
		if (from.data == NULL || from.bytes > sizeof text) {
			weir_batch_put_null(b, 0, row[i]);
			continue;
		}
		for (size_t k = 0; k < from.bytes; k++) {
			char c = ((const char *)from.data)[k];
			text[k] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
		}
		weir_batch_put_string(b, 0, row[i], text, from.bytes); /* copied */
	}
}

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

	/* One function decides, its result is a column, and two branches go by it. */
	all = weir_map_batch(all, "is-big", "amount", "big BOOLEAN", is_big, NULL, NULL);
	struct weir_split *by_amount = weir_split(all);
	struct weir_stream *big = weir_branch(by_amount, "big");
	struct weir_stream *small = weir_branch_rest(by_amount);
	big = weir_select(big, "order_id, merchant_id, amount, ts");
	small = weir_map_batch(small, "upper", "merchant_id", "m STRING", upper, NULL, NULL);
	small = weir_select(small, "order_id, merchant_id, m, amount");
	(void)weir_sink(big, "big_orders",
			example_sink(argv, "topic=order.big format=json key.format=raw key.fields=order_id"));
	(void)weir_sink(small, "small_orders",
			example_sink(argv, "topic=order.small format=json key.format=raw key.fields=order_id"));
	return example_run(tp, "split", argc, argv);
}
