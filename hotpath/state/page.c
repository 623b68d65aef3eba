/* page.c: pages of a slot, their numbers and generations, the index over a generation's entries. @thread worker. */
#include "hotpath/state/page.h"
#include "hotpath/core/hash.h"
#include "hotpath/state/slot.h"

/* ---- numbers ---- */

static void numbers_grow(struct weir_numbers *nu, struct weir_blocks *bl, uint32_t words)
{
	uint32_t to = nu->words == 0 ? 8 : nu->words;
	while (to < words)
		to *= 2;
	if (to == nu->words)
		return;
	uint64_t *used = weir_blocks_take(bl, to * sizeof *used);
	memset(used, 0, to * sizeof *used);
	if (nu->words != 0) {
		memcpy(used, nu->used, nu->words * sizeof *used);
		weir_blocks_give(bl, nu->used, nu->words * sizeof *used);
	}
	nu->used = used;
	nu->words = to;
}

void weir_numbers_set(struct weir_numbers *nu, struct weir_blocks *bl, uint32_t no)
{
	numbers_grow(nu, bl, no / 64 + 1);
	WEIR_DASSERT(!weir_numbers_has(nu, no));
	nu->used[no / 64] |= UINT64_C(1) << (no % 64);
	nu->taken++;
	if (no >= nu->high)
		nu->high = no + 1;
}

uint32_t weir_numbers_take(struct weir_numbers *nu, struct weir_blocks *bl)
{
	uint32_t w = nu->first;
	while (w < nu->words && nu->used[w] == UINT64_MAX)
		w++;
	nu->first = w;
	uint32_t no = w * 64;
	if (w < nu->words)
		no += (uint32_t)__builtin_ctzll(~nu->used[w]);
	weir_numbers_set(nu, bl, no);
	return no;
}

void weir_numbers_give(struct weir_numbers *nu, uint32_t no)
{
	WEIR_DASSERT(weir_numbers_has(nu, no));
	nu->used[no / 64] &= ~(UINT64_C(1) << (no % 64));
	nu->taken--;
	if (no / 64 < nu->first)
		nu->first = no / 64;
}

bool weir_numbers_has(const struct weir_numbers *nu, uint32_t no)
{
	return no / 64 < nu->words && (nu->used[no / 64] >> (no % 64) & 1) != 0;
}

void weir_numbers_fini(struct weir_numbers *nu, struct weir_blocks *bl)
{
	if (nu->words != 0)
		weir_blocks_give(bl, nu->used, nu->words * sizeof *nu->used);
	memset(nu, 0, sizeof *nu);
}

/* ---- directory ---- */

void weir_pages_init(struct weir_pages *pg, struct weir_blocks *bl)
{
	memset(pg, 0, sizeof *pg);
	pg->bl = bl;
	weir_numbers_set(&pg->numbers, bl, 0); /* page 0 is no page */
}

void weir_pages_fini(struct weir_pages *pg)
{
	if (pg->page != NULL) {
		weir_blocks_give(pg->bl, pg->page, pg->capacity * sizeof *pg->page);
		weir_blocks_give(pg->bl, pg->base, pg->capacity * sizeof *pg->base);
	}
	weir_numbers_fini(&pg->numbers, pg->bl);
	pg->page = NULL;
	pg->base = NULL;
	pg->capacity = 0;
}

const struct weir_page *weir_pages_search(const struct weir_pages *pg, uint32_t no)
{
	uint32_t low = 0, high = pg->count;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;
		if (pg->page[mid].no <= no)
			low = mid;
		else
			high = mid;
	}
	WEIR_DASSERT(pg->count != 0 && pg->page[low].no == no);
	return &pg->page[low];
}

