/* page.h: how state lies in memory: entries in pages, pages in generations, one directory of pages per slot.
 *
 *   page        512 B .. 8 KiB, aligned to its size (entries above that: a page of their own of exactly their size)
 *     +0        u32 page number, u32 0: how an entry finds its page. Not part of the page's image
 *     +8        entries one after another, each 8-byte aligned; they never move
 *   entry       struct weir_entry | head (def->head_bytes in all) | aggregate states | [u64 length of a long key] key,
 * padded with zeros blob        struct weir_entry (hash = payload capacity) | payload: a string or a set that belongs
 * to one aggregate state ref         32 bits: page number << 10 | offset / 8. 0 is no reference. All that points inside
 * pages are refs, so that page images can be copied as they are
 *
 * A generation's entries and blobs stand in separate pages, all listed in the generation. Only the owner of the slot
 * writes here; a detached generation (struct weir_closed) is read-only until it is released. @thread worker */
#ifndef WEIR_STATE_PAGE_H
#define WEIR_STATE_PAGE_H

#include "hotpath/core/arena.h"
#include "hotpath/core/base.h"
#include "hotpath/core/hash.h"
#include "hotpath/state/state.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum weir_entry_flag {
	WEIR_ENTRY_DEAD = 1, /* takes part in nothing; only its size counts */
	WEIR_ENTRY_BLOB = 2,
	WEIR_ENTRY_EMITTED = 4,    /* stands in the result (EMIT CHANGES) */
	WEIR_ENTRY_DIRTY = 8,      /* transient: is in its generation's dirty list */
	WEIR_ENTRY_CHANGED = 16,   /* transient: is in the slot's change list */
	WEIR_ENTRY_HISTORY = 16,   /* transient: the newest of a key's versions, which have a history (versions.h) */
	WEIR_ENTRY_SHEET = 16,     /* of join buffers (weir_def_meets): many records, or one of those (join_sheet.h) */
	WEIR_ENTRY_SWALLOWED = 32, /* a session that became part of another */
	WEIR_ENTRY_DEFERRED = 32,  /* a record of a join buffer that is in no list: older is its number, in the order of
				    * arrival in its generation (join_index.h; weir_def_queues) */
	WEIR_ENTRY_GONE = 64,      /* a row deleted, but not yet read by the change list; a buffered one that left */
	WEIR_ENTRY_TOLD = 128 /* transient: in doubt (slot.h), a delete has been sent for what may have been shown */
};

struct weir_entry {
	uint32_t hash;      /* low 32 bits of the key's hash; a blob's payload capacity in bytes */
	uint16_t key_bytes; /* WEIR_KEY_LONG: the length is in front of the key */
	uint8_t flags;
	uint8_t page_log2; /* log2 of the page's bytes; 0: alone in a page of its own */
};
_Static_assert(sizeof(struct weir_entry) == 8, "entries start with 8 bytes");
#define WEIR_KEY_LONG UINT16_MAX

/* Head of a session's entry. */
struct weir_session {
	struct weir_entry e;
	int64_t start;
	int64_t last;
	uint32_t older; /* ref of the key's next older session, 0: none */
	uint32_t pad;
};
/* Head of a record in a join buffer; its row follows its key without padding. EMITTED: it has had a match. */
struct weir_buffered {
	struct weir_entry e;
	uint32_t delta; /* ms since its generation's first */
	uint32_t older; /* ref of the key's next older record in the generation, 0: none; or see WEIR_ENTRY_DEFERRED */
	uint32_t row_bytes;
};
/* Head of an entry that keeps its largest timestamp (EMIT CHANGES, tables) or its latest (rows). */
struct weir_stamped {
	struct weir_entry e;
	int64_t time;
};
/* Head of an entry of a foreign-key join: refs of its neighbours in the chain of a foreign key. */
struct weir_linked {
	struct weir_stamped s;
	uint32_t next, before;
};

#define WEIR_PAGE_HEAD      8u
#define WEIR_PAGE_LOG2_MIN  9u
#define WEIR_PAGE_LOG2_MAX  13u
#define WEIR_PAGE_BYTES_MIN (1u << WEIR_PAGE_LOG2_MIN)
#define WEIR_PAGE_BYTES_MAX (1u << WEIR_PAGE_LOG2_MAX)
#define WEIR_PAGE_LARGE_MAX (1u << 30) /* of a page that holds one entry */
#define WEIR_REF_SHIFT      10u
#define WEIR_PAGE_NO_MAX    ((1u << (32 - WEIR_REF_SHIFT)) - 1)

