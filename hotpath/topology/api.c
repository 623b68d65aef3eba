/* api.c: weir.h: streams with expressions as text on top of builder.h. A stream is a node and what the calls since then
 * asked of the next aggregate (keys, window, emission). Event time survives weir_select: where the list leaves the time
 * column out, it goes on as a hidden column behind the visible ones. Cold path, @thread init. */
#include <stdio.h>

#include "hotpath/expr/function.h"
#include "hotpath/topology/api.h"

/* ---- sources ---- */

static enum weir_err parse_metadata(struct call *c, struct weir_table_column *col)
{
	static const char *const keys[] = {"topic",   "partition",      "offset",      "timestamp",
					   "headers", "timestamp-type", "leader-epoch"};
	const struct weir_token *at = weir_token_peek(&c->ts, 0);
	col->kind = WEIR_COLUMN_METADATA;
	col->metadata = col->name;
	if (weir_token_accept(&c->ts, "FROM")) {
		at = weir_token_peek(&c->ts, 0);
		if (at->kind != WEIR_TOK_STRING)
			return weir_token_error(&c->ts, at, &c->dg, NULL,
						"expected the name of the metadata in quotes");
		col->metadata = at->text;
		c->ts.next++;
	}
	col->is_virtual = weir_token_accept(&c->ts, "VIRTUAL");
	for (size_t i = 0; i < WEIR_COUNT_OF(keys); i++) {
		if (strcmp(keys[i], col->metadata) == 0)
			return WEIR_OK;
	}
	return weir_token_error(
		&c->ts, at, &c->dg,
		"there are topic, partition, offset, timestamp, timestamp-type, headers and leader-epoch",
		"unknown metadata '%s'", col->metadata);
}

static enum weir_err parse_computed(struct call *c, struct weir_table_column *columns, uint32_t count)
{
	struct weir_scope_column *names = weir_mem_take(c->m, (count + 1) * sizeof *names);
	for (uint32_t i = 0; i < count; i++)
		names[i] = (struct weir_scope_column){.name = columns[i].name, .type = columns[i].type};
	struct weir_scope scope = {
		.columns = names, .count = count, .aggregate_error = "a column cannot hold an aggregate"};
	struct weir_ast *ast;
	enum weir_err err = weir_expr_parse(&c->ts, c->m, &ast, &c->dg);
	if (err == WEIR_OK)
		err = weir_expr_bind(&scope, &c->ts, ast, c->m, &columns[count].expr, &c->dg);
	if (err != WEIR_OK)
		return err;
	columns[count].kind = WEIR_COLUMN_COMPUTED;
	columns[count].type = columns[count].expr->type;
	return WEIR_OK;
}

/* name TYPE [METADATA ...] | name AS expr, separated by commas; *out has room for one more. */
enum weir_err weir_api_columns(struct call *c, struct weir_table_column **out, uint32_t *count_out)
{
	struct weir_table_column *columns = weir_mem_take(c->m, (LIST_MAX + 1) * sizeof *columns);
	uint32_t count = 0;
	do {
		const struct weir_token *at = weir_token_peek(&c->ts, 0);
		struct weir_table_column *col = &columns[count];
		if (count == LIST_MAX)
			return weir_token_error(&c->ts, at, &c->dg, NULL, "more than %d columns", LIST_MAX);
		enum weir_err err = weir_token_name(&c->ts, "a column name", &col->name, &c->dg);
		if (err != WEIR_OK)
			return err;
		for (uint32_t i = 0; i < count; i++) {
			if (strcmp(columns[i].name, col->name) == 0)
				return weir_token_error(&c->ts, at, &c->dg, NULL, "two columns are named '%s'",
							col->name);
		}
		if (weir_token_accept(&c->ts, "AS")) {
			err = parse_computed(c, columns, count);
		} else {
			err = weir_type_parse(&c->ts, c->m, &col->type, &c->dg);
			if (err == WEIR_OK && weir_token_accept(&c->ts, "METADATA"))
				err = parse_metadata(c, col);
		}
		if (err != WEIR_OK)
			return err;
		count++;
	} while (weir_token_accept(&c->ts, ","));
	*out = columns;
	*count_out = count;
	return expect_end(c);
}

/* Options of a source or sink. Without a connector: recorded where there is a path, else kafka. */
static enum weir_err parse_options(struct call *c, const char *call, const char *text, struct weir_table_options *out)
{
	struct weir_option *given, *all;
	uint32_t count;
	bool has_connector = false, has_path = false;
	enum weir_err err = weir_option_string_split(text, c->m, &given, &count, &c->dg);
	if (err == WEIR_OK) {
		all = weir_mem_take(c->m, (count + 1) * sizeof *all);
		memcpy(all, given, count * sizeof *all);
		for (uint32_t i = 0; i < count; i++) {
			has_connector = has_connector || strcmp(all[i].name, "connector") == 0;
			has_path = has_path || strcmp(all[i].name, "path") == 0;
		}
		if (!has_connector)
			all[count++] = (struct weir_option){"connector", has_path ? "recorded" : "kafka"};
		err = weir_table_options_parse(out, all, count, c->m, NULL, &c->dg);
	}
	if (err != WEIR_OK)
		weir_diag_add_hint(c->dg, "in the options of %s", call);
	return err;
}

struct weir_stream *weir_source(struct weir_topology *tp, const char *name, const char *columns, const char *options)
{
	if (tp == NULL)
		return NULL;
	struct call c = begin(tp);
	struct weir_stream *st = new_stream(tp, NULL);
	if (weir_topology_error(tp) != NULL)
		return st;
	struct weir_table_def *def = weir_mem_take(c.m, sizeof *def);
	struct weir_table_column *list = NULL;
	enum weir_err err = WEIR_OK;
	if (name == NULL || name[0] == '\0')
		err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_source: a source needs a name");
	if (err == WEIR_OK)
		err = tokens_of(&c, "weir_source", columns);
	if (err == WEIR_OK)
		err = weir_api_columns(&c, &list, &def->column_count);
	if (err == WEIR_OK)
		err = parse_options(&c, "weir_source", options, &def->options);
	if (err == WEIR_OK)
		err = weir_table_options_check_use(&def->options, false, name, &c.dg);
	if (err != WEIR_OK)
		return failed(&c, st);
	def->name = weir_mem_strdup(c.m, name);
	def->columns = list;
	def->rowtime = -1;
	st->def = def;
	st->visible = def->column_count;
	return st;
}

