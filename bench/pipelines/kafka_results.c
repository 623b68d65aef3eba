/* kafka_results.c: what writing results to a topic costs: by librdkafka alone (an idempotent producer, a timestamp on
 * each record, lz4), and through the log (io/kafka/log.h) under at_least_once and exactly_once, each in a process of
 * its own, in turns. Then the ratios.
 *
 *   kafka_results BROKERS TOPIC [RECORDS [BYTES [ROUNDS [LIKE]]]]     1,000,000 records with values of 100 bytes, 3
 * rounds
 *
 * LIKE is a topic: then librdkafka alone writes records that are those of LIKE, up to 1,024 of each partition over and
 * over: their keys, values, timestamps and partitions, of which TOPIC has as many; and nothing else is measured. Else
 * keys are 12 bytes. The log commits every 100,000 records, with a marker in a changelog, whose topic it makes
 * (kafka-results-s-changelog). CPU seconds are the whole process's, librdkafka's threads included. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "bench/pipelines/child.h"
#include "io/conf.h"
#include "io/kafka/log.h"

enum { PARTS = 4, POLL_EVERY = 1000, EPOCH_RECORDS = 100000, KEY_BYTES = 12, VALUE_BYTES_MAX = 65536 };
enum { LIKE_RECORDS = 1024, LIKE_PARTS = 64, LIKE_BYTES = 64 << 20 };

/* Records of another topic. A process of its own reads them, which is not measured. */
struct like {
	uint32_t parts;
	uint32_t count[LIKE_PARTS];
	struct {
		int64_t timestamp;
		uint32_t at, key_bytes, value_bytes; /* at: of the key; the value is behind it */
	} record[LIKE_PARTS][LIKE_RECORDS];
	uint32_t used;
	char bytes[LIKE_BYTES];
};
struct job {
	const char *brokers, *topic;
	struct like *like; /* NULL: made up */
	const char *like_topic;
	long records;
	size_t bytes;
	enum weir_guarantee guarantee;
	char value[VALUE_BYTES_MAX];
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Results look like rows in JSON: they compress, but not to nothing. */
static void fill(struct job *job)
{
	uint64_t x = 88172645463325252u;
	for (size_t i = 0; i < job->bytes; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		job->value[i] = (char)(i % 3 == 0 ? '0' + x % 10 : 'a' + i % 26);
	}
}

static void key_of(long i, char *key)
{
	for (int at = KEY_BYTES - 1; at >= 0; at--, i /= 10)
		key[at] = (char)('0' + i % 10);
}

/* ---- librdkafka alone ---- */

static long acked, refused;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
	(void)rk;
	(void)opaque;
	acked++;
	refused += m->err != 0;
}

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[256];
	if (rd_kafka_conf_set(conf, name, value, why, sizeof why) == RD_KAFKA_CONF_OK)
		return true;
	fprintf(stderr, "kafka_results: %s\n", why);
	return false;
}

static bool like_full(const struct like *lk, int32_t p)
{
	return lk->count[p] == LIKE_RECORDS || lk->used + 2u * VALUE_BYTES_MAX > LIKE_BYTES;
}

static void like_add(struct like *lk, const rd_kafka_message_t *m)
{
	rd_kafka_timestamp_type_t type;
	if (like_full(lk, m->partition) || m->key_len + m->len > VALUE_BYTES_MAX)
		return;
	uint32_t n = lk->count[m->partition]++;
	lk->record[m->partition][n].timestamp = rd_kafka_message_timestamp(m, &type);
	lk->record[m->partition][n].at = lk->used;
	lk->record[m->partition][n].key_bytes = (uint32_t)m->key_len;
	lk->record[m->partition][n].value_bytes = (uint32_t)m->len;
	memcpy(lk->bytes + lk->used, m->key, m->key_len);
	memcpy(lk->bytes + lk->used + m->key_len, m->payload, m->len);
	lk->used += (uint32_t)(m->key_len + m->len);
}

static bool read_like(void *ctx, struct outcome *out)
{
	struct job *job = ctx;
	char why[256];
	struct like *lk = job->like;
	(void)out;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	bool ok = set(conf, "bootstrap.servers", job->brokers) && set(conf, "group.id", "kafka_results") &&
		  set(conf, "enable.partition.eof", "true") && set(conf, "enable.auto.commit", "false");
	rd_kafka_t *rk = ok ? rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why) : NULL;
	rd_kafka_topic_t *rkt = rk != NULL ? rd_kafka_topic_new(rk, job->like_topic, NULL) : NULL;
	const struct rd_kafka_metadata *md;
	if (rkt == NULL || rd_kafka_metadata(rk, 0, rkt, &md, 10000) != 0)
		return false;
	lk->parts = md->topic_cnt == 1 ? (uint32_t)md->topics[0].partition_cnt : 0;
	rd_kafka_metadata_destroy(md);
	if (lk->parts == 0 || lk->parts > LIKE_PARTS)
		return false;
	uint64_t records = 0;
	for (int32_t p = 0; p < (int32_t)lk->parts && ok; p++) {
		ok = rd_kafka_consume_start(rkt, p, RD_KAFKA_OFFSET_BEGINNING) == 0;
		for (bool more = ok; more && !like_full(lk, p);) {
			rd_kafka_message_t *m = rd_kafka_consume(rkt, p, 10000);
			more = m != NULL && m->err == 0;
			ok = m != NULL && (m->err == 0 || m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF);
			if (more)
				like_add(lk, m);
			if (m != NULL)
				rd_kafka_message_destroy(m);
		}
		records += lk->count[p];
		(void)rd_kafka_consume_stop(rkt, p);
	}
	rd_kafka_topic_destroy(rkt);
	rd_kafka_destroy(rk);
	return ok && records > 0;
}

