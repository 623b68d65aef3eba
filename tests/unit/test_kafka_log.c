/* test_kafka_log.c: the log on a cluster against librdkafka's mock cluster: the start of a transactional producer,
 * twins with one id, brokers that go away and come back or do not. */
#include "tests/support/kafka_log_mock.h"

#include <pthread.h>

/* Errors of the first request of a handle, at open and at a rebuild. */
static void test_init(void **state)
{
	(void)state;
	static const int passing[] = {ERR(COORDINATOR_LOAD_IN_PROGRESS),
				      ERR(NOT_COORDINATOR),
				      ERR(CONCURRENT_TRANSACTIONS),
				      ERR(_TRANSPORT),
				      ERR(REQUEST_TIMED_OUT),
				      ERR(PRODUCER_FENCED),
				      ERR(INVALID_PRODUCER_EPOCH)};
	uint64_t n = 0;
	for (size_t i = 0; i < WEIR_COUNT_OF(passing); i++) {
		struct job jb;
		struct weir_diag *dg = NULL;
		rd_kafka_mock_push_request_errors(mock, INIT_PRODUCER, 1, passing[i]);
		open_job(&jb, WEIR_EXACTLY_ONCE, false, true, NULL);
		assert_int_equal(epoch(&jb, ++n, NULL), WEIR_OK);
		rd_kafka_mock_push_request_errors(mock, END_TXN, 1, ERR(UNKNOWN_PRODUCER_ID));
		rd_kafka_mock_push_request_errors(mock, INIT_PRODUCER, 1, passing[i]);
		if (epoch(&jb, ++n, &dg) != WEIR_OK)
			fail_msg("%s: %s", rd_kafka_err2name(passing[i]), weir_diag_text(dg));
		assert_last("out", n);
		close_job(&jb);
	}
}

static void test_init_refused(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(mock), NULL), 0);
	struct weir_kafka_log_spec spec = {.app = "app", .guarantee = WEIR_EXACTLY_ONCE, .broker_wait_ms = 20000};
	struct weir_log *log = NULL;
	struct weir_diag *dg = NULL;
	alarm(CASE_SECONDS_MAX);
	rd_kafka_mock_push_request_errors(mock, INIT_PRODUCER, 1, ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED));
	assert_int_equal(weir_kafka_log_open(&log, cf, &spec, &log_to, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "transactional id app-"));
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
}

/* A twin with the same transactional id: the third time in a minute is the last. */
static void test_gives_up(void **state)
{
	(void)state;
	struct job jb;
	struct weir_diag *dg = NULL;
	open_job(&jb, WEIR_EXACTLY_ONCE, false, true, NULL);
	for (int i = 0; i < 3; i++)
		rd_kafka_mock_push_request_errors(mock, END_TXN, 1, ERR(PRODUCER_FENCED));
	assert_int_equal(epoch(&jb, 1, &dg), WEIR_E_IO);
	assert_non_null(strstr(weir_diag_text(dg), "another program"));
	rd_kafka_mock_clear_request_errors(mock, END_TXN);
	weir_diag_destroy(dg);
	close_job(&jb);
}

/* ---- brokers that are away ---- */

static void *back_later(void *ctx)
{
	(void)ctx;
	sleep(6);
	rd_kafka_mock_broker_set_up(mock, 1);
	return NULL;
}

static void away_and_back(enum weir_guarantee guarantee)
{
	struct job jb;
	struct weir_diag *dg = NULL;
	pthread_t t;
	open_job(&jb, guarantee, false, true, "3000");
	assert_int_equal(epoch(&jb, 1, NULL), WEIR_OK);
	rd_kafka_mock_broker_set_down(mock, 1);
	assert_int_equal(pthread_create(&t, NULL, back_later, NULL), 0);
	if (epoch(&jb, 2, &dg) != WEIR_OK)
		fail_msg("%s; %s", weir_diag_text(dg), said);
	pthread_join(t, NULL);
	assert_int_equal(epoch(&jb, 3, NULL), WEIR_OK);
	assert_last("app-s-changelog", 3);
	if (guarantee != WEIR_AT_MOST_ONCE)
		assert_last("out", 3);
	close_job(&jb);
}

