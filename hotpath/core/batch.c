/* batch.c: storage of columns and of a batch's scratch memory; names of the reasons a record is refused for. Columns
 * and scratch belong to the worker that decodes the batch. */
#include "hotpath/core/batch.h"

#include <stdlib.h>

#include "hotpath/core/mem.h"

/* One allocation per column: values, then the null bitmap. The pad lets SIMD loops read past the last value. */
void weir_col_init(struct weir_col *c, enum weir_phys phys)
{
	size_t data_bytes = weir_align_up(weir_phys_bytes(phys) * WEIR_BATCH_ROWS, WEIR_CACHE_LINE);
	size_t null_bytes = WEIR_NULL_WORDS * sizeof(uint64_t);
	size_t bytes = weir_align_up(data_bytes + null_bytes + WEIR_PAYLOAD_PAD, WEIR_CACHE_LINE);
	uint8_t *p = aligned_alloc(WEIR_CACHE_LINE, bytes);
	WEIR_ASSERT(p != NULL && "out of memory");
	memset(p, 0, bytes);
	*c = (struct weir_col){.phys = phys};
	c->data = p;
	c->nulls = (uint64_t *)(void *)(p + data_bytes);
}

void weir_col_fini(struct weir_col *c)
{
	free(c->data);
	c->data = NULL;
	c->nulls = NULL;
}

enum { CHUNK_BYTES_MIN = 16 * 1024, SCRATCH_KEEP_BYTES = 4 << 20 };

struct weir_scratch_chunk {
	struct weir_scratch_chunk *next;
	size_t bytes; /* usable, without the pad */
	uint8_t data[];
};
_Static_assert(sizeof(struct weir_scratch_chunk) % 8 == 0, "values start 8-byte aligned");

void weir_scratch_init(struct weir_scratch *s)
{
	*s = (struct weir_scratch){0};
}

void weir_scratch_fini(struct weir_scratch *s)
{
	struct weir_scratch_chunk *c = s->first;
	while (c != NULL) {
		struct weir_scratch_chunk *next = c->next;
		free(c);
		c = next;
	}
	*s = (struct weir_scratch){0};
}

static void scratch_use(struct weir_scratch *s, struct weir_scratch_chunk *c)
{
	s->current = c;
	s->at = c->data;
	s->end = c->data + c->bytes;
}

/* Keeps chunks in order while their sum stays within SCRATCH_KEEP_BYTES; a chunk that a giant record made goes back. */
void weir_scratch_reset(struct weir_scratch *s)
{
	struct weir_scratch_chunk **link = &s->first;
	size_t kept = 0;
	if (WEIR_LIKELY(s->bytes_total <= SCRATCH_KEEP_BYTES)) {
		if (s->first != NULL)
			scratch_use(s, s->first);
		return;
	}
	while (*link != NULL) {
		struct weir_scratch_chunk *c = *link;
		if (kept + c->bytes <= SCRATCH_KEEP_BYTES) {
			kept += c->bytes;
			link = &c->next;
		} else {
			*link = c->next;
			s->bytes_total -= c->bytes;
			free(c);
		}
	}
	s->current = NULL;
	s->at = NULL;
	s->end = NULL;
	if (s->first != NULL)
		scratch_use(s, s->first);
}

/* The next kept chunk that is large enough, else a new one put in behind the current one. Chunks double, so a batch
 * settles after a few. */
WEIR_COLD void *weir_scratch_take_slow(struct weir_scratch *s, size_t bytes)
{
	WEIR_ASSERT(bytes <= SIZE_MAX / 4);
	while (s->current != NULL && s->current->next != NULL) {
		scratch_use(s, s->current->next);
		if (s->current->bytes >= bytes)
			goto take;
	}
	size_t size = s->current == NULL ? CHUNK_BYTES_MIN : s->current->bytes * 2;
	if (size > SCRATCH_KEEP_BYTES / 4)
		size = SCRATCH_KEEP_BYTES / 4;
	if (size < bytes)
		size = bytes;
	struct weir_scratch_chunk *c = weir_xmalloc(sizeof *c + size + WEIR_PAYLOAD_PAD);
	memset(c->data + size, 0, WEIR_PAYLOAD_PAD);
	c->next = NULL;
	c->bytes = size;
	if (s->current == NULL)
		s->first = c;
	else
		s->current->next = c;
	s->bytes_total += size;
	scratch_use(s, c);
take:;
	void *p = s->at;
	s->at += bytes;
	return p;
}

const char *weir_reason_name(enum weir_reason r)
{
	static const char *const name[WEIR_REASON_COUNT] = {
		[WEIR_REASON_NONE] = "none",
		[WEIR_REASON_JSON] = "json",
		[WEIR_REASON_CSV] = "csv",
		[WEIR_REASON_KAFKA] = "kafka",
		[WEIR_REASON_PACKED] = "packed",
		[WEIR_REASON_FRAMING] = "framing",
		[WEIR_REASON_UTF8] = "utf8",
		[WEIR_REASON_DEPTH] = "depth",
		[WEIR_REASON_SIZE] = "size",
		[WEIR_REASON_TYPE] = "type",
		[WEIR_REASON_RANGE] = "range",
		[WEIR_REASON_NULL] = "null",
		[WEIR_REASON_TIMESTAMP] = "timestamp",
		[WEIR_REASON_NULL_KEY] = "null_key",
		[WEIR_REASON_FUTURE] = "future",
		[WEIR_REASON_OVERFLOW] = "overflow",
		[WEIR_REASON_EXPR] = "expr",
		[WEIR_REASON_LATE] = "late",
	};
	WEIR_ASSERT((unsigned)r < WEIR_REASON_COUNT);
	return name[r];
}
