/* core.c: wiring (core.h). @thread init */
#include "io/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/run/doubt.h"
#include "hotpath/weir.h"
#include "io/budget.h"
#include "io/print.h"
#include "io/recorded/recorded.h"
#include "io/topics.h"

enum {
	CORE_INPUTS = 64,      /* batches that wait for a worker: what it lives on while io waits for a CPU */
	CORE_INPUTS_LIVE = 16, /* the same where an order point is not to wait behind so many */
	CORE_BUNDLES = 24,
	NOTE_LINES = 10,
	NOTE_PERIOD_US = 60000000
};

static uint32_t core_inputs(const struct weir_core *co)
{
	return co->live ? CORE_INPUTS_LIVE : CORE_INPUTS;
}

void weir_core_log(const struct weir_core *co, int level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	if (!co->log_line)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	co->log_line(co->log_ctx, level, text);
}

/* Rejected records: a producer's bad byte must not flood the log, so ten lines a minute name theirs, the rest is
 * counted. */
static void note(void *ctx, const char *text, uint64_t count)
{
	struct weir_core *co = ctx;
	int64_t now = co->now_us ? co->now_us() : 0;
	if (co->note_lines == 0 || now - co->note_since_us >= NOTE_PERIOD_US) {
		if (co->note_silent != 0)
			weir_core_log(co, 4, "%llu more records were rejected", (unsigned long long)co->note_silent);
		co->note_since_us = now;
		co->note_lines = 0;
		co->note_silent = 0;
	}
	if (!text || co->note_lines >= NOTE_LINES) {
		co->note_silent += count;
		return;
	}
	weir_core_log(co, 4, "rejected: %s", text);
	if (++co->note_lines == NOTE_LINES)
		weir_core_log(co, 4, "further rejected records are only counted for a minute");
}

static void warn(void *ctx, const char *text)
{
	weir_core_log(ctx, 4, "%s", text);
}

static int write_text(void *ctx, const char *data, size_t bytes)
{
	struct weir_core *co = ctx;
	return co->write_text ? co->write_text(co->text_ctx, data, bytes) : 0;
}

int weir_plan_exchange_of(const struct weir_settings *st)
{
	return st->exchange == WEIR_EXCHANGE_SETTING_LOCAL   ? WEIR_PLAN_EXCHANGE_LOCAL
	       : st->exchange == WEIR_EXCHANGE_SETTING_TOPIC ? WEIR_PLAN_EXCHANGE_TOPIC
							     : WEIR_PLAN_EXCHANGE_AUTO;
}

enum weir_err weir_core_plan(struct weir_core *co, struct weir_topology *tp, struct weir_conf *cf,
			     struct weir_diag **dg)
{
	co->tp = tp;
	co->cf = cf;
	const struct weir_diag *broken = weir_topology_error(tp);
	if (broken)
		return weir_topology_check(tp, dg);
	enum weir_err err = weir_conf_settings(cf, &co->settings, dg);
	if (err != WEIR_OK)
		return err;
	co->app = weir_xstrdup(co->settings.application_id ? co->settings.application_id : "weir");
	co->brokers_given = co->settings.bootstrap_servers != NULL;
	struct weir_plan_settings ps = {.exchange = weir_plan_exchange_of(&co->settings),
					.task_time_max = co->settings.task_time_max,
					.emit_coalesce = co->settings.emit_coalesce,
					.elements_max = co->settings.aggregate_elements_max,
					.state_ttl_ms = co->settings.state_ttl_ms,
					.app = co->app};
	err = weir_plan_create(&co->plan, tp, &ps, dg);
	return err == WEIR_OK ? weir_topics_check(co->plan, &co->settings, dg) : err;
}

const char *weir_table_folder(const struct weir_core *co, const struct weir_table_def *def)
{
	const char *brokers = weir_table_brokers(co, def);
	bool kafka =
		def->options.connector == WEIR_CONNECTOR_KAFKA || def->options.connector == WEIR_CONNECTOR_UPSERT_KAFKA;
	if (kafka && brokers && strncmp(brokers, "file:", 5) == 0)
		return brokers + 5;
	if (def->options.connector == WEIR_CONNECTOR_RECORDED)
		return def->options.path                              ? def->options.path
		       : brokers && strncmp(brokers, "file:", 5) == 0 ? brokers + 5
								      : NULL;
	return NULL;
}

static bool is_topic(const struct weir_core *co, const struct weir_plan_sink *sk)
{
	if (co->virtual_topics)
		return true;
	enum weir_connector c = sk->table ? sk->table->options.connector : WEIR_CONNECTOR_NONE;
	return !sk->prints_rows &&
	       (c == WEIR_CONNECTOR_RECORDED || c == WEIR_CONNECTOR_KAFKA || c == WEIR_CONNECTOR_UPSERT_KAFKA);
}

bool weir_table_on_brokers(const struct weir_core *co, const struct weir_table_def *def)
{
	bool kafka = def && (def->options.connector == WEIR_CONNECTOR_KAFKA ||
			     def->options.connector == WEIR_CONNECTOR_UPSERT_KAFKA);
	return kafka && !co->virtual_topics && !weir_table_folder(co, def);
}

bool weir_source_is_kafka(const struct weir_core *co, uint32_t scan)
{
	return weir_table_on_brokers(co, co->plan->scans[scan].table);
}

