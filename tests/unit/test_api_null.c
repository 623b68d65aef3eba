/* test_api_null.c: weir.h and weir_types.h: NULL for every pointer that a public function takes, one at a time: nothing
 * crashes, and what comes of it is what the headers say. The table is held against them: it names every function. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"

#define COLUMNS "k STRING, amount BIGINT, list ARRAY<INT>, ts BIGINT"
#define OPTIONS "topic=t format=json key.format=raw key.fields=k"
#define SINK    "path=/tmp/x topic=o format=json"

/* A topology of everything, made anew for each case. */
struct rig {
	struct weir_topology *tp;
	struct weir_stream *st; /* keyed, with event time */
	struct weir_stream *bare, *other, *windowed;
	struct weir_table *tb, *tb2;
	struct weir_split *sp;
	struct weir_diag *dg;
	int ctx; /* how often `destroyed` came */
};

static void run(struct weir_batch *b, void *ctx)
{
	(void)b;
	(void)ctx;
}

static void destroyed(void *ctx)
{
	++*(int *)ctx;
}

static void rig_init(struct rig *rg)
{
	memset(rg, 0, sizeof *rg);
	rg->tp = weir_topology_create();
	rg->bare = weir_source(rg->tp, "s", COLUMNS, OPTIONS);
	rg->st = weir_key_by(weir_event_time(weir_source(rg->tp, "s1", COLUMNS, OPTIONS), "ts", 0), "k");
	rg->other = weir_key_by(weir_event_time(weir_source(rg->tp, "s2", COLUMNS, OPTIONS), "ts", 0), "k");
	rg->windowed = weir_tumble(rg->st, 1000);
	rg->tb = weir_table(rg->tp, "t1", COLUMNS, "k", OPTIONS);
	rg->tb2 = weir_table(rg->tp, "t2", COLUMNS, "k", OPTIONS);
	rg->sp = weir_split(rg->st);
	assert_null(weir_topology_error(rg->tp));
}

enum want {
	NOTHING, /* returns 0 or NULL, and no topology is broken */
	OKAY,    /* returns WEIR_OK, and no topology is broken */
	CODE,    /* returns WEIR_E_PLAN, and no topology is broken */
	BROKEN,  /* returns something or an error, and the topology is broken */
	FINE     /* returns something, and no topology is broken */
};

/* X(function, what is NULL, what is wanted, the call) */
#define STREAM_CASES(X)                                                                                                \
	X(weir_source, "tp", NOTHING, weir_source(NULL, "a", COLUMNS, OPTIONS))                                        \
	X(weir_source, "name", BROKEN, weir_source(rg->tp, NULL, COLUMNS, OPTIONS))                                    \
	X(weir_source, "columns", BROKEN, weir_source(rg->tp, "a", NULL, OPTIONS))                                     \
	X(weir_source, "options", BROKEN, weir_source(rg->tp, "a", COLUMNS, NULL))                                     \
	X(weir_event_time, "st", NOTHING, weir_event_time(NULL, "ts", 0))                                              \
	X(weir_event_time, "column", BROKEN, weir_event_time(rg->bare, NULL, 0))                                       \
	X(weir_filter, "st", NOTHING, weir_filter(NULL, "amount > 0"))                                                 \
	X(weir_filter, "expr", BROKEN, weir_filter(rg->st, NULL))                                                      \
	X(weir_select, "st", NOTHING, weir_select(NULL, "amount"))                                                     \
	X(weir_select, "exprs", BROKEN, weir_select(rg->st, NULL))                                                     \
	X(weir_key_by, "st", NOTHING, weir_key_by(NULL, "k"))                                                          \
	X(weir_key_by, "columns", BROKEN, weir_key_by(rg->st, NULL))                                                   \
	X(weir_merge, "a", BROKEN, weir_merge(NULL, rg->st))                                                           \
	X(weir_merge, "b", BROKEN, weir_merge(rg->st, NULL))                                                           \
	X(weir_merge, "both", NOTHING, weir_merge(NULL, NULL))                                                         \
	X(weir_filter_not, "st", NOTHING, weir_filter_not(NULL, "amount > 0"))                                         \
	X(weir_filter_not, "expr", BROKEN, weir_filter_not(rg->st, NULL))                                              \
	X(weir_map_values, "st", NOTHING, weir_map_values(NULL, "amount * 2 AS twice"))                                \
	X(weir_map_values, "exprs", BROKEN, weir_map_values(rg->st, NULL))                                             \
	X(weir_select_key, "st", NOTHING, weir_select_key(NULL, "k"))                                                  \
	X(weir_select_key, "exprs", BROKEN, weir_select_key(rg->st, NULL))                                             \
	X(weir_repartition, "st", NOTHING, weir_repartition(NULL, "k"))                                                \
	X(weir_repartition, "columns", BROKEN, weir_repartition(rg->st, NULL))                                         \
	X(weir_split, "st", NOTHING, weir_split(NULL))                                                                 \
	X(weir_branch, "sp", NOTHING, weir_branch(NULL, "amount > 0"))                                                 \
	X(weir_branch, "expr", BROKEN, weir_branch(rg->sp, NULL))                                                      \
	X(weir_branch_rest, "sp", NOTHING, weir_branch_rest(NULL))                                                     \
	X(weir_print, "st", CODE, weir_print(NULL, "p"))                                                               \
	X(weir_print, "name", BROKEN, weir_print(rg->st, NULL))                                                        \
	X(weir_sink, "st", CODE, weir_sink(NULL, "o", SINK))                                                           \
	X(weir_sink, "name", BROKEN, weir_sink(rg->st, NULL, SINK))                                                    \
	X(weir_sink, "options", BROKEN, weir_sink(rg->st, "o", NULL))

