/* restore.c: a slot from its changelog. Bodies come in log order over a compacted log: of each key the newest is there,
 * older ones may be. @thread worker (init: before the slot takes records).
 *
 *   load      live windows and counters, from the marker
 *   page no   NONE --image, or an item that begins it, of a live window--> HELD --item that ends it--> GIVEN
 *             any image or beginning puts what is there aside, of whatever window it is: the number was used again
 *   finish    pages become the slot's; entries are walked, checked and indexed; queue, packs and numbers go on
 *
 * A body that lost its beginning to compaction can come before the image that replaces it: a page it spoils is `bad`
 * until the next image or beginning, and only a page that is bad at the end means damage. Nothing here trusts a length.
 */
#include "hotpath/core/diag.h"
#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/dirty.h"
#include "hotpath/state/join_sheet.h"
#include "hotpath/state/slot.h"
#include "hotpath/time/window.h"

#include <stdlib.h>

enum held_state { HELD_NONE, HELD_LIVE, HELD_GIVEN };

struct held {
	uint8_t *data; /* the page from its start; capacity bytes of it */
	uint32_t capacity;
	uint32_t bytes; /* of the page */
	uint32_t used;
	int64_t window;
	uint64_t reset_epoch; /* of the newest image or beginning */
	uint64_t image_epoch; /* of the newest image */
	uint64_t dirty_since; /* of the first item after it, 0: none */
	uint8_t state;        /* enum held_state */
	bool bad;
	/* An image of several parts on its way. */
	uint8_t *stage;
	uint64_t stage_epoch;
	uint32_t stage_parts; /* seen so far */
};

struct weir_restore {
	struct held *held; /* by page number */
	uint32_t capacity;
	uint64_t epoch; /* largest seen */
};

void weir_restore_free(struct weir_slot *sl)
{
	struct weir_restore *rs = sl->restore;
	if (rs == NULL)
		return;
	for (uint32_t no = 0; no < rs->capacity; no++) {
		free(rs->held[no].data);
		free(rs->held[no].stage);
	}
	free(rs->held);
	free(rs);
	sl->restore = NULL;
}

static WEIR_COLD enum weir_err corrupt(const struct weir_slot *sl, struct weir_diag **dg, const char *what)
{
	return weir_diag_set(dg, WEIR_E_CORRUPT, "state %s, slot %u: %s", sl->def->name, sl->number, what);
}

static bool window_is_live(const struct weir_slot *sl, int64_t start)
{
	uint32_t at = weir_slot_search(sl, start);
	return at < sl->gen_count && sl->gens[at].start == start;
}

/* ---- load ---- */

enum weir_err weir_slot_load(struct weir_slot *sl, const uint8_t *saved, size_t bytes, struct weir_diag **dg)
{
	const struct weir_state_def *def = sl->def;
	struct weir_save_head head;
	WEIR_ASSERT(sl->restore == NULL && sl->records == 0);
	if (bytes < sizeof head)
		return corrupt(sl, dg, "the marker's part is too short");
	memcpy(&head, saved, sizeof head);
	if (head.version != WEIR_SAVE_VERSION)
		return corrupt(sl, dg, "the marker's part has an unknown version");
	if ((bytes - sizeof head) != (uint64_t)head.windows * 8)
		return corrupt(sl, dg, "the marker's part has another length than its windows");
	if (head.closed_start != WEIR_TIME_UNSET &&
	    (head.closed_start < -2 * WEIR_TIME_MAX || head.closed_start > 2 * WEIR_TIME_MAX))
		return corrupt(sl, dg, "the marker's part has a closed window out of range");
	int64_t last = INT64_MIN;
	for (uint32_t i = 0; i < head.windows; i++) {
		int64_t start = (int64_t)weir_load_le64(saved + sizeof head + (size_t)i * 8);
		bool fits = start > last || i == 0;
		if (def->kind == WEIR_STATE_WINDOW)
			fits = fits && start >= -2 * WEIR_TIME_MAX && start <= 2 * WEIR_TIME_MAX &&
			       weir_window_last(start, weir_def_step(def), def->offset_ms) == start;
		else if (def->buffers)
			fits = fits && weir_join_window_fits(def, start);
		else
			fits = i < sl->gen_count && sl->gens[i].start == start;
		if (!fits)
			return corrupt(sl, dg, "the marker's part names a window that cannot be");
		if ((def->kind == WEIR_STATE_WINDOW || def->buffers) && !window_is_live(sl, start))
			weir_slot_add_gen(sl, weir_slot_search(sl, start), start);
		last = start;
	}
	sl->records = head.records;
	sl->closed_start = head.closed_start;
	sl->restore = weir_xcalloc(1, sizeof *sl->restore);
	return WEIR_OK;
}

