/* test_csv.c: CSV in and out: quotes, escapes, NULL, wrong rows, and that whatever is written reads back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/core/diag.h"
#include "tests/support/rows.h"

static struct weir_decoder *decoder(struct rows *r, const struct weir_format_options *o)
{
	struct weir_decoder *d = NULL;
	assert_int_equal(
		weir_csv_decoder_create(&d, o, r->fields, r->field_count, r->fields, r->field_count, false, NULL),
		WEIR_OK);
	return d;
}

static struct rows *strings(uint32_t count)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct rows *r = calloc(1, sizeof *r);
	for (uint32_t i = 0; i < count; i++)
		rows_add(r, names[i], TYPE_STRING);
	return r;
}

/* The cells of text joined by '|', or the reason in angle brackets. */
static const char *cells(const struct weir_format_options *o, uint32_t count, const char *text)
{
	static char joined[4096];
	struct rows *r = strings(count);
	struct weir_decoder *d = decoder(r, o);
	enum weir_reason reason = rows_decode(r, d, text, strlen(text));
	joined[0] = '\0';
	if (reason != WEIR_REASON_NONE) {
		(void)strcat(strcat(strcpy(joined, "<"), weir_reason_name(reason)), ">");
	} else {
		for (uint32_t i = 0; i < count; i++)
			(void)strcat(strcat(joined, i ? "|" : ""), rows_str(r, i));
	}
	d->destroy(d);
	rows_fini(r);
	return joined;
}

static void test_quotes(void **state)
{
	(void)state;
	const struct weir_format_options o = {.kind = WEIR_FORMAT_CSV};
	assert_string_equal(cells(&o, 3, "a,\"1,2,3\",c"), "a|1,2,3|c");
	assert_string_equal(cells(&o, 3, "\"1\",\"{2\"\",3}\",\"4\""), "1|{2\",3}|4");
	assert_string_equal(cells(&o, 2, "\"a\nb\r\nc\",d"), "a\nb\r\nc|d");
	assert_string_equal(cells(&o, 2, "\"\",\"\"\"\""), "|\"");
	assert_string_equal(cells(&o, 2, "\"\"\"a\"\"\",b"), "\"a\"|b");
	assert_string_equal(cells(&o, 2, ","), "|");
	assert_string_equal(cells(&o, 1, ""), "");
	assert_string_equal(cells(&o, 2, "a,b\n"), "a|b");
	assert_string_equal(cells(&o, 2, "a,\"b\"\r\n"), "a|b");
	assert_string_equal(cells(&o, 2, " \"a\" ,b"), " \"a\" |b"); /* the quote is not the first byte */
	assert_string_equal(cells(&o, 2, "x,5\" pipe"), "x|5\" pipe");
	assert_string_equal(cells(&o, 2, "x,5\"\" pipe"), "x|5\"\" pipe");
}

static void test_wrong_rows(void **state)
{
	(void)state;
	struct weir_format_options o = {.kind = WEIR_FORMAT_CSV};
	assert_string_equal(cells(&o, 3, "x,5\" pipe,y"), "x|5\" pipe|y");
	assert_string_equal(cells(&o, 2, "\"unterminated,1"), "<csv>");
	assert_string_equal(cells(&o, 2, "\"a\"\"\",\""), "<csv>");
	assert_string_equal(cells(&o, 2, "\""), "<csv>");
	assert_string_equal(cells(&o, 2, "\"a\"b,c"), "<csv>");
	assert_string_equal(cells(&o, 2, "\"a\" ,c"), "<csv>");
	assert_string_equal(cells(&o, 3, "a,b"), "<csv>");
	assert_string_equal(cells(&o, 1, "a,b"), "<csv>");
	assert_string_equal(cells(&o, 2, ""), "<csv>");
	assert_string_equal(cells(&o, 2, "a,b\nc,d"), "<csv>");
	assert_string_equal(cells(&o, 2, "a,b\n\n"), "<csv>");
	assert_string_equal(cells(&o, 2, "a,\xc3(b"), "<utf8>");
	o.csv_ignore_trailing = true;
	assert_string_equal(cells(&o, 1, "a,b,c"), "a");
	assert_string_equal(cells(&o, 1, "a,\"b"), "<csv>");
	assert_string_equal(cells(&o, 3, "a,b"), "<csv>");
	o.record_bytes_max = 4;
	assert_string_equal(cells(&o, 1, "abcde"), "<size>");
}

