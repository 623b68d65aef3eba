/* test_app_name.c: what people call a file or a job, as the name of an application. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "io/app_name.h"

static void expect(const char *name, const char *id)
{
	struct weir_mem m = {0};
	assert_string_equal(weir_app_name(&m, name, strlen(name)), id);
	weir_mem_fini(&m);
}

static void test_names(void **state)
{
	(void)state;
	expect("revenue.by-merchant_2", "revenue.by-merchant_2");
	expect("My revenue", "My-revenue");
	expect("a/b:c", "a-b-c");
	expect("", "weir");
}

/* What loses letters is told from what looks like it. */
static void test_letters_of_others(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	const char *umlaut = weir_app_name(&m, "Umsätze", 8), *accent = weir_app_name(&m, "Umsátze", 8);
	assert_memory_equal(umlaut, "Umsatze-", 8);
	assert_memory_equal(accent, "Umsatze-", 8);
	assert_string_not_equal(umlaut, accent);
	const char *kanji = weir_app_name(&m, "売上", strlen("売上"));
	assert_int_equal(strspn(kanji, "-0123456789abcdef"), strlen(kanji));
	weir_mem_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_letters_of_others)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
