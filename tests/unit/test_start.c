/* test_start.c: what a group member finds out before it reads: startup and bounded modes, offsets that were written
 * down, topics that are not there, brokers that are not. By librdkafka's mock cluster. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "io/kafka/client.h"
#include "tests/support/kafka_mock.h"

enum { PARTITIONS = 2, RECORDS = 100 };

static enum weir_err open_with(struct weir_kafka_input **out, const struct weir_kafka_scan *scans, uint32_t count,
			       const char *brokers, int64_t wait_ms, const char *property, const char *value,
			       struct weir_diag **dg)
{
	struct weir_kafka_input_spec spec = {
		.group = "g", .scans = scans, .scan_count = count, .broker_wait_ms = wait_ms};
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers",
				       brokers != NULL ? brokers : rd_kafka_mock_cluster_bootstraps(mock_cluster()),
				       NULL),
			 WEIR_OK);
	if (property != NULL)
		assert_int_equal(weir_conf_set(cf, property, value, NULL), WEIR_OK);
	*out = NULL;
	enum weir_err err = weir_kafka_input_open(out, cf, &spec, NULL, dg);
	weir_conf_destroy(cf);
	return err;
}

static const char *const topics[] = {"start"};

static struct weir_kafka_scan scan_of(void)
{
	return (struct weir_kafka_scan){.table = "orders", .topics = topics, .topic_count = 1};
}

static void expect_refused(const struct weir_kafka_scan *scans, uint32_t count, const char *property, const char *value,
			   const char *text)
{
	struct weir_kafka_input *in;
	struct weir_diag *dg = NULL;
	assert_int_equal(open_with(&in, scans, count, NULL, 60000, property, value, &dg), WEIR_E_CONF);
	assert_null(in);
	if (strstr(weir_diag_text(dg), text) == NULL)
		fail_msg("%s", weir_diag_text(dg));
	weir_diag_destroy(dg);
}

static void expect_range(const struct weir_kafka_scan *sc, uint32_t p, int64_t first, int64_t end)
{
	struct weir_kafka_input *in;
	struct weir_diag *dg = NULL;
	int64_t f, e;
	if (open_with(&in, sc, 1, NULL, 60000, NULL, NULL, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	sl->ops->range(sl, p, &f, &e);
	assert_int_equal(f, first);
	assert_int_equal(e, end);
	assert_int_equal(weir_kafka_input_live(in, 0), !sc->bounded);
	weir_kafka_input_close(in);
}

static void test_modes(void **state)
{
	(void)state;
	struct weir_kafka_scan sc = scan_of();
	expect_range(&sc, 0, 0, RECORDS);
	sc.startup = WEIR_STARTUP_LATEST;
	expect_range(&sc, 1, RECORDS, RECORDS);
	sc.startup = WEIR_STARTUP_OFFSETS;
	sc.startup_offsets = "partition:0,offset:42;partition:1,offset:7";
	expect_range(&sc, 0, 42, RECORDS);
	expect_range(&sc, 1, 7, RECORDS);
	sc.startup_offsets = "partition:0,offset:42"; /* what is not named is read whole */
	expect_range(&sc, 1, 0, RECORDS);
	sc.bounded = true;
	sc.bound = WEIR_STARTUP_LATEST;
	expect_range(&sc, 0, 42, RECORDS);
	sc.bound = WEIR_STARTUP_OFFSETS;
	sc.bound_offsets = "partition:0,offset:50;partition:1,offset:999";
	expect_range(&sc, 0, 42, 50);
	expect_range(&sc, 1, 0, RECORDS);
}

static void test_bad_offsets(void **state)
{
	static const char *const bad[] = {"x",
					  "partition:0",
					  "partition:0,offset:",
					  "partition:0,offset:1,",
					  "partition:0;offset:1",
					  "partition:0,offset:1 ",
					  "offset:1,partition:0"};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		struct weir_kafka_scan sc = scan_of();
		sc.startup = WEIR_STARTUP_OFFSETS;
		sc.startup_offsets = bad[i];
		expect_refused(&sc, 1, NULL, NULL, "table orders: 'scan.startup.specific-offsets'");
		sc = scan_of();
		sc.bounded = true;
		sc.bound = WEIR_STARTUP_OFFSETS;
		sc.bound_offsets = bad[i];
		expect_refused(&sc, 1, NULL, NULL, "table orders: 'scan.bounded.specific-offsets'");
	}
}

