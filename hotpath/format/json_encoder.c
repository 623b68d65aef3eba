/* json_encoder.c: columns to one JSON object per row, members in column order. @thread worker or snap, one at a time.
 *
 * What stands between two values (`,"name":`) is put together at creation, so a row is a chain of copies: literal,
 * value, literal, value. Room for a literal and any fixed value is checked once per member; only strings ask for more.
 * Strings are valid UTF-8 (the decoders' promise) and are copied in runs between the few bytes that need an escape, 16
 * at a time. Nested ARRAY, MAP and ROW columns hold JSON text already.
 * Cost (bench_json_encoder, one core of a shared Xeon): 157 ns for a row of two window bounds, a key, a count, a
 * DECIMAL and a DOUBLE, 160 bytes; a third of it is the DOUBLE. */
#include "hotpath/format/format.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "hotpath/format/base64.h"
#include "hotpath/format/number.h"
#include "hotpath/time/civil.h"

/* Rows of one window follow each other, so a timestamp is often the one before: its text is kept. */
struct last_text {
	int64_t ticks;
	uint8_t bytes; /* with both quotes; 0: nothing kept yet */
	char text[WEIR_NUMBER_TEXT_MAX];
};

/* How the usual values are written, which need no more room than any number. */
enum usual { USUAL_NONE, USUAL_TEXT, USUAL_INTEGER };

struct member {
	const struct weir_type *type;
	enum usual usual;
	const uint8_t *literal; /* `,"name":`; the first one written in a row has its comma turned into a brace.
				 * Readable up to the next multiple of LITERAL_STEP, as it is copied */
	uint32_t literal_bytes;
	struct last_text last; /* TIMESTAMP, TIMESTAMP_LTZ */
};

enum { LITERAL_STEP = 32, SHORT_STRING_MAX = 16 };
_Static_assert(SHORT_STRING_MAX + 2 <= WEIR_NUMBER_TEXT_MAX, "a short string is as good as a number");

struct json_encoder {
	struct weir_encoder base;
	size_t room;         /* for a row of numbers, short strings and NULLs */
	struct weir_mem mem; /* literals */
	struct member *members;
	uint32_t member_count;
	bool ignore_null_fields;
	bool iso8601;
};

/* 0: copied as it is; 'u': \u00XX; else the letter behind the backslash. */
static const uint8_t ESCAPE[256] = {
	'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b', 't', 'n', 'u', 'f', 'r', 'u', 'u',         'u',
	'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', ['"'] = '"', ['\\'] = '\\',
};

/* Bytes at the start of s that need no escape. Reads nothing beyond its end. */
static inline size_t plain_run(const uint8_t *s, size_t bytes)
{
	size_t i = 0;
#if defined(__x86_64__)
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
	for (; i + 16 <= bytes; i += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)(s + i));
		__m128i is_control = _mm_cmpeq_epi8(_mm_max_epu8(v, control), control); /* v <= 0x1f, unsigned */
		__m128i hit =
			_mm_or_si128(is_control, _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
		unsigned mask = (unsigned)_mm_movemask_epi8(hit);
		if (mask != 0)
			return i + (size_t)__builtin_ctz(mask);
	}
#endif
	while (i < bytes && ESCAPE[s[i]] == 0)
		i++;
	return i;
}

/* Writes the escape of c at to, returns its length (2 or 6). */
static inline size_t put_escape(uint8_t *to, uint8_t c)
{
	to[0] = '\\';
	to[1] = ESCAPE[c];
	if (to[1] != 'u')
		return 2;
	to[2] = '0';
	to[3] = '0';
	to[4] = (uint8_t)('0' + (c >> 4));
	to[5] = (uint8_t) "0123456789abcdef"[c & 15];
	return 6;
}

