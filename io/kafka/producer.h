/* producer.h: a producer's handle that can be replaced, with the topics that it writes: what the transactional
 * producer and the results' one have in common. Included inside io/kafka/ only. @thread snap, init */
#ifndef WEIR_IO_KAFKA_PRODUCER_H
#define WEIR_IO_KAFKA_PRODUCER_H

#include "checkpoint/changelog.h"
#include "io/kafka/client.h"

struct weir_producer_topic {
	char *name; /* NULL: a number that is not used */
	char *compression;
	rd_kafka_topic_t *rkt; /* of the handle */
};
struct weir_producer {
	struct weir_kafka_client *kc; /* NULL: closed */
	struct weir_producer_topic *topics;
	uint32_t topic_count;
	int64_t batch_bytes; /* the largest batch that every topic takes; 0: the default */
};
/* How often a handle may be replaced: errors that pass by waiting, for ever, at growing distances; others only so many
 * times a minute. {0} is fresh. */
enum { WEIR_PATIENCE_MAX = 10 };
struct weir_patience {
	int64_t ms[WEIR_PATIENCE_MAX]; /* when, a ring */
	uint32_t count;
	int64_t last_ms;
	int64_t pause_ms;
};
/* Notes one more try of which at most so many (1 to WEIR_PATIENCE_MAX) a minute are worth it; false: that was the last.
 */
bool weir_patience_try(struct weir_patience *pt, uint32_t most);
/* Waits before a replacement, longer each time; a set stop ends it. */
void weir_patience_pause(struct weir_patience *pt, const _Atomic bool *stop);

/* How much waits in librdkafka's queue: enough for half a second at full speed, in about 100 MB. */
extern const struct weir_kafka_setting weir_producer_queue[3];

typedef void weir_on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque);

/* A new handle; connects to nobody. extra, forced as in client.h. */
WEIR_MUST_CHECK enum weir_err weir_producer_open(struct weir_producer *pr, const struct weir_conf *cf,
						 const struct weir_kafka_setting *extra,
						 const struct weir_kafka_setting *forced, weir_on_delivery *on_delivery,
						 void *user, const struct weir_kafka_log *log, struct weir_diag **dg);
/* Drops what is queued or on its way, and the handle; the topics' names stay. */
void weir_producer_close(struct weir_producer *pr);
void weir_producer_fini(struct weir_producer *pr);
/* A topic by the caller's number. compression NULL: the producer's. */
WEIR_MUST_CHECK enum weir_err weir_producer_topic(struct weir_producer *pr, uint32_t number, const char *name,
						  const char *compression, struct weir_diag **dg);
/* The next handle's batches are no larger than batch_bytes; false: nor are this one's. */
bool weir_producer_limit(struct weir_producer *pr, int64_t batch_bytes);
/* Gives the handle its topics, with their metadata: the first record of a topic would wait a second for them. */
WEIR_MUST_CHECK enum weir_err weir_producer_know(struct weir_producer *pr, struct weir_diag **dg);
/* One try. flags: RD_KAFKA_MSG_F_COPY or 0. */
rd_kafka_resp_err_t weir_producer_put(struct weir_producer *pr, uint32_t topic, uint32_t partition,
				      const struct weir_out *r, void *opaque, int flags);

WEIR_INLINE rd_kafka_t *weir_producer_handle(const struct weir_producer *pr)
{
	return weir_kafka_client_handle(pr->kc);
}

#endif
