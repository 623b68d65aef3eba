/* test_join.c: joins in the driven engine: the vectors of the semantics, tables with deletes, joins with tables, and
 * joins of two streams against a naive twin under random input (out of order, late, NULL keys, equal times). The
 * driver makes an order point behind every record, so rows meet in the order they are pushed. WEIR_SIM_SEED runs one
 * seed, WEIR_SIM_CASES sets how many. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>
#include <weir/weir_engine.h>

static uint64_t rng_next(uint64_t *s)
{
	*s += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *s;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct job {
	struct weir_topology *tp;
	struct weir_conf *cf;
	struct weir_driver *dr;
};

static struct job job_begin(void)
{
	return (struct job){weir_topology_create(), weir_conf_create(), NULL};
}

static void conf_set(struct job *j, const char *name, const char *value)
{
	assert_int_equal(weir_conf_set(j->cf, name, value, NULL), WEIR_OK);
}

static void job_start(struct job *j)
{
	struct weir_diag *dg = NULL;
	if (weir_driver_create(&j->dr, j->tp, j->cf, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
}

static struct weir_stream *source(struct job *j, const char *topic, int64_t grace)
{
	char options[128];
	snprintf(options, sizeof options, "connector=recorded path=x topic=%s format=json", topic);
	return weir_event_time(weir_source(j->tp, topic, "k STRING, v BIGINT, ts BIGINT", options), "ts", grace);
}

static struct weir_table *table(struct job *j)
{
	return weir_table(j->tp, "t", "k STRING, name STRING, w BIGINT", "k",
			  "connector=recorded path=x topic=t format=json");
}

static void push(struct job *j, const char *topic, const char *key, const char *value, int64_t ts)
{
	struct weir_diag *dg = NULL;
	struct weir_slice k = {key, key ? strlen(key) : 0}, v = {value, value ? strlen(value) : 0};
	if (weir_driver_push(j->dr, topic, k, v, ts, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
}

static void push_kv(struct job *j, const char *topic, const char *k, int64_t v, int64_t ts)
{
	char text[128];
	if (k)
		snprintf(text, sizeof text, "{\"k\":\"%s\",\"v\":%" PRId64 ",\"ts\":%" PRId64 "}", k, v, ts);
	else
		snprintf(text, sizeof text, "{\"v\":%" PRId64 ",\"ts\":%" PRId64 "}", v, ts);
	push(j, topic, NULL, text, 0);
}

static void advance(struct job *j, int64_t ms)
{
	assert_int_equal(weir_driver_advance(j->dr, ms, NULL), WEIR_OK);
}

static void end(struct job *j)
{
	assert_int_equal(weir_driver_end(j->dr, NULL), WEIR_OK);
}

static void expect(struct job *j, const char *value, int64_t ts)
{
	struct weir_driver_record r;
	char got[512];
	if (!weir_driver_pop(j->dr, "out", &r))
		fail_msg("no result, wanted %s", value ? value : "a delete");
	snprintf(got, sizeof got, "%.*s", (int)r.value.bytes, r.value.data ? (const char *)r.value.data : "");
	if (value)
		assert_string_equal(got, value);
	else
		assert_null(r.value.data);
	if (ts >= 0)
		assert_int_equal(r.timestamp_ms, ts);
}

static void expect_none(struct job *j)
{
	struct weir_driver_record r;
	if (weir_driver_pop(j->dr, "out", &r))
		fail_msg("an unexpected result: %.*s", (int)r.value.bytes, (const char *)r.value.data);
}

static struct job within(enum weir_join_kind kind, int64_t before, int64_t after, int64_t grace)
{
	struct job j = job_begin();
	struct weir_stream *l = weir_key_by(source(&j, "l", grace), "k"), *r = weir_key_by(source(&j, "r", grace), "k");
	struct weir_stream *st = weir_join_within(l, r, "j", kind, before, after);
	st = weir_select(st, "l.v AS l, r.v AS r");
	(void)weir_sink(st, "out", "connector=recorded path=x topic=out format=json");
	return j;
}

/* ---- vectors ---- */

static void test_vector_10_bounds_are_inclusive(void **state)
{
	(void)state;
	struct job j = within(WEIR_JOIN_INNER, 5, 5, 0);
	job_start(&j);
	push_kv(&j, "l", "a", 1, 10);
	push_kv(&j, "r", "a", 2, 15);
	expect(&j, "{\"l\":1,\"r\":2}", 15);
	push_kv(&j, "r", "a", 3, 16);
	expect_none(&j);
	push_kv(&j, "r", "b", 4, 12); /* another key */
	end(&j);
	expect_none(&j);
	weir_driver_destroy(j.dr);
}

static void test_vector_11_left_row_stands_alone_once_no_match_can_come(void **state)
{
	(void)state;
	struct job j = within(WEIR_JOIN_LEFT, 5, 5, 0);
	job_start(&j);
	push_kv(&j, "l", "a", 1, 10);
	advance(&j, 15);
	expect_none(&j);
	advance(&j, 16);
	expect(&j, "{\"l\":1,\"r\":null}", 10);
	/* It has left: a record that is not late finds nothing. */
	push_kv(&j, "r", "a", 2, 12);
	end(&j);
	expect_none(&j);
	weir_driver_destroy(j.dr);
}