#define WINDOW_CASES(X)                                                                                                \
	X(weir_tumble, "st", NOTHING, weir_tumble(NULL, 1000))                                                         \
	X(weir_hop, "st", NOTHING, weir_hop(NULL, 1000, 500))                                                          \
	X(weir_cumulate, "st", NOTHING, weir_cumulate(NULL, 1000, 500))                                                \
	X(weir_session, "st", NOTHING, weir_session(NULL, 1000))                                                       \
	X(weir_sliding, "st", NOTHING, weir_sliding(NULL, 1000))                                                       \
	X(weir_emit, "st", NOTHING, weir_emit(NULL, WEIR_EMIT_CHANGES))                                                \
	X(weir_aggregate, "st", NOTHING, weir_aggregate(NULL, "a", "k, COUNT(*) AS n"))                                \
	X(weir_aggregate, "state_name", BROKEN, weir_aggregate(rg->st, NULL, "k, COUNT(*) AS n"))                      \
	X(weir_aggregate, "exprs", BROKEN, weir_aggregate(rg->st, "a", NULL))                                          \
	X(weir_over, "st", NOTHING, weir_over(NULL, "a", "k, COUNT(*) OVER () AS n"))                                  \
	X(weir_over, "state_name", BROKEN, weir_over(rg->st, NULL, "k, COUNT(*) OVER () AS n"))                        \
	X(weir_over, "exprs", BROKEN, weir_over(rg->st, "a", NULL))                                                    \
	X(weir_unnest, "st", NOTHING, weir_unnest(NULL, "a", "list", "one", 0))                                        \
	X(weir_unnest, "state_name", BROKEN, weir_unnest(rg->st, NULL, "list", "one", 0))                              \
	X(weir_unnest, "array", BROKEN, weir_unnest(rg->st, "a", NULL, "one", 0))                                      \
	X(weir_unnest, "name", BROKEN, weir_unnest(rg->st, "a", "list", NULL, 0))

