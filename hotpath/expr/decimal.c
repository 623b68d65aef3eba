/* decimal.c: exact decimal arithmetic on unscaled 128-bit integers; see decimal.h. Intermediates are 256 bits wide,
 * sign apart: 10^38 * 10^38 < 2^256, so every product of two valid decimals, or of one and a power of ten up to 10^38,
 * fits. @thread any */
#include "hotpath/expr/decimal.h"

#include <math.h>

/* 10^19 is the largest power of ten in 64 bits. */
#define E19       ((weir_i128)INT64_C(1000000000) * INT64_C(10000000000))
#define P10(n)    ((weir_i128)INT64_C(1##n))
#define P10_19(n) (E19 * INT64_C(1##n))

const weir_i128 weir_decimal_pow10[WEIR_DECIMAL_PRECISION_MAX + 1] = {
	P10(),
	P10(0),
	P10(00),
	P10(000),
	P10(0000),
	P10(00000),
	P10(000000),
	P10(0000000),
	P10(00000000),
	P10(000000000),
	P10(0000000000),
	P10(00000000000),
	P10(000000000000),
	P10(0000000000000),
	P10(00000000000000),
	P10(000000000000000),
	P10(0000000000000000),
	P10(00000000000000000),
	P10(000000000000000000),
	P10_19(),
	P10_19(0),
	P10_19(00),
	P10_19(000),
	P10_19(0000),
	P10_19(00000),
	P10_19(000000),
	P10_19(0000000),
	P10_19(00000000),
	P10_19(000000000),
	P10_19(0000000000),
	P10_19(00000000000),
	P10_19(000000000000),
	P10_19(0000000000000),
	P10_19(00000000000000),
	P10_19(000000000000000),
	P10_19(0000000000000000),
	P10_19(00000000000000000),
	P10_19(000000000000000000),
	P10_19(000000000000000000) * 10,
};

struct u256 {
	weir_u128 hi, lo;
};

static weir_u128 magnitude(weir_i128 v)
{
	return v < 0 ? -(weir_u128)v : (weir_u128)v;
}

static struct u256 mul_128(weir_u128 a, weir_u128 b)
{
	uint64_t a0 = (uint64_t)a, a1 = (uint64_t)(a >> 64), b0 = (uint64_t)b, b1 = (uint64_t)(b >> 64);
	weir_u128 p00 = (weir_u128)a0 * b0, p01 = (weir_u128)a0 * b1, p10 = (weir_u128)a1 * b0,
		  p11 = (weir_u128)a1 * b1;
	weir_u128 mid = (p00 >> 64) + (uint64_t)p01 + (uint64_t)p10;
	return (struct u256){p11 + (p01 >> 64) + (p10 >> 64) + (mid >> 64), (mid << 64) | (uint64_t)p00};
}

/* False when the product needs more than 256 bits. */
static bool mul_256(struct u256 a, weir_u128 b, struct u256 *out)
{
	struct u256 lo = mul_128(a.lo, b), hi = mul_128(a.hi, b);
	weir_u128 top;
	if (hi.hi != 0 || __builtin_add_overflow(lo.hi, hi.lo, &top))
		return false;
	*out = (struct u256){top, lo.lo};
	return true;
}

static struct u256 add_256(struct u256 a, struct u256 b)
{
	weir_u128 lo = a.lo + b.lo;
	return (struct u256){a.hi + b.hi + (lo < a.lo), lo};
}

static struct u256 sub_256(struct u256 a, struct u256 b)
{
	return (struct u256){a.hi - b.hi - (a.lo < b.lo), a.lo - b.lo};
}

static int compare_256(struct u256 a, struct u256 b)
{
	if (a.hi != b.hi)
		return a.hi < b.hi ? -1 : 1;
	return a.lo < b.lo ? -1 : a.lo > b.lo;
}

/* One digit of long division in base 2^64 (Knuth's algorithm D): [*r : next] / d, where *r < d and d has its top bit
 * set. */
