/* test_history.c: versions in order of time, against a sorted array. HISTORY_SEED overrides; a failing seed is printed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/state/history.h"

static uint64_t rng_state;
static uint32_t below(uint32_t n)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n;
}

enum { VERSIONS_MAX = 20000 };
struct rig {
	struct weir_arena *ar;
	struct weir_blocks bl;
	uint64_t bytes_before;
	struct weir_history h;
	/* The twin: times and names, from `from` to `to`. */
	int64_t time[VERSIONS_MAX];
	uintptr_t name[VERSIONS_MAX];
	uint32_t from, to;
	uintptr_t names;
};

static struct rig *rig_create(void)
{
	struct rig *rg = calloc(1, sizeof *rg);
	assert_non_null(rg);
	rg->ar = weir_arena_create();
	weir_blocks_init(&rg->bl, rg->ar);
	rg->bytes_before = rg->bl.bytes_used;
	weir_history_init(&rg->h, &rg->bl);
	return rg;
}

/* Whatever it was, all of it is given back. */
static void rig_destroy(struct rig *rg)
{
	weir_history_fini(&rg->h, &rg->bl);
	assert_int_equal(rg->bl.bytes_used, rg->bytes_before);
	weir_blocks_fini(&rg->bl);
	weir_arena_destroy(rg->ar);
	free(rg);
}

/* How many are up to and at time. */
static uint32_t twin_search(const struct rig *rg, int64_t time)
{
	uint32_t at = rg->to;
	while (at > rg->from && rg->time[at - 1] > time)
		at--;
	return at;
}

static void put(struct rig *rg, int64_t time)
{
	uint32_t at = twin_search(rg, time);
	uintptr_t name = ++rg->names * 8;
	void *newer = weir_history_put(&rg->h, &rg->bl, time, (void *)name);
	assert_int_equal((uintptr_t)newer, at < rg->to ? rg->name[at] : 0);
	memmove(&rg->time[at + 1], &rg->time[at], (rg->to - at) * sizeof *rg->time);
	memmove(&rg->name[at + 1], &rg->name[at], (rg->to - at) * sizeof *rg->name);
	rg->time[at] = time;
	rg->name[at] = name;
	rg->to++;
	assert_true(rg->to < VERSIONS_MAX);
}

static void drop(struct rig *rg)
{
	assert_int_equal((uintptr_t)weir_history_oldest(&rg->h), rg->name[rg->from]);
	assert_int_equal(weir_history_second(&rg->h), rg->time[rg->from + 1]);
	weir_history_drop(&rg->h, &rg->bl);
	rg->from++;
}

static void check_find(struct rig *rg, int64_t time)
{
	uint32_t at = twin_search(rg, time);
	assert_int_equal((uintptr_t)weir_history_find(&rg->h, time), at > rg->from ? rg->name[at - 1] : 0);
}

/* Every version is where it belongs, and memory is what the header says. */
static void check(struct rig *rg)
{
	const struct weir_history *h = &rg->h;
	uint32_t at = rg->from, leaves = 0;
	assert_int_equal(h->count, rg->to - rg->from);
	for (const struct weir_history_node *n = h->oldest; n != NULL; n = n->next) {
		leaves++;
		assert_true(n == h->oldest || n == h->newest || n->count >= WEIR_HISTORY_ITEMS / 2);
		assert_true(n->count != 0);
		for (uint32_t i = 0; i < n->count; i++, at++) {
			assert_int_equal(n->item[n->first + i].time, rg->time[at]);
			assert_int_equal((uintptr_t)n->item[n->first + i].at, rg->name[at]);
		}
		if (n->next == NULL)
			assert_ptr_equal(n, h->newest);
	}
	assert_int_equal(at, rg->to);
	assert_int_equal((uintptr_t)weir_history_newest(h), rg->name[rg->to - 1]);
	assert_int_equal(rg->bl.bytes_used - rg->bytes_before, weir_history_bytes(h) - sizeof *h);
	assert_true(leaves <= h->count / (WEIR_HISTORY_ITEMS / 2) + 2);
	assert_true(h->nodes <= leaves + leaves / 14 + 3 * h->height + 1);
	assert_true(h->height == 0 ? h->nodes == 1 : h->root->count > 1);
}

static void test_appended(void **state)
{
	(void)state;
	struct rig *rg = rig_create();
	for (uint32_t i = 0; i < 10000; i++)
		put(rg, i / 3);
	check(rg);
	assert_true(rg->h.nodes <= 10000 / WEIR_HISTORY_ITEMS + 10000 / 900 + 4); /* all but the last are full */
	assert_int_equal(rg->h.height, 2);
	for (int64_t t = -1; t < 3400; t++)
		check_find(rg, t);
	while (rg->to - rg->from > 1)
		drop(rg);
	check(rg);
	assert_int_equal(rg->h.nodes, 1);
	rig_destroy(rg);
}

static void test_each_older_than_all(void **state)
{
	(void)state;
	struct rig *rg = rig_create();
	for (int64_t t = 5000; t > 0; t--)
		put(rg, t);
	check(rg);
	for (int64_t t = -1; t < 5100; t++)
		check_find(rg, t);
	rig_destroy(rg);
}

static void test_all_of_one_time(void **state)
{
	(void)state;
	struct rig *rg = rig_create();
	put(rg, 7);
	put(rg, 5);
	for (uint32_t i = 0; i < 3000; i++)
		put(rg, 6);
	check(rg);
	for (int64_t t = 4; t < 9; t++)
		check_find(rg, t);
	rig_destroy(rg);
}

/* The oldest goes as the newest comes, with a few in between: it never grows. */
static void test_a_steady_number(void **state)
{
	(void)state;
	struct rig *rg = rig_create();
	uint32_t nodes_max = 0;
	for (uint32_t i = 0; i < 15000; i++) {
		put(rg, i % 16 == 5 ? (int64_t)i - (int64_t)below(200) : (int64_t)i);
		if (i >= 300)
			drop(rg);
		if (i % 64 == 63)
			check(rg);
		nodes_max = rg->h.nodes > nodes_max ? rg->h.nodes : nodes_max;
	}
	assert_int_equal(rg->h.count, 300);
	assert_true(nodes_max <= 300 / 15 + 5);
	rig_destroy(rg);
}

static void test_random(void **state)
{
	(void)state;
	uint64_t seed = getenv("HISTORY_SEED") != NULL ? strtoull(getenv("HISTORY_SEED"), NULL, 0) : 20261130;
	printf("HISTORY_SEED=%llu\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < 40; round++) {
		struct rig *rg = rig_create();
		rng_state = seed * 1000 + round + 1;
		uint32_t drops = below(100), far = below(60), span = 1u << below(14), ops = 2000 + below(4000);
		int64_t now = 0;
		put(rg, 0);
		for (uint32_t i = 0; i < ops; i++) {
			now += below(3);
			if (below(100) < drops && rg->to - rg->from > 1) {
				for (uint32_t n = below(3) == 0 ? below(100) : 1; n > 0 && rg->to - rg->from > 1; n--)
					drop(rg);
			} else if (below(100) < far) {
				put(rg, now - (int64_t)below(span));
			} else {
				put(rg, now);
			}
			check_find(rg, now - (int64_t)below(span));
			check_find(rg, rg->time[rg->from + below(rg->to - rg->from)]);
			if (i % 97 == 0)
				check(rg);
		}
		check(rg);
		rig_destroy(rg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_appended),        cmocka_unit_test(test_each_older_than_all),
		cmocka_unit_test(test_all_of_one_time), cmocka_unit_test(test_a_steady_number),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
