/* test_parse.c: the grammar: precedence, special forms, types, intervals, depth limits. Trees are compared as they
 * print. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/expr/ast.h"

#define TEXT_MAX (4 * 1024 * 1024)

struct parsed {
	struct weir_mem m;
	struct weir_tokens ts;
	struct weir_diag *dg;
	struct weir_ast *ast;
	enum weir_err err;
};

static void parse(struct parsed *x, const char *text)
{
	memset(x, 0, sizeof *x);
	weir_mem_init(&x->m, 0);
	x->err = weir_tokens_init(&x->ts, &x->m, NULL, text, strlen(text), TEXT_MAX, &x->dg);
	if (x->err == WEIR_OK)
		x->err = weir_expr_parse(&x->ts, &x->m, &x->ast, &x->dg);
}

static void done(struct parsed *x)
{
	weir_diag_destroy(x->dg);
	weir_mem_fini(&x->m);
}

static void expect(const char *text, const char *want)
{
	struct parsed x;
	struct weir_buf out = {0};
	parse(&x, text);
	if (x.err != WEIR_OK)
		fail_msg("%s: %s", text, weir_diag_report(x.dg));
	weir_ast_print(x.ast, &out);
	weir_buf_put_byte(&out, 0);
	assert_string_equal((char *)out.data, want);
	assert_int_equal(x.ast->end, x.ts.next);
	weir_buf_fini(&out);
	done(&x);
}

static void expect_error(const char *text, int column, const char *part)
{
	struct parsed x;
	parse(&x, text);
	if (x.err != WEIR_E_PLAN)
		fail_msg("no error: %s", text);
	if (strstr(weir_diag_report(x.dg), part) == NULL || weir_diag_column(x.dg) != column)
		fail_msg("%d '%s' is not in: %s", column, part, weir_diag_report(x.dg));
	done(&x);
}

static void test_precedence(void **state)
{
	(void)state;
	expect("a + b * c", "(a + (b * c))");
	expect("a * b + c", "((a * b) + c)");
	expect("a - b - c", "((a - b) - c)");
	expect("a || b || c", "((a || b) || c)");
	expect("a OR b AND c", "(a OR (b AND c))");
	expect("(a OR b) AND c", "((a OR b) AND c)");
	expect("a AND b AND c", "(a AND b AND c)");
	expect("NOT a = b AND c", "((NOT (a = b)) AND c)");
	expect("NOT a IS NULL", "(NOT (a IS NULL))");
	expect("a = b IS TRUE", "((a = b) IS TRUE)");
	expect("a + 1 BETWEEN b AND c AND d", "(((a + 1) BETWEEN b AND c) AND d)");
	expect("a NOT IN (1, 2) OR b NOT LIKE 'x%' ESCAPE '!'", "((a NOT IN (1, 2)) OR (b NOT LIKE 'x%' ESCAPE '!'))");
	expect("a <> b != c", "((a <> b) <> c)");
	expect("-a * -1 + +b", "(((-a) * -1) + b)");
	expect("- 2.5", "-2.5");
	expect("a % 2 = 0", "((a % 2) = 0)");
	expect("a IS NOT DISTINCT FROM b + 1", "(a IS NOT DISTINCT FROM (b + 1))");
	expect("a IS NULL IS NOT UNKNOWN", "((a IS NULL) IS NOT UNKNOWN)");
}

static void test_names_and_paths(void **state)
{
	(void)state;
	expect("a.b.c", "a.b.c");
	expect("`a.b` + a.b", "(`a.b` + a.b)");
	expect("u.`X-Meta-Client`", "u.`X-Meta-Client`");
	expect("`from`", "`from`");
	expect("m['k'][1].x", "m['k'][1].x");
	expect("f(a).b", "F(a).b");
	expect("left(a, 2) || right(b, 1)", "(LEFT(a, 2) || RIGHT(b, 1))");
	expect("t.*", "t.*");
	expect("*", "*");
	struct parsed x;
	parse(&x, "u.X-Meta-Client");
	assert_int_equal(x.err, WEIR_OK); /* a subtraction: unknown columns when it is bound */
	assert_int_equal(x.ast->kind, WEIR_AST_CALL);
	done(&x);
}