static uint64_t divide_digit(weir_u128 *r, uint64_t next, weir_u128 d)
{
	uint64_t d1 = (uint64_t)(d >> 64), d0 = (uint64_t)d, r1 = (uint64_t)(*r >> 64);
	weir_u128 q, rest;
	if (r1 >= d1) {
		q = UINT64_MAX;
		rest = *r - (q * d1);
	} else {
		q = *r / d1;
		rest = *r % d1;
	}
	while ((rest >> 64) == 0 && q * d0 > ((rest << 64) | next)) {
		q--;
		rest += d1;
	}
	*r = (*r << 64) + next - q * d; /* modulo 2^128: the true value is below d */
	return (uint64_t)q;
}

static struct u256 divide(struct u256 n, weir_u128 d, weir_u128 *rest)
{
	if (n.hi == 0) {
		if ((n.lo >> 64) == 0 && (d >> 64) == 0) {
			*rest = (uint64_t)n.lo % (uint64_t)d;
			return (struct u256){0, (uint64_t)n.lo / (uint64_t)d};
		}
		*rest = n.lo % d;
		return (struct u256){0, n.lo / d};
	}
	if ((d >> 64) == 0) {
		uint64_t limb[4] = {(uint64_t)(n.hi >> 64), (uint64_t)n.hi, (uint64_t)(n.lo >> 64), (uint64_t)n.lo},
			 q[4];
		weir_u128 r = 0;
		for (int i = 0; i < 4; i++) {
			r = (r << 64) | limb[i];
			q[i] = (uint64_t)(r / d);
			r %= d;
		}
		*rest = r;
		return (struct u256){((weir_u128)q[0] << 64) | q[1], ((weir_u128)q[2] << 64) | q[3]};
	}
	int shift = __builtin_clzll((uint64_t)(d >> 64));
	uint64_t limb[5] = {0, (uint64_t)(n.hi >> 64), (uint64_t)n.hi, (uint64_t)(n.lo >> 64), (uint64_t)n.lo};
	if (shift != 0) {
		for (int i = 0; i < 4; i++)
			limb[i] = limb[i] << shift | limb[i + 1] >> (64 - shift);
		limb[4] <<= shift;
	}
	d <<= shift;
	weir_u128 r = ((weir_u128)limb[0] << 64) | limb[1];
	uint64_t q0 = 0;
	if (r >= d) {
		r -= d;
		q0 = 1;
	}
	uint64_t q1 = divide_digit(&r, limb[2], d), q2 = divide_digit(&r, limb[3], d),
		 q3 = divide_digit(&r, limb[4], d);
	*rest = r >> shift;
	return (struct u256){((weir_u128)q0 << 64) | q1, ((weir_u128)q2 << 64) | q3};
}

/* n / 10^digits, half up in magnitude. */
static struct u256 divide_pow10(struct u256 n, int digits)
{
	weir_u128 rest;
	if (digits > WEIR_DECIMAL_PRECISION_MAX) {
		/* Two steps: what the first cuts off is below one unit, and half of the second's divisor is whole. */
		n = divide(n, (weir_u128)weir_decimal_pow10[WEIR_DECIMAL_PRECISION_MAX], &rest);
		digits -= WEIR_DECIMAL_PRECISION_MAX;
		if (digits > WEIR_DECIMAL_PRECISION_MAX)
			return (struct u256){0, 0};
	}
	if (digits == 0)
		return n;
	weir_u128 d = (weir_u128)weir_decimal_pow10[digits];
	struct u256 q = divide(n, d, &rest);
	return rest >= d - rest ? add_256(q, (struct u256){0, 1}) : q;
}

static bool finish(struct u256 v, bool negative, weir_i128 *out)
{
	if (v.hi != 0 || v.lo >= (weir_u128)weir_decimal_pow10[WEIR_DECIMAL_PRECISION_MAX])
		return false;
	*out = negative ? -(weir_i128)v.lo : (weir_i128)v.lo;
	return true;
}

/* v at scale from to scale to. */
static bool finish_scaled(struct u256 v, bool negative, int from, int to, weir_i128 *out)
{
	if (from > to)
		v = divide_pow10(v, from - to);
	else if (from < to) {
		if (v.hi == 0 && v.lo == 0) {
			*out = 0;
			return true;
		}
		if (to - from > WEIR_DECIMAL_PRECISION_MAX || !mul_256(v, (weir_u128)weir_decimal_pow10[to - from], &v))
			return false;
	}
	return finish(v, negative, out);
}

