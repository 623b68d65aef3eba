/* bench_json.c: the JSON decoder on orders, against jansson and simdjson in one run, then the ratios.
 *
 *   bench_json                                   Google Benchmark's flags work
 *   bench_json --instructions N [VARIANT]        only decodes N orders, for counting:
 *     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=json_decode bench_json --instructions N
 *     (valgrind has no AVX-512, and the decoder goes by CPUID: this counts the AVX2 path)
 *
 * Three of an order's six members are wanted: merchant_id STRING, amount DECIMAL(12, 2), ts BIGINT. The peers read the
 * same three; simdjson and jansson give the amount as a double. @thread init */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/shim/shim.h"
#include "bench/shim/simdjson_peer.h"
#include "hotpath/format/json_private.h"

enum { RECORDS = 16 * WEIR_BATCH_ROWS, GAP_BYTES = 24 /* of framing between two values */ };

struct orders {
	struct weir_record *records;
	uint8_t *bytes;
	size_t total_bytes;
};

/* What a column reads: the three members as fields. */
static const struct weir_path_step steps[] = {{"merchant_id", 11, 0}, {"amount", 6, 0}, {"ts", 2, 0}};
static const struct weir_field fields[] = {
	{.name = "merchant_id",
	 .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX},
	 .path = &steps[0],
	 .path_steps = 1},
	{.name = "amount",
	 .type = {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2},
	 .path = &steps[1],
	 .path_steps = 1},
	{.name = "ts", .type = {.kind = WEIR_KIND_BIGINT}, .path = &steps[2], .path_steps = 1},
};

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* kind 0: every order has the same members; 1: a note is there in half of them, in no order; 2: spread over lines. */
static void orders_make(struct orders *o, int kind)
{
	uint64_t seed = 42;
	size_t at = 0;
	o->records = weir_xcalloc(RECORDS, sizeof *o->records);
	o->bytes = weir_xcalloc(RECORDS, 512);
	o->total_bytes = 0;
	for (uint32_t i = 0; i < RECORDS; i++) {
		static const char *const forms[] = {
			"{\"order_id\":\"o-%010u\",\"merchant_id\":\"m-%06u\",\"customer_id\":\"c-%07u\",\"amount\":%u."
			"%02u,"
			"%s\"currency\":\"EUR\",\"ts\":%" PRIu64 "}",
			"{\n  \"order_id\": \"o-%010u\",\n  \"merchant_id\": \"m-%06u\",\n  \"customer_id\": "
			"\"c-%07u\",\n"
			"  \"amount\": %u.%02u,\n%s  \"currency\": \"EUR\",\n  \"ts\": %" PRIu64 "\n}"};
		uint64_t r = random_next(&seed);
		const char *note = kind == 1 && (r >> 60 & 1) ? "\"note\":\"gift\"," : "";
		unsigned cents = (unsigned)(random_next(&seed) % 50000) + 100;
		int n = sprintf((char *)o->bytes + at, forms[kind == 2], i, (unsigned)(r % 100000),
				(unsigned)(r >> 20) % 5000000, cents / 100, cents % 100, note,
				UINT64_C(1767225600000) + i / 10);
		o->records[i] = (struct weir_record){.value = o->bytes + at, .value_bytes = (uint32_t)n};
		o->total_bytes += (size_t)n;
		at += (size_t)n + GAP_BYTES;
	}
}

struct run {
	struct orders *orders;
	const char *variant;
	bool speculate;
};

struct columns {
	struct weir_col cols[WEIR_COUNT_OF(fields)];
	struct weir_scratch scratch;
	struct weir_row_errors errors;
	struct weir_sel sel;
};

static void columns_init(struct columns *c)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(fields); i++)
		weir_col_init(&c->cols[i], weir_type_phys(&fields[i].type));
	weir_scratch_init(&c->scratch);
}

static void columns_fini(struct columns *c)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(fields); i++)
		weir_col_fini(&c->cols[i]);
	weir_scratch_fini(&c->scratch);
}

/* One batch; the sum keeps the values from being thought away and shows that all variants read the same. */
static int64_t decode_batch(struct weir_decoder *d, struct columns *c, const struct weir_record *records)
{
	c->errors.count = 0;
	weir_scratch_reset(&c->scratch);
	weir_sel_all(&c->sel, WEIR_BATCH_ROWS);
	d->decode(d, records, &c->sel, c->cols, &c->scratch, &c->errors);
	weir_bench_keep(c);
	return c->errors.count == 0 ? c->cols[1].i64[WEIR_BATCH_ROWS - 1] : -1;
}

static struct weir_decoder *decoder_make(const char *variant, bool speculate)
{
	struct weir_decoder *d = NULL;
	struct weir_format_options options = {.kind = WEIR_FORMAT_JSON};
	if (weir_json_decoder_create(&d, &options, fields, WEIR_COUNT_OF(fields), false, NULL) != WEIR_OK)
		return NULL;
	if (!weir_json_force(d, variant, speculate)) {
		d->destroy(d);
		return NULL;
	}
	return d;
}

static void run_weir(struct weir_bench_state *st, void *arg)
{
	struct run *run = arg;
	static struct columns c;
	struct weir_decoder *d = decoder_make(run->variant, run->speculate);
	if (d == NULL) {
		weir_bench_fail(st, "not on this machine");
		return;
	}
	columns_init(&c);
	while (weir_bench_keep_running(st))
		for (uint32_t i = 0; i < RECORDS; i += WEIR_BATCH_ROWS)
			if (decode_batch(d, &c, run->orders->records + i) < 0)
				weir_bench_fail(st, "an order was refused");
	weir_bench_set_items(st, RECORDS);
	weir_bench_set_bytes(st, (int64_t)run->orders->total_bytes);
	columns_fini(&c);
	d->destroy(d);
}

