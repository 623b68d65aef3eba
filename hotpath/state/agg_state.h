/* agg_state.h: the bytes of aggregate states. All are position-independent, a multiple of 8 bytes, 8-byte aligned, and
 * empty when zero. They are durable: a change here is a change of the changelog's format. */
#ifndef WEIR_STATE_AGG_STATE_H
#define WEIR_STATE_AGG_STATE_H

#include "hotpath/core/base.h"
#include "hotpath/state/blob.h"

/* Entries are aligned to 8 bytes only. */
typedef weir_i128 weir_i128_at8 __attribute__((aligned(8)));

struct agg_count {
	uint64_t n;
};
/* Exact whatever the order: the value is sum + over * 2^128, so passing the 128 bits and coming back loses nothing. */
struct agg_sum {
	weir_i128_at8 sum;
	int32_t over;
	uint32_t seen;
};
struct agg_avg {
	weir_i128_at8 sum;
	int64_t over;
	uint64_t n;
};
/* Neumaier's sum; the compensation travels with it through merges and the changelog. */
struct agg_real {
	double sum, comp;
	uint64_t n; /* values, with AGG_REAL_SPECIAL once one was infinite or NaN */
};
#define AGG_REAL_SPECIAL (UINT64_C(1) << 63)
/* MIN, MAX, FIRST, LAST of a value in a word (bits of a double) or two. order: the slot's record counter, 0 no value.
 */
struct agg_word {
	int64_t v;
	uint64_t order;
};
struct agg_wide {
	weir_i128_at8 v;
	uint64_t order;
};
struct agg_text {
	struct weir_text text;
	uint64_t order;
};
struct agg_var {
	uint64_t n;
	double mean, m2;
};
struct agg_distinct {
	uint32_t ref;
	uint32_t full; /* the set could not grow: the result is NULL */
	uint64_t n;
};
/* Values one by one: list.h. */
struct agg_list {
	uint32_t ref;
	uint32_t used; /* bytes of the blob */
	uint32_t n;
	uint32_t full; /* there were too many: only their number is known, until it is 0 */
};
_Static_assert(sizeof(struct agg_sum) == 24 && _Alignof(struct agg_sum) == 8, "states are 8-byte aligned");
_Static_assert(sizeof(struct agg_avg) == 32 && sizeof(struct agg_wide) == 24, "states are 8-byte aligned");

#endif