bool weir_decimal_add(weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out)
{
	weir_i128 sum;
	if (s1 == s2 && s2 == s && !__builtin_add_overflow(a, b, &sum)) {
		*out = sum;
		return weir_decimal_fits(sum, WEIR_DECIMAL_PRECISION_MAX);
	}
	int m = s1 > s2 ? s1 : s2;
	struct u256 x = mul_128(magnitude(a), (weir_u128)weir_decimal_pow10[m - s1]);
	struct u256 y = mul_128(magnitude(b), (weir_u128)weir_decimal_pow10[m - s2]);
	if ((a < 0) == (b < 0))
		return finish_scaled(add_256(x, y), a < 0, m, s, out);
	if (compare_256(x, y) >= 0)
		return finish_scaled(sub_256(x, y), a < 0, m, s, out);
	return finish_scaled(sub_256(y, x), b < 0, m, s, out);
}

bool weir_decimal_mul(weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out)
{
	return finish_scaled(mul_128(magnitude(a), magnitude(b)), (a < 0) != (b < 0), s1 + s2, s, out);
}

bool weir_decimal_div(weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out)
{
	if (b == 0)
		return false;
	bool negative = (a < 0) != (b < 0);
	weir_u128 d = magnitude(b), rest;
	struct u256 n = {0, magnitude(a)};
	int up = s + s2 - s1; /* a / b * 10^s, both unscaled, is a * 10^up / b */
	if (a == 0) {
		*out = 0;
		return true;
	}
	if (up < 0) {
		struct u256 wide = {0, d};
		for (up = -up; up > 0; up -= WEIR_DECIMAL_PRECISION_MAX) {
			int step = up > WEIR_DECIMAL_PRECISION_MAX ? WEIR_DECIMAL_PRECISION_MAX : up;
			if (!mul_256(wide, (weir_u128)weir_decimal_pow10[step], &wide))
				wide.hi = 1;
			if (wide.hi != 0) { /* beyond twice the dividend: rounds to nothing */
				*out = 0;
				return true;
			}
		}
		d = wide.lo;
	}
	for (; up > 0; up -= WEIR_DECIMAL_PRECISION_MAX) {
		int step = up > WEIR_DECIMAL_PRECISION_MAX ? WEIR_DECIMAL_PRECISION_MAX : up;
		/* A quotient of at most 38 digits times b has at most 76: a dividend beyond 256 bits is an overflow. */
		if (!mul_256(n, (weir_u128)weir_decimal_pow10[step], &n))
			return false;
	}
	struct u256 q = divide(n, d, &rest);
	if (rest >= d - rest)
		q = add_256(q, (struct u256){0, 1});
	return finish(q, negative, out);
}

bool weir_decimal_mod(weir_i128 a, int s1, weir_i128 b, int s2, int s, weir_i128 *out)
{
	if (b == 0)
		return false;
	weir_u128 rest = magnitude(a);
	int m = s1;
	if (s1 >= s2) {
		struct u256 d = mul_128(magnitude(b), (weir_u128)weir_decimal_pow10[s1 - s2]);
		if (d.hi == 0)
			rest %= d.lo;
	} else {
		m = s2;
		(void)divide(mul_128(rest, (weir_u128)weir_decimal_pow10[s2 - s1]), magnitude(b), &rest);
	}
	return finish_scaled((struct u256){0, rest}, a < 0, m, s, out);
}

bool weir_decimal_rescale(weir_i128 a, int s1, int s, weir_i128 *out)
{
	if (s1 == s) {
		*out = a;
		return true;
	}
	return finish_scaled((struct u256){0, magnitude(a)}, a < 0, s1, s, out);
}

bool weir_decimal_truncate(weir_i128 a, int s1, int s, weir_i128 *out)
{
	if (s >= s1)
		return weir_decimal_rescale(a, s1, s, out);
	*out = s1 - s > WEIR_DECIMAL_PRECISION_MAX ? 0 : a / weir_decimal_pow10[s1 - s];
	return true;
}

int weir_decimal_compare(weir_i128 a, int s1, weir_i128 b, int s2)
{
	if (s1 == s2)
		return a < b ? -1 : a > b;
	if ((a < 0) != (b < 0))
		return a < 0 ? -1 : 1;
	int m = s1 > s2 ? s1 : s2;
	int c = compare_256(mul_128(magnitude(a), (weir_u128)weir_decimal_pow10[m - s1]),
			    mul_128(magnitude(b), (weir_u128)weir_decimal_pow10[m - s2]));
	return a < 0 ? -c : c;
}

