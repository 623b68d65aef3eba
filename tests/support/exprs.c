/* exprs.c: bound expressions by hand; see exprs.h. @thread any */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/exprs.h"

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/expr/cast.h"
#include "hotpath/format/number.h"

struct weir_type t_kind(enum weir_kind kind)
{
	return (struct weir_type){.kind = kind};
}

struct weir_type t_decimal(int p, int s)
{
	return (struct weir_type){.kind = WEIR_KIND_DECIMAL, .precision = (uint8_t)p, .scale = (uint8_t)s};
}

struct weir_type t_string(void)
{
	return (struct weir_type){.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
}

struct weir_type t_time(enum weir_kind kind, int precision)
{
	return (struct weir_type){.kind = kind, .precision = (uint8_t)precision};
}

static struct weir_expr *new_node(struct weir_mem *m, enum weir_expr_op op, struct weir_type t)
{
	struct weir_expr *e = weir_mem_take(m, sizeof *e);
	e->op = op;
	e->type = t;
	e->text = "e";
	return e;
}

const struct weir_expr *x_null(struct weir_mem *m, struct weir_type t)
{
	struct weir_expr *e = new_node(m, WEIR_EXPR_CONST, t);
	e->is_null = true;
	return e;
}

const struct weir_expr *x_typed(struct weir_mem *m, struct weir_type t, int64_t v)
{
	struct weir_expr *e = new_node(m, WEIR_EXPR_CONST, t);
	e->value.i64 = v;
	return e;
}

const struct weir_expr *x_int(struct weir_mem *m, enum weir_kind kind, int64_t v)
{
	return x_typed(m, t_kind(kind), v);
}

const struct weir_expr *x_bool(struct weir_mem *m, bool v)
{
	return x_typed(m, t_kind(WEIR_KIND_BOOLEAN), v);
}

const struct weir_expr *x_double(struct weir_mem *m, double v)
{
	struct weir_expr *e = new_node(m, WEIR_EXPR_CONST, t_kind(WEIR_KIND_DOUBLE));
	e->value.f64 = v;
	return e;
}

const struct weir_expr *x_str(struct weir_mem *m, const char *s)
{
	struct weir_expr *e = new_node(m, WEIR_EXPR_CONST, t_string());
	e->value.str = (struct weir_str){(const uint8_t *)weir_mem_strdup(m, s), (uint32_t)strlen(s), 0};
	return e;
}

const struct weir_expr *x_dec(struct weir_mem *m, int p, int s, weir_i128 v)
{
	struct weir_expr *e = new_node(m, WEIR_EXPR_CONST, t_decimal(p, s));
	if (p <= 18)
		e->value.i64 = (int64_t)v;
	else
		e->value.i128 = v;
	return e;
}

const struct weir_expr *x_col(struct weir_mem *m, uint32_t column, struct weir_type t)
{
	struct weir_expr *e = new_node(m, WEIR_EXPR_COLUMN, t);
	e->column = column;
	return e;
}

static void set_args(struct weir_mem *m, struct weir_expr *e, const struct weir_expr *const *args, uint32_t count)
{
	e->args = weir_mem_copy(m, args, (count + 1) * sizeof *args);
	e->arg_count = count;
}

const struct weir_expr *x_cast(struct weir_mem *m, enum weir_expr_op op, const struct weir_expr *e, struct weir_type t)
{
	struct weir_expr *c = new_node(m, op, t);
	const struct weir_expr *args[2] = {e, NULL};
	set_args(m, c, args, 1);
	return c;
}

const struct weir_expr *x_node(struct weir_mem *m, enum weir_expr_op op, struct weir_type t, ...)
{
	const struct weir_expr *args[64];
	uint32_t count = 0;
	va_list ap;
	va_start(ap, t);
	while (count < 63 && (args[count] = va_arg(ap, const struct weir_expr *)) != NULL)
		count++;
	va_end(ap);
	args[count] = NULL;
	struct weir_expr *e = new_node(m, op, t);
	set_args(m, e, args, count);
	return e;
}

/* A CONST stays one through a cast, as binding folds it: prepare wants constants of the wanted type. */
static const struct weir_expr *coerce(struct weir_mem *m, const struct weir_expr *e, const struct weir_type *t)
{
	if (weir_type_equal(&e->type, t))
		return e;
	const struct weir_expr *c = x_cast(m, WEIR_EXPR_CAST, e, *t);
	if (e->op != WEIR_EXPR_CONST)
		return c;
	if (e->is_null)
		return x_null(m, *t);
	struct weir_program *pg;
	struct weir_sel sel;
	struct weir_scratch scratch;
	struct weir_row_errors errors = {.count = 0};
	const struct weir_col *out;
	weir_sel_all(&sel, 1);
	weir_scratch_init(&scratch);
	if (weir_program_create(&pg, &c, 1, NULL) != WEIR_OK)
		return c;
	weir_program_run(pg, NULL, &sel, &scratch, &out, &errors);
	if (errors.count == 0) {
		struct weir_expr *v = new_node(m, WEIR_EXPR_CONST, *t);
		if (out->phys == WEIR_PHYS_U8)
			v->value.i64 = out->u8[0];
		else
			memcpy(&v->value, out->data, weir_phys_bytes(out->phys));
		if (out->phys == WEIR_PHYS_STR)
			v->value.str.data = weir_mem_copy(m, out->str[0].data, out->str[0].bytes + 1);
		c = v;
	}
	weir_program_destroy(pg);
	weir_scratch_fini(&scratch);
	return c;
}

const struct weir_expr *x_call_n(struct weir_mem *m, const char *name, const struct weir_expr *const *args,
				 uint32_t count)
{
	const struct weir_function *fn;
	uint32_t entries;
	if (!weir_function_find(name, &fn, &entries))
		return NULL;
	for (uint32_t i = 0; i < entries; i++, fn++) {
		struct weir_type want[64], result = {.kind = WEIR_KIND_NULL};
		if (count < fn->args_min || (fn->args_max != 255 && count > fn->args_max))
			continue;
		for (uint32_t a = 0; a < count; a++)
			want[a] = args[a]->type;
		if (!fn->resolve(args, count, want, &result))
			continue;
		const struct weir_expr *coerced[64];
		for (uint32_t a = 0; a < count; a++)
			coerced[a] = coerce(m, args[a], &want[a]);
		struct weir_expr *e = new_node(m, WEIR_EXPR_CALL, result);
		e->fn = fn;
		set_args(m, e, coerced, count);
		struct weir_diag *dg = NULL;
		if (fn->prepare != NULL && fn->prepare(e->args, count, m, &e->fn_data, &dg) != WEIR_OK) {
			weir_diag_destroy(dg);
			return NULL;
		}
		return e;
	}
	return NULL;
}

const struct weir_expr *x_call(struct weir_mem *m, const char *fn, ...)
{
	const struct weir_expr *args[64];
	uint32_t count = 0;
	va_list ap;
	va_start(ap, fn);
	while (count < 63 && (args[count] = va_arg(ap, const struct weir_expr *)) != NULL)
		count++;
	va_end(ap);
	args[count] = NULL;
	return x_call_n(m, fn, args, count);
}

const char *x_eval(struct weir_mem *m, const struct weir_expr *e)
{
	if (e == NULL)
		return "refused";
	/* Doubles by their shortest text, everything else as CAST writes it. */
	bool number = e->type.kind == WEIR_KIND_DOUBLE || e->type.kind == WEIR_KIND_FLOAT;
	const struct weir_expr *text = number ? e : x_cast(m, WEIR_EXPR_CAST, e, t_string());
	struct weir_program *pg;
	if (weir_program_create(&pg, &text, 1, NULL) != WEIR_OK)
		return "not compiled";
	struct weir_sel sel;
	struct weir_scratch scratch;
	struct weir_row_errors *errors = calloc(1, sizeof *errors);
	const struct weir_col *out;
	weir_sel_all(&sel, 3);
	weir_scratch_init(&scratch);
	weir_program_run(pg, NULL, &sel, &scratch, &out, errors);
	const char *result;
	if (errors->count != 0)
		result = weir_mem_printf(m, "!%s", weir_reason_name((enum weir_reason)errors->e[0].reason));
	else if (weir_col_is_null(out, 1))
		result = "NULL";
	else if (number) {
		char digits[WEIR_NUMBER_TEXT_MAX];
		double v = out->f64[out->is_const ? 0 : 1];
		size_t n = e->type.kind == WEIR_KIND_FLOAT ? weir_print_float((float)v, digits)
							   : weir_print_double(v, digits);
		result = weir_mem_strndup(m, digits, n);
	} else
		result = weir_mem_strndup(m, (const char *)out->str[out->is_const ? 0 : 1].data,
					  out->str[out->is_const ? 0 : 1].bytes);
	free(errors);
	weir_program_destroy(pg);
	weir_scratch_fini(&scratch);
	return result;
}

static const struct weir_expr *bind_sql(struct weir_mem *m, const char *sql, const char **error)
{
	struct weir_tokens ts = {0};
	struct weir_scope scope = {0};
	struct weir_ast *ast = NULL;
	const struct weir_expr *e = NULL;
	struct weir_diag *dg = NULL;
	enum weir_err err = weir_tokens_init(&ts, m, NULL, sql, strlen(sql), 1u << 20, &dg);
	if (err == WEIR_OK)
		err = weir_expr_parse(&ts, m, &ast, &dg);
	if (err == WEIR_OK && weir_token_peek(&ts, 0)->kind != WEIR_TOK_END)
		err = weir_diag_set(&dg, WEIR_E_PLAN, "text after the expression");
	if (err == WEIR_OK)
		err = weir_expr_bind(&scope, &ts, ast, m, &e, &dg);
	*error = err == WEIR_OK ? NULL : weir_mem_printf(m, "error: %s", weir_diag_text(dg));
	weir_diag_destroy(dg);
	return err == WEIR_OK ? e : NULL;
}

const char *x_sql(struct weir_mem *m, const char *sql)
{
	const char *error;
	const struct weir_expr *e = bind_sql(m, sql, &error);
	return e == NULL ? error : x_eval(m, e);
}

const char *x_sql_typed(struct weir_mem *m, const char *sql)
{
	const char *error;
	char type[128];
	const struct weir_expr *e = bind_sql(m, sql, &error);
	if (e == NULL)
		return error;
	struct weir_type t = e->type;
	t.not_null = false;
	return weir_mem_printf(m, "%s: %s", weir_type_text(&t, type, sizeof type), x_eval(m, e));
}

void x_check(const struct x_case *cases, uint32_t count, bool typed)
{
	uint32_t bad = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct weir_mem m = {0};
		const char *got = typed ? x_sql_typed(&m, cases[i].sql) : x_sql(&m, cases[i].sql);
		/* An error need only begin as expected. */
		size_t n = strncmp(cases[i].want, "error", 5) == 0 ? strlen(cases[i].want) : SIZE_MAX;
		if (n == SIZE_MAX ? strcmp(got, cases[i].want) != 0 : strncmp(got, cases[i].want, n) != 0) {
			print_message("%s\n  got  %s\n  want %s\n", cases[i].sql, got, cases[i].want);
			bad++;
		}
		weir_mem_fini(&m);
	}
	if (bad != 0)
		fail_msg("%u of %u cases differ", bad, count);
}

void x_batch_init(struct x_batch *b, const enum weir_phys *phys, uint32_t cols, uint32_t rows)
{
	memset(b, 0, sizeof *b);
	b->cols = cols;
	for (uint32_t i = 0; i < cols; i++) {
		weir_col_init(&b->col[i], phys[i]);
		b->in[i] = &b->col[i];
	}
	weir_sel_all(&b->sel, rows);
	weir_scratch_init(&b->scratch);
}

void x_batch_fini(struct x_batch *b)
{
	for (uint32_t i = 0; i < b->cols; i++)
		weir_col_fini(&b->col[i]);
	weir_scratch_fini(&b->scratch);
}
