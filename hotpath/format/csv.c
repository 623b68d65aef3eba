/* csv.c: one payload is one row of text cells (RFC 4180, with Flink's options). @thread worker (decode), worker or snap
 * (encode).
 *
 * What the RFC leaves open, decided here:
 *  - A cell is quoted only if its first byte is the quote. A quote further on in an unquoted cell is kept as it stands.
 *  - Behind a closing quote comes the delimiter or the end; anything else refuses the record (reason csv).
 *  - Inside quotes a doubled quote is one, and line breaks and delimiters are data. A quote that is not closed before
 * the payload ends refuses the record: rows never run into the next payload.
 *  - One line break (LF or CRLF) may end the payload; one elsewhere outside quotes refuses it: two rows.
 *  - An escape character, where one is set, makes the byte behind it data, inside quotes or out.
 *  - Fewer cells than columns, or more (without csv.ignore-trailing-columns), refuse the record.
 *  - NULL is an unquoted cell equal to csv.null-literal, and an empty unquoted cell of any type but CHAR, VARCHAR and
 *    STRING. A quoted cell is never NULL.
 *  - With csv.allow-comments, lines that begin with # are skipped before the row.
 *  - Integers are taken as time (unit csv.timestamp-unit, ms unless set) for TIMESTAMP columns; BYTES are base64.
 * The encoder quotes a cell only where reading it back needs that, and writes no line break at the end. With the quote
 * disabled and no escape character set, a delimiter inside a string is written as it is, as Flink does.
 *
 * Cost: 90 ns an order of six cells, three of them wanted (bench_csv). */
#include "hotpath/format/format.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "hotpath/core/diag.h"
#include "hotpath/format/base64.h"
#include "hotpath/format/number.h"

enum { NOT_READ = UINT32_MAX };

/* Bytes that end or change a cell, by what they are. */
enum byte_class { CLASS_DATA, CLASS_DELIMITER, CLASS_BREAK, CLASS_ESCAPE };

struct csv_decoder {
	struct weir_decoder base;
	uint8_t class_of[256];
	char delimiter;
	char quote; /* 0: disabled */
	char escape;
	bool allow_comments;
	bool ignore_trailing;
	bool ignore_errors;
	const char *null_literal;
	size_t null_bytes;
	int64_t unit_per_second;
	uint32_t bytes_max;
	const struct weir_field *fields;
	uint32_t field_count;
	uint32_t column_count;
	uint32_t *field_of; /* by cell: index into fields, or NOT_READ */
};

/* A cell as it stands in the payload: what is between its quotes, or all of it. */
struct cell {
	const uint8_t *data;
	const uint8_t *end;
	bool quoted;
	bool has_escape; /* a doubled quote or an escape character: data must be copied */
};

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

/* The quoted cell that starts behind its quote at p: sets *c, returns what follows the closing quote, NULL if none. */
static const uint8_t *scan_quoted(const struct csv_decoder *d, const uint8_t *p, const uint8_t *end, struct cell *c)
{
	c->data = p;
	c->quoted = true;
	c->has_escape = false;
	for (;;) {
		const uint8_t *q;
		if (WEIR_LIKELY(d->escape == 0)) {
			q = memchr(p, d->quote, (size_t)(end - p));
		} else {
			for (q = p; q < end && *q != (uint8_t)d->quote; q++) {
				if (*q == (uint8_t)d->escape) {
					c->has_escape = true;
					if (++q == end)
						break;
				}
			}
			q = q < end ? q : NULL;
		}
		if (q == NULL)
			return NULL;
		if (q + 1 < end && q[1] == (uint8_t)d->quote) {
			c->has_escape = true;
			p = q + 2;
			continue;
		}
		c->end = q;
		return q + 1;
	}
}

/* Goes over bytes that mean nothing, 16 at a time where the CPU always can; stops at one that may mean something, or at
 * the end. */
