/* relation.c: queries to relation nodes: names are resolved, FROM becomes sources and windows, WHERE filters, the
 * select list projections, UNION ALL unions. Grouping is in group.c. @thread init */
#include "tools/sql/sql.h"

#include <stdio.h>

#include "hotpath/expr/function.h"

enum { ITEMS_MAX = 10000 };

/* ---- helpers that group.c and insert.c use, too ---- */

void sql_walk(struct weir_ast *ast, bool (*visit)(void *ctx, struct weir_ast *a), void *ctx)
{
	struct weir_buf stack = {0};
	weir_buf_put(&stack, &ast, sizeof ast);
	while (stack.bytes > 0) {
		stack.bytes -= sizeof ast;
		memcpy(&ast, stack.data + stack.bytes, sizeof ast);
		if (!visit(ctx, ast))
			break;
		for (uint32_t i = ast->arg_count; i > 0; i--)
			weir_buf_put(&stack, &ast->args[i - 1], sizeof ast);
		if (ast->filter != NULL)
			weir_buf_put(&stack, &ast->filter, sizeof ast);
	}
	weir_buf_fini(&stack);
}

static bool visit_aggregate(void *ctx, struct weir_ast *a)
{
	bool *found = ctx;
	*found = *found || (a->kind == WEIR_AST_CALL && a->over == NULL && weir_name_is_aggregate(a->text));
	return !*found;
}

bool sql_has_aggregate(const struct sql_query *q)
{
	bool found = q->has_group || q->having != NULL;
	for (uint32_t i = 0; i < q->item_count && !found; i++)
		sql_walk(q->items[i].ast, visit_aggregate, &found);
	return found;
}

struct weir_scope sql_scope(struct weir_sql *sq, const struct sql_rel *rel, const char *aggregate_error)
{
	struct weir_scope_column *c = weir_mem_take(sq->m, (rel->column_count + 1) * sizeof *c);
	for (uint32_t i = 0; i < rel->column_count; i++)
		c[i] = (struct weir_scope_column){
			rel->node->columns[i].name, rel->qualifiers != NULL ? rel->qualifiers[i] : rel->qualifier,
			rel->node->columns[i].type, rel->using != NULL && rel->using[i] == SQL_USING_QUALIFIED};
	return (struct weir_scope){.columns = c, .count = rel->column_count, .aggregate_error = aggregate_error};
}

enum weir_err sql_bind(struct weir_sql *sq, const struct weir_scope *scope, const struct weir_ast *ast,
		       const struct weir_expr **out)
{
	return weir_expr_bind(scope, &sq->ts, ast, sq->m, out, sq->dg);
}

enum weir_err sql_bind_condition(struct weir_sql *sq, const struct weir_scope *scope, const struct weir_ast *ast,
				 const char *what, const struct weir_expr **out)
{
	char type[80];
	struct weir_type boolean = {.kind = WEIR_KIND_BOOLEAN};
	enum weir_err err = sql_bind(sq, scope, ast, out);
	if (err != WEIR_OK)
		return err;
	const struct weir_expr *e = weir_expr_coerce(*out, &boolean, sq->m);
	if (e == NULL) {
		struct weir_type t = (*out)->type;
		t.not_null = false;
		return sql_error(sq, ast->at, NULL, "%s must be BOOLEAN, not %s", what,
				 weir_type_text(&t, type, sizeof type));
	}
	*out = e;
	return WEIR_OK;
}

static bool is_window_role(enum weir_column_role r)
{
	return r == WEIR_ROLE_WINDOW_START || r == WEIR_ROLE_WINDOW_END || r == WEIR_ROLE_WINDOW_TIME;
}

/* A row of HOP or SESSION has no one window yet: its window columns may be handed on and grouped by, not computed with.
 */
static enum weir_err check_window_use(struct weir_sql *sq, const struct sql_rel *rel, const struct weir_expr *e,
				      uint32_t at)
{
	if (rel->window == NULL || rel->window->kind == WEIR_WINDOW_TUMBLE || e->op == WEIR_EXPR_COLUMN)
		return WEIR_OK;
	bool bad = false, *used = weir_mem_take(sq->m, rel->node->column_count + 1);
	weir_expr_columns_used(e, used, rel->node->column_count);
	for (uint32_t i = 0; i < rel->node->column_count; i++)
		bad = bad || (used[i] && is_window_role(rel->node->columns[i].role));
	if (!bad)
		return WEIR_OK;
	return sql_error(sq, at, "aggregate with GROUP BY window_start, window_end first",
			 "not supported yet: computing with the window of a row before it is aggregated");
}

