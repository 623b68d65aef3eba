/* key.c: group columns to key bytes, whose memcmp order is the order of the columns, and back. The bytes are durable
 * and decide slots and output order (semantics.md section 3).
 *
 *   column    00: NULL | 01 then the value
 *   BOOLEAN   1 byte
 *   TINYINT SMALLINT INT     1, 2, 4 bytes big-endian, sign bit flipped; other words of 64 bit: 8; wide DECIMAL: 16
 *   FLOAT DOUBLE             8 bytes: all bits flipped if negative, else the sign bit; -0.0 as 0.0, one NaN
 *   strings                  bytes, 00 as 00 FF, then 00
 *
 * @thread worker; weir_key_decode any. */
#include "hotpath/core/hash.h"
#include "hotpath/state/state.h"

#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint32_t key_width(const struct weir_type *t)
{
	switch (weir_type_phys(t)) {
	case WEIR_PHYS_U8:
		return 1;
	case WEIR_PHYS_I64:
		return t->kind == WEIR_KIND_TINYINT    ? 1
		       : t->kind == WEIR_KIND_SMALLINT ? 2
		       : t->kind == WEIR_KIND_INT      ? 4
						       : 8;
	case WEIR_PHYS_F64:
		return 8;
	case WEIR_PHYS_I128:
		return 16;
	case WEIR_PHYS_STR:
		break;
	}
	return 0;
}

static uint32_t zeros_in(const uint8_t *p, uint32_t bytes)
{
	uint32_t n = 0;
	const uint8_t *end = p + bytes;
	while (p < end && (p = memchr(p, 0, (size_t)(end - p))) != NULL) {
		n++;
		p++;
	}
	return n;
}

/* Adds what column c takes in the key of every row. */
static void key_measure(const struct weir_col *c, const struct weir_type *t, const struct weir_sel *sel,
			uint32_t *bytes)
{
	uint32_t width = key_width(t);
	for (uint32_t i = 0; i < sel->count; i++) {
		uint32_t row = sel->row[i];
		bytes[i]++;
		if (weir_col_is_null(c, row))
			continue;
		if (c->phys != WEIR_PHYS_STR) {
			bytes[i] += width;
			continue;
		}
		const struct weir_str *s = &c->str[c->is_const ? 0 : row];
		bytes[i] += s->bytes + 1;
		if (s->bytes != 0)
			bytes[i] += zeros_in(s->data, s->bytes);
	}
}

static uint64_t real_order(double v)
{
	uint64_t b;
	if (v == 0)
		v = 0;
	if (isnan(v))
		b = UINT64_C(0x7ff8000000000000);
	else
		memcpy(&b, &v, 8);
	return b >> 63 ? ~b : b ^ (UINT64_C(1) << 63);
}
static double real_from_order(uint64_t b)
{
	double v;
	b = b >> 63 ? b ^ (UINT64_C(1) << 63) : ~b;
	memcpy(&v, &b, 8);
	return v;
}

static uint8_t *put_word(uint8_t *to, uint64_t v, uint32_t width)
{
	weir_store_be64(to, v << (64 - 8 * width));
	return to + width;
}

static uint8_t *put_text(uint8_t *to, const struct weir_str *s)
{
	const uint8_t *p = s->data, *end = p + s->bytes;
	while (p < end) {
		const uint8_t *zero = memchr(p, 0, (size_t)(end - p));
		size_t n = (size_t)((zero != NULL ? zero : end) - p);
		memcpy(to, p, n);
		to += n;
		p += n;
		if (zero != NULL) {
			*to++ = 0;
			*to++ = 0xff;
			p++;
		}
	}
	*to++ = 0;
	return to;
}

/* Writes column c's part at every row's cursor. A word is stored as 8 bytes: the room has 8 bytes of slack. */
static void key_put(const struct weir_col *c, const struct weir_type *t, const struct weir_sel *sel, uint8_t **at)
{
	uint32_t width = key_width(t);
	for (uint32_t i = 0; i < sel->count; i++) {
		uint32_t row = sel->row[i];
		if (weir_col_is_null(c, row)) {
			*at[i]++ = 0;
			continue;
		}
		if (c->is_const)
			row = 0;
		*at[i]++ = 1;
		switch (c->phys) {
		case WEIR_PHYS_U8:
			*at[i]++ = c->u8[row];
			break;
		case WEIR_PHYS_I64:
			at[i] = put_word(at[i], (uint64_t)c->i64[row] ^ UINT64_C(1) << (8 * width - 1), width);
			break;
		case WEIR_PHYS_F64:
			at[i] = put_word(at[i], real_order(c->f64[row]), 8);
			break;
		case WEIR_PHYS_I128:
			at[i] = put_word(at[i], (uint64_t)(c->i128[row] >> 64) ^ UINT64_C(1) << 63, 8);
			at[i] = put_word(at[i], (uint64_t)c->i128[row], 8);
			break;
		case WEIR_PHYS_STR:
			at[i] = put_text(at[i], &c->str[row]);
			break;
		}
	}
}

