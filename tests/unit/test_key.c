/* test_key.c: key bytes: order, round trip, NULLs, damaged bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/state/state.h"

static struct weir_scratch scratch;
static struct weir_keyed keyed;

static int key_compare(uint32_t a, uint32_t b)
{
	uint32_t n = keyed.key_bytes[a] < keyed.key_bytes[b] ? keyed.key_bytes[a] : keyed.key_bytes[b];
	int c = memcmp(keyed.key[a], keyed.key[b], n);
	return c != 0 ? c : (keyed.key_bytes[a] > keyed.key_bytes[b]) - (keyed.key_bytes[a] < keyed.key_bytes[b]);
}

/* Encodes rows [0, n) of one column and checks that keys ascend strictly and read back the same. */
static void check_ascending(struct weir_col *c, const struct weir_type *t, uint32_t n)
{
	struct weir_sel sel;
	const struct weir_col *cols[] = {c};
	struct weir_col back;
	weir_col_init(&back, c->phys);
	weir_sel_all(&sel, n);
	weir_key_encode(cols, t, 1, &sel, &scratch, &keyed);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(keyed.hash[i] == weir_hash(keyed.key[i], keyed.key_bytes[i]));
		if (i > 0)
			assert_true(key_compare(i - 1, i) < 0);
		weir_key_decode(keyed.key[i], keyed.key_bytes[i], t, 1, &back, i, &scratch);
		assert_int_equal(weir_col_is_null(&back, i), weir_col_is_null(c, i));
		if (weir_col_is_null(c, i))
			continue;
		if (c->phys == WEIR_PHYS_STR) {
			assert_int_equal(back.str[i].bytes, c->str[i].bytes);
			assert_memory_equal(back.str[i].data, c->str[i].data, c->str[i].bytes);
		} else {
			size_t w = weir_phys_bytes(c->phys);
			assert_memory_equal((uint8_t *)back.data + i * w, (uint8_t *)c->data + i * w, w);
		}
	}
	weir_col_fini(&back);
	weir_scratch_reset(&scratch);
}

static void test_integers(void **state)
{
	(void)state;
	static const int64_t v[][7] = {
		{0, INT8_MIN, -2, -1, 0, 1, INT8_MAX},
		{0, INT16_MIN, -300, -1, 0, 300, INT16_MAX},
		{0, INT32_MIN, -70000, -1, 0, 70000, INT32_MAX},
		{0, INT64_MIN, -(INT64_C(1) << 40), -1, 0, INT64_C(1) << 40, INT64_MAX},
	};
	static const uint32_t bytes[] = {2, 3, 5, 9};
	for (int k = 0; k < 4; k++) {
		struct weir_type t = {.kind = (enum weir_kind)(WEIR_KIND_TINYINT + k)};
		struct weir_col c;
		weir_col_init(&c, WEIR_PHYS_I64);
		memcpy(c.i64, v[k], sizeof v[k]);
		weir_col_set_null(&c, 0);
		check_ascending(&c, &t, 7);
		assert_int_equal(keyed.key_bytes[0], 1);
		assert_int_equal(keyed.key_bytes[1], bytes[k]);
		weir_col_fini(&c);
	}
}

static void test_doubles(void **state)
{
	(void)state;
	struct weir_type t = {.kind = WEIR_KIND_DOUBLE};
	struct weir_col c;
	weir_col_init(&c, WEIR_PHYS_F64);
	static const double v[] = {-INFINITY, -1e300, -1.5, -5e-324, 0, 5e-324, 1.5, 1e300, INFINITY};
	memcpy(c.f64, v, sizeof v);
	check_ascending(&c, &t, WEIR_COUNT_OF(v));
	/* -0.0 groups with 0.0, all NaNs with each other. */
	struct weir_sel sel;
	const struct weir_col *cols[] = {&c};
	c.f64[0] = -0.0;
	c.f64[1] = 0.0;
	c.f64[2] = NAN;
	c.f64[3] = -NAN;
	weir_sel_all(&sel, 4);
	weir_key_encode(cols, &t, 1, &sel, &scratch, &keyed);
	assert_int_equal(key_compare(0, 1), 0);
	assert_int_equal(key_compare(2, 3), 0);
	weir_scratch_reset(&scratch);
	weir_col_fini(&c);
}

static void test_wide_decimal(void **state)
{
	(void)state;
	struct weir_type t = {.kind = WEIR_KIND_DECIMAL, .precision = 38};
	struct weir_col c;
	weir_col_init(&c, WEIR_PHYS_I128);
	weir_i128 big = (weir_i128)1 << 100;
	c.i128[0] = -big;
	c.i128[1] = -1;
	c.i128[2] = 0;
	c.i128[3] = 1;
	c.i128[4] = big;
	check_ascending(&c, &t, 5);
	weir_col_fini(&c);
}

