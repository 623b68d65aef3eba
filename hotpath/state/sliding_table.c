/* sliding_table.c: sliding windows, as Kafka Streams has them: of one length, both ends inclusive, and only where
 * records make them differ. One generation holds all windows of a slot; its index leads to a key's latest window, from
 * there a list goes back in time. A heap by time says what leaves next. @thread worker.
 *
 *   record at t    enters every window there is that holds t and is open. It makes, where they are not there yet: its
 *                  left window [t - length, t], with the records before it in there; the right window of the record
 *                  before it [t' + 1, t' + 1 + length], if that reaches t; and its own right window, if a later record
 *                  of the key has come already. t < length: the left window is [0, length]
 *   closed         task time > end + grace. FINAL: its row leaves, and the window stays (EMITTED) while a record may
 *                  still need it to make another window from
 *   forgotten      task time > last + 1 + length + grace, last being its latest record
 *
 * So a record that comes after its own left window has closed is in the windows it found, but not in those made later
 * between them; and one that finds every window closed is late, but may leave its right window behind. Kafka Streams
 * does both, and the order of steps here is its own, so that rows are equal.
 *
 * The heap's nodes: a lower bound of when the window leaves or is forgotten; it is made true when it comes up. Nodes
 * and the change list pin pages. Pages are given back when all in them is dead: windows are made about in order of
 * time, and all live about as long.
 *
 * Cost: a record is folded into each of its windows, about two for every record of its key within the length. */
#include "hotpath/core/hash.h"
#include "hotpath/state/session.h"
#include "hotpath/time/window.h"

/* The entry is a session's: start of the window, and its latest record. */
static struct weir_session *window_at(const struct weir_slot *sl, uint32_t ref)
{
	return ref != 0 ? (struct weir_session *)(void *)weir_ref_get(&sl->pages, ref) : NULL;
}

static int64_t end_of(const struct weir_state_def *def, const struct weir_session *s)
{
	return s->start + def->size_ms;
}

static bool is_closed(const struct weir_state_def *def, int64_t start, int64_t task_time)
{
	/* Ends are inclusive. */
	return weir_window_is_closed(start + def->size_ms + 1, def->grace_ms, task_time);
}

/* Task time from which on no record can enter it, nor make a window of what it has. */
static int64_t forget_time(const struct weir_state_def *def, const struct weir_session *s)
{
	return weir_window_close_time(s->last + def->size_ms + 2, def->grace_ms);
}

/* When the window's row leaves, or when it is forgotten. */
static int64_t node_time(const struct weir_state_def *def, const struct weir_session *s)
{
	if (!def->changes && (s->e.flags & WEIR_ENTRY_EMITTED) == 0)
		return weir_window_close_time(end_of(def, s) + 1, def->grace_ms);
	return forget_time(def, s);
}

/* ---- the queue ---- */

