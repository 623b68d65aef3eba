/* test_wait.c: a live join whose table comes later over the wire than the stream beside it: the whole engine on one
 * thread with a clock of its own. Records of the stream wait for rows that are known to be there (join.wait.ms), not
 * longer, and not for a table that has none. */
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

enum { ROWS = 50 };

/* A recorded topic that is far away: until from_us it brings nothing, and says that it has more, or that it has not. */
struct far {
	struct weir_stream_log sl;
	struct weir_stream_log *near;
	int64_t from_us;
	enum weir_poll until;
	uint32_t waits; /* how often others were told to wait for it, or no more */
};

static struct far far_one;

static uint32_t far_partitions(const struct weir_stream_log *sl)
{
	(void)sl;
	return far_one.near->ops->partitions(far_one.near);
}
static enum weir_poll far_peek(struct weir_stream_log *sl, uint32_t p, int64_t *first_ts, struct weir_diag **dg)
{
	(void)sl;
	return sim_clock_us < far_one.from_us ? far_one.until : far_one.near->ops->peek(far_one.near, p, first_ts, dg);
}
static enum weir_err far_take(struct weir_stream_log *sl, uint32_t p, struct weir_unit **out, struct weir_diag **dg)
{
	(void)sl;
	return far_one.near->ops->take(far_one.near, p, out, dg);
}
static void far_release(struct weir_stream_log *sl, struct weir_unit *u)
{
	(void)sl;
	far_one.near->ops->release(far_one.near, u);
}
static enum weir_err far_seek(struct weir_stream_log *sl, uint32_t p, int64_t offset, struct weir_diag **dg)
{
	(void)sl;
	return far_one.near->ops->seek(far_one.near, p, offset, dg);
}
static void far_range(struct weir_stream_log *sl, uint32_t p, int64_t *first, int64_t *end)
{
	(void)sl;
	far_one.near->ops->range(far_one.near, p, first, end);
}
static int far_event_fd(const struct weir_stream_log *sl)
{
	(void)sl;
	return -1;
}
static const char *far_topic(const struct weir_stream_log *sl, uint32_t p, uint32_t *partition)
{
	(void)sl;
	return far_one.near->ops->topic(far_one.near, p, partition);
}
static void far_close(struct weir_stream_log *sl)
{
	(void)sl;
	far_one.near->ops->close(far_one.near);
}
static void far_wait(struct weir_stream_log *sl, bool on)
{
	(void)sl;
	assert_int_equal(on, far_one.waits % 2 == 0);
	far_one.waits++;
}
static int64_t far_last_ts(const struct weir_stream_log *sl, uint32_t p);
static const struct weir_stream_ops far_ops = {.partitions = far_partitions,
					       .peek = far_peek,
					       .take = far_take,
					       .release = far_release,
					       .seek = far_seek,
					       .range = far_range,
					       .event_fd = far_event_fd,
					       .topic = far_topic,
					       .close = far_close,
					       .wait = far_wait,
					       .last_ts = far_last_ts};

static int rows_batch = ROWS;
static int fillers; /* rows of a key of no click behind each row, as many ms between clicks */
static const char *point_ms = "100";
static const char *point_records = "65536";

/* In stored batches of so many. */
static void make_topic(const char *dir, const char *topic, int64_t from, int batch)
{
	struct weir_topic_writer *w;
	struct weir_diag *dg = NULL;
	check(weir_topic_writer_open(&w, dir, topic, 1, WEIR_CODEC_NONE, &dg), dg);
	int step = fillers + 1, each = strcmp(topic, "rows") == 0 ? step : 1;
	for (int i = 0; i < ROWS * each; i++) {
		char key[16], value[64];
		snprintf(key, sizeof key, i % each == 0 ? "k%d" : "f%d", i / each);
		snprintf(value, sizeof value, "{\"k\":\"%s\",\"v\":%d}", key, i);
		struct weir_out out = {.key = {key, strlen(key)},
				       .value = {value, strlen(value)},
				       .timestamp = from + (int64_t)i * (step / each)};
		check(weir_topic_writer_put(w, 0, &out, &dg), dg);
		if (i % batch == batch - 1)
			check(weir_topic_writer_cut(w, &dg), dg);
	}
	check(weir_topic_writer_close(w, &dg), dg);
}

/* The next rows_batch records of rows, a ms apart. */
static int64_t far_last_ts(const struct weir_stream_log *sl, uint32_t p)
{
	struct weir_diag *dg = NULL;
	int64_t ts;
	(void)sl;
	assert_int_equal(far_one.near->ops->peek(far_one.near, p, &ts, &dg), WEIR_POLL_UNIT);
	return ts + rows_batch - 1;
}

