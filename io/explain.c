/* explain.c: what `weir explain` prints: the topology, then what runs: scans, stages with their exchange, state and
 * emission, sinks. As text, DOT or JSON; nothing is opened, only the folders of recorded topics are listed. Cold path,
 * @thread init. */
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/topology/describe.h"
#include "hotpath/state/over.h"
#include "hotpath/topology/plan.h"
#include "hotpath/weir.h"
#include "io/core.h"
#include "io/recorded/recorded.h"
#include "io/topics.h"

struct explain {
	struct weir_topology *tp;
	const struct weir_plan *pl;
	const struct weir_plan *shared; /* the same with exchange=topic; NULL: it cannot be */
	struct weir_settings settings;
	const char *app;
	struct weir_buf out;
};

static const char *const guarantees[] = {"at_least_once", "exactly_once", "at_most_once"};

/* ---- pieces ---- */

static void put_size(struct weir_buf *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	uint64_t tenths = bytes * 10;
	size_t u = 0;
	while (tenths >= 10240 && u + 1 < WEIR_COUNT_OF(units)) {
		tenths /= 1024;
		u++;
	}
	if (tenths % 10 == 0 || u == 0)
		weir_buf_printf(out, "%llu %s", (unsigned long long)(tenths / 10), units[u]);
	else
		weir_buf_printf(out, "%llu.%llu %s", (unsigned long long)(tenths / 10),
				(unsigned long long)(tenths % 10), units[u]);
}

/* Where a table is: "recorded topic order.placed in rec", "kafka topic a", "datagen". */
static void put_place(const struct weir_table_def *t, struct weir_buf *out)
{
	const struct weir_table_options *o = &t->options;
	weir_buf_puts(out, weir_connector_name(o->connector));
	if (o->topic != NULL || o->topic_pattern != NULL)
		weir_buf_printf(out, " %s %s", o->topic != NULL ? "topic" : "topics like", weir_table_topic(t));
	if (o->path != NULL)
		weir_buf_printf(out, " in %s", o->path);
}

/* What a branch starts from. */
struct origin {
	const char *kind;
	const char *name;
	const char *const *columns;
};

static struct origin origin_of(const struct explain *ex, const struct weir_plan_branch *br)
{
	if (br->from == WEIR_FROM_SCAN) {
		const struct weir_plan_scan *sc = &ex->pl->scans[br->origin];
		return (struct origin){"scan", sc->name, sc->column_names};
	}
	const struct weir_plan_stage *st = &ex->pl->stages[br->origin];
	return (struct origin){"stage", st->name, st->column_names};
}

static void put_exprs(const struct weir_plan_branch *br, uint32_t from, uint32_t to, const char *const *columns,
		      const char *const *names, struct weir_buf *out)
{
	for (uint32_t i = from; i < to; i++) {
		weir_buf_puts(out, i == from ? "" : ", ");
		size_t at = out->bytes;
		weir_expr_print(br->exprs[i], columns, out);
		if (names != NULL &&
		    (out->bytes - at != strlen(names[i]) || memcmp(out->data + at, names[i], out->bytes - at) != 0))
			weir_buf_printf(out, " AS %s", names[i]);
	}
}

static void put_emission(const struct explain *ex, const struct weir_plan_stage *st, struct weir_buf *out)
{
	if (!st->def.changes)
		weir_buf_puts(out, "EMIT FINAL");
	else
		weir_buf_printf(out, "EMIT CHANGES%s", ex->settings.emit_coalesce ? "" : ", every update");
}

static struct weir_window_spec window_of(const struct weir_plan_stage *st)
{
	const struct weir_state_def *d = &st->def;
	struct weir_window_spec w = {.size_ms = d->size_ms,
				     .advance_ms = d->advance_ms,
				     .offset_ms = d->offset_ms,
				     .gap_ms = d->gap_ms,
				     .shared = d->shared,
				     .shared_keys = d->shared_keys};
	w.kind = d->kind == WEIR_STATE_TABLE || d->side_count != 0 ? WEIR_WINDOW_NONE
		 : d->kind == WEIR_STATE_SESSION                   ? WEIR_WINDOW_SESSION
		 : d->kind == WEIR_STATE_SLIDING                   ? WEIR_WINDOW_SLIDING
		 : d->cumulative                                   ? WEIR_WINDOW_CUMULATE
		 : d->advance_ms == d->size_ms                     ? WEIR_WINDOW_TUMBLE
								   : WEIR_WINDOW_HOP;
	return w;
}