/* 'sink.delivery-guarantee' says for the job what nobody said with processing.guarantee: an epoch commits as a whole.
 */
enum weir_err weir_core_take_guarantee(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_table_def *first = NULL;
	for (uint32_t i = 0; i < co->plan->sink_count; i++) {
		const struct weir_table_def *def = co->plan->sinks[i].table;
		const char *own = def ? def->options.sink_delivery_guarantee : NULL;
		if (!own || co->plan->sinks[i].repartition >= 0)
			continue;
		if (first && strcmp(first->options.sink_delivery_guarantee, own) != 0)
			return weir_diag_set(
				dg, WEIR_E_CONF,
				"'sink.delivery-guarantee' of table %s is %s, of table %s %s: an epoch of a job "
				"commits as a whole; set one, or processing.guarantee",
				first->name, first->options.sink_delivery_guarantee, def->name, own);
		first = first ? first : def;
	}
	if (!first || weir_conf_is_set(co->cf, "processing.guarantee"))
		return WEIR_OK;
	const char *own = first->options.sink_delivery_guarantee;
	const char *value = strcmp(own, "exactly-once") == 0 ? "exactly_once"
			    : strcmp(own, "none") == 0       ? "at_most_once"
							     : "at_least_once";
	enum weir_err err =
		weir_conf_set_from(co->cf, "processing.guarantee", value, WEIR_ORIGIN_DEFAULT, first->name, dg);
	return err == WEIR_OK ? weir_conf_settings(co->cf, &co->settings, dg) : err;
}

enum weir_err weir_core_find_home(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	const char *home = co->settings.state_home;
	if (home && strncmp(home, "file:", 5) == 0)
		home += 5;
	const char *first = NULL;
	const struct weir_plan_sink *kafka = NULL;
	co->home_kafka = false;
	co->home = "memory";
	if (co->virtual_topics)
		return WEIR_OK;
	for (uint32_t s = 0; s < pl->sink_count; s++) {
		if (!is_topic(co, &pl->sinks[s]))
			continue;
		if (weir_table_on_brokers(co, pl->sinks[s].table)) {
			kafka = &pl->sinks[s];
			continue;
		}
		const char *path = weir_table_folder(co, pl->sinks[s].table);
		if (!path)
			return weir_diag_set(dg, WEIR_E_CONF,
					     "sink %s: connector 'recorded' needs 'path', or -b file:DIR",
					     pl->sinks[s].name);
		if (first && strcmp(first, path) != 0 && !home)
			return weir_diag_set(dg, WEIR_E_CONF,
					     "the sinks lie in two folders, %s and %s: say where the application's "
					     "state belongs with -X "
					     "state.home=%s",
					     first, path, first);
		first = first ? first : path;
	}
	if (kafka && first)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "sink %s lies on brokers, another one in the folder %s: an epoch commits in one "
				     "place; write both to the brokers and record one (weir record)",
				     kafka->name, first);
	if (kafka && home && strcmp(home, co->settings.bootstrap_servers) != 0)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "state.home is %s, but sink %s lies on the brokers %s: markers and changelogs are "
				     "kept where the results are",
				     home, kafka->name, co->settings.bootstrap_servers);
	co->home_kafka = kafka != NULL;
	if (kafka)
		home = co->settings.bootstrap_servers;
	if (!home)
		home = first;
	for (uint32_t s = 0; s < pl->scan_count && !home; s++) {
		struct weir_source_settings ss;
		enum weir_err err = weir_settings_for_source(&co->settings, &pl->scans[s].table->options,
							     pl->scans[s].name, &ss, dg);
		if (err != WEIR_OK)
			return err;
		if (!ss.dead_letter_topic && !ss.late_topic)
			continue;
		co->home_kafka = weir_source_is_kafka(co, s);
		home = co->home_kafka ? co->settings.bootstrap_servers : weir_table_folder(co, pl->scans[s].table);
	}
	co->home = home;
	if (pl->repartition_count && !co->home_kafka)
		return weir_diag_set(
			dg, WEIR_E_CONF,
			"exchange = topic is for instances that share the work through brokers; the results "
			"do not lie on brokers here: leave it at auto");
	return WEIR_OK;
}

static uint32_t most_partitions(const struct weir_plan *pl)
{
	uint32_t most = 1;
	for (uint32_t i = 0; i < pl->scan_count; i++)
		most = pl->scans[i].partition_count > most ? pl->scans[i].partition_count : most;
	return most;
}

static enum weir_err add_topic(struct weir_core *co, const struct weir_core_topic *t, struct weir_diag **dg)
{
	struct weir_output *ou = &co->outputs[co->output_count];
	struct weir_topic_spec spec = {.name = t->name,
				       .path = t->path,
				       .kind = t->kind,
				       .partitions = t->partitions ? t->partitions : most_partitions(co->plan),
				       .partitions_fixed = t->partitions_fixed,
				       .keyless = t->keyless,
				       .must_exist = !co->settings.topics_create,
				       .compression = t->compression};
	ou->kind = WEIR_OUTPUT_TOPIC;
	enum weir_err err =
		co->log->ops->topic(co->log, &spec, &co->output_topic[co->output_count], &ou->partitions, dg);
	co->output_count++;
	return err;
}

struct sink_printer {
	struct weir_printer_spec spec;
};

