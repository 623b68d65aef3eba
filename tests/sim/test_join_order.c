/* test_join_order.c: the whole engine on inner joins of two keyed recorded topics, against a naive twin that knows
 * results and the order they leave in (semantics.md section 5, design.md section 3): hundreds of rows of a slot meet at
 * one order point, in order or not, of equal times, late, of keys that are NULL, short or very long, mostly shared by
 * many rows or mostly by two, of both sides' bounds. Topics grow between runs, so that buffers come back from the
 * changelog in the middle. WEIR_SIM_SEED runs one seed, WEIR_SIM_CASES sets how many. */
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

#include "hotpath/core/base.h"
#include "tests/support/sim.h"
#include "tests/support/tmpdir.h"

/* Sanitizers take many times as long. */
#ifdef WEIR_DEBUG
enum { CASES = 12 };
#else
enum { CASES = 200 };
#endif
enum { PARTITIONS_MAX = 4, ROWS_MAX = 3000, KEY_LONG = 70000, START = 10000000, RESULTS_MAX = 400000 };

struct row {
	int64_t ts;
	uint32_t number;
	uint32_t key;
	bool null_key;
	bool filtered; /* by what stands before the join */
	bool cut;      /* the first one of a stored batch */
};

/* A source partition. */
struct lane {
	struct row row[ROWS_MAX];
	uint32_t count;
	uint32_t read;    /* of them, by the engine */
	uint32_t applied; /* up to the last order point */
	int64_t time;
};

struct result {
	int64_t ts;
	uint32_t number[2];
};

/* Rows of both sides that have had their turn. */
struct buffered {
	const struct row *row;
	uint32_t side;
};

struct slot {
	struct buffered buffered[2 * ROWS_MAX];
	uint32_t count;
	int64_t task;
	struct result *result;
	uint32_t result_count;
};

struct twin {
	uint64_t seed;
	uint32_t partitions, keys, rows, point_records;
	int64_t before, after, grace;
	bool max, nulls, filter, long_key;
	bool once; /* a key is mostly that of one row a side; results have it */
	uint32_t row_key[ROWS_MAX];
	struct lane lane[2][PARTITIONS_MAX];
	struct slot slot[PARTITIONS_MAX];
	uint64_t late;
	uint32_t since_point;
};

static int64_t keep(const struct twin *tw)
{
	return weir_max_i64(tw->before, 0) + weir_max_i64(tw->after, 0) + tw->grace;
}

/* ---- rows ---- */

static const char *key_of(const struct twin *tw, uint32_t key)
{
	static char text[KEY_LONG + 64];
	if (tw->long_key && key == 1) {
		memset(text, 'x', KEY_LONG);
		text[KEY_LONG] = 0;
		return text;
	}
	snprintf(text, sizeof text, "k%u%.*s", key, (int)(key % 23), "-and-some-more-letters.");
	return text;
}

/* The members behind v of a row's value, or of a result's. */
static void print_members(char *to, size_t room, const struct twin *tw, uint32_t number, const char *s, const char *m)
{
	char text[80] = "null", amount[32] = "null";
	if (!tw->nulls || number % 5 != 0)
		snprintf(text, sizeof text, "\"s%u%.*s\"", number, (int)(number % 29), "abcdefghijklmnopqrstuvwxyz123");
	if (!tw->nulls || number % 3 != 0)
		snprintf(amount, sizeof amount, "%u.%02u", number, number % 100);
	snprintf(to, room, "\"%s\":%s,\"%s\":%s", s, text, m, amount);
}

static bool is_filtered(const struct twin *tw, uint32_t side, uint32_t number)
{
	return tw->filter && side == 0 && number % 7 == 3;
}

struct shape {
	int64_t step, disorder, shift[2];
	uint32_t ties, near; /* near: both sides' rows of a key come close together */
	uint32_t share;      /* of rows, in 16 that are of the left side */
	int64_t next;
};

