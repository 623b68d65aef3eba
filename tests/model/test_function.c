/* test_function.c: every entry of the function table over columns with nulls and holes in the selection, against the
 * same call over constants, one row at a time. The seed is printed; give one as the first argument to repeat a run. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/exprs.h"

enum { ROWS = 40, ARGS_MAX = 4, TRIALS = 60000 };

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = seed;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ (z >> 31)) >> 11) % n;
}

static const char *const texts[] = {"",
				    "a",
				    "b",
				    "héllo wörld",
				    "%l%",
				    "h_llo%",
				    "(l+)",
				    "12",
				    "-7.5",
				    "2026-03-29 02:30:00.125",
				    "2024-02-29",
				    "DAY",
				    "MONTH",
				    "SECOND",
				    "WEEK",
				    "yyyy-MM-dd",
				    "yyyy-MM-dd HH:mm:ss.SSS",
				    "UTC",
				    "Europe/Berlin",
				    "{\"a\": [1, \"x\"], \"b\": {\"c\": null}}",
				    "$.a[1]",
				    "lax $.b",
				    "aGVsbG8=",
				    "  x ",
				    "UTF-8",
				    "ISO-8859-1",
				    "BOTH",
				    ",",
				    "a,b,,c",
				    "$1-"};

static struct weir_type random_type(void)
{
	switch (below(14)) {
	case 0:
		return t_kind(WEIR_KIND_BIGINT);
	case 1:
		return t_kind(WEIR_KIND_INT);
	case 2:
		return t_kind(WEIR_KIND_TINYINT);
	case 3:
		return t_kind(WEIR_KIND_DOUBLE);
	case 4:
		return t_decimal(12, 2);
	case 5:
		return t_decimal(30, 4);
	case 6:
		return t_kind(WEIR_KIND_BOOLEAN);
	case 7:
		return t_kind(WEIR_KIND_DATE);
	case 8:
		return t_time(WEIR_KIND_TIMESTAMP, 3);
	case 9:
		return t_time(WEIR_KIND_TIMESTAMP_LTZ, 6);
	case 10:
		return t_kind(below(2) ? WEIR_KIND_INTERVAL_MS : WEIR_KIND_INTERVAL_MONTH);
	case 11:
		return (struct weir_type){.kind = WEIR_KIND_BYTES, .length = INT32_MAX};
	default:
		return t_string();
	}
}

static int64_t random_int(const struct weir_type *t)
{
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		return below(2);
	case WEIR_KIND_TINYINT:
		return (int64_t)below(256) - 128;
	case WEIR_KIND_INT:
		return below(4) == 0 ? (below(2) ? INT32_MAX : INT32_MIN) : (int64_t)below(9) - 4;
	case WEIR_KIND_BIGINT:
		return below(6) == 0 ? (below(2) ? INT64_MAX : INT64_MIN) : (int64_t)below(9) - 4;
	case WEIR_KIND_DECIMAL:
		return (int64_t)below(2000) - 1000;
	case WEIR_KIND_DATE:
		return (int64_t)below(80000) - 40000;
	case WEIR_KIND_INTERVAL_MS:
		return ((int64_t)below(200) - 100) * 3600000;
	case WEIR_KIND_INTERVAL_MONTH:
		return (int64_t)below(40) - 20;
	default:
		return ((int64_t)below(UINT32_MAX) - INT32_MAX) * (t->precision > 3 ? 1000003 : 1009);
	}
}

/* A constant of t. */
static const struct weir_expr *random_value(struct weir_mem *m, const struct weir_type *t)
{
	struct weir_expr *e = weir_mem_take(m, sizeof *e);
	e->op = WEIR_EXPR_CONST;
	e->type = *t;
	e->text = "v";
	switch (weir_type_phys(t)) {
	case WEIR_PHYS_F64: {
		static const double some[] = {0, -0.0, 1.5, -2.675, 1e300, 3, 1e-9};
		e->value.f64 = some[below(WEIR_COUNT_OF(some))];
		break;
	}
	case WEIR_PHYS_STR: {
		const char *s = texts[below(WEIR_COUNT_OF(texts))];
		e->value.str = (struct weir_str){(const uint8_t *)s, (uint32_t)strlen(s), 0};
		break;
	}
	case WEIR_PHYS_I128:
		e->value.i128 = (weir_i128)random_int(t) * random_int(t);
		break;
	default:
		e->value.i64 = random_int(t);
		break;
	}
	return e;
}

static void put(struct weir_col *c, uint32_t row, const struct weir_expr *v)
{
	size_t bytes = weir_phys_bytes(c->phys);
	if (v->is_null)
		weir_col_set_null(c, row);
	else if (c->phys == WEIR_PHYS_U8)
		c->u8[row] = (uint8_t)v->value.i64;
	else
		memcpy((uint8_t *)c->data + row * bytes, &v->value, bytes);
}