/* A BIGINT in milliseconds becomes a hidden TIMESTAMP_LTZ(3) column: one kind of time for all that follows. */
static enum weir_err add_time_column(struct call *c, struct weir_table_def *def, uint32_t column)
{
	struct weir_table_column *columns =
		(struct weir_table_column *)(uintptr_t)def->columns; /* ours, from weir_source */
	const struct weir_expr *args[] = {weir_expr_column(c->m, column, &columns[column].type, columns[column].name),
					  weir_expr_bigint(c->m, 3)};
	struct weir_table_column *time = &columns[def->column_count];
	enum weir_err err = weir_expr_call(c->m, "TO_TIMESTAMP_LTZ", args, 2, &time->expr, &c->dg);
	if (err != WEIR_OK)
		return err;
	time->name = TIME_COLUMN;
	time->kind = WEIR_COLUMN_COMPUTED;
	time->type = time->expr->type;
	def->rowtime = (int32_t)def->column_count++;
	return WEIR_OK;
}

struct weir_stream *weir_event_time(struct weir_stream *st, const char *column, int64_t grace_ms)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	char type[80];
	if (is_broken(st))
		return new_stream(st->tp, st);
	if (column == NULL || grace_ms < 0) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN,
				    "weir_event_time: needs a column and a grace that is not negative");
		return failed(&c, st);
	}
	if (st->def == NULL || st->node != NULL || st->def->rowtime >= 0) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_event_time: belongs right behind weir_source, once");
		return failed(&c, st);
	}
	uint32_t at = 0;
	while (at < st->visible && strcmp(st->def->columns[at].name, column) != 0)
		at++;
	if (at == st->visible) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_event_time: source '%s' has no column '%s'",
				    st->def->name, column);
		return failed(&c, st);
	}
	const struct weir_type *t = &st->def->columns[at].type;
	if (t->kind == WEIR_KIND_BIGINT) {
		if (add_time_column(&c, st->def, at) != WEIR_OK)
			return failed(&c, st);
	} else if (weir_kind_is_timestamp(t->kind) && t->precision <= 3) {
		st->def->rowtime = (int32_t)at;
	} else {
		(void)weir_diag_set(
			&c.dg, WEIR_E_PLAN,
			"weir_event_time: column '%s' must be BIGINT, TIMESTAMP(3) or TIMESTAMP_LTZ(3), not %s", column,
			weir_type_text(t, type, sizeof type));
		return failed(&c, st);
	}
	st->def->grace_ms = grace_ms;
	return new_stream(st->tp, st);
}

/* ---- filters and lists ---- */

struct weir_stream *weir_filter(struct weir_stream *st, const char *expr)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	char type[80];
	struct weir_node *in = node_of(st);
	if (is_broken(st))
		return new_stream(st->tp, st);
	struct weir_scope scope = scope_of(c.m, st, in, "weir_filter cannot hold an aggregate: filter its result");
	struct weir_ast *ast = NULL;
	const struct weir_expr *e = NULL;
	enum weir_err err = tokens_of(&c, "weir_filter", expr);
	if (err == WEIR_OK)
		err = weir_expr_parse(&c.ts, c.m, &ast, &c.dg);
	if (err == WEIR_OK)
		err = expect_end(&c);
	if (err == WEIR_OK)
		err = weir_expr_bind(&scope, &c.ts, ast, c.m, &e, &c.dg);
	if (err == WEIR_OK && e->type.kind != WEIR_KIND_BOOLEAN && e->type.kind != WEIR_KIND_NULL)
		err = weir_token_error(&c.ts, &c.ts.token[ast->at], &c.dg, NULL, "a filter must be BOOLEAN, not %s",
				       weir_type_text(&e->type, type, sizeof type));
	if (err != WEIR_OK)
		return failed(&c, st);
	struct weir_stream *out = new_stream(st->tp, st);
	out->node = weir_build_filter(st->tp, in, e);
	return out;
}

/* Whether the name of items[count] is new. */
static enum weir_err check_name(struct call *c, const struct weir_token *at, const struct item *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(items[i].name, items[count].name) == 0)
			return weir_token_error(&c->ts, at, &c->dg, "name one of them with AS",
						"two columns are named '%s'", items[i].name);
	}
	return WEIR_OK;
}

/* Items of a list up to its end. Star stands for the visible columns of node (NULL: not allowed). */
enum weir_err weir_api_items(struct call *c, const struct weir_node *node, uint32_t visible, struct item **out,
			     uint32_t *count_out)
{
	struct item *items = weir_mem_take(c->m, LIST_MAX * sizeof *items);
	uint32_t count = 0;
	do {
		const struct weir_token *at = weir_token_peek(&c->ts, 0);
		struct weir_ast *ast;
		uint32_t more = 1;
		if (weir_token_is(&c->ts, "*")) {
			if (node == NULL)
				return weir_token_error(&c->ts, at, &c->dg, NULL,
							"'*' cannot stand beside aggregates: name the columns");
			more = visible;
		}
		if (count + more > LIST_MAX)
			return weir_token_error(&c->ts, at, &c->dg, NULL, "more than %d columns", LIST_MAX);
		if (weir_token_accept(&c->ts, "*")) {
			for (uint32_t i = 0; i < visible; i++, count++) {
				items[count] = (struct item){NULL, i, node->columns[i].name};
				if (check_name(c, at, items, count) != WEIR_OK)
					return weir_diag_code(c->dg);
			}
			continue;
		}
		enum weir_err err = weir_expr_parse(&c->ts, c->m, &ast, &c->dg);
		if (err != WEIR_OK)
			return err;
		struct item *it = &items[count];
		it->ast = ast;
		enum weir_tok next = weir_token_peek(&c->ts, 0)->kind;
		if (weir_token_accept(&c->ts, "AS") || next == WEIR_TOK_NAME || next == WEIR_TOK_QUOTED)
			err = weir_token_name(&c->ts, "a column name", &it->name, &c->dg);
		else if (ast->kind == WEIR_AST_COLUMN || ast->kind == WEIR_AST_FIELD)
			it->name = ast->text;
		else
			it->name = weir_mem_printf(c->m, "EXPR$%u", count);
		if (err != WEIR_OK)
			return err;
		err = check_name(c, at, items, count);
		if (err != WEIR_OK)
			return err;
		count++;
	} while (weir_token_accept(&c->ts, ","));
	*out = items;
	*count_out = count;
	return expect_end(c);
}

