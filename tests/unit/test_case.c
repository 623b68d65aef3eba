/* test_case.c: tests that users write: loading them, and the comparison with what came out: order, keys, windows on
 * keys, headers, topics nobody expects anything in. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/weir/case.h"

static void load(struct weir_suite *su, struct weir_mem *mem, const char *text)
{
	struct weir_node *root;
	struct weir_diag *dg = NULL;
	enum weir_err err = weir_document_parse(&root, mem, "t.json", text, strlen(text), &dg);
	if (err == WEIR_OK)
		err = weir_suite_load(su, mem, "t.json", root, &dg);
	if (err != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
}

static struct weir_case_result result(const char *topic, const char *key, const char *value, int64_t ts)
{
	struct weir_case_result r = {.topic = topic, .timestamp = ts};
	r.key = (struct weir_slice){key, key != NULL ? strlen(key) : 0};
	r.value = (struct weir_slice){value, value != NULL ? strlen(value) : 0};
	return r;
}

/* How many lines the comparison of test 0 prints. */
static int differences(const struct weir_suite *su, struct weir_mem *mem, struct weir_case_result *r, uint32_t count)
{
	struct weir_buf text = {0};
	bool same = weir_case_compare(&su->test[0], mem, su, r, count, &text);
	int lines = 0;
	for (size_t i = 0; i < text.bytes; i++)
		lines += text.data[i] == '\n';
	assert_int_equal(same, lines == 0);
	weir_buf_fini(&text);
	return lines;
}

#define TWO_KEYS(order)                                                                                                \
	"{\"tests\":[{\"name\":\"n\",\"order\":\"" order "\",\"inputs\":[],\"outputs\":["                              \
	"{\"topic\":\"t\",\"key\":\"a\",\"value\":{\"n\":1}},{\"topic\":\"t\",\"key\":\"a\",\"value\":{\"n\":2},"      \
	"\"timestamp\":5},"                                                                                            \
	"{\"topic\":\"t\",\"key\":\"b\",\"value\":{\"n\":3}}]}]}"

static void test_order(void **state)
{
	(void)state;
	static const char *const orders[3] = {TWO_KEYS("strict"), TWO_KEYS("per_key"), TWO_KEYS("any")};
	/* as written; keys interleaved; one key's records swapped: differences by order */
	static const int expected[3][3] = {{0, 1, 1}, {0, 0, 1}, {0, 0, 0}};
	for (int o = 0; o < 3; o++)
		for (int arrangement = 0; arrangement < 3; arrangement++) {
			struct weir_mem mem = {0};
			struct weir_suite su;
			load(&su, &mem, orders[o]);
			struct weir_case_result a1 = result("t", "a", "{\"n\":1}", 0);
			struct weir_case_result a2 = result("t", "a", "{ \"n\" : 2.0 }", 5);
			struct weir_case_result b = result("t", "b", "{\"n\":3}", 9);
			struct weir_case_result r[3][3] = {{a1, a2, b}, {b, a1, a2}, {a2, a1, b}};
			int lines = differences(&su, &mem, r[arrangement], 3);
			if ((lines != 0) != expected[o][arrangement])
				fail_msg("order %d, arrangement %d: %d lines", o, arrangement, lines);
			weir_mem_fini(&mem);
		}
}

static void test_missing_wrong_and_too_much(void **state)
{
	(void)state;
	struct weir_mem mem = {0};
	struct weir_suite su;
	load(&su, &mem, TWO_KEYS("per_key"));
	struct weir_case_result a1 = result("t", "a", "{\"n\":1}", 0);
	struct weir_case_result a2 = result("t", "a", "{\"n\":2}", 5);
	struct weir_case_result b = result("t", "b", "{\"n\":3}", 9);
	struct weir_case_result late = result("t", "a", "{\"n\":2}", 6);
	struct weir_case_result wrong = result("t", "b", "{\"n\":4}", 9);
	struct weir_case_result delete = result("t", "b", NULL, 9);
	struct weir_case_result other = result("u", "b", "{\"n\":3}", 9);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){a1, a2}, 2), 1);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){a1, a2, b, b}, 4), 1);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){a1, late, b}, 3), 2);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){a1, a2, wrong}, 3), 2);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){a1, a2, delete}, 3), 2);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){a1, a2, other}, 3), 1);
	assert_int_equal(differences(&su, &mem, NULL, 0), 3);
	weir_mem_fini(&mem);
}

/* A topic that another test of the file expects records in is watched, others are not. */
static void test_topics(void **state)
{
	(void)state;
	struct weir_mem mem = {0};
	struct weir_suite su;
	load(&su, &mem,
	     "{\"tests\":[{\"inputs\":[],\"outputs\":[]},{\"outputs\":[{\"topic\":\"t\",\"value\":null}]}]}");
	assert_int_equal(su.topic_count, 1);
	struct weir_case_result watched = result("t", NULL, NULL, 0);
	struct weir_case_result unwatched = result("u", NULL, NULL, 0);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){unwatched}, 1), 0);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){watched}, 1), 1);
	weir_mem_fini(&mem);
}

/* Where no test expects a record, none may come, in whichever topic; unless no test says anything of outputs. */
static void test_nothing_expected(void **state)
{
	(void)state;
	static const struct weir_shape shapes[] = {{.topics = "in"},
						   {.topics = "t", .is_sink = true},
						   {.topics = "t", .is_sink = true},
						   {.topics = "u", .is_sink = true}};
	struct weir_mem mem = {0};
	struct weir_suite su;
	struct weir_case_result u = result("u", NULL, NULL, 0);
	load(&su, &mem, "{\"tests\":[{\"inputs\":[]},{\"outputs\":[]}]}");
	su.shape = shapes;
	su.shape_count = WEIR_COUNT_OF(shapes);
	weir_suite_watch(&su, &mem, false);
	assert_int_equal(su.topic_count, 2);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){u}, 1), 1);
	load(&su, &mem, "{\"tests\":[{\"inputs\":[],\"late\":1}]}");
	su.shape = shapes;
	su.shape_count = WEIR_COUNT_OF(shapes);
	weir_suite_watch(&su, &mem, false);
	assert_int_equal(su.topic_count, 0);
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){u}, 1), 0);
	weir_suite_watch(&su, &mem, true);
	assert_int_equal(su.topic_count, 2);
	weir_mem_fini(&mem);
}

