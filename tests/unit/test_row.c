/* test_row.c: rows to bytes and back, NULLs, long strings, damaged bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/state/row.h"

enum { COLS = 5 };
static const enum weir_phys phys[COLS] = {WEIR_PHYS_U8, WEIR_PHYS_I64, WEIR_PHYS_F64, WEIR_PHYS_I128, WEIR_PHYS_STR};

struct rig {
	struct weir_col col[COLS];
	const struct weir_col *ptr[COLS];
};

static void rig_init(struct rig *rg)
{
	for (int i = 0; i < COLS; i++) {
		weir_col_init(&rg->col[i], phys[i]);
		rg->ptr[i] = &rg->col[i];
	}
}

static void rig_fini(struct rig *rg)
{
	for (int i = 0; i < COLS; i++)
		weir_col_fini(&rg->col[i]);
}

static void fill(struct rig *rg, uint32_t row, const char *text, uint32_t bytes)
{
	rg->col[0].u8[row] = 1;
	rg->col[1].i64[row] = INT64_MIN + row;
	rg->col[2].f64[row] = -0.5;
	rg->col[3].i128[row] = -((weir_i128)7 << 90);
	rg->col[4].str[row] = (struct weir_str){(const uint8_t *)text, bytes, 0};
}

static void test_values_come_back(void **state)
{
	(void)state;
	static const uint32_t lengths[] = {0, 1, 254, 255, 256, 70000};
	char *text = malloc(70000);
	memset(text, 'x', 70000);
	for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
		for (uint32_t nulls = 0; nulls < 1u << COLS; nulls++) {
			struct rig a, b;
			rig_init(&a);
			rig_init(&b);
			fill(&a, 3, text, lengths[n]);
			for (uint32_t c = 0; c < COLS; c++)
				if (nulls >> c & 1)
					weir_col_set_null(&a.col[c], 3);
			uint64_t bytes = weir_row_bytes(a.ptr, COLS, 3);
			uint8_t *data = malloc(bytes);
			assert_ptr_equal(weir_row_pack(a.ptr, COLS, 3, data), data + bytes);
			struct weir_scratch own;
			weir_scratch_init(&own);
			weir_row_unpack(data, (uint32_t)bytes, b.col, COLS, 9, nulls & 1 ? &own : NULL);
			for (uint32_t c = 0; c < COLS; c++)
				assert_int_equal(weir_col_is_null(&b.col[c], 9), nulls >> c & 1);
			if (!(nulls & 1))
				assert_int_equal(b.col[0].u8[9], 1);
			if (!(nulls & 2))
				assert_int_equal(b.col[1].i64[9], INT64_MIN + 3);
			if (!(nulls & 4))
				assert_true(b.col[2].f64[9] == -0.5);
			if (!(nulls & 8))
				assert_true(b.col[3].i128[9] == -((weir_i128)7 << 90));
			if (!(nulls & 16)) {
				assert_int_equal(b.col[4].str[9].bytes, lengths[n]);
				assert_non_null(b.col[4].str[9].data);
				assert_memory_equal(b.col[4].str[9].data, text, lengths[n]);
			}
			weir_scratch_fini(&own);
			free(data);
			rig_fini(&a);
			rig_fini(&b);
		}
	}
	free(text);
}

/* Every prefix is read without a byte beyond it (sanitizers watch) and leaves NULLs. */
static void test_damage_leaves_nulls(void **state)
{
	(void)state;
	struct rig a, b;
	rig_init(&a);
	rig_init(&b);
	fill(&a, 0, "hello", 5);
	uint64_t bytes = weir_row_bytes(a.ptr, COLS, 0);
	uint8_t whole[128];
	assert_true(bytes <= sizeof whole);
	(void)weir_row_pack(a.ptr, COLS, 0, whole);
	for (uint32_t n = 0; n < bytes; n++) {
		uint8_t *part = malloc(n + !n);
		memcpy(part, whole, n);
		for (int c = 0; c < COLS; c++)
			weir_col_clear_nulls(&b.col[c]);
		weir_row_unpack(part, n, b.col, COLS, 0, NULL);
		assert_true(weir_col_is_null(&b.col[COLS - 1], 0));
		free(part);
	}
	rig_fini(&a);
	rig_fini(&b);
}

