/* join_hold.c: rows of a join's inputs until the order point: held by lane, then merged (join.h). @thread worker
 *
 *   hold    a row --> its packed form among those of its slot, and an item in its lane. A row that only moves the
 *           lane's time, since another worker owns it, is an item without a row
 *   merge   items of all lanes --> lanes in the order of (key, lane, arrival) --> by slot, each with the task time of
 *           its turn
 *
 * A held row costs its packed columns, its key and sizeof(struct held); one of an inner join lies where it stays
 * (join_inner.c). Merging touches items only, never the rows, and moves each once. */
#include "hotpath/run/join_private.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"

/* ---- holding ---- */

int64_t weir_join_lane_time(const struct weir_join *jn, const struct lane *ln, bool *out)
{
	const struct weir_times *tm = jn->w->times;
	return ln->up ? weir_times_up(tm, ln->branch, ln->from, out) : weir_times_source(tm, ln->from, out);
}

/* The first rows since the last order point: what the clocks say now is what was applied up to there. */
void weir_join_hold_begin(struct weir_join *jn)
{
	bool out;
	jn->holding = true;
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		jn->lanes[i].before = weir_join_lane_time(jn, &jn->lanes[i], &out);
		jn->lanes[i].high = WEIR_TIME_UNSET;
	}
	jn->task_before_max = WEIR_TIME_UNSET;
	for (uint32_t k = 0; k < (weir_join_is_direct(jn) ? jn->ps->slot_count : 1); k++) {
		jn->task_before[k] = weir_times_task(jn->w->times, jn->stage, k);
		jn->task_before_max = weir_max_i64(jn->task_before_max, jn->task_before[k]);
	}
	if (jn->beside)
		weir_beside_open(jn);
}

void *weir_join_more(struct weir_join *jn, struct hold_memory *hm, size_t bytes)
{
	if (bytes > BLOCK_BYTES / 4) {
		struct block *bl = weir_xmalloc(sizeof *bl + bytes);
		bl->next = jn->large;
		jn->large_bytes += bytes;
		jn->large = bl;
		return bl->bytes;
	}
	struct block *bl = jn->free_blocks;
	if (bl) {
		jn->free_blocks = bl->next;
		jn->free_count--;
	} else {
		bl = weir_xmalloc(sizeof *bl + BLOCK_BYTES);
		jn->block_bytes += sizeof *bl + BLOCK_BYTES;
	}
	bl->next = jn->blocks;
	jn->blocks = bl;
	hm->at = bl->bytes + bytes;
	hm->end = bl->bytes + BLOCK_BYTES;
	return bl->bytes;
}

/* bytes (a multiple of 8) among the rows of a slot. */
static void *hold_take(struct weir_join *jn, uint32_t slot, size_t bytes)
{
	struct hold_memory *hm = &jn->memory[slot];
	if (WEIR_UNLIKELY((size_t)(hm->end - hm->at) < bytes))
		return weir_join_more(jn, hm, bytes);
	void *p = hm->at;
	hm->at += bytes;
	__builtin_prefetch(hm->at + 2 * WEIR_CACHE_LINE, 1, 3); /* where the slot's next row will stand */
	return p;
}

static const uint8_t *keep_bytes(struct weir_scratch *s, const uint8_t *data, uint32_t bytes)
{
	if (!data)
		return NULL;
	uint8_t *to = weir_scratch_take(s, bytes);
	if (bytes)
		memcpy(to, data, bytes);
	return to;
}

static const struct original *keep_original(struct weir_join *jn, const struct weir_fragment *fr, uint32_t row)
{
	const struct weir_record *r = &fr->input->records[row];
	struct weir_record readable;
	struct weir_buf json = {0};
	if (weir_worker_exchanged(jn->w, fr, row, &json, &readable))
		r = &readable;
	struct original *o = weir_scratch_take(&jn->scratch, sizeof *o);
	*o = (struct original){.record = *r,
			       .topic = fr->input->topic,
			       .topic_partition = fr->input->topic_partition,
			       .seq = fr->input->seq,
			       .row = row,
			       .scan = fr->scan};
	o->record.key = keep_bytes(&jn->scratch, r->key, r->key_bytes);
	o->record.value = keep_bytes(&jn->scratch, r->value, r->value_bytes);
	o->record.headers = keep_bytes(&jn->scratch, r->headers, r->headers_bytes);
	weir_buf_fini(&json);
	return o;
}

