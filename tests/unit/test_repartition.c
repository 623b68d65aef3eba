/* test_repartition.c: the topic exchange in the plan: which stages get a topic, what stands in it, how upstream slots
 * are numbered. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hotpath/topology/plan.h"
#include "hotpath/weir.h"

#define KEYED   "connector=kafka topic=in format=json key.fields=k key.format=raw"
#define UNKEYED "connector=kafka topic=in format=json"
#define SINK    "connector=kafka topic=out format=json key.fields=k key.format=raw"
#define COLUMNS "k STRING, j STRING, v BIGINT, ts TIMESTAMP_LTZ(3)"

static struct weir_stream *source(struct weir_topology *tp, const char *name, const char *options)
{
	return weir_event_time(weir_source(tp, name, COLUMNS, options), "ts", 5);
}

static enum weir_err plan(struct weir_plan **out, struct weir_topology *tp, const uint32_t *partitions,
			  struct weir_diag **dg)
{
	struct weir_plan_settings ps = {.exchange = WEIR_PLAN_EXCHANGE_TOPIC, .emit_coalesce = true, .app = "app"};
	enum weir_err err = weir_topology_check(tp, dg);
	if (err == WEIR_OK)
		err = weir_plan_create(out, tp, &ps, dg);
	return err == WEIR_OK ? weir_plan_bind(*out, partitions, 64, dg) : err;
}

static struct weir_plan *must(struct weir_topology *tp, const uint32_t *partitions)
{
	struct weir_plan *pl = NULL;
	struct weir_diag *dg = NULL;
	if (plan(&pl, tp, partitions, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	return pl;
}

static void test_a_stage_with_the_sources_key_needs_none(void **state)
{
	(void)state;
	uint32_t partitions[] = {6};
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_tumble(weir_key_by(source(tp, "s", KEYED), "k"), 10);
	(void)weir_sink(weir_aggregate(st, "w", "k, COUNT(*) AS n"), "out", SINK);
	struct weir_plan *pl = must(tp, partitions);
	assert_int_equal(pl->repartition_count, 0);
	assert_int_equal(pl->scan_count, 1);
	assert_int_equal(pl->sinks[0].repartition, -1);
	assert_int_equal(pl->scans[0].repartition, -1);
	weir_topology_destroy(tp);
}

static void test_a_rekeyed_stage_reads_a_topic_of_its_own(void **state)
{
	(void)state;
	uint32_t partitions[] = {6, 8};
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_tumble(weir_key_by(source(tp, "s", UNKEYED), "k"), 10);
	(void)weir_sink(weir_aggregate(st, "w", "k, COUNT(*) AS n, SUM(v) AS v"), "out", SINK);
	struct weir_plan *pl = must(tp, partitions);
	assert_int_equal(pl->repartition_count, 1);
	const struct weir_plan_repartition *rp = &pl->repartitions[0];
	assert_string_equal(rp->topic, "app-w-repartition");
	assert_int_equal(pl->scan_count, 2);
	assert_int_equal(pl->sink_count, 2);
	assert_int_equal(rp->upstream_count, 6);
	const struct weir_plan_stage *stage = &pl->stages[rp->stage];
	assert_int_equal(stage->exchange, WEIR_EXCHANGE_DIRECT);
	assert_int_equal(stage->slot_count, 8);
	assert_int_equal(stage->input_count, 1);
	assert_true(pl->route_direct);
	const struct weir_plan_branch *in = &pl->branches[stage->inputs[0]];
	assert_int_equal(in->from, WEIR_FROM_SCAN);
	assert_int_equal(in->origin, rp->scan);
	const struct weir_plan_sink *sk = &pl->sinks[rp->sink];
	assert_int_equal(sk->key_count, 1);
	assert_string_equal(sk->column_names[0], "k");
	assert_string_equal(sk->column_names[1], "v");
	assert_int_equal(sk->value_format.kind, WEIR_FORMAT_PACKED);
	assert_int_equal(pl->branches[rp->inputs[0]].to, WEIR_TO_SINK);
	assert_int_equal(pl->branches[rp->inputs[0]].target, rp->sink);
	assert_int_equal(weir_plan_upstream(pl, rp->inputs[0], 5), 5);
	weir_topology_destroy(tp);
}

static void test_upstream_slots_of_several_inputs_are_numbered_on(void **state)
{
	(void)state;
	uint32_t partitions[] = {6, 4, 6};
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_merge(source(tp, "a", UNKEYED), source(tp, "b", UNKEYED));
	st = weir_tumble(weir_key_by(st, "k"), 10);
	(void)weir_sink(weir_aggregate(st, "w", "k, COUNT(*) AS n"), "out", SINK);
	struct weir_plan *pl = must(tp, partitions);
	const struct weir_plan_repartition *rp = &pl->repartitions[0];
	assert_int_equal(rp->input_count, 2);
	assert_int_equal(rp->upstream_count, 10);
	assert_int_equal(weir_plan_upstream(pl, rp->inputs[1], 3), 9);
	weir_topology_destroy(tp);
}

static void test_a_second_stage_goes_through_a_topic_too(void **state)
{
	(void)state;
	uint32_t partitions[] = {6, 8};
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_tumble(weir_key_by(source(tp, "s", KEYED), "k, j"), 10);
	st = weir_aggregate(st, "first", "k, j, window_start, COUNT(*) AS n");
	st = weir_tumble(weir_key_by(st, "j"), 100);
	(void)weir_sink(weir_aggregate(st, "second", "j AS k, SUM(n) AS n"), "out", SINK);
	struct weir_plan *pl = must(tp, partitions);
	assert_int_equal(pl->repartition_count, 1);
	const struct weir_plan_repartition *rp = &pl->repartitions[0];
	assert_string_equal(rp->topic, "app-second-repartition");
	assert_int_equal(pl->branches[rp->inputs[0]].from, WEIR_FROM_STAGE);
	assert_int_equal(rp->upstream_count, 6); /* slots of the first stage */
	assert_int_equal(pl->level_count, 1);
	weir_topology_destroy(tp);
}

