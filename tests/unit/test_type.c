/* test_type.c: types in memory and as text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/support/rows.h"

static const char *text(struct weir_type t)
{
	static char buf[256];
	return weir_type_text(&t, buf, sizeof buf);
}

static void test_text(void **state)
{
	(void)state;
	assert_string_equal(text(TYPE_DECIMAL(12, 2)), "DECIMAL(12, 2)");
	assert_string_equal(text(TYPE_STRING), "STRING");
	assert_string_equal(text(TYPE_VARCHAR(7)), "VARCHAR(7)");
	assert_string_equal(text(TYPE_LTZ(3)), "TIMESTAMP_LTZ(3)");
	struct weir_type t = TYPE_BIGINT;
	t.not_null = true;
	assert_string_equal(text(t), "BIGINT NOT NULL");
	const struct weir_type inner[2] = {TYPE_STRING, t};
	const char *const names[2] = {"a", "b"};
	struct weir_type row = {.kind = WEIR_KIND_ROW, .field_count = 2, .fields = inner, .field_names = names};
	assert_string_equal(text(row), "ROW<a STRING, b BIGINT NOT NULL>");
	struct weir_type array = {.kind = WEIR_KIND_ARRAY, .field_count = 1, .fields = &row};
	assert_string_equal(text(array), "ARRAY<ROW<a STRING, b BIGINT NOT NULL>>");
	char small[10];
	assert_string_equal(weir_type_text(&array, small, sizeof small), "ARRAY<ROW");
	char one[1] = {'x'};
	assert_string_equal(weir_type_text(&array, one, sizeof one), "");
}

static void test_phys(void **state)
{
	(void)state;
	struct weir_type t18 = TYPE_DECIMAL(18, 4), t19 = TYPE_DECIMAL(19, 4), d = TYPE_DATE, s = TYPE_BYTES;
	assert_int_equal(weir_type_phys(&t18), WEIR_PHYS_I64);
	assert_int_equal(weir_type_phys(&t19), WEIR_PHYS_I128);
	assert_int_equal(weir_type_phys(&d), WEIR_PHYS_I64);
	assert_int_equal(weir_type_phys(&s), WEIR_PHYS_STR);
	assert_int_equal(weir_phys_bytes(WEIR_PHYS_U8), 1);
	assert_int_equal(weir_phys_bytes(WEIR_PHYS_I128), 16);
	assert_int_equal(weir_phys_bytes(WEIR_PHYS_STR), sizeof(struct weir_str));
}

static void test_equal(void **state)
{
	(void)state;
	struct weir_type a = TYPE_DECIMAL(12, 2), b = a;
	b.not_null = true;
	assert_true(weir_type_equal(&a, &b));
	b.scale = 3;
	assert_false(weir_type_equal(&a, &b));
	struct weir_type i = TYPE_INT, l = TYPE_BIGINT;
	assert_false(weir_type_equal(&i, &l));
	const char *const x[1] = {"x"}, *const y[1] = {"y"};
	struct weir_type r1 = {.kind = WEIR_KIND_ROW, .field_count = 1, .fields = &i, .field_names = x}, r2 = r1,
			 r3 = r1;
	r2.field_names = y;
	r3.fields = &l;
	assert_true(weir_type_equal(&r1, &r1));
	assert_false(weir_type_equal(&r1, &r2));
	assert_false(weir_type_equal(&r1, &r3));
	struct weir_type m3 = TYPE_TIMESTAMP(3), m6 = TYPE_TIMESTAMP(6);
	assert_false(weir_type_equal(&m3, &m6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_phys),
		cmocka_unit_test(test_equal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
