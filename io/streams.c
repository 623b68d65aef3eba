/* streams.c: which stream log reads a table: its connector's (core.h). @thread init */
#include "io/core.h"

#include <errno.h>
#include <stdlib.h>

#include "io/datagen.h"
#include "io/filesystem.h"
#include "io/recorded/recorded.h"

static enum weir_err parse_startup(const char *table, const char *option, const char *mode, const char *timestamp,
				   const char *offsets, enum weir_startup *out, int64_t *ts, struct weir_diag **dg)
{
	static const struct {
		const char *name;
		enum weir_startup startup;
	} modes[] = {{"earliest-offset", WEIR_STARTUP_EARLIEST},
		     {"group-offsets", WEIR_STARTUP_EARLIEST},
		     {"latest-offset", WEIR_STARTUP_LATEST},
		     {"timestamp", WEIR_STARTUP_TIMESTAMP},
		     {"specific-offsets", WEIR_STARTUP_OFFSETS}};
	for (size_t i = 0; i < WEIR_COUNT_OF(modes); i++) {
		if (strcmp(mode, modes[i].name) != 0)
			continue;
		*out = modes[i].startup;
		if (*out == WEIR_STARTUP_OFFSETS && !offsets)
			return weir_diag_set(
				dg, WEIR_E_CONF, "table %s: '%s' = 'specific-offsets' needs '%s.specific-offsets'",
				table, option,
				strcmp(option, "scan.bounded.mode") == 0 ? "scan.bounded" : "scan.startup");
		if (*out == WEIR_STARTUP_TIMESTAMP) {
			char *end;
			errno = 0;
			*ts = timestamp ? strtoll(timestamp, &end, 10) : 0;
			if (!timestamp || errno || *end)
				return weir_diag_set(
					dg, WEIR_E_CONF,
					"table %s: '%s' = 'timestamp' needs '%s.timestamp-millis', a number", table,
					option,
					strcmp(option, "scan.bounded.mode") == 0 ? "scan.bounded" : "scan.startup");
		}
		return WEIR_OK;
	}
	return weir_diag_set(dg, WEIR_E_CONF, "table %s: '%s' = '%s' is not known", table, option, mode);
}

/* Topic names of a list separated by ';', in m. */
static uint32_t split_topics(struct weir_mem *m, const char *list, const char ***out)
{
	uint32_t count = 1, n = 0;
	for (const char *p = list; *p; p++)
		count += *p == ';';
	*out = weir_mem_take(m, count * sizeof **out);
	for (const char *at = list; at;) {
		const char *end = strchr(at, ';');
		size_t bytes = end ? (size_t)(end - at) : strlen(at);
		if (bytes)
			(*out)[n++] = weir_mem_strndup(m, at, bytes);
		at = end ? end + 1 : NULL;
	}
	return n;
}

