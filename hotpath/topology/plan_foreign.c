/* plan_foreign.c: joins of two tables by a foreign key as stages (run/join_foreign.c says how they work). @thread init.
 *
 *   left table --was and is--> <state>-keys: by foreign key --+--> <state>: rows by the left table's key
 *   right table ----------------------------------------------/
 *
 * Columns of <state>-keys: the foreign key and the left table's key, the left table's columns, the number that its rows
 * came under, the right table's columns. */
#include "hotpath/expr/tree.h"
#include "hotpath/topology/planner.h"

enum weir_err weir_planner_numbered_rows(struct weir_planner *p, struct weir_plan_stage *st, uint32_t keys,
					 uint32_t count, const char **names, struct weir_type *types)
{
	struct weir_state_side *side = weir_mem_take(p->m, sizeof *side);
	struct weir_agg *agg = weir_mem_take(p->m, sizeof *agg);
	weir_state_row_agg(agg);
	*side = (struct weir_state_side){.table = true, .col_count = count - keys, .types = types + keys};
	st->key_count = keys;
	st->column_count = count;
	st->column_names = names;
	st->column_types = types;
	st->def = (struct weir_state_def){.name = st->name,
					  .kind = WEIR_STATE_ROWS,
					  .time_max = p->settings->task_time_max,
					  .key_count = keys,
					  .key_types = types,
					  .agg_count = 1,
					  .aggs = agg,
					  .side_count = 1,
					  .sides = side,
					  .numbered = true};
	return weir_state_def_init(&st->def, p->dg);
}

static const struct weir_type number_type = {.kind = WEIR_KIND_BIGINT, .not_null = true};

void weir_planner_number(struct weir_planner *p, uint32_t origin, struct weir_plan_load *ld)
{
	struct weir_plan_stage *st = &p->stages[origin].stage;
	if (!st->def.numbered) {
		uint32_t n = st->column_count++;
		const char **names = weir_mem_take(p->m, (n + 2) * sizeof *names);
		struct weir_type *types = weir_mem_take(p->m, (n + 2) * sizeof *types);
		memcpy(names, st->column_names, n * sizeof *names);
		memcpy(types, st->column_types, n * sizeof *types);
		names[n] = "$number";
		types[n] = number_type;
		st->column_names = names;
		st->column_types = types;
		st->def.numbered = true;
	}
	const struct weir_expr **exprs = weir_mem_take(p->m, (ld->count + 2) * sizeof *exprs);
	memcpy(exprs, ld->exprs, ld->count * sizeof *exprs);
	exprs[ld->count++] = weir_expr_column(p->m, st->column_count - 1, &number_type, "$number");
	ld->exprs = exprs;
}

static const struct weir_expr *input_column(struct weir_planner *p, const struct weir_node *in, uint32_t c)
{
	return weir_expr_column(p->m, c, &in->columns[c].type, in->columns[c].name);
}

