/* test_changelog.c: rows with their op around them; nothing is read in these formats. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/core/diag.h"
#include "tests/support/rows.h"

static void test_forms(void **state)
{
	(void)state;
	static const struct {
		enum weir_format_kind kind;
		const char *op, *text;
	} cases[] = {
		{WEIR_FORMAT_CHANGELOG, "+I", "{\"data\":{\"k\":\"a\",\"n\":7},\"op\":\"+I\"}"},
		{WEIR_FORMAT_CHANGELOG, "-U", "{\"data\":{\"k\":\"a\",\"n\":7},\"op\":\"-U\"}"},
		{WEIR_FORMAT_CHANGELOG, "+U", "{\"data\":{\"k\":\"a\",\"n\":7},\"op\":\"+U\"}"},
		{WEIR_FORMAT_CHANGELOG, "-D", "{\"data\":{\"k\":\"a\",\"n\":7},\"op\":\"-D\"}"},
		{WEIR_FORMAT_DEBEZIUM, "+I", "{\"before\":null,\"after\":{\"k\":\"a\",\"n\":7},\"op\":\"c\"}"},
		{WEIR_FORMAT_DEBEZIUM, "+U", "{\"before\":null,\"after\":{\"k\":\"a\",\"n\":7},\"op\":\"c\"}"},
		{WEIR_FORMAT_DEBEZIUM, "-U", "{\"before\":{\"k\":\"a\",\"n\":7},\"after\":null,\"op\":\"d\"}"},
		{WEIR_FORMAT_DEBEZIUM, "-D", "{\"before\":{\"k\":\"a\",\"n\":7},\"after\":null,\"op\":\"d\"}"},
	};
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "k", TYPE_STRING);
	rows_add(r, "n", TYPE_BIGINT);
	rows_add(r, "op", TYPE_STRING);
	rows_set_str(r, 0, "a");
	r->cols[1].i64[0] = 7;
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_format_options o = {.kind = cases[i].kind};
		struct weir_encoder *e = NULL;
		assert_int_equal(weir_encoder_create(&e, &o, r->fields, r->field_count, NULL), WEIR_OK);
		rows_set_str(r, 2, cases[i].op);
		assert_string_equal(rows_encode(r, e), cases[i].text);
		e->destroy(e);
	}
	rows_fini(r);
}

static void test_options_are_those_of_json(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	struct weir_format_options o = {.kind = WEIR_FORMAT_CHANGELOG, .ignore_null_fields = true};
	struct weir_encoder *e = NULL;
	rows_add(r, "k", TYPE_STRING);
	rows_add(r, "op", TYPE_STRING);
	weir_col_set_null(&r->cols[0], 0);
	rows_set_str(r, 1, "-D");
	assert_int_equal(weir_encoder_create(&e, &o, r->fields, r->field_count, NULL), WEIR_OK);
	assert_string_equal(rows_encode(r, e), "{\"data\":{},\"op\":\"-D\"}");
	e->destroy(e);
	rows_fini(r);
}

static void test_is_not_read(void **state)
{
	(void)state;
	struct weir_format_options o = {.kind = WEIR_FORMAT_DEBEZIUM};
	struct weir_decoder *d = NULL;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_decoder_create(&d, &o, NULL, 0, NULL, 0, false, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "'debezium-json' is for the values of sinks"));
	weir_diag_destroy(dg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_options_are_those_of_json),
		cmocka_unit_test(test_is_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
