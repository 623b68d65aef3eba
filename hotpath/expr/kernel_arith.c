/* kernel_arith.c: + - * / % and the signs over integers and doubles. @thread worker (kernels), init (resolve rules).
 *
 * Integers never wrap: a result outside its type is a row error (overflow), a division by zero one with reason expr.
 * The fast loops run over everything and only collect whether anything was wrong; the row is looked for in a second
 * pass. DOUBLE follows IEEE 754: x / 0 is an infinity or NaN, which then prints as NULL. FLOAT is computed in double
 * and rounded. */
#include "hotpath/expr/kernel.h"

#include <math.h>

static bool is_int_or_null(const struct weir_type *t)
{
	return weir_kind_is_integer(t->kind) || t->kind == WEIR_KIND_NULL;
}

static bool is_double(const struct weir_type *t)
{
	return t->kind == WEIR_KIND_FLOAT || t->kind == WEIR_KIND_DOUBLE;
}

static bool none_null(const struct weir_type *want, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!want[i].not_null)
			return false;
	return true;
}

static struct weir_type kind_like(enum weir_kind kind, const struct weir_type *was)
{
	struct weir_type t = weir_type_of(kind);
	t.not_null = was->not_null;
	return t;
}

WEIR_RESOLVE(int_arith)
{
	(void)args;
	enum weir_kind kind = WEIR_KIND_NULL;
	for (uint32_t i = 0; i < count; i++) {
		if (!is_int_or_null(&want[i]))
			return false;
		if (want[i].kind > kind)
			kind = want[i].kind;
	}
	if (kind == WEIR_KIND_NULL)
		kind = WEIR_KIND_INT;
	*result = weir_type_of(kind);
	result->not_null = none_null(want, count);
	for (uint32_t i = 0; i < count; i++)
		want[i] = kind_like(kind, &want[i]);
	return true;
}

/* a % b has the type of b, as its values are below b's. */
WEIR_RESOLVE(mod_int)
{
	enum weir_kind divisor = want[1].kind;
	if (!weir_resolve_int_arith(args, count, want, result))
		return false;
	bool not_null = result->not_null;
	*result = weir_type_of(divisor == WEIR_KIND_NULL ? want[0].kind : divisor);
	result->not_null = not_null;
	return true;
}

WEIR_RESOLVE(double_arith)
{
	(void)args;
	bool any = false, wide = false;
	for (uint32_t i = 0; i < count; i++) {
		if (!weir_kind_is_numeric(want[i].kind) && want[i].kind != WEIR_KIND_NULL)
			return false;
		any |= is_double(&want[i]);
		wide |= want[i].kind == WEIR_KIND_DOUBLE || want[i].kind == WEIR_KIND_DECIMAL;
	}
	if (!any)
		return false;
	*result = weir_type_of(wide ? WEIR_KIND_DOUBLE : WEIR_KIND_FLOAT);
	result->not_null = none_null(want, count);
	for (uint32_t i = 0; i < count; i++)
		want[i] = kind_like(result->kind, &want[i]);
	return true;
}

WEIR_RESOLVE(int_unary)
{
	return weir_resolve_int_arith(args, count, want, result);
}

WEIR_RESOLVE(double_unary)
{
	return weir_resolve_double_arith(args, count, want, result);
}

/* Half the range of an integer kind: values are in [-half, half). */
static uint64_t kind_half(enum weir_kind kind)
{
	return UINT64_C(1) << (kind == WEIR_KIND_TINYINT ? 7 : kind == WEIR_KIND_SMALLINT ? 15 : 31);
}

static bool kind_holds(enum weir_kind kind, int64_t v)
{
	uint64_t half = kind_half(kind);
	return kind == WEIR_KIND_BIGINT || ((uint64_t)v + half) < 2 * half;
}

/* Second pass: which rows overflowed. op: '+', '-', '*', 'n' (negate). */
static WEIR_COLD void find_overflow(struct weir_kernel *k, char op)
{
	enum weir_kind kind = k->expr->type.kind;
	WEIR_FOR_ROWS(k, r)
	{
		if (weir_col_is_null(k->out, r))
			continue;
		int64_t x = weir_arg_i64(k, 0, r), y = op == 'n' ? 0 : weir_arg_i64(k, 1, r), v = 0;
		bool bad = op == '+'   ? __builtin_add_overflow(x, y, &v)
			   : op == '-' ? __builtin_sub_overflow(x, y, &v)
			   : op == '*' ? __builtin_mul_overflow(x, y, &v)
				       : __builtin_sub_overflow(y, x, &v);
		if (bad || !kind_holds(kind, v))
			weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "integer out of range");
	}
}

#define INT_LOOPS(STMT)                                                                                                \
	WEIR_BINARY_LOOPS(k, int64_t, k->in[0]->i64, k->in[0]->is_const, int64_t, k->in[1]->i64, k->in[1]->is_const,   \
			  STMT)

/* About 0.7 ns a row dense. */
#define INT_ADD_LIKE(name, op_char, OP, SIGN_RULE)                                                                     \
	WEIR_KERNEL_LOOPS WEIR_KERNEL(name)                                                                            \
	{                                                                                                              \
		int64_t *restrict o = k->out->i64;                                                                     \
		uint64_t bad = 0;                                                                                      \
		if (k->expr->type.kind == WEIR_KIND_BIGINT) {                                                          \
			INT_LOOPS(int64_t s = (int64_t)((uint64_t)x OP(uint64_t) y); o[r] = s;                         \
				  bad |= (uint64_t)(SIGN_RULE));                                                       \
			bad >>= 63;                                                                                    \
		} else {                                                                                               \
			uint64_t half = kind_half(k->expr->type.kind), out = ~(2 * half - 1);                          \
			INT_LOOPS(int64_t s = (int64_t)((uint64_t)x OP(uint64_t) y); o[r] = s;                         \
				  bad |= ((uint64_t)s + half) & out);                                                  \
		}                                                                                                      \
		if (WEIR_UNLIKELY(bad != 0))                                                                           \
			find_overflow(k, op_char);                                                                     \
	}

