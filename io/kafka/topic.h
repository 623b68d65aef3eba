/* topic.h: topics of a cluster: their partitions and leaders, their settings, and making them. Included inside
 * io/kafka/ (and tests) only. @thread: the client's owner */
#ifndef WEIR_IO_KAFKA_TOPIC_H
#define WEIR_IO_KAFKA_TOPIC_H

#include "io/kafka/client.h"

/* What a broker says of a topic's settings. */
struct weir_kafka_topic_settings {
	bool known; /* false: the broker did not tell (an old one, or no permission) */
	bool compact, remove;
	bool append_time;
	int64_t retention_ms;      /* -1: for ever */
	int64_t message_bytes_max; /* of a whole stored batch */
};

/* Makes a topic (replication factor: the broker's default) and waits until every partition has a leader. *created
 * false: somebody else made it meanwhile; *partitions is what it has. config may be NULL. */
WEIR_MUST_CHECK enum weir_err weir_kafka_topic_create(struct weir_kafka_client *kc, const char *name,
						      uint32_t partitions, const struct weir_kafka_setting *config,
						      bool *created, uint32_t *partitions_out, struct weir_diag **dg);
/* Waits until every partition of an existing topic has a leader. */
WEIR_MUST_CHECK enum weir_err weir_kafka_topic_wait(struct weir_kafka_client *kc, const char *name,
						    uint32_t *partitions, struct weir_diag **dg);
/* Asks for the settings; what goes wrong is said in the log and leaves them unknown. */
void weir_kafka_topic_settings(struct weir_kafka_client *kc, const char *name, struct weir_kafka_topic_settings *out);

#define WEIR_KAFKA_TOPIC_OLD_MAX 600
/* Says into text that a topic's retention deletes results, timestamp being the time of one; returns text. */
const char *weir_kafka_topic_old(char text[WEIR_KAFKA_TOPIC_OLD_MAX], const char *name, int64_t retention_ms,
				 int64_t timestamp);

/* Of every changelog topic. */
extern const struct weir_kafka_setting weir_kafka_changelog_settings[];

#endif
