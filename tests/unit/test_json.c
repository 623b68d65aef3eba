/* test_json.c: the JSON projection decoder's rules: types, paths, duplicates, missing members, options, limits, and
 * what a refused record says. Each case runs by every instruction set, with and without speculation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/json_rig.h"

static struct json_rig rig;

static int reset(void **state)
{
	(void)state;
	json_rig_init(&rig);
	return 0;
}

static int release(void **state)
{
	(void)state;
	json_rig_fini(&rig);
	return 0;
}

struct expected {
	const char *doc, *text;
};

/* All documents of the table in one batch, three times over so that layouts are learned, by every way of decoding. */
static void expect_table(const struct expected *table, size_t count)
{
	for (int speculate = 0; speculate < 2; speculate++) {
		for (const char *const *v = json_rig_variants; *v != NULL; v++) {
			if (!json_rig_open(&rig, *v, speculate != 0))
				continue;
			for (size_t times = 0; times < 3; times++)
				for (size_t i = 0; i < count; i++)
					json_rig_add(&rig, table[i].doc, strlen(table[i].doc));
			json_rig_run(&rig);
			for (uint32_t row = 0; row < rig.count; row++) {
				const struct expected *e = &table[row % count];
				const char *text = json_rig_text(&rig, row);
				if (strcmp(text, e->text) != 0)
					fail_msg("%s, speculate %d, row %u `%s`: got `%s`, wanted `%s`", *v, speculate,
						 row, e->doc, text, e->text);
			}
			/* Alone, and then after itself. */
			for (size_t i = 0; i < count; i++)
				for (int times = 0; times < 2; times++)
					assert_string_equal(json_rig_one(&rig, table[i].doc, strlen(table[i].doc)),
							    table[i].text);
		}
	}
}
#define EXPECT(...)                                                                                                    \
	do {                                                                                                           \
		static const struct expected table[] = {__VA_ARGS__};                                                  \
		expect_table(table, WEIR_COUNT_OF(table));                                                             \
	} while (0)

static void test_order(void **state)
{
	(void)state;
	json_rig_field(&rig, "merchant_id", NULL, WEIR_KIND_VARCHAR);
	struct weir_type *amount = json_rig_field(&rig, "amount", NULL, WEIR_KIND_DECIMAL);
	amount->precision = 12;
	amount->scale = 2;
	json_rig_field(&rig, "ts", NULL, WEIR_KIND_BIGINT);
#define ORDER(amount)                                                                                                  \
	"{\"order_id\":\"o-0000000120\",\"merchant_id\":\"m-038703\",\"customer_id\":\"c-4165959\",\"amount\":" amount \
	",\"currency\":\"EUR\",\"ts\":1767225600000}"
	EXPECT({ORDER("101.70"), "m-038703|10170|1767225600000"}, {ORDER("1.70"), "m-038703|170|1767225600000"},
	       {ORDER("0.70"), "m-038703|70|1767225600000"},
	       {ORDER("9999999999.99"), "m-038703|999999999999|1767225600000"},
	       {ORDER("-5.25"), "m-038703|-525|1767225600000"}, {ORDER("1e3"), "m-038703|100000|1767225600000"},
	       {ORDER("20.5"), "m-038703|2050|1767225600000"}, {ORDER("7"), "m-038703|700|1767225600000"},
	       {ORDER("1.005"), "m-038703|101|1767225600000"}, {ORDER("-1.005"), "m-038703|-101|1767225600000"},
	       {ORDER("1.0049"), "m-038703|100|1767225600000"}, {ORDER("\"12.34\""), "m-038703|1234|1767225600000"},
	       {ORDER("1.25e1"), "m-038703|1250|1767225600000"},
	       {ORDER("10000000000.00"), "!range at 87 amount: out of the type's range"},
	       {ORDER("null"), "m-038703|NULL|1767225600000"},
	       {ORDER("true"), "!type at 87 amount: true or false where the column is of another type"},
	       {ORDER("01.70"), "!json at 88 amount: a malformed number"},
	       {ORDER("1.7.0"), "!json at 90 -: expected ',' or '}'"});
}

/* BL-001: integers of any length keep every digit. */
static void test_integers(void **state)
{
	(void)state;
	json_rig_field(&rig, "id", NULL, WEIR_KIND_BIGINT);
#define RANGE(type) "!range at 6 id: out of the type's range"
#define NOT_INTEGER "!type at 6 id: expected an integer"
	EXPECT({"{\"id\":144126219108390099,\"v\":1}", "144126219108390099"},
	       {"{\"id\":144126219108390097,\"v\":1}", "144126219108390097"},
	       {"{\"id\":9223372036854775807}", "9223372036854775807"},
	       {"{\"id\":-9223372036854775808}", "-9223372036854775808"}, {"{\"id\":9223372036854775808}", RANGE()},
	       {"{\"id\":-9223372036854775809}", RANGE()}, {"{\"id\":99999999999999999999999999}", RANGE()},
	       {"{\"id\":0}", "0"}, {"{\"id\":-0}", "0"}, {"{\"id\":1.0}", "1"}, {"{\"id\":1e2}", "100"},
	       {"{\"id\":1.5e1}", "15"}, {"{\"id\":1200e-2}", "12"}, {"{\"id\":1.7}", NOT_INTEGER},
	       {"{\"id\":1e-1}", NOT_INTEGER}, {"{\"id\":9.223372036854775807e18}", "9223372036854775807"},
	       {"{\"id\":1e19}", RANGE()}, {"{\"id\":\"12\"}", "12"}, {"{\"id\":\"1.0\"}", "1"},
	       {"{\"id\":\"-7\"}", "-7"}, {"{\"id\":123456789012345}", "123456789012345"},
	       {"{\"id\":1234567890123456}", "1234567890123456"}, {"{\"id\":12345678901234567}", "12345678901234567"},
	       {"{\"id\":100000000}", "100000000"}, {"{\"id\":12345678}", "12345678"}, {"{\"id\":1}", "1"},
	       {"{\"id\":\"9223372036854775808\"}", RANGE()}, {"{\"id\":null}", "NULL"}, {"{}", "NULL"},
	       {"{\"id\":{}}", "!type at 6 id: an object where the column is of another type"},
	       {"{\"id\":[1]}", "!type at 6 id: an array where the column is of another type"});
}

