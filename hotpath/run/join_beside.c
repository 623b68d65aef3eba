/* join_beside.c: rows of a stream beside the latest rows of a table, the usual join with a table (join.h). @thread
 * worker
 *
 *   hold    rows of a batch --> memory of their slot, and a ref each behind those of the slot
 *   run     slot by slot: refs in the order of (key, lane, arrival), then stretches of the stream's rows between rows
 *           of the table: all are looked up, then written a column at a time
 *
 *   row of the stream   struct row | a cell per column | bits of those that are NULL, if any may be | key | strings
 *   row of the table    struct row | key | packed row (row.h)
 *
 * Once the table's topic is at its bound, rows of the stream need not wait:
 *
 *   beside  rows of a batch are looked up and written into the bundle; a ref says where the result lies
 *   run     slot by slot: refs in their order go to snap as an ordered chunk
 *
 * A cell is the value, or place and length of the string. So a slot's rows lie together, in about 64 bytes each; its
 * state is read while it is in the cache, whatever number of slots there is; and rows that are handed on read their
 * strings where they are held. */
#include "hotpath/run/join_private.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/state/near.h"

struct row {
	uint64_t hash;
	int64_t time;
	uint32_t key_bytes;
	uint32_t bytes; /* of the table's packed row; of a row of the stream what its values take */
};

/* A row that waits for its turn. */
struct ref {
	int64_t key; /* in the merge: the largest time of its lane so far */
	uint64_t
		row; /* enum what << 48 | where it lies; of one that is not held, where its result lies in the bundle */
};
enum what { IS_TABLE = 1, IS_DELETE = 2, IS_NULL_KEY = 4, HAS_NULLS = 8 };

/* Refs of a slot, from here to the next piece, are of one lane: their keys do not fall. */
struct piece {
	uint32_t lane, from;
};

struct beside_slot {
	_Alignas(WEIR_CACHE_LINE) struct hold_memory memory; /* rows */
	struct ref *refs;
	uint32_t count, capacity; /* of refs, PHASE of which stay free */
	uint32_t lane_next;       /* of the last piece, plus one; 0: there is none */
	uint32_t table_rows;
	uint32_t passed; /* rows of the stream that were not held */
	uint32_t piece_count, piece_capacity;
	struct piece *pieces;
};
_Static_assert(sizeof(struct beside_slot) == WEIR_CACHE_LINE, "holding a row touches one line of its slot");

/* A string's cell. */
struct text_cell {
	uint32_t at, bytes; /* from the row's first byte */
};

enum { REFS_KEPT = 8192, PHASE = 64, SORT_ROWS = 256, SORT_DIGITS = 4, SORT_BITS = 10 };

/* What look-ups into a slot's table read, side by side. */
struct beside_table {
	struct weir_index ix;
	const struct weir_page *page;
};

/* Rows are found STEP by STEP. COPY_BYTES_MAX: making a larger copy of the tables would be felt. */
enum { STEP = 32, COPY_BYTES_MAX = 64 << 20 };

struct weir_beside {
	uint32_t stream, table; /* their sides */
	uint32_t cells_end;     /* from a row's first byte */
	uint32_t map_bytes;     /* of the bits that say NULL */
	uint32_t *cell;         /* by column of the stream: from a row's first byte */
	struct beside_slot *slots;
	uint32_t *lane_rows, *lane_at; /* by lane */
	/* the slot that runs: its refs in order, readable PHASE beyond the last */
	struct ref *merged[2];
	uint32_t merged_capacity;
	const struct ref *turn;
	bool may_pass;               /* rows of the stream need not be held once the table is at its bound */
	bool passes;                 /* they are not, up to the next order point */
	struct beside_table *tables; /* by slot: the table's index and pages, while they pass */
	struct weir_near near;       /* a copy of the tables, once passed_all rows have made it worth while */
	uint64_t passed_all;         /* since rows pass */
	const struct weir_col **in;  /* likewise: columns of the join's rows */
	bool pins; /* the table changes in this order point: rows to be written are kept up with (weir_join_unpin) */
	/* rows of jn->out: of the stream, whose table rows stand in jn->packed */
	const struct row *own[WEIR_BATCH_ROWS];
	uint64_t with_nulls[WEIR_NULL_WORDS]; /* bits of those whose row says what is NULL */
	uint16_t rows[WEIR_BATCH_ROWS];       /* 0, 1, 2 ... */
	struct row none;                      /* what is read beyond the last */
};

static struct beside_slot *slots_create(uint32_t count)
{
	struct beside_slot *slots = aligned_alloc(WEIR_CACHE_LINE, count * sizeof *slots);
	WEIR_ASSERT(slots != NULL);
	memset(slots, 0, count * sizeof *slots);
	return slots;
}

/* All branches in come from topics, the only one out goes to a sink; and key columns that are read are what was keyed
 * by, which of floating point numbers need not be so (-0.0). */
static bool may_pass(const struct weir_join *jn)
{
	const struct weir_plan *pl = jn->w->cf.plan;
	bool may = jn->ps->branch_count == 1 && !jn->has_stage_branch && jn->w->cf.future_max_ms < 0;
	for (uint32_t i = 0; i < jn->ps->input_count; i++)
		may = may && pl->branches[jn->ps->inputs[i]].from == WEIR_FROM_SCAN;
	for (uint32_t k = 0; k < jn->def->key_count && jn->reads_keys; k++)
		may = may && weir_type_phys(&jn->def->key_types[k]) != WEIR_PHYS_F64;
	return may && pl->sinks[pl->branches[jn->ps->branches[0]].target].repartition < 0;
}

void weir_beside_create(struct weir_join *jn)
{
	const struct weir_state_def *def = jn->def;
	struct weir_beside *be = jn->beside = weir_xcalloc(1, sizeof *be);
	be->table = def->sides[0].table ? 0 : 1;
	be->stream = 1 - be->table;
	be->slots = slots_create(jn->ps->slot_count + 1);
	be->lane_rows = weir_xcalloc(jn->lane_count + 1, sizeof *be->lane_rows);
	be->lane_at = weir_xcalloc(jn->lane_count + 1, sizeof *be->lane_at);
	const struct weir_col *cols = jn->own.cols + weir_beside_column(jn, be->stream);
	uint32_t count = def->sides[be->stream].col_count, at = sizeof(struct row);
	be->cell = weir_xcalloc(count + 1, sizeof *be->cell);
	for (uint32_t c = 0; c < count; c++) {
		be->cell[c] = at;
		at += cols[c].phys == WEIR_PHYS_I128 ? 16 : 8;
	}
	be->cells_end = at;
	be->map_bytes = (count + 7) / 8;
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++)
		be->rows[i] = (uint16_t)i;
	be->tables = weir_xcalloc(jn->ps->slot_count + 1, sizeof *be->tables);
	be->in = weir_xcalloc(jn->own.col_count + 1, sizeof *be->in);
	be->may_pass = may_pass(jn);
}

