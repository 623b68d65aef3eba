/* test_join_lines.c: whatever instruction set looks at an index's lines: sheets enter the same places, rows meet the
 * same records, all that there are, and an index that grows, shrinks and forgets is the same to the last place; among
 * them keys whose hashes differ in few bits, or begin in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/core/arena.h"
#include "hotpath/core/hash.h"
#include "hotpath/state/join_lines.h"
#include "hotpath/state/row.h"

static const char *const names[] = {"plain", "avx2", "avx512"};
enum { VARIANTS = WEIR_COUNT_OF(names), ROWS = 512 };

static const struct weir_type text_type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
static const struct weir_state_side sides[2];

/* The same rows go to a slot for each instruction set. */
struct rig {
	struct weir_state_def def;
	struct weir_arena *ar;
	struct weir_slot *sl[VARIANTS]; /* NULL: not here */
	struct weir_keyed keyed;
	struct weir_col number;
	const struct weir_col *cols[1];
	uint16_t rows[ROWS];
	uint32_t upto[ROWS + 1];
	uint8_t key[ROWS][64];
	uint32_t hash_bits;    /* those of a hash that count */
	uint32_t keys;         /* so many different ones */
	const uint32_t *which; /* NULL: the first ones; else three of four rows are of these */
	uint64_t random;
	uint64_t pairs, closer;
	/* What rows of side 0 entered, hanging by hash from head[] - 1. */
	struct entered {
		uint64_t hash;
		int64_t time;
		uint32_t next;
	} * entered;
	uint32_t entered_count, head[1 << 16];
};
enum { ENTERED_MOST = 1 << 17 };

static uint32_t draw(struct rig *rg, uint32_t below)
{
	rg->random = rg->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((rg->random >> 33) * below >> 31);
}

static void rig_init(struct rig *rg, uint64_t seed)
{
	memset(rg, 0, sizeof *rg);
	rg->random = seed;
	rg->def = (struct weir_state_def){.name = "j",
					  .kind = WEIR_STATE_JOIN,
					  .within = true,
					  .after_ms = 100000,
					  .key_count = 1,
					  .key_types = &text_type,
					  .side_count = 2,
					  .sides = sides};
	assert_int_equal(weir_state_def_init(&rg->def, NULL), WEIR_OK);
	rg->ar = weir_arena_create();
	for (uint32_t v = 0; v < VARIANTS; v++)
		if (weir_join_lines_named(names[v]) != NULL)
			rg->sl[v] = weir_slot_create(&rg->def, 0, rg->ar);
	weir_col_init(&rg->number, WEIR_PHYS_I64);
	rg->cols[0] = &rg->number;
	rg->keyed.cols = rg->cols;
	rg->entered = calloc(ENTERED_MOST, sizeof *rg->entered);
	assert_non_null(rg->entered);
}

static void rig_fini(struct rig *rg)
{
	for (uint32_t v = 0; v < VARIANTS; v++)
		if (rg->sl[v] != NULL)
			weir_slot_destroy(rg->sl[v]);
	weir_col_fini(&rg->number);
	free(rg->entered);
	assert_int_equal(weir_arena_bytes(rg->ar), 0);
	weir_arena_destroy(rg->ar);
}

/* Key k, of 0 to 30 bytes; many differ in one only. Returns how long it is. */
static uint32_t write_key(uint32_t k, uint8_t key[64])
{
	uint32_t bytes = k % 5 == 0 ? k % 31 : 12;
	memset(key, 'k', 64);
	for (uint32_t at = 0; at < bytes && at < 4; at++)
		key[k % 3 == 0 ? at : bytes - 1 - at] = (uint8_t)(k >> 8 * at);
	return bytes;
}

/* All rows of a sheet are of one generation. Of hash_bits more are 0 than by chance. */
static void set_row(struct rig *rg, uint32_t i, int64_t time)
{
	uint32_t k = draw(rg, rg->keys);
	if (rg->which != NULL)
		k = draw(rg, 4) != 0 ? rg->which[k] : draw(rg, 50000);
	uint32_t bytes = write_key(k, rg->key[i]);
	rg->keyed.key[i] = rg->key[i];
	rg->keyed.key_bytes[i] = bytes;
	rg->keyed.hash[i] = weir_hash(rg->key[i], bytes) & (rg->hash_bits | UINT64_C(0xffffffff00000000));
	rg->keyed.time[i] = time;
	if ((time ^ rg->keyed.time[0]) >> rg->def.bucket_log2 != 0)
		rg->keyed.time[i] = rg->keyed.time[0];
	rg->number.i64[i] = (int64_t)k;
	rg->rows[i] = (uint16_t)i;
	memset(rg->key[i] + bytes, draw(rg, 2) ? 0 : 'x', sizeof rg->key[i] - bytes); /* what lies behind it */
}

