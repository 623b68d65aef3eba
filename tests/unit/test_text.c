/* test_text.c: one value as text, both ways; the same under a comma locale. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <string.h>

#include "tests/support/rows.h"

/* Parses s as t and prints it again; the reason's name in angle brackets when refused. */
static const char *through(struct weir_type t, const char *s)
{
	static char text[4096];
	struct weir_col c;
	struct weir_buf out = {0};
	weir_col_init(&c, weir_type_phys(&t));
	enum weir_reason r = weir_text_parse(&t, s, strlen(s), &c, 5);
	if (r == WEIR_REASON_NONE) {
		weir_text_print(&t, &c, 5, false, &out);
		weir_buf_put_byte(&out, '\0');
		(void)strcpy(text, (const char *)out.data);
	} else {
		(void)strcpy(text, "<");
		(void)strcat(strcat(text, weir_reason_name(r)), ">");
	}
	weir_buf_fini(&out);
	weir_col_fini(&c);
	return text;
}

static void test_integers(void **state)
{
	(void)state;
	assert_string_equal(through(TYPE_TINYINT, "127"), "127");
	assert_string_equal(through(TYPE_TINYINT, "128"), "<range>");
	assert_string_equal(through(TYPE_TINYINT, "-128"), "-128");
	assert_string_equal(through(TYPE_SMALLINT, "-32769"), "<range>");
	assert_string_equal(through(TYPE_INT, "2147483648"), "<range>");
	assert_string_equal(through(TYPE_INT, " 42\t"), "42");
	assert_string_equal(through(TYPE_BIGINT, "144126219108390099"), "144126219108390099");
	assert_string_equal(through(TYPE_BIGINT, "1e2"), "100");
	assert_string_equal(through(TYPE_BIGINT, "1.7"), "<type>");
	assert_string_equal(through(TYPE_BIGINT, ""), "<type>");
	assert_string_equal(through(TYPE_BIGINT, "4 2"), "<type>");
}

static void test_other_numbers(void **state)
{
	(void)state;
	assert_string_equal(through(TYPE_DECIMAL(12, 2), "101.7"), "101.70");
	assert_string_equal(through(TYPE_DECIMAL(38, 10), "-1234567890123456789012345678.5"),
			    "-1234567890123456789012345678.5000000000");
	assert_string_equal(through(TYPE_DECIMAL(4, 2), "100"), "<range>");
	assert_string_equal(through(TYPE_DOUBLE, "19.95"), "19.95");
	assert_string_equal(through(TYPE_DOUBLE, "1e309"), "<range>");
	assert_string_equal(through(TYPE_DOUBLE, "1e21"), "1e21");
	assert_string_equal(through(TYPE_DOUBLE, "NaN"), "NaN");
	assert_string_equal(through(TYPE_DOUBLE, "-Infinity"), "-Infinity");
	assert_string_equal(through(TYPE_DOUBLE, "+Infinity"), "Infinity");
	assert_string_equal(through(TYPE_DOUBLE, "Infinit"), "<type>");
	assert_string_equal(through(TYPE_DOUBLE, "1,5"), "<type>");
	assert_string_equal(through(TYPE_FLOAT, "0.1"), "0.1");
	assert_string_equal(through(TYPE_FLOAT, "1e39"), "<range>");
}

static void test_boolean(void **state)
{
	(void)state;
	static const char *const yes[] = {"true", "TRUE", "t", "Yes", "y", "1", " true "};
	static const char *const no[] = {"false", "False", "f", "no", "N", "0"};
	for (size_t i = 0; i < WEIR_COUNT_OF(yes); i++)
		assert_string_equal(through(TYPE_BOOLEAN, yes[i]), "true");
	for (size_t i = 0; i < WEIR_COUNT_OF(no); i++)
		assert_string_equal(through(TYPE_BOOLEAN, no[i]), "false");
	assert_string_equal(through(TYPE_BOOLEAN, "tru"), "<type>");
	assert_string_equal(through(TYPE_BOOLEAN, "truee"), "<type>");
	assert_string_equal(through(TYPE_BOOLEAN, ""), "<type>");
}

