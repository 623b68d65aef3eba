/* versions.c: tables with their history (versions.h). A version is an entry of a buffer whose time stands in front of
 * its row: the generation covers all time, so its place in it says nothing. @thread worker. */
#include "hotpath/state/versions.h"
#include "hotpath/state/history.h"

enum {
	VERSION_SIDE = 1,
	VERSION_HEAD = 9,
	/* A search that has passed so many makes a history, and one with fewer goes: what it costs is a node of 512
	 * bytes at least. */
	WALK_MAX = 16,
	HISTORY_MIN = 8
};

static struct weir_gen *versions_gen(const struct weir_slot *sl)
{
	if (WEIR_LIKELY(sl->gens[0].start == VERSION_SIDE)) /* no row waits from before 1970 */
		return sl->gens[0].g;
	uint32_t at = weir_slot_search(sl, VERSION_SIDE);
	WEIR_DASSERT(at < sl->gen_count && sl->gens[at].start == VERSION_SIDE);
	return sl->gens[at].g;
}

static struct weir_buffered *older_of(const struct weir_slot *sl, const struct weir_buffered *v)
{
	return v->older != 0 ? (struct weir_buffered *)(void *)weir_ref_get(&sl->pages, v->older) : NULL;
}

static const uint8_t *version_row(const struct weir_slot *sl, const struct weir_buffered *v)
{
	uint32_t n;
	const uint8_t *key = weir_entry_key(sl->def, &v->e, &n);
	return key + n;
}

static int64_t version_time(const struct weir_slot *sl, const struct weir_buffered *v)
{
	return v->row_bytes < VERSION_HEAD ? INT64_MIN : (int64_t)weir_load_le64(version_row(sl, v));
}

/* ---- histories ---- */

/* The place of head's history, which it has. */
static uint64_t *history_at(const struct weir_slot *sl, uint64_t hash, const struct weir_buffered *head)
{
	const struct weir_index *ix = &sl->histories;
	for (uint32_t at = weir_index_home(ix, weir_hash_index(hash));; at = (at + 1) & ix->mask) {
		uint64_t v = ix->slot[at];
		WEIR_ASSERT(v != 0);
		if (v >> 48 == weir_index_tag(hash) &&
		    weir_history_newest((struct weir_history *)(void *)weir_index_entry(v)) == head)
			return &ix->slot[at];
	}
}

static struct weir_history *history_of(const struct weir_slot *sl, uint64_t hash, const struct weir_buffered *head)
{
	if (WEIR_LIKELY((head->e.flags & WEIR_ENTRY_HISTORY) == 0))
		return NULL;
	return (struct weir_history *)(void *)weir_index_entry(*history_at(sl, hash, head));
}

static void history_index(struct weir_slot *sl, struct weir_history *h, uint64_t hash)
{
	struct weir_index *ix = &sl->histories;
	if (ix->slot == NULL)
		weir_index_init(ix, &sl->blocks, 0);
	else if (ix->used >= ix->limit)
		weir_index_grow(ix, &sl->blocks);
	h->e.hash = weir_hash_index(hash);
	uint32_t at = weir_index_home(ix, h->e.hash);
	while (ix->slot[at] > WEIR_INDEX_REMOVED)
		at = (at + 1) & ix->mask;
	ix->used += ix->slot[at] == 0;
	weir_index_store(&ix->slot[at], (uint64_t)weir_index_tag(hash) << 48 | (uint64_t)(uintptr_t)h);
}

