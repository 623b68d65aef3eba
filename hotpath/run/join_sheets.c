/* join_sheets.c: an inner join of two streams whose slots have one partition of each, and where rows of one side in
 * order can only be met by the other's that come after them: orders, and payments within an hour of theirs (join.h).
 * @thread worker
 *
 *   hold    rows become sheets (join_sheet.h)
 *   turn    those of one side that are in order, orders, enter the index: what comes before them in the merged order
 *           cannot meet them. Then the other side's, payments, look, in their order, which is that of the results; what
 *           they touch of the index is still in the cache
 *
 * So nothing is merged, and no row is an item of its own. What is out of order, what the other side is ahead of, and
 * what no sheet takes is a record and an item, as in join_inner.c, and looks at its exact turn between the rows of
 * sheets. Where there is much of that, the slot does without sheets for some order points, and then for more.
 *
 *   lane, item by item   sheet (its time: the lane's behind it) | row | nothing but a time */
#include "hotpath/run/join_private.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"

/* Order points without sheets after one in which one row in SLOW_PART was a record, or a batch in which so many were
 * out of order; twice as many after each more, until one is good. */
enum { WITHOUT = 15, WITHOUT_MOST = 1023, SLOW_PART = 16 };

static uint32_t lane_of(const struct weir_join *jn, uint32_t side, uint32_t slot)
{
	const struct weir_plan *pl = jn->w->cf.plan;
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[jn->lanes[i].branch];
		if (br->side == side && jn->lanes[i].from - pl->scans[br->origin].partition_base == slot)
			return i;
	}
	return UINT32_MAX;
}

void weir_join_sheets_create(struct weir_join *jn)
{
	const struct weir_plan *pl = jn->w->cf.plan;
	uint32_t looks = weir_join_defers(jn->def, 0) ? 0 : 1;
	if (!jn->inner || !weir_join_is_direct(jn) || jn->def->time_max || jn->ps->input_count != 2 ||
	    !weir_join_defers(jn->def, looks))
		return;
	for (uint32_t i = 0; i < 2; i++) {
		const struct weir_plan_branch *br = &pl->branches[jn->ps->inputs[i]];
		if (br->from != WEIR_FROM_SCAN || br->global || pl->scans[br->origin].repartition >= 0 ||
		    pl->scans[br->origin].partition_count != jn->ps->slot_count)
			return;
	}
	jn->pairs_of = weir_xcalloc(jn->ps->slot_count + 1, sizeof *jn->pairs_of);
	jn->filter = weir_xcalloc(WEIR_JOIN_FILTER_BITS / 64, sizeof *jn->filter);
	jn->looks = looks;
	for (uint32_t k = 0; k < jn->ps->slot_count; k++) {
		jn->pairs_of[k].lane[0] = lane_of(jn, 0, k);
		jn->pairs_of[k].lane[1] = lane_of(jn, 1, k);
	}
	/* Of equal times the lower lane's come first: those that enter must not come behind those that look. */
	const uint32_t *lane = jn->pairs_of[0].lane;
	if (lane[looks] < lane[1 - looks] && weir_join_back_ms(jn->def, 1 - looks) == 0)
		weir_join_sheets_destroy(jn);
}

void weir_join_sheets_destroy(struct weir_join *jn)
{
	free(jn->pairs_of);
	free(jn->filter);
	jn->pairs_of = NULL;
	jn->filter = NULL;
}

/* ---- holding ---- */

struct taking {
	struct weir_join *jn;
	struct weir_slot *sl;
	struct lane *ln;
	const struct weir_keyed *keyed;
	const uint16_t *rows;
	const uint32_t *upto; /* weir_sheet_measure */
	uint32_t slot, side, fixed, col_count;
	struct weir_join_place place;
	bool in_order; /* rows' times ascend */
};

static void put_item(struct lane *ln, int64_t time, uint64_t row, uint32_t hash, uint32_t slot)
{
	struct item *it = (struct item *)(void *)weir_buf_room(&ln->items, sizeof *it);
	*it = (struct item){time, row, hash, slot};
	ln->items.bytes += sizeof *it;
	ln->high = weir_max_i64(ln->high, time);
}

