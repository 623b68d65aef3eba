/* budget.c: how memory.max is divided before the first record, and what is held of it (budget.h). @thread init, io
 *
 * Measured with the jobs of tests/integration/memory_small.sh; the process's code, libraries, stacks and what the
 * allocator keeps for itself come on top, and take 16 MiB or so. */
#include "io/budget.h"

enum {
	FRAGMENTS_LEAST = 2,
	FRAGMENTS_MOST = 8,
	FRAGMENT_BYTES = 512 << 10, /* decoder, columns, keys, programs */
	ENGINE_BYTES = 32 << 20,    /* one order point in flight, and what a small state may grow by until it */
	WRITER_BYTES = 192 << 10,   /* a partition of a result or changelog topic: the stored batch being filled */
	POINT_RECORDS = 1 << 16,    /* what follows is of an order point of so many: */
	JOIN_BYTES = 12 << 20,      /* rows that a join holds */
	JOIN_ORDER_BYTES = 7 << 20, /* and their order, which each worker makes of all of them; */
	JOIN_BESIDE_BYTES = 2 << 20 /* beside a table of its own ones */
};

static bool feeds_stage(const struct weir_plan *pl, const struct weir_plan_stage *ps)
{
	for (uint32_t i = 0; i < ps->branch_count; i++)
		if (pl->branches[ps->branches[i]].to == WEIR_TO_STAGE)
			return true;
	return false;
}

/* Records of an order point at most: it comes for its bytes, too, and of those no record takes fewer than this. */
static uint64_t point_records(const struct weir_settings *st)
{
	enum { RECORD_BYTES_LEAST = 16 };
	uint64_t records = (uint64_t)st->order_point_records,
		 most = (uint64_t)st->order_point_bytes / RECORD_BYTES_LEAST;
	return records < most ? records : most;
}

static bool is_recorded(const struct weir_plan_sink *sk)
{
	return sk->table != NULL && sk->table->options.connector == WEIR_CONNECTOR_RECORDED;
}

/* How many bytes each worker needs to order the rows of a join's order point: least where there is nothing to order
 * (a table's history), or only own rows (beside a table). */
static uint64_t order_bytes(const struct weir_plan_stage *ps)
{
	const struct weir_state_def *def = &ps->def;
	bool beside = def->sides[0].table != def->sides[1].table && !def->versioned && def->foreign == 0;
	return beside || ps->input_count < 2 ? JOIN_BESIDE_BYTES : JOIN_ORDER_BYTES;
}

void weir_budget_make(struct weir_budget *out, const struct weir_plan *pl, const struct weir_settings *st,
		      uint32_t workers)
{
	bool at_once = workers == 1 || pl->route_direct; /* a scan's batch needs one, whatever there are */
	uint64_t pools = 0, joins = 0, order = 0, partitions = 1, writers = 0, records = point_records(st);
	for (uint32_t s = 0; s < pl->sink_count; s++)
		writers += is_recorded(&pl->sinks[s]);
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		pools += feeds_stage(pl, &pl->stages[s]);
		joins += pl->stages[s].def.kind == WEIR_STATE_JOIN;
		order += pl->stages[s].def.kind == WEIR_STATE_JOIN ? order_bytes(&pl->stages[s]) : 0;
		writers += writers != 0 && !weir_plan_stage_is_transient(&pl->stages[s]);
	}
	for (uint32_t s = 0; s < pl->scan_count; s++)
		partitions = pl->scans[s].partition_count > partitions ? pl->scans[s].partition_count : partitions;
	uint64_t each = (pools + (at_once ? 0 : pl->scan_count)) * FRAGMENT_BYTES; /* a fragment of every pool */
	uint64_t fixed = at_once ? (uint64_t)pl->scan_count * FRAGMENT_BYTES : 0;
	uint64_t most = each != 0 ? st->memory_max / 16 / (each * workers) : FRAGMENTS_MOST;
	out->fragments = most < FRAGMENTS_LEAST  ? FRAGMENTS_LEAST
			 : most > FRAGMENTS_MOST ? FRAGMENTS_MOST
						 : (uint32_t)most;
	out->fixed_bytes = fixed + out->fragments * each;
	out->least = ENGINE_BYTES + workers * (fixed + FRAGMENTS_LEAST * each + order / POINT_RECORDS * records) +
		     joins * JOIN_BYTES / POINT_RECORDS * records + writers * partitions * WRITER_BYTES;
	out->least = weir_align_up(out->least, 1 << 20);
}

uint64_t weir_budget_flying(const struct weir_feed_conf *cf)
{
	uint64_t bytes = 0;
	for (uint32_t s = 0; s < cf->plan->scan_count; s++)
		bytes += cf->streams[s]->ops->memory ? cf->streams[s]->ops->memory(cf->streams[s]) : 0;
	for (uint32_t w = 0; w < cf->worker_count; w++)
		bytes += atomic_load_explicit(&cf->workers[w]->bundle_bytes, memory_order_relaxed) +
			 atomic_load_explicit(&cf->workers[w]->building_bytes, memory_order_relaxed);
	return bytes;
}

uint64_t weir_budget_state(const struct weir_feed_conf *cf)
{
	uint64_t bytes = 0;
	for (uint32_t w = 0; w < cf->worker_count; w++)
		bytes += weir_arena_bytes(cf->workers[w]->arena);
	return bytes;
}

uint64_t weir_budget_held(const struct weir_feed_conf *cf)
{
	uint64_t bytes = 0;
	for (uint32_t w = 0; w < cf->worker_count; w++)
		bytes += atomic_load_explicit(&cf->workers[w]->held_bytes, memory_order_relaxed);
	return bytes;
}
