/* test_window_table.c: tumbling and hopping windows: the vectors of the rules, panes, lateness, order, memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "hotpath/core/arena.h"
#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

static struct weir_state_def tumbling(int64_t size, int64_t grace)
{
	return (struct weir_state_def){
		.kind = WEIR_STATE_WINDOW, .size_ms = size, .advance_ms = size, .grace_ms = grace};
}
static struct weir_state_def hopping(int64_t size, int64_t advance, int64_t grace)
{
	struct weir_state_def def = tumbling(size, grace);
	def.advance_ms = advance;
	return def;
}

static void test_vector_1_grace_accepts(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 5);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 14, 0);
	rig_put(&rg, 1, 9, 0);
	assert_int_equal(rg.applied.applied, 1);
	rig_close(&rg, rg.task_time, true);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 1 @9\n+I k1 [10,20) 1 @19\n");
	assert_int_equal(rg.end_max, 20);
	rig_fini(&rg);
}

static void test_vector_2_equality_is_closed(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 5);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 15, 0);
	rig_put(&rg, 1, 9, 0);
	assert_int_equal(rg.applied.late, 1);
	assert_int_equal(rg.applied.late_row[0], 0);
	assert_int_equal(rg.applied.late_windows, 1);
	rig_close(&rg, rg.task_time, true);
	assert_string_equal(rig_text(&rg), "+I k1 [10,20) 1 @19\n");
	rig_fini(&rg);
}

static void test_vector_3_no_grace(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	rig_init(&rg, &def, "COUNT(*)", 1);
	/* In one fragment: each row is judged by the time as of itself. */
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 10});
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 9});
	rig_apply(&rg);
	assert_int_equal(rg.applied.late, 1);
	assert_int_equal(rg.applied.late_row[0], 1);
	rig_close(&rg, rg.task_time, true);
	assert_string_equal(rig_text(&rg), "+I k1 [10,20) 1 @19\n");
	rig_fini(&rg);
}

static void check_vector_4(bool one_fragment, bool close_between)
{
	struct rig rg;
	struct weir_state_def def = hopping(10, 5, 0);
	rig_init(&rg, &def, "COUNT(*) SUM:0", 1);
	rig_put(&rg, 1, 2, 100);
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 12, .value = 1});
	if (!one_fragment)
		rig_apply(&rg);
	if (close_between)
		rig_close(&rg, rg.task_time, false);
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 7, .value = 10});
	rig_apply(&rg);
	assert_int_equal(rg.applied.late, 0);
	assert_int_equal(rg.applied.late_windows, 1);
	assert_int_equal(weir_slot_next_close(rg.slots[0]), close_between ? 15 : 10);
	rig_close(&rg, rg.task_time, false);
	assert_int_equal(weir_slot_next_close(rg.slots[0]), 15);
	rig_close(&rg, 15, false);
	rig_close(&rg, 15, true);
	/* [0,10) closed by time before ts 7 came: it holds ts 2 alone, whenever it is taken. */
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 1 100 @9\n+I k1 [5,15) 2 11 @14\n+I k1 [10,20) 1 1 @19\n");
	rig_fini(&rg);
}

static void test_vector_4_misses_one_enters_one(void **state)
{
	(void)state;
	check_vector_4(true, false);
	check_vector_4(false, false);
	check_vector_4(false, true);
}

static void test_vector_4_window_without_rows_stays_closed(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = hopping(10, 5, 0);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 12, 0);
	rig_put(&rg, 1, 7, 0);
	rig_close(&rg, 1000, false);
	assert_string_equal(rig_text(&rg), "+I k1 [5,15) 2 @14\n+I k1 [10,20) 1 @19\n");
	rig_fini(&rg);
}

static void test_vector_5_hopping_starts(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = hopping(10, 4, 0);
	rig_init(&rg, &def, "COUNT(*)", 1);
	assert_int_equal(rg.def.pane_ms, 2);
	rig_put(&rg, 1, 3, 0);
	rig_put(&rg, 1, 8, 0);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 2 @9\n+I k1 [4,14) 1 @13\n+I k1 [8,18) 1 @17\n");
	assert_int_equal(rg.end_max, 18);
	rig_fini(&rg);
}

