/* builder.h: what a user built: a graph of relation nodes over typed columns. weir.h (text) and tools/sql (parsed SQL)
 * both come down to these calls with bound expressions; plan.h turns the graph into scans, branches, stages and sinks.
 *
 *   SOURCE --FILTER--PROJECT--+--UNION-- WINDOW -- AGGREGATE -- FILTER -- PROJECT -- SINK
 *
 * Everything lives in the topology's memory (weir_topology_mem) until it is destroyed. Cold path, @thread init. */
#ifndef WEIR_TOPOLOGY_BUILDER_H
#define WEIR_TOPOLOGY_BUILDER_H

#include "hotpath/expr/expr.h"
#include "hotpath/format/format.h"
#include "hotpath/state/over_frame.h"
#include "hotpath/state/state.h"
#include "hotpath/topology/options.h"
#include "hotpath/weir.h"

struct weir_topology;

enum weir_column_role {
	WEIR_ROLE_NONE,
	WEIR_ROLE_ROWTIME,      /* the time attribute: what DESCRIPTOR(c) may name */
	WEIR_ROLE_WINDOW_START, /* of a WINDOW node, or passed on unchanged */
	WEIR_ROLE_WINDOW_END,
	WEIR_ROLE_WINDOW_TIME /* window_end - 1 ms (SLIDING: window_end): the time attribute of a windowed result */
};

/* One column of a relation. */
struct weir_column {
	const char *name;
	struct weir_type type;
	enum weir_column_role role;
};

enum weir_table_column_kind { WEIR_COLUMN_PHYSICAL, WEIR_COLUMN_METADATA, WEIR_COLUMN_COMPUTED };

/* One column of a table as declared. */
struct weir_table_column {
	const char *name;
	struct weir_type type;
	enum weir_table_column_kind kind;
	const char *metadata; /* METADATA: topic partition offset timestamp timestamp-type headers leader-epoch */
	bool is_virtual;      /* METADATA VIRTUAL: not written by a sink */
	const struct weir_expr *expr;      /* COMPUTED: over the columns before it, by their number in this table */
	const struct weir_path_step *path; /* PHYSICAL: where it stands in the payload; NULL: a member of its name */
	uint32_t path_steps;
};

/* A table: declared columns, time, key, and how its connector reaches it. Immutable once given to the builder. */
struct weir_table_def {
	const char *name;
	const struct weir_table_column *columns;
	uint32_t column_count;
	int32_t rowtime;             /* column of WATERMARK FOR, -1: the record's own timestamp */
	int64_t grace_ms;            /* WATERMARK ... - INTERVAL */
	const uint32_t *primary_key; /* column numbers */
	uint32_t primary_key_count;
	struct weir_table_options options;
};

enum weir_node_kind {
	WEIR_NODE_SOURCE,
	WEIR_NODE_FILTER,
	WEIR_NODE_PROJECT,
	WEIR_NODE_UNION,
	WEIR_NODE_WINDOW,
	WEIR_NODE_AGGREGATE,
	WEIR_NODE_JOIN,
	WEIR_NODE_OVER,
	WEIR_NODE_LATEST,
	WEIR_NODE_SINK
};

/* Functions OVER (PARTITION BY keys ORDER BY the time attribute). */
struct weir_over_spec {
	uint32_t key_count;
	const struct weir_expr *const *keys; /* over the input's columns */
	uint32_t arg_count;
	const struct weir_expr *const *args;
	uint32_t fn_count;
	const struct weir_over_fn *fns; /* arg and fallback number args; agg.text is the function's */
	bool unnest;                    /* weir_build_unnest: args[0] is the array, there are no functions */
	bool outer;
};

enum weir_window_kind {
	WEIR_WINDOW_NONE,
	WEIR_WINDOW_TUMBLE,
	WEIR_WINDOW_HOP,
	WEIR_WINDOW_SESSION,
	WEIR_WINDOW_CUMULATE, /* of one start, ending at each advance up to size */
	WEIR_WINDOW_SLIDING   /* of size from end to end, both ends inclusive, where records make them differ */
};

struct weir_window_spec {
	enum weir_window_kind kind;
	int64_t size_ms, advance_ms, offset_ms, gap_ms;
	/* SESSION: spans all keys that agree in the first shared_keys group columns; else it is one key's. */
	bool shared;
	uint32_t shared_keys;
};

