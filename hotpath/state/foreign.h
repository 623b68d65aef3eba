/* foreign.h: what a foreign-key join of two tables keeps in one slot: rows of the left table by (foreign key, own key),
 * rows of the right one by its key, and which left rows hang on which right key:
 *
 *   heads[foreign key] --next--> left row <--before/next--> left row ...     newest first
 *
 * Keys of all three have the same columns: the foreign key, then the left table's key, which is NULL where it is not
 * meant. Slots are chosen by the foreign key alone. Links are part of the entries, so that a restored slot goes on as
 * it was. @thread worker (the slot's owner) */
#ifndef WEIR_STATE_FOREIGN_H
#define WEIR_STATE_FOREIGN_H

#include "hotpath/state/join_state.h"

/* The key of the right row and of the head that left is joined by; it lies in room until the next call. */
void weir_foreign_key(const struct weir_state_def *def, const struct weir_join_row *left, struct weir_buf *room,
		      struct weir_join_row *out);
void weir_foreign_put(struct weir_slot *sl, const struct weir_join_row *r, const struct weir_join_row *key);
/* False: there was none. */
bool weir_foreign_remove(struct weir_slot *sl, const struct weir_join_row *r, const struct weir_join_row *key);
/* The left rows of a key, one after another: a ref, 0 at the end. */
uint32_t weir_foreign_first(const struct weir_slot *sl, const struct weir_join_row *key);
/* The row at ref; returns the next one's ref. Valid until the table changes. */
uint32_t weir_foreign_get(const struct weir_slot *sl, uint32_t ref, struct weir_join_row *out);

#endif
