/* test_explain.c: what `weir explain` prints of a planned topology. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <jansson.h>

#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"
#include "io/conf.h"

static struct weir_topology *revenue(void)
{
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st =
		weir_source(tp, "orders", "merchant_id STRING, amount INT, at TIMESTAMP(3), unread STRING",
			    "path=rec topic=order.placed format=json");
	st = weir_filter(weir_event_time(st, "at", 5000), "amount > 100");
	st = weir_aggregate(weir_tumble(weir_key_by(st, "merchant_id"), 300000), "revenue",
			    "window_start, merchant_id, COUNT(*) AS orders, MAX(amount) AS most");
	(void)weir_sink(weir_filter(st, "orders > 1"), "out",
			"path=res topic=revenue format=json key.format=raw key.fields=merchant_id");
	return tp;
}

static struct weir_conf *conf(void)
{
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "application.id", "app", NULL), WEIR_OK);
	assert_int_equal(weir_conf_set(cf, "workers", "2", NULL), WEIR_OK);
	assert_int_equal(weir_conf_set(cf, "memory.max", "1536MiB", NULL), WEIR_OK);
	return cf;
}

static char *explain(int form)
{
	struct weir_topology *tp = revenue();
	struct weir_conf *cf = conf();
	struct weir_diag *dg = NULL;
	char *text = NULL;
	if (weir_engine_explain(tp, cf, form, &text, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_report(dg));
	weir_conf_destroy(cf);
	weir_topology_destroy(tp);
	return text;
}

static void has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' is not in\n%s", part, text);
}

static void test_text(void **state)
{
	(void)state;
	char *text = explain(WEIR_DESCRIBE_TEXT);
	assert_int_equal(
		strncmp(text, "Topologies:\n   Sub-topology: 0\n    Source: orders (topics: [order.placed])\n", 70), 0);
	has(text, "Plan: application app, at_least_once, 2 workers\n"
		  "  Memory: memory.max 1.5 GiB, of it 384 MiB for data in flight, the rest for state\n");
	has(text, "  Scan orders: recorded topic order.placed in rec, value json\n    reads: ");
	assert_null(strstr(text, "unread"));
	has(text, "\n    time: at, grace 5s\n");
	has(text,
	    "  Stage revenue (level 1): tumbling window of 5m, grace 5s, EMIT FINAL\n    exchange: local, 64 slots");
	has(text, "    from scan orders where (amount > 100): by merchant_id; over amount\n");
	has(text, "    aggregates: COUNT(*) BIGINT NOT NULL, MAX(amount) INT\n    state: ");
	has(text, " bytes and the key per entry; changelog app-revenue-changelog\n");
	has(text, "  Sink out: recorded topic revenue in res, key merchant_id (");
	has(text, "    from stage revenue where ");
	weir_free(text);
}

static void test_dot(void **state)
{
	(void)state;
	char *text = explain(WEIR_DESCRIBE_DOT);
	has(text, "scan0 [shape=cds, label=\"orders\\nrecorded topic order.placed in rec\"];");
	has(text, "scan0 -> stage0 [label=\"local\\n(amount > 100)\"];");
	has(text, "stage0 -> sink0 [label=\"");
	weir_free(text);
}

static void test_json(void **state)
{
	(void)state;
	char *text = explain(WEIR_DESCRIBE_JSON);
	json_error_t error;
	json_t *root = json_loads(text, 0, &error);
	if (root == NULL)
		fail_msg("%s at %d in %s", error.text, error.position, text);
	json_t *stage = json_array_get(json_object_get(root, "stages"), 0);
	assert_string_equal(json_string_value(json_object_get(stage, "window")), "tumble");
	assert_int_equal(json_integer_value(json_object_get(stage, "size_ms")), 300000);
	assert_int_equal(json_integer_value(json_object_get(stage, "grace_ms")), 5000);
	assert_string_equal(json_string_value(json_object_get(stage, "emit")), "final");
	assert_true(json_integer_value(json_object_get(stage, "state_entry_bytes")) >= 16);
	assert_int_equal(json_array_size(json_object_get(root, "branches")), 2);
	assert_int_equal(json_integer_value(json_object_get(root, "workers")), 2);
	assert_true(json_is_array(json_object_get(root, "nodes")));
	json_t *sink = json_array_get(json_object_get(root, "sinks"), 0);
	assert_true(json_is_true(json_object_get(sink, "keyed")));
	assert_string_equal(json_string_value(json_object_get(sink, "topic")), "revenue");
	json_decref(root);
	weir_free(text);
}

static char *explained(struct weir_topology *tp, const char *exchange)
{
	struct weir_conf *cf = conf();
	struct weir_diag *dg = NULL;
	char *text = NULL;
	assert_int_equal(weir_conf_set(cf, "exchange", exchange, NULL), WEIR_OK);
	if (weir_engine_explain(tp, cf, WEIR_DESCRIBE_TEXT, &text, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_report(dg));
	weir_conf_destroy(cf);
	weir_topology_destroy(tp);
	return text;
}

static struct weir_stream *keyed(struct weir_topology *tp, const char *name, const char *key)
{
	char options[120];
	(void)snprintf(options, sizeof options, "topic=%s format=json key.format=raw key.fields=%s", name, key);
	return weir_event_time(weir_source(tp, name, "id STRING, city STRING, ts BIGINT", options), "ts", 0);
}

/* A stream that is keyed by something else moves to the table; the table stays where it is. */
static void test_one_side_moves(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_table *cities = weir_table(tp, "cities", "city STRING, land STRING", "city", "topic=c format=json");
	struct weir_stream *st = weir_join_table(keyed(tp, "people", "id"), cities, "home", "city", WEIR_JOIN_LEFT);
	(void)weir_print(weir_select(st, "id, land"), "out");
	char *text = explained(tp, "auto");
	has(text, "Topologies:\n"
		  "   Sub-topology: 0\n"
		  "    Source: people (topics: [people])\n"
		  "      --> home-left-repartition-sink\n"
		  "    Sink: home-left-repartition-sink (topic: app-home-left-repartition)\n"
		  "      <-- people\n\n"
		  "  Sub-topology: 1\n"
		  "    Source: cities-source (topics: [c])\n"
		  "      --> cities\n"
		  "    Processor: cities (stores: [])\n"
		  "      --> home\n"
		  "      <-- cities-source\n"
		  "    Source: home-left-repartition-source (topics: [app-home-left-repartition])\n"
		  "      --> home\n"
		  "    Processor: home (stores: [home])\n"
		  "      --> project-1\n"
		  "      <-- home-left-repartition-source, cities\n");
	has(text, "move in memory");
	weir_free(text);
}

