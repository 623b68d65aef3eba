/* test_json_encoder.c: rows as JSON; every text is also read by jansson. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/core/diag.h"
#include "tests/support/rows.h"

static struct weir_encoder *encoder(struct rows *r, struct weir_format_options o)
{
	struct weir_encoder *e = NULL;
	o.kind = WEIR_FORMAT_JSON;
	assert_int_equal(weir_json_encoder_create(&e, &o, r->fields, r->field_count, NULL), WEIR_OK);
	return e;
}

/* Encodes row 0 and checks that it is JSON. */
static const char *encode(struct rows *r, struct weir_encoder *e)
{
	json_error_t err;
	const char *text = rows_encode(r, e);
	json_t *js = json_loadb(text, r->out.bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &err);
	if (js == NULL)
		fail_msg("[%s] is no JSON: %s", text, err.text);
	json_decref(js);
	return text;
}

static struct rows *sample(void)
{
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "window_start", TYPE_TIMESTAMP(3));
	rows_add(r, "at", TYPE_LTZ(3));
	rows_add(r, "merchant", TYPE_STRING);
	rows_add(r, "orders", TYPE_BIGINT);
	rows_add(r, "revenue", TYPE_DECIMAL(38, 2));
	rows_add(r, "rate", TYPE_DOUBLE);
	rows_add(r, "ok", TYPE_BOOLEAN);
	rows_add(r, "raw", TYPE_BYTES);
	r->cols[0].i64[0] = INT64_C(1767225600000);
	r->cols[1].i64[0] = INT64_C(1767225600250);
	rows_set_str(r, 2, "m-1");
	r->cols[3].i64[0] = INT64_C(144126219108390099);
	r->cols[4].i128[0] = 10170;
	r->cols[5].f64[0] = 0.1;
	r->cols[6].u8[0] = 1;
	r->cols[7].str[0] = (struct weir_str){(const uint8_t *)"\xff\x00", 2, 0};
	return r;
}

static void test_row(void **state)
{
	(void)state;
	struct rows *r = sample();
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	assert_string_equal(encode(r, e),
			    "{\"window_start\":\"2026-01-01 00:00:00\",\"at\":\"2026-01-01 00:00:00.25Z\","
			    "\"merchant\":\"m-1\",\"orders\":144126219108390099,\"revenue\":101.70,"
			    "\"rate\":0.1,\"ok\":true,\"raw\":\"/wA=\"}");
	e->destroy(e);
	e = encoder(r, (struct weir_format_options){.timestamp_iso8601 = true});
	assert_non_null(
		strstr(encode(r, e), "\"window_start\":\"2026-01-01T00:00:00\",\"at\":\"2026-01-01T00:00:00.25Z\""));
	e->destroy(e);
	rows_fini(r);
}

static void test_nulls(void **state)
{
	(void)state;
	struct rows *r = sample();
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	for (uint32_t i = 0; i < r->field_count; i++)
		weir_col_set_null(&r->cols[i], 0);
	assert_string_equal(encode(r, e), "{\"window_start\":null,\"at\":null,\"merchant\":null,\"orders\":null,"
					  "\"revenue\":null,\"rate\":null,\"ok\":null,\"raw\":null}");
	e->destroy(e);
	e = encoder(r, (struct weir_format_options){.ignore_null_fields = true});
	assert_string_equal(encode(r, e), "{}");
	weir_col_clear_nulls(&r->cols[3]);
	weir_col_clear_nulls(&r->cols[6]);
	assert_string_equal(encode(r, e), "{\"orders\":144126219108390099,\"ok\":true}");
	e->destroy(e);
	rows_fini(r);
}

static void test_no_columns(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	assert_string_equal(encode(r, e), "{}");
	e->destroy(e);
	rows_fini(r);
}

