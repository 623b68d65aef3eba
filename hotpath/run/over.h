/* over.h: rows of functions OVER on their way out of a slot, at order points: those that task time has passed, by time.
 * @thread worker */
#ifndef WEIR_RUN_OVER_H
#define WEIR_RUN_OVER_H

#include "hotpath/run/run.h"

struct weir_worker;
struct weir_over;

/* One for each worker and OVER stage. @thread init */
struct weir_over *weir_over_create(struct weir_worker *w, uint32_t stage);
void weir_over_destroy(struct weir_over *ov);
/* Hands the rows of an own slot on that are final. False: no fragment is free, come again for the same slot. *end_max:
 * at close_all, the task time less grace from which on rows like those are late. */
bool weir_over_run(struct weir_over *ov, struct weir_bundle *b, uint32_t slot, bool close_all, int64_t *end_max);

#endif