static enum weir_err open_recorded(struct weir_stream_log **out, const struct weir_core *co,
				   const struct weir_table_def *def, const char *path, bool *live,
				   struct weir_diag **dg)
{
	const struct weir_table_options *to = &def->options;
	struct weir_mem m = {0};
	const char **topics = NULL;
	struct weir_recorded_source_spec spec = {
		.path = path,
		.topic_pattern = to->topic_pattern,
		.bounded = WEIR_STARTUP_LATEST,
		.startup_offsets = to->scan_startup_offsets,
		.bounded_offsets = to->scan_bounded_offsets,
		.damaged_skip = to->scan_damaged && strcmp(to->scan_damaged, "skip") == 0,
		.open_transaction_abort = to->scan_end_of_file && strcmp(to->scan_end_of_file, "abort") == 0,
		.read_uncommitted = to->isolation_level && strcmp(to->isolation_level, "read_uncommitted") == 0,
		.batch_bytes_max = (uint32_t)co->settings.batch_bytes_max,
		.batch_memory_max = (size_t)co->settings.memory_max / 4, /* the share of data in flight */
		.idle_bytes_max = co->settings.memory_max / 64 / co->plan->scan_count,
		/* It is the page cache's memory, but counts as held: where memory is short, files are read. */
		.map_bytes = co->settings.memory_max / 16 / co->plan->scan_count,
		.record_bytes_max = (uint32_t)co->settings.record_bytes_max};
	if (!to->topic_pattern) {
		spec.topic_count = split_topics(&m, to->topic ? to->topic : def->name, &topics);
		spec.topics = topics;
	}
	enum weir_err err = WEIR_OK;
	if (to->scan_startup_mode)
		err = parse_startup(def->name, "scan.startup.mode", to->scan_startup_mode, to->scan_startup_timestamp,
				    to->scan_startup_offsets, &spec.startup, &spec.startup_ts, dg);
	if (err == WEIR_OK && to->scan_bounded_mode) {
		if (strcmp(to->scan_bounded_mode, "unbounded") == 0)
			spec.unbounded = true;
		else
			err = parse_startup(def->name, "scan.bounded.mode", to->scan_bounded_mode,
					    to->scan_bounded_timestamp, to->scan_bounded_offsets, &spec.bounded,
					    &spec.bounded_ts, dg);
	}
	*live = spec.unbounded;
	if (err == WEIR_OK)
		err = weir_recorded_source_open(out, &spec, dg);
	weir_mem_fini(&m);
	return err;
}

/* One scan on brokers: texts stay the table's. */
static enum weir_err kafka_scan(struct weir_kafka_scan *out, const struct weir_table_def *def, struct weir_mem *m,
				struct weir_diag **dg)
{
	const struct weir_table_options *to = &def->options;
	bool upsert = to->connector == WEIR_CONNECTOR_UPSERT_KAFKA;
	const char **topics = NULL;
	*out = (struct weir_kafka_scan){
		.table = def->name,
		.topic_pattern = to->topic_pattern,
		.from_group =
			!upsert && (!to->scan_startup_mode || strcmp(to->scan_startup_mode, "group-offsets") == 0),
		.startup_offsets = to->scan_startup_offsets,
		.bound_offsets = to->scan_bounded_offsets,
		.read_uncommitted = to->isolation_level && strcmp(to->isolation_level, "read_uncommitted") == 0};
	if (!to->topic_pattern) {
		out->topic_count = split_topics(m, to->topic ? to->topic : def->name, &topics);
		out->topics = topics;
	}
	enum weir_err err = WEIR_OK;
	if (to->scan_startup_mode)
		err = parse_startup(def->name, "scan.startup.mode", to->scan_startup_mode, to->scan_startup_timestamp,
				    to->scan_startup_offsets, &out->startup, &out->startup_ts, dg);
	if (err == WEIR_OK && to->scan_bounded_mode && strcmp(to->scan_bounded_mode, "unbounded") != 0) {
		out->bounded = true;
		out->bound_from_group = strcmp(to->scan_bounded_mode, "group-offsets") == 0;
		err = parse_startup(def->name, "scan.bounded.mode", to->scan_bounded_mode, to->scan_bounded_timestamp,
				    to->scan_bounded_offsets, &out->bound, &out->bound_ts, dg);
	}
	return err;
}

/* The topics of the job's own results, ended by NULL. */
static const char *const *written_topics(const struct weir_plan *pl, struct weir_mem *m)
{
	const char **names = weir_mem_take(m, (pl->sink_count + 1) * sizeof *names);
	uint32_t n = 0;
	for (uint32_t s = 0; s < pl->sink_count; s++)
		if (pl->sinks[s].table && pl->sinks[s].repartition < 0)
			names[n++] = pl->sinks[s].table->options.topic ? pl->sinks[s].table->options.topic
								       : pl->sinks[s].name;
	names[n] = NULL;
	return names;
}

