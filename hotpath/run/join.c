/* join.c: holding, merging and applying the two sides of a join (join.h). @thread worker
 *
 * A held row costs its packed columns, its key and sizeof(struct held); it lives until the order point is through. Rows
 * of a slot lie together, since they are applied slot by slot; merging touches items only, never the rows. */
#include "hotpath/run/join_private.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/state/versions.h"

/* ---- making ---- */

static const struct weir_col **pointers_to(const struct weir_rows *r)
{
	const struct weir_col **p = weir_xcalloc(r->col_count + 1, sizeof *p);
	for (uint32_t c = 0; c < r->col_count; c++)
		p[c] = &r->cols[c];
	return p;
}

static uint32_t branch_lanes(const struct weir_plan *pl, const struct weir_plan_branch *br)
{
	return br->from == WEIR_FROM_SCAN ? pl->scans[br->origin].partition_count : pl->stages[br->origin].slot_count;
}

static void make_lanes(struct weir_join *jn, const struct weir_plan *pl)
{
	jn->lane_base = weir_xcalloc(pl->branch_count + 1, sizeof *jn->lane_base);
	for (uint32_t i = 0; i < jn->ps->input_count; i++)
		jn->lane_count += branch_lanes(pl, &pl->branches[jn->ps->inputs[i]]);
	jn->lanes = weir_xcalloc(jn->lane_count + 1, sizeof *jn->lanes);
	uint32_t n = 0;
	for (int tables = 1; tables >= 0; tables--) {
		for (uint32_t i = 0; i < jn->ps->input_count; i++) {
			uint32_t branch = jn->ps->inputs[i];
			const struct weir_plan_branch *br = &pl->branches[branch];
			if (jn->def->sides[br->side].table != (bool)tables)
				continue;
			bool up = br->from == WEIR_FROM_STAGE;
			jn->lane_base[branch] = n;
			for (uint32_t k = 0; k < branch_lanes(pl, br); k++)
				jn->lanes[n++] =
					(struct lane){.branch = branch,
						      .from = up ? k : pl->scans[br->origin].partition_base + k,
						      .up = up,
						      .topic = !up && pl->scans[br->origin].repartition >= 0};
		}
	}
}

enum weir_err weir_join_create(struct weir_join **out, struct weir_worker *w, uint32_t stage, struct weir_diag **dg)
{
	struct weir_join *jn = weir_xcalloc(1, sizeof *jn);
	const struct weir_plan *pl = w->cf.plan;
	jn->w = w;
	jn->stage = stage;
	jn->ps = &pl->stages[stage];
	jn->def = &jn->ps->def;
	jn->has_stage_branch = w->st->has_stage_branch[stage];
	make_lanes(jn, pl);
	jn->task_before = weir_xcalloc(jn->ps->slot_count + 1, sizeof *jn->task_before);
	jn->slot_start = weir_xcalloc(jn->ps->slot_count + 2, sizeof *jn->slot_start);
	jn->memory = weir_xcalloc(jn->ps->slot_count + 1, sizeof *jn->memory);
	jn->pass = weir_xcalloc(jn->lane_count + 1, sizeof *jn->pass);
	jn->lane_next = weir_xcalloc(jn->lane_count + 1, sizeof *jn->lane_next);
	jn->turn_of = weir_xcalloc(jn->lane_count + 1, sizeof *jn->turn_of);
	jn->lane_now = weir_xcalloc(jn->lane_count + 1, sizeof *jn->lane_now);
	weir_scratch_init(&jn->scratch);
	weir_rows_init(&jn->own, jn->def);
	jn->own_ptrs = pointers_to(&jn->own);
	*out = jn;
	if (!jn->ps->residual)
		return WEIR_OK;
	weir_rows_init(&jn->trial, jn->def);
	jn->trial_ptrs = pointers_to(&jn->trial);
	return weir_program_create(&jn->residual, &jn->ps->residual, 1, dg);
}

static void blocks_free(struct block *bl)
{
	while (bl) {
		struct block *next = bl->next;
		free(bl);
		bl = next;
	}
}

void weir_join_destroy(struct weir_join *jn)
{
	if (!jn)
		return;
	blocks_free(jn->blocks);
	blocks_free(jn->free_blocks);
	blocks_free(jn->large);
	free(jn->memory);
	free(jn->pass);
	free(jn->lane_next);
	free(jn->lane_now);
	free(jn->task);
	free(jn->counts);
	free(jn->turn_of);
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		weir_buf_fini(&jn->lanes[i].steps);
		weir_buf_fini(&jn->lanes[i].items);
	}
	weir_program_destroy(jn->residual);
	if (jn->trial_ptrs)
		weir_rows_fini(&jn->trial);
	weir_rows_fini(&jn->own);
	weir_scratch_fini(&jn->scratch);
	weir_buf_fini(&jn->found);
	weir_buf_fini(&jn->window);
	weir_buf_fini(&jn->foreign_key);
	free(jn->own_ptrs);
	free(jn->trial_ptrs);
	free(jn->lane_base);
	free(jn->lanes);
	free(jn->task_before);
	free(jn->slot_start);
	free(jn->order);
	free(jn->spare);
	free(jn->sorted);
	free(jn);
}

/* ---- holding ---- */

/* A join of two tables: a table itself, by the same key. */
static bool is_tables(const struct weir_join *jn)
{
	return jn->def->sides[0].table && jn->def->sides[1].table;
}

