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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_dot),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_broken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
