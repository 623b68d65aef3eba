/* slot.h: what a slot consists of, for the files of this folder. @thread worker (the owner), except what closed.c
 * reads. */
#ifndef WEIR_STATE_SLOT_H
#define WEIR_STATE_SLOT_H

#include "hotpath/state/blob.h"
#include "hotpath/state/page.h"
#include "hotpath/time/window.h"

/* Where a generation starts, beside it, so that the search touches one array. */
struct weir_gen_at {
	int64_t start;
	struct weir_gen *g;
};

/* A session waits to close: close is at most the session's true closing time (it grows as records extend the session,
 * and the node follows when it comes up). Pins the entry's page. */
struct weir_close_node {
	int64_t close;
	uint32_t ref;
	uint32_t pad;
};

/* One element of the change list. */
struct weir_change {
	uint32_t ref;
	uint32_t is_delete; /* a swallowed session that had been emitted */
};

/* A growing array in blocks of the slot. */
struct weir_vec {
	void *data;
	uint32_t count;
	uint32_t capacity;
};
void *weir_vec_push(struct weir_vec *v, struct weir_blocks *bl, uint32_t element_bytes);
void weir_vec_fini(struct weir_vec *v, struct weir_blocks *bl, uint32_t element_bytes);

/* A barrier that is not committed yet: while it is not, pages dirty since `since` count as dirty. */
struct weir_pending {
	uint64_t epoch;
	uint64_t since;
};
struct weir_pack_at {
	uint64_t epoch;
	uint32_t k;
	uint32_t pad;
};
struct weir_given_at {
	uint64_t epoch; /* of the empty image */
	uint32_t no;
	uint32_t pad;
};

/* What the changelog holds of a page number. */
struct weir_logged {
	uint64_t epoch; /* of the newest image */
	uint32_t parts; /* parts with a body, 0: none */
	uint32_t pad;
};

/* Bookkeeping of dirty.c. */
struct weir_dirty {
	uint32_t queue_first, queue_last; /* pages by dirty_since, oldest first */
	uint64_t credit;                  /* bytes of images that may still be written */
	struct weir_vec given;            /* u32: pages given back since the last barrier */
	struct weir_vec given_imaged;     /* weir_given_at: their numbers are free once the image is committed */
	struct weir_vec pending;          /* weir_pending, ascending epochs */
	struct weir_numbers packs;        /* taken: live packs */
	struct weir_vec live_packs;       /* weir_pack_at, ascending epochs, from live_from on */
	uint32_t live_from;
	uint64_t *pack_epoch; /* by k: epoch of the newest body in the changelog, 0 none; packs_capacity of them */
	uint32_t pack_capacity;
	uint32_t pack_high;     /* numbers at and above have no body in the changelog */
	struct weir_vec logged; /* struct weir_logged by page number */
	uint32_t logged_pages;  /* those with parts */
	uint64_t epoch;         /* of the last barrier */
	bool meta;              /* live windows or counters changed since the last barrier */
};

/* Which generation of a join's buffers a row of one side belongs to: the same for all rows whose time is in [from, to),
 * so that it need not be searched for each. */
struct weir_join_reach {
	int64_t from, to;
	struct weir_gen *own; /* NULL: not there yet */
};

struct weir_join_index;
struct weir_slot {
	const struct weir_state_def *def;
	uint32_t number;
	/* Rows that are not EMITTED may stand in the result all the same: what is applied now may have been applied,
	 * and shown, before a crash that no commit came before (run/doubt.h). What goes is deleted, shown or not. */
	bool in_doubt;
	struct weir_blocks blocks;
	struct weir_pages pages;
	uint64_t records; /* rows that entered the slot: the order FIRST and LAST go by */
	/* WINDOW, JOIN: live generations, ascending; SESSION, SLIDING, TABLE, ROWS: exactly one. */
	struct weir_gen_at *gens;
	uint32_t gen_count, gen_capacity;
	struct weir_gen *current; /* the one used last, and what it covers */
	int64_t current_start, current_end;
	int64_t expired_at;    /* task time when entries were last looked at for their TTL */
	int64_t closed_start;  /* WINDOW: the last mark of a window that was closed, WEIR_TIME_UNSET: none */
	uint64_t entries_hint; /* entries of the last closed generation */
	/* Windows that closed by time but were not asked for yet: frozen before a later row reached one of their panes.
	 */
	struct weir_closed *ready, *ready_last;
	/* SESSION, SLIDING: a binary heap by close. JOIN: one of rows that may leave without a match. */
	struct weir_vec closing;
	struct weir_join_reach reach[2]; /* JOIN of buffers, by side; what makes or drops a generation forgets it */
	struct weir_join_index *joined;  /* likewise: join_index.h; NULL: no generation came yet */
	/* JOIN with a table's history: of keys with many versions, struct weir_history, and the bytes of them. */
	struct weir_index histories;
	uint64_t history_bytes;
	/* Change list: a queue; elements before change_at are drained. */
	struct weir_vec change;
	uint32_t change_at;
	uint32_t change_released; /* elements before have given up their pins */
	struct weir_gen *limbo;   /* closed generations with undrained changes */
	struct weir_dirty d;
	struct weir_restore *restore; /* between load and restore_finish */
};