/* A projection of node to exprs, and behind them the time column where exprs leave it out. */
struct weir_stream *weir_api_project(struct call *c, const struct weir_stream *st, struct weir_node *node,
				     const char **names, const struct weir_expr **exprs, uint32_t count)
{
	struct weir_stream *out = new_stream(c->tp, st);
	uint32_t all = count;
	bool has_time = node->rowtime < 0;
	for (uint32_t i = 0; i < count; i++)
		has_time = has_time || (exprs[i]->op == WEIR_EXPR_COLUMN && (int32_t)exprs[i]->column == node->rowtime);
	if (!has_time) {
		const struct weir_column *time = &node->columns[node->rowtime];
		exprs[all] = weir_expr_column(c->m, (uint32_t)node->rowtime, &time->type, time->name);
		names[all++] = TIME_COLUMN;
	}
	out->node = weir_build_project(c->tp, node, names, exprs, all);
	out->def = NULL;
	out->visible = count;
	out->left = 0;
	return out;
}

struct weir_stream *weir_select(struct weir_stream *st, const char *exprs)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_node *in = node_of(st);
	struct item *items = NULL;
	uint32_t count = 0;
	if (is_broken(st))
		return new_stream(st->tp, st);
	struct weir_scope scope = scope_of(c.m, st, in, "weir_select cannot hold an aggregate: use weir_aggregate");
	enum weir_err err = tokens_of(&c, "weir_select", exprs);
	if (err == WEIR_OK)
		err = weir_api_items(&c, in, st->visible, &items, &count);
	if (err != WEIR_OK)
		return failed(&c, st);
	const struct weir_expr **bound = weir_mem_take(c.m, (count + 1) * sizeof *bound);
	const char **names = weir_mem_take(c.m, (count + 1) * sizeof *names);
	for (uint32_t i = 0; i < count; i++) {
		names[i] = items[i].name;
		if (items[i].ast == NULL)
			bound[i] = weir_expr_column(c.m, items[i].column, &in->columns[items[i].column].type,
						    items[i].name);
		else if (weir_expr_bind(&scope, &c.ts, items[i].ast, c.m, &bound[i], &c.dg) != WEIR_OK)
			return failed(&c, st);
	}
	return weir_api_project(&c, st, in, names, bound, count);
}

/* ---- keys, windows, emission ---- */

struct weir_stream *weir_key_by(struct weir_stream *st, const char *columns)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_node *in = node_of(st);
	if (is_broken(st))
		return new_stream(st->tp, st);
	const char **names = weir_mem_take(c.m, LIST_MAX * sizeof *names);
	uint32_t count = 0;
	enum weir_err err = tokens_of(&c, "weir_key_by", columns);
	while (err == WEIR_OK) {
		const struct weir_token *at = weir_token_peek(&c.ts, 0);
		if (count == LIST_MAX) {
			err = weir_token_error(&c.ts, at, &c.dg, NULL, "more than %d columns", LIST_MAX);
			break;
		}
		err = weir_token_name(&c.ts, "a column name", &names[count], &c.dg);
		if (err == WEIR_OK && find_column(in, st->visible, names[count]) < 0)
			err = weir_token_error(&c.ts, at, &c.dg, NULL, "there is no column '%s'", names[count]);
		for (uint32_t i = 0; err == WEIR_OK && i < count; i++) {
			if (strcmp(names[i], names[count]) == 0)
				err = weir_token_error(&c.ts, at, &c.dg, NULL, "column '%s' is named twice",
						       names[count]);
		}
		count++;
		if (err == WEIR_OK && !weir_token_accept(&c.ts, ",")) {
			err = expect_end(&c);
			break;
		}
	}
	if (err != WEIR_OK)
		return failed(&c, st);
	struct weir_stream *out = new_stream(st->tp, st);
	out->keyed = true;
	out->key_names = names;
	out->key_count = count;
	return out;
}

static struct weir_stream *set_window(struct weir_stream *st, const struct weir_window_spec *w, const char *call,
				      bool valid, const char *takes)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	(void)node_of(st);
	if (is_broken(st))
		return new_stream(st->tp, st);
	if (!valid) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN, "%s: %s", call, takes);
		return failed(&c, st);
	}
	if (st->window.kind != WEIR_WINDOW_NONE) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN, "%s: the stream has a window already: aggregate it first",
				    call);
		return failed(&c, st);
	}
	struct weir_stream *out = new_stream(st->tp, st);
	out->window = *w;
	return out;
}

struct weir_stream *weir_tumble(struct weir_stream *st, int64_t size_ms)
{
	struct weir_window_spec w = {.kind = WEIR_WINDOW_TUMBLE, .size_ms = size_ms, .advance_ms = size_ms};
	return set_window(st, &w, "weir_tumble", size_ms > 0, "the size must be positive");
}

struct weir_stream *weir_hop(struct weir_stream *st, int64_t size_ms, int64_t advance_ms)
{
	struct weir_window_spec w = {.kind = WEIR_WINDOW_HOP, .size_ms = size_ms, .advance_ms = advance_ms};
	return set_window(st, &w, "weir_hop", size_ms > 0 && advance_ms > 0 && advance_ms <= size_ms,
			  "the advance must be positive and at most the size");
}

struct weir_stream *weir_cumulate(struct weir_stream *st, int64_t size_ms, int64_t step_ms)
{
	struct weir_window_spec w = {.kind = WEIR_WINDOW_CUMULATE, .size_ms = size_ms, .advance_ms = step_ms};
	return set_window(st, &w, "weir_cumulate", size_ms > 0 && step_ms > 0 && size_ms % step_ms == 0,
			  "the step must be positive, and the size a multiple of it");
}

