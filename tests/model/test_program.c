/* test_program.c: random expression trees over random columns, nulls and selections against an evaluator that goes row
 * by row and argument by argument. The seed is printed; give one as the first argument to repeat a run. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/exprs.h"

enum { INTS = 4, BOOLS = 2, COLUMNS = INTS + BOOLS };

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = seed;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ (z >> 31)) >> 11) % n;
}

static int64_t random_int(void)
{
	switch (below(12)) {
	case 0:
		return INT64_MAX - below(3);
	case 1:
		return INT64_MIN + below(3);
	case 2:
		return (int64_t)below(UINT32_MAX) << 10;
	default:
		return (int64_t)below(7) - 3;
	}
}

/* -- trees -- */

static const struct weir_expr *ints(struct weir_mem *m, uint32_t depth);

static const struct weir_expr *bools(struct weir_mem *m, uint32_t depth)
{
	static const char *const compares[] = {
		"=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"};
	static const char *const tests[] = {"NOT",          "IS TRUE",    "IS NOT TRUE", "IS FALSE",
					    "IS NOT FALSE", "IS UNKNOWN", "IS NOT NULL"};
	struct weir_type t = t_kind(WEIR_KIND_BOOLEAN);
	if (depth == 0)
		return below(8) == 0   ? x_null(m, t)
		       : below(6) == 0 ? x_bool(m, below(2))
				       : x_col(m, INTS + below(BOOLS), t);
	const struct weir_expr *last = below(2) ? bools(m, depth - 1) : NULL;
	switch (below(6)) {
	case 0:
		return x_node(m, WEIR_EXPR_AND, t, bools(m, depth - 1), bools(m, depth - 1), last, NULL);
	case 1:
		return x_node(m, WEIR_EXPR_OR, t, bools(m, depth - 1), bools(m, depth - 1), last, NULL);
	case 2:
		return x_call(m, tests[below(7)], bools(m, depth - 1), NULL);
	case 3:
		return x_call(m, "IN", ints(m, depth - 1), x_int(m, WEIR_KIND_BIGINT, 0), x_int(m, WEIR_KIND_BIGINT, 2),
			      below(3) == 0 ? x_null(m, t_kind(WEIR_KIND_BIGINT)) : ints(m, 0), NULL);
	default:
		return x_call(m, compares[below(8)], ints(m, depth - 1), ints(m, depth - 1), NULL);
	}
}

static const struct weir_expr *ints(struct weir_mem *m, uint32_t depth)
{
	static const char *const twos[] = {"+", "-", "*", "/", "%", "+", "-"};
	struct weir_type t = t_kind(WEIR_KIND_BIGINT);
	if (depth == 0)
		return below(10) == 0  ? x_null(m, t)
		       : below(4) == 0 ? x_int(m, WEIR_KIND_BIGINT, random_int())
				       : x_col(m, below(INTS), t);
	const struct weir_expr *a = ints(m, depth - 1), *b = below(4) == 0 ? a : ints(m, depth - 1);
	switch (below(9)) {
	case 0:
		return x_node(m, WEIR_EXPR_CASE, t, bools(m, depth - 1), a, bools(m, depth - 1), b, ints(m, depth - 1),
			      NULL);
	case 1:
		return x_node(m, WEIR_EXPR_CASE, t, bools(m, depth - 1), a, NULL);
	case 2:
		return x_node(m, WEIR_EXPR_COALESCE, t, a, b, ints(m, 0), NULL);
	case 3:
		return x_call(m, "IF", bools(m, depth - 1), a, b, NULL);
	case 4:
		return x_call(m, "NULLIF", a, b, NULL);
	case 5:
		return x_call(m, below(2) ? "GREATEST" : "LEAST", a, b, ints(m, 0), NULL);
	case 6:
		return x_call(m, below(2) ? "NEG" : "ABS", a, NULL);
	default:
		return x_call(m, twos[below(7)], a, b, NULL);
	}
}

/* -- the naive evaluator -- */

enum { VALUE, NOTHING, FAILED };

struct naive {
	int what; /* VALUE, NOTHING (NULL), FAILED */
	int64_t v;
};

static const struct naive nothing = {NOTHING, 0}, failed = {FAILED, 0};

static struct naive run(const struct x_batch *b, const struct weir_expr *e, uint32_t row);

static struct naive of(bool ok, int64_t v)
{
	return ok ? (struct naive){VALUE, v} : failed;
}