/* ---- text ---- */

static void text_scan(struct explain *ex, const struct weir_plan_scan *sc)
{
	struct weir_buf *out = &ex->out;
	char type[128];
	weir_buf_printf(out, "  Scan %s: ", sc->name);
	put_place(sc->table, out);
	if (sc->table->options.has_value_format)
		weir_buf_printf(out, ", value %s", weir_format_name(sc->table->options.value_format.kind));
	if (sc->key_count != 0)
		weir_buf_printf(out, ", key %s", weir_format_name(sc->key_format.kind));
	weir_buf_puts(out, "\n    reads: ");
	for (uint32_t i = 0; i < sc->column_count; i++)
		weir_buf_printf(out, "%s%s %s", i == 0 ? "" : ", ", sc->column_names[i],
				weir_type_text(&sc->column_types[i], type, sizeof type));
	weir_buf_puts(out, sc->column_count == 0 ? "no column\n    time: " : "\n    time: ");
	if (sc->time != NULL)
		weir_expr_print(sc->time, sc->column_names, out);
	else
		weir_buf_puts(out, "the record's timestamp");
	weir_buf_puts(out, ", grace ");
	weir_duration_put(out, sc->grace_ms);
	weir_buf_puts(out, sc->is_global ? "\n    a global table: loaded before anything else is read\n" : "\n");
}

static void text_input(struct explain *ex, uint32_t branch)
{
	const struct weir_plan_branch *br = &ex->pl->branches[branch];
	struct origin from = origin_of(ex, br);
	struct weir_buf *out = &ex->out;
	weir_buf_printf(out, "    from %s %s", from.kind, from.name);
	if (br->filter != NULL) {
		weir_buf_puts(out, " where ");
		weir_expr_print(br->filter, from.columns, out);
	}
	if (br->to == WEIR_TO_SINK) {
		weir_buf_puts(out, ": ");
		put_exprs(br, 0, br->expr_count, from.columns, ex->pl->sinks[br->target].column_names, out);
	} else {
		uint32_t keys = ex->pl->stages[br->target].key_count;
		weir_buf_puts(out, keys != 0 ? ": by " : ": one group");
		put_exprs(br, 0, keys, from.columns, NULL, out);
		if (br->expr_count > keys)
			weir_buf_puts(out, "; over ");
		put_exprs(br, keys, br->expr_count, from.columns, NULL, out);
	}
	weir_buf_puts(out, "\n");
}

/* "join of a stream and a table": what meets, and how far apart in time. One that nothing comes to on the right keeps
 * a table for what its rows were (weir_planner_history). */
static void put_join(const struct weir_plan *pl, const struct weir_plan_stage *st, struct weir_buf *out)
{
	const struct weir_state_def *def = &st->def;
	bool right = false, global = false;
	for (uint32_t i = 0; i < st->input_count; i++) {
		right = right || pl->branches[st->inputs[i]].side == 1;
		global = global || pl->branches[st->inputs[i]].global;
	}
	if (!right) {
		weir_buf_puts(out, "a table's rows, for what they were when they change");
		return;
	}
	weir_buf_puts(out, "join of ");
	for (uint32_t s = 0; s < 2; s++)
		weir_buf_printf(out, "%s%s%s", s == 1 ? " and " : "",
				!def->sides[s].table ? "a stream"
				: s == 1 && global   ? "a global table"
				: def->versioned     ? "a table as of the stream's time"
						     : "a table",
				def->sides[s].outer ? " (kept without a match)" : "");
	if (def->versioned) {
		weir_buf_puts(out, ", grace ");
		weir_duration_put(out, def->grace_ms);
	}
	if (weir_join_in_windows(def)) {
		struct weir_window_spec w = {.kind = def->advance_ms < def->size_ms ? WEIR_WINDOW_HOP
										    : WEIR_WINDOW_TUMBLE,
					     .size_ms = def->size_ms,
					     .advance_ms = def->advance_ms,
					     .offset_ms = def->offset_ms};
		weir_buf_puts(out, ", ");
		weir_window_put(out, &w);
		weir_buf_puts(out, ", grace ");
		weir_duration_put(out, def->grace_ms);
		return;
	}
	if (!def->within)
		return;
	weir_buf_puts(out, ", from ");
	weir_duration_put(out, def->before_ms);
	weir_buf_puts(out, " before to ");
	weir_duration_put(out, def->after_ms);
	weir_buf_puts(out, " after, grace ");
	weir_duration_put(out, def->grace_ms);
}

