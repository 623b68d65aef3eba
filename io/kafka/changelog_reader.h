/* changelog_reader.h: one partition of a changelog read back, committed records only, up to its uncommitted end as it
 * is at the call. Included inside io/kafka/ (and tests) only. @thread: one owner */
#ifndef WEIR_IO_KAFKA_CHANGELOG_READER_H
#define WEIR_IO_KAFKA_CHANGELOG_READER_H

#include "io/kafka/client.h"

struct weir_changelog_reader_conf {
	const struct weir_conf *cf;
	const struct weir_kafka_log *log;
	struct weir_kafka_client *admin; /* read_uncommitted; borrowed */
	uint64_t keep_bytes_max;         /* how much is kept for a second read of the same partition right after */
	const _Atomic bool *stop;
};
struct weir_changelog_reader;
WEIR_MUST_CHECK enum weir_err weir_changelog_reader_create(struct weir_changelog_reader **out,
							   const struct weir_changelog_reader_conf *conf,
							   struct weir_diag **dg);
void weir_changelog_reader_destroy(struct weir_changelog_reader *cr); /* NULL is fine */
/* Learns where the topic's partitions are, which the first read would else wait for. */
void weir_changelog_reader_warm(struct weir_changelog_reader *cr, const char *topic);
/* As expect there. */
void weir_changelog_reader_expect(struct weir_changelog_reader *cr, const char *topic, uint32_t partition);
/* As read in checkpoint/changelog.h. Waits, while transactions of others
 * are unfinished below the end, open_ms at most (then WEIR_E_UNAVAILABLE), and for brokers without a bound; says what
 * for every 10 s. */
WEIR_MUST_CHECK enum weir_err
weir_changelog_reader_read(struct weir_changelog_reader *cr, const char *topic, uint32_t partition, int64_t open_ms,
			   enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
			   void *ctx, struct weir_diag **dg);
/* Called five times a second while a read goes on, until it is NULL; what it returns ends the read. */
void weir_changelog_reader_set_alive(struct weir_changelog_reader *cr,
				     enum weir_err (*alive)(void *ctx, struct weir_diag **dg), void *ctx);
/* The end of the partition that was read last, as it was found then. */
int64_t weir_changelog_reader_end(const struct weir_changelog_reader *cr);
/* The same from an offset on, up to *end, with nothing kept. *fits false: the log does not reach back to from, or not
 * up to it, so that it is not the one that was read before; nothing was read then. */
WEIR_MUST_CHECK enum weir_err weir_changelog_reader_tail(struct weir_changelog_reader *cr, const char *topic,
							 uint32_t partition, int64_t from, int64_t open_ms,
							 enum weir_err (*each)(void *ctx, const struct weir_record *r,
									       struct weir_diag **dg),
							 void *ctx, int64_t *end, bool *fits, struct weir_diag **dg);
/* Bytes of keys and values that have come from brokers since the last call. */
uint64_t weir_changelog_reader_fetched(struct weir_changelog_reader *cr);
/* Whether the record at offset is there for readers of committed records: after a commit in doubt. */
WEIR_MUST_CHECK enum weir_err weir_changelog_reader_probe(struct weir_changelog_reader *cr, const char *topic,
							  uint32_t partition, int64_t offset, int64_t open_ms,
							  bool *committed, struct weir_diag **dg);
/* Forgets what is kept for a second read. */
void weir_changelog_reader_forget(struct weir_changelog_reader *cr);
/* There is nothing more to read for now: forgets, and fetches nothing ahead. */
void weir_changelog_reader_rest(struct weir_changelog_reader *cr);
/* How many records were fetched and are not read: none at rest. */
uint64_t weir_changelog_reader_waiting(const struct weir_changelog_reader *cr);

#endif
