/* clock.c: the minimum over partitions and upstream slots (clock.h). @thread worker
 *
 * Everything is recomputed from the inputs' times, O(partitions) a fragment of up to 1024 records: with the partitions
 * of a usual topic that is far below a nanosecond a record, and there is no cached minimum to go stale. */
#include "hotpath/run/clock.h"

#include <stdlib.h>

struct stage_times {
	int64_t task;       /* local stages: one for all slots */
	int64_t *slot_task; /* direct stages: one a slot; else NULL */
};

struct up_times {
	int64_t *time; /* per upstream slot; NULL: the branch does not come from a stage */
	bool *out;
	uint32_t count;
};

/* A partition of a repartition topic: its upstream slots as its records tell them. */
struct upstream_times {
	int64_t *time; /* per upstream slot; NULL: an ordinary partition */
	uint8_t *flags;
	uint32_t count;
	int64_t now;   /* the minimum, never going back */
	uint32_t last; /* who holds it */
};

struct weir_times {
	const struct weir_plan *pl;
	int64_t *part;
	bool *out;   /* idle or at its bound */
	bool *bound; /* at its bound */
	struct stage_times *stage;
	struct up_times *up;             /* per branch */
	struct upstream_times *upstream; /* per partition */
};

struct weir_times *weir_times_create(const struct weir_plan *pl)
{
	struct weir_times *tm = weir_xcalloc(1, sizeof *tm);
	tm->pl = pl;
	tm->part = weir_xcalloc(pl->partition_count + 1, sizeof *tm->part);
	tm->out = weir_xcalloc(pl->partition_count + 1, sizeof *tm->out);
	tm->bound = weir_xcalloc(pl->partition_count + 1, sizeof *tm->bound);
	tm->stage = weir_xcalloc(pl->stage_count + 1, sizeof *tm->stage);
	tm->up = weir_xcalloc(pl->branch_count + 1, sizeof *tm->up);
	tm->upstream = weir_xcalloc(pl->partition_count + 1, sizeof *tm->upstream);
	for (uint32_t r = 0; r < pl->repartition_count; r++) {
		const struct weir_plan_scan *sc = &pl->scans[pl->repartitions[r].scan];
		for (uint32_t p = 0; p < sc->partition_count; p++) {
			struct upstream_times *us = &tm->upstream[sc->partition_base + p];
			us->count = pl->repartitions[r].upstream_count;
			us->time = weir_xcalloc(us->count + 1, sizeof *us->time);
			us->flags = weir_xcalloc(us->count + 1, sizeof *us->flags);
			us->now = WEIR_TIME_UNSET;
			for (uint32_t k = 0; k < us->count; k++)
				us->time[k] = WEIR_TIME_UNSET;
		}
	}
	for (uint32_t p = 0; p < pl->partition_count; p++)
		tm->part[p] = WEIR_TIME_UNSET;
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		const struct weir_plan_stage *st = &pl->stages[s];
		tm->stage[s].task = WEIR_TIME_UNSET;
		if (st->exchange == WEIR_EXCHANGE_DIRECT) {
			tm->stage[s].slot_task = weir_xcalloc(st->slot_count, sizeof(int64_t));
			for (uint32_t k = 0; k < st->slot_count; k++)
				tm->stage[s].slot_task[k] = WEIR_TIME_UNSET;
		}
	}
	for (uint32_t b = 0; b < pl->branch_count; b++) {
		const struct weir_plan_branch *br = &pl->branches[b];
		if (br->from != WEIR_FROM_STAGE || br->to != WEIR_TO_STAGE)
			continue;
		struct up_times *up = &tm->up[b];
		up->count = pl->stages[br->origin].slot_count;
		up->time = weir_xcalloc(up->count, sizeof *up->time);
		up->out = weir_xcalloc(up->count, sizeof *up->out);
		for (uint32_t k = 0; k < up->count; k++)
			up->time[k] = WEIR_TIME_UNSET;
	}
	return tm;
}

void weir_times_destroy(struct weir_times *tm)
{
	if (!tm)
		return;
	for (uint32_t s = 0; s < tm->pl->stage_count; s++)
		free(tm->stage[s].slot_task);
	for (uint32_t b = 0; b < tm->pl->branch_count; b++) {
		free(tm->up[b].time);
		free(tm->up[b].out);
	}
	free(tm->part);
	free(tm->out);
	free(tm->bound);
	free(tm->stage);
	free(tm->up);
	for (uint32_t p = 0; p < tm->pl->partition_count; p++) {
		free(tm->upstream[p].time);
		free(tm->upstream[p].flags);
	}
	free(tm->upstream);
	free(tm);
}

static int64_t *task_at(const struct weir_times *tm, uint32_t stage, uint32_t slot)
{
	struct stage_times *st = &tm->stage[stage];
	return st->slot_task ? &st->slot_task[slot] : &st->task;
}