#define TABLE_CASES(X)                                                                                                 \
	X(weir_table, "tp", NOTHING, weir_table(NULL, "a", COLUMNS, "k", OPTIONS))                                     \
	X(weir_table, "name", BROKEN, weir_table(rg->tp, NULL, COLUMNS, "k", OPTIONS))                                 \
	X(weir_table, "columns", BROKEN, weir_table(rg->tp, "a", NULL, "k", OPTIONS))                                  \
	X(weir_table, "primary_key", BROKEN, weir_table(rg->tp, "a", COLUMNS, NULL, OPTIONS))                          \
	X(weir_table, "options", BROKEN, weir_table(rg->tp, "a", COLUMNS, "k", NULL))                                  \
	X(weir_table_global, "tp", NOTHING, weir_table_global(NULL, "a", COLUMNS, "k", OPTIONS))                       \
	X(weir_table_global, "name", BROKEN, weir_table_global(rg->tp, NULL, COLUMNS, "k", OPTIONS))                   \
	X(weir_table_global, "columns", BROKEN, weir_table_global(rg->tp, "a", NULL, "k", OPTIONS))                    \
	X(weir_table_global, "primary_key", BROKEN, weir_table_global(rg->tp, "a", COLUMNS, NULL, OPTIONS))            \
	X(weir_table_global, "options", BROKEN, weir_table_global(rg->tp, "a", COLUMNS, "k", NULL))                    \
	X(weir_table_event_time, "tb", NOTHING, weir_table_event_time(NULL, "ts", 0))                                  \
	X(weir_table_event_time, "column", BROKEN, weir_table_event_time(rg->tb, NULL, 0))                             \
	X(weir_to_table, "st", NOTHING, weir_to_table(NULL))                                                           \
	X(weir_latest, "st", NOTHING, weir_latest(NULL, "a"))                                                          \
	X(weir_latest, "state_name", BROKEN, weir_latest(rg->st, NULL))                                                \
	X(weir_to_stream, "tb", NOTHING, weir_to_stream(NULL))                                                         \
	X(weir_join_within, "l", BROKEN, weir_join_within(NULL, rg->st, "a", WEIR_JOIN_INNER, 0, 0))                   \
	X(weir_join_within, "r", BROKEN, weir_join_within(rg->st, NULL, "a", WEIR_JOIN_INNER, 0, 0))                   \
	X(weir_join_within, "both", NOTHING, weir_join_within(NULL, NULL, "a", WEIR_JOIN_INNER, 0, 0))                 \
	X(weir_join_within, "name", BROKEN, weir_join_within(rg->st, rg->other, NULL, WEIR_JOIN_INNER, 0, 0))          \
	X(weir_join_windows, "l", BROKEN, weir_join_windows(NULL, rg->windowed, "a", WEIR_JOIN_INNER))                 \
	X(weir_join_windows, "r", BROKEN, weir_join_windows(rg->windowed, NULL, "a", WEIR_JOIN_INNER))                 \
	X(weir_join_windows, "both", NOTHING, weir_join_windows(NULL, NULL, "a", WEIR_JOIN_INNER))                     \
	X(weir_join_windows, "name", BROKEN,                                                                           \
	  weir_join_windows(rg->windowed, weir_tumble(rg->other, 1000), NULL, WEIR_JOIN_INNER))                        \
	X(weir_join_table, "st", BROKEN, weir_join_table(NULL, rg->tb, "a", "k", WEIR_JOIN_INNER))                     \
	X(weir_join_table, "tb", BROKEN, weir_join_table(rg->st, NULL, "a", "k", WEIR_JOIN_INNER))                     \
	X(weir_join_table, "both", NOTHING, weir_join_table(NULL, NULL, "a", "k", WEIR_JOIN_INNER))                    \
	X(weir_join_table, "name", BROKEN, weir_join_table(rg->st, rg->tb, NULL, "k", WEIR_JOIN_INNER))                \
	X(weir_join_table, "on", BROKEN, weir_join_table(rg->st, rg->tb, "a", NULL, WEIR_JOIN_INNER))                  \
	X(weir_join_table_as_of, "st", BROKEN, weir_join_table_as_of(NULL, rg->tb, "a", "k", WEIR_JOIN_INNER))         \
	X(weir_join_table_as_of, "tb", BROKEN, weir_join_table_as_of(rg->st, NULL, "a", "k", WEIR_JOIN_INNER))         \
	X(weir_join_table_as_of, "both", NOTHING, weir_join_table_as_of(NULL, NULL, "a", "k", WEIR_JOIN_INNER))        \
	X(weir_join_table_as_of, "name", BROKEN, weir_join_table_as_of(rg->st, rg->tb, NULL, "k", WEIR_JOIN_INNER))    \
	X(weir_join_table_as_of, "on", BROKEN, weir_join_table_as_of(rg->st, rg->tb, "a", NULL, WEIR_JOIN_INNER))      \
	X(weir_join_tables, "l", BROKEN, weir_join_tables(NULL, rg->tb, "a", WEIR_JOIN_INNER))                         \
	X(weir_join_tables, "r", BROKEN, weir_join_tables(rg->tb, NULL, "a", WEIR_JOIN_INNER))                         \
	X(weir_join_tables, "both", NOTHING, weir_join_tables(NULL, NULL, "a", WEIR_JOIN_INNER))                       \
	X(weir_join_tables, "name", BROKEN, weir_join_tables(rg->tb, rg->tb2, NULL, WEIR_JOIN_INNER))                  \
	X(weir_join_tables_by, "l", BROKEN, weir_join_tables_by(NULL, rg->tb, "a", "k", WEIR_JOIN_INNER))              \
	X(weir_join_tables_by, "r", BROKEN, weir_join_tables_by(rg->tb, NULL, "a", "k", WEIR_JOIN_INNER))              \
	X(weir_join_tables_by, "both", NOTHING, weir_join_tables_by(NULL, NULL, "a", "k", WEIR_JOIN_INNER))            \
	X(weir_join_tables_by, "name", BROKEN, weir_join_tables_by(rg->tb, rg->tb2, NULL, "k", WEIR_JOIN_INNER))       \
	X(weir_join_tables_by, "on", BROKEN, weir_join_tables_by(rg->tb, rg->tb2, "a", NULL, WEIR_JOIN_INNER))

