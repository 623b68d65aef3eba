/* repartition.c: the topic exchange: a stage whose rows are not where its keys say is fed through a topic of its own,
 * which instances share (plan.h). Rewrites a finished plan: scan or stage -> sink (packed rows by key) ... scan ->
 * stage.
 * @thread init */
#include "hotpath/topology/plan.h"

/* The columns of the exchanged rows, as a table whose topic is the repartition topic. */
static struct weir_table_def *make_table(const struct weir_plan *pl, const struct weir_plan_stage *st,
					 const char *topic, struct weir_mem *m)
{
	const struct weir_plan_branch *br = &pl->branches[st->inputs[0]];
	struct weir_table_def *def = weir_mem_take(m, sizeof *def);
	struct weir_table_column *columns = weir_mem_take(m, (br->expr_count + 1) * sizeof *columns);
	for (uint32_t c = 0; c < br->expr_count; c++) {
		columns[c].name = c < st->key_count ? weir_mem_printf(m, "key%u", c)
						    : weir_mem_printf(m, "argument%u", c - st->key_count);
		columns[c].type = br->exprs[c]->type;
		columns[c].type.not_null = false;
		columns[c].kind = WEIR_COLUMN_PHYSICAL;
	}
	def->name = topic;
	def->columns = columns;
	def->column_count = br->expr_count;
	def->rowtime = -1;
	def->options.connector = WEIR_CONNECTOR_KAFKA;
	def->options.topic = topic;
	def->options.value_format.kind = def->options.key_format.kind = WEIR_FORMAT_PACKED;
	def->options.has_value_format = def->options.has_key_format = true;
	return def;
}