static void test_vector_13_two_partitions(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	rig_init(&rg, &def, "COUNT(*)", 1);
	/* p0: 25. Task time is the minimum over both partitions: still unset. */
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 25});
	rig_apply_clock(&rg, &(struct weir_clock){WEIR_TIME_UNSET, WEIR_TIME_UNSET, WEIR_TIME_UNSET});
	/* p1: 3, 9, 12. */
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 3});
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 9});
	rig_apply_clock(&rg, &(struct weir_clock){WEIR_TIME_UNSET, 25, WEIR_TIME_UNSET});
	assert_int_equal(rg.applied.late, 0);
	rig_close(&rg, 9, false);
	assert_string_equal(rig_text(&rg), "");
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 12});
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 9});
	rig_apply_clock(&rg, &(struct weir_clock){9, 25, 9});
	assert_int_equal(rg.applied.late, 1);
	rig_close(&rg, 12, false);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 2 @9\n");
	rig_fini(&rg);
}

static void test_vector_14_decimal(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	rig_init(&rg, &def, "SUM:5 COUNT(*)", 1);
	static const int64_t cents[] = {1000, 2050, -525, 1, 100000};
	for (int i = 0; i < 5; i++)
		rig_add(&rg, &(struct rig_row){.key = 7, .ts = i, .value = cents[i]});
	rig_apply(&rg);
	rig_close(&rg, 10, false);
	assert_string_equal(rig_text(&rg), "+I k7 [0,10) 102526 5 @9\n");
	rig_fini(&rg);
}

static void test_rows_leave_by_end_then_key(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 100);
	rig_init(&rg, &def, "COUNT(*)", 1);
	static const int64_t keys[] = {3, 10, 2, 1, 20};
	for (int i = 0; i < 5; i++) {
		rig_add(&rg, &(struct rig_row){.key = keys[i], .ts = 19 - i});
		rig_add(&rg, &(struct rig_row){.key = keys[i], .ts = i});
	}
	rig_apply(&rg);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg),
			    "+I k1 [0,10) 1 @9\n+I k10 [0,10) 1 @9\n+I k2 [0,10) 1 @9\n+I k20 [0,10) 1 @9\n"
			    "+I k3 [0,10) 1 @9\n+I k1 [10,20) 1 @19\n+I k10 [10,20) 1 @19\n"
			    "+I k2 [10,20) 1 @19\n+I k20 [10,20) 1 @19\n+I k3 [10,20) 1 @19\n");
	rig_fini(&rg);
}

static void test_offset_window_covers_zero(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(24, 0);
	def.offset_ms = 6 + 24 * 3; /* taken as its remainder */
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 0});
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 5});
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 6});
	rig_apply(&rg);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k1 [-18,6) 2 @5\n+I k1 [6,30) 1 @29\n");
	rig_fini(&rg);
}

static void test_negative_times_where_allowed(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 100);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, -1, 0);
	rig_put(&rg, 1, 0, 0);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k1 [-10,0) 1 @-1\n+I k1 [0,10) 1 @9\n");
	rig_fini(&rg);
}

static void test_times_beyond_arithmetic_are_late(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 100);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 5});
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = INT64_MAX});
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = INT64_MIN + 1});
	rig_apply(&rg);
	assert_int_equal(rg.applied.applied, 1);
	assert_int_equal(rg.applied.late, 2);
	rig_fini(&rg);
}

static void test_changes_keep_windows_whole(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = hopping(10, 5, 0);
	def.changes = true;
	rig_init(&rg, &def, "SUM:0", 1);
	rig_put(&rg, 1, 7, 1);
	rig_put(&rg, 2, 3, 5);
	rig_put(&rg, 1, 9, 1);
	rig_changes(&rg);
	/* In the order of first change; time is the largest of the window's records. */
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 2 @9\n+I k1 [5,15) 2 @9\n+I k2 [0,10) 5 @3\n");
	rig_put(&rg, 1, 10, 1);
	rig_put(&rg, 1, 8, 1);
	assert_int_equal(rg.applied.late_windows, 1);
	rig_close(&rg, rg.task_time, false);
	rig_changes(&rg);
	/* [0,10) closed without a row: it had been shown; [5,15) took ts 10 and 8. */
	assert_string_equal(rig_text(&rg), "+U k1 [5,15) 4 @10\n+I k1 [10,20) 1 @10\n");
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "");
	rig_fini(&rg);
}

