/* text.c: one value as text, both ways: what JSON strings, CSV cells, CAST and the print sink share. Pure functions,
 * @thread any. Costs: number.c, number_print.c. */
#include "hotpath/format/format.h"

#include "hotpath/format/base64.h"
#include "hotpath/format/number.h"
#include "hotpath/time/civil.h"

static inline bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether [s, s + bytes) is word, which is in lower case. */
static bool is_word(const char *s, size_t bytes, const char *word)
{
	size_t i = 0;
	for (; i < bytes && word[i] != '\0'; i++) {
		if ((s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]) != word[i])
			return false;
	}
	return i == bytes && word[i] == '\0';
}

static enum weir_reason parse_boolean(const char *s, size_t bytes, uint8_t *out)
{
	static const char *const yes[] = {"true", "t", "yes", "y", "1"}, *const no[] = {"false", "f", "no", "n", "0"};
	for (size_t i = 0; i < WEIR_COUNT_OF(yes); i++) {
		if (is_word(s, bytes, yes[i]) || is_word(s, bytes, no[i])) {
			*out = is_word(s, bytes, yes[i]);
			return WEIR_REASON_NONE;
		}
	}
	return WEIR_REASON_TYPE;
}

static enum weir_reason number_reason(enum weir_number_result r)
{
	return r == WEIR_NUMBER_OK ? WEIR_REASON_NONE : r == WEIR_NUMBER_RANGE ? WEIR_REASON_RANGE : WEIR_REASON_TYPE;
}

static enum weir_reason parse_integer(enum weir_kind kind, const char *s, size_t bytes, int64_t *out)
{
	static const int64_t max[] = {INT8_MAX, INT16_MAX, INT32_MAX, INT64_MAX};
	int64_t v, most = max[kind - WEIR_KIND_TINYINT];
	enum weir_number_result r = weir_parse_i64(s, bytes, &v);
	if (r != WEIR_NUMBER_OK)
		return number_reason(r);
	if (v > most || v < -most - 1)
		return WEIR_REASON_RANGE;
	*out = v;
	return WEIR_REASON_NONE;
}

/* Java's names for the values without digits, too. */
static enum weir_reason parse_floating(bool is_float, const char *s, size_t bytes, double *out)
{
	enum weir_number_result r;
	double d;
	if (is_float) {
		float f = 0;
		r = weir_parse_float(s, bytes, &f);
		d = (double)f;
	} else {
		r = weir_parse_double(s, bytes, &d);
	}
	if (r == WEIR_NUMBER_MALFORMED) {
		size_t sign = bytes > 0 && (s[0] == '-' || s[0] == '+');
		if (bytes == 3 && memcmp(s, "NaN", 3) == 0)
			d = __builtin_nan("");
		else if (bytes == sign + 8 && memcmp(s + sign, "Infinity", 8) == 0)
			d = s[0] == '-' ? -__builtin_inf() : __builtin_inf();
		else
			return WEIR_REASON_TYPE;
		r = WEIR_NUMBER_OK;
	}
	if (r == WEIR_NUMBER_OK)
		*out = d;
	return number_reason(r);
}

static enum weir_reason civil_reason(enum weir_civil_result r)
{
	return r == WEIR_CIVIL_OK ? WEIR_REASON_NONE : r == WEIR_CIVIL_RANGE ? WEIR_REASON_RANGE : WEIR_REASON_TYPE;
}

static enum weir_reason parse_string(const struct weir_type *t, const char *s, size_t bytes)
{
	if (!weir_utf8_check((const uint8_t *)s, bytes, NULL))
		return WEIR_REASON_UTF8;
	/* A string has at most as many characters as bytes: count only when that does not settle it. */
	if (t->length != INT32_MAX && bytes > (size_t)t->length &&
	    weir_utf8_count((const uint8_t *)s, bytes) > (size_t)t->length)
		return WEIR_REASON_RANGE;
	return WEIR_REASON_NONE;
}