INT_ADD_LIKE(add_int, '+', +, (x ^ s) & (y ^ s))
INT_ADD_LIKE(sub_int, '-', -, (x ^ y) & (x ^ s))

WEIR_KERNEL_LOOPS WEIR_KERNEL(mul_int)
{
	int64_t *restrict o = k->out->i64;
	uint64_t bad = 0;
	if (k->expr->type.kind == WEIR_KIND_BIGINT) {
		INT_LOOPS(bad |= __builtin_mul_overflow(x, y, &o[r]));
	} else {
		uint64_t half = kind_half(k->expr->type.kind), out = ~(2 * half - 1);
		INT_LOOPS(int64_t s = (int64_t)((uint64_t)x * (uint64_t)y); o[r] = s;
			  bad |= ((uint64_t)s + half) & out);
	}
	if (WEIR_UNLIKELY(bad != 0))
		find_overflow(k, '*');
}

WEIR_KERNEL(div_int)
{
	enum weir_kind kind = k->expr->type.kind;
	WEIR_FOR_ROWS(k, r)
	{
		int64_t x = weir_arg_i64(k, 0, r), y = weir_arg_i64(k, 1, r);
		if (WEIR_UNLIKELY(y == 0)) {
			weir_kernel_fail(k, r, WEIR_REASON_EXPR, "division by zero");
		} else if (WEIR_UNLIKELY(y == -1)) {
			if (x == INT64_MIN || !kind_holds(kind, -x))
				weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "integer out of range");
			else
				k->out->i64[r] = -x;
		} else {
			k->out->i64[r] = x / y;
		}
	}
}

WEIR_KERNEL(mod_int)
{
	WEIR_FOR_ROWS(k, r)
	{
		int64_t x = weir_arg_i64(k, 0, r), y = weir_arg_i64(k, 1, r);
		if (WEIR_UNLIKELY(y == 0))
			weir_kernel_fail(k, r, WEIR_REASON_EXPR, "division by zero");
		else
			k->out->i64[r] = y == -1 ? 0 : x % y;
	}
}

WEIR_KERNEL_LOOPS WEIR_KERNEL(neg_int)
{
	int64_t *restrict o = k->out->i64;
	bool bad = false;
	enum weir_kind kind = k->expr->type.kind;
	int64_t low = kind == WEIR_KIND_BIGINT ? INT64_MIN : -(int64_t)kind_half(kind);
	WEIR_UNARY_LOOPS(k, int64_t, k->in[0]->i64, k->in[0]->is_const, bad |= x == low;
			 o[r] = (int64_t)(0 - (uint64_t)x));
	if (WEIR_UNLIKELY(bad))
		find_overflow(k, 'n');
}

WEIR_KERNEL(abs_int)
{
	enum weir_kind kind = k->expr->type.kind;
	WEIR_FOR_ROWS(k, r)
	{
		int64_t x = weir_arg_i64(k, 0, r);
		if (x < 0 && (x == INT64_MIN || !kind_holds(kind, -x)))
			weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "integer out of range");
		else
			k->out->i64[r] = x < 0 ? -x : x;
	}
}

WEIR_KERNEL_LOOPS WEIR_KERNEL(sign_int)
{
	int64_t *restrict o = k->out->i64;
	WEIR_UNARY_LOOPS(k, int64_t, k->in[0]->i64, k->in[0]->is_const, o[r] = (x > 0) - (x < 0));
}

/* FLOAT values stay floats. Cost: one more pass, only for FLOAT. */
static void round_to_float(struct weir_kernel *k)
{
	if (k->expr->type.kind != WEIR_KIND_FLOAT)
		return;
	WEIR_FOR_ROWS(k, r)
	k->out->f64[r] = (double)(float)k->out->f64[r];
}

#define DOUBLE_BINARY(name, EXPR)                                                                                      \
	WEIR_KERNEL_LOOPS WEIR_KERNEL(name)                                                                            \
	{                                                                                                              \
		double *restrict o = k->out->f64;                                                                      \
		WEIR_BINARY_LOOPS(k, double, k->in[0]->f64, k->in[0]->is_const, double, k->in[1]->f64,                 \
				  k->in[1]->is_const, o[r] = (EXPR));                                                  \
		round_to_float(k);                                                                                     \
	}
DOUBLE_BINARY(add_double, x + y)
DOUBLE_BINARY(sub_double, x - y)
DOUBLE_BINARY(mul_double, x *y)
#ifdef __clang__
__attribute__((no_sanitize("float-divide-by-zero")))
#endif
DOUBLE_BINARY(div_double, x / y) DOUBLE_BINARY(mod_double, fmod(x, y))

#define DOUBLE_UNARY(name, EXPR)                                                                                       \
	WEIR_KERNEL_LOOPS WEIR_KERNEL(name)                                                                            \
	{                                                                                                              \
		double *restrict o = k->out->f64;                                                                      \
		WEIR_UNARY_LOOPS(k, double, k->in[0]->f64, k->in[0]->is_const, o[r] = (EXPR));                         \
	}
	DOUBLE_UNARY(neg_double, -x) DOUBLE_UNARY(abs_double, fabs(x)) DOUBLE_UNARY(sign_double, x > 0   ? 1
												 : x < 0 ? -1
													 : x)