static void test_error_places(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "id", TYPE_BIGINT);
	rows_add(r, "v", TYPE_DECIMAL(4, 2));
	struct weir_decoder *d = decoder(r, &(struct weir_format_options){.kind = WEIR_FORMAT_CSV});
	assert_int_equal(rows_decode(r, d, "12,100.00", 9), WEIR_REASON_RANGE);
	assert_string_equal(r->errors.e[0].field, "v");
	assert_int_equal(r->errors.e[0].at, 3);
	assert_int_equal(rows_decode(r, d, "x,1", 3), WEIR_REASON_TYPE);
	assert_string_equal(r->errors.e[0].field, "id");
	assert_int_equal(rows_decode(r, d, "1,2,3", 5), WEIR_REASON_CSV);
	assert_int_equal(r->errors.e[0].at, 3);
	assert_string_equal(r->errors.e[0].detail, "more cells than columns");
	assert_int_equal(rows_decode(r, d, "1", 1), WEIR_REASON_CSV);
	assert_string_equal(r->errors.e[0].detail, "fewer cells than columns");
	d->destroy(d);
	rows_fini(r);
}

static void test_options(void **state)
{
	(void)state;
	struct weir_format_options o = {.kind = WEIR_FORMAT_CSV, .csv_delimiter = '\t', .csv_quote = '\''};
	assert_string_equal(cells(&o, 2, "'a\tb''c'\td,\"e"), "a\tb'c|d,\"e");
	o = (struct weir_format_options){.kind = WEIR_FORMAT_CSV, .csv_disable_quote = true};
	assert_string_equal(cells(&o, 2, "\"a,b\""), "\"a|b\"");
	o = (struct weir_format_options){.kind = WEIR_FORMAT_CSV, .csv_escape = '\\'};
	assert_string_equal(cells(&o, 3, "\"1\",\"{2\\\",3}\",\"4\""), "1|{2\",3}|4");
	assert_string_equal(cells(&o, 2, "a\\,b,c\\\\"), "a,b|c\\");
	assert_string_equal(cells(&o, 2, "\"x\\\\\",y"), "x\\|y");
	assert_string_equal(cells(&o, 2, "\"x\\\",y"), "<csv>");
	assert_string_equal(cells(&o, 1, "a\\"), "a\\");
	o = (struct weir_format_options){.kind = WEIR_FORMAT_CSV};
	assert_string_equal(cells(&o, 1, "\"x\\\"\""), "<csv>"); /* the backslash form only where it is configured */
	o.csv_allow_comments = true;
	assert_string_equal(cells(&o, 2, "# hello\n#\na,b"), "a|b");
	assert_string_equal(cells(&o, 2, "# only"), "<csv>");
	o.csv_allow_comments = false;
	assert_string_equal(cells(&o, 2, "#a,b"), "#a|b");
	o.csv_null_literal = "NULL";
	assert_string_equal(cells(&o, 3, "NULL,\"NULL\",null"), "<null>|NULL|null");
	o.csv_null_literal = "";
	assert_string_equal(cells(&o, 2, ",\"\""), "<null>|");
}

static void test_option_conflicts(void **state)
{
	(void)state;
	struct rows *r = strings(1);
	struct weir_decoder *d = NULL;
	struct weir_diag *dg = NULL;
	const struct weir_format_options o = {.kind = WEIR_FORMAT_CSV, .csv_quote = ','};
	assert_int_equal(weir_csv_decoder_create(&d, &o, r->fields, 1, r->fields, 1, false, &dg), WEIR_E_CONF);
	assert_null(d);
	weir_diag_destroy(dg);
	dg = NULL;
	r->fields[0].type = (struct weir_type){.kind = WEIR_KIND_ARRAY, .field_count = 1, .fields = &TYPE_BIGINT};
	const struct weir_format_options plain = {.kind = WEIR_FORMAT_CSV};
	assert_int_equal(weir_csv_decoder_create(&d, &plain, r->fields, 1, r->fields, 1, false, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "ARRAY<BIGINT>"));
	weir_diag_destroy(dg);
	r->fields[0].type = TYPE_STRING;
	rows_fini(r);
}

