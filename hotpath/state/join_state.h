/* join_state.h: what a join keeps of its two sides in one slot. Rows come in merged order (hotpath/run/join.c); here
 * they are stored and found again.
 *
 *   table side   one generation, numbered by the side: the latest row of each key
 *   buffers      both sides are streams: generations of event time, start = bucket * 2 + side. A key's
 *                records of one generation hang together, newest first, ordered by (time, order of arrival):
 *
 *                  index[key] -> record --older--> record --older--> ...
 *
 * Rows in windows: a generation is a window of one side, numbered by the window; all its records have one time.
 *
 * Rows that wait beside a table's history: nobody looks them up, so they are in no index and no list; each has a number
 * by arrival in its generation (WEIR_ENTRY_DEFERRED). Older builds made lists of them: those stay as they were
 * restored.
 *
 * A record is kept while task time <= time + keep (before + after + grace). One of an outer side that has no match is
 * final when task time > time + the other side's reach + grace: it is gone from then on for every look-up, and leaves
 * at the next order point. @thread worker (the slot's owner) */
#ifndef WEIR_STATE_JOIN_STATE_H
#define WEIR_STATE_JOIN_STATE_H

#include "hotpath/state/join_index.h"

struct weir_join_row {
	uint64_t hash;
	int64_t time;
	const uint8_t *key; /* readable up to the next multiple of 8 beyond it; the packed row (row.h) follows */
	uint32_t key_bytes;
	uint32_t row_bytes;
	const uint8_t *row;
};

/* How long records are kept, and when one of `side` without a match is final. */
WEIR_INLINE int64_t weir_join_reach_ms(const struct weir_state_def *def, uint32_t side)
{
	return def->versioned ? 0 : side == 0 ? def->after_ms : def->before_ms;
}
/* How much older, and younger, than a row of `side` the other side's may be that match it. */
WEIR_INLINE int64_t weir_join_back_ms(const struct weir_state_def *def, uint32_t side)
{
	return side == 0 ? def->before_ms : def->after_ms;
}
WEIR_INLINE int64_t weir_join_ahead_ms(const struct weir_state_def *def, uint32_t side)
{
	return side == 0 ? def->after_ms : def->before_ms;
}
WEIR_INLINE bool weir_join_is_final(const struct weir_state_def *def, uint32_t side, int64_t time, int64_t task_time)
{
	return task_time > time + weir_join_reach_ms(def, side) + def->grace_ms;
}
WEIR_INLINE bool weir_join_is_late(const struct weir_state_def *def, int64_t time, int64_t task_time)
{
	return task_time > time + weir_join_keep_ms(def);
}

/* ---- tables ---- */
void weir_join_table_put(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r);
void weir_join_table_delete(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r);
/* The key's row; false if there is none. Valid until the table changes. */
bool weir_join_table_find(const struct weir_slot *sl, uint32_t side, const struct weir_join_row *r,
			  struct weir_join_row *out);
/* The key's entry and its row, NULL and untouched if there is none. */
struct weir_entry *weir_join_table_entry(const struct weir_slot *sl, uint32_t side, const struct weir_join_row *r,
					 struct weir_join_row *out);
/* Asks for what a look-up will touch: its index line, or, entry, what that leads to. */
WEIR_INLINE void weir_index_prefetch(const struct weir_index *ix, uint64_t hash, bool entry)
{
	if (!entry) {
		__builtin_prefetch(&ix->slot[weir_index_home(ix, weir_hash_index(hash))], 0, 3);
		return;
	}
	const struct weir_entry *e = weir_index_guess(ix, hash);
	if (e == NULL)
		return;
	__builtin_prefetch(e, 1, 3);
	__builtin_prefetch((const uint8_t *)e + 64, 1, 3);
}
void weir_join_table_prefetch(const struct weir_slot *sl, uint32_t side, uint64_t hash, bool entry);
/* The index it asks, for a loop over rows. */
const struct weir_index *weir_join_table_index(const struct weir_slot *sl, uint32_t side);

/* ---- buffers ---- */
struct weir_join_found {
	struct weir_buffered *bf;
	int64_t time;
};
/* Appends to list, as struct weir_join_found, the records of `side` with r's key and a time in [from, to] that count at
 * task_time, in order of (time, arrival). They stay where they are until weir_join_drop. */
void weir_join_buffer_find(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, int64_t from, int64_t to,
			   int64_t task_time, struct weir_buf *list);
/* The same for a row of `side` itself: the other side's records that match it in key and time. */
void weir_join_buffer_find_matches(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r,
				   int64_t task_time, struct weir_buf *list);
