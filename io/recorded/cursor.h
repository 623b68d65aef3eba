/* cursor.h: walks the batch headers of a partition's segments without reading the records: to seek, to find the end,
 * and to run ahead for the end of a transaction. @thread io. */
#ifndef WEIR_IO_RECORDED_CURSOR_H
#define WEIR_IO_RECORDED_CURSOR_H

#include "io/recorded/folder.h"
#include "io/recorded/segment.h"

enum { WEIR_CURSOR_BUFFER = 4096 };
struct weir_cursor {
	const char *dir;            /* borrowed: the partition's folder */
	const struct weir_segs *ss; /* borrowed; size is set */
	uint32_t seg;
	uint64_t at; /* byte position of the next header in that segment */
	int fd;      /* -1: not open */
	uint32_t fd_seg;
	uint64_t buffer_at;
	uint32_t buffer_bytes;
	uint8_t buffer[WEIR_CURSOR_BUFFER + WEIR_PAYLOAD_PAD];
};
enum weir_step { WEIR_STEP_OK, WEIR_STEP_END, WEIR_STEP_TORN, WEIR_STEP_BAD, WEIR_STEP_IO };

void weir_cursor_init(struct weir_cursor *cu, const char *dir, const struct weir_segs *ss);
void weir_cursor_fini(struct weir_cursor *cu);
void weir_cursor_move(struct weir_cursor *cu, uint32_t seg, uint64_t at);
/* Decodes the header at the cursor, going on to the next segment where one ends. The cursor stays before that batch.
 * END: nothing more. TORN: the last segment ends within a batch. BAD, IO: *why is static text or strerror's. */
enum weir_step weir_cursor_peek(struct weir_cursor *cu, struct weir_stored *sb, const char **why);
/* Goes past the batch just peeked. */
void weir_cursor_pass(struct weir_cursor *cu, const struct weir_stored *sb);
/* The bytes of the batch just peeked, or NULL when it is larger than the buffer. WEIR_PAYLOAD_PAD follows. */
const uint8_t *weir_cursor_batch(struct weir_cursor *cu, const struct weir_stored *sb);
/* Moves to where the segment's offset index says that offset may be (a place at or before it), else to the segment's
 * start. */
void weir_cursor_hint(struct weir_cursor *cu, uint32_t seg, int64_t offset);

/* Position in the open file at or after from where a whole batch with a right CRC and offsets >= offset stands; size
 * when there is none. For getting past damage. */
uint64_t weir_resync(int fd, uint64_t from, uint64_t size, int64_t offset);

#endif
