/* fold.c: folding rows into aggregate states, one tight loop per aggregate over (entry, value) pairs, and merging
 * states (panes, sessions). Row order within a slot is kept, so results are exact and the same on any number of
 * workers.
 * @thread worker. */
#include "hotpath/state/agg_state.h"
#include "hotpath/state/aggregate.h"
#include "hotpath/state/list.h"

#include <math.h>

/* The lanes one aggregate takes: all of them, or those its FILTER and the argument's NULLs leave over. */
struct picked {
	uint32_t count;
	const uint16_t *row;
	uint8_t *const *entry;
	struct weir_gen *const *gen;
	const uint64_t *order;
};
struct picked_store {
	uint16_t row[WEIR_LANES];
	uint8_t *entry[WEIR_LANES];
	struct weir_gen *gen[WEIR_LANES];
	uint64_t order[WEIR_LANES];
};

static bool filter_passes(const struct weir_col *f, uint32_t row)
{
	return !weir_col_is_null(f, row) && f->u8[f->is_const ? 0 : row] != 0;
}

static void pick(struct picked *pk, struct picked_store *st, const struct weir_lanes *ln, uint32_t from, uint32_t count,
		 const struct weir_col *arg, const struct weir_col *filter)
{
	if (filter == NULL && (arg == NULL || (!arg->has_null && !arg->is_const))) {
		*pk = (struct picked){count, ln->row + from, ln->entry + from, ln->gen + from, ln->order + from};
		return;
	}
	uint32_t n = 0;
	bool at_zero = arg != NULL && arg->is_const;
	for (uint32_t i = from; i < from + count; i++) {
		uint32_t row = ln->row[i];
		if (filter != NULL && !filter_passes(filter, row))
			continue;
		if (arg != NULL && weir_col_is_null(arg, row))
			continue;
		st->row[n] = at_zero ? 0 : (uint16_t)row;
		st->entry[n] = ln->entry[i];
		st->gen[n] = ln->gen[i];
		st->order[n] = ln->order[i];
		n++;
	}
	*pk = (struct picked){n, st->row, st->entry, st->gen, st->order};
}

#define EACH(i, pk)            for (uint32_t i = 0; i < (pk)->count; i++)
#define STATE(type, pk, i, at) ((struct type *)(void *)((pk)->entry[i] + (at)))

static void fold_count(const struct picked *pk, uint32_t at)
{
#pragma GCC unroll 4
	EACH(i, pk)
	STATE(agg_count, pk, i, at)->n++;
}

/* ---- sums ---- */

WEIR_INLINE void sum_add(struct agg_sum *s, weir_i128 v)
{
	weir_i128 sum;
	if (WEIR_UNLIKELY(__builtin_add_overflow((weir_i128)s->sum, v, &sum)))
		s->over += v < 0 ? -1 : 1;
	s->sum = sum;
	s->seen = 1;
}
WEIR_INLINE void avg_add(struct agg_avg *s, weir_i128 v, uint64_t n)
{
	weir_i128 sum;
	if (WEIR_UNLIKELY(__builtin_add_overflow((weir_i128)s->sum, v, &sum)))
		s->over += v < 0 ? -1 : 1;
	s->sum = sum;
	s->n += n;
}
WEIR_INLINE void real_add(struct agg_real *s, double x)
{
	double t = s->sum + x;
	if (WEIR_UNLIKELY(!isfinite(t))) {
		if (!isfinite(x))
			s->n |= AGG_REAL_SPECIAL;
	} else if (fabs(s->sum) >= fabs(x)) {
		s->comp += (s->sum - t) + x;
	} else {
		s->comp += (x - t) + s->sum;
	}
	s->sum = t;
}

static void fold_sum(const struct picked *pk, uint32_t at, const struct weir_col *c)
{
	if (c->phys == WEIR_PHYS_I64) {
		/* 2^63 values of 64 bits fit into 128: no overflow to look for. */
		const int64_t *v = c->i64;
#pragma GCC unroll 4
		EACH(i, pk)
		{
			struct agg_sum *s = STATE(agg_sum, pk, i, at);
			s->sum += v[pk->row[i]];
			s->seen = 1;
		}
	} else if (c->phys == WEIR_PHYS_I128) {
		const weir_i128 *v = c->i128;
		EACH(i, pk)
		sum_add(STATE(agg_sum, pk, i, at), v[pk->row[i]]);
	} else {
		const double *v = c->f64;
		EACH(i, pk)
		{
			struct agg_real *s = STATE(agg_real, pk, i, at);
			real_add(s, v[pk->row[i]]);
			s->n++;
		}
	}
}

