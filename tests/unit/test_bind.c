/* test_bind.c: names, types, coercions, constant folding and the passes over bound trees. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hotpath/expr/expr.h"
#include "hotpath/expr/program.h"

#define STRING_TYPE                                                                                                    \
	{                                                                                                              \
		.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX                                                         \
	}

static const struct weir_type row_fields[] = {STRING_TYPE, {.kind = WEIR_KIND_BIGINT}};
static const char *const row_names[] = {"name", "X-Meta-Client"};

static const struct weir_scope_column columns[] = {
	{"i", "t", {.kind = WEIR_KIND_INT}, false},
	{"b", "t", {.kind = WEIR_KIND_BIGINT}, false},
	{"d", "t", {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2}, false},
	{"x", "t", {.kind = WEIR_KIND_DOUBLE}, false},
	{"s", "t", STRING_TYPE, false},
	{"ok", "t", {.kind = WEIR_KIND_BOOLEAN}, false},
	{"ts", "t", {.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = 3}, false},
	{"r", "t", {.kind = WEIR_KIND_ROW, .field_count = 2, .fields = row_fields, .field_names = row_names}, false},
	{"a.b", "t", {.kind = WEIR_KIND_INT, .not_null = true}, false},
	{"both", "t", {.kind = WEIR_KIND_INT}, false},
	{"both", "u", {.kind = WEIR_KIND_INT}, false},
};

struct bound {
	struct weir_mem m;
	struct weir_tokens ts;
	struct weir_diag *dg;
	struct weir_ast *ast;
	const struct weir_expr *e;
	enum weir_err err;
};

static void bind_scope(struct bound *x, const char *text, const struct weir_scope *scope)
{
	memset(x, 0, sizeof *x);
	weir_mem_init(&x->m, 0);
	x->err = weir_tokens_init(&x->ts, &x->m, NULL, text, strlen(text), 4 * 1024 * 1024, &x->dg);
	if (x->err == WEIR_OK)
		x->err = weir_expr_parse(&x->ts, &x->m, &x->ast, &x->dg);
	if (x->err == WEIR_OK)
		x->err = weir_expr_bind(scope, &x->ts, x->ast, &x->m, &x->e, &x->dg);
}

static void bind(struct bound *x, const char *text)
{
	struct weir_scope scope = {.columns = columns, .count = sizeof columns / sizeof columns[0]};
	bind_scope(x, text, &scope);
}

static void done(struct bound *x)
{
	weir_diag_destroy(x->dg);
	weir_mem_fini(&x->m);
}

static char *printed(const struct weir_expr *e)
{
	const char *names[sizeof columns / sizeof columns[0]];
	struct weir_buf out = {0};
	for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
		names[i] = columns[i].name;
	weir_expr_print(e, names, &out);
	weir_buf_put_byte(&out, 0);
	return (char *)out.data;
}

/* The bound tree prints as want and has type. */
static void expect(const char *text, const char *want, const char *type)
{
	struct bound x;
	char buf[128];
	bind(&x, text);
	if (x.err != WEIR_OK)
		fail_msg("%s: %s", text, weir_diag_report(x.dg));
	char *p = printed(x.e);
	if (strcmp(p, want) != 0)
		fail_msg("%s: got %s, want %s", text, p, want);
	struct weir_type t = x.e->type;
	if (strcmp(weir_type_text(&t, buf, sizeof buf), type) != 0)
		fail_msg("%s: is %s, not %s", text, buf, type);
	free(p);
	done(&x);
}

static void expect_error(const char *text, int column, const char *part)
{
	struct bound x;
	bind(&x, text);
	if (x.err != WEIR_E_PLAN)
		fail_msg("no error: %s", text);
	if (strstr(weir_diag_report(x.dg), part) == NULL || weir_diag_column(x.dg) != column)
		fail_msg("%d '%s' is not in: %s", column, part, weir_diag_report(x.dg));
	done(&x);
}