void weir_beside_destroy(struct weir_join *jn)
{
	struct weir_beside *be = jn->beside;
	if (!be)
		return;
	for (uint32_t s = 0; s < jn->ps->slot_count; s++) {
		free(be->slots[s].refs);
		free(be->slots[s].pieces);
	}
	weir_near_drop(&be->near);
	free(be->slots);
	free(be->lane_rows);
	free(be->lane_at);
	free(be->cell);
	free(be->tables);
	free(be->in);
	free(be->merged[0]);
	free(be->merged[1]);
	free(be);
}

uint64_t weir_beside_held_bytes(const struct weir_join *jn)
{
	const struct weir_beside *be = jn->beside;
	uint64_t bytes = 2 * be->merged_capacity * sizeof *be->merged[0];
	for (uint32_t k = 0; k < jn->ps->slot_count; k++)
		bytes +=
			be->slots[k].capacity * sizeof(struct ref) + be->slots[k].piece_capacity * sizeof(struct piece);
	return bytes;
}

void weir_beside_reset(struct weir_join *jn)
{
	for (uint32_t s = 0; s < jn->ps->slot_count; s++) {
		struct beside_slot *bs = &jn->beside->slots[s];
		bs->count = bs->piece_count = bs->table_rows = bs->lane_next = bs->passed = 0;
		bs->memory = (struct hold_memory){0};
		if (bs->capacity > REFS_KEPT) {
			free(bs->refs);
			bs->refs = NULL;
			bs->capacity = 0;
		}
		if (bs->piece_capacity > REFS_KEPT) {
			free(bs->pieces);
			bs->pieces = NULL;
			bs->piece_capacity = 0;
		}
	}
}

/* Whether no row of the table comes any more. */
static bool is_at_bound(const struct weir_join *jn)
{
	bool at_bound = true;
	for (uint32_t i = 0; i < jn->lane_count && at_bound; i++) {
		const struct lane *ln = &jn->lanes[i];
		if (jn->w->cf.plan->branches[ln->branch].side == jn->beside->table)
			at_bound = !ln->topic &&
				   (weir_times_part_flags(jn->w->times, ln->from) & WEIR_UPSTREAM_BOUND) != 0;
	}
	return at_bound;
}

/* A copy of tables that do not change any more is made once as many rows have passed as they have: it then pays, and a
 * short stream costs nothing. Where state is large there is none. */
static void copy_tables(struct weir_join *jn)
{
	struct weir_beside *be = jn->beside;
	uint64_t rows = 0, bytes = weir_arena_bytes(jn->w->arena);
	if (!be->passes || jn->def->ttl_ms != 0 || bytes > jn->w->cf.copies_max) {
		weir_near_drop(&be->near);
		return;
	}
	if (be->near.groups != 0)
		return;
	for (uint32_t s = 0; s < jn->ps->slot_count; s++)
		rows += jn->w->slots[jn->stage][s] ? be->tables[s].ix.used : 0;
	size_t copy = weir_near_bytes(rows);
	if (rows != 0 && be->passed_all >= rows && copy <= COPY_BYTES_MAX && bytes + copy <= jn->w->cf.copies_max)
		weir_near_make(&be->near, jn->w->arena, jn->w->slots[jn->stage], jn->ps->slot_count, be->table);
}

void weir_beside_open(struct weir_join *jn)
{
	struct weir_beside *be = jn->beside;
	be->passes = be->may_pass && is_at_bound(jn);
	if (!be->passes)
		be->passed_all = 0;
	for (uint32_t s = 0; s < jn->ps->slot_count && be->passes; s++) {
		const struct weir_slot *sl = jn->w->slots[jn->stage][s];
		if (sl)
			be->tables[s] = (struct beside_table){*weir_join_table_index(sl, be->table), sl->pages.page};
	}
	copy_tables(jn);
}

/* ---- holding ---- */

/* Keys of rows[0..count) in the merge, by row; the lane's time moves by all rows of the fragment, but those in skip. */
static void lane_keys(struct lane *ln, const struct weir_fragment *fr, const int64_t *time, uint32_t all,
		      const uint64_t *skip, int64_t *key)
{
	int64_t high = ln->high;
	for (uint32_t i = 0; i < all; i++) {
		uint32_t row = fr->input ? fr->sel.row[i] : i;
		if (skip && (skip[row / 64] >> (row % 64) & 1) != 0)
			continue;
		high = weir_max_i64(high, time[row]);
		key[row] = high;
	}
	ln->high = high;
}

static WEIR_NOINLINE void add_piece(struct beside_slot *bs, uint32_t lane)
{
	if (bs->piece_count == bs->piece_capacity) {
		bs->piece_capacity = bs->piece_capacity ? bs->piece_capacity * 2 : 16;
		bs->pieces = weir_xrealloc(bs->pieces, bs->piece_capacity * sizeof *bs->pieces);
	}
	bs->pieces[bs->piece_count++] = (struct piece){lane, bs->count};
	bs->lane_next = lane + 1;
}

static WEIR_NOINLINE void grow_refs(struct beside_slot *bs)
{
	uint32_t to = bs->capacity ? (bs->capacity + PHASE) * 2 : 256;
	bs->refs = weir_xrealloc(bs->refs, (size_t)to * sizeof *bs->refs);
	bs->capacity = to - PHASE;
}

