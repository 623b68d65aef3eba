/* type_parse.c: the grammar of SQL types and of INTERVAL literals. Cold path, @thread init. */
#include "hotpath/expr/ast.h"

#include <stdio.h>

#define INTERVAL_MAX INT64_C(100000000000000000) /* 1e17 ms: three million years, so that sums cannot overflow */

/* ---- types ---- */

/* Optional (n), within [low, high]. */
static enum weir_err parse_length(struct weir_tokens *ts, int64_t low, int64_t high, int64_t *out,
				  struct weir_diag **dg)
{
	if (!weir_token_accept(ts, "("))
		return WEIR_OK;
	const struct weir_token *t = weir_token_peek(ts, 0);
	int64_t n = 0;
	bool fits = t->kind == WEIR_TOK_INTEGER && t->text_bytes < 12;
	for (uint32_t i = 0; fits && i < t->text_bytes; i++)
		n = n * 10 + (t->text[i] - '0');
	if (!fits || n < low || n > high)
		return weir_token_error(ts, t, dg, NULL, "expected a number from %lld to %lld", (long long)low,
					(long long)high);
	ts->next++;
	*out = n;
	return weir_token_expect(ts, ")", dg);
}

static enum weir_err parse_decimal(struct weir_tokens *ts, struct weir_type *out, struct weir_diag **dg)
{
	int64_t n[2] = {10, 0};
	if (weir_token_accept(ts, "(")) {
		for (int i = 0; i < 2; i++) {
			const struct weir_token *t = weir_token_peek(ts, 0);
			int64_t v = 0;
			bool fits = t->kind == WEIR_TOK_INTEGER && t->text_bytes <= 3;
			for (uint32_t k = 0; fits && k < t->text_bytes; k++)
				v = v * 10 + (t->text[k] - '0');
			if (!fits || (i == 0 && (v < 1 || v > 38)))
				return weir_token_error(ts, t, dg, NULL, "a DECIMAL has 1 to 38 digits");
			if (i == 1 && v > n[0])
				return weir_token_error(ts, t, dg, NULL, "the scale cannot exceed the precision %d",
							(int)n[0]);
			n[i] = v;
			ts->next++;
			if (i == 0 && !weir_token_accept(ts, ","))
				break;
		}
		enum weir_err err = weir_token_expect(ts, ")", dg);
		if (err != WEIR_OK)
			return err;
	}
	out->kind = WEIR_KIND_DECIMAL;
	out->precision = (uint8_t)n[0];
	out->scale = (uint8_t)n[1];
	return WEIR_OK;
}

static enum weir_err parse_time(struct weir_tokens *ts, struct weir_type *out, enum weir_kind kind,
				struct weir_diag **dg)
{
	int64_t p = kind == WEIR_KIND_TIME ? 0 : 6;
	const struct weir_token *t = weir_token_peek(ts, 0);
	enum weir_err err = parse_length(ts, 0, kind == WEIR_KIND_TIME ? 3 : 6, &p, dg);
	if (err != WEIR_OK)
		return err;
	if (kind == WEIR_KIND_TIMESTAMP && weir_token_accept(ts, "WITH")) {
		if (!weir_token_accept(ts, "LOCAL"))
			return weir_token_error(ts, t, dg, "use TIMESTAMP_LTZ",
						"not supported: TIMESTAMP WITH TIME ZONE");
		kind = WEIR_KIND_TIMESTAMP_LTZ;
		err = weir_token_expect(ts, "TIME", dg);
		if (err == WEIR_OK)
			err = weir_token_expect(ts, "ZONE", dg);
	} else if (weir_token_is(ts, "WITHOUT") && weir_token_is_at(ts, 1, "TIME")) {
		ts->next += 2;
		err = weir_token_expect(ts, "ZONE", dg);
	}
	out->kind = kind;
	out->precision = (uint8_t)p;
	return err;
}

static enum weir_err parse_text(struct weir_tokens *ts, struct weir_type *out, enum weir_kind kind,
				struct weir_diag **dg)
{
	int64_t n = 1;
	enum weir_err err = parse_length(ts, 1, INT32_MAX, &n, dg);
	out->kind = kind;
	out->length = (int32_t)n;
	return err;
}

