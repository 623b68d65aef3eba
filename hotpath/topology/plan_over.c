/* plan_over.c: the stage of functions OVER, and of UNNEST (planner.h). Its rows are the input's columns and what
 * functions read beside them; its columns the keys, those, and the functions' results. @thread init. */
#include "hotpath/topology/planner.h"

#include "hotpath/state/over.h"

/* Where argument a of a spec stands among the rows' columns: a plain column is there anyway. */
static int32_t place_of(const struct weir_node *node, int32_t a)
{
	const struct weir_over_spec *spec = node->over;
	if (a < 0)
		return -1;
	const struct weir_expr *e = spec->args[a];
	return e->op == WEIR_EXPR_COLUMN ? (int32_t)e->column : (int32_t)node->inputs[0]->column_count + a;
}

enum weir_err weir_planner_over(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out)
{
	const struct weir_over_spec *spec = node->over;
	const struct weir_node *in = node->inputs[0];
	uint32_t index = 0, keys = spec->key_count, rows = in->column_count + spec->arg_count, n = keys + rows;
	for (uint32_t i = 0; i < p->stage_count; i++)
		if (p->stages[i].node == node) {
			*out = i;
			return p->stages[i].busy
				       ? weir_planner_fail(p, "the topology has a cycle at state %s", node->state_name)
				       : WEIR_OK;
		}
	enum weir_err err = weir_planner_stage_add(p, node, node->state_name, &index);
	if (err != WEIR_OK)
		return err;
	struct weir_plan_stage *st = &p->stages[index].stage;
	uint32_t results = node->column_count - in->column_count, total = n + results;
	const char **names = weir_mem_take(p->m, (total + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (total + 1) * sizeof *types);
	struct weir_plan_load ld = {
		.count = n, .to = WEIR_TO_STAGE, .target = index, .time = weir_planner_time_column(p, in, -1)};
	ld.exprs = weir_mem_take(p->m, (n + 1) * sizeof *ld.exprs);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = i - keys;
		if (i < keys) {
			ld.exprs[i] = spec->keys[i];
			names[i] = spec->keys[i]->op == WEIR_EXPR_COLUMN ? in->columns[spec->keys[i]->column].name
									 : weir_mem_printf(p->m, "key-%u", i + 1);
		} else if (c < in->column_count) {
			names[i] = in->columns[c].name;
			ld.exprs[i] = weir_expr_column(p->m, c, &in->columns[c].type, names[i]);
		} else {
			names[i] = weir_mem_printf(p->m, "argument-%u", c - in->column_count + 1);
			ld.exprs[i] = spec->args[c - in->column_count];
		}
		types[i] = ld.exprs[i]->type;
	}
	struct weir_over_fn *fns = weir_mem_take(p->m, (spec->fn_count + 1) * sizeof *fns);
	for (uint32_t f = 0; f < results; f++) {
		names[n + f] = node->columns[in->column_count + f].name;
		types[n + f] = node->columns[in->column_count + f].type;
	}
	for (uint32_t f = 0; f < spec->fn_count; f++) {
		fns[f] = spec->fns[f];
		fns[f].arg = place_of(node, fns[f].arg);
		fns[f].fallback = place_of(node, fns[f].fallback);
	}
	struct weir_over_def *over = weir_mem_take(p->m, sizeof *over);
	struct weir_state_side *sides = weir_mem_take(p->m, 2 * sizeof *sides);
	*over = (struct weir_over_def){.fn_count = spec->fn_count,
				       .fns = fns,
				       .unnest = spec->unnest,
				       .array = spec->unnest ? (uint32_t)place_of(node, 0) : 0,
				       .outer = spec->outer};
	sides[0] = (struct weir_state_side){.col_count = rows, .types = types + keys};
	sides[1] = (struct weir_state_side){.col_count = results, .types = types + n};
	st->key_count = keys;
	st->column_count = total;
	st->column_names = names;
	st->column_types = types;
	st->hold_ms = node->state_grace_ms;
	st->def = (struct weir_state_def){.name = st->name,
					  .kind = WEIR_STATE_OVER,
					  .time_max = p->settings->task_time_max,
					  .grace_ms = node->state_grace_ms,
					  .key_count = keys,
					  .key_types = types,
					  .side_count = 2,
					  .sides = sides,
					  .over = over};
	err = weir_state_def_init(&st->def, p->dg);
	if (err == WEIR_OK)
		err = weir_planner_walk(p, in, ld, depth);
	p->stages[index].busy = false;
	*out = index;
	return err;
}