static void fold_avg(const struct picked *pk, uint32_t at, const struct weir_col *c)
{
	if (c->phys == WEIR_PHYS_I64) {
		const int64_t *v = c->i64;
		EACH(i, pk)
		{
			struct agg_avg *s = STATE(agg_avg, pk, i, at);
			s->sum += v[pk->row[i]];
			s->n++;
		}
	} else if (c->phys == WEIR_PHYS_I128) {
		const weir_i128 *v = c->i128;
		EACH(i, pk)
		avg_add(STATE(agg_avg, pk, i, at), v[pk->row[i]], 1);
	} else {
		fold_sum(pk, at, c); /* the same state */
	}
}

/* ---- minimum, maximum ---- */

static int64_t real_bits(double v)
{
	int64_t b;
	memcpy(&b, &v, 8);
	return b;
}
static double real_of(int64_t b)
{
	double v;
	memcpy(&v, &b, 8);
	return v;
}
/* NaN is above all numbers; of equal values (0.0, -0.0) the first stays. */
static bool real_less(double a, double b)
{
	return a < b || (isnan(b) && !isnan(a));
}

static int text_compare(const void *a, uint32_t an, const void *b, uint32_t bn)
{
	uint32_t n = an < bn ? an : bn;
	int c = n != 0 ? memcmp(a, b, n) : 0;
	return c != 0 ? c : (an > bn) - (an < bn);
}

#define FOLD_EXTREME(type, value, better)                                                                              \
	EACH(i, pk)                                                                                                    \
	{                                                                                                              \
		struct type *s = STATE(type, pk, i, at);                                                               \
		uint32_t row = pk->row[i];                                                                             \
		if (s->order == 0 || (better)) {                                                                       \
			s->v = (value);                                                                                \
			s->order = 1;                                                                                  \
		}                                                                                                      \
	}                                                                                                              \
	return

static bool text_is_better(const struct weir_pages *pg, const struct weir_text *t, const void *data, uint32_t bytes,
			   bool max)
{
	if (t->ref == 0)
		return true;
	int c = text_compare(data, bytes, weir_text_data(pg, t), t->bytes);
	return max ? c > 0 : c < 0;
}

static void fold_text_extreme(const struct picked *pk, uint32_t at, const struct weir_col *c, bool max)
{
	EACH(i, pk)
	{
		struct weir_text *t = STATE(weir_text, pk, i, at);
		const struct weir_str *v = &c->str[pk->row[i]];
		if (text_is_better(pk->gen[i]->pages, t, v->data, v->bytes, max))
			weir_text_set(pk->gen[i], t, v->data, v->bytes);
	}
}

static void fold_min(const struct picked *pk, uint32_t at, const struct weir_col *c)
{
	switch (c->phys) {
	case WEIR_PHYS_U8:
		FOLD_EXTREME(agg_word, c->u8[row], c->u8[row] < s->v);
	case WEIR_PHYS_I64:
		FOLD_EXTREME(agg_word, c->i64[row], c->i64[row] < s->v);
	case WEIR_PHYS_F64:
		FOLD_EXTREME(agg_word, real_bits(c->f64[row]), real_less(c->f64[row], real_of(s->v)));
	case WEIR_PHYS_I128:
		FOLD_EXTREME(agg_wide, c->i128[row], c->i128[row] < s->v);
	case WEIR_PHYS_STR:
		fold_text_extreme(pk, at, c, false);
	}
}

static void fold_max(const struct picked *pk, uint32_t at, const struct weir_col *c)
{
	switch (c->phys) {
	case WEIR_PHYS_U8:
		FOLD_EXTREME(agg_word, c->u8[row], c->u8[row] > s->v);
	case WEIR_PHYS_I64:
		FOLD_EXTREME(agg_word, c->i64[row], c->i64[row] > s->v);
	case WEIR_PHYS_F64:
		FOLD_EXTREME(agg_word, real_bits(c->f64[row]), real_less(real_of(s->v), c->f64[row]));
	case WEIR_PHYS_I128:
		FOLD_EXTREME(agg_wide, c->i128[row], c->i128[row] > s->v);
	case WEIR_PHYS_STR:
		fold_text_extreme(pk, at, c, true);
	}
}