/* ---- the usual key: one string of up to 14 bytes that is never NULL, two words ---- */

/* Not 0 in some top bit of a byte iff v has a byte 00; other bits are noise. */
WEIR_INLINE uint64_t word_zeros(uint64_t v)
{
	return (v - UINT64_C(0x0101010101010101)) & ~v;
}

/* A text of less than 8 bytes as a word, zeros behind it. */
static inline uint64_t load_short(const uint8_t *from, uint32_t n)
{
	if (n >= 4) /* the second half overlaps the first */
		return weir_load_le32(from) | (uint64_t)weir_load_le32(from + n - 4) << (8 * (n - 4));
	uint64_t v = 0;
	for (uint32_t i = 0; i < n; i++)
		v |= (uint64_t)from[i] << (8 * i);
	return v;
}

/* The hash of 2 to 8 bytes, with what XXH3 does for other lengths left out. */
__attribute__((flatten)) static inline uint64_t hash_short(const uint8_t *key, uint32_t bytes)
{
	if (bytes < 2 || bytes > 8)
		__builtin_unreachable();
	return weir_hash(key, bytes);
}

/* The key of one row, to p: 01, text, 00 and zeros up to 16. False: it does not fit. *zeros shows whether some text has
 * a 00 in it. A hash never reads across two words just stored, which would wait for both. Cost: about 45
 * instructions. */
WEIR_INLINE bool encode_short(const struct weir_str *s, uint32_t row, uint8_t *p, struct weir_keyed *out,
			      uint64_t *zeros)
{
	uint32_t n = s->bytes;
	if (n > 14)
		return false;
	out->key[row] = p;
	out->key_bytes[row] = n + 2;
	if (WEIR_LIKELY(n >= 8)) {
		uint64_t head = weir_load_le64(s->data), last = weir_load_le64(s->data + n - 8);
		*zeros |= word_zeros(head) | word_zeros(last);
		weir_store_le64(p, 1 | head << 8);
		weir_store_le64(p + 8, last >> (120 - 8 * n)); /* the n - 7 bytes that the first word has not */
		out->hash[row] = weir_hash_words(1 | head << 8, last >> 8, n + 2);
		return true;
	}
	uint64_t word = load_short(s->data, n);
	*zeros |= word_zeros(word | UINT64_MAX << 8 * n);
	weir_store_le64(p, 1 | word << 8);
	weir_store_le64(p + 8, 0);
	out->hash[row] = n == 7 ? weir_hash_words(1 | word << 8, word, 9) : hash_short(p, n + 2);
	return true;
}

#if defined(__x86_64__)
#define KEY_AVX2 __attribute__((target("avx2")))

