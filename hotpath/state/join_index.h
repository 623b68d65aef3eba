/* join_index.h: one index over the records of both sides and of every generation of a slot's join buffers, so that a
 * row finds the other side's records of its key and its own place in one cache line.
 *
 *   segment 256 lines, 16 KiB (while there is but one: fewer); the highest bits of a hash name it
 *   line    64 bytes, eight places. A key's search starts in the line that its hash's lower bits name and goes on in
 *           the next one, behind a segment's last in the next segment, while lines are full: keys that share a segment
 *           may be more than it holds. Places fill from a line's first on and never become empty again but by a sweep
 *   place   0: empty; else 63..38 hash | 37 list | 36..33 generation | 32 side | 31..0 ref of the record that is the
 *           newest of its key in its generation; list: it is not the only one
 *
 * A place holds all of a hash but its lowest six bits, and where it stands holds those: of 256 lines a hash's is
 *
 *   (bits 13..8 + bits 5..0) modulo 64 | bits 7..6
 *
 * so that hashes that differ in those six alone have lines that are four apart or more, and a look-up is led to no
 * record but of its very hash: a record is a page walk away. Behind full lines bits 7..6 say in which of four lines the
 * search began, and a sweep knows the whole hash of what it moves. It may have begun further away where the four lines
 * before are all full: of what stands there the records are asked, and of all when a segment becomes as large as that.
 * (Smaller ones go by the bits from 6 on.)
 *
 * Records that no row in order can meet, since rows of the other side reach no further back than their own time, are
 * deferred: they stand in no index but, in the order of their turns, in an array of their generation
 * (join_deferred.c). A row somewhat out of order looks through the youngest; one that reaches far back has those of the
 * generation entered, and those that follow it there at once.
 *
 * The five bits of generation and side are a code; start[code] says where its times begin. A generation that goes
 * leaves its places behind: its code is dead, and look-ups pass over them, until the index is full or codes are short:
 * then each segment is written anew with what lives, or split in two, with a look at hardly any record. Generations
 * beyond the fifteenth of a side have an index of their own (weir_gen.ix). @thread worker (the slot's owner) */
#ifndef WEIR_STATE_JOIN_INDEX_H
#define WEIR_STATE_JOIN_INDEX_H

#include "hotpath/state/join_sheet.h"
#include "hotpath/state/slot.h"

enum {
	WEIR_JOIN_LINE = 8,   /* places */
	WEIR_JOIN_CODES = 32, /* 0 and 1 are none */
	WEIR_JOIN_CODE_BITS = WEIR_JOIN_CODES - 1,
	WEIR_JOIN_LIST = 32,
	WEIR_JOIN_SPREAD = 257, /* times a hash: the line stands in bits 13..6 of that */
	WEIR_JOIN_LOW_BITS = 63 /* what is no hash in the upper half of a place */
};

/* Places of records that are not entered yet, in the order of their turns. */
enum { WEIR_JOIN_CHUNK = 32, WEIR_JOIN_CHUNKS = 13 };

struct weir_join_block {
	struct weir_join_block *next, *before;
	int64_t high[WEIR_JOIN_CHUNKS];       /* by chunk: none of those up to its end is younger */
	uint64_t hashes[WEIR_JOIN_CHUNKS][4]; /* by chunk: a bit for each hash in it */
	uint64_t place[WEIR_JOIN_CHUNKS * WEIR_JOIN_CHUNK];
};
struct weir_join_deferred {
	struct weir_join_block *first, *last;
	uint64_t *at, *end; /* in the last one */
	int64_t high;       /* none is younger */
	uint32_t number;    /* of the next record */
};