/* What record i is: partition by partition in turn, as results of many keys come. */
static int32_t shape(const struct job *job, long i, rd_kafka_vu_t *key, rd_kafka_vu_t *value, int64_t *timestamp)
{
	struct like *lk = job->like;
	uint32_t p = (uint32_t)((unsigned long)i % lk->parts);
	while (lk->count[p] == 0)
		p = (p + 1) % lk->parts;
	uint32_t n = (uint32_t)((unsigned long)i / lk->parts % lk->count[p]);
	char *at = lk->bytes + lk->record[p][n].at;
	key->u.mem.ptr = at;
	key->u.mem.size = lk->record[p][n].key_bytes;
	value->u.mem.ptr = at + lk->record[p][n].key_bytes;
	value->u.mem.size = lk->record[p][n].value_bytes;
	*timestamp = lk->record[p][n].timestamp;
	return (int32_t)p;
}

static bool put_bare(rd_kafka_t *rk, rd_kafka_topic_t *rkt, struct job *job, long i)
{
	char key[KEY_BYTES];
	enum { PARTITION = 1, TIMESTAMP = 3, KEY, VALUE };
	rd_kafka_vu_t vus[] = {
		{.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = rkt},
		{.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = (int32_t)(i % PARTS)},
		{.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
		{.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = 1700000000000 + i},
		{.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {key, KEY_BYTES}},
		{.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {job->value, job->bytes}},
	};
	if (job->like != NULL)
		vus[PARTITION].u.i32 = shape(job, i, &vus[KEY], &vus[VALUE], &vus[TIMESTAMP].u.i64);
	else
		key_of(i, key);
	for (;;) {
		rd_kafka_error_t *e = rd_kafka_produceva(rk, vus, sizeof vus / sizeof vus[0]);
		if (e == NULL)
			return true;
		bool full = rd_kafka_error_code(e) == RD_KAFKA_RESP_ERR__QUEUE_FULL;
		rd_kafka_error_destroy(e);
		if (!full)
			return false;
		rd_kafka_poll(rk, 100);
	}
}

static bool run_bare(void *ctx, struct outcome *out)
{
	struct job *job = ctx;
	char why[256];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	bool ok = set(conf, "bootstrap.servers", job->brokers) && set(conf, "enable.idempotence", "true") &&
		  set(conf, "compression.codec", "lz4") && set(conf, "queue.buffering.max.messages", "500000");
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	rd_kafka_t *rk = ok ? rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why) : NULL;
	rd_kafka_topic_t *rkt = rk != NULL ? rd_kafka_topic_new(rk, job->topic, NULL) : NULL;
	const struct rd_kafka_metadata *md;
	if (rkt == NULL || rd_kafka_metadata(rk, 0, rkt, &md, 10000) != 0)
		return false;
	rd_kafka_metadata_destroy(md);
	double begin = now();
	for (long i = 0; ok && i < job->records; i++) {
		ok = put_bare(rk, rkt, job, i);
		if (i % POLL_EVERY == 0)
			rd_kafka_poll(rk, 0);
	}
	ok = ok && rd_kafka_flush(rk, 60000) == 0 && acked == job->records && refused == 0;
	out->seconds = now() - begin;
	rd_kafka_topic_destroy(rkt);
	rd_kafka_destroy(rk);
	return ok;
}

/* ---- the log ---- */

static enum weir_err fill_log(struct weir_log *log, struct job *job, uint32_t out, uint32_t state,
			      struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (long i = 0; i < job->records && err == WEIR_OK; i++) {
		char key[KEY_BYTES];
		key_of(i, key);
		struct weir_out r = {
			.key = {key, KEY_BYTES}, .value = {job->value, job->bytes}, .timestamp = 1700000000000 + i};
		err = log->ops->append(log, out, (uint32_t)(i % PARTS), &r, dg);
		bool last = i + 1 == job->records;
		if (err != WEIR_OK || (!last && (i + 1) % EPOCH_RECORDS != 0))
			continue;
		err = log->ops->cut(log, dg);
		struct weir_out marker = {.key = {"m", 1}, .value = {"marker", 6}};
		if (err == WEIR_OK)
			err = log->ops->append(log, state, 0, &marker, dg);
		if (err == WEIR_OK)
			err = log->ops->commit(log, (uint64_t)i + 1, dg);
	}
	return err;
}