#define USER_CASES(X)                                                                                                  \
	X(weir_map_batch, "st", NOTHING, weir_map_batch(NULL, "f", "k", "n INT", run, &rg->ctx, destroyed))            \
	X(weir_map_batch, "name", BROKEN, weir_map_batch(rg->st, NULL, "k", "n INT", run, &rg->ctx, destroyed))        \
	X(weir_map_batch, "of_columns", FINE, weir_map_batch(rg->st, "f", NULL, "n INT", run, &rg->ctx, destroyed))    \
	X(weir_map_batch, "results", BROKEN, weir_map_batch(rg->st, "f", "k", NULL, run, &rg->ctx, destroyed))         \
	X(weir_map_batch, "run", BROKEN, weir_map_batch(rg->st, "f", "k", "n INT", NULL, &rg->ctx, destroyed))         \
	X(weir_map_batch, "ctx", FINE, weir_map_batch(rg->st, "f", "k", "n INT", run, NULL, NULL))                     \
	X(weir_map_batch, "st, destroy", NOTHING, weir_map_batch(NULL, "f", "k", "n INT", run, &rg->ctx, NULL))        \
	X(weir_flat_map_batch, "st", NOTHING, weir_flat_map_batch(NULL, "f", "k", "n INT", run, &rg->ctx, destroyed))  \
	X(weir_flat_map_batch, "name", BROKEN, weir_flat_map_batch(rg->st, NULL, "k", "n INT", run, NULL, NULL))       \
	X(weir_flat_map_batch, "of_columns", FINE, weir_flat_map_batch(rg->st, "f", NULL, "n INT", run, NULL, NULL))   \
	X(weir_flat_map_batch, "results", BROKEN, weir_flat_map_batch(rg->st, "f", "k", NULL, run, NULL, NULL))        \
	X(weir_flat_map_batch, "run", BROKEN, weir_flat_map_batch(rg->st, "f", "k", "n INT", NULL, NULL, NULL))        \
	X(weir_filter_batch, "st", NOTHING, weir_filter_batch(NULL, "f", "k", run, &rg->ctx, destroyed))               \
	X(weir_filter_batch, "name", BROKEN, weir_filter_batch(rg->st, NULL, "k", run, &rg->ctx, destroyed))           \
	X(weir_filter_batch, "of_columns", FINE, weir_filter_batch(rg->st, "f", NULL, run, &rg->ctx, destroyed))       \
	X(weir_filter_batch, "run", BROKEN, weir_filter_batch(rg->st, "f", "k", NULL, &rg->ctx, destroyed))            \
	X(weir_peek, "st", NOTHING, weir_peek(NULL, "f", "k", run, &rg->ctx, destroyed))                               \
	X(weir_peek, "name", BROKEN, weir_peek(rg->st, NULL, "k", run, &rg->ctx, destroyed))                           \
	X(weir_peek, "of_columns", FINE, weir_peek(rg->st, "f", NULL, run, &rg->ctx, destroyed))                       \
	X(weir_peek, "run", BROKEN, weir_peek(rg->st, "f", "k", NULL, &rg->ctx, destroyed))                            \
	X(weir_foreach, "st", CODE, weir_foreach(NULL, "f", "k", run, &rg->ctx, destroyed))                            \
	X(weir_foreach, "name", BROKEN, weir_foreach(rg->st, NULL, "k", run, &rg->ctx, destroyed))                     \
	X(weir_foreach, "of_columns", OKAY, weir_foreach(rg->st, "f", NULL, run, &rg->ctx, destroyed))                 \
	X(weir_foreach, "run", BROKEN, weir_foreach(rg->st, "f", "k", NULL, &rg->ctx, destroyed))

