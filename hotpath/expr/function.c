/* function.c: the table of functions and operators, and looking names up. Cold path, @thread any.
 *
 * Entries of one name stand together; the first whose rule takes the argument types wins, so narrow ones come first. */
#include "hotpath/expr/function.h"

#include <strings.h>

#include "hotpath/core/diag.h"
#include "hotpath/expr/kernel.h"

/* NULL rule: STRICT null in, null out; TOTAL the same and safe over any row; OPEN the kernel sees NULLs. */
#define STRICT .null_in_null_out = true
#define TOTAL  .null_in_null_out = true, .total = true
#define OPEN   .null_in_null_out = false

#define FN(nm, lo, hi, nulls, rule, kern, text)                                                                        \
	{                                                                                                              \
		.name = nm, .args_min = lo, .args_max = hi, nulls, .resolve = weir_resolve_##rule,                     \
		.kernel = weir_kernel_##kern, .doc = text                                                              \
	}
#define FN_PREPARED(nm, lo, hi, nulls, rule, kern, prep, text)                                                         \
	{                                                                                                              \
		.name = nm, .args_min = lo, .args_max = hi, nulls, .resolve = weir_resolve_##rule,                     \
		.kernel = weir_kernel_##kern, .prepare = weir_prepare_##prep, .doc = text                              \
	}

/* clang-format off */
static const struct weir_function table[] = {
	FN("+", 2, 2, TOTAL, int_arith, add_int, "a + b"),
	FN("+", 2, 2, TOTAL, decimal_add, add_decimal, "a + b, exact"),
	FN("+", 2, 2, TOTAL, double_arith, add_double, "a + b"),
	FN("-", 2, 2, TOTAL, int_arith, sub_int, "a - b"),
	FN("-", 2, 2, TOTAL, decimal_add, sub_decimal, "a - b, exact"),
	FN("-", 2, 2, TOTAL, double_arith, sub_double, "a - b"),
	FN("*", 2, 2, TOTAL, int_arith, mul_int, "a * b"),
	FN("*", 2, 2, TOTAL, decimal_mul, mul_decimal, "a * b, exact up to 38 digits"),
	FN("*", 2, 2, TOTAL, double_arith, mul_double, "a * b"),
	FN("/", 2, 2, STRICT, int_arith, div_int, "a / b, towards zero"),
	FN("/", 2, 2, STRICT, decimal_div, div_decimal, "a / b, rounded half up"),
	FN("/", 2, 2, TOTAL, double_arith, div_double, "a / b; by zero an infinity or NaN, printed as NULL"),
	FN("%", 2, 2, STRICT, mod_int, mod_int, "the rest of a / b, with the sign of a"),
	FN("%", 2, 2, STRICT, decimal_mod, mod_decimal, "the rest of a / b, exact"),
	FN("%", 2, 2, TOTAL, double_arith, mod_double, "the rest of a / b"),
	FN("NEG", 1, 1, TOTAL, int_unary, neg_int, "-a"),
	FN("NEG", 1, 1, STRICT, decimal_unary, neg_decimal, "-a"),
	FN("NEG", 1, 1, TOTAL, double_unary, neg_double, "-a"),

	FN("=", 2, 2, TOTAL, equal, eq, "whether a equals b"),
	FN("=", 2, 2, STRICT, equal_text, eq_text, "whether a equals b, byte by byte"),
	FN("<>", 2, 2, TOTAL, equal, ne, "whether a differs from b"),
	FN("<>", 2, 2, STRICT, equal_text, ne_text, "whether a differs from b"),
	FN("<", 2, 2, TOTAL, equal, lt, "whether a is less than b"),
	FN("<", 2, 2, STRICT, order_text, lt, "whether a sorts before b, byte by byte"),
	FN("<=", 2, 2, TOTAL, equal, le, "whether a is at most b"),
	FN("<=", 2, 2, STRICT, order_text, le, "whether a does not sort after b"),
	FN(">", 2, 2, TOTAL, equal, gt, "whether a is greater than b"),
	FN(">", 2, 2, STRICT, order_text, gt, "whether a sorts after b"),
	FN(">=", 2, 2, TOTAL, equal, ge, "whether a is at least b"),
	FN(">=", 2, 2, STRICT, order_text, ge, "whether a does not sort before b"),
	FN("NOT", 1, 1, TOTAL, logical_not, logical_not, "NOT a: UNKNOWN stays UNKNOWN"),
	FN("IS NULL", 1, 1, OPEN, is_null, is_null, "whether a is NULL"),
	FN("IS NOT NULL", 1, 1, OPEN, is_null, is_not_null, "whether a is not NULL"),
	FN("IS TRUE", 1, 1, OPEN, is_truth, is_true, "whether a is TRUE"),
	FN("IS NOT TRUE", 1, 1, OPEN, is_truth, is_not_true, "whether a is FALSE or UNKNOWN"),
	FN("IS FALSE", 1, 1, OPEN, is_truth, is_false, "whether a is FALSE"),
	FN("IS NOT FALSE", 1, 1, OPEN, is_truth, is_not_false, "whether a is TRUE or UNKNOWN"),
	FN("IS UNKNOWN", 1, 1, OPEN, is_truth, is_null, "whether a BOOLEAN is NULL"),
	FN("IS NOT UNKNOWN", 1, 1, OPEN, is_truth, is_not_null, "whether a BOOLEAN is not NULL"),
	FN("IS DISTINCT FROM", 2, 2, OPEN, distinct, distinct, "whether a and b differ; NULL equals NULL"),
	FN("IS NOT DISTINCT FROM", 2, 2, OPEN, distinct, not_distinct, "whether a equals b; NULL equals NULL"),
	FN_PREPARED("IN", 2, 255, OPEN, in, in, in, "whether a equals one of the values"),
	FN("IF", 3, 3, OPEN, if, if, "IF(condition, a, b): a where the condition is TRUE, else b"),
	FN("NULLIF", 2, 2, OPEN, nullif, nullif, "NULLIF(a, b): NULL where a equals b, else a"),
	FN("GREATEST", 1, 255, STRICT, greatest, greatest, "GREATEST(a, ...): the largest; NULL if one is NULL"),
	FN("LEAST", 1, 255, STRICT, greatest, least, "LEAST(a, ...): the smallest; NULL if one is NULL"),
	FN("ABS", 1, 1, STRICT, int_unary, abs_int, "ABS(n): n without its sign"),
	FN("ABS", 1, 1, STRICT, decimal_unary, abs_decimal, "ABS(d): d without its sign"),
	FN("ABS", 1, 1, TOTAL, double_unary, abs_double, "ABS(x): x without its sign"),
	FN("SIGN", 1, 1, TOTAL, int_unary, sign_int, "SIGN(n): -1, 0 or 1"),
	FN("SIGN", 1, 1, STRICT, decimal_unary, sign_decimal, "SIGN(d): -1, 0 or 1"),
	FN("SIGN", 1, 1, TOTAL, double_unary, sign_double, "SIGN(x): -1, 0 or 1"),
	FN("MOD", 2, 2, STRICT, mod_int, mod_int, "MOD(a, b): a % b"),
	FN("MOD", 2, 2, STRICT, decimal_mod, mod_decimal, "MOD(a, b): a % b"),
	FN("MOD", 2, 2, TOTAL, double_arith, mod_double, "MOD(a, b): a % b"),
};
/* clang-format on */