/* Strings of every length around a word or two, with a 00 at every place or none, alone and among others: the bytes are
 * those of the rule, whichever way they are made. */
static void test_text_of_every_length(void **state)
{
	(void)state;
	struct weir_type t = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	struct weir_col c;
	const struct weir_col *cols[] = {&c};
	weir_col_init(&c, WEIR_PHYS_STR);
	for (uint32_t n = 0; n <= 20; n++)
		for (uint32_t zero = 0; zero <= n; zero++)
			for (uint32_t rows = 1; rows <= 3; rows++) {
				uint8_t *text = weir_xmalloc(n + 1); /* exactly: reading beyond it shows under ASan */
				uint8_t want[64] = {1};
				uint32_t want_bytes = 1;
				struct weir_sel sel;
				for (uint32_t i = 0; i < n; i++) {
					text[i] = i == zero ? 0 : (uint8_t)(0x80 + i);
					want[want_bytes++] = text[i];
					if (i == zero)
						want[want_bytes++] = 0xff;
				}
				want[want_bytes++] = 0;
				weir_sel_all(&sel, rows);
				for (uint32_t i = 0; i < rows; i++)
					c.str[i] = (struct weir_str){(const uint8_t *)"12345678", 8, 0};
				c.str[rows - 1] = (struct weir_str){weir_xrealloc(text, n + !n), n, 0};
				weir_key_encode(cols, &t, 1, &sel, &scratch, &keyed);
				assert_int_equal(keyed.key_bytes[rows - 1], want_bytes);
				assert_memory_equal(keyed.key[rows - 1], want, want_bytes);
				assert_true(keyed.hash[rows - 1] == weir_hash(want, want_bytes));
				if (rows > 1) {
					assert_int_equal(keyed.key_bytes[0], 10);
					assert_memory_equal(keyed.key[0], "\00112345678\0", 10);
				}
				free((void *)(uintptr_t)c.str[rows - 1].data);
				weir_scratch_reset(&scratch);
			}
	weir_col_fini(&c);
}

/* The rule of texts, byte by byte. */
static uint32_t text_key(const struct weir_str *s, uint8_t *key)
{
	uint32_t n = 0;
	key[n++] = 1;
	for (uint32_t i = 0; i < s->bytes; i++) {
		key[n++] = s->data[i];
		if (s->data[i] == 0)
			key[n++] = 0xff;
	}
	key[n++] = 0;
	return n;
}

static uint32_t random_below(uint32_t n)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13, x ^= x >> 7, x ^= x << 17;
	return (uint32_t)(x >> 33) % n;
}

/* Batches of texts of one length or of some of 0 to 40 bytes, with a few holes in the selection or many, with a 00
 * somewhere or none: keys and hashes are as the rule has them. */
static void test_batches_of_texts(void **state)
{
	(void)state;
	struct weir_type t = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	struct weir_col c;
	const struct weir_col *cols[] = {&c};
	weir_col_init(&c, WEIR_PHYS_STR);
	for (uint32_t round = 0; round < 4000; round++) {
		uint32_t rows = 1 + random_below(40), most = round % 3 == 0 ? 41 : 15, least = 0;
		uint8_t *texts[40];
		struct weir_sel sel = {0};
		if (round % 4 == 1)
			least = 8;
		if (round % 8 == 2)
			least = random_below(most), most = least + 1;
		for (uint32_t i = 0; i < rows; i++) {
			uint32_t n = least + random_below(most - least);
			texts[i] = weir_xmalloc(n + !n); /* exactly: reading beyond it shows under ASan */
			for (uint32_t b = 0; b < n; b++)
				texts[i][b] = (uint8_t)(1 + random_below(255));
			if (n != 0 && round % 5 == 0 && random_below(20) == 0)
				texts[i][random_below(n)] = 0;
			c.str[i] = (struct weir_str){texts[i], n, round % 7 == 0 ? UINT32_MAX : 0};
			if (round % 6 < 3 || random_below(round % 6) != 0)
				sel.row[sel.count++] = (uint16_t)i;
			keyed.key[i] = NULL;
		}
		weir_key_encode(cols, &t, 1, &sel, &scratch, &keyed);
		for (uint32_t i = 0, at = 0; i < rows; i++) {
			uint8_t want[96];
			uint32_t n = text_key(&c.str[i], want);
			if (at == sel.count || sel.row[at] != i) {
				assert_null(keyed.key[i]);
				continue;
			}
			at++;
			assert_int_equal(keyed.key_bytes[i], n);
			assert_memory_equal(keyed.key[i], want, n);
			assert_true(keyed.hash[i] == weir_hash(want, n));
		}
		for (uint32_t i = 0; i < rows; i++)
			free(texts[i]);
		weir_scratch_reset(&scratch);
	}
	weir_col_fini(&c);
}

