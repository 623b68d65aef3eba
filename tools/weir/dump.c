/* dump.c: `weir dump DIR TOPIC`, `weir dump -b BROKERS TOPIC`: the records of a recorded topic or of Kafka's, partition
 * by partition, in kcat's JSON shape, as CSV or raw; or one line that stands for all of them. Reads what is committed,
 * unless told otherwise. Main thread. */
#include "hotpath/core/utf8.h"
#include "hotpath/core/varint.h"
#include "checkpoint/record.h"
#include "io/recorded/recorded.h"
#include "tools/weir/entries.h"
#include "tools/weir/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

enum dump_format { FORMAT_JSON, FORMAT_CSV, FORMAT_RAW };

struct dump_plan {
	const char *path;
	const char *topic;
	enum dump_format format;
	int64_t partition; /* -1: all */
	const char *offset;
	uint64_t count_max;
	bool digest;
	bool uncommitted;
	bool cluster; /* -b names brokers */
	bool follow;
	bool ended;
	struct weir_job job;
	const char *tstype;
	int32_t broker; /* -1: recorded */
	bool changelog; /* the topic's name says so: entries are shown decoded */
	struct weir_entries *entries;
	uint64_t count;
	uint64_t bytes;
	XXH3_state_t *hash;
};

/* ---- one record ---- */

struct header {
	const uint8_t *name;
	size_t name_bytes;
	const uint8_t *value; /* NULL: a null */
	size_t value_bytes;
};

static bool take_header(const uint8_t **p, const uint8_t *end, struct header *h)
{
	int64_t bytes;
	if (!weir_varint_take(p, end, &bytes) || bytes < 0 || bytes > end - *p)
		return false;
	*h = (struct header){.name = *p, .name_bytes = (size_t)bytes};
	*p += bytes;
	if (!weir_varint_take(p, end, &bytes) || bytes < -1 || bytes > end - *p)
		return false;
	if (bytes >= 0) {
		h->value = *p;
		h->value_bytes = (size_t)bytes;
		*p += bytes;
	}
	return true;
}

static void put_string(const uint8_t *p, size_t bytes)
{
	if (p == NULL)
		weir_data_puts("null");
	else
		weir_data_json(p, bytes);
}

/* `"key":"..."`, and the exact bytes beside it where the text cannot hold them. */
static void put_bytes_member(const char *name, const uint8_t *p, size_t bytes)
{
	weir_data_printf(",\"%s\":", name);
	put_string(p, bytes);
	if (p != NULL && !weir_utf8_check(p, bytes, NULL)) {
		weir_data_printf(",\"%s_base64\":\"", name);
		weir_data_base64(p, bytes);
		weir_data_puts("\"");
	}
}

static void put_headers(const struct weir_record *r)
{
	const uint8_t *p = r->headers;
	const uint8_t *end = p + r->headers_bytes;
	struct header h;
	for (uint32_t i = 0; i < r->header_count && take_header(&p, end, &h); i++) {
		weir_data_puts(i == 0 ? "" : ",");
		weir_data_json(h.name, h.name_bytes);
		weir_data_puts(",");
		put_string(h.value, h.value_bytes);
	}
}

static void put_json(const struct dump_plan *pl, const char *topic, uint32_t partition, const struct weir_record *r)
{
	weir_data_puts("{\"topic\":");
	weir_data_json((const uint8_t *)topic, strlen(topic));
	weir_data_printf(",\"partition\":%u,\"offset\":%lld,\"tstype\":\"%s\",\"ts\":%lld", partition,
			 (long long)r->offset, pl->tstype, (long long)r->timestamp);
	if (pl->broker >= 0)
		weir_data_printf(",\"broker\":%d", pl->broker);
	if (r->header_count != 0) {
		weir_data_puts(",\"headers\":[");
		put_headers(r);
		weir_data_puts("]");
	}
	if (pl->changelog) {
		struct weir_buf entry = {0};
		weir_record_describe(r, &entry);
		weir_entries_add(pl->entries, r, &entry);
		weir_data_puts(",\"entry\":");
		weir_data_put(entry.data, entry.bytes);
		weir_buf_fini(&entry);
	} else {
		put_bytes_member("key", r->key, r->key_bytes);
		put_bytes_member("payload", r->value, r->value_bytes);
	}
	weir_data_puts("}\n");
}

