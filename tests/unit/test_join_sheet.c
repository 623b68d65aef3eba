/* test_join_sheet.c: rows by columns become sheets that say the same, and a damaged sheet is refused or read within its
 * bytes. */
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
#include "hotpath/state/join_state.h"
#include "hotpath/state/row.h"

enum { ROWS = WEIR_BATCH_ROWS, TEXT = 16384 };

static const struct weir_type text_type = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
static const struct weir_type col_types[2] = {{.kind = WEIR_KIND_BIGINT},
					      {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}};
static const struct weir_state_side sides[2] = {{.col_count = 2, .types = col_types},
						{.col_count = 2, .types = col_types}};

struct rig {
	struct weir_arena *ar;
	struct weir_state_def def;
	struct weir_slot *sl;
	struct weir_keyed keyed;
	struct weir_col number, text;
	const struct weir_col *cols[2];
	uint16_t rows[ROWS];
	uint32_t upto[ROWS + 1];
	uint8_t key[ROWS][64];
};
static uint8_t letters[TEXT];

static void rig_init(struct rig *rg)
{
	memset(rg, 0, sizeof *rg);
	rg->def = (struct weir_state_def){.name = "j",
					  .kind = WEIR_STATE_JOIN,
					  .within = true,
					  .after_ms = 1000000,
					  .key_count = 1,
					  .key_types = &text_type,
					  .side_count = 2,
					  .sides = sides};
	assert_int_equal(weir_state_def_init(&rg->def, NULL), WEIR_OK);
	rg->ar = weir_arena_create();
	rg->sl = weir_slot_create(&rg->def, 0, rg->ar);
	weir_col_init(&rg->number, WEIR_PHYS_I64);
	weir_col_init(&rg->text, WEIR_PHYS_STR);
	rg->cols[0] = &rg->number;
	rg->cols[1] = &rg->text;
	rg->keyed.cols = rg->cols;
	for (uint32_t i = 0; i < TEXT; i++)
		letters[i] = (uint8_t)('a' + i % 23);
}

static void rig_fini(struct rig *rg)
{
	weir_col_fini(&rg->number);
	weir_col_fini(&rg->text);
	weir_slot_destroy(rg->sl);
	weir_arena_destroy(rg->ar);
}

static void set_row(struct rig *rg, uint32_t i, int64_t time, uint32_t text_bytes)
{
	int n = snprintf((char *)rg->key[i] + 1, sizeof rg->key[i] - 9, "key-%u", (unsigned)(i * i));
	rg->key[i][0] = (uint8_t)n++;
	rg->keyed.key[i] = rg->key[i];
	rg->keyed.key_bytes[i] = (uint32_t)n;
	rg->keyed.hash[i] = weir_hash(rg->key[i], (size_t)n);
	rg->keyed.time[i] = time;
	rg->number.i64[i] = (int64_t)i * 1000003;
	rg->text.str[i] = (struct weir_str){letters + i % 23, text_bytes, 0};
	rg->rows[i] = (uint16_t)i;
}

/* That row i of the rig stands as number `at` in sh. */
static void check_row(const struct rig *rg, struct weir_sheet *sh, uint32_t at, uint32_t i, int64_t start)
{
	struct weir_buffered *bf = weir_stub_buffered(&sh->stub[at]);
	struct weir_join_found fd = {bf, start + bf->delta};
	struct weir_join_row r;
	struct weir_col cols[2];
	weir_col_init(&cols[0], WEIR_PHYS_I64);
	weir_col_init(&cols[1], WEIR_PHYS_STR);
	assert_true(weir_buffered_is_stub(bf));
	assert_ptr_equal(weir_stub_sheet(&sh->stub[at]), sh);
	assert_ptr_equal(weir_ref_get(&rg->sl->pages, weir_entry_ref(&bf->e)), bf);
	assert_int_equal(fd.time, rg->keyed.time[i]);
	assert_int_equal(bf->older, weir_hash_index(rg->keyed.hash[i]));
	weir_join_buffer_get(&rg->def, &fd, &r);
	assert_int_equal(r.key_bytes, rg->keyed.key_bytes[i]);
	assert_memory_equal(r.key, rg->key[i], r.key_bytes);
	assert_true(weir_buffered_is(&rg->def, bf, weir_hash_index(rg->keyed.hash[i]), rg->key[i], r.key_bytes));
	(void)weir_row_unpack(r.row, r.row_bytes, cols, 2, 0, NULL);
	assert_int_equal(cols[0].i64[0], rg->number.i64[i]);
	assert_int_equal(cols[1].str[0].bytes, rg->text.str[i].bytes);
	assert_memory_equal(cols[1].str[0].data, rg->text.str[i].data, cols[1].str[0].bytes);
	weir_col_fini(&cols[0]);
	weir_col_fini(&cols[1]);
}

