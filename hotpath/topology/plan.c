/* plan.c: flattens the relation graph into scans, branches, stages and sinks (plan.h). @thread init.
 *
 * Every consumer (a sink, an aggregate) walks up from its input with a list of expressions and a filter, substituting
 * through projections and AND-ing filters, until it meets a source or an aggregate: that is one branch. UNION ALL forks
 * the walk. Expressions are shared DAGs, so the walk costs no copies; its length is bounded by PLAN_NODES_MAX. */
#include "hotpath/topology/planner.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/state/over.h"

/* Room for one more element in an array that lives in m (old copies stay there: plans are small). */
void *weir_planner_grow(struct weir_mem *m, void *array, uint32_t count, uint32_t *capacity, size_t bytes)
{
	if (count < *capacity)
		return array;
	uint32_t more = *capacity ? *capacity * 2 : 8;
	void *bigger = weir_mem_take(m, (size_t)more * bytes);
	if (count)
		memcpy(bigger, array, (size_t)count * bytes);
	*capacity = more;
	return bigger;
}

enum weir_err weir_planner_fail(struct weir_planner *p, const char *what, const char *name)
{
	return weir_diag_set(p->dg, WEIR_E_PLAN, what, name);
}

enum weir_meta weir_planner_meta(const char *name)
{
	static const struct {
		const char *name;
		enum weir_meta meta;
	} known[] = {{"topic", WEIR_META_TOPIC},
		     {"partition", WEIR_META_PARTITION},
		     {"offset", WEIR_META_OFFSET},
		     {"timestamp", WEIR_META_TIMESTAMP},
		     {"headers", WEIR_META_HEADERS},
		     {"timestamp-type", WEIR_META_TIMESTAMP_TYPE},
		     {"leader-epoch", WEIR_META_LEADER_EPOCH}};
	for (size_t i = 0; i < WEIR_COUNT_OF(known); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].meta;
	return WEIR_META_NONE;
}

/* Whether `name` is in a list separated by ';'. */
static bool list_has(const char *list, const char *name)
{
	size_t bytes = strlen(name);
	for (const char *at = list; at && *at;) {
		const char *end = strchr(at, ';');
		size_t n = end ? (size_t)(end - at) : strlen(at);
		if (n == bytes && memcmp(at, name, n) == 0)
			return true;
		at = end ? end + 1 : NULL;
	}
	return false;
}

static bool in_primary_key(const struct weir_table_def *def, uint32_t column)
{
	for (uint32_t i = 0; i < def->primary_key_count; i++)
		if (def->primary_key[i] == column)
			return true;
	return false;
}

/* Whether a physical column of a table that is read stands in the record's key. A table's key must: a deleted row has
 * no value. */
static bool read_from_key(const struct weir_table_def *def, uint32_t column)
{
	if (weir_table_is_keyed(def) && in_primary_key(def, column))
		return true;
	if (def->options.key_fields && def->options.value_except_key)
		return list_has(def->options.key_fields, def->columns[column].name);
	return def->options.connector == WEIR_CONNECTOR_UPSERT_KAFKA && def->options.value_except_key &&
	       in_primary_key(def, column);
}

static enum weir_err scan_of(struct weir_planner *p, const struct weir_node *node, uint32_t *out)
{
	for (uint32_t i = 0; i < p->scan_count; i++)
		if (p->scans[i].node->table == node->table) {
			*out = i;
			return WEIR_OK;
		}
	p->scans = weir_planner_grow(p->m, p->scans, p->scan_count, &p->scan_capacity, sizeof *p->scans);
	struct weir_plan_scan_build *sb = &p->scans[p->scan_count];
	memset(sb, 0, sizeof *sb);
	const struct weir_table_def *def = node->table;
	sb->node = node;
	sb->scan.table = def;
	sb->scan.name = def->name;
	sb->scan.grace_ms = def->grace_ms;
	sb->scan.is_table = weir_table_is_keyed(def);
	sb->scan.is_global = def->options.global;
	sb->scan.repartition = -1;
	sb->used = weir_mem_take(p->m, def->column_count ? def->column_count : 1);
	sb->def_exprs = weir_mem_take(p->m, (def->column_count + 1) * sizeof *sb->def_exprs);
	for (uint32_t c = 0; c < def->column_count; c++) {
		const struct weir_table_column *col = &def->columns[c];
		if (col->kind == WEIR_COLUMN_COMPUTED)
			sb->def_exprs[c] = weir_expr_substitute(col->expr, sb->def_exprs, c, p->m);
		else
			sb->def_exprs[c] = weir_expr_column(p->m, c, &col->type, col->name);
		if (col->kind == WEIR_COLUMN_METADATA &&
		    weir_planner_meta(col->metadata ? col->metadata : col->name) == WEIR_META_NONE)
			return weir_diag_set(p->dg, WEIR_E_PLAN,
					     "table %s: column %s: METADATA FROM '%s': it is one of topic, partition, "
					     "offset, timestamp, "
					     "timestamp-type, headers, leader-epoch",
					     def->name, col->name, col->metadata ? col->metadata : col->name);
	}
	if (def->rowtime >= 0)
		sb->scan.time = sb->def_exprs[def->rowtime];
	*out = p->scan_count++;
	return WEIR_OK;
}

static enum weir_err stage_of(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out);

enum weir_err weir_planner_branch_add(struct weir_planner *p, struct weir_plan_branch br)
{
	if (p->branch_count >= PLAN_BRANCHES_MAX)
		return weir_planner_fail(
			p, "the query has too many branches: views and UNION ALL multiply to more than 4096%s", "");
	if (weir_expr_count_nodes(br.exprs, br.expr_count, PLAN_NODES_MAX) > PLAN_NODES_MAX)
		return weir_planner_fail(p, "the query's expressions are too large: more than 1,000,000 nodes%s", "");
	p->branches = weir_planner_grow(p->m, p->branches, p->branch_count, &p->branch_capacity, sizeof *p->branches);
	p->branches[p->branch_count++] = br;
	return WEIR_OK;
}