struct weir_stream *weir_session(struct weir_stream *st, int64_t gap_ms)
{
	struct weir_window_spec w = {.kind = WEIR_WINDOW_SESSION, .gap_ms = gap_ms};
	return set_window(st, &w, "weir_session", gap_ms > 0, "the gap must be positive");
}

struct weir_stream *weir_sliding(struct weir_stream *st, int64_t length_ms)
{
	struct weir_window_spec w = {.kind = WEIR_WINDOW_SLIDING, .size_ms = length_ms};
	return set_window(st, &w, "weir_sliding", length_ms >= 0, "the length must not be negative");
}

struct weir_stream *weir_emit(struct weir_stream *st, enum weir_emit mode)
{
	if (st == NULL)
		return NULL;
	struct weir_stream *out = new_stream(st->tp, st);
	out->emit = mode;
	out->emit_set = true;
	return out;
}

/* ---- merge ---- */

/* The start of a call with two streams, or those of two tables, NULL where there is none. True: both have nodes of one
 * topology; else *out is what the call returns. */
static bool begin_pair(struct call *c, const char *call, struct weir_stream *l, struct weir_stream *r,
		       struct weir_stream **out)
{
	struct weir_topology *tp = l != NULL ? l->tp : r != NULL ? r->tp : NULL;
	*out = NULL;
	if (tp == NULL)
		return false;
	*c = begin(tp);
	if (weir_topology_error(tp) != NULL)
		; /* the first one counts */
	else if (l == NULL || r == NULL)
		(void)weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: one of the two is NULL", call);
	else if (l->tp != r->tp)
		(void)weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: streams of two topologies", call);
	else if (node_of(l) != NULL && node_of(r) != NULL && !is_broken(l))
		return true;
	*out = c->dg != NULL ? failed(c, l) : new_stream(tp, l);
	return false;
}

static struct weir_stream *stream_of(const struct weir_table *tb)
{
	return tb != NULL ? tb->st : NULL;
}

/* st's visible columns and then its time column: the form in which streams with hidden columns agree. */
static struct weir_node *aligned(struct call *c, const struct weir_stream *st)
{
	const struct weir_node *n = st->node;
	const struct weir_expr **exprs = weir_mem_take(c->m, (st->visible + 1) * sizeof *exprs);
	const char **names = weir_mem_take(c->m, (st->visible + 1) * sizeof *names);
	for (uint32_t i = 0; i < st->visible; i++) {
		names[i] = n->columns[i].name;
		exprs[i] = weir_expr_column(c->m, i, &n->columns[i].type, names[i]);
	}
	const struct weir_column *time = &n->columns[n->rowtime];
	names[st->visible] = TIME_COLUMN;
	exprs[st->visible] = weir_expr_column(c->m, (uint32_t)n->rowtime, &time->type, time->name);
	struct weir_node *out = weir_build_project(c->tp, st->node, names, exprs, st->visible + 1);
	out->rowtime = (int32_t)st->visible; /* even where a visible column is the time, too */
	return out;
}

struct weir_stream *weir_merge(struct weir_stream *a, struct weir_stream *b)
{
	struct call c;
	struct weir_stream *out;
	if (!begin_pair(&c, "weir_merge", a, b, &out))
		return out;
	struct weir_node *in[] = {a->node, b->node};
	if (a->visible != b->visible) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_merge: the streams have %u and %u columns", a->visible,
				    b->visible);
		return failed(&c, a);
	}
	if ((in[0]->rowtime < 0) != (in[1]->rowtime < 0)) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN,
				    "weir_merge: only one of the streams takes its event time from a column");
		return failed(&c, a);
	}
	bool same = in[0]->rowtime == in[1]->rowtime && in[0]->column_count == in[1]->column_count;
	if (!same && in[0]->rowtime >= 0) {
		in[0] = aligned(&c, a);
		in[1] = aligned(&c, b);
	}
	out = new_stream(a->tp, a);
	out->node = weir_build_union(a->tp, in, 2);
	out->def = NULL;
	out->keyed = false;
	out->window = (struct weir_window_spec){.kind = WEIR_WINDOW_NONE};
	return out;
}

/* ---- aggregates ---- */

/* Binding of an aggregate's list: aggregate calls become columns of the aggregate's output, behind its keys. */
struct grouping {
	struct call *c;
	struct weir_scope input; /* what arguments may name */
	const struct weir_stream *st;
	const struct weir_node *window_node; /* NULL: no window */
	const struct weir_ast **asts;        /* of the aggregates found so far */
	struct weir_agg *aggs;
	const char **agg_names;
	uint32_t agg_count;
	const struct weir_expr **args;
	uint32_t arg_count;
	uint32_t agg_columns; /* how many columns stand between keys and window columns */
};

/* The number of e among the arguments, added if it is new. */
static int32_t argument(struct grouping *g, const struct weir_expr *e)
{
	for (uint32_t i = 0; i < g->arg_count; i++) {
		if (weir_expr_equal(g->args[i], e))
			return (int32_t)i;
	}
	g->args[g->arg_count] = e;
	return (int32_t)g->arg_count++;
}