/* Many rows at once, whole or cut, with NULLs or without, some not there: as one by one. */
static void test_many_rows(void **state)
{
	(void)state;
	enum { WIDE = 2 * COLS, MANY = 40 };
	uint8_t text[300];
	struct weir_col a[WIDE], b[WIDE], one[WIDE];
	const struct weir_col *ptr[WIDE];
	for (uint32_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)(i * 7);
	for (uint32_t round = 0; round < 600; round++) {
		uint32_t count = (uint32_t)rand() % (WIDE + 1), row_count = (uint32_t)rand() % (MANY + 1);
		uint32_t nulls = round % 3 == 0 ? 8 : 0, cut = round % 4 == 1 ? 30 : 0, absent = round % 5 == 2 ? 6 : 0;
		struct weir_packed packed[MANY];
		uint16_t rows[MANY];
		struct weir_scratch own;
		weir_scratch_init(&own);
		for (uint32_t c = 0; c < count; c++) {
			enum weir_phys kind = phys[rand() % COLS];
			weir_col_init(&a[c], kind);
			weir_col_init(&b[c], kind);
			weir_col_init(&one[c], kind);
			ptr[c] = &a[c];
		}
		for (uint32_t i = 0; i < row_count; i++) {
			for (uint32_t c = 0; c < count; c++) {
				if (nulls && (uint32_t)rand() % nulls == 0)
					weir_col_set_null(&a[c], i);
				else if (a[c].phys == WEIR_PHYS_STR)
					a[c].str[i] = (struct weir_str){
						text, (uint32_t)rand() % (rand() % 4 ? 20 : sizeof text), 0};
				else
					memcpy((uint8_t *)a[c].data + i * weir_phys_bytes(a[c].phys),
					       text + rand() % 200, weir_phys_bytes(a[c].phys));
			}
			uint32_t bytes = (uint32_t)weir_row_bytes(ptr, count, i);
			uint8_t *whole = malloc(bytes + !bytes), *data;
			(void)weir_row_pack(ptr, count, i, whole);
			if (cut && bytes && (uint32_t)rand() % cut == 0)
				bytes = (uint32_t)rand() % bytes;
			data = malloc(bytes + !bytes);
			memcpy(data, whole, bytes);
			free(whole);
			packed[i] = (struct weir_packed){data, bytes};
			if (absent && (uint32_t)rand() % absent == 0) {
				free(data);
				packed[i] = (struct weir_packed){NULL, 0};
			}
			rows[i] = (uint16_t)(i * 3 + 1);
		}
		bool copies = round % 2;
		weir_row_unpack_many(packed, rows, row_count, b, count, copies ? &own : NULL);
		for (uint32_t i = 0; i < row_count; i++) {
			uint32_t r = rows[i];
			if (packed[i].data != NULL)
				(void)weir_row_unpack(packed[i].data, packed[i].bytes, one, count, r, NULL);
			else
				weir_row_set_null(one, count, r);
			for (uint32_t c = 0; c < count; c++) {
				size_t bytes = weir_phys_bytes(b[c].phys);
				assert_int_equal(weir_col_is_null(&b[c], r), weir_col_is_null(&one[c], r));
				if (weir_col_is_null(&b[c], r))
					continue;
				if (b[c].phys != WEIR_PHYS_STR) {
					assert_memory_equal((uint8_t *)b[c].data + r * bytes,
							    (uint8_t *)one[c].data + r * bytes, bytes);
					continue;
				}
				assert_int_equal(b[c].str[r].bytes, one[c].str[r].bytes);
				assert_memory_equal(b[c].str[r].data, one[c].str[r].data, b[c].str[r].bytes);
				assert_true(copies == (b[c].str[r].data != one[c].str[r].data));
			}
		}
		for (uint32_t i = 0; i < row_count; i++)
			free((void *)(uintptr_t)packed[i].data);
		for (uint32_t c = 0; c < count; c++) {
			weir_col_fini(&a[c]);
			weir_col_fini(&b[c]);
			weir_col_fini(&one[c]);
		}
		weir_scratch_fini(&own);
	}
}

