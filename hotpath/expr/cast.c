/* cast.c: CAST and TRY_CAST between all pairs of types, a column at a time; see cast.h. @thread worker (run), any
 * (rules).
 *
 * Numbers: fractions are cut when an integer is wanted, rounded half up when a DECIMAL of fewer digits is. Text: blanks
 * around it are ignored; '12.9' as an integer is 12; t, true, y, yes, 1 and their opposites are booleans. Times as text
 * carry as many digits of fraction as their type. VARCHAR(n) and CHAR(n) keep the first n characters, CHAR(n) with
 * blanks up to n. The zone of TIMESTAMP_LTZ is UTC. */
#include "hotpath/expr/cast.h"

#include <math.h>

#include "hotpath/core/utf8.h"
#include "hotpath/expr/decimal.h"
#include "hotpath/expr/kernel.h"
#include "hotpath/format/number.h"
#include "hotpath/time/civil.h"

static bool is_nested(enum weir_kind k)
{
	return k == WEIR_KIND_ARRAY || k == WEIR_KIND_MAP || k == WEIR_KIND_ROW;
}

static bool is_interval(enum weir_kind k)
{
	return k == WEIR_KIND_INTERVAL_MS || k == WEIR_KIND_INTERVAL_MONTH;
}

static bool is_double(enum weir_kind k)
{
	return k == WEIR_KIND_FLOAT || k == WEIR_KIND_DOUBLE;
}

static bool is_date_time(enum weir_kind k)
{
	return k == WEIR_KIND_DATE || k == WEIR_KIND_TIME || weir_kind_is_timestamp(k);
}

bool weir_cast_exists(const struct weir_type *from, const struct weir_type *to)
{
	enum weir_kind f = from->kind, t = to->kind;
	if (f == WEIR_KIND_NULL)
		return true;
	if (is_nested(f) || is_nested(t))
		return weir_kind_is_string(t) || weir_type_equal(from, to);
	if (weir_kind_is_string(t) || f == t)
		return true;
	if (weir_kind_is_string(f))
		return t != WEIR_KIND_NULL && !is_interval(t);
	bool from_number = weir_kind_is_numeric(f) || f == WEIR_KIND_BOOLEAN;
	bool to_number = weir_kind_is_numeric(t) || t == WEIR_KIND_BOOLEAN;
	if (from_number && to_number)
		return true;
	if (is_interval(f) || is_interval(t))
		return weir_kind_is_integer(f) || weir_kind_is_integer(t);
	if (f == WEIR_KIND_DATE || f == WEIR_KIND_TIME)
		return weir_kind_is_timestamp(t);
	return weir_kind_is_timestamp(f) && is_date_time(t);
}

bool weir_cast_is_noop(const struct weir_type *from, const struct weir_type *to)
{
	enum weir_kind f = from->kind, t = to->kind;
	if (weir_type_phys(from) != weir_type_phys(to))
		return false;
	if (f == WEIR_KIND_NULL)
		return true;
	if (is_nested(f) || is_nested(t))
		return t == f || (weir_kind_is_string(t) && to->length == INT32_MAX);
	if (weir_kind_is_integer(f) && weir_kind_is_integer(t))
		return t >= f;
	if (weir_kind_is_string(f) && t == WEIR_KIND_CHAR)
		return f == t && to->length == from->length;
	if (weir_kind_is_string(f) && weir_kind_is_string(t))
		return to->length == INT32_MAX || to->length >= from->length;
	if (f == WEIR_KIND_BYTES && t == WEIR_KIND_BYTES)
		return to->length == from->length || to->length == INT32_MAX || to->length == 0;
	if (f == WEIR_KIND_DECIMAL && t == WEIR_KIND_DECIMAL)
		return from->scale == to->scale && to->precision >= from->precision;
	if (weir_kind_is_timestamp(f) && weir_kind_is_timestamp(t))
		return to->precision >= from->precision && weir_ticks_per_ms(from) == weir_ticks_per_ms(to);
	if (f == WEIR_KIND_TIME && t == WEIR_KIND_TIME)
		return to->precision >= from->precision;
	if (is_interval(f) || is_interval(t))
		return f == t || t == WEIR_KIND_BIGINT || is_interval(t);
	return f == t || (f == WEIR_KIND_FLOAT && t == WEIR_KIND_DOUBLE);
}