static void test_offset_that_is_not_there(void **state)
{
	(void)state;
	struct weir_kafka_input *in;
	struct weir_diag *dg = NULL;
	struct weir_kafka_scan sc = scan_of();
	sc.startup = WEIR_STARTUP_OFFSETS;
	sc.startup_offsets = "partition:1,offset:101";
	assert_int_equal(open_with(&in, &sc, 1, NULL, 60000, NULL, NULL, &dg), WEIR_OK);
	assert_int_equal(weir_kafka_input_join(in, &dg), WEIR_OK);
	assert_int_equal(weir_kafka_input_begin(in, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "table orders: 'scan.startup.specific-offsets': topic start, "
						   "partition 1 cannot be read from offset 101: it ends at 100"));
	assert_non_null(strstr(weir_diag_report(dg), "hint: an offset from 0 to 100, or 'scan.startup.mode'"));
	assert_null(strstr(weir_diag_report(dg), "retention"));
	weir_diag_destroy(dg);
	dg = NULL;
	/* What a checkpoint says is nobody's mistake in the statements. */
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	assert_int_equal(sl->ops->seek(sl, 1, 102, &dg), WEIR_E_IO);
	assert_non_null(strstr(weir_diag_text(dg), "cannot be read from offset 102: it ends at 100"));
	assert_non_null(strstr(weir_diag_report(dg), "was the topic made anew"));
	assert_null(strstr(weir_diag_report(dg), "retention"));
	weir_diag_destroy(dg);
	weir_kafka_input_close(in);
}

