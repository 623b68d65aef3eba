/* budget.h: what of memory.max is spoken for before the first record: how many fragments workers get, what they take,
 * and the least that a job can be run with. @thread init */
#ifndef WEIR_IO_BUDGET_H
#define WEIR_IO_BUDGET_H

#include "hotpath/topology/plan.h"
#include "io/conf.h"

struct weir_budget {
	uint32_t fragments;   /* of a worker, for each scan and each stage that feeds others */
	uint64_t fixed_bytes; /* what these take of it, about */
	uint64_t least;       /* less memory.max than this does not hold the job */
};
/* pl: bound. */
void weir_budget_make(struct weir_budget *out, const struct weir_plan *pl, const struct weir_settings *st,
		      uint32_t workers);

#endif