/* RFC 4180: quoted where needed; a null is an empty field, an empty value is "". */
static void put_csv_field(const uint8_t *p, size_t bytes)
{
	weir_data_puts(",");
	if (p == NULL)
		return;
	bool quote = bytes == 0;
	for (size_t i = 0; i < bytes && !quote; i++)
		quote = p[i] == ',' || p[i] == '"' || p[i] == '\n' || p[i] == '\r';
	if (!quote) {
		weir_data_put(p, bytes);
		return;
	}
	weir_data_puts("\"");
	for (size_t i = 0; i < bytes; i++) {
		if (p[i] == '"')
			weir_data_puts("\"");
		weir_data_put(p + i, 1);
	}
	weir_data_puts("\"");
}

static void put_csv(const char *topic, uint32_t partition, const struct weir_record *r)
{
	weir_data_printf("%s,%u,%lld,%lld", topic, partition, (long long)r->offset, (long long)r->timestamp);
	put_csv_field(r->key, r->key_bytes);
	put_csv_field(r->value, r->value_bytes);
	weir_data_puts("\n");
}

/* Everything about a record that a reader can see, with lengths, so that no two different records feed the same bytes.
 */
static void digest_record(struct dump_plan *pl, uint32_t partition, const struct weir_record *r)
{
	uint8_t head[40];
	weir_store_le32(head, partition);
	weir_store_le64(head + 4, (uint64_t)r->offset);
	weir_store_le64(head + 12, (uint64_t)r->timestamp);
	weir_store_le32(head + 20, r->key == NULL ? UINT32_MAX : r->key_bytes);
	weir_store_le32(head + 24, r->value == NULL ? UINT32_MAX : r->value_bytes);
	weir_store_le32(head + 28, r->header_count);
	weir_store_le64(head + 32, r->headers_bytes);
	XXH3_128bits_update(pl->hash, head, sizeof head);
	if (r->key != NULL)
		XXH3_128bits_update(pl->hash, r->key, r->key_bytes);
	if (r->value != NULL)
		XXH3_128bits_update(pl->hash, r->value, r->value_bytes);
	if (r->header_count != 0)
		XXH3_128bits_update(pl->hash, r->headers, r->headers_bytes);
}

static void put_record(struct dump_plan *pl, const char *topic, uint32_t partition, const struct weir_record *r)
{
	pl->count++;
	pl->bytes += r->key_bytes + r->value_bytes;
	if (pl->digest) {
		digest_record(pl, partition, r);
	} else if (pl->format == FORMAT_JSON) {
		put_json(pl, topic, partition, r);
	} else if (pl->format == FORMAT_CSV) {
		put_csv(topic, partition, r);
	} else {
		weir_data_put(r->value, r->value_bytes);
		weir_data_puts("\n");
	}
}

/* ---- reading ---- */

/* Where to start in partition p: end and -N are told from the range the log has now. */
static enum weir_err seek_start(const struct dump_plan *pl, struct weir_stream_log *sl, uint32_t p,
				struct weir_diag **dg)
{
	int64_t first;
	int64_t end;
	int64_t n;
	if (pl->offset == NULL || strcmp(pl->offset, "beginning") == 0 || strncmp(pl->offset, "s@", 2) == 0)
		return WEIR_OK;
	sl->ops->range(sl, p, &first, &end);
	if (strcmp(pl->offset, "end") == 0)
		return sl->ops->seek(sl, p, end, dg);
	(void)weir_arg_i64(pl->offset, &n); /* checked where it was given */
	return sl->ops->seek(sl, p, n >= 0 ? weir_min_i64(weir_max_i64(first, n), end) : weir_max_i64(first, end + n),
			     dg);
}