/* Fields between < > or ( ). */
static enum weir_err parse_row(struct weir_tokens *ts, struct weir_mem *m, struct weir_type *out, struct weir_diag **dg)
{
	const char *close = weir_token_is(ts, "(") ? ")" : ">";
	struct weir_buf types = {0}, names = {0};
	uint32_t count = 0;
	enum weir_err err = WEIR_OK;
	if (!weir_token_accept(ts, "("))
		err = weir_token_expect(ts, "<", dg);
	while (err == WEIR_OK) {
		struct weir_type t;
		const char *name;
		if (count == UINT16_MAX) {
			err = weir_token_error(ts, weir_token_peek(ts, 0), dg, NULL, "a ROW has at most 65,535 fields");
			break;
		}
		err = weir_token_name(ts, "a field name", &name, dg);
		if (err == WEIR_OK)
			err = weir_type_parse(ts, m, &t, dg);
		if (err != WEIR_OK)
			break;
		if (weir_token_peek(ts, 0)->kind == WEIR_TOK_STRING)
			ts->next++; /* a field's comment */
		weir_buf_put(&types, &t, sizeof t);
		weir_buf_put(&names, &name, sizeof name);
		count++;
		if (!weir_token_accept(ts, ",")) {
			err = weir_token_expect(ts, close, dg);
			break;
		}
	}
	if (err == WEIR_OK) {
		out->kind = WEIR_KIND_ROW;
		out->field_count = (uint16_t)count;
		out->fields = weir_mem_copy(m, types.data, types.bytes);
		out->field_names = weir_mem_copy(m, names.data, names.bytes);
	}
	weir_buf_fini(&types);
	weir_buf_fini(&names);
	return err;
}

static enum weir_err parse_nested(struct weir_tokens *ts, struct weir_mem *m, struct weir_type *out, uint32_t count,
				  struct weir_diag **dg)
{
	struct weir_type *fields = weir_mem_take(m, count * sizeof *fields);
	enum weir_err err = weir_token_expect(ts, "<", dg);
	for (uint32_t i = 0; err == WEIR_OK && i < count; i++) {
		const struct weir_token *t = weir_token_peek(ts, 0);
		err = weir_type_parse(ts, m, &fields[i], dg);
		if (err == WEIR_OK && count == 2 && i == 0 && !weir_kind_is_string(fields[0].kind))
			err = weir_token_error(ts, t, dg, NULL, "the key of a MAP is a STRING");
		if (err == WEIR_OK)
			err = weir_token_expect(ts, i + 1 < count ? "," : ">", dg);
	}
	out->kind = count == 1 ? WEIR_KIND_ARRAY : WEIR_KIND_MAP;
	out->field_count = (uint16_t)count;
	out->fields = fields;
	return err;
}

static const struct {
	const char *name;
	enum weir_kind kind;
} plain_types[] = {
	{"BOOLEAN", WEIR_KIND_BOOLEAN},
	{"TINYINT", WEIR_KIND_TINYINT},
	{"SMALLINT", WEIR_KIND_SMALLINT},
	{"INT", WEIR_KIND_INT},
	{"INTEGER", WEIR_KIND_INT},
	{"BIGINT", WEIR_KIND_BIGINT},
	{"FLOAT", WEIR_KIND_FLOAT},
	{"DOUBLE", WEIR_KIND_DOUBLE},
	{"DATE", WEIR_KIND_DATE},
	{"BYTES", WEIR_KIND_BYTES},
	/* with a length or nested: handled by name, here for the hints */
	{"STRING", WEIR_KIND_NULL},
	{"CHAR", WEIR_KIND_NULL},
	{"VARCHAR", WEIR_KIND_NULL},
	{"BINARY", WEIR_KIND_NULL},
	{"VARBINARY", WEIR_KIND_NULL},
	{"DECIMAL", WEIR_KIND_NULL},
	{"NUMERIC", WEIR_KIND_NULL},
	{"TIME", WEIR_KIND_NULL},
	{"TIMESTAMP", WEIR_KIND_NULL},
	{"TIMESTAMP_LTZ", WEIR_KIND_NULL},
	{"ARRAY", WEIR_KIND_NULL},
	{"MAP", WEIR_KIND_NULL},
	{"ROW", WEIR_KIND_NULL},
};

