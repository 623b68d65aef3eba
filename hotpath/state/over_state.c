/* over_state.c: what functions OVER keep in a slot, and rows on their way out (over.h). @thread worker. */
#include "hotpath/state/over.h"

#include <stdlib.h>

#include "hotpath/core/diag.h"
#include "hotpath/core/hash.h"
#include "hotpath/state/row.h"

/* Generation of the chains; those of waiting rows are even. */
enum { CHAIN_GEN = 1, CHAIN_HEAD = 12, UNNEST_HEAD = 8, STATE_BYTES = 32, KEEP_ROWS_MAX = 1000000 };

/* ---- the definition ---- */

static uint32_t arg_number(struct weir_over_def *ov, int32_t column)
{
	for (uint32_t i = 0; i < ov->arg_count; i++)
		if (ov->arg[i] == column)
			return i;
	ov->arg[ov->arg_count] = (uint16_t)column;
	return ov->arg_count++;
}

static void note_past(struct weir_over_def *ov, uint32_t arg)
{
	for (uint32_t i = 0; i < ov->past_count; i++)
		if (ov->past[i] == arg)
			return;
	ov->past[ov->past_count++] = (uint16_t)arg;
}

static enum weir_err note_frame(struct weir_over_def *ov, const struct weir_over_fn *fn, struct weir_diag **dg)
{
	int64_t rows = fn->kind == WEIR_OVER_LAG ? fn->offset : fn->rows ? fn->preceding : 0;
	if (rows > KEEP_ROWS_MAX)
		return weir_diag_set(dg, WEIR_E_PLAN, "OVER: a frame or LAG of more than %d rows", KEEP_ROWS_MAX);
	if (fn->kind != WEIR_OVER_LAG && fn->preceding < 0) {
		ov->sums = true;
		return WEIR_OK;
	}
	if (fn->kind == WEIR_OVER_LAG || fn->rows) {
		ov->timed = false;
		ov->keep_rows = weir_max_i64(ov->keep_rows, rows);
	} else {
		ov->keep_ms = weir_max_i64(ov->keep_ms, fn->preceding);
	}
	return WEIR_OK;
}

enum weir_err weir_over_def_init(struct weir_state_def *def, struct weir_diag **dg)
{
	enum { LOG2_MIN = 10, LOG2_MAX = 31 };
	/* The planner made it, and nobody else has seen it yet. */
	struct weir_over_def *ov = (struct weir_over_def *)(uintptr_t)def->over;
	ov->timed = true;
	ov->sums = false;
	ov->keep_rows = 0;
	ov->keep_ms = -1;
	ov->arg_count = ov->past_count = 0;
	if (ov->fn_count > WEIR_OVER_FNS_MAX)
		return weir_diag_set(dg, WEIR_E_PLAN, "OVER: %u functions in one SELECT, at most %d are allowed",
				     ov->fn_count, WEIR_OVER_FNS_MAX);
	for (uint32_t i = 0; i < ov->fn_count; i++) {
		const struct weir_over_fn *fn = &ov->fns[i];
		enum weir_err err = note_frame(ov, fn, dg);
		if (err != WEIR_OK)
			return err;
		if (fn->fallback >= 0)
			(void)arg_number(ov, fn->fallback);
		if (fn->arg < 0)
			continue;
		uint32_t arg = arg_number(ov, fn->arg);
		if (fn->kind == WEIR_OVER_LAG || fn->preceding >= 0)
			note_past(ov, arg);
	}
	ov->timed = (ov->timed && !ov->sums) || ov->unnest;
	if (ov->keep_ms > INT64_C(1) << 40)
		return weir_diag_set(dg, WEIR_E_PLAN, "OVER: the frame is longer than 34 years");
	def->buffers = true;
	def->before_ms = ov->timed && ov->keep_ms > 0 ? ov->keep_ms : 0;
	def->after_ms = 0;
	def->bucket_log2 = LOG2_MIN;
	while (def->bucket_log2 < LOG2_MAX && INT64_C(1) << def->bucket_log2 <= weir_join_keep_ms(def) / 2)
		def->bucket_log2++;
	return WEIR_OK;
}

