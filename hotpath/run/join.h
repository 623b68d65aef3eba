/* join.h: joins in a worker: rows of both sides are held until the order point, merged, and applied slot by slot.
 *
 *   batches ---> hold: lanes (branch, partition or upstream slot), each in its own order
 *   order point: lanes are merged by time, tables first on equal time; every row gets the task time of its turn
 *                then, slot by slot: row --> join_state --> results (worker's rows or a fragment) --> tails, stages
 *
 * The merged order is that of lanes, not of slots or workers: a lane's key never falls (a row out of order comes right
 * after the one before it), so the row at key K has seen of every other lane what stands at or below K there. Nothing
 * is held across an order point. @thread worker */
#ifndef WEIR_RUN_JOIN_H
#define WEIR_RUN_JOIN_H

#include "hotpath/run/run.h"

struct weir_worker;
struct weir_join;

/* One for each worker and JOIN stage. @thread init */
WEIR_MUST_CHECK enum weir_err weir_join_create(struct weir_join **out, struct weir_worker *w, uint32_t stage,
					       struct weir_diag **dg);
void weir_join_destroy(struct weir_join *jn);

/* Takes in a fragment's rows for the stage, by its branch fb: the worker's own rows[0..count) of keyed, and the times
 * of all. Before the worker's clocks move on to it. skip: bits of rows that count for nothing (time.future.max.ms), or
 * NULL. */
void weir_join_hold(struct weir_join *jn, const struct weir_fragment *fr, const struct weir_fragment_branch *fb,
		    const struct weir_keyed *keyed, const uint16_t *rows, uint32_t count, const uint64_t *skip);
/* Whether rows of a scan's fragment need not be held, since no row of the table they stand beside comes any more: then
 * their results are written into b at once, and weir_join_run only says in which order they leave. False:
 * weir_join_hold takes them. */
bool weir_join_beside(struct weir_join *jn, struct weir_bundle *b, const struct weir_fragment *fr,
		      const struct weir_fragment_branch *fb, uint32_t count);
/* Order point, at the stage's level: merges what is held. */
void weir_join_merge(struct weir_join *jn);
/* Applies the rows of an own slot and hands its results on. False: no fragment is free, come again for the same slot.
 * *end_max: at close_all, the task time from which on rows closed are late. */
bool weir_join_run(struct weir_join *jn, struct weir_bundle *b, uint32_t slot, bool close_all, int64_t *end_max);
/* Bytes of memory it has for what it holds and merges. */
uint64_t weir_join_held_bytes(const struct weir_join *jn);
/* All slots are through: forgets what was held. */
void weir_join_reset(struct weir_join *jn);

#endif
