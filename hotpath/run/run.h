/* run.h: what travels between the threads of a run, and who owns it when.
 *
 *   io    --weir_input-->    worker     one cut batch, an order point or an event; returned by ring when all is applied
 *   worker --weir_fragment--> worker    a decoded batch (stage 0) or rows of one slot (later stages), read-only for
 * owners worker --weir_bundle-->  snap       everything one worker has for one order point io    --weir_point--> snap
 * the order point itself: offsets, counts, whether it is a barrier
 *
 * Every object comes from a bounded pool of its producer and goes back to it by a ring; no pool is ever touched by two
 * threads. */
#ifndef WEIR_RUN_RUN_H
#define WEIR_RUN_RUN_H

#include "hotpath/core/ring.h"
#include "hotpath/expr/program.h"
#include "hotpath/topology/plan.h"

/* ---- outputs: where results go, as far as the hot path must know ---- */

enum weir_output_kind { WEIR_OUTPUT_TOPIC, WEIR_OUTPUT_PRINT, WEIR_OUTPUT_BLACKHOLE };

/* One sink of the plan, or a dead-letter or late topic. Immutable during a run. */
struct weir_output {
	enum weir_output_kind kind;
	uint32_t partitions; /* of the topic */
	/* PRINT: every tail (one a thread) opens a printer of its own and appends rows of the sink's columns as text.
	 */
	void *(*print_open)(void *ctx);
	void (*print_close)(void *printer);
	void (*print)(void *printer, const struct weir_col *cols, uint32_t row, enum weir_op op, struct weir_buf *out);
	void *ctx;
};

/* Per scan: what happens to bad and late records. */
struct weir_scan_policy {
	enum weir_error_policy errors; /* FAIL, SKIP or DEAD_LETTER, never DEFAULT */
	int32_t dead_letter;           /* output, -1: none */
	int32_t late;                  /* output, -1: none */
};

/* One result as it lies in a bundle's buffer: this header, then key, value and headers. */
struct weir_result {
	uint32_t key_bytes;   /* UINT32_MAX: no key */
	uint32_t value_bytes; /* UINT32_MAX: null */
	uint32_t headers_bytes;
	uint32_t header_count;
	int64_t timestamp;
	int32_t partition; /* of the output topic; -1: by key */
	uint32_t pad;
};

/* ---- io to worker ---- */

enum weir_input_kind { WEIR_INPUT_RECORDS, WEIR_INPUT_POINT, WEIR_INPUT_EVENT };
enum weir_event { WEIR_EVENT_BOUND, WEIR_EVENT_IDLE, WEIR_EVENT_BACK };

struct weir_input {
	enum weir_input_kind kind;
	uint64_t seq;
	/* RECORDS, EVENT */
	uint32_t scan;
	uint32_t partition; /* within the scan */
	uint32_t part;      /* global */
	/* RECORDS */
	uint32_t count;
	const struct weir_record *records;
	void *unit;        /* io's handle of the memory the records lie in */
	const char *topic; /* for dead letters */
	uint32_t topic_partition;
	/* POINT */
	bool barrier;
	bool close_all; /* end of bounded input */
	bool last;      /* the worker is done after it */
	bool settled;   /* all that may have been applied before a crash has been applied again: doubt.h */
	bool quiet;     /* live: coalesced changes, and what is to be closed behind them, wait for a later point */
	uint64_t epoch;
	int64_t advance_by; /* idle.advance=wall: every partition's time moves on by so many ms */
	int64_t advance_to; /* driver: every partition's time is at least this; WEIR_TIME_UNSET: no */
	/* EVENT */
	enum weir_event event;
};

/* ---- worker to worker ---- */

/* The rows of a batch for one branch into a stage. */
struct weir_fragment_branch {
	uint32_t branch; /* of the plan */
	uint32_t expr_count;
	struct weir_program *filter;
	struct weir_program *project;
	struct weir_program *time; /* event time of rows of a join; NULL: their own */
	uint8_t *deletes;          /* into a table: rows that go; else NULL */
	struct weir_sel sel;
	struct weir_keyed keyed;
	const struct weir_col **out; /* project's results */
	struct weir_col *expanded;   /* storage for constant results, one per expression (unused: phys only) */
	uint16_t *rows;              /* selected rows grouped by owner, ascending within one */
	uint32_t *start;             /* workers + 1 positions in rows */
};

struct weir_fragment {
	uint64_t seq;
	/* stage 0 */
	struct weir_input *input;
	uint32_t scan;
	uint32_t part;
	int64_t time_max; /* largest event time of its accepted records; WEIR_TIME_UNSET if none */
	int64_t time[WEIR_BATCH_ROWS];
	int64_t run[WEIR_BATCH_ROWS];
	struct weir_record *unwrapped; /* of a repartition topic: the rows without their heads; NULL: input's own */
	uint8_t *exchange_leaves;      /* likewise: whether a row leaves the table it is of */
	int64_t *exchange_run;         /* likewise: the partition's time as of each row, */
	int64_t exchange_time;         /* and behind the last */
	struct weir_sel sel;           /* accepted records */
	uint16_t rows_all[WEIR_BATCH_ROWS]; /* 0, 1, 2, ... @writer init */
	struct weir_col *cols;
	const struct weir_col **col_ptrs;
	struct weir_decoder *value_decoder;
	struct weir_decoder *key_decoder;
	struct weir_program *time_program;
	/* later stages: rows of one slot */
	uint32_t stage;
	uint32_t slot;
	bool last;          /* the slot has nothing more at this order point */
	bool out;           /* its inputs are all idle or at their bound */
	int64_t stage_time; /* with last */
	struct weir_rows rows;
	uint32_t branch_count;
	struct weir_fragment_branch *branches; /* those into stages */
	struct weir_scratch scratch;
	struct weir_row_errors errors;
	uint64_t refused[WEIR_BATCH_ROWS /
			 64];     /* records that stage 0 or a branch has refused: each has one dead letter */
	uint32_t implausible;     /* accepted records whose time is that of another unit */
	uint32_t implausible_row; /* the first of them */
	uint32_t outstanding;     /* owners that have not returned it; @writer the producer */
};