static enum weir_err add_aggregate(struct grouping *g, const struct weir_ast *ast)
{
	struct call *c = g->c;
	const struct weir_token *at = &c->ts.token[ast->at];
	struct weir_agg *agg = &g->aggs[g->agg_count];
	const struct weir_expr *arg = NULL, *filter = NULL;
	char type[80];
	if (g->agg_count == LIST_MAX)
		return weir_token_error(&c->ts, at, &c->dg, NULL, "more than %d aggregates", LIST_MAX);
	if (!ast->star_arg && ast->arg_count != 1)
		return weir_token_error(&c->ts, at, &c->dg, NULL, "%s takes one argument", ast->text);
	if (!ast->star_arg) {
		enum weir_err err = weir_expr_bind(&g->input, &c->ts, ast->args[0], c->m, &arg, &c->dg);
		if (err != WEIR_OK)
			return err;
	}
	struct weir_diag *dg = NULL;
	if (weir_agg_resolve(agg, ast->text, ast->distinct, arg != NULL ? &arg->type : NULL, &dg) != WEIR_OK) {
		enum weir_err err = weir_token_error(&c->ts, at, &c->dg, NULL, "%s", weir_diag_text(dg));
		weir_diag_destroy(dg);
		return err;
	}
	agg->arg = arg != NULL ? argument(g, arg) : -1;
	agg->filter = -1;
	if (ast->filter != NULL) {
		enum weir_err err = weir_expr_bind(&g->input, &c->ts, ast->filter, c->m, &filter, &c->dg);
		if (err != WEIR_OK)
			return err;
		if (filter->type.kind != WEIR_KIND_BOOLEAN)
			return weir_token_error(&c->ts, &c->ts.token[ast->filter->at], &c->dg, NULL,
						"a filter must be BOOLEAN, not %s",
						weir_type_text(&filter->type, type, sizeof type));
		agg->filter = argument(g, filter);
	}
	struct weir_buf b = {0};
	weir_ast_print(ast, &b);
	agg->text = weir_mem_strndup(c->m, (const char *)b.data, b.bytes);
	weir_buf_fini(&b);
	g->agg_names[g->agg_count] = agg->text;
	g->asts[g->agg_count++] = ast;
	return WEIR_OK;
}

static enum weir_err intercept(void *ctx, const struct weir_ast *ast, const struct weir_expr **out,
			       struct weir_diag **dg)
{
	struct grouping *g = ctx;
	(void)dg; /* the same place: the call's */
	if (ast->kind == WEIR_AST_CALL && ast->over == NULL && weir_name_is_aggregate(ast->text)) {
		uint32_t i = 0;
		while (i < g->agg_count && !weir_ast_equal(g->asts[i], ast))
			i++;
		if (i == g->agg_count) {
			enum weir_err err = add_aggregate(g, ast);
			if (err != WEIR_OK)
				return err;
		}
		*out = weir_expr_column(g->c->m, g->st->key_count + i, &g->aggs[i].result_type, g->agg_names[i]);
		return WEIR_OK;
	}
	if (ast->kind == WEIR_AST_COLUMN && ast->qualifier == NULL) {
		bool is_key = false;
		for (uint32_t i = 0; i < g->st->key_count; i++)
			is_key = is_key || strcmp(g->st->key_names[i], ast->text) == 0;
		if (!is_key && find_column(g->st->node, g->st->visible, ast->text) >= 0 &&
		    (g->window_node == NULL || strncmp(ast->text, "window_", 7) != 0))
			return weir_token_error(&g->c->ts, &g->c->ts.token[ast->at], &g->c->dg,
						"name it in weir_key_by or put it into an aggregate",
						"column '%s' is neither a key nor in an aggregate", ast->text);
	}
	return WEIR_OK;
}

/* The columns that the list may name besides aggregates: keys, then the window's, which stand behind agg_columns. */
static struct weir_scope output_scope(struct grouping *g, const struct weir_expr *const *keys)
{
	uint32_t key_count = g->st->key_count;
	uint32_t count = key_count + g->agg_columns + (g->window_node != NULL ? 3 : 0);
	struct weir_scope_column *columns = weir_mem_take(g->c->m, (count + 1) * sizeof *columns);
	for (uint32_t i = 0; i < key_count; i++)
		columns[i] = (struct weir_scope_column){.name = g->st->key_names[i], .type = keys[i]->type};
	for (uint32_t i = 0; i < g->agg_columns; i++) /* reached by intercept alone */
		columns[key_count + i] =
			(struct weir_scope_column){.name = "", .type = g->aggs[i].result_type, .hidden = true};
	for (uint32_t i = 0; g->window_node != NULL && i < 3; i++) {
		const struct weir_column *w = &g->window_node->columns[g->window_node->column_count - 3 + i];
		columns[key_count + g->agg_columns + i] = (struct weir_scope_column){.name = w->name, .type = w->type};
	}
	return (struct weir_scope){.columns = columns, .count = count, .intercept = intercept, .ctx = g};
}