void weir_over_def_print(const struct weir_over_def *ov, struct weir_buf *out)
{
	static const char *const kinds[] = {"LAG", "ROW_NUMBER"};
	if (ov->unnest)
		weir_buf_printf(out, "UNNEST of %u%s", ov->array, ov->outer ? ", outer" : "");
	for (uint32_t i = 0; i < ov->fn_count; i++) {
		const struct weir_over_fn *fn = &ov->fns[i];
		weir_buf_printf(out, "%s%s", i != 0 ? ", " : "",
				fn->kind == WEIR_OVER_AGGREGATE ? weir_agg_kind_name(fn->agg.kind) : kinds[fn->kind]);
		if (fn->arg >= 0)
			weir_buf_printf(out, " of %d", fn->arg);
		if (fn->kind == WEIR_OVER_LAG)
			weir_buf_printf(out, " by %u", fn->offset);
		if (fn->fallback >= 0)
			weir_buf_printf(out, " else %d", fn->fallback);
		if (fn->kind != WEIR_OVER_LAG && fn->preceding >= 0)
			weir_buf_printf(out, " %s=%lld", fn->rows ? "rows" : "range", (long long)fn->preceding);
		else if (fn->kind != WEIR_OVER_LAG)
			weir_buf_puts(out, fn->rows ? " rows" : " range");
	}
}

/* ---- rows come ---- */

static bool is_final(const struct weir_state_def *def, int64_t time, int64_t task_time)
{
	return task_time > time + def->grace_ms;
}

void weir_over_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		     const uint16_t *rows, uint32_t count, const struct weir_clock *clock, struct weir_applied *out)
{
	uint8_t small[1024];
	struct weir_buf large = {0};
	for (uint32_t i = 0; i < count; i++) {
		uint16_t row = rows[i];
		struct weir_slot *sl = slots[in->slot[row]];
		if (!def->over->unnest && is_final(def, in->time[row], weir_clock_at(def, clock, in->run[row]))) {
			out->late_row[out->late++] = row;
			continue;
		}
		uint32_t head = def->over->unnest ? UNNEST_HEAD : 0;
		uint64_t bytes = head + weir_row_bytes(in->cols, def->sides[0].col_count, row);
		uint8_t *packed = small;
		if (bytes > sizeof small) {
			large.bytes = 0;
			weir_buf_room(&large, bytes);
			packed = large.data;
		}
		(void)weir_row_pack(in->cols, def->sides[0].col_count, row, packed + head);
		if (head != 0) /* its time; among those that wait its number stands for it */
			weir_store_le64(packed, (uint64_t)in->time[row]);
		struct weir_join_row r = {.hash = in->hash[row],
					  .time = head != 0 ? (int64_t)sl->records : in->time[row],
					  .key = in->key[row],
					  .key_bytes = in->key_bytes[row],
					  .row = packed,
					  .row_bytes = (uint32_t)bytes};
		sl->records++;
		weir_join_buffer_put(sl, 0, &r, false);
		out->applied++;
	}
	weir_buf_fini(&large);
}

/* ---- a key's rows ---- */