static struct naive run_lazy(const struct x_batch *b, const struct weir_expr *e, uint32_t row)
{
	bool is_and = e->op == WEIR_EXPR_AND, any_null = false;
	uint32_t i = 0;
	if (e->op == WEIR_EXPR_AND || e->op == WEIR_EXPR_OR) {
		for (; i < e->arg_count; i++) {
			struct naive a = run(b, e->args[i], row);
			if (a.what == FAILED || (a.what == VALUE && a.v == (is_and ? 0 : 1)))
				return a;
			any_null |= a.what == NOTHING;
		}
		return any_null ? nothing : of(true, is_and);
	}
	if (e->op == WEIR_EXPR_COALESCE) {
		struct naive a = nothing;
		for (; i < e->arg_count && a.what == NOTHING; i++)
			a = run(b, e->args[i], row);
		return a;
	}
	for (; i + 1 < e->arg_count; i += 2) {
		struct naive when = run(b, e->args[i], row);
		if (when.what == FAILED)
			return failed;
		if (when.what == VALUE && when.v != 0)
			return run(b, e->args[i + 1], row);
	}
	return i < e->arg_count ? run(b, e->args[i], row) : nothing;
}

static struct naive run_open(const char *name, const struct naive *a, uint32_t count)
{
	bool known = a[0].what == VALUE;
	if (strcmp(name, "IS TRUE") == 0 || strcmp(name, "IS NOT TRUE") == 0)
		return of(true, (known && a[0].v == 1) == (name[3] == 'T'));
	if (strcmp(name, "IS FALSE") == 0 || strcmp(name, "IS NOT FALSE") == 0)
		return of(true, (known && a[0].v == 0) == (name[3] == 'F'));
	if (strcmp(name, "IS UNKNOWN") == 0 || strcmp(name, "IS NOT NULL") == 0)
		return of(true, known == (name[3] == 'N'));
	if (strstr(name, "DISTINCT") != NULL) {
		bool same = a[0].what == a[1].what && (!known || a[0].v == a[1].v);
		return of(true, same == (name[3] == 'N'));
	}
	if (strcmp(name, "NULLIF") == 0)
		return known && a[1].what == VALUE && a[0].v == a[1].v ? nothing : a[0];
	bool any_null = false; /* IN */
	for (uint32_t i = 1; i < count && known; i++) {
		if (a[i].what == VALUE && a[i].v == a[0].v)
			return of(true, 1);
		any_null |= a[i].what == NOTHING;
	}
	return !known || any_null ? nothing : of(true, 0);
}

static struct naive run_strict(const char *name, int64_t x, int64_t y, const struct naive *a, uint32_t count)
{
	__int128 wide;
	switch (name[0]) {
	case '+':
		wide = (__int128)x + y;
		return of(wide == (int64_t)wide, (int64_t)wide);
	case '-':
		wide = (__int128)x - y;
		return of(wide == (int64_t)wide, (int64_t)wide);
	case '*':
		wide = (__int128)x * y;
		return of(wide == (int64_t)wide, (int64_t)wide);
	case '/':
		return y == 0 || (y == -1 && x == INT64_MIN) ? failed : of(true, x / y);
	case '%':
		return y == 0 ? failed : of(true, y == -1 ? 0 : x % y);
	case '=':
		return of(true, x == y);
	case '<':
		return of(true, name[1] == '>' ? x != y : name[1] == '=' ? x <= y : x < y);
	case '>':
		return of(true, name[1] == '=' ? x >= y : x > y);
	default:
		break;
	}
	if (strcmp(name, "NOT") == 0)
		return of(true, !x);
	if (strcmp(name, "NEG") == 0 || strcmp(name, "ABS") == 0)
		return x == INT64_MIN ? failed : of(true, name[0] == 'N' || x < 0 ? -x : x);
	for (uint32_t i = 1; i < count; i++) /* GREATEST, LEAST */
		if (name[0] == 'G' ? a[i].v > x : a[i].v < x)
			x = a[i].v;
	return of(true, x);
}

static struct naive run(const struct x_batch *b, const struct weir_expr *e, uint32_t row)
{
	if (e->op == WEIR_EXPR_COLUMN) {
		const struct weir_col *c = &b->col[e->column];
		return weir_col_is_null(c, row) ? nothing
						: of(true, c->phys == WEIR_PHYS_U8 ? c->u8[row] : c->i64[row]);
	}
	if (e->op == WEIR_EXPR_CONST)
		return e->is_null ? nothing : of(true, e->value.i64);
	if (e->op == WEIR_EXPR_CAST)
		return run(b, e->args[0], row);
	if (e->op != WEIR_EXPR_CALL)
		return run_lazy(b, e, row);
	if (strcmp(e->fn->name, "IF") == 0) {
		struct naive c = run(b, e->args[0], row);
		return c.what == FAILED ? failed : run(b, e->args[c.what == VALUE && c.v ? 1 : 2], row);
	}
	struct naive a[8] = {{0}};
	bool null = false;
	for (uint32_t i = 0; i < e->arg_count; i++) {
		a[i] = run(b, e->args[i], row);
		if (a[i].what == FAILED)
			return failed;
		null |= a[i].what == NOTHING;
	}
	if (!e->fn->null_in_null_out)
		return run_open(e->fn->name, a, e->arg_count);
	return null ? nothing : run_strict(e->fn->name, a[0].v, e->arg_count > 1 ? a[1].v : 0, a, e->arg_count);
}

