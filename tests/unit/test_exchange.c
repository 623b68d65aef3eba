/* test_exchange.c: heads and time records of repartition topics, and the time of such a partition: the minimum over its
 * upstream slots, which never goes back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hotpath/run/exchange.h"
#include "hotpath/run/fragment.h"
#include "hotpath/weir.h"

#define UNKEYED "connector=kafka topic=in format=json"
#define SINK    "connector=kafka topic=out format=json key.fields=k key.format=raw"
#define COLUMNS "k STRING, v BIGINT, ts TIMESTAMP_LTZ(3)"

enum { PART = 3 }; /* partition 0 of the repartition topic: behind the source's three */

static struct weir_topology *tp;
static struct weir_plan *pl;
static struct weir_times *tm;

static int setup(void **state)
{
	(void)state;
	uint32_t partitions[] = {3, 2};
	struct weir_diag *dg = NULL;
	struct weir_plan_settings ps = {.exchange = WEIR_PLAN_EXCHANGE_TOPIC, .emit_coalesce = true, .app = "app"};
	tp = weir_topology_create();
	struct weir_stream *st = weir_event_time(weir_source(tp, "s", COLUMNS, UNKEYED), "ts", 5);
	st = weir_aggregate(weir_tumble(weir_key_by(st, "k"), 10), "w", "k, COUNT(*) AS n");
	(void)weir_sink(st, "out", SINK);
	if (weir_topology_check(tp, &dg) != WEIR_OK || weir_plan_create(&pl, tp, &ps, &dg) != WEIR_OK ||
	    weir_plan_bind(pl, partitions, 64, &dg) != WEIR_OK)
		return -1;
	tm = weir_times_create(pl);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weir_times_destroy(tm);
	weir_topology_destroy(tp);
	return 0;
}

static void test_a_partition_waits_for_every_upstream_slot(void **state)
{
	(void)state;
	assert_true(weir_times_upstream(tm, PART, 0, 100, 0) == WEIR_TIME_UNSET);
	assert_true(weir_times_upstream(tm, PART, 1, 50, 0) == WEIR_TIME_UNSET);
	assert_int_equal(weir_times_upstream(tm, PART, 2, 70, 0), 50);
	assert_int_equal(weir_times_upstream(tm, PART, 1, 80, 0), 70);
	assert_int_equal(weir_times_upstream(tm, PART, 1, 60, 0), 70); /* never back */
	assert_int_equal(weir_times_upstream(tm, PART, 2, 200, 0), 80);
	/* The other partition has heard nothing. */
	assert_true(weir_times_upstream(tm, PART + 1, 0, 1, 0) == WEIR_TIME_UNSET);
}

static void test_idle_slots_hold_nothing_up(void **state)
{
	(void)state;
	assert_true(weir_times_upstream(tm, PART, 0, 100, 0) == WEIR_TIME_UNSET);
	assert_true(weir_times_upstream(tm, PART, 1, WEIR_TIME_UNSET, WEIR_UPSTREAM_OUT) == WEIR_TIME_UNSET);
	assert_int_equal(weir_times_upstream(tm, PART, 2, 300, 0), 100);
	assert_int_equal(weir_times_upstream(tm, PART, 0, 100, WEIR_UPSTREAM_OUT), 300);
	assert_int_equal(weir_times_part_flags(tm, PART), 0);
	/* One that comes back does not take time back. */
	assert_int_equal(weir_times_upstream(tm, PART, 1, 10, 0), 300);
	assert_int_equal(weir_times_upstream(tm, PART, 1, 400, 0), 300);
	/* All idle: the largest seen. */
	assert_int_equal(weir_times_upstream(tm, PART, 1, 400, WEIR_UPSTREAM_OUT), 300);
	assert_int_equal(weir_times_upstream(tm, PART, 2, 300, WEIR_UPSTREAM_OUT), 400);
	/* Then the partition holds nothing up either; that nothing has come for a while does not make it idle. */
	assert_int_equal(weir_times_part_flags(tm, PART), WEIR_UPSTREAM_OUT);
	(void)weir_times_upstream(tm, PART, 2, 500, 0);
	assert_int_equal(weir_times_part_flags(tm, PART), 0);
	weir_times_event(tm, PART, WEIR_EVENT_IDLE);
	assert_int_equal(weir_times_part_flags(tm, PART), 0);
	weir_times_event(tm, 0, WEIR_EVENT_IDLE); /* a source's does */
	assert_int_equal(weir_times_part_flags(tm, 0), WEIR_UPSTREAM_OUT);
}

