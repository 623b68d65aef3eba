/* kernel_compare.c: comparison, NOT, IS ..., IN, NULLIF, GREATEST, LEAST. @thread worker (kernels), init (resolve
 * rules).
 *
 * Both sides are coerced to one type first, except decimals whose exact common type would need more than 38 digits:
 * those are compared across scales in 256 bits. DOUBLE compares as IEEE 754: -0.0 = 0.0, and NaN equals nothing.
 * Strings and bytes compare byte by byte, which for UTF-8 is the order of code points. */
#include "hotpath/expr/kernel.h"
#include "hotpath/core/hash.h"
#include "hotpath/expr/decimal.h"

struct weir_type weir_type_of(enum weir_kind kind)
{
	return (struct weir_type){.kind = kind};
}

struct weir_type weir_type_string(void)
{
	return (struct weir_type){.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
}

struct weir_type weir_type_timestamp(enum weir_kind kind, int precision)
{
	return (struct weir_type){.kind = kind, .precision = (uint8_t)precision};
}

static bool is_nested(enum weir_kind kind)
{
	return kind == WEIR_KIND_ARRAY || kind == WEIR_KIND_MAP || kind == WEIR_KIND_ROW;
}

/* Sets every want[i] to the common type; leaves decimals alone that have no exact one. */
static bool unify(struct weir_type *want, uint32_t count, struct weir_type *common)
{
	*common = want[0];
	for (uint32_t i = 1; i < count; i++)
		if (!weir_type_common(common, &want[i], common))
			return false;
	bool exact = true;
	if (common->kind == WEIR_KIND_DECIMAL)
		for (uint32_t i = 0; i < count; i++) {
			struct weir_type d = weir_decimal_type_of(&want[i]);
			exact = exact && (want[i].kind == WEIR_KIND_NULL ||
					  (d.scale <= common->scale &&
					   d.precision - d.scale <= common->precision - common->scale));
		}
	for (uint32_t i = 0; i < count; i++) {
		bool not_null = want[i].not_null;
		if (exact || want[i].kind == WEIR_KIND_NULL)
			want[i] = *common;
		want[i].not_null = not_null;
	}
	return true;
}

static bool all_not_null(const struct weir_type *want, uint32_t count)
{
	bool all = true;
	for (uint32_t i = 0; i < count; i++)
		all = all && want[i].not_null;
	return all;
}

static bool compare_types(struct weir_type *want, uint32_t count, struct weir_type *result, bool nested, bool strings)
{
	struct weir_type common;
	bool not_null = all_not_null(want, count);
	if (!unify(want, count, &common) || (is_nested(common.kind) && !nested))
		return false;
	if ((weir_type_phys(&common) == WEIR_PHYS_STR) != strings)
		return false;
	*result = weir_type_of(WEIR_KIND_BOOLEAN);
	result->not_null = not_null;
	return true;
}

WEIR_RESOLVE(equal)
{
	(void)args;
	return compare_types(want, count, result, true, false);
}

WEIR_RESOLVE(equal_text)
{
	(void)args;
	return compare_types(want, count, result, true, true);
}

WEIR_RESOLVE(order_text)
{
	(void)args;
	return compare_types(want, count, result, false, true);
}

static double to_double(const struct weir_type *t, const struct weir_col *c, uint32_t row)
{
	row = weir_row(c, row);
	if (c->phys == WEIR_PHYS_F64)
		return c->f64[row];
	return weir_decimal_to_double(weir_col_i128(c, row), t->kind == WEIR_KIND_DECIMAL ? t->scale : 0);
}

int weir_compare_values(const struct weir_type *ta, const struct weir_col *a, uint32_t ra, const struct weir_type *tb,
			const struct weir_col *b, uint32_t rb)
{
	if (a->phys == WEIR_PHYS_STR)
		return weir_str_compare(a->str[weir_row(a, ra)], b->str[weir_row(b, rb)]);
	if (a->phys == WEIR_PHYS_U8)
		return (int)a->u8[weir_row(a, ra)] - (int)b->u8[weir_row(b, rb)];
	if (a->phys == WEIR_PHYS_F64 || b->phys == WEIR_PHYS_F64) {
		double x = to_double(ta, a, ra), y = to_double(tb, b, rb);
		return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
	}
	int sa = ta->kind == WEIR_KIND_DECIMAL ? ta->scale : 0, sb = tb->kind == WEIR_KIND_DECIMAL ? tb->scale : 0;
	return weir_decimal_compare(weir_col_i128(a, ra), sa, weir_col_i128(b, rb), sb);
}

static bool same_form(const struct weir_kernel *k)
{
	const struct weir_type *a = &k->expr->args[0]->type, *b = &k->expr->args[1]->type;
	int sa = a->kind == WEIR_KIND_DECIMAL ? a->scale : 0, sb = b->kind == WEIR_KIND_DECIMAL ? b->scale : 0;
	return k->in[0]->phys == k->in[1]->phys && sa == sb;
}

#define COMPARE_LOOPS(T, member, OP)                                                                                   \
	WEIR_BINARY_LOOPS(k, T, k->in[0]->member, k->in[0]->is_const, T, k->in[1]->member, k->in[1]->is_const,         \
			  o[r] = x OP y)
#define COMPARE(name, OP)                                                                                              \
	WEIR_KERNEL_LOOPS WEIR_KERNEL(name)                                                                            \
	{                                                                                                              \
		uint8_t *restrict o = k->out->u8;                                                                      \
		if (!same_form(k)) {                                                                                   \
			WEIR_FOR_ROWS(k, r)                                                                            \
			if (!weir_col_is_null(k->out, r))                                                              \
				o[r] = weir_compare_values(&k->expr->args[0]->type, k->in[0], r,                       \
							   &k->expr->args[1]->type, k->in[1], r) OP 0;                 \
			return;                                                                                        \
		}                                                                                                      \
		switch (k->in[0]->phys) {                                                                              \
		case WEIR_PHYS_U8:                                                                                     \
			COMPARE_LOOPS(uint8_t, u8, OP);                                                                \
			break;                                                                                         \
		case WEIR_PHYS_I64:                                                                                    \
			COMPARE_LOOPS(int64_t, i64, OP);                                                               \
			break;                                                                                         \
		case WEIR_PHYS_F64:                                                                                    \
			COMPARE_LOOPS(double, f64, OP);                                                                \
			break;                                                                                         \
		case WEIR_PHYS_I128:                                                                                   \
			COMPARE_LOOPS(weir_i128, i128, OP);                                                            \
			break;                                                                                         \
		case WEIR_PHYS_STR:                                                                                    \
			WEIR_FOR_ROWS(k, r)                                                                            \
			o[r] = weir_str_compare(weir_arg_str(k, 0, r), weir_arg_str(k, 1, r)) OP 0;                    \
			break;                                                                                         \
		}                                                                                                      \
	}
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

/* Lengths differ for most unequal strings: no order needed. */
WEIR_KERNEL(eq_text)
{
	WEIR_FOR_ROWS(k, r)
	k->out->u8[r] = weir_str_equal(weir_arg_str(k, 0, r), weir_arg_str(k, 1, r));
}

WEIR_KERNEL(ne_text)
{
	WEIR_FOR_ROWS(k, r)
	k->out->u8[r] = !weir_str_equal(weir_arg_str(k, 0, r), weir_arg_str(k, 1, r));
}

WEIR_RESOLVE(distinct)
{
	(void)args;
	struct weir_type common;
	if (!unify(want, count, &common))
		return false;
	*result = weir_type_of(WEIR_KIND_BOOLEAN);
	result->not_null = true;
	return true;
}

static void distinct(struct weir_kernel *k, bool negate)
{
	WEIR_FOR_ROWS(k, r)
	{
		bool na = weir_col_is_null(k->in[0], r), nb = weir_col_is_null(k->in[1], r), differ = na != nb;
		if (!na && !nb)
			differ = weir_compare_values(&k->expr->args[0]->type, k->in[0], r, &k->expr->args[1]->type,
						     k->in[1], r) != 0;
		k->out->u8[r] = differ != negate;
	}
}

WEIR_KERNEL(distinct)
{
	distinct(k, false);
}

WEIR_KERNEL(not_distinct)
{
	distinct(k, true);
}

static bool want_boolean(struct weir_type *want, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (want[i].kind != WEIR_KIND_BOOLEAN && want[i].kind != WEIR_KIND_NULL)
			return false;
		bool not_null = want[i].not_null;
		want[i] = weir_type_of(WEIR_KIND_BOOLEAN);
		want[i].not_null = not_null;
	}
	return true;
}