enum weir_err sql_project(struct weir_sql *sq, const struct sql_rel *rel, const char *const *names,
			  const struct weir_expr *const *exprs, uint32_t count, uint32_t at, struct sql_rel *out)
{
	struct weir_node *in = rel->node;
	const char **all_names = weir_mem_take(sq->m, (count + 1) * sizeof *all_names);
	const struct weir_expr **all = weir_mem_take(sq->m, (count + 1) * sizeof *all);
	int32_t *group_of = weir_mem_take(sq->m, (count + 1) * sizeof *group_of);
	bool has_time = false;
	for (uint32_t i = 0; i < count; i++) {
		all_names[i] = names[i];
		all[i] = exprs[i];
		bool plain = exprs[i]->op == WEIR_EXPR_COLUMN;
		group_of[i] = plain && rel->group_of != NULL && exprs[i]->column < rel->column_count
				      ? rel->group_of[exprs[i]->column]
				      : -1;
		has_time = has_time || (plain && (int32_t)exprs[i]->column == in->rowtime);
	}
	uint32_t total = count;
	if (rel->window != NULL && in->rowtime >= 0 && !has_time) {
		/* The aggregate above still needs the time column. */
		const struct weir_column *c = &in->columns[in->rowtime];
		all_names[total] = "$rowtime";
		all[total++] = weir_expr_column(sq->m, (uint32_t)in->rowtime, &c->type, c->name);
	}
	struct sql_rel r = *rel;
	r.node = weir_build_project(sq->tp, in, all_names, all, total);
	r.column_count = count;
	r.qualifier = NULL;
	r.qualifiers = NULL;
	r.using = NULL;
	r.group_of = rel->group_of == NULL ? NULL : group_of;
	/* SESSION's partition columns by their new numbers; one that is gone makes the list too short to match. */
	uint32_t *partition = weir_mem_take(sq->m, (rel->partition_count + 1) * sizeof *partition);
	for (uint32_t p = 0; p < rel->partition_count; p++) {
		partition[p] = UINT32_MAX;
		for (uint32_t i = 0; i < count; i++)
			if (exprs[i]->op == WEIR_EXPR_COLUMN && exprs[i]->column == rel->partition[p])
				partition[p] = i;
	}
	r.partition = partition;
	*out = r;
	return sql_check_built(sq, at);
}

/* The name of an item without an alias. */
static const char *item_name(struct weir_sql *sq, const struct sql_item *item, uint32_t i)
{
	if (item->alias != NULL)
		return item->alias;
	if (item->ast->kind == WEIR_AST_COLUMN || item->ast->kind == WEIR_AST_FIELD)
		return item->ast->text;
	return weir_mem_printf(sq->m, "EXPR$%u", i);
}

/* The name of a column that * stands for. A join may have a name twice: the second one gets a number, as in Flink. */
static const char *star_name(struct weir_sql *sq, const struct weir_buf *names, const char *name, bool joined)
{
	const char *const *have = (const char *const *)names->data;
	const char *out = name;
	for (uint32_t number = 0, i = 0; joined && i < names->bytes / sizeof *have;) {
		if (strcmp(have[i], out) != 0) {
			i++;
			continue;
		}
		out = weir_mem_printf(sq->m, "%s%u", name, number++);
		i = 0;
	}
	return out;
}

