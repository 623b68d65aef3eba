/* retract.c: an unwindowed GROUP BY over a table: what a row was is subtracted, what it is now is added, and a group
 * whose last member leaves is deleted. The last aggregate counts the members. @thread worker.
 *
 * COUNT, SUM and AVG are taken back by arithmetic (`seen` of a sum counts its values here); of the others the group's
 * values are kept (list.h). */
#include <math.h>

#include "hotpath/core/hash.h"
#include "hotpath/state/list.h"
#include "hotpath/state/slot.h"

bool weir_agg_can_subtract(const struct weir_agg *a)
{
	return a->kind == WEIR_AGG_COUNT_STAR || a->kind == WEIR_AGG_COUNT || a->kind == WEIR_AGG_SUM ||
	       a->kind == WEIR_AGG_AVG;
}

bool weir_agg_can_retract(const struct weir_agg *a)
{
	return weir_agg_can_subtract(a) || weir_agg_keeps_list(a);
}

bool weir_agg_keeps_list(const struct weir_agg *a)
{
	switch (a->kind) {
	case WEIR_AGG_ARRAY_AGG:
	case WEIR_AGG_MIN:
	case WEIR_AGG_MAX:
	case WEIR_AGG_FIRST_VALUE:
	case WEIR_AGG_LAST_VALUE:
	case WEIR_AGG_COUNT_DISTINCT:
		return true;
	default:
		return false;
	}
}

/* sum + over * 2^128, with v added or subtracted. Returns what over gains. */
static int add_wide(weir_i128_at8 *sum, weir_i128 v, bool minus)
{
	weir_i128 out;
	bool over = minus ? __builtin_sub_overflow((weir_i128)*sum, v, &out)
			  : __builtin_add_overflow((weir_i128)*sum, v, &out);
	*sum = out;
	return !over ? 0 : (v < 0) == minus ? 1 : -1;
}

static void add_real(struct agg_real *s, double x)
{
	double t = s->sum + x;
	if (!isfinite(t)) {
		if (!isfinite(x))
			s->n |= AGG_REAL_SPECIAL;
	} else if (fabs(s->sum) >= fabs(x)) {
		s->comp += (s->sum - t) + x;
	} else {
		s->comp += (x - t) + s->sum;
	}
	s->sum = t;
}

void weir_agg_step(const struct weir_agg *a, void *state, const struct weir_col *c, uint32_t row, bool minus)
{
	uint64_t one = minus ? UINT64_MAX : 1;
	if (a->kind == WEIR_AGG_COUNT_STAR || a->kind == WEIR_AGG_COUNT) {
		((struct agg_count *)state)->n += one;
		return;
	}
	row = c->is_const ? 0 : row;
	if (c->phys == WEIR_PHYS_F64) {
		struct agg_real *s = state;
		add_real(s, minus ? -c->f64[row] : c->f64[row]);
		s->n += one;
		/* Without a value it is as if there never had been one. */
		if ((s->n & ~AGG_REAL_SPECIAL) == 0)
			*s = (struct agg_real){0};
		return;
	}
	weir_i128 v = c->phys == WEIR_PHYS_I64 ? c->i64[row] : c->i128[row];
	if (a->kind == WEIR_AGG_SUM) {
		struct agg_sum *s = state;
		s->over += add_wide(&s->sum, v, minus);
		s->seen += (uint32_t)one;
	} else {
		struct agg_avg *s = state;
		s->over += add_wide(&s->sum, v, minus);
		s->n += one;
	}
}

static bool takes_part(const struct weir_agg *a, const struct weir_col *const *cols, uint32_t row)
{
	if (a->filter >= 0) {
		const struct weir_col *f = cols[a->filter];
		if (weir_col_is_null(f, row) || f->u8[f->is_const ? 0 : row] == 0)
			return false;
	}
	return a->arg < 0 || a->kind == WEIR_AGG_ARRAY_AGG || !weir_col_is_null(cols[a->arg], row);
}

static void apply_one(const struct weir_agg *a, struct weir_gen *g, uint8_t *state, const struct weir_col *const *cols,
		      uint32_t row, bool minus)
{
	const struct weir_col *c = a->arg < 0 ? NULL : cols[a->arg];
	if (!a->list)
		weir_agg_step(a, state, c, row, minus);
	else if (minus)
		weir_list_remove(a, g, (struct agg_list *)(void *)state, c, row);
	else
		weir_list_add(a, g, (struct agg_list *)(void *)state, c, row);
}

void weir_retract_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
			const uint16_t *rows, uint32_t count, struct weir_applied *out)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = rows[i];
		struct weir_slot *sl = slots[in->slot[row]];
		struct weir_gen *g = weir_slot_only_gen(sl);
		bool minus = in->deletes != NULL && in->deletes[row] != 0;
		uint64_t before = g->entries;
		struct weir_entry *e = weir_gen_find_or_create(g, def, in->hash[row], in->key[row], in->key_bytes[row]);
		struct weir_stamped *st = (struct weir_stamped *)(void *)e;
		uint8_t *states = (uint8_t *)e + def->head_bytes;
		const struct agg_count *members =
			(const struct agg_count *)(void *)(states + def->aggs[def->agg_count - 1].state_at);
		bool stood = members->n != 0;
		for (uint32_t a = 0; a < def->agg_count; a++)
			if (takes_part(&def->aggs[a], in->cols, row))
				apply_one(&def->aggs[a], g, states + def->aggs[a].state_at, in->cols, row, minus);
		e->flags = members->n == 0 ? e->flags | WEIR_ENTRY_GONE : e->flags & (uint8_t)~WEIR_ENTRY_GONE;
		st->time = g->entries != before ? in->time[row] : weir_max_i64(st->time, in->time[row]);
		sl->records++;
		weir_gen_mark(g, e);
		/* Without an aggregate (SELECT DISTINCT) the row is there or not. */
		bool same = def->agg_count == 1 && stood && members->n != 0;
		if ((e->flags & WEIR_ENTRY_CHANGED) == 0 && !same)
			weir_slot_note_change(sl, g, e);
	}
	out->applied = count;
}