/* Replaces columns in what ld holds by map. */
void weir_planner_substitute(struct weir_planner *p, const struct weir_expr *const *map, uint32_t map_count,
			     struct weir_plan_load *ld)
{
	const struct weir_expr **fresh = weir_mem_take(p->m, (ld->count + 1) * sizeof *fresh);
	for (uint32_t i = 0; i < ld->count; i++)
		fresh[i] = weir_expr_substitute(ld->exprs[i], map, map_count, p->m);
	if (ld->filter)
		ld->filter = weir_expr_substitute(ld->filter, map, map_count, p->m);
	if (ld->time)
		ld->time = weir_expr_substitute(ld->time, map, map_count, p->m);
	ld->exprs = fresh;
}

/* Sets used[c] for every column that ld reads. */
void weir_planner_load_used(const struct weir_plan_load *ld, bool *used, uint32_t count)
{
	for (uint32_t i = 0; i < ld->count; i++)
		weir_expr_columns_used(ld->exprs[i], used, count);
	if (ld->filter)
		weir_expr_columns_used(ld->filter, used, count);
	if (ld->time)
		weir_expr_columns_used(ld->time, used, count);
}

/* Whether what ld goes to takes rows out again, or shows what they were. */
static bool wants_retractions(const struct weir_planner *p, const struct weir_plan_load *ld)
{
	if (ld->to == WEIR_TO_SINK)
		return p->sinks[ld->target].whole;
	const struct weir_state_def *def = &p->stages[ld->target].stage.def;
	return def->retracts || (def->foreign != 0 && ld->side == 0);
}

static enum weir_err branch_from(struct weir_planner *p, const struct weir_plan_load *ld, enum weir_branch_from from,
				 uint32_t origin)
{
	/* A plain GROUP BY, functions OVER, a stream's latest rows and its side of a join need a value. */
	enum weir_state_kind into = ld->to == WEIR_TO_STAGE ? p->stages[ld->target].stage.def.kind : WEIR_STATE_WINDOW;
	bool valued = from == WEIR_FROM_SCAN && (into == WEIR_STATE_TABLE || into == WEIR_STATE_OVER ||
						 ((into == WEIR_STATE_JOIN || into == WEIR_STATE_ROWS) && !ld->table));
	bool join = from == WEIR_FROM_STAGE && p->stages[origin].stage.def.kind == WEIR_STATE_JOIN;
	bool retracts = wants_retractions(p, ld);
	/* Beside a stream, taken as it stands. */
	const struct weir_state_def *def = ld->to == WEIR_TO_STAGE ? &p->stages[ld->target].stage.def : NULL;
	bool global = from == WEIR_FROM_SCAN && p->scans[origin].scan.is_global && ld->table &&
		      into == WEIR_STATE_JOIN && !def->versioned && !(def->sides[0].table && def->sides[1].table);
	/* Rows of a table that is read have a key. One that a stage makes may be of NULL, as a group is: in a join it
	 * equals nothing. But two of them, one of each side, would stand under one key in a full join. */
	bool full = into == WEIR_STATE_JOIN && def->sides[0].outer && def->sides[1].outer;
	bool needs_key = ld->table && (full || (from == WEIR_FROM_SCAN && p->scans[origin].scan.is_table));
	struct weir_plan_load numbered = *ld;
	if (retracts && def != NULL && def->foreign != 0) {
		weir_planner_number(p, origin, &numbered);
		ld = &numbered;
	}
	return weir_planner_branch_add(
		p, (struct weir_plan_branch){.from = from,
					     .origin = origin,
					     .to = ld->to,
					     .target = ld->target,
					     .filter = ld->filter,
					     .expr_count = ld->count,
					     .exprs = ld->exprs,
					     .time = join && ld->to == WEIR_TO_STAGE ? ld->time : NULL,
					     .side = ld->side,
					     .retracts = retracts,
					     .global = global,
					     .table = ld->table,
					     .needs_key = needs_key,
					     .rekeys = ld->rekeys,
					     .reject_null_value = valued});
}

/* window_end - 1 ms as the time attribute's type. */
enum weir_err weir_planner_window_time(struct weir_planner *p, const struct weir_expr *end,
				       const struct weir_type *type, const struct weir_expr **out)
{
	struct weir_expr *ms = weir_mem_take(p->m, sizeof *ms);
	ms->op = WEIR_EXPR_CONST;
	ms->type.kind = WEIR_KIND_INTERVAL_MS;
	ms->type.not_null = true;
	ms->value.i64 = 1;
	ms->text = "INTERVAL '0.001' SECOND";
	const struct weir_expr *args[2] = {end, ms};
	enum weir_err err = weir_expr_call(p->m, "-", args, 2, out, p->dg);
	if (err == WEIR_OK && !weir_type_equal(&(*out)->type, type))
		*out = weir_expr_cast(*out, type, false, p->m);
	return err;
}