/* No token but JSON's ever leaves: NaN and the infinities are null. */
static void test_numbers(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "d", TYPE_DOUBLE);
	rows_add(r, "f", TYPE_FLOAT);
	rows_add(r, "n", TYPE_DECIMAL(12, 2));
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	r->cols[0].f64[0] = NAN;
	r->cols[1].f64[0] = -INFINITY;
	r->cols[2].i64[0] = -525;
	assert_string_equal(encode(r, e), "{\"d\":null,\"f\":null,\"n\":-5.25}");
	r->cols[0].f64[0] = 1e21;
	r->cols[1].f64[0] = (double)0.1f;
	r->cols[2].i64[0] = 1;
	assert_string_equal(encode(r, e), "{\"d\":1e21,\"f\":0.1,\"n\":0.01}");
	r->cols[0].f64[0] = -1.7976931348623157e308;
	r->cols[1].f64[0] = 3;
	r->cols[2].i64[0] = 0;
	assert_string_equal(encode(r, e), "{\"d\":-1.7976931348623157e308,\"f\":3,\"n\":0.00}");
	e->destroy(e);
	rows_fini(r);
}

static void test_times_and_nested(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "day", TYPE_DATE);
	rows_add(r, "time", TYPE_TIME);
	rows_add(r, "us", TYPE_TIMESTAMP(6));
	rows_add(r, "list", (struct weir_type){.kind = WEIR_KIND_ARRAY, .field_count = 1, .fields = &TYPE_INT});
	rows_add(r, "nothing", (struct weir_type){.kind = WEIR_KIND_NULL});
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	r->cols[0].i64[0] = 19723;
	r->cols[1].i64[0] = 1;
	r->cols[2].i64[0] = -1;
	rows_set_str(r, 3, "[1,{\"a\":null}]");
	assert_string_equal(encode(r, e),
			    "{\"day\":\"2024-01-01\",\"time\":\"00:00:00.001\","
			    "\"us\":\"1969-12-31 23:59:59.999999\",\"list\":[1,{\"a\":null}],\"nothing\":null}");
	e->destroy(e);
	rows_fini(r);
}

static void test_constant_columns(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "c", TYPE_INT);
	rows_add(r, "v", TYPE_INT);
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	r->cols[0].is_const = true;
	r->cols[0].i64[0] = 9;
	r->cols[1].i64[700] = 8;
	r->out.bytes = 0;
	e->encode(e, r->cols, 700, &r->out);
	assert_int_equal(r->out.bytes, 13);
	assert_memory_equal(r->out.data, "{\"c\":9,\"v\":8}", 13);
	e->encode(e, r->cols, 700, &r->out); /* appends */
	assert_int_equal(r->out.bytes, 26);
	assert_memory_equal(r->out.data + 13, "{\"c\":9,\"v\":8}", 13);
	e->destroy(e);
	rows_fini(r);
}

static void test_names_are_escaped(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "a \"b\"\\\n", TYPE_INT);
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	assert_string_equal(encode(r, e), "{\"a \\\"b\\\"\\\\\\n\":0}");
	e->destroy(e);
	rows_fini(r);
}

/* Names longer than what is copied at once, and values that take all the room there was before members that need some.
 */
static void test_long_names_and_values(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	static const char name[] = "a_name_of_a_column_that_is_longer_than_two_of_the_steps_it_is_copied_in_by_far";
	static char text[5000], want[16384];
	rows_add(r, name, TYPE_BIGINT);
	rows_add(r, "t", TYPE_STRING);
	rows_add(r, name + 1, TYPE_STRING);
	rows_add(r, name + 2, TYPE_BIGINT);
	for (size_t bytes = 0; bytes < sizeof text - 1; bytes += 1 + bytes / 8) {
		struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
		memset(text, 'x', bytes);
		text[bytes] = 0;
		r->cols[0].i64[0] = INT64_MIN;
		rows_set_str(r, 1, text);
		rows_set_str(r, 2, "short");
		r->cols[3].i64[0] = 7;
		snprintf(want, sizeof want, "{\"%s\":-9223372036854775808,\"t\":\"%s\",\"%s\":\"short\",\"%s\":7}",
			 name, text, name + 1, name + 2);
		assert_string_equal(encode(r, e), want);
		e->destroy(e);
	}
	rows_fini(r);
}