/* A row of bytes in all for the slot, and the ref of it: what << 48 is in it. */
static inline struct row *take_row(struct weir_join *jn, struct beside_slot *bs, uint32_t lane, int64_t key,
				   uint64_t what, size_t bytes)
{
	struct hold_memory *hm = &bs->memory;
	bytes = weir_align_up(bytes, 8);
	if (WEIR_UNLIKELY(bs->lane_next != lane + 1))
		add_piece(bs, lane);
	if (WEIR_UNLIKELY(bs->count == bs->capacity))
		grow_refs(bs);
	struct row *h = (struct row *)(void *)hm->at;
	if (WEIR_UNLIKELY((size_t)(hm->end - hm->at) < bytes)) {
		h = weir_join_more(jn, hm, bytes);
	} else {
		hm->at += bytes;
		__builtin_prefetch(hm->at + WEIR_CACHE_LINE, 1, 3); /* where the slot's next row will stand */
	}
	weir_store_le64((uint8_t *)h + bytes - 8, 0);
	bs->refs[bs->count++] = (struct ref){key, what << 48 | (uint64_t)(uintptr_t)h};
	return h;
}

/* What the rows of one call have in common. */
struct keeping {
	const struct weir_keyed *keyed;
	const struct weir_fragment_branch *fb;
	const int64_t *key; /* in the merge, by row */
	uint32_t lane, col_count, key_count;
	bool nulls;     /* some column may hold NULL */
	bool null_keys; /* some key may */
};

static uint64_t null_key_of(const struct keeping *kp, uint32_t row)
{
	for (uint32_t k = 0; k < kp->key_count; k++)
		if (weir_col_is_null(kp->fb->out[k], row))
			return IS_NULL_KEY;
	return 0;
}

static inline void put_key(const struct weir_keyed *keyed, uint32_t row, uint8_t *to)
{
	weir_copy_short(to, keyed->key[row], keyed->key_bytes[row]);
}

/* Values into the row's cells, strings from byte `at` of the row on. A value that is NULL leaves a cell of zeros. */
static inline void put_cells(const struct weir_beside *be, const struct keeping *kp, uint32_t row, uint8_t *base,
			     uint32_t at, bool nulls)
{
	for (uint32_t c = 0; c < kp->col_count; c++) {
		const struct weir_col *col = kp->keyed->cols[c];
		uint8_t *cell = base + be->cell[c];
		if (nulls && weir_col_is_null(col, row)) {
			base[be->cells_end + c / 8] |= (uint8_t)(1u << (c % 8));
			memset(cell, 0, col->phys == WEIR_PHYS_I128 ? 16 : 8);
			continue;
		}
		if (col->phys == WEIR_PHYS_STR) {
			struct weir_str s = col->str[row];
			weir_store_le64(cell, at | (uint64_t)s.bytes << 32);
			weir_copy_short(base + at, s.data, s.bytes);
			at += s.bytes;
		} else if (col->phys == WEIR_PHYS_I128) {
			memcpy(cell, &col->i128[row], 16);
		} else {
			weir_store_le64(cell, col->phys == WEIR_PHYS_U8 ? col->u8[row] : (uint64_t)col->i64[row]);
		}
	}
}

/* Rows of the stream. Cost: about 100 instructions a row of three columns, and a line of memory. */
static void hold_stream(struct weir_join *jn, const struct keeping *kp, const uint16_t *rows, uint32_t count)
{
	struct weir_beside *be = jn->beside;
	const struct weir_keyed *keyed = kp->keyed;
	uint32_t texts[WEIR_BATCH_ROWS];
	memset(texts, 0, count * sizeof *texts);
	for (uint32_t c = 0; c < kp->col_count; c++) {
		const struct weir_col *col = keyed->cols[c];
		for (uint32_t i = 0; i < count && col->phys == WEIR_PHYS_STR; i++)
			texts[i] += col->str[rows[i]].bytes;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = rows[i], key_bytes = keyed->key_bytes[row];
		uint32_t fixed = be->cells_end + (kp->nulls ? be->map_bytes : 0) + key_bytes;
		uint64_t what = kp->nulls ? HAS_NULLS : 0;
		if (WEIR_UNLIKELY(kp->null_keys))
			what |= null_key_of(kp, row);
		struct row *h = take_row(jn, &be->slots[keyed->slot[row]], kp->lane, kp->key[row], what,
					 (size_t)fixed + texts[i]);
		uint8_t *base = (uint8_t *)h;
		*h = (struct row){keyed->hash[row], keyed->time[row], key_bytes, fixed + texts[i]};
		put_key(keyed, row, base + fixed - key_bytes);
		if (WEIR_UNLIKELY(kp->nulls)) {
			memset(base + be->cells_end, 0, be->map_bytes);
			put_cells(be, kp, row, base, fixed, true);
		} else {
			put_cells(be, kp, row, base, fixed, false);
		}
	}
}

/* Rows of the table. */
static void hold_table(struct weir_join *jn, const struct keeping *kp, const uint16_t *rows, uint32_t count)
{
	const struct weir_keyed *keyed = kp->keyed;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = rows[i], key_bytes = keyed->key_bytes[row];
		struct beside_slot *bs = &jn->beside->slots[keyed->slot[row]];
		bool deletes = keyed->deletes && keyed->deletes[row];
		uint64_t bytes = deletes ? 0 : weir_row_bytes(keyed->cols, kp->col_count, row);
		struct row *h = take_row(jn, bs, kp->lane, kp->key[row], deletes ? IS_TABLE | IS_DELETE : IS_TABLE,
					 sizeof *h + key_bytes + bytes);
		uint8_t *key = (uint8_t *)(h + 1);
		*h = (struct row){keyed->hash[row], keyed->time[row], key_bytes, (uint32_t)bytes};
		put_key(keyed, row, key);
		if (!deletes)
			(void)weir_row_pack(keyed->cols, kp->col_count, row, key + key_bytes);
		bs->table_rows++;
	}
}

void weir_beside_hold(struct weir_join *jn, const struct weir_fragment *fr, const struct weir_fragment_branch *fb,
		      const struct weir_keyed *keyed, const uint16_t *rows, uint32_t count, const uint64_t *skip)
{
	uint32_t side = jn->w->cf.plan->branches[fb->branch].side;
	int64_t key[WEIR_BATCH_ROWS];
	struct keeping kp = {.keyed = keyed,
			     .fb = fb,
			     .key = key,
			     .col_count = jn->def->sides[side].col_count,
			     .key_count = jn->ps->key_count,
			     .lane = jn->lane_base[fb->branch] + (fr->input ? fr->input->partition : fr->slot)};
	for (uint32_t k = 0; k < kp.key_count; k++)
		kp.null_keys |= fb->out[k]->has_null;
	for (uint32_t c = 0; c < kp.col_count; c++)
		kp.nulls |= keyed->cols[c]->has_null;
	lane_keys(&jn->lanes[kp.lane], fr, fr->input ? fr->time : keyed->time,
		  fr->input ? fr->sel.count : fr->rows.count, skip, key);
	WEIR_ASSERT(!jn->beside->passes);
	if (side == jn->beside->table)
		hold_table(jn, &kp, rows, count);
	else
		hold_stream(jn, &kp, rows, count);
}

