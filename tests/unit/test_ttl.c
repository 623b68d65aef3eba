/* test_ttl.c: what state.ttl drops, and when: against a naive twin, too. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>

#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

static uint64_t rng_next(uint64_t *s)
{
	*s += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *s;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void begin(struct rig *rg, int64_t ttl_ms, const char *aggs)
{
	struct weir_state_def def = {.kind = WEIR_STATE_TABLE, .ttl_ms = ttl_ms};
	rig_init(rg, &def, aggs, 1);
}

static void drain(struct rig *rg)
{
	rig_changes(rg);
	(void)rig_text(rg);
}

static void test_what_is_older_goes_without_a_word(void **state)
{
	(void)state;
	struct rig rg;
	begin(&rg, 800, "COUNT(*)");
	struct weir_slot *sl = rg.slots[0];
	weir_slot_expire(sl, 0);
	rig_put(&rg, 1, 10, 0);
	rig_put(&rg, 2, 99, 0);
	rig_put(&rg, 3, 100, 0);
	drain(&rg);
	weir_slot_expire(sl, 809);
	assert_int_equal(weir_slot_entries(sl), 3);
	weir_slot_expire(sl, 900); /* 100 is not behind 900 by more than 800 */
	assert_int_equal(weir_slot_entries(sl), 1);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "");
	/* A key that comes back begins anew; one that stayed goes on. */
	rig_put(&rg, 1, 950, 0);
	rig_put(&rg, 3, 950, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 1 @950\n+U k3 2 @950\n");
	rig_fini(&rg);
}

static void test_each_eighth_is_looked_at_once(void **state)
{
	(void)state;
	struct rig rg;
	begin(&rg, 800, "COUNT(*)");
	struct weir_slot *sl = rg.slots[0];
	rig_put(&rg, 1, 0, 0);
	rig_put(&rg, 2, 150, 0);
	drain(&rg);
	weir_slot_expire(sl, WEIR_TIME_UNSET);
	weir_slot_expire(sl, 5000); /* the first time says only where it stands */
	assert_int_equal(weir_slot_entries(sl), 2);
	weir_slot_expire(sl, 5099);
	assert_int_equal(weir_slot_entries(sl), 2);
	weir_slot_expire(sl, 5100);
	assert_int_equal(weir_slot_entries(sl), 0);
	rig_fini(&rg);
}

/* As after a restart: the marker's task time decides when the next look is due. */
static void test_a_restored_slot_goes_on(void **state)
{
	(void)state;
	struct rig rg;
	begin(&rg, 800, "COUNT(*)");
	struct weir_slot *sl = rg.slots[0];
	rig_put(&rg, 1, 0, 0);
	drain(&rg);
	weir_slot_set_expired(sl, 850);
	weir_slot_expire(sl, 899);
	assert_int_equal(weir_slot_entries(sl), 1);
	weir_slot_expire(sl, 900);
	assert_int_equal(weir_slot_entries(sl), 0);
	rig_fini(&rg);
}

static void test_what_has_something_to_say_stays(void **state)
{
	(void)state;
	struct rig rg;
	begin(&rg, 800, "COUNT(*)");
	struct weir_slot *sl = rg.slots[0];
	weir_slot_expire(sl, 0);
	rig_put(&rg, 1, 0, 0);
	weir_slot_expire(sl, 5000);
	assert_int_equal(weir_slot_entries(sl), 1);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 1 @0\n");
	weir_slot_expire(sl, 5100);
	assert_int_equal(weir_slot_entries(sl), 0);
	rig_fini(&rg);
}

static void test_without_a_ttl_nothing_goes(void **state)
{
	(void)state;
	struct rig rg;
	begin(&rg, 0, "COUNT(*)");
	rig_put(&rg, 1, 0, 0);
	drain(&rg);
	weir_slot_expire(rg.slots[0], 0);
	weir_slot_expire(rg.slots[0], INT64_MAX / 2);
	assert_int_equal(weir_slot_entries(rg.slots[0]), 1);
	rig_fini(&rg);
}

/* Rounds of keys that never come again: strings and sets of theirs go with them, so that memory stays what it is. */
static void test_blobs_go_too(void **state)
{
	(void)state;
	enum { KEYS = 400, ROUNDS = 40 };
	struct rig rg;
	begin(&rg, 800, "MAX:2 COUNT_DISTINCT:2");
	uint64_t most = 0;
	const struct weir_delta_sink none = {0};
	for (int64_t round = 0; round < ROUNDS; round++) {
		for (int64_t k = 0; k < KEYS; k++) {
			rig_add(&rg, &(struct rig_row){.key = round * KEYS + k,
						       .ts = round * 1000,
						       .text = "a string that does not fit into an entry"});
		}
		rig_apply(&rg);
		drain(&rg);
		weir_slot_expire(rg.slots[0], round * 1000);
		assert_true(weir_slot_entries(rg.slots[0]) <= 2 * KEYS);
		(void)weir_slot_barrier(rg.slots[0], (uint64_t)round + 1, &none);
		weir_slot_committed(rg.slots[0], (uint64_t)round + 1);
		if (round == 4)
			most = weir_slot_bytes(rg.slots[0]);
	}
	assert_true(weir_slot_bytes(rg.slots[0]) <= most + most / 4);
	rig_fini(&rg);
}

static void test_against_a_naive_twin(void **state)
{
	(void)state;
	enum { KEYS = 200, TTL = 777 };
	static const int64_t step = TTL / 8;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rig rg;
		uint64_t rng = seed;
		int64_t last[KEYS], task = 0, looked = WEIR_TIME_UNSET;
		begin(&rg, TTL, "COUNT(*)");
		for (int k = 0; k < KEYS; k++)
			last[k] = WEIR_TIME_UNSET;
		for (int i = 0; i < 400; i++) {
			for (int n = 0; n < 10; n++) {
				int64_t k = (int64_t)(rng_next(&rng) % KEYS),
					ts = task - (int64_t)(rng_next(&rng) % 900);
				rig_put(&rg, k, ts, 0);
				last[k] = weir_max_i64(last[k], ts);
			}
			drain(&rg);
			task += (int64_t)(rng_next(&rng) % 60);
			weir_slot_expire(rg.slots[0], task);
			bool due = looked != WEIR_TIME_UNSET && looked / step != task / step;
			looked = task;
			uint64_t left = 0;
			for (int k = 0; k < KEYS; k++) {
				if (due && last[k] < task - TTL)
					last[k] = WEIR_TIME_UNSET;
				left += last[k] != WEIR_TIME_UNSET;
			}
			if (weir_slot_entries(rg.slots[0]) != left)
				fail_msg("seed %" PRIu64 ", at %" PRId64 ": %" PRIu64 " entries, wanted %" PRIu64, seed,
					 task, weir_slot_entries(rg.slots[0]), left);
		}
		rig_fini(&rg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_older_goes_without_a_word),
		cmocka_unit_test(test_each_eighth_is_looked_at_once),
		cmocka_unit_test(test_a_restored_slot_goes_on),
		cmocka_unit_test(test_what_has_something_to_say_stays),
		cmocka_unit_test(test_without_a_ttl_nothing_goes),
		cmocka_unit_test(test_blobs_go_too),
		cmocka_unit_test(test_against_a_naive_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