/* Functions OVER: what of earlier rows they need. */
static void put_over(const struct weir_state_def *def, struct weir_buf *out)
{
	const struct weir_over_def *ov = def->over;
	if (ov->unnest) {
		weir_buf_printf(out, "UNNEST%s", ov->outer ? " (rows without elements stay)" : "");
		return;
	}
	weir_buf_puts(out, "functions OVER ");
	for (uint32_t f = 0; f < ov->fn_count; f++)
		weir_buf_printf(out, "%s%s", f == 0 ? "" : ", ", ov->fns[f].agg.text);
	weir_buf_puts(out, ", grace ");
	weir_duration_put(out, def->grace_ms);
	weir_buf_puts(out, ", keeps ");
	if (ov->timed) {
		weir_duration_put(out, def->before_ms);
		weir_buf_puts(out, " of rows");
	} else {
		weir_buf_printf(out, "%lld row%s of each key for ever", (long long)weir_max_i64(ov->keep_rows, 1),
				ov->keep_rows > 1 ? "s" : "");
	}
}

static void text_stage(struct explain *ex, const struct weir_plan_stage *st)
{
	struct weir_buf *out = &ex->out;
	char type[128];
	struct weir_window_spec w = window_of(st);
	weir_buf_printf(out, "  Stage %s (level %u): ", st->name, st->level);
	if (st->def.kind == WEIR_STATE_JOIN)
		put_join(ex->pl, st, out);
	else if (st->def.kind == WEIR_STATE_ROWS)
		weir_buf_puts(out, "the latest row of each key");
	else if (st->def.kind == WEIR_STATE_OVER)
		put_over(&st->def, out);
	else
		weir_window_put(out, &w);
	if (w.kind != WEIR_WINDOW_NONE) {
		weir_buf_puts(out, ", grace ");
		weir_duration_put(out, st->def.grace_ms);
	}
	if (st->def.kind != WEIR_STATE_JOIN && st->def.kind != WEIR_STATE_OVER) {
		weir_buf_puts(out, ", ");
		put_emission(ex, st, out);
	}
	if (st->exchange == WEIR_EXCHANGE_DIRECT)
		weir_buf_puts(out, "\n    exchange: direct, a slot per partition");
	else
		weir_buf_printf(out, "\n    exchange: local, %u slots", ex->settings.slots);
	if (st->exchange_why != NULL)
		weir_buf_printf(out, " (%s)", st->exchange_why);
	weir_buf_puts(out, "\n");
	for (uint32_t i = 0; i < st->input_count; i++)
		text_input(ex, st->inputs[i]);
	if (st->residual != NULL) {
		weir_buf_puts(out, "    a match needs: ");
		weir_expr_print(st->residual, st->column_names, out);
		weir_buf_puts(out, "\n");
	}
	weir_buf_puts(out, st->def.side_count != 0 ? "    " : "    aggregates: ");
	for (uint32_t i = 0; i < st->def.agg_count && st->def.side_count == 0; i++)
		weir_buf_printf(out, "%s%s %s", i == 0 ? "" : ", ",
				st->def.aggs[i].text != NULL ? st->def.aggs[i].text
							     : st->column_names[st->key_count + i],
				weir_type_text(&st->def.aggs[i].result_type, type, sizeof type));
	if (st->def.side_count == 0)
		weir_buf_puts(out, st->def.agg_count == 0 ? "none\n    " : "\n    ");
	if (weir_plan_stage_is_transient(st) && weir_plan_kept_stages(ex->pl) == 0) {
		weir_buf_puts(out, "keeps nothing beyond an order point: no changelog\n");
		return;
	}
	weir_buf_printf(out, "state: %u bytes and the key%s per entry", st->def.head_bytes + st->def.agg_bytes,
			st->def.side_count != 0 ? " and row" : "");
	if (st->def.kind == WEIR_STATE_WINDOW && st->def.pane_ms != st->def.size_ms && !st->def.cumulative) {
		weir_buf_puts(out, ", in panes of ");
		weir_duration_put(out, st->def.pane_ms);
	}
	switch (weir_plan_growth_of(ex->pl, st)) {
	case WEIR_GROWTH_BOUNDED:
		break;
	case WEIR_GROWTH_TTL:
		weir_buf_puts(out, ", kept for ");
		weir_duration_put(out, st->def.ttl_ms);
		break;
	case WEIR_GROWTH_KEYS:
		weir_buf_puts(out, ", grows with its keys (no state.ttl)");
		break;
	case WEIR_GROWTH_KEYS_ALWAYS:
		weir_buf_puts(out, ", grows with its keys");
		break;
	}
	weir_buf_printf(out, "; changelog %s-%s-changelog\n", ex->app, st->def.name);
}

