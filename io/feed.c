/* feed.c: from units of partitions to numbered batches, order points and barriers (feed.h). @thread io */
#include "io/feed_private.h"
#include "io/budget.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	FEED_BATCH_BYTES_MAX = 1 << 20, /* a batch of large records is cut here; fixed: it decides output bytes */
	FEED_LOOK_MS = 250,
	FEED_JOIN_LOOK_MS = 10,
	FEED_LIVE_DIRTY_MAX = 8 << 20, /* live: what an epoch may have to write, and what uncommitted ones may hold; */
	FEED_SMALL_STATE = 24 << 20,   /* but state that is no larger than this, and hardly grows, may all be in one */
	FEED_STATE_MARGIN = 24 << 20,  /* what state may still grow by until the next order point, at most a quarter, */
	FEED_GROWTH = 4 << 20,         /* of it what is not the workers' besides */
	FEED_MEMORY_SHORT = 512 << 20, /* below it no order point is begun before it is known what one takes */
	FEED_QUIET_MAX = 64            /* order points in a row at which changes may wait: what they hold is bounded */
};

/* Live, coalesced changes leave once in an emit interval, however many order points its records make. Not where they
 * feed a stage, or another instance's: its times must stay behind them. */
static bool may_be_quiet(const struct weir_feed_conf *cf)
{
	const struct weir_plan *pl = cf->plan;
	bool any = false;
	if (!cf->live || !cf->coalesce || pl->repartition_count != 0)
		return false;
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		const struct weir_plan_stage *st = &pl->stages[s];
		any |= st->def.changes;
		for (uint32_t i = 0; i < st->branch_count && st->def.changes; i++)
			if (pl->branches[st->branches[i]].to == WEIR_TO_STAGE)
				return false;
	}
	return any;
}

enum weir_err weir_feed_create(struct weir_feed **out, const struct weir_feed_conf *cf, struct weir_diag **dg)
{
	const struct weir_plan *pl = cf->plan;
	struct weir_feed *fd = aligned_alloc(WEIR_CACHE_LINE, weir_align_up(sizeof *fd, WEIR_CACHE_LINE));
	if (!fd)
		return weir_diag_set(dg, WEIR_E_NOMEM, "no memory for the feed");
	memset(fd, 0, sizeof *fd);
	fd->cf = *cf;
	fd->park.fd = -1;
	fd->part_count = pl->partition_count;
	fd->part = weir_xcalloc(pl->partition_count + 1, sizeof *fd->part);
	uint32_t inputs = cf->input_capacity * cf->worker_count;
	fd->inputs = weir_xcalloc(inputs, sizeof *fd->inputs);
	fd->free_input = weir_xcalloc(inputs, sizeof *fd->free_input);
	for (uint32_t i = 0; i < inputs; i++)
		fd->free_input[fd->free_count++] = &fd->inputs[i];
	fd->outstanding = weir_xcalloc(cf->worker_count, sizeof *fd->outstanding);
	fd->ref_count = inputs + 2 + pl->partition_count;
	fd->refs = weir_xcalloc(fd->ref_count, sizeof *fd->refs);
	fd->free_ref = weir_xcalloc(fd->ref_count, sizeof *fd->free_ref);
	for (uint32_t i = 0; i < fd->ref_count; i++)
		fd->free_ref[fd->free_ref_count++] = &fd->refs[i];
	fd->points = weir_xcalloc(cf->points, sizeof *fd->points);
	fd->free_point = weir_xcalloc(cf->points, sizeof *fd->free_point);
	for (uint32_t i = 0; i < cf->points; i++) {
		fd->points[i].offset = weir_xcalloc(pl->partition_count + 1, sizeof(int64_t));
		fd->points[i].moved = weir_xcalloc(pl->partition_count + 1, sizeof(bool));
		fd->free_point[fd->free_point_count++] = &fd->points[i];
	}
	fd->epoch = cf->epoch;
	int64_t now = cf->now_us();
	fd->commit_us = fd->emit_us = fd->loud_us = now;
	fd->may_be_quiet = may_be_quiet(cf);
	enum weir_err err = WEIR_OK;
	for (uint32_t s = 0; s < pl->scan_count && err == WEIR_OK; s++)
		for (uint32_t p = 0; p < pl->scans[s].partition_count && err == WEIR_OK; p++) {
			struct partition *pt = &fd->part[pl->scans[s].partition_base + p];
			struct weir_stream_log *sl = cf->streams[s];
			int64_t first, end, start = cf->start[pl->scans[s].partition_base + p];
			pt->scan = s;
			pt->first = fd->cf.plan->scans[s].is_global;
			pt->number = p;
			pt->data_us = now;
			pt->read_ts = pt->last_ts = pt->sent_ts = INT64_MIN;
			sl->ops->range(sl, p, &first, &end);
			pt->next_offset = start >= 0 ? start : first;
			pt->marked_offset = start >= 0 ? start : -1;
			if (start >= 0)
				err = sl->ops->seek(sl, p, start, dg);
			sl->ops->range(sl, p, &first, &end); /* as of now */
			bool owned = !cf->owned || cf->owned[pl->scans[s].partition_base + p];
			pt->doubt_end = cf->in_doubt && owned ? end : 0;
		}
	weir_even_find(fd);
	fd->in_doubt = cf->in_doubt;
	if (err != WEIR_OK) {
		weir_feed_destroy(fd);
		return err;
	}
	*out = fd;
	return WEIR_OK;
}