static void test_strings(void **state)
{
	(void)state;
	struct weir_type t = {.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	struct weir_col c;
	weir_col_init(&c, WEIR_PHYS_STR);
	static const struct {
		const char *s;
		uint32_t n;
	} v[] = {{"", 0},  {"", 0},    {"\0", 1},   {"\0\0", 2}, {"\0a", 2},
		 {"a", 1}, {"a\0", 2}, {"a\0b", 3}, {"aa", 2},   {"b\xff", 2}};
	for (uint32_t i = 0; i < WEIR_COUNT_OF(v); i++)
		c.str[i] = (struct weir_str){(const uint8_t *)v[i].s, v[i].n, 0};
	weir_col_set_null(&c, 0);
	check_ascending(&c, &t, WEIR_COUNT_OF(v));
	weir_col_fini(&c);
}

static void test_several_columns(void **state)
{
	(void)state;
	const struct weir_type t[] = {
		{.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX}, {.kind = WEIR_KIND_BOOLEAN}, {.kind = WEIR_KIND_INT}};
	struct weir_col c[3], back[3];
	const struct weir_col *cols[] = {&c[0], &c[1], &c[2]};
	struct weir_sel sel;
	for (int i = 0; i < 3; i++) {
		weir_col_init(&c[i], weir_type_phys(&t[i]));
		weir_col_init(&back[i], weir_type_phys(&t[i]));
	}
	/* Ascending, with a prefix string and NULLs in every place; the last column is a constant for some rows. */
	static const char *const text[] = {NULL, NULL, "a", "a", "a", "ab", "b"};
	static const int flag[] = {-1, 1, -1, 0, 1, -1, 0};
	for (uint32_t i = 0; i < 7; i++) {
		if (text[i] == NULL)
			weir_col_set_null(&c[0], i);
		else
			c[0].str[i] = (struct weir_str){(const uint8_t *)text[i], (uint32_t)strlen(text[i]), 0};
		if (flag[i] < 0)
			weir_col_set_null(&c[1], i);
		else
			c[1].u8[i] = (uint8_t)flag[i];
	}
	c[2].i64[0] = -7;
	c[2].is_const = true;
	weir_sel_all(&sel, 7);
	weir_key_encode(cols, t, 3, &sel, &scratch, &keyed);
	for (uint32_t i = 0; i < 7; i++) {
		if (i > 0)
			assert_true(key_compare(i - 1, i) < 0);
		weir_key_decode(keyed.key[i], keyed.key_bytes[i], t, 3, back, i, &scratch);
		assert_int_equal(weir_col_is_null(&back[0], i), text[i] == NULL);
		if (text[i] != NULL)
			assert_memory_equal(back[0].str[i].data, text[i], strlen(text[i]));
		assert_int_equal(weir_col_is_null(&back[1], i), flag[i] < 0);
		if (flag[i] >= 0)
			assert_int_equal(back[1].u8[i], flag[i]);
		assert_int_equal(back[2].i64[i], -7);
		/* Every shorter piece decodes without reading beyond it. */
		for (uint32_t n = 0; n < keyed.key_bytes[i]; n++) {
			uint8_t *piece = weir_xmalloc(n != 0 ? n : 1);
			memcpy(piece, keyed.key[i], n);
			weir_key_decode(piece, n, t, 3, back, 100, &scratch);
			assert_true(weir_col_is_null(&back[2], 100));
			free(piece);
		}
	}
	for (int i = 0; i < 3; i++) {
		weir_col_fini(&c[i]);
		weir_col_fini(&back[i]);
	}
	weir_scratch_reset(&scratch);
}

static void test_rows_of_a_selection_only(void **state)
{
	(void)state;
	struct weir_type t = {.kind = WEIR_KIND_SMALLINT};
	struct weir_col c;
	struct weir_sel sel = {.count = 3, .row = {1, 5, 1000}};
	const struct weir_col *cols[] = {&c};
	weir_col_init(&c, WEIR_PHYS_I64);
	c.i64[1] = 0x0102;
	c.i64[5] = -1;
	c.i64[1000] = 0;
	keyed.key[0] = NULL;
	weir_key_encode(cols, &t, 1, &sel, &scratch, &keyed);
	assert_null(keyed.key[0]);
	assert_memory_equal(keyed.key[1], "\x01\x81\x02", 3);
	assert_memory_equal(keyed.key[5], "\x01\x7f\xff", 3);
	assert_memory_equal(keyed.key[1000], "\x01\x80\x00", 3);
	weir_scratch_reset(&scratch);
	weir_col_fini(&c);
}

int main(void)
{
	weir_scratch_init(&scratch);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_wide_decimal),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_text_of_every_length),
		cmocka_unit_test(test_batches_of_texts),
		cmocka_unit_test(test_several_columns),
		cmocka_unit_test(test_rows_of_a_selection_only),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	weir_scratch_fini(&scratch);
	return failed;
}
