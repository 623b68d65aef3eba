/* dirty.c: what changed in a slot, as packs of changed entries and images of pages, and which numbers they get.
 * @thread worker.
 *
 *   page   clean --an entry changes, barrier--> queued (dirty_since = epoch) --its image is written--> clean
 *          the image counts once its barrier is committed: until then the pages it covers still hold packs alive
 * (pending) pack   written under the smallest number without a live pack --every page dirty since <= its epoch has a
 * committed image, or its window has closed--> dead, its number free for the next pack
 *
 *   new    a page of a join buffer that was filled since the last barrier --its image alone is written--> clean
 *
 * The queue is in order of dirty_since, so the oldest page alone says which packs are dead. */
#include "hotpath/state/dirty.h"
#include "hotpath/state/slot.h"

/* ---- which packs are alive ---- */

/* Packs of epochs below this are dead. */
static uint64_t dirty_watermark(const struct weir_slot *sl)
{
	const struct weir_dirty *d = &sl->d;
	if (d->pending.count != 0)
		return ((const struct weir_pending *)d->pending.data)[0].since;
	if (d->queue_first != 0)
		return sl->pages.page[d->queue_first].dirty_since;
	return d->epoch + 1;
}

static void packs_retire(struct weir_slot *sl)
{
	struct weir_dirty *d = &sl->d;
	struct weir_pack_at *live = d->live_packs.data;
	uint64_t mark = dirty_watermark(sl);
	while (d->live_from < d->live_packs.count && live[d->live_from].epoch < mark)
		weir_numbers_give(&d->packs, live[d->live_from++].k);
	if (d->live_from > d->live_packs.count / 2) {
		d->live_packs.count -= d->live_from;
		memmove(live, live + d->live_from, d->live_packs.count * sizeof *live);
		d->live_from = 0;
	}
}

void weir_dirty_note_pack(struct weir_slot *sl, uint32_t k, uint64_t epoch)
{
	struct weir_dirty *d = &sl->d;
	if (k >= d->pack_capacity) {
		uint32_t to = d->pack_capacity == 0 ? 64 : d->pack_capacity;
		while (to <= k)
			to *= 2;
		uint64_t *of = weir_blocks_take(&sl->blocks, to * sizeof *of);
		memset(of, 0, to * sizeof *of);
		if (d->pack_epoch != NULL) {
			memcpy(of, d->pack_epoch, d->pack_capacity * sizeof *of);
			weir_blocks_give(&sl->blocks, d->pack_epoch, d->pack_capacity * sizeof *of);
		}
		d->pack_epoch = of;
		d->pack_capacity = to;
	}
	d->pack_epoch[k] = epoch;
	if (k >= d->pack_high)
		d->pack_high = k + 1;
}

void weir_dirty_note_image(struct weir_slot *sl, uint32_t no, uint32_t parts, uint64_t epoch)
{
	struct weir_vec *v = &sl->d.logged;
	while (v->count <= no)
		*(struct weir_logged *)weir_vec_push(v, &sl->blocks, sizeof(struct weir_logged)) =
			(struct weir_logged){0};
	struct weir_logged *lg = (struct weir_logged *)v->data + no;
	sl->d.logged_pages += lg->parts == 0;
	if (lg->parts < parts)
		lg->parts = parts;
	if (lg->epoch < epoch)
		lg->epoch = epoch;
}

void weir_dirty_note_no_image(struct weir_slot *sl, uint32_t no)
{
	struct weir_logged *lg = sl->d.logged.data;
	if (no >= sl->d.logged.count || lg[no].parts == 0)
		return;
	lg[no] = (struct weir_logged){0};
	sl->d.logged_pages--;
}

void weir_dirty_queue(struct weir_slot *sl, struct weir_page *p, uint64_t epoch)
{
	struct weir_dirty *d = &sl->d;
	if (p->dirty_since != 0)
		return;
	p->dirty_since = epoch;
	p->queue_prev = d->queue_last;
	p->queue_next = 0;
	if (d->queue_last != 0)
		sl->pages.page[d->queue_last].queue_next = p->no;
	else
		d->queue_first = p->no;
	d->queue_last = p->no;
}

/* ---- packs ---- */

struct packer {
	struct weir_slot *sl;
	const struct weir_delta_sink *sink;
	uint64_t epoch;
	uint8_t *body; /* WEIR_PACK_MAX: the sink's, or own */
	uint8_t *own;
	uint32_t bytes;
	struct weir_pack_run *run; /* in body */
	int64_t window;
	uint64_t bytes_written;
	uint32_t packs_written;
	/* The range being gathered: entries that follow each other in one page are one item. */
	struct weir_page *page;
	uint32_t from, to;
	struct weir_vec whole; /* u32: new pages that go out as images */
};

