/* test_driver.c: the whole engine on one thread, topics in memory: the vectors of the semantics that need more than a
 * table, EMIT FINAL and CHANGES, HAVING with deletes, filters, rejects, two stages. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>
#include <weir/weir_engine.h>

struct job {
	struct weir_topology *tp;
	struct weir_conf *cf;
	struct weir_driver *dr;
};

static void conf_set(struct job *j, const char *name, const char *value)
{
	struct weir_diag *dg = NULL;
	if (weir_conf_set(j->cf, name, value, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
}

static struct weir_stream *source(struct job *j, const char *name, const char *topic, int64_t grace)
{
	char options[128];
	snprintf(options, sizeof options, "connector=recorded path=x topic=%s format=json", topic);
	return weir_event_time(weir_source(j->tp, name, "k STRING, v BIGINT, ts BIGINT", options), "ts", grace);
}

static struct job job_begin(void)
{
	return (struct job){weir_topology_create(), weir_conf_create(), NULL};
}

static void job_start(struct job *j)
{
	struct weir_diag *dg = NULL;
	if (weir_driver_create(&j->dr, j->tp, j->cf, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
}

static void push(struct job *j, const char *topic, const char *value)
{
	struct weir_diag *dg = NULL;
	if (weir_driver_push(j->dr, topic, (struct weir_slice){NULL, 0},
			     (struct weir_slice){value, value ? strlen(value) : 0}, 0, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
}

static void push_kv(struct job *j, const char *k, int v, int64_t ts)
{
	char text[128];
	snprintf(text, sizeof text, "{\"k\":\"%s\",\"v\":%d,\"ts\":%" PRId64 "}", k, v, ts);
	push(j, "in", text);
}

static void end(struct job *j)
{
	struct weir_diag *dg = NULL;
	if (weir_driver_end(j->dr, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
}

static void expect(struct job *j, const char *topic, const char *key, const char *value, int64_t ts)
{
	struct weir_driver_record r;
	char got[512];
	if (!weir_driver_pop(j->dr, topic, &r))
		fail_msg("no result in %s, wanted %s", topic, value ? value : "a delete");
	if (key) {
		assert_non_null(r.key.data);
		snprintf(got, sizeof got, "%.*s", (int)r.key.bytes, (const char *)r.key.data);
		assert_string_equal(got, key);
	}
	if (value) {
		assert_non_null(r.value.data);
		snprintf(got, sizeof got, "%.*s", (int)r.value.bytes, (const char *)r.value.data);
		assert_string_equal(got, value);
	} else {
		assert_null(r.value.data);
	}
	if (ts >= 0)
		assert_int_equal(r.timestamp_ms, ts);
}

static void expect_none(struct job *j, const char *topic)
{
	struct weir_driver_record r;
	if (weir_driver_pop(j->dr, topic, &r))
		fail_msg("an unexpected result: %.*s", (int)r.value.bytes, (const char *)r.value.data);
}

static void job_end(struct job *j)
{
	weir_driver_destroy(j->dr);
}

#define OUT "connector=recorded path=x topic=out format=json key.fields=k key.format=raw"

static struct job tumbling(int64_t grace)
{
	struct job j = job_begin();
	struct weir_stream *st = weir_tumble(weir_key_by(source(&j, "s", "in", grace), "k"), 10);
	st = weir_aggregate(st, "w", "k, COUNT(*) AS n, SUM(v) AS total");
	(void)weir_sink(st, "out", OUT);
	job_start(&j);
	return j;
}

static void test_vector_1_grace_takes_an_early_record(void **state)
{
	(void)state;
	struct job j = tumbling(5);
	push_kv(&j, "a", 1, 14);
	push_kv(&j, "a", 2, 9);
	expect_none(&j, "out");
	push_kv(&j, "a", 4, 15); /* closes [0,10) */
	expect(&j, "out", "a", "{\"k\":\"a\",\"n\":1,\"total\":2}", 9);
	end(&j);
	expect(&j, "out", "a", "{\"k\":\"a\",\"n\":2,\"total\":5}", 19);
	expect_none(&j, "out");
	job_end(&j);
}

static void test_vector_2_equality_is_closed(void **state)
{
	(void)state;
	struct job j = tumbling(5);
	struct weir_stats st;
	push_kv(&j, "a", 1, 15);
	push_kv(&j, "a", 2, 9);
	end(&j);
	expect(&j, "out", "a", "{\"k\":\"a\",\"n\":1,\"total\":1}", 19);
	expect_none(&j, "out");
	weir_driver_stats(j.dr, &st);
	assert_int_equal(st.records_late, 1);
	assert_int_equal(st.records_read, 2);
	assert_int_equal(st.records_applied + st.records_late + st.records_rejected + st.records_filtered, 2);
	job_end(&j);
}