bool weir_cast_is_safe(const struct weir_type *from, const struct weir_type *to)
{
	enum weir_kind f = from->kind, t = to->kind;
	if (weir_cast_is_noop(from, to) || f == WEIR_KIND_NULL || t == WEIR_KIND_BOOLEAN)
		return !weir_kind_is_string(f) || weir_kind_is_string(t);
	if (weir_kind_is_string(t))
		return f != WEIR_KIND_BYTES;
	if (t == WEIR_KIND_BYTES)
		return true;
	if (is_double(t))
		return weir_kind_is_numeric(f) || f == WEIR_KIND_BOOLEAN;
	if (t == WEIR_KIND_DECIMAL && (f == WEIR_KIND_DECIMAL || weir_kind_is_integer(f))) {
		struct weir_type d = weir_decimal_type_of(from);
		int whole = d.precision - d.scale + (d.scale > to->scale);
		return to->precision - to->scale >= whole;
	}
	return is_date_time(f) && is_date_time(t) && weir_ticks_per_ms(from) >= weir_ticks_per_ms(to);
}

/* Everything a row's conversion looks at. */
struct cast {
	const struct weir_type *from, *to;
	const struct weir_col *in;
	struct weir_col *out;
	struct weir_scratch *scratch;
	struct weir_buf *text;
};

static bool int_in_kind(enum weir_kind kind, int64_t v)
{
	switch (kind) {
	case WEIR_KIND_TINYINT:
		return v == (int8_t)v;
	case WEIR_KIND_SMALLINT:
		return v == (int16_t)v;
	case WEIR_KIND_INT:
	case WEIR_KIND_INTERVAL_MONTH:
		return v == (int32_t)v;
	default:
		return true;
	}
}

/* -- to numbers -- */

static bool put_number_from_i128(const struct cast *c, uint32_t r, weir_i128 v, int scale)
{
	enum weir_kind t = c->to->kind;
	if (t == WEIR_KIND_BOOLEAN) {
		c->out->u8[r] = v != 0;
		return true;
	}
	if (is_double(t)) {
		double d = weir_decimal_to_double(v, scale);
		c->out->f64[r] = t == WEIR_KIND_FLOAT ? (double)(float)d : d;
		return true;
	}
	if (t == WEIR_KIND_DECIMAL) {
		if (!weir_decimal_rescale(v, scale, c->to->scale, &v) || !weir_decimal_fits(v, c->to->precision))
			return false;
		weir_col_put_i128(c->out, r, v);
		return true;
	}
	if (scale != 0)
		v /= weir_decimal_pow10[scale];
	if (v != (int64_t)v || !int_in_kind(t, (int64_t)v))
		return false;
	c->out->i64[r] = (int64_t)v;
	return true;
}

static bool put_text_as_decimal(const struct cast *c, uint32_t r, const char *s, size_t bytes)
{
	weir_i128 d;
	if (weir_parse_decimal(s, bytes, c->to->precision, c->to->scale, &d) != WEIR_NUMBER_OK)
		return false;
	weir_col_put_i128(c->out, r, d);
	return true;
}

static bool put_number_from_double(const struct cast *c, uint32_t r, double v)
{
	enum weir_kind t = c->to->kind;
	if (t == WEIR_KIND_BOOLEAN) {
		c->out->u8[r] = v != 0;
		return true;
	}
	if (is_double(t)) {
		c->out->f64[r] = t == WEIR_KIND_FLOAT ? (double)(float)v : v;
		return true;
	}
	if (t == WEIR_KIND_DECIMAL) { /* by its shortest text, as Flink: 0.1 is 0.1 */
		if (!isfinite(v))
			return false;
		char digits[WEIR_NUMBER_TEXT_MAX];
		size_t bytes = c->from->kind == WEIR_KIND_FLOAT ? weir_print_float((float)v, digits)
								: weir_print_double(v, digits);
		return put_text_as_decimal(c, r, digits, bytes);
	}
	if (!(v >= -0x1p63 && v < 0x1p63) || !int_in_kind(t, (int64_t)v))
		return false;
	c->out->i64[r] = (int64_t)v;
	return true;
}

