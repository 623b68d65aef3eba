/* aside.c: slots restored beside others that run (core.h). @thread restore, and init for the rest
 *
 * After a rebalance some slots come back unchanged (keep.c) and others are new here. Those are restored into workers of
 * their own, which never take a step, out of a log of its own, while a session runs the slots that are there: for it
 * what is restored is as if owned by somebody else. When that is done the session drains and ends, and the next one has
 * all of them in its workers.
 *
 *   assigned -> keep what is there, begin aside -> { session of what is kept | restore } -> drain -> adopt -> session
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/core.h"

struct weir_core_aside {
	struct weir_core *co;
	bool *cps;   /* changelog partitions that are restored */
	bool *owned; /* inputs of them */
	uint32_t count;
	struct weir_worker **workers;
	struct weir_routes routes;
	struct weir_snapshot_conf cf;
	struct weir_restored restored;
	struct weir_log *log;
	struct weir_mem mem;
	int64_t began_us;
	char *arguments;
	_Atomic bool stop;
	_Atomic bool done; /* release: everything above is the caller's again */
	enum weir_err err;
	struct weir_diag *dg;
};

bool weir_aside_possible(const struct weir_core *co)
{
	const struct weir_plan *pl = co->plan;
	bool had = false, alone = pl->stage_count == 0 || !co->log || !co->start_aside;
	for (uint32_t s = 0; s < pl->stage_count; s++)
		alone |= weir_plan_stage_alone(&pl->stages[s]);
	for (uint32_t s = 0; s < pl->scan_count; s++)
		alone |= pl->scans[s].is_global;
	for (uint32_t i = 0; i < pl->partition_count; i++)
		had |= co->owned[i] && co->keep.had[i];
	return !alone && had && co->keep.workers && !co->aside;
}

void weir_aside_limit(struct weir_core *co, const bool *now)
{
	const struct weir_plan *pl = co->plan;
	const bool **masks = weir_xcalloc(pl->scan_count + 1, sizeof *masks);
	bool *cps = weir_xcalloc(co->changelog_partitions, sizeof *cps);
	for (uint32_t i = 0; i < pl->partition_count; i++)
		cps[co->inputs[i].changelog_partition] |= now[i];
	for (uint32_t s = 0; s < pl->scan_count; s++)
		if (co->scan_input[s] == co->input)
			masks[co->kafka_scan[s]] = now + pl->scans[s].partition_base;
	if (co->fenced)
		masks[0] = cps;
	weir_kafka_input_only(co->input, masks);
	free(masks);
	free(cps);
}

enum weir_err weir_aside_create(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	struct weir_core_aside *as = weir_xcalloc(1, sizeof *as);
	co->aside = as;
	as->co = co;
	as->began_us = co->now_us();
	as->cps = weir_xcalloc(co->changelog_partitions, sizeof *as->cps);
	as->owned = weir_xcalloc(pl->partition_count + 1, sizeof *as->owned);
	for (uint32_t i = 0; i < pl->partition_count; i++) {
		uint32_t p = co->inputs[i].changelog_partition;
		as->owned[i] = co->owned[i] && !co->keep.kept[p];
		as->count += as->owned[i] && !as->cps[p];
		as->cps[p] |= as->owned[i];
	}
	as->restored.offset = weir_mem_take(&as->mem, (pl->partition_count + 1) * sizeof(int64_t));
	as->restored.time = weir_mem_take(&as->mem, (pl->partition_count + 1) * sizeof(int64_t));
	as->restored.schema_missing = weir_mem_take(&as->mem, pl->stage_count + 1);
	memset(as->restored.schema_missing, 0, pl->stage_count + 1);
	as->arguments = weir_mem_printf(&as->mem, "%s -b %s", co->app, co->home);
	enum weir_err err = weir_core_workers(co, &as->workers, &as->routes, dg);
	if (err == WEIR_OK)
		err = weir_kafka_log_aside(&as->log, co->log, &as->stop, dg);
	as->cf = (struct weir_snapshot_conf){.plan = pl,
					     .log = as->log,
					     .state_topic = co->state_topic,
					     .changelog_partitions = co->changelog_partitions,
					     .inputs = co->inputs,
					     .owned = as->owned,
					     .markers = co->keep.markers,
					     .workers = as->workers,
					     .worker_count = co->worker_count};
	return err;
}

void weir_aside_run(struct weir_core_aside *as)
{
	as->err = weir_kafka_input_await_stable(as->co->input, &as->stop, &as->dg);
	if (as->err == WEIR_OK)
		as->err = weir_restore(&as->cf, as->arguments, &as->restored, &as->dg);
	atomic_store_explicit(&as->done, true, memory_order_release);
}

void weir_aside_stop(struct weir_core_aside *as)
{
	atomic_store_explicit(&as->stop, true, memory_order_relaxed);
}

bool weir_aside_done(const struct weir_core_aside *as)
{
	return as && atomic_load_explicit(&as->done, memory_order_acquire);
}

enum weir_err weir_aside_result(struct weir_core *co, struct weir_diag **dg)
{
	struct weir_core_aside *as = co->aside;
	if (as->err == WEIR_OK)
		return WEIR_OK;
	*dg = as->dg;
	as->dg = NULL;
	return as->err;
}

/* Whether markers are there of all stages, out of which the next begin knows times and offsets. */
static bool has_markers(const struct weir_core *co, uint32_t p)
{
	bool all = true;
	for (uint32_t s = 0; s < co->plan->stage_count; s++)
		all &= co->keep.markers[s * co->changelog_partitions + p].bytes != 0;
	return all;
}

void weir_aside_choose(struct weir_core *co)
{
	for (uint32_t p = 0; p < co->changelog_partitions; p++)
		co->keep.kept[p] |= co->aside->cps[p] && has_markers(co, p);
}

void weir_aside_adopt(struct weir_core *co, uint64_t meanwhile)
{
	struct weir_core_aside *as = co->aside;
	for (uint32_t p = 0; p < co->changelog_partitions; p++) {
		as->cps[p] &= co->keep.kept[p];
		co->keep.fresh[p] = as->cps[p];
	}
	for (uint32_t w = 0; w < co->worker_count; w++)
		weir_worker_adopt(co->workers[w], as->workers[w], as->cps, co->changelog_partitions);
	if (meanwhile != UINT64_MAX)
		weir_core_log(co, 6,
			      "restored %u changelog partitions in %lld ms beside the others, which took %" PRIu64
			      " records meanwhile",
			      as->count, (long long)((co->now_us() - as->began_us) / 1000), meanwhile);
	weir_aside_destroy(co);
}

uint32_t weir_aside_count(const struct weir_core_aside *as)
{
	return as->count;
}

void weir_aside_destroy(struct weir_core *co)
{
	struct weir_core_aside *as = co->aside;
	if (!as)
		return;
	co->aside = NULL;
	for (uint32_t w = 0; as->workers && w < co->worker_count; w++)
		weir_worker_destroy(as->workers[w]);
	free(as->workers);
	weir_routes_fini(&as->routes);
	if (as->log)
		as->log->ops->close(as->log);
	free(as->cps);
	free(as->owned);
	weir_diag_destroy(as->dg);
	weir_mem_fini(&as->mem);
	free(as);
}
