/* join_sheet.c: sheets of records (join_sheet.h). @thread worker */
#include "hotpath/state/join_sheet.h"

#include "hotpath/state/row.h"

/* What a sheet takes beside its rows: head, the last stub, slack. */
enum { AROUND = sizeof(struct weir_sheet) + sizeof(struct weir_stub) + WEIR_SHEET_SLACK };

/* Cost: about 3 instructions a row, and 2 for each text. */
void weir_sheet_measure(const struct weir_keyed *k, const uint16_t *rows, uint32_t count, uint32_t col_count,
			uint32_t fixed, uint32_t *size)
{
	weir_row_bytes_plain_many(k->cols, col_count, rows, count, fixed, size);
	for (uint32_t i = 0; i < count; i++) { /* both may be as large as 2^32 - 1 */
		uint32_t key_bytes = k->key_bytes[rows[i]];
		size[i] = size[i] > WEIR_PAGE_BYTES_MAX || key_bytes > WEIR_PAGE_BYTES_MAX ? WEIR_PAGE_BYTES_MAX
											   : size[i] + key_bytes;
	}
}

/* How many of the rows, from the first on, fit into room bytes; *bytes: what they take. */
static uint32_t fit(const struct weir_sheet_rows *sr, uint32_t room, uint32_t *bytes)
{
	uint32_t n = 0, taken = AROUND;
	while (n < sr->count && taken + sr->size[n] + (uint32_t)sizeof(struct weir_stub) <= room)
		taken += sr->size[n++] + (uint32_t)sizeof(struct weir_stub);
	*bytes = (uint32_t)weir_align_up(taken, 8);
	return n;
}

/* Cost: about 12 instructions a row. */
static uint32_t write_stubs(struct weir_sheet *sh, const struct weir_sheet_rows *sr, uint8_t page_log2)
{
	const struct weir_keyed *k = sr->keyed;
	uint32_t at = (uint32_t)(sizeof *sh + (sh->count + 1) * sizeof *sh->stub), high = 0;
	uint8_t flags = WEIR_ENTRY_SHEET | (sr->deferred ? WEIR_ENTRY_DEFERRED : 0);
	for (uint32_t i = 0; i < sh->count; i++) {
		uint32_t row = sr->row[i], delta = (uint32_t)(k->time[row] - sr->start);
		__builtin_prefetch((uint8_t *)&sh->stub[i] + 6 * WEIR_CACHE_LINE, 1, 3);
		__builtin_prefetch((uint8_t *)sh + at, 1, 3); /* where its data will be */
		sh->stub[i] = (struct weir_stub){(uint16_t)i, (uint16_t)at, (uint16_t)k->key_bytes[row],  flags,
						 page_log2,   delta,        weir_hash_index(k->hash[row])};
		high = delta > high ? delta : high;
		at += sr->size[i];
	}
	sh->stub[sh->count] = (struct weir_stub){.row = sh->count, .at = (uint16_t)at, .page_log2 = page_log2};
	sh->b.delta = high;
	return at;
}

/* Cost: about 10 instructions a row and what packing takes. */
static void write_data(struct weir_sheet *sh, const struct weir_sheet_rows *sr)
{
	const struct weir_keyed *k = sr->keyed;
	for (uint32_t i = 0; i < sh->count; i++) {
		uint32_t row = sr->row[i], n = sh->stub[i].key_bytes;
		const uint8_t *key = k->key[row];
		uint8_t *to = (uint8_t *)sh + sh->stub[i].at;
		for (uint32_t at = 0; at < n; at += 8) /* both may be read, and written, so far */
			weir_store_le64(to + at, weir_load_le64(key + at));
		(void)weir_row_pack_plain(k->cols, sr->col_count, row, to + n);
	}
}

struct weir_sheet *weir_sheet_put(struct weir_gen *g, const struct weir_sheet_rows *sr)
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
	uint32_t at = write_stubs(sh, sr, e->page_log2);
	write_data(sh, sr);
	memset((uint8_t *)sh + at, 0, (size_t)(end - ((uint8_t *)sh + at)));
	g->entries += n;
	g->appended += n;
	return sh;
}

bool weir_sheet_check(struct weir_entry *e, uint64_t bytes, uint8_t page_log2)
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