static bool cast_number(const struct cast *c, uint32_t r)
{
	uint32_t at = weir_row(c->in, r);
	switch (c->in->phys) {
	case WEIR_PHYS_U8:
		return put_number_from_i128(c, r, c->in->u8[at], 0);
	case WEIR_PHYS_F64:
		return put_number_from_double(c, r, c->in->f64[at]);
	default:
		return put_number_from_i128(c, r, weir_col_i128(c->in, r),
					    c->from->kind == WEIR_KIND_DECIMAL ? c->from->scale : 0);
	}
}

/* -- from text -- */

static bool is_blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct weir_str trim(struct weir_str s)
{
	while (s.bytes != 0 && is_blank(s.data[0]))
		s.data++, s.bytes--;
	while (s.bytes != 0 && is_blank(s.data[s.bytes - 1]))
		s.bytes--;
	return s;
}

static bool text_to_bool(struct weir_str s, uint8_t *out)
{
	static const char *const words[] = {"f", "t", "false", "true", "n", "y", "no", "yes", "0", "1"};
	for (uint32_t i = 0; i < WEIR_COUNT_OF(words); i++) {
		uint32_t at = 0;
		while (at < s.bytes && (s.data[at] | 0x20) == (words[i][at] | 0x20) && words[i][at] != 0)
			at++;
		if (at == s.bytes && words[i][at] == 0) {
			*out = i & 1;
			return true;
		}
	}
	return false;
}

/* [+-]digits[.digits]: the fraction is checked and cut off, as Flink does. */
static bool text_to_int(struct weir_str s, int64_t *out)
{
	uint32_t at = 0, digits = 0;
	bool negative = s.bytes != 0 && s.data[0] == '-';
	if (s.bytes != 0 && (s.data[0] == '-' || s.data[0] == '+'))
		at = 1;
	int64_t v = 0; /* kept negative: that side has one value more */
	for (; at < s.bytes && s.data[at] >= '0' && s.data[at] <= '9'; at++, digits++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s.data[at] - '0', &v))
			return false;
	if (at < s.bytes && s.data[at] == '.')
		for (at++; at < s.bytes && s.data[at] >= '0' && s.data[at] <= '9'; at++)
			digits++;
	if (at != s.bytes || digits == 0 || (!negative && v == INT64_MIN))
		return false;
	*out = negative ? v : -v;
	return true;
}

static bool text_to_time(const struct cast *c, uint32_t r, struct weir_str s)
{
	const char *text = (const char *)s.data;
	char padded[WEIR_CIVIL_PADDED_MAX];
	int64_t v;
	bool ok;
	s.bytes = (uint32_t)weir_civil_pad(&text, s.bytes, padded);
	switch (c->to->kind) {
	case WEIR_KIND_DATE:
		ok = weir_civil_parse_date(text, s.bytes, &v) == WEIR_CIVIL_OK;
		if (!ok) {
			ok = weir_civil_parse_timestamp(text, s.bytes, 3, 1, &v, NULL) == WEIR_CIVIL_OK;
			v = ok ? weir_floor_div(v, WEIR_DAY_MS) : 0;
		}
		break;
	case WEIR_KIND_TIME:
		ok = weir_civil_parse_time(text, s.bytes, c->to->precision, &v) == WEIR_CIVIL_OK;
		break;
	default:
		ok = weir_civil_parse_timestamp(text, s.bytes, c->to->precision, weir_ticks_per_ms(c->to), &v, NULL) ==
		     WEIR_CIVIL_OK;
		break;
	}
	if (ok)
		c->out->i64[r] = v;
	return ok;
}

static bool text_to_double(const struct cast *c, uint32_t r, struct weir_str s)
{
	static const struct {
		const char *name;
		double value;
	} special[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"+Infinity", INFINITY}, {"-Infinity", -INFINITY}};
	const char *text = (const char *)s.data;
	float narrow = 0;
	bool ok = c->to->kind == WEIR_KIND_FLOAT ? weir_parse_float(text, s.bytes, &narrow) == WEIR_NUMBER_OK
						 : weir_parse_double(text, s.bytes, &c->out->f64[r]) == WEIR_NUMBER_OK;
	if (ok && c->to->kind == WEIR_KIND_FLOAT)
		c->out->f64[r] = narrow;
	for (uint32_t i = 0; i < WEIR_COUNT_OF(special) && !ok; i++) {
		ok = s.bytes == strlen(special[i].name) && memcmp(text, special[i].name, s.bytes) == 0;
		if (ok)
			c->out->f64[r] = special[i].value;
	}
	return ok;
}

