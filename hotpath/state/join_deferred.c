/* join_deferred.c: records of join buffers that stand in no index yet (join_index.h). @thread worker
 *
 * Payments within an hour of their order: an order in order meets none that came before it, so payments need not be
 * found, and an index of orders alone is half as large. Each is one more place in an array of its generation, and
 * carries its number, so that a restored one comes in the same order; a sheet (join_sheet.h) has one place and one
 * number for all its records. */
#include "hotpath/state/join_state.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"

bool weir_join_defers(const struct weir_state_def *def, uint32_t side)
{
	return weir_def_meets(def) && !def->versioned && !def->sides[0].outer && !def->sides[1].outer &&
	       weir_join_back_ms(def, 1 - side) <= 0 && weir_join_back_ms(def, side) > 0;
}

static inline struct weir_join_deferred *deferred_of(const struct weir_join_index *ix, uint32_t code)
{
	return &ix->deferred[code / 2];
}

static WEIR_NOINLINE void deferred_begin(struct weir_slot *sl)
{
	size_t bytes = WEIR_JOIN_CODES / 2 * sizeof(struct weir_join_deferred);
	sl->joined->deferred = weir_blocks_take(&sl->blocks, bytes);
	memset(sl->joined->deferred, 0, bytes);
}

static WEIR_NOINLINE void deferred_grow(struct weir_slot *sl, struct weir_join_deferred *df)
{
	struct weir_join_block *bk = weir_blocks_take(&sl->blocks, sizeof *bk);
	bk->next = NULL;
	bk->before = df->last;
	memset(bk->hashes, 0, sizeof bk->hashes);
	sl->joined->blocks++;
	*(df->last != NULL ? &df->last->next : &df->first) = bk;
	df->last = bk;
	df->at = bk->place;
	df->end = bk->place + WEIR_COUNT_OF(bk->place);
}

/* A hash's bit in a chunk. */
static inline uint32_t hash_word(uint32_t hash)
{
	return hash >> 30;
}
static inline uint64_t hash_bit(uint32_t hash)
{
	return UINT64_C(1) << (hash >> 24 & 63);
}

static inline void note_high(struct weir_join_index *ix, uint32_t code, int64_t time)
{
	ix->deferred_high[code & 1] = weir_max_i64(ix->deferred_high[code & 1], time);
}

/* many: the place is that of a sheet. */
static inline void deferred_put(struct weir_slot *sl, uint64_t place, int64_t time, bool many)
{
	uint32_t code = weir_join_place_code(place);
	struct weir_join_deferred *df = deferred_of(sl->joined, code);
	if (WEIR_UNLIKELY(df->at == df->end)) {
		df->high = df->first != NULL ? df->high : time;
		deferred_grow(sl, df);
	}
	df->high = weir_max_i64(df->high, time);
	uint32_t chunk = (uint32_t)(df->at - df->last->place) / WEIR_JOIN_CHUNK, hash = (uint32_t)(place >> 32);
	df->last->high[chunk] = df->high;
	df->last->hashes[chunk][hash_word(hash)] |= hash_bit(hash);
	if (many)
		memset(df->last->hashes[chunk], 0xff, sizeof df->last->hashes[chunk]);
	*df->at++ = place;
	note_high(sl->joined, code, time);
}

/* Cost: about 30 instructions. */
void weir_join_defer(struct weir_slot *sl, uint64_t place, int64_t time)
{
	struct weir_buffered *bf = weir_join_place_record(&sl->pages, place);
	if (WEIR_UNLIKELY(sl->joined->deferred == NULL))
		deferred_begin(sl);
	bf->e.flags |= WEIR_ENTRY_DEFERRED;
	bf->older = deferred_of(sl->joined, weir_join_place_code(place))->number++;
	deferred_put(sl, place, time, false);
}

/* A record that is not deferred any longer. What a stub held of its hash goes. fresh: it is new since the last barrier.
 */
