/* api_stateless.c: weir.h: operators without state beyond filter, select, key and merge: their short forms, branches,
 * and functions of the program over batches. Cold path, @thread init. */
#include "hotpath/expr/tree.h"
#include "hotpath/expr/user.h"
#include "hotpath/topology/api.h"

/* ---- short forms ---- */

/* `expr` over st as a condition; NULL: c->dg says why not. */
static const struct weir_expr *condition(struct call *c, const struct weir_stream *st, const char *call,
					 const char *expr)
{
	char type[80];
	struct weir_scope scope = scope_of(c->m, st, st->node, "a filter cannot hold an aggregate: filter its result");
	struct weir_ast *ast = NULL;
	const struct weir_expr *e = NULL;
	enum weir_err err = tokens_of(c, call, expr);
	if (err == WEIR_OK)
		err = weir_expr_parse(&c->ts, c->m, &ast, &c->dg);
	if (err == WEIR_OK)
		err = expect_end(c);
	if (err == WEIR_OK)
		err = weir_expr_bind(&scope, &c->ts, ast, c->m, &e, &c->dg);
	if (err == WEIR_OK && e->type.kind != WEIR_KIND_BOOLEAN && e->type.kind != WEIR_KIND_NULL)
		err = weir_token_error(&c->ts, &c->ts.token[ast->at], &c->dg, NULL, "a filter must be BOOLEAN, not %s",
				       weir_type_text(&e->type, type, sizeof type));
	return err == WEIR_OK ? e : NULL;
}

static const struct weir_expr *is_not_true(struct call *c, const struct weir_expr *e)
{
	const struct weir_expr *out = NULL;
	return weir_expr_call(c->m, "IS NOT TRUE", &e, 1, &out, &c->dg) == WEIR_OK ? out : NULL;
}

static struct weir_stream *filtered(struct call *c, struct weir_stream *st, const struct weir_expr *e)
{
	if (e == NULL)
		return failed(c, st);
	struct weir_stream *out = new_stream(st->tp, st);
	out->node = weir_build_filter(st->tp, st->node, e);
	return out;
}

struct weir_stream *weir_filter_not(struct weir_stream *st, const char *expr)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	(void)node_of(st);
	if (is_broken(st))
		return new_stream(st->tp, st);
	const struct weir_expr *e = condition(&c, st, "weir_filter_not", expr);
	return filtered(&c, st, e == NULL ? NULL : is_not_true(&c, e));
}

/* Names and expressions of a list that is being made, with room for `more` and a time column. */
struct columns {
	const char **names;
	const struct weir_expr **exprs;
	uint32_t count;
};

static struct columns columns_begin(struct call *c, uint32_t room)
{
	return (struct columns){.names = weir_mem_take(c->m, (room + 2) * sizeof(char *)),
				.exprs = weir_mem_take(c->m, (room + 2) * sizeof(struct weir_expr *))};
}

static void columns_add(struct call *c, struct columns *cs, const struct weir_node *node, uint32_t at)
{
	cs->names[cs->count] = node->columns[at].name;
	cs->exprs[cs->count++] = weir_expr_column(c->m, at, &node->columns[at].type, node->columns[at].name);
}

static enum weir_err check_new_name(struct call *c, const struct columns *cs, const char *call, const char *name)
{
	for (uint32_t i = 0; i < cs->count; i++)
		if (strcmp(cs->names[i], name) == 0)
			return weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: there is a column '%s' already: name it with AS",
					     call, name);
	return WEIR_OK;
}

struct weir_stream *weir_map_values(struct weir_stream *st, const char *exprs)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_node *in = node_of(st);
	struct item *items = NULL;
	uint32_t count = 0;
	if (is_broken(st))
		return new_stream(st->tp, st);
	struct weir_scope scope = scope_of(c.m, st, in, "weir_map_values cannot hold an aggregate");
	enum weir_err err = tokens_of(&c, "weir_map_values", exprs);
	if (err == WEIR_OK)
		err = weir_api_items(&c, NULL, 0, &items, &count);
	if (err == WEIR_OK && !st->keyed)
		err = weir_diag_set(&c.dg, WEIR_E_PLAN,
				    "weir_map_values: the stream has no key: call weir_key_by before, or weir_select");
	struct columns cs = columns_begin(&c, st->key_count + count);
	for (uint32_t k = 0; err == WEIR_OK && k < st->key_count; k++) {
		int32_t at = find_column(in, st->visible, st->key_names[k]);
		if (at < 0)
			err = weir_diag_set(&c.dg, WEIR_E_PLAN,
					    "weir_map_values: key column '%s' was lost by weir_select",
					    st->key_names[k]);
		else
			columns_add(&c, &cs, in, (uint32_t)at);
	}
	for (uint32_t i = 0; err == WEIR_OK && i < count; i++) {
		err = check_new_name(&c, &cs, "weir_map_values", items[i].name);
		if (err == WEIR_OK)
			err = weir_expr_bind(&scope, &c.ts, items[i].ast, c.m, &cs.exprs[cs.count], &c.dg);
		cs.names[cs.count++] = items[i].name;
	}
	return err == WEIR_OK ? weir_api_project(&c, st, in, cs.names, cs.exprs, cs.count) : failed(&c, st);
}

