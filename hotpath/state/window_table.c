/* window_table.c: tumbling, hopping and cumulating windows. A slot's generations are panes (or whole windows) by start;
 * a row goes into one pane (or into each of its windows that is open). @thread worker.
 *
 * Lateness is judged per row against the task time as of that row, never by what weir_slot_close has taken already.
 * With panes, a row may miss a window that is closed by time but still waits in its panes: such windows are frozen
 * (combined and put on the slot's ready list) before the row reaches the pane.
 *
 * Cost of closing: every entry of the window's panes once. Of cumulating windows each combines all panes since their
 * start, so an entry of a day's first hour is merged 24 times. */
#include "hotpath/core/hash.h"
#include "hotpath/state/slot.h"
#include "hotpath/time/window.h"

/* ---- closing ---- */

static bool gens_empty(const struct weir_slot *sl)
{
	return sl->gen_count == 0;
}

/* Mark of the earliest window not closed yet that a live pane belongs to. */
static int64_t window_candidate(const struct weir_slot *sl)
{
	const struct weir_state_def *def = sl->def;
	int64_t pane = sl->gens[0].start;
	if (!weir_def_panes(def))
		return pane;
	int64_t first = weir_def_first(def, pane);
	if (sl->closed_start != WEIR_TIME_UNSET && first <= sl->closed_start)
		first = sl->closed_start + def->advance_ms;
	return first;
}

int64_t weir_window_next_close(const struct weir_slot *sl)
{
	const struct weir_state_def *def = sl->def;
	if (sl->ready != NULL)
		return weir_window_close_time(sl->ready->end, def->grace_ms);
	if (gens_empty(sl))
		return INT64_MAX;
	return weir_window_close_time(window_candidate(sl) + weir_def_reach(def), def->grace_ms);
}

/* Panes of [start, end) folded into a generation of their own, by key. */
static struct weir_closed *window_combine(struct weir_slot *sl, int64_t start, int64_t end)
{
	const struct weir_state_def *def = sl->def;
	/* A window that starts too early for timestamps from 0 on holds only those below. */
	bool clipped = !def->cumulative && start < 0 &&
		       start != weir_window_first(0, def->size_ms, def->advance_ms, def->offset_ms);
	uint32_t from = weir_slot_search(sl, start), to = weir_slot_search(sl, clipped ? weir_min_i64(end, 0) : end);
	uint64_t most = 0;
	for (uint32_t i = from; i < to; i++)
		if (sl->gens[i].g->entries > most)
			most = sl->gens[i].g->entries;
	if (most == 0)
		return NULL;
	struct weir_closed *cl = weir_closed_begin(sl, most);
	for (uint32_t i = from; i < to; i++) {
		const struct weir_gen *g = sl->gens[i].g;
		for (uint64_t s = 0; s <= g->ix.mask; s++) {
			uint64_t v = g->ix.slot[s];
			if (v <= WEIR_INDEX_REMOVED)
				continue;
			const struct weir_entry *e = weir_index_entry(v);
			uint32_t key_bytes;
			const uint8_t *key = weir_entry_key(def, e, &key_bytes);
			/* The slot's bits of the hash are the only ones not at hand, and the index has no use for them.
			 */
			uint64_t hash = (v >> 48) << 32 | e->hash;
			struct weir_entry *to_entry = weir_gen_find_or_create(&cl->gen, def, hash, key, key_bytes);
			weir_agg_merge(def, &cl->gen, (uint8_t *)to_entry, &sl->pages, (const uint8_t *)e);
		}
	}
	cl->start = start;
	cl->end = end;
	weir_closed_seal(sl, cl);
	return cl;
}

