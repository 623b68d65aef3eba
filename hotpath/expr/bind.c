/* bind.c: names of an untyped tree to columns and functions, with types. Cold path, @thread init.
 *
 * The tree is walked with a stack of its own, arguments first, so that a chain of 100,000 operators needs no more C
 * stack than one. Bound arguments wait on a second stack until their node takes them. */
#include <stdio.h>

#include "hotpath/expr/function.h"
#include "hotpath/expr/tree.h"

struct frame {
	const struct weir_ast *ast;
	uint32_t next; /* argument to bind next */
};

struct binder {
	const struct weir_scope *scope;
	const struct weir_tokens *ts;
	struct weir_mem *m;
	struct weir_diag **dg;
	struct weir_buf frames;
	struct weir_buf values; /* const struct weir_expr * */
};

static enum weir_err fail(struct binder *b, const struct weir_ast *a, const struct weir_expr_problem *pb)
{
	return weir_token_error(b->ts, &b->ts->token[a->at], b->dg, pb->hint[0] == 0 ? NULL : pb->hint, "%s", pb->text);
}

static void push_value(struct binder *b, const struct weir_expr *e)
{
	weir_buf_put(&b->values, &e, sizeof e);
}

static void push_frame(struct binder *b, const struct weir_ast *a)
{
	struct frame f = {a, 0};
	weir_buf_put(&b->frames, &f, sizeof f);
}

/* ---- columns ---- */

/* Number of columns that name (and qualifier, may be NULL) can mean; *out is the first. */
static uint32_t find_column(const struct weir_scope *sc, const char *qualifier, const char *name, uint32_t *out)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < sc->count; i++) {
		const struct weir_scope_column *c = &sc->columns[i];
		if (strcmp(c->name, name) != 0 || (qualifier == NULL && c->hidden))
			continue;
		if (qualifier != NULL && (c->qualifier == NULL || strcmp(c->qualifier, qualifier) != 0))
			continue;
		if (found++ == 0)
			*out = i;
	}
	return found;
}

static bool same_letters(const char *a, const char *b)
{
	for (;; a++, b++) {
		char x = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a;
		char y = *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b;
		if (x != y)
			return false;
		if (x == 0)
			return true;
	}
}

static bool reads_clock(const char *name)
{
	static const char *const names[] = {"CURRENT_TIMESTAMP", "CURRENT_DATE",          "CURRENT_TIME", "LOCALTIME",
					    "LOCALTIMESTAMP",    "CURRENT_ROW_TIMESTAMP", "NOW",          "PROCTIME"};
	for (size_t i = 0; i < WEIR_COUNT_OF(names); i++)
		if (same_letters(name, names[i]))
			return true;
	return false;
}

static void clock_problem(const char *name, struct weir_expr_problem *pb)
{
	snprintf(pb->text, sizeof pb->text, "not supported yet: %.60s", name);
	snprintf(pb->hint, sizeof pb->hint,
		 "results never depend on the wall clock: use the record's time (METADATA FROM 'timestamp')");
}

static bool is_of(const struct weir_scope_column *c, const char *qualifier)
{
	return c->qualifier != NULL && strcmp(c->qualifier, qualifier) == 0;
}

/* The tables that there are, in place of one that there is not. */
static void hint_of_tables(const struct weir_scope *sc, char *hint, size_t bytes)
{
	size_t used = 0;
	for (uint32_t i = 0; i < sc->count && used + 100 < bytes; i++) {
		const char *q = sc->columns[i].qualifier;
		bool told = q == NULL || sc->columns[i].hidden;
		for (uint32_t k = 0; k < i && !told; k++)
			told = is_of(&sc->columns[k], q);
		if (!told)
			used += (size_t)snprintf(hint + used, bytes - used, "%s%.60s",
						 used == 0 ? "columns here are those of " : ", ", q);
	}
}