static void test_literals(void **state)
{
	(void)state;
	expect("1", "1", "INT NOT NULL");
	expect("-2147483648", "-2147483648", "INT NOT NULL");
	expect("2147483648", "2147483648", "BIGINT NOT NULL");
	expect("-9223372036854775808", "-9223372036854775808", "BIGINT NOT NULL");
	expect("9223372036854775808", "9223372036854775808", "DECIMAL(19, 0) NOT NULL");
	expect("0.05", "0.05", "DECIMAL(3, 2) NOT NULL");
	expect(".5", "0.5", "DECIMAL(1, 1) NOT NULL");
	expect("12345678901234567890.12", "12345678901234567890.12", "DECIMAL(22, 2) NOT NULL");
	expect("1.5e3", "1500e0", "DOUBLE NOT NULL");
	expect("1e-7", "1e-7", "DOUBLE NOT NULL");
	expect("'it''s'", "'it''s'", "CHAR(4) NOT NULL");
	expect("'gr\xc3\xb6\xc3\x9f"
	       "e'",
	       "'gr\xc3\xb6\xc3\x9f"
	       "e'",
	       "CHAR(5) NOT NULL");
	expect("X'0aff'", "X'0aff'", "BYTES NOT NULL");
	expect("TRUE", "TRUE", "BOOLEAN NOT NULL");
	expect("NULL", "NULL", "NULL");
	expect("DATE '2026-02-28'", "DATE '2026-02-28'", "DATE NOT NULL");
	expect("TIMESTAMP '2026-01-31 01:02:03.5'", "TIMESTAMP '2026-01-31 01:02:03.5'", "TIMESTAMP(1) NOT NULL");
	expect("TIMESTAMP '2026-01-31 01:02:03.123456'", "TIMESTAMP '2026-01-31 01:02:03.123456'",
	       "TIMESTAMP(6) NOT NULL");
	expect("INTERVAL '5' SECOND", "INTERVAL '5000' MILLISECOND", "INTERVAL DAY TO SECOND NOT NULL");
	expect_error("DATE '2026-02-30'", 1, "not a valid DATE");
	expect_error("TIMESTAMP 'yesterday'", 1, "write TIMESTAMP '2026-01-01 00:00:00'");
	expect_error("123456789012345678901234567890123456789", 1, "more than 38 digits");
	/* Ten times what 38 sevens are leaves 128 bits. */
	expect_error("777777777777777777777777777777777777777777777", 1, "more than 38 digits");
}

static void test_columns(void **state)
{
	(void)state;
	expect("i", "i", "INT");
	expect("t.i", "i", "INT");
	expect("`a.b`", "a.b", "INT NOT NULL");
	expect("u.both", "both", "INT");
	expect_error("i + amout", 5, "unknown column amout");
	expect_error("I", 1, "names are case-sensitive: did you mean i?");
	expect_error("v.i", 1, "unknown table or column v");
	expect_error("v.q", 1, "columns here are those of t, ");
	expect_error("t.okk", 1, "did you mean ok?");
	expect_error("both", 1, "ambiguous");
	expect_error("s.name", 1, "has no field name");
	expect_error("r.nam", 1, "did you mean name?");
	expect_error("a.b", 1, "unknown table or column a"); /* a dot never reaches the column named `a.b` */
	expect_error("r.X-Meta-Client", 1, "no field X");    /* a hyphen is a minus */
	expect_error("CURRENT_TIMESTAMP", 1, "wall clock");
	expect_error("NOW()", 1, "wall clock");
}

