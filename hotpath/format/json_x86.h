/* json_x86.h: the common forms of JSON numbers by SSE4.1, for the x86 variants; the same contract as json_digits.h.
 * Included after JSON_FN is defined. @thread worker */
#include <immintrin.h>

/* Constants in memory: GCC would make each anew in registers, by three instructions, wherever it is used. */
struct vectors {
	_Alignas(64) uint8_t flip[64]; /* see block_plain */
	uint8_t low[64];
	uint8_t backslash[64];
	uint8_t digit_base[16]; /* moves '0'..'9' to the smallest signed bytes */
	int8_t digit_max[16];
	uint8_t nibble[16];
	uint8_t right_align[32]; /* from n on: the shuffle that moves the first n of 16 bytes to the end */
	struct weir_json_weights plain;
};
#define Z 0x80 /* zeroes the byte */
static const struct vectors vectors = {
	.flip = {[0 ... 63] = 2},
	.low = {[0 ... 63] = 0x20},
	.backslash = {[0 ... 63] = '\\'},
	.digit_base = {[0 ... 15] = 128 - '0'},
	.digit_max = {[0 ... 15] = 9 - 128},
	.nibble = {[0 ... 15] = 15},
	.right_align = {Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z,  Z,  Z,  Z,  Z,  Z,
			0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	.plain = {.tens = {10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1},
		  .hundreds = {100, 1, 100, 1, 100, 1, 100, 1},
		  .thousands = {10000, 1, 10000, 1, 10000, 1, 10000, 1},
		  .upper = 100000000},
};
#undef Z
WEIR_INLINE const struct vectors *vectors_get(void)
{
	const struct vectors *k = &vectors;
	__asm__("" : "+r"(k)); /* the compiler must not see which constants these are */
	return k;
}
#define LOAD128(at) _mm_load_si128((const __m128i *)(const void *)(at))

/* A bit for each of the sixteen characters that is no digit. */
JSON_INLINE uint64_t digits_stops(const struct vectors *k, __m128i x)
{
	x = _mm_add_epi8(x, LOAD128(k->digit_base));
	return (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(x, LOAD128(k->digit_max)));
}

/* The number that the first n of sixteen characters spell: right-aligned, each times its weight. */
JSON_INLINE uint64_t digits_value(const struct vectors *k, __m128i x, uint64_t n, const struct weir_json_weights *w)
{
	x = _mm_shuffle_epi8(x, _mm_loadu_si128((const __m128i *)(const void *)(k->right_align + n)));
	x = _mm_and_si128(x, LOAD128(k->nibble));
	x = _mm_maddubs_epi16(x, LOAD128(w->tens));
	x = _mm_madd_epi16(x, LOAD128(w->hundreds));
	x = _mm_packus_epi32(x, x);
	x = _mm_madd_epi16(x, LOAD128(w->thousands));
	uint64_t halves = (uint64_t)_mm_cvtsi128_si64(x); /* the upper digits are the lower word */
	return (halves & UINT32_MAX) * w->upper + (halves >> 32);
}

JSON_INLINE uint64_t digits_integer(const struct vectors *k, const uint8_t *p, uint64_t *number)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
	uint64_t n = lowest_bit(digits_stops(k, x));
	if (WEIR_UNLIKELY(n - 1 > 14 || *p == '0'))
		return 0;
	*number = digits_value(k, x, n, &k->plain);
	return n;
}

JSON_INLINE uint64_t digits_decimal(const struct vectors *k, const uint8_t *p, const struct weir_json_field *f,
				    uint64_t *number)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
	uint64_t stops = digits_stops(k, x);
	uint64_t whole = lowest_bit(stops), n = lowest_bit(stops & (stops - 1));
	if (WEIR_UNLIKELY(whole - 1 >= f->whole_digits_max || n - whole != f->scale_and_point || p[whole] != '.' ||
			  *p == '0'))
		return 0;
	*number = digits_value(k, x, n, f->weights);
	return n;
}

/* The same for numbers of a foretold length. False: of another, or in another form. */
JSON_INLINE bool foretold_integer(const struct vectors *k, const uint8_t *p, const struct weir_json_step *s,
				  uint64_t *number)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
	if (WEIR_UNLIKELY((digits_stops(k, x) & s->upto) != s->stop || *p == '0'))
		return false;
	*number = digits_value(k, x, s->length, &k->plain);
	return true;
}

JSON_INLINE bool foretold_decimal(const struct vectors *k, const uint8_t *p, const struct weir_json_step *s,
				  uint64_t *number)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
	const struct weir_json_field *f = s->f;
	uint64_t whole = s->length - f->scale_and_point;
	if (WEIR_UNLIKELY((digits_stops(k, x) & s->upto) != (s->stop | s->stop >> f->scale_and_point) ||
			  whole - 1 >= f->whole_digits_max || p[whole] != '.' || *p == '0'))
		return false;
	*number = digits_value(k, x, s->length, f->weights);
	return true;
}

JSON_INLINE uint64_t digits_skip(const struct vectors *k, const uint8_t *p)
{
	uint64_t stops = digits_stops(k, _mm_loadu_si128((const __m128i *)(const void *)p));
	uint64_t n = lowest_bit(stops), whole = n;
	if (WEIR_UNLIKELY(n - 1 > 14 || *p == '0'))
		return 0;
	if (p[n] == '.') {
		n = lowest_bit(stops & (stops - 1));
		if (WEIR_UNLIKELY(n == whole + 1 || n > 15))
			return 0;
	}
	return n;
}
