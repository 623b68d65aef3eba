/* bench_window_table.c: rows into a tumbling window, SUM of a DECIMAL(12, 2) and COUNT(*) by a string key of 8 bytes:
 * weir_state_apply against one record after another over the same table. Keys are drawn evenly, so that nearly every
 * row misses the caches once the table is large; what a batch brings along (keys, hashes, times) has just been written,
 * as in the engine. One thread.
 *
 * apply/.../64 has 64 slots, as the engine for a local exchange; apply/.../1 one slot, as for a direct one. */
#include "bench/shim/shim.h"
#include "hotpath/core/arena.h"
#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/agg_state.h"
#include "hotpath/state/slot.h"
#include "hotpath/time/window.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCHES   512
#define SLOTS_MAX 64
#define READY     8 /* batches made ahead of the measured part */

struct load {
	uint32_t keys;
	uint32_t slots;
	enum weir_state_kind kind;
	bool loop;
	struct weir_state_def def;
	struct weir_type key_type;
	struct weir_agg aggs[2];
	struct weir_keyed *in; /* READY of them; turnover: BATCHES */
	struct weir_scratch scratch;
	struct weir_col arg;
	const struct weir_col *cols[1];
	struct weir_sel all;
	struct weir_arena *ar;
	struct weir_slot *slot[SLOTS_MAX];
	uint32_t *draw; /* BATCHES * WEIR_BATCH_ROWS keys */
	bool ready;
};

static uint64_t rng_state = 88172645463325252u;
static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

/* Keys first, first + 1, ... or those drawn, as eight digits. */
static void load_batch(struct load *ld, struct weir_keyed *in, const uint32_t *draw, uint32_t first)
{
	static uint8_t text[READY][WEIR_BATCH_ROWS][8];
	static struct weir_col key;
	static uint32_t turn;
	const struct weir_col *key_cols[] = {&key};
	if (key.str == NULL)
		weir_col_init(&key, WEIR_PHYS_STR);
	turn = (turn + 1) % READY;
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
		uint32_t k = draw != NULL ? draw[i] : (first + i) % ld->keys;
		for (int d = 7; d >= 0; d--, k /= 10)
			text[turn][i][d] = (uint8_t)('0' + k % 10);
		key.str[i] = (struct weir_str){text[turn][i], 8, 0};
		in->time[i] = in->run[i] = i % 1000;
	}
	in->count = WEIR_BATCH_ROWS;
	in->cols = ld->cols;
	weir_key_encode(key_cols, ld->def.key_types, 1, &ld->all, &ld->scratch, in);
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++)
		in->slot[i] = (uint16_t)weir_hash_slot(in->hash[i], ld->slots);
}

static const struct weir_clock open_clock = {WEIR_TIME_UNSET, INT64_MAX, WEIR_TIME_UNSET};

static void load_init(struct load *ld)
{
	static struct weir_applied applied;
	static struct weir_keyed fill;
	if (ld->ready)
		return;
	ld->ready = true;
	ld->key_type = (struct weir_type){.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	struct weir_type decimal = {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2};
	if (weir_agg_resolve(&ld->aggs[0], "SUM", false, &decimal, NULL) != WEIR_OK ||
	    weir_agg_resolve(&ld->aggs[1], "COUNT", false, NULL, NULL) != WEIR_OK)
		abort();
	ld->aggs[0].arg = 0;
	ld->def = (struct weir_state_def){.name = "bench",
					  .kind = ld->kind,
					  .size_ms = 1000,
					  .advance_ms = 1000,
					  .gap_ms = 10000,
					  .key_count = 1,
					  .key_types = &ld->key_type,
					  .agg_count = 2,
					  .aggs = ld->aggs};
	if (weir_state_def_init(&ld->def, NULL) != WEIR_OK)
		abort();
	weir_scratch_init(&ld->scratch);
	weir_col_init(&ld->arg, WEIR_PHYS_I64);
	ld->cols[0] = &ld->arg;
	weir_sel_all(&ld->all, WEIR_BATCH_ROWS);
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++)
		ld->arg.i64[i] = (int64_t)(rng() >> 40);
	ld->ar = weir_arena_create();
	for (uint32_t k = 0; k < ld->slots; k++)
		ld->slot[k] = weir_slot_create(&ld->def, k, ld->ar);
	for (uint32_t first = 0; first < ld->keys; first += WEIR_BATCH_ROWS) {
		load_batch(ld, &fill, NULL, first);
		weir_state_apply(&ld->def, ld->slot, &fill, ld->all.row, WEIR_BATCH_ROWS, &open_clock, &applied);
		weir_scratch_reset(&ld->scratch);
	}
	ld->in = weir_xcalloc(BATCHES, sizeof *ld->in);
	ld->draw = weir_xcalloc(BATCHES, WEIR_BATCH_ROWS * sizeof *ld->draw);
	for (uint32_t i = 0; i < BATCHES * WEIR_BATCH_ROWS; i++)
		ld->draw[i] = (uint32_t)((rng() >> 32) % ld->keys);
}

