/* planner.h: what plan.c, plan_join.c and plan_sink.c share while they build a plan. Private to hotpath/topology/.
 * @thread init. */
#ifndef WEIR_HOTPATH_TOPOLOGY_PLANNER_H
#define WEIR_HOTPATH_TOPOLOGY_PLANNER_H

#include "hotpath/topology/plan.h"

enum { PLAN_BRANCHES_MAX = 4096, PLAN_NODES_MAX = 1000000, PLAN_DEPTH_MAX = 1000 };

struct weir_plan_scan_build {
	struct weir_plan_scan scan;
	const struct weir_node *node;
	const struct weir_expr **def_exprs; /* per declared column, over declared columns (computed ones substituted) */
	bool *used;                         /* declared columns that some branch reads */
};

struct weir_plan_stage_build {
	struct weir_plan_stage stage;
	const struct weir_node *node;
	bool busy;                               /* being built: guards against a cycle */
	const uint32_t *rows_column;             /* ROWS: the table's column that each of the stage's is */
	const struct weir_expr *const *join_map; /* JOIN: the node's columns over the stage's; NULL: behind the keys */
};

struct weir_planner {
	struct weir_topology *tp;
	struct weir_mem *m;
	const struct weir_plan_settings *settings;
	struct weir_plan_scan_build *scans;
	uint32_t scan_count, scan_capacity;
	struct weir_plan_stage_build *stages;
	uint32_t stage_count, stage_capacity;
	struct weir_plan_sink *sinks;
	uint32_t sink_count, sink_capacity;
	struct weir_plan_branch *branches;
	uint32_t branch_count, branch_capacity;
	struct weir_diag **dg;
};

/* What a walk brings to the node it has reached: a list of expressions over its columns. */
struct weir_plan_load {
	const struct weir_expr **exprs;
	uint32_t count;
	const struct weir_expr *filter; /* NULL: all rows */
	const struct weir_expr *time;   /* event time, where it is not the rows' own; NULL: it is */
	enum weir_branch_to to;
	uint32_t target;
	uint32_t side;
	bool table;  /* the walk is into a table */
	bool rekeys; /* it has passed weir_repartition */
};

/* Room for one more element in an array that lives in m (old copies stay there: plans are small). */
void *weir_planner_grow(struct weir_mem *m, void *array, uint32_t count, uint32_t *capacity, size_t bytes);
/* WEIR_E_PLAN with a message, `what` a format with one %s for name. */
enum weir_err weir_planner_fail(struct weir_planner *p, const char *what, const char *name);
/* The metadata column of that name, WEIR_META_NONE where there is none. */
enum weir_meta weir_planner_meta(const char *name);

/* Makes st keep the newest row by key, by a number that each row carries: columns are the keys, the number, the rest.
 * names and types are kept. */
enum weir_err weir_planner_numbered_rows(struct weir_planner *p, struct weir_plan_stage *st, uint32_t keys,
					 uint32_t count, const char **names, struct weir_type *types);

/* Goes up from node with what is wanted of its columns, until sources and stages are met: each is one branch. */
enum weir_err weir_planner_walk(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load ld,
				uint32_t depth);
enum weir_err weir_planner_branch_add(struct weir_planner *p, struct weir_plan_branch br);
/* A new stage for node, busy until the caller says otherwise. */
enum weir_err weir_planner_stage_add(struct weir_planner *p, const struct weir_node *node, const char *name,
				     uint32_t *out);
/* Puts map's expressions where ld reads columns. */
void weir_planner_substitute(struct weir_planner *p, const struct weir_expr *const *map, uint32_t map_count,
			     struct weir_plan_load *ld);
/* Marks the columns that ld reads. */
void weir_planner_load_used(const struct weir_plan_load *ld, bool *used, uint32_t count);
/* window_end - 1 ms as a time attribute of that type. */
enum weir_err weir_planner_window_time(struct weir_planner *p, const struct weir_expr *end,
				       const struct weir_type *type, const struct weir_expr **out);
const struct weir_expr *weir_planner_time_column(struct weir_planner *p, const struct weir_node *node, int32_t column);

/* plan_join.c: the stage of a join, of a table on its way to a sink, and of a table's old and new rows. */
enum weir_err weir_planner_join(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out);
enum weir_err weir_planner_rows(struct weir_planner *p, const struct weir_node *node, const struct weir_plan_load *ld,
				uint32_t *out);
enum weir_err weir_planner_history(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out);
/* Leaves only those columns in a join that somebody reads, and rewrites the branches on both sides of it. */
void weir_planner_join_prune(struct weir_planner *p, uint32_t stage);
/* plan_foreign.c: the stages of a join by a foreign key; ld is rewritten over the result's columns. */
enum weir_err weir_planner_foreign(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld,
				   uint32_t depth, uint32_t *out);
/* Adds the number of each row to what ld reads of stage `origin`, a join of tables. */
void weir_planner_number(struct weir_planner *p, uint32_t origin, struct weir_plan_load *ld);

/* Whether column c of side s of a join is the key k in every branch, so that the key's bytes give it back exactly. */
bool weir_planner_is_key_column(const struct weir_planner *p, uint32_t stage, uint32_t s, uint32_t c, uint32_t k);

/* plan_latest.c: the stage of a stream's latest rows; ld is rewritten over its columns. */
enum weir_err weir_planner_latest(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld,
				  uint32_t depth, uint32_t *out);

/* node's columns in ld become those of its input. */
void weir_planner_latest_inputs(struct weir_planner *p, const struct weir_node *node, struct weir_plan_load *ld);

/* plan_over.c: the stage of functions OVER. */
enum weir_err weir_planner_over(struct weir_planner *p, const struct weir_node *node, uint32_t depth, uint32_t *out);
/* node's columns in ld become those of its stage. */
void weir_planner_over_columns(struct weir_planner *p, const struct weir_node *node, uint32_t stage,
			       struct weir_plan_load *ld);
/* Leaves only those columns and functions that somebody reads, and rewrites the branches on both sides. */
void weir_planner_over_prune(struct weir_planner *p, uint32_t stage);

/* plan_sink.c: a sink with all its branches. */
enum weir_err weir_planner_sink_add(struct weir_planner *p, const struct weir_node *node);

#endif
