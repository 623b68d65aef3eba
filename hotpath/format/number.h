/* number.h: numbers as text, both ways: exact for integers and DECIMAL, correctly rounded for DOUBLE and FLOAT,
 * shortest digits on the way out. No locale, no allocation, no strtod. Pure functions, @thread any. */
#ifndef WEIR_FORMAT_NUMBER_H
#define WEIR_FORMAT_NUMBER_H

#include "hotpath/core/base.h"

enum weir_number_result {
	WEIR_NUMBER_OK,
	WEIR_NUMBER_MALFORMED, /* no number, or not one of this type (1.7 as an integer) */
	WEIR_NUMBER_RANGE      /* a number beyond the type's range */
};

/* A number taken apart, not yet of any type: sign, digits, power of ten. value = mantissa * 10^exp10 if !cut. */
struct weir_number {
	uint64_t mantissa; /* the first 19 significant digits */
	int32_t exp10;     /* power of ten of mantissa's last digit; clamped to +-WEIR_NUMBER_EXP_MAX */
	uint32_t digits;   /* significant digits in the text, leading zeros not counted */
	bool negative;
	bool cut;          /* digits > 19: mantissa misses some, see first */
	const char *first; /* the first significant digit; borrowed from the text */
	const char *end;   /* behind the last digit of the fraction or integer part */
};
#define WEIR_NUMBER_EXP_MAX 100000000

/* Takes apart [s, s + bytes), all of it: `[+-] digits [. digits] [e [+-] digits]`, where one side of the point may be
 * empty (`.5`, `5.`). JSON's stricter grammar is for its decoder to check. False: no number. */
bool weir_number_scan(const char *s, size_t bytes, struct weir_number *n);

/* An integer takes `1.0` and `1e2` but not `1.7` (MALFORMED). */
enum weir_number_result weir_number_to_i64(const struct weir_number *n, int64_t *out);
/* Unscaled value of a DECIMAL(precision, scale), precision <= 38; digits beyond the scale round half away from zero. */
enum weir_number_result weir_number_to_decimal(const struct weir_number *n, int precision, int scale, weir_i128 *out);
/* Round to nearest, ties to even. Beyond the largest finite value: RANGE; too small: a signed zero. */
enum weir_number_result weir_number_to_double(const struct weir_number *n, double *out);
enum weir_number_result weir_number_to_float(const struct weir_number *n, float *out);

/* Scan and convert in one. */
enum weir_number_result weir_parse_i64(const char *s, size_t bytes, int64_t *out);
enum weir_number_result weir_parse_double(const char *s, size_t bytes, double *out);
enum weir_number_result weir_parse_float(const char *s, size_t bytes, float *out);
enum weir_number_result weir_parse_decimal(const char *s, size_t bytes, int precision, int scale, weir_i128 *out);

/* 10^n for n in 0..19 and 0..38. */
extern const uint64_t weir_pow10_u64[20];
weir_i128 weir_pow10_i128(int n);

/* Printing: each writes at most WEIR_NUMBER_TEXT_MAX bytes at to, without a terminator, and returns how many. */
#define WEIR_NUMBER_TEXT_MAX 64
size_t weir_print_u64(uint64_t v, char *to);
size_t weir_print_i64(int64_t v, char *to);
size_t weir_print_i128(weir_i128 v, char *to);
/* Plain, with the full scale: 10170 at scale 2 is `101.70`. scale <= 38. */
size_t weir_print_decimal_i64(int64_t unscaled, int scale, char *to);
size_t weir_print_decimal(weir_i128 unscaled, int scale, char *to);
/* The fewest digits that read back as the same value, the nearest of those; plain from 1e-6 up to below 1e21, else with
 * an exponent (`1e21`, `2.5e-7`); integers without a point (`5`, `-0`). NaN, Infinity, -Infinity by these names:
 * formats without them ask first. */
size_t weir_print_double(double v, char *to);
size_t weir_print_float(float v, char *to);

/* v in units of 1/unit_per_second s as ticks of ticks_per_ms a millisecond, rounded down; false when it does not fit.
 */
bool weir_unit_to_ticks(int64_t v, int64_t unit_per_second, int64_t ticks_per_ms, int64_t *ticks);

#define WEIR_POW5_MIN (-342)
#define WEIR_POW5_MAX 324
extern const uint64_t weir_pow5[WEIR_POW5_MAX - WEIR_POW5_MIN + 1][2]; /* number_pow5.c */

#endif
