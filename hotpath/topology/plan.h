/* plan.h: what runs. The relation graph of builder.h flattened into scans, stages, sinks and the branches between them:
 *
 *   scan  --branch-->  stage  --branch-->  stage ...  --branch-->  sink
 *
 * A *branch* is everything stateless between two of those: one filter and a list of expressions over the columns of its
 * origin (filters AND-ed, projections substituted, UNION ALL becomes several branches). A scan is read once however
 * many branches leave it.
 *
 * A *join* is a stage with two inputs, each of one or more branches:
 *
 *   branches of side 0  --keys, columns--\\
 *                                         > held by (lane), merged at the order point --> join_state --> rows
 *   branches of side 1  --keys, columns--/
 *
 *   side     a table (latest row by key; a row that its filter drops, or a null value, deletes), or a stream: kept in
 *            generations by time if the other side is one, too, and not at all beside a table
 *   lane     (branch, source partition) or (branch, upstream slot): the unit that is in order, whose time counts
 *   columns  of the stage: keys, then the columns of side 0 that somebody reads, then those of side 1. A column that is
 *            a key itself is not kept twice
 *   bounds   l.time - before <= r.time <= l.time + after, keep = before + after + grace: join_state.h
 *
 * (run/join.c says how lanes are merged.) Immutable once made, shared by all threads; programs are compiled from it per
 * worker. Built on
 * @thread init, in the topology's memory. */
#ifndef WEIR_TOPOLOGY_PLAN_H
#define WEIR_TOPOLOGY_PLAN_H

#include "hotpath/topology/builder.h"

enum weir_meta {
	WEIR_META_NONE,
	WEIR_META_TOPIC,
	WEIR_META_PARTITION,
	WEIR_META_OFFSET,
	WEIR_META_TIMESTAMP,
	WEIR_META_TIMESTAMP_TYPE,
	WEIR_META_HEADERS, /* MAP<STRING, BYTES> as JSON text, values base64 */
	WEIR_META_LEADER_EPOCH
};

/* A table that is read. Its columns, in this order: value fields, key fields, metadata. */
struct weir_plan_scan {
	const struct weir_table_def *table;
	const char *name;
	struct weir_format_options value_format; /* the table's; the engine adds the job's bounds */
	struct weir_format_options key_format;
	uint32_t value_count;
	const struct weir_field *value_fields; /* what the decoder of the value is asked for */
	uint32_t key_count;
	const struct weir_field *key_fields;
	uint32_t all_count; /* every physical column of the value, for layout-bound formats */
	const struct weir_field *all_fields;
	uint32_t meta_count;
	const enum weir_meta *metas;
	const struct weir_type *meta_types;
	uint32_t column_count; /* value_count + key_count + meta_count */
	const char *const *column_names;
	const struct weir_type *column_types;
	const struct weir_expr *time; /* over those columns; NULL: the record's timestamp */
	bool allow_negative_time;
	bool reject_null_value; /* some branch needs a value (plain GROUP BY, a join) */
	bool is_table;  /* has a PRIMARY KEY: its columns come from the record's key, a null value deletes and has the
			   record's own timestamp */
	bool is_global; /* read before other scans until its end is reached, and whenever it has more */
	int32_t repartition; /* reads this repartition topic; -1: an ordinary source */
	int64_t grace_ms;
	uint32_t branch_count;
	const uint32_t *branches;
	/* Set by the engine when the source is open. */
	uint32_t partition_count;
	uint32_t partition_base; /* its partition p is global partition partition_base + p */
};

enum weir_exchange { WEIR_EXCHANGE_DIRECT, WEIR_EXCHANGE_LOCAL };

/* A window, session or plain table state. Its columns: keys, aggregates, then window_start, window_end (not for TABLE).
 * ROWS, JOIN: keys, then the columns of each side. OVER: keys, the input's columns, functions. */
