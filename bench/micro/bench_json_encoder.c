/* bench_json_encoder.c: rows of windowed results as JSON, CSV and packed, against jansson writing the same object; then
 * the ratio. @thread init */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bench/shim/shim.h"
#include "hotpath/format/format.h"

enum { COLUMNS = 6 };

static const struct weir_field fields[COLUMNS] = {
	{.name = "window_start", .type = {.kind = WEIR_KIND_TIMESTAMP, .precision = 3}, .ordinal = 0},
	{.name = "window_end", .type = {.kind = WEIR_KIND_TIMESTAMP, .precision = 3}, .ordinal = 1},
	{.name = "merchant_id", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}, .ordinal = 2},
	{.name = "orders", .type = {.kind = WEIR_KIND_BIGINT}, .ordinal = 3},
	{.name = "revenue", .type = {.kind = WEIR_KIND_DECIMAL, .precision = 38, .scale = 2}, .ordinal = 4},
	{.name = "orders_per_second", .type = {.kind = WEIR_KIND_DOUBLE}, .ordinal = 5},
};
static struct weir_col cols[COLUMNS];

static void rows_make(void)
{
	static char names[WEIR_BATCH_ROWS][16];
	for (uint32_t i = 0; i < COLUMNS; i++)
		weir_col_init(&cols[i], weir_type_phys(&fields[i].type));
	for (uint32_t row = 0; row < WEIR_BATCH_ROWS; row++) {
		uint32_t mixed = row * 2654435761u;
		cols[0].i64[row] = INT64_C(1767225600000) + row / 100 * 300000;
		cols[1].i64[row] = cols[0].i64[row] + 300000;
		int n = snprintf(names[row], sizeof names[row], "m-%06u", mixed % 100000);
		cols[2].str[row] = (struct weir_str){(const uint8_t *)names[row], (uint32_t)n, 0};
		cols[3].i64[row] = mixed % 5000;
		cols[4].i128[row] = (weir_i128)(mixed % 500000) * (1 + mixed % 900);
		cols[5].f64[row] = (double)(mixed % 5000) / 300;
	}
}

static void run_encode(struct weir_bench_state *st, void *arg)
{
	struct weir_format_options o = {.kind = *(enum weir_format_kind *)arg};
	struct weir_encoder *e = NULL;
	struct weir_buf out = {0};
	enum weir_err err = o.kind == WEIR_FORMAT_JSON  ? weir_json_encoder_create(&e, &o, fields, COLUMNS, NULL)
			    : o.kind == WEIR_FORMAT_CSV ? weir_csv_encoder_create(&e, &o, fields, COLUMNS, NULL)
							: weir_packed_encoder_create(&e, &o, fields, COLUMNS, NULL);
	if (err != WEIR_OK) {
		weir_bench_fail(st, "no encoder");
		return;
	}
	while (weir_bench_keep_running(st)) {
		out.bytes = 0;
		for (uint32_t row = 0; row < WEIR_BATCH_ROWS; row++)
			e->encode(e, cols, row, &out);
		weir_bench_keep(out.data);
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
	weir_bench_set_bytes(st, (int64_t)out.bytes);
	e->destroy(e);
	weir_buf_fini(&out);
}

/* The times and the DECIMAL are given to jansson as ready text: it has no way to write them, so this flatters it. */
static void run_jansson(struct weir_bench_state *st, void *arg)
{
	char text[512];
	size_t bytes = 0;
	(void)arg;
	while (weir_bench_keep_running(st)) {
		for (uint32_t row = 0; row < WEIR_BATCH_ROWS; row++) {
			json_t *js =
				json_pack("{s:s, s:s, s:s%, s:I, s:s, s:f}", "window_start", "2026-01-01 00:00:00",
					  "window_end", "2026-01-01 00:05:00", "merchant_id", cols[2].str[row].data,
					  (size_t)cols[2].str[row].bytes, "orders", (json_int_t)cols[3].i64[row],
					  "revenue", "123456.78", "orders_per_second", cols[5].f64[row]);
			bytes = json_dumpb(js, text, sizeof text, JSON_COMPACT);
			json_decref(js);
			weir_bench_keep(text);
		}
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
	weir_bench_set_bytes(st, (int64_t)bytes * WEIR_BATCH_ROWS);
}

int main(int argc, char **argv)
{
	static enum weir_format_kind json = WEIR_FORMAT_JSON, csv = WEIR_FORMAT_CSV, packed = WEIR_FORMAT_PACKED;
	weir_bench_init(&argc, argv);
	rows_make();
	weir_bench_register("encode/json", run_encode, &json);
	weir_bench_register("encode/csv", run_encode, &csv);
	weir_bench_register("encode/packed", run_encode, &packed);
	weir_bench_register("encode/jansson", run_jansson, NULL);
	int rc = weir_bench_run();
	(void)weir_bench_print_ratio("JSON rows over jansson", "encode/json", "encode/jansson", 5.0);
	return rc;
}
