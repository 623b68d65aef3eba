/* expr.c: makes the nodes of bound expressions: columns, constants, calls with their type rules, CASE, AND. Cold path,
 * @thread init. */
#include "hotpath/expr/expr.h"

#include <stdio.h>

#include "hotpath/expr/function.h"
#include "hotpath/expr/tree.h"

#define CALL_ARGS_MAX  65535
#define SHORT_TEXT_MAX 120

/* ---- texts ---- */

static void put_short(char *buf, size_t *at, const char *s)
{
	size_t n = strlen(s);
	if (*at >= SHORT_TEXT_MAX)
		return;
	if (*at + n > SHORT_TEXT_MAX) {
		n = SHORT_TEXT_MAX - *at;
		while (n > 0 && ((uint8_t)s[n] & 0xc0) == 0x80)
			n--; /* not inside a character */
		memcpy(buf + *at, s, n);
		memcpy(buf + *at + n, "...", 4);
		*at = SHORT_TEXT_MAX;
		return;
	}
	memcpy(buf + *at, s, n + 1);
	*at += n;
}

static bool is_word(const char *name)
{
	return name[0] >= 'A' && name[0] <= 'Z';
}

const char *weir_expr_short_text(const struct weir_expr *e, struct weir_mem *m)
{
	char buf[SHORT_TEXT_MAX + 8] = "", type[64];
	const char *name = e->op == WEIR_EXPR_CALL ? e->fn->name : "";
	size_t at = 0;
	bool infix = e->op == WEIR_EXPR_AND || e->op == WEIR_EXPR_OR ||
		     (e->op == WEIR_EXPR_CALL && e->arg_count == 2 && (!is_word(name) || strncmp(name, "IS ", 3) == 0));
	bool postfix = e->op == WEIR_EXPR_CALL && e->arg_count == 1 && strncmp(name, "IS ", 3) == 0;
	const char *open = e->op == WEIR_EXPR_CALL       ? name
			   : e->op == WEIR_EXPR_CAST     ? "CAST"
			   : e->op == WEIR_EXPR_TRY_CAST ? "TRY_CAST"
			   : e->op == WEIR_EXPR_CASE     ? "CASE"
							 : "COALESCE";
	if (e->op == WEIR_EXPR_AND)
		name = "AND";
	if (e->op == WEIR_EXPR_OR)
		name = "OR";
	if (!infix && !postfix)
		put_short(buf, &at, strcmp(open, "NEG") == 0 ? "-" : open);
	put_short(buf, &at, "(");
	for (uint32_t i = 0; i < e->arg_count && at < SHORT_TEXT_MAX; i++) {
		if (i > 0 && infix) {
			put_short(buf, &at, " ");
			put_short(buf, &at, name);
			put_short(buf, &at, " ");
		} else if (i > 0) {
			put_short(buf, &at, ", ");
		}
		put_short(buf, &at, e->args[i]->text == NULL ? "?" : e->args[i]->text);
	}
	if (postfix) {
		put_short(buf, &at, " ");
		put_short(buf, &at, name);
	}
	if (e->op == WEIR_EXPR_CAST || e->op == WEIR_EXPR_TRY_CAST) {
		put_short(buf, &at, " AS ");
		struct weir_type t = e->type;
		t.not_null = false;
		put_short(buf, &at, weir_type_text(&t, type, sizeof type));
	}
	put_short(buf, &at, ")");
	return weir_mem_strdup(m, buf);
}

/* ---- leaves ---- */

const struct weir_expr *weir_expr_column(struct weir_mem *m, uint32_t column, const struct weir_type *t,
					 const char *name)
{
	struct weir_expr *e = weir_mem_take(m, sizeof *e);
	e->op = WEIR_EXPR_COLUMN;
	e->type = *t;
	e->column = column;
	e->text = name != NULL ? weir_mem_strdup(m, name) : weir_mem_printf(m, "$%u", column);
	return e;
}

const struct weir_expr *weir_expr_make_const(struct weir_mem *m, const struct weir_type *t, struct weir_value v)
{
	struct weir_expr *e = weir_mem_take(m, sizeof *e);
	struct weir_buf text = {0};
	e->op = WEIR_EXPR_CONST;
	e->type = *t;
	e->type.not_null = true;
	e->value = v;
	weir_expr_print(e, NULL, &text);
	if (text.bytes > SHORT_TEXT_MAX) {
		text.bytes = SHORT_TEXT_MAX - 4;
		while (text.bytes > 0 && (text.data[text.bytes] & 0xc0) == 0x80)
			text.bytes--;
		weir_buf_puts(&text, "...");
	}
	e->text = weir_mem_strndup(m, (const char *)text.data, text.bytes);
	weir_buf_fini(&text);
	return e;
}

