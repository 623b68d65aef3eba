/* join.c: applying the merged rows of a join's two sides, slot by slot (join.h); join_hold.c holds and merges them.
 * @thread worker */
#include "hotpath/run/join_private.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/state/versions.h"

/* ---- making ---- */

static const struct weir_col **pointers_to(const struct weir_rows *r)
{
	const struct weir_col **p = weir_xcalloc(r->col_count + 1, sizeof *p);
	for (uint32_t c = 0; c < r->col_count; c++)
		p[c] = &r->cols[c];
	return p;
}

static uint32_t branch_lanes(const struct weir_plan *pl, const struct weir_plan_branch *br)
{
	return br->from == WEIR_FROM_SCAN ? pl->scans[br->origin].partition_count : pl->stages[br->origin].slot_count;
}

static void make_lanes(struct weir_join *jn, const struct weir_plan *pl)
{
	jn->lane_base = weir_xcalloc(pl->branch_count + 1, sizeof *jn->lane_base);
	for (uint32_t i = 0; i < jn->ps->input_count; i++)
		jn->lane_count += branch_lanes(pl, &pl->branches[jn->ps->inputs[i]]);
	jn->lanes = weir_xcalloc(jn->lane_count + 1, sizeof *jn->lanes);
	uint32_t n = 0;
	for (int tables = 1; tables >= 0; tables--) {
		for (uint32_t i = 0; i < jn->ps->input_count; i++) {
			uint32_t branch = jn->ps->inputs[i];
			const struct weir_plan_branch *br = &pl->branches[branch];
			if (jn->def->sides[br->side].table != (bool)tables)
				continue;
			bool up = br->from == WEIR_FROM_STAGE;
			jn->lane_base[branch] = n;
			for (uint32_t k = 0; k < branch_lanes(pl, br); k++)
				jn->lanes[n++] =
					(struct lane){.branch = branch,
						      .from = up ? k : pl->scans[br->origin].partition_base + k,
						      .up = up,
						      .topic = !up && pl->scans[br->origin].repartition >= 0};
		}
	}
}

static bool reads_keys(const struct weir_plan_stage *ps, const struct weir_expr *e)
{
	bool *used = weir_xcalloc(ps->column_count + 1, sizeof *used), any = false;
	if (e)
		weir_expr_columns_used(e, used, ps->column_count);
	for (uint32_t k = 0; k < ps->key_count; k++)
		any |= used[k];
	free(used);
	return any;
}

/* Whether keys have to be decoded into rows at all: a branch, the condition of a match, or late rows may want them. */
static bool find_key_readers(const struct weir_join *jn)
{
	const struct weir_plan *pl = jn->w->cf.plan;
	bool any = reads_keys(jn->ps, jn->ps->residual) || (jn->has_stage_branch && jn->w->cf.policies[0].late >= 0);
	for (uint32_t i = 0; i < jn->ps->branch_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[jn->ps->branches[i]];
		any |= reads_keys(jn->ps, br->filter) || reads_keys(jn->ps, br->time);
		for (uint32_t k = 0; k < br->expr_count; k++)
			any |= reads_keys(jn->ps, br->exprs[k]);
	}
	return any;
}

/* An inner join of two streams that needs no more than key and time, and wants no late row as it came. */
static bool is_inner(const struct weir_join *jn)
{
	const struct weir_state_def *def = jn->def;
	const struct weir_plan *pl = jn->w->cf.plan;
	bool inner = def->within && !weir_join_in_windows(def) && def->foreign == 0 && !jn->ps->residual &&
		     !def->sides[0].outer && !def->sides[1].outer;
	for (uint32_t i = 0; i < jn->ps->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[jn->ps->inputs[i]];
		inner &= !br->time && jn->w->cf.policies[br->from == WEIR_FROM_SCAN ? br->origin : 0].late < 0;
	}
	return inner;
}

