/* test_program.c: unit tests of hotpath/expr/program.c: laziness, three-valued logic, sharing, errors, deep chains. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "tests/support/exprs.h"

static const struct weir_expr *big(struct weir_mem *m, int64_t v)
{
	return x_int(m, WEIR_KIND_BIGINT, v);
}

static void test_constants_and_columns(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64, WEIR_PHYS_I64}, 2, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		b.col[0].i64[i] = i;
		b.col[1].i64[i] = 10 * i;
		if (i % 7 == 0)
			weir_col_set_null(&b.col[1], i);
	}
	const struct weir_expr *a = x_col(&m, 0, t_kind(WEIR_KIND_BIGINT)), *c = x_col(&m, 1, t_kind(WEIR_KIND_BIGINT));
	const struct weir_expr *e[] = {a, x_call(&m, "+", a, c, NULL), big(&m, 42),
				       x_call(&m, "+", x_call(&m, "+", a, c, NULL), big(&m, 1), NULL)};
	struct weir_program *pg;
	assert_int_equal(weir_program_create(&pg, e, 4, NULL), WEIR_OK);
	const struct weir_col *out[4];
	weir_program_run(pg, b.in, &b.sel, &b.scratch, out, &b.errors);
	assert_int_equal(b.errors.count, 0);
	assert_ptr_equal(out[0], &b.col[0]);
	assert_true(out[2]->is_const);
	assert_int_equal(out[2]->i64[0], 42);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(weir_col_is_null(out[1], i), i % 7 == 0);
		assert_int_equal(weir_col_is_null(out[3], i), i % 7 == 0);
		if (i % 7 != 0) {
			assert_int_equal(out[1]->i64[i], 11 * i);
			assert_int_equal(out[3]->i64[i], 11 * i + 1);
		}
	}
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* x <> 0 AND 10 / x > 1: the division must not see zero; without the guard it is a row error. */
static void test_and_guards_its_later_arguments(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 100);
	for (uint32_t i = 0; i < 100; i++)
		b.col[0].i64[i] = i % 20;
	const struct weir_expr *x = x_col(&m, 0, t_kind(WEIR_KIND_BIGINT));
	const struct weir_expr *q = x_call(&m, ">", x_call(&m, "/", big(&m, 10), x, NULL), big(&m, 1), NULL);
	const struct weir_expr *e =
		x_node(&m, WEIR_EXPR_AND, t_kind(WEIR_KIND_BOOLEAN), x_call(&m, "<>", x, big(&m, 0), NULL), q, NULL);
	struct weir_program *pg;
	assert_int_equal(weir_program_create(&pg, &e, 1, NULL), WEIR_OK);
	assert_int_equal(weir_program_filter(pg, b.in, &b.sel, &b.scratch, &b.errors), 75);
	assert_int_equal(b.errors.count, 0);
	assert_int_equal(b.sel.count, 25); /* 1 to 5, five times */
	for (uint32_t i = 0; i < b.sel.count; i++)
		assert_in_range(b.col[0].i64[b.sel.row[i]], 1, 5);
	weir_program_destroy(pg);

	weir_sel_all(&b.sel, 100);
	assert_int_equal(weir_program_create(&pg, &q, 1, NULL), WEIR_OK);
	assert_int_equal(weir_program_filter(pg, b.in, &b.sel, &b.scratch, &b.errors), 70);
	assert_int_equal(b.errors.count, 5);
	assert_int_equal(b.errors.e[1].row, 20);
	assert_int_equal(b.errors.e[1].reason, WEIR_REASON_EXPR);
	assert_int_equal(b.sel.count, 25);
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