static const char *const aggregates[] = {"COUNT", "SUM", "MIN", "MAX", "AVG", "FIRST_VALUE", "LAST_VALUE"};

bool weir_function_find(const char *name, const struct weir_function **first, uint32_t *count)
{
	for (uint32_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		if (strcasecmp(table[i].name, name) != 0)
			continue;
		uint32_t n = 1;
		while (i + n < WEIR_COUNT_OF(table) && strcmp(table[i].name, table[i + n].name) == 0)
			n++;
		*first = &table[i];
		*count = n;
		return true;
	}
	return false;
}

const char *weir_function_nearest(const char *name)
{
	const char *names[WEIR_COUNT_OF(table) + WEIR_COUNT_OF(aggregates)];
	char upper[64];
	size_t count = 0, bytes = 0;
	for (; name[bytes] != 0 && bytes < sizeof upper; bytes++)
		upper[bytes] = (char)(name[bytes] >= 'a' && name[bytes] <= 'z' ? name[bytes] - 32 : name[bytes]);
	for (uint32_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		char c = table[i].name[0];
		if (c >= 'A' && c <= 'Z' && strchr(table[i].name, ' ') == NULL &&
		    (count == 0 || strcmp(names[count - 1], table[i].name) != 0))
			names[count++] = table[i].name;
	}
	for (uint32_t i = 0; i < WEIR_COUNT_OF(aggregates); i++)
		names[count++] = aggregates[i];
	return weir_nearest_name(upper, bytes, names, count);
}

const struct weir_function *weir_function_at(uint32_t i)
{
	return i < WEIR_COUNT_OF(table) ? &table[i] : NULL;
}

bool weir_name_is_aggregate(const char *name)
{
	for (uint32_t i = 0; i < WEIR_COUNT_OF(aggregates); i++)
		if (strcasecmp(name, aggregates[i]) == 0)
			return true;
	return false;
}
