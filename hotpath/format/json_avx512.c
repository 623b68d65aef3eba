/* json_avx512.c: the JSON parsers with 64-byte vectors for strings. @thread worker */
#include "hotpath/format/json_private.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define JSON_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512vl")))
#define JSON_BLOCK  64
#define JSON_SHIFT  0
#define JSON_FN     static JSON_TARGET
#define JSON_INLINE WEIR_INLINE JSON_TARGET

JSON_INLINE uint64_t lowest_bit(uint64_t bits)
{
	return _tzcnt_u64(bits);
}

#include "hotpath/format/json_x86.h"

/* A bit for each byte that neither ends nor interrupts a string. As in json_sse42.c. */
JSON_INLINE uint64_t block_plain(const struct vectors *k, const uint8_t *p)
{
	__m512i x = _mm512_loadu_si512(p);
	__mmask64 plain =
		_mm512_cmpgt_epi8_mask(_mm512_xor_si512(x, _mm512_load_si512(k->flip)), _mm512_load_si512(k->low));
	return _mm512_mask_cmpneq_epi8_mask(plain, x, _mm512_load_si512(k->backslash));
}

JSON_INLINE uint64_t block_special(const struct vectors *k, const uint8_t *p)
{
	return ~block_plain(k, p);
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
	       __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("avx512f") != 0 &&
	       __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

const struct weir_json_variant weir_json_avx512 = {"avx512", available, decode_rows};

#else
extern int weir_json_no_avx512;
#endif
