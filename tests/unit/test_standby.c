/* test_standby.c: who follows what, against every way in which members can go; and following on librdkafka's mock
 * cluster: taking over reads the tail alone, what is ours or does not fit is forgotten. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "hotpath/core/mem.h"
#include "io/kafka/standby.h"
#include "tests/support/kafka_mock.h"

enum { PARTS = 2, KEYS = 40, VALUE_BYTES = 500, PATIENCE_MS = 60000 };
static const char topic[] = "app-s-changelog";

/* ---- who ---- */

static uint32_t owner(uint32_t partition, uint32_t count, uint32_t partitions)
{
	uint32_t next = 0;
	for (uint32_t m = 0; m < count; m++) {
		next += partitions / count + (m < partitions % count);
		if (partition < next)
			return m;
	}
	return count;
}

/* Every set of at most `gone` others, taken away. */
static bool may_own_naive(uint32_t index, uint32_t count, uint32_t partitions, uint32_t gone, uint32_t p)
{
	for (uint32_t set = 1; set < 1U << count; set++) {
		uint32_t size = (uint32_t)__builtin_popcount(set);
		if ((set >> index & 1) != 0 || size > gone)
			continue;
		uint32_t before = (uint32_t)__builtin_popcount(set & ((1U << index) - 1));
		if (owner(p, count - size, partitions) == index - before)
			return true;
	}
	return false;
}

static void test_who(void **state)
{
	(void)state;
	for (uint32_t count = 1; count <= 6; count++)
		for (uint32_t partitions = 1; partitions <= 13; partitions++)
			for (uint32_t gone = 1; gone <= 4; gone++)
				for (uint32_t index = 0; index < count; index++)
					for (uint32_t p = 0; p < partitions; p++)
						assert_int_equal(
							weir_standby_may_own(index, count, partitions, gone, p),
							may_own_naive(index, count, partitions, gone, p));
}

/* ---- following ---- */

static char said[4096];

static void hear(void *ctx, int level, const char *text)
{
	(void)ctx;
	size_t used = strlen(said);
	if (level <= 6)
		snprintf(said + used, sizeof said - used, "%s\n", text);
}
static const struct weir_kafka_log log_to = {hear, NULL};

static rd_kafka_t *producer;

/* Records from..to of both partitions: key i % KEYS, a value that says i; every 10th key's is null. */
static void produce(uint32_t from, uint32_t to)
{
	char value[VALUE_BYTES];
	memset(value, 'v', sizeof value);
	for (uint32_t i = from; i < to; i++)
		for (int32_t p = 0; p < PARTS; p++) {
			uint32_t key = i % KEYS;
			void *body = key % 10 == 0 ? NULL : value;
			size_t bytes = key % 10 == 0 ? 0 : sizeof value;
			memcpy(value, &i, sizeof i);
			assert_int_equal(rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(p),
							   RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
							   RD_KAFKA_V_KEY(&key, sizeof key),
							   RD_KAFKA_V_VALUE(body, bytes), RD_KAFKA_V_END),
					 0);
		}
	assert_int_equal(rd_kafka_flush(producer, PATIENCE_MS), 0);
}

struct seen {
	uint32_t count;
	uint32_t next; /* the smallest number that may come */
};

static enum weir_err check(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	struct seen *sn = ctx;
	uint32_t i;
	(void)dg;
	assert_int_equal(r->value_bytes, VALUE_BYTES);
	memcpy(&i, r->value, sizeof i);
	assert_true(i >= sn->next);
	sn->next = i + 1;
	sn->count++;
	return WEIR_OK;
}

static int64_t clock_ms(void)
{
	return weir_kafka_now_ms();
}

/* Steps until `partitions` are followed to their ends. */
static void reach(struct weir_standby *sb, uint64_t partitions, uint64_t records)
{
	struct weir_standby_stats st;
	int64_t end = clock_ms() + PATIENCE_MS;
	do {
		weir_standby_step(sb, 50, UINT64_MAX);
		weir_standby_stats(sb, &st);
		assert_true(clock_ms() < end);
	} while (st.partitions != partitions || st.behind != 0 || st.records < records);
	assert_int_equal(st.records, records);
}