struct weir_over_work {
	const struct weir_state_def *def;
	struct weir_over_frames frames;
	struct weir_buf found;   /* struct weir_join_found: rows that leave, in their order */
	struct weir_buf order;   /* uint32_t: numbers of these, key by key */
	struct weir_buf place;   /* size_t pairs: where the results of each stand, and how long they are */
	struct weir_buf results; /* packed */
	/* Of the key at hand: its rows, earlier ones first. */
	struct weir_buf past;    /* struct weir_join_found (timed), or struct weir_buffered * */
	struct weir_buf time;    /* int64_t */
	struct weir_buf *arg;    /* by argument: struct weir_over_value */
	struct weir_buf *result; /* by function: struct weir_over_value */
	struct weir_over_sum *sum;
	struct weir_buf head;         /* sums as they are kept */
	struct weir_col *cols;        /* of side 0: one row */
	struct weir_col *chain_cols;  /* columns of a chain's row */
	struct weir_col *result_cols; /* of side 1 */
	struct weir_col *sum_cols;    /* values among the sums */
	const struct weir_col **chain_ptrs, **result_ptrs, **sum_ptrs;
	uint32_t sum_values;
};

static struct weir_col *make_cols(uint32_t count, const struct weir_col ***ptrs)
{
	struct weir_col *c = weir_xcalloc(count + 1, sizeof *c);
	*ptrs = weir_xcalloc(count + 1, sizeof **ptrs);
	for (uint32_t i = 0; i < count; i++)
		(*ptrs)[i] = &c[i];
	return c;
}

struct weir_over_work *weir_over_work_create(const struct weir_state_def *def)
{
	const struct weir_over_def *ov = def->over;
	const struct weir_col **all;
	struct weir_over_work *wk = weir_xcalloc(1, sizeof *wk);
	wk->def = def;
	weir_over_frames_init(&wk->frames);
	wk->arg = weir_xcalloc(ov->arg_count + 1, sizeof *wk->arg);
	wk->result = weir_xcalloc(ov->fn_count + 1, sizeof *wk->result);
	wk->sum = weir_xcalloc(ov->fn_count + 1, sizeof *wk->sum);
	wk->cols = make_cols(def->sides[0].col_count, &all);
	free(all);
	for (uint32_t i = 0; i < def->sides[0].col_count; i++)
		weir_col_init(&wk->cols[i], weir_type_phys(&def->sides[0].types[i]));
	wk->chain_cols = make_cols(ov->past_count, &wk->chain_ptrs);
	for (uint32_t i = 0; i < ov->past_count; i++)
		weir_col_init(&wk->chain_cols[i], weir_type_phys(&def->sides[0].types[ov->arg[ov->past[i]]]));
	wk->result_cols = make_cols(ov->fn_count, &wk->result_ptrs);
	wk->sum_cols = make_cols(ov->fn_count, &wk->sum_ptrs);
	for (uint32_t i = 0; i < ov->fn_count; i++) {
		enum weir_phys phys = weir_type_phys(&def->sides[1].types[i]);
		weir_col_init(&wk->result_cols[i], phys);
		if (ov->fns[i].preceding < 0 && weir_over_sum_is_value(&ov->fns[i]))
			weir_col_init(&wk->sum_cols[wk->sum_values++], phys);
	}
	return wk;
}

static void free_cols(struct weir_col *c, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		weir_col_fini(&c[i]);
	free(c);
}

void weir_over_work_destroy(struct weir_over_work *wk)
{
	if (wk == NULL)
		return;
	const struct weir_over_def *ov = wk->def->over;
	weir_over_frames_fini(&wk->frames);
	for (uint32_t i = 0; i < ov->arg_count; i++)
		weir_buf_fini(&wk->arg[i]);
	for (uint32_t i = 0; i < ov->fn_count; i++)
		weir_buf_fini(&wk->result[i]);
	free(wk->arg);
	free(wk->result);
	free(wk->sum);
	free_cols(wk->cols, wk->def->sides[0].col_count);
	free_cols(wk->chain_cols, ov->past_count);
	free_cols(wk->result_cols, ov->fn_count);
	free_cols(wk->sum_cols, wk->sum_values);
	free(wk->chain_ptrs);
	free(wk->result_ptrs);
	free(wk->sum_ptrs);
	weir_buf_fini(&wk->found);
	weir_buf_fini(&wk->order);
	weir_buf_fini(&wk->place);
	weir_buf_fini(&wk->results);
	weir_buf_fini(&wk->past);
	weir_buf_fini(&wk->time);
	weir_buf_fini(&wk->head);
	free(wk);
}

