/* changelog.h: all that the snapshotter and restore need of a log that holds topics: changelog, results and commits.
 * io/recorded/ and (later) io/kafka/ implement it; tests have fakes. One handle is one cluster for one application: one
 * commit covers everything appended and produced through it.
 *
 *        open -> [read changelogs] -> { begin -> append | produce | cut ... -> commit } ... -> close
 *
 * @thread snap for everything after start; start-up and restore may call from init. */
#ifndef WEIR_CHECKPOINT_CHANGELOG_H
#define WEIR_CHECKPOINT_CHANGELOG_H

#include "hotpath/core/base.h"
#include "hotpath/core/batch.h"
#include "hotpath/core/diag.h"

/* REPARTITION: rows between stages of one application; they travel with the changelog, whatever the guarantee, and are
 * deleted once they are read and committed. */
enum weir_topic_kind { WEIR_TOPIC_RESULT, WEIR_TOPIC_CHANGELOG, WEIR_TOPIC_DEAD_LETTER, WEIR_TOPIC_REPARTITION };

/* One record to write. NULL data: a Kafka null. headers as in struct weir_record. */
struct weir_out {
	struct weir_slice key;   /* data NULL: no key */
	struct weir_slice value; /* data NULL: a null value (delete) */
	const uint8_t *headers;
	uint32_t headers_bytes;
	uint32_t header_count;
	int64_t timestamp; /* ms */
};

struct weir_topic_spec {
	const char *name;
	const char *path; /* recorded: the folder, NULL for the log's home */
	enum weir_topic_kind kind;
	uint32_t partitions;     /* wanted; an existing topic keeps its number, unless: */
	bool partitions_fixed;   /* another number is WEIR_E_CONF naming both */
	bool keyless;            /* its records have no keys: no topic for it that is compacted */
	bool must_exist;         /* topics.create = false: a topic that is not there is WEIR_E_CONF */
	const char *compression; /* none gzip snappy lz4 zstd; NULL: none */
};

/* Where reading of an input partition goes on after an epoch. */
struct weir_commit_input {
	const char *topic;
	uint32_t partition;
	int64_t offset; /* next to read */
	uint32_t changelog_partition;
};

struct weir_log;
struct weir_log_ops {
	/* Opens a topic; *topic numbers it for append/produce, *partitions is what it has, or will have when make has
	 * made it. A topic appears with length 0 in the commit file before its first byte. */
	enum weir_err (*topic)(struct weir_log *lg, const struct weir_topic_spec *spec, uint32_t *topic,
			       uint32_t *partitions, struct weir_diag **dg);
	/* Makes the topics of results and dead letters that are not there yet: when everything that could refuse the
	 * run has been looked at, so that a refused one leaves no empty topic behind. Before the first append; again:
	 * nothing. NULL where topics need no making. */
	enum weir_err (*make)(struct weir_log *lg, struct weir_diag **dg);
	/* Appends a record; nothing is visible to readers before commit. Errors stick until the log is closed. */
	enum weir_err (*append)(struct weir_log *lg, uint32_t topic, uint32_t partition, const struct weir_out *r,
				struct weir_diag **dg);
	/* An order point: stored batches of result topics end here (and by size), never at a commit. */
	enum weir_err (*cut)(struct weir_log *lg, struct weir_diag **dg);
	/* Makes everything appended so far durable and visible, atomically. WEIR_OK only when it is. WEIR_E_FENCED:
	 * the group gave our partitions to somebody else; nothing of this epoch is or will be visible, and drop comes
	 * next. */
	enum weir_err (*commit)(struct weir_log *lg, uint64_t epoch, struct weir_diag **dg);
	/* Before commit: the next offset of every input partition that this instance owns, moved or not, for logs that
	 * commit them with the epoch (a group's offsets on Kafka). NULL where the markers alone hold them. Borrowed
	 * until commit returns. */
	enum weir_err (*offsets)(struct weir_log *lg, const struct weir_commit_input *inputs, uint32_t count,
				 struct weir_diag **dg);
	/* Gives up everything that is not committed; the log can be used again (another assignment). NULL where that
	 * cannot happen. */
	enum weir_err (*drop)(struct weir_log *lg, struct weir_diag **dg);
	/* Says which partition is read after the one that is read next, so that it can be fetched meanwhile. NULL where
	 * that gains nothing. */
	void (*expect)(struct weir_log *lg, uint32_t topic, uint32_t partition);
	/* Restoring is over: what was fetched or kept for it can go. NULL where there is nothing. */
	void (*restored)(struct weir_log *lg);
	/* Reads committed records of a topic partition from its start in log order: calls each for every record until
	 * the committed end; a nonzero return of each stops with that error. Progress: bytes_total and bytes_done may
	 * be NULL. */
	enum weir_err (*read)(struct weir_log *lg, uint32_t topic, uint32_t partition,
			      enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
			      void *ctx, struct weir_diag **dg);
	/* The last committed epoch of this application here (0: none yet), for the log line at start. */
	uint64_t (*epoch)(const struct weir_log *lg);
	/* Drops what is not committed and frees lg. */
	void (*close)(struct weir_log *lg);
};
struct weir_log {
	const struct weir_log_ops *ops;
	/* Results are out before their epoch commits: after a crash, some are there that no marker knows of. */
	bool early;
	/* A changelog was there before this log was opened: somebody has run, if only to crash before a first commit.
	 */
	bool used;
};

#endif
