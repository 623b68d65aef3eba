/* test_time_pattern.c: unit tests of hotpath/expr/time_pattern.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/expr/time_pattern.h"
#include "hotpath/time/civil.h"

static void test_both_ways(void **state)
{
	(void)state;
	/* 2026-03-05 19:08:09.123456, a Thursday */
	int64_t micros = (weir_days_from_civil(2026, 3, 5) * 86400 + 19 * 3600 + 8 * 60 + 9) * 1000000 + 123456;
	static const struct {
		const char *pattern, *text;
		int64_t lost; /* microseconds that the text does not hold */
	} cases[] = {
		{"yyyy-MM-dd HH:mm:ss.SSSSSS", "2026-03-05 19:08:09.123456", 0},
		{"yyyyMMddHHmmssSSS", "20260305190809123", 456},
		{"d.M.yy H:m:s", "5.3.26 19:8:9", 123456},
		{"EEE, d MMM yyyy hh:mm:ss a", "Thu, 5 Mar 2026 07:08:09 PM", 123456},
		{"EEEE d MMMM uuuu K:mm:ss a", "Thursday 5 March 2026 7:08:09 PM", 123456},
		{"yyyy-MM-dd'T'HH:mm:ss.SSSX", "2026-03-05T19:08:09.123Z", 456},
		{"yyyy-MM-dd HH:mm:ss xxx", "2026-03-05 19:08:09 +00:00", 123456},
		{"yyyy-MM-dd HH:mm:ss Z", "2026-03-05 19:08:09 +0000", 123456},
		{"yyyy/DDD kk:mm:ss 'o''clock' z", "2026/064 19:08:09 o'clock UTC", 123456},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_time_pattern p;
		const char *problem = NULL;
		char text[WEIR_TIME_PATTERN_TEXT_MAX + 1];
		int64_t back;
		assert_true(weir_time_pattern_compile(cases[i].pattern, strlen(cases[i].pattern), &p, &problem));
		text[weir_time_pattern_print(&p, micros, text, sizeof text - 1)] = 0;
		assert_string_equal(text, cases[i].text);
		assert_true(weir_time_pattern_parse(&p, text, strlen(text), &back));
		assert_int_equal(back, micros - cases[i].lost);
	}
}

static void test_refused_text(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *text;
	} cases[] = {{"yyyy-MM-dd", "2026-02-29"},
		     {"yyyy-MM-dd", "2026-13-01"},
		     {"yyyy-MM-dd", "2026-1-01"},
		     {"yyyy-MM-dd", "2026-01-01 "},
		     {"yyyy-MM-dd", "2026-01"},
		     {"HH:mm", "24:00"},
		     {"HH:mm", "12:60"},
		     {"hh a", "13 PM"},
		     {"MMM", "Foo"},
		     {"yyyy DDD", "2025 366"},
		     {"X", "+25:00"},
		     {"'x'yyyy", "2026"},
		     {"SSS", ""},
		     {"yyyyMMdd", "2026030"},
		     {"a", "XM"}};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_time_pattern p;
		const char *problem;
		int64_t v;
		assert_true(weir_time_pattern_compile(cases[i].pattern, strlen(cases[i].pattern), &p, &problem));
		if (weir_time_pattern_parse(&p, cases[i].text, strlen(cases[i].text), &v))
			fail_msg("'%s' taken by %s", cases[i].text, cases[i].pattern);
	}
}

static void test_refused_patterns(void **state)
{
	(void)state;
	static const char *const patterns[] = {"j", "'open", "yyyyyyyyyy", "yyyy-bb",
					       "................................................."};
	for (size_t i = 0; i < WEIR_COUNT_OF(patterns); i++) {
		struct weir_time_pattern p;
		const char *problem = NULL;
		assert_false(weir_time_pattern_compile(patterns[i], strlen(patterns[i]), &p, &problem));
		assert_non_null(problem);
	}
}

/* A text is cut at the room there is, never written beyond it. */
static void test_room(void **state)
{
	(void)state;
	struct weir_time_pattern p;
	const char *problem;
	char text[8] = "........";
	assert_true(weir_time_pattern_compile("yyyy-MM-dd", 10, &p, &problem));
	assert_int_equal(weir_time_pattern_print(&p, 0, text, 6), 6);
	assert_memory_equal(text, "1970-0..", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_refused_text),
		cmocka_unit_test(test_refused_patterns),
		cmocka_unit_test(test_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