struct weir_join_index {
	uint64_t **segment;
	uint32_t shift;     /* of a hash to the number of its segment */
	uint32_t line_mask; /* lines of a segment - 1 */
	uint32_t spread;    /* WEIR_JOIN_SPREAD; 1: segments are smaller */
	uint32_t segments;
	uint32_t used, limit;
	uint32_t taken, dead;           /* codes, a bit each; those that are dead are taken */
	uint32_t uncoded;               /* live generations with an index of their own */
	uint32_t held[WEIR_JOIN_CODES]; /* places by code */
	int64_t start[WEIR_JOIN_CODES]; /* by code: the first ms of its generation */
	uint32_t deferring;             /* codes whose records are deferred, a bit each */
	uint32_t blocks;                /* of deferred places */
	int64_t deferred_high[2];       /* by side, of one that is deferred: none that had its turn is younger, be it
					 * deferred itself or entered */
	const struct weir_sheet *open;  /* whose rows, only open_rows of them, have had their turn; else NULL */
	uint32_t open_rows;
	struct weir_join_deferred *deferred; /* by code / 2, as only one side's are; NULL: none ever was */
	const struct weir_join_lines *lines; /* what touches many lines (join_lines.h) */
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
/* Whether records of `side` are deferred. */
bool weir_join_defers(const struct weir_state_def *def, uint32_t side);
/* The same of a generation; 0 is none. */
WEIR_INLINE bool weir_join_is_deferring(const struct weir_join_index *ix, uint32_t code)
{
	return (ix->deferring >> code & 1) != 0;
}
/* The record at this place, of a code that is deferring, has had its turn. */
void weir_join_defer(struct weir_slot *sl, uint64_t place, int64_t time);
/* The same of rows [from, to) of a sheet, one after the other; where its code is not deferring, look-ups find them. */
void weir_join_sheet_turned(struct weir_slot *sl, struct weir_sheet *sh, uint32_t from, uint32_t to);
/* A bit for the hash of each record of `side` that had its turn and is not older than `from`. False: there are too many
 * for that. */
enum { WEIR_JOIN_FILTER_BITS = 1 << 16 };
bool weir_join_deferred_filter(const struct weir_slot *sl, uint32_t side, int64_t from,
			       uint64_t filter[WEIR_JOIN_FILTER_BITS / 64]);
WEIR_INLINE bool weir_join_filter_has(const uint64_t *filter, uint32_t hash)
{
	return (filter[hash >> 22] >> (hash >> 16 & 63) & 1) != 0;
}
/* Whether a row of the other side that reaches from `from` to `to` may meet a deferred record of `side`. */
bool weir_join_may_meet_deferred(const struct weir_slot *sl, uint32_t side, uint32_t hash, int64_t from, int64_t to);
/* Appends those of `side` that r meets and that are not late at task_time to list, as struct weir_join_found, of equal
 * times in the order of their turns; or enters them, where there are too many to look at. */
struct weir_join_row;
void weir_join_find_deferred(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, int64_t from,
			     int64_t to, int64_t task_time, struct weir_buf *list);
/* Enters those of a code. */
void weir_join_enter_code(struct weir_slot *sl, uint32_t code);
/* Forgets them: their generation goes. */
void weir_join_deferred_free(struct weir_slot *sl, uint32_t code);
void weir_join_deferred_end(struct weir_slot *sl); /* all of the slot */
/* Restore: records whose older is their number; in any order, then all at once. */
void weir_join_deferred_restore(struct weir_slot *sl, struct weir_buffered *const *bf, uint32_t count);
/* Puts bf, of g, into its key's list. fresh: it is new since the last barrier. (join_state.c) */
void weir_join_list_add(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *bf, bool fresh);
/* Adds a place, of this hash. */
void weir_join_index_add(struct weir_slot *sl, uint32_t hash, uint64_t place);

WEIR_INLINE uint64_t weir_join_place_value(uint32_t hash, uint32_t code, uint32_t ref)
{
	return (uint64_t)((hash & ~(uint32_t)WEIR_JOIN_LOW_BITS) | code) << 32 | ref;
}
WEIR_INLINE uint32_t weir_join_place_code(uint64_t place)
{
	return (uint32_t)(place >> 32) & WEIR_JOIN_CODE_BITS;
}
/* The number of the line, in its segment, where the search for this hash begins. */
WEIR_INLINE uint32_t weir_join_index_home(const struct weir_join_index *ix, uint32_t hash)
{
	return hash * ix->spread >> 6 & ix->line_mask;
}
WEIR_INLINE uint64_t *weir_join_index_line(const struct weir_join_index *ix, uint32_t hash)
{
	return &ix->segment[(uint64_t)hash >> ix->shift][weir_join_index_home(ix, hash) * WEIR_JOIN_LINE];
}
/* The line that the search for this hash goes on in, step lines behind its first. */
WEIR_INLINE uint64_t *weir_join_index_next(const struct weir_join_index *ix, uint32_t hash, uint32_t step)
{
	uint64_t line = (uint64_t)weir_join_index_home(ix, hash) + step;
	uint64_t beyond = line >> __builtin_ctz(ix->line_mask + 1); /* so many segments on */
	uint64_t segment = (((uint64_t)hash >> ix->shift) + beyond) & (ix->segments - 1);
	return &ix->segment[segment][(line & ix->line_mask) * WEIR_JOIN_LINE];
}
WEIR_INLINE bool weir_join_place_lives(const struct weir_join_index *ix, uint64_t place)
{
	return (ix->dead >> weir_join_place_code(place) & 1) == 0;
}
WEIR_INLINE struct weir_buffered *weir_join_place_record(const struct weir_pages *pg, uint64_t place)
{
	uint32_t ref = (uint32_t)place;
	return (struct weir_buffered *)(void *)(pg->base[ref >> WEIR_REF_SHIFT] +
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
	others = _mm_andnot_si128(empty, others); /* a hash may leave but zeros */
	uint32_t fits = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(others, same));
	return (struct weir_join_look){fits & 255, fits >> 8,
				       (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(empty, zero))};
#else
	struct weir_join_look lk = {0, 0, 0};
	for (uint32_t i = 0; i < WEIR_JOIN_LINE; i++) {
		uint32_t have = (uint32_t)(line[i] >> 32);
		lk.others |= (uint32_t)(have != 0 && (have & ~(uint32_t)(WEIR_JOIN_LOW_BITS - 1)) == other) << i;
		lk.own |= (uint32_t)((have & ~(uint32_t)WEIR_JOIN_LIST) == own) << i;
		lk.empty |= (uint32_t)(have == 0) << i;
	}
	return lk;
#endif
}

#endif
