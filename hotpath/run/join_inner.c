/* join_inner.c: inner joins of two streams, the usual kind (join.h). @thread worker
 *
 *   hold    a row --> its record in the join's buffer, where it stays; look-ups do not see it yet
 *   turn    other side's records of its key --> results; now look-ups see it
 *
 * Where rows of a slot come one batch after the other they lie in sheets instead: join_sheets.c.
 *
 * So a row is packed once and never moved. One that proves late at its turn leaves a hole in its page; one that is late
 * already when it comes, and one whose key is NULL, is an item and nothing else. */
#include "hotpath/run/join_private.h"

#include "hotpath/core/hash.h"

/* Cost: about 80 instructions and what packing takes. */
uint64_t weir_join_hold_inner(struct weir_join *jn, struct weir_join_place *pc, const struct weir_keyed *keyed,
			      uint32_t row, uint32_t fixed, bool null_key)
{
	const struct weir_state_def *def = jn->def;
	uint32_t slot = keyed->slot[row], col_count = def->sides[pc->side].col_count;
	uint32_t key_bytes = keyed->key_bytes[row];
	int64_t time = keyed->time[row];
	/* Task time never falls: what is late now will be late at its turn. */
	if (WEIR_UNLIKELY(weir_join_is_late(def, time, jn->task_before[weir_join_is_direct(jn) ? slot : 0])))
		return WEIR_JOIN_LATE;
	if (WEIR_UNLIKELY(null_key))
		return WEIR_JOIN_NULL_KEY;
	struct weir_slot *sl = jn->w->slots[jn->stage][slot];
	if (pc->sl != sl) {
		weir_join_place_close(pc);
		pc->sl = sl;
	}
	uint64_t hash = keyed->hash[row];
	uint64_t row_bytes = fixed ? weir_row_bytes_plain(keyed->cols, col_count, row, fixed)
				   : weir_row_bytes(keyed->cols, col_count, row);
	uint8_t *key;
	uint64_t place = weir_join_place_take(pc, time, hash, key_bytes, (uint32_t)row_bytes, &key);
	weir_copy_short(key, keyed->key[row], key_bytes);
	if (fixed)
		(void)weir_row_pack_plain(keyed->cols, col_count, row, key + key_bytes);
	else
		(void)weir_row_pack(keyed->cols, col_count, row, key + key_bytes);
	return place;
}

static bool may_be_late(const struct weir_join *jn, const struct weir_keyed *keyed, const uint16_t *rows,
			uint32_t count)
{
	int64_t low = INT64_MAX;
	for (uint32_t i = 0; i < count; i++)
		low = weir_min_i64(low, keyed->time[rows[i]]);
	return weir_join_is_late(jn->def, low, jn->task_before_max);
}

/* Records that have their room, but neither key nor row yet. In two steps, since one loop would hold more than the CPU
 * has registers for; as many as stay in the nearest cache between them. */
enum { LAID = 256 };
struct laid {
	uint32_t count;
	uint16_t row[LAID];
	uint8_t *key[LAID];
};

/* Cost: about 15 instructions a row and what packing takes. */
static void fill(struct laid *la, const struct weir_keyed *keyed, uint32_t col_count)
{
	for (uint32_t i = 0; i < la->count; i++) {
		uint32_t row = la->row[i], key_bytes = keyed->key_bytes[row];
		const uint8_t *key = keyed->key[row];
		uint8_t *to = la->key[i];
		for (uint32_t at = 0; at < key_bytes; at += 8) /* both may be read, and written, so far */
			weir_store_le64(to + at, weir_load_le64(key + at));
		(void)weir_row_pack_plain(keyed->cols, col_count, row, to + key_bytes);
	}
	la->count = 0;
}