/* How two relations meet. Two streams need bounds in time (within); a table joins by its key. */
struct weir_join_spec {
	enum weir_join_kind kind;
	uint32_t key_count;
	const struct weir_expr *const *keys[2]; /* over the columns of each input, of equal types pairwise */
	bool versioned; /* a table on the right: its row as of the left row's time, not as of its turn */
	bool within;    /* l.time - before_ms <= r.time <= l.time + after_ms */
	int64_t before_ms, after_ms;
	/* Two tables, INNER or LEFT: the keys of the left one are any expressions, those of the right one its whole
	 * key. The result is a table by the left one's key. */
	bool foreign;
	/* Rows of two WINDOW nodes of this kind, TUMBLE or HOP: those of one window meet, when it closes (within,
	 * bounds 0). NONE: not so. */
	struct weir_window_spec window;
	int32_t time[2];                  /* column of each input that is meant, -1: its time attribute */
	const struct weir_expr *residual; /* LEFT, RIGHT, FULL: what else a match needs, over the columns of both (left
					     ones first); NULL: nothing. Of INNER it is a filter above */
	int64_t grace_ms;                 /* within; -1: the larger one of the inputs */
};

struct weir_node {
	enum weir_node_kind kind;
	uint32_t id; /* number in the topology, in order of creation */
	const char *name;
	struct weir_node *const *inputs;
	uint32_t input_count;
	const struct weir_column *columns; /* what it hands on */
	uint32_t column_count;
	int32_t rowtime;  /* column that is the time attribute, or -1: the record's own timestamp */
	int64_t grace_ms; /* how late its rows may be: the source's; 0 after an aggregate */
	bool is_table;    /* rows replace earlier ones of their key (PRIMARY KEY, plain GROUP BY, EMIT CHANGES) */
	const uint32_t *table_key; /* a table's columns that name a row; NULL: none of its columns do any more */
	/* Two rows of it may be of one key: a full join of tables on more than keys, a union of tables that no constant
	 * tells apart. */
	bool doubles;
	uint32_t table_key_count;
	/* SOURCE, SINK */
	const struct weir_table_def *table;
	/* FILTER */
	const struct weir_expr *condition;
	/* PROJECT: one per column */
	const struct weir_expr *const *exprs;
	bool rekeys; /* PROJECT: the next state takes its rows through an exchange, whatever their key */
	/* WINDOW, AGGREGATE */
	struct weir_window_spec window;
	/* AGGREGATE: columns are keys, aggregates, then (windowed) window_start, window_end, window_time. LATEST: the
	 * input's, then all of its keys */
	const struct weir_expr *const *keys; /* over the input's columns */
	uint32_t key_count;
	const struct weir_agg *aggs; /* arg and filter number the agg_args */
	uint32_t agg_count;
	const struct weir_expr *const *agg_args; /* argument and FILTER expressions over the input's columns */
	uint32_t agg_arg_count;
	const char *state_name;
	int64_t state_grace_ms;
	bool changes;         /* EMIT CHANGES */
	bool reject_null_key; /* weir_key_by */
	bool prints_rows;     /* SINK of a bare SELECT */
	/* JOIN: columns are those of the left input, then those of the right one; state_name, state_grace_ms as above
	 */
	const struct weir_join_spec *join;
	/* OVER: columns are the input's, then the functions' results; state_name, state_grace_ms as above */
	const struct weir_over_spec *over;
};

/* Whether a table that is read holds the latest row of each key, rather than a stream of records. */
bool weir_table_is_keyed(const struct weir_table_def *def);

struct weir_mem *weir_topology_mem(struct weir_topology *tp);
/* Keeps the first error: later calls are harmless and weir_topology_check returns it. Takes dg. */
void weir_topology_fail(struct weir_topology *tp, struct weir_diag *dg);
const struct weir_diag *weir_topology_error(const struct weir_topology *tp);
/* Calls destroy(ctx) when tp is destroyed; destroy NULL: nothing. */
void weir_topology_defer(struct weir_topology *tp, void (*destroy)(void *ctx), void *ctx);

/* A scan of table def (borrowed: must live in the topology's memory). Columns: all of def's, in order; the rowtime
 * column has WEIR_ROLE_ROWTIME. Two nodes over one def share one scan. Never NULL. */
struct weir_node *weir_build_source(struct weir_topology *tp, const struct weir_table_def *def);
struct weir_node *weir_build_filter(struct weir_topology *tp, struct weir_node *in, const struct weir_expr *condition);
/* names[i], exprs[i] over in's columns (arrays are copied, expressions shared). A plain reference keeps its role. */
struct weir_node *weir_build_project(struct weir_topology *tp, struct weir_node *in, const char *const *names,
				     const struct weir_expr *const *exprs, uint32_t count);
/* Whether columns a and b of n are the same in every row: one column handed on twice, or what an inner join compares.
 */