struct weir_stream *weir_select_key(struct weir_stream *st, const char *exprs)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_node *in = node_of(st);
	struct item *items = NULL;
	uint32_t count = 0;
	if (is_broken(st))
		return new_stream(st->tp, st);
	struct weir_scope scope = scope_of(c.m, st, in, "weir_select_key cannot hold an aggregate");
	enum weir_err err = tokens_of(&c, "weir_select_key", exprs);
	if (err == WEIR_OK)
		err = weir_api_items(&c, NULL, 0, &items, &count);
	if (err == WEIR_OK && st->window.kind != WEIR_WINDOW_NONE)
		err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_select_key: belongs before the window");
	struct columns cs = columns_begin(&c, st->visible + count);
	const char **keys = weir_mem_take(c.m, (count + 1) * sizeof *keys);
	for (uint32_t i = 0; i < st->visible; i++)
		columns_add(&c, &cs, in, i);
	for (uint32_t i = 0; err == WEIR_OK && i < count; i++) {
		keys[i] = items[i].name;
		if (items[i].ast->kind == WEIR_AST_COLUMN && items[i].ast->text == items[i].name &&
		    find_column(in, st->visible, items[i].name) >= 0)
			continue; /* as it stands */
		err = check_new_name(&c, &cs, "weir_select_key", items[i].name);
		if (err == WEIR_OK)
			err = weir_expr_bind(&scope, &c.ts, items[i].ast, c.m, &cs.exprs[cs.count], &c.dg);
		cs.names[cs.count++] = items[i].name;
	}
	if (err != WEIR_OK)
		return failed(&c, st);
	struct weir_stream *out = st;
	if (cs.count > st->visible)
		out = weir_api_project(&c, st, in, cs.names, cs.exprs, cs.count);
	out = new_stream(st->tp, out);
	out->keyed = true;
	out->key_names = keys;
	out->key_count = count;
	return out;
}

struct weir_stream *weir_repartition(struct weir_stream *st, const char *columns)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_stream *keyed = weir_key_by(st, columns);
	if (is_broken(st))
		return keyed;
	struct weir_node *in = keyed->node;
	struct columns cs = columns_begin(&c, st->visible);
	for (uint32_t i = 0; i < st->visible; i++)
		columns_add(&c, &cs, in, i);
	struct weir_stream *out = weir_api_project(&c, keyed, in, cs.names, cs.exprs, cs.count);
	if (!is_broken(st))
		out->node->rekeys = true;
	return out;
}

enum weir_err weir_print(struct weir_stream *st, const char *name)
{
	return weir_sink(st, name, "connector=print");
}

/* ---- branches ---- */

struct weir_split {
	struct weir_stream *st;
	const struct weir_expr *rest; /* what no branch has taken; NULL: everything */
	bool closed;
};

struct weir_split *weir_split(struct weir_stream *st)
{
	if (st == NULL)
		return NULL;
	struct weir_split *sp = weir_mem_take(weir_topology_mem(st->tp), sizeof *sp);
	(void)node_of(st);
	sp->st = st;
	return sp;
}

static bool check_open(struct call *c, const struct weir_split *sp, const char *call)
{
	if (sp->closed)
		(void)weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: the rest of this split has been taken", call);
	return !sp->closed;
}

