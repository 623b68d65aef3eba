/* topic.h: appends records to one partition of a recorded topic. @thread snap (log), init (gen): one owner. */
#ifndef WEIR_IO_RECORDED_TOPIC_H
#define WEIR_IO_RECORDED_TOPIC_H

#include "io/recorded/folder.h"
#include "io/recorded/segment.h"

/* A stored batch ends when its records, uncompressed and framed, reach this. Large enough that header, CRC call and
 * compression cost little per record, small enough that 16 partitions merge finely and a reader's block holds several.
 */
#define WEIR_STORED_BYTES_TARGET     (64 * 1024)
#define WEIR_STORED_BYTES_LARGE      (256 * 1024) /* of a recording, until it has a batch's worth of records */
#define WEIR_SEGMENT_BYTES           (1u << 30)
#define WEIR_SEGMENT_BYTES_CHANGELOG (16u << 20)
#define WEIR_INDEX_INTERVAL_BYTES    4096
/* What is written in whole pieces of this size lies in few large folios of the page cache, and is read from there with
 * half as much again as the bytes a second of pages that came one by one (Linux 6.16, ext4). */
#define WEIR_PIECE_BYTES (64 * 1024)

/* Segments are in offset order; the last one is being written. */
struct weir_appender {
	char *dir;
	struct weir_segs ss; /* limit: bytes written so far; next: offset after its last record */
	uint32_t generation; /* of new segments */
	uint64_t segment_bytes;
	enum weir_codec codec;
	struct weir_codec_ctx *cc; /* borrowed */
	struct weir_builder bb;
	bool by_pieces;       /* set after init: batches that fill up are written in whole pieces of the file */
	struct weir_buf tail; /* by_pieces: bytes of the last segment up to its limit that are not in the file yet */
	int64_t next_offset;
	int fd;                   /* of the last segment; -1: not open */
	bool data_dirty;          /* written since the last sync */
	bool names_dirty;         /* a file was made since the last sync of dir */
	uint64_t bytes_unindexed; /* since the last index entry */
	struct weir_buf index;    /* entries not yet written */
	uint64_t index_at;        /* bytes of the index file */
};

/* ss: the segments that are there, the last to be gone on with; taken over. None: the first put makes
 * <next_offset>.log. */
void weir_appender_init(struct weir_appender *ap, const char *folder, const char *topic, uint32_t partition,
			struct weir_segs *ss, int64_t next_offset, enum weir_codec codec, struct weir_codec_ctx *cc);
void weir_appender_fini(struct weir_appender *ap);
WEIR_MUST_CHECK enum weir_err weir_appender_put(struct weir_appender *ap, const struct weir_out *r,
						struct weir_diag **dg);
/* The same with a given offset, at least next_offset: rewriting leaves gaps. */
WEIR_MUST_CHECK enum weir_err weir_appender_put_at(struct weir_appender *ap, int64_t offset, const struct weir_out *r,
						   struct weir_diag **dg);
/* Ends the stored batch, if there is one, and writes it, with all before it. */
WEIR_MUST_CHECK enum weir_err weir_appender_cut(struct weir_appender *ap, struct weir_diag **dg);
/* After cut: starts writing back without waiting, so that the partitions' syncs overlap. */
void weir_appender_sync_start(struct weir_appender *ap);
/* Makes what was written durable, file names included. */
WEIR_MUST_CHECK enum weir_err weir_appender_sync(struct weir_appender *ap, struct weir_diag **dg);
/* The same has happened to it by a sync of its whole file system. */
void weir_appender_synced(struct weir_appender *ap);
/* Bytes of all segments. */
uint64_t weir_appender_bytes(const struct weir_appender *ap);

#endif
