/* test_api.c: weir.h: text to nodes, event time that survives, keys, windows and aggregates, sinks, errors with places.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"

#define COLUMNS "merchant_id STRING, amount DECIMAL(12,2), region STRING, ts BIGINT, at TIMESTAMP(3)"
#define OPTIONS "topic=order.placed format=json"

static struct weir_stream *orders(struct weir_topology *tp)
{
	return weir_source(tp, "orders", COLUMNS, OPTIONS);
}

static void expect_ok(struct weir_topology *tp)
{
	if (weir_topology_error(tp) != NULL)
		fail_msg("%s", weir_diag_report(weir_topology_error(tp)));
}

/* The last node of a kind. */
static const struct weir_node *last(struct weir_topology *tp, enum weir_node_kind kind)
{
	for (uint32_t i = weir_topology_node_count(tp); i-- > 0;) {
		if (weir_topology_node(tp, i)->kind == kind)
			return weir_topology_node(tp, i);
	}
	fail_msg("no node of kind %d", kind);
	return NULL;
}

static void test_whole(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_event_time(orders(tp), "at", WEIR_SECONDS(5));
	st = weir_filter(st, "amount > 0 AND region = 'eu'");
	st = weir_select(st, "merchant_id, amount * 2 AS twice, at");
	st = weir_tumble(weir_key_by(st, "merchant_id"), WEIR_MINUTES(5));
	st = weir_aggregate(st, "revenue",
			    "window_start, merchant_id, COUNT(*) AS orders, SUM(twice) + 1 AS revenue, "
			    "COUNT(*) * 2 AS again, MAX(twice) FILTER (WHERE twice > 5) AS most");
	st = weir_filter(st, "orders > 1");
	assert_int_equal(
		weir_sink(st, "out", "path=/tmp/x topic=revenue format=json key.format=raw key.fields=merchant_id"),
		WEIR_OK);
	expect_ok(tp);
	assert_int_equal(weir_topology_check(tp, NULL), WEIR_OK);
	const struct weir_node *src = last(tp, WEIR_NODE_SOURCE);
	assert_int_equal(src->rowtime, 4);
	assert_int_equal(src->grace_ms, 5000);
	assert_int_equal(src->table->options.connector, WEIR_CONNECTOR_KAFKA);
	const struct weir_node *ag = last(tp, WEIR_NODE_AGGREGATE);
	assert_string_equal(ag->state_name, "revenue");
	assert_int_equal(ag->key_count, 1);
	assert_true(ag->reject_null_key);
	assert_false(ag->changes);
	assert_int_equal(ag->state_grace_ms, 5000);
	assert_int_equal(ag->agg_count, 3); /* COUNT(*) once */
	assert_int_equal(ag->aggs[0].kind, WEIR_AGG_COUNT_STAR);
	assert_int_equal(ag->aggs[1].kind, WEIR_AGG_SUM);
	assert_int_equal(ag->aggs[2].kind, WEIR_AGG_MAX);
	assert_int_equal(ag->agg_arg_count, 2); /* twice, twice > 5 */
	assert_int_equal(ag->aggs[1].arg, ag->aggs[2].arg);
	assert_int_equal(ag->aggs[1].filter, -1);
	assert_int_equal(ag->aggs[2].filter, 1);
	assert_int_equal(ag->column_count, 7);
	assert_int_equal(ag->inputs[0]->kind, WEIR_NODE_WINDOW);
	assert_int_equal(ag->inputs[0]->rowtime, 2);
	const struct weir_node *snk = last(tp, WEIR_NODE_SINK);
	assert_string_equal(snk->name, "out");
	assert_int_equal(snk->column_count, 6);
	assert_string_equal(snk->columns[0].name, "window_start");
	assert_string_equal(snk->columns[3].name, "revenue");
	assert_int_equal(snk->columns[3].type.kind, WEIR_KIND_DECIMAL);
	assert_int_equal(snk->table->options.connector, WEIR_CONNECTOR_RECORDED);
	assert_string_equal(snk->table->columns[4].name, "again");
	/* The projection over the aggregate reads what its list says. */
	const struct weir_node *prj = last(tp, WEIR_NODE_FILTER)->inputs[0];
	assert_int_equal(prj->kind, WEIR_NODE_PROJECT);
	assert_int_equal(prj->exprs[0]->column, 4); /* window_start: behind one key and three aggregates */
	assert_int_equal(prj->columns[0].role, WEIR_ROLE_WINDOW_START);
	assert_int_equal(prj->exprs[1]->column, 0);
	assert_int_equal(prj->exprs[2]->column, 1);
	weir_topology_destroy(tp);
}

