/* test_packed.c: packed rows: the bytes, every prefix, every damaged byte, random rows through both directions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/core/diag.h"
#include "hotpath/format/number.h"
#include "tests/support/rows.h"

static const struct weir_format_options OPTIONS = {.kind = WEIR_FORMAT_PACKED};

static struct rows *all_types(void)
{
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "flag", TYPE_BOOLEAN);
	rows_add(r, "tiny", TYPE_TINYINT);
	rows_add(r, "name", TYPE_STRING);
	rows_add(r, "small", TYPE_SMALLINT);
	rows_add(r, "int", TYPE_INT);
	rows_add(r, "big", TYPE_BIGINT);
	rows_add(r, "float", TYPE_FLOAT);
	rows_add(r, "double", TYPE_DOUBLE);
	rows_add(r, "dec", TYPE_DECIMAL(12, 2));
	rows_add(r, "wide", TYPE_DECIMAL(38, 4));
	rows_add(r, "blob", TYPE_BYTES);
	rows_add(r, "date", TYPE_DATE);
	rows_add(r, "time", TYPE_TIME);
	rows_add(r, "ts", TYPE_TIMESTAMP(3));
	rows_add(r, "code", TYPE_VARCHAR(4));
	return r;
}

static struct weir_decoder *decoder(struct rows *r, const struct weir_format_options *o)
{
	struct weir_decoder *d = NULL;
	assert_int_equal(
		weir_packed_decoder_create(&d, o, r->fields, r->field_count, r->fields, r->field_count, false, NULL),
		WEIR_OK);
	return d;
}

static struct weir_encoder *encoder(struct rows *r)
{
	struct weir_encoder *e = NULL;
	assert_int_equal(weir_packed_encoder_create(&e, &OPTIONS, r->fields, r->field_count, NULL), WEIR_OK);
	return e;
}

static void test_layout(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "s", TYPE_STRING);
	rows_add(r, "i", TYPE_INT);
	rows_add(r, "n", TYPE_BIGINT);
	rows_add(r, "d", TYPE_DECIMAL(4, 2));
	struct weir_encoder *e = encoder(r);
	rows_set_str(r, 0, "hey");
	r->cols[1].i64[0] = -2;
	weir_col_set_null(&r->cols[2], 0);
	r->cols[3].i64[0] = 0x0102;
	static const uint8_t expected[] = {1, 0x04, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0,   0,   0,  2,
					   1, 0,    0,    0,    0,    0,    0, 3, 0, 0, 0, 'h', 'e', 'y'};
	const char *bytes = rows_encode(r, e);
	assert_int_equal(r->out.bytes, sizeof expected);
	assert_memory_equal(bytes, expected, sizeof expected);
	e->destroy(e);
	rows_fini(r);
}

static uint64_t seed = 99;
static uint64_t rnd(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return seed >> 16;
}

/* Fills row 0 with random values, some NULL, the strings in storage. */
static void randomise(struct rows *r, uint8_t storage[][64])
{
	for (uint32_t i = 0; i < r->field_count; i++) {
		struct weir_col *c = &r->cols[i];
		const struct weir_type *t = &r->fields[i].type;
		weir_col_clear_nulls(c);
		if (rnd() % 5 == 0) {
			weir_col_set_null(c, 0);
			continue;
		}
		uint64_t v = (rnd() << 32 ^ rnd()) >> (rnd() % 64);
		size_t n;
		switch (t->kind) {
		case WEIR_KIND_BOOLEAN:
			c->u8[0] = v & 1;
			break;
		case WEIR_KIND_TINYINT:
			c->i64[0] = (int8_t)v;
			break;
		case WEIR_KIND_SMALLINT:
			c->i64[0] = (int16_t)v;
			break;
		case WEIR_KIND_INT:
		case WEIR_KIND_DATE:
			c->i64[0] = (int32_t)v;
			break;
		case WEIR_KIND_TIME:
			c->i64[0] = (int64_t)(v % 86400000);
			break;
		case WEIR_KIND_FLOAT:
			c->f64[0] = (double)(float)(double)v;
			break;
		case WEIR_KIND_DOUBLE:
			c->f64[0] = (double)v / 7;
			break;
		case WEIR_KIND_DECIMAL:
			if (t->precision <= 18)
				c->i64[0] = (int64_t)(v % weir_pow10_u64[t->precision]) * (v & 1 ? -1 : 1);
			else
				c->i128[0] = (weir_i128)v * 1000003 * (v & 1 ? -1 : 1);
			break;
		case WEIR_KIND_VARCHAR:
		case WEIR_KIND_BYTES:
			n = rnd() % (t->length == 4 ? 5 : 60);
			for (size_t k = 0; k < n; k++)
				storage[i][k] = (uint8_t)(t->kind == WEIR_KIND_BYTES ? rnd() : 'a' + rnd() % 26);
			c->str[0] = (struct weir_str){storage[i], (uint32_t)n, 0};
			break;
		default:
			c->i64[0] = (int64_t)v;
			break;
		}
	}
}