static void test_follow(void **state)
{
	(void)state;
	char why[256];
	struct weir_diag *dg = NULL;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), why, sizeof why);
	producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	assert_int_equal(rd_kafka_mock_topic_create(mock_cluster(), topic, PARTS, 1), 0);
	produce(0, 200);
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), NULL),
			 0);
	struct weir_standby_conf sc = {.cf = cf, .log = &log_to, .group = "app", .replicas = 1};
	struct weir_standby *sb;
	assert_int_equal(weir_standby_create(&sb, &sc, &dg), WEIR_OK);
	weir_standby_topic(sb, topic, PARTS);
	struct weir_kafka_client *admin;
	assert_int_equal(weir_kafka_client_create(&admin, cf, WEIR_KAFKA_ADMIN, NULL, &log_to, &dg), WEIR_OK);
	struct weir_changelog_reader_conf rc = {.cf = cf, .log = &log_to, .admin = admin, .keep_bytes_max = 1 << 20};
	struct weir_changelog_reader *cr;
	assert_int_equal(weir_changelog_reader_create(&cr, &rc, &dg), WEIR_OK);

	/* Nothing is followed before the first assignment, nor handed to restore. */
	struct seen sn = {0};
	bool done;
	uint64_t bytes;
	weir_standby_step(sb, 10, UINT64_MAX);
	assert_false(weir_standby_has(sb, topic, 0));
	assert_int_equal(weir_standby_read(sb, cr, topic, 0, 10000, check, &sn, &done, &bytes, &dg), WEIR_OK);
	assert_false(done);
	static const bool none[PARTS], first[PARTS] = {true, false};
	weir_standby_assign(sb, none);
	reach(sb, PARTS, 200 * PARTS);
	assert_non_null(strstr(said, "following 2 of 2"));

	/* The tail alone is read, once; what comes is the newest of each key, in order. */
	produce(200, 230);
	for (int pass = 0; pass < 2; pass++) {
		sn = (struct seen){0};
		assert_int_equal(weir_standby_read(sb, cr, topic, 0, 10000, check, &sn, &done, &bytes, &dg), WEIR_OK);
		assert_true(done);
		assert_int_equal(sn.count, KEYS - KEYS / 10);
		assert_int_equal(sn.next, 230);
		assert_int_equal(bytes, pass == 0 ? (KEYS - KEYS / 10) * (VALUE_BYTES + sizeof(uint32_t)) : 0);
		uint64_t fetched = weir_changelog_reader_fetched(cr);
		assert_int_equal(fetched, pass == 0 ? 27 * VALUE_BYTES + 30 * sizeof(uint32_t) : 0);
	}
	/* Restoring came to nothing: it goes on where it stands. */
	weir_standby_release(sb);
	reach(sb, PARTS, 200 * PARTS + 30);
	assert_true(weir_standby_has(sb, topic, 0));
	/* It is ours now. */
	weir_standby_assign(sb, first);
	assert_false(weir_standby_has(sb, topic, 0));
	assert_true(weir_standby_has(sb, topic, 1));
	reach(sb, 1, 200 * PARTS + 30);

	/* A log that ends before the place we stand at is another one. */
	assert_int_equal(rd_kafka_mock_topic_create(mock_cluster(), "other", 1, 1), 0);
	int64_t end = 0;
	bool fits;
	assert_int_equal(weir_changelog_reader_tail(cr, "other", 0, 5, 10000, check, &sn, &end, &fits, &dg), WEIR_OK);
	assert_false(fits);

	/* No room. */
	said[0] = 0;
	weir_standby_step(sb, 10, 1000);
	assert_false(weir_standby_has(sb, topic, 1));
	assert_non_null(strstr(said, "partition 1 does not fit"));
	struct weir_standby_stats st;
	weir_standby_step(sb, 10, 1000);
	weir_standby_stats(sb, &st);
	assert_int_equal(st.partitions, 0);
	assert_int_equal(st.bytes, 0);

	weir_changelog_reader_destroy(cr);
	weir_kafka_client_destroy(admin);
	weir_standby_destroy(sb);
	weir_conf_destroy(cf);
	rd_kafka_destroy(producer);
}