/* s in quotes. */
static WEIR_NOINLINE void put_any_string(struct weir_buf *out, const uint8_t *s, size_t bytes)
{
	size_t run = plain_run(s, bytes);
	uint8_t *to = weir_buf_room(out, bytes + 2);
	to[0] = '"';
	if (WEIR_LIKELY(run == bytes)) {
		if (bytes != 0)
			memcpy(to + 1, s, bytes);
		to[bytes + 1] = '"';
		out->bytes += bytes + 2;
		return;
	}
	out->bytes++;
	for (;;) {
		to = weir_buf_room(out, run + 8);
		memcpy(to, s, run);
		s += run;
		bytes -= run;
		out->bytes += run;
		if (bytes == 0)
			break;
		out->bytes += put_escape(to + run, s[0]);
		s++;
		bytes--;
		run = plain_run(s, bytes);
	}
	weir_buf_put_byte(out, '"');
}

/* Not 0 in some top bit of a byte iff v has a byte below 0x20, a quote or a backslash; other bits are noise. Bytes from
 * 0x80 on are none of them. */
static inline uint64_t word_escapes(uint64_t v)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t quote = v ^ ones * '"', slash = v ^ ones * '\\';
	return ((v - ones * 0x20) | (quote - ones) | (slash - ones)) & ~v;
}

