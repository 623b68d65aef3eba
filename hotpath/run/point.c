/* point.c: order points (and barriers) of one worker. @thread worker
 *
 *   per level:  HAND ON   stages of the level, slot by slot: closed windows and changes leave; rows for later stages go
 * out as fragments, then one fragment that says "last" with the slot's stage time TAKE IN   the same slots of all
 * workers, in (stage, slot) order: rows are applied to later stages at the end: barrier (packs, page images, marks),
 * counters, and the bundle goes to snap
 *
 * Windows leave only here, never between order points: lateness is judged per record by task time all the same, so the
 * rows are the same, and later stages see them in one fixed order. Each call does a bounded piece and returns. */
#include "hotpath/run/doubt.h"
#include "hotpath/run/worker_state.h"

#include <stdlib.h>

static void closed_keep(struct weir_bundle *b, uint32_t stage, uint32_t slot, struct weir_closed *cl)
{
	if (b->closed_count == b->closed_capacity) {
		b->closed_capacity = b->closed_capacity ? b->closed_capacity * 2 : 64;
		b->closed = weir_xrealloc(b->closed, b->closed_capacity * sizeof *b->closed);
	}
	b->closed[b->closed_count++] = (struct weir_closed_ref){stage, slot, cl};
}

/* Slots close the same windows one after the other: each is noted once. */
void weir_bundle_note_window(struct weir_bundle *b, uint32_t stage, int64_t end)
{
	for (uint32_t i = b->window_end_count, tries = 0; i-- > 0 && tries < 64; tries++)
		if (b->window_ends[i].stage == stage && b->window_ends[i].end == end)
			return;
	if (b->window_end_count == b->window_end_capacity) {
		b->window_end_capacity = b->window_end_capacity ? b->window_end_capacity * 2 : 64;
		b->window_ends = weir_xrealloc(b->window_ends, b->window_end_capacity * sizeof *b->window_ends);
	}
	b->window_ends[b->window_end_count++] = (struct weir_window_end){stage, end};
}

static void level_begin(struct weir_worker *w, uint32_t level)
{
	struct point_run *pt = &w->st->point;
	const struct weir_plan *pl = w->cf.plan;
	pt->level = level;
	pt->stage = pt->in_stage = 0;
	while (pt->stage < pl->stage_count && pl->stages[pt->stage].level != level)
		pt->stage++;
	pt->in_stage = pt->stage;
	pt->slot = 0;
	pt->in_slot = pt->in_last = 0;
	pt->closed = NULL;
	pt->end_max = WEIR_TIME_UNSET;
	pt->drained = false;
	pt->produced = pt->consumed = false;
	for (uint32_t s = pt->stage; s < pl->stage_count && pl->stages[s].level == level; s++)
		weir_times_refresh(w->times, s);
	for (uint32_t s = pt->stage; s < pl->stage_count && pl->stages[s].level == level; s++)
		if (w->st->joins[s])
			weir_join_merge(w->st->joins[s]);
	weir_worker_count_held(w);
}

/* Runs the stage branches of a filled fragment and sends it to every owner. */
void weir_worker_hand_over(struct weir_worker *w, struct weir_bundle *b, struct weir_fragment *fr)
{
	struct weir_worker_state *st = w->st;
	st->now->entered += (uint64_t)fr->rows.count * fr->branch_count;
	for (uint32_t i = 0; i < fr->branch_count; i++) {
		st->errors.count = 0;
		st->now->filtered += weir_fragment_run(fr, &st->fcf, i, &st->errors);
		weir_worker_count_errors(w, b, w->cf.plan->stages[fr->stage].name, &st->errors, 0);
	}
	weir_worker_send_stage_fragment(w, fr);
}