static void put(struct twin *tw, struct weir_topic_writer *const w[2], uint32_t number, const struct shape *sh,
		uint64_t *rng)
{
	uint64_t x = rng_next(rng), y = rng_next(rng);
	uint32_t side = x % 16 >= sh->share;
	struct row r = {.number = number};
	char value[256], members[160];
	r.key = (uint32_t)(sh->near ? number / 4 + (x >> 8) % sh->near : x >> 8) % tw->keys;
	if (tw->once) {
		side = (number ^ (number / 2 * UINT32_C(2654435761) >> 31)) & 1;
		r.key = (x >> 48) % 64 == 0 ? r.key : number / 2;
	}
	tw->row_key[number] = r.key;
	r.null_key = tw->nulls && (x >> 40) % 30 == 0;
	r.filtered = is_filtered(tw, side, number);
	r.ts = START + number * sh->step + sh->shift[side];
	if (sh->disorder > 0 && y % 4 != 0)
		r.ts -= (int64_t)((y >> 8) % (uint64_t)sh->disorder);
	if (y % 64 == 9)
		r.ts -= keep(tw) + (int64_t)((y >> 8) % 5000); /* late, mostly */
	r.ts -= sh->ties ? r.ts % sh->ties : 0;
	r.ts = weir_max_i64(r.ts, 1);
	const char *key = key_of(tw, r.key);
	uint32_t key_bytes = (uint32_t)strlen(key);
	uint32_t p =
		r.null_key ? number % tw->partitions : (weir_murmur2(key, key_bytes) & 0x7fffffff) % tw->partitions;
	bool alone = !r.null_key && key_bytes >= KEY_LONG; /* a stored batch ends at 64 KiB anyway */
	struct lane *ln = &tw->lane[side][p];
	print_members(members, sizeof members, tw, number, "s", "m");
	snprintf(value, sizeof value, "{\"v\":%u,%s,\"ts\":%" PRId64 "}", number, members, r.ts);
	struct weir_out out = {.key = {r.null_key ? NULL : key, r.null_key ? 0 : key_bytes},
			       .value = {value, strlen(value)},
			       .timestamp = r.ts};
	static bool cut[2];
	if (number == 0)
		cut[0] = cut[1] = true;
	if (alone || cut[side] || (y >> 32) % 100 == 0) {
		assert_int_equal(weir_topic_writer_cut(w[side], NULL), WEIR_OK);
		for (uint32_t i = 0; i < tw->partitions; i++)
			tw->lane[side][i].row[tw->lane[side][i].count].cut = true;
	}
	cut[side] = alone;
	r.cut = ln->row[ln->count].cut || ln->count == 0;
	assert_int_equal(weir_topic_writer_put(w[side], p, &out, NULL), WEIR_OK);
	ln->row[ln->count++] = r;
}

/* ---- the twin ---- */

static void apply(struct twin *tw, struct slot *sl, uint32_t side, const struct row *r)
{
	bool known = sl->task != INT64_MIN;
	struct buffered *own = &sl->buffered[sl->count];
	int64_t last = INT64_MIN; /* pairs by time, then by turn */
	if (r->filtered)
		return;
	if (known && sl->task > r->ts + keep(tw)) {
		tw->late++;
		return;
	}
	if (r->null_key)
		return;
	int64_t back = side == 0 ? tw->before : tw->after, ahead = side == 0 ? tw->after : tw->before;
	for (;;) {
		int64_t next = INT64_MAX;
		for (uint32_t pass = 0; pass < 2; pass++) {
			for (uint32_t i = 0; i < sl->count; i++) {
				const struct row *o = sl->buffered[i].row;
				if (sl->buffered[i].side == side || o->key != r->key || o->ts < r->ts - back ||
				    o->ts > r->ts + ahead || (known && sl->task > o->ts + keep(tw)))
					continue;
				if (pass == 0 && o->ts > last)
					next = weir_min_i64(next, o->ts);
				if (pass == 0 || o->ts != next)
					continue;
				assert_true(sl->result_count < RESULTS_MAX);
				struct result *re = &sl->result[sl->result_count++];
				re->ts = weir_max_i64(o->ts, r->ts);
				re->number[side] = r->number;
				re->number[1 - side] = o->number;
			}
		}
		if (next == INT64_MAX)
			break;
		last = next;
	}
	*own = (struct buffered){r, side};
	sl->count++;
}

