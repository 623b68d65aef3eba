/* semi.c: x IN (SELECT ...) and EXISTS (SELECT ...) in WHERE, and their negations: a join with the table that is looked
 * in, of which nothing is shown.
 *
 *   EXISTS (SELECT .. FROM t WHERE t.k = l.k AND ..)   inner join of l and t, where k is t's whole key
 *   the same of other columns of t                    inner join with (SELECT DISTINCT of those columns)
 *   NOT EXISTS                                        left join, and WHERE the right side is missing
 *   x IN (SELECT y ...)                               EXISTS (SELECT ... WHERE y = x)
 *
 * As in any join with a table: a row of a stream is judged as the table stands at its turn, a row of a table comes and
 * goes with what it is looked for in. @thread init */
#include "tools/sql/sql.h"

#include <stdio.h>

#include "hotpath/expr/function.h"

struct semi {
	struct weir_sql *sq;
	struct weir_ast *ast; /* EXISTS or IN */
	uint32_t at;
	bool anti;
	struct sql_rel left, right;
	uint32_t left_count;
	struct weir_buf on; /* const struct weir_expr *: over the columns of both */
};

/* ---- taking them out of WHERE ---- */

/* What a is: a sub-select or IN one, *anti: its negation. NULL: neither. */
static struct weir_ast *semi_of(struct weir_ast *a, bool *anti)
{
	*anti = false;
	while (a->kind == WEIR_AST_CALL && a->arg_count == 1 && strcmp(a->text, "NOT") == 0) {
		*anti = !*anti;
		a = a->args[0];
	}
	if (a->kind == WEIR_AST_QUERY)
		return a;
	if (a->kind != WEIR_AST_IN || a->arg_count != 2 || a->args[1]->kind != WEIR_AST_QUERY)
		return NULL;
	*anti = *anti != a->negated;
	return a;
}

bool sql_is_semi(struct weir_ast *a)
{
	bool anti;
	return semi_of(a, &anti) != NULL;
}

bool sql_is_and(const struct weir_ast *a)
{
	return a->kind == WEIR_AST_CALL && !a->negated && strcmp(a->text, "AND") == 0;
}

/* ---- conditions ---- */

static const struct weir_expr *column(struct weir_sql *sq, const struct weir_node *n, uint32_t c, uint32_t shift)
{
	return weir_expr_column(sq->m, c + shift, &n->columns[c].type, n->columns[c].name);
}

/* Binds a condition over the right side alone; false: it reads more than that. */
static bool bind_right(struct semi *sm, const struct weir_ast *a)
{
	struct weir_sql *sq = sm->sq;
	struct weir_scope scope = sql_scope(sq, &sm->right, NULL);
	struct weir_diag *inner = NULL, **dg = sq->dg;
	const struct weir_expr *e = NULL;
	sq->dg = &inner;
	enum weir_err err = sql_bind_condition(sq, &scope, a, "WHERE", &e);
	sq->dg = dg;
	weir_diag_destroy(inner);
	if (err != WEIR_OK)
		return false;
	sm->right.node = weir_build_filter(sq->tp, sm->right.node, e);
	return true;
}

/* The columns of both sides; a name that the right side has is its. */
static struct weir_scope both(struct semi *sm)
{
	const char **qualifiers = NULL;
	struct weir_scope scope = sql_both_scopes(sm->sq, &sm->left, &sm->right, &qualifiers);
	struct weir_scope_column *c = (struct weir_scope_column *)(uintptr_t)scope.columns;
	for (uint32_t l = 0; l < sm->left_count; l++)
		for (uint32_t r = sm->left_count; r < scope.count; r++) {
			c[l].hidden = c[l].hidden || strcmp(c[l].name, c[r].name) == 0;
			/* The same table within and without: its name means the inner one. */
			if (c[l].qualifier != NULL && c[r].qualifier != NULL &&
			    strcmp(c[l].qualifier, c[r].qualifier) == 0)
				c[l].qualifier = NULL;
		}
	scope.aggregate_error = "WHERE cannot hold an aggregate: use HAVING";
	return scope;
}

static enum weir_err take_conditions(struct semi *sm, const struct weir_ast *a)
{
	enum weir_err err = WEIR_OK;
	if (sql_is_and(a)) {
		for (uint32_t i = 0; i < a->arg_count && err == WEIR_OK; i++)
			err = take_conditions(sm, a->args[i]);
		return err;
	}
	if (bind_right(sm, a))
		return sql_check_built(sm->sq, a->at);
	struct weir_scope scope = both(sm);
	const struct weir_expr *e = NULL;
	err = sql_bind_condition(sm->sq, &scope, a, "WHERE", &e);
	if (err == WEIR_OK)
		weir_buf_put(&sm->on, &e, sizeof e);
	return err;
}