/* Asks for what that and weir_join_buffer_put will touch, as weir_join_table_prefetch does. */
void weir_join_buffer_prefetch(const struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, bool entry);
/* Keeps r; matched: it has had a match. */
void weir_join_buffer_put(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, bool matched);
/* The record has a match. */
void weir_join_buffer_match(struct weir_slot *sl, struct weir_buffered *bf);
WEIR_INLINE void weir_join_buffer_get(const struct weir_state_def *def, const struct weir_join_found *fd,
				      struct weir_join_row *out)
{
	uint32_t n;
	const uint8_t *key = weir_buffered_key(def, fd->bf, &n);
	*out = (struct weir_join_row){.time = fd->time,
				      .key = key,
				      .key_bytes = n,
				      .row = key + n,
				      .row_bytes = weir_buffered_row_bytes(fd->bf)};
}
uint32_t weir_join_buffer_side(const struct weir_slot *sl, const struct weir_buffered *bf);
/* Appends the records that are final without a match at task_time (all: every one without a match), by time, key and
 * arrival, and marks them gone. */
void weir_join_take_final(struct weir_slot *sl, int64_t task_time, bool all, struct weir_buf *list);
/* Windows: keeps r, whose time is the last millisecond of a window. null_key: it equals nothing. */
void weir_join_window_put(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, bool null_key);
/* Appends the records of both sides of the first one if it is closed at task_time (all: whatever is left), by
 * key, side and arrival; *time: its last millisecond. False: none. It stays until weir_join_window_drop. */
bool weir_join_window_take(const struct weir_slot *sl, int64_t task_time, bool all, struct weir_buf *list,
			   int64_t *time);
void weir_join_window_drop(struct weir_slot *sl);
WEIR_INLINE bool weir_join_window_is_null(const struct weir_buffered *bf)
{
	return (bf->e.flags & WEIR_ENTRY_GONE) != 0;
}
WEIR_INLINE bool weir_join_buffer_has_match(const struct weir_buffered *bf)
{
	return (bf->e.flags & WEIR_ENTRY_EMITTED) != 0;
}
/* Gives back what no look-up at task_time or later would find. */
void weir_join_drop(struct weir_slot *sl, int64_t task_time);

/* ---- buffers where no side is outer: a record is stored when it comes, and enters when its turn comes ----
 *
 * Until then no look-up sees it. By the next barrier every record has entered or has been refused. */

/* Where records of one side of a slot go that come one after the other. */
struct weir_join_place {
	struct weir_slot *sl;
	uint32_t side;
	int64_t from, to; /* times of g */
	struct weir_gen *g;
	struct weir_page *page; /* NULL: closed */
	uint8_t *at, *end;      /* in it */
	uint64_t low;           /* of what an index holds of a record, without its hash: this + address / 8 */
	uint32_t taken;
	uint8_t page_log2;
};
/* Before anybody else looks at the slot. */
WEIR_INLINE void weir_join_place_close(struct weir_join_place *pc)
{
	if (pc->page != NULL) {
		pc->page->used = (uint32_t)(pc->at - pc->page->base);
		pc->g->entries += pc->taken;
		pc->g->appended += pc->taken;
	}
	pc->page = NULL;
	pc->from = pc->to = 0;
	pc->taken = 0;
}
/* Where rows of pc->side at `time` go, if there is such a place already: the next row is mostly of that time. */
WEIR_INLINE void weir_join_place_open(struct weir_join_place *pc, struct weir_slot *sl, int64_t time)
{
	const struct weir_join_reach *re = &sl->reach[pc->side];
	struct weir_gen *g = re->own;
	pc->sl = sl;
	if (WEIR_UNLIKELY(time < re->from || time >= re->to || g == NULL || g->entry_page == 0))
		return;
	pc->g = g;
	pc->from = re->from;
	pc->to = re->to;
	pc->page = &sl->pages.page[g->entry_page];
	pc->at = pc->page->base + pc->page->used;
	pc->end = pc->page->base + pc->page->bytes;
	pc->page_log2 = (uint8_t)__builtin_ctz(pc->page->bytes);
	pc->low = ((uint64_t)g->code << 32 | (uint64_t)g->entry_page << WEIR_REF_SHIFT) -
		  (uint64_t)(uintptr_t)pc->page->base / 8;
}
uint64_t weir_join_place_take_slow(struct weir_join_place *pc, int64_t time, uint64_t hash, uint32_t key_bytes,
				   uint32_t row_bytes, uint8_t **key);
/* Room for a record; *key: where key and row are to be written. What the index will hold of it. Cost: about 25
 * instructions. */