/* Two streams with one key, one of which is keyed by it: the other moves. Nothing does where both are, unless it is
 * asked for, whatever exchange says; two windows: the second one's rows do. */
static void test_what_moves(void **state)
{
	(void)state;
	static const struct {
		const char *left, *right, *exchange;
		bool asked;
		uint32_t parts;
	} cases[] = {
		{"id", "id", "auto", false, 1},   {"id", "id", "local", false, 1},    {"id", "city", "auto", false, 2},
		{"city", "id", "auto", false, 2}, {"city", "city", "auto", false, 3}, {"id", "id", "auto", true, 2},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_topology *tp = weir_topology_create();
		struct weir_stream *l = weir_filter(keyed(tp, "a", cases[i].left), "ts > 0");
		struct weir_stream *r = weir_select(keyed(tp, "b", cases[i].right), "id, ts + 1 AS later");
		l = cases[i].asked ? weir_repartition(l, "id") : weir_key_by(l, "id");
		l = weir_join_within(l, weir_key_by(r, "id"), "pairs", WEIR_JOIN_INNER, 0, 1000);
		(void)weir_print(l, "out");
		char *text = explained(tp, cases[i].exchange);
		char part[40];
		(void)snprintf(part, sizeof part, "Sub-topology: %u\n", cases[i].parts - 1);
		has(text, part);
		(void)snprintf(part, sizeof part, "Sub-topology: %u\n", cases[i].parts);
		assert_null(strstr(text, part));
		assert_int_equal(strstr(text, "pairs-left-repartition") != NULL,
				 cases[i].asked || strcmp(cases[i].left, "city") == 0);
		assert_int_equal(strstr(text, "pairs-right-repartition") != NULL, strcmp(cases[i].right, "city") == 0);
		weir_free(text);
	}
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_tumble(weir_key_by(keyed(tp, "a", "id"), "id"), 1000);
	st = weir_aggregate(st, "first", "id, window_end, COUNT(*) AS n");
	st = weir_aggregate(weir_tumble(weir_key_by(st, "id"), 5000), "second", "id, SUM(n) AS n");
	(void)weir_sink(st, "out", "topic=out format=json");
	char *text = explained(tp, "topic");
	has(text, "    Sink: second-repartition-sink (topic: app-second-repartition)\n");
	has(text, "    Source: second-repartition-source (topics: [app-second-repartition])\n      --> second\n");
	assert_null(strstr(text, "first-repartition"));
	assert_null(strstr(text, "move in memory"));
	weir_free(text);
}

static void test_broken(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_conf *cf = conf();
	struct weir_diag *dg = NULL;
	char *text = NULL;
	assert_int_equal(weir_engine_explain(tp, cf, WEIR_DESCRIBE_TEXT, &text, &dg), WEIR_E_PLAN);
	assert_null(text);
	has(weir_diag_text(dg), "no sink");
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
	weir_topology_destroy(tp);
}