bool weir_node_same_column(const struct weir_node *n, uint32_t a, uint32_t b);
/* Whether a table's rows are all there are of a source: what a join as of a time needs. */
bool weir_node_has_versions(const struct weir_node *n);
/* Whether a table can say what its rows were: what an aggregate over it needs. Windows that change (EMIT CHANGES)
 * cannot. */
bool weir_node_knows_rows(const struct weir_node *n);
/* Whether e, over n's columns, is column k of its key: that column, or for a key that is COALESCE of two sides' the
 * same call, however it is nested. */
bool weir_node_is_key(const struct weir_node *n, const struct weir_expr *e, uint32_t k);
/* Inputs with equal column types (names of the first). Its rowtime is one where every input's is that column. Of tables
 * it is a table: its key are the inputs', which stand in the same columns, and a column that is another constant in
 * each of them; where there are no such columns its rows have no key (doubles). */
struct weir_node *weir_build_union(struct weir_topology *tp, struct weir_node *const *in, uint32_t count);
/* in's columns, then window_start, window_end (TIMESTAMP(3)) and window_time (the rowtime's type; TIMESTAMP_LTZ(3) with
 * time_column -1, the record's own timestamp). time_column must be a time attribute of in (role ROWTIME or
 * WINDOW_TIME): the caller reports it otherwise. Of a WINDOW node, window_start and window_end may only be read by the
 * aggregate over it (for TUMBLE also by filters and projections). */
struct weir_node *weir_build_window(struct weir_topology *tp, struct weir_node *in, int32_t time_column,
				    const struct weir_window_spec *window);
/* Groups in by keys (over in's columns; window columns are implied and must not be among them). window: the spec of the
 * WINDOW node below in, or NULL for a plain GROUP BY (is_table). in must still carry the rowtime column of the WINDOW
 * node (projections in between pass it on). agg[i].arg and .filter index agg_args. grace_ms -1: in's grace. Output
 * columns: key_names, agg_names, then for windows window_start, window_end, window_time. */
struct weir_node *weir_build_aggregate(struct weir_topology *tp, struct weir_node *in, const char *state_name,
				       const char *const *key_names, const struct weir_expr *const *keys,
				       uint32_t key_count, const char *const *agg_names, const struct weir_agg *aggs,
				       uint32_t agg_count, const struct weir_expr *const *agg_args,
				       uint32_t agg_arg_count, const struct weir_window_spec *window, int64_t grace_ms,
				       bool changes);
/* left and right by spec (copied); exactly one of them may be a table, and then every column of its key must be a key
 * of the join. */
struct weir_node *weir_build_join(struct weir_topology *tp, struct weir_node *left, struct weir_node *right,
				  const char *state_name, const struct weir_join_spec *spec);
/* in's columns, and behind them names[i] with the result of spec->fns[i] (copied) for each row. in is a stream with a
 * time attribute. */
/* in, with that column as its time attribute: a join of two streams hands on those of both sides, and what orders rows
 * by time says by which. Without effect where it is the one already, or is none. */
struct weir_node *weir_build_timed(struct weir_topology *tp, struct weir_node *in, uint32_t column);
struct weir_node *weir_build_over(struct weir_topology *tp, struct weir_node *in, const char *state_name,
				  const struct weir_over_spec *spec, const char *const *names);
/* in's columns, once for each element of array (over in's columns), and behind them "element" (an ARRAY of that element
 * alone: ITEM(element, 1) is it) and "ordinality" (BIGINT, from 1). outer: a row without elements stays, with NULLs. in
 * is a stream; the order of rows with equal first columns is kept. */
struct weir_node *weir_build_unnest(struct weir_topology *tp, struct weir_node *in, const char *state_name,
				    const struct weir_expr *array, bool outer);
/* A table of in's latest rows, by time attribute, of each key; of equal times the later arrival. Its columns are in's,
 * then the keys (over in's columns) under the names key_names. in is a stream with a time attribute. */
struct weir_node *weir_build_latest(struct weir_topology *tp, struct weir_node *in, const char *state_name,
				    const char *const *key_names, const struct weir_expr *const *keys,
				    uint32_t key_count);
/* in's columns must be def's persisted columns (physical, and metadata that is not virtual) in order, of equal types.
 * prints_rows: a bare SELECT; then def may be NULL. */
struct weir_node *weir_build_sink(struct weir_topology *tp, struct weir_node *in, const struct weir_table_def *def,
				  bool prints_rows);

uint32_t weir_topology_node_count(const struct weir_topology *tp);
struct weir_node *weir_topology_node(const struct weir_topology *tp, uint32_t id);

#endif