static void test_a_late_record_is_counted_and_dropped(void **state)
{
	(void)state;
	struct job j = within(WEIR_JOIN_FULL, 5, 5, 3);
	struct weir_stats stats;
	job_start(&j);
	advance(&j, 100);
	push_kv(&j, "l", "a", 1, 87); /* 87 + 5 + 5 + 3 = 100: not late; final at once, since 100 > 87 + 5 + 3 */
	expect(&j, "{\"l\":1,\"r\":null}", 87);
	push_kv(&j, "l", "a", 2, 86);
	expect_none(&j);
	push_kv(&j, "r", "a", 3, 93); /* could have met 88..98: waits until task time > 101 */
	expect_none(&j);
	advance(&j, 102);
	expect(&j, "{\"l\":null,\"r\":3}", 93);
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_late, 1);
	weir_driver_destroy(j.dr);
}

static void test_a_match_and_its_rows_never_stand_alone(void **state)
{
	(void)state;
	struct job j = within(WEIR_JOIN_FULL, 5, 5, 0);
	job_start(&j);
	push_kv(&j, "l", "a", 1, 10);
	push_kv(&j, "r", "a", 2, 12);
	expect(&j, "{\"l\":1,\"r\":2}", 12);
	push_kv(&j, "l", NULL, 3, 10); /* NULL equals nothing, NULL neither */
	expect(&j, "{\"l\":3,\"r\":null}", 10);
	push_kv(&j, "r", NULL, 4, 10);
	expect(&j, "{\"l\":null,\"r\":4}", 10);
	end(&j);
	expect_none(&j);
	weir_driver_destroy(j.dr);
}

static void test_matches_come_in_order_of_time(void **state)
{
	(void)state;
	struct job j = within(WEIR_JOIN_INNER, 50, 50, 0);
	job_start(&j);
	push_kv(&j, "r", "a", 1, 30);
	push_kv(&j, "r", "a", 2, 10);
	push_kv(&j, "r", "a", 3, 20);
	push_kv(&j, "r", "a", 4, 20);
	push_kv(&j, "l", "a", 9, 25);
	expect(&j, "{\"l\":9,\"r\":2}", 25);
	expect(&j, "{\"l\":9,\"r\":3}", 25);
	expect(&j, "{\"l\":9,\"r\":4}", 25);
	expect(&j, "{\"l\":9,\"r\":1}", 30);
	expect_none(&j);
	weir_driver_destroy(j.dr);
}

static void test_rows_of_a_window_meet_when_it_closes(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *l = weir_key_by(source(&j, "l", 2), "k"), *r = weir_key_by(source(&j, "r", 2), "k");
	l = weir_join_windows(weir_tumble(l, 10), weir_tumble(r, 10), "j", WEIR_JOIN_FULL);
	l = weir_select(l, "l.v AS l, r.v AS r");
	(void)weir_sink(l, "out", "connector=recorded path=x topic=out format=json");
	conf_set(&j, "slots", "1");
	job_start(&j);
	push_kv(&j, "l", "a", 1, 3);
	push_kv(&j, "r", "a", 2, 9);
	push_kv(&j, "r", NULL, 3, 5);
	push_kv(&j, "r", "b", 4, 11);
	expect_none(&j);
	advance(&j, 11);
	push_kv(&j, "l", "a", 5, 0); /* in time: 11 < 10 + 2 */
	expect_none(&j);
	advance(&j, 12);
	expect(&j, "{\"l\":null,\"r\":3}", 9);
	expect(&j, "{\"l\":1,\"r\":2}", 9);
	expect(&j, "{\"l\":5,\"r\":2}", 9);
	push_kv(&j, "l", "a", 6, 9); /* late */
	expect_none(&j);
	end(&j);
	expect(&j, "{\"l\":null,\"r\":4}", 19);
	expect_none(&j);
	struct weir_stats stats;
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_late, 1);
	weir_driver_destroy(j.dr);
}

/* late.topic gets the record as it was; a row of a state, late for a join, as JSON. */
static void test_late_records_go_to_their_topic(void **state)
{
	(void)state;
	for (int states = 0; states < 2; states++) {
		struct job j = job_begin();
		struct weir_driver_record r;
		struct weir_stream *l = source(&j, "l", 0);
		if (states) {
			l = weir_aggregate(weir_tumble(weir_key_by(l, "k"), 10), "w", "k, window_start, COUNT(*) AS v");
			l = weir_select(l, "k, v");
		}
		l = weir_join_within(weir_key_by(l, "k"), weir_key_by(source(&j, "r", 0), "k"), "j", WEIR_JOIN_INNER, 1,
				     1);
		(void)weir_sink(weir_select(l, "l.v AS l, r.v AS r"), "out",
				"connector=recorded path=x topic=out format=json");
		conf_set(&j, "late.topic", "late");
		conf_set(&j, "task.time", "max");
		job_start(&j);
		push_kv(&j, "r", "a", 1, 100);
		push_kv(&j, "l", "a", 2, 50);
		end(&j);
		assert_true(weir_driver_pop(j.dr, "late", &r));
		const char *want = states ? "{\"k\":\"a\",\"COUNT(*)\":1" : "{\"k\":\"a\",\"v\":2,\"ts\":50}";
		if (r.value.bytes < strlen(want) || memcmp(r.value.data, want, strlen(want)) != 0)
			fail_msg("%.*s", (int)r.value.bytes, (const char *)r.value.data);
		assert_false(weir_driver_pop(j.dr, "late", &r));
		expect_none(&j);
		weir_driver_destroy(j.dr);
	}
}

