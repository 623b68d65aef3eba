/* filesystem.c: lines of files as records. Each file is read by plain reads into a window that holds at most one record
 * and a block; a unit is up to 1,024 records or about a megabyte of them, copied into memory of its own. @thread io
 *
 *   file:    |....consumed....|  window: start ... fill  |....not read yet....| size at open
 *
 * A CSV record ends at a line end outside quotes. A quote that never closes must not swallow the file: after
 * QUOTED_LINES_MAX lines, or at the record limit or the end, its first line is given alone (decoders refuse it) and
 * reading goes on behind it. */
#include "io/filesystem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BLOCK_BYTES = 256 * 1024,
	UNIT_BYTES = 1024 * 1024,
	QUOTED_LINES_MAX = 1000,
	FILES_MAX = 100000,
	RECORD_BYTES_DEFAULT = 16 << 20
};

struct input {
	char *path;
	const char *name; /* behind the last slash of path */
	int fd;
	int64_t size; /* at open */
	int64_t mtime_ms;
	int64_t lines; /* counted on demand, -1: not yet */
	int64_t at;    /* bytes read from the file so far */
	int64_t line;  /* number of the line at start */
	struct weir_buf window;
	size_t start; /* first byte of window that is not consumed */
};

struct filesystem {
	struct weir_stream_log log;
	struct input *inputs;
	uint32_t count;
	uint32_t record_bytes_max;
	bool csv;
	char delimiter, quote, escape; /* quote 0: none */
};

/* ---- bytes of a file ---- */

static enum weir_err read_failed(const struct input *in, struct weir_diag **dg)
{
	return weir_diag_set(dg, WEIR_E_IO, "cannot read '%s': %s", in->path, strerror(errno));
}

/* Reads another block behind what the window holds; *more is false at the bound. A file that became shorter ends early.
 */