static void enter_one(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *bf, bool fresh)
{
	if ((bf->e.flags & (WEIR_ENTRY_DEFERRED | WEIR_ENTRY_DEAD)) != WEIR_ENTRY_DEFERRED)
		return;
	if (weir_buffered_is_stub(bf)) {
		bf->e.flags &= (uint8_t)~WEIR_ENTRY_DEFERRED;
		bf->older = 0;
		if (!fresh)
			weir_buffered_mark(g, bf);
	}
	weir_join_list_add(sl, g, bf, fresh);
}

void weir_join_sheet_turned(struct weir_slot *sl, struct weir_sheet *sh, uint32_t from, uint32_t to)
{
	struct weir_join_index *ix = sl->joined;
	struct weir_gen *g = sl->pages.page[weir_entry_page_no(&sh->b.e)].gen;
	int64_t high = ix->start[g->code] + sh->b.delta;
	if (WEIR_UNLIKELY(!weir_join_is_deferring(ix, g->code))) {
		for (uint32_t i = from; i < to; i++)
			enter_one(sl, g, weir_stub_buffered(&sh->stub[i]), true);
		note_high(ix, g->code, high);
		ix->open = NULL;
		return;
	}
	if (from == 0) {
		if (WEIR_UNLIKELY(ix->deferred == NULL))
			deferred_begin(sl);
		sh->b.older = deferred_of(ix, g->code)->number;
		deferred_of(ix, g->code)->number += sh->count;
		deferred_put(sl, weir_join_place_value(0, g->code, weir_entry_ref(&sh->b.e)), high, true);
	}
	ix->open = to < sh->count ? sh : NULL;
	ix->open_rows = to;
}

/* Records of a place that are deferred: those of a sheet that had their turn, or one. */
struct records {
	struct weir_buffered *bf;
	uint32_t count;
	bool stubs;
};
static inline struct records records_at(const struct weir_slot *sl, uint64_t place)
{
	struct weir_buffered *bf = weir_join_place_record(&sl->pages, place);
	if (WEIR_LIKELY((bf->e.flags & WEIR_ENTRY_SHEET) == 0))
		return (struct records){bf, 1, false};
	struct weir_sheet *sh = (struct weir_sheet *)(void *)bf;
	return (struct records){weir_stub_buffered(sh->stub),
				sh == sl->joined->open ? sl->joined->open_rows : sh->count, true};
}
/* Whether the record is still one of them and has this hash. */
static inline bool is_deferred(const struct weir_buffered *bf, uint32_t hash)
{
	uint32_t have = weir_buffered_is_stub(bf) ? bf->older : bf->e.hash;
	return have == hash && (bf->e.flags & (WEIR_ENTRY_DEFERRED | WEIR_ENTRY_DEAD)) == WEIR_ENTRY_DEFERRED;
}
static inline struct weir_buffered *record_of(const struct records *rc, uint32_t i)
{
	return rc->stubs ? (struct weir_buffered *)((uintptr_t)rc->bf + i * sizeof(struct weir_stub)) : rc->bf;
}

/* A chunk of places. */
struct chunk {
	struct weir_join_block *bk;
	uint32_t at; /* in it */
};
static inline bool may_hold(const struct chunk *ck, uint32_t hash)
{
	return (ck->bk->hashes[ck->at][hash_word(hash)] & hash_bit(hash)) != 0;
}

/* How many are looked through at most for one row: more than a source that is somewhat ahead of another leaves. */
enum { CHUNKS_MOST = 64, RECORDS_MOST = 8192 /* of sheets */ };

static struct chunk last_chunk(const struct weir_join_deferred *df)
{
	return (struct chunk){df->last, (uint32_t)(df->at - df->last->place - 1) / WEIR_JOIN_CHUNK};
}

static bool chunk_before(struct chunk *ck)
{
	if (ck->at != 0) {
		ck->at--;
		return true;
	}
	if (ck->bk->before == NULL)
		return false;
	*ck = (struct chunk){ck->bk->before, WEIR_JOIN_CHUNKS - 1};
	return true;
}

static const uint64_t *chunk_places(const struct weir_join_deferred *df, const struct chunk *ck, uint32_t *count)
{
	const uint64_t *from = &ck->bk->place[ck->at * WEIR_JOIN_CHUNK];
	*count = ck->bk == df->last && df->at < from + WEIR_JOIN_CHUNK ? (uint32_t)(df->at - from) : WEIR_JOIN_CHUNK;
	return from;
}