WEIR_INLINE const uint8_t *skip_data(const struct csv_decoder *d, const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
	const __m128i delimiter = _mm_set1_epi8(d->delimiter), cr = _mm_set1_epi8('\r'), lf = _mm_set1_epi8('\n');
	const __m128i escape = _mm_set1_epi8(d->escape != 0 ? d->escape : d->delimiter);
	for (; end - p >= 16; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i found = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, delimiter), _mm_cmpeq_epi8(v, escape)),
					     _mm_or_si128(_mm_cmpeq_epi8(v, cr), _mm_cmpeq_epi8(v, lf)));
		unsigned mask = (unsigned)_mm_movemask_epi8(found);
		if (mask != 0)
			return p + __builtin_ctz(mask);
	}
#endif
	while (p < end && d->class_of[*p] == CLASS_DATA)
		p++;
	return p;
}

/* The unquoted cell at p: sets *c, returns its end: at a delimiter, a line break or the payload's end. */
static const uint8_t *scan_plain(const struct csv_decoder *d, const uint8_t *p, const uint8_t *end, struct cell *c)
{
	c->data = p;
	c->quoted = false;
	c->has_escape = false;
	while (p < end) {
		p = skip_data(d, p, end);
		if (p >= end)
			break;
		uint8_t class = d->class_of[*p];
		if (class == CLASS_DATA) {
			p++;
		} else if (class == CLASS_ESCAPE) {
			c->has_escape = true;
			p += p + 1 < end ? 2 : 1;
		} else {
			break;
		}
	}
	c->end = p;
	return p;
}

/* The cell's text without escapes: in place where it has none, else copied into scratch. */
static struct weir_slice cell_text(const struct csv_decoder *d, const struct cell *c, struct weir_scratch *scratch)
{
	size_t bytes = (size_t)(c->end - c->data);
	if (WEIR_LIKELY(!c->has_escape))
		return (struct weir_slice){c->data, bytes};
	uint8_t *to = weir_scratch_take(scratch, bytes), *start = to;
	for (const uint8_t *p = c->data; p < c->end; p++) {
		if (d->escape != 0 && *p == (uint8_t)d->escape && p + 1 < c->end)
			p++;
		else if (c->quoted && *p == (uint8_t)d->quote)
			p++;
		*to++ = *p;
	}
	return (struct weir_slice){start, (size_t)(to - start)};
}

static bool is_integer_text(const char *s, size_t bytes)
{
	size_t i = bytes > 0 && (s[0] == '-' || s[0] == '+');
	if (i == bytes)
		return false;
	for (; i < bytes; i++) {
		if ((unsigned)(unsigned char)s[i] - '0' > 9)
			return false;
	}
	return true;
}

/* One cell as a value of its column; NULL sets the null bit. */
static enum weir_reason cell_value(const struct csv_decoder *d, const struct weir_type *t, const struct cell *c,
				   struct weir_col *col, uint32_t row, struct weir_scratch *scratch)
{
	struct weir_slice s = cell_text(d, c, scratch);
	bool is_null = !c->quoted && ((s.bytes == 0 && !weir_kind_is_string(t->kind)) ||
				      (d->null_literal != NULL && s.bytes == d->null_bytes &&
				       memcmp(s.data, d->null_literal, s.bytes) == 0));
	if (is_null) {
		if (t->not_null)
			return WEIR_REASON_NULL;
		weir_col_set_null(col, row);
		return WEIR_REASON_NONE;
	}
	if (t->kind == WEIR_KIND_BYTES) {
		size_t bytes;
		uint8_t *to = weir_scratch_take(scratch, weir_base64_data_bytes_max(s.bytes));
		if (!weir_base64_decode(s.data, s.bytes, to, &bytes))
			return WEIR_REASON_TYPE;
		col->str[row] = (struct weir_str){to, (uint32_t)bytes, 0};
		return WEIR_REASON_NONE;
	}
	if (weir_kind_is_timestamp(t->kind) && is_integer_text(s.data, s.bytes)) {
		int64_t v, ticks;
		if (weir_parse_i64(s.data, s.bytes, &v) != WEIR_NUMBER_OK ||
		    !weir_unit_to_ticks(v, d->unit_per_second, weir_ticks_per_ms(t), &ticks))
			return WEIR_REASON_RANGE;
		col->i64[row] = ticks;
		return WEIR_REASON_NONE;
	}
	return weir_text_parse(t, s.data, s.bytes, col, row);
}

