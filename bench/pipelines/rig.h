/* rig.h: the main job (revenue per merchant in windows of five minutes) for the programs of this folder: its topology,
 * and workers (one, or several on one thread) that are fed recorded orders from memory, without io and snapshotter.
 * @thread init, one thread */
#ifndef WEIR_BENCH_RIG_H
#define WEIR_BENCH_RIG_H

#include "io/core.h"

/* The job from the recorded topic order.placed in folder in; out NULL: into a blackhole. NULL with *dg where it does
 * not compile. */
struct weir_topology *weir_rig_topology(const char *in, const char *out, struct weir_diag **dg);

struct weir_rig {
	struct weir_core core;     /* plan, stream, routes and workers; no log, no snapshotter, no feed */
	struct weir_worker *w;     /* the first */
	struct weir_input *inputs; /* batch_count batches of WEIR_BATCH_ROWS orders, partition by partition */
	uint32_t batch_count;
	struct weir_unit **units; /* that the records lie in */
	uint32_t unit_count;
	uint64_t seq;
	uint64_t applied; /* rows that the worker has counted as applied, as of the last order point */
	/* The two halves by themselves. */
	struct weir_fragment **fragments; /* per batch: decoded, keyed, ready to be folded */
	struct weir_decoder *decoder;     /* of the value, as a fragment has it */
	struct weir_col *cols;
	struct weir_scratch scratch;
	struct weir_row_errors errors;
	struct weir_applied out;
};

/* Reads batch_count batches from the topic, partition after partition, and folds them once: every key is there then.
 * Several workers, all stepped by the caller, exchange rows by rings. The halves exist for one worker only. */
WEIR_MUST_CHECK enum weir_err weir_rig_create(struct weir_rig **out, const char *in, uint32_t batch_count,
					      uint32_t workers, struct weir_diag **dg);
void weir_rig_destroy(struct weir_rig *rig);

/* Batches through the worker as the engine drives it: input ring, decode, keys, state, input back; an order point every
 * 64 of them. */
void weir_rig_run(struct weir_rig *rig, uint32_t batches);
/* The same records decoded only, and only folded into state. */
void weir_rig_decode(struct weir_rig *rig, uint32_t batches);
void weir_rig_fold(struct weir_rig *rig, uint32_t batches);

/* Seconds of CPU this thread has used. */
double weir_rig_cpu(void);

#endif
