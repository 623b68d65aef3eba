/* datagen.h: connector datagen: rows out of nothing, as a partitioned log (io/stream.h) of one partition whose records
 * carry packed rows of the table's physical columns. Row n depends on the seed, the column's name and n alone, so
 * reading can go on anywhere and gives the same rows. @thread io */
#ifndef WEIR_IO_DATAGEN_H
#define WEIR_IO_DATAGEN_H

#include "hotpath/topology/builder.h"
#include "io/stream.h"

struct weir_datagen_spec {
	const struct weir_table_def *table; /* options and columns; borrowed for the log's life */
	int64_t base_ms;                    /* timestamp of row 0; 0: 2026-01-01 for bounded tables, else now */
	int64_t (*clock_ms)(void);          /* for rows-per-second; NULL: the monotonic clock */
};
/* live, which may be NULL: rows come for ever.
 * Options of the table, checked against its columns:
 *   number-of-rows           bounded; else rows come for ever, but where a sequence ends
 *   rows-per-second          0: as fast as they are read. Not given: 10,000 for unbounded tables, 0 for bounded ones.
 *                            Timestamps move at this rate (10,000 where it is 0)
 *   seed                     0
 *   fields.<c>.kind          random, sequence (then start and end; the table ends with its shortest sequence)
 *   fields.<c>.min, max      numbers, inclusive. Default: integers and DECIMAL their range, FLOAT and DOUBLE 0 to 1
 *   fields.<c>.length        characters or bytes, 100 unless the type says less; fields.<c>.var-len: at most so many
 *   fields.<c>.max-past      TIMESTAMP: up to so long before the record's timestamp, which it is else
 *   fields.<c>.null-rate     0 to 1 */
WEIR_MUST_CHECK enum weir_err weir_datagen_open(struct weir_stream_log **out, const struct weir_datagen_spec *spec,
						bool *live, struct weir_diag **dg);

#endif