static void test_rejects_are_counted_and_go_to_the_dead_letter_topic(void **state)
{
	(void)state;
	struct job j = job_begin();
	conf_set(&j, "errors.deadletterqueue.topic.name", "dlq");
	struct weir_stream *st = weir_tumble(weir_key_by(source(&j, "s", "in", 0), "k"), 10);
	(void)weir_sink(weir_aggregate(st, "w", "k, COUNT(*) AS n, SUM(v) AS total"), "out", OUT);
	job_start(&j);
	push_kv(&j, "a", 1, 1);
	push(&j, "in", "{\"k\":\"a\",\"v\":1,\"ts\":2");
	push(&j, "in", "{\"k\":\"a\",\"v\":\"x\",\"ts\":3}");
	push_kv(&j, "a", 1, -1);              /* vector 12 */
	push(&j, "in", "{\"v\":1,\"ts\":4}"); /* null key */
	end(&j);
	expect(&j, "out", "a", "{\"k\":\"a\",\"n\":1,\"total\":1}", 9);
	struct weir_stats stats;
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_rejected, 4);
	assert_int_equal(stats.records_applied, 1);
	expect(&j, "dlq", NULL, "{\"k\":\"a\",\"v\":1,\"ts\":2", -1);
	struct weir_driver_record r;
	assert_true(weir_driver_pop(j.dr, "dlq", &r));
	assert_int_equal(r.header_count, 6);
	expect(&j, "dlq", NULL, "{\"k\":\"a\",\"v\":1,\"ts\":-1}", -1);
	expect(&j, "dlq", NULL, "{\"v\":1,\"ts\":4}", -1);
	expect_none(&j, "dlq");
	job_end(&j);
}

static void test_vector_4_hopping_misses_the_closed_window_only(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *st = weir_hop(weir_key_by(source(&j, "s", "in", 0), "k"), 10, 5);
	(void)weir_sink(weir_aggregate(st, "w", "k, window_start, COUNT(*) AS n"), "out", OUT);
	job_start(&j);
	push_kv(&j, "a", 1, 12);
	push_kv(&j, "a", 1, 7);
	end(&j);
	expect(&j, "out", "a", "{\"k\":\"a\",\"window_start\":\"1970-01-01 00:00:00.005\",\"n\":2}", 14);
	expect(&j, "out", "a", "{\"k\":\"a\",\"window_start\":\"1970-01-01 00:00:00.01\",\"n\":1}", 19);
	expect_none(&j, "out");
	struct weir_stats stats;
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_late, 0);
	assert_int_equal(stats.late_windows, 1);
	job_end(&j);
}

static void test_vector_6_sessions_retract_what_they_swallow(void **state)
{
	(void)state;
	for (int coalesce = 0; coalesce < 2; coalesce++) {
		struct job j = job_begin();
		conf_set(&j, "emit.coalesce", coalesce ? "true" : "false");
		struct weir_stream *st = weir_session(weir_key_by(source(&j, "s", "in", 0), "k"), 5);
		st = weir_aggregate(weir_emit(st, WEIR_EMIT_CHANGES), "w", "k, window_start, COUNT(*) AS n");
		(void)weir_sink(
			st, "out",
			"connector=recorded path=x topic=out format=json key.format=json key.fields=k;window_start");
		job_start(&j);
		push_kv(&j, "a", 1, 0);
		push_kv(&j, "a", 1, 5);
		const char *v1 = "{\"k\":\"a\",\"window_start\":\"1970-01-01 00:00:00\",\"n\":1}";
		const char *v2 = "{\"k\":\"a\",\"window_start\":\"1970-01-01 00:00:00\",\"n\":2}";
		expect(&j, "out", NULL, v1, 0);
		expect(&j, "out", NULL, NULL, -1);
		expect(&j, "out", NULL, v2, 5);
		end(&j);
		expect_none(&j, "out");
		job_end(&j);
	}
}

