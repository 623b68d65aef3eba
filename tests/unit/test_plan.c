/* test_plan.c: the relation graph flattened: which exchange, which branches, one scan however often it is read; and the
 * task times that clock.c keeps for such a plan. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/run/clock.h"
#include "hotpath/topology/plan.h"
#include "hotpath/weir.h"

#define KEYED   "connector=recorded path=x topic=in format=json key.fields=k key.format=raw"
#define UNKEYED "connector=recorded path=x topic=in format=json"
#define SINK    "connector=recorded path=x topic=out format=json key.fields=k key.format=raw"
#define COLUMNS "k STRING, j STRING, v BIGINT, ts TIMESTAMP_LTZ(3)"

static struct weir_stream *source(struct weir_topology *tp, const char *name, const char *options)
{
	return weir_event_time(weir_source(tp, name, COLUMNS, options), "ts", 5);
}

static struct weir_plan *plan(struct weir_topology *tp, const uint32_t *partitions)
{
	struct weir_plan_settings ps = {.emit_coalesce = true, .app = "app"};
	struct weir_plan *pl = NULL;
	struct weir_diag *dg = NULL;
	if (weir_topology_check(tp, &dg) != WEIR_OK || weir_plan_create(&pl, tp, &ps, &dg) != WEIR_OK ||
	    weir_plan_bind(pl, partitions, 64, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	return pl;
}

static struct weir_topology *grouped(const char *options, const char *keys)
{
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_tumble(weir_key_by(source(tp, "s", options), keys), 10);
	(void)weir_sink(weir_aggregate(st, "w", "k, COUNT(*) AS n"), "out", SINK);
	return tp;
}

static void test_direct_only_when_the_sources_key_is_grouped_by(void **state)
{
	(void)state;
	uint32_t partitions[] = {6};
	struct weir_topology *tp = grouped(KEYED, "k");
	struct weir_plan *pl = plan(tp, partitions);
	assert_int_equal(pl->stages[0].exchange, WEIR_EXCHANGE_DIRECT);
	assert_int_equal(pl->stages[0].slot_count, 6);
	assert_true(pl->route_direct);
	weir_topology_destroy(tp);
	tp = grouped(KEYED, "j, k"); /* more columns than the key: still the same partition */
	pl = plan(tp, partitions);
	assert_int_equal(pl->stages[0].exchange, WEIR_EXCHANGE_DIRECT);
	weir_topology_destroy(tp);
	tp = grouped(UNKEYED, "k");
	pl = plan(tp, partitions);
	assert_int_equal(pl->stages[0].exchange, WEIR_EXCHANGE_LOCAL);
	assert_int_equal(pl->stages[0].slot_count, 64);
	assert_false(pl->route_direct);
	weir_topology_destroy(tp);
}

/* A table's key is read from the record's key; a value whose columns have no names holds it, too, unless told. */
static void test_values_hold_the_keys_columns(void **state)
{
	(void)state;
	for (int except = 0; except < 2; except++) {
		char options[100];
		uint32_t partitions[] = {6};
		struct weir_topology *tp = weir_topology_create();
		snprintf(options, sizeof options, "path=in topic=t format=packed value.fields-include=%s",
			 except != 0 ? "EXCEPT_KEY" : "ALL");
		struct weir_table *tb = weir_table(tp, "t", "a INT, k STRING, b INT", "k", options);
		(void)weir_sink(weir_to_stream(tb), "out", "path=out topic=o format=json key.format=raw key.fields=k");
		struct weir_plan *pl = plan(tp, partitions);
		const struct weir_plan_scan *sc = &pl->scans[0];
		assert_int_equal(sc->all_count, except != 0 ? 2 : 3);
		assert_int_equal(sc->key_count, 1);
		assert_int_equal(sc->value_count, 2);
		assert_int_equal(sc->value_fields[0].ordinal, 0);
		assert_int_equal(sc->value_fields[1].ordinal, except != 0 ? 1 : 2);
		weir_topology_destroy(tp);
	}
}

