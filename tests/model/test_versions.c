/* test_versions.c: a table's history with updates in any order, deletes, pruning, barriers and restores, against a twin
 * that keeps a sorted array for each key: every look-up, what is kept and what it costs; and the stream's rows that
 * wait beside it, against one that sorts them as they leave. VERSIONS_SEED and VERSIONS_RUNS override; a failing seed
 * is printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/history.h"
#include "hotpath/state/versions.h"

static uint64_t rng_state;
static uint32_t below(uint32_t n)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n;
}

static const struct weir_type text_type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};

enum { KEYS = 24, KEY_LONG = KEYS - 1, BODIES_MAX = 8192, VERSIONS_MAX = 20000 };

struct version {
	int64_t time;
	uint32_t number;
	bool deletes;
};
struct waiting {
	int64_t time;
	uint32_t key, number;
};
struct twin {
	struct version *v; /* by time, then arrival */
	uint32_t count;
};
struct rig {
	struct weir_state_def def;
	struct weir_state_side side[2];
	struct weir_arena *ar;
	struct weir_slot *sl;
	struct weir_buf body[BODIES_MAX]; /* the changelog: packs by number, then pages; empty: none */
	uint64_t written[BODIES_MAX];     /* when, to replay in order */
	uint64_t writes;
	uint64_t epoch, pack_bytes;
	struct twin twin[KEYS];
	uint32_t number;
	struct waiting *waiting; /* in the order of arrival */
	uint32_t waiting_count;
};

static void slot_create(struct rig *rg)
{
	rg->ar = weir_arena_create();
	rg->sl = weir_slot_create(&rg->def, 0, rg->ar);
}

static struct rig *rig_create(void)
{
	struct rig *rg = calloc(1, sizeof *rg);
	assert_non_null(rg);
	rg->side[1].table = true;
	rg->def = (struct weir_state_def){.name = "j",
					  .kind = WEIR_STATE_JOIN,
					  .versioned = true,
					  .key_count = 1,
					  .key_types = &text_type,
					  .side_count = 2,
					  .sides = rg->side};
	assert_int_equal(weir_state_def_init(&rg->def, NULL), WEIR_OK);
	slot_create(rg);
	for (uint32_t k = 0; k < KEYS; k++)
		rg->twin[k].v = weir_xmalloc(VERSIONS_MAX * sizeof *rg->twin[k].v);
	rg->waiting = weir_xmalloc(VERSIONS_MAX * sizeof *rg->waiting);
	return rg;
}

static void rig_destroy(struct rig *rg)
{
	weir_slot_destroy(rg->sl);
	assert_int_equal(weir_arena_bytes(rg->ar), 0);
	weir_arena_destroy(rg->ar);
	for (uint32_t i = 0; i < BODIES_MAX; i++)
		weir_buf_fini(&rg->body[i]);
	for (uint32_t k = 0; k < KEYS; k++)
		free(rg->twin[k].v);
	free(rg->waiting);
	free(rg);
}

/* Lives until the next call. One key is longer than its entry's field says. */
static struct weir_join_row row_of(uint32_t k, int64_t time, uint32_t number)
{
	static uint8_t key[(1 << 16) + 64], data[8];
	uint32_t n = k == KEY_LONG ? (1u << 16) + 5 : 8;
	memset(key, 'x', n);
	key[0] = 1;
	key[1] = (uint8_t)('a' + k);
	key[n - 1] = 0;
	memset(key + n, 0, 8);
	weir_store_le64(data, number);
	return (struct weir_join_row){.hash = weir_hash(key, n),
				      .time = time,
				      .key = key,
				      .key_bytes = n,
				      .row = data,
				      .row_bytes = number % 5 == 0 ? 0 : 8};
}