static const struct original *keep_row(struct weir_join *jn, const struct weir_fragment *fr, uint32_t row)
{
	struct weir_encoder *en = jn->w->st->late_encoder[fr->stage];
	struct original *o = weir_scratch_take(&jn->scratch, sizeof *o);
	struct weir_buf value = {0};
	en->encode(en, fr->rows.cols, row, &value);
	*o = (struct original){
		.up = true, .topic = jn->w->cf.plan->stages[fr->stage].name, .topic_partition = fr->slot};
	o->record.value = keep_bytes(&jn->scratch, value.data, (uint32_t)value.bytes);
	o->record.value_bytes = (uint32_t)value.bytes;
	weir_buf_fini(&value);
	return o;
}

static bool has_null_key(const struct weir_fragment_branch *fb, uint32_t key_count, uint32_t row)
{
	for (uint32_t k = 0; k < key_count; k++)
		if (weir_col_is_null(fb->out[k], row))
			return true;
	return false;
}

/* What the rows of one call have in common. */
struct holding {
	const struct weir_fragment *fr;
	const struct weir_fragment_branch *fb;
	const struct weir_keyed *keyed;
	uint32_t side, col_count;
	uint32_t key_count;
	uint32_t lane;
	uint32_t fixed;               /* weir_row_fixed of the side's columns */
	bool null_keys;               /* some key may be NULL */
	bool keeps_deleted;           /* what goes is handed on */
	const int64_t *time;          /* as the lane counts it */
	bool has_original;            /* a late one is wanted as it came */
	struct weir_join_place place; /* of an inner join */
};

static bool wants_original(const struct weir_join *jn, const struct weir_fragment *fr)
{
	return jn->def->within && jn->w->cf.policies[fr->input ? fr->scan : 0].late >= 0;
}

static struct held *hold_row(struct weir_join *jn, const struct holding *hg, uint32_t row, uint32_t slot)
{
	const struct weir_keyed *keyed = hg->keyed;
	bool deletes = keyed->deletes && keyed->deletes[row];
	uint32_t key_bytes = keyed->key_bytes[row];
	bool packed = !deletes || hg->keeps_deleted;
	uint64_t row_bytes = 0;
	if (packed)
		row_bytes = hg->fixed ? weir_row_bytes_plain(keyed->cols, hg->col_count, row, hg->fixed)
				      : weir_row_bytes(keyed->cols, hg->col_count, row);
	size_t bytes = weir_align_up(sizeof(struct held) + key_bytes + row_bytes, 8);
	struct held *h = hold_take(jn, slot, bytes);
	uint8_t *key = (uint8_t *)(h + 1);
	weir_store_le64((uint8_t *)h + bytes - 8, 0);
	h->r = (struct weir_join_row){.hash = keyed->hash[row],
				      .time = keyed->time[row],
				      .key = key,
				      .key_bytes = key_bytes,
				      .row = key + key_bytes,
				      .row_bytes = (uint32_t)row_bytes};
	h->original = NULL;
	h->side = (uint8_t)hg->side;
	h->deletes = deletes;
	h->null_key = hg->null_keys && has_null_key(hg->fb, hg->key_count, row);
	weir_copy_short(key, keyed->key[row], key_bytes);
	if (packed && hg->fixed)
		(void)weir_row_pack_plain(keyed->cols, hg->col_count, row, key + key_bytes);
	else if (packed)
		(void)weir_row_pack(keyed->cols, hg->col_count, row, key + key_bytes);
	if (WEIR_UNLIKELY(hg->has_original))
		h->original = hg->fr->input ? keep_original(jn, hg->fr, row) : keep_row(jn, hg->fr, row);
	return h;
}

static inline uint64_t hold_item(struct weir_join *jn, struct holding *hg, uint32_t row, uint32_t slot)
{
	if (jn->inner)
		return weir_join_hold_inner(jn, &hg->place, hg->keyed, row, hg->fixed,
					    hg->null_keys && has_null_key(hg->fb, hg->key_count, row));
	return (uint64_t)weir_index_tag(hg->keyed->hash[row]) << 48 | (uint64_t)(uintptr_t)hold_row(jn, hg, row, slot);
}