WEIR_INLINE uint64_t weir_join_place_take(struct weir_join_place *pc, int64_t time, uint64_t hash, uint32_t key_bytes,
					  uint32_t row_bytes, uint8_t **key)
{
	uint64_t bytes = weir_buffered_bytes(sizeof(struct weir_buffered), key_bytes, row_bytes);
	if (WEIR_UNLIKELY(time < pc->from || time >= pc->to || (uint64_t)(pc->end - pc->at) < bytes ||
			  key_bytes >= WEIR_KEY_LONG))
		return weir_join_place_take_slow(pc, time, hash, key_bytes, row_bytes, key);
	struct weir_buffered *bf = (struct weir_buffered *)(void *)pc->at;
	weir_store_le64(pc->at + bytes - 16, 0); /* what pads it: up to 11 bytes */
	weir_store_le64(pc->at + bytes - 8, 0);
	bf->e = (struct weir_entry){
		.hash = weir_hash_index(hash), .key_bytes = (uint16_t)key_bytes, .page_log2 = pc->page_log2};
	bf->delta = (uint32_t)(time - pc->from);
	bf->older = 0;
	bf->row_bytes = row_bytes;
	*key = (uint8_t *)(bf + 1);
	uint64_t place = ((uint64_t)(weir_hash_index(hash) & ~(uint32_t)WEIR_JOIN_LOW_BITS) << 32) + pc->low +
			 (uint64_t)(uintptr_t)pc->at / 8;
	pc->at += bytes;
	__builtin_prefetch(pc->at + 16 * WEIR_CACHE_LINE, 1, 3);
	pc->taken++;
	return place;
}

/* A record, or any other row of a join, when its turn is known. */
struct weir_join_turn {
	uint64_t row;  /* what its index would hold of it (weir_join_place_take); or enum weir_join_no_row. Where rows
			* are no records: its hash's tag << 48 | where it lies */
	int64_t time;  /* as its lane counts it: a record's own */
	uint32_t hash; /* the half of the hash that says where in an index */
	uint32_t turn; /* place in the merged order; the highest bit is its side */
};
/* Rows of an inner join that never become records: nothing but a time, a key that is NULL, one that came late. */
enum weir_join_no_row { WEIR_JOIN_NO_ROW, WEIR_JOIN_NULL_KEY, WEIR_JOIN_LATE, WEIR_JOIN_NO_ROWS };
#define WEIR_JOIN_SIDE (1u << 31)
WEIR_INLINE uint32_t weir_join_turn_side(const struct weir_join_turn *t)
{
	return t->turn >> 31;
}
/* Where rows are no records. */
WEIR_INLINE uint64_t weir_join_turn_hash(const struct weir_join_turn *t)
{
	return t->row >> 48 << 32 | t->hash;
}

WEIR_INLINE struct weir_buffered *weir_join_turn_record(const struct weir_slot *sl, const struct weir_join_turn *t)
{
	return weir_join_place_record(&sl->pages, t->row);
}

struct weir_join_pair {
	struct weir_buffered *own, *other;
	int64_t time;  /* the later of both */
	uint32_t side; /* of own */
};
struct weir_join_meeting {
	const struct weir_join_turn *next, *end; /* readable WEIR_JOIN_AHEAD beyond end */
	const struct weir_join_turn *asked;      /* what those before will touch has been asked for; at first NULL */
	int64_t task_max;                        /* task time is nowhere above */
	struct weir_join_pair *pairs;
	uint32_t count, room; /* of pairs */
	uint32_t side;        /* weir_join_look_sheet: of its rows */
};
enum { WEIR_JOIN_AHEAD = 64 };
/* Enters rows, in their order, until the end or until there is no room. True: next asks for a closer look.
 * (join_meet.c)
 */
bool weir_join_meet(struct weir_slot *sl, struct weir_join_meeting *mt);
/* One row: weir_join_buffer_find_matches, then look-ups see it. True: it has matches. */
bool weir_join_buffer_enter(struct weir_slot *sl, const struct weir_join_turn *t, int64_t task_time,
			    struct weir_buf *list);
/* Where records of `side` at `time` go, made if it is not there, or NULL: it has no code, and no sheets. */
struct weir_gen *weir_join_gen_of(struct weir_slot *sl, uint32_t side, int64_t time);
/* The times of its generation are in [*from, *to). */
void weir_join_bounds_of(struct weir_slot *sl, uint32_t side, int64_t time, int64_t *from, int64_t *to);
/* Records of a sheet, which no row that had its turn can meet, enter: look-ups see them. */
void weir_join_enter_sheet(struct weir_slot *sl, struct weir_sheet *sh);
/* Rows *from to `to` of a sheet of the deferred side, mt->side, whose generation has a code, meet the other side's, one
 * after the other, as long as there is room for pairs; *from: the next one. True: that asks for a closer look. */
bool weir_join_look_sheet(struct weir_slot *sl, struct weir_sheet *sh, uint32_t *from, uint32_t to,
			  struct weir_join_meeting *mt);
/* The record is late: its room is lost until its generation goes. */
void weir_join_buffer_refuse(struct weir_slot *sl, const struct weir_join_turn *t);

#endif
