/* keep.c: what one assignment leaves to the next (core.h): slots that come back to this instance unchanged are not
 * restored but taken over from the workers of the assignment before. @thread init
 *
 * The eager protocol takes all partitions away at every rebalance and gives most of them back. A changelog partition's
 * slots are kept when all of its inputs are ours again and the group's committed offset and epoch of each are what they
 * were when we drained: every transaction of an owner sends the offsets of all that it owns with a new epoch, so nobody
 * has committed anything of them in between, and an epoch is never given out twice in a changelog partition. Their
 * markers are kept beside them, in the place of those that restore would read. */
#include <stdlib.h>

#include "checkpoint/record.h"
#include "checkpoint/restore.h"
#include "io/core.h"

static uint32_t marker_count(const struct weir_core *co)
{
	uint32_t kept = weir_plan_kept_stages(co->plan);
	return (kept ? kept : 1) * co->changelog_partitions;
}

void weir_keep_init(struct weir_core *co)
{
	uint32_t parts = co->plan->partition_count + 1;
	co->keep.markers = weir_xcalloc(marker_count(co), sizeof *co->keep.markers);
	co->keep.kept = weir_xcalloc(co->changelog_partitions, sizeof *co->keep.kept);
	co->keep.fresh = weir_xcalloc(co->changelog_partitions, sizeof *co->keep.fresh);
	co->keep.offset = weir_xcalloc(parts, sizeof *co->keep.offset);
	co->keep.epoch = weir_xcalloc(parts, sizeof *co->keep.epoch);
	co->keep.had_epoch = weir_xcalloc(parts, sizeof *co->keep.had_epoch);
	co->keep.had = weir_xcalloc(parts, sizeof *co->keep.had);
}

static void forget_workers(struct weir_core *co)
{
	for (uint32_t w = 0; co->keep.workers && w < co->worker_count; w++)
		weir_worker_destroy(co->keep.workers[w]);
	free(co->keep.workers);
	co->keep.workers = NULL;
}

void weir_keep_fini(struct weir_core *co)
{
	forget_workers(co);
	for (uint32_t i = 0; co->keep.markers && i < marker_count(co); i++)
		weir_buf_fini(&co->keep.markers[i]);
	free(co->keep.markers);
	free(co->keep.kept);
	free(co->keep.fresh);
	free(co->keep.offset);
	free(co->keep.epoch);
	free(co->keep.had_epoch);
	free(co->keep.had);
}

/* The bundles that came back last: their epoch is committed. */
static bool finish(struct weir_core *co)
{
	enum { STEPS = 1000 };
	bool done = true;
	for (uint32_t w = 0; w < co->worker_count; w++) {
		struct weir_worker *wk = co->workers[w];
		for (int i = 0; i < STEPS && !atomic_load_explicit(&wk->done, memory_order_acquire); i++)
			(void)weir_worker_step(wk);
		done &= atomic_load_explicit(&wk->done, memory_order_acquire);
	}
	return done;
}

void weir_keep_leave(struct weir_core *co, bool whole, bool ran)
{
	if (!co->keep.markers || !co->workers)
		return;
	if (!co->keep.taken) /* what was left before is as it was */
		return;
	if (ran && !finish(co)) {
		forget_workers(co);
		return;
	}
	uint64_t epoch = co->log ? co->log->ops->epoch(co->log) : 0;
	bool committed = ran && epoch != co->keep.log_epoch;
	for (uint32_t i = 0; i < co->plan->partition_count; i++) {
		co->keep.had[i] = co->owned[i] && (whole || co->keep.kept[co->inputs[i].changelog_partition]);
		co->keep.had_epoch[i] = committed ? epoch : co->keep.epoch[i];
	}
	co->keep.workers = co->workers;
	co->workers = NULL;
}

/* Where the slots of an input's changelog partition stand in it; -1: not known. */
static int64_t stood_at(const struct weir_core *co, uint32_t input)
{
	const struct weir_input_name *in = &co->inputs[input];
	const struct weir_buf *text = &co->keep.markers[in->changelog_partition];
	struct weir_mem m = {0};
	struct weir_marker mk;
	struct weir_diag *dg = NULL;
	int64_t offset = -1;
	if (text->bytes != 0 && weir_marker_decode(&mk, text->data, text->bytes, &m, &dg) == WEIR_OK)
		for (uint32_t i = 0; i < mk.input_count; i++)
			if (weir_input_is(in, &mk.inputs[i]))
				offset = mk.inputs[i].offset;
	weir_diag_destroy(dg);
	weir_mem_fini(&m);
	return offset;
}

static bool is_unchanged(const struct weir_core *co, uint32_t input)
{
	return co->owned[input] && co->keep.had[input] && co->keep.epoch[input] != 0 &&
	       co->keep.epoch[input] == co->keep.had_epoch[input] && co->keep.offset[input] >= 0 &&
	       (co->fenced || co->keep.offset[input] == stood_at(co, input));
}