/* Which of rows[0..count) come first when they go slot by slot, each slot's in their order: what belongs to a slot is
 * found in the cache by all of them but one. NULL: there are too many slots for that to pay. */
static const uint16_t *by_slot(struct weir_join *jn, const struct weir_keyed *keyed, const uint16_t *rows,
			       uint32_t count)
{
	uint32_t slots = jn->ps->slot_count, at = 0;
	uint32_t *start = jn->slot_at; /* free until the merge */
	if (weir_join_is_direct(jn)) { /* all are of one slot */
		uint32_t slot = keyed->slot[rows[0]];
		jn->slot_rows[slot] += count;
		start[slot] = count;
		for (uint32_t i = 0; i < count; i++)
			jn->by_slot[i] = (uint16_t)i;
		return jn->by_slot;
	}
	if (slots > count / 2)
		return NULL;
	memset(start, 0, slots * sizeof *start);
	for (uint32_t i = 0; i < count; i++)
		start[keyed->slot[rows[i]]]++;
	for (uint32_t s = 0; s < slots; s++) {
		uint32_t n = start[s];
		jn->slot_rows[s] += n;
		start[s] = at;
		at += n;
	}
	for (uint32_t i = 0; i < count; i++)
		jn->by_slot[start[keyed->slot[rows[i]]]++] = (uint16_t)i;
	return jn->by_slot;
}

/* Rows slot by slot in which nothing is special: no NULL, none that goes, none that is kept as it came. Cost: about 70
 * instructions a row and what packing takes. */
static void hold_plain(struct weir_join *jn, const struct holding *hg, const uint16_t *rows, uint32_t count,
		       const uint16_t *order, struct item *it)
{
	const struct weir_keyed *keyed = hg->keyed;
	uint32_t row_bytes[WEIR_BATCH_ROWS];
	weir_row_bytes_plain_many(keyed->cols, hg->col_count, rows, count, hg->fixed, row_bytes);
	for (uint32_t n = 0; n < count; n++) {
		uint32_t i = order[n], row = rows[i], slot = keyed->slot[row], key_bytes = keyed->key_bytes[row];
		uint64_t hash = keyed->hash[row];
		size_t bytes = weir_align_up(sizeof(struct held) + key_bytes + row_bytes[i], 8);
		struct held *h = hold_take(jn, slot, bytes);
		uint8_t *key = (uint8_t *)(h + 1);
		weir_store_le64((uint8_t *)h + bytes - 8, 0);
		*h = (struct held){.r = {hash, keyed->time[row], key, key_bytes, row_bytes[i], key + key_bytes},
				   .side = (uint8_t)hg->side};
		weir_copy_short(key, keyed->key[row], key_bytes);
		(void)weir_row_pack_plain(keyed->cols, hg->col_count, row, key + key_bytes);
		it[i] = (struct item){hg->time[row], (uint64_t)weir_index_tag(hash) << 48 | (uint64_t)(uintptr_t)h,
				      weir_hash_index(hash), slot};
	}
}

/* Every row of the fragment is an own one: the usual case on one worker. */
static void hold_all(struct weir_join *jn, struct holding *hg, struct lane *ln, const uint16_t *rows, uint32_t count)
{
	const int64_t *time = hg->fr->input ? hg->fr->time : hg->keyed->time;
	struct item *it = (struct item *)(void *)weir_buf_room(&ln->items, count * sizeof *it);
	const uint16_t *order = by_slot(jn, hg->keyed, rows, count);
	int64_t high = ln->high;
	bool plain = order && hg->fixed && !hg->null_keys && !hg->has_original && !hg->keyed->deletes;
	hg->time = time;
	if (plain && jn->inner)
		plain = weir_join_hold_inner_all(jn, &hg->place, hg->keyed, rows, count, order, hg->fixed, it);
	else if (plain)
		hold_plain(jn, hg, rows, count, order, it);
	for (uint32_t i = 0; i < count && plain; i++)
		high = weir_max_i64(high, time[rows[i]]);
	for (uint32_t n = 0; n < count && !plain; n++) {
		uint32_t i = order ? order[n] : n, row = rows[i], slot = hg->keyed->slot[row];
		high = weir_max_i64(high, time[row]);
		it[i] = (struct item){time[row], hold_item(jn, hg, row, slot), weir_hash_index(hg->keyed->hash[row]),
				      slot};
		jn->slot_rows[slot] += !order;
	}
	ln->items.bytes += count * sizeof *it;
	ln->high = high;
}

