/* json_sse42.c: the JSON parsers with 16-byte vectors. @thread worker */
#include "hotpath/format/json_private.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define JSON_TARGET __attribute__((target("sse4.2")))
#define JSON_BLOCK  16
#define JSON_SHIFT  0
#define JSON_FN     static JSON_TARGET
#define JSON_INLINE WEIR_INLINE JSON_TARGET

JSON_INLINE uint64_t lowest_bit(uint64_t bits)
{
	return bits != 0 ? (uint64_t)__builtin_ctzll(bits) : 64;
}

#include "hotpath/format/json_x86.h"

/* A bit for each byte that neither ends nor interrupts a string. Flipping bit 1 puts the quote among the control
 * characters and takes the space out; the signed comparison takes bytes beyond ASCII along. */
JSON_INLINE uint64_t block_plain(const struct vectors *k, const uint8_t *p)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i plain = _mm_cmpgt_epi8(_mm_xor_si128(x, LOAD128(k->flip)), LOAD128(k->low));
	plain = _mm_andnot_si128(_mm_cmpeq_epi8(x, LOAD128(k->backslash)), plain);
	return (uint32_t)_mm_movemask_epi8(plain);
}

JSON_INLINE uint64_t block_special(const struct vectors *k, const uint8_t *p)
{
	return block_plain(k, p) ^ 0xffff;
}

JSON_INLINE bool block_match(const uint8_t *p, const struct weir_json_step *s)
{
	const __m128i *at = (const __m128i *)(const void *)p, *fixed = (const __m128i *)(const void *)s->fixed,
		      *mask = (const __m128i *)(const void *)s->mask;
	if (!_mm_testz_si128(_mm_xor_si128(_mm_loadu_si128(at), fixed[0]), mask[0]))
		return false;
	return s->fixed_bytes <= 16 || _mm_testz_si128(_mm_xor_si128(_mm_loadu_si128(at + 1), fixed[1]), mask[1]);
}

#include "hotpath/format/json_parse.h"

static bool available(void)
{
	return __builtin_cpu_supports("sse4.2") != 0;
}

const struct weir_json_variant weir_json_sse42 = {"sse4.2", available, decode_rows};

#else
extern int weir_json_no_sse42;
#endif
