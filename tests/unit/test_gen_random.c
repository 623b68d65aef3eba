/* test_gen_random.c: the integer distributions behind `weir gen`, against libm and known values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "tools/weir/gen.h"

static void test_log2_agrees_with_libm(void **state)
{
	(void)state;
	struct weir_gen_rng r = weir_gen_rng_at(1, 2, 3);
	for (int i = 0; i < 10000; i++) {
		uint64_t x = weir_gen_u64(&r) >> (i % 64);
		if (x == 0)
			continue;
		double ours = (double)weir_gen_log2(x) / 4294967296.0;
		if (fabs(ours - log2((double)x)) > 1e-9)
			fail_msg("log2(%llu) is not %.12f", (unsigned long long)x, ours);
	}
	assert_int_equal(weir_gen_log2(1), 0);
	assert_int_equal(weir_gen_log2(UINT64_C(1) << 40), UINT64_C(40) << 32);
}

static void test_exponential_has_its_mean_and_tail(void **state)
{
	(void)state;
	uint64_t sum = 0;
	int beyond = 0;
	for (uint64_t i = 0; i < 100000; i++) {
		struct weir_gen_rng r = weir_gen_rng_at(7, 1, i);
		uint64_t v = weir_gen_exponential(&r, 600000);
		sum += v;
		beyond += v > 3600000; /* e^-6 = 0.00248 */
	}
	assert_in_range(sum / 100000, 594000, 606000);
	assert_in_range(beyond, 200, 300);
}

/* Shares of the first and the last of n subjects against 1 / (k + 1)^z. */
static void check_zipf(uint32_t n, uint64_t z_micro)
{
	struct weir_gen_zipf zf;
	weir_gen_zipf_init(&zf, n, z_micro);
	double z = (double)z_micro / 1e6;
	double total = 0;
	for (uint32_t k = 0; k < n; k++)
		total += pow(k + 1, -z);
	/* The alias tables hold each subject's exact share: what its slot keeps and what other slots give it. */
	double share[3] = {0};
	uint32_t watched[3] = {0, 1, n - 1};
	for (uint32_t slot = 0; slot < n; slot++) {
		double keep = zf.keep == NULL ? 1 : (zf.keep[slot] + 1.0) / 4294967296.0;
		for (int w = 0; w < 3; w++) {
			share[w] += slot == watched[w] ? keep / n : 0;
			share[w] += zf.keep != NULL && zf.other[slot] == watched[w] ? (1 - keep) / n : 0;
		}
	}
	for (int w = 0; w < 3; w++) {
		double expected = pow(watched[w] + 1, -z) / total;
		if (fabs(share[w] - expected) > expected * 1e-4 + 1e-9)
			fail_msg("n %u, z %f: share of %u is %.9f, not %.9f", n, z, watched[w], share[w], expected);
	}
	for (int i = 0; i < 1000; i++) {
		struct weir_gen_rng r = weir_gen_rng_at(5, 6, (uint64_t)i);
		assert_true(weir_gen_zipf_draw(&zf, &r) < n);
	}
	weir_gen_zipf_fini(&zf);
}

static void test_zipf_shares(void **state)
{
	(void)state;
	check_zipf(1000, 0);
	check_zipf(1000, 1000000);
	check_zipf(10000, 990000);
	check_zipf(50, 2500000);
	check_zipf(2, 500000);
}

static void test_below_covers_its_range(void **state)
{
	(void)state;
	int seen[7] = {0};
	struct weir_gen_rng r = weir_gen_rng_at(1, 1, 1);
	for (int i = 0; i < 7000; i++)
		seen[weir_gen_below(&r, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 850, 1150);
}

static void test_digits(void **state)
{
	(void)state;
	static const struct {
		uint64_t v;
		uint32_t width;
		const char *text;
	} cases[] = {{0, 1, "0"},
		     {0, 3, "000"},
		     {9, 1, "9"},
		     {10, 1, "10"},
		     {99, 4, "0099"},
		     {100, 1, "100"},
		     {1234567, 3, "1234567"},
		     {UINT64_MAX, 1, "18446744073709551615"}};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		uint8_t text[32];
		*weir_gen_digits(text, cases[i].v, cases[i].width) = 0;
		assert_string_equal((const char *)text, cases[i].text);
	}
}

/* Streams of different purposes and neighbours share nothing. */
static void test_streams_differ(void **state)
{
	(void)state;
	struct weir_gen_rng a = weir_gen_rng_at(1, 1, 0);
	struct weir_gen_rng b = weir_gen_rng_at(1, 2, 0);
	struct weir_gen_rng c = weir_gen_rng_at(1, 1, 1);
	struct weir_gen_rng again = weir_gen_rng_at(1, 1, 0);
	uint64_t x = weir_gen_u64(&a);
	assert_true(x != weir_gen_u64(&b));
	assert_true(x != weir_gen_u64(&c));
	assert_true(x == weir_gen_u64(&again));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log2_agrees_with_libm),
		cmocka_unit_test(test_exponential_has_its_mean_and_tail),
		cmocka_unit_test(test_zipf_shares),
		cmocka_unit_test(test_below_covers_its_range),
		cmocka_unit_test(test_digits),
		cmocka_unit_test(test_streams_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
