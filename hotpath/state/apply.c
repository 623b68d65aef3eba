/* apply.c: rows of one sub-batch into their entries, in stages, so that the misses of many rows overlap: index lines
 * are asked for, then candidates' entry lines, then keys are compared (or entries made), then each aggregate is folded
 * in a loop of its own. @thread worker.
 *
 * Cost: 27 ns a record at 100k keys, 43 at 1M (bench_window_table: string key of 8 bytes, SUM of a DECIMAL and
 * COUNT(*), one slot, one of two shared Xeon cores); one record after another over the same table takes 2.4 times as
 * long. */
#include "hotpath/core/hash.h"
#include "hotpath/state/slot.h"

/* The first entry whose tag fits, at or behind `at`; unseen. NULL if the key is not there. */
static WEIR_NOINLINE struct weir_entry *probe_on(const struct weir_index *ix, uint32_t at, uint64_t tag)
{
	for (;;) {
		uint64_t v = ix->slot[at];
		if (v >> 48 == tag && v > WEIR_INDEX_REMOVED)
			return weir_index_entry(v);
		if (v == 0)
			return NULL;
		at = (at + 1) & ix->mask;
	}
}

/* weir_key_equal, for the usual length first. */
WEIR_INLINE bool key_equal(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	if (WEIR_LIKELY(n - 9 < 8)) /* 9..16 */
		return ((weir_load_le64(a) ^ weir_load_le64(b)) | (weir_load_le64(a + 8) ^ weir_load_le64(b + 8))
									  << (128 - 8 * n)) == 0;
	return weir_key_equal(a, b, n);
}

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
		uint64_t hash = in->hash[ln->row[i]];
		const uint64_t *at = &ix->slot[weir_hash_index(hash) & ix->mask];
		__builtin_prefetch(at, 0, 3);
		pr->hash[i] = hash;
		pr->at[i] = at;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint64_t v = *pr->at[i], tag = weir_hash_tag(pr->hash[i]);
		struct weir_entry *e = weir_index_entry(v);
		if (WEIR_UNLIKELY(v >> 48 != tag || v <= WEIR_INDEX_REMOVED)) {
			const struct weir_index *ix = &ln->gen[i]->ix;
			e = v == 0 ? NULL : probe_on(ix, (uint32_t)(pr->at[i] - ix->slot), tag);
		}
		ln->entry[i] = (uint8_t *)e;
		__builtin_prefetch(e, 1, 3);
		__builtin_prefetch((const void *)((uintptr_t)e + 64), 1, 3); /* e may be NULL: no pointer to add to */
	}
	bool stamped = def->stamped;
	uint32_t key_at = weir_def_key_at(def);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = ln->row[i];
		struct weir_entry *e = (struct weir_entry *)(void *)ln->entry[i];
		uint32_t key_bytes = in->key_bytes[row];
		bool fresh = false;
		if (WEIR_UNLIKELY(e == NULL || e->hash != (uint32_t)pr->hash[i] || e->key_bytes != key_bytes ||
				  !key_equal((const uint8_t *)e + key_at, in->key[row], key_bytes))) {
			struct weir_gen *g = ln->gen[i];
			uint64_t before = g->entries;
			e = weir_gen_find_or_create(g, def, pr->hash[i], in->key[row], key_bytes);
			fresh = g->entries != before;
			ln->entry[i] = (uint8_t *)e;
		}
		weir_gen_mark(ln->gen[i], e);
		if (stamped)
			note_time(ln->gen[i]->slot, ln->gen[i], e, in->time[row], fresh);
	}
	weir_agg_fold(def, ln, in->cols);
}
