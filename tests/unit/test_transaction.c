/* test_transaction.c: errors put into every request of a transaction, of the results' producer and of a group's commit,
 * by librdkafka's mock cluster: each ends in a retry, in an abort and a retry, or in one clear error; none hangs. What
 * the mock does not have (isolation, stored transactional offsets, fencing) tests/integration/kafka_log.sh looks at on
 * a real broker. */
#include "tests/support/kafka_log_mock.h"

#include "io/kafka/transaction.h"

/* librdkafka 2.0.2 loses a request to send offsets on one of its ways out: its leak, not ours. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:librdkafka";
}

/* ---- every error of every request ---- */

enum ends { RIDES, FENCED, CONF, RECORD };
struct error_case {
	int request;
	int code;
	enum ends ends;
};
static const char *const request_names[] = {[PRODUCE] = "Produce",
					    [OFFSET_COMMIT] = "OffsetCommit",
					    [INIT_PRODUCER] = "InitProducerId",
					    [ADD_PARTITIONS] = "AddPartitionsToTxn",
					    [ADD_OFFSETS] = "AddOffsetsToTxn",
					    [END_TXN] = "EndTxn",
					    [TXN_OFFSETS] = "TxnOffsetCommit"};
enum { TRANSACTION_ABORTABLE = 120 };

/* Runs an epoch into the error, and where the job lives on another one. */
static void run_case(const struct error_case *c, enum weir_guarantee guarantee, bool stateless, bool input, uint64_t *n)
{
	struct job jb;
	struct weir_diag *dg = NULL;
	open_job(&jb, guarantee, stateless, input, NULL);
	assert_int_equal(epoch(&jb, ++*n, &dg), WEIR_OK);
	rd_kafka_mock_push_request_errors(mock, (int16_t)c->request, 1, c->code);
	enum weir_err err = epoch(&jb, ++*n, &dg);
	enum weir_err want = c->ends == RIDES    ? WEIR_OK
			     : c->ends == FENCED ? WEIR_E_FENCED
			     : c->ends == CONF   ? WEIR_E_CONF
						 : WEIR_E_RECORD;
	if (err != want)
		fail_msg("%s, %s: got %d (%s), expected %d; %s", request_names[c->request], rd_kafka_err2name(c->code),
			 err, weir_diag_text(dg), want, said);
	rd_kafka_mock_clear_request_errors(mock, (int16_t)c->request);
	if (c->ends == FENCED) {
		struct weir_diag *again = NULL;
		assert_int_equal(epoch(&jb, *n, &again), WEIR_E_FENCED); /* until drop */
		weir_diag_destroy(again);
		assert_int_equal(jb.log->ops->drop(jb.log, NULL), WEIR_OK);
	}
	if (c->ends == RIDES || c->ends == FENCED) {
		struct weir_diag *next = NULL;
		if (epoch(&jb, ++*n, &next) != WEIR_OK)
			fail_msg("after %s, %s: %s", request_names[c->request], rd_kafka_err2name(c->code),
				 weir_diag_text(next));
		if (!stateless)
			assert_last("app-s-changelog", *n);
		if (guarantee != WEIR_AT_MOST_ONCE)
			assert_last("out", *n);
	} else {
		assert_true(strlen(weir_diag_text(dg)) > 10);
		assert_int_equal(epoch(&jb, *n, NULL), want); /* it sticks */
	}
	weir_diag_destroy(dg);
	close_job(&jb);
}

static void run_cases(const struct error_case *cases, size_t count, enum weir_guarantee guarantee, bool stateless,
		      bool input)
{
	uint64_t n = 0;
	for (size_t i = 0; i < count; i++)
		run_case(&cases[i], guarantee, stateless, input, &n);
}