static void heap_sift_up(struct weir_close_node *h, uint32_t i)
{
	struct weir_close_node x = h[i];
	while (i > 0 && h[(i - 1) / 2].close > x.close) {
		h[i] = h[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h[i] = x;
}

static void heap_sift_down(struct weir_close_node *h, uint32_t n)
{
	struct weir_close_node x = h[0];
	uint32_t i = 0;
	for (uint32_t c; (c = 2 * i + 1) < n; i = c) {
		if (c + 1 < n && h[c + 1].close < h[c].close)
			c++;
		if (h[c].close >= x.close)
			break;
		h[i] = h[c];
	}
	h[i] = x;
}

static void queue_push(struct weir_slot *sl, const struct weir_session *s)
{
	struct weir_close_node *nd = weir_vec_push(&sl->closing, &sl->blocks, sizeof *nd);
	*nd = (struct weir_close_node){node_time(sl->def, s), weir_entry_ref(&s->e), 0};
	sl->pages.page[nd->ref >> WEIR_REF_SHIFT].pins++;
	heap_sift_up(sl->closing.data, sl->closing.count - 1);
}

/* The window whose turn is next, NULL if there is none; the queue's first node says when. */
static struct weir_session *queue_first(struct weir_slot *sl)
{
	struct weir_close_node *h = sl->closing.data;
	while (sl->closing.count != 0) {
		struct weir_session *s = window_at(sl, h[0].ref);
		int64_t close = node_time(sl->def, s);
		if (h[0].close == close)
			return s;
		h[0].close = close;
		heap_sift_down(h, sl->closing.count);
	}
	return NULL;
}

/* Cost: a look at every window. */
int64_t weir_sliding_next_close(const struct weir_slot *sl)
{
	const struct weir_close_node *h = sl->closing.data;
	int64_t next = INT64_MAX;
	for (uint32_t i = 0; i < sl->closing.count; i++) {
		const struct weir_session *s = window_at(sl, h[i].ref);
		if (sl->def->changes || (s->e.flags & WEIR_ENTRY_EMITTED) == 0)
			next = weir_min_i64(next, node_time(sl->def, s));
	}
	return next;
}

/* ---- a key's windows ---- */

struct key_ref {
	uint64_t hash;
	const uint8_t *key;
	uint32_t bytes;
};

static uint64_t *head_find(const struct weir_slot *sl, const struct key_ref *k)
{
	uint64_t *free_slot;
	return weir_index_find(&weir_slot_only_gen(sl)->ix, sl->def, k->hash, k->key, k->bytes, &free_slot);
}

static struct key_ref key_of(const struct weir_state_def *def, const struct weir_entry *e)
{
	struct key_ref k;
	k.key = weir_entry_key(def, e, &k.bytes);
	k.hash = weir_hash(k.key, k.bytes);
	return k;
}

static void head_set(uint64_t *slot, const struct weir_session *s)
{
	uint64_t tag = *slot & ~WEIR_INDEX_POINTER;
	weir_index_store(slot, s != NULL ? tag | (uint64_t)(uintptr_t)s : WEIR_INDEX_REMOVED);
}

/* The key's latest window that starts at `from` or before. */
static struct weir_session *list_from(const struct weir_slot *sl, const struct key_ref *k, int64_t from)
{
	const uint64_t *slot = head_find(sl, k);
	struct weir_session *s = slot != NULL ? (struct weir_session *)(void *)weir_index_entry(*slot) : NULL;
	while (s != NULL && s->start > from)
		s = window_at(sl, s->older);
	return s;
}

/* Puts s into its key's list; false if a window of that start is there. Links are made anew at a restore: changing
 * them changes no entry. */
static bool list_link(struct weir_slot *sl, const struct key_ref *k, struct weir_session *s)
{
	uint64_t *slot = head_find(sl, k);
	s->older = 0;
	if (slot == NULL) {
		weir_gen_index_add(weir_slot_only_gen(sl), &s->e, k->hash);
		return true;
	}
	struct weir_session *at = (struct weir_session *)(void *)weir_index_entry(*slot), *newer = NULL;
	for (; at != NULL && at->start > s->start; at = window_at(sl, at->older))
		newer = at;
	if (at != NULL && at->start == s->start)
		return false;
	s->older = at != NULL ? weir_entry_ref(&at->e) : 0;
	if (newer != NULL)
		newer->older = weir_entry_ref(&s->e);
	else
		head_set(slot, s);
	return true;
}

static void list_unlink(struct weir_slot *sl, const struct weir_session *s)
{
	struct key_ref k = key_of(sl->def, &s->e);
	uint64_t *slot = head_find(sl, &k);
	WEIR_DASSERT(slot != NULL);
	struct weir_session *at = (struct weir_session *)(void *)weir_index_entry(*slot);
	if (at == s) {
		head_set(slot, window_at(sl, s->older));
		return;
	}
	while (window_at(sl, at->older) != s)
		at = window_at(sl, at->older);
	at->older = s->older;
}

static struct weir_session *window_create(struct weir_slot *sl, const struct key_ref *k, int64_t start, int64_t last)
{
	struct weir_entry *e = weir_entry_create(weir_slot_only_gen(sl), sl->def, k->hash, k->key, k->bytes);
	struct weir_session *s = (struct weir_session *)(void *)e;
	s->start = start;
	s->last = last;
	bool linked = list_link(sl, k, s);
	WEIR_ASSERT(linked);
	queue_push(sl, s);
	return s;
}

/* Blobs of s go, and with them its aggregates. */
static void kill_blobs(struct weir_slot *sl, struct weir_session *s)
{
	const struct weir_state_def *def = sl->def;
	for (uint32_t i = 0; i < def->agg_count && def->has_blobs; i++) {
		uint32_t ref = weir_agg_blob(&def->aggs[i], (uint8_t *)s + def->head_bytes + def->aggs[i].state_at);
		if (ref == 0)
			continue;
		struct weir_entry *b = (struct weir_entry *)(void *)weir_ref_get(&sl->pages, ref);
		weir_gen_kill(weir_slot_only_gen(sl), b, weir_blob_bytes(b));
	}
	memset((uint8_t *)s + def->head_bytes, 0, def->agg_bytes);
}

/* A window forgotten whose last change has been read. */
void weir_sliding_forget(struct weir_slot *sl, struct weir_entry *e)
{
	if ((e->flags & WEIR_ENTRY_DEAD) != 0)
		kill_blobs(sl, (struct weir_session *)(void *)e);
}

/* ---- applying ---- */

struct sweep {
	const struct weir_state_def *def;
	const struct weir_keyed *in;
	struct weir_applied *out;
	struct weir_lanes ln;
};

static void sweep_flush(struct sweep *sw)
{
	if (sw->ln.count != 0)
		weir_agg_fold(sw->def, &sw->ln, 0, sw->ln.count, sw->in->cols);
	sw->ln.count = 0;
}

static void note_changed(struct weir_slot *sl, struct weir_session *s)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	weir_gen_mark(g, &s->e);
	if (sl->def->changes && (s->e.flags & WEIR_ENTRY_CHANGED) == 0)
		weir_slot_note_change(sl, g, &s->e);
}

/* One record on its way, and what its key has for it. */
struct arrival {
	struct weir_slot *sl;
	struct key_ref k;
	uint16_t row;
	int64_t time, task_time;
	uint32_t entered, missed;
	int64_t left;             /* start of its left window */
	bool has_left, has_right; /* there already */
	struct weir_session
		*after; /* latest window that holds it: what comes behind it is in there, too; may be NULL */
	struct weir_session *before; /* latest window that ends before it, may be NULL */
	bool has_previous;
	int64_t previous; /* time of the record before it */
};

static void survey(struct arrival *a)
{
	const struct weir_state_def *def = a->sl->def;
	for (struct weir_session *s = list_from(a->sl, &a->k, a->time + 1); s != NULL; s = window_at(a->sl, s->older)) {
		int64_t end = end_of(def, s);
		if (a->task_time >= forget_time(def, s))
			continue; /* not there, whether or not the last order point saw it */
		if (s->start == a->time + 1) {
			a->has_right = true;
			continue;
		}
		if (end < a->time) {
			if (end < a->time - def->size_ms)
				return; /* nothing of it concerns this record, not even which was the one before */
			a->before = s;
			a->previous = s->last;
			a->has_previous = true;
			return;
		}
		if (a->after == NULL && end > a->time)
			a->after = s;
		if (s->start != a->left)
			continue;
		a->has_left = true;
		a->previous = s->last;
		a->has_previous = s->last < a->time;
		if (end == a->time && s->last == a->time)
			a->after = NULL; /* a record of this time has made what there is to make */
		if (!a->has_previous)
			return;
	}
}

static void enter(struct sweep *sw, struct arrival *a, struct weir_session *s)
{
	struct weir_lanes *ln = &sw->ln;
	if (a->entered++ == 0)
		a->sl->records++;
	s->last = weir_max_i64(s->last, a->time);
	note_changed(a->sl, s);
	ln->row[ln->count] = a->row;
	ln->gen[ln->count] = weir_slot_only_gen(a->sl);
	ln->entry[ln->count] = (uint8_t *)s;
	ln->order[ln->count] = a->sl->records;
	if (++ln->count == WEIR_LANES)
		sweep_flush(sw);
}

/* A window made of what another one has. No lane may point at that. */
static struct weir_session *window_from(struct arrival *a, int64_t start, const struct weir_session *from)
{
	struct weir_session *s = window_create(a->sl, &a->k, start, from->last);
	weir_agg_merge(a->sl->def, weir_slot_only_gen(a->sl), (uint8_t *)s, &a->sl->pages, (const uint8_t *)from);
	return s;
}

static void enter_present(struct sweep *sw, struct arrival *a)
{
	for (struct weir_session *s = list_from(a->sl, &a->k, a->time); s != NULL && end_of(sw->def, s) >= a->time;
	     s = window_at(a->sl, s->older)) {
		if (!is_closed(sw->def, s->start, a->task_time))
			enter(sw, a, s);
		else
			a->missed += a->task_time < forget_time(sw->def, s);
	}
}

static void enter_previous_right(struct sweep *sw, struct arrival *a)
{
	int64_t start = a->previous + 1;
	if (!a->has_previous || start + sw->def->size_ms < a->time)
		return;
	const struct weir_session *there = list_from(a->sl, &a->k, start);
	if (there != NULL && there->start == start)
		return;
	if (is_closed(sw->def, start, a->task_time))
		a->missed++;
	else
		enter(sw, a, window_create(a->sl, &a->k, start, a->time));
}

static void enter_left(struct sweep *sw, struct arrival *a)
{
	if (a->has_left || (a->has_previous && a->previous + 1 == a->left))
		return; /* it is there, or is the right window just dealt with */
	if (is_closed(sw->def, a->left, a->task_time))
		a->missed++;
	else if (a->before != NULL && a->previous >= a->left)
		enter(sw, a, window_from(a, a->left, a->before));
	else
		enter(sw, a, window_create(a->sl, &a->k, a->left, a->time));
}

static void apply_row(struct sweep *sw, struct weir_slot *sl, uint16_t row, int64_t task_time)
{
	const struct weir_state_def *def = sw->def;
	const struct weir_keyed *in = sw->in;
	struct arrival a = {.sl = sl,
			    .k = {in->hash[row], in->key[row], in->key_bytes[row]},
			    .row = row,
			    .time = in->time[row],
			    .task_time = task_time};
	bool in_range = a.time >= -WEIR_TIME_MAX && a.time <= WEIR_TIME_MAX;
	if (in_range && !is_closed(def, a.time, task_time)) {
		a.left = a.time >= 0 && a.time < def->size_ms ? 0 : a.time - def->size_ms;
		survey(&a);
		bool makes_right = !a.has_right && a.after != NULL && a.after->last > a.time;
		if (makes_right || (!a.has_left && a.before != NULL && a.previous >= a.left))
			sweep_flush(sw);
		if (makes_right)
			note_changed(sl, window_from(&a, a.time + 1, a.after));
		enter_present(sw, &a);
		enter_previous_right(sw, &a);
		enter_left(sw, &a);
	} else {
		a.missed = 1;
	}
	sw->out->late_windows += a.missed;
	if (a.entered != 0)
		sw->out->applied++;
	else
		sw->out->late_row[sw->out->late++] = row;
}

void weir_sliding_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
			const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out)
{
	struct sweep sw;
	sw.def = def;
	sw.in = in;
	sw.out = out;
	sw.ln.count = 0;
	for (uint32_t i = 0; i < count; i++)
		apply_row(&sw, slots[in->slot[rows[i]]], rows[i], weir_clock_at(def, clock, in->run[rows[i]]));
	sweep_flush(&sw);
}