/* ---- slot.c ---- */
void weir_slot_unqueue(struct weir_slot *sl, struct weir_page *p); /* out of the dirty queue */
void weir_slot_note_given(struct weir_slot *sl, uint32_t no);
/* Index of the first generation with start >= start. */
uint32_t weir_slot_search(const struct weir_slot *sl, int64_t start);
struct weir_gen *weir_slot_add_gen(struct weir_slot *sl, uint32_t at, int64_t start);
/* Takes generation `at` out of the list and gives it back (or into limbo). */
void weir_slot_drop_gen(struct weir_slot *sl, uint32_t at);
void weir_slot_note_change(struct weir_slot *sl, struct weir_gen *g, struct weir_entry *e);

WEIR_INLINE struct weir_gen *weir_slot_only_gen(const struct weir_slot *sl)
{
	return sl->gens[0].g;
}
/* Buffers whose rows meet within a time of each other. Rows in windows, and beside a table's history, meet in one
 * generation. */
WEIR_INLINE bool weir_def_meets(const struct weir_state_def *def)
{
	return def->kind == WEIR_STATE_JOIN && def->within && !weir_join_in_windows(def);
}
/* Whether rows of a generation only wait to leave, beside a table's history: nobody looks them up, so that they are in
 * no index and no list; they have numbers instead. */
WEIR_INLINE bool weir_def_queues(const struct weir_state_def *def, int64_t start)
{
	return def->versioned && (start & 1) == 0;
}
WEIR_INLINE bool weir_def_panes(const struct weir_state_def *def)
{
	return def->kind == WEIR_STATE_WINDOW && def->pane_ms != def->size_ms;
}
/* A window goes by one number, its mark, and windows of growing marks close one after the other: its start, or of
 * cumulating windows, which share one, the start of its last advance_ms. Generations of whole windows start at it. */
WEIR_INLINE int64_t weir_def_reach(const struct weir_state_def *def) /* from a mark to the window's end */
{
	return def->cumulative ? def->advance_ms : def->size_ms;
}
WEIR_INLINE int64_t weir_def_start(const struct weir_state_def *def, int64_t mark)
{
	return def->cumulative ? weir_window_last(mark, def->size_ms, def->offset_ms) : mark;
}
/* First and last mark of the windows that hold ts. */
WEIR_INLINE int64_t weir_def_first(const struct weir_state_def *def, int64_t ts)
{
	return def->cumulative ? weir_window_last(ts, def->advance_ms, def->offset_ms)
			       : weir_window_first(ts, def->size_ms, def->advance_ms, def->offset_ms);
}
WEIR_INLINE int64_t weir_def_last(const struct weir_state_def *def, int64_t ts)
{
	return def->cumulative ? weir_window_last(ts, def->size_ms, def->offset_ms) + def->size_ms - def->advance_ms
			       : weir_window_last(ts, def->advance_ms, def->offset_ms);
}
/* Generations come every step_ms. */
WEIR_INLINE int64_t weir_def_step(const struct weir_state_def *def)
{
	return weir_def_panes(def) ? def->pane_ms : def->advance_ms;
}

/* ---- lanes: apply.c ---- */
struct weir_probe {
	struct weir_lanes ln;
	uint64_t hash[WEIR_LANES];
};
/* Lane i: row goes into its generation. Asks for the line of the index where the search will start. */
WEIR_INLINE void weir_probe_set(struct weir_probe *pr, uint32_t i, const struct weir_keyed *in, uint16_t row,
				struct weir_gen *gen, uint64_t order)
{
	uint64_t hash = in->hash[row];
	__builtin_prefetch(&gen->ix.slot[weir_index_home(&gen->ix, weir_hash_index(hash))], 0, 3);
	pr->hash[i] = hash;
	pr->ln.row[i] = row;
	pr->ln.gen[i] = gen;
	pr->ln.order[i] = order;
}
/* Finds or makes the entry of every lane's row in its generation and folds the row. ln.count is set. */
void weir_apply_lanes(const struct weir_state_def *def, struct weir_probe *pr, const struct weir_keyed *in);

/* ---- clock ---- */
WEIR_INLINE int64_t weir_clock_at(const struct weir_state_def *def, const struct weir_clock *ck, int64_t run)
{
	if (def->time_max)
		return weir_max_i64(ck->before, run);
	return weir_max_i64(ck->before, weir_min_i64(ck->others, weir_max_i64(ck->part, run)));
}

/* ---- window_table.c ---- */
void weir_window_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		       const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out);
int64_t weir_window_next_close(const struct weir_slot *sl);
struct weir_closed *weir_window_close(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max);
/* ---- session_table.c ---- */
void weir_session_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
			const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out);
