/* test_join_state.c: join buffers and tables: what is found, in which order, what leaves, what a record costs, and that
 * a restored slot goes on as the one it was. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/join_state.h"
#include "hotpath/state/versions.h"

static const struct weir_type text_type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};

struct rig {
	struct weir_state_def def;
	struct weir_state_side side[2];
	struct weir_agg row;
	struct weir_arena *ar;
	struct weir_slot *sl;
	struct weir_buf packs[256]; /* the changelog: bodies by number, as they were written */
	struct weir_buf pages[256];
	uint32_t order[4096], order_count; /* page: 256 + number */
	uint64_t epoch;
	uint64_t logged; /* bytes of all bodies */
};

static void rig_init(struct rig *rg, const struct weir_state_def *def, bool l_outer, bool r_outer, bool tables)
{
	memset(rg, 0, sizeof *rg);
	rg->def = *def;
	rg->side[0] = (struct weir_state_side){.outer = l_outer, .table = tables};
	rg->side[1] = (struct weir_state_side){.outer = r_outer, .table = tables || def->versioned};
	rg->def.name = "j";
	rg->def.kind = WEIR_STATE_JOIN;
	rg->def.key_count = 1;
	rg->def.key_types = &text_type;
	rg->def.side_count = 2;
	rg->def.sides = rg->side;
	weir_state_row_agg(&rg->row);
	rg->def.aggs = &rg->row;
	rg->def.agg_count = tables;
	assert_int_equal(weir_state_def_init(&rg->def, NULL), WEIR_OK);
	rg->ar = weir_arena_create();
	rg->sl = weir_slot_create(&rg->def, 0, rg->ar);
}

static void rig_fini(struct rig *rg)
{
	weir_slot_destroy(rg->sl);
	weir_arena_destroy(rg->ar);
	for (int i = 0; i < 256; i++) {
		weir_buf_fini(&rg->packs[i]);
		weir_buf_fini(&rg->pages[i]);
	}
}

/* A row whose bytes are its number; keys are "key-<k>". Lives until the next call. */
static struct weir_join_row row_of(uint32_t k, int64_t time, uint32_t number)
{
	static uint8_t key[64], data[8];
	uint32_t n = (uint32_t)snprintf((char *)key + 1, sizeof key - 1, "key-%06u", k) & 31;
	key[0] = 1;
	weir_store_le64(data, number);
	return (struct weir_join_row){.hash = weir_hash(key, n + 2),
				      .time = time,
				      .key = key,
				      .key_bytes = n + 2,
				      .row = data,
				      .row_bytes = 8};
}

static void put(struct rig *rg, uint32_t side, uint32_t k, int64_t time, uint32_t number, bool matched)
{
	struct weir_join_row r = row_of(k, time, number);
	weir_join_buffer_put(rg->sl, side, &r, matched);
}

/* Numbers of what is found, as text. */
static const char *found(struct rig *rg, uint32_t side, uint32_t k, int64_t from, int64_t to, int64_t task)
{
	static char text[8192];
	struct weir_buf list = {0};
	struct weir_join_row r = row_of(k, 0, 0), got;
	size_t at = 0;
	text[0] = 0;
	weir_join_buffer_find(rg->sl, side, &r, from, to, task, &list);
	const struct weir_join_found *f = (const struct weir_join_found *)(const void *)list.data;
	for (size_t i = 0; i < list.bytes / sizeof *f; i++) {
		weir_join_buffer_get(&rg->def, &f[i], &got);
		assert_int_equal(got.row_bytes, 8);
		at += (size_t)snprintf(text + at, sizeof text - at, "%u ", (unsigned)weir_load_le64(got.row));
	}
	weir_buf_fini(&list);
	return text;
}

static const char *finals(struct rig *rg, int64_t task, bool all)
{
	static char text[8192];
	struct weir_buf list = {0};
	struct weir_join_row got;
	size_t at = 0;
	text[0] = 0;
	weir_join_take_final(rg->sl, task, all, &list);
	const struct weir_join_found *f = (const struct weir_join_found *)(const void *)list.data;
	for (size_t i = 0; i < list.bytes / sizeof *f; i++) {
		weir_join_buffer_get(&rg->def, &f[i], &got);
		at += (size_t)snprintf(text + at, sizeof text - at, "%u ", (unsigned)weir_load_le64(got.row));
	}
	weir_buf_fini(&list);
	return text;
}

