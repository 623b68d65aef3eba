/* join_private.h: the inside of a join, shared by join.c (holding, merging, most kinds) and join_*.c (one kind each).
 * @thread worker, all of it */
#ifndef WEIR_RUN_JOIN_PRIVATE_H
#define WEIR_RUN_JOIN_PRIVATE_H

#include "hotpath/run/join.h"
#include "hotpath/run/worker_state.h"
#include "hotpath/state/join_state.h"
#include "hotpath/state/row.h"

/* A record as it came, for late.topic: the batch it stood in is gone by the time it is judged. Of a row of a state the
 * value is JSON, topic its name and topic_partition its slot. */
struct original {
	bool up;
	struct weir_record record;
	const char *topic;
	uint32_t topic_partition;
	uint64_t seq;
	uint32_t row;
	uint32_t scan;
};

struct held {
	struct weir_join_row r;
	const struct original *original;
	uint8_t side;
	bool deletes;
	bool null_key; /* equals nothing */
};

/* A row that waits for its turn, or, row 0, a time that only moves its lane's. */
enum { ITEM_SHEET = INT32_MIN }; /* in slot; row: a struct weir_sheet, hash: its least delta (join_sheets.c) */
struct item {
	int64_t time;  /* as the lane counts it: its key in the merge is the largest so far */
	uint64_t row;  /* what an index would hold of it: its hash's tag << 48 | where it lies; or enum weir_join_no_row
			*/
	uint32_t hash; /* the half of it that says where in an index */
	uint32_t slot;
};

WEIR_INLINE const struct held *weir_join_held(const struct weir_join_turn *t)
{
	return (const struct held *)(const void *)weir_index_entry(t->row);
}

/* Memory of held rows: blocks of one size, kept for the next time; a row that is larger has one of its own. */
enum { BLOCK_BYTES = 8192, BLOCKS_KEPT = 16384, COUNTS_MAX = 1 << 17 };
struct block {
	struct block *next;
	uint8_t bytes[];
};
struct hold_memory {
	uint8_t *at, *end;
};

struct lane {
	uint32_t branch;
	uint32_t from;         /* global partition, or upstream slot */
	bool up;               /* from an upstream slot */
	bool topic;            /* of a repartition topic: its time is not its rows' own, and moves behind them */
	int64_t before;        /* its time when holding began */
	int64_t high;          /* largest key so far */
	int64_t now;           /* its time when the merge began */
	bool out;              /* and whether it was out of the minimum */
	struct weir_buf items; /* struct item */
	struct weir_buf moves; /* int64_t: times of rows that were filtered and moved the lane's (join_sheets.c) */
};

/* The lanes of a group while it is merged, by their number in it. */
struct pass {
	const struct item *next;
	int64_t key;    /* of the item passed last */
	int64_t before; /* the lane's time when holding began */
	int64_t now;
	int64_t last;  /* its time once all is passed; INT64_MAX: it is out of the minimum then */
	uint32_t left; /* items still to come */
	uint32_t side;
	bool up;
};

/* An item while lanes of any keys are merged. */
struct mark {
	int64_t key;
	uint32_t lane;
};

/* A slot whose rows may go into sheets: join_sheets.c. */
struct pair_of {
	uint32_t lane[2];             /* by side */
	uint32_t sheet_rows, records; /* since the last order point */
	uint32_t without;             /* so many order points without sheets are still to come, */
	uint32_t without_next;        /* and after the next one that was no good */
	bool used;                    /* some lane's items are not all of its rows */
};
/* Where a lane stands. */
struct lane_at {
	uint32_t item, row; /* row: in the item's sheet */
	uint32_t move;      /* of moves, those that are passed: as far as a task time was asked for */
	int64_t key;        /* of what is passed */
};
/* The turns of such a slot. [0]: the lane whose rows enter, [1]: whose rows look. */
struct sheet_run {
	bool active;
	uint32_t slot;
	const struct lane *lane[2];
	const struct item *it[2];
	uint32_t count[2];
	bool looks_first; /* of equal keys */
	struct lane_at enters, looks;
	struct lane_at passed; /* of the lane that enters, as far as a row that looks has asked for its task time */
	bool turn_looks;       /* whose turn it is, */
	int64_t turn_key;      /* and the row's key */
};

