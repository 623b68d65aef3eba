/* program.h: runs bound expressions over batches, a column at a time, for selected rows only. A program is made per
 * worker (it owns its registers); nothing is allocated after creation but chunks of the batch's scratch memory. */
#ifndef WEIR_EXPR_PROGRAM_H
#define WEIR_EXPR_PROGRAM_H

#include "hotpath/core/batch.h"
#include "hotpath/expr/expr.h"

struct weir_program;

/* Compiles exprs[0..count) over one input layout; equal sub-expressions are evaluated once where their rows agree.
 * @thread init */
WEIR_MUST_CHECK enum weir_err weir_program_create(struct weir_program **out, const struct weir_expr *const *exprs,
						  uint32_t count, struct weir_diag **dg);
void weir_program_destroy(struct weir_program *pg);

/* Evaluates every expression for the rows in sel over the input columns in[]. Afterwards out[i] points at the column of
 * exprs[i]: an input column itself (for a plain column reference), or a register of pg, valid until the next run;
 * is_const results have row 0 only. Rows whose evaluation failed are appended to errors and leave sel. @thread worker
 * or snap */
void weir_program_run(struct weir_program *pg, const struct weir_col *const *in, struct weir_sel *sel,
		      struct weir_scratch *scratch, const struct weir_col **out, struct weir_row_errors *errors);
/* Evaluates a BOOLEAN program of one expression and keeps the rows where it is TRUE; returns how many left by that
 * (not counting errors). */
uint32_t weir_program_filter(struct weir_program *pg, const struct weir_col *const *in, struct weir_sel *sel,
			     struct weir_scratch *scratch, struct weir_row_errors *errors);

#endif