static void test_special_forms(void **state)
{
	(void)state;
	expect("CASE WHEN a THEN 1 ELSE 2 END", "CASE WHEN a THEN 1 ELSE 2 END");
	expect("CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", "CASE WHEN (x = 1) THEN 'a' WHEN (x = 2) THEN 'b' END");
	expect("CAST(a AS DECIMAL(12, 2)) + TRY_CAST(b AS INT)", "(CAST(a AS DECIMAL(12, 2)) + TRY_CAST(b AS INT))");
	expect("EXTRACT(HOUR FROM t)", "EXTRACT(HOUR FROM t)");
	expect("FLOOR(t TO minute)", "FLOOR(t TO MINUTE)");
	expect("CEILING(x)", "CEIL(x)");
	expect("TIMESTAMPADD(DAY, 3, t)", "TIMESTAMPADD(DAY, 3, t)");
	expect("TIMESTAMPDIFF(SQL_TSI_SECOND, a, b)", "TIMESTAMPDIFF(SECOND, a, b)");
	expect("TRIM(a)", "TRIM(a)");
	expect("TRIM(BOTH 'x' FROM a)", "TRIM(a, 'x')");
	expect("TRIM(LEADING FROM a)", "LTRIM(a)");
	expect("TRIM(TRAILING 'x' FROM a)", "RTRIM(a, 'x')");
	expect("POSITION('b' IN a)", "POSITION('b', a)");
	expect("SUBSTRING(a FROM 2 FOR 3)", "SUBSTRING(a, 2, 3)");
	expect("OVERLAY(a PLACING 'x' FROM 1 FOR 2)", "OVERLAY(a, 'x', 1, 2)");
	expect("COUNT(*)", "COUNT(*)");
	expect("COUNT(DISTINCT a) FILTER (WHERE b > 1)", "COUNT(DISTINCT a) FILTER (WHERE (b > 1))");
	expect("LAG(a, 1) OVER (PARTITION BY b, c + 1 ORDER BY t)",
	       "LAG(a, 1) OVER (PARTITION BY b, (c + 1) ORDER BY t)");
	expect("SUM(a) OVER w + 1", "(SUM(a) OVER w + 1)");
	expect("SUM(a) OVER (ORDER BY t ASC ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
	       "SUM(a) OVER (ORDER BY t ROWS 2 PRECEDING)");
	expect("SUM(a) OVER (ORDER BY t RANGE INTERVAL '1' MINUTE PRECEDING)",
	       "SUM(a) OVER (ORDER BY t RANGE INTERVAL '60000' MILLISECOND PRECEDING)");
	expect("SUM(a) OVER (ORDER BY t RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
	       "SUM(a) OVER (ORDER BY t RANGE UNBOUNDED PRECEDING)");
	expect("SUM(a) OVER ()", "SUM(a) OVER ()");
	expect("SUM(ALL a)", "SUM(a)");
	expect("JSON_VALUE(a, '$.b' RETURNING BIGINT NULL ON ERROR)", "TRY_CAST(JSON_VALUE(a, '$.b') AS BIGINT)");
	expect("DATE '2026-01-31'", "DATE '2026-01-31'");
	expect("TIMESTAMP '2026-01-31 01:02:03.5'", "TIMESTAMP '2026-01-31 01:02:03.5'");
	expect("date + 1", "(date + 1)");
	expect("X'0aff'", "X'0aff'");
}

static void test_intervals(void **state)
{
	(void)state;
	expect("INTERVAL '5' MINUTE", "INTERVAL '300000' MILLISECOND");
	expect("INTERVAL '5' MINUTES", "INTERVAL '300000' MILLISECOND");
	expect("INTERVAL - '5' SECOND", "INTERVAL '-5000' MILLISECOND");
	expect("INTERVAL '-5' SECOND(3)", "INTERVAL '-5000' MILLISECOND");
	expect("INTERVAL '1.25' SECOND", "INTERVAL '1250' MILLISECOND");
	expect("INTERVAL '1 02:03:04.005' DAY TO SECOND", "INTERVAL '93784005' MILLISECOND");
	expect("INTERVAL '90:30' MINUTE TO SECOND", "INTERVAL '5430000' MILLISECOND");
	expect("INTERVAL '2 12' DAY TO HOUR", "INTERVAL '216000000' MILLISECOND");
	expect("INTERVAL '3' MONTH", "INTERVAL '3' MONTH");
	expect("INTERVAL '1-11' YEAR TO MONTH", "INTERVAL '23' MONTH");
	expect("INTERVAL '5 seconds'", "INTERVAL '5000' MILLISECOND");
	expect("INTERVAL '1 hour 30 min 5s'", "INTERVAL '5405000' MILLISECOND");
	expect_error("INTERVAL 5 MINUTE", 10, "string");
	expect_error("INTERVAL '5'", 13, "expected a unit");
	expect_error("INTERVAL '1:60' MINUTE TO SECOND", 10, "is not an INTERVAL");
	expect_error("INTERVAL '1-12' YEAR TO MONTH", 10, "is not an INTERVAL");
	expect_error("INTERVAL '5x' MINUTE", 10, "is not an INTERVAL");
	expect_error("INTERVAL '1.0005' SECOND", 10, "is not an INTERVAL");
	expect_error("INTERVAL '99999999999999999999' DAY", 10, "is not an INTERVAL");
	expect_error("INTERVAL '5' SECOND TO DAY", 24, "cannot go from SECOND");
}

