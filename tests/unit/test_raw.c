/* test_raw.c: payloads that are one value. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/core/diag.h"
#include "tests/support/rows.h"

struct one {
	struct rows *r;
	struct weir_decoder *d;
	struct weir_encoder *e;
};

static struct one open_one(struct weir_type type, struct weir_format_options o)
{
	struct one on = {.r = calloc(1, sizeof *on.r)};
	rows_add(on.r, "v", type);
	assert_int_equal(weir_raw_decoder_create(&on.d, &o, on.r->fields, 1, false, NULL), WEIR_OK);
	assert_int_equal(weir_raw_encoder_create(&on.e, &o, on.r->fields, 1, NULL), WEIR_OK);
	return on;
}

static void close_one(struct one *on)
{
	on->d->destroy(on->d);
	on->e->destroy(on->e);
	rows_fini(on->r);
}

/* bytes decode and encode back to the same; any other length is refused. */
static struct one check(struct weir_type type, struct weir_format_options o, const char *bytes, size_t count)
{
	static const char zeros[16];
	struct one on = open_one(type, o);
	for (size_t n = 0; n <= 16; n++) {
		if (n != count)
			assert_int_equal(rows_decode(on.r, on.d, zeros, n), WEIR_REASON_KAFKA);
	}
	assert_int_equal(rows_decode(on.r, on.d, bytes, count), WEIR_REASON_NONE);
	assert_memory_equal(rows_encode(on.r, on.e), bytes, count);
	assert_int_equal(on.r->out.bytes, count);
	return on;
}

