/* group.c: GROUP BY, aggregates and HAVING to an aggregate node. The select list and HAVING are bound over its output:
 * group expressions and aggregate calls become its columns, any other column is an error. @thread init */
#include "tools/sql/sql.h"

#include <stdio.h>
#include <strings.h>

#include "hotpath/expr/function.h"

struct grouping {
	struct weir_sql *sq;
	const struct sql_rel *in;
	struct weir_scope in_scope;
	bool windowed;
	uint32_t key_count;
	struct weir_ast **key_asts;
	const struct weir_expr **keys;
	const char **key_names;
	struct weir_buf calls; /* struct weir_ast *: distinct aggregate calls */
	struct weir_buf args;  /* const struct weir_expr *: their arguments and filters */
	struct weir_agg *aggs;
	const char **agg_names;
	uint32_t agg_count;
	struct weir_node *node;
	struct weir_window_spec window; /* the input's, and for sessions whose they are */
};

static enum weir_column_role role_of(const struct sql_rel *rel, const struct weir_expr *e)
{
	return e->op == WEIR_EXPR_COLUMN ? rel->node->columns[e->column].role : WEIR_ROLE_NONE;
}

static bool is_window_role(enum weir_column_role r)
{
	return r == WEIR_ROLE_WINDOW_START || r == WEIR_ROLE_WINDOW_END || r == WEIR_ROLE_WINDOW_TIME;
}

/* ---- keys ---- */

/* GROUP BY of an alias of the select list, which SQL does not know: worth a hint. */
static bool is_alias(const struct sql_query *q, const struct weir_ast *a)
{
	for (uint32_t i = 0; a->kind == WEIR_AST_COLUMN && a->qualifier == NULL && i < q->item_count; i++)
		if (q->items[i].alias != NULL && strcmp(q->items[i].alias, a->text) == 0)
			return true;
	return false;
}

static bool has_column(const struct grouping *g, const char *name)
{
	for (uint32_t i = 0; i < g->in_scope.count; i++)
		if (strcmp(g->in_scope.columns[i].name, name) == 0)
			return true;
	return false;
}

static enum weir_err bind_keys(struct grouping *g, const struct sql_query *q, bool seen[3])
{
	struct weir_sql *sq = g->sq;
	g->key_asts = weir_mem_take(sq->m, (q->group_count + 1) * sizeof(struct weir_ast *));
	g->keys = weir_mem_take(sq->m, (q->group_count + 1) * sizeof *g->keys);
	g->key_names = weir_mem_take(sq->m, (q->group_count + 1) * sizeof *g->key_names);
	g->in_scope.aggregate_error = "GROUP BY cannot hold an aggregate";
	for (uint32_t i = 0; i < q->group_count; i++) {
		struct weir_ast *a = q->group_by[i];
		const struct weir_expr *e = NULL;
		if (a->kind == WEIR_AST_INTEGER)
			return sql_error(sq, a->at, "write the expression itself", "GROUP BY takes no positions");
		if (a->kind == WEIR_AST_STAR)
			return sql_error(sq, a->at, NULL, "* cannot stand in GROUP BY");
		if (is_alias(q, a) && !has_column(g, a->text))
			return sql_error(sq, a->at, "write the expression itself",
					 "%s is an alias: GROUP BY does not see it", a->text);
		enum weir_err err = sql_bind(sq, &g->in_scope, a, &e);
		if (err != WEIR_OK)
			return err;
		enum weir_column_role role = role_of(g->in, e);
		if (g->in->window != NULL && is_window_role(role)) {
			seen[role - WEIR_ROLE_WINDOW_START] = true;
			continue;
		}
		bool twice = false;
		for (uint32_t k = 0; k < g->key_count; k++)
			twice = twice || weir_expr_equal(g->keys[k], e);
		if (twice)
			continue;
		g->key_asts[g->key_count] = a;
		g->key_names[g->key_count] =
			a->kind == WEIR_AST_COLUMN || a->kind == WEIR_AST_FIELD ? a->text : e->text;
		g->keys[g->key_count++] = e;
	}
	return WEIR_OK;
}

