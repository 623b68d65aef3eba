/* test_engine.c: the engine on its real threads, for TSan and for what only threads show: the same bytes for every
 * number of workers, stopping from another thread, following topics that grow while it runs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hotpath/weir.h"
#include "io/recorded/recorded.h"
#include "io/weir_engine.h"
#include "tests/support/tmpdir.h"
#include "tests/support/topic_digest.h"

#define check(call, dg)                                                                                                \
	do {                                                                                                           \
		if ((call) != WEIR_OK)                                                                                 \
			fail_msg("%s", weir_diag_text(dg));                                                            \
	} while (0)

enum { PARTITIONS = 4 };

static void put_records(struct weir_topic_writer *w, int from, int count)
{
	struct weir_diag *dg = NULL;
	for (int i = from; i < from + count; i++) {
		char value[160], key[16];
		int64_t ts = 1000 + i * 2 - (i * 7919 % 40);
		snprintf(key, sizeof key, "k%d", i * 31 % 53);
		snprintf(value, sizeof value, "{\"k\":\"%s\",\"v\":%d,\"ts\":%" PRId64 "}", key, i % 1000, ts);
		struct weir_out out = {.key = {key, strlen(key)}, .value = {value, strlen(value)}, .timestamp = ts};
		check(weir_topic_writer_put(w, (weir_murmur2(key, strlen(key)) & 0x7fffffff) % PARTITIONS, &out, &dg),
		      dg);
	}
}

static void make_input(const char *dir, int from, int count)
{
	struct weir_topic_writer *w;
	struct weir_diag *dg = NULL;
	check(weir_topic_writer_open(&w, dir, "in", PARTITIONS, WEIR_CODEC_LZ4, &dg), dg);
	put_records(w, from, count);
	check(weir_topic_writer_close(w, &dg), dg);
}

static struct weir_engine *make_engine(const char *in, const char *out, const char *workers, const char *mode,
				       bool two_stages)
{
	char options[512];
	struct weir_diag *dg = NULL;
	struct weir_engine *en;
	struct weir_topology *tp = weir_topology_create();
	struct weir_conf *cf = weir_conf_create();
	check(weir_conf_set(cf, "application.id", "app", &dg), dg);
	check(weir_conf_set(cf, "workers", workers, &dg), dg);
	check(weir_conf_set(cf, "slots", "16", &dg), dg);
	check(weir_conf_set(cf, "order.point.records", "500", &dg), dg);
	check(weir_conf_set(cf, "commit.interval.records", "2000", &dg), dg);
	check(weir_conf_set(cf, "commit.interval.ms", "50", &dg), dg);
	check(weir_conf_set(cf, "emit.interval.ms", "10", &dg), dg);
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=in format=json%s", in, mode);
	struct weir_stream *st = weir_source(tp, "src", "k STRING, v BIGINT, ts TIMESTAMP_LTZ(3)", options);
	st = weir_key_by(weir_event_time(st, "ts", 30), "k");
	st = weir_aggregate(weir_tumble(st, 100), "w", "k, window_start, COUNT(*) AS n, SUM(v) AS total");
	if (two_stages)
		st = weir_aggregate(
			weir_tumble(weir_key_by(weir_select(st, "'all' AS k, n, total, window_start"), "k"), 500), "w2",
			"k, window_start, SUM(n) AS n, SUM(total) AS total");
	snprintf(options, sizeof options,
		 "connector=recorded path='%s' topic=out format=json key.fields=k key.format=raw", out);
	(void)weir_sink(st, "sink", options);
	check(weir_engine_create(&en, tp, cf, &dg), dg);
	return en;
}

static void test_every_number_of_workers_gives_the_same_bytes(void **state)
{
	(void)state;
	char *root = tmpdir_make();
	const char *in = tmpdir_path(root, "in");
	char input[4096];
	snprintf(input, sizeof input, "%s", in);
	make_input(input, 0, 20000);
	for (int two = 0; two < 2; two++) {
		uint64_t want = 0, want_records = 0, records;
		static const char *const workers[] = {"1", "2", "3", "4"};
		for (size_t i = 0; i < 4; i++) {
			char out[4096];
			struct weir_diag *dg = NULL;
			snprintf(out, sizeof out, "%s/out-%d-%s", root, two, workers[i]);
			struct weir_engine *en = make_engine(input, out, workers[i], "", two);
			check(weir_engine_run(en, &dg), dg);
			struct weir_stats st;
			weir_engine_stats(en, &st);
			assert_int_equal(st.records_read, 20000);
			assert_int_equal(st.records_late, 0);
			weir_engine_destroy(en);
			uint64_t got = topic_digest(out, "out", &records);
			if (i == 0) {
				want = got;
				want_records = records;
			}
			assert_int_equal(records, want_records);
			assert_true(got == want);
		}
		assert_true(want_records > 10);
	}
	tmpdir_remove(root);
}

static void *stop_soon(void *arg)
{
	usleep(20000);
	weir_engine_stop(arg);
	return NULL;
}

static void test_stop_and_go_on_gives_the_same_bytes(void **state)
{
	(void)state;
	char *root = tmpdir_make(), input[4096], whole[4096], parts[4096];
	uint64_t a, b;
	snprintf(input, sizeof input, "%s/in", root);
	snprintf(whole, sizeof whole, "%s/whole", root);
	snprintf(parts, sizeof parts, "%s/parts", root);
	make_input(input, 0, 30000);
	struct weir_diag *dg = NULL;
	struct weir_engine *en = make_engine(input, whole, "2", "", true);
	check(weir_engine_run(en, &dg), dg);
	weir_engine_destroy(en);
	uint64_t read = 0;
	for (int i = 0; i < 200; i++) {
		pthread_t th;
		struct weir_stats st;
		en = make_engine(input, parts, i % 2 ? "1" : "3", "", true);
		assert_int_equal(pthread_create(&th, NULL, stop_soon, en), 0);
		check(weir_engine_run(en, &dg), dg);
		pthread_join(th, NULL);
		weir_engine_stats(en, &st);
		read += st.records_read;
		bool done = st.resumed == 2;
		weir_engine_destroy(en);
		if (done)
			break;
	}
	assert_int_equal(read, 30000);
	assert_true(topic_digest(parts, "out", &a) == topic_digest(whole, "out", &b));
	assert_int_equal(a, b);
	tmpdir_remove(root);
}

struct appender {
	const char *dir;
	struct weir_engine *en;
};

static void *append_and_stop(void *arg)
{
	struct appender *ap = arg;
	for (int i = 1; i <= 10; i++) {
		usleep(15000);
		make_input(ap->dir, i * 1000, 1000);
	}
	struct weir_stats st;
	for (int i = 0; i < 6000;
	     i++) { /* a live stop does not read on: wait until all has come in, a minute at most */
		weir_engine_stats(ap->en, &st);
		if (st.records_read == 11000)
			break;
		usleep(10000);
	}
	weir_engine_stop(ap->en);
	return NULL;
}