static void put(struct rig *rg, uint32_t k, int64_t time, bool deletes, int64_t low)
{
	struct twin *tw = &rg->twin[k];
	uint32_t at = tw->count, gone = 0;
	struct weir_join_row r = row_of(k, time, ++rg->number);
	weir_versions_put(rg->sl, &r, deletes, low);
	for (; at > 0 && tw->v[at - 1].time > time; at--)
		;
	memmove(&tw->v[at + 1], &tw->v[at], (tw->count - at) * sizeof *tw->v);
	tw->v[at] = (struct version){time, rg->number, deletes};
	assert_true(++tw->count < VERSIONS_MAX);
	if (low == WEIR_TIME_UNSET)
		return;
	while (gone + 1 < tw->count && tw->v[gone + 1].time <= low)
		gone++;
	memmove(tw->v, tw->v + gone, (tw->count - gone) * sizeof *tw->v);
	tw->count -= gone;
}

static void check_find(struct rig *rg, uint32_t k, int64_t time)
{
	const struct twin *tw = &rg->twin[k];
	uint32_t at = tw->count;
	struct weir_join_row r = row_of(k, 0, 0), got;
	while (at > 0 && tw->v[at - 1].time > time)
		at--;
	bool there = at > 0 && !tw->v[at - 1].deletes;
	assert_int_equal(weir_versions_find(rg->sl, &r, time, &got), there);
	if (!there)
		return;
	assert_int_equal(got.time, tw->v[at - 1].time);
	assert_int_equal(got.row_bytes, tw->v[at - 1].number % 5 == 0 ? 0 : 8);
	if (got.row_bytes != 0)
		assert_int_equal(weir_load_le64(got.row), tw->v[at - 1].number);
}

/* What is kept is what the twin has, and histories are of keys that have some, with all of it, and are accounted for.
 */
static void check_kept(struct rig *rg)
{
	uint64_t entries = 0, bytes = 0;
	for (uint32_t k = 0; k < KEYS; k++)
		entries += rg->twin[k].count;
	assert_int_equal(weir_slot_entries(rg->sl), entries);
	const struct weir_index *ix = &rg->sl->histories;
	for (uint32_t i = 0; ix->slot != NULL && i <= ix->mask; i++) {
		if (ix->slot[i] <= WEIR_INDEX_REMOVED)
			continue;
		const struct weir_history *h = (const struct weir_history *)(const void *)weir_index_entry(ix->slot[i]);
		const struct weir_buffered *newest = weir_history_newest(h);
		uint32_t n;
		const uint8_t *key = weir_entry_key(&rg->def, &newest->e, &n);
		const struct twin *tw = &rg->twin[key[1] - 'a'];
		assert_int_equal(h->count, tw->count);
		assert_true(h->count >= 8 && h->e.hash == newest->e.hash);
		assert_true((newest->e.flags & WEIR_ENTRY_HISTORY) != 0);
		bytes += weir_history_bytes(h);
	}
	assert_int_equal(rg->sl->history_bytes, bytes);
	assert_true(bytes <= entries * (512 / 15 + 6) + KEYS * 1024);
	assert_true(weir_slot_bytes(rg->sl) > bytes);
}

/* ---- the changelog ---- */

static void log_body(struct rig *rg, uint32_t at, const uint8_t *body, uint32_t bytes)
{
	assert_true(at < BODIES_MAX);
	rg->body[at].bytes = 0;
	if (body != NULL)
		weir_buf_put(&rg->body[at], body, bytes);
	rg->written[at] = ++rg->writes;
}
static void log_pack(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes)
{
	(void)slot;
	assert_true(k < BODIES_MAX / 2);
	((struct rig *)ctx)->pack_bytes += bytes;
	log_body(ctx, k, body, bytes);
}
static void log_page(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes)
{
	(void)slot;
	log_body(ctx, BODIES_MAX / 2 + page * 4 + part, body, bytes);
}

/* Bytes of what has changed. */
static uint64_t barrier(struct rig *rg)
{
	struct weir_delta_sink sink = {.ctx = rg, .pack = log_pack, .page = log_page};
	rg->pack_bytes = 0;
	(void)weir_slot_barrier(rg->sl, ++rg->epoch, &sink);
	weir_slot_committed(rg->sl, rg->epoch);
	return rg->pack_bytes;
}

static int by_written(const void *a, const void *b, void *ctx)
{
	const struct rig *rg = ctx;
	uint64_t x = rg->written[*(const uint32_t *)a], y = rg->written[*(const uint32_t *)b];
	return (x > y) - (x < y);
}