static void log_pack(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes)
{
	struct rig *rg = ctx;
	(void)slot;
	assert_true(k < 256 && body != NULL && rg->order_count < 4096);
	rg->logged += bytes;
	rg->packs[k].bytes = 0;
	weir_buf_put(&rg->packs[k], body, bytes);
	rg->order[rg->order_count++] = k;
}

static void log_page(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes)
{
	struct rig *rg = ctx;
	(void)slot;
	assert_true(page < 256 && part == 0 && body != NULL && rg->order_count < 4096);
	rg->logged += bytes;
	rg->pages[page].bytes = 0;
	weir_buf_put(&rg->pages[page], body, bytes);
	rg->order[rg->order_count++] = 256 + page;
}

static void barrier(struct rig *rg)
{
	struct weir_delta_sink sink = {.ctx = rg, .pack = log_pack, .page = log_page};
	(void)weir_slot_barrier(rg->sl, ++rg->epoch, &sink);
	weir_slot_committed(rg->sl, rg->epoch);
}

/* The slot again, from what the barriers wrote (of each number the newest). */
static enum weir_err restore(struct rig *rg)
{
	struct weir_buf saved = {0};
	weir_slot_save(rg->sl, &saved);
	weir_slot_destroy(rg->sl);
	rg->sl = weir_slot_create(&rg->def, 0, rg->ar);
	enum weir_err err = weir_slot_load(rg->sl, saved.data, saved.bytes, NULL);
	weir_buf_fini(&saved);
	for (uint32_t i = 0; i < rg->order_count && err == WEIR_OK; i++) {
		uint32_t id = rg->order[i];
		bool newest = true;
		for (uint32_t k = i + 1; k < rg->order_count; k++)
			newest &= rg->order[k] != id;
		if (!newest)
			continue;
		err = id < 256 ? weir_slot_restore_pack(rg->sl, id, rg->packs[id].data, rg->packs[id].bytes, NULL)
			       : weir_slot_restore_page(rg->sl, id - 256, 0, rg->pages[id - 256].data,
							rg->pages[id - 256].bytes, NULL);
	}
	return err == WEIR_OK ? weir_slot_restore_finish(rg->sl, NULL) : err;
}

static const struct weir_state_def within = {.within = true, .before_ms = 3000, .after_ms = 5000, .grace_ms = 100};

static void test_order_is_time_then_arrival(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg, &within, false, false, false);
	put(&rg, 1, 7, 5000, 1, false);
	put(&rg, 1, 7, 3000, 2, false);
	put(&rg, 1, 7, 5000, 3, false);
	put(&rg, 1, 7, 9000, 4, false); /* of another generation */
	put(&rg, 1, 8, 4000, 5, false);
	put(&rg, 0, 7, 4000, 6, false); /* of the other side */
	put(&rg, 1, 7, 4000, 7, false);
	assert_string_equal(found(&rg, 1, 7, 0, 20000, 0), "2 7 1 3 4 ");
	assert_string_equal(found(&rg, 1, 7, 4000, 5000, 0), "7 1 3 ");
	assert_string_equal(found(&rg, 1, 7, 5001, 8999, 0), "");
	assert_string_equal(found(&rg, 0, 7, 0, 20000, 0), "6 ");
	assert_string_equal(found(&rg, 1, 9, 0, 20000, 0), "");
	/* 3000 + 8100 is passed by 11101: it is no longer there. */
	assert_string_equal(found(&rg, 1, 7, 0, 20000, 11100), "2 7 1 3 4 ");
	assert_string_equal(found(&rg, 1, 7, 0, 20000, 11101), "7 1 3 4 ");
	rig_fini(&rg);
}