static int bits_of(weir_u128 v)
{
	uint64_t hi = (uint64_t)(v >> 64);
	return hi != 0 ? 128 - __builtin_clzll(hi) : (uint64_t)v != 0 ? 64 - __builtin_clzll((uint64_t)v) : 0;
}

double weir_decimal_to_double(weir_i128 a, int s)
{
	static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
				       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	if (s < (int)WEIR_COUNT_OF(exact) && a <= (INT64_C(1) << 53) && a >= -(INT64_C(1) << 53))
		return (double)(int64_t)a / exact[s];
	weir_u128 v = magnitude(a), d = (weir_u128)weir_decimal_pow10[s], rest;
	/* A quotient of at least 65 bits whose lowest bit stands for all below it rounds once, and right. */
	int shift = 66 - bits_of(v) + bits_of(d);
	if (shift < 0)
		shift = 0;
	struct u256 n = {0, v};
	if (shift >= 128)
		n = (struct u256){v << (shift - 128), 0};
	else if (shift > 0)
		n = (struct u256){v >> (128 - shift), v << shift};
	struct u256 q = divide(n, d, &rest);
	double r = ldexp((double)(q.lo | (rest != 0)), -shift);
	return a < 0 ? -r : r;
}

struct weir_type weir_decimal_type(int precision, int scale)
{
	if (precision > WEIR_DECIMAL_PRECISION_MAX) { /* whole digits first, but 6 of the fraction stay */
		int whole = precision - scale, kept = scale < 6 ? scale : 6;
		scale = WEIR_DECIMAL_PRECISION_MAX - whole > kept ? WEIR_DECIMAL_PRECISION_MAX - whole : kept;
		precision = WEIR_DECIMAL_PRECISION_MAX;
	}
	return (struct weir_type){.kind = WEIR_KIND_DECIMAL, .precision = (uint8_t)precision, .scale = (uint8_t)scale};
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

struct weir_type weir_decimal_type_add(const struct weir_type *a, const struct weir_type *b)
{
	int scale = max_int(a->scale, b->scale);
	return weir_decimal_type(max_int(a->precision - a->scale, b->precision - b->scale) + scale + 1, scale);
}

struct weir_type weir_decimal_type_mul(const struct weir_type *a, const struct weir_type *b)
{
	return weir_decimal_type(a->precision + b->precision + 1, a->scale + b->scale);
}

struct weir_type weir_decimal_type_div(const struct weir_type *a, const struct weir_type *b)
{
	int scale = max_int(6, a->scale + b->precision + 1);
	return weir_decimal_type(a->precision - a->scale + b->scale + scale, scale);
}

struct weir_type weir_decimal_type_mod(const struct weir_type *a, const struct weir_type *b)
{
	int whole_a = a->precision - a->scale, whole_b = b->precision - b->scale;
	int scale = max_int(a->scale, b->scale);
	int whole = a->scale == 0 && b->scale == 0 ? whole_b : whole_a < whole_b ? whole_a : whole_b;
	return weir_decimal_type(max_int(whole + scale, 1), scale);
}

struct weir_type weir_decimal_type_round(const struct weir_type *a, int digits)
{
	if (digits >= a->scale)
		return weir_decimal_type(a->precision, a->scale);
	int kept = digits < 0 ? 0 : digits, precision = 1 + a->precision - a->scale + kept;
	return weir_decimal_type(precision > WEIR_DECIMAL_PRECISION_MAX ? WEIR_DECIMAL_PRECISION_MAX : precision, kept);
}

struct weir_type weir_decimal_type_of(const struct weir_type *t)
{
	switch (t->kind) {
	case WEIR_KIND_DECIMAL:
		return weir_decimal_type(t->precision, t->scale);
	case WEIR_KIND_TINYINT:
		return weir_decimal_type(3, 0);
	case WEIR_KIND_SMALLINT:
		return weir_decimal_type(5, 0);
	case WEIR_KIND_INT:
		return weir_decimal_type(10, 0);
	default:
		return weir_decimal_type(19, 0);
	}
}
