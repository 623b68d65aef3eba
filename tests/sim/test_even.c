/* test_even.c: rows of a stream meet a table as it stood at their time, whatever comes how late: the whole engine,
 * live, on one thread with a clock of its own, over logs in memory of any density (bursts, stretches without a record,
 * equal times), whose records arrive when they like, in pieces of any size, to bounds or not, and which say at times
 * that they have nothing, or have more and not here. Order points are small and often, or neither; the process stands
 * still for a minute at times, is paused, or stopped and started again. WEIR_SIM_SEED runs one seed, WEIR_SIM_CASES
 * sets how many. */
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

/* Sanitizers take many times as long. */
#ifdef WEIR_DEBUG
enum { CASES = 60 };
#else
enum { CASES = 600 };
#endif
enum { PARTITIONS_MAX = 3, CLICKS_MAX = 400, USERS_MAX = 20000, START = 1000000, TEXT = 40, STEPS_MAX = 4000000 };
enum side { CLICKS, USERS };

struct row {
	int64_t ts, written_us, here_us; /* when it stands in the log, and when it has come */
	uint32_t number, key, next;      /* next: of the key, in its partition */
	char name[16 + WEIR_PAYLOAD_PAD], value[TEXT + WEIR_PAYLOAD_PAD];
};

struct lane {
	struct row *rows;
	uint32_t count, taken, pieces_max;
	uint64_t rng;
};

/* What a case is. */
struct shape {
	uint32_t partitions, keys, workers;
	int64_t span_ms, tie_ms;
	bool bounded;  /* all of it is in the logs from the beginning */
	bool flickers; /* a log may say that it has more when it has not, or that nobody knows */
	bool restarts, pauses;
	bool freezes;
	int64_t late_us; /* to come, at most */
	char point_records[16], point_ms[16];
	bool local;
};

struct fake {
	struct weir_stream_log sl;
	enum side side;
};

static struct shape shape;
static struct lane lane[2][PARTITIONS_MAX];
static struct fake fake[2];
static const char *const topics[2] = {"clicks", "users"};
static struct row *row_of_click[CLICKS_MAX];
static uint32_t part_of_click[CLICKS_MAX];
static uint32_t clicks, users;

/* ---- logs ---- */

static struct lane *lane_of(const struct weir_stream_log *sl, uint32_t p)
{
	return &lane[((const struct fake *)sl)->side][p];
}

static uint32_t fake_partitions(const struct weir_stream_log *sl)
{
	(void)sl;
	return shape.partitions;
}

static uint32_t here(const struct lane *ln)
{
	uint32_t n = ln->taken;
	while (n < ln->count && n - ln->taken < ln->pieces_max && ln->rows[n].here_us <= sim_clock_us)
		n++;
	return n - ln->taken;
}

static enum weir_poll fake_peek(struct weir_stream_log *sl, uint32_t p, int64_t *first_ts, struct weir_diag **dg)
{
	struct lane *ln = lane_of(sl, p);
	(void)dg;
	sim_clock_us += (int64_t)(rng_next(&ln->rng) % 40);
	bool flickers = shape.flickers && rng_next(&ln->rng) % 8 == 0;
	if (flickers)
		return WEIR_POLL_LATER;
	if (here(ln) != 0) {
		*first_ts = ln->rows[ln->taken].ts;
		return WEIR_POLL_UNIT;
	}
	if (ln->taken == ln->count && shape.bounded)
		return WEIR_POLL_BOUND;
	return ln->taken < ln->count && ln->rows[ln->taken].written_us <= sim_clock_us ? WEIR_POLL_LATER
										       : WEIR_POLL_EMPTY;
}

static enum weir_err fake_take(struct weir_stream_log *sl, uint32_t p, struct weir_unit **out, struct weir_diag **dg)
{
	struct lane *ln = lane_of(sl, p);
	uint32_t n = here(ln);
	(void)dg;
	assert_true(n > 0);
	struct weir_unit *u = weir_xcalloc(1, sizeof *u);
	*u = (struct weir_unit){
		.partition = p, .count = n, .records = weir_xcalloc(n, sizeof *u->records), .memory = sizeof *u};
	for (uint32_t i = 0; i < n; i++, ln->taken++) {
		const struct row *r = &ln->rows[ln->taken];
		u->records[i] = (struct weir_record){.key = (const uint8_t *)r->name,
						     .key_bytes = (uint32_t)strlen(r->name),
						     .value = (const uint8_t *)r->value,
						     .value_bytes = (uint32_t)strlen(r->value),
						     .offset = ln->taken,
						     .timestamp = r->ts};
		u->bytes += u->records[i].key_bytes + u->records[i].value_bytes;
		u->memory += 100 + TEXT;
	}
	u->next_offset = ln->taken;
	ln->pieces_max = 1 + (uint32_t)(rng_next(&ln->rng) % (rng_next(&ln->rng) % 4 == 0 ? 8 : 1024));
	*out = u;
	return WEIR_OK;
}