/*   FREE --take--> LIVE --give--> GIVEN --image committed, or its window closes--> FREE
 * GIVEN: the memory is back, the number is held until the changelog knows that the page is empty. */
enum weir_page_state { WEIR_PAGE_FREE, WEIR_PAGE_LIVE, WEIR_PAGE_GIVEN };

struct weir_gen;
struct weir_page {
	uint8_t *base;
	struct weir_gen *gen;
	uint64_t dirty_since; /* epoch of the first change that no image holds; 0: none */
	uint64_t image_epoch; /* of the newest image written, 0: none since the page was taken */
	uint64_t empty_epoch; /* restore: newest epoch that began this page */
	uint32_t no;
	uint32_t bytes;
	uint32_t used;                   /* offset of the next entry */
	uint32_t dead;                   /* bytes of dead entries */
	uint32_t packed;                 /* of a generation that appends: what stands from here on is new */
	uint32_t pins;                   /* references that outlive entries: close queue, change list */
	uint32_t prev, next;             /* pages of the generation, 0: end */
	uint32_t queue_prev, queue_next; /* dirty queue, 0: end */
	uint8_t state;                   /* enum weir_page_state */
	bool fresh;                      /* the changelog has not heard of it yet */
	bool blob;                       /* holds blobs */
	bool bad;                        /* restore: changed without a base */
};

/* Numbers given out smallest first. */
struct weir_numbers {
	uint64_t *used; /* bit set: taken */
	uint32_t words;
	uint32_t first; /* no free number in words below */
	uint32_t taken;
	uint32_t high; /* one above the largest number ever taken (until lowered) */
};
uint32_t weir_numbers_take(struct weir_numbers *nu, struct weir_blocks *bl);
void weir_numbers_set(struct weir_numbers *nu, struct weir_blocks *bl, uint32_t no); /* takes just this one */
void weir_numbers_give(struct weir_numbers *nu, uint32_t no);
bool weir_numbers_has(const struct weir_numbers *nu, uint32_t no);
void weir_numbers_fini(struct weir_numbers *nu, struct weir_blocks *bl);

/* A directory of pages. sorted: a detached generation's, found by binary search. */
struct weir_pages {
	struct weir_blocks *bl;
	struct weir_page *page; /* by number, or sorted by number */
	uint8_t **base;         /* by number, not where sorted: those of page once more, close together, for look-ups of
				 * entries anywhere: a page's head takes more than a line of the cache */
	uint32_t capacity;
	uint32_t count; /* sorted: entries of page */
	bool sorted;
	struct weir_numbers numbers;
	uint64_t live; /* pages in state LIVE */
};
void weir_pages_init(struct weir_pages *pg, struct weir_blocks *bl);
void weir_pages_fini(struct weir_pages *pg); /* pages themselves must have been given */
const struct weir_page *weir_pages_search(const struct weir_pages *pg, uint32_t no);

