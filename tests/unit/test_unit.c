/* test_unit.c: messages as units of records: every byte of every record, nulls and empty values apart, the pad behind
 * each readable; units that were not taken when reading ends. By librdkafka's mock cluster. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/kafka_mock.h"

enum { PARTITIONS = 3, RECORDS = 6000 };

static void begin(struct weir_kafka_input *in)
{
	assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
	assert_int_equal(weir_kafka_input_state(in), WEIR_GROUP_ASSIGNED);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
}

static void test_every_byte(void **state)
{
	(void)state;
	struct weir_kafka_input *in = mock_input("bytes", "g", false, true);
	int64_t next[PARTITIONS] = {0}, ts;
	uint32_t records = 0;
	begin(in);
	while (records < PARTITIONS * RECORDS)
		records += mock_read(in, next);
	assert_int_equal(records, PARTITIONS * RECORDS);
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		assert_int_equal(sl->ops->peek(sl, p, &ts, NULL), WEIR_POLL_BOUND);
	weir_kafka_input_close(in);
}

/* Messages that live keep librdkafka's handle from being destroyed: closing gives them all back. */
static void test_close_with_units_out(void **state)
{
	(void)state;
	struct weir_kafka_input *in = mock_input("bytes", "g", false, false);
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	struct weir_unit *u = NULL;
	begin(in);
	for (int64_t ts; u == NULL;) {
		enum weir_kafka_group_state at;
		assert_int_equal(weir_kafka_input_serve(in, 20, &at, NULL), WEIR_OK);
		for (uint32_t p = 0; u == NULL && p < PARTITIONS; p++)
			if (sl->ops->peek(sl, p, &ts, NULL) == WEIR_POLL_UNIT)
				assert_int_equal(sl->ops->take(sl, p, &u, NULL), WEIR_OK);
	}
	assert_true(u->count > 0 && u->bytes > 0 && u->memory > u->bytes);
	assert_int_equal(u->next_offset, u->records[u->count - 1].offset + 1);
	weir_kafka_input_close(in);
}

static void test_seek_and_range(void **state)
{
	(void)state;
	struct weir_kafka_input *in = mock_input("bytes", "g", false, true);
	struct weir_stream_log *sl = weir_kafka_input_stream(in, 0);
	struct weir_diag *dg = NULL;
	int64_t first, end, next[PARTITIONS] = {0, 4000, RECORDS};
	uint32_t number = 9, records = 0;
	assert_int_equal(sl->ops->partitions(sl), PARTITIONS);
	assert_string_equal(sl->ops->topic(sl, 2, &number), "bytes");
	assert_int_equal(number, 2);
	sl->ops->range(sl, 1, &first, &end);
	assert_int_equal(first, 0);
	assert_int_equal(end, RECORDS);
	assert_int_equal(weir_kafka_input_join(in, NULL), WEIR_OK);
	assert_int_equal(sl->ops->seek(sl, 0, WEIR_START_FIRST, &dg), WEIR_OK);
	assert_int_equal(sl->ops->seek(sl, 1, 4000, &dg), WEIR_OK);
	assert_int_equal(sl->ops->seek(sl, 2, RECORDS, &dg), WEIR_OK);
	assert_int_equal(sl->ops->seek(sl, 2, RECORDS + 1, &dg), WEIR_E_IO);
	assert_non_null(strstr(weir_diag_text(dg), "topic bytes, partition 2 cannot be read from offset 6001"));
	weir_diag_destroy(dg);
	sl->ops->range(sl, 1, &first, &end);
	assert_int_equal(first, 4000);
	assert_int_equal(weir_kafka_input_begin(in, NULL), WEIR_OK);
	while (records < RECORDS + 2000)
		records += mock_read(in, next);
	assert_int_equal(next[1], RECORDS);
	weir_kafka_input_close(in);
}

static int setup(void **state)
{
	int rc = mock_setup(state);
	if (rc == 0)
		mock_fill("bytes", PARTITIONS, RECORDS);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_close_with_units_out),
		cmocka_unit_test(test_seek_and_range),
	};
	return cmocka_run_group_tests(tests, setup, mock_teardown);
}