/* Whoever does not begin at the beginning has not seen the schema, which comes first. */
static enum weir_err learn(struct dump_plan *pl, struct weir_stream_log *sl, uint32_t p, struct weir_diag **dg)
{
	int64_t first, end, ts;
	enum weir_err err = WEIR_OK;
	while (err == WEIR_OK && !weir_entries_knows(pl->entries) && sl->ops->peek(sl, p, &ts, dg) == WEIR_POLL_UNIT) {
		struct weir_unit *u;
		err = sl->ops->take(sl, p, &u, dg);
		for (uint32_t i = 0; err == WEIR_OK && i < u->count; i++)
			weir_entries_learn(pl->entries, &u->records[i]);
		if (err == WEIR_OK)
			sl->ops->release(sl, u);
	}
	if (err == WEIR_OK && strncmp(pl->offset, "s@", 2) != 0) {
		sl->ops->range(sl, p, &first, &end);
		err = sl->ops->seek(sl, p, first, dg);
	}
	return err;
}

static enum weir_err dump_partition(struct dump_plan *pl, struct weir_stream_log *sl, uint32_t p, struct weir_diag **dg)
{
	uint32_t number;
	const char *topic = sl->ops->topic(sl, p, &number);
	enum weir_err err = WEIR_OK;
	if (pl->changelog && pl->offset != NULL)
		err = learn(pl, sl, p, dg);
	if (err == WEIR_OK)
		err = seek_start(pl, sl, p, dg);
	while (err == WEIR_OK && pl->count < pl->count_max && !weir_data_closed()) {
		int64_t ts;
		struct weir_unit *u;
		enum weir_poll poll = sl->ops->peek(sl, p, &ts, dg);
		if (poll == WEIR_POLL_ERROR)
			return weir_diag_code(*dg) != WEIR_OK ? weir_diag_code(*dg) : WEIR_E_IO;
		if (poll != WEIR_POLL_UNIT)
			break;
		err = sl->ops->take(sl, p, &u, dg);
		if (err != WEIR_OK)
			break;
		for (uint32_t i = 0; i < u->count && pl->count < pl->count_max; i++) {
			pl->tstype = u->records[i].timestamp < 0 ? "unknown" : "create";
			put_record(pl, topic, number, &u->records[i]);
		}
		sl->ops->release(sl, u);
	}
	return err;
}

/* `a, b, c, ...`: what a folder holds, for those who do not know. False when it holds no topic. */
static bool list_topics(const char *path, char *text, size_t bytes)
{
	char **names;
	uint32_t count;
	size_t used = 0;
	if (weir_recorded_topics(path, &names, &count, NULL) != WEIR_OK)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		size_t need = strlen(names[i]) + 2;
		if (used + need < bytes - sizeof ", ...")
			used += (size_t)snprintf(text + used, bytes - used, "%s%s", i == 0 ? "" : ", ", names[i]);
		else if (text[used - 1] != '.')
			used += (size_t)snprintf(text + used, bytes - used, ", ...");
		free(names[i]);
	}
	free(names);
	return count != 0;
}

static enum weir_err no_topic(const struct dump_plan *pl, struct weir_diag **dg)
{
	char there[1000] = "";
	if (access(pl->path, F_OK) != 0)
		return weir_diag_set(dg, WEIR_E_CONF, "there is no folder %s", pl->path);
	enum weir_err err = weir_diag_set(dg, WEIR_E_CONF, "no topic %s in %s", pl->topic, pl->path);
	if (list_topics(pl->path, there, sizeof there))
		weir_diag_add_hint(*dg, "it has %s", there);
	return err;
}

