/* test_group.c: the life of a group member by librdkafka's mock cluster: assignments shared and given back, a
 * revocation that waits for its answer, and errors put into every request of a group: each ends in going on, in a lost
 * assignment, or in one clear report. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/kafka_mock.h"

enum { PARTITIONS = 4, RECORDS = 500 };

static struct weir_kafka_input *join(const char *group)
{
	struct weir_kafka_input *in = mock_input("shared", group, true, false);
	assert_int_equal(weir_kafka_input_state(in), WEIR_GROUP_JOINING);
	assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
	return in;
}

static void read_all(struct weir_kafka_input *in, int64_t *next)
{
	for (uint32_t left = PARTITIONS * RECORDS; left > 0;)
		left -= mock_read(in, next);
}

static void commit(struct weir_kafka_input *in, int partition, int64_t offset, const char *metadata)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_t *tp = rd_kafka_topic_partition_list_add(list, "shared", partition);
	tp->offset = offset;
	tp->metadata = strdup(metadata);
	tp->metadata_size = strlen(metadata);
	assert_int_equal(rd_kafka_commit(weir_kafka_input_handle(in), list, 0), 0);
	rd_kafka_topic_partition_list_destroy(list);
}

static enum weir_err committed(struct weir_kafka_input *in, int64_t *offset, uint64_t *epoch, struct weir_diag **dg)
{
	return weir_kafka_input_committed(in, &offset, &epoch, dg);
}

static void test_shared(void **state)
{
	(void)state;
	int64_t next[PARTITIONS] = {0}, offset[PARTITIONS], ts;
	uint64_t epoch[PARTITIONS];
	struct weir_kafka_input *a = join("shared");
	struct weir_stream_log *sl = weir_kafka_input_stream(a, 0);
	assert_int_equal(sl->ops->peek(sl, 0, &ts, NULL), WEIR_POLL_BOUND); /* not owned */
	mock_reach(a, WEIR_GROUP_ASSIGNED);
	assert_int_equal(mock_owned(a), 15);
	assert_int_equal(sl->ops->peek(sl, 0, &ts, NULL), WEIR_POLL_LATER); /* not begun */
	assert_int_equal(committed(a, offset, epoch, NULL), WEIR_OK);
	assert_int_equal(offset[3], -1);
	assert_int_equal(weir_kafka_input_begin(a, NULL), WEIR_OK);
	assert_int_not_equal(sl->ops->peek(sl, 0, &ts, NULL), WEIR_POLL_EMPTY); /* not idle, fetched or not */
	read_all(a, next);
	for (int turns = 0; sl->ops->peek(sl, 3, &ts, NULL) != WEIR_POLL_EMPTY && turns < 3000; turns++)
		(void)mock_read(a, next);
	assert_int_equal(sl->ops->peek(sl, 3, &ts, NULL), WEIR_POLL_EMPTY); /* at the end, it is */
	commit(a, 0, 100, "17");
	commit(a, 1, 200, "not a number");
	commit(a, 3, 400, "18446744073709551616");

	/* Another comes: nothing is handed over before the release. */
	struct weir_kafka_input *b = join("shared");
	enum weir_kafka_group_state at = WEIR_GROUP_RUNNING;
	while (at != WEIR_GROUP_REVOKED) {
		assert_int_equal(weir_kafka_input_serve(b, 10, &at, NULL), WEIR_OK);
		assert_int_equal(at, WEIR_GROUP_JOINING);
		assert_int_equal(weir_kafka_input_serve(a, 10, &at, NULL), WEIR_OK);
	}
	assert_int_equal(mock_owned(a), 15);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(weir_kafka_input_serve(a, 5, &at, NULL), WEIR_OK);
		assert_int_equal(at, WEIR_GROUP_REVOKED);
		assert_int_equal(weir_kafka_input_serve(b, 5, &at, NULL), WEIR_OK);
		assert_int_equal(at, WEIR_GROUP_JOINING);
	}
	assert_int_equal(sl->ops->peek(sl, 0, &ts, NULL), WEIR_POLL_LATER); /* drains, reads no more */
	assert_int_equal(weir_kafka_input_release(a, NULL), WEIR_OK);
	assert_int_equal(mock_owned(a), 0);
	enum weir_kafka_group_state at_a = WEIR_GROUP_JOINING, at_b = WEIR_GROUP_JOINING;
	/* On a slow machine one may be given all of them first, while the other is still on its way back. */
	for (int i = 0;
	     (at_a != WEIR_GROUP_ASSIGNED || at_b != WEIR_GROUP_ASSIGNED || (mock_owned(a) & mock_owned(b)) != 0) &&
	     i < 3000;
	     i++) {
		assert_int_equal(weir_kafka_input_serve(a, 10, &at_a, NULL), WEIR_OK);
		assert_int_equal(weir_kafka_input_serve(b, 10, &at_b, NULL), WEIR_OK);
		if (at_a == WEIR_GROUP_REVOKED)
			assert_int_equal(weir_kafka_input_release(a, NULL), WEIR_OK);
		if (at_b == WEIR_GROUP_REVOKED)
			assert_int_equal(weir_kafka_input_release(b, NULL), WEIR_OK);
	}
	assert_int_equal(mock_owned(a) | mock_owned(b), 15);
	assert_int_equal(mock_owned(a) & mock_owned(b), 0);
	assert_int_not_equal(mock_owned(b), 0);

	/* Both see the offsets of what they have, the epoch only where it is one. */
	for (int who = 0; who < 2; who++) {
		struct weir_kafka_input *in = who == 0 ? a : b;
		assert_int_equal(committed(in, offset, epoch, NULL), WEIR_OK);
		for (int p = 0; p < PARTITIONS; p++) {
			bool has = weir_kafka_input_owned(in, 0, (uint32_t)p) && p != 2;
			assert_int_equal(offset[p], has ? (p + 1) * 100 : -1);
			assert_int_equal(epoch[p], has && p == 0 ? 17 : 0);
		}
	}
	/* And go on there. */
	int64_t goes_on[PARTITIONS] = {100, 200, 0, 400};
	assert_int_equal(weir_kafka_input_begin(a, NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_begin(b, NULL), WEIR_OK);
	for (uint32_t left = PARTITIONS * RECORDS - 700; left > 0;)
		left -= mock_read(a, goes_on) + mock_read(b, goes_on);
	weir_kafka_input_close(b);
	weir_kafka_input_close(a);
}

