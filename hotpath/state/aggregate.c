/* aggregate.c: which aggregates there are, their types, the layout of their states and their results. The folding is
 * fold.c. @thread init for weir_agg_resolve and weir_agg_layout, else any holder of the pages. */
#include "hotpath/state/aggregate.h"
#include "hotpath/core/diag.h"
#include "hotpath/state/agg_state.h"
#include "hotpath/state/list.h"

#include <math.h>

static const struct agg_name {
	const char *name;
	enum weir_agg_kind kind;
} agg_names[] = {
	{"COUNT", WEIR_AGG_COUNT},
	{"SUM", WEIR_AGG_SUM},
	{"MIN", WEIR_AGG_MIN},
	{"MAX", WEIR_AGG_MAX},
	{"AVG", WEIR_AGG_AVG},
	{"FIRST_VALUE", WEIR_AGG_FIRST_VALUE},
	{"LAST_VALUE", WEIR_AGG_LAST_VALUE},
	{"STDDEV_POP", WEIR_AGG_STDDEV_POP},
	{"STDDEV_SAMP", WEIR_AGG_STDDEV_SAMP},
	{"STDDEV", WEIR_AGG_STDDEV_SAMP},
	{"VAR_POP", WEIR_AGG_VAR_POP},
	{"VAR_SAMP", WEIR_AGG_VAR_SAMP},
	{"VARIANCE", WEIR_AGG_VAR_SAMP},
	{"ARRAY_AGG", WEIR_AGG_ARRAY_AGG},
};

static bool name_equal(const char *a, const char *b)
{
	for (; *a != 0 && *b != 0; a++, b++) {
		char c = *a >= 'a' && *a <= 'z' ? (char)(*a - 'a' + 'A') : *a;
		if (c != *b)
			return false;
	}
	return *a == *b;
}

static struct weir_type type_of(enum weir_kind kind)
{
	return (struct weir_type){.kind = kind};
}
static struct weir_type type_decimal(uint8_t scale)
{
	return (struct weir_type){.kind = WEIR_KIND_DECIMAL, .precision = 38, .scale = scale};
}

static bool kind_is_nested(enum weir_kind k)
{
	return k == WEIR_KIND_ARRAY || k == WEIR_KIND_MAP || k == WEIR_KIND_ROW;
}

static enum weir_err agg_type(struct weir_agg *a, const char *name, const struct weir_type *element,
			      struct weir_diag **dg)
{
	const struct weir_type *t = &a->arg_type;
	char text[128];
	switch (a->kind) {
	case WEIR_AGG_COUNT_STAR:
	case WEIR_AGG_COUNT:
	case WEIR_AGG_COUNT_DISTINCT:
		a->result_type = type_of(WEIR_KIND_BIGINT);
		a->result_type.not_null = true;
		return WEIR_OK;
	case WEIR_AGG_FIRST_VALUE:
	case WEIR_AGG_LAST_VALUE:
		a->result_type = *t;
		a->result_type.not_null = false;
		return WEIR_OK;
	case WEIR_AGG_ARRAY_AGG:
		a->result_type = (struct weir_type){.kind = WEIR_KIND_ARRAY, .field_count = 1, .fields = element};
		a->list = true;
		a->elements_max = WEIR_LIST_ELEMENTS_DEFAULT;
		return WEIR_OK;
	case WEIR_AGG_MIN:
	case WEIR_AGG_MAX:
		if (kind_is_nested(t->kind))
			return weir_diag_set(dg, WEIR_E_PLAN, "%s takes a value with an order, not %s", name,
					     weir_type_text(t, text, sizeof text));
		a->result_type = *t;
		a->result_type.not_null = false;
		return WEIR_OK;
	default:
		break;
	}
	if (!weir_kind_is_numeric(t->kind))
		return weir_diag_set(dg, WEIR_E_PLAN, "%s takes a number, not %s", name,
				     weir_type_text(t, text, sizeof text));
	if (a->kind == WEIR_AGG_SUM || a->kind == WEIR_AGG_AVG) {
		if (t->kind == WEIR_KIND_DECIMAL)
			a->result_type = type_decimal(a->kind == WEIR_AGG_SUM || t->scale > 6 ? t->scale : 6);
		else
			a->result_type = type_of(t->kind);
	} else {
		a->result_type = type_of(WEIR_KIND_DOUBLE);
	}
	return WEIR_OK;
}

