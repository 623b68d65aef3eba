/* join.c: holding, merging and applying the two sides of a join (join.h). @thread worker
 *
 * A held row costs its packed columns, its key and sizeof(struct held); it lives until the order point is through. */
#include "hotpath/run/join.h"

#include <stdlib.h>

#include "hotpath/run/worker_state.h"
#include "hotpath/state/join_state.h"
#include "hotpath/state/row.h"

/* A record as it came, for late.topic: the batch it stood in is gone by the time it is judged. */
struct original {
	struct weir_record record;
	const char *topic;
	uint32_t topic_partition;
	uint64_t seq;
	uint32_t row;
	uint32_t scan;
};

struct held {
	struct weir_join_row r;
	int64_t task; /* task time at its turn */
	const struct original *original;
	uint32_t lane;
	uint16_t slot;
	uint8_t side;
	bool deletes;
	bool null_key; /* equals nothing */
};

/* Its place in the merge. */
struct item {
	int64_t key;
	struct held *h;
};

struct lane {
	uint32_t branch;
	uint32_t from;         /* global partition, or upstream slot */
	bool up;               /* from an upstream slot */
	int64_t before;        /* its time when holding began */
	int64_t high;          /* largest key so far */
	struct weir_buf steps; /* int64_t: the keys it went through, ascending */
	struct weir_buf items; /* struct item */
	uint32_t passed;       /* merge: steps at or below the row whose turn it is */
	int64_t now;           /* merge: its time there */
};

enum join_phase { PHASE_ROWS, PHASE_FINAL, PHASE_END };

struct weir_join {
	struct weir_worker *w;
	uint32_t stage;
	const struct weir_plan_stage *ps;
	const struct weir_state_def *def;
	bool has_stage_branch;
	/* holding */
	bool holding;
	uint32_t *lane_base; /* by branch of the plan: its first lane */
	struct lane *lanes;  /* tables first: equal times go in this order */
	uint32_t lane_count;
	int64_t *task_before; /* by slot (direct) or one for all: when holding began */
	struct weir_scratch scratch;
	/* merged: rows by slot, in their order */
	struct item *order, *spare;
	uint32_t order_capacity;
	struct held **sorted;
	uint32_t *slot_start;
	/* applying */
	bool running;
	enum join_phase phase;
	uint32_t at, end;
	const struct held *current; /* whose matches are being written */
	struct weir_buf found;      /* struct weir_buffered * */
	uint32_t found_at;
	struct weir_rows *out; /* rows of fr, or own */
	struct weir_fragment *fr;
	struct weir_rows own;
	const struct weir_col **own_ptrs;
	uint64_t out_bytes;
	struct weir_program *residual;
	struct weir_rows trial; /* pairs whose condition is looked at */
	const struct weir_col **trial_ptrs;
	struct weir_row_errors errors;
};

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
			if (br->table != (bool)tables)
				continue;
			bool up = br->from == WEIR_FROM_STAGE;
			jn->lane_base[branch] = n;
			for (uint32_t k = 0; k < branch_lanes(pl, br); k++)
				jn->lanes[n++] =
					(struct lane){.branch = branch,
						      .from = up ? k : pl->scans[br->origin].partition_base + k,
						      .up = up};
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

