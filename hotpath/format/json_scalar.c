/* json_scalar.c: the JSON parsers with plain 64-bit words, for every machine. @thread worker */
#include "hotpath/format/json_private.h"

#include "hotpath/format/json_digits.h"
#include "hotpath/format/json_number.h"

#define JSON_TARGET
#define JSON_BLOCK  8
#define JSON_SHIFT  3
#define JSON_FN     static JSON_TARGET
#define JSON_INLINE WEIR_INLINE JSON_TARGET

/* Place of the first byte among eight that ends or interrupts a string (quote, backslash, control character,
 * non-ASCII); JSON_BLOCK: none. Each of the tests may err only above the first byte that it is right about. */
WEIR_INLINE uint64_t block_special(const struct vectors *k, const uint8_t *p)
{
	(void)k;
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t x = weir_load_le64(p);
	uint64_t quote = x ^ (ones * '"'), backslash = x ^ (ones * '\\');
	uint64_t found = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | ((x - ones * 0x20) & ~x) | x;
	return found & WEIR_JSON_HIGH_BITS;
}

WEIR_INLINE bool block_match(const uint8_t *p, const struct weir_json_step *s)
{
	uint64_t differs = 0;
	for (int i = 0; i < WEIR_JSON_FIXED_BYTES; i += 8)
		differs |= (weir_load_le64(p + i) ^ weir_load_le64(s->fixed + i)) & weir_load_le64(s->mask + i);
	return differs == 0;
}

#include "hotpath/format/json_parse.h"

static bool available(void)
{
	return true;
}

const struct weir_json_variant weir_json_scalar = {"scalar", available, decode_rows};