/* ---- tables ---- */

static void test_a_table_is_its_latest_rows(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *st = weir_filter(weir_select(weir_to_stream(table(&j)), "k, name, w"), "w > 0");
	(void)weir_sink(st, "out", "connector=recorded path=x topic=out format=json key.fields=k key.format=raw");
	job_start(&j);
	push(&j, "t", "a", "{\"k\":\"a\",\"name\":\"one\",\"w\":1}", 5);
	expect(&j, "{\"k\":\"a\",\"name\":\"one\",\"w\":1}", 5);
	push(&j, "t", "a", "{\"k\":\"a\",\"name\":\"a longer name than before\",\"w\":2}", 6);
	expect(&j, "{\"k\":\"a\",\"name\":\"a longer name than before\",\"w\":2}", 6);
	push(&j, "t", "a", "{\"k\":\"a\",\"name\":\"x\",\"w\":0}", 7); /* stops passing */
	expect(&j, NULL, 7);
	push(&j, "t", "a", NULL, 8); /* was not there any more */
	expect_none(&j);
	push(&j, "t", "a", "{\"k\":\"a\",\"name\":null,\"w\":3}", 9);
	expect(&j, "{\"k\":\"a\",\"name\":null,\"w\":3}", 9);
	push(&j, "t", "a", NULL, 10);
	expect(&j, NULL, 10);
	push(&j, "t", "a", NULL, 11);
	push(&j, "t", "b", NULL, 12); /* never was there */
	push(&j, "t", NULL, "{\"k\":\"c\",\"name\":\"no key\",\"w\":4}", 13);
	end(&j);
	expect_none(&j);
	struct weir_stats stats;
	weir_driver_stats(j.dr, &stats);
	assert_int_equal(stats.records_rejected, 1);
	weir_driver_destroy(j.dr);
}

static struct job beside_table(enum weir_join_kind kind)
{
	struct job j = job_begin();
	struct weir_stream *st = weir_join_table(source(&j, "s", 0), table(&j), "j", "UPPER(k)", kind);
	st = weir_select(st, "l.v AS v, name, r.w AS w");
	(void)weir_sink(st, "out", "connector=recorded path=x topic=out format=json");
	job_start(&j);
	push_kv(&j, "s", "a", 1, 10);
	push(&j, "t", "A", "{\"k\":\"A\",\"name\":\"n\",\"w\":7}", 11);
	push_kv(&j, "s", "a", 2, 12);
	push_kv(&j, "s", NULL, 3, 13);
	push(&j, "t", "A", "{\"k\":\"A\",\"name\":null,\"w\":8}", 14);
	push_kv(&j, "s", "a", 4, 5); /* an old record: the table is as it stands at its turn */
	push(&j, "t", "A", NULL, 15);
	push_kv(&j, "s", "a", 5, 16);
	end(&j);
	return j;
}

static void test_a_stream_beside_a_table(void **state)
{
	(void)state;
	struct job j = beside_table(WEIR_JOIN_INNER);
	expect(&j, "{\"v\":2,\"name\":\"n\",\"w\":7}", 12);
	expect(&j, "{\"v\":4,\"name\":null,\"w\":8}", 5);
	expect_none(&j);
	weir_driver_destroy(j.dr);
	j = beside_table(WEIR_JOIN_LEFT);
	expect(&j, "{\"v\":1,\"name\":null,\"w\":null}", 10);
	expect(&j, "{\"v\":2,\"name\":\"n\",\"w\":7}", 12);
	expect(&j, "{\"v\":3,\"name\":null,\"w\":null}", 13);
	expect(&j, "{\"v\":4,\"name\":null,\"w\":8}", 5);
	expect(&j, "{\"v\":5,\"name\":null,\"w\":null}", 16);
	expect_none(&j);
	weir_driver_destroy(j.dr);
}

static void test_an_aggregate_is_a_table_to_join_with(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *sums = weir_aggregate(weir_key_by(source(&j, "in", 0), "k"), "sums", "k, SUM(v) AS total");
	struct weir_table *tb = weir_to_table(weir_filter(sums, "total < 10"));
	struct weir_stream *st =
		weir_select(weir_join_table(source(&j, "s", 0), tb, "j", "k", WEIR_JOIN_LEFT), "l.v AS v, total");
	(void)weir_sink(st, "out", "connector=recorded path=x topic=out format=json");
	job_start(&j);
	push_kv(&j, "in", "a", 4, 1);
	push_kv(&j, "s", "a", 1, 2);
	expect(&j, "{\"v\":1,\"total\":4}", 2);
	push_kv(&j, "in", "a", 5, 3);
	push_kv(&j, "s", "a", 2, 4);
	expect(&j, "{\"v\":2,\"total\":9}", 4);
	push_kv(&j, "in", "a", 1, 5); /* 10: the filter takes it out of the table */
	push_kv(&j, "s", "a", 3, 6);
	expect(&j, "{\"v\":3,\"total\":null}", 6);
	end(&j);
	expect_none(&j);
	weir_driver_destroy(j.dr);
}