/* -- */

static void fill(struct x_batch *b, uint32_t rows)
{
	static const enum weir_phys phys[COLUMNS] = {WEIR_PHYS_I64, WEIR_PHYS_I64, WEIR_PHYS_I64,
						     WEIR_PHYS_I64, WEIR_PHYS_U8,  WEIR_PHYS_U8};
	x_batch_init(b, phys, COLUMNS, rows);
	for (uint32_t c = 0; c < COLUMNS; c++) {
		uint32_t null_share = below(3);
		for (uint32_t r = 0; r < rows; r++) {
			if (phys[c] == WEIR_PHYS_U8)
				b->col[c].u8[r] = (uint8_t)below(2);
			else
				b->col[c].i64[r] = c == 0 ? (int64_t)r : random_int();
			if (null_share != 0 && below(4 * null_share) == 0)
				weir_col_set_null(&b->col[c], r);
		}
	}
	uint32_t keep = 1 + below(4), n = 0;
	for (uint32_t r = 0; r < rows; r++)
		if (keep == 1 || below(keep) == 0)
			b->sel.row[n++] = (uint16_t)r;
	b->sel.count = n;
}

static void check(struct x_batch *b, const struct weir_expr *const *e, uint32_t count, uint64_t first, int step)
{
	struct weir_program *pg;
	const struct weir_col *out[4];
	assert_int_equal(weir_program_create(&pg, e, count, NULL), WEIR_OK);
	struct weir_sel before = b->sel;
	weir_program_run(pg, b->in, &b->sel, &b->scratch, out, &b->errors);
	uint32_t kept = 0, bad = 0;
	for (uint32_t i = 0; i < before.count; i++) {
		uint32_t r = before.row[i];
		struct naive want[4];
		bool fails = false;
		for (uint32_t k = 0; k < count; k++) {
			want[k] = run(b, e[k], r);
			fails |= want[k].what == FAILED;
		}
		if (fails) {
			bool listed = false;
			for (uint32_t k = 0; k < b->errors.count; k++)
				listed |= b->errors.e[k].row == r;
			bad++;
			if (!listed)
				fail_msg("seed %llu, step %d, row %u: no error", (unsigned long long)first, step, r);
			continue;
		}
		if (kept >= b->sel.count || b->sel.row[kept] != r)
			fail_msg("seed %llu, step %d, row %u: left the selection", (unsigned long long)first, step, r);
		kept++;
		for (uint32_t k = 0; k < count; k++) {
			uint32_t at = out[k]->is_const ? 0 : r;
			bool null = weir_col_is_null(out[k], r);
			int64_t got = null ? 0 : out[k]->phys == WEIR_PHYS_U8 ? out[k]->u8[at] : out[k]->i64[at];
			if (null != (want[k].what == NOTHING) || (!null && got != want[k].v))
				fail_msg("seed %llu, step %d, row %u, expression %u: got %s%lld, want %s%lld",
					 (unsigned long long)first, step, r, k, null ? "NULL " : "", (long long)got,
					 want[k].what == NOTHING ? "NULL " : "", (long long)want[k].v);
		}
	}
	if (kept != b->sel.count || bad != b->errors.count)
		fail_msg("seed %llu, step %d: %u rows kept, %u in the selection; %u fail, %u errors",
			 (unsigned long long)first, step, kept, b->sel.count, bad, b->errors.count);
	weir_program_destroy(pg);
}

static void test_against_rows(void **state)
{
	(void)state;
	uint64_t first = seed;
	print_message("seed %llu\n", (unsigned long long)first);
	struct x_batch *b = malloc(sizeof *b);
	for (int step = 0; step < 1500; step++) {
		struct weir_mem m = {0};
		fill(b, 1 + below(step % 10 == 0 ? 1024 : 200));
		const struct weir_expr *e[4];
		uint32_t count = 1 + below(3);
		for (uint32_t i = 0; i < count; i++)
			e[i] = below(2) ? ints(&m, below(6)) : bools(&m, below(6));
		if (below(3) == 0)
			e[count++] = x_call(&m, "IS NOT NULL", e[0], NULL);
		check(b, e, count, first, step);
		x_batch_fini(b);
		weir_mem_fini(&m);
	}
	free(b);
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_rows)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
