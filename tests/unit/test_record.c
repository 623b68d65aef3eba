/* test_record.c: bytes of changelog records: keys, frames, markers; every byte of damage is noticed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "checkpoint/record.h"

static void test_keys_go_both_ways_and_sort_by_slot(void **state)
{
	(void)state;
	uint8_t a[WEIR_RECORD_KEY_BYTES], b[WEIR_RECORD_KEY_BYTES];
	enum weir_record_kind kind;
	uint32_t slot, number, part;
	struct weir_diag *dg = NULL;
	size_t n = weir_record_key(a, WEIR_RECORD_PAGE, 7, 70000, 3);
	assert_int_equal(n, 13);
	assert_int_equal(weir_record_key_parse(a, n, &kind, &slot, &number, &part, &dg), WEIR_OK);
	assert_int_equal(kind, WEIR_RECORD_PAGE);
	assert_int_equal(slot, 7);
	assert_int_equal(number, 70000);
	assert_int_equal(part, 3);
	n = weir_record_key(b, WEIR_RECORD_PAGE, 8, 1, 0);
	assert_true(memcmp(a, b, n) < 0);
	n = weir_record_key(a, WEIR_RECORD_PACK, 1, 2, 0);
	assert_int_equal(n, 9);
	assert_int_equal(weir_record_key_parse(a, n, &kind, &slot, &number, &part, &dg), WEIR_OK);
	assert_int_equal(kind, WEIR_RECORD_PACK);
	assert_int_equal(weir_record_key(a, WEIR_RECORD_MARKER, 0, 0, 0), 1);
	assert_int_equal(weir_record_key_parse(a, 1, &kind, &slot, &number, &part, &dg), WEIR_OK);
	assert_int_equal(kind, WEIR_RECORD_MARKER);
	assert_int_equal(weir_record_key_parse(a, 2, &kind, &slot, &number, &part, &dg), WEIR_E_CORRUPT);
	weir_diag_destroy(dg);
	dg = NULL;
	assert_int_equal(weir_record_key_parse(NULL, 0, &kind, &slot, &number, &part, &dg), WEIR_E_CORRUPT);
	weir_diag_destroy(dg);
}

static void test_a_frame_opens_under_its_own_key_only(void **state)
{
	(void)state;
	uint8_t key[WEIR_RECORD_KEY_BYTES], other[WEIR_RECORD_KEY_BYTES];
	struct weir_buf b = {0};
	struct weir_diag *dg = NULL;
	uint64_t epoch, sum;
	const uint8_t *body;
	size_t bytes, n = weir_record_key(key, WEIR_RECORD_PACK, 1, 2, 0);
	uint64_t made = weir_record_frame(&b, key, n, 42, (const uint8_t *)"body", 4);
	assert_int_equal(weir_record_open(key, n, b.data, b.bytes, &epoch, &body, &bytes, &sum, &dg), WEIR_OK);
	assert_int_equal(epoch, 42);
	assert_int_equal(bytes, 4);
	assert_memory_equal(body, "body", 4);
	assert_true(sum == made);
	weir_record_key(other, WEIR_RECORD_PACK, 1, 3, 0);
	assert_int_equal(weir_record_open(other, n, b.data, b.bytes, &epoch, &body, &bytes, &sum, &dg), WEIR_E_CORRUPT);
	weir_diag_destroy(dg);
	for (size_t i = 0; i < b.bytes; i++) {
		dg = NULL;
		b.data[i] ^= 0x10;
		assert_int_not_equal(weir_record_open(key, n, b.data, b.bytes, &epoch, &body, &bytes, &sum, &dg),
				     WEIR_OK);
		weir_diag_destroy(dg);
		b.data[i] ^= 0x10;
		dg = NULL;
		assert_int_not_equal(weir_record_open(key, n, b.data, i, &epoch, &body, &bytes, &sum, &dg), WEIR_OK);
		weir_diag_destroy(dg);
	}
	weir_buf_fini(&b);
}

static void test_markers_go_both_ways_and_notice_damage(void **state)
{
	(void)state;
	struct weir_marker_input inputs[2] = {{"order.placed", 12, 3, 1234, 99, "orders", 6},
					      {"", 0, 0, 0, INT64_MIN, NULL, 0}};
	struct weir_marker_slot slots[2] = {{5, 1000, (const uint8_t *)"abc", 3},
					    {9, INT64_MIN, (const uint8_t *)"", 0}};
	struct weir_marker mk = {.epoch = 7,
				 .records = 1000000,
				 .bytes = 1,
				 .sum = 3,
				 .count = 4,
				 .inputs = inputs,
				 .input_count = 2,
				 .slots = slots,
				 .slot_count = 2};
	struct weir_marker got;
	struct weir_buf b = {0};
	struct weir_mem m = {0};
	struct weir_diag *dg = NULL;
	weir_marker_encode(&mk, &b);
	assert_int_equal(weir_marker_decode(&got, b.data, b.bytes, &m, &dg), WEIR_OK);
	assert_int_equal(got.epoch, 7);
	assert_int_equal(got.records, 1000000);
	assert_int_equal(got.sum, 3);
	assert_int_equal(got.count, 4);
	assert_int_equal(got.input_count, 2);
	assert_int_equal(got.inputs[0].topic_bytes, 12);
	assert_memory_equal(got.inputs[0].topic, "order.placed", 12);
	assert_int_equal(got.inputs[0].offset, 1234);
	assert_int_equal(got.inputs[0].table_bytes, 6);
	assert_memory_equal(got.inputs[0].table, "orders", 6);
	assert_int_equal(got.inputs[1].topic_bytes, 0);
	assert_int_equal(got.inputs[1].table_bytes, 0);
	assert_true(got.inputs[1].time == INT64_MIN);
	assert_int_equal(got.slot_count, 2);
	assert_int_equal(got.slots[0].slot, 5);
	assert_int_equal(got.slots[0].saved_bytes, 3);
	assert_memory_equal(got.slots[0].saved, "abc", 3);
	for (size_t i = 0; i < b.bytes; i++) {
		b.data[i] ^= 1;
		assert_int_equal(weir_marker_decode(&got, b.data, b.bytes, &m, &dg), WEIR_E_CORRUPT);
		weir_diag_destroy(dg);
		dg = NULL;
		b.data[i] ^= 1;
		assert_int_equal(weir_marker_decode(&got, b.data, i, &m, &dg), WEIR_E_CORRUPT);
		weir_diag_destroy(dg);
		dg = NULL;
	}
	weir_mem_fini(&m);
	weir_buf_fini(&b);
}

static void test_records_are_described_for_people(void **state)
{
	(void)state;
	uint8_t key[WEIR_RECORD_KEY_BYTES];
	struct weir_buf value = {0}, text = {0};
	size_t n = weir_record_key(key, WEIR_RECORD_PAGE, 3, 12, 1);
	weir_record_frame(&value, key, n, 9, (const uint8_t *)"12345", 5);
	struct weir_record r = {
		.key = key, .key_bytes = (uint32_t)n, .value = value.data, .value_bytes = (uint32_t)value.bytes};
	weir_record_describe(&r, &text);
	weir_buf_put_byte(&text, 0);
	assert_string_equal((char *)text.data,
			    "{\"kind\":\"page\",\"slot\":3,\"page\":12,\"part\":1,\"epoch\":9,\"bytes\":5}");
	text.bytes = 0;
	r.value = NULL;
	weir_record_describe(&r, &text);
	weir_buf_put_byte(&text, 0);
	assert_string_equal((char *)text.data,
			    "{\"kind\":\"page\",\"slot\":3,\"page\":12,\"part\":1,\"tombstone\":true}");
	weir_buf_fini(&value);
	weir_buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_go_both_ways_and_sort_by_slot),
		cmocka_unit_test(test_a_frame_opens_under_its_own_key_only),
		cmocka_unit_test(test_markers_go_both_ways_and_notice_damage),
		cmocka_unit_test(test_records_are_described_for_people),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
