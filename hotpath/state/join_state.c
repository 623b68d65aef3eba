/* join_state.c: tables and buffers of joins (join_state.h). @thread worker. */
#include "hotpath/state/join_state.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/time/window.h"

/* ---- tables ---- */

static inline struct weir_gen *table_gen(const struct weir_slot *sl, uint32_t side)
{
	if (WEIR_LIKELY(sl->gens[0].start == side))
		return sl->gens[0].g;
	uint32_t at = weir_slot_search(sl, side);
	WEIR_DASSERT(at < sl->gen_count && sl->gens[at].start == side);
	return sl->gens[at].g;
}

void weir_join_table_put(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r)
{
	struct weir_gen *g = table_gen(sl, side);
	struct weir_entry *e = weir_gen_find_or_create(g, sl->def, r->hash, r->key, r->key_bytes);
	weir_table_set(g, sl->def, e, r->row, r->row_bytes);
	((struct weir_stamped *)(void *)e)->time = r->time;
	weir_gen_mark(g, e);
}

void weir_join_table_delete(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r)
{
	struct weir_gen *g = table_gen(sl, side);
	uint64_t *free_slot;
	uint64_t *at = weir_index_find(&g->ix, sl->def, r->hash, r->key, r->key_bytes, &free_slot);
	if (at != NULL)
		weir_table_remove(g, sl->def, weir_index_entry(*at), at);
}

struct weir_entry *weir_join_table_entry(const struct weir_slot *sl, uint32_t side, const struct weir_join_row *r,
					 struct weir_join_row *out)
{
	const struct weir_gen *g = table_gen(sl, side);
	uint64_t *free_slot;
	const uint64_t *at = weir_index_find_short(&g->ix, sl->def, r->hash, r->key, r->key_bytes, &free_slot);
	if (at == NULL)
		return NULL;
	struct weir_entry *e = weir_index_entry(*at);
	const struct weir_text *t = weir_table_text(sl->def, e);
	*out = (struct weir_join_row){.hash = r->hash,
				      .time = ((const struct weir_stamped *)(const void *)e)->time,
				      .key = r->key,
				      .key_bytes = r->key_bytes,
				      .row = weir_text_data(&sl->pages, t),
				      .row_bytes = t->bytes};
	return e;
}

bool weir_join_table_find(const struct weir_slot *sl, uint32_t side, const struct weir_join_row *r,
			  struct weir_join_row *out)
{
	return weir_join_table_entry(sl, side, r, out) != NULL;
}

void weir_join_table_prefetch(const struct weir_slot *sl, uint32_t side, uint64_t hash, bool entry)
{
	weir_index_prefetch(&table_gen(sl, side)->ix, hash, entry);
}

const struct weir_index *weir_join_table_index(const struct weir_slot *sl, uint32_t side)
{
	return &table_gen(sl, side)->ix;
}

/* ---- buffers: where a record stands ---- */

static int64_t bucket_of(const struct weir_state_def *def, int64_t time)
{
	if (weir_join_in_windows(def)) /* the number of the window that ends with it */
		return weir_floor_div(time + 1 - def->size_ms - def->offset_ms, def->advance_ms);
	return time >> def->bucket_log2; /* rounds down, below zero too */
}

static int64_t bucket_start(const struct weir_state_def *def, int64_t bucket)
{
	if (weir_join_in_windows(def))
		return bucket * def->advance_ms + def->offset_ms + def->size_ms - 1;
	return bucket * (INT64_C(1) << def->bucket_log2);
}

bool weir_join_window_fits(const struct weir_state_def *def, int64_t window)
{
	int64_t bucket = window >> 1;
	if (weir_join_in_windows(def))
		return bucket >= -(WEIR_TIME_MAX / def->advance_ms) && bucket <= WEIR_TIME_MAX / def->advance_ms;
	return bucket >= bucket_of(def, -WEIR_TIME_MAX) && bucket <= bucket_of(def, WEIR_TIME_MAX);
}

static struct weir_gen *gen_of(const struct weir_slot *sl, const struct weir_entry *e)
{
	return sl->pages.page[weir_entry_page_no(e)].gen;
}

static int64_t time_in(const struct weir_state_def *def, const struct weir_gen *g, const struct weir_buffered *bf)
{
	return bucket_start(def, g->start >> 1) + bf->delta;
}

static struct weir_buffered *buffered_at(const struct weir_slot *sl, uint32_t ref)
{
	return ref != 0 ? (struct weir_buffered *)(void *)weir_ref_get(&sl->pages, ref) : NULL;
}

/* The next one in the list of its key. */
static inline struct weir_buffered *older_of(const struct weir_slot *sl, const struct weir_buffered *bf)
{
	return (bf->e.flags & WEIR_ENTRY_DEFERRED) == 0 ? buffered_at(sl, bf->older) : NULL;
}

uint32_t weir_join_buffer_side(const struct weir_slot *sl, const struct weir_buffered *bf)
{
	return (uint32_t)(gen_of(sl, &bf->e)->start & 1);
}

static struct weir_join_found found_of(const struct weir_slot *sl, struct weir_buffered *bf)
{
	return (struct weir_join_found){bf, time_in(sl->def, gen_of(sl, &bf->e), bf)};
}