/* Rows without NULLs, written side by side: the same as one by one, with strings left where they are or copied. */
static void test_plain_rows(void **state)
{
	(void)state;
	enum { ROWS = 300, FIRST = 77 };
	static const enum weir_kind kinds[COLS] = {WEIR_KIND_BOOLEAN, WEIR_KIND_BIGINT, WEIR_KIND_DOUBLE,
						   WEIR_KIND_DECIMAL, WEIR_KIND_VARCHAR};
	static const uint32_t lengths[] = {0, 1, 254, 255, 256, 70000, 12, 7};
	struct weir_type types[3 * COLS];
	struct weir_col a[3 * COLS], b[3 * COLS];
	const struct weir_col *ptr[3 * COLS];
	uint8_t *text = malloc(70000 + ROWS), *data[ROWS];
	for (uint32_t i = 0; i < 70000 + ROWS; i++)
		text[i] = (uint8_t)i;
	for (uint32_t c = 0; c < 3 * COLS; c++) {
		uint32_t kind = c < COLS ? c : c * 7 % COLS; /* strings in the middle, and side by side */
		types[c] = (struct weir_type){.kind = kinds[kind], .precision = 38, .scale = 2, .length = INT32_MAX};
		assert_int_equal(weir_type_phys(&types[c]), phys[kind]);
		weir_col_init(&a[c], phys[kind]);
		weir_col_init(&b[c], phys[kind]);
		ptr[c] = &a[c];
	}
	for (uint32_t count = 1; count <= 3 * COLS; count++) {
		uint32_t row_count = count == 9 ? ROWS : count % 6;
		const uint8_t *at[ROWS];
		struct weir_scratch own;
		weir_scratch_init(&own);
		for (uint32_t i = 0; i < row_count; i++) {
			for (uint32_t c = 0; c < count; c++) {
				uint8_t v[16];
				for (uint32_t k = 0; k < sizeof v; k++)
					v[k] = (uint8_t)(i * 31 + c * 7 + k);
				if (a[c].phys == WEIR_PHYS_STR)
					a[c].str[i] = (struct weir_str){text + i, lengths[(i + c) % 8], 0};
				else
					memcpy((uint8_t *)a[c].data + i * weir_phys_bytes(a[c].phys), v,
					       weir_phys_bytes(a[c].phys));
			}
			uint64_t bytes = weir_row_bytes(ptr, count, i);
			data[i] = malloc(bytes);
			(void)weir_row_pack(ptr, count, i, data[i]);
			assert_true(weir_row_is_plain(data[i], (uint32_t)bytes, types, count));
			assert_false(weir_row_is_plain(data[i], (uint32_t)bytes - 1, types, count));
			assert_false(weir_row_is_plain(data[i], 0, types, count));
			for (uint32_t c = 0; c < count; c++) {
				data[i][c / 8] ^= (uint8_t)(1u << c % 8);
				assert_false(weir_row_is_plain(data[i], (uint32_t)bytes, types, count));
				data[i][c / 8] ^= (uint8_t)(1u << c % 8);
			}
			at[i] = data[i];
		}
		bool copies = count % 2 != 0;
		weir_row_unpack_plain(at, row_count, b, count, FIRST, copies ? &own : NULL);
		for (uint32_t i = 0; i < row_count && copies; i++)
			free(data[i]);
		for (uint32_t i = 0; i < row_count; i++) {
			for (uint32_t c = 0; c < count; c++) {
				size_t bytes = weir_phys_bytes(a[c].phys);
				if (a[c].phys != WEIR_PHYS_STR) {
					assert_memory_equal((uint8_t *)a[c].data + i * bytes,
							    (uint8_t *)b[c].data + (FIRST + i) * bytes, bytes);
					continue;
				}
				assert_int_equal(b[c].str[FIRST + i].bytes, a[c].str[i].bytes);
				assert_int_equal(b[c].str[FIRST + i].pad, 0);
				assert_memory_equal(b[c].str[FIRST + i].data, a[c].str[i].data, a[c].str[i].bytes);
			}
			if (!copies)
				free(data[i]);
		}
		weir_scratch_fini(&own);
	}
	for (uint32_t c = 0; c < 3 * COLS; c++) {
		weir_col_fini(&a[c]);
		weir_col_fini(&b[c]);
	}
	free(text);
}

static void test_a_constant_stands_for_every_row(void **state)
{
	(void)state;
	struct rig a, b;
	rig_init(&a);
	rig_init(&b);
	fill(&a, 0, "same", 4);
	for (int c = 0; c < COLS; c++)
		a.col[c].is_const = true;
	uint8_t data[128];
	uint64_t bytes = weir_row_bytes(a.ptr, COLS, 77);
	(void)weir_row_pack(a.ptr, COLS, 77, data);
	weir_row_unpack(data, (uint32_t)bytes, b.col, COLS, 1, NULL);
	assert_int_equal(b.col[1].i64[1], INT64_MIN);
	assert_memory_equal(b.col[4].str[1].data, "same", 4);
	weir_row_set_null(b.col, COLS, 1);
	for (int c = 0; c < COLS; c++)
		assert_true(weir_col_is_null(&b.col[c], 1));
	rig_fini(&a);
	rig_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_come_back),
		cmocka_unit_test(test_damage_leaves_nulls),
		cmocka_unit_test(test_many_rows),
		cmocka_unit_test(test_plain_rows),
		cmocka_unit_test(test_a_constant_stands_for_every_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
