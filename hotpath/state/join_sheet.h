/* join_sheet.h: records of a join buffer that came together, in one entry of a page.
 *
 *   sheet   struct weir_sheet, an entry like any other (WEIR_ENTRY_SHEET): it is written once, and afterwards only
 * flags and links in it change. At most 8 KiB stub  struct weir_stub, one a record, in the order in which they came,
 * and one more, which says where the last one's row ends. What leads to a record, ref, place or pointer, leads to its
 * stub: up to and with `older` it reads like a struct weir_buffered data  key and packed row (row.h) of each, one after
 * the other, and some zeros
 *
 * Beside a record of its own (struct weir_buffered) one of a sheet takes 4 bytes less and is not rounded up; what makes
 * it cheap is that stubs are written and looked at one after the other. Durable: a change here is a change of the
 * changelog's format. @thread worker (the slot's owner) */
#ifndef WEIR_STATE_JOIN_SHEET_H
#define WEIR_STATE_JOIN_SHEET_H

#include "hotpath/state/page.h"

struct weir_stub {
	uint16_t row; /* its number in the sheet */
	uint16_t at;  /* its key, from the sheet on; its row follows */
	uint16_t key_bytes;
	uint8_t flags; /* WEIR_ENTRY_SHEET, and DEAD, DEFERRED */
	uint8_t page_log2;
	uint32_t delta; /* as in struct weir_buffered */
	uint32_t older; /* likewise; deferred, or its turn has not come: the half of its key's hash that says where in
			 * an index */
};
struct weir_sheet {
	struct weir_buffered b; /* delta: of the youngest; older: of the first, its number among those that are
				 * deferred; the others' follow */
	uint16_t count;
	uint16_t pad;
	struct weir_stub stub[];
};
_Static_assert(sizeof(struct weir_sheet) == 24 && sizeof(struct weir_stub) == 16, "stubs lie at multiples of 8");
_Static_assert(offsetof(struct weir_stub, key_bytes) == offsetof(struct weir_entry, key_bytes) &&
		       offsetof(struct weir_stub, flags) == offsetof(struct weir_entry, flags) &&
		       offsetof(struct weir_stub, page_log2) == offsetof(struct weir_entry, page_log2) &&
		       offsetof(struct weir_stub, delta) == offsetof(struct weir_buffered, delta) &&
		       offsetof(struct weir_stub, older) == offsetof(struct weir_buffered, older),
	       "stubs read like records");

enum {
	WEIR_SHEET_ROWS_MIN = 4, /* fewer are better off as records of their own */
	WEIR_SHEET_SLACK = 16    /* behind the data: copies of keys and rows may touch so much */
};

/* Of a record, not of an entry of a page. */
WEIR_INLINE bool weir_buffered_is_stub(const struct weir_buffered *bf)
{
	return (bf->e.flags & WEIR_ENTRY_SHEET) != 0;
}
WEIR_INLINE const struct weir_stub *weir_buffered_stub(const struct weir_buffered *bf)
{
	return (const struct weir_stub *)(const void *)bf;
}
WEIR_INLINE struct weir_buffered *weir_stub_buffered(struct weir_stub *st)
{
	return (struct weir_buffered *)(void *)st;
}
WEIR_INLINE struct weir_sheet *weir_stub_sheet(const struct weir_stub *st)
{
	return (struct weir_sheet *)((uintptr_t)(st - st->row) - sizeof(struct weir_sheet));
}
/* Its key; readable up to the next multiple of 8 beyond. */
WEIR_INLINE const uint8_t *weir_stub_key(const struct weir_stub *st)
{
	return (const uint8_t *)weir_stub_sheet(st) + st->at;
}
WEIR_INLINE uint32_t weir_stub_row_bytes(const struct weir_stub *st)
{
	return (uint32_t)st[1].at - st->at - st->key_bytes;
}
WEIR_INLINE const uint8_t *weir_buffered_key(const struct weir_state_def *def, const struct weir_buffered *bf,
					     uint32_t *bytes)
{
	if (!weir_buffered_is_stub(bf))
		return weir_entry_key(def, &bf->e, bytes);
	*bytes = bf->e.key_bytes;
	return weir_stub_key(weir_buffered_stub(bf));
}
WEIR_INLINE uint32_t weir_buffered_row_bytes(const struct weir_buffered *bf)
{
	return weir_buffered_is_stub(bf) ? weir_stub_row_bytes(weir_buffered_stub(bf)) : bf->row_bytes;
}
/* Whether its key is this one; hash: of it, the half that says where in an index. */
WEIR_INLINE bool weir_buffered_is(const struct weir_state_def *def, const struct weir_buffered *bf, uint32_t hash,
				  const uint8_t *key, uint32_t key_bytes)
{
	if (!weir_buffered_is_stub(bf))
		return weir_entry_is(def, &bf->e, hash, key, key_bytes);
	return bf->e.key_bytes == key_bytes && weir_key_equal(weir_stub_key(weir_buffered_stub(bf)), key, key_bytes);
}
/* The record changed: weir_gen_mark of the entry that it is, or stands in. */
WEIR_INLINE void weir_buffered_mark(struct weir_gen *g, struct weir_buffered *bf)
{
	weir_gen_mark(g, weir_buffered_is_stub(bf) ? &weir_stub_sheet(weir_buffered_stub(bf))->b.e : &bf->e);
}

/* Rows on their way into sheets, without NULLs, of one slot and one generation. */
struct weir_sheet_rows {
	const struct weir_keyed *keyed;
	const uint16_t *row; /* in keyed */
	uint32_t count;
	const uint32_t *upto; /* of these rows, from weir_sheet_measure: [0]: of those before the first */
	uint32_t col_count;
	int64_t start;   /* times of the generation begin there */
	bool deferred;   /* they are to be */
	bool in_order;   /* their times ascend */
	uint32_t oldest; /* set by weir_sheet_put: the least delta of those it took */
};
/* upto[i]: the bytes of keys and packed rows of rows before rows[i], up to upto[count]; a row that no sheet holds
 * counts WEIR_PAGE_BYTES_MAX. fixed: weir_row_fixed of the columns. */
void weir_sheet_measure(const struct weir_keyed *k, const uint16_t *rows, uint32_t count, uint32_t col_count,
			uint32_t fixed, uint32_t *upto);
/* Writes rows from the first on into one sheet of g, as many as fit, but not fewer than WEIR_SHEET_ROWS_MIN if there
 * are so many. NULL: some of the first few are too large for a sheet. */
struct weir_sheet *weir_sheet_put(struct weir_gen *g, struct weir_sheet_rows *sr);
/* Restore: whether e, an entry of `bytes` in a page of 2 to the power of page_log2, is a sheet that can be read, its
 * rows those of sd and plain (weir_row_is_plain), so that nobody need look again; it is made ready to be. */
bool weir_sheet_check(struct weir_entry *e, uint64_t bytes, uint8_t page_log2, const struct weir_state_side *sd);
/* How many records an entry of join buffers is that is not dead. */
uint32_t weir_sheet_live(const struct weir_entry *e);

#endif