static void test_small_integers(void **state)
{
	(void)state;
	json_rig_field(&rig, "t", NULL, WEIR_KIND_TINYINT);
	json_rig_field(&rig, "s", NULL, WEIR_KIND_SMALLINT);
	json_rig_field(&rig, "i", NULL, WEIR_KIND_INT);
	EXPECT({"{\"t\":127,\"s\":32767,\"i\":2147483647}", "127|32767|2147483647"},
	       {"{\"t\":-128,\"s\":-32768,\"i\":-2147483648}", "-128|-32768|-2147483648"},
	       {"{\"t\":128,\"s\":1,\"i\":1}", "!range at 5 t: out of the type's range"},
	       {"{\"t\":1,\"s\":32768,\"i\":1}", "!range at 11 s: out of the type's range"},
	       {"{\"t\":1,\"s\":1,\"i\":2147483648}", "!range at 17 i: out of the type's range"},
	       {"{\"t\":-129,\"s\":1,\"i\":1}", "!range at 5 t: out of the type's range"});
}

static void test_decimals(void **state)
{
	(void)state;
	static const uint8_t shapes[][2] = {{18, 0},  {18, 18}, {38, 0}, {38, 10}, {38, 38}, {5, 4},
					    {18, 14}, {9, 7},   {18, 8}, {3, 1},   {18, 15}};
	for (size_t i = 0; i < WEIR_COUNT_OF(shapes); i++) {
		struct weir_type *t = json_rig_field(&rig, "d", NULL, WEIR_KIND_DECIMAL);
		t->precision = shapes[i][0];
		t->scale = shapes[i][1];
	}
	EXPECT({"{\"d\":0}", "0|0|0|0.0000000000|0.00000000000000000000000000000000000000|0|0|0|0|0|0"},
	       {"{\"d\":0.5}", "1|500000000000000000|1|0.5000000000|0.50000000000000000000000000000000000000|5000|"
			       "50000000000000|5000000|50000000|5|500000000000000"},
	       {"{\"d\":-0.05}", "0|-50000000000000000|0|-0.0500000000|-0.05000000000000000000000000000000000000|-500|-"
				 "5000000000000|-500000|-5000000|-1|-50000000000000"},
	       {"{\"d\":\"0.0000000000000000000000000000000000000049\"}",
		"0|0|0|0.0000000000|0.00000000000000000000000000000000000000|0|0|0|0|0|0"},
	       {"{\"d\":5e-39}", "0|0|0|0.0000000000|0.00000000000000000000000000000000000001|0|0|0|0|0|0"},
	       {"{\"d\":null}", "NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL"});
}

/* The short way for digits, point, digits: every count before and behind the point against one that cannot be short. */
static void test_decimal_forms(void **state)
{
	(void)state;
	struct weir_type *t = json_rig_field(&rig, "d", NULL, WEIR_KIND_DECIMAL);
	for (int speculate = 0; speculate < 2; speculate++) {
		for (const char *const *v = json_rig_variants; *v != NULL; v++) {
			for (uint8_t scale = 0; scale <= 18; scale++) {
				t->precision = 18;
				t->scale = scale;
				if (!json_rig_open(&rig, *v, speculate != 0))
					continue;
				for (int whole = 1; whole <= 18 - scale; whole++) {
					char digits[32], doc[64], want[32];
					int n = 0;
					for (int i = 0; i < whole + scale; i++)
						digits[n++] = (char)('1' + (i * 7 + whole) % 9);
					digits[n] = 0;
					n = sprintf(doc, "{\"d\":%.*s%s%s,\"e\":%.*s}", whole, digits,
						    scale != 0 ? "." : "", digits + whole, whole, digits);
					snprintf(want, sizeof want, "%s", digits);
					for (int times = 0; times < 3; times++)
						assert_string_equal(json_rig_one(&rig, doc, (size_t)n), want);
				}
			}
		}
	}
}