static void pages_grow(struct weir_pages *pg, uint32_t no)
{
	uint32_t to = pg->capacity == 0 ? 8 : pg->capacity;
	while (to <= no)
		to *= 2;
	struct weir_page *page = weir_blocks_take(pg->bl, to * sizeof *page);
	uint8_t **base = weir_blocks_take(pg->bl, to * sizeof *base);
	memset(page, 0, to * sizeof *page);
	memset(base, 0, to * sizeof *base);
	if (pg->page != NULL) {
		memcpy(page, pg->page, pg->capacity * sizeof *page);
		memcpy(base, pg->base, pg->capacity * sizeof *base);
		weir_blocks_give(pg->bl, pg->page, pg->capacity * sizeof *page);
		weir_blocks_give(pg->bl, pg->base, pg->capacity * sizeof *base);
	}
	pg->page = page;
	pg->base = base;
	pg->capacity = to;
}

struct weir_page *weir_gen_add_page(struct weir_gen *g, uint32_t no, uint32_t bytes, bool blob)
{
	struct weir_pages *pg = g->pages;
	if (no == 0)
		no = weir_numbers_take(&pg->numbers, pg->bl);
	else if (!weir_numbers_has(&pg->numbers, no))
		weir_numbers_set(&pg->numbers, pg->bl, no);
	WEIR_ASSERT(no <= WEIR_PAGE_NO_MAX); /* 32 GiB in one slot */
	if (no >= pg->capacity)
		pages_grow(pg, no);
	struct weir_page *p = &pg->page[no];
	WEIR_DASSERT(p->state == WEIR_PAGE_FREE);
	memset(p, 0, sizeof *p);
	p->base = pg->base[no] = weir_blocks_take(pg->bl, bytes);
	weir_store_le64(p->base, no);
	p->gen = g;
	p->no = no;
	p->bytes = bytes;
	p->used = p->packed = WEIR_PAGE_HEAD;
	p->state = WEIR_PAGE_LIVE;
	p->fresh = true;
	p->blob = blob;
	p->next = g->page_first;
	if (p->next != 0)
		pg->page[p->next].prev = no;
	g->page_first = no;
	pg->live++;
	return p;
}

static void page_unlink(struct weir_pages *pg, struct weir_page *p)
{
	struct weir_gen *g = p->gen;
	if (p->prev != 0)
		pg->page[p->prev].next = p->next;
	else
		g->page_first = p->next;
	if (p->next != 0)
		pg->page[p->next].prev = p->prev;
}

static void page_give_memory(struct weir_pages *pg, struct weir_page *p)
{
	weir_blocks_give(pg->bl, p->base, p->bytes);
	p->base = pg->base[p->no] = NULL;
	p->state = WEIR_PAGE_GIVEN;
	pg->live--;
	if (p->gen->entry_page == p->no)
		p->gen->entry_page = 0;
	if (p->gen->blob_page == p->no)
		p->gen->blob_page = 0;
}

/* Memory back at once; the number stays until the changelog has an empty image (a slot's page) or not at all. */
void weir_page_give(struct weir_pages *pg, struct weir_page *p)
{
	struct weir_gen *g = p->gen;
	page_give_memory(pg, p);
	p->used = WEIR_PAGE_HEAD;
	p->dead = 0;
	if (g->slot == NULL) {
		weir_page_forget(pg, p->no);
		return;
	}
	weir_slot_note_given(g->slot, p->no);
}

void weir_page_forget(struct weir_pages *pg, uint32_t no)
{
	struct weir_page *p = &pg->page[no];
	WEIR_DASSERT(p->state == WEIR_PAGE_GIVEN);
	page_unlink(pg, p);
	p->state = WEIR_PAGE_FREE;
	weir_numbers_give(&pg->numbers, no);
}

static void page_give_if_dead(struct weir_pages *pg, struct weir_page *p)
{
	if (p->pins != 0 || p->state != WEIR_PAGE_LIVE || p->dead != p->used - WEIR_PAGE_HEAD)
		return;
	/* A page that still takes entries is kept unless it is full enough not to be missed. */
	if ((p->gen->entry_page == p->no || p->gen->blob_page == p->no) && p->used < p->bytes / 2)
		return;
	weir_page_give(pg, p);
}