/* The stage by foreign key. *number: which of its columns the number is. */
static enum weir_err keys_stage(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out,
				uint32_t *number)
{
	const struct weir_join_spec *spec = node->join;
	const struct weir_node *l = node->inputs[0], *r = node->inputs[1];
	uint32_t index = 0, foreign = spec->key_count, keys = foreign + l->table_key_count;
	uint32_t n = keys + l->column_count + 1 + r->column_count;
	enum weir_err err = weir_planner_stage_add(p, node, weir_mem_printf(p->m, "%s-keys", node->state_name), &index);
	if (err != WEIR_OK)
		return err;
	const char **names = weir_mem_take(p->m, (n + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (n + 1) * sizeof *types);
	struct weir_plan_load ld[2] = {
		{.count = keys + l->column_count, .to = WEIR_TO_STAGE, .target = index},
		{.count = keys + r->column_count, .to = WEIR_TO_STAGE, .target = index, .side = 1, .table = true}};
	for (uint32_t s = 0; s < 2; s++)
		ld[s].exprs = weir_mem_take(p->m, (ld[s].count + 1) * sizeof *ld[s].exprs);
	for (uint32_t k = 0; k < keys; k++) {
		bool own = k >= foreign;
		ld[0].exprs[k] = own ? input_column(p, l, l->table_key[k - foreign]) : spec->keys[0][k];
		names[k] = ld[0].exprs[k]->op == WEIR_EXPR_COLUMN ? l->columns[ld[0].exprs[k]->column].name
								  : weir_mem_printf(p->m, "key-%u", k + 1);
		types[k] = ld[0].exprs[k]->type;
		types[k].not_null = false;
		ld[1].exprs[k] = own ? weir_expr_make_null(p->m, &types[k]) : spec->keys[1][k];
	}
	*number = keys + l->column_count;
	names[*number] = "$number";
	types[*number] = number_type;
	for (uint32_t s = 0; s < 2; s++) {
		const struct weir_node *in = node->inputs[s];
		for (uint32_t c = 0; c < in->column_count; c++) {
			uint32_t at = s == 0 ? keys + c : *number + 1 + c;
			names[at] = in->columns[c].name;
			types[at] = node->columns[s == 0 ? c : l->column_count + c].type;
			ld[s].exprs[keys + c] = input_column(p, in, c);
		}
	}
	struct weir_state_side *sides = weir_mem_take(p->m, 2 * sizeof *sides);
	sides[0] = (struct weir_state_side){.table = true,
					    .outer = spec->kind == WEIR_JOIN_LEFT,
					    .col_count = l->column_count + 1,
					    .types = types + keys};
	sides[1] = (struct weir_state_side){.table = true, .col_count = r->column_count, .types = types + *number + 1};
	struct weir_agg *agg = weir_mem_take(p->m, sizeof *agg);
	weir_state_row_agg(agg);
	struct weir_plan_stage *st = &p->stages[index].stage;
	st->key_count = keys;
	st->column_count = n;
	st->column_names = names;
	st->column_types = types;
	if (spec->residual != NULL) {
		const struct weir_expr **map = weir_mem_take(p->m, (node->column_count + 1) * sizeof *map);
		for (uint32_t c = 0; c < node->column_count; c++) {
			uint32_t at = c < l->column_count ? keys + c : *number + 1 + c - l->column_count;
			map[c] = weir_expr_column(p->m, at, &types[at], names[at]);
		}
		st->residual = weir_expr_substitute(spec->residual, map, node->column_count, p->m);
	}
	st->hold_ms = node->state_grace_ms;
	st->def = (struct weir_state_def){.name = st->name,
					  .kind = WEIR_STATE_JOIN,
					  .time_max = p->settings->task_time_max,
					  .grace_ms = node->state_grace_ms,
					  .key_count = keys,
					  .key_types = types,
					  .agg_count = 1,
					  .aggs = agg,
					  .side_count = 2,
					  .sides = sides,
					  .foreign = foreign};
	err = weir_state_def_init(&st->def, p->dg);
	for (uint32_t s = 0; s < 2 && err == WEIR_OK; s++)
		err = weir_planner_walk(p, node->inputs[s], ld[s], depth);
	p->stages[index].busy = false;
	*out = index;
	return err;
}

/* The result: numbers, then what ld reads beside the key. */
enum weir_err weir_planner_foreign(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld,
				   uint32_t depth, uint32_t *out)
{
	const struct weir_node *l = node->inputs[0];
	uint32_t from = 0, index = 0, number = 0, foreign = node->join->key_count, own = l->table_key_count;
	enum weir_err err = keys_stage(p, node, depth, &from, &number);
	if (err == WEIR_OK)
		err = weir_planner_stage_add(p, node, node->state_name, &index);
	if (err != WEIR_OK)
		return err;
	const struct weir_plan_stage *ks = &p->stages[from].stage;
	uint32_t most = own + 1 + node->column_count, n = 0;
	const char **names = weir_mem_take(p->m, (most + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (most + 1) * sizeof *types);
	const struct weir_expr **exprs = weir_mem_take(p->m, (most + 1) * sizeof *exprs);
	const struct weir_expr **map = weir_mem_take(p->m, (node->column_count + 1) * sizeof *map);
	bool *used = weir_mem_take(p->m, node->column_count + 1);
	weir_planner_load_used(ld, used, node->column_count);
	for (uint32_t c = 0; c < node->column_count; c++)
		map[c] = weir_expr_bool(p->m, true); /* nobody reads it */
	for (uint32_t k = 0; k < own + 1; k++) {
		uint32_t at = k < own ? foreign + k : number;
		names[n] = ks->column_names[at];
		types[n] = ks->column_types[at];
		if (k < own) {
			used[l->table_key[k]] = false;
			map[l->table_key[k]] = weir_expr_column(p->m, n, &types[n], names[n]);
		}
		exprs[n++] = weir_expr_column(p->m, at, &ks->column_types[at], ks->column_names[at]);
	}
	for (uint32_t c = 0; c < node->column_count; c++) {
		uint32_t at = c < l->column_count ? foreign + own + c : number + 1 + c - l->column_count;
		if (!used[c])
			continue;
		names[n] = node->columns[c].name;
		types[n] = node->columns[c].type;
		map[c] = weir_expr_column(p->m, n, &types[n], names[n]);
		exprs[n++] = weir_expr_column(p->m, at, &ks->column_types[at], ks->column_names[at]);
	}
	struct weir_plan_stage *st = &p->stages[index].stage;
	st->hold_ms = node->state_grace_ms;
	err = weir_planner_numbered_rows(p, st, own, n, names, types);
	if (err == WEIR_OK)
		err = weir_planner_branch_add(p, (struct weir_plan_branch){.from = WEIR_FROM_STAGE,
									   .origin = from,
									   .to = WEIR_TO_STAGE,
									   .target = index,
									   .expr_count = n,
									   .exprs = exprs,
									   .table = true});
	p->stages[index].busy = false;
	weir_planner_substitute(p, map, node->column_count, ld);
	*out = index;
	return err;
}
