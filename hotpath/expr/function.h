/* function.h: the table of scalar functions and operators: names, type rules, kernels. Every binary and unary operator
 * is an entry too ("+", "=", "NOT", "||", "IS NULL"). Kernels are vectorised: one call per batch. */
#ifndef WEIR_EXPR_FUNCTION_H
#define WEIR_EXPR_FUNCTION_H

#include "hotpath/core/batch.h"
#include "hotpath/expr/expr.h"

/* What a kernel gets. in[i] may be is_const (row 0 stands for all): use weir_row(). */
struct weir_kernel {
	const struct weir_expr *expr; /* types, fn_data, text */
	const struct weir_col *const *in;
	struct weir_col *out; /* nulls already cleared; if fn->null_in_null_out, rows with a NULL argument are
			       * already null in out and absent from row[] */
	const uint16_t *row;  /* the rows to compute */
	uint32_t count;
	struct weir_scratch *scratch; /* for string results: valid until the batch ends */
	/* Kernel appends failures (overflow, out of range) here, at most one per row; program.c takes those rows out.
	 */
	struct weir_row_errors *errors;
	void *state; /* what fn->open made for this call site of this program, or NULL */
};

/* The row to read in c for row `row` of the batch. */
WEIR_INLINE uint32_t weir_row(const struct weir_col *c, uint32_t row)
{
	return c->is_const ? 0 : row;
}

struct weir_function {
	const char *name; /* upper case; several entries may share one name: the first whose resolve accepts wins */
	uint8_t args_min, args_max; /* args_max 255: any number */
	bool null_in_null_out;
	bool volatile_; /* not folded even with constant arguments (none today: nothing reads the clock) */
	bool total;     /* with null_in_null_out: row[] may also hold rows whose arguments are NULL; the kernel reads
			 * no memory behind values and reports nothing for rows that are null in out */
	/* Given argument types, sets the result type and the types to coerce each argument to (want, initially a copy
	 * of have); false when this entry does not take them. Literal arguments are in args (CONST) for functions whose
	 * result type depends on a value (ROUND(d, 2), CAST-like units). */
	bool (*resolve)(const struct weir_expr *const *args, uint32_t count, struct weir_type *want,
			struct weir_type *result);
	/* Once per expression at bind time, for constant arguments: sets *data (in m) or reports (a bad regex, an
	 * unknown unit). May be NULL. */
	enum weir_err (*prepare)(const struct weir_expr *const *args, uint32_t count, struct weir_mem *m,
				 const void **data, struct weir_diag **dg);
	void (*kernel)(struct weir_kernel *k);
	/* Per program and call site, for what a kernel must own (a compiled regex with its match buffers). May be NULL.
	 * @thread init */
	void *(*open)(const struct weir_expr *e);
	void (*close)(void *state);
	const char *doc; /* one line for SHOW FUNCTIONS and the manual: "UPPER(s): s in upper case (ASCII)" */
};

/* Looks a name up (any case): sets *first to the first entry of it and *count to how many follow. False: unknown. */
bool weir_function_find(const char *name, const struct weir_function **first, uint32_t *count);
/* Nearest existing name for a hint, or NULL. */
const char *weir_function_nearest(const char *name);
/* The i-th entry, NULL beyond the last: for SHOW FUNCTIONS. */
const struct weir_function *weir_function_at(uint32_t i);

/* A function of many rows: what there is to say about it. */
enum weir_function_kind {
	WEIR_FUNCTION_AGGREGATE, /* of a group; most of them stand OVER rows, too */
	WEIR_FUNCTION_OVER       /* OVER rows alone */
};
struct weir_function_note {
	const char *name; /* upper case */
	enum weir_function_kind kind;
	const char *doc; /* as that of a weir_function */
};
/* The i-th of them, NULL beyond the last. */
const struct weir_function_note *weir_function_note_at(uint32_t i);
bool weir_name_is_aggregate(const char *name);

#endif