static enum weir_err dump_topic(struct dump_plan *pl, struct weir_diag **dg)
{
	uint32_t partitions = weir_recorded_partitions(pl->path, pl->topic);
	if (partitions == 0)
		return no_topic(pl, dg);
	if (pl->partition >= (int64_t)partitions)
		return weir_diag_set(dg, WEIR_E_CONF, "-p %lld: topic %s has %u partitions", (long long)pl->partition,
				     pl->topic, partitions);
	struct weir_recorded_source_spec spec = {
		.path = pl->path,
		.topics = &pl->topic,
		.topic_count = 1,
		.startup = WEIR_STARTUP_EARLIEST,
		.bounded = WEIR_STARTUP_LATEST,
		.open_transaction_abort = true,
		.read_uncommitted = pl->uncommitted,
		.ignore_commit_file = pl->uncommitted,
	};
	if (pl->offset != NULL && strncmp(pl->offset, "s@", 2) == 0) {
		spec.startup = WEIR_STARTUP_TIMESTAMP;
		(void)weir_arg_i64(pl->offset + 2, &spec.startup_ts);
	}
	struct weir_stream_log *sl;
	enum weir_err err = weir_recorded_source_open(&sl, &spec, dg);
	if (err != WEIR_OK)
		return err;
	for (uint32_t p = 0; p < sl->ops->partitions(sl) && err == WEIR_OK; p++)
		if (pl->partition < 0 || pl->partition == (int64_t)p)
			err = dump_partition(pl, sl, p, dg);
	weir_transfer_warnings(sl);
	sl->ops->close(sl);
	return err;
}

/* The same of Kafka's. */
static enum weir_err dump_cluster(struct dump_plan *pl, struct weir_diag **dg)
{
	static const char *const types[] = {"unknown", "create", "logappend"};
	struct weir_kafka_read_spec spec = {.topic = pl->topic,
					    .partition = pl->partition,
					    .end_ts = -1,
					    .follow = pl->follow,
					    .uncommitted = pl->uncommitted,
					    .in_order = true};
	const struct weir_kafka_log lg = weir_transfer_log(&pl->job);
	struct weir_kafka_reader *rd;
	const struct weir_kafka_record *kr;
	enum weir_err err = WEIR_OK;
	if (pl->offset != NULL)
		err = weir_kafka_place_parse(&spec.start, pl->offset, dg);
	if (err == WEIR_OK)
		err = weir_kafka_reader_open(&rd, pl->job.cf, &spec, &lg, dg);
	if (err != WEIR_OK)
		return err;
	weir_transfer_catch_signals();
	enum weir_poll poll = WEIR_POLL_EMPTY;
	while (pl->count < pl->count_max && !weir_data_closed() && !weir_transfer_stopped()) {
		poll = weir_kafka_reader_next(rd, 100, &kr, dg);
		if (poll == WEIR_POLL_BOUND || poll == WEIR_POLL_ERROR)
			break;
		if (poll == WEIR_POLL_EMPTY) {
			if (pl->follow)
				(void)weir_data_end(WEIR_EXIT_OK); /* whoever looks on sees what there is */
			continue;
		}
		pl->tstype = types[kr->tstype];
		pl->broker = kr->broker;
		put_record(pl, pl->topic, kr->partition, &kr->r);
	}
	weir_kafka_reader_close(rd);
	if (poll != WEIR_POLL_ERROR)
		return WEIR_OK;
	return weir_diag_code(*dg) != WEIR_OK ? weir_diag_code(*dg) : WEIR_E_IO;
}

/* ---- the command line ---- */

enum {
	OPT_BROKERS = 1,
	OPT_TOPIC,
	OPT_FORMAT,
	OPT_PARTITION,
	OPT_OFFSET,
	OPT_BEGINNING,
	OPT_COUNT,
	OPT_EXIT,
	OPT_DIGEST,
	OPT_UNCOMMITTED,
	OPT_FOLLOW
};

static const struct weir_flag dump_options[] = {
	{OPT_BROKERS, 'b', "brokers", "LIST", "host:port,... to read a topic of Kafka's; file:DIR is the folder"},
	{OPT_BROKERS, 0, "bootstrap-server", "LIST", NULL},
	{OPT_TOPIC, 't', "topic", "TOPIC", "the topic, instead of the last argument"},
	{OPT_FORMAT, 0, "format", "json|csv|raw", "json: one object a line with kcat's members (default)"},
	{OPT_PARTITION, 'p', "partition", "P", "this partition only"},
	{OPT_OFFSET, 'o', "offset", "OFFSET", "N, -N, beginning, end or s@MILLISECONDS; in every partition"},
	{OPT_BEGINNING, 0, "from-beginning", NULL, NULL},
	{OPT_COUNT, 'c', "count", "N", "stop after N records"},
	{OPT_COUNT, 0, "max-messages", "N", NULL},
	{OPT_EXIT, 'e', "exit", NULL, NULL}, /* kcat's: dump stops at the end unless it follows */
	{OPT_DIGEST, 0, "digest", NULL, "one line that covers every record, instead of the records"},
	{OPT_UNCOMMITTED, 0, "uncommitted", NULL, "also what no commit covers yet, and aborted transactions"},
	{OPT_FOLLOW, 0, "follow", NULL, "go on with what comes (Kafka's topics; partitions mixed)"},
	WEIR_CLUSTER_OPTIONS,
};

