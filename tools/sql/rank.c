/* rank.c: the last row of each partition, as Flink has it: ROW_NUMBER() OVER (PARTITION BY k ORDER BY time DESC) in a
 * sub-select or view, and WHERE rn = 1 around it. It is a table of the latest rows by k. (The first row, ORDER BY time,
 * is what functions OVER give anyway: rows that are never taken back.) @thread init */
#include "tools/sql/sql.h"

#include <stdlib.h>
#include <strings.h>

struct rank {
	struct weir_sql *sq;
	const struct sql_query *inner; /* the SELECT with ROW_NUMBER */
	const struct sql_table *view;  /* it is this view's; NULL: a sub-select */
	const struct sql_from *from;
	uint32_t item; /* ROW_NUMBER's */
	const struct weir_ast_over *over;
};

/* ---- finding it ---- */

static const struct weir_ast_over *resolve(const struct sql_query *q, const struct weir_ast_over *ov)
{
	for (uint32_t i = 0; ov->name != NULL && i < q->window_count; i++)
		if (strcmp(q->windows[i].name, ov->name) == 0)
			return q->windows[i].over;
	return ov;
}

static bool is_row_number(const struct weir_ast *a)
{
	return a->kind == WEIR_AST_CALL && a->over != NULL && strcasecmp(a->text, "ROW_NUMBER") == 0;
}

/* The SELECT that f is, if its only function OVER is a ROW_NUMBER that goes backwards. */
static bool find_inner(struct weir_sql *sq, const struct sql_from *f, struct rank *rk)
{
	const struct sql_query *q = f->query;
	*rk = (struct rank){.sq = sq, .from = f};
	if (q == NULL && f->table != NULL) {
		rk->view = sql_find_table(sq, f->table);
		q = rk->view != NULL && rk->view->def == NULL ? rk->view->query : NULL;
	}
	if (q == NULL || f->window.kind != WEIR_WINDOW_NONE || f->as_of != NULL || q->arm_count > 0 || q->distinct ||
	    sql_has_aggregate(q))
		return false;
	uint32_t found = 0, others = 0;
	for (uint32_t i = 0; i < q->item_count; i++) {
		struct sql_query one = {.items = &q->items[i], .item_count = 1};
		if (!is_row_number(q->items[i].ast)) {
			others += sql_has_over(&one, NULL);
			continue;
		}
		found++;
		rk->item = i;
		rk->over = resolve(q, q->items[i].ast->over);
	}
	rk->inner = q;
	return found == 1 && others == 0 && rk->over->descending;
}

/* The name that the outer query knows the number by. */
static const char *number_name(const struct rank *rk)
{
	const struct sql_item *it = &rk->inner->items[rk->item];
	const char *const *names = rk->from->name_count > 0 ? rk->from->names
				   : rk->view != NULL       ? rk->view->names
							    : NULL;
	uint32_t count = rk->from->name_count > 0 ? rk->from->name_count : rk->view != NULL ? rk->view->name_count : 0;
	if (count == 0)
		return it->alias;
	/* Counted from the end: stars may stand before it. */
	uint32_t back = rk->inner->item_count - rk->item;
	for (uint32_t i = rk->item + 1; i < rk->inner->item_count; i++)
		if (rk->inner->items[i].ast->kind == WEIR_AST_STAR)
			return NULL;
	return back <= count ? names[count - back] : NULL;
}

static bool is_number(const struct rank *rk, const struct weir_ast *a, const char *name)
{
	const char *of = rk->from->alias != NULL ? rk->from->alias : rk->from->table;
	return a->kind == WEIR_AST_COLUMN && strcmp(a->text, name) == 0 &&
	       (a->qualifier == NULL || (of != NULL && strcmp(a->qualifier, of) == 0));
}

/* n of rn = n, rn <= n, rn < n + 1 and the same the other way round, if that is all a says; 0: it does not. Of = n only
 * 1 is a first few. */