/* l and r joined by l's column and r's; what stands in the plan's only, or first, join. */
static struct weir_plan *joined(struct weir_topology **tp, const char *l, const char *lk, const char *r, const char *rk)
{
	uint32_t partitions[] = {6, 6, 6, 6};
	*tp = weir_topology_create();
	struct weir_stream *st = weir_join_within(weir_key_by(source(*tp, "l", l), lk),
						  weir_key_by(source(*tp, "r", r), rk), "pairs", WEIR_JOIN_FULL, 5, 5);
	(void)weir_sink(weir_select(st, "l.k AS k, r.v AS v"), "out", SINK);
	return must(*tp, partitions);
}

static void assert_fed_directly(const struct weir_plan *pl)
{
	assert_int_equal(pl->stages[0].exchange, WEIR_EXCHANGE_DIRECT);
	assert_int_equal(pl->stages[0].slot_count, 6);
	assert_true(pl->route_direct);
	assert_int_equal(pl->stages[0].input_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct weir_plan_branch *br = &pl->branches[pl->stages[0].inputs[i]];
		assert_int_equal(br->from, WEIR_FROM_SCAN);
		assert_int_equal(br->side, i);
	}
}

static void test_a_joins_side_with_the_right_key_stays(void **state)
{
	(void)state;
	struct weir_topology *tp;
	struct weir_plan *pl = joined(&tp, UNKEYED, "j", KEYED, "k");
	assert_int_equal(pl->repartition_count, 1);
	assert_string_equal(pl->repartitions[0].topic, "app-pairs-left-repartition");
	assert_fed_directly(pl);
	/* The other side's records have the same bytes as keys. */
	const struct weir_plan_sink *sk = &pl->sinks[pl->repartitions[0].sink];
	assert_int_equal(sk->key_format.kind, WEIR_FORMAT_RAW);
	assert_int_equal(sk->key_count, 1);
	assert_int_equal(sk->key_columns[0], 0);
	weir_topology_destroy(tp);
	pl = joined(&tp, KEYED, "k", KEYED, "j");
	assert_int_equal(pl->repartition_count, 1);
	assert_string_equal(pl->repartitions[0].topic, "app-pairs-right-repartition");
	assert_fed_directly(pl);
	weir_topology_destroy(tp);
	pl = joined(&tp, KEYED, "k", KEYED, "k");
	assert_int_equal(pl->repartition_count, 0);
	assert_fed_directly(pl);
	weir_topology_destroy(tp);
}

