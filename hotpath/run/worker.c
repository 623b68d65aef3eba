/* worker.c: stage 0 and the folding of fragments into slots (worker.h); order points are in point.c. @thread worker */
#include "hotpath/run/doubt.h"
#include "hotpath/run/exchange.h"
#include "hotpath/run/worker_state.h"

#include <stdio.h>
#include <stdlib.h>

static void pool_put(struct fragment_pool *fp, struct weir_fragment *fr)
{
	fp->free[fp->free_count++] = fr;
}

static struct weir_fragment *pool_take(struct fragment_pool *fp)
{
	return fp->free_count ? fp->free[--fp->free_count] : NULL;
}

static enum weir_err pool_fill(struct fragment_pool *fp, struct weir_worker *w, bool scan, uint32_t index,
			       uint32_t count, struct weir_diag **dg)
{
	fp->free = weir_xcalloc(count, sizeof *fp->free);
	fp->all = weir_xcalloc(count, sizeof *fp->all);
	for (uint32_t i = 0; i < count; i++) {
		enum weir_err err = scan ? weir_fragment_create_scan(&fp->all[i], &w->st->fcf, index, dg)
					 : weir_fragment_create_stage(&fp->all[i], &w->st->fcf, index, dg);
		if (err != WEIR_OK)
			return err;
		fp->all_count++;
		pool_put(fp, fp->all[i]);
	}
	return WEIR_OK;
}

static void pool_free(struct fragment_pool *fp)
{
	for (uint32_t i = 0; i < fp->all_count; i++)
		weir_fragment_destroy(fp->all[i]);
	free(fp->free);
	free(fp->all);
}

static void rings_init(struct weir_worker *w, uint32_t fragments)
{
	const struct weir_plan *pl = w->cf.plan;
	weir_ring_init(&w->input, w->cf.input_capacity);
	weir_ring_init(&w->input_back, w->cf.input_capacity);
	weir_ring_init(&w->bundle, w->cf.bundles);
	weir_ring_init(&w->bundle_back, w->cf.bundles);
	w->from = weir_xcalloc(w->cf.count, sizeof *w->from);
	w->from_stage = weir_xcalloc(w->cf.count, sizeof *w->from_stage);
	w->back = weir_xcalloc(w->cf.count, sizeof *w->back);
	uint32_t scans = fragments * (pl->scan_count ? pl->scan_count : 1);
	uint32_t stages = fragments * (pl->stage_count ? pl->stage_count : 1);
	for (uint32_t i = 0; i < w->cf.count; i++) {
		weir_ring_init(&w->from[i], scans);
		weir_ring_init(&w->from_stage[i], stages);
		weir_ring_init(&w->back[i], scans + stages);
	}
}

static enum weir_err state_fill(struct weir_worker *w, struct weir_diag **dg)
{
	struct weir_worker_state *st = w->st;
	const struct weir_plan *pl = w->cf.plan;
	enum weir_err err = WEIR_OK;
	st->scan_pool = weir_xcalloc(pl->scan_count + 1, sizeof *st->scan_pool);
	st->stage_pool = weir_xcalloc(pl->stage_count + 1, sizeof *st->stage_pool);
	st->tails = weir_xcalloc(pl->branch_count + 1, sizeof *st->tails);
	st->has_stage_branch = weir_xcalloc(pl->stage_count + 1, sizeof *st->has_stage_branch);
	st->stage_branches = weir_xcalloc(pl->stage_count + 1, sizeof *st->stage_branches);
	for (uint32_t b = 0; b < pl->branch_count && err == WEIR_OK; b++) {
		const struct weir_plan_branch *br = &pl->branches[b];
		if (br->to == WEIR_TO_STAGE && br->from == WEIR_FROM_STAGE) {
			st->has_stage_branch[br->origin] = true;
			st->stage_branches[br->origin]++;
		}
		/* Closed windows are encoded by snap; everything else here. */
		if (br->to == WEIR_TO_SINK &&
		    (br->from == WEIR_FROM_SCAN || weir_plan_stage_streams(&pl->stages[br->origin])))
			err = weir_tail_create(&st->tails[b], pl, b, &w->cf.outputs[br->target], dg);
	}
	st->joins = weir_xcalloc(pl->stage_count + 1, sizeof(struct weir_join *));
	for (uint32_t s = 0; s < pl->stage_count && err == WEIR_OK; s++)
		if (pl->stages[s].def.kind == WEIR_STATE_JOIN)
			err = weir_join_create(&st->joins[s], w, s, dg);
	st->overs = weir_xcalloc(pl->stage_count + 1, sizeof(struct weir_over *));
	for (uint32_t s = 0; s < pl->stage_count && err == WEIR_OK; s++)
		if (pl->stages[s].def.kind == WEIR_STATE_OVER)
			st->overs[s] = weir_over_create(w, s);
	for (uint32_t s = 0; s < pl->scan_count && err == WEIR_OK; s++)
		err = pool_fill(&st->scan_pool[s], w, true, s, st->inline_apply ? 1 : w->cf.fragments, dg);
	uint32_t most = 0;
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		uint32_t columns = weir_state_columns(&pl->stages[s].def);
		most = columns > most ? columns : most;
	}
	st->send_cols = weir_xcalloc(most + 1, sizeof *st->send_cols);
	static const struct weir_format_options as_json = {.kind = WEIR_FORMAT_JSON};
	st->exchange_encoder = weir_xcalloc(pl->scan_count + 1, sizeof *st->exchange_encoder);
	for (uint32_t s = 0; s < pl->scan_count && err == WEIR_OK; s++)
		if (pl->scans[s].repartition >= 0)
			err = weir_encoder_create(&st->exchange_encoder[s], &as_json, pl->scans[s].value_fields,
						  pl->scans[s].value_count, dg);
	st->late_encoder = weir_xcalloc(pl->stage_count + 1, sizeof *st->late_encoder);
	st->late_fields = weir_xcalloc(pl->stage_count + 1, sizeof *st->late_fields);
	for (uint32_t s = 0; s < pl->stage_count && err == WEIR_OK; s++) {
		const struct weir_plan_stage *ps = &pl->stages[s];
		if (!st->has_stage_branch[s])
			continue;
		st->late_fields[s] = weir_xcalloc(ps->column_count + 1, sizeof **st->late_fields);
		for (uint32_t c = 0; c < ps->column_count; c++) {
			st->late_fields[s][c].name = ps->column_names[c];
			st->late_fields[s][c].type = ps->column_types[c];
		}
		err = weir_encoder_create(&st->late_encoder[s], &as_json, st->late_fields[s], ps->column_count, dg);
	}
	for (uint32_t s = 0; s < pl->stage_count && err == WEIR_OK; s++)
		if (st->has_stage_branch[s])
			err = pool_fill(&st->stage_pool[s], w, false, s, w->cf.fragments, dg);
	return err;
}