static void check_same(const struct rig *rg)
{
	const struct weir_join_index *a = rg->sl[0]->joined;
	for (uint32_t v = 1; v < VARIANTS; v++) {
		if (rg->sl[v] == NULL)
			continue;
		const struct weir_join_index *b = rg->sl[v]->joined;
		assert_int_equal(a != NULL, b != NULL);
		if (a == NULL)
			continue;
		assert_int_equal(a->segments, b->segments);
		assert_int_equal(a->line_mask, b->line_mask);
		assert_int_equal(a->used, b->used);
		assert_memory_equal(a->held, b->held, sizeof a->held);
		for (uint32_t s = 0; s < a->segments; s++)
			assert_memory_equal(a->segment[s], b->segment[s], (a->line_mask + 1) * 64);
	}
}

/* The first rows of the rig that a sheet takes. */
static struct weir_sheet *sheet_of(struct rig *rg, uint32_t v, uint32_t side, uint32_t count)
{
	struct weir_gen *g = weir_join_gen_of(rg->sl[v], side, rg->keyed.time[0]);
	assert_non_null(g);
	rg->sl[v]->joined->lines = weir_join_lines_named(names[v]);
	weir_sheet_measure(&rg->keyed, rg->rows, count, 1, weir_row_fixed(rg->cols, 1), rg->upto);
	struct weir_sheet_rows sr = {.keyed = &rg->keyed,
				     .row = rg->rows,
				     .count = count,
				     .upto = rg->upto,
				     .col_count = 1,
				     .start = rg->sl[v]->joined->start[g->code],
				     .deferred = side == 1};
	return weir_sheet_put(g, &sr);
}

/* ---- what there is to be met ---- */

static void note_entered(struct rig *rg, uint32_t i)
{
	uint64_t hash = weir_hash(rg->key[i], rg->keyed.key_bytes[i]);
	assert_true(rg->entered_count < ENTERED_MOST);
	rg->entered[rg->entered_count] = (struct entered){hash, rg->keyed.time[i], rg->head[hash >> 48]};
	rg->head[hash >> 48] = ++rg->entered_count;
}

/* How many of them row i of side 1 meets. */
static uint32_t matches_of(const struct rig *rg, uint32_t i)
{
	uint64_t hash = weir_hash(rg->key[i], rg->keyed.key_bytes[i]);
	uint32_t count = 0;
	for (uint32_t n = rg->head[hash >> 48]; n != 0; n = rg->entered[n - 1].next) {
		const struct entered *e = &rg->entered[n - 1];
		count += e->hash == hash && e->time <= rg->keyed.time[i] &&
			 e->time >= rg->keyed.time[i] - rg->def.after_ms;
	}
	return count;
}

/* The same as the index has it. */
static uint32_t found_of(const struct rig *rg, uint32_t v, uint32_t i)
{
	struct weir_join_row r = {rg->keyed.hash[i], rg->keyed.time[i], rg->key[i], rg->keyed.key_bytes[i], 0,
				  rg->key[i]};
	struct weir_buf list = {0};
	weir_join_buffer_find_matches(rg->sl[v], 1, &r, 0, &list);
	uint32_t count = (uint32_t)(list.bytes / sizeof(struct weir_join_found));
	weir_buf_fini(&list);
	return count;
}

/* What a row met, in a way that can be compared. */
struct met {
	uint32_t row, other;
	int64_t time;
};

/* Looks with all rows of a sheet, so many at once; those that ask for a closer look are noted and passed over. */
static uint32_t look_all(struct rig *rg, uint32_t v, struct weir_sheet *sh, int64_t task_max, uint32_t room,
			 struct met *mt)
{
	struct weir_slot *sl = rg->sl[v];
	static struct weir_join_pair pairs[ROWS];
	uint32_t count = 0;
	for (uint32_t from = 0; from < sh->count;) {
		uint32_t to = from + room < sh->count ? from + room : sh->count;
		struct weir_join_meeting m = {.task_max = task_max, .pairs = pairs, .room = room, .side = 1};
		bool closer = weir_join_look_sheet(sl, sh, &from, to, &m);
		assert_in_range(from, 0, to);
		for (uint32_t i = 0; i < m.count; i++) {
			uint32_t row = (uint32_t)((struct weir_stub *)(void *)pairs[i].own - sh->stub);
			assert_int_equal(pairs[i].side, 1);
			assert_true(row < from);
			mt[count++] = (struct met){row, weir_entry_ref(&pairs[i].other->e), pairs[i].time};
		}
		assert_true(closer || from == to);
		if (closer)
			mt[count++] = (struct met){from++, 0, 0};
	}
	weir_join_sheet_turned(sl, sh, 0, sh->count);
	return count;
}

