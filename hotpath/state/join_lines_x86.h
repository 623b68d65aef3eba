/* join_lines_x86.h: what the x86 variants of join_lines_text.h have in common. @thread worker */
#ifndef LINES_INLINE
#error "include this from join_lines_<set>.c"
#endif

#define SHORT_KEY 16

/* Of the upper half of a place, by what is compared. */
#define PLACE_HASH  ((int)0xffffffc0)
#define PLACE_FITS  ((int)0xffffffc1)
#define PLACE_OWN   ((int)0xffffffdf)
#define PLACE_OTHER 1
_Static_assert(WEIR_JOIN_LOW_BITS == 63 && WEIR_JOIN_LIST == 32, "as join_index.h says");

/* Ones for the bytes of a key. */
static const uint8_t key_bytes_of[17][16] __attribute__((aligned(16))) = {
#define ONES(n)                                                                                                        \
	{                                                                                                              \
		(n) > 0 ? 255 : 0, (n) > 1 ? 255 : 0, (n) > 2 ? 255 : 0, (n) > 3 ? 255 : 0, (n) > 4 ? 255 : 0,         \
			(n) > 5 ? 255 : 0, (n) > 6 ? 255 : 0, (n) > 7 ? 255 : 0, (n) > 8 ? 255 : 0, (n) > 9 ? 255 : 0, \
			(n) > 10 ? 255 : 0, (n) > 11 ? 255 : 0, (n) > 12 ? 255 : 0, (n) > 13 ? 255 : 0,                \
			(n) > 14 ? 255 : 0, (n) > 15 ? 255 : 0                                                         \
	}
	ONES(0), ONES(1),  ONES(2),  ONES(3),  ONES(4),  ONES(5),  ONES(6),  ONES(7), ONES(8),
	ONES(9), ONES(10), ONES(11), ONES(12), ONES(13), ONES(14), ONES(15), ONES(16)
#undef ONES
};

LINES_INLINE bool same_short_key(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	__m128i differ = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)a),
				       _mm_loadu_si128((const __m128i *)(const void *)b));
	return _mm_testz_si128(differ, *(const __m128i *)(const void *)key_bytes_of[n]) != 0;
}

/* Segments are pieces of memory that follow no others: what is to be parted is asked for, beyond their ends in vain. */
LINES_INLINE void ask_parting(uint64_t *segment, uint64_t *second, uint32_t at, uint64_t bit)
{
	enum { PART_AHEAD = 16 * WEIR_JOIN_LINE };
	__builtin_prefetch(segment + at + PART_AHEAD, 1, 3);
	if (bit != 0)
		__builtin_prefetch(second + at + PART_AHEAD, 1, 3);
}
