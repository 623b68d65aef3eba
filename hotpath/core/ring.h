/* ring.h: single-producer single-consumer ring of pointers, bounded, lock-free. Header only: calls inline.
 *
 *   producer: push... publish      consumer: pop... done
 * push writes slots without publishing them; publish makes all of them visible by one release store, so that a burst
 * costs one cache-line transfer. Counters run free: compare by difference only. */
#ifndef WEIR_CORE_RING_H
#define WEIR_CORE_RING_H

#include "hotpath/core/base.h"

struct weir_ring {
	_Alignas(WEIR_CACHE_LINE) _Atomic uint32_t tail; /* @writer producer  @reader consumer (acquire) */
	uint32_t tail_local;                             /* @writer producer  pushed, perhaps not yet published */
	uint32_t head_seen;                              /* @writer producer  last head it read */
	_Alignas(WEIR_CACHE_LINE) _Atomic uint32_t head; /* @writer consumer  @reader producer (acquire) */
	uint32_t tail_seen;                              /* @writer consumer  last tail it read */
	_Alignas(WEIR_CACHE_LINE) uint32_t mask;         /* @writer init */
	void **slot;
};

/* capacity is rounded up to a power of two. @thread init */
void weir_ring_init(struct weir_ring *rg, uint32_t capacity);
void weir_ring_fini(struct weir_ring *rg);

/* False when full: the caller keeps p. Not visible before weir_ring_publish. @thread producer  @gives p to consumer */
WEIR_INLINE bool weir_ring_push(struct weir_ring *rg, void *p)
{
	if (WEIR_UNLIKELY(rg->tail_local - rg->head_seen > rg->mask)) {
		rg->head_seen = atomic_load_explicit(&rg->head, memory_order_acquire); /* pairs with pop's release */
		if (rg->tail_local - rg->head_seen > rg->mask)
			return false;
	}
	rg->slot[rg->tail_local & rg->mask] = p;
	rg->tail_local++;
	return true;
}

/* Makes every pushed pointer visible. True if there was something new. @thread producer */
WEIR_INLINE bool weir_ring_publish(struct weir_ring *rg)
{
	if (atomic_load_explicit(&rg->tail, memory_order_relaxed) == rg->tail_local)
		return false;
	atomic_store_explicit(&rg->tail, rg->tail_local, memory_order_release); /* pairs with pop's acquire */
	return true;
}

/* Next pointer, or NULL when empty; the slot is free for the producer at once. @thread consumer */
WEIR_INLINE void *weir_ring_pop(struct weir_ring *rg)
{
	uint32_t head = atomic_load_explicit(&rg->head, memory_order_relaxed);
	if (head == rg->tail_seen) {
		rg->tail_seen = atomic_load_explicit(&rg->tail, memory_order_acquire); /* pairs with publish */
		if (head == rg->tail_seen)
			return NULL;
	}
	void *p = rg->slot[head & rg->mask];
	atomic_store_explicit(&rg->head, head + 1, memory_order_release); /* pairs with push's acquire */
	return p;
}

/* The pointer pop would return, left in place. @thread consumer */
WEIR_INLINE void *weir_ring_front(struct weir_ring *rg)
{
	uint32_t head = atomic_load_explicit(&rg->head, memory_order_relaxed);
	if (head == rg->tail_seen) {
		rg->tail_seen = atomic_load_explicit(&rg->tail, memory_order_acquire);
		if (head == rg->tail_seen)
			return NULL;
	}
	return rg->slot[head & rg->mask];
}

/* Number of published entries; exact for either side between its own calls. @thread any */
WEIR_INLINE uint32_t weir_ring_depth(const struct weir_ring *rg)
{
	uint32_t head = atomic_load_explicit(&rg->head, memory_order_acquire);
	return atomic_load_explicit(&rg->tail, memory_order_acquire) - head;
}

#endif