static void test_arithmetic_types(void **state)
{
	(void)state;
	expect("i + 1", "(i + 1)", "INT");
	expect("i + b", "(i + b)", "BIGINT");
	expect("`a.b` * 2", "(a.b * 2)", "INT NOT NULL");
	struct bound x;
	char buf[64];
	static const char *const types[][2] = {
		{"d + d", "DECIMAL(13, 2)"},  {"d - 1", "DECIMAL(13, 2)"},           {"d * d", "DECIMAL(25, 4)"},
		{"d / d", "DECIMAL(27, 15)"}, {"d % i", "DECIMAL(12, 2)"},           {"d + x", "DOUBLE"},
		{"x / 2", "DOUBLE"},          {"d + 0.001", "DECIMAL(14, 3)"},       {"-d", "DECIMAL(12, 2)"},
		{"d > 100", "BOOLEAN"},       {"CAST(b AS DOUBLE) / 300", "DOUBLE"},
	};
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		bind(&x, types[i][0]);
		if (x.err != WEIR_OK)
			fail_msg("%s: %s", types[i][0], weir_diag_report(x.dg));
		if (strcmp(weir_type_text(&x.e->type, buf, sizeof buf), types[i][1]) != 0)
			fail_msg("%s: is %s, not %s", types[i][0], buf, types[i][1]);
		done(&x);
	}
	expect_error("s + 1", 3, "+ does not take (STRING, INT)");
	expect_error("ok * 2", 4, "* does not take (BOOLEAN, INT)");
}

static void test_comparisons(void **state)
{
	(void)state;
	expect("i = b", "(i = b)", "BOOLEAN");
	expect("s = 'a'", "(s = 'a')", "BOOLEAN");
	expect("ts > '2026-01-01 00:00:00'", "(ts > TIMESTAMP_LTZ '2026-01-01 00:00:00')", "BOOLEAN");
	expect("'2026-01-01' <= ts", "(TIMESTAMP_LTZ '2026-01-01 00:00:00' <= ts)", "BOOLEAN");
	expect("i IS DISTINCT FROM NULL", "(i IS DISTINCT FROM NULL)", "BOOLEAN NOT NULL");
	expect("i IS NOT NULL", "(i IS NOT NULL)", "BOOLEAN NOT NULL");
	expect("i BETWEEN 1 AND 5", "((i >= 1) AND (i <= 5))", "BOOLEAN");
	expect("i NOT BETWEEN 1 AND 5", "(NOT ((i >= 1) AND (i <= 5)))", "BOOLEAN");
	expect("i IN (1, 2)", "(i IN (1, 2))", "BOOLEAN");
	expect_error("s = 1", 3, "cannot compare STRING with INT");
	expect_error("i IN (1, 'a')", 3, "cannot compare INT with CHAR(1)");
	expect_error("ok > ts", 4, "cannot compare");
}

static void test_logic(void **state)
{
	(void)state;
	expect("ok AND i = 1 AND TRUE", "(ok AND (i = 1))", "BOOLEAN");
	expect("ok OR TRUE", "TRUE", "BOOLEAN NOT NULL");
	expect("ok AND FALSE", "FALSE", "BOOLEAN NOT NULL");
	expect("ok AND (ok AND i = 1)", "(ok AND ok AND (i = 1))", "BOOLEAN");
	expect("TRUE AND TRUE", "TRUE", "BOOLEAN NOT NULL");
	expect("NOT ok", "(NOT ok)", "BOOLEAN");
	expect("ok IS TRUE", "(ok IS TRUE)", "BOOLEAN NOT NULL");
	expect_error("ok AND i", 4, "AND takes BOOLEAN, not INT");
	expect_error("NOT s", 1, "NOT takes BOOLEAN, not STRING");
}

static void test_case(void **state)
{
	(void)state;
	expect("CASE WHEN ok THEN 1 ELSE b END", "CASE WHEN ok THEN 1 ELSE b END", "BIGINT");
	expect("CASE WHEN ok THEN 'a' END", "CASE WHEN ok THEN 'a' ELSE NULL END", "CHAR(1)");
	expect("CASE i WHEN 1 THEN 'one' ELSE 'other' END", "CASE WHEN (i = 1) THEN 'one' ELSE 'other' END",
	       "VARCHAR(5) NOT NULL");
	expect("COALESCE(i, 0)", "COALESCE(i, 0)", "INT NOT NULL");
	expect("IF(ok, 1, 2)", "CASE WHEN ok THEN 1 ELSE 2 END", "INT NOT NULL");
	expect("NULLIF(i, 0)", "CASE WHEN (i = 0) THEN NULL ELSE i END", "INT");
	expect_error("CASE WHEN ok THEN 1 ELSE 'a' END", 1, "CASE has values of INT and CHAR(1)");
	expect_error("CASE WHEN i THEN 1 END", 1, "WHEN takes BOOLEAN, not INT");
}

