/* ring.c: storage of the single-producer single-consumer ring; push and pop are inline in ring.h. @thread init. */
#include "hotpath/core/ring.h"

#include <stdlib.h>

#include "hotpath/core/mem.h"

_Static_assert(offsetof(struct weir_ring, head) == WEIR_CACHE_LINE, "the producer's fields have a line of their own");
_Static_assert(offsetof(struct weir_ring, mask) == 2 * WEIR_CACHE_LINE,
	       "the consumer's fields have a line of their own");

void weir_ring_init(struct weir_ring *rg, uint32_t capacity)
{
	WEIR_ASSERT(capacity >= 1 && capacity <= UINT32_C(1) << 30);
	uint32_t size = 1;
	while (size < capacity)
		size *= 2;
	atomic_init(&rg->tail, 0);
	atomic_init(&rg->head, 0);
	rg->tail_local = 0;
	rg->head_seen = 0;
	rg->tail_seen = 0;
	rg->mask = size - 1;
	rg->slot = weir_xcalloc(size, sizeof *rg->slot);
}

void weir_ring_fini(struct weir_ring *rg)
{
	free(rg->slot);
	rg->slot = NULL;
}
