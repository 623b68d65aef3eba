/* slot.c: making and unmaking a slot, its list of generations, its change list; and the entry points that lead to the
 * table of its kind. @thread worker. */
#include "hotpath/state/join_index.h"
#include "hotpath/state/over.h"
#include "hotpath/core/mem.h"
#include "hotpath/time/window.h"

#include <stdlib.h>

void *weir_vec_push(struct weir_vec *v, struct weir_blocks *bl, uint32_t element_bytes)
{
	if (v->count == v->capacity) {
		uint32_t to = v->capacity == 0 ? 8 : v->capacity * 2;
		WEIR_ASSERT(to > v->capacity);
		void *data = weir_blocks_take(bl, (size_t)to * element_bytes);
		if (v->data != NULL) {
			memcpy(data, v->data, (size_t)v->count * element_bytes);
			weir_blocks_give(bl, v->data, (size_t)v->capacity * element_bytes);
		}
		v->data = data;
		v->capacity = to;
	}
	return (uint8_t *)v->data + (size_t)v->count++ * element_bytes;
}

void weir_vec_fini(struct weir_vec *v, struct weir_blocks *bl, uint32_t element_bytes)
{
	if (v->data != NULL)
		weir_blocks_give(bl, v->data, (size_t)v->capacity * element_bytes);
	memset(v, 0, sizeof *v);
}

struct weir_slot *weir_slot_create(const struct weir_state_def *def, uint32_t slot, struct weir_arena *ar)
{
	struct weir_slot *sl = weir_xcalloc(1, sizeof *sl);
	sl->def = def;
	sl->number = slot;
	sl->closed_start = WEIR_TIME_UNSET;
	sl->expired_at = WEIR_TIME_UNSET;
	weir_blocks_init(&sl->blocks, ar);
	sl->blocks.plain = def->buffers;
	weir_pages_init(&sl->pages, &sl->blocks);
	if (def->kind == WEIR_STATE_JOIN) {
		for (uint32_t i = 0; i < def->side_count; i++)
			if (def->sides[i].table)
				weir_slot_add_gen(sl, sl->gen_count, i);
		if (def->foreign != 0)
			weir_slot_add_gen(sl, sl->gen_count, 2); /* foreign.c: heads */
	} else if (def->kind == WEIR_STATE_OVER) {
		weir_slot_add_gen(sl, 0, 1);
	} else if (def->kind != WEIR_STATE_WINDOW) {
		weir_slot_add_gen(sl, 0, 0);
	}
	sl->d.meta = false;
	return sl;
}

static void limbo_free(struct weir_slot *sl)
{
	while (sl->limbo != NULL) {
		struct weir_gen *g = sl->limbo;
		sl->limbo = g->next;
		weir_gen_fini(g);
		weir_blocks_give(&sl->blocks, g, sizeof *g);
	}
}

void weir_slot_move(struct weir_slot *sl, struct weir_arena *to)
{
	sl->blocks.ar = to;
}

void weir_slot_destroy(struct weir_slot *sl)
{
	if (sl == NULL)
		return;
	weir_restore_free(sl);
	while (sl->ready != NULL) {
		struct weir_closed *cl = sl->ready;
		sl->ready = cl->next;
		weir_closed_release(sl, cl);
	}
	limbo_free(sl);
	weir_join_index_free(sl);
	for (uint32_t i = 0; i < sl->gen_count; i++) {
		weir_gen_fini(sl->gens[i].g);
		weir_blocks_give(&sl->blocks, sl->gens[i].g, sizeof *sl->gens[i].g);
	}
	struct weir_blocks *bl = &sl->blocks;
	weir_index_fini(&sl->histories, bl); /* they themselves are blocks that go with the others */
	if (sl->gens != NULL)
		weir_blocks_give(bl, sl->gens, sl->gen_capacity * sizeof *sl->gens);
	weir_vec_fini(&sl->closing, bl, sizeof(struct weir_close_node));
	weir_vec_fini(&sl->change, bl, sizeof(struct weir_change));
	struct weir_dirty *d = &sl->d;
	weir_vec_fini(&d->given, bl, sizeof(uint32_t));
	weir_vec_fini(&d->given_imaged, bl, sizeof(struct weir_given_at));
	weir_vec_fini(&d->pending, bl, sizeof(struct weir_pending));
	weir_vec_fini(&d->live_packs, bl, sizeof(struct weir_pack_at));
	weir_vec_fini(&d->logged, bl, sizeof(struct weir_logged));
	weir_numbers_fini(&d->packs, bl);
	if (d->pack_epoch != NULL)
		weir_blocks_give(bl, d->pack_epoch, d->pack_capacity * sizeof *d->pack_epoch);
	weir_pages_fini(&sl->pages);
	weir_blocks_fini(&sl->blocks);
	free(sl);
}