/* weir_hash_words of four keys. There is no product of 128 bits in vectors: it is made of four of 64. */
KEY_AVX2 static inline __m256i hash_four(__m256i first, __m256i last, __m256i bytes)
{
	const __m256i swap = _mm256_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1,
					      0, 15, 14, 13, 12, 11, 10, 9, 8);
	const __m256i prime = _mm256_set1_epi64x((int64_t)WEIR_HASH_PRIME);
	const __m256i prime_high = _mm256_set1_epi64x((int64_t)(WEIR_HASH_PRIME >> 32));
	const __m256i low = _mm256_set1_epi64x(UINT32_MAX);
	__m256i a = _mm256_xor_si256(first, _mm256_set1_epi64x((int64_t)WEIR_HASH_FLIP_FIRST));
	__m256i b = _mm256_xor_si256(last, _mm256_set1_epi64x((int64_t)WEIR_HASH_FLIP_LAST));
	__m256i sum = _mm256_add_epi64(_mm256_add_epi64(bytes, b), _mm256_shuffle_epi8(a, swap));
	/* a b = hh 2^64 + (hl + lh) 2^32 + ll; no sum below overflows */
	__m256i ah = _mm256_srli_epi64(a, 32), bh = _mm256_srli_epi64(b, 32);
	__m256i ll = _mm256_mul_epu32(a, b), lh = _mm256_mul_epu32(a, bh), hl = _mm256_mul_epu32(ah, b);
	__m256i middle = _mm256_add_epi64(_mm256_add_epi64(_mm256_srli_epi64(ll, 32), _mm256_and_si256(hl, low)), lh);
	__m256i high = _mm256_add_epi64(_mm256_add_epi64(_mm256_srli_epi64(hl, 32), _mm256_srli_epi64(middle, 32)),
					_mm256_mul_epu32(ah, bh));
	sum = _mm256_add_epi64(sum,
			       _mm256_xor_si256(high, _mm256_blend_epi32(ll, _mm256_slli_epi64(middle, 32), 0xaa)));
	sum = _mm256_xor_si256(sum, _mm256_srli_epi64(sum, 37));
	__m256i cross = _mm256_add_epi64(_mm256_mul_epu32(sum, prime_high),
					 _mm256_mul_epu32(_mm256_srli_epi64(sum, 32), prime));
	sum = _mm256_add_epi64(_mm256_mul_epu32(sum, prime), _mm256_slli_epi64(cross, 32));
	return _mm256_xor_si256(sum, _mm256_srli_epi64(sum, 32));
}

KEY_AVX2 static inline __m128i load_ends(const struct weir_str *s)
{
	__m128i head = _mm_cvtsi64_si128((int64_t)weir_load_le64(s->data));
	return _mm_insert_epi64(head, (int64_t)weir_load_le64(s->data + s->bytes - 8), 1);
}

KEY_AVX2 static inline __m256i load_pair(const void *p)
{
	return _mm256_loadu_si256((const __m256i *)p);
}

KEY_AVX2 static inline void store_pair(void *p, __m256i v)
{
	_mm256_storeu_si256((__m256i *)p, v);
}

/* encode_short of four texts at once, from the selection's i-th on, as long as rows follow each other and each text has
 * 8 to 14 bytes; lanes are rows 0, 2, 1, 3. Returns the i where that ends. *smallest: of every byte place the smallest.
 * Cost: about 22 instructions a row. */
KEY_AVX2 static WEIR_NOINLINE uint32_t encode_fours(const struct weir_str *str, const struct weir_sel *sel, uint32_t i,
						    uint8_t *p, struct weir_keyed *out, __m256i *smallest)
{
	const __m256i only_bytes = _mm256_set1_epi64x(UINT32_MAX), rows = _mm256_setr_epi32(0, 4, 2, 6, 1, 3, 5, 7);
	__m256i at = _mm256_add_epi64(_mm256_set1_epi64x((int64_t)(uintptr_t)p), _mm256_setr_epi64x(0, 16, 32, 48));
	__m256i least = *smallest;
	for (; i + 4 <= sel->count; i += 4, p += 64, at = _mm256_add_epi64(at, _mm256_set1_epi64x(64))) {
		size_t row = sel->row[i];
		const struct weir_str *s = &str[row];
		if (WEIR_UNLIKELY(sel->row[i + 3] != row + 3))
			break;
		__m256i bytes = _mm256_unpackhi_epi64(load_pair(s), load_pair(s + 2));
		bytes = _mm256_and_si256(bytes, only_bytes);
		/* 8 to 14 bytes are 56 down to 8 here: neither this nor 8 less is beyond 63. */
		__m256i shift = _mm256_sub_epi64(_mm256_set1_epi64x(120), _mm256_slli_epi64(bytes, 3));
		__m256i less = _mm256_sub_epi64(shift, _mm256_set1_epi64x(8));
		if (WEIR_UNLIKELY(!_mm256_testz_si256(_mm256_or_si256(shift, less), _mm256_set1_epi64x(~63))))
			break;
		__m256i u = _mm256_set_m128i(load_ends(s + 1), load_ends(s));
		__m256i v = _mm256_set_m128i(load_ends(s + 3), load_ends(s + 2));
		least = _mm256_min_epu8(least, _mm256_min_epu8(u, v));
		__m256i head = _mm256_unpacklo_epi64(u, v), last = _mm256_unpackhi_epi64(u, v);
		__m256i first = _mm256_or_si256(_mm256_slli_epi64(head, 8), _mm256_set1_epi64x(1));
		__m256i second = _mm256_srlv_epi64(last, shift);
		store_pair(p, _mm256_unpacklo_epi64(first, second));
		store_pair(p + 32, _mm256_unpackhi_epi64(first, second));
		store_pair(&out->key[row], at);
		bytes = _mm256_add_epi64(bytes, _mm256_set1_epi64x(2));
		_mm_storeu_si128((__m128i *)(void *)&out->key_bytes[row],
				 _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bytes, rows)));
		__m256i hash = hash_four(first, _mm256_srli_epi64(last, 8), bytes);
		store_pair(&out->hash[row], _mm256_permute4x64_epi64(hash, 0xd8));
	}
	*smallest = least;
	return i;
}