static enum weir_err unknown_type(const struct weir_tokens *ts, const struct weir_token *t, struct weir_diag **dg)
{
	const char *names[WEIR_COUNT_OF(plain_types)];
	char hint[80], upper[64];
	for (size_t i = 0; i < WEIR_COUNT_OF(plain_types); i++)
		names[i] = plain_types[i].name;
	size_t n = t->text_bytes < sizeof upper ? t->text_bytes : sizeof upper - 1;
	for (size_t i = 0; i < n; i++)
		upper[i] = t->text[i] >= 'a' && t->text[i] <= 'z' ? (char)(t->text[i] - 32) : t->text[i];
	upper[n] = 0;
	const char *near = weir_nearest_name(upper, n, names, WEIR_COUNT_OF(plain_types));
	if (strcmp(upper, "TEXT") == 0)
		near = "STRING";
	snprintf(hint, sizeof hint, "did you mean %s?", near == NULL ? "" : near);
	if (t->kind != WEIR_TOK_NAME)
		return weir_token_error(ts, t, dg, NULL, "expected a type");
	return weir_token_error(ts, t, dg, near == NULL ? NULL : hint, "unknown type %.*s", (int)n, t->text);
}

static enum weir_err parse_one_type(struct weir_tokens *ts, struct weir_mem *m, struct weir_type *out,
				    struct weir_diag **dg)
{
	const struct weir_token *t = weir_token_peek(ts, 0);
	int64_t length = 1;
	for (size_t i = 0; i < WEIR_COUNT_OF(plain_types); i++) {
		if (plain_types[i].kind != WEIR_KIND_NULL && weir_token_accept(ts, plain_types[i].name)) {
			out->kind = plain_types[i].kind;
			if (out->kind == WEIR_KIND_DOUBLE)
				weir_token_accept(ts, "PRECISION");
			return WEIR_OK;
		}
	}
	if (weir_token_accept(ts, "STRING")) {
		out->kind = WEIR_KIND_VARCHAR;
		out->length = INT32_MAX;
		return WEIR_OK;
	}
	if (weir_token_accept(ts, "CHAR") || weir_token_accept(ts, "CHARACTER"))
		return parse_text(ts, out, WEIR_KIND_CHAR, dg);
	if (weir_token_accept(ts, "VARCHAR"))
		return parse_text(ts, out, WEIR_KIND_VARCHAR, dg);
	if (weir_token_accept(ts, "BINARY") || weir_token_accept(ts, "VARBINARY")) {
		out->kind = WEIR_KIND_BYTES;
		return parse_length(ts, 1, INT32_MAX, &length, dg);
	}
	if (weir_token_accept(ts, "DECIMAL") || weir_token_accept(ts, "NUMERIC") || weir_token_accept(ts, "DEC"))
		return parse_decimal(ts, out, dg);
	if (weir_token_accept(ts, "TIME"))
		return parse_time(ts, out, WEIR_KIND_TIME, dg);
	if (weir_token_accept(ts, "TIMESTAMP"))
		return parse_time(ts, out, WEIR_KIND_TIMESTAMP, dg);
	if (weir_token_accept(ts, "TIMESTAMP_LTZ"))
		return parse_time(ts, out, WEIR_KIND_TIMESTAMP_LTZ, dg);
	if (weir_token_accept(ts, "ARRAY"))
		return parse_nested(ts, m, out, 1, dg);
	if (weir_token_accept(ts, "MAP"))
		return parse_nested(ts, m, out, 2, dg);
	if (weir_token_accept(ts, "ROW"))
		return parse_row(ts, m, out, dg);
	if (weir_token_is(ts, "MULTISET") || weir_token_is(ts, "RAW"))
		return weir_token_error(ts, t, dg, NULL, "not supported yet: type %s", t->text);
	return unknown_type(ts, t, dg);
}

enum weir_err weir_type_parse(struct weir_tokens *ts, struct weir_mem *m, struct weir_type *out, struct weir_diag **dg)
{
	*out = (struct weir_type){0};
	if (ts->depth >= ts->depth_max)
		return weir_token_error(ts, weir_token_peek(ts, 0), dg, NULL,
					"nesting limit %u reached (sql.depth.max)", ts->depth_max);
	ts->depth++;
	enum weir_err err = parse_one_type(ts, m, out, dg);
	ts->depth--;
	if (err == WEIR_OK && weir_token_is(ts, "NOT") && weir_token_is_at(ts, 1, "NULL")) {
		out->not_null = true;
		ts->next += 2;
	} else if (err == WEIR_OK && !weir_token_is_at(ts, 1, "ON")) { /* JSON_VALUE(... RETURNING INT NULL ON ERROR) */
		weir_token_accept(ts, "NULL");
	}
	return err;
}

/* ---- intervals ---- */

struct unit {
	const char *name;
	int64_t ms;     /* or 0 */
	int64_t months; /* or 0 */
};

