/* snapshot.h: the snapshotter: takes an order point from io and one bundle from every worker, writes results in the
 * fixed order (stage, slot, order within the slot), at a barrier writes deltas and markers and commits. @thread snap
 *
 *   IDLE --point--> GATHERING --every worker's bundle--> writing, cut, [deltas, markers, commit] --> IDLE
 *
 * Writing is one step: snap has nothing else to do meanwhile, and io feeds on up to epochs.in.flight.
 * On recorded topics results, changelog and offsets share one commit file, so at_least_once and at_most_once deliver as
 * exactly_once does. */
#ifndef WEIR_CHECKPOINT_SNAPSHOT_H
#define WEIR_CHECKPOINT_SNAPSHOT_H

#include "checkpoint/changelog.h"
#include "hotpath/run/worker.h"

/* An input partition as markers name it. */
struct weir_input_name {
	const char *topic;
	const char *table;            /* that reads it: others may, too, or one of that name elsewhere */
	uint32_t partition;           /* within the topic */
	uint32_t changelog_partition; /* whose marker holds its offset */
};

struct weir_snapshot_conf {
	const struct weir_plan *plan;
	const struct weir_output *outputs;
	uint32_t output_count;
	const uint32_t *output_topic; /* per output: the log's topic number (TOPIC only) */
	struct weir_log *log;         /* NULL: nothing is kept (print, blackhole) */
	const uint32_t *state_topic;  /* per stage, or one for markers alone if there is none: the log's topic number */
	uint32_t changelog_partitions;
	const struct weir_input_name *inputs; /* per global partition */
	const bool *owned;                    /* per global partition: this instance reads it; NULL: all of them */
	struct weir_buf *markers; /* per stage and changelog partition: the newest marker goes here; NULL: nowhere */
	const bool *kept;         /* per changelog partition: its slots are there already, as of markers; NULL: none */
	struct weir_worker **workers;
	uint32_t worker_count;
	uint32_t (*partition_by_key)(const void *key, size_t bytes); /* murmur2 & 0x7fffffff */
	int (*write_text)(void *ctx, const char *data,
			  size_t bytes); /* print outputs; nonzero: nobody reads any more */
	void *text_ctx;
	/* Refusals, for the log: one with its text, or count of them without. */
	void (*note)(void *ctx, const char *text, uint64_t count);
	void (*warn)(void *ctx, const char *text); /* the same ctx */
	void *note_ctx;
};

struct weir_snapshot;
/* Copies cf's pointers. @thread init */
WEIR_MUST_CHECK enum weir_err weir_snapshot_create(struct weir_snapshot **out, const struct weir_snapshot_conf *cf,
						   struct weir_diag **dg);
void weir_snapshot_destroy(struct weir_snapshot *sn);

struct weir_ring *weir_snapshot_points(struct weir_snapshot *sn); /* io to snap: struct weir_point */
struct weir_ring *
weir_snapshot_back(struct weir_snapshot *sn); /* snap to io: points that are written (and committed) */
struct weir_park *weir_snapshot_park(struct weir_snapshot *sn);
void weir_snapshot_set_io_park(struct weir_snapshot *sn, struct weir_park *pk);

/* Does what can be done; *moved says whether anything was. An error is final: nothing uncommitted will become visible.
 */
WEIR_MUST_CHECK enum weir_err weir_snapshot_step(struct weir_snapshot *sn, bool *moved, struct weir_diag **dg);
/* Nobody reads the text output any more. @thread any */
bool weir_snapshot_text_closed(const struct weir_snapshot *sn);

/* Sums over workers, as of the last order point. @thread any (relaxed) */
struct weir_snapshot_stats {
	_Atomic uint64_t read, applied, late, late_windows, rejected, filtered, results, windows, agg_errors,
		implausible, epochs, state_entries, state_bytes;
};
const struct weir_snapshot_stats *weir_snapshot_stats(const struct weir_snapshot *sn);

#endif