enum weir_err weir_worker_create(struct weir_worker **out, const struct weir_worker_conf *cf, struct weir_diag **dg)
{
	const struct weir_plan *pl = cf->plan;
	struct weir_worker *w = aligned_alloc(WEIR_CACHE_LINE, weir_align_up(sizeof *w, WEIR_CACHE_LINE));
	if (!w)
		return weir_diag_set(dg, WEIR_E_NOMEM, "no memory for a worker");
	memset(w, 0, sizeof *w);
	w->cf = *cf;
	w->park.fd = -1;
	struct weir_worker_state *st = w->st = weir_xcalloc(1, sizeof *st);
	st->fcf = (struct weir_fragment_conf){.plan = pl, .worker_count = cf->count, .routes = cf->routes};
	const struct weir_route *rt = weir_routes_read(cf->routes);
	st->now = &st->applied_counts;
	st->inline_apply = cf->count == 1 || pl->route_direct;
	rings_init(w, cf->fragments);
	w->times = weir_times_create(pl);
	w->part_ended = weir_xcalloc(pl->partition_count + 1, sizeof *w->part_ended);
	w->arena = weir_arena_create();
	w->slots = weir_xcalloc(pl->stage_count + 1, sizeof *w->slots);
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		w->slots[s] = weir_xcalloc(pl->stages[s].slot_count, sizeof **w->slots);
		for (uint32_t k = 0; k < pl->stages[s].slot_count; k++)
			if (rt->owner[k] == cf->id)
				w->slots[s][k] = weir_slot_create(&pl->stages[s].def, k, w->arena);
	}
	st->all_bundle = weir_xcalloc(cf->bundles, sizeof *st->all_bundle);
	st->free_bundle = weir_xcalloc(cf->bundles, sizeof *st->free_bundle);
	st->spare_deltas = weir_xcalloc(cf->bundles, sizeof *st->spare_deltas);
	st->spare_results = weir_xcalloc(cf->bundles, sizeof *st->spare_results);
	for (uint32_t i = 0; i < cf->bundles; i++) {
		st->all_bundle[i] = weir_xcalloc(1, sizeof **st->all_bundle);
		st->all_bundle[i]->part_time = weir_xcalloc(pl->partition_count + 1, sizeof(int64_t));
		st->all_bundle[i]->part_flags = weir_xcalloc(pl->partition_count + 1, 1);
		st->free_bundle[st->free_bundle_count++] = st->all_bundle[i];
	}
	enum weir_err err = state_fill(w, dg);
	if (err != WEIR_OK) {
		weir_worker_destroy(w);
		return err;
	}
	atomic_store_explicit(&w->held_bytes, cf->fixed_bytes, memory_order_relaxed);
	*out = w;
	return WEIR_OK;
}

void weir_worker_destroy(struct weir_worker *w)
{
	if (!w)
		return;
	struct weir_worker_state *st = w->st;
	const struct weir_plan *pl = w->cf.plan;
	for (uint32_t i = 0; i < w->cf.bundles; i++) {
		struct weir_bundle *b = st->all_bundle[i];
		for (uint32_t c = 0; c < b->closed_count; c++)
			weir_closed_release(w->slots[b->closed[c].stage][b->closed[c].slot], b->closed[c].closed);
		weir_buf_fini(&b->results);
		weir_buf_fini(&b->order);
		weir_buf_fini(&b->deltas);
		free(b->chunks);
		free(b->closed);
		free(b->window_ends);
		free(b->delta);
		free(b->marks);
		free(b->part_time);
		free(b->part_flags);
		free(b);
	}
	if (st->point.closed)
		weir_closed_release(w->slots[st->point.stage][st->point.slot], st->point.closed);
	for (uint32_t s = 0; s < pl->scan_count && st->scan_pool; s++)
		pool_free(&st->scan_pool[s]);
	for (uint32_t s = 0; s < pl->stage_count && st->stage_pool; s++)
		pool_free(&st->stage_pool[s]);
	for (uint32_t b = 0; b < pl->branch_count && st->tails; b++)
		weir_tail_destroy(st->tails[b]);
	for (uint32_t s = 0; s < pl->stage_count && st->joins; s++)
		weir_join_destroy(st->joins[s]);
	for (uint32_t s = 0; s < pl->stage_count && st->overs; s++)
		weir_over_destroy(st->overs[s]);
	free(st->joins);
	free(st->overs);
	if (st->rows_ready)
		weir_rows_fini(&st->rows);
	weir_doubt_end(w);
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		for (uint32_t k = 0; k < pl->stages[s].slot_count; k++)
			if (w->slots[s][k])
				weir_slot_destroy(w->slots[s][k]);
		free(w->slots[s]);
	}
	free(w->slots);
	weir_arena_destroy(w->arena);
	weir_times_destroy(w->times);
	free(w->part_ended);
	for (uint32_t i = 0; i < w->cf.count; i++) {
		weir_ring_fini(&w->from[i]);
		weir_ring_fini(&w->from_stage[i]);
		weir_ring_fini(&w->back[i]);
	}
	weir_ring_fini(&w->input);
	weir_ring_fini(&w->input_back);
	weir_ring_fini(&w->bundle);
	weir_ring_fini(&w->bundle_back);
	free(w->from);
	free(w->from_stage);
	free(w->back);
	for (uint32_t s = 0; st->late_encoder && s < pl->stage_count; s++) {
		if (st->late_encoder[s])
			st->late_encoder[s]->destroy(st->late_encoder[s]);
		free(st->late_fields[s]);
	}
	for (uint32_t s = 0; st->exchange_encoder && s < pl->scan_count; s++)
		if (st->exchange_encoder[s])
			st->exchange_encoder[s]->destroy(st->exchange_encoder[s]);
	free(st->exchange_encoder);
	free(st->late_encoder);
	free(st->late_fields);
	free(st->send_cols);
	free(st->guarded);
	free(st->guarded_rows);
	free(st->implausible);
	free(st->scan_pool);
	free(st->stage_pool);
	free(st->tails);
	free(st->has_stage_branch);
	free(st->stage_branches);
	free(st->all_bundle);
	free(st->free_bundle);
	for (uint32_t i = 0; i < st->spare_deltas_count; i++)
		weir_buf_fini(&st->spare_deltas[i]);
	free(st->spare_deltas);
	for (uint32_t i = 0; i < st->spare_results_count; i++)
		weir_buf_fini(&st->spare_results[i]);
	free(st->spare_results);
	free(st);
	weir_park_fini(&w->park);
	free(w);
}

