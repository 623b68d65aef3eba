/* test_state.c: random rows, order points, barriers, commits, crashes and restores over a compacted log, against a twin
 * that keeps every record and computes every row anew. One thread. STATE_SEED and STATE_RUNS override; a failing seed
 * is printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/arena.h"
#include "hotpath/core/diag.h"
#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

static uint64_t rng_state;
static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state * UINT64_C(0x2545f4914f6cdd1d);
}
static uint32_t below(uint32_t n)
{
	return (uint32_t)(rng() >> 33) % n;
}

/* ---- what happens ---- */

enum op_kind { OP_ROWS, OP_POINT, OP_END };
struct op {
	enum op_kind kind;
	uint32_t partition;
	uint32_t count;
	struct rig_row *rows;
	bool skip_changes_close; /* POINT: only asks for closed windows */
};

/* ---- the twin ---- */

struct twin_row {
	struct rig_row r;
	uint64_t order;
};
/* A window or session of a key with its records. */
struct twin_win {
	uint32_t slot;
	int64_t key, start, last; /* last: of time windows the end */
	uint32_t *recs;
	uint32_t count, capacity;
	int64_t time;
	bool emitted, listed, closed, swallowed;
};
struct twin_change {
	uint32_t win;
	bool is_delete;
};
struct twin {
	struct twin_row *rows;
	uint32_t row_count;
	struct twin_win *wins;
	uint32_t win_count, win_capacity;
	struct twin_change *changes;
	uint32_t change_count, change_capacity;
	uint64_t orders[RIG_SLOTS];
	int64_t t[2], task_time, end_max;
	uint32_t late, late_windows;
	struct weir_buf out;
};

static void twin_free(struct twin *tw)
{
	for (uint32_t i = 0; i < tw->win_count; i++)
		free(tw->wins[i].recs);
	free(tw->wins);
	free(tw->rows);
	free(tw->changes);
	weir_buf_fini(&tw->out);
	memset(tw, 0, sizeof *tw);
	tw->t[0] = tw->t[1] = tw->task_time = tw->end_max = INT64_MIN;
}

static uint32_t twin_win(struct twin *tw, uint32_t slot, int64_t key, int64_t start, int64_t last)
{
	if (tw->win_count == tw->win_capacity) {
		tw->win_capacity = tw->win_capacity == 0 ? 64 : tw->win_capacity * 2;
		tw->wins = weir_xrealloc(tw->wins, tw->win_capacity * sizeof *tw->wins);
	}
	tw->wins[tw->win_count] =
		(struct twin_win){.slot = slot, .key = key, .start = start, .last = last, .time = INT64_MIN};
	return tw->win_count++;
}

static void twin_take(struct twin *tw, uint32_t win, uint32_t rec)
{
	struct twin_win *w = &tw->wins[win];
	if (w->count == w->capacity) {
		w->capacity = w->capacity == 0 ? 8 : w->capacity * 2;
		w->recs = weir_xrealloc(w->recs, w->capacity * sizeof *w->recs);
	}
	/* In slot order, however sessions came together. */
	uint32_t at = w->count++;
	while (at > 0 && tw->rows[w->recs[at - 1]].order > tw->rows[rec].order) {
		w->recs[at] = w->recs[at - 1];
		at--;
	}
	w->recs[at] = rec;
	w->time = weir_max_i64(w->time, tw->rows[rec].r.ts);
}

static void twin_change(struct twin *tw, uint32_t win, bool is_delete)
{
	if (tw->change_count == tw->change_capacity) {
		tw->change_capacity = tw->change_capacity == 0 ? 64 : tw->change_capacity * 2;
		tw->changes = weir_xrealloc(tw->changes, tw->change_capacity * sizeof *tw->changes);
	}
	tw->changes[tw->change_count++] = (struct twin_change){win, is_delete};
}

static void twin_touch(struct twin *tw, const struct weir_state_def *def, uint32_t win)
{
	if (def->changes && !tw->wins[win].listed) {
		tw->wins[win].listed = true;
		twin_change(tw, win, false);
	}
}

static void put_wide(struct weir_buf *b, weir_i128 v)
{
	char digits[48];
	int at = sizeof digits - 1;
	weir_u128 u = v < 0 ? -(weir_u128)v : (weir_u128)v;
	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + (int)(u % 10));
		u /= 10;
	} while (u != 0);
	weir_buf_printf(b, " %s%s", v < 0 ? "-" : "", digits + at);
}

static weir_i128 arg_of(const struct rig_row *r, int col)
{
	switch (col) {
	case RIG_DOUBLE:
		return (weir_i128)r->real;
	case RIG_DECIMAL38:
		return r->wide;
	case RIG_BOOLEAN:
		return r->flag;
	default:
		return r->value;
	}
}