static void push(int16_t key, size_t count, rd_kafka_resp_err_t err)
{
	rd_kafka_resp_err_t errs[64];
	assert_true(count <= WEIR_COUNT_OF(errs));
	for (size_t i = 0; i < count; i++)
		errs[i] = err;
	rd_kafka_mock_push_request_errors_array(mock_cluster(), key, count, errs);
}

/* Errors that pass: the group forms and every record comes once. */
static void test_errors_that_pass(void **state)
{
	static const struct {
		int16_t key;
		size_t count;
		rd_kafka_resp_err_t err;
	} table[] = {
		{MOCK_FIND_COORDINATOR, 2, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE},
		{MOCK_JOIN_GROUP, 1, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS},
		{MOCK_JOIN_GROUP, 1, RD_KAFKA_RESP_ERR_NOT_COORDINATOR},
		{MOCK_JOIN_GROUP, 1, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID},
		{MOCK_SYNC_GROUP, 1, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS},
		{MOCK_HEARTBEAT, 3, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE},
		{MOCK_OFFSET_FETCH, 2, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT},
		{MOCK_OFFSET_FETCH, 1, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS},
		{MOCK_FETCH, 5, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION},
		{MOCK_FETCH, 5, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT},
		{MOCK_FETCH, 2, RD_KAFKA_RESP_ERR__TRANSPORT},
	};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		char group[32];
		int64_t next[PARTITIONS] = {0};
		snprintf(group, sizeof group, "passes%zu", i);
		/* Joining takes a while on the mock. */
		bool member = table[i].key != MOCK_FETCH && table[i].key != MOCK_OFFSET_FETCH;
		struct weir_kafka_input *in = mock_input("shared", group, member, false);
		print_message("request %d: %s\n", table[i].key, rd_kafka_err2name(table[i].err));
		push(table[i].key, table[i].count, table[i].err);
		assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
		mock_reach(in, WEIR_GROUP_ASSIGNED);
		assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
		read_all(in, next);
		weir_kafka_input_close(in);
		rd_kafka_mock_clear_request_errors(mock_cluster(), table[i].key);
	}
}