static int64_t limit_of(const struct rank *rk, const struct weir_ast *a, const char *name)
{
	static const char *const forms[2][3] = {{"=", "<=", "<"}, {"=", ">=", ">"}};
	if (a->kind != WEIR_AST_CALL || a->arg_count != 2)
		return 0;
	uint32_t number = !is_number(rk, a->args[0], name);
	const struct weir_ast *n = a->args[1 - number];
	if (!is_number(rk, a->args[number], name) || n->kind != WEIR_AST_INTEGER || n->text_bytes > 9)
		return 0;
	int64_t value = strtoll(n->text, NULL, 10);
	if (strcmp(a->text, forms[number][0]) == 0)
		return value == 1;
	if (strcmp(a->text, forms[number][1]) == 0)
		return value;
	return strcmp(a->text, forms[number][2]) == 0 && value > 0 ? value - 1 : 0;
}

/* Takes the limit out of a condition; what is left of it, NULL: nothing. */
static struct weir_ast *take_limit(const struct rank *rk, struct weir_ast *a, const char *name, int64_t *limit)
{
	int64_t n = limit_of(rk, a, name);
	if (n > 0) {
		*limit = *limit == 0 || n < *limit ? n : *limit;
		return NULL;
	}
	if (a->kind != WEIR_AST_CALL || a->negated || strcmp(a->text, "AND") != 0)
		return a;
	struct weir_ast *rest = weir_mem_copy(rk->sq->m, a, sizeof *a);
	rest->args = weir_mem_take(rk->sq->m, (a->arg_count + 1) * sizeof(struct weir_ast *));
	rest->arg_count = 0;
	for (uint32_t i = 0; i < a->arg_count; i++) {
		struct weir_ast *left = take_limit(rk, a->args[i], name, limit);
		if (left != NULL)
			rest->args[rest->arg_count++] = left;
	}
	return rest->arg_count == 0 ? NULL : rest->arg_count == 1 ? rest->args[0] : rest;
}

/* ---- building it ---- */

static enum weir_err check(const struct rank *rk, struct sql_rel *in, const struct weir_scope *scope, int64_t limit)
{
	struct weir_sql *sq = rk->sq;
	const struct weir_ast_over *ov = rk->over;
	const struct weir_expr *e = NULL;
	uint32_t at = rk->inner->items[rk->item].ast->at;
	if (in->window != NULL)
		return sql_error(sq, at, "take the last row of aggregated windows, or of the stream itself",
				 "not supported yet: ROW_NUMBER over rows in windows");
	if (in->node->is_table)
		return sql_error(sq, at, "read the stream that the table is made from",
				 "not supported yet: ROW_NUMBER over a table");
	enum weir_err err = ov->order_count != 1 ? WEIR_OK : sql_bind(sq, scope, ov->order[0], &e);
	if (err != WEIR_OK)
		return err;
	if (e != NULL && e->op == WEIR_EXPR_COLUMN)
		in->node = weir_build_timed(sq->tp, in->node, e->column);
	if (e == NULL || e->op != WEIR_EXPR_COLUMN || (int32_t)e->column != in->node->rowtime)
		return sql_error(sq, ov->order_count > 0 ? ov->order[0]->at : ov->at,
				 "ORDER BY the time attribute, of WATERMARK FOR it: the last row of each partition",
				 "not supported yet: ROW_NUMBER ordered by anything but time");
	if (limit != 1)
		return sql_error(sq, at, "WHERE it = 1: the last row; ORDER BY time, without DESC: the first ones",
				 "not supported yet: more than the last row of a partition");
	return WEIR_OK;
}

/* The number, which is 1. */
static enum weir_err intercept(void *ctx, const struct weir_ast *a, const struct weir_expr **out, struct weir_diag **dg)
{
	const struct rank *rk = ctx;
	(void)dg;
	if (is_row_number(a))
		*out = weir_expr_bigint(rk->sq->m, 1);
	return WEIR_OK;
}