/* Cost: about 45 instructions a row and what filling takes. */
bool weir_join_hold_inner_all(struct weir_join *jn, struct weir_join_place *pc, const struct weir_keyed *keyed,
			      const uint16_t *rows, uint32_t count, const uint16_t *order, uint32_t fixed,
			      struct item *it)
{
	uint32_t col_count = jn->def->sides[pc->side].col_count, bytes[WEIR_BATCH_ROWS];
	struct weir_slot *const *slots = jn->w->slots[jn->stage];
	struct laid la;
	la.count = 0;
	if (may_be_late(jn, keyed, rows, count))
		return false;
	weir_row_bytes_plain_many(keyed->cols, col_count, rows, count, fixed, bytes);
	for (uint32_t n = 0; n < count;) {
		uint32_t slot = keyed->slot[rows[order[n]]], end = jn->slot_at[slot];
		struct weir_join_place at = {.side = pc->side};
		weir_join_place_open(&at, slots[slot], keyed->time[rows[order[n]]]);
		for (; n < end; n++) {
			uint32_t i = order[n], row = rows[i];
			int64_t time = keyed->time[row];
			uint64_t hash = keyed->hash[row];
			uint64_t place = weir_join_place_take(&at, time, hash, keyed->key_bytes[row], bytes[i],
							      &la.key[la.count]);
			it[i] = (struct item){time, place, weir_hash_index(hash), slot};
			la.row[la.count++] = (uint16_t)row;
			if (WEIR_UNLIKELY(la.count == LAID))
				fill(&la, keyed, col_count);
		}
		weir_join_place_close(&at);
	}
	fill(&la, keyed, col_count);
	return true;
}

/* Results of pairs, from the first on, whose both records are of sheets; returns how many. Own ones that are, are all
 * of one (weir_join_look_sheet). Cost: about 22 instructions. */
static uint32_t put_plain(struct weir_join *jn, uint32_t count)
{
	struct weir_rows *to = jn->out;
	const struct weir_join_pair *pr = jn->pairs;
	const uint32_t side = pr[0].side;
	size_t n = 0;
	if (count == 0 || !weir_buffered_is_stub(pr[0].own) || !weir_buffered_is_stub(pr[0].other))
		return 0;
	if (jn->plain_first + jn->plain_count != to->count) {
		if (jn->plain_count != 0)
			weir_join_write_plain(jn);
		jn->plain_first = to->count;
	}
	const uint8_t *sheet = (const uint8_t *)weir_stub_sheet(weir_buffered_stub(pr[0].own));
	const uint8_t **own = jn->plain[side] + jn->plain_count, **other = jn->plain[1 - side] + jn->plain_count;
	int64_t *time = to->time + to->count;
#pragma GCC unroll 4
	for (; n < count; n++) {
		const struct weir_stub *mine = weir_buffered_stub(pr[n].own), *met = weir_buffered_stub(pr[n].other);
		WEIR_DASSERT((const uint8_t *)weir_stub_sheet(mine) == sheet && pr[n].side == side);
		if (WEIR_UNLIKELY(!weir_buffered_is_stub(pr[n].other)))
			break;
		own[n] = sheet + mine->at + mine->key_bytes;
		other[n] = weir_stub_key(met) + met->key_bytes;
		time[n] = pr[n].time;
	}
	for (uint32_t i = 0; i < n && jn->has_stage_branch; i++)
		jn->out_bytes += (uint64_t)weir_buffered_row_bytes(pr[i].own) + weir_buffered_row_bytes(pr[i].other);
	for (uint32_t i = 0; i < n && jn->reads_keys; i++)
		weir_join_put_key(jn, weir_stub_key(weir_buffered_stub(pr[i].own)), pr[i].own->e.key_bytes,
				  to->count + i);
	jn->plain_count += (uint32_t)n;
	to->count += (uint32_t)n;
	return (uint32_t)n;
}

/* key_at: weir_def_key_at. */
WEIR_INLINE struct weir_packed packed_row(const struct weir_state_def *def, const struct weir_buffered *bf,
					  uint32_t key_at)
{
	uint32_t key_bytes = bf->e.key_bytes;
	if (WEIR_LIKELY(!weir_buffered_is_stub(bf) && key_bytes != WEIR_KEY_LONG))
		return (struct weir_packed){(const uint8_t *)bf + key_at + key_bytes, bf->row_bytes};
	const uint8_t *key = weir_buffered_key(def, bf, &key_bytes);
	return (struct weir_packed){key + key_bytes, weir_buffered_row_bytes(bf)};
}