/* Rows of UNNEST pass where they are read, whatever its key; and with no other stage nothing is kept. */
static void test_unnest_keeps_nothing(void **state)
{
	(void)state;
	for (int grouped_too = 0; grouped_too < 2; grouped_too++) {
		uint32_t partitions[] = {6};
		struct weir_topology *tp = weir_topology_create();
		struct weir_stream *st =
			weir_source(tp, "s", "k STRING, a ARRAY<STRING>, ts TIMESTAMP_LTZ(3)", UNKEYED);
		st = weir_unnest(weir_event_time(st, "ts", 0), "u", "a", "e", 0);
		if (grouped_too)
			st = weir_aggregate(weir_tumble(weir_key_by(st, "e"), 10), "w", "e AS k, COUNT(*) AS n");
		(void)weir_sink(st, "out", SINK);
		struct weir_plan *pl = plan(tp, partitions);
		assert_int_equal(pl->stages[0].exchange, WEIR_EXCHANGE_DIRECT);
		assert_int_equal(pl->stages[0].slot_count, 6);
		assert_true(weir_plan_stage_is_transient(&pl->stages[0]));
		assert_false(weir_plan_stage_alone(&pl->stages[0]));
		assert_int_equal(weir_plan_kept_stages(pl), grouped_too ? 2 : 0);
		weir_topology_destroy(tp);
	}
}