WEIR_RESOLVE(logical_not)
{
	(void)args;
	if (!want_boolean(want, count))
		return false;
	*result = want[0];
	return true;
}

WEIR_RESOLVE(is_truth)
{
	(void)args;
	if (!want_boolean(want, count))
		return false;
	*result = weir_type_of(WEIR_KIND_BOOLEAN);
	result->not_null = true;
	return true;
}

WEIR_RESOLVE(is_null)
{
	(void)args, (void)count, (void)want;
	*result = weir_type_of(WEIR_KIND_BOOLEAN);
	result->not_null = true;
	return true;
}

WEIR_KERNEL_LOOPS WEIR_KERNEL(logical_not)
{
	uint8_t *restrict o = k->out->u8;
	WEIR_UNARY_LOOPS(k, uint8_t, k->in[0]->u8, k->in[0]->is_const, o[r] = !x);
}

static void is_null(struct weir_kernel *k, bool negate)
{
	WEIR_FOR_ROWS(k, r)
	k->out->u8[r] = weir_col_is_null(k->in[0], r) != negate;
}

WEIR_KERNEL(is_null)
{
	is_null(k, false);
}

WEIR_KERNEL(is_not_null)
{
	is_null(k, true);
}

static void is_truth(struct weir_kernel *k, uint8_t truth, bool negate)
{
	WEIR_FOR_ROWS(k, r)
	{
		bool is = !weir_col_is_null(k->in[0], r) && k->in[0]->u8[weir_row(k->in[0], r)] == truth;
		k->out->u8[r] = is != negate;
	}
}