static bool same(const struct weir_col *a, const struct weir_col *b)
{
	if (weir_col_is_null(a, 0) != weir_col_is_null(b, 0))
		return false;
	if (weir_col_is_null(a, 0))
		return true;
	if (a->phys == WEIR_PHYS_STR)
		return a->str[0].bytes == b->str[0].bytes &&
		       memcmp(a->str[0].data, b->str[0].data, a->str[0].bytes) == 0;
	return memcmp(a->data, b->data, weir_phys_bytes(a->phys)) == 0;
}

static void test_random_rows(void **state)
{
	(void)state;
	static uint8_t storage[ROWS_COLS_MAX][64];
	struct rows *r = all_types(), *back = all_types();
	struct weir_encoder *e = encoder(r);
	struct weir_decoder *d = decoder(back, &OPTIONS);
	for (int round = 0; round < 20000; round++) {
		randomise(r, storage);
		const char *bytes = rows_encode(r, e);
		assert_int_equal(rows_decode(back, d, bytes, r->out.bytes), WEIR_REASON_NONE);
		for (uint32_t i = 0; i < r->field_count; i++) {
			if (!same(&r->cols[i], &back->cols[i]))
				fail_msg("round %d: column %s", round, r->fields[i].name);
		}
	}
	e->destroy(e);
	d->destroy(d);
	rows_fini(r);
	rows_fini(back);
}

/* No prefix and no extended record is taken; a flipped bit is refused or read, never a crash (ASan watches). */
static void test_prefixes_and_damage(void **state)
{
	(void)state;
	static uint8_t storage[ROWS_COLS_MAX][64];
	struct rows *r = all_types(), *back = all_types();
	struct weir_encoder *e = encoder(r);
	struct weir_decoder *d = decoder(back, &OPTIONS);
	uint32_t taken = 0, refused = 0;
	for (int round = 0; round < 50; round++) {
		uint8_t copy[512];
		randomise(r, storage);
		const char *bytes = rows_encode(r, e);
		size_t n = r->out.bytes;
		assert_true(n < sizeof copy);
		for (size_t cut = 0; cut < n; cut++)
			assert_int_equal(rows_decode(back, d, bytes, cut), WEIR_REASON_PACKED);
		memcpy(copy, bytes, n);
		copy[n] = 0;
		assert_int_equal(rows_decode(back, d, copy, n + 1), WEIR_REASON_PACKED);
		for (size_t bit = 0; bit < 8 * n; bit++) {
			copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
			if (rows_decode(back, d, copy, n) == WEIR_REASON_NONE)
				taken++;
			else
				refused++;
			copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		}
	}
	assert_true(taken > 0 && refused > 0);
	e->destroy(e);
	d->destroy(d);
	rows_fini(r);
	rows_fini(back);
}