/* A new slot from what the barriers wrote. */
static void restore(struct rig *rg)
{
	struct weir_buf saved = {0};
	static uint32_t order[BODIES_MAX];
	uint32_t n = 0;
	(void)barrier(rg);
	weir_slot_save(rg->sl, &saved);
	weir_slot_destroy(rg->sl);
	assert_int_equal(weir_arena_bytes(rg->ar), 0);
	weir_arena_destroy(rg->ar);
	slot_create(rg);
	assert_int_equal(weir_slot_load(rg->sl, saved.data, saved.bytes, NULL), WEIR_OK);
	weir_buf_fini(&saved);
	for (uint32_t i = 0; i < BODIES_MAX; i++)
		if (rg->body[i].bytes != 0)
			order[n++] = i;
	qsort_r(order, n, sizeof *order, by_written, rg);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = order[i], page = at - BODIES_MAX / 2;
		const struct weir_buf *b = &rg->body[at];
		if (at < BODIES_MAX / 2)
			assert_int_equal(weir_slot_restore_pack(rg->sl, at, b->data, b->bytes, NULL), WEIR_OK);
		else
			assert_int_equal(weir_slot_restore_page(rg->sl, page / 4, page % 4, b->data, b->bytes, NULL),
					 WEIR_OK);
	}
	assert_int_equal(weir_slot_restore_finish(rg->sl, NULL), WEIR_OK);
	assert_int_equal(rg->sl->history_bytes, 0);
}

/* ---- rows that wait ---- */

/* A row as older builds kept it: in the list of its key, which the index of its generation leads to. It was put last.
 */
static void keep_in_list(struct rig *rg, int64_t time, uint32_t number)
{
	uint32_t at = weir_slot_search(rg->sl, (time >> rg->def.bucket_log2) * 2);
	struct weir_gen *g = rg->sl->gens[at].g;
	for (uint32_t no = g->page_first; no != 0; no = rg->sl->pages.page[no].next) {
		const struct weir_page *p = &rg->sl->pages.page[no];
		for (uint32_t i = WEIR_PAGE_HEAD; i < p->used;) {
			struct weir_buffered *bf = (struct weir_buffered *)(void *)(p->base + i);
			uint32_t n;
			const uint8_t *key = weir_entry_key(&rg->def, &bf->e, &n);
			i += (uint32_t)weir_entry_bytes(&rg->def, &bf->e);
			if (weir_load_le64(key + n) != number)
				continue;
			bf->e.flags &= (uint8_t)~WEIR_ENTRY_DEFERRED;
			bf->older = 0;
			weir_join_list_add(rg->sl, g, bf, true);
			return;
		}
	}
	fail();
}

static void wait_for(struct rig *rg, uint32_t k, int64_t time, bool in_list)
{
	struct weir_join_row r = row_of(k, time, ++rg->number);
	r.row_bytes = 8;
	weir_join_buffer_put(rg->sl, 0, &r, false);
	if (in_list)
		keep_in_list(rg, time, rg->number);
	assert_true(rg->waiting_count < VERSIONS_MAX);
	rg->waiting[rg->waiting_count++] = (struct waiting){time, k, rg->number};
}

