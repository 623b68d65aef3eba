/* plan_bind.c: what of a plan waits for partition counts: which exchange leads to each stage, how many slots it has,
 * how partitions are numbered. @thread init */
#include "hotpath/topology/plan.h"

#include "hotpath/state/over.h"

/* The key expression of a branch that is the source's column of that name, unchanged. */
static bool key_named(const struct weir_plan_scan *sc, const struct weir_plan_branch *br, uint32_t key_count,
		      const char *name, uint32_t *out)
{
	for (uint32_t k = 0; k < key_count; k++) {
		const struct weir_expr *e = br->exprs[k];
		if (e->op != WEIR_EXPR_COLUMN || strcmp(sc->column_names[e->column], name) != 0)
			continue;
		*out = k;
		return true;
	}
	return false;
}

/* The same as direct_positions for a table, whose records have its primary key as key. */
static bool table_positions(const struct weir_table_def *def, const struct weir_plan_scan *sc,
			    const struct weir_plan_branch *br, uint32_t key_count, uint32_t *position, uint32_t *count)
{
	if (def->primary_key_count > 64)
		return false;
	for (uint32_t i = 0; i < def->primary_key_count; i++)
		if (!key_named(sc, br, key_count, def->columns[def->primary_key[i]].name, &position[(*count)++]))
			return false;
	return true;
}

/* How a source's keys are written: two sources with equal keys in one format are partitioned alike. */
static enum weir_format_kind key_format_of(const struct weir_table_def *def)
{
	if (def->options.has_key_format)
		return def->options.key_format.kind;
	if (def->options.key_fields || def->primary_key_count != 1)
		return WEIR_FORMAT_JSON;
	return weir_kind_is_string(def->columns[def->primary_key[0]].type.kind) ? WEIR_FORMAT_RAW : WEIR_FORMAT_JSON;
}

/* A key lies in one partition of each topic: in several of the source's. */
static bool reads_several(const struct weir_table_def *def)
{
	return def->options.topic_pattern != NULL ||
	       (def->options.topic != NULL && strchr(def->options.topic, ';') != NULL);
}

/* The group columns that make up the source's key, as positions in the stage's keys; false unless all are there
 * unchanged. */
static bool direct_positions(const struct weir_plan *pl, const struct weir_plan_branch *br, uint32_t key_count,
			     uint32_t *position, uint32_t *count)
{
	const struct weir_plan_scan *sc = &pl->scans[br->origin];
	const char *list = sc->table->options.key_fields;
	*count = 0;
	if (reads_several(sc->table))
		return false;
	if (sc->is_table && !list)
		return table_positions(sc->table, sc, br, key_count, position, count);
	if (!list || !*list)
		return false;
	for (const char *at = list; at && *at;) {
		const char *end = strchr(at, ';');
		size_t bytes = end ? (size_t)(end - at) : strlen(at);
		bool found = false;
		for (uint32_t k = 0; k < key_count && !found; k++) {
			const struct weir_expr *e = br->exprs[k];
			if (e->op != WEIR_EXPR_COLUMN)
				continue;
			const char *name = sc->column_names[e->column];
			if (strlen(name) == bytes && memcmp(name, at, bytes) == 0) {
				if (*count >= 64)
					return false;
				position[(*count)++] = k;
				found = true;
			}
		}
		if (!found)
			return false;
		at = end ? end + 1 : NULL;
	}
	return *count > 0;
}

/* One input is enough: what does not come through a topic is keyed as the topic is (repartition.c). */
static bool behind_topic(const struct weir_plan *pl, const struct weir_plan_stage *st)
{
	bool any = false;
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
		any |= br->from == WEIR_FROM_SCAN && pl->scans[br->origin].repartition >= 0;
	}
	return any;
}

/* The first input that is not a global table, if every such input comes from a scan: its rows can stay where they are,
 * since each slot has the whole table. NULL: no global table, or not so. */
static const struct weir_plan_branch *beside_global(const struct weir_plan *pl, const struct weir_plan_stage *st)
{
	const struct weir_plan_branch *first = NULL;
	bool any = false;
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
		any |= br->global;
		if (br->global)
			continue;
		if (br->from != WEIR_FROM_SCAN || br->rekeys)
			return NULL;
		if (first == NULL)
			first = br;
	}
	return any ? first : NULL;
}

bool weir_plan_stage_is_transient(const struct weir_plan_stage *st)
{
	return st->def.kind == WEIR_STATE_OVER && st->def.over->unnest;
}

uint32_t weir_plan_kept_stages(const struct weir_plan *pl)
{
	for (uint32_t s = 0; s < pl->stage_count; s++)
		if (!weir_plan_stage_is_transient(&pl->stages[s]))
			return pl->stage_count;
	return pl->repartition_count != 0 ? pl->stage_count : 0;
}

/* Whether its rows can pass where they are read: it looks at one at a time. */
static bool passes_through(const struct weir_plan *pl, const struct weir_plan_stage *st)
{
	bool scans = weir_plan_stage_is_transient(st);
	for (uint32_t i = 0; i < st->input_count; i++)
		scans = scans && pl->branches[st->inputs[i]].from == WEIR_FROM_SCAN;
	return scans;
}

