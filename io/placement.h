/* placement.h: whether records lie in the partitions that their keys say, where a plan relies on it: a state that is
 * grouped by a source's own key has a slot per partition and moves no record (direct). A sample of the first records
 * is looked at, and what is found is said once. @thread io */
#ifndef WEIR_IO_PLACEMENT_H
#define WEIR_IO_PLACEMENT_H

#include "hotpath/topology/plan.h"
#include "io/stream.h"

struct weir_placement;
/* Of a bound plan; NULL where no partition of several is relied on. */
struct weir_placement *weir_placement_create(const struct weir_plan *pl);
void weir_placement_destroy(struct weir_placement *pc);
/* Looks at some records of a unit of that scan, while its sample is not full. Cost: some 4,096 records a scan in all,
 * of no unit more than 64. */
void weir_placement_unit(struct weir_placement *pc, uint32_t scan, const struct weir_unit *u);
/* What is wrong with a scan whose sample is full (end: or will not grow), in `out`, terminated. False: nothing is, or
 * it has been said. */
bool weir_placement_say(struct weir_placement *pc, uint32_t scan, bool end, struct weir_buf *out);

#endif
