/* versions.c: tables with their history (versions.h). A version is an entry of a buffer whose time stands in front of
 * its row: the generation covers all time, so its place in it says nothing. @thread worker. */
#include "hotpath/state/versions.h"

enum { VERSION_SIDE = 1, VERSION_HEAD = 9 };

static struct weir_gen *versions_gen(const struct weir_slot *sl)
{
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

/* Everything behind the newest version at or before low. */
static void prune(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *v, int64_t low)
{
	while (v != NULL && version_time(sl, v) > low)
		v = older_of(sl, v);
	if (v == NULL || v->older == 0)
		return;
	struct weir_buffered *next = older_of(sl, v);
	v->older = 0;
	weir_gen_mark(g, &v->e);
	while (next != NULL) {
		struct weir_buffered *after = older_of(sl, next);
		g->entries--;
		weir_gen_kill(g, &next->e, weir_entry_bytes(sl->def, &next->e));
		next = after;
	}
}

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
	struct weir_buffered *next = (struct weir_buffered *)(void *)weir_index_entry(*at), *newer = NULL;
	while (next != NULL && version_time(sl, next) > r->time) {
		newer = next;
		next = older_of(sl, next);
	}
	v->older = next != NULL ? weir_entry_ref(&next->e) : 0;
	if (newer == NULL) {
		weir_index_store(at, (*at & ~WEIR_INDEX_POINTER) | (uint64_t)(uintptr_t)v);
	} else {
		newer->older = weir_entry_ref(&v->e);
		weir_gen_mark(g, &newer->e);
	}
	if (low != WEIR_TIME_UNSET)
		prune(sl, g, (struct weir_buffered *)(void *)weir_index_entry(*at), low);
}

bool weir_versions_find(const struct weir_slot *sl, const struct weir_join_row *r, int64_t time,
			struct weir_join_row *out)
{
	const struct weir_gen *g = versions_gen(sl);
	uint64_t *free_slot;
	const uint64_t *at = weir_index_find(&g->ix, sl->def, r->hash, r->key, r->key_bytes, &free_slot);
	const struct weir_buffered *v = at != NULL ? (const struct weir_buffered *)(void *)weir_index_entry(*at) : NULL;
	while (v != NULL && version_time(sl, v) > time)
		v = older_of(sl, v);
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
