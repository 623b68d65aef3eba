/* blob.h: values of no fixed size that belong to an aggregate state: strings and sets of byte strings, kept in blobs of
 * the entry's generation. @thread worker */
#ifndef WEIR_STATE_BLOB_H
#define WEIR_STATE_BLOB_H

#include "hotpath/state/page.h"

struct weir_text {
	uint32_t ref; /* 0: no value */
	uint32_t bytes;
};
void weir_text_set(struct weir_gen *g, struct weir_text *t, const void *data, uint32_t bytes);
WEIR_INLINE const uint8_t *weir_text_data(const struct weir_pages *pg, const struct weir_text *t)
{
	return weir_blob_data((const struct weir_entry *)(void *)weir_ref_get(pg, t->ref));
}

/*   set payload   struct weir_set_head | u32 table[slots]: 1 + offset in heap of a member, 0 empty | heap: [u32 bytes,
 *                 bytes padded to 4]* */
struct weir_set_head {
	uint32_t slots; /* a power of two */
	uint32_t members;
	uint32_t heap_used;
	uint32_t heap_bytes;
};
/* True if it is new. *full is set when the set could not grow any more (1 GiB). */
bool weir_set_add(struct weir_gen *g, uint32_t *ref, const void *data, uint32_t bytes, bool *full);
/* Members one after another: *at starts at 0; false at the end. */
bool weir_set_next(const uint8_t *payload, uint32_t *at, const uint8_t **data, uint32_t *bytes);
bool weir_set_check(const uint8_t *payload, uint32_t capacity, uint64_t members);

#endif