static struct rows *typed(void)
{
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "id", TYPE_BIGINT);
	rows_add(r, "v", TYPE_DOUBLE);
	rows_add(r, "d", TYPE_DECIMAL(12, 2));
	rows_add(r, "t", TYPE_TIMESTAMP(3));
	rows_add(r, "b", TYPE_BYTES);
	rows_add(r, "s", TYPE_STRING);
	return r;
}

static void test_types_and_nulls(void **state)
{
	(void)state;
	struct rows *r = typed();
	struct weir_decoder *d = decoder(r, &(struct weir_format_options){.kind = WEIR_FORMAT_CSV});
	static const char text[] = " 7 ,0.5,\"1.005\",1700000000123,aGk=,";
	assert_int_equal(rows_decode(r, d, text, sizeof text - 1), WEIR_REASON_NONE);
	assert_int_equal(r->cols[0].i64[0], 7);
	assert_true(r->cols[1].f64[0] == 0.5);
	assert_int_equal(r->cols[2].i64[0], 101);
	assert_true(r->cols[3].i64[0] == INT64_C(1700000000123));
	assert_string_equal(rows_str(r, 4), "hi");
	assert_string_equal(rows_str(r, 5), "");
	assert_int_equal(rows_decode(r, d, ",,,,,", 5), WEIR_REASON_NONE);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(weir_col_is_null(&r->cols[i], 0));
	assert_false(weir_col_is_null(&r->cols[5], 0));
	assert_int_equal(rows_decode(r, d, ",1e309,,,,", 10), WEIR_REASON_RANGE);
	assert_int_equal(rows_decode(r, d, ",,,,a*,", 7), WEIR_REASON_TYPE);
	assert_int_equal(rows_decode(r, d, ",,,99999999999999999999,,", 25), WEIR_REASON_RANGE);
	/* A null payload is no error: the caller decides what it means. */
	assert_int_equal(rows_decode(r, d, NULL, 0), WEIR_REASON_NONE);
	assert_true(weir_col_is_null(&r->cols[5], 0));
	d->destroy(d);
	r->fields[0].type.not_null = true;
	d = decoder(r, &(struct weir_format_options){.kind = WEIR_FORMAT_CSV, .unit_per_second = 1});
	assert_int_equal(rows_decode(r, d, ",,,,,", 5), WEIR_REASON_NULL);
	assert_int_equal(rows_decode(r, d, "1,,,5,,", 7), WEIR_REASON_NONE);
	assert_int_equal(r->cols[3].i64[0], 5000);
	d->destroy(d);
	rows_fini(r);
}

static void test_ignore_parse_errors(void **state)
{
	(void)state;
	struct rows *r = typed();
	struct weir_decoder *d =
		decoder(r, &(struct weir_format_options){.kind = WEIR_FORMAT_CSV, .ignore_parse_errors = true});
	assert_int_equal(rows_decode(r, d, "x,0.5,,,,z", 10), WEIR_REASON_NONE);
	assert_true(weir_col_is_null(&r->cols[0], 0));
	assert_false(weir_col_is_null(&r->cols[1], 0));
	assert_string_equal(rows_str(r, 5), "z");
	assert_int_equal(rows_decode(r, d, "1,0.5", 5), WEIR_REASON_CSV); /* no row at all */
	d->destroy(d);
	rows_fini(r);
}

/* Only some columns are read; the whole row is checked all the same. */
static void test_columns_by_ordinal(void **state)
{
	(void)state;
	struct rows *all = strings(4), *some = calloc(1, sizeof *some);
	struct weir_decoder *d = NULL;
	rows_add(some, "d", TYPE_STRING);
	rows_add(some, "b", TYPE_BIGINT);
	some->fields[0].ordinal = 3;
	some->fields[1].ordinal = 1;
	const struct weir_format_options o = {.kind = WEIR_FORMAT_CSV};
	assert_int_equal(weir_csv_decoder_create(&d, &o, some->fields, 2, all->fields, 4, false, NULL), WEIR_OK);
	assert_int_equal(rows_decode(some, d, "a,17,c,\"d,\"", 11), WEIR_REASON_NONE);
	assert_string_equal(rows_str(some, 0), "d,");
	assert_int_equal(some->cols[1].i64[0], 17);
	assert_int_equal(rows_decode(some, d, "a,17,\"c,d", 9), WEIR_REASON_CSV);
	d->destroy(d);
	rows_fini(some);
	rows_fini(all);
}

