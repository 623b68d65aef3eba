/* bench_window_table.c: rows into a tumbling window, SUM of a DECIMAL(12, 2) and COUNT(*) by a string key of 8 bytes:
 * weir_state_apply against one record after another over the same table. Keys are drawn evenly, so that nearly every
 * row misses the caches once the table is large. One thread. */
#include "bench/shim/shim.h"
#include "hotpath/core/arena.h"
#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/agg_state.h"
#include "hotpath/state/slot.h"

#include <stdio.h>
#include <stdlib.h>

#define BATCHES 512

struct load {
	uint32_t keys;
	enum weir_state_kind kind;
	bool loop;
	struct weir_state_def def;
	struct weir_type key_type;
	struct weir_agg aggs[2];
	struct weir_keyed *in; /* BATCHES of them */
	struct weir_scratch scratch;
	struct weir_col arg;
	const struct weir_col *cols[1];
	struct weir_sel all;
	struct weir_arena *ar;
	struct weir_slot *slot;
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

static void load_batch(struct load *ld, struct weir_keyed *in, uint32_t first, bool all_keys)
{
	struct weir_col key;
	const struct weir_col *key_cols[] = {&key};
	char text[WEIR_BATCH_ROWS][16];
	weir_col_init(&key, WEIR_PHYS_STR);
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
		uint32_t k = all_keys ? (first + i) % ld->keys : (uint32_t)((rng() >> 32) % ld->keys);
		snprintf(text[i], sizeof text[i], "%08u", k);
		key.str[i] = (struct weir_str){(const uint8_t *)text[i], 8, 0};
		in->slot[i] = 0;
		in->time[i] = in->run[i] = (int64_t)(rng() >> 40) % 1000;
	}
	in->count = WEIR_BATCH_ROWS;
	in->cols = ld->cols;
	weir_key_encode(key_cols, ld->def.key_types, 1, &ld->all, &ld->scratch, in);
	weir_col_fini(&key);
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
	ld->slot = weir_slot_create(&ld->def, 0, ld->ar);
	for (uint32_t first = 0; first < ld->keys; first += WEIR_BATCH_ROWS) {
		load_batch(ld, &fill, first, true);
		weir_state_apply(&ld->def, &ld->slot, &fill, ld->all.row, WEIR_BATCH_ROWS, &open_clock, &applied);
		weir_scratch_reset(&ld->scratch);
	}
	ld->in = weir_xcalloc(BATCHES, sizeof *ld->in);
	for (uint32_t b = 0; b < BATCHES; b++)
		load_batch(ld, &ld->in[b], 0, false);
}

static void load_fini(struct load *ld)
{
	if (!ld->ready)
		return;
	weir_slot_destroy(ld->slot);
	weir_arena_destroy(ld->ar);
	free(ld->in);
	weir_col_fini(&ld->arg);
	weir_scratch_fini(&ld->scratch);
}

/* One record after another, as a program would do it by hand: find the window, find or make the entry, add. */
static void apply_loop(struct load *ld, const struct weir_keyed *in)
{
	const struct weir_state_def *def = &ld->def;
	struct weir_slot *sl = ld->slot;
	for (uint32_t row = 0; row < in->count; row++) {
		int64_t ts = in->time[row];
		struct weir_gen *g = sl->current;
		if (ts < sl->current_start || ts >= sl->current_end)
			abort();
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
		struct weir_keyed *in = &ld->in[b++ % BATCHES];
		if (ld->loop)
			apply_loop(ld, in);
		else
			weir_state_apply(&ld->def, &ld->slot, in, ld->all.row, WEIR_BATCH_ROWS, &open_clock, &applied);
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
	weir_bench_counter(st, "bytes_per_entry",
			   (double)weir_slot_bytes(ld->slot) / (double)weir_slot_entries(ld->slot));
}

/* Windows opening and closing: every key is new, everything closes at once, rows are sorted and read. */
static void run_turnover(struct weir_bench_state *st, void *arg)
{
	static struct weir_applied applied;
	static struct weir_rows rows;
	struct load *ld = arg;
	int64_t end = 0, now = 1000;
	load_init(ld);
	weir_rows_init(&rows, &ld->def);
	while (weir_bench_keep_running(st)) {
		for (uint32_t b = 0; b < BATCHES; b++) {
			struct weir_keyed *from = &ld->in[b];
			for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++)
				from->time[i] = from->run[i] = now;
			weir_state_apply(&ld->def, &ld->slot, from, ld->all.row, WEIR_BATCH_ROWS, &open_clock,
					 &applied);
		}
		now += 1000;
		struct weir_closed *cl;
		while ((cl = weir_slot_close(ld->slot, now, false, &end)) != NULL) {
			weir_closed_sort(cl);
			for (uint32_t at = 0; at < weir_closed_count(cl); at += rows.count) {
				weir_closed_read(cl, at, &rows);
				weir_bench_keep(rows.cols);
			}
			weir_closed_release(ld->slot, cl);
		}
	}
	weir_rows_fini(&rows);
	weir_bench_set_items(st, (int64_t)BATCHES * WEIR_BATCH_ROWS);
}

int main(int argc, char **argv)
{
	static struct load loads[] = {
		{.keys = 100000, .kind = WEIR_STATE_WINDOW},
		{.keys = 100000, .kind = WEIR_STATE_WINDOW, .loop = true},
		{.keys = 1000000, .kind = WEIR_STATE_WINDOW},
		{.keys = 1000000, .kind = WEIR_STATE_WINDOW, .loop = true},
		{.keys = 100000, .kind = WEIR_STATE_SESSION},
		{.keys = 100000, .kind = WEIR_STATE_WINDOW},
	};
	weir_bench_init(&argc, argv);
	weir_bench_register("apply/batched/100k", run_apply, &loads[0]);
	weir_bench_register("apply/loop/100k", run_apply, &loads[1]);
	weir_bench_register("apply/batched/1M", run_apply, &loads[2]);
	weir_bench_register("apply/loop/1M", run_apply, &loads[3]);
	weir_bench_register("apply/session/100k", run_apply, &loads[4]);
	weir_bench_register("turnover/100k", run_turnover, &loads[5]);
	int rc = weir_bench_run();
	weir_bench_print_ratio("batched over one at a time, 100k keys", "apply/batched/100k", "apply/loop/100k", 2.0);
	weir_bench_print_ratio("batched over one at a time, 1M keys", "apply/batched/1M", "apply/loop/1M", 2.0);
	printf("ns per record: %.1f (100k keys), %.1f (1M keys); bytes per entry: %.1f, %.1f (want at most 96)\n",
	       1e9 / weir_bench_items_per_second("apply/batched/100k"),
	       1e9 / weir_bench_items_per_second("apply/batched/1M"),
	       weir_bench_result("apply/batched/100k", "bytes_per_entry"),
	       weir_bench_result("apply/batched/1M", "bytes_per_entry"));
	for (uint32_t i = 0; i < WEIR_COUNT_OF(loads); i++)
		load_fini(&loads[i]);
	return rc;
}
