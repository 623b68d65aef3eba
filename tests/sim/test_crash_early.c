/* test_crash_early.c: crashes where results are out before their epoch commits, as under at_least_once on brokers: the
 * whole engine on one thread over recorded input, its changelog in a recorded log, its results in a map of latest
 * values by key that no crash takes anything out of. Every run has order points at other places, so rows that were
 * shown before a crash may come and go unseen in what is read again. In the end the map must hold what it holds without
 * crashes. WEIR_SIM_SEED runs one seed, WEIR_SIM_CASES sets how many, WEIR_SIM_JOB names a job. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/core/hash.h"
#include "hotpath/weir.h"
#include "io/core.h"
#include "io/recorded/recorded.h"
#include "tests/support/sim.h"
#include "tests/support/tmpdir.h"

enum { SIM_PARTITIONS = 3, SIM_RECORDS = 2400, SIM_TOPICS = 32, MAP_BUCKETS = 1024 };

/* ---- the sink: latest values by key ---- */

struct row {
	struct row *next;
	size_t key_bytes;
	char *text; /* key, then value */
	size_t value_bytes;
};

struct map {
	struct row *bucket[MAP_BUCKETS];
	uint64_t rows, deletes;
	bool used; /* some run has written to it */
};

static void map_put(struct map *m, struct weir_slice key, struct weir_slice value)
{
	struct row **at = &m->bucket[weir_hash(key.data, key.bytes) % MAP_BUCKETS];
	assert_non_null(key.data);
	while (*at && ((*at)->key_bytes != key.bytes || memcmp((*at)->text, key.data, key.bytes) != 0))
		at = &(*at)->next;
	m->deletes += value.data == NULL;
	if (*at) {
		struct row *old = *at;
		*at = old->next;
		free(old->text);
		free(old);
		m->rows--;
	}
	if (value.data == NULL)
		return;
	struct row *r = weir_xcalloc(1, sizeof *r);
	r->key_bytes = key.bytes;
	r->value_bytes = value.bytes;
	r->text = weir_xcalloc(1, key.bytes + value.bytes + 1);
	memcpy(r->text, key.data, key.bytes);
	memcpy(r->text + key.bytes, value.data, value.bytes);
	r->next = *at;
	*at = r;
	m->rows++;
}

static const struct row *map_find(const struct map *m, const struct row *like)
{
	const struct row *r = m->bucket[weir_hash(like->text, like->key_bytes) % MAP_BUCKETS];
	while (r && (r->key_bytes != like->key_bytes || memcmp(r->text, like->text, like->key_bytes) != 0))
		r = r->next;
	return r;
}

/* Rows of a that b has not, or has otherwise. *some: one of them. */
static uint64_t map_beyond(const struct map *a, const struct map *b, const struct row **some)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < MAP_BUCKETS; i++)
		for (const struct row *r = a->bucket[i]; r; r = r->next) {
			const struct row *other = map_find(b, r);
			if (other && strcmp(other->text, r->text) == 0)
				continue;
			*some = r;
			n++;
		}
	return n;
}

static void map_fini(struct map *m)
{
	for (uint32_t i = 0; i < MAP_BUCKETS; i++)
		for (struct row *r = m->bucket[i]; r;) {
			struct row *next = r->next;
			free(r->text);
			free(r);
			r = next;
		}
	memset(m, 0, sizeof *m);
}

/* ---- the log: results to the map at once, the rest to a recorded log ---- */

struct early_log {
	struct weir_log base;
	struct weir_log *inner;
	struct map *map;
	uint32_t count;
	int64_t topic[SIM_TOPICS]; /* number in inner; -1: the map */
};

static enum weir_err early_topic(struct weir_log *lg, const struct weir_topic_spec *spec, uint32_t *topic,
				 uint32_t *partitions, struct weir_diag **dg)
{
	struct early_log *el = (struct early_log *)lg;
	uint32_t inner = 0;
	assert_true(el->count < SIM_TOPICS);
	*topic = el->count++;
	*partitions = SIM_PARTITIONS;
	el->topic[*topic] = -1;
	if (spec->kind == WEIR_TOPIC_RESULT)
		return WEIR_OK;
	enum weir_err err = el->inner->ops->topic(el->inner, spec, &inner, partitions, dg);
	el->topic[*topic] = inner;
	return err;
}

static enum weir_err early_make(struct weir_log *lg, struct weir_diag **dg)
{
	struct early_log *el = (struct early_log *)lg;
	return el->inner->ops->make(el->inner, dg);
}