#define BATCH_CASES(X)                                                                                                 \
	X(weir_batch_count, "b", NOTHING, weir_batch_count(NULL))                                                      \
	X(weir_batch_rows, "b", NOTHING, weir_batch_rows(NULL))                                                        \
	X(weir_batch_booleans, "b", NOTHING, weir_batch_booleans(NULL, 0))                                             \
	X(weir_batch_integers, "b", NOTHING, weir_batch_integers(NULL, 0))                                             \
	X(weir_batch_doubles, "b", NOTHING, weir_batch_doubles(NULL, 0))                                               \
	X(weir_batch_string, "b", NOTHING, weir_batch_string(NULL, 0, 0).bytes)                                        \
	X(weir_batch_is_null, "b", FINE, weir_batch_is_null(NULL, 0, 0))                                               \
	X(weir_batch_put_booleans, "b", NOTHING, weir_batch_put_booleans(NULL, 0))                                     \
	X(weir_batch_put_integers, "b", NOTHING, weir_batch_put_integers(NULL, 0))                                     \
	X(weir_batch_put_doubles, "b", NOTHING, weir_batch_put_doubles(NULL, 0))                                       \
	X(weir_batch_put_string, "b", NOTHING, (weir_batch_put_string(NULL, 0, 0, "x", 1), 0))                         \
	X(weir_batch_put_null, "b", NOTHING, (weir_batch_put_null(NULL, 0, 0), 0))                                     \
	X(weir_batch_refuse, "b", NOTHING, (weir_batch_refuse(NULL, 0, "no"), 0))                                      \
	X(weir_batch_emit, "b", FINE, weir_batch_emit(NULL, 0))

#define OTHER_CASES(X)                                                                                                 \
	X(weir_topology_destroy, "tp", NOTHING, (weir_topology_destroy(NULL), 0))                                      \
	X(weir_topology_check, "tp", CODE, weir_topology_check(NULL, &rg->dg))                                         \
	X(weir_topology_check, "tp, out", CODE, weir_topology_check(NULL, NULL))                                       \
	X(weir_topology_check, "out", CODE, weir_topology_check(rg->tp, NULL)) /* it has no sink */                    \
	X(weir_topology_describe, "tp", FINE, describe(WEIR_DESCRIBE_TEXT))                                            \
	X(weir_topology_describe, "tp (dot)", FINE, describe(WEIR_DESCRIBE_DOT))                                       \
	X(weir_topology_describe, "tp (json)", FINE, describe(WEIR_DESCRIBE_JSON))                                     \
	X(weir_diag_text, "dg", NOTHING, strlen(weir_diag_text(NULL)))                                                 \
	X(weir_diag_report, "dg", NOTHING, strlen(weir_diag_report(NULL)))                                             \
	X(weir_diag_code, "dg", NOTHING, weir_diag_code(NULL))                                                         \
	X(weir_diag_line, "dg", NOTHING, weir_diag_line(NULL))                                                         \
	X(weir_diag_column, "dg", NOTHING, weir_diag_column(NULL))                                                     \
	X(weir_diag_is_retriable, "dg", NOTHING, weir_diag_is_retriable(NULL))                                         \
	X(weir_diag_destroy, "dg", NOTHING, (weir_diag_destroy(NULL), 0))                                              \
	X(weir_free, "p", NOTHING, (weir_free(NULL), 0))