static bool text_value(const struct cast *c, uint32_t r, struct weir_str s)
{
	s = trim(s);
	enum weir_kind t = c->to->kind;
	int64_t v;
	if (t == WEIR_KIND_BOOLEAN)
		return text_to_bool(s, &c->out->u8[r]);
	if (weir_kind_is_integer(t)) {
		if (!text_to_int(s, &v) || !int_in_kind(t, v))
			return false;
		c->out->i64[r] = v;
		return true;
	}
	if (is_date_time(t))
		return text_to_time(c, r, s);
	if (t == WEIR_KIND_DECIMAL)
		return put_text_as_decimal(c, r, (const char *)s.data, s.bytes);
	return text_to_double(c, r, s);
}

static bool cast_text(const struct cast *c, uint32_t r)
{
	return text_value(c, r, c->in->str[weir_row(c->in, r)]);
}

bool weir_cast_from_text(const struct weir_type *to, struct weir_str s, struct weir_col *out, uint32_t row)
{
	struct cast c = {.to = to, .out = out};
	return text_value(&c, row, s);
}

/* -- to text -- */

static void put_fraction(struct weir_buf *b, int64_t micros, int precision)
{
	char text[8];
	text[0] = '.';
	for (int i = 6; i >= 1; i--, micros /= 10)
		text[i] = (char)('0' + micros % 10);
	if (precision != 0)
		weir_buf_put(b, text, 1 + (size_t)(precision > 6 ? 6 : precision));
}

static void put_time_text(const struct cast *c, int64_t v)
{
	char *to = (char *)weir_buf_room(c->text, WEIR_CIVIL_TEXT_MAX);
	if (c->from->kind == WEIR_KIND_DATE) {
		c->text->bytes += weir_civil_print_date(v, to);
	} else if (c->from->kind == WEIR_KIND_TIME) {
		c->text->bytes += weir_civil_print_time(v / 1000 * 1000, 0, to);
		put_fraction(c->text, v % 1000 * 1000, c->from->precision);
	} else {
		int64_t per_second = 1000 * weir_ticks_per_ms(c->from), second = weir_floor_div(v, per_second);
		c->text->bytes += weir_civil_print_timestamp(second * per_second, per_second / 1000, ' ', false, to);
		put_fraction(c->text, (v - second * per_second) * (1000000 / per_second), c->from->precision);
	}
}

/* +1 02:03:04.005 and +1-06, as Flink prints intervals. */
static void put_interval(struct weir_buf *b, enum weir_kind kind, int64_t v)
{
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	char sign = v < 0 ? '-' : '+';
	if (kind == WEIR_KIND_INTERVAL_MONTH)
		weir_buf_printf(b, "%c%llu-%02llu", sign, (unsigned long long)(u / 12), (unsigned long long)(u % 12));
	else
		weir_buf_printf(b, "%c%llu %02llu:%02llu:%02llu.%03llu", sign, (unsigned long long)(u / 86400000),
				(unsigned long long)(u / 3600000 % 24), (unsigned long long)(u / 60000 % 60),
				(unsigned long long)(u / 1000 % 60), (unsigned long long)(u % 1000));
}

/* A double's shortest digits in b as Java and Flink write them: 1.0, 0.001, 1.0E7, 1.0E-4. NaN and Infinity stay. */
static void put_java_form(struct weir_buf *b)
{
	struct weir_number n;
	char digits[WEIR_NUMBER_TEXT_MAX];
	if (!weir_number_scan((const char *)b->data, b->bytes, &n))
		return;
	int count = (int)weir_print_u64(n.mantissa, digits), exp10 = n.exp10;
	for (; count > 1 && digits[count - 1] == '0'; exp10++)
		count--;
	int point = n.mantissa == 0 ? 1 : count + exp10; /* digits before the point; <= 0: zeros behind it */
	bool negative = ((const char *)b->data)[0] == '-', plain = point > -3 && point <= 7;
	b->bytes = 0;
	if (negative)
		weir_buf_put_byte(b, '-');
	if (plain && point <= 0)
		weir_buf_puts(b, point == 0 ? "0." : point == -1 ? "0.0" : "0.00");
	int whole = !plain ? 1 : point < 0 ? 0 : point;
	for (int i = 0; i < count || i < whole; i++) {
		if (i == whole && !(plain && point <= 0))
			weir_buf_put_byte(b, '.');
		weir_buf_put_byte(b, i < count ? (uint8_t)digits[i] : '0');
	}
	if (count <= whole)
		weir_buf_puts(b, ".0");
	if (!plain)
		weir_buf_printf(b, "E%d", point - 1);
}

