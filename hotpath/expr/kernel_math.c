/* kernel_math.c: mathematical functions. @thread worker (kernels), init (resolve rules).
 *
 * Functions of DOUBLE are libm's and follow IEEE 754: SQRT(-1) is NaN, LN(0) is -Infinity. ROUND and TRUNCATE of a
 * DOUBLE work on its shortest decimal text, as in Flink: ROUND(2.675, 2) is 2.68. */
#include "hotpath/expr/kernel.h"

#include <math.h>

#include "hotpath/expr/decimal.h"
#include "hotpath/format/number.h"

#define D_D(name, EXPR)                                                                                                \
	WEIR_KERNEL(name)                                                                                              \
	{                                                                                                              \
		WEIR_FOR_ROWS(k, r)                                                                                    \
		{                                                                                                      \
			double x = weir_arg_f64(k, 0, r);                                                              \
			k->out->f64[r] = (EXPR);                                                                       \
		}                                                                                                      \
	}
D_D(sqrt, sqrt(x))
D_D(exp, exp(x))
D_D(ln, log(x))
D_D(log10, log10(x))
D_D(log2, log2(x))
D_D(sin, sin(x))
D_D(cos, cos(x))
D_D(tan, tan(x))
D_D(cot, 1 / tan(x))
D_D(asin, asin(x))
D_D(acos, acos(x))
D_D(atan, atan(x))
D_D(sinh, sinh(x))
D_D(cosh, cosh(x))
D_D(tanh, tanh(x))
D_D(degrees, x * 180 / M_PI)
D_D(radians, x / 180 * M_PI)

#define D_DD(name, EXPR)                                                                                               \
	WEIR_KERNEL(name)                                                                                              \
	{                                                                                                              \
		WEIR_FOR_ROWS(k, r)                                                                                    \
		{                                                                                                      \
			double x = weir_arg_f64(k, 0, r), y = weir_arg_f64(k, 1, r);                                   \
			k->out->f64[r] = (EXPR);                                                                       \
		}                                                                                                      \
	}
D_DD(power, pow(x, y))
D_DD(atan2, atan2(x, y))
D_DD(log_base, log(y) / log(x))

WEIR_KERNEL(pi)
{
	WEIR_FOR_ROWS(k, r)
	k->out->f64[r] = M_PI;
}

WEIR_KERNEL(e)
{
	WEIR_FOR_ROWS(k, r)
	k->out->f64[r] = M_E;
}

/* -- ROUND, TRUNCATE, FLOOR, CEIL -- */

static bool want_digits(uint32_t count, struct weir_type *want)
{
	if (count < 2)
		return true;
	if (!weir_kind_is_integer(want[1].kind) && want[1].kind != WEIR_KIND_NULL)
		return false;
	bool not_null = want[1].not_null;
	want[1] = weir_type_of(WEIR_KIND_BIGINT);
	want[1].not_null = not_null;
	return true;
}

WEIR_RESOLVE(round_int)
{
	(void)args;
	if ((!weir_kind_is_integer(want[0].kind) && want[0].kind != WEIR_KIND_NULL) || !want_digits(count, want))
		return false;
	if (want[0].kind == WEIR_KIND_NULL)
		want[0] = weir_type_of(WEIR_KIND_INT);
	*result = want[0];
	result->not_null = want[0].not_null && (count < 2 || want[1].not_null);
	return true;
}

WEIR_RESOLVE(round_decimal)
{
	if (want[0].kind != WEIR_KIND_DECIMAL || !want_digits(count, want))
		return false;
	const struct weir_expr *digits = weir_const_arg(args, count, 1);
	bool not_null = want[0].not_null && (count < 2 || want[1].not_null);
	int64_t n = digits != NULL ? digits->value.i64 : count < 2 ? 0 : 38; /* a column: keeps the scale */
	*result = weir_decimal_type_round(&want[0], n > 38 ? 38 : n < -38 ? -38 : (int)n);
	result->not_null = not_null;
	return true;
}

WEIR_RESOLVE(round_double)
{
	(void)args;
	if ((want[0].kind != WEIR_KIND_DOUBLE && want[0].kind != WEIR_KIND_FLOAT) || !want_digits(count, want))
		return false;
	*result = want[0];
	result->not_null = want[0].not_null && (count < 2 || want[1].not_null);
	return true;
}

/* FLOOR and CEIL of DECIMAL(p, s) are DECIMAL(p, 0). */
WEIR_RESOLVE(floor_decimal)
{
	(void)args, (void)count;
	if (want[0].kind != WEIR_KIND_DECIMAL)
		return false;
	*result = weir_decimal_type(want[0].precision, 0);
	result->not_null = want[0].not_null;
	return true;
}