static void release_unit(struct weir_feed *fd, struct unit_ref *rf)
{
	struct weir_stream_log *sl = fd->cf.streams[rf->scan];
	fd->memory -= rf->unit->memory;
	fd->memory_told -= sl->ops->memory ? 0 : rf->unit->memory;
	sl->ops->release(sl, rf->unit);
	rf->unit = NULL;
	fd->free_ref[fd->free_ref_count++] = rf;
}

static void set_waiting(struct weir_feed *fd, bool on)
{
	if (fd->waiting == on)
		return;
	fd->waiting = on;
	for (uint32_t s = 0; s < fd->cf.plan->scan_count; s++)
		if (fd->cf.streams[s]->ops->wait != NULL)
			fd->cf.streams[s]->ops->wait(fd->cf.streams[s], on);
}

void weir_feed_destroy(struct weir_feed *fd)
{
	if (!fd)
		return;
	if (fd->waiting)
		set_waiting(fd, false);
	for (uint32_t i = 0; i < fd->ref_count; i++)
		if (fd->refs[i].unit)
			release_unit(fd, &fd->refs[i]);
	for (uint32_t i = 0; i < fd->cf.points; i++) {
		free(fd->points[i].offset);
		free(fd->points[i].moved);
	}
	free(fd->part);
	free(fd->inputs);
	free(fd->free_input);
	free(fd->outstanding);
	free(fd->refs);
	free(fd->free_ref);
	free(fd->points);
	free(fd->free_point);
	weir_park_fini(&fd->park);
	free(fd);
}

/* ---- what is held ---- */

static uint64_t in_flight(const struct weir_feed *fd)
{
	return fd->memory_told + weir_budget_flying(&fd->cf);
}

static uint64_t state_bytes(const struct weir_feed *fd)
{
	return weir_budget_state(&fd->cf);
}

/* Little enough for one order point to matter. */
static bool is_short(const struct weir_feed *fd)
{
	return fd->cf.memory_max < FEED_MEMORY_SHORT;
}

/* All that memory.max bounds. */
static uint64_t all_bytes(const struct weir_feed *fd)
{
	return in_flight(fd) + state_bytes(fd) + weir_budget_held(&fd->cf);
}

/* Of growth that comes once, as indexes double, room is kept in any case (state_room). */
static void note_growth(struct weir_feed *fd)
{
	uint64_t now = state_bytes(fd), grown = now > fd->seen_state ? now - fd->seen_state : 0;
	bool first = !fd->cost_known;
	fd->grows = first || grown < fd->grown ? grown : fd->grown;
	fd->grown = grown;
	fd->seen_state = now;
	fd->cost_known = true;
}

/* ---- what comes back ---- */

static bool take_back(struct weir_feed *fd)
{
	bool any = false;
	for (uint32_t w = 0; w < fd->cf.worker_count; w++) {
		struct weir_input *in;
		while ((in = weir_ring_pop(&fd->cf.workers[w]->input_back))) {
			struct unit_ref *rf = in->kind == WEIR_INPUT_RECORDS ? in->unit : NULL;
			if (rf && --rf->out == 0 && rf->consumed)
				release_unit(fd, rf);
			fd->free_input[fd->free_count++] = in;
			fd->outstanding[w]--;
			any = true;
		}
	}
	struct weir_point *pt;
	uint32_t before = fd->points_out;
	while ((pt = weir_ring_pop(weir_snapshot_back(fd->cf.snapshot)))) {
		fd->points_out--;
		fd->barriers_out -= pt->barrier;
		fd->dirty_out -= pt->dirty;
		fd->point_cost = pt->cost > fd->point_cost / 4 * 3 ? pt->cost : fd->point_cost / 4 * 3;
		fd->free_point[fd->free_point_count++] = pt;
		any = true;
	}
	if (fd->points_out != before) {
		note_growth(fd);
		weir_memory_trim(all_bytes(fd), fd->cf.memory_max);
	}
	return any;
}

/* ---- controls ---- */

/* Goes on sending the control to the workers that have room. True when all have it. */
static bool send_control(struct weir_feed *fd, bool *moved)
{
	while (fd->sent_to < fd->cf.worker_count) {
		uint32_t w = fd->sent_to;
		if (fd->outstanding[w] == fd->cf.input_capacity || fd->free_count == 0)
			return false;
		struct weir_input *in = fd->free_input[--fd->free_count];
		*in = fd->control;
		bool pushed = weir_ring_push(&fd->cf.workers[w]->input, in);
		WEIR_ASSERT(pushed);
		weir_ring_publish(&fd->cf.workers[w]->input);
		weir_park_wake(&fd->cf.workers[w]->park);
		fd->outstanding[w]++;
		fd->sent_to++;
		*moved = true;
	}
	fd->sending = false;
	return true;
}

