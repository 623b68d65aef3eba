/* worker.h: one worker: decodes batches (stage 0), owns slots and folds rows into them, runs order points, encodes
 * barriers. weir_worker_step() does what can be done without waiting and says whether it did anything; a thread of
 * io/engine.c or a single-threaded driver calls it.
 *
 * Two ways through it:
 *   inline   one worker, or only direct exchanges: a batch is decoded and applied at once
 *   rings    several workers and a local exchange: batch n is decoded by worker n % N, its fragment goes to every
 * owner, owners apply strictly by seq An order point is the same in both: stage by stage, slot by slot, results into a
 * bundle; rows for later stages travel as fragments and are applied in the order (stage, slot), whichever worker
 * produced them. It cannot deadlock: rings hold as many fragments as their producer's pool has, so a push never fails;
 * a producer out of fragments serves its consumer side, and the smallest unapplied seq (at an order point: the smallest
 * unfinished slot) can always move. */
#ifndef WEIR_RUN_WORKER_H
#define WEIR_RUN_WORKER_H

#include "hotpath/core/arena.h"
#include "hotpath/core/park.h"
#include "hotpath/run/clock.h"
#include "hotpath/run/fragment.h"
#include "hotpath/run/run.h"
#include "hotpath/run/tail.h"

struct weir_worker_conf {
	const struct weir_plan *plan;
	uint32_t id;
	uint32_t count;                          /* 1..256 */
	const struct weir_routes *routes;        /* who owns which slot */
	const struct weir_output *outputs;       /* the plan's sinks, then dead-letter and late topics */
	const struct weir_scan_policy *policies; /* per scan */
	bool emit_coalesce;
	bool no_log;             /* nothing is kept: barriers make no deltas */
	int64_t future_max_ms;   /* time.future.max.ms; -1: off */
	uint32_t input_capacity; /* how many inputs io may have outstanding with this worker */
	uint32_t fragments;      /* per scan or stage: 2..64 */
	size_t bundle_bytes_max; /* a bundle's buffer that grew beyond is given back after use */
	uint32_t bundles;        /* 2..64 */
	uint64_t memory_max;  /* results that no longer fit beside all else the workers hold end the run; 0: no limit */
	uint64_t fixed_bytes; /* what its fragments take, about */
	uint64_t copies_max;  /* state is copied for faster look-ups only as long as it takes less, copies included */
};

struct weir_worker {
	struct weir_worker_conf cf;
	struct weir_worker **peers;   /* count of them, this one included; set before the first step */
	struct weir_ring input;       /* io to worker: struct weir_input */
	struct weir_ring input_back;  /* worker to io */
	struct weir_ring bundle;      /* worker to snap: struct weir_bundle */
	struct weir_ring bundle_back; /* snap to worker */
	struct weir_ring *from;       /* per producing worker: struct weir_fragment of stage 0 */
	struct weir_ring *from_stage; /* per producing worker: of later stages */
	struct weir_ring *back;       /* per owner: own fragments that it is done with */
	struct weir_park park;
	struct weir_park *io_park;   /* woken when inputs go back */
	struct weir_park *snap_park; /* woken when a bundle is ready */
	struct weir_times *times;
	struct weir_slot ***slots; /* [stage][slot], NULL where another worker owns it */
	struct weir_arena *arena;
	_Atomic uint64_t state_bytes;    /* @writer worker @reader io, any: of its arena */
	_Atomic uint64_t bundle_bytes;   /* @writer worker @reader io: results and deltas of bundles not yet written */
	_Atomic uint64_t building_bytes; /* @writer worker @reader io, workers: of bundles that are being filled */
	_Atomic uint64_t ready_seq;      /* @writer worker @reader workers: of the bundle that went last, */
	_Atomic uint64_t ready_bytes;    /* and what it takes */
	_Atomic uint64_t held_bytes;     /* @writer worker @reader io, workers: besides: fragments, what joins hold and
					    merge, buffers kept for later bundles */
	_Atomic uint64_t dirty_bytes;    /* @writer worker @reader io: what the next barrier has to write, about */
	_Atomic uint64_t dirty_grown; /* @writer worker @reader io: by how much that grew up to the last order point */
	_Atomic bool *part_ended;     /* @writer worker @reader io: per partition of a repartition topic: all that
					 feeds it is at its bound, and read */
	_Atomic bool done;            /* the last order point has been handed over and come back */
	struct weir_worker_state *st; /* the rest: worker.c */
};

/* @thread init */
WEIR_MUST_CHECK enum weir_err weir_worker_create(struct weir_worker **out, const struct weir_worker_conf *cf,
						 struct weir_diag **dg);
void weir_worker_destroy(struct weir_worker *w);
/* Takes the slots over from a worker of the same plan and number that is done: those whose number modulo partitions is
 * true in kept; the others begin empty. Before the first step. @thread init */
void weir_worker_inherit(struct weir_worker *w, struct weir_worker *former, const bool *kept, uint32_t partitions);
/* Takes those slots over, with what they hold, from a worker of the same plan and number that has never taken a step;
 * what other has besides is dropped. Before the first step. @thread init */
void weir_worker_adopt(struct weir_worker *w, struct weir_worker *other, const bool *taken, uint32_t partitions);
/* @thread worker */
bool weir_worker_step(struct weir_worker *w);

/* The worker that owns a slot. */
WEIR_INLINE struct weir_worker *weir_worker_of(const struct weir_worker *w, uint32_t slot)
{
	return w->peers[weir_routes_read(w->cf.routes)->owner[slot]];
}

#endif