static const struct error_case produce_cases[] = {
	{PRODUCE, ERR(NOT_LEADER_FOR_PARTITION), RIDES},  {PRODUCE, ERR(NOT_ENOUGH_REPLICAS), RIDES},
	{PRODUCE, ERR(REQUEST_TIMED_OUT), RIDES},         {PRODUCE, ERR(KAFKA_STORAGE_ERROR), RIDES},
	{PRODUCE, ERR(COORDINATOR_NOT_AVAILABLE), RIDES}, {PRODUCE, ERR(_TRANSPORT), RIDES},
	{PRODUCE, ERR(INVALID_TXN_STATE), RIDES},         {PRODUCE, ERR(CONCURRENT_TRANSACTIONS), RIDES},
	{PRODUCE, ERR(PRODUCER_FENCED), RIDES},           {PRODUCE, ERR(INVALID_PRODUCER_ID_MAPPING), RIDES},
	{PRODUCE, ERR(INVALID_PRODUCER_EPOCH), RIDES},    {PRODUCE, ERR(OUT_OF_ORDER_SEQUENCE_NUMBER), RIDES},
	{PRODUCE, ERR(UNKNOWN_PRODUCER_ID), RIDES},       {PRODUCE, TRANSACTION_ABORTABLE, RIDES},
	{PRODUCE, ERR(MSG_SIZE_TOO_LARGE), RECORD},       {PRODUCE, ERR(INVALID_TIMESTAMP), RECORD},
	{PRODUCE, ERR(TOPIC_AUTHORIZATION_FAILED), CONF}, {PRODUCE, ERR(POLICY_VIOLATION), CONF},
};
static const struct error_case partition_cases[] = {
	{ADD_PARTITIONS, ERR(CONCURRENT_TRANSACTIONS), RIDES},
	{ADD_PARTITIONS, ERR(COORDINATOR_LOAD_IN_PROGRESS), RIDES},
	{ADD_PARTITIONS, ERR(COORDINATOR_NOT_AVAILABLE), RIDES},
	{ADD_PARTITIONS, ERR(NOT_COORDINATOR), RIDES},
	{ADD_PARTITIONS, ERR(UNKNOWN_TOPIC_OR_PART), RIDES},
	{ADD_PARTITIONS, ERR(_TRANSPORT), RIDES},
	{ADD_PARTITIONS, ERR(REQUEST_TIMED_OUT), RIDES},
	{ADD_PARTITIONS, ERR(INVALID_PRODUCER_ID_MAPPING), RIDES},
	{ADD_PARTITIONS, ERR(UNKNOWN_PRODUCER_ID), RIDES},
	{ADD_PARTITIONS, ERR(NOT_ENOUGH_REPLICAS), RIDES},
	{ADD_PARTITIONS, TRANSACTION_ABORTABLE, RIDES},
	{ADD_PARTITIONS, ERR(INVALID_PRODUCER_EPOCH), RIDES},
	{ADD_PARTITIONS, ERR(PRODUCER_FENCED), RIDES},
	{ADD_PARTITIONS, ERR(INVALID_TXN_STATE), RIDES},
	{ADD_PARTITIONS, ERR(TOPIC_AUTHORIZATION_FAILED), CONF},
	{ADD_PARTITIONS, ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), CONF},
};
static const struct error_case offset_cases[] = {
	{ADD_OFFSETS, ERR(CONCURRENT_TRANSACTIONS), RIDES},
	{ADD_OFFSETS, ERR(COORDINATOR_NOT_AVAILABLE), RIDES},
	{ADD_OFFSETS, ERR(REQUEST_TIMED_OUT), RIDES},
	{ADD_OFFSETS, ERR(_TRANSPORT), RIDES},
	{ADD_OFFSETS, ERR(PRODUCER_FENCED), RIDES},
	{ADD_OFFSETS, ERR(INVALID_PRODUCER_ID_MAPPING), RIDES},
	{ADD_OFFSETS, ERR(INVALID_PRODUCER_EPOCH), RIDES},
	{ADD_OFFSETS, ERR(INVALID_TXN_STATE), RIDES},
	{ADD_OFFSETS, ERR(GROUP_AUTHORIZATION_FAILED), CONF},
	{ADD_OFFSETS, ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), CONF},
	{TXN_OFFSETS, ERR(CONCURRENT_TRANSACTIONS), RIDES},
	{TXN_OFFSETS, ERR(COORDINATOR_LOAD_IN_PROGRESS), RIDES},
	{TXN_OFFSETS, ERR(NOT_COORDINATOR), RIDES},
	{TXN_OFFSETS, ERR(UNKNOWN_TOPIC_OR_PART), RIDES},
	{TXN_OFFSETS, ERR(_TRANSPORT), RIDES},
	{TXN_OFFSETS, ERR(PRODUCER_FENCED), RIDES},
	{TXN_OFFSETS, ERR(INVALID_PRODUCER_EPOCH), RIDES},
	{TXN_OFFSETS, ERR(INVALID_TXN_STATE), RIDES},
	{TXN_OFFSETS, ERR(INVALID_PRODUCER_ID_MAPPING), RIDES},
	{TXN_OFFSETS, ERR(REBALANCE_IN_PROGRESS), RIDES},
	{TXN_OFFSETS, ERR(ILLEGAL_GENERATION), FENCED},
	{TXN_OFFSETS, ERR(UNKNOWN_MEMBER_ID), FENCED},
	{TXN_OFFSETS, ERR(FENCED_INSTANCE_ID), FENCED},
	{TXN_OFFSETS, ERR(GROUP_AUTHORIZATION_FAILED), CONF},
	{TXN_OFFSETS, ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), CONF},
};
static const struct error_case end_cases[] = {
	{END_TXN, ERR(CONCURRENT_TRANSACTIONS), RIDES},
	{END_TXN, ERR(COORDINATOR_LOAD_IN_PROGRESS), RIDES},
	{END_TXN, ERR(NOT_COORDINATOR), RIDES},
	{END_TXN, ERR(COORDINATOR_NOT_AVAILABLE), RIDES},
	{END_TXN, ERR(_TRANSPORT), RIDES},
	{END_TXN, ERR(REQUEST_TIMED_OUT), RIDES},
	{END_TXN, ERR(INVALID_PRODUCER_ID_MAPPING), RIDES},
	{END_TXN, ERR(UNKNOWN_PRODUCER_ID), RIDES},
	{END_TXN, TRANSACTION_ABORTABLE, RIDES},
	{END_TXN, ERR(INVALID_PRODUCER_EPOCH), RIDES},
	{END_TXN, ERR(PRODUCER_FENCED), RIDES},
	{END_TXN, ERR(INVALID_TXN_STATE), RIDES},
	{END_TXN, ERR(TRANSACTIONAL_ID_AUTHORIZATION_FAILED), CONF},
};