static int64_t lane_time(const struct weir_join *jn, const struct lane *ln, bool *out)
{
	const struct weir_times *tm = jn->w->times;
	return ln->up ? weir_times_up(tm, ln->branch, ln->from, out) : weir_times_source(tm, ln->from, out);
}

/* The first rows since the last order point: what the clocks say now is what was applied up to there. */
static void hold_begin(struct weir_join *jn)
{
	bool out;
	jn->holding = true;
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		jn->lanes[i].before = lane_time(jn, &jn->lanes[i], &out);
		jn->lanes[i].high = WEIR_TIME_UNSET;
	}
	for (uint32_t k = 0; k < (weir_join_is_direct(jn) ? jn->ps->slot_count : 1); k++)
		jn->task_before[k] = weir_times_task(jn->w->times, jn->stage, k);
}

static void *hold_more(struct weir_join *jn, struct hold_memory *hm, size_t bytes)
{
	if (bytes > BLOCK_BYTES / 4) {
		struct block *bl = weir_xmalloc(sizeof *bl + bytes);
		bl->next = jn->large;
		jn->large = bl;
		return bl->bytes;
	}
	struct block *bl = jn->free_blocks;
	if (bl) {
		jn->free_blocks = bl->next;
		jn->free_count--;
	} else {
		bl = weir_xmalloc(sizeof *bl + BLOCK_BYTES);
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
		return hold_more(jn, hm, bytes);
	void *p = hm->at;
	hm->at += bytes;
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
	return o;
}

static const struct original *keep_row(struct weir_join *jn, const struct weir_fragment *fr, uint32_t row)
{
	struct weir_encoder *en = jn->w->st->late_encoder[fr->stage];
	struct original *o = weir_scratch_take(&jn->scratch, sizeof *o);
	struct weir_buf value = {0};
	en->encode(en, fr->rows.cols, row, &value);
	*o = (struct original){
		.up = true, .topic = jn->w->cf.plan->stages[fr->stage].name, .topic_partition = fr->slot, .row = row};
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

static void hold_row(struct weir_join *jn, const struct weir_fragment *fr, const struct weir_fragment_branch *fb,
		     const struct weir_keyed *keyed, struct lane *ln, uint32_t row, int64_t key)
{
	const struct weir_plan_branch *br = &jn->w->cf.plan->branches[fb->branch];
	const struct weir_state_side *side = &jn->def->sides[br->side];
	bool deletes = keyed->deletes && keyed->deletes[row];
	uint32_t key_bytes = keyed->key_bytes[row];
	bool packed = !deletes || (jn->def->foreign != 0 && br->side == 0); /* what goes is handed on */
	uint64_t row_bytes = !packed ? 0 : weir_row_bytes(keyed->cols, side->col_count, row);
	size_t key_room = weir_align_up(key_bytes, 8);
	uint32_t slot = keyed->slot[row];
	struct held *h = hold_take(jn, slot, weir_align_up(sizeof *h + key_room + row_bytes, 8));
	uint8_t *at = (uint8_t *)(h + 1);
	*h = (struct held){.side = (uint8_t)br->side,
			   .deletes = deletes,
			   .null_key =
				   has_null_key(fb, jn->def->foreign != 0 ? jn->def->foreign : jn->ps->key_count, row)};
	h->r = (struct weir_join_row){.hash = keyed->hash[row],
				      .time = keyed->time[row],
				      .key = at,
				      .key_bytes = key_bytes,
				      .row = at + key_room,
				      .row_bytes = (uint32_t)row_bytes};
	memcpy(at, keyed->key[row], key_bytes);
	memset(at + key_bytes, 0, key_room - key_bytes);
	if (packed)
		(void)weir_row_pack(keyed->cols, side->col_count, row, at + key_room);
	if (jn->def->within && fr->input && jn->w->cf.policies[fr->scan].late >= 0)
		h->original = keep_original(jn, fr, row);
	if (jn->def->within && !fr->input && jn->w->cf.policies[0].late >= 0)
		h->original = keep_row(jn, fr, row);
	struct item it = {key, h, (uint32_t)(ln - jn->lanes), slot};
	weir_buf_put(&ln->items, &it, sizeof it);
}

/* Cost: about 2 ns for each row of the fragment, whoever owns it, and 40 for an own one. */
void weir_join_hold(struct weir_join *jn, const struct weir_fragment *fr, const struct weir_fragment_branch *fb,
		    const struct weir_keyed *keyed, const uint16_t *rows, uint32_t count, const uint64_t *skip)
{
	bool scan = fr->input != NULL;
	uint32_t all = scan ? fr->sel.count : fr->rows.count;
	struct lane *ln = &jn->lanes[jn->lane_base[fb->branch] + (scan ? fr->input->partition : fr->slot)];
	if (all == 0)
		return;
	if (!jn->holding)
		hold_begin(jn);
	for (uint32_t i = 0, own = 0; i < all; i++) {
		uint32_t row = scan ? fr->sel.row[i] : i;
		if (skip && (skip[row / 64] >> (row % 64) & 1) != 0)
			continue;
		int64_t time = scan ? fr->time[row] : keyed->time[row];
		if (time > ln->high) {
			ln->high = time;
			weir_buf_put(&ln->steps, &time, sizeof time);
		}
		if (own < count && rows[own] == row) {
			hold_row(jn, fr, fb, keyed, ln, row, ln->high);
			own++;
		}
	}
}

/* ---- merging ---- */

static void merge_two(const struct item *a, uint32_t an, const struct item *b, uint32_t bn, struct item *to)
{
	uint32_t i = 0, k = 0;
	while (i < an && k < bn)
		*to++ = b[k].key < a[i].key ? b[k++] : a[i++];
	memcpy(to, a + i, (an - i) * sizeof *to);
	memcpy(to + (an - i), b + k, (bn - k) * sizeof *to);
}

/* Merges the runs [start[i], start[i + 1]) of from, each ascending, two by two; of equal keys the earlier run's come
 * first. Returns where the result lies: from or to. */
static struct item *merge_runs(struct item *from, struct item *to, uint32_t *start, uint32_t runs)
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
		struct item *swap = from;
		from = to;
		to = swap;
	}
	return from;
}

