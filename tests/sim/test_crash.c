/* test_crash.c: the whole engine over real recorded topics, on one thread: feed, workers and snapshotter are stepped in
 * a seeded random order, and the run is cut off at a random step and started again, as often as it takes. Whatever the
 * number of workers, the order of steps and the crashes: the output topic must have the bytes of an undisturbed run
 * with one worker. Every kind of job takes 12 seeds; WEIR_SIM_JOB runs one kind, WEIR_SIM_SEED one seed, WEIR_SIM_CASES
 * that many. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
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

/* Sanitizers take twenty times as long. */
#ifdef WEIR_DEBUG
enum { CASES = 3 };
#else
enum { CASES = 12 };
#endif
enum { SIM_PARTITIONS = 4, SIM_RECORDS = 3000 };

static void make_input(const char *dir, const char *topic, uint64_t seed)
{
	struct weir_topic_writer *w;
	struct weir_diag *dg = NULL;
	check(weir_topic_writer_open(&w, dir, topic, SIM_PARTITIONS, WEIR_CODEC_NONE, &dg), dg);
	for (int i = 0; i < SIM_RECORDS; i++) {
		char value[160], key[16];
		uint64_t r = rng_next(&seed);
		int64_t ts = 1000 + i * 3 - (int64_t)(r % 60);
		snprintf(key, sizeof key, "k%u", (unsigned)(r >> 20) % 37);
		if (r % 97 == 0)
			snprintf(value, sizeof value, "{\"k\":\"%s\",\"v\":", key);
		else
			snprintf(value, sizeof value, "{\"k\":\"%s\",\"v\":%d,\"s\":\"s%u\",\"ts\":%" PRId64 "}", key,
				 (int)(r % 1000), (unsigned)(r >> 40) % 5000, ts);
		struct weir_out out = {.key = {key, strlen(key)}, .value = {value, strlen(value)}, .timestamp = ts};
		check(weir_topic_writer_put(w, (weir_murmur2(key, strlen(key)) & 0x7fffffff) % SIM_PARTITIONS, &out,
					    &dg),
		      dg);
		if (rng_next(&seed) % 150 == 0)
			check(weir_topic_writer_cut(w, &dg), dg);
	}
	check(weir_topic_writer_close(w, &dg), dg);
}

enum job_kind {
	JOB_TUMBLE,
	JOB_HOP,
	JOB_SESSION,
	JOB_TUMBLE_CHANGES,
	JOB_SESSION_CHANGES,
	JOB_SLIDING,
	JOB_SLIDING_CHANGES,
	JOB_TABLE,
	JOB_TWO_STAGES,
	JOB_STATELESS,
	JOB_TABLE_READ,
	JOB_JOIN_TABLE,
	JOB_JOIN_GLOBAL,
	JOB_JOIN_ENDED,
	JOB_GLOBAL_ENDED,
	JOB_JOIN_AS_OF,
	JOB_JOIN_TABLES,
	JOB_JOIN_FOREIGN,
	JOB_FOREIGN_GROUPS,
	JOB_TABLE_GROUPS,
	JOB_JOIN_INNER,
	JOB_JOIN_LEFT,
	JOB_JOIN_FULL,
	JOB_JOIN_THEN_WINDOW,
	JOB_JOIN_WINDOWS,
	JOB_JOIN_HOPS,
	JOB_JOIN_AFTER, /* rows of one side meet none that came before them: they are looked for, not found */
	JOB_JOIN_BEFORE,
	JOB_OVER_LAG,
	JOB_OVER_TIME,
	JOB_OVER_THEN_WINDOW,
	JOB_UNNEST,
	JOB_ARRAYS,
	JOB_TABLE_ARRAYS,
	JOB_GROUPED_GROUPS,
	JOB_LATEST,
	JOB_LATEST_GROUPS,
	JOB_LATEST_AS_OF,
	JOB_READ_TWICE, /* one topic by two tables */
	JOB_SAME_NAMES, /* topics of one name in two folders */
	JOB_COUNT
};