/* The columns that a WINDOW node adds, as expressions over its input: only a tumbling window has one answer per row. */
static enum weir_err window_columns(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld)
{
	const struct weir_node *in = node->inputs[0];
	const struct weir_expr **map = weir_mem_take(p->m, (node->column_count + 1) * sizeof *map);
	bool *used = weir_mem_take(p->m, node->column_count + 1);
	weir_planner_load_used(ld, used, node->column_count);
	for (uint32_t c = 0; c < in->column_count; c++)
		map[c] = weir_expr_column(p->m, c, &in->columns[c].type, in->columns[c].name);
	bool any = false;
	for (uint32_t c = in->column_count; c < node->column_count; c++)
		any |= used[c];
	if (any) {
		if (node->window.kind != WEIR_WINDOW_TUMBLE || node->rowtime < 0)
			return weir_planner_fail(p,
						 "%s of a HOP, CUMULATE, SESSION or sliding window can only be read "
						 "after GROUP BY window_start, "
						 "window_end: add the "
						 "aggregation, or use TUMBLE",
						 "window_start or window_end");
		const struct weir_expr *args[3] = {map[node->rowtime], weir_expr_bigint(p->m, node->window.size_ms),
						   weir_expr_bigint(p->m, node->window.offset_ms)};
		const struct weir_expr *start, *end, *time;
		enum weir_err err = weir_expr_call(p->m, "$TUMBLE_START", args, 3, &start, p->dg);
		struct weir_expr *size = weir_mem_take(p->m, sizeof *size);
		size->op = WEIR_EXPR_CONST;
		size->type.kind = WEIR_KIND_INTERVAL_MS;
		size->type.not_null = true;
		size->value.i64 = node->window.size_ms;
		size->text = "the window's size";
		const struct weir_expr *sum[2] = {start, size};
		if (err == WEIR_OK)
			err = weir_expr_call(p->m, "+", sum, 2, &end, p->dg);
		if (err == WEIR_OK)
			err = weir_planner_window_time(p, end, &node->columns[in->column_count + 2].type, &time);
		if (err != WEIR_OK)
			return err;
		map[in->column_count] = start;
		map[in->column_count + 1] = end;
		map[in->column_count + 2] = time;
	} else {
		for (uint32_t c = in->column_count; c < node->column_count; c++)
			map[c] = weir_expr_bool(p->m, true); /* nobody reads it */
	}
	weir_planner_substitute(p, map, node->column_count, ld);
	return WEIR_OK;
}

/* Columns of a stage as expressions over an AGGREGATE node's: window_time is not kept, it follows from window_end. */
static enum weir_err aggregate_columns(struct weir_planner *p, const struct weir_node *node,
				       const struct weir_plan_stage *st, struct weir_plan_load *ld)
{
	const struct weir_expr **map = weir_mem_take(p->m, (node->column_count + 1) * sizeof *map);
	for (uint32_t c = 0; c < st->column_count; c++)
		map[c] = weir_expr_column(p->m, c, &st->column_types[c], st->column_names[c]);
	bool *used = weir_mem_take(p->m, node->column_count + 1);
	weir_planner_load_used(ld, used, node->column_count);
	if (node->column_count > st->column_count && !used[st->column_count]) {
		map[st->column_count] = weir_expr_bool(p->m, true); /* nobody reads it */
	} else if (node->column_count > st->column_count && st->def.kind == WEIR_STATE_SLIDING) {
		const struct weir_type *type = &node->columns[st->column_count].type;
		map[st->column_count] = map[st->column_count - 1];
		if (!weir_type_equal(&map[st->column_count]->type, type))
			map[st->column_count] = weir_expr_cast(map[st->column_count], type, false, p->m);
	} else if (node->column_count > st->column_count) {
		enum weir_err err = weir_planner_window_time(
			p, map[st->column_count - 1], &node->columns[st->column_count].type, &map[st->column_count]);
		if (err != WEIR_OK)
			return err;
	}
	weir_planner_substitute(p, map, node->column_count, ld);
	return WEIR_OK;
}

/* A table's scan into a sink goes through a state: what a row was decides what it becomes. */
static enum weir_err walk_table(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld)
{
	uint32_t stage = 0;
	enum weir_err err = weir_planner_rows(p, node, ld, &stage);
	if (err != WEIR_OK)
		return err;
	const struct weir_plan_stage *st = &p->stages[stage].stage;
	const struct weir_expr **map = weir_mem_take(p->m, (node->column_count + 1) * sizeof *map);
	for (uint32_t c = 0; c < node->column_count; c++) {
		map[c] = weir_expr_bool(p->m, true); /* nobody reads it */
		for (uint32_t i = 0; i < st->column_count; i++)
			if (p->stages[stage].rows_column[i] == c)
				map[c] = weir_expr_column(p->m, i, &st->column_types[i], st->column_names[i]);
	}
	weir_planner_substitute(p, map, node->column_count, ld);
	return branch_from(p, ld, WEIR_FROM_STAGE, stage);
}

/* Columns of a JOIN stage, behind its keys, as expressions over node's. */
static void join_columns(struct weir_planner *p, const struct weir_node *node, uint32_t stage,
			 struct weir_plan_load *ld)
{
	const struct weir_plan_stage *st = &p->stages[stage].stage;
	if (p->stages[stage].join_map != NULL) {
		weir_planner_substitute(p, p->stages[stage].join_map, node->column_count, ld);
		return;
	}
	const struct weir_expr **map = weir_mem_take(p->m, (node->column_count + 1) * sizeof *map);
	for (uint32_t c = 0; c < node->column_count; c++)
		map[c] = weir_expr_column(p->m, st->key_count + c, &st->column_types[st->key_count + c],
					  st->column_names[st->key_count + c]);
	weir_planner_substitute(p, map, node->column_count, ld);
}

/* Rows of a table as they were and are. */
static enum weir_err walk_history(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld,
				  uint32_t depth)
{
	uint32_t origin = 0;
	enum weir_err err = weir_planner_history(p, node, depth, &origin);
	if (err != WEIR_OK)
		return err;
	join_columns(p, node, origin, ld);
	return branch_from(p, ld, WEIR_FROM_STAGE, origin);
}