static void put_value(struct weir_buf *b, int col, weir_i128 v)
{
	if (col == RIG_DOUBLE)
		weir_buf_printf(b, " %.15g", (double)v);
	else
		put_wide(b, v);
}

/* One aggregate over the records of w, computed plainly. */
static void twin_agg(struct twin *tw, const struct weir_agg *a, const struct twin_win *w, struct weir_buf *b)
{
	const struct rig_row *best = NULL;
	weir_i128 sum = 0;
	uint32_t n = 0, distinct = 0;
	for (uint32_t i = 0; i < w->count; i++) {
		const struct rig_row *r = &tw->rows[w->recs[i]].r;
		if (a->filter >= 0 && !r->flag)
			continue;
		if (a->arg >= 0 && r->null && a->arg != RIG_BOOLEAN)
			continue;
		n++;
		if (a->arg < 0)
			continue;
		bool text = a->arg == RIG_STRING, better = best == NULL, seen = false;
		weir_i128 v = text ? 0 : arg_of(r, a->arg);
		sum += v;
		if (!better && (a->kind == WEIR_AGG_MIN || a->kind == WEIR_AGG_MAX)) {
			int c = text ? strcmp(r->text, best->text)
				     : (v > arg_of(best, a->arg)) - (v < arg_of(best, a->arg));
			better = a->kind == WEIR_AGG_MIN ? c < 0 : c > 0;
		}
		if (better || a->kind == WEIR_AGG_LAST_VALUE)
			best = r;
		for (uint32_t j = 0; a->kind == WEIR_AGG_COUNT_DISTINCT && j < i && !seen; j++) {
			const struct rig_row *o = &tw->rows[w->recs[j]].r;
			if ((a->filter < 0 || o->flag) && !o->null)
				seen = text ? strcmp(o->text, r->text) == 0 : arg_of(o, a->arg) == v;
		}
		distinct += !seen;
	}
	if (a->kind == WEIR_AGG_COUNT_STAR || a->kind == WEIR_AGG_COUNT)
		weir_buf_printf(b, " %u", n);
	else if (a->kind == WEIR_AGG_COUNT_DISTINCT)
		weir_buf_printf(b, " %u", distinct);
	else if (n == 0)
		weir_buf_puts(b, " null");
	else if (a->kind == WEIR_AGG_SUM)
		put_value(b, a->arg, sum);
	else if (a->kind == WEIR_AGG_AVG && a->arg == RIG_DOUBLE)
		weir_buf_printf(b, " %.15g", (double)sum / n);
	else if (a->kind == WEIR_AGG_AVG && a->arg == RIG_DECIMAL12) {
		weir_i128 x = sum * 10000 * 2, q = (x < 0 ? x - n : x + n) / (2 * (weir_i128)n);
		put_wide(b, q);
	} else if (a->kind == WEIR_AGG_AVG)
		put_wide(b, sum / n);
	else if (a->arg == RIG_STRING)
		weir_buf_printf(b, " %s", best->text);
	else
		put_value(b, a->arg, arg_of(best, a->arg));
}

static void twin_line(struct twin *tw, const struct weir_state_def *def, const struct twin_win *w, enum weir_op op,
		      int64_t time)
{
	struct weir_buf *b = &tw->out;
	weir_buf_printf(b, "%s k%lld",
			op == WEIR_OP_INSERT   ? "+I"
			: op == WEIR_OP_UPDATE ? "+U"
					       : "-D",
			(long long)w->key);
	int64_t end = def->kind == WEIR_STATE_SESSION ? w->last + def->gap_ms : w->last;
	if (def->kind != WEIR_STATE_TABLE)
		weir_buf_printf(b, " [%lld,%lld)", (long long)w->start, (long long)end);
	for (uint32_t i = 0; i < def->agg_count && op != WEIR_OP_DELETE; i++)
		twin_agg(tw, &def->aggs[i], w, b);
	weir_buf_printf(b, " @%lld\n", (long long)time);
}

/* Into window [start, end) if that is open; the number of windows that the record has entered so far. */
static uint32_t twin_enter(struct twin *tw, const struct weir_state_def *def, uint32_t rec, int64_t start, int64_t end,
			   int64_t task_time, uint32_t entered)
{
	const struct rig_row r = tw->rows[rec].r;
	if (task_time >= end + def->grace_ms) {
		tw->late_windows++;
		return entered;
	}
	if (entered == 0)
		tw->rows[rec].order = ++tw->orders[r.slot];
	uint32_t win = 0;
	while (win < tw->win_count &&
	       (tw->wins[win].slot != r.slot || tw->wins[win].key != r.key || tw->wins[win].start != start ||
		tw->wins[win].last != end || tw->wins[win].closed))
		win++;
	if (win == tw->win_count)
		win = twin_win(tw, r.slot, r.key, start, end);
	twin_take(tw, win, rec);
	twin_touch(tw, def, win);
	return entered + 1;
}

