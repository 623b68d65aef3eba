/* join_sheet.c: sheets of records (join_sheet.h). @thread worker */
#include "hotpath/state/join_sheet.h"

#include "hotpath/core/hash.h"
#include "hotpath/state/row.h"

/* What a sheet takes beside its rows: head, the last stub, slack. */
enum { AROUND = sizeof(struct weir_sheet) + sizeof(struct weir_stub) + WEIR_SHEET_SLACK };

/* Whether rows, which ascend, are one behind the other: then row i of a column from the first on is the i-th. */
static bool are_dense(const uint16_t *rows, uint32_t count)
{
	return rows[count - 1] - rows[0] == (int)count - 1;
}

/* upto[1..count], where there are not more texts than one, NULL: none. Returns all lengths, or-ed. Cost: about 8
 * instructions a row. */
WEIR_INLINE uint32_t measure_one(const uint32_t *key_bytes, const struct weir_str *text, const uint16_t *rows,
				 uint32_t count, uint32_t fixed, uint32_t *restrict upto)
{
	uint32_t any = 0, sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = rows != NULL ? rows[i] : i, bytes = text != NULL ? text[row].bytes : 0;
		any |= bytes | key_bytes[row];
		sum += fixed + bytes + key_bytes[row];
		upto[i + 1] = sum;
	}
	return any;
}

/* The same of any number of texts, of any lengths. Cost: about 20 instructions a row, and 5 a text. */
static void measure_any(const struct weir_keyed *k, const uint16_t *rows, uint32_t count, uint32_t col_count,
			uint32_t fixed, uint32_t *upto)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes = weir_row_bytes_plain(k->cols, col_count, rows[i], fixed) + k->key_bytes[rows[i]];
		sum += bytes < WEIR_PAGE_BYTES_MAX ? (uint32_t)bytes : WEIR_PAGE_BYTES_MAX;
		upto[i + 1] = sum;
	}
}

void weir_sheet_measure(const struct weir_keyed *k, const uint16_t *rows, uint32_t count, uint32_t col_count,
			uint32_t fixed, uint32_t *upto)
{
	const struct weir_str *text = NULL;
	uint32_t texts = 0, any = WEIR_ROW_LENGTH_LONG;
	bool dense = are_dense(rows, count);
	for (uint32_t c = 0; c < col_count; c++) {
		if (k->cols[c]->phys != WEIR_PHYS_STR)
			continue;
		text = k->cols[c]->str;
		texts++;
	}
	upto[0] = 0;
	const uint32_t *key_bytes = k->key_bytes;
	if (texts == 0 && dense)
		any = measure_one(key_bytes + rows[0], NULL, NULL, count, fixed, upto);
	else if (texts == 1 && dense)
		any = measure_one(key_bytes + rows[0], text + rows[0], NULL, count, fixed, upto);
	else if (texts == 1)
		any = measure_one(key_bytes, text, rows, count, fixed, upto);
	/* Lengths below a power of two never or to more than it less one. */
	if (any >= WEIR_ROW_LENGTH_LONG || fixed > WEIR_PAGE_BYTES_MAX / 2)
		measure_any(k, rows, count, col_count, fixed, upto);
}

/* How many of the rows, from the first on, fit into room bytes; *bytes: what they take. */
static uint32_t fit(const struct weir_sheet_rows *sr, uint32_t room, uint32_t *bytes)
{
	uint32_t low = 0, high = sr->count, from = sr->upto[0];
	while (low < high) { /* low fit; high may */
		uint32_t n = (low + high + 1) / 2;
		if (AROUND + sr->upto[n] - from + n * (uint32_t)sizeof(struct weir_stub) <= room)
			low = n;
		else
			high = n - 1;
	}
	*bytes = (uint32_t)weir_align_up(AROUND + sr->upto[low] - from + low * sizeof(struct weir_stub), 8);
	return low;
}

