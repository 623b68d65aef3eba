/* block.h: reference-counted memory for stored batches and a pool of it, so that a warmed-up reader allocates nothing;
 * and the same over pages of a file, which are read where the kernel has them. @thread io: a pool and its blocks belong
 * to one thread. */
#ifndef WEIR_IO_RECORDED_BLOCK_H
#define WEIR_IO_RECORDED_BLOCK_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"

#define WEIR_POOL_CLASSES        40
#define WEIR_POOL_IDLE_BYTES_MAX (64u << 20) /* beyond it a returned block is freed, unless the pool says otherwise */

struct weir_block {
	struct weir_block *next; /* in the pool */
	struct weir_buf buf;     /* capacity has WEIR_PAYLOAD_PAD bytes beyond what was asked for */
	uint32_t refs;
	void *map; /* not NULL: buf lies in this mapping of a file, and the block is never in the pool */
	size_t map_bytes;
	size_t counted; /* of it in bytes_held */
};
struct weir_pool {
	struct weir_block *idle[WEIR_POOL_CLASSES]; /* [c]: capacity >= 1 << c */
	size_t bytes_idle;
	size_t idle_bytes_max; /* 0: WEIR_POOL_IDLE_BYTES_MAX */
	uint64_t bytes_held;   /* of all its blocks, idle, out or mapped, and what its owner adds */
};

void weir_pool_fini(struct weir_pool *pl);
/* An empty block with room for bytes and the pad, one reference. */
struct weir_block *weir_pool_take(struct weir_pool *pl, size_t bytes);
/* Gives a reference back; the last one returns the block. NULL is fine. */
void weir_pool_drop(struct weir_pool *pl, struct weir_block *bk);
/* Counts in bytes_held what a block, which may have grown or been populated, takes now. */
void weir_pool_count(struct weir_pool *pl, struct weir_block *bk);
/* Bytes [at, at + bytes) of a file as a block of one reference, none of them usable yet (buf.bytes 0, buf.capacity
 * bytes). They are followed by whatever follows in the file: at + bytes + WEIR_PAYLOAD_PAD must be in a page that the
 * file reaches. NULL: errno. */
struct weir_block *weir_block_map(int fd, uint64_t at, size_t bytes);
/* Makes the first bytes of a mapped block usable (buf.bytes): all in memory, so that touching them neither waits nor
 * fails, unless the file is truncated, which must not happen (SIGBUS). False: errno; EINVAL: this kernel never can. */
WEIR_MUST_CHECK bool weir_block_populate(struct weir_block *bk, size_t bytes);
/* Length of a page of memory. */
size_t weir_page_bytes(void);
WEIR_INLINE size_t weir_pool_idle_max(const struct weir_pool *pl)
{
	return pl->idle_bytes_max != 0 ? pl->idle_bytes_max : WEIR_POOL_IDLE_BYTES_MAX;
}
WEIR_INLINE struct weir_block *weir_block_ref(struct weir_block *bk)
{
	bk->refs++;
	return bk;
}

#endif
