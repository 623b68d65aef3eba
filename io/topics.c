/* topics.c: where the tables of a plan lie, and which of their topics are one (topics.h). @thread init
 *
 * A query that reads what it writes never ends, by itself or by way of others. One that reads what another of the same
 * job writes is fine where topics are followed; read to their end, they would show what an earlier run has left, and
 * the way from one query to another is a view. */
#include "io/topics.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Where a topic lies. Neither: in the one place that nobody names. */
struct place {
	const char *folder;
	const char *brokers;
};

/* Something that is written. */
struct written {
	const char *what; /* "table revenue" */
	const char *topic;
	struct place at;
	const struct weir_plan_sink *sink; /* NULL: bad or late records, as they came */
	uint32_t index;                    /* of the sink; of the scan whose bad or late records they are */
};

bool weir_topic_pattern_compile(regex_t *re, const char *pattern)
{
	size_t bytes = strlen(pattern) + 5;
	char *whole = weir_xmalloc(bytes);
	snprintf(whole, bytes, "^(%s)$", pattern);
	int rc = regcomp(re, whole, REG_EXTENDED | REG_NOSUB);
	free(whole);
	return rc == 0;
}

/* ---- places ---- */

static bool is_topic(const struct weir_table_def *def)
{
	enum weir_connector c = def != NULL ? def->options.connector : WEIR_CONNECTOR_NONE;
	return c == WEIR_CONNECTOR_RECORDED || c == WEIR_CONNECTOR_KAFKA || c == WEIR_CONNECTOR_UPSERT_KAFKA;
}

static struct place place_named(const char *name)
{
	bool folder = name != NULL && strncmp(name, "file:", 5) == 0;
	return (struct place){folder ? name + 5 : NULL, folder ? NULL : name};
}

static struct place place_of(const struct weir_settings *st, const struct weir_table_def *def)
{
	const struct weir_table_options *o = &def->options;
	if (o->connector == WEIR_CONNECTOR_RECORDED && o->path != NULL)
		return (struct place){o->path, NULL};
	return place_named(st->bootstrap_servers != NULL || o->bootstrap_servers == NULL ? st->bootstrap_servers
											 : o->bootstrap_servers);
}

/* The next part of a path that says anything. */
static const char *next_part(const char *at, size_t *bytes)
{
	for (;;) {
		at += strspn(at, "/");
		*bytes = strcspn(at, "/");
		if (*bytes != 1 || *at != '.')
			return at;
		at++;
	}
}

static bool same_folder(const char *a, const char *b)
{
	struct stat sa, sb;
	bool there = stat(a, &sa) == 0;
	if (there != (stat(b, &sb) == 0) || (*a == '/') != (*b == '/'))
		return false;
	if (there)
		return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
	for (size_t an, bn;;) {
		a = next_part(a, &an);
		b = next_part(b, &bn);
		if (an != bn || memcmp(a, b, an) != 0)
			return false;
		if (an == 0)
			return true;
		a += an;
		b += bn;
	}
}

/* Lists of brokers that have one in common are of one cluster. */
static bool same_brokers(const char *a, const char *b)
{
	for (size_t an; *a != 0; a += an + (a[an] == ',')) {
		an = strcspn(a, ",");
		const char *at = b;
		for (size_t bn; *at != 0; at += bn + (at[bn] == ',')) {
			bn = strcspn(at, ",");
			if (an == bn && an != 0 && memcmp(a, at, an) == 0)
				return true;
		}
	}
	return false;
}

/* Tables on brokers that nobody names lie where the others do: there is but one cluster then. */
static bool same_place(const struct place *a, const struct place *b)
{
	if ((a->folder != NULL) != (b->folder != NULL))
		return false;
	if (a->folder != NULL)
		return same_folder(a->folder, b->folder);
	return a->brokers == NULL || b->brokers == NULL || same_brokers(a->brokers, b->brokers);
}

static const char *place_word(const struct place *at)
{
	return at->folder != NULL ? "in" : "on";
}