static void test_changes_survive_the_close(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	def.changes = true;
	rig_init(&rg, &def, "COUNT(*) LAST_VALUE:2", 1);
	for (int64_t ts = 0; ts < 40; ts += 10)
		rig_put(&rg, 1, ts, 1);
	rig_close(&rg, rg.task_time, false);
	assert_int_equal(weir_slot_entries(rg.slots[0]), 1);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 1 x @0\n+I k1 [10,20) 1 x @10\n+I k1 [20,30) 1 x @20\n"
					   "+I k1 [30,40) 1 x @30\n");
	rig_fini(&rg);
}

/* Thousands of small windows stay cheap, and a steady stream of windows asks the allocator for nothing. */
static void test_steady_state_does_not_allocate(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 30);
	rig_init(&rg, &def, "COUNT(*) SUM:0", 1);
	uint64_t takes = 0, bytes = 0;
	for (int64_t w = 0; w < 400; w++) {
		for (int64_t i = 0; i < 3000; i++) {
			rig_add(&rg, &(struct rig_row){.key = i, .ts = w * 10 + i % 10, .value = 1});
			if (rg.count == WEIR_BATCH_ROWS)
				rig_apply(&rg);
		}
		rig_apply(&rg);
		rig_close(&rg, rg.task_time, false);
		rig_text(&rg);
		if (w == 100) {
			takes = rg.slots[0]->blocks.takes_slow;
			bytes = weir_arena_bytes(rg.ar);
		}
	}
	assert_int_equal(rg.slots[0]->blocks.takes_slow, takes);
	assert_int_equal(weir_arena_bytes(rg.ar), bytes);
	rig_fini(&rg);
}

static void test_bytes_per_entry(void **state)
{
	(void)state;
	/* A string key of 8 bytes, SUM of a DECIMAL and COUNT: the budget is 96 bytes, index included. */
	static const uint32_t counts[] = {100000, 150000, 197000, 400000, 1000000};
	for (uint32_t c = 0; c < WEIR_COUNT_OF(counts); c++) {
		struct rig rg;
		struct weir_state_def def = tumbling(1000, 0);
		rig_init(&rg, &def, "SUM:5 COUNT(*)", 1);
		for (uint32_t i = 0; i < counts[c]; i++) {
			rig_add(&rg, &(struct rig_row){.key = 1000000 + i, .ts = 0, .value = 1});
			if (rg.count == WEIR_BATCH_ROWS)
				rig_apply(&rg);
		}
		rig_apply(&rg);
		assert_int_equal(weir_slot_entries(rg.slots[0]), counts[c]);
		uint64_t bytes = weir_slot_bytes(rg.slots[0]) / counts[c];
		assert_in_range(bytes, 40, 96);
		rig_fini(&rg);
	}
}

static void test_small_windows_are_small(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 1000000);
	rig_init(&rg, &def, "SUM:5 COUNT(*)", 1);
	for (int64_t w = 0; w < 5000; w++)
		rig_put(&rg, w % 3, w * 10, 1);
	assert_in_range(weir_slot_bytes(rg.slots[0]) / 5000, 500, 1600);
	rig_fini(&rg);
}