static enum weir_err early_append(struct weir_log *lg, uint32_t topic, uint32_t partition, const struct weir_out *r,
				  struct weir_diag **dg)
{
	struct early_log *el = (struct early_log *)lg;
	if (el->topic[topic] >= 0)
		return el->inner->ops->append(el->inner, (uint32_t)el->topic[topic], partition, r, dg);
	map_put(el->map, r->key, r->value);
	return WEIR_OK;
}

static enum weir_err early_cut(struct weir_log *lg, struct weir_diag **dg)
{
	struct early_log *el = (struct early_log *)lg;
	return el->inner->ops->cut(el->inner, dg);
}

static enum weir_err early_commit(struct weir_log *lg, uint64_t epoch, struct weir_diag **dg)
{
	struct early_log *el = (struct early_log *)lg;
	return el->inner->ops->commit(el->inner, epoch, dg);
}

static enum weir_err early_read(struct weir_log *lg, uint32_t topic, uint32_t partition,
				enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
				void *ctx, struct weir_diag **dg)
{
	struct early_log *el = (struct early_log *)lg;
	return el->inner->ops->read(el->inner, (uint32_t)el->topic[topic], partition, each, ctx, dg);
}

static uint64_t early_epoch(const struct weir_log *lg)
{
	const struct early_log *el = (const struct early_log *)lg;
	return el->inner->ops->epoch(el->inner);
}

static void early_close(struct weir_log *lg)
{
	struct early_log *el = (struct early_log *)lg;
	el->inner->ops->close(el->inner);
	free(el);
}

static const struct weir_log_ops early_ops = {.topic = early_topic,
					      .make = early_make,
					      .append = early_append,
					      .cut = early_cut,
					      .commit = early_commit,
					      .read = early_read,
					      .epoch = early_epoch,
					      .close = early_close};

static enum weir_err open_log(void *ctx, const char *home, const char *app, struct weir_log **out,
			      struct weir_diag **dg)
{
	struct early_log *el = weir_xcalloc(1, sizeof *el);
	el->base = (struct weir_log){.ops = &early_ops, .early = true};
	el->map = ctx;
	el->base.used = el->map->used;
	el->map->used = true;
	*out = &el->base;
	return weir_recorded_log_open(&el->inner, home, app, dg);
}

/* ---- input ---- */

/* Rows of a table, or records of a stream. Few keys at a time, each soon gone again, and then for good: what is left
 * behind stays. w is such a number, too, so that rows refer to those of the other table. */
static void make_rows(const char *dir, const char *topic, uint64_t seed)
{
	struct weir_topic_writer *w;
	struct weir_diag *dg = NULL;
	check(weir_topic_writer_open(&w, dir, topic, SIM_PARTITIONS, WEIR_CODEC_NONE, &dg), dg);
	for (int i = 0; i < SIM_RECORDS; i++) {
		char value[160], key[16];
		uint64_t r = rng_next(&seed);
		/* Sides of a join meet in the order of their times within an order point. */
		int64_t ts = 1000 + i * 3 - (int64_t)(r % (topic[0] == 'r' ? 400 : 40));
		unsigned base = (unsigned)i / 30;
		snprintf(key, sizeof key, "k%u", base + (unsigned)(r >> 20) % 40);
		snprintf(value, sizeof value, "{\"k\":\"%s\",\"name\":\"%.*s\",\"w\":%u,\"ts\":%" PRId64 "}", key,
			 (int)(r >> 50) % 30, "abcdefghijklmnopqrstuvwxyzabcd", base + (unsigned)(r >> 8) % 40, ts);
		struct weir_out out = {.key = {key, strlen(key)}, .value = {value, strlen(value)}, .timestamp = ts};
		if (topic[0] == 'r' && r % 2 == 0)
			out.value = (struct weir_slice){NULL, 0};
		check(weir_topic_writer_put(w, (weir_murmur2(key, strlen(key)) & 0x7fffffff) % SIM_PARTITIONS, &out,
					    &dg),
		      dg);
		if (rng_next(&seed) % 40 == 0)
			check(weir_topic_writer_cut(w, &dg), dg);
	}
	check(weir_topic_writer_close(w, &dg), dg);
}

/* ---- jobs ---- */

struct sim {
	const char *name;
	const char *key;
	struct weir_stream *(*make)(struct weir_topology *tp, const char *in);
	bool twice; /* the same topic is written by a second query, which has the rows that this one has not */
};

static struct weir_stream *source(struct weir_topology *tp, const char *in, const char *name)
{
	char options[512];
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=stream format=json", in);
	return weir_key_by(
		weir_event_time(weir_source(tp, name, "k STRING, name STRING, w BIGINT, ts TIMESTAMP_LTZ(3)", options),
				"ts", 60),
		"k");
}

