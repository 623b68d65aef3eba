/* near.h: rows of tables that do not change for a while, copied for look-ups: key and row of each in one cache line,
 * found by tags so small that those of all rows stay in the cache. A look-up in the table itself reads four lines.
 * @thread worker (the owner of the slots)
 *
 *   tags    groups of eight 16-bit tags, 0: empty. A key's search starts at the group of its hash
 *           and goes on to the next one while groups are full
 *   lines   one for each tag: struct weir_near_line */
#ifndef WEIR_STATE_NEAR_H
#define WEIR_STATE_NEAR_H

#include "hotpath/state/row.h"
#include "hotpath/state/slot.h"

#define WEIR_NEAR_GROUP   8u
#define WEIR_NEAR_BYTES   56u
#define WEIR_NEAR_KEY_MAX 40u /* a longer key is looked up in the table */

struct weir_near_line {
	uint32_t row_bytes;
	uint16_t key_bytes;
	uint16_t slot;
	uint8_t data[WEIR_NEAR_BYTES]; /* key, zeros up to a multiple of 8, row; or, of a longer row, where it lies */
};
_Static_assert(sizeof(struct weir_near_line) == WEIR_CACHE_LINE, "one look-up, one line");

struct weir_near {
	struct weir_arena *ar; /* of what follows */
	uint8_t *memory;       /* lines, tags */
	size_t bytes;
	struct weir_near_line *line;
	uint16_t *tag;
	uint32_t groups; /* 0: there is no copy */
};

/* Bytes that a copy of so many rows takes. */
size_t weir_near_bytes(uint64_t rows);
/* Makes a copy of side `side` of slots[0..count), tables; NULL: a slot of another worker. None of their rows may change
 * until weir_near_drop. Memory is counted as that of ar. */
void weir_near_make(struct weir_near *nr, struct weir_arena *ar, struct weir_slot *const *slots, uint32_t count,
		    uint32_t side);
/* Nothing is done where there is no copy. */
void weir_near_drop(struct weir_near *nr);

WEIR_INLINE uint32_t weir_near_home(const struct weir_near *nr, uint64_t hash, uint32_t slot)
{
	/* A key may be in several slots. */
	uint32_t h = weir_hash_index(hash) ^ slot * UINT32_C(0x9e3779b1);
	return (uint32_t)((uint64_t)h * nr->groups >> 32);
}
/* Which of the eight tags are this one: two bits each. */
WEIR_INLINE uint32_t weir_near_match(const uint16_t *group, uint32_t tag)
{
#ifdef __SSE2__
	__m128i tags = _mm_load_si128((const __m128i *)(const void *)group);
	return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi16(tags, _mm_set1_epi16((short)tag)));
#else
	uint32_t bits = 0;
	for (uint32_t i = 0; i < WEIR_NEAR_GROUP; i++)
		bits |= (group[i] == tag ? 3u : 0u) << (2 * i);
	return bits;
#endif
}
WEIR_INLINE bool weir_near_is(const struct weir_near_line *ln, uint32_t slot, const uint8_t *key, uint32_t key_bytes)
{
	return ln->key_bytes == key_bytes && ln->slot == slot && weir_key_equal(ln->data, key, key_bytes);
}
/* The first line of the home group whose tag fits, its key not looked at; NULL: none does, and if *absent is set, the
 * key is nowhere. */
WEIR_INLINE const struct weir_near_line *weir_near_guess(const struct weir_near *nr, uint64_t hash, uint32_t slot,
							 bool *absent)
{
	uint32_t home = weir_near_home(nr, hash, slot);
	const uint16_t *group = &nr->tag[home * WEIR_NEAR_GROUP];
	uint32_t fits = weir_near_match(group, weir_index_tag(hash));
	*absent = fits == 0 && group[WEIR_NEAR_GROUP - 1] == 0;
	return fits == 0 ? NULL : &nr->line[home * WEIR_NEAR_GROUP + (uint32_t)__builtin_ctz(fits) / 2];
}
/* The key's line, NULL: it is not there. key is readable up to the next multiple of 8 and has at most
 * WEIR_NEAR_KEY_MAX bytes. */
const struct weir_near_line *weir_near_find(const struct weir_near *nr, uint64_t hash, uint32_t slot,
					    const uint8_t *key, uint32_t key_bytes);
WEIR_INLINE struct weir_packed weir_near_row(const struct weir_near_line *ln)
{
	uint32_t at = (ln->key_bytes + 7u) & ~7u;
	struct weir_packed row = {ln->data + at, ln->row_bytes};
	if (WEIR_UNLIKELY(ln->row_bytes > WEIR_NEAR_BYTES - at))
		memcpy(&row.data, ln->data + at, sizeof row.data);
	return row;
}

#endif