static void run_simdjson(struct weir_bench_state *st, struct orders *o,
			 bool (*parse)(struct weir_simdjson *, const void *, size_t, struct weir_simdjson_order *))
{
	struct weir_simdjson *sj = weir_simdjson_create();
	while (weir_bench_keep_running(st))
		for (uint32_t i = 0; i < RECORDS; i++) {
			struct weir_simdjson_order order;
			if (!parse(sj, o->records[i].value, o->records[i].value_bytes, &order))
				weir_bench_fail(st, "an order was refused");
			weir_bench_keep(&order);
		}
	weir_bench_set_items(st, RECORDS);
	weir_bench_set_bytes(st, (int64_t)o->total_bytes);
	weir_simdjson_destroy(sj);
}

static void run_on_demand(struct weir_bench_state *st, void *arg)
{
	run_simdjson(st, arg, weir_simdjson_on_demand);
}

static void run_dom(struct weir_bench_state *st, void *arg)
{
	run_simdjson(st, arg, weir_simdjson_dom);
}

static void run_jansson(struct weir_bench_state *st, void *arg)
{
	struct orders *o = arg;
	while (weir_bench_keep_running(st))
		for (uint32_t i = 0; i < RECORDS; i++) {
			json_t *doc = json_loadb((const char *)o->records[i].value, o->records[i].value_bytes, 0, NULL);
			const char *merchant = json_string_value(json_object_get(doc, "merchant_id"));
			double amount = json_real_value(json_object_get(doc, "amount"));
			int64_t ts = json_integer_value(json_object_get(doc, "ts"));
			weir_bench_keep(merchant);
			weir_bench_keep(&amount);
			weir_bench_keep(&ts);
			json_decref(doc);
		}
	weir_bench_set_items(st, RECORDS);
	weir_bench_set_bytes(st, (int64_t)o->total_bytes);
}

static int count_instructions(const char *records, const char *variant)
{
	static struct columns c;
	struct orders o;
	orders_make(&o, 0);
	columns_init(&c);
	struct weir_decoder *d = decoder_make(variant, true);
	if (d == NULL) {
		fprintf(stderr, "no such variant here\n");
		return 1;
	}
	uint64_t count = strtoull(records, NULL, 10) / WEIR_BATCH_ROWS;
	int64_t sum = 0;
	for (uint64_t i = 0; i < count; i++)
		sum += decode_batch(d, &c, o.records + i % (RECORDS / WEIR_BATCH_ROWS) * WEIR_BATCH_ROWS);
	printf("%" PRIu64 " records decoded by %s, check %" PRId64 "\n", count * WEIR_BATCH_ROWS,
	       ((struct weir_json *)(void *)d)->variant->name, sum);
	return 0;
}

int main(int argc, char **argv)
{
	static struct orders same, mixed, lines;
	if (argc >= 3 && strcmp(argv[1], "--instructions") == 0)
		return count_instructions(argv[2], argc > 3 ? argv[3] : NULL);
	weir_bench_init(&argc, argv);
	orders_make(&same, 0);
	orders_make(&mixed, 1);
	orders_make(&lines, 2);
	static const char *const variants[] = {"scalar", "sse4.2", "avx2", "avx512", "neon"};
	static struct run runs[16];
	static char names[16][32];
	size_t n = 0;
	runs[n] = (struct run){&same, NULL, true};
	weir_bench_register("order/weir", run_weir, &runs[n++]);
	runs[n] = (struct run){&same, NULL, false};
	weir_bench_register("order/weir_general", run_weir, &runs[n++]);
	runs[n] = (struct run){&mixed, NULL, true};
	weir_bench_register("order/weir_mixed", run_weir, &runs[n++]);
	runs[n] = (struct run){&lines, NULL, true};
	weir_bench_register("order/weir_lines", run_weir, &runs[n++]);
	for (size_t i = 0; i < WEIR_COUNT_OF(variants); i++) {
		struct weir_decoder *d = decoder_make(variants[i], true);
		if (d == NULL)
			continue;
		d->destroy(d);
		runs[n] = (struct run){&same, variants[i], true};
		snprintf(names[n], sizeof names[n], "variant/%s", variants[i]);
		weir_bench_register(names[n], run_weir, &runs[n]);
		n++;
	}
	weir_bench_register("order/simdjson_on_demand", run_on_demand, &same);
	weir_bench_register("order/simdjson_dom", run_dom, &same);
	weir_bench_register("order/jansson", run_jansson, &same);
	int rc = weir_bench_run();
	printf("\nsimdjson: %s\n", weir_simdjson_implementation());
	const char *peer = weir_bench_items_per_second("order/simdjson_dom") >
					   weir_bench_items_per_second("order/simdjson_on_demand")
				   ? "order/simdjson_dom"
				   : "order/simdjson_on_demand";
	bool ok = weir_bench_print_ratio("orders: weir over jansson", "order/weir", "order/jansson", 40);
	ok &= weir_bench_print_ratio("orders: weir over simdjson (the faster interface)", "order/weir", peer, 3);
	return rc != 0 ? rc : ok ? 0 : 1;
}