WEIR_INLINE uint8_t *weir_ref_get(const struct weir_pages *pg, uint32_t ref)
{
	uint32_t no = ref >> WEIR_REF_SHIFT;
	const struct weir_page *p = pg->sorted ? weir_pages_search(pg, no) : &pg->page[no];
	return p->base + (ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8;
}
WEIR_INLINE uint8_t *weir_entry_page_base(const struct weir_entry *e)
{
	if (WEIR_UNLIKELY(e->page_log2 == 0))
		return (uint8_t *)e - WEIR_PAGE_HEAD;
	return (uint8_t *)((uintptr_t)e & ~(((uintptr_t)1 << e->page_log2) - 1));
}
WEIR_INLINE uint32_t weir_entry_page_no(const struct weir_entry *e)
{
	return weir_load_le32(weir_entry_page_base(e));
}
WEIR_INLINE uint32_t weir_entry_ref(const struct weir_entry *e)
{
	const uint8_t *base = weir_entry_page_base(e);
	return weir_load_le32(base) << WEIR_REF_SHIFT | (uint32_t)((const uint8_t *)e - base) / 8;
}

/* Open addressing: 16-bit tag << 48 | pointer; 0 empty, 1 was removed. Places come in groups of four, half a cache
 * line; a key's search starts at the first place of its group and goes on place by place. So the four places where
 * nearly every key stands are looked at together, without a branch that random keys would make the CPU guess wrong.
 * Stores are relaxed atomics. */
struct weir_index {
	uint64_t *slot; /* NULL while empty */
	uint32_t mask;
	uint32_t home; /* the mask without the bits within a group */
	uint32_t used; /* entries and removed marks */
	uint32_t limit;
};
#define WEIR_INDEX_SLOTS_MIN 16u
#define WEIR_INDEX_GROUP     4u
#define WEIR_INDEX_REMOVED   UINT64_C(1)
#define WEIR_INDEX_POINTER   ((UINT64_C(1) << 48) - 1)
void weir_index_init(struct weir_index *ix, struct weir_blocks *bl, uint64_t entries_expected);
void weir_index_fini(struct weir_index *ix, struct weir_blocks *bl);
/* Makes room for one more: grows, or sweeps removed marks out. */
void weir_index_grow(struct weir_index *ix, struct weir_blocks *bl);

/* One generation: a pane or window, all sessions of a slot, or a table. */
struct weir_gen {
	struct weir_pages *pages;
	struct weir_slot *slot; /* NULL: a private one, whose changes nobody follows */
	struct weir_gen *next;  /* limbo list */
	int64_t start;
	struct weir_index ix;
	uint64_t entries; /* live ones */
	uint32_t page_first;
	uint32_t entry_page, blob_page; /* where the next one goes, 0: a new page */
	uint32_t page_bytes_next;
	uint32_t *dirty; /* refs of entries changed since the last barrier */
	uint32_t dirty_count, dirty_capacity;
	bool dirty_walk;  /* there are so many that they are counted only; the list is not complete */
	uint32_t changed; /* entries in the slot's change list */
	bool closed;      /* in limbo: only the change list still needs it */
	/* Of buffers, whose entries hardly ever change: those that came since the last barrier are known by their
	 * place, behind page->packed, and only what changes before it is marked. */
	bool appends;
	uint8_t code;      /* its number in the slot's index of join buffers (join_index.h), 0: its own ix it is */
	uint32_t appended; /* how many came */
	uint32_t numbered; /* the last number that an entry was given (weir_def_queues) */
};
void weir_gen_init(struct weir_gen *g, struct weir_pages *pg, struct weir_slot *sl, int64_t start,
		   uint64_t entries_expected);
/* Gives everything back: pages, numbers, index, lists. Pages leave the slot's dirty queue. */
void weir_gen_fini(struct weir_gen *g);
struct weir_entry *weir_gen_take_new_page(struct weir_gen *g, uint64_t bytes, bool blob);
/* bytes (a multiple of 8, header included) for an entry or blob; its header is zero but for page_log2, the rest
 * undefined. */
WEIR_INLINE struct weir_entry *weir_gen_take(struct weir_gen *g, uint64_t bytes, bool blob)
{
	WEIR_DASSERT(bytes % 8 == 0);
	uint32_t no = blob ? g->blob_page : g->entry_page;
	if (WEIR_LIKELY(no != 0)) {
		struct weir_page *p = &g->pages->page[no];
		if (WEIR_LIKELY(p->bytes - p->used >= bytes)) {
			struct weir_entry *e = (struct weir_entry *)(void *)(p->base + p->used);
			p->used += (uint32_t)bytes;
			*e = (struct weir_entry){.page_log2 = (uint8_t)__builtin_ctz(p->bytes)};
			return e;
		}
	}
	return weir_gen_take_new_page(g, bytes, blob);
}
/* A page of its number with this size and state LIVE, at the head of g's list. no 0: the smallest free number. */
struct weir_page *weir_gen_add_page(struct weir_gen *g, uint32_t no, uint32_t bytes, bool blob);
/* Marks e dead; gives its page back when nothing in it lives and nothing points there. */
void weir_gen_kill(struct weir_gen *g, struct weir_entry *e, uint64_t bytes);
/* Memory back at once; the number stays until the changelog has an empty image (a slot's page) or not at all. */
void weir_page_give(struct weir_pages *pg, struct weir_page *p);
void weir_page_unpin(struct weir_pages *pg, uint32_t no);
/* Frees the number of a page in state GIVEN. */
void weir_page_forget(struct weir_pages *pg, uint32_t no);
void weir_gen_mark_slow(struct weir_gen *g, struct weir_entry *e);

/* Notes that e changed in this epoch. */
WEIR_INLINE void weir_gen_mark(struct weir_gen *g, struct weir_entry *e)
{
	if ((e->flags & WEIR_ENTRY_DIRTY) != 0)
		return;
	if (WEIR_LIKELY(g->dirty_walk)) { /* in a private one, or a closed one, it is not; nor where it appends */
		e->flags |= WEIR_ENTRY_DIRTY;
		g->dirty_count++;
	} else {
		weir_gen_mark_slow(g, e);
	}
}

/* The same of an entry just taken in a generation of buffers. */
WEIR_INLINE void weir_gen_note_new(struct weir_gen *g)
{
	WEIR_DASSERT(g->appends);
	g->appended++;
}

/* ---- entries ---- */

WEIR_INLINE uint32_t weir_def_key_at(const struct weir_state_def *def)
{
	return def->head_bytes + def->agg_bytes;
}
WEIR_INLINE const uint8_t *weir_entry_key(const struct weir_state_def *def, const struct weir_entry *e, uint32_t *bytes)
{
	const uint8_t *at = (const uint8_t *)e + weir_def_key_at(def);
	if (WEIR_LIKELY(e->key_bytes != WEIR_KEY_LONG)) {
		*bytes = e->key_bytes;
		return at;
	}
	*bytes = weir_load_le32(at);
	return at + 8;
}
/* What nearly fills one cache line or two, as a short key, a SUM and a COUNT do (56 bytes), goes on to where its page's
 * next line has its WEIR_PAGE_HEAD bytes behind it: else nearly every such entry would lie in one line more, and each
 * line is a miss where there are many keys. */
WEIR_INLINE uint64_t weir_entry_bytes_for(const struct weir_state_def *def, uint32_t key_bytes)
{
	uint64_t bytes = weir_def_key_at(def) + (key_bytes >= WEIR_KEY_LONG ? 8 : 0) + weir_align_up(key_bytes, 8);
	uint64_t lines = weir_align_up(bytes, WEIR_CACHE_LINE);
	return lines <= 2 * WEIR_CACHE_LINE && (lines - bytes) * 6 <= bytes ? lines : bytes;
}
/* Of a buffered record whose key stands at key_at. Keys are read to the next multiple of 8, whatever follows them. */
WEIR_INLINE uint64_t weir_buffered_bytes(uint64_t key_at, uint32_t key_bytes, uint32_t row_bytes)
{
	uint64_t rest = (uint64_t)key_bytes + row_bytes, read = weir_align_up(key_bytes, 8);
	return weir_align_up(key_at + (rest > read ? rest : read), 8);
}
WEIR_INLINE uint64_t weir_entry_bytes(const struct weir_state_def *def, const struct weir_entry *e)
{
	uint32_t n;
	const uint8_t *key = weir_entry_key(def, e, &n);
	if (def->buffers)
		return weir_buffered_bytes((uint64_t)(key - (const uint8_t *)e), n,
					   ((const struct weir_buffered *)(const void *)e)->row_bytes);
	return weir_entry_bytes_for(def, n);
}
WEIR_INLINE uint64_t weir_blob_bytes(const struct weir_entry *b)
{
	return sizeof *b + (uint64_t)b->hash;
}
WEIR_INLINE uint8_t *weir_blob_data(const struct weir_entry *b)
{
	return (uint8_t *)(b + 1);
}

/* a and b are readable up to the next multiple of 8 beyond n. */
WEIR_INLINE bool weir_key_equal(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	while (n > 8) {
		if (weir_load_le64(a) != weir_load_le64(b))
			return false;
		a += 8;
		b += 8;
		n -= 8;
	}
	if (n == 0)
		return true;
	return (weir_load_le64(a) ^ weir_load_le64(b)) << (64 - 8 * n) == 0;
}

WEIR_INLINE uint64_t weir_index_load(const uint64_t *slot)
{
	return __atomic_load_n(slot, __ATOMIC_RELAXED);
}
WEIR_INLINE void weir_index_store(uint64_t *slot, uint64_t v)
{
	__atomic_store_n(slot, v, __ATOMIC_RELAXED);
}
WEIR_INLINE bool weir_entry_is(const struct weir_state_def *def, const struct weir_entry *e, uint64_t hash,
			       const uint8_t *key, uint32_t key_bytes)
{
	uint32_t n;
	if (e->hash != (uint32_t)hash)
		return false;
	const uint8_t *have = weir_entry_key(def, e, &n);
	return n == key_bytes && weir_key_equal(have, key, n);
}
/* The slot that holds the key, or NULL; *free_slot: where it would go (never NULL unless the index is empty). */
uint64_t *weir_index_find(const struct weir_index *ix, const struct weir_state_def *def, uint64_t hash,
			  const uint8_t *key, uint32_t key_bytes, uint64_t **free_slot);
WEIR_INLINE struct weir_entry *weir_index_entry(uint64_t v)
{
	return (struct weir_entry *)(uintptr_t)(v & WEIR_INDEX_POINTER);
}
/* Where the search for a key starts. */
WEIR_INLINE uint32_t weir_index_home(const struct weir_index *ix, uint32_t hash32)
{
	return hash32 & ix->home;
}
/* Never 0, so that no empty or removed place fits. */
WEIR_INLINE uint32_t weir_index_tag(uint64_t hash)
{
	return weir_hash_tag(hash) | 1u;
}
/* Which of the four places at `group` hold this tag, as bits 0 to 3. */
WEIR_INLINE uint32_t weir_index_match(const uint64_t *group, uint32_t tag)
{
#ifdef __SSE2__
	__m128 low = _mm_load_ps((const float *)(const void *)group);
	__m128 high = _mm_load_ps((const float *)(const void *)(group + 2));
	__m128i tags = _mm_srli_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd)), 16);
	return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(tags, _mm_set1_epi32((int)tag))));