static enum weir_err check_aggregate(struct call *c, const struct weir_stream *st, const char *state_name)
{
	if (state_name == NULL || state_name[0] == '\0')
		return weir_diag_set(&c->dg, WEIR_E_PLAN, "weir_aggregate: an aggregate needs a state name");
	if (strspn(state_name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
		    strlen(state_name) ||
	    strlen(state_name) > 200)
		return weir_diag_set(&c->dg, WEIR_E_PLAN,
				     "weir_aggregate: the state name '%s' is no topic name: letters, digits, . _ -",
				     state_name);
	if (!st->keyed)
		return weir_diag_set(&c->dg, WEIR_E_PLAN,
				     "weir_aggregate: state '%s' has no key: call weir_key_by before", state_name);
	return WEIR_OK;
}

/* The list of g, bound over the aggregate's output: once to find the aggregates, once more with their number known. */
static enum weir_err bind_items(struct grouping *g, const struct weir_expr *const *keys, const struct item *items,
				uint32_t count, const struct weir_expr **bound)
{
	for (int pass = 0; pass < 2; pass++) {
		g->agg_columns = pass == 0 ? 0 : g->agg_count;
		struct weir_scope scope = output_scope(g, keys);
		for (uint32_t i = 0; i < count; i++) {
			struct weir_diag *dg = NULL;
			enum weir_err err = weir_expr_bind(&scope, &g->c->ts, items[i].ast, g->c->m, &bound[i], &dg);
			if (err != WEIR_OK && g->c->dg == NULL)
				g->c->dg = dg;
			else
				weir_diag_destroy(dg);
			if (err != WEIR_OK)
				return err;
		}
	}
	return WEIR_OK;
}

struct weir_stream *weir_aggregate(struct weir_stream *st, const char *state_name, const char *exprs)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_node *in = node_of(st);
	struct item *items = NULL;
	uint32_t count = 0;
	if (is_broken(st))
		return new_stream(st->tp, st);
	enum weir_err err = check_aggregate(&c, st, state_name);
	if (err == WEIR_OK)
		err = tokens_of(&c, "weir_aggregate", exprs);
	if (err == WEIR_OK)
		err = weir_api_items(&c, NULL, 0, &items, &count);
	const struct weir_expr **keys = weir_mem_take(c.m, (st->key_count + 1) * sizeof *keys);
	for (uint32_t i = 0; err == WEIR_OK && i < st->key_count; i++) {
		int32_t at = find_column(in, st->visible, st->key_names[i]);
		if (at < 0)
			err = weir_diag_set(&c.dg, WEIR_E_PLAN,
					    "weir_aggregate: key column '%s' was lost by weir_select",
					    st->key_names[i]);
		else
			keys[i] = weir_expr_column(c.m, (uint32_t)at, &in->columns[at].type, st->key_names[i]);
	}
	if (err != WEIR_OK)
		return failed(&c, st);
	struct grouping g = {.c = &c, .st = st, .input = scope_of(c.m, st, in, "an aggregate cannot hold another one")};
	g.asts = weir_mem_take(c.m, (LIST_MAX + 1) * sizeof *g.asts);
	g.aggs = weir_mem_take(c.m, (LIST_MAX + 1) * sizeof *g.aggs);
	g.agg_names = weir_mem_take(c.m, (LIST_MAX + 1) * sizeof *g.agg_names);
	g.args = weir_mem_take(c.m, 2 * (LIST_MAX + 1) * sizeof *g.args);
	bool windowed = st->window.kind != WEIR_WINDOW_NONE;
	if (windowed) {
		g.window_node = in = weir_build_window(st->tp, in, in->rowtime, &st->window);
		if (is_broken(st))
			return new_stream(st->tp, st);
	}
	const struct weir_expr **bound = weir_mem_take(c.m, (count + 1) * sizeof *bound);
	const char **names = weir_mem_take(c.m, (count + 1) * sizeof *names);
	if (bind_items(&g, keys, items, count, bound) != WEIR_OK)
		return failed(&c, st);
	for (uint32_t i = 0; i < count; i++)
		names[i] = items[i].name;
	struct weir_node *n = weir_build_aggregate(
		st->tp, in, state_name, st->key_names, keys, st->key_count, g.agg_names, g.aggs, g.agg_count, g.args,
		g.arg_count, windowed ? &st->window : NULL, -1, st->emit_set && st->emit == WEIR_EMIT_CHANGES);
	if (is_broken(st))
		return new_stream(st->tp, st);
	n->reject_null_key = true;
	struct weir_stream *out = weir_api_project(&c, NULL, n, names, bound, count);
	return out;
}

/* ---- tables ---- */

static struct weir_table *table_of(struct weir_stream *st)
{
	if (st == NULL)
		return NULL;
	struct weir_table *tb = weir_mem_take(weir_topology_mem(st->tp), sizeof *tb);
	tb->st = st;
	return tb;
}

struct weir_table *weir_table(struct weir_topology *tp, const char *name, const char *columns, const char *primary_key,
			      const char *options)
{
	if (tp == NULL)
		return NULL;
	struct call c = begin(tp);
	struct weir_stream *st = weir_source(tp, name, columns, options);
	if (is_broken(st))
		return table_of(st);
	struct weir_table_def *def = st->def;
	uint32_t *key = weir_mem_take(c.m, (LIST_MAX + 1) * sizeof *key), count = 0;
	enum weir_err err = tokens_of(&c, "weir_table", primary_key);
	while (err == WEIR_OK) {
		const struct weir_token *at = weir_token_peek(&c.ts, 0);
		const char *word = NULL;
		uint32_t i = 0;
		err = weir_token_name(&c.ts, "a key column", &word, &c.dg);
		while (err == WEIR_OK && i < def->column_count && strcmp(def->columns[i].name, word) != 0)
			i++;
		if (err == WEIR_OK && (i == def->column_count || def->columns[i].kind != WEIR_COLUMN_PHYSICAL))
			err = weir_token_error(&c.ts, at, &c.dg, NULL, "the table has no column '%s'", word);
		if (err == WEIR_OK && count == LIST_MAX)
			err = weir_token_error(&c.ts, at, &c.dg, NULL, "more than %d columns", LIST_MAX);
		if (err == WEIR_OK)
			key[count++] = i;
		if (err == WEIR_OK && !weir_token_accept(&c.ts, ",")) {
			err = expect_end(&c);
			break;
		}
	}
	def->primary_key = key;
	def->primary_key_count = count;
	if (err == WEIR_OK && !weir_table_is_keyed(def))
		err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_table: '%s' is not a topic: a table is made of one",
				    name);
	return table_of(err == WEIR_OK ? st : failed(&c, st));
}

struct weir_table *weir_table_global(struct weir_topology *tp, const char *name, const char *columns,
				     const char *primary_key, const char *options)
{
	struct weir_table *tb = weir_table(tp, name, columns, primary_key, options);
	if (tb != NULL && !is_broken(tb->st))
		tb->st->def->options.global = true;
	return tb;
}

struct weir_table *weir_table_event_time(struct weir_table *tb, const char *column, int64_t grace_ms)
{
	return tb != NULL ? table_of(weir_event_time(tb->st, column, grace_ms)) : NULL;
}

struct weir_table *weir_to_table(struct weir_stream *st)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	const struct weir_node *in = node_of(st);
	if (!is_broken(st) && (!in->is_table || in->table_key == NULL)) {
		(void)weir_diag_set(
			&c.dg, WEIR_E_PLAN,
			"weir_to_table: takes an aggregate without a window, with its key among the columns");
		st = failed(&c, st);
	}
	return table_of(st);
}

struct weir_stream *weir_to_stream(struct weir_table *tb)
{
	if (tb == NULL)
		return NULL;
	(void)node_of(tb->st);
	return new_stream(tb->st->tp, tb->st);
}

/* ---- joins ---- */

