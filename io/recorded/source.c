/* source.c: recorded topics as a stream (io/stream.h): several topics of one folder, bounded at what is there at the
 * start or following the files. @thread init (open), io (the rest). No thread of its own.
 *
 * Following: inotify says when a file or the commit file changes, and a partition that is empty looks again by itself
 * every RECHECK_MS, for file systems that say nothing. */
#include "io/recorded/reader.h"

#include "io/recorded/recorded.h"
#include "io/recorded/sys.h"
#include "io/topics.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum { RECHECK_MS = 250 };
#define READ_AHEAD_BYTES (1u << 20) /* all partitions together */
/* Mapped of one partition at a time: less is taken away too often, which interrupts every thread; more is of no use. */
#define MAPPED_BYTES_MIN (4u << 20)
#define MAPPED_BYTES_MAX (16u << 20)

struct part {
	struct weir_reader rd;
	uint32_t topic;
	uint32_t partition;
	int64_t start; /* where the startup mode begins */
	int watch;     /* inotify descriptor of its folder, -1: none yet */
	bool dirty;    /* something happened to its files */
	int64_t checked_ms;
};
struct source {
	struct weir_stream_log sl; /* first */
	struct weir_reader_env env;
	char *path;
	char **topics;
	uint32_t topic_count;
	struct part *parts;
	uint32_t part_count;
	struct weir_commit commit;
	bool ignore_commit_file;
	bool commit_dirty;
	int64_t commit_ms;
	int inotify;
	int folder_watch;
};

static struct source *source_of(struct weir_stream_log *sl)
{
	return (struct source *)sl;
}

/* ---- following ---- */

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void watch_part(struct source *sr, struct part *pt)
{
	if (sr->inotify >= 0 && pt->watch < 0)
		pt->watch = inotify_add_watch(sr->inotify, pt->rd.dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE);
}

static void watch_start(struct source *sr)
{
	sr->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (sr->inotify < 0)
		return; /* then by time alone */
	sr->folder_watch = inotify_add_watch(sr->inotify, sr->path, IN_CREATE | IN_MOVED_TO);
	for (uint32_t p = 0; p < sr->part_count; p++)
		watch_part(sr, &sr->parts[p]);
}

static void events_drain(struct source *sr)
{
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n;
	while (sr->inotify >= 0 && (n = read(sr->inotify, buf, sizeof buf)) > 0) {
		for (char *p = buf; p < buf + n;) {
			const struct inotify_event *e = (const struct inotify_event *)(void *)p;
			bool all = e->wd == sr->folder_watch || e->mask & IN_Q_OVERFLOW;
			sr->commit_dirty |= all;
			for (uint32_t i = 0; i < sr->part_count; i++)
				sr->parts[i].dirty |= all || sr->parts[i].watch == e->wd;
			p += sizeof *e + e->len;
		}
	}
}

static enum weir_err part_refresh(struct source *sr, struct part *pt, int64_t now, struct weir_diag **dg)
{
	struct weir_segs ss;
	if (!sr->ignore_commit_file && (sr->commit_dirty || now - sr->commit_ms >= RECHECK_MS)) {
		struct weir_commit c;
		enum weir_err err = weir_commit_load(sr->path, &c, dg);
		if (err != WEIR_OK) {
			weir_commit_fini(&c);
			return err;
		}
		weir_commit_fini(&sr->commit);
		sr->commit = c;
		sr->commit_dirty = false;
		sr->commit_ms = now;
	}
	watch_part(sr, pt);
	pt->dirty = false;
	pt->checked_ms = now;
	enum weir_err err = weir_segs_list(&ss, sr->path, sr->topics[pt->topic], pt->partition, &sr->commit,
					   sr->ignore_commit_file, dg);
	return err == WEIR_OK ? weir_reader_refresh(&pt->rd, &ss, dg) : err;
}

/* ---- the stream ---- */

static uint32_t source_partitions(const struct weir_stream_log *sl)
{
	return ((const struct source *)sl)->part_count;
}

