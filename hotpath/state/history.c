/* history.c: the versions of one key in order of time (history.h). @thread worker. */
#include "hotpath/state/history.h"

static struct weir_history_node *node_create(struct weir_history *h, struct weir_blocks *bl)
{
	struct weir_history_node *n = weir_blocks_take(bl, sizeof *n);
	n->first = n->count = 0;
	n->next = NULL;
	h->nodes++;
	return n;
}

static void node_give(struct weir_history *h, struct weir_blocks *bl, struct weir_history_node *n)
{
	weir_blocks_give(bl, n, sizeof *n);
	h->nodes--;
}

void weir_history_init(struct weir_history *h, struct weir_blocks *bl)
{
	memset(h, 0, sizeof *h);
	h->root = h->oldest = h->newest = node_create(h, bl);
}

void weir_history_fini(struct weir_history *h, struct weir_blocks *bl)
{
	struct weir_history_node *level = h->root;
	for (uint32_t d = h->height + 1; d > 0; d--) {
		struct weir_history_node *below = d > 1 ? level->item[level->first].at : NULL;
		while (level != NULL) {
			struct weir_history_node *next = level->next;
			node_give(h, bl, level);
			level = next;
		}
		level = below;
	}
	memset(h, 0, sizeof *h);
}

/* How many items are up to and at time. */
static inline uint32_t node_search(const struct weir_history_node *n, int64_t time)
{
	const struct weir_history_item *it = n->item + n->first;
	uint32_t low = 0, high = n->count;
	while (low < high) {
		uint32_t mid = (low + high) / 2;
		if (it[mid].time <= time)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Which of an inner node's children time belongs to. What the first one's item says changes nothing. */
static inline uint32_t child_search(const struct weir_history_node *n, int64_t time)
{
	uint32_t at = node_search(n, time);
	return at != 0 ? at - 1 : 0;
}

/* Makes x the item at `at` of a node that has room. */
static void node_place(struct weir_history_node *n, uint32_t at, struct weir_history_item x)
{
	if (n->first + n->count == WEIR_HISTORY_ITEMS) { /* what was dropped is made room of */
		memmove(n->item, n->item + n->first, n->count * sizeof *n->item);
		n->first = 0;
	}
	struct weir_history_item *it = n->item + n->first;
	memmove(it + at + 1, it + at, (n->count - at) * sizeof *it);
	it[at] = x;
	n->count++;
}

/* The same of any node. Returns the one that the items behind went into, NULL: there was room. At the newest end only
 * the new one goes: what is left behind stays full. */
static struct weir_history_node *node_insert(struct weir_history *h, struct weir_blocks *bl,
					     struct weir_history_node *n, uint32_t at, struct weir_history_item x)
{
	if (WEIR_LIKELY(n->count < WEIR_HISTORY_ITEMS)) {
		node_place(n, at, x);
		return NULL;
	}
	struct weir_history_node *behind = node_create(h, bl);
	uint32_t keep = n->next == NULL && at == WEIR_HISTORY_ITEMS ? at : WEIR_HISTORY_ITEMS / 2;
	behind->next = n->next;
	behind->count = WEIR_HISTORY_ITEMS - keep;
	memcpy(behind->item, n->item + keep, behind->count * sizeof *n->item);
	n->next = behind;
	n->count = keep;
	if (at < keep)
		node_place(n, at, x);
	else
		node_place(behind, at - keep, x);
	return behind;
}

static WEIR_NOINLINE void *put_slow(struct weir_history *h, struct weir_blocks *bl, int64_t time, void *version)
{
	struct weir_history_node *path[WEIR_HISTORY_LEVELS], *n = h->root;
	uint32_t child[WEIR_HISTORY_LEVELS];
	for (uint32_t d = h->height; d > 0; d--) {
		path[d] = n;
		child[d] = child_search(n, time);
		n = n->item[n->first + child[d]].at;
	}
	uint32_t at = node_search(n, time);
	void *newer = at < n->count     ? n->item[n->first + at].at
		      : n->next != NULL ? n->next->item[n->next->first].at
					: NULL;
	struct weir_history_node *behind = node_insert(h, bl, n, at, (struct weir_history_item){time, version});
	if (behind != NULL && behind->next == NULL)
		h->newest = behind;
	for (uint32_t d = 1; behind != NULL && d <= h->height; d++)
		behind = node_insert(h, bl, path[d], child[d] + 1,
				     (struct weir_history_item){behind->item[0].time, behind});
	if (behind != NULL) {
		struct weir_history_node *root = node_create(h, bl), *old = h->root;
		WEIR_ASSERT(h->height + 1 < WEIR_HISTORY_LEVELS); /* 15 to the power of it are more than a slot holds */
		root->item[0] = (struct weir_history_item){old->item[old->first].time, old};
		root->item[1] = (struct weir_history_item){behind->item[0].time, behind};
		root->count = 2;
		h->root = root;
		h->height++;
	}
	return newer;
}

void *weir_history_put(struct weir_history *h, struct weir_blocks *bl, int64_t time, void *version)
{
	struct weir_history_node *n = h->newest;
	uint32_t end = n->first + n->count;
	h->count++;
	if (WEIR_UNLIKELY(end == WEIR_HISTORY_ITEMS || (n->count != 0 && n->item[end - 1].time > time)))
		return put_slow(h, bl, time, version);
	n->item[end] = (struct weir_history_item){time, version};
	n->count++;
	return NULL;
}

void *weir_history_find(const struct weir_history *h, int64_t time)
{
	const struct weir_history_node *n = h->newest;
	if (n->item[n->first].time > time) {
		n = h->root;
		for (uint32_t d = h->height; d > 0; d--)
			n = n->item[n->first + child_search(n, time)].at;
	}
	uint32_t at = node_search(n, time);
	return at != 0 ? n->item[n->first + at - 1].at : NULL;
}

void weir_history_drop(struct weir_history *h, struct weir_blocks *bl)
{
	struct weir_history_node *path[WEIR_HISTORY_LEVELS], *n = h->root;
	WEIR_DASSERT(h->count > 1);
	h->count--;
	h->oldest->first++;
	if (--h->oldest->count != 0)
		return;
	h->oldest = h->oldest->next;
	for (uint32_t d = h->height; d > 0; d--) {
		path[d] = n;
		n = n->item[n->first].at;
	}
	for (uint32_t d = 1;; d++) { /* n is empty: another one is behind it, so somewhere above it there is, too */
		node_give(h, bl, n);
		n = path[d];
		n->first++;
		if (--n->count != 0)
			break;
	}
	while (h->height != 0 && h->root->count == 1) {
		n = h->root;
		h->root = n->item[n->first].at;
		h->height--;
		node_give(h, bl, n);
	}
}
