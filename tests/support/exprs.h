/* exprs.h: building bound expressions by hand and running them on small batches, for tests of hotpath/expr. @thread any
 */
#ifndef WEIR_TESTS_EXPRS_H
#define WEIR_TESTS_EXPRS_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"
#include "hotpath/expr/expr.h"
#include "hotpath/expr/function.h"
#include "hotpath/expr/program.h"

struct weir_type t_kind(enum weir_kind kind);
struct weir_type t_decimal(int p, int s);
struct weir_type t_string(void);
struct weir_type t_time(enum weir_kind kind, int precision);

const struct weir_expr *x_null(struct weir_mem *m, struct weir_type t);
const struct weir_expr *x_int(struct weir_mem *m, enum weir_kind kind, int64_t v);
const struct weir_expr *x_double(struct weir_mem *m, double v);
const struct weir_expr *x_bool(struct weir_mem *m, bool v);
const struct weir_expr *x_str(struct weir_mem *m, const char *s);
const struct weir_expr *x_dec(struct weir_mem *m, int p, int s, weir_i128 v);
const struct weir_expr *x_typed(struct weir_mem *m, struct weir_type t, int64_t v); /* times, intervals */
const struct weir_expr *x_col(struct weir_mem *m, uint32_t column, struct weir_type t);
const struct weir_expr *x_cast(struct weir_mem *m, enum weir_expr_op op, const struct weir_expr *e, struct weir_type t);
/* A node of AND, OR, CASE, COALESCE; args end with NULL. */
const struct weir_expr *x_node(struct weir_mem *m, enum weir_expr_op op, struct weir_type t, ...);
/* Resolves fn, casts arguments as its rule wants, prepares; NULL where no entry takes them or prepare refuses. Ends
 * with NULL. */
const struct weir_expr *x_call(struct weir_mem *m, const char *fn, ...);
const struct weir_expr *x_call_n(struct weir_mem *m, const char *fn, const struct weir_expr *const *args,
				 uint32_t count);

/* The value of e over no columns, as CAST(e AS STRING) shows it; "NULL", or "!reason" when the row failed. Lives in m.
 */
const char *x_eval(struct weir_mem *m, const struct weir_expr *e);

/* x_eval of an expression in SQL over no columns; "error: ..." when it does not parse or bind. */
const char *x_sql(struct weir_mem *m, const char *sql);
/* "TYPE: value" of the same. */
const char *x_sql_typed(struct weir_mem *m, const char *sql);

/* A table of x_sql_typed cases: fails naming the first that differs. */
struct x_case {
	const char *sql, *want;
};
void x_check(const struct x_case *cases, uint32_t count, bool typed);

/* A batch for programs. */
struct x_batch {
	struct weir_col col[8];
	const struct weir_col *in[8];
	uint32_t cols;
	struct weir_sel sel;
	struct weir_scratch scratch;
	struct weir_row_errors errors;
};
void x_batch_init(struct x_batch *b, const enum weir_phys *phys, uint32_t cols, uint32_t rows);
void x_batch_fini(struct x_batch *b);

#endif