/* All rows into sheets; returns how many sheets. */
static uint32_t put_all(struct rig *rg, uint32_t count, bool deferred, struct weir_sheet **last)
{
	struct weir_gen *g = weir_join_gen_of(rg->sl, 1, rg->keyed.time[0]);
	int64_t start = rg->sl->joined->start[g->code];
	uint32_t sheets = 0, before = (uint32_t)g->entries;
	weir_sheet_measure(&rg->keyed, rg->rows, count, 2, weir_row_fixed(rg->cols, 2), rg->upto);
	for (uint32_t from = 0; from < count;) {
		struct weir_sheet_rows sr = {.keyed = &rg->keyed,
					     .row = rg->rows + from,
					     .count = count - from,
					     .upto = rg->upto + from,
					     .col_count = 2,
					     .start = start,
					     .deferred = deferred};
		struct weir_sheet *sh = weir_sheet_put(g, &sr);
		assert_non_null(sh);
		assert_in_range(sh->count, 1, count - from);
		assert_true(sh->count >= WEIR_SHEET_ROWS_MIN || sh->count == count - from);
		uint32_t high = 0;
		for (uint32_t i = 0; i < sh->count; i++) {
			check_row(rg, sh, i, from + i, start);
			assert_int_equal((sh->stub[i].flags & WEIR_ENTRY_DEFERRED) != 0, deferred);
			high = sh->stub[i].delta > high ? sh->stub[i].delta : high;
		}
		assert_int_equal(sh->b.delta, high);
		assert_int_equal(weir_sheet_live(&sh->b.e), sh->count);
		assert_true(
			weir_sheet_check(&sh->b.e, weir_entry_bytes(&rg->def, &sh->b.e), sh->b.e.page_log2, &sides[1]));
		from += sh->count;
		sheets++;
		*last = sh;
	}
	assert_int_equal(g->entries, before + count);
	return sheets;
}

static void test_rows_come_back(void **state)
{
	(void)state;
	static struct rig rg;
	struct weir_sheet *last;
	rig_init(&rg);
	for (uint32_t round = 0; round < 40; round++) {
		uint32_t count = round < 8 ? round + 1 : 1 + (uint32_t)rand() % ROWS;
		for (uint32_t i = 0; i < count; i++)
			set_row(&rg, i, 5000 + (int64_t)(rand() % 300),
				round % 4 == 3 ? (uint32_t)rand() % 1500 : i % 40);
		uint32_t sheets = put_all(&rg, count, round % 2 == 0, &last);
		if (round % 4 != 3)
			assert_true(sheets <= 3 + count / 60);
	}
	rig_fini(&rg);
}

/* Columns of every kind, keys and texts of all lengths, rows with and without gaps, in order or not: a sheet holds what
 * rows packed one at a time are. */