static void twin_window_row(struct twin *tw, const struct weir_state_def *def, uint32_t rec, int64_t task_time)
{
	const struct rig_row r = tw->rows[rec].r;
	uint32_t entered = 0;
	int64_t first = r.ts;
	if (def->cumulative) {
		while ((first - def->offset_ms) % def->size_ms != 0)
			first--;
		for (int64_t end = first + def->advance_ms; end <= first + def->size_ms; end += def->advance_ms)
			if (end > r.ts)
				entered = twin_enter(tw, def, rec, first, end, task_time, entered);
		tw->late += entered == 0;
		return;
	}
	/* All starts on the grid that cover ts, upwards. */
	while (weir_floor_div(first - def->offset_ms, 1) % def->advance_ms != 0 || first > r.ts - def->size_ms)
		first--;
	for (int64_t s = first; s <= r.ts; s += def->advance_ms) {
		if (r.ts >= s + def->size_ms)
			continue;
		if (r.ts >= 0 && s < 0 && (def->offset_ms == 0 || s <= -def->advance_ms))
			continue;
		entered = twin_enter(tw, def, rec, s, s + def->size_ms, task_time, entered);
	}
	tw->late += entered == 0;
}

static void twin_session_row(struct twin *tw, const struct weir_state_def *def, uint32_t rec, int64_t task_time)
{
	struct rig_row r = tw->rows[rec].r;
	uint32_t hit[2], hits = 0;
	if (def->shared)
		r.key = -1; /* of all keys */
	for (uint32_t i = 0; i < tw->win_count; i++) {
		const struct twin_win *w = &tw->wins[i];
		if (w->slot != r.slot || w->key != r.key || w->closed || w->swallowed)
			continue;
		if (task_time > w->last + def->gap_ms + def->grace_ms)
			continue;
		if (r.ts >= w->start - def->gap_ms && r.ts <= w->last + def->gap_ms) {
			assert_true(hits < 2);
			hit[hits++] = i;
		}
	}
	if (hits == 0 && task_time > r.ts + def->gap_ms + def->grace_ms) {
		tw->late++;
		tw->late_windows++;
		return;
	}
	tw->rows[rec].order = ++tw->orders[r.slot];
	if (hits == 2 && tw->wins[hit[0]].start > tw->wins[hit[1]].start) {
		uint32_t swap = hit[0];
		hit[0] = hit[1];
		hit[1] = swap;
	}
	int64_t start = r.ts, last = r.ts;
	for (uint32_t i = 0; i < hits; i++) {
		start = weir_min_i64(start, tw->wins[hit[i]].start);
		last = weir_max_i64(last, tw->wins[hit[i]].last);
	}
	uint32_t win = hits != 0 ? hit[0] : 0;
	bool moved = hits != 0 && (start != tw->wins[win].start || last != tw->wins[win].last);
	/* The session goes on as another one: after a merge, or when what was shown no longer has these bounds. */
	if (hits == 0 || hits == 2 || (moved && tw->wins[win].emitted)) {
		uint32_t fresh = twin_win(tw, r.slot, r.key, start, last);
		for (uint32_t i = 0; i < hits; i++) {
			struct twin_win *w = &tw->wins[hit[i]];
			w->swallowed = true;
			if (w->emitted)
				twin_change(tw, hit[i], true);
			for (uint32_t j = 0; j < w->count; j++)
				twin_take(tw, fresh, tw->wins[hit[i]].recs[j]);
		}
		win = fresh;
	}
	tw->wins[win].start = start;
	tw->wins[win].last = last;
	twin_take(tw, win, rec);
	twin_touch(tw, def, win);
}

static const struct twin *sort_twin;
static int by_start_down(const void *a, const void *b)
{
	int64_t x = sort_twin->wins[*(const uint32_t *)a].start, y = sort_twin->wins[*(const uint32_t *)b].start;
	return (x < y) - (x > y);
}

