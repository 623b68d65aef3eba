/* tree.h: what the files that make and rewrite bound expressions share. Not for other folders. Cold path, @thread init.
 */
#ifndef WEIR_EXPR_TREE_H
#define WEIR_EXPR_TREE_H

#include "hotpath/expr/expr.h"

/* Why a call could not be made; the binder puts a place to it. */
struct weir_expr_problem {
	char text[400];
	char hint[200]; /* "": none */
};

/* name(args): the entry of the function table that takes them, arguments converted, constants folded. NULL with *pb
 * filled when there is none. Also takes the names that are no functions but nodes of their own: AND OR COALESCE IF
 * IFNULL NULLIF. */
const struct weir_expr *weir_expr_make_call(struct weir_mem *m, const char *name, const struct weir_expr *const *args,
					    uint32_t count, struct weir_expr_problem *pb);
/* [when, then]* else -> CASE of the branches' common type; NULL with *pb filled. count is odd. */
const struct weir_expr *weir_expr_make_case(struct weir_mem *m, const struct weir_expr *const *args, uint32_t count,
					    struct weir_expr_problem *pb);
const struct weir_expr *weir_expr_make_const(struct weir_mem *m, const struct weir_type *t, struct weir_value v);
const struct weir_expr *weir_expr_make_null(struct weir_mem *m, const struct weir_type *t);
const struct weir_expr *weir_expr_make_string(struct weir_mem *m, const char *s, size_t bytes);

/* e with its value, if its arguments are constants and it evaluates without an error; else e. */
const struct weir_expr *weir_expr_fold(const struct weir_expr *e, struct weir_mem *m);

/* A short text of e from the texts of its arguments, for errors; at most about 120 bytes. */
const char *weir_expr_short_text(const struct weir_expr *e, struct weir_mem *m);

/* Distinct nodes below exprs, arguments before users; *out is malloc'd. Stops at limit + 1 nodes. */
size_t weir_expr_order(const struct weir_expr *const *exprs, uint32_t count, size_t limit,
		       const struct weir_expr ***out);

/* A literal's node; NULL with *pb filled (a number out of range, a date that does not exist). */
const struct weir_expr *weir_expr_literal(const struct weir_ast *a, struct weir_mem *m, struct weir_expr_problem *pb);

/* Both sides of a comparison converted to one type; false when they cannot be compared. */
bool weir_expr_coerce_compare(struct weir_mem *m, const struct weir_expr **args, uint32_t count,
			      struct weir_expr_problem *pb);

#endif
