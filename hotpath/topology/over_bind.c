/* over_bind.c: calls with OVER to an over node (over_bind.h). All of a list share PARTITION BY and ORDER BY; frames may
 * differ. Cold path, @thread init. */
#include "hotpath/topology/over_bind.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "hotpath/expr/function.h"

static enum weir_err error_at(struct weir_over_bind *ob, uint32_t at, const char *hint, const char *fmt, ...)
	WEIR_PRINTF(4, 5);

static enum weir_err error_at(struct weir_over_bind *ob, uint32_t at, const char *hint, const char *fmt, ...)
{
	char text[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	at = at < ob->ts->count ? at : ob->ts->count - 1;
	return weir_token_error(ob->ts, &ob->ts->token[at], ob->dg, hint, "%s", text);
}

/* inner, which has no place, at token `at`. */
static enum weir_err error_from(struct weir_over_bind *ob, uint32_t at, struct weir_diag *inner)
{
	enum weir_err err = error_at(ob, at, NULL, "%s", weir_diag_text(inner));
	weir_diag_destroy(inner);
	return err;
}

/* ---- calls ---- */

static const struct weir_ast *call_at(const struct weir_over_bind *ob, uint32_t i)
{
	return ((const struct weir_ast *const *)(void *)ob->calls.data)[i];
}

/* The next node of a walk over ast whose stack is given; NULL at the end. */
static const struct weir_ast *next_node(struct weir_buf *stack)
{
	const struct weir_ast *a = NULL;
	if (stack->bytes == 0)
		return NULL;
	stack->bytes -= sizeof a;
	memcpy(&a, stack->data + stack->bytes, sizeof a);
	for (uint32_t i = a->arg_count; i > 0; i--)
		weir_buf_put(stack, &a->args[i - 1], sizeof a);
	if (a->filter != NULL)
		weir_buf_put(stack, &a->filter, sizeof a);
	return a;
}

bool weir_over_bind_has(const struct weir_ast *ast, const struct weir_ast **found)
{
	struct weir_buf stack = {0};
	const struct weir_ast *a;
	weir_buf_put(&stack, &ast, sizeof ast);
	while ((a = next_node(&stack)) != NULL && (a->kind != WEIR_AST_CALL || a->over == NULL))
		;
	weir_buf_fini(&stack);
	if (a != NULL && found != NULL)
		*found = a;
	return a != NULL;
}

void weir_over_bind_add(struct weir_over_bind *ob, const struct weir_ast *ast)
{
	struct weir_buf stack = {0};
	const struct weir_ast *a;
	weir_buf_put(&stack, &ast, sizeof ast);
	while ((a = next_node(&stack)) != NULL) {
		bool known = a->kind != WEIR_AST_CALL || a->over == NULL;
		for (uint32_t i = 0; i < ob->count && !known; i++)
			known = weir_ast_equal(call_at(ob, i), a);
		if (known)
			continue;
		weir_buf_put(&ob->calls, &a, sizeof a);
		ob->count++;
	}
	weir_buf_fini(&stack);
}

static bool same_lists(const struct weir_ast_over *a, const struct weir_ast_over *b)
{
	bool same = a->partition_count == b->partition_count && a->order_count == b->order_count;
	for (uint32_t i = 0; same && i < a->partition_count; i++)
		same = weir_ast_equal(a->partition[i], b->partition[i]);
	for (uint32_t i = 0; same && i < a->order_count; i++)
		same = weir_ast_equal(a->order[i], b->order[i]);
	return same;
}

static enum weir_err check_order(struct weir_over_bind *ob, struct weir_topology *tp, const struct weir_ast_over *ov)
{
	const struct weir_expr *e = NULL;
	if (ov->order_count == 0 && ob->time_implied)
		return WEIR_OK;
	if (ov->order_count != 1)
		return error_at(ob, ov->order_count > 1 ? ov->order[1]->at : ov->at,
				"write ORDER BY event_time, of WATERMARK FOR event_time",
				"OVER orders a stream by its time attribute, and by nothing else");
	if (ov->descending)
		return error_at(ob, ov->order[0]->at,
				"leave DESC out; of ROW_NUMBER, WHERE it = 1 in the query around it: the last row",
				"OVER goes by time, ascending");
	enum weir_err err = weir_expr_bind(&ob->scope, ob->ts, ov->order[0], ob->m, &e, ob->dg);
	if (err != WEIR_OK)
		return err;
	if (e->op == WEIR_EXPR_COLUMN)
		ob->in = weir_build_timed(tp, (struct weir_node *)(uintptr_t)ob->in, e->column);
	if (e->op != WEIR_EXPR_COLUMN || (int32_t)e->column != ob->in->rowtime)
		return error_at(ob, ov->order[0]->at,
				"declare WATERMARK FOR it where its table is created, and hand the column on; of an "
				"outer join, "
				"that of the side whose rows are kept",
				"OVER orders a stream by its time attribute, and by nothing else");
	return WEIR_OK;
}

/* ---- functions ---- */

static int32_t add_arg(struct weir_over_bind *ob, const struct weir_expr *e)
{
	const struct weir_expr *const *args = (const struct weir_expr *const *)(void *)ob->args.data;
	uint32_t count = (uint32_t)(ob->args.bytes / sizeof e);
	for (uint32_t i = 0; i < count; i++)
		if (weir_expr_equal(args[i], e))
			return (int32_t)i;
	weir_buf_put(&ob->args, &e, sizeof e);
	return (int32_t)count;
}

static const char *call_text(struct weir_over_bind *ob, const struct weir_ast *a)
{
	struct weir_buf text = {0};
	weir_ast_print(a, &text);
	const char *out = weir_mem_strndup(ob->m, (const char *)text.data, text.bytes > 200 ? 200 : text.bytes);
	weir_buf_fini(&text);
	return out;
}

/* LAG(x [, n [, default]]). */
static enum weir_err bind_lag(struct weir_over_bind *ob, const struct weir_ast *a, struct weir_over_fn *fn)
{
	enum { OFFSET_MAX = 1000000 };
	const struct weir_expr *x = NULL, *n = NULL, *other = NULL;
	if (a->arg_count < 1 || a->arg_count > 3)
		return error_at(ob, a->at, "write LAG(x), LAG(x, 1) or LAG(x, 1, default)",
				"LAG takes 1 to 3 arguments, not %u", a->arg_count);
	if (a->over->framed)
		return error_at(ob, a->over->at, "leave ROWS or RANGE out", "LAG takes no frame");
	enum weir_err err = weir_expr_bind(&ob->scope, ob->ts, a->args[0], ob->m, &x, ob->dg);
	if (err == WEIR_OK && a->arg_count > 1)
		err = weir_expr_bind(&ob->scope, ob->ts, a->args[1], ob->m, &n, ob->dg);
	if (err == WEIR_OK && a->arg_count > 2)
		err = weir_expr_bind(&ob->scope, ob->ts, a->args[2], ob->m, &other, ob->dg);
	if (err != WEIR_OK)
		return err;
	fn->kind = WEIR_OVER_LAG;
	fn->offset = 1;
	if (n != NULL) {
		if (n->op != WEIR_EXPR_CONST || n->is_null || !weir_kind_is_integer(n->type.kind) || n->value.i64 < 0 ||
		    n->value.i64 > OFFSET_MAX)
			return error_at(ob, a->args[1]->at, NULL, "LAG goes back by a number from 0 to %d", OFFSET_MAX);
		fn->offset = (uint32_t)n->value.i64;
	}
	struct weir_type type = x->type;
	type.not_null = false;
	if (other != NULL && other->type.kind != WEIR_KIND_NULL) {
		struct weir_type xt = x->type, ot = other->type;
		if (!weir_type_common(&xt, &ot, &type))
			return error_at(ob, a->args[2]->at, "CAST one of them",
					"LAG's default is of another type than its value");
		const struct weir_expr *cx = weir_expr_coerce(x, &type, ob->m),
				       *co = weir_expr_coerce(other, &type, ob->m);
		x = cx != NULL ? cx : weir_expr_cast(x, &type, false, ob->m);
		other = co != NULL ? co : weir_expr_cast(other, &type, false, ob->m);
		WEIR_ASSERT(x != NULL && other != NULL); /* a common type can always be reached */
		type.not_null = x->type.not_null && other->type.not_null;
		fn->fallback = add_arg(ob, other);
	}
	fn->arg = add_arg(ob, x);
	fn->agg.arg_type = x->type;
	fn->agg.result_type = type;
	return WEIR_OK;
}

static enum weir_err bind_frame(struct weir_over_bind *ob, const struct weir_ast *a, struct weir_over_fn *fn)
{
	const struct weir_ast_over *ov = a->over;
	fn->rows = ov->rows;
	fn->preceding = ov->preceding;
	if (fn->kind != WEIR_OVER_ROW_NUMBER)
		return WEIR_OK;
	if (ov->framed)
		return error_at(ob, ov->at, "leave ROWS or RANGE out", "ROW_NUMBER takes no frame");
	fn->rows = true;
	return WEIR_OK;
}

static enum weir_err bind_call(struct weir_over_bind *ob, const struct weir_ast *a, struct weir_over_fn *fn)
{
	struct weir_diag *inner = NULL;
	const struct weir_expr *arg = NULL;
	enum weir_err err = WEIR_OK;
	*fn = (struct weir_over_fn){.arg = -1, .fallback = -1, .preceding = -1};
	if (a->filter != NULL)
		return error_at(ob, a->filter->at, "write SUM(CASE WHEN ... THEN x END) OVER ...",
				"not supported yet: FILTER beside OVER");
	if (strcasecmp(a->text, "LAG") == 0) {
		err = bind_lag(ob, a, fn);
		fn->agg.text = call_text(ob, a);
		return err;
	}
	bool number = strcasecmp(a->text, "ROW_NUMBER") == 0;
	if (number && a->arg_count != 0)
		return error_at(ob, a->at, NULL, "ROW_NUMBER takes no arguments");
	if (!number && !weir_name_is_aggregate(a->text))
		return error_at(ob, a->at,
				"there are LAG, ROW_NUMBER, COUNT, SUM, AVG, MIN, MAX, FIRST_VALUE and LAST_VALUE",
				"not supported: %s OVER", a->text);
	if (!number && !a->star_arg && a->arg_count != 1)
		return error_at(ob, a->at, NULL, "%s takes 1 argument, not %u", a->text, a->arg_count);
	if (!number && !a->star_arg)
		err = weir_expr_bind(&ob->scope, ob->ts, a->args[0], ob->m, &arg, ob->dg);
	if (err != WEIR_OK)
		return err;
	err = weir_agg_resolve(&fn->agg, number ? "COUNT" : a->text, a->distinct, arg == NULL ? NULL : &arg->type,
			       &inner);
	if (err != WEIR_OK)
		return error_from(ob, a->at, inner);
	if (!weir_over_has_aggregate(fn->agg.kind))
		return error_at(ob, a->at, NULL, "not supported yet: %s%s OVER", a->text,
				a->distinct ? "(DISTINCT)" : "");
	fn->kind = number ? WEIR_OVER_ROW_NUMBER : WEIR_OVER_AGGREGATE;
	fn->arg = arg != NULL ? add_arg(ob, arg) : -1;
	fn->agg.text = call_text(ob, a);
	return bind_frame(ob, a, fn);
}

/* ---- the node, and the select list over it ---- */

enum weir_err weir_over_bind_intercept(void *ctx, const struct weir_ast *a, const struct weir_expr **out,
				       struct weir_diag **dg)
{
	const struct weir_over_bind *ob = ctx;
	(void)dg;
	if (a->kind != WEIR_AST_CALL || a->over == NULL)
		return WEIR_OK;
	for (uint32_t i = 0; i < ob->count; i++) {
		uint32_t c = ob->in->column_count + i;
		if (call_at(ob, i) == a || weir_ast_equal(call_at(ob, i), a)) {
			*out = weir_expr_column(ob->m, c, &ob->node->columns[c].type, ob->node->columns[c].name);
			break;
		}
	}
	return WEIR_OK;
}

/* Keys, arguments and functions, bound, as a node. */
static enum weir_err build(struct weir_over_bind *ob, struct weir_topology *tp, const char *state_name,
			   struct weir_node **out)
{
	const struct weir_ast_over *ov = call_at(ob, 0)->over;
	const struct weir_expr **keys = weir_mem_take(ob->m, (ov->partition_count + ob->key_count + 1) * sizeof *keys);
	const char **names = weir_mem_take(ob->m, (ob->count + 1) * sizeof *names);
	uint32_t key_count = 0;
	for (uint32_t k = 0; k < ov->partition_count; k++) {
		const struct weir_expr *e = NULL;
		enum weir_err err = weir_expr_bind(&ob->scope, ob->ts, ov->partition[k], ob->m, &e, ob->dg);
		if (err != WEIR_OK)
			return err;
		bool twice = false;
		for (uint32_t i = 0; i < key_count; i++)
			twice = twice || weir_expr_equal(keys[i], e);
		if (!twice)
			keys[key_count++] = e;
	}
	for (uint32_t k = 0; k < ob->key_count && ov->partition_count == 0; k++)
		keys[key_count++] = ob->keys[k];
	for (uint32_t i = 0; i < ob->count; i++)
		names[i] = ob->fns[i].agg.text;
	struct weir_over_spec spec = {.key_count = key_count,
				      .keys = keys,
				      .arg_count = (uint32_t)(ob->args.bytes / sizeof(struct weir_expr *)),
				      .args = (const struct weir_expr *const *)(void *)ob->args.data,
				      .fn_count = ob->count,
				      .fns = ob->fns};
	*out = weir_build_over(tp, (struct weir_node *)(uintptr_t)ob->in, state_name, &spec, names);
	ob->node = *out;
	const struct weir_diag *broken = weir_topology_error(tp);
	return broken == NULL ? WEIR_OK : error_at(ob, ov->at, NULL, "%s", weir_diag_text(broken));
}

enum weir_err weir_over_bind_build(struct weir_over_bind *ob, struct weir_topology *tp, const char *state_name,
				   struct weir_node **out)
{
	enum weir_err err = WEIR_OK;
	const char *aggregate_error = ob->scope.aggregate_error;
	WEIR_ASSERT(ob->count > 0);
	if (ob->in->is_table)
		return error_at(ob, call_at(ob, 0)->at, "read the stream that the table is made from",
				"functions OVER are for a stream, not for a table");
	ob->fns = weir_mem_take(ob->m, (ob->count + 1) * sizeof *ob->fns);
	ob->scope.aggregate_error = "an aggregate cannot stand inside a function OVER";
	for (uint32_t i = 0; i < ob->count && err == WEIR_OK; i++) {
		const struct weir_ast *a = call_at(ob, i);
		if (a->over->name != NULL)
			err = error_at(ob, a->over->at + 1, "add WINDOW name AS (PARTITION BY ... ORDER BY ...)",
				       "unknown window %s", a->over->name);
		if (err == WEIR_OK)
			err = check_order(ob, tp, a->over);
		if (err == WEIR_OK && !same_lists(call_at(ob, 0)->over, a->over))
			err = error_at(ob, a->over->at, "compute one of them in a sub-query",
				       "functions OVER of one SELECT share PARTITION BY and ORDER BY");
		if (err == WEIR_OK)
			err = bind_call(ob, a, &ob->fns[i]);
	}
	if (err == WEIR_OK)
		err = build(ob, tp, state_name, out);
	ob->scope.aggregate_error = aggregate_error;
	return err;
}

void weir_over_bind_fini(struct weir_over_bind *ob)
{
	weir_buf_fini(&ob->calls);
	weir_buf_fini(&ob->args);
}
