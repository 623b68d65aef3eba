/* snapshot.c: results, deltas, markers, commits (snapshot.h). @thread snap */
#include "checkpoint/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint/record.h"
#include "hotpath/run/exchange.h"

/* A chunk of some worker's bundle, for sorting. */
struct chunk_ref {
	const struct weir_chunk *c;
	struct weir_bundle *b;
	uint32_t index;
};

/* What the last time record said of an upstream slot. */
struct upstream_told {
	int64_t time;
	bool told;
	uint8_t flags;
};

struct weir_snapshot {
	struct weir_snapshot_conf cf;
	struct weir_ring points, points_back;
	struct weir_park park;
	struct weir_park *io_park;
	struct weir_point *point;     /* being gathered */
	struct weir_bundle **bundles; /* per worker, NULL until it came */
	uint32_t gathered;
	struct weir_tail **tails; /* per branch from a FINAL stage into a sink */
	struct weir_rows *rows;   /* per stage */
	bool *rows_ready;
	const struct weir_col **in; /* columns of the rows in hand */
	struct weir_scratch scratch;
	struct weir_buf results, frame, text;
	struct chunk_ref *refs;
	uint32_t ref_capacity;
	struct weir_commit_input *commit_inputs; /* room for every partition */
	int64_t *part_time;
	uint8_t *part_flags;
	struct upstream_told **told; /* per repartition topic, upstream slot */
	int64_t **task_time;         /* per stage, slot: as of the last marker */
	struct weir_buf scratch_ends;
	uint64_t windows;
	uint64_t results_of_closed, errors_of_closed, agg_errors;
	uint64_t warned; /* scans (by number, 64 apart) whose event times have been called implausible */
	_Atomic bool text_closed;
	struct weir_snapshot_stats stats;
};

enum weir_err weir_snapshot_create(struct weir_snapshot **out, const struct weir_snapshot_conf *cf,
				   struct weir_diag **dg)
{
	const struct weir_plan *pl = cf->plan;
	struct weir_snapshot *sn = aligned_alloc(WEIR_CACHE_LINE, weir_align_up(sizeof *sn, WEIR_CACHE_LINE));
	if (!sn)
		return weir_diag_set(dg, WEIR_E_NOMEM, "no memory for the snapshotter");
	memset(sn, 0, sizeof *sn);
	sn->cf = *cf;
	sn->park.fd = -1;
	weir_ring_init(&sn->points, 256);
	weir_ring_init(&sn->points_back, 256);
	weir_scratch_init(&sn->scratch);
	sn->bundles = weir_xcalloc(cf->worker_count, sizeof *sn->bundles);
	sn->tails = weir_xcalloc(pl->branch_count + 1, sizeof *sn->tails);
	sn->rows = weir_xcalloc(pl->stage_count + 1, sizeof *sn->rows);
	sn->rows_ready = weir_xcalloc(pl->stage_count + 1, sizeof *sn->rows_ready);
	sn->commit_inputs = weir_xcalloc(pl->partition_count + 1, sizeof *sn->commit_inputs);
	sn->part_time = weir_xcalloc(pl->partition_count + 1, sizeof *sn->part_time);
	sn->part_flags = weir_xcalloc(pl->partition_count + 1, sizeof *sn->part_flags);
	sn->told = weir_xcalloc(pl->repartition_count + 1, sizeof *sn->told);
	for (uint32_t r = 0; r < pl->repartition_count; r++)
		sn->told[r] = weir_xcalloc(pl->repartitions[r].upstream_count + 1, sizeof **sn->told);
	sn->task_time = weir_xcalloc(pl->stage_count + 1, sizeof *sn->task_time);
	uint32_t columns = 1;
	for (uint32_t s = 0; s < pl->stage_count; s++)
		columns = pl->stages[s].column_count > columns ? pl->stages[s].column_count : columns;
	sn->in = weir_xcalloc(columns, sizeof *sn->in);
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		sn->task_time[s] = weir_xcalloc(pl->stages[s].slot_count, sizeof **sn->task_time);
		for (uint32_t k = 0; k < pl->stages[s].slot_count; k++)
			sn->task_time[s][k] = WEIR_TIME_UNSET;
	}
	for (uint32_t b = 0; b < pl->branch_count; b++) {
		const struct weir_plan_branch *br = &pl->branches[b];
		if (br->from != WEIR_FROM_STAGE || br->to != WEIR_TO_SINK || pl->stages[br->origin].def.changes)
			continue;
		enum weir_err err = weir_tail_create(&sn->tails[b], pl, b, &cf->outputs[br->target], dg);
		if (err != WEIR_OK) {
			weir_snapshot_destroy(sn);
			return err;
		}
		if (!sn->rows_ready[br->origin])
			weir_rows_init(&sn->rows[br->origin], &pl->stages[br->origin].def);
		sn->rows_ready[br->origin] = true;
	}
	*out = sn;
	return WEIR_OK;
}