static inline bool same_hash(uint64_t place, uint32_t hash)
{
	return (((uint32_t)(place >> 32) ^ hash) & ~(uint32_t)WEIR_JOIN_LOW_BITS) == 0;
}

/* Of a sheet's place the hash is left out; a record's may be 0, too. */
static inline bool is_sheet(uint64_t place)
{
	return place >> 38 == 0;
}

static uint32_t deferring_codes(const struct weir_join_index *ix, uint32_t side, int64_t from, int64_t to)
{
	uint32_t codes = ix->deferred == NULL ? 0 : ix->deferring & (side != 0 ? 0xaaaaaaaau : 0x55555555u), found = 0;
	for (; codes != 0; codes &= codes - 1) {
		uint32_t code = (uint32_t)__builtin_ctz(codes);
		const struct weir_join_deferred *df = deferred_of(ix, code);
		if (df->first != NULL && df->high >= from && ix->start[code] <= to)
			found |= 1u << code;
	}
	return found;
}

/* Whether a sheet has a record with this hash, not older than from; or more are to be looked through than *left. */
static bool sheet_has(const struct weir_slot *sl, uint64_t place, uint32_t hash, int64_t start, int64_t from,
		      uint32_t *left)
{
	struct records rc = records_at(sl, place);
	if (start + weir_join_place_record(&sl->pages, place)->delta < from)
		return false;
	if (rc.count > *left)
		return true;
	*left -= rc.count;
	for (uint32_t i = 0; i < rc.count; i++) {
		const struct weir_buffered *bf = record_of(&rc, i);
		if (is_deferred(bf, hash) && start + bf->delta >= from)
			return true;
	}
	return false;
}

static bool code_may_meet(const struct weir_slot *sl, uint32_t code, uint32_t hash, int64_t from)
{
	const struct weir_join_deferred *df = deferred_of(sl->joined, code);
	int64_t start = sl->joined->start[code];
	struct chunk ck = last_chunk(df);
	uint32_t left = RECORDS_MOST;
	for (uint32_t i = 0; i < CHUNKS_MOST; i++) {
		uint32_t count, fits = 0;
		if (ck.bk->high[ck.at] < from)
			return false; /* nor are those before it younger */
		const uint64_t *place = chunk_places(df, &ck, &count);
		for (uint32_t k = 0; k < count && may_hold(&ck, hash); k++)
			fits |= is_sheet(place[k]) ? sheet_has(sl, place[k], hash, start, from, &left)
						   : same_hash(place[k], hash);
		if (fits != 0)
			return true;
		if (!chunk_before(&ck))
			return false;
	}
	return true;
}

/* Cost: about 12 instructions for each chunk that may hold some as young as from, 100 more for one in eight. */
WEIR_NOINLINE bool weir_join_may_meet_deferred(const struct weir_slot *sl, uint32_t side, uint32_t hash, int64_t from,
					       int64_t to)
{
	for (uint32_t codes = deferring_codes(sl->joined, side, from, to); codes != 0; codes &= codes - 1)
		if (code_may_meet(sl, (uint32_t)__builtin_ctz(codes), hash, from))
			return true;
	return false;
}