enum weir_err weir_join_create(struct weir_join **out, struct weir_worker *w, uint32_t stage, struct weir_diag **dg)
{
	struct weir_join *jn = weir_xcalloc(1, sizeof *jn);
	const struct weir_plan *pl = w->cf.plan;
	jn->w = w;
	jn->stage = stage;
	jn->ps = &pl->stages[stage];
	jn->def = &jn->ps->def;
	jn->has_stage_branch = w->st->has_stage_branch[stage];
	jn->reads_keys = find_key_readers(jn);
	jn->inner = is_inner(jn);
	make_lanes(jn, pl);
	weir_join_sheets_create(jn);
	jn->task_before = weir_xcalloc(jn->ps->slot_count + 1, sizeof *jn->task_before);
	jn->slot_start = weir_xcalloc(jn->ps->slot_count + 2, sizeof *jn->slot_start);
	jn->first = weir_xcalloc(jn->ps->slot_count + 1, sizeof *jn->first);
	jn->memory = weir_xcalloc(jn->ps->slot_count + 1, sizeof *jn->memory);
	jn->pass = weir_xcalloc(jn->lane_count + 1, sizeof *jn->pass);
	jn->slot_rows = weir_xcalloc(jn->ps->slot_count + 1, sizeof *jn->slot_rows);
	jn->slot_at = weir_xcalloc(jn->ps->slot_count + 1, sizeof *jn->slot_at);
	jn->group = weir_xcalloc(jn->lane_count + 1, sizeof *jn->group);
	jn->start = weir_xcalloc(jn->lane_count + 1, sizeof *jn->start);
	weir_scratch_init(&jn->scratch);
	weir_rows_init(&jn->own, jn->def);
	jn->own_ptrs = pointers_to(&jn->own);
	if (jn->def->sides[0].table != jn->def->sides[1].table && !jn->def->versioned && jn->def->foreign == 0)
		weir_beside_create(jn);
	*out = jn;
	if (!jn->ps->residual)
		return WEIR_OK;
	weir_rows_init(&jn->trial, jn->def);
	jn->trial_ptrs = pointers_to(&jn->trial);
	return weir_program_create(&jn->residual, &jn->ps->residual, 1, dg);
}

void weir_join_blocks_free(struct block *bl)
{
	while (bl) {
		struct block *next = bl->next;
		free(bl);
		bl = next;
	}
}

void weir_join_destroy(struct weir_join *jn)
{
	if (!jn)
		return;
	weir_beside_destroy(jn);
	weir_join_sheets_destroy(jn);
	weir_join_blocks_free(jn->blocks);
	weir_join_blocks_free(jn->free_blocks);
	weir_join_blocks_free(jn->large);
	for (uint32_t k = 0; k < jn->ps->slot_count; k++)
		weir_buf_fini(&jn->first[k]);
	free(jn->first);
	free(jn->memory);
	free(jn->pass);
	free(jn->slot_rows);
	free(jn->slot_at);
	free(jn->group);
	free(jn->start);
	free(jn->counts);
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		weir_buf_fini(&jn->lanes[i].items);
		weir_buf_fini(&jn->lanes[i].moves);
	}
	weir_program_destroy(jn->residual);
	if (jn->trial_ptrs)
		weir_rows_fini(&jn->trial);
	weir_rows_fini(&jn->own);
	weir_scratch_fini(&jn->scratch);
	weir_buf_fini(&jn->found);
	weir_buf_fini(&jn->window);
	weir_buf_fini(&jn->foreign_key);
	free(jn->own_ptrs);
	free(jn->trial_ptrs);
	free(jn->lane_base);
	free(jn->lanes);
	free(jn->task_before);
	free(jn->slot_start);
	free(jn->order);
	free(jn->marks[0]);
	free(jn->marks[1]);
	free(jn->sorted);
	free(jn->tasks);
	free(jn);
}

uint64_t weir_join_held_bytes(const struct weir_join *jn)
{
	uint64_t bytes = jn->block_bytes + jn->large_bytes + jn->scratch.bytes_total + jn->found.capacity +
			 jn->window.capacity + (jn->counts ? COUNTS_MAX * sizeof *jn->counts : 0);
	uint64_t each = sizeof *jn->order + sizeof *jn->tasks + sizeof *jn->sorted +
			(jn->marks[0] ? 2 * sizeof *jn->marks[0] : 0);
	bytes += jn->order_capacity * each;
	for (uint32_t i = 0; i < jn->lane_count; i++)
		bytes += jn->lanes[i].items.capacity + jn->lanes[i].moves.capacity;
	for (uint32_t k = 0; k < jn->ps->slot_count; k++)
		bytes += jn->first[k].capacity;
	if (jn->pairs_of)
		bytes += jn->ps->slot_count * sizeof *jn->pairs_of + WEIR_JOIN_FILTER_BITS / 8;
	return bytes + (jn->beside ? weir_beside_held_bytes(jn) : 0);
}

/* ---- results ---- */

/* A join of two tables: a table itself, by the same key. */
static bool is_tables(const struct weir_join *jn)
{
	return jn->def->sides[0].table && jn->def->sides[1].table;
}