/* What came in an epoch goes to the changelog once, and what is added to a page later without the rest of it. */
static void test_records_are_logged_once(void **state)
{
	(void)state;
	enum { FIRST = 700, MORE = 20, BYTES = 40 }; /* of an entry */
	struct rig rg;
	rig_init(&rg, &within, false, true, false);
	for (uint32_t i = 0; i < FIRST; i++)
		put(&rg, i % 2, i / 2, 1000 + i, i, false);
	barrier(&rg);
	assert_true(rg.logged >= FIRST * BYTES && rg.logged < FIRST * BYTES * 3 / 2);
	uint64_t before = rg.logged;
	for (uint32_t i = 0; i < MORE; i++)
		put(&rg, i % 2, 1000 + i, 2000, i, false);
	barrier(&rg);
	/* A pack, and the images of the two pages that are not full. */
	assert_true(rg.logged > before + MORE * BYTES && rg.logged < before + 3 * 8192);
	/* A match of an outer side changes a record that is known: it alone is written, and pages whose turn it is. */
	struct weir_join_row r = row_of(3, 0, 0);
	struct weir_buf list = {0};
	weir_join_buffer_find(rg.sl, 1, &r, 0, 9000, 0, &list);
	assert_int_equal(list.bytes, sizeof(struct weir_join_found));
	weir_join_buffer_match(rg.sl, ((struct weir_join_found *)(void *)list.data)->bf);
	before = rg.logged;
	barrier(&rg);
	assert_true(rg.logged > before && rg.logged < before + 3 * 8192);
	for (before = rg.logged + 1; before != rg.logged;) { /* until all images have gone round */
		before = rg.logged;
		barrier(&rg);
	}
	assert_int_equal(restore(&rg), WEIR_OK);
	for (uint32_t i = 0; i < FIRST; i++) {
		char want[16];
		snprintf(want, sizeof want, "%u ", i);
		assert_string_equal(found(&rg, i % 2, i / 2, 0, 9000, 0), want);
	}
	for (uint32_t i = 0; i < MORE; i++)
		assert_string_not_equal(found(&rg, i % 2, 1000 + i, 0, 9000, 0), "");
	weir_buf_fini(&list);
	rig_fini(&rg);
}

static void test_what_is_final_leaves_once(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg, &within, true, false, false);
	put(&rg, 0, 2, 1000, 1, false);
	put(&rg, 0, 1, 1000, 2, false);
	put(&rg, 0, 1, 1000, 3, false);
	put(&rg, 0, 1, 500, 4, true);
	put(&rg, 0, 1, 2000, 5, false);
	assert_int_equal(weir_slot_next_close(rg.sl), 6101);
	assert_string_equal(finals(&rg, 6100, false), "");
	/* Final, though it has not left yet: no look-up finds it. */
	assert_string_equal(found(&rg, 0, 1, 0, 9000, 6100), "4 2 3 5 ");
	assert_string_equal(found(&rg, 0, 1, 0, 9000, 6101), "4 5 ");
	assert_string_equal(finals(&rg, 6101, false), "2 3 1 ");
	assert_string_equal(finals(&rg, 6101, false), "");
	assert_string_equal(found(&rg, 0, 1, 0, 9000, 6000), "4 5 ");
	assert_string_equal(finals(&rg, 0, true), "5 ");
	rig_fini(&rg);
}

static void test_generations_go_as_a_whole(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg, &within, false, false, false);
	for (uint32_t i = 0; i < 5000; i++)
		put(&rg, i % 2, i, i * 10, i, false);
	uint64_t most = weir_slot_bytes(rg.sl);
	assert_int_equal(weir_slot_entries(rg.sl), 5000);
	weir_join_drop(rg.sl, 30000);
	assert_true(weir_slot_entries(rg.sl) < 3500 && weir_slot_entries(rg.sl) >= 2810); /* 21,900 and later stay */
	weir_join_drop(rg.sl, 1000000);
	assert_int_equal(weir_slot_entries(rg.sl), 0);
	assert_true(weir_slot_bytes(rg.sl) < most / 10);
	rig_fini(&rg);
}

static void test_a_record_costs_at_most_48_bytes_beside_its_columns(void **state)
{
	(void)state;
	for (uint32_t n = 1000; n <= 300000; n = n * 5 / 3) {
		struct rig rg;
		static const struct weir_state_def hour = {
			.within = true, .before_ms = 0, .after_ms = 3600000, .grace_ms = 5000};
		rig_init(&rg, &hour, false, false, false);
		for (uint32_t i = 0; i < n; i++)
			put(&rg, 0, i, i, i, false);
		/* Columns: a string of 10 bytes and a row of 8. */
		uint64_t beside = weir_slot_bytes(rg.sl) / n - 18;
		if (beside > 48)
			fail_msg("%u records: %u bytes each beside their columns", n, (unsigned)beside);
		rig_fini(&rg);
	}
}

