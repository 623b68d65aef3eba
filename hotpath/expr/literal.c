/* literal.c: literals of the grammar as constants. Exact: a DECIMAL never passes through a double. Cold path,
 * @thread init. */
#include <stdio.h>

#include "hotpath/expr/decimal.h"
#include "hotpath/expr/tree.h"
#include "hotpath/time/civil.h"

static int shown(const struct weir_ast *a)
{
	return a->text_bytes > 60 ? 60 : (int)a->text_bytes;
}

static const struct weir_expr *bad(const struct weir_ast *a, struct weir_expr_problem *pb, const char *what)
{
	snprintf(pb->text, sizeof pb->text, "'%.*s' is not a valid %s", shown(a), a->text, what);
	return NULL;
}

/* Digits with an optional point: the unscaled value, how many digits there are, and how many after the point. */
static bool read_digits(const struct weir_ast *a, weir_i128 *value, int *digits, int *scale)
{
	bool minus = a->text_bytes > 0 && a->text[0] == '-', point = false;
	weir_i128 v = 0;
	*digits = *scale = 0;
	for (uint32_t i = minus; i < a->text_bytes; i++) {
		if (a->text[i] == '.') {
			point = true;
			continue;
		}
		bool leading = v == 0 && a->text[i] == '0' && !point;
		*digits += !leading;
		*scale += point;
		if (*digits > WEIR_DECIMAL_PRECISION_MAX)
			return false; /* before it could leave 128 bits */
		v = v * 10 + (a->text[i] - '0');
	}
	*value = minus ? -v : v;
	return true;
}

static const struct weir_expr *number(const struct weir_ast *a, struct weir_mem *m, struct weir_expr_problem *pb)
{
	weir_i128 v;
	int digits, scale;
	struct weir_type t = {.not_null = true};
	if (!read_digits(a, &v, &digits, &scale)) {
		snprintf(pb->text, sizeof pb->text, "the number %.*s... has more than 38 digits", 20, a->text);
		return NULL;
	}
	if (a->kind == WEIR_AST_INTEGER && v >= INT64_MIN && v <= INT64_MAX) {
		t.kind = v >= INT32_MIN && v <= INT32_MAX ? WEIR_KIND_INT : WEIR_KIND_BIGINT;
		return weir_expr_make_const(m, &t, (struct weir_value){.i64 = (int64_t)v});
	}
	/* 0.05 is DECIMAL(3, 2) in Flink: a digit before the point counts where it is written. */
	bool written = a->text[a->text[0] == '-'] != '.';
	if (digits <= scale)
		digits = scale + (written && scale < WEIR_DECIMAL_PRECISION_MAX);
	t.kind = WEIR_KIND_DECIMAL;
	t.precision = (uint8_t)(digits == 0 ? 1 : digits);
	t.scale = (uint8_t)scale;
	if (weir_type_phys(&t) == WEIR_PHYS_I64)
		return weir_expr_make_const(m, &t, (struct weir_value){.i64 = (int64_t)v});
	return weir_expr_make_const(m, &t, (struct weir_value){.i128 = v});
}

/* A DOUBLE is read by the cast that data goes through. */
static const struct weir_expr *floating(const struct weir_ast *a, struct weir_mem *m, struct weir_expr_problem *pb)
{
	struct weir_type t = {.kind = WEIR_KIND_DOUBLE, .not_null = true};
	const struct weir_expr *e = weir_expr_cast(weir_expr_make_string(m, a->text, a->text_bytes), &t, false, m);
	return e != NULL && e->op == WEIR_EXPR_CONST ? e : bad(a, pb, "DOUBLE");
}

static const struct weir_expr *timestamp(const struct weir_ast *a, struct weir_mem *m, struct weir_expr_problem *pb)
{
	struct weir_type t = {.kind = WEIR_KIND_TIMESTAMP, .not_null = true};
	const char *point = memchr(a->text, '.', a->text_bytes);
	int fraction = 0;
	if (point != NULL)
		for (const char *c = point + 1; c < a->text + a->text_bytes && *c >= '0' && *c <= '9'; c++)
			fraction++;
	t.precision = (uint8_t)(fraction > 6 ? 6 : fraction);
	int64_t ticks;
	bool had_zone = false;
	enum weir_civil_result r = weir_civil_parse_timestamp(a->text, a->text_bytes, t.precision,
							      weir_ticks_per_ms(&t), &ticks, &had_zone);
	if (r != WEIR_CIVIL_OK || had_zone) {
		snprintf(pb->hint, sizeof pb->hint, "write TIMESTAMP '2026-01-01 00:00:00'");
		return bad(a, pb, "TIMESTAMP");
	}
	return weir_expr_make_const(m, &t, (struct weir_value){.i64 = ticks});
}

static const struct weir_expr *date_or_time(const struct weir_ast *a, struct weir_mem *m, struct weir_expr_problem *pb)
{
	bool is_date = a->kind == WEIR_AST_DATE;
	struct weir_type t = {.kind = is_date ? WEIR_KIND_DATE : WEIR_KIND_TIME, .not_null = true};
	int64_t v;
	if (!is_date)
		t.precision = memchr(a->text, '.', a->text_bytes) != NULL ? 3 : 0;
	enum weir_civil_result r = is_date ? weir_civil_parse_date(a->text, a->text_bytes, &v)
					   : weir_civil_parse_time(a->text, a->text_bytes, t.precision, &v);
	if (r != WEIR_CIVIL_OK) {
		snprintf(pb->hint, sizeof pb->hint, "write %s", is_date ? "DATE '2026-01-31'" : "TIME '12:30:00'");
		return bad(a, pb, is_date ? "DATE" : "TIME");
	}
	return weir_expr_make_const(m, &t, (struct weir_value){.i64 = v});
}

const struct weir_expr *weir_expr_literal(const struct weir_ast *a, struct weir_mem *m, struct weir_expr_problem *pb)
{
	struct weir_type t = {.kind = WEIR_KIND_NULL};
	switch (a->kind) {
	case WEIR_AST_NULL:
		return weir_expr_make_null(m, &t);
	case WEIR_AST_TRUE:
	case WEIR_AST_FALSE:
		return weir_expr_bool(m, a->kind == WEIR_AST_TRUE);
	case WEIR_AST_INTEGER:
	case WEIR_AST_DECIMAL:
		return number(a, m, pb);
	case WEIR_AST_DOUBLE:
		return floating(a, m, pb);
	case WEIR_AST_STRING:
	case WEIR_AST_UNIT:
		return weir_expr_make_string(m, a->text, a->text_bytes);
	case WEIR_AST_BYTES:
		t.kind = WEIR_KIND_BYTES;
		return weir_expr_make_const(m, &t, weir_expr_make_string(m, a->text, a->text_bytes)->value);
	case WEIR_AST_DATE:
	case WEIR_AST_TIME:
		return date_or_time(a, m, pb);
	case WEIR_AST_TIMESTAMP:
		return timestamp(a, m, pb);
	case WEIR_AST_INTERVAL:
		t.kind = a->type.kind;
		return weir_expr_make_const(m, &t, (struct weir_value){.i64 = a->value});
	default:
		WEIR_ASSERT(!"a literal");
		return NULL;
	}
}
