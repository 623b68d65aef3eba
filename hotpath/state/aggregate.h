/* aggregate.h: aggregate functions: types, state layout, steps over a batch of entries, merge (panes, sessions), final.
 * State bytes are position-independent (they go into page images as they are); variable-size values (strings, sets)
 * live in blobs of the same generation, reached by reference. */
#ifndef WEIR_STATE_AGGREGATE_H
#define WEIR_STATE_AGGREGATE_H

#include "hotpath/core/batch.h"
#include "hotpath/core/type.h"

/* Values of a group that are kept one by one unless told (list.h). */
#define WEIR_LIST_ELEMENTS_DEFAULT 10000u

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
	WEIR_AGG_VAR_SAMP,
	WEIR_AGG_ARRAY_AGG
};

struct weir_agg {
	enum weir_agg_kind kind;
	int32_t arg;    /* column of weir_keyed.cols; -1 for COUNT(*) */
	int32_t filter; /* BOOLEAN column: only rows where it is TRUE; -1: none */
	struct weir_type arg_type;
	struct weir_type result_type;
	const char *text;      /* SQL text, for explain */
	bool list;             /* keeps its values one by one (list.h): ARRAY_AGG, and what over a table needs them */
	uint32_t elements_max; /* list: values of a group */
	uint32_t state_at;     /* offset in an entry's aggregate bytes: set by weir_state_def_init */
	uint32_t state_bytes;
};

/* Kind and result type (an ARRAY's element is borrowed from arg) of aggregate `name` over arg (NULL for COUNT(*));
 * WEIR_E_PLAN with what it takes. semantics.md section 6: SUM(BIGINT) BIGINT, SUM(DECIMAL(p,s)) DECIMAL(38,s),
 * AVG(DECIMAL(p,s)) DECIMAL(38,max(s,6)), AVG of integers truncated to the argument's type, SUM/AVG(FLOAT|DOUBLE) as
 * Flink. SUM of integers below BIGINT keeps the argument's type in Flink: so here. */
WEIR_MUST_CHECK enum weir_err weir_agg_resolve(struct weir_agg *out, const char *name, bool distinct,
					       const struct weir_type *arg, struct weir_diag **dg);

/* `SUM`, `COUNT_DISTINCT`: as fingerprints and changelogs name it. */
const char *weir_agg_kind_name(enum weir_agg_kind kind);

/* ---- for the tables of this folder ---- */

struct weir_state_def;
struct weir_gen;
struct weir_entry;
struct weir_pages;

#define WEIR_LANES 256

/* Rows on their way into entries: lane i folds row[i] of the columns into entry[i]. */
struct weir_lanes {
	uint32_t count;
	uint16_t row[WEIR_LANES];
	uint8_t *entry[WEIR_LANES];
	struct weir_gen *gen[WEIR_LANES];
	uint64_t order[WEIR_LANES]; /* the slot's record counter at that row, from 1 */
};

/* Sets state_at and state_bytes of each, returns the bytes of all. Zeroed bytes are the empty state of every kind. */
uint32_t weir_agg_layout(struct weir_agg *aggs, uint32_t count);
bool weir_agg_has_blob(const struct weir_agg *a);
/* Whether a value can be taken out again: what an aggregate over a table needs. */
bool weir_agg_can_retract(const struct weir_agg *a);
/* Whether over a table its values have to be kept one by one: all others that can. */
bool weir_agg_keeps_list(const struct weir_agg *a);
/* Whether its state is a number that values are added to and subtracted from: COUNT, SUM, AVG. */
bool weir_agg_can_subtract(const struct weir_agg *a);
/* Adds value `row` of c, which is not NULL, to such a state, or takes it out. c may be NULL for a COUNT. */
void weir_agg_step(const struct weir_agg *a, void *state, const struct weir_col *c, uint32_t row, bool minus);
/* Folds lanes [from, from + count) into their entries, aggregate by aggregate. */
void weir_agg_fold(const struct weir_state_def *def, const struct weir_lanes *ln, uint32_t from, uint32_t count,
		   const struct weir_col *const *cols);
/* Folds the aggregates of from (in pages of from_pages) into those of to, an entry of g. */
void weir_agg_merge(const struct weir_state_def *def, struct weir_gen *g, uint8_t *to,
		    const struct weir_pages *from_pages, const uint8_t *from);
/* Writes the result as row `row` of c; false if it does not fit the type (then NULL). Strings point into the pages. */
bool weir_agg_final(const struct weir_agg *a, const uint8_t *state, const struct weir_pages *pages, struct weir_col *c,
		    uint32_t row);
/* The same of any aggregate, those that keep lists among them; their arrays stand in scratch. */
bool weir_agg_result(const struct weir_agg *a, const uint8_t *state, const struct weir_pages *pages, struct weir_col *c,
		     uint32_t row, struct weir_scratch *scratch);
/* The blob an aggregate state refers to (0: none), and how to make it refer to another. */
uint32_t weir_agg_blob(const struct weir_agg *a, const uint8_t *state);
void weir_agg_set_blob(const struct weir_agg *a, uint8_t *state, uint32_t ref);
/* A state that refers to a string: the reference and its length. */
struct weir_text;
const struct weir_text *weir_agg_text(const struct weir_agg *a, const uint8_t *state);
/* Restore: is the state consistent with its blob's payload (NULL: none)? */
bool weir_agg_check(const struct weir_agg *a, const uint8_t *state, const uint8_t *payload, uint32_t capacity);

#endif