static void test_away_at_least_once(void **state)
{
	(void)state;
	away_and_back(WEIR_AT_LEAST_ONCE);
}

static void test_away_exactly_once(void **state)
{
	(void)state;
	away_and_back(WEIR_EXACTLY_ONCE);
}

static void test_away_at_most_once(void **state)
{
	(void)state;
	away_and_back(WEIR_AT_MOST_ONCE);
}

static void *stop_later(void *ctx)
{
	(void)ctx;
	sleep(2);
	atomic_store(&stop, true);
	return NULL;
}

static void stop_while_away(enum weir_guarantee guarantee, bool stateless)
{
	struct job jb;
	pthread_t t;
	open_job(&jb, guarantee, stateless, true, "3000");
	assert_int_equal(epoch(&jb, 1, NULL), WEIR_OK);
	rd_kafka_mock_broker_set_down(mock, 1);
	assert_int_equal(pthread_create(&t, NULL, stop_later, NULL), 0);
	assert_int_equal(epoch(&jb, 2, NULL), WEIR_E_STOPPED);
	pthread_join(t, NULL);
	close_job(&jb);
	rd_kafka_mock_broker_set_up(mock, 1);
}

/* send_offsets_to_transaction of 2.0.2 does not keep to its time-out: input NULL goes without. */
static void test_stop_while_away(void **state)
{
	(void)state;
	stop_while_away(WEIR_AT_LEAST_ONCE, false);
	stop_while_away(WEIR_AT_LEAST_ONCE, true);
}

/* A stop ends waits; it is no reason to forget results that came back from a broken handle. */
static void test_stop_loses_nothing(void **state)
{
	(void)state;
	static const int codes[] = {ERR(INVALID_PRODUCER_EPOCH), ERR(INVALID_TXN_STATE)};
	for (size_t i = 0; i < WEIR_COUNT_OF(codes); i++) {
		struct job jb;
		struct weir_diag *dg = NULL;
		open_job(&jb, WEIR_AT_LEAST_ONCE, false, true, NULL);
		assert_int_equal(epoch(&jb, 2 * i + 1, NULL), WEIR_OK);
		atomic_store(&stop, true);
		rd_kafka_mock_push_request_errors(mock, PRODUCE, 1, codes[i]);
		if (epoch(&jb, 2 * i + 2, &dg) != WEIR_OK)
			fail_msg("%s; %s", weir_diag_text(dg), said);
		assert_last("out", 2 * i + 2);
		close_job(&jb);
	}
}

/* A group that moves partitions one by one: its members commit by transaction, state or not. What comes of a member
 * that the group took for gone, or whose generation is refused and does not move on, is given up. */
static void test_cooperative(void **state)
{
	(void)state;
	cooperative = true;
	for (int thrown_out = 0; thrown_out < 2; thrown_out++) {
		struct job jb;
		struct weir_diag *dg = NULL;
		uint64_t n = 10 * (uint64_t)thrown_out;
		open_job(&jb, WEIR_AT_LEAST_ONCE, true, true, NULL);
		assert_int_equal(epoch(&jb, n + 1, NULL), WEIR_OK);
		was_thrown_out = thrown_out == 1;
		if (thrown_out == 0)
			rd_kafka_mock_push_request_errors(mock, TXN_OFFSETS, 1, ERR(ILLEGAL_GENERATION));
		assert_int_equal(epoch(&jb, n + 2, &dg), WEIR_E_FENCED);
		assert_non_null(strstr(weir_diag_text(dg), thrown_out == 1 ? "took this instance for gone" : "gave"));
		weir_diag_destroy(dg);
		was_thrown_out = false;
		assert_int_equal(jb.log->ops->drop(jb.log, NULL), WEIR_OK);
		assert_int_equal(epoch(&jb, n + 3, NULL), WEIR_OK);
		close_job(&jb);
	}
	cooperative = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_init),
					   cmocka_unit_test(test_init_refused),
					   cmocka_unit_test(test_gives_up),
					   cmocka_unit_test(test_away_at_least_once),
					   cmocka_unit_test(test_away_exactly_once),
					   cmocka_unit_test(test_away_at_most_once),
					   cmocka_unit_test(test_stop_while_away),
					   cmocka_unit_test(test_stop_loses_nothing),
					   cmocka_unit_test(test_cooperative)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