/* ---- worker to snap ---- */

/* A run of results in a bundle, or a closed generation that snap turns into results. */
struct weir_chunk {
	uint32_t output;
	uint32_t stage; /* 0: stage 0; else 1 + the plan's stage */
	uint32_t slot;  /* stage 0: global partition */
	uint64_t seq;   /* order within the slot: seq of the batch, or a counter */
	uint32_t branch;
	uint32_t results;
	size_t at; /* in bundle->results; of one that is ordered the first of `results` places in bundle->order */
	size_t bytes;
	struct weir_closed *closed; /* or NULL */
	bool ordered;
};

struct weir_delta {
	uint32_t stage;
	uint32_t slot;
	enum { WEIR_DELTA_PACK, WEIR_DELTA_PAGE } kind;
	uint32_t number;
	uint32_t part;
	size_t at; /* in bundle->deltas */
	uint32_t bytes;
	bool tombstone;
};

/* A slot's part of a marker. */
struct weir_slot_mark {
	uint32_t stage;
	uint32_t slot;
	int64_t task_time;
	size_t at; /* in bundle->deltas: weir_slot_save's bytes */
	uint32_t bytes;
	bool changed;
	uint8_t flags; /* WEIR_UPSTREAM_*: of everything that feeds it */
};

/* Conserved at every order point, summed over workers: read = sel + rejected_decode, and rows that entered branches =
 * applied + late + filtered + what branches rejected (rejected - rejected_decode). */
struct weir_counters {
	uint64_t entered, rejected_decode;
	uint64_t read, bytes, rejected, filtered, applied, late, late_windows, windows, results, agg_errors;
	uint64_t implausible; /* event times that look like another unit's */
	uint64_t by_reason[WEIR_REASON_COUNT];
};

/* Where a record was refused, for the log; the first few of an order point. */
struct weir_refusal {
	enum weir_reason reason;
	char text[512];
};
enum { WEIR_REFUSALS_MAX = 4 };

struct weir_bundle {
	uint64_t seq;   /* of the order point */
	uint64_t epoch; /* of the barrier, 0: none */
	struct weir_buf results;
	struct weir_buf order; /* uint64_t: where results of ordered chunks lie in results */
	struct weir_chunk *chunks;
	uint32_t chunk_count, chunk_capacity;
	struct weir_closed_ref {
		uint32_t stage;
		uint32_t slot;
		struct weir_closed *closed;
	} * closed; /* generations that snap reads; the worker takes them back with the bundle */
	uint32_t closed_count, closed_capacity;
	struct weir_buf deltas;
	struct weir_delta *delta;
	uint32_t delta_count, delta_capacity;
	struct weir_slot_mark *marks;
	uint32_t mark_count, mark_capacity;
	struct weir_window_end {
		uint32_t stage;
		int64_t end;
	} * window_ends; /* time windows that closed, each once per worker: snap counts the different ones */
	uint32_t window_end_count, window_end_capacity;
	int64_t *part_time;            /* per global partition, WEIR_TIME_UNSET where this worker knows nothing */
	uint8_t *part_flags;           /* per global partition: WEIR_UPSTREAM_* */
	struct weir_counters counters; /* totals of this run */
	struct weir_refusal refusal[WEIR_REFUSALS_MAX];
	uint32_t refusal_count;
	uint64_t refusals; /* all of them since the last bundle */
	char warning[320]; /* implausible event times of a scan, said by the first batch that has any; "" none */
	uint32_t warning_scan;
	bool fail; /* errors.policy=fail met a bad record: refusal[0] says which */
	bool over; /* its results would have taken more than there is: some are missing */
	uint64_t state_entries;
	uint64_t state_bytes;
	bool committed; /* set by snap: epoch is durable */
};
/* What its buffers take. Deltas are given room for all they could be, and fill a third of it. */
WEIR_INLINE size_t weir_bundle_bytes(const struct weir_bundle *b)
{
	return b->results.capacity + b->order.capacity + b->deltas.bytes;
}

/* ---- io to snap ---- */

struct weir_point {
	uint64_t seq;
	uint64_t epoch;
	bool barrier;
	bool last;
	uint64_t records; /* read over the application's life */
	uint64_t bytes;
	uint64_t dirty;  /* a barrier: about how many bytes of state had changed */
	uint64_t cost;   /* set by snap: bytes that its bundles held */
	int64_t *offset; /* per global partition: next offset to read */
	bool *moved;     /* offset changed since the last barrier */
};

#endif
