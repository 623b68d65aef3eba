/* worker_state.h: the private half of a worker, shared by worker.c (decode, apply) and point.c (order points).
 * @thread worker, all of it */
#ifndef WEIR_RUN_WORKER_STATE_H
#define WEIR_RUN_WORKER_STATE_H

#include "hotpath/run/join.h"
#include "hotpath/run/over.h"
#include "hotpath/run/worker.h"

enum { WORKER_PENDING_MAX = 64 };

/* A control input that waits for its turn by seq, with the bundle that results up to it belong to. */
struct pending {
	struct weir_input *input;
	struct weir_bundle *bundle;   /* POINT only */
	struct weir_counters decoded; /* up to this control */
};

/* Where the running order point stands: every step goes on from here. */
struct point_run {
	bool active;
	uint32_t level;
	/* handing on: stage, own slot, what is left of it */
	uint32_t stage;
	uint32_t slot;
	struct weir_closed *closed;
	uint32_t closed_row;
	int64_t end_max;
	bool drained;  /* the slot has nothing more; its last fragment is still to go */
	bool produced; /* this level */
	/* taking in */
	uint32_t in_stage;
	uint32_t in_slot;
	uint32_t in_last;   /* branches of (in_stage, in_slot) that have sent their last fragment */
	uint64_t in_number; /* of the fragment's branch that is taken in: the same on every worker */
	bool consumed;
};

struct fragment_pool {
	struct weir_fragment **free;
	uint32_t free_count;
	struct weir_fragment **all;
	uint32_t all_count;
};

struct weir_worker_state {
	struct weir_fragment_conf fcf;
	bool inline_apply;
	uint64_t next_seq;                /* rings: the next seq to apply */
	struct fragment_pool *scan_pool;  /* per scan */
	struct fragment_pool *stage_pool; /* per stage */
	struct weir_tail **tails;         /* per branch into a sink that the worker encodes; else NULL */
	struct weir_join **joins;         /* per stage that is a JOIN; else NULL */
	struct weir_over **overs;         /* per stage that is an OVER; else NULL */
	bool *has_stage_branch;           /* per stage: some branch of it ends in a stage */
	uint32_t *stage_branches;         /* per stage: how many do */
	struct weir_bundle **free_bundle;
	uint32_t free_bundle_count;
	struct weir_bundle **all_bundle;
	/* Of bundles that came back, last in first out: few buffers stay large and warm. */
	struct weir_buf *spare_deltas, *spare_results;
	uint32_t spare_deltas_count, spare_results_count;
	struct weir_bundle *current; /* what stage 0 writes to: the next order point's */
	struct pending pending[WORKER_PENDING_MAX];
	uint32_t pending_at, pending_count;
	struct point_run point;
	struct weir_rows rows; /* of the stage that hands on changes */
	bool rows_ready;
	uint32_t rows_stage;
	struct weir_applied applied;
	struct weir_row_errors errors;
	struct weir_sel valued; /* records of a fragment that have a value */
	/* What stage 0 counted, which may be ahead of the order point that runs, and the rest; now is the one in use.
	 */
	struct weir_counters decoded, applied_counts;
	struct weir_counters *now;
	struct weir_keyed *guarded; /* future guard: a fragment's rows as judged here */
	uint16_t *guarded_rows;
	uint64_t ahead[WEIR_BATCH_ROWS / 64];   /* future guard: rows of the fragment that it refused */
	uint64_t refused[WEIR_BATCH_ROWS / 64]; /* future guard: records that a branch before this one has refused */
	bool *implausible;                      /* per scan: its warning has been given */
	struct weir_encoder **late_encoder;     /* per stage that feeds another: its rows as JSON, for late.topic */
	struct weir_field **late_fields;
	struct weir_encoder **exchange_encoder; /* per scan of a repartition topic: likewise; else NULL */
	const struct weir_col **send_cols;      /* scratch: columns of a stage as pointers */
	bool last_seen;
	uint32_t bundles_out;
	struct weir_doubt *doubt; /* doubt.h; NULL: none */
};

/* Says how many bytes are held besides state (weir_worker.held_bytes), and in bundles that are being filled. */
void weir_worker_count_held(struct weir_worker *w);
/* point.c: begins, or goes on with, the order point at the head of pending. True if it did anything. */
bool weir_point_step(struct weir_worker *w);

/* worker.c, for point.c */
void weir_worker_apply_rows(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr,
			    const struct weir_fragment_branch *fb, const struct weir_keyed *keyed, const uint16_t *rows,
			    uint32_t count, const struct weir_clock *clock);
struct weir_fragment *weir_worker_take_stage_fragment(struct weir_worker *w, uint32_t stage);
void weir_worker_send_stage_fragment(struct weir_worker *w, struct weir_fragment *fr);
/* A decoded row of a repartition topic as a record that people can read: JSON of its columns (in json, the caller's)
 * and its event time. False: fr is of no repartition topic. */
bool weir_worker_exchanged(struct weir_worker *w, const struct weir_fragment *fr, uint32_t row, struct weir_buf *json,
			   struct weir_record *out);
/* The original of a record that came too late, in->records[0]; order: among those of one batch. */
void weir_worker_put_late(struct weir_worker *w, struct weir_bundle *b, const struct weir_input *in, uint32_t order,
			  uint32_t output, uint32_t stage);
/* The same for a row of a state: value is JSON of its columns, from the state's name and this slot of it. Of those rows
 * (seq, order) says which comes first, then, of one worker, when it was put: rows that are equal in both must be one
 * worker's, whichever of them owns what. */
void weir_worker_put_late_row(struct weir_worker *w, struct weir_bundle *b, struct weir_slice value, const char *from,
			      uint32_t slot, uint64_t seq, uint32_t order, int64_t time, uint32_t output,
			      uint32_t stage);
/* point.c: runs the stage branches of a filled fragment and sends it to every owner. */
void weir_worker_hand_over(struct weir_worker *w, struct weir_bundle *b, struct weir_fragment *fr);
void weir_worker_fragment_return(struct weir_worker *w, struct weir_fragment *fr, uint32_t producer);
void weir_worker_input_return(struct weir_worker *w, struct weir_input *in);
struct weir_chunk *weir_bundle_chunk(struct weir_bundle *b);
/* point.c: a window of stage that ends there has closed. */
void weir_bundle_note_window(struct weir_bundle *b, uint32_t stage, int64_t end);
void weir_worker_refuse(struct weir_worker *w, struct weir_bundle *b, const char *place, enum weir_reason reason,
			const char *field, const char *detail);
void weir_worker_count_errors(struct weir_worker *w, struct weir_bundle *b, const char *stage_name,
			      const struct weir_row_errors *errors, uint32_t from);
/* Rows of a stage's slot to the branches that end in a sink or a repartition topic. changes: they are updates of a
 * table, whose entries learn whether they stand in the result. */
void weir_worker_put_rows(struct weir_worker *w, struct weir_bundle *b, uint32_t stage, uint32_t slot, uint64_t seq,
			  struct weir_rows *rows, bool changes);
/* Keeps the bundle's buffer of results for a later one. */
void weir_bundle_spare_results(struct weir_worker *w, struct weir_bundle *b);
/* Rows to read changes of a stage into; they are the next stage's at the next call. */
struct weir_rows *weir_worker_rows(struct weir_worker *w, uint32_t stage);
/* Drains the change list of a slot into result chunks. */
void weir_worker_flush_changes(struct weir_worker *w, struct weir_bundle *b, uint32_t stage, uint32_t slot,
			       uint64_t seq);

#endif