/* A filter above those that ld has met: it runs first, and what it does not find TRUE they never see. AND alone would
 * show them rows that are NULL here, which can make them fail. */
static enum weir_err filter_above(struct weir_planner *p, const struct weir_expr *condition, struct weir_plan_load *ld)
{
	if (ld->filter != NULL && !condition->type.not_null && condition->type.kind == WEIR_KIND_BOOLEAN) {
		enum weir_err err = weir_expr_call(p->m, "IS TRUE", &condition, 1, &condition, p->dg);
		if (err != WEIR_OK)
			return err;
	}
	ld->filter = weir_expr_and(p->m, condition, ld->filter);
	return WEIR_OK;
}

enum weir_err weir_planner_walk(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load ld,
				uint32_t depth)
{
	enum weir_err err = WEIR_OK;
	uint32_t origin = 0;
	if (depth > PLAN_DEPTH_MAX)
		return weir_planner_fail(p, "views nest more than 1000 deep%s", "");
	for (;; node = node->inputs[0]) {
		switch (node->kind) {
		case WEIR_NODE_FILTER:
			err = filter_above(p, node->condition, &ld);
			if (err != WEIR_OK)
				return err;
			continue;
		case WEIR_NODE_PROJECT:
			weir_planner_substitute(p, node->exprs, node->column_count, &ld);
			ld.rekeys |= node->rekeys;
			continue;
		case WEIR_NODE_WINDOW:
			err = window_columns(p, node, &ld);
			if (err != WEIR_OK)
				return err;
			continue;
		case WEIR_NODE_UNION:
			for (uint32_t i = 0; i < node->input_count && err == WEIR_OK; i++) {
				struct weir_plan_load copy = ld;
				copy.exprs = weir_mem_copy(p->m, ld.exprs, (ld.count + 1) * sizeof *ld.exprs);
				err = weir_planner_walk(p, node->inputs[i], copy, depth + 1);
			}
			return err;
		case WEIR_NODE_SOURCE:
			if (node->is_table && wants_retractions(p, &ld))
				return walk_history(p, node, &ld, depth);
			if (node->is_table && !ld.table)
				return walk_table(p, node, &ld);
			err = scan_of(p, node, &origin);
			if (err != WEIR_OK)
				return err;
			weir_planner_substitute(p, p->scans[origin].def_exprs, node->column_count, &ld);
			return branch_from(p, &ld, WEIR_FROM_SCAN, origin);
		case WEIR_NODE_AGGREGATE:
			if (node->table_key != NULL && wants_retractions(p, &ld))
				return walk_history(p, node, &ld, depth);
			err = stage_of(p, node, depth + 1, &origin);
			if (err == WEIR_OK)
				err = aggregate_columns(p, node, &p->stages[origin].stage, &ld);
			return err == WEIR_OK ? branch_from(p, &ld, WEIR_FROM_STAGE, origin) : err;
		case WEIR_NODE_LATEST:
			/* Versions of a row are all that the stream says of its key. */
			if (ld.to == WEIR_TO_STAGE && p->stages[ld.target].stage.def.versioned) {
				weir_planner_latest_inputs(p, node, &ld);
				continue;
			}
			if (wants_retractions(p, &ld))
				return walk_history(p, node, &ld, depth);
			err = weir_planner_latest(p, node, &ld, depth + 1, &origin);
			return err == WEIR_OK ? branch_from(p, &ld, WEIR_FROM_STAGE, origin) : err;
		case WEIR_NODE_OVER:
			err = weir_planner_over(p, node, depth + 1, &origin);
			if (err != WEIR_OK)
				return err;
			weir_planner_over_columns(p, node, origin, &ld);
			return branch_from(p, &ld, WEIR_FROM_STAGE, origin);
		case WEIR_NODE_JOIN:
			if (node->join->foreign && wants_retractions(p, &ld))
				return walk_history(p, node, &ld, depth);
			if (node->join->foreign) {
				err = weir_planner_foreign(p, node, &ld, depth + 1, &origin);
				return err == WEIR_OK ? branch_from(p, &ld, WEIR_FROM_STAGE, origin) : err;
			}
			err = weir_planner_join(p, node, depth + 1, &origin);
			if (err != WEIR_OK)
				return err;
			p->stages[origin].stage.retracts = node->is_table && wants_retractions(p, &ld);
			join_columns(p, node, origin, &ld);
			return branch_from(p, &ld, WEIR_FROM_STAGE, origin);
		default:
			return weir_planner_fail(p, "a sink cannot be read from%s", "");
		}
	}
}

/* Whether a node or its table asks for this name: what it stands for after a restart must not depend on the order in
 * which stages are made. */
static bool name_is_asked_for(const struct weir_topology *tp, const char *name)
{
	for (uint32_t i = 0; i < weir_topology_node_count(tp); i++) {
		const struct weir_node *node = weir_topology_node(tp, i);
		if (node->state_name && strcmp(node->state_name, name) == 0)
			return true;
		if (node->table && strcmp(node->table->name, name) == 0)
			return true;
	}
	return false;
}

static const struct weir_plan_stage_build *find_stage(const struct weir_planner *p, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(p->stages[i].stage.name, name) == 0)
			return &p->stages[i];
	return NULL;
}

