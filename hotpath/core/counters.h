/* counters.h: counters that one thread adds to and any thread reads. Header only.
 *
 * An add is a plain load, add and store (relaxed atomics cost nothing over that), so a counter must have exactly one
 * writer; per-thread blocks are summed by the reader. A reader sees each counter at some recent value, and two counters
 * perhaps from different moments: sums are exact only once the writer has stopped or has published by a ring. */
#ifndef WEIR_CORE_COUNTERS_H
#define WEIR_CORE_COUNTERS_H

#include "hotpath/core/base.h"

struct weir_counter {
	_Atomic uint64_t value; /* @writer the owning thread  @reader any (relaxed) */
};

/* @thread the owner */
WEIR_INLINE void weir_counter_add(struct weir_counter *ct, uint64_t n)
{
	uint64_t v = atomic_load_explicit(&ct->value, memory_order_relaxed);
	atomic_store_explicit(&ct->value, v + n, memory_order_relaxed);
}
/* For gauges. @thread the owner */
WEIR_INLINE void weir_counter_set(struct weir_counter *ct, uint64_t n)
{
	atomic_store_explicit(&ct->value, n, memory_order_relaxed);
}
/* Keeps the larger. @thread the owner */
WEIR_INLINE void weir_counter_max(struct weir_counter *ct, uint64_t n)
{
	if (n > atomic_load_explicit(&ct->value, memory_order_relaxed))
		atomic_store_explicit(&ct->value, n, memory_order_relaxed);
}
/* @thread any */
WEIR_INLINE uint64_t weir_counter_read(const struct weir_counter *ct)
{
	return atomic_load_explicit(&ct->value, memory_order_relaxed);
}

#endif
