/* type_rule.c: which type two sides meet in, and which conversions happen by themselves. Flink's rules. Cold path,
 * @thread init. */
#include <stdio.h>

#include "hotpath/expr/cast.h"
#include "hotpath/expr/decimal.h"
#include "hotpath/expr/tree.h"

static bool common_numeric(const struct weir_type *a, const struct weir_type *b, struct weir_type *out)
{
	bool a_approx = a->kind == WEIR_KIND_FLOAT || a->kind == WEIR_KIND_DOUBLE;
	bool b_approx = b->kind == WEIR_KIND_FLOAT || b->kind == WEIR_KIND_DOUBLE;
	if (a_approx || b_approx) {
		bool wide = a->kind == WEIR_KIND_DOUBLE || b->kind == WEIR_KIND_DOUBLE ||
			    a->kind == WEIR_KIND_DECIMAL || b->kind == WEIR_KIND_DECIMAL;
		out->kind = wide ? WEIR_KIND_DOUBLE : WEIR_KIND_FLOAT;
		return true;
	}
	if (a->kind != WEIR_KIND_DECIMAL && b->kind != WEIR_KIND_DECIMAL) {
		out->kind = a->kind > b->kind ? a->kind : b->kind;
		return true;
	}
	struct weir_type x = weir_decimal_type_of(a), y = weir_decimal_type_of(b);
	int whole = x.precision - x.scale > y.precision - y.scale ? x.precision - x.scale : y.precision - y.scale;
	int scale = x.scale > y.scale ? x.scale : y.scale;
	if (whole + scale > WEIR_DECIMAL_PRECISION_MAX)
		scale = WEIR_DECIMAL_PRECISION_MAX - whole;
	out->kind = WEIR_KIND_DECIMAL;
	out->precision = (uint8_t)(whole + scale);
	out->scale = (uint8_t)scale;
	return true;
}

static bool common_text(const struct weir_type *a, const struct weir_type *b, struct weir_type *out)
{
	*out = *a;
	out->kind = a->kind == b->kind && a->length == b->length ? a->kind : WEIR_KIND_VARCHAR;
	out->length = a->length > b->length ? a->length : b->length;
	return true;
}

/* DATE < TIMESTAMP < TIMESTAMP_LTZ, the larger precision. */
static bool common_time(const struct weir_type *a, const struct weir_type *b, struct weir_type *out)
{
	if ((a->kind == WEIR_KIND_TIME) != (b->kind == WEIR_KIND_TIME))
		return false;
	out->kind = a->kind > b->kind ? a->kind : b->kind;
	out->precision = a->precision > b->precision ? a->precision : b->precision;
	return true;
}

static bool is_time(enum weir_kind k)
{
	return k >= WEIR_KIND_DATE && k <= WEIR_KIND_TIMESTAMP_LTZ;
}

bool weir_type_common(const struct weir_type *a, const struct weir_type *b, struct weir_type *out)
{
	struct weir_type t = {0};
	bool found = true;
	if (a->kind == WEIR_KIND_NULL)
		t = *b;
	else if (b->kind == WEIR_KIND_NULL || weir_type_equal(a, b))
		t = *a;
	else if (weir_kind_is_numeric(a->kind) && weir_kind_is_numeric(b->kind))
		found = common_numeric(a, b, &t);
	else if (weir_kind_is_string(a->kind) && weir_kind_is_string(b->kind))
		found = common_text(a, b, &t);
	else if (is_time(a->kind) && is_time(b->kind))
		found = common_time(a, b, &t);
	else
		found = false;
	if (!found)
		return false;
	t.not_null = a->not_null && b->not_null;
	*out = t;
	return true;
}

/* What happens without a CAST: numbers to wider ones, to DECIMAL and to DOUBLE; texts; dates to timestamps. */
static bool coerces(const struct weir_type *from, const struct weir_type *to)
{
	enum weir_kind f = from->kind, t = to->kind;
	if (f == WEIR_KIND_NULL || weir_type_equal(from, to))
		return true;
	if (weir_kind_is_numeric(f) && weir_kind_is_numeric(t)) {
		if (t == WEIR_KIND_DECIMAL || t == WEIR_KIND_DOUBLE)
			return true;
		if (t == WEIR_KIND_FLOAT)
			return f != WEIR_KIND_DOUBLE;
		return weir_kind_is_integer(f) && f <= t;
	}
	if (weir_kind_is_string(f) && weir_kind_is_string(t))
		return true;
	if (weir_kind_is_timestamp(f) && (weir_kind_is_timestamp(t) || t == WEIR_KIND_DATE))
		return true;
	if (f == WEIR_KIND_TIME && t == WEIR_KIND_TIME)
		return true;
	return f == WEIR_KIND_DATE && weir_kind_is_timestamp(t);
}