static void load_fini(struct load *ld)
{
	if (!ld->ready)
		return;
	for (uint32_t k = 0; k < ld->slots; k++)
		weir_slot_destroy(ld->slot[k]);
	weir_arena_destroy(ld->ar);
	free(ld->in);
	free(ld->draw);
	weir_col_fini(&ld->arg);
	weir_scratch_fini(&ld->scratch);
}

/* One record after another, as a program would do it by hand: its window, whether that is closed, its entry, add. */
static void apply_loop(struct load *ld, const struct weir_keyed *in)
{
	const struct weir_state_def *def = &ld->def;
	for (uint32_t row = 0; row < in->count; row++) {
		struct weir_slot *sl = ld->slot[in->slot[row]];
		int64_t start = weir_window_last(in->time[row], def->size_ms, def->offset_ms);
		int64_t task_time = weir_clock_at(def, &open_clock, in->run[row]);
		if (weir_window_is_closed(start + def->size_ms, def->grace_ms, task_time) || start != sl->current_start)
			abort();
		struct weir_gen *g = sl->current;
		struct weir_entry *e = weir_gen_find_or_create(g, def, in->hash[row], in->key[row], in->key_bytes[row]);
		weir_gen_mark(g, e);
		struct agg_sum *sum = (struct agg_sum *)(void *)((uint8_t *)e + def->head_bytes);
		sum->sum += ld->arg.i64[row];
		sum->seen = 1;
		((struct agg_count *)(void *)((uint8_t *)e + def->head_bytes + def->aggs[1].state_at))->n++;
		sl->records++;
	}
}

static void run_apply(struct weir_bench_state *st, void *arg)
{
	static struct weir_applied applied;
	struct load *ld = arg;
	uint32_t b = 0;
	load_init(ld);
	while (weir_bench_keep_running(st)) {
		weir_bench_pause(st);
		weir_scratch_reset(&ld->scratch);
		for (uint32_t i = 0; i < READY; i++)
			load_batch(ld, &ld->in[i], ld->draw + b++ % BATCHES * WEIR_BATCH_ROWS, 0);
		weir_bench_resume(st);
		for (uint32_t i = 0; i < READY; i++) {
			if (ld->loop)
				apply_loop(ld, &ld->in[i]);
			else
				weir_state_apply(&ld->def, ld->slot, &ld->in[i], ld->all.row, WEIR_BATCH_ROWS,
						 &open_clock, &applied);
		}
	}
	weir_bench_set_items(st, READY * WEIR_BATCH_ROWS);
	uint64_t bytes = 0, entries = 0;
	for (uint32_t k = 0; k < ld->slots; k++) {
		bytes += weir_slot_bytes(ld->slot[k]);
		entries += weir_slot_entries(ld->slot[k]);
	}
	weir_bench_counter(st, "bytes_per_entry", (double)bytes / (double)entries);
}