/* The same where keys lie close together, as times of one order point do: a count of each, then every item to its
 * place. Returns whether they did. Cost: about 5 ns an item; merging costs a mispredicted branch an item and pass. */
static bool merge_by_count(struct weir_join *jn, const struct item *from, struct item *to, const uint32_t *start,
			   uint32_t runs)
{
	uint32_t n = start[runs];
	int64_t low = INT64_MAX, high = INT64_MIN;
	for (uint32_t i = 0; i < runs; i++) {
		if (start[i] == start[i + 1])
			continue;
		low = weir_min_i64(low, from[start[i]].key);
		high = weir_max_i64(high, from[start[i + 1] - 1].key);
	}
	if (high - low >= COUNTS_MAX || (high - low) / 4 > n)
		return false;
	uint32_t span = (uint32_t)(high - low) + 1, at = 0;
	if (!jn->counts)
		jn->counts = weir_xcalloc(COUNTS_MAX, sizeof *jn->counts);
	memset(jn->counts, 0, span * sizeof *jn->counts);
	for (uint32_t i = 0; i < n; i++)
		jn->counts[from[i].key - low]++;
	for (uint32_t i = 0; i < span; i++) {
		uint32_t count = jn->counts[i];
		jn->counts[i] = at;
		at += count;
	}
	for (uint32_t i = 0; i < n; i++)
		to[jn->counts[from[i].key - low]++] = from[i];
	return true;
}

/* Lane k goes on to what stands before key in the merged order. */
static void lane_pass(struct weir_join *jn, uint32_t k, int64_t key, bool before_turn, int64_t *high)
{
	struct pass *ps = &jn->pass[k];
	while (ps->step < ps->end && (*ps->step < key || (before_turn && *ps->step == key))) {
		if (!ps->up)
			jn->lane_now[k] = weir_max_i64(ps->before, *ps->step);
		ps->step++;
	}
	jn->lane_next[k] = ps->step < ps->end ? *ps->step : INT64_MAX;
	*high = weir_max_i64(*high, jn->lane_now[k]);
	if (ps->step == ps->end) {
		jn->lane_now[k] = ps->last;
		if (ps->last != INT64_MAX)
			*high = weir_max_i64(*high, ps->last);
	}
}

static void pass_begin(struct weir_join *jn, const uint32_t *group, uint32_t lanes, int64_t *high)
{
	for (uint32_t k = 0; k < lanes; k++) {
		const struct lane *ln = &jn->lanes[group[k]];
		struct pass *ps = &jn->pass[k];
		bool out;
		int64_t now = lane_time(jn, ln, &out);
		ps->step = (const int64_t *)(const void *)ln->steps.data;
		ps->end = ps->step + ln->steps.bytes / sizeof *ps->step;
		ps->before = ln->before;
		ps->up = ln->up || ln->topic;
		ps->last = out ? INT64_MAX : ps->up ? now : weir_max_i64(ln->before, ln->high);
		jn->lane_now[k] = ps->before;
		lane_pass(jn, k, INT64_MIN, false, high);
	}
}

/* Task time of every row of a group's lanes, in merged order. A lane that has left the minimum counts until its last
 * held step is passed. Cost: about 1 ns for each lane. */
static void give_task_times(struct weir_join *jn, const uint32_t *group, uint32_t lanes, int64_t task,
			    const struct item *it, uint32_t count, int64_t *out)
{
	bool max = jn->def->time_max;
	int64_t high = WEIR_TIME_UNSET;
	pass_begin(jn, group, lanes, &high);
	for (uint32_t i = 0; i < count; i++) {
		int64_t key = it[i].key, low = INT64_MAX;
		uint32_t turn = jn->turn_of[it[i].lane];
		for (uint32_t k = 0; k < lanes; k++)
			if (WEIR_UNLIKELY(jn->lane_next[k] <= key && k != turn))
				lane_pass(jn, k, key, k < turn, &high);
		struct pass *own = &jn->pass[turn];
		int64_t now = own->up ? own->before : weir_max_i64(own->before, key);
		for (uint32_t k = 0; k < lanes; k++)
			low = weir_min_i64(low, k == turn ? now : jn->lane_now[k]);
		high = weir_max_i64(high, now);
		task = weir_max_i64(task, max ? high : low);
		out[i] = task;
	}
}