/* The slot's closed windows, one generation at a time. False: no fragment is free, come again. */
static bool hand_on_closed(struct weir_worker *w, struct weir_bundle *b, bool close_all)
{
	struct weir_worker_state *st = w->st;
	struct point_run *pt = &st->point;
	const struct weir_plan *pl = w->cf.plan;
	const struct weir_plan_stage *ps = &pl->stages[pt->stage];
	struct weir_slot *sl = w->slots[pt->stage][pt->slot];
	int64_t task = weir_times_task(w->times, pt->stage, pt->slot);
	for (;;) {
		if (!pt->closed) {
			int64_t end = WEIR_TIME_UNSET;
			pt->closed = weir_slot_close(sl, task, close_all, &end);
			pt->end_max = weir_max_i64(pt->end_max, end);
			pt->closed_row = 0;
			if (!pt->closed)
				return true;
			if (ps->def.kind == WEIR_STATE_SESSION || ps->def.kind == WEIR_STATE_SLIDING)
				st->now->windows += weir_closed_count(pt->closed);
			else
				weir_bundle_note_window(b, pt->stage, end);
			if (st->has_stage_branch[pt->stage])
				weir_closed_sort(pt->closed);
		}
		while (st->has_stage_branch[pt->stage] && pt->closed_row < weir_closed_count(pt->closed)) {
			struct weir_fragment *fr = weir_worker_take_stage_fragment(w, pt->stage);
			if (!fr)
				return false;
			fr->slot = pt->slot;
			pt->closed_row += weir_closed_read(pt->closed, pt->closed_row, &fr->rows);
			weir_worker_hand_over(w, b, fr);
		}
		bool kept = false;
		for (uint32_t i = 0; i < ps->branch_count; i++) {
			const struct weir_plan_branch *br = &pl->branches[ps->branches[i]];
			if (br->to != WEIR_TO_SINK)
				continue;
			struct weir_chunk *c = weir_bundle_chunk(b);
			c->output = br->target;
			c->stage = pt->stage + 1;
			c->slot = pt->slot;
			c->seq = b->closed_count;
			c->branch = ps->branches[i];
			c->closed = pt->closed;
			kept = true;
		}
		if (kept)
			closed_keep(b, pt->stage, pt->slot, pt->closed);
		else
			weir_closed_release(sl, pt->closed);
		pt->closed = NULL;
	}
}

/* EMIT CHANGES: what changed since the last order point; then closed windows are dropped without a row. */
static bool hand_on_changes(struct weir_worker *w, struct weir_bundle *b, bool close_all)
{
	struct weir_worker_state *st = w->st;
	struct point_run *pt = &st->point;
	struct weir_slot *sl = w->slots[pt->stage][pt->slot];
	const struct weir_state_def *def = &w->cf.plan->stages[pt->stage].def;
	bool can_go = def->kind == WEIR_STATE_ROWS || def->retracts;
	if (st->has_stage_branch[pt->stage]) {
		if (!weir_doubt_hand_on(w, b, pt->stage, pt->slot))
			return false;
		for (;;) {
			struct weir_fragment *fr = weir_worker_take_stage_fragment(w, pt->stage);
			if (!fr)
				return false;
			fr->slot = pt->slot;
			uint32_t n = weir_slot_changes(sl, &fr->rows);
			if (n == 0) {
				fr->rows.count = 0;
				weir_worker_send_stage_fragment(w, fr); /* empty: the simplest way back to the pool */
				break;
			}
			/* What has been handed on can be taken back. */
			for (uint32_t i = 0; i < n && can_go; i++)
				if (fr->rows.entry[i])
					weir_slot_set_emitted(sl, fr->rows.entry[i], true);
			weir_worker_hand_over(w, b, fr);
		}
	} else {
		weir_worker_flush_changes(w, b, pt->stage, pt->slot, b->seq);
	}
	int64_t task = weir_times_task(w->times, pt->stage, pt->slot);
	struct weir_closed *cl;
	while ((cl = weir_slot_close(sl, task, close_all, &pt->end_max)))
		weir_closed_release(sl, cl);
	return true;
}

static bool hand_on_last(struct weir_worker *w, bool bound)
{
	struct point_run *pt = &w->st->point;
	const struct weir_plan_stage *ps = &w->cf.plan->stages[pt->stage];
	if (!w->st->has_stage_branch[pt->stage])
		return true;
	struct weir_fragment *fr = weir_worker_take_stage_fragment(w, pt->stage);
	if (!fr)
		return false;
	bool all_bound;
	int64_t task = weir_times_task(w->times, pt->stage, pt->slot);
	fr->slot = pt->slot;
	fr->last = true;
	fr->out = weir_times_slot_out(w->times, pt->stage, pt->slot, &all_bound) || bound;
	fr->stage_time = task == WEIR_TIME_UNSET ? WEIR_TIME_UNSET : task - ps->hold_ms;
	for (uint32_t i = 0; i < fr->branch_count; i++)
		memset(fr->branches[i].start, 0, (w->cf.count + 1) * sizeof(uint32_t));
	weir_worker_send_stage_fragment(w, fr);
	return true;
}

