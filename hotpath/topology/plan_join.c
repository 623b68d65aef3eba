/* plan_join.c: the stages of tables that are read and of joins (plan.h). @thread init. */
#include "hotpath/topology/planner.h"

/* ---- tables that are read ---- */

/* The state of a table on its way to a sink: its key, and the columns that ld reads. */
enum weir_err weir_planner_rows(struct weir_planner *p, const struct weir_node *node, const struct weir_plan_load *ld,
				uint32_t *out)
{
	uint32_t index = 0;
	const struct weir_table_def *td = node->table;
	enum weir_err err = weir_planner_stage_add(p, node, td->name, &index);
	if (err != WEIR_OK)
		return err;
	struct weir_plan_stage *st = &p->stages[index].stage;
	struct weir_state_def *def = &st->def;
	bool *used = weir_mem_take(p->m, node->column_count + 1);
	weir_planner_load_used(ld, used, node->column_count);
	for (uint32_t k = 0; k < td->primary_key_count; k++)
		used[td->primary_key[k]] = false;
	uint32_t most = td->primary_key_count + node->column_count + 1, n = 0;
	uint32_t *column = weir_mem_take(p->m, most * sizeof *column);
	for (uint32_t k = 0; k < td->primary_key_count; k++)
		column[n++] = td->primary_key[k];
	for (uint32_t c = 0; c < node->column_count; c++)
		if (used[c])
			column[n++] = c;
	const char **names = weir_mem_take(p->m, most * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, most * sizeof *types);
	const struct weir_expr **exprs = weir_mem_take(p->m, most * sizeof *exprs);
	for (uint32_t i = 0; i < n; i++) {
		names[i] = node->columns[column[i]].name;
		types[i] = node->columns[column[i]].type;
		exprs[i] = weir_expr_column(p->m, column[i], &types[i], names[i]);
	}
	p->stages[index].rows_column = column;
	st->key_count = td->primary_key_count;
	st->reject_null_key = true;
	st->column_count = n;
	st->column_names = names;
	st->column_types = types;
	st->hold_ms = node->grace_ms;
	struct weir_state_side *side = weir_mem_take(p->m, sizeof *side);
	struct weir_agg *agg = weir_mem_take(p->m, sizeof *agg);
	*side = (struct weir_state_side){.table = true, .col_count = n - st->key_count, .types = types + st->key_count};
	weir_state_row_agg(agg);
	*def = (struct weir_state_def){.name = st->name,
				       .kind = WEIR_STATE_ROWS,
				       .time_max = p->settings->task_time_max,
				       .key_count = st->key_count,
				       .key_types = types,
				       .key_texts = names,
				       .agg_count = 1,
				       .aggs = agg,
				       .side_count = 1,
				       .sides = side};
	err = weir_state_def_init(def, p->dg);
	if (err == WEIR_OK)
		err = weir_planner_walk(
			p, node,
			(struct weir_plan_load){
				.exprs = exprs, .count = n, .to = WEIR_TO_STAGE, .target = index, .table = true},
			0);
	p->stages[index].busy = false;
	*out = index;
	return err;
}

/* ---- joins ---- */

/* Whether rows of side s can be missing from a result: the other side's stand alone. */
static bool side_can_miss(enum weir_join_kind kind, uint32_t s)
{
	return kind == WEIR_JOIN_FULL || kind == (s == 0 ? WEIR_JOIN_RIGHT : WEIR_JOIN_LEFT);
}

static bool is_window_column(const struct weir_column *c)
{
	return c->role == WEIR_ROLE_WINDOW_START || c->role == WEIR_ROLE_WINDOW_END || c->role == WEIR_ROLE_WINDOW_TIME;
}

/* The columns of a join's stage: keys, what either side brings, and of rows in windows each side's bounds, which are
 * not kept with the row. kept[s]: which of the input's columns those of side s are. */