/* Merges the lanes group[0..lanes) into order[at..]; returns how many rows they had. */
static uint32_t merge_group(struct weir_join *jn, const uint32_t *group, uint32_t lanes, int64_t task, uint32_t at,
			    uint32_t *start)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < lanes; k++) {
		struct lane *ln = &jn->lanes[group[k]];
		start[k] = n;
		jn->turn_of[group[k]] = k;
		if (ln->items.bytes)
			memcpy(jn->order + at + n, ln->items.data, ln->items.bytes);
		n += (uint32_t)(ln->items.bytes / sizeof(struct item));
	}
	start[lanes] = n;
	if (n == 0)
		return 0;
	struct item *it = jn->spare + at;
	if (!merge_by_count(jn, jn->order + at, it, start, lanes))
		it = merge_runs(jn->order + at, jn->spare + at, start, lanes);
	give_task_times(jn, group, lanes, task, it, n, jn->task + at);
	if (it != jn->order + at)
		memcpy(jn->order + at, it, n * sizeof *it);
	return n;
}

static void order_room(struct weir_join *jn)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < jn->lane_count; i++)
		n += jn->lanes[i].items.bytes / sizeof(struct item);
	if (n <= jn->order_capacity)
		return;
	WEIR_ASSERT(n <= UINT32_MAX / 2);
	uint32_t to = jn->order_capacity ? jn->order_capacity : 1024;
	while (to < n)
		to *= 2;
	jn->order = weir_xrealloc(jn->order, to * sizeof *jn->order);
	jn->spare = weir_xrealloc(jn->spare, to * sizeof *jn->spare);
	jn->sorted = weir_xrealloc(jn->sorted, to * sizeof *jn->sorted);
	jn->task = weir_xrealloc(jn->task, to * sizeof *jn->task);
	jn->order_capacity = to;
}

void weir_join_merge(struct weir_join *jn)
{
	uint32_t slots = jn->ps->slot_count, n = 0;
	memset(jn->slot_start, 0, (slots + 2) * sizeof *jn->slot_start);
	if (!jn->holding)
		return;
	order_room(jn);
	uint32_t *group = weir_xcalloc(2 * jn->lane_count + 2, sizeof *group), *start = group + jn->lane_count;
	for (uint32_t g = 0; g < (weir_join_is_direct(jn) ? slots : 1); g++) {
		uint32_t lanes = 0;
		for (uint32_t i = 0; i < jn->lane_count; i++) {
			const struct weir_plan_branch *br = &jn->w->cf.plan->branches[jn->lanes[i].branch];
			if (weir_join_is_direct(jn) &&
			    jn->lanes[i].from - jn->w->cf.plan->scans[br->origin].partition_base != g)
				continue;
			group[lanes++] = i;
		}
		n += merge_group(jn, group, lanes, jn->task_before[g], n, start);
	}
	free(group);
	/* By slot, stable: slot s ends up in [slot_start[s], slot_start[s + 1]). */
	for (uint32_t i = 0; i < n; i++)
		jn->slot_start[jn->order[i].slot + 2]++;
	for (uint32_t s = 2; s < slots + 2; s++)
		jn->slot_start[s] += jn->slot_start[s - 1];
	for (uint32_t i = 0; i < n; i++)
		jn->sorted[jn->slot_start[jn->order[i].slot + 1]++] = (struct turn){jn->order[i].h, jn->task[i]};
}

void weir_join_reset(struct weir_join *jn)
{
	jn->holding = false;
	weir_scratch_reset(&jn->scratch);
	blocks_free(jn->large);
	jn->large = NULL;
	memset(jn->memory, 0, jn->ps->slot_count * sizeof *jn->memory);
	while (jn->blocks) {
		struct block *bl = jn->blocks;
		jn->blocks = bl->next;
		if (jn->free_count == BLOCKS_KEPT) {
			free(bl);
			continue;
		}
		bl->next = jn->free_blocks;
		jn->free_blocks = bl;
		jn->free_count++;
	}
	for (uint32_t i = 0; i < jn->lane_count; i++)
		jn->lanes[i].steps.bytes = jn->lanes[i].items.bytes = 0;
}

/* ---- results ---- */

/* Copies the strings of row n's columns [from, to) into the rows' own memory. */
static uint64_t own_strings(struct weir_rows *r, uint32_t from, uint32_t to, uint32_t n)
{
	uint64_t bytes = 0;
	for (uint32_t i = from; i < to; i++) {
		struct weir_col *c = &r->cols[i];
		if (c->phys != WEIR_PHYS_STR || weir_col_is_null(c, n))
			continue;
		c->str[n].data = keep_bytes(&r->scratch, c->str[n].data, c->str[n].bytes);
		bytes += c->str[n].bytes;
	}
	return bytes;
}

/* Writes the pair of l and r, one of which may be NULL, as the next row of `to`. own: its strings are copied; a table's
 * always are, since the table may change before the rows are read. */