void weir_snapshot_destroy(struct weir_snapshot *sn)
{
	if (!sn)
		return;
	const struct weir_plan *pl = sn->cf.plan;
	for (uint32_t b = 0; b < pl->branch_count; b++)
		weir_tail_destroy(sn->tails[b]);
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		if (sn->rows_ready[s])
			weir_rows_fini(&sn->rows[s]);
		free(sn->task_time[s]);
	}
	free(sn->task_time);
	free(sn->tails);
	free(sn->rows);
	free(sn->rows_ready);
	free(sn->in);
	free(sn->bundles);
	free(sn->part_time);
	free(sn->part_flags);
	for (uint32_t r = 0; r < pl->repartition_count; r++)
		free(sn->told[r]);
	free(sn->told);
	free(sn->commit_inputs);
	free(sn->refs);
	weir_buf_fini(&sn->results);
	weir_buf_fini(&sn->frame);
	weir_buf_fini(&sn->text);
	weir_buf_fini(&sn->scratch_ends);
	weir_scratch_fini(&sn->scratch);
	weir_ring_fini(&sn->points);
	weir_ring_fini(&sn->points_back);
	weir_park_fini(&sn->park);
	free(sn);
}

struct weir_ring *weir_snapshot_points(struct weir_snapshot *sn)
{
	return &sn->points;
}

struct weir_ring *weir_snapshot_back(struct weir_snapshot *sn)
{
	return &sn->points_back;
}

struct weir_park *weir_snapshot_park(struct weir_snapshot *sn)
{
	return &sn->park;
}

void weir_snapshot_set_io_park(struct weir_snapshot *sn, struct weir_park *pk)
{
	sn->io_park = pk;
}

bool weir_snapshot_text_closed(const struct weir_snapshot *sn)
{
	return atomic_load_explicit(&sn->text_closed, memory_order_relaxed);
}

const struct weir_snapshot_stats *weir_snapshot_stats(const struct weir_snapshot *sn)
{
	return &sn->stats;
}

/* ---- results ---- */

static enum weir_err put_result(struct weir_snapshot *sn, uint32_t output, const struct weir_result *head,
				const uint8_t *key, const uint8_t *value, const uint8_t *headers, struct weir_diag **dg)
{
	const struct weir_output *ou = &sn->cf.outputs[output];
	if (ou->kind == WEIR_OUTPUT_PRINT) {
		weir_buf_put(&sn->text, value, value ? head->value_bytes : 0);
		return WEIR_OK;
	}
	if (ou->kind == WEIR_OUTPUT_BLACKHOLE)
		return WEIR_OK;
	struct weir_out r = {.key = {key, key ? head->key_bytes : 0},
			     .value = {value, value ? head->value_bytes : 0},
			     .headers = headers,
			     .headers_bytes = head->headers_bytes,
			     .header_count = head->header_count,
			     .timestamp = head->timestamp};
	uint32_t p = head->partition >= 0 ? (uint32_t)head->partition % ou->partitions
					  : sn->cf.partition_by_key(key, head->key_bytes) % ou->partitions;
	return sn->cf.log->ops->append(sn->cf.log, sn->cf.output_topic[output], p, &r, dg);
}

