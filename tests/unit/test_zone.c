/* test_zone.c: unit tests of hotpath/expr/zone.c: files, the rule beyond them, clocks set forward and back, names
 * refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#include "hotpath/core/diag.h"
#include "hotpath/expr/zone.h"
#include "hotpath/time/civil.h"

static const struct weir_zone *load(struct weir_mem *m, const char *name)
{
	const struct weir_zone *z = NULL;
	assert_int_equal(weir_zone_load(name, strlen(name), m, &z, NULL), WEIR_OK);
	return z;
}

static int64_t at(int year, int month, int day, int hour, int minute)
{
	return weir_days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60;
}

static void test_fixed(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	static const struct {
		const char *name;
		int64_t offset;
	} cases[] = {{"UTC", 0},        {"Z", 0},         {"GMT", 0},      {"+08:00", 28800},
		     {"-3", -10800},    {"+0545", 20700}, {"UTC+2", 7200}, {"GMT-03:30", -12600},
		     {"-18:00", -64800}};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		const struct weir_zone *z = load(&m, cases[i].name);
		assert_int_equal(weir_zone_offset(z, 0), cases[i].offset);
		assert_int_equal(weir_zone_to_utc(z, cases[i].offset), 0);
	}
	weir_mem_fini(&m);
}

static void test_refused(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	static const char *const names[] = {"PDT",           "Mars/Base", "",       "/etc/passwd", "../zoneinfo/UTC",
					    "Europe/../UTC", "Europe/",   "+19:00", "+1:60",       "+123",
					    "Europe",        "zone.tab",  "+",      "CEST"};
	for (size_t i = 0; i < WEIR_COUNT_OF(names); i++) {
		const struct weir_zone *z;
		struct weir_diag *dg = NULL;
		if (weir_zone_load(names[i], strlen(names[i]), &m, &z, &dg) != WEIR_E_PLAN)
			fail_msg("taken: %s", names[i]);
		assert_non_null(strstr(weir_diag_text(dg), names[i]));
		weir_diag_destroy(dg);
	}
	weir_mem_fini(&m);
}

static void test_changes(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	const struct weir_zone *z = load(&m, "Europe/Berlin");
	for (int year = 2026; year <= 2096; year += 70) { /* in the file, and by its rule */
		int spring = 31, autumn = 31;
		while (weir_civil_weekday(weir_days_from_civil(year, 3, spring)) != 7)
			spring--;
		while (weir_civil_weekday(weir_days_from_civil(year, 10, autumn)) != 7)
			autumn--;
		int64_t forward = at(year, 3, spring, 1, 0), back = at(year, 10, autumn, 1, 0);
		assert_int_equal(weir_zone_offset(z, forward - 1), 3600);
		assert_int_equal(weir_zone_offset(z, forward), 7200);
		assert_int_equal(weir_zone_offset(z, back - 1), 7200);
		assert_int_equal(weir_zone_offset(z, back), 3600);
		/* 02:30 does not exist: an hour on. 02:30 in autumn is there twice: the first. */
		assert_int_equal(weir_zone_to_utc(z, at(year, 3, spring, 2, 30)), forward + 1800);
		assert_int_equal(weir_zone_to_utc(z, at(year, 10, autumn, 2, 30)), back - 1800);
		assert_int_equal(weir_zone_to_utc(z, at(year, 10, autumn, 3, 0)), back + 3600);
	}
	/* South of the equator summer spans the new year. */
	z = load(&m, "Australia/Sydney");
	assert_int_equal(weir_zone_offset(z, at(2080, 1, 1, 0, 0)), 39600);
	assert_int_equal(weir_zone_offset(z, at(2080, 7, 1, 0, 0)), 36000);
	/* Before the first change: local mean time. */
	z = load(&m, "Asia/Kathmandu");
	assert_int_equal(weir_zone_offset(z, at(1900, 1, 1, 0, 0)), 20476);
	assert_int_equal(weir_zone_offset(z, at(2026, 1, 1, 0, 0)), 20700);
	weir_mem_fini(&m);
}

/* The C library reads the same files. */
static void test_against_libc(void **state)
{
	(void)state;
	static const char *const names[] = {"America/New_York", "Europe/London",     "Asia/Tehran", "America/Sao_Paulo",
					    "Pacific/Apia",     "Africa/Casablanca", "Asia/Kolkata"};
	struct weir_mem m = {0};
	for (size_t i = 0; i < WEIR_COUNT_OF(names); i++) {
		const struct weir_zone *z = load(&m, names[i]);
		setenv("TZ", names[i], 1);
		tzset();
		for (int64_t t = at(1950, 1, 1, 0, 0); t < at(2100, 1, 1, 0, 0); t += 86400 * 11 + 3607) {
			time_t c = t;
			struct tm tm;
			localtime_r(&c, &tm);
			if (weir_zone_offset(z, t) != tm.tm_gmtoff)
				fail_msg("%s at %lld: %lld, libc %ld", names[i], (long long)t,
					 (long long)weir_zone_offset(z, t), tm.tm_gmtoff);
		}
	}
	unsetenv("TZ");
	tzset();
	weir_mem_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_against_libc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
