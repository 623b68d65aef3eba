/* api_over.c: functions OVER and UNNEST behind weir.h. Cold path, @thread init. */
#include "hotpath/topology/api.h"
#include "hotpath/topology/over_bind.h"

enum weir_err weir_api_state_name(struct call *c, const char *call, const char *state_name)
{
	if (state_name != NULL && state_name[0] != '\0' && strlen(state_name) <= 200 &&
	    strspn(state_name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		    strlen(state_name))
		return WEIR_OK;
	return weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: the state name '%s' is no topic name: letters, digits, . _ -",
			     call, state_name != NULL ? state_name : "");
}

struct weir_stream *weir_over(struct weir_stream *st, const char *state_name, const char *exprs)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_node *in = node_of(st), *node = NULL;
	struct item *items = NULL;
	uint32_t count = 0;
	if (is_broken(st))
		return new_stream(st->tp, st);
	enum weir_err err = weir_api_state_name(&c, "weir_over", state_name);
	if (err == WEIR_OK)
		err = tokens_of(&c, "weir_over", exprs);
	if (err == WEIR_OK)
		err = weir_api_items(&c, in, st->visible, &items, &count);
	if (err != WEIR_OK)
		return failed(&c, st);
	struct weir_scope scope = scope_of(c.m, st, in, "weir_over cannot hold an aggregate without OVER");
	const struct weir_expr **keys = weir_mem_take(c.m, (st->key_count + 1) * sizeof *keys);
	struct weir_over_bind ob = {.ts = &c.ts,
				    .m = c.m,
				    .dg = &c.dg,
				    .scope = scope,
				    .in = in,
				    .time_implied = true,
				    .keys = keys,
				    .key_count = st->key_count};
	for (uint32_t k = 0; k < st->key_count && err == WEIR_OK; k++) {
		int32_t at = find_column(in, st->visible, st->key_names[k]);
		if (at < 0)
			err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_over: key column '%s' was lost by weir_select",
					    st->key_names[k]);
		else
			keys[k] = weir_expr_column(c.m, (uint32_t)at, &in->columns[at].type, st->key_names[k]);
	}
	for (uint32_t i = 0; i < count; i++)
		if (items[i].ast != NULL)
			weir_over_bind_add(&ob, items[i].ast);
	if (err == WEIR_OK && ob.count == 0)
		err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_over: no function OVER in '%s': use weir_select", exprs);
	if (err == WEIR_OK)
		err = weir_over_bind_build(&ob, st->tp, state_name, &node);
	const struct weir_expr **bound = weir_mem_take(c.m, (count + 1) * sizeof *bound);
	const char **names = weir_mem_take(c.m, (count + 1) * sizeof *names);
	scope.intercept = weir_over_bind_intercept;
	scope.ctx = &ob;
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		names[i] = items[i].name;
		if (items[i].ast == NULL)
			bound[i] = weir_expr_column(c.m, items[i].column, &in->columns[items[i].column].type,
						    items[i].name);
		else
			err = weir_expr_bind(&scope, &c.ts, items[i].ast, c.m, &bound[i], &c.dg);
	}
	weir_over_bind_fini(&ob);
	if (err != WEIR_OK)
		return is_broken(st) ? new_stream(st->tp, st) : failed(&c, st);
	return weir_api_project(&c, st, node, names, bound, count);
}

struct weir_stream *weir_unnest(struct weir_stream *st, const char *state_name, const char *array, const char *name,
				int keep)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_node *in = node_of(st);
	struct weir_ast *ast = NULL;
	const struct weir_expr *e = NULL;
	if (is_broken(st))
		return new_stream(st->tp, st);
	struct weir_scope scope = scope_of(c.m, st, in, "weir_unnest cannot hold an aggregate");
	enum weir_err err = weir_api_state_name(&c, "weir_unnest", state_name);
	if (err == WEIR_OK && name == NULL)
		err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_unnest: the new column needs a name");
	if (err == WEIR_OK)
		err = tokens_of(&c, "weir_unnest", array);
	if (err == WEIR_OK)
		err = weir_expr_parse(&c.ts, c.m, &ast, &c.dg);
	if (err == WEIR_OK)
		err = expect_end(&c);
	if (err == WEIR_OK)
		err = weir_expr_bind(&scope, &c.ts, ast, c.m, &e, &c.dg);
	if (err != WEIR_OK)
		return failed(&c, st);
	struct weir_node *node = weir_build_unnest(st->tp, in, state_name, e, keep != 0);
	if (is_broken(st))
		return new_stream(st->tp, st);
	/* The visible columns, the element, and project's room for the time column. */
	const struct weir_expr **exprs = weir_mem_take(c.m, (st->visible + 3) * sizeof *exprs);
	const char **names = weir_mem_take(c.m, (st->visible + 3) * sizeof *names);
	for (uint32_t i = 0; i < st->visible; i++) {
		names[i] = node->columns[i].name;
		exprs[i] = weir_expr_column(c.m, i, &node->columns[i].type, names[i]);
	}
	const struct weir_expr *item[2] = {
		weir_expr_column(c.m, in->column_count, &node->columns[in->column_count].type, "element"),
		weir_expr_bigint(c.m, 1)};
	names[st->visible] = name;
	if (weir_expr_call(c.m, "ITEM", item, 2, &exprs[st->visible], &c.dg) != WEIR_OK)
		return failed(&c, st);
	return weir_api_project(&c, st, node, names, exprs, st->visible + 1);
}
