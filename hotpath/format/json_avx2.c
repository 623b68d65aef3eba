/* json_avx2.c: the JSON parsers with 32-byte vectors. @thread worker */
#include "hotpath/format/json_private.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define JSON_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt")))
#define JSON_BLOCK  32
#define JSON_SHIFT  0
#define JSON_FN     static JSON_TARGET
#define JSON_INLINE WEIR_INLINE JSON_TARGET

JSON_INLINE uint64_t lowest_bit(uint64_t bits)
{
	return _tzcnt_u64(bits);
}

#include "hotpath/format/json_x86.h"

#define LOAD256(at) _mm256_load_si256((const __m256i *)(const void *)(at))

/* A bit for each byte that neither ends nor interrupts a string. As in json_sse42.c. */
JSON_INLINE uint64_t block_plain(const struct vectors *k, const uint8_t *p)
{
	__m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
	__m256i plain = _mm256_cmpgt_epi8(_mm256_xor_si256(x, LOAD256(k->flip)), LOAD256(k->low));
	plain = _mm256_andnot_si256(_mm256_cmpeq_epi8(x, LOAD256(k->backslash)), plain);
	return (uint32_t)_mm256_movemask_epi8(plain);
}

JSON_INLINE uint64_t block_special(const struct vectors *k, const uint8_t *p)
{
	return block_plain(k, p) ^ 0xffffffff;
}

JSON_INLINE bool block_match(const uint8_t *p, const struct weir_json_step *s)
{
	__m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
	x = _mm256_xor_si256(x, *(const __m256i *)(const void *)s->fixed);
	return _mm256_testz_si256(x, *(const __m256i *)(const void *)s->mask);
}

#include "hotpath/format/json_parse.h"

static bool available(void)
{
	return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
	       __builtin_cpu_supports("bmi2") != 0;
}

const struct weir_json_variant weir_json_avx2 = {"avx2", available, decode_rows};

#else
extern int weir_json_no_avx2;
#endif
