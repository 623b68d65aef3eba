/* test_window.c: window arithmetic, against stepping through starts one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/time/window.h"

static void test_first_start_by_rule(void **state)
{
	(void)state;
	static const int64_t shapes[][2] = {{10, 10}, {10, 5}, {10, 4}, {10, 3}, {7, 1}, {10000, 3000}};
	for (uint32_t i = 0; i < WEIR_COUNT_OF(shapes); i++) {
		int64_t size = shapes[i][0], advance = shapes[i][1];
		for (int64_t ts = 0; ts < 4 * size; ts++) {
			int64_t by_rule = weir_max_i64(0, ts - size + advance) / advance * advance;
			assert_int_equal(weir_window_first(ts, size, advance, 0), by_rule);
			/* Windows [s, s + size) that hold ts, s >= 0: counted. */
			uint32_t count = 0, stepped = 0;
			for (int64_t s = 0; s <= ts; s += advance)
				count += ts < s + size;
			for (int64_t s = by_rule; s <= weir_window_last(ts, advance, 0); s += advance)
				stepped++;
			assert_int_equal(stepped, count);
		}
	}
}

static void test_hop_across_zero(void **state)
{
	(void)state;
	static const int64_t ts[] = {0, 1, 2999, 3000};
	static const uint32_t count[] = {1, 1, 1, 2}; /* clipped at 0 */
	for (int i = 0; i < 4; i++) {
		int64_t first = weir_window_first(ts[i], 10000, 3000, 0), last = weir_window_last(ts[i], 3000, 0);
		assert_int_equal((last - first) / 3000 + 1, count[i]);
	}
	/* Below zero nothing is clipped: 3 or 4 windows each, as anywhere else. */
	assert_int_equal(weir_window_first(-1, 10000, 10000, 0), -10000);
	assert_int_equal(weir_window_first(-1, 10000, 3000, 0), -9000);
	assert_int_equal(weir_window_last(-1, 3000, 0), -3000);
}

static void test_offset(void **state)
{
	(void)state;
	assert_int_equal(weir_window_offset(6, 24), 6);
	assert_int_equal(weir_window_offset(24, 24), 0);
	assert_int_equal(weir_window_offset(-6, 24), 18);
	/* Every timestamp has a window, and the first of all starts above -advance. */
	for (int64_t offset = 0; offset < 5; offset++) {
		for (int64_t ts = 0; ts < 40; ts++) {
			int64_t first = weir_window_first(ts, 12, 5, offset);
			assert_true(first > -5 && first <= ts && ts < first + 12);
			assert_int_equal(weir_window_offset(first - offset, 5), 0);
		}
	}
}

static void test_closing(void **state)
{
	(void)state;
	assert_false(weir_window_is_closed(10000, 5000, 14999));
	assert_true(weir_window_is_closed(10000, 5000, 15000));
	assert_int_equal(weir_window_close_time(10000, 5000), 15000);
	assert_false(weir_window_is_closed(10000, 5000, INT64_MIN));
	assert_false(weir_session_is_closed(5, 5, 0, 10));
	assert_true(weir_session_is_closed(4, 5, 0, 10));
	assert_true(weir_session_is_closed(5, 5, 0, weir_session_close_time(5, 5, 0)));
	assert_false(weir_session_is_closed(5, 5, 0, weir_session_close_time(5, 5, 0) - 1));
}

static void test_panes(void **state)
{
	(void)state;
	assert_int_equal(weir_gcd(10, 4), 2);
	assert_int_equal(weir_gcd(10, 10), 10);
	assert_int_equal(weir_gcd(7, 3), 1);
	/* A pane never straddles the start or end of a window. */
	for (int64_t ts = 0; ts < 60; ts++) {
		int64_t pane = weir_window_last(ts, 2, 0);
		for (int64_t s = weir_window_first(ts, 10, 4, 0); s <= weir_window_last(ts, 4, 0); s += 4)
			assert_true(s <= pane && pane + 2 <= s + 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_start_by_rule),
		cmocka_unit_test(test_hop_across_zero),
		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_closing),
		cmocka_unit_test(test_panes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