static void test_both_sides_of_a_join_go_where_neither_can_stay(void **state)
{
	(void)state;
	/* JSON keys are written in more than one way. */
	static const char json[] = "connector=kafka topic=in format=json key.fields=k key.format=json";
	static const struct {
		const char *l, *lk, *r, *rk;
	} cases[] = {{UNKEYED, "k", UNKEYED, "j"}, {json, "k", UNKEYED, "j"}, {KEYED, "k,j", UNKEYED, "k,j"}};
	for (uint32_t i = 0; i < 2; i++) {
		struct weir_topology *tp;
		struct weir_plan *pl = joined(&tp, cases[i].l, cases[i].lk, cases[i].r, cases[i].rk);
		assert_int_equal(pl->repartition_count, 2);
		assert_string_equal(pl->repartitions[0].topic, "app-pairs-left-repartition");
		assert_string_equal(pl->repartitions[1].topic, "app-pairs-right-repartition");
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(pl->sinks[pl->repartitions[r].sink].key_format.kind, WEIR_FORMAT_PACKED);
		assert_fed_directly(pl);
		weir_topology_destroy(tp);
	}
	/* A source keyed by some of the columns puts equal keys together, too. */
	struct weir_topology *tp;
	struct weir_plan *pl = joined(&tp, cases[2].l, cases[2].lk, cases[2].r, cases[2].rk);
	assert_int_equal(pl->repartition_count, 1);
	assert_int_equal(pl->sinks[pl->repartitions[0].sink].key_count, 1);
	assert_fed_directly(pl);
	weir_topology_destroy(tp);
}

static void test_what_leaves_a_table_goes_through_a_topic(void **state)
{
	(void)state;
	uint32_t partitions[] = {6, 6, 6, 6, 6}; /* two sources, three topics */
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_key_by(source(tp, "s", UNKEYED), "j");
	struct weir_stream *all = weir_aggregate(weir_key_by(source(tp, "u", UNKEYED), "k"), "sums", "k, SUM(v) AS v");
	st = weir_join_table(st, weir_to_table(all), "looked-up", "j", WEIR_JOIN_LEFT);
	(void)weir_sink(weir_select(st, "l.k AS k, l.v AS v"), "out", SINK);
	struct weir_plan *pl = must(tp, partitions);
	assert_int_equal(pl->repartition_count, 3); /* into the sums, and both sides of the join */
	bool tables = false;
	for (uint32_t r = 0; r < pl->repartition_count; r++) {
		const struct weir_plan_branch *out = &pl->branches[pl->repartitions[r].inputs[0]];
		const struct weir_plan_branch *in = &pl->branches[pl->scans[pl->repartitions[r].scan].branches[0]];
		assert_int_equal(out->table, in->table);
		assert_int_equal(out->side, in->side);
		tables |= in->table;
	}
	assert_true(tables);
	weir_topology_destroy(tp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_stage_with_the_sources_key_needs_none),
		cmocka_unit_test(test_a_joins_side_with_the_right_key_stays),
		cmocka_unit_test(test_both_sides_of_a_join_go_where_neither_can_stay),
		cmocka_unit_test(test_what_leaves_a_table_goes_through_a_topic),
		cmocka_unit_test(test_a_rekeyed_stage_reads_a_topic_of_its_own),
		cmocka_unit_test(test_upstream_slots_of_several_inputs_are_numbered_on),
		cmocka_unit_test(test_a_second_stage_goes_through_a_topic_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