static void unknown_column(const struct weir_scope *sc, const char *qualifier, const char *name,
			   struct weir_expr_problem *pb)
{
	const char **names = weir_xcalloc(sc->count + 1, sizeof *names);
	const char *other = NULL;
	bool known_qualifier = qualifier == NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; qualifier != NULL && i < sc->count; i++)
		known_qualifier = known_qualifier || is_of(&sc->columns[i], qualifier);
	for (uint32_t i = 0; i < sc->count; i++) {
		if (qualifier == NULL || is_of(&sc->columns[i], qualifier))
			names[count++] = sc->columns[i].name;
		else if (strcmp(sc->columns[i].name, name) == 0 && sc->columns[i].qualifier != NULL)
			other = sc->columns[i].qualifier;
	}
	const char *near = NULL;
	for (uint32_t i = 0; i < count && near == NULL; i++)
		near = same_letters(names[i], name) ? names[i] : NULL;
	if (near != NULL)
		snprintf(pb->hint, sizeof pb->hint, "names are case-sensitive: did you mean %.100s?", near);
	else if (other != NULL)
		snprintf(pb->hint, sizeof pb->hint, "did you mean %.60s.%.60s?", other, name);
	else if ((near = weir_nearest_name(name, strlen(name), names, count)) != NULL)
		snprintf(pb->hint, sizeof pb->hint, "did you mean %.100s?", near);
	if (!known_qualifier) {
		snprintf(pb->text, sizeof pb->text, "unknown table or column %.100s in %.100s.%.100s", qualifier,
			 qualifier, name);
		if (other == NULL) {
			pb->hint[0] = 0;
			hint_of_tables(sc, pb->hint, sizeof pb->hint);
		}
	} else {
		snprintf(pb->text, sizeof pb->text, "unknown column %.100s%s%.100s", qualifier == NULL ? "" : qualifier,
			 qualifier == NULL ? "" : ".", name);
	}
	weir_free(names);
}

static const struct weir_expr *column_node(struct binder *b, uint32_t i)
{
	return weir_expr_column(b->m, i, &b->scope->columns[i].type, b->scope->columns[i].name);
}

static const struct weir_expr *field_of(struct binder *b, const struct weir_expr *row, const char *name,
					struct weir_expr_problem *pb)
{
	char x[64];
	if (row->type.kind != WEIR_KIND_ROW) {
		struct weir_type t = row->type;
		t.not_null = false;
		snprintf(pb->text, sizeof pb->text, "%.60s is a %s, it has no field %.60s", row->text,
			 weir_type_text(&t, x, sizeof x), name);
		return NULL;
	}
	uint32_t i = 0;
	while (i < row->type.field_count && strcmp(row->type.field_names[i], name) != 0)
		i++;
	if (i == row->type.field_count) {
		const char *near = weir_nearest_name(name, strlen(name), row->type.field_names, row->type.field_count);
		snprintf(pb->text, sizeof pb->text, "%.60s has no field %.60s", row->text, name);
		if (near != NULL)
			snprintf(pb->hint, sizeof pb->hint, "did you mean %.60s?", near);
		return NULL;
	}
	const struct weir_expr *args[2] = {row, weir_expr_make_string(b->m, name, strlen(name))};
	return weir_expr_make_call(b->m, "FIELD", args, 2, pb);
}

static const struct weir_expr *bind_column(struct binder *b, const struct weir_ast *a, struct weir_expr_problem *pb)
{
	uint32_t i = 0;
	uint32_t found = find_column(b->scope, a->qualifier, a->text, &i);
	if (found == 1)
		return column_node(b, i);
	if (found > 1) {
		snprintf(pb->text, sizeof pb->text, "column %.60s is ambiguous", a->text);
		const char *q = b->scope->columns[i].qualifier;
		uint32_t of_one = q == NULL ? found : find_column(b->scope, q, a->text, &i);
		if (of_one == 1)
			snprintf(pb->hint, sizeof pb->hint, "write %.60s.%.60s", q, a->text);
		else
			snprintf(pb->hint, sizeof pb->hint, "two columns%s%.60s are called so: rename one with AS",
				 q != NULL ? " of " : "", q != NULL ? q : "");
		return NULL;
	}
	if (a->qualifier != NULL && find_column(b->scope, NULL, a->qualifier, &i) == 1)
		return field_of(b, column_node(b, i), a->text, pb);
	if (a->qualifier == NULL && reads_clock(a->text))
		clock_problem(a->text, pb);
	else
		unknown_column(b->scope, a->qualifier, a->text, pb);
	if (pb->hint[0] == 0 && b->ts->text[b->ts->token[a->at].at] == '"')
		snprintf(pb->hint, sizeof pb->hint, "double quotes are for names, single ones for strings: '%.60s'",
			 a->text);
	return NULL;
}

