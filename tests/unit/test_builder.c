/* test_builder.c: relation nodes: columns, roles, time attribute, grace, names and sticky errors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"

static const struct weir_type type_string = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
static const struct weir_type type_bigint = {.kind = WEIR_KIND_BIGINT};
static const struct weir_type type_bool = {.kind = WEIR_KIND_BOOLEAN};
static const struct weir_type type_ltz = {.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = 3};

static const struct weir_table_column order_columns[] = {
	{.name = "merchant", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}},
	{.name = "amount", .type = {.kind = WEIR_KIND_BIGINT}},
	{.name = "at", .type = {.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = 3}},
};
static const struct weir_table_def orders = {
	.name = "orders", .columns = order_columns, .column_count = 3, .rowtime = 2, .grace_ms = 5000};

/* Expressions made by hand: the builder needs no parser. */
static const struct weir_expr *column(struct weir_topology *tp, uint32_t c, const struct weir_type *t)
{
	struct weir_expr *e = weir_mem_take(weir_topology_mem(tp), sizeof *e);
	e->op = WEIR_EXPR_COLUMN;
	e->column = c;
	e->type = *t;
	return e;
}

static const struct weir_window_spec tumble = {.kind = WEIR_WINDOW_TUMBLE, .size_ms = 60000, .advance_ms = 60000};

static struct weir_agg count_star(void)
{
	struct weir_agg a = {.kind = WEIR_AGG_COUNT_STAR, .arg = -1, .filter = -1};
	a.result_type = type_bigint;
	return a;
}

static void test_windowed_aggregate(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_node *src = weir_build_source(tp, &orders);
	assert_int_equal(src->kind, WEIR_NODE_SOURCE);
	assert_string_equal(src->name, "orders");
	assert_int_equal(src->rowtime, 2);
	assert_int_equal(src->columns[2].role, WEIR_ROLE_ROWTIME);
	assert_int_equal(src->columns[1].role, WEIR_ROLE_NONE);
	assert_int_equal(src->grace_ms, 5000);
	struct weir_node *flt = weir_build_filter(tp, src, column(tp, 1, &type_bool));
	assert_string_equal(flt->name, "filter-1");
	assert_int_equal(flt->rowtime, 2);
	struct weir_node *win = weir_build_window(tp, flt, 2, &tumble);
	assert_string_equal(win->name, "tumble-1");
	assert_int_equal(win->column_count, 6);
	assert_string_equal(win->columns[3].name, "window_start");
	assert_int_equal(win->columns[3].type.kind, WEIR_KIND_TIMESTAMP);
	assert_int_equal(win->columns[3].type.precision, 3);
	assert_int_equal(win->columns[4].role, WEIR_ROLE_WINDOW_END);
	assert_int_equal(win->columns[5].type.kind, WEIR_KIND_TIMESTAMP_LTZ);
	assert_int_equal(win->columns[5].role, WEIR_ROLE_WINDOW_TIME);
	const char *const names[] = {"m", "at", "window_end"};
	const struct weir_expr *const exprs[] = {column(tp, 0, &type_string), column(tp, 2, &type_ltz),
						 column(tp, 4, &win->columns[4].type)};
	struct weir_node *prj = weir_build_project(tp, win, names, exprs, 3);
	assert_int_equal(prj->rowtime, 1);
	assert_int_equal(prj->columns[0].role, WEIR_ROLE_NONE);
	assert_int_equal(prj->columns[1].role, WEIR_ROLE_ROWTIME);
	assert_int_equal(prj->columns[2].role, WEIR_ROLE_WINDOW_END);
	const struct weir_expr *key = column(tp, 0, &type_string);
	const char *key_name = "m", *agg_name = "n";
	struct weir_agg agg = count_star();
	struct weir_node *ag = weir_build_aggregate(tp, prj, "revenue", &key_name, &key, 1, &agg_name, &agg, 1, NULL, 0,
						    &tumble, -1, false);
	assert_null(weir_topology_error(tp));
	assert_string_equal(ag->name, "revenue");
	assert_int_equal(ag->column_count, 5);
	assert_string_equal(ag->columns[0].name, "m");
	assert_string_equal(ag->columns[1].name, "n");
	assert_int_equal(ag->columns[1].type.kind, WEIR_KIND_BIGINT);
	assert_int_equal(ag->columns[2].role, WEIR_ROLE_WINDOW_START);
	assert_int_equal(ag->rowtime, 4);
	assert_int_equal(ag->columns[4].role, WEIR_ROLE_WINDOW_TIME);
	assert_int_equal(ag->columns[4].type.kind, WEIR_KIND_TIMESTAMP_LTZ);
	assert_int_equal(ag->state_grace_ms, 5000);
	assert_int_equal(ag->grace_ms, 0);
	assert_false(ag->is_table);
	assert_false(ag->changes);
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_topology_check(tp, &dg), WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_text(dg), "no sink"));
	weir_diag_destroy(dg);
	/* A second window over the result: its bounds are data from there on, its window_time the time attribute. */
	struct weir_node *again = weir_build_window(tp, ag, 4, &tumble);
	assert_int_equal(again->columns[2].role, WEIR_ROLE_NONE);
	assert_int_equal(again->columns[4].role, WEIR_ROLE_ROWTIME);
	assert_int_equal(again->columns[5].role, WEIR_ROLE_WINDOW_START);
	struct weir_node *snk = weir_build_sink(tp, ag, NULL, true);
	assert_true(snk->prints_rows);
	assert_string_equal(snk->name, "select");
	assert_int_equal(weir_topology_check(tp, NULL), WEIR_OK);
	assert_int_equal(weir_topology_node_count(tp), 7);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(weir_topology_node(tp, i)->id, i);
	weir_topology_destroy(tp);
}

