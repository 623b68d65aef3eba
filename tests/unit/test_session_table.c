/* test_session_table.c: sessions: merging, lateness, closing order, retractions, memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/core/arena.h"
#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

static struct weir_state_def session(int64_t gap, int64_t grace, bool changes)
{
	return (struct weir_state_def){
		.kind = WEIR_STATE_SESSION, .gap_ms = gap, .grace_ms = grace, .changes = changes};
}

static void test_vector_6_changes_uncoalesced(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 0, true);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 0, 0);
	rig_changes(&rg);
	rig_put(&rg, 1, 5, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 [0,5) 1 @0\n-D k1 [0,5) @0\n+I k1 [0,10) 2 @5\n");
	rig_fini(&rg);
}

static void test_vector_6_changes_coalesced(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 0, true);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 0, 0);
	rig_put(&rg, 1, 5, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 2 @5\n");
	rig_fini(&rg);
}

static void test_vector_7_two_sessions(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 0, false);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 0, 0);
	rig_put(&rg, 1, 6, 0);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k1 [0,5) 1 @0\n+I k1 [6,11) 1 @6\n");
	rig_fini(&rg);
}

static void test_vector_8_one_rule_for_accepting(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 0, false);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 10, 0);
	rig_put(&rg, 2, 5, 0);
	assert_int_equal(rg.applied.late, 0);
	rig_put(&rg, 3, 4, 0);
	assert_int_equal(rg.applied.late, 1);
	assert_int_equal(rg.applied.late_windows, 1);
	/* ts 8 of key 1 would extend a session that is open: accepted, whatever its own time. */
	rig_put(&rg, 1, 6, 0);
	assert_int_equal(rg.applied.late, 0);
	assert_int_equal(weir_slot_next_close(rg.slots[0]), 11);
	rig_close(&rg, 10, false);
	assert_string_equal(rig_text(&rg), "");
	rig_close(&rg, 11, false);
	assert_string_equal(rig_text(&rg), "+I k2 [5,10) 1 @5\n");
	assert_int_equal(weir_slot_next_close(rg.slots[0]), 16);
	rig_close(&rg, 16, false);
	assert_string_equal(rig_text(&rg), "+I k1 [6,15) 2 @10\n");
	assert_int_equal(weir_slot_next_close(rg.slots[0]), INT64_MAX);
	rig_fini(&rg);
}

/* A session that is closed by time takes nothing more, whether or not it has been taken out. */
static void test_closed_by_time_takes_no_part(void **state)
{
	(void)state;
	for (int take = 0; take < 2; take++) {
		struct rig rg;
		struct weir_state_def def = session(5, 0, false);
		rig_init(&rg, &def, "COUNT(*)", 1);
		rig_put(&rg, 1, 0, 0);
		rig_put(&rg, 2, 6, 0);
		if (take)
			rig_close(&rg, rg.task_time, false);
		rig_put(&rg, 1, 5, 0);
		assert_int_equal(rg.applied.late, 0);
		rig_close(&rg, 0, true);
		assert_string_equal(rig_text(&rg), "+I k1 [0,5) 1 @0\n+I k1 [5,10) 1 @5\n+I k2 [6,11) 1 @6\n");
		rig_fini(&rg);
	}
}

/* Sessions of all keys (vector 8's records): a row per key, all with the session's bounds. */
static void test_shared_spans_all_keys(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 0, false);
	def.shared = true;
	rig_init(&rg, &def, "COUNT(*) SUM:0 FIRST_VALUE:0", 1);
	rig_put(&rg, 1, 10, 1);
	rig_put(&rg, 2, 5, 2);
	rig_put(&rg, 3, 4, 4); /* alone it would be late: it enters the session of key 2 */
	assert_int_equal(rg.applied.late, 0);
	rig_put(&rg, 1, 15, 8);
	rig_put(&rg, 2, 21, 16); /* closes [4,15] */
	rig_put(&rg, 1, 15, 32);
	assert_int_equal(rg.applied.late, 1);
	assert_int_equal(weir_slot_next_close(rg.slots[0]), 21);
	rig_close(&rg, 21, false);
	assert_string_equal(rig_text(&rg), "+I k1 [4,20) 2 9 1 @15\n+I k2 [4,20) 1 2 2 @15\n+I k3 [4,20) 1 4 4 @15\n");
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k2 [21,26) 1 16 16 @21\n");
	assert_int_equal(weir_slot_entries(rg.slots[0]), 0);
	rig_fini(&rg);
}

/* What a merge leaves of one key is one row, whether or not the key has a row after it. */
static void test_shared_members_merge(void **state)
{
	(void)state;
	for (int after = 0; after < 2; after++) {
		struct rig rg;
		struct weir_state_def def = session(5, 100, false);
		def.shared = true;
		rig_init(&rg, &def, "COUNT(*) SUM:0 FIRST_VALUE:0 LAST_VALUE:0 COUNT_DISTINCT:0", 1);
		rig_put(&rg, 1, 0, 1);
		rig_put(&rg, 1, 20, 2);
		rig_put(&rg, 1, 10, 4);
		rig_put(&rg, 2, 5, 8);
		rig_put(&rg, 2, 15, 16);
		if (after)
			rig_put(&rg, 1, 8, 32);
		rig_close(&rg, 0, true);
		assert_string_equal(rig_text(&rg),
				    after ? "+I k1 [0,25) 4 39 1 32 4 @20\n+I k2 [0,25) 2 24 8 16 2 @20\n"
					  : "+I k1 [0,25) 3 7 1 4 3 @20\n+I k2 [0,25) 2 24 8 16 2 @20\n");
		rig_fini(&rg);
	}
}