struct weir_stream *weir_branch(struct weir_split *sp, const char *expr)
{
	if (sp == NULL)
		return NULL;
	struct weir_stream *st = sp->st;
	struct call c = begin(st->tp);
	if (is_broken(st))
		return new_stream(st->tp, st);
	const struct weir_expr *e = check_open(&c, sp, "weir_branch") ? condition(&c, st, "weir_branch", expr) : NULL;
	const struct weir_expr *other = e == NULL ? NULL : is_not_true(&c, e);
	if (other == NULL)
		return failed(&c, st);
	struct weir_stream *out = filtered(&c, st, weir_expr_and(c.m, sp->rest, e));
	sp->rest = weir_expr_and(c.m, sp->rest, other);
	return out;
}

struct weir_stream *weir_branch_rest(struct weir_split *sp)
{
	if (sp == NULL)
		return NULL;
	struct weir_stream *st = sp->st;
	struct call c = begin(st->tp);
	if (is_broken(st))
		return new_stream(st->tp, st);
	if (!check_open(&c, sp, "weir_branch_rest"))
		return failed(&c, st);
	sp->closed = true;
	return sp->rest == NULL ? new_stream(st->tp, st) : filtered(&c, st, sp->rest);
}

/* ---- functions over batches ---- */

/* What weir_map_batch and its like are given. */
struct user {
	const char *call; /* weir_map_batch */
	const char *name;
	const char *in;
	const char *out; /* NULL: fixed by the call */
	void (*run)(struct weir_batch *b, void *ctx);
	void *ctx;
	void (*destroy)(void *ctx);
	bool flat; /* any number of rows for each: the result is one ARRAY */
};

/* Whether there is a stream. Without one there is no topology to keep ctx for: it goes at once. */
static bool user_begin(const struct weir_stream *st, void (*destroy)(void *ctx), void *ctx)
{
	if (st == NULL && destroy != NULL)
		destroy(ctx);
	return st != NULL;
}

/* The in-columns as expressions over st. */
static enum weir_err user_arguments(struct call *c, const struct weir_stream *st, const struct user *u,
				    const struct weir_expr ***out, uint32_t *count)
{
	struct item *items = NULL;
	char type[80];
	*count = 0;
	*out = NULL;
	if (u->in == NULL)
		return WEIR_OK;
	struct weir_scope scope = scope_of(c->m, st, st->node, "a function over batches takes no aggregates");
	enum weir_err err = tokens_of(c, u->call, u->in);
	if (err == WEIR_OK)
		err = weir_api_items(c, st->node, st->visible, &items, count);
	const struct weir_expr **args = weir_mem_take(c->m, (*count + 1) * sizeof *args);
	for (uint32_t i = 0; err == WEIR_OK && i < *count; i++) {
		if (items[i].ast == NULL)
			args[i] = weir_expr_column(c->m, items[i].column, &st->node->columns[items[i].column].type,
						   items[i].name);
		else
			err = weir_expr_bind(&scope, &c->ts, items[i].ast, c->m, &args[i], &c->dg);
		if (err == WEIR_OK && !weir_user_type_is_supported(&args[i]->type))
			err = weir_diag_set(&c->dg, WEIR_E_PLAN,
					    "%s: '%s': column '%s' is %s: functions take DECIMAL of up to 18 digits, "
					    "CAST it",
					    u->call, u->name, items[i].name,
					    weir_type_text(&args[i]->type, type, sizeof type));
	}
	*out = args;
	return err;
}

static enum weir_err user_results(struct call *c, const struct user *u, struct weir_user_function *fn)
{
	static const struct weir_type boolean = {.kind = WEIR_KIND_BOOLEAN};
	static const char *const result = "result";
	if (u->out == NULL) {
		fn->out_count = 1;
		fn->out_types = &boolean;
		fn->out_names = &result;
		return WEIR_OK;
	}
	struct weir_table_column *columns = NULL;
	uint32_t count = 0;
	enum weir_err err = tokens_of(c, u->call, u->out);
	if (err == WEIR_OK)
		err = weir_api_columns(c, &columns, &count);
	struct weir_type *types = weir_mem_take(c->m, (count + 1) * sizeof *types);
	const char **names = weir_mem_take(c->m, (count + 1) * sizeof *names);
	for (uint32_t i = 0; err == WEIR_OK && i < count; i++) {
		types[i] = columns[i].type;
		names[i] = columns[i].name;
		if (columns[i].kind != WEIR_COLUMN_PHYSICAL || !weir_user_type_is_supported(&types[i]) ||
		    types[i].kind == WEIR_KIND_ARRAY || types[i].kind == WEIR_KIND_MAP ||
		    types[i].kind == WEIR_KIND_ROW)
			err = weir_diag_set(&c->dg, WEIR_E_PLAN,
					    "%s: '%s': result '%s' must be a plain column: no expression, metadata, "
					    "ARRAY, MAP or ROW, and no DECIMAL beyond 18 digits",
					    u->call, u->name, names[i]);
	}
	fn->out_count = count;
	fn->out_types = types;
	fn->out_names = names;
	return err;
}

