/* json_number.h: the digits of JSON numbers, eight at a time. Header only, @thread any. */
#ifndef WEIR_FORMAT_JSON_NUMBER_H
#define WEIR_FORMAT_JSON_NUMBER_H

#include "hotpath/core/base.h"

#define WEIR_JSON_ASCII_ZEROS UINT64_C(0x3030303030303030)
#define WEIR_JSON_HIGH_BITS   UINT64_C(0x8080808080808080)

WEIR_INLINE bool weir_json_is_digit(uint8_t c)
{
	return (uint8_t)(c - '0') < 10;
}

/* The high bit of every byte of x (eight characters) that is no digit; exact up to the first one. */
WEIR_INLINE uint64_t weir_json_nondigits8(uint64_t x)
{
	uint64_t t = x ^ WEIR_JSON_ASCII_ZEROS; /* digits become 0..9, everything else 10..255 */
	return (((t & ~WEIR_JSON_HIGH_BITS) + UINT64_C(0x7676767676767676)) | t) & WEIR_JSON_HIGH_BITS;
}

/* The number that eight digit characters spell; the first is the lowest byte. */
WEIR_INLINE uint64_t weir_json_eight_digits(uint64_t x)
{
	x &= UINT64_C(0x0f0f0f0f0f0f0f0f);
	x = (x * 10 + (x >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
	x = (x * 100 + (x >> 16)) & UINT64_C(0x0000ffff0000ffff);
	return (x * 10000 + (x >> 32)) & UINT64_C(0xffffffff);
}

/* The end of the digits at p. */
WEIR_INLINE const uint8_t *weir_json_digits_end(const uint8_t *p, const uint8_t *end)
{
	while (end - p >= 8) {
		uint64_t stop = weir_json_nondigits8(weir_load_le64(p));
		if (stop != 0)
			return p + (__builtin_ctzll(stop) >> 3);
		p += 8;
	}
	while (p < end && weir_json_is_digit(*p))
		p++;
	return p;
}

/* The end of the number at p by RFC 8259's grammar, or NULL with *bad at the first byte that breaks it. Linear. */
WEIR_INLINE const uint8_t *weir_json_number_end(const uint8_t *p, const uint8_t *end, const uint8_t **bad)
{
	if (p < end && *p == '-')
		p++;
	const uint8_t *q = weir_json_digits_end(p, end);
	if (q == p || (*p == '0' && q - p > 1)) {
		*bad = q == p ? p : p + 1;
		return NULL;
	}
	p = q;
	if (p < end && *p == '.') {
		q = weir_json_digits_end(p + 1, end);
		if (q == p + 1) {
			*bad = q;
			return NULL;
		}
		p = q;
	}
	if (p < end && (*p | 0x20) == 'e') {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		q = weir_json_digits_end(p, end);
		if (q == p) {
			*bad = q;
			return NULL;
		}
		p = q;
	}
	return p;
}

#endif
