/* doubt.c: slots in doubt after a crash (doubt.h). @thread worker; init begins */
#include "hotpath/run/doubt.h"

#include <stdlib.h>

#include "hotpath/run/worker_state.h"
#include "hotpath/state/row.h"
#include "hotpath/state/slot.h"

/* Updates of a slot that feeds tables: struct kept, then the packed row, one behind the other. */
struct kept {
	int64_t time;
	uint32_t bytes;
	uint32_t op;
};
struct kept_rows {
	struct weir_buf rows;
	size_t at; /* what stands before has been handed on */
};

struct weir_doubt {
	bool *stage;             /* in doubt, and feeds tables: keeps each update */
	struct kept_rows **kept; /* by stage and slot; NULL: nothing yet */
	const struct weir_col **cols;
};

/* ---- which stages ---- */

static const char *topic_of(const struct weir_plan_sink *sk)
{
	return sk->table->options.topic ? sk->table->options.topic : sk->table->name;
}

/* Whether a branch other than `branch` writes the same topic: its rows may have the keys of ours. */
static bool is_shared(const struct weir_plan *pl, uint32_t branch)
{
	const struct weir_plan_sink *sk = &pl->sinks[pl->branches[branch].target];
	for (uint32_t b = 0; b < pl->branch_count; b++) {
		const struct weir_plan_branch *br = &pl->branches[b];
		if (b == branch || br->to != WEIR_TO_SINK || pl->sinks[br->target].repartition >= 0 ||
		    !pl->sinks[br->target].table)
			continue;
		if (strcmp(topic_of(&pl->sinks[br->target]), topic_of(sk)) == 0)
			return true;
	}
	return false;
}

/* Rows of windows: whether the sink's key tells those of one window from those of another. */
static bool key_has_window(const struct weir_plan *pl, const struct weir_plan_branch *br)
{
	const struct weir_plan_stage *ps = &pl->stages[br->origin];
	const struct weir_plan_sink *sk = &pl->sinks[br->target];
	if ((ps->def.kind != WEIR_STATE_WINDOW && ps->def.kind != WEIR_STATE_SLIDING) || sk->key_windowed)
		return true;
	bool *used = weir_xcalloc(ps->column_count + 1, sizeof *used);
	for (uint32_t k = 0; k < sk->key_count; k++)
		weir_expr_columns_used(br->exprs[sk->key_columns[k]], used, ps->column_count);
	bool any = used[ps->column_count - 2] || used[ps->column_count - 1];
	free(used);
	return any;
}

/* Whether a delete too many does no harm in what the branch leads to. */
static bool takes_deletes(const struct weir_worker *w, uint32_t branch)
{
	const struct weir_plan *pl = w->cf.plan;
	const struct weir_plan_branch *br = &pl->branches[branch];
	if (br->to == WEIR_TO_STAGE)
		return br->table;
	const struct weir_plan_sink *sk = &pl->sinks[br->target];
	if (sk->repartition >= 0)
		return br->table;
	return w->cf.outputs[br->target].kind == WEIR_OUTPUT_TOPIC && sk->is_table && sk->has_key && !sk->changelog &&
	       !is_shared(pl, branch) && key_has_window(pl, br);
}

static bool can_doubt(const struct weir_worker *w, uint32_t stage)
{
	const struct weir_plan_stage *ps = &w->cf.plan->stages[stage];
	const struct weir_state_def *def = &ps->def;
	bool tables = def->kind == WEIR_STATE_JOIN && def->sides[0].table && def->sides[1].table && !ps->retracts;
	bool can = def->changes || tables;
	for (uint32_t i = 0; i < ps->branch_count; i++)
		can = can && takes_deletes(w, ps->branches[i]);
	return can;
}

/* ---- life ---- */

static bool feeds_stage(const struct weir_worker *w, uint32_t stage)
{
	return w->cf.plan->stages[stage].def.changes && w->st->has_stage_branch[stage];
}

void weir_doubt_begin(struct weir_worker *w, const bool *kept, uint32_t partitions)
{
	const struct weir_plan *pl = w->cf.plan;
	WEIR_ASSERT(!w->st->doubt);
	struct weir_doubt *db = w->st->doubt = weir_xcalloc(1, sizeof *db);
	uint32_t columns = 0;
	db->stage = weir_xcalloc(pl->stage_count + 1, sizeof *db->stage);
	db->kept = weir_xcalloc(pl->stage_count + 1, sizeof *db->kept);
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		bool any = false, can = can_doubt(w, s);
		for (uint32_t k = 0; k < pl->stages[s].slot_count && can; k++) {
			if (!w->slots[s][k] || (kept && kept[k % partitions]))
				continue;
			w->slots[s][k]->in_doubt = any = true;
		}
		if (!any || !feeds_stage(w, s))
			continue;
		uint32_t n = weir_state_columns(&pl->stages[s].def);
		columns = n > columns ? n : columns;
		db->stage[s] = true;
		db->kept[s] = weir_xcalloc(pl->stages[s].slot_count, sizeof **db->kept);
	}
	db->cols = weir_xcalloc(columns + 1, sizeof *db->cols);
}