/* ---- bodies ---- */

static struct held *held_at(struct weir_restore *rs, uint32_t no)
{
	if (no >= rs->capacity) {
		uint32_t to = rs->capacity == 0 ? 64 : rs->capacity;
		while (to <= no)
			to *= 2;
		/* calloc, not realloc: a number out of a damaged body costs address space, not memory. */
		struct held *held = weir_xcalloc(to, sizeof *held);
		if (rs->capacity != 0)
			memcpy(held, rs->held, rs->capacity * sizeof *held);
		free(rs->held);
		rs->held = held;
		rs->capacity = to;
	}
	return &rs->held[no];
}

static bool page_bytes_fit(uint32_t bytes)
{
	if (bytes <= WEIR_PAGE_BYTES_MAX)
		return bytes >= WEIR_PAGE_BYTES_MIN && (bytes & (bytes - 1)) == 0;
	return bytes % 64 == 0 && bytes <= WEIR_PAGE_LARGE_MAX;
}

/* Room for the page up to `to`. Large pages grow as their bytes come, so that a length alone costs nothing. */
static void held_room(struct held *h, uint32_t to)
{
	uint32_t capacity = h->bytes;
	if (to <= h->capacity)
		return;
	if (h->bytes > WEIR_PAGE_BYTES_MAX) {
		capacity = h->capacity < WEIR_PAGE_BYTES_MAX ? WEIR_PAGE_BYTES_MAX : h->capacity * 2;
		capacity = capacity < to ? to : capacity;
		capacity = capacity > h->bytes ? h->bytes : capacity;
	}
	h->data = weir_xrealloc(h->data, capacity);
	memset(h->data + h->capacity, 0, capacity - h->capacity);
	h->capacity = capacity;
}

/* The page is something else from this epoch on. */
static void held_reset(struct held *h, uint64_t epoch, int64_t window, enum held_state state, uint32_t bytes)
{
	free(h->data);
	h->data = NULL;
	h->capacity = 0;
	h->bytes = bytes;
	h->used = WEIR_PAGE_HEAD;
	h->window = window;
	h->reset_epoch = epoch;
	h->dirty_since = 0;
	h->state = (uint8_t)state;
	h->bad = false;
}

static void held_item(struct weir_slot *sl, struct held *h, const struct weir_pack_item *it, const uint8_t *data,
		      int64_t window, uint64_t epoch)
{
	bool live = window_is_live(sl, window);
	if (epoch <= h->image_epoch || epoch < h->reset_epoch)
		return;
	if (it->page_bytes == WEIR_PACK_GIVEN)
		held_reset(h, epoch, window, live ? HELD_GIVEN : HELD_NONE, 0);
	else if (it->page_bytes != 0)
		held_reset(h, epoch, window, live ? HELD_LIVE : HELD_NONE, it->page_bytes);
	if (!live)
		return;
	if (h->dirty_since == 0)
		h->dirty_since = epoch;
	if (it->page_bytes == WEIR_PACK_GIVEN)
		return;
	uint64_t end = (uint64_t)it->offset + it->bytes;
	bool large = h->bytes > WEIR_PAGE_BYTES_MAX;
	if (h->state != HELD_LIVE || h->window != window || it->offset < WEIR_PAGE_HEAD || end > h->bytes ||
	    (large && it->offset > h->used)) {
		h->bad = true;
		h->window = window;
		return;
	}
	held_room(h, (uint32_t)end);
	memcpy(h->data + it->offset, data, it->bytes);
	if (end > h->used)
		h->used = (uint32_t)end;
}

static enum weir_err pack_check_head(struct weir_slot *sl, uint32_t version, uint32_t state, uint64_t epoch,
				     struct weir_diag **dg)
{
	if (version != WEIR_BODY_VERSION)
		return weir_diag_set(
			dg, WEIR_E_STATE,
			"state %s has format version %u, which is not known (this weir reads version %u): go on "
			"with the weir that wrote it, or begin anew (weir reset)",
			sl->def->name, version, WEIR_BODY_VERSION);
	if (state != 0)
		return corrupt(sl, dg, "a body is of another state");
	if (epoch == 0 || epoch == UINT64_MAX)
		return corrupt(sl, dg, "a body has no epoch");
	if (epoch > sl->restore->epoch)
		sl->restore->epoch = epoch;
	return WEIR_OK;
}