/* The function's results over st; NULL: c->dg says why not. What ctx needs at the end is arranged in any case. */
static const struct weir_expr **user_call(struct call *c, struct weir_stream *st, const struct user *u,
					  struct weir_user_function **out)
{
	const struct weir_expr **args = NULL;
	uint32_t count = 0;
	enum weir_err err = WEIR_OK;
	weir_topology_defer(st->tp, u->destroy, u->ctx);
	(void)node_of(st);
	if (is_broken(st))
		return NULL;
	struct weir_user_function *fn = weir_mem_take(c->m, sizeof *fn);
	if (u->name == NULL || u->name[0] == '\0' || u->run == NULL)
		err = weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: needs a name and a function", u->call);
	if (err == WEIR_OK && st->window.kind != WEIR_WINDOW_NONE)
		err = weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: '%s' belongs before the window or behind its aggregate",
				    u->call, u->name);
	if (err == WEIR_OK)
		err = user_arguments(c, st, u, &args, &count);
	if (err == WEIR_OK)
		err = user_results(c, u, fn);
	if (err != WEIR_OK)
		return NULL;
	fn->name = weir_mem_strdup(c->m, u->name);
	fn->run = u->run;
	fn->ctx = u->ctx;
	const struct weir_expr **results = weir_mem_take(c->m, (fn->out_count + 1) * sizeof *results);
	if (u->flat)
		results[0] = weir_user_flat_call(c->m, fn, args, count);
	else
		weir_user_call(c->m, fn, args, count, results);
	*out = fn;
	return results;
}

/* What a call that failed returns; the first error may be an earlier call's. */
static struct weir_stream *user_failed(struct call *c, const struct weir_stream *st)
{
	return c->dg != NULL ? failed(c, st) : new_stream(st->tp, st);
}

struct weir_stream *weir_map_batch(struct weir_stream *st, const char *name, const char *of_columns,
				   const char *results, void (*run)(struct weir_batch *b, void *ctx), void *ctx,
				   void (*destroy)(void *ctx))
{
	if (!user_begin(st, destroy, ctx))
		return NULL;
	struct call c = begin(st->tp);
	struct weir_user_function *fn = NULL;
	struct user u = {"weir_map_batch", name, of_columns, results != NULL ? results : "", run, ctx, destroy, false};
	const struct weir_expr **outs = user_call(&c, st, &u, &fn);
	if (outs == NULL)
		return user_failed(&c, st);
	struct columns cs = columns_begin(&c, st->visible + fn->out_count);
	for (uint32_t i = 0; i < st->visible; i++)
		columns_add(&c, &cs, st->node, i);
	for (uint32_t i = 0; i < fn->out_count; i++) {
		if (check_new_name(&c, &cs, u.call, fn->out_names[i]) != WEIR_OK)
			return failed(&c, st);
		cs.names[cs.count] = fn->out_names[i];
		cs.exprs[cs.count++] = outs[i];
	}
	return weir_api_project(&c, st, st->node, cs.names, cs.exprs, cs.count);
}

static const struct weir_expr *text_constant(struct weir_mem *m, const char *text)
{
	struct weir_type t = {.kind = WEIR_KIND_VARCHAR, .not_null = true, .length = INT32_MAX};
	struct weir_value v = {.str = {(const uint8_t *)text, (uint32_t)strlen(text), 0}};
	return weir_expr_make_const(m, &t, v);
}

/* st with the first column of its key in front: rows on their way through UNNEST keep their order within that column.
 */
static struct weir_stream *key_first(struct call *c, struct weir_stream *st)
{
	struct weir_node *in = node_of(st);
	int32_t key = is_broken(st) || !st->keyed ? 0 : find_column(in, st->visible, st->key_names[0]);
	if (key <= 0)
		return st;
	struct columns cs = columns_begin(c, st->visible);
	columns_add(c, &cs, in, (uint32_t)key);
	for (uint32_t i = 0; i < st->visible; i++)
		if (i != (uint32_t)key)
			columns_add(c, &cs, in, i);
	return weir_api_project(c, st, in, cs.names, cs.exprs, cs.count);
}

