/* number_print.c: integers, DECIMAL, DOUBLE and FLOAT to text. Pure functions, @thread any.
 *
 * The shortest digits of a DOUBLE come from Giulietti's Schubfach: scale the value and its rounding interval by a power
 * of ten so that at most two candidates of each length remain, with 128 bits of the power and rounding to odd, which is
 * exact. Cost (bench_number, one core of a shared Xeon): a DOUBLE 51 ns, an amount or
 * 17 digits; snprintf takes nine times that. */
#include "hotpath/format/number.h"

static const char PAIRS[201] =
	"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
	"49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
	"9899";

static inline uint32_t count_digits(uint64_t v)
{
	/* log10 from log2: 1233 / 4096 is just above log10(2). */
	uint32_t t = ((64 - (uint32_t)__builtin_clzll(v | 1)) * 1233) >> 12;
	return t + (v >= weir_pow10_u64[t]);
}

/* Exactly n digits, leading zeros included. */
static inline void put_digits(char *to, uint64_t v, uint32_t n)
{
	while (n >= 2) {
		uint64_t q = v / 100;
		memcpy(to + n - 2, PAIRS + 2 * (v - q * 100), 2);
		v = q;
		n -= 2;
	}
	if (n == 1)
		to[0] = (char)('0' + v % 10);
}

size_t weir_print_u64(uint64_t v, char *to)
{
	uint32_t n = v == 0 ? 1 : count_digits(v);
	put_digits(to, v, n);
	return n;
}

size_t weir_print_i64(int64_t v, char *to)
{
	if (v >= 0)
		return weir_print_u64((uint64_t)v, to);
	to[0] = '-';
	return 1 + weir_print_u64(0 - (uint64_t)v, to + 1);
}

/* Up to 39 digits by two divisions. */
static size_t print_u128(weir_u128 v, char *to)
{
	const uint64_t unit = weir_pow10_u64[19];
	if (v <= UINT64_MAX)
		return weir_print_u64((uint64_t)v, to);
	weir_u128 high = v / unit;
	uint64_t low = (uint64_t)(v - high * unit);
	size_t at = print_u128(high, to);
	put_digits(to + at, low, 19);
	return at + 19;
}

size_t weir_print_i128(weir_i128 v, char *to)
{
	if (v >= 0)
		return print_u128((weir_u128)v, to);
	to[0] = '-';
	return 1 + print_u128(0 - (weir_u128)v, to + 1);
}

/* Puts a point before the last scale of the n digits at to, with zeros in front where there are too few. */
static size_t put_point(char *to, size_t n, size_t scale)
{
	if (scale == 0)
		return n;
	if (n <= scale) {
		size_t zeros = scale + 1 - n;
		memmove(to + zeros, to, n);
		memset(to, '0', zeros);
		n += zeros;
	}
	memmove(to + n - scale + 1, to + n - scale, scale);
	to[n - scale] = '.';
	return n + 1;
}

/* The low n digits of v, leading zeros included; returns what is left of v. */
static inline uint64_t put_low_digits(char *to, uint64_t v, uint32_t n)
{
	while (n >= 2) {
		uint64_t q = v / 100;
		memcpy(to + n - 2, PAIRS + 2 * (v - q * 100), 2);
		v = q;
		n -= 2;
	}
	if (n == 1) {
		uint64_t q = v / 10;
		to[0] = (char)('0' + (v - q * 10));
		v = q;
	}
	return v;
}

/* From the right, around the point: divisions by constants only. */
size_t weir_print_decimal_i64(int64_t unscaled, int scale, char *to)
{
	size_t sign = unscaled < 0;
	uint64_t v = sign ? 0 - (uint64_t)unscaled : (uint64_t)unscaled;
	uint32_t n = count_digits(v), fraction = (uint32_t)scale;
	to[0] = '-';
	to += sign;
	if (n <= fraction)
		n = fraction + 1;
	if (fraction == 0) {
		put_digits(to, v, n);
		return sign + n;
	}
	v = put_low_digits(to + n - fraction + 1, v, fraction);
	to[n - fraction] = '.';
	put_digits(to, v, n - fraction);
	return sign + n + 1;
}

size_t weir_print_decimal(weir_i128 unscaled, int scale, char *to)
{
	WEIR_DASSERT(scale >= 0 && scale <= 38);
	if (WEIR_LIKELY(unscaled >= INT64_MIN && unscaled <= INT64_MAX))
		return weir_print_decimal_i64((int64_t)unscaled, scale, to);
	size_t sign = unscaled < 0;
	to[0] = '-';
	size_t n = print_u128(sign ? 0 - (weir_u128)unscaled : (weir_u128)unscaled, to + sign);
	return sign + put_point(to + sign, n, (size_t)scale);
}

/* digits * 10^exp10, digits > 0, as ECMAScript lays numbers out (but `1e21` without a plus). */
static size_t put_decimal(uint64_t digits, int exp10, char *to)
{
	while (digits % 10 == 0) {
		digits /= 10;
		exp10++;
	}
	char text[20];
	int n = (int)weir_print_u64(digits, text), point = n + exp10; /* value = 0.text * 10^point */
	size_t at = 0;
	if (point > 0 && point <= 21) {
		if (n <= point) {
			memcpy(to, text, (size_t)n);
			memset(to + n, '0', (size_t)(point - n));
			return (size_t)point;
		}
		memcpy(to, text, (size_t)point);
		to[point] = '.';
		memcpy(to + point + 1, text + point, (size_t)(n - point));
		return (size_t)n + 1;
	}
	if (point <= 0 && point > -6) {
		to[0] = '0';
		to[1] = '.';
		memset(to + 2, '0', (size_t)-point);
		memcpy(to + 2 - point, text, (size_t)n);
		return (size_t)(2 - point + n);
	}
	to[at++] = text[0];
	if (n > 1) {
		to[at++] = '.';
		memcpy(to + at, text + 1, (size_t)n - 1);
		at += (size_t)n - 1;
	}
	to[at++] = 'e';
	return at + weir_print_i64(point - 1, to + at);
}

