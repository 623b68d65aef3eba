/* test_utf8.c: the UTF-8 check against a decoder that goes by the code points. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hotpath/core/utf8.h"

static uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Offset of the first bad sequence, or bytes: by value, not by table. */
static size_t model(const uint8_t *s, size_t bytes)
{
	size_t i = 0;
	while (i < bytes) {
		uint32_t c = s[i], n = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 0;
		static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
		if (n == 0 || i + n > bytes)
			return i;
		uint32_t v = n == 1 ? c : c & (0x7fu >> n);
		for (uint32_t k = 1; k < n; k++) {
			if ((s[i + k] & 0xc0) != 0x80)
				return i;
			v = v << 6 | (s[i + k] & 0x3f);
		}
		if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
			return i;
		i += n;
	}
	return bytes;
}

static size_t put_point(uint8_t *to, uint32_t v)
{
	if (v < 0x80) {
		to[0] = (uint8_t)v;
		return 1;
	}
	if (v < 0x800) {
		to[0] = (uint8_t)(0xc0 | v >> 6);
		to[1] = (uint8_t)(0x80 | (v & 63));
		return 2;
	}
	if (v < 0x10000) {
		to[0] = (uint8_t)(0xe0 | v >> 12);
		to[1] = (uint8_t)(0x80 | (v >> 6 & 63));
		to[2] = (uint8_t)(0x80 | (v & 63));
		return 3;
	}
	to[0] = (uint8_t)(0xf0 | v >> 18);
	to[1] = (uint8_t)(0x80 | (v >> 12 & 63));
	to[2] = (uint8_t)(0x80 | (v >> 6 & 63));
	to[3] = (uint8_t)(0x80 | (v & 63));
	return 4;
}

static void check(const uint8_t *s, size_t bytes)
{
	/* A block of exactly that size, so that ASan sees a read beyond it. */
	uint8_t *copy = malloc(bytes ? bytes : 1);
	memcpy(copy, s, bytes);
	size_t bad = SIZE_MAX, expected = model(s, bytes);
	bool good = weir_utf8_check(copy, bytes, &bad);
	free(copy);
	assert_int_equal(good, expected == bytes);
	if (!good)
		assert_int_equal(bad, expected);
}

static void test_every_sequence_at_every_place(void **state)
{
	(void)state;
	uint8_t buf[160];
	for (uint32_t lead = 0x80; lead < 0x100; lead++) {
		for (uint32_t second = 0x70; second < 0xd0; second++) {
			uint8_t seq[4] = {(uint8_t)lead, (uint8_t)second, 0x80, 0xbf};
			for (size_t n = 1; n <= 4; n++) {
				size_t place = (lead * 7 + second * 3) % 100;
				memset(buf, 'a', sizeof buf);
				memcpy(buf + place, seq, n);
				check(buf, sizeof buf);
				check(buf, place + n);
				memset(buf, 0xc3, sizeof buf);
				for (size_t i = 1; i < sizeof buf; i += 2)
					buf[i] = 0xa4;
				memcpy(buf + place, seq, n);
				check(buf, sizeof buf);
				check(buf, place + n);
			}
		}
	}
}

static void test_random_text_with_random_damage(void **state)
{
	(void)state;
	uint8_t buf[400];
	for (int round = 0; round < 60000; round++) {
		size_t bytes = 0, limit = rnd() % 300;
		uint32_t most = (const uint32_t[]){0x80, 0x800, 0x10000, 0x110000}[rnd() % 4];
		while (bytes < limit) {
			uint32_t v = (uint32_t)(rnd() % most);
			if (v >= 0xd800 && v < 0xe000)
				v = 'x';
			bytes += put_point(buf + bytes, v);
		}
		check(buf, bytes);
		if (bytes > 0) {
			buf[rnd() % bytes] ^= (uint8_t)(1u << (rnd() % 8));
			check(buf, bytes);
			check(buf, rnd() % bytes);
		}
	}
}

static void test_count(void **state)
{
	(void)state;
	assert_int_equal(weir_utf8_count((const uint8_t *)"", 0), 0);
	const char *s = "gr\xc3\xb6\xc3\x9f"
			"e \xe2\x82\xac \xf0\x9f\x8e\x89 and some more";
	assert_int_equal(weir_utf8_count((const uint8_t *)s, strlen(s)), strlen(s) - 1 - 1 - 2 - 3);
	assert_true(weir_utf8_check(NULL, 0, NULL));
	assert_false(weir_utf8_check((const uint8_t *)"\xed\xa0\x80", 3, NULL)); /* a lone surrogate */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sequence_at_every_place),
		cmocka_unit_test(test_random_text_with_random_damage),
		cmocka_unit_test(test_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