/* ---- first, last ---- */

#define FOLD_PICK(type, value)                                                                                         \
	EACH(i, pk)                                                                                                    \
	{                                                                                                              \
		struct type *s = STATE(type, pk, i, at);                                                               \
		uint32_t row = pk->row[i];                                                                             \
		if (last || s->order == 0) {                                                                           \
			s->v = (value);                                                                                \
			s->order = pk->order[i];                                                                       \
		}                                                                                                      \
	}                                                                                                              \
	return

static void fold_pick(const struct picked *pk, uint32_t at, const struct weir_col *c, bool last)
{
	switch (c->phys) {
	case WEIR_PHYS_U8:
		FOLD_PICK(agg_word, c->u8[row]);
	case WEIR_PHYS_I64:
		FOLD_PICK(agg_word, c->i64[row]);
	case WEIR_PHYS_F64:
		FOLD_PICK(agg_word, real_bits(c->f64[row]));
	case WEIR_PHYS_I128:
		FOLD_PICK(agg_wide, c->i128[row]);
	case WEIR_PHYS_STR:
		break;
	}
	EACH(i, pk)
	{
		struct agg_text *s = STATE(agg_text, pk, i, at);
		const struct weir_str *v = &c->str[pk->row[i]];
		if (!last && s->order != 0)
			continue;
		weir_text_set(pk->gen[i], &s->text, v->data, v->bytes);
		s->order = pk->order[i];
	}
}

/* ---- variance ---- */

static double real_value(const struct weir_agg *a, const struct weir_col *c, uint32_t row)
{
	static const double power10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12,
					 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25,
					 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38};
	double v;
	if (c->phys == WEIR_PHYS_F64)
		return c->f64[row];
	v = c->phys == WEIR_PHYS_I64 ? (double)c->i64[row] : (double)c->i128[row];
	return a->arg_type.kind == WEIR_KIND_DECIMAL ? v / power10[a->arg_type.scale] : v;
}

/* Welford: one floating-point division a record, which is the price of a result without cancellation. */
static void fold_var(const struct picked *pk, uint32_t at, const struct weir_agg *a, const struct weir_col *c)
{
	EACH(i, pk)
	{
		struct agg_var *s = STATE(agg_var, pk, i, at);
		double x = real_value(a, c, pk->row[i]), d = x - s->mean;
		s->n++;
		s->mean += d / (double)s->n;
		s->m2 += d * (x - s->mean);
	}
}

/* ---- distinct ---- */

static void distinct_add(struct weir_gen *g, struct agg_distinct *s, const void *data, uint32_t bytes)
{
	bool full = false;
	s->n += weir_set_add(g, &s->ref, data, bytes, &full);
	if (WEIR_UNLIKELY(full))
		s->full = 1;
}

static void fold_distinct(const struct picked *pk, uint32_t at, const struct weir_col *c)
{
	EACH(i, pk)
	{
		struct agg_distinct *s = STATE(agg_distinct, pk, i, at);
		uint32_t row = pk->row[i];
		if (c->phys == WEIR_PHYS_STR) {
			distinct_add(pk->gen[i], s, c->str[row].data, c->str[row].bytes);
		} else if (c->phys == WEIR_PHYS_F64) {
			/* -0.0 is 0.0, and one NaN stands for all, as in keys. */
			double v = c->f64[row] == 0 ? 0 : c->f64[row];
			int64_t bits = isnan(v) ? INT64_C(0x7ff8000000000000) : real_bits(v);
			distinct_add(pk->gen[i], s, &bits, 8);
		} else {
			uint32_t bytes = (uint32_t)weir_phys_bytes(c->phys);
			distinct_add(pk->gen[i], s, (const uint8_t *)c->data + (size_t)row * bytes, bytes);
		}
	}
}

/* ---- all of them ---- */

static void fold_list(const struct picked *pk, uint32_t at, const struct weir_agg *a, const struct weir_col *c)
{
	EACH(i, pk)
	{
		weir_list_add(a, pk->gen[i], STATE(agg_list, pk, i, at), c, pk->row[i]);
	}
}