enum weir_err weir_agg_resolve(struct weir_agg *out, const char *name, bool distinct, const struct weir_type *arg,
			       struct weir_diag **dg)
{
	struct weir_agg a = {.arg = -1, .filter = -1};
	const struct agg_name *found = NULL;
	for (size_t i = 0; i < WEIR_COUNT_OF(agg_names) && found == NULL; i++)
		if (name_equal(name, agg_names[i].name))
			found = &agg_names[i];
	if (found == NULL)
		return weir_diag_set(dg, WEIR_E_PLAN, "%s is not an aggregate function", name);
	a.kind = found->kind;
	if (arg == NULL) {
		if (a.kind != WEIR_AGG_COUNT || distinct)
			return weir_diag_set(dg, WEIR_E_PLAN, "%s takes one argument; only COUNT(*) takes none",
					     found->name);
		a.kind = WEIR_AGG_COUNT_STAR;
	} else {
		a.arg_type = *arg;
	}
	if (distinct) {
		if (a.kind == WEIR_AGG_COUNT)
			a.kind = WEIR_AGG_COUNT_DISTINCT;
		else if (a.kind != WEIR_AGG_MIN && a.kind != WEIR_AGG_MAX)
			return weir_diag_set(dg, WEIR_E_PLAN, "DISTINCT is for COUNT, MIN and MAX, not for %s",
					     found->name);
	}
	enum weir_err err = agg_type(&a, found->name, arg, dg);
	if (err == WEIR_OK)
		*out = a;
	return err;
}

static bool agg_is_text(const struct weir_agg *a)
{
	return weir_type_phys(&a->arg_type) == WEIR_PHYS_STR;
}

bool weir_agg_has_blob(const struct weir_agg *a)
{
	if (a->list)
		return true;
	switch (a->kind) {
	case WEIR_AGG_COUNT_DISTINCT:
		return true;
	case WEIR_AGG_MIN:
	case WEIR_AGG_MAX:
	case WEIR_AGG_FIRST_VALUE:
	case WEIR_AGG_LAST_VALUE:
		return agg_is_text(a);
	default:
		return false;
	}
}

static uint32_t agg_state_bytes(const struct weir_agg *a)
{
	enum weir_phys phys = weir_type_phys(&a->arg_type);
	if (a->list)
		return sizeof(struct agg_list);
	switch (a->kind) {
	case WEIR_AGG_COUNT_STAR:
	case WEIR_AGG_COUNT:
		return sizeof(struct agg_count);
	case WEIR_AGG_COUNT_DISTINCT:
		return sizeof(struct agg_distinct);
	case WEIR_AGG_SUM:
		return phys == WEIR_PHYS_F64 ? sizeof(struct agg_real) : sizeof(struct agg_sum);
	case WEIR_AGG_AVG:
		return phys == WEIR_PHYS_F64 ? sizeof(struct agg_real) : sizeof(struct agg_avg);
	case WEIR_AGG_MIN:
	case WEIR_AGG_MAX:
		if (phys == WEIR_PHYS_STR)
			return sizeof(struct weir_text);
		return phys == WEIR_PHYS_I128 ? sizeof(struct agg_wide) : sizeof(struct agg_word);
	case WEIR_AGG_FIRST_VALUE:
	case WEIR_AGG_LAST_VALUE:
		if (phys == WEIR_PHYS_STR)
			return sizeof(struct agg_text);
		return phys == WEIR_PHYS_I128 ? sizeof(struct agg_wide) : sizeof(struct agg_word);
	default:
		return sizeof(struct agg_var);
	}
}

uint32_t weir_agg_layout(struct weir_agg *aggs, uint32_t count)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < count; i++) {
		aggs[i].state_at = at;
		aggs[i].state_bytes = agg_state_bytes(&aggs[i]);
		at += aggs[i].state_bytes;
	}
	return at;
}

/* ---- results ---- */

static const int64_t power10[] = {1, 10, 100, 1000, 10000, 100000, 1000000};

/* 10^38: the smallest magnitude that a DECIMAL cannot hold. */
static weir_i128 decimal_limit(void)
{
	const weir_i128 e18 = INT64_C(1000000000000000000);
	return e18 * e18 * 100;
}

static bool final_null(struct weir_col *c, uint32_t row, bool fits)
{
	weir_col_set_null(c, row);
	switch (c->phys) {
	case WEIR_PHYS_U8:
		c->u8[row] = 0;
		break;
	case WEIR_PHYS_I64:
	case WEIR_PHYS_F64:
		c->i64[row] = 0;
		break;
	case WEIR_PHYS_I128:
		c->i128[row] = 0;
		break;
	case WEIR_PHYS_STR:
		c->str[row] = (struct weir_str){NULL, 0, 0};
		break;
	}
	return fits;
}

static bool final_exact(const struct weir_agg *a, weir_i128 v, struct weir_col *c, uint32_t row)
{
	if (c->phys == WEIR_PHYS_I128) {
		weir_i128 limit = decimal_limit();
		if (v >= limit || v <= -limit)
			return final_null(c, row, false);
		c->i128[row] = v;
		return true;
	}
	int64_t max;
	switch (a->result_type.kind) {
	case WEIR_KIND_TINYINT:
		max = INT8_MAX;
		break;
	case WEIR_KIND_SMALLINT:
		max = INT16_MAX;
		break;
	case WEIR_KIND_INT:
		max = INT32_MAX;
		break;
	default:
		max = INT64_MAX;
		break;
	}
	if (v > max || v < -(weir_i128)max - 1)
		return final_null(c, row, false);
	c->i64[row] = (int64_t)v;
	return true;
}

