/* expr.h: typed expressions over numbered columns: what binding an AST against a scope produces, what plans hold, what
 * program.h runs. Trees are immutable DAGs in a struct weir_mem: substitution shares nodes, it never copies or edits.
 * Cold path, @thread init. */
#ifndef WEIR_EXPR_EXPR_H
#define WEIR_EXPR_EXPR_H

#include "hotpath/core/batch.h"
#include "hotpath/expr/ast.h"

struct weir_function; /* function.h */

enum weir_expr_op {
	WEIR_EXPR_COLUMN,   /* column: input column number */
	WEIR_EXPR_CONST,    /* value (or is_null) */
	WEIR_EXPR_CALL,     /* fn(args): strict in its kernels; NULL rules by the function */
	WEIR_EXPR_CAST,     /* args[0] to type: a failure is a row error */
	WEIR_EXPR_TRY_CAST, /* a failure is NULL */
	WEIR_EXPR_CASE,     /* [when, then]* else: branches run only for their rows */
	WEIR_EXPR_AND,      /* n-ary, three-valued; later arguments run only for rows that are not FALSE yet */
	WEIR_EXPR_OR,
	WEIR_EXPR_COALESCE /* later arguments run only for rows that are NULL yet */
};

struct weir_value {
	union {
		int64_t i64; /* U8 and I64 */
		double f64;
		weir_i128 i128;
		struct weir_str str;
	};
};

struct weir_expr {
	enum weir_expr_op op;
	struct weir_type type;
	bool is_null;                   /* CONST */
	uint32_t column;                /* COLUMN */
	struct weir_value value;        /* CONST */
	const struct weir_function *fn; /* CALL */
	const void *fn_data; /* CALL: what fn->prepare made of constant arguments (a LIKE pattern, a regex), or NULL */
	uint32_t arg_count;
	const struct weir_expr *const *args;
	const char *text; /* SQL text, for errors and explain; plan lifetime */
};

/* One column a name can mean. */
struct weir_scope_column {
	const char *name;
	const char *qualifier; /* table or alias; NULL: none */
	struct weir_type type;
	bool hidden; /* not part of *, and only meant with its qualifier */
};

struct weir_scope {
	const struct weir_scope_column *columns;
	uint32_t count;
	/* Called for every node before it is bound in the ordinary way; sets *out (non-NULL: handled) or an error. For
	 * grouped queries: group expressions and aggregate calls become columns of the aggregate's output. May be NULL.
	 */
	enum weir_err (*intercept)(void *ctx, const struct weir_ast *ast, const struct weir_expr **out,
				   struct weir_diag **dg);
	void *ctx;
	const char *aggregate_error; /* text where an aggregate call is not allowed ("WHERE cannot hold an aggregate:
					use HAVING") */
};

/* Resolves names, checks and coerces types, folds constants. Errors point at the token. Nodes live in m. */
WEIR_MUST_CHECK enum weir_err weir_expr_bind(const struct weir_scope *scope, const struct weir_tokens *ts,
					     const struct weir_ast *ast, struct weir_mem *m,
					     const struct weir_expr **out, struct weir_diag **dg);
/* e with an implicit conversion to `to` (INSERT, comparison, UNION): NULL and *dg untouched when SQL does not allow it.
 */
const struct weir_expr *weir_expr_coerce(const struct weir_expr *e, const struct weir_type *to, struct weir_mem *m);
/* e CAST to `to`; NULL when the cast does not exist. try_cast: failures are NULL. */
const struct weir_expr *weir_expr_cast(const struct weir_expr *e, const struct weir_type *to, bool try_cast,
				       struct weir_mem *m);
/* The type both sides convert to (CASE, COALESCE, IN, UNION, comparison); false when there is none. */
bool weir_type_common(const struct weir_type *a, const struct weir_type *b, struct weir_type *out);

const struct weir_expr *weir_expr_column(struct weir_mem *m, uint32_t column, const struct weir_type *t,
					 const char *name);
const struct weir_expr *weir_expr_bool(struct weir_mem *m, bool v);
const struct weir_expr *weir_expr_bigint(struct weir_mem *m, int64_t v);
/* AND of a and b; either may be NULL (true). */
const struct weir_expr *weir_expr_and(struct weir_mem *m, const struct weir_expr *a, const struct weir_expr *b);
/* fn by name over args, types resolved and arguments coerced; errors without a place when at is NULL. */
WEIR_MUST_CHECK enum weir_err weir_expr_call(struct weir_mem *m, const char *fn, const struct weir_expr *const *args,
					     uint32_t arg_count, const struct weir_expr **out, struct weir_diag **dg);
/* e with every column i replaced by columns[i]; shared nodes stay shared (memoised), constants fold again. */
const struct weir_expr *weir_expr_substitute(const struct weir_expr *e, const struct weir_expr *const *columns,
					     uint32_t column_count, struct weir_mem *m);
/* Sets used[c] for every column c that e reads (c < count). */
void weir_expr_columns_used(const struct weir_expr *e, bool *used, uint32_t count);
bool weir_expr_equal(const struct weir_expr *a, const struct weir_expr *b);
/* SQL-like text with column names from names (NULL: $0, $1). */
void weir_expr_print(const struct weir_expr *e, const char *const *names, struct weir_buf *out);
/* Number of distinct nodes, at most limit + 1: plans above 1,000,000 nodes are refused. */
size_t weir_expr_count_nodes(const struct weir_expr *const *exprs, uint32_t count, size_t limit);

#endif