static void test_produce(void **state)
{
	(void)state;
	run_cases(produce_cases, WEIR_COUNT_OF(produce_cases), WEIR_EXACTLY_ONCE, false, true);
}

/* The first request is one of the results' producer. */
static void test_produce_results(void **state)
{
	(void)state;
	run_cases(produce_cases, WEIR_COUNT_OF(produce_cases), WEIR_AT_LEAST_ONCE, false, true);
}

static void test_add_partitions(void **state)
{
	(void)state;
	run_cases(partition_cases, WEIR_COUNT_OF(partition_cases), WEIR_AT_LEAST_ONCE, false, true);
}

static void test_offsets(void **state)
{
	(void)state;
	run_cases(offset_cases, WEIR_COUNT_OF(offset_cases), WEIR_AT_LEAST_ONCE, false, true);
}

static void test_end(void **state)
{
	(void)state;
	run_cases(end_cases, WEIR_COUNT_OF(end_cases), WEIR_EXACTLY_ONCE, false, true);
}

/* A commit in doubt, decided by the record itself: the mock shows every record as committed, so none comes twice. */
static void test_end_elsewhere(void **state)
{
	(void)state;
	run_cases(end_cases, WEIR_COUNT_OF(end_cases), WEIR_AT_LEAST_ONCE, false, false);
}

static void test_group_commit(void **state)
{
	(void)state;
	static const struct error_case cases[] = {
		{OFFSET_COMMIT, ERR(REQUEST_TIMED_OUT), RIDES},         {OFFSET_COMMIT, ERR(NOT_COORDINATOR), RIDES},
		{OFFSET_COMMIT, ERR(REBALANCE_IN_PROGRESS), RIDES},     {OFFSET_COMMIT, ERR(_TRANSPORT), RIDES},
		{OFFSET_COMMIT, ERR(GROUP_AUTHORIZATION_FAILED), CONF},
	};
	run_cases(cases, WEIR_COUNT_OF(cases), WEIR_AT_LEAST_ONCE, true, true);
	run_cases(cases, WEIR_COUNT_OF(cases), WEIR_AT_MOST_ONCE, true, true);
}

static void test_judge(void **state)
{
	(void)state;
	assert_int_equal(weir_txn_judge(RD_KAFKA_RESP_ERR_NO_ERROR), WEIR_TXN_OK);
	assert_int_equal(weir_txn_judge(RD_KAFKA_RESP_ERR__TIMED_OUT), WEIR_TXN_REBUILD);
	assert_int_equal(weir_txn_judge(RD_KAFKA_RESP_ERR__FENCED), WEIR_TXN_REBUILD);
	assert_int_equal(weir_txn_judge(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION), WEIR_TXN_FENCED);
	assert_int_equal(weir_txn_judge(RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE), WEIR_TXN_STOP);
	assert_int_equal(weir_txn_judge((rd_kafka_resp_err_t)32000), WEIR_TXN_REBUILD); /* of brokers to come */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),           cmocka_unit_test(test_produce),
		cmocka_unit_test(test_produce_results), cmocka_unit_test(test_add_partitions),
		cmocka_unit_test(test_offsets),         cmocka_unit_test(test_end),
		cmocka_unit_test(test_end_elsewhere),   cmocka_unit_test(test_group_commit)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
