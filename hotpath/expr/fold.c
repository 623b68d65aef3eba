/* fold.c: evaluates expressions over constants once, at bind time, by running them over a batch of one row. What fails
 * (1/0, CAST('x' AS INT)) stays as it is: it is a row error, and only for rows that reach it. Cold path, @thread init.
 */
#include <stdlib.h>

#include "hotpath/expr/function.h"
#include "hotpath/expr/program.h"
#include "hotpath/expr/tree.h"

#define FOLD_TEXT_BYTES_MAX (1024 * 1024) /* REPEAT('x', 1e9) is no constant to keep */

static bool is_foldable(const struct weir_expr *e)
{
	if (e->op == WEIR_EXPR_COLUMN || e->op == WEIR_EXPR_CONST || e->arg_count == 0)
		return false;
	if (e->op == WEIR_EXPR_CALL && e->fn->volatile_)
		return false;
	for (uint32_t i = 0; i < e->arg_count; i++)
		if (e->args[i]->op != WEIR_EXPR_CONST)
			return false;
	return true;
}

/* Row 0 of c as a constant of e's type; e where it is not to be kept. */
static const struct weir_expr *take_value(const struct weir_expr *e, const struct weir_col *c, struct weir_mem *m)
{
	struct weir_value v = {.i128 = 0};
	if (weir_col_is_null(c, 0))
		return weir_expr_make_null(m, &e->type);
	switch (c->phys) {
	case WEIR_PHYS_U8:
		v.i64 = c->u8[0];
		break;
	case WEIR_PHYS_I64:
		v.i64 = c->i64[0];
		break;
	case WEIR_PHYS_F64:
		v.f64 = c->f64[0];
		break;
	case WEIR_PHYS_I128:
		v.i128 = c->i128[0];
		break;
	case WEIR_PHYS_STR:
		if (c->str[0].bytes > FOLD_TEXT_BYTES_MAX)
			return e;
		uint8_t *data = weir_mem_take(m, (size_t)c->str[0].bytes + WEIR_PAYLOAD_PAD);
		memcpy(data, c->str[0].data, c->str[0].bytes);
		v.str = (struct weir_str){data, c->str[0].bytes, 0};
		break;
	}
	return weir_expr_make_const(m, &e->type, v);
}

const struct weir_expr *weir_expr_fold(const struct weir_expr *e, struct weir_mem *m)
{
	struct weir_program *pg = NULL;
	struct weir_diag *dg = NULL;
	if (!is_foldable(e))
		return e;
	if (weir_program_create(&pg, &e, 1, &dg) != WEIR_OK) {
		weir_diag_destroy(dg);
		return e;
	}
	struct weir_scratch scratch;
	struct weir_row_errors *errors = weir_xcalloc(1, sizeof *errors);
	struct weir_sel *sel = weir_xcalloc(1, sizeof *sel);
	const struct weir_col *out = NULL;
	const struct weir_expr *result = e;
	weir_scratch_init(&scratch);
	weir_sel_all(sel, 1);
	weir_program_run(pg, NULL, sel, &scratch, &out, errors);
	if (errors->count == 0 && sel->count == 1)
		result = take_value(e, out, m);
	weir_scratch_fini(&scratch);
	free(errors);
	free(sel);
	weir_program_destroy(pg);
	return result;
}
