/* state.h: the state of one stage as its workers see it. A *slot* is owned by exactly one worker; nothing here locks.
 *
 *   struct weir_state_def   what the state is: keys, window, aggregates, entry layout. Immutable, shared by all threads
 *   struct weir_slot        one slot of one stage: arena, page directory, dirty queue, its table (window_table.c,
 *                           session_table.c or kv_table.c). @writer the owning worker
 *   struct weir_keyed       rows on their way into state (a fragment): keys, hashes, slots, times, argument columns
 *   struct weir_rows        rows on their way out: key columns, aggregate results, window columns, op
 *   struct weir_closed      a closed window generation, detached from its table: readable by snap, then given back
 *
 * Everything is @thread worker (the owner) unless it says otherwise. Key bytes are compared and ordered by memcmp. */
#ifndef WEIR_STATE_STATE_H
#define WEIR_STATE_STATE_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/aggregate.h"

#define WEIR_TIME_UNSET INT64_MIN

enum weir_state_kind {
	WEIR_STATE_WINDOW,  /* tumbling, hopping, cumulating: generations by pane start */
	WEIR_STATE_SESSION, /* sessions: an ordered set per key, generations by closing time */
	WEIR_STATE_TABLE,   /* unwindowed: one generation that never closes */
	WEIR_STATE_ROWS,    /* the latest row of each key; a delete takes it out. One generation that never closes */
	WEIR_STATE_JOIN,    /* two sides, each a table, a buffer of records, or nothing kept: join_state.h */
	WEIR_STATE_OVER,    /* rows wait until they are final, and leave with functions over their key's: over.h */
	WEIR_STATE_SLIDING  /* windows of one length, both ends inclusive, where records make them differ */
};

/* One input of a JOIN; of ROWS there is one, a table; of OVER the rows, and as if they were one the functions. */
struct weir_state_side {
	bool table; /* latest row by key; else records */
	bool outer; /* a row without a match leaves by itself, the other side's columns NULL */
	uint32_t col_count;
	const struct weir_type *types; /* of its columns, beside the key */
	const char *const *texts;      /* what they are, for the fingerprint; NULL: their types say enough */
};

struct weir_state_def {
	const char *name; /* the contract: changelog name and fingerprint */
	enum weir_state_kind kind;
	/* WINDOW; tumbling: advance == size. 0 < advance <= size. SLIDING has a size of 0 or more, start to end. */
	int64_t size_ms, advance_ms, offset_ms;
	/* WINDOW: those of one start end at each advance_ms up to size_ms, which is a multiple of it. */
	bool cumulative;
	int64_t gap_ms; /* SESSION */
	/* SESSION: a session spans all keys that agree in the first `shared_keys` columns (0: all of them), and has a
	 * row for each key it saw. Not with changes. */
	bool shared;
	uint32_t shared_keys;
	int64_t grace_ms;
	bool changes;  /* EMIT CHANGES: entries keep the largest timestamp and a change list */
	bool retracts; /* TABLE over a table: rows come and go (weir_keyed.deletes); the last aggregate is COUNT(*) */
	bool time_max; /* task.time=max */
	uint32_t key_count;
	const struct weir_type *key_types;
	/* What keys, aggregates' arguments and filters are, for the fingerprint; NULL: their types say enough. An
	 * aggregate without an argument or filter has none. */
	const char *const *key_texts, *const *agg_texts, *const *filter_texts;
	uint32_t agg_count;
	const struct weir_agg *aggs;
	/* ROWS: 1, JOIN, OVER: 2. A table of either keeps its row in aggs[0], which weir_state_row_agg makes. */
	uint32_t side_count;
	const struct weir_state_side *sides;
	/* JOIN of two streams: l.time - before <= r.time <= l.time + after; both may be negative. */
	bool within;
	int64_t before_ms, after_ms;
	/* With size_ms > 0 a JOIN of rows in windows: before and after are 0, a record's time is the last millisecond
	 * of each of its windows, and matches leave when the window closes. */
	/* JOIN of a stream with the history of a table, side 1: a row waits until the table's time has passed its own
	 * by more than grace_ms. */
	bool versioned;
	/* JOIN of two tables by a foreign key: the first `foreign` key columns are it and choose the slot, the others
	 * are the left table's own key, NULL in rows of the right one (foreign.h). */
	uint32_t foreign;
	/* JOIN of tables: a last BIGINT column numbers the rows handed on, rising within a slot. ROWS: their first
	 * column is such a number; a row older than the one that is there does nothing. */
	bool numbered;
	const struct weir_over_def *over; /* OVER */
	int64_t ttl_ms; /* TABLE, ROWS, JOIN with a table: entries this far behind task time go (ttl.c); 0: none does */
	/* Set by weir_state_def_init: layout of an entry; offset_ms becomes its remainder by advance_ms. Generations of
	 * a WINDOW are panes of gcd(size, advance, offset), combined at close, or the windows themselves (pane_ms ==
	 * size_ms): when changes is set, since each window's value is then wanted after every record, or when panes
	 * would be too many. */
	int64_t pane_ms;
	uint32_t agg_bytes;
	uint32_t head_bytes;
	bool stamped; /* entries keep a timestamp: changes, tables */
	bool buffers; /* entries are struct weir_buffered: OVER, and JOIN where both sides are streams or versioned */
	uint32_t bucket_log2; /* buffers: a generation covers 2 to the power of it, in ms of event time */
	bool has_blobs;       /* an aggregate's value may be a string or a set */
};
/* How long records of a join are kept beyond their time: what may still match, and grace. Bounds of opposite signs
 * leave a gap that is waited through. */