enum join_phase { PHASE_ROWS, PHASE_FINAL, PHASE_END };

struct weir_join {
	struct weir_worker *w;
	uint32_t stage;
	const struct weir_plan_stage *ps;
	const struct weir_state_def *def;
	bool has_stage_branch;
	bool reads_keys;            /* somebody reads key columns of its rows */
	struct weir_beside *beside; /* join_beside.c; NULL: a join of another kind */
	struct pair_of *pairs_of;   /* by slot; NULL: no rows go into sheets */
	uint32_t looks;             /* the side of those that are deferred */
	uint64_t *filter;           /* weir_join_deferred_filter */
	struct sheet_run sheet_run; /* while a slot's rows have their turns */
	bool inner;                 /* rows lie in the join's buffer from when they come: join_inner.c */
	/* holding */
	bool holding;
	uint32_t *lane_base; /* by branch of the plan: its first lane */
	struct lane *lanes;  /* tables first: equal times go in this order */
	uint32_t lane_count;
	int64_t *task_before; /* by slot (direct) or one for all: when holding began */
	int64_t task_before_max;
	struct weir_buf *first;     /* by slot: struct held *, rows of a global table */
	struct hold_memory *memory; /* by slot */
	struct block *blocks, *free_blocks, *large;
	uint32_t free_count;
	uint64_t block_bytes, large_bytes; /* of blocks, free ones too; of large */
	struct weir_scratch scratch;       /* originals */
	uint32_t *slot_rows;               /* by slot: how many are held */
	uint16_t by_slot[WEIR_BATCH_ROWS];
	/* merged: rows by slot, in their order */
	uint32_t *order;       /* lanes of the group, by their number in it, in the order of their items */
	struct mark *marks[2]; /* NULL until they are needed */
	uint32_t order_capacity;
	struct weir_join_turn *sorted;
	int64_t *tasks; /* task times of turns, of joins within a time; of an inner one only when they are asked for */
	int64_t task_max; /* none of them is above */
	bool has_tasks;
	uint32_t *slot_start, *slot_at;
	/* while a group is merged */
	uint32_t *group;   /* its lanes */
	struct pass *pass; /* by lane of the group */
	uint32_t *start;   /* likewise: its run */
	uint32_t *counts;
	/* applying */
	bool running;
	enum join_phase phase;
	uint32_t at, end;
	const struct held *current; /* whose matches are being written */
	struct held meeting;        /* current, of an inner join, and its pairs that are to be written at once */
	struct weir_join_pair pairs[WEIR_BATCH_ROWS];
	struct weir_buf found; /* struct weir_join_found */
	uint32_t found_at;
	struct weir_rows *out; /* rows of fr, or own */
	struct weir_fragment *fr;
	struct weir_rows own;
	const struct weir_col **own_ptrs;
	uint64_t out_bytes;
	/* Rows of out whose columns are still to be written, when it is handed on: a column at a time. */
	uint32_t later_count;
	uint16_t later[WEIR_BATCH_ROWS];
	struct weir_packed packed[2][WEIR_BATCH_ROWS]; /* by side */
	/* Others of them, side by side from plain_first on, whose both rows lie in sheets, which are checked whenever
	 * they are read back (weir_sheet_check). */
	uint32_t plain_first, plain_count;
	const uint8_t *plain[2][WEIR_BATCH_ROWS]; /* by side: packed rows */
	struct weir_program *residual;
	struct weir_rows trial; /* pairs whose condition is looked at */
	const struct weir_col **trial_ptrs;
	struct weir_row_errors errors;
	/* windows: the closed one whose rows are being written */
	struct weir_buf window; /* struct weir_join_found */
	uint32_t window_at;
	int64_t window_time;
	bool window_open;
	bool window_found; /* found holds the matches of the row at window_at */
	/* foreign keys: the left rows of current, a right one, that are still to be written */
	uint32_t foreign_next;
	bool foreign_there; /* the right row is there now */
	struct weir_buf foreign_key;
};

