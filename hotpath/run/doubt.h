/* doubt.h: what a crash leaves in doubt where results are out before their epoch commits (at_least_once on brokers).
 *
 *   last commit        crash
 *   ----|--------------|----------- input
 *       | P1    P2     |            results left at P1 and P2; no state knows so
 *       |--------------| again: the same rows, but order points fall elsewhere
 *
 * A row that was shown at P1 may come and go between two order points of what is read again, and one that was shown
 * passes no filter at any of them: the restored state never sees it stand, so nothing would take it out of the sink.
 * Until every input has been read to where it ended when slots were restored (nothing behind it can have been applied
 * before), slots are *in doubt*: they send a delete for whatever goes or does not pass, shown or not, and a stage that
 * feeds tables hands each update on instead of the last one at an order point, so that what follows from a row in
 * between is told as well. A delete too many does nothing in a topic by key; where it would do harm (a changelog of
 * ops, another query that writes the topic too, a key that says less than the row's) a stage is not in doubt. @thread
 * worker */
#ifndef WEIR_RUN_DOUBT_H
#define WEIR_RUN_DOUBT_H

#include "hotpath/run/worker.h"

/* Before the first step, slots restored: those of stages that can be are in doubt, but not those whose number modulo
 * partitions is true in kept (NULL: none is). @thread init */
void weir_doubt_begin(struct weir_worker *w, const bool *kept, uint32_t partitions);
/* Also where there is none. */
void weir_doubt_end(struct weir_worker *w);
/* Whether each update of the stage is to be kept for those it feeds. There is doubt. */
bool weir_doubt_keeps(const struct weir_worker *w, uint32_t stage);
/* Keeps what has changed in the slot since the last call, to be handed on at the order point. */
void weir_doubt_keep(struct weir_worker *w, uint32_t stage, uint32_t slot);
/* The same of a row that is to be applied, of a stage with numbered rows: where a newer one of its key came first, it
 * was perhaps not so when both were read before. */
void weir_doubt_keep_stale(struct weir_worker *w, uint32_t stage, const struct weir_keyed *keyed, uint32_t row);
/* Hands on what was kept. False: no fragment is free, come again. */
bool weir_doubt_hand_on(struct weir_worker *w, struct weir_bundle *b, uint32_t stage, uint32_t slot);

#endif