static enum weir_poll source_peek(struct weir_stream_log *sl, uint32_t p, int64_t *first_ts, struct weir_diag **dg)
{
	struct source *sr = source_of(sl);
	struct part *pt = &sr->parts[p];
	enum weir_poll poll = weir_reader_peek(&pt->rd, first_ts, dg);
	if (WEIR_LIKELY(poll != WEIR_POLL_EMPTY))
		return poll;
	events_drain(sr);
	int64_t now = now_ms();
	if (!pt->dirty && now - pt->checked_ms < RECHECK_MS)
		return WEIR_POLL_EMPTY;
	if (part_refresh(sr, pt, now, dg) != WEIR_OK)
		return WEIR_POLL_ERROR;
	return weir_reader_peek(&pt->rd, first_ts, dg);
}

static enum weir_err source_take(struct weir_stream_log *sl, uint32_t p, struct weir_unit **out, struct weir_diag **dg)
{
	struct source *sr = source_of(sl);
	enum weir_err err = weir_reader_take(&sr->parts[p].rd, out, dg);
	if (WEIR_LIKELY(err == WEIR_OK))
		(*out)->partition = p;
	return err;
}

static void source_release(struct weir_stream_log *sl, struct weir_unit *u)
{
	weir_reader_release(&source_of(sl)->env, u);
}

static enum weir_err source_seek(struct weir_stream_log *sl, uint32_t p, int64_t offset, struct weir_diag **dg)
{
	struct part *pt = &source_of(sl)->parts[p];
	if (offset == WEIR_START_FIRST) {
		pt->start = 0;
		return weir_reader_seek(&pt->rd, 0, dg);
	}
	return weir_reader_resume(&pt->rd, offset, dg);
}

static void source_range(struct weir_stream_log *sl, uint32_t p, int64_t *first, int64_t *end)
{
	struct weir_reader *rd = &source_of(sl)->parts[p].rd;
	*first = weir_max_i64(weir_reader_first(rd), source_of(sl)->parts[p].start);
	*end = weir_min_i64(weir_reader_end(rd), rd->bound_offset);
}

static int source_event_fd(const struct weir_stream_log *sl)
{
	return ((const struct source *)sl)->inotify;
}

static const char *source_topic(const struct weir_stream_log *sl, uint32_t p, uint32_t *partition)
{
	const struct source *sr = (const struct source *)sl;
	*partition = sr->parts[p].partition;
	return sr->topics[sr->parts[p].topic];
}

static void source_close(struct weir_stream_log *sl)
{
	struct source *sr = source_of(sl);
	for (uint32_t p = 0; p < sr->part_count; p++)
		weir_reader_close(&sr->parts[p].rd);
	free(sr->parts);
	weir_reader_env_fini(&sr->env);
	weir_commit_fini(&sr->commit);
	weir_names_free(sr->topics, sr->topic_count);
	if (sr->inotify >= 0)
		close(sr->inotify);
	free(sr->path);
	free(sr);
}

/* Of its stored batch, which may give more units than one. */
static int64_t source_last_ts(const struct weir_stream_log *sl, uint32_t p)
{
	return ((const struct source *)sl)->parts[p].rd.head.max_timestamp;
}

static uint64_t source_memory(const struct weir_stream_log *sl)
{
	return ((const struct source *)sl)->env.pool.bytes_held;
}

static const struct weir_stream_ops source_ops = {
	.partitions = source_partitions,
	.peek = source_peek,
	.take = source_take,
	.release = source_release,
	.seek = source_seek,
	.range = source_range,
	.event_fd = source_event_fd,
	.topic = source_topic,
	.close = source_close,
	.last_ts = source_last_ts,
	.memory = source_memory,
};

void weir_recorded_source_damaged(const struct weir_stream_log *sl, uint64_t *batches, uint64_t *records)
{
	const struct source *sr = (const struct source *)sl;
	*batches = sr->env.damaged_batches;
	*records = sr->env.damaged_records;
}

const char *weir_recorded_source_warning(const struct weir_stream_log *sl, uint32_t i)
{
	const struct source *sr = (const struct source *)sl;
	return i < sr->env.warning_count ? sr->env.warnings[i] : NULL;
}

/* ---- opening ---- */

