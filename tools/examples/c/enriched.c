/* enriched.c: job 5 in C (../enriched.sql): sales with what the product was at the time of the sale; updates of
 * products that come late are put in their place, sales of unknown or deleted products are kept. */
#include "example.h"

int main(int argc, char **argv)
{
	if (!example_arguments(argc, argv))
		return 2;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *sales = weir_source(tp, "sales", "sale_id STRING, product_id STRING, qty INT, ts BIGINT",
						example_source(argv, "topic=sale.made format=json"));
	sales = weir_event_time(sales, "ts", WEIR_SECONDS(5));
	struct weir_table *products =
		weir_table(tp, "products", "product_id STRING, name STRING, category STRING, ts BIGINT", "product_id",
			   example_source(argv, "topic=product.updated format=json"));
	products = weir_table_event_time(products, "ts", WEIR_SECONDS(5));

	struct weir_stream *enriched =
		weir_join_table_as_of(sales, products, "enriched-products", "product_id", WEIR_JOIN_LEFT);
	enriched = weir_select(enriched, "l.sale_id AS sale_id, l.qty AS qty, r.name AS name, r.category AS category");
	(void)weir_sink(enriched, "enriched",
			example_sink(argv, "topic=sale.enriched format=json key.format=raw key.fields=sale_id"));
	return example_run(tp, "enriched", argc, argv);
}
