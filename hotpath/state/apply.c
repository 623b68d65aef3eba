/* apply.c: rows of one sub-batch into their entries, in stages, so that the misses of many rows overlap: index lines
 * are asked for, then candidates' entry lines, then keys are compared (or entries made), then each aggregate is folded
 * in a loop of its own. @thread worker.
 *
 * Cost: 27 ns a record at 100k keys, 43 at 1M (bench_window_table: string key of 8 bytes, SUM of a DECIMAL and
 * COUNT(*), one slot, one of two shared Xeon cores); one record after another over the same table takes 2.4 times as
 * long. */
#include "hotpath/core/hash.h"
#include "hotpath/state/slot.h"

static void note_time(struct weir_slot *sl, struct weir_gen *g, struct weir_entry *e, int64_t time, bool fresh)
{
	struct weir_stamped *st = (struct weir_stamped *)(void *)e;
	if (fresh || time > st->time)
		st->time = time;
	if ((e->flags & WEIR_ENTRY_CHANGED) == 0)
		weir_slot_note_change(sl, g, e);
}

void weir_apply_lanes(const struct weir_state_def *def, struct weir_probe *pr, const struct weir_keyed *in)
{
	struct weir_lanes *ln = &pr->ln;
	uint32_t count = ln->count;
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_index *ix = &ln->gen[i]->ix;
		__builtin_prefetch(&ix->slot[weir_hash_index(in->hash[ln->row[i]]) & ix->mask], 0, 3);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct weir_entry *e = weir_index_guess(&ln->gen[i]->ix, in->hash[ln->row[i]]);
		pr->found[i] = e;
		if (e != NULL) {
			__builtin_prefetch(e, 1, 3);
			__builtin_prefetch((const uint8_t *)e + 64, 1, 3);
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = ln->row[i];
		struct weir_gen *g = ln->gen[i];
		struct weir_entry *e = pr->found[i];
		bool fresh = false;
		if (e == NULL || !weir_entry_is(def, e, in->hash[row], in->key[row], in->key_bytes[row])) {
			uint64_t before = g->entries;
			e = weir_gen_find_or_create(g, def, in->hash[row], in->key[row], in->key_bytes[row]);
			fresh = g->entries != before;
		}
		weir_gen_mark(g, e);
		if (def->stamped)
			note_time(g->slot, g, e, in->time[row], fresh);
		ln->entry[i] = (uint8_t *)e;
	}
	weir_agg_fold(def, ln, in->cols);
}
