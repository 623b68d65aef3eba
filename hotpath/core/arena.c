/* arena.c: extents from the worker's jemalloc arena, cut into power-of-two blocks per slot. @thread worker. */
#include "hotpath/core/arena.h"
#include "hotpath/core/mem.h"

#include <stdlib.h>
#include <sys/mman.h>
#ifdef WEIR_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

/* The first piece of a huge page; the others are pieces. */
struct huge {
	struct huge *next, *before; /* of those with free pieces */
	struct weir_block *free;
	uint32_t cut; /* pieces that were ever taken */
	uint32_t taken;
};
enum { BACKED_FROM = 256 << 10 }; /* bytes of an extent that is worth a call */
enum { PIECES = WEIR_HUGE_BYTES / WEIR_BLOCK_CARVED - 1 };

struct weir_arena {
	_Atomic uint64_t bytes;  /* @writer worker @reader any (relaxed: a statistic) */
	_Atomic uintptr_t begun; /* an extent whose memory may not be there yet, | log2 of its bytes; 0: none. @writer
				  * worker, and whoever takes it @reader any */
	int flags;               /* MALLOCX_ARENA of this arena, no thread cache; 0: the shared ones */
	unsigned number;         /* of the jemalloc arena, where flags are set */
	struct huge *huge;       /* those with free pieces */
};

#ifdef WEIR_JEMALLOC
#define ALL_ARENAS "4096" /* MALLCTL_ARENAS_ALL */
_Static_assert(MALLCTL_ARENAS_ALL == 4096, "as text");
enum { SPARE_MAX = 1024, NUMBER_MAX = 2046 }; /* as many as workers; the largest that fits MALLOCX_ARENA's int */
/* Number + 1 of jemalloc arenas that nobody uses: the next engine of the process takes them, as jemalloc's numbers run
 * out and each holds some megabytes. @thread any */
static _Atomic unsigned spare[SPARE_MAX];

static bool spare_take(unsigned *number)
{
	for (uint32_t i = 0; i < SPARE_MAX; i++) {
		unsigned n = atomic_load_explicit(&spare[i], memory_order_relaxed);
		/* acquire: with the release of spare_give, what its last owner did to the arena comes first */
		if (n != 0 && atomic_compare_exchange_strong_explicit(&spare[i], &n, 0, memory_order_acquire,
								      memory_order_relaxed)) {
			*number = n - 1;
			return true;
		}
	}
	return false;
}

static void spare_give(unsigned number)
{
	for (uint32_t i = 0; i < SPARE_MAX; i++) {
		unsigned none = 0;
		if (atomic_compare_exchange_strong_explicit(&spare[i], &none, number + 1, memory_order_release,
							    memory_order_relaxed))
			return;
	}
}
#endif

struct weir_arena *weir_arena_create(void)
{
	struct weir_arena *ar = weir_xcalloc(1, sizeof *ar);
#ifdef WEIR_JEMALLOC
	unsigned number;
	size_t bytes = sizeof number;
	/* Without an arena of its own (too many, or not built in) the shared ones do. */
	if (spare_take(&number) || (mallctl("arenas.create", &number, &bytes, NULL, 0) == 0 && number <= NUMBER_MAX)) {
		ar->number = number;
		ar->flags = MALLOCX_ARENA(number) | MALLOCX_TCACHE_NONE;
	}
#endif
	return ar;
}

void weir_arena_destroy(struct weir_arena *ar)
{
	if (ar == NULL)
		return;
	WEIR_ASSERT(weir_arena_bytes(ar) == 0);
#ifdef WEIR_JEMALLOC
	/* The jemalloc arena itself is left for the next: destroying one needs every thread's cache flushed. */
	if (ar->flags != 0)
		spare_give(ar->number);
#endif
	free(ar);
}

uint64_t weir_arena_bytes(const struct weir_arena *ar)
{
	return atomic_load_explicit(&ar->bytes, memory_order_relaxed);
}

static void arena_account(struct weir_arena *ar, uint64_t bytes)
{
	/* Single writer: a plain add published by a relaxed store. */
	atomic_store_explicit(&ar->bytes, weir_arena_bytes(ar) + bytes, memory_order_relaxed);
}

static void huge_link(struct weir_arena *ar, struct huge *hg)
{
	hg->before = NULL;
	hg->next = ar->huge;
	if (hg->next != NULL)
		hg->next->before = hg;
	ar->huge = hg;
}

static void huge_unlink(struct weir_arena *ar, struct huge *hg)
{
	*(hg->before != NULL ? &hg->before->next : &ar->huge) = hg->next;
	if (hg->next != NULL)
		hg->next->before = hg->before;
}

/* jemalloc takes memory back from whatever arena it is of: only the count moves. */
void weir_arena_absorb(struct weir_arena *to, struct weir_arena *from)
{
	arena_account(to, weir_arena_bytes(from));
	arena_account(from, (uint64_t)0 - weir_arena_bytes(from));
	while (from->huge != NULL) {
		struct huge *hg = from->huge;
		from->huge = hg->next;
		huge_link(to, hg);
	}
}

