/* sql.h: what the files of tools/sql share: the text being compiled, its catalog, parsed queries and the relations they
 * become. @thread init */
#ifndef WEIR_TOOLS_SQL_SQL_H
#define WEIR_TOOLS_SQL_SQL_H

#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"
#include "io/weir_engine.h"
#include "tools/sql/weir_sql.h"

/* ---- parsed queries (query.c) ---- */

struct sql_query;

struct sql_from {
	uint32_t at;             /* token, for messages */
	const char *table;       /* a table or view; NULL: query */
	struct sql_query *query; /* ( SELECT ... ) */
	const char *alias;
	const char **names; /* AS t (a, b) */
	uint32_t name_count;
	struct weir_ast *as_of; /* FOR SYSTEM_TIME AS OF; NULL: none */
	/* A window TVF around it. */
	struct weir_window_spec window; /* kind NONE: none */
	uint32_t window_at;
	const char *time_column;
	uint32_t time_at;
	struct weir_ast **partition; /* SESSION(TABLE t PARTITION BY ...) */
	uint32_t partition_count;
};

/* [INNER | LEFT | RIGHT | FULL [OUTER]] JOIN right ON on, or USING (names). */
struct sql_join {
	enum weir_join_kind kind;
	uint32_t at;
	struct sql_from right;
	struct weir_ast *on;
	const char **using; /* column names */
	uint32_t using_count;
	bool by_where;           /* a comma or CROSS JOIN: WHERE says which rows meet */
	struct weir_ast *unnest; /* JOIN UNNEST(array): right has its alias and names; NULL: no such */
	bool ordinality;         /* WITH ORDINALITY */
};

struct sql_item {
	struct weir_ast *ast;
	const char *alias; /* NULL: none */
};

enum sql_emit { SQL_EMIT_DEFAULT, SQL_EMIT_FINAL, SQL_EMIT_CHANGES };

/* WINDOW name AS (PARTITION BY ... ORDER BY ...). */
struct sql_named_window {
	const char *name;
	struct weir_ast_over *over;
};

/* SELECT ..., or the arms of a UNION. */
struct sql_query {
	uint32_t at;
	struct sql_query **arms;
	uint32_t arm_count; /* 0: a SELECT */
	struct sql_item *items;
	uint32_t item_count;
	struct sql_from from;
	struct sql_join *joins; /* from left to right */
	uint32_t join_count;
	struct weir_ast *where;
	struct weir_ast **group_by;
	uint32_t group_count;
	bool has_group;
	bool distinct; /* SELECT DISTINCT, or of arms UNION without ALL: rows that are equal are one */
	bool is_set;   /* arms: equal rows will be one in the end, how many there are of them does not matter */
	struct weir_ast *having;
	struct sql_named_window *windows;
	uint32_t window_count;
	enum sql_emit emit; /* outermost query only */
	uint32_t emit_at;
};

/* ---- relations ---- */

enum sql_using { SQL_USING_NONE, SQL_USING_FIRST, SQL_USING_QUALIFIED };

/* What a query became: a node and what names and later checks need to know about its columns. */
struct sql_rel {
	struct weir_node *node;
	uint32_t column_count; /* visible ones; the node may carry the time column of an open window behind them */
	const char *qualifier; /* NULL: none */
	const char *const *qualifiers; /* of a join: one a column; NULL: qualifier is that of all */
	/* Of a join with USING: which columns a plain name means and * begins with, and which only a.k and b.k mean;
	 * one a column, NULL: none. */
	const uint8_t *using;                  /* enum sql_using */
	const struct weir_window_spec *window; /* of a window TVF whose rows are not aggregated yet */
	uint32_t window_at;
	const uint32_t *partition; /* columns of SESSION's PARTITION BY */
	uint32_t partition_count;
	/* Of the aggregate below: which group column each column is, -1: none. */
	const int32_t *group_of;
	uint32_t group_count;
	const char *const *group_names;
	enum weir_window_kind group_window;
	/* A table whose key no visible column is: COALESCE of the keys of a full join below another one. */
	bool hidden_key;
};

/* ---- catalog ---- */

struct sql_table {
	const char *name;
	uint32_t first_token, end_token; /* of its CREATE statement */
	bool dropped;
	struct weir_table_def *def; /* NULL: a view */
	bool kafka_mapped;
	/* views */
	struct sql_query *query;
	const char **names;
	uint32_t name_count;
	bool compiled[2]; /* by whether the last stage emits changes */
	struct sql_rel rel[2];
};

/* The text as its author wrote it, and where values have been filled in. */
struct sql_filled {
	size_t at, bytes; /* in the filled text */
	size_t written_at, written_bytes;
};
struct sql_written {
	const char *text;
	size_t bytes;
	struct weir_buf filled; /* struct sql_filled, ascending */
};

