/* bench_program.c: expressions over batches of 1024 rows, and one of them against walking its tree row by row. Items
 * are rows. @thread init */
#include <stdio.h>
#include <stdlib.h>

#include "bench/shim/shim.h"
#include "hotpath/expr/function.h"
#include "hotpath/expr/program.h"

enum { COLUMNS = 9 };

struct input {
	struct weir_col col[COLUMNS];
	const struct weir_col *in[COLUMNS];
	struct weir_scratch scratch;
};

struct job {
	struct input *input;
	const struct weir_expr *e;
	bool filter;
};

static const struct weir_scope_column columns[COLUMNS] = {
	{"a", NULL, {.kind = WEIR_KIND_BIGINT}, false},
	{"b", NULL, {.kind = WEIR_KIND_BIGINT}, false},
	{"amount", NULL, {.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2}, false},
	{"rate", NULL, {.kind = WEIR_KIND_DECIMAL, .precision = 5, .scale = 2}, false},
	{"x", NULL, {.kind = WEIR_KIND_DOUBLE}, false},
	{"y", NULL, {.kind = WEIR_KIND_DOUBLE}, false},
	{"s", NULL, {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}, false},
	{"ts", NULL, {.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = 3}, false},
	{"n", NULL, {.kind = WEIR_KIND_BIGINT}, false}, /* a quarter of it NULL */
};

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void input_make(struct input *in, struct weir_mem *m)
{
	uint64_t seed = 7;
	for (uint32_t c = 0; c < COLUMNS; c++) {
		weir_col_init(&in->col[c], weir_type_phys(&columns[c].type));
		in->in[c] = &in->col[c];
	}
	for (uint32_t r = 0; r < WEIR_BATCH_ROWS; r++) {
		in->col[0].i64[r] = (int64_t)(random_next(&seed) % 1000);
		in->col[1].i64[r] = (int64_t)(random_next(&seed) % 1000) + 1;
		in->col[2].i64[r] = (int64_t)(random_next(&seed) % 100000);
		in->col[3].i64[r] = (int64_t)(random_next(&seed) % 9999) + 1;
		in->col[4].f64[r] = (double)(random_next(&seed) % 1000) / 7;
		in->col[5].f64[r] = (double)(random_next(&seed) % 1000) / 3;
		const char *s = weir_mem_printf(m, "m-%06u", (unsigned)(random_next(&seed) % 100));
		in->col[6].str[r] = (struct weir_str){(const uint8_t *)s, (uint32_t)strlen(s), 0};
		in->col[7].i64[r] = INT64_C(1767225600000) + r * 37;
		in->col[8].i64[r] = (int64_t)(random_next(&seed) % 1000);
		if (random_next(&seed) % 4 == 0)
			weir_col_set_null(&in->col[8], r);
	}
	weir_scratch_init(&in->scratch);
}

static const struct weir_expr *bind(struct weir_mem *m, const char *sql)
{
	struct weir_tokens ts;
	struct weir_ast *ast;
	const struct weir_expr *e = NULL;
	struct weir_diag *dg = NULL;
	struct weir_scope scope = {.columns = columns, .count = COLUMNS};
	enum weir_err err = weir_tokens_init(&ts, m, NULL, sql, strlen(sql), 0, &dg);
	if (err == WEIR_OK)
		err = weir_expr_parse(&ts, m, &ast, &dg);
	if (err == WEIR_OK)
		err = weir_expr_bind(&scope, &ts, ast, m, &e, &dg);
	if (err != WEIR_OK)
		fprintf(stderr, "%s\n", weir_diag_report(dg));
	weir_diag_destroy(dg);
	return err == WEIR_OK ? e : NULL;
}