const struct weir_expr *weir_expr_make_null(struct weir_mem *m, const struct weir_type *t)
{
	struct weir_expr *e = weir_mem_take(m, sizeof *e);
	e->op = WEIR_EXPR_CONST;
	e->type = *t;
	e->type.not_null = false;
	e->is_null = true;
	e->text = "NULL";
	return e;
}

const struct weir_expr *weir_expr_make_string(struct weir_mem *m, const char *s, size_t bytes)
{
	/* Constants may be read a little beyond their end, as payloads are. */
	uint8_t *data = weir_mem_take(m, bytes + WEIR_PAYLOAD_PAD);
	memcpy(data, s, bytes);
	size_t characters = 0;
	for (size_t i = 0; i < bytes; i++)
		characters += ((uint8_t)s[i] & 0xc0) != 0x80;
	struct weir_type t = {.kind = WEIR_KIND_CHAR, .not_null = true, .length = (int32_t)characters};
	return weir_expr_make_const(m, &t, (struct weir_value){.str = {data, (uint32_t)bytes, 0}});
}

const struct weir_expr *weir_expr_bool(struct weir_mem *m, bool v)
{
	struct weir_type t = {.kind = WEIR_KIND_BOOLEAN, .not_null = true};
	return weir_expr_make_const(m, &t, (struct weir_value){.i64 = v});
}

const struct weir_expr *weir_expr_bigint(struct weir_mem *m, int64_t v)
{
	struct weir_type t = {.kind = WEIR_KIND_BIGINT, .not_null = true};
	return weir_expr_make_const(m, &t, (struct weir_value){.i64 = v});
}

/* ---- AND, OR, CASE, COALESCE ---- */

static struct weir_expr *new_node(struct weir_mem *m, enum weir_expr_op op, const struct weir_type *t,
				  const struct weir_expr *const *args, uint32_t count)
{
	struct weir_expr *e = weir_mem_take(m, sizeof *e);
	e->op = op;
	e->type = *t;
	e->arg_count = count;
	e->args = weir_mem_copy(m, args, count * sizeof *args);
	e->text = weir_expr_short_text(e, m);
	return e;
}

static bool is_bool_const(const struct weir_expr *e, bool v)
{
	return e->op == WEIR_EXPR_CONST && !e->is_null && e->type.kind == WEIR_KIND_BOOLEAN && (e->value.i64 != 0) == v;
}

/* AND or OR of BOOLEAN args: nested ones of the same kind are spread out, neutral constants left out; one that decides
 * stands alone. */
static const struct weir_expr *make_logic(struct weir_mem *m, enum weir_expr_op op, const struct weir_expr *const *args,
					  uint32_t count)
{
	struct weir_buf keep = {0};
	struct weir_type t = {.kind = WEIR_KIND_BOOLEAN, .not_null = true};
	const struct weir_expr *decided = NULL;
	for (uint32_t i = 0; i < count && decided == NULL; i++) {
		if (is_bool_const(args[i], op == WEIR_EXPR_AND))
			continue;
		if (is_bool_const(args[i], op == WEIR_EXPR_OR))
			decided = args[i];
		if (args[i]->op == op)
			weir_buf_put(&keep, args[i]->args, args[i]->arg_count * sizeof *args);
		else
			weir_buf_put(&keep, &args[i], sizeof *args);
		t.not_null = t.not_null && args[i]->type.not_null;
	}
	uint32_t kept = (uint32_t)(keep.bytes / sizeof *args);
	const struct weir_expr *e = decided;
	if (e == NULL && kept == 0)
		e = weir_expr_bool(m, op == WEIR_EXPR_AND);
	else if (e == NULL && kept == 1)
		memcpy(&e, keep.data, sizeof e);
	else if (e == NULL)
		e = weir_expr_fold(new_node(m, op, &t, (const struct weir_expr *const *)keep.data, kept), m);
	weir_buf_fini(&keep);
	return e;
}

const struct weir_expr *weir_expr_and(struct weir_mem *m, const struct weir_expr *a, const struct weir_expr *b)
{
	const struct weir_expr *args[2] = {a, b};
	if (a == NULL || b == NULL)
		return a == NULL ? b : a;
	return make_logic(m, WEIR_EXPR_AND, args, 2);
}

