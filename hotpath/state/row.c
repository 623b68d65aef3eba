/* row.c: columns of one row to bytes and back (row.h). @thread any */
#include "hotpath/state/row.h"

enum { ROW_LENGTH_LONG = 255 };

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
		bytes += (uint64_t)n + (n < ROW_LENGTH_LONG ? 1 : 5);
	}
	return bytes;
}

static uint8_t *put_text(uint8_t *to, const struct weir_str *s)
{
	if (s->bytes < ROW_LENGTH_LONG) {
		*to++ = (uint8_t)s->bytes;
	} else {
		*to++ = ROW_LENGTH_LONG;
		weir_store_le32(to, s->bytes);
		to += 4;
	}
	if (s->bytes != 0)
		memcpy(to, s->data, s->bytes);
	return to + s->bytes;
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
			to = put_text(to, &c->str[at]);
			break;
		}
	}
	return to;
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
	if (n == ROW_LENGTH_LONG) {
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
static const uint8_t *get_value(const uint8_t *p, const uint8_t *end, struct weir_col *c, uint32_t row)
{
	if (c->phys == WEIR_PHYS_STR)
		return get_text(p, end, &c->str[row]);
	size_t n = weir_phys_bytes(c->phys);
	if ((size_t)(end - p) < n)
		return NULL;
	memcpy((uint8_t *)c->data + row * n, p, n);
	return p + n;
}

uint64_t weir_row_unpack(const uint8_t *data, uint32_t bytes, struct weir_col *cols, uint32_t count, uint32_t row,
			 struct weir_scratch *own)
{
	const uint8_t *end = data + bytes, *p = data + (count + 7) / 8;
	uint64_t owned = 0;
	bool damaged = p > end;
	for (uint32_t i = 0; i < count; i++) {
		struct weir_col *c = &cols[i];
		if (damaged || (data[i / 8] >> (i % 8) & 1) != 0) {
			set_null(c, row);
			continue;
		}
		const uint8_t *after = get_value(p, end, c, row);
		if (after == NULL) {
			damaged = true;
			set_null(c, row);
			continue;
		}
		p = after;
		if (own != NULL && c->phys == WEIR_PHYS_STR) {
			uint8_t *copy = weir_scratch_take(own, c->str[row].bytes);
			memcpy(copy, c->str[row].data, c->str[row].bytes);
			c->str[row].data = copy;
			owned += c->str[row].bytes;
		}
	}
	return owned;
}