/* Sliding windows, step by step as Kafka Streams does it, over windows that hold their records. last: the end. */
static void twin_sliding_row(struct twin *tw, const struct weir_state_def *def, uint32_t rec, int64_t task_time)
{
	const struct rig_row r = tw->rows[rec].r;
	int64_t ts = r.ts, d = def->size_ms, left = ts >= 0 && ts < d ? 0 : ts - d, closed = task_time;
	if (closed != INT64_MIN)
		closed -= def->grace_ms;
	if (ts + d < closed) {
		tw->late++;
		tw->late_windows++;
		return;
	}
	uint32_t *of_key = weir_xmalloc((tw->win_count + 1) * sizeof *of_key), n = 0, entered = 0;
	for (uint32_t i = 0; i < tw->win_count; i++)
		if (tw->wins[i].slot == r.slot && tw->wins[i].key == r.key && tw->wins[i].time + 1 + d >= closed &&
		    tw->wins[i].start >= ts - 2 * d)
			of_key[n++] = i;
	sort_twin = tw;
	qsort(of_key, n, sizeof *of_key, by_start_down);
	int64_t previous = INT64_MIN, starts[4] = {0};
	uint32_t after = UINT32_MAX, before = UINT32_MAX, from[4], count = 0, present = 0;
	bool has_left = false, has_right = false, made = false;
	uint32_t *enter = weir_xmalloc((n + 1) * sizeof *enter);
	for (uint32_t i = 0; i < n; i++) {
		const struct twin_win *w = &tw->wins[of_key[i]];
		has_right |= w->start == ts + 1;
		if (w->start > ts)
			continue;
		if (w->last < ts) {
			if (before == UINT32_MAX && !made && (!has_left || previous != INT64_MIN)) {
				before = of_key[i];
				previous = w->time;
			}
			continue;
		}
		enter[present++] = of_key[i];
		if (w->last > ts && after == UINT32_MAX)
			after = of_key[i];
		if (w->start == left) {
			has_left = true;
			made = w->last == ts && w->time == ts;
			previous = w->time < ts ? w->time : INT64_MIN;
		}
	}
	if (!made && !has_right && after != UINT32_MAX && tw->wins[after].time > ts) {
		uint32_t win = twin_win(tw, r.slot, r.key, ts + 1, ts + 1 + d);
		for (uint32_t i = 0; i < tw->wins[after].count; i++)
			twin_take(tw, win, tw->wins[after].recs[i]);
		twin_touch(tw, def, win);
	}
	bool there = false;
	for (uint32_t i = 0; i < n; i++)
		there |= previous != INT64_MIN && tw->wins[of_key[i]].start == previous + 1;
	if (previous != INT64_MIN && previous + 1 + d >= ts && !there) {
		starts[count] = previous + 1;
		from[count++] = UINT32_MAX;
	}
	if (!has_left && (count == 0 || starts[0] != left)) {
		starts[count] = left;
		from[count++] = previous != INT64_MIN && previous >= left ? before : UINT32_MAX;
	}
	for (uint32_t i = 0; i < present + count; i++) {
		int64_t start = i < present ? tw->wins[enter[i]].start : starts[i - present];
		if (start + d < closed) {
			tw->late_windows++;
			continue;
		}
		uint32_t win = i < present ? enter[i] : twin_win(tw, r.slot, r.key, start, start + d);
		if (i >= present && from[i - present] != UINT32_MAX)
			for (uint32_t j = 0; j < tw->wins[from[i - present]].count; j++)
				twin_take(tw, win, tw->wins[from[i - present]].recs[j]);
		if (entered++ == 0)
			tw->rows[rec].order = ++tw->orders[r.slot];
		twin_take(tw, win, rec);
		twin_touch(tw, def, win);
	}
	tw->late += entered == 0;
	free(enter);
	free(of_key);
}

static void twin_rows(struct twin *tw, const struct weir_state_def *def, const struct op *op)
{
	int64_t part = tw->t[op->partition], others = tw->t[1 - op->partition], before = tw->task_time, run = INT64_MIN;
	tw->late = tw->late_windows = 0;
	for (uint32_t i = 0; i < op->count; i++) {
		tw->rows = weir_xrealloc(tw->rows, (tw->row_count + 1) * sizeof *tw->rows);
		uint32_t rec = tw->row_count++;
		tw->rows[rec] = (struct twin_row){op->rows[i], 0};
		run = weir_max_i64(run, op->rows[i].ts);
		int64_t task_time = weir_max_i64(before, weir_min_i64(others, weir_max_i64(part, run)));
		if (def->kind == WEIR_STATE_WINDOW) {
			twin_window_row(tw, def, rec, task_time);
		} else if (def->kind == WEIR_STATE_SESSION) {
			twin_session_row(tw, def, rec, task_time);
		} else if (def->kind == WEIR_STATE_SLIDING) {
			twin_sliding_row(tw, def, rec, task_time);
		} else {
			uint32_t win = 0;
			while (win < tw->win_count &&
			       (tw->wins[win].slot != op->rows[i].slot || tw->wins[win].key != op->rows[i].key))
				win++;
			if (win == tw->win_count)
				win = twin_win(tw, op->rows[i].slot, op->rows[i].key, 0, 0);
			tw->rows[rec].order = ++tw->orders[op->rows[i].slot];
			twin_take(tw, win, rec);
			twin_touch(tw, def, win);
		}
	}
	tw->t[op->partition] = weir_max_i64(part, run);
	tw->task_time = weir_max_i64(before, weir_min_i64(tw->t[0], tw->t[1]));
}