static struct weir_table *table(struct weir_topology *tp, const char *in, const char *name)
{
	char options[512];
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=%s format=json", in, name);
	return weir_table(tp, name, "k STRING, name STRING, w BIGINT", "k", options);
}

static struct weir_stream *make_having(struct weir_topology *tp, const char *in)
{
	struct weir_stream *st = weir_aggregate(source(tp, in, "stream"), "g", "k, COUNT(*) AS n, SUM(w) AS w");
	return weir_filter(st, "w % 4 = 0");
}

static struct weir_stream *make_rest(struct weir_topology *tp, const char *in)
{
	struct weir_stream *st = weir_aggregate(source(tp, in, "rest"), "rest", "k, COUNT(*) AS n, SUM(w) AS w");
	return weir_filter(st, "w % 4 <> 0");
}

static struct weir_stream *make_windows_having(struct weir_topology *tp, const char *in)
{
	struct weir_stream *st = weir_emit(weir_tumble(source(tp, in, "stream"), 300), WEIR_EMIT_CHANGES);
	return weir_filter(weir_aggregate(st, "w", "k, window_start, COUNT(*) AS n, SUM(w) AS w"), "w % 4 = 0");
}

static struct weir_stream *make_sessions(struct weir_topology *tp, const char *in)
{
	return weir_aggregate(weir_emit(weir_session(source(tp, in, "stream"), 70), WEIR_EMIT_CHANGES), "s",
			      "k, window_start, window_end, COUNT(*) AS n, SUM(w) AS w");
}

static struct weir_stream *make_sessions_having(struct weir_topology *tp, const char *in)
{
	return weir_filter(make_sessions(tp, in), "w % 3 = 0");
}

static struct weir_stream *make_read(struct weir_topology *tp, const char *in)
{
	return weir_filter(weir_select(weir_to_stream(table(tp, in, "rows")), "k, name, w"), "w % 3 > 0");
}

static struct weir_stream *make_groups(struct weir_topology *tp, const char *in)
{
	struct weir_stream *st = weir_to_stream(table(tp, in, "rows"));
	st = weir_key_by(weir_select(st, "CAST(w AS STRING) AS k, name"), "k");
	return weir_aggregate(st, "g", "k, COUNT(*) AS n, MAX(name) AS name");
}

static struct weir_stream *make_groups_having(struct weir_topology *tp, const char *in)
{
	struct weir_stream *st = weir_to_stream(table(tp, in, "rows"));
	st = weir_key_by(weir_select(st, "CAST(w AS STRING) AS k, w"), "k");
	return weir_filter(weir_aggregate(st, "g", "k, COUNT(*) AS n, SUM(w) AS w"), "n > 1");
}

/* Which counts there are, and how often: a group may come and go by a count that lasts for one record. */
static struct weir_stream *make_groups_of_groups(struct weir_topology *tp, const char *in)
{
	struct weir_stream *st = weir_aggregate(source(tp, in, "stream"), "g1", "k, COUNT(*) AS n, SUM(w) AS w");
	st = weir_key_by(weir_select(st, "CAST(w AS STRING) AS k, n"), "k");
	return weir_aggregate(st, "g2", "k, COUNT(*) AS n, MAX(n) AS m");
}

static struct weir_stream *make_tables(struct weir_topology *tp, const char *in, enum weir_join_kind kind)
{
	struct weir_table *tb = weir_join_tables(table(tp, in, "rows"), table(tp, in, "rows2"), "j", kind);
	return weir_select(weir_to_stream(tb), "COALESCE(l.k, r.k) AS k, l.w AS v, r.w AS w");
}

static struct weir_stream *make_tables_inner(struct weir_topology *tp, const char *in)
{
	return make_tables(tp, in, WEIR_JOIN_INNER);
}

static struct weir_stream *make_tables_left(struct weir_topology *tp, const char *in)
{
	return make_tables(tp, in, WEIR_JOIN_LEFT);
}

static struct weir_stream *make_tables_full(struct weir_topology *tp, const char *in)
{
	return weir_filter(make_tables(tp, in, WEIR_JOIN_FULL), "COALESCE(w, 0) % 3 < 2");
}

static struct weir_stream *make_foreign(struct weir_topology *tp, const char *in, enum weir_join_kind kind)
{
	struct weir_table *tb = weir_join_tables_by(table(tp, in, "rows"), table(tp, in, "rows2"), "j",
						    "CONCAT('k', CAST(w AS STRING))", kind);
	return weir_select(weir_to_stream(tb), "l.k AS k, l.w AS v, r.w AS w");
}

