/* kafka_mock.c: librdkafka's mock cluster and a group member on it (kafka_mock.h). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/kafka/client.h"
#include "tests/support/kafka_mock.h"

/* STILL_MS: less than what sessions of open_input and heartbeats between them leave. */
enum { PATIENCE_MS = 60000, TICK_MS = 50, STILL_MS = 1000, AGAIN = 99 };

static rd_kafka_t *handle;
static rd_kafka_mock_cluster_t *cluster;

static atomic_bool stood_still;

static void *tick(void *nothing)
{
	for (int64_t last = weir_kafka_now_ms();;) {
		usleep(TICK_MS * 1000);
		int64_t now = weir_kafka_now_ms();
		if (now - last > STILL_MS)
			atomic_store(&stood_still, true);
		last = now;
	}
	return nothing;
}

static _Noreturn void run_here(int (*run)(void))
{
	pthread_t ticker;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&ticker, NULL, tick, NULL) != 0)
		exit(1);
	int failed = run();
	exit(failed == 0 ? 0 : atomic_load(&stood_still) ? AGAIN : 1);
}

int mock_run(int (*run)(void))
{
	for (;;) {
		int status;
		fflush(NULL);
		pid_t child = fork();
		if (child == 0)
			run_here(run);
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
			return 1;
		if (WEXITSTATUS(status) != AGAIN)
			return WEXITSTATUS(status);
		printf("the process stood still meanwhile: again\n");
	}
}

int mock_setup(void **state)
{
	char why[256];
	(void)state;
	handle = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
	cluster = handle != NULL ? rd_kafka_mock_cluster_new(handle, 1) : NULL;
	return cluster == NULL;
}

int mock_teardown(void **state)
{
	(void)state;
	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(handle);
	return 0;
}

rd_kafka_mock_cluster_t *mock_cluster(void)
{
	return cluster;
}

int mock_value_bytes(int i)
{
	return i % 7 == 6 ? -1 : i * 37 % 311;
}

char mock_byte(int i, int n)
{
	return (char)(i * 31 + n * 7);
}

void mock_fill(const char *topic, int partitions, int records)
{
	char why[256], value[512], key[32];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster), why,
					   sizeof why),
			 RD_KAFKA_CONF_OK);
	assert_int_equal(rd_kafka_conf_set(conf, "linger.ms", "50", why, sizeof why), RD_KAFKA_CONF_OK);
	assert_int_equal(rd_kafka_mock_topic_create(cluster, topic, partitions, 1), 0);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	assert_non_null(rk);
	for (int p = 0; p < partitions; p++)
		for (int i = 0; i < records; i++) {
			int bytes = mock_value_bytes(i);
			for (int n = 0; n < bytes; n++)
				value[n] = mock_byte(i, n);
			snprintf(key, sizeof key, "k%d", i);
			rd_kafka_vu_t vus[] = {
				{.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
				{.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = p},
				{.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK},
				{.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = 1000 + i},
				{.vtype = RD_KAFKA_VTYPE_KEY,
				 .u.mem = {i % 5 == 4 ? NULL : key, i % 5 == 4 ? 0 : strlen(key)}},
				{.vtype = RD_KAFKA_VTYPE_VALUE,
				 .u.mem = {bytes < 0 ? NULL : value, bytes < 0 ? 0 : (size_t)bytes}}};
			assert_null(rd_kafka_produceva(rk, vus, sizeof vus / sizeof vus[0]));
		}
	assert_int_equal(rd_kafka_flush(rk, PATIENCE_MS), 0);
	rd_kafka_destroy(rk);
}

static char said[16384];

static void keep(void *ctx, int level, const char *text)
{
	size_t bytes = strlen(said);
	(void)ctx;
	(void)level;
	snprintf(said + bytes, sizeof said - bytes, "%s\n", text);
}

bool mock_has_said(const char *part)
{
	return strstr(said, part) != NULL;
}