static void text_sink(struct explain *ex, uint32_t sink)
{
	const struct weir_plan_sink *sk = &ex->pl->sinks[sink];
	struct weir_buf *out = &ex->out;
	weir_buf_printf(out, "  Sink %s: ", sk->name);
	if (sk->table != NULL)
		put_place(sk->table, out);
	else
		weir_buf_puts(out, "standard output");
	if (sk->has_key) {
		weir_buf_puts(out, ", key ");
		for (uint32_t i = 0; i < sk->key_count; i++)
			weir_buf_printf(out, "%s%s", i == 0 ? "" : ", ", sk->column_names[sk->key_columns[i]]);
		weir_buf_printf(out, " (%s)", sk->key_windowed ? "windowed" : weir_format_name(sk->key_format.kind));
	} else if (sk->table != NULL && sk->table->options.has_value_format) {
		weir_buf_puts(out, ", no key");
	}
	if (sk->table != NULL && sk->table->options.has_value_format)
		weir_buf_printf(out, ", value %s", weir_format_name(sk->value_format.kind));
	weir_buf_puts(out, sk->is_table ? ", a table\n" : "\n");
	for (uint32_t i = 0; i < ex->pl->branch_count; i++) {
		if (ex->pl->branches[i].to == WEIR_TO_SINK && ex->pl->branches[i].target == sink)
			text_input(ex, i);
	}
}

/* ---- where rows are re-keyed ---- */

static const struct weir_plan_stage *stage_of(const struct weir_plan *pl, const struct weir_node *n)
{
	for (uint32_t s = 0; n->state_name != NULL && s < pl->stage_count; s++)
		if (strcmp(pl->stages[s].name, n->state_name) == 0)
			return &pl->stages[s];
	return NULL;
}

/* The repartition topic that rows of input k of a node with stage st come through; NULL: none. */
static const struct weir_plan_repartition *topic_before(const struct weir_plan *pl, const struct weir_node *n,
							const struct weir_plan_stage *st, uint32_t k)
{
	for (uint32_t i = 0; i < st->input_count; i++) {
		const struct weir_plan_branch *br = &pl->branches[st->inputs[i]];
		if ((n->input_count == 1 || br->side == k) && br->from == WEIR_FROM_SCAN &&
		    pl->scans[br->origin].repartition >= 0)
			return &pl->repartitions[pl->scans[br->origin].repartition];
	}
	return NULL;
}

/* Topologies cut where repartition topics are, or would be if instances shared the work (the plan ex->shared says
 * which). Names live in the topology's memory. */