static const struct weir_join_found *found_at(const struct weir_over_work *wk, uint32_t i)
{
	return (const struct weir_join_found *)(const void *)wk->found.data + i;
}

static uint32_t order_at(const struct weir_over_work *wk, uint32_t i)
{
	return ((const uint32_t *)(const void *)wk->order.data)[i];
}

static struct weir_over_value *values(const struct weir_buf *b)
{
	return (struct weir_over_value *)(void *)b->data;
}

static void add_time(struct weir_over_work *wk, int64_t time)
{
	weir_buf_put(&wk->time, &time, sizeof time);
}

/* A row of the buffer joins the key's rows, with every argument. */
static void add_row(struct weir_over_work *wk, const struct weir_join_found *fd)
{
	const struct weir_over_def *ov = wk->def->over;
	struct weir_join_row r;
	weir_join_buffer_get(wk->def, fd, &r);
	for (uint32_t c = 0; c < wk->def->sides[0].col_count; c++)
		weir_col_clear_nulls(&wk->cols[c]);
	(void)weir_row_unpack(r.row, r.row_bytes, wk->cols, wk->def->sides[0].col_count, 0, NULL);
	add_time(wk, fd->time);
	for (uint32_t a = 0; a < ov->arg_count; a++) {
		struct weir_over_value v;
		weir_over_value_get(&v, &wk->cols[ov->arg[a]], 0);
		weir_buf_put(&wk->arg[a], &v, sizeof v);
	}
}

/* ---- the chain of a key ---- */

static struct weir_gen *chain_gen(const struct weir_slot *sl)
{
	uint32_t at = weir_slot_search(sl, CHAIN_GEN);
	WEIR_DASSERT(at < sl->gen_count && sl->gens[at].start == CHAIN_GEN);
	return sl->gens[at].g;
}

static struct weir_buffered *older_of(const struct weir_slot *sl, const struct weir_buffered *b)
{
	return b->older != 0 ? (struct weir_buffered *)(void *)weir_ref_get(&sl->pages, b->older) : NULL;
}

/* What a chain's entry holds; false if it is too short for what it says (damaged state). */
static bool chain_row(const struct weir_slot *sl, const struct weir_buffered *b, int64_t *time, const uint8_t **sums,
		      uint32_t *sums_bytes, const uint8_t **row, uint32_t *row_bytes)
{
	uint32_t n;
	const uint8_t *at = weir_entry_key(sl->def, &b->e, &n) + n;
	if (b->row_bytes < CHAIN_HEAD)
		return false;
	*time = (int64_t)weir_load_le64(at);
	*sums_bytes = weir_load_le32(at + 8);
	*sums = at + CHAIN_HEAD;
	if (*sums_bytes > b->row_bytes - CHAIN_HEAD)
		return false;
	*row = *sums + *sums_bytes;
	*row_bytes = b->row_bytes - CHAIN_HEAD - *sums_bytes;
	return true;
}