uint64_t weir_join_put_pair(struct weir_join *jn, struct weir_rows *to, const struct weir_join_row *l,
			    const struct weir_join_row *r, bool own)
{
	const struct weir_state_def *def = jn->def;
	const struct weir_join_row *side[2] = {l, r}, *key = l ? l : r;
	uint32_t n = to->count++, at = def->key_count;
	uint64_t bytes = 0;
	weir_key_decode(key->key, key->key_bytes, def->key_types, def->key_count, to->cols, n, &to->scratch);
	if (own)
		bytes += own_strings(to, 0, def->key_count, n);
	for (uint32_t s = 0; s < 2; s++) {
		uint32_t count = def->sides[s].col_count;
		bool copy = own || def->sides[s].table;
		if (side[s])
			bytes += weir_row_unpack(side[s]->row, side[s]->row_bytes, to->cols + at, count, n,
						 copy ? &to->scratch : NULL);
		else
			weir_row_set_null(to->cols + at, count, n);
		at += count;
	}
	for (uint32_t s = 0; s < 2 && weir_join_in_windows(def); s++, at += 2) {
		if (!side[s]) {
			weir_row_set_null(to->cols + at, 2, n);
			continue;
		}
		to->cols[at].i64[n] = key->time + 1 - def->size_ms;
		to->cols[at + 1].i64[n] = key->time + 1;
	}
	bool stream = def->sides[0].table != def->sides[1].table;
	to->time[n] = stream ? (def->sides[0].table ? r : l)->time
		      : !l   ? r->time
		      : !r   ? l->time
			     : weir_max_i64(l->time, r->time);
	to->op[n] = WEIR_OP_INSERT;
	to->entry[n] = NULL;
	return bytes;
}

/* Of a join with a table: pairs that fail what else they need are no matches. Inner joins have that in a filter. */
static void unmatch_failed(struct weir_join *jn, struct weir_rows *r, const struct weir_col *const *cols)
{
	struct weir_sel pass;
	uint32_t table = jn->def->sides[1].table;
	uint32_t from = jn->def->key_count + (table ? jn->def->sides[0].col_count : 0);
	weir_sel_all(&pass, r->count);
	jn->errors.count = 0;
	weir_program_filter(jn->residual, cols, &pass, &r->scratch, &jn->errors);
	for (uint32_t i = 0, p = 0; i < r->count; i++) {
		if (p < pass.count && pass.row[p] == i)
			p++;
		else
			weir_row_set_null(r->cols + from, jn->def->sides[table].col_count, i);
	}
}

/* Hands the rows written so far on. */
void weir_join_flush(struct weir_join *jn, struct weir_bundle *b, uint32_t slot)
{
	struct weir_worker *w = jn->w;
	struct weir_rows *r = jn->out;
	if (!r || r->count == 0)
		return;
	const struct weir_col *const *cols = jn->fr ? jn->fr->col_ptrs : jn->own_ptrs;
	struct weir_sel all;
	if (jn->residual && !jn->def->within)
		unmatch_failed(jn, r, cols);
	weir_sel_all(&all, r->count);
	for (uint32_t i = 0; i < jn->ps->branch_count; i++) {
		uint32_t branch = jn->ps->branches[i];
		struct weir_tail *tl = w->st->tails[branch];
		if (!tl)
			continue;
		size_t at = b->results.bytes;
		struct weir_tail_done done;
		if (weir_tail_exchanges(tl))
			done = weir_worker_send(w, tl, branch, slot, r, &b->results);
		else if (is_tables(jn))
			done = weir_tail_changes(tl, w->slots[jn->stage][slot], r, slot, &b->results);
		else
			done = weir_tail_stream(tl, cols, &all, r->time, slot, &r->scratch, &b->results);
		if (done.results) {
			struct weir_chunk *c = weir_bundle_chunk(b);
			c->output = w->cf.plan->branches[branch].target;
			c->stage = jn->stage + 1;
			c->slot = slot;
			c->seq = b->seq;
			c->branch = branch;
			c->results = done.results;
			c->at = at;
			c->bytes = b->results.bytes - at;
			w->st->now->results += done.results;
		}
		weir_worker_count_errors(w, b, jn->ps->name, done.errors, 0);
	}
	for (uint32_t i = 0; i < r->count && is_tables(jn); i++)
		if (r->entry[i])
			((struct weir_entry *)r->entry[i])->flags &= (uint8_t)~WEIR_ENTRY_CHANGED;
	if (jn->fr) {
		struct weir_fragment *fr = jn->fr;
		jn->fr = NULL;
		jn->out = NULL;
		weir_worker_hand_over(w, b, fr);
	} else {
		weir_rows_reset(r);
	}
	jn->out_bytes = 0;
}

/* Room for one more row. False: no fragment is free. */
bool weir_join_room(struct weir_join *jn, struct weir_bundle *b, uint32_t slot)
{
	if (jn->out && (jn->out->count == WEIR_BATCH_ROWS || jn->out_bytes >= WEIR_ROWS_BYTES))
		weir_join_flush(jn, b, slot);
	if (jn->out)
		return true;
	if (!jn->has_stage_branch) {
		jn->out = &jn->own;
	} else {
		jn->fr = weir_worker_take_stage_fragment(jn->w, jn->stage);
		if (!jn->fr)
			return false;
		jn->fr->slot = slot;
		jn->out = &jn->fr->rows;
	}
	weir_rows_reset(jn->out);
	jn->out_bytes = 0;
	return true;
}

void weir_join_emit(struct weir_join *jn, uint32_t side, const struct weir_join_row *own,
		    const struct weir_join_row *other)
{
	jn->out_bytes +=
		weir_join_put_pair(jn, jn->out, side == 0 ? own : other, side == 0 ? other : own, jn->has_stage_branch);
}

/* ---- applying ---- */

