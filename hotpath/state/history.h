/* history.h: the versions of one key in order of time, for keys that have many (versions.h): a B+ tree beside the list
 * they hang in, of the slot's memory, and of it alone: no changelog has heard of it.
 *
 *   leaf    up to 31 versions, ascending; of equal times the later arrival is behind
 *   inner   up to 31 nodes, each but the first with the time of the oldest version under it
 *
 * Versions come anywhere, mostly at the newest end, and go at the oldest. So a node but the first of its level is at
 * least half full, or the last: a version costs 16.5 to 35 bytes. @thread worker (the slot's owner) */
#ifndef WEIR_STATE_HISTORY_H
#define WEIR_STATE_HISTORY_H

#include "hotpath/state/page.h"

enum { WEIR_HISTORY_ITEMS = 31, WEIR_HISTORY_LEVELS = 12 };
struct weir_history_item {
	int64_t time;
	void *at; /* a version, or a node */
};
struct weir_history_node {
	uint32_t first, count;          /* items are item[first] to item[first + count - 1] */
	struct weir_history_node *next; /* of its level, newer */
	struct weir_history_item item[WEIR_HISTORY_ITEMS];
};
_Static_assert(sizeof(struct weir_history_node) == 512, "a block, all of it");

struct weir_history {
	struct weir_entry e; /* its hash is the key's: an index of histories is one of entries */
	uint32_t height;     /* levels of inner nodes */
	uint32_t nodes;      /* of all levels */
	uint64_t count;      /* versions */
	struct weir_history_node *root, *oldest, *newest; /* leaves */
};

void weir_history_init(struct weir_history *h, struct weir_blocks *bl);
void weir_history_fini(struct weir_history *h, struct weir_blocks *bl);
/* Behind all versions up to and at time. Returns the one behind it, NULL: it is the newest. Cost at the newest end: 20
 * instructions and a new node every 31 times; elsewhere a search in each level. */
void *weir_history_put(struct weir_history *h, struct weir_blocks *bl, int64_t time, void *version);
/* The newest version up to and at time, NULL: all are newer. */
void *weir_history_find(const struct weir_history *h, int64_t time);
/* Takes the oldest version out. There are others. */
void weir_history_drop(struct weir_history *h, struct weir_blocks *bl);

WEIR_INLINE uint64_t weir_history_bytes(const struct weir_history *h)
{
	return sizeof *h + (uint64_t)h->nodes * sizeof(struct weir_history_node);
}
/* Of one that has versions. */
WEIR_INLINE void *weir_history_newest(const struct weir_history *h)
{
	const struct weir_history_node *n = h->newest;
	return n->item[n->first + n->count - 1].at;
}
WEIR_INLINE void *weir_history_oldest(const struct weir_history *h)
{
	return h->oldest->item[h->oldest->first].at;
}
/* The time of the one behind the oldest, of two or more. */
WEIR_INLINE int64_t weir_history_second(const struct weir_history *h)
{
	const struct weir_history_node *n = h->oldest;
	return n->count > 1 ? n->item[n->first + 1].time : n->next->item[n->next->first].time;
}

#endif
