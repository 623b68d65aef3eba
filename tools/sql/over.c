/* over.c: functions OVER of a select list (hotpath/topology/over_bind.h): WINDOW clauses, and the list bound over what
 * they make; and JOIN UNNEST. @thread init */
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

/* ---- UNNEST ---- */

enum weir_err sql_compile_unnest(struct weir_sql *sq, const struct sql_join *jn, struct sql_rel *rel)
{
	char type[80];
	struct weir_scope scope = sql_scope(sq, rel, "UNNEST cannot hold an aggregate");
	const struct weir_expr *array = NULL;
	uint32_t in = rel->column_count, extra = jn->ordinality ? 2 : 1, at = jn->unnest->at;
	if (rel->node->is_table)
		return sql_error(sq, jn->at, "read the stream that the table is made from",
				 "not supported yet: UNNEST of a table's rows");
	if (rel->window != NULL)
		return sql_error(sq, jn->at, "write UNNEST over the stream itself, or over its aggregated windows",
				 "not supported yet: UNNEST of rows in windows");
	enum weir_err err = sql_bind(sq, &scope, jn->unnest, &array);
	if (err != WEIR_OK)
		return err;
	if (array->type.kind != WEIR_KIND_ARRAY || array->type.fields[0].kind == WEIR_KIND_ROW)
		return sql_error(sq, at, NULL,
				 array->type.kind == WEIR_KIND_ARRAY ? "not supported yet: UNNEST of %s"
								     : "UNNEST takes an ARRAY, not %s",
				 weir_type_text(&array->type, type, sizeof type));
	if (jn->right.name_count != 0 && jn->right.name_count != extra)
		return sql_error(sq, jn->right.at, NULL, "%u names for %u columns", jn->right.name_count, extra);
	struct weir_node *node =
		weir_build_unnest(sq->tp, rel->node, sql_state_name(sq, "unnest"), array, jn->kind == WEIR_JOIN_LEFT);
	err = sql_check_built(sq, jn->at);
	if (err != WEIR_OK)
		return err;
	uint32_t hidden = rel->node->column_count;
	const char **names = weir_mem_take(sq->m, (in + extra + 1) * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (in + extra + 1) * sizeof *exprs);
	const char **qualifiers = weir_mem_take(sq->m, (in + extra + 1) * sizeof *qualifiers);
	for (uint32_t i = 0; i < in; i++) {
		names[i] = node->columns[i].name;
		exprs[i] = weir_expr_column(sq->m, i, &node->columns[i].type, names[i]);
		qualifiers[i] = rel->qualifiers != NULL ? rel->qualifiers[i] : rel->qualifier;
	}
	const struct weir_expr *item[2] = {
		weir_expr_column(sq->m, hidden, &node->columns[hidden].type, node->columns[hidden].name),
		weir_expr_bigint(sq->m, 1)};
	struct weir_diag *inner = NULL;
	if (weir_expr_call(sq->m, "ITEM", item, 2, &exprs[in], &inner) != WEIR_OK)
		return sql_error_from(sq, at, inner);
	names[in] = jn->right.name_count != 0 ? jn->right.names[0] : "f0";
	if (jn->ordinality) {
		names[in + 1] = jn->right.name_count != 0 ? jn->right.names[1] : "ORDINALITY";
		/* An INT, as in Flink. */
		const struct weir_column *number = &node->columns[hidden + 1];
		exprs[in + 1] = weir_expr_cast(weir_expr_column(sq->m, hidden + 1, &number->type, names[in + 1]),
					       &(struct weir_type){.kind = WEIR_KIND_INT}, false, sq->m);
	}
	for (uint32_t i = in; i < in + extra; i++)
		qualifiers[i] = jn->right.alias;
	struct sql_rel of = *rel;
	of.node = node;
	of.group_of = NULL;
	uint8_t *using = weir_mem_take(sq->m, in + extra + 1);
	if (of.using != NULL)
		memcpy(using, of.using, in);
	err = sql_project(sq, &of, names, exprs, in + extra, at, rel);
	rel->qualifiers = qualifiers;
	rel->using = of.using != NULL ? using : NULL;
	return err;
}
