/* test_aggregate.c: types of aggregates; results at the edges: NULLs, overflow, infinities, rounding, merges. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "hotpath/core/diag.h"
#include "hotpath/state/agg_state.h"
#include "hotpath/state/slot.h"
#include "tests/support/state_rig.h"

static struct weir_state_def one_window(void)
{
	return (struct weir_state_def){.kind = WEIR_STATE_WINDOW, .size_ms = 100, .advance_ms = 100};
}
/* Two panes, so that every aggregate is merged: rows at ts < 50 and from 50 on. */
static struct weir_state_def two_panes(void)
{
	return (struct weir_state_def){.kind = WEIR_STATE_WINDOW, .size_ms = 100, .advance_ms = 50};
}

/* Result text of window [0,100) of key 1 without "+I k1 [0,100)" and time; rows alternate between both panes. */
static const char *result_of(struct rig *rg, const struct weir_state_def *def, const char *aggs,
			     const struct rig_row *rows, uint32_t count)
{
	static char text[65536];
	rig_init(rg, def, aggs, 1);
	for (uint32_t i = 0; i < count; i++) {
		struct rig_row r = rows[i];
		r.key = 1;
		r.ts = i % 2 * 50;
		rig_add(rg, &r);
	}
	rig_apply(rg);
	rig_close(rg, 100, false);
	const char *all = rig_text(rg);
	assert_memory_equal(all, "+I k1 [0,100) ", 14);
	size_t n = strcspn(all + 14, "@");
	memcpy(text, all + 14, n - 1);
	text[n - 1] = 0;
	return text;
}

/* The same result whether merged from panes or not. */
static void check(const char *aggs, const struct rig_row *rows, uint32_t count, const char *want, uint64_t agg_errors)
{
	for (int panes = 0; panes < 2; panes++) {
		struct rig rg;
		struct weir_state_def def = panes ? two_panes() : one_window();
		assert_string_equal(result_of(&rg, &def, aggs, rows, count), want);
		assert_int_equal(rg.agg_errors, agg_errors);
		rig_fini(&rg);
	}
}

static void test_nulls_are_ignored(void **state)
{
	(void)state;
	static const struct rig_row nothing[] = {{.null = true}, {.null = true}};
	check("COUNT(*) COUNT:0 COUNT_DISTINCT:2 SUM:0 SUM:1 SUM:3 AVG:0 AVG:1 MIN:0 MAX:2", nothing, 2,
	      "2 0 0 null null null null null null null", 0);
	check("FIRST_VALUE:2 LAST_VALUE:0 STDDEV_POP:0 VAR_SAMP:1 MIN:3 MAX:1", nothing, 2,
	      "null null null null null null", 0);
	static const struct rig_row some[] = {
		{.null = true}, {.value = 3, .text = "b"}, {.null = true}, {.value = 5, .text = ""}};
	check("COUNT(*) COUNT:0 SUM:0 AVG:0 MIN:0 MAX:0 FIRST_VALUE:0 LAST_VALUE:0 MIN:2 COUNT:2", some, 4,
	      "4 2 8 4 3 5 3 5  2", 0);
}

static void test_filter(void **state)
{
	(void)state;
	static const struct rig_row rows[] = {
		{.value = 1, .flag = true}, {.value = 2}, {.value = 4, .flag = true}, {.value = 8}};
	check("COUNT(*):4 SUM:0:4 COUNT(*) SUM:0 MAX:0:4 LAST_VALUE:0:4", rows, 4, "2 5 4 15 4 4", 0);
}

static void test_sum_that_does_not_fit_is_null(void **state)
{
	(void)state;
	static const struct rig_row over[] = {{.value = INT64_MAX}, {.value = 1}};
	check("SUM:0 COUNT(*)", over, 2, "null 2", 1);
	/* On the way there it may: only the result counts. */
	static const struct rig_row back[] = {
		{.value = INT64_MAX}, {.value = INT64_MAX}, {.value = -INT64_MAX}, {.value = -7}};
	check("SUM:0 AVG:0", back, 4, "9223372036854775800 2305843009213693950", 0);
	static const struct rig_row ints[] = {{.value = INT32_MAX}, {.value = 1}};
	check("SUM:6 MAX:6", ints, 2, "null 2147483647", 1);
}

static weir_i128 nines(void)
{
	weir_i128 v = 0;
	for (int i = 0; i < 38; i++)
		v = v * 10 + 9;
	return v;
}

