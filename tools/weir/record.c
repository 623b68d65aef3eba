/* record.c: `weir record -b BROKERS -t TOPIC DIR`: a topic of Kafka's, or a range of it, to a recorded topic with the
 * same partitions, offsets, timestamps, keys, values and headers. Main thread. */
#include "io/recorded/recorded.h"
#include "tools/weir/transfer.h"

#include <stdio.h>

struct record_plan {
	struct weir_job job;
	const char *dir;
	const char *topic;
	const char *as; /* the recorded topic's name */
	struct weir_kafka_read_spec spec;
	uint64_t count_max;
	enum weir_codec codec;
};

enum {
	OPT_TOPIC = 1,
	OPT_DIR,
	OPT_AS,
	OPT_PARTITION,
	OPT_OFFSET,
	OPT_BEGINNING,
	OPT_COUNT,
	OPT_EXIT,
	OPT_CODEC,
	OPT_FOLLOW,
	OPT_UNCOMMITTED
};

static const struct weir_flag record_options[] = {
	WEIR_BROKER_OPTIONS,
	{OPT_TOPIC, 't', "topic", "TOPIC", "the topic"},
	{OPT_DIR, 0, "out", "DIR", "the folder, instead of the argument"},
	{OPT_AS, 0, "as", "NAME", "another name for the recorded topic"},
	{OPT_PARTITION, 'p', "partition", "P", "this partition only"},
	{OPT_OFFSET, 'o', "offset", "OFFSET", "start: N, -N, beginning or s@MILLISECONDS; e@MILLISECONDS ends"},
	{OPT_BEGINNING, 0, "from-beginning", NULL, NULL},
	{OPT_COUNT, 'c', "count", "N", "stop after N records"},
	{OPT_COUNT, 0, "max-messages", "N", NULL},
	{OPT_EXIT, 'e', "exit", NULL, NULL}, /* kcat's: record stops at the end unless it follows */
	{OPT_FOLLOW, 0, "follow", NULL, "go on with what comes until stopped"},
	{OPT_UNCOMMITTED, 0, "uncommitted", NULL, "also records of aborted and open transactions"},
	{OPT_CODEC, 'z', "codec", "CODEC", "how it is stored: none, gzip, snappy, lz4 or zstd (lz4)"},
	WEIR_CLUSTER_OPTIONS,
};

static int set_offset(const struct weir_verb *vb, struct record_plan *pl, const char *value)
{
	struct weir_diag *dg = NULL;
	if (strncmp(value, "e@", 2) == 0) {
		if (!weir_arg_i64(value + 2, &pl->spec.end_ts) || pl->spec.end_ts < 0)
			return weir_usage_error(vb, "-o %s: what follows e@ is not a number of milliseconds", value);
		return -1;
	}
	return weir_kafka_place_parse(&pl->spec.start, value, &dg) == WEIR_OK ? -1 : weir_fail(dg);
}

/* -1: go on; else the exit code. */
static int set_option(void *plan, int id, const char *value)
{
	struct record_plan *pl = plan;
	const struct weir_verb *vb = pl->job.vb;
	uint64_t v;
	struct weir_diag *dg = NULL;
	switch (id) {
	case WEIR_ARGS_WORD:
	case OPT_DIR:
		if (pl->dir != NULL)
			return weir_usage_error(vb, "%s is one argument too many: -t TOPIC DIR", value);
		pl->dir = value;
		return -1;
	case OPT_TOPIC:
		pl->topic = value;
		return -1;
	case OPT_AS:
		pl->as = value;
		return -1;
	case OPT_PARTITION:
		if (!weir_arg_u64(value, 0, INT32_MAX, &v))
			return weir_usage_error(vb, "-p: %s is not a partition", value);
		pl->spec.partition = (int64_t)v;
		return -1;
	case OPT_OFFSET:
		return set_offset(vb, pl, value);
	case OPT_BEGINNING:
		pl->spec.start = (struct weir_kafka_place){WEIR_KAFKA_BEGINNING, 0};
		return -1;
	case OPT_COUNT:
		if (!weir_arg_u64(value, 0, UINT64_MAX - 1, &pl->count_max))
			return weir_usage_error(vb, "-c: %s is not a number of records", value);
		return -1;
	case OPT_FOLLOW:
		pl->spec.follow = true;
		return -1;
	case OPT_UNCOMMITTED:
		pl->spec.uncommitted = true;
		return -1;
	case OPT_CODEC:
		return weir_codec_parse(&pl->codec, value, &dg) == WEIR_OK ? -1 : weir_fail(dg);
	default:
		return weir_job_option(&pl->job, id, value);
	}
}

static int read_arguments(const struct weir_verb *vb, struct record_plan *pl, int argc, char **argv)
{
	int code = weir_job_arguments(&pl->job, argc, argv, set_option, pl);
	if (code >= 0)
		return code;
	if (pl->topic == NULL || pl->dir == NULL)
		return weir_usage_error(vb, "which %s? weir record -b BROKERS -t TOPIC DIR",
					pl->topic == NULL ? "topic" : "folder");
	pl->spec.topic = pl->topic;
	pl->as = pl->as != NULL ? pl->as : pl->topic;
	return -1;
}

