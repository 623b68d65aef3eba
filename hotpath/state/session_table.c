/* session_table.c: session windows. One generation holds all sessions of a slot; its index leads to a key's latest
 * session, from there a list goes back in time. A heap by closing time says what closes next. @thread worker.
 *
 *   index[key] -> session (latest) --older--> session --older--> ...      disjoint, more than a gap apart
 *   closing heap: one node per session, keyed by a lower bound of its closing time (records that extend a session do
 * not touch the heap; the node follows when it comes up)
 *
 * A record is accepted iff the session it would form or extend is not closed at the record's task time; sessions that
 * are closed by time take no part, whether or not weir_slot_close has taken them yet.
 *
 * Pages are not given back by time but when all in them is dead; a session whose page is mostly dead moves when its
 * node comes up, so that a long-lived session does not hold a page of dead ones. Nodes and the change list pin pages.
 *
 * Sessions that span keys (def->shared): the session itself is an entry under the shared part of the key, whose
 * aggregates nobody uses; every key has an entry of its own under its whole key, its *member*, which holds the times
 * and aggregates of that key's rows. A member lies within its session's bounds, and that is all that ties them: when
 * two sessions merge, members of a key stand side by side until the key's next row, or the end, merges them. Only
 * sessions have nodes. A session that closes takes its members along. Before a row is judged what has closed by time
 * is frozen and put on the ready list, so that bounds of open and closed sessions never overlap.
 *
 * EMIT CHANGES: a session is named by its bounds. When bounds of one that has been emitted change, the old entry is
 * swallowed (a delete in the change list) and the session goes on in a new entry. */
#include "hotpath/core/hash.h"
#include "hotpath/state/session.h"
#include "hotpath/time/window.h"

static struct weir_session *session_at(const struct weir_slot *sl, uint32_t ref)
{
	return (struct weir_session *)(void *)weir_ref_get(&sl->pages, ref);
}
static int64_t session_close(const struct weir_state_def *def, const struct weir_session *s)
{
	return weir_session_close_time(s->last, def->gap_ms, def->grace_ms);
}

/* ---- the close queue ---- */