/* A quoted cell with a line break, a delimiter and a doubled quote at every place around the sizes that buffers have.
 */
static void test_long_cells_at_every_alignment(void **state)
{
	(void)state;
	enum { LONG = 70000 };
	static const size_t edges[] = {4096, 65536};
	const struct weir_format_options o = {.kind = WEIR_FORMAT_CSV};
	char *text = malloc(LONG + 64), *expected = malloc(LONG + 64);
	struct rows *r = strings(3);
	struct weir_decoder *d = decoder(r, &o);
	for (size_t e = 0; e < WEIR_COUNT_OF(edges); e++) {
		for (size_t place = edges[e] - 20; place < edges[e] + 20; place++) {
			memset(text, 'x', LONG + 64);
			memcpy(text, "a,\"", 3);
			memcpy(text + place, "\n,\"\",", 5);
			memcpy(text + LONG, "\",c", 3);
			memset(expected, 'x', LONG);
			memcpy(expected + place - 3, "\n,\",", 4);
			assert_int_equal(rows_decode(r, d, text, LONG + 3), WEIR_REASON_NONE);
			assert_int_equal(r->cols[1].str[0].bytes, LONG - 3 - 1);
			assert_memory_equal(r->cols[1].str[0].data, expected, LONG - 3 - 1);
			assert_string_equal(rows_str(r, 2), "c");
		}
	}
	d->destroy(d);
	rows_fini(r);
	free(text);
	free(expected);
}

static void test_every_prefix(void **state)
{
	(void)state;
	struct rows *r = typed();
	struct weir_decoder *d = decoder(r, &(struct weir_format_options){.kind = WEIR_FORMAT_CSV, .csv_escape = '\\'});
	static const char text[] =
		"12345,0.25,\"99.99\",2026-01-01 00:00:00.5,aGVsbG8=,\"a \"\"long\"\" text, with \\\" and "
		"gr\xc3\xb6\xc3\x9f"
		"er things in it \xf0\x9f\x8e\x89\"";
	size_t last_cell = (size_t)(strstr(text, "\"a ") - text);
	for (size_t n = 0; n < sizeof text - 1; n++) {
		/* A row of its own: cut before the last cell, or behind one quote of a pair, which closes it. */
		bool whole = n == last_cell ||
			     (n > last_cell + 1 && text[n - 1] == '"' && text[n - 2] != '\\' && text[n - 2] != '"');
		enum weir_reason reason = rows_decode(r, d, text, n);
		assert_int_equal(reason == WEIR_REASON_NONE, whole);
	}
	assert_int_equal(rows_decode(r, d, text, sizeof text - 1), WEIR_REASON_NONE);
	d->destroy(d);
	rows_fini(r);
}

