/* sim.h: what simulations of the whole engine share: random numbers by a seed, a clock that moves by being read, a
 * recorded log, and the check of calls that must work. Test programs only, one thread; after cmocka.h. */
#ifndef WEIR_TESTS_SUPPORT_SIM_H
#define WEIR_TESTS_SUPPORT_SIM_H

#include "hotpath/core/diag.h"
#include "io/recorded/recorded.h"

static inline uint64_t rng_next(uint64_t *s)
{
	*s += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *s;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int64_t sim_clock_us;
static int64_t sim_step_us = 7;

static inline int64_t sim_now(void)
{
	return sim_clock_us += sim_step_us;
}

/* A recorded log as the engine opens it. */
static inline enum weir_err sim_open_log(void *ctx, const char *home, const char *app, struct weir_log **out,
					 struct weir_diag **dg)
{
	(void)ctx;
	return weir_recorded_log_open(out, home, app, dg);
}

#define check(call, dg)                                                                                                \
	do {                                                                                                           \
		if ((call) != WEIR_OK)                                                                                 \
			fail_msg("%s", weir_diag_text(dg));                                                            \
	} while (0)

#endif