static void *printer_open(void *ctx)
{
	struct sink_printer *sp = ctx;
	struct weir_printer *pr = NULL;
	struct weir_diag *dg = NULL;
	if (weir_printer_create(&pr, &sp->spec, &dg) != WEIR_OK)
		weir_diag_destroy(dg); /* checked once in weir_core_build: it cannot fail here */
	return pr;
}

static void printer_close(void *printer)
{
	weir_printer_destroy(printer);
}

static void printer_row(void *printer, const struct weir_col *cols, uint32_t row, enum weir_op op, struct weir_buf *out)
{
	weir_printer_row(printer, cols, row, op, out);
}

/* Head (before the run) or foot (after it) of what bare SELECTs print. */
void weir_core_print_frame(struct weir_core *co, bool head, uint64_t rows)
{
	for (uint32_t s = 0; s < co->plan->sink_count; s++) {
		if (co->outputs[s].kind != WEIR_OUTPUT_PRINT || !co->plan->sinks[s].prints_rows || !co->write_text)
			continue;
		struct weir_printer *pr = printer_open(co->outputs[s].ctx);
		struct weir_buf b = {0};
		if (head)
			weir_printer_head(pr, &b);
		else
			weir_printer_set_rows(pr, rows), weir_printer_foot(pr, &b);
		if (b.bytes)
			(void)co->write_text(co->text_ctx, (const char *)b.data, b.bytes);
		weir_buf_fini(&b);
		weir_printer_destroy(pr);
	}
}

static enum weir_err add_sink(struct weir_core *co, const struct weir_plan_sink *sk, struct weir_diag **dg)
{
	struct weir_output *ou = &co->outputs[co->output_count];
	if (is_topic(co, sk)) {
		static const struct weir_table_options none;
		const struct weir_table_options *to = sk->table ? &sk->table->options : &none;
		struct weir_core_topic t = {.name = to->topic ? to->topic : sk->name,
					    .path = sk->table ? weir_table_folder(co, sk->table) : NULL,
					    .partitions = (uint32_t)to->sink_partitions,
					    .partitions_fixed = to->sink_partitions > 0,
					    .keyless = sk->repartition < 0 && !sk->has_key,
					    .compression = to->sink_compression,
					    .kind = sk->repartition >= 0 ? WEIR_TOPIC_REPARTITION : WEIR_TOPIC_RESULT};
		return add_topic(co, &t, dg);
	}
	ou->partitions = 1;
	if (sk->table && sk->table->options.connector == WEIR_CONNECTOR_BLACKHOLE) {
		ou->kind = WEIR_OUTPUT_BLACKHOLE;
	} else {
		ou->kind = WEIR_OUTPUT_PRINT;
		struct sink_printer *sp = weir_mem_take(&co->mem, sizeof *sp);
		sp->spec =
			(struct weir_printer_spec){.form = !sk->prints_rows          ? WEIR_PRINT_ROWS
							   : co->settings.rows_table ? WEIR_PRINT_TABLE
										     : WEIR_PRINT_JSON,
						   .identifier = sk->table ? sk->table->options.print_identifier : NULL,
						   .column_count = sk->column_count,
						   .names = sk->column_names,
						   .types = sk->column_types,
						   .is_table = sk->is_table};
		ou->print_open = printer_open;
		ou->print_close = printer_close;
		ou->print = printer_row;
		ou->ctx = sp;
	}
	co->output_count++;
	return WEIR_OK;
}

/* Whose options say what happens to bad and late rows of scan s: a repartition topic's are those of what feeds it. */
static const struct weir_plan_scan *policy_scan(const struct weir_plan *pl, uint32_t s)
{
	for (uint32_t steps = 0; pl->scans[s].repartition >= 0 && steps <= pl->scan_count; steps++) {
		const struct weir_plan_repartition *rp = &pl->repartitions[pl->scans[s].repartition];
		const struct weir_plan_branch *br = &pl->branches[rp->inputs[0]];
		s = br->from == WEIR_FROM_SCAN ? br->origin : pl->branches[pl->stages[br->origin].inputs[0]].origin;
	}
	return &pl->scans[s];
}

/* Dead-letter and late topics of the sources: several sources may share one. */
static enum weir_err add_policies(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	const char **names = weir_mem_take(&co->mem, (2 * pl->scan_count + 1) * sizeof *names);
	uint32_t named = 0, first = co->output_count;
	for (uint32_t s = 0; s < pl->scan_count; s++) {
		struct weir_source_settings ss;
		const struct weir_plan_scan *sc = policy_scan(pl, s);
		enum weir_err err = weir_settings_for_source(&co->settings, &sc->table->options, sc->name, &ss, dg);
		if (err != WEIR_OK)
			return err;
		co->policies[s] = (struct weir_scan_policy){ss.policy, -1, -1};
		const char *want[2] = {ss.policy == WEIR_ERRORS_DEAD_LETTER ? ss.dead_letter_topic : NULL,
				       ss.late_topic};
		for (int k = 0; k < 2; k++) {
			if (!want[k])
				continue;
			if (!co->log)
				return weir_diag_set(dg, WEIR_E_CONF,
						     "topic %s: there is no folder to keep it in; set state.home",
						     want[k]);
			uint32_t i = 0;
			while (i < named && strcmp(names[i], want[k]) != 0)
				i++;
			if (i == named) {
				names[named++] = want[k];
				struct weir_core_topic t = {.name = want[k],
							    .partitions = pl->scans[s].partition_count,
							    .kind = WEIR_TOPIC_DEAD_LETTER};
				err = add_topic(co, &t, dg);
				if (err != WEIR_OK)
					return err;
			}
			*(k == 0 ? &co->policies[s].dead_letter : &co->policies[s].late) = (int32_t)(first + i);
		}
	}
	return WEIR_OK;
}

