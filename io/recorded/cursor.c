/* cursor.c: batch headers of a partition, one after the other. @thread io. */
#include "io/recorded/cursor.h"

#include "io/recorded/crc32c.h"
#include "io/recorded/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void weir_cursor_init(struct weir_cursor *cu, const char *dir, const struct weir_segs *ss)
{
	cu->dir = dir;
	cu->ss = ss;
	cu->seg = 0;
	cu->at = 0;
	cu->fd = -1;
	cu->fd_seg = 0;
	cu->buffer_at = 0;
	cu->buffer_bytes = 0;
}

void weir_cursor_fini(struct weir_cursor *cu)
{
	if (cu->fd >= 0)
		close(cu->fd);
	cu->fd = -1;
}

void weir_cursor_move(struct weir_cursor *cu, uint32_t seg, uint64_t at)
{
	cu->seg = seg;
	cu->at = at;
}

static int cursor_open(struct weir_cursor *cu)
{
	if (cu->fd >= 0 && cu->fd_seg == cu->seg)
		return 0;
	weir_cursor_fini(cu);
	char name[WEIR_SEG_NAME_BYTES];
	const struct weir_seg *s = &cu->ss->seg[cu->seg];
	char *path = weir_path_join(cu->dir, weir_seg_name(name, s->base, s->generation, "log"));
	cu->fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = cu->fd < 0 ? errno : 0;
	free(path);
	cu->fd_seg = cu->seg;
	cu->buffer_bytes = 0;
	return error;
}

/* Fills the buffer so that it starts at the cursor and holds want bytes, or what the segment has. 0 or errno. */
static int cursor_fill(struct weir_cursor *cu, size_t want)
{
	uint64_t size = cu->ss->seg[cu->seg].size;
	if (want > size - cu->at)
		want = (size_t)(size - cu->at);
	if (cu->fd >= 0 && cu->fd_seg == cu->seg && cu->at >= cu->buffer_at &&
	    cu->at + want <= cu->buffer_at + cu->buffer_bytes)
		return 0;
	int error = cursor_open(cu);
	if (error != 0)
		return error;
	size_t bytes = size - cu->at < WEIR_CURSOR_BUFFER ? (size_t)(size - cu->at) : WEIR_CURSOR_BUFFER;
	size_t got = 0;
	while (got < bytes) {
		ssize_t n = pread(cu->fd, cu->buffer + got, bytes - got, (off_t)(cu->at + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO; /* shorter than it was: somebody truncates it */
		got += (size_t)n;
	}
	cu->buffer_at = cu->at;
	cu->buffer_bytes = (uint32_t)bytes;
	return 0;
}

enum weir_step weir_cursor_peek(struct weir_cursor *cu, struct weir_stored *sb, const char **why)
{
	while (cu->seg < cu->ss->count && cu->at >= cu->ss->seg[cu->seg].size) {
		if (cu->seg + 1 >= cu->ss->count)
			return WEIR_STEP_END;
		cu->seg++;
		cu->at = 0;
	}
	if (cu->seg >= cu->ss->count)
		return WEIR_STEP_END;
	int error = cursor_fill(cu, WEIR_STORED_HEADER_BYTES);
	if (error != 0) {
		*why = strerror(error);
		return WEIR_STEP_IO;
	}
	uint64_t left = cu->ss->seg[cu->seg].size - cu->at;
	enum weir_header h =
		weir_stored_header(cu->buffer + (cu->at - cu->buffer_at),
				   left < WEIR_STORED_HEADER_BYTES ? (size_t)left : WEIR_STORED_HEADER_BYTES, sb, why);
	if (h == WEIR_HEADER_BAD)
		return WEIR_STEP_BAD;
	if (h == WEIR_HEADER_OK && sb->bytes <= left)
		return WEIR_STEP_OK;
	if (cu->seg + 1 == cu->ss->count)
		return WEIR_STEP_TORN;
	*why = "the segment ends within a batch";
	return WEIR_STEP_BAD;
}

void weir_cursor_pass(struct weir_cursor *cu, const struct weir_stored *sb)
{
	cu->at += sb->bytes;
}

const uint8_t *weir_cursor_batch(struct weir_cursor *cu, const struct weir_stored *sb)
{
	if (sb->bytes > WEIR_CURSOR_BUFFER || cursor_fill(cu, (size_t)sb->bytes) != 0)
		return NULL;
	return cu->buffer + (cu->at - cu->buffer_at);
}

/* The index has {offset - base, position} of 4 bytes each, ascending; a broker's active one is followed by zeros. */
void weir_cursor_hint(struct weir_cursor *cu, uint32_t seg, int64_t offset)
{
	const struct weir_seg *s = &cu->ss->seg[seg];
	char name[WEIR_SEG_NAME_BYTES];
	weir_cursor_move(cu, seg, 0);
	if (offset <= s->base)
		return;
	char *path = weir_path_join(cu->dir, weir_seg_name(name, s->base, s->generation, "index"));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return;
	struct stat st;
	uint8_t entry[8];
	uint64_t low = 0, high = fstat(fd, &st) == 0 ? (uint64_t)st.st_size / sizeof entry : 0, position = 0;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (pread(fd, entry, sizeof entry, (off_t)(middle * sizeof entry)) != sizeof entry)
			break;
		int64_t entry_offset = s->base + weir_load_be32(entry);
		uint64_t entry_position = weir_load_be32(entry + 4);
		bool unused = middle != 0 && weir_load_be32(entry) == 0;
		if (unused || entry_offset > offset || entry_position >= s->size) {
			high = middle;
		} else {
			position = entry_position;
			low = middle + 1;
		}
	}
	close(fd);
	/* Believed only when a batch of a right offset stands there: an index may be older than its log. */
	struct weir_stored sb;
	const char *why;
	weir_cursor_move(cu, seg, position);
	if (position != 0 && (weir_cursor_peek(cu, &sb, &why) != WEIR_STEP_OK || cu->seg != seg ||
			      sb.base_offset < s->base || sb.base_offset > offset))
		weir_cursor_move(cu, seg, 0);
}

uint64_t weir_resync(int fd, uint64_t from, uint64_t size, int64_t offset)
{
	enum { WINDOW = 1 << 20, MAGIC_AT = 16 };
	uint8_t *window = malloc(WINDOW);
	uint8_t *batch = NULL;
	uint64_t found = size;
	for (uint64_t at = from; window != NULL && at < size && found == size;
	     at += WINDOW - WEIR_STORED_HEADER_BYTES) {
		ssize_t n = pread(fd, window, WINDOW, (off_t)at);
		if (n < WEIR_STORED_HEADER_BYTES)
			break;
		const uint8_t *p = window, *end = window + n - WEIR_STORED_HEADER_BYTES;
		for (; p <= end; p++) {
			struct weir_stored sb;
			const char *why;
			p = memchr(p + MAGIC_AT, 2, (size_t)(end - p) + 1);
			if (p == NULL)
				break;
			p -= MAGIC_AT;
			uint64_t place = at + (uint64_t)(p - window);
			if (weir_stored_header(p, WEIR_STORED_HEADER_BYTES, &sb, &why) != WEIR_HEADER_OK ||
			    sb.bytes > size - place || sb.base_offset < offset)
				continue;
			batch = weir_xrealloc(batch, (size_t)sb.bytes);
			if (pread(fd, batch, (size_t)sb.bytes, (off_t)place) == (ssize_t)sb.bytes &&
			    weir_stored_crc_ok(batch, &sb)) {
				found = place;
				break;
			}
		}
	}
	free(window);
	free(batch);
	return found;
}