enum weir_err weir_slot_restore_pack(struct weir_slot *sl, uint32_t k, const uint8_t *body, size_t bytes,
				     struct weir_diag **dg)
{
	struct weir_pack_head head;
	WEIR_ASSERT(sl->restore != NULL);
	/* As many packs as pages at most, give or take. */
	if (k > 2 * WEIR_PAGE_NO_MAX)
		return corrupt(sl, dg, "a pack's number is out of range");
	if (body == NULL) {
		if (k < sl->d.pack_capacity)
			sl->d.pack_epoch[k] = 0;
		return WEIR_OK;
	}
	if (bytes < sizeof head)
		return corrupt(sl, dg, "a pack is too short");
	memcpy(&head, body, sizeof head);
	enum weir_err err = pack_check_head(sl, head.version, head.state, head.epoch, dg);
	if (err != WEIR_OK)
		return err;
	const uint8_t *at = body + sizeof head, *end = body + bytes;
	while (at != end) {
		struct weir_pack_run run;
		if ((size_t)(end - at) < sizeof run)
			return corrupt(sl, dg, "a pack ends inside a window");
		memcpy(&run, at, sizeof run);
		at += sizeof run;
		for (uint32_t i = 0; i < run.items; i++) {
			struct weir_pack_item it;
			if ((size_t)(end - at) < sizeof it)
				return corrupt(sl, dg, "a pack ends inside an item");
			memcpy(&it, at, sizeof it);
			at += sizeof it;
			if (it.page == 0 || it.page > WEIR_PAGE_NO_MAX || it.offset % 8 != 0 || it.bytes % 8 != 0 ||
			    it.bytes > (size_t)(end - at))
				return corrupt(sl, dg, "a pack's item is out of range");
			if (it.page_bytes != 0 && it.page_bytes != WEIR_PACK_GIVEN && !page_bytes_fit(it.page_bytes))
				return corrupt(sl, dg, "a pack's page has an impossible size");
			held_item(sl, held_at(sl->restore, it.page), &it, at, run.window, head.epoch);
			at += it.bytes;
		}
	}
	weir_dirty_note_pack(sl, k, head.epoch);
	return WEIR_OK;
}

static void held_image(struct weir_slot *sl, struct held *h, const struct weir_image_head *head, const uint8_t *data)
{
	bool live = head->page_bytes != 0 && window_is_live(sl, head->window);
	if (head->epoch < h->reset_epoch)
		return;
	held_reset(h, head->epoch, head->window, live ? HELD_LIVE : HELD_NONE, head->page_bytes);
	h->image_epoch = head->epoch;
	if (!live)
		return;
	held_room(h, head->used);
	memcpy(h->data + WEIR_PAGE_HEAD, data, head->used - WEIR_PAGE_HEAD);
	h->used = head->used;
}

enum weir_err weir_slot_restore_page(struct weir_slot *sl, uint32_t page, uint32_t part, const uint8_t *body,
				     size_t bytes, struct weir_diag **dg)
{
	struct weir_image_head head;
	WEIR_ASSERT(sl->restore != NULL);
	if (page == 0 || page > WEIR_PAGE_NO_MAX)
		return corrupt(sl, dg, "a page's number is out of range");
	if (body == NULL) {
		if (part == 0)
			weir_dirty_note_no_image(sl, page);
		return WEIR_OK;
	}
	if (bytes < sizeof head)
		return corrupt(sl, dg, "an image is too short");
	memcpy(&head, body, sizeof head);
	enum weir_err err = pack_check_head(sl, head.version, head.state, head.epoch, dg);
	if (err != WEIR_OK)
		return err;
	uint32_t whole = head.used < WEIR_PAGE_HEAD ? 0 : head.used - WEIR_PAGE_HEAD;
	uint32_t parts = whole == 0 ? 1 : (whole + WEIR_IMAGE_PART - 1) / WEIR_IMAGE_PART;
	bool fits = head.page_bytes == 0 ? head.used == 0
					 : page_bytes_fit(head.page_bytes) && head.used >= WEIR_PAGE_HEAD &&
						   head.used <= head.page_bytes;
	if (!fits || head.used % 8 != 0 || head.parts != parts || part >= parts)
		return corrupt(sl, dg, "an image has impossible sizes");
	uint32_t from = part * WEIR_IMAGE_PART, want = whole - from < WEIR_IMAGE_PART ? whole - from : WEIR_IMAGE_PART;
	if (bytes - sizeof head != want)
		return corrupt(sl, dg, "an image's part has another length than it says");
	weir_dirty_note_image(sl, page, part + 1, head.epoch);
	struct held *h = held_at(sl->restore, page);
	const uint8_t *data = body + sizeof head;
	if (parts == 1) {
		held_image(sl, h, &head, data);
		return WEIR_OK;
	}
	/* Parts of one epoch follow each other; one whose first parts are gone was replaced as a whole. */
	if (part == 0) {
		h->stage_epoch = head.epoch;
		h->stage_parts = 0;
	}
	if (h->stage_epoch != head.epoch || h->stage_parts != part)
		return WEIR_OK;
	h->stage = weir_xrealloc(h->stage, from + want);
	memcpy(h->stage + from, data, want);
	if (++h->stage_parts == parts) {
		held_image(sl, h, &head, h->stage);
		free(h->stage);
		h->stage = NULL;
		h->stage_parts = 0;
	}
	return WEIR_OK;
}