static enum weir_err open_outputs(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	uint32_t most = pl->sink_count + 2 * pl->scan_count + 1;
	co->outputs = weir_xcalloc(most, sizeof *co->outputs);
	co->output_topic = weir_xcalloc(most, sizeof *co->output_topic);
	co->policies = weir_xcalloc(pl->scan_count + 1, sizeof *co->policies);
	enum weir_err err = WEIR_OK;
	for (uint32_t s = 0; s < pl->sink_count && err == WEIR_OK; s++)
		err = add_sink(co, &pl->sinks[s], dg);
	return err == WEIR_OK ? add_policies(co, dg) : err;
}

const char *weir_core_changelog(const struct weir_core *co, uint32_t stage, struct weir_mem *m)
{
	return weir_mem_printf(m, "%s-%s-changelog", co->app,
			       weir_plan_kept_stages(co->plan) ? co->plan->stages[stage].name : "offsets");
}

/* Changelog topics: one a stage, or one of markers alone. */
static enum weir_err open_changelogs(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	uint32_t kept = weir_plan_kept_stages(pl), stages = kept ? kept : 1, most = most_partitions(pl), found = most;
	co->state_topic = weir_xcalloc(stages, sizeof *co->state_topic);
	enum weir_err err = WEIR_OK;
	for (uint32_t s = 0; s < stages && co->log && err == WEIR_OK; s++) {
		struct weir_topic_spec spec = {.name = weir_core_changelog(co, s, &co->mem),
					       .kind = WEIR_TOPIC_CHANGELOG,
					       .partitions = found,
					       .partitions_fixed = s > 0};
		err = co->log->ops->topic(co->log, &spec, &co->state_topic[s], &found, dg);
	}
	/* A source has got more partitions: slots that are not its partitions stay where they are. */
	for (uint32_t s = 0; s < kept && err == WEIR_OK && found != most; s++)
		if (pl->stages[s].exchange == WEIR_EXCHANGE_DIRECT && !weir_plan_stage_is_transient(&pl->stages[s]))
			err = weir_diag_set(
				dg, WEIR_E_CONF,
				"state %s is kept by source partition: %u of them, but now there are %u. To "
				"start over: weir reset %s %s%s --execute",
				pl->stages[s].name, found, most, co->app, co->home_kafka ? "-b " : "", co->home);
	co->changelog_partitions = found;
	return err;
}

static void name_inputs(struct weir_core *co)
{
	const struct weir_plan *pl = co->plan;
	co->inputs = weir_xcalloc(pl->partition_count + 1, sizeof *co->inputs);
	for (uint32_t s = 0; s < pl->scan_count; s++) {
		const char *table = pl->scans[s].name;
		uint32_t same = 1;
		for (uint32_t b = 0; b < s; b++)
			same += strcmp(pl->scans[b].name, table) == 0;
		if (same != 1) /* sources of one name, which programs in C may make */
			table = weir_mem_printf(&co->mem, "%s#%u", table, same);
		for (uint32_t p = 0; p < pl->scans[s].partition_count; p++) {
			struct weir_input_name *in = &co->inputs[pl->scans[s].partition_base + p];
			in->topic = weir_mem_strdup(&co->mem,
						    co->streams[s]->ops->topic(co->streams[s], p, &in->partition));
			in->table = table;
			in->changelog_partition = p % co->changelog_partitions;
		}
	}
}

enum weir_err weir_core_workers(const struct weir_core *co, struct weir_worker ***out, struct weir_routes *routes,
				struct weir_diag **dg)
{
	struct weir_worker **workers = *out = weir_xcalloc(co->worker_count, sizeof *workers);
	uint32_t slots = most_partitions(co->plan);
	for (uint32_t s = 0; s < co->plan->stage_count; s++)
		slots = co->plan->stages[s].slot_count > slots ? co->plan->stages[s].slot_count : slots;
	weir_routes_init(routes, slots, co->worker_count);
	struct weir_budget bg;
	weir_budget_make(&bg, co->plan, &co->settings, co->worker_count);
	enum weir_err err = WEIR_OK;
	for (uint32_t w = 0; w < co->worker_count && err == WEIR_OK; w++) {
		struct weir_worker_conf wc = {
			.plan = co->plan,
			.id = w,
			.count = co->worker_count,
			.routes = routes,
			.outputs = co->outputs,
			.policies = co->policies,
			.emit_coalesce = co->settings.emit_coalesce,
			.no_log = co->log == NULL || weir_plan_kept_stages(co->plan) == 0,
			.future_max_ms = co->settings.time_future_max_ms,
			.input_capacity = core_inputs(co),
			.fragments = bg.fragments,
			.fixed_bytes = bg.fixed_bytes,
			.memory_max = co->settings.memory_max,
			.bundles = CORE_BUNDLES,
			.bundle_bytes_max = (size_t)(co->settings.memory_max / 4 / (CORE_BUNDLES * co->worker_count)),
			.copies_max = (uint64_t)co->settings.memory_max / 4 / co->worker_count};
		err = weir_worker_create(&workers[w], &wc, dg);
		if (err == WEIR_OK)
			err = weir_park_init(&workers[w]->park, co->threads);
	}
	for (uint32_t w = 0; w < co->worker_count && err == WEIR_OK; w++)
		workers[w]->peers = workers;
	return err;
}

