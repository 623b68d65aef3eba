/* fuzz_csv.c: any payload through the CSV decoder under options taken from the first byte; what was read is written and
 * must read back the same. libFuzzer, or any driver that calls LLVMFuzzerTestOneInput. */
#include <stdlib.h>
#include <string.h>

#include "hotpath/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct weir_field fields[5] = {
	{.name = "a", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}, .ordinal = 0},
	{.name = "b", .type = {.kind = WEIR_KIND_BIGINT}, .ordinal = 1},
	{.name = "c", .type = {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2}, .ordinal = 2},
	{.name = "d", .type = {.kind = WEIR_KIND_TIMESTAMP, .precision = 3}, .ordinal = 3},
	{.name = "e", .type = {.kind = WEIR_KIND_BYTES}, .ordinal = 4},
};

/* One payload as row 0; true if it was taken. */
static bool decode(struct weir_decoder *d, const uint8_t *data, size_t bytes, struct weir_col *cols,
		   struct weir_scratch *scratch)
{
	static struct weir_sel sel;
	static struct weir_row_errors errors;
	struct weir_record rec = {.value = data, .value_bytes = (uint32_t)bytes};
	errors.count = 0;
	weir_sel_all(&sel, 1);
	d->decode(d, &rec, &sel, cols, scratch, &errors);
	WEIR_ASSERT(sel.count + errors.count == 1);
	return sel.count == 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct weir_col first[5], second[5];
	static struct weir_scratch scratch[2];
	if (bytes == 0 || bytes > 1 << 16)
		return 0;
	struct weir_format_options o = {
		.kind = WEIR_FORMAT_CSV,
		.csv_delimiter = data[0] & 1 ? ';' : ',',
		.csv_quote = data[0] & 2 ? '\'' : '"',
		.csv_escape = data[0] & 4 ? '\\' : '\0',
		.csv_allow_comments = data[0] & 8,
		.csv_null_literal = data[0] & 16 ? "NULL" : NULL,
		.csv_ignore_trailing = data[0] & 32,
		.ignore_parse_errors = data[0] & 64,
	};
	uint32_t count = data[0] & 128 ? 5 : 1;
	for (uint32_t i = 0; i < 5 && first[i].data == NULL; i++) {
		weir_col_init(&first[i], weir_type_phys(&fields[i].type));
		weir_col_init(&second[i], weir_type_phys(&fields[i].type));
	}
	struct weir_decoder *d = NULL;
	struct weir_encoder *e = NULL;
	WEIR_ASSERT(weir_csv_decoder_create(&d, &o, fields, count, fields, count, false, NULL) == WEIR_OK);
	WEIR_ASSERT(weir_csv_encoder_create(&e, &o, fields, count, NULL) == WEIR_OK);
	uint8_t *copy = malloc(bytes); /* of exactly that size, for ASan */
	WEIR_ASSERT(copy != NULL);
	memcpy(copy, data + 1, bytes - 1);
	weir_scratch_reset(&scratch[0]);
	weir_scratch_reset(&scratch[1]);
	bool taken = decode(d, copy, bytes - 1, first, &scratch[0]);
	/* The text of a time reaches years 0 to 9999; an integer may say more. */
	bool far = taken && count == 5 && !weir_col_is_null(&first[3], 0) &&
		   (first[3].i64[0] < -62167219200000 || first[3].i64[0] >= 253402300800000);
	if (taken && !far) {
		struct weir_buf out = {0};
		e->encode(e, first, 0, &out);
		weir_buf_put_byte(&out, 0); /* never empty: a pointer that is not NULL */
		WEIR_ASSERT(decode(d, out.data, out.bytes - 1, second, &scratch[1]));
		for (uint32_t i = 0; i < count; i++) {
			bool null = weir_col_is_null(&first[i], 0);
			/* A NULL string without a null literal has no text of its own: it reads back as an empty one.
			 */
			if (null && i == 0 && o.csv_null_literal == NULL)
				continue;
			WEIR_ASSERT(null == weir_col_is_null(&second[i], 0));
			if (null)
				continue;
			if (first[i].phys == WEIR_PHYS_STR) {
				const struct weir_str *a = &first[i].str[0], *b = &second[i].str[0];
				WEIR_ASSERT(a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0);
			} else {
				WEIR_ASSERT(first[i].i64[0] == second[i].i64[0]);
			}
		}
		weir_buf_fini(&out);
	}
	free(copy);
	d->destroy(d);
	e->destroy(e);
	return 0;
}