static int set_brokers(struct dump_plan *pl, const char *value)
{
	pl->cluster = strncmp(value, "file:", 5) != 0;
	if (!pl->cluster)
		pl->path = value + 5;
	int code = pl->cluster ? weir_job_option(&pl->job, WEIR_OPT_BROKERS, value) : -1;
	return code < 0 ? 0 : code;
}

/* -X list ends the command well, which 0 does not say. */
static int set_shared(struct dump_plan *pl, int id, const char *value)
{
	int code = weir_job_option(&pl->job, id, value);
	pl->ended = code == 0;
	return code < 0 ? 0 : code;
}

static bool is_offset(const char *value)
{
	int64_t n;
	if (strcmp(value, "beginning") == 0 || strcmp(value, "end") == 0)
		return true;
	return weir_arg_i64(strncmp(value, "s@", 2) == 0 ? value + 2 : value, &n);
}

static int set_option(const struct weir_verb *vb, struct dump_plan *pl, int id, const char *value)
{
	uint64_t v;
	switch (id) {
	case OPT_BROKERS:
		return set_brokers(pl, value);
	case OPT_TOPIC:
		pl->topic = value;
		return 0;
	case OPT_FORMAT:
		if (strcmp(value, "json") == 0)
			pl->format = FORMAT_JSON;
		else if (strcmp(value, "csv") == 0)
			pl->format = FORMAT_CSV;
		else if (strcmp(value, "raw") == 0)
			pl->format = FORMAT_RAW;
		else
			return weir_usage_error(vb, "--format: %s is not json, csv or raw", value);
		return 0;
	case OPT_PARTITION:
		if (!weir_arg_u64(value, 0, INT32_MAX, &v))
			return weir_usage_error(vb, "-p: %s is not a partition", value);
		pl->partition = (int64_t)v;
		return 0;
	case OPT_OFFSET:
		if (!is_offset(value))
			return weir_usage_error(vb, "-o: %s is not an offset, beginning, end, -N or s@MILLISECONDS",
						value);
		pl->offset = value;
		return 0;
	case OPT_BEGINNING:
		pl->offset = NULL;
		return 0;
	case OPT_COUNT:
		if (!weir_arg_u64(value, 0, UINT64_MAX - 1, &pl->count_max))
			return weir_usage_error(vb, "-c: %s is not a number of records", value);
		return 0;
	case OPT_DIGEST:
		pl->digest = true;
		return 0;
	case OPT_UNCOMMITTED:
		pl->uncommitted = true;
		return 0;
	case OPT_FOLLOW:
		pl->follow = true;
		return 0;
	case OPT_EXIT:
		return 0;
	default:
		return set_shared(pl, id, value);
	}
}

