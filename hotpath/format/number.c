/* number.c: text to integers, DECIMAL, DOUBLE and FLOAT. Pure functions, @thread any.
 *
 * DOUBLE goes three ways, fastest first, all correctly rounded:
 *   1. few digits and a small power of ten: one exact multiplication or division of doubles (Clinger)
 *   2. 19 digits times 128 bits of the power of ten; says when the bits do not decide (Eisel and Lemire)
 *   3. the exact decimal compared with the halfway points around a guess, in big integers
 * Cost (bench_number, one core of a shared Xeon), scan included: 1234.56 by the first way 15 ns, 17 digits by the
 * second 49 ns, a DECIMAL(12, 2) 19 ns; strtod takes four times the first two. */
#include "hotpath/format/number.h"

const uint64_t weir_pow10_u64[20] = {
	UINT64_C(1),
	UINT64_C(10),
	UINT64_C(100),
	UINT64_C(1000),
	UINT64_C(10000),
	UINT64_C(100000),
	UINT64_C(1000000),
	UINT64_C(10000000),
	UINT64_C(100000000),
	UINT64_C(1000000000),
	UINT64_C(10000000000),
	UINT64_C(100000000000),
	UINT64_C(1000000000000),
	UINT64_C(10000000000000),
	UINT64_C(100000000000000),
	UINT64_C(1000000000000000),
	UINT64_C(10000000000000000),
	UINT64_C(100000000000000000),
	UINT64_C(1000000000000000000),
	UINT64_C(10000000000000000000),
};

weir_i128 weir_pow10_i128(int n)
{
	WEIR_DASSERT(n >= 0 && n <= 38);
	return n <= 19 ? (weir_i128)weir_pow10_u64[n] : (weir_i128)weir_pow10_u64[19] * weir_pow10_u64[n - 19];
}

static inline bool is_digit(char c)
{
	return (unsigned)(unsigned char)c - '0' <= 9;
}

enum { MANTISSA_DIGITS = 19 };

bool weir_number_scan(const char *s, size_t bytes, struct weir_number *n)
{
	const char *p = s, *stop = s + bytes;
	n->negative = false;
	if (p < stop && (*p == '-' || *p == '+'))
		n->negative = *p++ == '-';
	const char *start = p, *point = NULL;
	while (p < stop && *p == '0')
		p++;
	const char *first = p;
	uint64_t m = 0;
	while (p < stop && is_digit(*p))
		m = m * 10 + (uint64_t)(*p++ - '0'); /* wraps beyond 19 digits: done again below */
	size_t integer_digits = (size_t)(p - first), seen = (size_t)(p - start);
	const char *fraction = p;
	if (p < stop && *p == '.') {
		point = p++;
		fraction = p;
		if (integer_digits == 0) {
			while (p < stop && *p == '0')
				p++;
			first = p;
		}
		while (p < stop && is_digit(*p))
			m = m * 10 + (uint64_t)(*p++ - '0');
		seen += (size_t)(p - fraction);
	}
	if (seen == 0)
		return false;
	const char *end = p;
	int64_t exponent = point != NULL ? -(int64_t)(p - fraction) : 0;
	if (p < stop && (*p == 'e' || *p == 'E')) {
		bool minus = false;
		int64_t e = 0;
		p++;
		if (p < stop && (*p == '-' || *p == '+'))
			minus = *p++ == '-';
		if (p == stop)
			return false;
		for (; p < stop && is_digit(*p); p++)
			e = e < WEIR_NUMBER_EXP_MAX * INT64_C(100) ? e * 10 + (*p - '0') : e;
		if (p != stop)
			return false; /* also an exponent without digits: p stands at what is none */
		exponent += minus ? -e : e;
	}
	if (p != stop)
		return false;
	size_t digits = (size_t)(end - first) - (point != NULL && point > first ? 1 : 0);
	n->cut = digits > MANTISSA_DIGITS;
	if (WEIR_UNLIKELY(n->cut)) {
		uint32_t taken = 0;
		m = 0;
		for (const char *q = first; taken < MANTISSA_DIGITS; q++) {
			if (*q != '.') {
				m = m * 10 + (uint64_t)(*q - '0');
				taken++;
			}
		}
		exponent += (int64_t)(digits - MANTISSA_DIGITS);
	}
	if (exponent > WEIR_NUMBER_EXP_MAX)
		exponent = WEIR_NUMBER_EXP_MAX;
	if (exponent < -WEIR_NUMBER_EXP_MAX)
		exponent = -WEIR_NUMBER_EXP_MAX;
	n->mantissa = m;
	n->exp10 = (int32_t)exponent;
	n->digits = (uint32_t)digits;
	n->first = first;
	n->end = end;
	return true;
}

