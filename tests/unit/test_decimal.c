/* test_decimal.c: unit tests of hotpath/expr/decimal.c: edges and the result types. Random operations:
 * tests/model/test_decimal.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "hotpath/expr/decimal.h"
#include "hotpath/format/number.h"

#define MAX38 (weir_decimal_pow10[38] - 1)

static void is(weir_i128 got, const char *want)
{
	char text[WEIR_NUMBER_TEXT_MAX + 1];
	text[weir_print_i128(got, text)] = 0;
	assert_string_equal(text, want);
}

static void test_powers(void **state)
{
	(void)state;
	weir_i128 v = 1;
	for (int i = 0; i <= 38; i++, v *= i <= 38 ? 10 : 1)
		assert_true(weir_decimal_pow10[i] == v);
}

static void test_sums(void **state)
{
	(void)state;
	weir_i128 v;
	assert_true(weir_decimal_add(150, 2, 25, 1, 2, &v)); /* 1.50 + 2.5 */
	is(v, "400");
	assert_true(weir_decimal_add(MAX38, 0, -MAX38, 0, 0, &v));
	is(v, "0");
	assert_false(weir_decimal_add(MAX38, 0, 1, 0, 0, &v));
	assert_false(weir_decimal_add(MAX38, 0, MAX38, 0, 0, &v)); /* beyond 128 bits */
	assert_false(weir_decimal_add(-MAX38, 0, -MAX38, 0, 0, &v));
	/* Rounded to a smaller scale: 0.05 + 0.00 at one digit. */
	assert_true(weir_decimal_add(5, 2, 0, 2, 1, &v));
	is(v, "1");
	assert_true(weir_decimal_add(-5, 2, 0, 2, 1, &v));
	is(v, "-1");
	assert_true(weir_decimal_add(1, 38, MAX38, 38, 6, &v));
	is(v, "1000000");
}

static void test_products(void **state)
{
	(void)state;
	weir_i128 v;
	assert_true(weir_decimal_mul(MAX38, 19, MAX38, 19, 0, &v)); /* (10^19 - 10^-19)^2 */
	is(v, "99999999999999999999999999999999999998");
	assert_false(weir_decimal_mul(MAX38, 18, MAX38, 19, 0, &v));
	assert_true(weir_decimal_mul(MAX38, 38, MAX38, 38, 6, &v)); /* just below 1 */
	is(v, "1000000");
	assert_true(weir_decimal_mul(MAX38, 38, MAX38, 38, 38, &v));
	is(v, "99999999999999999999999999999999999998");
	assert_true(weir_decimal_mul(-15, 1, 5, 1, 1, &v)); /* -0.75 */
	is(v, "-8");
}

static void test_quotients(void **state)
{
	(void)state;
	weir_i128 v;
	assert_true(weir_decimal_div(1, 0, 3, 0, 37, &v));
	is(v, "3333333333333333333333333333333333333");
	assert_true(weir_decimal_div(2, 0, 3, 0, 6, &v));
	is(v, "666667");
	assert_true(weir_decimal_div(-1, 0, 2, 0, 0, &v)); /* half away from zero */
	is(v, "-1");
	assert_false(weir_decimal_div(1, 0, 0, 0, 6, &v));
	assert_false(weir_decimal_div(MAX38, 0, 1, 38, 6, &v));
	assert_true(weir_decimal_div(1, 38, MAX38, 0, 6, &v));
	is(v, "0");
	assert_true(weir_decimal_div(MAX38, 0, MAX38, 38, 0, &v) == false);
	assert_true(weir_decimal_div(MAX38, 38, MAX38, 38, 10, &v));
	is(v, "10000000000");
}

