/* test_format.c: names of formats and of their options, what is said about wrong ones, dispatch. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/core/diag.h"
#include "tests/support/rows.h"

static void test_kinds(void **state)
{
	(void)state;
	static const char *const names[] = {"json", "csv", "raw", "kafka", "packed", "windowed"};
	for (int i = 0; i < 6; i++) {
		enum weir_format_kind k = (enum weir_format_kind)99;
		assert_int_equal(weir_format_kind_parse(&k, names[i], NULL), WEIR_OK);
		assert_int_equal(k, i);
	}
	enum weir_format_kind k = WEIR_FORMAT_RAW;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_format_kind_parse(&k, "jsn", &dg), WEIR_E_CONF);
	assert_int_equal(k, WEIR_FORMAT_RAW);
	assert_non_null(strstr(weir_diag_report(dg), "did you mean 'json'?"));
	weir_diag_destroy(dg);
}

static enum weir_err set(struct weir_format_options *o, const char *name, const char *value)
{
	return weir_format_option_set(o, name, name, value, NULL);
}

static void test_options(void **state)
{
	(void)state;
	struct weir_format_options o = {0};
	assert_int_equal(set(&o, "json.ignore-parse-errors", "true"), WEIR_OK);
	assert_true(o.ignore_parse_errors);
	assert_int_equal(set(&o, "json.ignore-parse-errors", "FALSE"), WEIR_OK);
	assert_false(o.ignore_parse_errors);
	assert_int_equal(set(&o, "json.fail-on-missing-field", "true"), WEIR_OK);
	assert_true(o.fail_on_missing_field);
	assert_int_equal(set(&o, "json.timestamp-format.standard", "ISO-8601"), WEIR_OK);
	assert_true(o.timestamp_iso8601);
	assert_int_equal(set(&o, "json.timestamp-format.standard", "SQL"), WEIR_OK);
	assert_false(o.timestamp_iso8601);
	assert_int_equal(set(&o, "json.encode.ignore-null-fields", "true"), WEIR_OK);
	assert_true(o.ignore_null_fields);
	assert_int_equal(set(&o, "json.depth.max", "12"), WEIR_OK);
	assert_int_equal(o.depth_max, 12);
	assert_int_equal(set(&o, "csv.field-delimiter", "\\t"), WEIR_OK);
	assert_int_equal(o.csv_delimiter, '\t');
	assert_int_equal(set(&o, "csv.field-delimiter", ";"), WEIR_OK);
	assert_int_equal(o.csv_delimiter, ';');
	assert_int_equal(set(&o, "csv.escape-character", "\\"), WEIR_OK);
	assert_int_equal(o.csv_escape, '\\');
	assert_int_equal(set(&o, "csv.escape-character", "\\\\"), WEIR_OK);
	assert_int_equal(o.csv_escape, '\\');
	assert_int_equal(set(&o, "csv.null-literal", "n/a"), WEIR_OK);
	assert_string_equal(o.csv_null_literal, "n/a");
	assert_int_equal(set(&o, "raw.endianness", "little-endian"), WEIR_OK);
	assert_true(o.raw_little_endian);
	assert_int_equal(set(&o, "raw.charset", "utf-8"), WEIR_OK);
	assert_int_equal(set(&o, "csv.timestamp-unit", "us"), WEIR_OK);
	assert_int_equal(o.unit_per_second, 1000000);
}

static void test_wrong_options(void **state)
{
	(void)state;
	static const char *const wrong[][2] = {
		{"json.ignore-parse-errors", "yes"},
		{"csv.field-delimiter", ""},
		{"csv.field-delimiter", ",,"},
		{"csv.field-delimiter", "\xc3\xbc"},
		{"csv.quote-character", "\n"},
		{"json.depth.max", "0"},
		{"json.depth.max", "-1"},
		{"json.depth.max", "1e99"},
		{"json.depth.max", "many"},
		{"raw.charset", "ISO-8859-1"},
		{"raw.endianness", "middle"},
		{"json.timestamp-unit", "ns"},
		{"json.timestamp-format.standard", "RFC"},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(wrong); i++) {
		struct weir_format_options o = {0};
		struct weir_diag *dg = NULL;
		if (weir_format_option_set(&o, wrong[i][0], wrong[i][0], wrong[i][1], &dg) != WEIR_E_CONF)
			fail_msg("took %s = %s", wrong[i][0], wrong[i][1]);
		assert_non_null(strstr(weir_diag_text(dg), wrong[i][0]));
		assert_non_null(strstr(weir_diag_text(dg), "it takes"));
		weir_diag_destroy(dg);
	}
	struct weir_format_options o = {0};
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_format_option_set(&o, "json.ignore-parse-error", "json.ignore-parse-error", "true", &dg),
			 WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_report(dg), "did you mean 'json.ignore-parse-errors'?"));
	weir_diag_destroy(dg);
}

static void test_dispatch(void **state)
{
	(void)state;
	for (int k = WEIR_FORMAT_JSON; k <= WEIR_FORMAT_WINDOWED; k++) {
		struct rows *r = calloc(1, sizeof *r);
		struct weir_format_options o = {.kind = (enum weir_format_kind)k};
		struct weir_decoder *d = NULL;
		struct weir_encoder *e = NULL;
		struct weir_diag *dg = NULL;
		r->pad = k == WEIR_FORMAT_JSON ? WEIR_PAYLOAD_PAD : 0;
		rows_add(r, "v", TYPE_BIGINT);
		const struct weir_path_step step = {.name = "v", .name_bytes = 1};
		r->fields[0].path = &step;
		r->fields[0].path_steps = 1;
		if (k == WEIR_FORMAT_WINDOWED) {
			assert_int_equal(weir_decoder_create(&d, &o, r->fields, 1, r->fields, 1, false, &dg),
					 WEIR_E_CONF);
			weir_diag_destroy(dg);
			assert_int_equal(weir_encoder_create(&e, &o, r->fields, 1, NULL), WEIR_E_CONF);
			rows_fini(r);
			continue;
		}
		assert_int_equal(weir_decoder_create(&d, &o, r->fields, 1, r->fields, 1, false, NULL), WEIR_OK);
		assert_int_equal(weir_encoder_create(&e, &o, r->fields, 1, NULL), WEIR_OK);
		/* Every format reads what it wrote. */
		r->cols[0].i64[0] = INT64_C(-144126219108390099);
		r->out.bytes = 0;
		e->encode(e, r->cols, 0, &r->out);
		r->cols[0].i64[0] = 0;
		assert_int_equal(rows_decode(r, d, r->out.data, r->out.bytes), WEIR_REASON_NONE);
		assert_true(r->cols[0].i64[0] == INT64_C(-144126219108390099));
		d->destroy(d);
		e->destroy(e);
		rows_fini(r);
	}
	struct rows *r = calloc(1, sizeof *r);
	struct weir_decoder *d = NULL;
	const struct weir_format_options both = {.ignore_parse_errors = true, .fail_on_missing_field = true};
	rows_add(r, "v", TYPE_BIGINT);
	assert_int_equal(weir_decoder_create(&d, &both, r->fields, 1, r->fields, 1, false, NULL), WEIR_E_CONF);
	rows_fini(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_dispatch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