/* ---- merging ---- */

/* Of equal keys a's come first. */
static void merge_two(const struct ref *a, uint32_t an, const struct ref *b, uint32_t bn, struct ref *to)
{
	const struct ref *a_end = a + an, *b_end = b + bn;
	for (bool apart = a_end[-1].key <= b->key; !apart && a != a_end && b != b_end;)
		*to++ = b->key < a->key ? *b++ : *a++;
	memcpy(to, a, (size_t)(a_end - a) * sizeof *to);
	to += a_end - a;
	memcpy(to, b, (size_t)(b_end - b) * sizeof *to);
}

static int lane_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* The slot's refs lane by lane, tables' first, to jn->start. Returns how many lanes have some. */
static uint32_t part_lanes(struct weir_join *jn, const struct beside_slot *bs, struct ref *to)
{
	struct weir_beside *be = jn->beside;
	uint32_t lanes = 0, at = 0;
	for (uint32_t i = 0; i < bs->piece_count; i++) {
		uint32_t end = i + 1 < bs->piece_count ? bs->pieces[i + 1].from : bs->count;
		uint32_t lane = bs->pieces[i].lane;
		if (be->lane_rows[lane] == 0)
			jn->group[lanes++] = lane;
		be->lane_rows[lane] += end - bs->pieces[i].from;
	}
	qsort(jn->group, lanes, sizeof *jn->group, lane_compare);
	for (uint32_t k = 0; k < lanes; k++) {
		jn->start[k] = be->lane_at[jn->group[k]] = at;
		at += be->lane_rows[jn->group[k]];
		be->lane_rows[jn->group[k]] = 0;
	}
	jn->start[lanes] = at;
	for (uint32_t i = 0; i < bs->piece_count; i++) {
		uint32_t from = bs->pieces[i].from;
		uint32_t n = (i + 1 < bs->piece_count ? bs->pieces[i + 1].from : bs->count) - from;
		uint32_t *place = &be->lane_at[bs->pieces[i].lane];
		memcpy(to + *place, bs->refs + from, n * sizeof *to);
		*place += n;
	}
	return lanes;
}

/* Merges the runs [start[i], start[i + 1]) of from, none empty, two by two. Returns where the result lies: from or to.
 */
static struct ref *merge_runs(struct ref *from, struct ref *to, uint32_t *start, uint32_t runs)
{
	while (runs > 1) {
		uint32_t kept = 0;
		for (uint32_t i = 0; i < runs; i += 2) {
			uint32_t a = start[i], b = start[i + 1], c = i + 1 < runs ? start[i + 2] : b;
			if (i + 1 < runs)
				merge_two(from + a, b - a, from + b, c - b, to + a);
			else
				memcpy(to + a, from + a, (b - a) * sizeof *to);
			start[kept++] = a;
			start[kept] = c;
		}
		runs = kept;
		struct ref *swap = from;
		from = to;
		to = swap;
	}
	return from;
}

/* Refs [0, count) of from, lane after lane, by digits of key - low, the last first: each pass keeps the order of those
 * before it among equal digits, and so that of lanes. Returns where the result lies: from or to. Cost: about 12
 * instructions a row and digit, none of which waits for the one before, as those of a merge do. */
static struct ref *sort_digits(struct ref *from, struct ref *to, uint32_t count, int64_t low, uint32_t digits,
			       uint32_t bits)
{
	uint32_t place[SORT_DIGITS][1 << SORT_BITS], values = 1u << bits;
	for (uint32_t d = 0; d < digits; d++)
		memset(place[d], 0, values * sizeof **place);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t key = (uint64_t)(from[i].key - low);
		for (uint32_t d = 0; d < digits; d++, key >>= bits)
			place[d][key & (values - 1)]++;
	}
	for (uint32_t d = 0; d < digits; d++) {
		uint32_t at = 0;
		for (uint32_t v = 0; v < values; v++) {
			uint32_t n = place[d][v];
			place[d][v] = at;
			at += n;
		}
		for (uint32_t i = 0; i < count; i++)
			to[place[d][(uint64_t)(from[i].key - low) >> d * bits & (values - 1)]++] = from[i];
		struct ref *swap = from;
		from = to;
		to = swap;
	}
	return from;
}

/* Puts the slot's refs, lane after lane in from, into the order of their keys. */
static struct ref *put_in_order(struct weir_join *jn, struct ref *from, struct ref *to, uint32_t lanes, uint32_t count)
{
	int64_t low = INT64_MAX, high = INT64_MIN;
	for (uint32_t k = 0; k < lanes; k++) {
		low = weir_min_i64(low, from[jn->start[k]].key);
		high = weir_max_i64(high, from[jn->start[k + 1] - 1].key);
	}
	uint64_t span = (uint64_t)high - (uint64_t)low;
	if (count < SORT_ROWS || span >> SORT_DIGITS * SORT_BITS != 0)
		return merge_runs(from, to, jn->start, lanes);
	uint32_t all = span == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(span);
	uint32_t digits = (all + SORT_BITS - 1) / SORT_BITS;
	return sort_digits(from, to, count, low, digits, digits == 0 ? 0 : (all + digits - 1) / digits);
}

/* Results of rows that were not held, in their order. */
static void put_ordered(struct weir_join *jn, struct weir_bundle *b, uint32_t slot, const struct ref *turn,
			uint32_t count)
{
	const struct weir_plan_branch *br = &jn->w->cf.plan->branches[jn->ps->branches[0]];
	uint64_t *at = (uint64_t *)(void *)weir_buf_room(&b->order, count * sizeof *at);
	struct weir_chunk *c = weir_bundle_chunk(b);
	c->output = br->target;
	c->stage = jn->stage + 1;
	c->slot = slot;
	c->seq = b->seq;
	c->branch = jn->ps->branches[0];
	c->results = count;
	c->ordered = true;
	c->at = b->order.bytes / sizeof *at;
	for (uint32_t i = 0; i < count; i++)
		at[i] = turn[i].row;
	b->order.bytes += count * sizeof *at;
}