/* The key's earlier rows join, oldest first. Of their arguments only those in past are kept. */
static void add_chain(struct weir_slot *sl, struct weir_over_work *wk, const struct weir_buffered *head)
{
	const struct weir_over_def *ov = wk->def->over;
	int64_t time;
	const uint8_t *sums, *row;
	uint32_t sums_bytes, row_bytes;
	wk->past.bytes = 0;
	for (const struct weir_buffered *b = head; b != NULL; b = older_of(sl, b))
		weir_buf_put(&wk->past, &b, sizeof b);
	for (size_t i = wk->past.bytes / sizeof head; i > 0; i--) {
		const struct weir_buffered *b = ((const struct weir_buffered **)(void *)wk->past.data)[i - 1];
		const struct weir_over_value null = {.null = true};
		if (!chain_row(sl, b, &time, &sums, &sums_bytes, &row, &row_bytes))
			continue;
		for (uint32_t p = 0; p < ov->past_count; p++)
			weir_col_clear_nulls(&wk->chain_cols[p]);
		(void)weir_row_unpack(row, row_bytes, wk->chain_cols, ov->past_count, 0, NULL);
		add_time(wk, time);
		for (uint32_t a = 0; a < ov->arg_count; a++)
			weir_buf_put(&wk->arg[a], &null, sizeof null);
		for (uint32_t p = 0; p < ov->past_count; p++) {
			const struct weir_buf *to = &wk->arg[ov->past[p]];
			weir_over_value_get(&values(to)[to->bytes / sizeof null - 1], &wk->chain_cols[p], 0);
		}
	}
}

/* Sums of the key: as its head has them, or of no row. */
static void load_sums(struct weir_slot *sl, struct weir_over_work *wk, const struct weir_buffered *head)
{
	const struct weir_over_def *ov = wk->def->over;
	int64_t time;
	const uint8_t *at = NULL, *row;
	uint32_t left = 0, row_bytes, v = 0;
	if (head != NULL && !chain_row(sl, head, &time, &at, &left, &row, &row_bytes))
		left = 0;
	for (uint32_t f = 0; f < ov->fn_count; f++) {
		const struct weir_over_fn *fn = &ov->fns[f];
		wk->sum[f] = (struct weir_over_sum){.v = {.null = true}};
		if (fn->kind == WEIR_OVER_LAG || fn->preceding >= 0 || weir_over_sum_is_value(fn) || left < STATE_BYTES)
			continue;
		memcpy(wk->sum[f].state, at, STATE_BYTES);
		at += STATE_BYTES;
		left -= STATE_BYTES;
	}
	for (uint32_t i = 0; i < wk->sum_values; i++) {
		weir_col_clear_nulls(&wk->sum_cols[i]);
		if (left == 0)
			weir_row_set_null(&wk->sum_cols[i], 1, 0);
	}
	if (left != 0)
		(void)weir_row_unpack(at, left, wk->sum_cols, wk->sum_values, 0, NULL);
	for (uint32_t f = 0; f < ov->fn_count; f++)
		if (ov->fns[f].kind != WEIR_OVER_LAG && ov->fns[f].preceding < 0 && weir_over_sum_is_value(&ov->fns[f]))
			weir_over_value_get(&wk->sum[f].v, &wk->sum_cols[v++], 0);
}

static void save_sums(struct weir_over_work *wk)
{
	const struct weir_over_def *ov = wk->def->over;
	uint32_t v = 0;
	wk->head.bytes = 0;
	for (uint32_t f = 0; f < ov->fn_count; f++) {
		const struct weir_over_fn *fn = &ov->fns[f];
		if (fn->kind == WEIR_OVER_LAG || fn->preceding >= 0)
			continue;
		if (weir_over_sum_is_value(fn)) {
			weir_col_clear_nulls(&wk->sum_cols[v]);
			weir_over_value_put(&wk->sum[f].v, &wk->sum_cols[v++], 0);
		} else {
			weir_buf_put(&wk->head, wk->sum[f].state, STATE_BYTES);
		}
	}
	if (wk->sum_values == 0)
		return;
	uint64_t bytes = weir_row_bytes(wk->sum_ptrs, wk->sum_values, 0);
	weir_buf_room(&wk->head, bytes);
	(void)weir_row_pack(wk->sum_ptrs, wk->sum_values, 0, wk->head.data + wk->head.bytes);
	wk->head.bytes += bytes;
}