/* Own rows, and the times of all: a row of another worker's slots, or one that the branch has filtered, is an item
 * where it moves the lane's time. */
static void hold_some(struct weir_join *jn, struct holding *hg, struct lane *ln, const uint16_t *rows, uint32_t count,
		      uint32_t all, const uint64_t *skip)
{
	const struct weir_fragment *fr = hg->fr;
	const int64_t *time = fr->input ? fr->time : hg->keyed->time;
	for (uint32_t i = 0, own = 0; i < all; i++) {
		uint32_t row = fr->input ? fr->sel.row[i] : i;
		if (skip && (skip[row / 64] >> (row % 64) & 1) != 0)
			continue;
		bool mine = own < count && rows[own] == row;
		own += mine;
		if (!mine && time[row] <= ln->high)
			continue;
		ln->high = weir_max_i64(ln->high, time[row]);
		struct item it = {.time = time[row]};
		if (mine) {
			it.slot = hg->keyed->slot[row];
			it.hash = weir_hash_index(hg->keyed->hash[row]);
			it.row = hold_item(jn, hg, row, it.slot);
			jn->slot_rows[it.slot]++;
		}
		weir_buf_put(&ln->items, &it, sizeof it);
	}
}

/* Rows of a global table: they come first in the order point, and move no time. broadcast: into every own slot. */
static void hold_global(struct weir_join *jn, const struct holding *hg, const uint16_t *rows, uint32_t count)
{
	const struct weir_sel *all = &hg->fb->sel;
	for (uint32_t i = 0; i < count && !jn->ps->broadcast; i++) {
		uint32_t slot = hg->keyed->slot[rows[i]];
		const struct held *h = hold_row(jn, hg, rows[i], slot);
		weir_buf_put(&jn->first[slot], &h, sizeof h);
	}
	for (uint32_t k = 0; k < jn->ps->slot_count && jn->ps->broadcast; k++)
		for (uint32_t i = 0; i < all->count && jn->w->slots[jn->stage][k]; i++) {
			const struct held *h = hold_row(jn, hg, all->row[i], k);
			weir_buf_put(&jn->first[k], &h, sizeof h);
		}
}

/* Cost: about 2 ns for each row of the fragment that another worker owns, and 20 for an own one. */
void weir_join_hold(struct weir_join *jn, const struct weir_fragment *fr, const struct weir_fragment_branch *fb,
		    const struct weir_keyed *keyed, const uint16_t *rows, uint32_t count, const uint64_t *skip)
{
	bool scan = fr->input != NULL;
	uint32_t all = scan ? fr->sel.count : fr->rows.count;
	uint32_t side = jn->w->cf.plan->branches[fb->branch].side;
	struct holding hg = {.fr = fr,
			     .fb = fb,
			     .keyed = keyed,
			     .side = side,
			     .place.side = side,
			     .col_count = jn->def->sides[side].col_count,
			     .key_count = jn->def->foreign != 0 ? jn->def->foreign : jn->ps->key_count,
			     .keeps_deleted = jn->def->foreign != 0 && side == 0,
			     .lane = jn->lane_base[fb->branch] + (scan ? fr->input->partition : fr->slot),
			     .has_original = wants_original(jn, fr)};
	if (all == 0)
		return;
	if (!jn->holding)
		weir_join_hold_begin(jn);
	if (jn->beside && !jn->w->cf.plan->branches[fb->branch].global) {
		weir_beside_hold(jn, fr, fb, keyed, rows, count, skip);
		return;
	}
	hg.fixed = weir_row_fixed(keyed->cols, hg.col_count);
	for (uint32_t k = 0; k < hg.key_count; k++)
		hg.null_keys |= fb->out[k]->has_null;
	if (jn->pairs_of && !skip && (hg.fixed || hg.col_count == 0) && !hg.null_keys && !keyed->deletes &&
	    weir_join_hold_sheets(jn, fr, keyed, rows, count, side, hg.fixed, &jn->lanes[hg.lane]))
		return;
	if (jn->w->cf.plan->branches[fb->branch].global)
		hold_global(jn, &hg, rows, count);
	else if (!skip && count == all)
		hold_all(jn, &hg, &jn->lanes[hg.lane], rows, count);
	else
		hold_some(jn, &hg, &jn->lanes[hg.lane], rows, count, all, skip);
	weir_join_place_close(&hg.place);
}