/* Cost: about 6 instructions a record. */
bool weir_join_deferred_filter(const struct weir_slot *sl, uint32_t side, int64_t from,
			       uint64_t filter[WEIR_JOIN_FILTER_BITS / 64])
{
	const struct weir_join_index *ix = sl->joined;
	uint32_t live = ix->taken & ~ix->dead & (side != 0 ? 0xaaaaaaaau : 0x55555555u),
		 left = WEIR_JOIN_FILTER_BITS / 4;
	memset(filter, 0, WEIR_JOIN_FILTER_BITS / 8);
	if ((live & ~ix->deferring) != 0)
		return false;
	for (uint32_t codes = deferring_codes(ix, side, from, INT64_MAX); codes != 0; codes &= codes - 1) {
		uint32_t code = (uint32_t)__builtin_ctz(codes);
		struct chunk ck = last_chunk(deferred_of(ix, code));
		do {
			uint32_t count;
			if (ck.bk->high[ck.at] < from)
				break;
			const uint64_t *place = chunk_places(deferred_of(ix, code), &ck, &count);
			for (uint32_t k = 0; k < count; k++) {
				struct records rc = records_at(sl, place[k]);
				/* Of a sheet it is that of the youngest. */
				if (ix->start[code] + weir_join_place_record(&sl->pages, place[k])->delta < from)
					continue;
				if (rc.count > left)
					return false;
				left -= rc.count;
				for (uint32_t i = 0; i < rc.count; i++) {
					const struct weir_buffered *bf = record_of(&rc, i);
					uint32_t hash = rc.stubs ? bf->older : bf->e.hash;
					filter[hash >> 22] |= UINT64_C(1) << (hash >> 16 & 63);
				}
			}
		} while (chunk_before(&ck));
	}
	return true;
}

/* False: it has more records than *left. */
static bool find_at(const struct weir_slot *sl, uint64_t place, int64_t start, const struct weir_join_row *r,
		    int64_t from, int64_t to, int64_t task_time, struct weir_buf *list, uint32_t *left)
{
	struct records rc = records_at(sl, place);
	uint32_t hash = weir_hash_index(r->hash);
	/* Of a sheet it is that of the youngest. */
	if (start + weir_join_place_record(&sl->pages, place)->delta < from)
		return true;
	if (rc.count > *left)
		return false;
	*left -= rc.count;
	for (uint32_t i = 0; i < rc.count; i++) {
		struct weir_buffered *bf = record_of(&rc, i);
		if (!is_deferred(bf, hash))
			continue;
		struct weir_join_found fd = {bf, start + bf->delta};
		if (fd.time >= from && fd.time <= to && !weir_join_is_late(sl->def, fd.time, task_time) &&
		    weir_buffered_is(sl->def, bf, hash, r->key, r->key_bytes))
			weir_buf_put(list, &fd, sizeof fd);
	}
	return true;
}

/* False: there are too many. */
static bool code_find(struct weir_slot *sl, uint32_t code, const struct weir_join_row *r, int64_t from, int64_t to,
		      int64_t task_time, struct weir_buf *list)
{
	const struct weir_join_index *ix = sl->joined;
	const struct weir_join_deferred *df = deferred_of(ix, code);
	struct chunk first = last_chunk(df);
	uint32_t chunks = 1, left = RECORDS_MOST;
	size_t begin = list->bytes;
	for (struct chunk ck = first; chunk_before(&ck) && ck.bk->high[ck.at] >= from; first = ck)
		if (++chunks > CHUNKS_MOST)
			return false;
	for (struct chunk ck = first; chunks != 0; chunks--) {
		uint32_t count;
		const uint64_t *place = chunk_places(df, &ck, &count);
		for (uint32_t k = 0; k < count && may_hold(&ck, weir_hash_index(r->hash)); k++)
			if ((is_sheet(place[k]) || same_hash(place[k], weir_hash_index(r->hash))) &&
			    !find_at(sl, place[k], ix->start[code], r, from, to, task_time, list, &left)) {
				list->bytes = begin;
				return false;
			}
		if (++ck.at == WEIR_JOIN_CHUNKS)
			ck = (struct chunk){ck.bk->next, 0};
	}
	return true;
}

void weir_join_find_deferred(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, int64_t from,
			     int64_t to, int64_t task_time, struct weir_buf *list)
{
	for (uint32_t codes = deferring_codes(sl->joined, side, from, to); codes != 0; codes &= codes - 1) {
		uint32_t code = (uint32_t)__builtin_ctz(codes);
		if (!code_find(sl, code, r, from, to, task_time, list))
			weir_join_enter_code(sl, code);
	}
}