/* Whether one of the 16 bytes needs an escape. */
static inline bool words_escape(uint64_t first, uint64_t last)
{
#if defined(__x86_64__)
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
	__m128i v = _mm_set_epi64x((int64_t)last, (int64_t)first);
	__m128i hit = _mm_or_si128(_mm_cmpeq_epi8(_mm_max_epu8(v, control), control),
				   _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
	return _mm_movemask_epi8(hit) != 0;
#else
	return ((word_escapes(first) | word_escapes(last)) & UINT64_C(0x8080808080808080)) != 0;
#endif
}

/* A short s, 4 to 16 bytes, in quotes at `to`: it is looked at and copied as two words, which overlap. Returns what
 * follows; NULL: it is longer or shorter, or a byte of it needs an escape; `to` holds nothing then. */
static inline uint8_t *put_short(uint8_t *to, const uint8_t *s, size_t bytes)
{
	uint64_t first, last;
	if (WEIR_LIKELY(bytes - 8 <= SHORT_STRING_MAX - 8)) {
		first = weir_load_le64(s);
		last = weir_load_le64(s + bytes - 8);
		if (WEIR_UNLIKELY(words_escape(first, last)))
			return NULL;
		weir_store_le64(to + 1, first);
		weir_store_le64(to + 1 + bytes - 8, last);
	} else if (WEIR_LIKELY(bytes - 4 < 4)) {
		first = weir_load_le32(s);
		last = weir_load_le32(s + bytes - 4);
		if (WEIR_UNLIKELY((word_escapes(first | last << 32) & UINT64_C(0x8080808080808080)) != 0))
			return NULL;
		weir_store_le32(to + 1, (uint32_t)first);
		weir_store_le32(to + 1 + bytes - 4, (uint32_t)last);
	} else {
		return NULL;
	}
	to[0] = '"';
	to[bytes + 1] = '"';
	return to + bytes + 2;
}

/* s in quotes. Usually nothing needs an escape, and the whole is one copy. */
static inline void put_string(struct weir_buf *out, const uint8_t *s, size_t bytes)
{
	if (put_short(weir_buf_room(out, bytes + 2), s, bytes) != NULL) {
		out->bytes += bytes + 2;
		return;
	}
	put_any_string(out, s, bytes);
}

/* NaN and the infinities have no JSON text: NULL. */
static inline size_t put_double(uint8_t *to, const struct weir_type *t, double v)
{
	if (WEIR_UNLIKELY(!__builtin_isfinite(v))) {
		memcpy(to, "null", 4);
		return 4;
	}
	return t->kind == WEIR_KIND_FLOAT ? weir_print_float((float)v, (char *)to) : weir_print_double(v, (char *)to);
}

static void keep_timestamp(const struct json_encoder *e, struct member *m, int64_t ticks)
{
	const struct weir_type *t = m->type;
	size_t bytes = weir_civil_print_timestamp(ticks, weir_ticks_per_ms(t), e->iso8601 ? 'T' : ' ',
						  t->kind == WEIR_KIND_TIMESTAMP_LTZ, m->last.text + 1);
	m->last.text[0] = '"';
	m->last.text[bytes + 1] = '"';
	m->last.bytes = (uint8_t)(bytes + 2);
	m->last.ticks = ticks;
}

/* The value at row (not NULL, not const) into room that has been checked for fixed values. */
static inline void put_value(const struct json_encoder *e, struct member *m, const struct weir_col *c, uint32_t row,
			     struct weir_buf *out)
{
	const struct weir_type *t = m->type;
	uint8_t *to = out->data + out->bytes;
	const struct weir_str *s;
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		memcpy(to, c->u8[row] ? "true" : "false", 5);
		out->bytes += c->u8[row] ? 4 : 5;
		return;
	case WEIR_KIND_TINYINT:
	case WEIR_KIND_SMALLINT:
	case WEIR_KIND_INT:
	case WEIR_KIND_BIGINT:
		out->bytes += weir_print_i64(c->i64[row], (char *)to);
		return;
	case WEIR_KIND_FLOAT:
	case WEIR_KIND_DOUBLE:
		out->bytes += put_double(to, t, c->f64[row]);
		return;
	case WEIR_KIND_DECIMAL:
		if (t->precision <= 18)
			out->bytes += weir_print_decimal_i64(c->i64[row], t->scale, (char *)to);
		else
			out->bytes += weir_print_decimal(c->i128[row], t->scale, (char *)to);
		return;
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR:
		put_string(out, c->str[row].data, c->str[row].bytes);
		return;
	case WEIR_KIND_ARRAY:
	case WEIR_KIND_MAP:
	case WEIR_KIND_ROW:
		weir_buf_put(out, c->str[row].data, c->str[row].bytes);
		return;
	case WEIR_KIND_BYTES:
		s = &c->str[row];
		to = weir_buf_room(out, weir_base64_text_bytes(s->bytes) + 2);
		to[0] = '"';
		out->bytes += 2 + weir_base64_encode(s->data, s->bytes, (char *)to + 1);
		out->data[out->bytes - 1] = '"';
		return;
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		if (WEIR_UNLIKELY(c->i64[row] != m->last.ticks || m->last.bytes == 0))
			keep_timestamp(e, m, c->i64[row]);
		memcpy(to, m->last.text, WEIR_NUMBER_TEXT_MAX);
		out->bytes += m->last.bytes;
		return;
	default: /* DATE, TIME, intervals */
		weir_buf_put_byte(out, '"');
		weir_text_print(t, c, row, e->iso8601, out);
		weir_buf_put_byte(out, '"');
		return;
	}
}

void weir_json_put_value(const struct weir_type *t, const struct weir_col *c, uint32_t row, struct weir_buf *out)
{
	static const struct json_encoder plain;
	struct member m = {.type = t};
	(void)weir_buf_room(out, WEIR_NUMBER_TEXT_MAX);
	put_value(&plain, &m, c, c->is_const ? 0 : row, out);
}

/* v, most often of one digit. */
static inline uint8_t *put_integer(uint8_t *to, int64_t v)
{
	if ((uint64_t)v < 10) {
		*to = (uint8_t)('0' + v);
		return to + 1;
	}
	return to + weir_print_i64(v, (char *)to);
}

/* May write past it, within the room. */
static inline uint8_t *put_literal(uint8_t *to, const struct member *m)
{
	memcpy(to, m->literal, LITERAL_STEP);
	for (uint32_t k = LITERAL_STEP; WEIR_UNLIKELY(k < m->literal_bytes); k += LITERAL_STEP)
		memcpy(to + k, m->literal + k, LITERAL_STEP);
	return to + m->literal_bytes;
}