static void test_a_restored_buffer_goes_on(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg, &within, true, true, false);
	for (uint32_t i = 0; i < 600; i++) {
		put(&rg, i % 2, i % 40, (int64_t)(i * 7919 % 9000), i, i % 3 == 0);
		if (i % 100 == 50)
			barrier(&rg);
	}
	(void)finals(&rg, 6500, false);
	barrier(&rg);
	static char before[3][8192];
	snprintf(before[0], 8192, "%s", found(&rg, 0, 4, 0, 9000, 6500));
	snprintf(before[1], 8192, "%s", found(&rg, 1, 7, 0, 9000, 6500));
	assert_int_equal(restore(&rg), WEIR_OK);
	assert_string_equal(found(&rg, 0, 4, 0, 9000, 6500), before[0]);
	assert_string_equal(found(&rg, 1, 7, 0, 9000, 6500), before[1]);
	assert_true(strlen(before[0]) > 10);
	/* It takes more, and what waits still waits, once. */
	snprintf(before[2], 8192, "%s", finals(&rg, 6600, false));
	assert_true(strlen(before[2]) > 2);
	assert_string_equal(finals(&rg, 6600, false), "");
	put(&rg, 0, 4, 8999, 1000, true);
	barrier(&rg);
	assert_int_equal(restore(&rg), WEIR_OK);
	assert_string_equal(finals(&rg, 6600, false), "");
	rig_fini(&rg);
}

/* Pairs as text: number of the row whose turn it is, then that of its match. */
static void put_pair(struct weir_buf *out, uint64_t own, const struct weir_buffered *other,
		     const struct weir_state_def *def)
{
	uint32_t n;
	const uint8_t *key = weir_entry_key(def, &other->e, &n);
	weir_buf_printf(out, "%u-%u ", (unsigned)own, (unsigned)weir_load_le64(key + n));
}

/* Turns t[0..count), whose rows' numbers begin at first: met as far as that goes, looked at closer where it asks. */
static void meet(struct rig *rg, const struct weir_join_turn *t, uint32_t count, const int64_t *task, uint32_t first,
		 uint32_t room, struct weir_buf *out, uint32_t *refused)
{
	struct weir_join_pair pairs[8];
	struct weir_join_meeting mt = {.next = t, .end = t + count, .pairs = pairs, .task_max = task[count - 1]};
	while (mt.next < mt.end) {
		mt.count = 0;
		mt.room = room;
		bool closer = weir_join_meet(rg->sl, &mt);
		for (uint32_t i = 0; i < mt.count; i++) {
			uint32_t n;
			const uint8_t *key = weir_entry_key(&rg->def, &pairs[i].own->e, &n);
			put_pair(out, weir_load_le64(key + n), pairs[i].other, &rg->def);
		}
		if (!closer)
			continue;
		uint32_t at = (uint32_t)(mt.next++ - t);
		struct weir_buf list = {0};
		if (weir_join_is_late(&rg->def, t[at].time, task[at])) {
			weir_join_buffer_refuse(rg->sl, &t[at]);
			++*refused;
		} else {
			(void)weir_join_buffer_enter(rg->sl, &t[at], task[at], &list);
		}
		const struct weir_join_found *f = (const struct weir_join_found *)(const void *)list.data;
		for (uint32_t i = 0; i < list.bytes / sizeof *f; i++)
			put_pair(out, first + at, f[i].bf, &rg->def);
		weir_buf_fini(&list);
	}
}

/* Rows that are stored when they come and enter at their turn find what they would if they were put then. disorder: how
 * far, in ms, times lie around that of the turn. Returns how many rows of the other side were deferred at the end of
 * rounds, at most. */