static void test_bigint_time_is_hidden(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_event_time(orders(tp), "ts", 0);
	st = weir_select(st, "merchant_id, *");
	assert_non_null(weir_topology_error(tp)); /* merchant_id stands twice */
	assert_non_null(
		strstr(weir_diag_report(weir_topology_error(tp)), "weir_select:1:14: error: two columns are named"));
	weir_topology_destroy(tp);

	tp = weir_topology_create();
	st = weir_event_time(orders(tp), "ts", 0);
	st = weir_select(st, "*");
	const struct weir_node *all = last(tp, WEIR_NODE_PROJECT);
	assert_int_equal(all->column_count, 6);
	assert_string_equal(all->columns[5].name, "$time");
	st = weir_select(st, "merchant_id");
	const struct weir_node *one = last(tp, WEIR_NODE_PROJECT);
	assert_int_equal(one->column_count, 2);
	assert_int_equal(one->rowtime, 1);
	assert_int_equal(one->columns[1].type.kind, WEIR_KIND_TIMESTAMP_LTZ);
	st = weir_session(weir_key_by(st, "merchant_id"), WEIR_MINUTES(1));
	st = weir_aggregate(weir_emit(st, WEIR_EMIT_CHANGES), "sessions", "merchant_id, COUNT(*) AS n");
	expect_ok(tp);
	assert_true(last(tp, WEIR_NODE_AGGREGATE)->changes);
	/* The result carries its window_time on, hidden, so that a second window can follow. */
	st = weir_hop(weir_key_by(st, "n"), 10, 4);
	st = weir_aggregate(st, "second", "n, COUNT(*) AS m, window_end");
	expect_ok(tp);
	assert_int_equal(last(tp, WEIR_NODE_WINDOW)->rowtime, 2);
	assert_int_equal(weir_sink(st, "o", OPTIONS), WEIR_OK);
	assert_int_equal(last(tp, WEIR_NODE_SINK)->column_count, 3);
	weir_topology_destroy(tp);
}

static void test_columns_of_sources(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_source(tp, "s",
					     "`my key` STRING NOT NULL, n INT, o BIGINT METADATA FROM 'offset' "
					     "VIRTUAL, partition INT METADATA, n2 AS n + 1",
					     OPTIONS);
	st = weir_filter(st, "n2 > o AND `my key` LIKE 'a%'");
	assert_int_equal(weir_sink(st, "o", "connector=blackhole"), WEIR_OK);
	expect_ok(tp);
	const struct weir_table_def *def = last(tp, WEIR_NODE_SOURCE)->table;
	assert_int_equal(def->column_count, 5);
	assert_string_equal(def->columns[0].name, "my key");
	assert_true(def->columns[0].type.not_null);
	assert_int_equal(def->columns[2].kind, WEIR_COLUMN_METADATA);
	assert_string_equal(def->columns[2].metadata, "offset");
	assert_true(def->columns[2].is_virtual);
	assert_string_equal(def->columns[3].metadata, "partition");
	assert_int_equal(def->columns[4].kind, WEIR_COLUMN_COMPUTED);
	assert_int_equal(def->columns[4].type.kind, WEIR_KIND_INT);
	weir_topology_destroy(tp);
}