/* Copies the strings of row n's columns [from, to) into the rows' own memory. */
static uint64_t own_strings(struct weir_rows *r, uint32_t from, uint32_t to, uint32_t n)
{
	uint64_t bytes = 0;
	for (uint32_t i = from; i < to; i++) {
		struct weir_col *c = &r->cols[i];
		if (c->phys != WEIR_PHYS_STR || weir_col_is_null(c, n))
			continue;
		uint8_t *copy = weir_scratch_take(&r->scratch, c->str[n].bytes);
		weir_copy_short(copy, c->str[n].data, c->str[n].bytes);
		c->str[n].data = copy;
		bytes += c->str[n].bytes;
	}
	return bytes;
}

static int64_t pair_time(const struct weir_state_def *def, const struct weir_join_row *l, const struct weir_join_row *r)
{
	if (def->sides[0].table != def->sides[1].table)
		return (def->sides[0].table ? r : l)->time;
	return !l ? r->time : !r ? l->time : weir_max_i64(l->time, r->time);
}

/* Writes the pair of l and r, one of which may be NULL, as the next row of `to`. own: its strings are copied; a table's
 * always are, since the table may change before the rows are read. */
uint64_t weir_join_put_pair(struct weir_join *jn, struct weir_rows *to, const struct weir_join_row *l,
			    const struct weir_join_row *r, bool own)
{
	const struct weir_state_def *def = jn->def;
	const struct weir_join_row *side[2] = {l, r}, *key = l ? l : r;
	uint32_t n = to->count++, at = def->key_count;
	uint64_t bytes = 0;
	if (jn->reads_keys) {
		weir_key_decode(key->key, key->key_bytes, def->key_types, def->key_count, to->cols, n, &to->scratch);
		if (own)
			bytes += own_strings(to, 0, def->key_count, n);
	}
	for (uint32_t s = 0; s < 2; s++) {
		uint32_t count = def->sides[s].col_count;
		bool copy = own || def->sides[s].table;
		if (side[s])
			bytes += weir_row_unpack(side[s]->row, side[s]->row_bytes, to->cols + at, count, n,
						 copy ? &to->scratch : NULL);
		else
			weir_row_set_null(to->cols + at, count, n);
		at += count;
	}
	for (uint32_t s = 0; s < 2 && weir_join_in_windows(def); s++, at += 2) {
		if (!side[s]) {
			weir_row_set_null(to->cols + at, 2, n);
			continue;
		}
		to->cols[at].i64[n] = key->time + 1 - def->size_ms;
		to->cols[at + 1].i64[n] = key->time + 1;
	}
	to->time[n] = pair_time(def, l, r);
	to->op[n] = WEIR_OP_INSERT;
	to->entry[n] = NULL;
	return bytes;
}

/* Of a join with a table: pairs that fail what else they need are no matches. Inner joins have that in a filter. */
static void unmatch_failed(struct weir_join *jn, struct weir_rows *r, const struct weir_col *const *cols)
{
	struct weir_sel pass;
	/* Of two tables the side that can be missing. */
	uint32_t table = is_tables(jn) ? jn->def->sides[0].outer : jn->def->sides[1].table;
	uint32_t from = jn->def->key_count + (table ? jn->def->sides[0].col_count : 0);
	weir_sel_all(&pass, r->count);
	jn->errors.count = 0;
	weir_program_filter(jn->residual, cols, &pass, &r->scratch, &jn->errors);
	for (uint32_t i = 0, p = 0; i < r->count; i++) {
		if (p < pass.count && pass.row[p] == i)
			p++;
		else
			weir_row_set_null(r->cols + from, jn->def->sides[table].col_count, i);
	}
}

static void put_later(struct weir_join *jn, struct weir_rows *r)
{
	const struct weir_state_def *def = jn->def;
	struct weir_col *cols = r->cols + def->key_count;
	for (uint32_t s = 0; s < 2; s++) {
		weir_row_unpack_many(jn->packed[s], jn->later, jn->later_count, cols, def->sides[s].col_count,
				     jn->has_stage_branch ? &r->scratch : NULL);
		cols += def->sides[s].col_count;
	}
	/* Only tables have entries. */
	for (uint32_t i = 0; i < jn->later_count && (def->sides[0].table || def->sides[1].table); i++) {
		struct weir_entry *e = r->entry[jn->later[i]];
		if (e)
			e->flags &= (uint8_t)~WEIR_ENTRY_CHANGED;
		r->entry[jn->later[i]] = NULL;
	}
	jn->later_count = 0;
}