static void test_vector_9_sliding_windows(void **state)
{
	(void)state;
	for (int changes = 0; changes < 2; changes++) {
		struct job j = job_begin();
		conf_set(&j, "emit.coalesce", "false");
		struct weir_stream *st = weir_sliding(weir_key_by(source(&j, "s", "in", 0), "k"), 10);
		st = weir_emit(st, changes ? WEIR_EMIT_CHANGES : WEIR_EMIT_FINAL);
		st = weir_aggregate(st, "w", "k, window_start, window_end, window_time, SUM(v) AS v");
		(void)weir_sink(st, "out",
				"connector=recorded path=x topic=out format=json key.format=json "
				"key.fields=k;window_start");
		job_start(&j);
		push_kv(&j, "a", 1, 10);
		push_kv(&j, "a", 2, 15);
		static const struct {
			const char *start, *end;
			int v;
			int64_t last; /* record */
		} want[] = {{"", ".01", 1, 10}, {".005", ".015", 3, 15}, {".011", ".021", 2, 15}};
		/* Updates come as windows are made: the right one of 10 before the left one of 15. */
		static const int order[2][3] = {{0, 1, 2}, {0, 2, 1}};
		if (!changes)
			end(&j);
		for (int i = 0; i < 3; i++) {
			int n = order[changes][i];
			char text[256];
			snprintf(text, sizeof text,
				 "{\"k\":\"a\",\"window_start\":\"1970-01-01 00:00:00%s\",\"window_end\":\"1970-01-01 "
				 "00:00:00%s\",\"window_time\":\"1970-01-01 00:00:00%sZ\",\"v\":%d}",
				 want[n].start, want[n].end, want[n].end, want[n].v);
			expect(&j, "out", NULL, text, changes ? want[n].last : (int64_t[]){10, 15, 21}[n]);
		}
		if (changes)
			end(&j);
		expect_none(&j, "out");
		job_end(&j);
	}
}

/* Rows of closed sliding windows have their last millisecond as time, and are never late in the next stage. */
static void test_sliding_windows_feed_a_second_stage(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *st = weir_sliding(weir_key_by(source(&j, "s", "in", 0), "k"), 9);
	st = weir_aggregate(st, "first", "k, COUNT(*) AS n");
	st = weir_aggregate(weir_tumble(weir_key_by(st, "k"), 10), "second", "k, window_start, COUNT(*) AS windows");
	(void)weir_sink(st, "out", OUT);
	job_start(&j);
	for (int64_t t = 10; t < 100; t += 10) /* [t - 9, t]: one window each, ending as a tumbling one begins */
		push_kv(&j, "a", 1, t);
	end(&j);
	struct weir_stats stats;
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_late, 0);
	for (int i = 1; i < 10; i++) {
		char text[128];
		snprintf(text, sizeof text, "{\"k\":\"a\",\"window_start\":\"1970-01-01 00:00:00.0%d\",\"windows\":1}",
			 i);
		expect(&j, "out", NULL, text, 10 * i + 9);
	}
	expect_none(&j, "out");
	job_end(&j);
}

static void test_having_deletes_only_what_was_emitted(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *st = weir_aggregate(weir_key_by(source(&j, "s", "in", 0), "k"), "t", "k, SUM(v) AS total");
	(void)weir_sink(weir_filter(st, "total > 10"), "out", OUT);
	job_start(&j);
	push_kv(&j, "a", 5, 0);
	expect_none(&j, "out");
	push_kv(&j, "a", 6, 1);
	expect(&j, "out", "a", "{\"k\":\"a\",\"total\":11}", 1);
	push_kv(&j, "a", -5, 2);
	expect(&j, "out", "a", NULL, 2);
	push_kv(&j, "a", -5, 3);
	expect_none(&j, "out");
	job_end(&j);
}

static void test_filter_and_projection_without_state(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *st =
		weir_select(weir_filter(source(&j, "s", "in", 0), "v > 1"), "UPPER(k) AS k, v * 2 AS twice");
	(void)weir_sink(st, "out", OUT);
	job_start(&j);
	push_kv(&j, "a", 1, 0);
	push_kv(&j, "b", 2, 1);
	expect(&j, "out", "B", "{\"k\":\"B\",\"twice\":4}", 1);
	expect_none(&j, "out");
	struct weir_stats stats;
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_filtered, 1);
	job_end(&j);
}

static void test_two_stages_of_windows(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *st = weir_tumble(weir_key_by(source(&j, "s", "in", 0), "k"), 10);
	st = weir_aggregate(st, "first", "k, window_start, COUNT(*) AS n");
	st = weir_aggregate(weir_tumble(weir_key_by(st, "k"), 20), "second",
			    "k, window_start, SUM(n) AS n, COUNT(*) AS windows");
	(void)weir_sink(st, "out", OUT);
	job_start(&j);
	for (int64_t t = 0; t < 60; t += 2)
		push_kv(&j, t % 4 ? "a" : "b", 1, t);
	end(&j);
	struct weir_stats stats;
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_late, 0);
	int64_t rows = 0, n = 0;
	struct weir_driver_record r;
	while (weir_driver_pop(j.dr, "out", &r)) {
		char text[256];
		long long v;
		snprintf(text, sizeof text, "%.*s", (int)r.value.bytes, (const char *)r.value.data);
		assert_int_equal(sscanf(strstr(text, "\"n\":"), "\"n\":%lld", &v), 1);
		n += v;
		rows++;
	}
	assert_int_equal(rows, 6);
	assert_int_equal(n, 30);
	job_end(&j);
}