/* |n| * 10^shift as an integer, rounded half up: false when it has more than 38 digits. *exact says that no digit other
 * than 0 was lost. shift counts from n->exp10, which for a cut number is that of its 19th digit. */
static bool scaled_integer(const struct weir_number *n, int32_t shift, weir_u128 *out, bool *exact)
{
	int64_t places = (int64_t)n->exp10 + shift; /* power of ten of the mantissa's last digit in the result */
	*exact = true;
	if (n->mantissa == 0) {
		*out = 0;
		return true;
	}
	if (WEIR_LIKELY(!n->cut)) {
		if (places >= 0) {
			if (places > 37)
				return false;
			weir_u128 v;
			if (__builtin_mul_overflow((weir_u128)n->mantissa, (weir_u128)weir_pow10_i128((int)places), &v))
				return false;
			*out = v;
			return true;
		}
		if (places < -MANTISSA_DIGITS) {
			*exact = false;
			*out = 0;
			return true;
		}
		uint64_t unit = weir_pow10_u64[-places], rest = n->mantissa % unit;
		*exact = rest == 0;
		*out = n->mantissa / unit + (rest >= unit - rest);
		return true;
	}
	/* More than 19 digits: walk the text. keep is how many digits stand before the result's point. */
	int64_t keep = MANTISSA_DIGITS + places;
	if (keep < 0) {
		*exact = false;
		*out = 0;
		return true;
	}
	weir_u128 v = 0;
	int64_t taken = 0;
	bool round_up = false;
	for (const char *p = n->first; p < n->end; p++) {
		if (*p == '.')
			continue;
		unsigned d = (unsigned)(*p - '0');
		if (taken < keep) {
			if (taken >= 38)
				return false;
			v = v * 10 + d;
		} else {
			if (taken == keep)
				round_up = d >= 5;
			if (d != 0)
				*exact = false;
		}
		taken++;
	}
	for (; taken < keep; taken++) {
		if (taken >= 38)
			return false;
		v *= 10;
	}
	*out = v + round_up;
	return true;
}

enum weir_number_result weir_number_to_i64(const struct weir_number *n, int64_t *out)
{
	weir_u128 v;
	bool exact;
	if (!scaled_integer(n, 0, &v, &exact))
		return WEIR_NUMBER_RANGE;
	if (!exact)
		return WEIR_NUMBER_MALFORMED;
	if (v > (weir_u128)INT64_MAX + n->negative)
		return WEIR_NUMBER_RANGE;
	*out = n->negative ? (int64_t)(0 - (uint64_t)v) : (int64_t)v;
	return WEIR_NUMBER_OK;
}

enum weir_number_result weir_number_to_decimal(const struct weir_number *n, int precision, int scale, weir_i128 *out)
{
	weir_u128 v;
	bool exact;
	WEIR_DASSERT(precision >= 1 && precision <= 38 && scale >= 0 && scale <= precision);
	if (!scaled_integer(n, scale, &v, &exact) || v >= (weir_u128)weir_pow10_i128(precision))
		return WEIR_NUMBER_RANGE;
	*out = n->negative ? -(weir_i128)v : (weir_i128)v;
	return WEIR_NUMBER_OK;
}

/* An unsigned integer of up to BIG_LIMBS * 32 bits, little end first. The largest is a decimal of DIGITS_MAX digits
 * against a halfway point scaled by 10^1140: under 6,700 bits. */
enum { BIG_LIMBS = 232, DIGITS_MAX = 800 };
struct big {
	uint32_t limb[BIG_LIMBS];
	uint32_t count;
};

static void big_mul_add(struct big *b, uint32_t factor, uint32_t addend)
{
	uint64_t carry = addend;
	for (uint32_t i = 0; i < b->count; i++) {
		carry += (uint64_t)b->limb[i] * factor;
		b->limb[i] = (uint32_t)carry;
		carry >>= 32;
	}
	if (carry != 0) {
		WEIR_ASSERT(b->count < BIG_LIMBS);
		b->limb[b->count++] = (uint32_t)carry;
	}
}

