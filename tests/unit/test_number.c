/* test_number.c: numbers as text, both ways. strtod and printf are the twins here, under the C locale: the code under
 * test never calls them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/format/number.h"

static uint64_t seed = UINT64_C(88172645463325252);
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * UINT64_C(0x2545f4914f6cdd1d);
}

/* Long multiplication and comparison, enough to check the table of powers. */
struct wide {
	uint32_t limb[80];
	int count;
};

static void wide_mul(struct wide *w, uint32_t m)
{
	uint64_t carry = 0;
	for (int i = 0; i < w->count; i++) {
		carry += (uint64_t)w->limb[i] * m;
		w->limb[i] = (uint32_t)carry;
		carry >>= 32;
	}
	if (carry)
		w->limb[w->count++] = (uint32_t)carry;
}

static int wide_bits(const struct wide *w)
{
	return 32 * w->count - __builtin_clz(w->limb[w->count - 1]);
}

static int wide_bit(const struct wide *w, int i)
{
	return i < 0 || i / 32 >= w->count ? 0 : (int)(w->limb[i / 32] >> (i % 32)) & 1;
}

static int wide_compare(const struct wide *a, const struct wide *b)
{
	for (int i = 79; i >= 0; i--) {
		uint32_t x = i < a->count ? a->limb[i] : 0, y = i < b->count ? b->limb[i] : 0;
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

static void wide_sub(struct wide *a, const struct wide *b)
{
	int64_t borrow = 0;
	for (int i = 0; i < a->count; i++) {
		borrow += (int64_t)a->limb[i] - (i < b->count ? b->limb[i] : 0);
		a->limb[i] = (uint32_t)borrow;
		borrow >>= 32;
	}
	while (a->count > 1 && a->limb[a->count - 1] == 0)
		a->count--;
}

static void test_table_of_powers(void **state)
{
	(void)state;
	struct wide p = {.limb = {1}, .count = 1};
	for (int k = 0; k <= -WEIR_POW5_MIN; k++) {
		int bits = wide_bits(&p);
		if (k <= WEIR_POW5_MAX) {
			const uint64_t *e = weir_pow5[k - WEIR_POW5_MIN];
			for (int i = 0; i < 128; i++)
				assert_int_equal((e[i / 64] >> (63 - i % 64)) & 1, wide_bit(&p, bits - 1 - i));
		}
		if (k > 0) {
			/* 2^(127 + bits) / 5^k, bit by bit. */
			const uint64_t *e = weir_pow5[-k - WEIR_POW5_MIN];
			struct wide rest = {.count = 1};
			rest.limb[(bits - 1) / 32] = UINT32_C(1) << ((bits - 1) % 32);
			rest.count = (bits - 1) / 32 + 1;
			for (int i = 0; i < 128; i++) {
				wide_mul(&rest, 2);
				int bit = wide_compare(&rest, &p) >= 0;
				if (bit)
					wide_sub(&rest, &p);
				assert_int_equal((e[i / 64] >> (63 - i % 64)) & 1, bit);
			}
		}
		wide_mul(&p, 5);
	}
}

static const char *print(double d)
{
	static char buf[WEIR_NUMBER_TEXT_MAX + 1];
	size_t n = weir_print_double(d, buf);
	assert_true(n <= WEIR_NUMBER_TEXT_MAX);
	buf[n] = '\0';
	return buf;
}

static void check_double_text(const char *s, size_t bytes)
{
	double expected = strtod(s, NULL), d = -7;
	enum weir_number_result r = weir_parse_double(s, bytes, &d);
	if (isinf(expected) ? r != WEIR_NUMBER_RANGE : (r != WEIR_NUMBER_OK || memcmp(&d, &expected, sizeof d) != 0))
		fail_msg("double %s: %a is not %a", s, d, expected);
	float expected_f = strtof(s, NULL), f = -7;
	r = weir_parse_float(s, bytes, &f);
	if (isinf(expected_f) ? r != WEIR_NUMBER_RANGE
			      : (r != WEIR_NUMBER_OK || memcmp(&f, &expected_f, sizeof f) != 0))
		fail_msg("float %s: %a is not %a", s, (double)f, (double)expected_f);
}

static void test_double_layout(void **state)
{
	(void)state;
	assert_string_equal(print(0), "0");
	assert_string_equal(print(-0.0), "-0");
	assert_string_equal(print(5), "5");
	assert_string_equal(print(-12.5), "-12.5");
	assert_string_equal(print(0.1), "0.1");
	assert_string_equal(print(1e20), "100000000000000000000");
	assert_string_equal(print(123456789012345680000.0), "123456789012345680000");
	assert_string_equal(print(1e21), "1e21");
	assert_string_equal(print(1.5e300), "1.5e300");
	assert_string_equal(print(1e-6), "0.000001");
	assert_string_equal(print(1.25e-6), "0.00000125");
	assert_string_equal(print(9.9e-7), "9.9e-7");
	assert_string_equal(print(5e-324), "5e-324");
	assert_string_equal(print(1.7976931348623157e308), "1.7976931348623157e308");
	assert_string_equal(print(2.2250738585072014e-308), "2.2250738585072014e-308");
	assert_string_equal(print(9007199254740993.0), "9007199254740992");
	assert_string_equal(print(1e23), "1e23");
	assert_string_equal(print(0.016666666666666666), "0.016666666666666666");
	assert_string_equal(print(NAN), "NaN");
	assert_string_equal(print(-INFINITY), "-Infinity");
}

static int significant_digits(const char *s)
{
	int n = 0, zeros = 0;
	for (; *s != '\0' && *s != 'e'; s++) {
		if (*s < '0' || *s > '9' || (n == 0 && *s == '0'))
			continue;
		zeros = *s == '0' ? zeros + 1 : 0;
		n++;
	}
	return n - zeros;
}

static void test_doubles_round_trip_in_the_fewest_digits(void **state)
{
	(void)state;
	for (int i = 0; i < 300000; i++) {
		uint64_t bits = rnd();
		double d, back = 0;
		if (i % 4 == 1)
			bits &= ~UINT64_C(0xffffffff);
		if (i % 8 == 3)
			bits = (bits & UINT64_C(0x800fffffffffffff)) | (rnd() % 3) << 52; /* subnormal or nearly */
		if (i % 8 == 4)
			bits &= UINT64_C(0xfff0000000000000); /* powers of two: the uneven interval */
		memcpy(&d, &bits, sizeof d);
		if (i % 8 == 5)
			d = (double)(int64_t)(rnd() >> (rnd() % 60)) / (double)weir_pow10_u64[rnd() % 8];
		if (!isfinite(d))
			continue;
		const char *s = print(d);
		if (weir_parse_double(s, strlen(s), &back) != WEIR_NUMBER_OK || memcmp(&back, &d, sizeof d) != 0)
			fail_msg("%a: %s reads as %a", d, s, back);
		if (i % 8 != 0 || d == 0)
			continue;
		char shortest[64];
		int n = 1;
		for (; n < 17; n++) {
			(void)snprintf(shortest, sizeof shortest, "%.*e", n - 1, d);
			if (strtod(shortest, NULL) == d)
				break;
		}
		if (significant_digits(s) > n)
			fail_msg("%a: %s is longer than %s", d, s, shortest);
	}
}

static void test_floats_round_trip(void **state)
{
	(void)state;
	char buf[WEIR_NUMBER_TEXT_MAX + 1];
	for (uint64_t i = 0; i < 400000; i++) {
		uint32_t bits = (uint32_t)(i * 10741); /* spread over all exponents */
		float f, back = 0;
		memcpy(&f, &bits, sizeof f);
		if (!isfinite(f))
			continue;
		size_t n = weir_print_float(f, buf);
		if (weir_parse_float(buf, n, &back) != WEIR_NUMBER_OK || memcmp(&back, &f, sizeof f) != 0)
			fail_msg("%a: %.*s reads as %a", (double)f, (int)n, buf, (double)back);
		buf[n] = '\0';
		assert_true(significant_digits(buf) <= 9 || f == rintf(f)); /* integers are printed whole */
	}
	buf[weir_print_float(0.1f, buf)] = '\0';
	assert_string_equal(buf, "0.1");
	buf[weir_print_float(16777216.0f, buf)] = '\0';
	assert_string_equal(buf, "16777216");
	buf[weir_print_float(3.4028235e38f, buf)] = '\0';
	assert_string_equal(buf, "3.4028235e38");
}

static void test_random_texts_agree_with_strtod(void **state)
{
	(void)state;
	for (int i = 0; i < 300000; i++) {
		char s[128];
		int digits = 1 + (int)(rnd() % 40), at = 0;
		if (rnd() & 1)
			s[at++] = '-';
		for (int j = 0; j < digits; j++) {
			s[at++] = (char)('0' + rnd() % 10);
			if (j == i % 7)
				s[at++] = '.';
		}
		if (i % 3 != 0)
			at += snprintf(s + at, sizeof s - (size_t)at, "e%d", (int)(rnd() % 700) - 360);
		s[at] = '\0';
		check_double_text(s, (size_t)at);
	}
}

/* Exact halfway points between two doubles and their neighbours by one in the 700th digit: where only exact arithmetic
 * decides. */
static void test_halfway_points(void **state)
{
	(void)state;
	static char s[2000];
	for (int i = 0; i < 1500; i++) {
		long double h = ldexpl((long double)((rnd() >> 11) | 1) + (long double)(UINT64_C(1) << 53),
				       (int)(rnd() % 1800) - 1000);
		if (i % 3 == 0)
			h = ldexpl((long double)(2 * (rnd() >> (12 + i % 40)) + 1), -1075);
		int n = snprintf(s, sizeof s, "%.1100Le", h);
		check_double_text(s, (size_t)n);
		s[1 + i % 900] = '1';
		if (s[0] != '.' && s[1] == '1')
			s[1] = '.';
		check_double_text(s, (size_t)n);
	}
	static const char *const edge[] = {
		"179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
		"977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
		"854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
		"342711559699508093042880177904174497791",
		"179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
		"977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273"
		"854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704"
		"342711559699508093042880177904174497792",
	};
	for (size_t k = 0; k < WEIR_COUNT_OF(edge); k++)
		check_double_text(edge[k], strlen(edge[k]));
	check_double_text("2.4703282292062327208e-324", 26);
	check_double_text("2.4703282292062328e-324", 23);
}

static void test_extremes(void **state)
{
	(void)state;
	double d = 1;
	assert_int_equal(weir_parse_double("1e309", 5, &d), WEIR_NUMBER_RANGE);
	assert_int_equal(weir_parse_double("-1e999999999999999999999", 24, &d), WEIR_NUMBER_RANGE);
	assert_true(d == 1);
	assert_int_equal(weir_parse_double("1e-999999999999999999999", 24, &d), WEIR_NUMBER_OK);
	assert_true(d == 0);
	assert_int_equal(weir_parse_double("0e999999999", 11, &d), WEIR_NUMBER_OK);
	assert_true(d == 0);
	assert_int_equal(weir_parse_double("-0", 2, &d), WEIR_NUMBER_OK);
	assert_true(d == 0 && signbit(d));
	/* A long run of zeros on either side cancels out. */
	static char s[4000];
	memset(s, '0', sizeof s);
	s[0] = '1';
	memcpy(s + 3001, "e-3000", 6);
	assert_int_equal(weir_parse_double(s, 3007, &d), WEIR_NUMBER_OK);
	assert_true(d == 1);
	memset(s, '0', sizeof s);
	s[1] = '.';
	memcpy(s + 3000, "1e2999", 6);
	assert_int_equal(weir_parse_double(s, 3006, &d), WEIR_NUMBER_OK);
	assert_true(d == 1);
}

static void test_grammar(void **state)
{
	(void)state;
	static const char *const bad[] = {"",   "-",    "+",    ".",   "-.",  "e5",  "1e",  "1e+", "1.2.3", "1 ",
					  " 1", "0x10", "1e5x", "--1", "+-1", "1,5", "NaN", "inf", "1e5.0", "\xd9\xa1"};
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		double d;
		int64_t v;
		weir_i128 w;
		if (weir_parse_double(bad[i], strlen(bad[i]), &d) != WEIR_NUMBER_MALFORMED ||
		    weir_parse_i64(bad[i], strlen(bad[i]), &v) != WEIR_NUMBER_MALFORMED ||
		    weir_parse_decimal(bad[i], strlen(bad[i]), 10, 2, &w) != WEIR_NUMBER_MALFORMED)
			fail_msg("took '%s'", bad[i]);
	}
	static const char *const good[] = {"1", "+1", "1.", "1.0", "01", "1e0", "10e-1", "0.1E+1", "1.000e00"};
	for (size_t i = 0; i < WEIR_COUNT_OF(good); i++) {
		int64_t v = 0;
		assert_int_equal(weir_parse_i64(good[i], strlen(good[i]), &v), WEIR_NUMBER_OK);
		assert_int_equal(v, 1);
	}
}

static enum weir_number_result i64(const char *s, int64_t *v)
{
	return weir_parse_i64(s, strlen(s), v);
}

static void test_integers(void **state)
{
	(void)state;
	int64_t v = 0;
	assert_int_equal(i64("9223372036854775807", &v), WEIR_NUMBER_OK);
	assert_true(v == INT64_MAX);
	assert_int_equal(i64("-9223372036854775808", &v), WEIR_NUMBER_OK);
	assert_true(v == INT64_MIN);
	assert_int_equal(i64("9223372036854775808", &v), WEIR_NUMBER_RANGE);
	assert_int_equal(i64("-9223372036854775809", &v), WEIR_NUMBER_RANGE);
	assert_int_equal(i64("99999999999999999999999999999999999999999", &v), WEIR_NUMBER_RANGE);
	assert_int_equal(i64("144126219108390099", &v), WEIR_NUMBER_OK);
	assert_true(v == INT64_C(144126219108390099));
	assert_int_equal(i64("1e18", &v), WEIR_NUMBER_OK);
	assert_true(v == INT64_C(1000000000000000000));
	assert_int_equal(i64("1e19", &v), WEIR_NUMBER_RANGE);
	assert_int_equal(i64("1e2", &v), WEIR_NUMBER_OK);
	assert_int_equal(v, 100);
	assert_int_equal(i64("1.7", &v), WEIR_NUMBER_MALFORMED);
	assert_int_equal(i64("17e-1", &v), WEIR_NUMBER_MALFORMED);
	assert_int_equal(i64("0.000000000000000000000000000001", &v), WEIR_NUMBER_MALFORMED);
	assert_int_equal(i64("12345678901234567890123e-21", &v), WEIR_NUMBER_MALFORMED);
	assert_int_equal(i64("12000000000000000000000e-21", &v), WEIR_NUMBER_OK);
	assert_int_equal(v, 12);
	assert_int_equal(i64("00000000000000000000000000000000000000000000000000000000000042", &v), WEIR_NUMBER_OK);
	assert_int_equal(v, 42);
	/* Every length around the fast path, both ways. */
	for (int i = 0; i < 200000; i++) {
		char buf[32];
		int64_t a = (int64_t)(rnd() >> (rnd() % 64)), b;
		if (i & 1)
			a = (int64_t)(0 - (uint64_t)a);
		size_t n = weir_print_i64(a, buf);
		char twin[32];
		assert_int_equal(snprintf(twin, sizeof twin, "%lld", (long long)a), n);
		assert_memory_equal(buf, twin, n);
		assert_int_equal(weir_parse_i64(buf, n, &b), WEIR_NUMBER_OK);
		assert_true(a == b);
	}
	char buf[32];
	assert_int_equal(weir_print_u64(UINT64_MAX, buf), 20);
	assert_memory_equal(buf, "18446744073709551615", 20);
	for (int k = 0; k < 20; k++) {
		assert_int_equal(weir_print_u64(weir_pow10_u64[k], buf), k + 1);
		if (k > 0)
			assert_int_equal(weir_print_u64(weir_pow10_u64[k] - 1, buf), k);
	}
	assert_int_equal(weir_print_u64(0, buf), 1);
}

/* The text of a DECIMAL(p, s) read and printed again, or what is wrong. */
static const char *decimal(const char *s, int precision, int scale)
{
	static char buf[WEIR_NUMBER_TEXT_MAX + 1];
	weir_i128 v = 0;
	switch (weir_parse_decimal(s, strlen(s), precision, scale, &v)) {
	case WEIR_NUMBER_MALFORMED:
		return "malformed";
	case WEIR_NUMBER_RANGE:
		return "range";
	default:
		break;
	}
	size_t n = weir_print_decimal(v, scale, buf);
	buf[n] = '\0';
	if (precision <= 18) {
		char narrow[WEIR_NUMBER_TEXT_MAX];
		assert_int_equal(weir_print_decimal_i64((int64_t)v, scale, narrow), n);
		assert_memory_equal(narrow, buf, n);
	}
	return buf;
}

static void test_decimals(void **state)
{
	(void)state;
	assert_string_equal(decimal("101.7", 12, 2), "101.70");
	assert_string_equal(decimal("-5.25", 12, 2), "-5.25");
	assert_string_equal(decimal("1e3", 12, 2), "1000.00");
	assert_string_equal(decimal("0.01", 12, 2), "0.01");
	assert_string_equal(decimal("-0.005", 12, 2), "-0.01");
	assert_string_equal(decimal("0.005", 12, 2), "0.01");
	assert_string_equal(decimal("0.0049999999999999999999999999999999999", 12, 2), "0.00");
	assert_string_equal(decimal("2.675", 12, 2), "2.68");
	assert_string_equal(decimal("1e-30", 12, 2), "0.00");
	assert_string_equal(decimal("0.5", 3, 0), "1");
	assert_string_equal(decimal("999.4", 3, 0), "999");
	assert_string_equal(decimal("999.5", 3, 0), "range");
	assert_string_equal(decimal("1000", 3, 0), "range");
	assert_string_equal(decimal("9999999999.994", 12, 2), "9999999999.99");
	assert_string_equal(decimal("9999999999.995", 12, 2), "range");
	assert_string_equal(decimal("1e400", 38, 0), "range");
	assert_string_equal(decimal("0e400", 38, 0), "0");
	assert_string_equal(decimal("99999999999999999999999999999999999999", 38, 0),
			    "99999999999999999999999999999999999999");
	assert_string_equal(decimal("-99999999999999999999999999999999999999", 38, 0),
			    "-99999999999999999999999999999999999999");
	assert_string_equal(decimal("100000000000000000000000000000000000000", 38, 0), "range");
	assert_string_equal(decimal("99999999999999999999999999999999999999.5", 38, 0), "range");
	assert_string_equal(decimal("0.99999999999999999999999999999999999999", 38, 38),
			    "0.99999999999999999999999999999999999999");
	assert_string_equal(decimal("1", 38, 38), "range");
	assert_string_equal(decimal("12345678901234567890.123456789012345678", 38, 18),
			    "12345678901234567890.123456789012345678");
	assert_string_equal(decimal("12345678901234567890123e-3", 38, 2), "12345678901234567890.12");
	assert_string_equal(decimal("12345678901234567895", 38, 0), "12345678901234567895");
	assert_string_equal(decimal("1234567890123456789500e-3", 38, 0), "1234567890123456790");
	assert_string_equal(decimal("x", 12, 2), "malformed");
	char buf[WEIR_NUMBER_TEXT_MAX];
	assert_int_equal(weir_print_i128(-(weir_i128)weir_pow10_i128(38), buf), 40);
	assert_int_equal(weir_print_decimal_i64(INT64_MIN, 2, buf), 21);
	assert_memory_equal(buf, "-92233720368547758.08", 21);
	assert_int_equal(weir_print_decimal_i64(7, 30, buf), 32);
	assert_memory_equal(buf, "0.000000000000000000000000000007", 32);
}

/* DECIMAL against digit strings cut and rounded by hand. */
static void test_decimals_against_digits(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		int whole = 1 + (int)(rnd() % 15), frac = (int)(rnd() % 30), scale = (int)(rnd() % 10);
		char s[64];
		int at = 0;
		for (int k = 0; k < whole; k++)
			s[at++] = (char)('0' + rnd() % 10);
		s[at++] = '.';
		for (int k = 0; k < frac; k++)
			s[at++] = (char)('0' + rnd() % 10);
		weir_i128 expected = 0, v = -1;
		for (int k = 0; k < whole; k++)
			expected = expected * 10 + (s[k] - '0');
		for (int k = 0; k < scale; k++)
			expected = expected * 10 + (k < frac ? s[whole + 1 + k] - '0' : 0);
		if (scale < frac && s[whole + 1 + scale] >= '5')
			expected++;
		assert_int_equal(weir_parse_decimal(s, (size_t)at, 38, scale, &v), WEIR_NUMBER_OK);
		assert_true(v == expected);
	}
}

static void test_units(void **state)
{
	(void)state;
	int64_t t = 0;
	assert_true(weir_unit_to_ticks(5, 1, 1, &t) && t == 5000);
	assert_true(weir_unit_to_ticks(5, 0, 1000, &t) && t == 5000);
	assert_true(weir_unit_to_ticks(-1, 1000000, 1, &t) && t == -1);
	assert_true(weir_unit_to_ticks(1999, 1000000, 1, &t) && t == 1);
	assert_true(weir_unit_to_ticks(7, 1000000, 1000, &t) && t == 7);
	assert_false(weir_unit_to_ticks(INT64_MAX, 1, 1, &t));
	assert_int_equal(t, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_of_powers),
		cmocka_unit_test(test_double_layout),
		cmocka_unit_test(test_doubles_round_trip_in_the_fewest_digits),
		cmocka_unit_test(test_floats_round_trip),
		cmocka_unit_test(test_random_texts_agree_with_strtod),
		cmocka_unit_test(test_halfway_points),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_grammar),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_decimals),
		cmocka_unit_test(test_decimals_against_digits),
		cmocka_unit_test(test_units),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
