/* row.c: columns of one row to bytes and back (row.h). @thread any */
#include "hotpath/state/row.h"

uint64_t weir_row_bytes(const struct weir_col *const *cols, uint32_t count, uint32_t row)
{
	uint64_t bytes = (count + 7) / 8;
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_col *c = cols[i];
		if (weir_col_is_null(c, row))
			continue;
		if (c->phys != WEIR_PHYS_STR) {
			bytes += c->phys == WEIR_PHYS_U8 ? 1 : c->phys == WEIR_PHYS_I128 ? 16 : 8;
			continue;
		}
		uint32_t n = c->str[c->is_const ? 0 : row].bytes;
		bytes += (uint64_t)n + (n < WEIR_ROW_LENGTH_LONG ? 1 : 5);
	}
	return bytes;
}

uint8_t *weir_row_pack(const struct weir_col *const *cols, uint32_t count, uint32_t row, uint8_t *to)
{
	uint8_t *nulls = to;
	uint32_t map_bytes = (count + 7) / 8;
	memset(nulls, 0, map_bytes);
	to += map_bytes;
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_col *c = cols[i];
		uint32_t at = c->is_const ? 0 : row;
		if (weir_col_is_null(c, row)) {
			nulls[i / 8] |= (uint8_t)(1u << (i % 8));
			continue;
		}
		switch (c->phys) {
		case WEIR_PHYS_U8:
			*to++ = c->u8[at];
			break;
		case WEIR_PHYS_I64:
		case WEIR_PHYS_F64:
			memcpy(to, &c->i64[at], 8);
			to += 8;
			break;
		case WEIR_PHYS_I128:
			memcpy(to, &c->i128[at], 16);
			to += 16;
			break;
		case WEIR_PHYS_STR:
			to = weir_row_put_text(to, &c->str[at]);
			break;
		}
	}
	return to;
}

uint32_t weir_row_fixed(const struct weir_col *const *cols, uint32_t count)
{
	uint32_t bytes = (count + 7) / 8;
	for (uint32_t i = 0; i < count; i++) {
		if (cols[i]->has_null || cols[i]->is_const)
			return 0;
		bytes += cols[i]->phys == WEIR_PHYS_STR ? 1 : (uint32_t)weir_phys_bytes(cols[i]->phys);
	}
	return bytes;
}

void weir_row_bytes_plain_many(const struct weir_col *const *cols, uint32_t count, const uint16_t *rows,
			       uint32_t row_count, uint32_t fixed, uint32_t *bytes)
{
	for (uint32_t i = 0; i < row_count; i++)
		bytes[i] = fixed;
	for (uint32_t c = 0; c < count; c++) {
		if (cols[c]->phys != WEIR_PHYS_STR)
			continue;
		for (uint32_t i = 0; i < row_count; i++) {
			uint32_t n = cols[c]->str[rows[i]].bytes;
			bytes[i] += n + (n >= WEIR_ROW_LENGTH_LONG ? 4 : 0);
		}
	}
}

static void set_null(struct weir_col *c, uint32_t row)
{
	weir_col_set_null(c, row);
	if (c->phys == WEIR_PHYS_STR)
		c->str[row] = (struct weir_str){NULL, 0, 0};
	else
		memset((uint8_t *)c->data + row * weir_phys_bytes(c->phys), 0, weir_phys_bytes(c->phys));
}

void weir_row_set_null(struct weir_col *cols, uint32_t count, uint32_t row)
{
	for (uint32_t i = 0; i < count; i++)
		set_null(&cols[i], row);
}

/* The string at p, NULL where it does not end before end. */
static const uint8_t *get_text(const uint8_t *p, const uint8_t *end, struct weir_str *out)
{
	uint32_t n;
	if (p == end)
		return NULL;
	n = *p++;
	if (n == WEIR_ROW_LENGTH_LONG) {
		if (end - p < 4)
			return NULL;
		n = weir_load_le32(p);
		p += 4;
	}
	if ((size_t)(end - p) < n)
		return NULL;
	*out = (struct weir_str){p, n, 0};
	return p + n;
}

/* The value at p as row `row` of c; NULL where it does not end before end. */
WEIR_INLINE const uint8_t *get_value(const uint8_t *p, const uint8_t *end, struct weir_col *c, enum weir_phys phys,
				     uint32_t row)
{
	size_t left = (size_t)(end - p);
	switch (phys) {
	case WEIR_PHYS_U8:
		if (left < 1)
			return NULL;
		c->u8[row] = *p;
		return p + 1;
	case WEIR_PHYS_I64:
	case WEIR_PHYS_F64:
		if (left < 8)
			return NULL;
		memcpy(&c->i64[row], p, 8);
		return p + 8;
	case WEIR_PHYS_I128:
		if (left < 16)
			return NULL;
		memcpy(&c->i128[row], p, 16);
		return p + 16;
	case WEIR_PHYS_STR:
		break;
	}
	return get_text(p, end, &c->str[row]);
}