/* How many clicks meet their row, where rows come so many ms later and a join waits for at most wait_ms. */
static uint64_t matches(const char *root, const char *name, int64_t rows_from, int64_t late_ms, enum weir_poll until,
			const char *wait_ms)
{
	char options[512], in[300];
	struct weir_core co = {0};
	struct weir_diag *dg = NULL;
	struct weir_topology *tp = weir_topology_create();
	snprintf(in, sizeof in, "%s/%s-in", root, name);
	make_topic(in, "clicks", 10000, ROWS);
	make_topic(in, "rows", rows_from, rows_batch);
	snprintf(options, sizeof options,
		 "connector=recorded path='%s' topic=clicks format=json key.fields=k key.format=raw", in);
	struct weir_stream *st = weir_source(tp, "clicks", "k STRING, v BIGINT", options);
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=rows format=json", in);
	struct weir_table *tb = weir_table(tp, "rows", "k STRING, v BIGINT", "k", options);
	st = weir_select(weir_join_table(st, tb, "j", "k", WEIR_JOIN_INNER), "l.k AS k, r.v AS v");
	snprintf(options, sizeof options, "connector=recorded path='%s/%s-out' topic=out format=json", root, name);
	(void)weir_sink(st, "sink", options);
	struct weir_conf *cf = weir_conf_create();
	check(weir_conf_set(cf, "application.id", "app", &dg), dg);
	check(weir_conf_set(cf, "join.wait.ms", wait_ms, &dg), dg);
	check(weir_conf_set(cf, "emit.interval.ms", point_ms, &dg), dg);
	check(weir_conf_set(cf, "order.point.records", point_records, &dg), dg);
	check(weir_core_plan(&co, tp, cf, &dg), dg);
	co.streams = weir_xcalloc(co.plan->scan_count + 1, sizeof *co.streams);
	sim_clock_us = 1000000;
	sim_step_us = 500;
	for (uint32_t i = 0; i < co.plan->scan_count; i++) {
		bool live;
		check(weir_source_open(&co.streams[i], &co, i, &live, &dg), dg);
		if (strcmp(co.plan->scans[i].name, "rows") != 0)
			continue;
		far_one = (struct far){{&far_ops}, co.streams[i], sim_clock_us + late_ms * 1000, until, 0};
		co.streams[i] = &far_one.sl;
	}
	co.live = true;
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
	assert_int_equal(far_one.waits % 2, 0);
	snprintf(options, sizeof options, "%s/%s-out", root, name);
	uint64_t records;
	(void)topic_digest(options, "out", &records);
	return records;
}

static void test_joins_wait_for_what_is_there(void **state)
{
	(void)state;
	char *root = tmpdir_make();
	assert_int_equal(matches(root, "waits", 1000, 2000, WEIR_POLL_LATER, "10s"), ROWS);
	assert_int_equal(far_one.waits, 2);
	/* Not longer than that, */
	assert_int_equal(matches(root, "short", 1000, 2000, WEIR_POLL_LATER, "300ms"), 0);
	assert_int_equal(far_one.waits, 2);
	assert_int_equal(matches(root, "never", 1000, 2000, WEIR_POLL_LATER, "0"), 0);
	assert_int_equal(far_one.waits, 0);
	/* and not for a table that has nothing at the time. */
	assert_int_equal(matches(root, "silent", 1000, 2000, WEIR_POLL_EMPTY, "10s"), 0);
	assert_int_equal(far_one.waits, 0);
	tmpdir_remove(root);
}

/* All clicks are one unit, their rows several, each no older than its click: an order point in the middle of them comes
 * once rows and clicks are read equally far, however often one is due. */
static void test_order_points_find_inputs_even(void **state)
{
	(void)state;
	char *root = tmpdir_make();
	point_ms = "1";
	for (rows_batch = 1; rows_batch <= ROWS; rows_batch += 7) {
		char name[32];
		snprintf(name, sizeof name, "even%d", rows_batch);
		assert_int_equal(matches(root, name, 10000, 0, WEIR_POLL_LATER, "10s"), ROWS);
		/* What is on its way is waited for, too, at every turn of a unit. */
		snprintf(name, sizeof name, "later%d", rows_batch);
		assert_int_equal(matches(root, name, 10000, 20, WEIR_POLL_LATER, "10s"), ROWS);
	}
	point_ms = "100";
	rows_batch = ROWS;
	tmpdir_remove(root);
}

/* The clicks of one unit reach over more rows than an order point takes: it is left and taken up again, as far as rows
 * have come. */
static void test_a_sparse_unit_goes_on_with_the_dense_ones(void **state)
{
	(void)state;
	char *root = tmpdir_make();
	fillers = 3999;
	rows_batch = 1000;
	assert_int_equal(matches(root, "sparse", 10000, 0, WEIR_POLL_LATER, "10s"), ROWS);
	point_ms = "1";
	assert_int_equal(matches(root, "often", 10000, 0, WEIR_POLL_LATER, "10s"), ROWS);
	point_ms = "100";
	rows_batch = ROWS;
	fillers = 0;
	tmpdir_remove(root);
}

/* Order points of a record or a few: there is an end to them. */
static void test_order_points_of_few_records_end(void **state)
{
	static const char *const few[] = {"1", "2", "3", "4", "7"};
	(void)state;
	char *root = tmpdir_make();
	rows_batch = 5;
	for (uint32_t i = 0; i < WEIR_COUNT_OF(few); i++) {
		char name[32];
		point_records = few[i];
		snprintf(name, sizeof name, "few%s", few[i]);
		assert_int_equal(matches(root, name, 1000, 0, WEIR_POLL_LATER, "10s"), ROWS);
	}
	point_records = "65536";
	rows_batch = ROWS;
	tmpdir_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_joins_wait_for_what_is_there),
					   cmocka_unit_test(test_order_points_find_inputs_even),
					   cmocka_unit_test(test_a_sparse_unit_goes_on_with_the_dense_ones),
					   cmocka_unit_test(test_order_points_of_few_records_end)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