/* Row i of the key's, as an entry of its chain. */
static struct weir_buffered *chain_entry(struct weir_gen *g, struct weir_over_work *wk, const struct weir_join_row *key,
					 uint32_t i, bool is_head)
{
	const struct weir_over_def *ov = wk->def->over;
	for (uint32_t p = 0; p < ov->past_count; p++) {
		weir_col_clear_nulls(&wk->chain_cols[p]);
		weir_over_value_put(&values(&wk->arg[ov->past[p]])[i], &wk->chain_cols[p], 0);
	}
	uint32_t sums = is_head ? (uint32_t)wk->head.bytes : 0;
	uint32_t row = (uint32_t)weir_row_bytes(wk->chain_ptrs, ov->past_count, 0);
	bool is_long = key->key_bytes >= WEIR_KEY_LONG;
	uint64_t key_at = sizeof(struct weir_buffered) + (is_long ? 8 : 0);
	uint64_t used = key_at + key->key_bytes + CHAIN_HEAD + sums + row;
	uint64_t bytes = weir_buffered_bytes(key_at, key->key_bytes, CHAIN_HEAD + sums + row);
	struct weir_entry *e = weir_gen_take(g, bytes, false);
	struct weir_buffered *b = (struct weir_buffered *)(void *)e;
	uint8_t *at = (uint8_t *)(b + 1);
	e->hash = weir_hash_index(key->hash);
	b->delta = 0;
	b->older = 0;
	b->row_bytes = CHAIN_HEAD + sums + row;
	e->key_bytes = is_long ? WEIR_KEY_LONG : (uint16_t)key->key_bytes;
	if (is_long) {
		weir_store_le64(at, key->key_bytes);
		at += 8;
	}
	memcpy(at, key->key, key->key_bytes);
	at += key->key_bytes;
	weir_store_le64(at, (uint64_t)((const int64_t *)(const void *)wk->time.data)[i]);
	weir_store_le32(at + 8, sums);
	if (sums != 0)
		memcpy(at + CHAIN_HEAD, wk->head.data, sums);
	(void)weir_row_pack(wk->chain_ptrs, ov->past_count, 0, at + CHAIN_HEAD + sums);
	memset((uint8_t *)e + used, 0, bytes - used);
	weir_gen_mark(g, e);
	g->entries++;
	return b;
}

/* Whether the row that stands at place `place` of a chain, newest first, may be read again. */
static bool is_kept(const struct weir_over_def *ov, uint32_t place, int64_t time, int64_t newest)
{
	return place == 0 || place < ov->keep_rows || (ov->keep_ms >= 0 && time >= newest - ov->keep_ms);
}

/* The rows [first, count) of the key's are its newest now. */
static void chain_put(struct weir_slot *sl, struct weir_over_work *wk, const struct weir_join_row *key, uint32_t first,
		      uint32_t count)
{
	const struct weir_over_def *ov = wk->def->over;
	const int64_t *time = (const int64_t *)(const void *)wk->time.data;
	struct weir_gen *g = chain_gen(sl);
	struct weir_buffered *last = NULL;
	uint64_t *free_slot, *at;
	uint32_t place = 0;
	save_sums(wk);
	at = weir_index_find(&g->ix, sl->def, key->hash, key->key, key->key_bytes, &free_slot);
	struct weir_buffered *old = at != NULL ? (struct weir_buffered *)(void *)weir_index_entry(*at) : NULL;
	for (uint32_t i = count; i > first && is_kept(ov, place, time[i - 1], time[count - 1]); i--, place++) {
		struct weir_buffered *b = chain_entry(g, wk, key, i - 1, i == count);
		if (last != NULL)
			last->older = weir_entry_ref(&b->e);
		else if (at != NULL)
			weir_index_store(at, (*at & ~WEIR_INDEX_POINTER) | (uint64_t)(uintptr_t)b);
		else
			weir_gen_index_put(g, &b->e, key->hash, free_slot);
		last = b;
	}
	/* What was kept so far, as long as it still is. */
	for (; old != NULL; place++) {
		struct weir_buffered *next = older_of(sl, old);
		int64_t old_time = INT64_MIN;
		const uint8_t *sums, *row;
		uint32_t sums_bytes, row_bytes;
		bool fine = chain_row(sl, old, &old_time, &sums, &sums_bytes, &row, &row_bytes);
		if (last != NULL && fine && is_kept(ov, place, old_time, time[count - 1])) {
			last->older = weir_entry_ref(&old->e);
			weir_gen_mark(g, &last->e);
			last = old;
		} else {
			if (last != NULL && last->older == weir_entry_ref(&old->e)) {
				last->older = 0;
				weir_gen_mark(g, &last->e);
			}
			g->entries--;
			weir_gen_kill(g, &old->e, weir_entry_bytes(sl->def, &old->e));
		}
		old = next;
	}
}