enum weir_err sql_bind_items(struct weir_sql *sq, const struct sql_query *q, const struct sql_rel *rel,
			     const struct weir_scope *scope, const char ***names, const struct weir_expr ***exprs,
			     uint32_t *count)
{
	struct weir_buf n = {0}, e = {0};
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; err == WEIR_OK && i < q->item_count; i++) {
		const struct sql_item *item = &q->items[i];
		const struct weir_expr *x = NULL;
		if (item->ast->kind != WEIR_AST_STAR) {
			const char *name = item_name(sq, item, i);
			err = sql_bind(sq, scope, item->ast, &x);
			if (err == WEIR_OK)
				err = check_window_use(sq, rel, x, item->ast->at);
			weir_buf_put(&n, &name, sizeof name);
			weir_buf_put(&e, &x, sizeof x);
			continue;
		}
		const char *qualifier = item->ast->qualifier;
		if (sql_has_aggregate(q))
			err = sql_error(sq, item->ast->at, "name the grouped columns and aggregates",
					"* cannot stand beside GROUP BY");
		uint32_t before = (uint32_t)(e.bytes / sizeof x);
		/* Those of USING first, then the others. */
		for (uint32_t k = 0; err == WEIR_OK && k < 2 * scope->count; k++) {
			uint32_t c = k % scope->count;
			const char *of = scope->columns[c].qualifier;
			bool first = qualifier == NULL && rel->using != NULL && rel->using[c] == SQL_USING_FIRST;
			if (first != (k < scope->count) || (qualifier == NULL && scope->columns[c].hidden))
				continue;
			if (qualifier != NULL && (of == NULL || strcmp(qualifier, of) != 0))
				continue;
			x = weir_expr_column(sq->m, c, &scope->columns[c].type, scope->columns[c].name);
			const char *name = star_name(sq, &n, scope->columns[c].name, rel->qualifiers != NULL);
			weir_buf_put(&n, &name, sizeof name);
			weir_buf_put(&e, &x, sizeof x);
		}
		if (err == WEIR_OK && e.bytes / sizeof x == before)
			err = sql_error(sq, item->ast->at, NULL, "unknown table %s", qualifier);
	}
	*count = (uint32_t)(e.bytes / sizeof **exprs);
	if (err == WEIR_OK && *count > ITEMS_MAX)
		err = sql_error(sq, q->at, NULL, "more than %d columns", ITEMS_MAX);
	*names = weir_mem_copy(sq->m, n.data, n.bytes);
	*exprs = weir_mem_copy(sq->m, e.data, e.bytes);
	weir_buf_fini(&n);
	weir_buf_fini(&e);
	return err;
}

/* ---- FROM ---- */

enum weir_err sql_rename_columns(struct weir_sql *sq, struct sql_rel *rel, const char *const *names, uint32_t count,
				 uint32_t at)
{
	if (count != rel->column_count)
		return sql_error(sq, at, NULL, "%u names for %u columns", count, rel->column_count);
	const struct weir_expr **e = weir_mem_take(sq->m, (count + 1) * sizeof *e);
	for (uint32_t i = 0; i < count; i++)
		e[i] = weir_expr_column(sq->m, i, &rel->node->columns[i].type, names[i]);
	return sql_project(sq, rel, names, e, count, at, rel);
}

static enum weir_err compile_view(struct weir_sql *sq, struct sql_table *t, bool changes, uint32_t at,
				  struct sql_rel *out)
{
	if (!t->compiled[changes]) {
		enum weir_err err = sql_compile_query(sq, t->query, changes, &t->rel[changes]);
		if (err == WEIR_OK && t->name_count > 0)
			err = sql_rename_columns(sq, &t->rel[changes], t->names, t->name_count, at);
		if (err != WEIR_OK)
			return err;
		t->compiled[changes] = true;
	}
	*out = t->rel[changes];
	return WEIR_OK;
}

void sql_name_table_key(struct weir_sql *sq, struct sql_rel *rel)
{
	const struct weir_node *n = rel->node;
	int32_t *group_of = weir_mem_take(sq->m, (rel->column_count + 1) * sizeof *group_of);
	const char **names = weir_mem_take(sq->m, (n->table_key_count + 1) * sizeof *names);
	if (!n->is_table)
		return;
	for (uint32_t i = 0; i < rel->column_count; i++)
		group_of[i] = -1;
	for (uint32_t k = 0; k < n->table_key_count; k++) {
		for (uint32_t i = 0; i < rel->column_count; i++)
			if (weir_node_same_column(n, i, n->table_key[k]))
				group_of[i] = (int32_t)k;
		names[k] = n->columns[n->table_key[k]].name;
		/* Joined tables may share the name. */
		if (rel->qualifiers != NULL && rel->qualifiers[n->table_key[k]] != NULL)
			names[k] = weir_mem_printf(sq->m, "%s.%s", rel->qualifiers[n->table_key[k]], names[k]);
	}
	rel->group_of = group_of;
	rel->group_count = n->table_key_count;
	rel->group_names = names;
}

