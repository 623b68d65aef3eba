/* test_civil.c: the calendar against a day-by-day walk; texts of dates and times. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hotpath/time/civil.h"

/* Every day of years -400 to 2800, counted one by one. */
static void test_every_day_in_turn(void **state)
{
	(void)state;
	int64_t days = weir_days_from_civil(-400, 1, 1);
	int weekday = weir_civil_weekday(days);
	for (int64_t y = -400; y <= 2800; y++) {
		int of_year = 0;
		for (int m = 1; m <= 12; m++) {
			for (int d = 1; d <= weir_civil_month_days(y, m); d++) {
				int64_t year;
				int month, day;
				weir_civil_from_days(days, &year, &month, &day);
				if (year != y || month != m || day != d || weir_days_from_civil(y, m, d) != days)
					fail_msg("day %lld is not %lld-%d-%d", (long long)days, (long long)y, m, d);
				assert_int_equal(weir_civil_weekday(days), weekday);
				assert_int_equal(weir_civil_day_of_year(days), ++of_year);
				weekday = weekday % 7 + 1;
				days++;
			}
		}
		assert_int_equal(of_year, weir_civil_is_leap(y) ? 366 : 365);
	}
	assert_int_equal(weir_days_from_civil(1970, 1, 1), 0);
	assert_int_equal(weir_civil_weekday(0), 4);
	assert_int_equal(weir_days_from_civil(0, 1, 1), WEIR_CIVIL_DAY_FIRST);
	assert_int_equal(weir_days_from_civil(9999, 12, 31), WEIR_CIVIL_DAY_LAST);
}

static void test_far_away(void **state)
{
	(void)state;
	static const int64_t far[] = {-WEIR_CIVIL_DAYS_MAX, -106751991168, 106751991167, WEIR_CIVIL_DAYS_MAX};
	for (size_t i = 0; i < WEIR_COUNT_OF(far); i++) {
		int64_t year;
		int month, day;
		weir_civil_from_days(far[i], &year, &month, &day);
		assert_true(weir_days_from_civil(year, month, day) == far[i]);
	}
	static const int64_t ticks[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX};
	for (size_t i = 0; i < WEIR_COUNT_OF(ticks); i++) {
		for (int64_t per_ms = 1; per_ms <= 1000; per_ms += 999) {
			struct weir_civil c;
			int64_t back = 7;
			weir_civil_split(ticks[i], per_ms, &c);
			assert_true(weir_civil_join(&c, per_ms, &back));
			assert_true(back == ticks[i]);
		}
	}
	struct weir_civil c = {.year = 300000000, .month = 1, .day = 1};
	int64_t t = 5;
	assert_false(weir_civil_join(&c, 1000, &t));
	assert_int_equal(t, 5);
}

static void test_iso_week(void **state)
{
	(void)state;
	static const struct {
		int y, m, d, iso_year, week;
	} v[] = {
		{2005, 1, 1, 2004, 53},  {2005, 1, 2, 2004, 53}, {2005, 12, 31, 2005, 52}, {2007, 1, 1, 2007, 1},
		{2008, 12, 29, 2009, 1}, {2010, 1, 3, 2009, 53}, {2026, 1, 1, 2026, 1},    {2024, 12, 30, 2025, 1},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(v); i++) {
		int64_t year;
		assert_int_equal(weir_civil_iso_week(weir_days_from_civil(v[i].y, v[i].m, v[i].d), &year), v[i].week);
		assert_int_equal(year, v[i].iso_year);
	}
}

static void test_add_months(void **state)
{
	(void)state;
	assert_int_equal(weir_civil_add_months(weir_days_from_civil(2024, 1, 31), 1),
			 weir_days_from_civil(2024, 2, 29));
	assert_int_equal(weir_civil_add_months(weir_days_from_civil(2023, 1, 31), 1),
			 weir_days_from_civil(2023, 2, 28));
	assert_int_equal(weir_civil_add_months(weir_days_from_civil(2024, 2, 29), -12),
			 weir_days_from_civil(2023, 2, 28));
	assert_int_equal(weir_civil_add_months(weir_days_from_civil(2024, 12, 15), 1),
			 weir_days_from_civil(2025, 1, 15));
	assert_int_equal(weir_civil_add_months(weir_days_from_civil(1, 1, 15), -25), weir_days_from_civil(-2, 12, 15));
}

