/* reader.c: one partition of a recorded topic, batch by batch. @thread io (source), snap or init (log). See reader.h.
 *
 * Files are read by pread in blocks of env->block_bytes, each holding many batches; uncompressed records are slices
 * into the block, compressed ones into a block of their own. Where env->map_bytes says so, blocks are pages of the file
 * instead, which saves the copy: of segments that nobody cuts any more, as a mapping of a file that becomes shorter
 * stops the process. That is every segment but the last, which a broker may still write, and the last too where a
 * commit file lists it (it is never cut below what is committed) or no broker keeps it. */
#include "io/recorded/reader.h"

#include "io/recorded/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKERS_MAX (1u << 20)

enum { BLOCKS_AT_ONCE_MAX = 4 };

/* A unit with what it holds. */
struct weir_unit_box {
	struct weir_unit u; /* first: a unit's box is found by its address */
	struct weir_unit_box *next;
	struct weir_block *block;
	struct weir_record *records;
	uint32_t capacity;
};

/* ---- env ---- */

void weir_reader_env_init(struct weir_reader_env *env)
{
	memset(env, 0, sizeof *env);
	env->block_bytes = 256 * 1024;
	env->batch_bytes_max = 64u << 20;
	env->damaged_hint = "'scan.damaged' = 'skip' counts such batches and goes on behind them";
	env->cc = weir_codec_create();
}

void weir_reader_env_fini(struct weir_reader_env *env)
{
	while (env->idle_units != NULL) {
		struct weir_unit_box *box = env->idle_units;
		env->idle_units = box->next;
		free(box->records);
		free(box);
	}
	for (uint32_t i = 0; i < env->warning_count; i++)
		free(env->warnings[i]);
	weir_codec_destroy(env->cc);
	weir_pool_fini(&env->pool);
}

static WEIR_COLD WEIR_PRINTF(2, 3) void warn(struct weir_reader_env *env, const char *fmt, ...)
{
	env->warnings_total++;
	if (env->warning_count == WEIR_WARNINGS_MAX)
		return;
	va_list ap;
	char *text = NULL;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	for (uint32_t i = 0; text != NULL && i < env->warning_count; i++)
		if (strcmp(env->warnings[i], text) == 0) { /* the same place, come to again after a seek */
			free(text);
			return;
		}
	if (text != NULL)
		env->warnings[env->warning_count++] = text;
}

static size_t box_bytes(const struct weir_unit_box *box)
{
	return box->capacity * sizeof *box->records;
}

static struct weir_unit_box *unit_take(struct weir_reader_env *env, uint32_t records)
{
	struct weir_unit_box *box = env->idle_units;
	if (box != NULL) {
		env->idle_units = box->next;
		env->idle_unit_bytes -= box_bytes(box);
	} else {
		box = weir_xcalloc(1, sizeof *box);
	}
	if (box->capacity < records) {
		env->pool.bytes_held -= box_bytes(box);
		box->capacity = records < 512 ? 512 : records < 2048 ? 2048 : WEIR_UNIT_RECORDS_MAX;
		env->pool.bytes_held += box_bytes(box);
		box->records = weir_xrealloc(box->records, box_bytes(box));
	}
	box->next = NULL;
	return box;
}

void weir_reader_release(struct weir_reader_env *env, struct weir_unit *u)
{
	struct weir_unit_box *box = (struct weir_unit_box *)u;
	weir_pool_drop(&env->pool, box->block);
	box->block = NULL;
	if (env->idle_unit_bytes + box_bytes(box) > weir_pool_idle_max(&env->pool)) {
		env->pool.bytes_held -= box_bytes(box);
		free(box->records);
		free(box);
		return;
	}
	env->idle_unit_bytes += box_bytes(box);
	box->next = env->idle_units;
	env->idle_units = box;
}

/* ---- files ---- */

static char *seg_path(const struct weir_reader *rd, uint32_t seg)
{
	char name[WEIR_SEG_NAME_BYTES];
	return weir_path_join(rd->dir, weir_seg_name(name, rd->ss.seg[seg].base, rd->ss.seg[seg].generation, "log"));
}

static bool is_link(const char *path)
{
	int error = errno;
	struct stat st;
	bool is = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	errno = error;
	return is;
}