static void fake_release(struct weir_stream_log *sl, struct weir_unit *u)
{
	(void)sl;
	free(u->records);
	free(u);
}

static enum weir_err fake_seek(struct weir_stream_log *sl, uint32_t p, int64_t offset, struct weir_diag **dg)
{
	(void)dg;
	lane_of(sl, p)->taken = (uint32_t)offset;
	return WEIR_OK;
}

static void fake_range(struct weir_stream_log *sl, uint32_t p, int64_t *first, int64_t *end)
{
	*first = 0;
	*end = lane_of(sl, p)->count;
}

static int fake_event_fd(const struct weir_stream_log *sl)
{
	(void)sl;
	return -1;
}

static const char *fake_topic(const struct weir_stream_log *sl, uint32_t p, uint32_t *partition)
{
	*partition = p;
	return topics[((const struct fake *)sl)->side];
}

static void fake_close(struct weir_stream_log *sl)
{
	(void)sl;
}

static int64_t fake_last_ts(const struct weir_stream_log *sl, uint32_t p)
{
	const struct lane *ln = lane_of(sl, p);
	assert_true(here(ln) > 0);
	return ln->rows[ln->taken + here(ln) - 1].ts;
}

static const struct weir_stream_ops fake_ops = {.partitions = fake_partitions,
						.peek = fake_peek,
						.take = fake_take,
						.release = fake_release,
						.seek = fake_seek,
						.range = fake_range,
						.event_fd = fake_event_fd,
						.topic = fake_topic,
						.close = fake_close,
						.last_ts = fake_last_ts};

/* ---- rows ---- */

/* Times of count rows: stretches of one density each, from a row a ms and more to next to none. */
static void make_times(int64_t *ts, uint32_t count, uint64_t *rng)
{
	int64_t at = 0, end = shape.span_ms;
	for (uint32_t i = 0; i < count;) {
		uint32_t stretch = 1 + (uint32_t)(rng_next(rng) % (count / 3 + 1));
		bool burst = rng_next(rng) % 2;
		int64_t step_us = burst ? (int64_t)(rng_next(rng) % 300) : (end - at) * 1000 / (count - i);
		int64_t from_us = at * 1000;
		for (uint32_t k = 0; k < stretch && i < count; k++, i++) {
			from_us += step_us != 0 ? (int64_t)(rng_next(rng) % (uint64_t)(2 * step_us + 1)) : 0;
			at = weir_max_i64(at, weir_min_i64(from_us / 1000, end));
			ts[i] = START + at - at % shape.tie_ms;
		}
	}
}

/* When it is written, and when it has come: in pieces, each of which is late as it likes. */
static void make_arrival(struct lane *ln, uint64_t *rng)
{
	int64_t written = 0, come = 0, late = 0;
	uint32_t piece = 0;
	for (uint32_t i = 0; i < ln->count; i++) {
		struct row *r = &ln->rows[i];
		if (piece-- == 0) {
			piece = (uint32_t)(rng_next(rng) % 1500);
			late = (int64_t)(rng_next(rng) % (uint64_t)(shape.late_us + 1));
		}
		if (!shape.bounded)
			written = weir_max_i64(written, START + (r->ts - START) * 20 + (int64_t)(rng_next(rng) % 2000));
		come = weir_max_i64(come, shape.bounded ? come + late / 1000 : written + late);
		r->written_us = written;
		r->here_us = come;
	}
}

static void make_rows(enum side side, uint32_t count, uint64_t *rng)
{
	int64_t *ts = weir_xcalloc(count, sizeof *ts);
	make_times(ts, count, rng);
	for (uint32_t p = 0; p < shape.partitions; p++)
		lane[side][p] = (struct lane){.rows = weir_xcalloc(count, sizeof(struct row)), .pieces_max = 1024};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t key = (uint32_t)(rng_next(rng) % shape.keys);
		struct lane *ln = &lane[side][key % shape.partitions];
		struct row *r = &ln->rows[ln->count++];
		*r = (struct row){.ts = ts[i], .number = i, .key = key};
		if (shape.restarts || shape.pauses)
			r->ts += r->ts + side;
		snprintf(r->name, sizeof r->name, "k%u", key);
		snprintf(r->value, TEXT, "{\"k\":\"k%u\",\"v\":%u}", key, i);
		if (side == CLICKS) {
			row_of_click[i] = r;
			part_of_click[i] = key % shape.partitions;
		}
	}
	for (uint32_t p = 0; p < shape.partitions; p++) {
		lane[side][p].rng = rng_next(rng);
		make_arrival(&lane[side][p], rng);
	}
	free(ts);
}