WEIR_INLINE int64_t weir_join_keep_ms(const struct weir_state_def *def)
{
	return weir_max_i64(def->before_ms, 0) + weir_max_i64(def->after_ms, 0) + def->grace_ms;
}
WEIR_INLINE bool weir_join_in_windows(const struct weir_state_def *def)
{
	return def->kind == WEIR_STATE_JOIN && def->size_ms > 0;
}
/* The aggregate that a table's packed row stands in. */
void weir_state_row_agg(struct weir_agg *out);
/* Checks and completes def (aggs[].state_at, pane_ms, ...). Arrays are borrowed for its life. @thread init */
WEIR_MUST_CHECK enum weir_err weir_state_def_init(struct weir_state_def *def, struct weir_diag **dg);
/* Fingerprint text: name, kind, window, key columns and types, aggregates. Two states are compatible iff equal. */
void weir_state_def_fingerprint(const struct weir_state_def *def, struct weir_buf *out);

/* Key bytes (semantics.md section 3): a null byte each (0 null, 1 not), integers and times big-endian with the sign bit
 * flipped, doubles order-preserving (-0.0 as 0.0, one NaN), strings with 00 escaped as 00 FF and a 00 terminator.
 * Appends the key of every row in sel to scratch memory and sets key[row], key_bytes[row], hash[row] = XXH3 of it. */
struct weir_keyed {
	uint32_t count;                      /* rows of the batch; arrays are indexed by row */
	const uint8_t *key[WEIR_BATCH_ROWS]; /* readable up to the next multiple of 8 beyond the key */
	uint32_t key_bytes[WEIR_BATCH_ROWS];
	uint64_t hash[WEIR_BATCH_ROWS];
	uint16_t slot[WEIR_BATCH_ROWS]; /* slot number of the stage */
	int64_t time[WEIR_BATCH_ROWS];  /* event time, ms */
	int64_t run[WEIR_BATCH_ROWS];   /* largest event time of the partition within this batch up to and with this row
					 */
	const struct weir_col *const *cols; /* aggregate arguments and filters: aggs[].arg and .filter index these; of
					       ROWS and JOIN the side's columns */
	const uint8_t *deletes; /* ROWS, JOIN: not 0 where the key's row goes; retracts: where a row is taken
				   out; NULL: none does */
};
/* In deletes, of a retracted row: the next one is what it became. */
#define WEIR_REPLACED 2
void weir_key_encode(const struct weir_col *const *key_cols, const struct weir_type *types, uint32_t key_count,
		     const struct weir_sel *sel, struct weir_scratch *scratch, struct weir_keyed *out);
/* The reverse, for one key: writes row `row` of cols[0..key_count). Strings point into scratch or the key itself.
 * @thread any */