static void test_folding(void **state)
{
	(void)state;
	expect("1 + 2 * 3", "7", "INT NOT NULL");
	expect("i + (1 + 2)", "(i + 3)", "INT");
	expect("1.5 * 2", "3.0", "DECIMAL(13, 1) NOT NULL");
	expect("1 > 2", "FALSE", "BOOLEAN NOT NULL");
	expect("CAST('12' AS INT)", "12", "INT NOT NULL");
	expect("CAST(1 AS DECIMAL(12, 2))", "1.00", "DECIMAL(12, 2) NOT NULL");
	expect("NULL + 1", "NULL", "INT");
	expect("COALESCE(NULL, 5)", "5", "INT NOT NULL");
	/* Errors stay for the rows that meet them. */
	expect("1 / 0", "(1 / 0)", "INT NOT NULL");
	expect("CAST('x' AS INT)", "CAST('x' AS INT)", "INT NOT NULL");
	expect("TRY_CAST('x' AS INT)", "NULL", "INT");
	expect("CASE WHEN ok THEN 1 / 0 ELSE 1 END", "CASE WHEN ok THEN (1 / 0) ELSE 1 END", "INT NOT NULL");
}

static void test_casts(void **state)
{
	(void)state;
	expect("CAST(i AS STRING)", "CAST(i AS STRING)", "STRING");
	expect("CAST(i AS BIGINT)", "i", "BIGINT");
	expect("TRY_CAST(s AS INT)", "TRY_CAST(s AS INT)", "INT");
	expect_error("CAST(b AS TIMESTAMP(3))", 1, "TO_TIMESTAMP_LTZ");
	expect_error("CAST(r AS INT)", 1, "there is no CAST from ROW");
}

static void test_calls(void **state)
{
	(void)state;
	expect("ABS(i)", "ABS(i)", "INT");
	expect_error("ABSS(i)", 1, "did you mean ABS?");
	expect_error("ABS()", 1, "ABS takes 1 argument, not 0");
	expect_error("ABS(i, 1)", 1, "ABS takes 1 argument, not 2");
	expect_error("ABS(ok)", 1, "ABS does not take (BOOLEAN)");
	expect_error("1 + SUM(i)", 5, "an aggregate cannot stand here");
	expect_error("SUM(i + COUNT(s))", 1, "an aggregate");
	expect_error("ABS(DISTINCT i)", 1, "takes no DISTINCT");
	struct bound x;
	struct weir_scope scope = {.columns = columns, .count = 1, .aggregate_error = "use HAVING"};
	bind_scope(&x, "COUNT(*) > 5", &scope);
	assert_int_equal(x.err, WEIR_E_PLAN);
	assert_string_equal(weir_diag_text(x.dg), "use HAVING");
	done(&x);
}

/* Every call named K becomes column 3. */
static enum weir_err intercept(void *ctx, const struct weir_ast *ast, const struct weir_expr **out,
			       struct weir_diag **dg)
{
	struct bound *x = ctx;
	if (ast->kind == WEIR_AST_CALL && strcmp(ast->text, "K") == 0)
		*out = weir_expr_column(&x->m, 3, &columns[3].type, "x");
	if (ast->kind == WEIR_AST_CALL && strcmp(ast->text, "BAD") == 0)
		return weir_token_error(&x->ts, &x->ts.token[ast->at], dg, NULL, "bad");
	return WEIR_OK;
}