static void test_rests(void **state)
{
	(void)state;
	weir_i128 v;
	assert_true(weir_decimal_mod(-75, 1, 2, 0, 1, &v)); /* -7.5 % 2 */
	is(v, "-15");
	assert_true(weir_decimal_mod(MAX38, 0, 7, 38, 38, &v));
	is(v, "2"); /* 10^38 is 2 modulo 7 */
	assert_true(weir_decimal_mod(1, 38, MAX38, 0, 38, &v));
	is(v, "1");
	assert_false(weir_decimal_mod(1, 0, 0, 0, 0, &v));
}

static void test_compare_across_scales(void **state)
{
	(void)state;
	assert_int_equal(weir_decimal_compare(10, 1, 100, 2), 0);
	assert_int_equal(weir_decimal_compare(MAX38, 38, 1, 0), -1);
	assert_int_equal(weir_decimal_compare(-MAX38, 38, -1, 0), 1);
	assert_int_equal(weir_decimal_compare(-1, 0, 1, 38), -1);
	assert_int_equal(weir_decimal_compare(0, 0, 0, 38), 0);
	assert_int_equal(weir_decimal_compare(MAX38, 0, MAX38, 38), 1);
}

static void test_to_double(void **state)
{
	(void)state;
	static const char *const texts[] = {"0",
					    "0.1",
					    "1.005",
					    "-123456789.987654321",
					    "9007199254740993",
					    "9007199254740992.5",
					    "9007199254740993.00000000000000000001",
					    "99999999999999999999999999999999999999",
					    "0.00000000000000000000000000000000000001",
					    "0.12345678901234567890123456789012345678",
					    "12345678901234567890.123456789012345678"};
	for (size_t i = 0; i < WEIR_COUNT_OF(texts); i++) {
		const char *point = strchr(texts[i], '.');
		int scale = point == NULL ? 0 : (int)strlen(point + 1);
		weir_i128 v;
		double want;
		assert_int_equal(weir_parse_decimal(texts[i], strlen(texts[i]), 38, scale, &v), WEIR_NUMBER_OK);
		assert_int_equal(weir_parse_double(texts[i], strlen(texts[i]), &want), WEIR_NUMBER_OK);
		assert_true(weir_decimal_to_double(v, scale) == want);
	}
}

static void type_is(struct weir_type t, int precision, int scale)
{
	assert_int_equal(t.kind, WEIR_KIND_DECIMAL);
	assert_int_equal(t.precision, precision);
	assert_int_equal(t.scale, scale);
}

/* What Flink derives. */
static void test_result_types(void **state)
{
	(void)state;
	struct weir_type a = weir_decimal_type(12, 2), b = weir_decimal_type(5, 4), wide = weir_decimal_type(38, 10);
	struct weir_type i = weir_decimal_type_of(&(struct weir_type){.kind = WEIR_KIND_INT});
	type_is(weir_decimal_type_add(&a, &b), 15, 4);
	type_is(weir_decimal_type_mul(&a, &b), 18, 6);
	type_is(weir_decimal_type_div(&a, &b), 22, 8);
	type_is(weir_decimal_type_mod(&a, &b), 5, 4);
	type_is(i, 10, 0);
	type_is(weir_decimal_type_add(&wide, &wide), 38, 9);
	type_is(weir_decimal_type_mul(&wide, &wide), 38, 6);
	type_is(weir_decimal_type_div(&wide, &wide), 38, 6);
	type_is(weir_decimal_type_mod(&i, &i), 10, 0);
	type_is(weir_decimal_type_round(&a, 1), 12, 1);
	type_is(weir_decimal_type_round(&a, 0), 11, 0);
	type_is(weir_decimal_type_round(&a, 5), 12, 2);
	type_is(weir_decimal_type_round(&a, -2), 11, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_powers),    cmocka_unit_test(test_sums),
		cmocka_unit_test(test_products),  cmocka_unit_test(test_quotients),
		cmocka_unit_test(test_rests),     cmocka_unit_test(test_compare_across_scales),
		cmocka_unit_test(test_to_double), cmocka_unit_test(test_result_types),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