/* A sheet while it is written. Columns begin with row `first`, where rows are dense. */
enum { ROWS_MOST = WEIR_PAGE_BYTES_MAX / sizeof(struct weir_stub) };
struct writing {
	struct weir_sheet *sh;
	const struct weir_keyed *k;
	const uint16_t *rows; /* NULL: they are dense */
	const uint32_t *upto;
	uint64_t base; /* row i lies at base + upto[i], modulo 2^64 */
	uint32_t count, first;
	uint32_t map;                 /* bytes of its null bitmap */
	uint16_t next[ROWS_MOST + 1]; /* by row: where its next value goes */
};

typedef uint64_t words2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint32_t halves2 __attribute__((vector_size(8), aligned(4), may_alias));

WEIR_INLINE words2 words_of(const uint32_t *halves)
{
	return __builtin_convertvector(*(const halves2 *)(const void *)halves, words2);
}

/* Two words a stub, in struct weir_stub's order. Cost: about 15 instructions a row, 10 where they are dense. */
WEIR_INLINE void write_stubs(struct writing *wr, int64_t start, uint64_t same, bool dense)
{
	const uint64_t *hash = wr->k->hash + wr->first;
	const int64_t *time = wr->k->time + wr->first;
	const uint32_t *key_bytes = wr->k->key_bytes + wr->first, *upto = wr->upto, count = wr->count;
	const uint64_t base = wr->base;
	const uint16_t *rows = wr->rows;
	const uint64_t low = UINT32_MAX;
	uint64_t *restrict to = (uint64_t *)(void *)wr->sh->stub;
	uint32_t i = 0;
	_Static_assert(offsetof(struct weir_stub, at) == 2 && offsetof(struct weir_stub, key_bytes) == 4 &&
			       offsetof(struct weir_stub, delta) == 8 && offsetof(struct weir_stub, older) == 12,
		       "as it is put together here");
	for (words2 at = {same + (base << 16), same + (base << 16) + 1}; dense && i + 2 <= count; i += 2, at += 2) {
		words2 head = at + (words_of(upto + i) << 16) + (words_of(key_bytes + i) << 32);
		words2 tail = (*(const words2 *)(const void *)(hash + i) << 32) |
			      ((*(const words2 *)(const void *)(time + i) - (uint64_t)start) & low);
		*(words2 *)(void *)(to + 2 * i) = (words2){head[0], tail[0]};
		*(words2 *)(void *)(to + 2 * i + 2) = (words2){head[1], tail[1]};
	}
	for (; i < count; i++) {
		uint32_t row = dense ? i : rows[i];
		to[2 * i] = same | (uint64_t)key_bytes[row] << 32 | (base + upto[i]) << 16 | i;
		to[2 * i + 1] = (uint64_t)weir_hash_index(hash[row]) << 32 | (uint32_t)(time[row] - start);
	}
}

/* Keys and what a row begins with: no column is NULL. Both key and room may be read, and written, up to a multiple of 8
 * beyond the key; what that spills is overwritten, since rows are written in ascending order. Cost: about 17
 * instructions a row. */
WEIR_INLINE void write_keys(struct writing *wr, bool dense)
{
	const uint32_t *key_bytes = wr->k->key_bytes + wr->first, *upto = wr->upto, map = wr->map;
	const uint8_t *const *keys = wr->k->key + wr->first;
	uint8_t *row_at = (uint8_t *)wr->sh + wr->base;
	uint32_t at = (uint32_t)wr->base + map;
	for (uint32_t i = 0, count = wr->count; i < count; i++) {
		uint32_t row = dense ? i : wr->rows[i], n = key_bytes[row];
		const uint8_t *key = keys[row];
		uint8_t *to = row_at + upto[i];
		wr->next[i] = (uint16_t)(at + upto[i] + n);
		weir_store_le64(to, weir_load_le64(key));
		if (WEIR_LIKELY(n > 8))
			weir_store_le64(to + 8, weir_load_le64(key + 8));
		for (uint32_t done = 16; WEIR_UNLIKELY(done < n); done += 8)
			weir_store_le64(to + done, weir_load_le64(key + done));
		to[n] = 0;
		for (uint32_t m = 1; WEIR_UNLIKELY(m < map); m++)
			to[n + m] = 0;
	}
}