/* Headers are read as METADATA, and go with bad and late records into topics of their own; else nobody unpacks them. */
static enum weir_err headers_read(bool *out, const struct weir_core *co, uint32_t scan, struct weir_diag **dg)
{
	const struct weir_plan_scan *sc = &co->plan->scans[scan];
	struct weir_source_settings ss;
	enum weir_err err = weir_settings_for_source(&co->settings, &sc->table->options, sc->name, &ss, dg);
	*out = err != WEIR_OK || ss.dead_letter_topic || ss.late_topic;
	for (uint32_t i = 0; i < sc->meta_count; i++)
		*out |= sc->metas[i] == WEIR_META_HEADERS;
	return err;
}

static void say(void *ctx, int level, const char *text)
{
	weir_core_log(ctx, level, "%s", text);
}

/* Repartition topics stand before anybody subscribes to them. */
static enum weir_err make_repartitions(struct weir_core *co, const _Atomic bool *stop, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	struct weir_mem m = {0};
	const char **topics = weir_mem_take(&m, (pl->repartition_count + 1) * sizeof *topics), **sources = NULL;
	uint32_t count = 0;
	for (uint32_t r = 0; r < pl->repartition_count; r++)
		topics[r] = pl->repartitions[r].topic;
	enum weir_err err = WEIR_OK;
	for (uint32_t s = 0; s < pl->scan_count && err == WEIR_OK; s++) {
		const struct weir_table_options *to = &pl->scans[s].table->options;
		if (pl->scans[s].repartition >= 0)
			continue;
		if (weir_core_is_apart(co) || !weir_source_is_kafka(co, s) || to->topic_pattern) {
			err = weir_diag_set(
				dg, WEIR_E_CONF,
				"table %s: exchange = topic wants sources that are topics named on the same "
				"brokers as the results",
				pl->scans[s].name);
			break;
		}
		const char **own;
		uint32_t n = split_topics(&m, to->topic ? to->topic : pl->scans[s].name, &own);
		const char **all = weir_mem_take(&m, (count + n + 1) * sizeof *all);
		if (count)
			memcpy(all, sources, count * sizeof *all);
		memcpy(all + count, own, n * sizeof *all);
		sources = all;
		count += n;
	}
	if (err == WEIR_OK) {
		struct weir_kafka_repartition_spec spec = {
			.app = co->app,
			.topics = topics,
			.topic_count = pl->repartition_count,
			.sources = sources,
			.source_count = count,
			.create = co->settings.topics_create,
			.broker_wait_ms = co->settings.broker_wait_ms ? co->settings.broker_wait_ms : -1,
			.stop = stop};
		struct weir_kafka_log lg = {say, co};
		err = weir_kafka_repartition_create(co->cf, &spec, &lg, dg);
	}
	weir_mem_fini(&m);
	return err;
}

static struct weir_kafka_input_spec input_spec(const struct weir_core *co, const _Atomic bool *stop)
{
	return (struct weir_kafka_input_spec){.group = co->app,
					      .broker_wait_ms =
						      co->settings.broker_wait_ms ? co->settings.broker_wait_ms : -1,
					      .batch_bytes_max = co->settings.batch_bytes_max,
					      .record_bytes_max = co->settings.record_bytes_max,
					      .stop = stop};
}

static const char *first_topic(const struct weir_kafka_scan *sc)
{
	return sc->topic_pattern ? sc->topic_pattern : sc->topics[0];
}

/* Why the group must give partitions out as range does; NULL: it need not. A slot's partition of the changelog holds
 * partition i of whatever is read, so that one member must have partition i of all of it. */
