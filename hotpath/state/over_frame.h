/* over_frame.h: functions over the rows of one key, in order: a row's frame ends with it (or with the last row of its
 * time) and begins so many rows or milliseconds before it, or with the first row there ever was. Nothing here knows
 * where rows are kept. @thread any */
#ifndef WEIR_STATE_OVER_FRAME_H
#define WEIR_STATE_OVER_FRAME_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/aggregate.h"

enum weir_over_kind { WEIR_OVER_LAG, WEIR_OVER_ROW_NUMBER, WEIR_OVER_AGGREGATE };

struct weir_over_fn {
	enum weir_over_kind kind;
	struct weir_agg
		agg;       /* AGGREGATE: of its argument; ROW_NUMBER: COUNT(*). arg_type and result_type of LAG, too */
	int32_t arg;       /* column of the rows; -1: none */
	int32_t fallback;  /* LAG: column that stands in where there is no earlier row; -1: NULL */
	uint32_t offset;   /* LAG */
	bool rows;         /* the frame counts rows, not time */
	int64_t preceding; /* rows or ms before the row's own; -1: all */
};

/* Whether weir_over_compute has it: COUNT, SUM, AVG, MIN, MAX, FIRST_VALUE, LAST_VALUE. */
bool weir_over_has_aggregate(enum weir_agg_kind kind);

struct weir_over_value {
	union {
		int64_t i64;
		double f64;
		weir_i128 i128;
		struct weir_str str;
	};
	bool null;
};

void weir_over_value_get(struct weir_over_value *v, const struct weir_col *c, uint32_t row);
void weir_over_value_put(const struct weir_over_value *v, struct weir_col *c, uint32_t row);

/* What a frame without a lower bound has come to: a number's state as retract.c has it, or a value. */
struct weir_over_sum {
	uint64_t state[4];
	struct weir_over_value v; /* MIN, MAX, FIRST_VALUE, LAST_VALUE; null: nothing yet */
};
/* Whether the sum is a value (its column's type is the function's) rather than a state. */
bool weir_over_sum_is_value(const struct weir_over_fn *fn);

struct weir_over_rows {
	uint32_t count, first;                        /* rows before first have had their results */
	const int64_t *time;                          /* ascending */
	const struct weir_over_value *arg, *fallback; /* by row; NULL: the function has none */
};

struct weir_over_frames {
	struct weir_col cell[5]; /* of each enum weir_phys: one value */
	struct weir_buf queue;   /* uint32_t: rows that may become MIN or MAX */
	uint32_t errors;         /* results that did not fit; the caller resets it */
};
void weir_over_frames_init(struct weir_over_frames *of);
void weir_over_frames_fini(struct weir_over_frames *of);
/* out[i]: result of row first + i. sum: of fn, where its frame has no lower bound; goes on. Cost: a few ns for each row
 * of [begin of the first frame, count), whatever the frames' length. */
void weir_over_compute(struct weir_over_frames *of, const struct weir_over_fn *fn, const struct weir_over_rows *r,
		       struct weir_over_sum *sum, struct weir_over_value *out);

#endif