static void topology_text(struct explain *ex)
{
	static const char *const sides[] = {"-left", "-right"};
	const struct weir_plan *pl = ex->shared;
	uint32_t count = 0, room = 1;
	for (uint32_t i = 0; i < weir_topology_node_count(ex->tp); i++)
		room += weir_topology_node(ex->tp, i)->input_count;
	struct weir_cut *cuts = weir_xcalloc(room, sizeof *cuts);
	for (uint32_t i = 0; pl != NULL && i < weir_topology_node_count(ex->tp); i++) {
		const struct weir_node *n = weir_topology_node(ex->tp, i);
		const struct weir_plan_stage *st = stage_of(pl, n);
		for (uint32_t k = 0; st != NULL && k < n->input_count; k++) {
			const struct weir_plan_repartition *rp = topic_before(pl, n, st, k);
			if (rp != NULL)
				cuts[count++] = (struct weir_cut){i, k,
								  weir_mem_printf(pl->mem, "%s%s-repartition", st->name,
										  n->input_count == 2 ? sides[k] : ""),
								  rp->topic};
		}
	}
	weir_topology_put_text(ex->tp, ex->pl, cuts, count, &ex->out);
	if (count != 0 && ex->pl->repartition_count == 0)
		weir_buf_puts(&ex->out,
			      "Rows of the repartition topics above move in memory: the topics are written with "
			      "exchange=topic.\n\n");
	free(cuts);
}

static void explain_text(struct explain *ex)
{
	topology_text(ex);
	const struct weir_settings *st = &ex->settings;
	weir_buf_printf(&ex->out, "Plan: application %s, %s, %u worker%s\n  Memory: memory.max ", ex->app,
			guarantees[st->guarantee], st->workers, st->workers == 1 ? "" : "s");
	put_size(&ex->out, st->memory_max);
	weir_buf_puts(&ex->out, ", of it ");
	put_size(&ex->out, st->memory_max / 4);
	weir_buf_puts(&ex->out, " for data in flight, the rest for state\n");
	for (uint32_t i = 0; i < ex->pl->scan_count; i++)
		text_scan(ex, &ex->pl->scans[i]);
	for (uint32_t i = 0; i < ex->pl->stage_count; i++)
		text_stage(ex, &ex->pl->stages[i]);
	for (uint32_t i = 0; i < ex->pl->sink_count; i++)
		text_sink(ex, i);
}

/* ---- DOT: scans, stages and sinks, branches as edges ---- */

static void dot_label(struct weir_buf *out, const char *id, uint32_t number, const char *shape, struct weir_buf *label)
{
	weir_buf_put_byte(label, 0);
	weir_buf_printf(out, "  %s%u [shape=%s, label=\"", id, number, shape);
	weir_dot_put(out, (const char *)label->data);
	weir_buf_puts(out, "\"];\n");
	label->bytes = 0;
}

static void explain_dot(struct explain *ex)
{
	struct weir_buf *out = &ex->out, label = {0};
	weir_buf_puts(out, "digraph weir {\n  rankdir=LR;\n");
	for (uint32_t i = 0; i < ex->pl->scan_count; i++) {
		weir_buf_printf(&label, "%s\n", ex->pl->scans[i].name);
		put_place(ex->pl->scans[i].table, &label);
		dot_label(out, "scan", i, "cds", &label);
	}
	for (uint32_t i = 0; i < ex->pl->stage_count; i++) {
		const struct weir_plan_stage *st = &ex->pl->stages[i];
		struct weir_window_spec w = window_of(st);
		weir_buf_printf(&label, "%s\n", st->name);
		weir_window_put(&label, &w);
		weir_buf_puts(&label, "\n");
		put_emission(ex, st, &label);
		dot_label(out, "stage", i, "cylinder", &label);
	}
	for (uint32_t i = 0; i < ex->pl->sink_count; i++) {
		const struct weir_plan_sink *sk = &ex->pl->sinks[i];
		weir_buf_printf(&label, "%s\n", sk->name);
		if (sk->table != NULL)
			put_place(sk->table, &label);
		else
			weir_buf_puts(&label, "standard output");
		dot_label(out, "sink", i, "cds", &label);
	}
	for (uint32_t i = 0; i < ex->pl->branch_count; i++) {
		const struct weir_plan_branch *br = &ex->pl->branches[i];
		struct origin from = origin_of(ex, br);
		if (br->to == WEIR_TO_STAGE)
			weir_buf_puts(&label,
				      ex->pl->stages[br->target].exchange == WEIR_EXCHANGE_DIRECT ? "direct" : "local");
		if (br->filter != NULL) {
			weir_buf_puts(&label, label.bytes != 0 ? "\n" : "");
			weir_expr_print(br->filter, from.columns, &label);
		}
		weir_buf_put_byte(&label, 0);
		weir_buf_printf(out, "  %s%u -> %s%u [label=\"", from.kind, br->origin,
				br->to == WEIR_TO_STAGE ? "stage" : "sink", br->target);
		weir_dot_put(out, (const char *)label.data);
		weir_buf_puts(out, "\"];\n");
		label.bytes = 0;
	}
	weir_buf_puts(out, "}\n");
	weir_buf_fini(&label);
}

