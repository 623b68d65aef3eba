/* test_describe.c: Kafka Streams' text, DOT and JSON of topologies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "hotpath/topology/describe.h"
#include "hotpath/weir.h"

static struct weir_topology *revenue(void)
{
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = weir_source(tp, "orders", "merchant_id STRING, amount INT, at TIMESTAMP(3)",
					     "topic=order.placed;order.old format=json");
	st = weir_event_time(st, "at", 5000);
	struct weir_stream *big = weir_filter(st, "amount > 100");
	(void)weir_sink(big, "big", "topic=orders.big format=json");
	st = weir_aggregate(weir_tumble(weir_key_by(big, "merchant_id"), 300000), "revenue-5m",
			    "merchant_id, SUM(amount) AS revenue, window_start");
	(void)weir_sink(st, "out", "path=/tmp topic=revenue format=json");
	struct weir_stream *other = weir_source(tp, "other", "a STRING", "topic-pattern=o.* format=json");
	(void)weir_sink(other, "nowhere", "connector=blackhole");
	return tp;
}

static void test_text(void **state)
{
	(void)state;
	struct weir_topology *tp = revenue();
	assert_int_equal(weir_topology_check(tp, NULL), WEIR_OK);
	char *text = weir_topology_describe(tp, WEIR_DESCRIBE_TEXT);
	assert_string_equal(text, "Topologies:\n"
				  "   Sub-topology: 0\n"
				  "    Source: orders (topics: [order.placed, order.old])\n"
				  "      --> filter-1\n"
				  "    Processor: filter-1 (stores: [])\n"
				  "      --> big, tumble-1\n"
				  "      <-- orders\n"
				  "    Sink: big (topic: orders.big)\n"
				  "      <-- filter-1\n"
				  "    Processor: tumble-1 (stores: [])\n"
				  "      --> revenue-5m\n"
				  "      <-- filter-1\n"
				  "    Processor: revenue-5m (stores: [revenue-5m])\n"
				  "      --> project-1\n"
				  "      <-- tumble-1\n"
				  "    Processor: project-1 (stores: [])\n"
				  "      --> project-2\n"
				  "      <-- revenue-5m\n"
				  "    Processor: project-2 (stores: [])\n"
				  "      --> out\n"
				  "      <-- project-1\n"
				  "    Sink: out (topic: revenue)\n"
				  "      <-- project-2\n"
				  "\n"
				  "  Sub-topology: 1\n"
				  "    Source: other (topics: o.*)\n"
				  "      --> nowhere\n"
				  "    Sink: nowhere (topic: blackhole)\n"
				  "      <-- other\n"
				  "\n");
	weir_free(text);
	weir_topology_destroy(tp);
}

static void test_dot(void **state)
{
	(void)state;
	struct weir_topology *tp = revenue();
	char *text = weir_topology_describe(tp, WEIR_DESCRIBE_DOT);
	assert_int_equal(strncmp(text, "digraph weir {\n", 15), 0);
	assert_non_null(strstr(text, "n0 -> n1;"));
	assert_non_null(strstr(text, "tumble-1\\ntumbling window of 5m"));
	assert_non_null(strstr(text, "revenue-5m\\nSUM(amount) BY merchant_id\", shape=cylinder"));
	assert_string_equal(text + strlen(text) - 3, "\n}\n");
	weir_free(text);
	weir_topology_destroy(tp);
}

static void test_json(void **state)
{
	(void)state;
	struct weir_topology *tp = revenue();
	char *text = weir_topology_describe(tp, WEIR_DESCRIBE_JSON);
	json_error_t error;
	json_t *root = json_loads(text, 0, &error);
	assert_non_null(root);
	json_t *nodes = json_object_get(root, "nodes");
	assert_int_equal(json_array_size(nodes), weir_topology_node_count(tp));
	json_t *agg = json_array_get(nodes, 4);
	assert_string_equal(json_string_value(json_object_get(agg, "kind")), "aggregate");
	assert_string_equal(json_string_value(json_object_get(agg, "state")), "revenue-5m");
	assert_int_equal(json_integer_value(json_object_get(agg, "grace_ms")), 5000);
	assert_string_equal(json_string_value(json_object_get(agg, "emit")), "final");
	assert_int_equal(json_integer_value(json_array_get(json_object_get(agg, "inputs"), 0)), 3);
	json_t *source = json_array_get(nodes, 0);
	assert_string_equal(json_string_value(json_object_get(source, "connector")), "kafka");
	json_t *at = json_array_get(json_object_get(source, "columns"), 2);
	assert_string_equal(json_string_value(json_object_get(at, "type")), "TIMESTAMP(3)");
	assert_true(json_is_true(json_object_get(at, "rowtime")));
	json_decref(root);
	weir_free(text);
	weir_topology_destroy(tp);
}

static void test_broken(void **state)
{
	(void)state;
	struct weir_topology *tp = weir_topology_create();
	(void)weir_filter(weir_source(tp, "s", "a STRING", "topic=t format=json"), "b = \"x\"");
	assert_int_equal(weir_topology_check(tp, NULL), WEIR_E_PLAN);
	char *text = weir_topology_describe(tp, WEIR_DESCRIBE_TEXT);
	assert_non_null(strstr(text, "weir_filter:1:"));
	weir_free(text);
	text = weir_topology_describe(tp, WEIR_DESCRIBE_DOT);
	assert_non_null(strstr(text, "error [label=\"weir_filter:1:"));
	weir_free(text);
	text = weir_topology_describe(tp, WEIR_DESCRIBE_JSON);
	json_t *root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "error")),
			    weir_diag_report(weir_topology_error(tp)));
	json_decref(root);
	weir_free(text);
	weir_topology_destroy(tp);
}

static void test_words(void **state)
{
	(void)state;
	static const struct {
		int64_t ms;
		const char *text;
	} durations[] = {
		{0, "0s"},
		{5, "5ms"},
		{1500, "1.5s"},
		{300000, "5m"},
		{90000, "1m30s"},
		{86400000, "1d"},
		{3600000 + 250, "1h250ms"},
		{-1000, "-1s"},
		{61001, "1m1.001s"},
	};
	struct weir_buf b = {0};
	for (size_t i = 0; i < WEIR_COUNT_OF(durations); i++) {
		b.bytes = 0;
		weir_duration_put(&b, durations[i].ms);
		weir_buf_put_byte(&b, 0);
		assert_string_equal((const char *)b.data, durations[i].text);
	}
	b.bytes = 0;
	weir_window_put(&b, &(struct weir_window_spec){
				    .kind = WEIR_WINDOW_HOP, .size_ms = 60000, .advance_ms = 10000, .offset_ms = 1000});
	weir_buf_puts(&b, "; ");
	weir_window_put(&b, &(struct weir_window_spec){.kind = WEIR_WINDOW_SESSION, .gap_ms = 30000});
	weir_buf_puts(&b, "; ");
	weir_window_put(&b, &(struct weir_window_spec){.kind = WEIR_WINDOW_SESSION, .gap_ms = 30000, .shared = true});
	weir_buf_puts(&b, "; ");
	weir_window_put(&b, &(struct weir_window_spec){.kind = WEIR_WINDOW_SLIDING, .size_ms = 60000});
	weir_buf_put_byte(&b, 0);
	assert_string_equal((const char *)b.data, "hopping window of 1m by 10s offset 1s; sessions with a gap of 30s; "
						  "sessions of all keys with a gap of 30s; sliding windows of 1m");
	b.bytes = 0;
	weir_json_put(&b, "a\"b\\c\n\x7f");
	weir_buf_put_byte(&b, 0);
	assert_string_equal((const char *)b.data, "\"a\\\"b\\\\c\\u000a\\u007f\"");
	weir_buf_fini(&b);
}

static void test_every_kind_of_node_has_its_name(void **state)
{
	(void)state;
	assert_string_equal(weir_node_kind_name(WEIR_NODE_SOURCE), "source");
	assert_string_equal(weir_node_kind_name(WEIR_NODE_OVER), "over");
	assert_string_equal(weir_node_kind_name(WEIR_NODE_LATEST), "latest");
	assert_string_equal(weir_node_kind_name(WEIR_NODE_SINK), "sink");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_of_node_has_its_name),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_dot),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
