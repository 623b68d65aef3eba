/* test_murmur2.c: the vectors of Kafka's own test of its partitioner's hash. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "io/recorded/recorded.h"

static void test_vectors(void **state)
{
	static const struct {
		const char *text;
		int32_t hash;
	} cases[] = {{"21", -973932308},
		     {"foobar", -790332482},
		     {"a-little-bit-long-string", -985981536},
		     {"a-little-bit-longer-string", -1486304829},
		     {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
		     {"abc", 479470107}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal((int32_t)weir_murmur2(cases[i].text, strlen(cases[i].text)), cases[i].hash);
	assert_int_equal((int32_t)weir_murmur2("", 0), 275646681);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
