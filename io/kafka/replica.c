/* replica.c: a hash table of copied records by key (replica.h). @thread: one owner at a time
 *
 * Few and large: the packs and page images of a changelog have 8 to 64 KiB. A value that fits takes the place of the
 * one before unless it would waste half of it. */
#include "io/kafka/replica.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"

enum { CAPACITY_MIN = 64 };

struct weir_replica_entry {
	int64_t offset;
	int64_t timestamp;
	uint64_t hash;
	uint32_t key_bytes;
	uint32_t value_bytes;
	uint32_t room; /* of data */
	uint8_t data[];
};

static uint64_t cost(const struct weir_replica_entry *e)
{
	return sizeof *e + e->room;
}

/* Where the key is, or the free place where it would go. */
static uint32_t find(const struct weir_replica *rp, uint64_t hash, const uint8_t *key, uint32_t bytes)
{
	uint32_t i = (uint32_t)hash & (rp->capacity - 1);
	for (const struct weir_replica_entry *e; (e = rp->slot[i]) != NULL; i = (i + 1) & (rp->capacity - 1))
		if (e->hash == hash && e->key_bytes == bytes && (bytes == 0 || memcmp(e->data, key, bytes) == 0))
			return i;
	return i;
}

static void grow(struct weir_replica *rp)
{
	struct weir_replica_entry **old = rp->slot;
	uint32_t old_capacity = rp->capacity;
	rp->capacity = old_capacity != 0 ? old_capacity * 2 : CAPACITY_MIN;
	rp->slot = weir_xcalloc(rp->capacity, sizeof *rp->slot);
	rp->bytes += (uint64_t)(rp->capacity - old_capacity) * sizeof *rp->slot;
	for (uint32_t i = 0; i < old_capacity; i++)
		if (old[i] != NULL)
			rp->slot[find(rp, old[i]->hash, old[i]->data, old[i]->key_bytes)] = old[i];
	free(old);
}

static void drop(struct weir_replica *rp, struct weir_replica_entry *e)
{
	rp->bytes -= cost(e);
	rp->count--;
	free(e);
}

/* Takes the entry at i out; those behind it that were pushed on by it move up. */
static void take_out(struct weir_replica *rp, uint32_t i)
{
	uint32_t mask = rp->capacity - 1, hole = i;
	drop(rp, rp->slot[i]);
	rp->slot[hole] = NULL;
	for (uint32_t j = (i + 1) & mask; rp->slot[j] != NULL; j = (j + 1) & mask) {
		uint32_t home = (uint32_t)rp->slot[j]->hash & mask;
		if (((j - home) & mask) < ((j - hole) & mask))
			continue;
		rp->slot[hole] = rp->slot[j];
		rp->slot[j] = NULL;
		hole = j;
	}
}

void weir_replica_put(struct weir_replica *rp, const struct weir_record *r)
{
	WEIR_ASSERT(r->offset >= rp->position);
	rp->position = r->offset + 1;
	if (rp->count >= rp->capacity / 2)
		grow(rp);
	uint64_t hash = weir_hash(r->key, r->key_bytes);
	uint32_t i = find(rp, hash, r->key, r->key_bytes);
	struct weir_replica_entry *e = rp->slot[i];
	if (r->value == NULL) {
		if (e != NULL)
			take_out(rp, i);
		return;
	}
	uint32_t room = r->key_bytes + r->value_bytes;
	if (e != NULL && (e->room < room || e->room / 2 > room)) {
		drop(rp, e);
		e = NULL;
	}
	if (e == NULL) {
		e = rp->slot[i] = weir_xmalloc(sizeof *e + room);
		e->room = room;
		rp->bytes += cost(e);
		rp->count++;
	}
	e->offset = r->offset;
	e->timestamp = r->timestamp;
	e->hash = hash;
	e->key_bytes = r->key_bytes;
	e->value_bytes = r->value_bytes;
	if (r->key_bytes != 0)
		memcpy(e->data, r->key, r->key_bytes);
	if (r->value_bytes != 0)
		memcpy(e->data + r->key_bytes, r->value, r->value_bytes);
}

static int by_offset(const void *a, const void *b)
{
	const struct weir_replica_entry *x = *(struct weir_replica_entry *const *)a,
					*y = *(struct weir_replica_entry *const *)b;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

enum weir_err weir_replica_each(const struct weir_replica *rp,
				enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
				void *ctx, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	uint32_t n = 0;
	struct weir_replica_entry **order = weir_xcalloc((size_t)rp->count + 1, sizeof *order);
	for (uint32_t i = 0; i < rp->capacity; i++)
		if (rp->slot[i] != NULL)
			order[n++] = rp->slot[i];
	if (n > 1)
		qsort(order, n, sizeof *order, by_offset);
	for (uint32_t i = 0; i < n && err == WEIR_OK; i++) {
		const struct weir_replica_entry *e = order[i];
		const struct weir_record r = {.key = e->data,
					      .value = e->data + e->key_bytes,
					      .key_bytes = e->key_bytes,
					      .value_bytes = e->value_bytes,
					      .offset = e->offset,
					      .timestamp = e->timestamp};
		err = each(ctx, &r, dg);
	}
	free(order);
	return err;
}

uint64_t weir_replica_payload(const struct weir_replica *rp)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < rp->capacity; i++)
		if (rp->slot[i] != NULL)
			bytes += (uint64_t)rp->slot[i]->key_bytes + rp->slot[i]->value_bytes;
	return bytes;
}

void weir_replica_fini(struct weir_replica *rp)
{
	for (uint32_t i = 0; i < rp->capacity; i++)
		free(rp->slot[i]);
	free(rp->slot);
	memset(rp, 0, sizeof *rp);
}
