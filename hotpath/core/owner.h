/* owner.h: the thread that an object of one role belongs to. In debug builds weir_owner_check() stops the process when
 * another thread enters; in release builds every call is nothing. Header only.
 *
 *     NOBODY --first check--> thread t --give--> NOBODY --first check--> thread u
 *
 * An object is handed over through a ring, whose release and acquire order its plain fields; the word here is an atomic
 * only so that the check itself is no data race when somebody breaks the rule. */
#ifndef WEIR_CORE_OWNER_H
#define WEIR_CORE_OWNER_H

#include "hotpath/core/base.h"

struct weir_owner {
	_Atomic uintptr_t thread; /* 0: nobody; else what weir_owner_self() gives on the owning thread */
};

/* A number that no other living thread has. @thread any */
uintptr_t weir_owner_self(void);

WEIR_INLINE void weir_owner_init(struct weir_owner *ow)
{
	atomic_init(&ow->thread, 0);
}

/* The calling thread enters the object: takes it if it belongs to nobody, else must be its owner. @thread the owner */
WEIR_INLINE void weir_owner_check(struct weir_owner *ow)
{
#ifdef WEIR_DEBUG
	uintptr_t self = weir_owner_self(), nobody = 0;
	if (!atomic_compare_exchange_strong_explicit(&ow->thread, &nobody, self, memory_order_relaxed,
						     memory_order_relaxed))
		WEIR_ASSERT(nobody == self && "entered by its owning thread only");
#else
	(void)ow;
#endif
}

/* The owner lets go, just before it pushes the object to another thread. @thread the owner  @gives the object */
WEIR_INLINE void weir_owner_give(struct weir_owner *ow)
{
#ifdef WEIR_DEBUG
	weir_owner_check(ow);
	atomic_store_explicit(&ow->thread, 0, memory_order_relaxed);
#else
	(void)ow;
#endif
}

#endif