static void take_record(struct taking *tk, uint32_t i)
{
	uint32_t row = tk->rows[i];
	uint64_t place = weir_join_hold_inner(tk->jn, &tk->place, tk->keyed, row, tk->fixed, false);
	put_item(tk->ln, tk->keyed->time[row], place, weir_hash_index(tk->keyed->hash[row]), tk->slot);
	tk->jn->slot_rows[tk->slot]++;
	tk->jn->pairs_of[tk->slot].records++;
}

/* Rows of one generation, in order if their side enters, that came one after the other. */
static void take_sheets(struct taking *tk, uint32_t from, uint32_t to)
{
	struct weir_join *jn = tk->jn;
	bool looks = tk->side == jn->looks;
	struct pair_of *po = &jn->pairs_of[tk->slot];
	while (from < to) {
		struct weir_gen *g = NULL;
		struct weir_sheet *sh = NULL;
		struct weir_sheet_rows sr;
		if (to - from >= WEIR_SHEET_ROWS_MIN) {
			weir_join_place_close(&tk->place);
			tk->place.sl = tk->sl;
			g = weir_join_gen_of(tk->sl, tk->side, tk->keyed->time[tk->rows[from]]);
		}
		if (g != NULL) {
			sr = (struct weir_sheet_rows){.keyed = tk->keyed,
						      .row = tk->rows + from,
						      .count = to - from,
						      .upto = tk->upto + from,
						      .col_count = tk->col_count,
						      .start = tk->sl->joined->start[g->code],
						      .deferred = looks,
						      .in_order = tk->in_order};
			sh = weir_sheet_put(g, &sr);
		}
		if (sh == NULL) {
			take_record(tk, from++);
			continue;
		}
		put_item(tk->ln, tk->sl->joined->start[g->code] + sh->b.delta, (uint64_t)(uintptr_t)sh, sr.oldest,
			 tk->slot | ITEM_SHEET);
		po->sheet_rows += sh->count;
		po->used = true;
		from += sh->count;
	}
}

/* Times of rows of the batch that are not in rows, where they move the lane's. */
static void take_moves(struct lane *ln, const struct weir_fragment *fr, const uint16_t *rows, uint32_t count)
{
	int64_t high = ln->high;
	for (uint32_t i = 0, own = 0; i < fr->sel.count; i++) {
		uint32_t row = fr->sel.row[i];
		bool mine = own < count && rows[own] == row;
		own += mine;
		if (fr->time[row] <= high)
			continue;
		high = fr->time[row];
		if (!mine)
			weir_buf_put(&ln->moves, &high, sizeof high);
	}
}

/* Whether some row that enters, not older than low, may meet one of the other side that had its turn; *filter: those
 * that have a bit in jn->filter, else all. */
static bool may_meet(const struct taking *tk, int64_t low, bool *filter)
{
	const struct weir_join_index *ix = tk->sl->joined;
	if (ix == NULL || low > ix->deferred_high[tk->jn->looks])
		return false;
	*filter = weir_join_deferred_filter(tk->sl, tk->jn->looks, low, tk->jn->filter);
	return true;
}

