/* test_mem.c: plan memory and the growing buffer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hotpath/core/mem.h"

static void test_values_are_zeroed_aligned_and_apart(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	uint8_t *last = NULL;
	size_t total = 0;
	for (size_t i = 0; i < 3000; i++) {
		size_t bytes = i % 97 == 0 ? 10000 : i % 61;
		uint8_t *p = weir_mem_take(&m, bytes);
		assert_int_equal((uintptr_t)p % 16, 0);
		assert_ptr_not_equal(p, last);
		for (size_t k = 0; k < bytes; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xaa, bytes);
		last = p;
		total += bytes;
	}
	assert_true(m.bytes_used >= total);
	weir_mem_fini(&m);
	assert_null(m.head);
	weir_mem_fini(&m);
}

static void test_bound(void **state)
{
	(void)state;
	struct weir_mem m;
	weir_mem_init(&m, 1000);
	assert_non_null(weir_mem_take(&m, 600));
	assert_null(weir_mem_take(&m, 600));
	assert_non_null(weir_mem_take(&m, 300));
	assert_null(weir_mem_strdup(
		&m, "a text that is longer than what the bound has left over, which is under 100 bytes, "
		    "even when it has been rounded"));
	assert_null(weir_mem_printf(&m, "%200d", 1));
	weir_mem_fini(&m);
}

static void test_copies(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	assert_string_equal(weir_mem_strndup(&m, "abcdef", 3), "abc");
	assert_string_equal(weir_mem_strndup(&m, NULL, 0), "");
	assert_string_equal(weir_mem_strdup(&m, "xyz"), "xyz");
	assert_string_equal(weir_mem_printf(&m, "%s-%d", "n", 42), "n-42");
	const int v[3] = {1, 2, 3};
	const int *c = weir_mem_copy(&m, v, sizeof v);
	assert_memory_equal(c, v, sizeof v);
	weir_mem_fini(&m);
}

static void test_buf_grows_and_keeps(void **state)
{
	(void)state;
	struct weir_buf b = {0};
	weir_buf_put(&b, NULL, 0);
	for (int i = 0; i < 10000; i++)
		weir_buf_printf(&b, "%04d", i);
	weir_buf_put_byte(&b, '!');
	weir_buf_puts(&b, "end");
	assert_int_equal(b.bytes, 40004);
	assert_memory_equal(b.data, "000000010002", 12);
	assert_memory_equal(b.data + 39996, "9999!end", 8);
	memset(weir_buf_room(&b, 100000), 'x', 100000);
	assert_int_equal(b.bytes, 40004);
	weir_buf_fini(&b);
	assert_null(b.data);
	assert_int_equal(b.capacity, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_zeroed_aligned_and_apart),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_buf_grows_and_keeps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
