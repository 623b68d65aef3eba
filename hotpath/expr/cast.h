/* cast.h: which casts exist and how they run, a column at a time. Rules as Flink's, but nothing wraps or saturates:
 * what does not fit is a failure (CAST: a row error with reason expr; TRY_CAST: NULL). @thread any */
#ifndef WEIR_EXPR_CAST_H
#define WEIR_EXPR_CAST_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"
#include "hotpath/expr/expr.h"

/* Whether CAST(from AS to) exists at all. */
bool weir_cast_exists(const struct weir_type *from, const struct weir_type *to);
/* Whether values of `from` already are values of `to`, bit for bit: such a cast costs nothing. */
bool weir_cast_is_noop(const struct weir_type *from, const struct weir_type *to);
/* Whether no value of `from` can fail to convert to `to`. */
bool weir_cast_is_safe(const struct weir_type *from, const struct weir_type *to);

/* Converts rows row[0..count), none of them null in `in`, of e->args[0]'s type to e->type (e: a CAST or TRY_CAST).
 * Failures are appended to errors, or set null in out for a TRY_CAST. text is a buffer of the caller for values on
 * their way. */
void weir_cast_run(const struct weir_expr *e, const struct weir_col *in, struct weir_col *out, const uint16_t *row,
		   uint32_t count, struct weir_scratch *scratch, struct weir_buf *text, struct weir_row_errors *errors);

/* CAST(s AS to) of one value for a type that is neither text nor nested; false when s is none. */
bool weir_cast_from_text(const struct weir_type *to, struct weir_str s, struct weir_col *out, uint32_t row);

#endif
