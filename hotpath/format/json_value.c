/* json_value.c: a checked JSON token to one typed column value, and the parts of strings that need care: escapes,
 * UTF-8. The speculative parser has its own way for plain strings, integers and decimals. @thread worker */
#include "hotpath/format/json_private.h"

#include "hotpath/core/utf8.h"
#include "hotpath/format/base64.h"
#include "hotpath/format/json_number.h"
#include "hotpath/format/number.h"

/* ---- strings ---- */

static int hex_value(uint8_t c)
{
	if (weir_json_is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int32_t hex4(const uint8_t *s)
{
	int32_t value = 0;
	for (int i = 0; i < 4; i++) {
		int h = hex_value(s[i]);
		if (h < 0)
			return -1;
		value = value * 16 + h;
	}
	return value;
}

const uint8_t *weir_json_escape_end(struct weir_json *js, const uint8_t *s)
{
	/* The payload's pad makes every look-ahead here readable; what lies beyond the end is not taken for the
	 * document. */
	static const char unterminated[] = "the string does not end", bad[] = "unknown escape";
	static const char lone[] = "a lone surrogate";
	if (js->end - s < 2) {
		weir_json_refuse(js, WEIR_REASON_JSON, js->end, NULL, unterminated);
		return NULL;
	}
	switch (s[1]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return s + 2;
	case 'u':
		break;
	default:
		weir_json_refuse(js, WEIR_REASON_JSON, s + 1, NULL, bad);
		return NULL;
	}
	for (int i = 2; i < 6; i++) {
		if (s + i >= js->end) {
			weir_json_refuse(js, WEIR_REASON_JSON, js->end, NULL, unterminated);
			return NULL;
		}
		if (hex_value(s[i]) < 0) {
			weir_json_refuse(js, WEIR_REASON_JSON, s + i, NULL, bad);
			return NULL;
		}
	}
	int32_t unit = hex4(s + 2);
	if (unit < 0xd800 || unit > 0xdfff)
		return s + 6;
	int32_t low = js->end - s >= 12 && s[6] == '\\' && s[7] == 'u' ? hex4(s + 8) : -1;
	if (unit >= 0xdc00 || low < 0xdc00 || low > 0xdfff) {
		weir_json_refuse(js, WEIR_REASON_UTF8, s, NULL, lone);
		return NULL;
	}
	return s + 12;
}

/* Bytes of the valid sequence at s of at most left bytes; 0: invalid; -1: cut off by the end. */
static int utf8_sequence(const uint8_t *s, ptrdiff_t left)
{
	uint8_t c = s[0];
	int bytes = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
	for (int i = 1; i < bytes; i++) {
		if (i >= left)
			return -1;
		uint8_t low = 0x80, high = 0xbf;
		if (i == 1) {
			low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
			high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
		}
		if (s[i] < low || s[i] > high)
			return 0;
	}
	return bytes;
}

const uint8_t *weir_json_utf8_end(struct weir_json *js, const uint8_t *s)
{
	while (s < js->end && *s >= 0x80) {
		int bytes = utf8_sequence(s, js->end - s);
		if (bytes <= 0) {
			if (bytes < 0)
				weir_json_refuse(js, WEIR_REASON_JSON, js->end, NULL, "the string does not end");
			else
				weir_json_refuse(js, WEIR_REASON_UTF8, s, NULL, "invalid UTF-8");
			return NULL;
		}
		s += bytes;
	}
	return s;
}

static size_t utf8_put(uint8_t *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

size_t weir_json_unescape(const uint8_t *s, const uint8_t *e, uint8_t *out)
{
	uint8_t *to = out;
	while (s < e) {
		const uint8_t *escape = memchr(s, '\\', (size_t)(e - s));
		size_t plain = (size_t)((escape != NULL ? escape : e) - s);
		memcpy(to, s, plain);
		to += plain;
		if (escape == NULL)
			break;
		s = escape + 2;
		switch (escape[1]) {
		case 'b':
			*to++ = '\b';
			break;
		case 'f':
			*to++ = '\f';
			break;
		case 'n':
			*to++ = '\n';
			break;
		case 'r':
			*to++ = '\r';
			break;
		case 't':
			*to++ = '\t';
			break;
		case 'u': {
			uint32_t c = (uint32_t)hex4(s);
			s += 4;
			if (c >= 0xd800 && c <= 0xdfff) {
				c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)hex4(s + 2) - 0xdc00);
				s += 6;
			}
			to += utf8_put(to, c);
			break;
		}
		default:
			*to++ = escape[1];
			break;
		}
	}
	return (size_t)(to - out);
}

/* ---- numbers ---- */

/* A token that is nothing but up to 18 digits, the usual integer: false where it is not. */
WEIR_INLINE bool plain_integer(const uint8_t *s, const uint8_t *e, int64_t *out)
{
	bool negative = *s == '-';
	s += negative;
	if (e - s > 18 || weir_json_digits_end(s, e) != e)
		return false;
	int64_t value = 0;
	for (; e - s >= 8; s += 8)
		value = value * 100000000 + (int64_t)weir_json_eight_digits(weir_load_le64(s));
	for (; s < e; s++)
		value = value * 10 + (*s - '0');
	*out = negative ? -value : value;
	return true;
}

/* A checked number token into a numeric or time column. *detail: what was wanted, when refused. */
static enum weir_reason number_convert(struct weir_json *js, const struct weir_json_field *f, const uint8_t *s,
				       const uint8_t *e, struct weir_col *c, uint32_t row, const char **detail)
{
	const char *text = (const char *)s;
	size_t bytes = (size_t)(e - s);
	enum weir_number_result result = WEIR_NUMBER_OK;
	int64_t value;
	double real;
	float single;
	weir_i128 wide;
	switch (f->type.kind) {
	case WEIR_KIND_TINYINT:
	case WEIR_KIND_SMALLINT:
	case WEIR_KIND_INT:
	case WEIR_KIND_BIGINT:
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		if (!plain_integer(s, e, &value))
			result = weir_parse_i64(text, bytes, &value);
		*detail = "expected an integer";
		if (result == WEIR_NUMBER_MALFORMED)
			return WEIR_REASON_TYPE;
		*detail = "out of the type's range";
		if (result == WEIR_NUMBER_RANGE)
			return WEIR_REASON_RANGE;
		if (weir_kind_is_timestamp(f->type.kind)) {
			if (!weir_unit_to_ticks(value, js->unit_per_second, weir_ticks_per_ms(&f->type), &value))
				return WEIR_REASON_RANGE;
		} else if (value < f->int_min || value > f->int_max) {
			return WEIR_REASON_RANGE;
		}
		c->i64[row] = value;
		return WEIR_REASON_NONE;
	case WEIR_KIND_DECIMAL:
		result = weir_parse_decimal(text, bytes, f->type.precision, f->type.scale, &wide);
		if (result == WEIR_NUMBER_OK && f->phys == WEIR_PHYS_I64)
			c->i64[row] = (int64_t)wide;
		else if (result == WEIR_NUMBER_OK)
			c->i128[row] = wide;
		break;
	case WEIR_KIND_DOUBLE:
		result = weir_parse_double(text, bytes, &real);
		if (result == WEIR_NUMBER_OK)
			c->f64[row] = real;
		break;
	case WEIR_KIND_FLOAT:
		result = weir_parse_float(text, bytes, &single);
		if (result == WEIR_NUMBER_OK)
			c->f64[row] = (double)single;
		break;
	default:
		*detail = "a number where the column is of another type";
		return WEIR_REASON_TYPE;
	}
	*detail = "out of the type's range";
	return result == WEIR_NUMBER_OK ? WEIR_REASON_NONE : WEIR_REASON_RANGE;
}

/* ---- containers ---- */

WEIR_INLINE bool is_space(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The end of the string token at s (an opening quote) of a checked text. */
static const uint8_t *string_token_end(const uint8_t *s, const uint8_t *e)
{
	for (s++; s < e && *s != '"'; s++)
		s += *s == '\\';
	return s + 1;
}

/* The container's text without white space between its tokens; borrowed where there is none. */
static struct weir_str compact_text(struct weir_json *js, const uint8_t *s, const uint8_t *e)
{
	const uint8_t *p = s;
	while (p < e && !is_space(*p))
		p = *p == '"' ? string_token_end(p, e) : p + 1;
	if (p == e)
		return (struct weir_str){.data = s, .bytes = (uint32_t)(e - s)};
	uint8_t *out = weir_scratch_take(js->scratch, (size_t)(e - s)), *to = out;
	memcpy(to, s, (size_t)(p - s));
	to += p - s;
	while (p < e) {
		if (is_space(*p)) {
			p++;
		} else if (*p == '"') {
			const uint8_t *q = string_token_end(p, e);
			memcpy(to, p, (size_t)(q - p));
			to += q - p;
			p = q;
		} else {
			*to++ = *p++;
		}
	}
	return (struct weir_str){.data = out, .bytes = (uint32_t)(to - out)};
}

/* ---- one value ---- */

static enum weir_reason text_store(const struct weir_json_field *f, struct weir_str text, struct weir_col *c,
				   uint32_t row, const char **detail)
{
	*detail = "longer than the column";
	if (f->type.length != INT32_MAX && text.bytes > (uint32_t)f->type.length &&
	    weir_utf8_count(text.data, text.bytes) > (size_t)f->type.length)
		return WEIR_REASON_RANGE;
	c->str[row] = text;
	return WEIR_REASON_NONE;
}

static bool is_json_number(const uint8_t *s, size_t bytes)
{
	const uint8_t *bad;
	return bytes != 0 && weir_json_number_end(s, s + bytes, &bad) == s + bytes;
}

static enum weir_reason string_convert(struct weir_json *js, const struct weir_json_field *f, struct weir_str text,
				       struct weir_col *c, uint32_t row, const char **detail)
{
	enum weir_kind kind = f->type.kind;
	if (weir_kind_is_string(kind))
		return text_store(f, text, c, row, detail);
	if (kind == WEIR_KIND_BYTES) {
		size_t bytes;
		uint8_t *out = weir_scratch_take(js->scratch, weir_base64_data_bytes_max(text.bytes));
		*detail = "expected base64";
		if (!weir_base64_decode((const char *)text.data, text.bytes, out, &bytes))
			return WEIR_REASON_TYPE;
		c->str[row] = (struct weir_str){.data = out, .bytes = (uint32_t)bytes};
		return WEIR_REASON_NONE;
	}
	if (kind >= WEIR_KIND_ARRAY) {
		*detail = kind == WEIR_KIND_ARRAY ? "expected an array" : "expected an object";
		return WEIR_REASON_TYPE;
	}
	if (kind == WEIR_KIND_INTERVAL_MS || kind == WEIR_KIND_INTERVAL_MONTH || kind == WEIR_KIND_NULL) {
		*detail = "the column's type cannot be read from JSON";
		return WEIR_REASON_TYPE;
	}
	if (weir_kind_is_numeric(kind) && is_json_number(text.data, text.bytes))
		return number_convert(js, f, text.data, text.data + text.bytes, c, row, detail);
	*detail = NULL;
	return weir_text_parse(&f->type, (const char *)text.data, text.bytes, c, row);
}

static enum weir_reason convert(struct weir_json *js, const struct weir_json_field *f, enum weir_json_kind kind,
				const uint8_t *s, const uint8_t *e, uint32_t row, const char **detail)
{
	struct weir_col *c = &js->cols[f - js->fields];
	struct weir_str text = {.data = s, .bytes = (uint32_t)(e - s)};
	bool to_text = weir_kind_is_string(f->type.kind);
	switch (kind) {
	case WEIR_JSON_STRING_ESCAPED: {
		uint8_t *out = weir_scratch_take(js->scratch, (size_t)(e - s));
		text.bytes = (uint32_t)weir_json_unescape(s, e, out);
		text.data = out;
		return string_convert(js, f, text, c, row, detail);
	}
	case WEIR_JSON_STRING:
		return string_convert(js, f, text, c, row, detail);
	case WEIR_JSON_NUMBER:
		return to_text ? text_store(f, text, c, row, detail) : number_convert(js, f, s, e, c, row, detail);
	case WEIR_JSON_TRUE:
	case WEIR_JSON_FALSE:
		if (to_text)
			return text_store(f, text, c, row, detail);
		*detail = "true or false where the column is of another type";
		if (f->type.kind != WEIR_KIND_BOOLEAN)
			return WEIR_REASON_TYPE;
		c->u8[row] = kind == WEIR_JSON_TRUE;
		return WEIR_REASON_NONE;
	case WEIR_JSON_OBJECT:
	case WEIR_JSON_ARRAY:
		if (to_text)
			return text_store(f, compact_text(js, s, e), c, row, detail);
		*detail = kind == WEIR_JSON_OBJECT ? "an object where the column is of another type"
						   : "an array where the column is of another type";
		if (kind == WEIR_JSON_OBJECT ? f->type.kind != WEIR_KIND_MAP && f->type.kind != WEIR_KIND_ROW
					     : f->type.kind != WEIR_KIND_ARRAY)
			return WEIR_REASON_TYPE;
		c->str[row] = compact_text(js, s, e);
		return WEIR_REASON_NONE;
	default:
		return WEIR_REASON_NONE; /* null: the caller's */
	}
}

static void set_null(struct weir_col *c, uint32_t row)
{
	weir_col_set_null(c, row);
	size_t bytes = weir_phys_bytes(c->phys);
	memset((uint8_t *)c->data + row * bytes, 0, bytes);
}

bool weir_json_convert_null(struct weir_json *js, const struct weir_json_field *f, const uint8_t *at, uint32_t row)
{
	if (f->type.not_null)
		return weir_json_refuse(js, WEIR_REASON_NULL, at, f->name, "NULL in a NOT NULL column");
	set_null(&js->cols[f - js->fields], row);
	return true;
}

bool weir_json_convert(struct weir_json *js, const struct weir_json_field *f, enum weir_json_kind kind,
		       const uint8_t *s, const uint8_t *e, uint32_t row)
{
	if (kind == WEIR_JSON_NULL)
		return weir_json_convert_null(js, f, s, row);
	const char *detail = NULL;
	enum weir_reason reason = convert(js, f, kind, s, e, row, &detail);
	if (WEIR_LIKELY(reason == WEIR_REASON_NONE))
		return true;
	const uint8_t *at = kind == WEIR_JSON_STRING || kind == WEIR_JSON_STRING_ESCAPED ? s - 1 : s;
	if (js->ignore_parse_errors)
		return weir_json_convert_null(js, f, at, row);
	if (detail == NULL)
		detail = reason == WEIR_REASON_RANGE ? "out of the type's range" : "not a value of the column's type";
	return weir_json_refuse(js, reason, at, f->name, detail);
}