/* Closes the window of that mark, the earliest one: its rows, or NULL if it has none to give (CHANGES). */
static struct weir_closed *window_take(struct weir_slot *sl, int64_t mark)
{
	const struct weir_state_def *def = sl->def;
	int64_t start = weir_def_start(def, mark), end = mark + weir_def_reach(def);
	if (!weir_def_panes(def)) {
		WEIR_DASSERT(sl->gens[0].start == mark);
		if (def->changes) {
			weir_slot_drop_gen(sl, 0);
			return NULL;
		}
		struct weir_closed *whole = weir_closed_detach(sl, 0);
		whole->start = start;
		whole->end = end;
		return whole;
	}
	struct weir_closed *cl = window_combine(sl, start, end);
	sl->closed_start = mark;
	sl->d.meta = true;
	/* Panes before the start of the next window are in no open one any more. */
	int64_t next = weir_def_start(def, mark + def->advance_ms);
	while (sl->gen_count != 0 && sl->gens[0].start < next)
		weir_slot_drop_gen(sl, 0);
	return cl;
}

static void ready_push(struct weir_slot *sl, struct weir_closed *cl)
{
	cl->next = NULL;
	if (sl->ready == NULL)
		sl->ready = cl;
	else
		sl->ready_last->next = cl;
	sl->ready_last = cl;
}

/* Before a row that misses some windows of its pane: what is closed at task_time leaves the panes. */
static WEIR_COLD void window_freeze(struct weir_slot *sl, int64_t task_time)
{
	const struct weir_state_def *def = sl->def;
	while (sl->gen_count != 0) {
		int64_t mark = window_candidate(sl);
		if (!weir_window_is_closed(mark + weir_def_reach(def), def->grace_ms, task_time))
			break;
		struct weir_closed *cl = window_take(sl, mark);
		if (cl != NULL)
			ready_push(sl, cl);
	}
	/* Windows closed without a row so far must not come from this pane later. */
	int64_t last =
		weir_window_last(task_time - def->grace_ms - weir_def_reach(def), def->advance_ms, def->offset_ms);
	if (last > sl->closed_start) {
		sl->closed_start = last;
		sl->d.meta = true;
	}
}

struct weir_closed *weir_window_close(struct weir_slot *sl, int64_t task_time, bool all, int64_t *end_max)
{
	const struct weir_state_def *def = sl->def;
	struct weir_closed *cl = sl->ready;
	if (cl != NULL && (all || weir_window_is_closed(cl->end, def->grace_ms, task_time))) {
		sl->ready = cl->next;
		cl->next = NULL;
		*end_max = weir_max_i64(*end_max, cl->end);
		return cl;
	}
	while (cl == NULL && sl->gen_count != 0) {
		int64_t mark = window_candidate(sl), end = mark + weir_def_reach(def);
		if (!all && !weir_window_is_closed(end, def->grace_ms, task_time))
			return NULL;
		cl = window_take(sl, mark);
		*end_max = weir_max_i64(*end_max, end);
	}
	return cl;
}

/* ---- applying ---- */

static WEIR_NOINLINE struct weir_gen *slot_gen_slow(struct weir_slot *sl, int64_t start, int64_t step)
{
	uint32_t at = weir_slot_search(sl, start);
	struct weir_gen *g;
	if (at < sl->gen_count && sl->gens[at].start == start)
		g = sl->gens[at].g;
	else
		g = weir_slot_add_gen(sl, at, start);
	sl->current = g;
	sl->current_start = start;
	sl->current_end = start + step;
	return g;
}

WEIR_INLINE struct weir_gen *slot_gen(struct weir_slot *sl, int64_t start, int64_t step)
{
	if (WEIR_LIKELY(sl->current != NULL && sl->current_start == start))
		return sl->current;
	return slot_gen_slow(sl, start, step);
}

struct sweep {
	const struct weir_state_def *def;
	struct weir_slot *const *slots;
	const struct weir_keyed *in;
	struct weir_applied *out;
	int64_t step; /* between starts of generations */
	/* First and last window of the timestamps in [pane, pane_end), as found last. */
	int64_t pane, pane_end, first, last;
	struct weir_probe pr;
};