/* Cost: about 10 instructions a row, and what sheets take. */
static void take_entering(struct taking *tk, uint32_t count)
{
	const struct weir_keyed *k = tk->keyed;
	struct weir_join *jn = tk->jn;
	int64_t from_time = 0, to_time = 0, low = k->time[tk->rows[0]],
		back = weir_join_back_ms(jn->def, 1 - jn->looks);
	uint32_t from = 0;
	bool filter = false;
	for (uint32_t i = 1; i < count; i++)
		low = weir_min_i64(low, k->time[tk->rows[i]]);
	bool meets = may_meet(tk, low - back, &filter);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = tk->rows[i];
		int64_t time = k->time[row], key = weir_max_i64(tk->ln->high, k->run[row]);
		bool slow =
			time < key || (meets && time - back <= tk->sl->joined->deferred_high[jn->looks] &&
				       (!filter || weir_join_filter_has(jn->filter, weir_hash_index(k->hash[row]))));
		if (WEIR_LIKELY(!slow && time >= from_time && time < to_time))
			continue;
		take_sheets(tk, from, i);
		from = i;
		if (slow) {
			if (key > tk->ln->high) /* rows that were filtered have moved the lane */
				put_item(tk->ln, key, WEIR_JOIN_NO_ROW, 0, tk->slot);
			take_record(tk, i);
			from = i + 1;
			continue;
		}
		weir_join_bounds_of(tk->sl, tk->side, time, &from_time, &to_time);
	}
	take_sheets(tk, from, count);
}

/* Cost: about 6 instructions a row, and what sheets take. */
static void take_looking(struct taking *tk, uint32_t count)
{
	const struct weir_keyed *k = tk->keyed;
	int64_t from_time = 0, to_time = 0, high = tk->ln->high;
	uint32_t from = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = tk->rows[i];
		int64_t time = k->time[row];
		bool moved = k->run[row] > weir_max_i64(high, time);
		high = weir_max_i64(high, time);
		if (WEIR_LIKELY(!moved && time >= from_time && time < to_time))
			continue;
		take_sheets(tk, from, i);
		from = i;
		if (moved) {
			put_item(tk->ln, k->run[row], WEIR_JOIN_NO_ROW, 0, tk->slot);
			high = tk->ln->high;
		}
		weir_join_bounds_of(tk->sl, tk->side, time, &from_time, &to_time);
	}
	take_sheets(tk, from, count);
}

static void do_without(struct pair_of *po)
{
	uint32_t next = po->without_next != 0 ? po->without_next : WITHOUT;
	po->without = next;
	po->without_next = next < WITHOUT_MOST / 2 ? 2 * next + 1 : WITHOUT_MOST;
}

/* Whether so many rows that enter are out of order that sheets are not worth it. Cost: about 5 instructions a row. */
static bool is_disordered(const struct weir_keyed *k, const uint16_t *rows, uint32_t count, int64_t high)
{
	uint32_t slow = 0;
	for (uint32_t i = 0; i < count; i++)
		slow += k->time[rows[i]] < weir_max_i64(high, k->run[rows[i]]);
	return slow * SLOW_PART > count;
}

/* Whether rows are all of a batch's first ones, none older than one before it. Cost: less than an instruction a row. */
static bool is_in_order(const struct weir_keyed *k, const uint16_t *rows, uint32_t count)
{
	return rows[count - 1] == count - 1 && memcmp(k->time, k->run, count * sizeof *k->time) == 0;
}

/* Whether all rows of such a batch are of one generation. */
static bool is_of_one(const struct taking *tk, const struct weir_keyed *k, uint32_t count)
{
	int64_t from, to;
	weir_join_bounds_of(tk->sl, tk->side, k->time[0], &from, &to);
	return k->time[count - 1] < to;
}

static int64_t lowest(const struct weir_keyed *k, const uint16_t *rows, uint32_t count)
{
	int64_t low = INT64_MAX;
	for (uint32_t i = 0; i < count; i++)
		low = weir_min_i64(low, k->time[rows[i]]);
	return low;
}

