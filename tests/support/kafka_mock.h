/* kafka_mock.h: librdkafka's mock cluster for tests of io/kafka: one broker, topics filled with known records, and a
 * group member on it. @thread: the test's */
#ifndef WEIR_TESTS_KAFKA_MOCK_H
#define WEIR_TESTS_KAFKA_MOCK_H

#include <librdkafka/rdkafka.h>
#include <stdio.h>

#include <librdkafka/rdkafka_mock.h> /* wants the other one first */

#include "io/kafka/input.h"

/* Numbers of Kafka's requests, for errors to be put in. */
enum {
	MOCK_FETCH = 1,
	MOCK_LIST_OFFSETS = 2,
	MOCK_OFFSET_FETCH = 9,
	MOCK_FIND_COORDINATOR = 10,
	MOCK_JOIN_GROUP = 11,
	MOCK_HEARTBEAT = 12,
	MOCK_SYNC_GROUP = 14
};

/* As cmocka's group setup and teardown. */
int mock_setup(void **state);
int mock_teardown(void **state);
rd_kafka_mock_cluster_t *mock_cluster(void);
/* What main returns where tests are members of groups: run's (of cmocka) in a process of its own, and again where some
 * failed in one that had stood still for as long as a session may end by: the mock cluster drops members then, as a
 * broker may. */
int mock_run(int (*run)(void));
/* Record i of a partition: key "k<i>" (null where i % 5 is 4), value mock_value(i), timestamp 1000 + i. */
void mock_fill(const char *topic, int partitions, int records);
/* Bytes of the value of record i, which are mock_byte(i, n); -1: null. */
int mock_value_bytes(int i);
char mock_byte(int i, int n);
/* Whether a line with part in it was logged by the member that was opened last. */
bool mock_has_said(const char *part);
/* A member (or not) of group over one topic, bounded or not; log lines are kept for mock_has_said. */
struct weir_kafka_input *mock_input(const char *topic, const char *group, bool member, bool bounded);
/* A member that reads nothing. */
struct weir_kafka_input *mock_fence(const char *topic, const char *group);
/* A member, unbounded, of a group that moves partitions one by one. */
struct weir_kafka_input *mock_cooperative(const char *topic, const char *group);
/* Serves until the group is in state, or asserts after a while. */
void mock_reach(struct weir_kafka_input *in, enum weir_kafka_group_state state);
/* Which partitions of its topic it owns, a bit each. */
uint32_t mock_owned(struct weir_kafka_input *in);
/* Serves and reads what is there; returns how many records, checks them and that each follows the one before. next: an
 * offset for each partition. */
uint32_t mock_read(struct weir_kafka_input *in, int64_t *next);

#endif