static void big_mul_pow5(struct big *b, uint32_t n)
{
	for (; n >= 13; n -= 13)
		big_mul_add(b, 1220703125, 0);
	for (; n > 0; n--)
		big_mul_add(b, 5, 0);
}

static void big_shift_left(struct big *b, uint32_t bits)
{
	uint32_t limbs = bits / 32, rest = bits % 32;
	if (b->count == 0)
		return;
	WEIR_ASSERT(b->count + limbs < BIG_LIMBS);
	memmove(b->limb + limbs, b->limb, b->count * sizeof *b->limb);
	memset(b->limb, 0, limbs * sizeof *b->limb);
	b->count += limbs;
	if (rest != 0)
		big_mul_add(b, UINT32_C(1) << rest, 0);
}

static int big_compare(const struct big *a, const struct big *b)
{
	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	for (uint32_t i = a->count; i-- > 0;) {
		if (a->limb[i] != b->limb[i])
			return a->limb[i] < b->limb[i] ? -1 : 1;
	}
	return 0;
}

/* The digits of n as an integer, and the power of ten of its last digit. Digits beyond DIGITS_MAX cannot decide
 * anything but a tie (a halfway point has at most 767), so one sticky digit stands for them. */
static int64_t big_from_number(struct big *b, const struct weir_number *n)
{
	uint32_t taken = 0;
	b->count = 0;
	const char *p = n->first;
	for (; p < n->end && taken < DIGITS_MAX; p++) {
		if (*p == '.')
			continue;
		big_mul_add(b, 10, (uint32_t)(*p - '0'));
		taken++;
	}
	int64_t exp10 = (int64_t)n->exp10;
	if (n->cut)
		exp10 -= (int64_t)n->digits - MANTISSA_DIGITS;
	if (taken < n->digits) {
		exp10 += (int64_t)n->digits - taken;
		bool sticky = false;
		for (; p < n->end; p++)
			sticky |= *p != '.' && *p != '0';
		if (sticky) {
			big_mul_add(b, 10, 1);
			exp10--;
		}
	}
	return exp10;
}

/* What a binary format looks like: bits of the significand with the hidden one, exponent of a subnormal's last bit. */
struct binary {
	int bits;
	int exp_min;
	int exp_max; /* exponent of the last bit of the largest finite value */
};
static const struct binary DOUBLE_FORM = {53, -1074, 971};
static const struct binary FLOAT_FORM = {24, -149, 104};

/* A finite candidate significand * 2^exp2; successive candidates are successive values of the format. */
struct candidate {
	uint64_t significand;
	int exp2;
};

static void candidate_up(const struct binary *f, struct candidate *c)
{
	c->significand++;
	if (c->significand == UINT64_C(1) << f->bits) {
		c->significand >>= 1;
		c->exp2++;
	}
}

static void candidate_down(const struct binary *f, struct candidate *c)
{
	if (c->significand == UINT64_C(1) << (f->bits - 1) && c->exp2 > f->exp_min) {
		c->significand = (UINT64_C(1) << f->bits) - 1;
		c->exp2--;
	} else {
		c->significand--;
	}
}

/* Compares n's exact value with the halfway point between c and the next value up: digits * 10^exp10 against
 * (2 * significand + 1) * 2^(exp2 - 1), both brought to integers. */
static int compare_halfway(const struct big *digits, int64_t exp10, const struct candidate *c)
{
	struct big left = *digits, right = {.count = 0};
	uint64_t half = 2 * c->significand + 1;
	int exp2 = c->exp2 - 1;
	right.limb[right.count++] = (uint32_t)half;
	if (half >> 32)
		right.limb[right.count++] = (uint32_t)(half >> 32);
	if (exp10 >= 0)
		big_mul_pow5(&left, (uint32_t)exp10);
	else
		big_mul_pow5(&right, (uint32_t)-exp10);
	int64_t shift = exp10 - exp2; /* left gains 2^exp10, right 2^exp2 */
	if (shift >= 0)
		big_shift_left(&left, (uint32_t)shift);
	else
		big_shift_left(&right, (uint32_t)-shift);
	return big_compare(&left, &right);
}

/* floor(log2(10^k)) for |k| <= 1650. */
static inline int floor_log2_pow10(int k)
{
	return (k * 1741647) >> 19;
}