/* Values of `width` bytes, `skip` bytes behind next[i]. Cost: about 5 instructions a row. */
WEIR_INLINE void write_fixed(struct writing *wr, const uint8_t *restrict values, uint32_t width, uint32_t skip,
			     bool dense)
{
	uint8_t *to = (uint8_t *)wr->sh + skip;
	values += (size_t)wr->first * width;
	for (uint32_t i = 0, count = wr->count; i < count; i++)
		memcpy(to + wr->next[i], values + (size_t)(dense ? i : wr->rows[i]) * width, width);
}

/* Texts, likewise; moves next[i] behind them. Cost: about 15 instructions a row. */
WEIR_INLINE void write_texts(struct writing *wr, const struct weir_str *restrict str, uint32_t skip, bool dense)
{
	uint8_t *base = (uint8_t *)wr->sh;
	str += wr->first;
	for (uint32_t i = 0, count = wr->count; i < count; i++) {
		const struct weir_str *s = &str[dense ? i : wr->rows[i]];
		uint8_t *to = base + wr->next[i] + skip;
		uint32_t n = s->bytes;
		if (WEIR_LIKELY(n - 8 <= 8)) { /* 8 to 16 bytes, as most are: two words that may overlap */
			uint64_t first = weir_load_le64(s->data), last = weir_load_le64(s->data + n - 8);
			*to++ = (uint8_t)n;
			weir_store_le64(to, first);
			weir_store_le64(to + n - 8, last);
			to += n;
		} else {
			to = weir_row_put_text(to, s);
		}
		wr->next[i] = (uint16_t)(to - base);
	}
}

/* What weir_row_pack_plain writes, a column at a time. */
WEIR_INLINE void write_columns(struct writing *wr, uint32_t col_count, bool dense)
{
	uint32_t skip = 0;
	for (uint32_t c = 0; c < col_count; c++) {
		const struct weir_col *col = wr->k->cols[c];
		switch (col->phys) {
		case WEIR_PHYS_U8:
			write_fixed(wr, col->data, 1, skip, dense);
			skip += 1;
			break;
		case WEIR_PHYS_I64:
		case WEIR_PHYS_F64:
			write_fixed(wr, col->data, 8, skip, dense);
			skip += 8;
			break;
		case WEIR_PHYS_I128:
			write_fixed(wr, col->data, 16, skip, dense);
			skip += 16;
			break;
		case WEIR_PHYS_STR:
			write_texts(wr, col->str, skip, dense);
			skip = 0;
			break;
		}
	}
}

/* Cost: 5 instructions a row where they are in no order. */
static void note_range(struct weir_sheet *sh, struct weir_sheet_rows *sr)
{
	uint32_t high = sh->stub[sh->count - 1].delta, low = sh->stub[0].delta;
	for (uint32_t i = 0; i < sh->count && !sr->in_order; i++) {
		uint32_t delta = sh->stub[i].delta;
		high = delta > high ? delta : high;
		low = delta < low ? delta : low;
	}
	sh->b.delta = high;
	sr->oldest = low;
}