static enum weir_err join_stage_columns(struct weir_planner *p, const struct weir_node *node, uint32_t index,
					struct weir_state_side *sides, uint32_t *kept[2])
{
	static const struct weir_type bound = {.kind = WEIR_KIND_TIMESTAMP, .precision = 3};
	const struct weir_join_spec *spec = node->join;
	bool windows = spec->window.kind != WEIR_WINDOW_NONE;
	uint32_t keys = spec->key_count, n = keys, most = keys + node->column_count + 5;
	const char **names = weir_mem_take(p->m, most * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, most * sizeof *types);
	const struct weir_expr **map = weir_mem_take(p->m, most * sizeof *map);
	for (uint32_t k = 0; k < keys; k++) {
		names[k] = spec->keys[0][k]->op == WEIR_EXPR_COLUMN
				   ? node->inputs[0]->columns[spec->keys[0][k]->column].name
				   : weir_mem_printf(p->m, "key-%u", k + 1);
		types[k] = spec->keys[0][k]->type;
		types[k].not_null = false;
	}
	for (uint32_t s = 0, at = 0; s < 2; s++) {
		const struct weir_node *in = node->inputs[s];
		uint32_t begin = n;
		kept[s] = weir_mem_take(p->m, (in->column_count + 1) * sizeof *kept[s]);
		for (uint32_t c = 0; c < in->column_count; c++, at++) {
			if (windows && is_window_column(&in->columns[c]))
				continue;
			names[n] = node->columns[at].name;
			types[n] = node->columns[at].type;
			map[at] = weir_expr_column(p->m, n, &types[n], names[n]);
			kept[s][n++ - begin] = c;
		}
		sides[s] = (struct weir_state_side){.table = in->is_table,
						    .outer = side_can_miss(spec->kind, 1 - s),
						    .col_count = n - begin,
						    .types = types + begin};
	}
	for (uint32_t s = 0, at = 0; s < 2 && windows; s++, n += 2) {
		const struct weir_node *in = node->inputs[s];
		names[n] = "window_start";
		names[n + 1] = "window_end";
		types[n] = types[n + 1] = bound;
		for (uint32_t c = 0; c < in->column_count; c++, at++) {
			enum weir_column_role role = in->columns[c].role;
			uint32_t from = n + (role != WEIR_ROLE_WINDOW_START);
			if (!is_window_column(&in->columns[c]))
				continue;
			map[at] = weir_expr_column(p->m, from, &types[from], names[from]);
			if (role != WEIR_ROLE_WINDOW_TIME)
				continue;
			enum weir_err err = weir_planner_window_time(p, map[at], &in->columns[c].type, &map[at]);
			if (err != WEIR_OK)
				return err;
		}
	}
	struct weir_plan_stage *st = &p->stages[index].stage;
	st->key_count = keys;
	st->column_count = n;
	st->column_names = names;
	st->column_types = types;
	p->stages[index].join_map = map;
	return WEIR_OK;
}

enum weir_err weir_planner_join(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out)
{
	const struct weir_join_spec *spec = node->join;
	uint32_t index = 0;
	/* Of two tables: one bit a row says whether it stands in the result, so each reader gets a state of its own. */
	for (uint32_t i = 0; i < p->stage_count; i++)
		if (p->stages[i].node == node && (!node->is_table || p->stages[i].busy)) {
			*out = i;
			return p->stages[i].busy
				       ? weir_planner_fail(p, "the topology has a cycle at state %s", node->state_name)
				       : WEIR_OK;
		}
	enum weir_err err = weir_planner_stage_add(p, node, node->state_name, &index);
	if (err != WEIR_OK)
		return err;
	struct weir_plan_stage *st = &p->stages[index].stage;
	uint32_t keys = spec->key_count;
	struct weir_state_side *sides = weir_mem_take(p->m, 2 * sizeof *sides);
	uint32_t *kept[2];
	err = join_stage_columns(p, node, index, sides, kept);
	if (err != WEIR_OK)
		return err;
	st->residual = spec->residual ? weir_expr_substitute(spec->residual, p->stages[index].join_map,
							     node->column_count, p->m)
				      : NULL;
	struct weir_agg *agg = weir_mem_take(p->m, sizeof *agg);
	weir_state_row_agg(agg);
	st->def = (struct weir_state_def){
		.name = st->name,
		.kind = WEIR_STATE_JOIN,
		.time_max = p->settings->task_time_max,
		.grace_ms = node->state_grace_ms,
		.key_count = keys,
		.key_types = st->column_types,
		.agg_count = spec->within || spec->versioned ? 0 : 1,
		.aggs = agg,
		.side_count = 2,
		.sides = sides,
		.within = spec->within,
		.versioned = spec->versioned,
		.before_ms = spec->before_ms,
		.after_ms = spec->after_ms,
		.size_ms = spec->window.size_ms,
		.advance_ms = spec->window.kind == WEIR_WINDOW_TUMBLE ? spec->window.size_ms : spec->window.advance_ms,
		.offset_ms = spec->window.offset_ms};
	err = weir_state_def_init(&st->def, p->dg);
	if (err != WEIR_OK)
		return err;
	st->hold_ms = spec->within ? weir_join_keep_ms(&st->def) : node->state_grace_ms;
	for (uint32_t s = 0; s < 2 && err == WEIR_OK; s++) {
		const struct weir_node *in = node->inputs[s];
		struct weir_plan_load ld = {
			.count = keys + sides[s].col_count,
			.to = WEIR_TO_STAGE,
			.target = index,
			.side = s,
			.table = in->is_table,
			.time = weir_planner_time_column(p, in, spec->within || spec->versioned ? spec->time[s] : -1)};
		ld.exprs = weir_mem_take(p->m, (ld.count + 1) * sizeof *ld.exprs);
		for (uint32_t k = 0; k < keys; k++)
			ld.exprs[k] = spec->keys[s][k];
		for (uint32_t i = 0; i < sides[s].col_count; i++) {
			const struct weir_column *c = &in->columns[kept[s][i]];
			ld.exprs[keys + i] = weir_expr_column(p->m, kept[s][i], &c->type, c->name);
		}
		err = weir_planner_walk(p, in, ld, depth);
	}
	p->stages[index].busy = false;
	*out = index;
	return err;
}