static void make_sink(struct weir_plan_sink *sk, const struct weir_table_def *def, uint32_t key_count, uint32_t number,
		      struct weir_mem *m)
{
	uint32_t n = def->column_count;
	const char **names = weir_mem_take(m, (n + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(m, (n + 1) * sizeof *types);
	uint32_t *all = weir_mem_take(m, (n + 1) * sizeof *all);
	for (uint32_t c = 0; c < n; c++) {
		names[c] = def->columns[c].name;
		types[c] = def->columns[c].type;
		all[c] = c;
	}
	*sk = (struct weir_plan_sink){.table = def,
				      .name = def->name,
				      .column_count = n,
				      .column_names = names,
				      .column_types = types,
				      .has_key = key_count > 0,
				      .key_format = def->options.key_format,
				      .window_start_column = -1,
				      .window_end_column = -1,
				      .key_count = key_count,
				      .key_columns = all,
				      .value_format = def->options.value_format,
				      .value_count = n,
				      .value_columns = all,
				      .timestamp_column = -1,
				      .headers_column = -1,
				      .repartition = (int32_t)number};
}

static void make_scan(struct weir_plan_scan *sc, const struct weir_table_def *def, const struct weir_plan_sink *sk,
		      uint32_t branch, uint32_t number, struct weir_mem *m)
{
	struct weir_field *fields = weir_mem_take(m, (def->column_count + 1) * sizeof *fields);
	uint32_t *branches = weir_mem_take(m, sizeof *branches);
	for (uint32_t c = 0; c < def->column_count; c++)
		fields[c] = (struct weir_field){.name = sk->column_names[c], .type = sk->column_types[c], .ordinal = c};
	*branches = branch;
	*sc = (struct weir_plan_scan){.table = def,
				      .name = def->name,
				      .value_format = def->options.value_format,
				      .key_format = def->options.key_format,
				      .value_count = def->column_count,
				      .value_fields = fields,
				      .all_count = def->column_count,
				      .all_fields = fields,
				      .column_count = def->column_count,
				      .column_names = sk->column_names,
				      .column_types = sk->column_types,
				      .allow_negative_time = true,
				      .repartition = (int32_t)number,
				      .branch_count = 1,
				      .branches = branches};
}

/* Room for one element behind the count of an array in m. */
static void *longer(struct weir_mem *m, const void *array, uint32_t count, size_t bytes)
{
	void *more = weir_mem_take(m, (count + 1) * bytes);
	if (count)
		memcpy(more, array, count * bytes);
	return more;
}

static enum weir_err exchange_by_topic(struct weir_plan *pl, uint32_t stage, const char *app, struct weir_mem *m,
				       struct weir_diag **dg)
{
	struct weir_plan_stage *st = &pl->stages[stage];
	if (st->def.kind == WEIR_STATE_ROWS || st->def.kind == WEIR_STATE_JOIN)
		return weir_diag_set(
			dg, WEIR_E_PLAN,
			"state %s (a join or a table) is not keyed as its sources are, and cannot go through a "
			"repartition topic: write the re-keyed stream to a topic of its own and join that, or "
			"leave exchange at auto",
			st->name);
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
		if (br->from == WEIR_FROM_STAGE && pl->stages[br->origin].def.changes)
			return weir_diag_set(dg, WEIR_E_PLAN,
					     "state %s is fed by updates (EMIT CHANGES) of state %s: that cannot go "
					     "through a repartition topic; leave exchange at auto",
					     st->name, pl->stages[br->origin].name);
	}
	struct weir_plan_repartition *rp;
	const char *topic = weir_mem_printf(m, "%s-%s-repartition", app, st->name);
	struct weir_table_def *def = make_table(pl, st, topic, m);
	pl->sinks = longer(m, pl->sinks, pl->sink_count, sizeof *pl->sinks);
	pl->scans = longer(m, pl->scans, pl->scan_count, sizeof *pl->scans);
	pl->branches = longer(m, pl->branches, pl->branch_count, sizeof *pl->branches);
	pl->repartitions = longer(m, pl->repartitions, pl->repartition_count, sizeof *pl->repartitions);
	uint32_t number = pl->repartition_count++;
	rp = &pl->repartitions[number];
	*rp = (struct weir_plan_repartition){.topic = topic,
					     .sink = pl->sink_count++,
					     .scan = pl->scan_count++,
					     .stage = stage,
					     .input_count = st->input_count,
					     .inputs = st->inputs,
					     .base = weir_mem_take(m, (st->input_count + 1) * sizeof(uint32_t))};
	uint32_t branch = pl->branch_count++;
	/* Sessions that span keys are one state: its rows go to one partition, as do those grouped by nothing. */
	make_sink(&pl->sinks[rp->sink], def, st->def.shared ? st->def.shared_keys : st->key_count, number, m);
	make_scan(&pl->scans[rp->scan], def, &pl->sinks[rp->sink], branch, number, m);
	const struct weir_expr **exprs = weir_mem_take(m, (def->column_count + 1) * sizeof *exprs);
	for (uint32_t c = 0; c < def->column_count; c++)
		exprs[c] = weir_expr_column(m, c, &def->columns[c].type, def->columns[c].name);
	pl->branches[branch] = (struct weir_plan_branch){.from = WEIR_FROM_SCAN,
							 .origin = rp->scan,
							 .to = WEIR_TO_STAGE,
							 .target = stage,
							 .expr_count = def->column_count,
							 .exprs = exprs};
	for (uint32_t i = 0; i < rp->input_count; i++) {
		pl->branches[rp->inputs[i]].to = WEIR_TO_SINK;
		pl->branches[rp->inputs[i]].target = rp->sink;
	}
	uint32_t *inputs = weir_mem_take(m, sizeof *inputs);
	*inputs = branch;
	st->inputs = inputs;
	st->input_count = 1;
	return WEIR_OK;
}

enum weir_err weir_plan_repartition(struct weir_plan *pl, const char *app, struct weir_mem *m, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	const char *why;
	for (uint32_t s = 0; s < pl->stage_count && err == WEIR_OK; s++)
		if (!weir_plan_keyed_alike(pl, &pl->stages[s], &why))
			err = exchange_by_topic(pl, s, app, m, dg);
	/* Every stage is fed by scans now. */
	for (uint32_t s = 0; s < pl->stage_count; s++)
		pl->stages[s].level = 1;
	pl->level_count = pl->stage_count ? 1 : 0;
	return err;
}

uint32_t weir_plan_upstream(const struct weir_plan *pl, uint32_t branch, uint32_t from)
{
	const struct weir_plan_repartition *rp = &pl->repartitions[pl->sinks[pl->branches[branch].target].repartition];
	uint32_t i = 0;
	while (rp->inputs[i] != branch)
		i++;
	return rp->base[i] + from;
}
