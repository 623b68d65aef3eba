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

/* Not 0 in some top bit of a byte iff v has a byte 00; other bits are noise. */
WEIR_INLINE uint64_t word_zeros(uint64_t v)
{
	return (v - UINT64_C(0x0101010101010101)) & ~v;
}

/* The hash of 9 to 16 bytes, with what XXH3 does for other lengths left out. */
__attribute__((flatten)) static inline uint64_t hash_short(const uint8_t *key, uint32_t bytes)
{
	if (bytes < 9 || bytes > 16)
		__builtin_unreachable();
	return weir_hash(key, bytes);
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

/* The usual key, one string of up to 14 bytes that is never NULL: a key is two words then. They are hashed in a pass of
 * their own, since a hash right behind the writes would wait for them: its loads straddle the stores. False: some
 * string is longer or has a 00 in it; nothing is done. Cost: about 60 instructions a row, half of them the
 * hash. */
static WEIR_NOINLINE bool key_encode_short_text(const struct weir_str *str, const struct weir_sel *sel,
						struct weir_scratch *scratch, struct weir_keyed *out)
{
	uint32_t count = sel->count;
	uint8_t *p = weir_scratch_take(scratch, (size_t)count * 16);
	uint64_t zeros = 0;
	for (uint32_t i = 0; i < count; i++, p += 16) {
		uint32_t row = sel->row[i], n = str[row].bytes;
		const uint8_t *from = str[row].data;
		if (n > 14)
			return false;
		out->key[row] = p;
		out->key_bytes[row] = n + 2;
		if (n < 8) {
			uint64_t word = load_short(from, n);
			zeros |= word_zeros(word | UINT64_MAX << 8 * n);
			weir_store_le64(p, 1 | word << 8);
			weir_store_le64(p + 8, word >> 56);
			continue;
		}
		uint64_t head = weir_load_le64(from), last = weir_load_le64(from + n - 8);
		zeros |= word_zeros(head) | word_zeros(last);
		/* 01, text, 00 and zeros up to 16: of last, the n - 8 bytes that head has not. */
		weir_store_le64(p, 1 | head << 8);
		weir_store_le64(p + 8, head >> 56 | last >> 8 >> (120 - 8 * n) << 8);
	}
	if ((zeros & UINT64_C(0x8080808080808080)) != 0)
		return false;
	p -= (size_t)count * 16;
	for (uint32_t i = 0; i < count; i++, p += 16) {
		uint32_t row = sel->row[i];
		uint32_t bytes = out->key_bytes[row];
		out->hash[row] = WEIR_LIKELY(bytes >= 9) ? hash_short(p, bytes) : weir_hash(p, bytes);
	}
	return true;
}

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