void weir_beside_begin(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	struct weir_beside *be = jn->beside;
	struct beside_slot *bs = &be->slots[sl->number];
	struct ref *turn = bs->refs;
	jn->at = 0;
	jn->end = bs->count;
	be->pins = bs->table_rows != 0;
	if (bs->piece_count > 1) {
		if (bs->count + PHASE > be->merged_capacity) {
			be->merged_capacity = 2 * (bs->count + PHASE);
			for (uint32_t i = 0; i < 2; i++) {
				free(be->merged[i]);
				be->merged[i] = weir_xcalloc(be->merged_capacity, sizeof *be->merged[i]);
			}
		}
		uint32_t lanes = part_lanes(jn, bs, be->merged[0]);
		turn = put_in_order(jn, be->merged[0], be->merged[1], lanes, bs->count);
	}
	if (be->passes) {
		jn->end = 0;
		sl->records += bs->passed;
		if (bs->count != 0)
			put_ordered(jn, b, sl->number, turn, bs->count);
		return;
	}
	for (uint32_t i = 0; i < PHASE && turn; i++)
		turn[bs->count + i] = (struct ref){0, (uint64_t)(uintptr_t)&be->none};
	be->turn = turn;
}

/* ---- applying ---- */

static inline const struct row *row_of(const struct ref *t)
{
	return (const struct row *)(const void *)weir_index_entry(t->row);
}
static inline uint32_t what_is(const struct ref *t)
{
	return (uint32_t)(t->row >> 48);
}
static inline const uint8_t *key_of(const struct weir_beside *be, const struct ref *t)
{
	uint32_t at = be->cells_end + ((what_is(t) & HAS_NULLS) != 0 ? be->map_bytes : 0);
	return (const uint8_t *)row_of(t) + at;
}

/* A row of the table: rows that read its entry go first. */
static void apply_table(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct ref *t)
{
	const struct weir_beside *be = jn->beside;
	const struct row *h = row_of(t);
	const uint8_t *key = (const uint8_t *)(h + 1);
	struct weir_join_row row, r = {.hash = h->hash,
				       .time = h->time,
				       .key = key,
				       .key_bytes = h->key_bytes,
				       .row_bytes = h->bytes,
				       .row = key + h->key_bytes};
	weir_join_unpin(jn, b, sl->number, weir_join_table_entry(sl, be->table, &r, &row));
	if ((what_is(t) & IS_DELETE) != 0)
		weir_join_table_delete(sl, be->table, &r);
	else
		weir_join_table_put(sl, be->table, &r);
	sl->records++;
	jn->w->st->now->applied++;
}

/* What a row of the stream is written from, as the next one of jn->out; e: its row of the table, or NULL. */
static inline void put_beside(struct weir_join *jn, const struct weir_slot *sl, const struct ref *t,
			      struct weir_entry *e)
{
	struct weir_beside *be = jn->beside;
	struct weir_rows *to = jn->out;
	const struct row *h = row_of(t);
	uint32_t n = to->count++;
	struct weir_packed row = {0};
	if (WEIR_LIKELY(e != NULL)) {
		const struct weir_text *text = weir_table_text(sl->def, e);
		row = (struct weir_packed){weir_text_data(&sl->pages, text), text->bytes};
		__builtin_prefetch(row.data, 0, 3);
		__builtin_prefetch(row.data + row.bytes - 1, 0, 3);
		if (be->pins)
			e->flags |= WEIR_ENTRY_CHANGED;
	}
	jn->packed[be->table][n] = row;
	be->own[n] = h;
	to->time[n] = h->time;
	to->entry[n] = be->pins ? e : NULL;
	if (WEIR_UNLIKELY((what_is(t) & HAS_NULLS) != 0))
		be->with_nulls[n / 64] |= UINT64_C(1) << (n % 64);
	if (jn->reads_keys)
		weir_join_put_key(jn, key_of(be, t), h->key_bytes, n);
	if (jn->has_stage_branch)
		jn->out_bytes += h->bytes + row.bytes;
}

/* Rows of the stream, count <= PHASE and no more than there is room for: index lines, entries and rows of the table
 * are each asked for before the first is read. Returns how many were taken. Cost: about 60 instructions a row. */
static uint32_t look_up(struct weir_join *jn, struct weir_slot *sl, const struct ref *t, uint32_t count)
{
	const struct weir_beside *be = jn->beside;
	const struct weir_state_def *def = jn->def;
	const struct weir_index *ix = weir_join_table_index(sl, be->table);
	struct weir_entry *guess[PHASE];
	uint32_t found = 0, taken = 0, room = WEIR_BATCH_ROWS - jn->out->count;
	bool outer = def->sides[be->stream].outer;
	for (uint32_t i = 0; i < count; i++) {
		weir_index_prefetch(ix, row_of(&t[i])->hash, false);
		__builtin_prefetch(row_of(&t[i + PHASE / 2]), 0, 3); /* that of `none` at the end */
	}
	for (uint32_t i = 0; i < count; i++) {
		guess[i] = weir_index_guess(ix, row_of(&t[i])->hash);
		__builtin_prefetch(guess[i], 0, 3);
		__builtin_prefetch((const uint8_t *)guess[i] + weir_def_key_at(def) + 8, 0, 3);
	}
	for (; taken < count && room != 0; taken++) {
		const struct row *h = row_of(&t[taken]);
		const uint8_t *key = key_of(be, &t[taken]);
		struct weir_entry *e = guess[taken];
		if (WEIR_UNLIKELY((what_is(&t[taken]) & IS_NULL_KEY) != 0)) {
			e = NULL;
		} else if (WEIR_UNLIKELY(e != NULL && !weir_entry_is(def, e, h->hash, key, h->key_bytes))) {
			uint64_t *free_place;
			const uint64_t *at = weir_index_find(ix, def, h->hash, key, h->key_bytes, &free_place);
			e = at != NULL ? weir_index_entry(*at) : NULL;
		}
		found += e != NULL;
		if (e == NULL && !outer)
			continue;
		put_beside(jn, sl, &t[taken], e);
		room--;
		if (WEIR_UNLIKELY(jn->out_bytes >= WEIR_ROWS_BYTES)) {
			taken++;
			break;
		}
	}
	sl->records += taken;
	jn->w->st->now->applied += outer ? taken : found;
	jn->w->st->now->filtered += outer ? 0 : taken - found;
	return taken;
}