bool weir_plan_source_key(const struct weir_plan *pl, const struct weir_plan_branch *br, uint32_t key_count,
			  struct weir_plan_source_key *out)
{
	if (br->from != WEIR_FROM_SCAN || br->rekeys)
		return false;
	const struct weir_table_def *def = pl->scans[br->origin].table;
	out->format = def->options.key_format;
	out->format.kind = key_format_of(def);
	return direct_positions(pl, br, key_count, out->position, &out->count);
}

bool weir_plan_keyed_alike(const struct weir_plan *pl, const struct weir_plan_stage *st, const char **why)
{
	uint32_t first[64], first_count = 0;
	if (behind_topic(pl, st) || beside_global(pl, st) != NULL || passes_through(pl, st))
		return true;
	if (st->def.shared) {
		*why = "sessions span keys";
		return false;
	}
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
		uint32_t position[64], count;
		if (br->from != WEIR_FROM_SCAN) {
			*why = "fed by another state";
			return false;
		}
		if (br->rekeys) {
			*why = "asked for";
			return false;
		}
		if (!direct_positions(pl, br, st->key_count, position, &count)) {
			*why = reads_several(pl->scans[br->origin].table)
				       ? "the source reads several topics"
				       : "the source's key.fields are not all group columns";
			return false;
		}
		const struct weir_plan_scan *sc = &pl->scans[br->origin];
		const struct weir_plan_scan *sc0 = &pl->scans[pl->branches[st->inputs[0]].origin];
		if (i == 0) {
			memcpy(first, position, sizeof first);
			first_count = count;
		} else if (count != first_count || memcmp(first, position, count * sizeof *position) != 0 ||
			   key_format_of(sc->table) != key_format_of(sc0->table)) {
			*why = "the sources differ in key or key format";
			return false;
		}
	}
	return true;
}

static void bind_exchange(struct weir_plan *pl, struct weir_plan_stage *st)
{
	st->exchange = WEIR_EXCHANGE_LOCAL;
	if (pl->force_local) {
		st->exchange_why = st->def.shared ? "sessions span keys" : "exchange=local";
		return;
	}
	if (!weir_plan_keyed_alike(pl, st, &st->exchange_why))
		return;
	const struct weir_plan_branch *beside = beside_global(pl, st);
	const struct weir_plan_scan *sc0 =
		&pl->scans[beside != NULL ? beside->origin : pl->branches[st->inputs[0]].origin];
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_scan *sc = &pl->scans[pl->branches[st->inputs[i]].origin];
		if (sc->partition_count == sc0->partition_count ||
		    (beside != NULL && pl->branches[st->inputs[i]].global))
			continue;
		st->exchange_why = weir_mem_printf(pl->mem, "%s has %u partitions, %s has %u", sc0->name,
						   sc0->partition_count, sc->name, sc->partition_count);
		return;
	}
	st->exchange = WEIR_EXCHANGE_DIRECT;
	st->slot_count = sc0->partition_count;
	st->broadcast = beside != NULL;
	if (st->broadcast) {
		st->exchange_why = "rows stay where they are: each slot has the whole global table";
		return;
	}
	st->exchange_why = behind_topic(pl, st)     ? "behind a repartition topic"
			   : passes_through(pl, st) ? "rows pass through where they are read"
						    : "grouped by the source's own key";
}

static void bind_repartitions(struct weir_plan *pl)
{
	for (uint32_t r = 0; r < pl->repartition_count; r++) {
		struct weir_plan_repartition *rp = &pl->repartitions[r];
		rp->upstream_count = 0;
		for (uint32_t i = 0; i < rp->input_count; i++) {
			const struct weir_plan_branch *br = &pl->branches[rp->inputs[i]];
			rp->base[i] = rp->upstream_count;
			rp->upstream_count += br->from == WEIR_FROM_SCAN ? pl->scans[br->origin].partition_count
									 : pl->stages[br->origin].slot_count;
		}
	}
}

enum weir_err weir_plan_bind(struct weir_plan *pl, const uint32_t *scan_partitions, uint32_t slots,
			     struct weir_diag **dg)
{
	pl->partition_count = 0;
	for (uint32_t i = 0; i < pl->scan_count; i++) {
		if (scan_partitions[i] == 0)
			return weir_diag_set(dg, WEIR_E_CONF, "source %s has no partitions", pl->scans[i].name);
		pl->scans[i].partition_count = scan_partitions[i];
		pl->scans[i].partition_base = pl->partition_count;
		pl->partition_count += scan_partitions[i];
	}
	pl->route_direct = true;
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		struct weir_plan_stage *st = &pl->stages[s];
		bind_exchange(pl, st);
		if (st->exchange == WEIR_EXCHANGE_DIRECT) {
			if (st->broadcast)
				pl->route_direct = false;
			continue;
		}
		st->slot_count = slots;
		for (uint32_t i = 0; i < st->input_count; i++)
			if (pl->branches[st->inputs[i]].from == WEIR_FROM_SCAN)
				pl->route_direct = false;
	}
	bind_repartitions(pl);
	return WEIR_OK;
}

uint32_t weir_plan_changelog_partitions(const struct weir_plan *pl, const struct weir_plan_stage *st)
{
	(void)st;
	uint32_t most = 1;
	for (uint32_t i = 0; i < pl->scan_count; i++)
		if (pl->scans[i].partition_count > most)
			most = pl->scans[i].partition_count;
	return most;
}
