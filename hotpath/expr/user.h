/* user.h: functions of the program that uses weir (weir.h: weir_map_batch and its like) as bound expressions. One call
 * has one or more results: the call itself is a node, and each result a node above it, so that a program runs the
 * function once however many of its results are read.
 *
 *   result "total"   result "bonus"
 *            \       /
 *        call parse(line, ts)
 *
 * Building: @thread init. Running: the thread whose program it is, with results of its own. */
#ifndef WEIR_EXPR_USER_H
#define WEIR_EXPR_USER_H

#include "hotpath/expr/expr.h"
#include "hotpath/expr/function.h"

struct weir_batch;

/* What is known of a function once; lives as long as the expressions. */
struct weir_user_function {
	const char *name;
	void (*run)(struct weir_batch *b, void *ctx);
	void *ctx;
	uint32_t out_count;
	const struct weir_type *out_types;
	const char *const *out_names;
};

/* Whether values of a type can go in and come out: all but DECIMAL beyond 18 digits. */
bool weir_user_type_is_supported(const struct weir_type *t);
/* fn over args, in m: out[i] is its result i. fn is borrowed. */
void weir_user_call(struct weir_mem *m, const struct weir_user_function *fn, const struct weir_expr *const *args,
		    uint32_t arg_count, const struct weir_expr **out);
/* A call with any number of rows of results for each row (weir_batch_emit): an ARRAY of ROWs of fn's columns, empty for
 * a row that has none. */
const struct weir_expr *weir_user_flat_call(struct weir_mem *m, const struct weir_user_function *fn,
					    const struct weir_expr *const *args, uint32_t arg_count);
/* Whether e is such a call: it is printed as one, whatever its name. */
bool weir_user_is_call(const struct weir_expr *e);
/* Whether e is a result of such a call; *name is then the result's name and e->args[0] the call. */
bool weir_user_is_result(const struct weir_expr *e, const char **name);

#endif
