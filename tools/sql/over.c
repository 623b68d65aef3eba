/* over.c: functions OVER of a select list (hotpath/topology/over_bind.h): WINDOW clauses, and the list bound over what
 * they make. @thread init */
#include "tools/sql/sql.h"

#include "hotpath/topology/over_bind.h"

bool sql_has_over(const struct sql_query *q, uint32_t *at)
{
	const struct weir_ast *found = NULL;
	for (uint32_t i = 0; i < q->item_count && found == NULL; i++)
		(void)weir_over_bind_has(q->items[i].ast, &found);
	if (found != NULL && at != NULL)
		*at = found->at;
	return found != NULL;
}

/* What OVER w stands for; one that is not known stays as it is, and is an error later. */
static bool resolve(void *ctx, struct weir_ast *a)
{
	const struct sql_query *q = ctx;
	for (uint32_t i = 0; a->over != NULL && a->over->name != NULL && i < q->window_count; i++)
		if (strcmp(q->windows[i].name, a->over->name) == 0)
			a->over = q->windows[i].over;
	return true;
}

/* The select list, over the node. */
static enum weir_err finish(struct weir_sql *sq, struct weir_over_bind *ob, const struct sql_query *q,
			    const struct sql_rel *in, struct weir_node *node, struct sql_rel *out)
{
	uint32_t count = node->column_count, items = 0;
	struct sql_rel rel = *in;
	const char **names = NULL;
	const struct weir_expr **exprs = NULL;
	struct weir_scope scope = ob->scope;
	rel.node = node;
	rel.column_count = count;
	if (rel.group_of != NULL) {
		int32_t *group_of = weir_mem_take(sq->m, (count + 1) * sizeof *group_of);
		for (uint32_t i = 0; i < count; i++)
			group_of[i] = i < in->column_count ? in->group_of[i] : -1;
		rel.group_of = group_of;
	}
	scope.intercept = weir_over_bind_intercept;
	scope.ctx = ob;
	enum weir_err err = sql_bind_items(sq, q, &rel, &scope, &names, &exprs, &items);
	return err == WEIR_OK ? sql_project(sq, &rel, names, exprs, items, q->at, out) : err;
}

enum weir_err sql_compile_over(struct weir_sql *sq, const struct sql_query *q, const struct sql_rel *in,
			       struct sql_rel *out)
{
	struct weir_over_bind ob = {
		.ts = &sq->ts, .m = sq->m, .dg = sq->dg, .scope = sql_scope(sq, in, NULL), .in = in->node};
	struct weir_node *node = NULL;
	uint32_t at = q->at;
	(void)sql_has_over(q, &at);
	if (in->window != NULL)
		return sql_error(sq, at, "write OVER over the stream itself, or over its aggregated windows",
				 "not supported yet: functions OVER of rows in windows");
	for (uint32_t i = 0; i < q->item_count; i++) {
		sql_walk(q->items[i].ast, resolve, (void *)(uintptr_t)q);
		weir_over_bind_add(&ob, q->items[i].ast);
	}
	enum weir_err err = weir_over_bind_build(&ob, sq->tp, sql_state_name(sq, "over"), &node);
	if (err == WEIR_OK)
		err = finish(sq, &ob, q, in, node, out);
	weir_over_bind_fini(&ob);
	return err;
}