/* Results of any pairs. Cost: about 45 instructions. */
static void put_any(struct weir_join *jn, const struct weir_join_pair *pr, uint32_t count)
{
	const struct weir_state_def *def = jn->def;
	struct weir_rows *to = jn->out;
	const uint32_t key_at = weir_def_key_at(def), first = to->count;
	struct weir_packed *packed[2] = {jn->packed[0] + jn->later_count, jn->packed[1] + jn->later_count};
	uint16_t *later = jn->later + jn->later_count;
	for (uint32_t i = 0; i < count; i++) {
		packed[pr[i].side][i] = packed_row(def, pr[i].own, key_at);
		packed[1 - pr[i].side][i] = packed_row(def, pr[i].other, key_at);
		to->time[first + i] = pr[i].time;
	}
	for (uint32_t i = 0; i < count; i++)
		later[i] = (uint16_t)(first + i);
	for (uint32_t i = 0; i < count && jn->reads_keys; i++) {
		uint32_t key_bytes;
		const uint8_t *key = weir_buffered_key(def, pr[i].own, &key_bytes);
		weir_join_put_key(jn, key, key_bytes, first + i);
	}
	for (uint32_t i = 0; i < count && jn->has_stage_branch; i++)
		jn->out_bytes += (uint64_t)packed[0][i].bytes + packed[1][i].bytes;
	memset(to->op + first, WEIR_OP_INSERT, count);
	memset(to->entry + first, 0, count * sizeof *to->entry);
	to->count += count;
	jn->later_count += count;
}

/* Results, their columns to be written when they are handed on. */
void weir_join_put_pairs(struct weir_join *jn, uint32_t count)
{
	uint32_t plain = put_plain(jn, count);
	if (plain != count)
		put_any(jn, jn->pairs + plain, count - plain);
}

/* Takes out of what has been found for t what is late by the exact task time. False: nothing is left. */
static bool drop_late(struct weir_join *jn, const struct weir_join_turn *t, int64_t oldest)
{
	struct weir_join_found *found = (struct weir_join_found *)(void *)jn->found.data;
	uint32_t n = (uint32_t)(jn->found.bytes / sizeof *found), kept = 0;
	for (uint32_t i = 0; i < n; i++)
		if (found[i].time >= oldest || !weir_join_is_late(jn->def, found[i].time, weir_join_task_at(jn, t)))
			found[kept++] = found[i];
	jn->found.bytes = kept * sizeof *found;
	return kept != 0;
}

void weir_join_look_closer(struct weir_join *jn, struct weir_slot *sl, const struct weir_join_turn *t)
{
	struct weir_counters *now = jn->w->st->now;
	/* Task times are only asked for where they could decide anything: something may be late. */
	int64_t oldest = jn->task_max - weir_join_keep_ms(jn->def);
	int64_t task = t->time < oldest ? weir_join_task_at(jn, t) : WEIR_TIME_UNSET;
	if (t->time < oldest && weir_join_is_late(jn->def, t->time, task)) {
		now->late++;
		now->by_reason[WEIR_REASON_LATE]++;
		if (t->row >= WEIR_JOIN_NO_ROWS)
			weir_join_buffer_refuse(sl, t);
		return;
	}
	if (t->row == WEIR_JOIN_NULL_KEY) {
		now->filtered++;
		return;
	}
	now->applied++;
	sl->records++;
	jn->found.bytes = 0;
	jn->found_at = 0;
	if (!weir_join_buffer_enter(sl, t, task, &jn->found) || !drop_late(jn, t, oldest))
		return;
	const struct weir_join_found own = {weir_join_turn_record(sl, t), t->time};
	weir_join_buffer_get(jn->def, &own, &jn->meeting.r);
	jn->meeting.side = (uint8_t)weir_join_turn_side(t);
	jn->current = &jn->meeting;
}

bool weir_join_run_inner(struct weir_join *jn, struct weir_bundle *b, struct weir_slot *sl)
{
	const struct weir_join_turn *asked = NULL;
	for (;;) {
		if (jn->current && !weir_join_put_found(jn, b, sl))
			return false;
		if (jn->at == jn->end)
			return true;
		if (!weir_join_room(jn, b, sl->number))
			return false;
		/* Rows that others copy are handed on when they are large: as many as surely fit. */
		uint32_t room = WEIR_BATCH_ROWS - jn->out->count;
		if (jn->has_stage_branch && room > 32)
			room = 32;
		struct weir_join_meeting mt = {.next = jn->sorted + jn->at,
					       .end = jn->sorted + jn->end,
					       .asked = asked,
					       .task_max = jn->task_max,
					       .pairs = jn->pairs,
					       .room = room};
		bool closer = weir_join_meet(sl, &mt);
		asked = mt.asked;
		uint64_t met = (uint64_t)(mt.next - (jn->sorted + jn->at));
		jn->at += (uint32_t)met;
		sl->records += met;
		jn->w->st->now->applied += met;
		weir_join_put_pairs(jn, mt.count);
		if (closer)
			weir_join_look_closer(jn, sl, &jn->sorted[jn->at++]);
	}
}
