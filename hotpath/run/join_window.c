/* join_window.c: joins of rows in windows: a row is kept in each of its windows, and a window's pairs leave when it
 * closes, with the rows that had no match. @thread worker
 *
 *   row --> its windows (those that are not closed) --> join_state: one generation a window and side
 *   order point: first closed window --> rows by key, left before right --> pairs, rows alone --> dropped --> next
 *
 * Cost: closing is a look-up for each left row and a sort of the window's keys. */
#include "hotpath/run/join_private.h"

#include "hotpath/core/hash.h"
#include "hotpath/time/window.h"

void weir_join_apply_window(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h,
			    int64_t task)
{
	const struct weir_state_def *def = jn->def;
	struct weir_counters *now = jn->w->st->now;
	bool alone = h->null_key && !def->sides[h->side].outer;
	uint32_t entered = 0, missed = 0;
	int64_t start = weir_window_first(h->r.time, def->size_ms, def->advance_ms, def->offset_ms);
	for (; start <= h->r.time; start += def->advance_ms) {
		struct weir_join_row r = h->r;
		r.time = start + def->size_ms - 1;
		if (weir_join_is_late(def, r.time, task)) {
			missed++;
			continue;
		}
		entered++;
		if (!alone)
			weir_join_window_put(sl, h->side, &r, h->null_key);
	}
	now->late_windows += missed;
	if (entered == 0) {
		weir_join_note_late(jn, b, sl->number, h);
		return;
	}
	now->applied += !alone;
	now->filtered += alone;
	sl->records += !alone;
}

/* The records of the other side that match the left row at window_at, into found. */
static void find_matches(struct weir_join *jn, struct weir_slot *sl, const struct weir_join_found *fd)
{
	struct held h = {.side = 0};
	jn->found.bytes = 0;
	jn->found_at = 0;
	if (weir_join_window_is_null(fd->bf))
		return;
	weir_join_buffer_get(jn->def, fd, &h.r);
	h.r.hash = weir_hash(h.r.key, h.r.key_bytes);
	/* As of the window's own end: all that stands in it counts. */
	weir_join_buffer_find(sl, 1, &h.r, fd->time, fd->time, fd->time, &jn->found);
	if (jn->found.bytes != 0 && jn->residual != NULL)
		weir_join_keep_matches(jn, &h);
	const struct weir_join_found *found = (const struct weir_join_found *)(const void *)jn->found.data;
	for (uint32_t i = 0; i < jn->found.bytes / sizeof *found && jn->def->sides[1].outer; i++)
		weir_join_buffer_match(sl, found[i].bf);
}

/* A left row with its matches, or alone. False: come again. */
static bool put_left(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl,
		     const struct weir_join_found *fd)
{
	struct weir_join_row row, other;
	if (!jn->window_found) {
		find_matches(jn, sl, fd);
		jn->window_found = true;
	}
	const struct weir_join_found *found = (const struct weir_join_found *)(const void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found);
	weir_join_buffer_get(jn->def, fd, &row);
	for (; jn->found_at < n; jn->found_at++) {
		if (!weir_join_room(jn, b, sl->number))
			return false;
		weir_join_buffer_get(jn->def, &found[jn->found_at], &other);
		weir_join_emit(jn, 0, &row, &other);
	}
	if (n == 0 && jn->def->sides[0].outer) {
		if (!weir_join_room(jn, b, sl->number))
			return false;
		weir_join_emit(jn, 0, &row, NULL);
	}
	jn->window_found = false;
	return true;
}

/* The rows of the window that is open. A key's right ones come behind its left ones: by then it is known which of them
 * had a match. False: come again. */
static bool put_window(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	const struct weir_join_found *list = (const struct weir_join_found *)(const void *)jn->window.data;
	uint32_t n = (uint32_t)(jn->window.bytes / sizeof *list);
	for (; jn->window_at < n; jn->window_at++) {
		const struct weir_join_found *fd = &list[jn->window_at];
		struct weir_join_row row;
		if (weir_join_buffer_side(sl, fd->bf) == 0) {
			if (!put_left(jn, b, sl, fd))
				return false;
			continue;
		}
		if (!jn->def->sides[1].outer || weir_join_buffer_has_match(fd->bf))
			continue;
		if (!weir_join_room(jn, b, sl->number))
			return false;
		weir_join_buffer_get(jn->def, fd, &row);
		weir_join_emit(jn, 1, &row, NULL);
	}
	return true;
}

bool weir_join_run_windows(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, int64_t task,
			   bool close_all, int64_t *end_max)
{
	for (;;) {
		if (!jn->window_open) {
			jn->window.bytes = 0;
			jn->window_at = 0;
			jn->window_found = false;
			if (!weir_join_window_take(sl, task, close_all, &jn->window, &jn->window_time))
				return true;
			jn->window_open = true;
			weir_bundle_note_window(b, jn->stage, jn->window_time + 1);
		}
		if (!put_window(jn, b, sl))
			return false;
		if (!jn->has_stage_branch) /* else the rows are copies */
			weir_join_flush(jn, b, sl->number);
		if (close_all)
			*end_max = weir_max_i64(*end_max, jn->window_time + 1);
		weir_join_window_drop(sl);
		jn->window_open = false;
	}
}