static const char *reason_detail(enum weir_reason r)
{
	switch (r) {
	case WEIR_REASON_NULL:
		return "NULL in a NOT NULL column";
	case WEIR_REASON_RANGE:
		return "out of the type's range";
	default:
		return "not of the column's type";
	}
}

/* Skips comment lines at the start. */
static const uint8_t *skip_comments(const uint8_t *p, const uint8_t *end)
{
	while (p < end && *p == '#') {
		const uint8_t *line_end = memchr(p, '\n', (size_t)(end - p));
		p = line_end == NULL ? end : line_end + 1;
	}
	return p;
}

/* What may follow the last cell at p: nothing, or one line break. */
static bool at_end(const uint8_t *p, const uint8_t *end)
{
	if (p < end && *p == '\r')
		p++;
	if (p < end && *p == '\n')
		p++;
	return p == end;
}

static bool decode_row(const struct csv_decoder *d, const uint8_t *payload, uint32_t bytes, struct weir_col *cols,
		       uint32_t row, struct weir_scratch *scratch, struct refusal *rf)
{
	const uint8_t *end = payload + bytes, *p = payload;
	size_t bad;
	if (bytes > d->bytes_max)
		return refuse(rf, WEIR_REASON_SIZE, 0, NULL, "longer than record.bytes.max");
	if (!weir_utf8_check(payload, bytes, &bad))
		return refuse(rf, WEIR_REASON_UTF8, bad, NULL, "invalid UTF-8");
	if (d->allow_comments) {
		p = skip_comments(p, end);
		if (p == end && p > payload)
			return refuse(rf, WEIR_REASON_CSV, 0, NULL, "a comment without a row");
	}
	for (uint32_t i = 0;; i++) {
		struct cell c;
		const uint8_t *start = p;
		if (d->quote != 0 && p < end && *p == (uint8_t)d->quote) {
			p = scan_quoted(d, p + 1, end, &c);
			if (p == NULL)
				return refuse(rf, WEIR_REASON_CSV, (size_t)(start - payload), NULL,
					      "a quote is not closed");
		} else {
			p = scan_plain(d, p, end, &c);
		}
		if (i < d->column_count && d->field_of[i] != NOT_READ) {
			const struct weir_field *f = &d->fields[d->field_of[i]];
			struct weir_col *col = &cols[d->field_of[i]];
			enum weir_reason r = cell_value(d, &f->type, &c, col, row, scratch);
			if (WEIR_UNLIKELY(r != WEIR_REASON_NONE)) {
				if (!d->ignore_errors)
					return refuse(rf, r, (size_t)(start - payload), f->name, reason_detail(r));
				weir_col_set_null(col, row);
			}
		}
		if (p < end && d->class_of[*p] == CLASS_DELIMITER) {
			if (i + 1 == d->column_count && !d->ignore_trailing)
				return refuse(rf, WEIR_REASON_CSV, (size_t)(p - payload), NULL,
					      "more cells than columns");
			p++;
			continue;
		}
		if (!at_end(p, end))
			return refuse(rf, WEIR_REASON_CSV, (size_t)(p - payload), NULL,
				      c.quoted ? "text behind a closing quote" : "more than one row");
		if (i + 1 < d->column_count)
			return refuse(rf, WEIR_REASON_CSV, (size_t)(p - payload), NULL, "fewer cells than columns");
		return true;
	}
}

static void csv_decode(struct weir_decoder *base, const struct weir_record *records, struct weir_sel *sel,
		       struct weir_col *cols, struct weir_scratch *scratch, struct weir_row_errors *errors)
{
	struct csv_decoder *d = (struct csv_decoder *)base;
	uint32_t kept = 0;
	for (uint32_t f = 0; f < d->field_count; f++)
		weir_col_clear_nulls(&cols[f]);
	for (uint32_t i = 0; i < sel->count; i++) {
		uint16_t row = sel->row[i];
		const uint8_t *p = base->on_key ? records[row].key : records[row].value;
		uint32_t bytes = base->on_key ? records[row].key_bytes : records[row].value_bytes;
		struct refusal rf;
		if (p != NULL && WEIR_UNLIKELY(!decode_row(d, p, bytes, cols, row, scratch, &rf))) {
			weir_row_errors_add(errors, row, rf.reason, rf.at, rf.field, rf.detail);
			continue;
		}
		if (p == NULL) {
			for (uint32_t f = 0; f < d->field_count; f++)
				weir_col_set_null(&cols[f], row);
		}
		sel->row[kept++] = row;
	}
	sel->count = kept;
}

