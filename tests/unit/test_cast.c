/* test_cast.c: unit tests of hotpath/expr/cast.c: every pair of types that converts, what fails, what costs nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>

#include "hotpath/expr/cast.h"
#include "tests/support/exprs.h"

#define CHECK(...)                                                                                                     \
	do {                                                                                                           \
		static const struct x_case cases[] = {__VA_ARGS__};                                                    \
		x_check(cases, WEIR_COUNT_OF(cases), false);                                                           \
	} while (0)

/* clang-format off */
static void test_numbers(void **state)
{
	(void)state;
	CHECK({"CAST(300 AS TINYINT)", "!expr"}, {"TRY_CAST(300 AS TINYINT)", "NULL"}, {"CAST(-128 AS TINYINT)", "-128"}, {"CAST(40000 AS SMALLINT)", "!expr"},
	      {"CAST(3000000000 AS INT)", "!expr"}, {"CAST(1.9 AS INT)", "1"}, {"CAST(-1.9 AS INT)", "-1"}, {"CAST(1.9e0 AS BIGINT)", "1"}, {"CAST(1e19 AS BIGINT)", "!expr"},
	      {"CAST(-9.3e18 AS BIGINT)", "!expr"}, {"CAST(0e0/0 AS INT)", "!expr"}, {"CAST(1e0/0 AS INT)", "!expr"}, {"CAST(5 AS DOUBLE)", "5"}, {"CAST(16777217 AS FLOAT)", "16777216"},
	      {"CAST(12.345 AS DECIMAL(4, 1))", "12.3"}, {"CAST(12.35 AS DECIMAL(4, 1))", "12.4"}, {"CAST(-12.35 AS DECIMAL(4, 1))", "-12.4"}, {"CAST(99.99 AS DECIMAL(3, 1))", "!expr"},
	      {"TRY_CAST(99.99 AS DECIMAL(3, 1))", "NULL"}, {"CAST(7 AS DECIMAL(38, 10))", "7.0000000000"}, {"CAST(0.1e0 AS DECIMAL(20, 18))", "0.100000000000000000"},
	      {"CAST(1e40 AS DECIMAL(38, 0))", "!expr"}, {"CAST(1e0/0 AS DECIMAL(38, 0))", "!expr"}, {"CAST(1.1 AS DOUBLE)", "1.1"}, {"CAST(TRUE AS INT)", "1"}, {"CAST(0 AS BOOLEAN)", "FALSE"},
	      {"CAST(0.5 AS BOOLEAN)", "TRUE"}, {"CAST(FALSE AS DECIMAL(3, 1))", "0.0"}, {"CAST(1e300 AS FLOAT)", "Infinity"}, {"CAST(NULL AS INT)", "NULL"}, {"CAST(1.005e0 AS DECIMAL(5, 2))", "1.01"});
}

static void test_from_text(void **state)
{
	(void)state;
	CHECK({"CAST(' 42 ' AS INT)", "42"}, {"CAST('+7' AS BIGINT)", "7"}, {"CAST('-9223372036854775808' AS BIGINT)", "-9223372036854775808"}, {"CAST('9223372036854775808' AS BIGINT)", "!expr"},
	      {"CAST('12.9' AS INT)", "12"}, {"CAST('12.x' AS INT)", "!expr"}, {"CAST('.' AS INT)", "!expr"}, {"CAST('' AS INT)", "!expr"}, {"CAST('- 1' AS INT)", "!expr"}, {"TRY_CAST('x' AS INT)", "NULL"},
	      {"CAST('300' AS TINYINT)", "!expr"}, {"CAST('19.95' AS DOUBLE)", "19.95"}, {"CAST('1e3' AS DOUBLE)", "1000"}, {"CAST('NaN' AS DOUBLE)", "NaN"}, {"CAST('-Infinity' AS DOUBLE)", "-Infinity"},
	      {"CAST('0x10' AS DOUBLE)", "!expr"}, {"CAST('0.1' AS FLOAT)", "0.1"}, {"CAST(' 1.005 ' AS DECIMAL(10, 2))", "1.01"}, {"CAST('1e3' AS DECIMAL(10, 2))", "1000.00"}, {"CAST('1e30' AS DECIMAL(10, 2))", "!expr"},
	      {"CAST('yes' AS BOOLEAN)", "TRUE"}, {"CAST('F' AS BOOLEAN)", "FALSE"}, {"CAST('0' AS BOOLEAN)", "FALSE"}, {"CAST('maybe' AS BOOLEAN)", "!expr"}, {"CAST('' AS BOOLEAN)", "!expr"},
	      {"CAST('2026-02-28' AS DATE)", "2026-02-28"}, {"CAST('2026-02-29' AS DATE)", "!expr"}, {"CAST('2026-02-28 10:00:00' AS DATE)", "2026-02-28"}, {"CAST('10:11:12.5' AS TIME(1))", "10:11:12.5"},
	      {"CAST('2026-02-28 10:11:12.3456' AS TIMESTAMP(6))", "2026-02-28 10:11:12.345600"}, {"CAST('2026-02-28' AS TIMESTAMP(3))", "2026-02-28 00:00:00.000"},
	      {"CAST('2026-02-28T10:11:12Z' AS TIMESTAMP_LTZ(3))", "2026-02-28 10:11:12.000"}, {"TRY_CAST('tomorrow' AS TIMESTAMP)", "NULL"});
}