/* ---- JSON ---- */

static void json_member(struct weir_buf *out, const char *name, const char *value)
{
	weir_buf_printf(out, ",\"%s\":", name);
	weir_json_put(out, value);
}

static void json_columns(struct weir_buf *out, const char *const *names, const struct weir_type *types, uint32_t count)
{
	char type[128];
	weir_buf_puts(out, ",\"columns\":[");
	for (uint32_t i = 0; i < count; i++) {
		weir_buf_puts(out, i == 0 ? "{\"name\":" : ",{\"name\":");
		weir_json_put(out, names[i]);
		json_member(out, "type", weir_type_text(&types[i], type, sizeof type));
		weir_buf_puts(out, "}");
	}
	weir_buf_puts(out, "]");
}

static void json_expr(struct weir_buf *out, const struct weir_expr *e, const char *const *columns)
{
	struct weir_buf text = {0};
	weir_expr_print(e, columns, &text);
	weir_buf_put_byte(&text, 0);
	weir_json_put(out, (const char *)text.data);
	weir_buf_fini(&text);
}

static void json_place(struct weir_buf *out, const struct weir_table_def *t)
{
	if (t == NULL) {
		json_member(out, "connector", "stdout");
		return;
	}
	json_member(out, "connector", weir_connector_name(t->options.connector));
	if (t->options.topic != NULL)
		json_member(out, "topic", t->options.topic);
	if (t->options.topic_pattern != NULL)
		json_member(out, "topic_pattern", t->options.topic_pattern);
	if (t->options.path != NULL)
		json_member(out, "path", t->options.path);
	if (t->options.has_value_format)
		json_member(out, "value_format", weir_format_name(t->options.value_format.kind));
}

static void json_stage(struct explain *ex, const struct weir_plan_stage *st)
{
	struct weir_buf *out = &ex->out;
	static const char *const kinds[] = {"none", "tumble", "hop", "session", "cumulate", "sliding"};
	struct weir_window_spec w = window_of(st);
	weir_buf_puts(out, "{\"name\":");
	weir_json_put(out, st->name);
	weir_buf_printf(out, ",\"level\":%u,\"window\":\"%s\"", st->level, kinds[w.kind]);
	if (w.kind == WEIR_WINDOW_SESSION)
		weir_buf_printf(out, ",\"gap_ms\":%lld", (long long)w.gap_ms);
	else if (w.kind == WEIR_WINDOW_SLIDING)
		weir_buf_printf(out, ",\"size_ms\":%lld", (long long)w.size_ms);
	else if (w.kind != WEIR_WINDOW_NONE)
		weir_buf_printf(out, ",\"size_ms\":%lld,\"advance_ms\":%lld", (long long)w.size_ms,
				(long long)w.advance_ms);
	weir_buf_printf(out, ",\"grace_ms\":%lld,\"emit\":\"%s\",\"exchange\":\"%s\"", (long long)st->def.grace_ms,
			st->def.changes ? "changes" : "final",
			st->exchange == WEIR_EXCHANGE_DIRECT ? "direct" : "local");
	if (st->exchange_why != NULL)
		json_member(out, "exchange_why", st->exchange_why);
	static const char *const growth[] = {"time", "ttl", "keys", "keys"};
	weir_buf_printf(out, ",\"state_entry_bytes\":%u,\"state_bound\":\"%s\",\"keys\":%u",
			st->def.head_bytes + st->def.agg_bytes, growth[weir_plan_growth_of(ex->pl, st)], st->key_count);
	json_columns(out, st->column_names, st->column_types, st->column_count);
	weir_buf_puts(out, "}");
}