static uint64_t own_text(struct weir_str *s, struct weir_scratch *own)
{
	uint8_t *copy = weir_scratch_take(own, s->bytes);
	weir_copy_short(copy, s->data, s->bytes);
	s->data = copy;
	return s->bytes;
}

uint64_t weir_row_unpack(const uint8_t *data, uint32_t bytes, struct weir_col *cols, uint32_t count, uint32_t row,
			 struct weir_scratch *own)
{
	const uint8_t *end = data + bytes, *p = data + (count + 7) / 8;
	uint64_t owned = 0;
	bool damaged = p > end;
	for (uint32_t i = 0; i < count; i++) {
		struct weir_col *c = &cols[i];
		const uint8_t *after = NULL;
		if (WEIR_LIKELY(!damaged && (data[i / 8] >> (i % 8) & 1) == 0)) {
			after = get_value(p, end, c, c->phys, row);
			damaged = after == NULL;
		}
		if (WEIR_UNLIKELY(after == NULL)) {
			set_null(c, row);
			continue;
		}
		p = after;
		if (own != NULL && c->phys == WEIR_PHYS_STR)
			owned += own_text(&c->str[row], own);
	}
	return owned;
}

bool weir_row_is_plain(const uint8_t *data, uint32_t bytes, const struct weir_type *types, uint32_t count)
{
	const uint8_t *end = data + bytes, *p = data;
	uint32_t map_bytes = (count + 7) / 8;
	if (bytes < map_bytes)
		return false;
	for (uint32_t i = 0; i < map_bytes; i++)
		if (*p++ != 0)
			return false;
	for (uint32_t i = 0; i < count; i++) {
		enum weir_phys phys = weir_type_phys(&types[i]);
		struct weir_str text;
		if (phys == WEIR_PHYS_STR)
			p = get_text(p, end, &text);
		else
			p = (size_t)(end - p) < weir_phys_bytes(phys) ? NULL : p + weir_phys_bytes(phys);
		if (p == NULL)
			return false;
	}
	return true;
}

/* Rows of which each value is there, one column after the other, whose first value lies `skip` behind at[i]; row i
 * becomes row[i], where row is given, else first + i. A text moves at[i] behind it, and is checked where end is given:
 * `least` bytes, which what follows takes at least, must still be there. */
struct plain {
	const uint8_t **at;
	const uint8_t *const *end;
	const uint16_t *row;
	uint32_t count, first, skip, least;
};

WEIR_INLINE void plain_values(const struct plain *pl, void *data, size_t width)
{
	const uint8_t *const *at = pl->at;
	const uint16_t *row = pl->row;
	const uint32_t skip = pl->skip, count = pl->count;
	uint8_t *to = (uint8_t *)data + pl->first * width;
#pragma GCC unroll 4
	for (uint32_t i = 0; i < count; i++)
		memcpy(to + (row ? row[i] : i) * width, at[i] + skip, width);
}

WEIR_INLINE bool plain_texts(const struct plain *pl, struct weir_str *to)
{
	const uint8_t **at = pl->at;
	const uint16_t *row = pl->row;
	const uint32_t skip = pl->skip, count = pl->count, least = pl->least;
	to += pl->first;
#pragma GCC unroll 4
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *p = at[i] + skip + 1;
		uint64_t n = at[i][skip];
		if (WEIR_UNLIKELY(n == WEIR_ROW_LENGTH_LONG)) {
			if (pl->end && (size_t)(pl->end[i] - p) < 4)
				return false;
			n = weir_load_le32(p);
			p += 4;
		}
		if (pl->end && WEIR_UNLIKELY((size_t)(pl->end[i] - p) < n + least))
			return false;
		struct weir_str *s = &to[row ? row[i] : i];
		s->data = p;
		weir_store_le64(&s->bytes, n); /* and pad */
		at[i] = p + n;
	}
	return true;
}

/* The next column. */
WEIR_INLINE bool plain_col(struct plain *pl, struct weir_col *c, struct weir_scratch *own)
{
	switch (c->phys) {
	case WEIR_PHYS_U8:
		plain_values(pl, c->data, 1);
		pl->skip += 1;
		break;
	case WEIR_PHYS_I64:
	case WEIR_PHYS_F64:
		plain_values(pl, c->data, 8);
		pl->skip += 8;
		break;
	case WEIR_PHYS_I128:
		plain_values(pl, c->data, 16);
		pl->skip += 16;
		break;
	case WEIR_PHYS_STR:
		if (!plain_texts(pl, c->str))
			return false;
		pl->skip = 0;
		for (uint32_t i = 0; own != NULL && i < pl->count; i++)
			(void)own_text(&c->str[pl->row ? pl->row[i] : pl->first + i], own);
		break;
	}
	return true;
}