bool weir_join_hold_sheets(struct weir_join *jn, const struct weir_fragment *fr, const struct weir_keyed *keyed,
			   const uint16_t *rows, uint32_t count, uint32_t side, uint32_t fixed, struct lane *ln)
{
	uint32_t upto[WEIR_BATCH_ROWS + 1], slot = count != 0 ? keyed->slot[rows[0]] : 0;
	struct pair_of *po = &jn->pairs_of[slot];
	struct weir_slot *sl = jn->w->slots[jn->stage][slot];
	if (count < WEIR_SHEET_ROWS_MIN || po->without != 0 || (sl->joined != NULL && sl->joined->uncoded != 0))
		return false;
	bool looks = side == jn->looks, in_order = is_in_order(keyed, rows, count);
	int64_t low = in_order ? keyed->time[0] : lowest(keyed, rows, count);
	/* Late by what the slot has seen, or may have by its turn. */
	if (weir_join_is_late(jn->def, low, weir_max_i64(jn->task_before[slot], ln->before)))
		return false;
	in_order = in_order && (looks || low >= ln->high);
	if (!looks && !in_order && is_disordered(keyed, rows, count, ln->high)) {
		do_without(po);
		return false;
	}
	struct taking tk = {.jn = jn,
			    .sl = sl,
			    .ln = ln,
			    .keyed = keyed,
			    .rows = rows,
			    .upto = upto,
			    .slot = slot,
			    .side = side,
			    .fixed = fixed,
			    .col_count = jn->def->sides[side].col_count,
			    .place.side = side,
			    .in_order = in_order};
	weir_sheet_measure(keyed, rows, count, tk.col_count, fixed, upto);
	if (fr->sel.count != count) {
		take_moves(ln, fr, rows, count);
		po->used |= ln->moves.bytes != 0;
	}
	bool filter,
		plain = in_order && (looks || !may_meet(&tk, low - weir_join_back_ms(jn->def, 1 - jn->looks), &filter));
	if (plain && is_of_one(&tk, keyed, count))
		take_sheets(&tk, 0, count);
	else if (looks)
		take_looking(&tk, count);
	else
		take_entering(&tk, count);
	weir_join_place_close(&tk.place);
	if (fr->time_max > ln->high)
		put_item(ln, fr->time_max, WEIR_JOIN_NO_ROW, 0, slot);
	return true;
}

/* ---- turns ---- */

static const struct item *items_of(const struct lane *ln, uint32_t *count)
{
	*count = (uint32_t)(ln->items.bytes / sizeof(struct item));
	return (const struct item *)(const void *)ln->items.data;
}

static struct weir_sheet *item_sheet(const struct item *it)
{
	return (it->slot & ITEM_SHEET) != 0 ? (struct weir_sheet *)(uintptr_t)it->row : NULL;
}

static int64_t sheet_start(const struct weir_slot *sl, const struct weir_sheet *sh)
{
	return sl->joined->start[sl->pages.page[weir_entry_page_no(&sh->b.e)].gen->code];
}

static struct lane *lane_at(const struct weir_join *jn, uint32_t slot, bool looks)
{
	return &jn->lanes[jn->pairs_of[slot].lane[looks ? jn->looks : 1 - jn->looks]];
}

void weir_join_sheets_begin(struct weir_join *jn, uint32_t slot)
{
	struct sheet_run *sr = &jn->sheet_run;
	*sr = (struct sheet_run){.slot = slot, .active = jn->pairs_of[slot].used};
	for (uint32_t i = 0; i < 2; i++) {
		sr->lane[i] = lane_at(jn, slot, i != 0);
		sr->it[i] = items_of(sr->lane[i], &sr->count[i]);
	}
	sr->enters.key = sr->looks.key = sr->passed.key = WEIR_TIME_UNSET;
	/* A row that looks comes behind one that enters of the same time, unless its lane is the lower one. */
	sr->looks_first = sr->lane[1] < sr->lane[0];
}

/* Moves the place where a lane stands behind every row whose turn is before that of a row of the other lane with this
 * key, ties: one with the same key is too. */
static void pass_until(const struct weir_slot *sl, const struct item *it, uint32_t count, struct lane_at *at,
		       int64_t key, bool ties)
{
	for (; at->item < count; at->item++, at->row = 0) {
		const struct weir_sheet *sh = item_sheet(&it[at->item]);
		int64_t next = weir_max_i64(at->key, it[at->item].time);
		if (next < key || (ties && next == key)) {
			at->key = next;
			continue;
		}
		if (sh == NULL)
			return;
		for (int64_t start = sheet_start(sl, sh); at->row < sh->count; at->row++) {
			next = weir_max_i64(at->key, start + sh->stub[at->row].delta);
			if (next > key || (!ties && next == key))
				return;
			at->key = next;
		}
		return;
	}
}

