/* route.c: the slot-to-worker map and its readers (route.h) */
#include "hotpath/run/route.h"

#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

#include "hotpath/core/mem.h"

void weir_routes_init(struct weir_routes *rs, uint32_t slot_count, uint32_t workers)
{
	struct weir_route *rt = weir_xcalloc(1, sizeof *rt + slot_count * sizeof *rt->owner);
	rt->slot_count = slot_count;
	for (uint32_t s = 0; s < slot_count; s++)
		rt->owner[s] = (uint16_t)(s % workers);
	rcu_set_pointer(&rs->map, rt);
}

void weir_routes_fini(struct weir_routes *rs)
{
	free(rs->map);
	rs->map = NULL;
}

void weir_routes_publish(struct weir_routes *rs, struct weir_route *next)
{
	struct weir_route *old = rcu_xchg_pointer(&rs->map, next);
	urcu_qsbr_synchronize_rcu();
	free(old);
}

const struct weir_route *weir_routes_read(const struct weir_routes *rs)
{
	return rcu_dereference(rs->map);
}

void weir_reader_register(void)
{
	urcu_qsbr_register_thread();
}

void weir_reader_unregister(void)
{
	urcu_qsbr_unregister_thread();
}

void weir_reader_quiescent(void)
{
	urcu_qsbr_quiescent_state();
}

void weir_reader_offline(void)
{
	urcu_qsbr_thread_offline();
}

void weir_reader_online(void)
{
	urcu_qsbr_thread_online();
}