/* BL-002: nothing becomes infinite. */
static void test_doubles(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_DOUBLE);
	EXPECT({"{\"v\":1e309}", "!range at 5 v: out of the type's range"},
	       {"{\"v\":-1e309}", "!range at 5 v: out of the type's range"}, {"{\"v\":1}", "1"},
	       {"{\"v\":0.1}", "0.10000000000000001"}, {"{\"v\":1.7976931348623157e308}", "1.7976931348623157e+308"},
	       {"{\"v\":4.9e-324}", "4.9406564584124654e-324"}, {"{\"v\":1e-400}", "0"}, {"{\"v\":-0.0}", "-0"},
	       {"{\"v\":-1.5E+3}", "-1500"}, {"{\"v\":9007199254740993}", "9007199254740992"},
	       {"{\"v\":\"2.5\"}", "2.5"}, {"{\"v\":123456789.125}", "123456789.125"},
	       {"{\"v\":\"abc\"}", "!type at 5 v: not a value of the column's type"},
	       {"{\"v\":true}", "!type at 5 v: true or false where the column is of another type"});
}

static void test_floats_and_booleans(void **state)
{
	(void)state;
	json_rig_field(&rig, "f", NULL, WEIR_KIND_FLOAT);
	json_rig_field(&rig, "b", NULL, WEIR_KIND_BOOLEAN);
	EXPECT({"{\"f\":0.1,\"b\":true}", "0.10000000149011612|true"},
	       {"{\"f\":3.4e38,\"b\":false}", "3.3999999521443642e+38|false"}, {"{\"f\":1,\"b\":\"true\"}", "1|true"},
	       {"{\"f\":16777217,\"b\":null}", "16777216|NULL"},
	       {"{\"f\":1e39,\"b\":true}", "!range at 5 f: out of the type's range"},
	       {"{\"f\":1,\"b\":1}", "!type at 11 b: a number where the column is of another type"},
	       {"{\"f\":1,\"b\":\"maybe\"}", "!type at 11 b: not a value of the column's type"});
}

/* BL-007: nested values as text are JSON. */
static void test_strings(void **state)
{
	(void)state;
	json_rig_field(&rig, "t", NULL, WEIR_KIND_VARCHAR);
	EXPECT({"{\"t\":{\"id\":\"x\",\"n\":[1,2]}}", "{\"id\":\"x\",\"n\":[1,2]}"},
	       {"{\"t\": { \"id\" : \" x \\\" y\" ,\n \"n\": [ 1 , 2 ] } }", "{\"id\":\" x \\\" y\",\"n\":[1,2]}"},
	       {"{\"t\":[]}", "[]"}, {"{\"t\":[ ]}", "[]"}, {"{\"t\":1.50}", "1.50"}, {"{\"t\":-1e400}", "-1e400"},
	       {"{\"t\":true}", "true"}, {"{\"t\":false}", "false"}, {"{\"t\":null}", "NULL"}, {"{\"t\":\"\"}", ""},
	       {"{\"t\":\"null\"}", "null"}, {"{\"t\":\"\\u0041\\n\\t\\\\\\/\\\"\"}", "A\n\t\\/\""},
	       {"{\"t\":\"\\ud83d\\ude39\"}", "\xf0\x9f\x98\xb9"}, {"{\"t\":\"Z\xc3\xbcrich\"}", "Z\xc3\xbcrich"},
	       {"{\"t\":\"\\u00e9\\u20ac\"}", "\xc3\xa9\xe2\x82\xac"},
	       {"{\"t\":\"a long text, longer than any vector is, with a \xc3\xbc and a \\\" in it, and going on and "
		"on and on\"}",
		"a long text, longer than any vector is, with a \xc3\xbc and a \" in it, and going on and on and on"});
}

static void test_nul_in_strings(void **state)
{
	(void)state;
	json_rig_field(&rig, "t", NULL, WEIR_KIND_VARCHAR);
	assert_true(json_rig_open(&rig, NULL, true));
	static const char doc[] = "{\"t\":\"a\\u0000b\"}";
	for (int times = 0; times < 2; times++) {
		(void)json_rig_one(&rig, doc, sizeof doc - 1);
		assert_int_equal(rig.cols[0].str[0].bytes, 3);
		assert_memory_equal(rig.cols[0].str[0].data, "a\0b", 3);
	}
}

static void test_lengths_and_bytes(void **state)
{
	(void)state;
	json_rig_field(&rig, "c", NULL, WEIR_KIND_CHAR)->length = 3;
	json_rig_field(&rig, "b", NULL, WEIR_KIND_BYTES);
	EXPECT({"{\"c\":\"abc\",\"b\":\"aGVsbG8=\"}", "abc|hello"},
	       {"{\"c\":\"\xc3\xa4\xc3\xb6\xc3\xbc\",\"b\":\"\"}", "\xc3\xa4\xc3\xb6\xc3\xbc|"},
	       {"{\"c\":\"abcd\",\"b\":null}", "!range at 5 c: longer than the column"},
	       {"{\"c\":12,\"b\":\"aGVsbG8=\"}", "12|hello"},
	       {"{\"c\":\"\\u0061bc\",\"b\":\"aGVsbG8h\"}", "abc|hello!"},
	       {"{\"c\":\"\",\"b\":\"a*==\"}", "!type at 12 b: expected base64"},
	       {"{\"c\":\"\",\"b\":12}", "!type at 12 b: a number where the column is of another type"});
}

