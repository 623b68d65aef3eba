/* topic.c: the writing end of one partition: batches to segments, segments rolled, a sparse offset index beside each.
 * @thread snap (log), init (gen). Nothing is read back; durability and truncation are the log's (log.c).
 *
 * The index is Kafka's: {last offset of a batch - base, position of that batch}, 4 bytes each, one entry about every 4
 * KiB. It only speeds up seeking, is never synced, and a reader believes an entry only when a batch stands there. */
#include "io/recorded/topic.h"

#include "io/recorded/recorded.h"
#include "io/recorded/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void weir_appender_init(struct weir_appender *ap, const char *folder, const char *topic, uint32_t partition,
			struct weir_segs *ss, int64_t next_offset, enum weir_codec codec, struct weir_codec_ctx *cc)
{
	memset(ap, 0, sizeof *ap);
	ap->dir = weir_partition_path(folder, topic, partition);
	ap->ss = *ss;
	memset(ss, 0, sizeof *ss);
	ap->segment_bytes = WEIR_SEGMENT_BYTES;
	ap->codec = codec;
	ap->cc = cc;
	ap->next_offset = next_offset;
	ap->fd = -1;
	ap->bytes_unindexed = WEIR_INDEX_INTERVAL_BYTES;
	weir_builder_init(&ap->bb);
}

void weir_appender_fini(struct weir_appender *ap)
{
	if (ap->fd >= 0)
		close(ap->fd);
	weir_builder_fini(&ap->bb);
	weir_buf_fini(&ap->index);
	weir_buf_fini(&ap->tail);
	weir_segs_fini(&ap->ss);
	free(ap->dir);
}

static char *last_path(const struct weir_appender *ap, const char *suffix)
{
	char name[WEIR_SEG_NAME_BYTES];
	const struct weir_seg *s = &ap->ss.seg[ap->ss.count - 1];
	return weir_path_join(ap->dir, weir_seg_name(name, s->base, s->generation, suffix));
}

/* An index that cannot be written is left behind: it is a convenience. */
static void index_flush(struct weir_appender *ap)
{
	if (ap->index.bytes == 0)
		return;
	char *path = last_path(ap, "index");
	int fd;
	if (weir_sys_create(path, &fd) == 0) {
		if (ap->index_at == 0)
			(void)weir_sys_truncate(fd, path, 0);
		if (weir_sys_write(fd, path, ap->index.data, ap->index.bytes, ap->index_at) == 0)
			ap->index_at += ap->index.bytes;
		close(fd);
	}
	ap->index.bytes = 0;
	free(path);
}

/* Leaves only entries of bytes that are there (a crash may have left more). */
static void index_recover(struct weir_appender *ap, uint64_t limit)
{
	char *path = last_path(ap, "index");
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t entry[8];
	ap->index_at = 0;
	if (fd >= 0) {
		struct stat st;
		uint64_t low = 0, high = fstat(fd, &st) == 0 ? (uint64_t)st.st_size / sizeof entry : 0;
		while (low < high) {
			uint64_t middle = low + (high - low) / 2;
			if (pread(fd, entry, sizeof entry, (off_t)(middle * sizeof entry)) != sizeof entry ||
			    weir_load_be32(entry + 4) >= limit)
				high = middle;
			else
				low = middle + 1;
		}
		ap->index_at = low * sizeof entry;
		(void)weir_sys_truncate(fd, path, ap->index_at);
		close(fd);
	}
	free(path);
}

static enum weir_err open_last(struct weir_appender *ap, struct weir_diag **dg)
{
	if (ap->fd >= 0)
		return WEIR_OK;
	char *path = last_path(ap, "log");
	struct stat st;
	bool there = stat(path, &st) == 0;
	int error = weir_sys_create(path, &ap->fd);
	enum weir_err err = WEIR_OK;
	/* A new segment starts empty, whatever a crash has left under its name. */
	if (error == 0 && there && ap->ss.seg[ap->ss.count - 1].limit == 0 && st.st_size != 0)
		error = weir_sys_truncate(ap->fd, path, 0);
	if (error != 0) {
		if (ap->fd >= 0)
			close(ap->fd);
		ap->fd = -1;
		err = weir_sys_failed(dg, "open", path, error);
	} else {
		ap->names_dirty |= !there;
		index_recover(ap, ap->ss.seg[ap->ss.count - 1].limit);
	}
	free(path);
	return err;
}

static enum weir_err file_write(struct weir_appender *ap, const void *data, size_t bytes, uint64_t at,
				struct weir_diag **dg)
{
	int error = weir_sys_write(ap->fd, ap->dir, data, bytes, at);
	if (error == 0)
		return WEIR_OK;
	char *path = last_path(ap, "log");
	enum weir_err err = weir_sys_failed(dg, "write", path, error);
	free(path);
	return err;
}

/* Writes the first bytes of the tail, which ends at the segment's limit. */
static enum weir_err tail_write(struct weir_appender *ap, size_t bytes, struct weir_diag **dg)
{
	struct weir_buf *tail = &ap->tail;
	if (bytes == 0)
		return WEIR_OK;
	enum weir_err err = file_write(ap, tail->data, bytes, ap->ss.seg[ap->ss.count - 1].limit - tail->bytes, dg);
	if (err != WEIR_OK)
		return err;
	tail->bytes -= bytes;
	memmove(tail->data, tail->data + bytes, tail->bytes);
	return WEIR_OK;
}