/* Every row that needs no closer look has met what there is, and a closer look finds that. */
static void check_met(const struct rig *rg, uint32_t v, uint32_t rows, const struct met *mt, uint32_t count)
{
	static uint32_t met[ROWS];
	static bool closer[ROWS];
	memset(met, 0, sizeof met);
	memset(closer, 0, sizeof closer);
	for (uint32_t i = 0; i < count; i++) {
		met[mt[i].row]++;
		closer[mt[i].row] |= mt[i].other == 0;
	}
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t expected = matches_of(rg, i);
		if (!closer[i])
			assert_int_equal(met[i], expected);
		assert_int_equal(found_of(rg, v, i), expected);
	}
}

/* Rows of side 0 enter, some of them one by one; then rows of side 1 look. */
static void round_of(struct rig *rg, int64_t time)
{
	static struct met met[VARIANTS][2 * ROWS];
	uint32_t count = 4 + draw(rg, 200), counts[VARIANTS] = {0}, single = draw(rg, 4) == 0 ? draw(rg, 5) : 0;
	for (uint32_t i = 0; i < count; i++)
		set_row(rg, i, time + draw(rg, 50));
	for (uint32_t v = 0; v < VARIANTS; v++) {
		if (rg->sl[v] == NULL)
			continue;
		struct weir_sheet *sh = sheet_of(rg, v, 0, count);
		assert_non_null(sh);
		weir_join_enter_sheet(rg->sl[v], sh);
		for (uint32_t i = sh->count; i < count && i < sh->count + single; i++) {
			struct weir_join_row r = {
				rg->keyed.hash[i], rg->keyed.time[i], rg->key[i], rg->keyed.key_bytes[i], 0,
				rg->key[i]};
			weir_join_buffer_put(rg->sl[v], 0, &r, false);
		}
		for (uint32_t i = 0; i < sh->count; i++)
			assert_int_equal(sh->stub[i].flags & WEIR_ENTRY_DEFERRED, 0);
		for (uint32_t i = 0; v == 0 && i < count && i < sh->count + single; i++)
			note_entered(rg, i);
	}
	check_same(rg);
	int64_t looks = time + draw(rg, 60000), task_max = draw(rg, 2) ? time : looks;
	uint32_t room = 1 + draw(rg, ROWS - 1);
	count = 4 + draw(rg, 200);
	for (uint32_t i = 0; i < count; i++)
		set_row(rg, i, looks + draw(rg, 50));
	for (uint32_t v = 0; v < VARIANTS; v++) {
		if (rg->sl[v] == NULL)
			continue;
		struct weir_sheet *sh = sheet_of(rg, v, 1, count);
		assert_non_null(sh);
		counts[v] = look_all(rg, v, sh, task_max, room, met[v]);
		if (rg->hash_bits == UINT32_MAX)
			check_met(rg, v, sh->count, met[v], counts[v]);
		if (v == 0)
			continue;
		assert_int_equal(counts[v], counts[0]);
		assert_memory_equal(met[v], met[0], counts[0] * sizeof(struct met));
	}
	for (uint32_t i = 0; i < counts[0]; i++)
		*(met[0][i].other != 0 ? &rg->pairs : &rg->closer) += 1;
	check_same(rg);
}

/* Rounds of a rig that is ready but for its keys. */
static void rounds(struct rig *rg, uint32_t count)
{
	int64_t time = 1000000;
	uint32_t most = 0;
	for (uint32_t i = 0; i < count; i++) {
		/* Now and then generations go, and the index with them. */
		time += i % 100 < 80 ? 200 : 20000;
		if (i % 2 == 0)
			for (uint32_t v = 0; v < VARIANTS; v++)
				if (rg->sl[v] != NULL)
					weir_join_drop(rg->sl[v], time);
		round_of(rg, time);
		most = rg->sl[0]->joined->segments > most ? rg->sl[0]->joined->segments : most;
	}
	assert_true(rg->pairs > 50 && most > 1);
}