void weir_worker_inherit(struct weir_worker *w, struct weir_worker *former, const bool *kept, uint32_t partitions)
{
	struct weir_arena *arena = w->arena;
	struct weir_slot ***slots = w->slots;
	w->arena = former->arena;
	w->slots = former->slots;
	former->arena = arena;
	former->slots = slots;
	for (uint32_t s = 0; s < w->cf.plan->stage_count; s++)
		for (uint32_t k = 0; k < w->cf.plan->stages[s].slot_count; k++) {
			struct weir_slot **sl = &w->slots[s][k];
			WEIR_ASSERT((*sl != NULL) == (slots[s][k] != NULL));
			if (*sl == NULL || kept[k % partitions])
				continue;
			weir_slot_destroy(*sl);
			*sl = weir_slot_create(&w->cf.plan->stages[s].def, k, w->arena);
		}
}

void weir_worker_adopt(struct weir_worker *w, struct weir_worker *other, const bool *taken, uint32_t partitions)
{
	for (uint32_t s = 0; s < w->cf.plan->stage_count; s++)
		for (uint32_t k = 0; k < w->cf.plan->stages[s].slot_count; k++) {
			struct weir_slot *sl = other->slots[s][k];
			WEIR_ASSERT((w->slots[s][k] != NULL) == (sl != NULL));
			if (sl == NULL)
				continue;
			other->slots[s][k] = NULL;
			if (taken[k % partitions]) {
				weir_slot_destroy(w->slots[s][k]);
				w->slots[s][k] = sl;
				weir_slot_move(sl, w->arena);
			} else {
				weir_slot_destroy(sl);
			}
		}
	weir_arena_absorb(w->arena, other->arena); /* what is left there is of slots that went */
}

/* ---- bundles ---- */

struct weir_chunk *weir_bundle_chunk(struct weir_bundle *b)
{
	if (b->chunk_count == b->chunk_capacity) {
		b->chunk_capacity = b->chunk_capacity ? b->chunk_capacity * 2 : 64;
		b->chunks = weir_xrealloc(b->chunks, b->chunk_capacity * sizeof *b->chunks);
	}
	struct weir_chunk *c = &b->chunks[b->chunk_count++];
	memset(c, 0, sizeof *c);
	c->at = b->results.bytes;
	return c;
}

static void bundle_reset(struct weir_bundle *b, uint32_t parts, size_t keep)
{
	if (b->results.capacity > keep)
		weir_buf_fini(&b->results);
	if (b->order.capacity > keep)
		weir_buf_fini(&b->order);
	if (b->deltas.capacity > keep)
		weir_buf_fini(&b->deltas);
	b->seq = b->epoch = 0;
	b->results.bytes = b->order.bytes = b->deltas.bytes = 0;
	b->window_end_count = b->chunk_count = b->delta_count = b->mark_count = b->closed_count = 0;
	b->refusal_count = 0;
	b->warning[0] = 0;
	b->refusals = 0;
	b->fail = b->over = b->committed = false;
	for (uint32_t p = 0; p < parts; p++)
		b->part_time[p] = WEIR_TIME_UNSET;
}

/* Bundles that snap is done with: closed windows go back to their slots, committed images count. */
static bool take_bundles(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	struct weir_bundle *b;
	bool any = false;
	while ((b = weir_ring_pop(&w->bundle_back))) {
		for (uint32_t c = 0; c < b->closed_count; c++)
			weir_closed_release(w->slots[b->closed[c].stage][b->closed[c].slot], b->closed[c].closed);
		if (b->committed && b->epoch)
			for (uint32_t s = 0; s < w->cf.plan->stage_count; s++)
				for (uint32_t k = 0; k < w->cf.plan->stages[s].slot_count; k++)
					if (w->slots[s][k])
						weir_slot_committed(w->slots[s][k], b->epoch);
		atomic_fetch_sub_explicit(&w->bundle_bytes, weir_bundle_bytes(b), memory_order_relaxed);
		bundle_reset(b, w->cf.plan->partition_count, w->cf.bundle_bytes_max);
		if (b->deltas.data)
			st->spare_deltas[st->spare_deltas_count++] = b->deltas;
		b->deltas = (struct weir_buf){0};
		weir_bundle_spare_results(w, b);
		st->free_bundle[st->free_bundle_count++] = b;
		st->bundles_out--;
		any = true;
	}
	if (any && st->last_seen && st->bundles_out == 0 && !st->point.active && st->pending_count == 0)
		atomic_store_explicit(&w->done, true, memory_order_release);
	return any;
}

void weir_bundle_spare_results(struct weir_worker *w, struct weir_bundle *b)
{
	struct weir_worker_state *st = w->st;
	if (!b->results.data)
		return;
	if (st->spare_results_count < w->cf.bundles)
		st->spare_results[st->spare_results_count++] = b->results;
	else
		weir_buf_fini(&b->results);
	b->results = (struct weir_buf){0};
}

/* Of bundles that results are being written to. */
static void count_building(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	uint64_t bytes = st->current ? weir_bundle_bytes(st->current) : 0;
	for (uint32_t i = 0; i < st->pending_count; i++) {
		const struct weir_bundle *b = st->pending[(st->pending_at + i) % WORKER_PENDING_MAX].bundle;
		bytes += b ? weir_bundle_bytes(b) : 0;
	}
	atomic_store_explicit(&w->building_bytes, bytes, memory_order_relaxed);
}

void weir_worker_count_held(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	uint64_t bytes = w->cf.fixed_bytes;
	for (uint32_t s = 0; s < w->cf.plan->stage_count; s++)
		bytes += st->joins[s] ? weir_join_held_bytes(st->joins[s]) : 0;
	for (uint32_t i = 0; i < st->spare_deltas_count; i++)
		bytes += st->spare_deltas[i].capacity;
	for (uint32_t i = 0; i < st->spare_results_count; i++)
		bytes += st->spare_results[i].capacity;
	atomic_store_explicit(&w->held_bytes, bytes, memory_order_relaxed);
	count_building(w);
}

enum { RESULTS_ROOM = 256 << 10, RESULTS_FREELY = 1 << 20 };

/* Whether b's results may be added to. An order point makes as many as its rows have matches, and its results leave
 * together: where their buffer, which grows by as much again, would no longer fit beside all that the workers hold and
 * an eighth for io and snap, the run ends, as it does behind a bad record. Bundles of earlier order points do not
 * count: they have their share, and where they are large nothing is read before they are back. */