static const char *range_only(const struct weir_core *co, const struct weir_kafka_scan *scans, uint32_t count,
			      struct weir_mem *m)
{
	const struct weir_plan *pl = co->plan;
	for (uint32_t s = 0; s < pl->stage_count; s++)
		if (weir_plan_stage_alone(&pl->stages[s]))
			return weir_mem_printf(m,
					       "state %s needs all partitions of what it reads in one process "
					       "(exchange = local), so that none of them can move alone",
					       pl->stages[s].name);
	if (pl->stage_count == 0 || count < 2)
		return NULL;
	return weir_mem_printf(m,
			       "table %s (topic %s) and table %s (topic %s) are read together, and it does not give "
			       "partition i of both topics to one member",
			       scans[0].table, first_topic(&scans[0]), scans[1].table, first_topic(&scans[1]));
}

/* What reads those of count scans that lie on brokers. A member of the group, where all of them lie at home. */
static enum weir_err open_input(struct weir_core *co, struct weir_kafka_input **out, const char *brokers,
				const struct weir_kafka_scan *scans, const uint32_t *scan, uint32_t count,
				const _Atomic bool *stop, struct weir_diag **dg)
{
	struct weir_kafka_scan *here = weir_xcalloc(count, sizeof *here);
	struct weir_kafka_input_spec spec = input_spec(co, stop);
	uint32_t n = 0;
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(weir_table_brokers(co, co->plan->scans[scan[i]].table), brokers) == 0) {
			co->kafka_scan[scan[i]] = n;
			here[n++] = scans[i];
		}
	spec.member = co->home_kafka && !weir_core_is_apart(co);
	spec.scans = here;
	spec.scan_count = n;
	struct weir_mem m = {0};
	spec.range_only = range_only(co, here, n, &m);
	struct weir_kafka_log lg = {say, co};
	enum weir_err err = weir_kafka_input_open(out, weir_core_conf_of(co, brokers), &spec, &lg, dg);
	weir_mem_fini(&m);
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(weir_table_brokers(co, co->plan->scans[scan[i]].table), brokers) == 0)
			co->scan_input[scan[i]] = *out;
	free(here);
	return err;
}

/* A reader for each cluster with sources. Without a group the first of them stands for it. */
static enum weir_err open_readers(struct weir_core *co, const struct weir_kafka_scan *scans, const uint32_t *scan,
				  uint32_t count, const _Atomic bool *stop, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	co->readers = weir_xcalloc(count + 1, sizeof *co->readers);
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		const char *brokers = weir_table_brokers(co, co->plan->scans[scan[i]].table);
		bool lead = !co->home_kafka && !co->input;
		if (co->scan_input[scan[i]])
			continue;
		err = open_input(co, lead ? &co->input : &co->readers[co->reader_count], brokers, scans, scan, count,
				 stop, dg);
		co->reader_count += !lead && err == WEIR_OK;
	}
	return err;
}

/* The member, which subscribes to the first changelog: input partition i goes with its partition i. */
static enum weir_err open_fence(struct weir_core *co, const _Atomic bool *stop, struct weir_diag **dg)
{
	uint32_t most = 1;
	struct weir_mem m = {0};
	for (uint32_t s = 0; s < co->plan->scan_count; s++) {
		uint32_t n = co->streams[s]->ops->partitions(co->streams[s]);
		most = n > most ? n : most;
	}
	const char *topic = weir_core_changelog(co, 0, &m);
	struct weir_kafka_input_spec spec = input_spec(co, stop);
	struct weir_kafka_changelog_spec changelog = {.topic = topic,
						      .partitions = most,
						      .create = co->settings.topics_create,
						      .broker_wait_ms = spec.broker_wait_ms,
						      .stop = stop};
	struct weir_kafka_log lg = {say, co};
	enum weir_err err = weir_kafka_changelog_create(co->cf, &changelog, &lg, dg);
	struct weir_kafka_scan scan = {
		.table = "changelog", .topics = &topic, .topic_count = 1, .headers_unused = true};
	spec.member = spec.fence = true;
	spec.range_only = "what is read lies on other brokers than the results, and follows the group as a whole";
	spec.scans = &scan;
	spec.scan_count = 1;
	if (err == WEIR_OK)
		err = weir_kafka_input_open(&co->input, co->cf, &spec, &lg, dg);
	co->fenced = err == WEIR_OK;
	weir_mem_fini(&m);
	return err;
}

