/* segment.h: Kafka's record batch v2, the unit of a segment file: header, records, and building one.
 *
 *   0  base offset          8      |  23 last offset delta   4
 *   8  length from 12 on    4      |  27 base timestamp      8   (delete horizon where attribute bit 6 is set)
 *   12 leader epoch         4      |  35 max timestamp       8
 *   16 magic = 2            1      |  43 producer id, epoch, base sequence   8, 2, 4
 *   17 CRC-32C from 21 on   4      |  57 record count        4
 *   21 attributes           2      |  61 records, compressed as a whole unless the codec is none
 *
 * A record: length, attributes (1 byte), timestamp delta, offset delta, key length, key, value length, value, header
 * count, headers {key length, key, value length, value}; all numbers zigzag varints, lengths of -1 mean null.
 * @thread any; a builder has one owner. */
#ifndef WEIR_IO_RECORDED_SEGMENT_H
#define WEIR_IO_RECORDED_SEGMENT_H

#include "checkpoint/changelog.h"
#include "hotpath/core/batch.h"
#include "io/recorded/codec.h"

#define WEIR_STORED_HEADER_BYTES     61
#define WEIR_STORED_RECORD_BYTES_MIN 7 /* a record without key, value and headers */

#define WEIR_ATTR_CODEC          0x07
#define WEIR_ATTR_APPEND_TIME    0x08 /* every record's timestamp is the batch's maximum */
#define WEIR_ATTR_TRANSACTIONAL  0x10
#define WEIR_ATTR_CONTROL        0x20 /* a transaction's end, not data */
#define WEIR_ATTR_DELETE_HORIZON 0x40 /* the base timestamp is the time from which tombstones may go */

/* One header, decoded. */
struct weir_stored {
	int64_t base_offset;
	uint64_t bytes; /* the whole batch, header included */
	uint32_t crc;
	uint16_t attributes;
	int32_t last_offset_delta;
	int64_t base_timestamp;
	int64_t max_timestamp;
	int64_t producer_id;
	int16_t producer_epoch;
	int32_t count;
};

enum weir_header { WEIR_HEADER_OK, WEIR_HEADER_SHORT, WEIR_HEADER_BAD };
/* Decodes the header at p, of which avail bytes are there. SHORT: fewer than a header. BAD: *why is static text;
 * nothing is said of the CRC or of whether the whole batch is there. */
enum weir_header weir_stored_header(const uint8_t *p, size_t avail, struct weir_stored *sb, const char **why);
/* p: the whole batch. */
bool weir_stored_crc_ok(const uint8_t *p, const struct weir_stored *sb);
/* The merge key of the batch: its base timestamp, its maximum where that is a delete horizon. */
int64_t weir_stored_first_ts(const struct weir_stored *sb);
WEIR_INLINE enum weir_codec weir_stored_codec(const struct weir_stored *sb)
{
	return (enum weir_codec)(sb->attributes & WEIR_ATTR_CODEC);
}
WEIR_INLINE int64_t weir_stored_last_offset(const struct weir_stored *sb)
{
	return sb->base_offset + sb->last_offset_delta;
}
/* A control batch's marker: 0 abort, 1 commit, -1 something else. records: the uncompressed records. */
int weir_stored_control_type(const struct weir_stored *sb, const uint8_t *records, size_t bytes);

/* A place among the records of a batch: a walk may stop after any record and go on later. */
struct weir_walk {
	const uint8_t *at;
	const uint8_t *end; /* WEIR_PAYLOAD_PAD bytes beyond it are readable */
	uint32_t left;      /* records still to come */
	int64_t last_delta; /* offset delta of the record before */
};
void weir_walk_init(struct weir_walk *wk, const struct weir_stored *sb, const uint8_t *records, size_t bytes);
/* Decodes up to max records into out; *count of them. NULL, or static text that says what is wrong with the batch. When
 * the last record has been decoded the bytes must be used up. *payload_bytes grows by keys + values + headers. */
const char *weir_walk_records(struct weir_walk *wk, const struct weir_stored *sb, struct weir_record *out, uint32_t max,
			      uint32_t *count, uint64_t *payload_bytes);

/* ---- building ---- */
struct weir_builder {
	struct weir_buf buf; /* header room and encoded records */
	struct weir_buf packed;
	uint32_t count;
	int64_t base_offset;
	int64_t last_offset;
	int64_t base_timestamp;
	int64_t max_timestamp;
};
void weir_builder_init(struct weir_builder *bb);
void weir_builder_fini(struct weir_builder *bb);
WEIR_INLINE size_t weir_builder_bytes(const struct weir_builder *bb)
{
	return bb->buf.bytes;
}
/* Bytes the record takes at most, framing included; 0 when it is beyond what a batch can hold. */
size_t weir_builder_record_bytes_max(const struct weir_out *r);
/* Appends a record with that offset, which is larger than the one before. The caller looked at record_bytes_max. */
void weir_builder_put(struct weir_builder *bb, int64_t offset, const struct weir_out *r);
/* Ends the batch: *data and *bytes are the stored batch, valid until the next put. The builder is empty then, and was
 * not before. False when the codec's library refuses. */
bool weir_builder_finish(struct weir_builder *bb, struct weir_codec_ctx *cc, enum weir_codec codec,
			 const uint8_t **data, size_t *bytes);
/* Forgets what was put. */
void weir_builder_reset(struct weir_builder *bb);

#endif