bool weir_beside_run(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	const struct ref *turn = jn->beside->turn;
	while (jn->at < jn->end) {
		uint32_t n = 0, most = jn->end - jn->at < PHASE ? jn->end - jn->at : PHASE;
		while (n < most && (what_is(&turn[jn->at + n]) & IS_TABLE) == 0)
			n++;
		if (n == 0) {
			apply_table(jn, b, sl, &turn[jn->at++]);
			continue;
		}
		if (!weir_join_room(jn, b, sl->number))
			return false;
		jn->at += look_up(jn, sl, &turn[jn->at], n);
	}
	return true;
}

/* ---- writing ---- */

/* Strings of rows [0, count) into memory of the rows. */
static void own_texts(struct weir_rows *r, struct weir_col *c, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		uint8_t *copy = weir_scratch_take(&r->scratch, c->str[n].bytes);
		weir_copy_short(copy, c->str[n].data, c->str[n].bytes);
		c->str[n].data = copy;
	}
}

static void write_column(const struct weir_beside *be, uint32_t cell, struct weir_col *c, uint32_t count)
{
	switch (c->phys) {
	case WEIR_PHYS_U8:
		for (uint32_t n = 0; n < count; n++)
			c->u8[n] = ((const uint8_t *)be->own[n])[cell];
		break;
	case WEIR_PHYS_I64:
	case WEIR_PHYS_F64:
		for (uint32_t n = 0; n < count; n++)
			memcpy(&c->i64[n], (const uint8_t *)be->own[n] + cell, 8);
		break;
	case WEIR_PHYS_I128:
		for (uint32_t n = 0; n < count; n++)
			memcpy(&c->i128[n], (const uint8_t *)be->own[n] + cell, 16);
		break;
	case WEIR_PHYS_STR:
		for (uint32_t n = 0; n < count; n++) {
			const uint8_t *base = (const uint8_t *)be->own[n];
			uint64_t text = weir_load_le64(base + cell);
			c->str[n] = (struct weir_str){base + (uint32_t)text, (uint32_t)(text >> 32), 0};
		}
		break;
	}
}

/* Row n of the stream has bits that say which of its columns are NULL. */
static void write_nulls(const struct weir_beside *be, struct weir_col *cols, uint32_t count, uint32_t n)
{
	const uint8_t *map = (const uint8_t *)be->own[n] + be->cells_end;
	for (uint32_t c = 0; c < count; c++)
		if ((map[c / 8] >> (c % 8) & 1) != 0)
			weir_row_set_null(&cols[c], 1, n);
}

void weir_beside_write(struct weir_join *jn, struct weir_rows *r)
{
	struct weir_beside *be = jn->beside;
	uint32_t stream_count = jn->def->sides[be->stream].col_count;
	struct weir_col *stream = r->cols + weir_beside_column(jn, be->stream);
	struct weir_col *table = r->cols + weir_beside_column(jn, be->table);
	for (uint32_t c = 0; c < stream_count; c++) {
		write_column(be, be->cell[c], &stream[c], r->count);
		if (jn->has_stage_branch && stream[c].phys == WEIR_PHYS_STR)
			own_texts(r, &stream[c], r->count);
	}
	for (uint32_t w = 0; w < WEIR_NULL_WORDS; w++)
		for (uint64_t bits = be->with_nulls[w]; bits != 0; bits &= bits - 1)
			write_nulls(be, stream, stream_count, w * 64 + (uint32_t)__builtin_ctzll(bits));
	uint32_t table_count = jn->def->sides[be->table].col_count;
	weir_row_unpack_many(jn->packed[be->table], be->rows, r->count, table, table_count,
			     jn->has_stage_branch ? &r->scratch : NULL);
	for (uint32_t n = 0; n < r->count && be->pins; n++) {
		struct weir_entry *e = r->entry[n];
		if (e)
			e->flags &= (uint8_t)~WEIR_ENTRY_CHANGED;
		r->entry[n] = NULL;
	}
	memset(r->op, WEIR_OP_INSERT, r->count);
	memset(be->with_nulls, 0, sizeof be->with_nulls);
}

/* ---- rows that need not wait ---- */

static WEIR_NOINLINE struct weir_entry *find_slowly(const struct weir_join *jn, const struct weir_keyed *keyed,
						    uint32_t row)
{
	uint64_t *free_place;
	const uint64_t *at = weir_index_find(&jn->beside->tables[keyed->slot[row]].ix, jn->def, keyed->hash[row],
					     keyed->key[row], keyed->key_bytes[row], &free_place);
	return at != NULL ? weir_index_entry(*at) : NULL;
}

static bool is_null_key(const struct weir_join *jn, const struct weir_fragment_branch *fb, uint32_t row)
{
	for (uint32_t k = 0; k < jn->ps->key_count; k++)
		if (weir_col_is_null(fb->out[k], row))
			return true;
	return false;
}

/* Packed row `from`, whole and with neither NULLs nor long strings, into row `to` of cols[0..count), count <= 8;
 * strings are left where they are. False: it is not so. */
static inline bool unpack_one(const struct weir_packed *from, struct weir_col *cols, uint32_t count, uint32_t to)
{
	const uint8_t *p = from->data, *end = p + from->bytes;
	if (WEIR_UNLIKELY(from->bytes == 0 || *p++ != 0))
		return false;
	for (uint32_t k = 0; k < count; k++) {
		struct weir_col *c = &cols[k];
		if (c->phys == WEIR_PHYS_STR) {
			uint32_t n = WEIR_LIKELY(p < end) ? *p++ : WEIR_ROW_LENGTH_LONG;
			if (WEIR_UNLIKELY(n == WEIR_ROW_LENGTH_LONG || (size_t)(end - p) < n))
				return false;
			c->str[to] = (struct weir_str){p, n, 0};
			p += n;
			continue;
		}
		uint32_t bytes = (uint32_t)weir_phys_bytes(c->phys);
		if (WEIR_UNLIKELY((size_t)(end - p) < bytes))
			return false;
		memcpy((uint8_t *)c->data + (size_t)to * bytes, p, bytes);
		p += bytes;
	}
	return true;
}

/* The rows of a batch for which rows of the table are looked up, and what each step finds. */
struct finding {
	const struct weir_fragment_branch *fb;
	const uint16_t *rows;
	struct weir_col *cols; /* what is found is written there, by row */
	uint32_t count, col_count;
	bool null_keys; /* some key may be NULL, and equals nothing then */
	union {
		struct weir_entry *entry[WEIR_BATCH_ROWS];
		const struct weir_near_line *line[WEIR_BATCH_ROWS];
	};
	struct weir_packed row[WEIR_BATCH_ROWS]; /* without data: there is none */
};