static const char *print_ts(int64_t ticks, int64_t per_ms, char sep, bool zulu)
{
	static char buf[WEIR_CIVIL_TEXT_MAX + 1];
	size_t n = weir_civil_print_timestamp(ticks, per_ms, sep, zulu, buf);
	assert_true(n <= WEIR_CIVIL_TEXT_MAX);
	buf[n] = '\0';
	return buf;
}

static void test_print(void **state)
{
	(void)state;
	char buf[WEIR_CIVIL_TEXT_MAX];
	assert_string_equal(print_ts(0, 1, ' ', false), "1970-01-01 00:00:00");
	assert_string_equal(print_ts(14999, 1, 'T', true), "1970-01-01T00:00:14.999Z");
	assert_string_equal(print_ts(-1, 1, ' ', false), "1969-12-31 23:59:59.999");
	assert_string_equal(print_ts(1500, 1000, ' ', false), "1970-01-01 00:00:00.0015");
	assert_string_equal(print_ts(120, 1, ' ', false), "1970-01-01 00:00:00.12");
	assert_string_equal(print_ts(INT64_C(253402300800000), 1, ' ', false), "+10000-01-01 00:00:00");
	assert_string_equal(print_ts(INT64_MIN, 1, ' ', true), "-292275055-05-16 16:47:04.192Z");
	assert_string_equal(print_ts(INT64_MAX, 1000, ' ', true), "+294247-01-10 04:00:54.775807Z");
	assert_int_equal(weir_civil_print_date(19723, buf), 10);
	assert_memory_equal(buf, "2024-01-01", 10);
	assert_int_equal(weir_civil_print_time(86399120, 3, buf), 11);
	assert_memory_equal(buf, "23:59:59.12", 11);
	assert_int_equal(weir_civil_print_time(86399120, 0, buf), 8);
}

static enum weir_civil_result parse_ts(const char *s, int precision, int64_t *ticks)
{
	return weir_civil_parse_timestamp(s, strlen(s), precision, precision > 3 ? 1000 : 1, ticks, NULL);
}

