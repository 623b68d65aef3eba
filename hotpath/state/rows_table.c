/* rows_table.c: tables as they are read from a topic: the latest row of each key in a blob of its entry, and one
 * generation that never closes. A delete leaves the entry where it is, as GONE, until the change list has been read:
 * a row that comes back meanwhile is an update. @thread worker. */
#include "hotpath/core/hash.h"
#include "hotpath/state/row.h"
#include "hotpath/state/slot.h"

void weir_table_set(struct weir_gen *g, const struct weir_state_def *def, struct weir_entry *e, const void *row,
		    uint32_t bytes)
{
	weir_text_set(g, weir_table_text(def, e), row, bytes);
}

void weir_table_remove(struct weir_gen *g, const struct weir_state_def *def, struct weir_entry *e, uint64_t *at)
{
	struct weir_text *t = def->side_count != 0 ? weir_table_text(def, e) : NULL;
	if (t != NULL && t->ref != 0) {
		struct weir_entry *b = (struct weir_entry *)(void *)weir_ref_get(g->pages, t->ref);
		weir_gen_kill(g, b, weir_blob_bytes(b));
		*t = (struct weir_text){0};
	}
	weir_index_store(at, WEIR_INDEX_REMOVED);
	g->entries--;
	weir_gen_kill(g, e, weir_entry_bytes(def, e));
}

static void note_row(struct weir_slot *sl, struct weir_gen *g, struct weir_entry *e, int64_t time)
{
	((struct weir_stamped *)(void *)e)->time = time;
	weir_gen_mark(g, e);
	if ((e->flags & WEIR_ENTRY_CHANGED) == 0)
		weir_slot_note_change(sl, g, e);
}

/* Asks for the lines that rows [from, to) will touch: index lines, then those of the entries they lead to. */
static void rows_prefetch(struct weir_slot *const *slots, const struct weir_keyed *in, const uint16_t *rows,
			  uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		const struct weir_index *ix = &weir_slot_only_gen(slots[in->slot[rows[i]]])->ix;
		__builtin_prefetch(&ix->slot[weir_index_home(ix, weir_hash_index(in->hash[rows[i]]))], 0, 3);
	}
	for (uint32_t i = from; i < to; i++) {
		const struct weir_index *ix = &weir_slot_only_gen(slots[in->slot[rows[i]]])->ix;
		struct weir_entry *e = weir_index_guess(ix, in->hash[rows[i]]);
		__builtin_prefetch(e, 1, 3);
	}
}

/* Whether a newer row of the key is there: rows of one key may come from several slots (foreign.h). */
static bool is_stale(const struct weir_state_def *def, const struct weir_slot *sl, const struct weir_keyed *in,
		     uint32_t row)
{
	const struct weir_gen *g = weir_slot_only_gen(sl);
	uint64_t *free_slot;
	const uint64_t *at = weir_index_find(&g->ix, def, in->hash[row], in->key[row], in->key_bytes[row], &free_slot);
	if (at == NULL)
		return false;
	const struct weir_text *t = weir_table_text(def, weir_index_entry(*at));
	const struct weir_col *c = in->cols[0];
	int64_t there = (int64_t)weir_load_le64(weir_text_data(&sl->pages, t) + (def->sides[0].col_count + 7) / 8);
	return there > c->i64[c->is_const ? 0 : row];
}

static struct weir_entry *rows_put(const struct weir_state_def *def, struct weir_slot *sl, const struct weir_keyed *in,
				   uint32_t row)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	uint8_t small[1024], *packed = small;
	uint64_t bytes = weir_row_bytes(in->cols, def->sides[0].col_count, row);
	struct weir_buf large = {0};
	if (bytes > sizeof small) {
		weir_buf_room(&large, bytes);
		packed = large.data;
	}
	(void)weir_row_pack(in->cols, def->sides[0].col_count, row, packed);
	struct weir_entry *e = weir_gen_find_or_create(g, def, in->hash[row], in->key[row], in->key_bytes[row]);
	e->flags &= (uint8_t)~WEIR_ENTRY_GONE;
	weir_table_set(g, def, e, packed, (uint32_t)bytes);
	note_row(sl, g, e, in->time[row]);
	weir_buf_fini(&large);
	return e;
}