/* Whose sessions they are: PARTITION BY names the first group columns, or all; without it a session spans all keys. */
static enum weir_err check_session(struct grouping *g, const struct sql_query *q, bool changes)
{
	const struct sql_rel *in = g->in;
	uint32_t matched = 0;
	for (uint32_t k = 0; k < g->key_count && k < in->partition_count; k++)
		for (uint32_t p = 0; p < in->partition_count; p++)
			matched += g->keys[k]->op == WEIR_EXPR_COLUMN && g->keys[k]->column == in->partition[p];
	if (matched != in->partition_count)
		return sql_error(g->sq, q->group_count > 0 ? q->group_by[0]->at : q->at,
				 "group by the columns of PARTITION BY first",
				 "not supported yet: a SESSION partitioned by other columns than GROUP BY begins with");
	g->window.shared = matched < g->key_count;
	g->window.shared_keys = matched;
	if (g->window.shared && changes)
		return sql_error(g->sq, in->window_at, "PARTITION BY all group columns, or leave EMIT CHANGES out",
				 "not supported yet: EMIT CHANGES of sessions that span keys");
	if (g->window.shared && matched == 0)
		sql_warn(g->sq, in->window_at,
			 "without PARTITION BY a session spans all keys, and has a row for each %s; "
			 "SESSION(TABLE t PARTITION BY %s, ...) makes sessions of each",
			 g->key_names[0], g->key_names[0]);
	return WEIR_OK;
}

static enum weir_err check_windows(struct grouping *g, const struct sql_query *q, const bool seen[3], bool changes)
{
	struct weir_sql *sq = g->sq;
	const struct sql_rel *in = g->in;
	uint32_t at = q->group_count > 0 ? q->group_by[0]->at : q->at;
	if (in->window == NULL)
		return WEIR_OK;
	g->window = *in->window;
	g->windowed = seen[0] && seen[1];
	if (g->windowed)
		return in->window->kind == WEIR_WINDOW_SESSION ? check_session(g, q, changes) : WEIR_OK;
	if (seen[0] || seen[1] || seen[2])
		return sql_error(sq, at, "GROUP BY window_start, window_end, ...",
				 "a window's GROUP BY needs both window_start and window_end");
	if (in->window->kind != WEIR_WINDOW_TUMBLE)
		return sql_error(sq, at, "GROUP BY window_start, window_end, ...",
				 "not supported yet: a plain GROUP BY over HOP, CUMULATE or SESSION windows");
	sql_warn(sq, at, "GROUP BY without window_start, window_end is one result over all time, not one per window");
	return WEIR_OK;
}

/* ---- aggregates ---- */

static bool collect_call(void *ctx, struct weir_ast *a)
{
	struct grouping *g = ctx;
	struct weir_ast *const *calls = (struct weir_ast *const *)g->calls.data;
	if (a->kind != WEIR_AST_CALL || a->over != NULL || !weir_name_is_aggregate(a->text))
		return true;
	for (uint32_t i = 0; i < g->agg_count; i++)
		if (weir_ast_equal(calls[i], a))
			return true;
	weir_buf_put(&g->calls, &a, sizeof a);
	g->agg_count++;
	return true;
}

/* The number of e among the arguments. */
static int32_t add_arg(struct grouping *g, const struct weir_expr *e)
{
	const struct weir_expr *const *args = (const struct weir_expr *const *)g->args.data;
	uint32_t count = (uint32_t)(g->args.bytes / sizeof e);
	for (uint32_t i = 0; i < count; i++)
		if (weir_expr_equal(args[i], e))
			return (int32_t)i;
	weir_buf_put(&g->args, &e, sizeof e);
	return (int32_t)count;
}

