/* block.c: a pool of reference-counted memory blocks by powers of two, and blocks over mapped files. @thread io. */
#include "io/recorded/block.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

enum { CLASS_MIN = 14 }; /* 16 KiB */

static unsigned class_up(size_t bytes)
{
	unsigned c = bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);
	return c < CLASS_MIN ? CLASS_MIN : c;
}

void weir_pool_count(struct weir_pool *pl, struct weir_block *bk)
{
	size_t bytes = bk->map != NULL ? bk->buf.bytes : bk->buf.capacity;
	pl->bytes_held += (uint64_t)bytes - bk->counted;
	bk->counted = bytes;
}

static void block_free(struct weir_pool *pl, struct weir_block *bk)
{
	pl->bytes_held -= bk->counted;
	if (bk->map != NULL)
		munmap(bk->map, bk->map_bytes);
	else
		weir_buf_fini(&bk->buf);
	free(bk);
}

void weir_pool_fini(struct weir_pool *pl)
{
	for (unsigned c = 0; c < WEIR_POOL_CLASSES; c++)
		while (pl->idle[c] != NULL) {
			struct weir_block *bk = pl->idle[c];
			pl->idle[c] = bk->next;
			block_free(pl, bk);
		}
	pl->bytes_idle = 0;
}

struct weir_block *weir_pool_take(struct weir_pool *pl, size_t bytes)
{
	unsigned c = class_up(bytes + WEIR_PAYLOAD_PAD);
	WEIR_ASSERT(c < WEIR_POOL_CLASSES);
	/* One class more may be taken too: inflated blocks grow and come back larger. */
	for (unsigned k = c; k <= c + 1 && k < WEIR_POOL_CLASSES; k++)
		if (pl->idle[k] != NULL) {
			struct weir_block *bk = pl->idle[k];
			pl->idle[k] = bk->next;
			pl->bytes_idle -= bk->buf.capacity;
			bk->buf.bytes = 0;
			bk->refs = 1;
			return bk;
		}
	struct weir_block *bk = weir_xcalloc(1, sizeof *bk);
	bk->buf.capacity = (size_t)1 << c;
	bk->buf.data = weir_xmalloc(bk->buf.capacity);
	bk->refs = 1;
	weir_pool_count(pl, bk);
	return bk;
}

size_t weir_page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

struct weir_block *weir_block_map(int fd, uint64_t at, size_t bytes)
{
	uint64_t from = at & ~(uint64_t)(weir_page_bytes() - 1);
	size_t map_bytes = (size_t)(at - from) + bytes + WEIR_PAYLOAD_PAD;
	uint8_t *map = mmap(NULL, map_bytes, PROT_READ, MAP_SHARED, fd, (off_t)from);
	if (map == MAP_FAILED)
		return NULL;
	(void)madvise(map, map_bytes, MADV_SEQUENTIAL); /* the kernel reads ahead as it does for read() */
	struct weir_block *bk = weir_xcalloc(1, sizeof *bk);
	bk->buf.data = map + (at - from);
	bk->buf.capacity = bytes;
	bk->refs = 1;
	bk->map = map;
	bk->map_bytes = map_bytes;
	return bk;
}

bool weir_block_populate(struct weir_block *bk, size_t bytes)
{
	const size_t page = weir_page_bytes();
	uint8_t *map = bk->map, *from = bk->buf.data + bk->buf.bytes, *to = bk->buf.data + bytes + WEIR_PAYLOAD_PAD;
	WEIR_ASSERT(bytes <= bk->buf.capacity && bytes >= bk->buf.bytes);
	from = map + ((size_t)(from - map) & ~(page - 1));
	while (madvise(from, (size_t)(to - from), MADV_POPULATE_READ) != 0)
		if (errno != EINTR && errno != EAGAIN)
			return false;
	bk->buf.bytes = bytes;
	return true;
}

void weir_pool_drop(struct weir_pool *pl, struct weir_block *bk)
{
	if (bk == NULL || --bk->refs != 0)
		return;
	if (bk->map != NULL || pl->bytes_idle + bk->buf.capacity > weir_pool_idle_max(pl)) {
		block_free(pl, bk);
		return;
	}
	weir_pool_count(pl, bk);
	unsigned c = 63 - (unsigned)__builtin_clzll(bk->buf.capacity);
	bk->next = pl->idle[c];
	pl->idle[c] = bk;
	pl->bytes_idle += bk->buf.capacity;
}