void weir_page_unpin(struct weir_pages *pg, uint32_t no)
{
	struct weir_page *p = &pg->page[no];
	WEIR_DASSERT(p->pins != 0);
	p->pins--;
	page_give_if_dead(pg, p);
}

/* ---- generations ---- */

void weir_gen_init(struct weir_gen *g, struct weir_pages *pg, struct weir_slot *sl, int64_t start,
		   uint64_t entries_expected)
{
	memset(g, 0, sizeof *g);
	g->pages = pg;
	g->slot = sl;
	g->start = start;
	g->appends = sl != NULL && sl->def->buffers;
	g->page_bytes_next = entries_expected > 1024 ? WEIR_PAGE_BYTES_MAX : WEIR_PAGE_BYTES_MIN;
	weir_index_init(&g->ix, pg->bl, entries_expected);
}

void weir_gen_fini(struct weir_gen *g)
{
	struct weir_pages *pg = g->pages;
	while (g->page_first != 0) {
		struct weir_page *p = &pg->page[g->page_first];
		if (g->slot != NULL)
			weir_slot_unqueue(g->slot, p);
		if (p->state == WEIR_PAGE_LIVE)
			page_give_memory(pg, p);
		weir_page_forget(pg, p->no);
	}
	weir_index_fini(&g->ix, pg->bl);
	if (g->dirty != NULL)
		weir_blocks_give(pg->bl, g->dirty, g->dirty_capacity * sizeof *g->dirty);
	memset(g, 0, sizeof *g);
}

WEIR_NOINLINE struct weir_entry *weir_gen_take_new_page(struct weir_gen *g, uint64_t bytes, bool blob)
{
	uint64_t need = bytes + WEIR_PAGE_HEAD;
	WEIR_ASSERT(need <= WEIR_PAGE_LARGE_MAX);
	struct weir_page *p;
	uint8_t log2 = 0;
	if (need > WEIR_PAGE_BYTES_MAX) {
		p = weir_gen_add_page(g, 0, (uint32_t)weir_align_up(need, 64), blob);
	} else {
		uint32_t page_bytes = g->page_bytes_next;
		while (page_bytes < need)
			page_bytes *= 2;
		if (g->page_bytes_next < WEIR_PAGE_BYTES_MAX)
			g->page_bytes_next *= 2;
		p = weir_gen_add_page(g, 0, page_bytes, blob);
		log2 = (uint8_t)__builtin_ctz(page_bytes);
		uint32_t *current = blob ? &g->blob_page : &g->entry_page;
		uint32_t last = *current;
		*current = p->no;
		/* The page that was current may have died meanwhile. */
		if (last != 0)
			page_give_if_dead(g->pages, &g->pages->page[last]);
		p = &g->pages->page[*current];
	}
	struct weir_entry *e = (struct weir_entry *)(void *)(p->base + p->used);
	p->used += (uint32_t)bytes;
	*e = (struct weir_entry){.page_log2 = log2};
	return e;
}

void weir_gen_kill(struct weir_gen *g, struct weir_entry *e, uint64_t bytes)
{
	WEIR_DASSERT((e->flags & WEIR_ENTRY_DEAD) == 0);
	weir_gen_mark(g, e);
	e->flags |= WEIR_ENTRY_DEAD;
	struct weir_page *p = &g->pages->page[weir_entry_page_no(e)];
	p->dead += (uint32_t)bytes;
	page_give_if_dead(g->pages, p);
}

