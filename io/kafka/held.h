/* held.h: who holds a last stable offset back. A reader of committed records stops in front of the first transaction
 * of a partition that is not ended, and the broker does not tell it whose that is. The transactions' own log does
 * (topic __transaction_state: a record for each change of a transactional.id, with the partitions that it has written
 * to), so it is read when a wait has become long. Included inside io/kafka/ (and tests) only. */
#ifndef WEIR_IO_KAFKA_HELD_H
#define WEIR_IO_KAFKA_HELD_H

#include "io/conf.h"
#include "io/kafka/kafka.h"

enum { WEIR_KAFKA_HELD_TEXT = 400 };

struct weir_kafka_holder {
	char id[200]; /* its transactional.id, longer ones cut; "": not known */
	int64_t producer_id;
	int64_t since_ms;   /* Unix time of its begin */
	int64_t timeout_ms; /* its coordinator aborts it then; 0: not known */
};

/* A place where a reader waits. */
struct weir_kafka_spot {
	const char *topic; /* borrowed */
	uint32_t partition;
	int64_t eof;                     /* the reader's end: the last stable offset */
	uint32_t tag;                    /* the caller's */
	bool suspect;                    /* it has stood here before, and the log was longer then, too */
	bool is_shorter;                 /* out: eof is not the end of the log */
	struct weir_kafka_holder holder; /* out: where suspect and is_shorter */
};

/* Who holds each of count spots back, into their holders: of several the one that began first. Reads what the
 * transactions' log has had in the last day, for wait_ms and 256 MB at most. false: it cannot be read (no right to, no
 * brokers), and nobody is known. Blocks. @thread any */
bool weir_kafka_held_find(const struct weir_conf *cf, struct weir_kafka_spot *spots, uint32_t count, int64_t wait_ms,
			  const _Atomic bool *stop);
/* "the unfinished transaction of ID (producer 7, begun 2026-01-01 00:00:00)", and what to do where nobody is known. */
void weir_kafka_held_text(const struct weir_kafka_holder *h, char *out, size_t bytes);

/* What a record of the transactions' log says: false where it is none that is understood. *open: the transaction in
 * h->id is not ended and has written to topic and partition. Source: TransactionLogKey.json, TransactionLogValue.json
 * of Kafka, versions 0 and 1. */
bool weir_kafka_held_parse(const void *key, size_t key_bytes, const void *value, size_t value_bytes, const char *topic,
			   uint32_t partition, struct weir_kafka_holder *h, bool *open);

/* Looks on a thread of its own, so that whoever reads does not wait for it. */
struct weir_kafka_watch;
/* cf and lg are copied. Never fails: it connects when it has something to look at. */
struct weir_kafka_watch *weir_kafka_watch_create(const struct weir_conf *cf, const struct weir_kafka_log *lg);
/* Waits for a look that is going on: 10 s at most. NULL is fine. */
void weir_kafka_watch_destroy(struct weir_kafka_watch *w);
/* Room for most spots, to be filled in before begin; NULL: a look is going on. @thread owner */
struct weir_kafka_spot *weir_kafka_watch_room(struct weir_kafka_watch *w, uint32_t most);
/* Compares count spots with the ends of their logs, and names in a line who holds back those that are suspects and
 * still shorter. */
void weir_kafka_watch_begin(struct weir_kafka_watch *w, uint32_t count);
/* The spots of the last look once it is over, else NULL. */
const struct weir_kafka_spot *weir_kafka_watch_result(struct weir_kafka_watch *w, uint32_t *count);

#endif