static const char *place_text(const struct place *at)
{
	return at->folder != NULL ? at->folder : at->brokers != NULL ? at->brokers : "Kafka";
}

/* ---- read and written ---- */

static bool reads_topic(const struct weir_table_options *o, const char *name, const char *topic)
{
	if (o->topic_pattern != NULL) {
		regex_t re;
		bool match = weir_topic_pattern_compile(&re, o->topic_pattern);
		if (match) {
			match = regexec(&re, topic, 0, NULL, 0) == 0;
			regfree(&re);
		}
		return match;
	}
	size_t bytes, wanted = strlen(topic);
	for (const char *at = o->topic != NULL ? o->topic : name; *at != 0; at += bytes + (at[bytes] == ';')) {
		bytes = strcspn(at, ";");
		if (bytes == wanted && memcmp(at, topic, bytes) == 0)
			return true;
	}
	return false;
}

/* Whether rows of scan reach what ends at branches of kind `to` into target. */
static bool feeds(const struct weir_plan *pl, uint32_t scan, enum weir_branch_to to, uint32_t target)
{
	for (uint32_t b = 0; b < pl->branch_count; b++) {
		const struct weir_plan_branch *br = &pl->branches[b];
		if (br->to != to || br->target != target)
			continue;
		if (br->from == WEIR_FROM_STAGE) {
			if (feeds(pl, scan, WEIR_TO_STAGE, br->origin))
				return true;
			continue;
		}
		int32_t rp = pl->scans[br->origin].repartition;
		if (br->origin == scan || (rp >= 0 && feeds(pl, scan, WEIR_TO_SINK, pl->repartitions[rp].sink)))
			return true;
	}
	return false;
}

/* Everything that is written, and where. */
struct links {
	const struct weir_plan *pl;
	const struct weir_settings *st;
	const struct written *all;
	uint32_t count;
};

/* Whether scan reads what w writes. */
static bool reads(const struct links *ln, uint32_t scan, const struct written *w)
{
	const struct weir_plan_scan *sc = &ln->pl->scans[scan];
	if (sc->repartition >= 0 || !is_topic(sc->table))
		return false;
	struct place at = place_of(ln->st, sc->table);
	return same_place(&w->at, &at) && reads_topic(&sc->table->options, sc->name, w->topic);
}

/* Whether something that comes of scan's rows is read by scan `to`, through however many topics. seen: by scan. */
static bool comes_to(const struct links *ln, uint32_t scan, uint32_t to, bool *seen)
{
	seen[scan] = true;
	for (uint32_t i = 0; i < ln->count; i++) {
		const struct written *w = &ln->all[i];
		if (w->sink != NULL ? !feeds(ln->pl, scan, WEIR_TO_SINK, w->index) : w->index != scan)
			continue;
		for (uint32_t s = 0; s < ln->pl->scan_count; s++)
			if (reads(ln, s, w) && (s == to || (!seen[s] && comes_to(ln, s, to, seen))))
				return true;
	}
	return false;
}

/* Whether scan goes on with what is written while it reads. */
static bool follows(const struct links *ln, uint32_t scan)
{
	const struct weir_table_def *def = ln->pl->scans[scan].table;
	const char *mode = def->options.scan_bounded_mode;
	if (mode != NULL)
		return strcmp(mode, "unbounded") == 0;
	return place_of(ln->st, def).folder == NULL;
}

/* What w writes is read by scan. */
static enum weir_err check_read(const struct links *ln, const struct written *w, uint32_t scan, struct weir_mem *m,
				struct weir_diag **dg)
{
	const char *name = ln->pl->scans[scan].name;
	bool *seen = weir_mem_take(m, ln->pl->scan_count * sizeof *seen);
	bool loop = comes_to(ln, scan, scan, seen);
	if (!loop && follows(ln, scan))
		return WEIR_OK;
	enum weir_err err =
		weir_diag_set(dg, WEIR_E_CONF, "%s writes topic %s %s %s, which table %s reads in the same job: %s",
			      w->what, w->topic, place_word(&w->at), place_text(&w->at), name,
			      loop ? "what is written would be read again, without end"
				   : "read to its end, it would be seen as an earlier run has left it");
	if (dg == NULL)
		return err;
	if (loop)
		weir_diag_add_hint(*dg, "write to another topic; two files, each an application, may pass rows around");
	else
		weir_diag_add_hint(*dg,
				   "read the same rows with a view (CREATE VIEW), or put the query that reads table %s "
				   "into a file of its own",
				   name);
	return err;
}