KEY_AVX2 static WEIR_NOINLINE bool encode_avx2(const struct weir_str *str, const struct weir_sel *sel, uint8_t *p,
					       struct weir_keyed *out)
{
	__m256i smallest = _mm256_set1_epi8(-1);
	uint64_t zeros = 0;
	for (uint32_t i = 0; i < sel->count;) {
		i = encode_fours(str, sel, i, p + 16 * (size_t)i, out, &smallest);
		for (uint32_t end = i + 4 < sel->count ? i + 4 : sel->count; i < end; i++)
			if (!encode_short(&str[sel->row[i]], sel->row[i], p + 16 * (size_t)i, out, &zeros))
				return false;
	}
	return (zeros & UINT64_C(0x8080808080808080)) == 0 &&
	       _mm256_movemask_epi8(_mm256_cmpeq_epi8(smallest, _mm256_setzero_si256())) == 0;
}
#endif

static WEIR_NOINLINE bool encode_scalar(const struct weir_str *str, const struct weir_sel *sel, uint8_t *p,
					struct weir_keyed *out)
{
	uint64_t zeros = 0;
	for (uint32_t i = 0; i < sel->count; i++, p += 16)
		if (!encode_short(&str[sel->row[i]], sel->row[i], p, out, &zeros))
			return false;
	return (zeros & UINT64_C(0x8080808080808080)) == 0;
}

/* False: some string is longer or has a 00 in it; what is in out is not to be used. */
static bool key_encode_short_text(const struct weir_str *str, const struct weir_sel *sel, struct weir_scratch *scratch,
				  struct weir_keyed *out)
{
	uint8_t *p = weir_scratch_take(scratch, (size_t)sel->count * 16);
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return encode_avx2(str, sel, p, out);
#endif
	return encode_scalar(str, sel, p, out);
}

/* ---- any key ---- */

void weir_key_encode(const struct weir_col *const *key_cols, const struct weir_type *types, uint32_t key_count,
		     const struct weir_sel *sel, struct weir_scratch *scratch, struct weir_keyed *out)
{
	uint32_t bytes[WEIR_BATCH_ROWS];
	uint8_t *at[WEIR_BATCH_ROWS];
	if (key_count == 1 && key_cols[0]->phys == WEIR_PHYS_STR && !key_cols[0]->has_null && !key_cols[0]->is_const &&
	    key_encode_short_text(key_cols[0]->str, sel, scratch, out))
		return;
	memset(bytes, 0, sel->count * sizeof *bytes);
	for (uint32_t k = 0; k < key_count; k++)
		key_measure(key_cols[k], &types[k], sel, bytes);
	size_t total = 0;
	for (uint32_t i = 0; i < sel->count; i++)
		total += weir_align_up(bytes[i], 8);
	/* Keys follow each other in row order, each from a multiple of 8. A word is stored as 8 bytes, and what that
	 * spills behind it is overwritten by what follows, as long as whole keys are written in ascending order. */
	uint8_t *p = weir_scratch_take(scratch, total + 8);
	for (uint32_t i = 0; i < sel->count; i++) {
		at[i] = p;
		out->key[sel->row[i]] = p;
		out->key_bytes[sel->row[i]] = bytes[i];
		p += weir_align_up(bytes[i], 8);
	}
	if (key_count == 1) {
		key_put(key_cols[0], &types[0], sel, at);
	} else {
		struct weir_sel one = {.count = 1};
		for (uint32_t i = 0; i < sel->count; i++) {
			one.row[0] = sel->row[i];
			for (uint32_t k = 0; k < key_count; k++)
				key_put(key_cols[k], &types[k], &one, &at[i]);
		}
	}
	for (uint32_t i = 0; i < sel->count; i++) {
		uint32_t row = sel->row[i];
		out->hash[row] = weir_hash(out->key[row], out->key_bytes[row]);
	}
}