static void fold_one(const struct weir_agg *a, const struct picked *pk, uint32_t at, const struct weir_col *c)
{
	switch (a->kind) {
	case WEIR_AGG_COUNT_STAR:
	case WEIR_AGG_COUNT:
		fold_count(pk, at);
		break;
	case WEIR_AGG_COUNT_DISTINCT:
		fold_distinct(pk, at, c);
		break;
	case WEIR_AGG_SUM:
		fold_sum(pk, at, c);
		break;
	case WEIR_AGG_AVG:
		fold_avg(pk, at, c);
		break;
	case WEIR_AGG_MIN:
		fold_min(pk, at, c);
		break;
	case WEIR_AGG_MAX:
		fold_max(pk, at, c);
		break;
	case WEIR_AGG_FIRST_VALUE:
	case WEIR_AGG_LAST_VALUE:
		fold_pick(pk, at, c, a->kind == WEIR_AGG_LAST_VALUE);
		break;
	case WEIR_AGG_STDDEV_POP:
	case WEIR_AGG_STDDEV_SAMP:
	case WEIR_AGG_VAR_POP:
	case WEIR_AGG_VAR_SAMP:
		fold_var(pk, at, a, c);
		break;
	case WEIR_AGG_ARRAY_AGG:
		fold_list(pk, at, a, c);
		break;
	}
}

void weir_agg_fold(const struct weir_state_def *def, const struct weir_lanes *ln, uint32_t from, uint32_t count,
		   const struct weir_col *const *cols)
{
	struct picked_store store;
	struct picked pk;
	for (uint32_t i = 0; i < def->agg_count; i++) {
		const struct weir_agg *a = &def->aggs[i];
		const struct weir_col *arg = a->kind == WEIR_AGG_COUNT_STAR ? NULL : cols[a->arg];
		/* Of an array NULLs are elements. */
		pick(&pk, &store, ln, from, count, a->list ? NULL : arg, a->filter >= 0 ? cols[a->filter] : NULL);
		fold_one(a, &pk, def->head_bytes + a->state_at, arg);
	}
}

/* ---- merging ---- */

static void merge_real(struct agg_real *to, const struct agg_real *from)
{
	uint64_t special = (to->n | from->n) & AGG_REAL_SPECIAL;
	uint64_t n = (to->n & ~AGG_REAL_SPECIAL) + (from->n & ~AGG_REAL_SPECIAL);
	if ((from->n & ~AGG_REAL_SPECIAL) == 0)
		return;
	real_add(to, from->sum);
	to->comp += from->comp;
	to->n = n | special;
}

static void merge_var(struct agg_var *to, const struct agg_var *from)
{
	if (from->n == 0)
		return;
	if (to->n == 0) {
		*to = *from;
		return;
	}
	double n = (double)(to->n + from->n), d = from->mean - to->mean;
	to->m2 += from->m2 + d * d * ((double)to->n * (double)from->n / n);
	to->mean += d * ((double)from->n / n);
	to->n += from->n;
}

/* Is from's value to be taken? FIRST: the smaller order, LAST: the larger. */
static bool order_wins(enum weir_agg_kind kind, uint64_t to, uint64_t from)
{
	if (from == 0)
		return false;
	if (to == 0)
		return true;
	return kind == WEIR_AGG_FIRST_VALUE ? from < to : from > to;
}

static void merge_word(const struct weir_agg *a, struct agg_word *to, const struct agg_word *from)
{
	bool take;
	if (from->order == 0)
		return;
	if (to->order == 0)
		take = true;
	else if (a->kind == WEIR_AGG_FIRST_VALUE || a->kind == WEIR_AGG_LAST_VALUE)
		take = order_wins(a->kind, to->order, from->order);
	else if (weir_type_phys(&a->arg_type) == WEIR_PHYS_F64)
		take = a->kind == WEIR_AGG_MIN ? real_less(real_of(from->v), real_of(to->v))
					       : real_less(real_of(to->v), real_of(from->v));
	else
		take = a->kind == WEIR_AGG_MIN ? from->v < to->v : from->v > to->v;
	if (take)
		*to = *from;
}