static const char *type_name(const struct weir_type *t, char *buf, size_t bytes)
{
	struct weir_type plain = *t;
	plain.not_null = false;
	return weir_type_text(&plain, buf, bytes);
}

/* args converted to BOOLEAN (a bare NULL is one); false with *pb filled. */
static bool to_bool(struct weir_mem *m, const struct weir_expr **args, uint32_t count, uint32_t step, const char *what,
		    struct weir_expr_problem *pb)
{
	char x[64];
	struct weir_type t = {.kind = WEIR_KIND_BOOLEAN};
	for (uint32_t i = 0; i < count; i += step) {
		const struct weir_expr *e = weir_expr_coerce(args[i], &t, m);
		if (e == NULL) {
			snprintf(pb->text, sizeof pb->text, "%s takes BOOLEAN, not %s", what,
				 type_name(&args[i]->type, x, sizeof x));
			return false;
		}
		args[i] = e;
	}
	return true;
}

/* args[from], args[from + step], ... converted to their common type. */
static bool to_common(struct weir_mem *m, const struct weir_expr **args, uint32_t count, uint32_t from, uint32_t step,
		      const char *what, struct weir_type *out, struct weir_expr_problem *pb)
{
	char x[64], y[64];
	struct weir_type t = args[from]->type;
	for (uint32_t i = from; i < count; i += step) {
		struct weir_type was = t;
		if (!weir_type_common(&was, &args[i]->type, &t)) {
			snprintf(pb->text, sizeof pb->text, "%s has values of %s and %s", what,
				 type_name(&was, x, sizeof x), type_name(&args[i]->type, y, sizeof y));
			snprintf(pb->hint, sizeof pb->hint, "CAST them to one type");
			return false;
		}
	}
	for (uint32_t i = from; i < count; i += step) {
		const struct weir_expr *e = weir_expr_coerce(args[i], &t, m);
		if (e == NULL)
			e = weir_expr_cast(args[i], &t, false, m);
		if (e == NULL) {
			snprintf(pb->text, sizeof pb->text, "%s cannot convert %s to %s", what,
				 type_name(&args[i]->type, x, sizeof x), type_name(&t, y, sizeof y));
			return false;
		}
		args[i] = e;
	}
	*out = t;
	return true;
}

const struct weir_expr *weir_expr_make_case(struct weir_mem *m, const struct weir_expr *const *in, uint32_t count,
					    struct weir_expr_problem *pb)
{
	struct weir_type t;
	const struct weir_expr **args = weir_mem_copy(m, in, count * sizeof *in);
	WEIR_ASSERT(count % 2 == 1);
	/* thens stand at odd places, the else at the last, which is even: it takes part by standing in at the end. */
	const struct weir_expr **values = weir_mem_take(m, (count / 2 + 1) * sizeof *values);
	for (uint32_t i = 0; i < count / 2; i++)
		values[i] = args[2 * i + 1];
	values[count / 2] = args[count - 1];
	if (!to_bool(m, args, count - 1, 2, "WHEN", pb) || !to_common(m, values, count / 2 + 1, 0, 1, "CASE", &t, pb))
		return NULL;
	t.not_null = true;
	for (uint32_t i = 0; i <= count / 2; i++) {
		args[i < count / 2 ? 2 * i + 1 : count - 1] = values[i];
		t.not_null = t.not_null && values[i]->type.not_null;
	}
	return weir_expr_fold(new_node(m, WEIR_EXPR_CASE, &t, args, count), m);
}

static const struct weir_expr *make_coalesce(struct weir_mem *m, const struct weir_expr **args, uint32_t count,
					     struct weir_expr_problem *pb)
{
	struct weir_type t;
	if (!to_common(m, args, count, 0, 1, "COALESCE", &t, pb))
		return NULL;
	if (count == 1)
		return args[0];
	t.not_null = false;
	for (uint32_t i = 0; i < count; i++)
		t.not_null = t.not_null || args[i]->type.not_null;
	return weir_expr_fold(new_node(m, WEIR_EXPR_COALESCE, &t, args, count), m);
}

/* ---- calls ---- */