/* Looks up how far each file goes. A committed file that is shorter than that is damage. */
static enum weir_err sizes_update(const char *dir, struct weir_segs *ss, struct weir_diag **dg)
{
	for (uint32_t i = 0; i < ss->count; i++) {
		char name[WEIR_SEG_NAME_BYTES];
		struct weir_seg *s = &ss->seg[i];
		char *path = weir_path_join(dir, weir_seg_name(name, s->base, s->generation, "log"));
		struct stat st;
		enum weir_err err = WEIR_OK;
		uint64_t size = 0;
		bool there = stat(path, &st) == 0;
		if (there && S_ISREG(st.st_mode))
			size = (uint64_t)st.st_size;
		else if (there)
			err = weir_diag_set(dg, WEIR_E_IO, "%s is no regular file: it has no size and places", path);
		else if (errno != ENOENT || is_link(path)) /* else: gone since the folder was listed */
			err = weir_sys_failed(dg, "read", path, errno);
		if (err == WEIR_OK && s->listed && s->limit != UINT64_MAX && size < s->limit)
			err = weir_diag_set(dg, WEIR_E_CORRUPT, "%s has %llu bytes, but %llu of it are committed", path,
					    (unsigned long long)size, (unsigned long long)s->limit);
		s->size = size < s->limit ? size : s->limit;
		free(path);
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

/* Whether the last segment is not one that a broker may cut: they keep a .timeindex beside each. */
static bool last_settled(const char *dir, const struct weir_segs *ss)
{
	if (ss->count == 0)
		return false;
	const struct weir_seg *s = &ss->seg[ss->count - 1];
	if (s->listed && s->limit != UINT64_MAX)
		return true;
	char name[WEIR_SEG_NAME_BYTES];
	snprintf(name, sizeof name, "%020lld.timeindex", (long long)s->base);
	char *path = weir_path_join(dir, name);
	bool kept = access(path, F_OK) == 0;
	free(path);
	return !kept;
}

enum weir_err weir_reader_open(struct weir_reader *rd, struct weir_reader_env *env, const char *folder,
			       const char *topic, uint32_t partition, struct weir_segs *ss, struct weir_diag **dg)
{
	memset(rd, 0, sizeof *rd);
	rd->env = env;
	rd->dir = weir_partition_path(folder, topic, partition);
	rd->ss = *ss;
	memset(ss, 0, sizeof *ss);
	rd->fd = -1;
	rd->bound_offset = INT64_MAX;
	rd->last_settled = env->map_bytes != 0 && last_settled(rd->dir, &rd->ss);
	return sizes_update(rd->dir, &rd->ss, dg);
}

static void walk_end(struct weir_reader *rd)
{
	weir_pool_drop(&rd->env->pool, rd->walk_block);
	rd->walk_block = NULL;
}

static void ahead_drop(struct weir_reader *rd)
{
	if (rd->ahead != NULL)
		weir_cursor_fini(rd->ahead);
	free(rd->ahead);
	rd->ahead = NULL;
	rd->marker_count = 0;
	rd->marker_first = 0;
}

static void place(struct weir_reader *rd, uint32_t seg, uint64_t at)
{
	rd->seg = seg;
	rd->at = at;
	rd->head_ready = false;
	walk_end(rd);
}

static void file_close(struct weir_reader *rd)
{
	if (rd->fd >= 0)
		close(rd->fd);
	rd->fd = -1;
	weir_pool_drop(&rd->env->pool, rd->block);
	rd->block = NULL;
}

void weir_reader_close(struct weir_reader *rd)
{
	walk_end(rd);
	file_close(rd);
	ahead_drop(rd);
	free(rd->markers);
	weir_segs_fini(&rd->ss);
	free(rd->dir);
}

static int file_open(struct weir_reader *rd)
{
	if (rd->fd >= 0 && rd->fd_seg == rd->seg)
		return 0;
	if (rd->fd >= 0)
		close(rd->fd);
	char *path = seg_path(rd, rd->seg);
	rd->fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = rd->fd < 0 ? errno : 0;
	rd->fd_seg = rd->seg;
	free(path);
	if (error == 0)
		(void)posix_fadvise(rd->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return error;
}

/* A block in place of the one that ends within what is wanted now. What it has of it is copied, not read again. */
static struct weir_block *block_next(struct weir_reader *rd, size_t want)
{
	struct weir_block *old = rd->block, *bk = weir_pool_take(&rd->env->pool, want);
	if (old != NULL && rd->block_seg == rd->seg && rd->at >= rd->block_at &&
	    rd->at < rd->block_at + old->buf.bytes) {
		bk->buf.bytes = (size_t)(rd->block_at + old->buf.bytes - rd->at);
		memcpy(bk->buf.data, old->buf.data + (rd->at - rd->block_at), bk->buf.bytes);
	}
	weir_pool_drop(&rd->env->pool, old);
	rd->block = bk;
	rd->block_seg = rd->seg;
	rd->block_at = rd->at;
	return bk;
}

/* Whether [at, at + bytes) can stand in pages of the file itself: bytes of it usable at readable. */
static bool may_map(struct weir_reader *rd, size_t bytes, uint64_t *readable)
{
	uint64_t size = rd->ss.seg[rd->seg].size;
	struct stat st;
	if (rd->env->map_bytes == 0 || (rd->seg + 1 == rd->ss.count && !rd->last_settled))
		return false;
	/* What is behind a record may be looked at, and behind the last page there is nothing to look at. */
	*readable = weir_align_up(size, weir_page_bytes()) - WEIR_PAYLOAD_PAD;
	*readable = *readable < size ? *readable : size;
	return rd->at + bytes <= *readable && file_open(rd) == 0 && fstat(rd->fd, &st) == 0 &&
	       (uint64_t)st.st_size >= size;
}

/* block_ensure by mapping. False: it is to be read. A mapping is long, as taking one away stops all threads for a
 * moment; its pages are asked for a few blocks at a time, so that the first need not wait for the last. */
static bool block_map(struct weir_reader *rd, size_t bytes)
{
	struct weir_reader_env *env = rd->env;
	struct weir_block *bk = rd->block;
	uint64_t readable;
	if (!may_map(rd, bytes, &readable))
		return false;
	if (bk == NULL || bk->map == NULL || rd->block_seg != rd->seg || rd->at < rd->block_at ||
	    rd->at + bytes > rd->block_at + bk->buf.capacity) {
		uint64_t most = readable - rd->at, want = bytes > env->map_bytes ? bytes : env->map_bytes;
		bk = weir_block_map(rd->fd, rd->at, (size_t)(want < most ? want : most));
		if (bk == NULL)
			return false;
		weir_pool_drop(&env->pool, rd->block);
		rd->block = bk;
		rd->block_seg = rd->seg;
		rd->block_at = rd->at;
	}
	size_t want = (size_t)(rd->at - rd->block_at) + bytes + BLOCKS_AT_ONCE_MAX * env->block_bytes;
	if (weir_block_populate(bk, want < bk->buf.capacity ? want : bk->buf.capacity)) {
		weir_pool_count(&env->pool, bk);
		return true;
	}
	if (errno == EINVAL)
		env->map_bytes = 0;
	return false;
}

/* Makes [at, at + bytes) of the current segment stand in the block; bytes are known to be there. What is read is as
 * long as the last batch and a header where that is more than a block: then batch and next header come in one read. */
static enum weir_err block_ensure(struct weir_reader *rd, size_t bytes, struct weir_diag **dg)
{
	struct weir_block *bk = rd->block;
	if (WEIR_LIKELY(bk != NULL && rd->block_seg == rd->seg && rd->at >= rd->block_at &&
			rd->at + bytes <= rd->block_at + bk->buf.bytes))
		return WEIR_OK;
	if (block_map(rd, bytes))
		return WEIR_OK;
	uint64_t left = rd->ss.seg[rd->seg].size - rd->at;
	size_t want = rd->env->block_bytes - WEIR_PAYLOAD_PAD;
	if (rd->batch_bytes_seen > want)
		want = rd->batch_bytes_seen < BLOCKS_AT_ONCE_MAX * want ? rd->batch_bytes_seen
									: BLOCKS_AT_ONCE_MAX * want;
	want = want > bytes ? want : bytes;
	want = want < left ? want : (size_t)left;
	bk = block_next(rd, want);
	int error = file_open(rd);
	while (error == 0 && bk->buf.bytes < want) {
		size_t got = bk->buf.bytes;
		ssize_t n = pread(rd->fd, bk->buf.data + got, want - got, (off_t)(rd->at + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			error = n < 0 ? errno : 0;
			break;
		}
		bk->buf.bytes += (size_t)n;
	}
	if (error == 0 && bk->buf.bytes >= bytes)
		return WEIR_OK;
	char *path = seg_path(rd, rd->seg);
	enum weir_err err = error != 0 ? weir_sys_failed(dg, "read", path, error)
				       : weir_diag_set(dg, WEIR_E_IO, "%s has become shorter while it was read", path);
	free(path);
	return err;
}

WEIR_INLINE const uint8_t *at_block(const struct weir_reader *rd)
{
	return rd->block->buf.data + (rd->at - rd->block_at);
}

/* ---- damage ---- */

/* A batch that there is no room for. Returns the error. */
static WEIR_COLD enum weir_err no_room(const struct weir_reader *rd, const struct weir_stored *sb,
				       struct weir_diag **dg)
{
	char *path = seg_path(rd, rd->seg);
	weir_diag_set(dg, WEIR_E_STATE,
		      "%s: the batch at byte %llu (offsets %lld to %lld) has no room: it is held whole, and takes more "
		      "than a quarter of memory.max, which is %llu bytes. Give it more (-X memory.max=...)",
		      path, (unsigned long long)rd->at, (long long)sb->base_offset,
		      (long long)weir_stored_last_offset(sb), (unsigned long long)rd->env->batch_memory_max);
	free(path);
	return WEIR_E_STATE;
}

static bool has_room(const struct weir_reader *rd, size_t bytes)
{
	return rd->env->batch_memory_max == 0 || bytes <= rd->env->batch_memory_max;
}

static WEIR_COLD enum weir_err damage_error(struct weir_reader *rd, const struct weir_stored *sb, enum weir_err code,
					    const char *why, struct weir_diag **dg)
{
	char *path = seg_path(rd, rd->seg);
	if (sb != NULL)
		weir_diag_set(dg, code, "%s: the batch at byte %llu (offsets %lld to %lld) cannot be used: %s", path,
			      (unsigned long long)rd->at, (long long)sb->base_offset,
			      (long long)weir_stored_last_offset(sb), why);
	else
		weir_diag_set(dg, code, "%s: the data at byte %llu (from offset %lld) cannot be used: %s", path,
			      (unsigned long long)rd->at, (long long)rd->next_offset, why);
	if (dg != NULL && code == WEIR_E_CONF)
		weir_diag_add_hint(*dg, "it is %llu bytes now: -X batch.bytes.max=...",
				   (unsigned long long)rd->env->batch_bytes_max);
	else if (dg != NULL && rd->env->damaged_hint != NULL)
		weir_diag_add_hint(*dg, "%s", rd->env->damaged_hint);
	free(path);
	return code;
}

/* Stops, or goes past the damage when scan.damaged=skip. sb: the header, where it was readable. */
static WEIR_COLD enum weir_err damaged(struct weir_reader *rd, const struct weir_stored *sb, enum weir_err code,
				       const char *why, struct weir_diag **dg)
{
	struct weir_reader_env *env = rd->env;
	if (!env->damaged_skip)
		return damage_error(rd, sb, code, why, dg);
	uint64_t size = rd->ss.seg[rd->seg].size;
	int64_t before = rd->next_offset;
	uint64_t next = sb != NULL && sb->bytes <= size - rd->at ? rd->at + sb->bytes : size;
	/* The header's length is only believed when another batch, or the end, follows. */
	struct weir_stored after;
	uint8_t header[WEIR_STORED_HEADER_BYTES];
	const char *text;
	bool sound = next == size && sb != NULL && sb->bytes <= size - rd->at;
	if (file_open(rd) != 0)
		return damage_error(rd, sb, WEIR_E_IO, why, dg);
	if (next != size && pread(rd->fd, header, sizeof header, (off_t)next) == (ssize_t)sizeof header)
		sound = weir_stored_header(header, sizeof header, &after, &text) == WEIR_HEADER_OK &&
			after.base_offset > sb->base_offset;
	if (!sound)
		next = weir_resync(rd->fd, rd->at + 1, size, rd->next_offset);
	env->damaged_batches++;
	rd->batch_end = 0;
	if (sound) {
		env->damaged_records += (uint64_t)sb->count;
		if (weir_stored_last_offset(sb) + 1 > rd->next_offset)
			rd->next_offset = weir_stored_last_offset(sb) + 1;
	} else if (next < size && pread(rd->fd, header, sizeof header, (off_t)next) == (ssize_t)sizeof header &&
		   weir_stored_header(header, sizeof header, &after, &text) == WEIR_HEADER_OK) {
		env->damaged_records += (uint64_t)(after.base_offset - before);
		rd->next_offset = after.base_offset;
	} else if (rd->seg + 1 < rd->ss.count && rd->ss.seg[rd->seg + 1].base > before) {
		env->damaged_records += (uint64_t)(rd->ss.seg[rd->seg + 1].base - before);
		rd->next_offset = rd->ss.seg[rd->seg + 1].base;
	}
	char *path = seg_path(rd, rd->seg);
	warn(env, "%s: skipped bytes %llu to %llu (offsets %lld to %lld): %s", path, (unsigned long long)rd->at,
	     (unsigned long long)next - 1, (long long)before, (long long)rd->next_offset - 1, why);
	free(path);
	place(rd, rd->seg, next);
	return WEIR_OK;
}

/* ---- transactions ---- */

enum fate { FATE_COMMITTED, FATE_ABORTED, FATE_OPEN, FATE_ERROR };

static void marker_add(struct weir_reader *rd, struct weir_marker m)
{
	if (rd->marker_first + rd->marker_count == rd->marker_capacity) {
		if (rd->marker_first >= rd->marker_capacity / 2 && rd->marker_first != 0) {
			memmove(rd->markers, rd->markers + rd->marker_first, rd->marker_count * sizeof *rd->markers);
			rd->marker_first = 0;
		} else {
			rd->marker_capacity = rd->marker_capacity == 0 ? 64 : 2 * rd->marker_capacity;
			rd->markers = weir_xrealloc(rd->markers, rd->marker_capacity * sizeof *rd->markers);
		}
	}
	rd->markers[rd->marker_first + rd->marker_count++] = m;
}

/* What became of the transaction that the batch sb, at the reader's place, is part of. */
static enum fate transaction_fate(struct weir_reader *rd, const struct weir_stored *sb, struct weir_diag **dg)
{
	while (rd->marker_count != 0 && rd->markers[rd->marker_first].offset < sb->base_offset) {
		rd->marker_first++;
		rd->marker_count--;
	}
	for (uint32_t i = 0; i < rd->marker_count; i++) {
		const struct weir_marker *m = &rd->markers[rd->marker_first + i];
		if (m->producer_id == sb->producer_id)
			return m->abort ? FATE_ABORTED : FATE_COMMITTED;
	}
	if (rd->ahead == NULL) {
		rd->ahead = weir_xmalloc(sizeof *rd->ahead);
		weir_cursor_init(rd->ahead, rd->dir, &rd->ss);
		weir_cursor_move(rd->ahead, rd->seg, rd->at);
	}
	struct weir_cursor *cu = rd->ahead;
	if (cu->seg < rd->seg || (cu->seg == rd->seg && cu->at < rd->at))
		weir_cursor_move(cu, rd->seg, rd->at);
	for (;;) {
		struct weir_stored next;
		const char *why = "";
		enum weir_step step = weir_cursor_peek(cu, &next, &why);
		if (step == WEIR_STEP_END || step == WEIR_STEP_TORN)
			return FATE_OPEN;
		if (step == WEIR_STEP_OK && next.base_offset >= rd->bound_offset)
			return FATE_OPEN; /* the bound is an offset: what comes behind it is not known yet */
		if (step == WEIR_STEP_BAD && rd->env->damaged_skip && cu->fd >= 0) {
			uint64_t size = rd->ss.seg[cu->seg].size;
			weir_cursor_move(cu, cu->seg, weir_resync(cu->fd, cu->at + 1, size, sb->base_offset));
			continue;
		}
		if (step != WEIR_STEP_OK) {
			char *path = seg_path(rd, cu->seg);
			weir_diag_set(dg, step == WEIR_STEP_IO ? WEIR_E_IO : WEIR_E_CORRUPT,
				      "%s: the data at byte %llu cannot be used: %s", path, (unsigned long long)cu->at,
				      why);
			free(path);
			return FATE_ERROR;
		}
		if (next.attributes & WEIR_ATTR_CONTROL) {
			const uint8_t *p = weir_cursor_batch(cu, &next);
			int type = p != NULL && weir_stored_crc_ok(p, &next)
					   ? weir_stored_control_type(&next, p + WEIR_STORED_HEADER_BYTES,
								      next.bytes - WEIR_STORED_HEADER_BYTES)
					   : -1;
			if (type >= 0) {
				if (rd->marker_count == MARKERS_MAX) /* forget: they can be found again */
					rd->marker_count = 0;
				marker_add(rd, (struct weir_marker){next.producer_id, next.base_offset, type == 0});
			}
			weir_cursor_pass(cu, &next);
			if (type >= 0 && next.producer_id == sb->producer_id)
				return type == 0 ? FATE_ABORTED : FATE_COMMITTED;
			continue;
		}
		weir_cursor_pass(cu, &next);
	}
}

/* ---- the next batch ---- */

/* Offsets stand outside the CRC. NULL, or what is wrong with this batch's: they only grow, and where they jump (which
 * compaction does), what follows tells a jump from a damaged number. */
static const char *offsets_wrong(struct weir_reader *rd, const struct weir_stored *sb)
{
	const struct weir_seg *s = &rd->ss.seg[rd->seg];
	int64_t last = weir_stored_last_offset(sb);
	if (WEIR_LIKELY(sb->base_offset == rd->batch_end))
		return NULL;
	if (sb->base_offset < rd->batch_end || sb->base_offset < s->base)
		return "its offset is below that of the batch before";
	if (s->listed && s->limit != UINT64_MAX && last >= s->next)
		return "its offset is beyond the committed end";
	uint64_t next = rd->at + sb->bytes;
	if (next + WEIR_STORED_HEADER_BYTES <= s->size && file_open(rd) == 0) {
		struct weir_stored after;
		uint8_t header[WEIR_STORED_HEADER_BYTES];
		const char *why;
		if (pread(rd->fd, header, sizeof header, (off_t)next) == (ssize_t)sizeof header &&
		    weir_stored_header(header, sizeof header, &after, &why) == WEIR_HEADER_OK &&
		    after.base_offset <= last)
			return "its offset is beyond that of the batch behind it";
	} else if (rd->seg + 1 < rd->ss.count && last >= rd->ss.seg[rd->seg + 1].base) {
		return "its offset is beyond the segment's end";
	}
	return NULL;
}

static bool all_zero(struct weir_reader *rd)
{
	uint8_t piece[4096];
	uint64_t size = rd->ss.seg[rd->seg].size;
	if (file_open(rd) != 0)
		return false;
	for (uint64_t at = rd->at; at < size; at += sizeof piece) {
		ssize_t n = pread(rd->fd, piece, sizeof piece, (off_t)at);
		if (n <= 0)
			return false;
		for (ssize_t i = 0; i < n; i++)
			if (piece[i] != 0)
				return false;
	}
	return true;
}

static enum weir_poll at_end(struct weir_reader *rd)
{
	return rd->env->unbounded && rd->bound_offset == INT64_MAX ? WEIR_POLL_EMPTY : WEIR_POLL_BOUND;
}

/* The last segment ends within a batch: the end of what was written, unless whole batches follow, or it was committed.
 */
static enum weir_poll torn(struct weir_reader *rd, const struct weir_stored *sb, const char *why, struct weir_diag **dg)
{
	const struct weir_seg *s = &rd->ss.seg[rd->seg];
	bool committed = s->listed && s->limit != UINT64_MAX;
	if (rd->env->unbounded && !committed)
		return WEIR_POLL_EMPTY;
	if (rd->ended)
		return WEIR_POLL_BOUND;
	if (committed || (file_open(rd) == 0 && weir_resync(rd->fd, rd->at + 1, s->size, rd->next_offset) != s->size))
		return damaged(rd, sb, WEIR_E_CORRUPT, why, dg) == WEIR_OK ? WEIR_POLL_UNIT : WEIR_POLL_ERROR;
	char *path = seg_path(rd, rd->seg);
	warn(rd->env, "%s: ends within a batch at byte %llu; it is read up to there (offset %lld)", path,
	     (unsigned long long)rd->at, (long long)rd->next_offset);
	free(path);
	rd->ended = true;
	return WEIR_POLL_BOUND;
}

static enum weir_poll open_transaction(struct weir_reader *rd, const struct weir_stored *sb)
{
	if (rd->env->unbounded)
		return WEIR_POLL_EMPTY;
	char *path = seg_path(rd, rd->seg);
	warn(rd->env,
	     "%s: offset %lld on is a transaction (producer id %lld) without an end in the file: it is not committed, "
	     "and reading "
	     "ends there; 'scan.end-of-file' = 'abort' reads past it",
	     path, (long long)sb->base_offset, (long long)sb->producer_id);
	free(path);
	rd->ended = true;
	return WEIR_POLL_BOUND;
}

/* Finds the next batch with something to deliver: UNIT with rd->head. */
static enum weir_poll head_find(struct weir_reader *rd, struct weir_diag **dg)
{
	struct weir_stored *sb = &rd->head;
	for (;;) {
		if (rd->ended)
			return WEIR_POLL_BOUND;
		if (rd->seg >= rd->ss.count)
			return at_end(rd);
		const struct weir_seg *s = &rd->ss.seg[rd->seg];
		if (rd->at >= s->size) {
			if (rd->seg + 1 >= rd->ss.count)
				return at_end(rd);
			place(rd, rd->seg + 1, 0);
			continue;
		}
		uint64_t left = s->size - rd->at;
		size_t peek = left < WEIR_STORED_HEADER_BYTES ? (size_t)left : WEIR_STORED_HEADER_BYTES;
		if (block_ensure(rd, peek, dg) != WEIR_OK)
			return WEIR_POLL_ERROR;
		const char *why = "";
		enum weir_header h = weir_stored_header(at_block(rd), peek, sb, &why);
		bool last = rd->seg + 1 == rd->ss.count;
		if (h == WEIR_HEADER_SHORT || (h == WEIR_HEADER_OK && sb->bytes > left)) {
			why = "the segment ends within the batch";
			const struct weir_stored *known = h == WEIR_HEADER_OK ? sb : NULL;
			if (last) {
				enum weir_poll poll = torn(rd, known, why, dg);
				if (poll != WEIR_POLL_UNIT)
					return poll;
			} else if (damaged(rd, known, WEIR_E_CORRUPT, why, dg) != WEIR_OK) {
				return WEIR_POLL_ERROR;
			}
			continue;
		}
		if (h == WEIR_HEADER_BAD) {
			if (weir_load_be64(at_block(rd)) == 0 && all_zero(rd)) { /* preallocated, not yet written */
				if (last)
					return at_end(rd);
				place(rd, rd->seg + 1, 0);
				continue;
			}
			if (damaged(rd, NULL, WEIR_E_CORRUPT, why, dg) != WEIR_OK)
				return WEIR_POLL_ERROR;
			continue;
		}
		const char *wrong = offsets_wrong(rd, sb);
		if (WEIR_UNLIKELY(wrong != NULL)) {
			if (damaged(rd, sb, WEIR_E_CORRUPT, wrong, dg) != WEIR_OK)
				return WEIR_POLL_ERROR;
			continue;
		}
		if (sb->base_offset >= rd->bound_offset)
			return WEIR_POLL_BOUND;
		if (sb->bytes - WEIR_STORED_HEADER_BYTES > rd->env->batch_bytes_max) {
			if (damaged(rd, sb, WEIR_E_CONF, "it is larger than batch.bytes.max", dg) != WEIR_OK)
				return WEIR_POLL_ERROR;
			continue;
		}
		if (!has_room(rd, sb->bytes)) {
			(void)no_room(rd, sb, dg);
			return WEIR_POLL_ERROR;
		}
		bool wanted = sb->count != 0 && !(sb->attributes & WEIR_ATTR_CONTROL) &&
			      weir_stored_last_offset(sb) >= rd->next_offset;
		if (wanted && sb->attributes & WEIR_ATTR_TRANSACTIONAL && !rd->env->read_uncommitted) {
			enum fate fate = transaction_fate(rd, sb, dg);
			if (fate == FATE_ERROR)
				return WEIR_POLL_ERROR;
			if (fate == FATE_OPEN && !rd->env->open_transaction_abort)
				return open_transaction(rd, sb);
			wanted = fate == FATE_COMMITTED;
		}
		if (wanted) {
			rd->head_ready = true;
			return WEIR_POLL_UNIT;
		}
		if (weir_stored_last_offset(sb) + 1 > rd->next_offset)
			rd->next_offset = weir_stored_last_offset(sb) + 1;
		rd->batch_end = weir_stored_last_offset(sb) + 1;
		rd->at += sb->bytes;
	}
}

enum weir_poll weir_reader_peek(struct weir_reader *rd, int64_t *first_ts, struct weir_diag **dg)
{
	if (!rd->head_ready) {
		enum weir_poll poll = head_find(rd, dg);
		if (poll ==
		    WEIR_POLL_EMPTY) { /* what stands here may be written, or written again, until the next look */
			weir_pool_drop(&rd->env->pool, rd->block);
			rd->block = NULL;
		}
		if (poll != WEIR_POLL_UNIT)
			return poll;
	}
	*first_ts = weir_stored_first_ts(&rd->head);
	return WEIR_POLL_UNIT;
}

/* ---- taking it ---- */

/* Checks and inflates the head batch and starts walking it. *bad: it is damaged, *code says how (nothing started). */
static enum weir_err walk_start(struct weir_reader *rd, const char **bad, enum weir_err *code, struct weir_diag **dg)
{
	struct weir_reader_env *env = rd->env;
	struct weir_stored *sb = &rd->head;
	enum weir_err err = block_ensure(rd, (size_t)sb->bytes, dg);
	if (err != WEIR_OK)
		return err;
	rd->batch_bytes_seen = (size_t)sb->bytes + WEIR_STORED_HEADER_BYTES;
	const uint8_t *p = at_block(rd);
	size_t bytes = (size_t)sb->bytes - WEIR_STORED_HEADER_BYTES;
	*code = WEIR_E_CORRUPT;
	*bad = NULL;
	if (!weir_stored_crc_ok(p, sb)) {
		*bad = "its CRC does not match its bytes";
		return WEIR_OK;
	}
	p += WEIR_STORED_HEADER_BYTES;
	if (weir_stored_codec(sb) == WEIR_CODEC_NONE) {
		rd->walk_block = weir_block_ref(rd->block);
	} else {
		struct weir_block *bk =
			weir_pool_take(&env->pool, rd->inflated_bytes != 0 ? rd->inflated_bytes : bytes * 4);
		size_t bytes_max = has_room(rd, env->batch_bytes_max) ? env->batch_bytes_max : env->batch_memory_max;
		enum weir_inflate rc =
			weir_codec_inflate(env->cc, weir_stored_codec(sb), p, bytes, &bk->buf, bytes_max, bad);
		weir_pool_count(&env->pool, bk);
		if (rc != WEIR_INFLATE_OK) {
			weir_pool_drop(&env->pool, bk);
			if (rc == WEIR_INFLATE_TOO_LARGE && bytes_max < env->batch_bytes_max)
				return no_room(rd, sb, dg);
			if (rc == WEIR_INFLATE_TOO_LARGE) {
				*bad = "it inflates to more than batch.bytes.max";
				*code = WEIR_E_CONF;
			}
			return WEIR_OK;
		}
		*bad = NULL;
		rd->walk_block = bk;
		p = bk->buf.data;
		bytes = rd->inflated_bytes = bk->buf.bytes;
	}
	if ((uint64_t)sb->count * WEIR_STORED_RECORD_BYTES_MIN > bytes) {
		*bad = "it is too short for the records it counts";
		walk_end(rd);
		return WEIR_OK;
	}
	weir_walk_init(&rd->walk, sb, p, bytes);
	rd->walked = 0;
	return WEIR_OK;
}

/* Leaves out what lies before next_offset and from the bound on. */
static void unit_trim(struct weir_reader *rd, struct weir_unit *u)
{
	uint32_t first = 0, end = u->count;
	while (first < end && u->records[first].offset < rd->next_offset)
		first++;
	while (end > first && u->records[end - 1].offset >= rd->bound_offset)
		end--;
	if (first == 0 && end == u->count)
		return;
	u->records += first;
	u->count = end - first;
	u->bytes = 0;
	for (uint32_t i = 0; i < u->count; i++)
		u->bytes += u->records[i].key_bytes + u->records[i].value_bytes + u->records[i].headers_bytes;
}

enum weir_err weir_reader_take(struct weir_reader *rd, struct weir_unit **out, struct weir_diag **dg)
{
	WEIR_ASSERT(rd->head_ready);
	struct weir_reader_env *env = rd->env;
	const struct weir_stored *sb = &rd->head;
	const char *bad = NULL;
	enum weir_err code = WEIR_E_CORRUPT;
	bool started = rd->walk_block != NULL;
	if (!started) {
		enum weir_err err = walk_start(rd, &bad, &code, dg);
		if (err != WEIR_OK)
			return err;
	}
	uint32_t left = bad == NULL ? rd->walk.left : 0;
	struct weir_unit_box *box = unit_take(env, left < WEIR_UNIT_RECORDS_MAX ? left : WEIR_UNIT_RECORDS_MAX);
	struct weir_unit *u = &box->u;
	*u = (struct weir_unit){.records = box->records};
	if (bad == NULL)
		bad = weir_walk_records(&rd->walk, sb, box->records, WEIR_UNIT_RECORDS_MAX, &u->count, &u->bytes);
	if (WEIR_UNLIKELY(bad != NULL)) {
		struct weir_stored copy = *sb;
		enum weir_err err = damaged(rd, &copy, code, bad, dg);
		if (err != WEIR_OK) {
			weir_reader_release(env, u);
			return err;
		}
		u->count = 0;
		u->bytes = 0;
		u->next_offset = rd->next_offset;
		*out = u;
		return WEIR_OK;
	}
	box->block = weir_block_ref(rd->walk_block);
	u->memory = u->count * sizeof *u->records + (started ? 0
						     : weir_stored_codec(sb) == WEIR_CODEC_NONE
							     ? sb->bytes
							     : rd->walk_block->buf.capacity);
	bool done = rd->walk.left == 0;
	int64_t next = done ? weir_stored_last_offset(sb) + 1 : u->records[u->count - 1].offset + 1;
	if (WEIR_UNLIKELY(u->records[0].offset < rd->next_offset || next > rd->bound_offset))
		unit_trim(rd, u);
	rd->next_offset = weir_max_i64(rd->next_offset, weir_min_i64(next, rd->bound_offset));
	u->next_offset = rd->next_offset;
	if (done) {
		walk_end(rd);
		rd->batch_end = weir_stored_last_offset(sb) + 1;
		rd->at += sb->bytes;
		rd->head_ready = false;
	}
	*out = u;
	return WEIR_OK;
}

/* ---- places ---- */

enum weir_err weir_reader_seek(struct weir_reader *rd, int64_t offset, struct weir_diag **dg)
{
	(void)dg;
	struct weir_cursor cu;
	uint32_t seg = 0;
	rd->ended = false;
	rd->batch_end = 0;
	rd->next_offset = offset;
	ahead_drop(rd);
	place(rd, 0, 0);
	if (rd->ss.count == 0)
		return WEIR_OK;
	while (seg + 1 < rd->ss.count && rd->ss.seg[seg + 1].base <= offset)
		seg++;
	weir_cursor_init(&cu, rd->dir, &rd->ss);
	weir_cursor_hint(&cu, seg, offset);
	struct weir_stored sb;
	const char *why;
	/* Whatever stops the search is reported when reading comes to it. */
	while (weir_cursor_peek(&cu, &sb, &why) == WEIR_STEP_OK && weir_stored_last_offset(&sb) < offset)
		weir_cursor_pass(&cu, &sb);
	place(rd, cu.seg, cu.at);
	weir_cursor_fini(&cu);
	return WEIR_OK;
}

enum weir_err weir_reader_resume(struct weir_reader *rd, int64_t offset, struct weir_diag **dg)
{
	int64_t end = weir_reader_end(rd), first = weir_reader_first(rd);
	if (offset > end)
		return weir_diag_set(
			dg, WEIR_E_IO,
			"%s ends at offset %lld and cannot be gone on with at offset %lld: it became shorter", rd->dir,
			(long long)end, (long long)offset);
	if (offset < first && !rd->env->damaged_skip) {
		enum weir_err err =
			weir_diag_set(dg, WEIR_E_IO,
				      "%s begins at offset %lld and cannot be gone on with at offset %lld: %lld "
				      "offsets were removed before they were read",
				      rd->dir, (long long)first, (long long)offset, (long long)(first - offset));
		weir_diag_add_hint(*dg, "'scan.damaged' = 'skip' goes on behind the gap");
		return err;
	}
	if (offset < first)
		warn(rd->env, "%s begins at offset %lld: offsets %lld to %lld were removed before they were read",
		     rd->dir, (long long)first, (long long)offset, (long long)first - 1);
	return weir_reader_seek(rd, offset, dg);
}

int64_t weir_reader_first(const struct weir_reader *rd)
{
	return rd->ss.count == 0 ? 0 : rd->ss.seg[0].base;
}

int64_t weir_reader_end(struct weir_reader *rd)
{
	if (rd->ss.count == 0)
		return 0;
	uint32_t last = rd->ss.count - 1;
	const struct weir_seg *s = &rd->ss.seg[last];
	if (s->listed && s->limit != UINT64_MAX)
		return s->next;
	struct weir_cursor cu;
	struct weir_stored sb;
	const char *why;
	int64_t end = s->base;
	weir_cursor_init(&cu, rd->dir, &rd->ss);
	weir_cursor_hint(&cu, last, INT64_MAX);
	while (weir_cursor_peek(&cu, &sb, &why) == WEIR_STEP_OK) {
		end = weir_stored_last_offset(&sb) + 1;
		weir_cursor_pass(&cu, &sb);
	}
	weir_cursor_fini(&cu);
	return end;
}

enum weir_err weir_reader_find_time(struct weir_reader *rd, int64_t ts, int64_t *offset, struct weir_diag **dg)
{
	struct weir_cursor cu;
	struct weir_stored sb;
	const char *why;
	bool found = false;
	weir_cursor_init(&cu, rd->dir, &rd->ss);
	while (weir_cursor_peek(&cu, &sb, &why) == WEIR_STEP_OK && !found) {
		found = sb.count != 0 && !(sb.attributes & WEIR_ATTR_CONTROL) && sb.max_timestamp >= ts;
		if (!found)
			weir_cursor_pass(&cu, &sb);
	}
	place(rd, cu.seg, cu.at);
	weir_cursor_fini(&cu);
	*offset = weir_reader_end(rd);
	if (!found)
		return WEIR_OK;
	rd->next_offset = sb.base_offset;
	rd->batch_end = 0;
	int64_t first_ts;
	enum weir_poll poll;
	while ((poll = weir_reader_peek(rd, &first_ts, dg)) == WEIR_POLL_UNIT) {
		struct weir_unit *u;
		enum weir_err err = weir_reader_take(rd, &u, dg);
		if (err != WEIR_OK)
			return err;
		for (uint32_t i = 0; i < u->count; i++)
			if (u->records[i].timestamp >= ts) {
				*offset = u->records[i].offset;
				weir_reader_release(rd->env, u);
				return WEIR_OK;
			}
		weir_reader_release(rd->env, u);
	}
	return poll == WEIR_POLL_ERROR ? weir_diag_set(dg, WEIR_E_IO, "reading failed") : WEIR_OK;
}

enum weir_err weir_reader_refresh(struct weir_reader *rd, struct weir_segs *ss, struct weir_diag **dg)
{
	enum weir_err err = sizes_update(rd->dir, ss, dg);
	if (err != WEIR_OK) {
		weir_segs_fini(ss);
		return err;
	}
	bool same = rd->ss.count <= ss->count;
	for (uint32_t i = 0; same && i < rd->ss.count; i++)
		same = rd->ss.seg[i].base == ss->seg[i].base && rd->ss.seg[i].generation == ss->seg[i].generation;
	weir_segs_fini(&rd->ss);
	rd->ss = *ss;
	memset(ss, 0, sizeof *ss);
	if (same)
		return WEIR_OK;
	/* Files went away in front (retention), or were rewritten: find the place again, within a batch too. */
	file_close(rd);
	return weir_reader_seek(rd, rd->next_offset, dg);
}