static void test_two_inputs_close_by_the_slower_one(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *st = weir_merge(source(&j, "s0", "in", 0), source(&j, "s1", "in2", 0));
	st = weir_aggregate(weir_tumble(weir_key_by(st, "k"), 10), "w", "k, COUNT(*) AS n");
	(void)weir_sink(st, "out", OUT);
	job_start(&j);
	push_kv(&j, "a", 1, 25);
	push(&j, "in2", "{\"k\":\"a\",\"v\":1,\"ts\":3}");
	push(&j, "in2", "{\"k\":\"a\",\"v\":1,\"ts\":9}");
	expect_none(&j, "out");
	push(&j, "in2", "{\"k\":\"a\",\"v\":1,\"ts\":12}"); /* vector 13 */
	expect(&j, "out", "a", "{\"k\":\"a\",\"n\":2}", 9);
	expect_none(&j, "out");
	job_end(&j);
}

static void test_future_guard_refuses_and_moves_no_time(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stats stats;
	conf_set(&j, "time.future.max.ms", "100");
	struct weir_stream *st = weir_tumble(weir_key_by(source(&j, "s", "in", 0), "k"), 10);
	(void)weir_sink(weir_aggregate(st, "w", "k, COUNT(*) AS n"), "out", OUT);
	job_start(&j);
	push_kv(&j, "a", 1, 5);
	push_kv(&j, "a", 1, 106); /* 101 ahead */
	push_kv(&j, "a", 1, 6);   /* not late: the refused record moved nothing */
	push_kv(&j, "a", 1, 105); /* 99 ahead */
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_rejected, 1);
	assert_int_equal(stats.records_late, 0);
	expect(&j, "out", "a", "{\"k\":\"a\",\"n\":2}", 9);
	job_end(&j);
}

static void test_late_records_keep_their_bytes_and_say_why(void **state)
{
	(void)state;
	struct job j = job_begin();
	conf_set(&j, "late.topic", "late");
	struct weir_stream *st = weir_tumble(weir_key_by(source(&j, "s", "in", 0), "k"), 10);
	(void)weir_sink(weir_aggregate(st, "w", "k, COUNT(*) AS n"), "out", OUT);
	job_start(&j);
	push_kv(&j, "a", 1, 30);
	push(&j, "in", "{\"ts\":3,  \"v\":1,\"k\":\"b\"}");
	expect(&j, "late", NULL, "{\"ts\":3,  \"v\":1,\"k\":\"b\"}", -1);
	expect_none(&j, "late");
	job_end(&j);
}

static void test_advance_moves_every_partition(void **state)
{
	(void)state;
	struct job j = tumbling(5);
	struct weir_diag *dg = NULL;
	push_kv(&j, "a", 1, 3);
	assert_int_equal(weir_driver_advance(j.dr, 14, &dg), WEIR_OK);
	expect_none(&j, "out");
	assert_int_equal(weir_driver_advance(j.dr, 15, &dg), WEIR_OK);
	expect(&j, "out", "a", "{\"k\":\"a\",\"n\":1,\"total\":1}", 9);
	job_end(&j);
}

static void test_errors_policy_fail_stops_with_the_place(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_diag *dg = NULL;
	conf_set(&j, "errors.policy", "fail");
	(void)weir_sink(source(&j, "s", "in", 0), "out", "connector=recorded path=x topic=out format=json");
	job_start(&j);
	assert_int_equal(
		weir_driver_push(j.dr, "in", (struct weir_slice){NULL, 0}, (struct weir_slice){"{", 1}, 0, &dg),
		WEIR_E_RECORD);
	assert_non_null(strstr(weir_diag_text(dg), "in-0 offset 0"));
	weir_diag_destroy(dg);
	job_end(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_1_grace_takes_an_early_record),
		cmocka_unit_test(test_vector_2_equality_is_closed),
		cmocka_unit_test(test_rejects_are_counted_and_go_to_the_dead_letter_topic),
		cmocka_unit_test(test_vector_4_hopping_misses_the_closed_window_only),
		cmocka_unit_test(test_vector_6_sessions_retract_what_they_swallow),
		cmocka_unit_test(test_vector_9_sliding_windows),
		cmocka_unit_test(test_sliding_windows_feed_a_second_stage),
		cmocka_unit_test(test_having_deletes_only_what_was_emitted),
		cmocka_unit_test(test_filter_and_projection_without_state),
		cmocka_unit_test(test_two_stages_of_windows),
		cmocka_unit_test(test_two_inputs_close_by_the_slower_one),
		cmocka_unit_test(test_future_guard_refuses_and_moves_no_time),
		cmocka_unit_test(test_late_records_keep_their_bytes_and_say_why),
		cmocka_unit_test(test_advance_moves_every_partition),
		cmocka_unit_test(test_errors_policy_fail_stops_with_the_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