static void test_any_columns(void **state)
{
	(void)state;
	enum { COLUMNS = 11, MOST = 300 };
	static struct rig rg;
	static const enum weir_phys kinds[] = {WEIR_PHYS_U8, WEIR_PHYS_I64, WEIR_PHYS_F64, WEIR_PHYS_I128,
					       WEIR_PHYS_STR};
	static const struct weir_type kind_types[] = {{.kind = WEIR_KIND_BOOLEAN},
						      {.kind = WEIR_KIND_BIGINT},
						      {.kind = WEIR_KIND_DOUBLE},
						      {.kind = WEIR_KIND_DECIMAL, .precision = 38},
						      {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}};
	uint64_t sheets = 0;
	rig_init(&rg);
	for (uint32_t round = 0; round < 300; round++) {
		struct weir_col cols[COLUMNS];
		const struct weir_col *ptrs[COLUMNS];
		struct weir_type types[COLUMNS];
		uint32_t col_count = (uint32_t)rand() % (COLUMNS + 1), count = 1 + (uint32_t)rand() % MOST, row = 0;
		uint32_t key_most = round % 3 == 0 ? 14 : 40, text_most = round % 10 == 7 ? 700 : round % 2 ? 40 : 18;
		bool gaps = round % 4 == 1, in_order = round % 3 != 1;
		for (uint32_t c = 0; c < col_count; c++) {
			uint32_t kind = (uint32_t)rand() % WEIR_COUNT_OF(kinds);
			weir_col_init(&cols[c], kinds[kind]);
			types[c] = kind_types[kind];
			ptrs[c] = &cols[c];
		}
		row = (uint32_t)rand() % 50;
		for (uint32_t i = 0; i < count; i++, row += gaps ? 1 + (uint32_t)rand() % 3 : 1) {
			uint32_t n = 2 + (uint32_t)rand() % key_most;
			rg.rows[i] = (uint16_t)row;
			for (uint32_t b = 0; b < n; b++)
				rg.key[row][b] = (uint8_t)rand();
			rg.keyed.key[row] = rg.key[row];
			rg.keyed.key_bytes[row] = n;
			rg.keyed.hash[row] = weir_hash(rg.key[row], n);
			rg.keyed.time[row] = 20000 + (in_order ? (int64_t)i / 3 : (int64_t)(rand() % 300));
			for (uint32_t c = 0; c < col_count; c++) {
				for (uint32_t b = 0; b < weir_phys_bytes(cols[c].phys); b++)
					((uint8_t *)cols[c].data)[row * weir_phys_bytes(cols[c].phys) + b] =
						(uint8_t)rand();
				if (cols[c].phys == WEIR_PHYS_STR)
					cols[c].str[row] = (struct weir_str){letters + rand() % 500,
									     (uint32_t)rand() % text_most, 0};
			}
		}
		rg.keyed.cols = ptrs;
		uint32_t fixed = weir_row_fixed(ptrs, col_count);
		struct weir_gen *g = weir_join_gen_of(rg.sl, 0, 20000);
		weir_sheet_measure(&rg.keyed, rg.rows, count, col_count, fixed, rg.upto);
		for (uint32_t from = 0; from < count;) {
			struct weir_sheet_rows sr = {.keyed = &rg.keyed,
						     .row = rg.rows + from,
						     .count = count - from,
						     .upto = rg.upto + from,
						     .col_count = col_count,
						     .start = rg.sl->joined->start[g->code],
						     .in_order = in_order};
			struct weir_sheet *sh = weir_sheet_put(g, &sr);
			if (sh == NULL) { /* what stands before it is too large */
				uint64_t bytes = 0;
				for (uint32_t i = from; i < from + WEIR_SHEET_ROWS_MIN && i < count; i++)
					bytes += weir_row_bytes(ptrs, col_count, rg.rows[i]) +
						 rg.keyed.key_bytes[rg.rows[i]] + sizeof(struct weir_stub);
				assert_true(bytes > WEIR_PAGE_BYTES_MAX - 128);
				from++;
				continue;
			}
			uint32_t high = 0, oldest = UINT32_MAX;
			for (uint32_t i = 0; i < sh->count; i++) {
				uint8_t packed[COLUMNS * 800 + 64];
				uint32_t r = rg.rows[from + i], n = rg.keyed.key_bytes[r];
				const struct weir_stub *st = &sh->stub[i];
				size_t bytes = (size_t)(weir_row_pack(ptrs, col_count, r, packed) - packed);
				assert_int_equal(st->row, i);
				assert_int_equal(st->key_bytes, n);
				assert_int_equal(st->flags, WEIR_ENTRY_SHEET);
				assert_int_equal(st->older, weir_hash_index(rg.keyed.hash[r]));
				assert_int_equal(sr.start + st->delta, rg.keyed.time[r]);
				assert_memory_equal(weir_stub_key(st), rg.key[r], n);
				assert_int_equal(weir_stub_row_bytes(st), bytes);
				assert_memory_equal(weir_stub_key(st) + n, packed, bytes);
				high = st->delta > high ? st->delta : high;
				oldest = st->delta < oldest ? st->delta : oldest;
			}
			assert_int_equal(sh->b.delta, high);
			assert_int_equal(sr.oldest, oldest);
			const struct weir_state_side sd = {.col_count = col_count, .types = types};
			assert_true(weir_sheet_check(&sh->b.e, weir_entry_bytes(&rg.def, &sh->b.e), sh->b.e.page_log2,
						     &sd));
			from += sh->count;
			sheets++;
		}
		for (uint32_t c = 0; c < col_count; c++)
			weir_col_fini(&cols[c]);
	}
	rg.keyed.cols = rg.cols;
	assert_true(sheets > 300);
	rig_fini(&rg);
}

