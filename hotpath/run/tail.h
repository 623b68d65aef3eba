/* tail.h: the end of a branch into a sink: HAVING or WHERE, the projection, key and value encoding, into a buffer of
 * results. One tail belongs to one thread: a worker (stage-0 rows, EMIT CHANGES) or snap (closed windows). */
#ifndef WEIR_RUN_TAIL_H
#define WEIR_RUN_TAIL_H

#include "hotpath/run/run.h"

struct weir_tail;

/* Compiles branch (into a sink) of pl for output ou. Both are borrowed. @thread init */
WEIR_MUST_CHECK enum weir_err weir_tail_create(struct weir_tail **out, const struct weir_plan *pl, uint32_t branch,
					       const struct weir_output *ou, struct weir_diag **dg);
void weir_tail_destroy(struct weir_tail *tl);

/* What a run of rows left behind. */
struct weir_tail_done {
	uint32_t results;
	uint32_t filtered;
	const struct weir_row_errors *errors; /* valid until the next run */
	const struct weir_sel *passed; /* weir_tail_spread: rows that became results, as they were written; likewise */
};

/* Rows of a stream: filters, projects and encodes the rows in sel (left as it was). time: result timestamps by row;
 * slot decides the partition of results without a key. Appends to out. */
struct weir_tail_done weir_tail_stream(struct weir_tail *tl, const struct weir_col *const *in,
				       const struct weir_sel *sel, const int64_t *time, uint32_t slot,
				       struct weir_scratch *scratch, struct weir_buf *out);
/* The same of rows of several slots: slot by row. Results of one slot lie behind each other, in the order of its rows;
 * at[i]: where in out the result of the row done.passed->row[i] lies. Into a blackhole nothing is written. */
struct weir_tail_done weir_tail_spread(struct weir_tail *tl, const struct weir_col *const *in,
				       const struct weir_sel *sel, const int64_t *time, const uint16_t *slot,
				       struct weir_scratch *scratch, struct weir_buf *out, uint64_t *at);
/* Whether the branch goes into a repartition topic: then weir_tail_send takes its rows, of whatever kind. */
bool weir_tail_exchanges(const struct weir_tail *tl);
/* Rows into a repartition topic, as a fragment would take them to the stage behind it (fragment.h): into a table, what
 * the filter drops leaves. */
struct weir_exchange_rows {
	const struct weir_col *const *in;
	const struct weir_sel *sel;
	const int64_t *time;
	const struct weir_record *records; /* the rows are of a scan; else NULL, and they are of a state: */
	const uint8_t *op;                 /* NULL: all of them are new */
	void *const *entry;                /* of a table: those in it count as emitted, so that their end is told; or */
	struct weir_slot *sl;              /* NULL */
};
struct weir_tail_done weir_tail_send(struct weir_tail *tl, const struct weir_exchange_rows *er,
				     struct weir_scratch *scratch, struct weir_buf *out);
/* The next rows go into a repartition topic, from this upstream slot. Its time as of a row is the larger of before and
 * run[row]; run NULL: nothing that the stage has handed on yet moves time. */
void weir_tail_exchange(struct weir_tail *tl, const int64_t *run, int64_t before, uint32_t upstream);
/* Rows of EMIT CHANGES: deletes become null values, rows that stop passing the filter too; records in the slot what has
 * been emitted. */
struct weir_tail_done weir_tail_changes(struct weir_tail *tl, struct weir_slot *sl, struct weir_rows *rows,
					uint32_t slot, struct weir_buf *out);

/* Appends one result made of ready bytes (dead letters, late records). Slices with NULL data are nulls. */
void weir_result_put(struct weir_buf *out, struct weir_slice key, struct weir_slice value, struct weir_slice headers,
		     uint32_t header_count, int64_t timestamp, int32_t partition);
/* Reads the result at `at` and returns where the next one starts. */
size_t weir_result_get(const struct weir_buf *b, size_t at, struct weir_result *head, const uint8_t **key,
		       const uint8_t **value, const uint8_t **headers);

/* A constant column as count equal rows: to is made on first use and freed by its owner with weir_col_fini. */
const struct weir_col *weir_col_expand(struct weir_col *to, const struct weir_col *c, uint32_t count);

#endif