static void sweep_flush(struct sweep *sw)
{
	if (sw->pr.ln.count != 0)
		weir_apply_lanes(sw->def, &sw->pr, sw->in);
	sw->pr.ln.count = 0;
}

WEIR_INLINE void sweep_add(struct sweep *sw, struct weir_slot *sl, uint16_t row, int64_t start, uint64_t order)
{
	struct weir_lanes *ln = &sw->pr.ln;
	weir_probe_set(&sw->pr, ln->count++, sw->in, row, slot_gen(sl, start, sw->step), order);
	if (ln->count == WEIR_LANES)
		sweep_flush(sw);
}

static void note_late(struct weir_applied *out, uint16_t row)
{
	out->late_row[out->late++] = row;
}

/* First and last window of ts. All of a pane have the same, so that rows in order of time cost no division. */
WEIR_INLINE void sweep_windows(struct sweep *sw, int64_t ts, int64_t *first, int64_t *last)
{
	const struct weir_state_def *def = sw->def;
	if (WEIR_UNLIKELY(ts < sw->pane || ts >= sw->pane_end)) {
		sw->first = weir_def_first(def, ts);
		sw->last = weir_def_last(def, ts);
		/* Whole windows that overlap are told apart by panes nobody keeps: then nothing is remembered. */
		bool single = weir_def_panes(def) || def->advance_ms == def->size_ms;
		sw->pane = single ? weir_window_last(ts, sw->step, def->offset_ms) : 0;
		sw->pane_end = single ? sw->pane + sw->step : 0;
	}
	*first = sw->first;
	*last = sw->last;
}

/* One row whose windows may be closed in part, or that falls into several generations. */
static void sweep_row(struct sweep *sw, uint16_t row, int64_t task_time)
{
	const struct weir_state_def *def = sw->def;
	struct weir_slot *sl = sw->slots[sw->in->slot[row]];
	int64_t ts = sw->in->time[row], first, last;
	sweep_windows(sw, ts, &first, &last);
	uint32_t missed = 0;
	while (first <= last && weir_window_is_closed(first + weir_def_reach(def), def->grace_ms, task_time)) {
		first += def->advance_ms;
		missed++;
	}
	sw->out->late_windows += missed;
	if (first > last) {
		note_late(sw->out, row);
		return;
	}
	uint64_t order = ++sl->records;
	sw->out->applied++;
	if (!weir_def_panes(def)) {
		for (; first <= last; first += def->advance_ms)
			sweep_add(sw, sl, row, first, order);
		return;
	}
	if (missed != 0) {
		/* Rows before this one belong into the windows that are about to be frozen. */
		sweep_flush(sw);
		window_freeze(sl, task_time);
	}
	sweep_add(sw, sl, row, sw->pane, order);
}

/* Two times at once; any alignment. */
typedef uint64_t times2 __attribute__((vector_size(16), aligned(8), may_alias));

/* Whether all rows' times are in [start, end). Cost: 4 instructions a row where no row is left out. */
static bool all_within(const struct weir_keyed *in, const uint16_t *rows, uint32_t count, int64_t start, int64_t end)
{
	uint64_t outside = 0; /* its sign: some time is below start, or not below end */
	uint32_t i = 0;
	if (rows[count - 1] - rows[0] == (int)count - 1) {
		const times2 first = {(uint64_t)start, (uint64_t)start}, last = {(uint64_t)end - 1, (uint64_t)end - 1};
		times2 out = {0, 0};
		for (; i + 2 <= count; i += 2) {
			times2 t = *(const times2 *)(const void *)(in->time + rows[0] + i);
			out |= (t - first) | (last - t);
		}
		outside = out[0] | out[1];
	}
	for (; i < count; i++)
		outside |= ((uint64_t)in->time[rows[i]] - (uint64_t)start) |
			   ((uint64_t)end - 1 - (uint64_t)in->time[rows[i]]);
	return outside >> 63 == 0;
}