/* q, r of the 192-bit value (over, sum) by n > 0, truncated toward zero; false if q does not fit. */
static bool divide_wide(weir_i128 sum, int64_t over, uint64_t n, weir_i128 *q, int64_t *r)
{
	/* The value is sum + over * 2^128. */
	bool negative = over < 0 || (over == 0 && sum < 0);
	weir_u128 low = (weir_u128)sum;
	uint64_t high = (uint64_t)over + (uint64_t)(sum < 0 ? -1 : 0);
	if (negative) {
		low = ~low + 1;
		high = ~high + (low == 0);
	}
	weir_u128 rest = high % n;
	if (high / n != 0)
		return false;
	uint64_t words[2];
	rest = rest << 64 | (uint64_t)(low >> 64);
	words[1] = (uint64_t)(rest / n);
	rest = rest % n << 64 | (uint64_t)low;
	words[0] = (uint64_t)(rest / n);
	rest %= n;
	weir_u128 out = (weir_u128)words[1] << 64 | words[0];
	if (out >> 127 != 0)
		return false;
	*q = negative ? -(weir_i128)out : (weir_i128)out;
	*r = negative ? -(int64_t)rest : (int64_t)rest;
	return true;
}

static bool final_avg(const struct weir_agg *a, const struct agg_avg *s, struct weir_col *c, uint32_t row)
{
	weir_i128 q;
	int64_t r;
	if (s->n == 0)
		return final_null(c, row, true);
	if (!divide_wide(s->sum, s->over, s->n, &q, &r))
		return final_null(c, row, false);
	if (a->arg_type.kind != WEIR_KIND_DECIMAL)
		return final_exact(a, q, c, row);
	/* More digits behind the point, rounded half up (away from zero). */
	weir_i128 scale = power10[a->result_type.scale - a->arg_type.scale];
	weir_i128 limit = decimal_limit();
	if (q >= limit || q <= -limit)
		return final_null(c, row, false);
	weir_i128 scaled;
	if (__builtin_mul_overflow(q, scale, &scaled))
		return final_null(c, row, false);
	weir_i128 more = (weir_i128)r * scale, half = more % (weir_i128)s->n;
	scaled += more / (weir_i128)s->n;
	if (half * 2 >= (weir_i128)s->n)
		scaled++;
	else if (-half * 2 >= (weir_i128)s->n)
		scaled--;
	return final_exact(a, scaled, c, row);
}

static bool final_real(const struct weir_agg *a, const struct agg_real *s, struct weir_col *c, uint32_t row)
{
	uint64_t n = s->n & ~AGG_REAL_SPECIAL;
	if (n == 0)
		return final_null(c, row, true);
	/* The compensation means nothing once the sum has left the numbers. */
	double v = isfinite(s->sum) ? s->sum + s->comp : s->sum;
	if (a->kind == WEIR_AGG_AVG)
		v /= (double)n;
	if (a->result_type.kind == WEIR_KIND_FLOAT)
		v = (double)(float)v;
	/* Infinity and NaN are results only where they were in the input. */
	if (!isfinite(v) && (s->n & AGG_REAL_SPECIAL) == 0)
		return final_null(c, row, false);
	c->f64[row] = v;
	return true;
}

static bool final_var(const struct weir_agg *a, const struct agg_var *s, struct weir_col *c, uint32_t row)
{
	bool sample = a->kind == WEIR_AGG_STDDEV_SAMP || a->kind == WEIR_AGG_VAR_SAMP;
	if (s->n == 0 || (sample && s->n == 1))
		return final_null(c, row, true);
	double v = s->m2 / (double)(sample ? s->n - 1 : s->n);
	if (a->kind == WEIR_AGG_STDDEV_POP || a->kind == WEIR_AGG_STDDEV_SAMP)
		v = sqrt(v);
	c->f64[row] = v;
	return true;
}

static bool final_word(const struct weir_agg *a, const struct agg_word *s, struct weir_col *c, uint32_t row)
{
	(void)a;
	if (s->order == 0)
		return final_null(c, row, true);
	if (c->phys == WEIR_PHYS_U8)
		c->u8[row] = (uint8_t)s->v;
	else
		c->i64[row] = s->v;
	return true;
}

static bool final_text(const struct weir_text *t, const struct weir_pages *pages, struct weir_col *c, uint32_t row)
{
	if (t->ref == 0)
		return final_null(c, row, true);
	c->str[row] = (struct weir_str){weir_text_data(pages, t), t->bytes, 0};
	return true;
}