static void heap_sift_up(struct weir_close_node *h, uint32_t i)
{
	struct weir_close_node x = h[i];
	while (i > 0 && h[(i - 1) / 2].close > x.close) {
		h[i] = h[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h[i] = x;
}

static void heap_sift_down(struct weir_close_node *h, uint32_t n, uint32_t i)
{
	struct weir_close_node x = h[i];
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
	h[i] = x;
}

static void closing_push(struct weir_slot *sl, const struct weir_session *s)
{
	struct weir_close_node *nd = weir_vec_push(&sl->closing, &sl->blocks, sizeof *nd);
	*nd = (struct weir_close_node){session_close(sl->def, s), weir_entry_ref(&s->e), 0};
	sl->pages.page[nd->ref >> WEIR_REF_SHIFT].pins++;
	heap_sift_up(sl->closing.data, sl->closing.count - 1);
}

static void closing_pop(struct weir_slot *sl)
{
	struct weir_close_node *h = sl->closing.data;
	h[0] = h[--sl->closing.count];
	if (sl->closing.count != 0)
		heap_sift_down(h, sl->closing.count, 0);
}

int64_t weir_session_next_close(const struct weir_slot *sl)
{
	if (sl->ready != NULL)
		return sl->ready->start;
	const struct weir_close_node *h = sl->closing.data;
	return sl->closing.count != 0 ? h[0].close : INT64_MAX;
}

/* ---- entries ---- */

static uint64_t *find_head(const struct weir_gen *g, const struct weir_state_def *def, const struct weir_entry *e)
{
	uint32_t n;
	uint64_t *free_slot;
	const uint8_t *key = weir_entry_key(def, e, &n);
	return weir_index_find(&g->ix, def, weir_hash(key, n), key, n, &free_slot);
}

static void head_set(uint64_t *slot, const struct weir_session *s)
{
	uint64_t tag = *slot & ~WEIR_INDEX_POINTER;
	weir_index_store(slot, s != NULL ? tag | (uint64_t)(uintptr_t)s : WEIR_INDEX_REMOVED);
}

/* Blobs that s names are another's, or gone. The other aggregates stay: whoever takes back a row that was shown says
 * what it was. */
static void forget_blobs(const struct weir_state_def *def, struct weir_session *s)
{
	for (uint32_t i = 0; i < def->agg_count && def->has_blobs; i++)
		if (weir_agg_has_blob(&def->aggs[i]))
			memset((uint8_t *)s + def->head_bytes + def->aggs[i].state_at, 0, def->aggs[i].state_bytes);
}

/* Blobs of s go. */
static void session_kill_blobs(struct weir_slot *sl, struct weir_session *s)
{
	const struct weir_state_def *def = sl->def;
	struct weir_gen *g = weir_slot_only_gen(sl);
	if (!def->has_blobs)
		return;
	for (uint32_t i = 0; i < def->agg_count; i++) {
		uint8_t *state = (uint8_t *)s + def->head_bytes + def->aggs[i].state_at;
		uint32_t ref = weir_agg_blob(&def->aggs[i], state);
		if (ref == 0)
			continue;
		struct weir_entry *b = (struct weir_entry *)(void *)weir_ref_get(&sl->pages, ref);
		weir_gen_kill(g, b, weir_blob_bytes(b));
	}
	forget_blobs(def, s);
}

/* A closed session whose last change has been read. */
void weir_session_forget(struct weir_slot *sl, struct weir_entry *e)
{
	if ((e->flags & WEIR_ENTRY_DEAD) != 0)
		session_kill_blobs(sl, (struct weir_session *)(void *)e);
}

/* The session leaves; its entry stays readable while something pins the page. keep_blobs: rows of it are still to come.
 */
static void session_kill(struct weir_slot *sl, struct weir_session *s, uint8_t flags, bool keep_blobs)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	if (!keep_blobs)
		session_kill_blobs(sl, s);
	s->e.flags |= flags;
	g->entries--;
	weir_gen_kill(g, &s->e, weir_entry_bytes(sl->def, &s->e));
}

/* Puts `to` (NULL: nothing) where s stood in its key's list. */
static void list_replace(struct weir_slot *sl, struct weir_session *s, struct weir_session *to)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	uint64_t *slot = find_head(g, sl->def, &s->e);
	WEIR_DASSERT(slot != NULL);
	struct weir_session *at = (struct weir_session *)(void *)weir_index_entry(*slot);
	if (to != NULL)
		to->older = s->older;
	if (at == s) {
		struct weir_session *next = to;
		if (next == NULL && s->older != 0)
			next = session_at(sl, s->older);
		head_set(slot, next);
		return;
	}
	while (session_at(sl, at->older) != s)
		at = session_at(sl, at->older);
	at->older = to != NULL ? weir_entry_ref(&to->e) : s->older;
	weir_gen_mark(g, &at->e);
}

/* Moves s, blobs and all, behind the newest entry and into its place in the list. The old entry keeps its key and
 * bounds for as long as something pins it. */
static struct weir_session *session_move(struct weir_slot *sl, struct weir_session *s)
{
	const struct weir_state_def *def = sl->def;
	struct weir_gen *g = weir_slot_only_gen(sl);
	uint64_t bytes = weir_entry_bytes(def, &s->e);
	struct weir_entry *e = weir_gen_take(g, bytes, false);
	uint8_t log2 = e->page_log2;
	memcpy(e, s, bytes);
	e->page_log2 = log2;
	e->flags = s->e.flags & WEIR_ENTRY_EMITTED;
	weir_gen_mark(g, e);
	g->entries++;
	struct weir_session *to = (struct weir_session *)(void *)e;
	closing_push(sl, to);
	list_replace(sl, s, to);
	forget_blobs(def, s);
	session_kill(sl, s, WEIR_ENTRY_SWALLOWED, true);
	return to;
}