static void test_bridge_merges_two(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 100, false);
	rig_init(&rg, &def, "COUNT(*) SUM:0 FIRST_VALUE:0 LAST_VALUE:0 MIN:0", 1);
	rig_put(&rg, 1, 20, 1);
	rig_put(&rg, 1, 10, 2);
	rig_put(&rg, 1, 0, 4);
	rig_put(&rg, 1, 15, 8); /* joins [20,20] and [10,10] */
	rig_put(&rg, 1, 5, 16); /* joins that and [0,0] */
	assert_int_equal(weir_slot_entries(rg.slots[0]), 1);
	rig_close(&rg, 0, true);
	/* FIRST and LAST go by the order of arrival in the slot, not by time. */
	assert_string_equal(rig_text(&rg), "+I k1 [0,25) 5 31 1 16 1 @20\n");
	rig_fini(&rg);
}

static void test_merge_retracts_what_was_shown(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 100, true);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 0, 0);
	rig_put(&rg, 1, 10, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 [0,5) 1 @0\n+I k1 [10,15) 1 @10\n");
	rig_put(&rg, 1, 20, 0); /* not shown yet */
	rig_put(&rg, 1, 5, 0);
	rig_put(&rg, 1, 15, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "-D k1 [0,5) @0\n-D k1 [10,15) @10\n+I k1 [0,25) 5 @20\n");
	rig_put(&rg, 1, 3, 0); /* within the bounds: an update */
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+U k1 [0,25) 6 @20\n");
	rig_fini(&rg);
}

static void test_delete_only_when_emitted(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 100, true);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 0, 0);
	/* The row is read, but HAVING keeps it out of the result. */
	assert_int_equal(weir_slot_changes(rg.slots[0], &rg.rows), 1);
	assert_int_equal(rg.rows.op[0], WEIR_OP_INSERT);
	assert_int_equal(weir_slot_changes(rg.slots[0], &rg.rows), 0);
	rig_put(&rg, 1, 5, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 2 @5\n");
	rig_fini(&rg);
}

static void test_changes_survive_the_close(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 0, true);
	rig_init(&rg, &def, "COUNT(*) MAX:2", 1);
	for (int64_t ts = 0; ts < 100; ts += 10)
		rig_put(&rg, ts % 20, ts, 0);
	rig_close(&rg, rg.task_time, false);
	assert_int_equal(weir_slot_entries(rg.slots[0]), 1);
	rig_changes(&rg);
	const char *text = rig_text(&rg);
	assert_non_null(strstr(text, "+I k0 [0,5) 1 x @0\n+I k10 [10,15) 1 x @10\n"));
	assert_non_null(strstr(text, "+I k10 [90,95) 1 x @90\n"));
	rig_fini(&rg);
}

static void test_rows_leave_by_end_then_key(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = session(5, 100, false);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 9, 7, 0);
	rig_put(&rg, 3, 7, 0);
	rig_put(&rg, 5, 1, 0);
	rig_put(&rg, 1, 8, 0);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg),
			    "+I k5 [1,6) 1 @1\n+I k3 [7,12) 1 @7\n+I k9 [7,12) 1 @7\n+I k1 [8,13) 1 @8\n");
	rig_fini(&rg);
}

/* Short sessions come and go beside one that lives on: memory stays flat. */
static void test_steady_state_memory(void **state)
{
	(void)state;
	for (int changes = 0; changes < 2; changes++) {
		struct rig rg;
		struct weir_state_def def = session(50, 0, changes);
		rig_init(&rg, &def, "COUNT(*) LAST_VALUE:2 COUNT_DISTINCT:0", 1);
		uint64_t bytes = 0;
		for (int64_t t = 0; t < 60000; t++) {
			rig_add(&rg,
				&(struct rig_row){
					.key = t / 3, .ts = t, .value = t % 7, .text = "some text of some length"});
			if (t % 40 == 0)
				rig_add(&rg, &(struct rig_row){.key = -1, .ts = t, .value = t % 7, .text = "long"});
			if (t % 100 == 99) {
				rig_apply(&rg);
				rig_changes(&rg);
				rig_close(&rg, rg.task_time, false);
				rig_text(&rg);
				/* Numbers of given pages are free again once a barrier has said so. */
				weir_slot_barrier(rg.slots[0], (uint64_t)t, &(struct weir_delta_sink){0});
				weir_slot_committed(rg.slots[0], (uint64_t)t);
			}
			if (t == 20000)
				bytes = weir_arena_bytes(rg.ar);
		}
		assert_int_equal(weir_arena_bytes(rg.ar), bytes);
		rig_close(&rg, 0, true);
		if (!changes)
			assert_non_null(strstr(rig_text(&rg), "+I k-1 [0,60010) 1500 long 7 @59960\n"));
		rig_fini(&rg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_6_changes_uncoalesced),
		cmocka_unit_test(test_vector_6_changes_coalesced),
		cmocka_unit_test(test_vector_7_two_sessions),
		cmocka_unit_test(test_vector_8_one_rule_for_accepting),
		cmocka_unit_test(test_closed_by_time_takes_no_part),
		cmocka_unit_test(test_shared_spans_all_keys),
		cmocka_unit_test(test_shared_members_merge),
		cmocka_unit_test(test_bridge_merges_two),
		cmocka_unit_test(test_merge_retracts_what_was_shown),
		cmocka_unit_test(test_delete_only_when_emitted),
		cmocka_unit_test(test_changes_survive_the_close),
		cmocka_unit_test(test_rows_leave_by_end_then_key),
		cmocka_unit_test(test_steady_state_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