static bool run_log(void *ctx, struct outcome *out)
{
	struct job *job = ctx;
	struct weir_diag *dg = NULL;
	struct weir_conf *cf = weir_conf_create();
	struct weir_kafka_log_spec spec = {
		.app = "kafka-results", .guarantee = job->guarantee, .commit_ms = 1000, .broker_wait_ms = 10000};
	struct weir_log *log = NULL;
	uint32_t topic = 0, state = 0, partitions;
	enum weir_err err = weir_conf_set(cf, "bootstrap.servers", job->brokers, &dg);
	if (err == WEIR_OK)
		err = weir_kafka_log_open(&log, cf, &spec, NULL, &dg);
	struct weir_topic_spec ts = {
		.name = job->topic, .kind = WEIR_TOPIC_RESULT, .partitions = PARTS, .partitions_fixed = true};
	if (err == WEIR_OK)
		err = log->ops->topic(log, &ts, &topic, &partitions, &dg);
	ts.name = "kafka-results-s-changelog";
	ts.kind = WEIR_TOPIC_CHANGELOG;
	if (err == WEIR_OK)
		err = log->ops->topic(log, &ts, &state, &partitions, &dg);
	if (err == WEIR_OK)
		err = log->ops->make(log, &dg);
	double begin = now();
	if (err == WEIR_OK)
		err = fill_log(log, job, topic, state, &dg);
	out->seconds = now() - begin;
	if (err != WEIR_OK)
		fprintf(stderr, "kafka_results: %s\n", dg != NULL ? weir_diag_text(dg) : "failed");
	weir_diag_destroy(dg);
	if (log != NULL)
		log->ops->close(log);
	weir_conf_destroy(cf);
	return err == WEIR_OK;
}

/* Makes the topics, so that the first process measured does not. */
static bool prepare(void *ctx, struct outcome *out)
{
	struct job *job = ctx;
	long records = job->records;
	job->records = 1;
	bool ok = run_log(job, out);
	job->records = records;
	return ok;
}

int main(int argc, char **argv)
{
	static struct job job;
	if (argc < 3) {
		fprintf(stderr, "usage: kafka_results BROKERS TOPIC [RECORDS [BYTES [ROUNDS [LIKE]]]]\n");
		return 2;
	}
	job.brokers = argv[1];
	job.topic = argv[2];
	job.records = argc > 3 ? atol(argv[3]) : 1000000;
	job.bytes = argc > 4 ? (size_t)atol(argv[4]) : 100;
	int rounds = argc > 5 ? atoi(argv[5]) : 3;
	if (job.bytes > VALUE_BYTES_MAX || job.records < 1)
		return 2;
	fill(&job);
	static const struct {
		const char *name;
		bool (*fn)(void *job, struct outcome *out);
		enum weir_guarantee guarantee;
	} ways[] = {{"bare", run_bare, WEIR_AT_LEAST_ONCE},
		    {"at_least_once", run_log, WEIR_AT_LEAST_ONCE},
		    {"exactly_once", run_log, WEIR_EXACTLY_ONCE}};
	enum { WAYS = sizeof ways / sizeof ways[0] };
	struct outcome best[WAYS] = {0};
	int count = WAYS;
	if (argc > 6) {
		job.like_topic = argv[6];
		job.like = mmap(NULL, sizeof *job.like, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		count = 1;
		if (job.like == MAP_FAILED || child_run(&job, read_like).failed) {
			fprintf(stderr, "kafka_results: topic %s cannot be read\n", job.like_topic);
			return 1;
		}
	} else if (child_run(&job, prepare).failed) {
		return 1;
	}
	for (int r = 0; r < rounds; r++)
		for (int w = 0; w < count; w++) {
			job.guarantee = ways[w].guarantee;
			struct outcome o = child_run(&job, ways[w].fn);
			if (o.failed) {
				fprintf(stderr, "kafka_results: %s failed\n", ways[w].name);
				return 1;
			}
			printf("%-14s %6.3f s  %9.0f records/s  %.3f CPU s per million\n", ways[w].name, o.seconds,
			       (double)job.records / o.seconds, o.cpu_seconds / (double)job.records * 1e6);
			fflush(stdout);
			if (r == 0)
				best[w] = o;
			best[w].seconds = o.seconds < best[w].seconds ? o.seconds : best[w].seconds;
			best[w].cpu_seconds = o.cpu_seconds < best[w].cpu_seconds ? o.cpu_seconds : best[w].cpu_seconds;
		}
	for (int w = 1; w < count && rounds > 0; w++)
		printf("best: %s: records/s %.2f of bare, CPU %.2f of bare\n", ways[w].name,
		       best[0].seconds / best[w].seconds, best[w].cpu_seconds / best[0].cpu_seconds);
	return 0;
}