/* Minimum (or, with task.time=max, maximum) over what feeds (stage, slot) and still counts, without partition skip_part
 * and without upstream slot skip_from of skip_branch. INT64_MAX (max: UNSET) if nothing counts. */
static int64_t fold(const struct weir_times *tm, uint32_t stage, uint32_t slot, uint32_t skip_part,
		    uint32_t skip_branch, uint32_t skip_from)
{
	const struct weir_plan *pl = tm->pl;
	const struct weir_plan_stage *st = &pl->stages[stage];
	bool max = st->def.time_max;
	int64_t low = INT64_MAX, high = WEIR_TIME_UNSET;
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
		if (br->from == WEIR_FROM_STAGE) {
			const struct up_times *up = &tm->up[st->inputs[i]];
			for (uint32_t k = 0; k < up->count; k++) {
				if (up->out[k] || (st->inputs[i] == skip_branch && k == skip_from))
					continue;
				low = weir_min_i64(low, up->time[k]);
				high = weir_max_i64(high, up->time[k]);
			}
			continue;
		}
		if (br->global)
			continue;
		const struct weir_plan_scan *sc = &pl->scans[br->origin];
		uint32_t from = sc->partition_base, to = from + sc->partition_count;
		if (st->exchange == WEIR_EXCHANGE_DIRECT) {
			from += slot;
			to = from + 1;
		}
		for (uint32_t p = from; p < to; p++) {
			if (tm->out[p] || p == skip_part)
				continue;
			low = weir_min_i64(low, tm->part[p]);
			high = weir_max_i64(high, tm->part[p]);
		}
	}
	return max ? high : low;
}

struct weir_clock weir_times_clock(const struct weir_times *tm, uint32_t stage, uint32_t slot, uint32_t part)
{
	return (struct weir_clock){.before = *task_at(tm, stage, slot),
				   .others = fold(tm, stage, slot, part, UINT32_MAX, 0),
				   .part = tm->part[part]};
}

struct weir_clock weir_times_clock_up(const struct weir_times *tm, uint32_t stage, uint32_t branch, uint32_t from)
{
	return (struct weir_clock){.before = *task_at(tm, stage, 0),
				   .others = fold(tm, stage, 0, UINT32_MAX, branch, from),
				   .part = tm->up[branch].time[from]};
}

/* The largest time seen by anything that feeds (stage, slot), idle or not: what counts once everything is idle. */
static int64_t largest(const struct weir_times *tm, uint32_t stage, uint32_t slot)
{
	const struct weir_plan *pl = tm->pl;
	const struct weir_plan_stage *st = &pl->stages[stage];
	int64_t high = WEIR_TIME_UNSET;
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
		if (br->from == WEIR_FROM_STAGE) {
			const struct up_times *up = &tm->up[st->inputs[i]];
			for (uint32_t k = 0; k < up->count; k++)
				high = weir_max_i64(high, up->time[k]);
			continue;
		}
		if (br->global)
			continue;
		const struct weir_plan_scan *sc = &pl->scans[br->origin];
		bool direct = st->exchange == WEIR_EXCHANGE_DIRECT;
		for (uint32_t p = direct ? slot : 0; p < (direct ? slot + 1 : sc->partition_count); p++)
			high = weir_max_i64(high, tm->part[sc->partition_base + p]);
	}
	return high;
}

static void refresh_slot(struct weir_times *tm, uint32_t stage, uint32_t slot)
{
	int64_t now = fold(tm, stage, slot, UINT32_MAX, UINT32_MAX, 0);
	int64_t *task = task_at(tm, stage, slot);
	if (now == INT64_MAX)
		now = largest(tm, stage, slot);
	if (now > *task)
		*task = now;
}

void weir_times_refresh(struct weir_times *tm, uint32_t stage)
{
	const struct weir_plan_stage *st = &tm->pl->stages[stage];
	if (st->exchange != WEIR_EXCHANGE_DIRECT) {
		refresh_slot(tm, stage, 0);
		return;
	}
	for (uint32_t k = 0; k < st->slot_count; k++)
		refresh_slot(tm, stage, k);
}

void weir_times_advance(struct weir_times *tm, uint32_t scan, uint32_t part, int64_t time_max)
{
	const struct weir_plan *pl = tm->pl;
	if (time_max > tm->part[part])
		tm->part[part] = time_max;
	for (uint32_t i = 0; i < pl->scans[scan].branch_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[pl->scans[scan].branches[i]];
		if (br->to == WEIR_TO_STAGE && !br->global)
			refresh_slot(tm, br->target, part - pl->scans[scan].partition_base);
	}
}