static enum weir_err check_call_window(struct grouping *g, const struct weir_ast *a, const struct weir_expr *e)
{
	bool bad = false, *used = weir_mem_take(g->sq->m, g->in->node->column_count + 1);
	if (g->in->window == NULL || g->in->window->kind == WEIR_WINDOW_TUMBLE)
		return WEIR_OK;
	weir_expr_columns_used(e, used, g->in->node->column_count);
	for (uint32_t i = 0; i < g->in->node->column_count; i++)
		bad = bad || (used[i] && is_window_role(g->in->node->columns[i].role));
	if (bad)
		return sql_error(g->sq, a->at, NULL, "an aggregate cannot read the window it is computed for");
	return WEIR_OK;
}

static enum weir_err bind_call(struct grouping *g, const struct weir_ast *a, struct weir_agg *out)
{
	struct weir_sql *sq = g->sq;
	struct weir_diag *inner = NULL;
	const struct weir_expr *arg = NULL, *filter = NULL;
	enum weir_err err = WEIR_OK;
	g->in_scope.aggregate_error = "an aggregate cannot stand inside another";
	if (!a->star_arg && a->arg_count != 1)
		return sql_error(sq, a->at, NULL, "%s takes 1 argument, not %u", a->text, a->arg_count);
	if (!a->star_arg)
		err = sql_bind(sq, &g->in_scope, a->args[0], &arg);
	if (err == WEIR_OK && arg != NULL)
		err = check_call_window(g, a, arg);
	if (err == WEIR_OK && a->filter != NULL)
		err = sql_bind_condition(sq, &g->in_scope, a->filter, "FILTER", &filter);
	if (err == WEIR_OK && filter != NULL)
		err = check_call_window(g, a, filter);
	if (err != WEIR_OK)
		return err;
	err = weir_agg_resolve(out, a->text, a->distinct, arg == NULL ? NULL : &arg->type, &inner);
	if (err != WEIR_OK)
		return sql_error_from(sq, a->at, inner);
	struct weir_buf text = {0};
	weir_ast_print(a, &text);
	out->text = weir_mem_strndup(sq->m, (const char *)text.data, text.bytes > 200 ? 200 : text.bytes);
	weir_buf_fini(&text);
	out->arg = arg == NULL ? -1 : add_arg(g, arg);
	out->filter = filter == NULL ? -1 : add_arg(g, filter);
	return WEIR_OK;
}

static enum weir_err bind_calls(struct grouping *g, const struct sql_query *q)
{
	for (uint32_t i = 0; i < q->item_count; i++)
		sql_walk(q->items[i].ast, collect_call, g);
	if (q->having != NULL)
		sql_walk(q->having, collect_call, g);
	struct weir_ast *const *calls = (struct weir_ast *const *)g->calls.data;
	g->aggs = weir_mem_take(g->sq->m, (g->agg_count + 1) * sizeof *g->aggs);
	g->agg_names = weir_mem_take(g->sq->m, (g->agg_count + 1) * sizeof *g->agg_names);
	for (uint32_t i = 0; i < g->agg_count; i++) {
		enum weir_err err = bind_call(g, calls[i], &g->aggs[i]);
		if (err != WEIR_OK)
			return err;
		g->agg_names[i] = g->aggs[i].text;
	}
	return WEIR_OK;
}

/* ---- the select list over the result ---- */

static const struct weir_expr *output_column(const struct grouping *g, uint32_t c)
{
	return weir_expr_column(g->sq->m, c, &g->node->columns[c].type, g->node->columns[c].name);
}

