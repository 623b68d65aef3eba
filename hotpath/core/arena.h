/* arena.h: memory of state. Two layers:
 *
 *   struct weir_arena    one per worker: extents from a jemalloc arena of its own (plain memory without jemalloc), and
 *                        the count of bytes taken, which memory.max is held against
 *   struct weir_blocks   one per slot: blocks of a power of two carved from extents, kept on free lists by size, so
 * that windows that open and close in a steady stream ask the allocator for nothing
 *
 * A block of up to WEIR_BLOCK_CARVED bytes is aligned to its own size (pages rely on it) and its memory stays with the
 * slot until weir_blocks_fini. Larger blocks come straight from the arena, aligned to 64 bytes or more; of those that
 * are a power of two the last one given back per size is kept. What is read at random, index segments, comes in pieces
 * of huge pages that all slots of the arena share: a miss of the TLB costs as much as one of the cache, on a virtual
 * machine more. @thread worker (the owner), except weir_arena_bytes. */
#ifndef WEIR_CORE_ARENA_H
#define WEIR_CORE_ARENA_H

#include "hotpath/core/base.h"

#define WEIR_BLOCK_LOG2_MIN    6  /* 64 B */
#define WEIR_BLOCK_LOG2_CARVED 14 /* 16 KiB */
#define WEIR_BLOCK_CARVED      (UINT32_C(1) << WEIR_BLOCK_LOG2_CARVED)
#define WEIR_BLOCK_LOG2_MAX    40
#define WEIR_EXTENT_BYTES_MIN  (UINT32_C(16) << 10)
#define WEIR_EXTENT_BYTES_MAX  (UINT32_C(1) << 20)
#define WEIR_EXTENT_HUGE_FROM  (UINT64_C(8) << 20) /* a slot that holds this much takes extents of WEIR_HUGE_BYTES */
/* From this size on memory is aligned for huge pages and asks for them. */
#define WEIR_HUGE_BYTES ((size_t)2 << 20)

struct weir_arena;
/* Never NULL: out of memory at start stops the process. @thread init */
struct weir_arena *weir_arena_create(void);
/* Every weir_blocks of it must be gone. NULL is fine. @thread init */
void weir_arena_destroy(struct weir_arena *ar);
/* Bytes its slots hold now, free blocks included. @thread any */
uint64_t weir_arena_bytes(const struct weir_arena *ar);
/* All that from holds is to's from here on; the blocks are told by weir_blocks.ar. @thread init */
void weir_arena_absorb(struct weir_arena *to, struct weir_arena *from);
/* bytes aligned to `align` (a power of two >= 64); stops the process when the system gives nothing: memory.max is
 * judged before, at order points. */
void *weir_arena_take(struct weir_arena *ar, size_t bytes, size_t align);
void weir_arena_give(struct weir_arena *ar, void *p, size_t bytes, size_t align);
/* Has the system put memory behind an extent that a slot has just begun, so that its worker need not wait for each
 * page. Does nothing where there is none; what is in the extent stays. @thread any but the worker's, one at a time */
void weir_arena_back(struct weir_arena *ar);
/* Of the whole process: where `counted` bytes that are in use, with twice what the allocator keeps for later, are more
 * than max, gives what is kept back to the system. Costs next to nothing while counted is far below max. @thread any */
void weir_memory_trim(uint64_t counted, uint64_t max);
struct weir_block {
	struct weir_block *next;
};
struct weir_extent {
	void *base;
	uint32_t bytes;
};
struct weir_blocks {
	struct weir_arena *ar;
	struct weir_block *free[WEIR_BLOCK_LOG2_CARVED + 1];
	void *kept[WEIR_BLOCK_LOG2_MAX + 1]; /* one block per size above WEIR_BLOCK_CARVED */
	uint64_t kept_bytes;
	uint64_t bytes_peak; /* the most ever handed out, as of the last extent or large block */
	struct weir_extent *extents;
	uint32_t extent_count;
	uint32_t extent_capacity;
	uint32_t extent_bytes_next;
	uint64_t extent_bytes; /* of all extents */
	uint64_t bytes_used;   /* blocks handed out */
	bool plain;          /* no huge pages for extents: set behind weir_blocks_init. For what is written once, front
			      * to back, they save little, and where memory is in pieces they cost three times as much */
	uint64_t takes_slow; /* times the arena was asked: tests check that a steady state asks for nothing */
};
void weir_blocks_init(struct weir_blocks *bl, struct weir_arena *ar);
/* Gives all extents back; whatever was taken from bl is gone, blocks above WEIR_BLOCK_CARVED must have been given. */
void weir_blocks_fini(struct weir_blocks *bl);
/* Not zeroed. Give back with the same size. */
void *weir_blocks_take(struct weir_blocks *bl, size_t bytes);
void weir_blocks_give(struct weir_blocks *bl, void *p, size_t bytes);
/* WEIR_BLOCK_CARVED bytes of a huge page of the arena, aligned to their size, not zeroed; to be given back before
 * weir_blocks_fini. A huge page of which nothing is taken any more goes back to the system. */
void *weir_blocks_take_piece(struct weir_blocks *bl);
void weir_blocks_give_piece(struct weir_blocks *bl, void *p);

#endif