/* Whether a value can be NULL: a column of the key of a table that is read cannot. */
static bool may_be_null(const struct weir_node *n, const struct weir_expr *e)
{
	if (e->type.not_null || e->op == WEIR_EXPR_CONST)
		return e->op == WEIR_EXPR_CONST && e->is_null;
	if (e->op != WEIR_EXPR_COLUMN)
		return true;
	const struct weir_node *source = n;
	while (source->kind == WEIR_NODE_FILTER || source->kind == WEIR_NODE_PROJECT)
		source = source->inputs[0];
	for (uint32_t k = 0; k < n->table_key_count && source->kind == WEIR_NODE_SOURCE; k++)
		if (weir_node_same_column(n, e->column, n->table_key[k]))
			return false;
	return true;
}

/* x = y of IN: y over the right side's own columns. */
static enum weir_err take_in(struct semi *sm, const struct weir_expr *y)
{
	struct weir_sql *sq = sm->sq;
	const struct weir_ast *x = sm->ast->args[0];
	struct weir_scope scope = sql_scope(sq, &sm->left, "WHERE cannot hold an aggregate: use HAVING");
	const struct weir_expr *pair[2] = {NULL, NULL}, *e = NULL;
	struct weir_diag *inner = NULL;
	enum weir_err err = sql_bind(sq, &scope, x, &pair[0]);
	if (err != WEIR_OK)
		return err;
	if (sm->anti && (may_be_null(sm->left.node, pair[0]) || may_be_null(sm->right.node, y)))
		return sql_error(
			sq, sm->at, "write NOT EXISTS (SELECT .. WHERE y = x), or declare both NOT NULL",
			"not supported yet: NOT IN (SELECT ..) where either side may be NULL: one NULL among the "
			"values makes it true of no row");
	const struct weir_node *r = sm->right.node;
	const struct weir_expr **map = weir_mem_take(sq->m, (r->column_count + 1) * sizeof *map);
	for (uint32_t c = 0; c < r->column_count; c++)
		map[c] = column(sq, r, c, sm->left_count);
	pair[1] = weir_expr_substitute(y, map, r->column_count, sq->m);
	if (weir_expr_call(sq->m, "=", pair, 2, &e, &inner) != WEIR_OK)
		return sql_error_from(sq, x->at, inner);
	weir_buf_put(&sm->on, &e, sizeof e);
	return WEIR_OK;
}

/* ---- the table that is looked in ---- */

/* FROM, JOIN and WHERE of a plain SELECT, as the right side and conditions. */
static enum weir_err take_select(struct semi *sm, const struct sql_query *q)
{
	struct weir_sql *sq = sm->sq;
	struct weir_ast *where = q->where;
	bool ranked = false, in = sm->ast->kind == WEIR_AST_IN;
	enum weir_err err = sql_compile_rank(sq, q, &sm->right, &where, &ranked);
	if (err == WEIR_OK && !ranked)
		err = sql_compile_from(sq, &q->from, false, &sm->right);
	for (uint32_t i = 0; i < q->join_count && err == WEIR_OK; i++)
		err = sql_compile_join(sq, &q->joins[i], NULL, &sm->right);
	if (err == WEIR_OK && where != NULL)
		err = sql_compile_semi(sq, &where, &sm->right);
	if (err == WEIR_OK && where != NULL)
		err = take_conditions(sm, where);
	if (err != WEIR_OK || !in)
		return err;
	struct weir_scope scope = sql_scope(sq, &sm->right, NULL);
	const char **names = NULL;
	const struct weir_expr **exprs = NULL;
	uint32_t count = 0;
	err = sql_bind_items(sq, q, &sm->right, &scope, &names, &exprs, &count);
	if (err == WEIR_OK && count != 1)
		err = sql_error(sq, q->at, NULL, "the SELECT of IN gives one column, not %u", count);
	return err == WEIR_OK ? take_in(sm, exprs[0]) : err;
}

static enum weir_err take_query(struct semi *sm)
{
	struct weir_sql *sq = sm->sq;
	bool in = sm->ast->kind == WEIR_AST_IN;
	struct sql_query *q = in ? sm->ast->args[1]->query : sm->ast->query;
	if (q->arm_count == 0 && !q->distinct && !sql_has_aggregate(q) && !sql_has_over(q, NULL))
		return take_select(sm, q);
	if (!in)
		return sql_error(sq, q->at, "write x IN (SELECT ..), or group in a view",
				 "not supported yet: EXISTS of more than SELECT .. FROM .. WHERE");
	enum weir_err err = sql_compile_query(sq, q, false, &sm->right);
	if (err == WEIR_OK && sm->right.column_count != 1)
		err = sql_error(sq, q->at, NULL, "the SELECT of IN gives one column, not %u", sm->right.column_count);
	return err == WEIR_OK ? take_in(sm, column(sq, sm->right.node, 0, 0)) : err;
}