static enum weir_err put_results(struct weir_snapshot *sn, uint32_t output, const struct weir_buf *b, size_t at,
				 size_t end, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	while (at < end && err == WEIR_OK) {
		struct weir_result head;
		const uint8_t *key, *value, *headers;
		at = weir_result_get(b, at, &head, &key, &value, &headers);
		err = put_result(sn, output, &head, key, value, headers, dg);
	}
	return err;
}

/* Results that lie in another order than they leave in. */
static enum weir_err put_ordered(struct weir_snapshot *sn, const struct weir_chunk *c, const struct weir_bundle *b,
				 struct weir_diag **dg)
{
	enum { AHEAD = 8 };
	const uint64_t *at = (const uint64_t *)(const void *)b->order.data + c->at;
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < c->results && err == WEIR_OK; i++) {
		struct weir_result head;
		const uint8_t *key, *value, *headers;
		const uint8_t *later = b->results.data + at[i + AHEAD < c->results ? i + AHEAD : i];
		__builtin_prefetch(later, 0, 3);
		__builtin_prefetch(later + WEIR_CACHE_LINE, 0, 3);
		(void)weir_result_get(&b->results, at[i], &head, &key, &value, &headers);
		err = put_result(sn, c->output, &head, key, value, headers, dg);
	}
	return err;
}

/* Closed windows: sorted here, read in chunks, through the branch's tail. */
static enum weir_err put_closed(struct weir_snapshot *sn, const struct weir_chunk *c, struct weir_diag **dg)
{
	uint32_t stage = c->stage - 1;
	struct weir_tail *tl = sn->tails[c->branch];
	struct weir_rows *rows = &sn->rows[stage];
	const struct weir_col **in = sn->in;
	enum weir_err err = WEIR_OK;
	weir_closed_sort(c->closed);
	for (uint32_t i = 0; i < rows->col_count; i++)
		in[i] = &rows->cols[i];
	for (uint32_t row = 0; row < weir_closed_count(c->closed) && err == WEIR_OK;) {
		weir_scratch_reset(&sn->scratch);
		row += weir_closed_read(c->closed, row, rows);
		struct weir_sel all;
		weir_sel_all(&all, rows->count);
		sn->results.bytes = 0;
		if (sn->cf.plan->sinks[sn->cf.plan->branches[c->branch].target].repartition >= 0)
			weir_tail_exchange(tl, NULL, WEIR_TIME_UNSET,
					   weir_plan_upstream(sn->cf.plan, c->branch, c->slot));
		struct weir_tail_done done =
			weir_tail_stream(tl, in, &all, rows->time, c->slot, &sn->scratch, &sn->results);
		sn->results_of_closed += done.results;
		sn->errors_of_closed += done.errors->count;
		sn->agg_errors += rows->agg_errors;
		err = put_results(sn, c->output, &sn->results, 0, sn->results.bytes, dg);
	}
	return err;
}