WEIR_KERNEL(is_true)
{
	is_truth(k, 1, false);
}

WEIR_KERNEL(is_not_true)
{
	is_truth(k, 1, true);
}

WEIR_KERNEL(is_false)
{
	is_truth(k, 0, false);
}

WEIR_KERNEL(is_not_false)
{
	is_truth(k, 0, true);
}

/* A list of constants: integers (also times and narrow decimals) sorted, strings in a hash table. */
struct in_set {
	enum weir_phys phys;
	bool has_null;
	uint32_t count;
	int64_t *sorted;
	struct weir_str *slot; /* slot_mask + 1 of them; data NULL: free */
	uint32_t slot_mask;
};

WEIR_RESOLVE(in)
{
	(void)args;
	struct weir_type common;
	bool not_null = all_not_null(want, count);
	if (!unify(want, count, &common))
		return false;
	*result = weir_type_of(WEIR_KIND_BOOLEAN);
	result->not_null = not_null;
	return true;
}

static void sort_i64(int64_t *v, uint32_t count)
{
	for (uint32_t gap = count / 2; gap > 0; gap /= 2)
		for (uint32_t i = gap; i < count; i++)
			for (uint32_t j = i; j >= gap && v[j - gap] > v[j]; j -= gap) {
				int64_t t = v[j];
				v[j] = v[j - gap];
				v[j - gap] = t;
			}
}

static void set_add_str(struct in_set *set, struct weir_str s)
{
	uint32_t i = (uint32_t)weir_hash(s.data, s.bytes) & set->slot_mask;
	while (set->slot[i].data != NULL) {
		if (weir_str_equal(set->slot[i], s))
			return;
		i = (i + 1) & set->slot_mask;
	}
	set->slot[i] = s;
}

WEIR_PREPARE(in)
{
	(void)dg;
	enum weir_phys phys = weir_type_phys(&args[0]->type);
	if (phys != WEIR_PHYS_I64 && phys != WEIR_PHYS_STR)
		return WEIR_OK;
	for (uint32_t i = 1; i < count; i++)
		if (args[i]->op != WEIR_EXPR_CONST || weir_type_phys(&args[i]->type) != phys ||
		    args[i]->type.scale != args[0]->type.scale)
			return WEIR_OK;
	struct in_set *set = weir_mem_take(m, sizeof *set);
	set->phys = phys;
	uint32_t slots = 4;
	while (slots < count * 2)
		slots *= 2;
	if (phys == WEIR_PHYS_I64)
		set->sorted = weir_mem_take(m, count * sizeof *set->sorted);
	else
		set->slot = weir_mem_take(m, slots * sizeof *set->slot);
	set->slot_mask = slots - 1;
	for (uint32_t i = 1; i < count; i++) {
		if (args[i]->is_null)
			set->has_null = true;
		else if (phys == WEIR_PHYS_I64)
			set->sorted[set->count++] = args[i]->value.i64;
		else
			set_add_str(set, args[i]->value.str);
	}
	if (phys == WEIR_PHYS_I64)
		sort_i64(set->sorted, set->count);
	*data = set;
	return WEIR_OK;
}

static bool set_has_i64(const struct in_set *set, int64_t v)
{
	const int64_t *at = set->sorted;
	for (uint32_t left = set->count; left > 1;) {
		uint32_t half = left / 2;
		at += at[half] <= v ? half : 0;
		left -= half;
	}
	return set->count != 0 && *at == v;
}

static bool set_has_str(const struct in_set *set, struct weir_str s)
{
	uint32_t i = (uint32_t)weir_hash(s.data, s.bytes) & set->slot_mask;
	for (; set->slot[i].data != NULL; i = (i + 1) & set->slot_mask)
		if (weir_str_equal(set->slot[i], s))
			return true;
	return false;
}

static void in_constants(struct weir_kernel *k, const struct in_set *set)
{
	WEIR_FOR_ROWS(k, r)
	{
		if (weir_col_is_null(k->in[0], r)) {
			weir_col_set_null(k->out, r);
			continue;
		}
		bool has = set->phys == WEIR_PHYS_I64 ? set_has_i64(set, weir_arg_i64(k, 0, r))
						      : set_has_str(set, weir_arg_str(k, 0, r));
		k->out->u8[r] = has;
		if (!has && set->has_null)
			weir_col_set_null(k->out, r);
	}
}

