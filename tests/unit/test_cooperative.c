/* test_cooperative.c: the life of a group member that moves partitions one by one, by librdkafka's mock cluster: what
 * stays goes on being read while others go, what comes is taken up at the next release, a position that is not where
 * reading stood is sought, a lost assignment comes again, and leaving at every moment of a join. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/kafka_mock.h"

enum { PARTITIONS = 4, RECORDS = 500, TURNS = 6000 };

static struct weir_kafka_input *join(const char *group)
{
	struct weir_kafka_input *in = mock_cooperative("together", group);
	assert_true(weir_kafka_input_cooperative(in));
	assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
	return in;
}

static uint32_t count(uint32_t bits)
{
	return (uint32_t)__builtin_popcount(bits);
}

static void begin_at(struct weir_kafka_input *in, const int64_t *next)
{
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		if (weir_kafka_input_owned(in, 0, p))
			assert_int_equal(sl->ops->seek(sl, p, next[p], NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
}

static void read_some(struct weir_kafka_input *in, int64_t *next, uint32_t records)
{
	uint32_t got = 0;
	for (int turns = 0; got < records; turns++) {
		assert_true(turns < TURNS);
		got += mock_read(in, next);
	}
}

/* b joins: two of a's partitions go, and then come to b; the others stay, where they were. mock_read asserts that no
 * record is skipped or comes again. */
static void test_moved(void **state)
{
	(void)state;
	int64_t a_next[PARTITIONS] = {0}, b_next[PARTITIONS];
	struct weir_kafka_input *a = join("moved");
	mock_reach(a, WEIR_GROUP_ASSIGNED);
	assert_int_equal(mock_owned(a), 15);
	begin_at(a, a_next);
	read_some(a, a_next, 100);
	struct weir_kafka_input *b = join("moved");
	enum weir_kafka_group_state at_b = WEIR_GROUP_JOINING, at_a = WEIR_GROUP_RUNNING;
	for (int turns = 0; at_a == WEIR_GROUP_RUNNING; turns++) {
		assert_true(turns < TURNS);
		(void)mock_read(a, a_next); /* goes on meanwhile */
		assert_int_equal(weir_kafka_input_serve(a, 10, &at_a, NULL), WEIR_OK);
		assert_int_equal(weir_kafka_input_serve(b, 10, &at_b, NULL), WEIR_OK);
	}
	assert_int_equal(at_a, WEIR_GROUP_REVOKED);
	assert_int_equal(mock_owned(a), 15); /* until the answer */
	assert_int_equal(weir_kafka_input_release(a, NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_state(a), WEIR_GROUP_ASSIGNED);
	uint32_t stayed = mock_owned(a);
	assert_int_equal(count(stayed), 2);
	begin_at(a, a_next);
	/* b heard of an assignment with nothing in it, or not yet; then of the rest. */
	for (int turns = 0; count(mock_owned(b)) < 2; turns++) {
		assert_true(turns < 3000);
		assert_int_equal(weir_kafka_input_serve(b, 20, &at_b, NULL), WEIR_OK);
		if (at_b == WEIR_GROUP_ASSIGNED && mock_owned(b) == 0)
			assert_int_equal(weir_kafka_input_begin(b, NULL), WEIR_OK);
		else if (at_b == WEIR_GROUP_REVOKED)
			assert_int_equal(weir_kafka_input_release(b, NULL), WEIR_OK);
		(void)mock_read(a, a_next);
	}
	assert_int_equal(mock_owned(b), 15 & ~stayed);
	memcpy(b_next, a_next, sizeof b_next);
	begin_at(b, b_next);
	for (uint32_t p = 0; p < PARTITIONS; p++) {
		const int64_t *next = stayed & 1u << p ? a_next : b_next;
		for (int turns = 0; next[p] < RECORDS; turns++) {
			assert_true(turns < TURNS);
			(void)mock_read(a, a_next);
			(void)mock_read(b, b_next);
		}
	}
	/* b leaves: its partitions come back to a. */
	weir_kafka_input_close(b);
	mock_reach(a, WEIR_GROUP_REVOKED);
	assert_int_equal(mock_owned(a), stayed);
	assert_int_equal(weir_kafka_input_release(a, NULL), WEIR_OK);
	assert_int_equal(mock_owned(a), 15);
	weir_kafka_input_close(a);
}

/* The same assignment again: what is queued comes next, and where the engine stands elsewhere it is fetched from there.
 */
static void test_again(void **state)
{
	(void)state;
	int64_t next[PARTITIONS] = {0};
	struct weir_kafka_input *in = join("again");
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	begin_at(in, next);
	read_some(in, next, 300);
	assert_int_equal(weir_kafka_input_again(in, NULL), WEIR_OK);
	begin_at(in, next);
	read_some(in, next, 300);
	assert_int_equal(weir_kafka_input_again(in, NULL), WEIR_OK);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		next[p] = p * 10;
	begin_at(in, next);
	read_some(in, next, PARTITIONS * RECORDS - 60);
	weir_kafka_input_close(in);
}

/* Only some of it is read for now, then all of it. */
static void test_later(void **state)
{
	(void)state;
	int64_t next[PARTITIONS] = {0};
	const bool some[PARTITIONS] = {true, false, true, false}, all[PARTITIONS] = {true, true, true, true};
	const bool *now = some;
	struct weir_kafka_input *in = join("later");
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	weir_kafka_input_only(in, &now);
	begin_at(in, next);
	read_some(in, next, 2 * RECORDS);
	assert_int_equal(next[1] + next[3], 0);
	assert_int_equal(weir_kafka_input_again(in, NULL), WEIR_OK);
	now = all;
	weir_kafka_input_only(in, &now);
	begin_at(in, next);
	read_some(in, next, 2 * RECORDS);
	weir_kafka_input_close(in);
}

/* The group throws us out. */
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
		begin_at(in, next);
		read_some(in, next, PARTITIONS * RECORDS);
		rd_kafka_mock_push_request_errors(mock_cluster(), MOCK_HEARTBEAT, 1, table[i]);
		mock_reach(in, WEIR_GROUP_LOST);
		assert_int_equal(weir_kafka_input_release(in, NULL), WEIR_OK);
		assert_int_equal(mock_owned(in), 0);
		mock_reach(in, WEIR_GROUP_ASSIGNED);
		begin_at(in, again);
		read_some(in, again, PARTITIONS * RECORDS);
		weir_kafka_input_close(in);
	}
}

static void test_rejoin(void **state)
{
	(void)state;
	int64_t next[PARTITIONS] = {0}, again[PARTITIONS] = {0};
	struct weir_kafka_input *in = join("rejoins");
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	begin_at(in, next);
	read_some(in, next, 100);
	assert_int_equal(weir_kafka_input_rejoin(in, NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_state(in), WEIR_GROUP_JOINING);
	mock_reach(in, WEIR_GROUP_ASSIGNED);
	assert_int_equal(mock_owned(in), 15);
	begin_at(in, again);
	read_some(in, again, PARTITIONS * RECORDS);
	weir_kafka_input_close(in);
}

static void test_close_while_joining(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
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
		mock_fill("together", PARTITIONS, RECORDS);
	return rc;
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved), cmocka_unit_test(test_again),  cmocka_unit_test(test_later),
		cmocka_unit_test(test_lost),  cmocka_unit_test(test_rejoin), cmocka_unit_test(test_close_while_joining),
	};
	return cmocka_run_group_tests(tests, setup, mock_teardown);
}

int main(void)
{
	return mock_run(run);
}
