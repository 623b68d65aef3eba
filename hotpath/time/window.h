/* window.h: which windows a timestamp falls in and when they close. Pure arithmetic on milliseconds, @thread any.
 *
 * Starts are offset + k * advance. For a timestamp >= 0 no window starts below 0, as in Kafka Streams' rule
 * max(0, ts - size + advance) / advance * advance; with an offset > 0 the one window that covers [0, offset) starts at
 * offset - advance, so that every timestamp has a window. Timestamps below 0 (where they are allowed) are not clipped.
 *
 * Times are within +-WEIR_TIME_MAX and durations within WEIR_SPAN_MAX: then no sum below overflows. */
#ifndef WEIR_TIME_WINDOW_H
#define WEIR_TIME_WINDOW_H

#include "hotpath/core/base.h"

#define WEIR_TIME_MAX (INT64_C(1) << 61)
#define WEIR_SPAN_MAX (INT64_C(1) << 50) /* about 35,000 years */

WEIR_INLINE int64_t weir_gcd(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t r = a % b;
		a = b;
		b = r;
	}
	return a;
}

/* offset as a remainder in [0, advance). */
WEIR_INLINE int64_t weir_window_offset(int64_t offset, int64_t advance)
{
	return offset - weir_floor_div(offset, advance) * advance;
}

/* Largest aligned start <= ts; offset in [0, step). */
WEIR_INLINE int64_t weir_window_last(int64_t ts, int64_t step, int64_t offset)
{
	return weir_floor_div(ts - offset, step) * step + offset;
}

/* First start of the windows that hold ts. offset in [0, advance). */
WEIR_INLINE int64_t weir_window_first(int64_t ts, int64_t size, int64_t advance, int64_t offset)
{
	int64_t k = weir_floor_div(ts - offset - size + advance, advance);
	int64_t k_min = offset > 0 ? -1 : 0;
	if (ts >= 0 && k < k_min)
		k = k_min;
	return k * advance + offset;
}

/* The rule of closing, for accepting records and for emitting alike: closed iff task time >= end + grace. */
WEIR_INLINE int64_t weir_window_close_time(int64_t end, int64_t grace)
{
	return end + grace;
}
WEIR_INLINE bool weir_window_is_closed(int64_t end, int64_t grace, int64_t task_time)
{
	return task_time >= end + grace;
}

/* A session [first, last] is closed iff task time > last + gap + grace: the smallest task time that closes it. */
WEIR_INLINE int64_t weir_session_close_time(int64_t last, int64_t gap, int64_t grace)
{
	return last + gap + grace + 1;
}
WEIR_INLINE bool weir_session_is_closed(int64_t last, int64_t gap, int64_t grace, int64_t task_time)
{
	return task_time > last + gap + grace;
}

#endif