static void make_case(uint64_t *rng)
{
	static const char *const records[] = {"3", "40", "700", "5000", "65536"}, *const ms[] = {"1", "10", "100"};
	shape = (struct shape){.partitions = 1 + (uint32_t)(rng_next(rng) % PARTITIONS_MAX),
			       .workers = 1 + (uint32_t)(rng_next(rng) % 2),
			       .bounded = rng_next(rng) % 2,
			       .span_ms = 1000 + (int64_t)(rng_next(rng) % 100000),
			       .tie_ms = rng_next(rng) % 3 == 0 ? 1 + (int64_t)(rng_next(rng) % 300) : 1,
			       .late_us = rng_next(rng) % 3 == 0 ? 0 : (int64_t)(rng_next(rng) % 300000),
			       .freezes = rng_next(rng) % 2,
			       .local = rng_next(rng) % 3 == 0};
	uint64_t more = rng_next(rng) % 4;
	shape.flickers = more == 1;
	/* Stopping and pausing wait for nothing that is not here: so no log may be silent, and no side have equal times
	 * with the other. */
	shape.restarts = more == 2 && shape.bounded;
	shape.pauses = more == 3 && shape.bounded;
	snprintf(shape.point_records, sizeof shape.point_records, "%s",
		 records[rng_next(rng) % WEIR_COUNT_OF(records)]);
	snprintf(shape.point_ms, sizeof shape.point_ms, "%s", ms[rng_next(rng) % WEIR_COUNT_OF(ms)]);
	clicks = 1 + (uint32_t)(rng_next(rng) % CLICKS_MAX);
	users = 1 + (uint32_t)(rng_next(rng) % (rng_next(rng) % 3 == 0 ? USERS_MAX : 3000));
	shape.keys = 1 + (uint32_t)(rng_next(rng) % (users / 4 + 3));
	make_rows(CLICKS, clicks, rng);
	make_rows(USERS, users, rng);
}

/* ---- the engine ---- */

static void plan(struct weir_core *co, const char *out)
{
	struct weir_diag *dg = NULL;
	struct weir_topology *tp = weir_topology_create();
	struct weir_conf *cf = weir_conf_create();
	char options[512], count[16];
	snprintf(options, sizeof options,
		 "connector=recorded path='%s' topic=clicks format=json key.fields=k key.format=raw", out);
	struct weir_stream *st = weir_source(tp, "clicks", "k STRING, v BIGINT", options);
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=users format=json", out);
	struct weir_table *tb = weir_table(tp, "users", "k STRING, v BIGINT", "k", options);
	st = weir_select(weir_join_table(st, tb, "j", "k", WEIR_JOIN_LEFT), "l.v AS c, COALESCE(r.v, -1) AS v");
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=out format=json", out);
	(void)weir_sink(st, "sink", options);
	snprintf(count, sizeof count, "%u", shape.workers);
	const char *const set[][2] = {{"application.id", "even"},
				      {"workers", count},
				      {"join.wait.ms", "10s"},
				      {"emit.interval.ms", shape.point_ms},
				      {"order.point.records", shape.point_records},
				      {"exchange", shape.local ? "local" : "auto"}};
	for (size_t i = 0; i < WEIR_COUNT_OF(set); i++)
		check(weir_conf_set(cf, set[i][0], set[i][1], &dg), dg);
	check(weir_core_plan(co, tp, cf, &dg), dg);
	co->streams = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->streams);
	for (uint32_t i = 0; i < co->plan->scan_count; i++) {
		enum side side = strcmp(co->plan->scans[i].name, "users") == 0 ? USERS : CLICKS;
		fake[side] = (struct fake){{&fake_ops}, side};
		co->streams[i] = &fake[side].sl;
		for (uint32_t p = 0; p < shape.partitions; p++)
			lane[side][p].taken = 0; /* unless an earlier run has come further */
	}
	co->live = true;
	co->endless = !shape.bounded;
	check(weir_core_build(co, sim_open_log, NULL, sim_now, &dg), dg);
}

