/* test_list.c: lists of values: what is computed from them while values come and go, and what too many of them do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "hotpath/core/arena.h"
#include "hotpath/state/list.h"
#include "hotpath/state/slot.h"

static const struct weir_type bigint = {.kind = WEIR_KIND_BIGINT};
static const struct weir_type string = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};

struct env {
	struct weir_arena *ar;
	struct weir_blocks blocks;
	struct weir_pages pages;
	struct weir_gen gen;
	struct weir_scratch scratch;
	struct weir_col in, out;
};

static void env_init(struct env *e, const struct weir_type *in, const struct weir_type *out)
{
	memset(e, 0, sizeof *e);
	e->ar = weir_arena_create();
	weir_blocks_init(&e->blocks, e->ar);
	weir_pages_init(&e->pages, &e->blocks);
	weir_gen_init(&e->gen, &e->pages, NULL, 0, 0);
	weir_scratch_init(&e->scratch);
	weir_col_init(&e->in, weir_type_phys(in));
	weir_col_init(&e->out, weir_type_phys(out));
}

static void env_fini(struct env *e)
{
	weir_gen_fini(&e->gen);
	weir_pages_fini(&e->pages);
	weir_blocks_fini(&e->blocks);
	weir_arena_destroy(e->ar);
	weir_scratch_fini(&e->scratch);
	weir_col_fini(&e->in);
	weir_col_fini(&e->out);
}

static struct weir_agg make(const char *name, bool distinct, const struct weir_type *t, uint32_t elements_max)
{
	struct weir_agg a;
	assert_int_equal(weir_agg_resolve(&a, name, distinct, t, NULL), WEIR_OK);
	a.list = true;
	a.elements_max = elements_max;
	return a;
}

static void change(struct env *e, const struct weir_agg *a, struct agg_list *s, int64_t v, bool add)
{
	weir_col_clear_nulls(&e->in);
	e->in.i64[0] = v;
	if (v == INT64_MIN)
		weir_col_set_null(&e->in, 0);
	if (add)
		weir_list_add(a, &e->gen, s, &e->in, 0);
	else
		weir_list_remove(a, &e->gen, s, &e->in, 0);
}

static bool result(struct env *e, const struct weir_agg *a, const struct agg_list *s)
{
	weir_col_clear_nulls(&e->out);
	return weir_list_final(a, s, &e->pages, &e->out, 0, &e->scratch);
}

static void test_values_come_and_go(void **state)
{
	(void)state;
	static const char *const names[] = {"MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "COUNT"};
	static const int64_t all[] = {-3, 9, 5, 5, 4}, without[] = {5, 5, 5, 5, 1};
	for (uint32_t i = 0; i < 5; i++) {
		struct env e;
		env_init(&e, &bigint, &bigint);
		struct weir_agg a = make(names[i], i == 4, &bigint, 100);
		struct agg_list s = {0};
		static const int64_t values[] = {5, 9, -3, 7, 5};
		for (uint32_t k = 0; k < 5; k++)
			change(&e, &a, &s, values[k], true);
		assert_true(result(&e, &a, &s));
		assert_int_equal(e.out.i64[0], all[i]);
		change(&e, &a, &s, -3, false);
		change(&e, &a, &s, 9, false);
		change(&e, &a, &s, 7, false);
		assert_true(result(&e, &a, &s));
		assert_int_equal(e.out.i64[0], without[i]);
		change(&e, &a, &s, 5, false);
		change(&e, &a, &s, 5, false);
		assert_true(result(&e, &a, &s));
		assert_true(i == 4 ? e.out.i64[0] == 0 : weir_col_is_null(&e.out, 0));
		assert_int_equal(s.ref, 0);
		env_fini(&e);
	}
}

static void expect_text(struct env *e, const char *want)
{
	assert_int_equal(e->out.str[0].bytes, strlen(want));
	assert_memory_equal(e->out.str[0].data, want, strlen(want));
}

static void test_an_array_is_json_in_order_of_arrival(void **state)
{
	(void)state;
	struct env e;
	env_init(&e, &bigint, &string);
	struct weir_agg a = make("ARRAY_AGG", false, &bigint, 100);
	struct agg_list s = {0};
	assert_true(result(&e, &a, &s));
	assert_true(weir_col_is_null(&e.out, 0));
	change(&e, &a, &s, 1, true);
	change(&e, &a, &s, INT64_MIN, true);
	change(&e, &a, &s, 3, true);
	change(&e, &a, &s, 1, true);
	assert_true(result(&e, &a, &s));
	expect_text(&e, "[1,null,3,1]");
	change(&e, &a, &s, 1, false);
	change(&e, &a, &s, INT64_MIN, false);
	assert_true(result(&e, &a, &s));
	expect_text(&e, "[3,1]");
	env_fini(&e);
}

/* More than elements_max: NULL, and counted, until all have gone. */
static void test_too_many_values(void **state)
{
	(void)state;
	struct env e;
	env_init(&e, &bigint, &bigint);
	struct weir_agg a = make("MAX", false, &bigint, 3);
	struct agg_list s = {0};
	for (int64_t v = 1; v <= 4; v++)
		change(&e, &a, &s, v, true);
	assert_false(result(&e, &a, &s));
	assert_true(weir_col_is_null(&e.out, 0));
	assert_int_equal(s.ref, 0);
	for (int64_t v = 1; v <= 3; v++)
		change(&e, &a, &s, v, false);
	assert_false(result(&e, &a, &s));
	change(&e, &a, &s, 4, false);
	change(&e, &a, &s, 8, true);
	assert_true(result(&e, &a, &s));
	assert_int_equal(e.out.i64[0], 8);
	env_fini(&e);
}

static void test_damage_is_seen(void **state)
{
	(void)state;
	struct agg_list s = {.used = 13, .n = 1};
	uint8_t payload[16] = {9, 0, 0, 0, 0, 5};
	assert_true(weir_list_check(&s, payload, sizeof payload));
	s.n = 2;
	assert_false(weir_list_check(&s, payload, sizeof payload));
	s.n = 1;
	payload[0] = 200;
	assert_false(weir_list_check(&s, payload, sizeof payload));
	payload[0] = 9;
	s.used = 40;
	assert_false(weir_list_check(&s, payload, sizeof payload));
	assert_false(weir_list_check(&s, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_come_and_go),
		cmocka_unit_test(test_an_array_is_json_in_order_of_arrival),
		cmocka_unit_test(test_too_many_values),
		cmocka_unit_test(test_damage_is_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