static struct weir_kafka_input *open_input(const char *topic, const char *group, bool member, bool fence, bool bounded,
					   const char *strategy)
{
	static const char *const conf[][2] = {
		/* A rebalance on the mock takes a second less than this, which must be
		 * above 3 s; a fetch waits its whole time when there is nothing. */
		{"session.timeout.ms", "4000"},
		/* Bounds a join that the mock forgot: it drops members of a process that was stopped meanwhile. */
		{"max.poll.interval.ms", "10000"},
		{"heartbeat.interval.ms", "200"},
		{"fetch.wait.max.ms", "10"},
		{"retry.backoff.ms", "20"}};
	struct weir_kafka_scan scan = {.table = "t",
				       .topics = &topic,
				       .topic_count = 1,
				       .from_group = !fence,
				       .bounded = bounded,
				       .bound = WEIR_STARTUP_LATEST};
	struct weir_kafka_input_spec spec = {.group = group,
					     .member = member,
					     .fence = fence,
					     .scans = &scan,
					     .scan_count = 1,
					     .broker_wait_ms = PATIENCE_MS};
	struct weir_kafka_log lg = {keep, NULL};
	struct weir_kafka_input *in = NULL;
	struct weir_diag *dg = NULL;
	struct weir_conf *cf = weir_conf_create();
	said[0] = '\0';
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster), NULL),
			 WEIR_OK);
	for (size_t i = 0; i < WEIR_COUNT_OF(conf); i++)
		assert_int_equal(weir_conf_set(cf, conf[i][0], conf[i][1], NULL), WEIR_OK);
	assert_int_equal(weir_conf_set(cf, "partition.assignment.strategy", strategy, NULL), WEIR_OK);
	if (weir_kafka_input_open(&in, cf, &spec, &lg, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	weir_conf_destroy(cf);
	return in;
}

struct weir_kafka_input *mock_input(const char *topic, const char *group, bool member, bool bounded)
{
	return open_input(topic, group, member, false, bounded, "range");
}

struct weir_kafka_input *mock_fence(const char *topic, const char *group)
{
	return open_input(topic, group, true, true, false, "range");
}

struct weir_kafka_input *mock_cooperative(const char *topic, const char *group)
{
	return open_input(topic, group, true, false, false, "cooperative-sticky");
}

void mock_reach(struct weir_kafka_input *in, enum weir_kafka_group_state state)
{
	enum weir_kafka_group_state now = weir_kafka_input_state(in);
	struct weir_diag *dg = NULL;
	/* Turns, not time: a process that was stopped for a while has not waited. */
	for (int turns = 0; now != state; turns++) {
		if (weir_kafka_input_serve(in, 20, &now, &dg) != WEIR_OK)
			fail_msg("%s", weir_diag_text(dg));
		if (turns == PATIENCE_MS / 20)
			fail_msg("state %d instead of %d", now, state);
	}
}

static void check_record(const struct weir_record *r)
{
	char key[32];
	int i = (int)r->offset, bytes = mock_value_bytes(i);
	snprintf(key, sizeof key, "k%d", i);
	assert_int_equal(r->timestamp, 1000 + i);
	if (i % 5 == 4) {
		assert_null(r->key);
	} else {
		assert_int_equal(r->key_bytes, strlen(key));
		assert_memory_equal(r->key, key, strlen(key));
		(void)*(const volatile uint8_t *)(r->key + r->key_bytes + WEIR_PAYLOAD_PAD - 1);
	}
	if (bytes < 0) {
		assert_null(r->value);
		return;
	}
	assert_non_null(r->value);
	assert_int_equal(r->value_bytes, bytes);
	for (int n = 0; n < bytes; n++)
		assert_int_equal((char)r->value[n], mock_byte(i, n));
	(void)*(const volatile uint8_t *)(r->value + r->value_bytes + WEIR_PAYLOAD_PAD - 1);
}

uint32_t mock_owned(struct weir_kafka_input *in)
{
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	uint32_t bits = 0;
	for (uint32_t p = 0; p < sl->ops->partitions(sl); p++)
		bits |= weir_kafka_input_owned(in, 0, p) ? 1u << p : 0;
	return bits;
}

uint32_t mock_read(struct weir_kafka_input *in, int64_t *next)
{
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	struct weir_diag *dg = NULL;
	enum weir_kafka_group_state state;
	uint32_t records = 0;
	if (weir_kafka_input_serve(in, 10, &state, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	for (uint32_t p = 0; p < sl->ops->partitions(sl); p++) {
		int64_t ts;
		struct weir_unit *u;
		enum weir_poll poll = sl->ops->peek(sl, p, &ts, &dg);
		if (poll == WEIR_POLL_ERROR)
			fail_msg("%s", weir_diag_text(dg));
		if (poll != WEIR_POLL_UNIT)
			continue;
		assert_int_equal(sl->ops->take(sl, p, &u, &dg), WEIR_OK);
		for (uint32_t i = 0; i < u->count; i++) {
			assert_int_equal(u->records[i].offset, next[p]);
			next[p]++;
			check_record(&u->records[i]);
		}
		records += u->count;
		sl->ops->release(sl, u);
	}
	return records;
}