void weir_join_write_plain(struct weir_join *jn)
{
	const struct weir_state_def *def = jn->def;
	struct weir_rows *r = jn->out;
	struct weir_col *cols = r->cols + def->key_count;
	uint32_t first = jn->plain_first, count = jn->plain_count;
	for (uint32_t s = 0; s < 2; s++) {
		weir_row_unpack_plain(jn->plain[s], count, cols, def->sides[s].col_count, first,
				      jn->has_stage_branch ? &r->scratch : NULL);
		cols += def->sides[s].col_count;
	}
	memset(r->op + first, WEIR_OP_INSERT, count);
	memset(r->entry + first, 0, count * sizeof *r->entry);
	jn->plain_count = 0;
}

/* Hands the rows written so far on. */
void weir_join_flush(struct weir_join *jn, struct weir_bundle *b, uint32_t slot)
{
	struct weir_worker *w = jn->w;
	struct weir_rows *r = jn->out;
	if (!r || r->count == 0)
		return;
	const struct weir_col *const *cols = jn->fr ? jn->fr->col_ptrs : jn->own_ptrs;
	if (jn->plain_count)
		weir_join_write_plain(jn);
	if (jn->later_count)
		put_later(jn, r);
	if (jn->beside)
		weir_beside_write(jn, r);
	if (jn->residual && !jn->def->within)
		unmatch_failed(jn, r, cols);
	weir_worker_put_rows(w, b, jn->stage, slot, b->seq, r, is_tables(jn));
	for (uint32_t i = 0; i < r->count && is_tables(jn); i++)
		if (r->entry[i])
			((struct weir_entry *)r->entry[i])->flags &= (uint8_t)~WEIR_ENTRY_CHANGED;
	if (jn->fr) {
		struct weir_fragment *fr = jn->fr;
		jn->fr = NULL;
		jn->out = NULL;
		weir_worker_hand_over(w, b, fr);
	} else {
		weir_rows_reset(r);
	}
	jn->out_bytes = 0;
}

/* Room for one more row. False: no fragment is free. */
bool weir_join_room(struct weir_join *jn, struct weir_bundle *b, uint32_t slot)
{
	if (jn->out && (jn->out->count == WEIR_BATCH_ROWS || jn->out_bytes >= WEIR_ROWS_BYTES))
		weir_join_flush(jn, b, slot);
	if (jn->out)
		return true;
	if (!jn->has_stage_branch) {
		jn->out = &jn->own;
	} else {
		jn->fr = weir_worker_take_stage_fragment(jn->w, jn->stage);
		if (!jn->fr)
			return false;
		jn->fr->slot = slot;
		jn->out = &jn->fr->rows;
	}
	weir_rows_reset(jn->out);
	jn->out_bytes = 0;
	return true;
}

void weir_join_emit(struct weir_join *jn, uint32_t side, const struct weir_join_row *own,
		    const struct weir_join_row *other)
{
	jn->out_bytes +=
		weir_join_put_pair(jn, jn->out, side == 0 ? own : other, side == 0 ? other : own, jn->has_stage_branch);
}

void weir_join_put_key(struct weir_join *jn, const uint8_t *key, uint32_t key_bytes, uint32_t n)
{
	const struct weir_state_def *def = jn->def;
	struct weir_rows *to = jn->out;
	weir_key_decode(key, key_bytes, def->key_types, def->key_count, to->cols, n, &to->scratch);
	if (jn->has_stage_branch)
		jn->out_bytes += own_strings(to, 0, def->key_count, n);
}

void weir_join_emit_later(struct weir_join *jn, uint32_t side, const struct weir_join_row *own,
			  const struct weir_join_row *other, struct weir_entry *e)
{
	const struct weir_state_def *def = jn->def;
	struct weir_rows *to = jn->out;
	uint32_t n = to->count++, at = jn->later_count++;
	jn->later[at] = (uint16_t)n;
	jn->packed[side][at] = (struct weir_packed){own->row, own->row_bytes};
	jn->packed[1 - side][at] = other ? (struct weir_packed){other->row, other->row_bytes} : (struct weir_packed){0};
	to->time[n] = side == 0 ? pair_time(def, own, other) : pair_time(def, other, own);
	to->op[n] = WEIR_OP_INSERT;
	to->entry[n] = e;
	if (e)
		e->flags |= WEIR_ENTRY_CHANGED;
	if (other)
		__builtin_prefetch(other->row, 0, 3);
	if (jn->reads_keys)
		weir_join_put_key(jn, own->key, own->key_bytes, n);
	if (jn->has_stage_branch)
		jn->out_bytes += own->row_bytes + (other ? other->row_bytes : 0);
}