/* state.ttl goes by event time: what is more than it behind is gone once time has entered another eighth of it. */
static void test_rows_go_after_their_ttl(void **state)
{
	(void)state;
	struct job j = job_begin();
	struct weir_stream *st = weir_aggregate(weir_key_by(source(&j, "in", 0), "k"), "sum", "k, SUM(v) AS total");
	st = weir_join_table(source(&j, "s", 0), weir_to_table(st), "j", "k", WEIR_JOIN_LEFT);
	(void)weir_sink(weir_select(st, "v, total"), "out", "connector=recorded path=x topic=out format=json");
	conf_set(&j, "state.ttl", "80ms");
	conf_set(&j, "task.time", "max");
	job_start(&j);
	push_kv(&j, "in", "a", 5, 100);
	push_kv(&j, "in", "b", 1, 170);
	push_kv(&j, "s", "a", 1, 180); /* 80 behind: still there */
	expect(&j, "{\"v\":1,\"total\":5}", 180);
	push_kv(&j, "s", "a", 2, 190); /* dropped when this order point is through */
	expect(&j, "{\"v\":2,\"total\":5}", 190);
	push_kv(&j, "s", "a", 3, 191);
	expect(&j, "{\"v\":3,\"total\":null}", 191);
	push_kv(&j, "s", "b", 4, 192);
	expect(&j, "{\"v\":4,\"total\":1}", 192);
	end(&j);
	expect_none(&j);
	weir_driver_destroy(j.dr);
}

/* ---- tables with tables ---- */

struct pair {
	int64_t l, r; /* -1: not there */
	bool shown;
};

static bool pair_is_there(enum weir_join_kind kind, const struct pair *p)
{
	bool l = p->l >= 0, r = p->r >= 0;
	return (l && r) || (l && (kind == WEIR_JOIN_LEFT || kind == WEIR_JOIN_FULL)) ||
	       (r && (kind == WEIR_JOIN_RIGHT || kind == WEIR_JOIN_FULL));
}

/* Random updates and deletes of two tables; a filter above takes some rows out of the result. */
static void tables_case(uint64_t seed)
{
	struct pair pair[6];
	uint64_t rng = seed;
	enum weir_join_kind kind = (enum weir_join_kind)(rng_next(&rng) % 4);
	bool filter = rng_next(&rng) % 2;
	struct job j = job_begin();
	struct weir_driver_record r;
	struct weir_table *tb[2];
	for (int s = 0; s < 2; s++)
		tb[s] = weir_table(j.tp, s == 0 ? "l" : "r", "k STRING, w BIGINT", "k",
				   s == 0 ? "connector=recorded path=x topic=l format=json"
					  : "connector=recorded path=x topic=r format=json");
	struct weir_stream *st = weir_to_stream(weir_join_tables(tb[0], tb[1], "j", kind));
	st = weir_select(st, "COALESCE(l.k, r.k) AS k, l.w AS a, r.w AS b");
	if (filter)
		st = weir_filter(st, "COALESCE(a, 0) + COALESCE(b, 0) < 100");
	(void)weir_sink(st, "out", "connector=recorded path=x topic=out format=json key.fields=k key.format=raw");
	job_start(&j);
	for (int i = 0; i < 6; i++)
		pair[i] = (struct pair){-1, -1, false};
	for (int i = 0; i < 300; i++) {
		uint64_t x = rng_next(&rng);
		int key = (int)((x >> 8) % 6);
		char name[2] = {(char)('a' + key), 0}, text[160], a[24] = "null", b[24] = "null";
		int64_t w = (x >> 16) % 4 == 0 ? -1 : (int64_t)(x >> 20) % 90;
		struct pair *p = &pair[key];
		*(x % 2 ? &p->l : &p->r) = w;
		snprintf(text, sizeof text, "{\"w\":%" PRId64 "}", w);
		push(&j, x % 2 ? "l" : "r", name, w < 0 ? NULL : text, i);
		bool is = pair_is_there(kind, p);
		bool pass = is && (!filter || (p->l > 0 ? p->l : 0) + (p->r > 0 ? p->r : 0) < 100);
		if (pass || p->shown) {
			/* A row that goes on without having been shown, and deletes of keys that are not there, say
			 * nothing. */
			if (p->l >= 0)
				snprintf(a, sizeof a, "%" PRId64, p->l);
			if (p->r >= 0)
				snprintf(b, sizeof b, "%" PRId64, p->r);
			snprintf(text, sizeof text, "{\"k\":\"%s\",\"a\":%s,\"b\":%s}", name, a, b);
			if (!weir_driver_pop(j.dr, "out", &r))
				fail_msg("seed %" PRIu64 " at %d: no result, wanted %s", seed, i,
					 pass ? text : "a delete");
			assert_int_equal(r.key.bytes, 1);
			assert_memory_equal(r.key.data, name, 1);
			if (pass && (!r.value.data || r.value.bytes != strlen(text) ||
				     memcmp(r.value.data, text, r.value.bytes) != 0))
				fail_msg("seed %" PRIu64 " at %d: %.*s, wanted %s", seed, i, (int)r.value.bytes,
					 r.value.data ? (const char *)r.value.data : "", text);
			if (!pass && r.value.data)
				fail_msg("seed %" PRIu64 " at %d: %.*s, wanted a delete", seed, i, (int)r.value.bytes,
					 (const char *)r.value.data);
		}
		p->shown = pass;
		if (weir_driver_pop(j.dr, "out", &r))
			fail_msg("seed %" PRIu64 " at %d: one more result: %.*s", seed, i, (int)r.value.bytes,
				 r.value.data ? (const char *)r.value.data : "");
	}
	weir_driver_destroy(j.dr);
}

