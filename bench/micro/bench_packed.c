/* bench_packed.c: packed rows (what datagen makes) to columns and back: a BIGINT, a DECIMAL, a string and a nullable
 * DOUBLE; decoding against a copy of the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/shim/shim.h"
#include "hotpath/format/format.h"

static const struct weir_field fields[] = {
	{.ordinal = 0, .name = "id", .type = {.kind = WEIR_KIND_BIGINT, .not_null = true}},
	{.ordinal = 1, .name = "amount", .type = {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2}},
	{.ordinal = 2, .name = "name", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}},
	{.ordinal = 3, .name = "weight", .type = {.kind = WEIR_KIND_DOUBLE}},
};
enum { FIELDS = WEIR_COUNT_OF(fields) };

static struct weir_col cols[FIELDS], back[FIELDS];
static struct weir_record records[WEIR_BATCH_ROWS];
static struct weir_buf bytes;
static size_t starts[WEIR_BATCH_ROWS + 1];
static struct weir_encoder *encoder;
static struct weir_decoder *decoder;

static bool make(void)
{
	struct weir_format_options options = {.kind = WEIR_FORMAT_PACKED};
	if (weir_encoder_create(&encoder, &options, fields, FIELDS, NULL) != WEIR_OK ||
	    weir_decoder_create(&decoder, &options, fields, FIELDS, fields, FIELDS, false, NULL) != WEIR_OK)
		return false;
	for (uint32_t c = 0; c < FIELDS; c++) {
		weir_col_init(&cols[c], weir_type_phys(&fields[c].type));
		weir_col_init(&back[c], weir_type_phys(&fields[c].type));
	}
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
		cols[0].i64[i] = i;
		cols[1].i64[i] = i * 7919u;
		cols[2].str[i] = (struct weir_str){(const uint8_t *)"m-038703 and its name", 8 + i % 13, 0};
		cols[3].f64[i] = i / 3.0;
		if (i % 8 == 0)
			weir_col_set_null(&cols[3], i);
		starts[i] = bytes.bytes;
		encoder->encode(encoder, cols, i, &bytes);
	}
	starts[WEIR_BATCH_ROWS] = bytes.bytes;
	memset(weir_buf_room(&bytes, WEIR_PAYLOAD_PAD), 0, WEIR_PAYLOAD_PAD);
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++)
		records[i] = (struct weir_record){.value = bytes.data + starts[i],
						  .value_bytes = (uint32_t)(starts[i + 1] - starts[i])};
	return true;
}

static void run_decode(struct weir_bench_state *st, void *arg)
{
	static struct weir_row_errors errors;
	static struct weir_sel sel;
	struct weir_scratch scratch;
	(void)arg;
	weir_scratch_init(&scratch);
	while (weir_bench_keep_running(st)) {
		errors.count = 0;
		weir_scratch_reset(&scratch);
		weir_sel_all(&sel, WEIR_BATCH_ROWS);
		decoder->decode(decoder, records, &sel, back, &scratch, &errors);
		weir_bench_keep(back);
		if (errors.count != 0)
			weir_bench_fail(st, "a row was refused");
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
	weir_bench_set_bytes(st, (int64_t)starts[WEIR_BATCH_ROWS]);
	weir_scratch_fini(&scratch);
}

static void run_encode(struct weir_bench_state *st, void *arg)
{
	struct weir_buf out = {0};
	(void)arg;
	while (weir_bench_keep_running(st)) {
		out.bytes = 0;
		for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++)
			encoder->encode(encoder, cols, i, &out);
		weir_bench_keep(out.data);
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
	weir_bench_set_bytes(st, (int64_t)starts[WEIR_BATCH_ROWS]);
	weir_buf_fini(&out);
}

static void run_copy(struct weir_bench_state *st, void *arg)
{
	static uint8_t to[256];
	(void)arg;
	while (weir_bench_keep_running(st))
		for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
			memcpy(to, records[i].value, records[i].value_bytes);
			weir_bench_keep(to);
		}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
	weir_bench_set_bytes(st, (int64_t)starts[WEIR_BATCH_ROWS]);
}

int main(int argc, char **argv)
{
	weir_bench_init(&argc, argv);
	if (!make()) {
		fprintf(stderr, "bench_packed: no codec\n");
		return 1;
	}
	weir_bench_register("packed/decode", run_decode, NULL);
	weir_bench_register("packed/encode", run_encode, NULL);
	weir_bench_register("packed/copy", run_copy, NULL);
	return weir_bench_run();
}