void weir_planner_over_columns(struct weir_planner *p, const struct weir_node *node, uint32_t stage,
			       struct weir_plan_load *ld)
{
	const struct weir_plan_stage *st = &p->stages[stage].stage;
	uint32_t in = node->inputs[0]->column_count, count = node->column_count;
	const struct weir_expr **map = weir_mem_take(p->m, (count + 1) * sizeof *map);
	for (uint32_t c = 0; c < count; c++) {
		uint32_t at = st->key_count + (c < in ? c : c + node->over->arg_count);
		map[c] = weir_expr_column(p->m, at, &st->column_types[at], st->column_names[at]);
	}
	weir_planner_substitute(p, map, count, ld);
}

/* Sets used[c] for the stage's columns that branches read, and of the functions among them what they read. */
static void find_used(struct weir_planner *p, uint32_t stage, bool *used)
{
	const struct weir_plan_stage *st = &p->stages[stage].stage;
	const struct weir_over_def *over = st->def.over;
	uint32_t rows = st->key_count, fns = rows + st->def.sides[0].col_count;
	for (uint32_t b = 0; b < p->branch_count; b++) {
		const struct weir_plan_branch *br = &p->branches[b];
		if (br->from != WEIR_FROM_STAGE || br->origin != stage)
			continue;
		struct weir_plan_load ld = {.exprs = (const struct weir_expr **)br->exprs,
					    .count = br->expr_count,
					    .filter = br->filter,
					    .time = br->time};
		weir_planner_load_used(&ld, used, st->column_count);
	}
	/* A column that is a key need not be kept twice, unless a function reads it. */
	for (uint32_t c = 0; c < st->def.sides[0].col_count; c++)
		for (uint32_t k = 0; k < st->key_count && used[rows + c]; k++)
			used[rows + c] = !weir_planner_is_key_column(p, stage, 0, c, k);
	if (over->unnest)
		used[rows + over->array] = used[fns] = used[fns + 1] = true;
	for (uint32_t f = 0; f < over->fn_count; f++) {
		if (!used[fns + f])
			continue;
		if (over->fns[f].arg >= 0)
			used[rows + (uint32_t)over->fns[f].arg] = true;
		if (over->fns[f].fallback >= 0)
			used[rows + (uint32_t)over->fns[f].fallback] = true;
	}
}

/* Only what is used of the rows stays in the branches that bring them; kept[i]: which column of side 0 the i-th was. */
static void prune_inputs(struct weir_planner *p, uint32_t stage, const uint32_t *kept, uint32_t count)
{
	uint32_t keys = p->stages[stage].stage.key_count;
	for (uint32_t b = 0; b < p->branch_count; b++) {
		struct weir_plan_branch *br = &p->branches[b];
		if (br->to != WEIR_TO_STAGE || br->target != stage)
			continue;
		const struct weir_expr **exprs = weir_mem_take(p->m, (keys + count + 1) * sizeof *exprs);
		memcpy(exprs, br->exprs, keys * sizeof *exprs);
		for (uint32_t c = 0; c < count; c++)
			exprs[keys + c] = br->exprs[keys + kept[c]];
		br->exprs = exprs;
		br->expr_count = keys + count;
	}
}