struct weir_sql {
	struct weir_topology *tp;
	struct weir_mem *m; /* the topology's */
	struct weir_tokens ts;
	struct weir_conf *cf;
	struct weir_diag **dg;
	struct sql_written written; /* borrowed while it compiles */
	struct weir_buf tables;     /* struct sql_table * */
	struct weir_buf states;     /* const char *: state names given */
	struct weir_buf output;     /* of SHOW, DESCRIBE */
	struct weir_buf warnings;   /* char *, malloc'd */
	enum weir_sql_action action;
	bool prints_rows;
	bool in_set;           /* between BEGIN STATEMENT SET and END */
	uint32_t insert_count; /* INSERTs and bare SELECTs so far */
	uint32_t explain_count;
	const char *group_id;       /* properties.group.id of the sources that are read */
	const char *other_group_id; /* the first that differs, and the token of its table's use */
	uint32_t other_group_at;
	const char *sink_name;  /* prefix of state names of the query being compiled */
	struct weir_buf places; /* place.c's, with a copy of the text as written */
	struct weir_buf place_text;
	char *place_file;
};

/* ---- messages (sql.c) ---- */

/* Reports at token number at; returns WEIR_E_PLAN. */
enum weir_err sql_error(struct weir_sql *sq, uint32_t at, const char *hint, const char *fmt, ...) WEIR_PRINTF(4, 5);
void sql_warn(struct weir_sql *sq, uint32_t at, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* Where an offset of the text stands in what was written. */
const char *sql_written_at(const struct sql_written *wr, size_t offset);
/* place.c: keeps where the tables stand, of a text that is compiled. */
void sql_places_keep(struct weir_sql *sq);
void sql_places_fini(struct weir_sql *sq);
/* Reports inner (taken, has no place) at token at, with its code and hint. */
enum weir_err sql_error_from(struct weir_sql *sq, uint32_t at, struct weir_diag *inner);
/* Reports the topology's error at token at, if it has one. */
enum weir_err sql_check_built(struct weir_sql *sq, uint32_t at);

/* ---- statements (sql.c, ddl.c, show.c, insert.c) ---- */

enum weir_err sql_create(struct weir_sql *sq);
enum weir_err sql_drop(struct weir_sql *sq);
enum weir_err sql_show(struct weir_sql *sq);
enum weir_err sql_describe(struct weir_sql *sq);
/* INSERT INTO ..., or a bare SELECT. */
enum weir_err sql_insert(struct weir_sql *sq);
enum weir_err sql_bare_select(struct weir_sql *sq);

/* a, or a.b.c with Flink's default catalog and database in front. */
enum weir_err sql_table_name(struct weir_sql *sq, const char *what, const char **out);
/* The table or view of that name, NULL if there is none. */
struct sql_table *sql_find_table(struct weir_sql *sq, const char *name);
/* The same, an error at token at if there is none. */
enum weir_err sql_get_table(struct weir_sql *sq, const char *name, uint32_t at, struct sql_table **out);
/* IF [NOT] EXISTS. */
enum weir_err sql_accept_if(struct weir_sql *sq, bool not_exists, bool *out);
/* Points a Kafka table at the recorded topics that stand for the brokers; an error where there are none. */
enum weir_err sql_use_table(struct weir_sql *sq, struct sql_table *t, bool sink, uint32_t at);
/* The sources' group names the application where nothing else does; two groups cannot. */
enum weir_err sql_name_application(struct weir_sql *sq);
/* A name of its own for a state: the sink and what the state is. */
const char *sql_state_name(struct weir_sql *sq, const char *what);

/* ---- queries (query.c, relation.c, group.c, over.c) ---- */

/* The i-th window TVF and how it is written, NULL beyond the last. */
const char *sql_window_at(uint32_t i, const char **usage);
enum weir_err sql_parse_query(struct weir_sql *sq, bool outermost, struct sql_query **out);
/* changes: the last aggregate of the query emits changes. */
enum weir_err sql_compile_query(struct weir_sql *sq, struct sql_query *q, bool changes, struct sql_rel *out);
/* What stands in WHERE, AND between: joins take from it. */
struct sql_where {
	struct weir_ast *const *parts;
	bool *taken;
	uint32_t count;
	bool last; /* every table is there: what cannot be bound is wrong */
};
/* semi.c: whether a condition is x IN (SELECT ...), EXISTS (SELECT ...) or the negation of one. */
bool sql_is_semi(struct weir_ast *a);
bool sql_is_and(const struct weir_ast *a);
/* FROM's tables joined: *rel, the first one, becomes all of them. wh: what an inner join may take conditions from,
 * NULL: nothing. */
enum weir_err sql_compile_join(struct weir_sql *sq, const struct sql_join *jn, struct sql_where *wh,
			       struct sql_rel *rel);
/* over.c: JOIN UNNEST. */
enum weir_err sql_compile_unnest(struct weir_sql *sq, const struct sql_join *jn, struct sql_rel *rel);
/* One table, view, sub-select or window TVF of FROM. */
enum weir_err sql_compile_from(struct weir_sql *sq, const struct sql_from *f, bool changes, struct sql_rel *out);
/* SELECT with GROUP BY or aggregates over in (after WHERE). */
enum weir_err sql_compile_group(struct weir_sql *sq, const struct sql_query *q, const struct sql_rel *in, bool changes,
				struct sql_rel *out);
/* rank.c: the FROM of a query whose WHERE takes the last row of each partition from ROW_NUMBER() OVER (.. ORDER BY time
 * DESC); *where is what else it says, NULL: nothing. *ranked: it is such a query. */
enum weir_err sql_compile_rank(struct weir_sql *sq, const struct sql_query *q, struct sql_rel *rel,
			       struct weir_ast **where, bool *ranked);
/* A view's query by itself, for its columns: one that a WHERE around it makes a ranking of is taken as if it were
 * there.
 */
enum weir_err sql_compile_alone(struct weir_sql *sq, struct sql_query *q, struct sql_rel *out);
/* join.c: left and right joined by the conditions on[0..count) over the columns of both, jn saying how (its right side
 * and its own conditions are not looked at). */
enum weir_err sql_join_by(struct weir_sql *sq, const struct sql_join *jn, const struct sql_rel *left,
			  const struct sql_rel *right, const struct weir_expr *const *on, uint32_t count,
			  struct sql_rel *out);
/* Whether a column would be a time attribute, did an outer join not keep rows in which it is NULL. */
bool sql_time_may_be_missing(const struct weir_node *n, uint32_t column);
#define SQL_KEPT_TIME                                                                                                  \
	"take the time attribute of the side whose rows are kept; of a FULL JOIN there is none: "                      \
	"aggregate each side in windows before, and join those"

/* The columns of both sides, as names may mean them; those of one side have qualifiers[i]. */
struct weir_scope sql_both_scopes(struct weir_sql *sq, const struct sql_rel *l, const struct sql_rel *r,
				  const char ***qualifiers);
/* semi.c: takes x IN (SELECT ...) and EXISTS (SELECT ...) out of *where and joins rel with them; *where is what is
 * left, NULL: nothing. */
enum weir_err sql_compile_semi(struct weir_sql *sq, struct weir_ast **where, struct sql_rel *rel);
/* distinct.c: of columns of one name the second one gets a number, as in Flink. */
enum weir_err sql_number_names(struct weir_sql *sq, struct sql_rel *rel, uint32_t at);
/* distinct.c: rel grouped by all of its columns. */
enum weir_err sql_group_all(struct weir_sql *sq, struct sql_rel *rel, uint32_t at, bool changes, struct sql_rel *out);
/* distinct.c: what q gives without its DISTINCT, grouped by all of its columns. */
enum weir_err sql_compile_distinct(struct weir_sql *sq, const struct sql_query *q, bool changes, struct sql_rel *out);
/* SELECT with functions OVER over in (after WHERE). */
enum weir_err sql_compile_over(struct weir_sql *sq, const struct sql_query *q, const struct sql_rel *in,
			       struct sql_rel *out);
/* Whether the select list has a function OVER; *at (may be NULL) is the place of the first. */
bool sql_has_over(const struct sql_query *q, uint32_t *at);
/* rel's columns under other names: AS t (a, b), CREATE VIEW v (a, b). */
enum weir_err sql_rename_columns(struct weir_sql *sq, struct sql_rel *rel, const char *const *names, uint32_t count,
				 uint32_t at);
/* FROM, JOIN and WHERE of a SELECT. */
enum weir_err sql_compile_input(struct weir_sql *sq, const struct sql_query *q, bool changes, struct sql_rel *out);
/* A WHERE over rel. */
enum weir_err sql_compile_where(struct weir_sql *sq, const struct weir_ast *where, struct sql_rel *rel);
/* The names and types of rel's visible columns. */
struct weir_scope sql_scope(struct weir_sql *sq, const struct sql_rel *rel, const char *aggregate_error);
enum weir_err sql_bind(struct weir_sql *sq, const struct weir_scope *scope, const struct weir_ast *ast,
		       const struct weir_expr **out);
enum weir_err sql_bind_condition(struct weir_sql *sq, const struct weir_scope *scope, const struct weir_ast *ast,
				 const char *what, const struct weir_expr **out);
/* Expands *, names the columns. Arrays live in sq->m. */
enum weir_err sql_bind_items(struct weir_sql *sq, const struct sql_query *q, const struct sql_rel *rel,
			     const struct weir_scope *scope, const char ***names, const struct weir_expr ***exprs,
			     uint32_t *count);
/* A table's key, as group columns are: a sink's key must hold them. */
void sql_name_table_key(struct weir_sql *sq, struct sql_rel *rel);
/* rel with these columns instead, passing on an open window and group columns. */
enum weir_err sql_project(struct weir_sql *sq, const struct sql_rel *rel, const char *const *names,
			  const struct weir_expr *const *exprs, uint32_t count, uint32_t at, struct sql_rel *out);
/* Whether the query has an aggregate of its own; *at is its place. */
bool sql_has_aggregate(const struct sql_query *q);
/* Calls visit for every node of ast, arguments and filters too, until it returns false. */
void sql_walk(struct weir_ast *ast, bool (*visit)(void *ctx, struct weir_ast *a), void *ctx);

#endif