/* A table as what its rows were and are: a left join with a table that is empty. */
enum weir_err weir_planner_history(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out)
{
	const uint32_t *key = node->table_key;
	uint32_t index = 0, keys = node->table_key_count, n = keys + node->column_count;
	const char *name = node->kind == WEIR_NODE_SOURCE ? node->table->name
							  : weir_mem_printf(p->m, "%s-history", node->state_name);
	enum weir_err err = weir_planner_stage_add(p, node, name, &index);
	if (err != WEIR_OK)
		return err;
	struct weir_plan_stage *st = &p->stages[index].stage;
	const char **names = weir_mem_take(p->m, (n + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (n + 1) * sizeof *types);
	struct weir_plan_load ld = {.count = n, .to = WEIR_TO_STAGE, .target = index, .table = true};
	ld.exprs = weir_mem_take(p->m, (n + 1) * sizeof *ld.exprs);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = i < keys ? key[i] : i - keys;
		names[i] = node->columns[c].name;
		types[i] = node->columns[c].type;
		ld.exprs[i] = weir_expr_column(p->m, c, &types[i], names[i]);
	}
	struct weir_state_side *sides = weir_mem_take(p->m, 2 * sizeof *sides);
	struct weir_agg *agg = weir_mem_take(p->m, sizeof *agg);
	sides[0] = (struct weir_state_side){
		.table = true, .outer = true, .col_count = node->column_count, .types = types + keys};
	sides[1] = (struct weir_state_side){.table = true, .types = types + n};
	weir_state_row_agg(agg);
	st->retracts = true;
	st->key_count = keys;
	st->column_count = n;
	st->column_names = names;
	st->column_types = types;
	st->hold_ms = node->grace_ms;
	st->def = (struct weir_state_def){.name = st->name,
					  .kind = WEIR_STATE_JOIN,
					  .time_max = p->settings->task_time_max,
					  .grace_ms = node->grace_ms,
					  .key_count = keys,
					  .key_types = types,
					  .agg_count = 1,
					  .aggs = agg,
					  .side_count = 2,
					  .sides = sides};
	err = weir_state_def_init(&st->def, p->dg);
	if (err == WEIR_OK)
		err = weir_planner_walk(p, node, ld, depth + 1);
	p->stages[index].busy = false;
	*out = index;
	return err;
}

/* Whether column c of side s is the key k in every branch, so that the key's bytes give it back exactly. */
bool weir_planner_is_key_column(const struct weir_planner *p, uint32_t stage, uint32_t s, uint32_t c, uint32_t k)
{
	const struct weir_plan_stage *st = &p->stages[stage].stage;
	for (uint32_t b = 0; b < p->branch_count; b++) {
		const struct weir_plan_branch *br = &p->branches[b];
		if (br->to != WEIR_TO_STAGE || br->target != stage || br->side != s)
			continue;
		const struct weir_type *t = &br->exprs[k]->type;
		if (t->kind == WEIR_KIND_FLOAT || t->kind == WEIR_KIND_DOUBLE || /* -0.0 and NaN lose their bits */
		    !weir_expr_equal(br->exprs[k], br->exprs[st->key_count + c]))
			return false;
	}
	return true;
}

