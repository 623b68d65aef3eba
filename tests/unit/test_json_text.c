/* test_json_text.c: unit tests of hotpath/expr/json_text.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "hotpath/expr/json_text.h"

static bool whole(const char *s, struct weir_json_text_slice *v)
{
	return weir_json_text_whole((const uint8_t *)s, strlen(s), v);
}

static void test_what_is_json(void **state)
{
	(void)state;
	static const char *const good[] = {
		"0",        "-0.5e+10", "\"\"", "\"\\u00e9\\n\"",     "true",
		" null ",   "[]",       "{}",   "[1,[2,{\"a\":[]}]]", "{\"a\":1,\"b\":{\"c\":\"}\"}}",
		"[ 1 , 2 ]"};
	static const char *const bad[] = {
		"",           " ",     "01",   "1.",      ".5",        "1e",        "-",        "+1",
		"tru",        "nul",   "\"",   "\"\\x\"", "\"\\u12\"", "\"\n\"",    "[",        "]",
		"[1",         "[1,]",  "[,1]", "[1 2]",   "{",         "{\"a\"}",   "{\"a\":}", "{a:1}",
		"{\"a\":1,}", "{1:2}", "[}",   "{]",      "1 1",       "{\"a\":1]", "[1}"};
	struct weir_json_text_slice v;
	for (size_t i = 0; i < WEIR_COUNT_OF(good); i++)
		if (!whole(good[i], &v))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++)
		if (whole(bad[i], &v))
			fail_msg("taken: %s", bad[i]);
}

/* Every prefix of a document is refused, and nothing beyond it is read (the copies are exact). */
static void test_prefixes(void **state)
{
	(void)state;
	static const char text[] = "{\"a\":[1.5e3,\"x\\u0041\",true,null,{\"b\":{}}]}";
	struct weir_json_text_slice v;
	for (size_t n = 0; n < sizeof text - 1; n++) {
		uint8_t *copy = malloc(n + 1);
		memcpy(copy, text, n);
		assert_false(weir_json_text_whole(copy, n, &v));
		free(copy);
	}
	assert_true(whole(text, &v));
}

static void test_depth(void **state)
{
	(void)state;
	char text[2 * WEIR_JSON_TEXT_DEPTH_MAX + 3];
	struct weir_json_text_slice v;
	for (size_t depth = WEIR_JSON_TEXT_DEPTH_MAX; depth <= WEIR_JSON_TEXT_DEPTH_MAX + 1; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		text[2 * depth] = 0;
		assert_int_equal(whole(text, &v), depth <= WEIR_JSON_TEXT_DEPTH_MAX);
	}
}

static void test_paths(void **state)
{
	(void)state;
	struct weir_json_text_slice v, x;
	assert_true(whole(" {\"a\" : [10, {\"b\\u0063\": \"t\"}], \"a\\n\": 2, \"z\": 1, \"z\": 3 } ", &v));
	assert_int_equal(v.form, WEIR_JSON_TEXT_OBJECT);
	assert_int_equal(weir_json_text_count(&v), 4);
	assert_true(weir_json_text_member(&v, "z", 1, &x)); /* the last wins */
	assert_memory_equal(x.data, "3", x.bytes);
	assert_true(weir_json_text_member(&v, "a\n", 2, &x));
	assert_memory_equal(x.data, "2", x.bytes);
	assert_false(weir_json_text_member(&v, "b", 1, &x));
	assert_true(weir_json_text_member(&v, "a", 1, &v)); /* into itself */
	assert_int_equal(weir_json_text_count(&v), 2);
	assert_false(weir_json_text_element(&v, 2, &x));
	assert_false(weir_json_text_element(&v, -1, &x));
	assert_true(weir_json_text_element(&v, 1, &v));
	assert_true(weir_json_text_member(&v, "bc", 2, &v));
	assert_int_equal(v.form, WEIR_JSON_TEXT_STRING);
	assert_false(weir_json_text_member(&v, "x", 1, &x));
	assert_int_equal(weir_json_text_count(&v), 0);
}

static void test_text_of_strings(void **state)
{
	(void)state;
	struct weir_json_text_slice v;
	uint8_t text[64];
	assert_true(whole("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20ac\\ud83d\\ude00\\ud83d!\"", &v));
	assert_false(weir_json_text_is_plain(&v));
	uint32_t n = weir_json_text_unescape(&v, text);
	static const char want[] = "a\"\\/\b\f\n\r\té€😀\xef\xbf\xbd!";
	assert_int_equal(n, sizeof want - 1);
	assert_memory_equal(text, want, n);
	assert_true(whole("{ \"a b\" : [ 1 , \" \\\" \" ] }", &v));
	n = weir_json_text_compact(&v, text);
	static const char compact[] = "{\"a b\":[1,\" \\\" \"]}";
	assert_int_equal(n, sizeof compact - 1);
	assert_memory_equal(text, compact, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_json),    cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_depth),           cmocka_unit_test(test_paths),
		cmocka_unit_test(test_text_of_strings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