static void run_job(struct weir_bench_state *st, void *arg)
{
	struct job *j = arg;
	struct weir_program *pg;
	struct weir_row_errors *errors = weir_xcalloc(1, sizeof *errors);
	const struct weir_col *out;
	struct weir_sel sel;
	if (j->e == NULL || weir_program_create(&pg, &j->e, 1, NULL) != WEIR_OK) {
		weir_bench_fail(st, "not compiled");
		free(errors);
		return;
	}
	while (weir_bench_keep_running(st)) {
		weir_sel_all(&sel, WEIR_BATCH_ROWS);
		weir_scratch_reset(&j->input->scratch);
		errors->count = 0;
		if (j->filter)
			weir_program_filter(pg, j->input->in, &sel, &j->input->scratch, errors);
		else
			weir_program_run(pg, j->input->in, &sel, &j->input->scratch, &out, errors);
		weir_bench_keep(&sel);
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
	weir_program_destroy(pg);
	free(errors);
}

/* -- the tree, row by row: what a program saves -- */

struct value {
	bool null;
	int64_t v;
};

static struct value walk(const struct input *in, const struct weir_expr *e, uint32_t row)
{
	if (e->op == WEIR_EXPR_COLUMN)
		return (struct value){weir_col_is_null(&in->col[e->column], row), in->col[e->column].i64[row]};
	if (e->op == WEIR_EXPR_CONST)
		return (struct value){e->is_null, e->value.i64};
	if (e->op == WEIR_EXPR_AND) {
		struct value all = {false, 1};
		for (uint32_t i = 0; i < e->arg_count; i++) {
			struct value a = walk(in, e->args[i], row);
			if (!a.null && a.v == 0)
				return a;
			all.null |= a.null;
		}
		return all;
	}
	struct value x = walk(in, e->args[0], row);
	if (e->op == WEIR_EXPR_CAST)
		return x;
	struct value y = walk(in, e->args[1], row), r = {x.null || y.null, 0};
	switch (e->fn->name[0]) {
	case '+':
		r.v = x.v + y.v;
		break;
	case '*':
		r.v = x.v * y.v;
		break;
	case '>':
		r.v = e->fn->name[1] == '=' ? x.v >= y.v : x.v > y.v;
		break;
	default:
		r.v = x.v < y.v;
		break;
	}
	return r;
}

static void run_walk(struct weir_bench_state *st, void *arg)
{
	struct job *j = arg;
	struct weir_sel sel;
	while (weir_bench_keep_running(st)) {
		uint32_t n = 0;
		for (uint32_t r = 0; r < WEIR_BATCH_ROWS; r++) {
			struct value v = walk(j->input, j->e, r);
			sel.row[n] = (uint16_t)r;
			n += !v.null && v.v != 0;
		}
		sel.count = n;
		weir_bench_keep(&sel);
	}
	weir_bench_set_items(st, WEIR_BATCH_ROWS);
}

int main(int argc, char **argv)
{
	static const char *const exprs[] = {
		"a + b",
		"a * 3 + b",
		"n + a",
		"a / b",
		"a > 500",
		"amount + rate",
		"amount * rate",
		"amount / rate",
		"x * y + x",
		"CASE WHEN a < 300 THEN b WHEN a < 600 THEN b * 2 ELSE 0 END",
		"COALESCE(n, a)",
		"s = 'm-000042'",
		"s IN ('m-000001', 'm-000002', 'm-000003', 'm-000004')",
		"s LIKE 'm-%42'",
		"s LIKE '%0_42%'",
		"REGEXP(s, '^m-0+4[0-9]$')",
		"UPPER(s)",
		"SUBSTRING(s, 3)",
		"s || '-' || s",
		"CAST(a AS STRING)",
		"CAST(SUBSTRING(s, 3) AS INT)",
		"MD5(s)",
		"FLOOR(ts TO MINUTE)",
		"ts + INTERVAL '1' HOUR",
		"EXTRACT(HOUR FROM ts)",
		"DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm')",
	};
	static const char hot[] = "a * 3 + b > 1500 AND amount >= 250.00 AND n < 700";
	struct weir_mem m = {0};
	struct input *in = weir_xcalloc(1, sizeof *in);
	struct job job[WEIR_COUNT_OF(exprs)], filter;
	weir_bench_init(&argc, argv);
	input_make(in, &m);
	for (uint32_t i = 0; i < WEIR_COUNT_OF(exprs); i++) {
		job[i] = (struct job){in, bind(&m, exprs[i]), false};
		weir_bench_register(exprs[i], run_job, &job[i]);
	}
	filter = (struct job){in, bind(&m, hot), true};
	weir_bench_register("filter/program", run_job, &filter);
	weir_bench_register("filter/walk", run_walk, &filter);
	int rc = weir_bench_run();
	bool ok = weir_bench_print_ratio("program over walking the tree", "filter/program", "filter/walk", 3.0);
	for (uint32_t c = 0; c < COLUMNS; c++)
		weir_col_fini(&in->col[c]);
	weir_scratch_fini(&in->scratch);
	free(in);
	weir_mem_fini(&m);
	return rc != 0 || !ok;
}
