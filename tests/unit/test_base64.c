/* test_base64.c: RFC 4648's vectors, every length, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hotpath/format/base64.h"

static void test_vectors(void **state)
{
	(void)state;
	static const char *const plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
	static const char *const text[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
	for (size_t i = 0; i < 7; i++) {
		char to[16];
		uint8_t back[16];
		size_t n = weir_base64_encode((const uint8_t *)plain[i], strlen(plain[i]), to), bytes = 99;
		assert_int_equal(n, strlen(text[i]));
		assert_int_equal(n, weir_base64_text_bytes(strlen(plain[i])));
		assert_memory_equal(to, text[i], n);
		assert_true(weir_base64_decode(text[i], n, back, &bytes));
		assert_int_equal(bytes, i);
		assert_memory_equal(back, plain[i], i);
	}
}

static void test_every_byte_and_length(void **state)
{
	(void)state;
	uint8_t data[300], back[310];
	char text[410];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 167 + 13);
	for (size_t n = 0; n <= sizeof data; n++) {
		size_t bytes = 0, t = weir_base64_encode(data, n, text);
		assert_true(weir_base64_data_bytes_max(t) <= sizeof back);
		assert_true(weir_base64_decode(text, t, back, &bytes));
		assert_int_equal(bytes, n);
		assert_memory_equal(back, data, n);
		while (t > 0 && text[t - 1] == '=')
			t--;
		assert_true(weir_base64_decode(text, t, back, &bytes)); /* padding may be missing */
		assert_int_equal(bytes, n);
	}
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"Z",    "Zg=",  "Zg===", "Z===", "=",        "====", "Zm9v=",
					  "Zm 9", "Zm9*", "Zh==",  "Zm9=", "Zg==Zg==", "Zm-_", "\xff\xff\xff\xff"};
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		uint8_t to[16];
		size_t bytes = 99;
		if (weir_base64_decode(bad[i], strlen(bad[i]), to, &bytes))
			fail_msg("took '%s'", bad[i]);
		assert_int_equal(bytes, 99);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_every_byte_and_length),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