/* The first max characters of s. */
static struct weir_str cut(struct weir_str s, int32_t max)
{
	if (max == INT32_MAX || max <= 0 || s.bytes <= (uint32_t)max)
		return s;
	uint32_t at = 0;
	for (int32_t n = 0; n < max && at < s.bytes; n++)
		at += weir_utf8_width(s.data[at]);
	s.bytes = at < s.bytes ? at : s.bytes;
	return s;
}

/* The result s; in CHAR(n) with blanks up to n characters. */
static void put_fixed(const struct cast *c, uint32_t r, struct weir_str s, bool copy)
{
	uint32_t blanks = 0;
	if (c->to->kind == WEIR_KIND_CHAR && c->to->length > 0 && c->to->length != INT32_MAX) {
		uint32_t has = (uint32_t)weir_utf8_count(s.data, s.bytes);
		blanks = has < (uint32_t)c->to->length ? (uint32_t)c->to->length - has : 0;
	}
	if (copy || blanks != 0) {
		uint8_t *to = weir_scratch_take(c->scratch, s.bytes + blanks + 1);
		memcpy(to, s.data, s.bytes);
		memset(to + s.bytes, ' ', blanks);
		s = (struct weir_str){to, s.bytes + blanks, 0};
	}
	c->out->str[r] = s;
}

static bool cast_to_text(const struct cast *c, uint32_t r)
{
	uint32_t at = weir_row(c->in, r);
	enum weir_kind f = c->from->kind;
	if (c->in->phys == WEIR_PHYS_STR) {
		struct weir_str s = c->in->str[at];
		if (f == WEIR_KIND_BYTES && !weir_utf8_check(s.data, s.bytes, NULL))
			return false;
		put_fixed(c, r, cut(s, c->to->length), false);
		return true;
	}
	c->text->bytes = 0;
	char *number = (char *)weir_buf_room(c->text, WEIR_NUMBER_TEXT_MAX);
	if (f == WEIR_KIND_BOOLEAN)
		weir_buf_puts(c->text, c->in->u8[at] ? "TRUE" : "FALSE");
	else if (weir_kind_is_integer(f))
		c->text->bytes = weir_print_i64(c->in->i64[at], number);
	else if (f == WEIR_KIND_DECIMAL)
		c->text->bytes = weir_print_decimal(weir_col_i128(c->in, r), c->from->scale, number);
	else if (is_date_time(f))
		put_time_text(c, c->in->i64[at]);
	else if (is_interval(f))
		put_interval(c->text, f, c->in->i64[at]);
	else if (f == WEIR_KIND_FLOAT)
		c->text->bytes = weir_print_float((float)c->in->f64[at], number);
	else
		c->text->bytes = weir_print_double(c->in->f64[at], number);
	if (is_double(f))
		put_java_form(c->text);
	struct weir_str s = {c->text->data, (uint32_t)c->text->bytes, 0};
	put_fixed(c, r, cut(s, c->to->length), true);
	return true;
}

static bool cast_to_bytes(const struct cast *c, uint32_t r)
{
	struct weir_str s = c->in->str[weir_row(c->in, r)];
	if (c->to->length > 0 && s.bytes > (uint32_t)c->to->length)
		s.bytes = (uint32_t)c->to->length;
	c->out->str[r] = s;
	return true;
}

/* -- times -- */

static int64_t cut_ticks(int64_t v, const struct weir_type *t)
{
	static const int64_t unit[] = {1000, 100, 10, 1, 100, 10, 1};
	int64_t u = unit[t->precision > 6 ? 6 : t->precision];
	return u == 1 ? v : weir_floor_div(v, u) * u;
}