void weir_gen_mark_slow(struct weir_gen *g, struct weir_entry *e)
{
	if (g->slot == NULL || g->closed)
		return;
	if (g->appends) {
		const struct weir_page *p = &g->pages->page[weir_entry_page_no(e)];
		if ((uint32_t)((const uint8_t *)e - p->base) >= p->packed) {
			g->appended += g->appended == 0; /* whoever took it may not have said so */
			return;
		}
	}
	e->flags |= WEIR_ENTRY_DIRTY;
	/* From an eighth on the barrier looks at every entry: that costs less than naming them, which misses the cache
	 * for the number of each one's page. */
	g->dirty_walk |= !g->appends && ((uint64_t)g->dirty_count + 1) * 8 >= g->entries;
	if (g->dirty_walk) {
		g->dirty_count++;
		return;
	}
	if (g->dirty_count == g->dirty_capacity) {
		uint32_t to = g->dirty_capacity == 0 ? 16 : g->dirty_capacity * 2;
		uint32_t *dirty = weir_blocks_take(g->pages->bl, to * sizeof *dirty);
		if (g->dirty != NULL) {
			memcpy(dirty, g->dirty, g->dirty_count * sizeof *dirty);
			weir_blocks_give(g->pages->bl, g->dirty, g->dirty_capacity * sizeof *dirty);
		}
		g->dirty = dirty;
		g->dirty_capacity = to;
	}
	g->dirty[g->dirty_count++] = weir_entry_ref(e);
}

/* ---- index ---- */

/* Five eighths at most: at three quarters a key stands 2.5 places from where it belongs on average, which costs a table
 * of many small slots a fifth of its speed; here 1.8. An entry pays 13 to 26 bytes for its place. */
static uint64_t index_limit(uint64_t slots)
{
	return slots / 8 * 5;
}

static void index_set_capacity(struct weir_index *ix, struct weir_blocks *bl, uint64_t slots)
{
	WEIR_ASSERT(slots <= (uint64_t)1 << 32);
	ix->slot = weir_blocks_take(bl, slots * sizeof *ix->slot);
	memset(ix->slot, 0, slots * sizeof *ix->slot);
	ix->mask = (uint32_t)(slots - 1);
	ix->home = ix->mask & ~(WEIR_INDEX_GROUP - 1);
	ix->limit = (uint32_t)index_limit(slots);
	ix->used = 0;
}

void weir_index_init(struct weir_index *ix, struct weir_blocks *bl, uint64_t entries_expected)
{
	uint64_t slots = WEIR_INDEX_SLOTS_MIN;
	while (index_limit(slots) < entries_expected)
		slots *= 2;
	index_set_capacity(ix, bl, slots);
}

void weir_index_fini(struct weir_index *ix, struct weir_blocks *bl)
{
	if (ix->slot != NULL)
		weir_blocks_give(bl, ix->slot, ((uint64_t)ix->mask + 1) * sizeof *ix->slot);
	memset(ix, 0, sizeof *ix);
}

void weir_index_grow(struct weir_index *ix, struct weir_blocks *bl)
{
	enum { AHEAD = 16 };
	struct weir_index old = *ix;
	uint64_t slots = (uint64_t)old.mask + 1, live = 0;
	for (uint64_t i = 0; i < slots; i++)
		live += old.slot[i] > WEIR_INDEX_REMOVED;
	index_set_capacity(ix, bl, live > slots / 2 ? slots * 2 : slots);
	for (uint64_t i = 0; i < slots; i++) {
		/* Only the entry's hash is read: one line each, asked for early. */
		if (i + AHEAD < slots)
			__builtin_prefetch(weir_index_entry(old.slot[i + AHEAD]), 0, 3);
		uint64_t v = old.slot[i];
		if (v <= WEIR_INDEX_REMOVED)
			continue;
		uint32_t at = weir_index_home(ix, weir_index_entry(v)->hash);
		while (ix->slot[at] != 0)
			at = (at + 1) & ix->mask;
		weir_index_store(&ix->slot[at], v);
	}
	ix->used = (uint32_t)live;
	weir_index_fini(&old, bl);
}

WEIR_NOINLINE struct weir_entry *weir_index_guess_from(const struct weir_index *ix, uint32_t at, uint32_t tag)
{
	for (;; at = (at + 1) & ix->mask) {
		uint64_t v = ix->slot[at];
		if (v >> 48 == tag)
			return weir_index_entry(v);
		if (v == 0)
			return NULL;
	}
}