static bool page_is_worn(const struct weir_slot *sl, uint32_t no)
{
	const struct weir_gen *g = weir_slot_only_gen(sl);
	const struct weir_page *p = &sl->pages.page[no];
	return p->dead >= p->bytes / 2 && no != g->blob_page && no != g->entry_page;
}

/* Moves blobs of s out of pages that are mostly dead. */
static void session_move_blobs(struct weir_slot *sl, struct weir_session *s)
{
	const struct weir_state_def *def = sl->def;
	struct weir_gen *g = weir_slot_only_gen(sl);
	for (uint32_t i = 0; i < def->agg_count; i++) {
		uint8_t *state = (uint8_t *)s + def->head_bytes + def->aggs[i].state_at;
		uint32_t ref = weir_agg_blob(&def->aggs[i], state);
		if (ref == 0)
			continue;
		if (!page_is_worn(sl, ref >> WEIR_REF_SHIFT))
			continue;
		struct weir_entry *old = (struct weir_entry *)(void *)weir_ref_get(&sl->pages, ref);
		struct weir_entry *b = weir_gen_take(g, weir_blob_bytes(old), true);
		b->hash = old->hash;
		b->flags = WEIR_ENTRY_BLOB;
		memcpy(b + 1, old + 1, old->hash);
		weir_gen_mark(g, b);
		weir_agg_set_blob(&def->aggs[i], state, weir_entry_ref(b));
		weir_gen_mark(g, &s->e);
		weir_gen_kill(g, old, weir_blob_bytes(old));
	}
}

/* Makes the first node true: drops nodes of dead sessions, moves those of extended ones back (and the session itself,
 * if the rest of its page is mostly dead). No lane may point at a session. */
static void closing_settle(struct weir_slot *sl)
{
	struct weir_close_node *h = sl->closing.data;
	while (sl->closing.count != 0) {
		struct weir_session *s = session_at(sl, h[0].ref);
		if ((s->e.flags & WEIR_ENTRY_DEAD) != 0) {
			uint32_t no = h[0].ref >> WEIR_REF_SHIFT;
			closing_pop(sl);
			weir_page_unpin(&sl->pages, no);
			continue;
		}
		int64_t close = session_close(sl->def, s);
		if (h[0].close == close)
			return;
		if (sl->def->has_blobs)
			session_move_blobs(sl, s);
		if (page_is_worn(sl, h[0].ref >> WEIR_REF_SHIFT) && (s->e.flags & WEIR_ENTRY_CHANGED) == 0) {
			session_move(sl, s); /* leaves a node of a dead one behind, which is next */
			h = sl->closing.data;
			continue;
		}
		h[0].close = close;
		heap_sift_down(h, sl->closing.count, 0);
	}
}

/* ---- applying ---- */

struct sweep {
	const struct weir_state_def *def;
	const struct weir_keyed *in;
	struct weir_lanes ln;
};

static void sweep_flush(struct sweep *sw)
{
	if (sw->ln.count != 0)
		weir_agg_fold(sw->def, &sw->ln, 0, sw->ln.count, sw->in->cols);
	sw->ln.count = 0;
}

/* s is about to change its bounds or to be swallowed, after it has been shown: the row shown must go. */
static void note_delete(struct weir_slot *sl, struct weir_session *s)
{
	struct weir_change *c = weir_vec_push(&sl->change, &sl->blocks, sizeof *c);
	*c = (struct weir_change){weir_entry_ref(&s->e), 1};
	sl->pages.page[c->ref >> WEIR_REF_SHIFT].pins++;
	weir_slot_only_gen(sl)->changed++;
}

/* The first open session within the gap of ts, and the open one before it that also is; both may be NULL. */
static void session_match(const struct weir_slot *sl, struct weir_session *head, int64_t ts, int64_t task_time,
			  struct weir_session **late, struct weir_session **early)
{
	const struct weir_state_def *def = sl->def;
	*late = *early = NULL;
	for (struct weir_session *s = head; s != NULL; s = s->older != 0 ? session_at(sl, s->older) : NULL) {
		if (s->last + def->gap_ms < ts ||
		    weir_session_is_closed(s->last, def->gap_ms, def->grace_ms, task_time))
			return;
		if (s->start - def->gap_ms > ts)
			continue;
		if (*late == NULL) {
			*late = s;
		} else {
			*early = s;
			return;
		}
	}
}

