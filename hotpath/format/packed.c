/* packed.c: weir's own binary rows, for topics between weir's jobs: no names, no parsing, one bounds check per column.
 * @thread worker (decode), worker or snap (encode).
 *
 *   +---------+-------------+----------------------+---------------------------------+
 *   | version | null bitmap | fixed-width columns  | variable columns                |
 *   | 1 byte  | (n + 7) / 8 | in declaration order | in declaration order            |
 *   | = 1     | bit i: col i| NULL ones as zeros   | u32 length + bytes; NULL: absent|
 *   +---------+-------------+----------------------+---------------------------------+
 *   little-endian, unaligned; bit i of the bitmap is bit i % 8 of byte i / 8; unused bits are zero
 *
 *   BOOLEAN 1 (0, 1)  TINYINT 1  SMALLINT 2  INT 4  BIGINT 8  FLOAT 4  DOUBLE 8  DATE 4 (days)  TIME 4 (ms of the day)
 *   TIMESTAMP, TIMESTAMP_LTZ 8 (ms, from precision 4 on us)  DECIMAL 8 up to 18 digits, else 16 (unscaled)
 *   CHAR, VARCHAR, STRING (UTF-8) and BYTES are variable; nested types have no place here
 *
 * A record must fit its table's layout exactly: a missing or an extra byte is refused (reason packed), so that a
 * changed table is noticed. Every column is checked, read or not. */
#include "hotpath/format/format.h"

#include <stdlib.h>

#include "hotpath/core/diag.h"
#include "hotpath/format/number.h"
#include "hotpath/time/civil.h"

enum { PACKED_VERSION = 1, NOT_READ = UINT32_MAX };

/* One column of the layout; the same for both directions. */
struct packed_col {
	struct weir_type type;
	const char *name;
	uint32_t width;  /* of a fixed column; 0: variable */
	uint32_t offset; /* of a fixed column, from the record's start */
	uint32_t field;  /* decoder: index into cols, or NOT_READ */
	weir_i128 limit; /* DECIMAL: 10^precision */
};

struct packed_layout {
	struct packed_col *cols;
	uint32_t count;
	uint32_t head_bytes; /* version, bitmap and fixed columns */
};

/* Bytes of a fixed column, 0 for a variable one, -1 for a type that has no place. */
static int packed_width(const struct weir_type *t)
{
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
	case WEIR_KIND_TINYINT:
		return 1;
	case WEIR_KIND_SMALLINT:
		return 2;
	case WEIR_KIND_INT:
	case WEIR_KIND_FLOAT:
	case WEIR_KIND_DATE:
	case WEIR_KIND_TIME:
		return 4;
	case WEIR_KIND_BIGINT:
	case WEIR_KIND_DOUBLE:
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		return 8;
	case WEIR_KIND_DECIMAL:
		return t->precision <= 18 ? 8 : 16;
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR:
	case WEIR_KIND_BYTES:
		return 0;
	default:
		return -1;
	}
}

static enum weir_err layout_init(struct packed_layout *l, const struct weir_field *fields, uint32_t count,
				 struct weir_diag **dg)
{
	char text[128];
	for (uint32_t i = 0; i < count; i++) {
		if (packed_width(&fields[i].type) < 0)
			return weir_diag_set(dg, WEIR_E_CONF, "format 'packed' cannot hold column '%s' of type %s",
					     fields[i].name, weir_type_text(&fields[i].type, text, sizeof text));
	}
	l->cols = weir_xcalloc(count, sizeof *l->cols);
	l->count = count;
	uint32_t at = 1 + (count + 7) / 8;
	for (uint32_t i = 0; i < count; i++) {
		struct packed_col *pc = &l->cols[i];
		pc->type = fields[i].type;
		pc->name = fields[i].name;
		pc->width = (uint32_t)packed_width(&fields[i].type);
		pc->offset = at;
		pc->field = NOT_READ;
		if (pc->type.kind == WEIR_KIND_DECIMAL)
			pc->limit = weir_pow10_i128(pc->type.precision);
		at += pc->width;
	}
	l->head_bytes = at;
	return WEIR_OK;
}

struct packed_decoder {
	struct weir_decoder base;
	struct packed_layout layout;
	uint32_t field_count;
	uint32_t bytes_max;
	bool ignore_errors;
};

static inline bool bit_is_set(const uint8_t *bits, uint32_t i)
{
	return (bits[i / 8] >> (i % 8)) & 1;
}

/* Why a row was refused. */
struct refusal {
	enum weir_reason reason;
	uint32_t at;
	const char *field;
	const char *detail;
};

static bool refuse(struct refusal *rf, enum weir_reason reason, size_t at, const char *field, const char *detail)
{
	*rf = (struct refusal){reason, (uint32_t)at, field, detail};
	return false;
}