/* One own slot of the level, or as much of it as fragments allow. True if something moved. */
static bool hand_on(struct weir_worker *w, struct weir_bundle *b, const struct weir_input *in)
{
	struct weir_worker_state *st = w->st;
	struct point_run *pt = &st->point;
	const struct weir_plan *pl = w->cf.plan;
	if (pt->stage >= pl->stage_count || pl->stages[pt->stage].level != pt->level) {
		pt->produced = true;
		return true;
	}
	const struct weir_plan_stage *ps = &pl->stages[pt->stage];
	struct weir_join *jn = st->joins[pt->stage];
	struct weir_over *ov = st->overs[pt->stage];
	if (pt->slot >= ps->slot_count) {
		if (jn)
			weir_join_reset(jn);
		pt->stage++;
		pt->slot = 0;
		return true;
	}
	if (!w->slots[pt->stage][pt->slot] || (in->quiet && ps->def.changes)) {
		pt->slot++;
		return true;
	}
	bool bound = false;
	(void)weir_times_slot_out(w->times, pt->stage, pt->slot, &bound);
	bool close_all = in->close_all || (bound && ps->exchange == WEIR_EXCHANGE_DIRECT);
	if (!pt->drained) {
		pt->drained = jn                ? weir_join_run(jn, b, pt->slot, close_all, &pt->end_max)
			      : ov              ? weir_over_run(ov, b, pt->slot, close_all, &pt->end_max)
			      : ps->def.changes ? hand_on_changes(w, b, close_all)
						: hand_on_closed(w, b, close_all);
		if (!pt->drained)
			return false;
		weir_slot_expire(w->slots[pt->stage][pt->slot], weir_times_task(w->times, pt->stage, pt->slot));
		if (close_all && pt->end_max != WEIR_TIME_UNSET)
			weir_times_raise(w->times, pt->stage, pt->slot, pt->end_max + ps->def.grace_ms);
		pt->end_max = WEIR_TIME_UNSET;
	}
	if (!hand_on_last(w, in->close_all))
		return false;
	pt->drained = false;
	pt->slot++;
	return true;
}

/* One fragment of the slot whose turn it is. True if something moved. */
static bool take_in(struct weir_worker *w, struct weir_bundle *b)
{
	struct weir_worker_state *st = w->st;
	struct point_run *pt = &st->point;
	const struct weir_plan *pl = w->cf.plan;
	while (pt->in_stage < pl->stage_count && pl->stages[pt->in_stage].level == pt->level &&
	       !st->has_stage_branch[pt->in_stage])
		pt->in_stage++;
	if (pt->in_stage >= pl->stage_count || pl->stages[pt->in_stage].level != pt->level) {
		pt->consumed = true;
		return true;
	}
	uint32_t producer = weir_worker_of(w, pt->in_slot)->cf.id;
	struct weir_fragment *fr = weir_ring_pop(&w->from_stage[producer]);
	if (!fr)
		return false;
	WEIR_ASSERT(fr->stage == pt->in_stage && fr->slot == pt->in_slot);
	for (uint32_t i = 0; i < fr->branch_count; i++) {
		const struct weir_fragment_branch *fb = &fr->branches[i];
		struct weir_join *jn = st->joins[pl->branches[fb->branch].target];
		pt->in_number++;
		if (jn && fr->rows.count) {
			weir_join_hold(jn, fr, fb, &fb->keyed, fb->rows + fb->start[w->cf.id],
				       fb->start[w->cf.id + 1] - fb->start[w->cf.id], NULL);
		} else if (fr->rows.count && fb->start[w->cf.id + 1] > fb->start[w->cf.id]) {
			struct weir_clock clock =
				weir_times_clock_up(w->times, pl->branches[fb->branch].target, fb->branch, fr->slot);
			weir_worker_apply_rows(w, b, fr, fb, &fb->keyed, fb->rows + fb->start[w->cf.id],
					       fb->start[w->cf.id + 1] - fb->start[w->cf.id], &clock);
		}
		if (fr->last)
			weir_times_advance_up(w->times, fb->branch, fr->slot, fr->stage_time, fr->out);
	}
	if (fr->last && ++pt->in_slot == pl->stages[pt->in_stage].slot_count) {
		pt->in_slot = 0;
		pt->in_stage++;
	}
	weir_worker_fragment_return(w, fr, producer);
	return true;
}

