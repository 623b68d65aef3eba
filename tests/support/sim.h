/* sim.h: what simulations of the whole engine share: random numbers by a seed, a clock that moves by being read, and
 * the check of calls that must work. Test programs only, one thread; after cmocka.h. */
#ifndef WEIR_TESTS_SUPPORT_SIM_H
#define WEIR_TESTS_SUPPORT_SIM_H

#include "hotpath/core/diag.h"

static inline uint64_t rng_next(uint64_t *s)
{
	*s += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *s;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int64_t sim_clock_us;

static inline int64_t sim_now(void)
{
	return sim_clock_us += 7;
}

#define check(call, dg)                                                                                                \
	do {                                                                                                           \
		if ((call) != WEIR_OK)                                                                                 \
			fail_msg("%s", weir_diag_text(dg));                                                            \
	} while (0)

#endif