/* Name and value, whatever it is, at `to`; returns what follows, with room for the rest of the row. */
static WEIR_NOINLINE uint8_t *put_any(const struct json_encoder *e, struct member *m, const struct weir_col *c,
				      uint32_t row, uint8_t *to, struct weir_buf *out)
{
	bool is_null = weir_col_is_null(c, row) || m->type->kind == WEIR_KIND_NULL;
	if (is_null && e->ignore_null_fields)
		return to;
	to = put_literal(to, m);
	if (is_null) {
		memcpy(to, "null", 4);
		return to + 4;
	}
	out->bytes = (size_t)(to - out->data);
	put_value(e, m, c, c->is_const ? 0 : row, out);
	return weir_buf_room(out, e->room);
}

static void json_encode(struct weir_encoder *base, const struct weir_col *cols, uint32_t row, struct weir_buf *out)
{
	const struct json_encoder *e = (const struct json_encoder *)base;
	size_t start = out->bytes;
	uint8_t *to = weir_buf_room(out, e->room);
	const struct weir_col *c = cols;
	for (struct member *m = e->members, *end = m + e->member_count; m != end; m++, c++) {
		uint8_t *after = NULL;
		if (WEIR_LIKELY(!c->is_const && !weir_col_is_null(c, row))) {
			if (m->usual == USUAL_TEXT)
				after = put_short(put_literal(to, m), c->str[row].data, c->str[row].bytes);
			else if (m->usual == USUAL_INTEGER)
				after = put_integer(put_literal(to, m), c->i64[row]);
		}
		to = WEIR_LIKELY(after != NULL) ? after : put_any(e, m, c, row, to, out);
	}
	uint8_t *first = out->data + start;
	if (to == first)
		to++;
	*first = '{';
	*to++ = '}';
	out->bytes = (size_t)(to - out->data);
}

static void json_encoder_destroy(struct weir_encoder *base)
{
	struct json_encoder *e = (struct json_encoder *)base;
	weir_mem_fini(&e->mem);
	free(e);
}

static enum usual usual_of(enum weir_kind kind)
{
	switch (kind) {
	case WEIR_KIND_TINYINT:
	case WEIR_KIND_SMALLINT:
	case WEIR_KIND_INT:
	case WEIR_KIND_BIGINT:
		return USUAL_INTEGER;
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR:
		return USUAL_TEXT;
	default:
		return USUAL_NONE;
	}
}

enum weir_err weir_json_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
				       const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg)
{
	struct json_encoder *e = weir_xcalloc(1, sizeof *e);
	struct weir_buf b = {0};
	(void)dg; /* JSON holds every type */
	e->base.encode = json_encode;
	e->base.destroy = json_encoder_destroy;
	e->ignore_null_fields = options->ignore_null_fields;
	e->iso8601 = options->timestamp_iso8601;
	e->member_count = field_count;
	e->room = 2; /* braces */
	e->members = weir_mem_take(&e->mem, field_count * sizeof *e->members);
	for (uint32_t i = 0; i < field_count; i++) {
		struct member *m = &e->members[i];
		b.bytes = 0;
		weir_buf_put_byte(&b, ',');
		put_string(&b, (const uint8_t *)fields[i].name, strlen(fields[i].name));
		weir_buf_put_byte(&b, ':');
		m->type = &fields[i].type;
		m->usual = usual_of(m->type->kind);
		m->literal = memcpy(weir_mem_take(&e->mem, weir_align_up(b.bytes, LITERAL_STEP)), b.data, b.bytes);
		m->literal_bytes = (uint32_t)b.bytes;
		e->room += weir_align_up(b.bytes, LITERAL_STEP) + WEIR_NUMBER_TEXT_MAX;
	}
	weir_buf_fini(&b);
	*out = &e->base;
	return WEIR_OK;
}
