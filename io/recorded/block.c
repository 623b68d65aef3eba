/* block.c: a pool of reference-counted memory blocks by powers of two. @thread io. */
#include "io/recorded/block.h"

#include <stdlib.h>

enum { CLASS_MIN = 14 }; /* 16 KiB */

static unsigned class_up(size_t bytes)
{
	unsigned c = bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);
	return c < CLASS_MIN ? CLASS_MIN : c;
}

void weir_pool_fini(struct weir_pool *pl)
{
	for (unsigned c = 0; c < WEIR_POOL_CLASSES; c++)
		while (pl->idle[c] != NULL) {
			struct weir_block *bk = pl->idle[c];
			pl->idle[c] = bk->next;
			weir_buf_fini(&bk->buf);
			free(bk);
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
	return bk;
}

void weir_pool_drop(struct weir_pool *pl, struct weir_block *bk)
{
	if (bk == NULL || --bk->refs != 0)
		return;
	if (pl->bytes_idle + bk->buf.capacity > WEIR_POOL_IDLE_BYTES_MAX) {
		weir_buf_fini(&bk->buf);
		free(bk);
		return;
	}
	unsigned c = 63 - (unsigned)__builtin_clzll(bk->buf.capacity);
	bk->next = pl->idle[c];
	pl->idle[c] = bk;
	pl->bytes_idle += bk->buf.capacity;
}
