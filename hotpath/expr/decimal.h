/* decimal.h: exact arithmetic on unscaled 128-bit decimals with 256-bit intermediates, and the result types of Flink.
 * Rounding is half up (away from zero), as Flink's. @thread any */
#ifndef WEIR_EXPR_DECIMAL_H
#define WEIR_EXPR_DECIMAL_H

#include "hotpath/core/base.h"
#include "hotpath/core/type.h"

#define WEIR_DECIMAL_PRECISION_MAX 38

/* 10^0 .. 10^38. */
extern const weir_i128 weir_decimal_pow10[WEIR_DECIMAL_PRECISION_MAX + 1];

/* Each sets *out and returns true, or returns false when the result has more than 38 digits (or divides by zero). s1,
 * s2: the scales of a and b; s: the scale wanted. */
bool weir_decimal_add(weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out);
bool weir_decimal_mul(weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out);
bool weir_decimal_div(weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out);
bool weir_decimal_mod(weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out);
/* a at scale s1 to scale s, half up. */
bool weir_decimal_rescale(weir_i128 a, int s1, int s, weir_i128 *out);
/* The same towards zero. Never fails for s <= s1. */
bool weir_decimal_truncate(weir_i128 a, int s1, int s, weir_i128 *out);
/* < 0, 0, > 0; exact for any scales. */
int weir_decimal_compare(weir_i128 a, int s1, weir_i128 b, int s2);
/* The nearest double, correctly rounded up to 2^53 and within an ulp beyond. */
double weir_decimal_to_double(weir_i128 a, int s);

WEIR_INLINE bool weir_decimal_fits(weir_i128 v, int precision)
{
	return v < weir_decimal_pow10[precision] && v > -weir_decimal_pow10[precision];
}

/* Result types of operators over DECIMAL(p1, s1) and DECIMAL(p2, s2), as Flink's. */
struct weir_type weir_decimal_type(int precision, int scale);
struct weir_type weir_decimal_type_add(const struct weir_type *a, const struct weir_type *b);
struct weir_type weir_decimal_type_mul(const struct weir_type *a, const struct weir_type *b);
struct weir_type weir_decimal_type_div(const struct weir_type *a, const struct weir_type *b);
struct weir_type weir_decimal_type_mod(const struct weir_type *a, const struct weir_type *b);
/* ROUND(DECIMAL, digits). */
struct weir_type weir_decimal_type_round(const struct weir_type *a, int digits);
/* The exact numeric type that an integer kind is in decimal arithmetic: INT is DECIMAL(10, 0). */
struct weir_type weir_decimal_type_of(const struct weir_type *t);

#endif
