/* clusters.c: on which brokers the tables of a job lie, and how what is read elsewhere follows the group (core.h).
 * @thread init and io
 *
 * One cluster: the group's member reads the sources, and what it is given is what is read. Sources on brokers other
 * than the results', or in recordings while results lie on brokers: the member subscribes to the changelog instead,
 * input partition i goes with changelog partition i, and each cluster with sources has a reader that is in no group.
 * Offsets are then in the markers alone; what a transaction sends to the group is there to be fenced. */
#include <stdlib.h>

#include "io/core.h"

/* ---- which ---- */

const char *weir_table_brokers(const struct weir_core *co, const struct weir_table_def *def)
{
	if (co->brokers_given || !def->options.bootstrap_servers)
		return co->settings.bootstrap_servers;
	return def->options.bootstrap_servers;
}

/* What a table says in properties.* holds for the clients of its cluster, where nobody said otherwise for the job. */
static enum weir_err take_properties(struct weir_conf *cf, const struct weir_table_def *def, struct weir_diag **dg)
{
	static const char prefix[] = "properties.";
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < def->options.other_count && err == WEIR_OK; i++) {
		const struct weir_option *o = &def->options.other[i];
		if (strncmp(o->name, prefix, sizeof prefix - 1) != 0 ||
		    weir_conf_is_set(cf, o->name + sizeof prefix - 1))
			continue;
		err = weir_conf_set_from(cf, o->name + sizeof prefix - 1, o->value, WEIR_ORIGIN_FILE, def->name, dg);
	}
	return err;
}

/* Table i of the plan, sinks before scans; NULL: not on brokers, or a topic between stages. */
static const struct weir_table_def *table_at(const struct weir_core *co, uint32_t i)
{
	const struct weir_plan *pl = co->plan;
	bool sink = i < pl->sink_count;
	uint32_t n = sink ? i : i - pl->sink_count;
	bool internal = sink ? pl->sinks[n].repartition >= 0 : pl->scans[n].repartition >= 0;
	const struct weir_table_def *def = sink ? pl->sinks[n].table : pl->scans[n].table;
	return !internal && weir_table_on_brokers(co, def) ? def : NULL;
}

/* A table that names other brokers than the first that names any; *first, and *unnamed, one that names none. */
static const struct weir_table_def *look_around(const struct weir_core *co, const struct weir_table_def **first,
						const struct weir_table_def **unnamed, bool *any)
{
	const struct weir_table_def *other = NULL;
	*first = *unnamed = NULL;
	*any = false;
	for (uint32_t i = 0; i < co->plan->sink_count + co->plan->scan_count; i++) {
		const struct weir_table_def *def = table_at(co, i);
		if (!def)
			continue;
		*any = true;
		const char *own = def->options.bootstrap_servers;
		if (!own)
			*unnamed = def;
		else if (!*first)
			*first = def;
		else if (!other && strcmp(own, (*first)->options.bootstrap_servers) != 0)
			other = def;
	}
	return other;
}

/* The clients of another cluster: what holds for the job, and what the tables there say. */
static enum weir_err add_cluster(struct weir_core *co, const struct weir_conf *job, const char *brokers,
				 const char *table, struct weir_diag **dg)
{
	struct weir_core_cluster *cl = &co->clusters[co->cluster_count++];
	cl->brokers = brokers;
	cl->cf = weir_conf_copy(job);
	enum weir_err err = weir_conf_set_from(cl->cf, "bootstrap.servers", brokers, WEIR_ORIGIN_FILE, table, dg);
	for (uint32_t i = 0; err == WEIR_OK && i < co->plan->sink_count + co->plan->scan_count; i++) {
		const struct weir_table_def *def = table_at(co, i);
		if (def && strcmp(weir_table_brokers(co, def), brokers) == 0)
			err = take_properties(cl->cf, def, dg);
	}
	return err;
}

static enum weir_err add_clusters(struct weir_core *co, const struct weir_conf *job, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; err == WEIR_OK && i < co->plan->sink_count + co->plan->scan_count; i++) {
		const struct weir_table_def *def = table_at(co, i);
		if (!def)
			continue;
		const char *brokers = weir_table_brokers(co, def);
		bool known = strcmp(brokers, co->settings.bootstrap_servers) == 0;
		if (known)
			err = take_properties(co->cf, def, dg);
		for (uint32_t c = 0; !known && c < co->cluster_count; c++)
			known = strcmp(brokers, co->clusters[c].brokers) == 0;
		if (err == WEIR_OK && !known)
			err = add_cluster(co, job, brokers, def->name, dg);
	}
	return err;
}

/* An epoch commits in one place. */
static enum weir_err check_sinks(const struct weir_core *co, struct weir_diag **dg)
{
	const struct weir_table_def *first = NULL;
	for (uint32_t i = 0; i < co->plan->sink_count; i++) {
		const struct weir_table_def *def = table_at(co, i);
		if (!def)
			continue;
		if (first && strcmp(weir_table_brokers(co, first), weir_table_brokers(co, def)) != 0)
			return weir_diag_set(dg, WEIR_E_CONF,
					     "sink %s lies on the brokers %s, sink %s on %s: an epoch commits on one "
					     "cluster; write both to one of them (sources may lie on others)",
					     first->name, weir_table_brokers(co, first), def->name,
					     weir_table_brokers(co, def));
		first = first ? first : def;
	}
	return WEIR_OK;
}