static bool may_stand(const struct weir_slot *sl, const struct weir_session *s)
{
	return (s->e.flags & WEIR_ENTRY_EMITTED) != 0 || sl->in_doubt;
}

/* s takes in ts and, if not NULL, the session `early` just before it. Returns where the session now stands. */
static struct weir_session *session_extend(struct sweep *sw, struct weir_slot *sl, struct weir_session *s,
					   struct weir_session *early, int64_t ts)
{
	const struct weir_state_def *def = sl->def;
	struct weir_gen *g = weir_slot_only_gen(sl);
	int64_t start = weir_min_i64(s->start, ts), last = weir_max_i64(s->last, ts);
	if (early != NULL)
		start = weir_min_i64(start, early->start);
	if (start == s->start && last == s->last && early == NULL)
		return s;
	bool shown = def->changes && may_stand(sl, s);
	bool early_shown = def->changes && early != NULL && may_stand(sl, early);
	if (early != NULL || shown)
		sweep_flush(sw); /* lanes may point at entries that go */
	/* Deletes first, older session first. What a merge makes, and what goes on under other bounds after it was
	 * shown, is a new entry, which the change list has not seen: its row comes after all deletes that led to it. */
	if (early_shown)
		note_delete(sl, early);
	if (shown)
		note_delete(sl, s);
	if (shown || (def->changes && early != NULL)) {
		s = session_move(sl, s);
		s->e.flags &= (uint8_t)~WEIR_ENTRY_EMITTED;
	}
	if (early != NULL) {
		weir_agg_merge(def, g, (uint8_t *)s, &sl->pages, (const uint8_t *)early);
		s->older = early->older;
		session_kill(sl, early, WEIR_ENTRY_SWALLOWED, false);
	}
	s->start = start;
	s->last = last;
	weir_gen_mark(g, &s->e);
	return s;
}

/* A session of ts alone under this key, which the index has at slot (NULL: not at all), its latest being head. */
static struct weir_session *session_create(struct weir_slot *sl, uint64_t hash, const uint8_t *key, uint32_t key_bytes,
					   uint64_t *slot, struct weir_session *head, int64_t ts)
{
	const struct weir_state_def *def = sl->def;
	struct weir_gen *g = weir_slot_only_gen(sl);
	struct weir_entry *e = weir_entry_create(g, def, hash, key, key_bytes);
	struct weir_session *s = (struct weir_session *)(void *)e;
	s->start = s->last = ts;
	if (slot == NULL) {
		weir_gen_index_add(g, e, hash);
		return s;
	}
	if (head->last < ts) {
		s->older = weir_entry_ref(&head->e);
		head_set(slot, s);
		return s;
	}
	struct weir_session *at = head;
	while (at->older != 0 && session_at(sl, at->older)->last > ts)
		at = session_at(sl, at->older);
	s->older = at->older;
	at->older = weir_entry_ref(e);
	weir_gen_mark(g, &at->e);
	return s;
}

/* The session of a key that ts enters, NULL if it is late. */
static struct weir_session *session_enter(struct sweep *sw, struct weir_slot *sl, uint64_t hash, const uint8_t *key,
					  uint32_t key_bytes, int64_t ts, int64_t task_time)
{
	const struct weir_state_def *def = sl->def;
	struct weir_session *head = NULL, *s, *early;
	uint64_t *free_slot;
	uint64_t *slot = weir_index_find(&weir_slot_only_gen(sl)->ix, def, hash, key, key_bytes, &free_slot);
	if (slot != NULL)
		head = (struct weir_session *)(void *)weir_index_entry(*slot);
	session_match(sl, head, ts, task_time, &s, &early);
	if (s != NULL)
		return session_extend(sw, sl, s, early, ts);
	if (weir_session_is_closed(ts, def->gap_ms, def->grace_ms, task_time))
		return NULL;
	s = session_create(sl, hash, key, key_bytes, slot, head, ts);
	closing_push(sl, s);
	return s;
}