static enum weir_err compile_table(struct weir_sql *sq, const struct sql_from *f, bool changes, struct sql_rel *out)
{
	struct sql_table *t = NULL;
	enum weir_err err = sql_get_table(sq, f->table, f->at, &t);
	if (err != WEIR_OK)
		return err;
	if (t->def == NULL) {
		err = compile_view(sq, t, changes, f->at, out);
	} else {
		err = sql_use_table(sq, t, false, f->at);
		if (err != WEIR_OK)
			return err;
		*out = (struct sql_rel){.node = weir_build_source(sq->tp, t->def),
					.column_count = t->def->column_count};
		err = sql_check_built(sq, f->at);
		sql_name_table_key(sq, out);
	}
	out->qualifier = f->table;
	return err;
}

bool sql_time_may_be_missing(const struct weir_node *n, uint32_t column)
{
	bool missing = false;
	while (n->kind == WEIR_NODE_FILTER || n->kind == WEIR_NODE_PROJECT || n->kind == WEIR_NODE_JOIN) {
		uint32_t side = 0;
		if (n->kind == WEIR_NODE_PROJECT) {
			if (column >= n->column_count || n->exprs[column]->op != WEIR_EXPR_COLUMN)
				return false;
			column = n->exprs[column]->column;
		} else if (n->kind == WEIR_NODE_JOIN) {
			enum weir_join_kind kind = n->join->kind;
			side = column >= n->inputs[0]->column_count;
			column -= side == 1 ? n->inputs[0]->column_count : 0;
			missing = missing || kind == WEIR_JOIN_FULL ||
				  kind == (side == 0 ? WEIR_JOIN_RIGHT : WEIR_JOIN_LEFT);
		}
		n = n->inputs[side];
	}
	return missing && column < n->column_count &&
	       (n->columns[column].role == WEIR_ROLE_ROWTIME || n->columns[column].role == WEIR_ROLE_WINDOW_TIME);
}

/* The column that DESCRIPTOR names, which must be a time attribute. */
static enum weir_err find_time(struct weir_sql *sq, const struct sql_from *f, const struct sql_rel *rel, uint32_t *out)
{
	char hint[200];
	const char **names = weir_mem_take(sq->m, (rel->column_count + 1) * sizeof *names);
	for (uint32_t i = 0; i < rel->column_count; i++) {
		names[i] = rel->node->columns[i].name;
		enum weir_column_role r = rel->node->columns[i].role;
		if (strcmp(names[i], f->time_column) != 0)
			continue;
		if (r == WEIR_ROLE_ROWTIME || r == WEIR_ROLE_WINDOW_TIME) {
			*out = i;
			return WEIR_OK;
		}
		if (sql_time_may_be_missing(rel->node, i))
			return sql_error(
				sq, f->time_at, SQL_KEPT_TIME,
				"column %s is no time attribute any more: it is NULL in rows that an outer join "
				"keeps without a match",
				f->time_column);
		snprintf(hint, sizeof hint,
			 "declare WATERMARK FOR %.60s AS %.60s - INTERVAL '5' SECOND where its table is created",
			 names[i], names[i]);
		return sql_error(sq, f->time_at, hint, "column %s is not a time attribute", f->time_column);
	}
	const char *near = weir_nearest_name(f->time_column, strlen(f->time_column), names, rel->column_count);
	snprintf(hint, sizeof hint, "did you mean %.100s?", near == NULL ? "" : near);
	return sql_error(sq, f->time_at, near == NULL ? NULL : hint, "unknown column %s", f->time_column);
}