static void test_parse_timestamp(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int precision;
		int64_t ticks;
	} good[] = {
		{"1970-01-01 00:00:00", 3, 0},
		{"1970-01-01", 3, 0},
		{"1970-01-01 00:01", 3, 60000},
		{"1970-01-01T00:00:14.999Z", 3, 14999},
		{"1970-01-01t00:00:01.5z", 3, 1500},
		{"1970-01-01 00:00:00.0015", 6, 1500},
		{"1970-01-01 00:00:00.0015", 3, 2},
		{"1970-01-01 00:00:00.001499999", 3, 1},
		{"1970-01-01 23:59:59.9999", 3, 86400000},
		{"1969-12-31 23:59:59.999", 3, -1},
		{"1970-01-01T02:00:00+02:00", 3, 0},
		{"1970-01-01T02:00:00+0200", 3, 0},
		{"1970-01-01T02:00:00 +02", 3, 0},
		{"1969-12-31T18:30:00-05:30", 3, 0},
		{"2026-01-01 00:00:00", 0, INT64_C(1767225600000)},
		{"0000-01-01 00:00:00", 3, WEIR_CIVIL_DAY_FIRST * WEIR_DAY_MS},
		{"9999-12-31 23:59:59.999999", 6, INT64_C(253402300799999999)},
		{"1970-01-01 00:00:01.4", 0, 1000},
		{"1970-01-01 00:00:01.5", 0, 2000},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(good); i++) {
		int64_t ticks = -7;
		if (parse_ts(good[i].text, good[i].precision, &ticks) != WEIR_CIVIL_OK || ticks != good[i].ticks)
			fail_msg("%s gave %lld", good[i].text, (long long)ticks);
	}
	static const char *const malformed[] = {
		"",
		"1970",
		"1970-1-1",
		"1970-01-01 ",
		"1970-01-01X00:00:00",
		"1970-01-01 0:00:00",
		"1970-01-01 00:00:",
		"1970-01-01 00:00:00.",
		"1970-01-01 00:00:00.1234567890",
		"1970-01-01 00:00:00 ",
		"1970-01-01 00:00:00Zx",
		"1970-01-01 00:00:00+2",
		"1970-01-01 00:00:00+2:00",
		"1970/01/01 00:00:00",
		"+970-01-01 00:00:00",
		"1970-01-01 00:00:00,5",
		" 1970-01-01 00:00:00",
		"19a0-01-01 00:00:00",
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(malformed); i++) {
		int64_t ticks = -7;
		if (parse_ts(malformed[i], 3, &ticks) != WEIR_CIVIL_MALFORMED || ticks != -7)
			fail_msg("took '%s'", malformed[i]);
	}
	static const char *const range[] = {
		"1970-13-01 00:00:00", "1970-00-01 00:00:00",       "1970-02-29 00:00:00",       "1900-02-29 00:00:00",
		"1970-01-00 00:00:00", "1970-01-32 00:00:00",       "1970-01-01 24:00:00",       "1970-01-01 00:60:00",
		"1970-01-01 00:00:60", "1970-01-01 00:00:00+19:00", "1970-01-01 00:00:00+01:60",
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(range); i++) {
		int64_t ticks = -7;
		if (parse_ts(range[i], 3, &ticks) != WEIR_CIVIL_RANGE || ticks != -7)
			fail_msg("took '%s'", range[i]);
	}
	bool zone = false;
	int64_t ticks;
	assert_int_equal(weir_civil_parse_timestamp("2000-02-29T00:00:00Z", 20, 3, 1, &ticks, &zone), WEIR_CIVIL_OK);
	assert_true(zone);
	assert_int_equal(weir_civil_parse_timestamp("2000-02-29 00:00:00", 19, 3, 1, &ticks, &zone), WEIR_CIVIL_OK);
	assert_false(zone);
}

static void test_parse_time(void **state)
{
	(void)state;
	int64_t ms = -7;
	assert_int_equal(weir_civil_parse_time("23:59:59.9994", 13, 3, &ms), WEIR_CIVIL_OK);
	assert_int_equal(ms, 86399999);
	assert_int_equal(weir_civil_parse_time("23:59:59.9995", 13, 3, &ms), WEIR_CIVIL_RANGE);
	assert_int_equal(weir_civil_parse_time("08:30", 5, 0, &ms), WEIR_CIVIL_OK);
	assert_int_equal(ms, 30600000);
	assert_int_equal(weir_civil_parse_time("08:30x", 6, 0, &ms), WEIR_CIVIL_MALFORMED);
}

/* Whatever is printed reads back, at both resolutions. */
static void test_round_trip(void **state)
{
	(void)state;
	uint64_t x = 12345;
	for (int i = 0; i < 200000; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		int64_t span = (WEIR_CIVIL_DAY_LAST - WEIR_CIVIL_DAY_FIRST) * WEIR_DAY_MS, per_ms = i % 2 ? 1 : 1000;
		int64_t t =
			(int64_t)((x >> 1) % (uint64_t)(span * per_ms)) + WEIR_CIVIL_DAY_FIRST * WEIR_DAY_MS * per_ms;
		const char *s = print_ts(t, per_ms, i % 3 ? ' ' : 'T', i % 5 == 0);
		int64_t back;
		assert_int_equal(parse_ts(s, i % 2 ? 3 : 6, &back), WEIR_CIVIL_OK);
		if (back != t)
			fail_msg("%s: %lld is not %lld", s, (long long)back, (long long)t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_day_in_turn),
		cmocka_unit_test(test_far_away),
		cmocka_unit_test(test_iso_week),
		cmocka_unit_test(test_add_months),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_parse_timestamp),
		cmocka_unit_test(test_parse_time),
		cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
