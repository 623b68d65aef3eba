/* test_ring.c: one producer and one consumer on real threads; order and completeness. Runs under ThreadSanitizer too.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "hotpath/core/counters.h"
#include "hotpath/core/owner.h"
#include "hotpath/core/ring.h"

enum { ITEMS = 400000, POOL = 64 };

/* What travels: plain fields, ordered by the ring alone. */
struct item {
	struct weir_owner owner;
	uint64_t number;
	uint64_t check;
};

struct line {
	struct weir_ring there, back;
	struct item pool[POOL];
	struct weir_counter sent;
	uint64_t wrong;
};

static void *consume(void *arg)
{
	struct line *ln = arg;
	for (uint64_t expected = 0; expected < ITEMS;) {
		struct item *it = weir_ring_pop(&ln->there);
		if (it == NULL) {
			sched_yield();
			continue;
		}
		weir_owner_check(&it->owner);
		ln->wrong += it->number != expected || it->check != ~expected;
		ln->wrong += weir_counter_read(&ln->sent) > ITEMS;
		expected++;
		weir_owner_give(&it->owner);
		while (!weir_ring_push(&ln->back, it))
			sched_yield();
		/* Bursts of changing length, so that publishing late is exercised; never the last ones. */
		if (expected % (1 + expected % 7) == 0 || weir_ring_depth(&ln->there) == 0)
			(void)weir_ring_publish(&ln->back);
	}
	return NULL;
}

static void run(uint32_t capacity)
{
	static struct line ln;
	pthread_t t;
	ln = (struct line){0};
	weir_ring_init(&ln.there, capacity);
	weir_ring_init(&ln.back, POOL);
	for (int i = 0; i < POOL; i++) {
		weir_owner_init(&ln.pool[i].owner);
		assert_true(weir_ring_push(&ln.back, &ln.pool[i])); /* before the other thread starts */
	}
	(void)weir_ring_publish(&ln.back);
	assert_int_equal(pthread_create(&t, NULL, consume, &ln), 0);
	for (uint64_t n = 0; n < ITEMS;) {
		struct item *it = weir_ring_pop(&ln.back);
		if (it == NULL) {
			(void)weir_ring_publish(&ln.there);
			sched_yield();
			continue;
		}
		weir_owner_check(&it->owner);
		it->number = n;
		it->check = ~n;
		weir_owner_give(&it->owner);
		while (!weir_ring_push(&ln.there, it)) {
			(void)weir_ring_publish(&ln.there);
			sched_yield();
		}
		n++;
		weir_counter_add(&ln.sent, 1);
		if (n % (1 + n % 5) == 0)
			(void)weir_ring_publish(&ln.there);
	}
	(void)weir_ring_publish(&ln.there);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(ln.wrong, 0);
	assert_int_equal(weir_counter_read(&ln.sent), ITEMS);
	weir_ring_fini(&ln.there);
	weir_ring_fini(&ln.back);
}

static void test_small_ring(void **state)
{
	(void)state;
	run(1);
	run(2);
}

static void test_larger_ring(void **state)
{
	(void)state;
	run(32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_ring),
		cmocka_unit_test(test_larger_ring),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