static const char *const job_name[JOB_COUNT] = {"tumble",
						"hop",
						"session",
						"tumble changes",
						"session changes",
						"sliding",
						"sliding changes",
						"table",
						"two stages",
						"stateless",
						"table read",
						"join table",
						"join global",
						"join ended",
						"global ended",
						"join as of",
						"join tables",
						"join foreign",
						"foreign groups",
						"table groups",
						"join within",
						"left join within",
						"full join within",
						"join, then window",
						"join windows",
						"full join of hops",
						"join after",
						"join before",
						"over lag",
						"over time",
						"over, then window",
						"unnest",
						"arrays, unnested",
						"arrays of a table",
						"groups of groups",
						"latest",
						"latest, grouped",
						"latest as of",
						"read twice",
						"same names"};

/* Rows of a table: few keys, some deleted; step 12: in the time of the input, less: they end before it does. */
static void make_rows(const char *dir, const char *topic, int step, uint64_t seed)
{
	struct weir_topic_writer *w;
	struct weir_diag *dg = NULL;
	check(weir_topic_writer_open(&w, dir, topic, SIM_PARTITIONS, WEIR_CODEC_NONE, &dg), dg);
	for (int i = 0; i < SIM_RECORDS / 4; i++) {
		char value[160], key[16];
		uint64_t r = rng_next(&seed);
		int64_t ts = 1000 + i * step - (int64_t)(r % 40);
		snprintf(key, sizeof key, "k%u", (unsigned)(r >> 20) % 40);
		snprintf(value, sizeof value, "{\"k\":\"%s\",\"name\":\"%.*s\",\"w\":%d,\"ts\":%" PRId64 "}", key,
			 (int)(r >> 50) % 60, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghi",
			 (int)(r % 1000), ts);
		struct weir_out out = {.key = {key, strlen(key)}, .value = {value, strlen(value)}, .timestamp = ts};
		if (r % 7 == 0)
			out.value = (struct weir_slice){NULL, 0};
		check(weir_topic_writer_put(w, (weir_murmur2(key, strlen(key)) & 0x7fffffff) % SIM_PARTITIONS, &out,
					    &dg),
		      dg);
		if (rng_next(&seed) % 40 == 0)
			check(weir_topic_writer_cut(w, &dg), dg);
	}
	check(weir_topic_writer_close(w, &dg), dg);
}

static struct weir_stream *source(struct weir_topology *tp, const char *name, bool direct, const char *in,
				  const char *topic)
{
	char options[512];
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=%s format=json%s", in, topic,
		 direct ? " key.fields=k key.format=raw" : "");
	return weir_event_time(weir_source(tp, name, "k STRING, v BIGINT, s STRING, ts TIMESTAMP_LTZ(3)", options),
			       "ts", 20);
}