/* A value of the format near n: within a few units in the last place, so that the search below is short. */
static struct candidate guess(const struct binary *f, uint64_t mantissa, int exp10)
{
	int zeros = __builtin_clzll(mantissa);
	weir_u128 product = (weir_u128)(mantissa << zeros) * weir_pow5[exp10 - WEIR_POW5_MIN][0];
	uint64_t high = (uint64_t)(product >> 64);
	int exp2 = floor_log2_pow10(exp10) + 1 - zeros; /* high * 2^exp2 is the value */
	int drop = 64 - f->bits - __builtin_clzll(high);
	if (exp2 + drop < f->exp_min)
		drop = f->exp_min - exp2;
	struct candidate c = {drop > 63 ? 0 : drop >= 0 ? high >> drop : high << -drop, exp2 + drop};
	if (c.exp2 > f->exp_max)
		c = (struct candidate){(UINT64_C(1) << f->bits) - 1, f->exp_max};
	return c;
}

/* The third way. False: beyond the largest finite value. */
static WEIR_COLD bool round_exactly(const struct binary *f, const struct weir_number *n, struct candidate *c)
{
	/* Far outside: decided by magnitude, before anything grows. The number is in [10^(top - 1), 10^top). */
	int64_t top = (int64_t)n->exp10 + (n->cut ? MANTISSA_DIGITS : n->digits);
	if (top > 310)
		return false;
	if (top < -330) {
		*c = (struct candidate){0, f->exp_min};
		return true;
	}
	struct big digits;
	int64_t exp10 = big_from_number(&digits, n);
	*c = guess(f, n->mantissa, n->exp10 < WEIR_POW5_MIN ? WEIR_POW5_MIN : n->exp10);
	int order;
	while ((order = compare_halfway(&digits, exp10, c)) > 0 || (order == 0 && (c->significand & 1) != 0)) {
		candidate_up(f, c);
		if (c->exp2 > f->exp_max)
			return false;
		if (order == 0)
			return true;
	}
	while (c->significand > 0) {
		struct candidate below = *c;
		candidate_down(f, &below);
		order = compare_halfway(&digits, exp10, &below);
		if (order > 0 || (order == 0 && (below.significand & 1) != 0))
			break;
		*c = below;
	}
	return true;
}