enum weir_reason weir_text_parse(const struct weir_type *t, const char *s, size_t bytes, struct weir_col *c,
				 uint32_t row)
{
	enum weir_reason r = WEIR_REASON_TYPE;
	if (weir_kind_is_string(t->kind) || t->kind == WEIR_KIND_BYTES) {
		r = t->kind == WEIR_KIND_BYTES ? WEIR_REASON_NONE : parse_string(t, s, bytes);
		if (bytes > UINT32_MAX)
			r = WEIR_REASON_SIZE;
		if (r == WEIR_REASON_NONE)
			c->str[row] =
				(struct weir_str){bytes ? (const uint8_t *)s : (const uint8_t *)"", (uint32_t)bytes, 0};
		return r;
	}
	while (bytes > 0 && is_blank(s[0])) {
		s++;
		bytes--;
	}
	while (bytes > 0 && is_blank(s[bytes - 1]))
		bytes--;
	weir_i128 wide = 0;
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		return parse_boolean(s, bytes, &c->u8[row]);
	case WEIR_KIND_TINYINT:
	case WEIR_KIND_SMALLINT:
	case WEIR_KIND_INT:
	case WEIR_KIND_BIGINT:
		return parse_integer(t->kind, s, bytes, &c->i64[row]);
	case WEIR_KIND_FLOAT:
	case WEIR_KIND_DOUBLE:
		return parse_floating(t->kind == WEIR_KIND_FLOAT, s, bytes, &c->f64[row]);
	case WEIR_KIND_DECIMAL:
		r = number_reason(weir_parse_decimal(s, bytes, t->precision, t->scale, &wide));
		if (r == WEIR_REASON_NONE && t->precision <= 18)
			c->i64[row] = (int64_t)wide;
		else if (r == WEIR_REASON_NONE)
			c->i128[row] = wide;
		return r;
	case WEIR_KIND_DATE:
		return civil_reason(weir_civil_parse_date(s, bytes, &c->i64[row]));
	case WEIR_KIND_TIME:
		return civil_reason(weir_civil_parse_time(s, bytes, t->precision, &c->i64[row]));
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		return civil_reason(
			weir_civil_parse_timestamp(s, bytes, t->precision, weir_ticks_per_ms(t), &c->i64[row], NULL));
	default:
		return WEIR_REASON_TYPE; /* intervals, nested types and NULL have no text to read */
	}
}

/* Flink's text of intervals: `+1 02:03:04.005` and `+1-02`. */
static size_t print_interval_ms(int64_t ms, char *to)
{
	uint64_t v = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms, of_day = v % (uint64_t)WEIR_DAY_MS;
	size_t at = 1;
	to[0] = ms < 0 ? '-' : '+';
	at += weir_print_u64(v / (uint64_t)WEIR_DAY_MS, to + at);
	const uint64_t part[4] = {of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60, of_day % 1000};
	for (int i = 0; i < 4; i++) {
		to[at++] = " ::."[i];
		if (i == 3)
			to[at++] = (char)('0' + part[i] / 100);
		to[at++] = (char)('0' + part[i] / 10 % 10);
		to[at++] = (char)('0' + part[i] % 10);
	}
	return at;
}

static size_t print_interval_month(int64_t months, char *to)
{
	uint64_t v = months < 0 ? 0 - (uint64_t)months : (uint64_t)months;
	size_t at = 1;
	to[0] = months < 0 ? '-' : '+';
	at += weir_print_u64(v / 12, to + at);
	to[at++] = '-';
	to[at++] = (char)('0' + v % 12 / 10);
	to[at++] = (char)('0' + v % 12 % 10);
	return at;
}

void weir_text_print(const struct weir_type *t, const struct weir_col *c, uint32_t row, bool iso8601,
		     struct weir_buf *out)
{
	_Static_assert(WEIR_CIVIL_TEXT_MAX <= WEIR_NUMBER_TEXT_MAX, "one room fits all fixed texts");
	if (c->is_const)
		row = 0;
	if (weir_type_phys(t) == WEIR_PHYS_STR) {
		const struct weir_str *s = &c->str[row];
		if (t->kind == WEIR_KIND_BYTES) {
			char *room = (char *)weir_buf_room(out, weir_base64_text_bytes(s->bytes));
			out->bytes += weir_base64_encode(s->data, s->bytes, room);
		} else {
			weir_buf_put(out, s->data, s->bytes);
		}
		return;
	}
	char *to = (char *)weir_buf_room(out, WEIR_NUMBER_TEXT_MAX);
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		memcpy(to, c->u8[row] ? "true" : "false", 5);
		out->bytes += c->u8[row] ? 4 : 5;
		return;
	case WEIR_KIND_FLOAT:
		out->bytes += weir_print_float((float)c->f64[row], to);
		return;
	case WEIR_KIND_DOUBLE:
		out->bytes += weir_print_double(c->f64[row], to);
		return;
	case WEIR_KIND_DECIMAL:
		if (t->precision <= 18)
			out->bytes += weir_print_decimal_i64(c->i64[row], t->scale, to);
		else
			out->bytes += weir_print_decimal(c->i128[row], t->scale, to);
		return;
	case WEIR_KIND_DATE:
		out->bytes += weir_civil_print_date(c->i64[row], to);
		return;
	case WEIR_KIND_TIME:
		out->bytes += weir_civil_print_time(c->i64[row], t->precision, to);
		return;
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		out->bytes += weir_civil_print_timestamp(c->i64[row], weir_ticks_per_ms(t), iso8601 ? 'T' : ' ',
							 t->kind == WEIR_KIND_TIMESTAMP_LTZ, to);
		return;
	case WEIR_KIND_INTERVAL_MS:
		out->bytes += print_interval_ms(c->i64[row], to);
		return;
	case WEIR_KIND_INTERVAL_MONTH:
		out->bytes += print_interval_month(c->i64[row], to);
		return;
	default:
		out->bytes += weir_print_i64(c->i64[row], to);
		return;
	}
}