static void test_intercept(void **state)
{
	(void)state;
	struct bound x;
	struct weir_scope scope = {.columns = columns, .count = 6, .intercept = intercept, .ctx = &x};
	bind_scope(&x, "K(nothing, known) + x", &scope);
	assert_int_equal(x.err, WEIR_OK);
	char *p = printed(x.e);
	assert_string_equal(p, "(x + x)");
	free(p);
	done(&x);
	bind_scope(&x, "1 + BAD()", &scope);
	assert_int_equal(x.err, WEIR_E_PLAN);
	assert_int_equal(weir_diag_column(x.dg), 5);
	done(&x);
}

static void test_substitute(void **state)
{
	(void)state;
	struct bound x, y;
	bind(&x, "i + 1 > 5 AND (ok OR b = 2)");
	memset(&y, 0, sizeof y);
	const struct weir_expr *to[6] = {0};
	struct weir_type integer = {.kind = WEIR_KIND_INT}, boolean = {.kind = WEIR_KIND_BOOLEAN};
	to[0] = weir_expr_column(&x.m, 4, &integer, NULL);
	to[5] = weir_expr_column(&x.m, 5, &boolean, NULL);
	const struct weir_expr *e = weir_expr_substitute(x.e, to, 6, &x.m);
	struct weir_buf out = {0};
	weir_expr_print(e, NULL, &out);
	weir_buf_put_byte(&out, 0);
	assert_string_equal((char *)out.data, "((($4 + 1) > 5) AND ($5 OR ($1 = 2)))");
	/* Constants fold on their way. */
	struct weir_value seven = {.i64 = 7};
	struct weir_expr *constant = weir_mem_take(&x.m, sizeof *constant);
	*constant = (struct weir_expr){.op = WEIR_EXPR_CONST, .type = integer, .value = seven, .text = "7"};
	to[0] = constant;
	to[5] = weir_expr_bool(&x.m, true);
	e = weir_expr_substitute(x.e, to, 6, &x.m);
	assert_int_equal(e->op, WEIR_EXPR_CONST);
	assert_int_equal(e->value.i64, 1);
	/* Nothing to change: the same tree. */
	const struct weir_expr *none[6] = {0};
	assert_ptr_equal(weir_expr_substitute(x.e, none, 6, &x.m), x.e);
	weir_buf_fini(&out);
	done(&x);
}

static void test_columns_used_and_equality(void **state)
{
	(void)state;
	struct bound x, y;
	bool used[11] = {false};
	bind(&x, "i + 1 > b");
	weir_expr_columns_used(x.e, used, 11);
	assert_true(used[0] && used[1]);
	assert_false(used[2] || used[3]);
	bind(&y, "(i + 1) > b");
	assert_true(weir_expr_equal(x.e, y.e));
	done(&y);
	bind(&y, "i + 2 > b");
	assert_false(weir_expr_equal(x.e, y.e));
	done(&y);
	done(&x);
}

/* A DAG whose tree has 2^60 nodes: every pass must visit a node once. */
static void test_shared_nodes_are_visited_once(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct weir_type t = {.kind = WEIR_KIND_BIGINT};
	const struct weir_expr *e = weir_expr_column(&m, 0, &t, "c");
	for (int i = 0; i < 60; i++) {
		const struct weir_expr *args[2] = {e, e};
		struct weir_diag *dg = NULL;
		assert_int_equal(weir_expr_call(&m, "+", args, 2, &e, &dg), WEIR_OK);
	}
	assert_int_equal(weir_expr_count_nodes(&e, 1, 1000), 61);
	assert_int_equal(weir_expr_count_nodes(&e, 1, 10), 11);
	bool used[1] = {false};
	weir_expr_columns_used(e, used, 1);
	assert_true(used[0]);
	const struct weir_expr *to[1] = {weir_expr_column(&m, 1, &t, "d")};
	const struct weir_expr *s = weir_expr_substitute(e, to, 1, &m);
	assert_int_equal(weir_expr_count_nodes(&s, 1, 1000), 61);
	struct weir_buf out = {0};
	weir_expr_print(e, NULL, &out);
	assert_in_range(out.bytes, 64 * 1024, 65 * 1024);
	weir_buf_fini(&out);
	(void)weir_expr_equal(e, s);
	weir_mem_fini(&m);
}

