/* test_print.c: rows as Flink prints them, tables for a terminal, JSON lines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "io/print.h"

static const char *const names[] = {"k", "n", "at", "d", "ok"};
static const struct weir_type types[] = {
	{.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX},
	{.kind = WEIR_KIND_BIGINT, .not_null = true},
	{.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = 3},
	{.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2},
	{.kind = WEIR_KIND_BOOLEAN},
};

struct rows {
	struct weir_col cols[5];
};

static void fill(struct rows *r, uint32_t row, const char *k, int64_t n, int64_t at, int64_t d, bool ok)
{
	r->cols[0].str[row] = (struct weir_str){.data = (const uint8_t *)k, .bytes = (uint32_t)strlen(k)};
	r->cols[1].i64[row] = n;
	r->cols[2].i64[row] = at;
	r->cols[3].i64[row] = d;
	r->cols[4].u8[row] = ok;
}

static int setup(void **state)
{
	struct rows *r = weir_xcalloc(1, sizeof *r);
	for (int i = 0; i < 5; i++)
		weir_col_init(&r->cols[i], weir_type_phys(&types[i]));
	fill(r, 0, "a", 14999, 14999, 150, true);
	fill(r, 1, "b", -2, 0, 10000, false);
	for (int i = 0; i < 5; i++) {
		if (i != 1)
			weir_col_set_null(&r->cols[i], 2);
	}
	r->cols[1].i64[2] = 7;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rows *r = *state;
	for (int i = 0; i < 5; i++)
		weir_col_fini(&r->cols[i]);
	weir_free(r);
	return 0;
}

static void expect(struct weir_buf *b, const char *text)
{
	weir_buf_put_byte(b, 0);
	assert_string_equal((const char *)b->data, text);
	weir_buf_fini(b);
	*b = (struct weir_buf){0};
}

static struct weir_printer *printer(enum weir_print_form form, bool is_table, const char *identifier)
{
	struct weir_printer *pr = NULL;
	struct weir_printer_spec spec = {form, identifier, 5, names, types, is_table};
	assert_int_equal(weir_printer_create(&pr, &spec, NULL), WEIR_OK);
	return pr;
}

static void test_rows(void **state)
{
	struct rows *r = *state;
	struct weir_buf b = {0};
	struct weir_printer *pr = printer(WEIR_PRINT_ROWS, false, "");
	weir_printer_head(pr, &b);
	weir_printer_row(pr, r->cols, 0, WEIR_OP_INSERT, &b);
	weir_printer_row(pr, r->cols, 1, WEIR_OP_UPDATE, &b);
	weir_printer_row(pr, r->cols, 2, WEIR_OP_DELETE, &b);
	weir_printer_foot(pr, &b);
	expect(&b, "+I[a, 14999, 1970-01-01T00:00:14.999Z, 1.50, true]\n"
		   "+U[b, -2, 1970-01-01T00:00:00Z, 100.00, false]\n"
		   "-D[null, 7, null, null, null]\n");
	weir_printer_destroy(pr);
	pr = printer(WEIR_PRINT_ROWS, false, "out");
	weir_printer_row(pr, r->cols, 2, WEIR_OP_INSERT, &b);
	expect(&b, "out> +I[null, 7, null, null, null]\n");
	weir_printer_destroy(pr);
}

static void test_table(void **state)
{
	struct rows *r = *state;
	struct weir_buf b = {0};
	struct weir_printer *pr = printer(WEIR_PRINT_TABLE, true, NULL);
	weir_printer_head(pr, &b);
	weir_printer_row(pr, r->cols, 0, WEIR_OP_INSERT, &b);
	weir_printer_row(pr, r->cols, 2, WEIR_OP_DELETE, &b);
	weir_printer_foot(pr, &b);
	expect(&b, "+----+--------------------------------+----------------------+--------------------------+----------"
		   "-------+--------+\n"
		   "| op |                              k |                    n |                       at |          "
		   "     d |     ok |\n"
		   "+----+--------------------------------+----------------------+--------------------------+----------"
		   "-------+--------+\n"
		   "| +I |                              a |                14999 | 1970-01-01 00:00:14.999Z |         "
		   "   1.50 |   TRUE |\n"
		   "| -D |                         <NULL> |                    7 |                   <NULL> |          "
		   "<NULL> | <NULL> |\n"
		   "+----+--------------------------------+----------------------+--------------------------+----------"
		   "-------+--------+\n"
		   "Received a total of 2 rows\n");
	weir_printer_destroy(pr);
}

static void test_narrow_table(void **state)
{
	(void)state;
	static const char *const name[] = {"name"};
	static const struct weir_type type[] = {{.kind = WEIR_KIND_VARCHAR, .length = 8, .not_null = true}};
	struct weir_printer_spec spec = {WEIR_PRINT_TABLE, NULL, 1, name, type, false};
	struct weir_printer *pr = NULL;
	struct weir_col col;
	struct weir_buf b = {0};
	weir_col_init(&col, WEIR_PHYS_STR);
	assert_int_equal(weir_printer_create(&pr, &spec, NULL), WEIR_OK);
	weir_printer_head(pr, &b);
	static const char *const values[] = {"123456789", "日本語", "日本語日本語", "a\nb", "é", ""};
	for (uint32_t i = 0; i < WEIR_COUNT_OF(values); i++) {
		col.str[i] =
			(struct weir_str){.data = (const uint8_t *)values[i], .bytes = (uint32_t)strlen(values[i])};
		weir_printer_row(pr, &col, i, WEIR_OP_INSERT, &b);
	}
	expect(&b, "+----------+\n|     name |\n+----------+\n"
		   "| 12345... |\n"
		   "|   日本語 |\n"
		   "| 日本...  |\n"
		   "|      a b |\n"
		   "|        é |\n"
		   "|          |\n");
	weir_printer_destroy(pr);
	/* No rows: no second border. */
	assert_int_equal(weir_printer_create(&pr, &spec, NULL), WEIR_OK);
	weir_printer_foot(pr, &b);
	expect(&b, "Received a total of 0 rows\n");
	weir_printer_destroy(pr);
	weir_col_fini(&col);
	assert_int_equal(weir_text_width((const uint8_t *)"e\xcc\x81", 3), 1);
	assert_int_equal(weir_text_width((const uint8_t *)"\xf0\x9f\x98\x80", 4), 2);
	assert_int_equal(weir_text_width((const uint8_t *)"\xf0\x9f", 2), 1); /* cut short: no over-read */
}

static void test_json(void **state)
{
	struct rows *r = *state;
	struct weir_buf b = {0};
	struct weir_printer *pr = printer(WEIR_PRINT_JSON, false, NULL);
	weir_printer_head(pr, &b);
	weir_printer_row(pr, r->cols, 0, WEIR_OP_INSERT, &b);
	weir_printer_foot(pr, &b);
	expect(&b, "{\"k\":\"a\",\"n\":14999,\"at\":\"1970-01-01 00:00:14.999Z\",\"d\":1.50,\"ok\":true}\n");
	weir_printer_destroy(pr);
	pr = printer(WEIR_PRINT_JSON, true, NULL);
	weir_printer_row(pr, r->cols, 2, WEIR_OP_DELETE, &b);
	expect(&b, "{\"op\":\"-D\",\"k\":null,\"n\":7,\"at\":null,\"d\":null,\"ok\":null}\n");
	weir_printer_destroy(pr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table, setup, teardown),
		cmocka_unit_test(test_narrow_table),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