/* ---- nodes with arguments ---- */

static const struct weir_expr *negate(struct binder *b, const struct weir_expr *e, bool negated,
				      struct weir_expr_problem *pb)
{
	return e == NULL || !negated ? e : weir_expr_make_call(b->m, "NOT", &e, 1, pb);
}

static const struct weir_expr *bind_between(struct binder *b, const struct weir_ast *a,
					    const struct weir_expr *const *args, struct weir_expr_problem *pb)
{
	const struct weir_expr *low[2] = {args[0], args[1]}, *high[2] = {args[0], args[2]};
	const struct weir_expr *both[2];
	both[0] = weir_expr_make_call(b->m, ">=", low, 2, pb);
	both[1] = both[0] == NULL ? NULL : weir_expr_make_call(b->m, "<=", high, 2, pb);
	if (both[1] == NULL)
		return NULL;
	return negate(b, weir_expr_make_call(b->m, "AND", both, 2, pb), a->negated, pb);
}

static const struct weir_expr *bind_is(struct binder *b, const struct weir_ast *a, const struct weir_expr *const *args,
				       struct weir_expr_problem *pb)
{
	char name[40];
	snprintf(name, sizeof name, "IS %s%s", a->negated ? "NOT " : "", a->text);
	if (strcmp(a->text, "NULL") != 0 && a->arg_count == 1) {
		struct weir_type t = {.kind = WEIR_KIND_BOOLEAN};
		const struct weir_expr *e = weir_expr_coerce(args[0], &t, b->m);
		if (e != NULL)
			return weir_expr_make_call(b->m, name, &e, 1, pb);
	}
	return weir_expr_make_call(b->m, name, args, a->arg_count, pb);
}

static const struct weir_expr *bind_cast(struct binder *b, const struct weir_ast *a, const struct weir_expr *arg,
					 struct weir_expr_problem *pb)
{
	char x[64], y[64];
	struct weir_type from = arg->type, to = a->type;
	const struct weir_expr *e = weir_expr_cast(arg, &to, a->kind == WEIR_AST_TRY_CAST, b->m);
	from.not_null = to.not_null = false;
	if (e == NULL) {
		snprintf(pb->text, sizeof pb->text, "there is no CAST from %s to %s",
			 weir_type_text(&from, x, sizeof x), weir_type_text(&to, y, sizeof y));
		if (weir_kind_is_numeric(from.kind) && weir_kind_is_timestamp(to.kind))
			snprintf(pb->hint, sizeof pb->hint, "use TO_TIMESTAMP_LTZ(n, 3) for milliseconds");
	}
	return e;
}

static const struct weir_expr *bind_call(struct binder *b, const struct weir_ast *a,
					 const struct weir_expr *const *args, struct weir_expr_problem *pb)
{
	if (a->over != NULL) {
		snprintf(pb->text, sizeof pb->text, "a function OVER cannot stand here");
		snprintf(pb->hint, sizeof pb->hint, "compute it in the select list of a sub-query");
		return NULL;
	}
	if (weir_name_is_aggregate(a->text)) {
		snprintf(pb->text, sizeof pb->text, "%s",
			 b->scope->aggregate_error != NULL ? b->scope->aggregate_error
							   : "an aggregate cannot stand here");
		return NULL;
	}
	if (reads_clock(a->text)) {
		clock_problem(a->text, pb);
		return NULL;
	}
	if (a->star_arg || a->distinct || a->filter != NULL) {
		snprintf(pb->text, sizeof pb->text, "%s is not an aggregate: it takes no %s", a->text,
			 a->star_arg   ? "*"
			 : a->distinct ? "DISTINCT"
				       : "FILTER");
		return NULL;
	}
	return weir_expr_make_call(b->m, a->text, args, a->arg_count, pb);
}

static const struct weir_expr *bind_case(struct binder *b, const struct weir_ast *a,
					 const struct weir_expr *const *args, struct weir_expr_problem *pb)
{
	struct weir_type t = {.kind = WEIR_KIND_NULL};
	if (a->has_else)
		return weir_expr_make_case(b->m, args, a->arg_count, pb);
	const struct weir_expr **all = weir_mem_take(b->m, (a->arg_count + 1) * sizeof *all);
	memcpy(all, args, a->arg_count * sizeof *all);
	all[a->arg_count] = weir_expr_make_null(b->m, &t);
	return weir_expr_make_case(b->m, all, a->arg_count + 1, pb);
}