/* Windows opening and closing: every key is new, everything closes at once, rows are sorted and read. */
static void run_turnover(struct weir_bench_state *st, void *arg)
{
	static struct weir_applied applied;
	static struct weir_rows rows;
	struct load *ld = arg;
	int64_t end = 0, now = 1000;
	load_init(ld);
	for (uint32_t b = 0; b < BATCHES; b++)
		load_batch(ld, &ld->in[b], ld->draw + b * WEIR_BATCH_ROWS, 0);
	weir_rows_init(&rows, &ld->def);
	while (weir_bench_keep_running(st)) {
		for (uint32_t b = 0; b < BATCHES; b++) {
			struct weir_keyed *from = &ld->in[b];
			for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++)
				from->time[i] = from->run[i] = now;
			weir_state_apply(&ld->def, ld->slot, from, ld->all.row, WEIR_BATCH_ROWS, &open_clock, &applied);
		}
		now += 1000;
		struct weir_closed *cl;
		while ((cl = weir_slot_close(ld->slot[0], now, false, &end)) != NULL) {
			weir_closed_sort(cl);
			for (uint32_t at = 0; at < weir_closed_count(cl); at += rows.count) {
				weir_closed_read(cl, at, &rows);
				weir_bench_keep(rows.cols);
			}
			weir_closed_release(ld->slot[0], cl);
		}
	}
	weir_rows_fini(&rows);
	weir_bench_set_items(st, (int64_t)BATCHES * WEIR_BATCH_ROWS);
}

int main(int argc, char **argv)
{
	static struct load loads[] = {
		{.keys = 100000, .slots = 64},
		{.keys = 100000, .slots = 64, .loop = true},
		{.keys = 1000000, .slots = 64},
		{.keys = 1000000, .slots = 64, .loop = true},
		{.keys = 100000, .slots = 1},
		{.keys = 100000, .slots = 1, .loop = true},
		{.keys = 1000000, .slots = 1},
		{.keys = 1000000, .slots = 1, .loop = true},
		{.keys = 100000, .slots = 1, .kind = WEIR_STATE_SESSION},
		{.keys = 100000, .slots = 1},
	};
	weir_bench_init(&argc, argv);
	weir_bench_register("apply/batched/100k/64", run_apply, &loads[0]);
	weir_bench_register("apply/loop/100k/64", run_apply, &loads[1]);
	weir_bench_register("apply/batched/1M/64", run_apply, &loads[2]);
	weir_bench_register("apply/loop/1M/64", run_apply, &loads[3]);
	weir_bench_register("apply/batched/100k/1", run_apply, &loads[4]);
	weir_bench_register("apply/loop/100k/1", run_apply, &loads[5]);
	weir_bench_register("apply/batched/1M/1", run_apply, &loads[6]);
	weir_bench_register("apply/loop/1M/1", run_apply, &loads[7]);
	weir_bench_register("apply/session/100k", run_apply, &loads[8]);
	weir_bench_register("turnover/100k", run_turnover, &loads[9]);
	int rc = weir_bench_run();
	weir_bench_print_ratio("batched over one at a time, 100k keys, 64 slots", "apply/batched/100k/64",
			       "apply/loop/100k/64", 2.0);
	weir_bench_print_ratio("batched over one at a time, 1M keys, 64 slots", "apply/batched/1M/64",
			       "apply/loop/1M/64", 2.0);
	weir_bench_print_ratio("batched over one at a time, 100k keys, 1 slot", "apply/batched/100k/1",
			       "apply/loop/100k/1", 2.0);
	weir_bench_print_ratio("batched over one at a time, 1M keys, 1 slot", "apply/batched/1M/1", "apply/loop/1M/1",
			       2.0);
	printf("ns per record, 64 slots: %.1f (100k keys), %.1f (1M keys); bytes per entry: %.1f, %.1f (want at most "
	       "96)\n",
	       1e9 / weir_bench_items_per_second("apply/batched/100k/64"),
	       1e9 / weir_bench_items_per_second("apply/batched/1M/64"),
	       weir_bench_result("apply/batched/100k/64", "bytes_per_entry"),
	       weir_bench_result("apply/batched/1M/64", "bytes_per_entry"));
	for (uint32_t i = 0; i < WEIR_COUNT_OF(loads); i++)
		load_fini(&loads[i]);
	return rc;
}
