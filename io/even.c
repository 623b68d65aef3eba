/* even.c: inputs of a join that are read in step, live: who is waited for, how far a unit goes beside the others, and
 * what is read yet before an order point (feed_private.h). @thread io */
#include "io/feed_private.h"

#include <stdlib.h>

enum {
	EVEN_RECORDS = 1 << 16, /* an order point may have so many more than it would, or so many bytes, to be even */
	EVEN_BYTES = 16 << 20,
	WAIT_STEP_MS = 250 /* a longer time between two looks was nobody's wait: the process stood still */
};

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

/* Whether it has records that are on their way here. */
static bool is_awaited(const struct partition *q)
{
	return q->poll == WEIR_POLL_LATER && !q->rest && !q->bound_told && !q->waited_out;
}

/* Stopping and pausing go on with what is here already. */
static bool is_hurried(const struct weir_feed *fd)
{
	return atomic_load_explicit(&fd->stop, memory_order_relaxed) ||
	       atomic_load_explicit(&fd->paused, memory_order_relaxed);
}

/* After a look that found nothing: whether there were enough of them. */
static bool has_waited(const struct weir_feed *fd, struct patience *pa)
{
	int64_t now = fd->cf.now_us();
	if (pa->seen_us != 0)
		pa->spent_us += weir_min_i64(now - pa->seen_us, WAIT_STEP_MS * 1000);
	pa->seen_us = now;
	return pa->spent_us >= fd->cf.join_ms * 1000;
}

bool weir_even_waits(struct weir_feed *fd, const struct partition *p)
{
	bool behind = false, over = false;
	if (is_hurried(fd))
		return false;
	for (uint32_t i = 0; i < fd->part_count && p->meets; i++) {
		struct partition *q = &fd->part[i];
		if (!q->meets || !is_awaited(q) || (q->turns ? q->last_ts : q->read_ts) >= p->first_ts ||
		    (fd->meets_direct && q->number != p->number))
			continue;
		if (!behind)
			over = has_waited(fd, &fd->wait);
		behind = true;
		q->waited_out = over;
	}
	if (!behind || over)
		fd->wait = (struct patience){0, 0};
	return behind && !over;
}

/* ---- rows that meet a table as it stands at their turn ----
 *
 * What is held for a join is merged by time at the order point. Units are read by where they begin; so one input may
 * have got as far as its unit reaches when an order point is due, and rows that belong before its last ones would miss
 * it. They are brought even first: who has earlier records is read up to there, and a unit that reaches beyond is left
 * for later. So that this takes little, a unit is read no further than the others are known to reach: what has to be
 * read yet is here already, whatever the density of what follows. For what is not (a log that had nothing, or did not
 * say how far its unit goes) the order point may become larger. Live only: on recorded topics order points lie where
 * the records have them. */

/* Up to where those are that p meets. */
static int64_t others_ts(const struct weir_feed *fd, uint32_t p)
{
	const struct weir_plan *pl = fd->cf.plan;
	const struct partition *pt = &fd->part[p];
	int64_t most = INT64_MIN;
	for (uint32_t s = 0; s < pl->scan_count && fd->meets_direct; s++)
		if (s != pt->scan && pt->number < pl->scans[s].partition_count)
			most = weir_max_i64(most, fd->part[pl->scans[s].partition_base + pt->number].sent_ts);
	for (uint32_t q = 0; q < fd->part_count && !fd->meets_direct; q++)
		most = q != p ? weir_max_i64(most, fd->part[q].sent_ts) : most;
	return most;
}

/* An order point is due: how far everybody is to be read, which is as far as those it meets were. */
static void begin_evening(struct weir_feed *fd)
{
	int64_t all = INT64_MIN;
	fd->evening = true;
	fd->cramped = false;
	fd->even_wait = (struct patience){0, 0};
	for (uint32_t p = 0; p < fd->part_count; p++)
		all = weir_max_i64(all, fd->part[p].sent_ts);
	for (uint32_t p = 0; p < fd->part_count; p++)
		fd->part[p].even_ts = fd->meets_direct ? weir_max_i64(fd->part[p].sent_ts, others_ts(fd, p)) : all;
}