static void test_following_topics_that_grow(void **state)
{
	(void)state;
	char *root = tmpdir_make(), input[4096], out[4096];
	snprintf(input, sizeof input, "%s/in", root);
	snprintf(out, sizeof out, "%s/out", root);
	make_input(input, 0, 1000);
	struct weir_diag *dg = NULL;
	struct weir_engine *en = make_engine(input, out, "2", " scan.bounded.mode=unbounded", false);
	struct appender ap = {input, en};
	pthread_t th;
	assert_int_equal(pthread_create(&th, NULL, append_and_stop, &ap), 0);
	check(weir_engine_run(en, &dg), dg);
	pthread_join(th, NULL);
	struct weir_stats st;
	weir_engine_stats(en, &st);
	assert_int_equal(st.records_read, 11000);
	assert_int_equal(st.records_applied + st.records_late, 11000);
	assert_true(st.epochs_committed > 1);
	assert_true(st.results_written > 100);
	weir_engine_destroy(en);
	/* What is left open closes when the same application reads to a bound. */
	en = make_engine(input, out, "1", "", false);
	check(weir_engine_run(en, &dg), dg);
	weir_engine_stats(en, &st);
	assert_int_equal(st.records_read, 0);
	assert_true(st.results_written > 0);
	weir_engine_destroy(en);
	tmpdir_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number_of_workers_gives_the_same_bytes),
		cmocka_unit_test(test_stop_and_go_on_gives_the_same_bytes),
		cmocka_unit_test(test_following_topics_that_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