static void test_to_text(void **state)
{
	(void)state;
	CHECK({"CAST(TRUE AS STRING)", "TRUE"}, {"CAST(-5 AS STRING)", "-5"}, {"CAST(1.50 AS STRING)", "1.50"}, {"CAST(0.05 AS STRING)", "0.05"}, {"CAST(1e0 AS STRING)", "1.0"}, {"CAST(-0e0 AS STRING)", "-0.0"}, {"CAST(1e7 AS STRING)", "1.0E7"}, {"CAST(9999999e0 AS STRING)", "9999999.0"}, {"CAST(1.25e-3 AS STRING)", "0.00125"}, {"CAST(9.5e-4 AS STRING)", "9.5E-4"}, {"CAST(123456789.5e0 AS STRING)", "1.234567895E8"}, {"CAST(CAST(100 AS FLOAT) AS STRING)", "100.0"}, {"CAST(0.1e0 AS STRING)", "0.1"},
	      {"CAST(1e21 AS STRING)", "1.0E21"}, {"CAST('hello' AS VARCHAR(3))", "hel"}, {"CAST('héllo' AS CHAR(2))", "hé"}, {"CAST('a' AS CHAR(3))", "a  "}, {"CAST(TRUE AS CHAR(5))", "TRUE "}, {"CAST('é' AS CHAR(2))", "é "}, {"CAST('' AS CHAR(2))", "  "}, {"CAST(12345 AS VARCHAR(3))", "123"},
	      {"CAST(DATE '0001-01-01' AS STRING)", "0001-01-01"}, {"CAST(TIME '01:02:03' AS STRING)", "01:02:03"}, {"CAST(TIMESTAMP '2026-01-01 00:00:00.120' AS STRING)", "2026-01-01 00:00:00.120"},
	      {"CAST(CAST('1969-12-31 23:59:59.9999' AS TIMESTAMP(4)) AS STRING)", "1969-12-31 23:59:59.9999"}, {"CAST(INTERVAL '90' MINUTE AS STRING)", "+0 01:30:00.000"}, {"CAST(INTERVAL '14' MONTH AS STRING)", "+1-02"},
	      {"CAST(X'c3a9' AS STRING)", "é"}, {"CAST(X'ff' AS STRING)", "!expr"}, {"CAST(CAST('é' AS BYTES) AS STRING)", "é"}, {"HEX(CAST('é' AS BYTES))", "C3A9"});
}

static void test_times(void **state)
{
	(void)state;
	CHECK({"CAST(TIMESTAMP '1969-12-31 23:59:59.999' AS DATE)", "1969-12-31"}, {"CAST(TIMESTAMP '1969-12-31 23:59:59.999' AS TIME(3))", "23:59:59.999"}, {"CAST(DATE '2026-01-02' AS TIMESTAMP(3))", "2026-01-02 00:00:00.000"},
	      {"CAST(TIMESTAMP '2026-01-02 00:00:00.999' AS TIMESTAMP(0))", "2026-01-02 00:00:00"}, {"CAST(TIMESTAMP '1969-12-31 23:59:59.999' AS TIMESTAMP(0))", "1969-12-31 23:59:59"},
	      {"CAST(TIMESTAMP '2026-01-02 00:00:00.999' AS TIMESTAMP(6))", "2026-01-02 00:00:00.999000"}, {"CAST(CAST('2026-01-02 00:00:00.999999' AS TIMESTAMP(6)) AS TIMESTAMP(3))", "2026-01-02 00:00:00.999"},
	      {"CAST(TIMESTAMP '2026-01-02 03:04:05' AS TIMESTAMP_LTZ(3))", "2026-01-02 03:04:05.000"}, {"CAST(TIME '10:00:00' AS TIMESTAMP(0))", "1970-01-01 10:00:00"}, {"CAST(INTERVAL '2' SECOND AS BIGINT)", "2000"},
	      {"CAST(5 AS TIMESTAMP(3))", "error"}, {"CAST(DATE '2026-01-01' AS INT)", "error"}, {"CAST(TIMESTAMP '2026-01-01 00:00:00' AS BIGINT)", "error"}, {"CAST(DATE '2026-01-01' AS TIME)", "error"}, {"CAST(X'00' AS INT)", "error"});
}
/* clang-format on */