/* One call: for each argument a constant or a column. Returns 1 when there is such a call. */
static int trial(const struct weir_function *fn, uint64_t first, int step)
{
	struct weir_mem m = {0};
	struct x_batch *b = malloc(sizeof *b);
	uint32_t high = fn->args_max > ARGS_MAX ? ARGS_MAX : fn->args_max;
	uint32_t count = fn->args_min + (high > fn->args_min ? below(high - fn->args_min + 1) : 0);
	struct weir_type type[ARGS_MAX];
	enum weir_phys phys[ARGS_MAX];
	const struct weir_expr *arg[ARGS_MAX + 1], *value[ROWS][ARGS_MAX + 1];
	bool fixed[ARGS_MAX];
	for (uint32_t a = 0; a < count; a++) {
		type[a] = a > 0 && below(3) == 0 ? type[0] : random_type();
		phys[a] = weir_type_phys(&type[a]);
		fixed[a] = below(3) == 0;
		arg[a] = fixed[a] ? random_value(&m, &type[a]) : x_col(&m, a, type[a]);
	}
	const struct weir_expr *e = x_call_n(&m, fn->name, arg, count);
	if (e == NULL) {
		free(b);
		weir_mem_fini(&m);
		return 0;
	}
	x_batch_init(b, phys, count, ROWS);
	uint32_t kept = 0;
	for (uint32_t r = 0; r < ROWS; r++) {
		for (uint32_t a = 0; a < count; a++) {
			value[r][a] = fixed[a]        ? arg[a]
				      : below(6) == 0 ? x_null(&m, type[a])
						      : random_value(&m, &type[a]);
			put(&b->col[a], r, value[r][a]);
		}
		if (below(4) != 0)
			b->sel.row[kept++] = (uint16_t)r;
	}
	b->sel.count = kept;
	struct weir_sel before = b->sel;
	const struct weir_expr *text = x_cast(&m, WEIR_EXPR_CAST, e, t_string());
	struct weir_program *pg;
	const struct weir_col *out;
	assert_int_equal(weir_program_create(&pg, &text, 1, NULL), WEIR_OK);
	weir_program_run(pg, b->in, &b->sel, &b->scratch, &out, &b->errors);
	for (uint32_t i = 0; i < before.count; i++) {
		uint32_t r = before.row[i];
		const char *got = NULL;
		for (uint32_t k = 0; k < b->errors.count && got == NULL; k++)
			if (b->errors.e[k].row == r)
				got = weir_mem_printf(&m, "!%s",
						      weir_reason_name((enum weir_reason)b->errors.e[k].reason));
		if (got == NULL && weir_col_is_null(out, r))
			got = "NULL";
		if (got == NULL)
			got = weir_mem_strndup(&m, (const char *)out->str[r].data, out->str[r].bytes);
		/* The same entry over constants; a refused constant (a bad pattern) has no counterpart. */
		const struct weir_expr *one = x_call_n(&m, fn->name, value[r], count);
		if (one == NULL || one->type.kind != e->type.kind || !weir_type_equal(&one->type, &e->type))
			continue;
		const char *want = x_eval(&m, x_cast(&m, WEIR_EXPR_CAST, one, t_string()));
		if (strcmp(got, want) != 0) {
			char t0[64], t1[64] = "";
			weir_type_text(&type[0], t0, sizeof t0);
			if (count > 1)
				weir_type_text(&type[1], t1, sizeof t1);
			fail_msg("seed %llu, step %d, row %u: %s(%s, %s ...): got %s, want %s",
				 (unsigned long long)first, step, r, fn->name, t0, t1, got, want);
		}
	}
	weir_program_destroy(pg);
	x_batch_fini(b);
	free(b);
	weir_mem_fini(&m);
	return 1;
}

static void test_columns_and_constants_agree(void **state)
{
	(void)state;
	uint64_t first = seed;
	print_message("seed %llu\n", (unsigned long long)first);
	uint32_t entries = 0, reached = 0;
	while (weir_function_at(entries) != NULL)
		entries++;
	uint8_t *seen = calloc(entries, 1);
	for (int step = 0; step < TRIALS; step++) {
		uint32_t i = below(entries);
		const struct weir_function *fn = weir_function_at(i);
		if (fn->args_min == 0 || fn->name[0] == '$')
			continue;
		if (seen[i] < 8)
			seen[i] = (uint8_t)(seen[i] + trial(fn, first, step));
	}
	for (uint32_t i = 0; i < entries; i++)
		reached += seen[i] != 0;
	print_message("%u of %u entries ran\n", reached, entries);
	assert_true(reached > entries / 2);
	free(seen);
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns_and_constants_agree)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