static int by_leaving(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* All that lie before time leave: by time, key and arrival. */
static void take(struct rig *rg, int64_t time, bool all)
{
	struct weir_buf found = {0};
	uint32_t kept = 0, n = 0;
	struct waiting *leaving = weir_xmalloc((rg->waiting_count + 1) * sizeof *leaving);
	for (uint32_t i = 0; i < rg->waiting_count; i++) {
		if (all || rg->waiting[i].time < time)
			leaving[n++] = rg->waiting[i];
		else
			rg->waiting[kept++] = rg->waiting[i];
	}
	rg->waiting_count = kept;
	qsort(leaving, n, sizeof *leaving, by_leaving);
	weir_join_take_final(rg->sl, time, all, &found);
	assert_int_equal(found.bytes / sizeof(struct weir_join_found), n);
	for (uint32_t i = 0; i < n; i++) {
		struct weir_join_row r;
		weir_join_buffer_get(&rg->def, &((const struct weir_join_found *)(const void *)found.data)[i], &r);
		assert_int_equal(weir_load_le64(r.row), leaving[i].number);
		assert_int_equal(r.time, leaving[i].time);
		assert_int_equal(r.key[1], 'a' + leaving[i].key);
	}
	weir_join_drop(rg->sl, time);
	free(leaving);
	weir_buf_fini(&found);
}

/* ---- tests ---- */

static void run(uint64_t seed)
{
	struct rig *rg = rig_create();
	rng_state = seed * 7919 + 1;
	printf("VERSIONS_SEED=%llu\n", (unsigned long long)seed);
	/* How far apart updates lie, how late some are, how much is kept; keys are of very different numbers. */
	uint32_t step = 1 + below(4), late = below(40), late_by = 1u << below(12), keep = 1u << (3 + below(10));
	uint32_t ops = 2000 + below(4000), keys = 1 + below(KEYS), restores = below(4);
	int64_t now = 0, low = WEIR_TIME_UNSET;
	for (uint32_t i = 0; i < ops; i++) {
		uint32_t k = below(3) == 0 ? below(keys) : below(1 + keys / 6);
		if (keys == KEYS && below(40) == 0)
			k = KEY_LONG;
		now += below(step + 1);
		if (i > ops / 5)
			low = now - keep;
		if (below(4) != 0)
			put(rg, k, below(100) < late ? now - (int64_t)below(late_by) : now, below(9) == 0, low);
		check_find(rg, k, now - (int64_t)below(late_by + keep));
		check_find(rg, below(KEYS), now - (int64_t)below(2 * keep));
		if (rg->twin[k].count != 0)
			check_find(rg, k, rg->twin[k].v[below(rg->twin[k].count)].time - (int64_t)below(2));
		if (below(200) == 0)
			(void)barrier(rg);
		if (below(ops) < restores)
			restore(rg);
		if (i % 64 == 0)
			check_kept(rg);
	}
	check_kept(rg);
	restore(rg);
	check_kept(rg);
	for (uint32_t k = 0; k < KEYS; k++)
		for (uint32_t i = 0; i < rg->twin[k].count; i++)
			check_find(rg, k, rg->twin[k].v[i].time - (int64_t)below(2));
	check_kept(rg);
	/* All but the newest leave, and histories with them. */
	for (uint32_t k = 0; k < KEYS; k++)
		put(rg, k, now + 1, false, now + 1);
	check_kept(rg);
	assert_int_equal(weir_slot_entries(rg->sl), KEYS);
	assert_int_equal(rg->sl->history_bytes, 0);
	rig_destroy(rg);
}

static void test_against_the_twin(void **state)
{
	(void)state;
	const char *seed = getenv("VERSIONS_SEED"), *runs = getenv("VERSIONS_RUNS");
	uint64_t first = seed != NULL ? strtoull(seed, NULL, 0) : 1;
	uint64_t count = runs != NULL ? strtoull(runs, NULL, 0) : seed != NULL ? 1 : 60;
	for (uint64_t i = 0; i < count; i++)
		run(first + i);
}

static void run_waiting(uint64_t seed)
{
	struct rig *rg = rig_create();
	rng_state = seed * 7919 + 1;
	printf("VERSIONS_SEED=%llu\n", (unsigned long long)seed);
	/* How far apart rows lie, how late some are, how many share a time. */
	uint32_t step = 1 + below(50), late_by = 1u << below(16), tie = 1u << below(12);
	uint32_t ops = 500 + below(2500), keys = 1 + below(KEYS), restores = 1 + below(4), older = below(2) * ops / 3;
	int64_t now = -(int64_t)below(1 << 16), low = now - (1 << 16);
	for (uint32_t i = 0; i < ops; i++) {
		uint32_t k = keys == KEYS && below(40) == 0 ? KEY_LONG : below(1 + below(keys));
		int64_t time = (now - (int64_t)below(late_by)) / tie * tie;
		now += below(2 * step);
		wait_for(rg, k, time > low ? time : low, i < older);
		if (below(10) == 0)
			put(rg, k, now, false, WEIR_TIME_UNSET);
		if (below(200) == 0) {
			low = weir_max_i64(low, now - (int64_t)below(2 * late_by));
			take(rg, low, false);
		}
		if (below(100) == 0)
			(void)barrier(rg);
		if (below(ops) < restores || i + 1 == older)
			restore(rg);
	}
	take(rg, now, false);
	restore(rg);
	take(rg, now + 1, true);
	assert_int_equal(rg->waiting_count, 0);
	rig_destroy(rg);
}

static void test_rows_that_wait_against_the_twin(void **state)
{
	(void)state;
	const char *seed = getenv("VERSIONS_SEED"), *runs = getenv("VERSIONS_RUNS");
	uint64_t first = seed != NULL ? strtoull(seed, NULL, 0) : 1;
	uint64_t count = runs != NULL ? strtoull(runs, NULL, 0) : seed != NULL ? 1 : 100;
	for (uint64_t i = 0; i < count; i++)
		run_waiting(first + i);
}

/* However many of its key wait, a row that comes late among them touches nothing but its own place. */
static void test_a_row_that_waits_is_logged_alone(void **state)
{
	(void)state;
	struct rig *rg = rig_create();
	for (uint32_t i = 0; i < 10000; i++)
		wait_for(rg, 3, i, false);
	(void)barrier(rg);
	wait_for(rg, 3, 5000, false);
	assert_in_range(barrier(rg), 1, 130);
	/* Nor does it take an index. */
	for (uint32_t i = 0; i < rg->sl->gen_count; i++)
		assert_true(rg->sl->gens[i].start == 1 || rg->sl->gens[i].g->ix.used == 0);
	take(rg, 5001, false);
	restore(rg);
	take(rg, 0, true);
	rig_destroy(rg);
}

/* An update says no more to the changelog than itself and what it touches, however many there are. */
static void test_an_update_is_logged_alone(void **state)
{
	(void)state;
	struct rig *rg = rig_create();
	for (uint32_t i = 0; i < 10000; i++)
		put(rg, 3, i, false, WEIR_TIME_UNSET);
	check_find(rg, 3, 5000);
	assert_true(rg->sl->history_bytes != 0);
	(void)barrier(rg);
	put(rg, 3, 10000, false, WEIR_TIME_UNSET);
	assert_in_range(barrier(rg), 1, 130); /* it */
	put(rg, 3, 5000, false, WEIR_TIME_UNSET);
	assert_in_range(barrier(rg), 1, 220); /* it and the next newer one, which leads to it */
	put(rg, 3, 10001, false, 1);
	assert_in_range(barrier(rg), 1, 300); /* it, the one that leaves and the one that is the oldest now */
	check_find(rg, 3, 0);
	check_find(rg, 3, 1);
	check_find(rg, 3, 5000);
	restore(rg);
	check_find(rg, 3, 5000);
	check_find(rg, 3, 9999);
	check_kept(rg);
	rig_destroy(rg);
}

/* What a long list costs beside its versions; nothing where no search has passed many of them. */
static void test_memory(void **state)
{
	(void)state;
	struct rig *rg = rig_create();
	for (uint32_t i = 0; i < 16; i++)
		for (uint32_t k = 0; k < KEYS; k++)
			put(rg, k, i, false, WEIR_TIME_UNSET);
	for (uint32_t k = 0; k < KEYS; k++)
		check_find(rg, k, -1);
	assert_int_equal(rg->sl->history_bytes, 0);
	assert_null(rg->sl->histories.slot);
	for (uint32_t i = 16; i < 10016; i++)
		put(rg, 5, i, false, WEIR_TIME_UNSET);
	uint64_t before = weir_slot_bytes(rg->sl);
	check_find(rg, 5, 100);
	assert_in_range(rg->sl->history_bytes, 10016 * 16, 10016 * 18);
	/* And the index of histories, which begins with 16 places. */
	assert_in_range(weir_slot_bytes(rg->sl) - before, rg->sl->history_bytes, rg->sl->history_bytes + 512);
	check_kept(rg);
	rig_destroy(rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_the_twin),
		cmocka_unit_test(test_rows_that_wait_against_the_twin),
		cmocka_unit_test(test_an_update_is_logged_alone),
		cmocka_unit_test(test_a_row_that_waits_is_logged_alone),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