void *weir_arena_take(struct weir_arena *ar, size_t bytes, size_t align)
{
	void *p;
#ifdef WEIR_JEMALLOC
	p = mallocx(bytes, ar->flags | MALLOCX_ALIGN(align));
#else
	p = aligned_alloc(align, weir_align_up(bytes, align));
#endif
	WEIR_ASSERT(p != NULL);
	if (align >= WEIR_HUGE_BYTES)
		madvise(p, bytes & ~(size_t)(WEIR_HUGE_BYTES - 1), MADV_HUGEPAGE); /* advice: it may fail */
	arena_account(ar, bytes);
	return p;
}

void weir_arena_give(struct weir_arena *ar, void *p, size_t bytes, size_t align)
{
#ifdef WEIR_JEMALLOC
	sdallocx(p, bytes, ar->flags | MALLOCX_ALIGN(align));
#else
	(void)align;
	free(p);
#endif
	arena_account(ar, (uint64_t)0 - bytes);
}

void weir_arena_back(struct weir_arena *ar)
{
	if (atomic_load_explicit(&ar->begun, memory_order_relaxed) == 0)
		return;
	uintptr_t begun = atomic_exchange_explicit(&ar->begun, 0, memory_order_relaxed);
	uintptr_t log2 = begun & (WEIR_BLOCK_CARVED - 1);
	/* It may have been given back meanwhile: then this fails, or backs what somebody else has there. */
	(void)madvise((void *)(begun - log2), (size_t)1 << log2, MADV_POPULATE_WRITE);
}

void weir_memory_trim(uint64_t counted, uint64_t max)
{
	if (counted < max / 3)
		return;
#ifdef WEIR_JEMALLOC
	/* What is kept: freed and still backed by memory, over all arenas. */
	uint64_t epoch = 1;
	size_t pages = 0, bytes = sizeof pages;
	if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0 ||
	    mallctl("stats.arenas." ALL_ARENAS ".pdirty", &pages, &bytes, NULL, 0) != 0)
		return;
	if (counted + 2 * (uint64_t)pages * 4096 > max)
		(void)mallctl("arena." ALL_ARENAS ".purge", NULL, NULL, NULL, 0);
#endif
}

void *weir_blocks_take_piece(struct weir_blocks *bl)
{
	struct weir_arena *ar = bl->ar;
	struct huge *hg = ar->huge;
	bl->bytes_used += WEIR_BLOCK_CARVED;
	if (hg == NULL) {
		hg = weir_arena_take(ar, WEIR_HUGE_BYTES, WEIR_HUGE_BYTES);
		*hg = (struct huge){0};
		huge_link(ar, hg);
	}
	struct weir_block *p = hg->free;
	if (p != NULL)
		hg->free = p->next;
	else
		p = (struct weir_block *)(void *)((uint8_t *)hg + (size_t)++hg->cut * WEIR_BLOCK_CARVED);
	if (++hg->taken == PIECES)
		huge_unlink(ar, hg);
	return p;
}

void weir_blocks_give_piece(struct weir_blocks *bl, void *p)
{
	struct weir_arena *ar = bl->ar;
	struct huge *hg = (struct huge *)(void *)((uintptr_t)p & ~(uintptr_t)(WEIR_HUGE_BYTES - 1));
	struct weir_block *b = p;
	bl->bytes_used -= WEIR_BLOCK_CARVED;
	b->next = hg->free;
	hg->free = b;
	if (hg->taken-- == PIECES)
		huge_link(ar, hg);
	if (hg->taken != 0)
		return;
	huge_unlink(ar, hg);
	weir_arena_give(ar, hg, WEIR_HUGE_BYTES, WEIR_HUGE_BYTES);
}

void weir_blocks_init(struct weir_blocks *bl, struct weir_arena *ar)
{
	memset(bl, 0, sizeof *bl);
	bl->ar = ar;
	bl->extent_bytes_next = WEIR_EXTENT_BYTES_MIN;
}

/* Alignment of what comes straight from the arena. */
static size_t block_align(size_t bytes)
{
	return bytes >= WEIR_HUGE_BYTES ? WEIR_HUGE_BYTES : 4096;
}
static size_t extent_align(size_t bytes)
{
	return bytes >= WEIR_HUGE_BYTES ? WEIR_HUGE_BYTES : WEIR_BLOCK_CARVED;
}

void weir_blocks_fini(struct weir_blocks *bl)
{
	for (uint32_t log2 = WEIR_BLOCK_LOG2_CARVED + 1; log2 <= WEIR_BLOCK_LOG2_MAX; log2++)
		if (bl->kept[log2] != NULL)
			weir_arena_give(bl->ar, bl->kept[log2], (size_t)1 << log2, block_align((size_t)1 << log2));
	for (uint32_t i = 0; i < bl->extent_count; i++)
		weir_arena_give(bl->ar, bl->extents[i].base, bl->extents[i].bytes, extent_align(bl->extents[i].bytes));
	free(bl->extents);
	memset(bl, 0, sizeof *bl);
}