static void test_wide_decimal_overflow(void **state)
{
	(void)state;
	struct rig_row two[] = {{.wide = nines()}, {.wide = nines()}};
	check("SUM:3 MAX:3 COUNT(*)", two, 2, "null 99999999999999999999999999999999999999 2", 1);
	struct rig_row back[] = {{.wide = nines()},  {.wide = nines()},  {.wide = nines()},
				 {.wide = -nines()}, {.wide = -nines()}, {.wide = -1}};
	check("SUM:3", back, 6, "99999999999999999999999999999999999998", 0);
	/* The average of what does not fit into 128 bits any more; its type has 6 more digits, so only small ones fit.
	 */
	struct rig_row avg[] = {{.wide = nines() / 1000000}, {.wide = nines() / 1000000}, {.wide = -1}, {.wide = 1}};
	check("AVG:3", avg, 4, "49999999999999999999999999999999500000", 0);
	check("AVG:3 COUNT(*)", two, 2, "null 2", 1);
}

static void test_decimal_average_rounds_half_up(void **state)
{
	(void)state;
	/* DECIMAL(12,2) to DECIMAL(38,6): 0.01 / 3, 0.02 / 3 and their negatives. */
	static const struct rig_row a[] = {{.value = 1}, {.value = 0}, {.value = 0}};
	check("AVG:5", a, 3, "3333", 0);
	static const struct rig_row b[] = {{.value = 2}, {.value = 0}, {.value = 0}};
	check("AVG:5", b, 3, "6667", 0);
	static const struct rig_row c[] = {{.value = -2}, {.value = 0}, {.value = 0}};
	check("AVG:5", c, 3, "-6667", 0);
	/* Integers are truncated toward zero. */
	static const struct rig_row d[] = {{.value = -7}, {.value = 0}};
	check("AVG:0", d, 2, "-3", 0);
}

static void test_double_sum_is_compensated(void **state)
{
	(void)state;
	struct rig_row rows[101] = {{.real = 1e16}};
	for (int i = 1; i < 101; i++)
		rows[i].real = 1.0;
	check("SUM:1", rows, 101, "1.00000000000001e+16", 0);
	struct rig rg;
	struct weir_state_def def = two_panes();
	rig_init(&rg, &def, "SUM:1", 1);
	for (int i = 0; i < 101; i++) {
		rows[i].ts = i == 0 ? 0 : 50;
		rig_add(&rg, &rows[i]);
	}
	rig_apply(&rg);
	struct weir_closed *cl = weir_slot_close(rg.slots[0], 100, false, &rg.end_max);
	weir_closed_sort(cl);
	assert_int_equal(weir_closed_read(cl, 0, &rg.rows), 1);
	assert_true(rg.rows.cols[1].f64[0] == 1e16 + 100);
	weir_closed_release(rg.slots[0], cl);
	rig_fini(&rg);
}

static void test_double_specials(void **state)
{
	(void)state;
	static const struct rig_row over[] = {{.real = 1.7e308}, {.real = 1.7e308}};
	check("SUM:1 AVG:1 COUNT:1", over, 2, "null null 2", 2);
	static const struct rig_row inf[] = {{.real = INFINITY}, {.real = 1}};
	check("SUM:1 AVG:1 MIN:1 MAX:1", inf, 2, "inf inf 1 inf", 0);
	static const struct rig_row both[] = {{.real = INFINITY}, {.real = -INFINITY}};
	for (int panes = 0; panes < 2; panes++) {
		struct rig rg;
		struct weir_state_def def = panes ? two_panes() : one_window();
		const char *text = result_of(&rg, &def, "SUM:1 COUNT:1", both, 2);
		assert_non_null(strstr(text, "nan 2"));
		assert_int_equal(rg.agg_errors, 0);
		rig_fini(&rg);
	}
	/* NaN is above every number. */
	static const struct rig_row nan[] = {{.real = 3}, {.real = NAN}, {.real = INFINITY}};
	check("MIN:1 COUNT_DISTINCT:1", nan, 3, "3 3", 0);
}

static void test_distinct(void **state)
{
	(void)state;
	static const struct rig_row zeros[] = {{.real = 0.0}, {.real = -0.0}, {.real = NAN}, {.real = -NAN}};
	check("COUNT_DISTINCT:1", zeros, 4, "2", 0);
	static const struct rig_row text[] = {{.text = ""}, {.text = "a"},  {.text = "a"},
					      {.text = ""}, {.text = "aa"}, {.text = "a"}};
	check("COUNT_DISTINCT:2 COUNT:2", text, 6, "3 6", 0);
	static struct rig_row many[WEIR_BATCH_ROWS];
	for (int i = 0; i < WEIR_BATCH_ROWS; i++)
		many[i] = (struct rig_row){.value = i % 700, .wide = (weir_i128)(i % 300) << 70};
	check("COUNT_DISTINCT:0 COUNT_DISTINCT:3", many, WEIR_BATCH_ROWS, "700 300", 0);
}