static void test_merge(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *a = weir_event_time(orders(tp), "ts", 5);
	struct weir_stream *b = weir_event_time(weir_source(tp, "b", COLUMNS, OPTIONS), "ts", 9);
	struct weir_stream *st = weir_merge(weir_select(a, "merchant_id, amount"), weir_select(b, "region, amount"));
	expect_ok(tp);
	const struct weir_node *u = last(tp, WEIR_NODE_UNION);
	assert_int_equal(u->rowtime, 2);
	assert_int_equal(u->grace_ms, 9);
	assert_string_equal(u->columns[0].name, "merchant_id");
	/* One takes its time from a visible column, the other from a hidden one: both go on hidden. */
	struct weir_stream *c =
		weir_event_time(weir_source(tp, "c", "m STRING, at TIMESTAMP_LTZ(3)", OPTIONS), "at", 0);
	struct weir_stream *d =
		weir_event_time(weir_source(tp, "d", "m STRING, x TIMESTAMP_LTZ(3), ts BIGINT", OPTIONS), "ts", 0);
	(void)weir_merge(c, weir_select(d, "m, x"));
	expect_ok(tp);
	u = last(tp, WEIR_NODE_UNION);
	assert_int_equal(u->column_count, 3);
	assert_int_equal(u->rowtime, 2);
	assert_int_equal(weir_sink(st, "o", OPTIONS), WEIR_OK);
	(void)weir_merge(weir_select(a, "merchant_id"),
			 weir_select(weir_source(tp, "e", COLUMNS, OPTIONS), "merchant_id"));
	assert_non_null(strstr(weir_diag_text(weir_topology_error(tp)), "only one of the streams"));
	weir_topology_destroy(tp);
}

/* Builds by one call that must fail; part is in the report. */
static void refuse(struct weir_stream *(*build)(struct weir_topology *tp), const char *part)
{
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = build(tp);
	assert_non_null(st);
	if (weir_topology_error(tp) == NULL)
		fail_msg("no error, expected '%s'", part);
	if (strstr(weir_diag_report(weir_topology_error(tp)), part) == NULL)
		fail_msg("'%s' is not in '%s'", part, weir_diag_report(weir_topology_error(tp)));
	/* Sticky: nothing that follows does anything, or fails. */
	st = weir_aggregate(weir_tumble(weir_key_by(weir_select(weir_filter(st, "x"), "y"), "z"), 5), "s", "COUNT(*)");
	st = weir_merge(weir_emit(weir_event_time(weir_hop(weir_session(st, 1), 2, 1), "t", 0), WEIR_EMIT_FINAL), st);
	assert_true(weir_sink(st, "o", OPTIONS) < 0);
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_topology_check(tp, &dg), weir_diag_code(weir_topology_error(tp)));
	assert_string_equal(weir_diag_report(dg), weir_diag_report(weir_topology_error(tp)));
	weir_diag_destroy(dg);
	weir_topology_destroy(tp);
}

#define BUILD(name, expr)                                                                                              \
	static struct weir_stream *name(struct weir_topology *tp)                                                      \
	{                                                                                                              \
		return expr;                                                                                           \
	}