static uint32_t find_the_same(const struct weir_state_def *def, uint32_t disorder, uint32_t late_of)
{
	enum { ROUNDS = 60, ROWS = 300 };
	uint32_t deferred_most = 0;
	struct rig rg, twin;
	struct weir_buf got = {0}, expected = {0};
	uint64_t seed = 7;
	uint32_t refused = 0, number = 0;
	uint64_t bytes = 0;
	int64_t now = 0;
	rig_init(&rg, def, false, false, false);
	rig_init(&twin, def, false, false, false);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		static struct weir_join_turn t[ROWS + WEIR_JOIN_AHEAD];
		static int64_t task[ROWS];
		uint32_t keys = round % 3 == 0 ? 5 : 500;
		struct weir_join_place pc[2] = {{.sl = rg.sl, .side = 0}, {.sl = rg.sl, .side = 1}};
		got.bytes = expected.bytes = 0;
		for (uint32_t i = 0; i < ROWS; i++) {
			seed = weir_hash(&seed, sizeof seed);
			uint32_t side = seed % 2, k = (uint32_t)(seed >> 8) % keys;
			/* Now and then one is late, or of a generation that has gone or is still to come. */
			int64_t time = now + (int64_t)((seed >> 32) % (disorder + 1)) -
				       (late_of != 0 && seed % late_of == 0 ? 12000 : 0);
			struct weir_join_row r = row_of(k, time = weir_max_i64(time, 0), number + i);
			uint8_t *key;
			if (pc[1 - side].page) /* both may write to the directory of pages */
				weir_join_place_close(&pc[1 - side]);
			uint64_t place = weir_join_place_take(&pc[side], time, r.hash, r.key_bytes, r.row_bytes, &key);
			memcpy(key, r.key, r.key_bytes);
			memcpy(key + r.key_bytes, r.row, r.row_bytes);
			t[i] = (struct weir_join_turn){place, time, weir_hash_index(r.hash), i | side << 31};
			task[i] = now;
			now += (int64_t)(seed >> 20) % 20;
		}
		weir_join_place_close(&pc[0]);
		weir_join_place_close(&pc[1]);
		for (uint32_t i = 0; i < ROWS; i++) {
			uint32_t n;
			const uint8_t *key = weir_entry_key(&rg.def, &weir_join_turn_record(rg.sl, &t[i])->e, &n);
			struct weir_join_row r = {weir_hash(key, n), t[i].time, key, n, 8, key + n};
			struct weir_buf list = {0};
			if (weir_join_is_late(&twin.def, t[i].time, task[i]))
				continue;
			weir_join_buffer_find_matches(twin.sl, t[i].turn >> 31, &r, task[i], &list);
			const struct weir_join_found *f = (const struct weir_join_found *)(const void *)list.data;
			for (uint32_t m = 0; m < list.bytes / sizeof *f; m++)
				put_pair(&expected, number + i, f[m].bf, &twin.def);
			weir_join_buffer_put(twin.sl, t[i].turn >> 31, &r, list.bytes != 0);
			weir_buf_fini(&list);
		}
		meet(&rg, t, ROWS, task, number, 1 + round % 8, &got, &refused);
		assert_int_equal(got.bytes, expected.bytes);
		assert_memory_equal(got.data, expected.data, got.bytes);
		bytes += got.bytes;
		assert_int_equal(weir_slot_entries(rg.sl), weir_slot_entries(twin.sl));
		weir_join_drop(rg.sl, now);
		weir_join_drop(twin.sl, now);
		number += ROWS;
		for (uint32_t c = 0; rg.sl->joined != NULL && c < WEIR_JOIN_CODES; c++)
			deferred_most += weir_join_is_deferring(rg.sl->joined, c) && rg.sl->joined->blocks != 0;
		if (round % 5 != 4)
			continue;
		barrier(&rg);
		assert_int_equal(restore(&rg), WEIR_OK);
		assert_int_equal(weir_slot_entries(rg.sl), weir_slot_entries(twin.sl));
	}
	assert_true(bytes > (def->before_ms + def->after_ms > 0 ? 100000 : 100));
	assert_true(late_of == 0 || refused > 50);
	weir_buf_fini(&got);
	weir_buf_fini(&expected);
	rig_fini(&rg);
	rig_fini(&twin);
	return deferred_most;
}

static void test_rows_stored_before_their_turn_find_the_same(void **state)
{
	(void)state;
	/* Of each form one side's records, or none, are deferred (join_index.h). */
	static const struct weir_state_side sides[2];
	static const struct {
		int64_t before, after, grace;
	} forms[] = {{2000, 3000, 1000}, {0, 4000, 1000}, {4000, 0, 1000},
		     {4000, -300, 1000}, {0, 0, 4000},    {0, 9000, 1000}};
	for (uint32_t f = 0; f < WEIR_COUNT_OF(forms); f++) {
		const struct weir_state_def def = {.kind = WEIR_STATE_JOIN,
						   .within = true,
						   .before_ms = forms[f].before,
						   .after_ms = forms[f].after,
						   .grace_ms = forms[f].grace,
						   .sides = sides};
		bool defers = weir_join_defers(&def, 0) || weir_join_defers(&def, 1);
		assert_int_equal(defers, f != 0 && f != 4);
		for (uint32_t disorder = 0; disorder <= 1600; disorder = disorder * 4 + (disorder == 0)) {
			(void)find_the_same(&def, disorder, 97);
			uint32_t deferred = find_the_same(&def, disorder, 0);
			assert_true(!defers == (deferred == 0));
		}
	}
}