void weir_join_unpin(struct weir_join *jn, struct weir_bundle *b, uint32_t slot, const struct weir_entry *e)
{
	if (e && (e->flags & WEIR_ENTRY_CHANGED) != 0)
		weir_join_flush(jn, b, slot);
}

/* ---- applying ---- */

bool weir_join_put_found(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	const struct weir_join_found *found = (const struct weir_join_found *)(const void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found);
	while (jn->found_at < n) {
		struct weir_join_row other;
		if (!weir_join_room(jn, b, sl->number))
			return false;
		weir_join_buffer_get(jn->def, &found[jn->found_at++], &other);
		weir_join_emit_later(jn, jn->current->side, &jn->current->r, &other, NULL);
	}
	jn->current = NULL;
	return true;
}

/* Leaves those in found that fulfil what else a match needs. */
void weir_join_keep_matches(struct weir_join *jn, const struct held *h)
{
	struct weir_join_found *found = (struct weir_join_found *)(void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found), kept = 0;
	for (uint32_t from = 0; from < n; from += WEIR_BATCH_ROWS) {
		uint32_t to = from + WEIR_BATCH_ROWS < n ? from + WEIR_BATCH_ROWS : n;
		struct weir_sel pass;
		weir_rows_reset(&jn->trial);
		for (uint32_t i = from; i < to; i++) {
			struct weir_join_row other;
			weir_join_buffer_get(jn->def, &found[i], &other);
			(void)weir_join_put_pair(jn, &jn->trial, h->side == 0 ? &h->r : &other,
						 h->side == 0 ? &other : &h->r, false);
		}
		weir_sel_all(&pass, to - from);
		jn->errors.count = 0;
		weir_program_filter(jn->residual, jn->trial_ptrs, &pass, &jn->trial.scratch, &jn->errors);
		for (uint32_t i = 0; i < pass.count; i++)
			found[kept++] = found[from + pass.row[i]];
	}
	jn->found.bytes = kept * sizeof *found;
}

void weir_join_note_late(struct weir_join *jn, struct weir_bundle *b, uint32_t slot, const struct held *h)
{
	struct weir_worker *w = jn->w;
	const struct original *o = h->original;
	w->st->now->late++;
	w->st->now->by_reason[WEIR_REASON_LATE]++;
	if (!o)
		return;
	uint32_t output = (uint32_t)w->cf.policies[o->scan].late;
	if (o->up) {
		weir_worker_put_late_row(w, b, (struct weir_slice){o->record.value, o->record.value_bytes}, o->topic,
					 o->topic_partition, slot, 0, h->r.time, output, jn->stage);
		return;
	}
	struct weir_input in = {
		.records = &o->record, .topic = o->topic, .topic_partition = o->topic_partition, .seq = o->seq};
	weir_worker_put_late(w, b, &in, o->row, output, jn->stage);
}

/* A record beside a buffer. False: no room, come again. */
static bool apply_within(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h,
			 int64_t task)
{
	const struct weir_state_def *def = jn->def;
	uint32_t other = 1 - h->side;
	bool outer = def->sides[h->side].outer;
	/* Whatever it becomes, one row may have to be written. */
	if (outer && !weir_join_room(jn, b, sl->number))
		return false;
	if (weir_join_is_late(def, h->r.time, task)) {
		weir_join_note_late(jn, b, sl->number, h);
		return true;
	}
	jn->w->st->now->applied += !h->null_key || outer;
	jn->w->st->now->filtered += h->null_key && !outer;
	if (h->null_key) {
		if (outer)
			weir_join_emit_later(jn, h->side, &h->r, NULL, NULL);
		return true;
	}
	jn->found.bytes = 0;
	jn->found_at = 0;
	weir_join_buffer_find_matches(sl, h->side, &h->r, task, &jn->found);
	if (jn->found.bytes && jn->residual)
		weir_join_keep_matches(jn, h);
	const struct weir_join_found *found = (const struct weir_join_found *)(const void *)jn->found.data;
	bool matched = jn->found.bytes != 0;
	for (uint32_t i = 0; i < jn->found.bytes / sizeof *found && def->sides[other].outer; i++)
		weir_join_buffer_match(sl, found[i].bf);
	sl->records++;
	if (outer && !matched && weir_join_is_final(def, h->side, h->r.time, task)) {
		weir_join_emit_later(jn, h->side, &h->r, NULL, NULL);
		return true;
	}
	weir_join_buffer_put(sl, h->side, &h->r, matched);
	jn->current = matched ? h : NULL;
	return true;
}