static struct weir_stream *make_foreign_inner(struct weir_topology *tp, const char *in)
{
	return make_foreign(tp, in, WEIR_JOIN_INNER);
}

static struct weir_stream *make_foreign_left(struct weir_topology *tp, const char *in)
{
	return weir_filter(make_foreign(tp, in, WEIR_JOIN_LEFT), "COALESCE(w, 0) % 3 < 2");
}

static struct weir_stream *make_foreign_groups(struct weir_topology *tp, const char *in)
{
	struct weir_stream *st = weir_select(make_foreign(tp, in, WEIR_JOIN_LEFT), "CAST(v AS STRING) AS k, v");
	return weir_aggregate(weir_key_by(st, "k"), "g", "k, COUNT(*) AS n, SUM(v) AS v");
}

/* A table of groups beside a table: what a group of the first did may never be seen by the second. */
static struct weir_stream *make_groups_beside(struct weir_topology *tp, const char *in)
{
	struct weir_stream *st = weir_to_stream(table(tp, in, "rows"));
	st = weir_key_by(weir_select(st, "CONCAT('k', CAST(w AS STRING)) AS k, w"), "k");
	struct weir_table *sums = weir_to_table(weir_aggregate(st, "g", "k, COUNT(*) AS n, SUM(w) AS w"));
	struct weir_table *tb = weir_join_tables(sums, table(tp, in, "rows2"), "j", WEIR_JOIN_INNER);
	return weir_select(weir_to_stream(tb), "l.k AS k, l.n AS n, r.w AS w");
}

static const struct sim sims[] = {
	{"having", "k", make_having, false},
	{"windows having", "k;window_start", make_windows_having, false},
	{"sessions", "k;window_start;window_end", make_sessions, false},
	{"sessions having", "k;window_start;window_end", make_sessions_having, false},
	{"read", "k", make_read, false},
	{"groups", "k", make_groups, false},
	{"groups having", "k", make_groups_having, false},
	{"groups of groups", "k", make_groups_of_groups, false},
	{"tables inner", "k", make_tables_inner, false},
	{"tables left", "k", make_tables_left, false},
	{"tables full", "k", make_tables_full, false},
	{"foreign inner", "k", make_foreign_inner, false},
	{"foreign left", "k", make_foreign_left, false},
	{"foreign groups", "k", make_foreign_groups, false},
	{"groups beside", "k", make_groups_beside, false},
};

/* ---- runs ---- */

/* One run; cut off after `steps` steps unless it ends before. Returns whether it ended. */
static bool run(const struct sim *sm, const char *in, const char *out, struct map *map, unsigned workers,
		uint64_t *seed, uint64_t steps)
{
	struct weir_core co = {0};
	struct weir_conf *cf = weir_conf_create();
	struct weir_topology *tp = weir_topology_create();
	struct weir_diag *dg = NULL;
	char text[512];
	snprintf(text, sizeof text, "connector=recorded path='%s' topic=out format=json key.format=json key.fields=%s",
		 out, sm->key);
	(void)weir_sink(sm->make(tp, in), "sink", text);
	if (sm->twice)
		(void)weir_sink(make_rest(tp, in), "rest", text);
	snprintf(text, sizeof text, "%u", workers);
	check(weir_conf_set(cf, "workers", text, &dg), dg);
	check(weir_conf_set(cf, "application.id", "app", &dg), dg);
	check(weir_conf_set(cf, "slots", "6", &dg), dg);
	snprintf(text, sizeof text, "%u", (unsigned)(1 + rng_next(seed) % 120));
	check(weir_conf_set(cf, "order.point.records", text, &dg), dg);
	check(weir_conf_set(cf, "commit.interval.records", "900", &dg), dg);
	check(weir_conf_set(cf, "emit.interval.ms", "1h", &dg), dg);
	check(weir_core_plan(&co, tp, cf, &dg), dg);
	co.streams = weir_xcalloc(co.plan->scan_count + 1, sizeof *co.streams);
	bool live;
	for (uint32_t i = 0; i < co.plan->scan_count; i++)
		check(weir_source_open(&co.streams[i], &co, i, &live, &dg), dg);
	/* Live, changes wait for their time or a commit, and the clock stands still: only for the end. */
	co.live = rng_next(seed) % 2 != 0;
	check(weir_core_build(&co, open_log, map, sim_now, &dg), dg);
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
	weir_core_fini(&co);
	return done;
}

