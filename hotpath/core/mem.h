/* mem.h: a growing bump allocator for plans, parse trees and everything built once. Cold paths; one owner, no thread
 * of its own. Values live until weir_mem_fini. For state use arena.h, for batches batch.h. */
#ifndef WEIR_CORE_MEM_H
#define WEIR_CORE_MEM_H

#include "hotpath/core/base.h"

struct weir_mem_block;
struct weir_mem {
	struct weir_mem_block *head;
	size_t bytes_used;
	size_t bytes_max; /* 0: no bound; beyond it weir_mem_take returns NULL */
};

/* Zeroed storage for the caller's struct: {0} is a valid weir_mem. */
void weir_mem_init(struct weir_mem *m, size_t bytes_max);
void weir_mem_fini(struct weir_mem *m);
/* Zeroed, 16-byte aligned. Never NULL unless bytes_max is passed (out of memory stops the process: plans are small). */
void *weir_mem_take(struct weir_mem *m, size_t bytes);
char *weir_mem_strndup(struct weir_mem *m, const char *s, size_t bytes); /* terminated copy */
char *weir_mem_strdup(struct weir_mem *m, const char *s);
char *weir_mem_printf(struct weir_mem *m, const char *fmt, ...) WEIR_PRINTF(2, 3);
void *weir_mem_copy(struct weir_mem *m, const void *p, size_t bytes);

/* malloc, realloc and calloc that stop the process when there is nothing: for start-up and cold paths. */
void *weir_xmalloc(size_t bytes);
void *weir_xcalloc(size_t count, size_t bytes);
void *weir_xrealloc(void *p, size_t bytes);
char *weir_xstrdup(const char *s);

/* A growing byte buffer; {0} is empty. Owner frees by weir_buf_fini. Amortised doubling, never shrinks. */
struct weir_buf {
	uint8_t *data;
	size_t bytes;
	size_t capacity;
};
void weir_buf_grow(struct weir_buf *b, size_t more);
void weir_buf_fini(struct weir_buf *b);
void weir_buf_printf(struct weir_buf *b, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* Room for more bytes at the end; the caller writes there and adds to b->bytes. */
WEIR_INLINE uint8_t *weir_buf_room(struct weir_buf *b, size_t more)
{
	if (WEIR_UNLIKELY(b->capacity - b->bytes <= more)) /* also an empty buffer, so that NULL is never added to */
		weir_buf_grow(b, more);
	return b->data + b->bytes;
}
WEIR_INLINE void weir_buf_put(struct weir_buf *b, const void *p, size_t bytes)
{
	uint8_t *to = weir_buf_room(b, bytes);
	if (bytes != 0)
		memcpy(to, p, bytes);
	b->bytes += bytes;
}
WEIR_INLINE void weir_buf_put_byte(struct weir_buf *b, uint8_t c)
{
	*weir_buf_room(b, 1) = c;
	b->bytes++;
}
WEIR_INLINE void weir_buf_puts(struct weir_buf *b, const char *s)
{
	weir_buf_put(b, s, strlen(s));
}

#endif