/* An equality of something of the left side and something of the right one: the latter over its own columns, the former
 * in *left. NULL: it is none. */
static const struct weir_expr *right_of(const struct semi *sm, const struct weir_expr *e, const struct weir_expr **left)
{
	struct weir_sql *sq = sm->sq;
	const struct weir_node *r = sm->right.node;
	uint32_t count = sm->left_count + r->column_count;
	const struct weir_expr *of[2] = {NULL, NULL};
	if (e->op != WEIR_EXPR_CALL || e->arg_count != 2 || strcmp(e->fn->name, "=") != 0)
		return NULL;
	for (uint32_t a = 0; a < 2; a++) {
		bool *used = weir_mem_take(sq->m, count + 1), reads[2] = {false, false};
		weir_expr_columns_used(e->args[a], used, count);
		for (uint32_t c = 0; c < count; c++)
			reads[c >= sm->left_count] |= used[c];
		if (reads[0] != reads[1])
			of[reads[1]] = e->args[a];
	}
	if (of[0] == NULL || of[1] == NULL)
		return NULL;
	const struct weir_expr **map = weir_mem_take(sq->m, (count + 1) * sizeof *map);
	for (uint32_t c = 0; c < count; c++)
		map[c] = c < sm->left_count ? weir_expr_bool(sq->m, true) : column(sq, r, c - sm->left_count, 0);
	*left = of[0];
	return weir_expr_substitute(of[1], map, count, sq->m);
}

/* Whether the columns that are compared hold the table's whole key. */
static bool has_whole_key(const struct semi *sm)
{
	const struct weir_expr *const *on = (const struct weir_expr *const *)(const void *)sm->on.data;
	const struct weir_node *r = sm->right.node;
	uint32_t found = 0;
	for (uint32_t k = 0; k < r->table_key_count; k++)
		for (uint32_t i = 0; i < sm->on.bytes / sizeof *on; i++) {
			const struct weir_expr *left = NULL, *e = right_of(sm, on[i], &left);
			if (e == NULL || e->op != WEIR_EXPR_COLUMN ||
			    !weir_node_same_column(r, e->column, r->table_key[k]))
				continue;
			found++;
			break;
		}
	return r->table_key != NULL && r->table_key_count > 0 && found == r->table_key_count;
}

/* The right side by what it is compared by: each once. */
static enum weir_err group_right(struct semi *sm)
{
	struct weir_sql *sq = sm->sq;
	const struct weir_expr **on = (const struct weir_expr **)(void *)sm->on.data;
	uint32_t count = (uint32_t)(sm->on.bytes / sizeof *on);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (count + 1) * sizeof *exprs);
	const struct weir_expr **left = weir_mem_take(sq->m, (count + 1) * sizeof *left);
	const char **names = weir_mem_take(sq->m, (count + 1) * sizeof *names);
	for (uint32_t i = 0; i < count; i++) {
		exprs[i] = right_of(sm, on[i], &left[i]);
		names[i] = weir_mem_printf(sq->m, "value-%u", i + 1);
		if (exprs[i] == NULL)
			return sql_error(
				sq, sm->at, "compare the table's whole key: t.k = a.k",
				"not supported yet: a condition over both sides that is not an equality, where "
				"the table's key is not compared");
	}
	if (count == 0)
		return sql_error(sq, sm->at, "compare a column of each side: WHERE t.k = a.k",
				 "not supported yet: EXISTS without a column of the query around it");
	struct sql_rel in;
	enum weir_err err = sql_project(sq, &sm->right, names, exprs, count, sm->at, &in);
	if (err == WEIR_OK)
		err = sql_group_all(sq, &in, sm->at, false, &sm->right);
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		struct weir_diag *inner = NULL;
		const struct weir_expr *pair[2] = {left[i], column(sq, sm->right.node, i, sm->left_count)};
		if (weir_expr_call(sq->m, "=", pair, 2, &on[i], &inner) != WEIR_OK)
			err = sql_error_from(sq, sm->at, inner);
	}
	return err;
}

/* ---- the join ---- */