/* What a broker calls unknown and has is followed further; what is gone is forgotten, for it may be made anew. */
static void test_called_unknown(void **state)
{
	(void)state;
	static const char name[] = "app-u-changelog";
	static const bool none[PARTS];
	struct weir_conf *cf = weir_conf_create();
	struct weir_standby *sb;
	struct weir_diag *dg = NULL;
	mock_fill(name, PARTS, 20);
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), NULL),
			 0);
	struct weir_standby_conf sc = {.cf = cf, .log = &log_to, .group = "app", .replicas = 1};
	assert_int_equal(weir_standby_create(&sb, &sc, &dg), WEIR_OK);
	weir_standby_topic(sb, name, PARTS);
	weir_standby_assign(sb, none);
	reach(sb, PARTS, 20 * PARTS);
	said[0] = 0;
	for (int i = 0; i < 3; i++)
		rd_kafka_mock_push_request_errors(mock_cluster(), MOCK_FETCH, 1,
						  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	for (int i = 0; i < 60; i++)
		weir_standby_step(sb, 20, UINT64_MAX);
	reach(sb, PARTS, 20 * PARTS);
	assert_true(weir_standby_has(sb, name, 0) && weir_standby_has(sb, name, 1));
	assert_null(strstr(said, "not followed"));
	rd_kafka_mock_topic_set_error(mock_cluster(), name, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	rd_kafka_mock_push_request_errors(mock_cluster(), MOCK_FETCH, 1, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	for (int turns = 0; weir_standby_has(sb, name, 0) || weir_standby_has(sb, name, 1); turns++) {
		assert_true(turns < 1000);
		weir_standby_step(sb, 20, UINT64_MAX);
	}
	assert_non_null(strstr(said, "topic app-u-changelog is not there any more: it is not followed"));
	rd_kafka_mock_clear_request_errors(mock_cluster(), MOCK_FETCH);
	weir_standby_destroy(sb);
	weir_conf_destroy(cf);
}

/* What is given back while its beginning is looked for is not fetched: partitions that nobody has followed before,
 * given back after a while each, with answers that take a while. */
static void test_give_back(void **state)
{
	(void)state;
	enum { GIVEN = 12, RTT_MS = 200, WATCH_MS = 1500 };
	static const char given[] = "app-t-changelog";
	struct weir_diag *dg = NULL;
	struct weir_standby_stats st;
	bool owned[GIVEN];
	char why[256];
	assert_int_equal(rd_kafka_mock_topic_create(mock_cluster(), given, GIVEN, 1), 0);
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), NULL),
			 0);
	struct weir_standby_conf sc = {.cf = cf, .log = &log_to, .group = "app", .replicas = 1};
	struct weir_standby *sb;
	assert_int_equal(weir_standby_create(&sb, &sc, &dg), WEIR_OK);
	weir_standby_topic(sb, given, GIVEN);
	memset(owned, true, sizeof owned);
	owned[0] = false;
	weir_standby_assign(sb, owned);
	reach(sb, 1, 0); /* connected, and the topic is known */
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock_cluster(), 1, RTT_MS), 0);
	for (uint32_t p = 0; p < GIVEN; p++) {
		memset(owned, true, sizeof owned);
		owned[p] = false;
		weir_standby_assign(sb, owned);
		weir_standby_step(sb, (int)(p % 3) * 40, UINT64_MAX);
	}
	owned[GIVEN - 1] = true;
	weir_standby_assign(sb, owned);
	weir_standby_step(sb, 10, UINT64_MAX);
	weir_standby_stats(sb, &st);
	assert_int_equal(st.partitions, 0);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), why, sizeof why);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	for (int32_t p = 0; p < GIVEN; p++)
		assert_int_equal(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(given), RD_KAFKA_V_PARTITION(p),
						   RD_KAFKA_V_KEY("k", 1), RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END),
				 0);
	assert_int_equal(rd_kafka_flush(rk, PATIENCE_MS), 0);
	rd_kafka_destroy(rk);
	for (int64_t end = clock_ms() + WATCH_MS; clock_ms() < end; usleep(10000)) {
		weir_standby_stats(sb, &st);
		assert_int_equal(st.waiting, 0);
	}
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock_cluster(), 1, 0), 0);
	weir_standby_destroy(sb);
	weir_conf_destroy(cf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_who), cmocka_unit_test(test_follow),
					   cmocka_unit_test(test_called_unknown), cmocka_unit_test(test_give_back)};
	return cmocka_run_group_tests(tests, mock_setup, mock_teardown);
}