void weir_doubt_end(struct weir_worker *w)
{
	struct weir_doubt *db = w->st->doubt;
	const struct weir_plan *pl = w->cf.plan;
	if (!db)
		return;
	w->st->doubt = NULL;
	for (uint32_t s = 0; s < pl->stage_count; s++)
		for (uint32_t k = 0; k < pl->stages[s].slot_count; k++) {
			if (w->slots[s][k])
				w->slots[s][k]->in_doubt = false;
			if (db->kept[s])
				weir_buf_fini(&db->kept[s][k].rows);
		}
	for (uint32_t s = 0; s < pl->stage_count; s++)
		free(db->kept[s]);
	free(db->kept);
	free(db->stage);
	free(db->cols);
	free(db);
}

/* ---- each update ---- */

bool weir_doubt_keeps(const struct weir_worker *w, uint32_t stage)
{
	return w->st->doubt->stage[stage];
}

void weir_doubt_keep(struct weir_worker *w, uint32_t stage, uint32_t slot)
{
	struct weir_doubt *db = w->st->doubt;
	struct weir_slot *sl = w->slots[stage][slot];
	struct weir_buf *to = &db->kept[stage][slot].rows;
	struct weir_rows *rows = weir_worker_rows(w, stage);
	for (uint32_t c = 0; c < rows->col_count; c++)
		db->cols[c] = &rows->cols[c];
	while (weir_slot_changes(sl, rows)) {
		w->st->now->agg_errors += rows->agg_errors;
		for (uint32_t i = 0; i < rows->count; i++) {
			struct kept head = {.time = rows->time[i], .op = rows->op[i]};
			head.bytes = (uint32_t)weir_row_bytes(db->cols, rows->col_count, i);
			weir_buf_put(to, &head, sizeof head);
			(void)weir_row_pack(db->cols, rows->col_count, i, weir_buf_room(to, head.bytes));
			to->bytes += head.bytes;
			if (rows->entry[i])
				weir_slot_set_emitted(sl, rows->entry[i], true);
		}
	}
}

void weir_doubt_keep_stale(struct weir_worker *w, uint32_t stage, const struct weir_keyed *keyed, uint32_t row)
{
	uint32_t slot = keyed->slot[row];
	struct weir_slot *sl = w->slots[stage][slot];
	struct weir_buf was = {0};
	int64_t time;
	if (weir_rows_put_stale(sl, keyed, row, &was, &time)) {
		weir_doubt_keep(w, stage, slot);
		weir_rows_put_back(sl, keyed, row, &was, time);
		weir_doubt_keep(w, stage, slot);
	}
	weir_buf_fini(&was);
}

/* The next rows of kr as those of fr. */
static void take(struct kept_rows *kr, struct weir_rows *rows)
{
	uint64_t bytes = 0;
	weir_rows_reset(rows);
	while (kr->at < kr->rows.bytes && rows->count < WEIR_BATCH_ROWS && bytes < WEIR_ROWS_BYTES) {
		struct kept head;
		uint32_t n = rows->count++;
		memcpy(&head, kr->rows.data + kr->at, sizeof head);
		kr->at += sizeof head;
		bytes += weir_row_unpack(kr->rows.data + kr->at, head.bytes, rows->cols, rows->col_count, n,
					 &rows->scratch);
		kr->at += head.bytes;
		rows->time[n] = head.time;
		rows->op[n] = (uint8_t)head.op;
		rows->entry[n] = NULL;
	}
}

bool weir_doubt_hand_on(struct weir_worker *w, struct weir_bundle *b, uint32_t stage, uint32_t slot)
{
	struct weir_doubt *db = w->st->doubt;
	if (!db || !db->stage[stage])
		return true;
	struct kept_rows *kr = &db->kept[stage][slot];
	while (kr->at < kr->rows.bytes) {
		struct weir_fragment *fr = weir_worker_take_stage_fragment(w, stage);
		if (!fr)
			return false;
		fr->slot = slot;
		take(kr, &fr->rows);
		weir_worker_hand_over(w, b, fr);
	}
	kr->rows.bytes = kr->at = 0;
	return true;
}