static void json_branch(struct explain *ex, const struct weir_plan_branch *br)
{
	struct weir_buf *out = &ex->out;
	struct origin from = origin_of(ex, br);
	weir_buf_printf(out, "{\"from\":\"%s\",\"origin\":%u,\"to\":\"%s\",\"target\":%u", from.kind, br->origin,
			br->to == WEIR_TO_STAGE ? "stage" : "sink", br->target);
	if (br->filter != NULL) {
		weir_buf_puts(out, ",\"filter\":");
		json_expr(out, br->filter, from.columns);
	}
	weir_buf_puts(out, ",\"exprs\":[");
	for (uint32_t i = 0; i < br->expr_count; i++) {
		weir_buf_puts(out, i == 0 ? "" : ",");
		json_expr(out, br->exprs[i], from.columns);
	}
	weir_buf_puts(out, "]}");
}

static void explain_json(struct explain *ex)
{
	struct weir_buf *out = &ex->out;
	const struct weir_plan *pl = ex->pl;
	weir_buf_puts(out, "{\"application\":");
	weir_json_put(out, ex->app);
	weir_buf_printf(out, ",\"guarantee\":\"%s\",\"workers\":%u,\"slots\":%u,\"memory_max\":%llu,",
			guarantees[ex->settings.guarantee], ex->settings.workers, ex->settings.slots,
			(unsigned long long)ex->settings.memory_max);
	weir_topology_put_json(ex->tp, out);
	weir_buf_puts(out, ",\"scans\":[");
	for (uint32_t i = 0; i < pl->scan_count; i++) {
		const struct weir_plan_scan *sc = &pl->scans[i];
		weir_buf_puts(out, i == 0 ? "{\"name\":" : ",{\"name\":");
		weir_json_put(out, sc->name);
		json_place(out, sc->table);
		weir_buf_puts(out, ",\"time\":");
		if (sc->time != NULL)
			json_expr(out, sc->time, sc->column_names);
		else
			weir_buf_puts(out, "null");
		weir_buf_printf(out, ",\"grace_ms\":%lld", (long long)sc->grace_ms);
		json_columns(out, sc->column_names, sc->column_types, sc->column_count);
		weir_buf_puts(out, "}");
	}
	weir_buf_puts(out, "],\"stages\":[");
	for (uint32_t i = 0; i < pl->stage_count; i++) {
		weir_buf_puts(out, i == 0 ? "" : ",");
		json_stage(ex, &pl->stages[i]);
	}
	weir_buf_puts(out, "],\"sinks\":[");
	for (uint32_t i = 0; i < pl->sink_count; i++) {
		const struct weir_plan_sink *sk = &pl->sinks[i];
		weir_buf_puts(out, i == 0 ? "{\"name\":" : ",{\"name\":");
		weir_json_put(out, sk->name);
		json_place(out, sk->table);
		weir_buf_printf(out, ",\"keyed\":%s,\"table\":%s", sk->has_key ? "true" : "false",
				sk->is_table ? "true" : "false");
		json_columns(out, sk->column_names, sk->column_types, sk->column_count);
		weir_buf_puts(out, "}");
	}
	weir_buf_puts(out, "],\"branches\":[");
	for (uint32_t i = 0; i < pl->branch_count; i++) {
		weir_buf_puts(out, i == 0 ? "" : ",");
		json_branch(ex, &pl->branches[i]);
	}
	weir_buf_puts(out, "]}\n");
}

