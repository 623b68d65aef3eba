/* test_ring.c: the ring on one thread; two threads are in tests/stress. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/core/ring.h"

static void test_nothing_is_seen_before_publish(void **state)
{
	(void)state;
	struct weir_ring rg;
	int a, b;
	weir_ring_init(&rg, 4);
	assert_null(weir_ring_pop(&rg));
	assert_false(weir_ring_publish(&rg));
	assert_true(weir_ring_push(&rg, &a));
	assert_true(weir_ring_push(&rg, &b));
	assert_null(weir_ring_pop(&rg));
	assert_int_equal(weir_ring_depth(&rg), 0);
	assert_true(weir_ring_publish(&rg));
	assert_false(weir_ring_publish(&rg));
	assert_int_equal(weir_ring_depth(&rg), 2);
	assert_ptr_equal(weir_ring_front(&rg), &a);
	assert_ptr_equal(weir_ring_pop(&rg), &a);
	assert_ptr_equal(weir_ring_front(&rg), &b);
	assert_ptr_equal(weir_ring_pop(&rg), &b);
	assert_null(weir_ring_front(&rg));
	weir_ring_fini(&rg);
}

static void test_full(void **state)
{
	(void)state;
	struct weir_ring rg;
	char p[16];
	weir_ring_init(&rg, 5); /* 8 */
	for (int i = 0; i < 8; i++)
		assert_true(weir_ring_push(&rg, &p[i]));
	assert_false(weir_ring_push(&rg, &p[8]));
	(void)weir_ring_publish(&rg);
	assert_false(weir_ring_push(&rg, &p[8]));
	assert_ptr_equal(weir_ring_pop(&rg), &p[0]);
	assert_true(weir_ring_push(&rg, &p[8]));
	assert_false(weir_ring_push(&rg, &p[9]));
	(void)weir_ring_publish(&rg);
	for (int i = 1; i < 9; i++)
		assert_ptr_equal(weir_ring_pop(&rg), &p[i]);
	assert_null(weir_ring_pop(&rg));
	weir_ring_fini(&rg);
	weir_ring_init(&rg, 1);
	assert_true(weir_ring_push(&rg, p));
	assert_false(weir_ring_push(&rg, p));
	weir_ring_fini(&rg);
}

static void test_counters_wrap(void **state)
{
	(void)state;
	struct weir_ring rg;
	char p[8];
	weir_ring_init(&rg, 4);
	/* As after 2^32 - 2 pushes and pops. */
	atomic_store(&rg.tail, UINT32_MAX - 1);
	atomic_store(&rg.head, UINT32_MAX - 1);
	rg.tail_local = rg.head_seen = rg.tail_seen = UINT32_MAX - 1;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			assert_true(weir_ring_push(&rg, &p[i]));
		assert_false(weir_ring_push(&rg, &p[4]));
		(void)weir_ring_publish(&rg);
		assert_int_equal(weir_ring_depth(&rg), 4);
		for (int i = 0; i < 4; i++)
			assert_ptr_equal(weir_ring_pop(&rg), &p[i]);
		assert_null(weir_ring_pop(&rg));
	}
	weir_ring_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_seen_before_publish),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_counters_wrap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