/* ---- leaving ---- */

/* The first of the queue goes for good. */
static void window_drop(struct weir_slot *sl, struct weir_session *s)
{
	struct weir_close_node *h = sl->closing.data;
	uint32_t no = h[0].ref >> WEIR_REF_SHIFT;
	list_unlink(sl, s);
	/* With changes still to be read the blobs have to stay: weir_sliding_forget. */
	if ((s->e.flags & WEIR_ENTRY_CHANGED) == 0)
		kill_blobs(sl, s);
	struct weir_gen *g = weir_slot_only_gen(sl);
	g->entries--;
	weir_gen_kill(g, &s->e, weir_entry_bytes(sl->def, &s->e));
	h[0] = h[--sl->closing.count];
	if (sl->closing.count != 0)
		heap_sift_down(h, sl->closing.count);
	weir_page_unpin(&sl->pages, no);
}

/* Largest end of windows that are not forgotten, and the task time that closes them all. */
static int64_t end_of_all(const struct weir_slot *sl, int64_t *task_time)
{
	const struct weir_close_node *h = sl->closing.data;
	int64_t end = INT64_MIN;
	for (uint32_t i = 0; i < sl->closing.count; i++)
		end = weir_max_i64(end, end_of(sl->def, window_at(sl, h[i].ref)) + 1);
	if (end != INT64_MIN)
		*task_time = weir_max_i64(*task_time, weir_window_close_time(end, sl->def->grace_ms));
	return end;
}