static int compare_chunks(const void *a, const void *b)
{
	const struct chunk_ref *x = a, *y = b;
	if (x->c->stage != y->c->stage)
		return x->c->stage < y->c->stage ? -1 : 1;
	if (x->c->slot != y->c->slot)
		return x->c->slot < y->c->slot ? -1 : 1;
	if (x->c->seq != y->c->seq)
		return x->c->seq < y->c->seq ? -1 : 1;
	if (x->c->branch != y->c->branch)
		return x->c->branch < y->c->branch ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static enum weir_err write_results(struct weir_snapshot *sn, struct weir_diag **dg)
{
	uint32_t count = 0;
	for (uint32_t w = 0; w < sn->cf.worker_count; w++)
		count += sn->bundles[w]->chunk_count;
	if (count > sn->ref_capacity) {
		sn->ref_capacity = count * 2;
		sn->refs = weir_xrealloc(sn->refs, sn->ref_capacity * sizeof *sn->refs);
	}
	count = 0;
	for (uint32_t w = 0; w < sn->cf.worker_count; w++)
		for (uint32_t i = 0; i < sn->bundles[w]->chunk_count; i++)
			sn->refs[count++] = (struct chunk_ref){&sn->bundles[w]->chunks[i], sn->bundles[w], i};
	if (count > 1)
		qsort(sn->refs, count, sizeof *sn->refs, compare_chunks);
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		const struct weir_chunk *c = sn->refs[i].c;
		err = c->closed    ? put_closed(sn, c, dg)
		      : c->ordered ? put_ordered(sn, c, sn->refs[i].b, dg)
				   : put_results(sn, c->output, &sn->refs[i].b->results, c->at, c->at + c->bytes, dg);
		if (sn->text.bytes > 65536 || (i + 1 == count && sn->text.bytes)) {
			if (sn->cf.write_text &&
			    sn->cf.write_text(sn->cf.text_ctx, (const char *)sn->text.data, sn->text.bytes) != 0)
				atomic_store_explicit(&sn->text_closed, true, memory_order_relaxed);
			sn->text.bytes = 0;
		}
	}
	if (err == WEIR_OK && sn->cf.log)
		err = sn->cf.log->ops->cut(sn->cf.log, dg);
	return err;
}

/* ---- the barrier ---- */

static enum weir_err append(struct weir_snapshot *sn, uint32_t topic, uint32_t partition, const uint8_t *key,
			    size_t key_bytes, const struct weir_buf *value, struct weir_diag **dg)
{
	struct weir_out r = {.key = {key, key_bytes}, .timestamp = 0};
	if (value)
		r.value = (struct weir_slice){value->data, value->bytes};
	return sn->cf.log->ops->append(sn->cf.log, topic, partition, &r, dg);
}

/* What one changelog partition of one stage gets at this barrier. */
struct partition_sum {
	uint64_t sum;
	uint32_t count;
	bool changed;
};

static enum weir_err write_deltas(struct weir_snapshot *sn, uint32_t stage, struct partition_sum *ps,
				  struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t w = 0; w < sn->cf.worker_count; w++) {
		const struct weir_bundle *b = sn->bundles[w];
		for (uint32_t i = 0; i < b->delta_count && err == WEIR_OK; i++) {
			const struct weir_delta *d = &b->delta[i];
			if (d->stage != stage)
				continue;
			uint8_t key[WEIR_RECORD_KEY_BYTES];
			uint32_t p = d->slot % sn->cf.changelog_partitions;
			size_t n =
				weir_record_key(key, d->kind == WEIR_DELTA_PACK ? WEIR_RECORD_PACK : WEIR_RECORD_PAGE,
						d->slot, d->number, d->part);
			ps[p].changed = true;
			if (d->tombstone) {
				err = append(sn, sn->cf.state_topic[stage], p, key, n, NULL, dg);
				continue;
			}
			sn->frame.bytes = 0;
			ps[p].sum += weir_record_frame(&sn->frame, key, n, b->epoch, b->deltas.data + d->at, d->bytes);
			ps[p].count++;
			err = append(sn, sn->cf.state_topic[stage], p, key, n, &sn->frame, dg);
		}
		for (uint32_t i = 0; i < b->mark_count; i++) {
			const struct weir_slot_mark *m = &b->marks[i];
			if (m->stage != stage)
				continue;
			if (m->changed || m->task_time != sn->task_time[stage][m->slot])
				ps[m->slot % sn->cf.changelog_partitions].changed = true;
			sn->task_time[stage][m->slot] = m->task_time;
		}
	}
	return err;
}