/* What the lane's time is there, at the turn of a row of the other lane with this key (pass_until). */
static int64_t lane_now(const struct lane *ln, struct lane_at *at, uint32_t count, int64_t key, bool ties)
{
	const int64_t *move = (const int64_t *)(const void *)ln->moves.data;
	uint32_t moves = (uint32_t)(ln->moves.bytes / sizeof *move);
	while (at->move < moves && (move[at->move] < key || (ties && move[at->move] == key)))
		at->move++;
	if (at->item < count || at->move < moves)
		return weir_max_i64(ln->before, weir_max_i64(at->key, at->move != 0 ? move[at->move - 1] : at->key));
	return ln->out ? INT64_MAX : weir_max_i64(ln->before, ln->high);
}

int64_t weir_join_sheets_task(struct weir_join *jn)
{
	struct sheet_run *sr = &jn->sheet_run;
	const struct weir_slot *sl = jn->w->slots[jn->stage][sr->slot];
	int64_t own = weir_max_i64(sr->lane[sr->turn_looks]->before, sr->turn_key), other;
	if (sr->turn_looks) {
		pass_until(sl, sr->it[0], sr->count[0], &sr->passed, sr->turn_key, !sr->looks_first);
		other = lane_now(sr->lane[0], &sr->passed, sr->count[0], sr->turn_key, !sr->looks_first);
	} else {
		other = lane_now(sr->lane[1], &sr->looks, sr->count[1], sr->turn_key, sr->looks_first);
	}
	return weir_max_i64(jn->task_before[sr->slot], weir_min_i64(own, other));
}

static void count_rows(struct weir_join *jn, struct weir_slot *sl, uint32_t rows)
{
	sl->records += rows;
	jn->w->st->now->applied += rows;
}

static void look_closer(struct weir_join *jn, struct weir_slot *sl, const struct item *it, bool looks, int64_t key)
{
	struct sheet_run *sr = &jn->sheet_run;
	struct weir_join_turn t = {it->row, it->time, it->hash,
				   (looks ? jn->looks : 1 - jn->looks) != 0 ? WEIR_JOIN_SIDE : 0};
	sr->turn_looks = looks;
	sr->turn_key = key;
	weir_join_look_closer(jn, sl, &t);
}

/* The same for a record of a sheet, and what it leaves behind. */
static void look_closer_at(struct weir_join *jn, struct weir_slot *sl, struct weir_sheet *sh, uint32_t row)
{
	struct sheet_run *sr = &jn->sheet_run;
	uint32_t code = sl->pages.page[weir_entry_page_no(&sh->b.e)].gen->code;
	struct weir_buffered *bf = weir_stub_buffered(&sh->stub[row]);
	uint32_t hash = bf->older; /* its turn has not come */
	struct item it = {sl->joined->start[code] + bf->delta,
			  weir_join_place_value(hash, code, weir_entry_ref(&bf->e)), hash, sr->slot};
	look_closer(jn, sl, &it, true, weir_max_i64(sr->looks.key, it.time));
	sr->looks.key = weir_max_i64(sr->looks.key, it.time);
	weir_join_sheet_turned(sl, sh, row, row + 1);
}