static void test_primitives(void **state)
{
	(void)state;
	const struct weir_format_options kafka = {.kind = WEIR_FORMAT_KAFKA, .raw_little_endian = true};
	const struct weir_format_options raw = {.kind = WEIR_FORMAT_RAW};
	const struct weir_format_options little = {.kind = WEIR_FORMAT_RAW, .raw_little_endian = true};
	struct one on =
		check(TYPE_INT, kafka, "\xff\xff\xff\xfe", 4); /* kafka is big-endian whatever raw.endianness says */
	assert_int_equal(on.r->cols[0].i64[0], -2);
	close_one(&on);
	on = check(TYPE_BIGINT, raw, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	assert_true(on.r->cols[0].i64[0] == INT64_C(0x0102030405060708));
	close_one(&on);
	on = check(TYPE_BIGINT, little, "\x01\x02\x03\x04\x05\x06\x07\x88", 8);
	assert_true(on.r->cols[0].i64[0] == (int64_t)UINT64_C(0x8807060504030201));
	close_one(&on);
	on = check(TYPE_SMALLINT, raw, "\x80\x00", 2);
	assert_int_equal(on.r->cols[0].i64[0], -32768);
	close_one(&on);
	on = check(TYPE_TINYINT, raw, "\x7f", 1);
	assert_int_equal(on.r->cols[0].i64[0], 127);
	close_one(&on);
	on = check(TYPE_DOUBLE, kafka, "\x3f\xf8\0\0\0\0\0\0", 8);
	assert_true(on.r->cols[0].f64[0] == 1.5);
	close_one(&on);
	on = check(TYPE_FLOAT, raw, "\xc0\x20\0\0", 4);
	assert_true(on.r->cols[0].f64[0] == -2.5);
	close_one(&on);
	on = check(TYPE_BOOLEAN, raw, "\x01", 1);
	assert_int_equal(on.r->cols[0].u8[0], 1);
	assert_int_equal(rows_decode(on.r, on.d, "\x02", 1), WEIR_REASON_KAFKA);
	close_one(&on);
}

static void test_strings_and_nulls(void **state)
{
	(void)state;
	struct one on =
		open_one(TYPE_STRING, (struct weir_format_options){.kind = WEIR_FORMAT_RAW, .record_bytes_max = 10});
	assert_true(on.e->null_payload);
	assert_int_equal(rows_decode(on.r, on.d, "gr\xc3\xbc", 4), WEIR_REASON_NONE);
	assert_string_equal(rows_str(on.r, 0), "gr\xc3\xbc");
	assert_string_equal(rows_encode(on.r, on.e), "gr\xc3\xbc");
	assert_int_equal(rows_decode(on.r, on.d, "", 0), WEIR_REASON_NONE); /* empty is not null */
	assert_string_equal(rows_str(on.r, 0), "");
	assert_int_equal(rows_decode(on.r, on.d, NULL, 0), WEIR_REASON_NONE);
	assert_string_equal(rows_str(on.r, 0), "<null>");
	assert_string_equal(rows_encode(on.r, on.e), "");
	assert_int_equal(rows_decode(on.r, on.d, "\xff", 1), WEIR_REASON_UTF8);
	assert_int_equal(rows_decode(on.r, on.d, "0123456789a", 11), WEIR_REASON_SIZE);
	close_one(&on);
	on = open_one(TYPE_BYTES, (struct weir_format_options){.kind = WEIR_FORMAT_RAW, .ignore_parse_errors = true});
	assert_int_equal(rows_decode(on.r, on.d, "\xff\x00", 2), WEIR_REASON_NONE);
	assert_int_equal(on.r->cols[0].str[0].bytes, 2);
	close_one(&on);
	on = open_one(TYPE_INT, (struct weir_format_options){.kind = WEIR_FORMAT_RAW, .ignore_parse_errors = true});
	assert_int_equal(rows_decode(on.r, on.d, "12345", 5), WEIR_REASON_NONE);
	assert_true(weir_col_is_null(&on.r->cols[0], 0));
	close_one(&on);
}

/* Bad rows leave the selection, the others keep their order; keys are read where asked. */
static void test_batch_of_keys(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	struct weir_decoder *d = NULL;
	const struct weir_format_options o = {.kind = WEIR_FORMAT_KAFKA};
	rows_add(r, "k", TYPE_INT);
	assert_int_equal(weir_raw_decoder_create(&d, &o, r->fields, 1, true, NULL), WEIR_OK);
	static const uint8_t one[5] = {0, 0, 0, 1, 0};
	const struct weir_record recs[5] = {
		{.key = one, .key_bytes = 4, .value = one},
		{.key = one, .key_bytes = 5},
		{.value = one, .value_bytes = 4},
		{.key = one, .key_bytes = 3},
		{.key = one, .key_bytes = 4},
	};
	weir_sel_all(&r->sel, 5);
	d->decode(d, recs, &r->sel, r->cols, &r->scratch, &r->errors);
	assert_int_equal(r->sel.count, 3);
	assert_int_equal(r->sel.row[0], 0);
	assert_int_equal(r->sel.row[1], 2);
	assert_int_equal(r->sel.row[2], 4);
	assert_int_equal(r->errors.count, 2);
	assert_int_equal(r->errors.e[1].row, 3);
	assert_true(weir_col_is_null(&r->cols[0], 2));
	assert_int_equal(r->cols[0].i64[4], 1);
	d->destroy(d);
	rows_fini(r);
}

static void test_wrong_columns(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	struct weir_decoder *d = NULL;
	struct weir_encoder *e = NULL;
	struct weir_diag *dg = NULL;
	const struct weir_format_options o = {.kind = WEIR_FORMAT_RAW};
	rows_add(r, "a", TYPE_TIMESTAMP(3));
	rows_add(r, "b", TYPE_INT);
	assert_int_equal(weir_raw_decoder_create(&d, &o, r->fields, 2, false, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "exactly one column"));
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(weir_raw_encoder_create(&e, &o, r->fields, 1, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "TIMESTAMP(3)"));
	weir_diag_destroy(dg);
	assert_null(d);
	assert_null(e);
	rows_fini(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_primitives),
		cmocka_unit_test(test_strings_and_nulls),
		cmocka_unit_test(test_batch_of_keys),
		cmocka_unit_test(test_wrong_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