static const struct unit units[] = {
	{"MILLISECOND", 1, 0},  {"SECOND", 1000, 0}, {"MINUTE", 60000, 0}, {"HOUR", 3600000, 0}, {"DAY", 86400000, 0},
	{"WEEK", 604800000, 0}, {"MONTH", 0, 1},     {"QUARTER", 0, 3},    {"YEAR", 0, 12},
};
/* Short forms, inside the string only: INTERVAL '5s'. */
static const struct unit short_units[] = {
	{"MS", 1, 0},      {"S", 1000, 0},    {"SEC", 1000, 0},   {"M", 60000, 0},
	{"MIN", 60000, 0}, {"H", 3600000, 0}, {"D", 86400000, 0},
};

static bool word_is(const char *s, size_t bytes, const char *name, bool plural)
{
	size_t n = strlen(name);
	if (plural && bytes == n + 1 && (s[n] | 32) == 's')
		bytes = n;
	if (bytes != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (((s[i] >= 'a' && s[i] <= 'z') ? s[i] - 32 : s[i]) != name[i])
			return false;
	return true;
}

static const struct unit *find_unit(const char *s, size_t bytes, bool with_short)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(units); i++)
		if (word_is(s, bytes, units[i].name, true))
			return &units[i];
	for (size_t i = 0; with_short && i < WEIR_COUNT_OF(short_units); i++)
		if (word_is(s, bytes, short_units[i].name, false))
			return &short_units[i];
	return NULL;
}

/* A text being read. */
struct scan {
	const char *at;
	const char *end;
};

static void scan_blank(struct scan *sc)
{
	while (sc->at < sc->end && *sc->at == ' ')
		sc->at++;
}

/* Digits with an optional fraction, times scale; the fraction must come out whole. False: no number or too large. */
static bool scan_number(struct scan *sc, int64_t scale, bool fraction, int64_t *out)
{
	int64_t v = 0;
	const char *from = sc->at;
	while (sc->at < sc->end && *sc->at >= '0' && *sc->at <= '9') {
		v = v * 10 + (*sc->at++ - '0');
		if (v > INTERVAL_MAX)
			return false;
	}
	if (sc->at == from || v > INTERVAL_MAX / scale)
		return false;
	v *= scale;
	if (fraction && sc->at < sc->end && *sc->at == '.') {
		int64_t unit = scale;
		for (sc->at++; sc->at < sc->end && *sc->at >= '0' && *sc->at <= '9'; sc->at++) {
			int digit = *sc->at - '0';
			if (unit % 10 != 0 && digit != 0)
				return false;
			unit /= 10;
			v += digit * unit;
		}
	}
	*out = v;
	return true;
}

static bool scan_sign(struct scan *sc)
{
	scan_blank(sc);
	bool minus = sc->at < sc->end && *sc->at == '-';
	if (sc->at < sc->end && (*sc->at == '-' || *sc->at == '+'))
		sc->at++;
	return minus;
}

/* '5 minutes 30 s': numbers with their units. */
static bool scan_plain(struct scan *sc, int64_t *value, enum weir_kind *kind)
{
	int64_t ms = 0, months = 0;
	bool minus = scan_sign(sc), any = false;
	for (scan_blank(sc); sc->at < sc->end; scan_blank(sc)) {
		const char *number = sc->at;
		int64_t n;
		if (!scan_number(sc, 1, false, &n) && sc->at == number)
			return false;
		while (sc->at < sc->end && (*sc->at == '.' || (*sc->at >= '0' && *sc->at <= '9')))
			sc->at++;
		struct scan digits = {number, sc->at};
		scan_blank(sc);
		const char *word = sc->at;
		while (sc->at < sc->end && ((*sc->at | 32) >= 'a' && (*sc->at | 32) <= 'z'))
			sc->at++;
		const struct unit *u = find_unit(word, (size_t)(sc->at - word), true);
		if (u == NULL || !scan_number(&digits, u->ms != 0 ? u->ms : u->months, u->ms != 0, &n) ||
		    digits.at != digits.end)
			return false;
		*(u->ms != 0 ? &ms : &months) += n;
		if (ms > INTERVAL_MAX || months > INTERVAL_MAX)
			return false;
		any = true;
	}
	if (!any || (ms != 0 && months != 0))
		return false;
	*kind = months != 0 ? WEIR_KIND_INTERVAL_MONTH : WEIR_KIND_INTERVAL_MS;
	*value = (minus ? -1 : 1) * (months != 0 ? months : ms);
	return true;
}