static void test_long_keys(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 0);
	rig_init(&rg, &def, "COUNT(*)", 1);
	enum { LONG = 100000 };
	uint8_t *text = weir_xcalloc(1, LONG + 64);
	memset(text, 'a', LONG);
	for (int i = 0; i < 4; i++) {
		struct weir_sel sel = {.count = 1, .row = {0}};
		const struct weir_col *key_cols[] = {&rg.key_col};
		text[LONG - 1] = (uint8_t)('a' + i % 2);
		rg.key_col.str[0] = (struct weir_str){text, LONG, 0};
		rg.keyed.count = 1;
		rg.keyed.cols = rg.col_of;
		rg.keyed.slot[0] = 0;
		rg.keyed.time[0] = rg.keyed.run[0] = 1;
		weir_key_encode(key_cols, rg.def.key_types, 1, &sel, &rg.scratch, &rg.keyed);
		weir_state_apply(&rg.def, rg.slots, &rg.keyed, sel.row, 1,
				 &(struct weir_clock){WEIR_TIME_UNSET, INT64_MAX, WEIR_TIME_UNSET}, &rg.applied);
	}
	assert_int_equal(weir_slot_entries(rg.slots[0]), 2);
	struct weir_closed *cl = weir_slot_close(rg.slots[0], 10, false, &rg.end_max);
	weir_closed_sort(cl);
	assert_int_equal(weir_closed_read(cl, 0, &rg.rows), 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(rg.rows.cols[0].str[i].bytes, LONG);
		assert_int_equal(rg.rows.cols[0].str[i].data[LONG - 1], 'a' + i);
		assert_int_equal(rg.rows.cols[1].i64[i], 2);
	}
	weir_closed_release(rg.slots[0], cl);
	free(text);
	rig_fini(&rg);
}

static void test_many_slots_and_windows_in_one_fragment(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = tumbling(10, 1000);
	rig_init(&rg, &def, "COUNT(*) SUM:0", RIG_SLOTS);
	uint64_t count = 0, sum = 0, pairs = 0;
	bool seen[97][7] = {0};
	for (int round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
			rig_add(&rg,
				&(struct rig_row){.key = i % 97, .ts = i % 70, .slot = i % 97 % RIG_SLOTS, .value = i});
			count++;
			sum += i;
			pairs += !seen[i % 97][i % 70 / 10];
			seen[i % 97][i % 70 / 10] = true;
		}
		rig_apply(&rg);
	}
	uint64_t count_out = 0, sum_out = 0, rows = 0;
	for (uint32_t s = 0; s < RIG_SLOTS; s++) {
		struct weir_closed *cl;
		while ((cl = weir_slot_close(rg.slots[s], 0, true, &rg.end_max)) != NULL) {
			weir_closed_sort(cl);
			uint32_t n = weir_closed_read(cl, 0, &rg.rows);
			for (uint32_t i = 0; i < n; i++) {
				count_out += (uint64_t)rg.rows.cols[1].i64[i];
				sum_out += (uint64_t)rg.rows.cols[2].i64[i];
			}
			rows += n;
			weir_closed_release(rg.slots[s], cl);
		}
	}
	assert_int_equal(rows, pairs);
	assert_int_equal(count_out, count);
	assert_int_equal(sum_out, sum);
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_1_grace_accepts),
		cmocka_unit_test(test_vector_2_equality_is_closed),
		cmocka_unit_test(test_vector_3_no_grace),
		cmocka_unit_test(test_vector_4_misses_one_enters_one),
		cmocka_unit_test(test_vector_4_window_without_rows_stays_closed),
		cmocka_unit_test(test_vector_5_hopping_starts),
		cmocka_unit_test(test_vector_13_two_partitions),
		cmocka_unit_test(test_vector_14_decimal),
		cmocka_unit_test(test_rows_leave_by_end_then_key),
		cmocka_unit_test(test_offset_window_covers_zero),
		cmocka_unit_test(test_negative_times_where_allowed),
		cmocka_unit_test(test_times_beyond_arithmetic_are_late),
		cmocka_unit_test(test_changes_keep_windows_whole),
		cmocka_unit_test(test_changes_survive_the_close),
		cmocka_unit_test(test_steady_state_does_not_allocate),
		cmocka_unit_test(test_bytes_per_entry),
		cmocka_unit_test(test_small_windows_are_small),
		cmocka_unit_test(test_long_keys),
		cmocka_unit_test(test_many_slots_and_windows_in_one_fragment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