static void csv_decoder_destroy(struct weir_decoder *base)
{
	struct csv_decoder *d = (struct csv_decoder *)base;
	free(d->field_of);
	free(d);
}

static enum weir_err check_options(const struct weir_format_options *o, const struct weir_field *fields, uint32_t count,
				   struct weir_diag **dg)
{
	char delimiter = o->csv_delimiter ? o->csv_delimiter : ',';
	char quote = o->csv_disable_quote ? 0 : o->csv_quote ? o->csv_quote : '"';
	char text[128];
	if (delimiter == quote || (o->csv_escape != 0 && (o->csv_escape == delimiter || o->csv_escape == quote)))
		return weir_diag_set(dg, WEIR_E_CONF,
				     "csv.field-delimiter, csv.quote-character and csv.escape-character must differ");
	for (uint32_t i = 0; i < count; i++) {
		enum weir_kind k = fields[i].type.kind;
		if (k == WEIR_KIND_ARRAY || k == WEIR_KIND_MAP || k == WEIR_KIND_ROW)
			return weir_diag_set(dg, WEIR_E_CONF, "format 'csv' cannot hold column '%s' of type %s",
					     fields[i].name, weir_type_text(&fields[i].type, text, sizeof text));
	}
	return WEIR_OK;
}

enum weir_err weir_csv_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
				      const struct weir_field *fields, uint32_t field_count,
				      const struct weir_field *all_fields, uint32_t all_count, bool on_key,
				      struct weir_diag **dg)
{
	enum weir_err err = check_options(options, fields, field_count, dg);
	if (err != WEIR_OK)
		return err;
	struct csv_decoder *d = weir_xcalloc(1, sizeof *d);
	d->base.decode = csv_decode;
	d->base.destroy = csv_decoder_destroy;
	d->base.on_key = on_key;
	d->quote = options->csv_disable_quote ? '\0' : options->csv_quote ? options->csv_quote : '"';
	d->escape = options->csv_escape;
	d->delimiter = options->csv_delimiter ? options->csv_delimiter : ',';
	d->class_of[(uint8_t)d->delimiter] = CLASS_DELIMITER;
	d->class_of['\n'] = CLASS_BREAK;
	d->class_of['\r'] = CLASS_BREAK;
	if (d->escape != 0)
		d->class_of[(uint8_t)d->escape] = CLASS_ESCAPE;
	d->allow_comments = options->csv_allow_comments;
	d->ignore_trailing = options->csv_ignore_trailing;
	d->ignore_errors = options->ignore_parse_errors;
	d->null_literal = options->csv_null_literal;
	d->null_bytes = options->csv_null_literal != NULL ? strlen(options->csv_null_literal) : 0;
	d->unit_per_second = options->unit_per_second;
	d->bytes_max = options->record_bytes_max ? options->record_bytes_max : 16u << 20;
	d->fields = fields;
	d->field_count = field_count;
	d->column_count = all_count;
	d->field_of = weir_xcalloc(all_count, sizeof *d->field_of);
	for (uint32_t i = 0; i < all_count; i++) {
		d->field_of[i] = NOT_READ;
		for (uint32_t f = 0; f < field_count; f++) {
			if (fields[f].ordinal == all_fields[i].ordinal)
				d->field_of[i] = f;
		}
	}
	*out = &d->base;
	return WEIR_OK;
}

struct csv_encoder {
	struct weir_encoder base;
	const struct weir_field *fields;
	uint32_t field_count;
	uint8_t special[256]; /* 1: a string with this byte must be quoted (or, without quotes, the byte escaped) */
	char delimiter;
	char quote; /* 0: disabled */
	char escape;
	bool allow_comments;
	bool iso8601;
	const char *null_literal;
	size_t null_bytes;
};