/* The joins: of "in" with "rows" or with "in2". */
static struct weir_stream *make_join(struct weir_topology *tp, enum job_kind kind, bool direct, const char *in)
{
	char options[512];
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=rows format=json", in);
	if (kind == JOB_TABLE_GROUPS) {
		struct weir_table *rows = weir_table(tp, "rows", "k STRING, name STRING, w BIGINT", "k", options);
		struct weir_stream *keyed = weir_select(weir_to_stream(rows), "CAST(w % 20 AS STRING) AS k, w");
		return weir_aggregate(weir_key_by(keyed, "k"), "g", "k, COUNT(*) AS n, SUM(w) AS v");
	}
	if (kind == JOB_JOIN_FOREIGN || kind == JOB_FOREIGN_GROUPS) {
		char other[512];
		snprintf(other, sizeof other, "connector=recorded path='%s' topic=rows2 format=json", in);
		struct weir_table *l = weir_table(tp, "rows", "k STRING, name STRING, w BIGINT", "k", options);
		struct weir_table *r = weir_table(tp, "rows2", "k STRING, name STRING, w BIGINT", "k", other);
		struct weir_table *tb =
			weir_join_tables_by(l, r, "j", "CONCAT('k', CAST(w % 12 AS STRING))",
					    kind == JOB_JOIN_FOREIGN ? WEIR_JOIN_LEFT : WEIR_JOIN_INNER);
		struct weir_stream *st =
			weir_select(weir_to_stream(tb), "l.k AS k, l.w AS v, r.name AS name, CHAR_LENGTH(r.name) AS w");
		if (kind == JOB_JOIN_FOREIGN)
			return weir_filter(st, "COALESCE(w, 0) < 50");
		st = weir_select(st, "CAST(w AS STRING) AS k, v");
		return weir_aggregate(weir_key_by(st, "k"), "g", "k, COUNT(*) AS n, SUM(v) AS v");
	}
	if (kind == JOB_JOIN_TABLES) {
		char other[512];
		snprintf(other, sizeof other, "connector=recorded path='%s' topic=rows2 format=json", in);
		struct weir_table *l = weir_table(tp, "rows", "k STRING, name STRING, w BIGINT", "k", options);
		struct weir_table *r = weir_table(tp, "rows2", "k STRING, name STRING, w BIGINT", "k", other);
		return weir_filter(weir_select(weir_to_stream(weir_join_tables(l, r, "j", WEIR_JOIN_FULL)),
					       "COALESCE(l.k, r.k) AS k, l.w AS v, r.name AS name, r.w AS w"),
				   "COALESCE(w, 0) < 800");
	}
	if (kind <= JOB_JOIN_AS_OF) {
		struct weir_table *tb =
			(kind == JOB_JOIN_GLOBAL || kind == JOB_GLOBAL_ENDED ? weir_table_global : weir_table)(
				tp, "rows", "k STRING, name STRING, w BIGINT, ts TIMESTAMP_LTZ(3)", "k", options);
		tb = weir_table_event_time(tb, "ts", 10);
		if (kind == JOB_TABLE_READ)
			return weir_filter(weir_select(weir_to_stream(tb), "k, name, w"), "w > 200");
		struct weir_stream *st = (kind == JOB_JOIN_AS_OF ? weir_join_table_as_of : weir_join_table)(
			source(tp, "src", direct, in, "in"), tb, "j", "k",
			kind == JOB_JOIN_ENDED ? WEIR_JOIN_INNER : WEIR_JOIN_LEFT);
		return weir_select(st, "l.k AS k, v, name, w, s");
	}
	struct weir_stream *l = weir_key_by(source(tp, "l", direct, in, "in"), "k");
	struct weir_stream *r = weir_key_by(source(tp, "r", direct, in, "in2"), "k");
	enum weir_join_kind join = kind == JOB_JOIN_LEFT   ? WEIR_JOIN_LEFT
				   : kind == JOB_JOIN_FULL ? WEIR_JOIN_FULL
							   : WEIR_JOIN_INNER;
	struct weir_stream *st;
	if (kind == JOB_JOIN_WINDOWS)
		st = weir_join_windows(weir_tumble(l, 40), weir_tumble(r, 40), "j", WEIR_JOIN_LEFT);
	else if (kind == JOB_JOIN_HOPS)
		st = weir_join_windows(weir_hop(l, 50, 20), weir_hop(r, 50, 20), "j", WEIR_JOIN_FULL);
	else
		st = weir_join_within(l, r, "j", join,
				      kind == JOB_JOIN_AFTER    ? 0
				      : kind == JOB_JOIN_BEFORE ? 40
								: 5,
				      kind == JOB_JOIN_BEFORE ? 0 : 30);
	st = weir_select(st, "COALESCE(l.k, r.k) AS k, l.v AS v, r.v AS w, r.s AS s");
	if (kind != JOB_JOIN_THEN_WINDOW)
		return st;
	return weir_aggregate(weir_tumble(weir_key_by(st, "k"), 100), "w",
			      "k, window_start, COUNT(*) AS n, SUM(w) AS w");
}

/* Functions over the rows of a key: a chain of rows and sums, a span of time alone, and windows over their result. */
static struct weir_stream *make_over(struct weir_topology *tp, enum job_kind kind, bool direct, const char *in)
{
	struct weir_stream *st = weir_key_by(source(tp, "src", direct, in, "in"), "k");
	if (kind == JOB_OVER_TIME)
		return weir_over(st, "o",
				 "k, v, COUNT(*) OVER (RANGE INTERVAL '0.060' SECOND PRECEDING) AS n, "
				 "MAX(s) OVER (RANGE INTERVAL '0.025' SECOND PRECEDING) AS s");
	st = weir_over(
		st, "o",
		"k, v, LAG(s, 2, 'none') OVER () AS s, SUM(v) OVER () AS total, MIN(s) OVER () AS least, "
		"AVG(v) OVER (ROWS 4 PRECEDING) AS mean, COUNT(s) OVER (RANGE INTERVAL '0.040' SECOND PRECEDING) "
		"AS n");
	if (kind == JOB_OVER_LAG)
		return st;
	return weir_aggregate(weir_tumble(weir_key_by(st, "k"), 100), "w",
			      "k, window_start, COUNT(*) AS n, MAX(total) AS total, MAX(s) AS s");
}

