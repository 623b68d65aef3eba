/* plan_latest.c: the stage of a stream's latest rows (weir_build_latest): rows by key as a table that is read has them,
 * with the time attribute as their number: a row older than the one that is there does nothing. @thread init. */
#include "hotpath/topology/planner.h"

/* Each reader gets a state of its own, with what ld reads: one bit a row says whether it stands in the result. */
enum weir_err weir_planner_latest(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld,
				  uint32_t depth, uint32_t *out)
{
	const struct weir_node *in = node->inputs[0];
	uint32_t index = 0, keys = node->key_count, n = 0, most = keys + 1 + node->column_count;
	enum weir_err err = weir_planner_stage_add(p, node, node->state_name, &index);
	if (err != WEIR_OK)
		return err;
	const char **names = weir_mem_take(p->m, (most + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (most + 1) * sizeof *types);
	const struct weir_expr **map = weir_mem_take(p->m, (node->column_count + 1) * sizeof *map);
	bool *used = weir_mem_take(p->m, node->column_count + 1);
	struct weir_plan_load up = {.to = WEIR_TO_STAGE, .target = index, .time = weir_planner_time_column(p, in, -1)};
	up.exprs = weir_mem_take(p->m, (most + 1) * sizeof *up.exprs);
	weir_planner_load_used(ld, used, node->column_count);
	for (uint32_t c = 0; c < node->column_count; c++)
		map[c] = weir_expr_bool(p->m, true); /* nobody reads it */
	for (uint32_t k = 0; k < keys; k++, n++) {
		uint32_t c = node->table_key[k];
		names[n] = node->columns[c].name;
		types[n] = node->columns[c].type;
		up.exprs[n] = node->keys[k];
		/* Key bytes do not give -0.0 back. */
		if (types[n].kind == WEIR_KIND_FLOAT || types[n].kind == WEIR_KIND_DOUBLE)
			continue;
		map[c] = weir_expr_column(p->m, n, &types[n], names[n]);
		used[c] = false;
		if (node->keys[k]->op != WEIR_EXPR_COLUMN)
			continue;
		map[node->keys[k]->column] = map[c];
		used[node->keys[k]->column] = false;
	}
	uint32_t time = (uint32_t)in->rowtime;
	names[n] = in->columns[time].name;
	types[n] = in->columns[time].type;
	up.exprs[n] = weir_expr_column(p->m, time, &types[n], names[n]);
	map[time] = weir_expr_column(p->m, n, &types[n], names[n]);
	used[time] = false;
	n++;
	for (uint32_t c = 0; c < node->column_count; c++) {
		if (!used[c])
			continue;
		names[n] = node->columns[c].name;
		types[n] = node->columns[c].type;
		up.exprs[n] = c < in->column_count ? weir_expr_column(p->m, c, &types[n], names[n])
						   : node->keys[c - in->column_count];
		map[c] = weir_expr_column(p->m, n, &types[n], names[n]);
		n++;
	}
	up.count = n;
	struct weir_plan_stage *st = &p->stages[index].stage;
	st->reject_null_key = node->reject_null_key;
	st->hold_ms = in->grace_ms;
	err = weir_planner_numbered_rows(p, st, keys, n, names, types);
	if (err == WEIR_OK)
		err = weir_planner_walk(p, in, up, depth);
	p->stages[index].busy = false;
	weir_planner_substitute(p, map, node->column_count, ld);
	*out = index;
	return err;
}

void weir_planner_latest_inputs(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld)
{
	const struct weir_node *in = node->inputs[0];
	const struct weir_expr **map = weir_mem_take(p->m, (node->column_count + 1) * sizeof *map);
	for (uint32_t c = 0; c < node->column_count; c++)
		map[c] = c < in->column_count ? weir_expr_column(p->m, c, &in->columns[c].type, in->columns[c].name)
					      : node->keys[c - in->column_count];
	weir_planner_substitute(p, map, node->column_count, ld);
}