static bool is_comparison(const char *name)
{
	static const char *const names[] = {
		"=", "<>", "<", "<=", ">", ">=", "IN", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"};
	for (size_t i = 0; i < WEIR_COUNT_OF(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static const char *shown_name(const char *name)
{
	return strcmp(name, "NEG") == 0 ? "-" : strcmp(name, "ITEM") == 0 ? "[]" : name;
}

static void no_such_call(const char *name, const struct weir_function *fn, uint32_t entries,
			 const struct weir_expr *const *args, uint32_t count, struct weir_expr_problem *pb)
{
	char types[200] = "", x[64];
	size_t at = 0;
	uint32_t low = UINT32_MAX, high = 0;
	for (uint32_t i = 0; i < entries; i++) {
		low = fn[i].args_min < low ? fn[i].args_min : low;
		high = fn[i].args_max > high ? fn[i].args_max : high;
	}
	if (is_word(name) && fn->doc != NULL)
		snprintf(pb->hint, sizeof pb->hint, "%s", fn->doc);
	if (count < low || (count > high && high != 255)) {
		if (high == 255)
			snprintf(pb->text, sizeof pb->text, "%s takes at least %u argument%s, not %u", name, low,
				 low == 1 ? "" : "s", count);
		else if (low == high)
			snprintf(pb->text, sizeof pb->text, "%s takes %u argument%s, not %u", name, low,
				 low == 1 ? "" : "s", count);
		else
			snprintf(pb->text, sizeof pb->text, "%s takes %u to %u arguments, not %u", name, low, high,
				 count);
		return;
	}
	for (uint32_t i = 0; i < count && at < sizeof types - 1; i++)
		at += (size_t)snprintf(types + at, sizeof types - at, "%s%s", i == 0 ? "" : ", ",
				       type_name(&args[i]->type, x, sizeof x));
	snprintf(pb->text, sizeof pb->text, "%s does not take (%s)", shown_name(name), types);
}

/* Converts args to want; false when one cannot be. */
static bool convert_args(struct weir_mem *m, const struct weir_expr **args, uint32_t count,
			 const struct weir_type *want)
{
	for (uint32_t i = 0; i < count; i++) {
		struct weir_type t = want[i];
		if (t.kind == WEIR_KIND_NULL)
			continue;
		/* Kernels see texts as bytes: no conversion between their lengths. */
		if (weir_kind_is_string(args[i]->type.kind) && weir_kind_is_string(t.kind))
			continue;
		const struct weir_expr *e = weir_expr_coerce(args[i], &t, m);
		if (e == NULL)
			e = weir_expr_cast(args[i], &t, false, m);
		if (e == NULL)
			return false;
		args[i] = e;
	}
	return true;
}

static const struct weir_expr *call_entry(struct weir_mem *m, const struct weir_function *fn,
					  const struct weir_expr **args, uint32_t count, struct weir_type *result,
					  struct weir_expr_problem *pb)
{
	struct weir_diag *dg = NULL;
	const void *data = NULL;
	bool not_null = true;
	if (fn->prepare != NULL && fn->prepare(args, count, m, &data, &dg) != WEIR_OK) {
		snprintf(pb->text, sizeof pb->text, "%s", weir_diag_text(dg));
		weir_diag_destroy(dg);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		not_null = not_null && args[i]->type.not_null;
	if (fn->null_in_null_out && !not_null)
		result->not_null = false;
	struct weir_expr *e = weir_mem_take(m, sizeof *e);
	e->op = WEIR_EXPR_CALL;
	e->type = *result;
	e->fn = fn;
	e->fn_data = data;
	e->arg_count = count;
	e->args = weir_mem_copy(m, args, count * sizeof *args);
	e->text = weir_expr_short_text(e, m);
	return weir_expr_fold(e, m);
}

/* Functions by which other dialects group rows; TUMBLE_START and its like are columns of the window. */
static bool is_window(const char *name)
{
	static const char *const windows[] = {"TUMBLE", "HOP", "SESSION", "CUMULATE"};
	for (size_t i = 0; i < WEIR_COUNT_OF(windows); i++)
		if (strcmp(name, windows[i]) == 0)
			return true;
	return false;
}

static const struct weir_expr *find_call(struct weir_mem *m, const char *name, const struct weir_expr **args,
					 uint32_t count, struct weir_expr_problem *pb)
{
	const struct weir_function *fn;
	uint32_t entries;
	if (!weir_function_find(name, &fn, &entries)) {
		const char *near = weir_function_nearest(name);
		snprintf(pb->text, sizeof pb->text, "unknown function %.100s", name);
		if (is_window(name))
			snprintf(pb->hint, sizeof pb->hint,
				 "a window is a table of its rows: FROM TABLE(%s(TABLE t, DESCRIPTOR(ts), ...)) GROUP "
				 "BY "
				 "window_start, window_end",
				 name);
		else if (near != NULL)
			snprintf(pb->hint, sizeof pb->hint, "did you mean %s?", near);
		return NULL;
	}
	struct weir_type *want = weir_mem_take(m, (count + 1) * sizeof *want);
	for (uint32_t i = 0; i < entries; i++) {
		struct weir_type result = {0};
		if (count < fn[i].args_min || (count > fn[i].args_max && fn[i].args_max != 255))
			continue;
		for (uint32_t k = 0; k < count; k++)
			want[k] = args[k]->type;
		if (!fn[i].resolve(args, count, want, &result))
			continue;
		if (convert_args(m, args, count, want))
			return call_entry(m, &fn[i], args, count, &result, pb);
	}
	no_such_call(name, fn, entries, args, count, pb);
	return NULL;
}

/* IF(c, a, b) and NULLIF(a, b) are CASEs, so that a branch runs for its rows only. */
static const struct weir_expr *make_if(struct weir_mem *m, const char *name, const struct weir_expr **args,
				       uint32_t count, struct weir_expr_problem *pb)
{
	bool is_if = strcmp(name, "IF") == 0;
	if (count != (is_if ? 3u : 2u)) {
		snprintf(pb->text, sizeof pb->text, "%s takes %d arguments, not %u", name, is_if ? 3 : 2, count);
		return NULL;
	}
	if (is_if)
		return weir_expr_make_case(m, args, 3, pb);
	if (strcmp(name, "IFNULL") == 0)
		return make_coalesce(m, args, 2, pb);
	const struct weir_expr *equal = weir_expr_make_call(m, "=", args, 2, pb);
	if (equal == NULL)
		return NULL;
	struct weir_type t = args[0]->type;
	const struct weir_expr *branches[3] = {equal, weir_expr_make_null(m, &t), args[0]};
	return weir_expr_make_case(m, branches, 3, pb);
}

const struct weir_expr *weir_expr_make_call(struct weir_mem *m, const char *name, const struct weir_expr *const *in,
					    uint32_t count, struct weir_expr_problem *pb)
{
	bool is_and = strcmp(name, "AND") == 0;
	if (count > CALL_ARGS_MAX && !is_and && strcmp(name, "OR") != 0 && strcmp(name, "IN") != 0) {
		snprintf(pb->text, sizeof pb->text, "%s has more than %d arguments", name, CALL_ARGS_MAX);
		return NULL;
	}
	const struct weir_expr **args = weir_mem_take(m, (count + 1) * sizeof *args);
	for (uint32_t i = 0; i < count; i++)
		args[i] = in[i];
	if (is_and || strcmp(name, "OR") == 0) {
		if (!to_bool(m, args, count, 1, name, pb))
			return NULL;
		return make_logic(m, is_and ? WEIR_EXPR_AND : WEIR_EXPR_OR, args, count);
	}
	if (strcmp(name, "COALESCE") == 0 && count > 0)
		return make_coalesce(m, args, count, pb);
	if (strcmp(name, "IF") == 0 || strcmp(name, "NULLIF") == 0 || strcmp(name, "IFNULL") == 0)
		return make_if(m, name, args, count, pb);
	if (is_comparison(name) && count >= 2 && !weir_expr_coerce_compare(m, args, count, pb))
		return NULL;
	if (strcmp(name, "NOT") == 0 && count == 1 && !to_bool(m, args, 1, 1, "NOT", pb))
		return NULL;
	return find_call(m, name, args, count, pb);
}

enum weir_err weir_expr_call(struct weir_mem *m, const char *fn, const struct weir_expr *const *args,
			     uint32_t arg_count, const struct weir_expr **out, struct weir_diag **dg)
{
	struct weir_expr_problem pb = {"", ""};
	const struct weir_expr *e = weir_expr_make_call(m, fn, args, arg_count, &pb);
	if (e == NULL) {
		bool first = dg != NULL && *dg == NULL;
		enum weir_err err = weir_diag_set(dg, WEIR_E_PLAN, "%s", pb.text);
		if (first && pb.hint[0] != 0)
			weir_diag_add_hint(*dg, "%s", pb.hint);
		return err;
	}
	*out = e;
	return WEIR_OK;
}