static void test_errors(void **state)
{
	(void)state;
	expect_error("a +", 4, "expected an expression, found the end of the text");
	expect_error("(a + b", 7, "expected )");
	expect_error("a = FROM", 5, "expected an expression, found 'FROM'");
	expect_error("CASE a END", 8, "expected WHEN");
	expect_error("CASE WHEN a THEN 1", 19, "expected END");
	expect_error("a IS 5", 6, "after IS");
	expect_error("a BETWEEN 1 OR 2", 13, "expected AND");
	expect_error("CAST(a AS NUMBER)", 11, "unknown type NUMBER");
	expect_error("CAST(a AS STRIN)", 11, "did you mean STRING?");
	expect_error("CAST(a AS DECIMAL(39, 0))", 19, "1 to 38 digits");
	expect_error("CAST(a AS DECIMAL(5, 6))", 22, "scale");
	expect_error("CAST(a AS TIMESTAMP(9))", 21, "from 0 to 6");
	expect_error("a IN (SELECT 1)", 7, "a sub-select cannot stand here");
	expect_error("(SELECT 1)", 2, "not supported yet: a sub-query");
	expect_error("COUNT(*) OVER (ORDER BY a ROWS 1 FOLLOWING)", 34, "not supported: FOLLOWING");
	expect_error("COUNT(*) OVER (ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)", 45, "does not end with its row");
	expect_error("COUNT(*) OVER (RANGE 5 PRECEDING)", 22, "expected an INTERVAL");
	expect_error("COUNT(*) OVER (RANGE INTERVAL '1' MONTH PRECEDING)", 22, "months or years");
	expect_error("a SIMILAR TO 'x'", 3, "REGEXP");
	expect_error("EXTRACT(a FROM b)", 9, "time unit");
	expect_error("ARRAY[1]", 1, "not supported yet");
}

static void test_stops_where_it_cannot_go_on(void **state)
{
	(void)state;
	struct parsed x;
	parse(&x, "a + 1 AS b, c");
	assert_int_equal(x.err, WEIR_OK);
	assert_true(weir_token_is(&x.ts, "AS"));
	done(&x);
	parse(&x, "a FROM t");
	assert_true(weir_token_is(&x.ts, "FROM"));
	done(&x);
	parse(&x, "a NOT NULL");
	assert_true(weir_token_is(&x.ts, "NOT"));
	done(&x);
}

static void expect_type(const char *text, const char *want)
{
	struct parsed x;
	struct weir_type t;
	char buf[256];
	memset(&x, 0, sizeof x);
	assert_int_equal(weir_tokens_init(&x.ts, &x.m, NULL, text, strlen(text), 0, &x.dg), WEIR_OK);
	assert_int_equal(weir_type_parse(&x.ts, &x.m, &t, &x.dg), WEIR_OK);
	assert_string_equal(weir_type_text(&t, buf, sizeof buf), want);
	assert_int_equal(weir_token_peek(&x.ts, 0)->kind, WEIR_TOK_END);
	done(&x);
}

static void test_types(void **state)
{
	(void)state;
	expect_type("string", "STRING");
	expect_type("VARCHAR(20) NOT NULL", "VARCHAR(20) NOT NULL");
	expect_type("varchar", "VARCHAR(1)");
	expect_type("CHAR(3)", "CHAR(3)");
	expect_type("DECIMAL", "DECIMAL(10, 0)");
	expect_type("NUMERIC(38,10)", "DECIMAL(38, 10)");
	expect_type("INTEGER NULL", "INT");
	expect_type("DOUBLE PRECISION", "DOUBLE");
	expect_type("TIMESTAMP", "TIMESTAMP(6)");
	expect_type("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)");
	expect_type("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)");
	expect_type("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(3)");
	expect_type("TIME", "TIME(0)");
	expect_type("ARRAY<ROW<a INT, b MAP<STRING, ARRAY<BIGINT>>>>",
		    "ARRAY<ROW<a INT, b MAP<STRING, ARRAY<BIGINT>>>>");
	expect_type("ROW(`x y` DATE, z BYTES 'comment')", "ROW<x y DATE, z BYTES>");
}

static void test_equality(void **state)
{
	(void)state;
	struct parsed x, y, z;
	parse(&x, "SUM(a + 1) > 3");
	parse(&y, "sum(a  + 1) > 3 ");
	parse(&z, "SUM(A + 1) > 3");
	assert_true(weir_ast_equal(x.ast, y.ast));
	assert_false(weir_ast_equal(x.ast, z.ast));
	done(&y);
	done(&z);
	parse(&y, "SUM(DISTINCT a + 1) > 3");
	parse(&z, "SUM(a + 1) FILTER (WHERE b) > 3");
	assert_false(weir_ast_equal(x.ast, y.ast));
	assert_false(weir_ast_equal(x.ast, z.ast));
	done(&x);
	done(&y);
	done(&z);
}