#else
	uint32_t bits = 0;
	for (uint32_t i = 0; i < WEIR_INDEX_GROUP; i++)
		bits |= (uint32_t)(group[i] >> 48 == tag) << i;
	return bits;
#endif
}
/* The places of a group fill from its first on, and never become empty again. */
WEIR_INLINE bool weir_index_group_is_full(const uint64_t *group)
{
	return group[WEIR_INDEX_GROUP - 1] != 0;
}
/* From `at` on, place by place: the first entry whose tag fits, or NULL at an empty place. */
struct weir_entry *weir_index_guess_from(const struct weir_index *ix, uint32_t at, uint32_t tag);
/* The first entry whose tag fits, its key not looked at: the key's own, another's, or NULL: the key is not there. */
WEIR_INLINE struct weir_entry *weir_index_guess(const struct weir_index *ix, uint64_t hash)
{
	uint32_t tag = weir_index_tag(hash), at = weir_index_home(ix, weir_hash_index(hash));
	uint32_t fits = weir_index_match(&ix->slot[at], tag);
	if (fits == 0)
		return weir_index_group_is_full(&ix->slot[at]) ? weir_index_guess_from(ix, at, tag) : NULL;
	return weir_index_entry(ix->slot[at + (uint32_t)__builtin_ctz(fits)]);
}
/* weir_index_find where the answer is mostly in the first group looked at. */
WEIR_INLINE uint64_t *weir_index_find_short(const struct weir_index *ix, const struct weir_state_def *def,
					    uint64_t hash, const uint8_t *key, uint32_t key_bytes, uint64_t **free_slot)
{
	uint64_t *group = &ix->slot[weir_index_home(ix, weir_hash_index(hash))];
	for (uint32_t fits = weir_index_match(group, weir_index_tag(hash)); fits != 0; fits &= fits - 1) {
		uint64_t *slot = &group[__builtin_ctz(fits)];
		if (weir_entry_is(def, weir_index_entry(*slot), hash, key, key_bytes))
			return slot;
	}
	if (WEIR_UNLIKELY(weir_index_group_is_full(group) || group[0] == WEIR_INDEX_REMOVED ||
			  group[1] == WEIR_INDEX_REMOVED || group[2] == WEIR_INDEX_REMOVED))
		return weir_index_find(ix, def, hash, key, key_bytes, free_slot);
	while (*group != 0)
		group++;
	*free_slot = group;
	return NULL;
}

/* A new zeroed entry with this key, not in the index. */
struct weir_entry *weir_entry_create(struct weir_gen *g, const struct weir_state_def *def, uint64_t hash,
				     const uint8_t *key, uint32_t key_bytes);
/* The key's entry in g, made and marked when it is new. */
struct weir_entry *weir_gen_find_or_create(struct weir_gen *g, const struct weir_state_def *def, uint64_t hash,
					   const uint8_t *key, uint32_t key_bytes);
/* The same where weir_index_find has said which place is free. */
void weir_gen_index_put(struct weir_gen *g, struct weir_entry *e, uint64_t hash, uint64_t *free_slot);
/* Puts e, whose key is not there yet, in. */
void weir_gen_index_add(struct weir_gen *g, struct weir_entry *e, uint64_t hash);

#endif