/* ---- back ---- */

static void decode_null(struct weir_col *c, uint32_t row)
{
	weir_col_set_null(c, row);
	if (c->phys == WEIR_PHYS_STR)
		c->str[row] = (struct weir_str){NULL, 0, 0};
	else
		memset((uint8_t *)c->data + row * weir_phys_bytes(c->phys), 0, weir_phys_bytes(c->phys));
}

/* Returns what follows the string, or NULL where it does not end. */
static const uint8_t *decode_text(const uint8_t *p, const uint8_t *end, struct weir_str *out,
				  struct weir_scratch *scratch)
{
	const uint8_t *from = p;
	uint32_t escapes = 0;
	for (;;) {
		p = memchr(p, 0, (size_t)(end - p));
		if (p == NULL)
			return NULL;
		if (p + 1 == end || p[1] != 0xff)
			break;
		escapes++;
		p += 2;
		if (p == end)
			return NULL;
	}
	uint32_t raw = (uint32_t)(p - from);
	*out = (struct weir_str){from, raw - escapes, 0};
	if (escapes != 0) {
		uint8_t *to = weir_scratch_take(scratch, raw);
		out->data = to;
		for (const uint8_t *q = from; q < p; q++) {
			*to++ = *q;
			q += *q == 0;
		}
	}
	return p + 1;
}

static uint64_t get_word(const uint8_t *p, uint32_t width)
{
	uint64_t v = 0;
	for (uint32_t i = 0; i < width; i++)
		v = v << 8 | p[i];
	return v;
}

static void decode_fixed(const uint8_t *p, uint32_t width, struct weir_col *c, uint32_t row)
{
	switch (c->phys) {
	case WEIR_PHYS_U8:
		c->u8[row] = *p;
		break;
	case WEIR_PHYS_I64: {
		uint64_t v = get_word(p, width) ^ UINT64_C(1) << (8 * width - 1);
		c->i64[row] = (int64_t)(v << (64 - 8 * width)) >> (64 - 8 * width);
		break;
	}
	case WEIR_PHYS_F64:
		c->f64[row] = real_from_order(weir_load_be64(p));
		break;
	case WEIR_PHYS_I128:
		c->i128[row] =
			(weir_i128)((weir_u128)(weir_load_be64(p) ^ UINT64_C(1) << 63) << 64 | weir_load_be64(p + 8));
		break;
	case WEIR_PHYS_STR:
		break;
	}
}

void weir_key_decode(const uint8_t *key, uint32_t key_bytes, const struct weir_type *types, uint32_t key_count,
		     struct weir_col *cols, uint32_t row, struct weir_scratch *scratch)
{
	const uint8_t *p = key, *end = key + key_bytes;
	for (uint32_t k = 0; k < key_count; k++) {
		struct weir_col *c = &cols[k];
		uint32_t width = key_width(&types[k]);
		/* A key that ends early comes from damaged state: the rest is NULL, never a read beyond it. */
		if (p == end || *p++ == 0 || (size_t)(end - p) < width) {
			decode_null(c, row);
			continue;
		}
		if (c->phys != WEIR_PHYS_STR) {
			decode_fixed(p, width, c, row);
			p += width;
			continue;
		}
		struct weir_str s;
		const uint8_t *after = decode_text(p, end, &s, scratch);
		if (after == NULL) {
			decode_null(c, row);
			p = end;
			continue;
		}
		c->str[row] = s;
		p = after;
	}
}

uint32_t weir_key_prefix(const uint8_t *key, uint32_t key_bytes, const struct weir_type *types, uint32_t count)
{
	const uint8_t *p = key, *end = key + key_bytes;
	for (uint32_t k = 0; k < count && p < end; k++) {
		if (*p++ == 0)
			continue;
		if (weir_type_phys(&types[k]) != WEIR_PHYS_STR) {
			uint32_t width = key_width(&types[k]);
			p += (size_t)(end - p) < width ? (size_t)(end - p) : width;
			continue;
		}
		while ((p = memchr(p, 0, (size_t)(end - p))) != NULL && p + 1 < end && p[1] == 0xff)
			p += 2;
		p = p != NULL ? p + 1 : end;
	}
	return (uint32_t)(p - key);
}
