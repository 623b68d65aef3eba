/* joins.c: the whole engine on joins of recorded topics, one worker: each against the same records without the join.
 *
 *   joins IN [OUT] [--runs N] [--only NAME,NAME...]
 * IN: a folder with the recorded topics order.placed, sale.made and product.updated of `weir gen`; payment.settled,
 * where it is missing, is made there: every order is paid two seconds after it was placed. OUT: where results and
 * changelogs go (below IN), removed before each run.
 *
 *   decodes         both topics read and decoded, nothing else
 *   within          orders joined with payments that come within an hour, topics keyed by order_id as both are; results
 *                   are counted, nothing is kept
 *   within_rekeyed  the same where the job does not say what the topics are keyed by: rows go to their slots first
 *   within_kept     the same with results in a topic and join buffers in the changelog
 *   sales           sales into a topic, keyed by product_id as they are
 *   enriched        the same with the product of each sale beside it, from a table of 100,000
 *   enriched_rekeyed  the same where the job does not say what sales are keyed by
 *   sales_hole, enriched_hole    the same, results counted only
 *
 * Runs alternate, N rounds; the best of each counts. `result` lines are ns a record, by wall, by the busiest thread and
 * by all threads; then what a buffered record costs in memory beyond its columns. @thread init */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/weir.h>
#include <weir/weir_engine.h>
#include <weir/weir_sql.h>

#include "bench/pipelines/cost.h"
#include "hotpath/core/arena.h"
#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/join_state.h"

static const char sources[] =
	"CREATE TABLE orders (order_id STRING, merchant_id STRING, customer_id STRING, amount DECIMAL(12,2), currency "
	"STRING,\n"
	"  ts BIGINT, event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' "
	"SECOND)\n"
	"WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json'${by_order});\n"
	"CREATE TABLE payments (payment_id STRING, order_id STRING, amount DECIMAL(12,2), ts BIGINT,\n"
	"  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)\n"
	"WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'payment.settled', 'format' = "
	"'json'${by_order});\n"
	"CREATE TABLE sales (sale_id STRING, product_id STRING, qty INT, ts BIGINT,\n"
	"  event_time AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)\n"
	"WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'sale.made', 'format' = 'json'${by_product});\n"
	"CREATE TABLE products (product_id STRING, name STRING, category STRING, ts BIGINT,\n"
	"  PRIMARY KEY (product_id) NOT ENFORCED)\n"
	"WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'product.updated', 'format' = 'json');\n";

#define HOLE  "WITH ('connector' = 'blackhole');\n"
#define TOPIC "WITH ('connector' = 'recorded', 'path' = '${out}', 'topic' = 'results', 'format' = 'json');\n"
#define PAID                                                                                                           \
	"INSERT INTO r SELECT o.merchant_id, o.amount, p.event_time FROM orders o JOIN payments p ON o.order_id = "    \
	"p.order_id AND p.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '1' HOUR;\n"
#define SOLD "INSERT INTO r SELECT sale_id, qty, product_id FROM sales;\n"
#define ENRICHED                                                                                                       \
	"INSERT INTO r SELECT s.sale_id, s.qty, p.name, p.category FROM sales s LEFT JOIN products p ON s.product_id " \
	"= p.product_id;\n"
#define PAID_COLUMNS     "CREATE TABLE r (merchant_id STRING, amount DECIMAL(12,2), paid TIMESTAMP_LTZ(3)) "
#define SOLD_COLUMNS     "CREATE TABLE r (sale_id STRING, qty INT, product_id STRING) "
#define ENRICHED_COLUMNS "CREATE TABLE r (sale_id STRING, qty INT, name STRING, category STRING) "

#define KEYED ", 'key.format' = 'raw', 'key.fields' = "

static const struct form {
	const char *name, *text;
	bool rekeyed; /* sources do not say what they are keyed by */
} forms[] = {
	{"decodes",
	 "CREATE TABLE r (order_id STRING, merchant_id STRING, amount DECIMAL(12,2), placed TIMESTAMP_LTZ(3)) " HOLE
	 "CREATE TABLE s (order_id STRING, paid TIMESTAMP_LTZ(3)) " HOLE
	 "INSERT INTO r SELECT order_id, merchant_id, amount, event_time FROM orders;\n"
	 "INSERT INTO s SELECT order_id, event_time FROM payments;\n",
	 false},
	{"within", PAID_COLUMNS HOLE PAID, false},
	{"within_rekeyed", PAID_COLUMNS HOLE PAID, true},
	{"within_kept", PAID_COLUMNS TOPIC PAID, false},
	{"sales", SOLD_COLUMNS TOPIC SOLD, false},
	{"enriched", ENRICHED_COLUMNS TOPIC ENRICHED, false},
	{"enriched_rekeyed", ENRICHED_COLUMNS TOPIC ENRICHED, true},
	{"sales_hole", SOLD_COLUMNS HOLE SOLD, false},
	{"enriched_hole", ENRICHED_COLUMNS HOLE ENRICHED, false},
};

/* Its timestamps are those of the payments, so that both topics are read side by side. */
static const char payments_text[] =
	"CREATE TABLE placed (order_id STRING, amount DECIMAL(12,2), ts BIGINT)\n"
	"WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'order.placed', 'format' = 'json');\n"
	"CREATE TABLE settled (payment_id STRING, order_id STRING, amount DECIMAL(12,2), ts BIGINT,\n"
	"  at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp')\n"
	"WITH ('connector' = 'recorded', 'path' = '${in}', 'topic' = 'payment.settled', 'format' = 'json',\n"
	"  'key.format' = 'raw', 'key.fields' = 'order_id');\n"
	"INSERT INTO settled SELECT CONCAT('p', SUBSTRING(order_id, 2)), order_id, amount, ts + 2000,\n"
	"  TO_TIMESTAMP_LTZ(ts + 2000, 3) FROM placed;\n";