static void send_event(struct weir_feed *fd, uint32_t part, enum weir_event event)
{
	fd->told |= fd->cf.plan->repartition_count != 0 && (!fd->cf.owned || fd->cf.owned[part]);
	fd->control = (struct weir_input){.kind = WEIR_INPUT_EVENT,
					  .seq = fd->seq++,
					  .scan = fd->part[part].scan,
					  .partition = fd->part[part].number,
					  .part = part,
					  .event = event};
	fd->sending = true;
	fd->sent_to = 0;
}

/* What the next barrier has to write, as of the last order point that workers are through. *grown: by how much the way
 * to it made that more. */
static uint64_t dirty_bytes(const struct weir_feed *fd, uint64_t *grown)
{
	uint64_t bytes = 0;
	*grown = 0;
	for (uint32_t w = 0; w < fd->cf.worker_count; w++) {
		bytes += atomic_load_explicit(&fd->cf.workers[w]->dirty_bytes, memory_order_relaxed);
		*grown += atomic_load_explicit(&fd->cf.workers[w]->dirty_grown, memory_order_relaxed);
	}
	return bytes;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What states may hold: a quarter of memory.max is for data in flight, and until the next order point indexes of all
 * slots may double, a quarter more than now. */
static uint64_t state_room(const struct weir_feed *fd)
{
	uint64_t max = fd->cf.memory_max, growth = max / 4 < FEED_STATE_MARGIN ? max / 4 : FEED_STATE_MARGIN;
	uint64_t held = weir_budget_held(&fd->cf), margin = larger(held + FEED_GROWTH, held / 2 + fd->grows);
	margin = max / 4 + max / 16 + larger(margin, growth);
	return max > margin ? (max - margin) / 5 * 4 : 0;
}

/* What an epoch may have to write before it is committed ahead of its time: its deltas and images are in flight all at
 * once, on brokers in the producer's queue and for a second try, too. A small state that does not grow is changed over
 * and over again, and is written no sooner for that. */
static uint64_t dirty_max(const struct weir_feed *fd)
{
	uint64_t most = fd->cf.memory_max / 64, state = state_bytes(fd);
	bool small = state <= FEED_SMALL_STATE && state <= fd->marked_state + FEED_LIVE_DIRTY_MAX;
	uint64_t live = small ? FEED_SMALL_STATE : FEED_LIVE_DIRTY_MAX;
	return fd->cf.live && most > live ? live : most;
}

/* Whether another epoch may be on its way out. Live, a large one is alone. */
static bool epochs_full(const struct weir_feed *fd, uint64_t dirty)
{
	return fd->barriers_out >= fd->cf.epochs_in_flight ||
	       (fd->cf.live && fd->barriers_out > 0 && fd->dirty_out + dirty > FEED_LIVE_DIRTY_MAX);
}

/* Whether doubt ends with the order point that is made now. */
static bool is_settled(struct weir_feed *fd)
{
	if (WEIR_LIKELY(!fd->in_doubt))
		return false;
	for (uint32_t p = 0; p < fd->part_count; p++)
		if (fd->part[p].next_offset < fd->part[p].doubt_end)
			return false;
	fd->in_doubt = false;
	return true;
}

static bool emit_due(const struct weir_feed *fd)
{
	int64_t since = fd->may_be_quiet ? fd->loud_us : fd->emit_us;
	return fd->cf.now_us() - since >= fd->cf.emit_ms * 1000;
}

/* Makes an order point here. False: no point object is free, or too many epochs are uncommitted. */
static bool make_point(struct weir_feed *fd, bool barrier, bool last, bool close_all, int64_t advance)
{
	uint64_t grown, dirty = dirty_bytes(fd, &grown);
	dirty += grown;
	if (fd->free_point_count == 0 || (barrier && epochs_full(fd, dirty)))
		return false;
	struct weir_point *pt = fd->free_point[--fd->free_point_count];
	pt->seq = fd->seq++;
	pt->cost = 0;
	pt->barrier = barrier;
	pt->dirty = barrier ? dirty : 0;
	pt->last = last;
	pt->epoch = barrier ? ++fd->epoch : 0;
	pt->records = fd->cf.records + fd->records;
	pt->bytes = fd->cf.bytes + fd->bytes;
	for (uint32_t p = 0; p < fd->part_count; p++) {
		pt->offset[p] = fd->part[p].next_offset;
		/* Somebody else's marker is not ours to write. */
		pt->moved[p] =
			fd->part[p].next_offset != fd->part[p].marked_offset && (!fd->cf.owned || fd->cf.owned[p]);
		if (barrier)
			fd->part[p].marked_offset = fd->part[p].next_offset;
	}
	bool pushed = weir_ring_push(weir_snapshot_points(fd->cf.snapshot), pt);
	WEIR_ASSERT(pushed);
	/* The snapshotter is left asleep: there is nothing for it to do before the workers' bundles, which wake it. */
	weir_ring_publish(weir_snapshot_points(fd->cf.snapshot));
	fd->points_out++;
	fd->barriers_out += barrier;
	fd->dirty_out += pt->dirty;
	fd->point_records = 0;
	fd->point_bytes = 0;
	fd->evening = false;
	for (uint32_t p = 0; p < fd->part_count && fd->turns; p++)
		fd->part[p].sent_ts = INT64_MIN;
	/* What is told on must not be older than a commit, nor than a time that does not come from the records; and
	 * what was in doubt leaves while it is. */
	bool settled = is_settled(fd);
	bool quiet = fd->may_be_quiet && !barrier && !last && !close_all && !settled && !fd->asked &&
		     fd->advance_ms == 0 && advance == WEIR_TIME_UNSET && fd->quiet < FEED_QUIET_MAX && !emit_due(fd);
	fd->emit_us = fd->cf.now_us();
	fd->quiet = quiet ? fd->quiet + 1 : 0;
	fd->loud_us = quiet ? fd->loud_us : fd->emit_us;
	if (barrier) {
		fd->told = fd->skipped = false;
		fd->commit_records = 0;
		fd->commit_us = fd->emit_us;
		fd->marked_state = state_bytes(fd);
	}
	fd->control = (struct weir_input){.kind = WEIR_INPUT_POINT,
					  .seq = pt->seq,
					  .barrier = barrier,
					  .epoch = pt->epoch,
					  .last = last,
					  .close_all = close_all,
					  .settled = settled,
					  .quiet = quiet,
					  .advance_by = fd->advance_ms,
					  .advance_to = advance};
	fd->advance_ms = 0;
	fd->last_sent = last;
	fd->sending = true;
	fd->sent_to = 0;
	return true;
}

/* ---- choosing and cutting ---- */

/* A repartition topic has no end of its own: its partition ends with what feeds it. */
static bool repartition_ended(const struct weir_feed *fd, uint32_t p)
{
	const struct weir_worker *w = weir_worker_of(fd->cf.workers[0], fd->part[p].number);
	return !fd->cf.endless && atomic_load_explicit(&w->part_ended[p], memory_order_relaxed);
}

/* Whether a global table still has to be loaded: until its end has been seen nobody else is read. */
static bool is_loading(struct partition *pt)
{
	if (pt->poll == WEIR_POLL_EMPTY || pt->poll == WEIR_POLL_BOUND)
		pt->loaded = true;
	return !pt->loaded;
}

/* Whether p can be read now. */
static bool may_read(const struct weir_feed *fd, uint32_t p, bool room)
{
	return (room || fd->part[p].rest) && (!fd->evening || weir_even_is_behind(fd, p));
}

/* Looks at the heads of all partitions. *out: the one whose stored batch starts earliest, UINT32_MAX if none has data.
 * Partitions newly at their bound, idle or back are told about first, one a call (fd->sending is set then). No room:
 * among those that have begun a unit. */
static enum weir_err choose(struct weir_feed *fd, bool room, uint32_t *out, struct weir_diag **dg)
{
	int64_t now = fd->cf.live && fd->cf.idle_ms > 0 ? fd->cf.now_us() : 0;
	*out = UINT32_MAX;
	int64_t best = 0;
	bool loading = false;
	for (uint32_t p = 0; p < fd->part_count; p++) {
		struct partition *pt = &fd->part[p];
		struct weir_stream_log *sl = fd->cf.streams[pt->scan];
		if (WEIR_UNLIKELY(!pt->bound_told && fd->cf.owned && !fd->cf.owned[p])) {
			/* Somebody else's: it holds nothing up here, and has no slots with anything in them. */
			pt->poll = WEIR_POLL_BOUND;
			pt->bound_told = true;
			fd->bound_count++;
			send_event(fd, p, WEIR_EVENT_BOUND);
			return WEIR_OK;
		}
		if (WEIR_UNLIKELY(pt->rest != NULL)) {
			pt->poll = WEIR_POLL_UNIT;
			pt->first_ts = weir_unit_ts(pt->rest, pt->rest_at);
		} else if (!pt->peeked && !pt->bound_told) {
			pt->poll = sl->ops->peek(sl, pt->number, &pt->first_ts, dg);
			if (pt->poll == WEIR_POLL_ERROR)
				return *dg ? weir_diag_code(*dg) : WEIR_E_IO;
			pt->peeked = pt->poll == WEIR_POLL_UNIT;
			pt->looked = fd->looks;
			if (pt->poll == WEIR_POLL_EMPTY && fd->cf.plan->scans[pt->scan].repartition >= 0 &&
			    repartition_ended(fd, p))
				pt->poll = WEIR_POLL_BOUND;
			if (pt->poll == WEIR_POLL_BOUND) {
				pt->bound_told = true;
				fd->bound_count++;
				if (!fd->cf.keep_windows) {
					send_event(fd, p, WEIR_EVENT_BOUND);
					return WEIR_OK;
				}
			}
		}
		if (pt->poll != WEIR_POLL_LATER)
			pt->waited_out = false;
		if (pt->poll == WEIR_POLL_UNIT) {
			if (pt->idle_told) {
				pt->idle_told = false;
				send_event(fd, p, WEIR_EVENT_BACK);
				return WEIR_OK;
			}
			if (!may_read(fd, p, room))
				continue;
			if (*out == UINT32_MAX || pt->first > fd->part[*out].first ||
			    (pt->first == fd->part[*out].first && pt->first_ts < best)) {
				*out = p;
				best = pt->first_ts;
			}
		} else if (now && pt->poll == WEIR_POLL_LATER) {
			pt->data_us = now; /* idle counts from here */
		} else if (now && pt->poll == WEIR_POLL_EMPTY && !pt->idle_told &&
			   now - pt->data_us > fd->cf.idle_ms * 1000) {
			pt->idle_told = true;
			send_event(fd, p, WEIR_EVENT_IDLE);
			return WEIR_OK;
		}
		if (WEIR_UNLIKELY(pt->first))
			loading |= is_loading(pt);
	}
	if (WEIR_UNLIKELY(loading) && *out != UINT32_MAX && !fd->part[*out].first)
		*out = UINT32_MAX;
	bool wait = *out != UINT32_MAX && fd->part[*out].meets && weir_even_waits(fd, &fd->part[*out]);
	bool awaits = fd->evening && weir_even_look(fd) && *out == UINT32_MAX;
	set_waiting(fd, wait || awaits);
	if (wait)
		*out = UINT32_MAX;
	return WEIR_OK;
}

static enum weir_err open_unit(struct weir_feed *fd, uint32_t p, struct weir_diag **dg)
{
	struct partition *pt = &fd->part[p];
	struct weir_stream_log *sl = fd->cf.streams[pt->scan];
	struct weir_unit *u;
	fd->current_part = p;
	if (WEIR_UNLIKELY(pt->rest != NULL)) {
		fd->current = pt->rest;
		fd->current_at = fd->opened_at = pt->rest_at;
		pt->rest = NULL;
		pt->upto_ts = weir_even_upto(fd, p);
		return WEIR_OK;
	}
	enum weir_err err = sl->ops->take(sl, pt->number, &u, dg);
	if (err != WEIR_OK)
		return err;
	pt->peeked = false;
	pt->read_ts = pt->first_ts;
	fd->looks++;
	fd->wait = (struct patience){0, 0};
	if (fd->cf.live)
		pt->data_us = fd->cf.now_us();
	if (fd->cf.placement != NULL)
		weir_placement_unit(fd->cf.placement, pt->scan, u);
	struct unit_ref *rf = fd->free_ref[--fd->free_ref_count];
	*rf = (struct unit_ref){.unit = u, .scan = pt->scan};
	fd->memory += u->memory;
	fd->memory_told += sl->ops->memory ? 0 : u->memory;
	fd->current = rf;
	fd->current_at = fd->opened_at = 0;
	pt->last_ts = u->count != 0 ? weir_unit_ts(rf, u->count - 1) : pt->first_ts;
	pt->upto_ts = pt->turns ? weir_even_upto(fd, p) : INT64_MAX;
	return WEIR_OK;
}

static void close_unit(struct weir_feed *fd)
{
	struct unit_ref *rf = fd->current;
	struct partition *pt = &fd->part[fd->current_part];
	fd->skipped |= fd->cf.live && rf->unit->next_offset > pt->next_offset;
	pt->next_offset = rf->unit->next_offset;
	rf->consumed = true;
	fd->current = NULL;
	if (rf->out == 0)
		release_unit(fd, rf);
}

/* How many records of the current unit the next batch takes: to 1,024, to the byte bound, to the order point. Cost: one
 * add per record, unless it takes the whole unit. */
static uint32_t cut(const struct weir_feed *fd, uint64_t *bytes)
{
	const struct weir_unit *u = fd->current->unit;
	uint32_t most = u->count - fd->current_at;
	uint32_t limit = fd->cf.poll_records ? fd->cf.poll_records : WEIR_BATCH_ROWS;
	most = most < limit ? most : limit;
	most = most < WEIR_BATCH_ROWS ? most : WEIR_BATCH_ROWS;
	int64_t room = fd->cf.point_records - fd->point_records;
	if (!fd->evening && most > room)
		most = (uint32_t)room;
	uint64_t sum = 0, point_room = fd->evening ? UINT64_MAX : fd->cf.point_bytes - fd->point_bytes;
	uint32_t n = 0;
	const struct partition *pt = &fd->part[fd->current_part];
	int64_t upto = !pt->turns ? INT64_MAX : fd->evening ? pt->even_ts : pt->upto_ts;
	if (most == u->count && upto == INT64_MAX && u->bytes < FEED_BATCH_BYTES_MAX && u->bytes < point_room) {
		*bytes = u->bytes;
		return most;
	}
	while (n < most) {
		const struct weir_record *r = &u->records[fd->current_at + n];
		if (n > 0 && r->timestamp > upto)
			break;
		sum += (uint64_t)r->key_bytes + r->value_bytes + r->headers_bytes;
		n++;
		if (sum >= FEED_BATCH_BYTES_MAX || sum >= point_room)
			break;
	}
	*bytes = sum;
	return n;
}

static void push_batch(struct weir_feed *fd, uint32_t w, uint32_t count, uint64_t bytes)
{
	struct unit_ref *rf = fd->current;
	struct partition *pt = &fd->part[fd->current_part];
	struct weir_stream_log *sl = fd->cf.streams[pt->scan];
	struct weir_input *in = fd->free_input[--fd->free_count];
	*in = (struct weir_input){.kind = WEIR_INPUT_RECORDS,
				  .seq = fd->seq++,
				  .scan = pt->scan,
				  .partition = pt->number,
				  .part = fd->current_part,
				  .count = count,
				  .records = rf->unit->records + fd->current_at,
				  .unit = rf,
				  .advance_to = WEIR_TIME_UNSET};
	in->topic = sl->ops->topic(sl, pt->number, &in->topic_partition);
	rf->out++;
	fd->current_at += count;
	pt->next_offset = rf->unit->records[fd->current_at - 1].offset + 1;
	for (uint32_t i = 0; i < count && pt->turns; i++)
		pt->sent_ts = weir_max_i64(pt->sent_ts, in->records[i].timestamp);
	fd->records += count;
	fd->bytes += bytes;
	fd->point_records += count;
	fd->point_bytes += bytes;
	fd->commit_records += count;
	fd->rate_records += count;
	atomic_store_explicit(&fd->records_seen, fd->records, memory_order_relaxed);
	atomic_store_explicit(&fd->bytes_seen, fd->bytes, memory_order_relaxed);
	bool pushed = weir_ring_push(&fd->cf.workers[w]->input, in);
	WEIR_ASSERT(pushed);
	weir_ring_publish(&fd->cf.workers[w]->input);
	weir_park_wake(&fd->cf.workers[w]->park);
	fd->outstanding[w]++;
	if (fd->current_at == rf->unit->count)
		close_unit(fd);
}

/* Which worker takes the next batch. */
static uint32_t target(const struct weir_feed *fd)
{
	const struct weir_plan *pl = fd->cf.plan;
	if (fd->cf.worker_count == 1)
		return 0;
	if (pl->route_direct)
		return weir_worker_of(fd->cf.workers[0], fd->part[fd->current_part].number)->cf.id;
	return (uint32_t)(fd->seq % fd->cf.worker_count);
}

/* ---- order points ---- */

static bool commit_due(const struct weir_feed *fd)
{
	if (fd->cf.live && fd->cf.now_us() - fd->commit_us >= fd->cf.commit_ms * 1000)
		return true;
	/* Earlier when memory is short. No output byte depends on it. Live, as much may have come since, and may come
	 * until the next order point, which would be too late. */
	uint64_t grown, dirty = dirty_bytes(fd, &grown);
	bool ahead = fd->cf.live || is_short(fd);
	if (dirty + (ahead ? 2 * grown : 0) > dirty_max(fd) || (!fd->cost_known && !fd->cf.live && ahead))
		return true;
	return !fd->cf.live && fd->cf.commit_records > 0 && fd->commit_records >= fd->cf.commit_records;
}

/* idle.advance=wall: once every partition is idle, each emit interval moves time on by what has passed. */
static bool wall_due(struct weir_feed *fd)
{
	if (!fd->cf.live || !fd->cf.idle_wall)
		return false;
	bool idle = fd->part_count > 0 && fd->bound_count < fd->part_count;
	for (uint32_t p = 0; p < fd->part_count && idle; p++)
		idle = fd->part[p].idle_told || fd->part[p].bound_told;
	int64_t now = fd->cf.now_us();
	if (!idle) {
		fd->all_idle_us = 0;
		return false;
	}
	if (!fd->all_idle_us)
		fd->all_idle_us = now;
	int64_t passed = (now - fd->all_idle_us) / 1000;
	if (passed < fd->cf.emit_ms)
		return false;
	fd->advance_ms += passed;
	fd->all_idle_us += passed * 1000;
	return true;
}

static bool point_due(struct weir_feed *fd)
{
	bool full = fd->point_records >= fd->cf.point_records || fd->point_bytes >= fd->cf.point_bytes;
	if (!fd->cf.live)
		return full;
	/* Where inputs have to come even first there is room for that. */
	bool soon = fd->turns && fd->point_records > 0 &&
		    (fd->point_records >= fd->cf.point_records - fd->cf.point_records / 4 ||
		     fd->point_bytes >= fd->cf.point_bytes - fd->cf.point_bytes / 4);
	bool due = full || soon || ((fd->point_records > 0 || fd->commit_records > 0 || fd->told) && emit_due(fd)) ||
		   (fd->skipped && commit_due(fd)); /* those who look at the group's offsets see no lag then */
	return due && !weir_even_must(fd);
}

/* Makes the order point that is due. *due: there is one, whether or not it could be made now. */
static bool points(struct weir_feed *fd, bool *due)
{
	bool stop = atomic_load_explicit(&fd->stop, memory_order_relaxed);
	*due = true;
	if (fd->asked) {
		if (!make_point(fd, fd->asked_barrier, fd->asked_last, fd->asked_close, fd->asked_advance))
			return false;
		fd->asked = false;
		return true;
	}
	if (point_due(fd) || fd->advance_ms > 0 || wall_due(fd) ||
	    (stop && (fd->cf.live ? !weir_even_must(fd) : fd->records == 0 || fd->point_records == 0))) {
		bool full = state_bytes(fd) > state_room(fd);
		bool last = stop || full;
		if (!make_point(fd, last || commit_due(fd), last, false, WEIR_TIME_UNSET))
			return false;
		fd->memory_stop = full && !stop;
		fd->stop_room = state_room(fd);
		return true;
	}
	if (!fd->current && !fd->cf.endless && fd->bound_count == fd->part_count && fd->part_count > 0)
		return make_point(fd, true, true, !fd->cf.keep_windows, WEIR_TIME_UNSET);
	*due = false;
	return false;
}

/* Whether scan.rate lets a batch go now; stopping lifts it, and what an order point waits for. */
static bool rate_allows(struct weir_feed *fd, int *wait_ms)
{
	if (fd->cf.rate <= 0 || fd->evening || atomic_load_explicit(&fd->stop, memory_order_relaxed))
		return true;
	int64_t now = fd->cf.now_us();
	if (!fd->rate_start_us)
		fd->rate_start_us = now;
	int64_t due_us = fd->rate_start_us + (int64_t)((double)fd->rate_records * 1e6 / (double)fd->cf.rate);
	if (now >= due_us)
		return true;
	*wait_ms = (int)((due_us - now) / 1000) + 1;
	return false;
}

/* Whether a unit may be taken: in-flight data, with room for another order point, must be below its share, and with all
 * else below the whole. With nothing in flight there is always room for one. */
static bool has_room(const struct weir_feed *fd)
{
	if (fd->memory == 0 && fd->points_out == 0)
		return true;
	uint64_t flying = in_flight(fd) + fd->point_cost;
	return flying <= fd->cf.memory_max / 4 && all_bytes(fd) + fd->point_cost <= fd->cf.memory_max;
}

/* Whether something comes back from the workers, or the snapshotter, by itself. */
static bool is_flying(const struct weir_feed *fd)
{
	bool any = fd->points_out != 0;
	for (uint32_t w = 0; w < fd->cf.worker_count; w++)
		any |= fd->outstanding[w] != 0;
	return any;
}

/* Whether the next order point is not to be begun before those on their way are back: nobody knows yet what one takes,
 * or state has no room for another, and they may make some. */
static bool waits_for_points(const struct weir_feed *fd)
{
	if (fd->point_records != 0 || fd->points_out == 0)
		return false;
	return (!fd->cost_known && is_short(fd)) || state_bytes(fd) > state_room(fd);
}

/* There is more to read, but state has no room for another order point: the last one. False: not so. */
static bool ends_here(struct weir_feed *fd)
{
	uint64_t room = state_room(fd);
	if (fd->point_records != 0 || fd->points_out != 0 || fd->records == 0 || state_bytes(fd) <= room)
		return false;
	fd->stop_room = room;
	fd->memory_stop = make_point(fd, true, true, false, WEIR_TIME_UNSET);
	return true;
}

enum weir_err weir_feed_step(struct weir_feed *fd, bool *moved, int *wait_ms, struct weir_diag **dg)
{
	*wait_ms = -1;
	fd->full = fd->hungry = false;
	*moved = take_back(fd);
	atomic_store_explicit(&fd->memory_seen, in_flight(fd) + weir_budget_held(&fd->cf), memory_order_relaxed);
	if (fd->sending && !send_control(fd, moved))
		return WEIR_OK;
	if (fd->last_sent)
		return WEIR_OK;
	bool due;
	if (points(fd, &due)) {
		*moved = true;
		send_control(fd, moved);
		return WEIR_OK;
	}
	/* With nothing read since the last barrier only idle partitions have to be noticed, and idle.advance=wall. */
	bool events = fd->told || fd->skipped || fd->cf.idle_wall;
	bool pending = fd->point_records > 0 || fd->commit_records > 0 || events;
	if (fd->cf.live)
		*wait_ms = !pending ? FEED_LOOK_MS : (int)(fd->cf.emit_ms < 50 ? fd->cf.emit_ms : 50);
	if (due || (fd->asked_last && fd->part_count == 0))
		return WEIR_OK;
	/* Stopping lifts a pause on a bounded recording: it goes on to its order point. */
	if (atomic_load_explicit(&fd->paused, memory_order_relaxed) && !fd->evening &&
	    !atomic_load_explicit(&fd->stop, memory_order_relaxed))
		return WEIR_OK;
	if (!rate_allows(fd, wait_ms) || waits_for_points(fd))
		return WEIR_OK;
	if (fd->current)
		weir_even_leave(fd);
	if (!fd->current) {
		bool room = fd->free_ref_count > 0 && has_room(fd);
		if (!room && fd->evening && !fd->cramped && !is_flying(fd)) /* it is the order point that makes room */
			*moved = fd->cramped = true;
		if (!room && !weir_even_has_rest(fd))
			return WEIR_OK;
		uint32_t p;
		enum weir_err err = choose(fd, room, &p, dg);
		if (err != WEIR_OK)
			return err;
		if (fd->sending) {
			*moved = true;
			send_control(fd, moved);
			return WEIR_OK;
		}
		fd->hungry = p == UINT32_MAX && room;
		if (fd->waiting && (*wait_ms < 0 || *wait_ms > FEED_JOIN_LOOK_MS))
			*wait_ms = FEED_JOIN_LOOK_MS;
		if (p == UINT32_MAX) {
			*moved |= fd->evening && room && !fd->waiting; /* they are even now */
			return WEIR_OK;
		}
		err = open_unit(fd, p, dg);
		if (err != WEIR_OK)
			return err;
		*moved = true;
		if (fd->current->unit->count == 0) {
			close_unit(fd);
			return WEIR_OK;
		}
		if (fd->evening) /* its records may begin later than it does */
			weir_even_leave(fd);
		if (!fd->current)
			return WEIR_OK;
	}
	if (ends_here(fd)) {
		*moved = true;
		return WEIR_OK;
	}
	uint32_t w = target(fd);
	fd->full = fd->outstanding[w] + 1 >= fd->cf.input_capacity || fd->free_count == 0;
	if (fd->full)
		return WEIR_OK; /* one place stays free for a control */
	uint64_t bytes;
	uint32_t count = cut(fd, &bytes);
	push_batch(fd, w, count, bytes);
	*moved = true;
	return WEIR_OK;
}

void weir_feed_stop(struct weir_feed *fd)
{
	atomic_store_explicit(&fd->stop, true, memory_order_relaxed);
}

bool weir_feed_full(const struct weir_feed *fd)
{
	return fd->full;
}

void weir_feed_pause(struct weir_feed *fd, bool paused)
{
	atomic_store_explicit(&fd->paused, paused, memory_order_relaxed);
}

bool weir_feed_done(const struct weir_feed *fd)
{
	return fd->last_sent && !fd->sending && fd->points_out == 0;
}

void weir_feed_point(struct weir_feed *fd, int64_t advance, bool barrier, bool last, bool close_all)
{
	fd->asked = true;
	fd->asked_advance = advance;
	fd->asked_barrier = barrier;
	fd->asked_last = last;
	fd->asked_close = close_all;
}

enum weir_err weir_feed_result(const struct weir_feed *fd, struct weir_diag **dg)
{
	if (!fd->memory_stop)
		return WEIR_OK;
	/* Names the largest state. */
	const struct weir_plan *pl = fd->cf.plan;
	static const char *const instead[] = {
		[WEIR_GROWTH_BOUNDED] = " or shorter windows",
		[WEIR_GROWTH_TTL] = " or a shorter state.ttl",
		[WEIR_GROWTH_KEYS] = " or let it forget keys (-X state.ttl=...)",
		[WEIR_GROWTH_KEYS_ALWAYS] = ", for it grows with its keys",
	};
	const char *name = "?", *also = "";
	uint64_t most = 0, entries = 0;
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		uint64_t bytes = 0, n = 0;
		for (uint32_t k = 0; k < pl->stages[s].slot_count; k++) {
			const struct weir_slot *sl = weir_worker_of(fd->cf.workers[0], k)->slots[s][k];
			bytes += weir_slot_bytes(sl);
			n += weir_slot_entries(sl);
		}
		if (bytes >= most) {
			most = bytes;
			entries = n;
			name = pl->stages[s].name;
			also = instead[weir_plan_growth_of(pl, &pl->stages[s])];
		}
	}
	return weir_diag_set(dg, WEIR_E_STATE,
			     "state %s has outgrown memory.max: %" PRIu64 " entries, %" PRIu64 " bytes; of %" PRIu64
			     " bytes states have %" PRIu64 ", data in flight and indexes that double the rest. "
			     "Everything up to here is committed. Give it more (-X memory.max=...)%s, then start "
			     "again",
			     name, entries, most, fd->cf.memory_max, fd->stop_room, also);
}

uint64_t weir_feed_epoch(const struct weir_feed *fd)
{
	return fd->epoch;
}

uint64_t weir_feed_records(const struct weir_feed *fd)
{
	return atomic_load_explicit(&fd->records_seen, memory_order_relaxed);
}

uint64_t weir_feed_bytes(const struct weir_feed *fd)
{
	return atomic_load_explicit(&fd->bytes_seen, memory_order_relaxed);
}

uint64_t weir_feed_memory(const struct weir_feed *fd)
{
	return atomic_load_explicit(&fd->memory_seen, memory_order_relaxed);
}

struct weir_park *weir_feed_park(struct weir_feed *fd)
{
	return &fd->park;
}

int weir_feed_event_fd(const struct weir_feed *fd)
{
	if (!fd->hungry)
		return -1;
	for (uint32_t s = 0; s < fd->cf.plan->scan_count; s++) {
		int f = fd->cf.streams[s]->ops->event_fd(fd->cf.streams[s]);
		if (f >= 0)
			return f;
	}
	return -1;
}
