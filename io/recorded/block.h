/* block.h: reference-counted memory for stored batches and a pool of it, so that a warmed-up reader allocates nothing.
 * @thread io: a pool and its blocks belong to one thread. */
#ifndef WEIR_IO_RECORDED_BLOCK_H
#define WEIR_IO_RECORDED_BLOCK_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"

#define WEIR_POOL_CLASSES        40
#define WEIR_POOL_IDLE_BYTES_MAX (64u << 20) /* beyond it a returned block is freed */

struct weir_block {
	struct weir_block *next; /* in the pool */
	struct weir_buf buf;     /* capacity has WEIR_PAYLOAD_PAD bytes beyond what was asked for */
	uint32_t refs;
};
struct weir_pool {
	struct weir_block *idle[WEIR_POOL_CLASSES]; /* [c]: capacity >= 1 << c */
	size_t bytes_idle;
};

void weir_pool_fini(struct weir_pool *pl);
/* An empty block with room for bytes and the pad, one reference. */
struct weir_block *weir_pool_take(struct weir_pool *pl, size_t bytes);
/* Gives a reference back; the last one returns the block. NULL is fine. */
void weir_pool_drop(struct weir_pool *pl, struct weir_block *bk);
WEIR_INLINE struct weir_block *weir_block_ref(struct weir_block *bk)
{
	bk->refs++;
	return bk;
}

#endif