/* A join of l and r as a stream: their visible columns, those of l first. */
static struct weir_stream *join(struct call *c, struct weir_stream *l, struct weir_stream *r, const char *state_name,
				const struct weir_join_spec *spec)
{
	if (state_name != NULL && state_name[0] != '\0' && weir_api_state_name(c, "a join", state_name) != WEIR_OK)
		return failed(c, l);
	struct weir_node *node = weir_build_join(c->tp, l->node, r->node, state_name, spec);
	if (is_broken(l))
		return new_stream(c->tp, l);
	uint32_t count = l->visible + r->visible;
	const char **names = weir_mem_take(c->m, (count + 1) * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(c->m, (count + 1) * sizeof *exprs);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i < l->visible ? i : l->node->column_count + i - l->visible;
		names[i] = node->columns[at].name;
		exprs[i] = weir_expr_column(c->m, at, &node->columns[at].type, names[i]);
	}
	struct weir_stream *out = new_stream(c->tp, NULL);
	out->node = weir_build_project(c->tp, node, names, exprs, count);
	out->visible = count;
	out->left = l->visible;
	return out;
}

/* The key columns of weir_key_by as expressions. */
static enum weir_err keys_of(struct call *c, const struct weir_stream *st, const char *call,
			     const struct weir_expr *const **out)
{
	const struct weir_expr **keys = weir_mem_take(c->m, (st->key_count + 1) * sizeof *keys);
	if (!st->keyed)
		return weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: both streams need weir_key_by", call);
	for (uint32_t k = 0; k < st->key_count; k++) {
		int32_t at = find_column(st->node, st->visible, st->key_names[k]);
		if (at < 0)
			return weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: key column '%s' was lost by weir_select", call,
					     st->key_names[k]);
		keys[k] = weir_expr_column(c->m, (uint32_t)at, &st->node->columns[at].type, st->key_names[k]);
	}
	*out = keys;
	return WEIR_OK;
}

/* Two keyed streams by spec, which is complete but for its keys. */
static struct weir_stream *join_streams(struct weir_stream *l, struct weir_stream *r, const char *state_name,
					const char *call, struct weir_join_spec *spec)
{
	struct call c = begin(l->tp);
	enum weir_err err = keys_of(&c, l, call, &spec->keys[0]);
	spec->key_count = l->key_count;
	if (err == WEIR_OK)
		err = keys_of(&c, r, call, &spec->keys[1]);
	if (err == WEIR_OK && l->key_count != r->key_count)
		err = weir_diag_set(&c.dg, WEIR_E_PLAN, "%s: %u key columns and %u", call, l->key_count, r->key_count);
	return err == WEIR_OK ? join(&c, l, r, state_name, spec) : failed(&c, l);
}

struct weir_stream *weir_join_within(struct weir_stream *l, struct weir_stream *r, const char *state_name,
				     enum weir_join_kind kind, int64_t before_ms, int64_t after_ms)
{
	struct call c;
	struct weir_stream *out;
	if (!begin_pair(&c, "weir_join_within", l, r, &out))
		return out;
	if (l->window.kind != WEIR_WINDOW_NONE || r->window.kind != WEIR_WINDOW_NONE) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN,
				    "weir_join_within: a window without an aggregate; weir_join_windows joins those");
		return failed(&c, l);
	}
	struct weir_join_spec spec = {.kind = kind,
				      .within = true,
				      .before_ms = before_ms,
				      .after_ms = after_ms,
				      .time = {-1, -1},
				      .grace_ms = -1};
	return join_streams(l, r, state_name, "weir_join_within", &spec);
}

/* st's rows in its windows: the visible columns and the window's, in front of a hidden time column. */
static struct weir_stream *windowed(struct call *c, struct weir_stream *st)
{
	struct weir_node *in = weir_build_window(st->tp, st->node, st->node->rowtime, &st->window);
	if (is_broken(st))
		return st;
	uint32_t count = st->visible + 3, w = in->column_count - 3;
	const char **names = weir_mem_take(c->m, (count + 1) * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(c->m, (count + 1) * sizeof *exprs);
	bool has_time = in->rowtime < 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i < st->visible ? i : w + i - st->visible;
		names[i] = in->columns[at].name;
		exprs[i] = weir_expr_column(c->m, at, &in->columns[at].type, names[i]);
		has_time |= (int32_t)at == in->rowtime;
	}
	if (!has_time) {
		names[count] = TIME_COLUMN;
		exprs[count] =
			weir_expr_column(c->m, (uint32_t)in->rowtime, &in->columns[in->rowtime].type, TIME_COLUMN);
	}
	struct weir_stream *out = new_stream(c->tp, st);
	out->node = weir_build_project(c->tp, in, names, exprs, count + !has_time);
	out->visible = count;
	out->left = 0;
	return out;
}

struct weir_stream *weir_join_windows(struct weir_stream *l, struct weir_stream *r, const char *state_name,
				      enum weir_join_kind kind)
{
	struct call c;
	struct weir_stream *out;
	if (!begin_pair(&c, "weir_join_windows", l, r, &out))
		return out;
	struct weir_join_spec spec = {
		.kind = kind, .within = true, .time = {-1, -1}, .window = l->window, .grace_ms = -1};
	if (l->window.kind == WEIR_WINDOW_NONE || r->window.kind == WEIR_WINDOW_NONE) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_join_windows: both streams need weir_tumble or weir_hop");
		return failed(&c, l);
	}
	return join_streams(windowed(&c, l), windowed(&c, r), state_name, "weir_join_windows", &spec);
}

/* `on` as expressions over st, one for each column of the key of table tb: the keys of spec. False: broken. */
static bool bind_table_keys(struct call *c, struct weir_stream *st, struct weir_stream *tb, const char *call,
			    const char *on, struct weir_join_spec *spec)
{
	const struct weir_node *in = node_of(st), *table = node_of(tb);
	struct item *items = NULL;
	uint32_t count = 0;
	if (is_broken(st))
		return false;
	struct weir_scope scope = scope_of(c->m, st, in, "a join cannot hold an aggregate");
	enum weir_err err = tokens_of(c, call, on);
	if (err == WEIR_OK)
		err = weir_api_items(c, NULL, 0, &items, &count);
	if (err == WEIR_OK && st->window.kind != WEIR_WINDOW_NONE)
		err = weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: a window without an aggregate", call);
	if (err == WEIR_OK && count != table->table_key_count)
		err = weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: %u expressions, the table's key has %u columns", call,
				    count, table->table_key_count);
	const struct weir_expr **keys = weir_mem_take(c->m, (count + 1) * sizeof *keys);
	const struct weir_expr **table_keys = weir_mem_take(c->m, (count + 1) * sizeof *table_keys);
	for (uint32_t k = 0; err == WEIR_OK && k < count; k++) {
		const struct weir_column *column = &table->columns[table->table_key[k]];
		const struct weir_expr *e = NULL;
		struct weir_type want = column->type;
		table_keys[k] = weir_expr_column(c->m, table->table_key[k], &column->type, column->name);
		err = weir_expr_bind(&scope, &c->ts, items[k].ast, c->m, &e, &c->dg);
		want.not_null = false;
		keys[k] = err == WEIR_OK ? weir_expr_coerce(e, &want, c->m) : NULL;
		if (err == WEIR_OK && keys[k] == NULL)
			err = weir_token_error(&c->ts, &c->ts.token[items[k].ast->at], &c->dg, NULL,
					       "the table's key column '%s' is of another type", column->name);
	}
	spec->key_count = count;
	spec->keys[0] = keys;
	spec->keys[1] = table_keys;
	return err == WEIR_OK;
}

