/* row.h: columns of one row as bytes, for states that keep rows: tables and join buffers.
 *
 *   null bitmap, a bit a column (LSB first, bit set: NULL), padded to a byte | values that are not NULL, in order
 *   BOOLEAN 1 byte | words and doubles 8, wide DECIMAL 16, little-endian | strings: length, bytes
 *   length: 1 byte below 255, else 255 and 4 bytes
 *
 * Durable: a change here is a change of the changelog's format. @thread any */
#ifndef WEIR_STATE_ROW_H
#define WEIR_STATE_ROW_H

#include "hotpath/core/batch.h"

enum { WEIR_ROW_LENGTH_LONG = 255 };

/* Bytes that columns cols[0..count) of `row` take. */
uint64_t weir_row_bytes(const struct weir_col *const *cols, uint32_t count, uint32_t row);
/* Writes them to `to`, which has room; returns what follows. */
uint8_t *weir_row_pack(const struct weir_col *const *cols, uint32_t count, uint32_t row, uint8_t *to);
/* Where none of cols[0..count) holds a NULL or is constant, what a row takes beside the bytes of its strings, for the
 * functions below, which need not look at each value then; else 0. */
uint32_t weir_row_fixed(const struct weir_col *const *cols, uint32_t count);
WEIR_INLINE uint64_t weir_row_bytes_plain(const struct weir_col *const *cols, uint32_t count, uint32_t row,
					  uint32_t fixed)
{
	uint64_t bytes = fixed;
	for (uint32_t i = 0; i < count; i++) {
		if (cols[i]->phys != WEIR_PHYS_STR)
			continue;
		uint32_t n = cols[i]->str[row].bytes;
		bytes += (uint64_t)n + (WEIR_UNLIKELY(n >= WEIR_ROW_LENGTH_LONG) ? 4 : 0);
	}
	return bytes;
}
/* The same of rows[0..row_count), a column at a time. */
void weir_row_bytes_plain_many(const struct weir_col *const *cols, uint32_t count, const uint16_t *rows,
			       uint32_t row_count, uint32_t fixed, uint32_t *bytes);
WEIR_INLINE uint8_t *weir_row_put_text(uint8_t *to, const struct weir_str *s)
{
	if (WEIR_LIKELY(s->bytes < WEIR_ROW_LENGTH_LONG)) {
		*to++ = (uint8_t)s->bytes;
	} else {
		*to++ = WEIR_ROW_LENGTH_LONG;
		weir_store_le32(to, s->bytes);
		to += 4;
	}
	weir_copy_short(to, s->data, s->bytes);
	return to + s->bytes;
}
WEIR_INLINE uint8_t *weir_row_pack_plain(const struct weir_col *const *cols, uint32_t count, uint32_t row, uint8_t *to)
{
	*to++ = 0; /* where there is no column, nothing is fixed */
	for (uint32_t i = 8; i < count; i += 8)
		*to++ = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_col *c = cols[i];
		if (c->phys == WEIR_PHYS_I64 || c->phys == WEIR_PHYS_F64) {
			memcpy(to, &c->i64[row], 8);
			to += 8;
		} else if (c->phys == WEIR_PHYS_STR) {
			to = weir_row_put_text(to, &c->str[row]);
		} else if (c->phys == WEIR_PHYS_U8) {
			*to++ = c->u8[row];
		} else {
			memcpy(to, &c->i128[row], 16);
			to += 16;
		}
	}
	return to;
}
/* The reverse, into row `row` of cols[0..count), whose null bits are clear. Strings point into data, or, where
 * own is given, into memory taken from it. Bytes that end early (damaged state) leave NULLs. Returns the bytes taken
 * from own. */
uint64_t weir_row_unpack(const uint8_t *data, uint32_t bytes, struct weir_col *cols, uint32_t count, uint32_t row,
			 struct weir_scratch *own);
/* The same for many rows, a column at a time: packed[i] becomes row rows[i]; one without data is all NULL. */
struct weir_packed {
	const uint8_t *data;
	uint32_t bytes;
};
void weir_row_unpack_many(const struct weir_packed *packed, const uint16_t *rows, uint32_t row_count,
			  struct weir_col *cols, uint32_t count, struct weir_scratch *own);
/* Whether a packed row is whole and holds no NULL, of columns of these types. */
bool weir_row_is_plain(const uint8_t *data, uint32_t bytes, const struct weir_type *types, uint32_t count);
/* weir_row_unpack_many of rows that are so: at[i], which is moved on, becomes row first + i. Cost: about 4 instructions
 * a value, 10 of a text. */
void weir_row_unpack_plain(const uint8_t **at, uint32_t row_count, struct weir_col *cols, uint32_t count,
			   uint32_t first, struct weir_scratch *own);
/* Row `row` of cols[0..count) becomes NULL. */
void weir_row_set_null(struct weir_col *cols, uint32_t count, uint32_t row);

#endif