static int compare_slots(const void *a, const void *b)
{
	const struct weir_marker_slot *x = a, *y = b;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static enum weir_err write_marker(struct weir_snapshot *sn, uint32_t stage, uint32_t p, const struct partition_sum *ps,
				  struct weir_diag **dg)
{
	const struct weir_plan *pl = sn->cf.plan;
	struct weir_marker mk = {.epoch = sn->point->epoch,
				 .records = sn->point->records,
				 .bytes = sn->point->bytes,
				 .sum = ps->sum,
				 .count = ps->count};
	bool kept = stage < weir_plan_kept_stages(pl); /* else a marker of offsets and times alone */
	uint32_t slots = kept ? pl->stages[stage].slot_count : 0;
	mk.inputs = weir_xcalloc(pl->partition_count + 1, sizeof *mk.inputs);
	mk.slots = weir_xcalloc(slots + 1, sizeof *mk.slots);
	for (uint32_t i = 0; i < pl->partition_count; i++) {
		const struct weir_input_name *in = &sn->cf.inputs[i];
		if (in->changelog_partition == p)
			mk.inputs[mk.input_count++] = (struct weir_marker_input){in->topic,
										 (uint32_t)strlen(in->topic),
										 in->partition,
										 sn->point->offset[i],
										 sn->part_time[i],
										 in->table,
										 (uint32_t)strlen(in->table)};
	}
	for (uint32_t w = 0; w < sn->cf.worker_count; w++) {
		const struct weir_bundle *b = sn->bundles[w];
		for (uint32_t i = 0; i < b->mark_count; i++) {
			const struct weir_slot_mark *m = &b->marks[i];
			if (kept && m->stage == stage && m->slot % sn->cf.changelog_partitions == p)
				mk.slots[mk.slot_count++] = (struct weir_marker_slot){m->slot, m->task_time,
										      b->deltas.data + m->at, m->bytes};
		}
	}
	qsort(mk.slots, mk.slot_count, sizeof *mk.slots, compare_slots);
	uint8_t key[WEIR_RECORD_KEY_BYTES];
	size_t n = weir_record_key(key, WEIR_RECORD_MARKER, 0, 0, 0);
	sn->frame.bytes = 0;
	weir_marker_encode(&mk, &sn->frame);
	free(mk.inputs);
	free(mk.slots);
	if (sn->cf.markers) {
		struct weir_buf *newest = &sn->cf.markers[stage * sn->cf.changelog_partitions + p];
		newest->bytes = 0;
		weir_buf_put(newest, sn->frame.data, sn->frame.bytes);
	}
	return append(sn, sn->cf.state_topic[stage], p, key, n, &sn->frame, dg);
}

/* Whether slot `slot` of stage is one that this instance feeds. */
static bool slot_owned(const struct weir_snapshot *sn, uint32_t stage, uint32_t slot)
{
	const struct weir_plan_stage *st = &sn->cf.plan->stages[stage];
	if (!sn->cf.owned || st->exchange != WEIR_EXCHANGE_DIRECT)
		return true;
	const struct weir_plan_branch *br = &sn->cf.plan->branches[st->inputs[0]];
	return sn->cf.owned[sn->cf.plan->scans[br->origin].partition_base + slot];
}

/* What of an input branch's upstream slots is ours goes into sn->frame, where it has moved since it was last told. */
static bool list_times(struct weir_snapshot *sn, const struct weir_plan_repartition *rp, uint32_t input,
		       struct upstream_told *told)
{
	const struct weir_plan *pl = sn->cf.plan;
	const struct weir_plan_branch *br = &pl->branches[rp->inputs[input]];
	bool any = false;
	if (br->from == WEIR_FROM_SCAN) {
		const struct weir_plan_scan *sc = &pl->scans[br->origin];
		for (uint32_t p = 0; p < sc->partition_count; p++) {
			uint32_t part = sc->partition_base + p;
			struct upstream_told *to = &told[rp->base[input] + p];
			if ((sn->cf.owned && !sn->cf.owned[part]) ||
			    (to->told && to->time == sn->part_time[part] && to->flags == sn->part_flags[part]))
				continue;
			*to = (struct upstream_told){sn->part_time[part], true, sn->part_flags[part]};
			weir_exchange_time_put(&sn->frame, rp->base[input] + p, to->time, to->flags);
			any = true;
		}
		return any;
	}
	for (uint32_t w = 0; w < sn->cf.worker_count; w++)
		for (uint32_t i = 0; i < sn->bundles[w]->mark_count; i++) {
			const struct weir_slot_mark *m = &sn->bundles[w]->marks[i];
			if (m->stage != br->origin || !slot_owned(sn, m->stage, m->slot))
				continue;
			struct upstream_told *to = &told[rp->base[input] + m->slot];
			int64_t time = m->task_time == WEIR_TIME_UNSET ? WEIR_TIME_UNSET
								       : m->task_time - pl->stages[m->stage].hold_ms;
			if (to->told && to->time == time && to->flags == m->flags)
				continue;
			*to = (struct upstream_told){time, true, m->flags};
			weir_exchange_time_put(&sn->frame, rp->base[input] + m->slot, time, m->flags);
			any = true;
		}
	return any;
}

/* Times of source partitions: the furthest that any worker knows. */
static void merge_times(struct weir_snapshot *sn)
{
	for (uint32_t p = 0; p < sn->cf.plan->partition_count; p++) {
		sn->part_time[p] = WEIR_TIME_UNSET;
		sn->part_flags[p] = 0;
		for (uint32_t w = 0; w < sn->cf.worker_count; w++) {
			sn->part_time[p] = weir_max_i64(sn->part_time[p], sn->bundles[w]->part_time[p]);
			sn->part_flags[p] |= sn->bundles[w]->part_flags[p];
		}
	}
}

/* A time record into every partition of each repartition topic whose upstream slots have moved: behind the rows that
 * were final by then. */
static enum weir_err write_times(struct weir_snapshot *sn, bool *any, struct weir_diag **dg)
{
	const struct weir_plan *pl = sn->cf.plan;
	enum weir_err err = WEIR_OK;
	for (uint32_t r = 0; r < pl->repartition_count && err == WEIR_OK; r++) {
		const struct weir_plan_repartition *rp = &pl->repartitions[r];
		bool moved = false;
		weir_exchange_time_begin(&sn->frame);
		for (uint32_t i = 0; i < rp->input_count; i++)
			moved |= list_times(sn, rp, i, sn->told[r]);
		*any |= moved;
		struct weir_out out = {.value = {sn->frame.data, sn->frame.bytes}, .timestamp = 0};
		for (uint32_t p = 0; moved && err == WEIR_OK && p < sn->cf.outputs[rp->sink].partitions; p++)
			err = sn->cf.log->ops->append(sn->cf.log, sn->cf.output_topic[rp->sink], p, &out, dg);
	}
	return err;
}

static enum weir_err send_offsets(struct weir_snapshot *sn, struct weir_diag **dg)
{
	uint32_t n = 0;
	for (uint32_t p = 0; p < sn->cf.plan->partition_count; p++)
		if (!sn->cf.owned || sn->cf.owned[p])
			sn->commit_inputs[n++] =
				(struct weir_commit_input){sn->cf.inputs[p].topic, sn->cf.inputs[p].partition,
							   sn->point->offset[p], sn->cf.inputs[p].changelog_partition};
	return sn->cf.log->ops->offsets(sn->cf.log, sn->commit_inputs, n, dg);
}

/* Deltas, then a marker for every changelog partition in which something changed, then the commit. */
static enum weir_err commit(struct weir_snapshot *sn, struct weir_diag **dg)
{
	const struct weir_plan *pl = sn->cf.plan;
	uint32_t parts = sn->cf.changelog_partitions;
	struct partition_sum *ps = weir_xcalloc(parts, sizeof *ps);
	enum weir_err err = WEIR_OK;
	bool any = false;
	merge_times(sn);
	if (pl->repartition_count)
		err = write_times(sn, &any, dg);
	uint32_t kept = weir_plan_kept_stages(pl);
	for (uint32_t s = 0; s < (kept ? kept : 1) && err == WEIR_OK; s++) {
		memset(ps, 0, parts * sizeof *ps);
		for (uint32_t p = 0; p < pl->partition_count; p++)
			ps[sn->cf.inputs[p].changelog_partition].changed |= sn->point->moved[p];
		if (s < kept)
			err = write_deltas(sn, s, ps, dg);
		for (uint32_t p = 0; p < parts && err == WEIR_OK; p++)
			if (ps[p].changed) {
				err = write_marker(sn, s, p, &ps[p], dg);
				any = true;
			}
	}
	free(ps);
	if (err == WEIR_OK && any && sn->cf.log->ops->offsets)
		err = send_offsets(sn, dg);
	if (err == WEIR_OK && any)
		err = sn->cf.log->ops->commit(sn->cf.log, sn->point->epoch, dg);
	if (err == WEIR_OK && any)
		atomic_fetch_add_explicit(&sn->stats.epochs, 1, memory_order_relaxed);
	return err;
}

/* ---- the loop ---- */

static void publish_stats(struct weir_snapshot *sn)
{
	struct weir_counters sum = {0};
	uint64_t entries = 0, bytes = 0;
	for (uint32_t w = 0; w < sn->cf.worker_count; w++) {
		const struct weir_counters *c = &sn->bundles[w]->counters;
		sum.read += c->read;
		sum.entered += c->entered;
		sum.rejected_decode += c->rejected_decode;
		sum.applied += c->applied;
		sum.late += c->late;
		sum.late_windows += c->late_windows;
		sum.rejected += c->rejected;
		sum.filtered += c->filtered;
		sum.results += c->results;
		sum.windows += c->windows;
		sum.agg_errors += c->agg_errors;
		sum.implausible += c->implausible;
		entries += sn->bundles[w]->state_entries;
		bytes += sn->bundles[w]->state_bytes;
	}
	/* Nothing is dropped without a counter. */
	WEIR_DASSERT(sum.entered == sum.applied + sum.late + sum.filtered + (sum.rejected - sum.rejected_decode));
	struct weir_snapshot_stats *st = &sn->stats;
	atomic_store_explicit(&st->read, sum.read, memory_order_relaxed);
	atomic_store_explicit(&st->applied, sum.applied, memory_order_relaxed);
	atomic_store_explicit(&st->late, sum.late, memory_order_relaxed);
	atomic_store_explicit(&st->late_windows, sum.late_windows, memory_order_relaxed);
	atomic_store_explicit(&st->rejected, sum.rejected + sn->errors_of_closed, memory_order_relaxed);
	atomic_store_explicit(&st->filtered, sum.filtered, memory_order_relaxed);
	atomic_store_explicit(&st->results, sum.results + sn->results_of_closed, memory_order_relaxed);
	atomic_store_explicit(&st->agg_errors, sum.agg_errors + sn->agg_errors, memory_order_relaxed);
	atomic_store_explicit(&st->implausible, sum.implausible, memory_order_relaxed);
	atomic_store_explicit(&st->windows, sum.windows + sn->windows, memory_order_relaxed);
	atomic_store_explicit(&st->state_entries, entries, memory_order_relaxed);
	atomic_store_explicit(&st->state_bytes, bytes, memory_order_relaxed);
}

/* How many different (stage, window) the workers closed at this order point. */
static int compare_ends(const void *a, const void *b)
{
	const struct weir_window_end *x = a, *y = b;
	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static void count_windows(struct weir_snapshot *sn)
{
	sn->scratch_ends.bytes = 0;
	for (uint32_t w = 0; w < sn->cf.worker_count; w++)
		weir_buf_put(&sn->scratch_ends, sn->bundles[w]->window_ends,
			     sn->bundles[w]->window_end_count * sizeof *sn->bundles[w]->window_ends);
	struct weir_window_end *ends = (struct weir_window_end *)sn->scratch_ends.data;
	size_t count = sn->scratch_ends.bytes / sizeof *ends;
	if (count > 1)
		qsort(ends, count, sizeof *ends, compare_ends);
	for (size_t i = 0; i < count; i++)
		sn->windows += i == 0 || compare_ends(&ends[i - 1], &ends[i]) != 0;
}

static uint64_t results_in(const struct weir_bundle *b)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < b->chunk_count; i++)
		n += b->chunks[i].results;
	return n;
}