/* A column of the input: a group column, a window column, or a mistake. */
static enum weir_err take_column(struct grouping *g, const struct weir_ast *a, const struct weir_expr **out)
{
	const struct weir_expr *e = NULL;
	enum weir_err err = sql_bind(g->sq, &g->in_scope, a, &e);
	if (err != WEIR_OK)
		return err;
	for (uint32_t i = 0; i < g->key_count; i++) {
		if (weir_expr_equal(g->keys[i], e)) {
			*out = output_column(g, i);
			return WEIR_OK;
		}
	}
	enum weir_column_role role = role_of(g->in, e);
	if (g->windowed && is_window_role(role)) {
		*out = output_column(g, g->key_count + g->agg_count + (uint32_t)(role - WEIR_ROLE_WINDOW_START));
		return WEIR_OK;
	}
	/* r.x where r itself is a group column. */
	if (e->op != WEIR_EXPR_COLUMN)
		for (uint32_t i = 0; i < g->key_count; i++)
			if (e->arg_count > 0 && weir_expr_equal(g->keys[i], e->args[0]))
				return sql_error(g->sq, a->at, "add it to GROUP BY", "%s must be in GROUP BY itself",
						 a->text);
	if (g->in->window != NULL && is_window_role(role))
		return sql_error(g->sq, a->at, "GROUP BY window_start, window_end, ...",
				 "%s needs window_start and window_end in GROUP BY", a->text);
	return sql_error(g->sq, a->at, "add it to GROUP BY, or take FIRST_VALUE or LAST_VALUE of it",
			 "column %s must be in GROUP BY or inside an aggregate", a->text);
}

/* Flink's aggregates that are not here: without this, their arguments would be what the error is about. */
static bool is_later_aggregate(const char *name)
{
	static const char *const later[] = {"STDDEV",
					    "STDDEV_POP",
					    "STDDEV_SAMP",
					    "VARIANCE",
					    "VAR_POP",
					    "VAR_SAMP",
					    "COLLECT",
					    "LISTAGG",
					    "JSON_ARRAYAGG",
					    "PERCENTILE",
					    "APPROX_COUNT_DISTINCT",
					    "JSON_OBJECTAGG"};
	for (size_t i = 0; i < WEIR_COUNT_OF(later); i++)
		if (strcasecmp(name, later[i]) == 0)
			return true;
	return false;
}

/* A call by a name that the table does not have; some operators are words, and COALESCE is none of the table's. */
static bool is_unknown_call(const struct weir_ast *a)
{
	static const char *const built_in[] = {"AND", "OR", "NOT", "COALESCE"};
	const struct weir_function *fn;
	uint32_t entries;
	if (a->kind != WEIR_AST_CALL || (a->text[0] | 0x20) < 'a' || (a->text[0] | 0x20) > 'z' || a->arg_count == 0)
		return false;
	for (size_t i = 0; i < WEIR_COUNT_OF(built_in); i++)
		if (strcasecmp(a->text, built_in[i]) == 0)
			return false;
	return !weir_function_find(a->text, &fn, &entries);
}

static enum weir_err intercept(void *ctx, const struct weir_ast *a, const struct weir_expr **out, struct weir_diag **dg)
{
	struct grouping *g = ctx;
	(void)dg;
	if (a->kind == WEIR_AST_COLUMN)
		return take_column(g, a, out);
	if (a->kind == WEIR_AST_CALL && a->over != NULL)
		return sql_error(g->sq, a->at, "aggregate in a sub-query, and write OVER in the outer one",
				 "a function OVER cannot stand beside GROUP BY and aggregates");
	if (a->kind == WEIR_AST_CALL && weir_name_is_aggregate(a->text)) {
		struct weir_ast *const *calls = (struct weir_ast *const *)g->calls.data;
		uint32_t found = g->agg_count;
		for (uint32_t i = 0; i < g->agg_count && found == g->agg_count; i++)
			if (calls[i] == a)
				found = i;
		for (uint32_t i = 0; i < g->agg_count && found == g->agg_count; i++)
			if (weir_ast_equal(calls[i], a))
				found = i;
		if (found < g->agg_count)
			*out = output_column(g, g->key_count + found);
		return WEIR_OK;
	}
	if (a->kind == WEIR_AST_CALL && is_later_aggregate(a->text))
		return sql_error(g->sq, a->at, NULL, "not supported yet: %s", a->text);
	/* Before its columns, which would be what the error is about. */
	if (is_unknown_call(a)) {
		const char *near = weir_function_nearest(a->text);
		return sql_error(g->sq, a->at, near ? weir_mem_printf(g->sq->m, "did you mean %s?", near) : NULL,
				 "unknown function %s", a->text);
	}
	for (uint32_t i = 0; i < g->key_count && *out == NULL; i++)
		if (g->key_asts[i]->kind == a->kind && weir_ast_equal(g->key_asts[i], a))
			*out = output_column(g, i);
	return WEIR_OK;
}