static void test_text_grows_and_shrinks(void **state)
{
	(void)state;
	static char large[30000];
	memset(large, 'z', sizeof large - 1);
	const struct rig_row rows[] = {
		{.text = "b"}, {.text = "bbbbbbbbbbbbbbbbbbbbbbbb"}, {.text = large}, {.text = "a"}, {.text = "cc"}};
	check("MIN:2 LAST_VALUE:2 FIRST_VALUE:2", rows, 5, "a cc b", 0);
	struct rig rg;
	struct weir_state_def def = two_panes();
	const char *text = result_of(&rg, &def, "COUNT(*) LAST_VALUE:2", rows, 3);
	assert_memory_equal(text, "3 zzzz", 6);
	rig_fini(&rg);
}

static void test_first_and_last_go_by_arrival(void **state)
{
	(void)state;
	/* Alternating panes: the first pane's last value arrives after the second pane's. */
	static const struct rig_row rows[] = {{.null = true},
					      {.value = 2, .text = "two", .wide = 2, .real = 2, .flag = true},
					      {.value = 3, .text = "three", .wide = 3, .real = 3}};
	check("FIRST_VALUE:0 LAST_VALUE:0 FIRST_VALUE:2 LAST_VALUE:2 FIRST_VALUE:3 LAST_VALUE:1", rows, 3,
	      "2 3 two three 2 3", 0);
	check("FIRST_VALUE:4 LAST_VALUE:4 MIN:4 MAX:4", rows, 3, "0 0 0 1", 0);
}

static void test_variance(void **state)
{
	(void)state;
	static const struct rig_row rows[] = {{.value = 2, .real = 2}, {.value = 4, .real = 4}, {.value = 4, .real = 4},
					      {.value = 4, .real = 4}, {.value = 5, .real = 5}, {.value = 5, .real = 5},
					      {.value = 7, .real = 7}, {.value = 9, .real = 9}};
	check("STDDEV_POP:0 VAR_POP:1", rows, 8, "2 4", 0);
	for (int panes = 0; panes < 2; panes++) {
		struct rig rg;
		struct weir_state_def def = panes ? two_panes() : one_window();
		double v = strtod(result_of(&rg, &def, "VAR_SAMP:5", rows, 8), NULL);
		assert_true(fabs(v - 32.0 / 7 / 10000) < 1e-12);
		rig_fini(&rg);
	}
	check("STDDEV_SAMP:0 STDDEV_POP:0", rows, 1, "null 0", 0);
}

static void check_type(const char *name, bool distinct, const struct weir_type *arg, const char *want)
{
	struct weir_agg a;
	char text[64];
	assert_int_equal(weir_agg_resolve(&a, name, distinct, arg, NULL), WEIR_OK);
	assert_string_equal(weir_type_text(&a.result_type, text, sizeof text), want);
}

static void check_refused(const char *name, bool distinct, const struct weir_type *arg, const char *want)
{
	struct weir_agg a;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_agg_resolve(&a, name, distinct, arg, &dg), WEIR_E_PLAN);
	assert_non_null(strstr(weir_diag_text(dg), want));
	weir_diag_destroy(dg);
}

static void test_types(void **state)
{
	(void)state;
	struct weir_type bigint = rig_type(RIG_BIGINT), real = rig_type(RIG_DOUBLE), text = rig_type(RIG_STRING);
	struct weir_type wide = rig_type(RIG_DECIMAL38), decimal = rig_type(RIG_DECIMAL12), i32 = rig_type(RIG_INT);
	struct weir_type flag = rig_type(RIG_BOOLEAN), time = {.kind = WEIR_KIND_TIMESTAMP, .precision = 3};
	struct weir_type array = {.kind = WEIR_KIND_ARRAY, .field_count = 1, .fields = &bigint};
	struct weir_type deep = {.kind = WEIR_KIND_DECIMAL, .precision = 20, .scale = 9},
			 small = {.kind = WEIR_KIND_FLOAT};
	check_type("count", false, NULL, "BIGINT NOT NULL");
	check_type("COUNT", true, &text, "BIGINT NOT NULL");
	check_type("SUM", false, &bigint, "BIGINT");
	check_type("sum", false, &i32, "INT");
	check_type("SUM", false, &decimal, "DECIMAL(38, 2)");
	check_type("AVG", false, &decimal, "DECIMAL(38, 6)");
	check_type("AVG", false, &deep, "DECIMAL(38, 9)");
	check_type("AVG", false, &wide, "DECIMAL(38, 6)");
	check_type("AVG", false, &i32, "INT");
	check_type("AVG", false, &small, "FLOAT");
	check_type("SUM", false, &real, "DOUBLE");
	check_type("MIN", true, &text, "STRING");
	check_type("MAX", false, &flag, "BOOLEAN");
	check_type("First_Value", false, &time, "TIMESTAMP(3)");
	check_type("STDDEV", false, &decimal, "DOUBLE");
	check_refused("SUM", false, &text, "SUM takes a number, not STRING");
	check_refused("AVG", false, &time, "AVG takes a number");
	check_refused("SUM", true, &bigint, "DISTINCT is for COUNT");
	check_refused("SUM", false, NULL, "takes one argument");
	check_refused("MIN", false, &array, "MIN takes a value with an order");
	check_refused("MEDIAN", false, &bigint, "MEDIAN is not an aggregate function");
}