/* The member of a key that ts enters, within the session's bounds; members that merged sessions left become one. */
static struct weir_session *member_enter(struct sweep *sw, struct weir_slot *sl, uint16_t row,
					 const struct weir_session *bounds)
{
	const struct weir_state_def *def = sl->def;
	const struct weir_keyed *in = sw->in;
	struct weir_gen *g = weir_slot_only_gen(sl);
	struct weir_session *head = NULL, *s;
	uint64_t *free_slot;
	int64_t ts = in->time[row];
	uint64_t *slot = weir_index_find(&g->ix, def, in->hash[row], in->key[row], in->key_bytes[row], &free_slot);
	if (slot != NULL)
		head = (struct weir_session *)(void *)weir_index_entry(*slot);
	for (s = head; s != NULL && s->start > bounds->last; s = s->older != 0 ? session_at(sl, s->older) : NULL)
		;
	if (s == NULL || s->last < bounds->start)
		return session_create(sl, in->hash[row], in->key[row], in->key_bytes[row], slot, head, ts);
	while (s->older != 0 && session_at(sl, s->older)->last >= bounds->start) {
		struct weir_session *early = session_at(sl, s->older);
		sweep_flush(sw); /* lanes may point at it */
		weir_agg_merge(def, g, (uint8_t *)s, &sl->pages, (const uint8_t *)early);
		s->start = early->start;
		s->older = early->older;
		session_kill(sl, early, WEIR_ENTRY_SWALLOWED, false);
	}
	s->start = weir_min_i64(s->start, ts);
	s->last = weir_max_i64(s->last, ts);
	return s;
}

static void shared_freeze(struct weir_slot *sl, int64_t task_time);

static struct weir_session *shared_enter(struct sweep *sw, struct weir_slot *sl, uint16_t row, int64_t task_time)
{
	const struct weir_state_def *def = sl->def;
	const struct weir_keyed *in = sw->in;
	const struct weir_close_node *next = sl->closing.data;
	if (sl->closing.count != 0 && next->close <= task_time) {
		sweep_flush(sw);
		shared_freeze(sl, task_time);
	}
	uint32_t n = weir_key_prefix(in->key[row], in->key_bytes[row], def->key_types, def->shared_keys);
	struct weir_session *s =
		session_enter(sw, sl, weir_hash(in->key[row], n), in->key[row], n, in->time[row], task_time);
	if (s == NULL)
		return NULL;
	weir_gen_mark(weir_slot_only_gen(sl), &s->e);
	return member_enter(sw, sl, row, s);
}

/* Folds one row; false if it is late. */
static bool session_row(struct sweep *sw, struct weir_slot *sl, uint16_t row, int64_t task_time)
{
	const struct weir_state_def *def = sw->def;
	const struct weir_keyed *in = sw->in;
	struct weir_gen *g = weir_slot_only_gen(sl);
	struct weir_session *s = def->shared ? shared_enter(sw, sl, row, task_time)
					     : session_enter(sw, sl, in->hash[row], in->key[row], in->key_bytes[row],
							     in->time[row], task_time);
	if (s == NULL)
		return false;
	weir_gen_mark(g, &s->e);
	if (def->changes && (s->e.flags & WEIR_ENTRY_CHANGED) == 0)
		weir_slot_note_change(sl, g, &s->e);
	struct weir_lanes *ln = &sw->ln;
	ln->row[ln->count] = row;
	ln->gen[ln->count] = g;
	ln->entry[ln->count] = (uint8_t *)s;
	ln->order[ln->count] = ++sl->records;
	if (++ln->count == WEIR_LANES)
		sweep_flush(sw);
	return true;
}