struct weir_sheet *weir_sheet_put(struct weir_gen *g, struct weir_sheet_rows *sr)
{
	static const uint8_t nothing[8];
	uint32_t least = sr->count < WEIR_SHEET_ROWS_MIN ? sr->count : WEIR_SHEET_ROWS_MIN, n = 0, bytes;
	if (g->entry_page != 0) {
		const struct weir_page *p = &g->pages->page[g->entry_page];
		/* The rest of a page is worth a sheet of some rows. */
		n = fit(sr, p->bytes - p->used, &bytes);
		n = n < sr->count && n < 4 * WEIR_SHEET_ROWS_MIN ? 0 : n;
	}
	if (n == 0)
		n = fit(sr, WEIR_PAGE_BYTES_MAX - WEIR_PAGE_HEAD, &bytes);
	if (n < least)
		return NULL;
	struct weir_entry *e = weir_gen_take(g, bytes, false);
	struct weir_sheet *sh = (struct weir_sheet *)(void *)e;
	uint8_t *end = (uint8_t *)sh + bytes;
	e->hash = weir_hash_index(weir_hash(nothing, 0));
	e->flags = WEIR_ENTRY_SHEET;
	sh->b.older = 0;
	sh->b.row_bytes = bytes - (uint32_t)sizeof sh->b;
	sh->count = (uint16_t)n;
	sh->pad = 0;
	for (uint8_t *line = (uint8_t *)sh; line < end; line += WEIR_CACHE_LINE)
		__builtin_prefetch(line, 1, 3);
	struct writing wr; /* clearing it would cost more than a row */
	wr.sh = sh;
	wr.k = sr->keyed;
	wr.rows = are_dense(sr->row, n) ? NULL : sr->row;
	wr.first = wr.rows != NULL ? 0 : sr->row[0];
	wr.upto = sr->upto;
	wr.count = n;
	wr.map = (sr->col_count + 7) / 8;
	wr.base = sizeof *sh + (n + 1) * sizeof *sh->stub - sr->upto[0];
	uint64_t same = (uint64_t)e->page_log2 << 56 |
			(uint64_t)(WEIR_ENTRY_SHEET | (sr->deferred ? WEIR_ENTRY_DEFERRED : 0)) << 48;
	uint32_t at = (uint32_t)wr.base + sr->upto[n];
	if (WEIR_LIKELY(wr.rows == NULL)) {
		write_stubs(&wr, sr->start, same, true);
		write_keys(&wr, true);
		write_columns(&wr, sr->col_count, true);
	} else {
		write_stubs(&wr, sr->start, same, false);
		write_keys(&wr, false);
		write_columns(&wr, sr->col_count, false);
	}
	sh->stub[n] = (struct weir_stub){.row = (uint16_t)n, .at = (uint16_t)at, .page_log2 = e->page_log2};
	memset((uint8_t *)sh + at, 0, (size_t)(end - ((uint8_t *)sh + at)));
	note_range(sh, sr);
	g->entries += n;
	g->appended += n;
	return sh;
}

bool weir_sheet_check(struct weir_entry *e, uint64_t bytes, uint8_t page_log2, const struct weir_state_side *sd)
{
	struct weir_sheet *sh = (struct weir_sheet *)(void *)e;
	if (page_log2 == 0 || bytes < sizeof *sh || e->key_bytes != 0 || sh->count == 0)
		return false;
	uint64_t at = sizeof *sh + (sh->count + UINT64_C(1)) * sizeof *sh->stub;
	if (at + WEIR_SHEET_SLACK > bytes)
		return false;
	for (uint32_t i = 0; i <= sh->count; i++) {
		struct weir_stub *st = &sh->stub[i];
		bool last = i == sh->count;
		if (st->row != i || (last ? st->flags != 0 : (st->flags & WEIR_ENTRY_SHEET) == 0) ||
		    (i == 0 ? st->at != at : st->at < at))
			return false;
		st->flags &= WEIR_ENTRY_SHEET | WEIR_ENTRY_DEFERRED | WEIR_ENTRY_DEAD;
		st->page_log2 = page_log2;
		at = (uint64_t)st->at + st->key_bytes;
		if (at + WEIR_SHEET_SLACK > bytes)
			return false;
	}
	for (const struct weir_stub *st = sh->stub; st != &sh->stub[sh->count]; st++)
		if (!weir_row_is_plain(weir_stub_key(st) + st->key_bytes, weir_stub_row_bytes(st), sd->types,
				       sd->col_count))
			return false;
	return true;
}

uint32_t weir_sheet_live(const struct weir_entry *e)
{
	const struct weir_sheet *sh = (const struct weir_sheet *)(const void *)e;
	uint32_t live = 0;
	if ((e->flags & WEIR_ENTRY_SHEET) == 0)
		return 1;
	for (uint32_t i = 0; i < sh->count; i++)
		live += (sh->stub[i].flags & WEIR_ENTRY_DEAD) == 0;
	return live;
}