static struct weir_topology *compile(const char *head, const char *tail, bool rekeyed, const char *in, const char *out)
{
	const struct weir_sql_variable variables[] = {{"in", in},
						      {"out", out},
						      {"by_order", rekeyed ? "" : KEYED "'order_id'"},
						      {"by_product", rekeyed ? "" : KEYED "'product_id'"}};
	struct weir_topology *tp = NULL;
	struct weir_diag *dg = NULL;
	struct weir_buf sql = {0};
	char *text = NULL;
	size_t bytes = 0;
	weir_buf_puts(&sql, head);
	weir_buf_puts(&sql, tail);
	enum weir_err err = weir_sql_expand("joins", (const char *)sql.data, sql.bytes, variables,
					    WEIR_COUNT_OF(variables), &text, &bytes, &dg);
	if (err == WEIR_OK)
		err = weir_sql_compile(&tp, NULL, "joins", text, bytes, &dg);
	if (err != WEIR_OK)
		fprintf(stderr, "joins: %s\n", weir_diag_text(dg));
	weir_free(text);
	weir_buf_fini(&sql);
	return err == WEIR_OK ? tp : NULL;
}

static bool run(struct weir_cost *best, const char *head, const char *tail, bool rekeyed, const char *in,
		const char *out)
{
	struct weir_conf *cf = weir_conf_create();
	struct weir_topology *tp = compile(head, tail, rekeyed, in, out);
	return tp && weir_cost_set(cf, "workers", "1") && weir_cost_run(best, tp, cf);
}

static bool make_payments(const char *in)
{
	char path[512];
	struct stat st;
	struct weir_cost cost = {0};
	snprintf(path, sizeof path, "%s/payment.settled-0", in);
	return stat(path, &st) == 0 || run(&cost, "", payments_text, true, in, in);
}

/* Rows of two strings of 12 bytes and a decimal in 64 slots: what they take beyond key and row. */
static void report_memory(void)
{
	enum { SLOTS = 64, ROWS = 1 << 20, ROW_BYTES = 32, KEY_BYTES = 14 };
	static const struct weir_type text = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	static const struct weir_state_side sides[2];
	struct weir_state_def def = {.name = "j",
				     .kind = WEIR_STATE_JOIN,
				     .within = true,
				     .after_ms = 3600000,
				     .grace_ms = 5000,
				     .key_count = 1,
				     .key_types = &text,
				     .side_count = 2,
				     .sides = sides};
	struct weir_slot *slots[SLOTS];
	uint64_t bytes = 0;
	if (weir_state_def_init(&def, NULL) != WEIR_OK)
		return;
	struct weir_arena *ar = weir_arena_create();
	for (uint32_t i = 0; i < SLOTS; i++)
		slots[i] = weir_slot_create(&def, i, ar);
	for (uint32_t i = 0; i < ROWS; i++) {
		uint8_t data[KEY_BYTES + ROW_BYTES + 8] = {1};
		snprintf((char *)data + 1, KEY_BYTES, "o-%010u", i);
		uint64_t hash = weir_hash(data, KEY_BYTES);
		struct weir_join_row r = {hash, i, data, KEY_BYTES, ROW_BYTES, data + KEY_BYTES};
		weir_join_buffer_put(slots[weir_hash_slot(hash, SLOTS)], i % 2, &r, false);
	}
	for (uint32_t i = 0; i < SLOTS; i++) {
		bytes += weir_slot_bytes(slots[i]);
		weir_slot_destroy(slots[i]);
	}
	weir_arena_destroy(ar);
	printf("result buffered_bytes %.1f\n", (double)bytes / ROWS - KEY_BYTES - ROW_BYTES);
}

/* Whether name is one of those in only, which commas part; NULL has them all. */
static bool is_wanted(const char *only, const char *name)
{
	size_t n = strlen(name);
	while (only && *only) {
		size_t part = strcspn(only, ",");
		if (part == n && memcmp(only, name, n) == 0)
			return true;
		only += part + (only[part] != 0);
	}
	return only == NULL;
}

int main(int argc, char **argv)
{
	static struct weir_cost costs[WEIR_COUNT_OF(forms)];
	unsigned rounds = 3;
	const char *only = NULL;
	char out[512] = "";
	int at = 2;
	if (argc > 2 && argv[2][0] != '-')
		snprintf(out, sizeof out, "%s", argv[at++]);
	for (; at + 1 < argc; at += 2) {
		if (strcmp(argv[at], "--runs") == 0)
			rounds = (unsigned)strtoul(argv[at + 1], NULL, 10);
		else if (strcmp(argv[at], "--only") == 0)
			only = argv[at + 1];
	}
	if (argc < 2) {
		fprintf(stderr, "usage: joins IN [OUT] [--runs N] [--only NAME,NAME...]\n");
		return 2;
	}
	if (!out[0])
		snprintf(out, sizeof out, "%s/out", argv[1]);
	if (!make_payments(argv[1]))
		return 1;
	for (unsigned r = 0; r < rounds; r++) {
		for (size_t f = 0; f < WEIR_COUNT_OF(forms); f++) {
			if (!is_wanted(only, forms[f].name))
				continue;
			weir_cost_clear(out);
			if (!run(&costs[f], sources, forms[f].text, forms[f].rekeyed, argv[1], out))
				return 1;
		}
	}
	for (size_t f = 0; f < WEIR_COUNT_OF(forms); f++)
		weir_cost_report(forms[f].name, &costs[f]);
	weir_cost_clear(out);
	if (is_wanted(only, "memory"))
		report_memory();
	return 0;
}