/* ---- the barrier ---- */

struct delta_ctx {
	struct weir_bundle *b;
	uint32_t stage;
};

static void delta_put(struct delta_ctx *dc, uint32_t slot, int kind, uint32_t number, uint32_t part,
		      const uint8_t *body, uint32_t bytes)
{
	struct weir_bundle *b = dc->b;
	if (b->delta_count == b->delta_capacity) {
		b->delta_capacity = b->delta_capacity ? b->delta_capacity * 2 : 256;
		b->delta = weir_xrealloc(b->delta, b->delta_capacity * sizeof *b->delta);
	}
	struct weir_delta *d = &b->delta[b->delta_count++];
	d->stage = dc->stage;
	d->slot = slot;
	d->kind = kind;
	d->number = number;
	d->part = part;
	d->at = b->deltas.bytes;
	d->bytes = bytes;
	d->tombstone = body == NULL;
	if (body)
		b->deltas.bytes += bytes; /* it was written there: delta_room */
}

static uint8_t *delta_room(void *ctx, uint32_t bytes)
{
	struct weir_buf *deltas = &((struct delta_ctx *)ctx)->b->deltas;
	size_t pad = (8 - deltas->bytes % 8) % 8;
	weir_buf_room(deltas, pad + bytes);
	deltas->bytes += pad;
	return deltas->data + deltas->bytes;
}

static void delta_pack(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes)
{
	delta_put(ctx, slot, WEIR_DELTA_PACK, k, 0, body, bytes);
}

static void delta_page(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes)
{
	delta_put(ctx, slot, WEIR_DELTA_PAGE, page, part, body, bytes);
}

/* dirty: about what has changed. */
static void barrier(struct weir_worker *w, struct weir_bundle *b, uint64_t epoch, uint64_t dirty)
{
	const struct weir_plan *pl = w->cf.plan;
	struct weir_worker_state *st = w->st;
	b->epoch = epoch;
	if (!b->deltas.data && st->spare_deltas_count) {
		b->deltas = st->spare_deltas[--st->spare_deltas_count];
		b->deltas.bytes = 0;
		if (b->deltas.capacity / 4 > dirty + (1 << 20)) /* of an epoch that was far larger */
			weir_buf_fini(&b->deltas);
	}
	/* Packs and as many bytes of images, at once: what grows is copied, and each time its pages are new. */
	if (!b->deltas.data && !w->cf.no_log)
		(void)weir_buf_room(&b->deltas, 2 * dirty + dirty / 4);
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		struct delta_ctx dc = {b, s};
		const struct weir_delta_sink none = {.ctx = &dc};
		const struct weir_delta_sink all = {&dc, delta_pack, delta_page, delta_room};
		const struct weir_delta_sink sink = w->cf.no_log ? none : all;
		for (uint32_t k = 0; k < pl->stages[s].slot_count; k++) {
			if (!w->slots[s][k])
				continue;
			bool changed = weir_slot_barrier(w->slots[s][k], epoch, &sink);
			if (b->mark_count == b->mark_capacity) {
				b->mark_capacity = b->mark_capacity ? b->mark_capacity * 2 : 64;
				b->marks = weir_xrealloc(b->marks, b->mark_capacity * sizeof *b->marks);
			}
			struct weir_slot_mark *m = &b->marks[b->mark_count++];
			m->stage = s;
			m->slot = k;
			m->task_time = weir_times_task(w->times, s, k);
			m->changed = changed;
			bool bound;
			bool out = weir_times_slot_out(w->times, s, k, &bound);
			m->flags = (uint8_t)((out ? WEIR_UPSTREAM_OUT : 0) | (bound ? WEIR_UPSTREAM_BOUND : 0));
			m->at = b->deltas.bytes;
			weir_slot_save(w->slots[s][k], &b->deltas);
			m->bytes = (uint32_t)(b->deltas.bytes - m->at);
		}
	}
}

/* Every member is a count. */
static struct weir_counters counters_sum(const struct weir_counters *a, const struct weir_counters *b)
{
	struct weir_counters sum = *a;
	uint64_t *to = (uint64_t *)&sum;
	_Static_assert(sizeof sum % sizeof *to == 0, "counters are 64-bit words");
	for (size_t i = 0; i < sizeof sum / sizeof *to; i++)
		to[i] += ((const uint64_t *)b)[i];
	return sum;
}