static int by_end_then_key(const void *a, const void *b)
{
	const struct twin_win *x = &sort_twin->wins[*(const uint32_t *)a], *y = &sort_twin->wins[*(const uint32_t *)b];
	int64_t xe = x->last, ye = y->last;
	char xk[32], yk[32];
	if (xe != ye)
		return xe < ye ? -1 : 1;
	snprintf(xk, sizeof xk, "k%lld", (long long)x->key);
	snprintf(yk, sizeof yk, "k%lld", (long long)y->key);
	return strcmp(xk, yk);
}

static int by_text(const void *a, const void *b)
{
	char x[32], y[32];
	snprintf(x, sizeof x, "k%lld", (long long)*(const int64_t *)a);
	snprintf(y, sizeof y, "k%lld", (long long)*(const int64_t *)b);
	return strcmp(x, y);
}

/* A session of all keys: a line for each key among its records. */
static void twin_shared_lines(struct twin *tw, const struct weir_state_def *def, const struct twin_win *w)
{
	int64_t *keys = weir_xmalloc((w->count + 1) * sizeof *keys);
	for (uint32_t i = 0; i < w->count; i++)
		keys[i] = tw->rows[w->recs[i]].r.key;
	qsort(keys, w->count, sizeof *keys, by_text);
	for (uint32_t i = 0; i < w->count; i++) {
		if (i != 0 && keys[i] == keys[i - 1])
			continue;
		struct twin_win one = *w;
		one.key = keys[i];
		one.count = 0;
		one.recs = weir_xmalloc(w->count * sizeof *one.recs);
		for (uint32_t j = 0; j < w->count; j++)
			if (tw->rows[w->recs[j]].r.key == keys[i])
				one.recs[one.count++] = w->recs[j];
		twin_line(tw, def, &one, WEIR_OP_INSERT, w->last);
		free(one.recs);
	}
	free(keys);
}

static void twin_close(struct twin *tw, const struct weir_state_def *def, bool all)
{
	uint32_t *due = weir_xmalloc((tw->win_count + 1) * sizeof *due);
	for (uint32_t s = 0; s < RIG_SLOTS; s++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < tw->win_count; i++) {
			struct twin_win *w = &tw->wins[i];
			int64_t close = def->kind == WEIR_STATE_SESSION ? w->last + def->gap_ms + def->grace_ms + 1
									: w->last + def->grace_ms;
			if (w->slot != s || w->closed || w->swallowed || def->kind == WEIR_STATE_TABLE)
				continue;
			if (def->kind == WEIR_STATE_SLIDING) {
				close++; /* ends are inclusive */
				/* CHANGES: no row leaves; at the end all that are still known count. */
				if (def->changes &&
				    (!all || tw->task_time > w->time + def->size_ms + 1 + def->grace_ms))
					continue;
			}
			if (all || tw->task_time >= close)
				due[n++] = i;
		}
		sort_twin = tw;
		qsort(due, n, sizeof *due, by_end_then_key);
		for (uint32_t i = 0; i < n; i++) {
			struct twin_win *w = &tw->wins[due[i]];
			w->closed = true;
			int64_t end = def->kind == WEIR_STATE_SESSION ? w->last + def->gap_ms : w->last;
			tw->end_max = weir_max_i64(tw->end_max, end + (def->kind == WEIR_STATE_SLIDING));
			if (def->shared)
				twin_shared_lines(tw, def, w);
			else if (!def->changes)
				twin_line(tw, def, w, WEIR_OP_INSERT,
					  def->kind == WEIR_STATE_SESSION || def->kind == WEIR_STATE_SLIDING ? w->last
													     : end - 1);
		}
	}
	free(due);
}

/* HAVING COUNT(*) % 3 <> 0, say: rows that do not pass are not emitted. */
static bool row_passes(int64_t count)
{
	return count % 3 != 0;
}

static void twin_drain(struct twin *tw, const struct weir_state_def *def)
{
	for (uint32_t s = 0; s < RIG_SLOTS; s++) {
		for (uint32_t i = 0; i < tw->change_count; i++) {
			const struct twin_change *c = &tw->changes[i];
			struct twin_win *w = &tw->wins[c->win];
			if (w->slot != s || (!c->is_delete && w->swallowed))
				continue;
			int64_t time = def->kind == WEIR_STATE_SESSION ? w->last : w->time;
			twin_line(tw, def, w,
				  c->is_delete ? WEIR_OP_DELETE
				  : w->emitted ? WEIR_OP_UPDATE
					       : WEIR_OP_INSERT,
				  time);
			if (!c->is_delete) {
				w->listed = false;
				w->emitted = row_passes(w->count);
			}
		}
	}
	tw->change_count = 0;
}

static void twin_op(struct twin *tw, const struct weir_state_def *def, const struct op *op)
{
	if (op->kind == OP_ROWS) {
		twin_rows(tw, def, op);
		return;
	}
	if (def->changes && !op->skip_changes_close)
		twin_drain(tw, def);
	twin_close(tw, def, op->kind == OP_END);
	if (def->changes && !op->skip_changes_close)
		twin_drain(tw, def);
}