static enum weir_err build_workers(struct weir_core *co, struct weir_diag **dg)
{
	co->worker_count = co->settings.workers ? co->settings.workers : 1;
	return weir_core_workers(co, &co->workers, &co->routes, dg);
}

static bool windows_open(const struct weir_core *co)
{
	for (uint32_t w = 0; w < co->worker_count; w++)
		for (uint32_t s = 0; s < co->plan->stage_count; s++)
			for (uint32_t k = 0; k < co->plan->stages[s].slot_count; k++)
				if (co->workers[w]->slots[s][k] &&
				    weir_slot_next_close(co->workers[w]->slots[s][k]) != INT64_MAX)
					return true;
	return false;
}

/* A partition that a source has gained since the last run is read from its beginning, whatever the startup mode says:
 * nobody has had a chance to read it. */
static enum weir_err start_new_partitions(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	enum weir_err err = WEIR_OK;
	for (uint32_t s = 0; s < pl->scan_count; s++) {
		int64_t *offset = &co->restored.offset[pl->scans[s].partition_base];
		bool known = false;
		const bool *owned = co->owned ? co->owned + pl->scans[s].partition_base : NULL;
		for (uint32_t p = 0; p < pl->scans[s].partition_count; p++)
			known |= offset[p] >= 0;
		for (uint32_t p = 0; known && err == WEIR_OK && p < pl->scans[s].partition_count; p++) {
			int64_t end;
			if (offset[p] >= 0 || (owned && !owned[p]))
				continue;
			err = co->streams[s]->ops->seek(co->streams[s], p, WEIR_START_FIRST, dg);
			co->streams[s]->ops->range(co->streams[s], p, &offset[p], &end);
		}
	}
	return err;
}

/* Records the bounded input still has, and whether a resumed run has nothing left. */
static void count_input(struct weir_core *co, const int64_t *start)
{
	const struct weir_plan *pl = co->plan;
	uint64_t left = 0;
	for (uint32_t s = 0; s < pl->scan_count; s++)
		for (uint32_t p = 0; p < pl->scans[s].partition_count; p++) {
			int64_t first, end, from = start[pl->scans[s].partition_base + p];
			if (co->owned && !co->owned[pl->scans[s].partition_base + p])
				continue;
			co->streams[s]->ops->range(co->streams[s], p, &first, &end);
			from = from >= 0 ? from : first;
			if (end > from && end != INT64_MAX)
				left += (uint64_t)(end - from);
		}
	co->records_total = co->endless ? 0 : left;
	/* A run that was cut off after its last record but before it closed its windows still has that to do. */
	co->consumed = co->restored.found && !co->endless && left == 0 && !co->aside &&
		       (co->settings.end_of_input_keep || !windows_open(co));
}

/* Whether results may be out that the state restored knows nothing of. */
static bool in_doubt(const struct weir_core *co)
{
	return co->log && co->log->early && (co->restored.found || co->log->used);
}

static enum weir_err build_feed(struct weir_core *co, int64_t (*now_us)(void), struct weir_diag **dg)
{
	const struct weir_settings *st = &co->settings;
	struct weir_feed_conf fc = {.plan = co->plan,
				    .streams = co->streams,
				    .workers = co->workers,
				    .worker_count = co->worker_count,
				    .input_capacity = core_inputs(co),
				    .points = CORE_BUNDLES,
				    .snapshot = co->snapshot,
				    .start = co->restored.offset,
				    .records = co->restored.records,
				    .bytes = co->restored.bytes,
				    .epoch = co->restored.epoch,
				    .point_records = st->order_point_records,
				    .point_bytes = st->order_point_bytes,
				    .commit_records = st->commit_records,
				    .commit_ms = st->commit_ms,
				    .emit_ms = st->emit_ms,
				    .idle_ms = st->idle_ms,
				    .join_ms = st->join_wait_ms,
				    .coalesce = st->emit_coalesce,
				    .idle_wall = st->idle_advance_wall,
				    .live = co->live,
				    .endless = co->endless,
				    .owned = co->owned,
				    .in_doubt = in_doubt(co),
				    .keep_windows = st->end_of_input_keep,
				    .epochs_in_flight = st->epochs_in_flight,
				    .rate = st->scan_rate,
				    .memory_max = st->memory_max,
				    .poll_records = st->io_poll_records,
				    .now_us = now_us};
	if (co->placement == NULL)
		co->placement = weir_placement_create(co->plan);
	fc.placement = co->placement;
	enum weir_err err = weir_feed_create(&co->feed, &fc, dg);
	if (err == WEIR_OK)
		err = weir_park_init(weir_feed_park(co->feed), co->threads);
	if (err != WEIR_OK)
		return err;
	weir_snapshot_set_io_park(co->snapshot, weir_feed_park(co->feed));
	for (uint32_t w = 0; w < co->worker_count; w++) {
		co->workers[w]->io_park = weir_feed_park(co->feed);
		co->workers[w]->snap_park = weir_snapshot_park(co->snapshot);
	}
	return WEIR_OK;
}