/* ---- join_hold.c ---- */

/* Task time at a turn of a join within a time. */
int64_t weir_join_task_at(struct weir_join *jn, const struct weir_join_turn *t);
/* The first rows since the last order point. */
void weir_join_hold_begin(struct weir_join *jn);
/* What the clock says of a lane; *out: it is not in the minimum. */
int64_t weir_join_lane_time(const struct weir_join *jn, const struct lane *ln, bool *out);

/* bytes (a multiple of 8) where hm, among whose held rows they come, has no more room. */
void *weir_join_more(struct weir_join *jn, struct hold_memory *hm, size_t bytes);

/* ---- join_beside.c ---- */

void weir_beside_create(struct weir_join *jn);
/* The first rows since the last order point have come: whether rows of the stream are held is settled for all of them.
 */
void weir_beside_open(struct weir_join *jn);
void weir_beside_destroy(struct weir_join *jn);
/* weir_join_hold of a branch that is not global. */
void weir_beside_hold(struct weir_join *jn, const struct weir_fragment *fr, const struct weir_fragment_branch *fb,
		      const struct weir_keyed *keyed, const uint16_t *rows, uint32_t count, const uint64_t *skip);
/* Puts the slot's rows into their order, to be run from jn->at to jn->end; those that were not held are through. */
void weir_beside_begin(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl);
/* The rows of a slot, from jn->at on. False: no fragment is free, come again. */
bool weir_beside_run(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl);
/* Writes the columns of rows that were run, which are handed on now. */
void weir_beside_write(struct weir_join *jn, struct weir_rows *r);
/* What was held is forgotten. */
void weir_beside_reset(struct weir_join *jn);
/* Bytes of memory besides the blocks that rows lie in. */
uint64_t weir_beside_held_bytes(const struct weir_join *jn);
/* The first column of a side in the join's rows. */
WEIR_INLINE uint32_t weir_beside_column(const struct weir_join *jn, uint32_t side)
{
	return jn->def->key_count + (side == 0 ? 0 : jn->def->sides[0].col_count);
}

/* ---- join_inner.c ---- */

/* What a row that was held becomes as an item: it lies in the buffer of its slot already. pc must be closed behind the
 * last one. */
uint64_t weir_join_hold_inner(struct weir_join *jn, struct weir_join_place *pc, const struct weir_keyed *keyed,
			      uint32_t row, uint32_t fixed, bool null_key);
/* The same for rows[0..count) in their order by slot, whose columns and keys hold no NULL, into it[0..count). False: it
 * has done nothing, since some may be late. */
bool weir_join_hold_inner_all(struct weir_join *jn, struct weir_join_place *pc, const struct weir_keyed *keyed,
			      const uint16_t *rows, uint32_t count, const uint16_t *order, uint32_t fixed,
			      struct item *it);
/* The rows of a slot, from jn->at on. False: no fragment is free, come again. */
bool weir_join_run_inner(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl);

void weir_join_put_pairs(struct weir_join *jn, uint32_t count);
/* The row whose turn it is. */
void weir_join_look_closer(struct weir_join *jn, struct weir_slot *sl, const struct weir_join_turn *t);

/* ---- join_sheets.c ---- */

/* Whether rows go into sheets is settled. */
void weir_join_sheets_create(struct weir_join *jn);
void weir_join_sheets_destroy(struct weir_join *jn);
/* Takes in rows[0..count), all of their lane's that were not filtered, whose columns and keys hold no NULL. False: it
 * has done nothing. */