/* ---- the real one ---- */

static void real_drain(struct rig *rg)
{
	for (uint32_t s = 0; s < rg->slot_count; s++) {
		while (weir_slot_changes(rg->slots[s], &rg->rows) != 0) {
			rig_print(rg);
			for (uint32_t i = 0; i < rg->rows.count; i++)
				if (rg->rows.entry[i] != NULL)
					weir_slot_set_emitted(rg->slots[s], rg->rows.entry[i],
							      row_passes(rg->rows.cols[1].i64[i]));
		}
	}
}

static void real_op(struct rig *rg, struct twin *tw, const struct op *op)
{
	if (op->kind == OP_ROWS) {
		struct weir_clock ck = {tw->task_time, tw->t[1 - op->partition], tw->t[op->partition]};
		for (uint32_t i = 0; i < op->count; i++)
			rig_add(rg, &op->rows[i]);
		rig_apply_clock(rg, &ck);
		return;
	}
	if (rg->def.changes && !op->skip_changes_close)
		real_drain(rg);
	rig_close(rg, tw->task_time, op->kind == OP_END);
	if (rg->def.changes && !op->skip_changes_close)
		real_drain(rg);
}

/* ---- the log ---- */

struct message {
	bool page;
	uint32_t slot, number, part;
	uint8_t *body; /* NULL: tombstone */
	uint32_t bytes;
	uint64_t epoch;
};
struct fake_log {
	struct message *m;
	uint32_t count, capacity;
	uint64_t epoch; /* of the barrier being written */
};

static void log_put(struct fake_log *lg, struct message m, const uint8_t *body)
{
	if (lg->count == lg->capacity) {
		lg->capacity = lg->capacity == 0 ? 64 : lg->capacity * 2;
		lg->m = weir_xrealloc(lg->m, lg->capacity * sizeof *lg->m);
	}
	if (body != NULL) {
		m.body = weir_xmalloc(m.bytes);
		memcpy(m.body, body, m.bytes);
	}
	m.epoch = lg->epoch;
	lg->m[lg->count++] = m;
}
static void log_pack(void *ctx, uint32_t slot, uint32_t k, const uint8_t *body, uint32_t bytes)
{
	log_put(ctx, (struct message){false, slot, k, 0, NULL, bytes, 0}, body);
}
static void log_page(void *ctx, uint32_t slot, uint32_t page, uint32_t part, const uint8_t *body, uint32_t bytes)
{
	log_put(ctx, (struct message){true, slot, page, part, NULL, bytes, 0}, body);
}

/* Drops messages beyond the committed epoch, then some (or all) that a later one of the same key replaces. */
static void log_crash_and_compact(struct fake_log *lg, uint64_t committed, uint32_t keep_percent)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < lg->count; i++) {
		struct message *m = &lg->m[i];
		bool replaced = false;
		for (uint32_t j = i + 1; j < lg->count && !replaced && m->epoch <= committed; j++) {
			const struct message *o = &lg->m[j];
			replaced = o->epoch <= committed && o->page == m->page && o->slot == m->slot &&
				   o->number == m->number && o->part == m->part;
		}
		bool gone = m->epoch > committed || (replaced && below(100) >= keep_percent);
		/* A tombstone goes once all before it have gone. */
		if (!gone && !replaced && m->body == NULL && keep_percent == 0)
			gone = true;
		if (gone)
			free(m->body);
		else
			lg->m[n++] = *m;
	}
	lg->count = n;
}

static void log_free(struct fake_log *lg)
{
	for (uint32_t i = 0; i < lg->count; i++)
		free(lg->m[i].body);
	free(lg->m);
}

struct marker {
	uint64_t epoch;
	uint32_t op_count;
	struct weir_buf saved[RIG_SLOTS];
};

static void restore(struct rig *rg, const struct fake_log *lg, const struct marker *mk)
{
	rig_destroy_slots(rg);
	assert_int_equal(weir_arena_bytes(rg->ar), 0);
	rig_create_slots(rg);
	for (uint32_t s = 0; s < rg->slot_count; s++) {
		struct weir_diag *dg = NULL;
		if (mk->saved[s].bytes == 0)
			continue;
		enum weir_err err = weir_slot_load(rg->slots[s], mk->saved[s].data, mk->saved[s].bytes, &dg);
		for (uint32_t i = 0; i < lg->count && err == WEIR_OK; i++) {
			const struct message *m = &lg->m[i];
			if (m->slot != s)
				continue;
			if (m->page)
				err = weir_slot_restore_page(rg->slots[s], m->number, m->part, m->body, m->bytes, &dg);
			else
				err = weir_slot_restore_pack(rg->slots[s], m->number, m->body, m->bytes, &dg);
		}
		if (err == WEIR_OK)
			err = weir_slot_restore_finish(rg->slots[s], &dg);
		if (err != WEIR_OK)
			print_error("%s\n", weir_diag_text(dg));
		assert_int_equal(err, WEIR_OK);
	}
}

