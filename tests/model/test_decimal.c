/* test_decimal.c: decimal.c against sums, products and long division over decimal digits, one at a time. The seed is
 * printed; give one as the first argument to repeat a run. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hotpath/expr/decimal.h"

#define DIGITS 160

/* digit[0] is the lowest. */
struct big {
	uint8_t digit[DIGITS];
};

static uint64_t seed;

static uint64_t next(void)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = seed;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Any number of digits alike, so that small and large meet; often edges. */
static weir_i128 random_decimal(void)
{
	int digits = (int)(next() % 39);
	weir_i128 v = 0;
	uint64_t kind = next() % 8;
	for (int i = 0; i < digits; i++)
		v = v * 10 + (kind == 0 ? 9 : kind == 1 ? (i == 0 ? 1 : 0) : kind == 2 ? 5 : (int)(next() % 10));
	return next() % 2 ? -v : v;
}

static struct big big_of(weir_i128 v)
{
	struct big b = {{0}};
	weir_u128 u = v < 0 ? -(weir_u128)v : (weir_u128)v;
	for (int i = 0; u != 0; i++, u /= 10)
		b.digit[i] = (uint8_t)(u % 10);
	return b;
}

static struct big shift(struct big a, int by)
{
	struct big b = {{0}};
	for (int i = 0; i < DIGITS; i++)
		if (i - by >= 0 && i - by < DIGITS)
			b.digit[i] = a.digit[i - by];
	return b;
}

static int compare(const struct big *a, const struct big *b)
{
	for (int i = DIGITS - 1; i >= 0; i--)
		if (a->digit[i] != b->digit[i])
			return a->digit[i] < b->digit[i] ? -1 : 1;
	return 0;
}

static struct big add(struct big a, struct big b)
{
	int carry = 0;
	for (int i = 0; i < DIGITS; i++) {
		int d = a.digit[i] + b.digit[i] + carry;
		a.digit[i] = (uint8_t)(d % 10);
		carry = d / 10;
	}
	return a;
}

static struct big sub(struct big a, struct big b)
{
	int borrow = 0;
	for (int i = 0; i < DIGITS; i++) {
		int d = a.digit[i] - b.digit[i] - borrow;
		borrow = d < 0;
		a.digit[i] = (uint8_t)(d + borrow * 10);
	}
	return a;
}

static struct big mul(struct big a, struct big b)
{
	struct big r = {{0}};
	for (int i = 0; i < 80; i++)
		for (int k = 0; k < b.digit[i]; k++)
			r = add(r, shift(a, i));
	return r;
}

static struct big divide(struct big a, struct big b, struct big *rest)
{
	struct big q = {{0}}, r = {{0}};
	for (int i = DIGITS - 1; i >= 0; i--) {
		r = shift(r, 1);
		r.digit[0] = a.digit[i];
		while (compare(&r, &b) >= 0) {
			r = sub(r, b);
			q.digit[i]++;
		}
	}
	*rest = r;
	return q;
}

/* a / 10^n, half up. */
static struct big round_off(struct big a, int n)
{
	struct big one = {{1}}, r = shift(a, -n);
	return n > 0 && n <= DIGITS && a.digit[n - 1] >= 5 ? add(r, one) : r;
}

static bool take(struct big a, bool negative, weir_i128 *out)
{
	weir_i128 v = 0;
	for (int i = DIGITS - 1; i >= 38; i--)
		if (a.digit[i] != 0)
			return false;
	for (int i = 37; i >= 0; i--)
		v = v * 10 + a.digit[i];
	*out = negative ? -v : v;
	return true;
}

static bool model(char op, weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out)
{
	struct big x = big_of(a), y = big_of(b), r, rest;
	int m = s1 > s2 ? s1 : s2;
	if ((op == '/' || op == '%') && b == 0)
		return false;
	if (op == '*') {
		r = mul(x, y);
		return take(s1 + s2 >= s ? round_off(r, s1 + s2 - s) : shift(r, s - s1 - s2), (a < 0) != (b < 0), out);
	}
	if (op == '/') {
		x = shift(x,
			  s + s2 + 1); /* one digit more than wanted rounds right: what follows cannot reach a half */
		y = shift(y, s1);
		return take(round_off(divide(x, y, &rest), 1), (a < 0) != (b < 0), out);
	}
	x = shift(x, m - s1);
	y = shift(y, m - s2);
	bool negative = a < 0;
	if (op == '%') {
		(void)divide(x, y, &r);
	} else if ((a < 0) == (b < 0)) {
		r = add(x, y);
	} else if (compare(&x, &y) >= 0) {
		r = sub(x, y);
	} else {
		r = sub(y, x);
		negative = b < 0;
	}
	return take(m >= s ? round_off(r, m - s) : shift(r, s - m), negative, out);
}

static void test_against_digits(void **state)
{
	(void)state;
	uint64_t first = seed;
	print_message("seed %llu\n", (unsigned long long)first);
	for (int i = 0; i < 20000; i++) {
		weir_i128 a = random_decimal(), b = random_decimal(), got = 0, want = 0;
		int s1 = (int)(next() % 39), s2 = (int)(next() % 39), s = (int)(next() % 39);
		char op = "+*/%"[next() % 4];
		if (op == '%')
			s = s1 > s2 ? s1 : s2;
		bool ok = op == '+'   ? weir_decimal_add(a, s1, b, s2, s, &got)
			  : op == '*' ? weir_decimal_mul(a, s1, b, s2, s, &got)
			  : op == '/' ? weir_decimal_div(a, s1, b, s2, s, &got)
				      : weir_decimal_mod(a, s1, b, s2, s, &got);
		bool fits = model(op, a, s1, b, s2, s, &want);
		if (ok != fits || (ok && got != want))
			fail_msg("seed %llu, step %d: op %c scales %d %d %d", (unsigned long long)first, i, op, s1, s2,
				 s);
		struct big x = shift(big_of(a), 38 - s1), y = shift(big_of(b), 38 - s2);
		int c = a < 0 && b < 0 ? compare(&y, &x) : a < 0 && b >= 0 ? -1 : a >= 0 && b < 0 ? 1 : compare(&x, &y);
		if (weir_decimal_compare(a, s1, b, s2) != c)
			fail_msg("seed %llu, step %d: compare", (unsigned long long)first, i);
	}
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_digits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
