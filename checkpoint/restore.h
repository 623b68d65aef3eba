/* restore.h: rebuilds slots, task times and input positions from the committed part of the changelog. @thread init */
#ifndef WEIR_CHECKPOINT_RESTORE_H
#define WEIR_CHECKPOINT_RESTORE_H

#include "checkpoint/snapshot.h"

struct weir_restored {
	bool found;       /* some marker was there */
	uint64_t epoch;   /* largest of all markers; the next epoch is one more */
	uint64_t records; /* read over the application's life */
	uint64_t bytes;
	int64_t *offset; /* per global partition, -1 where no marker names it; given by the caller */
	int64_t *time;   /* per global partition, WEIR_TIME_UNSET likewise */
	uint64_t frames; /* packs and images applied */
	uint64_t frame_bytes;
	bool *schema_missing; /* per stage (at least one), given by the caller: the changelog is new, the schema is to
				 be written */
	bool *held;           /* per changelog partition, given by the caller or NULL: a schema or a marker is in it */
};

struct weir_marker_input;
/* Whether a marker's input is that one: of the same topic and partition, read by the same table; markers of before name
 * no tables. */
bool weir_input_is(const struct weir_input_name *in, const struct weir_marker_input *mi);
/* Restores into cf's workers (before their first step). A fingerprint that differs is WEIR_E_CONF with the difference
 * and the `weir reset` line: app is its arguments (application and folder). */
WEIR_MUST_CHECK enum weir_err weir_restore(const struct weir_snapshot_conf *cf, const char *app,
					   struct weir_restored *out, struct weir_diag **dg);
/* Appends schema records where restore found none. Part of the first epoch. */
WEIR_MUST_CHECK enum weir_err weir_schema_write(const struct weir_snapshot_conf *cf, const struct weir_restored *rs,
						struct weir_diag **dg);

#endif