/* ---- written twice ---- */

static char or_char(char c, char otherwise)
{
	return c != 0 ? c : otherwise;
}

/* Whether a reader of one reads the other; *what names what differs. */
static bool same_format(const struct weir_format_options *a, const struct weir_format_options *b, const char **what)
{
	const char *null_a = a->csv_null_literal, *null_b = b->csv_null_literal;
	*what = NULL;
	if (a->kind != b->kind)
		*what = "format";
	else if (a->timestamp_iso8601 != b->timestamp_iso8601)
		*what = "timestamp-format.standard";
	else if (a->kind == WEIR_FORMAT_CSV && or_char(a->csv_delimiter, ',') != or_char(b->csv_delimiter, ','))
		*what = "field-delimiter";
	else if (a->kind == WEIR_FORMAT_CSV &&
		 (a->csv_disable_quote != b->csv_disable_quote ||
		  or_char(a->csv_quote, '"') != or_char(b->csv_quote, '"') || a->csv_escape != b->csv_escape))
		*what = "quoting";
	else if (a->kind == WEIR_FORMAT_CSV &&
		 ((null_a != NULL) != (null_b != NULL) || (null_a != NULL && strcmp(null_a, null_b) != 0)))
		*what = "null-literal";
	else if ((a->kind == WEIR_FORMAT_RAW || a->kind == WEIR_FORMAT_KAFKA) &&
		 a->raw_little_endian != b->raw_little_endian)
		*what = "endianness";
	return *what == NULL;
}

/* JSON names its columns; elsewhere it is their place that counts. */
static bool same_columns(const struct weir_format_options *o, const struct weir_plan_sink *a, const uint32_t *a_columns,
			 uint32_t a_count, const struct weir_plan_sink *b, const uint32_t *b_columns, uint32_t b_count)
{
	if (o->kind == WEIR_FORMAT_JSON || weir_format_is_changelog(o->kind))
		return true;
	bool same = a_count == b_count;
	for (uint32_t c = 0; same && c < a_count; c++)
		same = weir_type_equal(&a->column_types[a_columns[c]], &b->column_types[b_columns[c]]);
	return same;
}

static const char *key_text(const struct weir_plan_sink *sk)
{
	return !sk->has_key ? "none" : sk->key_windowed ? "windowed" : weir_format_name(sk->key_format.kind);
}

static bool same_key(const struct weir_plan_sink *a, const struct weir_plan_sink *b)
{
	const char *what;
	return a->key_session == b->key_session && same_format(&a->key_format, &b->key_format, &what) &&
	       same_columns(&a->key_format, a, a->key_columns, a->key_count, b, b->key_columns, b->key_count);
}

static enum weir_err check_both(const struct written *a, const struct written *b, struct weir_mem *m,
				struct weir_diag **dg)
{
	const struct weir_plan_sink *sa = a->sink, *sb = b->sink;
	const char *what, *one = NULL, *other = NULL;
	if (sa == NULL && sb == NULL)
		return WEIR_OK;
	if (sa == NULL || sb == NULL)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "%s and %s are one topic, %s %s %s: results and records as they came cannot be "
				     "told apart there",
				     a->what, b->what, a->topic, place_word(&a->at), place_text(&a->at));
	if (!same_format(&sa->value_format, &sb->value_format, &what)) {
		one = weir_format_name(sa->value_format.kind);
		other = weir_format_name(sb->value_format.kind);
	} else if (strcmp(key_text(sa), key_text(sb)) != 0) {
		what = "key.format";
		one = key_text(sa);
		other = key_text(sb);
	} else if (sa->has_key && !same_key(sa, sb)) {
		what = "key";
	} else if (!same_columns(&sa->value_format, sa, sa->value_columns, sa->value_count, sb, sb->value_columns,
				 sb->value_count)) {
		what = "columns";
	} else {
		return WEIR_OK;
	}
	const char *differ = one != other ? weir_mem_printf(m, " (%s, %s)", one, other) : "";
	enum weir_err err =
		weir_diag_set(dg, WEIR_E_CONF,
			      "%s and %s both write topic %s %s %s, but not alike, so that nobody could read it: %s%s",
			      a->what, b->what, a->topic, place_word(&a->at), place_text(&a->at), what, differ);
	if (dg != NULL)
		weir_diag_add_hint(*dg, "declare both alike, or write two topics");
	return err;
}