/* ---- the queue of rows that may leave without a match: a binary heap by time of finality ---- */

static void waiting_push(struct weir_slot *sl, const struct weir_buffered *bf, int64_t final_after)
{
	struct weir_vec *v = &sl->closing;
	struct weir_close_node x = {final_after, weir_entry_ref(&bf->e), 0};
	(void)weir_vec_push(v, &sl->blocks, sizeof x);
	struct weir_close_node *h = v->data;
	uint32_t i = v->count - 1;
	while (i > 0 && h[(i - 1) / 2].close > x.close) {
		h[i] = h[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h[i] = x;
}

static void waiting_pop(struct weir_slot *sl)
{
	struct weir_close_node *h = sl->closing.data, x = h[--sl->closing.count];
	uint32_t n = sl->closing.count, i = 0;
	for (;;) {
		uint32_t c = 2 * i + 1;
		if (c >= n)
			break;
		if (c + 1 < n && h[c + 1].close < h[c].close)
			c++;
		if (h[c].close >= x.close)
			break;
		h[i] = h[c];
		i = c;
	}
	if (n != 0)
		h[i] = x;
}

/* Whether rows of `side` leave by themselves: those that are kept without a match, and all beside a table's history or
 * into functions OVER. */
static bool waits(const struct weir_state_def *def, uint32_t side)
{
	return def->versioned || def->over != NULL ? side == 0 : def->sides[side].outer && !weir_join_in_windows(def);
}

/* ---- buffers ---- */

/* Whether a look-up at task_time may find bf, of `side`. */
static bool counts(const struct weir_state_def *def, uint32_t side, const struct weir_buffered *bf, int64_t time,
		   int64_t task_time)
{
	if ((bf->e.flags & WEIR_ENTRY_GONE) != 0 || weir_join_is_late(def, time, task_time))
		return false;
	return !def->sides[side].outer || (bf->e.flags & WEIR_ENTRY_EMITTED) != 0 ||
	       !weir_join_is_final(def, side, time, task_time);
}

static void reverse(struct weir_join_found *from, size_t count)
{
	for (size_t i = 0; i + i + 1 < count; i++) {
		struct weir_join_found swap = from[i];
		from[i] = from[count - 1 - i];
		from[count - 1 - i] = swap;
	}
}

/* Of the records of a key in one generation, whose times begin at start, from bf on to older ones, those in [from, to]
 * that count, oldest first. */
static void chain_find(const struct weir_slot *sl, int64_t start, uint32_t side, struct weir_buffered *bf, int64_t from,
		       int64_t to, int64_t task_time, struct weir_buf *list)
{
	size_t begin = list->bytes;
	for (; bf != NULL; bf = older_of(sl, bf)) {
		int64_t time = start + bf->delta;
		if (time < from)
			break;
		struct weir_join_found fd = {bf, time};
		if (time <= to && counts(sl->def, side, bf, time, task_time))
			weir_buf_put(list, &fd, sizeof fd);
	}
	size_t n = (list->bytes - begin) / sizeof(struct weir_join_found);
	if (n > 1)
		reverse((struct weir_join_found *)(void *)(list->data + begin), n);
}

static inline void gen_find(struct weir_slot *sl, const struct weir_gen *g, const struct weir_join_row *r, int64_t from,
			    int64_t to, int64_t task_time, struct weir_buf *list)
{
	uint64_t *free_slot;
	const uint64_t *at;
	struct weir_buffered *bf = NULL;
	if (WEIR_LIKELY(g->code != 0)) {
		if (WEIR_UNLIKELY(weir_join_is_deferring(sl->joined, g->code)))
			weir_join_enter_code(sl, g->code);
		at = weir_join_index_find(sl, weir_hash_index(r->hash), g->code, r->key, r->key_bytes);
		bf = at != NULL ? weir_join_place_record(&sl->pages, *at) : NULL;
	} else {
		at = weir_index_find_short(&g->ix, sl->def, r->hash, r->key, r->key_bytes, &free_slot);
		bf = at != NULL ? (struct weir_buffered *)(void *)weir_index_entry(*at) : NULL;
	}
	if (bf != NULL)
		chain_find(sl, bucket_start(sl->def, g->start >> 1), (uint32_t)(g->start & 1), bf, from, to, task_time,
			   list);
}

void weir_join_buffer_find(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, int64_t from, int64_t to,
			   int64_t task_time, struct weir_buf *list)
{
	const struct weir_state_def *def = sl->def;
	int64_t last = bucket_of(def, to) * 2 + side;
	for (uint32_t i = weir_slot_search(sl, bucket_of(def, from) * 2 + side);
	     i < sl->gen_count && sl->gens[i].start <= last; i++)
		if ((uint32_t)(sl->gens[i].start & 1) == side)
			gen_find(sl, sl->gens[i].g, r, from, to, task_time, list);
}

/* ---- reach ---- */

static WEIR_NOINLINE void reach_look(struct weir_slot *sl, uint32_t side, int64_t time)
{
	struct weir_join_reach *re = &sl->reach[side];
	int64_t bucket = bucket_of(sl->def, time), start = bucket * 2 + side;
	uint32_t at = weir_slot_search(sl, start);
	re->from = bucket_start(sl->def, bucket);
	re->to = bucket_start(sl->def, bucket + 1);
	re->own = at < sl->gen_count && sl->gens[at].start == start ? sl->gens[at].g : NULL;
}

static inline const struct weir_join_reach *reach_of(struct weir_slot *sl, uint32_t side, int64_t time)
{
	struct weir_join_reach *re = &sl->reach[side];
	if (WEIR_UNLIKELY(time < re->from || time >= re->to))
		reach_look(sl, side, time);
	return re;
}

/* The newest record of a key in one generation. */
struct newest {
	int64_t start; /* of the generation */
	struct weir_buffered *bf;
};

/* Of r's key in all generations of `side` that have a code, in their order. Returns how many. */
static uint32_t find_newest(const struct weir_slot *sl, uint32_t side, const struct weir_join_row *r,
			    struct newest nw[WEIR_JOIN_CODES])
{
	const struct weir_join_index *ix = sl->joined;
	uint32_t hash = weir_hash_index(r->hash), count = 0;
	uint64_t *line = weir_join_index_line(ix, hash);
	for (uint32_t step = 1;; step++) {
		struct weir_join_look lk = weir_join_line_look(line, weir_join_place_value(hash, 1 - side, 0));
		for (uint32_t fits = lk.others; fits != 0; fits &= fits - 1) {
			uint64_t v = line[__builtin_ctz(fits)];
			if (!weir_join_place_lives(ix, v))
				continue;
			struct weir_buffered *bf = weir_join_place_record(&sl->pages, v);
			if (!weir_buffered_is(sl->def, bf, hash, r->key, r->key_bytes))
				continue;
			int64_t start = ix->start[weir_join_place_code(v)];
			uint32_t at = count++;
			for (; at != 0 && nw[at - 1].start > start; at--)
				nw[at] = nw[at - 1];
			nw[at] = (struct newest){start, bf};
		}
		if (lk.empty != 0)
			return count;
		line = weir_join_index_next(ix, hash, step);
	}
}

/* By time; what is of one time is of one generation, and in its order already. Most are. */
static void sort_found(struct weir_join_found *f, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct weir_join_found x = f[i];
		size_t at = i;
		for (; at != 0 && f[at - 1].time > x.time; at--)
			f[at] = f[at - 1];
		f[at] = x;
	}
}

void weir_join_buffer_find_matches(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r,
				   int64_t task_time, struct weir_buf *list)
{
	int64_t from = r->time - weir_join_back_ms(sl->def, side), to = r->time + weir_join_ahead_ms(sl->def, side);
	struct newest nw[WEIR_JOIN_CODES];
	if (sl->joined == NULL)
		return;
	if (WEIR_UNLIKELY(sl->joined->uncoded != 0)) {
		weir_join_buffer_find(sl, 1 - side, r, from, to, task_time, list);
		return;
	}
	size_t begin = list->bytes, deferred = 0;
	if (WEIR_UNLIKELY(from <= sl->joined->deferred_high[1 - side])) {
		weir_join_find_deferred(sl, 1 - side, r, from, to, task_time, list);
		deferred = list->bytes - begin;
	}
	uint32_t count = find_newest(sl, 1 - side, r, nw);
	for (uint32_t i = 0; i < count; i++)
		if (nw[i].start <= to)
			chain_find(sl, nw[i].start, 1 - side, nw[i].bf, from, to, task_time, list);
	if (WEIR_UNLIKELY(deferred != 0))
		sort_found((struct weir_join_found *)(void *)(list->data + begin),
			   (list->bytes - begin) / sizeof(struct weir_join_found));
}

void weir_join_buffer_prefetch(const struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, bool entry)
{
	if (weir_def_meets(sl->def)) {
		const struct weir_join_index *ix = sl->joined;
		if (ix == NULL)
			return;
		uint64_t *line = weir_join_index_line(ix, weir_hash_index(r->hash));
		if (!entry) {
			__builtin_prefetch(line, 1, 3);
			return;
		}
		struct weir_join_look lk =
			weir_join_line_look(line, weir_join_place_value(weir_hash_index(r->hash), side, 0));
		if (lk.others != 0) {
			const uint8_t *p =
				(const uint8_t *)weir_join_place_record(&sl->pages, line[__builtin_ctz(lk.others)]);
			__builtin_prefetch(p, 0, 3);
			__builtin_prefetch(p + WEIR_CACHE_LINE, 0, 3);
		}
		return;
	}
	if (side == 1) /* a version */
		weir_index_prefetch(&table_gen(sl, 1)->ix, r->hash, entry);
}

/* Says which record comes after bf in the list of its key. */
static void set_older(struct weir_gen *g, struct weir_buffered *bf, uint32_t older, bool fresh)
{
	bf->older = older;
	bf->e.flags &= (uint8_t)~WEIR_ENTRY_DEFERRED;
	if (!fresh)
		weir_buffered_mark(g, bf);
}

/* Puts bf into the list that begins with next: behind every newer record, before those of its time and older. True: it
 * is the newest. */
static bool list_insert(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *bf, struct weir_buffered *next,
			bool fresh)
{
	struct weir_buffered *newer = NULL;
	while (next != NULL && next->delta > bf->delta) {
		newer = next;
		next = older_of(sl, next);
	}
	set_older(g, bf, next != NULL ? weir_entry_ref(&next->e) : 0, fresh);
	if (newer == NULL)
		return true;
	set_older(g, newer, weir_entry_ref(&bf->e), false);
	return false;
}

static inline void list_add(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *bf, uint64_t hash,
			    const uint8_t *key, uint32_t key_bytes, bool fresh)
{
	uint64_t *at, *free_slot;
	if (WEIR_LIKELY(g->code != 0)) {
		if (WEIR_UNLIKELY(weir_join_is_deferring(sl->joined, g->code)))
			weir_join_enter_code(sl, g->code); /* those that came before it */
		at = weir_join_index_find(sl, weir_hash_index(hash), g->code, key, key_bytes);
		uint64_t place = weir_join_place_value(weir_hash_index(hash), g->code, weir_entry_ref(&bf->e));
		if (at == NULL)
			weir_join_index_add(sl, weir_hash_index(hash), place);
		else
			*at = (list_insert(sl, g, bf, weir_join_place_record(&sl->pages, *at), fresh) ? place : *at) |
			      (uint64_t)WEIR_JOIN_LIST << 32;
		return;
	}
	at = weir_index_find_short(&g->ix, sl->def, hash, key, key_bytes, &free_slot);
	if (at == NULL)
		weir_gen_index_put(g, &bf->e, hash, free_slot);
	else if (list_insert(sl, g, bf, (struct weir_buffered *)(void *)weir_index_entry(*at), fresh))
		weir_index_store(at, (*at & ~WEIR_INDEX_POINTER) | (uint64_t)(uintptr_t)bf);
}

void weir_join_list_add(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *bf, bool fresh)
{
	uint32_t n;
	const uint8_t *key = weir_buffered_key(sl->def, bf, &n);
	list_add(sl, g, bf, weir_hash(key, n), key, n, fresh);
}

/* The generation for rows of `side` at `time`, made where there is none. */
static WEIR_NOINLINE struct weir_gen *gen_make(struct weir_slot *sl, uint32_t side, int64_t time)
{
	int64_t start = bucket_of(sl->def, time) * 2 + side;
	uint32_t at = weir_slot_search(sl, start);
	if (at < sl->gen_count && sl->gens[at].start == start)
		return sl->gens[at].g;
	/* A quarter of the hint is made room for; half of what the side has in the generation before is sure to come.
	 */
	for (uint32_t i = at; i-- > 0 && sl->gens[i].start >= start - 2;)
		if (sl->gens[i].start == start - 2)
			sl->entries_hint = sl->gens[i].g->entries * 2;
	return weir_slot_add_gen(sl, at, start);
}

/* Room in g for a record with delta, its head written; *key: where its key and row go. */
static inline struct weir_buffered *take_in(struct weir_gen *g, uint32_t delta, uint64_t hash, uint32_t key_bytes,
					    uint32_t row_bytes, uint8_t **key)
{
	bool is_long = key_bytes >= WEIR_KEY_LONG;
	uint64_t key_at = sizeof(struct weir_buffered) + (is_long ? 8 : 0);
	uint64_t bytes = weir_buffered_bytes(key_at, key_bytes, row_bytes);
	struct weir_entry *e = weir_gen_take(g, bytes, false);
	struct weir_buffered *bf = (struct weir_buffered *)(void *)e;
	uint8_t *at = (uint8_t *)(bf + 1);
	weir_store_le64((uint8_t *)e + bytes - 16, 0); /* what pads it: up to 11 bytes */
	weir_store_le64((uint8_t *)e + bytes - 8, 0);
	e->hash = weir_hash_index(hash);
	bf->delta = delta;
	bf->older = 0;
	bf->row_bytes = row_bytes;
	if (is_long) {
		e->key_bytes = WEIR_KEY_LONG;
		weir_store_le64(at, key_bytes);
		at += 8;
	} else {
		e->key_bytes = (uint16_t)key_bytes;
	}
	weir_gen_note_new(g);
	g->entries++;
	*key = at;
	return bf;
}

/* Where records of `side` at `time` are kept. */
static inline struct weir_gen *gen_at(struct weir_slot *sl, uint32_t side, int64_t time)
{
	struct weir_gen *g = weir_def_meets(sl->def) ? reach_of(sl, side, time)->own : NULL;
	return WEIR_LIKELY(g != NULL) ? g : gen_make(sl, side, time);
}

struct weir_gen *weir_join_gen_of(struct weir_slot *sl, uint32_t side, int64_t time)
{
	struct weir_gen *g = gen_at(sl, side, time);
	return g->code != 0 ? g : NULL;
}

void weir_join_bounds_of(struct weir_slot *sl, uint32_t side, int64_t time, int64_t *from, int64_t *to)
{
	const struct weir_join_reach *re = reach_of(sl, side, time);
	*from = re->from;
	*to = re->to;
}

static struct weir_buffered *buffer_put(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r,
					uint8_t flags)
{
	struct weir_gen *g = gen_at(sl, side, r->time);
	uint8_t *at;
	struct weir_buffered *bf = take_in(g, (uint32_t)(r->time - bucket_start(sl->def, g->start >> 1)), r->hash,
					   r->key_bytes, r->row_bytes, &at);
	bf->e.flags |= flags;
	if (WEIR_LIKELY(r->row == r->key + r->key_bytes)) {
		weir_copy_short(at, r->key, (size_t)r->key_bytes + r->row_bytes);
	} else {
		memcpy(at, r->key, r->key_bytes);
		if (r->row_bytes != 0)
			memcpy(at + r->key_bytes, r->row, r->row_bytes);
	}
	if (weir_def_queues(sl->def, g->start)) {
		bf->e.flags |= WEIR_ENTRY_DEFERRED;
		bf->older = ++g->numbered; /* fewer than there are refs: none of them goes before its generation */
	} else {
		list_add(sl, g, bf, r->hash, r->key, r->key_bytes, true);
	}
	return bf;
}

void weir_join_buffer_put(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, bool matched)
{
	const struct weir_state_def *def = sl->def;
	struct weir_buffered *bf = buffer_put(sl, side, r, matched ? WEIR_ENTRY_EMITTED : 0);
	if (waits(def, side) && !matched)
		waiting_push(sl, bf, r->time + weir_join_reach_ms(def, side) + def->grace_ms);
}

void weir_join_buffer_match(struct weir_slot *sl, struct weir_buffered *bf)
{
	if ((bf->e.flags & WEIR_ENTRY_EMITTED) != 0)
		return;
	bf->e.flags |= WEIR_ENTRY_EMITTED;
	weir_buffered_mark(gen_of(sl, &bf->e), bf);
}

/* ---- records that are stored before their turn ---- */

WEIR_NOINLINE uint64_t weir_join_place_take_slow(struct weir_join_place *pc, int64_t time, uint64_t hash,
						 uint32_t key_bytes, uint32_t row_bytes, uint8_t **key)
{
	weir_join_place_close(pc);
	struct weir_gen *g = gen_at(pc->sl, pc->side, time);
	uint64_t bytes = weir_buffered_bytes(sizeof(struct weir_buffered), key_bytes, row_bytes);
	(void)reach_of(pc->sl, pc->side, time);
	weir_join_place_open(pc, pc->sl, time);
	if (key_bytes < WEIR_KEY_LONG && pc->page != NULL && (uint64_t)(pc->end - pc->at) >= bytes)
		return weir_join_place_take(pc, time, hash, key_bytes, row_bytes, key);
	weir_join_place_close(pc);
	int64_t start = bucket_start(pc->sl->def, g->start >> 1);
	struct weir_buffered *bf = take_in(g, (uint32_t)(time - start), hash, key_bytes, row_bytes, key);
	weir_join_place_open(pc, pc->sl, time);
	return weir_join_place_value(weir_hash_index(hash), g->code, weir_entry_ref(&bf->e));
}

bool weir_join_buffer_enter(struct weir_slot *sl, const struct weir_join_turn *t, int64_t task_time,
			    struct weir_buf *list)
{
	uint32_t side = weir_join_turn_side(t);
	struct weir_buffered *bf = weir_join_turn_record(sl, t);
	struct weir_join_row r = {.time = t->time};
	r.key = weir_buffered_key(sl->def, bf, &r.key_bytes);
	r.hash = weir_hash(r.key, r.key_bytes);
	weir_join_buffer_find_matches(sl, side, &r, task_time, list);
	struct weir_gen *g = reach_of(sl, side, t->time)->own;
	if (weir_buffered_is_stub(bf))
		; /* weir_join_sheet_turned */
	else if (g->code != 0 && weir_join_is_deferring(sl->joined, g->code))
		weir_join_defer(sl, t->row, t->time);
	else
		list_add(sl, g, bf, r.hash, r.key, r.key_bytes, true);
	if (weir_join_defers(sl->def, side))
		sl->joined->deferred_high[side] = weir_max_i64(sl->joined->deferred_high[side], t->time);
	return list->bytes != 0;
}

void weir_join_buffer_refuse(struct weir_slot *sl, const struct weir_join_turn *t)
{
	struct weir_gen *g = gen_at(sl, weir_join_turn_side(t), t->time);
	struct weir_buffered *bf = weir_join_turn_record(sl, t);
	g->entries--;
	if (!weir_buffered_is_stub(bf)) {
		weir_gen_kill(g, &bf->e, weir_entry_bytes(sl->def, &bf->e));
		return;
	}
	weir_buffered_mark(g, bf);
	bf->e.flags |= WEIR_ENTRY_DEAD; /* its sheet stays */
}

/* ---- leaving ---- */

int64_t weir_join_next_close(const struct weir_slot *sl)
{
	const struct weir_close_node *h = sl->closing.data;
	if (weir_join_in_windows(sl->def))
		return sl->gen_count != 0
			       ? bucket_start(sl->def, sl->gens[0].start >> 1) + weir_join_keep_ms(sl->def) + 1
			       : INT64_MAX;
	return sl->closing.count != 0 ? h[0].close + 1 : INT64_MAX;
}

/* By time, side, key bytes, arrival: nothing that depends on where records lie in memory. */
static int final_compare(const void *a, const void *b, void *ctx)
{
	const struct weir_slot *sl = ctx;
	const struct weir_join_found *fx = a, *fy = b;
	const struct weir_buffered *x = fx->bf, *y = fy->bf;
	struct weir_join_row rx, ry;
	if (x == y)
		return 0;
	weir_join_buffer_get(sl->def, fx, &rx);
	weir_join_buffer_get(sl->def, fy, &ry);
	if (rx.time != ry.time)
		return rx.time < ry.time ? -1 : 1;
	uint32_t sx = weir_join_buffer_side(sl, x), sy = weir_join_buffer_side(sl, y);
	if (sx != sy)
		return sx < sy ? -1 : 1;
	uint32_t n = rx.key_bytes < ry.key_bytes ? rx.key_bytes : ry.key_bytes;
	int c = n != 0 ? memcmp(rx.key, ry.key, n) : 0;
	if (c == 0)
		c = (rx.key_bytes > ry.key_bytes) - (rx.key_bytes < ry.key_bytes);
	if (c != 0)
		return c;
	/* One key at one time: x is the earlier one if its number says so, or the list leads from y to it. Lists beside
	 * a table's history were restored, as older builds made them: what has a number came later. */
	bool x_numbered = (x->e.flags & WEIR_ENTRY_DEFERRED) != 0, y_numbered = (y->e.flags & WEIR_ENTRY_DEFERRED) != 0;
	if (x_numbered || y_numbered)
		return !x_numbered || (y_numbered && x->older < y->older) ? -1 : 1;
	for (const struct weir_buffered *p = y; p != NULL && p->delta == y->delta; p = older_of(sl, p))
		if (p == x)
			return -1;
	return 1;
}

void weir_join_take_final(struct weir_slot *sl, int64_t task_time, bool all, struct weir_buf *list)
{
	size_t begin = list->bytes;
	while (sl->closing.count != 0) {
		const struct weir_close_node *h = sl->closing.data;
		if (!all && h[0].close >= task_time)
			break;
		struct weir_buffered *bf = buffered_at(sl, h[0].ref);
		waiting_pop(sl);
		if ((bf->e.flags & (WEIR_ENTRY_EMITTED | WEIR_ENTRY_GONE)) != 0)
			continue;
		bf->e.flags |= WEIR_ENTRY_GONE;
		weir_gen_mark(gen_of(sl, &bf->e), &bf->e);
		struct weir_join_found fd = found_of(sl, bf);
		weir_buf_put(list, &fd, sizeof fd);
	}
	size_t n = (list->bytes - begin) / sizeof(struct weir_join_found);
	if (n > 1)
		qsort_r(list->data + begin, n, sizeof(struct weir_join_found), final_compare, sl);
}

void weir_join_drop(struct weir_slot *sl, int64_t task_time)
{
	const struct weir_state_def *def = sl->def;
	if (!def->buffers || weir_join_in_windows(def) || task_time == WEIR_TIME_UNSET)
		return; /* windows go when they have been taken */
	for (uint32_t i = 0; i < sl->gen_count;) {
		int64_t start = sl->gens[i].start, last = bucket_start(def, (start >> 1) + 1) - 1;
		if ((def->versioned || def->over != NULL) && (start & 1) != 0) {
			i++; /* the table's, or the chains' */
			continue;
		}
		if (!weir_join_is_late(def, last, task_time))
			return;
		weir_slot_drop_gen(sl, i);
	}
}

/* ---- windows ---- */

void weir_join_window_put(struct weir_slot *sl, uint32_t side, const struct weir_join_row *r, bool null_key)
{
	(void)buffer_put(sl, side, r, null_key ? WEIR_ENTRY_GONE : 0); /* gone for every look-up */
}

struct window_head {
	struct weir_buffered *bf;
	const uint8_t *key;
	uint32_t key_bytes;
	uint32_t side;
};

static int head_compare(const void *a, const void *b)
{
	const struct window_head *x = a, *y = b;
	uint32_t n = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
	int c = n != 0 ? memcmp(x->key, y->key, n) : 0;
	if (c == 0)
		c = (x->key_bytes > y->key_bytes) - (x->key_bytes < y->key_bytes);
	return c != 0 ? c : (x->side > y->side) - (x->side < y->side);
}

bool weir_join_window_take(const struct weir_slot *sl, int64_t task_time, bool all, struct weir_buf *list,
			   int64_t *time)
{
	const struct weir_state_def *def = sl->def;
	struct weir_buf heads = {0};
	if (sl->gen_count == 0)
		return false;
	int64_t bucket = sl->gens[0].start >> 1;
	*time = bucket_start(def, bucket);
	if (!all && !weir_join_is_late(def, *time, task_time))
		return false;
	for (uint32_t i = 0; i < 2 && i < sl->gen_count && sl->gens[i].start >> 1 == bucket; i++) {
		const struct weir_index *ix = &sl->gens[i].g->ix;
		for (uint32_t k = 0; ix->slot != NULL && k <= ix->mask; k++) {
			if (ix->slot[k] <= WEIR_INDEX_REMOVED)
				continue;
			struct window_head h = {.bf = (struct weir_buffered *)(void *)weir_index_entry(ix->slot[k]),
						.side = (uint32_t)(sl->gens[i].start & 1)};
			h.key = weir_entry_key(def, &h.bf->e, &h.key_bytes);
			weir_buf_put(&heads, &h, sizeof h);
		}
	}
	uint32_t n = (uint32_t)(heads.bytes / sizeof(struct window_head));
	const struct window_head *h = (const struct window_head *)(const void *)heads.data;
	if (n > 1)
		qsort(heads.data, n, sizeof *h, head_compare);
	for (uint32_t i = 0; i < n; i++) {
		size_t begin = list->bytes;
		for (struct weir_buffered *bf = h[i].bf; bf != NULL; bf = older_of(sl, bf)) {
			struct weir_join_found fd = {bf, *time};
			weir_buf_put(list, &fd, sizeof fd);
		}
		reverse((struct weir_join_found *)(void *)(list->data + begin),
			(list->bytes - begin) / sizeof(struct weir_join_found));
	}
	weir_buf_fini(&heads);
	return true;
}

void weir_join_window_drop(struct weir_slot *sl)
{
	int64_t bucket = sl->gens[0].start >> 1;
	while (sl->gen_count != 0 && sl->gens[0].start >> 1 == bucket)
		weir_slot_drop_gen(sl, 0);
}

/* ---- restore ---- */

/* Starts of entries of a page, a bit per 8 bytes; taken away when something leads there. */
struct start_map {
	uint64_t **bits; /* by page number */
	uint32_t count;
};

static bool start_claim(const struct weir_slot *sl, const struct weir_gen *g, struct start_map *sm, uint32_t ref)
{
	uint32_t no = ref >> WEIR_REF_SHIFT, at = ref & ((1u << WEIR_REF_SHIFT) - 1);
	if (no >= sm->count || sm->bits[no] == NULL || sl->pages.page[no].gen != g ||
	    (sm->bits[no][at / 64] >> (at % 64) & 1) == 0)
		return false;
	sm->bits[no][at / 64] &= ~(UINT64_C(1) << (at % 64));
	return true;
}

enum rebuild_pass { PASS_STARTS, PASS_CLAIM, PASS_HEADS };

/* deferred: struct weir_buffered *, of those that stand in no list, and of sheets of such. */
static bool rebuild_record(struct weir_slot *sl, struct weir_gen *g, struct weir_buffered *bf, uint32_t no, uint32_t at,
			   struct start_map *sm, enum rebuild_pass pass, struct weir_buf *deferred)
{
	const struct weir_state_def *def = sl->def;
	uint32_t side = (uint32_t)(g->start & 1), n;
	uint64_t *bits = sm->bits[no], bit = UINT64_C(1) << (at / 8 % 64);
	switch (pass) {
	case PASS_STARTS:
		bits[at / 8 / 64] |= bit;
		return bf->delta >> 1 >> (def->bucket_log2 - 1) == 0;
	case PASS_CLAIM:
		if ((bf->e.flags & WEIR_ENTRY_DEFERRED) != 0 && weir_def_queues(def, g->start))
			g->numbered = bf->older > g->numbered ? bf->older : g->numbered;
		return (bf->e.flags & WEIR_ENTRY_DEFERRED) != 0 || bf->older == 0 || start_claim(sl, g, sm, bf->older);
	case PASS_HEADS:
		break;
	}
	if (weir_def_queues(def, g->start) && (bf->e.flags & WEIR_ENTRY_DEFERRED) != 0) {
		; /* it has its number, and nothing leads to it */
	} else if ((bits[at / 8 / 64] & bit) != 0 && (bf->e.flags & WEIR_ENTRY_DEFERRED) != 0) {
		if (!weir_buffered_is_stub(bf))
			weir_buf_put(deferred, &bf, sizeof bf);
	} else if ((bits[at / 8 / 64] & bit) != 0) {
		uint64_t *free_slot;
		const uint8_t *key = weir_buffered_key(def, bf, &n);
		uint64_t hash = weir_hash(key, n);
		uint32_t hash32 = weir_hash_index(hash), list = bf->older != 0 ? WEIR_JOIN_LIST : 0;
		if (g->code != 0 ? weir_join_index_find(sl, hash32, g->code, key, n) != NULL
				 : weir_index_find(&g->ix, def, hash, key, n, &free_slot) != NULL)
			return false;
		if (g->code != 0) { /* what stands in the index is looked for there, so all of its generation do */
			sl->joined->deferring &= ~(1u << g->code);
			weir_join_index_add(sl, hash32,
					    weir_join_place_value(hash32, g->code | list, weir_entry_ref(&bf->e)));
			if (weir_join_defers(def, side))
				sl->joined->deferred_high[side] =
					weir_max_i64(sl->joined->deferred_high[side], time_in(def, g, bf));
		} else {
			weir_gen_index_add(g, &bf->e, hash);
		}
	}
	if (waits(def, side) && (bf->e.flags & (WEIR_ENTRY_EMITTED | WEIR_ENTRY_GONE)) == 0)
		waiting_push(sl, bf, time_in(def, g, bf) + weir_join_reach_ms(def, side) + def->grace_ms);
	return true;
}

static bool rebuild_sheet(struct weir_slot *sl, struct weir_gen *g, struct weir_sheet *sh, uint32_t no, uint32_t at,
			  struct start_map *sm, enum rebuild_pass pass, struct weir_buf *deferred)
{
	struct weir_buffered *head = &sh->b;
	bool any = false;
	if (g->code == 0 || (pass == PASS_STARTS && sh->b.delta >> 1 >> (sl->def->bucket_log2 - 1) != 0))
		return false;
	for (uint32_t i = 0; i < sh->count; i++) {
		struct weir_buffered *bf = weir_stub_buffered(&sh->stub[i]);
		uint32_t stub_at = at + (uint32_t)sizeof *sh + i * (uint32_t)sizeof *sh->stub;
		if ((bf->e.flags & WEIR_ENTRY_DEAD) != 0)
			continue;
		if (bf->delta > sh->b.delta || !rebuild_record(sl, g, bf, no, stub_at, sm, pass, deferred))
			return false;
		if ((bf->e.flags & WEIR_ENTRY_DEFERRED) != 0 && pass == PASS_HEADS) {
			uint32_t n;
			const uint8_t *key = weir_buffered_key(sl->def, bf, &n);
			if (bf->older != weir_hash_index(weir_hash(key, n)))
				return false;
			any = true;
		}
	}
	if (any)
		weir_buf_put(deferred, &head, sizeof head);
	return true;
}

static bool rebuild_pass(struct weir_slot *sl, struct start_map *sm, enum rebuild_pass pass, struct weir_buf *deferred)
{
	for (uint32_t no = 1; no < sm->count; no++) {
		const struct weir_page *p = &sl->pages.page[no];
		if (p->state != WEIR_PAGE_LIVE)
			continue;
		if (sm->bits[no] == NULL)
			sm->bits[no] = weir_xcalloc(1u << WEIR_REF_SHIFT >> 3, 1);
		for (uint32_t at = WEIR_PAGE_HEAD; at < p->used;) {
			struct weir_buffered *bf = (struct weir_buffered *)(void *)(p->base + at);
			bool fine = true;
			if ((bf->e.flags & WEIR_ENTRY_DEAD) != 0)
				;
			else if ((bf->e.flags & WEIR_ENTRY_SHEET) != 0)
				fine = rebuild_sheet(sl, p->gen, (struct weir_sheet *)(void *)bf, no, at, sm, pass,
						     deferred);
			else
				fine = rebuild_record(sl, p->gen, bf, no, at, sm, pass, deferred);
			if (!fine)
				return false;
			at += (uint32_t)weir_entry_bytes(sl->def, &bf->e);
		}
	}
	return true;
}

/* Sheets are of generations that have a code. Codes have been given in the order of the generations, of which there may
 * be more: those of a side that have sheets get them first. Nothing stands in the index yet. */
static bool codes_to_sheets(struct weir_slot *sl)
{
	struct weir_join_index *ix = sl->joined;
	bool fine = true;
	if (ix == NULL || ix->uncoded == 0)
		return true;
	bool *has = weir_xcalloc(sl->gen_count + 1, sizeof *has);
	for (uint32_t no = 1; no < sl->pages.capacity; no++) {
		const struct weir_page *p = &sl->pages.page[no];
		if (p->state != WEIR_PAGE_LIVE)
			continue;
		for (uint32_t at = WEIR_PAGE_HEAD; at < p->used;) {
			const struct weir_entry *e = (const struct weir_entry *)(const void *)(p->base + at);
			has[weir_slot_search(sl, p->gen->start)] |= (e->flags & WEIR_ENTRY_SHEET) != 0;
			at += (uint32_t)weir_entry_bytes(sl->def, e);
		}
	}
	for (uint32_t i = 0; i < sl->gen_count; i++) {
		struct weir_gen *g = sl->gens[i].g, *other = NULL;
		if (!has[i] || g->code != 0)
			continue;
		for (uint32_t k = 0; k < sl->gen_count; k++)
			if (!has[k] && sl->gens[k].g->code != 0 && ((sl->gens[k].start ^ g->start) & 1) == 0)
				other = sl->gens[k].g;
		if (other == NULL) {
			fine = false;
			break;
		}
		g->code = other->code;
		other->code = 0;
		ix->start[g->code] = bucket_start(sl->def, g->start >> 1);
	}
	free(has);
	return fine;
}

bool weir_join_rebuild(struct weir_slot *sl)
{
	if (weir_def_meets(sl->def) && !codes_to_sheets(sl))
		return false;
	struct start_map sm = {.count = sl->pages.capacity};
	sm.bits = weir_xcalloc(sm.count != 0 ? sm.count : 1, sizeof *sm.bits);
	struct weir_buf deferred = {0};
	bool fine = rebuild_pass(sl, &sm, PASS_STARTS, NULL) && rebuild_pass(sl, &sm, PASS_CLAIM, NULL) &&
		    rebuild_pass(sl, &sm, PASS_HEADS, &deferred);
	if (fine && deferred.bytes != 0)
		weir_join_deferred_restore(sl, (struct weir_buffered *const *)(const void *)deferred.data,
					   (uint32_t)(deferred.bytes / sizeof(struct weir_buffered *)));
	weir_buf_fini(&deferred);
	for (uint32_t no = 0; no < sm.count; no++)
		free(sm.bits[no]);
	free(sm.bits);
	return fine;
}
