/* repartition.c: the topic exchange: a stage whose rows are not where its keys say is fed through a topic of its own,
 * which instances share (plan.h). Rewrites a finished plan: scan or stage -> sink (packed rows by key) ... scan ->
 * stage.
 *
 * A join has a topic for each side that needs one. A side whose source is keyed by what is joined stays as it is, if
 * its keys have bytes that everybody writes alike (one column, as text or as Kafka's serializers write numbers): the
 * other side's topic is keyed with the same bytes, so that equal keys meet in partitions of one number. Else both sides
 * go through topics.
 * @thread init */
#include "hotpath/topology/plan.h"

/* What column c of the exchanged rows is called where people see it (late.topic): as in the state it goes to, or as in
 * what it is computed from. */
static const char *column_name(const struct weir_plan *pl, const struct weir_plan_branch *br,
			       const struct weir_plan_stage *st, uint32_t c, struct weir_mem *m)
{
	const struct weir_expr *e = br->exprs[c];
	if (c < st->key_count && c < st->column_count)
		return st->column_names[c];
	uint32_t at = c + (br->side == 1 ? st->def.sides[0].col_count : 0);
	if (st->def.kind == WEIR_STATE_JOIN && at < st->column_count)
		return st->column_names[at];
	if (e->op == WEIR_EXPR_COLUMN)
		return br->from == WEIR_FROM_SCAN ? pl->scans[br->origin].column_names[e->column]
						  : pl->stages[br->origin].column_names[e->column];
	return weir_mem_printf(m, "argument%u", c - st->key_count);
}

