/* replica.h: what a compacted partition holds, in memory: the newest record of each key as of a position, replayed in
 * the order of the log. What the broker's compaction would leave of the records below the position, so that reading it
 * and then what follows the position is reading the partition. @thread: one owner at a time */
#ifndef WEIR_IO_KAFKA_REPLICA_H
#define WEIR_IO_KAFKA_REPLICA_H

#include "hotpath/core/batch.h"
#include "hotpath/core/diag.h"

struct weir_replica_entry;
struct weir_replica {
	struct weir_replica_entry **slot; /* open addressing by the key's hash; NULL: free */
	uint32_t capacity;                /* of slot, a power of two; 0: none yet */
	uint32_t count;                   /* records that are held */
	uint64_t bytes;                   /* memory they take */
	int64_t position;                 /* everything below has been put; 0: nothing yet */
};

/* Takes in a copy of r, which stands at or behind the position and moves it behind r; a null value takes its key out.
 */
void weir_replica_put(struct weir_replica *rp, const struct weir_record *r);
/* Calls each for every record in the order of offsets, until it returns nonzero. */
enum weir_err weir_replica_each(const struct weir_replica *rp,
				enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
				void *ctx, struct weir_diag **dg);
/* Keys and values of what is held. */
uint64_t weir_replica_payload(const struct weir_replica *rp);
/* Forgets everything; {0} again. */
void weir_replica_fini(struct weir_replica *rp);

#endif