/* Every byte that needs an escape, at every place of texts of every length up to a few SIMD blocks. */
static void test_escapes_at_every_place(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "s", TYPE_STRING);
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	for (uint32_t bytes = 1; bytes <= 50; bytes++) {
		for (uint32_t place = 0; place < bytes; place++) {
			static const uint8_t special[] = {0, 1, 8, 9, 10, 12, 13, 27, 31, 32, 127, '"', '\\', '/'};
			uint8_t *s = malloc(bytes);
			for (size_t k = 0; k < sizeof special; k++) {
				memset(s, 'x', bytes);
				s[place] = special[k];
				s[(place * 7 + 3) % bytes] = special[(k + place) % sizeof special];
				r->cols[0].str[0] = (struct weir_str){s, bytes, 0};
				const char *text = rows_encode(r, e);
				json_error_t err;
				json_t *js = json_loadb(text, r->out.bytes, JSON_ALLOW_NUL, &err);
				assert_non_null(js);
				const json_t *back = json_object_get(js, "s");
				assert_int_equal(json_string_length(back), bytes);
				assert_memory_equal(json_string_value(back), s, bytes);
				json_decref(js);
			}
			free(s);
		}
	}
	rows_set_str(r, 0, "\b\f\n\r\t\x01\x1f\x7f/\xe2\x80\xa8\xf0\x9f\x8e\x89");
	assert_string_equal(encode(r, e), "{\"s\":\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/\xe2\x80\xa8\xf0\x9f\x8e\x89\"}");
	r->cols[0].str[0] = (struct weir_str){(const uint8_t *)"", 0, 0};
	assert_string_equal(encode(r, e), "{\"s\":\"\"}");
	e->destroy(e);
	rows_fini(r);
}

/* Integers of one digit go a way of their own. */
static void test_integers(void **state)
{
	(void)state;
	static const struct {
		int64_t v;
		const char *text;
	} values[] = {{0, "{\"n\":0,\"m\":0}"},
		      {9, "{\"n\":9,\"m\":9}"},
		      {10, "{\"n\":10,\"m\":10}"},
		      {-1, "{\"n\":-1,\"m\":-1}"},
		      {-9, "{\"n\":-9,\"m\":-9}"},
		      {INT64_MIN, "{\"n\":-9223372036854775808,\"m\":-9223372036854775808}"},
		      {INT64_MAX, "{\"n\":9223372036854775807,\"m\":9223372036854775807}"}};
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "n", TYPE_BIGINT);
	rows_add(r, "m", TYPE_BIGINT);
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	for (size_t i = 0; i < WEIR_COUNT_OF(values); i++) {
		r->cols[0].i64[0] = r->cols[1].i64[0] = values[i].v;
		assert_string_equal(encode(r, e), values[i].text);
	}
	e->destroy(e);
	rows_fini(r);
}

static void test_comma_locale(void **state)
{
	(void)state;
	struct rows *r = sample();
	struct weir_encoder *e = encoder(r, (struct weir_format_options){0});
	if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL)
		(void)setlocale(LC_ALL, "de_DE.utf8");
	assert_non_null(strstr(rows_encode(r, e), "\"revenue\":101.70,\"rate\":0.1,"));
	(void)setlocale(LC_ALL, "C");
	e->destroy(e);
	rows_fini(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_row),
		cmocka_unit_test(test_nulls),
		cmocka_unit_test(test_no_columns),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_times_and_nested),
		cmocka_unit_test(test_constant_columns),
		cmocka_unit_test(test_names_are_escaped),
		cmocka_unit_test(test_long_names_and_values),
		cmocka_unit_test(test_escapes_at_every_place),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_comma_locale),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