struct weir_plan_stage {
	struct weir_state_def def;
	const char *name; /* state name */
	uint32_t node;    /* id of the topology's node whose state it is: several where each reader has its own */
	enum weir_exchange exchange;
	const char *exchange_why; /* for explain */
	uint32_t level;           /* 1: fed by scans alone; else 1 + the highest feeding stage */
	uint32_t slot_count;      /* set by the engine: partitions (direct) or `slots` (local) */
	uint32_t key_count;
	uint32_t agg_arg_count;
	uint32_t column_count;
	const char *const *column_names;
	const struct weir_type *column_types;
	bool reject_null_key;
	/* JOIN with a global table whose other side stays where it is: a slot for each of its partitions, and each has
	 * the whole table. Direct, but all partitions of the table must be here. */
	bool broadcast;
	bool retracts; /* JOIN of tables: hands on what a row was, to be taken out, and what it is now */
	const struct weir_expr *residual; /* JOIN: what else a match needs, over the stage's columns; NULL: nothing */
	int64_t hold_ms;                  /* stage time = task time - hold_ms (design.md section 3) */
	uint32_t input_count;             /* branches that end here */
	const uint32_t *inputs;
	uint32_t branch_count; /* branches that start here */
	const uint32_t *branches;
};

struct weir_plan_sink {
	const struct weir_table_def *table; /* NULL: bare SELECT */
	const char *name;
	bool prints_rows;
	uint32_t column_count;
	const char *const *column_names;
	const struct weir_type *column_types;
	/* Which columns the key and the value are made of. */
	bool has_key;
	struct weir_format_options key_format;
	bool key_windowed; /* inner key, then the window's bounds (semantics.md section 6) */
	bool key_session;
	int32_t window_start_column, window_end_column; /* -1 unless key_windowed */
	uint32_t key_count;
	const uint32_t *key_columns;
	struct weir_format_options value_format;
	uint32_t value_count;
	const uint32_t *value_columns;
	int32_t timestamp_column; /* METADATA timestamp written by the sink, -1: the result timestamp */
	int32_t headers_column;   /* METADATA headers, -1: none */
	uint32_t required_count;
	const uint32_t *required; /* columns declared NOT NULL, outside the key, that the query may make NULL */
	bool is_table;            /* fed by a table: deletes are null values, print has ops */
	bool changelog;           /* values say what happens to the row: what it was comes before what it becomes */
	bool whole;               /* it wants what rows were: a changelog, or what prints rows that have no key */
	int32_t repartition;      /* writes this repartition topic; -1: an ordinary sink */
};

/* A topic exchange: rows of the branches `inputs` (a stage's, or those of one side of a join) go through a repartition
 * topic, written by a sink and read by a scan that feeds the stage directly. Rows that leave a table travel as rows
 * with a mark (hotpath/run/exchange.h). Upstream slots are the source partitions (or slots of a stage) that the rows
 * come from, numbered branch by branch; every instance numbers them alike. */
struct weir_plan_repartition {
	const char *topic;
	uint32_t sink;
	uint32_t scan;
	uint32_t stage;
	uint32_t input_count;
	const uint32_t *inputs; /* branches into the sink */
	uint32_t *base;         /* per input: its first upstream slot. Set by the engine, as is: */
	uint32_t upstream_count;
};

enum weir_branch_from { WEIR_FROM_SCAN, WEIR_FROM_STAGE };
enum weir_branch_to { WEIR_TO_STAGE, WEIR_TO_SINK };

struct weir_plan_branch {
	enum weir_branch_from from;
	uint32_t origin; /* scan or stage */
	enum weir_branch_to to;
	uint32_t target;                /* stage or sink */
	const struct weir_expr *filter; /* NULL: all rows */
	uint32_t expr_count; /* TO_STAGE: keys, then aggregate arguments or columns; TO_SINK: the sink's columns */
	const struct weir_expr *const *exprs;
	bool reject_null_value; /* a null value on a stream into a plain GROUP BY or a join */
	uint32_t side;          /* into a JOIN: which one */
	bool retracts;          /* rows come and go: the stage's op says which */
	bool rekeys;            /* its rows go through an exchange, whatever their key */
	bool global;            /* into a join, from a global table: its rows come first, its time does not count */
	bool table;             /* into a table (ROWS, a side of a JOIN): what the filter drops is deleted */
	bool needs_key;         /* into a table: rows whose key columns are all NULL are refused */
	const struct weir_expr *time; /* from a JOIN into a stage: event time of the rows; NULL: their own timestamp */
};