/* A new stage for node, busy. A node that is read again gets its name with a number behind it. */
enum weir_err weir_planner_stage_add(struct weir_planner *p, const struct weir_node *node, const char *name,
				     uint32_t *out)
{
	p->stages = weir_planner_grow(p->m, p->stages, p->stage_count, &p->stage_capacity, sizeof *p->stages);
	uint32_t index = p->stage_count++;
	struct weir_plan_stage_build *sb = &p->stages[index];
	memset(sb, 0, sizeof *sb);
	sb->node = node;
	sb->busy = true;
	sb->stage.name = name;
	sb->stage.node = node->id;
	const struct weir_plan_stage_build *of = find_stage(p, index, name);
	if (of && of->node != node && !(node->table && of->node->table == node->table))
		return weir_planner_fail(p, "two states have the name %s: each needs its own", name);
	for (uint32_t again = 2; of; again++) {
		sb->stage.name = weir_mem_printf(p->m, "%s-%u", name, again);
		if (!find_stage(p, index, sb->stage.name) && !name_is_asked_for(p->tp, sb->stage.name))
			break;
	}
	*out = index;
	return WEIR_OK;
}

/* The time attribute of rows of a node (column -1), or another column of it, as an expression; NULL: their own time. */
const struct weir_expr *weir_planner_time_column(struct weir_planner *p, const struct weir_node *node, int32_t column)
{
	if (column < 0)
		column = node->rowtime;
	return column < 0 ? NULL
			  : weir_expr_column(p->m, (uint32_t)column, &node->columns[column].type,
					     node->columns[column].name);
}

/* An aggregate over a table takes out what a row was: that needs a table that knows it, and aggregates that can. */
static enum weir_err check_retractions(struct weir_planner *p, const struct weir_node *node)
{
	if (!weir_node_knows_rows(node->inputs[0]) || node->window.kind != WEIR_WINDOW_NONE)
		return weir_diag_set(p->dg, WEIR_E_PLAN,
				     "not supported yet: state %s aggregates a table that changes by window (EMIT "
				     "CHANGES), or windows a table; aggregate the stream, or make the "
				     "first aggregate final",
				     node->state_name);
	for (uint32_t i = 0; i < node->agg_count; i++)
		if (!weir_agg_can_retract(&node->aggs[i]))
			return weir_diag_set(
				p->dg, WEIR_E_PLAN, "not supported yet: state %s: over a table %s cannot be computed",
				node->state_name, node->aggs[i].text != NULL ? node->aggs[i].text : "this aggregate");
	return WEIR_OK;
}