/* Turns a row with key k: how many it meets. */
static size_t turn_one(struct rig *rg, uint32_t side, uint32_t k, int64_t time)
{
	static struct weir_join_turn t[1 + WEIR_JOIN_AHEAD];
	struct weir_join_place pc = {.sl = rg->sl, .side = side};
	struct weir_join_row r = row_of(k, time, 1000 + k);
	struct weir_buf got = {0};
	uint32_t refused = 0, spaces = 0;
	uint8_t *key;
	uint64_t place = weir_join_place_take(&pc, time, r.hash, r.key_bytes, r.row_bytes, &key);
	memcpy(key, r.key, r.key_bytes);
	memcpy(key + r.key_bytes, r.row, r.row_bytes);
	weir_join_place_close(&pc);
	t[0] = (struct weir_join_turn){place, time, weir_hash_index(r.hash), side << 31};
	meet(rg, t, 1, &time, 1000 + k, 8, &got, &refused);
	for (size_t i = 0; i < got.bytes; i++)
		spaces += got.data[i] == ' ';
	weir_buf_fini(&got);
	return spaces;
}

/* Records that were entered, of a side that is deferred else, are found after a restore, too. */
static void test_entered_records_of_a_deferred_side_are_restored(void **state)
{
	(void)state;
	static const struct weir_state_side sides[2];
	const struct weir_state_def def = {
		.kind = WEIR_STATE_JOIN, .within = true, .after_ms = 6000, .grace_ms = 5000, .sides = sides};
	assert_true(weir_join_defers(&def, 1));
	struct rig rg;
	rig_init(&rg, &def, false, false, false);
	for (uint32_t i = 0; i < 40; i++) { /* 20 keys, two records each */
		struct weir_join_row r = row_of(i % 20, 1000 + i * 100, i);
		weir_join_buffer_put(rg.sl, 1, &r, false);
	}
	for (uint32_t k = 0; k < 10; k++)
		assert_int_equal(turn_one(&rg, 0, k, 900), 2);
	barrier(&rg);
	assert_int_equal(restore(&rg), WEIR_OK);
	for (uint32_t k = 10; k < 20; k++)
		assert_int_equal(turn_one(&rg, 0, k, 900), 2);
	rig_fini(&rg);
}

/* Rows of sheets that enter look only for what the index knows to be young enough, entered or not. */
static void test_how_young_a_deferred_side_is_stays_known(void **state)
{
	(void)state;
	static const struct weir_state_side sides[2];
	const struct weir_state_def def = {
		.kind = WEIR_STATE_JOIN, .within = true, .after_ms = 6000, .grace_ms = 5000, .sides = sides};
	struct rig rg;
	rig_init(&rg, &def, false, false, false);
	assert_int_equal(turn_one(&rg, 1, 1, 1000), 0);
	assert_int_equal(rg.sl->joined->deferred_high[1], 1000);
	assert_true(rg.sl->joined->deferring != 0);
	struct weir_join_row r = row_of(2, 1100, 0);
	weir_join_buffer_put(rg.sl, 1, &r, false); /* it is in the index, and so are all of its generation */
	assert_int_equal(rg.sl->joined->deferring, 0);
	for (uint32_t k = 3; k < 40; k++) {
		assert_int_equal(turn_one(&rg, 1, k, 1200 - k), 0);
		assert_int_equal(rg.sl->joined->deferred_high[1], 1197);
	}
	assert_int_equal(turn_one(&rg, 1, 40, 1900), 0);
	assert_int_equal(rg.sl->joined->deferred_high[1], 1900);
	barrier(&rg);
	assert_int_equal(restore(&rg), WEIR_OK);
	assert_int_equal(rg.sl->joined->deferred_high[1], 1900);
	assert_int_equal(turn_one(&rg, 0, 40, 1000), 1);
	rig_fini(&rg);
}