/* A row of a global table. */
static void apply_global(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	struct weir_join_row row;
	sl->records++;
	weir_join_unpin(jn, b, sl->number, weir_join_table_entry(sl, h->side, &h->r, &row));
	if (h->deletes)
		weir_join_table_delete(sl, h->side, &h->r);
	else
		weir_join_table_put(sl, h->side, &h->r);
	jn->w->st->now->applied++;
}

/* What the rows to come will touch, in steps. */
static void prefetch(const struct weir_join *jn, const struct weir_slot *sl)
{
	uint32_t left = jn->end - jn->at;
	if (left > AHEAD_ROW) {
		const uint8_t *p = (const uint8_t *)weir_join_held(&jn->sorted[jn->at + AHEAD_ROW]);
		__builtin_prefetch(p, 0, 3);
		__builtin_prefetch(p + 64, 0, 3);
		__builtin_prefetch(p + 128, 0, 3);
	}
	for (int step = 0; step < 2; step++) {
		uint32_t ahead = step == 0 ? AHEAD_INDEX : AHEAD_ENTRY;
		if (left <= ahead)
			continue;
		const struct held *h = weir_join_held(&jn->sorted[jn->at + ahead]);
		if (weir_join_in_windows(jn->def) || jn->def->foreign != 0)
			continue;
		if (jn->def->buffers)
			weir_join_buffer_prefetch(sl, h->side, &h->r, step == 1);
		else
			weir_join_table_prefetch(sl, jn->def->sides[0].table ? 0 : 1, h->r.hash, step == 1);
	}
}

/* ---- tables with tables ---- */

/* Whether a key is in the result, by which sides have it. An outer side is one whose rows need no match. */
static bool is_there(const struct weir_state_def *def, bool l, bool r)
{
	return (l && r) || (l && def->sides[0].outer) || (r && def->sides[1].outer);
}

/* Which sides have h's key: entries and rows. NULL is no other row's. */
static void look_up(const struct weir_slot *sl, const struct held *h, struct weir_entry *e[2],
		    struct weir_join_row row[2])
{
	for (uint32_t s = 0; s < 2; s++)
		e[s] = h->null_key && s != h->side ? NULL : weir_join_table_entry(sl, s, &h->r, &row[s]);
}

static void put_number(const struct weir_join *jn, const struct weir_slot *sl, uint32_t row)
{
	if (jn->def->numbered)
		jn->out->cols[jn->out->col_count - 1].i64[row] = (int64_t)sl->records;
}

/* The row of h's key as far as any of it is known: what the sides held, or h brings. In doubt, for a delete. */
static void put_absent(struct weir_join *jn, const struct held *h, const struct weir_join_row *l,
		       const struct weir_join_row *r)
{
	const struct weir_state_def *def = jn->def;
	struct weir_rows *to = jn->out;
	if (l == NULL && r == NULL && !h->deletes) {
		l = h->side == 0 ? &h->r : NULL;
		r = h->side == 0 ? NULL : &h->r;
	}
	if (l != NULL || r != NULL) {
		jn->out_bytes += weir_join_put_pair(jn, to, l, r, true);
		return;
	}
	uint32_t n = to->count++;
	if (jn->reads_keys) {
		weir_key_decode(h->r.key, h->r.key_bytes, def->key_types, def->key_count, to->cols, n, &to->scratch);
		jn->out_bytes += own_strings(to, 0, def->key_count, n);
	}
	weir_row_set_null(to->cols + def->key_count, def->sides[0].col_count + def->sides[1].col_count, n);
	to->entry[n] = NULL;
}

/* An update of either table. The bit that says whether the key's row stands in the result is in the left entry, or in
 * the right one where there is no left. False: no room, come again. */
