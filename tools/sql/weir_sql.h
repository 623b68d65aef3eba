/* weir_sql.h: SQL text to a topology. Public, installed as <weir/weir_sql.h>.
 *
 * The dialect is Flink SQL: CREATE TABLE ... WITH, window TVFs, INSERT INTO ... SELECT, statement sets; `EMIT CHANGES`
 * or `EMIT FINAL` may end a query. All INSERTs of a text are one topology; a bare SELECT stands alone. Nothing is
 * opened or run here. One thread at a time; @thread init for everything. */
#ifndef WEIR_SQL_H
#define WEIR_SQL_H

#include "weir/weir_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_topology;
struct weir_conf;
struct weir_sql;
struct weir_sql_variable;

/* Compiles a text that holds something to run. SETs go into cf (as from a file, with their place); cf may be NULL, then
 * a SET is an error. file names the text in errors and may be NULL. On success *out is the caller's. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_sql_compile(struct weir_topology **out, struct weir_conf *cf,
							const char *file, const char *sql, size_t bytes,
							struct weir_diag **diag);

/* What is to be done with a compiled text. */
enum weir_sql_action {
	WEIR_SQL_NOTHING, /* definitions, SHOW, DESCRIBE only: there is no topology */
	WEIR_SQL_RUN,     /* INSERTs, or one bare SELECT */
	WEIR_SQL_EXPLAIN  /* EXPLAIN: show the topology's plan, do not run it */
};

/* The same in steps, for programs that show what SHOW, DESCRIBE and EXPLAIN say. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_sql_open(struct weir_sql **out, struct weir_conf *cf, const char *file,
						     const char *sql, size_t bytes, struct weir_diag **diag);
/* The same of a text with ${name} in it, filled as by weir_sql_expand: errors, warnings and the origins of SETs name
 * their place in the text as it was written. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_sql_open_filled(struct weir_sql **out, struct weir_conf *cf,
							    const char *file, const char *sql, size_t bytes,
							    const struct weir_sql_variable *variables, size_t count,
							    struct weir_diag **diag);
/* What is to be done with the text. */
WEIR_API enum weir_sql_action weir_sql_action(const struct weir_sql *sq);
/* Whether a bare SELECT prints rows. */
WEIR_API int weir_sql_prints_rows(const struct weir_sql *sq);
/* What SHOW, DESCRIBE and their like printed, in order; "" if nothing. Borrowed until weir_sql_close. */
WEIR_API const char *weir_sql_output(const struct weir_sql *sq);
/* Warning number i ("file:line:col: warning: ..."), NULL beyond the last. Borrowed until weir_sql_close. */
WEIR_API const char *weir_sql_warning(const struct weir_sql *sq, unsigned i);
/* Gives an error of the topology's plan or start (WEIR_E_CONF or WEIR_E_PLAN without a line) that names a table or one
 * of its options the place where the text declares it; others stay as they are. */
WEIR_API void weir_sql_add_place(const struct weir_sql *sq, struct weir_diag *dg);
/* Hands the topology over (the caller destroys it, or gives it to an engine); NULL when there is none or it was taken.
 */
WEIR_API struct weir_topology *weir_sql_take_topology(struct weir_sql *sq);
/* NULL is fine. */
WEIR_API void weir_sql_close(struct weir_sql *sq);

/* One --define name=value. */
struct weir_sql_variable {
	const char *name;
	const char *value;
};
/* Fills ${name} everywhere in the text but in comments; inside a quoted text the value stays inside: its quotes are
 * doubled. A name that is not given is an error at its place. *out is terminated and given back with weir_free. Without
 * any ${...} it is a plain copy. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_sql_expand(const char *file, const char *sql, size_t bytes,
						       const struct weir_sql_variable *variables, size_t count,
						       char **out, size_t *out_bytes, struct weir_diag **diag);

#ifdef __cplusplus
}
#endif
#endif