static const struct weir_expr *bind_node(struct binder *b, const struct weir_ast *a,
					 const struct weir_expr *const *args, struct weir_expr_problem *pb)
{
	switch (a->kind) {
	case WEIR_AST_COLUMN:
		return bind_column(b, a, pb);
	case WEIR_AST_QUERY:
		snprintf(pb->text, sizeof pb->text, "a sub-select cannot stand here");
		snprintf(pb->hint, sizeof pb->hint,
			 "write it into WHERE, as x IN (SELECT ..) or EXISTS (SELECT ..), with AND beside it");
		return NULL;
	case WEIR_AST_STAR:
		snprintf(pb->text, sizeof pb->text, "* cannot stand here");
		return NULL;
	case WEIR_AST_CALL:
		return bind_call(b, a, args, pb);
	case WEIR_AST_CAST:
	case WEIR_AST_TRY_CAST:
		return bind_cast(b, a, args[0], pb);
	case WEIR_AST_CASE:
		return bind_case(b, a, args, pb);
	case WEIR_AST_IN:
		return negate(b, weir_expr_make_call(b->m, "IN", args, a->arg_count, pb), a->negated, pb);
	case WEIR_AST_BETWEEN:
		return bind_between(b, a, args, pb);
	case WEIR_AST_LIKE:
		return negate(b, weir_expr_make_call(b->m, "LIKE", args, a->arg_count, pb), a->negated, pb);
	case WEIR_AST_IS:
		return bind_is(b, a, args, pb);
	case WEIR_AST_INDEX:
		return weir_expr_make_call(b->m, "ITEM", args, 2, pb);
	case WEIR_AST_FIELD:
		return field_of(b, args[0], a->text, pb);
	default:
		return weir_expr_literal(a, b->m, pb);
	}
}

/* One step of the walk: pushes an argument, or makes the node. */
static enum weir_err bind_step(struct binder *b)
{
	struct frame *f = (struct frame *)(b->frames.data + b->frames.bytes) - 1;
	const struct weir_ast *a = f->ast;
	if (f->next == 0 && b->scope->intercept != NULL) {
		const struct weir_expr *e = NULL;
		enum weir_err err = b->scope->intercept(b->scope->ctx, a, &e, b->dg);
		if (err != WEIR_OK)
			return err;
		if (e != NULL) {
			b->frames.bytes -= sizeof *f;
			push_value(b, e);
			return WEIR_OK;
		}
	}
	/* An aggregate in the wrong place is reported before its arguments are looked at. */
	if (f->next < a->arg_count &&
	    !(a->kind == WEIR_AST_CALL && (a->over != NULL || weir_name_is_aggregate(a->text)))) {
		push_frame(b, a->args[f->next++]); /* f is stale now */
		return WEIR_OK;
	}
	struct weir_expr_problem pb = {"", ""};
	size_t bytes = f->next * sizeof(struct weir_expr *);
	const struct weir_expr **args = weir_mem_take(b->m, bytes + sizeof *args);
	if (bytes > 0)
		memcpy(args, b->values.data + b->values.bytes - bytes, bytes);
	const struct weir_expr *e = bind_node(b, a, args, &pb);
	if (e == NULL)
		return fail(b, a, &pb);
	b->values.bytes -= bytes;
	b->frames.bytes -= sizeof *f;
	push_value(b, e);
	return WEIR_OK;
}

enum weir_err weir_expr_bind(const struct weir_scope *scope, const struct weir_tokens *ts, const struct weir_ast *ast,
			     struct weir_mem *m, const struct weir_expr **out, struct weir_diag **dg)
{
	struct binder b = {.scope = scope, .ts = ts, .m = m, .dg = dg};
	enum weir_err err = WEIR_OK;
	push_frame(&b, ast);
	while (err == WEIR_OK && b.frames.bytes > 0)
		err = bind_step(&b);
	if (err == WEIR_OK)
		memcpy(out, b.values.data, sizeof *out);
	weir_buf_fini(&b.frames);
	weir_buf_fini(&b.values);
	return err;
}