/* ---- rows leave ---- */

/* By key bytes, then in the order of leaving. */
static int by_key(const void *a, const void *b, void *ctx)
{
	const struct weir_over_work *wk = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	struct weir_join_row rx, ry;
	weir_join_buffer_get(wk->def, found_at(wk, x), &rx);
	weir_join_buffer_get(wk->def, found_at(wk, y), &ry);
	uint32_t n = rx.key_bytes < ry.key_bytes ? rx.key_bytes : ry.key_bytes;
	int c = n != 0 ? memcmp(rx.key, ry.key, n) : 0;
	if (c == 0)
		c = (rx.key_bytes > ry.key_bytes) - (rx.key_bytes < ry.key_bytes);
	return c != 0 ? c : (x > y) - (x < y);
}

static void put_results(struct weir_over_work *wk, uint32_t i, uint32_t number)
{
	const struct weir_over_def *ov = wk->def->over;
	size_t *place = (size_t *)(void *)wk->place.data + (size_t)number * 2;
	for (uint32_t f = 0; f < ov->fn_count; f++) {
		weir_col_clear_nulls(&wk->result_cols[f]);
		weir_over_value_put(&values(&wk->result[f])[i], &wk->result_cols[f], 0);
	}
	uint64_t bytes = weir_row_bytes(wk->result_ptrs, ov->fn_count, 0);
	weir_buf_room(&wk->results, bytes);
	place[0] = wk->results.bytes;
	place[1] = bytes;
	(void)weir_row_pack(wk->result_ptrs, ov->fn_count, 0, wk->results.data + wk->results.bytes);
	wk->results.bytes += bytes;
}

/* The rows order[from, to), all of one key. */
static void leave_key(struct weir_slot *sl, struct weir_over_work *wk, uint32_t from, uint32_t to)
{
	const struct weir_over_def *ov = wk->def->over;
	struct weir_join_row key;
	const struct weir_join_found *oldest = found_at(wk, order_at(wk, from)),
				     *newest = found_at(wk, order_at(wk, to - 1));
	uint32_t first = 0;
	weir_join_buffer_get(wk->def, oldest, &key);
	key.hash = weir_hash(key.key, key.key_bytes);
	wk->time.bytes = 0;
	for (uint32_t a = 0; a < ov->arg_count; a++)
		wk->arg[a].bytes = 0;
	if (ov->timed) {
		wk->past.bytes = 0;
		weir_join_buffer_find(sl, 0, &key, oldest->time - wk->def->before_ms, newest->time, WEIR_TIME_UNSET,
				      &wk->past);
		const struct weir_join_found *past = (const struct weir_join_found *)(const void *)wk->past.data;
		first = (uint32_t)(wk->past.bytes / sizeof *past) - (to - from);
		for (uint32_t i = 0; i < first; i++)
			add_row(wk, &past[i]);
	} else {
		const struct weir_gen *g = chain_gen(sl);
		uint64_t *free_slot;
		const uint64_t *at = weir_index_find(&g->ix, sl->def, key.hash, key.key, key.key_bytes, &free_slot);
		const struct weir_buffered *head =
			at != NULL ? (const struct weir_buffered *)(void *)weir_index_entry(*at) : NULL;
		add_chain(sl, wk, head);
		load_sums(sl, wk, head);
		first = (uint32_t)(wk->time.bytes / sizeof(int64_t));
	}
	for (uint32_t i = from; i < to; i++)
		add_row(wk, found_at(wk, order_at(wk, i)));
	struct weir_over_rows rows = {
		.count = first + (to - from), .first = first, .time = (const int64_t *)(const void *)wk->time.data};
	for (uint32_t f = 0; f < ov->fn_count; f++) {
		const struct weir_over_fn *fn = &ov->fns[f];
		rows.arg = rows.fallback = NULL;
		for (uint32_t a = 0; a < ov->arg_count; a++) {
			if (fn->arg == ov->arg[a])
				rows.arg = values(&wk->arg[a]);
			if (fn->fallback == ov->arg[a])
				rows.fallback = values(&wk->arg[a]);
		}
		wk->result[f].bytes = 0;
		weir_buf_room(&wk->result[f], (size_t)(to - from) * sizeof(struct weir_over_value));
		weir_over_compute(&wk->frames, fn, &rows, &wk->sum[f], values(&wk->result[f]));
	}
	for (uint32_t i = from; i < to; i++)
		put_results(wk, i - from, order_at(wk, i));
	if (!ov->timed)
		chain_put(sl, wk, &key, first, rows.count);
}