static void test_two_tables_against_a_twin(void **state)
{
	(void)state;
	const char *seed = getenv("WEIR_SIM_SEED"), *cases = getenv("WEIR_SIM_CASES");
	if (seed) {
		tables_case(strtoull(seed, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= (cases ? strtoull(cases, NULL, 10) : 100); i++)
		tables_case(i);
}

/* ---- aggregates over tables ---- */

/* Rows move between groups, change and go; a group without members is deleted. */
static void groups_case(uint64_t seed)
{
	struct {
		int group;
		int64_t w; /* -1: NULL */
	} row[12];
	struct {
		bool shown;
	} was[4] = {0};
	uint64_t rng = seed;
	bool filter = rng_next(&rng) % 2;
	struct job j = job_begin();
	struct weir_driver_record r;
	struct weir_table *tb = weir_table(j.tp, "t", "k STRING, g STRING, w BIGINT", "k",
					   "connector=recorded path=x topic=t format=json");
	struct weir_stream *st = weir_to_stream(tb);
	if (filter)
		st = weir_filter(st, "w IS NULL OR w < 70");
	st = weir_aggregate(weir_key_by(st, "g"), "groups", "g, COUNT(*) AS n, SUM(w) AS total, AVG(w) AS mean");
	(void)weir_sink(st, "out", "connector=recorded path=x topic=out format=json key.fields=g key.format=raw");
	conf_set(&j, "slots", "1");
	job_start(&j);
	for (int i = 0; i < 12; i++)
		row[i].group = -1;
	for (int i = 0; i < 300; i++) {
		uint64_t x = rng_next(&rng);
		int k = (int)(x % 12), group = (int)((x >> 8) % 4), from = row[k].group;
		int64_t w = (x >> 16) % 8 == 0 ? -1 : (int64_t)((x >> 20) % 100);
		bool gone = (x >> 32) % 5 == 0, before = from >= 0 && !(filter && row[k].w >= 70);
		bool after = !gone && !(filter && w >= 70);
		char key[8], text[160], value[32] = "null";
		snprintf(key, sizeof key, "%d", k);
		if (w >= 0)
			snprintf(value, sizeof value, "%" PRId64, w);
		snprintf(text, sizeof text, "{\"g\":\"g%d\",\"w\":%s}", group, value);
		push(&j, "t", key, gone ? NULL : text, i);
		row[k].group = gone ? -1 : group;
		row[k].w = w;
		/* The groups touched, in the order they change: what it was, then what it is. */
		for (int step = 0; step < 2; step++) {
			int g = step == 0 ? from : gone ? -1 : group;
			if (g < 0 || (step == 1 && g == from))
				continue;
			int64_t n = 0, sum = 0, values = 0;
			for (int m = 0; m < 12; m++) {
				if (row[m].group != g || (filter && row[m].w >= 70))
					continue;
				n++;
				sum += row[m].w >= 0 ? row[m].w : 0;
				values += row[m].w >= 0;
			}
			/* A row that the filter drops touches no group. */
			if (!(step == 0 ? before || (from == group && after) : after))
				continue;
			if (!was[g].shown && n == 0)
				continue;
			was[g].shown = n > 0;
			snprintf(text, sizeof text, "{\"g\":\"g%d\",\"n\":%" PRId64 ",\"total\":null,\"mean\":null}", g,
				 n);
			if (values)
				snprintf(text, sizeof text,
					 "{\"g\":\"g%d\",\"n\":%" PRId64 ",\"total\":%" PRId64 ",\"mean\":%" PRId64 "}",
					 g, n, sum, sum / values);
			if (!weir_driver_pop(j.dr, "out", &r))
				fail_msg("seed %" PRIu64 " at %d: no result, wanted %s", seed, i, text);
			bool right = n == 0 ? r.value.data == NULL
					    : r.value.data && r.value.bytes == strlen(text) &&
						      memcmp(r.value.data, text, r.value.bytes) == 0;
			if (!right)
				fail_msg("seed %" PRIu64 " at %d: %.*s, wanted %s", seed, i, (int)r.value.bytes,
					 r.value.data ? (const char *)r.value.data : "", n ? text : "a delete");
		}
		if (weir_driver_pop(j.dr, "out", &r))
			fail_msg("seed %" PRIu64 " at %d: one more result: %.*s", seed, i, (int)r.value.bytes,
				 r.value.data ? (const char *)r.value.data : "");
	}
	weir_driver_destroy(j.dr);
}

static void test_groups_of_a_table_against_a_twin(void **state)
{
	(void)state;
	const char *seed = getenv("WEIR_SIM_SEED"), *cases = getenv("WEIR_SIM_CASES");
	if (seed) {
		groups_case(strtoull(seed, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= (cases ? strtoull(cases, NULL, 10) : 100); i++)
		groups_case(i);
}

/* ---- as of a time ---- */

static struct job as_of(enum weir_join_kind kind, int64_t grace)
{
	struct job j = job_begin();
	struct weir_table *tb = weir_table(j.tp, "t", "k STRING, w BIGINT, ts BIGINT", "k",
					   "connector=recorded path=x topic=t format=json");
	tb = weir_table_event_time(tb, "ts", grace);
	struct weir_stream *st = weir_join_table_as_of(source(&j, "s", grace), tb, "j", "k", kind);
	st = weir_select(st, "l.v AS v, w");
	(void)weir_sink(st, "out", "connector=recorded path=x topic=out format=json");
	conf_set(&j, "slots", "1");
	return j;
}

static void push_version(struct job *j, const char *k, int64_t w, int64_t ts)
{
	char text[128];
	snprintf(text, sizeof text, "{\"w\":%" PRId64 ",\"ts\":%" PRId64 "}", w, ts);
	push(j, "t", k, w < 0 ? NULL : text, ts); /* a delete has the record's time */
}

static void test_a_row_is_taken_as_of_its_time(void **state)
{
	(void)state;
	struct job j = as_of(WEIR_JOIN_LEFT, 2);
	job_start(&j);
	push_version(&j, "a", 5, 5);
	push_kv(&j, "s", "a", 1, 10);
	push_version(&j, "a", 12, 12);
	expect_none(&j);             /* 12 is not more than 10 + 2 */
	push_version(&j, "a", 9, 9); /* late: into its place */
	push_version(&j, "a", 10, 10);
	push_version(&j, "b", 1, 13);
	expect(&j, "{\"v\":1,\"w\":10}", 10);
	push_kv(&j, "s", "a", 2, 9);
	expect(&j, "{\"v\":2,\"w\":9}", 9);
	push_version(&j, "a", -1, 14);
	push_kv(&j, "s", "a", 3, 14);
	push_kv(&j, "s", "a", 4, 13);
	push_kv(&j, "s", NULL, 5, 13);
	expect(&j, "{\"v\":5,\"w\":null}", 13);
	end(&j);
	expect(&j, "{\"v\":4,\"w\":12}", 13);
	expect(&j, "{\"v\":3,\"w\":null}", 14);
	expect_none(&j);
	weir_driver_destroy(j.dr);
}

static void test_what_cannot_be_joined(void **state)
{
	(void)state;
	static const char *const want[] = {"both streams need weir_key_by", "1 expressions, the table's key has 2",
					   "leave no time", "is of another type", "cannot be kept"};
	for (int i = 0; i < 5; i++) {
		struct job j = job_begin();
		struct weir_diag *dg = NULL;
		struct weir_stream *l = source(&j, "l", 0), *r = weir_key_by(source(&j, "r", 0), "k");
		struct weir_table *two = weir_table(j.tp, "two", "a STRING, b BIGINT", "a, b",
						    "connector=recorded path=x topic=two format=json key.format=json");
		if (i == 0)
			l = weir_join_within(l, r, "j", WEIR_JOIN_INNER, 1, 1);
		if (i == 1)
			l = weir_join_table(l, two, "j", "k", WEIR_JOIN_INNER);
		if (i == 2)
			l = weir_join_within(weir_key_by(l, "k"), r, "j", WEIR_JOIN_INNER, 1, -2);
		if (i == 3)
			l = weir_join_table(l, two, "j", "v, k", WEIR_JOIN_INNER);
		if (i == 4)
			l = weir_join_table(l, two, "j", "k, v", WEIR_JOIN_FULL);
		(void)weir_sink(weir_select(l, "l.v AS v"), "out", "connector=recorded path=x topic=out format=json");
		assert_int_not_equal(weir_driver_create(&j.dr, j.tp, j.cf, &dg), WEIR_OK);
		if (!strstr(weir_diag_text(dg), want[i]))
			fail_msg("wanted '%s': %s", want[i], weir_diag_text(dg));
		weir_diag_destroy(dg);
	}
}

/* ---- the twin ---- */

enum { TWIN_ROWS = 400 };

struct twin_row {
	int64_t ts;
	int64_t v;
	int key; /* -1: NULL */
	int side;
	bool matched, gone;
};

struct twin {
	struct job j;
	int64_t before, after, grace;
	bool outer[2];
	bool max;
	int64_t time[2], task;
	struct twin_row row[TWIN_ROWS];
	int count;
	uint64_t seed;
};

static int64_t reach(const struct twin *tw, int side)
{
	return (side == 0 ? tw->after : tw->before) + tw->grace;
}

static int64_t keep(const struct twin *tw)
{
	return (tw->before > 0 ? tw->before : 0) + (tw->after > 0 ? tw->after : 0) + tw->grace;
}

static void twin_expect(struct twin *tw, const struct twin_row *l, const struct twin_row *r)
{
	char text[128], a[32] = "null", b[32] = "null";
	struct weir_driver_record got;
	int64_t ts = !l ? r->ts : !r ? l->ts : l->ts > r->ts ? l->ts : r->ts;
	if (l)
		snprintf(a, sizeof a, "%" PRId64, l->v);
	if (r)
		snprintf(b, sizeof b, "%" PRId64, r->v);
	snprintf(text, sizeof text, "{\"l\":%s,\"r\":%s}", a, b);
	if (!weir_driver_pop(tw->j.dr, "out", &got))
		fail_msg("seed %" PRIu64 ": no result, wanted %s", tw->seed, text);
	if (strlen(text) != got.value.bytes || memcmp(text, got.value.data, got.value.bytes) != 0 ||
	    got.timestamp_ms != ts)
		fail_msg("seed %" PRIu64 ": %.*s at %" PRId64 ", wanted %s at %" PRId64, tw->seed, (int)got.value.bytes,
			 (const char *)got.value.data, got.timestamp_ms, text, ts);
}

static bool earlier(const struct twin_row *a, const struct twin_row *b)
{
	if (a->ts != b->ts)
		return a->ts < b->ts;
	if (a->side != b->side)
		return a->side < b->side;
	if (a->key != b->key)
		return a->key < b->key;
	return a < b;
}

/* What is final at the task time, in order. */
static void twin_finals(struct twin *tw, bool all)
{
	for (;;) {
		struct twin_row *first = NULL;
		for (int i = 0; i < tw->count; i++) {
			struct twin_row *c = &tw->row[i];
			if (!tw->outer[c->side] || c->matched || c->gone)
				continue;
			if (!all && (tw->task == INT64_MIN || tw->task <= c->ts + reach(tw, c->side)))
				continue;
			if (!first || earlier(c, first))
				first = c;
		}
		if (!first)
			return;
		first->gone = true;
		twin_expect(tw, first->side == 0 ? first : NULL, first->side == 0 ? NULL : first);
	}
}

static void twin_time(struct twin *tw)
{
	int64_t a = tw->time[0], b = tw->time[1], now = tw->max ? (a > b ? a : b) : (a < b ? a : b);
	if (now > tw->task)
		tw->task = now;
}

static void twin_push(struct twin *tw, int side, int key, int64_t v, int64_t ts)
{
	struct twin_row *x = &tw->row[tw->count];
	bool known;
	*x = (struct twin_row){.ts = ts, .v = v, .key = key, .side = side};
	if (ts > tw->time[side])
		tw->time[side] = ts;
	twin_time(tw);
	known = tw->task != INT64_MIN;
	if (known && tw->task > ts + keep(tw))
		return twin_finals(tw, false);
	if (key < 0) {
		if (tw->outer[side])
			twin_expect(tw, side == 0 ? x : NULL, side == 0 ? NULL : x);
		return twin_finals(tw, false);
	}
	for (;;) {
		struct twin_row *best = NULL;
		static bool used[TWIN_ROWS];
		if (!x->matched)
			memset(used, 0, sizeof used);
		for (int i = 0; i < tw->count; i++) {
			struct twin_row *c = &tw->row[i];
			const struct twin_row *l = side == 0 ? x : c, *r = side == 0 ? c : x;
			if (c->side == side || c->key != key || c->gone || used[i])
				continue;
			if (r->ts < l->ts - tw->before || r->ts > l->ts + tw->after)
				continue;
			if (known && tw->task > c->ts + keep(tw))
				continue;
			if (known && tw->outer[c->side] && !c->matched && tw->task > c->ts + reach(tw, c->side))
				continue;
			if (!best || c->ts < best->ts)
				best = c;
		}
		if (!best)
			break;
		used[best - tw->row] = true;
		x->matched = best->matched = true;
		twin_expect(tw, side == 0 ? x : best, side == 0 ? best : x);
	}
	if (tw->outer[side] && !x->matched && known && tw->task > ts + reach(tw, side))
		twin_expect(tw, side == 0 ? x : NULL, side == 0 ? NULL : x);
	else
		tw->count++;
	twin_finals(tw, false);
}

static void twin_case(uint64_t seed)
{
	uint64_t rng = seed;
	static struct twin tw;
	enum weir_join_kind kind = (enum weir_join_kind)(rng_next(&rng) % 4);
	struct weir_driver_record r;
	tw = (struct twin){.seed = seed, .time = {INT64_MIN, INT64_MIN}, .task = INT64_MIN};
	tw.before = (int64_t)(rng_next(&rng) % 30) - 5;
	tw.after = (int64_t)(rng_next(&rng) % 30);
	if (tw.before + tw.after < 0)
		tw.after = -tw.before;
	if (rng_next(&rng) % 4 == 0)
		tw.before *= 1000, tw.after *= 1000;
	tw.grace = (int64_t)(rng_next(&rng) % 10);
	tw.outer[0] = kind == WEIR_JOIN_LEFT || kind == WEIR_JOIN_FULL;
	tw.outer[1] = kind == WEIR_JOIN_RIGHT || kind == WEIR_JOIN_FULL;
	tw.max = rng_next(&rng) % 2;
	int64_t spread = 1 + keep(&tw) * 2, now = 100000;
	int keys = 1 + (int)(rng_next(&rng) % 5);
	tw.j = within(kind, tw.before, tw.after, tw.grace);
	conf_set(&tw.j, "slots", "1"); /* results leave slot by slot */
	if (tw.max)
		conf_set(&tw.j, "task.time", "max");
	job_start(&tw.j);
	for (int i = 0; i < TWIN_ROWS - 1; i++) {
		uint64_t x = rng_next(&rng);
		int side = (int)(x & 1), key = (int)((x >> 8) % (uint64_t)(keys * 8));
		char name[16];
		int64_t ts = now - (int64_t)((x >> 20) % (uint64_t)spread);
		now += (int64_t)((x >> 40) % (uint64_t)(keep(&tw) / 8 + 2));
		key = key == 0 ? -1 : key % keys;
		snprintf(name, sizeof name, "%c", 'a' + key);
		if (x % 50 == 0) {
			advance(&tw.j, now);
			for (int s = 0; s < 2; s++)
				tw.time[s] = now > tw.time[s] ? now : tw.time[s];
			twin_time(&tw);
			twin_finals(&tw, false);
			continue;
		}
		push_kv(&tw.j, side == 0 ? "l" : "r", key < 0 ? NULL : name, i, ts);
		twin_push(&tw, side, key, i, ts);
	}
	end(&tw.j);
	twin_finals(&tw, true);
	if (weir_driver_pop(tw.j.dr, "out", &r))
		fail_msg("seed %" PRIu64 ": one more result: %.*s", seed, (int)r.value.bytes,
			 (const char *)r.value.data);
	weir_driver_destroy(tw.j.dr);
}

/* A table's history: every version is kept here; pruning in the engine must not be seen. */
static void as_of_case(uint64_t seed)
{
	static struct twin_row version[TWIN_ROWS], row[TWIN_ROWS];
	int versions = 0, rows = 0;
	uint64_t rng = seed;
	struct weir_driver_record r;
	enum weir_join_kind kind = rng_next(&rng) % 2 ? WEIR_JOIN_LEFT : WEIR_JOIN_INNER;
	int64_t grace = (int64_t)(rng_next(&rng) % 50), now = 1000, time = INT64_MIN;
	struct job j = as_of(kind, grace);
	job_start(&j);
	for (int i = 0; i <= TWIN_ROWS; i++) {
		uint64_t x = rng_next(&rng);
		char name[2] = {(char)('a' + (x >> 8) % 4), 0};
		int64_t ts = now - (int64_t)((x >> 20) % (uint64_t)(grace + 1));
		bool last = i == TWIN_ROWS;
		now += (int64_t)((x >> 40) % 20);
		if (last) {
			end(&j);
		} else if (x % 3 == 0) {
			row[rows++] = (struct twin_row){.ts = ts, .v = i, .key = name[0]};
			push_kv(&j, "s", name, i, ts);
		} else {
			version[versions++] = (struct twin_row){.ts = ts, .v = x % 7 == 0 ? -1 : i, .key = name[0]};
			push_version(&j, name, version[versions - 1].v, ts);
			time = ts > time ? ts : time;
		}
		for (;;) {
			struct twin_row *first = NULL, *of = NULL;
			for (int k = 0; k < rows; k++)
				if (!row[k].gone && (last || row[k].ts + grace < time) &&
				    (!first || earlier(&row[k], first)))
					first = &row[k];
			if (!first)
				break;
			first->gone = true;
			for (int k = 0; k < versions; k++)
				if (version[k].key == first->key && version[k].ts <= first->ts &&
				    (!of || version[k].ts >= of->ts))
					of = &version[k];
			bool there = of && of->v >= 0;
			char text[160], w[32] = "null";
			if (!there && kind == WEIR_JOIN_INNER)
				continue;
			if (there)
				snprintf(w, sizeof w, "%" PRId64, of->v);
			snprintf(text, sizeof text, "{\"v\":%" PRId64 ",\"w\":%s}", first->v, w);
			if (!weir_driver_pop(j.dr, "out", &r))
				fail_msg("seed %" PRIu64 ": no result, wanted %s", seed, text);
			if (strlen(text) != r.value.bytes || memcmp(text, r.value.data, r.value.bytes) != 0)
				fail_msg("seed %" PRIu64 ": %.*s, wanted %s", seed, (int)r.value.bytes,
					 (const char *)r.value.data, text);
		}
	}
	assert_false(weir_driver_pop(j.dr, "out", &r));
	weir_driver_destroy(j.dr);
}

static void test_a_history_against_a_twin(void **state)
{
	(void)state;
	const char *seed = getenv("WEIR_SIM_SEED"), *cases = getenv("WEIR_SIM_CASES");
	if (seed) {
		as_of_case(strtoull(seed, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= (cases ? strtoull(cases, NULL, 10) : 100); i++)
		as_of_case(i);
}

static void test_two_streams_against_a_twin(void **state)
{
	(void)state;
	const char *seed = getenv("WEIR_SIM_SEED"), *cases = getenv("WEIR_SIM_CASES");
	if (seed) {
		twin_case(strtoull(seed, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= (cases ? strtoull(cases, NULL, 10) : 100); i++)
		twin_case(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_10_bounds_are_inclusive),
		cmocka_unit_test(test_vector_11_left_row_stands_alone_once_no_match_can_come),
		cmocka_unit_test(test_a_late_record_is_counted_and_dropped),
		cmocka_unit_test(test_a_match_and_its_rows_never_stand_alone),
		cmocka_unit_test(test_matches_come_in_order_of_time),
		cmocka_unit_test(test_rows_of_a_window_meet_when_it_closes),
		cmocka_unit_test(test_late_records_go_to_their_topic),
		cmocka_unit_test(test_a_table_is_its_latest_rows),
		cmocka_unit_test(test_a_stream_beside_a_table),
		cmocka_unit_test(test_an_aggregate_is_a_table_to_join_with),
		cmocka_unit_test(test_a_row_is_taken_as_of_its_time),
		cmocka_unit_test(test_rows_go_after_their_ttl),
		cmocka_unit_test(test_two_tables_against_a_twin),
		cmocka_unit_test(test_groups_of_a_table_against_a_twin),
		cmocka_unit_test(test_what_cannot_be_joined),
		cmocka_unit_test(test_a_history_against_a_twin),
		cmocka_unit_test(test_two_streams_against_a_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