/* Runs to the end, or, stop_us later, to a stop. */
static void run(const char *out, uint64_t seed, int64_t stop_us, uint64_t *rng)
{
	struct weir_core co = {0};
	struct weir_diag *dg = NULL;
	bool stopped = false, paused = false;
	uint32_t lazy = 1 + (uint32_t)(rng_next(rng) % 6);
	plan(&co, out);
	stop_us += sim_clock_us;
	weir_reader_register();
	for (uint32_t i = 0; !co.consumed && !weir_feed_done(co.feed); i++) {
		bool moved;
		int wait;
		if (i == STEPS_MAX)
			fail_msg("seed %" PRIu64 ": no end", seed);
		check(weir_feed_step(co.feed, &moved, &wait, &dg), dg);
		for (uint32_t w = 0; w < co.worker_count; w++)
			if (rng_next(rng) % lazy == 0)
				(void)weir_worker_step(co.workers[w]);
		check(weir_snapshot_step(co.snapshot, &moved, &dg), dg);
		uint64_t x = rng_next(rng) % 4096;
		if (x < 32)
			sim_clock_us += (int64_t)(rng_next(rng) % 20000);
		else if (x == 32 && shape.freezes)
			sim_clock_us += 60000000;
		if (x >= 4000 && shape.pauses)
			weir_feed_pause(co.feed, paused = !paused && x < 4060);
		stopped |= (!shape.bounded && weir_feed_records(co.feed) == clicks + users) ||
			   (stop_us > 0 && sim_clock_us >= stop_us);
		if (stopped)
			weir_feed_stop(co.feed);
	}
	weir_reader_unregister();
	weir_core_fini(&co);
}

/* ---- what came of it ---- */

/* Which rows of the table a click may have met: it must have those that were written before it and are no later, and
 * none that are later and were not written before it. */
static void judge(uint64_t seed, uint32_t click, int64_t met)
{
	const struct row *c = row_of_click[click];
	const struct lane *ln = &lane[USERS][part_of_click[click]];
	int64_t least = -1, most = -1;
	for (uint32_t i = 0; i < ln->count; i++) {
		const struct row *u = &ln->rows[i];
		if (u->key != c->key)
			continue;
		if (u->ts <= c->ts && u->written_us <= c->written_us)
			least = u->number;
		if (u->ts <= c->ts || u->written_us < c->written_us)
			most = u->number;
	}
	if (met < least || met > most)
		fail_msg("seed %" PRIu64 ": click %u of %" PRId64 " ms met row %" PRId64 " of its key, not %" PRId64
			 " to %" PRId64,
			 seed, click, c->ts - START, met, least, most);
}

static void judge_all(uint64_t seed, const char *out)
{
	struct weir_stream_log *sl;
	struct weir_diag *dg = NULL;
	const char *topic = "out";
	static bool seen[CLICKS_MAX];
	uint32_t count = 0;
	struct weir_recorded_source_spec spec = {
		.path = out, .topics = &topic, .topic_count = 1, .bounded = WEIR_STARTUP_LATEST};
	memset(seen, 0, sizeof seen);
	check(weir_recorded_source_open(&sl, &spec, &dg), dg);
	for (uint32_t p = 0; p < sl->ops->partitions(sl); p++) {
		int64_t ts;
		while (sl->ops->peek(sl, p, &ts, &dg) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			check(sl->ops->take(sl, p, &u, &dg), dg);
			for (uint32_t i = 0; i < u->count; i++, count++) {
				char text[TEXT + 1] = {0};
				uint32_t click;
				int64_t met;
				assert_true(u->records[i].value_bytes < sizeof text);
				memcpy(text, u->records[i].value, u->records[i].value_bytes);
				assert_int_equal(sscanf(text, "{\"c\":%u,\"v\":%" SCNd64 "}", &click, &met), 2);
				assert_true(click < clicks && !seen[click]);
				seen[click] = true;
				judge(seed, click, met);
			}
			sl->ops->release(sl, u);
		}
	}
	sl->ops->close(sl);
	if (count != clicks)
		fail_msg("seed %" PRIu64 ": %u rows of %u clicks", seed, count, clicks);
}

static void even_case(uint64_t seed)
{
	uint64_t rng = seed;
	char *out = tmpdir_make();
	make_case(&rng);
	sim_clock_us = shape.bounded ? 1 : START;
	sim_step_us = 1 + (int64_t)(rng_next(&rng) % 20);
	for (uint32_t stops = shape.restarts ? 1 + (uint32_t)(rng_next(&rng) % 3) : 0; stops > 0; stops--)
		run(out, seed, 1 + (int64_t)(rng_next(&rng) % 100000), &rng);
	run(out, seed, INT64_MIN / 2, &rng);
	judge_all(seed, out);
	for (uint32_t s = CLICKS; s <= USERS; s++)
		for (uint32_t p = 0; p < shape.partitions; p++)
			free(lane[s][p].rows);
	tmpdir_remove(out);
}

static void test_rows_meet_the_table_as_it_stood(void **state)
{
	(void)state;
	const char *seed = getenv("WEIR_SIM_SEED"), *cases = getenv("WEIR_SIM_CASES");
	if (seed) {
		even_case(strtoull(seed, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= (cases ? strtoull(cases, NULL, 10) : CASES); i++)
		even_case(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_meet_the_table_as_it_stood)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
