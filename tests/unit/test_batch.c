/* test_batch.c: columns, scratch memory, errors of a batch. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hotpath/core/batch.h"

static void test_column(void **state)
{
	(void)state;
	for (int phys = WEIR_PHYS_U8; phys <= WEIR_PHYS_STR; phys++) {
		struct weir_col c;
		weir_col_init(&c, (enum weir_phys)phys);
		assert_int_equal((uintptr_t)c.data % 64, 0);
		assert_int_equal((uintptr_t)c.nulls % 8, 0);
		size_t bytes = weir_phys_bytes((enum weir_phys)phys) * WEIR_BATCH_ROWS;
		for (size_t i = 0; i < bytes; i++)
			assert_int_equal(c.u8[i], 0);
		memset(c.data, 0xff, bytes); /* leaves the bitmap alone */
		for (uint32_t row = 0; row < WEIR_BATCH_ROWS; row++)
			assert_false((c.nulls[row / 64] >> (row % 64)) & 1);
		weir_col_set_null(&c, 0);
		weir_col_set_null(&c, 1023);
		assert_true(weir_col_is_null(&c, 0));
		assert_false(weir_col_is_null(&c, 1));
		assert_true(weir_col_is_null(&c, 1023));
		weir_col_clear_nulls(&c);
		assert_false(weir_col_is_null(&c, 1023));
		weir_col_fini(&c);
	}
}

static void test_constant_column_looks_at_row_zero(void **state)
{
	(void)state;
	struct weir_col c;
	weir_col_init(&c, WEIR_PHYS_I64);
	c.is_const = true;
	weir_col_set_null(&c, 0);
	assert_true(weir_col_is_null(&c, 700));
	weir_col_fini(&c);
}

static void test_scratch_keeps_chunks(void **state)
{
	(void)state;
	struct weir_scratch s;
	weir_scratch_init(&s);
	for (int round = 0; round < 5; round++) {
		size_t before = s.bytes_total;
		uint8_t *last = NULL;
		for (int i = 0; i < 1000; i++) {
			size_t bytes = (size_t)(i * 7 % 300);
			uint8_t *p = weir_scratch_take(&s, bytes);
			assert_int_equal((uintptr_t)p % 8, 0);
			memset(p, i, bytes);
			if (last != NULL)
				assert_int_equal(last[0], (uint8_t)(i - 1)); /* nobody wrote over it */
			last = bytes > 0 ? p : NULL;
		}
		if (round > 0)
			assert_int_equal(s.bytes_total, before); /* warmed up: nothing is allocated any more */
		weir_scratch_reset(&s);
	}
	weir_scratch_fini(&s);
}

static void test_scratch_lets_a_giant_go(void **state)
{
	(void)state;
	struct weir_scratch s;
	weir_scratch_init(&s);
	uint8_t *small = weir_scratch_take(&s, 100);
	uint8_t *giant = weir_scratch_take(&s, 64 << 20);
	memset(giant, 1, 64 << 20);
	memset(small, 2, 100);
	assert_true(s.bytes_total >= 64u << 20);
	/* Readable beyond its end. */
	uint8_t sum = 0;
	for (size_t i = 0; i < WEIR_PAYLOAD_PAD; i++)
		sum |= giant[(64 << 20) + i];
	assert_int_equal(sum, 0);
	weir_scratch_reset(&s);
	assert_true(s.bytes_total <= 4u << 20);
	assert_non_null(weir_scratch_take(&s, 100));
	/* A reset between takes of every size finds the chunks again. */
	for (int i = 0; i < 200; i++) {
		(void)weir_scratch_take(&s, (size_t)i * 5000);
		if (i % 3 == 0)
			weir_scratch_reset(&s);
		assert_true(s.bytes_total <= 32u << 20);
	}
	weir_scratch_fini(&s);
	weir_scratch_reset(&s);
	weir_scratch_fini(&s);
}

static void test_reason_names(void **state)
{
	(void)state;
	for (int r = 0; r < WEIR_REASON_COUNT; r++) {
		assert_non_null(weir_reason_name((enum weir_reason)r));
		for (int q = 0; q < r; q++)
			assert_string_not_equal(weir_reason_name((enum weir_reason)r),
						weir_reason_name((enum weir_reason)q));
	}
	assert_string_equal(weir_reason_name(WEIR_REASON_NULL_KEY), "null_key");
}

static void test_selection_and_errors(void **state)
{
	(void)state;
	static struct weir_sel sel;
	static struct weir_row_errors re;
	weir_sel_all(&sel, WEIR_BATCH_ROWS);
	assert_int_equal(sel.count, WEIR_BATCH_ROWS);
	assert_int_equal(sel.row[1023], 1023);
	weir_row_errors_add(&re, 9, WEIR_REASON_RANGE, 17, "v", "too large");
	assert_int_equal(re.count, 1);
	assert_int_equal(re.e[0].row, 9);
	assert_int_equal(re.e[0].reason, WEIR_REASON_RANGE);
	assert_int_equal(re.e[0].at, 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_column),
		cmocka_unit_test(test_constant_column_looks_at_row_zero),
		cmocka_unit_test(test_scratch_keeps_chunks),
		cmocka_unit_test(test_scratch_lets_a_giant_go),
		cmocka_unit_test(test_reason_names),
		cmocka_unit_test(test_selection_and_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