static struct rig rg;

static void test_all_say_the_same(void **state)
{
	(void)state;
	static const uint32_t bits[] = {0xffffffff, 0xffffffff, 0xff0000ff, 0x8000ffff, 0x000000ff};
	static const uint32_t keys[] = {100000, 2000, 1000, 5000, 400};
	assert_non_null(weir_join_lines_named("plain"));
	assert_ptr_equal(weir_join_lines_named(weir_join_lines_best()->name), weir_join_lines_best());
	assert_null(weir_join_lines_named("none"));
	for (uint32_t n = 0; n < WEIR_COUNT_OF(bits); n++) {
		rig_init(&rg, 7 + n);
		rg.hash_bits = bits[n];
		rg.keys = keys[n];
		rounds(&rg, 300);
		assert_true(n == 0 || rg.closer > 500);
		rig_fini(&rg);
	}
}

/* ---- hashes alike ---- */

enum { KEYS = 1 << 20, ALIKE = 6000 };
struct hashed {
	uint32_t by, k; /* the hash turned so that bits that are to be the same come first */
};
static int by_compare(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;
	return x->by != y->by ? (x->by < y->by ? -1 : 1) : (x->k > y->k) - (x->k < y->k);
}
static uint32_t turned(uint32_t hash, uint32_t bits)
{
	return bits == 0 ? hash : hash << bits | hash >> (32 - bits);
}

/* Keys whose hashes, turned left, have the same highest bits as another's. */
static uint32_t find_alike(const uint32_t *hash, uint32_t turn, uint32_t same, uint32_t *which)
{
	struct hashed *h = malloc(KEYS * sizeof *h);
	uint32_t count = 0, n = 0;
	assert_non_null(h);
	for (uint32_t k = 0; k < KEYS; k++)
		if (k % 5 != 0) /* else it may be another's key */
			h[n++] = (struct hashed){turned(hash[k], turn), k};
	qsort(h, n, sizeof *h, by_compare);
	for (uint32_t i = 0; i < n && count < ALIKE; i++)
		if ((i + 1 < n && (h[i].by ^ h[i + 1].by) >> (32 - same) == 0) ||
		    (i != 0 && (h[i].by ^ h[i - 1].by) >> (32 - same) == 0))
			which[count++] = h[i].k;
	free(h);
	return count;
}

/* The line of a large index is that of the lowest eight bits, turned and shifted: these begin in few lines, of few
 * segments. */
static uint32_t find_in_lines(const uint32_t *hash, uint32_t top_bits, uint32_t top, uint32_t line, uint32_t lines,
			      uint32_t *which)
{
	uint32_t count = 0;
	for (uint32_t k = 0; k < KEYS && count < ALIKE; k++)
		if (hash[k] >> (32 - top_bits) == top && (hash[k] * WEIR_JOIN_SPREAD >> 6 & 255) - line < lines)
			which[count++] = k;
	return count;
}

static void test_hashes_alike(void **state)
{
	(void)state;
	static uint32_t hash[KEYS], which[ALIKE];
	for (uint32_t k = 0; k < KEYS; k++) {
		uint8_t key[64];
		uint32_t n = write_key(k, key);
		hash[k] = weir_hash_index(weir_hash(key, n));
	}
	for (uint32_t n = 0; n < 7; n++) {
		rig_init(&rg, 70 + n);
		rg.hash_bits = UINT32_MAX;
		rg.which = which;
		switch (n) {
		case 0: /* but for the lowest six bits */
			rg.keys = find_alike(hash, 0, 26, which);
			break;
		case 1: /* but for the highest */
			rg.keys = find_alike(hash, 6, 26, which);
			break;
		case 2: /* but for six in the middle, of those that lines are told by */
			rg.keys = find_alike(hash, 18, 26, which);
			break;
		case 3: /* in all */
			rg.keys = find_alike(hash, 0, 32, which);
			break;
		case 4: /* one line, of few segments */
			rg.keys = find_in_lines(hash, 2, 1, 77, 1, which);
			break;
		case 5: /* the last lines of the last segment: they go on in the first one */
			rg.keys = find_in_lines(hash, 5, 31, 250, 6, which);
			break;
		default: /* of each of two neighbours, from its middle on, more than it holds */
			rg.keys = find_in_lines(hash, 4, 5, 128, 64, which);
			break;
		}
		assert_true(rg.keys > 50);
		rounds(&rg, 200);
		rig_fini(&rg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_say_the_same),
		cmocka_unit_test(test_hashes_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
