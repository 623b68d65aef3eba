/* over.c: rows of functions OVER from a slot to tails and later stages (over.h). @thread worker */
#include "hotpath/run/over.h"

#include <stdlib.h>

#include "hotpath/expr/json_text.h"
#include "hotpath/run/worker_state.h"
#include "hotpath/state/over.h"
#include "hotpath/state/row.h"

struct weir_over {
	struct weir_worker *w;
	uint32_t stage;
	const struct weir_plan_stage *ps;
	struct weir_over_work *work;
	struct weir_rows own; /* where no stage follows */
	/* a slot at hand */
	bool running;
	uint32_t at, count;
	uint32_t element_at;   /* UNNEST: how far the row's array has been walked, */
	int64_t element;       /* and how many elements that were */
	struct weir_rows *out; /* rows of fr, or own; NULL: none yet */
	struct weir_fragment *fr;
	uint64_t out_bytes;
};

struct weir_over *weir_over_create(struct weir_worker *w, uint32_t stage)
{
	struct weir_over *ov = weir_xcalloc(1, sizeof *ov);
	ov->w = w;
	ov->stage = stage;
	ov->ps = &w->cf.plan->stages[stage];
	ov->work = weir_over_work_create(&ov->ps->def);
	weir_rows_init(&ov->own, &ov->ps->def);
	return ov;
}

void weir_over_destroy(struct weir_over *ov)
{
	if (!ov)
		return;
	weir_over_work_destroy(ov->work);
	weir_rows_fini(&ov->own);
	free(ov);
}

/* Hands the rows written so far on. */
static void flush(struct weir_over *ov, struct weir_bundle *b, uint32_t slot)
{
	struct weir_worker *w = ov->w;
	struct weir_rows *r = ov->out;
	if (!r || r->count == 0)
		return;
	weir_worker_put_rows(w, b, ov->stage, slot, b->seq, r, false);
	if (ov->fr) {
		struct weir_fragment *fr = ov->fr;
		ov->fr = NULL;
		ov->out = NULL;
		weir_worker_hand_over(w, b, fr);
	} else {
		weir_rows_reset(r);
	}
	ov->out_bytes = 0;
}

/* Room for one more row. False: no fragment is free. */
static bool room(struct weir_over *ov, struct weir_bundle *b, uint32_t slot)
{
	if (ov->out && (ov->out->count == WEIR_BATCH_ROWS || ov->out_bytes >= WEIR_ROWS_BYTES))
		flush(ov, b, slot);
	if (ov->out)
		return true;
	if (!ov->w->st->has_stage_branch[ov->stage]) {
		ov->out = &ov->own;
	} else {
		ov->fr = weir_worker_take_stage_fragment(ov->w, ov->stage);
		if (!ov->fr)
			return false;
		ov->fr->slot = slot;
		ov->out = &ov->fr->rows;
	}
	weir_rows_reset(ov->out);
	ov->out_bytes = 0;
	return true;
}

/* Row i of those that leave. Its strings are copied: those of fragments go to other threads, and the rows' own until
 * the slot has dropped them are few. */
static void put(struct weir_over *ov, const struct weir_slot *sl, uint32_t i)
{
	const struct weir_state_def *def = &ov->ps->def;
	struct weir_rows *to = ov->out;
	struct weir_join_row row;
	const uint8_t *results;
	uint32_t result_bytes, n = to->count++, at = def->key_count;
	weir_over_get(sl, ov->work, i, &row, &results, &result_bytes);
	weir_key_decode(row.key, row.key_bytes, def->key_types, def->key_count, to->cols, n, &to->scratch);
	for (uint32_t k = 0; k < def->key_count; k++) {
		struct weir_col *c = &to->cols[k];
		if (c->phys != WEIR_PHYS_STR || weir_col_is_null(c, n))
			continue;
		uint8_t *own = weir_scratch_take(&to->scratch, c->str[n].bytes);
		if (c->str[n].bytes)
			memcpy(own, c->str[n].data, c->str[n].bytes);
		c->str[n].data = own;
		ov->out_bytes += c->str[n].bytes;
	}
	ov->out_bytes +=
		weir_row_unpack(row.row, row.row_bytes, to->cols + at, def->sides[0].col_count, n, &to->scratch);
	at += def->sides[0].col_count;
	ov->out_bytes +=
		weir_row_unpack(results, result_bytes, to->cols + at, def->sides[1].col_count, n, &to->scratch);
	to->time[n] = row.time;
	to->op[n] = WEIR_OP_INSERT;
	to->entry[n] = NULL;
}

