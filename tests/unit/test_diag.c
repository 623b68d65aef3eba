/* test_diag.c: errors as a person sees them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hotpath/core/diag.h"

static void test_text_and_code(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_diag_set(&dg, WEIR_E_CONF, "no '%s'", "x"), WEIR_E_CONF);
	assert_string_equal(weir_diag_text(dg), "no 'x'");
	assert_int_equal(weir_diag_code(dg), WEIR_E_CONF);
	assert_string_equal(weir_diag_report(dg), "error: no 'x'");
	assert_int_equal(weir_diag_line(dg), 0);
	assert_int_equal(weir_diag_is_retriable(dg), 0);
	weir_diag_destroy(dg);
}

static void test_first_error_sticks(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	(void)weir_diag_set(&dg, WEIR_E_CONF, "first");
	assert_int_equal(weir_diag_set(&dg, WEIR_E_IO, "second"), WEIR_E_IO);
	assert_string_equal(weir_diag_text(dg), "first");
	assert_int_equal(weir_diag_code(dg), WEIR_E_CONF);
	weir_diag_destroy(dg);
	assert_int_equal(weir_diag_set(NULL, WEIR_E_IO, "nowhere"), WEIR_E_IO);
}

/* A place that is found later. */
static void test_file_and_place_of_a_report(void **state)
{
	(void)state;
	static const char text[] = "SELECT\n  b";
	struct weir_diag *dg = NULL;
	(void)weir_diag_set(&dg, WEIR_E_PLAN, "no b");
	assert_string_equal(weir_diag_report(dg), "error: no b");
	weir_diag_set_file(dg, NULL);
	weir_diag_set_file(dg, "q.sql");
	assert_string_equal(weir_diag_report(dg), "q.sql: error: no b");
	weir_diag_set_file(dg, "other.sql");
	weir_diag_move(dg, text, sizeof text - 1, text + 9);
	assert_string_equal(weir_diag_report(dg), "q.sql:2:3: error: no b\n    b\n    ^");
	weir_diag_destroy(dg);
	weir_diag_set_file(NULL, "q.sql");
}

static void test_null_reads(void **state)
{
	(void)state;
	assert_string_equal(weir_diag_text(NULL), "");
	assert_string_equal(weir_diag_report(NULL), "");
	assert_int_equal(weir_diag_code(NULL), WEIR_OK);
	weir_diag_mark_retriable(NULL);
	weir_diag_add_hint(NULL, "x");
	weir_diag_destroy(NULL);
}

static void test_place(void **state)
{
	(void)state;
	static const char sql[] = "SELECT 1;\nSELECT\tamout FROM t;\r\n";
	struct weir_diag *dg = NULL;
	(void)weir_diag_set_at(&dg, WEIR_E_PLAN, "q.sql", sql, sizeof sql - 1, strstr(sql, "amout"), NULL,
			       "unknown column '%s'", "amout");
	assert_int_equal(weir_diag_line(dg), 2);
	assert_int_equal(weir_diag_column(dg), 8);
	assert_string_equal(weir_diag_report(dg), "q.sql:2:8: error: unknown column 'amout'\n"
						  "  SELECT\tamout FROM t;\n"
						  "        \t^");
	weir_diag_add_hint(dg, "did you mean '%s'?", "amount");
	assert_non_null(strstr(weir_diag_report(dg), "\nhint: did you mean 'amount'?"));
	weir_diag_add_hint(dg, "another");
	assert_null(strstr(weir_diag_report(dg), "another"));
	weir_diag_destroy(dg);
}