/* Arrays made and taken apart, lists of values that come and go, and a GROUP BY over a GROUP BY. */
static struct weir_stream *make_arrays(struct weir_topology *tp, enum job_kind kind, bool direct, const char *in)
{
	char options[512];
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=rows format=json", in);
	struct weir_stream *st = kind == JOB_TABLE_ARRAYS ? NULL : source(tp, "src", direct, in, "in");
	if (kind == JOB_TABLE_ARRAYS) {
		struct weir_table *rows = weir_table(tp, "rows", "k STRING, name STRING, w BIGINT", "k", options);
		st = weir_select(weir_to_stream(rows), "CAST(w % 20 AS STRING) AS k, w, name");
		return weir_aggregate(
			weir_key_by(st, "k"), "g",
			"k, ARRAY_AGG(w) AS ws, MIN(name) AS least, MAX(w) AS w, COUNT(DISTINCT name) AS d, "
			"FIRST_VALUE(w) AS f, LAST_VALUE(name) AS l");
	}
	if (kind == JOB_GROUPED_GROUPS) {
		st = weir_aggregate(weir_key_by(st, "k"), "g1", "k, COUNT(*) AS n, SUM(v) AS v");
		st = weir_select(st, "CAST(n % 10 AS STRING) AS k, v");
		return weir_aggregate(weir_key_by(st, "k"), "g2", "k, COUNT(*) AS n, SUM(v) AS v, MAX(v) AS w");
	}
	st = weir_aggregate(weir_tumble(weir_key_by(st, "k"), 100), "w",
			    "k, window_start, ARRAY_AGG(s) AS a, ARRAY_AGG(v) AS b");
	if (kind == JOB_ARRAYS)
		return weir_select(weir_unnest(st, "u", "a", "s", 1), "k, s, b");
	st = weir_unnest(st, "u", "b", "v", 0);
	return weir_aggregate(weir_key_by(st, "k"), "t", "k, COUNT(*) AS n, SUM(v) AS v");
}

/* Latest rows, grouped where values leave a group, and as of a time. */
static struct weir_stream *make_latest(struct weir_topology *tp, enum job_kind kind, bool direct, const char *in)
{
	if (kind >= JOB_LATEST_AS_OF) {
		char elsewhere[300];
		snprintf(elsewhere, sizeof elsewhere, "%.250s/../elsewhere", in);
		struct weir_stream *r = source(tp, "r", direct, kind == JOB_SAME_NAMES ? elsewhere : in,
					       kind == JOB_LATEST_AS_OF ? "in2" : "in");
		struct weir_table *tb = weir_latest(weir_key_by(r, "k"), "latest");
		struct weir_stream *st =
			weir_join_table_as_of(source(tp, "l", direct, in, "in"), tb, "j", "k", WEIR_JOIN_LEFT);
		return weir_select(st, "l.k AS k, l.v AS v, r.v AS w, r.s AS s");
	}
	struct weir_stream *st = weir_filter(source(tp, "src", direct, in, "in"), "v % 5 <> 0");
	struct weir_table *tb = weir_latest(weir_key_by(st, "k"), "latest");
	if (kind == JOB_LATEST)
		return weir_select(weir_filter(weir_to_stream(tb), "v > 200"), "k, v, s");
	st = weir_select(weir_to_stream(tb), "CAST(v % 20 AS STRING) AS k, v, s");
	return weir_aggregate(weir_key_by(st, "k"), "g", "k, COUNT(*) AS n, SUM(v) AS total, MAX(s) AS s");
}