static enum weir_err stage_of(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out)
{
	/* EMIT CHANGES keeps one "has been emitted" bit an entry, so each reader gets a state of its own. */
	for (uint32_t i = 0; i < p->stage_count; i++)
		if (p->stages[i].node == node && !node->changes) {
			*out = i;
			return p->stages[i].busy
				       ? weir_planner_fail(p, "the topology has a cycle at state %s", node->state_name)
				       : WEIR_OK;
		}
	const struct weir_node *in = node->inputs[0];
	bool retracts = in->is_table;
	if (retracts) {
		enum weir_err bad = check_retractions(p, node);
		if (bad != WEIR_OK)
			return bad;
	}
	uint32_t index = 0;
	enum weir_err err = weir_planner_stage_add(p, node, node->state_name, &index);
	if (err != WEIR_OK)
		return err;
	struct weir_plan_stage_build *sb = &p->stages[index];
	struct weir_plan_stage *st = &sb->stage;
	bool windowed = node->window.kind != WEIR_WINDOW_NONE;
	st->key_count = node->key_count;
	st->agg_arg_count = node->agg_arg_count;
	st->reject_null_key = node->reject_null_key;
	st->column_count = node->key_count + node->agg_count + (windowed ? 2 : 0) + retracts;
	const char **names = weir_mem_take(p->m, (st->column_count + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (st->column_count + 1) * sizeof *types);
	struct weir_type *key_types = weir_mem_take(p->m, (node->key_count + 1) * sizeof *key_types);
	for (uint32_t c = 0; c < st->column_count; c++) {
		if (c == node->column_count) { /* of a table: its groups' members, read by nobody */
			names[c] = "$members";
			types[c] = (struct weir_type){.kind = WEIR_KIND_BIGINT, .not_null = true};
			continue;
		}
		names[c] = node->columns[c].name;
		types[c] = node->columns[c].type;
	}
	for (uint32_t k = 0; k < node->key_count; k++)
		key_types[k] = node->keys[k]->type;
	st->column_names = names;
	st->column_types = types;
	struct weir_state_def *def = &st->def;
	def->name = st->name;
	def->kind = node->window.kind == WEIR_WINDOW_NONE      ? WEIR_STATE_TABLE
		    : node->window.kind == WEIR_WINDOW_SESSION ? WEIR_STATE_SESSION
		    : node->window.kind == WEIR_WINDOW_SLIDING ? WEIR_STATE_SLIDING
							       : WEIR_STATE_WINDOW;
	def->size_ms = node->window.size_ms;
	def->advance_ms = node->window.kind == WEIR_WINDOW_TUMBLE ? node->window.size_ms : node->window.advance_ms;
	def->offset_ms = node->window.offset_ms;
	def->cumulative = node->window.kind == WEIR_WINDOW_CUMULATE;
	def->gap_ms = node->window.gap_ms;
	def->shared = def->kind == WEIR_STATE_SESSION && node->window.shared;
	def->shared_keys = node->window.shared_keys;
	def->grace_ms = node->state_grace_ms;
	def->changes = node->changes || !windowed;
	def->time_max = p->settings->task_time_max;
	def->key_count = node->key_count;
	def->key_types = key_types;
	def->agg_count = node->agg_count + retracts;
	struct weir_agg *aggs = weir_mem_take(p->m, (node->agg_count + 1) * sizeof *aggs);
	if (node->agg_count != 0)
		memcpy(aggs, node->aggs, node->agg_count * sizeof *aggs);
	for (uint32_t i = 0; i < node->agg_count; i++) {
		aggs[i].list = aggs[i].list || (retracts && weir_agg_keeps_list(&aggs[i]));
		if (p->settings->elements_max != 0)
			aggs[i].elements_max = p->settings->elements_max;
		else if (aggs[i].list)
			aggs[i].elements_max = WEIR_LIST_ELEMENTS_DEFAULT;
	}
	def->retracts = retracts;
	if (retracts)
		aggs[node->agg_count] = (struct weir_agg){.kind = WEIR_AGG_COUNT_STAR,
							  .arg = -1,
							  .filter = -1,
							  .result_type = types[node->column_count],
							  .text = "members"};
	def->aggs = aggs;
	err = weir_state_def_init(def, p->dg);
	if (err != WEIR_OK)
		return err;
	st->hold_ms = !windowed                         ? in->grace_ms
		      : def->kind == WEIR_STATE_SESSION ? def->grace_ms + def->gap_ms
		      : def->changes                    ? def->grace_ms + def->size_ms
							: def->grace_ms;
	const struct weir_expr **exprs =
		weir_mem_take(p->m, (node->key_count + node->agg_arg_count + 1) * sizeof *exprs);
	for (uint32_t k = 0; k < node->key_count; k++)
		exprs[k] = node->keys[k];
	for (uint32_t a = 0; a < node->agg_arg_count; a++)
		exprs[node->key_count + a] = node->agg_args[a];
	struct weir_plan_load ld = {.exprs = exprs,
				    .count = node->key_count + node->agg_arg_count,
				    .time = windowed ? weir_planner_time_column(p, in, -1) : NULL,
				    .to = WEIR_TO_STAGE,
				    .target = index};
	err = weir_planner_walk(p, in, ld, depth);
	p->stages[index].busy = false;
	*out = index;
	return err;
}

static void field_fill(struct weir_mem *m, struct weir_field *f, const struct weir_table_column *col, uint32_t ordinal,
		       const char *key_prefix)
{
	f->name = col->name;
	f->type = col->type;
	f->ordinal = ordinal;
	f->path = col->path;
	f->path_steps = col->path_steps;
	const char *name = col->name;
	size_t prefix = key_prefix ? strlen(key_prefix) : 0;
	if (prefix && strncmp(name, key_prefix, prefix) == 0)
		name += prefix;
	if (!f->path) {
		struct weir_path_step *step = weir_mem_take(m, sizeof *step);
		step->name = name;
		step->name_bytes = (uint32_t)strlen(name);
		f->path = step;
		f->path_steps = 1;
	}
}

/* Numbers the columns that branches really read and rewrites the branches over them. */
static void scan_finish(struct weir_planner *p, uint32_t index)
{
	struct weir_plan_scan_build *sb = &p->scans[index];
	struct weir_plan_scan *sc = &sb->scan;
	const struct weir_table_def *def = sc->table;
	if (sc->time)
		weir_expr_columns_used(sc->time, sb->used, def->column_count);
	uint32_t *branches = weir_mem_take(p->m, (p->branch_count + 1) * sizeof *branches);
	for (uint32_t b = 0; b < p->branch_count; b++) {
		struct weir_plan_branch *br = &p->branches[b];
		if (br->from != WEIR_FROM_SCAN || br->origin != index)
			continue;
		branches[sc->branch_count++] = b;
		sc->reject_null_value |= br->reject_null_value;
		if (br->filter)
			weir_expr_columns_used(br->filter, sb->used, def->column_count);
		for (uint32_t e = 0; e < br->expr_count; e++)
			weir_expr_columns_used(br->exprs[e], sb->used, def->column_count);
	}
	sc->branches = branches;
	struct weir_field *all = weir_mem_take(p->m, (def->column_count + 1) * sizeof *all);
	struct weir_field *values = weir_mem_take(p->m, (def->column_count + 1) * sizeof *values);
	struct weir_field *keys = weir_mem_take(p->m, (def->column_count + 1) * sizeof *keys);
	enum weir_meta *metas = weir_mem_take(p->m, (def->column_count + 1) * sizeof *metas);
	struct weir_type *meta_types = weir_mem_take(p->m, (def->column_count + 1) * sizeof *meta_types);
	const char **names = weir_mem_take(p->m, (def->column_count + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (def->column_count + 1) * sizeof *types);
	const struct weir_expr **map = weir_mem_take(p->m, (def->column_count + 1) * sizeof *map);
	uint32_t n = 0;
	for (int pass = 0; pass < 3; pass++) {
		uint32_t key_ordinal = 0;
		for (uint32_t c = 0; c < def->column_count; c++) {
			const struct weir_table_column *col = &def->columns[c];
			bool from_key = col->kind == WEIR_COLUMN_PHYSICAL && read_from_key(def, c);
			/* Where a column stands among those of the value, counts those that the key has, too. */
			if (pass == 0 && col->kind == WEIR_COLUMN_PHYSICAL &&
			    !(from_key && def->options.value_except_key)) {
				field_fill(p->m, &all[sc->all_count], col, sc->all_count, NULL);
				sc->all_count++;
			}
			bool mine = pass == 0   ? col->kind == WEIR_COLUMN_PHYSICAL && !from_key
				    : pass == 1 ? from_key
						: col->kind == WEIR_COLUMN_METADATA;
			uint32_t ordinal = pass == 0 ? sc->all_count - 1 : key_ordinal;
			key_ordinal += from_key;
			if (!mine || !sb->used[c])
				continue;
			if (pass == 0) {
				field_fill(p->m, &values[sc->value_count++], col, ordinal, NULL);
			} else if (pass == 1) {
				field_fill(p->m, &keys[sc->key_count++], col, ordinal, def->options.key_fields_prefix);
			} else {
				metas[sc->meta_count] = weir_planner_meta(col->metadata ? col->metadata : col->name);
				meta_types[sc->meta_count++] = col->type;
			}
			names[n] = col->name;
			types[n] = col->type;
			map[c] = weir_expr_column(p->m, n, &col->type, col->name);
			n++;
		}
	}
	for (uint32_t c = 0; c < def->column_count; c++)
		if (!map[c])
			map[c] = weir_expr_bool(p->m, true); /* read by nobody */
	sc->value_format = def->options.value_format;
	sc->key_format = def->options.key_format;
	if (!def->options.has_key_format) {
		bool one_string = sc->key_count == 1 && weir_kind_is_string(keys[0].type.kind);
		sc->key_format.kind = one_string ? WEIR_FORMAT_RAW : WEIR_FORMAT_JSON;
	}
	sc->value_fields = values;
	sc->key_fields = keys;
	sc->all_fields = all;
	sc->metas = metas;
	sc->meta_types = meta_types;
	sc->column_count = n;
	sc->column_names = names;
	sc->column_types = types;
	if (sc->time)
		sc->time = weir_expr_substitute(sc->time, map, def->column_count, p->m);
	for (uint32_t i = 0; i < sc->branch_count; i++) {
		struct weir_plan_branch *br = &p->branches[branches[i]];
		struct weir_plan_load ld = {
			.exprs = (const struct weir_expr **)br->exprs, .count = br->expr_count, .filter = br->filter};
		weir_planner_substitute(p, map, def->column_count, &ld);
		br->filter = ld.filter;
		br->exprs = ld.exprs;
	}
}

static uint32_t level_of(struct weir_planner *p, uint32_t stage)
{
	struct weir_plan_stage *st = &p->stages[stage].stage;
	if (st->level)
		return st->level;
	uint32_t level = 1;
	for (uint32_t b = 0; b < p->branch_count; b++) {
		const struct weir_plan_branch *br = &p->branches[b];
		if (br->to == WEIR_TO_STAGE && br->target == stage && br->from == WEIR_FROM_STAGE) {
			uint32_t above = level_of(p, br->origin) + 1;
			level = above > level ? above : level;
		}
	}
	return st->level = level;
}

/* Expression number `at` of what feeds a stage, over the columns of its sources: `merchant_id`, `UPPER(city)`; what
 * views call them in between does not count. Several sources with different ones: all of them. */
static const char *input_text(struct weir_planner *p, const struct weir_plan *pl, const struct weir_plan_stage *st,
			      uint32_t at, int32_t side)
{
	enum { TEXT_MAX = 240 };
	struct weir_buf text = {0}, one = {0};
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
		const char *const *names = br->from == WEIR_FROM_SCAN ? pl->scans[br->origin].column_names
								      : pl->stages[br->origin].column_names;
		if (side >= 0 && br->side != (uint32_t)side)
			continue;
		one.bytes = 0;
		weir_expr_print(br->exprs[at], names, &one);
		if (text.bytes > 0 && one.bytes == text.bytes && memcmp(one.data, text.data, one.bytes) == 0)
			continue;
		if (text.bytes > 0)
			weir_buf_puts(&text, " | ");
		weir_buf_put(&text, one.data, one.bytes);
	}
	if (text.bytes > TEXT_MAX) {
		uint64_t hash = weir_hash(text.data, text.bytes);
		text.bytes = TEXT_MAX;
		weir_buf_printf(&text, "...#%016llx", (unsigned long long)hash);
	}
	const char *out = weir_mem_strndup(p->m, (const char *)text.data, text.bytes);
	weir_buf_fini(&text);
	weir_buf_fini(&one);
	return out;
}

/* What the state's keys and aggregates are computed from, for its fingerprint. */
static void name_inputs_of(struct weir_planner *p, const struct weir_plan *pl, struct weir_plan_stage *st)
{
	struct weir_state_def *def = &st->def;
	const char **keys = weir_mem_take(p->m, (def->key_count + 1) * sizeof *keys);
	const char **args = weir_mem_take(p->m, (def->agg_count + 1) * sizeof *args);
	const char **filters = weir_mem_take(p->m, (def->agg_count + 1) * sizeof *filters);
	for (uint32_t k = 0; k < def->key_count; k++)
		keys[k] = input_text(p, pl, st, k, -1);
	for (uint32_t a = 0; a < def->agg_count; a++) {
		const struct weir_agg *ag = &def->aggs[a];
		args[a] = ag->arg < 0 ? NULL : input_text(p, pl, st, st->key_count + (uint32_t)ag->arg, -1);
		filters[a] = ag->filter < 0 ? NULL : input_text(p, pl, st, st->key_count + (uint32_t)ag->filter, -1);
	}
	struct weir_state_side *sides = weir_mem_copy(p->m, def->sides, def->side_count * sizeof *sides);
	for (uint32_t s = 0; s < def->side_count; s++) {
		if (def->over != NULL && s == 1)
			continue; /* results */
		const char **texts = weir_mem_take(p->m, (sides[s].col_count + 1) * sizeof *texts);
		for (uint32_t c = 0; c < sides[s].col_count; c++)
			texts[c] = input_text(p, pl, st, st->key_count + c, (int32_t)s);
		sides[s].texts = texts;
	}
	def->sides = sides;
	def->key_texts = keys;
	def->agg_texts = args;
	def->filter_texts = filters;
}

/* Whether state.ttl counts for a stage: it keeps latest rows or groups, and nobody takes rows back that would be gone.
 */
static bool can_expire(const struct weir_plan *pl, const struct weir_plan_stage *st)
{
	const struct weir_state_def *def = &st->def;
	bool table = def->kind == WEIR_STATE_TABLE || def->kind == WEIR_STATE_ROWS ||
		     (def->kind == WEIR_STATE_JOIN && !def->within && !def->versioned);
	bool latest = def->kind == WEIR_STATE_ROWS; /* of a stream */
	for (uint32_t i = 0; i < st->input_count; i++) {
		table = table && !pl->branches[st->inputs[i]].global;
		latest = latest && !pl->branches[st->inputs[i]].table;
	}
	return table && !st->retracts && !def->retracts && (!def->numbered || latest) && def->foreign == 0;
}

enum weir_plan_growth weir_plan_growth_of(const struct weir_plan *pl, const struct weir_plan_stage *st)
{
	const struct weir_state_def *def = &st->def;
	bool keyed = def->kind == WEIR_STATE_TABLE || def->kind == WEIR_STATE_ROWS ||
		     (def->kind == WEIR_STATE_JOIN && !def->within) ||
		     (def->kind == WEIR_STATE_OVER && !def->over->timed);
	if (!keyed || def->key_count == 0)
		return WEIR_GROWTH_BOUNDED;
	return def->ttl_ms != 0 ? WEIR_GROWTH_TTL : can_expire(pl, st) ? WEIR_GROWTH_KEYS : WEIR_GROWTH_KEYS_ALWAYS;
}

static enum weir_err finish(struct weir_planner *p, struct weir_plan **out)
{
	struct weir_plan *pl = weir_mem_take(p->m, sizeof *pl);
	uint32_t highest = 0;
	for (uint32_t i = 0; i < p->stage_count; i++)
		highest = level_of(p, i) > highest ? level_of(p, i) : highest;
	/* What a join reads of another is known once it is pruned itself. */
	for (uint32_t level = highest; level > 0; level--)
		for (uint32_t i = 0; i < p->stage_count; i++) {
			if (p->stages[i].stage.level == level && p->stages[i].stage.def.kind == WEIR_STATE_JOIN)
				weir_planner_join_prune(p, i);
			if (p->stages[i].stage.level == level && p->stages[i].stage.def.kind == WEIR_STATE_OVER)
				weir_planner_over_prune(p, i);
		}
	for (uint32_t i = 0; i < p->scan_count; i++)
		scan_finish(p, i);
	/* Ascending level, ties by creation: stage numbers decide the order of results. */
	uint32_t *rank = weir_mem_take(p->m, (p->stage_count + 1) * sizeof *rank);
	uint32_t placed = 0;
	pl->stages = weir_mem_take(p->m, (p->stage_count + 1) * sizeof *pl->stages);
	for (uint32_t level = 1; placed < p->stage_count; level++)
		for (uint32_t i = 0; i < p->stage_count; i++)
			if (p->stages[i].stage.level == level) {
				rank[i] = placed;
				pl->stages[placed++] = p->stages[i].stage;
				pl->level_count = level;
			}
	for (uint32_t b = 0; b < p->branch_count; b++) {
		struct weir_plan_branch *br = &p->branches[b];
		if (br->from == WEIR_FROM_STAGE)
			br->origin = rank[br->origin];
		if (br->to == WEIR_TO_STAGE)
			br->target = rank[br->target];
	}
	for (uint32_t s = 0; s < placed; s++) {
		struct weir_plan_stage *st = &pl->stages[s];
		uint32_t *ins = weir_mem_take(p->m, (p->branch_count + 1) * sizeof *ins);
		uint32_t *outs = weir_mem_take(p->m, (p->branch_count + 1) * sizeof *outs);
		for (uint32_t b = 0; b < p->branch_count; b++) {
			if (p->branches[b].to == WEIR_TO_STAGE && p->branches[b].target == s)
				ins[st->input_count++] = b;
			if (p->branches[b].from == WEIR_FROM_STAGE && p->branches[b].origin == s)
				outs[st->branch_count++] = b;
		}
		st->inputs = ins;
		st->branches = outs;
	}
	pl->stage_count = placed;
	pl->scans = weir_mem_take(p->m, (p->scan_count + 1) * sizeof *pl->scans);
	for (uint32_t i = 0; i < p->scan_count; i++)
		pl->scans[i] = p->scans[i].scan;
	pl->scan_count = p->scan_count;
	pl->sinks = p->sinks;
	pl->sink_count = p->sink_count;
	pl->branches = p->branches;
	pl->branch_count = p->branch_count;
	pl->mem = p->m;
	for (uint32_t i = 0; i < pl->stage_count; i++)
		name_inputs_of(p, pl, &pl->stages[i]);
	pl->force_local = p->settings->exchange == WEIR_PLAN_EXCHANGE_LOCAL;
	*out = pl;
	for (uint32_t i = 0; i < pl->stage_count; i++)
		if (can_expire(pl, &pl->stages[i]))
			pl->stages[i].def.ttl_ms = p->settings->state_ttl_ms;
	if (p->settings->exchange == WEIR_PLAN_EXCHANGE_TOPIC)
		weir_plan_repartition(pl, p->settings->app, p->m);
	return WEIR_OK;
}

enum weir_err weir_plan_create(struct weir_plan **out, struct weir_topology *tp,
			       const struct weir_plan_settings *settings, struct weir_diag **dg)
{
	struct weir_planner p = {.tp = tp, .m = weir_topology_mem(tp), .settings = settings, .dg = dg};
	for (uint32_t i = 0; i < weir_topology_node_count(tp); i++) {
		const struct weir_node *node = weir_topology_node(tp, i);
		if (node->kind == WEIR_NODE_SINK) {
			enum weir_err err = weir_planner_sink_add(&p, node);
			if (err != WEIR_OK)
				return err;
		}
	}
	if (p.sink_count == 0)
		return weir_diag_set(dg, WEIR_E_PLAN,
				     "nothing to run: the topology has no sink (no INSERT INTO and no SELECT)");
	return finish(&p, out);
}
