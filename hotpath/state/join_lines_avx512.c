/* join_lines_avx512.c: an index's lines with 64-byte vectors, one a line (join_lines.h). @thread worker */
#include "hotpath/state/join_lines.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LINES_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")))
#define LINES_FN     static LINES_TARGET
#define LINES_INLINE WEIR_INLINE LINES_TARGET

#include "hotpath/state/join_lines_x86.h"

struct vectors {
	__m512i hash, fits, other, mask, own;
};
/* The lower halves of places do not count. */
LINES_INLINE __m512i upper(int v)
{
	return _mm512_set1_epi64((int64_t)((uint64_t)(uint32_t)v << 32));
}
LINES_INLINE void vectors_init(struct vectors *k, uint32_t code)
{
	k->hash = upper(PLACE_HASH);
	k->fits = upper(PLACE_FITS);
	k->other = upper((code & 1) != 0 ? 0 : PLACE_OTHER);
	k->mask = upper(PLACE_OWN);
	k->own = upper((int)code);
}

LINES_INLINE __m512i whole_line(const uint64_t *at)
{
	return _mm512_load_si512((const void *)at);
}

/* A hash and what k->other or k->own holds. */
LINES_INLINE __m512i wanted_of(const struct vectors *k, uint32_t hash, __m512i with)
{
	return _mm512_ternarylogic_epi64(_mm512_set1_epi32((int)hash), k->hash, with, 0xea); /* (a & b) | c */
}

LINES_INLINE uint32_t line_others(const struct vectors *k, const uint64_t *line, const uint32_t *hash)
{
	return _mm512_testn_epi64_mask(_mm512_xor_si512(wanted_of(k, *hash, k->other), whole_line(line)), k->fits);
}

LINES_INLINE uint32_t place_of(uint32_t others)
{
	return _tzcnt_u32(others);
}

LINES_INLINE uint32_t line_own(const struct vectors *k, const uint64_t *line, uint32_t hash, uint64_t *empty)
{
	__m512i v = whole_line(line);
	*empty = (uint64_t)_mm_popcnt_u32(_mm512_testn_epi64_mask(v, v));
	return _mm512_testn_epi64_mask(_mm512_xor_si512(wanted_of(k, hash, k->own), v), k->mask);
}

/* Cost: about 45 instructions a line. */
LINES_FN void split(uint64_t *segment, uint64_t *second, const struct weir_join_parting *pt,
		    struct weir_join_beyond *by)
{
	const __m512i bit = _mm512_set1_epi64((int64_t)pt->bit), fits = _mm512_set1_epi64((int64_t)pt->fits),
		      dead = _mm512_set1_epi64(pt->dead | 1), /* a zero is of code 0, which is made to be dead */
		one = _mm512_set1_epi64(1), step = _mm512_set1_epi64(WEIR_JOIN_LINE_STEP),
		      code_bits = _mm512_set1_epi64(WEIR_JOIN_CODE_BITS);
	__m512i home = _mm512_set1_epi64((int64_t)pt->home);
	uint32_t count = 0, full = pt->full;
	for (uint32_t at = 0; at < WEIR_JOIN_LINES * WEIR_JOIN_LINE; at += WEIR_JOIN_LINE) {
		ask_parting(segment, second, at, pt->bit);
		__m512i v = whole_line(segment + at), code = _mm512_and_si512(_mm512_srli_epi64(v, 32), code_bits);
		__mmask8 lives = _mm512_testn_epi64_mask(_mm512_srlv_epi64(dead, code), one);
		__mmask8 stays = _mm512_mask_testn_epi64_mask(lives, _mm512_xor_si512(v, home), fits);
		const bool doubt = (full & WEIR_JOIN_LINES_FULL) == WEIR_JOIN_LINES_FULL;
		if (WEIR_UNLIKELY(doubt))
			stays = 0;
		full = full << 1 | (segment[at + WEIR_JOIN_LINE - 1] != 0);
		__mmask8 first = _mm512_mask_testn_epi64_mask(stays, v, bit);
		home = _mm512_add_epi64(home, step);
		_mm512_store_si512((void *)(segment + at), _mm512_maskz_compress_epi64(first, v));
		if (pt->bit != 0)
			_mm512_store_si512((void *)(second + at),
					   _mm512_maskz_compress_epi64((__mmask8)(stays ^ first), v));
		if (WEIR_UNLIKELY(lives != stays)) {
			uint32_t away = (uint32_t)(lives ^ stays);
			/* There is room for whole lines up to this one. */
			_mm512_storeu_si512((void *)(by->place + count),
					    _mm512_maskz_compress_epi64((__mmask8)away, v));
			_mm_storeu_si128((__m128i *)(void *)(by->line + count),
					 _mm_set1_epi16((short)(at / WEIR_JOIN_LINE | (doubt ? WEIR_JOIN_DOUBT : 0))));
			count += (uint32_t)_mm_popcnt_u32(away);
		}
	}
	by->count = count;
}

#include "hotpath/state/join_lines_text.h"

static bool available(void)
{
	return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
	       __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("popcnt") != 0 &&
	       __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
	       __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

const struct weir_join_lines weir_join_lines_avx512 = {"avx512", available, enter, look, split};

#else
extern int weir_join_lines_no_avx512;
#endif