struct weir_plan {
	uint32_t scan_count;
	struct weir_plan_scan *scans;
	uint32_t stage_count;
	struct weir_plan_stage *stages; /* ascending level */
	uint32_t sink_count;
	struct weir_plan_sink *sinks;
	uint32_t branch_count;
	struct weir_plan_branch *branches;
	uint32_t level_count; /* highest level of a stage, 0: stateless */
	bool force_local;     /* exchange=local */
	bool route_direct;    /* every scan's branches end in direct stages or sinks: batches go to the slot's owner */
	struct weir_mem *mem; /* the topology's */
	uint32_t repartition_count;
	struct weir_plan_repartition *repartitions; /* exchange=topic */
	/* Set by the engine. */
	uint32_t partition_count; /* of all scans together */
};

struct weir_plan_settings {
	enum { WEIR_PLAN_EXCHANGE_AUTO, WEIR_PLAN_EXCHANGE_LOCAL, WEIR_PLAN_EXCHANGE_TOPIC } exchange;
	bool task_time_max;
	bool emit_coalesce;
	uint32_t elements_max; /* values that an aggregate keeps of a group one by one, at most; 0: the default */
	int64_t state_ttl_ms;  /* state.ttl, 0: none */
	const char *app;       /* prefix of state names that have none, and of repartition topics */
};

/* Flattens the graph of tp. Fails with what cannot run: no sink, an aggregate over a table, ... */
WEIR_MUST_CHECK enum weir_err weir_plan_create(struct weir_plan **out, struct weir_topology *tp,
					       const struct weir_plan_settings *settings, struct weir_diag **dg);
/* repartition.c: puts a repartition topic before every stage that its sources' keys do not feed directly, and before
 * either side of a join that needs one. Part of weir_plan_create for exchange=topic; m is the topology's. */
void weir_plan_repartition(struct weir_plan *pl, const char *app, struct weir_mem *m);
/* The key of a source's records, as far as a stage's keys are made of its columns. */
struct weir_plan_source_key {
	uint32_t count;
	uint32_t position[64]; /* which of the stage's keys each of its columns is */
	struct weir_format_options format;
};
/* False: br comes from no source, or the source's key columns are not all keys of the stage, unchanged. */
bool weir_plan_source_key(const struct weir_plan *pl, const struct weir_plan_branch *br, uint32_t key_count,
			  struct weir_plan_source_key *out);
/* Whether the sources' own keys feed a stage: what decides between a direct and any other exchange, equal partition
 * counts aside. *why says why not. */
bool weir_plan_keyed_alike(const struct weir_plan *pl, const struct weir_plan_stage *st, const char **why);
/* Upstream slot of rows that come by branch (into a repartition topic) from slot or partition `from`. */
uint32_t weir_plan_upstream(const struct weir_plan *pl, uint32_t branch, uint32_t from);
/* Called when partition counts are known: exchange kinds that need equal counts, slots, partition numbering. */
WEIR_MUST_CHECK enum weir_err weir_plan_bind(struct weir_plan *pl, const uint32_t *scan_partitions, uint32_t slots,
					     struct weir_diag **dg);
/* Whether workers encode a stage's rows for sinks as they come; else snap reads closed windows. */
WEIR_INLINE bool weir_plan_stage_streams(const struct weir_plan_stage *st)
{
	return st->def.changes || st->def.kind == WEIR_STATE_JOIN || st->def.kind == WEIR_STATE_OVER;
}
/* Whether a stage keeps nothing across an order point: UNNEST, flat_map. Its rows can stay where they are read. */
bool weir_plan_stage_is_transient(const struct weir_plan_stage *st);
/* Stages that have a changelog: all of them, or none where none keeps anything. */
uint32_t weir_plan_kept_stages(const struct weir_plan *pl);
/* Whether a stage needs all partitions of its sources in one process. */
WEIR_INLINE bool weir_plan_stage_alone(const struct weir_plan_stage *st)
{
	return st->exchange != WEIR_EXCHANGE_DIRECT || st->broadcast;
}
/* What bounds a stage's state: windows, bounds of joins and grace; state.ttl; or nothing, so that it grows with the
 * keys there are: state.ttl could bound it, or not even that (rows are taken back, or a table is wanted whole). */
enum weir_plan_growth { WEIR_GROWTH_BOUNDED, WEIR_GROWTH_TTL, WEIR_GROWTH_KEYS, WEIR_GROWTH_KEYS_ALWAYS };
enum weir_plan_growth weir_plan_growth_of(const struct weir_plan *pl, const struct weir_plan_stage *st);
/* Partition i of changelog of stage: how many, and where a slot lives. */
uint32_t weir_plan_changelog_partitions(const struct weir_plan *pl, const struct weir_plan_stage *st);

#endif