static uint32_t block_log2(size_t bytes)
{
	if (bytes <= (size_t)1 << WEIR_BLOCK_LOG2_MIN)
		return WEIR_BLOCK_LOG2_MIN;
	return 64 - (uint32_t)__builtin_clzll((unsigned long long)bytes - 1);
}

static void block_push(struct weir_blocks *bl, uint32_t log2, void *p)
{
	struct weir_block *b = p;
	b->next = bl->free[log2];
	bl->free[log2] = b;
}

/* A new extent, whole on the free list of the largest carved size. */
static WEIR_COLD void blocks_grow(struct weir_blocks *bl)
{
	bl->bytes_peak = bl->bytes_used > bl->bytes_peak ? bl->bytes_used : bl->bytes_peak;
	uint32_t bytes = bl->extent_bytes_next;
	/* A quarter of what the slot has: however many slots there are, at most so much of their memory lies unused. */
	if (bl->extent_bytes_next < WEIR_EXTENT_BYTES_MAX && bl->extent_bytes + bytes >= 8 * (uint64_t)bytes)
		bl->extent_bytes_next *= 2;
	else if (bl->extent_bytes >= WEIR_EXTENT_HUGE_FROM && !bl->plain)
		bl->extent_bytes_next = (uint32_t)WEIR_HUGE_BYTES;
	bl->extent_bytes += bytes;
	if (bl->extent_count == bl->extent_capacity) {
		bl->extent_capacity = bl->extent_capacity == 0 ? 8 : bl->extent_capacity * 2;
		bl->extents = weir_xrealloc(bl->extents, bl->extent_capacity * sizeof *bl->extents);
	}
	uint8_t *base = weir_arena_take(bl->ar, bytes, extent_align(bytes));
	if (bl->plain && bytes >= BACKED_FROM) /* nothing but a number is handed over: relaxed */
		atomic_store_explicit(&bl->ar->begun, (uintptr_t)base | (uint32_t)__builtin_ctz(bytes),
				      memory_order_relaxed);
	bl->takes_slow++;
	bl->extents[bl->extent_count++] = (struct weir_extent){base, bytes};
	/* Pushed from the end, so that blocks leave in ascending order. */
	for (uint32_t at = bytes; at != 0; at -= WEIR_BLOCK_CARVED)
		block_push(bl, WEIR_BLOCK_LOG2_CARVED, base + at - WEIR_BLOCK_CARVED);
}

static void *blocks_take_large(struct weir_blocks *bl, size_t bytes)
{
	if ((bytes & (bytes - 1)) == 0) {
		uint32_t log2 = block_log2(bytes);
		WEIR_ASSERT(log2 <= WEIR_BLOCK_LOG2_MAX);
		void *p = bl->kept[log2];
		if (p != NULL) {
			bl->kept[log2] = NULL;
			bl->kept_bytes -= bytes;
			return p;
		}
	}
	bl->takes_slow++;
	return weir_arena_take(bl->ar, bytes, block_align(bytes));
}

void *weir_blocks_take(struct weir_blocks *bl, size_t bytes)
{
	if (bytes > WEIR_BLOCK_CARVED) {
		bl->bytes_used += bytes;
		bl->bytes_peak = bl->bytes_used > bl->bytes_peak ? bl->bytes_used : bl->bytes_peak;
		return blocks_take_large(bl, bytes);
	}
	uint32_t log2 = block_log2(bytes);
	bl->bytes_used += (uint64_t)1 << log2;
	uint32_t from = log2;
	while (bl->free[from] == NULL) {
		if (from == WEIR_BLOCK_LOG2_CARVED) {
			blocks_grow(bl);
			break;
		}
		from++;
	}
	struct weir_block *b = bl->free[from];
	bl->free[from] = b->next;
	/* A larger block is halved down; the upper halves stay behind. */
	while (from > log2) {
		from--;
		block_push(bl, from, (uint8_t *)b + ((size_t)1 << from));
	}
	return b;
}

void weir_blocks_give(struct weir_blocks *bl, void *p, size_t bytes)
{
	if (bytes <= WEIR_BLOCK_CARVED) {
		uint32_t log2 = block_log2(bytes);
		bl->bytes_used -= (uint64_t)1 << log2;
		block_push(bl, log2, p);
		return;
	}
	bl->bytes_used -= bytes;
	if ((bytes & (bytes - 1)) == 0) {
		uint32_t log2 = block_log2(bytes);
		/* Kept for the next window of this size, but not what a growing index leaves behind step by step. */
		if (bl->kept[log2] == NULL && bl->kept_bytes + bytes <= bl->bytes_peak / 4 + WEIR_EXTENT_BYTES_MIN) {
			bl->kept_bytes += bytes;
			bl->kept[log2] = p;
			return;
		}
	}
	weir_arena_give(bl->ar, p, bytes, block_align(bytes));
}