static struct weir_stream *join_table(struct weir_stream *st, struct weir_table *tb, const char *state_name,
				      const char *on, enum weir_join_kind kind, bool as_of)
{
	struct call c;
	struct weir_stream *out;
	struct weir_join_spec spec = {.kind = kind, .time = {-1, -1}, .grace_ms = -1};
	if (!begin_pair(&c, "weir_join_table", st, stream_of(tb), &out))
		return out;
	if (!bind_table_keys(&c, st, tb->st, "weir_join_table", on, &spec))
		return is_broken(st) ? new_stream(st->tp, st) : failed(&c, st);
	spec.versioned = as_of && weir_node_has_versions(tb->st->node);
	return join(&c, st, tb->st, state_name, &spec);
}

struct weir_stream *weir_join_table(struct weir_stream *st, struct weir_table *tb, const char *state_name,
				    const char *on, enum weir_join_kind kind)
{
	return join_table(st, tb, state_name, on, kind, false);
}

struct weir_stream *weir_join_table_as_of(struct weir_stream *st, struct weir_table *tb, const char *state_name,
					  const char *on, enum weir_join_kind kind)
{
	return join_table(st, tb, state_name, on, kind, true);
}

struct weir_table *weir_join_tables(struct weir_table *l, struct weir_table *r, const char *state_name,
				    enum weir_join_kind kind)
{
	struct call c;
	struct weir_stream *out;
	if (!begin_pair(&c, "weir_join_tables", stream_of(l), stream_of(r), &out))
		return table_of(out);
	const struct weir_node *in[2] = {l->st->node, r->st->node};
	struct weir_join_spec spec = {
		.kind = kind, .key_count = in[0]->table_key_count, .time = {-1, -1}, .grace_ms = -1};
	if (in[0]->table_key_count != in[1]->table_key_count) {
		(void)weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_join_tables: keys of %u columns and of %u",
				    in[0]->table_key_count, in[1]->table_key_count);
		return table_of(failed(&c, l->st));
	}
	for (uint32_t s = 0; s < 2; s++) {
		const struct weir_expr **keys = weir_mem_take(c.m, (spec.key_count + 1) * sizeof *keys);
		for (uint32_t k = 0; k < spec.key_count; k++) {
			const struct weir_column *column = &in[s]->columns[in[s]->table_key[k]];
			keys[k] = weir_expr_column(c.m, in[s]->table_key[k], &column->type, column->name);
		}
		spec.keys[s] = keys;
	}
	return table_of(join(&c, l->st, r->st, state_name, &spec));
}

struct weir_table *weir_join_tables_by(struct weir_table *l, struct weir_table *r, const char *state_name,
				       const char *on, enum weir_join_kind kind)
{
	struct weir_join_spec spec = {.kind = kind, .time = {-1, -1}, .grace_ms = -1, .foreign = true};
	struct call c;
	struct weir_stream *out;
	if (!begin_pair(&c, "weir_join_tables_by", stream_of(l), stream_of(r), &out))
		return table_of(out);
	if (!bind_table_keys(&c, l->st, r->st, "weir_join_tables_by", on, &spec))
		return table_of(is_broken(l->st) ? new_stream(c.tp, l->st) : failed(&c, l->st));
	return table_of(join(&c, l->st, r->st, state_name, &spec));
}

/* ---- sinks ---- */

enum weir_err weir_sink(struct weir_stream *st, const char *name, const char *options)
{
	if (st == NULL)
		return WEIR_E_PLAN;
	struct call c = begin(st->tp);
	struct weir_node *in = node_of(st);
	if (is_broken(st))
		return weir_diag_code(weir_topology_error(st->tp));
	struct weir_table_def *def = weir_mem_take(c.m, sizeof *def);
	enum weir_err err = WEIR_OK;
	if (name == NULL || name[0] == '\0')
		err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_sink: a sink needs a name");
	if (err == WEIR_OK && st->window.kind != WEIR_WINDOW_NONE)
		err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_sink: '%s' has a window without an aggregate", name);
	if (err == WEIR_OK)
		err = parse_options(&c, "weir_sink", options, &def->options);
	if (err != WEIR_OK) {
		(void)failed(&c, st);
		return err;
	}
	struct weir_table_column *columns = weir_mem_take(c.m, (st->visible + 1) * sizeof *columns);
	const struct weir_expr **exprs = weir_mem_take(c.m, (st->visible + 1) * sizeof *exprs);
	const char **names = weir_mem_take(c.m, (st->visible + 1) * sizeof *names);
	for (uint32_t i = 0; i < st->visible; i++) {
		names[i] = in->columns[i].name;
		columns[i].name = names[i];
		columns[i].type = in->columns[i].type;
		exprs[i] = weir_expr_column(c.m, i, &in->columns[i].type, names[i]);
	}
	def->name = weir_mem_strdup(c.m, name);
	def->columns = columns;
	def->column_count = st->visible;
	def->rowtime = -1;
	if (in->column_count != st->visible)
		in = weir_build_project(st->tp, in, names, exprs, st->visible);
	(void)weir_build_sink(st->tp, in, def, false);
	return is_broken(st) ? weir_diag_code(weir_topology_error(st->tp)) : WEIR_OK;
}
