/* test_changelog_reader.c: the reader of changelogs on librdkafka's mock cluster: what it reads, partition after
 * partition, and that it fetches nothing once it rests. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "io/conf.h"
#include "io/kafka/changelog_reader.h"
#include "tests/support/kafka_mock.h"

enum { PARTS = 16, RECORDS = 20, OPEN_MS = 10000, WATCH_MS = 500, RTT_MS = 5, SECONDS_MAX = 120 };

struct rig {
	struct weir_conf *cf;
	struct weir_kafka_client *admin;
	struct weir_changelog_reader *cr;
};

static void rig_init(struct rig *rg)
{
	struct weir_diag *dg = NULL;
	alarm(SECONDS_MAX);
	rg->cf = weir_conf_create();
	assert_int_equal(
		weir_conf_set(rg->cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), NULL),
		WEIR_OK);
	assert_int_equal(weir_kafka_client_create(&rg->admin, rg->cf, WEIR_KAFKA_ADMIN, NULL, NULL, &dg), WEIR_OK);
	struct weir_changelog_reader_conf conf = {.cf = rg->cf, .admin = rg->admin, .keep_bytes_max = 1 << 20};
	assert_int_equal(weir_changelog_reader_create(&rg->cr, &conf, &dg), WEIR_OK);
}

static void rig_fini(struct rig *rg)
{
	weir_changelog_reader_destroy(rg->cr);
	weir_kafka_client_destroy(rg->admin);
	weir_conf_destroy(rg->cf);
}

static enum weir_err count(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	int64_t *next = ctx;
	(void)dg;
	assert_int_equal(r->offset, *next);
	++*next;
	return WEIR_OK;
}

/* As restore reads: every partition, the next one being known. Returns how many records. */
static int64_t read_all(struct rig *rg, const char *topic)
{
	struct weir_diag *dg = NULL;
	int64_t sum = 0;
	weir_changelog_reader_warm(rg->cr, topic);
	for (uint32_t p = 0; p < PARTS; p++) {
		int64_t next = 0;
		if (p + 1 < PARTS)
			weir_changelog_reader_expect(rg->cr, topic, p + 1);
		if (weir_changelog_reader_read(rg->cr, topic, p, OPEN_MS, count, &next, &dg) != WEIR_OK)
			fail_msg("%s", weir_diag_text(dg));
		sum += next;
	}
	weir_changelog_reader_rest(rg->cr);
	return sum;
}

static void test_reads(void **state)
{
	struct rig rg;
	(void)state;
	rig_init(&rg);
	mock_fill("full", PARTS, RECORDS);
	assert_int_equal(read_all(&rg, "full"), PARTS * RECORDS);
	assert_int_equal(read_all(&rg, "full"), PARTS * RECORDS); /* again, from the start */
	rig_fini(&rg);
}

/* One record into every partition of a topic that is there. */
static void write_each(const char *topic)
{
	char why[256];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), why, sizeof why);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	for (int32_t p = 0; p < PARTS; p++)
		assert_int_equal(rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(p),
						   RD_KAFKA_V_VALUE("v", 1), RD_KAFKA_V_END),
				 0);
	assert_int_equal(rd_kafka_flush(rk, 20000), 0);
	rd_kafka_destroy(rk);
}

/* A broker that has just started may call unknown what it has: it is asked whether that is so. */
static void test_called_unknown(void **state)
{
	enum { LIST_OFFSETS = 2 };
	struct rig rg;
	(void)state;
	rig_init(&rg);
	mock_fill("denied", PARTS, RECORDS);
	rd_kafka_mock_push_request_errors(mock_cluster(), LIST_OFFSETS, 2, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
					  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_int_equal(read_all(&rg, "denied"), PARTS * RECORDS);
	rig_fini(&rg);
}

/* What is written after restore stays on the broker: no partition that was to be read next is still fetched. */
static void test_rests(void **state)
{
	struct rig rg;
	(void)state;
	rig_init(&rg);
	assert_int_equal(rd_kafka_mock_topic_create(mock_cluster(), "empty", PARTS, 1), 0);
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock_cluster(), 1, RTT_MS), 0);
	assert_int_equal(read_all(&rg, "empty"), 0);
	write_each("empty");
	for (int i = 0; i < WATCH_MS; i += 10) {
		usleep(10000);
		assert_int_equal(weir_changelog_reader_waiting(rg.cr), 0);
	}
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock_cluster(), 1, 0), 0);
	rig_fini(&rg);
}

struct watch {
	uint32_t calls, most;
};

static enum weir_err alive(void *ctx, struct weir_diag **dg)
{
	struct watch *wt = ctx;
	return ++wt->calls < wt->most ? WEIR_OK : weir_diag_set(dg, WEIR_E_UNAVAILABLE, "enough");
}

/* However slowly a partition comes, who waits for it is asked again and again, and may end it. */
static void test_says_that_it_is_alive(void **state)
{
	struct rig rg;
	struct weir_diag *dg = NULL;
	struct watch wt = {.most = UINT32_MAX};
	int64_t next = 0;
	(void)state;
	rig_init(&rg);
	mock_fill("slow", 1, RECORDS);
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock_cluster(), 1, 1500), 0);
	weir_changelog_reader_set_alive(rg.cr, alive, &wt);
	assert_int_equal(weir_changelog_reader_read(rg.cr, "slow", 0, OPEN_MS, count, &next, &dg), WEIR_OK);
	assert_int_equal(next, RECORDS);
	assert_true(wt.calls >= 3);
	wt = (struct watch){.most = 2};
	weir_changelog_reader_forget(rg.cr);
	next = 0;
	assert_int_equal(weir_changelog_reader_read(rg.cr, "slow", 0, OPEN_MS, count, &next, &dg), WEIR_E_UNAVAILABLE);
	assert_string_equal(weir_diag_text(dg), "enough");
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock_cluster(), 1, 0), 0);
	weir_changelog_reader_set_alive(rg.cr, NULL, NULL);
	next = 0;
	assert_int_equal(weir_changelog_reader_read(rg.cr, "slow", 0, OPEN_MS, count, &next, &dg), WEIR_OK);
	assert_int_equal(next, RECORDS);
	assert_int_equal(wt.calls, 2);
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads), cmocka_unit_test(test_called_unknown),
					   cmocka_unit_test(test_rests), cmocka_unit_test(test_says_that_it_is_alive)};
	return cmocka_run_group_tests(tests, mock_setup, mock_teardown);
}