static WEIR_NOINLINE bool results_fit(struct weir_worker *w, struct weir_bundle *b)
{
	uint64_t bytes = 0, more = b->results.capacity > RESULTS_ROOM ? b->results.capacity : RESULTS_ROOM;
	if (b->over)
		return false;
	if (w->cf.memory_max == 0 || more < RESULTS_FREELY)
		return true;
	count_building(w);
	atomic_fetch_add_explicit(&w->building_bytes, more, memory_order_relaxed); /* others may grow right now, too */
	for (uint32_t i = 0; i < w->cf.count; i++) {
		const struct weir_worker *p = w->peers[i];
		bytes += weir_arena_bytes(p->arena) + atomic_load_explicit(&p->held_bytes, memory_order_relaxed) +
			 atomic_load_explicit(&p->building_bytes, memory_order_relaxed);
		if (b->seq != 0 && atomic_load_explicit(&p->ready_seq, memory_order_relaxed) == b->seq)
			bytes += atomic_load_explicit(&p->ready_bytes, memory_order_relaxed);
	}
	b->over = bytes > w->cf.memory_max / 8 * 7;
	if (!b->over)
		(void)weir_buf_room(&b->results, RESULTS_ROOM);
	weir_memory_trim(bytes, w->cf.memory_max);
	count_building(w);
	return !b->over;
}

static inline bool has_room(struct weir_worker *w, struct weir_bundle *b)
{
	return WEIR_LIKELY(b->results.capacity - b->results.bytes >= RESULTS_ROOM && !b->over) || results_fit(w, b);
}

static struct weir_bundle *bundle_current(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	if (!st->current && st->free_bundle_count) {
		st->current = st->free_bundle[--st->free_bundle_count];
		if (st->spare_results_count)
			st->current->results = st->spare_results[--st->spare_results_count];
	}
	return st->current;
}

/* The bundle of the first order point that has not run: what is applied now belongs to it. */
static struct weir_bundle *bundle_next_point(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	for (uint32_t i = 0; i < st->pending_count; i++) {
		struct weir_bundle *b = st->pending[(st->pending_at + i) % WORKER_PENDING_MAX].bundle;
		if (b)
			return b;
	}
	return bundle_current(w);
}

/* ---- refused and late records ---- */

/* Counts a refusal. True: it is among the few of an order point that are told with a text. */
static bool refusal_count(struct weir_worker *w, struct weir_bundle *b, enum weir_reason reason)
{
	w->st->now->rejected++;
	w->st->now->by_reason[reason]++;
	b->refusals++;
	return b->refusal_count < WEIR_REFUSALS_MAX;
}

static WEIR_NOINLINE void refusal_text(struct weir_bundle *b, const char *place, enum weir_reason reason,
				       const char *field, const char *detail)
{
	b->refusal[b->refusal_count].reason = reason;
	snprintf(b->refusal[b->refusal_count++].text, sizeof b->refusal->text, "%s: %s%s%s%s%s", place,
		 weir_reason_name(reason), field ? ": field " : "", field ? field : "", detail ? ": " : "",
		 detail ? detail : "");
}

void weir_worker_refuse(struct weir_worker *w, struct weir_bundle *b, const char *place, enum weir_reason reason,
			const char *field, const char *detail)
{
	if (refusal_count(w, b, reason))
		refusal_text(b, place, reason, field, detail);
}

static void put_varint(struct weir_buf *b, int64_t v)
{
	uint64_t z = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
	for (; z >= 0x80; z >>= 7)
		weir_buf_put_byte(b, (uint8_t)(z | 0x80));
	weir_buf_put_byte(b, (uint8_t)z);
}

static void put_header(struct weir_buf *b, const char *name, const char *value)
{
	put_varint(b, (int64_t)strlen(name));
	weir_buf_puts(b, name);
	put_varint(b, (int64_t)strlen(value));
	weir_buf_puts(b, value);
}

bool weir_worker_exchanged(struct weir_worker *w, const struct weir_fragment *fr, uint32_t row, struct weir_buf *json,
			   struct weir_record *out)
{
	struct weir_encoder *en = w->st->exchange_encoder[fr->scan];
	const struct weir_record *r = &fr->input->records[row];
	if (!en)
		return false;
	en->encode(en, fr->cols, row, json);
	*out = (struct weir_record){.value = json->data,
				    .value_bytes = (uint32_t)json->bytes,
				    .timestamp = fr->unwrapped[row].timestamp,
				    .offset = r->offset};
	return true;
}

/* The original record r with weir's headers behind its own, as one chunk of `output`; order: among those of one batch.
 * Cold: bad and late records are few. */
static void put_original(struct weir_worker *w, struct weir_bundle *b, const struct weir_input *in,
			 const struct weir_record *r, uint32_t order, uint32_t output, uint32_t stage, uint32_t slot,
			 const char *reason, const char *detail, const char *stage_name)
{
	struct weir_buf h = {0};
	char number[32];
	weir_buf_put(&h, r->headers, r->headers_bytes);
	put_header(&h, "weir-error-reason", reason);
	put_header(&h, "weir-error-topic", in->topic);
	snprintf(number, sizeof number, "%u", in->topic_partition);
	put_header(&h, "weir-error-partition", number);
	snprintf(number, sizeof number, "%lld", (long long)r->offset);
	put_header(&h, "weir-error-offset", number);
	put_header(&h, "weir-error-stage", stage_name);
	if (detail)
		put_header(&h, "weir-error-detail", detail);
	struct weir_chunk *c = weir_bundle_chunk(b);
	c->output = output;
	c->stage = stage;
	c->slot = slot;
	c->seq = in->seq;
	c->branch = order;
	c->results = 1;
	weir_result_put(&b->results, (struct weir_slice){r->key, r->key_bytes},
			(struct weir_slice){r->value, r->value_bytes}, (struct weir_slice){h.data, h.bytes},
			r->header_count + 5 + (detail != NULL), r->timestamp,
			(int32_t)(in->topic_partition % w->cf.outputs[output].partitions));
	c->bytes = b->results.bytes - c->at;
	w->st->now->results++;
	weir_buf_fini(&h);
}

/* At most 64 bytes of the payload around the fault, escaped, into `to`. */
static void quote_payload(char *to, size_t room, const struct weir_record *r, uint32_t at)
{
	enum { QUOTED = 64, BEFORE = 32 };
	const uint8_t *p = r->value;
	uint32_t from = at != UINT32_MAX && at > BEFORE ? at - BEFORE : 0;
	uint32_t left = p && from < r->value_bytes ? r->value_bytes - from : 0;
	size_t n = 0;
	if (room != 0)
		*to = 0;
	for (uint32_t i = from; i < from + (left < QUOTED ? left : QUOTED) && n + 5 < room; i++)
		n += (size_t)snprintf(to + n, room - n, p[i] < 0x20 || p[i] > 0x7e ? "\\x%02x" : "%c", p[i]);
}

/* `field amount DECIMAL(12,2): ` where the plan knows the column. Returns the length. */
static size_t put_field(char *to, size_t room, const struct weir_plan_scan *sc, const char *field)
{
	char type[64] = "";
	for (uint32_t i = 0; i < sc->column_count && !type[0]; i++)
		if (strcmp(sc->column_names[i], field) == 0)
			weir_type_text(&sc->column_types[i], type, sizeof type);
	return (size_t)snprintf(to, room, "field %.80s%s%.60s: ", field, type[0] ? " " : "", type);
}