static enum weir_err compile_window(struct weir_sql *sq, const struct sql_from *f, struct sql_rel *rel)
{
	uint32_t time = 0;
	if (rel->window != NULL)
		return sql_error(sq, f->window_at, "aggregate with GROUP BY window_start, window_end first",
				 "a window over rows that are in windows already");
	if (rel->node->kind == WEIR_NODE_SOURCE && rel->node->is_table)
		return sql_error(sq, f->window_at,
				 "to read its records as a stream, declare the topic once more without PRIMARY KEY",
				 "not supported yet: windows over a table (%s has a PRIMARY KEY)",
				 f->table != NULL ? f->table : "it");
	if (rel->node->is_table)
		return sql_error(sq, f->window_at, "window the stream that the table is made from",
				 "not supported yet: windows over a table (a plain GROUP BY)");
	enum weir_err err = find_time(sq, f, rel, &time);
	if (err != WEIR_OK)
		return err;
	uint32_t *partition = weir_mem_take(sq->m, (f->partition_count + 1) * sizeof *partition);
	struct weir_scope scope = sql_scope(sq, rel, NULL);
	for (uint32_t i = 0; i < f->partition_count; i++) {
		const struct weir_expr *e = NULL;
		err = sql_bind(sq, &scope, f->partition[i], &e);
		if (err != WEIR_OK)
			return err;
		if (e->op != WEIR_EXPR_COLUMN)
			return sql_error(sq, f->partition[i]->at, NULL, "PARTITION BY takes columns");
		partition[i] = e->column;
	}
	struct weir_window_spec *w = weir_mem_copy(sq->m, &f->window, sizeof f->window);
	if (w->kind != WEIR_WINDOW_SESSION && f->partition_count > 0)
		return sql_error(sq, f->partition[0]->at, "put the column into GROUP BY",
				 "PARTITION BY belongs to SESSION");
	struct weir_node *node = weir_build_window(sq->tp, rel->node, (int32_t)time, w);
	*rel = (struct sql_rel){.node = node,
				.column_count = node->column_count,
				.qualifier = rel->qualifier,
				.window = w,
				.window_at = f->window_at,
				.partition = partition,
				.partition_count = f->partition_count};
	return sql_check_built(sq, f->window_at);
}

enum weir_err sql_compile_from(struct weir_sql *sq, const struct sql_from *f, bool changes, struct sql_rel *out)
{
	bool windowed = f->window.kind != WEIR_WINDOW_NONE;
	enum weir_err err = f->query != NULL ? sql_compile_query(sq, f->query, changes && !windowed, out)
					     : compile_table(sq, f, changes && !windowed, out);
	if (err != WEIR_OK)
		return err;
	if (f->query != NULL) {
		out->qualifier = NULL;
		out->qualifiers = NULL;
		out->using = NULL;
	}
	if (windowed) {
		err = compile_window(sq, f, out);
		if (err != WEIR_OK)
			return err;
	}
	if (f->name_count > 0) {
		err = sql_rename_columns(sq, out, f->names, f->name_count, f->at);
		if (err != WEIR_OK)
			return err;
	}
	if (f->alias != NULL) {
		out->qualifier = f->alias;
		out->qualifiers = NULL;
		out->using = NULL;
	}
	return WEIR_OK;
}

/* ---- SELECT and UNION ALL ---- */

enum weir_err sql_compile_where(struct weir_sql *sq, const struct weir_ast *where, struct sql_rel *rel)
{
	struct weir_scope scope = sql_scope(sq, rel, "WHERE cannot hold an aggregate: use HAVING");
	const struct weir_expr *e = NULL;
	enum weir_err err = sql_bind_condition(sq, &scope, where, "WHERE", &e);
	if (err == WEIR_OK)
		err = check_window_use(sq, rel, e, where->at);
	if (err == WEIR_OK && rel->window != NULL && rel->window->kind != WEIR_WINDOW_TUMBLE &&
	    e->op == WEIR_EXPR_COLUMN && is_window_role(rel->node->columns[e->column].role))
		err = sql_error(sq, where->at, NULL, "WHERE must be BOOLEAN");
	if (err != WEIR_OK)
		return err;
	if (e->op == WEIR_EXPR_CONST && !e->is_null && e->value.i64 != 0)
		return WEIR_OK;
	rel->node = weir_build_filter(sq->tp, rel->node, e);
	return sql_check_built(sq, where->at);
}

/* Conditions that a join has taken are bound in front of all tables, too: a name that two of them have is no name. */
static enum weir_err check_taken(struct weir_sql *sq, const struct sql_where *wh, const struct sql_rel *rel)
{
	struct weir_scope scope = sql_scope(sq, rel, NULL);
	const struct weir_expr *e = NULL;
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < wh->count && err == WEIR_OK; i++)
		if (wh->taken[i])
			err = sql_bind_condition(sq, &scope, wh->parts[i], "WHERE", &e);
	return err;
}