static uint32_t partition_by_key(const void *key, size_t bytes)
{
	return weir_murmur2(key, bytes) & 0x7fffffff;
}

/* Whether memory.max holds the job at all. Where nobody has set it, it is made to. */
static enum weir_err check_memory(struct weir_core *co, struct weir_diag **dg)
{
	struct weir_budget bg;
	uint32_t workers = co->settings.workers ? co->settings.workers : 1;
	weir_budget_make(&bg, co->plan, &co->settings, workers);
	if (co->settings.memory_max >= bg.least)
		return WEIR_OK;
	const char *given = weir_conf_get(co->cf, "memory.max");
	if (given == NULL || strcmp(given, "auto") == 0) {
		co->settings.memory_max = bg.least;
		return WEIR_OK;
	}
	enum weir_err err =
		weir_diag_set(dg, WEIR_E_CONF, "memory.max is %llu bytes, but this job needs %lluMiB with %u worker%s",
			      (unsigned long long)co->settings.memory_max, (unsigned long long)(bg.least >> 20),
			      workers, workers == 1 ? "" : "s");
	if (workers > 1)
		weir_diag_add_hint(*dg, "fewer workers need less (-X workers=1)");
	return err;
}

enum weir_err weir_core_open(struct weir_core *co, weir_core_open_log *open_log, void *ctx, int64_t (*now_us)(void),
			     struct weir_diag **dg)
{
	co->now_us = now_us;
	struct weir_plan *pl = co->plan;
	uint32_t *counts = weir_mem_take(&co->mem, (pl->scan_count + 1) * sizeof *counts);
	for (uint32_t s = 0; s < pl->scan_count; s++) {
		struct weir_plan_scan *sc = &pl->scans[s];
		counts[s] = co->streams[s]->ops->partitions(co->streams[s]);
		sc->allow_negative_time = co->settings.allow_negative_time;
		if (sc->table->options.connector == WEIR_CONNECTOR_DATAGEN && !co->virtual_topics)
			sc->value_format.kind = WEIR_FORMAT_PACKED; /* what io/datagen.c makes */
		struct weir_format_options *both[2] = {&sc->value_format, &sc->key_format};
		for (int k = 0; k < 2; k++) {
			both[k]->record_bytes_max = (uint32_t)co->settings.record_bytes_max;
			both[k]->depth_max = co->settings.json_depth_max;
		}
	}
	enum weir_err err = weir_plan_bind(pl, counts, co->settings.slots, dg);
	if (err == WEIR_OK)
		err = check_memory(co, dg);
	if (err == WEIR_OK && co->home)
		err = open_log(ctx, co->home, co->app, &co->log, dg);
	if (err == WEIR_OK)
		err = open_outputs(co, dg);
	if (err == WEIR_OK)
		err = open_changelogs(co, dg);
	if (err != WEIR_OK)
		return err;
	name_inputs(co);
	co->restored.offset = weir_mem_take(&co->mem, (pl->partition_count + 1) * sizeof(int64_t));
	co->restored.time = weir_mem_take(&co->mem, (pl->partition_count + 1) * sizeof(int64_t));
	co->restored.schema_missing = weir_mem_take(&co->mem, pl->stage_count + 1);
	co->restored.held = weir_mem_take(&co->mem, co->changelog_partitions + 1);
	if (co->input)
		co->owned = weir_mem_take(&co->mem, pl->partition_count + 1);
	if (co->input && co->home_kafka)
		weir_keep_init(co);
	return WEIR_OK;
}

/* What the group gave us, and the start of restored slate. */
static enum weir_err take_assignment(struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	struct weir_restored *rs = &co->restored;
	for (uint32_t s = 0; s < pl->scan_count; s++)
		for (uint32_t p = 0; co->owned && p < pl->scans[s].partition_count; p++)
			co->owned[pl->scans[s].partition_base + p] = weir_core_owns(co, s, p);
	*rs = (struct weir_restored){.offset = rs->offset,
				     .time = rs->time,
				     .schema_missing = rs->schema_missing,
				     .held = rs->held,
				     .epoch = 0};
	memset(rs->schema_missing, 0, pl->stage_count + 1);
	memset(rs->held, 0, co->changelog_partitions + 1);
	for (uint32_t p = 0; p < pl->partition_count; p++) {
		rs->offset[p] = -1;
		rs->time[p] = WEIR_TIME_UNSET;
	}
	return weir_clusters_take(co, dg);
}

/* Not before the group's offsets are stable: a predecessor's transaction may still be on its way. */
static enum weir_err ask_all(struct weir_core *co, struct weir_diag **dg)
{
	weir_aside_limit(co, co->owned);
	return weir_keep_ask_group(co, dg);
}