int64_t weir_session_next_close(const struct weir_slot *sl);
struct weir_closed *weir_session_close(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max);
void weir_session_forget(struct weir_slot *sl, struct weir_entry *e);
/* Restore: links every session into its key's list and the close queue. False if two of a key overlap. */
bool weir_session_rebuild(struct weir_slot *sl);
/* ---- sliding_table.c ---- */
void weir_sliding_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
			const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out);
int64_t weir_sliding_next_close(const struct weir_slot *sl);
struct weir_closed *weir_sliding_close(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max);
void weir_sliding_forget(struct weir_slot *sl, struct weir_entry *e);
/* Restore: links every window into its key's list and the queue. False if two of a key are the same. */
bool weir_sliding_rebuild(struct weir_slot *sl);
/* ---- kv_table.c ---- */
void weir_kv_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		   const uint16_t *rows, uint32_t count, struct weir_applied *out);

/* ---- retract.c ---- */
void weir_retract_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
			const uint16_t *rows, uint32_t count, struct weir_applied *out);
/* ---- rows_table.c ---- */
void weir_rows_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		     const uint16_t *rows, uint32_t count, struct weir_applied *out);
/* In doubt: a numbered row that comes behind a newer one of its key stands for a moment, as it may have stood when it
 * was read before. *was and *time: the newer one, which is put back; false: there is none, or it is none. */
bool weir_rows_put_stale(struct weir_slot *sl, const struct weir_keyed *in, uint32_t row, struct weir_buf *was,
			 int64_t *time);
void weir_rows_put_back(struct weir_slot *sl, const struct weir_keyed *in, uint32_t row, const struct weir_buf *was,
			int64_t time);
/* A deleted row that the change list has read goes. */
void weir_rows_forget(struct weir_slot *sl, struct weir_entry *e);
/* Sets the row of e, an entry of a table's generation g; takes the entry with key out of g. */
void weir_table_set(struct weir_gen *g, const struct weir_state_def *def, struct weir_entry *e, const void *row,
		    uint32_t bytes);
void weir_table_remove(struct weir_gen *g, const struct weir_state_def *def, struct weir_entry *e, uint64_t *at);
WEIR_INLINE struct weir_text *weir_table_text(const struct weir_state_def *def, const struct weir_entry *e)
{
	return (struct weir_text *)(void *)((uintptr_t)e + def->head_bytes);
}
/* ---- join_state.c ---- */
/* Restore: heads of chains into indexes, rows that wait into the queue. False if something cannot be. */
bool weir_join_rebuild(struct weir_slot *sl);
/* foreign.c: whether every left row is in one chain. */
bool weir_foreign_check(struct weir_slot *sl);
bool weir_join_window_fits(const struct weir_state_def *def, int64_t window);
int64_t weir_join_next_close(const struct weir_slot *sl);

/* ---- closed.c ---- */
struct weir_closed {
	struct weir_closed *next;
	const struct weir_state_def *def;
	struct weir_pages pages; /* a view of the detached generation's, or a directory of its own */
	struct weir_gen gen;     /* private: its generation */
	int64_t start, end;      /* WINDOW */
	uint32_t count;
	uint64_t *entry; /* pointers of count entries, in a block of entry_bytes */
	uint64_t entry_bytes;
	uint64_t bytes;
	bool private;
};
struct weir_closed *weir_closed_create(struct weir_slot *sl);
/* Moves generation `at` of the slot out as it is. */
struct weir_closed *weir_closed_detach(struct weir_slot *sl, uint32_t at);
/* A private generation to be filled by the caller (cl->gen); then weir_closed_seal takes its index as the entry list.
 */
struct weir_closed *weir_closed_begin(struct weir_slot *sl, uint64_t entries_expected);
void weir_closed_seal(struct weir_slot *sl, struct weir_closed *cl);
/* Writes entry e as row `row`: keys, aggregates, window columns (start, end unused for tables). Returns the bytes its
 * strings take in r's memory; a reader stops at WEIR_ROWS_BYTES of them. */
uint64_t weir_rows_put(struct weir_rows *r, uint32_t row, const struct weir_state_def *def,
		       const struct weir_pages *pages, const struct weir_entry *e, int64_t start, int64_t end);
#define WEIR_ROWS_BYTES (UINT64_C(4) << 20)

/* ---- dirty.c, for restore.c ---- */
void weir_dirty_note_pack(struct weir_slot *sl, uint32_t k, uint64_t epoch);
/* The changelog has parts 0..parts - 1 of an image of page no; or none any more. */
void weir_dirty_note_image(struct weir_slot *sl, uint32_t no, uint32_t parts, uint64_t epoch);
void weir_dirty_note_no_image(struct weir_slot *sl, uint32_t no);
/* Puts a clean page at the end of the dirty queue; epochs of calls must not fall. */
void weir_dirty_queue(struct weir_slot *sl, struct weir_page *p, uint64_t epoch);

/* ---- restore.c ---- */
void weir_restore_free(struct weir_slot *sl);

#endif