/* The group throws us out: the assignment is lost, and comes again after the release. */
static void test_lost(void **state)
{
	static const rd_kafka_resp_err_t table[] = {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID,
						    RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		char group[32];
		int64_t next[PARTITIONS] = {0}, again[PARTITIONS] = {0};
		snprintf(group, sizeof group, "lost%zu", i);
		struct weir_kafka_input *in = join(group);
		mock_reach(in, WEIR_GROUP_ASSIGNED);
		assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
		read_all(in, next);
		push(MOCK_HEARTBEAT, 1, table[i]);
		mock_reach(in, WEIR_GROUP_LOST);
		assert_int_equal(weir_kafka_input_release(in, NULL), WEIR_OK);
		mock_reach(in, WEIR_GROUP_ASSIGNED);
		assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
		read_all(in, again);
		weir_kafka_input_close(in);
	}
}

static enum weir_err serve_until_error(struct weir_kafka_input *in, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (int turns = 0; err == WEIR_OK && turns < 3000; turns++) {
		enum weir_kafka_group_state at;
		err = weir_kafka_input_serve(in, 20, &at, dg);
		if (err == WEIR_OK && at == WEIR_GROUP_ASSIGNED)
			err = weir_kafka_input_begin(in, dg);
	}
	return err;
}

/* Errors that do not: one report, which stays. */
static void test_errors_that_stay(void **state)
{
	static const struct {
		int16_t key;
		rd_kafka_resp_err_t put;
		enum weir_err err;
		const char *text;
	} table[] = {
		{MOCK_JOIN_GROUP, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, WEIR_E_CONF, "authoriz"},
		{MOCK_OFFSET_FETCH, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, WEIR_E_CONF, "offsets of group"},
		{MOCK_FETCH, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, WEIR_E_CONF, "authoriz"},
	};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		char group[32];
		struct weir_diag *dg = NULL, *again = NULL;
		enum weir_kafka_group_state at;
		snprintf(group, sizeof group, "stays%zu", i);
		struct weir_kafka_input *in = mock_input("shared", group, true, false);
		push(table[i].key, 64, table[i].put);
		assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
		assert_int_equal(serve_until_error(in, &dg), table[i].err);
		assert_non_null(dg);
		if (strstr(weir_diag_text(dg), table[i].text) == NULL)
			fail_msg("%s", weir_diag_text(dg));
		if (table[i].key != MOCK_OFFSET_FETCH) {
			assert_int_equal(weir_kafka_input_serve(in, 0, &at, &again), table[i].err);
			assert_string_equal(weir_diag_text(again), weir_diag_text(dg));
		}
		weir_diag_destroy(dg);
		weir_diag_destroy(again);
		weir_kafka_input_close(in);
		rd_kafka_mock_clear_request_errors(mock_cluster(), table[i].key);
	}
}

static void test_rejoin(void **state)
{
	(void)state;
	int64_t next[PARTITIONS] = {0}, again[PARTITIONS] = {0};
	struct weir_kafka_input *in = join("rejoins");
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
	weir_kafka_input_pause(in, true);
	for (int i = 0; i < 20; i++)
		assert_int_equal(mock_read(in, next), 0);
	weir_kafka_input_pause(in, false);
	read_all(in, next);
	assert_int_equal(weir_kafka_input_rejoin(in, NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_state(in), WEIR_GROUP_JOINING);
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
	read_all(in, again);
	weir_kafka_input_close(in);
}

/* Leaving at every moment of a join. */
static void test_close_while_joining(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		char group[32];
		enum weir_kafka_group_state at;
		snprintf(group, sizeof group, "leaves%d", i);
		struct weir_kafka_input *in = join(group);
		for (int n = 0; n < i; n++)
			assert_int_equal(weir_kafka_input_serve(in, 31 * i % 170, &at, NULL), WEIR_OK);
		weir_kafka_input_close(in);
	}
}

static int setup(void **state)
{
	int rc = mock_setup(state);
	if (rc == 0)
		mock_fill("shared", PARTITIONS, RECORDS);
	return rc;
}

