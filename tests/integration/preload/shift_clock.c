/* shift_clock.c: preloaded into a command under test, moves its wall clock about: an hour back after 200 ms, two hours
 * ahead after 400 ms, and back and forth by 200 ms all the time. The monotonic clock goes on. (libfaketime does not
 * start beside jemalloc.) Any thread. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(clockid_t id)
{
	struct timespec ts;
	syscall(SYS_clock_gettime, id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t shifted_ms(void)
{
	static int64_t start;
	int64_t mono = now_ms(CLOCK_MONOTONIC);
	if (__atomic_load_n(&start, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&start, mono, __ATOMIC_RELAXED);
	int64_t gone = mono - __atomic_load_n(&start, __ATOMIC_RELAXED);
	int64_t shift = gone < 200 ? 0 : gone < 400 ? -3600000 : 7200000;
	return now_ms(CLOCK_REALTIME) + shift - (gone / 50 % 2) * 200;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
		return (int)syscall(SYS_clock_gettime, id, ts);
	int64_t ms = shifted_ms();
	ts->tv_sec = ms / 1000;
	ts->tv_nsec = ms % 1000 * 1000000;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	(void)zone;
	int64_t ms = shifted_ms();
	tv->tv_sec = ms / 1000;
	tv->tv_usec = ms % 1000 * 1000;
	return 0;
}

time_t time(time_t *out)
{
	time_t t = (time_t)(shifted_ms() / 1000);
	if (out != NULL)
		*out = t;
	return t;
}
