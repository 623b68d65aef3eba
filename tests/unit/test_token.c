/* test_token.c: the lexer: what becomes which token, and where errors point. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/expr/token.h"

struct lexed {
	struct weir_mem m;
	struct weir_tokens ts;
	struct weir_diag *dg;
	enum weir_err err;
};

static void lex_bytes(struct lexed *x, const char *text, size_t bytes, size_t bytes_max)
{
	memset(x, 0, sizeof *x);
	weir_mem_init(&x->m, 0);
	x->err = weir_tokens_init(&x->ts, &x->m, "q.sql", text, bytes, bytes_max, &x->dg);
}

static void lex(struct lexed *x, const char *text)
{
	lex_bytes(x, text, strlen(text), 0);
	assert_int_equal(x->err, WEIR_OK);
}

static void done(struct lexed *x)
{
	weir_diag_destroy(x->dg);
	weir_mem_fini(&x->m);
}

static void expect_token(const struct lexed *x, uint32_t i, enum weir_tok kind, const char *text)
{
	assert_true(i < x->ts.count);
	assert_int_equal(x->ts.token[i].kind, kind);
	assert_string_equal(x->ts.token[i].text, text);
	assert_int_equal(x->ts.token[i].text_bytes, strlen(text));
}

static void expect_error(const char *text, int line, int column, const char *part)
{
	struct lexed x;
	lex_bytes(&x, text, strlen(text), 0);
	assert_int_equal(x.err, WEIR_E_PLAN);
	assert_int_equal(weir_diag_line(x.dg), line);
	assert_int_equal(weir_diag_column(x.dg), column);
	if (strstr(weir_diag_report(x.dg), part) == NULL)
		fail_msg("'%s' is not in: %s", part, weir_diag_report(x.dg));
	done(&x);
}

static void test_kinds(void **state)
{
	(void)state;
	struct lexed x;
	lex(&x, "SELECT a_1, `b``c`, 'it''s', X'00fF', 12 1.5 .5 1. 1e3 2.5E-1 <= >= <> != || => a[1]:2;");
	static const struct {
		enum weir_tok kind;
		const char *text;
	} want[] = {
		{WEIR_TOK_NAME, "SELECT"}, {WEIR_TOK_NAME, "a_1"},    {WEIR_TOK_SYMBOL, ","},
		{WEIR_TOK_QUOTED, "b`c"},  {WEIR_TOK_SYMBOL, ","},    {WEIR_TOK_STRING, "it's"},
		{WEIR_TOK_SYMBOL, ","},    {WEIR_TOK_BYTES, NULL},    {WEIR_TOK_SYMBOL, ","},
		{WEIR_TOK_INTEGER, "12"},  {WEIR_TOK_DECIMAL, "1.5"}, {WEIR_TOK_DECIMAL, ".5"},
		{WEIR_TOK_DECIMAL, "1."},  {WEIR_TOK_DOUBLE, "1e3"},  {WEIR_TOK_DOUBLE, "2.5E-1"},
		{WEIR_TOK_SYMBOL, "<="},   {WEIR_TOK_SYMBOL, ">="},   {WEIR_TOK_SYMBOL, "<>"},
		{WEIR_TOK_SYMBOL, "!="},   {WEIR_TOK_SYMBOL, "||"},   {WEIR_TOK_SYMBOL, "=>"},
		{WEIR_TOK_NAME, "a"},      {WEIR_TOK_SYMBOL, "["},    {WEIR_TOK_INTEGER, "1"},
		{WEIR_TOK_SYMBOL, "]"},    {WEIR_TOK_SYMBOL, ":"},    {WEIR_TOK_INTEGER, "2"},
		{WEIR_TOK_SYMBOL, ";"},    {WEIR_TOK_END, ""},
	};
	assert_int_equal(x.ts.count, sizeof want / sizeof want[0]);
	for (uint32_t i = 0; i < x.ts.count; i++)
		if (want[i].text != NULL)
			expect_token(&x, i, want[i].kind, want[i].text);
	assert_int_equal(x.ts.token[7].kind, WEIR_TOK_BYTES);
	assert_int_equal(x.ts.token[7].text_bytes, 2);
	assert_memory_equal(x.ts.token[7].text, "\x00\xff", 2);
	assert_int_equal(x.ts.token[5].at, 20);
	assert_int_equal(x.ts.token[5].bytes, 7);
	done(&x);
}

static void test_strings_keep_their_bytes(void **state)
{
	(void)state;
	struct lexed x;
	lex(&x, "'\"x\"' 'it''s' '''' '\\\\n' '''a.''' ''");
	expect_token(&x, 0, WEIR_TOK_STRING, "\"x\"");
	expect_token(&x, 1, WEIR_TOK_STRING, "it's");
	expect_token(&x, 2, WEIR_TOK_STRING, "'");
	expect_token(&x, 3, WEIR_TOK_STRING, "\\\\n");
	expect_token(&x, 4, WEIR_TOK_STRING, "'a.'");
	expect_token(&x, 5, WEIR_TOK_STRING, "");
	done(&x);
}

static void test_quotes_inside_names_and_comments(void **state)
{
	(void)state;
	struct lexed x;
	lex(&x, "1 AS `we'ird`, 'a;b' ; -- don't\n/* it's \n ; */ \"x\"\"y\" `from` gr\xc3\xb6\xc3\x9f"
		"e `@type` `a.b`");
	expect_token(&x, 2, WEIR_TOK_QUOTED, "we'ird");
	expect_token(&x, 4, WEIR_TOK_STRING, "a;b");
	expect_token(&x, 5, WEIR_TOK_SYMBOL, ";");
	expect_token(&x, 6, WEIR_TOK_QUOTED, "x\"y");
	expect_token(&x, 7, WEIR_TOK_QUOTED, "from");
	expect_token(&x, 8, WEIR_TOK_NAME,
		     "gr\xc3\xb6\xc3\x9f"
		     "e");
	expect_token(&x, 9, WEIR_TOK_QUOTED, "@type");
	expect_token(&x, 10, WEIR_TOK_QUOTED, "a.b");
	assert_int_equal(x.ts.count, 12);
	done(&x);
}