/* The entry that row `at` leads to, unless it is another key's. */
static inline struct weir_entry *check_found(const struct weir_join *jn, struct finding *fi, uint32_t at,
					     uint32_t key_at)
{
	const struct weir_keyed *keyed = &fi->fb->keyed;
	struct weir_entry *e = fi->entry[at];
	uint32_t r = fi->rows[at], key_bytes = keyed->key_bytes[r];
	if (e != NULL && WEIR_UNLIKELY(e->hash != weir_hash_index(keyed->hash[r]) || e->key_bytes != key_bytes ||
				       !weir_key_equal((const uint8_t *)e + key_at, keyed->key[r], key_bytes)))
		e = find_slowly(jn, keyed, r);
	if (WEIR_UNLIKELY(fi->null_keys && is_null_key(jn, fi->fb, r)))
		e = NULL;
	return fi->entry[at] = e;
}

/* Where the stages of a step stand: those of stage k are [at[k + 1], at[k]). */
static inline void stages_at(uint32_t *at, uint32_t stages, uint32_t from, uint32_t count)
{
	for (uint32_t k = 0; k <= stages; k++) {
		uint32_t i = from + STEP >= k * STEP ? from + STEP - k * STEP : 0;
		at[k] = i < count ? i : count;
	}
}

static void unpack_found(struct finding *fi, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const struct weir_packed *row = &fi->row[i];
		if (row->data == NULL)
			weir_row_set_null(fi->cols, fi->col_count, fi->rows[i]);
		else if (WEIR_UNLIKELY(fi->col_count > 8 || !unpack_one(row, fi->cols, fi->col_count, fi->rows[i])))
			(void)weir_row_unpack(row->data, row->bytes, fi->cols, fi->col_count, fi->rows[i], NULL);
	}
}

/* Finds all: what a row leads to is asked for in stages, STEP rows ahead of each other, and read while it is in the
 * nearest cache. Cost: about 100 instructions a row, and four lines of memory. */
