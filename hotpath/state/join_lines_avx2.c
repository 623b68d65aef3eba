/* join_lines_avx2.c: an index's lines with 32-byte vectors, two a line (join_lines.h). @thread worker */
#include "hotpath/state/join_lines.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LINES_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define LINES_FN     static LINES_TARGET
#define LINES_INLINE WEIR_INLINE LINES_TARGET

#include "hotpath/state/join_lines_x86.h"

struct vectors {
	__m256i hash, fits, other, mask, own;
};
LINES_INLINE void vectors_init(struct vectors *k, uint32_t code)
{
	k->hash = _mm256_set1_epi32(PLACE_HASH);
	k->fits = _mm256_set1_epi32(PLACE_FITS);
	k->other = _mm256_set1_epi32((code & 1) != 0 ? 0 : PLACE_OTHER);
	k->mask = _mm256_set1_epi32(PLACE_OWN);
	k->own = _mm256_set1_epi32((int)code);
}

/* The upper halves of a line's places, in the order in_order. */
LINES_INLINE __m256i upper_halves(const uint64_t *line)
{
	const float *at = (const float *)(const void *)line;
	return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_load_ps(at), _mm256_load_ps(at + 8), 0xdd));
}
static const uint8_t in_order[WEIR_JOIN_LINE] = {0, 1, 4, 5, 2, 3, 6, 7};

LINES_INLINE uint32_t bits_of_8(__m256i v)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(v));
}

LINES_INLINE uint32_t line_others(const struct vectors *k, const uint64_t *line, const uint32_t *hash)
{
	__m256i wanted = _mm256_or_si256(_mm256_and_si256(_mm256_set1_epi32((int)*hash), k->hash), k->other);
	return bits_of_8(_mm256_cmpeq_epi32(_mm256_and_si256(upper_halves(line), k->fits), wanted));
}

LINES_INLINE uint32_t place_of(uint32_t others)
{
	return in_order[_tzcnt_u32(others)];
}

LINES_INLINE uint32_t line_own(const struct vectors *k, const uint64_t *line, uint32_t hash, uint64_t *empty)
{
	__m256i v = upper_halves(line);
	__m256i wanted = _mm256_or_si256(_mm256_and_si256(_mm256_set1_epi32((int)hash), k->hash), k->own);
	__m256i own = _mm256_cmpeq_epi32(_mm256_and_si256(v, k->mask), wanted);
	*empty = (uint64_t)_mm_popcnt_u32(bits_of_8(_mm256_cmpeq_epi32(v, _mm256_setzero_si256())));
	return bits_of_8(own);
}

/* ---- parting ---- */

LINES_INLINE __m256i half_line(const uint64_t *at)
{
	return _mm256_load_si256((const __m256i *)(const void *)at);
}

/* A bit for each place whose elements say so. */
LINES_INLINE uint32_t bits_of(__m256i low, __m256i high)
{
	return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(low)) |
	       (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(high)) << 4;
}

/* By which of four places stay: those in their order, then the others. */
static const uint32_t to_front[16][8] __attribute__((aligned(32))) = {
#define PLACES(a, b, c, d)                                                                                             \
	{                                                                                                              \
		2 * (a), 2 * (a) + 1, 2 * (b), 2 * (b) + 1, 2 * (c), 2 * (c) + 1, 2 * (d), 2 * (d) + 1                 \
	}
	PLACES(0, 1, 2, 3), PLACES(0, 1, 2, 3), PLACES(1, 0, 2, 3), PLACES(0, 1, 2, 3),
	PLACES(2, 0, 1, 3), PLACES(0, 2, 1, 3), PLACES(1, 2, 0, 3), PLACES(0, 1, 2, 3),
	PLACES(3, 0, 1, 2), PLACES(0, 3, 1, 2), PLACES(1, 3, 0, 2), PLACES(0, 1, 3, 2),
	PLACES(2, 3, 0, 1), PLACES(0, 2, 3, 1), PLACES(1, 2, 3, 0), PLACES(0, 1, 2, 3),
#undef PLACES
};