/* Asks for the lines that rows [from, to) will touch: index lines, then those of the entries they lead to. */
static void session_prefetch(const struct weir_state_def *def, struct weir_slot *const *slots,
			     const struct weir_keyed *in, const uint16_t *rows, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const struct weir_index *ix = &weir_slot_only_gen(slots[in->slot[rows[i]]])->ix;
		__builtin_prefetch(&ix->slot[weir_index_home(ix, weir_hash_index(in->hash[rows[i]]))], 0, 3);
	}
	for (uint32_t i = from; i < to; i++) {
		const struct weir_index *ix = &weir_slot_only_gen(slots[in->slot[rows[i]]])->ix;
		uintptr_t e = (uintptr_t)weir_index_guess(ix, in->hash[rows[i]]);
		if (e == 0)
			continue;
		__builtin_prefetch((const void *)e, 1, 3);
		__builtin_prefetch((const void *)(e + 64), 1, 3);
		__builtin_prefetch((const void *)(e + weir_def_key_at(def) + 8), 0, 3);
	}
}

/* Cost: about 51 ns a record at 100k keys (bench_window_table, apply/session/100k, Xeon at 2 shared cores). */
void weir_session_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
			const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out)
{
	struct sweep sw;
	sw.def = def;
	sw.in = in;
	sw.ln.count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (i % WEIR_LANES == 0)
			session_prefetch(def, slots, in, rows, i, i + WEIR_LANES < count ? i + WEIR_LANES : count);
		uint16_t row = rows[i];
		struct weir_slot *sl = slots[in->slot[row]];
		int64_t ts = in->time[row], task_time = weir_clock_at(def, clock, in->run[row]);
		if (ts >= -WEIR_TIME_MAX && ts <= WEIR_TIME_MAX && session_row(&sw, sl, row, task_time)) {
			out->applied++;
			continue;
		}
		out->late_windows++;
		out->late_row[out->late++] = row;
	}
	sweep_flush(&sw);
	for (uint32_t i = 0; i < count; i++)
		closing_settle(slots[in->slot[rows[i]]]);
}

/* ---- closing ---- */

struct weir_session *weir_session_close_into(struct weir_closed *cl, const struct weir_slot *sl,
					     const struct weir_session *s)
{
	const struct weir_state_def *def = sl->def;
	uint64_t bytes = weir_entry_bytes(def, &s->e);
	struct weir_entry *e = weir_gen_take(&cl->gen, bytes, false);
	uint8_t log2 = e->page_log2;
	memcpy(e, s, bytes);
	e->page_log2 = log2;
	if (def->has_blobs) {
		memset((uint8_t *)e + def->head_bytes, 0, def->agg_bytes);
		weir_agg_merge(def, &cl->gen, (uint8_t *)e, &sl->pages, (const uint8_t *)s);
	}
	weir_gen_index_add(&cl->gen, e, (uint64_t)weir_hash_index(e->hash));
	return (struct weir_session *)(void *)e;
}

/* Whether e is a session that spans keys, not one key's member. */
static bool is_shared(const struct weir_state_def *def, const struct weir_entry *e)
{
	uint32_t n;
	const uint8_t *key = weir_entry_key(def, e, &n);
	return weir_key_prefix(key, n, def->key_types, def->shared_keys) == n;
}

/* Whether m is a member of the session s. */
static bool is_member(const struct weir_state_def *def, const struct weir_session *s, const struct weir_session *m)
{
	uint32_t n, own;
	const uint8_t *shared = weir_entry_key(def, &s->e, &n), *key = weir_entry_key(def, &m->e, &own);
	return own > n && weir_key_equal(shared, key, n) && m->start >= s->start && m->last <= s->last;
}

/* Refs of all members of s. Cost: a walk over the slot, which holds little but what is about to close. */
static void members_find(struct weir_slot *sl, const struct weir_session *s, struct weir_vec *out)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	for (uint32_t no = g->page_first; no != 0; no = sl->pages.page[no].next) {
		const struct weir_page *p = &sl->pages.page[no];
		if (p->state != WEIR_PAGE_LIVE || p->blob)
			continue;
		for (uint32_t at = WEIR_PAGE_HEAD; at < p->used;) {
			struct weir_session *m = (struct weir_session *)(void *)(p->base + at);
			at += (uint32_t)weir_entry_bytes(sl->def, &m->e);
			if ((m->e.flags & WEIR_ENTRY_DEAD) == 0 && is_member(sl->def, s, m))
				*(uint32_t *)weir_vec_push(out, &sl->blocks, sizeof(uint32_t)) = weir_entry_ref(&m->e);
		}
	}
}

