/* test_topic.c: what is said of a topic. The rest of topic.c needs brokers: tests/integration/kafka_log.sh. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "io/kafka/topic.h"

static void test_old(void **state)
{
	(void)state;
	char text[WEIR_KAFKA_TOPIC_OLD_MAX];
	assert_string_equal(weir_kafka_topic_old(text, "out", 86400000, 1767225600123),
			    "topic out keeps records for 86400 s by their own times, and results are older than that "
			    "(2026-01-01 00:00:00.123Z): the broker deletes them soon. Set its retention.ms to -1");
	/* Names may be as long as Kafka has them, times as far away as they like. */
	char name[250];
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	weir_kafka_topic_old(text, name, INT64_MAX, INT64_MIN);
	assert_non_null(strstr(text, "Set its retention.ms to -1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_old)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