/* Of all versions from head on. */
static WEIR_NOINLINE struct weir_history *history_make(struct weir_slot *sl, uint64_t hash, struct weir_buffered *head)
{
	struct weir_history *h = weir_blocks_take(&sl->blocks, sizeof *h);
	uint64_t n = 0, at = 0;
	for (const struct weir_buffered *v = head; v != NULL; v = older_of(sl, v))
		n++;
	struct weir_buffered **list = weir_blocks_take(&sl->blocks, n * sizeof *list);
	for (struct weir_buffered *v = head; v != NULL; v = older_of(sl, v))
		list[at++] = v;
	weir_history_init(h, &sl->blocks);
	while (at-- != 0)
		(void)weir_history_put(h, &sl->blocks, version_time(sl, list[at]), list[at]);
	weir_blocks_give(&sl->blocks, list, n * sizeof *list);
	history_index(sl, h, hash);
	sl->history_bytes += weir_history_bytes(h);
	head->e.flags |= WEIR_ENTRY_HISTORY;
	return h;
}

static void history_unmake(struct weir_slot *sl, struct weir_history *h, uint64_t hash)
{
	struct weir_buffered *head = weir_history_newest(h);
	weir_index_store(history_at(sl, hash, head), WEIR_INDEX_REMOVED);
	head->e.flags &= (uint8_t)~WEIR_ENTRY_HISTORY;
	sl->history_bytes -= weir_history_bytes(h);
	weir_history_fini(h, &sl->blocks);
	weir_blocks_give(&sl->blocks, h, sizeof *h);
}

/* From head on: the first one at or before time, NULL if there is none, and the one it is behind, NULL: it is head.
 * False: too many are newer. */
static inline bool walk(const struct weir_slot *sl, struct weir_buffered *head, int64_t time,
			struct weir_buffered **found, struct weir_buffered **newer)
{
	*found = head;
	*newer = NULL;
	for (uint32_t n = 0; *found != NULL && version_time(sl, *found) > time; n++) {
		if (n == WALK_MAX)
			return false;
		*newer = *found;
		*found = older_of(sl, *found);
	}
	return true;
}

/* ---- pruning: everything behind the newest version at or before low ---- */

static void version_kill(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *v)
{
	g->entries--;
	weir_gen_kill(g, &v->e, weir_entry_bytes(sl->def, &v->e));
}

/* v is the oldest one. */
static void list_end(struct weir_gen *g, struct weir_buffered *v)
{
	v->older = 0;
	weir_gen_mark(g, &v->e);
}

static void prune_history(struct weir_slot *sl, struct weir_gen *g, struct weir_history *h, uint64_t hash, int64_t low)
{
	if (h->count < 2 || weir_history_second(h) > low)
		return;
	uint64_t bytes = weir_history_bytes(h);
	while (h->count > 1 && weir_history_second(h) <= low) {
		struct weir_buffered *v = weir_history_oldest(h);
		weir_history_drop(h, &sl->blocks);
		version_kill(sl, g, v);
	}
	sl->history_bytes -= bytes - weir_history_bytes(h);
	list_end(g, weir_history_oldest(h));
	if (h->count < HISTORY_MIN)
		history_unmake(sl, h, hash);
}

/* Of a key without a history. */
static void prune_list(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *head, uint64_t hash, int64_t low)
{
	struct weir_buffered *v, *newer;
	if (!walk(sl, head, low, &v, &newer)) {
		prune_history(sl, g, history_make(sl, hash, head), hash, low);
		return;
	}
	if (v == NULL || v->older == 0)
		return;
	struct weir_buffered *next = older_of(sl, v);
	list_end(g, v);
	while (next != NULL) {
		struct weir_buffered *after = older_of(sl, next);
		version_kill(sl, g, next);
		next = after;
	}
}

/* ---- versions ---- */