/* ---- a run ---- */

static const char *const aggs_of[] = {
	"COUNT(*) SUM:0 MIN:0 MAX:0 AVG:0",
	"COUNT(*) MIN:2 MAX:2 FIRST_VALUE:2 LAST_VALUE:2 COUNT_DISTINCT:2",
	"COUNT(*) SUM:5 AVG:5 SUM:3:4 FIRST_VALUE:3 LAST_VALUE:0 SUM:1 AVG:1 MIN:1 MAX:3",
	"COUNT(*) COUNT:0 COUNT_DISTINCT:0:4 LAST_VALUE:2:4 COUNT(*):4 FIRST_VALUE:0 MIN:4 COUNT_DISTINCT:3",
};

static struct weir_state_def random_def(void)
{
	struct weir_state_def def = {.grace_ms = below(3) == 0 ? 0 : below(40)};
	uint32_t kind = below(12);
	if (kind < 4) {
		def.kind = WEIR_STATE_WINDOW;
		def.size_ms = 5 + below(40);
		def.advance_ms = kind % 2 == 0 ? def.size_ms : 1 + below((uint32_t)def.size_ms);
		def.offset_ms = below(3) == 0 ? below(50) : 0;
		def.changes = kind >= 2;
	} else if (kind < 6) {
		def.kind = WEIR_STATE_SESSION;
		def.gap_ms = 1 + below(30);
		def.changes = kind == 5;
	} else if (kind >= 10) {
		def.kind = WEIR_STATE_SLIDING;
		def.size_ms = below(30);
		def.changes = kind == 11;
	} else if (kind >= 8) {
		def.kind = WEIR_STATE_WINDOW;
		def.cumulative = true;
		def.advance_ms = 1 + below(12);
		def.size_ms = def.advance_ms * (1 + below(6));
		def.offset_ms = below(3) == 0 ? below(50) : 0;
		def.changes = kind == 9;
	} else if (kind == 7) {
		def.kind = WEIR_STATE_SESSION;
		def.gap_ms = 1 + below(6);
		def.shared = true;
	} else {
		def.kind = WEIR_STATE_TABLE;
		def.changes = true;
	}
	return def;
}

static const char *random_text(void)
{
	static char pool[64][40];
	static bool made;
	static char giant[2][20001];
	if (!made) {
		for (int i = 0; i < 64; i++)
			snprintf(pool[i], sizeof pool[i], "%.*s%d", i / 2, "abcdefghijklmnopqrstuvwxyzabcdefghij",
				 i % 9);
		memset(giant[0], 'g', 20000);
		memset(giant[1], 'h', 9000);
		made = true;
	}
	if (below(200) == 0)
		return giant[below(2)];
	return pool[below(64)];
}

static struct op random_rows(int64_t *now, uint32_t keys, uint32_t spread, bool shared)
{
	struct op op = {.kind = OP_ROWS, .partition = below(4) == 0, .count = 1 + below(below(4) == 0 ? 300 : 20)};
	op.rows = weir_xcalloc(op.count, sizeof *op.rows);
	for (uint32_t i = 0; i < op.count; i++) {
		struct rig_row *r = &op.rows[i];
		*now += below(4) == 0 ? below(spread / 4 + 1) : 0;
		r->key = below(keys);
		r->slot = shared ? 0 : (uint32_t)r->key % RIG_SLOTS;
		r->ts = *now - below(spread);
		if (r->ts < -50)
			r->ts = -50;
		r->null = below(8) == 0;
		r->value = (int64_t)below(2000) - 1000;
		r->real = (double)((int64_t)below(2000) - 1000);
		r->wide = (weir_i128)((int64_t)below(2000) - 1000) * (INT64_C(1) << 60);
		r->flag = below(2);
		r->text = random_text();
	}
	return op;
}

struct run {
	struct rig rg;
	struct twin tw;
	struct op *ops;
	uint32_t op_count;
	struct fake_log lg;
	struct marker markers[8]; /* written, not committed */
	uint32_t marker_count;
	struct marker committed;
	uint64_t epoch;
};

static void run_check(struct run *ru, const struct op *op)
{
	weir_buf_put_byte(&ru->tw.out, 0);
	ru->tw.out.bytes = 0;
	const char *real = rig_text(&ru->rg);
	assert_string_equal(real, (const char *)ru->tw.out.data);
	if (op->kind == OP_ROWS) {
		assert_int_equal(ru->rg.applied.late, ru->tw.late);
		assert_int_equal(ru->rg.applied.late_windows, ru->tw.late_windows);
	} else {
		for (uint32_t s = 0; s < RIG_SLOTS; s++)
			assert_true(weir_slot_next_close(ru->rg.slots[s]) > ru->tw.task_time || op->kind == OP_END);
		assert_true(ru->rg.end_max == ru->tw.end_max);
	}
}