/* One fixed column, checked, into row of c (c NULL: only checked). */
static bool decode_fixed(const struct packed_col *pc, const uint8_t *p, struct weir_col *c, uint32_t row,
			 struct refusal *rf)
{
	int64_t v = 0;
	weir_i128 wide = 0;
	float f;
	double d = 0;
	switch (pc->type.kind) {
	case WEIR_KIND_BOOLEAN:
		if (p[0] > 1)
			return refuse(rf, WEIR_REASON_PACKED, pc->offset, pc->name, "expected 0 or 1");
		if (c != NULL)
			c->u8[row] = p[0];
		return true;
	case WEIR_KIND_TINYINT:
		v = (int8_t)p[0];
		break;
	case WEIR_KIND_SMALLINT:
		v = (int16_t)(p[0] | p[1] << 8);
		break;
	case WEIR_KIND_INT:
	case WEIR_KIND_DATE:
		v = (int32_t)weir_load_le32(p);
		break;
	case WEIR_KIND_TIME:
		v = (int32_t)weir_load_le32(p);
		if (v < 0 || v >= WEIR_DAY_MS)
			return refuse(rf, WEIR_REASON_RANGE, pc->offset, pc->name, "beyond one day");
		break;
	case WEIR_KIND_FLOAT:
		memcpy(&f, p, sizeof f);
		d = (double)f;
		if (c != NULL)
			c->f64[row] = d;
		return true;
	case WEIR_KIND_DOUBLE:
		memcpy(&d, p, sizeof d);
		if (c != NULL)
			c->f64[row] = d;
		return true;
	case WEIR_KIND_DECIMAL:
		if (pc->width == 16) {
			memcpy(&wide, p, sizeof wide);
		} else {
			v = (int64_t)weir_load_le64(p);
			wide = v;
		}
		if (wide >= pc->limit || wide <= -pc->limit)
			return refuse(rf, WEIR_REASON_RANGE, pc->offset, pc->name, "more digits than declared");
		if (c != NULL && pc->width == 16) {
			c->i128[row] = wide;
			return true;
		}
		break;
	default:
		v = (int64_t)weir_load_le64(p);
		break;
	}
	if (c != NULL)
		c->i64[row] = v;
	return true;
}

static bool decode_row(const struct packed_decoder *d, const uint8_t *p, uint32_t bytes, struct weir_col *cols,
		       uint32_t row, struct refusal *rf)
{
	const struct packed_layout *l = &d->layout;
	if (bytes > d->bytes_max)
		return refuse(rf, WEIR_REASON_SIZE, 0, NULL, "longer than record.bytes.max");
	if (bytes < l->head_bytes)
		return refuse(rf, WEIR_REASON_PACKED, bytes, NULL, "shorter than its fixed columns");
	if (p[0] != PACKED_VERSION)
		return refuse(rf, WEIR_REASON_PACKED, 0, NULL, "not version 1");
	const uint8_t *nulls = p + 1;
	if (l->count % 8 != 0 && nulls[l->count / 8] >> (l->count % 8) != 0)
		return refuse(rf, WEIR_REASON_PACKED, l->count / 8 + 1, NULL, "more columns than declared");
	uint32_t at = l->head_bytes;
	for (uint32_t i = 0; i < l->count; i++) {
		const struct packed_col *pc = &l->cols[i];
		struct weir_col *c = pc->field == NOT_READ ? NULL : &cols[pc->field];
		if (bit_is_set(nulls, i)) {
			if (pc->type.not_null)
				return refuse(rf, WEIR_REASON_NULL, i / 8 + 1, pc->name, "NULL in a NOT NULL column");
			if (c != NULL)
				weir_col_set_null(c, row);
			continue;
		}
		if (pc->width != 0) {
			if (!decode_fixed(pc, p + pc->offset, c, row, rf))
				return false;
			continue;
		}
		if (bytes - at < 4)
			return refuse(rf, WEIR_REASON_PACKED, at, pc->name, "cut off in a length");
		uint32_t length = weir_load_le32(p + at);
		at += 4;
		if (bytes - at < length)
			return refuse(rf, WEIR_REASON_PACKED, at, pc->name, "cut off in a value");
		struct weir_str s;
		struct weir_col probe = {.phys = WEIR_PHYS_STR, .str = &s};
		enum weir_reason r = weir_text_parse(&pc->type, (const char *)p + at, length, &probe, 0);
		if (r != WEIR_REASON_NONE)
			return refuse(rf, r, at, pc->name,
				      r == WEIR_REASON_UTF8 ? "invalid UTF-8" : "longer than declared");
		if (c != NULL)
			c->str[row] = s;
		at += length;
	}
	if (at != bytes)
		return refuse(rf, WEIR_REASON_PACKED, at, NULL, "bytes behind the last column");
	return true;
}