static enum weir_err no_topic(struct source *sr, const char *name, struct weir_diag **dg)
{
	char **names;
	uint32_t count;
	if (access(sr->path, R_OK | X_OK) != 0 && errno != ENOENT)
		return weir_sys_failed(dg, "read the folder", sr->path, errno);
	enum weir_err err = weir_diag_set(dg, WEIR_E_CONF, "there is no recorded topic '%s' in %s", name, sr->path);
	if (weir_folder_topics(sr->path, &sr->commit, true, &names, &count, NULL) == WEIR_OK) {
		const char *near = weir_nearest_name(name, strlen(name), (const char *const *)names, count);
		if (near != NULL && dg != NULL)
			weir_diag_add_hint(*dg, "did you mean '%s'?", near);
		weir_names_free(names, count);
	}
	return err;
}

static enum weir_err match_topics(struct source *sr, const char *pattern, struct weir_diag **dg)
{
	regex_t re;
	if (!weir_topic_pattern_compile(&re, pattern))
		return weir_diag_set(dg, WEIR_E_CONF, "topic-pattern '%s' is no regular expression", pattern);
	char **names;
	uint32_t count, kept = 0;
	enum weir_err err = weir_folder_topics(sr->path, &sr->commit, false, &names, &count, dg);
	if (err == WEIR_OK) {
		for (uint32_t i = 0; i < count; i++) {
			if (regexec(&re, names[i], 0, NULL, 0) == 0)
				names[kept++] = names[i];
			else
				free(names[i]);
		}
		sr->topics = names;
		sr->topic_count = kept;
		if (kept == 0)
			err = weir_diag_set(dg, WEIR_E_CONF, "no recorded topic in %s matches '%s'", sr->path, pattern);
	}
	regfree(&re);
	return err;
}

/* Flink's partition:0,offset:42;partition:1,offset:300. */
static enum weir_err offset_for(const char *text, uint32_t partition, int64_t *offset, bool *found,
				struct weir_diag **dg)
{
	*found = false;
	for (const char *p = text; p != NULL && *p != '\0';) {
		uint64_t part, at;
		int used = 0;
		if (sscanf(p, "partition:%9lu,offset:%18lu%n", &part, &at, &used) != 2 ||
		    (p[used] != ';' && p[used] != '\0'))
			return weir_diag_set(dg, WEIR_E_CONF,
					     "'%s' is not of the form partition:0,offset:42;partition:1,offset:300",
					     text);
		if (part == partition) {
			*offset = (int64_t)at;
			*found = true;
		}
		p += used;
		p += *p == ';';
	}
	return WEIR_OK;
}

static enum weir_err part_start(struct part *pt, const struct weir_recorded_source_spec *spec, struct weir_diag **dg)
{
	struct weir_reader *rd = &pt->rd;
	enum weir_err err = WEIR_OK;
	int64_t start = 0, bound = INT64_MAX;
	bool found;
	switch (spec->startup) {
	case WEIR_STARTUP_EARLIEST:
		break;
	case WEIR_STARTUP_LATEST:
		start = weir_reader_end(rd);
		break;
	case WEIR_STARTUP_TIMESTAMP:
		err = weir_reader_find_time(rd, spec->startup_ts, &start, dg);
		break;
	case WEIR_STARTUP_OFFSETS:
		err = offset_for(spec->startup_offsets, pt->partition, &start, &found, dg);
		break;
	}
	if (err == WEIR_OK && !spec->unbounded) {
		if (spec->bounded == WEIR_STARTUP_TIMESTAMP)
			err = weir_reader_find_time(rd, spec->bounded_ts, &bound, dg);
		else if (spec->bounded == WEIR_STARTUP_OFFSETS)
			err = offset_for(spec->bounded_offsets, pt->partition, &bound, &found, dg);
	}
	if (err == WEIR_OK)
		err = weir_reader_seek(rd, start, dg);
	pt->start = start;
	rd->bound_offset = bound;
	return err;
}

