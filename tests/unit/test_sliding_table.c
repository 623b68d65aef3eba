/* test_sliding_table.c: sliding windows: which there are, inclusive ends, lateness, what is kept to make windows from.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/arena.h"
#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

static struct weir_state_def sliding(int64_t length, int64_t grace, bool changes)
{
	return (struct weir_state_def){
		.kind = WEIR_STATE_SLIDING, .size_ms = length, .grace_ms = grace, .changes = changes};
}

static void test_vector_9(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = sliding(10, 0, false);
	rig_init(&rg, &def, "COUNT(*) SUM:0", 1);
	rig_put(&rg, 1, 10, 10);
	rig_put(&rg, 1, 15, 15);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 1 10 @10\n+I k1 [5,15) 2 25 @15\n+I k1 [11,21) 1 15 @21\n");
	assert_int_equal(rg.end_max, 22);
	rig_fini(&rg);
}

/* The same in the other order: the right window of 10 is made of what [5,15] has. */
static void test_order_within_the_grace_does_not_matter(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = sliding(10, 5, false);
	rig_init(&rg, &def, "COUNT(*) SUM:0 MIN:2 LAST_VALUE:0", 1);
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 15, .value = 15, .text = "y"});
	rig_add(&rg, &(struct rig_row){.key = 1, .ts = 10, .value = 10, .text = "x"});
	rig_apply(&rg);
	assert_int_equal(rg.applied.applied, 2);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 1 10 x 10 @10\n"
					   "+I k1 [5,15) 2 25 x 10 @15\n"
					   "+I k1 [11,21) 1 15 y 15 @21\n");
	rig_fini(&rg);
}

/* No window starts below 0: what is earlier than the length shares [0, length]. */
static void test_early_records_share_a_window(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = sliding(10, 0, false);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 0, 0);
	rig_put(&rg, 1, 4, 0);
	rig_put(&rg, 1, 10, 0);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 3 @10\n+I k1 [1,11) 2 @11\n+I k1 [5,15) 1 @15\n");
	rig_fini(&rg);
}

/* A window's last millisecond is in it: it is open while task time is end + grace. */
static void test_ends_are_inclusive(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = sliding(10, 3, false);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 20, 0); /* [10,20] */
	rig_put(&rg, 2, 23, 0);
	rig_put(&rg, 1, 20, 0);
	assert_int_equal(rg.applied.late_windows, 0);
	rig_close(&rg, 23, false);
	assert_string_equal(rig_text(&rg), "");
	assert_int_equal(weir_slot_next_close(rg.slots[0]), 24);
	rig_close(&rg, 24, false);
	assert_string_equal(rig_text(&rg), "+I k1 [10,20) 2 @20\n");
	/* Between its own window's end and that of the last one that could hold it a record is late only if there is
	 * none: here one makes none, and one finds [21,31]. */
	rig_put(&rg, 2, 24, 0);
	rig_put(&rg, 3, 20, 0);
	assert_int_equal(rg.applied.late, 1);
	rig_put(&rg, 1, 25, 0); /* makes [15,25] of [10,20], and [21,31] */
	rig_put(&rg, 1, 20, 0);
	assert_int_equal(rg.applied.late, 0);
	assert_int_equal(rg.applied.late_windows, 1);
	rig_put(&rg, 2, 34, 0); /* 20 + 10 + 3 is passed */
	rig_put(&rg, 1, 20, 0);
	assert_int_equal(rg.applied.late, 1);
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg), "+I k2 [13,23) 1 @23\n+I k2 [14,24) 2 @24\n+I k1 [15,25) 4 @25\n"
					   "+I k1 [21,31) 1 @31\n+I k2 [24,34) 2 @34\n+I k2 [25,35) 1 @35\n");
	rig_fini(&rg);
}

/* The record before may be known from the left window alone, when its own was closed: no window of long ago hides it.
 */
static void test_windows_of_long_ago_do_not_matter(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = sliding(2, 0, false);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 28, 0); /* [26,28] */
	rig_put(&rg, 2, 30, 0);
	rig_put(&rg, 1, 29, 0); /* [29,31]; [27,29] is closed */
	rig_put(&rg, 1, 31, 0); /* enters [29,31], and makes [30,32] */
	rig_close(&rg, 0, true);
	assert_string_equal(rig_text(&rg),
			    "+I k1 [26,28) 1 @28\n+I k2 [28,30) 1 @30\n+I k1 [29,31) 2 @31\n+I k1 [30,32) 1 @32\n");
	rig_fini(&rg);
}