void weir_key_decode(const uint8_t *key, uint32_t key_bytes, const struct weir_type *types, uint32_t key_count,
		     struct weir_col *cols, uint32_t row, struct weir_scratch *scratch);

/* Bytes of the first `count` columns of a key: what comes before the rest. Never more than key_bytes, whatever the
 * key holds. @thread any */
uint32_t weir_key_prefix(const uint8_t *key, uint32_t key_bytes, const struct weir_type *types, uint32_t count);

/* How the rows of one fragment are judged. Task time at a row = max(before, min(others, max(part, run[row]))), or with
 * def->time_max max(before, run[row]). All slots named by a fragment share one clock at that point. */
struct weir_clock {
	int64_t before; /* task time before the fragment; WEIR_TIME_UNSET if unset */
	int64_t others; /* min over the other live partitions that feed the slot; INT64_MAX if none, WEIR_TIME_UNSET if
			   one is unset */
	int64_t part;   /* this partition's time before the fragment */
};

struct weir_applied {
	uint32_t applied;      /* rows that entered at least one window */
	uint32_t late;         /* rows that entered none: their row numbers, ascending */
	uint32_t late_windows; /* windows missed by rows, late or not */
	uint16_t late_row[WEIR_BATCH_ROWS];
};

/* Allocation shared by the slots of one worker: extents from its jemalloc arena, free pages by size. */
struct weir_arena; /* hotpath/core/arena.h */

struct weir_slot;
struct weir_slot *weir_slot_create(const struct weir_state_def *def, uint32_t slot, struct weir_arena *ar);
void weir_slot_destroy(struct weir_slot *sl);
/* Its memory is another worker's (weir_arena_absorb). @thread init */
void weir_slot_move(struct weir_slot *sl, struct weir_arena *to);

/* Folds rows[0..count) (ascending rows of in) into slots[in->slot[row]] (NULL for slots of other workers; never named).
 * Order within a slot is row order. @thread worker */
void weir_state_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		      const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out);

/* ---- leaving ---- */

enum weir_op { WEIR_OP_INSERT, WEIR_OP_UPDATE, WEIR_OP_DELETE, WEIR_OP_BEFORE }; /* the last: of what is printed, -U */

/* Columns in this order: keys, aggregate results (ROWS, JOIN, OVER: the columns of each side), window_start, window_end
 * (TIMESTAMP(3): ms), the last two only for WINDOW, SESSION (window_end is last + gap) and SLIDING (window_end is in
 * the window). A JOIN of windows has them of each side, NULL where that side has no row. */
struct weir_rows {
	uint32_t count;
	struct weir_col *cols; /* weir_state_columns of them */
	uint32_t col_count;
	int64_t time[WEIR_BATCH_ROWS]; /* result timestamp, ms */
	uint8_t op[WEIR_BATCH_ROWS];   /* enum weir_op */
	void *entry[WEIR_BATCH_ROWS];  /* CHANGES: handle for weir_slot_set_emitted (DELETE: NULL); else NULL */
	uint32_t agg_errors;           /* of these rows: aggregates that do not fit their type (result NULL) */
	struct weir_scratch scratch;
};
uint32_t weir_state_columns(const struct weir_state_def *def);
/* For another set of rows: no nulls, no strings. */
void weir_rows_reset(struct weir_rows *r);
void weir_rows_init(struct weir_rows *r, const struct weir_state_def *def);
void weir_rows_fini(struct weir_rows *r);

/* The smallest task time at which weir_slot_close would find something; INT64_MAX if nothing waits. O(1), but of
 * SLIDING a look at every window. */
int64_t weir_slot_next_close(const struct weir_slot *sl);

/* Takes one generation that is closed at task_time out of the slot, in order of window end (FINAL: readable by the
 * functions below, on any thread; CHANGES: already given back, returns NULL when nothing more is closed). Returns NULL
 * when none is left. With all=true everything is closed (end of input). *end_max, if larger, is set to window end
 * (session: last + gap; SLIDING: end + 1) of what closed. A hopping window is combined from its panes here. */
struct weir_closed;
struct weir_closed *weir_slot_close(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max);
uint32_t weir_closed_count(const struct weir_closed *cl);
uint64_t weir_closed_bytes(const struct weir_closed *cl);
/* Sorts entries (window end, then key bytes) and reads rows [from, from + n) of that order: n >= 1 while rows are left,
 * at most WEIR_BATCH_ROWS, fewer where strings are long. Strings are the rows' own until the next read. @thread whoever
 * holds cl (worker or snap) */