/* ---- merging ---- */

static const struct item *lane_items(const struct lane *ln, uint32_t *count)
{
	*count = (uint32_t)(ln->items.bytes / sizeof(struct item));
	return (const struct item *)(const void *)ln->items.data;
}

static void merge_two(const struct mark *a, uint32_t an, const struct mark *b, uint32_t bn, struct mark *to)
{
	uint32_t i = 0, k = 0;
	while (i < an && k < bn)
		*to++ = b[k].key < a[i].key ? b[k++] : a[i++];
	memcpy(to, a + i, (an - i) * sizeof *to);
	memcpy(to + (an - i), b + k, (bn - k) * sizeof *to);
}

/* Merges the runs [start[i], start[i + 1]) of from, each ascending, two by two; of equal keys the earlier run's come
 * first. Returns where the result lies: from or to. */
static struct mark *merge_runs(struct mark *from, struct mark *to, uint32_t *start, uint32_t runs)
{
	while (runs > 1) {
		uint32_t kept = 0;
		for (uint32_t i = 0; i < runs; i += 2) {
			uint32_t a = start[i], b = start[i + 1],
				 c = i + 2 <= runs ? start[i + 2 < runs ? i + 2 : runs] : b;
			if (i + 1 == runs) {
				memcpy(to + a, from + a, (b - a) * sizeof *to);
				c = b;
			} else {
				merge_two(from + a, b - a, from + b, c - b, to + a);
			}
			start[kept++] = a;
			start[kept] = c;
		}
		runs = kept;
		struct mark *swap = from;
		from = to;
		to = swap;
	}
	return from;
}

/* Lanes of any keys. */
static void merge_any(struct weir_join *jn, const uint32_t *group, uint32_t lanes, uint32_t *order)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < 2 && !jn->marks[i]; i++)
		jn->marks[i] = weir_xcalloc(jn->order_capacity, sizeof *jn->marks[i]);
	for (uint32_t k = 0; k < lanes; k++) {
		uint32_t count;
		const struct item *it = lane_items(&jn->lanes[group[k]], &count);
		int64_t key = WEIR_TIME_UNSET;
		jn->start[k] = n;
		for (uint32_t i = 0; i < count; i++) {
			key = weir_max_i64(key, it[i].time);
			jn->marks[0][n++] = (struct mark){key, k};
		}
	}
	jn->start[lanes] = n;
	const struct mark *m = merge_runs(jn->marks[0], jn->marks[1], jn->start, lanes);
	for (uint32_t i = 0; i < n; i++)
		order[i] = m[i].lane;
}

/* Lanes whose keys lie close together, as times of one order point do: a count of each key, then every item's lane to
 * its place. False: they do not. Cost: about 2 ns an item; merging costs a mispredicted branch an item and pass. */
static bool merge_by_count(struct weir_join *jn, const uint32_t *group, uint32_t lanes, uint32_t n, uint32_t *order)
{
	int64_t low = INT64_MAX, high = INT64_MIN;
	for (uint32_t k = 0; k < lanes; k++) {
		uint32_t count;
		const struct item *it = lane_items(&jn->lanes[group[k]], &count);
		if (count == 0)
			continue;
		low = weir_min_i64(low, it[0].time);
		high = weir_max_i64(high, jn->lanes[group[k]].high);
	}
	if (high - low >= COUNTS_MAX || (high - low) / 4 > n)
		return false;
	uint32_t span = (uint32_t)(high - low) + 1, at = 0;
	if (!jn->counts)
		jn->counts = weir_xcalloc(COUNTS_MAX, sizeof *jn->counts);
	memset(jn->counts, 0, span * sizeof *jn->counts);
	for (uint32_t k = 0; k < lanes; k++) {
		uint32_t count;
		const struct item *it = lane_items(&jn->lanes[group[k]], &count);
		int64_t key = low;
		for (uint32_t i = 0; i < count; i++) {
			key = weir_max_i64(key, it[i].time);
			jn->counts[key - low]++;
		}
	}
	for (uint32_t i = 0; i < span; i++) {
		uint32_t count = jn->counts[i];
		jn->counts[i] = at;
		at += count;
	}
	for (uint32_t k = 0; k < lanes; k++) {
		uint32_t count;
		const struct item *it = lane_items(&jn->lanes[group[k]], &count);
		int64_t key = low;
		for (uint32_t i = 0; i < count; i++) {
			key = weir_max_i64(key, it[i].time);
			order[jn->counts[key - low]++] = k;
		}
	}
	return true;
}