/* All rows fall into the one generation that starts at `start`, which is open: the usual path. Cost: about 16
 * instructions a row besides the lanes. */
static void sweep_single(struct sweep *sw, const uint16_t *rows, uint32_t count, int64_t start)
{
	sw->out->applied += count;
	while (count != 0) {
		uint32_t n = count < WEIR_LANES ? count : WEIR_LANES;
#pragma GCC unroll 4
		for (uint32_t i = 0; i < n; i++) {
			struct weir_slot *sl = sw->slots[sw->in->slot[rows[i]]];
			weir_probe_set(&sw->pr, i, sw->in, rows[i], slot_gen(sl, start, sw->step), ++sl->records);
		}
		sw->pr.ln.count = n;
		sweep_flush(sw);
		rows += n;
		count -= n;
	}
}

/* No row misses a window and each falls into one generation: without a division per row. */
static void sweep_fast(struct sweep *sw, const uint16_t *rows, uint32_t count)
{
	int64_t start = 0, end = 0, offset = sw->def->offset_ms, step = sw->step;
	for (uint32_t i = 0; i < count; i++) {
		uint16_t row = rows[i];
		int64_t ts = sw->in->time[row];
		struct weir_slot *sl = sw->slots[sw->in->slot[row]];
		if (WEIR_UNLIKELY(ts < start || ts >= end)) {
			start = weir_window_last(ts, step, offset);
			end = start + step;
		}
		sweep_add(sw, sl, row, start, ++sl->records);
	}
	sw->out->applied += count;
}

void weir_window_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		       const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out)
{
	if (count == 0)
		return;
	struct sweep sw;
	sw.def = def;
	sw.slots = slots;
	sw.in = in;
	sw.out = out;
	sw.step = weir_def_step(def);
	sw.pr.ln.count = 0;
	sw.pane = sw.pane_end = 0;
	bool single = weir_def_panes(def) || def->advance_ms == def->size_ms;
	/* Task time only grows, so if the smallest window of all is open at the last row, every window of every row
	 * was. */
	int64_t task_time_end = weir_clock_at(def, clock, in->run[rows[count - 1]]);
	int64_t ts_first = in->time[rows[0]];
	if (single && ts_first >= -WEIR_TIME_MAX && ts_first <= WEIR_TIME_MAX) {
		int64_t start = weir_window_last(ts_first, sw.step, def->offset_ms);
		if (start >= -WEIR_TIME_MAX && start + sw.step <= WEIR_TIME_MAX &&
		    !weir_window_is_closed(weir_def_first(def, start) + weir_def_reach(def), def->grace_ms,
					   task_time_end) &&
		    all_within(in, rows, count, start, start + sw.step)) {
			sweep_single(&sw, rows, count, start);
			return;
		}
	}
	int64_t ts_min = INT64_MAX, ts_max = INT64_MIN;
	for (uint32_t i = 0; i < count; i++) {
		int64_t ts = in->time[rows[i]];
		ts_min = weir_min_i64(ts_min, ts);
		ts_max = weir_max_i64(ts_max, ts);
	}
	bool in_range = ts_min >= -WEIR_TIME_MAX && ts_max <= WEIR_TIME_MAX;
	if (single && in_range &&
	    !weir_window_is_closed(weir_def_first(def, ts_min) + weir_def_reach(def), def->grace_ms, task_time_end)) {
		sweep_fast(&sw, rows, count);
	} else {
		for (uint32_t i = 0; i < count; i++) {
			uint16_t row = rows[i];
			int64_t ts = in->time[row];
			if (ts < -WEIR_TIME_MAX || ts > WEIR_TIME_MAX)
				note_late(out, row); /* beyond all arithmetic; decoding rejects these */
			else
				sweep_row(&sw, row, weir_clock_at(def, clock, in->run[row]));
		}
	}
	sweep_flush(&sw);
}
