/* bench_csv.c: an order as a line of CSV to columns: three of its six cells, plain and with one cell in quotes, against
 * splitting the line at commas and converting with the C library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/shim/shim.h"
#include "hotpath/format/format.h"

enum { CELLS = 6 };

static const struct weir_field all[CELLS] = {
	{.ordinal = 0, .name = "order_id", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}},
	{.ordinal = 1, .name = "merchant_id", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}},
	{.ordinal = 2, .name = "customer_id", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}},
	{.ordinal = 3, .name = "amount", .type = {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2}},
	{.ordinal = 4, .name = "currency", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}},
	{.ordinal = 5, .name = "ts", .type = {.kind = WEIR_KIND_BIGINT}},
};
static const uint32_t wanted[] = {1, 3, 5};

struct lines {
	const char *form;
	struct weir_record records[WEIR_BATCH_ROWS];
	char text[WEIR_BATCH_ROWS][128 + WEIR_PAYLOAD_PAD];
};

static void make(struct lines *ln)
{
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
		int n = snprintf(ln->text[i], 128, ln->form, i, i * 7919u % 100000u, i * 31u, i % 900u + 1, i % 100u,
				 1767225600000LL + i);
		ln->records[i] =
			(struct weir_record){.value = (const uint8_t *)ln->text[i], .value_bytes = (uint32_t)n};
	}
}

static void run_weir(struct weir_bench_state *st, void *arg)
{
	struct lines *ln = arg;
	static struct weir_row_errors errors;
	static struct weir_sel sel;
	struct weir_field fields[WEIR_COUNT_OF(wanted)];
	struct weir_col cols[WEIR_COUNT_OF(wanted)];
	struct weir_scratch scratch;
	struct weir_decoder *d = NULL;
	struct weir_format_options options = {.kind = WEIR_FORMAT_CSV};
	make(ln);
	weir_scratch_init(&scratch);
	for (size_t i = 0; i < WEIR_COUNT_OF(wanted); i++) {
		fields[i] = all[wanted[i]];
		weir_col_init(&cols[i], weir_type_phys(&fields[i].type));
	}
	if (weir_decoder_create(&d, &options, fields, WEIR_COUNT_OF(wanted), all, CELLS, false, NULL) != WEIR_OK) {
		weir_bench_fail(st, "no decoder");
		return;
	}
	while (weir_bench_keep_running(st)) {
		errors.count = 0;
		weir_scratch_reset(&scratch);
		weir_sel_all(&sel, WEIR_BATCH_ROWS);
		d->decode(d, ln->records, &sel, cols, &scratch, &errors);
		weir_bench_keep(cols);
		if (errors.count != 0)
			weir_bench_fail(st, "a line was refused");
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
	d->destroy(d);
	for (size_t i = 0; i < WEIR_COUNT_OF(wanted); i++)
		weir_col_fini(&cols[i]);
	weir_scratch_fini(&scratch);
}

static void run_libc(struct weir_bench_state *st, void *arg)
{
	struct lines *ln = arg;
	make(ln);
	while (weir_bench_keep_running(st))
		for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
			const char *cell[CELLS] = {ln->text[i]};
			for (uint32_t c = 1; c < CELLS && cell[c - 1]; c++)
				cell[c] = strchr(cell[c - 1], ',') + 1;
			double amount = strtod(cell[3], NULL);
			long long ts = strtoll(cell[5], NULL, 10);
			weir_bench_keep(cell);
			weir_bench_keep(&amount);
			weir_bench_keep(&ts);
		}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
}

int main(int argc, char **argv)
{
	static struct lines plain = {.form = "o-%010u,m-%06u,c-%07u,%u.%02u,EUR,%lld"};
	static struct lines quoted = {.form = "o-%010u,\"m-%06u\",c-%07u,%u.%02u,EUR,%lld"};
	weir_bench_init(&argc, argv);
	weir_bench_register("csv/plain", run_weir, &plain);
	weir_bench_register("csv/quoted", run_weir, &quoted);
	weir_bench_register("csv/libc", run_libc, &plain);
	int rc = weir_bench_run();
	weir_bench_print_ratio("lines of CSV over strchr, strtod and strtoll", "csv/plain", "csv/libc", 1.0);
	return rc;
}
