/* raw.c: payloads that are one value. RAW and KAFKA are the same bytes: big-endian primitives as Kafka's serializers
 * write them (RAW may be told little-endian), STRING as UTF-8, BYTES as they are. @thread worker (decode), worker or
 * snap (encode).
 *
 *   BOOLEAN 1 (0 or 1)   TINYINT 1   SMALLINT 2   INT 4   BIGINT 8   FLOAT 4   DOUBLE 8   STRING, BYTES the whole
 * payload
 *
 * A payload of another length is refused (reason kafka). A NULL column has no bytes: encoders say null_payload, and
 * whoever builds the record writes a Kafka null instead. */
#include "hotpath/format/format.h"

#include <stdlib.h>

#include "hotpath/core/diag.h"

struct raw_decoder {
	struct weir_decoder base;
	struct weir_field field;
	uint32_t bytes; /* of a primitive; 0: the payload is the value */
	uint32_t bytes_max;
	bool little_endian;
	bool ignore_errors;
};

struct raw_encoder {
	struct weir_encoder base;
	enum weir_kind kind;
	uint32_t bytes;
	bool little_endian;
};

/* Bytes of a primitive, 0 for strings and bytes, -1 for a type that this format cannot hold. */
static int raw_bytes(const struct weir_type *t)
{
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
	case WEIR_KIND_TINYINT:
		return 1;
	case WEIR_KIND_SMALLINT:
		return 2;
	case WEIR_KIND_INT:
	case WEIR_KIND_FLOAT:
		return 4;
	case WEIR_KIND_BIGINT:
	case WEIR_KIND_DOUBLE:
		return 8;
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR:
	case WEIR_KIND_BYTES:
		return 0;
	default:
		return -1;
	}
}

static enum weir_err check_field(const struct weir_format_options *options, const struct weir_field *fields,
				 uint32_t field_count, struct weir_diag **dg)
{
	const char *format = options->kind == WEIR_FORMAT_KAFKA ? "kafka" : "raw";
	char text[128];
	if (field_count != 1)
		return weir_diag_set(dg, WEIR_E_CONF, "format '%s' holds exactly one column, here are %u", format,
				     field_count);
	if (raw_bytes(&fields[0].type) < 0)
		return weir_diag_set(dg, WEIR_E_CONF, "format '%s' cannot hold column '%s' of type %s", format,
				     fields[0].name, weir_type_text(&fields[0].type, text, sizeof text));
	return WEIR_OK;
}

/* The primitive at p as an unsigned number of its width. */
static inline uint64_t load(const uint8_t *p, uint32_t bytes, bool little_endian)
{
	uint64_t v = 0;
	for (uint32_t i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << (little_endian ? 8 * i : 8 * (bytes - 1 - i));
	return v;
}

static enum weir_reason decode_one(const struct raw_decoder *d, const uint8_t *p, uint32_t bytes, struct weir_col *c,
				   uint32_t row, const char **detail)
{
	const struct weir_type *t = &d->field.type;
	if (bytes > d->bytes_max) {
		*detail = "longer than record.bytes.max";
		return WEIR_REASON_SIZE;
	}
	if (d->bytes == 0)
		return weir_text_parse(t, (const char *)p, bytes, c, row);
	if (bytes != d->bytes) {
		*detail = "another length than the type's";
		return WEIR_REASON_KAFKA;
	}
	uint64_t v = load(p, bytes, d->little_endian);
	float f;
	uint32_t fbits = (uint32_t)v;
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		if (v > 1) {
			*detail = "expected 0 or 1";
			return WEIR_REASON_KAFKA;
		}
		c->u8[row] = (uint8_t)v;
		break;
	case WEIR_KIND_FLOAT:
		memcpy(&f, &fbits, sizeof f);
		c->f64[row] = (double)f;
		break;
	case WEIR_KIND_DOUBLE:
		memcpy(&c->f64[row], &v, sizeof v);
		break;
	default:
		c->i64[row] = (int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes);
		break;
	}
	return WEIR_REASON_NONE;
}