/* The lanes of a group as the merge goes through them. */
struct passing {
	uint32_t lanes;
	int64_t task, low, high; /* low: the least of now */
	uint32_t low_at;
};

static void find_low(const struct weir_join *jn, struct passing *pg)
{
	pg->low = INT64_MAX;
	pg->low_at = 0;
	for (uint32_t k = 0; k < pg->lanes; k++) {
		if (jn->pass[k].now < pg->low) {
			pg->low = jn->pass[k].now;
			pg->low_at = k;
		}
	}
}

/* Lane k is at `now`, which is not below what it was. */
static inline void pass_to(struct weir_join *jn, struct passing *pg, uint32_t k, int64_t now)
{
	jn->pass[k].now = now;
	if (k == pg->low_at && now > pg->low)
		find_low(jn, pg);
}

/* All of lane k is passed. One that has left the minimum counted until now. */
static inline void pass_end(struct weir_join *jn, struct passing *pg, uint32_t k)
{
	int64_t last = jn->pass[k].last;
	if (last != INT64_MAX)
		pg->high = weir_max_i64(pg->high, last);
	pass_to(jn, pg, k, last);
}

static void pass_begin(struct weir_join *jn, struct passing *pg, const uint32_t *group)
{
	for (uint32_t k = 0; k < pg->lanes; k++) {
		const struct lane *ln = &jn->lanes[group[k]];
		struct pass *ps = &jn->pass[k];
		ps->before = ps->now = ln->before;
		ps->up = ln->up || ln->topic;
		ps->last = ln->out ? INT64_MAX : ps->up ? ln->now : weir_max_i64(ln->before, ln->high);
		ps->next = lane_items(ln, &ps->left);
		ps->key = WEIR_TIME_UNSET;
		pg->high = weir_max_i64(pg->high, ps->now);
	}
	find_low(jn, pg);
	for (uint32_t k = 0; k < pg->lanes; k++)
		if (jn->pass[k].left == 0)
			pass_end(jn, pg, k);
}

/* Task times at the turns of the group. A lane's time follows its items; that of an upstream slot moves only behind the
 * last. Cost: about 50 instructions an item. */
static void note_tasks(struct weir_join *jn, const uint32_t *group, uint32_t lanes, int64_t task, uint32_t from,
		       uint32_t count)
{
	bool max = jn->def->time_max;
	struct passing pg = {.lanes = lanes, .task = task, .high = WEIR_TIME_UNSET};
	pass_begin(jn, &pg, group);
	for (uint32_t i = from; i < from + count; i++) {
		uint32_t k = jn->order[i];
		struct pass *ps = &jn->pass[k];
		ps->key = weir_max_i64(ps->key, ps->next++->time);
		if (!ps->up)
			pass_to(jn, &pg, k, weir_max_i64(ps->before, ps->key));
		pg.high = weir_max_i64(pg.high, ps->now);
		pg.task = weir_max_i64(pg.task, max ? pg.high : pg.low);
		jn->tasks[i] = pg.task;
		if (WEIR_UNLIKELY(--ps->left == 0))
			pass_end(jn, &pg, k);
	}
}

/* Rows of the group to their slots. Cost: about 20 instructions an item. */
static void take_turns(struct weir_join *jn, const uint32_t *group, uint32_t lanes, uint32_t from, uint32_t count)
{
	for (uint32_t k = 0; k < lanes; k++) {
		const struct lane *ln = &jn->lanes[group[k]];
		struct pass *ps = &jn->pass[k];
		ps->next = lane_items(ln, &ps->left);
		ps->side = jn->w->cf.plan->branches[ln->branch].side != 0 ? WEIR_JOIN_SIDE : 0;
	}
	for (uint32_t i = from; i < from + count; i++) {
		struct pass *ps = &jn->pass[jn->order[i]];
		const struct item *it = ps->next++;
		if (it->row != WEIR_JOIN_NO_ROW)
			jn->sorted[jn->slot_at[it->slot]++] =
				(struct weir_join_turn){it->row, it->time, it->hash, i | ps->side};
	}
}