static void test_strings(void **state)
{
	(void)state;
	assert_string_equal(through(TYPE_STRING, " a b "), " a b ");
	assert_string_equal(through(TYPE_STRING, ""), "");
	assert_string_equal(through(TYPE_STRING, "\xff"), "<utf8>");
	assert_string_equal(through(TYPE_STRING, "\xed\xa0\x80"), "<utf8>");
	assert_string_equal(through(TYPE_VARCHAR(3), "abc"), "abc");
	assert_string_equal(through(TYPE_VARCHAR(3), "abcd"), "<range>");
	assert_string_equal(through(TYPE_VARCHAR(3), "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"),
			    "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
	assert_string_equal(through(TYPE_BYTES, "any \xff"), "YW55IP8=");
	struct weir_type array = {.kind = WEIR_KIND_ARRAY};
	assert_string_equal(through(array, "[1]"), "<type>");
}

static void test_times(void **state)
{
	(void)state;
	assert_string_equal(through(TYPE_DATE, "2024-02-29"), "2024-02-29");
	assert_string_equal(through(TYPE_DATE, "2023-02-29"), "<range>");
	assert_string_equal(through(TYPE_DATE, "tomorrow"), "<type>");
	assert_string_equal(through(TYPE_TIME, "12:34:56.789"), "12:34:56.789");
	assert_string_equal(through(TYPE_TIMESTAMP(3), "2026-01-01 00:00:00"), "2026-01-01 00:00:00");
	assert_string_equal(through(TYPE_TIMESTAMP(3), "2026-01-01T10:00:00.250+02:00"), "2026-01-01 08:00:00.25");
	assert_string_equal(through(TYPE_TIMESTAMP(6), "2026-01-01 00:00:00.000001"), "2026-01-01 00:00:00.000001");
	assert_string_equal(through(TYPE_LTZ(3), "2026-01-01 00:00:00"), "2026-01-01 00:00:00Z");
	assert_string_equal(through(TYPE_TIMESTAMP(3), "2026-01-01 25:00:00"), "<range>");
	struct weir_type t = TYPE_LTZ(3);
	struct weir_col c;
	struct weir_buf out = {0};
	weir_col_init(&c, WEIR_PHYS_I64);
	c.i64[0] = 14999;
	c.is_const = true;
	weir_text_print(&t, &c, 900, true, &out);
	assert_int_equal(out.bytes, 24);
	assert_memory_equal(out.data, "1970-01-01T00:00:14.999Z", 24);
	weir_buf_fini(&out);
	weir_col_fini(&c);
}

static void test_intervals(void **state)
{
	(void)state;
	struct weir_type ms = {.kind = WEIR_KIND_INTERVAL_MS}, month = {.kind = WEIR_KIND_INTERVAL_MONTH};
	struct weir_col c;
	struct weir_buf out = {0};
	weir_col_init(&c, WEIR_PHYS_I64);
	c.i64[0] = 90061001;
	c.i64[1] = -5;
	c.i64[2] = -14;
	weir_text_print(&ms, &c, 0, false, &out);
	weir_buf_put_byte(&out, '|');
	weir_text_print(&ms, &c, 1, false, &out);
	weir_buf_put_byte(&out, '|');
	weir_text_print(&month, &c, 2, false, &out);
	weir_buf_put_byte(&out, '\0');
	assert_string_equal((const char *)out.data, "+1 01:01:01.001|-0 00:00:00.005|-1-02");
	assert_string_equal(through(ms, "5"), "<type>");
	weir_buf_fini(&out);
	weir_col_fini(&c);
}

/* A host program may set any locale before it uses the library. */
static void test_comma_locale(void **state)
{
	(void)state;
	static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "nl_NL.UTF-8"};
	for (size_t i = 0; i < WEIR_COUNT_OF(names); i++) {
		if (setlocale(LC_ALL, names[i]) != NULL)
			break;
	}
	assert_string_equal(through(TYPE_DOUBLE, "19.95"), "19.95");
	assert_string_equal(through(TYPE_DECIMAL(12, 2), "1025.26"), "1025.26");
	assert_string_equal(through(TYPE_FLOAT, "2.5e-7"), "2.5e-7");
	assert_string_equal(through(TYPE_DOUBLE, "19,95"), "<type>");
	assert_string_equal(through(TYPE_TIMESTAMP(3), "2026-01-01 00:00:00.5"), "2026-01-01 00:00:00.5");
	(void)setlocale(LC_ALL, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),     cmocka_unit_test(test_other_numbers),
		cmocka_unit_test(test_boolean),      cmocka_unit_test(test_strings),
		cmocka_unit_test(test_times),        cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_comma_locale),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