/* The row of a key in s, if m is its latest member there; takes the key's members out of its list. */
static void members_close(struct weir_slot *sl, struct weir_closed *cl, const struct weir_session *s,
			  const struct weir_session *m)
{
	const struct weir_state_def *def = sl->def;
	struct weir_gen *g = weir_slot_only_gen(sl);
	uint64_t *slot = find_head(g, def, &m->e);
	struct weir_session *at = NULL, *newer = NULL;
	if (slot != NULL)
		at = (struct weir_session *)(void *)weir_index_entry(*slot);
	for (; at != NULL && at->start > s->last; at = at->older != 0 ? session_at(sl, at->older) : NULL)
		newer = at;
	if (at != m)
		return; /* m went with the latest */
	struct weir_session *row = weir_session_close_into(cl, sl, m);
	row->start = s->start;
	row->last = s->last;
	for (at = m->older != 0 ? session_at(sl, m->older) : NULL; at != NULL && at->last >= s->start;
	     at = at->older != 0 ? session_at(sl, at->older) : NULL)
		weir_agg_merge(def, &cl->gen, (uint8_t *)row, &sl->pages, (const uint8_t *)at);
	if (newer == NULL) {
		head_set(slot, at);
	} else {
		newer->older = at != NULL ? weir_entry_ref(&at->e) : 0;
		weir_gen_mark(g, &newer->e);
	}
}

/* Rows of all keys of s, which leaves with its members. */
static void shared_close(struct weir_slot *sl, struct weir_closed *cl, const struct weir_session *s)
{
	struct weir_vec members = {0};
	members_find(sl, s, &members);
	const uint32_t *refs = members.data;
	for (uint32_t i = 0; i < members.count; i++)
		members_close(sl, cl, s, session_at(sl, refs[i]));
	for (uint32_t i = 0; i < members.count; i++)
		session_kill(sl, session_at(sl, refs[i]), 0, false);
	weir_vec_fini(&members, &sl->blocks, sizeof(uint32_t));
}

/* What has closed by task_time, NULL if nothing has. */
static struct weir_closed *close_due(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max)
{
	const struct weir_state_def *def = sl->def;
	struct weir_closed *cl = NULL;
	closing_settle(sl);
	while (sl->closing.count != 0) {
		struct weir_close_node nd = *(struct weir_close_node *)sl->closing.data;
		if (!all && nd.close > task_time)
			break;
		struct weir_session *s = session_at(sl, nd.ref);
		*end_max = weir_max_i64(*end_max, s->last + def->gap_ms);
		if (!def->changes) {
			if (cl == NULL)
				cl = weir_closed_begin(sl, 0);
			if (def->shared)
				shared_close(sl, cl, s);
			else
				(void)weir_session_close_into(cl, sl, s);
		}
		list_replace(sl, s, NULL);
		/* With changes still to be read the blobs have to stay: weir_session_forget. */
		session_kill(sl, s, 0, (s->e.flags & WEIR_ENTRY_CHANGED) != 0);
		closing_pop(sl);
		weir_page_unpin(&sl->pages, nd.ref >> WEIR_REF_SHIFT);
		closing_settle(sl);
	}
	if (cl != NULL)
		weir_closed_seal(sl, cl);
	return cl;
}

/* Closes what task_time has closed before it is asked for. start, end of what waits: when it closed, and its end. */
static void shared_freeze(struct weir_slot *sl, int64_t task_time)
{
	int64_t end = INT64_MIN;
	struct weir_closed *cl = close_due(sl, task_time, false, &end);
	if (cl == NULL)
		return;
	cl->start = task_time;
	cl->end = end;
	cl->next = NULL;
	if (sl->ready == NULL)
		sl->ready = cl;
	else
		sl->ready_last->next = cl;
	sl->ready_last = cl;
}