/* '1 02:03:04.5' DAY TO SECOND and the like; first and last index units[]. */
static bool scan_fields(struct scan *sc, const struct unit *first, const struct unit *last, int64_t *value)
{
	int64_t total = 0, n;
	bool minus = scan_sign(sc);
	for (const struct unit *u = first;; u--) {
		if (!scan_number(sc, u->ms != 0 ? u->ms : u->months, u->ms == 1000 && u == last, &n))
			return false;
		if (u != first && n >= (u->months != 0 ? 12 : u[1].ms))
			return false; /* 75 minutes beside hours */
		total += n;
		if (u == last)
			break;
		char separator = u->months != 0 ? '-' : u->ms == 86400000 ? ' ' : ':';
		if (sc->at >= sc->end || *sc->at != separator)
			return false;
		sc->at++;
		if (u->months == 12)
			u--; /* YEAR TO MONTH: past QUARTER */
		if (total > INTERVAL_MAX)
			return false;
	}
	scan_blank(sc);
	*value = minus ? -total : total;
	return sc->at == sc->end && total <= INTERVAL_MAX;
}

/* DAY(3), SECOND(6, 3): the width of what is printed, nothing here. */
static enum weir_err skip_unit_precision(struct weir_tokens *ts, struct weir_diag **dg)
{
	int64_t ignored;
	if (weir_token_is(ts, "(") && weir_token_peek(ts, 1)->kind == WEIR_TOK_INTEGER &&
	    weir_token_is_at(ts, 2, ",") && weir_token_peek(ts, 3)->kind == WEIR_TOK_INTEGER &&
	    weir_token_is_at(ts, 4, ")")) {
		ts->next += 5;
		return WEIR_OK;
	}
	return parse_length(ts, 0, 10, &ignored, dg);
}

enum weir_err weir_interval_parse(struct weir_tokens *ts, struct weir_mem *m, int64_t *value, enum weir_kind *kind,
				  struct weir_diag **dg)
{
	(void)m;
	enum weir_err err = weir_token_expect(ts, "INTERVAL", dg);
	if (err != WEIR_OK)
		return err;
	bool minus = weir_token_is(ts, "-");
	if (!weir_token_accept(ts, "-"))
		weir_token_accept(ts, "+");
	const struct weir_token *text = weir_token_peek(ts, 0);
	if (text->kind != WEIR_TOK_STRING)
		return weir_token_error(ts, text, dg, "write INTERVAL '5' MINUTE", "an INTERVAL's number is a string");
	ts->next++;
	struct scan sc = {text->text, text->text + text->text_bytes};
	const struct weir_token *word = weir_token_peek(ts, 0);
	const struct unit *first = word->kind == WEIR_TOK_NAME ? find_unit(word->text, word->text_bytes, false) : NULL;
	if (first == NULL) {
		if (!scan_plain(&sc, value, kind))
			return weir_token_error(ts, word, dg, "write INTERVAL '5' MINUTE",
						"expected a unit: SECOND, MINUTE, HOUR, DAY, MONTH or YEAR");
		*value = minus ? -*value : *value;
		return WEIR_OK;
	}
	ts->next++;
	err = skip_unit_precision(ts, dg);
	const struct unit *last = first;
	if (err == WEIR_OK && weir_token_accept(ts, "TO")) {
		const struct weir_token *t = weir_token_peek(ts, 0);
		last = t->kind == WEIR_TOK_NAME ? find_unit(t->text, t->text_bytes, false) : NULL;
		bool days = last != NULL && first->ms > last->ms && first->ms <= 86400000 && last->ms >= 1000;
		bool months = last != NULL && first->months == 12 && last->months == 1;
		if (!days && !months)
			return weir_token_error(ts, t, dg, NULL, "an INTERVAL cannot go from %s to this", first->name);
		ts->next++;
		err = skip_unit_precision(ts, dg);
	}
	if (err != WEIR_OK)
		return err;
	if (!scan_fields(&sc, first, last, value))
		return weir_token_error(ts, text, dg, NULL, "'%.*s' is not an INTERVAL of %s",
					text->text_bytes > 40 ? 40 : (int)text->text_bytes, text->text, first->name);
	*kind = first->months != 0 ? WEIR_KIND_INTERVAL_MONTH : WEIR_KIND_INTERVAL_MS;
	*value = minus ? -*value : *value;
	return WEIR_OK;
}