static void test_bytes(void **state)
{
	(void)state;
	static const struct {
		const char *json;
		const char *bytes; /* NULL: a Kafka null */
	} cases[] = {
		{"\"o-1\"", "o-1"},
		{"\"\"", ""},
		{"null", NULL},
		{"12", "12"},
		{"{ \"a\" : \"x y\\\" z\", \"b\": [1, 2.50 ] }", "{\"a\":\"x y\\\" z\",\"b\":[1,2.50]}"},
		{"true", "true"},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_mem mem = {0};
		struct weir_node *nd;
		assert_int_equal(weir_document_parse(&nd, &mem, NULL, cases[i].json, strlen(cases[i].json), NULL),
				 WEIR_OK);
		struct weir_slice s = weir_case_bytes(&mem, nd);
		assert_int_equal(s.data == NULL, cases[i].bytes == NULL);
		if (cases[i].bytes != NULL) {
			assert_int_equal(s.bytes, strlen(cases[i].bytes));
			assert_memory_equal(s.data, cases[i].bytes, s.bytes);
		}
		weir_mem_fini(&mem);
	}
}

static void ksql(struct weir_suite *su, struct weir_mem *mem, const char *outputs)
{
	static const char inputs[] = "{\"inputs\":[{\"topic\":\"i\",\"key\":\"a\",\"value\":{},\"timestamp\":0}]}";
	struct weir_node *in;
	struct weir_node *out;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_document_parse(&in, mem, NULL, inputs, sizeof inputs - 1, &dg), WEIR_OK);
	assert_int_equal(weir_document_parse(&out, mem, NULL, outputs, strlen(outputs), &dg), WEIR_OK);
	assert_int_equal(weir_suite_load_ksql(su, mem, "s.sql", in, out, &dg), WEIR_OK);
}

static void test_ksqldb_windows_and_headers(void **state)
{
	(void)state;
	struct weir_mem mem = {0};
	struct weir_suite su;
	ksql(&su, &mem,
	     "{\"outputs\":[{\"topic\":\"t\",\"key\":\"a\",\"value\":{\"N\":1},\"window\":{\"start\":10,\"end\":20,"
	     "\"type\":\"time\"}},"
	     "{\"topic\":\"t\",\"key\":\"a\",\"value\":{\"N\":2},\"window\":{\"start\":10,\"end\":15,\"type\":"
	     "\"session\"},"
	     "\"headers\":[{\"KEY\":\"h\",\"VALUE\":\"QUI=\"}]}]}");
	struct weir_case_result time = result("t", NULL, "{\"n\":1}", 3);
	struct weir_case_result session = result("t", NULL, "{\"n\":2}", 3);
	struct weir_case_result wrong = result("t", NULL, "{\"n\":2}", 3);
	time.key = (struct weir_slice){"a\0\0\0\0\0\0\0\x0a", 9};
	session.key = (struct weir_slice){"a\0\0\0\0\0\0\0\x0f\0\0\0\0\0\0\0\x0a", 17};
	wrong.key = (struct weir_slice){"a\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x0a", 17};
	session.headers = wrong.headers = (struct weir_slice){"\x02h\x04"
							      "AB",
							      5};
	session.header_count = wrong.header_count = 1;
	assert_int_equal(differences(&su, &mem, (struct weir_case_result[]){time, session}, 2), 0);
	assert_true(differences(&su, &mem, (struct weir_case_result[]){time, wrong}, 2) > 0);
	session.headers = (struct weir_slice){"\x02h\x04"
					      "AC",
					      5};
	assert_true(differences(&su, &mem, (struct weir_case_result[]){time, session}, 2) > 0);
	session.header_count = 0;
	session.headers.bytes = 0;
	assert_true(differences(&su, &mem, (struct weir_case_result[]){time, session}, 2) > 0);
	weir_mem_fini(&mem);
}

static void test_refused_files(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"{}",
		"{\"tests\":1}",
		"{\"tests\":[1]}",
		"{\"tests\":[{\"inputs\":1}]}",
		"{\"tests\":[{\"inputs\":[{}]}]}",
		"{\"tests\":[{\"output\":[]}]}",
		"{\"tests\":[{\"order\":\"loose\"}]}",
		"{\"tests\":[{\"late\":\"x\"}]}",
		"{\"tests\":[{\"inputs\":[{\"topic\":\"t\",\"timestamp\":1.5}]}]}",
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		struct weir_mem mem = {0};
		struct weir_suite su;
		struct weir_node *root;
		struct weir_diag *dg = NULL;
		assert_int_equal(weir_document_parse(&root, &mem, NULL, bad[i], strlen(bad[i]), &dg), WEIR_OK);
		if (weir_suite_load(&su, &mem, "t.json", root, &dg) != WEIR_E_CONF)
			fail_msg("accepted: %s", bad[i]);
		weir_diag_destroy(dg);
		weir_mem_fini(&mem);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_missing_wrong_and_too_much),
		cmocka_unit_test(test_topics),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_nothing_expected),
		cmocka_unit_test(test_refused_files),
		cmocka_unit_test(test_ksqldb_windows_and_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