/* The next pairs of the row whose matches are being written. False: come again. */
static bool put_found(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	const struct weir_join_found *found = (const struct weir_join_found *)(const void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found);
	while (jn->found_at < n) {
		struct weir_join_row other;
		if (!weir_join_room(jn, b, sl->number))
			return false;
		weir_join_buffer_get(jn->def, &found[jn->found_at++], &other);
		weir_join_emit(jn, jn->current->side, &jn->current->r, &other);
	}
	jn->current = NULL;
	return true;
}

/* Leaves those in found that fulfil what else a match needs. */
void weir_join_keep_matches(struct weir_join *jn, const struct held *h)
{
	struct weir_join_found *found = (struct weir_join_found *)(void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found), kept = 0;
	for (uint32_t from = 0; from < n; from += WEIR_BATCH_ROWS) {
		uint32_t to = from + WEIR_BATCH_ROWS < n ? from + WEIR_BATCH_ROWS : n;
		struct weir_sel pass;
		weir_rows_reset(&jn->trial);
		for (uint32_t i = from; i < to; i++) {
			struct weir_join_row other;
			weir_join_buffer_get(jn->def, &found[i], &other);
			(void)weir_join_put_pair(jn, &jn->trial, h->side == 0 ? &h->r : &other,
						 h->side == 0 ? &other : &h->r, false);
		}
		weir_sel_all(&pass, to - from);
		jn->errors.count = 0;
		weir_program_filter(jn->residual, jn->trial_ptrs, &pass, &jn->trial.scratch, &jn->errors);
		for (uint32_t i = 0; i < pass.count; i++)
			found[kept++] = found[from + pass.row[i]];
	}
	jn->found.bytes = kept * sizeof *found;
}

void weir_join_note_late(struct weir_join *jn, struct weir_bundle *b, const struct held *h)
{
	struct weir_worker *w = jn->w;
	const struct original *o = h->original;
	w->st->now->late++;
	w->st->now->by_reason[WEIR_REASON_LATE]++;
	if (!o)
		return;
	uint32_t output = (uint32_t)w->cf.policies[o->scan].late;
	if (o->up) {
		weir_worker_put_late_row(w, b, (struct weir_slice){o->record.value, o->record.value_bytes}, o->topic,
					 o->topic_partition, o->row, h->r.time, output, jn->stage);
		return;
	}
	struct weir_input in = {
		.records = &o->record, .topic = o->topic, .topic_partition = o->topic_partition, .seq = o->seq};
	weir_worker_put_late(w, b, &in, o->row, output, jn->stage);
}

/* A record beside a buffer. False: no room, come again. */
static bool apply_within(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h,
			 int64_t task)
{
	const struct weir_state_def *def = jn->def;
	uint32_t other = 1 - h->side;
	bool outer = def->sides[h->side].outer;
	int64_t back = h->side == 0 ? def->before_ms : def->after_ms,
		ahead = h->side == 0 ? def->after_ms : def->before_ms;
	/* Whatever it becomes, one row may have to be written. */
	if (outer && !weir_join_room(jn, b, sl->number))
		return false;
	if (weir_join_is_late(def, h->r.time, task)) {
		weir_join_note_late(jn, b, h);
		return true;
	}
	jn->w->st->now->applied += !h->null_key || outer;
	jn->w->st->now->filtered += h->null_key && !outer;
	if (h->null_key) {
		if (outer)
			weir_join_emit(jn, h->side, &h->r, NULL);
		return true;
	}
	jn->found.bytes = 0;
	jn->found_at = 0;
	weir_join_buffer_find(sl, other, &h->r, h->r.time - back, h->r.time + ahead, task, &jn->found);
	if (jn->found.bytes && jn->residual)
		weir_join_keep_matches(jn, h);
	const struct weir_join_found *found = (const struct weir_join_found *)(const void *)jn->found.data;
	bool matched = jn->found.bytes != 0;
	for (uint32_t i = 0; i < jn->found.bytes / sizeof *found && def->sides[other].outer; i++)
		weir_join_buffer_match(sl, found[i].bf);
	sl->records++;
	if (outer && !matched && weir_join_is_final(def, h->side, h->r.time, task)) {
		weir_join_emit(jn, h->side, &h->r, NULL);
		return true;
	}
	weir_join_buffer_put(sl, h->side, &h->r, matched);
	jn->current = matched ? h : NULL;
	return true;
}

/* A row beside a table, or of it. False: no room, come again. */
static bool apply_table(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	struct weir_join_row row;
	sl->records++;
	if (jn->def->sides[h->side].table) {
		if (h->deletes)
			weir_join_table_delete(sl, h->side, &h->r);
		else
			weir_join_table_put(sl, h->side, &h->r);
		jn->w->st->now->applied++;
		return true;
	}
	if (!weir_join_room(jn, b, sl->number)) {
		sl->records--;
		return false;
	}
	bool found = !h->null_key && weir_join_table_find(sl, 1 - h->side, &h->r, &row);
	bool outer = jn->def->sides[h->side].outer;
	jn->w->st->now->applied += found || outer;
	jn->w->st->now->filtered += !found && !outer;
	if (found || outer)
		weir_join_emit(jn, h->side, &h->r, found ? &row : NULL);
	return true;
}