static void run_op(struct run *ru, struct op op)
{
	ru->ops = weir_xrealloc(ru->ops, (ru->op_count + 1) * sizeof *ru->ops);
	ru->ops[ru->op_count++] = op;
	real_op(&ru->rg, &ru->tw, &op);
	twin_op(&ru->tw, &ru->rg.def, &op);
	run_check(ru, &op);
}

static void marker_free(struct marker *mk)
{
	for (uint32_t s = 0; s < RIG_SLOTS; s++)
		weir_buf_fini(&mk->saved[s]);
	memset(mk, 0, sizeof *mk);
}

static void run_barrier(struct run *ru)
{
	run_op(ru, (struct op){.kind = OP_POINT});
	ru->lg.epoch = ++ru->epoch;
	struct weir_delta_sink sink = {&ru->lg, log_pack, log_page, NULL};
	struct marker *mk = &ru->markers[ru->marker_count++];
	*mk = (struct marker){.epoch = ru->epoch, .op_count = ru->op_count};
	for (uint32_t s = 0; s < RIG_SLOTS; s++) {
		uint32_t before = ru->lg.count;
		bool changed = weir_slot_barrier(ru->rg.slots[s], ru->epoch, &sink);
		assert_true(changed || ru->lg.count == before);
		weir_slot_save(ru->rg.slots[s], &mk->saved[s]);
	}
}

static void run_commit(struct run *ru)
{
	if (ru->marker_count == 0)
		return;
	marker_free(&ru->committed);
	ru->committed = ru->markers[0];
	ru->marker_count--;
	memmove(ru->markers, ru->markers + 1, ru->marker_count * sizeof *ru->markers);
	for (uint32_t s = 0; s < RIG_SLOTS; s++)
		weir_slot_committed(ru->rg.slots[s], ru->committed.epoch);
}

static void run_crash(struct run *ru)
{
	static const uint32_t keep[] = {0, 50, 100};
	log_crash_and_compact(&ru->lg, ru->committed.epoch, keep[below(3)]);
	for (uint32_t i = 0; i < ru->marker_count; i++)
		marker_free(&ru->markers[i]);
	ru->marker_count = 0;
	ru->epoch = ru->committed.epoch;
	restore(&ru->rg, &ru->lg, &ru->committed);
	/* The twin as of then: all over again. */
	twin_free(&ru->tw);
	for (uint32_t i = ru->committed.op_count; i < ru->op_count; i++)
		free(ru->ops[i].rows);
	ru->op_count = ru->committed.op_count;
	for (uint32_t i = 0; i < ru->op_count; i++)
		twin_op(&ru->tw, &ru->rg.def, &ru->ops[i]);
	ru->tw.out.bytes = 0;
	ru->rg.out.bytes = 0;
	ru->rg.end_max = ru->tw.end_max;
}

static void run_seed(uint64_t seed)
{
	static struct run ru;
	memset(&ru, 0, sizeof ru);
	rng_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	struct weir_state_def def = random_def();
	rig_init(&ru.rg, &def, aggs_of[below(WEIR_COUNT_OF(aggs_of))], RIG_SLOTS);
	twin_free(&ru.tw);
	int64_t now = 0;
	uint32_t keys = 1 + below(below(3) == 0 ? 200 : 12), spread = 1 + below(80), steps = 20 + below(60);
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t what = below(20);
		if (what < 11)
			run_op(&ru, random_rows(&now, keys, spread, def.shared));
		else if (what < 13)
			run_op(&ru, (struct op){.kind = OP_POINT, .skip_changes_close = below(2)});
		else if (what < 17 && ru.marker_count < WEIR_COUNT_OF(ru.markers))
			run_barrier(&ru);
		else if (what < 19)
			run_commit(&ru);
		else
			run_crash(&ru);
	}
	run_op(&ru, (struct op){.kind = OP_POINT});
	run_op(&ru, (struct op){.kind = OP_END});
	for (uint32_t i = 0; i < ru.op_count; i++)
		free(ru.ops[i].rows);
	free(ru.ops);
	for (uint32_t i = 0; i < ru.marker_count; i++)
		marker_free(&ru.markers[i]);
	marker_free(&ru.committed);
	log_free(&ru.lg);
	twin_free(&ru.tw);
	rig_fini(&ru.rg);
}

static void test_against_the_twin(void **state)
{
	(void)state;
	const char *seed = getenv("STATE_SEED"), *runs = getenv("STATE_RUNS");
	uint64_t from = seed != NULL ? strtoull(seed, NULL, 10) : 1, n = runs != NULL ? strtoull(runs, NULL, 10) : 400;
	for (uint64_t s = from; s < from + n; s++) {
		print_message("seed %llu\r", (unsigned long long)s);
		run_seed(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_twin)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