/* text: n times open, then core, then n times close. */
static char *nested(const char *open, const char *core, const char *close, int n)
{
	size_t a = strlen(open), b = strlen(core), c = strlen(close);
	char *s = malloc((a + c) * (size_t)n + b + 1), *p = s;
	for (int i = 0; i < n; i++, p += a)
		memcpy(p, open, a);
	memcpy(p, core, b);
	p += b;
	for (int i = 0; i < n; i++, p += c)
		memcpy(p, close, c);
	*p = 0;
	return s;
}

/* What opens and closes a level, 50,000 times. */
static const char *const deep[][3] = {
	{"(", "1", ")"},
	{"CASE WHEN ", "a", " THEN 1 END"},
	{"NOT ", "a", ""},
	{"- ", "a", ""},
	{"f(", "a", ")"},
	{"CAST(", "a", " AS INT)"},
	{"a IN (", "1", ")"},
	{"a[", "1", "]"},
	{"POSITION(", "1", " IN a)"},
	{"a = -b + NOT ", "a", ""},
	{"COUNT(*) FILTER (WHERE ", "1", ")"},
	{"CAST(a AS ", "INT", ")"},
};

/* Runs on a thread with a small stack; asserts belong to the main thread, so this only writes down what it saw. */
static void *parse_deep_texts(void *arg)
{
	char(*seen)[200] = arg;
	for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
		struct parsed x;
		bool type = strstr(deep[i][0], " AS ") != NULL;
		char *inner = nested(type ? "ARRAY<" : deep[i][0], deep[i][1], type ? ">" : deep[i][2], 50000);
		char *s = type ? nested(deep[i][0], inner, deep[i][2], 1) : inner;
		parse(&x, s);
		snprintf(seen[i], sizeof seen[i], "%d %d:%s %.150s", x.err == WEIR_E_PLAN, weir_diag_line(x.dg),
			 weir_diag_column(x.dg) >= 200 && weir_diag_column(x.dg) < 6000 ? "near" : "far",
			 weir_diag_text(x.dg));
		done(&x);
		if (type)
			free(inner);
		free(s);
	}
	return NULL;
}

/* The parser's own stack stays small: 256 KiB are plenty. */
static void test_depth_on_a_small_stack(void **state)
{
	(void)state;
	pthread_t thread;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
#ifdef __SANITIZE_ADDRESS__
	pthread_attr_setstacksize(&attr, 1024 * 1024);
#else
	pthread_attr_setstacksize(&attr, 256 * 1024);
#endif
	char seen[sizeof deep / sizeof deep[0]][200];
	assert_int_equal(pthread_create(&thread, &attr, parse_deep_texts, seen), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++)
		assert_string_equal(seen[i], "1 1:near nesting limit 200 reached (sql.depth.max)");
	struct parsed x;
	char *s = nested("(", "1", ")", 199);
	parse(&x, s);
	assert_int_equal(x.err, WEIR_OK);
	done(&x);
	free(s);
	s = nested("(", "1", ")", 200);
	parse(&x, s);
	assert_int_equal(x.err, WEIR_E_PLAN);
	assert_int_equal(weir_diag_column(x.dg), 201);
	done(&x);
	free(s);
}

static void expect_chain(const char *first, const char *more)
{
	struct parsed x, y;
	struct weir_buf out = {0};
	char *s = nested("", first, more, 100000);
	parse(&x, s);
	if (x.err != WEIR_OK)
		fail_msg("%s", weir_diag_report(x.dg));
	assert_int_equal(weir_token_peek(&x.ts, 0)->kind, WEIR_TOK_END);
	parse(&y, s);
	assert_true(weir_ast_equal(x.ast, y.ast));
	weir_ast_print(x.ast, &out);
	assert_in_range(out.bytes, 1000, 80 * 1024);
	weir_buf_fini(&out);
	done(&x);
	done(&y);
	free(s);
}

static void test_long_chains(void **state)
{
	(void)state;
	expect_chain("1", " + 1");
	expect_chain("a", " OR a");
	expect_chain("a", " AND a");
	expect_chain("a", " || a");
	expect_chain("a", " IS NULL");
	expect_chain("a", ".b");
	expect_chain("a", "[1]");
	expect_chain("a", " IN (1)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_names_and_paths),
		cmocka_unit_test(test_special_forms),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_stops_where_it_cannot_go_on),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_equality),
		cmocka_unit_test(test_depth_on_a_small_stack),
		cmocka_unit_test(test_long_chains),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