static void test_times(void **state)
{
	(void)state;
	json_rig_field(&rig, "m", NULL, WEIR_KIND_TIMESTAMP);
	json_rig_field(&rig, "u", "m", WEIR_KIND_TIMESTAMP_LTZ)->precision = 6;
	json_rig_field(&rig, "d", NULL, WEIR_KIND_DATE);
	json_rig_field(&rig, "t", NULL, WEIR_KIND_TIME);
	EXPECT({"{\"m\":\"2026-01-01 00:00:00\",\"d\":\"1970-01-02\",\"t\":\"00:00:01\"}",
		"1767225600000|1767225600000000|1|1000"},
	       {"{\"m\":\"2026-01-01 00:00:00.125\"}", "1767225600125|1767225600125000|NULL|NULL"},
	       {"{\"m\":\"2026-01-01T00:00:00.5Z\"}", "1767225600500|1767225600500000|NULL|NULL"},
	       {"{\"m\":1767225600000}", "1767225600000|1767225600000000|NULL|NULL"},
	       {"{\"m\":-1}", "-1|-1000|NULL|NULL"}, {"{\"m\":1.5}", "!type at 5 m: expected an integer"},
	       {"{\"m\":\"yesterday\"}", "!type at 5 m: not a value of the column's type"},
	       {"{\"m\":1,\"d\":1}", "!type at 11 d: a number where the column is of another type"});
}

static void test_time_units(void **state)
{
	(void)state;
	json_rig_field(&rig, "m", NULL, WEIR_KIND_TIMESTAMP);
	rig.options.unit_per_second = 1;
	EXPECT({"{\"m\":1767225600}", "1767225600000"}, {"{\"m\":-1}", "-1000"},
	       {"{\"m\":9223372036854775807}", "!range at 5 m: out of the type's range"});
	rig.options.unit_per_second = 1000000;
	EXPECT({"{\"m\":1767225600000999}", "1767225600000"}, {"{\"m\":-1}", "-1"});
}

static void test_containers(void **state)
{
	(void)state;
	json_rig_field(&rig, "a", NULL, WEIR_KIND_ARRAY);
	json_rig_field(&rig, "m", NULL, WEIR_KIND_MAP);
	json_rig_field(&rig, "r", NULL, WEIR_KIND_ROW);
	EXPECT({"{\"a\":[1, 2],\"m\":{\"x\": 1},\"r\":{}}", "[1,2]|{\"x\":1}|{}"},
	       {"{\"a\":[[]],\"m\":{},\"r\":{\"q\":\"[ \"}}", "[[]]|{}|{\"q\":\"[ \"}"},
	       {"{\"a\":{},\"m\":{},\"r\":{}}", "!type at 5 a: an object where the column is of another type"},
	       {"{\"a\":[],\"m\":[],\"r\":{}}", "!type at 12 m: an array where the column is of another type"},
	       {"{\"a\":[],\"m\":{},\"r\":\"{}\"}", "!type at 19 r: expected an object"},
	       {"{\"a\":null,\"m\":null}", "NULL|NULL|NULL"});
}

/* BL-003, BL-004, BL-005, BL-006. */
static void test_names(void **state)
{
	(void)state;
	json_rig_field(&rig, "hyphen", "u/X-Meta-Client", WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "space", "Successful Login", WEIR_KIND_BIGINT);
	json_rig_field(&rig, "at", "@type", WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "dotted", "a.b", WEIR_KIND_BIGINT);
	json_rig_field(&rig, "nested", "a/b", WEIR_KIND_BIGINT);
	EXPECT({"{\"u\":{\"X-Meta-Client\":\"ios\"},\"Successful "
		"Login\":1,\"@type\":\"foo\",\"a.b\":1,\"a\":{\"b\":2}}",
		"ios|1|foo|1|2"},
	       {"{\"a\":{\"b\":2},\"a.b\":1}", "NULL|NULL|NULL|1|2"},
	       {"{\"A\":{\"b\":2},\"A.B\":1}", "NULL|NULL|NULL|NULL|NULL"},
	       {"{\"\\u0061\":{\"\\u0062\":2},\"a\\u002eb\":1}", "NULL|NULL|NULL|1|2"},
	       {"{\"\\u0040type\":\"bar\",\"\\u0053\\u0075\\u0063\\u0063\\u0065\\u0073\\u0073\\u0066\\u0075\\u006c "
		"Login\":3}",
		"NULL|3|bar|NULL|NULL"});
}

static void test_paths(void **state)
{
	(void)state;
	json_rig_field(&rig, "x", "o/p/x", WEIR_KIND_BIGINT);
	json_rig_field(&rig, "second", "l/1", WEIR_KIND_BIGINT);
	json_rig_field(&rig, "first", "l/0", WEIR_KIND_BIGINT);
	json_rig_field(&rig, "deep", "l/3/y", WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "whole", "o", WEIR_KIND_VARCHAR);
	EXPECT({"{\"o\":{\"p\":{\"x\":5}},\"l\":[1,2,3,{\"y\":\"z\"}]}", "5|2|1|z|{\"p\":{\"x\":5}}"},
	       {"{\"o\":{\"p\":{\"x\":6}},\"l\":[1,2,3,{\"y\":\"zz\"}]}", "6|2|1|zz|{\"p\":{\"x\":6}}"},
	       {"{\"o\":{},\"l\":[]}", "NULL|NULL|NULL|NULL|{}"}, {"{\"o\":null,\"l\":[7]}", "NULL|NULL|7|NULL|NULL"},
	       {"{\"o\":{\"p\":null},\"l\":[null,8]}", "NULL|8|NULL|NULL|{\"p\":null}"},
	       {"{\"o\":1}", "!type at 5 x: expected an object"},
	       {"{\"o\":{\"p\":\"q\"}}", "!type at 10 x: expected an object"},
	       {"{\"o\":{\"p\":[]}}", "!type at 10 x: expected an object"},
	       {"{\"l\":{\"0\":1}}", "!type at 5 second: expected an array"},
	       {"{\"l\":[1,2,3,4]}", "!type at 12 deep: expected an object"},
	       {"{\"l\":[[5],6]}", "!type at 6 first: an array where the column is of another type"});
}

