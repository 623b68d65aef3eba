/* describe.h: writing topologies and plans as text: what describe.c and io/explain.c share. Cold path, @thread any. */
#ifndef WEIR_TOPOLOGY_DESCRIBE_H
#define WEIR_TOPOLOGY_DESCRIBE_H

#include "hotpath/core/mem.h"
#include "hotpath/topology/builder.h"
#include "hotpath/topology/plan.h"

/* s as a JSON string with its quotes; invalid UTF-8 is passed on as it is. */
void weir_json_put(struct weir_buf *out, const char *s);
/* s inside the quotes of a DOT label. */
void weir_dot_put(struct weir_buf *out, const char *s);
/* 300000 as "5m", 1500 as "1.5s", 90000 as "1m30s". */
void weir_duration_put(struct weir_buf *out, int64_t ms);
/* "tumbling window of 5m", "hopping window of 1m by 10s", "sessions with a gap of 30s". */
void weir_window_put(struct weir_buf *out, const struct weir_window_spec *w);
/* "inner by order_id = order_id, 0s before to 1h after". */
void weir_join_put(struct weir_buf *out, const struct weir_node *n);
/* Kind of a node in lower case: "source", "aggregate". */
const char *weir_node_kind_name(enum weir_node_kind kind);
/* The topic that a table is: its topic or pattern, else its path, else its name. */
const char *weir_table_topic(const struct weir_table_def *def);
/* Where rows are re-keyed: what input number `input` of a node hands on comes through a repartition topic. */
struct weir_cut {
	uint32_t node; /* id */
	uint32_t input;
	const char *name; /* of the sink and source, which get -sink and -source behind it */
	const char *topic;
};
/* Kafka Streams' text, cut into sub-topologies at cuts, and the nodes as the members of a JSON object ("nodes":[...]),
 * of a topology without an error. pl tells which states nodes have; NULL: only those that were named. */
void weir_topology_put_text(const struct weir_topology *tp, const struct weir_plan *pl, const struct weir_cut *cuts,
			    uint32_t cut_count, struct weir_buf *out);
void weir_topology_put_json(const struct weir_topology *tp, struct weir_buf *out);

#endif