enum { DETAIL_BYTES = 320 };

/* What is wrong with a record, as far as its error says. */
static void put_detail(char *to, const struct weir_plan_scan *sc, const struct weir_row_error *e)
{
	size_t n = 0;
	to[0] = 0;
	if (e->field)
		n = put_field(to, DETAIL_BYTES, sc, e->field);
	if (e->detail)
		n += (size_t)snprintf(to + n, DETAIL_BYTES - n, "%.120s", e->detail);
	if (e->at != UINT32_MAX)
		snprintf(to + n, DETAIL_BYTES - n, " at byte %u", e->at);
}

/* put_original for a record of the batch that lies before us. A repartition topic's row that could be decoded is JSON
 * of its columns: its bytes are weir's own. */
static void put_record(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr, uint32_t row,
		       bool decoded, uint32_t output, uint32_t stage, uint32_t slot, const char *reason,
		       const char *detail, const char *stage_name)
{
	struct weir_buf json = {0};
	struct weir_record readable;
	const struct weir_record *r = &fr->input->records[row];
	if (decoded && weir_worker_exchanged(w, fr, row, &json, &readable))
		r = &readable;
	put_original(w, b, fr->input, r, row, output, stage, slot, reason, detail, stage_name);
	weir_buf_fini(&json);
}

/* One record may be refused by several branches, each of which counts it; log and dead letter say so once: refused has
 * a bit per record. */
static void refuse_records(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr,
			   const struct weir_row_errors *errors, uint64_t *refused, const char *stage_name)
{
	const struct weir_input *in = fr->input;
	const struct weir_scan_policy *policy = &w->cf.policies[fr->scan];
	for (uint32_t i = 0; i < errors->count; i++) {
		const struct weir_row_error *e = &errors->e[i];
		uint64_t bit = UINT64_C(1) << (e->row % 64);
		if ((refused[e->row / 64] & bit) != 0) {
			w->st->now->rejected++;
			w->st->now->by_reason[e->reason]++;
			continue;
		}
		refused[e->row / 64] |= bit;
		const struct weir_record *r = &in->records[e->row];
		bool told = refusal_count(w, b, e->reason);
		bool letter = policy->errors == WEIR_ERRORS_DEAD_LETTER && policy->dead_letter >= 0;
		if (policy->errors == WEIR_ERRORS_FAIL)
			b->fail = true;
		if (!told && !letter)
			continue; /* a topic whose every record is refused must not take a text each */
		char detail[DETAIL_BYTES];
		put_detail(detail, &w->cf.plan->scans[fr->scan], e);
		if (told) {
			char place[300], quoted[5 * 64], text[sizeof detail + sizeof quoted + 4];
			snprintf(place, sizeof place, "%.249s-%u offset %lld", in->topic, in->topic_partition,
				 (long long)r->offset);
			quote_payload(quoted, sizeof quoted, r, e->at);
			snprintf(text, sizeof text, "%s%s%s", detail, quoted[0] ? ": " : "", quoted);
			refusal_text(b, place, e->reason, NULL, text);
		}
		if (letter)
			put_record(w, b, fr, e->row, errors != &fr->errors, (uint32_t)policy->dead_letter, 0, fr->part,
				   weir_reason_name(e->reason), detail[0] ? detail : NULL, stage_name);
	}
}

void weir_worker_count_errors(struct weir_worker *w, struct weir_bundle *b, const char *stage_name,
			      const struct weir_row_errors *errors, uint32_t from)
{
	for (uint32_t i = from; i < errors->count; i++)
		weir_worker_refuse(w, b, stage_name, errors->e[i].reason, errors->e[i].field, errors->e[i].detail);
}

/* ---- stage 0 ---- */

/* The first batch of a scan with such times says so, with its first record; the rest is counted. */
static void warn_implausible(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr)
{
	struct weir_worker_state *st = w->st;
	const struct weir_input *in = fr->input;
	int64_t ms = fr->time[fr->implausible_row];
	st->now->implausible += fr->implausible;
	if (!st->implausible)
		st->implausible = weir_xcalloc(w->cf.plan->scan_count, sizeof *st->implausible);
	if (st->implausible[fr->scan] || b->warning[0] != 0)
		return;
	st->implausible[fr->scan] = true;
	b->warning_scan = fr->scan;
	bool small = ms < INT64_C(10000000000);
	snprintf(b->warning, sizeof b->warning,
		 "%.120s-%u offset %lld: the event time %lld ms is in the year %s: %s The unit is milliseconds unless "
		 "TO_TIMESTAMP_LTZ(column, %s) or 'json.timestamp-unit' says another",
		 in->topic, in->topic_partition, (long long)in->records[fr->implausible_row].offset, (long long)ms,
		 small ? "1970" : "10000 or later", small ? "seconds?" : "micro- or nanoseconds?", small ? "0" : "6");
}

/* Decodes fr->input and runs what belongs to stage 0: rows for sinks are encoded at once, in the order of the records.
 */
static void run_stage0(struct weir_worker *w, struct weir_fragment *fr)
{
	struct weir_worker_state *st = w->st;
	const struct weir_plan *pl = w->cf.plan;
	const struct weir_plan_scan *sc = &pl->scans[fr->scan];
	struct weir_bundle *b = st->current;
	if (sc->repartition >= 0)
		weir_exchange_unwrap(fr, w->times);
	weir_fragment_decode(fr, pl);
	if (sc->repartition >= 0)
		weir_exchange_times(fr);
	st->now->read += fr->input->count;
	if (fr->errors.count)
		refuse_records(w, b, fr, &fr->errors, fr->refused, sc->name);
	st->now->rejected_decode += fr->errors.count;
	if (WEIR_UNLIKELY(fr->implausible != 0))
		warn_implausible(w, b, fr);
	st->now->entered += (uint64_t)fr->sel.count * sc->branch_count;
	for (uint32_t i = 0; i < fr->branch_count; i++) {
		st->errors.count = 0;
		st->now->filtered += weir_fragment_run(fr, &st->fcf, i, &st->errors);
		if (st->errors.count)
			refuse_records(w, b, fr, &st->errors, fr->refused,
				       pl->stages[pl->branches[fr->branches[i].branch].target].name);
	}
	for (uint32_t i = 0; i < sc->branch_count; i++) {
		struct weir_tail *tl = st->tails[sc->branches[i]];
		if (!tl || !has_room(w, b))
			continue;
		size_t at = b->results.bytes;
		const struct weir_plan_branch *br = &pl->branches[sc->branches[i]];
		if (pl->sinks[br->target].repartition >= 0)
			weir_tail_exchange(tl, fr->run, weir_times_part(w->times, fr->part),
					   weir_plan_upstream(pl, sc->branches[i], fr->input->partition));
		struct weir_sel *sel = &fr->sel;
		if (br->reject_null_value) {
			st->errors.count = 0;
			sel = &st->valued;
			weir_fragment_valued(fr, sel, &st->errors);
			refuse_records(w, b, fr, &st->errors, fr->refused, pl->sinks[br->target].name);
		}
		const struct weir_exchange_rows er = {
			.in = fr->col_ptrs, .sel = sel, .time = fr->time, .records = fr->input->records};
		struct weir_tail_done done =
			weir_tail_exchanges(tl) ? weir_tail_send(tl, &er, &fr->scratch, &b->results)
						: weir_tail_stream(tl, fr->col_ptrs, sel, fr->time,
								   fr->input->partition, &fr->scratch, &b->results);
		st->now->filtered += done.filtered;
		st->now->applied += done.results;
		if (done.results) {
			struct weir_chunk *c = weir_bundle_chunk(b);
			c->output = pl->branches[sc->branches[i]].target;
			c->slot = fr->part;
			c->seq = fr->seq;
			c->branch = sc->branches[i];
			c->results = done.results;
			c->at = at;
			c->bytes = b->results.bytes - at;
			st->now->results += done.results;
		}
		if (done.errors->count)
			refuse_records(w, b, fr, done.errors, fr->refused,
				       pl->sinks[pl->branches[sc->branches[i]].target].name);
	}
}

