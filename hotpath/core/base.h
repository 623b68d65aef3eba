/* base.h: macros, assert tiers and integer helpers used everywhere below and above. Header only, @thread any. */
#ifndef WEIR_CORE_BASE_H
#define WEIR_CORE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdatomic.h>
#include <limits.h>

#include "hotpath/weir_types.h"

#define WEIR_CACHE_LINE   64
#define WEIR_LIKELY(x)    __builtin_expect(!!(x), 1)
#define WEIR_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define WEIR_INLINE       static inline __attribute__((always_inline))
#define WEIR_NOINLINE     __attribute__((noinline))
#define WEIR_COLD         __attribute__((cold, noinline))
#define WEIR_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define WEIR_COUNT_OF(a)  (sizeof(a) / sizeof((a)[0]))

/* A bug of ours, never bad input: prints the place and stops the process. Live in release builds. */
void weir_assert_failed(const char *file, int line, const char *what) __attribute__((noreturn, cold));
#define WEIR_ASSERT(c) ((void)(WEIR_LIKELY(c) ? 0 : (weir_assert_failed(__FILE__, __LINE__, #c), 0)))
/* For per-record code: only in debug builds. */
#ifdef WEIR_DEBUG
#define WEIR_DASSERT(c) WEIR_ASSERT(c)
#else
#define WEIR_DASSERT(c) ((void)sizeof(!(c)))
#endif

typedef __int128 weir_i128;
typedef unsigned __int128 weir_u128;

WEIR_INLINE size_t weir_align_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

WEIR_INLINE int64_t weir_min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

WEIR_INLINE int64_t weir_max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* a / b rounded toward minus infinity; b > 0. */
WEIR_INLINE int64_t weir_floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

WEIR_INLINE uint16_t weir_load_be16(const void *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return __builtin_bswap16(v);
}
WEIR_INLINE uint32_t weir_load_be32(const void *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return __builtin_bswap32(v);
}
WEIR_INLINE uint64_t weir_load_be64(const void *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return __builtin_bswap64(v);
}
WEIR_INLINE void weir_store_be16(void *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, 2);
}
WEIR_INLINE void weir_store_be32(void *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}
WEIR_INLINE void weir_store_be64(void *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, 8);
}
WEIR_INLINE uint32_t weir_load_le32(const void *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
WEIR_INLINE uint64_t weir_load_le64(const void *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}
WEIR_INLINE void weir_store_le32(void *p, uint32_t v)
{
	memcpy(p, &v, 4);
}
WEIR_INLINE void weir_store_le64(void *p, uint64_t v)
{
	memcpy(p, &v, 8);
}
/* A copy of few bytes, as texts and keys mostly are, without a call; touches nothing beyond them. */
WEIR_INLINE void weir_copy_short(void *to, const void *from, size_t bytes)
{
	struct two_words {
		uint64_t w[2];
	};
	uint8_t *t = to;
	const uint8_t *f = from;
	if (bytes >= sizeof(struct two_words)) {
		if (bytes > 8 * sizeof(struct two_words)) {
			memcpy(t, f, bytes);
			return;
		}
		struct two_words last;
		memcpy(&last, f + bytes - sizeof last, sizeof last);
		for (size_t i = 0; i + sizeof last < bytes; i += sizeof last)
			memcpy(t + i, f + i, sizeof last);
		memcpy(t + bytes - sizeof last, &last, sizeof last);
	} else if (bytes >= 8) {
		uint64_t first = weir_load_le64(f), last = weir_load_le64(f + bytes - 8);
		weir_store_le64(t, first);
		weir_store_le64(t + bytes - 8, last);
	} else if (bytes >= 4) {
		uint32_t first = weir_load_le32(f), last = weir_load_le32(f + bytes - 4);
		weir_store_le32(t, first);
		weir_store_le32(t + bytes - 4, last);
	} else if (bytes != 0) {
		t[0] = f[0];
		t[bytes / 2] = f[bytes / 2];
		t[bytes - 1] = f[bytes - 1];
	}
}
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weir's page images and key order assume a little-endian machine"
#endif

#endif
