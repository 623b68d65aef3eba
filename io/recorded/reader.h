/* reader.h: reads one partition of a recorded topic: batches in offset order, checked, inflated, walked into units of
 * records. io/recorded/source.c reads topics through it, log.c changelogs. @thread io (source), snap or init (log).
 *
 * What a transaction left behind: a batch of a transaction is delivered when the first end marker of its producer id
 * behind it says commit, dropped when it says abort. The headers ahead are searched for that marker only when such a
 * batch is met, so nothing but the .log files is needed (.txnindex, .timeindex, .snapshot are not read). */
#ifndef WEIR_IO_RECORDED_READER_H
#define WEIR_IO_RECORDED_READER_H

#include "io/recorded/block.h"
#include "io/recorded/cursor.h"
#include "io/stream.h"

/* A unit has at most so many records: a batch with more gives several, cut at multiples of it from the batch's start.
 */
#define WEIR_UNIT_RECORDS_MAX 16384
#define WEIR_WARNINGS_MAX     32

/* What the readers of one source share. Zeroed and filled by the owner; fini frees what they made. */
struct weir_reader_env {
	bool unbounded;
	bool damaged_skip;
	bool open_transaction_abort;
	bool read_uncommitted;
	const char *damaged_hint; /* said with damage that stops the reader; NULL: nothing */
	size_t block_bytes;       /* one read */
	size_t map_bytes;         /* so much of a file that does not change is mapped instead; 0: nothing */
	size_t batch_bytes_max;   /* stored and inflated */
	size_t batch_memory_max;  /* a larger one, whole as it is, has no room: no damage, so never skipped; 0: no limit
				   */
	struct weir_pool pool;
	struct weir_codec_ctx *cc;
	struct weir_unit_box *idle_units;
	size_t idle_unit_bytes; /* of their records: as many as the pool may keep idle of blocks */
	uint64_t damaged_batches;
	uint64_t damaged_records;
	char *warnings[WEIR_WARNINGS_MAX];
	uint32_t warning_count; /* kept ones; more are only counted */
	uint64_t warnings_total;
};
void weir_reader_env_init(struct weir_reader_env *env);
void weir_reader_env_fini(struct weir_reader_env *env);

struct weir_marker {
	int64_t producer_id;
	int64_t offset;
	bool abort;
};
struct weir_reader {
	struct weir_reader_env *env;
	char *dir;
	struct weir_segs ss;
	uint32_t seg;
	uint64_t at; /* byte position of the next batch in segment seg */
	int fd;      /* of segment fd_seg; -1: none */
	uint32_t fd_seg;
	struct weir_block *block; /* bytes of segment block_seg from block_at on */
	uint32_t block_seg;
	uint64_t block_at;
	size_t batch_bytes_seen; /* of the last batch that was taken, and a header */
	int64_t next_offset;     /* records below it are not delivered */
	int64_t batch_end;       /* offset after the last batch that was passed; 0 after a seek */
	int64_t bound_offset;    /* records from it on are not delivered; INT64_MAX: the files' end */
	bool last_settled;       /* nobody writes the last segment any more, or only behind what is read of it */
	bool ended;              /* an open transaction or a torn end: nothing more in this run (bounded) */

	bool head_ready;
	struct weir_stored head;       /* the batch at `at`, which has something to deliver */
	struct weir_block *walk_block; /* not NULL: the batch is being delivered in parts */
	struct weir_walk walk;
	uint32_t walked;
	size_t inflated_bytes; /* of the last batch: the first guess for the next */

	struct weir_cursor *ahead;   /* searches for end markers; NULL before the first transaction */
	struct weir_marker *markers; /* found in [at, ahead), by offset; a queue */
	uint32_t marker_first;
	uint32_t marker_count;
	uint32_t marker_capacity;
};

/* Takes over ss (file sizes are looked up here: what they are now is where a bounded reader ends). */
WEIR_MUST_CHECK enum weir_err weir_reader_open(struct weir_reader *rd, struct weir_reader_env *env, const char *folder,
					       const char *topic, uint32_t partition, struct weir_segs *ss,
					       struct weir_diag **dg);
void weir_reader_close(struct weir_reader *rd);
/* Unbounded: the files as they are now. Takes over ss. */
WEIR_MUST_CHECK enum weir_err weir_reader_refresh(struct weir_reader *rd, struct weir_segs *ss, struct weir_diag **dg);

/* As in struct weir_stream_ops. Control, aborted and undecided batches are passed over by peek. */
enum weir_poll weir_reader_peek(struct weir_reader *rd, int64_t *first_ts, struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_reader_take(struct weir_reader *rd, struct weir_unit **out, struct weir_diag **dg);
void weir_reader_release(struct weir_reader_env *env, struct weir_unit *u);
/* The next record delivered is the first with offset >= offset. */
WEIR_MUST_CHECK enum weir_err weir_reader_seek(struct weir_reader *rd, int64_t offset, struct weir_diag **dg);
/* The same for the place where an earlier run stopped: an end before it is WEIR_E_IO, a start behind it a warning. */
WEIR_MUST_CHECK enum weir_err weir_reader_resume(struct weir_reader *rd, int64_t offset, struct weir_diag **dg);
/* Offset of the first record with timestamp >= ts, the end offset when there is none. Leaves the reader anywhere. */
WEIR_MUST_CHECK enum weir_err weir_reader_find_time(struct weir_reader *rd, int64_t ts, int64_t *offset,
						    struct weir_diag **dg);
int64_t weir_reader_first(const struct weir_reader *rd);
/* Offset after the last batch, by headers alone. */
int64_t weir_reader_end(struct weir_reader *rd);

#endif