struct weir_stream *weir_flat_map_batch(struct weir_stream *st, const char *name, const char *of_columns,
					const char *results, void (*run)(struct weir_batch *b, void *ctx), void *ctx,
					void (*destroy)(void *ctx))
{
	if (!user_begin(st, destroy, ctx))
		return NULL;
	struct call c = begin(st->tp);
	struct weir_user_function *fn = NULL;
	struct user u = {
		"weir_flat_map_batch", name, of_columns, results != NULL ? results : "", run, ctx, destroy, true};
	const struct weir_stream *shown = st; /* the order of its columns is the result's */
	(void)node_of(st);
	st = key_first(&c, st);
	const struct weir_expr **array = user_call(&c, st, &u, &fn);
	if (array == NULL)
		return user_failed(&c, st);
	/* Of a row with many results each is a row ("element" is an ARRAY of it) behind the columns it came with. */
	struct weir_node *n = weir_build_unnest(st->tp, st->node, fn->name, array[0], false);
	if (is_broken(st))
		return new_stream(st->tp, st);
	const uint32_t element = st->node->column_count;
	const struct weir_expr *one[2] = {weir_expr_column(c.m, element, &n->columns[element].type, "element"),
					  weir_expr_bigint(c.m, 1)};
	const struct weir_expr *row = NULL;
	if (weir_expr_call(c.m, "ITEM", one, 2, &row, &c.dg) != WEIR_OK)
		return failed(&c, st);
	struct columns cs = columns_begin(&c, st->visible + fn->out_count);
	for (uint32_t i = 0; i < st->visible; i++)
		columns_add(&c, &cs, n, (uint32_t)find_column(n, st->visible, shown->node->columns[i].name));
	for (uint32_t i = 0; i < fn->out_count; i++) {
		const struct weir_expr *field[2] = {row, text_constant(c.m, fn->out_names[i])};
		if (check_new_name(&c, &cs, u.call, fn->out_names[i]) != WEIR_OK ||
		    weir_expr_call(c.m, "FIELD", field, 2, &cs.exprs[cs.count], &c.dg) != WEIR_OK)
			return failed(&c, st);
		cs.names[cs.count++] = fn->out_names[i];
	}
	return weir_api_project(&c, st, n, cs.names, cs.exprs, cs.count);
}

struct weir_stream *weir_filter_batch(struct weir_stream *st, const char *name, const char *of_columns,
				      void (*run)(struct weir_batch *b, void *ctx), void *ctx,
				      void (*destroy)(void *ctx))
{
	if (!user_begin(st, destroy, ctx))
		return NULL;
	struct call c = begin(st->tp);
	struct weir_user_function *fn = NULL;
	struct user u = {"weir_filter_batch", name, of_columns, NULL, run, ctx, destroy, false};
	const struct weir_expr **outs = user_call(&c, st, &u, &fn);
	return outs == NULL ? user_failed(&c, st) : filtered(&c, st, outs[0]);
}

struct weir_stream *weir_peek(struct weir_stream *st, const char *name, const char *of_columns,
			      void (*run)(struct weir_batch *b, void *ctx), void *ctx, void (*destroy)(void *ctx))
{
	if (!user_begin(st, destroy, ctx))
		return NULL;
	struct call c = begin(st->tp);
	struct weir_user_function *fn = NULL;
	const struct weir_expr *pass = NULL;
	struct user u = {"weir_peek", name, of_columns, NULL, run, ctx, destroy, false};
	const struct weir_expr **outs = user_call(&c, st, &u, &fn);
	/* FALSE, which it is when nothing was put, is NOT NULL as well: every row passes. */
	if (outs == NULL || weir_expr_call(c.m, "IS NOT NULL", outs, 1, &pass, &c.dg) != WEIR_OK)
		return user_failed(&c, st);
	return filtered(&c, st, pass);
}

enum weir_err weir_foreach(struct weir_stream *st, const char *name, const char *of_columns,
			   void (*run)(struct weir_batch *b, void *ctx), void *ctx, void (*destroy)(void *ctx))
{
	return weir_sink(weir_peek(st, name, of_columns, run, ctx, destroy), name, "connector=blackhole");
}