static enum weir_err note_refusals(struct weir_snapshot *sn, struct weir_diag **dg)
{
	for (uint32_t w = 0; w < sn->cf.worker_count; w++) {
		struct weir_bundle *b = sn->bundles[w];
		if (b->over)
			return weir_diag_set(dg, WEIR_E_STATE,
					     "the results of one order point, which leave together, have outgrown "
					     "memory.max: %llu of them in %zu bytes when there was no more. Nothing "
					     "after the last commit was kept. Give it more (-X memory.max=...), then "
					     "start again",
					     (unsigned long long)results_in(b), b->results.bytes);
		if (b->fail)
			return weir_diag_set(dg, WEIR_E_RECORD,
					     "%s (errors.policy is fail: nothing after the last commit was kept)",
					     b->refusal_count ? b->refusal[0].text : "a bad record");
		/* Every worker comes upon a wrong unit: one says it. */
		uint64_t scan = UINT64_C(1) << (b->warning_scan & 63);
		if (b->warning[0] != 0 && (sn->warned & scan) == 0 && sn->cf.warn)
			sn->cf.warn(sn->cf.note_ctx, b->warning);
		if (b->warning[0] != 0)
			sn->warned |= scan;
		for (uint32_t i = 0; i < b->refusal_count && sn->cf.note; i++)
			sn->cf.note(sn->cf.note_ctx, b->refusal[i].text, 1);
		if (b->refusals > b->refusal_count && sn->cf.note)
			sn->cf.note(sn->cf.note_ctx, NULL, b->refusals - b->refusal_count);
	}
	return WEIR_OK;
}