static void test_plain_aggregate_is_a_table(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_node *src = weir_build_source(tp, &orders);
	const struct weir_expr *key = column(tp, 0, &type_string);
	const char *key_name = "m", *agg_name = "n";
	struct weir_agg agg = count_star();
	struct weir_node *a =
		weir_build_aggregate(tp, src, "a", &key_name, &key, 1, &agg_name, &agg, 1, NULL, 0, NULL, 7, false);
	assert_true(a->is_table);
	assert_true(a->changes);
	assert_int_equal(a->rowtime, -1);
	assert_int_equal(a->column_count, 2);
	assert_int_equal(a->state_grace_ms, 7);
	struct weir_node *f = weir_build_filter(tp, a, column(tp, 1, &type_bool));
	assert_true(f->is_table);
	(void)weir_build_aggregate(tp, src, "a", &key_name, &key, 1, &agg_name, &agg, 1, NULL, 0, NULL, -1, false);
	assert_non_null(strstr(weir_diag_text(weir_topology_error(tp)), "two states are named 'a'"));
	weir_topology_destroy(tp);
}

static void test_union(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_table_def other = orders;
	other.name = "others";
	other.grace_ms = 9000;
	struct weir_table_def no_time = orders;
	no_time.rowtime = -1;
	struct weir_node *in[] = {weir_build_source(tp, &orders), weir_build_source(tp, &other)};
	struct weir_node *u = weir_build_union(tp, in, 2);
	assert_int_equal(u->input_count, 2);
	assert_int_equal(u->rowtime, 2);
	assert_int_equal(u->columns[2].role, WEIR_ROLE_ROWTIME);
	assert_int_equal(u->grace_ms, 9000);
	in[1] = weir_build_source(tp, &no_time);
	assert_string_equal(in[1]->name, "orders-2");
	u = weir_build_union(tp, in, 2);
	assert_int_equal(u->rowtime, -1);
	assert_int_equal(u->columns[2].role, WEIR_ROLE_NONE);
	assert_string_equal(u->name, "union-2");
	in[1] = weir_build_window(tp, in[0], 2, &tumble);
	assert_ptr_equal(weir_build_union(tp, in, 2), in[0]);
	assert_non_null(strstr(weir_diag_text(weir_topology_error(tp)), "needs equal columns: 3 and 6"));
	weir_topology_destroy(tp);
}

static void test_errors_stick(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_node *src = weir_build_source(tp, &orders);
	struct weir_node *f = weir_build_filter(tp, src, column(tp, 1, &type_bigint));
	assert_non_null(f);
	uint32_t nodes = weir_topology_node_count(tp);
	const char *name = "x";
	const struct weir_expr *e = column(tp, 0, &type_string);
	assert_non_null(weir_build_project(tp, f, &name, &e, 1));
	assert_non_null(weir_build_source(tp, &orders));
	assert_non_null(weir_build_sink(tp, f, NULL, true));
	assert_int_equal(weir_topology_node_count(tp), nodes);
	for (int i = 0; i < 2; i++) { /* reported as often as it is asked for */
		struct weir_diag *dg = NULL;
		assert_int_equal(weir_topology_check(tp, &dg), WEIR_E_PLAN);
		assert_string_equal(weir_diag_text(dg), "a filter must be BOOLEAN, not BIGINT");
		weir_diag_destroy(dg);
	}
	weir_topology_destroy(tp);
	weir_topology_destroy(NULL);
}