struct weir_closed *weir_session_close(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max)
{
	struct weir_closed *cl = sl->ready;
	if (cl == NULL)
		return close_due(sl, task_time, all, end_max);
	sl->ready = cl->next;
	*end_max = weir_max_i64(*end_max, cl->end);
	return cl;
}

/* ---- restore ---- */

/* Links s into its key's list by time; false if it overlaps a neighbour. */
static bool session_link(struct weir_slot *sl, struct weir_session *s)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	uint32_t n;
	uint64_t *free_slot;
	const uint8_t *key = weir_entry_key(sl->def, &s->e, &n);
	uint64_t hash = weir_hash(key, n);
	uint64_t *slot = weir_index_find(&g->ix, sl->def, hash, key, n, &free_slot);
	s->older = 0;
	if (slot == NULL) {
		weir_gen_index_add(g, &s->e, hash);
		return true;
	}
	struct weir_session *at = (struct weir_session *)(void *)weir_index_entry(*slot), *newer = NULL;
	while (at != NULL && at->last > s->last) {
		newer = at;
		at = at->older != 0 ? session_at(sl, at->older) : NULL;
	}
	if ((newer != NULL && newer->start <= s->last) || (at != NULL && at->last >= s->start))
		return false;
	s->older = at != NULL ? weir_entry_ref(&at->e) : 0;
	if (newer != NULL)
		newer->older = weir_entry_ref(&s->e);
	else
		head_set(slot, s);
	return true;
}

/* Whether every member has a session: one without would never close. */
static bool members_fit(struct weir_slot *sl)
{
	const struct weir_state_def *def = sl->def;
	struct weir_gen *g = weir_slot_only_gen(sl);
	for (uint32_t no = g->page_first; no != 0; no = sl->pages.page[no].next) {
		const struct weir_page *p = &sl->pages.page[no];
		if (p->state != WEIR_PAGE_LIVE || p->blob)
			continue;
		for (uint32_t at = WEIR_PAGE_HEAD; at < p->used;) {
			struct weir_session *m = (struct weir_session *)(void *)(p->base + at);
			at += (uint32_t)weir_entry_bytes(def, &m->e);
			if ((m->e.flags & WEIR_ENTRY_DEAD) != 0 || is_shared(def, &m->e))
				continue;
			uint32_t n;
			uint64_t *free_slot;
			const uint8_t *key = weir_entry_key(def, &m->e, &n);
			n = weir_key_prefix(key, n, def->key_types, def->shared_keys);
			uint64_t *slot = weir_index_find(&g->ix, def, weir_hash(key, n), key, n, &free_slot);
			struct weir_session *s =
				slot != NULL ? (struct weir_session *)(void *)weir_index_entry(*slot) : NULL;
			while (s != NULL && s->start > m->start)
				s = s->older != 0 ? session_at(sl, s->older) : NULL;
			if (s == NULL || !is_member(def, s, m))
				return false;
		}
	}
	return true;
}

bool weir_session_rebuild(struct weir_slot *sl)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	for (uint32_t no = g->page_first; no != 0; no = sl->pages.page[no].next) {
		const struct weir_page *p = &sl->pages.page[no];
		if (p->state != WEIR_PAGE_LIVE || p->blob)
			continue;
		for (uint32_t at = WEIR_PAGE_HEAD; at < p->used;) {
			struct weir_session *s = (struct weir_session *)(void *)(p->base + at);
			at += (uint32_t)weir_entry_bytes(sl->def, &s->e);
			if ((s->e.flags & WEIR_ENTRY_DEAD) != 0)
				continue;
			if (s->start > s->last || s->start < -WEIR_TIME_MAX || s->last > WEIR_TIME_MAX ||
			    !session_link(sl, s))
				return false;
			if (!sl->def->shared || is_shared(sl->def, &s->e))
				closing_push(sl, s);
		}
	}
	return !sl->def->shared || members_fit(sl);
}