/* Rows of a sheet up to `to` look, as far as there is room for results. */
static void look(struct weir_join *jn, struct weir_slot *sl, const struct item *it, struct weir_sheet *sh, uint32_t to)
{
	struct sheet_run *sr = &jn->sheet_run;
	struct lane_at *at = &sr->looks;
	int64_t start = sheet_start(sl, sh), oldest = jn->task_max - weir_join_keep_ms(jn->def);
	if (WEIR_UNLIKELY(start + it->hash < oldest || sl->joined->uncoded != 0)) {
		look_closer_at(jn, sl, sh, at->row++);
		return;
	}
	uint32_t from = at->row, room = WEIR_BATCH_ROWS - jn->out->count;
	/* Rows that others copy are handed on when they are large: as many as surely fit. */
	if (jn->has_stage_branch && room > 32)
		room = 32;
	struct weir_join_meeting mt = {.task_max = jn->task_max, .pairs = jn->pairs, .room = room, .side = jn->looks};
	bool closer = weir_join_look_sheet(sl, sh, &at->row, to, &mt);
	if (at->row != from) {
		count_rows(jn, sl, at->row - from);
		for (uint32_t i = from; i < at->row && at->row < sh->count; i++) /* else look_until does it */
			at->key = weir_max_i64(at->key, start + sh->stub[i].delta);
		weir_join_sheet_turned(sl, sh, from, at->row);
	}
	weir_join_put_pairs(jn, mt.count);
	if (closer)
		look_closer_at(jn, sl, sh, at->row++);
}

/* Goes on with the rows that look, those whose turn is before key. True: there are none (left). */
static bool look_until(struct weir_join *jn, struct weir_slot *sl, int64_t key)
{
	struct sheet_run *sr = &jn->sheet_run;
	struct lane_at *at = &sr->looks;
	if (at->item == sr->count[1])
		return true;
	const struct item *it = &sr->it[1][at->item];
	struct weir_sheet *sh = item_sheet(it);
	int64_t next = weir_max_i64(at->key, it->time);
	bool before = key == INT64_MAX || next < key || (sr->looks_first && next == key);
	if (sh == NULL) {
		if (!before)
			return true;
		at->item++;
		at->key = next;
		if (it->row != WEIR_JOIN_NO_ROW)
			look_closer(jn, sl, it, true, next);
		return false;
	}
	uint32_t to = sh->count;
	if (!before) {
		struct lane_at until = *at;
		until.item = 0;
		pass_until(sl, it, 1, &until, key, sr->looks_first);
		to = until.row;
	}
	if (at->row == to)
		return true;
	look(jn, sl, it, sh, to);
	if (at->row == sh->count) {
		at->key = next;
		at->row = 0;
		at->item++;
	}
	return false; /* results of a closer look come first */
}

/* The next row that enters at its turn, or NULL; sheets up to there enter. */
static const struct item *next_entering(struct weir_join *jn, struct weir_slot *sl)
{
	struct sheet_run *sr = &jn->sheet_run;
	struct lane_at *at = &sr->enters;
	for (; at->item < sr->count[0]; at->item++) {
		const struct item *it = &sr->it[0][at->item];
		struct weir_sheet *sh = item_sheet(it);
		if (sh == NULL && it->row != WEIR_JOIN_NO_ROW)
			return it;
		if (sh != NULL) {
			weir_join_enter_sheet(sl, sh);
			count_rows(jn, sl, sh->count);
		}
		at->key = weir_max_i64(at->key, it->time);
	}
	return NULL;
}

bool weir_join_run_sheets(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	struct sheet_run *sr = &jn->sheet_run;
	for (;;) {
		if (jn->current && !weir_join_put_found(jn, b, sl))
			return false;
		if (!weir_join_room(jn, b, sl->number))
			return false;
		const struct item *it = next_entering(jn, sl);
		int64_t key = it != NULL ? weir_max_i64(sr->enters.key, it->time) : INT64_MAX;
		if (!look_until(jn, sl, key))
			continue;
		if (it == NULL)
			return true;
		sr->enters.item++;
		sr->enters.key = key;
		look_closer(jn, sl, it, false, key);
	}
}

void weir_join_sheets_reset(struct weir_join *jn)
{
	for (uint32_t k = 0; k < jn->ps->slot_count; k++) {
		struct pair_of *po = &jn->pairs_of[k];
		if (po->without != 0)
			po->without--;
		else if (po->records * SLOW_PART > po->records + po->sheet_rows)
			do_without(po);
		else if (po->sheet_rows != 0)
			po->without_next = WITHOUT;
		po->records = po->sheet_rows = 0;
		po->used = false;
	}
	jn->sheet_run.active = false;
}
