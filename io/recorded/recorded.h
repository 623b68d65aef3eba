/* recorded.h: recorded topics: partitions of a topic as files in Kafka's segment format, DIR/<topic>-<partition>/
 * <20-digit base offset>.log. Opens them as a source (io/stream.h) and as a log of results and changelogs
 * (checkpoint/changelog.h); also whole-topic helpers for gen, dump and reset. No librdkafka here. */
#ifndef WEIR_IO_RECORDED_RECORDED_H
#define WEIR_IO_RECORDED_RECORDED_H

#include "checkpoint/changelog.h"
#include "io/stream.h"

enum weir_codec { WEIR_CODEC_NONE, WEIR_CODEC_GZIP, WEIR_CODEC_SNAPPY, WEIR_CODEC_LZ4, WEIR_CODEC_ZSTD };
WEIR_MUST_CHECK enum weir_err weir_codec_parse(enum weir_codec *out, const char *name, struct weir_diag **dg);

enum weir_startup { WEIR_STARTUP_EARLIEST, WEIR_STARTUP_LATEST, WEIR_STARTUP_TIMESTAMP, WEIR_STARTUP_OFFSETS };

struct weir_recorded_source_spec {
	const char *path;
	const char *const *topics; /* names; partitions are numbered topic by topic, in this order */
	uint32_t topic_count;
	const char *topic_pattern; /* a POSIX extended regex over names instead of topics; NULL: none */
	enum weir_startup startup;
	int64_t startup_ts;
	const char *startup_offsets; /* Flink's partition:0,offset:42;partition:1,offset:300 */
	bool unbounded;              /* scan.bounded.mode = unbounded: follow the files */
	enum weir_startup bounded;   /* LATEST: the end found at open; TIMESTAMP, OFFSETS as given */
	int64_t bounded_ts;
	const char *bounded_offsets;
	bool damaged_skip; /* scan.damaged = skip: count and go on; stop: WEIR_E_CORRUPT with file and offset */
	bool open_transaction_abort; /* scan.end-of-file = abort */
	bool read_uncommitted;       /* properties.isolation.level, and dump --uncommitted */
	bool ignore_commit_file;     /* dump --uncommitted: read past the committed length */
	uint32_t batch_bytes_max;    /* stored, and inflated; 0: 64 MiB. Larger batches are WEIR_E_CONF, or skipped as
					damaged */
	size_t batch_memory_max;     /* larger batches, stored or inflated, have no room: WEIR_E_STATE; 0: any has */
	size_t idle_bytes_max;       /* memory that is kept for what is read next; 0: 64 MiB */
	uint64_t map_bytes; /* bounded: files may be mapped, so much of all of them at a time; 0: they are read */
	uint32_t record_bytes_max; /* 0: 16 MiB; not looked at here: records are there once their batch is, whoever
				    * decodes   them refuses larger ones one by one */
};
WEIR_MUST_CHECK enum weir_err weir_recorded_source_open(struct weir_stream_log **out,
							const struct weir_recorded_source_spec *spec,
							struct weir_diag **dg);
/* What scan.damaged=skip passed over so far: batches and their records by header. */
void weir_recorded_source_damaged(const struct weir_stream_log *sl, uint64_t *batches, uint64_t *records);
/* What the operator should know and is no error: a torn end, an open transaction at the end, skipped batches. One line
 * each, borrowed until the next call to sl; NULL when i is past the last. At most 32 are kept. */
const char *weir_recorded_source_warning(const struct weir_stream_log *sl, uint32_t i);

/* Opens (creating it) the log of application app whose commit file lies in home. Takes the folder's writer lock for the
 * application's section only while it writes; a second engine of the same app: WEIR_E_UNAVAILABLE naming the lock file.
 * Truncates this application's files to their committed lengths. */
WEIR_MUST_CHECK enum weir_err weir_recorded_log_open(struct weir_log **out, const char *home, const char *app,
						     struct weir_diag **dg);

/* ---- writing one topic outside any application (gen, tests): no commit file, read whole by readers ---- */
/* A topic that is there is appended to; one that an application's commit file lists is refused. A stored batch ends at
 * 64 KiB uncompressed or at a cut, a segment at 1 GiB. */
struct weir_topic_writer;
WEIR_MUST_CHECK enum weir_err weir_topic_writer_open(struct weir_topic_writer **out, const char *path,
						     const char *topic, uint32_t partitions, enum weir_codec codec,
						     struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_topic_writer_put(struct weir_topic_writer *w, uint32_t partition,
						    const struct weir_out *r, struct weir_diag **dg);
/* The same at a given offset, which must lie behind the partition's last: a recording keeps the offsets it was read at.
 * WEIR_E_CONF where it does not. */
WEIR_MUST_CHECK enum weir_err weir_topic_writer_put_at(struct weir_topic_writer *w, uint32_t partition, int64_t offset,
						       const struct weir_out *r, struct weir_diag **dg);
/* Ends the stored batch of every partition. */
WEIR_MUST_CHECK enum weir_err weir_topic_writer_cut(struct weir_topic_writer *w, struct weir_diag **dg);
/* Removes the files w has written, and folders that are empty then, and frees w: half a topic looks like a whole one.
 */
void weir_topic_writer_drop(struct weir_topic_writer *w);
/* Flushes and fsyncs, then frees w. */
WEIR_MUST_CHECK enum weir_err weir_topic_writer_close(struct weir_topic_writer *w, struct weir_diag **dg);

/* Number of partitions of a recorded topic, 0 if there is none. */
uint32_t weir_recorded_partitions(const char *path, const char *topic);
/* WEIR_E_CONF where a partition is missing between others, WEIR_OK of a topic that is not there at all. */
WEIR_MUST_CHECK enum weir_err weir_recorded_check(const char *path, const char *topic, struct weir_diag **dg);
/* Topics of a folder, sorted; *names is one malloc'd array of malloc'd strings. */
WEIR_MUST_CHECK enum weir_err weir_recorded_topics(const char *path, char ***names, uint32_t *count,
						   struct weir_diag **dg);
/* Removes an application's section, its changelogs and (results too: its result files) from a folder; with
 * execute=false only reports by calling say for each thing it would remove. For `weir reset`. */
WEIR_MUST_CHECK enum weir_err weir_recorded_reset(const char *home, const char *app, bool execute,
						  void (*say)(void *ctx, const char *line), void *ctx,
						  struct weir_diag **dg);

/* Java's partitioner: (murmur2(key) & 0x7fffffff) % n. */
uint32_t weir_murmur2(const void *data, size_t bytes);

#endif