void weir_join_destroy(struct weir_join *jn)
{
	if (!jn)
		return;
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

static bool is_direct(const struct weir_join *jn)
{
	return jn->ps->exchange == WEIR_EXCHANGE_DIRECT;
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
	for (uint32_t k = 0; k < (is_direct(jn) ? jn->ps->slot_count : 1); k++)
		jn->task_before[k] = weir_times_task(jn->w->times, jn->stage, k);
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
	uint64_t row_bytes = deletes ? 0 : weir_row_bytes(keyed->cols, side->col_count, row);
	size_t key_room = weir_align_up(key_bytes, 8);
	struct held *h = weir_scratch_take(&jn->scratch, sizeof *h + key_room + row_bytes);
	uint8_t *at = (uint8_t *)(h + 1);
	*h = (struct held){.lane = (uint32_t)(ln - jn->lanes),
			   .slot = keyed->slot[row],
			   .side = (uint8_t)br->side,
			   .deletes = deletes,
			   .null_key = has_null_key(fb, jn->ps->key_count, row)};
	h->r = (struct weir_join_row){.hash = keyed->hash[row],
				      .time = keyed->time[row],
				      .key = at,
				      .key_bytes = key_bytes,
				      .row = at + key_room,
				      .row_bytes = (uint32_t)row_bytes};
	memcpy(at, keyed->key[row], key_bytes);
	memset(at + key_bytes, 0, key_room - key_bytes);
	if (!deletes)
		(void)weir_row_pack(keyed->cols, side->col_count, row, at + key_room);
	if (jn->def->within && fr->input && jn->w->cf.policies[fr->scan].late >= 0)
		h->original = keep_original(jn, fr, row);
	struct item it = {key, h};
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

/* The lane's time at key of lane `turn`: what stands before that in the merged order. */
static void lane_pass(struct lane *ln, int64_t key, bool before_turn)
{
	const int64_t *step = (const int64_t *)(const void *)ln->steps.data;
	uint32_t n = (uint32_t)(ln->steps.bytes / sizeof *step);
	while (ln->passed < n && (step[ln->passed] < key || (before_turn && step[ln->passed] == key))) {
		if (!ln->up)
			ln->now = weir_max_i64(ln->before, step[ln->passed]);
		ln->passed++;
	}
}

/* Task time of every row of a group's lanes, in merged order. A lane that has left the minimum counts until its last
 * held step is passed. */
static void give_task_times(struct weir_join *jn, const uint32_t *group, uint32_t lanes, int64_t task,
			    const struct item *it, uint32_t count)
{
	bool max = jn->def->time_max;
	for (uint32_t i = 0; i < count; i++) {
		struct held *h = it[i].h;
		int64_t low = INT64_MAX, high = WEIR_TIME_UNSET;
		for (uint32_t k = 0; k < lanes; k++) {
			struct lane *ln = &jn->lanes[group[k]];
			int64_t now;
			if (group[k] == h->lane) {
				now = ln->up ? ln->before : weir_max_i64(ln->before, it[i].key);
			} else {
				bool out = false;
				lane_pass(ln, it[i].key, group[k] < h->lane);
				now = ln->now;
				if (ln->passed * sizeof(int64_t) == ln->steps.bytes) {
					int64_t last = lane_time(jn, ln, &out);
					now = ln->up ? last : now;
				}
				if (out)
					continue;
			}
			low = weir_min_i64(low, now);
			high = weir_max_i64(high, now);
		}
		task = weir_max_i64(task, max ? high : low);
		h->task = task;
	}
}

/* Merges the lanes group[0..lanes) into order[at..]; returns how many rows they had. */
static uint32_t merge_group(struct weir_join *jn, const uint32_t *group, uint32_t lanes, int64_t task, uint32_t at,
			    uint32_t *start)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < lanes; k++) {
		struct lane *ln = &jn->lanes[group[k]];
		ln->passed = 0;
		ln->now = ln->before;
		start[k] = n;
		if (ln->items.bytes)
			memcpy(jn->order + at + n, ln->items.data, ln->items.bytes);
		n += (uint32_t)(ln->items.bytes / sizeof(struct item));
	}
	start[lanes] = n;
	if (n == 0)
		return 0;
	struct item *it = merge_runs(jn->order + at, jn->spare + at, start, lanes);
	give_task_times(jn, group, lanes, task, it, n);
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
	jn->sorted = weir_xrealloc(jn->sorted, to * sizeof(struct held *));
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
	for (uint32_t g = 0; g < (is_direct(jn) ? slots : 1); g++) {
		uint32_t lanes = 0;
		for (uint32_t i = 0; i < jn->lane_count; i++) {
			const struct weir_plan_branch *br = &jn->w->cf.plan->branches[jn->lanes[i].branch];
			if (is_direct(jn) && jn->lanes[i].from - jn->w->cf.plan->scans[br->origin].partition_base != g)
				continue;
			group[lanes++] = i;
		}
		n += merge_group(jn, group, lanes, jn->task_before[g], n, start);
	}
	free(group);
	/* By slot, stable: slot s ends up in [slot_start[s], slot_start[s + 1]). */
	for (uint32_t i = 0; i < n; i++)
		jn->slot_start[jn->order[i].h->slot + 2]++;
	for (uint32_t s = 2; s < slots + 2; s++)
		jn->slot_start[s] += jn->slot_start[s - 1];
	for (uint32_t i = 0; i < n; i++)
		jn->sorted[jn->slot_start[jn->order[i].h->slot + 1]++] = jn->order[i].h;
}