/* ---- finish ---- */

static struct weir_gen *gen_of(const struct weir_slot *sl, int64_t window)
{
	return sl->gens[weir_slot_search(sl, window)].g;
}

/* Bytes of the entry at e, whose page ends at end; 0 if it does not fit. */
static uint64_t walk_bytes(const struct weir_state_def *def, const struct weir_entry *e, const uint8_t *end)
{
	uint64_t room = (uint64_t)(end - (const uint8_t *)e), n;
	if (room < sizeof *e)
		return 0;
	if ((e->flags & WEIR_ENTRY_BLOB) != 0) {
		n = e->hash % 8 == 0 ? weir_blob_bytes(e) : UINT64_MAX;
	} else {
		uint64_t least = weir_def_key_at(def) + (e->key_bytes == WEIR_KEY_LONG ? 8 : 0);
		if (room < least)
			return 0;
		n = weir_entry_bytes(def, e);
		uint32_t key_bytes;
		weir_entry_key(def, e, &key_bytes);
		if (e->key_bytes == WEIR_KEY_LONG && key_bytes < WEIR_KEY_LONG)
			return 0; /* a key has one form */
	}
	return n <= room ? n : 0;
}

/* Starts of live blobs of a page, a bit per 8 bytes: a ref may only lead to one of these, of its own generation
 * (another may end before), and each is somebody's once. */
struct blob_map {
	uint64_t **bits; /* by page number */
	uint32_t count;
};

static bool blob_claim(const struct weir_gen *g, struct blob_map *bm, uint32_t ref)
{
	uint32_t no = ref >> WEIR_REF_SHIFT, at = ref & ((1u << WEIR_REF_SHIFT) - 1);
	if (no >= bm->count || bm->bits[no] == NULL || (bm->bits[no][at / 64] >> (at % 64) & 1) == 0)
		return false;
	if (g->pages->page[no].gen != g)
		return false;
	bm->bits[no][at / 64] &= ~(UINT64_C(1) << (at % 64));
	return true;
}

static bool entry_check(struct weir_slot *sl, const struct weir_gen *g, struct weir_entry *e, struct blob_map *bm)
{
	const struct weir_state_def *def = sl->def;
	uint32_t n;
	const uint8_t *key = weir_entry_key(def, e, &n);
	if (e->hash != weir_hash_index(weir_hash(key, n)))
		return false;
	for (uint32_t i = 0; i < def->agg_count; i++) {
		const struct weir_agg *a = &def->aggs[i];
		const uint8_t *state = (const uint8_t *)e + def->head_bytes + a->state_at;
		if (!weir_agg_has_blob(a))
			continue;
		uint32_t ref = weir_agg_blob(a, state);
		if (ref != 0 && !blob_claim(g, bm, ref))
			return false;
		const struct weir_entry *b =
			ref != 0 ? (const struct weir_entry *)(void *)weir_ref_get(&sl->pages, ref) : NULL;
		if (!weir_agg_check(a, state, b != NULL ? weir_blob_data(b) : NULL, b != NULL ? b->hash : 0))
			return false;
	}
	return true;
}