/* The column of the pruned stage that column c of side 0 has become. */
static const struct weir_expr *row_column(struct weir_planner *p, uint32_t stage, uint32_t c, int32_t now,
					  const char *const *names, const struct weir_type *types)
{
	uint32_t keys = p->stages[stage].stage.key_count;
	if (now >= 0)
		return weir_expr_column(p->m, keys + (uint32_t)now, &types[keys + (uint32_t)now],
					names[keys + (uint32_t)now]);
	for (uint32_t k = 0; k < keys; k++)
		if (weir_planner_is_key_column(p, stage, 0, c, k))
			return weir_expr_column(p->m, k, &types[k], names[k]);
	return weir_expr_bool(p->m, true); /* nobody reads it */
}

void weir_planner_over_prune(struct weir_planner *p, uint32_t stage)
{
	struct weir_plan_stage *st = &p->stages[stage].stage;
	struct weir_over_def *over = weir_mem_copy(p->m, st->def.over, sizeof *over);
	uint32_t keys = st->key_count, total = st->column_count, rows = st->def.sides[0].col_count, n = keys;
	bool *used = weir_mem_take(p->m, total + 1);
	const char **names = weir_mem_take(p->m, (total + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (total + 1) * sizeof *types);
	const struct weir_expr **map = weir_mem_take(p->m, (total + 1) * sizeof *map);
	int32_t *now = weir_mem_take(p->m, (rows + 1) * sizeof *now);
	uint32_t *kept = weir_mem_take(p->m, (rows + 1) * sizeof *kept), kept_count = 0;
	struct weir_over_fn *fns = weir_mem_take(p->m, (over->fn_count + 1) * sizeof *fns);
	find_used(p, stage, used);
	memcpy(names, st->column_names, keys * sizeof *names); /* there is one column at least */
	memcpy(types, st->column_types, keys * sizeof *types);
	for (uint32_t c = 0; c < rows; c++) {
		now[c] = -1;
		if (!used[keys + c])
			continue;
		names[n] = st->column_names[keys + c];
		types[n++] = st->column_types[keys + c];
		now[c] = (int32_t)kept_count;
		kept[kept_count++] = c;
	}
	over->fns = fns;
	over->fn_count = 0;
	over->array = over->unnest ? (uint32_t)now[over->array] : 0;
	for (uint32_t f = 0; f < st->def.sides[1].col_count; f++) {
		uint32_t at = keys + rows + f;
		map[at] = weir_expr_bool(p->m, true);
		if (!used[at])
			continue;
		if (!over->unnest) {
			struct weir_over_fn *fn = &fns[over->fn_count++];
			*fn = st->def.over->fns[f];
			fn->arg = fn->arg >= 0 ? now[fn->arg] : -1;
			fn->fallback = fn->fallback >= 0 ? now[fn->fallback] : -1;
		}
		names[n] = st->column_names[at];
		types[n] = st->column_types[at];
		map[at] = weir_expr_column(p->m, n, &types[n], names[n]);
		n++;
	}
	for (uint32_t k = 0; k < keys; k++)
		map[k] = weir_expr_column(p->m, k, &types[k], names[k]);
	for (uint32_t c = 0; c < rows; c++)
		map[keys + c] = row_column(p, stage, c, now[c], names, types);
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
	prune_inputs(p, stage, kept, kept_count);
	struct weir_state_side *sides = weir_mem_take(p->m, 2 * sizeof *sides);
	sides[0] = (struct weir_state_side){.col_count = kept_count, .types = types + keys};
	sides[1] = (struct weir_state_side){.col_count = n - keys - kept_count, .types = types + keys + kept_count};
	st->column_names = names;
	st->column_types = types;
	st->column_count = n;
	st->def.key_types = types;
	st->def.sides = sides;
	st->def.over = over;
	/* What was fine with more is fine with less. */
	enum weir_err err = weir_state_def_init(&st->def, p->dg);
	WEIR_ASSERT(err == WEIR_OK);
}