/* One that no sheet takes among the first few: nothing is written; behind them: the sheet ends before it. */
static void test_a_large_row_goes_elsewhere(void **state)
{
	(void)state;
	static struct rig rg;
	rig_init(&rg);
	for (uint32_t i = 0; i < 100; i++)
		set_row(&rg, i, 7000 + i, i == 60 ? 9000 : 10);
	struct weir_gen *g = weir_join_gen_of(rg.sl, 0, 7000);
	weir_sheet_measure(&rg.keyed, rg.rows, 100, 2, weir_row_fixed(rg.cols, 2), rg.upto);
	struct weir_sheet_rows sr = {.keyed = &rg.keyed,
				     .row = rg.rows,
				     .count = 100,
				     .upto = rg.upto,
				     .col_count = 2,
				     .start = rg.sl->joined->start[g->code]};
	struct weir_sheet *sh = weir_sheet_put(g, &sr);
	assert_non_null(sh);
	assert_int_equal(sh->count, 60);
	sr.row += 58;
	sr.upto += 58;
	sr.count -= 58;
	uint64_t entries = g->entries;
	assert_null(weir_sheet_put(g, &sr));
	assert_int_equal(g->entries, entries);
	rig_fini(&rg);
}

/* All rows of a sheet that passed the check, written at once, lie within its bytes. */
static void unpack_all(const struct weir_sheet *sh, uint64_t bytes)
{
	struct weir_col cols[2];
	const uint8_t *at[64], *from = (const uint8_t *)sh;
	assert_true(sh->count <= WEIR_COUNT_OF(at));
	weir_col_init(&cols[0], WEIR_PHYS_I64);
	weir_col_init(&cols[1], WEIR_PHYS_STR);
	for (uint32_t i = 0; i < sh->count; i++)
		at[i] = weir_stub_key(&sh->stub[i]) + sh->stub[i].key_bytes;
	weir_row_unpack_plain(at, sh->count, cols, 2, 3, NULL);
	for (uint32_t i = 0; i < sh->count; i++) {
		assert_true(cols[1].str[3 + i].data > from);
		assert_true(cols[1].str[3 + i].data + cols[1].str[3 + i].bytes <= from + bytes);
	}
	weir_col_fini(&cols[0]);
	weir_col_fini(&cols[1]);
}