/* Two lanes of one slot: their rows in the order of (key, lane). What is written of an item without a row the next one
 * writes over, or the next slot, whose turn comes later. Cost: about 25 instructions an item;
 * which lane is next is not to be guessed. */
static void take_turns_of_two(struct weir_join *jn, const uint32_t *group, uint32_t slot, uint32_t from)
{
	uint32_t side[2], left[2];
	const struct item *it[2];
	for (uint32_t k = 0; k < 2; k++) {
		it[k] = lane_items(&jn->lanes[group[k]], &left[k]);
		side[k] = jn->w->cf.plan->branches[jn->lanes[group[k]].branch].side != 0 ? WEIR_JOIN_SIDE : 0;
	}
	int64_t key[2] = {left[0] != 0 ? it[0]->time : 0, left[1] != 0 ? it[1]->time : 0};
	struct weir_join_turn *to = jn->sorted + jn->slot_at[slot];
	uint32_t turn = from;
	while (left[0] != 0 && left[1] != 0) {
		uint32_t k = key[1] < key[0];
		const struct item *x = it[k]++;
		*to = (struct weir_join_turn){x->row, x->time, x->hash, turn++ | side[k]};
		to += x->row != WEIR_JOIN_NO_ROW;
		left[k]--;
		key[k] = weir_max_i64(key[k], left[k] != 0 ? x[1].time : 0);
	}
	for (uint32_t k = 0; k < 2; k++) {
		for (; left[k] != 0; left[k]--) {
			const struct item *x = it[k]++;
			*to = (struct weir_join_turn){x->row, x->time, x->hash, turn++ | side[k]};
			to += x->row != WEIR_JOIN_NO_ROW;
		}
	}
	jn->slot_at[slot] = (uint32_t)(to - jn->sorted);
}

/* Those lanes that are merged with each other: all, or the inputs of one slot. */
static uint32_t lanes_of(struct weir_join *jn, uint32_t g)
{
	uint32_t lanes = 0;
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		const struct weir_plan_branch *br = &jn->w->cf.plan->branches[jn->lanes[i].branch];
		if (br->global)
			continue;
		if (weir_join_is_direct(jn) &&
		    jn->lanes[i].from - jn->w->cf.plan->scans[br->origin].partition_base != g)
			continue;
		jn->group[lanes++] = i;
	}
	return lanes;
}

static uint32_t group_items(const struct weir_join *jn, uint32_t lanes)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < lanes; k++) {
		uint32_t count;
		(void)lane_items(&jn->lanes[jn->group[k]], &count);
		n += count;
	}
	return n;
}

static uint32_t group_count(const struct weir_join *jn)
{
	return weir_join_is_direct(jn) ? jn->ps->slot_count : 1;
}

/* The group's lanes, in the order of their items. */
static void find_order(struct weir_join *jn, uint32_t lanes, uint32_t items, uint32_t *order)
{
	if (!merge_by_count(jn, jn->group, lanes, items, order))
		merge_any(jn, jn->group, lanes, order);
}

/* Whether the rows of a group, of so many lanes, take their turns without its order, which task times alone need. */
static bool is_pair(const struct weir_join *jn, uint32_t lanes)
{
	return jn->inner && weir_join_is_direct(jn) && lanes == 2;
}

/* Whose items are not all rows: join_sheets.c. */
static bool has_sheets(const struct weir_join *jn, uint32_t slot)
{
	return jn->pairs_of && jn->pairs_of[slot].used;
}

static void note_all_tasks(struct weir_join *jn)
{
	for (uint32_t g = 0, from = 0, n; g < group_count(jn); g++, from += n) {
		uint32_t lanes = lanes_of(jn, g);
		n = group_items(jn, lanes);
		if (n == 0 || has_sheets(jn, g))
			continue;
		if (is_pair(jn, lanes))
			find_order(jn, lanes, n, jn->order + from);
		note_tasks(jn, jn->group, lanes, jn->task_before[g], from, n);
	}
	jn->has_tasks = true;
}