#define ALL_CASES(X) STREAM_CASES(X) WINDOW_CASES(X) TABLE_CASES(X) USER_CASES(X) BATCH_CASES(X) OTHER_CASES(X)

/* Whether the text of no topology says so. */
static int describe(enum weir_describe form)
{
	char *text = weir_topology_describe(NULL, form);
	int says = text != NULL && strstr(text, "there is no topology") != NULL;
	weir_free(text);
	return says;
}

struct null_case {
	const char *function, *null;
	enum want want;
	const char *call;
};
#define ROW(fn, null, want, call) {#fn, null, want, #call},
static const struct null_case cases[] = {ALL_CASES(ROW)};
enum { CASES = sizeof cases / sizeof *cases };

static intptr_t make_call(struct rig *rg, uint32_t n)
{
	uint32_t at = 0;
#define MAKE(fn, null, want, call)                                                                                     \
	if (at++ == n)                                                                                                 \
		return (intptr_t)(call);
	ALL_CASES(MAKE)
	return 0;
}

static bool as_wanted(struct rig *rg, const struct null_case *cs, intptr_t got)
{
	bool broken = weir_topology_error(rg->tp) != NULL;
	switch (cs->want) {
	case NOTHING:
	case OKAY:
		return got == 0 && !broken;
	case CODE:
		return got == WEIR_E_PLAN && !broken;
	case BROKEN:
		return got != 0 && broken && weir_topology_check(rg->tp, &rg->dg) == weir_diag_code(rg->dg);
	case FINE:
		return got != 0 && !broken;
	}
	return false;
}

static void test_each_argument(void **state)
{
	(void)state;
	uint32_t wrong = 0;
	for (uint32_t n = 0; n < CASES; n++) {
		const struct null_case *cs = &cases[n];
		struct rig rg;
		rig_init(&rg);
		intptr_t got = make_call(&rg, n);
		if (!as_wanted(&rg, cs, got)) {
			wrong++;
			print_error("%s with NULL for %s: got %lld, %s\n", cs->function, cs->null, (long long)got,
				    weir_topology_error(rg.tp) != NULL ? weir_diag_text(weir_topology_error(rg.tp))
								       : "not broken");
		}
		/* What belongs to the call is let go of once: at the end, or, without a topology, at once. */
		bool owned = strstr(cs->call, "destroyed") != NULL;
		assert_int_equal(rg.ctx, owned && (cs->want == NOTHING || cs->want == CODE));
		weir_diag_destroy(rg.dg);
		weir_topology_destroy(rg.tp);
		assert_int_equal(rg.ctx, owned);
	}
	assert_int_equal(wrong, 0);
}

/* A program that checks nothing, and had no memory for its topology. */
static void test_a_whole_job_of_nothing(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	struct weir_stream *st = weir_event_time(weir_source(NULL, "s", COLUMNS, OPTIONS), "ts", 0);
	struct weir_table *tb = weir_table(NULL, "t", COLUMNS, "k", OPTIONS);
	st = weir_join_table_as_of(weir_filter(st, "amount > 0"), tb, "j", "k", WEIR_JOIN_LEFT);
	st = weir_aggregate(weir_tumble(weir_key_by(st, "k"), 1000), "a", "k, COUNT(*) AS n");
	st = weir_merge(st, weir_branch_rest(weir_split(weir_to_stream(weir_to_table(st)))));
	assert_int_equal(weir_sink(st, "o", SINK), WEIR_E_PLAN);
	assert_int_equal(weir_topology_check(NULL, &dg), WEIR_E_PLAN);
	assert_string_equal(weir_diag_text(dg), "there is no topology");
	weir_diag_destroy(dg);
}