/* What is not kept is restored beside what is: there first, as long as that takes but a moment. */
static enum weir_err restore_beside(struct weir_core *co, struct weir_diag **dg)
{
	enum weir_err err = weir_aside_create(co, dg);
	if (err != WEIR_OK)
		return err;
	if (!co->start_aside(co->start_ctx, co->aside)) {
		weir_core_log(co, 6, "restoring %u of %u changelog partitions; the others go on",
			      weir_aside_count(co->aside), co->changelog_partitions);
		for (uint32_t i = 0; i < co->plan->partition_count; i++)
			co->owned[i] &= co->keep.kept[co->inputs[i].changelog_partition];
		weir_aside_limit(co, co->owned);
		return weir_clusters_take(co, dg);
	}
	err = weir_aside_result(co, dg);
	if (err != WEIR_OK)
		return err;
	weir_aside_choose(co);
	weir_aside_adopt(co, UINT64_MAX);
	err = ask_all(co, dg);
	co->keep.taken = true;
	return err;
}

/* Takes over what has not changed since the assignment before. */
static enum weir_err take_kept(struct weir_core *co, struct weir_diag **dg)
{
	bool beside = weir_aside_possible(co), some = false, all = true;
	enum weir_err err;
	if (beside) { /* what others may have on its way is waited for beside it, too */
		weir_aside_limit(co, co->keep.had);
		err = weir_keep_ask_group(co, dg);
	} else {
		err = ask_all(co, dg);
	}
	if (err != WEIR_OK)
		return err;
	weir_keep_take(co);
	for (uint32_t i = 0; i < co->plan->partition_count; i++) {
		some |= co->owned[i] && co->keep.kept[co->inputs[i].changelog_partition];
		all &= !co->owned[i] || co->keep.kept[co->inputs[i].changelog_partition];
	}
	if (!beside || all)
		return WEIR_OK;
	if (some)
		return restore_beside(co, dg);
	err = ask_all(co, dg);
	co->keep.taken = true;
	return err;
}

static void begin_doubt(struct weir_core *co)
{
	if (!in_doubt(co))
		return;
	bool *known = weir_xcalloc(co->changelog_partitions, sizeof *known);
	for (uint32_t p = 0; co->keep.kept && p < co->changelog_partitions; p++)
		known[p] = co->keep.kept[p] && !co->keep.fresh[p];
	for (uint32_t w = 0; w < co->worker_count; w++)
		weir_doubt_begin(co->workers[w], known, co->changelog_partitions);
	free(known);
}

enum weir_err weir_core_begin(struct weir_core *co, struct weir_diag **dg)
{
	struct weir_plan *pl = co->plan;
	co->begun = true;
	enum weir_err err = take_assignment(co, dg);
	if (err == WEIR_OK)
		err = build_workers(co, dg);
	if (err == WEIR_OK && co->keep.markers)
		err = take_kept(co, dg);
	if (err != WEIR_OK)
		return err;
	co->sncf = (struct weir_snapshot_conf){.plan = pl,
					       .outputs = co->outputs,
					       .output_count = co->output_count,
					       .output_topic = co->output_topic,
					       .log = co->log,
					       .state_topic = co->state_topic,
					       .changelog_partitions = co->changelog_partitions,
					       .inputs = co->inputs,
					       .owned = co->owned,
					       .markers = co->keep.markers,
					       .kept = co->keep.kept,
					       .workers = co->workers,
					       .worker_count = co->worker_count,
					       .partition_by_key = partition_by_key,
					       .write_text = write_text,
					       .text_ctx = co,
					       .note = note,
					       .warn = warn,
					       .note_ctx = co};
	err = weir_snapshot_create(&co->snapshot, &co->sncf, dg);
	if (err == WEIR_OK)
		err = weir_park_init(weir_snapshot_park(co->snapshot), co->threads);
	char *arguments = NULL;
	if (asprintf(&arguments, co->home_kafka ? "%s -b %s" : "%s %s", co->app, co->home ? co->home : "") < 0)
		return weir_diag_set(dg, WEIR_E_NOMEM, "no memory to restore");
	if (err == WEIR_OK && co->log)
		err = weir_restore(&co->sncf, arguments, &co->restored, dg);
	if (err == WEIR_OK && co->log && !co->restored.found && !co->home_kafka && co->log->ops->epoch(co->log) > 0)
		err = weir_diag_set(dg, WEIR_E_CONF,
				    "application %s has run here before with states of other names than this query's "
				    "(%s): its results would come again. To start over: weir reset %s --execute",
				    co->app, weir_plan_kept_stages(pl) ? pl->stages[0].name : "none", arguments);
	free(arguments);
	if (err == WEIR_OK && co->keep.markers)
		err = weir_keep_check_group(co, dg);
	if (err == WEIR_OK)
		err = start_new_partitions(co, dg);
	if (err != WEIR_OK)
		return err;
	co->restored.epoch = co->epoch > co->restored.epoch ? co->epoch : co->restored.epoch;
	count_input(co, co->restored.offset);
	begin_doubt(co);
	err = build_feed(co, co->now_us, dg);
	/* From here on nothing is refused any more. */
	if (err == WEIR_OK && co->log && co->log->ops->make)
		err = co->log->ops->make(co->log, dg);
	if (err == WEIR_OK && co->log && !co->consumed)
		err = weir_schema_write(&co->sncf, &co->restored, dg);
	return err;
}

void weir_core_follow(struct weir_core *co)
{
	if (!co->standby)
		return;
	bool *owned = weir_xcalloc(co->changelog_partitions, sizeof *owned);
	for (uint32_t p = 0; p < co->plan->partition_count; p++)
		if (co->owned[p])
			owned[co->inputs[p].changelog_partition] = true;
	weir_standby_assign(co->standby, owned);
	free(owned);
}

