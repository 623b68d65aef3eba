/* test_user.c: functions of the program as expressions: one run for all results, constants and NULLs, rows that are
 * out, what is refused, what is written where nothing was put. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "hotpath/expr/user.h"
#include "hotpath/weir.h"
#include "tests/support/exprs.h"

struct seen {
	uint32_t calls;
	uint32_t rows;
};

/* sum, text of the sum, and whether it is odd, of two numbers; NULL of NULL. */
static void sums(struct weir_batch *b, void *ctx)
{
	struct seen *sn = ctx;
	const int64_t *x = weir_batch_integers(b, 0), *y = weir_batch_integers(b, 1);
	int64_t *sum = weir_batch_put_integers(b, 0);
	uint8_t *odd = weir_batch_put_booleans(b, 2);
	const uint16_t *row = weir_batch_rows(b);
	sn->calls++;
	sn->rows += weir_batch_count(b);
	assert_null(weir_batch_doubles(b, 0));
	assert_null(weir_batch_integers(b, 2));
	assert_null(weir_batch_put_doubles(b, 0));
	assert_null(weir_batch_put_integers(b, 3));
	assert_null(weir_batch_string(b, 0, row[0]).data);
	for (uint32_t i = 0; i < weir_batch_count(b); i++) {
		uint32_t r = row[i];
		char text[24];
		if (weir_batch_is_null(b, 0, r) || weir_batch_is_null(b, 1, r)) {
			for (uint32_t o = 0; o < 3; o++)
				weir_batch_put_null(b, o, r);
			continue;
		}
		sum[r] = x[r] + y[r];
		odd[r] = (uint8_t)(x[r] + y[r]) & 1 ? 200 : 0; /* becomes 1 */
		weir_batch_put_string(b, 1, r, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)sum[r]));
	}
}