/* A member that reads nothing: it has partitions and a generation, and tells others that all was read. */
static void test_fence(void **state)
{
	(void)state;
	int64_t offset[PARTITIONS], ts;
	uint64_t epoch[PARTITIONS];
	bool again = true;
	struct weir_kafka_input *in = mock_fence("shared", "fence");
	assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	assert_int_equal(mock_owned(in), 15);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	for (int i = 0; i < 30; i++) {
		enum weir_kafka_group_state at;
		assert_int_equal(weir_kafka_input_serve(in, 10, &at, NULL), WEIR_OK);
		assert_int_equal(at, WEIR_GROUP_RUNNING);
		assert_int_not_equal(sl->ops->peek(sl, 0, &ts, NULL), WEIR_POLL_UNIT); /* though there is plenty */
	}
	commit(in, 0, 100, "17");
	commit(in, 1, 100, "18 ends");
	weir_kafka_input_say_end(in);
	assert_int_equal(committed(in, offset, epoch, NULL), WEIR_OK);
	assert_int_equal(offset[0], 100);
	assert_int_equal(epoch[0], 17); /* the word behind it does not hide it */
	assert_int_equal(epoch[1], 0);
	assert_int_equal(offset[3], 0);
	assert_int_equal(epoch[3], 0);
	assert_int_equal(weir_kafka_input_await_others(in, &again, NULL), WEIR_OK);
	assert_false(again);
	weir_kafka_input_close(in);
	/* A reader reads what it is told to. */
	struct weir_kafka_input *reader = mock_input("shared", "fence", false, false);
	const bool none[PARTITIONS] = {false}, two[PARTITIONS] = {true, false, true, false};
	const bool *of = two;
	assert_int_equal(weir_kafka_input_take(reader, &of, NULL), WEIR_OK);
	assert_int_equal(mock_owned(reader), 5);
	assert_int_equal(weir_kafka_input_begin(reader, NULL), WEIR_OK);
	int64_t next[PARTITIONS] = {100, -1, 0, -1};
	for (uint32_t left = 2 * RECORDS - 100; left > 0;) /* 0 goes on where the group's offset is */
		left -= mock_read(reader, next);
	of = none;
	assert_int_equal(weir_kafka_input_take(reader, &of, NULL), WEIR_OK);
	assert_int_equal(mock_owned(reader), 0);
	assert_int_equal(weir_kafka_input_begin(reader, NULL), WEIR_OK);
	weir_kafka_input_close(reader);
}

/* The first answer takes its time: that is no partition that stands still. Where nothing was committed is said. */
static void test_begins(void **state)
{
	(void)state;
	int64_t next[PARTITIONS] = {0};
	struct weir_kafka_input *in = mock_input("shared", "begins", false, true);
	assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock_cluster(), 1, 500), 0);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
	enum weir_kafka_group_state at;
	assert_int_equal(weir_kafka_input_serve(in, 1, &at, NULL), WEIR_OK);
	assert_int_equal(at, WEIR_GROUP_RUNNING);
	assert_false(mock_has_said("nothing has come"));
	assert_int_equal(rd_kafka_mock_broker_set_rtt(mock_cluster(), 1, 0), 0);
	assert_true(mock_has_said(
		"table t: group begins has no offsets of 4 of 4 partitions: they are read from the earliest"));
	read_all(in, next);
	commit(in, 0, RECORDS, "1");
	commit(in, 2, RECORDS, "1");
	weir_kafka_input_close(in);

	in = mock_input("shared", "begins", false, true);
	assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
	assert_true(mock_has_said("no offsets of 2 of 4 partitions"));
	commit(in, 1, RECORDS, "1");
	commit(in, 3, RECORDS, "1");
	weir_kafka_input_close(in);

	in = mock_input("shared", "begins", false, true);
	assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
	assert_false(mock_has_said("no offsets"));
	weir_kafka_input_close(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared), cmocka_unit_test(test_errors_that_pass),
		cmocka_unit_test(test_lost),   cmocka_unit_test(test_errors_that_stay),
		cmocka_unit_test(test_rejoin), cmocka_unit_test(test_close_while_joining),
		cmocka_unit_test(test_fence),  cmocka_unit_test(test_begins),
	};
	return cmocka_run_group_tests(tests, setup, mock_teardown);
}