/* Those of two halves that stay, and zeros behind them. */
LINES_INLINE void write_line(uint64_t *to, __m256i low, __m256i low_stay, __m256i high, __m256i high_stay)
{
	uint32_t first = (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(low_stay));
	uint32_t then = (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(high_stay));
	low = _mm256_permutevar8x32_epi32(_mm256_and_si256(low, low_stay),
					  *(const __m256i *)(const void *)to_front[first]);
	high = _mm256_permutevar8x32_epi32(_mm256_and_si256(high, high_stay),
					   *(const __m256i *)(const void *)to_front[then]);
	_mm256_store_si256((__m256i *)(void *)to, low);
	_mm256_store_si256((__m256i *)(void *)(to + 4), _mm256_setzero_si256());
	_mm256_storeu_si256((__m256i *)(void *)(to + _mm_popcnt_u32(first)), high);
}

struct halves {
	__m256i bit, fits, dead;
};

/* Of four places: which live; of those, which stand in their own line; of those, which go into the first segment. */
LINES_INLINE void judge(const struct halves *hv, __m256i v, __m256i home, __m256i *lives, __m256i *stays,
			__m256i *first)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i code = _mm256_and_si256(_mm256_srli_epi64(v, 32), _mm256_set1_epi64x(WEIR_JOIN_CODE_BITS));
	/* A zero is of code 0, which is made to be dead. */
	__m256i dead = _mm256_and_si256(_mm256_srlv_epi64(hv->dead, code), _mm256_set1_epi64x(1));
	*lives = _mm256_cmpeq_epi64(dead, zero);
	__m256i differ = _mm256_and_si256(_mm256_xor_si256(v, home), hv->fits);
	*stays = _mm256_and_si256(*lives, _mm256_cmpeq_epi64(differ, zero));
	*first = _mm256_and_si256(*stays, _mm256_cmpeq_epi64(_mm256_and_si256(v, hv->bit), zero));
}

/* Cost: about 95 instructions a line. */
LINES_FN void split(uint64_t *segment, uint64_t *second, const struct weir_join_parting *pt,
		    struct weir_join_beyond *by)
{
	const struct halves hv = {_mm256_set1_epi64x((int64_t)pt->bit), _mm256_set1_epi64x((int64_t)pt->fits),
				  _mm256_set1_epi64x(pt->dead | 1)};
	const __m256i step = _mm256_set1_epi64x(WEIR_JOIN_LINE_STEP);
	__m256i home = _mm256_set1_epi64x((int64_t)pt->home);
	uint32_t count = 0, full = pt->full;
	for (uint32_t at = 0; at < WEIR_JOIN_LINES * WEIR_JOIN_LINE; at += WEIR_JOIN_LINE) {
		ask_parting(segment, second, at, pt->bit);
		uint64_t *line = segment + at;
		__m256i low = half_line(line), high = half_line(line + 4), lives[2], stays[2], first[2];
		judge(&hv, low, home, &lives[0], &stays[0], &first[0]);
		judge(&hv, high, home, &lives[1], &stays[1], &first[1]);
		home = _mm256_add_epi64(home, step);
		const bool doubt = (full & WEIR_JOIN_LINES_FULL) == WEIR_JOIN_LINES_FULL;
		if (WEIR_UNLIKELY(doubt))
			stays[0] = stays[1] = first[0] = first[1] = _mm256_setzero_si256();
		full = full << 1 | (line[WEIR_JOIN_LINE - 1] != 0);
		uint32_t away = bits_of(lives[0], lives[1]) ^ bits_of(stays[0], stays[1]);
		for (; WEIR_UNLIKELY(away != 0); away &= away - 1) {
			by->line[count] = (uint16_t)(at / WEIR_JOIN_LINE | (doubt ? WEIR_JOIN_DOUBT : 0));
			by->place[count++] = line[_tzcnt_u32(away)];
		}
		write_line(line, low, first[0], high, first[1]);
		if (pt->bit != 0)
			write_line(second + at, low, _mm256_andnot_si256(first[0], stays[0]), high,
				   _mm256_andnot_si256(first[1], stays[1]));
	}
	by->count = count;
}

#include "hotpath/state/join_lines_text.h"

static bool available(void)
{
	return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
	       __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("popcnt") != 0;
}

const struct weir_join_lines weir_join_lines_avx2 = {"avx2", available, enter, look, split};

#else
extern int weir_join_lines_no_avx2;
#endif
