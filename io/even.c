/* even.c: inputs of a join that are read in step, live: who is waited for, how far a unit goes beside the others, and
 * what is read yet before an order point (feed_private.h). @thread io */
#include "io/feed_private.h"

#include <stdlib.h>

enum { FEED_EVEN_MAX = 1 << 14 }; /* what others may have to read until they are as far as a unit */

/* Which partitions meet others in a join, now or behind other stages. Global tables are read before all others, and
 * repartition topics follow what is read here. */
void weir_even_find(struct weir_feed *fd)
{
	const struct weir_plan *pl = fd->cf.plan;
	if (!fd->cf.live || fd->cf.join_ms <= 0)
		return;
	bool *meets = weir_xcalloc(pl->stage_count + 1, sizeof *meets);
	bool *turns = weir_xcalloc(pl->stage_count + 1, sizeof *turns);
	fd->meets_direct = true;
	for (uint32_t s = pl->stage_count; s-- > 0;) { /* later stages have larger numbers */
		const struct weir_plan_stage *st = &pl->stages[s];
		meets[s] = st->def.kind == WEIR_STATE_JOIN && st->input_count > 1;
		turns[s] = meets[s] && !st->def.within && !st->def.versioned;
		for (uint32_t i = 0; i < st->branch_count; i++) {
			const struct weir_plan_branch *br = &pl->branches[st->branches[i]];
			meets[s] |= br->to == WEIR_TO_STAGE && meets[br->target];
			turns[s] |= br->to == WEIR_TO_STAGE && turns[br->target];
		}
		fd->meets_direct &= !meets[s] || st->exchange == WEIR_EXCHANGE_DIRECT;
	}
	for (uint32_t p = 0; p < fd->part_count; p++) {
		struct partition *pt = &fd->part[p];
		const struct weir_plan_scan *sc = &pl->scans[pt->scan];
		for (uint32_t i = 0; i < sc->branch_count && !pt->first && sc->repartition < 0; i++) {
			const struct weir_plan_branch *br = &pl->branches[sc->branches[i]];
			pt->meets |= br->to == WEIR_TO_STAGE && meets[br->target];
			pt->turns |= br->to == WEIR_TO_STAGE && turns[br->target];
		}
		fd->turns |= pt->turns;
	}
	free(meets);
	free(turns);
}

/* Whether p, whose turn it is, meets partitions in a join that have earlier records which did not arrive yet. */
bool weir_even_waits(struct weir_feed *fd, const struct partition *p)
{
	bool behind = false;
	int64_t now = 0;
	for (uint32_t i = 0; i < fd->part_count && p->meets; i++) {
		struct partition *q = &fd->part[i];
		if (!q->meets || q->poll != WEIR_POLL_LATER || q->bound_told || q->idle_told || q->waited_out ||
		    q->read_ts >= p->first_ts || (fd->meets_direct && q->number != p->number))
			continue;
		now = now != 0 ? now : fd->cf.now_us();
		if (fd->wait_us == 0)
			fd->wait_us = now;
		q->waited_out = now - fd->wait_us >= fd->cf.join_ms * 1000;
		behind |= !q->waited_out;
	}
	if (!behind)
		fd->wait_us = 0;
	return behind;
}

/* ---- rows that meet a table as it stands at their turn ----
 *
 * What is held for a join is merged by time at the order point. Units are read by where they begin; so one input may
 * have got as far as its unit reaches when an order point is due, and rows that belong before its last ones would miss
 * it. They are brought even first: who has earlier records is read up to there, and a unit that reaches beyond is left
 * for later. Live only: on recorded topics order points lie where the records have them. */

/* An order point is due: how far everybody is to be read, which is as far as those it meets were. */
static void begin_evening(struct weir_feed *fd)
{
	fd->evening = true;
	fd->even_us = fd->cf.now_us();
	int64_t all = INT64_MIN;
	for (uint32_t p = 0; p < fd->part_count; p++)
		all = weir_max_i64(all, fd->part[p].sent_ts);
	for (uint32_t p = 0; p < fd->part_count; p++) {
		struct partition *pt = &fd->part[p];
		pt->even_ts = fd->meets_direct ? pt->sent_ts : all;
		for (uint32_t k = 0; k < fd->part_count && fd->meets_direct; k++)
			if (fd->part[k].number == pt->number)
				pt->even_ts = weir_max_i64(pt->even_ts, fd->part[k].sent_ts);
	}
}