void weir_join_reset(struct weir_join *jn)
{
	jn->holding = false;
	weir_scratch_reset(&jn->scratch);
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
static uint64_t put_pair(struct weir_join *jn, struct weir_rows *to, const struct weir_join_row *l,
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
	to->time[n] = !def->within ? (def->sides[0].table ? r : l)->time
		      : !l         ? r->time
		      : !r         ? l->time
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
static void flush(struct weir_join *jn, struct weir_bundle *b, uint32_t slot)
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
		struct weir_tail_done done = weir_tail_stream(tl, cols, &all, r->time, slot, &r->scratch, &b->results);
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
static bool room(struct weir_join *jn, struct weir_bundle *b, uint32_t slot)
{
	if (jn->out && (jn->out->count == WEIR_BATCH_ROWS || jn->out_bytes >= WEIR_ROWS_BYTES))
		flush(jn, b, slot);
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

static void put(struct weir_join *jn, uint32_t side, const struct weir_join_row *own, const struct weir_join_row *other)
{
	jn->out_bytes += put_pair(jn, jn->out, side == 0 ? own : other, side == 0 ? other : own, jn->has_stage_branch);
}

/* ---- applying ---- */

/* The next pairs of the row whose matches are being written. False: come again. */
static bool put_found(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	struct weir_buffered *const *found = (struct weir_buffered *const *)(const void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found);
	while (jn->found_at < n) {
		struct weir_join_row other;
		if (!room(jn, b, sl->number))
			return false;
		weir_join_buffer_get(sl, found[jn->found_at++], &other);
		put(jn, jn->current->side, &jn->current->r, &other);
	}
	jn->current = NULL;
	return true;
}

/* Leaves those in found that fulfil what else a match needs. */
static void keep_matches(struct weir_join *jn, struct weir_slot *sl, const struct held *h)
{
	struct weir_buffered **found = (struct weir_buffered **)(void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found), kept = 0;
	for (uint32_t from = 0; from < n; from += WEIR_BATCH_ROWS) {
		uint32_t to = from + WEIR_BATCH_ROWS < n ? from + WEIR_BATCH_ROWS : n;
		struct weir_sel pass;
		weir_rows_reset(&jn->trial);
		for (uint32_t i = from; i < to; i++) {
			struct weir_join_row other;
			weir_join_buffer_get(sl, found[i], &other);
			(void)put_pair(jn, &jn->trial, h->side == 0 ? &h->r : &other, h->side == 0 ? &other : &h->r,
				       false);
		}
		weir_sel_all(&pass, to - from);
		jn->errors.count = 0;
		weir_program_filter(jn->residual, jn->trial_ptrs, &pass, &jn->trial.scratch, &jn->errors);
		for (uint32_t i = 0; i < pass.count; i++)
			found[kept++] = found[from + pass.row[i]];
	}
	jn->found.bytes = kept * sizeof *found;
}

static void note_late(struct weir_join *jn, struct weir_bundle *b, const struct held *h)
{
	struct weir_worker *w = jn->w;
	const struct original *o = h->original;
	w->st->now->late++;
	w->st->now->by_reason[WEIR_REASON_LATE]++;
	if (!o)
		return;
	struct weir_input in = {
		.records = &o->record, .topic = o->topic, .topic_partition = o->topic_partition, .seq = o->seq};
	weir_worker_put_late(w, b, &in, o->row, (uint32_t)w->cf.policies[o->scan].late, jn->stage);
}

/* A record beside a buffer. False: no room, come again. */
static bool apply_within(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, const struct held *h)
{
	const struct weir_state_def *def = jn->def;
	uint32_t other = 1 - h->side;
	bool outer = def->sides[h->side].outer;
	int64_t back = h->side == 0 ? def->before_ms : def->after_ms,
		ahead = h->side == 0 ? def->after_ms : def->before_ms;
	/* Whatever it becomes, one row may have to be written. */
	if (outer && !room(jn, b, sl->number))
		return false;
	if (weir_join_is_late(def, h->r.time, h->task)) {
		note_late(jn, b, h);
		return true;
	}
	jn->w->st->now->applied += !h->null_key || outer;
	jn->w->st->now->filtered += h->null_key && !outer;
	if (h->null_key) {
		if (outer)
			put(jn, h->side, &h->r, NULL);
		return true;
	}
	jn->found.bytes = 0;
	jn->found_at = 0;
	weir_join_buffer_find(sl, other, &h->r, h->r.time - back, h->r.time + ahead, h->task, &jn->found);
	if (jn->found.bytes && jn->residual)
		keep_matches(jn, sl, h);
	struct weir_buffered *const *found = (struct weir_buffered *const *)(const void *)jn->found.data;
	bool matched = jn->found.bytes != 0;
	for (uint32_t i = 0; i < jn->found.bytes / sizeof *found && def->sides[other].outer; i++)
		weir_join_buffer_match(sl, found[i]);
	sl->records++;
	if (outer && !matched && weir_join_is_final(def, h->side, h->r.time, h->task)) {
		put(jn, h->side, &h->r, NULL);
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
	if (!room(jn, b, sl->number)) {
		sl->records--;
		return false;
	}
	bool found = !h->null_key && weir_join_table_find(sl, 1 - h->side, &h->r, &row);
	bool outer = jn->def->sides[h->side].outer;
	jn->w->st->now->applied += found || outer;
	jn->w->st->now->filtered += !found && !outer;
	if (found || outer)
		put(jn, h->side, &h->r, found ? &row : NULL);
	return true;
}

static void prefetch(const struct weir_join *jn, const struct weir_slot *sl, uint32_t at)
{
	const struct held *h = jn->sorted[at];
	if (jn->def->within) {
		weir_join_buffer_prefetch(sl, 1 - h->side, h->r.hash, h->r.time);
		weir_join_buffer_prefetch(sl, h->side, h->r.hash, h->r.time);
	} else {
		weir_join_table_prefetch(sl, jn->def->sides[0].table ? 0 : 1, h->r.hash);
	}
}

static bool run_rows(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	enum { AHEAD = 8 };
	for (;;) {
		if (jn->current && !put_found(jn, b, sl))
			return false;
		if (jn->at == jn->end)
			return true;
		const struct held *h = jn->sorted[jn->at];
		if (jn->at + AHEAD < jn->end)
			prefetch(jn, sl, jn->at + AHEAD);
		if (!(jn->def->within ? apply_within(jn, b, sl, h) : apply_table(jn, b, sl, h)))
			return false;
		jn->at++;
	}
}

/* Rows that are final without a match. */
static bool run_final(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl, bool close_all,
		      int64_t *end_max)
{
	struct weir_buffered *const *found = (struct weir_buffered *const *)(const void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found);
	while (jn->found_at < n) {
		struct weir_join_row row;
		if (!room(jn, b, sl->number))
			return false;
		const struct weir_buffered *bf = found[jn->found_at++];
		uint32_t side = weir_join_buffer_side(sl, bf);
		weir_join_buffer_get(sl, bf, &row);
		put(jn, side, &row, NULL);
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
		if (jn->def->within)
			weir_join_take_final(sl, task, close_all, &jn->found);
	}
	if (jn->phase == PHASE_FINAL) {
		if (!run_final(jn, b, sl, close_all, end_max))
			return false;
		jn->phase = PHASE_END;
	}
	flush(jn, b, slot);
	if (jn->fr) { /* taken for a row that was not written: empty, it finds its way back to the pool */
		jn->fr->rows.count = 0;
		struct weir_fragment *fr = jn->fr;
		jn->fr = NULL;
		weir_worker_send_stage_fragment(jn->w, fr);
	}
	jn->out = NULL;
	weir_join_drop(sl, task);
	jn->running = false;
	return true;
}
