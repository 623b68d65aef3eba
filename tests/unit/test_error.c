/* test_error.c: a text for every error code. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/weir_types.h"

static void test_every_code_has_a_text_of_its_own(void **state)
{
	(void)state;
	for (int e = 0; e >= WEIR_E_RECORD; e--) {
		const char *text = weir_err_text((enum weir_err)e);
		assert_true(strlen(text) > 0);
		assert_string_not_equal(text, "unknown error");
		for (int f = 0; f > e; f--)
			assert_string_not_equal(text, weir_err_text((enum weir_err)f));
	}
	assert_string_equal(weir_err_text((enum weir_err) - 999), "unknown error");
	assert_string_equal(weir_err_text((enum weir_err)7), "unknown error");
}

static void test_version(void **state)
{
	(void)state;
	unsigned major = WEIR_VERSION >> 24, minor = WEIR_VERSION >> 16 & 255, patch = WEIR_VERSION >> 8 & 255;
	const char *v = weir_version();
	char *end;
	assert_int_equal(strtoul(v, &end, 10), major);
	assert_int_equal(strtoul(end + 1, &end, 10), minor);
	assert_int_equal(strtoul(end + 1, &end, 10), patch);
	weir_free(NULL);
	weir_free(malloc(3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_code_has_a_text_of_its_own),
		cmocka_unit_test(test_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