/* Whether reading the bare text back would give something else. */
static bool needs_quotes(const struct csv_encoder *e, const uint8_t *s, size_t bytes, bool first)
{
	if (bytes == 0)
		return true;
	if (s[0] == ' ' || s[bytes - 1] == ' ' || (first && e->allow_comments && s[0] == '#'))
		return true;
	if (e->null_literal != NULL && bytes == e->null_bytes && memcmp(s, e->null_literal, bytes) == 0)
		return true;
	for (size_t i = 0; i < bytes; i++) {
		if (e->special[s[i]])
			return true;
	}
	return false;
}

static void put_string(const struct csv_encoder *e, const uint8_t *s, size_t bytes, bool first, struct weir_buf *out)
{
	bool quote = e->quote != 0 && needs_quotes(e, s, bytes, first);
	if (!quote && e->escape == 0) {
		weir_buf_put(out, s, bytes);
		return;
	}
	uint8_t *start = weir_buf_room(out, 2 * bytes + 2), *to = start;
	if (quote)
		*to++ = (uint8_t)e->quote;
	for (size_t i = 0; i < bytes; i++) {
		if (quote && s[i] == (uint8_t)e->quote)
			*to++ = (uint8_t)e->quote;
		else if (e->escape != 0 && (s[i] == (uint8_t)e->escape || (!quote && e->special[s[i]])))
			*to++ = (uint8_t)e->escape;
		*to++ = s[i];
	}
	if (quote)
		*to++ = (uint8_t)e->quote;
	out->bytes += (size_t)(to - start);
}

static void csv_encode(struct weir_encoder *base, const struct weir_col *cols, uint32_t row, struct weir_buf *out)
{
	struct csv_encoder *e = (struct csv_encoder *)base;
	for (uint32_t i = 0; i < e->field_count; i++) {
		const struct weir_type *t = &e->fields[i].type;
		const struct weir_col *c = &cols[i];
		if (i > 0)
			weir_buf_put_byte(out, (uint8_t)e->delimiter);
		if (weir_col_is_null(c, row)) {
			weir_buf_put(out, e->null_literal, e->null_bytes);
		} else if (weir_kind_is_string(t->kind)) {
			const struct weir_str *s = &c->str[c->is_const ? 0 : row];
			put_string(e, s->data, s->bytes, i == 0, out);
		} else {
			/* Numbers, times and base64 hold nothing special, unless somebody made a digit the delimiter.
			 */
			size_t start = out->bytes;
			weir_text_print(t, c, row, e->iso8601, out);
			if (WEIR_UNLIKELY(needs_quotes(e, out->data + start, out->bytes - start, i == 0))) {
				struct weir_buf copy = {0};
				weir_buf_put(&copy, out->data + start, out->bytes - start);
				out->bytes = start;
				put_string(e, copy.data, copy.bytes, i == 0, out);
				weir_buf_fini(&copy);
			}
		}
	}
}

static void csv_encoder_destroy(struct weir_encoder *base)
{
	free(base);
}

enum weir_err weir_csv_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
				      const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg)
{
	enum weir_err err = check_options(options, fields, field_count, dg);
	if (err != WEIR_OK)
		return err;
	struct csv_encoder *e = weir_xcalloc(1, sizeof *e);
	e->base.encode = csv_encode;
	e->base.destroy = csv_encoder_destroy;
	e->fields = fields;
	e->field_count = field_count;
	e->delimiter = options->csv_delimiter ? options->csv_delimiter : ',';
	e->quote = options->csv_disable_quote ? '\0' : options->csv_quote ? options->csv_quote : '"';
	e->escape = options->csv_escape;
	e->special[(uint8_t)e->delimiter] = 1;
	e->special['\n'] = 1;
	e->special['\r'] = 1;
	if (e->quote != 0)
		e->special[(uint8_t)e->quote] = 1;
	if (e->escape != 0)
		e->special[(uint8_t)e->escape] = 1;
	e->allow_comments = options->csv_allow_comments;
	e->iso8601 = options->timestamp_iso8601;
	e->null_literal = options->csv_null_literal;
	e->null_bytes = options->csv_null_literal != NULL ? strlen(options->csv_null_literal) : 0;
	*out = &e->base;
	return WEIR_OK;
}
