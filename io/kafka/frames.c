/* frames.c: a list of chunks of memory, filled one after the other (frames.h). @thread: one owner */
#include "io/kafka/frames.h"

#include <stdlib.h>

#include "hotpath/core/mem.h"

enum { CHUNK_BYTES = 1 << 20, CHUNKS_KEPT = 8 };

struct weir_frames_chunk {
	struct weir_frames_chunk *next;
	size_t capacity;
	size_t used;
	_Alignas(16) uint8_t data[];
};

static size_t rounded(size_t bytes)
{
	return (bytes + 15) & ~(size_t)15;
}

/* The next chunk with room, an empty one that is waiting or a fresh one. */
static struct weir_frames_chunk *next_chunk(struct weir_frames *fs, size_t bytes)
{
	struct weir_frames_chunk *waiting = fs->last ? fs->last->next : NULL;
	if (waiting && waiting->capacity >= bytes)
		return fs->last = waiting;
	size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
	if (fs->bytes_max != 0 && fs->bytes + capacity > fs->bytes_max)
		return NULL;
	struct weir_frames_chunk *c = weir_xmalloc(sizeof *c + capacity);
	*c = (struct weir_frames_chunk){.next = waiting, .capacity = capacity};
	fs->bytes += capacity;
	if (fs->last)
		fs->last->next = c;
	else
		fs->first = c;
	return fs->last = c;
}

static const void *put(uint8_t **to, const void *data, size_t bytes)
{
	uint8_t *at = *to;
	if (data == NULL)
		return NULL;
	if (bytes)
		memcpy(at, data, bytes);
	*to += bytes;
	return at; /* not NULL also where there is nothing: an empty value is no null */
}

struct weir_frame *weir_frames_add(struct weir_frames *fs, uint32_t topic, uint32_t partition, const struct weir_out *r)
{
	size_t bytes = rounded(sizeof(struct weir_frame) + r->key.bytes + r->value.bytes + r->headers_bytes + 1);
	struct weir_frames_chunk *c = fs->last;
	if (!c || c->capacity - c->used < bytes)
		c = next_chunk(fs, bytes);
	if (!c)
		return NULL;
	struct weir_frame *f = (struct weir_frame *)(c->data + c->used);
	c->used += bytes;
	fs->used += bytes;
	fs->count++;
	uint8_t *to = (uint8_t *)(f + 1);
	*f = (struct weir_frame){.r = *r, .topic = topic, .partition = partition, .bytes = bytes};
	f->r.key.data = put(&to, r->key.data, r->key.bytes);
	f->r.value.data = put(&to, r->value.data, r->value.bytes);
	f->r.headers = put(&to, r->headers, r->headers_bytes);
	return f;
}

enum weir_err weir_frames_each(struct weir_frames *fs,
			       enum weir_err (*each)(void *ctx, struct weir_frame *f, struct weir_diag **dg), void *ctx,
			       struct weir_diag **dg)
{
	for (struct weir_frames_chunk *c = fs->first; c; c = c->next)
		for (size_t at = 0; at < c->used;) {
			struct weir_frame *f = (struct weir_frame *)(c->data + at);
			at += f->bytes;
			enum weir_err err = each(ctx, f, dg);
			if (err != WEIR_OK)
				return err;
		}
	return WEIR_OK;
}

void weir_frames_reset(struct weir_frames *fs)
{
	uint32_t kept = 0;
	struct weir_frames_chunk **link = &fs->first;
	for (struct weir_frames_chunk *c = fs->first, *next; c; c = next) {
		next = c->next;
		c->used = 0;
		if (c->capacity == CHUNK_BYTES && kept < CHUNKS_KEPT) {
			kept++;
			*link = c;
			link = &c->next;
		} else {
			fs->bytes -= c->capacity;
			free(c);
		}
	}
	*link = NULL;
	fs->last = fs->first;
	fs->count = 0;
	fs->used = 0;
}

void weir_frames_fini(struct weir_frames *fs)
{
	for (struct weir_frames_chunk *c = fs->first, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	memset(fs, 0, sizeof *fs);
}
