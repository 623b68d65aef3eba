/* test_crc32c.c: known values, and the fast variant against the tables for every length and alignment that takes
 * another path. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "io/recorded/crc32c.h"

static void test_known_values(void **state)
{
	(void)state;
	/* RFC 3720, appendix B.4 */
	uint8_t bytes[32];
	memset(bytes, 0, sizeof bytes);
	assert_int_equal(weir_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
	memset(bytes, 0xff, sizeof bytes);
	assert_int_equal(weir_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(weir_crc32c(0, bytes, sizeof bytes), 0x46dd794e);
	assert_int_equal(weir_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(weir_crc32c_instruction(0, "123456789", 9), 0xe3069283);
	assert_int_equal(weir_crc32c_portable(0, "123456789", 9), 0xe3069283);
	assert_int_equal(weir_crc32c(0, NULL, 0), 0);
}

static void test_variants_agree(void **state)
{
	(void)state;
	enum { BYTES = 3 * 2048 * 3 + 700 };
	uint8_t *data = malloc(BYTES + 8);
	srand(1);
	for (int i = 0; i < BYTES + 8; i++)
		data[i] = (uint8_t)rand();
	for (size_t bytes = 0; bytes <= BYTES; bytes += bytes < 1600 ? 1 : 61) {
		uint32_t start = bytes < 1600 ? 7 : 0, want = weir_crc32c_portable(start, data + bytes % 8, bytes);
		assert_int_equal(weir_crc32c(start, data + bytes % 8, bytes), want);
		assert_int_equal(weir_crc32c_instruction(start, data + bytes % 8, bytes), want);
	}
	free(data);
}

static void test_continues(void **state)
{
	(void)state;
	uint8_t data[20000];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	uint32_t whole = weir_crc32c(0, data, sizeof data);
	for (size_t cut = 0; cut < sizeof data; cut += 777)
		assert_int_equal(weir_crc32c(weir_crc32c(0, data, cut), data + cut, sizeof data - cut), whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_values), cmocka_unit_test(test_variants_agree),
					   cmocka_unit_test(test_continues)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