static void expect_window_error(const struct weir_window_spec *w, const char *part)
{
	struct weir_topology *tp = weir_topology_create();
	(void)weir_build_window(tp, weir_build_source(tp, &orders), 2, w);
	assert_non_null(weir_topology_error(tp));
	if (strstr(weir_diag_text(weir_topology_error(tp)), part) == NULL)
		fail_msg("'%s' is not in '%s'", part, weir_diag_text(weir_topology_error(tp)));
	weir_topology_destroy(tp);
}

static void test_window_bounds(void **state)
{
	(void)state;
	expect_window_error(&(struct weir_window_spec){.kind = WEIR_WINDOW_TUMBLE},
			    "size of a window must be from 1 to");
	expect_window_error(
		&(struct weir_window_spec){.kind = WEIR_WINDOW_TUMBLE, .size_ms = INT64_MAX, .advance_ms = 1},
		"size of a window");
	expect_window_error(&(struct weir_window_spec){.kind = WEIR_WINDOW_HOP, .size_ms = 5, .advance_ms = 6},
			    "advance");
	expect_window_error(&(struct weir_window_spec){.kind = WEIR_WINDOW_HOP, .size_ms = 1000000, .advance_ms = 1},
			    "1000000 windows");
	expect_window_error(&(struct weir_window_spec){.kind = WEIR_WINDOW_SESSION}, "gap of a session");
	expect_window_error(&(struct weir_window_spec){.kind = WEIR_WINDOW_SLIDING, .size_ms = -1},
			    "length of sliding windows");
}

static void test_lost_time_and_missing_window(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_node *win = weir_build_window(tp, weir_build_source(tp, &orders), 2, &tumble);
	const char *name = "m";
	const struct weir_expr *e = column(tp, 0, &type_string);
	struct weir_node *prj = weir_build_project(tp, win, &name, &e, 1);
	assert_int_equal(prj->rowtime, -1);
	struct weir_agg agg = count_star();
	(void)weir_build_aggregate(tp, prj, "s", &name, &e, 1, &name, &agg, 1, NULL, 0, &tumble, -1, false);
	assert_non_null(strstr(weir_diag_text(weir_topology_error(tp)), "time column 'at' is lost"));
	weir_topology_destroy(tp);
	tp = weir_topology_create();
	struct weir_node *src = weir_build_source(tp, &orders);
	e = column(tp, 0, &type_string);
	(void)weir_build_aggregate(tp, src, "s", &name, &e, 1, &name, &agg, 1, NULL, 0, &tumble, -1, false);
	assert_non_null(strstr(weir_diag_text(weir_topology_error(tp)), "no window below"));
	weir_topology_destroy(tp);
}

static void test_sink_columns(void **state)
{
	(void)state;
	static const struct weir_table_column columns[] = {
		{.name = "who", .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}},
		{.name = "topic",
		 .type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX},
		 .kind = WEIR_COLUMN_METADATA,
		 .metadata = "topic",
		 .is_virtual = true},
		{.name = "much", .type = {.kind = WEIR_KIND_BIGINT}},
		{.name = "when",
		 .type = {.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = 3},
		 .kind = WEIR_COLUMN_METADATA,
		 .metadata = "timestamp"},
	};
	static const struct weir_table_def out = {.name = "out", .columns = columns, .column_count = 4, .rowtime = -1};
	struct weir_topology *tp = weir_topology_create();
	struct weir_node *src = weir_build_source(tp, &orders);
	struct weir_node *snk = weir_build_sink(tp, src, &out, false);
	assert_null(weir_topology_error(tp));
	assert_int_equal(snk->kind, WEIR_NODE_SINK);
	assert_string_equal(snk->columns[0].name, "who");
	assert_string_equal(snk->columns[2].name, "when");
	assert_int_equal(weir_topology_check(tp, NULL), WEIR_OK);
	struct weir_table_def narrow = out;
	narrow.column_count = 2;
	(void)weir_build_sink(tp, src, &narrow, false);
	assert_string_equal(weir_diag_text(weir_topology_error(tp)), "sink 'out' has 1 columns, the query gives 3");
	weir_topology_destroy(tp);
	tp = weir_topology_create();
	struct weir_table_def gen = orders;
	gen.options.connector = WEIR_CONNECTOR_DATAGEN;
	(void)weir_build_sink(tp, weir_build_source(tp, &orders), &gen, false);
	assert_non_null(strstr(weir_diag_text(weir_topology_error(tp)), "'datagen' is a source only"));
	weir_topology_destroy(tp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windowed_aggregate),
		cmocka_unit_test(test_plain_aggregate_is_a_table),
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_errors_stick),
		cmocka_unit_test(test_window_bounds),
		cmocka_unit_test(test_lost_time_and_missing_window),
		cmocka_unit_test(test_sink_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