/* What only the job's properties and a source's options together make wrong is said here, as by a run. */
static void test_source_without_dead_letter_topic(void **state)
{
	(void)state;
	for (int given = 0; given < 2; given++) {
		struct weir_topology *tp = weir_topology_create();
		struct weir_conf *cf = conf();
		struct weir_diag *dg = NULL;
		char *text = NULL;
		struct weir_stream *st =
			weir_source(tp, "orders", "a STRING", "path=rec topic=o format=json errors.policy=dead-letter");
		(void)weir_sink(st, "out", "path=res topic=r format=json");
		if (given)
			assert_int_equal(weir_conf_set(cf, "errors.deadletterqueue.topic.name", "bad", NULL), WEIR_OK);
		enum weir_err err = weir_engine_explain(tp, cf, WEIR_DESCRIBE_TEXT, &text, &dg);
		assert_int_equal(err, given ? WEIR_OK : WEIR_E_CONF);
		if (!given)
			has(weir_diag_text(dg), "table 'orders': 'errors.policy' = 'dead-letter' needs");
		weir_diag_destroy(dg);
		free(text);
		weir_conf_destroy(cf);
		weir_topology_destroy(tp);
	}
}

/* Which row of a table a record meets is said: the one of its time, the newest one, or one of a table that was whole.
 */
static void test_tables_that_are_joined(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	struct weir_conf *cf = conf();
	struct weir_diag *dg = NULL;
	char *text = NULL;
	struct weir_stream *st = weir_event_time(
		weir_source(tp, "o", "a STRING, at TIMESTAMP(3)", "path=rec topic=o format=json"), "at", 5000);
	struct weir_table *t = weir_table(tp, "t", "a STRING, b INT", "a", "path=rec topic=t format=json");
	struct weir_table *g = weir_table_global(tp, "g", "a STRING, b INT", "a", "path=rec topic=g format=json");
	(void)weir_sink(weir_join_table_as_of(st, t, "then", "a", WEIR_JOIN_INNER), "out1",
			"path=res topic=1 format=json");
	(void)weir_sink(weir_join_table(st, t, "now", "a", WEIR_JOIN_LEFT), "out2", "path=res topic=2 format=json");
	(void)weir_sink(weir_join_table(st, g, "whole", "a", WEIR_JOIN_LEFT), "out3", "path=res topic=3 format=json");
	if (weir_engine_explain(tp, cf, WEIR_DESCRIBE_TEXT, &text, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_report(dg));
	has(text, "Stage then (level 1): join of a stream and a table as of the stream's time, grace 5s\n");
	has(text, "Stage now (level 1): join of a stream (kept without a match) and a table\n");
	has(text, "Stage whole (level 1): join of a stream (kept without a match) and a global table\n");
	weir_free(text);
	weir_conf_destroy(cf);
	weir_topology_destroy(tp);
}

/* A table is a processor behind its topic's source, with the state that keeps its rows where it has one of its own; a
 * node that is read twice has a state for each reader where readers need one. As Kafka Streams prints it: a source
 * "t-source", the table "t", and every state in exactly one list of stores. */
static void test_stores(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	static const char options[] = "connector=upsert-kafka topic=t value.format=json key.format=raw";
	static const char out[] = "topic=%u format=json key.format=raw key.fields=a";
	char to[2][100];
	for (uint32_t i = 0; i < 2; i++)
		(void)snprintf(to[i], sizeof to[i], out, i);
	struct weir_table *t = weir_table(tp, "t", "a STRING, b INT", "a", options);
	(void)weir_sink(weir_to_stream(t), "copy", to[0]);
	(void)weir_sink(weir_to_stream(t), "again", to[1]);
	struct weir_table *j = weir_table(tp, "j", "a STRING, c INT", "a",
					  "connector=upsert-kafka topic=j value.format=json key.format=raw");
	struct weir_stream *st = keyed(tp, "s", "id");
	(void)weir_sink(weir_join_table(st, j, "joined", "id", WEIR_JOIN_LEFT), "out", "topic=o format=json");
	char *text = explained(tp, "auto");
	has(text, "    Source: t-source (topics: [t])\n"
		  "      --> t\n"
		  "    Processor: t (stores: [t, t-2])\n"
		  "      --> copy, again\n"
		  "      <-- t-source\n");
	has(text, "    Source: j-source (topics: [j])\n"
		  "      --> j\n"
		  "    Processor: j (stores: [])\n"
		  "      --> joined\n"
		  "      <-- j-source\n");
	has(text, "    Source: s (topics: [s])\n      --> joined\n");
	has(text, "    Processor: joined (stores: [joined])\n");
	weir_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),       cmocka_unit_test(test_dot),
		cmocka_unit_test(test_json),       cmocka_unit_test(test_one_side_moves),
		cmocka_unit_test(test_what_moves), cmocka_unit_test(test_source_without_dead_letter_topic),
		cmocka_unit_test(test_broken),     cmocka_unit_test(test_tables_that_are_joined),
		cmocka_unit_test(test_stores),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