uint64_t weir_slot_entries(const struct weir_slot *sl)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < sl->gen_count; i++)
		n += sl->gens[i].g->entries;
	return n;
}

uint64_t weir_slot_bytes(const struct weir_slot *sl)
{
	return sl->blocks.bytes_used;
}

/* ---- generations ---- */

uint32_t weir_slot_search(const struct weir_slot *sl, int64_t start)
{
	uint32_t low = 0, high = sl->gen_count;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (sl->gens[mid].start < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void forget_reach(struct weir_slot *sl)
{
	for (uint32_t s = 0; s < 2; s++)
		sl->reach[s].from = sl->reach[s].to = 0;
}

struct weir_gen *weir_slot_add_gen(struct weir_slot *sl, uint32_t at, int64_t start)
{
	if (sl->gen_count == sl->gen_capacity) {
		uint32_t to = sl->gen_capacity == 0 ? 4 : sl->gen_capacity * 2;
		struct weir_gen_at *gens = weir_blocks_take(&sl->blocks, to * sizeof *gens);
		if (sl->gens != NULL) {
			memcpy(gens, sl->gens, sl->gen_count * sizeof *gens);
			weir_blocks_give(&sl->blocks, sl->gens, sl->gen_capacity * sizeof *gens);
		}
		sl->gens = gens;
		sl->gen_capacity = to;
	}
	struct weir_gen *g = weir_blocks_take(&sl->blocks, sizeof *g);
	forget_reach(sl);
	/* A quarter of what the last one held: saves most of the growing, and wastes little where windows differ. */
	uint64_t expected = sl->entries_hint / 4;
	uint8_t code = weir_def_meets(sl->def) ? weir_join_index_begin(sl, start) : 0;
	bool own_index = code == 0 && !weir_def_queues(sl->def, start);
	weir_gen_init(g, &sl->pages, sl, start, own_index ? expected : 0);
	if (!own_index && expected > 1024)
		g->page_bytes_next = WEIR_PAGE_BYTES_MAX;
	g->code = code;
	memmove(&sl->gens[at + 1], &sl->gens[at], (sl->gen_count - at) * sizeof *sl->gens);
	sl->gens[at] = (struct weir_gen_at){start, g};
	sl->gen_count++;
	sl->d.meta = true;
	return g;
}

void weir_slot_drop_gen(struct weir_slot *sl, uint32_t at)
{
	struct weir_gen *g = sl->gens[at].g;
	forget_reach(sl);
	memmove(&sl->gens[at], &sl->gens[at + 1], (sl->gen_count - at - 1) * sizeof *sl->gens);
	sl->gen_count--;
	if (sl->current == g)
		sl->current = NULL;
	sl->entries_hint = g->entries;
	sl->d.meta = true;
	if (weir_def_meets(sl->def))
		weir_join_index_end(sl, g->code);
	if (g->changed != 0) {
		/* Rows of it still have to be read by weir_slot_changes. */
		g->closed = true;
		g->dirty_walk = false;
		g->next = sl->limbo;
		sl->limbo = g;
		return;
	}
	weir_gen_fini(g);
	weir_blocks_give(&sl->blocks, g, sizeof *g);
}

void weir_slot_note_given(struct weir_slot *sl, uint32_t no)
{
	*(uint32_t *)weir_vec_push(&sl->d.given, &sl->blocks, sizeof no) = no;
}

void weir_slot_unqueue(struct weir_slot *sl, struct weir_page *p)
{
	struct weir_page *page = sl->pages.page;
	if (p->dirty_since == 0)
		return;
	p->dirty_since = 0;
	if (p->queue_prev != 0)
		page[p->queue_prev].queue_next = p->queue_next;
	else
		sl->d.queue_first = p->queue_next;
	if (p->queue_next != 0)
		page[p->queue_next].queue_prev = p->queue_prev;
	else
		sl->d.queue_last = p->queue_prev;
	p->queue_prev = p->queue_next = 0;
}

/* ---- by kind ---- */

void weir_state_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		      const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out)
{
	out->applied = 0;
	out->late = 0;
	out->late_windows = 0;
	switch (def->kind) {
	case WEIR_STATE_WINDOW:
		weir_window_apply(def, slots, in, rows, count, clock, out);
		break;
	case WEIR_STATE_SESSION:
		weir_session_apply(def, slots, in, rows, count, clock, out);
		break;
	case WEIR_STATE_TABLE:
		if (def->retracts)
			weir_retract_apply(def, slots, in, rows, count, out);
		else
			weir_kv_apply(def, slots, in, rows, count, out);
		break;
	case WEIR_STATE_ROWS:
		weir_rows_apply(def, slots, in, rows, count, out);
		break;
	case WEIR_STATE_JOIN:
		WEIR_ASSERT(false); /* rows are held and merged first: hotpath/run/join.c */
		break;
	case WEIR_STATE_OVER:
		weir_over_apply(def, slots, in, rows, count, clock, out);
		break;
	case WEIR_STATE_SLIDING:
		weir_sliding_apply(def, slots, in, rows, count, clock, out);
	}
}

int64_t weir_slot_next_close(const struct weir_slot *sl)
{
	switch (sl->def->kind) {
	case WEIR_STATE_WINDOW:
		return weir_window_next_close(sl);
	case WEIR_STATE_SESSION:
		return weir_session_next_close(sl);
	case WEIR_STATE_SLIDING:
		return weir_sliding_next_close(sl);
	case WEIR_STATE_JOIN:
	case WEIR_STATE_OVER:
		return weir_join_next_close(sl);
	case WEIR_STATE_TABLE:
	case WEIR_STATE_ROWS:
		break;
	}
	return INT64_MAX;
}

struct weir_closed *weir_slot_close(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max)
{
	switch (sl->def->kind) {
	case WEIR_STATE_WINDOW:
		return weir_window_close(sl, task_time, all, end_max);
	case WEIR_STATE_SESSION:
		return weir_session_close(sl, task_time, all, end_max);
	case WEIR_STATE_SLIDING:
		return weir_sliding_close(sl, task_time, all, end_max);
	case WEIR_STATE_TABLE:
	case WEIR_STATE_ROWS:
	case WEIR_STATE_JOIN:
	case WEIR_STATE_OVER:
		break;
	}
	return NULL;
}

/* ---- changes ---- */

void weir_slot_note_change(struct weir_slot *sl, struct weir_gen *g, struct weir_entry *e)
{
	struct weir_change *c = weir_vec_push(&sl->change, &sl->blocks, sizeof *c);
	*c = (struct weir_change){weir_entry_ref(e), 0};
	e->flags |= WEIR_ENTRY_CHANGED;
	g->changed++;
	sl->pages.page[c->ref >> WEIR_REF_SHIFT].pins++;
}

/* What earlier calls returned has been dealt with: its pins go. */
static void change_release(struct weir_slot *sl)
{
	const struct weir_change *list = sl->change.data;
	while (sl->change_released < sl->change_at) {
		const struct weir_change *c = &list[sl->change_released++];
		if (!c->is_delete && sl->def->kind == WEIR_STATE_SESSION && sl->def->has_blobs)
			weir_session_forget(sl, (struct weir_entry *)(void *)weir_ref_get(&sl->pages, c->ref));
		if (!c->is_delete && sl->def->kind == WEIR_STATE_SLIDING && sl->def->has_blobs)
			weir_sliding_forget(sl, (struct weir_entry *)(void *)weir_ref_get(&sl->pages, c->ref));
		if (sl->def->kind == WEIR_STATE_ROWS || sl->def->retracts)
			weir_rows_forget(sl, (struct weir_entry *)(void *)weir_ref_get(&sl->pages, c->ref));
		weir_page_unpin(&sl->pages, c->ref >> WEIR_REF_SHIFT);
	}
}

/* Writes one change as row n; false if there is nothing to say (the session became part of another, unseen). */
static bool change_put(struct weir_slot *sl, const struct weir_change *c, struct weir_rows *out, uint32_t n,
		       uint64_t *bytes)
{
	const struct weir_state_def *def = sl->def;
	struct weir_entry *e = (struct weir_entry *)(void *)weir_ref_get(&sl->pages, c->ref);
	const struct weir_gen *g = sl->pages.page[c->ref >> WEIR_REF_SHIFT].gen;
	int64_t start = weir_def_start(def, g->start), end = g->start + weir_def_reach(def);
	if (!c->is_delete && (e->flags & WEIR_ENTRY_SWALLOWED) != 0)
		return false;
	bool gone = c->is_delete || (e->flags & WEIR_ENTRY_GONE) != 0;
	if (gone && !c->is_delete && (e->flags & WEIR_ENTRY_EMITTED) == 0 && !sl->in_doubt)
		return false;
	/* A key alone (SELECT DISTINCT) that went and came again. */
	if (def->retracts && def->agg_count == 1 && !gone && (e->flags & WEIR_ENTRY_EMITTED) != 0)
		return false;
	if (def->kind == WEIR_STATE_SESSION) {
		const struct weir_session *s = (const struct weir_session *)(void *)e;
		start = s->start;
		end = s->last + def->gap_ms;
		out->time[n] = s->last;
	} else if (def->kind == WEIR_STATE_SLIDING) {
		const struct weir_session *s = (const struct weir_session *)(void *)e;
		start = s->start;
		end = s->start + def->size_ms;
		out->time[n] = s->last;
	} else {
		out->time[n] = ((const struct weir_stamped *)(void *)e)->time;
	}
	*bytes += weir_rows_put(out, n, def, &sl->pages, e, start, end);
	out->entry[n] = gone ? NULL : e;
	out->op[n] = gone ? WEIR_OP_DELETE : (e->flags & WEIR_ENTRY_EMITTED) != 0 ? WEIR_OP_UPDATE : WEIR_OP_INSERT;
	return true;
}

uint32_t weir_slot_changes(struct weir_slot *sl, struct weir_rows *out)
{
	const struct weir_change *list = sl->change.data;
	weir_rows_reset(out);
	change_release(sl);
	uint64_t bytes = 0;
	while (out->count < WEIR_BATCH_ROWS && bytes < WEIR_ROWS_BYTES && sl->change_at < sl->change.count) {
		enum { AHEAD = 8 };
		if (sl->change_at + AHEAD < sl->change.count) { /* entries lie in the order of their keys' arrival */
			const uint8_t *ahead = weir_ref_get(&sl->pages, list[sl->change_at + AHEAD].ref);
			__builtin_prefetch(ahead, 1, 3);
			__builtin_prefetch(ahead + 64, 1, 3);
		}
		const struct weir_change *c = &list[sl->change_at++];
		struct weir_gen *g = sl->pages.page[c->ref >> WEIR_REF_SHIFT].gen;
		out->count += change_put(sl, c, out, out->count, &bytes);
		if (!c->is_delete)
			((struct weir_entry *)(void *)weir_ref_get(&sl->pages, c->ref))->flags &=
				(uint8_t)~WEIR_ENTRY_CHANGED;
		g->changed--;
	}
	if (out->count == 0) {
		change_release(sl);
		sl->change.count = 0;
		sl->change_at = 0;
		sl->change_released = 0;
		limbo_free(sl);
	}
	return out->count;
}

void weir_slot_set_emitted(struct weir_slot *sl, void *entry, bool emitted)
{
	struct weir_entry *e = entry;
	bool was = (e->flags & WEIR_ENTRY_EMITTED) != 0;
	if (was == emitted)
		return;
	e->flags = (uint8_t)(e->flags ^ WEIR_ENTRY_EMITTED);
	weir_gen_mark(sl->pages.page[weir_entry_page_no(e)].gen, e);
}

bool weir_slot_in_doubt(const struct weir_slot *sl)
{
	return sl->in_doubt;
}

bool weir_slot_may_stand(void *entry)
{
	struct weir_entry *e = entry;
	if (e == NULL || (e->flags & WEIR_ENTRY_TOLD) != 0)
		return false;
	e->flags |= WEIR_ENTRY_TOLD;
	return true;
}

uint64_t weir_slot_dirty_bytes(const struct weir_slot *sl)
{
	uint64_t dirty = 0, entries = weir_slot_entries(sl), index = weir_join_index_bytes(sl) + sl->history_bytes;
	for (uint32_t i = 0; i < sl->gen_count; i++) {
		const struct weir_gen *g = sl->gens[i].g;
		dirty += g->dirty_count + g->appended;
		index += g->ix.slot != NULL ? ((uint64_t)g->ix.mask + 1) * sizeof *g->ix.slot : 0;
	}
	return entries ? dirty * ((weir_slot_bytes(sl) - index) / entries) : 0; /* indexes are not written */
}