/* Which changelog partitions' slots are there already. */
static uint32_t choose(struct weir_core *co)
{
	uint32_t count = 0;
	bool *fed = weir_xcalloc(co->changelog_partitions, sizeof *fed);
	for (uint32_t p = 0; p < co->changelog_partitions; p++)
		co->keep.kept[p] = co->keep.workers != NULL;
	for (uint32_t i = 0; i < co->plan->partition_count; i++) {
		fed[co->inputs[i].changelog_partition] = true;
		co->keep.kept[co->inputs[i].changelog_partition] &= co->keep.workers && is_unchanged(co, i);
	}
	for (uint32_t i = 0; i < marker_count(co); i++)
		co->keep.kept[i % co->changelog_partitions] &= co->keep.markers[i].bytes != 0;
	for (uint32_t p = 0; p < co->changelog_partitions; p++) {
		co->keep.kept[p] &= fed[p];
		count += co->keep.kept[p];
	}
	free(fed);
	return count;
}

void weir_keep_take(struct weir_core *co)
{
	if (!co->keep.markers)
		return;
	uint32_t count = choose(co);
	memset(co->keep.fresh, 0, co->changelog_partitions * sizeof *co->keep.fresh);
	if (co->aside)
		weir_aside_choose(co);
	if (count != 0) {
		for (uint32_t w = 0; w < co->worker_count; w++)
			weir_worker_inherit(co->workers[w], co->keep.workers[w], co->keep.kept,
					    co->changelog_partitions);
		weir_core_log(co, 6, "kept what is in memory of %u of %u changelog partitions", count,
			      co->changelog_partitions);
	}
	forget_workers(co);
	if (co->aside)
		weir_aside_adopt(co, co->beside_records);
	co->keep.taken = true;
	for (uint32_t i = 0; i < marker_count(co); i++)
		if (!co->keep.kept[i % co->changelog_partitions])
			co->keep.markers[i].bytes = 0;
	co->keep.log_epoch = co->log ? co->log->ops->epoch(co->log) : 0;
}

/* ---- the group's offsets ---- */

/* The group's offsets are those of changelog partitions: what counts of them is the epoch. */
static enum weir_err ask_fenced(struct weir_core *co, struct weir_diag **dg)
{
	int64_t *offset = weir_xcalloc(co->changelog_partitions, sizeof *offset);
	uint64_t *epoch = weir_xcalloc(co->changelog_partitions, sizeof *epoch);
	enum weir_err err = weir_kafka_input_committed(co->input, &offset, &epoch, dg);
	for (uint32_t i = 0; err == WEIR_OK && i < co->plan->partition_count; i++) {
		co->keep.offset[i] = offset[co->inputs[i].changelog_partition];
		co->keep.epoch[i] = epoch[co->inputs[i].changelog_partition];
	}
	free(offset);
	free(epoch);
	return err;
}

enum weir_err weir_keep_ask_group(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	co->keep.taken = false;
	if (co->fenced)
		return ask_fenced(co, dg);
	int64_t **offset = weir_xcalloc(pl->scan_count + 1, sizeof *offset);
	uint64_t **epoch = weir_xcalloc(pl->scan_count + 1, sizeof *epoch);
	/* The input numbers its own scans; the answers go straight to their places. */
	for (uint32_t s = 0; s < pl->scan_count; s++) {
		if (!weir_source_is_kafka(co, s))
			continue;
		offset[co->kafka_scan[s]] = co->keep.offset + pl->scans[s].partition_base;
		epoch[co->kafka_scan[s]] = co->keep.epoch + pl->scans[s].partition_base;
	}
	for (uint32_t i = 0; i < pl->partition_count; i++) {
		co->keep.offset[i] = -1;
		co->keep.epoch[i] = 0;
	}
	enum weir_err err = weir_kafka_input_committed(co->input, offset, epoch, dg);
	free(offset);
	free(epoch);
	return err;
}

/* Offsets that we committed, and nothing of the epoch that they went with: state would begin anew in silence. */
static bool state_is_gone(const struct weir_core *co, uint32_t at)
{
	return weir_plan_kept_stages(co->plan) != 0 && co->keep.epoch[at] != 0 &&
	       !co->restored.held[co->inputs[at].changelog_partition];
}

enum weir_err weir_keep_check_group(struct weir_core *co, struct weir_diag **dg)
{
	for (uint32_t at = 0; at < co->plan->partition_count; at++) {
		const struct weir_input_name *in = &co->inputs[at];
		int64_t committed = co->keep.offset[at];
		if (!co->owned[at] || committed < 0)
			continue;
		if (state_is_gone(co, at))
			return weir_diag_set(dg, WEIR_E_CONF,
					     "%s-%u: the group %s has committed an epoch, but nothing of it is in "
					     "partition %u of its changelogs: they were deleted or made anew, or this "
					     "query's states have other names. To start over: weir reset %s -b %s "
					     "--execute",
					     in->topic, in->partition, co->app, in->changelog_partition, co->app,
					     co->home);
		if (co->fenced ||
		    co->restored.offset[at] == committed) /* fenced: the markers alone say where to go on */
			continue;
		if (co->restored.offset[at] < 0) { /* no marker: what the group says is where it goes on */
			co->restored.offset[at] = committed;
			continue;
		}
		return weir_diag_set(dg, WEIR_E_CONF,
				     "%s-%u: the group %s stands at offset %lld, but the state was kept at %lld: "
				     "somebody moved the group alone. Put it back, or start both over: weir "
				     "reset %s -b %s --execute",
				     in->topic, in->partition, co->app, (long long)committed,
				     (long long)co->restored.offset[at], co->app, co->home);
	}
	return WEIR_OK;
}