/* Whatever bit is wrong: the sheet is refused, or all that it says lies within it. */
static void test_a_damaged_sheet(void **state)
{
	(void)state;
	static struct rig rg;
	struct weir_sheet *sh;
	uint32_t refused = 0, refused_data = 0;
	rig_init(&rg);
	for (uint32_t i = 0; i < 30; i++)
		set_row(&rg, i, 9000 + i, i);
	assert_int_equal(put_all(&rg, 30, true, &sh), 1);
	uint64_t bytes = weir_entry_bytes(&rg.def, &sh->b.e);
	uint32_t head = (uint32_t)(sizeof *sh + (sh->count + 1) * sizeof *sh->stub);
	for (uint32_t bit = 8 * (uint32_t)offsetof(struct weir_sheet, count); bit < 8 * bytes; bit++) {
		uint8_t *copy = malloc(bytes); /* nothing beyond it may be read */
		memcpy(copy, sh, bytes);
		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		struct weir_sheet *bad = (struct weir_sheet *)(void *)copy;
		if (!weir_sheet_check(&bad->b.e, bytes, sh->b.e.page_log2, &sides[1])) {
			refused++;
			refused_data += bit >= 8 * head;
		} else {
			unpack_all(bad, bytes);
			for (uint32_t i = 0; i < bad->count; i++) {
				const struct weir_stub *st = &bad->stub[i];
				assert_int_equal(st->row, i);
				assert_int_equal(st->page_log2, sh->b.e.page_log2);
				assert_true(st->at >= head);
				assert_true((uint64_t)st->at + st->key_bytes + weir_stub_row_bytes(st) +
						    WEIR_SHEET_SLACK <=
					    bytes);
			}
		}
		free(copy);
	}
	assert_true(refused > 30 * 16);
	assert_true(refused_data > 30 * 9); /* each bit of NULLs, and some of each length */
	/* Shorter than it says. */
	assert_false(weir_sheet_check(&sh->b.e, bytes - 64, sh->b.e.page_log2, &sides[1]));
	assert_false(weir_sheet_check(&sh->b.e, sizeof *sh, sh->b.e.page_log2, &sides[1]));
	rig_fini(&rg);
}

/* Rows of the side that looks, sheet by sheet, all of one key but the first of each batch; none is entered. */
static void defer_batches(struct rig *rg, uint32_t batches, int64_t time)
{
	for (uint32_t b = 0; b < batches; b++) {
		for (uint32_t i = 0; i < ROWS; i++)
			set_row(rg, i, time + (int64_t)b * ROWS + i, 3);
		struct weir_gen *g = weir_join_gen_of(rg->sl, 1, time);
		weir_sheet_measure(&rg->keyed, rg->rows, ROWS, 2, weir_row_fixed(rg->cols, 2), rg->upto);
		for (uint32_t from = 0; from < ROWS;) {
			struct weir_sheet_rows sr = {.keyed = &rg->keyed,
						     .row = rg->rows + from,
						     .count = ROWS - from,
						     .upto = rg->upto + from,
						     .col_count = 2,
						     .start = rg->sl->joined->start[g->code],
						     .deferred = true};
			struct weir_sheet *sh = weir_sheet_put(g, &sr);
			assert_non_null(sh);
			weir_join_sheet_turned(rg->sl, sh, 0, sh->count / 2);
			weir_join_sheet_turned(rg->sl, sh, sh->count / 2, sh->count);
			from += sh->count;
		}
	}
}

/* A row that reaches a little back looks through what is deferred; one that has far too much before it has it entered,
 * and finds the same. */
static void test_far_behind_what_is_deferred(void **state)
{
	(void)state;
	enum { BATCHES = 40 };
	static struct rig rg;
	rig_init(&rg);
	int64_t start = 100 << 20;
	defer_batches(&rg, BATCHES, start);
	assert_true(rg.sl->joined->deferring != 0);
	for (int far = 0; far < 2; far++) {
		struct weir_buf list = {0};
		uint32_t row = 77, behind = far ? BATCHES : 3;
		int64_t time = start + (int64_t)(BATCHES - behind) * ROWS;
		struct weir_join_row r = {.hash = rg.keyed.hash[row],
					  .time = time,
					  .key = rg.key[row],
					  .key_bytes = rg.keyed.key_bytes[row]};
		assert_true(far || !weir_join_may_meet_deferred(rg.sl, 1, 12345, time, INT64_MAX));
		assert_true(weir_join_may_meet_deferred(rg.sl, 1, weir_hash_index(r.hash), time, INT64_MAX));
		assert_true(!far || weir_join_may_meet_deferred(rg.sl, 1, 12345, time, INT64_MAX));
		weir_join_buffer_find_matches(rg.sl, 0, &r, WEIR_TIME_UNSET, &list);
		const struct weir_join_found *f = (const struct weir_join_found *)(const void *)list.data;
		assert_int_equal(list.bytes / sizeof *f, behind);
		for (uint32_t i = 0; i < behind; i++)
			assert_int_equal(f[i].time, time + (int64_t)i * ROWS + row);
		assert_int_equal(rg.sl->joined->deferring == 0, far);
		weir_buf_fini(&list);
	}
	rig_fini(&rg);
}