static double double_from_parts(uint64_t significand, int exp2, bool negative)
{
	uint64_t bits = significand;
	if (significand >> 52)
		bits = (significand & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(exp2 + 1075) << 52;
	bits |= (uint64_t)negative << 63;
	double d;
	memcpy(&d, &bits, sizeof d);
	return d;
}

/* The second way: true and *c when the first 128 bits of the power of ten decide a normal value. */
static bool eisel_lemire(uint64_t mantissa, int exp10, struct candidate *c)
{
	if (exp10 < WEIR_POW5_MIN || exp10 > 308)
		return false;
	int zeros = __builtin_clzll(mantissa);
	mantissa <<= zeros;
	const uint64_t *pow = weir_pow5[exp10 - WEIR_POW5_MIN];
	weir_u128 product = (weir_u128)mantissa * pow[0];
	uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
	if ((high & 0x1ff) == 0x1ff && low + mantissa < mantissa) {
		/* The missing bits of the power could carry into the kept ones: bring in its low half. */
		weir_u128 more = (weir_u128)mantissa * pow[1];
		uint64_t more_high = (uint64_t)(more >> 64), more_low = (uint64_t)more;
		low += more_high;
		if (low < more_high)
			high++;
		if ((high & 0x1ff) == 0x1ff && low + 1 == 0 && more_low + mantissa < mantissa)
			return false;
	}
	int top = (int)(high >> 63);
	uint64_t significand = high >> (top + 9); /* 54 bits: one more than kept */
	int exp2 = floor_log2_pow10(exp10) + 1 - zeros + top + 9;
	if (low == 0 && (high & 0x1ff) == 0 && (significand & 3) == 1)
		return false; /* a tie as far as can be seen */
	significand += significand & 1;
	significand >>= 1;
	exp2++;
	if (significand >> 53) {
		significand >>= 1;
		exp2++;
	}
	if (exp2 < DOUBLE_FORM.exp_min || exp2 > DOUBLE_FORM.exp_max || !(significand >> 52))
		return false;
	*c = (struct candidate){significand, exp2};
	return true;
}

enum weir_number_result weir_number_to_double(const struct weir_number *n, double *out)
{
	static const double power[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
					 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	uint64_t m = n->mantissa;
	int exp10 = n->exp10;
	if (m == 0) {
		*out = n->negative ? -0.0 : 0.0;
		return WEIR_NUMBER_OK;
	}
	if (WEIR_LIKELY(m <= UINT64_C(1) << 53 && !n->cut && exp10 >= -22 && exp10 <= 22)) {
		double d = exp10 < 0 ? (double)m / power[-exp10] : (double)m * power[exp10];
		*out = n->negative ? -d : d;
		return WEIR_NUMBER_OK;
	}
	struct candidate c, above;
	if (!eisel_lemire(m, exp10, &c) || (n->cut && (!eisel_lemire(m + 1, exp10, &above) ||
						       above.significand != c.significand || above.exp2 != c.exp2))) {
		if (!round_exactly(&DOUBLE_FORM, n, &c))
			return WEIR_NUMBER_RANGE;
	}
	*out = double_from_parts(c.significand, c.exp2, n->negative);
	return WEIR_NUMBER_OK;
}

/* Through double, unless the double stands so close to the middle of two floats that rounding twice could differ. */
enum weir_number_result weir_number_to_float(const struct weir_number *n, float *out)
{
	double d;
	if (weir_number_to_double(n, &d) != WEIR_NUMBER_OK)
		return WEIR_NUMBER_RANGE;
	uint64_t bits;
	memcpy(&bits, &d, sizeof bits);
	uint64_t low = bits & 0x1fffffff, magnitude = bits & INT64_MAX;
	bool normal = magnitude >= UINT64_C(897) << 52; /* 2^-126 */
	if (n->mantissa == 0 || (normal && low != 0x10000000)) {
		float v = (float)d;
		if (__builtin_isinf(v))
			return WEIR_NUMBER_RANGE;
		*out = v;
		return WEIR_NUMBER_OK;
	}
	struct candidate c;
	if (!round_exactly(&FLOAT_FORM, n, &c))
		return WEIR_NUMBER_RANGE;
	uint32_t fbits = (uint32_t)c.significand;
	if (c.significand >> 23)
		fbits = ((uint32_t)c.significand & 0x7fffff) | (uint32_t)(c.exp2 + 150) << 23;
	fbits |= (uint32_t)n->negative << 31;
	memcpy(out, &fbits, sizeof *out);
	return WEIR_NUMBER_OK;
}

/* Plain digits, the usual case, without taking the number apart. */
enum weir_number_result weir_parse_i64(const char *s, size_t bytes, int64_t *out)
{
	size_t at = bytes > 0 && (s[0] == '-' || s[0] == '+');
	if (WEIR_LIKELY(bytes > at && bytes - at <= 18)) {
		uint64_t v = 0;
		size_t i = at;
		for (; i < bytes && is_digit(s[i]); i++)
			v = v * 10 + (uint64_t)(s[i] - '0');
		if (WEIR_LIKELY(i == bytes)) {
			*out = s[0] == '-' ? -(int64_t)v : (int64_t)v;
			return WEIR_NUMBER_OK;
		}
	}
	struct weir_number n;
	return weir_number_scan(s, bytes, &n) ? weir_number_to_i64(&n, out) : WEIR_NUMBER_MALFORMED;
}

enum weir_number_result weir_parse_double(const char *s, size_t bytes, double *out)
{
	struct weir_number n;
	return weir_number_scan(s, bytes, &n) ? weir_number_to_double(&n, out) : WEIR_NUMBER_MALFORMED;
}

enum weir_number_result weir_parse_float(const char *s, size_t bytes, float *out)
{
	struct weir_number n;
	return weir_number_scan(s, bytes, &n) ? weir_number_to_float(&n, out) : WEIR_NUMBER_MALFORMED;
}

enum weir_number_result weir_parse_decimal(const char *s, size_t bytes, int precision, int scale, weir_i128 *out)
{
	struct weir_number n;
	return weir_number_scan(s, bytes, &n) ? weir_number_to_decimal(&n, precision, scale, out)
					      : WEIR_NUMBER_MALFORMED;
}

bool weir_unit_to_ticks(int64_t v, int64_t unit_per_second, int64_t ticks_per_ms, int64_t *ticks)
{
	int64_t per_second = ticks_per_ms * 1000;
	if (unit_per_second == 0)
		unit_per_second = 1000;
	int64_t t;
	if (per_second < unit_per_second)
		t = weir_floor_div(v, unit_per_second / per_second);
	else if (__builtin_mul_overflow(v, per_second / unit_per_second, &t))
		return false;
	*ticks = t;
	return true;
}
