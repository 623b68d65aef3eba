/* stream.h: the source side of a partitioned log: units of records by partition, from offsets, in the log's own memory.
 * io/recorded/ and (later) io/kafka/ implement it. @thread io for everything after open. */
#ifndef WEIR_IO_STREAM_H
#define WEIR_IO_STREAM_H

#include "hotpath/core/batch.h"
#include "hotpath/core/diag.h"

/* One stored batch (recorded) or one poll's messages of one partition (Kafka): the merge unit. Records lie in memory
 * that lives until release; every slice is readable WEIR_PAYLOAD_PAD bytes beyond its end. */
struct weir_unit {
	uint32_t partition;
	uint32_t count; /* may be 0: only control records, or all aborted */
	struct weir_record *records;
	uint64_t bytes;      /* uncompressed payload bytes: keys + values + headers */
	uint64_t memory;     /* bytes this unit holds until release, for the in-flight budget */
	int64_t next_offset; /* where reading goes on after this unit */
};

enum weir_poll {
	WEIR_POLL_UNIT,  /* a unit is there */
	WEIR_POLL_EMPTY, /* nothing now, more may come (unbounded) */
	WEIR_POLL_LATER, /* the same, but the log has more or cannot be asked now: not a partition that is idle */
	WEIR_POLL_BOUND, /* the bound is reached: nothing will ever come */
	WEIR_POLL_ERROR  /* dg says what; the stream is stuck there */
};

#define WEIR_START_FIRST INT64_C(-2) /* in place of an offset to go on from */
struct weir_stream_log;
struct weir_stream_ops {
	uint32_t (*partitions)(const struct weir_stream_log *sl);
	/* Where the next unit of partition p starts in time: the merge key (the stored batch's base timestamp; its
	 * maximum where attribute bit 6 is set). Cheap: reads a header at most. */
	enum weir_poll (*peek)(struct weir_stream_log *sl, uint32_t p, int64_t *first_ts, struct weir_diag **dg);
	/* Takes that unit: CRC checked, inflated, walked into records, control and aborted records left out. */
	enum weir_err (*take)(struct weir_stream_log *sl, uint32_t p, struct weir_unit **out, struct weir_diag **dg);
	/* Gives a unit's memory back. */
	void (*release)(struct weir_stream_log *sl, struct weir_unit *u);
	/* Next record read from p is the first with offset >= offset: where an application goes on. Before the first
	 * peek of p. An error where the log does not reach that far, or begins behind it. WEIR_START_FIRST: the first
	 * there is, whatever the startup mode says; range tells it then. */
	enum weir_err (*seek)(struct weir_stream_log *sl, uint32_t p, int64_t offset, struct weir_diag **dg);
	/* The first offset that is read without a seek (where the startup mode begins, else the first available) and
	 * one beyond the last (the bound where bounded). */
	void (*range)(struct weir_stream_log *sl, uint32_t p, int64_t *first, int64_t *end);
	/* A descriptor that becomes readable when an empty partition may have data (inotify), or -1: poll by time. */
	int (*event_fd)(const struct weir_stream_log *sl);
	const char *(*topic)(const struct weir_stream_log *sl, uint32_t p,
			     uint32_t *partition); /* name and number in its topic */
	void (*close)(struct weir_stream_log *sl);
	/* Others are waited for (or not any more): what has come is kept, and reading runs on past it. NULL: a stream
	 * whose partitions do not come one behind the other. */
	void (*wait)(struct weir_stream_log *sl, bool on);
	/* Of the unit that was peeked: the time of its last record. NULL: not known before it is taken. */
	int64_t (*last_ts)(const struct weir_stream_log *sl, uint32_t p);
	/* Bytes it holds now, in its units and besides. NULL: what its units say is all that counts. */
	uint64_t (*memory)(const struct weir_stream_log *sl);
};
struct weir_stream_log {
	const struct weir_stream_ops *ops;
};

#endif