struct weir_closed *weir_sliding_close(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max)
{
	const struct weir_state_def *def = sl->def;
	struct weir_closed *cl = NULL;
	if (all) /* what has been kept to make windows from is kept: later records may still do so */
		*end_max = weir_max_i64(*end_max, end_of_all(sl, &task_time));
	for (struct weir_session *s; (s = queue_first(sl)) != NULL;) {
		if (((const struct weir_close_node *)sl->closing.data)->close > task_time)
			break;
		if (def->changes || (s->e.flags & WEIR_ENTRY_EMITTED) != 0) {
			window_drop(sl, s);
			continue;
		}
		if (cl == NULL)
			cl = weir_closed_begin(sl, 0);
		(void)weir_session_close_into(cl, sl, s);
		*end_max = weir_max_i64(*end_max, end_of(def, s) + 1);
		s->e.flags |= WEIR_ENTRY_EMITTED;
		weir_gen_mark(weir_slot_only_gen(sl), &s->e);
	}
	if (cl != NULL)
		weir_closed_seal(sl, cl);
	return cl;
}

/* ---- restore ---- */

bool weir_sliding_rebuild(struct weir_slot *sl)
{
	const struct weir_gen *g = weir_slot_only_gen(sl);
	for (uint32_t no = g->page_first; no != 0; no = sl->pages.page[no].next) {
		const struct weir_page *p = &sl->pages.page[no];
		if (p->state != WEIR_PAGE_LIVE || p->blob)
			continue;
		for (uint32_t at = WEIR_PAGE_HEAD; at < p->used;) {
			struct weir_session *s = (struct weir_session *)(void *)(p->base + at);
			at += (uint32_t)weir_entry_bytes(sl->def, &s->e);
			if ((s->e.flags & WEIR_ENTRY_DEAD) != 0)
				continue;
			struct key_ref k = key_of(sl->def, &s->e);
			if (s->start < -2 * WEIR_TIME_MAX || s->last > WEIR_TIME_MAX || s->last < s->start ||
			    s->last - s->start > sl->def->size_ms || !list_link(sl, &k, s))
				return false;
			queue_push(sl, s);
		}
	}
	return true;
}