/* Rows read since the last order point take their turns: by the largest time so far of their partition, left before
 * right. */
static void order_point(struct twin *tw)
{
	for (uint32_t p = 0; p < tw->partitions; p++) {
		int64_t key[2] = {INT64_MIN, INT64_MIN};
		struct slot *sl = &tw->slot[p];
		for (;;) {
			int64_t next[2] = {INT64_MAX, INT64_MAX};
			for (uint32_t s = 0; s < 2; s++) {
				const struct lane *ln = &tw->lane[s][p];
				if (ln->applied < ln->read)
					next[s] = weir_max_i64(key[s], ln->row[ln->applied].ts);
			}
			uint32_t side = next[1] < next[0];
			if (next[side] == INT64_MAX)
				break;
			struct lane *ln = &tw->lane[side][p];
			const struct row *r = &ln->row[ln->applied++];
			key[side] = next[side];
			ln->time = weir_max_i64(ln->time, key[side]);
			int64_t a = tw->lane[0][p].time, b = tw->lane[1][p].time;
			sl->task = weir_max_i64(sl->task, tw->max ? weir_max_i64(a, b) : weir_min_i64(a, b));
			apply(tw, sl, side, r);
		}
	}
	tw->since_point = 0;
}

/* All there is: of the partitions' next stored batches the one whose first time is the smallest. */
static void read_all(struct twin *tw)
{
	for (;;) {
		struct lane *first = NULL;
		for (uint32_t s = 0; s < 2; s++) {
			for (uint32_t p = 0; p < tw->partitions; p++) {
				struct lane *ln = &tw->lane[s][p];
				if (ln->read < ln->count &&
				    (first == NULL || ln->row[ln->read].ts < first->row[first->read].ts))
					first = ln;
			}
		}
		if (first == NULL)
			break;
		do {
			first->read++;
			if (++tw->since_point == tw->point_records)
				order_point(tw);
		} while (first->read < first->count && !first->row[first->read].cut);
	}
	order_point(tw);
}

/* ---- the engine ---- */

static struct weir_stream *source(const struct twin *tw, struct weir_topology *tp, const char *in, const char *topic)
{
	char options[512];
	snprintf(options, sizeof options,
		 "connector=recorded path='%s' topic=%s format=json key.fields=k key.format=raw "
		 "value.fields-include=EXCEPT_KEY",
		 in, topic);
	struct weir_stream *st =
		weir_source(tp, topic, "k STRING, v BIGINT, s STRING, m DECIMAL(12,2), ts BIGINT", options);
	st = weir_event_time(st, "ts", tw->grace);
	return tw->filter && topic[0] == 'l' ? weir_filter(st, "v % 7 <> 3") : st;
}

/* Returns how many rows were late. */
static uint64_t run(const struct twin *tw, const char *in, const char *out, bool crossed, uint32_t workers)
{
	struct weir_topology *tp = weir_topology_create();
	struct weir_conf *cf = weir_conf_create();
	struct weir_engine *en = NULL;
	struct weir_diag *dg = NULL;
	struct weir_stats stats;
	char options[512], points[16], count[16];
	snprintf(points, sizeof points, "%u", tw->point_records);
	snprintf(count, sizeof count, "%u", workers);
	const char *const set[][2] = {{"application.id", "order"},     {"workers", count},
				      {"order.point.records", points}, {"commit.interval.records", points},
				      {"end.of.input", "keep"},        {"task.time", tw->max ? "max" : "min"}};
	for (size_t i = 0; i < WEIR_COUNT_OF(set); i++)
		check(weir_conf_set(cf, set[i][0], set[i][1], &dg), dg);
	struct weir_stream *l = weir_key_by(source(tw, tp, in, "l"), "k"),
			   *r = weir_key_by(source(tw, tp, in, "r"), "k");
	struct weir_stream *st = weir_join_within(l, r, "j", WEIR_JOIN_INNER, tw->before, tw->after);
	snprintf(options, sizeof options, "l.v AS a, r.v AS b, %s%s",
		 crossed ? "r.s AS c, r.m AS d" : "l.s AS c, l.m AS d", tw->once ? ", r.k AS e" : "");
	st = weir_select(st, options);
	snprintf(options, sizeof options, "connector=recorded path='%s' topic=out format=json", out);
	(void)weir_sink(st, "out", options);
	check(weir_engine_create(&en, tp, cf, &dg), dg);
	check(weir_engine_run(en, &dg), dg);
	weir_engine_stats(en, &stats);
	weir_engine_destroy(en);
	return stats.records_late;
}