static bool apply_tables(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	const struct weir_state_def *def = jn->def;
	struct weir_entry *e[2];
	struct weir_join_row row[2];
	if (!weir_join_room(jn, b, sl->number))
		return false;
	look_up(sl, h, e, row);
	struct weir_entry *holder = e[0] ? e[0] : e[1];
	if (jn->ps->retracts && jn->out->count + 2 > WEIR_BATCH_ROWS) {
		weir_join_flush(jn, b, sl->number); /* the row that was and the row that is go together */
		if (!weir_join_room(jn, b, sl->number))
			return false;
	}
	if (holder && (holder->flags & WEIR_ENTRY_CHANGED) != 0) {
		/* What becomes of its row so far decides what this one is. */
		weir_join_flush(jn, b, sl->number);
		if (!weir_join_room(jn, b, sl->number))
			return false;
	}
	struct weir_rows *out = jn->out;
	bool was = is_there(def, e[0] != NULL, e[1] != NULL);
	bool shown = was && (jn->ps->retracts || (holder->flags & WEIR_ENTRY_EMITTED) != 0);
	bool has[2] = {e[0] != NULL, e[1] != NULL};
	has[h->side] = !h->deletes;
	bool is = is_there(def, has[0], has[1]);
	bool tell = !is && !shown && sl->in_doubt && !(holder && (holder->flags & WEIR_ENTRY_TOLD) != 0);
	if ((shown && (!is || jn->ps->retracts)) || WEIR_UNLIKELY(tell)) {
		/* The row as it was; the time is that of its end. */
		if (tell)
			put_absent(jn, h, e[0] ? &row[0] : NULL, e[1] ? &row[1] : NULL);
		else
			jn->out_bytes +=
				weir_join_put_pair(jn, out, e[0] ? &row[0] : NULL, e[1] ? &row[1] : NULL, true);
		uint32_t n = out->count - 1;
		out->op[n] = WEIR_OP_DELETE;
		put_number(jn, sl, n);
		out->time[n] = weir_max_i64(h->r.time, e[1 - h->side] ? row[1 - h->side].time : h->r.time);
	}
	if (h->deletes)
		weir_join_table_delete(sl, h->side, &h->r);
	else
		weir_join_table_put(sl, h->side, &h->r);
	sl->records++;
	jn->w->st->now->applied++;
	look_up(sl, h, e, row);
	holder = e[0] ? e[0] : e[1];
	for (uint32_t s = 0; s < 2; s++)
		if (e[s])
			weir_slot_set_emitted(
				sl, e[s], e[s] == holder && is && !jn->ps->retracts && (shown || jn->has_stage_branch));
	if (tell && holder)
		holder->flags |= WEIR_ENTRY_TOLD;
	if (is) {
		jn->out_bytes += weir_join_put_pair(jn, out, e[0] ? &row[0] : NULL, e[1] ? &row[1] : NULL, true);
		uint32_t n = out->count - 1;
		put_number(jn, sl, n);
		out->op[n] = shown ? WEIR_OP_UPDATE : WEIR_OP_INSERT;
		out->time[n] = weir_max_i64(out->time[n], h->r.time); /* a delete of one side dates what is left */
		if (!jn->ps->retracts) {
			out->entry[n] = holder;
			holder->flags |= WEIR_ENTRY_CHANGED;
		}
	}
	return true;
}

/* A row of the table's history, or one that waits for it. False: no room, come again. */
static bool apply_versioned(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	const struct weir_state_def *def = jn->def;
	bool outer = def->sides[0].outer;
	if (h->side == 1) {
		/* Rows that wait are those that the last order point left, or newer ones. */
		int64_t task = jn->task_before[weir_join_is_direct(jn) ? sl->number : 0];
		weir_versions_put(sl, &h->r, h->deletes, task == WEIR_TIME_UNSET ? task : task - def->grace_ms);
	} else if (!h->null_key) {
		weir_join_buffer_put(sl, 0, &h->r, false);
	} else if (outer) {
		if (!weir_join_room(jn, b, sl->number))
			return false;
		weir_join_emit(jn, 0, &h->r, NULL);
	}
	sl->records++;
	bool counts = h->side == 1 || !h->null_key || outer;
	jn->w->st->now->applied += counts;
	jn->w->st->now->filtered += !counts;
	return true;
}

/* What the table's partitions have passed: INT64_MAX where all of them are idle or at their bound. */
static int64_t table_time(const struct weir_join *jn, uint32_t slot)
{
	const struct weir_plan *pl = jn->w->cf.plan;
	int64_t low = INT64_MAX;
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		const struct lane *ln = &jn->lanes[i];
		const struct weir_plan_branch *br = &pl->branches[ln->branch];
		bool out;
		if (br->side != 1 ||
		    (weir_join_is_direct(jn) && ln->from - pl->scans[br->origin].partition_base != slot))
			continue;
		int64_t now = weir_join_lane_time(jn, ln, &out);
		if (!out)
			low = weir_min_i64(low, now);
	}
	return low;
}

static bool apply(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct weir_join_turn *t)
{
	if (weir_join_in_windows(jn->def)) {
		weir_join_apply_window(jn, b, sl, weir_join_held(t), weir_join_task_at(jn, t));
		return true;
	}
	if (jn->def->within)
		return apply_within(jn, b, sl, weir_join_held(t), weir_join_task_at(jn, t));
	if (jn->def->foreign != 0)
		return weir_join_apply_foreign(jn, b, sl, weir_join_held(t));
	if (is_tables(jn))
		return apply_tables(jn, b, sl, weir_join_held(t));
	return apply_versioned(jn, b, sl, weir_join_held(t));
}