static uint64_t slots_dirty(const struct weir_worker *w)
{
	uint64_t bytes = 0;
	for (uint32_t s = 0; s < w->cf.plan->stage_count; s++)
		for (uint32_t k = 0; k < w->cf.plan->stages[s].slot_count; k++)
			bytes += w->slots[s][k] ? weir_slot_dirty_bytes(w->slots[s][k]) : 0;
	return bytes;
}

static void point_finish(struct weir_worker *w, struct weir_bundle *b, struct weir_input *in)
{
	struct weir_worker_state *st = w->st;
	const struct weir_plan *pl = w->cf.plan;
	b->seq = in->seq;
	uint64_t dirty = slots_dirty(w), before = atomic_load_explicit(&w->dirty_bytes, memory_order_relaxed);
	atomic_store_explicit(&w->dirty_grown, dirty > before ? dirty - before : 0, memory_order_relaxed);
	if (in->barrier) {
		barrier(w, b, in->epoch, dirty);
		dirty = slots_dirty(w);
	}
	atomic_store_explicit(&w->dirty_bytes, dirty, memory_order_relaxed);
	for (uint32_t p = 0; p < pl->partition_count; p++)
		b->part_time[p] = weir_times_part(w->times, p),
		b->part_flags[p] = (uint8_t)weir_times_part_flags(w->times, p);
	b->counters = counters_sum(&st->pending[st->pending_at].decoded, &st->applied_counts);
	b->state_entries = 0;
	for (uint32_t s = 0; s < pl->stage_count; s++)
		for (uint32_t k = 0; k < pl->stages[s].slot_count; k++)
			b->state_entries += w->slots[s][k] ? weir_slot_entries(w->slots[s][k]) : 0;
	b->state_bytes = weir_arena_bytes(w->arena);
	atomic_store_explicit(&w->state_bytes, b->state_bytes, memory_order_relaxed);
	if (b->results.bytes == 0) /* the next order point may have a use for it */
		weir_bundle_spare_results(w, b);
	atomic_fetch_add_explicit(&w->bundle_bytes, weir_bundle_bytes(b), memory_order_relaxed);
	atomic_store_explicit(&w->ready_bytes, weir_bundle_bytes(b), memory_order_relaxed);
	atomic_store_explicit(&w->ready_seq, b->seq, memory_order_relaxed);
	st->last_seen |= in->last;
	if (in->settled)
		weir_doubt_end(w);
	st->next_seq = in->seq + 1;
	st->bundles_out++;
	st->point.active = false;
	st->pending_at = (st->pending_at + 1) % WORKER_PENDING_MAX;
	st->pending_count--;
	weir_worker_count_held(w);
	bool pushed = weir_ring_push(&w->bundle, b);
	WEIR_ASSERT(pushed); /* as large as the pool */
	weir_ring_publish(&w->bundle);
	if (w->snap_park)
		weir_park_wake(w->snap_park);
	weir_worker_input_return(w, in);
}

bool weir_point_step(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	struct point_run *pt = &st->point;
	struct pending *pd = &st->pending[st->pending_at];
	if (!pt->active) {
		pt->active = true;
		pt->in_number = 0;
		if (pd->input->advance_to != WEIR_TIME_UNSET)
			weir_times_advance_all(w->times, pd->input->advance_to);
		if (pd->input->advance_by > 0)
			weir_times_advance_by(w->times, pd->input->advance_by);
		pd->bundle->seq = pd->input->seq;
		level_begin(w, 1);
	}
	bool moved = false;
	/* A bounded piece: about as much work as one batch, so that the other side of the rings is served in between.
	 */
	for (int i = 0; i < 8; i++) {
		bool step = false;
		if (!pt->produced)
			step |= hand_on(w, pd->bundle, pd->input);
		if (!pt->consumed)
			step |= take_in(w, pd->bundle);
		moved |= step;
		if (pt->produced && pt->consumed) {
			if (pt->level >= w->cf.plan->level_count) {
				point_finish(w, pd->bundle, pd->input);
				return true;
			}
			level_begin(w, pt->level + 1);
			step = moved = true;
		}
		if (!step)
			break;
	}
	return moved;
}