static void test_refusals(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	rows_add(r, "b", TYPE_BOOLEAN);
	rows_add(r, "d", TYPE_DECIMAL(4, 2));
	rows_add(r, "t", TYPE_TIME);
	rows_add(r, "s", TYPE_VARCHAR(2));
	struct weir_decoder *d = decoder(r, &OPTIONS);
	uint8_t row[] = {1, 0, 1, 0x0f, 0x27, 0, 0, 0, 0, 0, 0, 0xff, 0x5b, 0x26, 0x05, 2, 0, 0, 0, 'h', 'i'};
	assert_int_equal(rows_decode(r, d, row, sizeof row), WEIR_REASON_NONE);
	assert_int_equal(r->cols[1].i64[0], 9999);
	assert_int_equal(r->cols[2].i64[0], 86399999);
	row[0] = 2;
	assert_int_equal(rows_decode(r, d, row, sizeof row), WEIR_REASON_PACKED);
	row[0] = 1;
	row[1] = 0x10; /* a null bit of a column that is not there */
	assert_int_equal(rows_decode(r, d, row, sizeof row), WEIR_REASON_PACKED);
	row[1] = 0;
	row[2] = 2;
	assert_int_equal(rows_decode(r, d, row, sizeof row), WEIR_REASON_PACKED);
	row[2] = 1;
	row[3]++;
	assert_int_equal(rows_decode(r, d, row, sizeof row), WEIR_REASON_RANGE);
	assert_string_equal(r->errors.e[0].field, "d");
	row[3]--;
	row[11] = 0;
	row[12]++;
	assert_int_equal(rows_decode(r, d, row, sizeof row), WEIR_REASON_RANGE);
	row[11] = 0xff;
	row[12]--;
	row[19] = 0xff;
	assert_int_equal(rows_decode(r, d, row, sizeof row), WEIR_REASON_UTF8);
	row[19] = 'h';
	memset(row + 15, 0xff, 4); /* a length beyond everything */
	assert_int_equal(rows_decode(r, d, row, sizeof row), WEIR_REASON_PACKED);
	d->destroy(d);
	/* NOT NULL, and the lenient mode. */
	r->fields[3].type.not_null = true;
	d = decoder(r, &OPTIONS);
	row[1] = 8;
	assert_int_equal(rows_decode(r, d, row, 15), WEIR_REASON_NULL);
	d->destroy(d);
	r->fields[3].type.not_null = false;
	d = decoder(r, &(struct weir_format_options){.kind = WEIR_FORMAT_PACKED, .ignore_parse_errors = true});
	assert_int_equal(rows_decode(r, d, row, 15), WEIR_REASON_NONE);
	assert_false(weir_col_is_null(&r->cols[0], 0));
	assert_int_equal(rows_decode(r, d, row, 14), WEIR_REASON_NONE);
	assert_true(weir_col_is_null(&r->cols[0], 0));
	d->destroy(d);
	rows_fini(r);
}

static void test_some_columns(void **state)
{
	(void)state;
	static uint8_t storage[ROWS_COLS_MAX][64];
	struct rows *r = all_types(), *some = calloc(1, sizeof *some);
	struct weir_encoder *e = encoder(r);
	struct weir_decoder *d = NULL;
	rows_add(some, "code", TYPE_VARCHAR(4));
	rows_add(some, "big", TYPE_BIGINT);
	some->fields[0].ordinal = 14;
	some->fields[1].ordinal = 5;
	assert_int_equal(
		weir_packed_decoder_create(&d, &OPTIONS, some->fields, 2, r->fields, r->field_count, false, NULL),
		WEIR_OK);
	for (int round = 0; round < 1000; round++) {
		randomise(r, storage);
		const char *bytes = rows_encode(r, e);
		assert_int_equal(rows_decode(some, d, bytes, r->out.bytes), WEIR_REASON_NONE);
		assert_true(same(&r->cols[14], &some->cols[0]));
		assert_true(same(&r->cols[5], &some->cols[1]));
	}
	d->destroy(d);
	e->destroy(e);
	rows_fini(r);
	rows_fini(some);
}

static void test_nested_types_have_no_place(void **state)
{
	(void)state;
	struct rows *r = calloc(1, sizeof *r);
	struct weir_encoder *e = NULL;
	struct weir_diag *dg = NULL;
	rows_add(r, "m", (struct weir_type){.kind = WEIR_KIND_ARRAY, .field_count = 1, .fields = &TYPE_INT});
	assert_int_equal(weir_packed_encoder_create(&e, &OPTIONS, r->fields, 1, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "ARRAY<INT>"));
	weir_diag_destroy(dg);
	rows_fini(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_random_rows),
		cmocka_unit_test(test_prefixes_and_damage),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_some_columns),
		cmocka_unit_test(test_nested_types_have_no_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
