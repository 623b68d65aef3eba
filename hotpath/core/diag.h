/* diag.h: building a struct weir_diag (the public reading side is weir_types.h). Cold paths only, @thread any. */
#ifndef WEIR_CORE_DIAG_H
#define WEIR_CORE_DIAG_H

#include "hotpath/core/base.h"

/* Sets *out (if out is not NULL and *out is NULL: the first error sticks) and returns err, so that callers write
 * `return weir_diag_set(dg, WEIR_E_CONF, "...")`. */
enum weir_err weir_diag_set(struct weir_diag **out, enum weir_err err, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* The same with a place in a text: file names it (may be NULL), [text, text + bytes) is the whole of it and at points
 * into it; the line, a caret and hint (may be NULL) go into the report. text may be NULL: no place. */
enum weir_err weir_diag_set_at(struct weir_diag **out, enum weir_err err, const char *file, const char *text,
			       size_t bytes, const char *at, const char *hint, const char *fmt, ...) WEIR_PRINTF(8, 9);
/* Line and column of at, from 1: in characters, as editors count, and without a byte-order mark. Returns where its line
 * starts. */
const char *weir_text_place(const char *text, size_t bytes, const char *at, int *line, int *column);
/* Where in its text an error with a place stands, SIZE_MAX without one; and the same error at a place of another text,
 * of which the first was made. */
size_t weir_diag_offset(const struct weir_diag *dg);
void weir_diag_move(struct weir_diag *dg, const char *text, size_t bytes, const char *at);
/* A copy that lives on its own, for owners that report one error to several callers; NULL of NULL. */
struct weir_diag *weir_diag_copy(const struct weir_diag *dg);
void weir_diag_mark_retriable(struct weir_diag *dg);
/* Names the file (NULL: none) of a report that has none. */
void weir_diag_set_file(struct weir_diag *dg, const char *file);
/* Adds "hint: ..." to a report that has none. */
void weir_diag_add_hint(struct weir_diag *dg, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* The entry of names[0..count) nearest to name by edit distance (at most a third of its length), or NULL. */
const char *weir_nearest_name(const char *name, size_t name_bytes, const char *const *names, size_t count);

#endif
