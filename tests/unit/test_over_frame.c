/* test_over_frame.c: functions over the rows of a key against a twin that looks at every frame anew, with random
 * frames, values (NULL among them) and equal times, the rows coming in pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "hotpath/state/over_frame.h"

enum { ROWS = 40 };

static uint64_t rng = 1;

static uint32_t below(uint32_t n)
{
	rng += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = rng;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ (z >> 31)) >> 11) % n;
}

static struct weir_over_value value[ROWS], fallback[ROWS];
static int64_t row_time[ROWS];
static char text[ROWS][8];

static void make_rows(bool strings)
{
	int64_t at = 100;
	for (uint32_t i = 0; i < ROWS; i++) {
		at += below(3) == 0 ? 0 : below(20);
		row_time[i] = at;
		value[i] = (struct weir_over_value){.null = below(5) == 0};
		snprintf(text[i], sizeof text[i], "s%u", below(12));
		if (strings)
			value[i].str = (struct weir_str){(const uint8_t *)text[i], (uint32_t)strlen(text[i]), 0};
		else
			value[i].i64 = (int64_t)below(50) - 25;
		fallback[i] = (struct weir_over_value){.i64 = -1000 - (int64_t)i};
	}
}

static int compare(bool strings, uint32_t a, uint32_t b)
{
	if (strings)
		return strcmp(text[a], text[b]);
	return (value[a].i64 > value[b].i64) - (value[a].i64 < value[b].i64);
}

/* Whether row k is in the frame of row i. */
static bool is_in(const struct weir_over_fn *fn, uint32_t i, uint32_t k)
{
	if (fn->rows)
		return k <= i && (fn->preceding < 0 || (int64_t)k >= (int64_t)i - fn->preceding);
	return row_time[k] <= row_time[i] && (fn->preceding < 0 || row_time[k] >= row_time[i] - fn->preceding);
}

static void check(const struct weir_over_fn *fn, bool strings, uint32_t i, const struct weir_over_value *got)
{
	int64_t sum = 0, count = 0, all = 0, best = -1;
	for (uint32_t k = 0; k < ROWS; k++) {
		if (!is_in(fn, i, k))
			continue;
		all++;
		if (value[k].null)
			continue;
		count++;
		sum += strings ? 0 : value[k].i64;
		bool take = best < 0;
		if (fn->agg.kind == WEIR_AGG_MIN)
			take = take || compare(strings, k, (uint32_t)best) < 0;
		else if (fn->agg.kind == WEIR_AGG_MAX)
			take = take || compare(strings, k, (uint32_t)best) > 0;
		else if (fn->agg.kind == WEIR_AGG_LAST_VALUE)
			take = true;
		best = take ? (int64_t)k : best;
	}
	switch (fn->agg.kind) {
	case WEIR_AGG_COUNT_STAR:
		assert_int_equal(got->i64, all);
		return;
	case WEIR_AGG_COUNT:
		assert_int_equal(got->i64, count);
		return;
	case WEIR_AGG_SUM:
	case WEIR_AGG_AVG:
		assert_int_equal(got->null, count == 0);
		if (count != 0)
			assert_int_equal(got->i64, fn->agg.kind == WEIR_AGG_SUM ? sum : sum / count);
		return;
	default:
		assert_int_equal(got->null, best < 0);
		if (best >= 0 && strings)
			assert_true(got->str.bytes == strlen(text[best]) &&
				    memcmp(got->str.data, text[best], got->str.bytes) == 0);
		else if (best >= 0)
			assert_int_equal(got->i64, value[best].i64);
		return;
	}
}

