/* over_frame.c: functions over the rows of one key (over_frame.h). @thread any.
 *
 * A frame moves over the rows like a window with two ends: what enters is added, what leaves is taken out again; of MIN
 * and MAX a queue keeps the rows that may still become it. */
#include "hotpath/state/over_frame.h"

#include "hotpath/state/agg_state.h"

bool weir_over_has_aggregate(enum weir_agg_kind kind)
{
	switch (kind) {
	case WEIR_AGG_COUNT_STAR:
	case WEIR_AGG_COUNT:
	case WEIR_AGG_SUM:
	case WEIR_AGG_AVG:
	case WEIR_AGG_MIN:
	case WEIR_AGG_MAX:
	case WEIR_AGG_FIRST_VALUE:
	case WEIR_AGG_LAST_VALUE:
		return true;
	default:
		return false;
	}
}

bool weir_over_sum_is_value(const struct weir_over_fn *fn)
{
	return fn->kind == WEIR_OVER_AGGREGATE && !weir_agg_can_subtract(&fn->agg);
}

void weir_over_value_get(struct weir_over_value *v, const struct weir_col *c, uint32_t row)
{
	*v = (struct weir_over_value){.null = weir_col_is_null(c, row)};
	row = c->is_const ? 0 : row;
	switch (c->phys) {
	case WEIR_PHYS_U8:
		v->i64 = c->u8[row];
		break;
	case WEIR_PHYS_I64:
		v->i64 = c->i64[row];
		break;
	case WEIR_PHYS_F64:
		v->f64 = c->f64[row];
		break;
	case WEIR_PHYS_I128:
		v->i128 = c->i128[row];
		break;
	case WEIR_PHYS_STR:
		v->str = c->str[row];
		break;
	}
}

void weir_over_value_put(const struct weir_over_value *v, struct weir_col *c, uint32_t row)
{
	if (v->null)
		weir_col_set_null(c, row);
	switch (c->phys) {
	case WEIR_PHYS_U8:
		c->u8[row] = v->null ? 0 : (uint8_t)v->i64;
		break;
	case WEIR_PHYS_I64:
		c->i64[row] = v->null ? 0 : v->i64;
		break;
	case WEIR_PHYS_F64:
		c->f64[row] = v->null ? 0 : v->f64;
		break;
	case WEIR_PHYS_I128:
		c->i128[row] = v->null ? 0 : v->i128;
		break;
	case WEIR_PHYS_STR:
		c->str[row] = v->null ? (struct weir_str){NULL, 0, 0} : v->str;
		break;
	}
}

void weir_over_frames_init(struct weir_over_frames *of)
{
	memset(of, 0, sizeof *of);
	for (int i = 0; i < 5; i++)
		weir_col_init(&of->cell[i], (enum weir_phys)i);
}

void weir_over_frames_fini(struct weir_over_frames *of)
{
	for (int i = 0; i < 5; i++)
		weir_col_fini(&of->cell[i]);
	weir_buf_fini(&of->queue);
}

/* a before b in the order of their type. */
static bool is_less(enum weir_phys phys, const struct weir_over_value *a, const struct weir_over_value *b)
{
	switch (phys) {
	case WEIR_PHYS_F64:
		return a->f64 < b->f64;
	case WEIR_PHYS_I128:
		return a->i128 < b->i128;
	case WEIR_PHYS_STR: {
		uint32_t n = a->str.bytes < b->str.bytes ? a->str.bytes : b->str.bytes;
		int c = n != 0 ? memcmp(a->str.data, b->str.data, n) : 0;
		return c != 0 ? c < 0 : a->str.bytes < b->str.bytes;
	}
	default:
		return a->i64 < b->i64;
	}
}

/* A frame on its way over the rows. */
struct moving {
	struct weir_over_frames *of;
	const struct weir_over_fn *fn;
	const struct weir_over_rows *r;
	struct weir_over_sum *sum;
	enum weir_phys phys;
	uint32_t low, high;   /* rows [low, high) are in */
	uint32_t queue_first; /* MIN, MAX: elements before have left */
	uint32_t found;       /* FIRST_VALUE: no value before; LAST_VALUE: 1 + the last row with one */
};

static void enter_number(const struct moving *mv, uint32_t row, bool minus)
{
	const struct weir_agg *a = &mv->fn->agg;
	struct weir_col *c = NULL;
	if (mv->r->arg != NULL) {
		if (mv->r->arg[row].null)
			return;
		if (a->kind != WEIR_AGG_COUNT) {
			c = &mv->of->cell[mv->phys];
			weir_col_clear_nulls(c);
			weir_over_value_put(&mv->r->arg[row], c, 0);
		}
	}
	weir_agg_step(a, mv->sum->state, c, 0, minus);
}

/* Rows that are no better than row, and older, are never asked for again. */
static void enter_best(struct moving *mv, uint32_t row)
{
	const struct weir_over_value *v = &mv->r->arg[row];
	bool min = mv->fn->agg.kind == WEIR_AGG_MIN;
	struct weir_buf *q = &mv->of->queue;
	if (v->null)
		return;
	while (q->bytes / sizeof row > mv->queue_first) {
		const uint32_t *list = (const uint32_t *)(const void *)q->data;
		const struct weir_over_value *last = &mv->r->arg[list[q->bytes / sizeof row - 1]];
		bool stays = min ? is_less(mv->phys, last, v) : is_less(mv->phys, v, last);
		if (stays)
			break;
		q->bytes -= sizeof row;
	}
	weir_buf_put(q, &row, sizeof row);
}