static int digits_of(const struct weir_kernel *k, uint32_t r)
{
	int64_t n = k->expr->arg_count < 2 ? 0 : weir_arg_i64(k, 1, r);
	return n > 40 ? 40 : n < -40 ? -40 : (int)n;
}

/* v at scale s, rounded or cut to `digits` of fraction (maybe negative), at scale `to`. */
static bool round_i128(weir_i128 v, int s, int digits, int to, bool cut, weir_i128 *out)
{
	if (digits >= s)
		return weir_decimal_rescale(v, s, to, out);
	bool ok = cut ? weir_decimal_truncate(v, s, digits, &v) : weir_decimal_rescale(v, s, digits, &v);
	return ok && weir_decimal_rescale(v, digits, to, out);
}

static void round_ints(struct weir_kernel *k, bool cut)
{
	WEIR_FOR_ROWS(k, r)
	{
		weir_i128 v = 0;
		bool ok = round_i128(weir_arg_i64(k, 0, r), 0, digits_of(k, r), 0, cut, &v);
		enum weir_kind kind = k->expr->type.kind;
		int bits = kind == WEIR_KIND_TINYINT    ? 7
			   : kind == WEIR_KIND_SMALLINT ? 15
			   : kind == WEIR_KIND_INT      ? 31
							: 63;
		if (ok && v >= -((weir_i128)1 << bits) && v < (weir_i128)1 << bits)
			k->out->i64[r] = (int64_t)v;
		else
			weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "integer out of range");
	}
}

static void round_decimals(struct weir_kernel *k, bool cut)
{
	int s = k->expr->args[0]->type.scale;
	const struct weir_type *t = &k->expr->type;
	WEIR_FOR_ROWS(k, r)
	{
		weir_i128 v = 0;
		if (round_i128(weir_col_i128(k->in[0], r), s, digits_of(k, r), t->scale, cut, &v) &&
		    weir_decimal_fits(v, t->precision))
			weir_col_put_i128(k->out, r, v);
		else
			weir_kernel_fail(k, r, WEIR_REASON_OVERFLOW, "decimal out of range");
	}
}

static double round_double(double x, int digits, bool cut)
{
	char text[WEIR_NUMBER_TEXT_MAX];
	weir_i128 v;
	if (!isfinite(x) || (digits >= 0 && fabs(x) >= 0x1p53))
		return x;
	struct weir_number n;
	if (!weir_number_scan(text, weir_print_double(x, text), &n))
		return x;
	/* Its shortest digits are at most 17: mantissa * 10^exp10 exactly. */
	if (n.exp10 >= 0 ? n.exp10 > 20 : n.exp10 < -60)
		return n.exp10 >= 0 ? x : 0;
	if (n.exp10 >= -digits)
		return x;
	v = n.negative ? -(weir_i128)n.mantissa : (weir_i128)n.mantissa;
	int s = -n.exp10, shift = s - digits;
	if (shift > WEIR_DECIMAL_PRECISION_MAX)
		return n.negative ? -0.0 : 0;
	bool ok = cut ? weir_decimal_truncate(v, shift, 0, &v) : weir_decimal_rescale(v, shift, 0, &v);
	if (!ok)
		return x;
	if (digits >= 0)
		return weir_decimal_to_double(v, digits > WEIR_DECIMAL_PRECISION_MAX ? WEIR_DECIMAL_PRECISION_MAX
										     : digits);
	return weir_decimal_rescale(v, digits, 0, &v) ? weir_decimal_to_double(v, 0) : x;
}

static void round_doubles(struct weir_kernel *k, bool cut)
{
	WEIR_FOR_ROWS(k, r)
	k->out->f64[r] = round_double(weir_arg_f64(k, 0, r), digits_of(k, r), cut);
}

WEIR_KERNEL(round_int)
{
	round_ints(k, false);
}

WEIR_KERNEL(round_decimal)
{
	round_decimals(k, false);
}

WEIR_KERNEL(round_double)
{
	round_doubles(k, false);
}

WEIR_KERNEL(truncate_int)
{
	round_ints(k, true);
}

WEIR_KERNEL(truncate_decimal)
{
	round_decimals(k, true);
}

WEIR_KERNEL(truncate_double)
{
	round_doubles(k, true);
}

static void floor_decimals(struct weir_kernel *k, bool up)
{
	weir_i128 unit = weir_decimal_pow10[k->expr->args[0]->type.scale];
	WEIR_FOR_ROWS(k, r)
	{
		weir_i128 v = weir_col_i128(k->in[0], r), q = v / unit, rest = v % unit;
		weir_col_put_i128(k->out, r, up ? q + (rest > 0) : q - (rest < 0));
	}
}

WEIR_KERNEL(floor_decimal)
{
	floor_decimals(k, false);
}

WEIR_KERNEL(ceil_decimal)
{
	floor_decimals(k, true);
}

D_D(floor_double, floor(x))
D_D(ceil_double, ceil(x))
