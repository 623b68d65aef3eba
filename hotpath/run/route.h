/* route.h: which worker owns which slot: a map published by liburcu (QSBR flavour), so that slots can move while
 * workers read it. Workers are registered readers: quiescent between steps, offline before any wait.
 *
 *   reader  weir_route_owner()  between two quiescent states    @thread worker
 *   writer  weir_routes_publish(), which waits for every reader @thread init (and snap, once slots move) */
#ifndef WEIR_RUN_ROUTE_H
#define WEIR_RUN_ROUTE_H

#include "hotpath/core/base.h"

struct weir_route {
	uint32_t slot_count;
	uint16_t owner[]; /* worker of each slot */
};

struct weir_routes {
	struct weir_route *map; /* @writer init, snap (xchg)  @reader worker (dereference) */
};

/* Slots dealt round-robin: slot s belongs to worker s % workers. @thread init */
void weir_routes_init(struct weir_routes *rs, uint32_t slot_count, uint32_t workers);
void weir_routes_fini(struct weir_routes *rs);
/* Replaces the map and frees the old one once no reader can hold it. Takes next. */
void weir_routes_publish(struct weir_routes *rs, struct weir_route *next);
/* The current map; valid until the caller's next quiescent state. */
const struct weir_route *weir_routes_read(const struct weir_routes *rs);

/* A thread that reads maps: registered for its life, quiescent after each step, offline while it sleeps. */
void weir_reader_register(void);
void weir_reader_unregister(void);
void weir_reader_quiescent(void);
void weir_reader_offline(void);
void weir_reader_online(void);

#endif