uint64_t *weir_index_find(const struct weir_index *ix, const struct weir_state_def *def, uint64_t hash,
			  const uint8_t *key, uint32_t key_bytes, uint64_t **free_slot)
{
	uint32_t tag = weir_index_tag(hash), at = weir_index_home(ix, weir_hash_index(hash));
	uint64_t *reuse = NULL;
	for (;;) {
		uint64_t *group = &ix->slot[at];
		for (uint32_t fits = weir_index_match(group, tag); fits != 0; fits &= fits - 1) {
			uint64_t *slot = &group[__builtin_ctz(fits)];
			if (weir_entry_is(def, weir_index_entry(*slot), hash, key, key_bytes))
				return slot;
		}
		for (uint32_t i = 0; i < WEIR_INDEX_GROUP; i++) {
			if (group[i] == WEIR_INDEX_REMOVED && reuse == NULL)
				reuse = &group[i];
			if (group[i] == 0) {
				*free_slot = reuse != NULL ? reuse : &group[i];
				return NULL;
			}
		}
		at = (at + WEIR_INDEX_GROUP) & ix->mask;
	}
}

struct weir_entry *weir_entry_create(struct weir_gen *g, const struct weir_state_def *def, uint64_t hash,
				     const uint8_t *key, uint32_t key_bytes)
{
	uint32_t key_at = weir_def_key_at(def);
	uint64_t bytes = weir_entry_bytes_for(def, key_bytes);
	struct weir_entry *e = weir_gen_take(g, bytes, false);
	e->hash = weir_hash_index(hash);
	memset(e + 1, 0, key_at - sizeof *e);
	uint8_t *at = (uint8_t *)e + key_at;
	if (WEIR_LIKELY(key_bytes < WEIR_KEY_LONG)) {
		e->key_bytes = (uint16_t)key_bytes;
	} else {
		e->key_bytes = WEIR_KEY_LONG;
		weir_store_le64(at, key_bytes);
		at += 8;
	}
	uint8_t *rest = at + (key_bytes & ~7u), *end = (uint8_t *)e + bytes;
	for (; rest < end; rest += 8) /* what pads the key, and the entry */
		weir_store_le64(rest, 0);
	memcpy(at, key, key_bytes);
	weir_gen_mark(g, e);
	g->entries++;
	return e;
}

static void index_put(struct weir_index *ix, uint64_t *slot, uint64_t hash, const struct weir_entry *e)
{
	ix->used += *slot == 0;
	weir_index_store(slot, (uint64_t)weir_index_tag(hash) << 48 | (uint64_t)(uintptr_t)e);
}

void weir_gen_index_add(struct weir_gen *g, struct weir_entry *e, uint64_t hash)
{
	if (WEIR_UNLIKELY(g->ix.used >= g->ix.limit))
		weir_index_grow(&g->ix, g->pages->bl);
	uint32_t at = weir_index_home(&g->ix, weir_hash_index(hash));
	while (g->ix.slot[at] > WEIR_INDEX_REMOVED)
		at = (at + 1) & g->ix.mask;
	index_put(&g->ix, &g->ix.slot[at], hash, e);
}

void weir_gen_index_put(struct weir_gen *g, struct weir_entry *e, uint64_t hash, uint64_t *free_slot)
{
	if (WEIR_UNLIKELY(g->ix.used >= g->ix.limit))
		weir_gen_index_add(g, e, hash);
	else
		index_put(&g->ix, free_slot, hash, e);
}

struct weir_entry *weir_gen_find_or_create(struct weir_gen *g, const struct weir_state_def *def, uint64_t hash,
					   const uint8_t *key, uint32_t key_bytes)
{
	uint64_t *free_slot;
	uint64_t *slot = weir_index_find(&g->ix, def, hash, key, key_bytes, &free_slot);
	if (slot != NULL)
		return weir_index_entry(*slot);
	if (WEIR_UNLIKELY(g->ix.used >= g->ix.limit)) {
		weir_index_grow(&g->ix, g->pages->bl);
		weir_index_find(&g->ix, def, hash, key, key_bytes, &free_slot);
	}
	struct weir_entry *e = weir_entry_create(g, def, hash, key, key_bytes);
	index_put(&g->ix, free_slot, hash, e);
	return e;
}