/* What the rows to come will touch, in steps: themselves, then index lines, then the entries these lead to. */
static void prefetch(const struct weir_join *jn, const struct weir_slot *sl)
{
	enum { ROW = 24, INDEX = 16, ENTRY = 8 };
	uint32_t left = jn->end - jn->at;
	if (left > ROW) {
		const uint8_t *p = (const uint8_t *)jn->sorted[jn->at + ROW].h;
		__builtin_prefetch(p, 0, 3);
		__builtin_prefetch(p + 64, 0, 3);
		__builtin_prefetch(p + 128, 0, 3);
	}
	for (int step = 0; step < 2; step++) {
		uint32_t ahead = step == 0 ? INDEX : ENTRY;
		if (left <= ahead)
			continue;
		const struct held *h = jn->sorted[jn->at + ahead].h;
		if (weir_join_in_windows(jn->def) || jn->def->foreign != 0)
			continue;
		if (jn->def->buffers)
			weir_join_buffer_prefetch(sl, h->side, &h->r, step == 1);
		else
			weir_join_table_prefetch(sl, jn->def->sides[0].table ? 0 : 1, h->r.hash, step == 1);
	}
}

/* ---- tables with tables ---- */

/* Whether a key is in the result, by which sides have it. An outer side is one whose rows need no match. */
static bool is_there(const struct weir_state_def *def, bool l, bool r)
{
	return (l && r) || (l && def->sides[0].outer) || (r && def->sides[1].outer);
}

/* Which sides have h's key: entries and rows. */
static void look_up(const struct weir_slot *sl, const struct held *h, struct weir_entry *e[2],
		    struct weir_join_row row[2])
{
	for (uint32_t s = 0; s < 2; s++)
		e[s] = weir_join_table_entry(sl, s, &h->r, &row[s]);
}

static void put_number(const struct weir_join *jn, const struct weir_slot *sl, uint32_t row)
{
	if (jn->def->numbered)
		jn->out->cols[jn->out->col_count - 1].i64[row] = (int64_t)sl->records;
}

/* An update of either table. The bit that says whether the key's row stands in the result is in the left entry, or in
 * the right one where there is no left. False: no room, come again. */
static bool apply_tables(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	const struct weir_state_def *def = jn->def;
	struct weir_entry *e[2];
	struct weir_join_row row[2];
	if (!weir_join_room(jn, b, sl->number))
		return false;
	look_up(sl, h, e, row);
	struct weir_entry *holder = e[0] ? e[0] : e[1];
	if (jn->ps->retracts && jn->out->count + 2 > WEIR_BATCH_ROWS) {
		weir_join_flush(jn, b, sl->number); /* the row that was and the row that is go together */
		if (!weir_join_room(jn, b, sl->number))
			return false;
	}
	if (holder && (holder->flags & WEIR_ENTRY_CHANGED) != 0) {
		/* What becomes of its row so far decides what this one is. */
		weir_join_flush(jn, b, sl->number);
		if (!weir_join_room(jn, b, sl->number))
			return false;
	}
	struct weir_rows *out = jn->out;
	bool was = is_there(def, e[0] != NULL, e[1] != NULL);
	bool shown = was && (jn->ps->retracts || (holder->flags & WEIR_ENTRY_EMITTED) != 0);
	bool has[2] = {e[0] != NULL, e[1] != NULL};
	has[h->side] = !h->deletes;
	bool is = is_there(def, has[0], has[1]);
	if (shown && (!is || jn->ps->retracts)) {
		/* The row as it was; the time is that of its end. */
		jn->out_bytes += weir_join_put_pair(jn, out, e[0] ? &row[0] : NULL, e[1] ? &row[1] : NULL, true);
		uint32_t n = out->count - 1;
		out->op[n] = WEIR_OP_DELETE;
		put_number(jn, sl, n);
		out->time[n] = weir_max_i64(h->r.time, e[1 - h->side] ? row[1 - h->side].time : h->r.time);
	}
	if (h->deletes)
		weir_join_table_delete(sl, h->side, &h->r);
	else
		weir_join_table_put(sl, h->side, &h->r);
	sl->records++;
	jn->w->st->now->applied++;
	look_up(sl, h, e, row);
	holder = e[0] ? e[0] : e[1];
	for (uint32_t s = 0; s < 2; s++)
		if (e[s])
			weir_slot_set_emitted(
				sl, e[s], e[s] == holder && is && !jn->ps->retracts && (shown || jn->has_stage_branch));
	if (is) {
		jn->out_bytes += weir_join_put_pair(jn, out, e[0] ? &row[0] : NULL, e[1] ? &row[1] : NULL, true);
		uint32_t n = out->count - 1;
		put_number(jn, sl, n);
		out->op[n] = shown && !jn->ps->retracts ? WEIR_OP_UPDATE : WEIR_OP_INSERT;
		out->time[n] = weir_max_i64(out->time[n], h->r.time); /* a delete of one side dates what is left */
		if (!jn->ps->retracts) {
			out->entry[n] = holder;
			holder->flags |= WEIR_ENTRY_CHANGED;
		}
	}
	return true;
}