bool weir_agg_final(const struct weir_agg *a, const uint8_t *state, const struct weir_pages *pages, struct weir_col *c,
		    uint32_t row)
{
	const void *s = state;
	enum weir_phys phys = weir_type_phys(&a->arg_type);
	switch (a->kind) {
	case WEIR_AGG_COUNT_STAR:
	case WEIR_AGG_COUNT:
		c->i64[row] = (int64_t)((const struct agg_count *)s)->n;
		return true;
	case WEIR_AGG_COUNT_DISTINCT:
		if (((const struct agg_distinct *)s)->full)
			return final_null(c, row, false);
		c->i64[row] = (int64_t)((const struct agg_distinct *)s)->n;
		return true;
	case WEIR_AGG_SUM: {
		if (phys == WEIR_PHYS_F64)
			return final_real(a, s, c, row);
		const struct agg_sum *sum = s;
		if (!sum->seen || sum->over != 0)
			return final_null(c, row, sum->over == 0);
		return final_exact(a, sum->sum, c, row);
	}
	case WEIR_AGG_AVG:
		return phys == WEIR_PHYS_F64 ? final_real(a, s, c, row) : final_avg(a, s, c, row);
	case WEIR_AGG_MIN:
	case WEIR_AGG_MAX:
	case WEIR_AGG_FIRST_VALUE:
	case WEIR_AGG_LAST_VALUE:
		if (phys == WEIR_PHYS_STR) {
			bool pick = a->kind == WEIR_AGG_FIRST_VALUE || a->kind == WEIR_AGG_LAST_VALUE;
			return final_text(pick ? &((const struct agg_text *)s)->text : s, pages, c, row);
		}
		if (phys == WEIR_PHYS_I128) {
			const struct agg_wide *w = s;
			if (w->order == 0)
				return final_null(c, row, true);
			c->i128[row] = w->v;
			return true;
		}
		return final_word(a, s, c, row);
	default:
		return final_var(a, s, c, row);
	}
}

bool weir_agg_result(const struct weir_agg *a, const uint8_t *state, const struct weir_pages *pages, struct weir_col *c,
		     uint32_t row, struct weir_scratch *scratch)
{
	const void *s = state;
	return a->list ? weir_list_final(a, s, pages, c, row, scratch) : weir_agg_final(a, state, pages, c, row);
}

static struct weir_text *agg_text_of(const struct weir_agg *a, uint8_t *state)
{
	void *s = state;
	if (a->kind == WEIR_AGG_MIN || a->kind == WEIR_AGG_MAX)
		return s;
	return &((struct agg_text *)s)->text;
}

const struct weir_text *weir_agg_text(const struct weir_agg *a, const uint8_t *state)
{
	return agg_text_of(a, (uint8_t *)(uintptr_t)state);
}

uint32_t weir_agg_blob(const struct weir_agg *a, const uint8_t *state)
{
	if (!weir_agg_has_blob(a))
		return 0;
	if (a->list)
		return ((const struct agg_list *)(const void *)state)->ref;
	if (a->kind == WEIR_AGG_COUNT_DISTINCT)
		return ((const struct agg_distinct *)(const void *)state)->ref;
	return agg_text_of(a, (uint8_t *)(uintptr_t)state)->ref;
}

void weir_agg_set_blob(const struct weir_agg *a, uint8_t *state, uint32_t ref)
{
	if (a->list)
		((struct agg_list *)(void *)state)->ref = ref;
	else if (a->kind == WEIR_AGG_COUNT_DISTINCT)
		((struct agg_distinct *)(void *)state)->ref = ref;
	else
		agg_text_of(a, state)->ref = ref;
}

bool weir_agg_check(const struct weir_agg *a, const uint8_t *state, const uint8_t *payload, uint32_t capacity)
{
	if (a->list)
		return weir_list_check((const struct agg_list *)(const void *)state, payload, capacity);
	if (a->kind == WEIR_AGG_COUNT_DISTINCT) {
		const struct agg_distinct *d = (const struct agg_distinct *)(const void *)state;
		return payload == NULL ? d->n == 0 : weir_set_check(payload, capacity, d->n);
	}
	if (!weir_agg_has_blob(a))
		return true;
	const struct weir_text *t = agg_text_of(a, (uint8_t *)(uintptr_t)state);
	bool pick = a->kind == WEIR_AGG_FIRST_VALUE || a->kind == WEIR_AGG_LAST_VALUE;
	/* Merging panes goes by the order: it may not promise a text that is not there. */
	if (pick && (((const struct agg_text *)(const void *)state)->order == 0) != (payload == NULL))
		return false;
	return payload == NULL ? t->bytes == 0 : t->bytes <= capacity;
}