void weir_closed_sort(struct weir_closed *cl);
uint32_t weir_closed_read(const struct weir_closed *cl, uint32_t from, struct weir_rows *out);
/* Gives the pages back. @thread worker (the slot's owner) */
void weir_closed_release(struct weir_slot *sl, struct weir_closed *cl);

/* CHANGES: up to WEIR_BATCH_ROWS entries changed since the last call that returned 0, in order of first change;
 * sessions swallowed by a merge come as DELETE before the merged one (only if they had been emitted). op is INSERT for
 * an entry never emitted, else UPDATE. Returns the number of rows; 0 when drained. */
uint32_t weir_slot_changes(struct weir_slot *sl, struct weir_rows *out);
/* Records whether the row now stands in the result (HAVING decides); the bit is persistent. */
void weir_slot_set_emitted(struct weir_slot *sl, void *entry, bool emitted);
/* Whether rows that are not EMITTED may stand in the result all the same: hotpath/run/doubt.h. Then weir_slot_changes
 * deletes whatever goes, and weir_slot_may_stand says, once of each entry (NULL: no), that its row is to be deleted. */
bool weir_slot_in_doubt(const struct weir_slot *sl);
bool weir_slot_may_stand(void *entry);

/* At an order point, behind all that the slot had to say: drops what is older than the state's TTL. */
void weir_slot_expire(struct weir_slot *sl, int64_t task_time);
/* Restore: task time at the last order point. */
void weir_slot_set_expired(struct weir_slot *sl, int64_t task_time);

uint64_t weir_slot_entries(const struct weir_slot *sl);
uint64_t weir_slot_bytes(const struct weir_slot *sl);
/* About how many bytes of entries the next barrier has to write. O(live windows). */
uint64_t weir_slot_dirty_bytes(const struct weir_slot *sl);

/* ---- epochs: what goes to the changelog (bodies only; checkpoint/record.c adds keys and checksums) ---- */

struct weir_delta_sink {
	void *ctx;
	/* A pack, page image part or tombstone (body NULL) of slot. The body is copied by the callee, unless it stands
	 * where room said. */
	void (*pack)(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes);
	void (*page)(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes);
	/* NULL, or where the next body of up to bytes is to be written, so that nothing need be copied; aligned to 8.
	 */
	uint8_t *(*room)(void *ctx, uint32_t bytes);
};
/* To be called at an order point, after weir_slot_close and weir_slot_changes have returned all they had.
 * Writes what changed since the last barrier as packs (8 to 64 KiB, filled window by window), then page images worth as
 * many bytes (longest dirty first; the rest carries over), reusing numbers of dead packs. Bodies carry epoch, window,
 * page, offset as design.md section 5. Returns true if anything was written or the set of live windows changed. */
bool weir_slot_barrier(struct weir_slot *sl, uint64_t epoch, const struct weir_delta_sink *sink);
/* The barrier of this epoch has been committed (or, in order, an earlier one): its images count from now on. */
void weir_slot_committed(struct weir_slot *sl, uint64_t epoch);
/* Live windows (generation keys) and the slot's counters for the marker, and back. */
void weir_slot_save(const struct weir_slot *sl, struct weir_buf *out);

/* Restore into a fresh slot: load(marker part), then every pack and page body of the slot up to that marker in log
 * order (of each key the newest must be there, older ones may be; body NULL: a tombstone), then finish checks
 * everything and rebuilds indexes. WEIR_E_CORRUPT says what is wrong; the slot is then good for weir_slot_destroy only.
 */
WEIR_MUST_CHECK enum weir_err weir_slot_load(struct weir_slot *sl, const uint8_t *saved, size_t bytes,
					     struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_slot_restore_pack(struct weir_slot *sl, uint32_t k, const uint8_t *body,
						     size_t bytes, struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_slot_restore_page(struct weir_slot *sl, uint32_t page, uint32_t part,
						     const uint8_t *body, size_t bytes, struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_slot_restore_finish(struct weir_slot *sl, struct weir_diag **dg);

#endif
