/* hash.h: the one hash of keys, and which of its bits serve what. Header only, @thread any.
 *
 *     63        48 47        32 31                     0
 *    +------------+------------+------------------------+
 *    |    slot    |    tag     |         index          |
 *    +------------+------------+------------------------+
 *   slot   which slot of a local exchange: the high 16 bits scaled to the slot count (at most 65,536 slots, no
 * division) tag    kept beside an index entry, compared before the key is looked at index  place in a table's index:
 * its low bits under a mask; the whole word is the `hash32` an index keeps for growing The parts are disjoint, so that
 * the keys of one slot still spread over the whole index. The hash is XXH3 64 bit with seed 0: it decides slots, so it
 * is part of the format of durable state and must never change. */
#ifndef WEIR_CORE_HASH_H
#define WEIR_CORE_HASH_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hotpath/core/base.h"

#define WEIR_SLOTS_MAX 65536u

WEIR_INLINE uint64_t weir_hash(const void *key, size_t bytes)
{
	return XXH3_64bits(key, bytes);
}

/* What XXH3 does with 9 to 16 bytes, for those who have them in registers: the first 8 and the last 8 are flipped,
 * multiplied and mixed; other forms of it (vectors) need its constants. */
#define WEIR_HASH_FLIP_FIRST (XXH_readLE64(XXH3_kSecret + 24) ^ XXH_readLE64(XXH3_kSecret + 32))
#define WEIR_HASH_FLIP_LAST  (XXH_readLE64(XXH3_kSecret + 40) ^ XXH_readLE64(XXH3_kSecret + 48))
#define WEIR_HASH_PRIME      UINT64_C(0x165667919E3779F9)

/* weir_hash of a key of 9 to 16 bytes: its first 8 and its last 8 as little-endian words. */
WEIR_INLINE __attribute__((flatten)) uint64_t weir_hash_words(uint64_t first, uint64_t last, uint32_t bytes)
{
	first ^= WEIR_HASH_FLIP_FIRST;
	last ^= WEIR_HASH_FLIP_LAST;
	return XXH3_avalanche(bytes + XXH_swap64(first) + last + XXH3_mul128_fold64(first, last));
}
/* 0..slot_count - 1; slot_count <= WEIR_SLOTS_MAX. */
WEIR_INLINE uint32_t weir_hash_slot(uint64_t hash, uint32_t slot_count)
{
	WEIR_DASSERT(slot_count >= 1 && slot_count <= WEIR_SLOTS_MAX);
	return (uint32_t)(((hash >> 48) * slot_count) >> 16);
}
WEIR_INLINE uint16_t weir_hash_tag(uint64_t hash)
{
	return (uint16_t)(hash >> 32);
}
WEIR_INLINE uint32_t weir_hash_index(uint64_t hash)
{
	return (uint32_t)hash;
}

#endif