static bool gather(struct weir_snapshot *sn)
{
	bool any = false;
	for (uint32_t w = 0; w < sn->cf.worker_count; w++) {
		if (sn->bundles[w])
			continue;
		sn->bundles[w] = weir_ring_pop(&sn->cf.workers[w]->bundle);
		if (sn->bundles[w]) {
			WEIR_ASSERT(sn->bundles[w]->seq == sn->point->seq);
			sn->gathered++;
			any = true;
		}
	}
	return any;
}

enum weir_err weir_snapshot_step(struct weir_snapshot *sn, bool *moved, struct weir_diag **dg)
{
	*moved = false;
	if (!sn->point) {
		sn->point = weir_ring_pop(&sn->points);
		sn->gathered = 0;
		*moved = sn->point != NULL;
	}
	if (!sn->point)
		return WEIR_OK;
	*moved |= gather(sn);
	if (sn->gathered < sn->cf.worker_count)
		return WEIR_OK;
	*moved = true;
	enum weir_err err = note_refusals(sn, dg);
	if (err == WEIR_OK)
		err = write_results(sn, dg);
	/* At every order point, so that rows of the next one are judged by what is behind them; a barrier does so
	 * itself. */
	if (err == WEIR_OK && sn->cf.plan->repartition_count && !sn->point->barrier) {
		bool any = false;
		merge_times(sn);
		err = write_times(sn, &any, dg);
	}
	if (err == WEIR_OK && sn->point->barrier && sn->cf.log)
		err = commit(sn, dg);
	if (err != WEIR_OK)
		return err;
	count_windows(sn);
	publish_stats(sn);
	for (uint32_t w = 0; w < sn->cf.worker_count; w++) {
		sn->point->cost += weir_bundle_bytes(sn->bundles[w]);
		sn->bundles[w]->committed = sn->point->barrier;
		bool pushed = weir_ring_push(&sn->cf.workers[w]->bundle_back, sn->bundles[w]);
		WEIR_ASSERT(pushed);
		weir_ring_publish(&sn->cf.workers[w]->bundle_back);
		weir_park_wake(&sn->cf.workers[w]->park);
		sn->bundles[w] = NULL;
	}
	bool pushed = weir_ring_push(&sn->points_back, sn->point);
	WEIR_ASSERT(pushed);
	weir_ring_publish(&sn->points_back);
	if (sn->io_park)
		weir_park_wake(sn->io_park);
	sn->point = NULL;
	return WEIR_OK;
}