void weir_times_advance_up(struct weir_times *tm, uint32_t branch, uint32_t from, int64_t stage_time, bool out)
{
	struct up_times *up = &tm->up[branch];
	if (stage_time > up->time[from])
		up->time[from] = stage_time;
	up->out[from] = out;
	refresh_slot(tm, tm->pl->branches[branch].target, 0);
}

int64_t weir_times_upstream(struct weir_times *tm, uint32_t part, uint32_t from, int64_t time, uint32_t flags)
{
	struct upstream_times *us = &tm->upstream[part];
	if (from >= us->count)
		return us->now; /* written by a larger topology: its slots do not feed this one */
	bool flagged = flags != us->flags[from];
	bool moved = time > us->time[from] || flagged;
	if (time > us->time[from])
		us->time[from] = time;
	us->flags[from] = (uint8_t)flags;
	/* Others hold the minimum still, unless one that counts had to be waited for. */
	if (!moved || (from != us->last && us->now != WEIR_TIME_UNSET && !flagged))
		return us->now;
	int64_t low = INT64_MAX, high = WEIR_TIME_UNSET;
	bool bound = true;
	for (uint32_t k = 0; k < us->count; k++) {
		high = weir_max_i64(high, us->time[k]);
		bound &= (us->flags[k] & WEIR_UPSTREAM_BOUND) != 0;
		if ((us->flags[k] & WEIR_UPSTREAM_OUT) != 0 || us->time[k] >= low)
			continue;
		low = us->time[k];
		us->last = k;
	}
	tm->bound[part] = bound;
	tm->out[part] = low == INT64_MAX;
	us->now = weir_max_i64(us->now, low == INT64_MAX ? high : low);
	return us->now;
}

uint32_t weir_times_part_flags(const struct weir_times *tm, uint32_t part)
{
	return (tm->out[part] ? WEIR_UPSTREAM_OUT : 0) | (tm->bound[part] ? WEIR_UPSTREAM_BOUND : 0);
}

void weir_times_event(struct weir_times *tm, uint32_t part, enum weir_event event)
{
	/* Whether a repartition topic is idle say its upstream slots: a quiet one may wait for an instance that
	 * restores. */
	if (tm->upstream[part].time && event != WEIR_EVENT_BOUND)
		return;
	tm->out[part] = event != WEIR_EVENT_BACK;
	tm->bound[part] = event == WEIR_EVENT_BOUND;
}

void weir_times_advance_by(struct weir_times *tm, int64_t ms)
{
	for (uint32_t p = 0; p < tm->pl->partition_count; p++)
		if (tm->part[p] != WEIR_TIME_UNSET)
			tm->part[p] += ms;
}

void weir_times_advance_all(struct weir_times *tm, int64_t ms)
{
	for (uint32_t p = 0; p < tm->pl->partition_count; p++)
		if (tm->part[p] < ms)
			tm->part[p] = ms;
}

int64_t weir_times_task(const struct weir_times *tm, uint32_t stage, uint32_t slot)
{
	return *task_at(tm, stage, slot);
}

void weir_times_raise(struct weir_times *tm, uint32_t stage, uint32_t slot, int64_t time)
{
	int64_t *task = task_at(tm, stage, slot);
	if (time > *task)
		*task = time;
}

void weir_times_set_part(struct weir_times *tm, uint32_t part, int64_t time)
{
	tm->part[part] = time;
	struct upstream_times *us = &tm->upstream[part];
	if (!us->time)
		return;
	us->now = time; /* all of them had got this far at least */
	for (uint32_t k = 0; k < us->count; k++)
		us->time[k] = time;
}

void weir_times_set_task(struct weir_times *tm, uint32_t stage, uint32_t slot, int64_t time)
{
	weir_times_raise(tm, stage, slot, time);
}

int64_t weir_times_part(const struct weir_times *tm, uint32_t part)
{
	return tm->part[part];
}

int64_t weir_times_source(const struct weir_times *tm, uint32_t part, bool *out)
{
	*out = tm->out[part];
	return tm->part[part];
}

int64_t weir_times_up(const struct weir_times *tm, uint32_t branch, uint32_t from, bool *out)
{
	*out = tm->up[branch].out[from];
	return tm->up[branch].time[from];
}

bool weir_times_slot_out(const struct weir_times *tm, uint32_t stage, uint32_t slot, bool *bound)
{
	const struct weir_plan *pl = tm->pl;
	const struct weir_plan_stage *st = &pl->stages[stage];
	*bound = true;
	if (st->exchange != WEIR_EXCHANGE_DIRECT) {
		*bound = false;
		return false;
	}
	bool out = true;
	for (uint32_t i = 0; i < st->input_count; i++) {
		if (pl->branches[st->inputs[i]].global)
			continue;
		uint32_t p = pl->scans[pl->branches[st->inputs[i]].origin].partition_base + slot;
		out &= tm->out[p];
		*bound &= tm->bound[p];
	}
	return out;
}