int64_t weir_join_task_at(struct weir_join *jn, const struct weir_join_turn *t)
{
	if (jn->sheet_run.active)
		return weir_join_sheets_task(jn);
	if (!jn->has_tasks)
		note_all_tasks(jn);
	return jn->tasks[t->turn & ~WEIR_JOIN_SIDE];
}

/* What the lanes' times are now, which is behind all that is held. */
static void note_lanes(struct weir_join *jn)
{
	jn->task_max = WEIR_TIME_UNSET;
	for (uint32_t g = 0; g < group_count(jn); g++)
		jn->task_max = weir_max_i64(jn->task_max, jn->task_before[g]);
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		struct lane *ln = &jn->lanes[i];
		ln->now = weir_join_lane_time(jn, ln, &ln->out);
		jn->task_max = weir_max_i64(jn->task_max, weir_max_i64(ln->before, weir_max_i64(ln->now, ln->high)));
	}
	jn->has_tasks = false;
}

static void order_room(struct weir_join *jn)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < jn->lane_count; i++)
		n += jn->lanes[i].items.bytes / sizeof(struct item);
	if (n <= jn->order_capacity)
		return;
	WEIR_ASSERT(n < WEIR_JOIN_SIDE);
	uint64_t to = jn->order_capacity ? jn->order_capacity : 1024;
	while (to < n)
		to *= 2;
	jn->order = weir_xrealloc(jn->order, to * sizeof *jn->order);
	jn->tasks = weir_xrealloc(jn->tasks, to * sizeof *jn->tasks);
	for (uint32_t i = 0; i < 2; i++) {
		free(jn->marks[i]);
		jn->marks[i] = NULL;
	}
	free(jn->sorted);
	jn->sorted = weir_xcalloc(to + WEIR_JOIN_AHEAD, sizeof *jn->sorted);
	jn->order_capacity = (uint32_t)to;
}

void weir_join_merge(struct weir_join *jn)
{
	uint32_t slots = jn->ps->slot_count;
	memset(jn->slot_start, 0, (slots + 1) * sizeof *jn->slot_start);
	if (!jn->holding || jn->beside)
		return;
	order_room(jn);
	note_lanes(jn);
	/* Slot s ends up in [slot_start[s], slot_start[s + 1]). */
	for (uint32_t s = 0; s < slots; s++) {
		jn->slot_at[s] = jn->slot_start[s];
		jn->slot_start[s + 1] = jn->slot_start[s] + jn->slot_rows[s];
	}
	for (uint32_t g = 0, from = 0, n; g < group_count(jn); g++, from += n) {
		uint32_t lanes = lanes_of(jn, g);
		n = group_items(jn, lanes);
		if (n == 0 || has_sheets(jn, g))
			continue;
		if (is_pair(jn, lanes)) {
			take_turns_of_two(jn, jn->group, g, from);
			continue;
		}
		find_order(jn, lanes, n, jn->order + from);
		take_turns(jn, jn->group, lanes, from, n);
	}
}

void weir_join_reset(struct weir_join *jn)
{
	jn->holding = false;
	weir_scratch_reset(&jn->scratch);
	weir_join_blocks_free(jn->large);
	jn->large = NULL;
	jn->large_bytes = 0;
	memset(jn->memory, 0, jn->ps->slot_count * sizeof *jn->memory);
	memset(jn->slot_rows, 0, jn->ps->slot_count * sizeof *jn->slot_rows);
	while (jn->blocks) {
		struct block *bl = jn->blocks;
		jn->blocks = bl->next;
		if (jn->free_count == BLOCKS_KEPT) {
			jn->block_bytes -= sizeof *bl + BLOCK_BYTES;
			free(bl);
			continue;
		}
		bl->next = jn->free_blocks;
		jn->free_blocks = bl;
		jn->free_count++;
	}
	for (uint32_t k = 0; k < jn->ps->slot_count; k++)
		jn->first[k].bytes = 0;
	for (uint32_t i = 0; i < jn->lane_count; i++)
		jn->lanes[i].items.bytes = jn->lanes[i].moves.bytes = 0;
	if (jn->beside)
		weir_beside_reset(jn);
	if (jn->pairs_of)
		weir_join_sheets_reset(jn);
}