/* The columns of the exchanged rows, as a table whose topic is the repartition topic. */
static struct weir_table_def *make_table(const struct weir_plan *pl, const struct weir_plan_branch *br,
					 const struct weir_plan_stage *st, const char *topic, struct weir_mem *m)
{
	struct weir_table_def *def = weir_mem_take(m, sizeof *def);
	struct weir_table_column *columns = weir_mem_take(m, (br->expr_count + 1) * sizeof *columns);
	for (uint32_t c = 0; c < br->expr_count; c++) {
		columns[c].name = column_name(pl, br, st, c, m);
		for (uint32_t i = 0; i < c; i++)
			if (strcmp(columns[i].name, columns[c].name) == 0)
				columns[c].name = weir_mem_printf(m, "%s-%u", columns[c].name, c);
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

/* What the records of a repartition topic have as keys. */
struct key_spec {
	uint32_t count;
	const uint32_t *columns; /* NULL: the first ones */
	struct weir_format_options format;
};

static void make_sink(struct weir_plan_sink *sk, const struct weir_table_def *def, const struct key_spec *key,
		      uint32_t number, struct weir_mem *m)
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
				      .has_key = key->count > 0,
				      .key_format = key->format,
				      .window_start_column = -1,
				      .window_end_column = -1,
				      .key_count = key->count,
				      .key_columns = key->columns ? key->columns : all,
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

/* Sends the branches inputs[0..count) of a stage, alike but for their origins, through topic; returns the branch that
 * brings their rows back to the stage. */
static uint32_t exchange_by_topic(struct weir_plan *pl, uint32_t stage, const uint32_t *inputs, uint32_t count,
				  const char *topic, const struct key_spec *key, struct weir_mem *m)
{
	const struct weir_plan_stage *st = &pl->stages[stage];
	const struct weir_plan_branch *first = &pl->branches[inputs[0]];
	bool table = first->table, retracts = first->retracts, needs_key = first->needs_key;
	uint32_t side = first->side;
	struct weir_table_def *def = make_table(pl, first, st, topic, m);
	pl->sinks = longer(m, pl->sinks, pl->sink_count, sizeof *pl->sinks);
	pl->scans = longer(m, pl->scans, pl->scan_count, sizeof *pl->scans);
	pl->branches = longer(m, pl->branches, pl->branch_count, sizeof *pl->branches);
	pl->repartitions = longer(m, pl->repartitions, pl->repartition_count, sizeof *pl->repartitions);
	uint32_t number = pl->repartition_count++;
	struct weir_plan_repartition *rp = &pl->repartitions[number];
	*rp = (struct weir_plan_repartition){.topic = topic,
					     .sink = pl->sink_count++,
					     .scan = pl->scan_count++,
					     .stage = stage,
					     .input_count = count,
					     .inputs = inputs,
					     .base = weir_mem_take(m, (count + 1) * sizeof(uint32_t))};
	uint32_t branch = pl->branch_count++;
	make_sink(&pl->sinks[rp->sink], def, key, number, m);
	make_scan(&pl->scans[rp->scan], def, &pl->sinks[rp->sink], branch, number, m);
	const struct weir_expr **exprs = weir_mem_take(m, (def->column_count + 1) * sizeof *exprs);
	for (uint32_t c = 0; c < def->column_count; c++)
		exprs[c] = weir_expr_column(m, c, &def->columns[c].type, def->columns[c].name);
	pl->branches[branch] = (struct weir_plan_branch){.from = WEIR_FROM_SCAN,
							 .origin = rp->scan,
							 .to = WEIR_TO_STAGE,
							 .target = stage,
							 .expr_count = def->column_count,
							 .exprs = exprs,
							 .side = side,
							 .table = table,
							 .needs_key = needs_key,
							 .retracts = retracts};
	for (uint32_t i = 0; i < count; i++) {
		pl->branches[inputs[i]].to = WEIR_TO_SINK;
		pl->branches[inputs[i]].target = rp->sink;
	}
	return branch;
}

/* The branches of one side of a join. */
static uint32_t side_inputs(const struct weir_plan *pl, const struct weir_plan_stage *st, uint32_t side, uint32_t **out,
			    struct weir_mem *m)
{
	uint32_t n = 0;
	uint32_t *inputs = *out = weir_mem_take(m, (st->input_count + 1) * sizeof *inputs);
	for (uint32_t i = 0; i < st->input_count; i++)
		if (pl->branches[st->inputs[i]].side == side)
			inputs[n++] = st->inputs[i];
	return n;
}

/* Whether keys of this type have the same bytes in the format, whoever writes them. */
static bool is_portable(enum weir_format_kind format, const struct weir_type *type)
{
	if (format == WEIR_FORMAT_RAW)
		return weir_kind_is_string(type->kind);
	return format == WEIR_FORMAT_KAFKA &&
	       (weir_kind_is_string(type->kind) || type->kind == WEIR_KIND_INT || type->kind == WEIR_KIND_BIGINT);
}

/* Whether a side of a join can stay as it is while the other one goes through a topic; *out says what that topic's keys
 * must be. */
static bool side_stays(const struct weir_plan *pl, const struct weir_plan_stage *st, const uint32_t *inputs,
		       uint32_t count, const struct weir_plan_branch *other, struct key_spec *out, struct weir_mem *m)
{
	uint32_t *column = weir_mem_take(m, sizeof *column);
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_plan_branch *br = &pl->branches[inputs[i]];
		struct weir_plan_source_key sk;
		if (br->rekeys || !weir_plan_source_key(pl, br, st->key_count, &sk) || sk.count != 1)
			return false;
		const struct weir_type *own = &br->exprs[sk.position[0]]->type;
		const struct weir_type *others = &other->exprs[sk.position[0]]->type;
		if (!is_portable(sk.format.kind, own) || !is_portable(sk.format.kind, others) ||
		    (own->kind != others->kind && !weir_kind_is_string(own->kind)) ||
		    (i > 0 && (*column != sk.position[0] || out->format.kind != sk.format.kind)))
			return false;
		*column = sk.position[0];
		*out = (struct key_spec){.count = 1, .columns = column, .format = sk.format};
	}
	return count > 0;
}

static void exchange_join(struct weir_plan *pl, uint32_t stage, const char *app, struct weir_mem *m)
{
	static const char *const names[2] = {"left", "right"};
	struct weir_plan_stage *st = &pl->stages[stage];
	/* By a foreign key: the left table's own key stands behind it, and has no part in where a row lies. */
	struct key_spec all = {.count = st->def.foreign != 0 ? st->def.foreign : st->key_count,
			       .format = {.kind = WEIR_FORMAT_PACKED}},
			key = all;
	uint32_t *side[2], count[2], stays = 2;
	for (uint32_t s = 0; s < 2; s++)
		count[s] = side_inputs(pl, st, s, &side[s], m);
	for (uint32_t s = 0; s < 2 && stays == 2; s++)
		if (count[1 - s] != 0 && side_stays(pl, st, side[s], count[s], &pl->branches[side[1 - s][0]], &key, m))
			stays = s;
	uint32_t *inputs = weir_mem_take(m, (st->input_count + 1) * sizeof *inputs), n = 0;
	for (uint32_t s = 0; s < 2; s++) {
		if (count[s] == 0)
			continue;
		if (s == stays) {
			memcpy(inputs + n, side[s], count[s] * sizeof *inputs);
			n += count[s];
			continue;
		}
		const char *topic = weir_mem_printf(m, "%s-%s-%s-repartition", app, st->name, names[s]);
		inputs[n++] = exchange_by_topic(pl, stage, side[s], count[s], topic, stays == 2 ? &all : &key, m);
	}
	st->inputs = inputs;
	st->input_count = n;
}

static void exchange_stage(struct weir_plan *pl, uint32_t stage, const char *app, struct weir_mem *m)
{
	struct weir_plan_stage *st = &pl->stages[stage];
	const char *topic = weir_mem_printf(m, "%s-%s-repartition", app, st->name);
	uint32_t *inputs = weir_mem_take(m, sizeof *inputs);
	/* Sessions that span keys are one state: its rows go to one partition, as do those grouped by nothing. */
	struct key_spec key = {.count = st->def.shared ? st->def.shared_keys : st->key_count,
			       .format = {.kind = WEIR_FORMAT_PACKED}};
	*inputs = exchange_by_topic(pl, stage, st->inputs, st->input_count, topic, &key, m);
	st->inputs = inputs;
	st->input_count = 1;
}

void weir_plan_repartition(struct weir_plan *pl, const char *app, struct weir_mem *m)
{
	const char *why;
	for (uint32_t s = 0; s < pl->stage_count; s++) {
		if (weir_plan_keyed_alike(pl, &pl->stages[s], &why))
			continue;
		if (pl->stages[s].def.kind == WEIR_STATE_JOIN)
			exchange_join(pl, s, app, m);
		else
			exchange_stage(pl, s, app, m);
	}
	/* Every stage is fed by scans now. */
	for (uint32_t s = 0; s < pl->stage_count; s++)
		pl->stages[s].level = 1;
	pl->level_count = pl->stage_count ? 1 : 0;
}

uint32_t weir_plan_upstream(const struct weir_plan *pl, uint32_t branch, uint32_t from)
{
	const struct weir_plan_repartition *rp = &pl->repartitions[pl->sinks[pl->branches[branch].target].repartition];
	uint32_t i = 0;
	while (rp->inputs[i] != branch)
		i++;
	return rp->base[i] + from;
}
