/* over.h: functions OVER (PARTITION BY k ORDER BY rowtime ...): what they are, and what a slot keeps for them.
 *
 *   row comes      late if task time has passed its own by more than grace; else it waits, as a record of a join buffer
 *                  (join_state.h, side 0)
 *   order point    rows that task time has passed leave by time: each with its functions over the key's rows so far
 *
 * What a key keeps of the rows that have left:
 *
 *   timed          every frame is a span of time: the rows themselves stay in their buffer until no frame can reach
 * them else           a chain in a generation that never closes, newest first, as versions are (versions.h): as many
 * rows as the largest frame or LAG reads. Its head has what frames without a lower bound have summed up:
 *
 *                  index[key] -> head --older--> row ...     int64 time | u32 bytes of sums | sums | packed columns
 *
 * Rows of one time never part: all of them leave at one order point, in order of arrival. @thread worker (the slot's
 * owner) */
#ifndef WEIR_STATE_OVER_H
#define WEIR_STATE_OVER_H

#include "hotpath/state/join_state.h"
#include "hotpath/state/over_frame.h"

enum { WEIR_OVER_FNS_MAX = 64, WEIR_OVER_ARGS_MAX = 2 * WEIR_OVER_FNS_MAX };

/* UNNEST is a state of the same kind, without functions and without waiting: rows leave at the next order point, in the
 * order they came, once for each element of an array of theirs. Nothing is kept across an order point.
 *
 * The functions of one state. Made by the planner, completed by weir_state_def_init. */
struct weir_over_def {
	uint32_t fn_count;
	const struct weir_over_fn *fns; /* their results are the columns of side 1 */
	bool unnest;                    /* side 1: an ARRAY of the one element, and its number from 1 */
	uint32_t array;                 /* unnest: which column of side 0 */
	bool outer;                     /* unnest: a row without elements leaves once, with NULLs */
	/* Set by weir_state_def_init: */
	bool timed;
	bool sums;         /* some frame has no lower bound */
	int64_t keep_rows; /* not timed: rows of a key that are kept, */
	int64_t keep_ms;   /* and those up to so long before its newest one; -1: none by time */
	uint32_t arg_count;
	uint16_t arg[WEIR_OVER_ARGS_MAX]; /* columns of side 0 that functions read */
	uint32_t past_count;
	uint16_t past[WEIR_OVER_ARGS_MAX]; /* of these, numbers of those that are read of earlier rows, too */
};

WEIR_MUST_CHECK enum weir_err weir_over_def_init(struct weir_state_def *def, struct weir_diag **dg);
/* What the functions are, for the fingerprint. */
void weir_over_def_print(const struct weir_over_def *ov, struct weir_buf *out);

void weir_over_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		     const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out);

/* Rows that leave, with their results; one for each worker and stage. */
struct weir_over_work;
struct weir_over_work *weir_over_work_create(const struct weir_state_def *def);
void weir_over_work_destroy(struct weir_over_work *wk);
/* Takes the rows that are final at task_time (all: every one) out of the slot's waiting and computes their functions.
 * Returns how many there are, in order of time, key bytes and arrival. Afterwards weir_join_drop gives back what no
 * frame will reach. */
uint32_t weir_over_take(struct weir_slot *sl, int64_t task_time, bool all, struct weir_over_work *wk);
/* Row i of them and its packed results, until the next take or drop. */
void weir_over_get(const struct weir_slot *sl, const struct weir_over_work *wk, uint32_t i, struct weir_join_row *row,
		   const uint8_t **results, uint32_t *result_bytes);
/* Results of the last take that do not fit their type (NULL). */
uint32_t weir_over_errors(const struct weir_over_work *wk);

#endif