/* Partitions of a recorded topic that is there already; 1 for everything that is not known without asking. */
static uint32_t partitions_of(const struct explain *ex, const struct weir_plan_scan *sc)
{
	const struct weir_table_options *o = &sc->table->options;
	const char *brokers = ex->settings.bootstrap_servers, *folder = o->path;
	if (folder == NULL && brokers != NULL && strncmp(brokers, "file:", 5) == 0)
		folder = brokers + 5;
	if (o->connector == WEIR_CONNECTOR_DATAGEN || o->connector == WEIR_CONNECTOR_FILESYSTEM || folder == NULL ||
	    o->topic == NULL || strchr(o->topic, ';') != NULL)
		return 1;
	uint32_t n = weir_recorded_partitions(folder, o->topic);
	return n != 0 ? n : 1;
}

static enum weir_err bind_plan(const struct explain *ex, struct weir_plan *pl, struct weir_diag **dg)
{
	uint32_t *partitions = weir_xcalloc(pl->scan_count + 1, sizeof *partitions);
	for (uint32_t i = 0; i < pl->scan_count; i++)
		partitions[i] = partitions_of(ex, &pl->scans[i]);
	enum weir_err err = weir_plan_bind(pl, partitions, ex->settings.slots, dg);
	free(partitions);
	return err;
}

/* What the job's properties and a source's options say together. */
static enum weir_err check_sources(const struct explain *ex, const struct weir_plan *pl, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < pl->scan_count && err == WEIR_OK; i++) {
		struct weir_source_settings unused;
		if (pl->scans[i].repartition < 0)
			err = weir_settings_for_source(&ex->settings, &pl->scans[i].table->options, pl->scans[i].name,
						       &unused, dg);
	}
	return err;
}

enum weir_err weir_engine_explain(struct weir_topology *tp, struct weir_conf *cf, int form, char **out,
				  struct weir_diag **diag)
{
	struct explain ex = {.tp = tp};
	struct weir_plan *pl = NULL;
	enum weir_err err = weir_topology_check(tp, diag);
	if (err == WEIR_OK)
		err = weir_conf_settings(cf, &ex.settings, diag);
	if (err != WEIR_OK)
		return err;
	ex.app = weir_mem_strdup(weir_topology_mem(tp),
				 ex.settings.application_id != NULL ? ex.settings.application_id : "weir");
	struct weir_plan_settings ps = {
		.exchange = weir_plan_exchange_of(&ex.settings),
		.task_time_max = ex.settings.task_time_max,
		.emit_coalesce = ex.settings.emit_coalesce,
		.elements_max = ex.settings.aggregate_elements_max,
		.state_ttl_ms = ex.settings.state_ttl_ms,
		.app = ex.app,
	};
	err = weir_plan_create(&pl, tp, &ps, diag);
	if (err == WEIR_OK)
		err = bind_plan(&ex, pl, diag);
	if (err == WEIR_OK)
		err = check_sources(&ex, pl, diag);
	if (err == WEIR_OK)
		err = weir_topics_check(pl, &ex.settings, diag);
	if (err != WEIR_OK)
		return err;
	ex.pl = pl;
	ex.shared = pl;
	if (ps.exchange != WEIR_PLAN_EXCHANGE_TOPIC) {
		struct weir_plan *shared = NULL;
		struct weir_diag *why = NULL;
		ps.exchange = WEIR_PLAN_EXCHANGE_TOPIC;
		if (weir_plan_create(&shared, tp, &ps, &why) != WEIR_OK)
			shared = NULL;
		weir_diag_destroy(why);
		ex.shared = shared;
	}
	switch ((enum weir_describe)form) {
	case WEIR_DESCRIBE_DOT:
		explain_dot(&ex);
		break;
	case WEIR_DESCRIBE_JSON:
		explain_json(&ex);
		break;
	case WEIR_DESCRIBE_TEXT:
	default:
		explain_text(&ex);
		break;
	}
	weir_buf_put_byte(&ex.out, 0);
	*out = (char *)ex.out.data;
	return WEIR_OK;
}