static enum weir_err build(struct rank *rk, int64_t limit, struct sql_rel *out)
{
	struct weir_sql *sq = rk->sq;
	const struct sql_query *q = rk->inner;
	const struct weir_ast_over *ov = rk->over;
	struct sql_rel in;
	enum weir_err err = sql_compile_input(sq, q, false, &in);
	if (err != WEIR_OK)
		return err;
	struct weir_scope scope = sql_scope(sq, &in, "an aggregate cannot stand inside a function OVER");
	err = check(rk, &in, &scope, limit);
	uint32_t count = 0;
	const struct weir_expr **keys = weir_mem_take(sq->m, (ov->partition_count + 1) * sizeof *keys);
	const char **names = weir_mem_take(sq->m, (ov->partition_count + 1) * sizeof *names);
	for (uint32_t k = 0; k < ov->partition_count && err == WEIR_OK; k++) {
		const struct weir_ast *a = ov->partition[k];
		const struct weir_expr *e = NULL;
		bool twice = false;
		err = sql_bind(sq, &scope, a, &e);
		for (uint32_t i = 0; i < count && err == WEIR_OK; i++)
			twice = twice || weir_expr_equal(keys[i], e);
		if (err != WEIR_OK || twice)
			continue;
		names[count] = a->kind == WEIR_AST_COLUMN || a->kind == WEIR_AST_FIELD ? a->text : e->text;
		keys[count++] = e;
	}
	if (err != WEIR_OK)
		return err;
	in.node = weir_build_latest(sq->tp, in.node, sql_state_name(sq, "latest"), names, keys, count);
	err = sql_check_built(sq, ov->at);
	if (err != WEIR_OK)
		return err;
	/* Its keys stand behind the visible columns. */
	struct sql_rel keyed = in;
	keyed.column_count = in.node->column_count;
	keyed.qualifiers = NULL;
	sql_name_table_key(sq, &keyed);
	in.group_of = keyed.group_of;
	in.group_count = keyed.group_count;
	in.group_names = keyed.group_names;
	const char **item_names = NULL;
	const struct weir_expr **exprs = NULL;
	scope = sql_scope(sq, &in, NULL);
	scope.intercept = intercept;
	scope.ctx = rk;
	err = sql_bind_items(sq, q, &in, &scope, &item_names, &exprs, &count);
	return err == WEIR_OK ? sql_project(sq, &in, item_names, exprs, count, q->at, out) : err;
}

enum weir_err sql_compile_rank(struct weir_sql *sq, const struct sql_query *q, struct sql_rel *rel,
			       struct weir_ast **where, bool *ranked)
{
	struct rank rk;
	int64_t limit = 0;
	*ranked = false;
	if (q->where == NULL || q->join_count > 0 || !find_inner(sq, &q->from, &rk))
		return WEIR_OK;
	const char *name = number_name(&rk);
	struct weir_ast *rest = name == NULL ? NULL : take_limit(&rk, q->where, name, &limit);
	if (limit == 0)
		return WEIR_OK;
	*ranked = true;
	*where = rest;
	enum weir_err err = build(&rk, limit, rel);
	if (err == WEIR_OK && rk.view != NULL && rk.view->name_count > 0)
		err = sql_rename_columns(sq, rel, rk.view->names, rk.view->name_count, q->from.at);
	if (err == WEIR_OK && q->from.name_count > 0)
		err = sql_rename_columns(sq, rel, q->from.names, q->from.name_count, q->from.at);
	rel->qualifier = q->from.alias != NULL ? q->from.alias : q->from.table;
	return err;
}

enum weir_err sql_compile_alone(struct weir_sql *sq, struct sql_query *q, struct sql_rel *out)
{
	struct rank rk;
	struct sql_from f = {.query = q};
	return find_inner(sq, &f, &rk) ? build(&rk, 1, out) : sql_compile_query(sq, q, false, out);
}