static bool run_rows(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	if (jn->sheet_run.active)
		return weir_join_run_sheets(jn, b, sl);
	if (jn->inner)
		return weir_join_run_inner(jn, b, sl);
	if (jn->beside)
		return weir_beside_run(jn, b, sl);
	for (;;) {
		if (jn->current &&
		    !(jn->def->foreign != 0 ? weir_join_put_foreign(jn, b, sl) : weir_join_put_found(jn, b, sl)))
			return false;
		if (jn->at == jn->end)
			return true;
		const struct weir_join_turn *t = &jn->sorted[jn->at];
		prefetch(jn, sl);
		if (!apply(jn, b, sl, t))
			return false;
		jn->at++;
	}
}

/* Rows that are final without a match. */
static bool run_final(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, bool close_all,
		      int64_t *end_max)
{
	const struct weir_join_found *found = (const struct weir_join_found *)(const void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found);
	while (jn->found_at < n) {
		struct weir_join_row row;
		if (!weir_join_room(jn, b, sl->number))
			return false;
		const struct weir_join_found *fd = &found[jn->found_at++];
		uint32_t side = weir_join_buffer_side(sl, fd->bf);
		weir_join_buffer_get(jn->def, fd, &row);
		if (jn->def->versioned) {
			struct weir_join_row version;
			row.hash = weir_hash(row.key, row.key_bytes);
			bool there = weir_versions_find(sl, &row, row.time, &version);
			if (there || jn->def->sides[0].outer)
				weir_join_emit_later(jn, 0, &row, there ? &version : NULL, NULL);
			continue;
		}
		weir_join_emit_later(jn, side, &row, NULL, NULL);
		if (close_all)
			*end_max = weir_max_i64(*end_max, row.time + weir_join_reach_ms(jn->def, side) + 1);
	}
	return true;
}

/* What has come of a global table since the last order point: nothing is written for it. Rows that go into every slot
 * count once. */
static void apply_first(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	const struct held *const *h = (const struct held *const *)(const void *)jn->first[sl->number].data;
	struct weir_counters *now = jn->w->st->now;
	uint64_t applied = now->applied, filtered = now->filtered;
	for (uint32_t i = 0; i < jn->first[sl->number].bytes / sizeof *h; i++)
		apply_global(jn, b, sl, h[i]);
	if (jn->ps->broadcast && sl->number != 0) {
		now->applied = applied;
		now->filtered = filtered;
	}
}

bool weir_join_run(struct weir_join *jn, struct weir_bundle *b, uint32_t slot, bool close_all, int64_t *end_max)
{
	struct weir_slot *sl = jn->w->slots[jn->stage][slot];
	int64_t task = weir_times_task(jn->w->times, jn->stage, slot);
	if (!jn->running) {
		jn->running = true;
		jn->phase = PHASE_ROWS;
		jn->at = jn->slot_start[slot];
		jn->end = jn->slot_start[slot + 1];
		jn->current = NULL;
		apply_first(jn, b, sl);
		if (jn->beside)
			weir_beside_begin(jn, b, sl);
		if (jn->pairs_of)
			weir_join_sheets_begin(jn, slot);
	}
	if (jn->phase == PHASE_ROWS) {
		if (!run_rows(jn, b, sl))
			return false;
		jn->phase = PHASE_FINAL;
		jn->found.bytes = 0;
		jn->found_at = 0;
		jn->window_open = false;
		if (weir_join_in_windows(jn->def))
			; /* below, window by window */
		else if (jn->def->versioned)
			weir_join_take_final(sl, table_time(jn, slot), close_all, &jn->found);
		else if (jn->def->within)
			weir_join_take_final(sl, task, close_all, &jn->found);
	}
	if (jn->phase == PHASE_FINAL) {
		if (weir_join_in_windows(jn->def) ? !weir_join_run_windows(jn, b, sl, task, close_all, end_max)
						  : !run_final(jn, b, sl, close_all, end_max))
			return false;
		jn->phase = PHASE_END;
	}
	weir_join_flush(jn, b, slot);
	if (jn->fr) { /* taken for a row that was not written: empty, it finds its way back to the pool */
		jn->fr->rows.count = 0;
		struct weir_fragment *fr = jn->fr;
		jn->fr = NULL;
		weir_worker_send_stage_fragment(jn->w, fr);
	}
	jn->out = NULL;
	weir_join_drop(sl, jn->def->versioned ? table_time(jn, slot) : task);
	jn->running = false;
	return true;
}
