/* json_digits.h: the common forms of JSON numbers by 64-bit words, for the variants without a better way. Included by
 * json_<variant>.c. @thread worker
 *
 * Each gives 0 for a form that it does not take (sign, leading zero, 16 digits or more, null): the caller has a slower
 * way. None looks at the byte behind the number: the layout's next fixed bytes do. Reads up to 40 bytes from p. */
#ifndef WEIR_FORMAT_JSON_DIGITS_H
#define WEIR_FORMAT_JSON_DIGITS_H

#include "hotpath/format/json_number.h"
#include "hotpath/format/json_private.h"

struct vectors; /* the x86 variants' constants; none here */
WEIR_INLINE const struct vectors *vectors_get(void)
{
	return NULL;
}

/* Up to 15 digits at p, leading zeros and none at all included. */
WEIR_INLINE uint64_t digits_run(const uint8_t *p, uint64_t *number)
{
	static const uint32_t powers[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
	uint64_t x = weir_load_le64(p), stop = weir_json_nondigits8(x);
	uint32_t n = stop != 0 ? (uint32_t)__builtin_ctzll(stop) >> 3 : 8;
	if (n < 8) {
		*number = n != 0 ? weir_json_eight_digits(x << (64 - 8 * n)) : 0;
		return n;
	}
	uint64_t high = weir_json_eight_digits(x);
	x = weir_load_le64(p + 8);
	stop = weir_json_nondigits8(x);
	n = stop != 0 ? (uint32_t)__builtin_ctzll(stop) >> 3 : 8;
	if (n == 8)
		return 16; /* or more */
	*number = n != 0 ? high * powers[n] + weir_json_eight_digits(x << (64 - 8 * n)) : high;
	return 8 + n;
}

WEIR_INLINE uint64_t digits_integer(const struct vectors *k, const uint8_t *p, uint64_t *number)
{
	(void)k;
	if ((uint8_t)(*p - '1') > 8)
		return 0;
	uint64_t n = digits_run(p, number);
	return n < 16 ? n : 0;
}

/* Digits, a point and exactly the digits of the column's scale. */
WEIR_INLINE uint64_t digits_decimal(const struct vectors *k, const uint8_t *p, const struct weir_json_field *f,
				    uint64_t *number)
{
	(void)k;
	static const uint64_t powers[16] = {1,
					    10,
					    100,
					    1000,
					    10000,
					    100000,
					    1000000,
					    10000000,
					    100000000,
					    1000000000,
					    10000000000,
					    100000000000,
					    1000000000000,
					    10000000000000,
					    100000000000000,
					    1000000000000000};
	uint64_t whole = 0, rest = 0;
	uint64_t n = digits_run(p, &whole);
	if (*p == '0' || n == 0 || n > f->whole_digits_max || p[n] != '.' ||
	    digits_run(p + n + 1, &rest) != f->type.scale)
		return 0;
	*number = whole * powers[f->type.scale] + rest;
	return n + 1 + f->type.scale;
}

/* Digits, and perhaps a point and more of them. */
WEIR_INLINE uint64_t digits_skip(const struct vectors *k, const uint8_t *p)
{
	(void)k;
	uint64_t unused;
	if ((uint8_t)(*p - '1') > 8)
		return 0;
	uint64_t n = digits_run(p, &unused);
	if (n == 16)
		return 0;
	if (p[n] == '.') {
		uint64_t m = digits_run(p + n + 1, &unused);
		n = m == 0 || m == 16 ? 0 : n + 1 + m;
	}
	return n;
}

#endif
