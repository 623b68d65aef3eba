/* test_join_window.c: joins of rows in windows, against a naive twin: tumbling and hopping windows, every kind of join,
 * rows out of order, late and without a key. The driver makes an order point behind every record. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/core/base.h"
#include "hotpath/core/mem.h"
#include <weir/weir.h>
#include <weir/weir_engine.h>

enum { ROWS = 120, LINES_MAX = 40000, LINE = 48, GRACE = 7 };

struct record {
	int side;
	int key; /* -1: none */
	int64_t ts;
	int64_t v;
	bool in[64]; /* windows that took it, by number */
};

struct lines {
	char text[LINES_MAX][LINE];
	uint32_t count;
};

static uint64_t rng_next(uint64_t *s)
{
	*s += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *s;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void add(struct lines *ls, int64_t end, int64_t l, int64_t r)
{
	char *to = ls->text[ls->count++];
	assert_true(ls->count < LINES_MAX);
	int n = snprintf(to, LINE, "%06" PRId64, end - 1);
	n += l < 0 ? snprintf(to + n, LINE - (size_t)n, " null") : snprintf(to + n, LINE - (size_t)n, " %" PRId64, l);
	if (r < 0)
		snprintf(to + n, LINE - (size_t)n, " null");
	else
		snprintf(to + n, LINE - (size_t)n, " %" PRId64, r);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Windows w with [w * advance, w * advance + size). */
static void twin(const struct record *rc, int64_t size, int64_t advance, bool l_outer, bool r_outer, struct lines *out)
{
	for (int64_t w = 0; w < 64; w++) {
		int64_t end = w * advance + size;
		for (int i = 0; i < ROWS; i++) {
			bool match = false;
			if (!rc[i].in[w])
				continue;
			for (int k = 0; k < ROWS; k++) {
				if (rc[k].side == rc[i].side || !rc[k].in[w] || rc[k].key < 0 || rc[k].key != rc[i].key)
					continue;
				match = true;
				if (rc[i].side == 0)
					add(out, end, rc[i].v, rc[k].v);
			}
			if (!match && rc[i].side == 0 && l_outer)
				add(out, end, rc[i].v, -1);
			if (!match && rc[i].side == 1 && r_outer)
				add(out, end, -1, rc[i].v);
		}
	}
}

static struct weir_stream *source(struct weir_topology *tp, const char *topic, int64_t size, int64_t advance)
{
	char options[128];
	snprintf(options, sizeof options, "connector=recorded path=x topic=%s format=json", topic);
	struct weir_stream *st = weir_key_by(
		weir_event_time(weir_source(tp, topic, "k STRING, v BIGINT, ts BIGINT", options), "ts", GRACE), "k");
	return size == advance ? weir_tumble(st, size) : weir_hop(st, size, advance);
}

static int64_t number(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	assert_non_null(at);
	at += strlen(name);
	return strncmp(at, "null", 4) == 0 ? -1 : strtoll(at, NULL, 10);
}

static void take_results(struct weir_driver *dr, struct lines *out, int64_t *last)
{
	struct weir_driver_record r;
	while (weir_driver_pop(dr, "out", &r)) {
		char text[128];
		snprintf(text, sizeof text, "%.*s", (int)r.value.bytes, (const char *)r.value.data);
		/* Windows leave in the order of their ends. */
		assert_true(r.timestamp_ms >= *last);
		*last = r.timestamp_ms;
		add(out, r.timestamp_ms + 1, number(text, "\"l\":"), number(text, "\"r\":"));
	}
}

static void one_case(uint64_t seed)
{
	static struct record rc[ROWS];
	static struct lines want, got;
	static const enum weir_join_kind kinds[] = {WEIR_JOIN_INNER, WEIR_JOIN_LEFT, WEIR_JOIN_RIGHT, WEIR_JOIN_FULL};
	uint64_t rng = seed;
	enum weir_join_kind kind = kinds[rng_next(&rng) % 4];
	bool l_outer = kind == WEIR_JOIN_LEFT || kind == WEIR_JOIN_FULL;
	bool r_outer = kind == WEIR_JOIN_RIGHT || kind == WEIR_JOIN_FULL;
	int64_t advance = 10, size = advance * (int64_t)(1 + rng_next(&rng) % 3);
	struct weir_topology *tp = weir_topology_create();
	struct weir_conf *cf = weir_conf_create();
	struct weir_driver *dr;
	struct weir_diag *dg = NULL;
	struct weir_stats stats;
	int64_t t[2] = {-1, -1}, last = -1;
	uint64_t late = 0;
	want.count = got.count = 0;
	struct weir_stream *st =
		weir_join_windows(source(tp, "l", size, advance), source(tp, "r", size, advance), "j", kind);
	(void)weir_sink(weir_select(st, "l.v AS l, r.v AS r"), "out",
			"connector=recorded path=x topic=out format=json");
	assert_int_equal(weir_conf_set(cf, "slots", "1", NULL), WEIR_OK);
	if (weir_driver_create(&dr, tp, cf, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	memset(rc, 0, sizeof rc);
	for (int i = 0; i < ROWS; i++) {
		struct record *r = &rc[i];
		char text[128], key[16] = "null";
		r->side = (int)(rng_next(&rng) % 2);
		r->key = (int)(rng_next(&rng) % 5) - 1;
		r->ts = 50 + i * 4 - (int64_t)(rng_next(&rng) % 45);
		r->v = i;
		t[r->side] = weir_max_i64(t[r->side], r->ts);
		int64_t task = weir_min_i64(t[0], t[1]);
		bool any = false;
		for (int64_t w = 0; w < 64; w++) {
			int64_t end = w * advance + size;
			r->in[w] = r->ts >= w * advance && r->ts < end && task < end + GRACE;
			any |= r->in[w];
		}
		late += !any;
		if (r->key >= 0)
			snprintf(key, sizeof key, "\"k%d\"", r->key);
		snprintf(text, sizeof text, "{\"k\":%s,\"v\":%" PRId64 ",\"ts\":%" PRId64 "}", key, r->v, r->ts);
		assert_int_equal(weir_driver_push(dr, r->side == 0 ? "l" : "r", (struct weir_slice){NULL, 0},
						  (struct weir_slice){text, strlen(text)}, 0, NULL),
				 WEIR_OK);
		take_results(dr, &got, &last);
	}
	assert_int_equal(weir_driver_end(dr, NULL), WEIR_OK);
	take_results(dr, &got, &last);
	weir_driver_stats(dr, &stats);
	twin(rc, size, advance, l_outer, r_outer, &want);
	qsort(want.text, want.count, LINE, by_text);
	qsort(got.text, got.count, LINE, by_text);
	for (uint32_t i = 0; i < want.count && i < got.count; i++)
		if (strcmp(want.text[i], got.text[i]) != 0)
			fail_msg("seed %" PRIu64 ": %s instead of %s", seed, got.text[i], want.text[i]);
	if (want.count != got.count)
		fail_msg("seed %" PRIu64 ": %u rows, wanted %u", seed, got.count, want.count);
	assert_true(want.count > 0);
	assert_int_equal(stats.records_late, late);
	weir_driver_destroy(dr);
}

static void test_against_a_naive_twin(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++)
		one_case(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_a_naive_twin)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