static struct weir_buffered *version_create(struct weir_slot *sl, struct weir_gen *g, const struct weir_join_row *r,
					    bool deletes)
{
	bool is_long = r->key_bytes >= WEIR_KEY_LONG;
	uint64_t used =
		sizeof(struct weir_buffered) + (is_long ? 8 : 0) + r->key_bytes + VERSION_HEAD + (uint64_t)r->row_bytes;
	uint64_t bytes = weir_align_up(used, 8);
	struct weir_entry *e = weir_gen_take(g, bytes, false);
	struct weir_buffered *v = (struct weir_buffered *)(void *)e;
	uint8_t *at = (uint8_t *)(v + 1);
	e->hash = weir_hash_index(r->hash);
	v->delta = 0;
	v->older = 0;
	v->row_bytes = VERSION_HEAD + r->row_bytes;
	e->key_bytes = is_long ? WEIR_KEY_LONG : (uint16_t)r->key_bytes;
	if (is_long) {
		weir_store_le64(at, r->key_bytes);
		at += 8;
	}
	memcpy(at, r->key, r->key_bytes);
	at += r->key_bytes;
	weir_store_le64(at, (uint64_t)r->time);
	at[8] = deletes;
	if (r->row_bytes != 0)
		memcpy(at + VERSION_HEAD, r->row, r->row_bytes);
	memset((uint8_t *)e + used, 0, bytes - used);
	weir_gen_note_new(g);
	g->entries++;
	(void)sl;
	return v;
}

void weir_versions_put(struct weir_slot *sl, const struct weir_join_row *r, bool deletes, int64_t low)
{
	struct weir_gen *g = versions_gen(sl);
	struct weir_buffered *v = version_create(sl, g, r, deletes);
	uint64_t *free_slot;
	uint64_t *at = weir_index_find(&g->ix, sl->def, r->hash, r->key, r->key_bytes, &free_slot);
	if (at == NULL) {
		weir_gen_index_put(g, &v->e, r->hash, free_slot);
		return;
	}
	struct weir_buffered *head = (struct weir_buffered *)(void *)weir_index_entry(*at), *next, *newer;
	struct weir_history *h = history_of(sl, r->hash, head);
	if (h == NULL && !walk(sl, head, r->time, &next, &newer))
		h = history_make(sl, r->hash, head);
	if (h != NULL) {
		uint64_t bytes = weir_history_bytes(h);
		newer = weir_history_put(h, &sl->blocks, r->time, v);
		next = newer != NULL ? older_of(sl, newer) : head;
		sl->history_bytes += weir_history_bytes(h) - bytes;
	}
	v->older = next != NULL ? weir_entry_ref(&next->e) : 0;
	if (newer == NULL) {
		v->e.flags |= head->e.flags & WEIR_ENTRY_HISTORY;
		head->e.flags &= (uint8_t)~WEIR_ENTRY_HISTORY;
		weir_index_store(at, (*at & ~WEIR_INDEX_POINTER) | (uint64_t)(uintptr_t)v);
		head = v;
	} else {
		newer->older = weir_entry_ref(&v->e);
		weir_gen_mark(g, &newer->e);
	}
	if (low == WEIR_TIME_UNSET)
		return;
	if (h != NULL)
		prune_history(sl, g, h, r->hash, low);
	else
		prune_list(sl, g, head, r->hash, low);
}

bool weir_versions_find(struct weir_slot *sl, const struct weir_join_row *r, int64_t time, struct weir_join_row *out)
{
	const struct weir_gen *g = versions_gen(sl);
	uint64_t *free_slot;
	const uint64_t *at = weir_index_find(&g->ix, sl->def, r->hash, r->key, r->key_bytes, &free_slot);
	if (at == NULL)
		return false;
	struct weir_buffered *head = (struct weir_buffered *)(void *)weir_index_entry(*at), *v = head, *newer;
	if (version_time(sl, head) > time) {
		struct weir_history *h = history_of(sl, r->hash, head);
		if (h == NULL && !walk(sl, head, time, &v, &newer))
			h = history_make(sl, r->hash, head);
		if (h != NULL)
			v = weir_history_find(h, time);
	}
	if (v == NULL || v->row_bytes < VERSION_HEAD)
		return false;
	const uint8_t *row = version_row(sl, v);
	if (row[8] != 0)
		return false;
	*out = (struct weir_join_row){.hash = r->hash,
				      .time = version_time(sl, v),
				      .key = r->key,
				      .key_bytes = r->key_bytes,
				      .row = row + VERSION_HEAD,
				      .row_bytes = v->row_bytes - VERSION_HEAD};
	return true;
}