/* TRUE if any equals; else NULL if any is NULL; else FALSE. */
WEIR_KERNEL(in)
{
	if (k->expr->fn_data != NULL) {
		in_constants(k, k->expr->fn_data);
		return;
	}
	uint32_t count = k->expr->arg_count;
	const struct weir_expr *const *args = k->expr->args;
	WEIR_FOR_ROWS(k, r)
	{
		bool null = weir_col_is_null(k->in[0], r), has = false;
		for (uint32_t i = 1; i < count && !null && !has; i++)
			has = !weir_col_is_null(k->in[i], r) &&
			      weir_compare_values(&args[0]->type, k->in[0], r, &args[i]->type, k->in[i], r) == 0;
		for (uint32_t i = 1; i < count && !null && !has; i++)
			null = weir_col_is_null(k->in[i], r);
		k->out->u8[r] = has;
		if (null && !has)
			weir_col_set_null(k->out, r);
	}
}

/* IF(condition, a, b): program.c runs it as a CASE, so that only the branch taken is evaluated. */
WEIR_RESOLVE(if)
{
	(void)args, (void)count;
	if (!want_boolean(want, 1) || !weir_type_common(&want[1], &want[2], result))
		return false;
	bool not_null = want[1].not_null && want[2].not_null;
	want[1] = want[2] = *result;
	want[1].not_null = want[2].not_null = false;
	result->not_null = not_null;
	return true;
}

static void copy_value(struct weir_col *to, uint32_t row, const struct weir_col *from)
{
	uint32_t at = weir_row(from, row);
	if (weir_col_is_null(from, row)) {
		weir_col_set_null(to, row);
		return;
	}
	switch (to->phys) {
	case WEIR_PHYS_U8:
		to->u8[row] = from->u8[at];
		break;
	case WEIR_PHYS_I64:
	case WEIR_PHYS_F64:
		to->i64[row] = from->i64[at];
		break;
	case WEIR_PHYS_I128:
		to->i128[row] = from->i128[at];
		break;
	case WEIR_PHYS_STR:
		to->str[row] = from->str[at];
		break;
	}
}

WEIR_KERNEL(if)
{
	WEIR_FOR_ROWS(k, r)
	{
		bool yes = !weir_col_is_null(k->in[0], r) && k->in[0]->u8[weir_row(k->in[0], r)];
		copy_value(k->out, r, k->in[yes ? 1 : 2]);
	}
}

/* NULLIF(a, b) has the type of a. */
WEIR_RESOLVE(nullif)
{
	(void)args, (void)count;
	struct weir_type common;
	if (!weir_type_common(&want[0], &want[1], &common))
		return false;
	if (want[0].kind == WEIR_KIND_NULL)
		want[0] = common;
	if (!weir_kind_is_numeric(want[0].kind) || !weir_kind_is_numeric(want[1].kind))
		want[1] = want[0];
	*result = want[0];
	result->not_null = false;
	return true;
}

WEIR_KERNEL(nullif)
{
	WEIR_FOR_ROWS(k, r)
	{
		bool both = !weir_col_is_null(k->in[0], r) && !weir_col_is_null(k->in[1], r);
		if (both && weir_compare_values(&k->expr->args[0]->type, k->in[0], r, &k->expr->args[1]->type, k->in[1],
						r) == 0)
			weir_col_set_null(k->out, r);
		else
			copy_value(k->out, r, k->in[0]);
	}
}

WEIR_RESOLVE(greatest)
{
	(void)args;
	bool not_null = all_not_null(want, count);
	*result = want[0];
	for (uint32_t i = 1; i < count; i++)
		if (!weir_type_common(result, &want[i], result))
			return false;
	if (is_nested(result->kind) || result->kind == WEIR_KIND_NULL)
		return false;
	for (uint32_t i = 0; i < count; i++)
		want[i] = *result;
	result->not_null = not_null;
	return true;
}

static void extreme(struct weir_kernel *k, int sign)
{
	const struct weir_type *t = &k->expr->type;
	WEIR_FOR_ROWS(k, r)
	{
		const struct weir_col *best = k->in[0];
		for (uint32_t i = 1; i < k->expr->arg_count; i++) {
			int c = weir_compare_values(t, k->in[i], r, t, best, r);
			if (c * sign > 0)
				best = k->in[i];
		}
		copy_value(k->out, r, best);
	}
}

WEIR_KERNEL(greatest)
{
	extreme(k, 1);
}

WEIR_KERNEL(least)
{
	extreme(k, -1);
}