static enum weir_err source_open_parts(struct source *sr, const struct weir_recorded_source_spec *spec,
				       struct weir_diag **dg)
{
	uint32_t total = 0;
	for (uint32_t t = 0; t < sr->topic_count; t++) {
		uint32_t count = weir_topic_name_ok(sr->topics[t])
					 ? weir_folder_partitions(sr->path, sr->topics[t], &sr->commit)
					 : 0;
		if (count == 0)
			return no_topic(sr, sr->topics[t], dg);
		enum weir_err err = weir_partition_count_check(sr->path, sr->topics[t], count, dg);
		if (err != WEIR_OK)
			return err;
		total += count;
	}
	sr->env.pool.idle_bytes_max = spec->idle_bytes_max;
	while (sr->env.block_bytes > 16384 && (uint64_t)sr->env.block_bytes * total > READ_AHEAD_BYTES)
		sr->env.block_bytes /= 2;
	/* What is not committed may be cut by its writer's next start. */
	uint64_t map_bytes = spec->unbounded || spec->ignore_commit_file ? 0 : spec->map_bytes / total;
	if (map_bytes >= MAPPED_BYTES_MIN)
		sr->env.map_bytes = map_bytes < MAPPED_BYTES_MAX ? (size_t)map_bytes : MAPPED_BYTES_MAX;
	sr->parts = weir_xcalloc(total, sizeof *sr->parts);
	for (uint32_t t = 0; t < sr->topic_count; t++) {
		uint32_t count = weir_folder_partitions(sr->path, sr->topics[t], &sr->commit);
		for (uint32_t n = 0; n < count && sr->part_count < total; n++) {
			struct part *pt = &sr->parts[sr->part_count];
			struct weir_segs ss;
			enum weir_err err = weir_segs_list(&ss, sr->path, sr->topics[t], n, &sr->commit,
							   sr->ignore_commit_file, dg);
			if (err == WEIR_OK && ss.count == 0)
				err = weir_partition_there_check(sr->path, sr->topics[t], n, dg);
			if (err != WEIR_OK)
				return err;
			pt->topic = t;
			pt->partition = n;
			pt->watch = -1;
			pt->dirty = true; /* what came before the watch did */
			sr->part_count++;
			err = weir_reader_open(&pt->rd, &sr->env, sr->path, sr->topics[t], n, &ss, dg);
			if (err == WEIR_OK)
				err = part_start(pt, spec, dg);
			if (err != WEIR_OK)
				return err;
		}
	}
	return WEIR_OK;
}

enum weir_err weir_recorded_source_open(struct weir_stream_log **out, const struct weir_recorded_source_spec *spec,
					struct weir_diag **dg)
{
	struct source *sr = weir_xcalloc(1, sizeof *sr);
	sr->sl.ops = &source_ops;
	sr->inotify = sr->folder_watch = -1;
	sr->path = weir_xstrdup(spec->path);
	sr->ignore_commit_file = spec->ignore_commit_file;
	weir_reader_env_init(&sr->env);
	sr->env.unbounded = spec->unbounded;
	sr->env.damaged_skip = spec->damaged_skip;
	sr->env.open_transaction_abort = spec->open_transaction_abort;
	sr->env.read_uncommitted = spec->read_uncommitted;
	if (spec->batch_bytes_max != 0)
		sr->env.batch_bytes_max = spec->batch_bytes_max;
	sr->env.batch_memory_max = spec->batch_memory_max;
	enum weir_err err = weir_commit_load(sr->path, &sr->commit, dg);
	if (err == WEIR_OK && spec->topic_pattern != NULL) {
		err = match_topics(sr, spec->topic_pattern, dg);
	} else if (err == WEIR_OK) {
		sr->topics = weir_xcalloc(spec->topic_count + 1, sizeof *sr->topics);
		for (; sr->topic_count < spec->topic_count; sr->topic_count++)
			sr->topics[sr->topic_count] = weir_xstrdup(spec->topics[sr->topic_count]);
	}
	if (err == WEIR_OK)
		err = source_open_parts(sr, spec, dg);
	if (err != WEIR_OK) {
		source_close(&sr->sl);
		return err;
	}
	if (spec->unbounded)
		watch_start(sr);
	*out = &sr->sl;
	return WEIR_OK;
}
