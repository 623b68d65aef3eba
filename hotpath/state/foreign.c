/* foreign.c: tables joined by a foreign key (foreign.h). @thread worker. */
#include "hotpath/state/foreign.h"

#include "hotpath/core/hash.h"

enum { GEN_LEFT = 0, GEN_HEADS = 2 };

static struct weir_gen *gen_named(const struct weir_slot *sl, int64_t start)
{
	uint32_t at = weir_slot_search(sl, start);
	WEIR_DASSERT(at < sl->gen_count && sl->gens[at].start == start);
	return sl->gens[at].g;
}

static struct weir_linked *linked_at(const struct weir_slot *sl, uint32_t ref)
{
	return ref != 0 ? (struct weir_linked *)(void *)weir_ref_get(&sl->pages, ref) : NULL;
}

static uint64_t *find(const struct weir_slot *sl, struct weir_gen *g, const struct weir_join_row *key)
{
	uint64_t *free_slot;
	return weir_index_find(&g->ix, sl->def, key->hash, key->key, key->key_bytes, &free_slot);
}

void weir_foreign_key(const struct weir_state_def *def, const struct weir_join_row *left, struct weir_buf *room,
		      struct weir_join_row *out)
{
	uint32_t n = weir_key_prefix(left->key, left->key_bytes, def->key_types, def->foreign);
	uint32_t nulls = def->key_count - def->foreign;
	room->bytes = 0;
	weir_buf_room(room, weir_align_up(n + nulls, 8));
	memcpy(room->data, left->key, n);
	memset(room->data + n, 0, weir_align_up(n + nulls, 8) - n); /* a NULL is one byte of 0 */
	*out = (struct weir_join_row){.key = room->data, .key_bytes = n + nulls, .time = left->time};
	out->hash = weir_hash(out->key, out->key_bytes);
}

/* Takes e out of its chain; the head of a chain that ends so goes, too. */
static void unlink_left(struct weir_slot *sl, struct weir_linked *e, const struct weir_join_row *key)
{
	struct weir_gen *left = gen_named(sl, GEN_LEFT), *heads = gen_named(sl, GEN_HEADS);
	struct weir_linked *next = linked_at(sl, e->next), *before = linked_at(sl, e->before);
	if (next != NULL) {
		next->before = e->before;
		weir_gen_mark(left, &next->s.e);
	}
	if (before != NULL) {
		before->next = e->next;
		weir_gen_mark(left, &before->s.e);
		return;
	}
	uint64_t *at = find(sl, heads, key);
	WEIR_ASSERT(at != NULL);
	struct weir_linked *head = (struct weir_linked *)(void *)weir_index_entry(*at);
	head->next = e->next;
	weir_gen_mark(heads, &head->s.e);
	if (head->next == 0)
		weir_table_remove(heads, sl->def, &head->s.e, at);
}

void weir_foreign_put(struct weir_slot *sl, const struct weir_join_row *r, const struct weir_join_row *key)
{
	struct weir_gen *left = gen_named(sl, GEN_LEFT), *heads = gen_named(sl, GEN_HEADS);
	bool fresh = find(sl, left, r) == NULL;
	struct weir_entry *e = weir_gen_find_or_create(left, sl->def, r->hash, r->key, r->key_bytes);
	weir_table_set(left, sl->def, e, r->row, r->row_bytes);
	struct weir_linked *le = (struct weir_linked *)(void *)e;
	le->s.time = r->time;
	if (fresh) {
		bool first = find(sl, heads, key) == NULL;
		struct weir_entry *he = weir_gen_find_or_create(heads, sl->def, key->hash, key->key, key->key_bytes);
		struct weir_linked *head = (struct weir_linked *)(void *)he;
		if (first) {
			head->s.time = 0;
			head->next = head->before = 0;
		}
		struct weir_linked *next = linked_at(sl, head->next);
		le->before = 0;
		le->next = head->next;
		head->next = weir_entry_ref(e);
		weir_gen_mark(heads, he);
		if (next != NULL) {
			next->before = head->next;
			weir_gen_mark(left, &next->s.e);
		}
	}
	weir_gen_mark(left, e);
}

bool weir_foreign_remove(struct weir_slot *sl, const struct weir_join_row *r, const struct weir_join_row *key)
{
	struct weir_gen *left = gen_named(sl, GEN_LEFT);
	uint64_t *at = find(sl, left, r);
	if (at == NULL)
		return false;
	struct weir_entry *e = weir_index_entry(*at);
	unlink_left(sl, (struct weir_linked *)(void *)e, key);
	weir_table_remove(left, sl->def, e, at);
	return true;
}

uint32_t weir_foreign_first(const struct weir_slot *sl, const struct weir_join_row *key)
{
	const uint64_t *at = find(sl, gen_named(sl, GEN_HEADS), key);
	return at != NULL ? ((const struct weir_linked *)(const void *)weir_index_entry(*at))->next : 0;
}

uint32_t weir_foreign_get(const struct weir_slot *sl, uint32_t ref, struct weir_join_row *out)
{
	const struct weir_linked *e = linked_at(sl, ref);
	const struct weir_text *t = weir_table_text(sl->def, &e->s.e);
	uint32_t n;
	*out = (struct weir_join_row){.time = e->s.time};
	out->key = weir_entry_key(sl->def, &e->s.e, &n);
	out->key_bytes = n;
	out->row = weir_text_data(&sl->pages, t);
	out->row_bytes = t->bytes;
	return e->next;
}

/* Whether ref is an entry of g that the index leads to. */
static bool is_entry(const struct weir_slot *sl, struct weir_gen *g, uint32_t ref)
{
	uint32_t no = ref >> WEIR_REF_SHIFT, n;
	if (no >= sl->pages.capacity || sl->pages.page[no].state != WEIR_PAGE_LIVE || sl->pages.page[no].gen != g ||
	    sl->pages.page[no].blob)
		return false;
	const struct weir_page *p = &sl->pages.page[no];
	uint32_t to = (ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8;
	for (uint32_t at = WEIR_PAGE_HEAD; at <= to && at < p->used;) {
		const struct weir_entry *e = (const struct weir_entry *)(const void *)(p->base + at);
		(void)weir_entry_key(sl->def, e, &n);
		if (at == to)
			return (e->flags & WEIR_ENTRY_DEAD) == 0;
		at += (uint32_t)weir_entry_bytes(sl->def, e);
	}
	return false;
}

bool weir_foreign_check(struct weir_slot *sl)
{
	struct weir_gen *left = gen_named(sl, GEN_LEFT), *heads = gen_named(sl, GEN_HEADS);
	uint64_t seen = 0;
	for (uint32_t k = 0; heads->ix.slot != NULL && k <= heads->ix.mask; k++) {
		if (heads->ix.slot[k] <= WEIR_INDEX_REMOVED)
			continue;
		uint32_t before = 0;
		const struct weir_linked *head =
			(const struct weir_linked *)(const void *)weir_index_entry(heads->ix.slot[k]);
		for (uint32_t ref = head->next; ref != 0; seen++) {
			if (seen >= left->entries || !is_entry(sl, left, ref))
				return false;
			const struct weir_linked *e = linked_at(sl, ref);
			if (e->before != before)
				return false;
			before = ref;
			ref = e->next;
		}
	}
	return seen == left->entries;
}