/* The joins of FROM. What WHERE says of an inner join's tables holds before a later join as behind it, unless that one
 * keeps rows of its right side. *where: what the joins have not taken, NULL: nothing. */
static enum weir_err compile_joins(struct weir_sql *sq, const struct sql_query *q, struct weir_ast **where,
				   struct sql_rel *out)
{
	struct weir_ast *one = *where, *rest = NULL;
	bool many = one != NULL && sql_is_and(one);
	struct sql_where wh = {.parts = many ? one->args : &one, .count = many ? one->arg_count : one != NULL};
	enum weir_err err = WEIR_OK;
	uint32_t from = q->join_count, left = 0;
	wh.taken = weir_mem_take(sq->m, wh.count + 1);
	while (from > 0 && q->joins[from - 1].kind != WEIR_JOIN_RIGHT && q->joins[from - 1].kind != WEIR_JOIN_FULL)
		from--;
	for (uint32_t i = 0; i < q->join_count && err == WEIR_OK; i++) {
		wh.last = i + 1 == q->join_count;
		err = sql_compile_join(sq, &q->joins[i], i >= from ? &wh : NULL, out);
	}
	if (err == WEIR_OK)
		err = check_taken(sq, &wh, out);
	if (one != NULL)
		rest = weir_mem_copy(sq->m, one, sizeof *one);
	if (many)
		rest->args = weir_mem_take(sq->m, (wh.count + 1) * sizeof(struct weir_ast *));
	for (uint32_t i = 0; i < wh.count; i++) {
		if (many && !wh.taken[i])
			rest->args[left] = wh.parts[i];
		left += !wh.taken[i];
	}
	if (many)
		rest->arg_count = left;
	*where = left == 0 ? NULL : many && left == 1 ? rest->args[0] : rest;
	return err;
}

enum weir_err sql_compile_input(struct weir_sql *sq, const struct sql_query *q, bool changes, struct sql_rel *out)
{
	struct weir_ast *where = q->where;
	bool ranked = false;
	enum weir_err err = sql_compile_rank(sq, q, out, &where, &ranked);
	if (err == WEIR_OK && !ranked)
		err = sql_compile_from(sq, &q->from, changes, out);
	if (err == WEIR_OK && q->join_count > 0)
		err = compile_joins(sq, q, &where, out);
	if (err == WEIR_OK && where != NULL)
		err = sql_compile_semi(sq, &where, out);
	if (err == WEIR_OK && where != NULL)
		err = sql_compile_where(sq, where, out);
	return err;
}

static enum weir_err compile_select(struct weir_sql *sq, const struct sql_query *q, bool changes, struct sql_rel *out)
{
	bool grouped = sql_has_aggregate(q);
	struct sql_rel rel;
	bool plain = !grouped && q->join_count == 0 && !sql_has_over(q, NULL);
	enum weir_err err = sql_compile_input(sq, q, changes && plain, &rel);
	if (err != WEIR_OK)
		return err;
	if (grouped)
		return sql_compile_group(sq, q, &rel, changes, out);
	if (sql_has_over(q, NULL))
		return sql_compile_over(sq, q, &rel, out);
	struct weir_scope scope = sql_scope(sq, &rel, NULL);
	const char **names = NULL;
	const struct weir_expr **exprs = NULL;
	uint32_t count = 0;
	err = sql_bind_items(sq, q, &rel, &scope, &names, &exprs, &count);
	return err == WEIR_OK ? sql_project(sq, &rel, names, exprs, count, q->at, out) : err;
}

/* rel with its columns converted to types, where they differ. */
static enum weir_err convert_columns(struct weir_sql *sq, struct sql_rel *rel, const struct weir_type *types,
				     uint32_t at)
{
	uint32_t count = rel->column_count;
	const char **names = weir_mem_take(sq->m, (count + 1) * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (count + 1) * sizeof *exprs);
	bool same = count == rel->node->column_count;
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_column *c = &rel->node->columns[i];
		names[i] = c->name;
		const struct weir_expr *e = weir_expr_column(sq->m, i, &c->type, c->name);
		exprs[i] = weir_expr_coerce(e, &types[i], sq->m);
		if (exprs[i] == NULL)
			exprs[i] = weir_expr_cast(e, &types[i], false, sq->m);
		WEIR_ASSERT(exprs[i] != NULL); /* a common type can always be reached */
		same = same && exprs[i] == e;
	}
	return same ? WEIR_OK : sql_project(sq, rel, names, exprs, count, at, rel);
}