static void test_duplicates(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	json_rig_field(&rig, "b", "a/b", WEIR_KIND_BIGINT);
	json_rig_field(&rig, "c", "a/c/d", WEIR_KIND_BIGINT);
	EXPECT({"{\"v\":1,\"v\":2}", "2|NULL|NULL"}, {"{\"v\":\"abc\",\"v\":2}", "2|NULL|NULL"},
	       {"{\"v\":2,\"v\":null}", "NULL|NULL|NULL"},
	       {"{\"v\":2,\"v\":\"abc\"}", "!type at 11 v: not a value of the column's type"},
	       {"{\"v\":1,\"\\u0076\":3}", "3|NULL|NULL"}, {"{\"a\":{\"b\":1},\"a\":{\"c\":{\"d\":2}}}", "NULL|NULL|2"},
	       {"{\"a\":{\"b\":1,\"b\":4,\"c\":{\"d\":2},\"c\":{}}}", "NULL|4|NULL"},
	       {"{\"a\":{\"b\":1},\"a\":null}", "NULL|NULL|NULL"}, {"{\"a\":{\"b\":1},\"a\":{\"b\":5}}", "NULL|5|NULL"},
	       {"{\"w\":1,\"w\":2,\"v\":9}", "9|NULL|NULL"});
}

static void test_many_fields(void **state)
{
	(void)state;
	static char names[40][16];
	char doc[2048], want[512];
	size_t n = 0, w = 0;
	for (int i = 0; i < 40; i++) {
		snprintf(names[i], sizeof names[i], i % 2 ? "attribute_%02d" : "a%d", i);
		json_rig_field(&rig, names[i], NULL, WEIR_KIND_BIGINT);
		w += (size_t)sprintf(want + w, i == 0 ? "%d" : "|%d", i * 3);
	}
	for (int speculate = 0; speculate < 2; speculate++) {
		assert_true(json_rig_open(&rig, NULL, speculate != 0));
		for (int step = 1; step < 40; step += 2) { /* orders of all kinds; 5 would not meet every member */
			if (step % 5 == 0)
				continue;
			n = (size_t)sprintf(doc, "{\"other\":0");
			for (int i = 0; i < 40; i++)
				n += (size_t)sprintf(doc + n, ",\"%s\":%d,\"x%d\":null", names[i * step % 40],
						     i * step % 40 * 3, i);
			n += (size_t)sprintf(doc + n, "}");
			for (int times = 0; times < 2; times++)
				assert_string_equal(json_rig_one(&rig, doc, n), want);
		}
	}
}

static void test_missing_fields(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	json_rig_field(&rig, "n", "o/n", WEIR_KIND_BIGINT);
	rig.options.fail_on_missing_field = true;
	EXPECT({"{\"v\":1,\"o\":{\"n\":2}}", "1|2"}, {"{\"v\":null,\"o\":{\"n\":2}}", "NULL|2"},
	       {"{\"v\":1,\"o\":{}}", "!null at -1 n: the member is missing"},
	       {"{\"o\":{\"n\":2}}", "!null at -1 v: the member is missing"}, {"{\"v\":1,\"o\":null}", "1|NULL"});
}

static void test_not_null(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT)->not_null = true;
	EXPECT({"{\"v\":1}", "1"}, {"{\"v\":null}", "!null at 5 v: NULL in a NOT NULL column"},
	       {"{}", "!null at -1 v: NULL in a NOT NULL column"});
	rig.options.ignore_parse_errors = true;
	EXPECT({"{\"v\":1}", "1"}, {"{\"v\":\"x\"}", "!null at 5 v: NULL in a NOT NULL column"},
	       {"nonsense", "!json at 0 -: expected a value"});
}

static void test_ignored_errors(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	json_rig_field(&rig, "s", NULL, WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "o", "o/p", WEIR_KIND_VARCHAR);
	rig.options.ignore_parse_errors = true;
	EXPECT({"{\"v\":1,\"s\":\"x\"}", "1|x|NULL"}, {"{\"v\":\"bad\",\"s\":\"x\"}", "NULL|x|NULL"},
	       {"{\"v\":1e30,\"s\":\"x\"}", "NULL|x|NULL"},
	       {"{\"v\":1,\"s\":\"x\"", "!json at 14 -: the document ends too early"},
	       {"", "!json at 0 -: an empty value"}, {"[1]", "!type at 0 -: expected an object"},
	       {"{\"o\":1,\"v\":4}", "4|NULL|NULL"}, {"{\"v\":2,\"s\":\"y\"}", "2|y|NULL"});
}

