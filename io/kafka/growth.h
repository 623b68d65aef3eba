/* growth.h: whether the topics that are read still have the partitions that they had when reading began. A topic that
 * grows moves keys from one partition to another, and with them away from the slots that hold their state. Included
 * inside io/kafka/ (and tests) only. @thread: one owner */
#ifndef WEIR_IO_KAFKA_GROWTH_H
#define WEIR_IO_KAFKA_GROWTH_H

#include "io/kafka/client.h"

struct weir_kafka_growth;
/* Asks through kc, which outlives it; app is named in errors. */
struct weir_kafka_growth *weir_kafka_growth_create(struct weir_kafka_client *kc, const char *app);
void weir_kafka_growth_destroy(struct weir_kafka_growth *gr); /* NULL is fine */
void weir_kafka_growth_add(struct weir_kafka_growth *gr, const char *topic, uint32_t partitions);
/* One request, which waits at most timeout_ms: without an answer nothing is known and nothing wrong. WEIR_E_CONF names
 * the topic, what it had and what it has. */
WEIR_MUST_CHECK enum weir_err weir_kafka_growth_check(struct weir_kafka_growth *gr, int timeout_ms,
						      struct weir_diag **dg);
/* Whether the last check that brokers answered found a topic that they call unknown: confirm. */
bool weir_kafka_growth_missing(const struct weir_kafka_growth *gr);

#endif
