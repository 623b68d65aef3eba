/* budget.h: how memory.max is divided before the first record, and what is held of it. Divided: how many fragments
 * workers get, what they take, and the least that a job can be run with (@thread init). Held: now (@thread io). */
#ifndef WEIR_IO_BUDGET_H
#define WEIR_IO_BUDGET_H

#include "hotpath/topology/plan.h"
#include "io/conf.h"
#include "io/feed.h"

struct weir_budget {
	uint32_t fragments;   /* of a worker, for each scan and each stage that feeds others */
	uint64_t fixed_bytes; /* what these take of it, about */
	uint64_t least;       /* less memory.max than this does not hold the job */
};
/* pl: bound. */
void weir_budget_make(struct weir_budget *out, const struct weir_plan *pl, const struct weir_settings *st,
		      uint32_t workers);

/* Bytes, by what the streams and workers of a feed say: what the streams hold that say it, and results and deltas on
 * their way; state; and what workers hold besides: fragments, rows that wait for an order point, buffers kept for the
 * next. */
uint64_t weir_budget_flying(const struct weir_feed_conf *cf);
uint64_t weir_budget_state(const struct weir_feed_conf *cf);
uint64_t weir_budget_held(const struct weir_feed_conf *cf);

#endif