static void one_case(struct weir_over_frames *of)
{
	static const char *const names[] = {"COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"};
	uint32_t which = below(8);
	bool strings = which != 2 && which != 3 && below(3) == 0;
	struct weir_type bigint = {.kind = WEIR_KIND_BIGINT}, string = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	struct weir_over_fn fn = {.kind = WEIR_OVER_AGGREGATE, .arg = which == 0 ? -1 : 0, .fallback = -1};
	assert_int_equal(weir_agg_resolve(&fn.agg, names[which], false,
					  which == 0 ? NULL
					  : strings  ? &string
						     : &bigint,
					  NULL),
			 WEIR_OK);
	fn.rows = below(2);
	fn.preceding = below(4) == 0 ? -1 : (int64_t)below(fn.rows ? 8 : 60);
	make_rows(strings);
	struct weir_over_sum sum = {.v = {.null = true}};
	struct weir_over_value out[ROWS];
	for (uint32_t first = 0, count; first < ROWS; first = count) {
		count = first + 1 + below(10);
		count = count < ROWS ? count : ROWS;
		while (count < ROWS && row_time[count] == row_time[count - 1]) /* rows of one time never part */
			count++;
		struct weir_over_rows r = {
			.count = count, .first = first, .time = row_time, .arg = which == 0 ? NULL : value};
		weir_over_compute(of, &fn, &r, &sum, out + first);
	}
	for (uint32_t i = 0; i < ROWS; i++)
		check(&fn, strings, i, &out[i]);
}

static void test_frames_against_a_twin(void **state)
{
	(void)state;
	struct weir_over_frames of;
	weir_over_frames_init(&of);
	for (rng = 1; rng < 4000; rng++) {
		uint64_t seed = rng;
		one_case(&of);
		rng = seed;
	}
	assert_int_equal(of.errors, 0);
	weir_over_frames_fini(&of);
}

static void test_lag_goes_back_by_rows(void **state)
{
	(void)state;
	struct weir_over_frames of;
	struct weir_over_value out[ROWS];
	weir_over_frames_init(&of);
	make_rows(false);
	for (uint32_t offset = 0; offset < 6; offset++) {
		struct weir_over_fn fn = {
			.kind = WEIR_OVER_LAG, .arg = 0, .fallback = offset % 2 ? 1 : -1, .offset = offset};
		struct weir_over_rows r = {
			.count = ROWS, .time = row_time, .arg = value, .fallback = offset % 2 ? fallback : NULL};
		weir_over_compute(&of, &fn, &r, NULL, out);
		for (uint32_t i = 0; i < ROWS; i++) {
			if (i >= offset)
				assert_memory_equal(&out[i], &value[i - offset], sizeof out[i]);
			else if (offset % 2)
				assert_int_equal(out[i].i64, fallback[i].i64);
			else
				assert_true(out[i].null);
		}
	}
	weir_over_frames_fini(&of);
}

/* A sum that leaves its type is NULL and counted, and comes back when the frame has moved on. */
static void test_a_sum_that_does_not_fit(void **state)
{
	(void)state;
	struct weir_over_frames of;
	struct weir_type bigint = {.kind = WEIR_KIND_BIGINT};
	struct weir_over_fn fn = {.kind = WEIR_OVER_AGGREGATE, .fallback = -1, .rows = true, .preceding = 1};
	struct weir_over_value v[4] = {{.i64 = INT64_MAX}, {.i64 = 1}, {.i64 = 2}, {.null = true}}, out[4];
	int64_t at[4] = {1, 2, 3, 4};
	struct weir_over_rows r = {.count = 4, .time = at, .arg = v};
	assert_int_equal(weir_agg_resolve(&fn.agg, "SUM", false, &bigint, NULL), WEIR_OK);
	weir_over_frames_init(&of);
	weir_over_compute(&of, &fn, &r, NULL, out);
	assert_int_equal(out[0].i64, INT64_MAX);
	assert_true(out[1].null);
	assert_int_equal(out[2].i64, 3);
	assert_int_equal(out[3].i64, 2);
	assert_int_equal(of.errors, 1);
	weir_over_frames_fini(&of);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_against_a_twin),
		cmocka_unit_test(test_lag_goes_back_by_rows),
		cmocka_unit_test(test_a_sum_that_does_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
