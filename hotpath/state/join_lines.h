/* join_lines.h: what sheets do with the lines of a slot's index (join_index.h), and how those are parted when it grows:
 * one text (join_lines_text.h), compiled for several instruction sets; all give the same answers and leave the same
 * index behind. @thread worker (the slot's owner) */
#ifndef WEIR_STATE_JOIN_LINES_H
#define WEIR_STATE_JOIN_LINES_H

#include "hotpath/state/join_state.h"

enum { WEIR_JOIN_LINES = 256 /* of a segment of the largest size */ };

/* How a segment of that size is written anew. */
struct weir_join_parting {
	uint64_t bit;  /* of a place: it goes into the second segment; 0: there is none */
	uint64_t fits; /* what of a place says whether it stands in its own line ... */
	uint64_t home; /* ... and what it says then in line 0; from there on WEIR_JOIN_LINE_STEP more in each */
	uint32_t dead; /* codes, a bit each */
	uint32_t full; /* a bit for each of the lines before line 0 that is full, the last one's the lowest */
};
#define WEIR_JOIN_LINE_STEP (UINT64_C(1) << 38)
/* Where those before a line are full it is in doubt how far from home its places stand (join_index.h). */
#define WEIR_JOIN_LINES_FULL UINT32_C(15)

/* Places that did not stay. */
struct weir_join_beyond {
	uint32_t count;
	uint16_t line[WEIR_JOIN_LINES * WEIR_JOIN_LINE + 8]; /* where each stood; and whether in doubt */
	uint64_t place[WEIR_JOIN_LINES * WEIR_JOIN_LINE];
};
#define WEIR_JOIN_DOUBT UINT16_C(0x8000)

struct weir_join_lines {
	const char *name;
	bool (*available)(void);
	/* weir_join_enter_sheet of rows [from, to), for which there is room. */
	void (*enter)(struct weir_slot *sl, struct weir_sheet *sh, uint32_t from, uint32_t to);
	/* weir_join_look_sheet. */
	bool (*look)(const struct weir_slot *sl, struct weir_sheet *sh, uint32_t *from, uint32_t to,
		     struct weir_join_meeting *mt);
	/* What lives of each line is written to the same line of the segment or of the second one, and zeros behind it;
	 * what stands in a line that is not its own, or is in doubt, goes to by. */
	void (*split)(uint64_t *segment, uint64_t *second, const struct weir_join_parting *pt,
		      struct weir_join_beyond *by);
};

extern const struct weir_join_lines weir_join_lines_plain, weir_join_lines_avx2, weir_join_lines_avx512;
/* The best one here. */
const struct weir_join_lines *weir_join_lines_best(void);
/* For tests: NULL where the build or the machine has none of this name. */
const struct weir_join_lines *weir_join_lines_named(const char *name);

#endif
