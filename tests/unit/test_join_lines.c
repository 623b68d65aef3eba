/* test_join_lines.c: whatever instruction set looks at an index's lines: sheets enter the same places, rows meet the
 * same records, and an index that grows, shrinks and forgets is the same to the last place. */
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
	uint32_t hash_bits; /* those of a hash that count */
	uint32_t keys;      /* so many different ones */
	uint64_t random;
	uint64_t pairs, closer;
};

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
}

static void rig_fini(struct rig *rg)
{
	for (uint32_t v = 0; v < VARIANTS; v++)
		if (rg->sl[v] != NULL)
			weir_slot_destroy(rg->sl[v]);
	weir_col_fini(&rg->number);
	assert_int_equal(weir_arena_bytes(rg->ar), 0);
	weir_arena_destroy(rg->ar);
}

/* Keys of 0 to 30 bytes, many of which differ in one only; more of a hash are 0 than by chance. */
static void set_row(struct rig *rg, uint32_t i, int64_t time)
{
	uint32_t k = draw(rg, rg->keys), bytes = k % 5 == 0 ? k % 31 : 12;
	memset(rg->key[i], 'k', sizeof rg->key[i]);
	for (uint32_t at = 0; at < bytes && at < 4; at++)
		rg->key[i][k % 3 == 0 ? at : bytes - 1 - at] = (uint8_t)(k >> 8 * at);
	rg->keyed.key[i] = rg->key[i];
	rg->keyed.key_bytes[i] = bytes;
	rg->keyed.hash[i] = weir_hash(rg->key[i], bytes) & (rg->hash_bits | UINT64_C(0xffffffff00000000));
	rg->keyed.time[i] = time;
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
		if (v == 0)
			continue;
		assert_int_equal(counts[v], counts[0]);
		assert_memory_equal(met[v], met[0], counts[0] * sizeof(struct met));
	}
	for (uint32_t i = 0; i < counts[0]; i++)
		*(met[0][i].other != 0 ? &rg->pairs : &rg->closer) += 1;
	check_same(rg);
}

static void test_all_say_the_same(void **state)
{
	(void)state;
	static const uint32_t bits[] = {0xffffffff, 0xffffffff, 0xff0000ff, 0x8000ffff, 0x000000ff};
	static const uint32_t keys[] = {100000, 2000, 1000, 5000, 400};
	static struct rig rg;
	assert_non_null(weir_join_lines_named("plain"));
	assert_ptr_equal(weir_join_lines_named(weir_join_lines_best()->name), weir_join_lines_best());
	assert_null(weir_join_lines_named("none"));
	for (uint32_t n = 0; n < WEIR_COUNT_OF(bits); n++) {
		rig_init(&rg, 7 + n);
		rg.hash_bits = bits[n];
		rg.keys = keys[n];
		int64_t time = 1000000;
		uint32_t most = 0;
		for (uint32_t i = 0; i < 300; i++) {
			/* Now and then generations go, and the index with them. */
			time += i % 100 < 80 ? 200 : 20000;
			if (i % 2 == 0)
				for (uint32_t v = 0; v < VARIANTS; v++)
					if (rg.sl[v] != NULL)
						weir_join_drop(rg.sl[v], time);
			round_of(&rg, time);
			most = rg.sl[0]->joined->segments > most ? rg.sl[0]->joined->segments : most;
		}
		assert_true(rg.pairs > 50 && most > 1);
		assert_true(n == 0 || rg.closer > 500);
		rig_fini(&rg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_say_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