static void chain(struct bound *x, const char *first, const char *more, int n)
{
	size_t a = strlen(first), b = strlen(more);
	char *s = malloc(a + b * (size_t)n + 1);
	memcpy(s, first, a);
	for (int i = 0; i < n; i++)
		memcpy(s + a + b * (size_t)i, more, b);
	s[a + b * (size_t)n] = 0;
	bind(x, s);
	free(s);
	if (x->err != WEIR_OK)
		fail_msg("%s", weir_diag_report(x->dg));
}

static void test_long_chains(void **state)
{
	(void)state;
	static const struct {
		const char *first, *more;
		size_t nodes;
	} chains[] = {
		{"i", " + i", 100001},
		{"ok", " OR i = 1", 300002},
		{"ok", " AND ok", 2},
		{"ok", " IS TRUE", 100001},
	};
	for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
		struct bound x;
		chain(&x, chains[i].first, chains[i].more, 100000);
		assert_in_range(weir_expr_count_nodes(&x.e, 1, 1000000), chains[i].nodes, 400010);
		const struct weir_expr *to[1] = {weir_expr_column(&x.m, 1, &columns[0].type, "j")};
		(void)weir_expr_substitute(x.e, to, 1, &x.m);
		struct weir_buf out = {0};
		weir_expr_print(x.e, NULL, &out);
		weir_buf_fini(&out);
		assert_true(weir_expr_equal(x.e, x.e));
		done(&x);
	}
	struct bound x;
	chain(&x, "1", " + 1", 20000);
	assert_int_equal(x.e->op, WEIR_EXPR_CONST);
	assert_int_equal(x.e->value.i64, 20001);
	done(&x);
}

static void test_and_or_helpers(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	const struct weir_expr *t = weir_expr_bool(&m, true), *f = weir_expr_bool(&m, false);
	assert_ptr_equal(weir_expr_and(&m, NULL, f), f);
	assert_ptr_equal(weir_expr_and(&m, f, NULL), f);
	assert_ptr_equal(weir_expr_and(&m, t, f), f);
	assert_null(weir_expr_and(&m, NULL, NULL));
	struct weir_type s = STRING_TYPE, b = {.kind = WEIR_KIND_BIGINT},
			 d = {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2};
	struct weir_type wide = {.kind = WEIR_KIND_DECIMAL, .precision = 38, .scale = 2};
	struct weir_type i = {.kind = WEIR_KIND_INT};
	assert_null(weir_expr_coerce(weir_expr_column(&m, 0, &s, "s"), &b, &m));
	assert_null(weir_expr_coerce(weir_expr_bigint(&m, 5), &i, &m)); /* narrower: needs a CAST */
	const struct weir_expr *e = weir_expr_coerce(weir_expr_column(&m, 0, &wide, "w"), &d, &m);
	assert_non_null(e);
	assert_int_equal(e->op, WEIR_EXPR_CAST);
	e = weir_expr_coerce(weir_expr_column(&m, 0, &i, "i"), &b, &m);
	assert_int_equal(e->op, WEIR_EXPR_COLUMN); /* the same bits */
	assert_int_equal(e->type.kind, WEIR_KIND_BIGINT);
	struct weir_type out;
	assert_true(weir_type_common(&i, &d, &out));
	assert_int_equal(out.precision, 12);
	assert_false(weir_type_common(&s, &b, &out));
	weir_mem_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_literals),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_arithmetic_types),
		cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_logic),
		cmocka_unit_test(test_case),
		cmocka_unit_test(test_folding),
		cmocka_unit_test(test_casts),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_intercept),
		cmocka_unit_test(test_substitute),
		cmocka_unit_test(test_columns_used_and_equality),
		cmocka_unit_test(test_shared_nodes_are_visited_once),
		cmocka_unit_test(test_long_chains),
		cmocka_unit_test(test_and_or_helpers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
