/* json_neon.c: the JSON parsers with 16-byte vectors of AArch64. @thread worker */
#include "hotpath/format/json_private.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "hotpath/format/json_digits.h"

#define JSON_TARGET
#define JSON_BLOCK  16
#define JSON_SHIFT  2
#define JSON_FN     static JSON_TARGET
#define JSON_INLINE WEIR_INLINE JSON_TARGET

/* A bit for each byte that ends or interrupts a string. As in json_sse42.c; the narrowing shift
 * leaves four bits for each byte. */
WEIR_INLINE uint64_t block_special(const struct vectors *k, const uint8_t *p)
{
	(void)k;
	uint8x16_t x = vld1q_u8(p);
	uint8x16_t flipped = veorq_u8(x, vdupq_n_u8(2));
	uint8x16_t found = vcltq_s8(vreinterpretq_s8_u8(flipped), vdupq_n_s8(0x21));
	found = vorrq_u8(found, vceqq_u8(x, vdupq_n_u8('\\')));
	return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(found), 4)), 0);
}

WEIR_INLINE bool block_match(const uint8_t *p, const struct weir_json_step *s)
{
	uint8x16_t first = vandq_u8(veorq_u8(vld1q_u8(p), vld1q_u8(s->fixed)), vld1q_u8(s->mask));
	uint8x16_t second = vandq_u8(veorq_u8(vld1q_u8(p + 16), vld1q_u8(s->fixed + 16)), vld1q_u8(s->mask + 16));
	return vmaxvq_u32(vreinterpretq_u32_u8(vorrq_u8(first, second))) == 0;
}

#include "hotpath/format/json_parse.h"

static bool available(void)
{
	return true;
}

const struct weir_json_variant weir_json_neon = {"neon", available, decode_rows};

#else
extern int weir_json_no_neon;
#endif