bool weir_even_is_behind(const struct weir_feed *fd, uint32_t p)
{
	const struct partition *pt = &fd->part[p];
	if (!pt->turns || pt->even_ts == INT64_MIN)
		return false;
	if (fd->current && fd->current_part == p)
		return weir_unit_ts(fd->current, fd->current_at) <= pt->even_ts;
	if (pt->rest)
		return weir_unit_ts(pt->rest, pt->rest_at) <= pt->even_ts;
	if (pt->bound_told || fd->cramped)
		return false;
	/* Others may have brought something since it was looked at, which was written later than what it has now. */
	return pt->peeked ? pt->first_ts <= pt->even_ts : pt->looked != fd->looks;
}

/* Whether p has records that are not here, and may have to be read yet: of equal times both sides are. */
static bool is_later(const struct weir_feed *fd, uint32_t p)
{
	const struct partition *pt = &fd->part[p];
	int64_t read_ts = weir_max_i64(pt->sent_ts, pt->last_ts);
	if (!pt->turns || pt->even_ts == INT64_MIN || !is_awaited(pt) || pt->peeked || fd->cramped)
		return false;
	return read_ts < pt->even_ts || (read_ts == pt->even_ts && others_ts(fd, p) == read_ts);
}

bool weir_even_must(struct weir_feed *fd)
{
	if (WEIR_LIKELY(!fd->turns))
		return false;
	if (!fd->evening)
		begin_evening(fd);
	if (fd->point_records >= fd->cf.point_records + EVEN_RECORDS ||
	    fd->point_bytes >= fd->cf.point_bytes + EVEN_BYTES)
		return false;
	bool hurried = is_hurried(fd);
	for (uint32_t p = 0; p < fd->part_count; p++)
		if (weir_even_is_behind(fd, p) || (!hurried && is_later(fd, p)))
			return true;
	return false;
}

bool weir_even_look(struct weir_feed *fd)
{
	bool any = false, over = false;
	for (uint32_t p = 0; p < fd->part_count && !is_hurried(fd); p++) {
		if (!is_later(fd, p))
			continue;
		if (!any)
			over = has_waited(fd, &fd->even_wait);
		any = true;
		fd->part[p].waited_out = over;
	}
	if (!any) /* what is read meanwhile is no wait */
		fd->even_wait.seen_us = 0;
	return any && !over;
}

/* Up to what time the records of q are known: they have been read, or are here to be read. INT64_MAX: it has none. */
static int64_t known_ts(const struct weir_feed *fd, const struct partition *q)
{
	const struct weir_stream_log *sl = fd->cf.streams[q->scan];
	if (q->rest)
		return weir_unit_ts(q->rest, q->rest->unit->count - 1);
	if (!q->peeked)
		return is_awaited(q) ? q->last_ts : INT64_MAX;
	return sl->ops->last_ts ? weir_max_i64(q->first_ts, sl->ops->last_ts(sl, q->number)) : INT64_MAX;
}

int64_t weir_even_upto(const struct weir_feed *fd, uint32_t p)
{
	int64_t upto = INT64_MAX;
	for (uint32_t i = 0; i < fd->part_count; i++) {
		const struct partition *q = &fd->part[i];
		if (i != p && q->turns && (!fd->meets_direct || q->number == fd->part[p].number))
			upto = weir_min_i64(upto, known_ts(fd, q));
	}
	return upto;
}

void weir_even_leave(struct weir_feed *fd)
{
	struct partition *pt = &fd->part[fd->current_part];
	if (!pt->turns ||
	    (fd->evening ? weir_even_is_behind(fd, fd->current_part)
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