/* Checks the shape of every entry of a page, clears what was transient, marks blobs. */
static bool page_walk(struct weir_slot *sl, struct weir_page *p, struct blob_map *bm)
{
	uint8_t *end = p->base + p->bytes;
	uint8_t log2 = p->bytes <= WEIR_PAGE_BYTES_MAX ? (uint8_t)__builtin_ctz(p->bytes) : 0;
	uint32_t at = WEIR_PAGE_HEAD;
	while (at < p->used) {
		struct weir_entry *e = (struct weir_entry *)(void *)(p->base + at);
		uint64_t n = walk_bytes(sl->def, e, end);
		if (n == 0)
			return false;
		bool blob = (e->flags & WEIR_ENTRY_BLOB) != 0;
		if (at == WEIR_PAGE_HEAD)
			p->blob = blob;
		if (p->blob != blob || (log2 == 0 && at != WEIR_PAGE_HEAD))
			return false;
		e->flags &= WEIR_ENTRY_DEAD | WEIR_ENTRY_BLOB | WEIR_ENTRY_EMITTED |
			    (sl->def->buffers ? WEIR_ENTRY_GONE : 0) |
			    (weir_def_meets(sl->def) ? WEIR_ENTRY_DEFERRED | WEIR_ENTRY_SHEET : 0) |
			    (weir_def_queues(sl->def, p->gen->start) ? WEIR_ENTRY_DEFERRED : 0);
		e->page_log2 = log2;
		if ((e->flags & (WEIR_ENTRY_SHEET | WEIR_ENTRY_DEAD)) == WEIR_ENTRY_SHEET &&
		    !weir_sheet_check(e, n, log2, &sl->def->sides[p->gen->start & 1]))
			return false;
		if ((e->flags & WEIR_ENTRY_DEAD) != 0)
			p->dead += (uint32_t)n;
		else if (blob && bm->bits != NULL) {
			if (bm->bits[p->no] == NULL)
				bm->bits[p->no] = weir_xcalloc(1u << WEIR_REF_SHIFT >> 3, 1);
			bm->bits[p->no][at / 8 / 64] |= UINT64_C(1) << (at / 8 % 64);
		}
		at += (uint32_t)n;
	}
	/* Of a dead entry at the end only the header was written. */
	p->used = at;
	return true;
}

/* Live entries of p: checked, indexed. */
static bool page_index(struct weir_slot *sl, struct weir_page *p, struct blob_map *bm)
{
	const struct weir_state_def *def = sl->def;
	struct weir_gen *g = p->gen;
	for (uint32_t at = WEIR_PAGE_HEAD; at < p->used;) {
		struct weir_entry *e = (struct weir_entry *)(void *)(p->base + at);
		at += (uint32_t)weir_entry_bytes(def, e);
		if ((e->flags & WEIR_ENTRY_DEAD) != 0)
			continue;
		if (!entry_check(sl, g, e, bm))
			return false;
		g->entries += weir_def_meets(def) ? weir_sheet_live(e) : 1;
		if (def->kind == WEIR_STATE_SESSION || def->kind == WEIR_STATE_SLIDING)
			continue; /* weir_session_rebuild, weir_sliding_rebuild */
		if (def->buffers)
			continue; /* weir_join_rebuild */
		uint32_t n;
		uint64_t *free_slot;
		const uint8_t *key = weir_entry_key(def, e, &n);
		uint64_t hash = weir_hash(key, n);
		if (weir_index_find(&g->ix, def, hash, key, n, &free_slot) != NULL)
			return false;
		weir_gen_index_add(g, e, hash);
	}
	return true;
}

/* Blobs nobody refers to belonged to sessions that died. */
static void blobs_bury(struct weir_slot *sl, struct blob_map *bm)
{
	for (uint32_t no = 0; no < bm->count; no++) {
		for (uint32_t w = 0; bm->bits[no] != NULL && w < (1u << WEIR_REF_SHIFT) / 64; w++) {
			for (uint64_t bits = bm->bits[no][w]; bits != 0; bits &= bits - 1) {
				struct weir_page *p = &sl->pages.page[no];
				uint32_t at = (w * 64 + (uint32_t)__builtin_ctzll(bits)) * 8;
				struct weir_entry *b = (struct weir_entry *)(void *)(p->base + at);
				b->flags |= WEIR_ENTRY_DEAD;
				p->dead += (uint32_t)weir_blob_bytes(b);
			}
		}
		free(bm->bits[no]);
	}
	free(bm->bits);
}