/* ---- state ---- */

/* Rows into a repartition topic; st->send_cols points at their columns. */
static struct weir_tail_done send_rows(struct weir_worker *w, struct weir_tail *tl, uint32_t branch, uint32_t slot,
				       struct weir_rows *rows, const struct weir_sel *all, struct weir_buf *out)
{
	const struct weir_plan_branch *br = &w->cf.plan->branches[branch];
	weir_tail_exchange(tl, NULL, WEIR_TIME_UNSET, weir_plan_upstream(w->cf.plan, branch, slot));
	struct weir_exchange_rows er = {.in = w->st->send_cols,
					.sel = all,
					.time = rows->time,
					.op = rows->op,
					.entry = rows->entry,
					.sl = w->slots[br->origin][slot]};
	return weir_tail_send(tl, &er, &rows->scratch, out);
}

void weir_worker_put_rows(struct weir_worker *w, struct weir_bundle *b, uint32_t stage, uint32_t slot, uint64_t seq,
			  struct weir_rows *rows, bool changes)
{
	struct weir_worker_state *st = w->st;
	const struct weir_plan_stage *ps = &w->cf.plan->stages[stage];
	struct weir_sel all;
	weir_sel_all(&all, rows->count);
	for (uint32_t c = 0; c < rows->col_count; c++)
		st->send_cols[c] = &rows->cols[c];
	for (uint32_t i = 0; i < ps->branch_count; i++) {
		uint32_t branch = ps->branches[i];
		struct weir_tail *tl = st->tails[branch];
		if (!tl || !has_room(w, b))
			continue;
		size_t at = b->results.bytes;
		struct weir_tail_done done;
		if (weir_tail_exchanges(tl))
			done = send_rows(w, tl, branch, slot, rows, &all, &b->results);
		else if (changes)
			done = weir_tail_changes(tl, w->slots[stage][slot], rows, slot, &b->results);
		else
			done = weir_tail_stream(tl, st->send_cols, &all, rows->time, slot, &rows->scratch, &b->results);
		if (done.results) {
			struct weir_chunk *c = weir_bundle_chunk(b);
			c->output = w->cf.plan->branches[branch].target;
			c->stage = stage + 1;
			c->slot = slot;
			c->seq = seq;
			c->branch = branch;
			c->results = done.results;
			c->at = at;
			c->bytes = b->results.bytes - at;
			st->now->results += done.results;
		}
		weir_worker_count_errors(w, b, ps->name, done.errors, 0);
	}
}

struct weir_rows *weir_worker_rows(struct weir_worker *w, uint32_t stage)
{
	struct weir_worker_state *st = w->st;
	if (st->rows_ready && st->rows_stage != stage) {
		weir_rows_fini(&st->rows);
		st->rows_ready = false;
	}
	if (!st->rows_ready) {
		weir_rows_init(&st->rows, &w->cf.plan->stages[stage].def);
		st->rows_ready = true;
		st->rows_stage = stage;
	}
	return &st->rows;
}

void weir_worker_flush_changes(struct weir_worker *w, struct weir_bundle *b, uint32_t stage, uint32_t slot,
			       uint64_t seq)
{
	struct weir_rows *rows = weir_worker_rows(w, stage);
	while (weir_slot_changes(w->slots[stage][slot], rows)) {
		w->st->now->agg_errors += rows->agg_errors;
		weir_worker_put_rows(w, b, stage, slot, seq, rows, true);
	}
}

/* Of what is late for one stage, records of sources come before rows of states: seq counts other things for them. */
static const uint64_t late_row_bit = UINT64_C(1) << 63;

/* A row of a state that came too late for the next one: JSON of its columns, with the state's name as topic. */
void weir_worker_put_late_row(struct weir_worker *w, struct weir_bundle *b, struct weir_slice value, const char *from,
			      uint32_t slot, uint64_t seq, uint32_t order, int64_t time, uint32_t output,
			      uint32_t stage)
{
	struct weir_buf h = {0};
	char number[32];
	put_header(&h, "weir-error-reason", "late");
	put_header(&h, "weir-error-topic", from);
	snprintf(number, sizeof number, "%u", slot);
	put_header(&h, "weir-error-partition", number);
	put_header(&h, "weir-error-stage", w->cf.plan->stages[stage].name);
	struct weir_chunk *c = weir_bundle_chunk(b);
	c->output = output;
	c->stage = stage + 1;
	c->slot = slot;
	c->seq = late_row_bit | seq;
	c->branch = order;
	c->results = 1;
	weir_result_put(&b->results, (struct weir_slice){0}, value, (struct weir_slice){h.data, h.bytes}, 4, time,
			(int32_t)(slot % w->cf.outputs[output].partitions));
	c->bytes = b->results.bytes - c->at;
	w->st->now->results++;
	weir_buf_fini(&h);
}

static void put_late_row(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr, uint32_t row,
			 uint32_t output, uint32_t stage)
{
	struct weir_encoder *en = w->st->late_encoder[fr->stage];
	struct weir_buf value = {0};
	en->encode(en, fr->rows.cols, row, &value);
	weir_worker_put_late_row(w, b, (struct weir_slice){value.data, value.bytes}, w->cf.plan->stages[fr->stage].name,
				 fr->slot, w->st->point.in_number, row, fr->rows.time[row], output, stage);
	weir_buf_fini(&value);
}

void weir_worker_put_late(struct weir_worker *w, struct weir_bundle *b, const struct weir_input *in, uint32_t order,
			  uint32_t output, uint32_t stage)
{
	put_original(w, b, in, in->records, order, output, stage + 1, 0, "late", NULL, w->cf.plan->stages[stage].name);
}