static enum weir_err fill(struct input *in, bool *more, struct weir_diag **dg)
{
	if (in->start > 0 && in->start >= in->window.bytes / 2) {
		memmove(in->window.data, in->window.data + in->start, in->window.bytes - in->start);
		in->window.bytes -= in->start;
		in->start = 0;
	}
	int64_t want = in->size - in->at < BLOCK_BYTES ? in->size - in->at : BLOCK_BYTES;
	*more = want > 0;
	if (want <= 0)
		return WEIR_OK;
	uint8_t *to = weir_buf_room(&in->window, (size_t)want);
	ssize_t got;
	do {
		got = pread(in->fd, to, (size_t)want, in->at);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return read_failed(in, dg);
	*more = got > 0;
	if (got == 0)
		in->size = in->at;
	in->window.bytes += (size_t)got;
	in->at += got;
	return WEIR_OK;
}

static bool is_drained(const struct input *in)
{
	return in->start == in->window.bytes && in->at >= in->size;
}

/* Where the record at the window's start ends: bytes of text without its line end, bytes with it, lines in it. */
struct span {
	size_t text;
	size_t whole;
	int64_t lines;
};

/* The end of the line that starts at from (an offset from start), reading as needed. *whole is 0 when the line is
 * longer than limit; then text is limit. */
static enum weir_err find_line(struct input *in, size_t from, size_t limit, struct span *out, struct weir_diag **dg)
{
	size_t seen = from;
	for (;;) {
		const uint8_t *base = in->window.data + in->start;
		size_t have = in->window.bytes - in->start;
		const uint8_t *end = have > seen ? memchr(base + seen, '\n', have - seen) : NULL;
		if (end != NULL) {
			out->text = (size_t)(end - base);
			out->whole = out->text + 1;
			return WEIR_OK;
		}
		if (have - from > limit) {
			out->text = from + limit;
			out->whole = 0;
			return WEIR_OK;
		}
		seen = have;
		bool more;
		enum weir_err err = fill(in, &more, dg);
		if (err != WEIR_OK)
			return err;
		if (!more) {
			out->text = out->whole = in->window.bytes - in->start;
			return WEIR_OK;
		}
	}
}

/* Drops the rest of a line that is longer than a record may be. */
static enum weir_err skip_line(struct input *in, struct weir_diag **dg)
{
	bool more = true;
	while (more) {
		const uint8_t *base = in->window.data + in->start;
		size_t have = in->window.bytes - in->start;
		const uint8_t *end = have != 0 ? memchr(base, '\n', have) : NULL;
		if (end != NULL) {
			in->start += (size_t)(end - base) + 1;
			return WEIR_OK;
		}
		in->start = in->window.bytes;
		enum weir_err err = fill(in, &more, dg);
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

/* Goes through text and says whether a quote is open behind it. *field: at the start of a field. */
static bool quote_is_open(const struct filesystem *fs, const uint8_t *s, size_t bytes, bool open, bool *field)
{
	for (size_t i = 0; i < bytes; i++) {
		char c = (char)s[i];
		if (fs->escape != 0 && c == fs->escape && i + 1 < bytes) {
			i++;
			*field = false;
		} else if (open) {
			if (c == fs->quote && i + 1 < bytes && (char)s[i + 1] == fs->quote)
				i++;
			else if (c == fs->quote)
				open = false;
		} else if (c == fs->quote && *field) {
			open = true;
			*field = false;
		} else {
			*field = c == fs->delimiter;
		}
	}
	return open;
}

/* The record at the window's start. whole is 0 for one that is longer than a record may be. */
static enum weir_err find_record(struct filesystem *fs, struct input *in, struct span *out, struct weir_diag **dg)
{
	size_t limit = fs->record_bytes_max;
	struct span first, line;
	enum weir_err err = find_line(in, 0, limit, &first, dg);
	first.lines = 1;
	*out = first;
	if (err != WEIR_OK || first.whole == 0 || !fs->csv || fs->quote == 0)
		return err;
	bool field = true;
	bool open = quote_is_open(fs, in->window.data + in->start, first.text, false, &field);
	for (int64_t lines = 2; open; lines++) {
		if (lines > QUOTED_LINES_MAX || out->whole > limit)
			break;
		size_t from = out->whole;
		err = find_line(in, from, limit, &line, dg);
		if (err != WEIR_OK)
			return err;
		if (line.whole == 0 || line.whole == from) /* too long, or the end */
			break;
		*out = (struct span){line.text, line.whole, lines};
		open = quote_is_open(fs, in->window.data + in->start + from, line.text - from, true, &field);
	}
	if (open)
		*out = first;
	return WEIR_OK;
}

/* ---- the log ---- */

static uint32_t fs_partitions(const struct weir_stream_log *sl)
{
	return ((const struct filesystem *)sl)->count;
}

static enum weir_poll fs_peek(struct weir_stream_log *sl, uint32_t p, int64_t *first_ts, struct weir_diag **dg)
{
	const struct input *in = &((struct filesystem *)sl)->inputs[p];
	(void)dg;
	if (is_drained(in))
		return WEIR_POLL_BOUND;
	*first_ts = in->line;
	return WEIR_POLL_UNIT;
}

struct unit_builder {
	struct weir_buf payload;
	uint32_t count;
	struct {
		size_t from;
		uint32_t bytes;
		int64_t line;
	} rows[WEIR_BATCH_ROWS];
};

static struct weir_unit *build_unit(const struct unit_builder *ub, const struct input *in, uint32_t partition)
{
	size_t head = weir_align_up(sizeof(struct weir_unit) + ub->count * sizeof(struct weir_record), 64);
	size_t memory = head + ub->payload.bytes + WEIR_PAYLOAD_PAD;
	struct weir_unit *u = weir_xmalloc(memory);
	uint8_t *payload = (uint8_t *)u + head;
	if (ub->payload.bytes != 0)
		memcpy(payload, ub->payload.data, ub->payload.bytes);
	memset(payload + ub->payload.bytes, 0, WEIR_PAYLOAD_PAD);
	*u = (struct weir_unit){.partition = partition,
				.count = ub->count,
				.records = (struct weir_record *)(u + 1),
				.bytes = ub->payload.bytes,
				.memory = memory,
				.next_offset = in->line};
	for (uint32_t i = 0; i < ub->count; i++) {
		u->records[i] = (struct weir_record){.value = payload + ub->rows[i].from,
						     .value_bytes = ub->rows[i].bytes,
						     .offset = ub->rows[i].line,
						     .timestamp = in->mtime_ms};
	}
	return u;
}

static bool is_blank_line(const uint8_t *s, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r')
			return false;
	}
	return true;
}

/* Moves one record from the window into the unit; blank lines are passed over. */
static enum weir_err take_record(struct filesystem *fs, struct input *in, struct unit_builder *ub,
				 struct weir_diag **dg)
{
	struct span sp;
	enum weir_err err = find_record(fs, in, &sp, dg);
	if (err != WEIR_OK)
		return err;
	const uint8_t *s = in->window.data + in->start;
	size_t bytes = sp.text;
	if (in->line == 0 && bytes >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0) {
		s += 3;
		bytes -= 3;
	}
	if (bytes > 0 && sp.whole != 0 && s[bytes - 1] == '\r')
		bytes--;
	size_t have = in->window.bytes - (size_t)(s - in->window.data);
	if (sp.whole == 0 || bytes > fs->record_bytes_max) /* the limit and a byte: decoders refuse it by its size */
		bytes = have > fs->record_bytes_max ? (size_t)fs->record_bytes_max + 1 : have;
	if (!is_blank_line(s, bytes)) {
		ub->rows[ub->count].from = ub->payload.bytes;
		ub->rows[ub->count].bytes = (uint32_t)bytes;
		ub->rows[ub->count].line = in->line;
		ub->count++;
		weir_buf_put(&ub->payload, s, bytes);
	}
	in->line += sp.lines;
	in->start += sp.whole;
	return sp.whole != 0 ? WEIR_OK : skip_line(in, dg);
}

static enum weir_err fs_take(struct weir_stream_log *sl, uint32_t p, struct weir_unit **out, struct weir_diag **dg)
{
	struct filesystem *fs = (struct filesystem *)sl;
	struct input *in = &fs->inputs[p];
	struct unit_builder *ub = weir_xcalloc(1, sizeof *ub);
	enum weir_err err = WEIR_OK;
	while (err == WEIR_OK && ub->count < WEIR_BATCH_ROWS && ub->payload.bytes < UNIT_BYTES && !is_drained(in))
		err = take_record(fs, in, ub, dg);
	if (err == WEIR_OK)
		*out = build_unit(ub, in, p);
	weir_buf_fini(&ub->payload);
	free(ub);
	return err;
}

static void fs_release(struct weir_stream_log *sl, struct weir_unit *u)
{
	(void)sl;
	free(u);
}

static enum weir_err fs_seek(struct weir_stream_log *sl, uint32_t p, int64_t offset, struct weir_diag **dg)
{
	struct input *in = &((struct filesystem *)sl)->inputs[p];
	if (offset < in->line) { /* another assignment goes on further back */
		in->at = in->line = 0;
		in->start = in->window.bytes = 0;
	}
	while (in->line < offset && !is_drained(in)) {
		enum weir_err err = skip_line(in, dg);
		if (err != WEIR_OK)
			return err;
		in->line++;
	}
	if (in->line != offset)
		return weir_diag_set(dg, WEIR_E_IO,
				     "'%s' has %lld lines and cannot go on at line %lld: it became shorter", in->path,
				     (long long)in->line, (long long)offset);
	return WEIR_OK;
}

/* Lines of a file up to its bound; a last one without a line end counts. */
static int64_t count_lines(const struct input *in)
{
	uint8_t *block = weir_xmalloc(BLOCK_BYTES);
	int64_t lines = 0, at = 0;
	uint8_t last = '\n';
	while (at < in->size) {
		int64_t want = in->size - at < BLOCK_BYTES ? in->size - at : BLOCK_BYTES;
		ssize_t got = pread(in->fd, block, (size_t)want, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break; /* reading it will say why */
		for (const uint8_t *s = block, *end = block + got; (s = memchr(s, '\n', (size_t)(end - s))) != NULL;
		     s++)
			lines++;
		last = block[got - 1];
		at += got;
	}
	free(block);
	return lines + (last != '\n');
}

static void fs_range(struct weir_stream_log *sl, uint32_t p, int64_t *first, int64_t *end)
{
	struct input *in = &((struct filesystem *)sl)->inputs[p];
	if (in->lines < 0)
		in->lines = count_lines(in);
	*first = 0;
	*end = in->lines;
}

static int fs_event_fd(const struct weir_stream_log *sl)
{
	(void)sl;
	return -1;
}

static const char *fs_topic(const struct weir_stream_log *sl, uint32_t p, uint32_t *partition)
{
	*partition = 0;
	return ((const struct filesystem *)sl)->inputs[p].name;
}

static void fs_close(struct weir_stream_log *sl)
{
	struct filesystem *fs = (struct filesystem *)sl;
	if (fs == NULL)
		return;
	for (uint32_t i = 0; i < fs->count; i++) {
		if (fs->inputs[i].fd >= 0)
			(void)close(fs->inputs[i].fd);
		free(fs->inputs[i].path);
		weir_buf_fini(&fs->inputs[i].window);
	}
	free(fs->inputs);
	free(fs);
}

static const struct weir_stream_ops fs_ops = {
	.partitions = fs_partitions,
	.peek = fs_peek,
	.take = fs_take,
	.release = fs_release,
	.seek = fs_seek,
	.range = fs_range,
	.event_fd = fs_event_fd,
	.topic = fs_topic,
	.close = fs_close,
};

/* ---- opening ---- */

static enum weir_err open_input(struct filesystem *fs, char *path, struct weir_diag **dg)
{
	struct input *in = &fs->inputs[fs->count++];
	struct stat st;
	const char *slash = strrchr(path, '/');
	in->path = path;
	in->name = slash != NULL ? slash + 1 : path;
	in->lines = -1;
	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0 || fstat(in->fd, &st) != 0)
		return weir_diag_set(dg, WEIR_E_IO, "cannot open '%s': %s", path, strerror(errno));
	in->size = st.st_size;
	in->mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return WEIR_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum weir_err open_folder(struct filesystem *fs, const char *folder, struct weir_diag **dg)
{
	DIR *dir = opendir(folder);
	char **paths = NULL;
	uint32_t count = 0, room = 0;
	enum weir_err err = WEIR_OK;
	if (dir == NULL)
		return weir_diag_set(dg, WEIR_E_IO, "cannot open folder '%s': %s", folder, strerror(errno));
	for (struct dirent *e; err == WEIR_OK && (e = readdir(dir)) != NULL;) {
		struct stat st;
		if (e->d_name[0] == '.' || e->d_name[0] == '_') /* hidden, as everywhere in this trade */
			continue;
		struct weir_buf b = {0};
		weir_buf_printf(&b, "%s/%s", folder, e->d_name);
		weir_buf_put_byte(&b, 0);
		if (stat((const char *)b.data, &st) != 0 || !S_ISREG(st.st_mode)) {
			weir_buf_fini(&b);
			continue;
		}
		if (count == FILES_MAX)
			err = weir_diag_set(dg, WEIR_E_IO, "folder '%s' holds more than %d files", folder, FILES_MAX);
		if (count == room) {
			room = room != 0 ? room * 2 : 16;
			paths = weir_xrealloc(paths, room * sizeof *paths);
		}
		paths[count++] = (char *)b.data;
	}
	(void)closedir(dir);
	if (err == WEIR_OK && count == 0)
		err = weir_diag_set(dg, WEIR_E_IO, "folder '%s' holds no files", folder);
	if (count != 0)
		qsort(paths, count, sizeof *paths, by_name);
	fs->inputs = weir_xcalloc(count + 1, sizeof *fs->inputs);
	for (uint32_t i = 0; i < count; i++) {
		if (err == WEIR_OK)
			err = open_input(fs, paths[i], dg);
		else
			free(paths[i]);
	}
	free(paths);
	return err;
}

enum weir_err weir_filesystem_open(struct weir_stream_log **out, const struct weir_filesystem_spec *spec,
				   struct weir_diag **dg)
{
	struct filesystem *fs = weir_xcalloc(1, sizeof *fs);
	const struct weir_format_options *f = spec->format;
	struct stat st;
	enum weir_err err;
	fs->log.ops = &fs_ops;
	fs->record_bytes_max = spec->record_bytes_max != 0 ? spec->record_bytes_max : RECORD_BYTES_DEFAULT;
	fs->csv = f->kind == WEIR_FORMAT_CSV;
	fs->delimiter = f->csv_delimiter != 0 ? f->csv_delimiter : ',';
	fs->quote = f->csv_disable_quote ? 0 : f->csv_quote != 0 ? f->csv_quote : '"';
	fs->escape = f->csv_escape;
	const char *path = strncmp(spec->path, "file://", 7) == 0 ? spec->path + 7 : spec->path; /* Flink's form */
	if (stat(path, &st) != 0) {
		err = weir_diag_set(dg, WEIR_E_IO, "cannot open '%s': %s", path, strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		err = open_folder(fs, path, dg);
	} else if (!S_ISREG(st.st_mode)) {
		err = weir_diag_set(dg, WEIR_E_IO, "'%s' is neither a file nor a folder", path);
	} else {
		fs->inputs = weir_xcalloc(1, sizeof *fs->inputs);
		err = open_input(fs, weir_xstrdup(path), dg);
	}
	if (err != WEIR_OK) {
		fs_close(&fs->log);
		return err;
	}
	*out = &fs->log;
	return WEIR_OK;
}