static int by_dirty_since(const void *a, const void *b)
{
	const struct weir_pack_at *x = a, *y = b;
	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	return (x->k > y->k) - (x->k < y->k);
}

/* Pages and packs as they were: the queue in order of age, packs that some page of it still needs alive. */
static void rebuild_queue(struct weir_slot *sl)
{
	struct weir_restore *rs = sl->restore;
	struct weir_dirty *d = &sl->d;
	uint32_t n = 0;
	struct weir_pack_at *order = weir_xmalloc(((size_t)rs->capacity + 1) * sizeof *order);
	for (uint32_t no = 1; no < rs->capacity; no++)
		if (rs->held[no].state != HELD_NONE && rs->held[no].dirty_since != 0)
			order[n++] = (struct weir_pack_at){rs->held[no].dirty_since, no, 0};
	if (n != 0)
		qsort(order, n, sizeof *order, by_dirty_since);
	for (uint32_t i = 0; i < n; i++)
		weir_dirty_queue(sl, &sl->pages.page[order[i].k], order[i].epoch);
	d->epoch = rs->epoch;
	uint64_t mark = n != 0 ? order[0].epoch : UINT64_MAX;
	free(order);
	for (uint32_t k = 0; k < d->pack_high; k++) {
		if (d->pack_epoch[k] == 0 || d->pack_epoch[k] < mark)
			continue;
		weir_numbers_set(&d->packs, &sl->blocks, k);
		*(struct weir_pack_at *)weir_vec_push(&d->live_packs, &sl->blocks, sizeof(struct weir_pack_at)) =
			(struct weir_pack_at){d->pack_epoch[k], k, 0};
	}
	if (d->live_packs.count != 0)
		qsort(d->live_packs.data, d->live_packs.count, sizeof(struct weir_pack_at), by_dirty_since);
}

/* Where each generation goes on: in its roomiest page. */
static void rebuild_append(struct weir_slot *sl)
{
	for (uint32_t i = 0; i < sl->gen_count; i++) {
		struct weir_gen *g = sl->gens[i].g;
		for (uint32_t no = g->page_first; no != 0; no = sl->pages.page[no].next) {
			const struct weir_page *p = &sl->pages.page[no];
			if (p->state != WEIR_PAGE_LIVE || p->bytes > WEIR_PAGE_BYTES_MAX)
				continue;
			if (p->bytes * 2 > g->page_bytes_next)
				g->page_bytes_next = p->bytes == WEIR_PAGE_BYTES_MAX ? p->bytes : p->bytes * 2;
			uint32_t *current = p->blob ? &g->blob_page : &g->entry_page;
			const struct weir_page *best = *current != 0 ? &sl->pages.page[*current] : NULL;
			if (best == NULL || p->bytes - p->used > best->bytes - best->used)
				*current = no;
		}
	}
}

/* A large page holds one entry of its size, all of which has come: a length alone makes no memory. Only of a dead one
 * nothing but the header comes. */
static bool is_whole(const struct held *h)
{
	return h->bytes <= WEIR_PAGE_BYTES_MAX || weir_align_up(h->used, 64) == h->bytes;
}
static bool is_dead(const struct held *h)
{
	struct weir_entry e;
	if (h->capacity < WEIR_PAGE_HEAD + sizeof e)
		return false;
	memcpy(&e, h->data + WEIR_PAGE_HEAD, sizeof e);
	return (e.flags & WEIR_ENTRY_DEAD) != 0;
}