/* e with type `to`, values as they are. */
static const struct weir_expr *retype(const struct weir_expr *e, const struct weir_type *to, struct weir_mem *m)
{
	struct weir_expr *x;
	if (e->op == WEIR_EXPR_CAST || e->op == WEIR_EXPR_TRY_CAST || e->op == WEIR_EXPR_CALL) {
		/* Their kernels look at the type: a COALESCE of one argument only hands the value on. */
		x = weir_mem_take(m, sizeof *x);
		x->op = WEIR_EXPR_COALESCE;
		x->arg_count = 1;
		x->args = weir_mem_copy(m, &e, sizeof e);
		x->text = e->text;
	} else {
		x = weir_mem_copy(m, e, sizeof *e);
	}
	x->type = *to;
	x->type.not_null = e->type.not_null;
	return x;
}

const struct weir_expr *weir_expr_cast(const struct weir_expr *e, const struct weir_type *to, bool try_cast,
				       struct weir_mem *m)
{
	if (weir_type_equal(&e->type, to))
		return e;
	if (e->op == WEIR_EXPR_CONST && e->is_null)
		return weir_expr_make_null(m, to);
	if (!weir_cast_exists(&e->type, to))
		return NULL;
	if (weir_cast_is_noop(&e->type, to) && (e->op == WEIR_EXPR_COLUMN || e->op == WEIR_EXPR_CONST))
		return retype(e, to, m);
	struct weir_expr *x = weir_mem_take(m, sizeof *x);
	x->op = try_cast ? WEIR_EXPR_TRY_CAST : WEIR_EXPR_CAST;
	x->type = *to;
	x->type.not_null = e->type.not_null && (!try_cast || weir_cast_is_safe(&e->type, to));
	x->arg_count = 1;
	x->args = weir_mem_copy(m, &e, sizeof e);
	x->text = weir_expr_short_text(x, m);
	return weir_expr_fold(x, m);
}

const struct weir_expr *weir_expr_coerce(const struct weir_expr *e, const struct weir_type *to, struct weir_mem *m)
{
	if (!coerces(&e->type, to))
		return NULL;
	if (weir_type_equal(&e->type, to))
		return e;
	/* A declared length does not cut what is written: as Flink without a length enforcer. */
	if (weir_kind_is_string(e->type.kind) && weir_kind_is_string(to->kind))
		return retype(e, to, m);
	return weir_expr_cast(e, to, false, m);
}

/* The type two compared sides meet in: the common one, or a date or time where the other side is its text. */
static bool compare_common(const struct weir_type *a, const struct weir_type *b, struct weir_type *out)
{
	if (weir_type_common(a, b, out))
		return true;
	if (weir_kind_is_string(a->kind) && is_time(b->kind))
		*out = *b;
	else if (weir_kind_is_string(b->kind) && is_time(a->kind))
		*out = *a;
	else
		return false;
	if (weir_kind_is_timestamp(out->kind) && out->precision < 3)
		out->precision = 3;
	return true;
}

bool weir_expr_coerce_compare(struct weir_mem *m, const struct weir_expr **args, uint32_t count,
			      struct weir_expr_problem *pb)
{
	char x[64], y[64];
	struct weir_type t = args[0]->type;
	for (uint32_t i = 1; i < count; i++) {
		struct weir_type was = t;
		if (compare_common(&was, &args[i]->type, &t))
			continue;
		snprintf(pb->text, sizeof pb->text, "cannot compare %s with %s", weir_type_text(&was, x, sizeof x),
			 weir_type_text(&args[i]->type, y, sizeof y));
		snprintf(pb->hint, sizeof pb->hint, "CAST one of them");
		return false;
	}
	/* Texts compare as they are, whatever their lengths. */
	for (uint32_t i = 0; i < count; i++) {
		if (weir_kind_is_string(t.kind) && weir_kind_is_string(args[i]->type.kind))
			continue;
		const struct weir_expr *e = weir_expr_cast(args[i], &t, false, m);
		if (e == NULL) {
			snprintf(pb->text, sizeof pb->text, "cannot compare %s with %s",
				 weir_type_text(&args[i]->type, x, sizeof x), weir_type_text(&t, y, sizeof y));
			return false;
		}
		args[i] = e;
	}
	return true;
}
