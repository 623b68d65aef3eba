/* fragment.h: one instance of the stateless part between two exchanges: columns, decoders and programs of a batch. A
 * worker has a few, so that a batch can wait for its owners while the next is decoded. @thread worker (the producer);
 * owners only read. */
#ifndef WEIR_RUN_FRAGMENT_H
#define WEIR_RUN_FRAGMENT_H

#include "hotpath/run/route.h"
#include "hotpath/run/run.h"
#include "hotpath/run/tail.h"

struct weir_fragment_conf {
	const struct weir_plan *plan;
	uint32_t worker_count;
	const struct weir_routes *routes;
};

/* A fragment for batches of a scan: decodes and runs every branch of it that ends in a stage. @thread init */
WEIR_MUST_CHECK enum weir_err weir_fragment_create_scan(struct weir_fragment **out, const struct weir_fragment_conf *cf,
							uint32_t scan, struct weir_diag **dg);
/* A fragment for rows of a stage on their way to later stages. @thread init */
WEIR_MUST_CHECK enum weir_err weir_fragment_create_stage(struct weir_fragment **out,
							 const struct weir_fragment_conf *cf, uint32_t stage,
							 struct weir_diag **dg);
void weir_fragment_destroy(struct weir_fragment *fr);

/* Decodes fr->input: columns, event times, running maxima; bad records go to fr->errors and leave fr->sel. */
void weir_fragment_decode(struct weir_fragment *fr, const struct weir_plan *pl);
/* The accepted records that have a value; the others are appended to errors (a null value on a stream). */
void weir_fragment_valued(const struct weir_fragment *fr, struct weir_sel *sel, struct weir_row_errors *errors);
/* Runs branch i of fr->branches over fr->sel (stage 0) or all rows of fr->rows (later stages): filter, projection,
 * keys, slots, grouping by owner. Returns rows filtered out; failed rows are appended to errors. */
uint32_t weir_fragment_run(struct weir_fragment *fr, const struct weir_fragment_conf *cf, uint32_t i,
			   struct weir_row_errors *errors);

#endif