static void packed_decode(struct weir_decoder *base, const struct weir_record *records, struct weir_sel *sel,
			  struct weir_col *cols, struct weir_scratch *scratch, struct weir_row_errors *errors)
{
	struct packed_decoder *d = (struct packed_decoder *)base;
	uint32_t kept = 0;
	(void)scratch;
	for (uint32_t f = 0; f < d->field_count; f++)
		weir_col_clear_nulls(&cols[f]);
	for (uint32_t i = 0; i < sel->count; i++) {
		uint16_t row = sel->row[i];
		const uint8_t *p = base->on_key ? records[row].key : records[row].value;
		uint32_t bytes = base->on_key ? records[row].key_bytes : records[row].value_bytes;
		struct refusal rf;
		bool all_null = p == NULL;
		if (!all_null && WEIR_UNLIKELY(!decode_row(d, p, bytes, cols, row, &rf))) {
			if (!d->ignore_errors) {
				weir_row_errors_add(errors, row, rf.reason, rf.at, rf.field, rf.detail);
				continue;
			}
			all_null = true;
		}
		if (all_null) {
			for (uint32_t f = 0; f < d->field_count; f++)
				weir_col_set_null(&cols[f], row);
		}
		sel->row[kept++] = row;
	}
	sel->count = kept;
}

static void packed_decoder_destroy(struct weir_decoder *base)
{
	struct packed_decoder *d = (struct packed_decoder *)base;
	free(d->layout.cols);
	free(d);
}

enum weir_err weir_packed_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
					 const struct weir_field *fields, uint32_t field_count,
					 const struct weir_field *all_fields, uint32_t all_count, bool on_key,
					 struct weir_diag **dg)
{
	struct packed_layout layout;
	enum weir_err err = layout_init(&layout, all_fields, all_count, dg);
	if (err != WEIR_OK)
		return err;
	for (uint32_t f = 0; f < field_count; f++) {
		uint32_t i = 0;
		while (i < all_count && all_fields[i].ordinal != fields[f].ordinal)
			i++;
		WEIR_ASSERT(i < all_count && layout.cols[i].field == NOT_READ);
		layout.cols[i].field = f;
		layout.cols[i].type.not_null = fields[f].type.not_null;
	}
	struct packed_decoder *d = weir_xcalloc(1, sizeof *d);
	d->base.decode = packed_decode;
	d->base.destroy = packed_decoder_destroy;
	d->base.on_key = on_key;
	d->layout = layout;
	d->field_count = field_count;
	d->bytes_max = options->record_bytes_max ? options->record_bytes_max : 16u << 20;
	d->ignore_errors = options->ignore_parse_errors;
	*out = &d->base;
	return WEIR_OK;
}

struct packed_encoder {
	struct weir_encoder base;
	struct packed_layout layout;
};

static void encode_fixed(const struct packed_col *pc, const struct weir_col *c, uint32_t row, uint8_t *to)
{
	float f;
	switch (weir_type_phys(&pc->type)) {
	case WEIR_PHYS_U8:
		to[0] = c->u8[row] != 0;
		break;
	case WEIR_PHYS_F64:
		if (pc->type.kind == WEIR_KIND_FLOAT) {
			f = (float)c->f64[row];
			memcpy(to, &f, sizeof f);
		} else {
			memcpy(to, &c->f64[row], 8);
		}
		break;
	case WEIR_PHYS_I128:
		memcpy(to, &c->i128[row], 16);
		break;
	default:
		memcpy(to, &c->i64[row], pc->width); /* little-endian: the low bytes come first */
		break;
	}
}

static void packed_encode(struct weir_encoder *base, const struct weir_col *cols, uint32_t row, struct weir_buf *out)
{
	struct packed_encoder *e = (struct packed_encoder *)base;
	const struct packed_layout *l = &e->layout;
	size_t bytes = l->head_bytes;
	for (uint32_t i = 0; i < l->count; i++) {
		if (l->cols[i].width == 0 && !weir_col_is_null(&cols[i], row))
			bytes += 4 + (size_t)cols[i].str[cols[i].is_const ? 0 : row].bytes;
	}
	uint8_t *to = weir_buf_room(out, bytes);
	memset(to, 0, l->head_bytes);
	to[0] = PACKED_VERSION;
	uint8_t *tail = to + l->head_bytes;
	for (uint32_t i = 0; i < l->count; i++) {
		const struct packed_col *pc = &l->cols[i];
		const struct weir_col *c = &cols[i];
		uint32_t at = c->is_const ? 0 : row;
		if (weir_col_is_null(c, row)) {
			to[1 + i / 8] |= (uint8_t)(1u << (i % 8));
		} else if (pc->width != 0) {
			encode_fixed(pc, c, at, to + pc->offset);
		} else {
			weir_store_le32(tail, c->str[at].bytes);
			if (c->str[at].bytes != 0)
				memcpy(tail + 4, c->str[at].data, c->str[at].bytes);
			tail += 4 + c->str[at].bytes;
		}
	}
	out->bytes += bytes;
}

static void packed_encoder_destroy(struct weir_encoder *base)
{
	struct packed_encoder *e = (struct packed_encoder *)base;
	free(e->layout.cols);
	free(e);
}

enum weir_err weir_packed_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
					 const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg)
{
	struct packed_layout layout;
	(void)options;
	enum weir_err err = layout_init(&layout, fields, field_count, dg);
	if (err != WEIR_OK)
		return err;
	struct packed_encoder *e = weir_xcalloc(1, sizeof *e);
	e->base.encode = packed_encode;
	e->base.destroy = packed_encoder_destroy;
	e->layout = layout;
	*out = &e->base;
	return WEIR_OK;
}
