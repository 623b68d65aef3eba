/* apply.c: rows of one sub-batch into their entries, in stages, so that the misses of many rows overlap: index lines
 * are asked for as lanes are filled (slot.h), and while one step's keys are compared (or entries made) and its
 * aggregates folded, each in a loop of its own, the next step's entry lines are on their way. @thread worker.
 *
 * Cost: 17 ns a record at 100k keys, 29 at 1M (bench_window_table: string key of 8 bytes, SUM of a DECIMAL and
 * COUNT(*), 64 slots, one of two shared Xeon cores); one record after another over the same table takes 2.2 and 3.9
 * times as long. */
#include "hotpath/core/hash.h"
#include "hotpath/state/slot.h"

/* weir_entry_is with the usual length first: then the bytes say all, and the hash need not be looked at. */
WEIR_INLINE bool entry_fits(const struct weir_entry *e, uint32_t key_at, uint64_t hash, const uint8_t *key, uint32_t n)
{
	const uint8_t *have = (const uint8_t *)e + key_at;
	if (e->key_bytes != n)
		return false;
	if (WEIR_LIKELY(n - 9 < 8)) /* 9..16 */
		return ((weir_load_le64(have) ^ weir_load_le64(key)) |
			(weir_load_le64(have + 8) ^ weir_load_le64(key + 8)) << (128 - 8 * n)) == 0;
	return e->hash == (uint32_t)hash && weir_key_equal(have, key, n);
}

/* The group's row is not what it was: without an aggregate (SELECT DISTINCT) that is so once. */
static void note_time(struct weir_slot *sl, struct weir_gen *g, struct weir_entry *e, int64_t time, bool fresh)
{
	struct weir_stamped *st = (struct weir_stamped *)(void *)e;
	if (fresh || time > st->time)
		st->time = time;
	if ((e->flags & WEIR_ENTRY_CHANGED) == 0 && (fresh || sl->def->agg_count != 0))
		weir_slot_note_change(sl, g, e);
}

WEIR_INLINE uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Reads the index lines of lanes [from, to) and asks for the lines of the entries they lead to. */
WEIR_INLINE void ask_entries(const struct weir_state_def *def, struct weir_probe *pr, uint32_t from, uint32_t to)
{
	uint32_t end = weir_def_key_at(def) + 15; /* of an entry whose key has 9 to 16 bytes */
	struct weir_lanes *ln = &pr->ln;
#pragma GCC unroll 4
	for (uint32_t i = from; i < to; i++) {
		const struct weir_entry *e = weir_index_guess(&ln->gen[i]->ix, pr->hash[i]);
		ln->entry[i] = (uint8_t *)e;
		__builtin_prefetch(e, 1, 3);
		__builtin_prefetch((const void *)((uintptr_t)e + end), 1, 3); /* e may be NULL: no pointer to add to */
	}
}

/* Compares keys, makes the entries that are missing, marks all. */
WEIR_INLINE void settle(const struct weir_state_def *def, struct weir_probe *pr, const struct weir_keyed *in,
			uint32_t from, uint32_t to)
{
	struct weir_lanes *ln = &pr->ln;
	bool stamped = def->stamped;
	uint32_t key_at = weir_def_key_at(def);
	for (uint32_t i = from; i < to; i++) {
		uint32_t row = ln->row[i];
		struct weir_entry *e = (struct weir_entry *)(void *)ln->entry[i];
		uint32_t key_bytes = in->key_bytes[row];
		bool fresh = false;
		if (WEIR_UNLIKELY(e == NULL || !entry_fits(e, key_at, pr->hash[i], in->key[row], key_bytes))) {
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
}

void weir_apply_lanes(const struct weir_state_def *def, struct weir_probe *pr, const struct weir_keyed *in)
{
	enum { STEP = 64 };
	uint32_t count = pr->ln.count;
	ask_entries(def, pr, 0, smaller(STEP, count));
	for (uint32_t at = 0; at < count; at += STEP) {
		uint32_t to = smaller(at + STEP, count);
		ask_entries(def, pr, to, smaller(to + STEP, count));
		settle(def, pr, in, at, to);
		weir_agg_fold(def, &pr->ln, at, to - at, in->cols);
	}
}