enum weir_err weir_core_find_brokers(struct weir_core *co, bool *any, struct weir_diag **dg)
{
	const struct weir_table_def *first, *unnamed;
	enum weir_err err = weir_core_take_guarantee(co, dg);
	if (err != WEIR_OK)
		return err;
	const struct weir_table_def *other = look_around(co, &first, &unnamed, any);
	if (!*any && co->plan->repartition_count)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "exchange = topic is for instances that share the work through brokers; no table "
				     "lies on brokers here: leave it at auto");
	if (!*any)
		return WEIR_OK;
	if (!co->brokers_given && !first)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "which brokers? 'properties.bootstrap.servers' in WITH, or -b HOST:PORT; "
				     "-b file:DIR for recorded topics");
	if (!co->brokers_given && other && unnamed)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "table %s lies on which brokers? Other tables are on %s and on %s: it needs "
				     "'properties.bootstrap.servers', too",
				     unnamed->name, first->options.bootstrap_servers, other->options.bootstrap_servers);
	struct weir_conf *job = weir_conf_copy(co->cf);
	if (!co->brokers_given) /* sinks come first: the application is at home where its results are */
		err = weir_conf_set_from(co->cf, "bootstrap.servers", first->options.bootstrap_servers,
					 WEIR_ORIGIN_FILE, first->name, dg);
	if (err == WEIR_OK && !co->brokers_given)
		err = weir_conf_settings(co->cf, &co->settings, dg);
	if (err == WEIR_OK)
		err = check_sinks(co, dg);
	co->clusters = weir_xcalloc(co->plan->sink_count + co->plan->scan_count + 1, sizeof *co->clusters);
	if (err == WEIR_OK)
		err = add_clusters(co, job, dg);
	weir_conf_destroy(job);
	if (err == WEIR_OK)
		err = weir_conf_settings(co->cf, &co->settings, dg); /* texts are borrowed until a set */
	return err;
}

bool weir_core_is_apart(const struct weir_core *co)
{
	bool recorded = false;
	for (uint32_t s = 0; s < co->plan->scan_count; s++)
		recorded |= weir_table_folder(co, co->plan->scans[s].table) != NULL;
	return co->cluster_count != 0 || (co->home_kafka && recorded);
}

const struct weir_conf *weir_core_conf_of(const struct weir_core *co, const char *brokers)
{
	for (uint32_t c = 0; c < co->cluster_count; c++)
		if (strcmp(co->clusters[c].brokers, brokers) == 0)
			return co->clusters[c].cf;
	return co->cf;
}

void weir_clusters_fini(struct weir_core *co)
{
	for (uint32_t r = 0; r < co->reader_count; r++)
		weir_kafka_input_close(co->readers[r]);
	for (uint32_t c = 0; c < co->cluster_count; c++)
		weir_conf_destroy(co->clusters[c].cf);
	free(co->readers);
	free(co->clusters);
	free(co->scan_input);
	free(co->kafka_scan);
}

/* ---- what follows the group ---- */

bool weir_core_owns(const struct weir_core *co, uint32_t scan, uint32_t p)
{
	if (co->fenced)
		return weir_kafka_input_owned(co->input, 0,
					      co->inputs[co->plan->scans[scan].partition_base + p].changelog_partition);
	return co->scan_input[scan] != co->input || weir_kafka_input_owned(co->input, co->kafka_scan[scan], p);
}

enum weir_err weir_clusters_take(struct weir_core *co, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t r = 0; err == WEIR_OK && r < co->reader_count; r++) {
		const bool **owned = weir_xcalloc(co->plan->scan_count + 1, sizeof *owned);
		for (uint32_t s = 0; s < co->plan->scan_count; s++)
			if (co->scan_input[s] == co->readers[r])
				owned[co->kafka_scan[s]] = co->owned + co->plan->scans[s].partition_base;
		err = weir_kafka_input_take(co->readers[r], owned, dg);
		free(owned);
	}
	return err;
}

enum weir_err weir_clusters_begin(struct weir_core *co, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t r = 0; err == WEIR_OK && r < co->reader_count; r++)
		err = weir_kafka_input_begin(co->readers[r], dg);
	return err == WEIR_OK ? weir_kafka_input_begin(co->input, dg) : err;
}

enum weir_err weir_clusters_serve(struct weir_core *co, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	enum weir_kafka_group_state state;
	for (uint32_t r = 0; err == WEIR_OK && r < co->reader_count; r++)
		err = weir_kafka_input_serve(co->readers[r], 0, &state, dg);
	return err;
}

void weir_clusters_pause(struct weir_core *co, bool paused)
{
	for (uint32_t r = 0; r < co->reader_count; r++)
		weir_kafka_input_pause(co->readers[r], paused);
	weir_kafka_input_pause(co->input, paused);
}

void weir_clusters_end(struct weir_core *co)
{
	for (uint32_t r = 0; r < co->reader_count; r++) {
		struct weir_diag *dg = NULL;
		if (weir_kafka_input_release(co->readers[r], &dg) != WEIR_OK)
			weir_diag_destroy(dg); /* the next begin says what is wrong, too */
	}
}