/* Without a lower bound one value says it all. */
static void enter_value(const struct moving *mv, uint32_t row)
{
	const struct weir_over_value *v = &mv->r->arg[row];
	struct weir_over_value *have = &mv->sum->v;
	if (v->null)
		return;
	switch (mv->fn->agg.kind) {
	case WEIR_AGG_MIN:
		if (have->null || is_less(mv->phys, v, have))
			*have = *v;
		break;
	case WEIR_AGG_MAX:
		if (have->null || is_less(mv->phys, have, v))
			*have = *v;
		break;
	case WEIR_AGG_FIRST_VALUE:
		if (have->null)
			*have = *v;
		break;
	default:
		*have = *v;
		break;
	}
}

static void enter(struct moving *mv, uint32_t row)
{
	enum weir_agg_kind kind = mv->fn->agg.kind;
	if (!weir_over_sum_is_value(mv->fn))
		enter_number(mv, row, false);
	else if (mv->fn->preceding < 0)
		enter_value(mv, row);
	else if (kind == WEIR_AGG_MIN || kind == WEIR_AGG_MAX)
		enter_best(mv, row);
	else if (kind == WEIR_AGG_LAST_VALUE && !mv->r->arg[row].null)
		mv->found = row + 1;
}

static void leave(struct moving *mv, uint32_t row)
{
	const struct weir_buf *q = &mv->of->queue;
	enum weir_agg_kind kind = mv->fn->agg.kind;
	if (!weir_over_sum_is_value(mv->fn)) {
		enter_number(mv, row, true);
	} else if (kind == WEIR_AGG_MIN || kind == WEIR_AGG_MAX) {
		const uint32_t *list = (const uint32_t *)(const void *)q->data;
		if (q->bytes / sizeof row > mv->queue_first && list[mv->queue_first] == row)
			mv->queue_first++;
	}
}

static void result(struct moving *mv, struct weir_over_value *out)
{
	const struct weir_over_fn *fn = mv->fn;
	*out = (struct weir_over_value){.null = true};
	if (!weir_over_sum_is_value(fn)) {
		struct weir_col *c = &mv->of->cell[weir_type_phys(&fn->agg.result_type)];
		weir_col_clear_nulls(c);
		mv->of->errors += !weir_agg_final(&fn->agg, (const uint8_t *)mv->sum->state, NULL, c, 0);
		weir_over_value_get(out, c, 0);
		return;
	}
	if (fn->preceding < 0) {
		*out = mv->sum->v;
		return;
	}
	switch (fn->agg.kind) {
	case WEIR_AGG_FIRST_VALUE:
		mv->found = mv->found < mv->low ? mv->low : mv->found;
		while (mv->found < mv->high && mv->r->arg[mv->found].null)
			mv->found++;
		if (mv->found < mv->high)
			*out = mv->r->arg[mv->found];
		break;
	case WEIR_AGG_LAST_VALUE:
		if (mv->found > mv->low)
			*out = mv->r->arg[mv->found - 1];
		break;
	default: {
		const uint32_t *list = (const uint32_t *)(const void *)mv->of->queue.data;
		if (mv->of->queue.bytes / sizeof *list > mv->queue_first)
			*out = mv->r->arg[list[mv->queue_first]];
		break;
	}
	}
}

static uint32_t frame_begin(const struct weir_over_fn *fn, const struct weir_over_rows *r, uint32_t row, uint32_t from)
{
	if (fn->preceding < 0)
		return from;
	if (fn->rows)
		return (int64_t)row > fn->preceding ? row - (uint32_t)fn->preceding : 0;
	while (r->time[from] < r->time[row] - fn->preceding)
		from++;
	return from;
}

static uint32_t frame_end(const struct weir_over_fn *fn, const struct weir_over_rows *r, uint32_t row)
{
	uint32_t end = row + 1;
	while (!fn->rows && end < r->count && r->time[end] == r->time[row])
		end++;
	return end;
}

static void compute_lag(const struct weir_over_fn *fn, const struct weir_over_rows *r, struct weir_over_value *out)
{
	for (uint32_t i = r->first; i < r->count; i++, out++) {
		if (i >= fn->offset)
			*out = r->arg[i - fn->offset];
		else if (r->fallback != NULL)
			*out = r->fallback[i];
		else
			*out = (struct weir_over_value){.null = true};
	}
}

void weir_over_compute(struct weir_over_frames *of, const struct weir_over_fn *fn, const struct weir_over_rows *r,
		       struct weir_over_sum *sum, struct weir_over_value *out)
{
	if (fn->kind == WEIR_OVER_LAG) {
		compute_lag(fn, r, out);
		return;
	}
	struct weir_over_sum own = {.v = {.null = true}};
	struct moving mv = {.of = of, .fn = fn, .r = r, .phys = weir_type_phys(&fn->agg.arg_type)};
	mv.sum = fn->preceding < 0 ? sum : &own;
	mv.low = mv.high = fn->preceding < 0 ? r->first : frame_begin(fn, r, r->first, 0);
	mv.found = fn->agg.kind == WEIR_AGG_LAST_VALUE ? 0 : mv.low;
	of->queue.bytes = 0;
	for (uint32_t i = r->first; i < r->count; i++) {
		uint32_t end = mv.high > i ? mv.high : frame_end(fn, r, i), begin = frame_begin(fn, r, i, mv.low);
		while (mv.high < end)
			enter(&mv, mv.high++);
		while (mv.low < begin)
			leave(&mv, mv.low++);
		result(&mv, out++);
	}
}