bool weir_join_hold_sheets(struct weir_join *jn, const struct weir_fragment *fr, const struct weir_keyed *keyed,
			   const uint16_t *rows, uint32_t count, uint32_t side, uint32_t fixed, struct lane *ln);
/* Before the slot's turns; sheet_run.active: they are those of sheets. */
void weir_join_sheets_begin(struct weir_join *jn, uint32_t slot);
/* False: no fragment is free, come again. */
bool weir_join_run_sheets(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl);
/* Task time of the turn that weir_join_look_closer is called for. */
int64_t weir_join_sheets_task(struct weir_join *jn);
void weir_join_sheets_reset(struct weir_join *jn);

/* ---- join.c, for the kinds ---- */

void weir_join_blocks_free(struct block *bl);

WEIR_INLINE bool weir_join_is_direct(const struct weir_join *jn)
{
	return jn->ps->exchange == WEIR_EXCHANGE_DIRECT;
}
/* Room for one more row. False: no fragment is free. */
bool weir_join_room(struct weir_join *jn, struct weir_bundle *b, uint32_t slot);
/* Writes the pair of l and r, one of which may be NULL, as the next row of `to`. own: its strings are copied; a table's
 * always are, since the table may change before the rows are read. */
uint64_t weir_join_put_pair(struct weir_join *jn, struct weir_rows *to, const struct weir_join_row *l,
			    const struct weir_join_row *r, bool own);
/* The same into the rows that weir_join_room has made room in; own is of `side`, the other row may be NULL. */
void weir_join_emit(struct weir_join *jn, uint32_t side, const struct weir_join_row *own,
		    const struct weir_join_row *other);
/* The same, columns to be written when the rows are handed on: both rows stay as they are until then, of a table's row
 * sees e to it, its entry, which weir_join_unpin is asked about before it changes. */
void weir_join_emit_later(struct weir_join *jn, uint32_t side, const struct weir_join_row *own,
			  const struct weir_join_row *other, struct weir_entry *e);
/* The key columns of row n of them, where somebody reads these. */
void weir_join_put_key(struct weir_join *jn, const uint8_t *key, uint32_t key_bytes, uint32_t n);
/* Writes the columns of plain rows. */
void weir_join_write_plain(struct weir_join *jn);
/* Before entry e (or NULL) of a table changes: rows that still read it are handed on. */
void weir_join_unpin(struct weir_join *jn, struct weir_bundle *b, uint32_t slot, const struct weir_entry *e);
/* Hands the rows written so far on. */
void weir_join_flush(struct weir_join *jn, struct weir_bundle *b, uint32_t slot);
/* Leaves those in jn->found, records of the other side, that fulfil what else a match with h needs. */
void weir_join_keep_matches(struct weir_join *jn, const struct held *h);
/* h is late, in this slot of the join; rows of a slot in the order of their turns. */
void weir_join_note_late(struct weir_join *jn, struct weir_bundle *b, uint32_t slot, const struct held *h);
/* The next pairs of the row whose matches are being written. False: come again. */
bool weir_join_put_found(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl);
/* How far ahead rows to come are asked for: themselves, then index lines, then the entries these lead to. */
enum { AHEAD_ROW = 24, AHEAD_INDEX = 16, AHEAD_ENTRY = 8 };

/* ---- join_window.c ---- */

void weir_join_apply_window(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h,
			    int64_t task);
/* The windows that are closed. False: no fragment is free, come again. */
bool weir_join_run_windows(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, int64_t task,
			   bool close_all, int64_t *end_max);

/* ---- join_foreign.c ---- */

/* A row of either table. False: no fragment is free, come again. */
bool weir_join_apply_foreign(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h);
/* The left rows of the right one whose turn it was. False: come again. */
bool weir_join_put_foreign(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl);

#endif
