/* test_held.c: records of the transactions' log, in both of their versions, whole and cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/kafka/held.h"

/* 0000, "app-1" */
static const char key[] = "\0\0\0\5app-1";

/* Version 0: producer 7, epoch 2, 60 s, status, topics {"in": 0 3} {"out": 3}, changed 9, begun 5. */
#define VALUE_0(status)                                                                                                \
	"\0\0"                                                                                                         \
	"\0\0\0\0\0\0\0\7"                                                                                             \
	"\0\2"                                                                                                         \
	"\0\0\xea\x60" status "\0\0\0\2"                                                                               \
	"\0\2in\0\0\0\2\0\0\0\0\0\0\0\3"                                                                               \
	"\0\3out\0\0\0\1\0\0\0\3"                                                                                      \
	"\0\0\0\0\0\0\0\x9"                                                                                            \
	"\0\0\0\0\0\0\0\5"
/* Version 1: the same with varints and tags, one of them (0, 8 bytes) carrying a producer before. */
#define VALUE_1(status)                                                                                                \
	"\0\1"                                                                                                         \
	"\0\0\0\0\0\0\0\7"                                                                                             \
	"\0\2"                                                                                                         \
	"\0\0\xea\x60" status "\3"                                                                                     \
	"\3in\3\0\0\0\0\0\0\0\3\0"                                                                                     \
	"\4out\2\0\0\0\3\0"                                                                                            \
	"\0\0\0\0\0\0\0\x9"                                                                                            \
	"\0\0\0\0\0\0\0\5"                                                                                             \
	"\1\0\x8\0\0\0\0\0\0\0\6"

static bool parse(const char *value, size_t bytes, const char *topic, uint32_t partition, struct weir_kafka_holder *h,
		  bool *open)
{
	return weir_kafka_held_parse(key, sizeof key - 1, value, bytes, topic, partition, h, open);
}

static void test_both_versions(void **state)
{
	static const char ongoing[2][90] = {VALUE_0("\1"), VALUE_1("\1")};
	static const size_t bytes[2] = {sizeof VALUE_0("\1") - 1, sizeof VALUE_1("\1") - 1};
	struct weir_kafka_holder h;
	bool open;
	(void)state;
	for (int v = 0; v < 2; v++) {
		assert_true(parse(ongoing[v], bytes[v], "in", 3, &h, &open));
		assert_true(open);
		assert_string_equal(h.id, "app-1");
		assert_int_equal(h.producer_id, 7);
		assert_int_equal(h.timeout_ms, 60000);
		assert_int_equal(h.since_ms, 5);
		assert_true(parse(ongoing[v], bytes[v], "out", 3, &h, &open));
		assert_true(open);
		assert_true(parse(ongoing[v], bytes[v], "in", 1, &h, &open));
		assert_false(open);
		assert_true(parse(ongoing[v], bytes[v], "i", 0, &h, &open));
		assert_false(open);
		assert_true(parse(ongoing[v], bytes[v], "input", 0, &h, &open));
		assert_false(open);
	}
}

/* Empty, complete and dead ones hold nothing back; those whose markers are being written do. */
static void test_status(void **state)
{
	char value[] = VALUE_0("\0");
	struct weir_kafka_holder h;
	bool open;
	(void)state;
	for (char status = 0; status < 8; status++) {
		value[16] = status;
		assert_true(parse(value, sizeof value - 1, "in", 3, &h, &open));
		assert_int_equal(open, status >= 1 && status <= 3);
	}
}

/* Whatever is missing, nothing is read behind the end, and nothing is believed. */
static void test_cut_off(void **state)
{
	static const char ongoing[2][90] = {VALUE_0("\1"), VALUE_1("\1")};
	static const size_t bytes[2] = {sizeof VALUE_0("\1") - 1, sizeof VALUE_1("\1") - 1 - 11};
	struct weir_kafka_holder h;
	bool open;
	(void)state;
	for (int v = 0; v < 2; v++) {
		for (size_t n = 0; n < bytes[v]; n++) {
			char *copy = test_malloc(n + 1); /* its end is watched */
			memcpy(copy, ongoing[v], n);
			assert_false(parse(copy, n, "in", 3, &h, &open));
			test_free(copy);
		}
	}
	for (size_t n = 0; n < sizeof key - 1; n++)
		assert_false(weir_kafka_held_parse(key, n, ongoing[0], bytes[0], "in", 3, &h, &open));
	char huge[] = VALUE_0("\1");
	huge[17] = 0x7f; /* two thousand million topics */
	assert_false(parse(huge, sizeof huge - 1, "in", 3, &h, &open));
	char later[] = VALUE_0("\1");
	later[1] = 2;
	assert_false(parse(later, sizeof later - 1, "in", 3, &h, &open));
}

static void test_forgotten(void **state)
{
	struct weir_kafka_holder h;
	bool open = true;
	(void)state;
	assert_true(weir_kafka_held_parse(key, sizeof key - 1, NULL, 0, "in", 3, &h, &open));
	assert_false(open);
	assert_string_equal(h.id, "app-1");
}

static void test_text(void **state)
{
	struct weir_kafka_holder h = {"app-1", 7, 1767225600000, 60000};
	char text[WEIR_KAFKA_HELD_TEXT];
	(void)state;
	weir_kafka_held_text(&h, text, sizeof text);
	assert_string_equal(text, "the unfinished transaction of app-1 (producer 7, begun 2026-01-01 00:00:00 UTC, "
				  "time-out 60 s)");
	h.id[0] = '\0';
	weir_kafka_held_text(&h, text, sizeof text);
	assert_non_null(strstr(text, "__transaction_state"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_versions), cmocka_unit_test(test_status), cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_forgotten),     cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