/* ---- a changelog with sheets ---- */

struct body {
	uint32_t number;
	bool page;
	struct weir_buf data;
};
struct log {
	struct body body[64];
	uint32_t count;
};

static void log_body(struct log *lg, bool page, uint32_t number, const uint8_t *body, uint32_t bytes)
{
	assert_true(lg->count < WEIR_COUNT_OF(lg->body) && body != NULL);
	struct body *bd = &lg->body[lg->count++];
	*bd = (struct body){.number = number, .page = page};
	weir_buf_put(&bd->data, body, bytes);
}
static void log_pack(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes)
{
	(void)slot;
	log_body(ctx, false, k, body, bytes);
}
static void log_page(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes)
{
	(void)slot;
	assert_int_equal(part, 0);
	log_body(ctx, true, page, body, bytes);
}

static enum weir_err restore(struct rig *rg, const struct log *lg, const struct weir_buf *saved)
{
	weir_slot_destroy(rg->sl);
	rg->sl = weir_slot_create(&rg->def, 0, rg->ar);
	enum weir_err err = weir_slot_load(rg->sl, saved->data, saved->bytes, NULL);
	for (uint32_t i = 0; i < lg->count && err == WEIR_OK; i++) {
		const struct body *bd = &lg->body[i];
		err = bd->page ? weir_slot_restore_page(rg->sl, bd->number, 0, bd->data.data, bd->data.bytes, NULL)
			       : weir_slot_restore_pack(rg->sl, bd->number, bd->data.data, bd->data.bytes, NULL);
	}
	return err == WEIR_OK ? weir_slot_restore_finish(rg->sl, NULL) : err;
}

/* Rows [0, count) of the rig as a sheet of `side`, which has its turn. Returns how many they meet. */
static uint32_t turn_sheet(struct rig *rg, uint32_t side, uint32_t count)
{
	static struct weir_join_pair pairs[ROWS];
	struct weir_col cols[2];
	struct weir_gen *g = weir_join_gen_of(rg->sl, side, rg->keyed.time[0]);
	struct weir_join_meeting mt = {.task_max = rg->keyed.time[0], .pairs = pairs, .room = ROWS, .side = side};
	uint32_t met = 0;
	if (g == NULL)
		return 0;
	weir_sheet_measure(&rg->keyed, rg->rows, count, 2, weir_row_fixed(rg->cols, 2), rg->upto);
	struct weir_sheet_rows sr = {.keyed = &rg->keyed,
				     .row = rg->rows,
				     .count = count,
				     .upto = rg->upto,
				     .col_count = 2,
				     .start = rg->sl->joined->start[g->code],
				     .deferred = side == 1};
	struct weir_sheet *sh = weir_sheet_put(g, &sr);
	assert_non_null(sh);
	if (side == 0) {
		weir_join_enter_sheet(rg->sl, sh);
		return 0;
	}
	weir_col_init(&cols[0], WEIR_PHYS_I64);
	weir_col_init(&cols[1], WEIR_PHYS_STR);
	for (uint32_t from = 0; from < sh->count;) {
		mt.count = 0;
		bool closer = weir_join_look_sheet(rg->sl, sh, &from, sh->count, &mt);
		for (uint32_t i = 0; i < mt.count; i++) {
			const struct weir_buffered *bf = pairs[i].other;
			uint32_t key_bytes;
			const uint8_t *row = weir_buffered_key(&rg->def, bf, &key_bytes) + key_bytes;
			if (weir_buffered_is_stub(bf))
				weir_row_unpack_plain(&row, 1, cols, 2, 0, NULL);
			met++;
		}
		from += closer;
	}
	weir_join_sheet_turned(rg->sl, sh, 0, sh->count);
	weir_col_fini(&cols[0]);
	weir_col_fini(&cols[1]);
	return met;
}