static void rows_delete(const struct weir_state_def *def, struct weir_slot *sl, const struct weir_keyed *in,
			uint32_t row)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	uint64_t *free_slot;
	uint64_t *at = weir_index_find(&g->ix, def, in->hash[row], in->key[row], in->key_bytes[row], &free_slot);
	if (at == NULL) {
		/* What feeds a numbered state may have shown the key in another order of its slots' rows. */
		if (sl->in_doubt && def->numbered)
			rows_put(def, sl, in, row)->flags |= WEIR_ENTRY_GONE;
		return;
	}
	struct weir_entry *e = weir_index_entry(*at);
	e->flags |= WEIR_ENTRY_GONE;
	note_row(sl, g, e, in->time[row]);
}

bool weir_rows_put_stale(struct weir_slot *sl, const struct weir_keyed *in, uint32_t row, struct weir_buf *was,
			 int64_t *time)
{
	const struct weir_state_def *def = sl->def;
	uint64_t *free_slot;
	if (!sl->in_doubt || (in->deletes != NULL && in->deletes[row]) || !is_stale(def, sl, in, row))
		return false;
	const uint64_t *at = weir_index_find(&weir_slot_only_gen(sl)->ix, def, in->hash[row], in->key[row],
					     in->key_bytes[row], &free_slot);
	const struct weir_entry *e = weir_index_entry(*at);
	const struct weir_text *t = weir_table_text(def, e);
	weir_buf_put(was, weir_text_data(&sl->pages, t), t->bytes);
	*time = ((const struct weir_stamped *)(const void *)e)->time;
	(void)rows_put(def, sl, in, row);
	return true;
}

void weir_rows_put_back(struct weir_slot *sl, const struct weir_keyed *in, uint32_t row, const struct weir_buf *was,
			int64_t time)
{
	struct weir_gen *g = weir_slot_only_gen(sl);
	struct weir_entry *e = weir_gen_find_or_create(g, sl->def, in->hash[row], in->key[row], in->key_bytes[row]);
	weir_table_set(g, sl->def, e, was->data, (uint32_t)was->bytes);
	note_row(sl, g, e, time);
}

void weir_rows_apply(const struct weir_state_def *def, struct weir_slot *const *slots, const struct weir_keyed *in,
		     const uint16_t *rows, uint32_t count, struct weir_applied *out)
{
	for (uint32_t i = 0; i < count; i++) {
		enum { AHEAD = 64 };
		if (i % AHEAD == 0)
			rows_prefetch(slots, in, rows, i, i + AHEAD < count ? i + AHEAD : count);
		uint16_t row = rows[i];
		struct weir_slot *sl = slots[in->slot[row]];
		sl->records++;
		if (def->numbered && is_stale(def, sl, in, row))
			continue;
		if (in->deletes != NULL && in->deletes[row])
			rows_delete(def, sl, in, row);
		else
			(void)rows_put(def, sl, in, row);
	}
	out->applied = count;
}

void weir_rows_forget(struct weir_slot *sl, struct weir_entry *e)
{
	uint32_t n;
	uint64_t *free_slot;
	if ((e->flags & (WEIR_ENTRY_GONE | WEIR_ENTRY_CHANGED)) != WEIR_ENTRY_GONE)
		return;
	struct weir_gen *g = weir_slot_only_gen(sl);
	const uint8_t *key = weir_entry_key(sl->def, e, &n);
	uint64_t *at = weir_index_find(&g->ix, sl->def, weir_hash(key, n), key, n, &free_slot);
	WEIR_DASSERT(at != NULL && weir_index_entry(*at) == e);
	e->flags &= (uint8_t)~WEIR_ENTRY_GONE;
	weir_table_remove(g, sl->def, e, at);
}
