/* blob.c: strings and sets in blobs. A value that outgrows its blob gets a new one of twice the room, so dead blobs of
 * a value never add up to more than the live one. @thread worker. */
#include "hotpath/state/blob.h"
#include "hotpath/core/hash.h"

static struct weir_entry *blob_create(struct weir_gen *g, uint64_t payload)
{
	payload = weir_align_up(payload, 8);
	struct weir_entry *b = weir_gen_take(g, sizeof *b + payload, true);
	b->hash = (uint32_t)payload;
	b->flags = WEIR_ENTRY_BLOB;
	weir_gen_mark(g, b);
	return b;
}

static struct weir_entry *blob_get(const struct weir_pages *pg, uint32_t ref)
{
	return (struct weir_entry *)(void *)weir_ref_get(pg, ref);
}

void weir_text_set(struct weir_gen *g, struct weir_text *t, const void *data, uint32_t bytes)
{
	struct weir_entry *b = t->ref != 0 ? blob_get(g->pages, t->ref) : NULL;
	if (b == NULL || b->hash < bytes) {
		uint64_t room = bytes < 8 ? 8 : bytes;
		if (b != NULL) {
			if (room < (uint64_t)b->hash * 2)
				room = (uint64_t)b->hash * 2;
			weir_gen_kill(g, b, weir_blob_bytes(b));
		}
		b = blob_create(g, room);
		t->ref = weir_entry_ref(b);
		/* No byte of a page is ever undefined: it goes into images. */
		memset(weir_blob_data(b), 0, b->hash);
	} else {
		weir_gen_mark(g, b);
	}
	if (bytes != 0)
		memcpy(weir_blob_data(b), data, bytes);
	t->bytes = bytes;
}

static uint32_t *set_table(uint8_t *payload)
{
	return (uint32_t *)(void *)(payload + sizeof(struct weir_set_head));
}
static uint8_t *set_heap(uint8_t *payload)
{
	const struct weir_set_head *h = (const struct weir_set_head *)(void *)payload;
	return payload + sizeof *h + (size_t)h->slots * 4;
}

/* Slot of the table where data stands or would go. */
static uint32_t *set_find(uint8_t *payload, const void *data, uint32_t bytes)
{
	const struct weir_set_head *h = (const struct weir_set_head *)(void *)payload;
	uint32_t *table = set_table(payload);
	const uint8_t *heap = set_heap(payload);
	uint32_t mask = h->slots - 1;
	for (uint32_t at = (uint32_t)weir_hash(data, bytes) & mask;; at = (at + 1) & mask) {
		if (table[at] == 0)
			return &table[at];
		const uint8_t *m = heap + table[at] - 1;
		if (weir_load_le32(m) == bytes && memcmp(m + 4, data, bytes) == 0)
			return &table[at];
	}
}

static void set_append(uint8_t *payload, uint32_t *slot, const void *data, uint32_t bytes)
{
	struct weir_set_head *h = (struct weir_set_head *)(void *)payload;
	uint8_t *m = set_heap(payload) + h->heap_used;
	weir_store_le32(m, bytes);
	memcpy(m + 4, data, bytes);
	*slot = h->heap_used + 1;
	h->heap_used += 4 + (uint32_t)weir_align_up(bytes, 4);
	h->members++;
}