/* One of two is NULL: the other's topology says in which call; what comes back does nothing. */
static void test_the_other_ones_topology_says_so(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg);
	struct weir_stream *st = weir_merge(NULL, rg.st);
	assert_non_null(st);
	assert_string_equal(weir_diag_text(weir_topology_error(rg.tp)), "weir_merge: one of the two is NULL");
	st = weir_aggregate(weir_key_by(weir_select(st, "k"), "k"), "a", "k, COUNT(*) AS n");
	assert_non_null(st);
	assert_int_equal(weir_sink(st, "o", SINK), WEIR_E_PLAN);
	weir_topology_destroy(rg.tp);
}

/* The same of any two of two topologies. */
static void test_two_topologies(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 6; n++) {
		for (uint32_t broken = 0; broken < 2; broken++) {
			struct rig rg, other;
			rig_init(&rg);
			rig_init(&other);
			if (broken)
				(void)weir_filter(other.st, "nothing > 0");
			switch (n) {
			case 0:
				(void)weir_merge(rg.st, other.st);
				break;
			case 1:
				(void)weir_join_within(rg.st, other.st, "a", WEIR_JOIN_INNER, 0, 0);
				break;
			case 2:
				(void)weir_join_windows(rg.windowed, other.windowed, "a", WEIR_JOIN_INNER);
				break;
			case 3:
				(void)weir_join_table(rg.st, other.tb, "a", "k", WEIR_JOIN_INNER);
				break;
			case 4:
				(void)weir_join_tables(rg.tb, other.tb, "a", WEIR_JOIN_INNER);
				break;
			case 5:
				(void)weir_join_tables_by(rg.tb, other.tb, "a", "k", WEIR_JOIN_INNER);
				break;
			}
			assert_non_null(weir_topology_error(rg.tp));
			assert_non_null(strstr(weir_diag_text(weir_topology_error(rg.tp)), "of two topologies"));
			weir_topology_destroy(rg.tp);
			weir_topology_destroy(other.tp);
		}
	}
}

/* ---- the table names them all ---- */

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	char *text = calloc(1, 1 << 20);
	assert_non_null(text);
	assert_in_range(fread(text, 1, (1 << 20) - 1, f), 1, (1 << 20) - 2);
	(void)fclose(f);
	return text;
}

static void test_the_table_names_every_function(void **state)
{
	(void)state;
	static const char *const headers[] = {"hotpath/weir.h", "hotpath/weir_types.h"};
	uint32_t functions = 0;
	for (uint32_t h = 0; h < 2; h++) {
		char *text = read_text(headers[h]);
		for (char *at = strstr(text, "\nWEIR_API "); at != NULL; at = strstr(at + 1, "\nWEIR_API ")) {
			char *open = strchr(at, '('), *end = strstr(at, ");"), name[80];
			assert_true(open != NULL && end > open);
			const char *from = open;
			while (from[-1] == '_' || (from[-1] >= 'a' && from[-1] <= 'z'))
				from--;
			(void)snprintf(name, sizeof name, "%.*s", (int)(open - from), from);
			if (memchr(open, '*', (size_t)(end - open)) == NULL)
				continue;
			uint32_t n = 0;
			while (n < CASES && strcmp(cases[n].function, name) != 0)
				n++;
			if (n == CASES)
				fail_msg("%s takes a pointer, and no case says what NULL does", name);
			functions++;
		}
		free(text);
	}
	assert_in_range(functions, 60, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_argument),
		cmocka_unit_test(test_a_whole_job_of_nothing),
		cmocka_unit_test(test_the_other_ones_topology_says_so),
		cmocka_unit_test(test_two_topologies),
		cmocka_unit_test(test_the_table_names_every_function),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