static void test_a_partition_ends_when_every_slot_has(void **state)
{
	(void)state;
	const uint32_t end = WEIR_UPSTREAM_OUT | WEIR_UPSTREAM_BOUND;
	(void)weir_times_upstream(tm, PART, 0, 10, end);
	(void)weir_times_upstream(tm, PART, 1, WEIR_TIME_UNSET, end);
	assert_int_equal(weir_times_part_flags(tm, PART), 0);
	assert_int_equal(weir_times_upstream(tm, PART, 2, 5, end), 10);
	assert_int_equal(weir_times_part_flags(tm, PART), end);
	(void)weir_times_upstream(tm, PART, 1, 20, 0); /* a later run has more of it */
	assert_int_equal(weir_times_part_flags(tm, PART), 0);
}

static void test_a_slot_that_does_not_exist_is_passed_over(void **state)
{
	(void)state;
	assert_true(weir_times_upstream(tm, PART, 3, 100, 0) == WEIR_TIME_UNSET);
	assert_true(weir_times_upstream(tm, PART, UINT32_MAX, 100, 0) == WEIR_TIME_UNSET);
}

static void test_restored_time_holds_for_all_slots(void **state)
{
	(void)state;
	weir_times_set_part(tm, PART, 500);
	assert_int_equal(weir_times_upstream(tm, PART, 0, 600, 0), 500);
	assert_int_equal(weir_times_upstream(tm, PART, 1, 450, 0), 500);
	assert_int_equal(weir_times_upstream(tm, PART, 1, 700, 0), 500);
	assert_int_equal(weir_times_upstream(tm, PART, 2, 650, 0), 600);
}

static void put(struct weir_record *r, struct weir_buf *b)
{
	*r = (struct weir_record){.value = b->data, .value_bytes = (uint32_t)b->bytes};
}

static void test_batches_are_unwrapped(void **state)
{
	(void)state;
	struct weir_fragment_conf fcf = {.plan = pl, .worker_count = 1};
	struct weir_fragment *fr = NULL;
	struct weir_diag *dg = NULL;
	struct weir_buf row = {0}, times = {0}, other = {0};
	struct weir_record records[5] = {{0}};
	struct weir_buf gone = {0};
	assert_int_equal(weir_fragment_create_scan(&fr, &fcf, pl->repartitions[0].scan, &dg), WEIR_OK);
	weir_exchange_head(&row, 1, 42, -7, false);
	weir_buf_puts(&row, "columns");
	weir_exchange_head(&gone, 1, 42, 43, true);
	weir_exchange_time_begin(&times);
	weir_exchange_time_put(&times, 0, 40, 0);
	weir_exchange_time_put(&times, 1, 41, 0);
	weir_exchange_time_put(&times, 2, WEIR_TIME_UNSET, WEIR_UPSTREAM_OUT);
	weir_buf_puts(&other, "xy");
	put(&records[0], &row);
	put(&records[1], &times);
	put(&records[2], &row);
	put(&records[3], &other);
	put(&records[4], &gone);
	struct weir_input in = {.count = 5, .records = records, .part = PART};
	fr->input = &in;
	fr->part = PART;
	weir_exchange_unwrap(fr, tm);
	assert_int_equal(fr->sel.count, 4); /* the time record is no row */
	assert_int_equal(fr->sel.row[0], 0);
	assert_int_equal(fr->sel.row[1], 2);
	assert_int_equal(fr->unwrapped[0].value_bytes, strlen("columns"));
	assert_memory_equal(fr->unwrapped[0].value, "columns", strlen("columns"));
	assert_true(fr->exchange_run[0] == WEIR_TIME_UNSET);
	assert_int_equal(fr->exchange_run[2], 40);
	assert_int_equal(fr->exchange_time, 40);
	assert_int_equal(fr->unwrapped[3].value_bytes, 2); /* for the decoder to refuse */
	/* Event times are the rows' own, also those that a record's timestamp could not hold. */
	assert_int_equal(fr->unwrapped[0].timestamp, -7);
	assert_int_equal(fr->unwrapped[4].timestamp, 43);
	assert_int_equal(fr->exchange_leaves[0], 0);
	assert_int_equal(fr->exchange_leaves[4], 1);
	assert_int_equal(fr->unwrapped[4].value_bytes, 0);
	fr->input = NULL;
	/* A time record cut short is none: the decoder refuses it. */
	times.bytes -= 1;
	put(&records[0], &times);
	in.count = 1;
	fr->input = &in;
	weir_exchange_unwrap(fr, tm);
	assert_int_equal(fr->sel.count, 1);
	fr->input = NULL;
	weir_fragment_destroy(fr);
	weir_buf_fini(&row);
	weir_buf_fini(&times);
	weir_buf_fini(&other);
	weir_buf_fini(&gone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_partition_waits_for_every_upstream_slot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_slots_hold_nothing_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_partition_ends_when_every_slot_has, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_slot_that_does_not_exist_is_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restored_time_holds_for_all_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batches_are_unwrapped, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
