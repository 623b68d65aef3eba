/* test_kv_table.c: an unwindowed GROUP BY: changes in order of first change, insert then update, never closing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

static void test_changes_are_coalesced_in_order(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = {.kind = WEIR_STATE_TABLE};
	rig_init(&rg, &def, "COUNT(*) SUM:0", 1);
	rig_put(&rg, 2, 5, 10);
	rig_put(&rg, 1, 3, 1);
	rig_put(&rg, 2, 4, 10);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k2 2 20 @5\n+I k1 1 1 @3\n");
	rig_put(&rg, 1, 9, 1);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+U k1 2 2 @9\n");
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "");
	assert_int_equal(weir_slot_next_close(rg.slots[0]), INT64_MAX);
	assert_null(weir_slot_close(rg.slots[0], INT64_MAX, true, &rg.end_max));
	assert_int_equal(weir_slot_entries(rg.slots[0]), 2);
	rig_fini(&rg);
}

static void test_nothing_is_late(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = {.kind = WEIR_STATE_TABLE};
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 1000000, 0);
	rig_put(&rg, 1, 0, 0);
	rig_put(&rg, 1, -5, 0);
	assert_int_equal(rg.applied.late, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 3 @1000000\n");
	rig_fini(&rg);
}

static void test_emitted_bit_decides_the_op(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = {.kind = WEIR_STATE_TABLE};
	rig_init(&rg, &def, "COUNT(*)", 1);
	static const bool emitted[] = {false, true, false, true};
	static const enum weir_op ops[] = {WEIR_OP_INSERT, WEIR_OP_INSERT, WEIR_OP_UPDATE, WEIR_OP_INSERT};
	for (int i = 0; i < 4; i++) {
		rig_put(&rg, 1, i, 0);
		assert_int_equal(weir_slot_changes(rg.slots[0], &rg.rows), 1);
		assert_int_equal(rg.rows.op[0], ops[i]);
		weir_slot_set_emitted(rg.slots[0], rg.rows.entry[0], emitted[i]);
		assert_int_equal(weir_slot_changes(rg.slots[0], &rg.rows), 0);
	}
	rig_fini(&rg);
}

static void test_more_changes_than_a_batch(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = {.kind = WEIR_STATE_TABLE};
	rig_init(&rg, &def, "SUM:0", 1);
	for (int round = 0; round < 2; round++) {
		for (int64_t i = 0; i < 3000; i++) {
			rig_add(&rg, &(struct rig_row){.key = i, .ts = i, .value = i});
			if (rg.count == WEIR_BATCH_ROWS)
				rig_apply(&rg);
		}
		rig_apply(&rg);
		int64_t next = 0;
		while (weir_slot_changes(rg.slots[0], &rg.rows) != 0) {
			for (uint32_t i = 0; i < rg.rows.count; i++, next++) {
				assert_int_equal(rg.rows.op[i], round == 0 ? WEIR_OP_INSERT : WEIR_OP_UPDATE);
				assert_int_equal(rg.rows.cols[1].i64[i], next * (round + 1));
				weir_slot_set_emitted(rg.slots[0], rg.rows.entry[i], true);
			}
		}
		assert_int_equal(next, 3000);
	}
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes_are_coalesced_in_order),
		cmocka_unit_test(test_nothing_is_late),
		cmocka_unit_test(test_emitted_bit_decides_the_op),
		cmocka_unit_test(test_more_changes_than_a_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