static void count_late(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr, uint32_t stage)
{
	struct weir_worker_state *st = w->st;
	const struct weir_scan_policy *policy = &w->cf.policies[fr->input ? fr->scan : 0];
	st->now->late += st->applied.late;
	st->now->by_reason[WEIR_REASON_LATE] += st->applied.late;
	for (uint32_t i = 0; i < st->applied.late && policy->late >= 0; i++) {
		if (fr->input)
			put_record(w, b, fr, st->applied.late_row[i], true, (uint32_t)policy->late, stage + 1, 0,
				   "late", NULL, w->cf.plan->stages[stage].name);
		else
			put_late_row(w, b, fr, st->applied.late_row[i], (uint32_t)policy->late, stage);
	}
}

/* Whether rows[i] is what a row was and rows[i + 1] what it is now, in one group: one update of it. */
static bool is_replaced(const struct weir_keyed *in, const uint16_t *rows, uint32_t i, uint32_t count)
{
	if (i + 1 == count || in->deletes == NULL || in->deletes[rows[i]] != WEIR_REPLACED)
		return false;
	uint32_t a = rows[i], b = rows[i + 1];
	return b == a + 1 && in->hash[a] == in->hash[b] && in->key_bytes[a] == in->key_bytes[b] &&
	       memcmp(in->key[a], in->key[b], in->key_bytes[a]) == 0;
}

/* Folds rows of a fragment branch, all this worker's, into its slots. */
void weir_worker_apply_rows(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr,
			    const struct weir_fragment_branch *fb, const struct weir_keyed *keyed, const uint16_t *rows,
			    uint32_t count, const struct weir_clock *clock)
{
	struct weir_worker_state *st = w->st;
	uint32_t stage = w->cf.plan->branches[fb->branch].target;
	const struct weir_state_def *def = &w->cf.plan->stages[stage].def;
	/* Of numbered rows the newest of an order point counts, in whatever order slots are heard. */
	bool each = def->changes && !w->cf.emit_coalesce && !def->numbered && !st->has_stage_branch[stage];
	bool kept = st->doubt && weir_doubt_keeps(w, stage);
	each |= kept;
	for (uint32_t i = 0, n; i < count; i += n) {
		n = !each ? count : def->retracts && is_replaced(keyed, rows, i, count) ? 2 : 1;
		if (kept && def->kind == WEIR_STATE_ROWS && def->numbered)
			weir_doubt_keep_stale(w, stage, keyed, rows[i]);
		weir_state_apply(def, w->slots[stage], keyed, rows + i, n, clock, &st->applied);
		st->now->applied += st->applied.applied;
		st->now->late_windows += st->applied.late_windows;
		if (st->applied.late)
			count_late(w, b, fr, stage);
		if (kept)
			weir_doubt_keep(w, stage, keyed->slot[rows[i]]);
		else if (each)
			weir_worker_flush_changes(w, b, stage, keyed->slot[rows[i]], fr->seq);
	}
}

/* time.future.max.ms: refuses records further ahead of task time than that, as if they had not been there: they move no
 * time. Every owner judges the whole batch in its order and so comes to the same answer; each refuses its own rows.
 * Returns the partition's largest accepted time in the batch. Only where the guard is on. */
static int64_t guard_future(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr,
			    const struct weir_fragment_branch *fb, const struct weir_clock *clock, uint32_t *count)
{
	struct weir_worker_state *st = w->st;
	const uint16_t *own = fb->rows + fb->start[w->cf.id];
	uint32_t own_count = fb->start[w->cf.id + 1] - fb->start[w->cf.id], next = 0;
	uint32_t stage = w->cf.plan->branches[fb->branch].target;
	bool max = w->cf.plan->stages[stage].def.time_max;
	int64_t part = clock->part, seen = WEIR_TIME_UNSET;
	uint64_t *ahead = st->ahead;
	memset(ahead, 0, sizeof st->ahead);
	if (!st->guarded) {
		st->guarded = weir_xcalloc(1, sizeof *st->guarded);
		st->guarded_rows = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *st->guarded_rows);
	}
	*st->guarded = fb->keyed;
	*count = 0;
	st->errors.count = 0;
	for (uint32_t i = 0; i < fr->sel.count; i++) {
		uint32_t row = fr->sel.row[i];
		bool mine = next < own_count && own[next] == row;
		int64_t task = weir_max_i64(clock->before, max ? part : weir_min_i64(clock->others, part));
		next += mine;
		if (task != WEIR_TIME_UNSET && fr->time[row] > task && fr->time[row] - task > w->cf.future_max_ms) {
			ahead[row / 64] |= UINT64_C(1) << (row % 64);
			if (mine)
				weir_row_errors_add(&st->errors, row, WEIR_REASON_FUTURE, UINT32_MAX, NULL,
						    "further ahead of task time than time.future.max.ms");
			continue;
		}
		part = weir_max_i64(part, fr->time[row]);
		seen = weir_max_i64(seen, fr->time[row]);
		st->guarded->run[row] = seen;
		if (mine)
			st->guarded_rows[(*count)++] = (uint16_t)row;
	}
	if (st->errors.count)
		refuse_records(w, b, fr, &st->errors, st->refused, w->cf.plan->stages[stage].name);
	/* Rows of other owners, too: the next branch may give them to this one. */
	for (uint32_t i = 0; i < fb->start[w->cf.count]; i++)
		st->refused[fb->rows[i] / 64] |= ahead[fb->rows[i] / 64] & UINT64_C(1) << (fb->rows[i] % 64);
	return seen;
}

/* Applies a stage-0 fragment: every owner sees every fragment, if only for the time it carries. */
static void apply_scan_fragment(struct weir_worker *w, struct weir_bundle *b, const struct weir_fragment *fr)
{
	int64_t time_max = fr->time_max;
	bool guard = w->cf.future_max_ms >= 0;
	if (guard)
		memcpy(w->st->refused, fr->refused, sizeof fr->refused);
	for (uint32_t i = 0; i < fr->branch_count; i++) {
		const struct weir_fragment_branch *fb = &fr->branches[i];
		uint32_t count = fb->start[w->cf.id + 1] - fb->start[w->cf.id];
		struct weir_join *jn = w->st->joins[w->cf.plan->branches[fb->branch].target];
		if (jn && (!guard || w->cf.plan->branches[fb->branch].global)) {
			if (!weir_join_beside(jn, b, fr, fb, count))
				weir_join_hold(jn, fr, fb, &fb->keyed, fb->rows + fb->start[w->cf.id], count, NULL);
			continue;
		}
		if (count == 0 && !guard)
			continue;
		struct weir_clock clock = weir_times_clock(w->times, w->cf.plan->branches[fb->branch].target,
							   fr->input->partition, fr->part);
		if (!guard) {
			weir_worker_apply_rows(w, b, fr, fb, &fb->keyed, fb->rows + fb->start[w->cf.id], count, &clock);
			continue;
		}
		int64_t seen = guard_future(w, b, fr, fb, &clock, &count);
		time_max = i == 0 ? seen : time_max;
		if (jn)
			weir_join_hold(jn, fr, fb, w->st->guarded, w->st->guarded_rows, count, w->st->ahead);
		else if (count)
			weir_worker_apply_rows(w, b, fr, fb, w->st->guarded, w->st->guarded_rows, count, &clock);
	}
	weir_times_advance(w->times, fr->scan, fr->part, time_max);
	if (w->cf.plan->scans[fr->scan].repartition >= 0)
		atomic_store_explicit(&w->part_ended[fr->part],
				      (weir_times_part_flags(w->times, fr->part) & WEIR_UPSTREAM_BOUND) != 0,
				      memory_order_relaxed);
}