static void raw_decode(struct weir_decoder *base, const struct weir_record *records, struct weir_sel *sel,
		       struct weir_col *cols, struct weir_scratch *scratch, struct weir_row_errors *errors)
{
	struct raw_decoder *d = (struct raw_decoder *)base;
	struct weir_col *c = &cols[0];
	uint32_t kept = 0;
	(void)scratch;
	weir_col_clear_nulls(c);
	for (uint32_t i = 0; i < sel->count; i++) {
		uint16_t row = sel->row[i];
		const uint8_t *p = base->on_key ? records[row].key : records[row].value;
		uint32_t bytes = base->on_key ? records[row].key_bytes : records[row].value_bytes;
		const char *detail = NULL;
		if (p == NULL) {
			weir_col_set_null(c, row);
		} else {
			enum weir_reason r = decode_one(d, p, bytes, c, row, &detail);
			if (WEIR_UNLIKELY(r != WEIR_REASON_NONE)) {
				if (!d->ignore_errors) {
					weir_row_errors_add(errors, row, r, 0, d->field.name, detail);
					continue;
				}
				weir_col_set_null(c, row);
			}
		}
		sel->row[kept++] = row;
	}
	sel->count = kept;
}

static void raw_decoder_destroy(struct weir_decoder *base)
{
	free(base);
}

enum weir_err weir_raw_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
				      const struct weir_field *fields, uint32_t field_count, bool on_key,
				      struct weir_diag **dg)
{
	enum weir_err err = check_field(options, fields, field_count, dg);
	if (err != WEIR_OK)
		return err;
	struct raw_decoder *d = weir_xcalloc(1, sizeof *d);
	d->base.decode = raw_decode;
	d->base.destroy = raw_decoder_destroy;
	d->base.on_key = on_key;
	d->field = fields[0];
	d->bytes = (uint32_t)raw_bytes(&fields[0].type);
	d->bytes_max = options->record_bytes_max ? options->record_bytes_max : 16u << 20;
	d->little_endian = options->kind == WEIR_FORMAT_RAW && options->raw_little_endian;
	d->ignore_errors = options->ignore_parse_errors;
	*out = &d->base;
	return WEIR_OK;
}

static void raw_encode(struct weir_encoder *base, const struct weir_col *cols, uint32_t row, struct weir_buf *out)
{
	struct raw_encoder *e = (struct raw_encoder *)base;
	const struct weir_col *c = &cols[0];
	if (weir_col_is_null(c, row))
		return;
	if (c->is_const)
		row = 0;
	if (e->bytes == 0) {
		weir_buf_put(out, c->str[row].data, c->str[row].bytes);
		return;
	}
	uint64_t v;
	uint32_t fbits;
	float f;
	switch (e->kind) {
	case WEIR_KIND_BOOLEAN:
		v = c->u8[row] != 0;
		break;
	case WEIR_KIND_FLOAT:
		f = (float)c->f64[row];
		memcpy(&fbits, &f, sizeof fbits);
		v = fbits;
		break;
	default:
		memcpy(&v, &c->i64[row], sizeof v); /* a DOUBLE's bits, too */
		break;
	}
	uint8_t *to = weir_buf_room(out, 8);
	for (uint32_t i = 0; i < e->bytes; i++)
		to[i] = (uint8_t)(v >> (e->little_endian ? 8 * i : 8 * (e->bytes - 1 - i)));
	out->bytes += e->bytes;
}

static void raw_encoder_destroy(struct weir_encoder *base)
{
	free(base);
}

enum weir_err weir_raw_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
				      const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg)
{
	enum weir_err err = check_field(options, fields, field_count, dg);
	if (err != WEIR_OK)
		return err;
	struct raw_encoder *e = weir_xcalloc(1, sizeof *e);
	e->base.encode = raw_encode;
	e->base.destroy = raw_encoder_destroy;
	e->base.null_payload = true;
	e->kind = fields[0].type.kind;
	e->bytes = (uint32_t)raw_bytes(&fields[0].type);
	e->little_endian = options->kind == WEIR_FORMAT_RAW && options->raw_little_endian;
	*out = &e->base;
	return WEIR_OK;
}