static const char *state_kind(const struct grouping *g)
{
	if (!g->windowed)
		return "group";
	return g->in->window->kind == WEIR_WINDOW_TUMBLE     ? "tumble"
	       : g->in->window->kind == WEIR_WINDOW_HOP      ? "hop"
	       : g->in->window->kind == WEIR_WINDOW_CUMULATE ? "cumulate"
							     : "session";
}

static enum weir_err build(struct grouping *g, const struct sql_query *q, bool changes)
{
	g->node = weir_build_aggregate(
		g->sq->tp, g->in->node, sql_state_name(g->sq, state_kind(g)), g->key_names, g->keys, g->key_count,
		g->agg_names, g->aggs, g->agg_count, (const struct weir_expr *const *)g->args.data,
		(uint32_t)(g->args.bytes / sizeof(struct weir_expr *)), g->windowed ? &g->window : NULL, -1, changes);
	return sql_check_built(g->sq, q->group_count > 0 ? q->group_by[0]->at : q->at);
}

static enum weir_err finish(struct grouping *g, const struct sql_query *q, struct sql_rel *out)
{
	struct weir_sql *sq = g->sq;
	uint32_t columns = g->node->column_count;
	int32_t *group_of = weir_mem_take(sq->m, (columns + 1) * sizeof *group_of);
	for (uint32_t i = 0; i < columns; i++)
		group_of[i] = i < g->key_count ? (int32_t)i : -1;
	struct sql_rel rel = {.node = g->node,
			      .column_count = columns,
			      .group_of = group_of,
			      .group_count = g->key_count,
			      .group_names = g->key_names,
			      .group_window = g->windowed ? g->in->window->kind : WEIR_WINDOW_NONE};
	struct weir_scope scope = sql_scope(sq, &rel, NULL);
	scope.intercept = intercept;
	scope.ctx = g;
	g->in_scope.aggregate_error = NULL;
	enum weir_err err = WEIR_OK;
	if (q->having != NULL) {
		const struct weir_expr *e = NULL;
		err = sql_bind_condition(sq, &scope, q->having, "HAVING", &e);
		if (err != WEIR_OK)
			return err;
		rel.node = weir_build_filter(sq->tp, rel.node, e);
		err = sql_check_built(sq, q->having->at);
	}
	const char **names = NULL;
	const struct weir_expr **exprs = NULL;
	uint32_t count = 0;
	if (err == WEIR_OK)
		err = sql_bind_items(sq, q, &rel, &scope, &names, &exprs, &count);
	return err == WEIR_OK ? sql_project(sq, &rel, names, exprs, count, q->at, out) : err;
}

enum weir_err sql_compile_group(struct weir_sql *sq, const struct sql_query *q, const struct sql_rel *in, bool changes,
				struct sql_rel *out)
{
	struct grouping g = {.sq = sq, .in = in, .in_scope = sql_scope(sq, in, NULL)};
	bool seen[3] = {false};
	if (in->node->is_table && !weir_node_knows_rows(in->node))
		return sql_error(sq, q->from.at, "aggregate in one step, or over final windows of the stream",
				 "not supported yet: an aggregation over windows that change (EMIT CHANGES)");
	enum weir_err err = bind_keys(&g, q, seen);
	if (err == WEIR_OK)
		err = check_windows(&g, q, seen, changes);
	if (err == WEIR_OK)
		err = bind_calls(&g, q);
	if (err == WEIR_OK)
		err = build(&g, q, changes);
	if (err == WEIR_OK)
		err = finish(&g, q, out);
	weir_buf_fini(&g.calls);
	weir_buf_fini(&g.args);
	return err;
}