static size_t put_text(char *to, const char *s)
{
	size_t n = strlen(s);
	memcpy(to, s, n);
	return n;
}

static inline int floor_log2_pow10(int k)
{
	return (k * 1741647) >> 19;
}

/* floor(log10(2^e)), or of 3/4 * 2^e where the lower neighbour is half as far. */
static inline int floor_log10_pow2(int e, bool three_quarters)
{
	return (e * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

/* The 128-bit power rounded up, as Schubfach wants it; exact in 0..55. */
static inline weir_u128 pow10_ceil(int k)
{
	const uint64_t *p = weir_pow5[k - WEIR_POW5_MIN];
	return ((weir_u128)p[0] << 64 | p[1]) + (k < 0 || k > 55);
}

/* floor(g * cp / 2^128), its last bit set if anything was cut off. */
static inline uint64_t round_to_odd(weir_u128 g, uint64_t cp)
{
	uint64_t x1 = (uint64_t)(((weir_u128)(uint64_t)g * cp) >> 64);
	weir_u128 y = (weir_u128)(uint64_t)(g >> 64) * cp + x1;
	return (uint64_t)(y >> 64) | ((uint64_t)y > 1);
}

static inline uint32_t round_to_odd_float(uint64_t g, uint32_t cp)
{
	weir_u128 p = (weir_u128)g * cp;
	return (uint32_t)(p >> 64) | ((uint32_t)((uint64_t)p >> 32) > 1);
}

/* The choice both widths share: vb is four times the scaled value, [lower, upper] its interval. */
static uint64_t choose(uint64_t vb, uint64_t lower, uint64_t upper, int k, int *exp10)
{
	uint64_t s = vb / 4;
	if (s >= 10) {
		uint64_t tens = s / 10;
		bool up = lower <= 40 * tens, wp = 40 * tens + 40 <= upper;
		if (up != wp) {
			*exp10 = k + 1;
			return tens + wp;
		}
	}
	*exp10 = k;
	bool u = lower <= 4 * s, w = 4 * s + 4 <= upper;
	if (u != w)
		return s + w;
	uint64_t mid = 4 * s + 2;
	return s + (vb > mid || (vb == mid && (s & 1) != 0));
}

size_t weir_print_double(double v, char *to)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
	int biased = (int)(bits >> 52) & 0x7ff;
	if (biased == 0x7ff)
		return put_text(to, fraction != 0 ? "NaN" : bits >> 63 ? "-Infinity" : "Infinity");
	size_t sign = bits >> 63;
	to[0] = '-';
	to += sign;
	if (biased == 0 && fraction == 0) {
		to[0] = '0';
		return sign + 1;
	}
	uint64_t c = biased == 0 ? fraction : fraction | UINT64_C(1) << 52;
	int q = (biased == 0 ? 1 : biased) - 1075;
	if (q <= 0 && q > -53 && (c & ((UINT64_C(1) << -q) - 1)) == 0)
		return sign + weir_print_u64(c >> -q, to); /* an integer below 2^53 */
	bool closer = fraction == 0 && biased > 1, odd = c & 1;
	int k = floor_log10_pow2(q, closer), h = q + floor_log2_pow10(-k) + 1;
	weir_u128 g = pow10_ceil(-k);
	uint64_t vbl = round_to_odd(g, (4 * c - 2 + closer) << h);
	uint64_t vb = round_to_odd(g, (4 * c) << h);
	uint64_t vbr = round_to_odd(g, (4 * c + 2) << h);
	int exp10;
	uint64_t digits = choose(vb, vbl + odd, vbr - odd, k, &exp10);
	return sign + put_decimal(digits, exp10, to);
}

size_t weir_print_float(float v, char *to)
{
	uint32_t bits;
	memcpy(&bits, &v, sizeof bits);
	uint32_t fraction = bits & 0x7fffff;
	int biased = (int)(bits >> 23) & 0xff;
	if (biased == 0xff || (biased == 0 && fraction == 0))
		return weir_print_double((double)v, to);
	size_t sign = bits >> 31;
	to[0] = '-';
	to += sign;
	uint32_t c = biased == 0 ? fraction : fraction | UINT32_C(1) << 23;
	int q = (biased == 0 ? 1 : biased) - 150;
	if (q <= 0 && q > -24 && (c & ((UINT32_C(1) << -q) - 1)) == 0)
		return sign + weir_print_u64(c >> -q, to);
	bool closer = fraction == 0 && biased > 1, odd = c & 1;
	int k = floor_log10_pow2(q, closer), h = q + floor_log2_pow10(-k) + 1;
	uint64_t g = weir_pow5[-k - WEIR_POW5_MIN][0] + (-k < 0 || -k > 27);
	uint32_t vbl = round_to_odd_float(g, (4 * c - 2 + closer) << h);
	uint32_t vb = round_to_odd_float(g, (4 * c) << h);
	uint32_t vbr = round_to_odd_float(g, (4 * c + 2) << h);
	int exp10;
	uint64_t digits = choose(vb, vbl + odd, vbr - odd, k, &exp10);
	return sign + put_decimal(digits, exp10, to);
}
