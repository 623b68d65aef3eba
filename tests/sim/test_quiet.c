/* test_quiet.c: EMIT CHANGES of live input leaves once in an emit interval, however many order points its records make:
 * the whole engine on one thread with a clock of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/run/worker_state.h"
#include "hotpath/weir.h"
#include "io/core.h"
#include "io/recorded/recorded.h"
#include "tests/support/sim.h"
#include "tests/support/tmpdir.h"
#include "tests/support/topic_digest.h"

enum { KEYS = 5, WINDOW_MS = 600, FIRST_MS = 16 * WINDOW_MS };

static void make_topic(const char *dir, int count)
{
	struct weir_topic_writer *w;
	struct weir_diag *dg = NULL;
	check(weir_topic_writer_open(&w, dir, "in", 1, WEIR_CODEC_NONE, &dg), dg);
	for (int i = 0; i < count; i++) {
		char key[16], value[64];
		snprintf(key, sizeof key, "k%d", i % KEYS);
		snprintf(value, sizeof value, "{\"k\":\"%s\",\"v\":%d}", key, i);
		struct weir_out out = {
			.key = {key, strlen(key)}, .value = {value, strlen(value)}, .timestamp = FIRST_MS + i};
		check(weir_topic_writer_put(w, 0, &out, &dg), dg);
	}
	check(weir_topic_writer_close(w, &dg), dg);
}

struct run {
	const char *name;
	int count;  /* records, one a millisecond */
	bool live;  /* else read as a recording */
	bool twice; /* a second aggregation over the rows of the first */
	const char *point, *emit, *commit, *coalesce;
};

/* Rows that leave, and a digest of them. */
static uint64_t rows_of(const char *root, const struct run *r, uint64_t *digest)
{
	char options[512], in[300];
	struct weir_core co = {0};
	struct weir_diag *dg = NULL;
	struct weir_topology *tp = weir_topology_create();
	snprintf(in, sizeof in, "%s/%s-in", root, r->name);
	make_topic(in, r->count);
	snprintf(options, sizeof options,
		 "connector=recorded path='%s' topic=in format=json key.fields=k key.format=raw", in);
	struct weir_stream *st = weir_source(tp, "in", "k STRING, v BIGINT", options);
	st = weir_key_by(st, "k");
	if (r->twice) {
		st = weir_aggregate(st, "w", "k, COUNT(*) AS n, MAX(v) AS v");
		st = weir_key_by(weir_select(st, "n, v % 2 AS odd"), "odd");
		st = weir_aggregate(st, "t", "odd AS k, SUM(n) AS n");
	} else {
		st = weir_emit(weir_tumble(st, WINDOW_MS), WEIR_EMIT_CHANGES);
		st = weir_aggregate(st, "w", "k, window_start, COUNT(*) AS n, MAX(v) AS v");
	}
	snprintf(options, sizeof options,
		 "connector=recorded path='%s/%s-out' topic=out format=json key.fields=%s key.format=json", root,
		 r->name, r->twice ? "k" : "k;window_start");
	(void)weir_sink(st, "sink", options);
	struct weir_conf *cf = weir_conf_create();
	check(weir_conf_set(cf, "application.id", "app", &dg), dg);
	check(weir_conf_set(cf, "order.point.records", r->point, &dg), dg);
	check(weir_conf_set(cf, "emit.interval.ms", r->emit, &dg), dg);
	check(weir_conf_set(cf, "commit.interval.ms", r->commit, &dg), dg);
	check(weir_conf_set(cf, "emit.coalesce", r->coalesce, &dg), dg);
	check(weir_core_plan(&co, tp, cf, &dg), dg);
	co.streams = weir_xcalloc(co.plan->scan_count + 1, sizeof *co.streams);
	sim_clock_us = 1000000;
	sim_step_us = 100;
	bool live;
	check(weir_source_open(&co.streams[0], &co, 0, &live, &dg), dg);
	co.live = r->live;
	check(weir_core_build(&co, sim_open_log, NULL, sim_now, &dg), dg);
	weir_reader_register();
	while (!weir_feed_done(co.feed)) {
		bool moved;
		int wait;
		check(weir_feed_step(co.feed, &moved, &wait, &dg), dg);
		(void)weir_worker_step(co.workers[0]);
		check(weir_snapshot_step(co.snapshot, &moved, &dg), dg);
	}
	weir_reader_unregister();
	weir_core_fini(&co);
	snprintf(options, sizeof options, "%s/%s-out", root, r->name);
	uint64_t records;
	*digest = topic_digest(options, "out", &records);
	return records;
}

static void test_changes_wait_for_the_interval(void **state)
{
	(void)state;
	char *root = tmpdir_make();
	uint64_t once, digest;
	/* A recording with one order point: two windows' keys, once each. */
	struct run r = {"once", 960, false, false, "100000", "1h", "1h", "true"};
	assert_int_equal(rows_of(root, &r, &once), 2 * KEYS);
	/* Live, 60 of them change nothing. */
	r = (struct run){"quiet", 960, true, false, "16", "1h", "1h", "true"};
	assert_int_equal(rows_of(root, &r, &digest), 2 * KEYS);
	assert_true(digest == once);
	/* In a recording they do: 60, of which one meets both windows, and all of 16 records and so of every key. */
	r = (struct run){"recorded", 960, false, false, "16", "1h", "1h", "true"};
	assert_int_equal(rows_of(root, &r, &digest), 61 * KEYS);
	/* Every update is told at once where that is wanted. */
	r = (struct run){"each", 960, true, false, "16", "1h", "1h", "false"};
	assert_int_equal(rows_of(root, &r, &digest), 960);
	tmpdir_remove(root);
}

static void test_changes_leave_in_time(void **state)
{
	(void)state;
	char *root = tmpdir_make();
	uint64_t digest;
	struct run r = {"all", 960, true, false, "16", "1ms", "1h", "true"};
	uint64_t all = rows_of(root, &r, &digest);
	/* The clock goes on by 100 us each time it is read: some order points are in time. */
	r = (struct run){"some", 960, true, false, "16", "4ms", "1h", "true"};
	uint64_t some = rows_of(root, &r, &digest);
	assert_in_range(some, 4 * KEYS, all - 10 * KEYS);
	/* No commit without what came before it. */
	r = (struct run){"commits", 960, true, false, "16", "1h", "1ms", "true"};
	assert_in_range(rows_of(root, &r, &digest), 10 * KEYS, 61 * KEYS);
	/* What waits has a bound: 125 order points, of which at most 64 in a row are quiet. */
	r = (struct run){"bound", 2000, true, false, "16", "1h", "1h", "true"};
	assert_in_range(rows_of(root, &r, &digest), 5 * KEYS, 7 * KEYS);
	tmpdir_remove(root);
}

/* Times of a stage behind must not overtake its rows: there every order point counts, live as well. */
static void test_stages_behind_hear_at_once(void **state)
{
	(void)state;
	char *root = tmpdir_make();
	uint64_t recorded, live;
	struct run r = {"recorded", 960, false, true, "16", "1h", "1h", "true"};
	uint64_t rows = rows_of(root, &r, &recorded);
	assert_true(rows > 50);
	r = (struct run){"live", 960, true, true, "16", "1h", "1h", "true"};
	assert_int_equal(rows_of(root, &r, &live), rows);
	assert_true(live == recorded);
	tmpdir_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes_wait_for_the_interval),
					   cmocka_unit_test(test_changes_leave_in_time),
					   cmocka_unit_test(test_stages_behind_hear_at_once)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