static bool cast_time(const struct cast *c, uint32_t r)
{
	int64_t v = c->in->i64[weir_row(c->in, r)];
	enum weir_kind f = c->from->kind, t = c->to->kind;
	int64_t per_ms = weir_kind_is_timestamp(f) ? weir_ticks_per_ms(c->from) : 1;
	if (f == WEIR_KIND_DATE) {
		if (t == WEIR_KIND_DATE) {
			c->out->i64[r] = v;
			return true;
		}
		if (__builtin_mul_overflow(v, WEIR_DAY_MS, &v))
			return false;
	}
	if (t == WEIR_KIND_DATE) {
		c->out->i64[r] = weir_floor_div(v, WEIR_DAY_MS * per_ms);
		return true;
	}
	if (t == WEIR_KIND_TIME) {
		int64_t ms = weir_floor_div(v, per_ms);
		c->out->i64[r] = cut_ticks(ms - weir_floor_div(ms, WEIR_DAY_MS) * WEIR_DAY_MS, c->to);
		return true;
	}
	int64_t want = weir_ticks_per_ms(c->to);
	if (want > per_ms && __builtin_mul_overflow(v, want, &v))
		return false;
	if (want < per_ms)
		v = weir_floor_div(v, per_ms);
	c->out->i64[r] = cut_ticks(v, c->to);
	return true;
}

static bool cast_copy(const struct cast *c, uint32_t r)
{
	uint32_t at = weir_row(c->in, r);
	if (c->out->phys == WEIR_PHYS_U8)
		c->out->u8[r] = c->in->u8[at];
	else if (c->out->phys == WEIR_PHYS_STR)
		c->out->str[r] = c->in->str[at];
	else if (c->out->phys == WEIR_PHYS_I128)
		c->out->i128[r] = c->in->i128[at];
	else
		c->out->i64[r] = c->in->i64[at];
	return true;
}

typedef bool cast_row(const struct cast *c, uint32_t r);

static cast_row *choose(const struct weir_type *from, const struct weir_type *to)
{
	if (weir_cast_is_noop(from, to))
		return cast_copy;
	if (weir_kind_is_string(to->kind))
		return cast_to_text;
	if (to->kind == WEIR_KIND_BYTES)
		return cast_to_bytes;
	if (weir_kind_is_string(from->kind))
		return cast_text;
	if (is_date_time(from->kind) && is_date_time(to->kind))
		return cast_time;
	return cast_number;
}

/* The conversions that coercion puts into most plans, without a call per row. */
static bool cast_fast(const struct cast *c, const uint16_t *row, uint32_t count)
{
	const struct weir_col *in = c->in;
	if (in->is_const || !weir_kind_is_integer(c->from->kind))
		return false;
	if (c->to->kind == WEIR_KIND_DOUBLE) {
		for (uint32_t i = 0; i < count; i++)
			c->out->f64[row[i]] = (double)in->i64[row[i]];
		return true;
	}
	if (c->to->kind == WEIR_KIND_DECIMAL && weir_cast_is_safe(c->from, c->to)) {
		weir_i128 factor = weir_decimal_pow10[c->to->scale];
		if (c->out->phys == WEIR_PHYS_I64)
			for (uint32_t i = 0; i < count; i++)
				c->out->i64[row[i]] = in->i64[row[i]] * (int64_t)factor;
		else
			for (uint32_t i = 0; i < count; i++)
				c->out->i128[row[i]] = in->i64[row[i]] * factor;
		return true;
	}
	return false;
}

void weir_cast_run(const struct weir_expr *e, const struct weir_col *in, struct weir_col *out, const uint16_t *row,
		   uint32_t count, struct weir_scratch *scratch, struct weir_buf *text, struct weir_row_errors *errors)
{
	struct cast c = {&e->args[0]->type, &e->type, in, out, scratch, text};
	if (cast_fast(&c, row, count))
		return;
	cast_row *one = choose(c.from, c.to);
	for (uint32_t i = 0; i < count; i++) {
		if (WEIR_LIKELY(one(&c, row[i])))
			continue;
		if (e->op == WEIR_EXPR_TRY_CAST)
			weir_col_set_null(out, row[i]);
		else
			weir_row_errors_add(errors, row[i], WEIR_REASON_EXPR, UINT32_MAX, e->text,
					    "CAST: not a value of the type");
	}
}