static enum weir_err place_pages(struct weir_slot *sl, struct weir_diag **dg)
{
	struct weir_restore *rs = sl->restore;
	struct weir_vec lost = {0}; /* u32: large pages of dead entries, held by what a restart does not keep */
	for (uint32_t no = 1; no < rs->capacity; no++) {
		struct held *h = &rs->held[no];
		if (h->bad && window_is_live(sl, h->window))
			return corrupt(sl, dg, "a page has changes but nothing to change");
		if (h->bad || h->state == HELD_NONE) {
			h->state = HELD_NONE;
			continue;
		}
		bool whole = h->state != HELD_LIVE || is_whole(h);
		if (!whole && !is_dead(h)) {
			weir_vec_fini(&lost, &sl->blocks, sizeof(uint32_t));
			return corrupt(sl, dg, "a page is longer than what came of it");
		}
		uint32_t bytes = h->state == HELD_LIVE && whole ? h->bytes : WEIR_PAGE_BYTES_MIN;
		struct weir_page *p = weir_gen_add_page(gen_of(sl, h->window), no, bytes, false);
		p->fresh = false;
		p->image_epoch = h->image_epoch;
		p->used = h->used;
		/* Its memory may be larger than what came, which ends with a dead entry's header. */
		uint32_t have = h->capacity < bytes ? h->capacity : bytes;
		if (have > WEIR_PAGE_HEAD)
			memcpy(p->base + WEIR_PAGE_HEAD, h->data + WEIR_PAGE_HEAD, have - WEIR_PAGE_HEAD);
		else
			have = WEIR_PAGE_HEAD;
		memset(p->base + have, 0, bytes - have);
		free(h->data);
		h->data = NULL;
		if (!whole) {
			p->used = WEIR_PAGE_HEAD;
			*(uint32_t *)weir_vec_push(&lost, &sl->blocks, sizeof(uint32_t)) = no;
		} else if (h->state == HELD_GIVEN) {
			weir_page_give(&sl->pages, p);
		}
	}
	sl->d.given.count = 0; /* those were said before; the queue has them */
	for (uint32_t i = 0; i < lost.count; i++) {
		uint32_t no = ((const uint32_t *)lost.data)[i];
		rs->held[no].state = HELD_GIVEN;
		weir_page_give(&sl->pages, &sl->pages.page[no]);
	}
	weir_vec_fini(&lost, &sl->blocks, sizeof(uint32_t));
	return WEIR_OK;
}

static enum weir_err index_pages(struct weir_slot *sl, struct weir_diag **dg)
{
	const struct weir_state_def *def = sl->def;
	struct blob_map bm = {0};
	bool fine = true;
	uint32_t high = sl->restore->capacity;
	if (def->has_blobs) {
		bm.count = high;
		bm.bits = weir_xcalloc(high != 0 ? high : 1, sizeof *bm.bits);
	}
	for (uint32_t no = 1; no < high && fine; no++)
		if (sl->restore->held[no].state == HELD_LIVE)
			fine = page_walk(sl, &sl->pages.page[no], &bm);
	for (uint32_t no = 1; no < high && fine; no++)
		if (sl->restore->held[no].state == HELD_LIVE && !sl->pages.page[no].blob)
			fine = page_index(sl, &sl->pages.page[no], &bm);
	blobs_bury(sl, &bm);
	if (!fine)
		return corrupt(sl, dg, "a page holds entries that cannot be");
	/* A window begins with a row: one that has none has lost its bodies. */
	for (uint32_t i = 0; i < sl->gen_count && def->kind == WEIR_STATE_WINDOW; i++)
		if (sl->gens[i].g->entries == 0)
			return corrupt(sl, dg, "a live window has no entries");
	return WEIR_OK;
}

enum weir_err weir_slot_restore_finish(struct weir_slot *sl, struct weir_diag **dg)
{
	WEIR_ASSERT(sl->restore != NULL);
	enum weir_err err = place_pages(sl, dg);
	if (err == WEIR_OK)
		err = index_pages(sl, dg);
	if (err == WEIR_OK && sl->def->kind == WEIR_STATE_SESSION && !weir_session_rebuild(sl))
		err = corrupt(sl, dg, "two sessions of a key overlap, or a key is in none");
	if (err == WEIR_OK && sl->def->kind == WEIR_STATE_SLIDING && !weir_sliding_rebuild(sl))
		err = corrupt(sl, dg, "a key has a sliding window twice, or one that cannot be");
	if (err == WEIR_OK && sl->def->buffers && !weir_join_rebuild(sl))
		err = corrupt(sl, dg, "a join buffer's records are not in order");
	if (err == WEIR_OK && sl->def->foreign != 0 && !weir_foreign_check(sl))
		err = corrupt(sl, dg, "rows of a foreign key are not linked");
	if (err == WEIR_OK) {
		rebuild_queue(sl);
		rebuild_append(sl);
		sl->d.meta = false;
		/* Pages that only a node or a change list had held. */
		for (uint32_t no = 1; no < sl->restore->capacity; no++) {
			if (sl->restore->held[no].state != HELD_LIVE)
				continue;
			sl->pages.page[no].packed = sl->pages.page[no].used;
			sl->pages.page[no].pins++;
			weir_page_unpin(&sl->pages, no);
		}
	}
	weir_restore_free(sl);
	return err;
}
