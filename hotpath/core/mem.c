/* mem.c: the bump allocator of plans and parse trees, checked malloc, the growing byte buffer. Cold paths; the caller's
 * thread, one owner per object. */
#include "hotpath/core/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_BYTES_MIN = 4096, BLOCK_BYTES_MAX = 1 << 20 };

struct weir_mem_block {
	struct weir_mem_block *next;
	size_t capacity;
	size_t used;
	size_t pad; /* keeps data 16-byte aligned */
	uint8_t data[];
};
_Static_assert(sizeof(struct weir_mem_block) % 16 == 0, "values start 16-byte aligned");

void *weir_xmalloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);
	WEIR_ASSERT(p != NULL && "out of memory");
	return p;
}

void *weir_xcalloc(size_t count, size_t bytes)
{
	void *p = calloc(count ? count : 1, bytes ? bytes : 1);
	WEIR_ASSERT(p != NULL && "out of memory");
	return p;
}

void *weir_xrealloc(void *p, size_t bytes)
{
	void *q = realloc(p, bytes ? bytes : 1);
	WEIR_ASSERT(q != NULL && "out of memory");
	return q;
}

char *weir_xstrdup(const char *s)
{
	size_t bytes = strlen(s) + 1;
	return memcpy(weir_xmalloc(bytes), s, bytes);
}

void weir_mem_init(struct weir_mem *m, size_t bytes_max)
{
	*m = (struct weir_mem){.bytes_max = bytes_max};
}

void weir_mem_fini(struct weir_mem *m)
{
	struct weir_mem_block *b = m->head;
	while (b != NULL) {
		struct weir_mem_block *next = b->next;
		free(b);
		b = next;
	}
	m->head = NULL;
	m->bytes_used = 0;
}

/* Blocks double from 4 KiB to 1 MiB; a value larger than that gets a block of its own size. calloc keeps the promise of
 * zeroed values without touching pages that are never used. */
static struct weir_mem_block *mem_block_add(struct weir_mem *m, size_t bytes)
{
	size_t capacity = m->head == NULL ? BLOCK_BYTES_MIN : m->head->capacity * 2;
	if (capacity > BLOCK_BYTES_MAX)
		capacity = BLOCK_BYTES_MAX;
	if (capacity < bytes)
		capacity = bytes;
	struct weir_mem_block *b = weir_xcalloc(1, sizeof *b + capacity);
	b->capacity = capacity;
	b->next = m->head;
	m->head = b;
	return b;
}

void *weir_mem_take(struct weir_mem *m, size_t bytes)
{
	WEIR_ASSERT(bytes <= SIZE_MAX / 4);
	bytes = weir_align_up(bytes ? bytes : 1, 16);
	if (m->bytes_max != 0 && (m->bytes_used > m->bytes_max || bytes > m->bytes_max - m->bytes_used))
		return NULL;
	struct weir_mem_block *b = m->head;
	if (b == NULL || b->capacity - b->used < bytes)
		b = mem_block_add(m, bytes);
	void *p = b->data + b->used;
	b->used += bytes;
	m->bytes_used += bytes;
	return p;
}

char *weir_mem_strndup(struct weir_mem *m, const char *s, size_t bytes)
{
	char *p = weir_mem_take(m, bytes + 1);
	if (p != NULL && bytes != 0)
		memcpy(p, s, bytes);
	return p;
}

char *weir_mem_strdup(struct weir_mem *m, const char *s)
{
	return weir_mem_strndup(m, s, strlen(s));
}

char *weir_mem_printf(struct weir_mem *m, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	WEIR_ASSERT(n >= 0);
	char *p = weir_mem_take(m, (size_t)n + 1);
	if (p != NULL)
		(void)vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

void *weir_mem_copy(struct weir_mem *m, const void *p, size_t bytes)
{
	void *to = weir_mem_take(m, bytes);
	if (to != NULL && bytes != 0)
		memcpy(to, p, bytes);
	return to;
}

WEIR_COLD void weir_buf_grow(struct weir_buf *b, size_t more)
{
	WEIR_ASSERT(more <= SIZE_MAX / 4 && b->bytes <= SIZE_MAX / 4);
	size_t capacity = b->capacity < 64 ? 64 : b->capacity * 2;
	if (capacity < b->bytes + more)
		capacity = weir_align_up(b->bytes + more, 64);
	b->data = weir_xrealloc(b->data, capacity);
	b->capacity = capacity;
}

void weir_buf_fini(struct weir_buf *b)
{
	free(b->data);
	*b = (struct weir_buf){0};
}

void weir_buf_printf(struct weir_buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	WEIR_ASSERT(n >= 0);
	uint8_t *to = weir_buf_room(b, (size_t)n + 1);
	(void)vsnprintf((char *)to, (size_t)n + 1, fmt, again);
	va_end(again);
	b->bytes += (size_t)n;
}