/* Whether it has records that are on their way here. */
static bool is_awaited(const struct partition *pt)
{
	return pt->poll == WEIR_POLL_LATER && !pt->rest && !pt->bound_told && !pt->idle_told && !pt->waited_out;
}

/* Whether p has records from before the time it is to be read to, or may have. */
bool weir_even_is_uneven(const struct weir_feed *fd, uint32_t p)
{
	const struct partition *pt = &fd->part[p];
	if (!pt->turns || pt->even_ts == INT64_MIN)
		return false;
	if (fd->current && fd->current_part == p)
		return weir_unit_ts(fd->current, fd->current_at) <= pt->even_ts;
	if (pt->rest)
		return weir_unit_ts(pt->rest, pt->rest_at) <= pt->even_ts;
	if (pt->bound_told || pt->idle_told)
		return false;
	if (pt->poll == WEIR_POLL_UNIT)
		return !pt->peeked || pt->first_ts <= pt->even_ts;
	return is_awaited(pt) && weir_max_i64(pt->sent_ts, pt->read_ts) < pt->even_ts;
}

/* Whether the order point that is due has to wait for that; at most join_ms. */
bool weir_even_must(struct weir_feed *fd)
{
	bool uneven = false;
	if (WEIR_LIKELY(!fd->turns))
		return false;
	if (!fd->evening)
		begin_evening(fd);
	bool over = fd->cf.now_us() - fd->even_us >= fd->cf.join_ms * 1000 ||
		    atomic_load_explicit(&fd->paused, memory_order_relaxed);
	for (uint32_t p = 0; p < fd->part_count && !(uneven && !over); p++)
		if (weir_even_is_uneven(fd, p)) {
			uneven = true;
			fd->part[p].waited_out |= over && fd->part[p].poll == WEIR_POLL_LATER;
		}
	return uneven && !over;
}

/* What is known of the records that a partition has next: how many, and the time of the last one. */
static uint32_t head_of(const struct weir_feed *fd, const struct partition *pt, int64_t *last_ts)
{
	struct weir_stream_log *sl = fd->cf.streams[pt->scan];
	if (!pt->rest)
		return pt->peeked && sl->ops->head ? sl->ops->head(sl, pt->number, last_ts) : 0;
	*last_ts = weir_unit_ts(pt->rest, pt->rest->unit->count - 1);
	return pt->rest->unit->count - pt->rest_at;
}

/* How far the current unit goes for now: where one that is sparse reaches over a stretch of time in which others are
 * dense, these could not come even within an order point. */
int64_t weir_even_upto(const struct weir_feed *fd, uint32_t p)
{
	const struct weir_unit *u = fd->current->unit;
	int64_t last = u->count != 0 ? u->records[u->count - 1].timestamp : 0, nearest = INT64_MAX;
	uint64_t behind = 0;
	for (uint32_t i = 0; i < fd->part_count && u->count != 0; i++) {
		const struct partition *q = &fd->part[i];
		if (i == p || !q->turns || (fd->meets_direct && q->number != fd->part[p].number))
			continue;
		int64_t q_last = INT64_MAX;
		uint32_t count = head_of(fd, q, &q_last);
		if (count == 0 && is_awaited(q) && q->last_ts < last) { /* how dense they are nobody knows */
			behind += FEED_EVEN_MAX + 1;
			nearest = q->last_ts < nearest ? q->last_ts : nearest;
		}
		if (count == 0 || q_last >= last)
			continue;
		int64_t span = weir_max_i64(q_last - q->first_ts, 1);
		behind += (uint64_t)((double)(last - q_last) / (double)span * count);
		nearest = q_last < nearest ? q_last : nearest;
	}
	return behind > FEED_EVEN_MAX ? nearest : INT64_MAX;
}

/* Leaves the unit being cut for later, where the others are not there yet. */
void weir_even_leave(struct weir_feed *fd)
{
	struct partition *pt = &fd->part[fd->current_part];
	if (!pt->turns ||
	    (fd->evening ? weir_even_is_uneven(fd, fd->current_part)
			 : fd->current_at == fd->opened_at || weir_unit_ts(fd->current, fd->current_at) <= pt->upto_ts))
		return;
	pt->rest = fd->current;
	pt->rest_at = fd->current_at;
	fd->current = NULL;
}

bool weir_even_has_rest(const struct weir_feed *fd)
{
	for (uint32_t p = 0; p < fd->part_count && fd->turns; p++)
		if (fd->part[p].rest)
			return true;
	return false;
}