enum weir_err weir_kafka_sources_open(struct weir_core *co, const _Atomic bool *stop, struct weir_diag **dg)
{
	const struct weir_plan *pl = co->plan;
	struct weir_mem m = {0};
	struct weir_kafka_scan *scans = weir_mem_take(&m, (pl->scan_count + 1) * sizeof *scans);
	uint32_t *scan = weir_mem_take(&m, (pl->scan_count + 1) * sizeof *scan);
	const char *const *written = written_topics(pl, &m);
	uint32_t count = 0;
	enum weir_err err = pl->repartition_count ? make_repartitions(co, stop, dg) : WEIR_OK;
	for (uint32_t s = 0; s < pl->scan_count && err == WEIR_OK; s++) {
		if (!weir_source_is_kafka(co, s))
			continue;
		scan[count] = s;
		err = kafka_scan(&scans[count], pl->scans[s].table, &m, dg);
		bool headers = true;
		scans[count].inner = pl->scans[s].repartition >= 0;
		if (err == WEIR_OK)
			err = headers_read(&headers, co, s, dg);
		scans[count].written = written;
		scans[count++].headers_unused = !headers;
	}
	bool apart = weir_core_is_apart(co);
	if (err == WEIR_OK && count > 0 && !apart)
		err = open_input(co, &co->input, co->settings.bootstrap_servers, scans, scan, count, stop, dg);
	if (err == WEIR_OK && apart)
		err = open_readers(co, scans, scan, count, stop, dg);
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		struct weir_kafka_input *in = co->scan_input[scan[i]];
		uint32_t n = co->kafka_scan[scan[i]];
		co->streams[scan[i]] = weir_kafka_input_stream(in, n);
		co->live = true;
		/* A repartition topic ends with what feeds it. */
		co->endless |= pl->scans[scan[i]].repartition < 0 && weir_kafka_input_live(in, n);
	}
	if (err == WEIR_OK && apart && co->home_kafka)
		err = open_fence(co, stop, dg);
	weir_mem_fini(&m);
	return err;
}

enum weir_err weir_source_open(struct weir_stream_log **out, const struct weir_core *co, uint32_t scan, bool *live,
			       struct weir_diag **dg)
{
	const struct weir_plan_scan *sc = &co->plan->scans[scan];
	const struct weir_table_def *def = sc->table;
	*live = false;
	switch (def->options.connector) {
	case WEIR_CONNECTOR_RECORDED:
	case WEIR_CONNECTOR_KAFKA:
	case WEIR_CONNECTOR_UPSERT_KAFKA: {
		const char *path = weir_table_folder(co, def);
		if (path)
			return open_recorded(out, co, def, path, live, dg);
		if (def->options.connector == WEIR_CONNECTOR_RECORDED)
			return weir_diag_set(dg, WEIR_E_CONF,
					     "source %s: connector 'recorded' needs 'path', or -b file:DIR", def->name);
		return weir_diag_set(dg, WEIR_E_CONF, "source %s lies on brokers", def->name); /* not opened here */
	}
	case WEIR_CONNECTOR_DATAGEN:
		return weir_datagen_open(out, &(struct weir_datagen_spec){.table = def}, live, dg);
	case WEIR_CONNECTOR_FILESYSTEM:
		return weir_filesystem_open(
			out,
			&(struct weir_filesystem_spec){.path = def->options.path,
						       .format = &sc->value_format,
						       .record_bytes_max = (uint32_t)co->settings.record_bytes_max},
			dg);
	default:
		return weir_diag_set(dg, WEIR_E_PLAN, "table %s: connector %s cannot be read from", def->name,
				     weir_connector_name(def->options.connector));
	}
}