void weir_core_end(struct weir_core *co)
{
	if (!co->begun)
		return;
	struct weir_stats now;
	weir_core_stats(co, &now);
	co->past = now;
	if (co->feed && weir_feed_epoch(co->feed) > co->epoch)
		co->epoch = weir_feed_epoch(co->feed);
	weir_feed_destroy(co->feed);
	weir_clusters_end(co);
	weir_snapshot_destroy(co->snapshot);
	for (uint32_t w = 0; co->workers && w < co->worker_count; w++)
		weir_worker_destroy(co->workers[w]);
	free(co->workers);
	weir_routes_fini(&co->routes);
	co->feed = NULL;
	co->snapshot = NULL;
	co->workers = NULL;
	co->begun = false;
}

enum weir_err weir_core_build(struct weir_core *co, weir_core_open_log *open_log, void *ctx, int64_t (*now_us)(void),
			      struct weir_diag **dg)
{
	enum weir_err err = weir_core_find_home(co, dg);
	if (err == WEIR_OK)
		err = weir_core_open(co, open_log, ctx, now_us, dg);
	return err == WEIR_OK ? weir_core_begin(co, dg) : err;
}

void weir_core_fini(struct weir_core *co)
{
	weir_core_end(co);
	weir_aside_destroy(co);
	if (co->plan)
		weir_keep_fini(co);
	if (co->log)
		co->log->ops->close(co->log);
	weir_standby_destroy(co->standby);
	for (uint32_t s = 0; co->streams && s < co->plan->scan_count; s++)
		if (co->streams[s])
			co->streams[s]->ops->close(co->streams[s]);
	weir_kafka_input_close(co->input);
	weir_clusters_fini(co);
	free(co->streams);
	free(co->recorded);
	free(co->warned);
	weir_placement_destroy(co->placement);
	free(co->outputs);
	free(co->output_topic);
	free(co->policies);
	free(co->state_topic);
	free(co->inputs);
	free(co->app);
	weir_mem_fini(&co->mem);
	weir_topology_destroy(co->tp);
	weir_conf_destroy(co->cf);
	memset(co, 0, sizeof *co);
}

void weir_core_source_warnings(struct weir_core *co, bool end)
{
	uint64_t damaged = 0;
	for (uint32_t s = 0; co->placement != NULL && s < co->plan->scan_count; s++) {
		struct weir_buf text = {0};
		if (weir_placement_say(co->placement, s, end, &text))
			weir_core_log(co, 4, "%s", (const char *)text.data);
		weir_buf_fini(&text);
	}
	for (uint32_t s = 0; s < co->plan->scan_count; s++) {
		const char *text;
		if (!co->recorded || !co->recorded[s])
			continue;
		for (uint32_t i = co->warned[s]; (text = weir_recorded_source_warning(co->streams[s], i)); i++) {
			weir_core_log(co, 4, "%s", text);
			co->warned[s] = i + 1;
		}
		uint64_t batches, records;
		weir_recorded_source_damaged(co->streams[s], &batches, &records);
		damaged += records;
	}
	atomic_store_explicit(&co->damaged, damaged, memory_order_relaxed);
}

void weir_core_stats(const struct weir_core *co, struct weir_stats *out)
{
	*out = co->past; /* between two assignments, and at the end: as it was last */
	struct weir_standby_stats sb = {0};
	if (co->standby)
		weir_standby_stats(co->standby, &sb);
	out->standby_partitions = sb.partitions;
	out->standby_behind = sb.behind;
	out->standby_records = sb.records;
	out->standby_bytes = sb.bytes;
	if (!co->feed)
		return;
	const struct weir_snapshot_stats *st = weir_snapshot_stats(co->snapshot);
	out->records_read += weir_feed_records(co->feed);
	out->bytes_read += weir_feed_bytes(co->feed);
	out->records_applied += atomic_load_explicit(&st->applied, memory_order_relaxed);
	out->records_late += atomic_load_explicit(&st->late, memory_order_relaxed);
	out->late_windows += atomic_load_explicit(&st->late_windows, memory_order_relaxed);
	out->records_rejected += atomic_load_explicit(&st->rejected, memory_order_relaxed);
	out->records_filtered += atomic_load_explicit(&st->filtered, memory_order_relaxed);
	out->results_written += atomic_load_explicit(&st->results, memory_order_relaxed);
	out->windows_closed += atomic_load_explicit(&st->windows, memory_order_relaxed);
	out->aggregate_errors += atomic_load_explicit(&st->agg_errors, memory_order_relaxed);
	out->times_implausible += atomic_load_explicit(&st->implausible, memory_order_relaxed);
	out->epochs_committed += atomic_load_explicit(&st->epochs, memory_order_relaxed);
	out->state_entries = atomic_load_explicit(&st->state_entries, memory_order_relaxed);
	out->state_bytes = atomic_load_explicit(&st->state_bytes, memory_order_relaxed);
	out->records_total = co->records_total;
	out->memory_bytes = weir_feed_memory(co->feed) + out->state_bytes;
	out->records_damaged = atomic_load_explicit(&co->damaged, memory_order_relaxed);
	out->resumed = co->consumed ? 2 : co->restored.found ? 1 : 0;
}
