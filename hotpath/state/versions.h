/* versions.h: a table with its history, for joins as of a time: the versions of a key hang together in one generation,
 * newest first (of equal times the later arrival first), as the records of a join buffer do:
 *
 *   index[key] -> version --older--> version ...        row: int64 time | u8 1: deleted | packed columns (row.h)
 *
 * Where a search has passed many of them, the key gets a history: the same versions by time (history.h), from then on
 * put there as well. It says where in the list a version goes, which one is asked for and which are old enough to
 * leave; a restored slot makes it anew when it is wanted. The newest version carries WEIR_ENTRY_HISTORY. Cost of each
 * call: nothing that grows with the versions at the newest end, else the logarithm of how many there are; once for each
 * history, all of them.
 *
 * Rows of the stream wait in generations by time (join_state.h, side 0) until the table's time has passed theirs.
 * @thread worker (the slot's owner) */
#ifndef WEIR_STATE_VERSIONS_H
#define WEIR_STATE_VERSIONS_H

#include "hotpath/state/join_state.h"

/* The key's row from r->time on, or, deletes, that there is none. Versions that no row at or after `low` would find go:
 * WEIR_TIME_UNSET keeps all. */
void weir_versions_put(struct weir_slot *sl, const struct weir_join_row *r, bool deletes, int64_t low);
/* The key's row at time; false if there was none. Valid until the table changes. */
bool weir_versions_find(struct weir_slot *sl, const struct weir_join_row *r, int64_t time, struct weir_join_row *out);

#endif