static struct weir_topology *make_job(enum job_kind kind, bool direct, const char *in, const char *out)
{
	char options[512];
	struct weir_topology *tp = weir_topology_create();
	struct weir_stream *st = kind >= JOB_LATEST       ? make_latest(tp, kind, direct, in)
				 : kind >= JOB_UNNEST     ? make_arrays(tp, kind, direct, in)
				 : kind >= JOB_OVER_LAG   ? make_over(tp, kind, direct, in)
				 : kind >= JOB_TABLE_READ ? make_join(tp, kind, direct, in)
							  : source(tp, "src", direct, in, "in");
	const char *key = "k";
	const char *aggs = "k, window_start, COUNT(*) AS n, SUM(v) AS total, MAX(s) AS s, COUNT(DISTINCT s) AS d";
	if (kind == JOB_TWO_STAGES)
		st = weir_key_by(weir_select(st, "k, v % 3 AS r, v, ts"), "k, r");
	else if (kind < JOB_STATELESS)
		st = weir_key_by(st, "k");
	switch (kind) {
	case JOB_TUMBLE:
		st = weir_aggregate(weir_tumble(st, 100), "w", aggs);
		break;
	case JOB_HOP:
		st = weir_aggregate(weir_hop(st, 100, 40), "w", aggs);
		break;
	case JOB_SESSION:
		st = weir_aggregate(weir_session(st, 30), "w", aggs);
		break;
	case JOB_TUMBLE_CHANGES:
		st = weir_aggregate(weir_emit(weir_tumble(st, 100), WEIR_EMIT_CHANGES), "w", aggs);
		key = "k;window_start";
		break;
	case JOB_SESSION_CHANGES:
		st = weir_aggregate(weir_emit(weir_session(st, 30), WEIR_EMIT_CHANGES), "w",
				    "k, window_start, window_end, COUNT(*) AS n, SUM(v) AS total");
		key = "k;window_start;window_end";
		break;
	case JOB_SLIDING:
		st = weir_aggregate(weir_sliding(st, 200), "w", aggs);
		break;
	case JOB_SLIDING_CHANGES:
		st = weir_aggregate(weir_emit(weir_sliding(st, 120), WEIR_EMIT_CHANGES), "w", aggs);
		key = "k;window_start";
		break;
	case JOB_TABLE:
		st = weir_filter(weir_aggregate(st, "w", "k, COUNT(*) AS n, SUM(v) AS total, MIN(s) AS s"),
				 "total % 3 <> 0");
		break;
	case JOB_TWO_STAGES:
		st = weir_aggregate(weir_tumble(st, 20), "w1", "k, r, COUNT(*) AS n, SUM(v) AS total");
		st = weir_aggregate(weir_tumble(weir_key_by(st, "r"), 100), "w2",
				    "r AS k, window_start, SUM(n) AS n, SUM(total) AS total");
		break;
	case JOB_STATELESS:
		st = weir_select(weir_filter(st, "v > 200"), "k, v + 1 AS v, s");
		break;
	default:
		break;
	}
	snprintf(options, sizeof options,
		 "connector=recorded path='%s' topic=out format=json key.format=json key.fields=%s", out, key);
	(void)weir_sink(st, "sink", options);
	return tp;
}

/* Nothing is dropped without a counter, and nothing counts twice. */
static void check_counters(const struct weir_core *co, enum job_kind kind)
{
	uint64_t entered = 0, left = 0;
	for (uint32_t i = 0; i < co->worker_count; i++) {
		const struct weir_worker_state *st = co->workers[i]->st;
		const struct weir_counters *both[2] = {&st->decoded, &st->applied_counts};
		for (int k = 0; k < 2; k++) {
			const struct weir_counters *c = both[k];
			entered += c->entered;
			left += c->applied + c->late + c->filtered + (c->rejected - c->rejected_decode);
		}
	}
	if (entered != left)
		fail_msg("%s: %" PRIu64 " rows came, %" PRIu64 " are accounted for", job_name[kind], entered, left);
}

/* One run; cut off after `steps` steps unless it ends before. Returns whether it ended. reference: the one that others
 * are compared with; rows beside a table that has ended are held there as all others are, which they are not in a run
 * that looks out for times in the future. */