/* ---- the loop ---- */

void weir_worker_input_return(struct weir_worker *w, struct weir_input *in)
{
	bool pushed = weir_ring_push(&w->input_back, in);
	WEIR_ASSERT(pushed); /* as large as the number of inputs outstanding */
	weir_ring_publish(&w->input_back);
	/* Io sleeps when the ring is full: then half of it is work enough while io wakes up, and one wake brings many
	 * batches. */
	if (w->io_park && weir_ring_depth(&w->input) <= w->cf.input_capacity / 2)
		weir_park_wake(w->io_park);
}

static void fragment_done(struct weir_worker *w, struct weir_fragment *fr)
{
	if (fr->input) {
		weir_worker_input_return(w, fr->input);
		fr->input = NULL;
		pool_put(&w->st->scan_pool[fr->scan], fr);
	} else {
		pool_put(&w->st->stage_pool[fr->stage], fr);
	}
}

static bool take_fragments_back(struct weir_worker *w)
{
	bool any = false;
	for (uint32_t i = 0; i < w->cf.count; i++) {
		struct weir_fragment *fr;
		while ((fr = weir_ring_pop(&w->back[i]))) {
			any = true;
			if (--fr->outstanding == 0)
				fragment_done(w, fr);
		}
	}
	return any;
}

static void fragment_send(struct weir_worker *w, struct weir_fragment *fr, bool stage)
{
	fr->outstanding = w->cf.count;
	for (uint32_t i = 0; i < w->cf.count; i++) {
		struct weir_worker *to = w->peers[i];
		struct weir_ring *rg = stage ? &to->from_stage[w->cf.id] : &to->from[w->cf.id];
		bool pushed = weir_ring_push(rg, fr);
		WEIR_ASSERT(pushed); /* as large as the pool */
		weir_ring_publish(rg);
		if (to != w)
			weir_park_wake(&to->park);
	}
}

void weir_worker_fragment_return(struct weir_worker *w, struct weir_fragment *fr, uint32_t producer)
{
	struct weir_worker *to = w->peers[producer];
	bool pushed = weir_ring_push(&to->back[w->cf.id], fr);
	WEIR_ASSERT(pushed);
	weir_ring_publish(&to->back[w->cf.id]);
	if (to != w)
		weir_park_wake(&to->park);
}

struct weir_fragment *weir_worker_take_stage_fragment(struct weir_worker *w, uint32_t stage)
{
	struct weir_fragment *fr = pool_take(&w->st->stage_pool[stage]);
	if (fr) {
		fr->rows.count = 0;
		fr->last = fr->out = false;
		fr->stage_time = WEIR_TIME_UNSET;
		weir_scratch_reset(&fr->scratch);
	}
	return fr;
}

void weir_worker_send_stage_fragment(struct weir_worker *w, struct weir_fragment *fr)
{
	fragment_send(w, fr, true);
}

/* One input: a batch is decoded (and, inline, applied), a control joins the queue. */
static bool decode_step(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	struct weir_input *in = weir_ring_front(&w->input);
	if (!in || !bundle_current(w))
		return false;
	if (in->kind != WEIR_INPUT_RECORDS) {
		if (st->pending_count == WORKER_PENDING_MAX)
			return false;
		struct pending *pd = &st->pending[(st->pending_at + st->pending_count++) % WORKER_PENDING_MAX];
		pd->input = in;
		pd->bundle = NULL;
		pd->decoded = st->decoded;
		if (in->kind == WEIR_INPUT_POINT) {
			pd->bundle = st->current;
			st->current = NULL;
		}
		weir_ring_pop(&w->input);
		return true;
	}
	if (st->inline_apply && st->pending_count)
		return false; /* controls first: everything is in order here */
	struct weir_fragment *fr = pool_take(&st->scan_pool[in->scan]);
	if (!fr)
		return false;
	weir_ring_pop(&w->input);
	fr->input = in;
	fr->seq = in->seq;
	fr->part = in->part;
	st->now = &st->decoded;
	run_stage0(w, fr);
	st->now = &st->applied_counts;
	count_building(w);
	if (st->inline_apply) {
		apply_scan_fragment(w, st->current, fr);
		fragment_done(w, fr);
	} else {
		fragment_send(w, fr, false);
	}
	return true;
}

static void event_done(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	struct weir_input *in = st->pending[st->pending_at].input;
	weir_times_event(w->times, in->part, in->event);
	st->pending_at = (st->pending_at + 1) % WORKER_PENDING_MAX;
	st->pending_count--;
	st->next_seq = in->seq + 1;
	weir_worker_input_return(w, in);
}

/* Applies what is next by seq: a control whose turn it is, or the fragment of the worker whose turn it is. */
static bool apply_step(struct weir_worker *w)
{
	struct weir_worker_state *st = w->st;
	struct pending *pd = st->pending_count ? &st->pending[st->pending_at] : NULL;
	if (pd && (st->inline_apply || pd->input->seq == st->next_seq)) {
		if (pd->input->kind == WEIR_INPUT_EVENT) {
			event_done(w);
			return true;
		}
		return weir_point_step(w);
	}
	if (st->inline_apply)
		return false;
	uint32_t producer = (uint32_t)(st->next_seq % w->cf.count);
	struct weir_fragment *fr = weir_ring_front(&w->from[producer]);
	if (!fr || fr->seq != st->next_seq)
		return false;
	struct weir_bundle *b = bundle_next_point(w);
	if (!b)
		return false;
	weir_ring_pop(&w->from[producer]);
	apply_scan_fragment(w, b, fr);
	st->next_seq++;
	weir_worker_fragment_return(w, fr, producer);
	return true;
}

bool weir_worker_step(struct weir_worker *w)
{
	bool any = take_bundles(w);
	any |= take_fragments_back(w);
	for (int i = 0; i < 4 && apply_step(w); i++)
		any = true;
	any |= decode_step(w);
	return any;
}