void weir_row_unpack_plain(const uint8_t **at, uint32_t row_count, struct weir_col *cols, uint32_t count,
			   uint32_t first, struct weir_scratch *own)
{
	struct plain pl = {.at = at, .count = row_count, .first = first, .skip = (count + 7) / 8};
	for (uint32_t k = 0; k < count; k++)
		(void)plain_col(&pl, &cols[k], own);
}

/* The bytes that a value takes at least. */
static uint32_t least_bytes(const struct weir_col *c)
{
	return c->phys == WEIR_PHYS_STR ? 1 : (uint32_t)weir_phys_bytes(c->phys);
}

/* weir_row_unpack_many where rows are whole and hold no NULL, or are not there. False: some row is not so. Cost: about
 * 10 instructions a row, 5 a value, 12 a text. */
static bool unpack_whole(const struct weir_packed *packed, const uint16_t *rows, uint32_t row_count,
			 struct weir_col *cols, uint32_t count, struct weir_scratch *own)
{
	const uint8_t *at[WEIR_BATCH_ROWS], *end[WEIR_BATCH_ROWS];
	uint16_t row[WEIR_BATCH_ROWS];
	uint32_t map_bytes = (count + 7) / 8, least = 0, nulls = 0, n = 0;
	for (uint32_t k = 0; k < count; k++)
		least += least_bytes(&cols[k]);
	const uint32_t row_least = map_bytes + least;
	for (uint32_t i = 0; i < row_count && count != 0; i++) {
		const uint8_t *data = packed[i].data;
		uint32_t bytes = packed[i].bytes;
		if (data == NULL) {
			weir_row_set_null(cols, count, rows[i]);
			continue;
		}
		if (WEIR_UNLIKELY(bytes < row_least))
			return false;
		nulls |= *data;
		at[n] = data;
		end[n] = data + bytes;
		row[n++] = rows[i];
	}
	for (uint32_t m = 1; m < map_bytes; m++)
		for (uint32_t i = 0; i < n; i++)
			nulls |= at[i][m];
	struct plain pl = {.at = at, .end = end, .row = row, .count = n, .skip = map_bytes};
	for (uint32_t k = 0; k < count && nulls == 0; k++) {
		least -= least_bytes(&cols[k]);
		pl.least = least;
		if (!plain_col(&pl, &cols[k], own))
			return false;
	}
	return nulls == 0;
}

/* One column of all rows; at[i]: where packed row i goes on, NULL: nothing (more) is there. */
WEIR_INLINE void unpack_col(const struct weir_packed *packed, const uint16_t *rows, uint32_t row_count,
			    const uint8_t **at, struct weir_col *c, enum weir_phys phys, uint32_t col,
			    struct weir_scratch *own)
{
	for (uint32_t i = 0; i < row_count; i++) {
		const uint8_t *after = NULL;
		if (WEIR_LIKELY(at[i] != NULL)) {
			if ((packed[i].data[col / 8] >> (col % 8) & 1) != 0) {
				set_null(c, rows[i]);
				continue;
			}
			after = get_value(at[i], packed[i].data + packed[i].bytes, c, phys, rows[i]);
		}
		at[i] = after;
		if (WEIR_UNLIKELY(after == NULL))
			set_null(c, rows[i]);
		else if (own != NULL)
			(void)own_text(&c->str[rows[i]], own);
	}
}

void weir_row_unpack_many(const struct weir_packed *packed, const uint16_t *rows, uint32_t row_count,
			  struct weir_col *cols, uint32_t count, struct weir_scratch *own)
{
	const uint8_t *at[WEIR_BATCH_ROWS];
	uint32_t map_bytes = (count + 7) / 8;
	WEIR_DASSERT(row_count <= WEIR_BATCH_ROWS);
	if (unpack_whole(packed, rows, row_count, cols, count, own))
		return;
	for (uint32_t i = 0; i < row_count; i++)
		at[i] = packed[i].data != NULL && packed[i].bytes >= map_bytes ? packed[i].data + map_bytes : NULL;
	for (uint32_t k = 0; k < count; k++) {
		struct weir_col *c = &cols[k];
		/* The type is known in each loop. */
		switch (c->phys) {
		case WEIR_PHYS_U8:
			unpack_col(packed, rows, row_count, at, c, WEIR_PHYS_U8, k, NULL);
			break;
		case WEIR_PHYS_I64:
		case WEIR_PHYS_F64:
			unpack_col(packed, rows, row_count, at, c, WEIR_PHYS_I64, k, NULL);
			break;
		case WEIR_PHYS_I128:
			unpack_col(packed, rows, row_count, at, c, WEIR_PHYS_I128, k, NULL);
			break;
		case WEIR_PHYS_STR:
			unpack_col(packed, rows, row_count, at, c, WEIR_PHYS_STR, k, own);
			break;
		}
	}
}