static enum weir_err check_sides(const struct semi *sm)
{
	char a[80], b[80];
	const struct weir_expr *const *on = (const struct weir_expr *const *)(const void *)sm->on.data;
	if (sm->left.window != NULL || sm->right.window != NULL)
		return sql_error(sm->sq, sm->at, "write it in a sub-select that the window is over",
				 "not supported yet: IN and EXISTS of rows in windows");
	if (!sm->right.node->is_table)
		return sql_error(
			sm->sq, sm->at,
			"look in a table: one with a PRIMARY KEY, x IN (SELECT DISTINCT ..), or a view with GROUP BY",
			"not supported yet: IN and EXISTS of a stream's rows");
	for (uint32_t i = 0; i < sm->on.bytes / sizeof *on; i++) {
		const struct weir_expr *left = NULL, *right = right_of(sm, on[i], &left);
		if (right == NULL)
			continue;
		struct weir_type l = left->type, r = right->type;
		l.not_null = r.not_null = false;
		if (!weir_type_equal(&l, &r))
			return sql_error(sm->sq, sm->at, "CAST one of them",
					 "IN and EXISTS compare columns of one type: %s and %s",
					 weir_type_text(&l, a, sizeof a), weir_type_text(&r, b, sizeof b));
	}
	return WEIR_OK;
}

/* The left side's columns alone, of the rows that have a match, or none. */
static enum weir_err keep_left(struct semi *sm, const struct sql_rel *joined, struct sql_rel *rel)
{
	struct weir_sql *sq = sm->sq;
	struct weir_node *n = joined->node;
	if (sm->anti) {
		uint32_t key = sm->left_count + sm->right.node->table_key[0];
		const struct weir_expr *column_of = column(sq, n, key, 0), *missing = NULL;
		if (weir_expr_call(sq->m, "IS NULL", &column_of, 1, &missing, sq->dg) != WEIR_OK)
			return weir_diag_code(*sq->dg);
		n = weir_build_filter(sq->tp, n, missing);
	}
	const char **names = weir_mem_take(sq->m, (sm->left_count + 1) * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (sm->left_count + 1) * sizeof *exprs);
	for (uint32_t c = 0; c < sm->left_count; c++) {
		names[c] = n->columns[c].name;
		exprs[c] = column(sq, n, c, 0);
	}
	*rel = sm->left;
	rel->node = weir_build_project(sq->tp, n, names, exprs, sm->left_count);
	return sql_check_built(sq, sm->at);
}

static enum weir_err compile_one(struct weir_sql *sq, struct weir_ast *ast, uint32_t at, bool anti, struct sql_rel *rel)
{
	struct semi sm = {.sq = sq, .ast = ast, .at = at, .anti = anti, .left = *rel};
	struct sql_join jn = {.kind = anti ? WEIR_JOIN_LEFT : WEIR_JOIN_INNER, .at = at};
	struct sql_rel joined;
	sm.left_count = rel->node->column_count;
	enum weir_err err = take_query(&sm);
	if (err == WEIR_OK)
		err = check_sides(&sm);
	if (err == WEIR_OK && !has_whole_key(&sm))
		err = group_right(&sm);
	if (err == WEIR_OK)
		err = sql_join_by(sq, &jn, &sm.left, &sm.right,
				  (const struct weir_expr *const *)(const void *)sm.on.data,
				  (uint32_t)(sm.on.bytes / sizeof(struct weir_expr *)), &joined);
	if (err == WEIR_OK)
		err = keep_left(&sm, &joined, rel);
	weir_buf_fini(&sm.on);
	return err;
}

enum weir_err sql_compile_semi(struct weir_sql *sq, struct weir_ast **where, struct sql_rel *rel)
{
	struct weir_ast *a = *where, *one = a, *const *parts = sql_is_and(a) ? a->args : &one;
	uint32_t count = sql_is_and(a) ? a->arg_count : 1, left = 0;
	struct weir_ast *rest = weir_mem_copy(sq->m, a, sizeof *a);
	rest->args = weir_mem_take(sq->m, (count + 1) * sizeof(struct weir_ast *));
	bool anti;
	for (uint32_t i = 0; i < count; i++)
		if (semi_of(parts[i], &anti) == NULL)
			rest->args[left++] = parts[i];
	if (left == count)
		return WEIR_OK;
	/* What needs no table first. */
	rest->arg_count = left;
	enum weir_err err = left == 0 ? WEIR_OK : sql_compile_where(sq, left == 1 ? rest->args[0] : rest, rel);
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		struct weir_ast *ast = semi_of(parts[i], &anti);
		if (ast != NULL)
			err = compile_one(sq, ast, parts[i]->at, anti, rel);
	}
	*where = NULL;
	return err;
}
