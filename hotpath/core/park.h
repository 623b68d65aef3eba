/* park.h: how a thread sleeps until another one has something for it, without a lock: a flag and an eventfd.
 *
 *   sleeper: weir_park_prepare; look again; weir_park_wait (or weir_park_cancel)
 *   waker:   publish to a ring, then weir_park_wake
 * Either the sleeper's second look sees the publication, or the waker sees the flag: both sides put a full fence
 * between their store and their load. A wake of a thread that is awake costs a fence and a load, no system call. */
#ifndef WEIR_CORE_PARK_H
#define WEIR_CORE_PARK_H

#include "hotpath/core/base.h"

struct weir_park {
	_Alignas(WEIR_CACHE_LINE) _Atomic uint32_t sleeping; /* @writer both sides */
	int fd;                                              /* @writer init; -1: single-threaded, never sleeps */
};

/* threads=false leaves fd -1. WEIR_E_IO when there is no descriptor. @thread init */
WEIR_MUST_CHECK enum weir_err weir_park_init(struct weir_park *pk, bool threads);
void weir_park_fini(struct weir_park *pk);
void weir_park_signal(struct weir_park *pk);
/* Sleeps until woken or timeout_ms (-1: for ever) has passed, also until extra_fd (-1: none) is readable. */
void weir_park_wait(struct weir_park *pk, int timeout_ms, int extra_fd);

/* A full fence; TSan knows none, so there it is a read-modify-write of the flag, which orders as well. */
#ifdef CMM_SANITIZE_THREAD
#define WEIR_PARK_FENCE(pk) ((void)atomic_fetch_or_explicit(&(pk)->sleeping, 0, memory_order_seq_cst))
#else
#define WEIR_PARK_FENCE(pk) atomic_thread_fence(memory_order_seq_cst)
#endif

WEIR_INLINE void weir_park_prepare(struct weir_park *pk)
{
	atomic_store_explicit(&pk->sleeping, 1, memory_order_relaxed);
	WEIR_PARK_FENCE(pk);
}
WEIR_INLINE void weir_park_cancel(struct weir_park *pk)
{
	atomic_store_explicit(&pk->sleeping, 0, memory_order_relaxed);
}
WEIR_INLINE void weir_park_wake(struct weir_park *pk)
{
	WEIR_PARK_FENCE(pk);
	if (WEIR_UNLIKELY(atomic_load_explicit(&pk->sleeping, memory_order_relaxed)))
		weir_park_signal(pk);
}

#endif