static enum weir_plan_growth growth_of(struct weir_stream *st, struct weir_topology *tp, int64_t ttl)
{
	struct weir_plan_settings ps = {.emit_coalesce = true, .app = "app", .state_ttl_ms = ttl};
	uint32_t partitions[] = {2, 2};
	struct weir_plan *pl = NULL;
	struct weir_diag *dg = NULL;
	(void)weir_print(st, "rows");
	if (weir_topology_check(tp, &dg) != WEIR_OK || weir_plan_create(&pl, tp, &ps, &dg) != WEIR_OK ||
	    weir_plan_bind(pl, partitions, 64, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	enum weir_plan_growth g = weir_plan_growth_of(pl, &pl->stages[pl->stage_count - 1]);
	weir_topology_destroy(tp);
	return g;
}

static void test_what_bounds_a_state(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
#define KEYS weir_key_by(source((tp = weir_topology_create()), "s", KEYED), "k")
	weir_topology_destroy(tp);
	struct weir_stream *st = weir_aggregate(weir_tumble(KEYS, 10), "w", "k, COUNT(*) AS n");
	assert_int_equal(growth_of(st, tp, 0), WEIR_GROWTH_BOUNDED);
	st = weir_aggregate(weir_sliding(KEYS, 10), "w", "k, COUNT(*) AS n");
	assert_int_equal(growth_of(st, tp, 0), WEIR_GROWTH_BOUNDED);
	st = weir_over(KEYS, "o", "k, COUNT(*) OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS n");
	assert_int_equal(growth_of(st, tp, 0), WEIR_GROWTH_BOUNDED);
	st = weir_over(KEYS, "o", "k, LAG(v) OVER () AS n");
	assert_int_equal(growth_of(st, tp, 1000), WEIR_GROWTH_KEYS_ALWAYS);
	st = weir_aggregate(KEYS, "t", "k, COUNT(*) AS n");
	assert_int_equal(growth_of(st, tp, 0), WEIR_GROWTH_KEYS);
	st = weir_aggregate(KEYS, "t", "k, COUNT(*) AS n");
	assert_int_equal(growth_of(st, tp, 1000), WEIR_GROWTH_TTL);
	struct weir_stream *r;
	st = KEYS;
	r = weir_key_by(source(tp, "r", KEYED), "k");
	st = weir_select(weir_join_within(st, r, "j", WEIR_JOIN_LEFT, 5, 5), "l.k AS k");
	assert_int_equal(growth_of(st, tp, 0), WEIR_GROWTH_BOUNDED);
#undef KEYS
}

/* A key has a partition in each of the topics: its rows have to be brought together. */
static void test_several_topics_are_not_direct(void **state)
{
	(void)state;
	static const char *const topics[] = {"topic=a;b", "topic-pattern=a.*"};
	for (size_t i = 0; i < WEIR_COUNT_OF(topics); i++) {
		char options[128];
		uint32_t partitions[] = {6};
		snprintf(options, sizeof options,
			 "connector=recorded path=x format=json key.fields=k key.format=raw %s", topics[i]);
		struct weir_topology *tp = grouped(options, "k");
		struct weir_plan *pl = plan(tp, partitions);
		assert_int_equal(pl->stages[0].exchange, WEIR_EXCHANGE_LOCAL);
		assert_string_equal(pl->stages[0].exchange_why, "the source reads several topics");
		weir_topology_destroy(tp);
	}
}

static void test_a_changed_key_is_not_the_sources(void **state)
{
	(void)state;
	uint32_t partitions[] = {6};
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_select(source(tp, "s", KEYED), "UPPER(k) AS k, v, ts");
	st = weir_aggregate(weir_tumble(weir_key_by(st, "k"), 10), "w", "k, COUNT(*) AS n");
	(void)weir_sink(st, "out", SINK);
	assert_int_equal(plan(tp, partitions)->stages[0].exchange, WEIR_EXCHANGE_LOCAL);
	weir_topology_destroy(tp);
}

static void test_two_sources_are_direct_with_equal_partitions_only(void **state)
{
	(void)state;
	for (int equal = 0; equal < 2; equal++) {
		uint32_t partitions[] = {4, equal ? 4 : 6};
		struct weir_topology *tp = weir_topology_create();
		struct weir_stream *st = weir_merge(source(tp, "a", KEYED), source(tp, "b", KEYED));
		st = weir_aggregate(weir_tumble(weir_key_by(st, "k"), 10), "w", "k, COUNT(*) AS n");
		(void)weir_sink(st, "out", SINK);
		struct weir_plan *pl = plan(tp, partitions);
		assert_int_equal(pl->stages[0].exchange, equal ? WEIR_EXCHANGE_DIRECT : WEIR_EXCHANGE_LOCAL);
		assert_int_equal(pl->stages[0].input_count, 2);
		assert_int_equal(pl->partition_count, partitions[0] + partitions[1]);
		weir_topology_destroy(tp);
	}
}

static void test_one_scan_feeds_every_sink_and_reads_what_they_need(void **state)
{
	(void)state;
	uint32_t partitions[] = {3};
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = source(tp, "s", UNKEYED);
	(void)weir_sink(weir_select(weir_filter(st, "v > 5"), "k"), "a", SINK);
	(void)weir_sink(weir_select(weir_filter(st, "v <= 5"), "k"), "b",
			"connector=recorded path=x topic=b format=json");
	struct weir_plan *pl = plan(tp, partitions);
	assert_int_equal(pl->scan_count, 1);
	assert_int_equal(pl->scans[0].branch_count, 2);
	assert_int_equal(pl->level_count, 0);
	assert_int_equal(pl->scans[0].value_count, 3); /* k, v and the event time; j is not read */
	assert_int_equal(pl->scans[0].all_count, 4);
	weir_topology_destroy(tp);
}

static void test_levels_and_holds_of_two_stages(void **state)
{
	(void)state;
	uint32_t partitions[] = {3};
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_tumble(weir_key_by(source(tp, "s", KEYED), "k"), 10);
	st = weir_aggregate(st, "first", "k, window_start, COUNT(*) AS n");
	st = weir_aggregate(weir_session(weir_key_by(st, "k"), 7), "second", "k, SUM(n) AS n");
	(void)weir_sink(st, "out", SINK);
	struct weir_plan *pl = plan(tp, partitions);
	assert_int_equal(pl->stage_count, 2);
	assert_int_equal(pl->level_count, 2);
	assert_int_equal(pl->stages[0].level, 1);
	assert_int_equal(pl->stages[0].hold_ms, 5);
	assert_int_equal(pl->stages[1].level, 2);
	assert_int_equal(pl->stages[1].exchange, WEIR_EXCHANGE_LOCAL);
	assert_int_equal(pl->stages[1].def.grace_ms, 0); /* a second stage has none unless given */
	assert_int_equal(pl->stages[1].hold_ms, 7);
	assert_true(pl->route_direct); /* batches go to the first stage's owner; the second is fed at order points */
	weir_topology_destroy(tp);
}

static void test_task_time_is_the_minimum_over_what_feeds_a_slot(void **state)
{
	(void)state;
	uint32_t partitions[] = {2};
	struct weir_topology *tp = grouped(UNKEYED, "k");
	struct weir_times *tm = weir_times_create(plan(tp, partitions));
	assert_true(weir_times_task(tm, 0, 0) == WEIR_TIME_UNSET);
	weir_times_advance(tm, 0, 0, 25);
	assert_true(weir_times_task(tm, 0, 0) == WEIR_TIME_UNSET); /* partition 1 has said nothing yet */
	weir_times_advance(tm, 0, 1, 3);
	assert_int_equal(weir_times_task(tm, 0, 0), 3);
	struct weir_clock ck = weir_times_clock(tm, 0, 0, 1);
	assert_int_equal(ck.before, 3);
	assert_int_equal(ck.others, 25);
	assert_int_equal(ck.part, 3);
	weir_times_advance(tm, 0, 1, 2); /* never back */
	assert_int_equal(weir_times_task(tm, 0, 0), 3);
	weir_times_event(tm, 1, WEIR_EVENT_IDLE);
	weir_times_refresh(tm, 0);
	assert_int_equal(weir_times_task(tm, 0, 0), 25);
	weir_times_event(tm, 1, WEIR_EVENT_BACK);
	weir_times_refresh(tm, 0);
	assert_int_equal(weir_times_task(tm, 0, 0), 25);
	weir_times_event(tm, 0, WEIR_EVENT_IDLE);
	weir_times_event(tm, 1, WEIR_EVENT_IDLE);
	weir_times_advance_by(tm, 10);
	weir_times_refresh(tm, 0);
	assert_int_equal(weir_times_task(tm, 0, 0), 35); /* all idle: the largest seen, and on with the wall clock */
	weir_times_destroy(tm);
	weir_topology_destroy(tp);
}

static void test_direct_slots_have_their_own_time(void **state)
{
	(void)state;
	uint32_t partitions[] = {2};
	bool bound;
	struct weir_topology *tp = grouped(KEYED, "k");
	struct weir_times *tm = weir_times_create(plan(tp, partitions));
	weir_times_advance(tm, 0, 0, 25);
	assert_int_equal(weir_times_task(tm, 0, 0), 25);
	assert_true(weir_times_task(tm, 0, 1) == WEIR_TIME_UNSET);
	assert_false(weir_times_slot_out(tm, 0, 0, &bound));
	weir_times_event(tm, 0, WEIR_EVENT_BOUND);
	assert_true(weir_times_slot_out(tm, 0, 0, &bound));
	assert_true(bound);
	weir_times_destroy(tm);
	weir_topology_destroy(tp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direct_only_when_the_sources_key_is_grouped_by),
		cmocka_unit_test(test_several_topics_are_not_direct),
		cmocka_unit_test(test_what_bounds_a_state),
		cmocka_unit_test(test_values_hold_the_keys_columns),
		cmocka_unit_test(test_unnest_keeps_nothing),
		cmocka_unit_test(test_a_changed_key_is_not_the_sources),
		cmocka_unit_test(test_two_sources_are_direct_with_equal_partitions_only),
		cmocka_unit_test(test_one_scan_feeds_every_sink_and_reads_what_they_need),
		cmocka_unit_test(test_levels_and_holds_of_two_stages),
		cmocka_unit_test(test_task_time_is_the_minimum_over_what_feeds_a_slot),
		cmocka_unit_test(test_direct_slots_have_their_own_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