/* A new body is written where the sink wants to have it. */
static void body_begin(struct packer *pk)
{
	pk->body = pk->sink->room != NULL ? pk->sink->room(pk->sink->ctx, WEIR_PACK_MAX) : pk->own;
}

static void pack_flush(struct packer *pk)
{
	if (pk->bytes <= sizeof(struct weir_pack_head))
		return;
	struct weir_dirty *d = &pk->sl->d;
	uint32_t k = weir_numbers_take(&d->packs, &pk->sl->blocks);
	*(struct weir_pack_at *)weir_vec_push(&d->live_packs, &pk->sl->blocks, sizeof(struct weir_pack_at)) =
		(struct weir_pack_at){pk->epoch, k, 0};
	weir_dirty_note_pack(pk->sl, k, pk->epoch);
	if (pk->sink->pack != NULL)
		pk->sink->pack(pk->sink->ctx, pk->sl->number, k, pk->body, pk->bytes);
	pk->bytes_written += pk->bytes;
	pk->packs_written++;
	pk->bytes = 0;
	pk->run = NULL;
}

/* Room for an item with some of `want` bytes (a multiple of 8); returns how many. */
static uint32_t pack_room(struct packer *pk, uint32_t want)
{
	uint32_t head = sizeof(struct weir_pack_item) + (pk->run == NULL ? sizeof(struct weir_pack_run) : 0);
	/* A range is cut only where it cannot go into one pack at all, or would leave this one mostly empty. */
	if (pk->bytes != 0 && pk->bytes + head + want > WEIR_PACK_MAX &&
	    (pk->bytes >= WEIR_PACK_MAX / 2 || pk->bytes + head + 8 > WEIR_PACK_MAX))
		pack_flush(pk);
	if (pk->bytes == 0) {
		body_begin(pk);
		*(struct weir_pack_head *)(void *)pk->body = (struct weir_pack_head){WEIR_BODY_VERSION, 0, pk->epoch};
		pk->bytes = sizeof(struct weir_pack_head);
	}
	if (pk->run == NULL) {
		pk->run = (struct weir_pack_run *)(void *)(pk->body + pk->bytes);
		*pk->run = (struct weir_pack_run){pk->window, 0, 0};
		pk->bytes += sizeof *pk->run;
	}
	uint32_t room = WEIR_PACK_MAX - pk->bytes - (uint32_t)sizeof(struct weir_pack_item);
	return want < room ? want : room;
}

static void pack_item(struct packer *pk, struct weir_page *p, uint32_t offset, uint32_t bytes, uint32_t page_bytes)
{
	*(struct weir_pack_item *)(void *)(pk->body + pk->bytes) =
		(struct weir_pack_item){p->no, offset, bytes, page_bytes};
	pk->bytes += sizeof(struct weir_pack_item);
	if (bytes != 0)
		memcpy(pk->body + pk->bytes, p->base + offset, bytes);
	pk->bytes += bytes;
	pk->run->items++;
}

static void range_flush(struct packer *pk)
{
	struct weir_page *p = pk->page;
	if (p == NULL)
		return;
	weir_dirty_queue(pk->sl, p, pk->epoch);
	while (pk->from < pk->to) {
		uint32_t n = pack_room(pk, pk->to - pk->from);
		pack_item(pk, p, pk->from, n, p->fresh ? p->bytes : 0);
		p->fresh = false;
		pk->from += n;
	}
	pk->page = NULL;
}

static void pack_window(struct packer *pk, int64_t window)
{
	if (pk->run != NULL && pk->window == window)
		return;
	if (pk->bytes >= WEIR_PACK_MIN)
		pack_flush(pk);
	pk->window = window;
	pk->run = NULL;
}

/* Bytes of e that the changelog needs: of a dead entry only what says how long it is. */
static uint32_t dirty_bytes(const struct weir_state_def *def, const struct weir_entry *e)
{
	bool dead = (e->flags & WEIR_ENTRY_DEAD) != 0;
	if ((e->flags & WEIR_ENTRY_BLOB) != 0)
		return dead ? sizeof *e : (uint32_t)weir_blob_bytes(e);
	if (dead && def->buffers && e->key_bytes != WEIR_KEY_LONG)
		return (uint32_t)weir_align_up(sizeof(struct weir_buffered), 8);
	return dead && e->key_bytes != WEIR_KEY_LONG ? sizeof *e : (uint32_t)weir_entry_bytes(def, e);
}