/* ---- UNNEST ---- */

static void clear_null(struct weir_col *c, uint32_t row)
{
	if (c->has_null)
		c->nulls[row / 64] &= ~(UINT64_C(1) << (row % 64));
}

/* Row i with the next element of its array: an ARRAY of it, and its number. False: the array has no more. */
static bool put_element(struct weir_over *ov, const struct weir_slot *sl, uint32_t i)
{
	const struct weir_state_def *def = &ov->ps->def;
	struct weir_rows *to = ov->out;
	uint32_t n = to->count, side = def->key_count + def->sides[0].col_count;
	struct weir_json_text_slice all, one;
	put(ov, sl, i);
	const struct weir_col *array = &to->cols[def->key_count + def->over->array];
	struct weir_col *element = &to->cols[side], *number = &to->cols[side + 1];
	const struct weir_str *s = &array->str[n];
	bool found = !weir_col_is_null(array, n) && weir_json_text_take(s->data, s->bytes, &all, NULL) &&
		     all.form == WEIR_JSON_TEXT_ARRAY && weir_json_text_next(&all, &ov->element_at, &one);
	if (found) {
		uint8_t *text = weir_scratch_take(&to->scratch, (size_t)one.bytes + 2);
		text[0] = '[';
		memcpy(text + 1, one.data, one.bytes);
		text[one.bytes + 1] = ']';
		element->str[n] = (struct weir_str){text, one.bytes + 2, 0};
		number->i64[n] = ++ov->element;
		clear_null(element, n);
		clear_null(number, n);
		return true;
	}
	if (ov->element == 0 && def->over->outer) {
		weir_row_set_null(element, 2, n);
		ov->element = 1;
		ov->element_at = UINT32_MAX; /* the next look is the last */
		return true;
	}
	to->count--;
	for (uint32_t c = 0; c < to->col_count; c++)
		clear_null(&to->cols[c], n);
	return false;
}

/* The rest of the rows' elements. False: no fragment is free. */
static bool run_unnest(struct weir_over *ov, struct weir_bundle *b, const struct weir_slot *sl)
{
	while (ov->at < ov->count) {
		if (!room(ov, b, sl->number))
			return false;
		if (ov->element_at != UINT32_MAX && put_element(ov, sl, ov->at))
			continue;
		ov->at++;
		ov->element_at = 0;
		ov->element = 0;
	}
	return true;
}

bool weir_over_run(struct weir_over *ov, struct weir_bundle *b, uint32_t slot, bool close_all, int64_t *end_max)
{
	struct weir_slot *sl = ov->w->slots[ov->stage][slot];
	int64_t task = weir_times_task(ov->w->times, ov->stage, slot);
	if (!ov->running) {
		ov->running = true;
		ov->at = 0;
		ov->element_at = 0;
		ov->element = 0;
		ov->count = weir_over_take(sl, task, close_all, ov->work);
		ov->w->st->now->agg_errors += weir_over_errors(ov->work);
		if (ov->count && close_all && !ov->ps->def.over->unnest) {
			struct weir_join_row row;
			const uint8_t *results;
			uint32_t bytes;
			weir_over_get(sl, ov->work, ov->count - 1, &row, &results, &bytes);
			*end_max = weir_max_i64(*end_max, row.time + 1);
		}
	}
	if (ov->ps->def.over->unnest && !run_unnest(ov, b, sl))
		return false;
	while (ov->at < ov->count) {
		if (!room(ov, b, slot))
			return false;
		put(ov, sl, ov->at++);
	}
	flush(ov, b, slot);
	if (ov->fr) { /* taken for a row that was not written: empty, it finds its way back to the pool */
		struct weir_fragment *fr = ov->fr;
		ov->fr = NULL;
		fr->rows.count = 0;
		weir_worker_send_stage_fragment(ov->w, fr);
	}
	ov->out = NULL;
	/* Of UNNEST numbers stand for times, and all have left. */
	weir_join_drop(sl, ov->ps->def.over->unnest ? INT64_MAX : task);
	ov->running = false;
	return true;
}