static void test_encode(void **state)
{
	(void)state;
	struct rows *r = typed();
	struct weir_encoder *e = NULL;
	struct weir_format_options o = {.kind = WEIR_FORMAT_CSV};
	assert_int_equal(weir_csv_encoder_create(&e, &o, r->fields, r->field_count, NULL), WEIR_OK);
	r->cols[0].i64[0] = -7;
	r->cols[1].f64[0] = 0.1;
	r->cols[2].i64[0] = 10170;
	r->cols[3].i64[0] = 1500;
	r->cols[4].str[0] = (struct weir_str){(const uint8_t *)"hi", 2, 0};
	rows_set_str(r, 5, "a \"b\", c");
	assert_string_equal(rows_encode(r, e), "-7,0.1,101.70,1970-01-01 00:00:01.5,aGk=,\"a \"\"b\"\", c\"");
	rows_set_str(r, 5, "plain");
	weir_col_set_null(&r->cols[0], 0);
	assert_string_equal(rows_encode(r, e), ",0.1,101.70,1970-01-01 00:00:01.5,aGk=,plain");
	rows_set_str(r, 5, "");
	assert_string_equal(rows_encode(r, e), ",0.1,101.70,1970-01-01 00:00:01.5,aGk=,\"\"");
	e->destroy(e);
	o = (struct weir_format_options){
		.kind = WEIR_FORMAT_CSV, .csv_null_literal = "NULL", .csv_delimiter = ';', .timestamp_iso8601 = true};
	assert_int_equal(weir_csv_encoder_create(&e, &o, r->fields, r->field_count, NULL), WEIR_OK);
	rows_set_str(r, 5, "NULL");
	assert_string_equal(rows_encode(r, e), "NULL;0.1;101.70;1970-01-01T00:00:01.5;aGk=;\"NULL\"");
	e->destroy(e);
	/* A digit as the delimiter is odd, but must not tear numbers apart. */
	o = (struct weir_format_options){.kind = WEIR_FORMAT_CSV, .csv_delimiter = '.'};
	assert_int_equal(weir_csv_encoder_create(&e, &o, r->fields, r->field_count, NULL), WEIR_OK);
	assert_string_equal(rows_encode(r, e), ".\"0.1\".\"101.70\".\"1970-01-01 00:00:01.5\".aGk=.NULL");
	e->destroy(e);
	rows_fini(r);
}

/* Random strings of the awkward characters through encoder and decoder, for every kind of options. */
static void test_round_trip(void **state)
{
	(void)state;
	static const struct weir_format_options options[] = {
		{.kind = WEIR_FORMAT_CSV},
		{.kind = WEIR_FORMAT_CSV, .csv_null_literal = "a"},
		{.kind = WEIR_FORMAT_CSV, .csv_null_literal = ""},
		{.kind = WEIR_FORMAT_CSV, .csv_escape = '\\'},
		{.kind = WEIR_FORMAT_CSV, .csv_delimiter = ';', .csv_quote = '\'', .csv_allow_comments = true},
		{.kind = WEIR_FORMAT_CSV, .csv_disable_quote = true, .csv_escape = '\\'},
	};
	static const char alphabet[] = "a,;\"'\\\n\r# \t1";
	uint64_t x = 42;
	for (size_t k = 0; k < WEIR_COUNT_OF(options); k++) {
		struct rows *r = strings(3), *back = strings(3);
		struct weir_decoder *d = decoder(back, &options[k]);
		struct weir_encoder *e = NULL;
		assert_int_equal(weir_csv_encoder_create(&e, &options[k], r->fields, 3, NULL), WEIR_OK);
		for (int round = 0; round < 20000; round++) {
			char s[3][16];
			for (uint32_t i = 0; i < 3; i++) {
				size_t n;
				x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
				n = (x >> 40) % 8;
				for (size_t c = 0; c < n; c++) {
					x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
					s[i][c] = alphabet[(x >> 40) % (sizeof alphabet - 1)];
				}
				s[i][n] = '\0';
				rows_set_str(r, i, s[i]);
			}
			const char *text = rows_encode(r, e);
			enum weir_reason reason = rows_decode(back, d, text, r->out.bytes);
			if (reason != WEIR_REASON_NONE)
				fail_msg("options %zu: [%s] is refused: %s", k, text, weir_reason_name(reason));
			for (uint32_t i = 0; i < 3; i++) {
				if (strcmp(rows_str(back, i), s[i]) != 0)
					fail_msg("options %zu: [%s] reads as [%s] for [%s]", k, text, rows_str(back, i),
						 s[i]);
			}
		}
		d->destroy(d);
		e->destroy(e);
		rows_fini(r);
		rows_fini(back);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quotes),
		cmocka_unit_test(test_wrong_rows),
		cmocka_unit_test(test_error_places),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_option_conflicts),
		cmocka_unit_test(test_types_and_nulls),
		cmocka_unit_test(test_ignore_parse_errors),
		cmocka_unit_test(test_columns_by_ordinal),
		cmocka_unit_test(test_long_cells_at_every_alignment),
		cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