static void pack_entry(struct packer *pk, struct weir_page *p, struct weir_entry *e, uint32_t offset)
{
	e->flags &= (uint8_t)~WEIR_ENTRY_DIRTY;
	if (pk->page != p || pk->to != offset) {
		range_flush(pk);
		pk->page = p;
		pk->from = offset;
	}
	pk->to = offset + dirty_bytes(pk->sl->def, e);
}

/* Entries in the order they changed: few of many. */
static void pack_listed(struct packer *pk, const struct weir_gen *g)
{
	const struct weir_pages *pg = &pk->sl->pages;
	for (uint32_t i = 0; i < g->dirty_count; i++) {
		enum { AHEAD = 8 };
		if (i + AHEAD < g->dirty_count) {
			uint32_t ahead = g->dirty[i + AHEAD];
			uintptr_t base = (uintptr_t)pg->page[ahead >> WEIR_REF_SHIFT].base;
			__builtin_prefetch((const void *)(base + (ahead & ((1u << WEIR_REF_SHIFT) - 1)) * 8), 1, 3);
		}
		uint32_t ref = g->dirty[i];
		struct weir_page *p = &pg->page[ref >> WEIR_REF_SHIFT];
		if (p->state != WEIR_PAGE_LIVE)
			continue; /* given back since: said below, for the page as a whole */
		uint32_t offset = (ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8;
		pack_entry(pk, p, (struct weir_entry *)(void *)(p->base + offset), offset);
	}
}

/* Page by page, oldest first: where many entries changed, neighbours become one range, and memory is read in order. */
static void pack_walked(struct packer *pk, const struct weir_gen *g)
{
	const struct weir_state_def *def = pk->sl->def;
	const struct weir_pages *pg = &pk->sl->pages;
	uint32_t oldest = g->page_first;
	while (oldest != 0 && pg->page[oldest].next != 0)
		oldest = pg->page[oldest].next;
	for (uint32_t no = oldest; no != 0; no = pg->page[no].prev) {
		struct weir_page *p = &pg->page[no];
		if (p->state != WEIR_PAGE_LIVE)
			continue;
		for (uint32_t at = WEIR_PAGE_HEAD; at < p->used;) {
			struct weir_entry *e = (struct weir_entry *)(void *)(p->base + at);
			uint64_t bytes =
				(e->flags & WEIR_ENTRY_BLOB) != 0 ? weir_blob_bytes(e) : weir_entry_bytes(def, e);
			if ((e->flags & WEIR_ENTRY_DIRTY) != 0)
				pack_entry(pk, p, e, at);
			at += (uint32_t)bytes;
		}
	}
}

/* What was appended, as it lies there. A page that came whole in this epoch is written once, as an image. */
static void pack_appended(struct packer *pk, struct weir_gen *g)
{
	struct weir_slot *sl = pk->sl;
	for (uint32_t no = g->page_first; no != 0; no = sl->pages.page[no].next) {
		struct weir_page *p = &sl->pages.page[no];
		if (p->state != WEIR_PAGE_LIVE || p->packed == p->used)
			continue;
		if (p->fresh && no != g->entry_page) {
			*(uint32_t *)weir_vec_push(&pk->whole, &sl->blocks, sizeof no) = no;
		} else {
			range_flush(pk);
			pk->page = p;
			pk->from = p->packed;
			pk->to = p->used;
		}
		p->packed = p->used;
	}
	g->appended = 0;
}

static void pack_gen(struct packer *pk, struct weir_gen *g)
{
	struct weir_slot *sl = pk->sl;
	if (g->dirty_count == 0 && g->appended == 0)
		return;
	pack_window(pk, g->start);
	if (g->dirty_walk)
		pack_walked(pk, g);
	else
		pack_listed(pk, g);
	if (g->appended != 0)
		pack_appended(pk, g);
	range_flush(pk);
	if (g->dirty != NULL)
		weir_blocks_give(&sl->blocks, g->dirty, g->dirty_capacity * sizeof *g->dirty);
	g->dirty = NULL;
	g->dirty_count = g->dirty_capacity = 0;
	g->dirty_walk = false;
}

/* Pages given back in this epoch. Those the changelog never heard of are simply free now: no list holds refs to them.
 */
static void pack_given(struct packer *pk)
{
	struct weir_slot *sl = pk->sl;
	const uint32_t *given = sl->d.given.data;
	for (uint32_t i = 0; i < sl->d.given.count; i++) {
		struct weir_page *p = &sl->pages.page[given[i]];
		if (p->state != WEIR_PAGE_GIVEN)
			continue; /* its window has closed */
		if (p->fresh) {
			weir_page_forget(&sl->pages, p->no);
			continue;
		}
		pack_window(pk, p->gen->start);
		pack_room(pk, 0);
		pack_item(pk, p, 0, 0, WEIR_PACK_GIVEN);
		weir_dirty_queue(sl, p, pk->epoch);
	}
	sl->d.given.count = 0;
}

/* ---- images ---- */

static uint32_t image_bytes(const struct weir_page *p)
{
	return (uint32_t)sizeof(struct weir_image_head) + p->used - WEIR_PAGE_HEAD;
}

static void image_write(struct packer *pk, struct weir_page *p)
{
	struct weir_slot *sl = pk->sl;
	uint32_t bytes = p->used - WEIR_PAGE_HEAD, part = 0;
	bool there = p->state == WEIR_PAGE_LIVE;
	struct weir_image_head head = {.version = WEIR_BODY_VERSION,
				       .epoch = pk->epoch,
				       .window = p->gen->start,
				       .page_bytes = there ? p->bytes : 0,
				       .used = there ? p->used : 0,
				       .parts = bytes == 0 ? 1 : (bytes + WEIR_IMAGE_PART - 1) / WEIR_IMAGE_PART};
	for (; part < head.parts; part++) {
		uint32_t from = part * WEIR_IMAGE_PART;
		uint32_t n = bytes - from < WEIR_IMAGE_PART ? bytes - from : WEIR_IMAGE_PART;
		if (pk->sink->page == NULL)
			continue;
		body_begin(pk);
		memcpy(pk->body, &head, sizeof head);
		if (n != 0)
			memcpy(pk->body + sizeof head, p->base + WEIR_PAGE_HEAD + from, n);
		pk->sink->page(pk->sink->ctx, sl->number, p->no, part, pk->body, (uint32_t)sizeof head + n);
	}
	weir_dirty_note_image(sl, p->no, part, pk->epoch);
	weir_slot_unqueue(sl, p);
	p->image_epoch = pk->epoch;
	if (!there)
		*(struct weir_given_at *)weir_vec_push(&sl->d.given_imaged, &sl->blocks, sizeof(struct weir_given_at)) =
			(struct weir_given_at){pk->epoch, p->no, 0};
}

static void images_write_whole(struct packer *pk)
{
	struct weir_slot *sl = pk->sl;
	const uint32_t *no = pk->whole.data;
	for (uint32_t i = 0; i < pk->whole.count; i++) {
		struct weir_page *p = &sl->pages.page[no[i]];
		p->fresh = false;
		image_write(pk, p);
	}
	weir_vec_fini(&pk->whole, &sl->blocks, sizeof *no);
}

/* As many bytes as packs, oldest page first; what is left over carries on. Where packs are tiny, at least one page for
 * each as soon as there are more live packs than pages, so that packs never outnumber pages for long. */
static void images_write(struct packer *pk)
{
	struct weir_slot *sl = pk->sl;
	struct weir_dirty *d = &sl->d;
	uint32_t owed = d->live_packs.count - d->live_from > sl->pages.live ? pk->packs_written : 0;
	d->credit += pk->bytes_written;
	while (d->queue_first != 0) {
		struct weir_page *p = &sl->pages.page[d->queue_first];
		uint32_t bytes = image_bytes(p);
		if (d->credit < bytes && owed == 0)
			return;
		d->credit -= bytes < d->credit ? bytes : d->credit;
		owed -= owed != 0;
		image_write(pk, p);
	}
	d->credit = 0;
}

/* ---- number spaces ---- */

/* Tombstones, only where more than twice of what lives has bodies in the changelog. */
static bool packs_shrink(struct packer *pk)
{
	struct weir_dirty *d = &pk->sl->d;
	bool wrote = false;
	if (d->pack_high <= 2 * d->packs.taken + 16)
		return false;
	while (d->pack_high != 0 && !weir_numbers_has(&d->packs, d->pack_high - 1)) {
		uint32_t k = --d->pack_high;
		if (d->pack_epoch[k] == 0)
			continue;
		d->pack_epoch[k] = 0;
		wrote = true;
		if (pk->sink->pack != NULL)
			pk->sink->pack(pk->sink->ctx, pk->sl->number, k, NULL, 0);
	}
	return wrote;
}

static bool pages_shrink(struct packer *pk)
{
	enum { EVERY = 16 }; /* barriers: an attempt looks at every number */
	struct weir_slot *sl = pk->sl;
	struct weir_dirty *d = &sl->d;
	struct weir_logged *lg = d->logged.data;
	bool wrote = false;
	if (d->logged_pages <= 2 * sl->pages.numbers.taken + 64 || pk->epoch % EVERY != 0)
		return false;
	/* A page's image also cancels what dead packs, not overwritten yet, still say of the page: those must go first.
	 */
	uint64_t oldest = UINT64_MAX;
	for (uint32_t k = 0; k < d->pack_high; k++)
		if (d->pack_epoch[k] != 0 && d->pack_epoch[k] < oldest)
			oldest = d->pack_epoch[k];
	for (uint32_t no = 1; no < d->logged.count; no++) {
		if (lg[no].parts == 0 || lg[no].epoch >= oldest || weir_numbers_has(&sl->pages.numbers, no))
			continue;
		for (uint32_t part = 0; part < lg[no].parts && pk->sink->page != NULL; part++)
			pk->sink->page(pk->sink->ctx, sl->number, no, part, NULL, 0);
		weir_dirty_note_no_image(sl, no);
		wrote = true;
	}
	while (d->logged.count != 0 && lg[d->logged.count - 1].parts == 0)
		d->logged.count--;
	return wrote;
}

/* ---- the barrier ---- */

bool weir_slot_barrier(struct weir_slot *sl, uint64_t epoch, const struct weir_delta_sink *sink)
{
	struct weir_dirty *d = &sl->d;
	/* Rows that are due have left: what a crash takes from here on is not in the results either. */
	WEIR_ASSERT(sl->ready == NULL && epoch > d->epoch);
	WEIR_DASSERT(sl->change.count == 0);
	d->epoch = epoch;
	packs_retire(sl);
	struct packer pk = {.sl = sl, .sink = sink, .epoch = epoch};
	/* Of the arena: a slot need not keep it until the next barrier. */
	if (sink->room == NULL)
		pk.own = weir_arena_take(sl->blocks.ar, WEIR_PACK_MAX, 4096);
	for (uint32_t i = 0; i < sl->gen_count; i++)
		pack_gen(&pk, sl->gens[i].g);
	pack_given(&pk);
	pack_flush(&pk);
	bool wrote = pk.packs_written != 0 || pk.whole.count != 0;
	images_write_whole(&pk);
	if (d->queue_first != 0) {
		*(struct weir_pending *)weir_vec_push(&d->pending, &sl->blocks, sizeof(struct weir_pending)) =
			(struct weir_pending){epoch, sl->pages.page[d->queue_first].dirty_since};
		images_write(&pk);
	}
	wrote |= packs_shrink(&pk);
	wrote |= pages_shrink(&pk);
	if (pk.own != NULL)
		weir_arena_give(sl->blocks.ar, pk.own, WEIR_PACK_MAX, 4096);
	wrote |= d->meta;
	d->meta = false;
	return wrote;
}

void weir_slot_committed(struct weir_slot *sl, uint64_t epoch)
{
	struct weir_dirty *d = &sl->d;
	struct weir_pending *pending = d->pending.data;
	uint32_t n = 0;
	while (n < d->pending.count && pending[n].epoch <= epoch)
		n++;
	d->pending.count -= n;
	if (n != 0)
		memmove(pending, pending + n, d->pending.count * sizeof *pending);
	/* The changelog knows that these pages are empty: their numbers may be used again. */
	struct weir_given_at *given = d->given_imaged.data;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < d->given_imaged.count; i++) {
		const struct weir_page *p = &sl->pages.page[given[i].no];
		if (given[i].epoch > epoch)
			given[kept++] = given[i];
		else if (p->state == WEIR_PAGE_GIVEN && p->image_epoch == given[i].epoch)
			weir_page_forget(&sl->pages, p->no);
	}
	d->given_imaged.count = kept;
	packs_retire(sl);
}

void weir_slot_save(const struct weir_slot *sl, struct weir_buf *out)
{
	struct weir_save_head head = {WEIR_SAVE_VERSION, sl->gen_count, sl->records, sl->closed_start};
	weir_buf_put(out, &head, sizeof head);
	for (uint32_t i = 0; i < sl->gen_count; i++)
		weir_buf_put(out, &sl->gens[i].start, sizeof sl->gens[i].start);
}
