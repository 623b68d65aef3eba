/* session.h: what session_table.c has for sliding_table.c, whose windows are kept like sessions. @thread worker */
#ifndef WEIR_STATE_SESSION_H
#define WEIR_STATE_SESSION_H

#include "hotpath/state/slot.h"

/* Copies a session that is closed into cl's generation, so that it outlives its own. Returns the copy. */
struct weir_session *weir_session_close_into(struct weir_closed *cl, const struct weir_slot *sl,
					     const struct weir_session *s);

#endif
