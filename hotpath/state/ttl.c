/* ttl.c: rows of tables and groups that nobody has touched for state.ttl go, by event time. @thread worker
 *
 * Looked at when task time enters another eighth of the TTL, at an order point: what is more than the TTL behind goes
 * then, without a word to anybody. So an entry lives for between one and nine eighths of it, and a replay, or a
 * restart, drops the same entries at the same places. Cost: one look at every entry each eighth. */
#include "hotpath/state/slot.h"

enum { TTL_PARTS = 8 };

static int64_t part_of(const struct weir_state_def *def, int64_t time)
{
	int64_t step = def->ttl_ms / TTL_PARTS;
	return weir_floor_div(time, step > 0 ? step : 1);
}

static void drop(struct weir_gen *g, const struct weir_state_def *def, struct weir_entry *e, uint64_t *at)
{
	for (uint32_t i = 0; i < def->agg_count && def->side_count == 0; i++) {
		const struct weir_agg *a = &def->aggs[i];
		uint32_t ref =
			weir_agg_has_blob(a) ? weir_agg_blob(a, (const uint8_t *)e + def->head_bytes + a->state_at) : 0;
		if (ref == 0)
			continue;
		struct weir_entry *b = (struct weir_entry *)(void *)weir_ref_get(g->pages, ref);
		weir_gen_kill(g, b, weir_blob_bytes(b));
	}
	weir_table_remove(g, def, e, at);
}

void weir_slot_set_expired(struct weir_slot *sl, int64_t task_time)
{
	sl->expired_at = task_time;
}

void weir_slot_expire(struct weir_slot *sl, int64_t task_time)
{
	const struct weir_state_def *def = sl->def;
	int64_t last = sl->expired_at;
	if (def->ttl_ms == 0 || task_time == WEIR_TIME_UNSET)
		return;
	sl->expired_at = task_time;
	if (last == WEIR_TIME_UNSET || part_of(def, last) == part_of(def, task_time))
		return;
	for (uint32_t i = 0; i < sl->gen_count; i++) {
		struct weir_gen *g = sl->gens[i].g;
		for (uint32_t k = 0; g->ix.slot != NULL && k <= g->ix.mask; k++) {
			if (g->ix.slot[k] <= WEIR_INDEX_REMOVED)
				continue;
			struct weir_entry *e = weir_index_entry(g->ix.slot[k]);
			/* One in the change list still has something to say. */
			if ((e->flags & WEIR_ENTRY_CHANGED) != 0 ||
			    ((const struct weir_stamped *)(const void *)e)->time >= task_time - def->ttl_ms)
				continue;
			drop(g, def, e, &g->ix.slot[k]);
		}
	}
}