BUILD(bad_column_list, weir_source(tp, "s", "a STRING,\n b STRNG", OPTIONS))
BUILD(bad_twice, weir_source(tp, "s", "a STRING, a INT", OPTIONS))
BUILD(bad_metadata, weir_source(tp, "s", "a STRING METADATA FROM 'offsets'", OPTIONS))
BUILD(bad_option, weir_source(tp, "s", "a STRING", "topic=t format=json scan.startup.mod=x"))
BUILD(bad_direction, weir_source(tp, "s", "a STRING", "connector=print"))
BUILD(bad_filter_name, weir_filter(orders(tp), "amout > 0"))
BUILD(bad_filter_type, weir_filter(orders(tp), "amount + 1"))
BUILD(bad_filter_tail, weir_filter(orders(tp), "amount > 0 x"))
BUILD(bad_filter_null, weir_filter(orders(tp), NULL))
BUILD(bad_filter_agg, weir_filter(orders(tp), "COUNT(*) > 1"))
BUILD(bad_time_type, weir_event_time(orders(tp), "region", 0))
BUILD(bad_time_name, weir_event_time(orders(tp), "when", 0))
BUILD(bad_time_place, weir_event_time(weir_filter(orders(tp), "TRUE"), "ts", 0))
BUILD(bad_key, weir_key_by(orders(tp), "merchant_id, merchant"))
BUILD(bad_key_twice, weir_key_by(orders(tp), "region, region"))
BUILD(bad_tumble, weir_tumble(orders(tp), 0))
BUILD(bad_hop, weir_hop(orders(tp), 5, 6))
BUILD(bad_sliding, weir_sliding(orders(tp), -1))
BUILD(long_sliding, weir_aggregate(weir_key_by(weir_sliding(orders(tp), INT64_MAX), "region"), "s", "region, COUNT(*)"))
BUILD(bad_window_twice, weir_tumble(weir_session(orders(tp), 5), 5))
BUILD(bad_no_key, weir_aggregate(orders(tp), "s", "COUNT(*)"))
BUILD(bad_state, weir_aggregate(weir_key_by(orders(tp), "region"), "a/b", "COUNT(*)"))
BUILD(bad_plain_column, weir_aggregate(weir_key_by(orders(tp), "region"), "s", "region, amount, COUNT(*)"))
BUILD(bad_unknown_column, weir_aggregate(weir_key_by(orders(tp), "region"), "s", "SUM(amout)"))
BUILD(bad_nested, weir_aggregate(weir_key_by(orders(tp), "region"), "s", "SUM(COUNT(*))"))
BUILD(bad_sum, weir_aggregate(weir_key_by(orders(tp), "region"), "s", "SUM(region)"))
BUILD(bad_star, weir_aggregate(weir_key_by(orders(tp), "region"), "s", "*"))
BUILD(latest_no_key, weir_to_stream(weir_latest(orders(tp), "s")))
BUILD(latest_no_time, weir_to_stream(weir_latest(weir_key_by(orders(tp), "region"), "s")))
BUILD(latest_window, weir_to_stream(weir_latest(weir_tumble(weir_key_by(orders(tp), "region"), 5), "s")))
BUILD(bad_lost_key, weir_aggregate(weir_select(weir_key_by(orders(tp), "region"), "ts"), "s", "COUNT(*)"))

static struct weir_stream *paired(struct weir_topology *tp, const char *l, const char *r, const char *state_name,
				  int kind)
{
	struct weir_stream *st = weir_event_time(orders(tp), "ts", 0);
	return weir_join_within(weir_key_by(st, l), weir_key_by(st, r), state_name, (enum weir_join_kind)kind, 5, 5);
}
static struct weir_stream *within(struct weir_topology *tp, int64_t before_ms, int64_t after_ms)
{
	struct weir_stream *st = weir_key_by(weir_event_time(orders(tp), "ts", 0), "region");
	return weir_join_within(st, st, "s", WEIR_JOIN_INNER, before_ms, after_ms);
}
static struct weir_stream *looked_up(struct weir_topology *tp, const char *on, int kind)
{
	struct weir_table *tb = weir_table(tp, "t", "region STRING, x INT", "region", OPTIONS);
	return weir_join_table(orders(tp), tb, "s", on, (enum weir_join_kind)kind);
}
BUILD(bad_join_kind, paired(tp, "region", "region", "s", 4))
BUILD(bad_join_state, paired(tp, "region", "region", "a/b", WEIR_JOIN_FULL))
BUILD(bad_join_no_state, paired(tp, "region", "region", "", WEIR_JOIN_FULL))
BUILD(bad_join_keys, paired(tp, "region, ts", "region", "s", WEIR_JOIN_INNER))
BUILD(bad_join_types, paired(tp, "region", "ts", "s", WEIR_JOIN_INNER))
BUILD(bad_join_bounds, within(tp, -5, 4))
BUILD(bad_join_range, within(tp, INT64_MAX, INT64_MAX))
BUILD(bad_join_window, weir_join_windows(paired(tp, "region", "region", "s", 0), orders(tp), "w", WEIR_JOIN_INNER))
BUILD(bad_lookup_kind, looked_up(tp, "region", WEIR_JOIN_RIGHT))
BUILD(bad_lookup_name, looked_up(tp, "regio", WEIR_JOIN_LEFT))
BUILD(bad_lookup_count, looked_up(tp, "region, ts", WEIR_JOIN_LEFT))
BUILD(bad_lookup_type, looked_up(tp, "ts", WEIR_JOIN_LEFT))