static bool same_key(const struct weir_over_work *wk, uint32_t a, uint32_t b)
{
	struct weir_join_row x, y;
	weir_join_buffer_get(wk->def, found_at(wk, order_at(wk, a)), &x);
	weir_join_buffer_get(wk->def, found_at(wk, order_at(wk, b)), &y);
	return x.key_bytes == y.key_bytes && weir_key_equal(x.key, y.key, x.key_bytes);
}

uint32_t weir_over_take(struct weir_slot *sl, int64_t task_time, bool all, struct weir_over_work *wk)
{
	wk->found.bytes = wk->order.bytes = wk->results.bytes = 0;
	wk->frames.errors = 0;
	weir_join_take_final(sl, task_time, all || wk->def->over->unnest, &wk->found);
	uint32_t count = (uint32_t)(wk->found.bytes / sizeof(struct weir_join_found));
	if (count == 0 || wk->def->over->unnest)
		return count;
	for (uint32_t i = 0; i < count; i++) {
		/* It has left; but frames still read it. */
		struct weir_entry *e = &found_at(wk, i)->bf->e;
		e->flags = (uint8_t)((e->flags & ~WEIR_ENTRY_GONE) | WEIR_ENTRY_EMITTED);
		weir_buf_put(&wk->order, &i, sizeof i);
	}
	weir_buf_room(&wk->place, (size_t)count * 2 * sizeof(size_t));
	qsort_r(wk->order.data, count, sizeof(uint32_t), by_key, wk);
	for (uint32_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && same_key(wk, from, to); to++)
			;
		leave_key(sl, wk, from, to);
	}
	return count;
}

void weir_over_get(const struct weir_slot *sl, const struct weir_over_work *wk, uint32_t i, struct weir_join_row *row,
		   const uint8_t **results, uint32_t *result_bytes)
{
	const size_t *place = (const size_t *)(const void *)wk->place.data + (size_t)i * 2;
	(void)sl;
	weir_join_buffer_get(wk->def, found_at(wk, i), row);
	if (wk->def->over->unnest) {
		row->time = (int64_t)weir_load_le64(row->row);
		row->row += UNNEST_HEAD;
		row->row_bytes -= UNNEST_HEAD;
		*results = NULL;
		*result_bytes = 0;
		return;
	}
	*results = wk->results.data + place[0];
	*result_bytes = (uint32_t)place[1];
}

uint32_t weir_over_errors(const struct weir_over_work *wk)
{
	return wk->frames.errors;
}