static void compare(const struct sim *sm, uint64_t seed, unsigned crashes, const struct map *want,
		    const struct map *got)
{
	const struct row *stale = NULL, *missing = NULL;
	uint64_t more = map_beyond(got, want, &stale), less = map_beyond(want, got, &missing);
	if (more || less)
		fail_msg("%s: seed %" PRIu64 ", %u crashes: %" PRIu64 " rows are stale (%s), %" PRIu64 " of %" PRIu64
			 " are missing (%s)",
			 sm->name, seed, crashes, more, stale ? stale->text : "", less, want->rows,
			 missing ? missing->text : "");
}

static void one_case(const struct sim *sm, uint64_t seed)
{
	char *root = tmpdir_make(), in[512], out[512];
	uint64_t rng = seed;
	unsigned workers = 1u << (rng_next(&rng) % 3), crashes = 0;
	struct map want = {0}, calm = {0}, got = {0};
	snprintf(in, sizeof in, "%s/in", root);
	make_rows(in, "stream", rng_next(&rng));
	make_rows(in, "rows", rng_next(&rng));
	make_rows(in, "rows2", rng_next(&rng));
	snprintf(out, sizeof out, "%s/want", root);
	assert_true(run(sm, in, out, &want, 1, &rng, UINT64_MAX));
	assert_true(want.rows > 0);
	snprintf(out, sizeof out, "%s/calm", root);
	assert_true(run(sm, in, out, &calm, workers, &rng, UINT64_MAX));
	compare(sm, seed, 0, &want, &calm);
	snprintf(out, sizeof out, "%s/got", root);
	while (!run(sm, in, out, &got, workers, &rng, crashes < 30 ? 1 + rng_next(&rng) % 1500 : UINT64_MAX))
		crashes++;
	compare(sm, seed, crashes, &want, &got);
	map_fini(&want);
	map_fini(&calm);
	map_fini(&got);
	tmpdir_remove(root);
}

static void test_no_row_stays_that_nobody_takes_back(void **state)
{
	(void)state;
	const char *seed = getenv("WEIR_SIM_SEED"), *cases = getenv("WEIR_SIM_CASES"), *job = getenv("WEIR_SIM_JOB");
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	for (size_t k = 0; k < WEIR_COUNT_OF(sims); k++) {
		/* Rows of one key come from several slots, in an order of their own: it takes more to have them all. */
		uint64_t few = sims[k].make == make_foreign_groups ? 24 : 6;
		uint64_t last = seed ? first : cases ? strtoull(cases, NULL, 10) : few;
		for (uint64_t i = first; i <= last && (!job || strcmp(job, sims[k].name) == 0); i++)
			one_case(&sims[k], i);
	}
}

/* One run, in doubt from its start or not, with order points at the same places. */
static struct map run_whole(const struct sim *sm, const char *root, const char *in, bool in_doubt)
{
	char out[512];
	uint64_t rng = 7;
	struct map map = {.used = in_doubt};
	snprintf(out, sizeof out, "%s/%s %s", root, sm->name, in_doubt ? "doubt" : "calm");
	assert_true(run(sm, in, out, &map, 1, &rng, UINT64_MAX));
	return map;
}

/* Deletes too many come where they find nothing, and nowhere else. */
static void test_deletes_too_many_do_no_harm(void **state)
{
	(void)state;
	static const struct sim harmed[] = {
		{"a key without the window", "k", make_windows_having, false},
		{"two queries, one topic", "k", make_having, true},
	};
	char *root = tmpdir_make(), in[512];
	snprintf(in, sizeof in, "%s/in", root);
	make_rows(in, "stream", 1);
	make_rows(in, "rows", 2);
	make_rows(in, "rows2", 3);
	for (size_t k = 0; k < WEIR_COUNT_OF(harmed); k++) {
		struct map calm = run_whole(&harmed[k], root, in, false), doubt = run_whole(&harmed[k], root, in, true);
		compare(&harmed[k], 7, 0, &calm, &doubt);
		assert_int_equal(doubt.deletes, calm.deletes);
		map_fini(&calm);
		map_fini(&doubt);
	}
	for (size_t k = 0; k < WEIR_COUNT_OF(sims); k++) {
		struct map calm = run_whole(&sims[k], root, in, false), doubt = run_whole(&sims[k], root, in, true);
		compare(&sims[k], 7, 0, &calm, &doubt);
		if (doubt.deletes <= calm.deletes)
			fail_msg("%s: no delete too many", sims[k].name);
		map_fini(&calm);
		map_fini(&doubt);
	}
	tmpdir_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_row_stays_that_nobody_takes_back),
					   cmocka_unit_test(test_deletes_too_many_do_no_harm)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