/* The text of every type goes back to the same value. */
static void test_text_round_trip(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	const struct weir_expr *values[] = {
		x_int(&m, WEIR_KIND_BIGINT, INT64_MIN),
		x_int(&m, WEIR_KIND_BIGINT, INT64_MAX),
		x_dec(&m, 38, 20, -((weir_i128)1 << 120)),
		x_dec(&m, 18, 18, 1),
		x_double(&m, 5e-324),
		x_double(&m, 1.7976931348623157e308),
		x_bool(&m, false),
		x_typed(&m, t_kind(WEIR_KIND_DATE), -719162),
		x_typed(&m, t_time(WEIR_KIND_TIME, 3), 86399999),
		x_typed(&m, t_time(WEIR_KIND_TIMESTAMP, 6), -1),
		x_typed(&m, t_time(WEIR_KIND_TIMESTAMP_LTZ, 3), INT64_C(253402300799999)),
	};
	for (uint32_t i = 0; i < WEIR_COUNT_OF(values); i++) {
		const struct weir_expr *text = x_cast(&m, WEIR_EXPR_CAST, values[i], t_string());
		const struct weir_expr *back = x_cast(&m, WEIR_EXPR_CAST, text, values[i]->type);
		struct weir_program *pg;
		struct x_batch b;
		const struct weir_col *out;
		x_batch_init(&b, NULL, 0, 2);
		assert_int_equal(weir_program_create(&pg, &back, 1, NULL), WEIR_OK);
		weir_program_run(pg, NULL, &b.sel, &b.scratch, &out, &b.errors);
		assert_int_equal(b.errors.count, 0);
		size_t bytes = weir_phys_bytes(out->phys);
		assert_memory_equal((uint8_t *)out->data + bytes, &values[i]->value, bytes);
		weir_program_destroy(pg);
		x_batch_fini(&b);
	}
	weir_mem_fini(&m);
}

/* Milliseconds beyond what microseconds can say: a failure, no wrapped time. */
static void test_ticks_overflow(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct weir_type ms = t_time(WEIR_KIND_TIMESTAMP_LTZ, 3), us = t_time(WEIR_KIND_TIMESTAMP_LTZ, 6);
	const struct weir_expr *late = x_typed(&m, ms, INT64_C(9223372036854775));
	assert_string_equal(x_eval(&m, x_cast(&m, WEIR_EXPR_CAST, x_typed(&m, ms, INT64_MAX), us)), "!expr");
	assert_string_equal(x_eval(&m, x_cast(&m, WEIR_EXPR_TRY_CAST, x_typed(&m, ms, INT64_MIN), us)), "NULL");
	assert_string_not_equal(x_eval(&m, x_cast(&m, WEIR_EXPR_CAST, late, us)), "!expr");
	weir_mem_fini(&m);
}

/* What is called free really is the same bits, and what is called safe never fails on edges of the type. */
static void test_noop_and_safe(void **state)
{
	(void)state;
	struct weir_type i = t_kind(WEIR_KIND_INT), l = t_kind(WEIR_KIND_BIGINT), s = t_string(),
			 v5 = {.kind = WEIR_KIND_VARCHAR, .length = 5};
	struct weir_type d1 = t_decimal(10, 2), d2 = t_decimal(12, 2), d3 = t_decimal(12, 3), d4 = t_decimal(19, 2);
	assert_true(weir_cast_is_noop(&i, &l));
	assert_false(weir_cast_is_noop(&l, &i));
	assert_true(weir_cast_is_noop(&v5, &s));
	assert_false(weir_cast_is_noop(&s, &v5));
	assert_true(weir_cast_is_noop(&d1, &d2));
	assert_false(weir_cast_is_noop(&d2, &d1));
	assert_false(weir_cast_is_noop(&d1, &d3));
	assert_false(weir_cast_is_noop(&d1, &d4));
	assert_true(weir_cast_is_safe(&d1, &d3));
	assert_false(weir_cast_is_safe(&d2, &d3));
	assert_true(weir_cast_is_safe(&d1, &d4));
	assert_true(weir_cast_is_safe(&l, &s));
	assert_false(weir_cast_is_safe(&s, &l));
	assert_true(weir_cast_is_safe(&i, &d4));
	struct weir_type date = t_kind(WEIR_KIND_DATE), ts = t_time(WEIR_KIND_TIMESTAMP, 3),
			 ts6 = t_time(WEIR_KIND_TIMESTAMP, 6);
	assert_false(weir_cast_is_safe(&ts, &ts6)); /* a thousand times as many ticks */
	assert_true(weir_cast_is_safe(&ts6, &ts));
	assert_true(weir_cast_exists(&date, &ts));
	assert_false(weir_cast_exists(&date, &l));
	assert_false(weir_cast_exists(&l, &ts));
}

/* A host program's locale changes nothing. Skipped where no such locale is installed. */
static void test_locale_is_ignored(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "de_DE.utf8") == NULL)
		skip();
	assert_string_equal(x_sql(&m, "CAST(CAST('19.95' AS DOUBLE) AS STRING)"), "19.95");
	assert_string_equal(x_sql(&m, "CAST('19.95' AS DECIMAL(10, 2))"), "19.95");
	assert_string_equal(x_sql(&m, "UPPER('i')"), "I");
	setlocale(LC_ALL, "C");
	weir_mem_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),         cmocka_unit_test(test_from_text),
		cmocka_unit_test(test_to_text),         cmocka_unit_test(test_times),
		cmocka_unit_test(test_text_round_trip), cmocka_unit_test(test_ticks_overflow),
		cmocka_unit_test(test_noop_and_safe),   cmocka_unit_test(test_locale_is_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
