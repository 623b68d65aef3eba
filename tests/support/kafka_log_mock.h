/* kafka_log_mock.h: for tests of io/kafka/log.h on librdkafka's mock cluster: the cluster, a member of a group, one
 * application's log and its epochs. Included by one file of a test program, which links nothing of io/kafka/input.c. */
#ifndef WEIR_TESTS_SUPPORT_KAFKA_LOG_MOCK_H
#define WEIR_TESTS_SUPPORT_KAFKA_LOG_MOCK_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <librdkafka/rdkafka_mock.h> /* wants the other one first */

#include "io/kafka/client.h"
#include "io/kafka/log.h"

enum { PRODUCE = 0, INIT_PRODUCER = 22, ADD_PARTITIONS = 24, ADD_OFFSETS = 25, END_TXN = 26, TXN_OFFSETS = 28 };
enum { OFFSET_COMMIT = 8, PARTS = 2, CASE_SECONDS_MAX = 120 };
#define ERR(name) RD_KAFKA_RESP_ERR_##name

static rd_kafka_t *mock_handle, *member;
static rd_kafka_mock_cluster_t *mock;
static atomic_bool stop;
static char said[4096];

/* The group's member of this test stands in for io/kafka/input.c. */
void *weir_kafka_input_handle(const struct weir_kafka_input *in)
{
	return (void *)(uintptr_t)in;
}

static bool cooperative;    /* what it says of itself */
static bool was_thrown_out; /* and has come back under another name */

bool weir_kafka_input_cooperative(const struct weir_kafka_input *in)
{
	return in != NULL && cooperative;
}

bool weir_kafka_input_is_same_member(const struct weir_kafka_input *in)
{
	return in != NULL && !was_thrown_out;
}

int64_t weir_kafka_input_session_ms(const struct weir_kafka_input *in)
{
	return in != NULL ? 300 : 0;
}

static void join(void)
{
	char why[256];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock), why, sizeof why);
	rd_kafka_conf_set(conf, "group.id", "app", why, sizeof why);
	rd_kafka_conf_set(conf, "session.timeout.ms", "60000", why, sizeof why);
	rd_kafka_conf_set(conf, "enable.auto.commit", "false", why, sizeof why);
	member = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
	rd_kafka_poll_set_consumer(member);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(list, "in", RD_KAFKA_PARTITION_UA);
	rd_kafka_subscribe(member, list);
	rd_kafka_topic_partition_list_destroy(list);
	for (int count = 0; count == 0;) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(member, 50);
		if (m != NULL)
			rd_kafka_message_destroy(m);
		rd_kafka_topic_partition_list_t *mine = NULL;
		rd_kafka_assignment(member, &mine);
		count = mine->cnt;
		rd_kafka_topic_partition_list_destroy(mine);
	}
}

static int setup(void **state)
{
	char why[256];
	(void)state;
	alarm(CASE_SECONDS_MAX);
	mock_handle = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
	mock = mock_handle != NULL ? rd_kafka_mock_cluster_new(mock_handle, 1) : NULL;
	if (mock == NULL)
		return 1;
	rd_kafka_mock_topic_create(mock, "in", PARTS, 1);
	rd_kafka_mock_topic_create(mock, "out", PARTS, 1);
	rd_kafka_mock_topic_create(mock, "app-s-changelog", PARTS, 1);
	join();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	alarm(CASE_SECONDS_MAX);
	rd_kafka_consumer_close(member);
	rd_kafka_destroy(member);
	rd_kafka_mock_cluster_destroy(mock);
	rd_kafka_destroy(mock_handle);
	return 0;
}

static void hear(void *ctx, int level, const char *text)
{
	(void)ctx;
	if (level > 5)
		return;
	size_t used = strlen(said);
	snprintf(said + used, sizeof said - used, "%s\n", text);
}
static const struct weir_kafka_log log_to = {hear, NULL};

/* ---- one application ---- */

struct job {
	struct weir_conf *cf;
	struct weir_log *log;
	uint32_t out, state;
	enum weir_guarantee guarantee;
	bool input;
};