/* ---- all ---- */

/* Where dead letters and late records of scan go: to the results, else to what they come from. */
static struct place home_of(const struct weir_plan *pl, const struct weir_settings *st, uint32_t scan)
{
	for (uint32_t s = 0; s < pl->sink_count; s++)
		if (pl->sinks[s].repartition < 0 && is_topic(pl->sinks[s].table) && !pl->sinks[s].prints_rows &&
		    st->state_home == NULL)
			return place_of(st, pl->sinks[s].table);
	if (st->state_home != NULL && strchr(st->state_home, ':') == NULL)
		return (struct place){st->state_home, NULL};
	return st->state_home != NULL ? place_named(st->state_home) : place_of(st, pl->scans[scan].table);
}

static uint32_t list_written(const struct weir_plan *pl, const struct weir_settings *st, struct weir_mem *m,
			     struct written *out)
{
	uint32_t n = 0;
	for (uint32_t s = 0; s < pl->sink_count; s++) {
		const struct weir_plan_sink *sk = &pl->sinks[s];
		if (sk->repartition >= 0 || sk->prints_rows || !is_topic(sk->table))
			continue;
		const char *topic = sk->table->options.topic;
		out[n++] = (struct written){weir_mem_printf(m, "table %s", sk->name), topic != NULL ? topic : sk->name,
					    place_of(st, sk->table), sk, s};
	}
	for (uint32_t s = 0; s < pl->scan_count; s++) {
		struct weir_source_settings ss;
		struct weir_diag *said_elsewhere = NULL;
		if (pl->scans[s].repartition >= 0)
			continue;
		if (weir_settings_for_source(st, &pl->scans[s].table->options, pl->scans[s].name, &ss,
					     &said_elsewhere) != WEIR_OK) {
			weir_diag_destroy(said_elsewhere);
			continue;
		}
		const char *topics[2] = {ss.dead_letter_topic, ss.late_topic};
		for (int k = 0; k < 2; k++)
			if (topics[k] != NULL)
				out[n++] = (struct written){
					weir_mem_printf(m, "%s of table %s",
							k == 0 ? "errors.deadletterqueue.topic.name" : "late.topic",
							pl->scans[s].name),
					topics[k], home_of(pl, st, s), NULL, s};
	}
	return n;
}

enum weir_err weir_topics_check(const struct weir_plan *pl, const struct weir_settings *st, struct weir_diag **dg)
{
	struct weir_mem m = {0};
	struct written *all = weir_mem_take(&m, (pl->sink_count + 2 * pl->scan_count + 1) * sizeof *all);
	uint32_t count = list_written(pl, st, &m, all);
	const struct links ln = {pl, st, all, count};
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		for (uint32_t s = 0; s < pl->scan_count && err == WEIR_OK; s++)
			if (reads(&ln, s, &all[i]))
				err = check_read(&ln, &all[i], s, &m, dg);
		for (uint32_t j = 0; j < i && err == WEIR_OK; j++)
			if (strcmp(all[i].topic, all[j].topic) == 0 && same_place(&all[i].at, &all[j].at))
				err = check_both(&all[j], &all[i], &m, dg);
	}
	weir_mem_fini(&m);
	return err;
}
