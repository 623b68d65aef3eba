/* reset.h: starting an application over on a cluster: its group's offsets, changelogs and repartition topics together.
 * librdkafka does not show. @thread: the caller's */
#ifndef WEIR_IO_KAFKA_RESET_H
#define WEIR_IO_KAFKA_RESET_H

#include "io/kafka/kafka.h"

/* The eight ways of kafka-consumer-groups --reset-offsets. */
enum weir_reset_to {
	WEIR_RESET_EARLIEST,
	WEIR_RESET_LATEST,
	WEIR_RESET_CURRENT, /* offsets stay, state goes */
	WEIR_RESET_OFFSET,  /* value */
	WEIR_RESET_SHIFT,   /* by value records, either way */
	WEIR_RESET_TIME,    /* value: ms; the first record that is not older, else the end */
	WEIR_RESET_FILE     /* file: lines `topic,partition,offset` or `TOPIC PARTITION OFFSET` */
};
struct weir_reset_spec {
	const char *app;
	enum weir_reset_to to;
	int64_t value;
	const char *file;
	const char *const *topics; /* "t" or "t:0,1": these alone; none: every topic the group has offsets for */
	uint32_t topic_count;
	bool execute; /* false: only says what it would do */
};
/* Calls say with each line: a table of offsets (TOPIC PARTITION CURRENT-OFFSET NEW-OFFSET), then the topics that go.
 * Offsets are moved first, topics deleted after: a reset that is cut off in between makes the next run refuse, naming
 * this command. WEIR_E_CONF: no such group or topic, or the group has members (WEIR_E_STATE). */
WEIR_MUST_CHECK enum weir_err weir_kafka_reset(const struct weir_conf *cf, const struct weir_reset_spec *spec,
					       void (*say)(void *ctx, const char *line), void *ctx,
					       const struct weir_kafka_log *lg, struct weir_diag **dg);

#endif