static void test_errors_of_joins(void **state)
{
	(void)state;
	refuse(bad_join_kind, "state 's': no such kind of join");
	refuse(bad_join_state, "the state name 'a/b' is no topic name");
	refuse(bad_join_no_state, "a join needs a state name");
	refuse(bad_join_keys, "weir_join_within: 2 key columns and 1");
	refuse(bad_join_types, "state 's': a join compares STRING with BIGINT");
	refuse(bad_join_bounds, "state 's': the join's bounds leave no time: -5 ms before and 4 ms after");
	refuse(bad_join_range, "state 's': the join's bounds are out of range");
	refuse(bad_join_window, "both streams need weir_tumble or weir_hop");
	refuse(bad_lookup_kind, "rows of a table cannot be kept");
	refuse(bad_lookup_name, "weir_join_table:1:1: error: unknown column regio");
	refuse(bad_lookup_count, "2 expressions, the table's key has 1");
	refuse(bad_lookup_type, "the table's key column 'region' is of another type");
}

/* A name that no commit could write. */
static void test_a_name_is_too_long(void **state)
{
	(void)state;
	char name[2000];
	for (int fits = 1; fits >= 0; fits--) {
		memset(name, 't', sizeof name);
		name[fits ? 1024 : 1025] = 0;
		struct weir_topology *tp = weir_topology_create();
		(void)weir_select(weir_source(tp, name, COLUMNS, OPTIONS), "merchant_id");
		if (fits)
			expect_ok(tp);
		else
			assert_non_null(
				strstr(weir_diag_text(weir_topology_error(tp)),
				       "its name has 1025 bytes, and the name of a table that is read may have 1024"));
		weir_topology_destroy(tp);
	}
}

static void test_errors(void **state)
{
	(void)state;
	refuse(bad_column_list, "weir_source:2:4: error: ");
	refuse(bad_twice, "two columns are named 'a'");
	refuse(bad_metadata, "unknown metadata 'offsets'");
	refuse(bad_option, "did you mean 'scan.startup.mode'?");
	refuse(bad_direction, "is a sink only");
	refuse(bad_filter_name, "weir_filter:1:1: error: ");
	refuse(bad_filter_type, "must be BOOLEAN, not DECIMAL");
	refuse(bad_filter_tail, "weir_filter:1:12: error: expected the end, found 'x'");
	refuse(bad_filter_null, "a text is missing");
	refuse(bad_filter_agg, "cannot hold an aggregate");
	refuse(bad_time_type, "must be BIGINT, TIMESTAMP(3) or TIMESTAMP_LTZ(3)");
	refuse(bad_time_name, "has no column 'when'");
	refuse(bad_time_place, "right behind weir_source");
	refuse(bad_key, "weir_key_by:1:14: error: there is no column 'merchant'");
	refuse(bad_key_twice, "named twice");
	refuse(bad_tumble, "the size must be positive");
	refuse(bad_hop, "at most the size");
	refuse(bad_sliding, "must not be negative");
	refuse(long_sliding, "the length of sliding windows must be from 0 to 576460752303423487 ms");
	refuse(bad_window_twice, "has a window already");
	refuse(bad_no_key, "call weir_key_by before");
	refuse(bad_state, "is no topic name");
	refuse(bad_plain_column, "weir_aggregate:1:9: error: column 'amount' is neither a key nor in an aggregate");
	refuse(bad_unknown_column, "weir_aggregate:1:5: error: ");
	refuse(bad_nested, "cannot hold another one");
	refuse(bad_sum, "weir_aggregate:1:1: error: ");
	refuse(bad_star, "cannot stand beside aggregates");
	refuse(latest_no_key, "weir_key_by comes before");
	refuse(latest_no_time, "takes a stream with an event time");
	refuse(latest_window, "takes no window");
	refuse(bad_lost_key, "was lost by weir_select");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_bigint_time_is_hidden),
		cmocka_unit_test(test_columns_of_sources),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_a_name_is_too_long),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_errors_of_joins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