static void test_changes_give_each_window_once_a_point(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = sliding(10, 0, true);
	rig_init(&rg, &def, "COUNT(*)", 1);
	rig_put(&rg, 1, 10, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 [0,10) 1 @10\n");
	rig_put(&rg, 1, 15, 0);
	rig_put(&rg, 1, 15, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+I k1 [11,21) 2 @15\n+I k1 [5,15) 3 @15\n");
	rig_put(&rg, 1, 21, 0);
	rig_changes(&rg);
	assert_string_equal(rig_text(&rg), "+U k1 [11,21) 3 @21\n+I k1 [16,26) 1 @21\n");
	rig_close(&rg, 100, false);
	assert_string_equal(rig_text(&rg), "");
	assert_int_equal(weir_slot_entries(rg.slots[0]), 0);
	rig_fini(&rg);
}

/* Strings and sets of windows made of others are their own, and all memory comes back. */
static void test_blobs_and_memory(void **state)
{
	(void)state;
	for (int changes = 0; changes < 2; changes++) {
		struct rig rg;
		struct weir_state_def def = sliding(50, 10, changes != 0);
		rig_init(&rg, &def, "COUNT(*) MAX:2 COUNT_DISTINCT:2", 1);
		char text[64];
		for (int i = 0; i < 3000; i++) {
			snprintf(text, sizeof text, "a text that is long enough to stand in a blob: %d", i % 7);
			rig_add(&rg, &(struct rig_row){.key = i % 5, .ts = 100 + i * 2 - i % 9, .text = text});
			if (i % 100 != 99)
				continue;
			rig_apply(&rg);
			rig_changes(&rg);
			rig_close(&rg, rg.task_time, false);
		}
		rig_apply(&rg);
		uint64_t bytes = weir_slot_bytes(rg.slots[0]);
		assert_true(bytes < 400000); /* 60 ms of records, not all */
		rig_changes(&rg);
		rig_close(&rg, 1000000, false);
		rig_changes(&rg);
		(void)rig_text(&rg);
		assert_int_equal(weir_slot_entries(rg.slots[0]), 0);
		assert_true(rg.slots[0]->pages.live <= 2); /* where the next entry and blob would go */
		rig_fini(&rg);
	}
}

/* Without late records the windows are those of the definition: [t - length, t] of each record, and [t + 1, t + 1 +
 * length] where it holds one. */
static void test_against_the_definition(void **state)
{
	(void)state;
	enum { ROWS = 60 };
	unsigned seed = 1;
	for (int run = 0; run < 200; run++) {
		int64_t ts[ROWS], length = rand_r(&seed) % 25, spread = 1 + rand_r(&seed) % 30, now = 0;
		uint32_t count = 1 + (uint32_t)rand_r(&seed) % ROWS;
		struct rig rg;
		struct weir_state_def def = sliding(length, spread, false);
		struct weir_buf want = {0};
		rig_init(&rg, &def, "COUNT(*) SUM:0", 1);
		for (uint32_t i = 0; i < count; i++) {
			now += rand_r(&seed) % 8;
			ts[i] = weir_max_i64(0, now - rand_r(&seed) % spread);
			rig_put(&rg, 1, ts[i], i + 1);
			assert_int_equal(rg.applied.late_windows, 0);
		}
		for (int64_t start = 0; start <= now + 1; start++) {
			int64_t n = 0, sum = 0;
			bool there = false;
			for (uint32_t i = 0; i < count; i++) {
				bool in = ts[i] >= start && ts[i] <= start + length;
				n += in;
				sum += in ? i + 1 : 0;
				there |= ts[i] + 1 == start || weir_max_i64(0, ts[i] - length) == start;
			}
			if (there && n != 0)
				weir_buf_printf(&want, "+I k1 [%lld,%lld) %lld %lld @%lld\n", (long long)start,
						(long long)(start + length), (long long)n, (long long)sum,
						(long long)(start + length));
		}
		weir_buf_put_byte(&want, 0);
		rig_close(&rg, 0, true);
		const char *got = rig_text(&rg);
		if (strcmp(got, (const char *)want.data) != 0)
			print_error("run %d\n", run);
		assert_string_equal(got, (const char *)want.data);
		weir_buf_fini(&want);
		rig_fini(&rg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_9),
		cmocka_unit_test(test_order_within_the_grace_does_not_matter),
		cmocka_unit_test(test_early_records_share_a_window),
		cmocka_unit_test(test_ends_are_inclusive),
		cmocka_unit_test(test_windows_of_long_ago_do_not_matter),
		cmocka_unit_test(test_changes_give_each_window_once_a_point),
		cmocka_unit_test(test_blobs_and_memory),
		cmocka_unit_test(test_against_the_definition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