/* Leaves only those columns in a join that somebody reads, and rewrites the branches on both sides of it. */
void weir_planner_join_prune(struct weir_planner *p, uint32_t stage)
{
	struct weir_plan_stage *st = &p->stages[stage].stage;
	const struct weir_join_spec *spec = p->stages[stage].node->join;
	const enum weir_join_kind kind = spec ? spec->kind : WEIR_JOIN_LEFT;
	uint32_t keys = st->key_count, total = st->column_count, n = keys;
	bool *used = weir_mem_take(p->m, total + 1);
	for (uint32_t b = 0; b < p->branch_count; b++) {
		const struct weir_plan_branch *br = &p->branches[b];
		if (br->from != WEIR_FROM_STAGE || br->origin != stage)
			continue;
		struct weir_plan_load ld = {.exprs = (const struct weir_expr **)br->exprs,
					    .count = br->expr_count,
					    .filter = br->filter,
					    .time = br->time};
		weir_planner_load_used(&ld, used, total);
	}
	if (st->residual)
		weir_expr_columns_used(st->residual, used, total);
	const char **names = weir_mem_take(p->m, (total + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (total + 1) * sizeof *types);
	const struct weir_expr **map = weir_mem_take(p->m, (total + 1) * sizeof *map);
	struct weir_state_side *sides = weir_mem_take(p->m, 2 * sizeof *sides);
	for (uint32_t i = 0; i < keys; i++) {
		names[i] = st->column_names[i];
		types[i] = st->column_types[i];
		map[i] = weir_expr_column(p->m, i, &types[i], names[i]);
	}
	for (uint32_t s = 0, from = 0; s < 2; s++) {
		uint32_t count = st->def.sides[s].col_count, begin = n, kept = 0;
		uint32_t *keep = weir_mem_take(p->m, (count + 1) * sizeof *keep);
		for (uint32_t c = 0; c < count; c++) {
			uint32_t at = keys + from + c, k = keys;
			for (k = 0; k < keys && !side_can_miss(kind, s); k++)
				if (weir_planner_is_key_column(p, stage, s, c, k))
					break;
			if (!side_can_miss(kind, s) && k < keys) {
				map[at] = map[k];
			} else if (used[at]) {
				names[n] = st->column_names[at];
				types[n] = st->column_types[at];
				map[at] = weir_expr_column(p->m, n, &types[n], names[n]);
				keep[kept++] = c;
				n++;
			} else {
				map[at] = weir_expr_bool(p->m, true); /* nobody reads it */
			}
		}
		for (uint32_t b = 0; b < p->branch_count; b++) {
			struct weir_plan_branch *br = &p->branches[b];
			if (br->to != WEIR_TO_STAGE || br->target != stage || br->side != s)
				continue;
			const struct weir_expr **exprs = weir_mem_take(p->m, (keys + kept + 1) * sizeof *exprs);
			memcpy(exprs, br->exprs, keys * sizeof *exprs);
			for (uint32_t c = 0; c < kept; c++)
				exprs[keys + c] = br->exprs[keys + keep[c]];
			br->exprs = exprs;
			br->expr_count = keys + kept;
		}
		from += count;
		sides[s] = st->def.sides[s];
		sides[s].col_count = kept;
		sides[s].types = types + begin;
	}
	/* Not kept with the rows: bounds of windows, numbers. */
	uint32_t bounds = weir_join_in_windows(&st->def) ? 4 : st->def.numbered ? 1 : 0;
	for (uint32_t at = total - bounds; at < total; at++, n++) {
		names[n] = st->column_names[at];
		types[n] = st->column_types[at];
		map[at] = weir_expr_column(p->m, n, &types[n], names[n]);
	}
	for (uint32_t b = 0; b < p->branch_count; b++) {
		struct weir_plan_branch *br = &p->branches[b];
		if (br->from != WEIR_FROM_STAGE || br->origin != stage)
			continue;
		struct weir_plan_load ld = {.exprs = (const struct weir_expr **)br->exprs,
					    .count = br->expr_count,
					    .filter = br->filter,
					    .time = br->time};
		weir_planner_substitute(p, map, total, &ld);
		br->exprs = ld.exprs;
		br->filter = ld.filter;
		br->time = ld.time;
	}
	if (st->residual)
		st->residual = weir_expr_substitute(st->residual, map, total, p->m);
	st->column_names = names;
	st->column_types = types;
	st->column_count = n;
	st->def.key_types = types;
	st->def.sides = sides;
}