/* Rows of both sides look at all there is, so far back that what is deferred enters. */
static uint32_t use_all(struct rig *rg, int64_t time)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < 24; i++) {
		struct weir_buf list = {0};
		struct weir_join_row r = {.hash = rg->keyed.hash[i],
					  .time = time,
					  .key = rg->key[i],
					  .key_bytes = rg->keyed.key_bytes[i]};
		weir_join_buffer_find_matches(rg->sl, i & 1, &r, WEIR_TIME_UNSET, &list);
		if (i % 8 == 7)
			weir_join_buffer_find(rg->sl, 1, &r, time - 1000, time + 1000, WEIR_TIME_UNSET, &list);
		const struct weir_join_found *f = (const struct weir_join_found *)(const void *)list.data;
		for (uint32_t k = 0; k < list.bytes / sizeof *f; k++) {
			struct weir_join_row got;
			struct weir_col cols[2];
			weir_col_init(&cols[0], WEIR_PHYS_I64);
			weir_col_init(&cols[1], WEIR_PHYS_STR);
			weir_join_buffer_get(&rg->def, &f[k], &got);
			(void)weir_row_unpack(got.row, got.row_bytes, cols, 2, 0, NULL);
			weir_col_fini(&cols[0]);
			weir_col_fini(&cols[1]);
			found++;
		}
		weir_buf_fini(&list);
	}
	return found;
}

/* Whichever bit of it changes, of every fifth one: a restore refuses it, or leaves what can be looked at, entered and
 * dropped. */
static void test_a_damaged_changelog(void **state)
{
	(void)state;
	static struct rig rg;
	struct log lg = {.count = 0};
	struct weir_buf saved = {0};
	struct weir_delta_sink sink = {.ctx = &lg, .pack = log_pack, .page = log_page};
	uint32_t refused = 0, restored = 0;
	rig_init(&rg);
	for (uint32_t i = 0; i < 24; i++)
		set_row(&rg, i, 9000 + i, i);
	assert_int_equal(turn_sheet(&rg, 0, 24), 0);
	for (uint32_t i = 0; i < 12; i++)
		set_row(&rg, i, 9100 + i, i);
	assert_int_equal(turn_sheet(&rg, 0, 12), 0); /* lists */
	for (uint32_t i = 0; i < 24; i++)
		set_row(&rg, i, 9200 + i, i);
	assert_int_equal(turn_sheet(&rg, 1, 24), 12);
	(void)weir_slot_barrier(rg.sl, 1, &sink);
	weir_slot_committed(rg.sl, 1);
	weir_slot_save(rg.sl, &saved);
	assert_int_equal(restore(&rg, &lg, &saved), WEIR_OK);
	assert_true(use_all(&rg, 9150) > 24);
	for (uint32_t n = 0; n < lg.count; n++) {
		struct weir_buf *b = &lg.body[n].data;
		for (size_t bit = 0; bit < 8 * b->bytes; bit += 5) {
			b->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (restore(&rg, &lg, &saved) == WEIR_OK) {
				restored++;
				(void)turn_sheet(&rg, bit % 3 == 0 ? 0 : 1, 24);
				(void)use_all(&rg, 9150);
				weir_join_drop(rg.sl, 9000 + 3 * rg.def.after_ms);
			} else {
				refused++;
			}
			b->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
	assert_true(restored > 1000 && refused > 1000);
	for (uint32_t n = 0; n < lg.count; n++)
		weir_buf_fini(&lg.body[n].data);
	weir_buf_fini(&saved);
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_come_back),
		cmocka_unit_test(test_any_columns),
		cmocka_unit_test(test_a_large_row_goes_elsewhere),
		cmocka_unit_test(test_a_damaged_sheet),
		cmocka_unit_test(test_a_damaged_changelog),
		cmocka_unit_test(test_far_behind_what_is_deferred),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