static const struct weir_type *types3(void)
{
	static struct weir_type t[3];
	t[0] = t_kind(WEIR_KIND_BIGINT);
	t[1] = (struct weir_type){.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	t[2] = t_kind(WEIR_KIND_BOOLEAN);
	return t;
}

static const char *const names3[] = {"sum", "text", "odd"};

static void test_results_share_one_run(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	struct seen sn = {0, 0};
	struct weir_user_function fn = {"sums", sums, &sn, 3, types3(), names3};
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		b.col[0].i64[i] = i;
		if (i % 7 == 0)
			weir_col_set_null(&b.col[0], i);
	}
	b.sel.count = 0;
	for (uint32_t i = 1; i < 1000; i += 3)
		b.sel.row[b.sel.count++] = (uint16_t)i;
	const struct weir_expr *args[] = {x_col(&m, 0, t_kind(WEIR_KIND_BIGINT)), x_int(&m, WEIR_KIND_BIGINT, 5)};
	const struct weir_expr *out_e[3];
	weir_user_call(&m, &fn, args, 2, out_e);
	const char *name = NULL;
	assert_true(weir_user_is_result(out_e[1], &name));
	assert_string_equal(name, "text");
	assert_false(weir_user_is_result(args[0], &name));
	assert_false(weir_expr_equal(out_e[0], out_e[2]));
	struct weir_buf text = {0};
	weir_expr_print(out_e[1], (const char *const[]){"x"}, &text);
	weir_buf_put_byte(&text, 0);
	assert_string_equal((const char *)text.data, "sums(x, 5).text");
	weir_buf_fini(&text);

	/* The results, one of them twice, and something made of one. */
	const struct weir_expr *e[] = {out_e[0], out_e[1], out_e[2], out_e[0],
				       x_call(&m, "+", out_e[0], x_int(&m, WEIR_KIND_BIGINT, 1), NULL)};
	struct weir_program *pg;
	assert_int_equal(weir_program_create(&pg, e, 5, NULL), WEIR_OK);
	const struct weir_col *out[5];
	for (uint32_t pass = 0; pass < 2; pass++) {
		weir_program_run(pg, b.in, &b.sel, &b.scratch, out, &b.errors);
		assert_int_equal(sn.calls, pass + 1);
		assert_int_equal(b.errors.count, 0);
		for (uint32_t i = 0; i < b.sel.count; i++) {
			uint32_t r = b.sel.row[i];
			char want[24];
			assert_int_equal(weir_col_is_null(out[0], r), r % 7 == 0);
			assert_int_equal(weir_col_is_null(out[4], r), r % 7 == 0);
			if (r % 7 == 0)
				continue;
			assert_int_equal(out[0]->i64[r], r + 5);
			assert_int_equal(out[3]->i64[r], r + 5);
			assert_int_equal(out[4]->i64[r], r + 6);
			assert_int_equal(out[2]->u8[r], (r + 5) & 1);
			int bytes = snprintf(want, sizeof want, "%u", r + 5);
			assert_int_equal(out[1]->str[r].bytes, bytes);
			assert_memory_equal(out[1]->str[r].data, want, (size_t)bytes);
		}
	}
	assert_int_equal(sn.rows, 2 * b.sel.count);
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* Only what the rows are that a condition before it leaves; never folded, not even over constants alone. */
static void test_lazy_and_never_folded(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	struct seen sn = {0, 0};
	struct weir_user_function fn = {"sums", sums, &sn, 3, types3(), names3};
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 100);
	for (uint32_t i = 0; i < 100; i++)
		b.col[0].i64[i] = i;
	const struct weir_expr *column = x_col(&m, 0, t_kind(WEIR_KIND_BIGINT));
	const struct weir_expr *args[] = {x_int(&m, WEIR_KIND_BIGINT, 2), x_int(&m, WEIR_KIND_BIGINT, 5)}, *r[3];
	weir_user_call(&m, &fn, args, 2, r);
	const struct weir_expr *e = weir_expr_and(
		&m, x_call(&m, "<", column, x_int(&m, WEIR_KIND_BIGINT, 10), NULL),
		x_call(&m, ">", column, x_call(&m, "-", r[0], x_int(&m, WEIR_KIND_BIGINT, 4), NULL), NULL));
	/* The same over a substituted column: the call stays one. */
	e = weir_expr_substitute(e, &column, 1, &m);
	assert_int_equal(sn.calls, 0);
	struct weir_program *pg;
	assert_int_equal(weir_program_create(&pg, &e, 1, NULL), WEIR_OK);
	assert_int_equal(weir_program_filter(pg, b.in, &b.sel, &b.scratch, &b.errors), 94);
	assert_int_equal(sn.calls, 1);
	assert_int_equal(sn.rows, 10);
	assert_int_equal(b.sel.count, 6); /* 4 to 9 */
	assert_int_equal(b.sel.row[0], 4);
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* Row 1 is refused, 2 out of range, 3 no UTF-8, 4 NULL where that is not allowed; rows that are not in are not written.
 */
static void bad(struct weir_batch *b, void *ctx)
{
	int64_t *out = weir_batch_put_integers(b, 0);
	(void)ctx;
	out[2] = 40000;
	weir_batch_refuse(b, 1, "not this one");
	weir_batch_refuse(b, 1, "told twice");
	weir_batch_refuse(b, 77, "not in");
	weir_batch_put_string(b, 1, 0, "fine", 4);
	weir_batch_put_string(b, 1, 3, "\xff\xfe", 2);
	weir_batch_put_string(b, 1, 77, "not in", 6);
	weir_batch_put_string(b, 1, 5000, "nowhere", 7);
	weir_batch_put_null(b, 0, 4);
	weir_batch_put_null(b, 9, 5);
	weir_batch_put_null(b, 1, 77);
}

static void test_refusals(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	struct weir_type t[2] = {t_kind(WEIR_KIND_SMALLINT), {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}};
	t[0].not_null = true;
	struct weir_user_function fn = {"bad", bad, NULL, 2, t, names3};
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 8);
	const struct weir_expr *args[] = {x_col(&m, 0, t_kind(WEIR_KIND_BIGINT))}, *e[2];
	weir_user_call(&m, &fn, args, 1, e);
	struct weir_program *pg;
	assert_int_equal(weir_program_create(&pg, e, 2, NULL), WEIR_OK);
	const struct weir_col *out[2];
	weir_program_run(pg, b.in, &b.sel, &b.scratch, out, &b.errors);
	assert_int_equal(b.errors.count, 4);
	uint32_t rows = 0;
	for (uint32_t i = 0; i < 4; i++) {
		rows |= 1u << b.errors.e[i].row;
		assert_int_equal(b.errors.e[i].reason, WEIR_REASON_EXPR);
		assert_string_equal(b.errors.e[i].field, "bad");
	}
	assert_int_equal(rows, 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4);
	assert_int_equal(b.sel.count, 4);
	assert_int_equal(out[1]->str[0].bytes, 4);
	for (uint32_t i = 1; i < b.sel.count; i++) { /* nothing was put: 0 and '' */
		uint32_t r = b.sel.row[i];
		assert_int_equal(out[0]->i64[r], 0);
		assert_int_equal(out[1]->str[r].bytes, 0);
		assert_non_null(out[1]->str[r].data);
		assert_false(weir_col_is_null(out[0], r) || weir_col_is_null(out[1], r));
	}
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* As many rows as the number says: its words, with their place. */
static void words(struct weir_batch *b, void *ctx)
{
	const int64_t *n = weir_batch_integers(b, 0);
	const uint16_t *row = weir_batch_rows(b);
	(void)ctx;
	assert_int_equal(weir_batch_emit(b, 4000), WEIR_BATCH_ROWS - 1);
	for (uint32_t i = 0; i < weir_batch_count(b); i++) {
		for (int64_t k = 0; k < n[row[i]]; k++) {
			uint32_t at = weir_batch_emit(b, row[i]);
			if (k % 3 == 2) {
				weir_batch_put_null(b, 0, at);
				continue; /* the place stays 0 */
			}
			weir_batch_put_string(b, 0, at, k % 3 == 0 ? "a\"b" : "", k % 3 == 0 ? 3 : 0);
			weir_batch_put_integers(b, 1)[at] = k;
		}
	}
}

static void test_any_number_of_rows(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	struct weir_type t[2] = {{.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}, t_kind(WEIR_KIND_INT)};
	static const char *const names[] = {"w", "n"};
	struct weir_user_function fn = {"words", words, NULL, 2, t, names};
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 6);
	const int64_t counts[] = {0, 1, 3, 5000, 2, 0}; /* more than are kept before they are written */
	memcpy(b.col[0].i64, counts, sizeof counts);
	const struct weir_expr *args[] = {x_col(&m, 0, t_kind(WEIR_KIND_BIGINT))};
	const struct weir_expr *e[3] = {weir_user_flat_call(&m, &fn, args, 1)};
	assert_int_equal(e[0]->type.kind, WEIR_KIND_ARRAY);
	assert_int_equal(e[0]->type.fields[0].kind, WEIR_KIND_ROW);
	assert_true(weir_user_is_call(e[0]));
	e[1] = x_call(&m, "CARDINALITY", e[0], NULL);
	const struct weir_expr *second = x_call(&m, "ITEM", e[0], x_int(&m, WEIR_KIND_BIGINT, 2), NULL);
	e[2] = x_call(&m, "FIELD", second, x_str(&m, "n"), NULL);
	struct weir_program *pg;
	assert_int_equal(weir_program_create(&pg, e, 3, NULL), WEIR_OK);
	const struct weir_col *out[3];
	for (uint32_t pass = 0; pass < 2; pass++) {
		weir_program_run(pg, b.in, &b.sel, &b.scratch, out, &b.errors);
		assert_int_equal(b.errors.count, 0);
		static const char *const want[] = {
			"[]", "[{\"w\":\"a\\\"b\",\"n\":0}]",
			"[{\"w\":\"a\\\"b\",\"n\":0},{\"w\":\"\",\"n\":1},{\"w\":null,\"n\":0}]"};
		for (uint32_t r = 0; r < 6; r++) {
			assert_int_equal(out[1]->i64[r], counts[r]);
			assert_int_equal(weir_col_is_null(out[2], r), counts[r] < 2);
			if (r < 3) {
				assert_int_equal(out[0]->str[r].bytes, strlen(want[r]));
				assert_memory_equal(out[0]->str[r].data, want[r], strlen(want[r]));
			}
		}
		assert_int_equal(out[2]->i64[3], 1);
	}
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* Row 0 has one that is out of range behind a good one, 1 is refused after one, 2 comes before 3 again. */
static void bad_rows(struct weir_batch *b, void *ctx)
{
	(void)ctx;
	(void)weir_batch_emit(b, 0);
	uint32_t at = weir_batch_emit(b, 0);
	weir_batch_put_integers(b, 1)[at] = INT64_C(1) << 40;
	(void)weir_batch_emit(b, 1);
	weir_batch_refuse(b, 1, "no");
	(void)weir_batch_emit(b, 3);
	at = weir_batch_emit(b, 2);
	weir_batch_put_integers(b, 1)[at] = 7; /* goes nowhere */
	weir_batch_put_string(b, 0, at, "x", 1);
	at = weir_batch_emit(b, 4);
	weir_batch_put_string(b, 0, at, "\xff", 1);
}

static void test_refused_rows(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	struct weir_type t[2] = {{.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}, t_kind(WEIR_KIND_INT)};
	static const char *const names[] = {"w", "n"};
	struct weir_user_function fn = {"bad", bad_rows, NULL, 2, t, names};
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 6);
	const struct weir_expr *args[] = {x_col(&m, 0, t_kind(WEIR_KIND_BIGINT))};
	const struct weir_expr *e = weir_user_flat_call(&m, &fn, args, 1);
	struct weir_program *pg;
	assert_int_equal(weir_program_create(&pg, &e, 1, NULL), WEIR_OK);
	const struct weir_col *out;
	weir_program_run(pg, b.in, &b.sel, &b.scratch, &out, &b.errors);
	uint32_t rows = 0;
	for (uint32_t i = 0; i < b.errors.count; i++)
		rows |= 1u << b.errors.e[i].row;
	assert_int_equal(b.errors.count, 4);
	assert_int_equal(rows, 1u << 0 | 1u << 1 | 1u << 2 | 1u << 4);
	assert_int_equal(b.sel.count, 2);
	static const char want[] = "[{\"w\":\"\",\"n\":0}]";
	assert_int_equal(out->str[3].bytes, strlen(want));
	assert_memory_equal(out->str[3].data, want, strlen(want));
	assert_int_equal(out->str[5].bytes, 2);
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* A length without data refuses the row; no data and no length are the empty text; a reason need not be given. */
static void nulls(struct weir_batch *b, void *ctx)
{
	(void)ctx;
	weir_batch_put_string(b, 0, 0, NULL, 0);
	weir_batch_put_string(b, 0, 1, NULL, 5);
	weir_batch_refuse(b, 2, NULL);
}

static void test_null_data(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	static const struct weir_type text = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	struct weir_user_function fn = {"nulls", nulls, NULL, 1, &text, names3};
	const struct weir_expr *e, *arg = x_col(&m, 0, t_kind(WEIR_KIND_BIGINT));
	struct weir_program *pg;
	const struct weir_col *out;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 3);
	memset(b.col[0].i64, 0, 3 * sizeof *b.col[0].i64);
	weir_user_call(&m, &fn, &arg, 1, &e);
	assert_int_equal(weir_program_create(&pg, &e, 1, NULL), WEIR_OK);
	weir_program_run(pg, b.in, &b.sel, &b.scratch, &out, &b.errors);
	assert_int_equal(b.errors.count, 2);
	assert_int_equal(b.errors.e[0].row, 1);
	assert_int_equal(b.errors.e[1].row, 2);
	assert_int_equal(out->str[0].bytes, 0);
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* A function without in-columns is called for the same rows. */
static void answer(struct weir_batch *b, void *ctx)
{
	const uint16_t *row = weir_batch_rows(b);
	(void)ctx;
	for (uint32_t i = 0; i < weir_batch_count(b); i++)
		weir_batch_put_integers(b, 0)[row[i]] = 42 + row[i];
}

static void test_no_arguments(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	struct weir_user_function fn = {"answer", answer, NULL, 1, types3(), names3};
	const struct weir_expr *e;
	struct weir_program *pg;
	const struct weir_col *out;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 100);
	weir_user_call(&m, &fn, NULL, 0, &e);
	assert_int_equal(weir_program_create(&pg, &e, 1, NULL), WEIR_OK);
	weir_program_run(pg, b.in, &b.sel, &b.scratch, &out, &b.errors);
	assert_int_equal(b.errors.count, 0);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(out->i64[i], 42 + i);
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

static void test_types(void **state)
{
	(void)state;
	struct weir_type t = t_kind(WEIR_KIND_DECIMAL);
	t.precision = 18;
	assert_true(weir_user_type_is_supported(&t));
	t.precision = 19;
	assert_false(weir_user_type_is_supported(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_share_one_run),
		cmocka_unit_test(test_lazy_and_never_folded),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_any_number_of_rows),
		cmocka_unit_test(test_refused_rows),
		cmocka_unit_test(test_null_data),
		cmocka_unit_test(test_no_arguments),
		cmocka_unit_test(test_types),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