static void test_definition_is_checked(void **state)
{
	(void)state;
	static const struct {
		struct weir_state_def def;
		const char *want;
	} bad[] = {
		{{.kind = WEIR_STATE_WINDOW, .size_ms = 0, .advance_ms = 1}, "size must be between 1"},
		{{.kind = WEIR_STATE_WINDOW, .size_ms = -5, .advance_ms = 1}, "size must be between 1"},
		{{.kind = WEIR_STATE_WINDOW, .size_ms = INT64_MAX, .advance_ms = 1}, "size must be between 1"},
		{{.kind = WEIR_STATE_WINDOW, .size_ms = 5, .advance_ms = 6}, "advance (6 ms) is larger than its size"},
		{{.kind = WEIR_STATE_WINDOW, .size_ms = 100000000, .advance_ms = 1}, "every record would fall into"},
		{{.kind = WEIR_STATE_SESSION, .gap_ms = 0}, "gap must be between 1"},
		{{.kind = WEIR_STATE_TABLE, .grace_ms = -1}, "grace period must be between 0"},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		struct weir_state_def def = bad[i].def;
		struct weir_diag *dg = NULL;
		assert_int_equal(weir_state_def_init(&def, &dg), WEIR_E_PLAN);
		assert_non_null(strstr(weir_diag_text(dg), bad[i].want));
		weir_diag_destroy(dg);
	}
}

static void test_fingerprint(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_buf out = {0};
	struct weir_state_def def = two_panes();
	rig_init(&rg, &def, "COUNT(*) SUM:5:4", 1);
	weir_state_def_fingerprint(&rg.def, &out);
	weir_buf_put_byte(&out, 0);
	assert_string_equal((const char *)out.data, "rig window size=100 advance=50 offset=0 pane=50 keys(STRING) "
						    "aggregates(COUNT_STAR, SUM DECIMAL(12, 2) where filtered)");
	weir_buf_fini(&out);
	rig_fini(&rg);
}

/* States that restore must refuse: what a body says of a text and the text do not agree. */
static void test_damaged_texts_are_refused(void **state)
{
	(void)state;
	struct rig rg;
	struct weir_state_def def = two_panes();
	rig_init(&rg, &def, "LAST_VALUE:2 FIRST_VALUE:2 MIN:2", 1);
	const uint8_t payload[16] = "a text";
	for (uint32_t i = 0; i < 3; i++) {
		const struct weir_agg *a = &rg.def.aggs[i];
		bool pick = i < 2;
		struct agg_text none = {{0, 0}, 0}, full = {{1, 6}, 9}, lost = {{0, 0}, 9}, early = {{1, 6}, 0},
				long_one = {{1, 17}, 9}, long_none = {{0, 6}, 0};
		assert_true(weir_agg_check(a, (const uint8_t *)&none, NULL, 0));
		assert_true(weir_agg_check(a, (const uint8_t *)&full, payload, sizeof payload));
		assert_int_equal(weir_agg_check(a, (const uint8_t *)&lost, NULL, 0), !pick);
		assert_int_equal(weir_agg_check(a, (const uint8_t *)&early, payload, sizeof payload), !pick);
		assert_false(weir_agg_check(a, (const uint8_t *)&long_one, payload, sizeof payload));
		assert_false(weir_agg_check(a, (const uint8_t *)&long_none, NULL, 0));
	}
	rig_fini(&rg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nulls_are_ignored),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_sum_that_does_not_fit_is_null),
		cmocka_unit_test(test_wide_decimal_overflow),
		cmocka_unit_test(test_decimal_average_rounds_half_up),
		cmocka_unit_test(test_double_sum_is_compensated),
		cmocka_unit_test(test_double_specials),
		cmocka_unit_test(test_distinct),
		cmocka_unit_test(test_text_grows_and_shrinks),
		cmocka_unit_test(test_first_and_last_go_by_arrival),
		cmocka_unit_test(test_variance),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_definition_is_checked),
		cmocka_unit_test(test_fingerprint),
		cmocka_unit_test(test_damaged_texts_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