/* Closes the segment being written and starts one at offset. */
static enum weir_err roll(struct weir_appender *ap, int64_t offset, struct weir_diag **dg)
{
	if (ap->fd >= 0) {
		enum weir_err err = tail_write(ap, ap->tail.bytes, dg);
		if (err != WEIR_OK)
			return err;
		index_flush(ap);
		char *path = last_path(ap, "log");
		int error = ap->data_dirty ? weir_sys_sync(ap->fd, path) : 0;
		err = error != 0 ? weir_sys_failed(dg, "sync", path, error) : WEIR_OK;
		free(path);
		if (err != WEIR_OK)
			return err;
		close(ap->fd);
		ap->fd = -1;
		ap->data_dirty = false;
	}
	struct weir_seg s = {.base = offset, .generation = ap->generation, .next = offset};
	weir_segs_add(&ap->ss, &s);
	ap->bytes_unindexed = WEIR_INDEX_INTERVAL_BYTES;
	return WEIR_OK;
}

/* Ends the stored batch; all: nothing stays in the tail. */
static enum weir_err cut(struct weir_appender *ap, bool all, struct weir_diag **dg)
{
	if (ap->bb.count == 0)
		return tail_write(ap, all ? ap->tail.bytes : 0, dg);
	int64_t base = ap->bb.base_offset, last = ap->bb.last_offset;
	const uint8_t *data;
	size_t bytes;
	if (!weir_builder_finish(&ap->bb, ap->cc, ap->codec, &data, &bytes))
		return weir_diag_set(dg, WEIR_E_IO, "%s: compressing a batch failed", ap->dir);
	enum weir_err err = WEIR_OK;
	struct weir_seg *s = ap->ss.count == 0 ? NULL : &ap->ss.seg[ap->ss.count - 1];
	/* Positions and relative offsets in the index have 31 bits. */
	if (s == NULL || (s->limit != 0 && (s->limit + bytes > ap->segment_bytes || last - s->base > INT32_MAX)))
		err = roll(ap, base, dg);
	if (err == WEIR_OK)
		err = open_last(ap, dg);
	if (err != WEIR_OK)
		return err;
	s = &ap->ss.seg[ap->ss.count - 1];
	if (ap->bytes_unindexed >= WEIR_INDEX_INTERVAL_BYTES && s->limit != 0 && s->limit + bytes <= INT32_MAX) {
		uint8_t entry[8];
		weir_store_be32(entry, (uint32_t)(last - s->base));
		weir_store_be32(entry + 4, (uint32_t)s->limit);
		weir_buf_put(&ap->index, entry, sizeof entry);
		ap->bytes_unindexed = 0;
		if (ap->index.bytes >= 4096)
			index_flush(ap);
	}
	if (ap->by_pieces)
		weir_buf_put(&ap->tail, data, bytes);
	else
		err = file_write(ap, data, bytes, s->limit, dg);
	if (err != WEIR_OK)
		return err;
	s->limit += bytes;
	s->next = last + 1;
	ap->bytes_unindexed += bytes;
	ap->data_dirty = true;
	size_t keep = all ? 0 : (size_t)(s->limit % WEIR_PIECE_BYTES); /* what lies behind the last whole piece */
	return tail_write(ap, ap->tail.bytes > keep ? ap->tail.bytes - keep : 0, dg);
}

enum weir_err weir_appender_cut(struct weir_appender *ap, struct weir_diag **dg)
{
	return cut(ap, true, dg);
}

/* Whether the stored batch ends before a record of at most so many bytes. */
static bool batch_full(const struct weir_appender *ap, size_t record_bytes)
{
	size_t bytes = weir_builder_bytes(&ap->bb) + record_bytes;
	if (ap->by_pieces && ap->bb.count < WEIR_BATCH_ROWS)
		return bytes > WEIR_STORED_BYTES_LARGE;
	return bytes > WEIR_STORED_BYTES_TARGET;
}

enum weir_err weir_appender_put_at(struct weir_appender *ap, int64_t offset, const struct weir_out *r,
				   struct weir_diag **dg)
{
	size_t bytes = weir_builder_record_bytes_max(r);
	if (WEIR_UNLIKELY(bytes == 0))
		return weir_diag_set(dg, WEIR_E_IO, "%s: a record of %zu bytes does not fit a batch", ap->dir,
				     r->key.bytes + r->value.bytes);
	if (WEIR_UNLIKELY(ap->bb.count != 0 && (batch_full(ap, bytes) || offset - ap->bb.base_offset > INT32_MAX))) {
		enum weir_err err = cut(ap, false, dg);
		if (err != WEIR_OK)
			return err;
	}
	WEIR_DASSERT(offset >= ap->next_offset);
	weir_builder_put(&ap->bb, offset, r);
	ap->next_offset = offset + 1;
	return WEIR_OK;
}

enum weir_err weir_appender_put(struct weir_appender *ap, const struct weir_out *r, struct weir_diag **dg)
{
	return weir_appender_put_at(ap, ap->next_offset, r, dg);
}

void weir_appender_sync_start(struct weir_appender *ap)
{
	if (ap->data_dirty)
		(void)sync_file_range(ap->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

enum weir_err weir_appender_sync(struct weir_appender *ap, struct weir_diag **dg)
{
	int error = 0;
	if (ap->data_dirty) {
		index_flush(ap);
		error = weir_sys_sync(ap->fd, ap->dir);
		if (error != 0)
			return weir_sys_failed(dg, "sync a file in", ap->dir, error);
		ap->data_dirty = false;
	}
	if (ap->names_dirty) {
		error = weir_sys_sync_folder(ap->dir);
		if (error != 0)
			return weir_sys_failed(dg, "sync the folder", ap->dir, error);
		ap->names_dirty = false;
	}
	return WEIR_OK;
}

void weir_appender_synced(struct weir_appender *ap)
{
	index_flush(ap);
	ap->data_dirty = false;
	ap->names_dirty = false;
}

uint64_t weir_appender_bytes(const struct weir_appender *ap)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < ap->ss.count; i++)
		bytes += ap->ss.seg[i].limit;
	return bytes;
}