/* BL-008, BL-009, BL-011, BL-012, BL-015. */
static void test_refusals(void **state)
{
	(void)state;
	json_rig_field(&rig, "k", NULL, WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	EXPECT({"{\"k\":\"a\",\"v\":1}", "a|1"},
	       {"{\"k\":\"a\",\"v\":\"abc\"}", "!type at 13 v: not a value of the column's type"},
	       {"", "!json at 0 -: an empty value"}, {" ", "!json at 1 -: the document ends too early"},
	       {"nul", "!json at 0 -: expected a value"},
	       {"{\"k\":\"a\"}x", "!json at 9 -: something follows the document"},
	       {"{\"k\":a\"}", "!json at 5 k: expected a value"},
	       {"{\"k\":\"a\",v\":1}", "!json at 9 -: expected a member name"},
	       {"{\"k\":\"a", "!json at 7 k: the string does not end"}, {"\xff\xfe", "!json at 0 -: expected a value"},
	       {"{\"k\":\"\xc3(\"}", "!utf8 at 6 k: invalid UTF-8"},
	       {"{\"k\":\"\\udead\"}", "!utf8 at 6 k: a lone surrogate"},
	       {"{\"k\":\"a\tb\"}", "!json at 7 k: a control character in a string"},
	       {"{\"k\":\"a\\xb\"}", "!json at 8 k: unknown escape"}, {"[]", "!type at 0 -: expected an object"},
	       {"\"x\"", "!type at 0 -: expected an object"}, {" 17", "!type at 1 -: expected an object"},
	       {"null", "!type at 0 -: expected an object"}, {"{\"k\" \"a\"}", "!json at 5 k: expected ':'"},
	       {"{\"k\":\"a\" \"v\":1}", "!json at 9 -: expected ',' or '}'"});
	assert_true(json_rig_open(&rig, NULL, true));
	assert_string_equal(json_rig_one(&rig, "\0\0\0\0*{}", 7),
			    "!framing at 0 -: looks framed for a schema registry (a zero byte and a schema id)");
	assert_string_equal(json_rig_one(&rig, "\0{}", 3), "!json at 0 -: expected a value");
}

static void test_null_payload(void **state)
{
	(void)state;
	json_rig_field(&rig, "k", NULL, WEIR_KIND_VARCHAR)->not_null = true;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	assert_true(json_rig_open(&rig, NULL, true));
	for (int i = 0; i < 10; i++) {
		if (i % 3 == 1)
			json_rig_add_null(&rig);
		else
			json_rig_add(&rig, "{\"k\":\"a\",\"v\":1}", 15);
	}
	json_rig_run(&rig);
	for (uint32_t i = 0; i < 10; i++)
		assert_string_equal(json_rig_text(&rig, i), i % 3 == 1 ? "NULL|NULL" : "a|1");
}

/* A query that reads no column checks its records none the less. */
static void test_no_fields(void **state)
{
	(void)state;
	EXPECT({"{\"k\":\"a\",\"v\":1}", ""}, {"{\"k\":\"b\",\"v\":2}", ""}, {"{}", ""},
	       {"[]", "!type at 0 -: expected an object"},
	       {"{\"k\":\"a\",\"v\":1", "!json at 14 -: the document ends too early"});
}

static void test_top_level_array(void **state)
{
	(void)state;
	json_rig_field(&rig, "second", "1", WEIR_KIND_VARCHAR);
	EXPECT({"[1,\"x\"]", "x"}, {"[1]", "NULL"}, {"{\"1\":2}", "!type at 0 second: expected an array"});
}

/* BL-013, BL-014: depth is bounded, the stack is not used for it, and long tokens are linear. */
static void test_depth(void **state)
{
	(void)state;
	json_rig_field(&rig, "a", NULL, WEIR_KIND_VARCHAR);
	size_t bytes = 1 << 20;
	char *big = malloc(bytes);
	for (int speculate = 0; speculate < 2; speculate++) {
		for (const char *const *v = json_rig_variants; *v != NULL; v++) {
			if (!json_rig_open(&rig, *v, speculate != 0))
				continue;
			memset(big, '[', bytes);
			assert_string_equal(json_rig_one(&rig, big, bytes),
					    "!depth at 128 -: nested deeper than json.depth.max");
			for (size_t i = 0; i < 100000; i++)
				memcpy(big + i * 5, "{\"a\":", 5);
			json_rig_add(&rig, big, 500000);
			json_rig_add(&rig, "{\"a\":\"next\"}", 12);
			json_rig_run(&rig);
			assert_string_equal(json_rig_text(&rig, 0),
					    "!depth at 640 a: nested deeper than json.depth.max");
			assert_string_equal(json_rig_text(&rig, 1), "next");
			for (int depth = 125; depth <= 131;
			     depth++) { /* around the bound, in an array that is one value */
				int n = sprintf(big, "{\"b\":");
				memset(big + n, '[', (size_t)depth - 1);
				memset(big + n + depth - 1, ']', (size_t)depth - 1);
				n += 2 * (depth - 1);
				big[n++] = '}';
				(void)json_rig_one(&rig, big, (size_t)n);
				assert_int_equal(json_rig_reason(&rig, 0),
						 depth <= 128 ? WEIR_REASON_NONE : WEIR_REASON_DEPTH);
			}
		}
	}
	rig.options.depth_max = 2;
	assert_true(json_rig_open(&rig, NULL, true));
	assert_string_equal(json_rig_one(&rig, "{\"a\":[]}", 8), "[]");
	assert_string_equal(json_rig_one(&rig, "{\"a\":[[]]}", 10), "!depth at 6 a: nested deeper than json.depth.max");
	free(big);
}

static void test_long_numbers(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	struct weir_type *t = json_rig_field(&rig, "d", "v", WEIR_KIND_DECIMAL);
	t->precision = 38;
	t->scale = 2;
	json_rig_field(&rig, "f", "v", WEIR_KIND_DOUBLE);
	enum { DIGITS = 900000 };
	char *big = malloc(DIGITS + 64);
	assert_true(json_rig_open(&rig, NULL, true));
	size_t n = (size_t)sprintf(big, "{\"v\":");
	memset(big + n, '7', DIGITS);
	n += DIGITS;
	big[n++] = '}';
	assert_string_equal(json_rig_one(&rig, big, n), "!range at 5 v: out of the type's range");
	/* The same length, yet small: a fraction of zeros. */
	memset(big + 5, '0', DIGITS);
	memcpy(big + 5, "3.", 2);
	assert_string_equal(json_rig_one(&rig, big, n), "3|3.00|3");
	free(big);
}

static void test_sizes(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	rig.options.record_bytes_max = 10;
	EXPECT({"{\"v\":1}", "1"}, {"{\"v\":1234}", "1234"},
	       {"{\"v\":12345}", "!size at -1 -: larger than record.bytes.max"});
}

static void test_keys(void **state)
{
	(void)state;
	json_rig_field(&rig, "k", NULL, WEIR_KIND_VARCHAR);
	struct weir_decoder *d = NULL;
	assert_int_equal(weir_json_decoder_create(&d, &rig.options, rig.fields, 1, true, NULL), WEIR_OK);
	assert_true(d->on_key);
	weir_col_init(&rig.cols[0], WEIR_PHYS_STR);
	static uint8_t key[64 + WEIR_PAYLOAD_PAD] = "{\"k\":\"from the key\"}";
	struct weir_record records[3];
	for (int i = 0; i < 3; i++)
		records[i] = (struct weir_record){.key = key, .key_bytes = 20};
	records[1].key = NULL;
	weir_sel_all(&rig.sel, 3);
	d->decode(d, records, &rig.sel, rig.cols, &rig.scratch, &rig.errors);
	assert_int_equal(rig.sel.count, 3);
	assert_memory_equal(rig.cols[0].str[2].data, "from the key", 12);
	assert_true(weir_col_is_null(&rig.cols[0], 1));
	d->destroy(d);
}

/* sel keeps its order and its holes; rows outside it are not looked at. */
static void test_selection(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	assert_true(json_rig_open(&rig, NULL, true));
	for (int i = 0; i < 100; i++)
		json_rig_add(&rig, i % 10 == 3 ? "{\"v\":x}" : "{\"v\":5}", 7);
	weir_sel_all(&rig.sel, 0);
	for (uint16_t i = 1; i < 100; i += 2)
		rig.sel.row[rig.sel.count++] = i;
	rig.errors.count = 0;
	weir_row_errors_add(&rig.errors, 0, WEIR_REASON_LATE, 0, NULL, NULL); /* somebody else's */
	rig.d->decode(rig.d, rig.records, &rig.sel, rig.cols, &rig.scratch, &rig.errors);
	assert_int_equal(rig.errors.count, 1 + 10);
	assert_int_equal(rig.sel.count, 40);
	for (uint32_t i = 0, want = 1; i < rig.sel.count; i++, want += 2) {
		want += want % 10 == 3 ? 2 : 0;
		assert_int_equal(rig.sel.row[i], want);
	}
}

static void test_paths_that_cannot_be(void **state)
{
	(void)state;
	struct weir_decoder *d = NULL;
	struct weir_diag *dg = NULL;
	struct weir_path_step step = {.name = NULL, .index = -1};
	struct weir_field f = {.name = "v", .type = {.kind = WEIR_KIND_BIGINT}, .path = &step, .path_steps = 1};
	assert_int_equal(weir_json_decoder_create(&d, &rig.options, &f, 1, false, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "'v'"));
	assert_null(d);
	weir_diag_destroy(dg);
}

/* The way of a stream that changes its layout now and then is the fast one again after each change. */
static void test_layouts_are_learned(void **state)
{
	(void)state;
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	assert_true(json_rig_open(&rig, NULL, true));
	static const char *const docs[] = {"{\"v\":1}", "{\"v\": 1}", "{\"v\":1,\"w\":\"x\"}",
					   "{\"w\":\"x\",\"v\":12}"};
	uint64_t fast, general;
	for (int i = 0; i < 1000; i++)
		json_rig_add(&rig, docs[i / 250], strlen(docs[i / 250]));
	json_rig_run(&rig);
	weir_json_counts(rig.d, &fast, &general);
	assert_int_equal(general, 4);
	assert_int_equal(fast, 996);
	for (int i = 0; i < 1000; i++) /* all four are remembered */
		json_rig_add(&rig, docs[i % 4], strlen(docs[i % 4]));
	json_rig_run(&rig);
	weir_json_counts(rig.d, &fast, &general);
	assert_int_equal(general, 4);
	assert_int_equal(fast, 1996);
}

/* Values of all widths, nulls, escapes, characters beyond ASCII and odd numbers do not leave the fast way. */
static void test_fast_way_takes_odd_values(void **state)
{
	(void)state;
	json_rig_field(&rig, "s", NULL, WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "v", NULL, WEIR_KIND_BIGINT);
	json_rig_field(&rig, "l", NULL, WEIR_KIND_ARRAY);
	for (int null_first = 0; null_first < 2; null_first++) {
		for (const char *const *v = json_rig_variants; *v != NULL; v++) {
			if (!json_rig_open(&rig, *v, true))
				continue;
			static const char *const strings[] = {
				"\"\"",
				"\"x\"",
				"\"\\u0041\"",
				"\"Ã¼\"",
				"null",
				"\"a string of more than thirty-two characters, and more than sixty-four too\"",
				"\"\\\\\""};
			static const char *const numbers[] = {"1",   "-1",  "0",   "1234567890123456789",
							      "1e2", "1.0", "null"};
			static const char *const arrays[] = {"[]", "[1,2,3]", "[{\"a\":[]}]", "null"};
			static const char odd[] = "{\"s\":null,\"t\":\"\",\"v\":null,\"w\":1,\"l\":null,\"m\":[]}";
			uint32_t n = 0;
			if (null_first) {
				json_rig_add(&rig, odd, sizeof odd - 1);
				n++;
			}
			for (size_t a = 0; a < WEIR_COUNT_OF(strings); a++)
				for (size_t b = 0; b < WEIR_COUNT_OF(numbers); b++)
					for (size_t c = 0; c < WEIR_COUNT_OF(arrays); c++, n++) {
						char doc[1024];
						int bytes = snprintf(
							doc, sizeof doc,
							"{\"s\":%s,\"t\":%s,\"v\":%s,\"w\":%s,\"l\":%s,\"m\":%s}",
							strings[a], strings[a], numbers[b], numbers[b], arrays[c],
							arrays[c]);
						json_rig_add(&rig, doc, (size_t)bytes);
					}
			json_rig_run(&rig);
			uint64_t fast, general;
			weir_json_counts(rig.d, &fast, &general);
			assert_int_equal(rig.errors.count, 0);
			assert_int_equal(general, 1);
			assert_int_equal(fast, n - 1);
			for (uint32_t row = null_first != 0; row < n; row++) {
				size_t at = row - (null_first != 0);
				size_t c = at % WEIR_COUNT_OF(arrays),
				       b = at / WEIR_COUNT_OF(arrays) % WEIR_COUNT_OF(numbers),
				       a = at / WEIR_COUNT_OF(arrays) / WEIR_COUNT_OF(numbers);
				static const char *const s[] = {
					"",
					"x",
					"A",
					"Ã¼",
					"NULL",
					"a string of more than thirty-two characters, and more than sixty-four too",
					"\\"};
				static const char *const i[] = {"1",   "-1", "0",   "1234567890123456789",
								"100", "1",  "NULL"};
				static const char *const l[] = {"[]", "[1,2,3]", "[{\"a\":[]}]", "NULL"};
				char want[256];
				snprintf(want, sizeof want, "%s|%s|%s", s[a], i[b], l[c]);
				assert_string_equal(json_rig_text(&rig, row), want);
			}
		}
	}
}

/* Several nulls in a row, and what must not be taken for one. */
static void test_nulls_for_strings(void **state)
{
	(void)state;
	json_rig_field(&rig, "a", NULL, WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "b", NULL, WEIR_KIND_VARCHAR);
	json_rig_field(&rig, "i", NULL, WEIR_KIND_BIGINT);
	EXPECT({"{\"a\":\"x\",\"b\":\"y\",\"c\":\"z\",\"i\":1}", "x|y|1"},
	       {"{\"a\":null,\"b\":null,\"c\":null,\"i\":2}", "NULL|NULL|2"},
	       {"{\"a\":null,\"b\":\"\",\"c\":null,\"i\":2}", "NULL||2"},
	       {"{\"a\":\"\\n\",\"b\":null,\"c\":\"\",\"i\":null}", "\n|NULL|NULL"},
	       {"{\"a\":null,\"b\":nu\",\"b\":\"y\",\"c\":\"z\",\"i\":1}", "!json at 14 b: expected a value"},
	       {"{\"a\":nullx,\"b\":\"y\",\"c\":\"z\",\"i\":1}", "!json at 9 -: expected ',' or '}'"},
	       {"{\"a\":null\",\"b\":\"y\",\"c\":\"z\",\"i\":1}", "!json at 9 -: expected ',' or '}'"},
	       {"{\"a\":\"x\",\"b\":\"y\",\"c\":null", "!json at 25 -: the document ends too early"});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, release)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order),
		TEST(test_integers),
		TEST(test_small_integers),
		TEST(test_decimals),
		TEST(test_decimal_forms),
		TEST(test_doubles),
		TEST(test_floats_and_booleans),
		TEST(test_strings),
		TEST(test_nul_in_strings),
		TEST(test_lengths_and_bytes),
		TEST(test_times),
		TEST(test_time_units),
		TEST(test_containers),
		TEST(test_names),
		TEST(test_paths),
		TEST(test_duplicates),
		TEST(test_many_fields),
		TEST(test_missing_fields),
		TEST(test_not_null),
		TEST(test_ignored_errors),
		TEST(test_refusals),
		TEST(test_null_payload),
		TEST(test_no_fields),
		TEST(test_top_level_array),
		TEST(test_depth),
		TEST(test_long_numbers),
		TEST(test_sizes),
		TEST(test_keys),
		TEST(test_selection),
		TEST(test_paths_that_cannot_be),
		TEST(test_layouts_are_learned),
		TEST(test_fast_way_takes_odd_values),
		TEST(test_nulls_for_strings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