static bool run(enum job_kind kind, bool direct, const char *in, const char *out, unsigned workers, uint64_t *seed,
		uint64_t steps, bool reference)
{
	struct weir_core co = {0};
	struct weir_conf *cf = weir_conf_create();
	struct weir_diag *dg = NULL;
	char text[32];
	snprintf(text, sizeof text, "%u", workers);
	check(weir_conf_set(cf, "workers", text, &dg), dg);
	check(weir_conf_set(cf, "application.id", "app", &dg), dg);
	check(weir_conf_set(cf, "slots", "8", &dg), dg);
	/* Rows come again within it, or do not. */
	check(weir_conf_set(cf, "state.ttl", (kind + direct) % 2 ? "700ms" : "0", &dg), dg);
	if (reference && (kind == JOB_JOIN_ENDED || kind == JOB_GLOBAL_ENDED))
		check(weir_conf_set(cf, "time.future.max.ms", "1000000000", &dg), dg);
	check(weir_conf_set(cf, "order.point.records", "200", &dg), dg);
	check(weir_conf_set(cf, "commit.interval.records", "500", &dg), dg);
	snprintf(text, sizeof text, "%u", (unsigned)(1 + rng_next(seed) % 100));
	check(weir_conf_set(cf, "io.poll.records", text, &dg), dg);
	check(weir_core_plan(&co, make_job(kind, direct, in, out), cf, &dg), dg);
	co.streams = weir_xcalloc(co.plan->scan_count + 1, sizeof *co.streams);
	bool live;
	for (uint32_t i = 0; i < co.plan->scan_count; i++)
		check(weir_source_open(&co.streams[i], &co, i, &live, &dg), dg);
	check(weir_core_build(&co, sim_open_log, NULL, sim_now, &dg), dg);
	bool done = co.consumed;
	weir_reader_register();
	for (uint64_t i = 0; i < steps && !done; i++) {
		uint32_t who = (uint32_t)(rng_next(seed) % (co.worker_count + 2));
		bool moved;
		int wait_ms;
		if (who < co.worker_count)
			(void)weir_worker_step(co.workers[who]);
		else if (who == co.worker_count)
			check(weir_feed_step(co.feed, &moved, &wait_ms, &dg), dg);
		else
			check(weir_snapshot_step(co.snapshot, &moved, &dg), dg);
		done = weir_feed_done(co.feed);
	}
	weir_reader_unregister();
	if (done)
		check_counters(&co, kind);
	weir_core_fini(&co);
	return done;
}

static void one_case(enum job_kind kind, uint64_t seed)
{
	char *root = tmpdir_make(), in[512], ref[512], out[512], elsewhere[512];
	uint64_t rng = seed, ref_records, records;
	bool direct = rng_next(&rng) % 2;
	unsigned workers = 1u << (rng_next(&rng) % 3);
	snprintf(in, sizeof in, "%s/in", root);
	snprintf(ref, sizeof ref, "%s/ref", root);
	snprintf(out, sizeof out, "%s/out", root);
	snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", root);
	if (kind == JOB_SAME_NAMES)
		make_input(elsewhere, "in", rng_next(&rng));
	make_input(in, "in", rng_next(&rng));
	make_input(in, "in2", rng_next(&rng));
	make_rows(in, "rows", kind == JOB_JOIN_ENDED || kind == JOB_GLOBAL_ENDED ? 4 : 12, rng_next(&rng));
	make_rows(in, "rows2", 12, rng_next(&rng));
	assert_true(run(kind, direct, in, ref, 1, &rng, UINT64_MAX, true));
	uint64_t want = topic_digest(ref, "out", &ref_records);
	assert_true(ref_records > 0);
	unsigned crashes = 0;
	while (!run(kind, direct, in, out, workers, &rng, crashes < 12 ? 1 + rng_next(&rng) % 4000 : UINT64_MAX, false))
		crashes++;
	uint64_t got = topic_digest(out, "out", &records);
	if (got != want || records != ref_records)
		fail_msg("%s: seed %" PRIu64 " (%s, %s, %u workers, %u crashes): %" PRIu64 " records, wanted %" PRIu64
			 "; digest %s",
			 root, seed, job_name[kind], direct ? "direct" : "local", workers, crashes, records,
			 ref_records, got == want ? "equal" : "differs");
	tmpdir_remove(root);
}

static void test_output_is_the_same_whatever_happens(void **state)
{
	(void)state;
	const char *seed = getenv("WEIR_SIM_SEED"), *cases = getenv("WEIR_SIM_CASES"), *only = getenv("WEIR_SIM_JOB");
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1, count = cases ? strtoull(cases, NULL, 10) : CASES;
	for (uint32_t kind = 0; kind < JOB_COUNT; kind++)
		for (uint64_t i = first; i < first + (seed ? 1 : count); i++)
			if (!only || strcmp(job_name[kind], only) == 0)
				one_case((enum job_kind)kind, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_output_is_the_same_whatever_happens)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