/* A chain of queries through a topic: what to do is said, with as many partitions as the other topics have. */
static void test_topic_that_the_job_writes(void **state)
{
	(void)state;
	static const char *const chained[] = {"between"}, *const written[] = {"elsewhere", "between", NULL};
	struct weir_kafka_scan scans[2] = {scan_of(), {.table = "second", .topics = chained, .topic_count = 1}};
	struct weir_kafka_input *in;
	struct weir_diag *dg = NULL;
	scans[1].written = written;
	/* The mock cluster makes what it is asked for, unless it is told so. */
	rd_kafka_mock_topic_set_error(mock_cluster(), "between", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_int_equal(open_with(&in, scans, 2, NULL, 60000, NULL, NULL, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "table second: there is no topic 'between' on "));
	assert_non_null(strstr(weir_diag_report(dg), "hint: this job writes it, too"));
	assert_non_null(
		strstr(weir_diag_report(dg), "--create --topic between --partitions 2 --config retention.ms=-1"));
	weir_diag_destroy(dg);
}

static void *make_known(void *name)
{
	usleep(400000);
	rd_kafka_mock_topic_set_error(mock_cluster(), name, RD_KAFKA_RESP_ERR_NO_ERROR);
	return NULL;
}

/* A broker that has not heard of a new topic yet: it is asked again. */
static void test_topic_that_is_new(void **state)
{
	(void)state;
	static char name[] = "new";
	static const char *const fresh[] = {name};
	struct weir_kafka_scan sc = {.table = "orders", .topics = fresh, .topic_count = 1};
	struct weir_kafka_input *in = NULL;
	struct weir_diag *dg = NULL;
	pthread_t other;
	rd_kafka_mock_topic_create(mock_cluster(), name, 2, 1);
	rd_kafka_mock_topic_set_error(mock_cluster(), name, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_int_equal(pthread_create(&other, NULL, make_known, name), 0);
	enum weir_err err = open_with(&in, &sc, 1, NULL, 60000, NULL, NULL, &dg);
	pthread_join(other, NULL);
	assert_int_equal(err, WEIR_OK);
	weir_kafka_input_close(in);
}

/* Deleted between two looks at it, and not the only one that is read: it is told, by its own name. */
static void test_topic_that_goes(void **state)
{
	(void)state;
	static const char *const going[] = {"going"};
	struct weir_kafka_scan scans[2] = {scan_of(), {.table = "second", .topics = going, .topic_count = 1}};
	struct weir_kafka_input *in;
	struct weir_diag *dg = NULL;
	mock_fill("going", PARTITIONS, RECORDS);
	scans[1].startup = WEIR_STARTUP_OFFSETS;
	scans[1].startup_offsets = "partition:1,offset:50";
	assert_int_equal(open_with(&in, scans, 2, NULL, 60000, NULL, NULL, &dg), WEIR_OK);
	assert_int_equal(weir_kafka_input_join(in, &dg), WEIR_OK);
	rd_kafka_mock_topic_set_error(mock_cluster(), "going", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	for (int i = 0; i < 4; i++)
		rd_kafka_mock_push_request_errors(mock_cluster(), MOCK_LIST_OFFSETS, 1,
						  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_int_equal(weir_kafka_input_begin(in, &dg), WEIR_E_CONF);
	assert_string_equal(weir_diag_text(dg), "topic going is not there any more");
	weir_diag_destroy(dg);
	weir_kafka_input_close(in);
	rd_kafka_mock_clear_request_errors(mock_cluster(), MOCK_LIST_OFFSETS);
}

/* One topic that no other is read with. */
static void test_strategy(void)
{
	struct weir_kafka_scan sc = scan_of();
	struct weir_kafka_input_spec spec = {
		.group = "g", .member = true, .scans = &sc, .scan_count = 1, .broker_wait_ms = 60000};
	struct weir_diag *dg = NULL;
	struct weir_kafka_input *in = NULL;
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock_cluster()), NULL),
			 WEIR_OK);
	assert_int_equal(weir_kafka_input_open(&in, cf, &spec, NULL, &dg), WEIR_OK);
	assert_int_equal(weir_kafka_input_cooperative(in), rd_kafka_version() >= 0x020a01ff);
	weir_kafka_input_close(in);
	assert_int_equal(weir_conf_set(cf, "partition.assignment.strategy", "cooperative-sticky", NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_open(&in, cf, &spec, NULL, &dg), WEIR_OK);
	assert_true(weir_kafka_input_cooperative(in));
	weir_kafka_input_close(in);
	spec.range_only = "a and b are read together";
	assert_int_equal(weir_kafka_input_open(&in, cf, &spec, NULL, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "a and b are read together. Say range"));
	weir_diag_destroy(dg);
	assert_int_equal(weir_conf_set(cf, "partition.assignment.strategy", "range", NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_open(&in, cf, &spec, NULL, NULL), WEIR_OK);
	assert_false(weir_kafka_input_cooperative(in));
	weir_kafka_input_close(in);
	weir_conf_destroy(cf);
}

static void test_refusals(void **state)
{
	(void)state;
	struct weir_kafka_scan sc = scan_of(), two[2] = {scan_of(), scan_of()};
	two[1].table = "again";
	expect_refused(two, 2, NULL, NULL, "topic start is read by table orders and by table again");
	two[1].read_uncommitted = true;
	expect_refused(two, 2, NULL, NULL, "isolation.level must be the same");
	expect_refused(&sc, 1, "partition.assignment.strategy", "roundrobin", "roundrobin: weir's groups use range");
	expect_refused(&sc, 1, "partition.assignment.strategy", "cooperative-sticky,range", "cooperative-sticky,range");
	test_strategy();
	sc.topic_pattern = "(";
	expect_refused(&sc, 1, NULL, NULL, "table orders: topic-pattern '(' is no regular expression");
	sc.topic_pattern = "star"; /* whole names */
	expect_refused(&sc, 1, NULL, NULL, "matches 'star'");
	sc.topic_pattern = "sta(r|s)t";
	expect_range(&sc, 0, 0, RECORDS);
}

static void test_no_broker(void **state)
{
	(void)state;
	static _Atomic bool stop = true;
	struct weir_kafka_input *in = NULL;
	struct weir_diag *dg = NULL;
	struct weir_kafka_scan sc = scan_of();
	assert_int_equal(open_with(&in, &sc, 1, "127.0.0.1:1", 100, NULL, NULL, &dg), WEIR_E_UNAVAILABLE);
	assert_non_null(strstr(weir_diag_text(dg), "no broker at 127.0.0.1:1 answers"));
	weir_diag_destroy(dg);
	dg = NULL;
	/* For ever, but for a stop. */
	struct weir_kafka_input_spec spec = {
		.group = "g", .scans = &sc, .scan_count = 1, .broker_wait_ms = -1, .stop = &stop};
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", "127.0.0.1:1", NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_open(&in, cf, &spec, NULL, &dg), WEIR_E_STOPPED);
	assert_null(in);
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
}

static int setup(void **state)
{
	int rc = mock_setup(state);
	if (rc == 0)
		mock_fill("start", PARTITIONS, RECORDS);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_bad_offsets),
		cmocka_unit_test(test_offset_that_is_not_there),
		cmocka_unit_test(test_topic_that_the_job_writes),
		cmocka_unit_test(test_topic_that_is_new),
		cmocka_unit_test(test_topic_that_goes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_no_broker),
	};
	return cmocka_run_group_tests(tests, setup, mock_teardown);
}