static void test_case_runs_only_the_branch_taken(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 64);
	for (uint32_t i = 0; i < 64; i++)
		b.col[0].i64[i] = (int64_t)i % 8 - 1;
	weir_col_set_null(&b.col[0], 63);
	struct weir_type t = t_kind(WEIR_KIND_BIGINT);
	const struct weir_expr *x = x_col(&m, 0, t);
	const struct weir_expr *inv = x_call(&m, "/", big(&m, 60), x, NULL);
	const struct weir_expr *e[] = {x_node(&m, WEIR_EXPR_CASE, t, x_call(&m, "=", x, big(&m, 0), NULL), big(&m, -7),
					      x_call(&m, ">", x, big(&m, 3), NULL), inv,
					      x_call(&m, "+", inv, big(&m, 1000), NULL), NULL),
				       x_call(&m, "IF", x_call(&m, "<>", x, big(&m, 0), NULL), inv, big(&m, 5), NULL),
				       x_node(&m, WEIR_EXPR_CASE, t, x_call(&m, "=", x, big(&m, 2), NULL), x, NULL)};
	struct weir_program *pg;
	assert_int_equal(weir_program_create(&pg, e, 3, NULL), WEIR_OK);
	const struct weir_col *out[3];
	for (int again = 0; again < 2; again++) {
		weir_program_run(pg, b.in, &b.sel, &b.scratch, out, &b.errors);
		assert_int_equal(b.errors.count, 0);
		for (uint32_t i = 0; i < 63; i++) {
			int64_t v = b.col[0].i64[i];
			assert_false(weir_col_is_null(out[0], i));
			assert_int_equal(out[0]->i64[i], v == 0 ? -7 : v > 3 ? 60 / v : 60 / v + 1000);
			assert_int_equal(out[1]->i64[i], v == 0 ? 5 : 60 / v);
			assert_int_equal(weir_col_is_null(out[2], i), v != 2);
		}
		assert_true(weir_col_is_null(out[0], 63));
		assert_int_equal(out[1]->i64[63], 5);
	}
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* A failing row leaves every level, also when it fails deep inside. */
static void test_errors_inside_branches(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 10);
	for (uint32_t i = 0; i < 10; i++)
		b.col[0].i64[i] = i;
	struct weir_type t = t_kind(WEIR_KIND_BIGINT);
	const struct weir_expr *x = x_col(&m, 0, t);
	const struct weir_expr *bad = x_call(&m, "/", big(&m, 6), x_call(&m, "-", x, big(&m, 3), NULL), NULL);
	const struct weir_expr *e =
		x_node(&m, WEIR_EXPR_COALESCE, t,
		       x_node(&m, WEIR_EXPR_CASE, t, x_call(&m, "<", x, big(&m, 2), NULL), x_null(&m, t), bad, NULL),
		       big(&m, 77), NULL);
	struct weir_program *pg;
	const struct weir_col *out;
	assert_int_equal(weir_program_create(&pg, &e, 1, NULL), WEIR_OK);
	weir_program_run(pg, b.in, &b.sel, &b.scratch, &out, &b.errors);
	assert_int_equal(b.errors.count, 1);
	assert_int_equal(b.errors.e[0].row, 3);
	assert_int_equal(b.sel.count, 9);
	for (uint32_t i = 0; i < b.sel.count; i++) {
		uint32_t r = b.sel.row[i];
		assert_int_not_equal(r, 3);
		assert_false(weir_col_is_null(out, r));
		assert_int_equal(out->i64[r], r < 2 ? 77 : 6 / ((int64_t)r - 3));
	}
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* Three values of two columns against the truth tables. 0 FALSE, 1 TRUE, 2 NULL. */
static void test_three_valued_tables(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_U8, WEIR_PHYS_U8, WEIR_PHYS_U8}, 3, 27);
	for (uint32_t i = 0; i < 27; i++)
		for (uint32_t c = 0; c < 3; c++) {
			uint32_t v = c == 0 ? i % 3 : c == 1 ? i / 3 % 3 : i / 9;
			if (v == 2)
				weir_col_set_null(&b.col[c], i);
			else
				b.col[c].u8[i] = (uint8_t)v;
		}
	struct weir_type t = t_kind(WEIR_KIND_BOOLEAN);
	const struct weir_expr *x = x_col(&m, 0, t), *y = x_col(&m, 1, t), *z = x_col(&m, 2, t);
	const struct weir_expr *e[] = {x_node(&m, WEIR_EXPR_AND, t, x, y, z, NULL),
				       x_node(&m, WEIR_EXPR_OR, t, x, y, z, NULL),
				       x_call(&m, "NOT", x, NULL),
				       x_call(&m, "IS TRUE", x, NULL),
				       x_call(&m, "IS NOT FALSE", x, NULL),
				       x_call(&m, "IS UNKNOWN", x, NULL),
				       x_call(&m, "IS DISTINCT FROM", x, y, NULL),
				       x_call(&m, "=", x, y, NULL)};
	struct weir_program *pg;
	const struct weir_col *out[8];
	assert_int_equal(weir_program_create(&pg, e, 8, NULL), WEIR_OK);
	weir_program_run(pg, b.in, &b.sel, &b.scratch, out, &b.errors);
	for (uint32_t i = 0; i < 27; i++) {
		uint32_t v[3] = {i % 3, i / 3 % 3, i / 9};
		bool any0 = v[0] == 0 || v[1] == 0 || v[2] == 0, any1 = v[0] == 1 || v[1] == 1 || v[2] == 1;
		bool any2 = v[0] == 2 || v[1] == 2 || v[2] == 2;
		uint32_t want[8] = {any0   ? 0
				    : any2 ? 2
					   : 1,
				    any1   ? 1
				    : any2 ? 2
					   : 0,
				    v[0] == 2 ? 2 : !v[0],
				    v[0] == 1,
				    v[0] != 0,
				    v[0] == 2,
				    v[0] != v[1],
				    v[0] == 2 || v[1] == 2 ? 2 : v[0] == v[1]};
		for (uint32_t k = 0; k < 8; k++) {
			uint32_t got = weir_col_is_null(out[k], i) ? 2 : out[k]->u8[i];
			if (got != want[k])
				fail_msg("expression %u, row %u: got %u, want %u", k, i, got, want[k]);
		}
	}
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* 100,000 terms, left-deep and right-deep: no recursion, few registers. */
static void test_deep_chains(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	struct x_batch b;
	x_batch_init(&b, (enum weir_phys[]){WEIR_PHYS_I64}, 1, 1);
	b.col[0].i64[0] = 1;
	const struct weir_expr *x = x_col(&m, 0, t_kind(WEIR_KIND_BIGINT)), *left = x;
	for (uint32_t i = 1; i < 100000; i++)
		left = x_call(&m, "+", left, x, NULL);
	const struct weir_expr *right = x;
	for (uint32_t i = 1; i < 1000; i++)
		right = x_call(&m, "-", x, right, NULL);
	const struct weir_expr *e[] = {left, right};
	struct weir_program *pg;
	const struct weir_col *out[2];
	assert_int_equal(weir_program_create(&pg, e, 2, NULL), WEIR_OK);
	weir_program_run(pg, b.in, &b.sel, &b.scratch, out, &b.errors);
	assert_int_equal(out[0]->i64[0], 100000);
	assert_int_equal(out[1]->i64[0], 0);
	weir_program_destroy(pg);
	x_batch_fini(&b);
	weir_mem_fini(&m);
}

/* A fold over a DAG that doubles at each step: 2^60 paths, 60 nodes. */
static void test_shared_nodes_run_once(void **state)
{
	(void)state;
	struct weir_mem m = {0};
	const struct weir_expr *e = big(&m, 1);
	for (uint32_t i = 0; i < 60; i++)
		e = x_call(&m, "+", e, e, NULL);
	assert_string_equal(x_eval(&m, e), "1152921504606846976");
	e = x_call(&m, "+", e, e, NULL);
	e = x_call(&m, "+", e, e, NULL);
	assert_string_equal(x_eval(&m, x_call(&m, "+", e, e, NULL)), "!overflow");
	weir_mem_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants_and_columns),
		cmocka_unit_test(test_and_guards_its_later_arguments),
		cmocka_unit_test(test_case_runs_only_the_branch_taken),
		cmocka_unit_test(test_errors_inside_branches),
		cmocka_unit_test(test_three_valued_tables),
		cmocka_unit_test(test_deep_chains),
		cmocka_unit_test(test_shared_nodes_run_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
