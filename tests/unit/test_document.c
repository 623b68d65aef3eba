/* test_document.c: JSON that keeps its text: parsing, errors with their place, and what counts as equal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/weir/document.h"

static struct weir_node *parse(struct weir_mem *mem, const char *text)
{
	struct weir_node *nd = NULL;
	struct weir_diag *dg = NULL;
	enum weir_err err = weir_document_parse(&nd, mem, "t.json", text, strlen(text), &dg);
	if (err != WEIR_OK)
		fail_msg("%s: %s", text, weir_diag_text(dg));
	return nd;
}

static void test_values_keep_their_text(void **state)
{
	(void)state;
	struct weir_mem mem = {0};
	struct weir_node *nd = parse(
		&mem, " {\"a\": 10.50, \"b\": [1, -2e3, null], \"c\": \"x\\n\\u00e9\\ud83d\\ude00\", \"a\": true} ");
	assert_int_equal(nd->kind, WEIR_NODE_OBJECT);
	assert_int_equal(nd->count, 4);
	assert_int_equal(weir_node_get(nd, "a")->kind, WEIR_NODE_TRUE); /* the last of several */
	assert_int_equal(nd->first->bytes, 5);
	assert_memory_equal(nd->first->text, "10.50", 5);
	struct weir_node *b = weir_node_get(nd, "b");
	assert_int_equal(b->count, 3);
	assert_memory_equal(b->first->next->text, "-2e3", 4);
	assert_int_equal(b->first->next->next->kind, WEIR_NODE_NULL);
	assert_string_equal(weir_node_get(nd, "c")->string, "x\n\xc3\xa9\xf0\x9f\x98\x80");
	assert_null(weir_node_get(nd, "d"));
	assert_null(weir_node_get(b, "a"));
	weir_mem_fini(&mem);
}

static void test_malformed(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"{",
		"[1",
		"{\"a\"}",
		"{\"a\":}",
		"{a:1}",
		"[1,]",
		"{\"a\":1,}",
		"nul",
		"01",
		"+1",
		"1.2.3",
		"\"",
		"\"\\x\"",
		"\"\\ud800\"",
		"\"\\ud800\\u0041\"",
		"\"\t\"",
		"\"\xff\"",
		"[1] 2",
		"-",
		"\"\\u12g4\"",
		"\"\\udc00\"",
		"tru",
		"[1 2]",
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		struct weir_mem mem = {0};
		struct weir_node *nd = NULL;
		struct weir_diag *dg = NULL;
		if (weir_document_parse(&nd, &mem, "t.json", bad[i], strlen(bad[i]), &dg) != WEIR_E_CONF)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(weir_diag_line(dg), 1);
		weir_diag_destroy(dg);
		weir_mem_fini(&mem);
	}
}

static void test_depth_has_a_bound(void **state)
{
	(void)state;
	char text[4096];
	struct weir_mem mem = {0};
	struct weir_node *nd = NULL;
	struct weir_diag *dg = NULL;
	memset(text, '[', sizeof text);
	assert_int_equal(weir_document_parse(&nd, &mem, NULL, text, sizeof text, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "nested too deep"));
	weir_diag_destroy(dg);
	weir_mem_fini(&mem);
}

static void test_place_of_an_error(void **state)
{
	(void)state;
	static const char text[] = "{\n  \"a\": 1,\n  \"b\" 2\n}";
	struct weir_mem mem = {0};
	struct weir_node *nd = NULL;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_document_parse(&nd, &mem, "t.json", text, sizeof text - 1, &dg), WEIR_E_CONF);
	assert_int_equal(weir_diag_line(dg), 3);
	assert_int_equal(weir_diag_column(dg), 7);
	weir_diag_destroy(dg);
	weir_mem_fini(&mem);
}

static bool equal(const char *a, const char *b, unsigned flags)
{
	struct weir_mem mem = {0};
	bool same = weir_node_equal(parse(&mem, a), parse(&mem, b), flags);
	weir_mem_fini(&mem);
	return same;
}

static void test_equal(void **state)
{
	(void)state;
	assert_true(equal("1.50", "1.5", 0));
	assert_true(equal("1e3", "1000", 0));
	assert_true(equal("0.3", "0.3000000000000001", 0));
	assert_false(equal("1.50", "1.51", 0));
	assert_false(equal("9007199254740993", "9007199254740992", 0)); /* equal as doubles */
	assert_false(equal("123456789012345678901234567890123456.01", "\"x\"", 0));
	assert_false(equal("1000000000.01", "1000000000.02", 0));
	assert_true(equal("{\"a\":1,\"b\":[2,{\"c\":null}]}", "{\"b\":[2,{\"c\":null}],\"a\":1}", 0));
	assert_false(equal("{\"a\":1}", "{\"a\":1,\"b\":2}", 0));
	assert_false(equal("{\"a\":1,\"b\":2}", "{\"a\":1}", 0));
	assert_false(equal("[1,2]", "[2,1]", 0));
	assert_false(equal("[1,2]", "[1]", 0));
	assert_false(equal("\"1\"", "1", 0));
	assert_false(equal("true", "false", 0));
	assert_true(equal("\"\\u0041\"", "\"A\"", 0));
}

static void test_equal_as_ksqldb_compares(void **state)
{
	(void)state;
	assert_false(equal("{\"COUNT\":1}", "{\"count\":1}", 0));
	assert_true(equal("{\"COUNT\":1}", "{\"count\":1}", WEIR_EQUAL_ANY_CASE));
	assert_false(equal("{\"a\":1,\"b\":null}", "{\"a\":1}", WEIR_EQUAL_ANY_CASE));
	assert_true(equal("{\"a\":1,\"b\":null}", "{\"a\":1}", WEIR_EQUAL_NULL_ABSENT));
	assert_true(equal("{\"a\":1}", "{\"a\":1,\"b\":null}", WEIR_EQUAL_NULL_ABSENT));
	assert_false(equal("{\"a\":1,\"b\":0}", "{\"a\":1}", WEIR_EQUAL_NULL_ABSENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_keep_their_text),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_depth_has_a_bound),
		cmocka_unit_test(test_place_of_an_error),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_equal_as_ksqldb_compares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