static void test_place_at_end_and_in_a_long_line(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	(void)weir_diag_set_at(&dg, WEIR_E_PLAN, NULL, "abc", 3, NULL, NULL, "no place");
	assert_string_equal(weir_diag_report(dg), "error: no place");
	weir_diag_destroy(dg);
	dg = NULL;
	static const char text[] = "ab\n";
	(void)weir_diag_set_at(&dg, WEIR_E_PLAN, "f", text, 3, text + 3, "more", "ends");
	assert_string_equal(weir_diag_report(dg), "f:2:1: error: ends\n  \n  ^\nhint: more");
	weir_diag_destroy(dg);
	dg = NULL;
	char line[5000];
	memset(line, 'x', sizeof line);
	line[2500] = '!';
	(void)weir_diag_set_at(&dg, WEIR_E_PLAN, "f", line, sizeof line, line + 2500, NULL, "long");
	const char *report = weir_diag_report(dg);
	assert_true(strlen(report) < 700);
	assert_int_equal(weir_diag_column(dg), 2501);
	/* The caret stands under the place. */
	const char *place = strchr(report, '!'), *caret = strchr(report, '^');
	const char *line_start = strchr(report, '\n') + 1, *caret_line = strrchr(report, '\n') + 1;
	assert_int_equal(place - line_start, caret - caret_line);
	weir_diag_destroy(dg);
}

static void test_column_in_characters(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t at;
		int line, column;
	} cases[] = {{"x y", 2, 1, 3},
		     {"\xc3\xa9 \xe6\x97\xa5 y", 7, 1, 5},
		     {"\xc3\xa9\n\xf0\x9f\x98\x80y", 7, 2, 2},
		     {"\xef\xbb\xbfx y", 5, 1, 3},
		     {"\xef\xbb\xbfx", 3, 1, 1}};
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		struct weir_diag *dg = NULL;
		(void)weir_diag_set_at(&dg, WEIR_E_PLAN, "f", cases[i].text, strlen(cases[i].text),
				       cases[i].text + cases[i].at, NULL, "wrong");
		assert_int_equal(weir_diag_line(dg), cases[i].line);
		assert_int_equal(weir_diag_column(dg), cases[i].column);
		weir_diag_destroy(dg);
	}
}

static void test_one_line_of_utf8(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	(void)weir_diag_set(&dg, WEIR_E_IO, "a\nb\x1b[31m \xc3\xbc \xff end\n");
	assert_string_equal(weir_diag_text(dg), "a b [31m \xc3\xbc ? end");
	weir_diag_destroy(dg);
}

static void test_retriable(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	(void)weir_diag_set(&dg, WEIR_E_UNAVAILABLE, "no broker");
	assert_int_equal(weir_diag_is_retriable(dg), 1);
	weir_diag_destroy(dg);
	dg = NULL;
	(void)weir_diag_set(&dg, WEIR_E_IO, "x");
	weir_diag_mark_retriable(dg);
	assert_int_equal(weir_diag_is_retriable(dg), 1);
	weir_diag_destroy(dg);
}

static void test_nearest_name(void **state)
{
	(void)state;
	static const char *const names[] = {"workers", "worker.cpus", "memory.max", "commit.interval.ms", "slots"};
	size_t n = WEIR_COUNT_OF(names);
	assert_string_equal(weir_nearest_name("wokers", 6, names, n), "workers");
	assert_string_equal(weir_nearest_name("WORKERS", 7, names, n), "workers");
	assert_string_equal(weir_nearest_name("memroy.max", 10, names, n), "memory.max");
	assert_string_equal(weir_nearest_name("commit.intervall", 16, names, n), "commit.interval.ms");
	assert_null(weir_nearest_name("banana", 6, names, n));
	assert_null(weir_nearest_name("", 0, names, n));
	assert_null(weir_nearest_name("x", 1, NULL, 0));
	char giant[4096];
	memset(giant, 'w', sizeof giant);
	assert_null(weir_nearest_name(giant, sizeof giant, names, n));
	/* Not terminated: only name_bytes count. */
	assert_string_equal(weir_nearest_name("slotsXXXX", 5, names, n), "slots");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_and_code),
		cmocka_unit_test(test_first_error_sticks),
		cmocka_unit_test(test_file_and_place_of_a_report),
		cmocka_unit_test(test_null_reads),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_place_at_end_and_in_a_long_line),
		cmocka_unit_test(test_one_line_of_utf8),
		cmocka_unit_test(test_column_in_characters),
		cmocka_unit_test(test_retriable),
		cmocka_unit_test(test_nearest_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