static uint64_t expected(const struct weir_kafka_reader *rd, const struct record_plan *pl)
{
	uint64_t n = 0;
	for (uint32_t p = 0; p < weir_kafka_reader_partitions(rd); p++) {
		int64_t first;
		int64_t end;
		weir_kafka_reader_range(rd, p, &first, &end);
		n += end > first ? (uint64_t)(end - first) : 0;
	}
	n = n < pl->count_max ? n : pl->count_max;
	return pl->spec.follow ? 0 : n;
}

static enum weir_err copy(struct record_plan *pl, struct weir_kafka_reader *rd, struct weir_topic_writer *w,
			  struct weir_progress *pg, struct weir_diag **dg)
{
	while (pg->records < pl->count_max && !weir_transfer_stopped()) {
		const struct weir_kafka_record *kr;
		enum weir_poll poll = weir_kafka_reader_next(rd, 100, &kr, dg);
		if (poll == WEIR_POLL_BOUND)
			break;
		if (poll == WEIR_POLL_ERROR)
			return weir_diag_code(*dg) != WEIR_OK ? weir_diag_code(*dg) : WEIR_E_IO;
		if (poll == WEIR_POLL_EMPTY)
			continue;
		struct weir_out out = {.key = {kr->r.key, kr->r.key_bytes},
				       .value = {kr->r.value, kr->r.value_bytes},
				       .headers = kr->r.headers,
				       .headers_bytes = kr->r.headers_bytes,
				       .header_count = kr->r.header_count,
				       .timestamp = kr->r.timestamp};
		enum weir_err err = weir_topic_writer_put_at(w, kr->partition, kr->r.offset, &out, dg);
		if (err != WEIR_OK)
			return err;
		pg->records++;
		pg->bytes += kr->r.key_bytes + kr->r.value_bytes + kr->r.headers_bytes;
		weir_progress_step(pg);
	}
	return WEIR_OK;
}

static enum weir_err record(struct record_plan *pl, struct weir_diag **dg)
{
	const struct weir_kafka_log lg = weir_transfer_log(&pl->job);
	struct weir_kafka_reader *rd;
	struct weir_topic_writer *w;
	struct weir_progress pg;
	if (weir_recorded_partitions(pl->dir, pl->as) != 0)
		return weir_diag_set(dg, WEIR_E_CONF, "%s has a topic %s already: another folder, or --as NAME",
				     pl->dir, pl->as);
	weir_transfer_catch_signals();
	enum weir_err err = weir_kafka_reader_open(&rd, pl->job.cf, &pl->spec, &lg, dg);
	if (err != WEIR_OK)
		return err;
	err = weir_topic_writer_open(&w, pl->dir, pl->as, weir_kafka_reader_partitions(rd), pl->codec, dg);
	if (err == WEIR_OK) {
		weir_progress_begin(&pg, pl->as, expected(rd, pl));
		err = copy(pl, rd, w, &pg, dg);
		enum weir_err closed = weir_topic_writer_close(w, err == WEIR_OK ? dg : NULL);
		err = err == WEIR_OK ? closed : err;
		char more[300];
		snprintf(more, sizeof more, " to %s%s", pl->dir,
			 err != WEIR_OK            ? "; not all of it"
			 : weir_transfer_stopped() ? "; stopped"
						   : "");
		weir_progress_end(&pg, more);
	}
	weir_kafka_reader_close(rd);
	return err;
}

static int record_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct record_plan pl = {
		.count_max = UINT64_MAX, .codec = WEIR_CODEC_LZ4, .spec = {.partition = -1, .end_ts = -1}};
	struct weir_diag *dg = NULL;
	weir_job_init(&pl.job, vb);
	int code = read_arguments(vb, &pl, argc, argv);
	if (code < 0)
		code = record(&pl, &dg) == WEIR_OK ? weir_data_end(WEIR_EXIT_OK) : weir_fail(dg);
	weir_job_fini(&pl.job);
	return code;
}

const struct weir_verb weir_verb_record = {
	.name = "record",
	.usage = "-b BROKERS -t TOPIC DIR [OPTIONS]",
	.brief = "copy a topic of Kafka's, or a range of it, to a recorded topic",
	.examples = "  weir record -b localhost:9092 -t order.placed rec\n"
		    "  weir record -b localhost:9092 -t order.placed -p 0 -o -1000 rec\n"
		    "  weir record -b localhost:9092 -t order.placed -o s@1767225600000 -o e@1767229200000 rec\n",
	.options = record_options,
	.option_count = WEIR_COUNT_OF(record_options),
	.notes = "Partitions, offsets, timestamps, keys, values and headers are kept. What no transaction committed is "
		 "left\nout. It stops at the end that the topic had at the start, unless it follows.\n",
	.run = record_run,
};
