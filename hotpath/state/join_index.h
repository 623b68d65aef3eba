/* join_index.h: one index over the records of both sides and of every generation of a slot's join buffers, so that a
 * row finds the other side's records of its key and its own place in one cache line.
 *
 *   segment 256 lines, 16 KiB (while there is but one: fewer); the highest bits of a hash name it
 *   line    64 bytes, eight places. A key's search starts in the line that its hash's lowest bits but six name and goes
 *           on in the next one of the segment while lines are full. Places fill from a line's first on and never become
 *           empty again but by a sweep
 *   place   0: empty; else 63..38 hash | 37 list | 36..33 generation | 32 side | 31..0 ref of the record that is the
 *           newest of its key in its generation; list: it is not the only one
 *
 * The five bits of generation and side are a code; start[code] says where its times begin. A generation that goes
 * leaves its places behind: its code is dead, and look-ups pass over them, until the index is full or codes are short:
 * then each segment is written anew with what lives, or split in two, without a look at the records. Generations beyond
 * the fifteenth of a side have an index of their own (weir_gen.ix). @thread worker (the slot's owner) */
#ifndef WEIR_STATE_JOIN_INDEX_H
#define WEIR_STATE_JOIN_INDEX_H

#include "hotpath/state/slot.h"

enum {
	WEIR_JOIN_LINE = 8,   /* places */
	WEIR_JOIN_CODES = 32, /* 0 and 1 are none */
	WEIR_JOIN_CODE_BITS = WEIR_JOIN_CODES - 1,
	WEIR_JOIN_LIST = 32,
	WEIR_JOIN_LOW_BITS = 63 /* what is no hash in the upper half of a place */
};

struct weir_join_index {
	uint64_t **segment;
	uint32_t shift;     /* of a hash to the number of its segment */
	uint32_t line_mask; /* lines of a segment - 1 */
	uint32_t segments;
	uint32_t used, limit;
	uint32_t taken, dead;           /* codes, a bit each; those that are dead are taken */
	uint32_t uncoded;               /* live generations with an index of their own */
	uint32_t held[WEIR_JOIN_CODES]; /* places by code */
	int64_t start[WEIR_JOIN_CODES]; /* by code: the first ms of its generation */
};

/* A code for a generation that the slot is to have; 0: there is none, it is to have an index of its own. */
uint8_t weir_join_index_begin(struct weir_slot *sl, int64_t start);
/* The generation goes. */
void weir_join_index_end(struct weir_slot *sl, uint8_t code);
void weir_join_index_free(struct weir_slot *sl);
uint64_t weir_join_index_bytes(const struct weir_slot *sl);
/* Room for one more place at least: sweeps. */
void weir_join_index_sweep(struct weir_slot *sl);
/* Where the records of the key in the generation of this code hang, or NULL. */
uint64_t *weir_join_index_find(const struct weir_slot *sl, uint32_t hash, uint32_t code, const uint8_t *key,
			       uint32_t key_bytes);
/* Adds a place. */
void weir_join_index_add(struct weir_slot *sl, uint64_t place);

WEIR_INLINE uint64_t weir_join_place_value(uint32_t hash, uint32_t code, uint32_t ref)
{
	return (uint64_t)((hash & ~(uint32_t)WEIR_JOIN_LOW_BITS) | code) << 32 | ref;
}
WEIR_INLINE uint32_t weir_join_place_code(uint64_t place)
{
	return (uint32_t)(place >> 32) & WEIR_JOIN_CODE_BITS;
}
WEIR_INLINE uint64_t *weir_join_index_line(const struct weir_join_index *ix, uint32_t hash)
{
	return &ix->segment[(uint64_t)hash >> ix->shift][(hash >> 6 & ix->line_mask) * WEIR_JOIN_LINE];
}
/* The line that the search for this hash goes on in. */
WEIR_INLINE uint64_t *weir_join_index_next(const struct weir_join_index *ix, uint64_t *line, uint32_t hash)
{
	uint64_t *segment = ix->segment[(uint64_t)hash >> ix->shift];
	return &segment[(((uint32_t)(line - segment) / WEIR_JOIN_LINE + 1) & ix->line_mask) * WEIR_JOIN_LINE];
}
WEIR_INLINE bool weir_join_place_lives(const struct weir_join_index *ix, uint64_t place)
{
	return (ix->dead >> weir_join_place_code(place) & 1) == 0;
}
WEIR_INLINE struct weir_buffered *weir_join_place_record(const struct weir_pages *pg, uint64_t place)
{
	uint32_t ref = (uint32_t)place;
	return (struct weir_buffered *)(void *)(pg->page[ref >> WEIR_REF_SHIFT].base +
						(ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8);
}

/* Which places of a line, bits 0 to 7, hold the hash of a place value: of the other side, in any generation; in its
 * own generation; and which are empty. */
struct weir_join_look {
	uint32_t others, own, empty;
};
WEIR_INLINE struct weir_join_look weir_join_line_look(const uint64_t *line, uint64_t place)
{
	const uint32_t own = (uint32_t)(place >> 32) & ~(uint32_t)WEIR_JOIN_LIST;
	const uint32_t other = (own & ~(uint32_t)(WEIR_JOIN_CODE_BITS - 1)) ^ 1;
#ifdef __SSE2__
	const float *at = (const float *)(const void *)line;
	__m128 w0 = _mm_load_ps(at), w1 = _mm_load_ps(at + 4), w2 = _mm_load_ps(at + 8), w3 = _mm_load_ps(at + 12);
	__m128i a = _mm_castps_si128(_mm_shuffle_ps(w0, w1, 0xdd)), b = _mm_castps_si128(_mm_shuffle_ps(w2, w3, 0xdd));
	const __m128i zero = _mm_setzero_si128(), is_own = _mm_set1_epi32((int)own),
		      is_other = _mm_set1_epi32((int)other), no_list = _mm_set1_epi32(~WEIR_JOIN_LIST),
		      no_code = _mm_set1_epi32(~(WEIR_JOIN_LOW_BITS - 1));
	__m128i others = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_and_si128(a, no_code), is_other),
					 _mm_cmpeq_epi32(_mm_and_si128(b, no_code), is_other));
	__m128i same = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_and_si128(a, no_list), is_own),
				       _mm_cmpeq_epi32(_mm_and_si128(b, no_list), is_own));
	__m128i empty = _mm_packs_epi32(_mm_cmpeq_epi32(a, zero), _mm_cmpeq_epi32(b, zero));
	uint32_t fits = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(others, same));
	return (struct weir_join_look){fits & 255, fits >> 8,
				       (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(empty, zero))};
#else
	struct weir_join_look lk = {0, 0, 0};
	for (uint32_t i = 0; i < WEIR_JOIN_LINE; i++) {
		uint32_t have = (uint32_t)(line[i] >> 32);
		lk.others |= (uint32_t)((have & ~(uint32_t)(WEIR_JOIN_LOW_BITS - 1)) == other) << i;
		lk.own |= (uint32_t)((have & ~(uint32_t)WEIR_JOIN_LIST) == own) << i;
		lk.empty |= (uint32_t)(have == 0) << i;
	}
	return lk;
#endif
}

#endif