/* A set with room for one more member of this size; NULL if that would be too large. */
static struct weir_entry *set_grow(struct weir_gen *g, struct weir_entry *old, uint32_t bytes)
{
	uint64_t slots = 8, heap = 64;
	const struct weir_set_head *from = NULL;
	if (old != NULL) {
		from = (const struct weir_set_head *)(void *)weir_blob_data(old);
		slots = from->members >= from->slots / 4 * 3 ? (uint64_t)from->slots * 2 : from->slots;
		heap = from->heap_bytes;
	}
	uint64_t need = (from != NULL ? from->heap_used : 0) + 4 + (uint64_t)weir_align_up(bytes, 4);
	while (heap < need)
		heap *= 2;
	uint64_t payload = sizeof *from + slots * 4 + heap;
	if (payload + sizeof *old + WEIR_PAGE_HEAD > WEIR_PAGE_LARGE_MAX)
		return NULL;
	struct weir_entry *b = blob_create(g, payload);
	uint8_t *to = weir_blob_data(b);
	memset(to, 0, b->hash);
	*(struct weir_set_head *)(void *)to = (struct weir_set_head){(uint32_t)slots, 0, 0, (uint32_t)heap};
	if (old != NULL) {
		const uint8_t *m;
		uint32_t at = 0, n;
		while (weir_set_next(weir_blob_data(old), &at, &m, &n))
			set_append(to, set_find(to, m, n), m, n);
		weir_gen_kill(g, old, weir_blob_bytes(old));
	}
	return b;
}

bool weir_set_add(struct weir_gen *g, uint32_t *ref, const void *data, uint32_t bytes, bool *full)
{
	struct weir_entry *b = *ref != 0 ? blob_get(g->pages, *ref) : NULL;
	if (b != NULL) {
		uint8_t *payload = weir_blob_data(b);
		const struct weir_set_head *h = (const struct weir_set_head *)(void *)payload;
		uint32_t *slot = set_find(payload, data, bytes);
		if (*slot != 0)
			return false;
		if (h->members < h->slots / 4 * 3 && h->heap_bytes - h->heap_used >= 4 + weir_align_up(bytes, 4)) {
			weir_gen_mark(g, b);
			set_append(payload, slot, data, bytes);
			return true;
		}
	}
	b = set_grow(g, b, bytes);
	if (b == NULL) {
		*full = true;
		return false;
	}
	uint8_t *payload = weir_blob_data(b);
	set_append(payload, set_find(payload, data, bytes), data, bytes);
	*ref = weir_entry_ref(b);
	return true;
}

bool weir_set_next(const uint8_t *payload, uint32_t *at, const uint8_t **data, uint32_t *bytes)
{
	const struct weir_set_head *h = (const struct weir_set_head *)(const void *)payload;
	if (*at >= h->heap_used)
		return false;
	const uint8_t *m = payload + sizeof *h + (size_t)h->slots * 4 + *at;
	*bytes = weir_load_le32(m);
	*data = m + 4;
	*at += 4 + (uint32_t)weir_align_up(*bytes, 4);
	return true;
}

bool weir_set_check(const uint8_t *payload, uint32_t capacity, uint64_t members)
{
	const struct weir_set_head *h = (const struct weir_set_head *)(const void *)payload;
	if (capacity < sizeof *h || h->slots < 8 || (h->slots & (h->slots - 1)) != 0)
		return false;
	if (sizeof *h + (uint64_t)h->slots * 4 + h->heap_bytes > capacity || h->heap_used > h->heap_bytes)
		return false;
	if (h->members != members || h->members > h->slots / 4 * 3)
		return false;
	const uint32_t *table = (const uint32_t *)(const void *)(payload + sizeof *h);
	const uint8_t *heap = payload + sizeof *h + (size_t)h->slots * 4;
	/* Every member lies in the heap, and the table names exactly the members. */
	uint64_t count = 0;
	for (uint64_t at = 0; at < h->heap_used; count++) {
		if (h->heap_used - at < 4)
			return false;
		at += 4 + ((uint64_t)weir_load_le32(heap + at) + 3) / 4 * 4;
		if (at > h->heap_used)
			return false;
	}
	uint64_t named = 0;
	for (uint32_t i = 0; i < h->slots; i++) {
		if (table[i] == 0)
			continue;
		uint64_t at = (uint64_t)table[i] - 1;
		if (at + 4 > h->heap_used || at + 4 + weir_load_le32(heap + at) > h->heap_used)
			return false;
		named++;
	}
	return count == h->members && named == h->members;
}
