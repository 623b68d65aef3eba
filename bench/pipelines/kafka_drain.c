/* kafka_drain.c: how fast a topic can be read at all: by librdkafka alone (batches out of the consumer's queue, each
 * message destroyed at once, checksums on) and through the group member (io/kafka/input.h), each in a process of its
 * own, in turns. Then the ratio, which is what the member costs.
 *
 *   kafka_drain BROKERS TOPIC [ROUNDS [work=N] [NAME=VALUE]...]    a line for each run, then the best of each and the
 * ratios
 *
 * ROUNDS: 3 unless given. work=N spends N ns on each record, as a reader with something to do would. Properties go to
 * both, under "bare:NAME=VALUE" or "input:NAME=VALUE" to one of them. Records a second are counted from the first
 * record to the last, CPU seconds are the whole process's. */
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/pipelines/child.h"
#include "io/conf.h"
#include "io/kafka/input.h"

enum { BATCH = 1024, PARTS = 1024, HOLD = 16 };

struct job {
	const char *brokers, *topic;
	char **properties;
	int property_count;
	double work_s; /* for each record */
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Splits "who:NAME=VALUE" or "NAME=VALUE"; false where it is for the other. */
static bool property(const char *text, const char *who, char *name, size_t bytes, const char **value)
{
	const char *at = text, *colon = strchr(text, ':'), *equals = strchr(text, '=');
	if (colon != NULL && equals != NULL && colon < equals) {
		if (strncmp(text, who, (size_t)(colon - text)) != 0)
			return false;
		at = colon + 1;
	}
	if (equals == NULL)
		return false;
	snprintf(name, bytes, "%.*s", (int)(equals - at), at);
	*value = equals + 1;
	return true;
}

static void work(double seconds)
{
	for (double until = now() + seconds; seconds > 0 && now() < until;)
		;
}

/* ---- librdkafka alone ---- */

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[256];
	if (rd_kafka_conf_set(conf, name, value, why, sizeof why) == RD_KAFKA_CONF_OK)
		return true;
	fprintf(stderr, "kafka_drain: %s\n", why);
	return false;
}