static void compare(const struct twin *tw, const char *out, bool crossed)
{
	struct weir_stream_log *sl;
	struct weir_diag *dg = NULL;
	const char *topic = "out";
	struct weir_recorded_source_spec spec = {
		.path = out, .topics = &topic, .topic_count = 1, .bounded = WEIR_STARTUP_LATEST};
	uint32_t at[PARTITIONS_MAX] = {0};
	check(weir_recorded_source_open(&sl, &spec, &dg), dg);
	for (uint32_t p = 0; p < tw->partitions; p++) {
		int64_t ts;
		while (p < sl->ops->partitions(sl) && sl->ops->peek(sl, p, &ts, &dg) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			check(sl->ops->take(sl, p, &u, &dg), dg);
			for (uint32_t i = 0; i < u->count; i++, at[p]++) {
				const struct weir_record *got = &u->records[i];
				const struct result *re = &tw->slot[p].result[at[p]];
				char members[160], text[256], key[48] = "";
				if (at[p] == tw->slot[p].result_count)
					fail_msg("seed %" PRIu64 ", partition %u: one more result: %.*s", tw->seed, p,
						 (int)got->value_bytes, (const char *)got->value);
				print_members(members, sizeof members, tw, re->number[crossed], "c", "d");
				if (tw->once)
					snprintf(key, sizeof key, ",\"e\":\"%s\"",
						 key_of(tw, tw->row_key[re->number[0]]));
				snprintf(text, sizeof text, "{\"a\":%u,\"b\":%u,%s%s}", re->number[0], re->number[1],
					 members, key);
				if (got->timestamp != re->ts || got->value_bytes != strlen(text) ||
				    memcmp(got->value, text, got->value_bytes) != 0)
					fail_msg("seed %" PRIu64 ", partition %u, result %u: %.*s at %" PRId64
						 ", wanted %s at %" PRId64,
						 tw->seed, p, at[p], (int)got->value_bytes, (const char *)got->value,
						 got->timestamp, text, re->ts);
			}
			sl->ops->release(sl, u);
		}
		if (at[p] != tw->slot[p].result_count)
			fail_msg("seed %" PRIu64 ", partition %u: %u results, wanted %u", tw->seed, p, at[p],
				 tw->slot[p].result_count);
	}
	sl->ops->close(sl);
}

/* ---- cases ---- */

static int64_t one_of(uint64_t *rng, int64_t a, int64_t b, int64_t c, int64_t d)
{
	const int64_t from[] = {a, b, c, d};
	return from[rng_next(rng) % 4];
}

