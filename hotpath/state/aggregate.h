/* aggregate.h: aggregate functions: types, state layout, steps over a batch of entries, merge (panes, sessions), final.
 * State bytes are position-independent (they go into page images as they are); variable-size values (strings, sets)
 * live in blobs of the same generation, reached by reference. */
#ifndef WEIR_STATE_AGGREGATE_H
#define WEIR_STATE_AGGREGATE_H

#include "hotpath/core/batch.h"
#include "hotpath/core/type.h"

enum weir_agg_kind {
	WEIR_AGG_COUNT_STAR,
	WEIR_AGG_COUNT,
	WEIR_AGG_COUNT_DISTINCT,
	WEIR_AGG_SUM,
	WEIR_AGG_MIN,
	WEIR_AGG_MAX,
	WEIR_AGG_AVG,
	WEIR_AGG_FIRST_VALUE,
	WEIR_AGG_LAST_VALUE,
	WEIR_AGG_STDDEV_POP,
	WEIR_AGG_STDDEV_SAMP,
	WEIR_AGG_VAR_POP,
	WEIR_AGG_VAR_SAMP
};

struct weir_agg {
	enum weir_agg_kind kind;
	int32_t arg;    /* column of weir_keyed.cols; -1 for COUNT(*) */
	int32_t filter; /* BOOLEAN column: only rows where it is TRUE; -1: none */
	struct weir_type arg_type;
	struct weir_type result_type;
	const char *text; /* SQL text, for explain */
	uint32_t state_at;    /* offset in an entry's aggregate bytes: set by weir_state_def_init */
	uint32_t state_bytes;
};

/* Kind and result type of aggregate `name` over arg (NULL for COUNT(*)); WEIR_E_PLAN with what it takes. semantics.md
 * section 6: SUM(BIGINT) BIGINT, SUM(DECIMAL(p,s)) DECIMAL(38,s), AVG(DECIMAL(p,s)) DECIMAL(38,max(s,6)), AVG of integers
 * truncated to the argument's type, SUM/AVG(FLOAT|DOUBLE) as Flink. SUM of integers below BIGINT keeps the argument's
 * type in Flink: so here. */
WEIR_MUST_CHECK enum weir_err weir_agg_resolve(struct weir_agg *out, const char *name, bool distinct,
                                               const struct weir_type *arg, struct weir_diag **dg);

#endif