/* Every partition from its beginning, by assign(). Returns how many there are, 0: none. */
static int assign_all(rd_kafka_t *rk, const char *topic)
{
	const struct rd_kafka_metadata *md;
	rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
	int count = 0;
	if (rkt != NULL && rd_kafka_metadata(rk, 0, rkt, &md, 10000) == RD_KAFKA_RESP_ERR_NO_ERROR) {
		count = md->topic_cnt == 1 ? md->topics[0].partition_cnt : 0;
		rd_kafka_metadata_destroy(md);
	}
	if (rkt != NULL)
		rd_kafka_topic_destroy(rkt);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
	for (int p = 0; p < count; p++)
		rd_kafka_topic_partition_list_add(list, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
	if (count != 0 && rd_kafka_assign(rk, list) != RD_KAFKA_RESP_ERR_NO_ERROR)
		count = 0;
	rd_kafka_topic_partition_list_destroy(list);
	return count;
}

static void drain_bare(rd_kafka_t *rk, int parts, double work_s, struct outcome *out)
{
	static rd_kafka_message_t *m[BATCH];
	rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
	double begin = 0, end = 0;
	while (parts > 0) {
		ssize_t n = rd_kafka_consume_batch_queue(queue, 1000, m, 1);
		if (n == 1) {
			ssize_t more = rd_kafka_consume_batch_queue(queue, 0, m + 1, BATCH - 1);
			n += more > 0 ? more : 0;
		}
		begin = begin == 0 && n > 0 ? now() : begin;
		work(work_s * (double)n);
		int eofs = 0;
		for (ssize_t i = 0; i < n; i++) {
			if (m[i]->err == 0) {
				out->records++;
				out->bytes += (double)(m[i]->len + m[i]->key_len);
			} else if (m[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
				parts--;
				eofs++;
			}
			rd_kafka_message_destroy(m[i]);
		}
		end = n > (ssize_t)eofs ? now() : end; /* ends are told a fetch later */
	}
	out->seconds = end - begin;
	rd_kafka_queue_destroy(queue);
}

static bool run_bare(void *ctx, struct outcome *out)
{
	const struct job *job = ctx;
	char why[256], name[128];
	const char *value;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	bool ok = set(conf, "bootstrap.servers", job->brokers) && set(conf, "group.id", "kafka_drain") &&
		  set(conf, "enable.partition.eof", "true") && set(conf, "check.crcs", "true") &&
		  set(conf, "enable.auto.commit", "false");
	for (int i = 0; ok && i < job->property_count; i++)
		if (property(job->properties[i], "bare", name, sizeof name, &value))
			ok = set(conf, name, value);
	rd_kafka_t *rk = ok ? rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why) : NULL;
	if (rk == NULL)
		return false;
	int parts = assign_all(rk, job->topic);
	if (parts != 0)
		drain_bare(rk, parts, job->work_s, out);
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
	return parts != 0;
}

/* ---- the member ---- */

static enum weir_err drain_input(struct weir_kafka_input *in, double work_s, struct outcome *out, struct weir_diag **dg)
{
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	uint32_t count = sl->ops->partitions(sl), left = count;
	double begin = 0, end = 0;
	enum weir_err err = WEIR_OK;
	static bool done[PARTS];
	/* An engine's workers have some units while more are read. */
	struct weir_unit *held[HOLD];
	uint32_t held_count = 0, held_at = 0;
	while (err == WEIR_OK && left > 0) {
		bool any = false;
		for (uint32_t p = 0; err == WEIR_OK && p < count; p++) {
			int64_t ts;
			struct weir_unit *u;
			enum weir_poll poll = done[p] ? WEIR_POLL_EMPTY : sl->ops->peek(sl, p, &ts, dg);
			if (poll == WEIR_POLL_ERROR)
				err = weir_diag_code(*dg);
			if (poll == WEIR_POLL_BOUND) {
				done[p] = true;
				left--;
			}
			if (poll != WEIR_POLL_UNIT)
				continue;
			begin = begin == 0 ? now() : begin;
			err = sl->ops->take(sl, p, &u, dg);
			if (err != WEIR_OK)
				continue;
			work(work_s * u->count);
			out->records += u->count;
			out->bytes += (double)u->bytes;
			if (held_count == HOLD)
				sl->ops->release(sl, held[held_at]);
			else
				held_count++;
			held[held_at] = u;
			held_at = (held_at + 1) % HOLD;
			end = now();
			any = true;
		}
		if (!any && left > 0) {
			struct pollfd pf = {sl->ops->event_fd(sl), POLLIN, 0};
			(void)poll(&pf, 1, 1000);
		}
	}
	out->seconds = end - begin;
	for (; held_count > 0; held_count--)
		sl->ops->release(sl, held[(held_at + HOLD - held_count) % HOLD]);
	return err;
}

static bool run_input(void *ctx, struct outcome *out)
{
	const struct job *job = ctx;
	char name[128];
	const char *value;
	struct weir_diag *dg = NULL;
	struct weir_conf *cf = weir_conf_create();
	enum weir_err err = weir_conf_set(cf, "bootstrap.servers", job->brokers, &dg);
	for (int i = 0; err == WEIR_OK && i < job->property_count; i++)
		if (property(job->properties[i], "input", name, sizeof name, &value))
			err = weir_conf_set(cf, name, value, &dg);
	struct weir_kafka_scan scan = {.table = "drain",
				       .topics = &job->topic,
				       .topic_count = 1,
				       .bounded = true,
				       .bound = WEIR_STARTUP_LATEST,
				       .headers_unused = true};
	struct weir_kafka_input_spec spec = {
		.group = "kafka_drain", .scans = &scan, .scan_count = 1, .broker_wait_ms = 10000};
	struct weir_kafka_input *in = NULL;
	if (err == WEIR_OK)
		err = weir_kafka_input_open(&in, cf, &spec, NULL, &dg);
	if (err == WEIR_OK)
		err = weir_kafka_input_join(in, &dg);
	if (err == WEIR_OK)
		err = weir_kafka_input_begin(in, &dg);
	if (err == WEIR_OK)
		err = drain_input(in, job->work_s, out, &dg);
	if (err != WEIR_OK)
		fprintf(stderr, "kafka_drain: %s\n", dg != NULL ? weir_diag_text(dg) : "failed");
	weir_diag_destroy(dg);
	weir_kafka_input_close(in);
	weir_conf_destroy(cf);
	return err == WEIR_OK;
}

static void print(const char *who, const struct outcome *o)
{
	printf("%-6s %9.0f records %6.1f MB  %6.3f s  %9.0f records/s  %.3f CPU s per million  %5.1f MB peak\n", who,
	       o->records, o->bytes / 1e6, o->seconds, o->records / o->seconds, o->cpu_seconds / o->records * 1e6,
	       (double)o->peak_kb / 1024);
	fflush(stdout);
}

/* The fastest of the runs, and the least CPU: a neighbour on the machine only ever adds. */
static void best(struct outcome *best_so_far, const struct outcome *o)
{
	if (best_so_far->records == 0) {
		*best_so_far = *o;
		return;
	}
	best_so_far->seconds = o->seconds < best_so_far->seconds ? o->seconds : best_so_far->seconds;
	best_so_far->cpu_seconds =
		o->cpu_seconds < best_so_far->cpu_seconds ? o->cpu_seconds : best_so_far->cpu_seconds;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: kafka_drain BROKERS TOPIC [ROUNDS [work=N] [NAME=VALUE]...]\n");
		return 2;
	}
	struct job job = {argv[1], argv[2], argv + 4, argc > 4 ? argc - 4 : 0, 0};
	int rounds = argc > 3 ? atoi(argv[3]) : 3;
	if (job.property_count != 0 && strncmp(*job.properties, "work=", 5) == 0) {
		job.work_s = atof(*job.properties + 5) * 1e-9;
		job.properties++;
		job.property_count--;
	}
	struct outcome bare = {0}, input = {0};
	for (int r = 0; r < rounds; r++) {
		struct outcome b = child_run(&job, run_bare), i = child_run(&job, run_input);
		if (b.failed || i.failed || b.records != i.records) {
			fprintf(stderr, "kafka_drain: %s\n",
				b.failed || i.failed ? "a run failed" : "different counts");
			return 1;
		}
		print("bare", &b);
		print("input", &i);
		best(&bare, &b);
		best(&input, &i);
	}
	if (bare.records == 0)
		return 1;
	printf("best:  records/s %.2f of bare, CPU %.2f of bare\n", bare.seconds / input.seconds,
	       input.cpu_seconds / bare.cpu_seconds);
	return 0;
}