static void open_job(struct job *jb, enum weir_guarantee guarantee, bool stateless, bool input, const char *timeout)
{
	struct weir_diag *dg = NULL;
	alarm(CASE_SECONDS_MAX);
	*jb = (struct job){.cf = weir_conf_create(), .guarantee = guarantee, .input = input};
	assert_int_equal(weir_conf_set(jb->cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock), NULL), 0);
	/* The mock answers no admin request: settings of topics stay unknown, soon. */
	assert_int_equal(weir_conf_set(jb->cf, "consumer.socket.timeout.ms", "200", NULL), 0);
	assert_int_equal(weir_conf_set(jb->cf, "group.instance.id", "one", NULL), 0);
	if (timeout != NULL)
		assert_int_equal(weir_conf_set(jb->cf, "transaction.timeout.ms", timeout, NULL), 0);
	struct weir_kafka_log_spec spec = {.app = "app",
					   .guarantee = guarantee,
					   .stateless = stateless,
					   .input = input ? (struct weir_kafka_input *)member : NULL,
					   .commit_ms = 100,
					   .broker_wait_ms = 20000,
					   .stop = &stop};
	said[0] = 0;
	atomic_store(&stop, false);
	if (weir_kafka_log_open(&jb->log, jb->cf, &spec, &log_to, &dg) != WEIR_OK)
		fail_msg("open: %s", weir_diag_text(dg));
	struct weir_topic_spec topic = {.name = "out", .kind = WEIR_TOPIC_RESULT, .partitions = PARTS};
	uint32_t partitions;
	assert_int_equal(jb->log->ops->topic(jb->log, &topic, &jb->out, &partitions, &dg), WEIR_OK);
	assert_int_equal(partitions, PARTS);
	topic = (struct weir_topic_spec){.name = "app-s-changelog", .kind = WEIR_TOPIC_CHANGELOG, .partitions = PARTS};
	assert_int_equal(jb->log->ops->topic(jb->log, &topic, &jb->state, &partitions, &dg), WEIR_OK);
}

static void close_job(struct job *jb)
{
	jb->log->ops->close(jb->log);
	weir_conf_destroy(jb->cf);
}

static enum weir_err put(struct job *jb, uint32_t topic, uint32_t partition, uint64_t epoch, struct weir_diag **dg)
{
	char value[32];
	int bytes = snprintf(value, sizeof value, "%llu", (unsigned long long)epoch);
	struct weir_out r = {
		.key = {"k", 1}, .value = {value, (size_t)bytes}, .timestamp = topic == jb->out ? 1000 : 0};
	return jb->log->ops->append(jb->log, topic, partition, &r, dg);
}

/* A whole epoch; the first error. */
static enum weir_err epoch(struct job *jb, uint64_t n, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < 20 && err == WEIR_OK; i++)
		err = put(jb, jb->out, i % PARTS, n, dg);
	if (err == WEIR_OK)
		err = jb->log->ops->cut(jb->log, dg);
	for (uint32_t p = 0; p < PARTS && err == WEIR_OK; p++)
		err = put(jb, jb->state, p, n, dg);
	struct weir_commit_input in[PARTS] = {{"in", 0, (int64_t)n, 0}, {"in", 1, (int64_t)n, 1}};
	if (err == WEIR_OK && jb->input)
		err = jb->log->ops->offsets(jb->log, in, PARTS, dg);
	return err == WEIR_OK ? jb->log->ops->commit(jb->log, n, dg) : err;
}

/* The value of the last record of every partition, as any reader sees it. */
static void assert_last(const char *topic, uint64_t n)
{
	char why[256], want[32];
	snprintf(want, sizeof want, "%llu", (unsigned long long)n);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock), why, sizeof why);
	rd_kafka_conf_set(conf, "group.id", "reader", why, sizeof why);
	rd_kafka_conf_set(conf, "fetch.wait.max.ms", "10", why, sizeof why);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
	rd_kafka_poll_set_consumer(rk);
	for (int32_t p = 0; p < PARTS; p++) {
		int64_t low, high;
		assert_int_equal(rd_kafka_query_watermark_offsets(rk, topic, p, &low, &high, 10000), 0);
		rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
		rd_kafka_topic_partition_list_add(list, topic, p)->offset = high - 1;
		rd_kafka_assign(rk, list);
		rd_kafka_topic_partition_list_destroy(list);
		rd_kafka_message_t *m = NULL;
		while (m == NULL || m->err != 0) {
			if (m != NULL)
				rd_kafka_message_destroy(m);
			m = rd_kafka_consumer_poll(rk, 1000);
		}
		assert_int_equal(m->len, strlen(want));
		assert_memory_equal(m->payload, want, m->len);
		rd_kafka_message_destroy(m);
	}
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
}

#endif