static void find_all(const struct weir_join *jn, struct finding *fi)
{
	enum { STAGES = 5 };
	const struct beside_table *tables = jn->beside->tables;
	const struct weir_keyed *keyed = &fi->fb->keyed;
	const uint16_t *rows = fi->rows;
	uint32_t text_at = jn->def->head_bytes, key_at = weir_def_key_at(jn->def), at[STAGES + 1];
	for (uint32_t from = 0; from < fi->count + (STAGES - 1) * STEP; from += STEP) {
		stages_at(at, STAGES, from, fi->count);
		for (uint32_t i = at[1]; i < at[0]; i++)
			weir_index_prefetch(&tables[keyed->slot[rows[i]]].ix, keyed->hash[rows[i]], false);
		for (uint32_t i = at[2]; i < at[1]; i++) {
			fi->entry[i] = weir_index_guess(&tables[keyed->slot[rows[i]]].ix, keyed->hash[rows[i]]);
			__builtin_prefetch(fi->entry[i], 0, 3);
			__builtin_prefetch((const uint8_t *)fi->entry[i] + key_at + 8, 0, 3);
		}
		for (uint32_t i = at[3]; i < at[2]; i++) {
			const struct weir_entry *e = check_found(jn, fi, i, key_at);
			if (e == NULL)
				continue;
			const struct weir_text *text = (const struct weir_text *)((uintptr_t)e + text_at);
			__builtin_prefetch(&tables[keyed->slot[rows[i]]].page[text->ref >> WEIR_REF_SHIFT], 0, 3);
		}
		for (uint32_t i = at[4]; i < at[3]; i++) {
			fi->row[i] = (struct weir_packed){0};
			if (fi->entry[i] == NULL)
				continue;
			struct weir_text text = *(const struct weir_text *)((uintptr_t)fi->entry[i] + text_at);
			const uint8_t *blob = tables[keyed->slot[rows[i]]].page[text.ref >> WEIR_REF_SHIFT].base +
					      (text.ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8;
			fi->row[i] = (struct weir_packed){blob + sizeof(struct weir_entry), text.bytes};
			__builtin_prefetch(fi->row[i].data, 0, 3);
			__builtin_prefetch(fi->row[i].data + fi->row[i].bytes - 1, 0, 3);
		}
		unpack_found(fi, at[5], at[4]);
	}
}

/* The row that the copy has for row `at`: its guess, or what the whole search says. */
static inline struct weir_packed row_nearby(const struct weir_join *jn, const struct finding *fi, uint32_t at)
{
	const struct weir_keyed *keyed = &fi->fb->keyed;
	const struct weir_near_line *ln = fi->line[at];
	uint32_t r = fi->rows[at], slot = keyed->slot[r], key_bytes = keyed->key_bytes[r];
	if (WEIR_UNLIKELY(fi->null_keys && is_null_key(jn, fi->fb, r)))
		return (struct weir_packed){0};
	if (WEIR_UNLIKELY(key_bytes > WEIR_NEAR_KEY_MAX)) {
		const struct weir_slot *sl = jn->w->slots[jn->stage][slot];
		const struct weir_entry *e = find_slowly(jn, keyed, r);
		const struct weir_text *text = e != NULL ? weir_table_text(jn->def, e) : NULL;
		return text != NULL ? (struct weir_packed){weir_text_data(&sl->pages, text), text->bytes}
				    : (struct weir_packed){0};
	}
	if (ln != NULL && WEIR_UNLIKELY(!weir_near_is(ln, slot, keyed->key[r], key_bytes)))
		ln = weir_near_find(&jn->beside->near, keyed->hash[r], slot, keyed->key[r], key_bytes);
	return ln != NULL ? weir_near_row(ln) : (struct weir_packed){0};
}

/* The same in a copy of the tables. Cost: about 70 instructions a row, and a line of memory. */
static void find_nearby(const struct weir_join *jn, struct finding *fi)
{
	enum { STAGES = 4 };
	const struct weir_near *nr = &jn->beside->near;
	const struct weir_keyed *keyed = &fi->fb->keyed;
	uint32_t at[STAGES + 1];
	for (uint32_t from = 0; from < fi->count + (STAGES - 1) * STEP; from += STEP) {
		stages_at(at, STAGES, from, fi->count);
		for (uint32_t i = at[1]; i < at[0]; i++) {
			uint32_t r = fi->rows[i], home = weir_near_home(nr, keyed->hash[r], keyed->slot[r]);
			__builtin_prefetch(&nr->tag[home * WEIR_NEAR_GROUP], 0, 3);
		}
		for (uint32_t i = at[2]; i < at[1]; i++) {
			uint32_t r = fi->rows[i];
			bool absent;
			fi->line[i] = weir_near_guess(nr, keyed->hash[r], keyed->slot[r], &absent);
			if (WEIR_UNLIKELY(fi->line[i] == NULL && !absent))
				fi->line[i] = weir_near_find(nr, keyed->hash[r], keyed->slot[r], keyed->key[r],
							     keyed->key_bytes[r]);
			__builtin_prefetch(fi->line[i], 0, 3);
		}
		for (uint32_t i = at[3]; i < at[2]; i++) {
			fi->row[i] = row_nearby(jn, fi, i);
			__builtin_prefetch(fi->row[i].data, 0, 3); /* a longer row lies elsewhere */
		}
		unpack_found(fi, at[4], at[3]);
	}
}

/* Pairs that fail what else they need are no matches. */
static void unmatch_failed(struct weir_join *jn, const struct weir_sel *sel, struct weir_col *table)
{
	struct weir_sel pass;
	pass.count = sel->count;
	memcpy(pass.row, sel->row, sel->count * sizeof *sel->row);
	jn->errors.count = 0;
	weir_program_filter(jn->residual, jn->beside->in, &pass, &jn->own.scratch, &jn->errors);
	for (uint32_t i = 0, p = 0; i < sel->count; i++) {
		if (p < pass.count && pass.row[p] == sel->row[i])
			p++;
		else
			weir_row_set_null(table, jn->def->sides[jn->beside->table].col_count, sel->row[i]);
	}
}

/* Results of the rows in sel, whose columns stand in be->in. */
static void put_results(struct weir_join *jn, struct weir_bundle *b, const struct weir_fragment_branch *fb,
			const struct weir_sel *sel, const int64_t *key, uint32_t lane)
{
	struct weir_beside *be = jn->beside;
	struct weir_worker *w = jn->w;
	const struct weir_keyed *keyed = &fb->keyed;
	uint32_t branch = jn->ps->branches[0];
	uint64_t at[WEIR_BATCH_ROWS];
	bool written = w->cf.outputs[w->cf.plan->branches[branch].target].kind != WEIR_OUTPUT_BLACKHOLE;
	struct weir_tail_done done = weir_tail_spread(w->st->tails[branch], be->in, sel, keyed->time, keyed->slot,
						      &jn->own.scratch, &b->results, at);
	for (uint32_t i = 0; i < done.results && written; i++) {
		uint32_t row = done.passed->row[i];
		struct beside_slot *bs = &be->slots[keyed->slot[row]];
		if (WEIR_UNLIKELY(bs->lane_next != lane + 1))
			add_piece(bs, lane);
		if (WEIR_UNLIKELY(bs->count == bs->capacity))
			grow_refs(bs);
		bs->refs[bs->count++] = (struct ref){key[row], at[i]};
	}
	if (!written && done.results != 0) {
		struct weir_chunk *c = weir_bundle_chunk(b);
		c->output = w->cf.plan->branches[branch].target;
		c->stage = jn->stage + 1;
		c->branch = branch;
		c->results = done.results;
		c->at = b->results.bytes;
	}
	w->st->now->results += done.results;
	weir_worker_count_errors(w, b, jn->ps->name, done.errors, 0);
}

/* Rows of a batch that may pass: looked up, written, and left to be put in order. */
static void pass_rows(struct weir_join *jn, struct weir_bundle *b, const struct weir_fragment_branch *fb,
		      const uint16_t *rows, uint32_t count, const int64_t *key, uint32_t lane)
{
	struct weir_beside *be = jn->beside;
	const struct weir_state_def *def = jn->def;
	uint32_t stream_at = weir_beside_column(jn, be->stream), table_at = weir_beside_column(jn, be->table);
	struct finding fi = {.fb = fb,
			     .rows = rows,
			     .cols = jn->own.cols + table_at,
			     .count = count,
			     .col_count = def->sides[be->table].col_count};
	struct weir_sel sel;
	sel.count = 0;
	bool outer = def->sides[be->stream].outer;
	for (uint32_t k = 0; k < jn->ps->key_count; k++) {
		fi.null_keys |= fb->out[k]->has_null;
		be->in[k] = fb->out[k];
	}
	for (uint32_t c = 0; c < def->sides[be->stream].col_count; c++)
		be->in[stream_at + c] = fb->keyed.cols[c];
	for (uint32_t c = 0; c < def->sides[be->table].col_count; c++)
		be->in[table_at + c] = &jn->own.cols[table_at + c];
	weir_rows_reset(&jn->own);
	if (be->near.groups != 0)
		find_nearby(jn, &fi);
	else
		find_all(jn, &fi);
	be->passed_all += count;
	for (uint32_t i = 0; i < count; i++) {
		be->slots[fb->keyed.slot[rows[i]]].passed++;
		sel.row[sel.count] = rows[i];
		sel.count += fi.row[i].data != NULL || outer;
	}
	jn->w->st->now->applied += sel.count;
	jn->w->st->now->filtered += count - sel.count;
	if (jn->residual)
		unmatch_failed(jn, &sel, jn->own.cols + table_at);
	put_results(jn, b, fb, &sel, key, lane);
}

bool weir_join_beside(struct weir_join *jn, struct weir_bundle *b, const struct weir_fragment *fr,
		      const struct weir_fragment_branch *fb, uint32_t count)
{
	const struct weir_beside *be = jn->beside;
	if (!be || !be->may_pass || fr->sel.count == 0 || jn->w->cf.plan->branches[fb->branch].side == be->table)
		return false;
	if (!jn->holding)
		weir_join_hold_begin(jn);
	if (!be->passes)
		return false;
	int64_t key[WEIR_BATCH_ROWS];
	uint32_t lane = jn->lane_base[fb->branch] + fr->input->partition;
	lane_keys(&jn->lanes[lane], fr, fr->time, fr->sel.count, NULL, key);
	if (count != 0)
		pass_rows(jn, b, fb, fb->rows + fb->start[jn->w->cf.id], count, key, lane);
	return true;
}