static void merge_wide(const struct weir_agg *a, struct agg_wide *to, const struct agg_wide *from)
{
	bool take;
	if (from->order == 0)
		return;
	if (to->order == 0)
		take = true;
	else if (a->kind == WEIR_AGG_FIRST_VALUE || a->kind == WEIR_AGG_LAST_VALUE)
		take = order_wins(a->kind, to->order, from->order);
	else
		take = a->kind == WEIR_AGG_MIN ? from->v < to->v : from->v > to->v;
	if (take)
		*to = *from;
}

static void merge_text(const struct weir_agg *a, struct weir_gen *g, uint8_t *to, const struct weir_pages *pg,
		       const uint8_t *from)
{
	if (a->kind == WEIR_AGG_MIN || a->kind == WEIR_AGG_MAX) {
		struct weir_text *t = (struct weir_text *)(void *)to;
		const struct weir_text *f = (const struct weir_text *)(const void *)from;
		if (f->ref != 0 &&
		    text_is_better(g->pages, t, weir_text_data(pg, f), f->bytes, a->kind == WEIR_AGG_MAX))
			weir_text_set(g, t, weir_text_data(pg, f), f->bytes);
		return;
	}
	struct agg_text *t = (struct agg_text *)(void *)to;
	const struct agg_text *f = (const struct agg_text *)(const void *)from;
	if (order_wins(a->kind, t->order, f->order)) {
		weir_text_set(g, &t->text, weir_text_data(pg, &f->text), f->text.bytes);
		t->order = f->order;
	}
}

static void merge_distinct(struct weir_gen *g, struct agg_distinct *to, const struct weir_pages *pg,
			   const struct agg_distinct *from)
{
	const uint8_t *data;
	uint32_t at = 0, bytes;
	to->full |= from->full;
	if (from->ref == 0)
		return;
	const uint8_t *payload = weir_blob_data((const struct weir_entry *)(const void *)weir_ref_get(pg, from->ref));
	while (weir_set_next(payload, &at, &data, &bytes))
		distinct_add(g, to, data, bytes);
}

static void merge_one(const struct weir_agg *a, struct weir_gen *g, void *to, const struct weir_pages *pg,
		      const void *from)
{
	enum weir_phys phys = weir_type_phys(&a->arg_type);
	switch (a->kind) {
	case WEIR_AGG_COUNT_STAR:
	case WEIR_AGG_COUNT:
		((struct agg_count *)to)->n += ((const struct agg_count *)from)->n;
		break;
	case WEIR_AGG_COUNT_DISTINCT:
		merge_distinct(g, to, pg, from);
		break;
	case WEIR_AGG_ARRAY_AGG:
		weir_list_merge(a, g, to, pg, from);
		break;
	case WEIR_AGG_SUM: {
		if (phys == WEIR_PHYS_F64) {
			merge_real(to, from);
			break;
		}
		const struct agg_sum *f = from;
		struct agg_sum *t = to;
		if (f->seen) {
			sum_add(t, f->sum);
			t->over += f->over;
		}
		break;
	}
	case WEIR_AGG_AVG: {
		if (phys == WEIR_PHYS_F64) {
			merge_real(to, from);
			break;
		}
		const struct agg_avg *f = from;
		struct agg_avg *t = to;
		avg_add(t, f->sum, f->n);
		t->over += f->over;
		break;
	}
	case WEIR_AGG_MIN:
	case WEIR_AGG_MAX:
	case WEIR_AGG_FIRST_VALUE:
	case WEIR_AGG_LAST_VALUE:
		if (phys == WEIR_PHYS_STR)
			merge_text(a, g, to, pg, from);
		else if (phys == WEIR_PHYS_I128)
			merge_wide(a, to, from);
		else
			merge_word(a, to, from);
		break;
	default:
		merge_var(to, from);
		break;
	}
}

void weir_agg_merge(const struct weir_state_def *def, struct weir_gen *g, uint8_t *to,
		    const struct weir_pages *from_pages, const uint8_t *from)
{
	for (uint32_t i = 0; i < def->agg_count; i++) {
		const struct weir_agg *a = &def->aggs[i];
		merge_one(a, g, to + def->head_bytes + a->state_at, from_pages, from + def->head_bytes + a->state_at);
	}
}