/* A row of the table's history, or one that waits for it. False: no room, come again. */
static bool apply_versioned(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	const struct weir_state_def *def = jn->def;
	bool outer = def->sides[0].outer;
	if (h->side == 1) {
		/* Rows that wait are those that the last order point left, or newer ones. */
		int64_t task = jn->task_before[weir_join_is_direct(jn) ? sl->number : 0];
		weir_versions_put(sl, &h->r, h->deletes, task == WEIR_TIME_UNSET ? task : task - def->grace_ms);
	} else if (!h->null_key) {
		weir_join_buffer_put(sl, 0, &h->r, false);
	} else if (outer) {
		if (!weir_join_room(jn, b, sl->number))
			return false;
		weir_join_emit(jn, 0, &h->r, NULL);
	}
	sl->records++;
	bool counts = h->side == 1 || !h->null_key || outer;
	jn->w->st->now->applied += counts;
	jn->w->st->now->filtered += !counts;
	return true;
}

/* What the table's partitions have passed: INT64_MAX where all of them are idle or at their bound. */
static int64_t table_time(const struct weir_join *jn, uint32_t slot)
{
	const struct weir_plan *pl = jn->w->cf.plan;
	int64_t low = INT64_MAX;
	for (uint32_t i = 0; i < jn->lane_count; i++) {
		const struct lane *ln = &jn->lanes[i];
		const struct weir_plan_branch *br = &pl->branches[ln->branch];
		bool out;
		if (br->side != 1 ||
		    (weir_join_is_direct(jn) && ln->from - pl->scans[br->origin].partition_base != slot))
			continue;
		int64_t now = lane_time(jn, ln, &out);
		if (!out)
			low = weir_min_i64(low, now);
	}
	return low;
}

static bool apply(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct turn *t)
{
	if (weir_join_in_windows(jn->def)) {
		weir_join_apply_window(jn, b, sl, t->h, t->task);
		return true;
	}
	if (jn->def->within)
		return apply_within(jn, b, sl, t->h, t->task);
	if (jn->def->foreign != 0)
		return weir_join_apply_foreign(jn, b, sl, t->h);
	if (is_tables(jn))
		return apply_tables(jn, b, sl, t->h);
	return jn->def->versioned ? apply_versioned(jn, b, sl, t->h) : apply_table(jn, b, sl, t->h);
}

static bool run_rows(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	for (;;) {
		if (jn->current && !(jn->def->foreign != 0 ? weir_join_put_foreign(jn, b, sl) : put_found(jn, b, sl)))
			return false;
		if (jn->at == jn->end)
			return true;
		const struct turn *t = &jn->sorted[jn->at];
		prefetch(jn, sl);
		if (!apply(jn, b, sl, t))
			return false;
		jn->at++;
	}
}

/* Rows that are final without a match. */
static bool run_final(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, bool close_all,
		      int64_t *end_max)
{
	const struct weir_join_found *found = (const struct weir_join_found *)(const void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found);
	while (jn->found_at < n) {
		struct weir_join_row row;
		if (!weir_join_room(jn, b, sl->number))
			return false;
		const struct weir_join_found *fd = &found[jn->found_at++];
		uint32_t side = weir_join_buffer_side(sl, fd->bf);
		weir_join_buffer_get(jn->def, fd, &row);
		if (jn->def->versioned) {
			struct weir_join_row version;
			row.hash = weir_hash(row.key, row.key_bytes);
			bool there = weir_versions_find(sl, &row, row.time, &version);
			if (there || jn->def->sides[0].outer)
				weir_join_emit(jn, 0, &row, there ? &version : NULL);
			continue;
		}
		weir_join_emit(jn, side, &row, NULL);
		if (close_all)
			*end_max = weir_max_i64(*end_max, row.time + weir_join_reach_ms(jn->def, side) + 1);
	}
	return true;
}

bool weir_join_run(struct weir_join *jn, struct weir_bundle *b, uint32_t slot, bool close_all, int64_t *end_max)
{
	struct weir_slot *sl = jn->w->slots[jn->stage][slot];
	int64_t task = weir_times_task(jn->w->times, jn->stage, slot);
	if (!jn->running) {
		jn->running = true;
		jn->phase = PHASE_ROWS;
		jn->at = jn->slot_start[slot];
		jn->end = jn->slot_start[slot + 1];
		jn->current = NULL;
	}
	if (jn->phase == PHASE_ROWS) {
		if (!run_rows(jn, b, sl))
			return false;
		jn->phase = PHASE_FINAL;
		jn->found.bytes = 0;
		jn->found_at = 0;
		jn->window_open = false;
		if (weir_join_in_windows(jn->def))
			; /* below, window by window */
		else if (jn->def->versioned)
			weir_join_take_final(sl, table_time(jn, slot), close_all, &jn->found);
		else if (jn->def->within)
			weir_join_take_final(sl, task, close_all, &jn->found);
	}
	if (jn->phase == PHASE_FINAL) {
		if (weir_join_in_windows(jn->def) ? !weir_join_run_windows(jn, b, sl, task, close_all, end_max)
						  : !run_final(jn, b, sl, close_all, end_max))
			return false;
		jn->phase = PHASE_END;
	}
	weir_join_flush(jn, b, slot);
	if (jn->fr) { /* taken for a row that was not written: empty, it finds its way back to the pool */
		jn->fr->rows.count = 0;
		struct weir_fragment *fr = jn->fr;
		jn->fr = NULL;
		weir_worker_send_stage_fragment(jn->w, fr);
	}
	jn->out = NULL;
	weir_join_drop(sl, jn->def->versioned ? table_time(jn, slot) : task);
	jn->running = false;
	return true;
}