static int read_arguments(const struct weir_verb *vb, struct dump_plan *pl, int argc, char **argv, bool *done)
{
	struct weir_args ag;
	const char *words[2] = {NULL, NULL};
	size_t count = 0;
	weir_args_init(&ag, vb, argc, argv);
	*done = true;
	for (int id; (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			return ag.exit_code;
		if (id == WEIR_ARGS_WORD && count == WEIR_COUNT_OF(words))
			return weir_usage_error(vb, "%s is one argument too many: DIR TOPIC", ag.value);
		if (id == WEIR_ARGS_WORD)
			words[count++] = ag.value;
		int code = id == WEIR_ARGS_WORD ? 0 : set_option(vb, pl, id, ag.value);
		if (code != 0 || pl->ended)
			return code;
	}
	size_t at = 0;
	if (pl->path == NULL && !pl->cluster)
		pl->path = words[at++];
	if (pl->topic == NULL && at < WEIR_COUNT_OF(words))
		pl->topic = words[at++];
	if (pl->cluster && pl->topic == NULL)
		return weir_usage_error(vb, "which topic? weir dump -b BROKERS TOPIC");
	if (!pl->cluster && (pl->path == NULL || *pl->path == 0))
		return weir_usage_error(vb, "which folder? weir dump DIR TOPIC");
	char there[1000];
	if (pl->topic == NULL && list_topics(pl->path, there, sizeof there))
		return weir_usage_error(vb, "which topic? %s has %s", pl->path, there);
	if (pl->topic == NULL)
		return weir_usage_error(vb, "which topic? weir dump DIR TOPIC (there is none in %s)", pl->path);
	if (pl->follow && (!pl->cluster || pl->digest))
		return weir_usage_error(vb, "--follow is for records of Kafka's topics: -b BROKERS, no --digest");
	if (count > at)
		return weir_usage_error(vb, "%s is one argument too many", words[at]);
	int code = pl->cluster ? weir_job_configure(&pl->job) : -1;
	*done = code >= 0;
	return code;
}

static int dump(struct dump_plan *pl_given, const struct weir_verb *vb, int argc, char **argv)
{
	bool done;
	int code = read_arguments(vb, pl_given, argc, argv, &done);
	if (done)
		return code;
	struct dump_plan pl = *pl_given;
	static const char ending[] = "-changelog";
	size_t bytes = strlen(pl.topic);
	pl.changelog = bytes >= sizeof ending && strcmp(pl.topic + bytes - (sizeof ending - 1), ending) == 0;
	pl.entries = pl.changelog ? weir_entries_create() : NULL;
	struct weir_diag *dg = NULL;
	if (pl.digest) {
		pl.hash = XXH3_createState();
		if (pl.hash == NULL)
			return weir_fail((weir_diag_set(&dg, WEIR_E_NOMEM, "out of memory"), dg));
		XXH3_128bits_reset(pl.hash);
	} else if (pl.format == FORMAT_CSV) {
		weir_data_puts("topic,partition,offset,ts,key,payload\n");
	}
	enum weir_err err = pl.cluster ? dump_cluster(&pl, &dg) : dump_topic(&pl, &dg);
	if (err == WEIR_OK && pl.digest) {
		XXH128_hash_t h = XXH3_128bits_digest(pl.hash);
		weir_data_printf("%016llx%016llx  %s  %llu records  %llu bytes\n", (unsigned long long)h.high64,
				 (unsigned long long)h.low64, pl.topic, (unsigned long long)pl.count,
				 (unsigned long long)pl.bytes);
	}
	XXH3_freeState(pl.hash);
	weir_entries_destroy(pl.entries);
	code = weir_data_end(WEIR_EXIT_OK);
	return err == WEIR_OK ? code : weir_fail(dg);
}

static int dump_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct dump_plan pl = {.partition = -1, .count_max = UINT64_MAX, .broker = -1};
	weir_job_init(&pl.job, vb);
	int code = dump(&pl, vb, argc, argv);
	weir_job_fini(&pl.job);
	return code;
}

const struct weir_verb weir_verb_dump = {
	.name = "dump",
	.usage = "DIR TOPIC | -b BROKERS TOPIC [OPTIONS]",
	.brief = "print a topic, recorded or Kafka's, or one line that stands for it",
	.examples = "  weir dump rec order.placed -c 5\n"
		    "  weir dump -b file:rec order.placed -p 0 -o -1 | jq -r .payload\n"
		    "  weir dump out revenue.by-merchant --digest\n"
		    "  weir dump -b localhost:9092 order.placed -o -10\n",
	.options = dump_options,
	.option_count = WEIR_COUNT_OF(dump_options),
	.notes = "Records come partition by partition, in offset order. Keys and payloads are JSON strings; where "
		 "their\n"
		 "bytes are no UTF-8, key_base64 and payload_base64 hold them exactly. Entries of a changelog (its "
		 "name ends\n"
		 "in -changelog) are shown decoded. --digest covers partition, offset, timestamp, key, value and "
		 "headers of\n"
		 "every record.\n",
	.run = dump_run,
};
