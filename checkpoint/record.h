/* record.h: the bytes of every changelog record: keys, frames with checksums around bodies that this file never looks
 * into, and markers. @thread snap (writing), init (restore), any (dump)
 *
 *   key    'P' slot:be32 number:be32            pack          value  frame(body of hotpath/state/dirty.c)
 *          'I' slot:be32 page:be32 part:be32    page image    value  frame(body)
 *          'S'                                  schema        value  JSON text
 *          'M'                                  marker        value  below
 *   frame  version:u8 epoch:le64 body... xxh3:le64 over key and everything before
 *   marker version:u8 epoch records bytes sum:le64 count:le32
 *          inputs:le32 { bytes:le16 topic [0 table] partition:le32 offset:le64 time:le64 }
 *          slots:le32  { slot:le32 task_time:le64 bytes:le32 saved }
 *          xxh3:le64
 *
 * The table that reads a topic tells its place from those of others that read it, too, or one of its name elsewhere;
 * markers of before that have none. sum and count cover the frames of this epoch in this partition: restore checks that
 * none is missing. */
#ifndef WEIR_CHECKPOINT_RECORD_H
#define WEIR_CHECKPOINT_RECORD_H

#include "hotpath/core/batch.h"
#include "hotpath/core/diag.h"
#include "hotpath/core/mem.h"

enum weir_record_kind { WEIR_RECORD_PACK, WEIR_RECORD_PAGE, WEIR_RECORD_SCHEMA, WEIR_RECORD_MARKER };

#define WEIR_RECORD_VERSION   1
#define WEIR_RECORD_KEY_BYTES 13

/* Writes the key; returns its bytes (at most WEIR_RECORD_KEY_BYTES). */
size_t weir_record_key(uint8_t *out, enum weir_record_kind kind, uint32_t slot, uint32_t number, uint32_t part);
/* WEIR_E_CORRUPT if it is none of ours. */
WEIR_MUST_CHECK enum weir_err weir_record_key_parse(const uint8_t *key, size_t bytes, enum weir_record_kind *kind,
						    uint32_t *slot, uint32_t *number, uint32_t *part,
						    struct weir_diag **dg);

/* Appends the frame of body to out and returns its checksum. */
uint64_t weir_record_frame(struct weir_buf *out, const uint8_t *key, size_t key_bytes, uint64_t epoch,
			   const uint8_t *body, size_t bytes);
/* Checks and opens a frame; *body is borrowed from value. */
WEIR_MUST_CHECK enum weir_err weir_record_open(const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t bytes,
					       uint64_t *epoch, const uint8_t **body, size_t *body_bytes, uint64_t *sum,
					       struct weir_diag **dg);

struct weir_marker_input {
	const char *topic; /* not terminated when parsed */
	uint32_t topic_bytes;
	uint32_t partition;
	int64_t offset;
	int64_t time;
	const char *table; /* likewise; not told: no bytes */
	uint32_t table_bytes;
};
struct weir_marker_slot {
	uint32_t slot;
	int64_t task_time;
	const uint8_t *saved;
	uint32_t saved_bytes;
};
struct weir_marker {
	uint64_t epoch;
	uint64_t records;
	uint64_t bytes;
	uint64_t sum;
	uint32_t count;
	struct weir_marker_input *inputs;
	uint32_t input_count;
	struct weir_marker_slot *slots;
	uint32_t slot_count;
};
void weir_marker_encode(const struct weir_marker *mk, struct weir_buf *out);
/* Arrays are taken from m, bytes are borrowed from value. */
WEIR_MUST_CHECK enum weir_err weir_marker_decode(struct weir_marker *mk, const uint8_t *value, size_t bytes,
						 struct weir_mem *m, struct weir_diag **dg);
/* A changelog record as one JSON object without braces around topic or offset: {"kind":"pack","slot":3,...}. For dump.
 */
void weir_record_describe(const struct weir_record *r, struct weir_buf *out);

#endif
