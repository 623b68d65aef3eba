/* over_bind.h: calls with OVER in a list of expressions to an over node, for C and SQL alike: the list is bound over
 * the node's output, where such calls are columns. Cold path, @thread init. */
#ifndef WEIR_TOPOLOGY_OVER_BIND_H
#define WEIR_TOPOLOGY_OVER_BIND_H

#include "hotpath/topology/builder.h"

struct weir_over_bind {
	const struct weir_tokens *ts;
	struct weir_mem *m;
	struct weir_diag **dg;
	struct weir_scope scope; /* of the input */
	const struct weir_node *in;
	bool time_implied;                   /* ORDER BY may be left out */
	const struct weir_expr *const *keys; /* where PARTITION BY is left out; NULL: one partition then */
	uint32_t key_count;
	/* Private: */
	struct weir_buf calls; /* const struct weir_ast *: distinct ones */
	struct weir_buf args;  /* const struct weir_expr * */
	struct weir_over_fn *fns;
	uint32_t count;
	const struct weir_node *node;
};

/* Whether ast holds a call with OVER; *found, if not NULL, is the first. */
bool weir_over_bind_has(const struct weir_ast *ast, const struct weir_ast **found);
/* Takes the calls with OVER in ast. */
void weir_over_bind_add(struct weir_over_bind *ob, const struct weir_ast *ast);
/* Checks them and builds the node; all share PARTITION BY, ORDER BY is the input's time attribute. */
WEIR_MUST_CHECK enum weir_err weir_over_bind_build(struct weir_over_bind *ob, struct weir_topology *tp,
						   const char *state_name, struct weir_node **out);
/* For a scope's intercept, with ob as ctx: a call with OVER as a column of the node. */
enum weir_err weir_over_bind_intercept(void *ctx, const struct weir_ast *a, const struct weir_expr **out,
				       struct weir_diag **dg);
void weir_over_bind_fini(struct weir_over_bind *ob);

#endif