static void test_dots(void **state)
{
	(void)state;
	struct lexed x;
	lex(&x, "a.b.5 f(x).c 1.5");
	expect_token(&x, 1, WEIR_TOK_SYMBOL, ".");
	expect_token(&x, 3, WEIR_TOK_SYMBOL, ".");
	expect_token(&x, 4, WEIR_TOK_INTEGER, "5");
	expect_token(&x, 9, WEIR_TOK_SYMBOL, ".");
	done(&x);
}

static void test_errors_have_their_place(void **state)
{
	(void)state;
	expect_error("SELECT 'abc", 1, 8, "this string has no end");
	expect_error("SELECT\n  `abc", 2, 3, "this quoted name has no end");
	expect_error("a /* b", 1, 3, "this comment has no end");
	expect_error("``", 1, 1, "an empty name");
	expect_error("x = 12ab", 1, 5, "a number runs into a name");
	expect_error("X'0g'", 1, 3, "hexadecimal");
	expect_error("X'00", 1, 1, "no end");
	expect_error("X'0'", 1, 3, "pairs");
	expect_error("path = ${in}", 1, 8, "--define name=value");
	expect_error("a.@type", 1, 3, "`@type`");
	expect_error("a \xff", 1, 3, "invalid UTF-8");
	expect_error("'\xc3\x28'", 1, 2, "invalid UTF-8");
	expect_error("SELECT /*+ OPTIONS('a'='b') */ 1", 1, 8, "not supported yet: hints");
}

static void test_nul_byte(void **state)
{
	(void)state;
	struct lexed x;
	lex_bytes(&x, "SELECT\n a\0b", 11, 0);
	assert_int_equal(x.err, WEIR_E_PLAN);
	assert_int_equal(weir_diag_line(x.dg), 2);
	assert_int_equal(weir_diag_column(x.dg), 3);
	assert_string_equal(weir_diag_text(x.dg), "a NUL byte in the text");
	done(&x);
}

static void test_size_limit(void **state)
{
	(void)state;
	struct lexed x;
	size_t bytes = 64 * 1024 + 1;
	char *text = malloc(bytes);
	memset(text, ' ', bytes);
	lex_bytes(&x, text, bytes - 1, 0);
	assert_int_equal(x.err, WEIR_OK);
	done(&x);
	lex_bytes(&x, text, bytes, 0);
	assert_int_equal(x.err, WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_text(x.dg), "sql.bytes.max = 65536"));
	done(&x);
	/* A literal of a megabyte is kept whole where the limit allows it. */
	bytes = 1024 * 1024 + 2;
	text = realloc(text, bytes);
	memset(text, 'x', bytes);
	text[0] = text[bytes - 1] = '\'';
	lex_bytes(&x, text, bytes, 2 * bytes);
	assert_int_equal(x.err, WEIR_OK);
	assert_int_equal(x.ts.token[0].text_bytes, bytes - 2);
	done(&x);
	free(text);
}

static void test_cursor(void **state)
{
	(void)state;
	struct lexed x;
	const char *name = NULL;
	lex(&x, "create `table` Foo from");
	assert_true(weir_token_is(&x.ts, "CREATE"));
	assert_false(weir_token_accept(&x.ts, "SELECT"));
	assert_true(weir_token_accept(&x.ts, "CREATE"));
	assert_false(weir_token_is(&x.ts, "TABLE")); /* quoted: no keyword */
	assert_int_equal(weir_token_name(&x.ts, "a name", &name, &x.dg), WEIR_OK);
	assert_string_equal(name, "table");
	assert_int_equal(weir_token_name(&x.ts, "a name", &name, &x.dg), WEIR_OK);
	assert_string_equal(name, "Foo");
	assert_int_equal(weir_token_peek(&x.ts, 9)->kind, WEIR_TOK_END);
	assert_int_equal(weir_token_name(&x.ts, "a table name", &name, &x.dg), WEIR_E_PLAN);
	assert_string_equal(weir_diag_text(x.dg), "expected a table name, found 'from'");
	assert_non_null(strstr(weir_diag_report(x.dg), "`from`"));
	assert_int_equal(weir_diag_column(x.dg), 20);
	weir_diag_destroy(x.dg);
	x.dg = NULL;
	x.ts.next++;
	assert_int_equal(weir_token_expect(&x.ts, ";", &x.dg), WEIR_E_PLAN);
	assert_string_equal(weir_diag_text(x.dg), "expected ;, found the end of the text");
	done(&x);
}

static void test_byte_order_mark(void **state)
{
	(void)state;
	struct lexed x;
	lex(&x, "\xef\xbb\xbfSELECT 1");
	expect_token(&x, 0, WEIR_TOK_NAME, "SELECT");
	done(&x);
	lex(&x, "");
	expect_token(&x, 0, WEIR_TOK_END, "");
	done(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_strings_keep_their_bytes),
		cmocka_unit_test(test_quotes_inside_names_and_comments),
		cmocka_unit_test(test_dots),
		cmocka_unit_test(test_errors_have_their_place),
		cmocka_unit_test(test_nul_byte),
		cmocka_unit_test(test_size_limit),
		cmocka_unit_test(test_cursor),
		cmocka_unit_test(test_byte_order_mark),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