static void make_case(struct twin *tw, struct shape *sh, uint64_t *rng)
{
	tw->partitions = 1 + (uint32_t)(rng_next(rng) % PARTITIONS_MAX);
	tw->rows = 200 + (uint32_t)(rng_next(rng) % (ROWS_MAX - 200));
	tw->keys = (uint32_t)one_of(rng, 4, 60, tw->rows / 8, tw->rows / 4);
	tw->point_records = (uint32_t)one_of(rng, 7, 150, 700, 2000);
	if (tw->keys == 4)
		tw->rows = weir_min_i64(tw->rows, 500);
	sh->step = one_of(rng, 1, 10, 100, 700);
	int64_t span = sh->step * tw->rows;
	tw->before = one_of(rng, 0, 0, span / 100, span / 8);
	tw->after = one_of(rng, 0, span / 50, span / 8, span);
	if (rng_next(rng) % 8 == 0) { /* the right side's rows lie behind, or ahead */
		int64_t narrow = one_of(rng, 1, span / 100, span / 30, span / 10), both = narrow + 1 + span / 100;
		tw->before = rng_next(rng) % 2 ? -narrow : both;
		tw->after = tw->before < 0 ? both : -narrow;
	} else if (rng_next(rng) % 3 == 0) {
		int64_t swap = tw->before;
		tw->before = tw->after;
		tw->after = swap;
	}
	tw->grace = one_of(rng, 0, 50, span / 40, span / 4);
	tw->max = rng_next(rng) % 5 == 0;
	tw->nulls = rng_next(rng) % 2;
	tw->filter = rng_next(rng) % 4 == 0;
	tw->long_key = rng_next(rng) % 8 == 0 && tw->keys > 20;
	sh->disorder = one_of(rng, 0, tw->grace, sh->step * 40, keep(tw) * 2);
	sh->ties = (uint32_t)one_of(rng, 0, 0, sh->step * 5, sh->step * 50);
	sh->near = (uint32_t)one_of(rng, 0, 1, 3, 40);
	sh->share = (uint32_t)one_of(rng, 8, 8, 4, 14);
	sh->shift[rng_next(rng) % 2] = one_of(rng, 0, 0, tw->after, keep(tw) + 1);
	tw->once = rng_next(rng) % 3 == 0;
	if (tw->once) { /* rows of both sides in sheets, that meet at once */
		tw->keys = tw->rows;
		tw->long_key = false;
		tw->nulls &= rng_next(rng) % 4 == 0;
		sh->disorder = rng_next(rng) % 4 == 0 ? sh->disorder : 0;
		sh->shift[0] = sh->shift[1] = 0;
		tw->after = one_of(rng, tw->after, span / 4, span / 2, span);
		tw->after = weir_max_i64(tw->after, 2);
		tw->before = one_of(rng, weir_max_i64(tw->before, 0), 0, 0, -1);
	}
}

static void order_case(uint64_t seed)
{
	static struct twin tw;
	static struct result results[PARTITIONS_MAX][RESULTS_MAX];
	uint64_t rng = seed, late = 0;
	struct shape sh = {0};
	memset(&tw, 0, sizeof tw);
	tw.seed = seed;
	for (uint32_t p = 0; p < PARTITIONS_MAX; p++) {
		tw.lane[0][p].time = tw.lane[1][p].time = tw.slot[p].task = INT64_MIN;
		tw.slot[p].result = results[p];
	}
	make_case(&tw, &sh, &rng);
	bool crossed = rng_next(&rng) % 2;
	char *in = tmpdir_make(), *out = tmpdir_make();
	uint32_t pieces = 1 + (uint32_t)(rng_next(&rng) % 3), number = 0;
	for (uint32_t i = 0; i < pieces; i++) {
		struct weir_topic_writer *w[2];
		for (uint32_t s = 0; s < 2; s++) {
			assert_int_equal(weir_topic_writer_open(&w[s], in, s == 0 ? "l" : "r", tw.partitions,
								WEIR_CODEC_NONE, NULL),
					 WEIR_OK);
			for (uint32_t p = 0; p < tw.partitions; p++)
				tw.lane[s][p].row[tw.lane[s][p].count].cut = true;
		}
		for (uint32_t end = tw.rows * (i + 1) / pieces; number < end; number++)
			put(&tw, w, number, &sh, &rng);
		for (uint32_t s = 0; s < 2; s++)
			assert_int_equal(weir_topic_writer_close(w[s], NULL), WEIR_OK);
		read_all(&tw);
		late += run(&tw, in, out, crossed, 1 + (uint32_t)(rng_next(&rng) % 3));
	}
	compare(&tw, out, crossed);
	if (late != tw.late)
		fail_msg("seed %" PRIu64 ": %" PRIu64 " late, wanted %" PRIu64, seed, late, tw.late);
	tmpdir_remove(in);
	tmpdir_remove(out);
}

static void test_against_a_twin(void **state)
{
	(void)state;
	const char *seed = getenv("WEIR_SIM_SEED"), *cases = getenv("WEIR_SIM_CASES");
	if (seed) {
		order_case(strtoull(seed, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= (cases ? strtoull(cases, NULL, 10) : CASES); i++)
		order_case(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_a_twin)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
