/* kafka.h: topics of a Kafka cluster for the command's verbs: reading a range of one, writing one, the lag of a group.
 * librdkafka stands behind it and does not show. Every object has one owner; calls block up to the times they name. */
#ifndef WEIR_IO_KAFKA_KAFKA_H
#define WEIR_IO_KAFKA_KAFKA_H

#include "checkpoint/changelog.h"
#include "io/stream.h"
#include "io/weir_engine.h"

/* Where log lines go; level is syslog's. @thread any, also librdkafka's own */
struct weir_kafka_log {
	void (*say)(void *ctx, int level, const char *text);
	void *ctx;
};

/* ---- reading ---- */

enum weir_kafka_place_kind {
	WEIR_KAFKA_BEGINNING,
	WEIR_KAFKA_END,
	WEIR_KAFKA_OFFSET, /* value: N, or -N counted from the end */
	WEIR_KAFKA_TIME    /* value: ms; the first record that is not older */
};
struct weir_kafka_place {
	enum weir_kafka_place_kind kind;
	int64_t value;
};
/* beginning, end, N, -N, s@MS. WEIR_E_CONF else. */
WEIR_MUST_CHECK enum weir_err weir_kafka_place_parse(struct weir_kafka_place *out, const char *text,
						     struct weir_diag **dg);

enum weir_tstype { WEIR_TSTYPE_UNKNOWN, WEIR_TSTYPE_CREATE, WEIR_TSTYPE_APPEND };
struct weir_kafka_record {
	struct weir_record r; /* borrowed until the next call */
	uint32_t partition;
	int32_t broker; /* its node id, -1: not known */
	enum weir_tstype tstype;
};

struct weir_kafka_read_spec {
	const char *topic;
	int64_t partition; /* -1: all */
	struct weir_kafka_place start;
	int64_t end_ts;   /* stop before the first record of this time or later; -1: no such bound */
	bool follow;      /* go on behind the end that was there at open */
	bool uncommitted; /* isolation.level=read_uncommitted */
	bool in_order;    /* partition by partition (not with follow); else as they come */
};
struct weir_kafka_reader;
/* cf is borrowed until close. Waits for a broker as one-shot verbs do. WEIR_E_CONF: no such topic or partition. */
WEIR_MUST_CHECK enum weir_err weir_kafka_reader_open(struct weir_kafka_reader **out, const struct weir_conf *cf,
						     const struct weir_kafka_read_spec *spec,
						     const struct weir_kafka_log *lg, struct weir_diag **dg);
void weir_kafka_reader_close(struct weir_kafka_reader *rd); /* NULL is fine */
uint32_t weir_kafka_reader_partitions(const struct weir_kafka_reader *rd);
/* Offsets [*first, *end) that will be read of partition p; equal where nothing is. Follow: the end at open. */
void weir_kafka_reader_range(const struct weir_kafka_reader *rd, uint32_t p, int64_t *first, int64_t *end);
/* The offset behind what was read of p. */
int64_t weir_kafka_reader_position(const struct weir_kafka_reader *rd, uint32_t p);
/* UNIT: *out is a record. EMPTY: nothing within timeout_ms. BOUND: all was read. ERROR: see dg. */
enum weir_poll weir_kafka_reader_next(struct weir_kafka_reader *rd, int timeout_ms,
				      const struct weir_kafka_record **out, struct weir_diag **dg);

/* ---- writing ---- */

struct weir_kafka_write_spec {
	const char *topic;
	uint32_t partitions; /* of a topic that is made because it is missing; 0: it is not made */
};
struct weir_kafka_writer;
/* Idempotent, acks=all. A missing topic is made with retention.ms=-1: brokers delete by the records' own times. */
WEIR_MUST_CHECK enum weir_err weir_kafka_writer_open(struct weir_kafka_writer **out, const struct weir_conf *cf,
						     const struct weir_kafka_write_spec *spec,
						     const struct weir_kafka_log *lg, struct weir_diag **dg);
uint32_t weir_kafka_writer_partitions(const struct weir_kafka_writer *w);
bool weir_kafka_writer_created(const struct weir_kafka_writer *w);
/* partition -1: by key as Java's partitioner. Blocks while the producer's queue is full. The first record that a broker
 * refused for good makes every later call fail. */
WEIR_MUST_CHECK enum weir_err weir_kafka_writer_put(struct weir_kafka_writer *w, int64_t partition,
						    const struct weir_out *r, struct weir_diag **dg);
/* Serves delivery reports for at most timeout_ms. */
WEIR_MUST_CHECK enum weir_err weir_kafka_writer_poll(struct weir_kafka_writer *w, int timeout_ms,
						     struct weir_diag **dg);
/* Returns when every record was acknowledged, or one was not. */
WEIR_MUST_CHECK enum weir_err weir_kafka_writer_flush(struct weir_kafka_writer *w, struct weir_diag **dg);
/* Records acknowledged so far. */
uint64_t weir_kafka_writer_acked(const struct weir_kafka_writer *w);
void weir_kafka_writer_close(struct weir_kafka_writer *w); /* drops what was not flushed; NULL is fine */

/* ---- lag ---- */

struct weir_lag_row {
	char *topic;
	uint32_t partition;
	int64_t current; /* committed offset, -1: none */
	int64_t end;     /* end of the log, -1: not known */
	int64_t lag;    /* records, -1: not known; 0 where only markers of transactions or aborted records lie behind */
	int64_t lag_ms; /* age of the oldest record that was not read, 0: none is waiting; -1: not known */
	char *consumer; /* NULL: nobody has it */
	char *host;
	char *client;
};
struct weir_lag {
	char *group;
	char *state; /* "Stable", "Empty", ... */
	uint32_t members;
	struct weir_lag_row *rows; /* by topic and partition */
	size_t row_count;
	int64_t lag;    /* sum of what is known */
	int64_t lag_ms; /* largest of what is known */
};
struct weir_kafka_lag;
/* cf must live as long. */
WEIR_MUST_CHECK enum weir_err weir_kafka_lag_open(struct weir_kafka_lag **out, const struct weir_conf *cf,
						  const struct weir_kafka_log *lg, struct weir_diag **dg);
/* WEIR_E_CONF: there is no such group. */
WEIR_MUST_CHECK enum weir_err weir_kafka_lag_query(struct weir_kafka_lag *kl, const char *group, struct weir_lag *out,
						   struct weir_diag **dg);
void weir_lag_fini(struct weir_lag *lag);
void weir_kafka_lag_close(struct weir_kafka_lag *kl); /* NULL is fine */

#endif