static void test_a_buffer_with_a_wrong_link_is_refused(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg, &within, false, false, false);
	put(&rg, 0, 1, 10, 1, false);
	put(&rg, 0, 1, 20, 2, false);
	barrier(&rg);
	assert_int_equal(restore(&rg), WEIR_OK);
	/* Whatever bytes of the body change, a restore says so or leaves something that can be walked. */
	for (int page = 0; page < 2; page++) {
		struct weir_buf *b = page ? &rg.pages[1] : &rg.packs[0];
		for (size_t at = 0; at < b->bytes; at++) {
			uint8_t was = b->data[at];
			b->data[at] ^= 0x35; /* WEIR_ENTRY_DEFERRED among them */
			if (restore(&rg) == WEIR_OK) {
				struct weir_buf list = {0};
				struct weir_join_row r = row_of(1, 0, 0);
				weir_join_buffer_find(rg.sl, 0, &r, 0, 100, 0, &list);
				assert_true(list.bytes <= 2 * sizeof(struct weir_join_found));
				weir_buf_fini(&list);
			}
			b->data[at] = was;
			weir_slot_destroy(rg.sl);
			rg.sl = weir_slot_create(&rg.def, 0, rg.ar);
			put(&rg, 0, 1, 10, 1, false); /* the marker's windows again */
		}
	}
	rig_fini(&rg);
}

static void test_tables_change_and_come_back(void **state)
{
	(void)state;
	struct rig rg;
	rig_init(&rg, &(struct weir_state_def){0}, true, true, true);
	for (uint32_t i = 0; i < 400; i++) {
		struct weir_join_row r = row_of(i % 50, i, i);
		if (i % 7 == 0)
			weir_join_table_delete(rg.sl, i % 2, &r);
		else
			weir_join_table_put(rg.sl, i % 2, &r);
		if (i % 90 == 40)
			barrier(&rg);
	}
	barrier(&rg);
	for (int round = 0; round < 2; round++) {
		for (uint32_t k = 0; k < 50; k++) {
			struct weir_join_row r = row_of(k, 0, 0), got;
			uint32_t last = 350 + k; /* the last that named it */
			bool there = weir_join_table_find(rg.sl, last % 2, &r, &got);
			assert_int_equal(there, last % 7 != 0);
			if (there) {
				assert_int_equal(got.time, last);
				assert_int_equal(weir_load_le64(got.row), last);
			}
			assert_false(weir_join_table_find(rg.sl, 1 - last % 2, &r, &got));
		}
		assert_int_equal(restore(&rg), WEIR_OK);
	}
	rig_fini(&rg);
}

static void test_versions(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_join_row r, got;
	rig_init(&rg, &(struct weir_state_def){.versioned = true, .grace_ms = 5}, true, false, false);
	for (uint32_t i = 1; i <= 200; i++) {
		r = row_of(1, i * 10, i);
		weir_versions_put(rg.sl, &r, i % 9 == 0, i < 100 ? WEIR_TIME_UNSET : 905);
		if (i % 30 == 0)
			barrier(&rg);
	}
	r = row_of(1, 1005, 7); /* late: between 100 and 101 */
	weir_versions_put(rg.sl, &r, false, 905);
	barrier(&rg);
	for (int round = 0; round < 2; round++) {
		r = row_of(1, 0, 0);
		assert_true(weir_versions_find(rg.sl, &r, 2000, &got) && weir_load_le64(got.row) == 200);
		assert_true(weir_versions_find(rg.sl, &r, 1009, &got) && weir_load_le64(got.row) == 7);
		assert_true(weir_versions_find(rg.sl, &r, 1004, &got) && weir_load_le64(got.row) == 100);
		assert_false(weir_versions_find(rg.sl, &r, 995, &got)); /* 99 is a delete */
		assert_false(weir_versions_find(rg.sl, &r, 899, &got)); /* gone: nobody asks for less than 905 */
		assert_true(weir_slot_entries(rg.sl) < 120);
		assert_int_equal(restore(&rg), WEIR_OK);
	}
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_is_time_then_arrival),
		cmocka_unit_test(test_records_are_logged_once),
		cmocka_unit_test(test_what_is_final_leaves_once),
		cmocka_unit_test(test_generations_go_as_a_whole),
		cmocka_unit_test(test_a_record_costs_at_most_48_bytes_beside_its_columns),
		cmocka_unit_test(test_a_restored_buffer_goes_on),
		cmocka_unit_test(test_rows_stored_before_their_turn_find_the_same),
		cmocka_unit_test(test_entered_records_of_a_deferred_side_are_restored),
		cmocka_unit_test(test_how_young_a_deferred_side_is_stays_known),
		cmocka_unit_test(test_a_buffer_with_a_wrong_link_is_refused),
		cmocka_unit_test(test_tables_change_and_come_back),
		cmocka_unit_test(test_versions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