void weir_join_enter_code(struct weir_slot *sl, uint32_t code)
{
	struct weir_join_index *ix = sl->joined;
	const struct weir_join_deferred *df = deferred_of(ix, code);
	ix->deferring &= ~(1u << code);
	if (ix->deferred == NULL)
		return;
	for (struct weir_join_block *bk = df->first; bk != NULL; bk = bk->next) {
		const uint64_t *end = bk == df->last ? df->at : bk->place + WEIR_COUNT_OF(bk->place);
		for (const uint64_t *at = bk->place; at < end; at++) {
			enum { AHEAD = 16 };
			if (at + 2 * AHEAD < end)
				__builtin_prefetch(weir_join_place_record(&sl->pages, at[2 * AHEAD]), 1, 3);
			if (at + AHEAD < end && !is_sheet(at[AHEAD]))
				__builtin_prefetch(
					weir_join_index_line(ix, weir_join_place_record(&sl->pages, at[AHEAD])->e.hash),
					1, 3);
			struct records rc = records_at(sl, *at);
			for (uint32_t i = 0; i < rc.count; i++) {
				struct weir_buffered *bf = record_of(&rc, i);
				enter_one(sl, sl->pages.page[weir_entry_page_no(&bf->e)].gen, bf, false);
			}
		}
	}
	weir_join_deferred_free(sl, code);
}

static void list_free(struct weir_slot *sl, struct weir_join_deferred *df)
{
	while (df->first != NULL) {
		struct weir_join_block *bk = df->first;
		df->first = bk->next;
		weir_blocks_give(&sl->blocks, bk, sizeof *bk);
		sl->joined->blocks--;
	}
	*df = (struct weir_join_deferred){0};
}

void weir_join_deferred_free(struct weir_slot *sl, uint32_t code)
{
	struct weir_join_index *ix = sl->joined;
	ix->deferring &= ~(1u << code);
	if (ix->deferred != NULL && weir_join_defers(sl->def, code & 1)) /* else it is a list of the other side's */
		list_free(sl, deferred_of(ix, code));
}

void weir_join_deferred_end(struct weir_slot *sl)
{
	struct weir_join_index *ix = sl->joined;
	if (ix->deferred == NULL)
		return;
	for (uint32_t c = 0; c < WEIR_JOIN_CODES; c++)
		list_free(sl, deferred_of(ix, c));
	weir_blocks_give(&sl->blocks, ix->deferred, WEIR_JOIN_CODES / 2 * sizeof *ix->deferred);
	ix->deferred = NULL;
}

static int number_compare(const void *a, const void *b)
{
	const struct weir_buffered *x = *(struct weir_buffered *const *)a, *y = *(struct weir_buffered *const *)b;
	return x->older != y->older ? (x->older < y->older ? -1 : 1) : (x > y) - (x < y);
}

/* Numbers are of a generation; records of several mix without harm. */
void weir_join_deferred_restore(struct weir_slot *sl, struct weir_buffered *const *bf, uint32_t count)
{
	struct weir_join_index *ix = sl->joined;
	if (ix->deferred == NULL)
		deferred_begin(sl);
	struct weir_buffered **by_number = weir_xcalloc(count, sizeof *by_number);
	memcpy(by_number, bf, count * sizeof *by_number);
	qsort(by_number, count, sizeof *by_number, number_compare);
	for (uint32_t i = 0; i < count; i++) {
		struct weir_buffered *b = by_number[i];
		struct weir_gen *g = sl->pages.page[weir_entry_page_no(&b->e)].gen;
		bool many = (b->e.flags & WEIR_ENTRY_SHEET) != 0;
		uint64_t place = weir_join_place_value(many ? 0 : b->e.hash, g->code, weir_entry_ref(&b->e));
		struct records rc = records_at(sl, place);
		if (g->code != 0 && weir_join_is_deferring(ix, g->code)) {
			deferred_put(sl, place, ix->start[g->code] + b->delta, many);
			deferred_of(ix, g->code)->number = b->older + rc.count;
			continue;
		}
		for (uint32_t k = 0; k < rc.count; k++)
			enter_one(sl, g, record_of(&rc, k), false);
		if (g->code != 0)
			note_high(ix, g->code, ix->start[g->code] + b->delta);
	}
	free(by_number);
}