static enum weir_err compile_union(struct weir_sql *sq, const struct sql_query *q, bool changes, struct sql_rel *out)
{
	char a[80], b[80];
	struct sql_rel *rels = weir_mem_take(sq->m, q->arm_count * sizeof *rels);
	struct weir_node **nodes = weir_mem_take(sq->m, q->arm_count * sizeof(struct weir_node *));
	struct weir_type *types = NULL;
	enum weir_err err = WEIR_OK;
	bool tables = false;
	for (uint32_t i = 0; i < q->arm_count; i++) {
		err = sql_compile_query(sq, q->arms[i], changes, &rels[i]);
		if (err != WEIR_OK)
			return err;
		tables = tables || rels[i].node->is_table;
	}
	/* Rows of a stream beside those of a table: in a set each counts once. */
	for (uint32_t i = 0; i < q->arm_count && tables && q->is_set && err == WEIR_OK; i++)
		if (!rels[i].node->is_table)
			err = sql_group_all(sq, &rels[i], q->arms[i]->at, false, &rels[i]);
	for (uint32_t i = 0; i < q->arm_count; i++) {
		if (err != WEIR_OK)
			return err;
		if (rels[i].node->is_table != rels[0].node->is_table)
			return sql_error(sq, q->arms[i]->at, "make tables of all of them: GROUP BY, SELECT DISTINCT",
					 "not supported yet: UNION ALL of rows that change and rows that do not");
		if (rels[i].node->is_table && !weir_node_knows_rows(rels[i].node))
			return sql_error(sq, q->arms[i]->at, "leave EMIT CHANGES out, or write each into the sink",
					 "not supported yet: UNION ALL of windows that change (EMIT CHANGES)");
		if (rels[i].window != NULL && rels[i].window->kind != WEIR_WINDOW_TUMBLE)
			return sql_error(sq, q->arms[i]->at, NULL,
					 "not supported yet: UNION ALL of windows before they are aggregated");
		if (rels[i].column_count != rels[0].column_count)
			return sql_error(sq, q->arms[i]->at, NULL,
					 "this SELECT has %u columns, the first of the UNION ALL has %u",
					 rels[i].column_count, rels[0].column_count);
		if (i == 0) {
			types = weir_mem_take(sq->m, (rels[0].column_count + 1) * sizeof *types);
			for (uint32_t c = 0; c < rels[0].column_count; c++)
				types[c] = rels[0].node->columns[c].type;
			continue;
		}
		for (uint32_t c = 0; c < rels[0].column_count; c++) {
			struct weir_type was = types[c], other = rels[i].node->columns[c].type;
			if (!weir_type_common(&was, &other, &types[c]))
				return sql_error(sq, q->arms[i]->at, "CAST one of them",
						 "UNION ALL: column %s is %s here and %s before",
						 rels[0].node->columns[c].name, weir_type_text(&other, a, sizeof a),
						 weir_type_text(&was, b, sizeof b));
		}
	}
	for (uint32_t i = 0; err == WEIR_OK && i < q->arm_count; i++) {
		rels[i].window = NULL;
		err = convert_columns(sq, &rels[i], types, q->arms[i]->at);
		nodes[i] = rels[i].node;
	}
	if (err != WEIR_OK)
		return err;
	*out = (struct sql_rel){.node = weir_build_union(sq->tp, nodes, q->arm_count),
				.column_count = rels[0].column_count};
	if (out->node->is_table)
		sql_name_table_key(sq, out);
	return sql_check_built(sq, q->at);
}

enum weir_err sql_compile_query(struct weir_sql *sq, struct sql_query *q, bool changes, struct sql_rel *out)
{
	if (q->distinct)
		return sql_compile_distinct(sq, q, changes, out);
	return q->arm_count > 0 ? compile_union(sq, q, changes, out) : compile_select(sq, q, changes, out);
}
