/* log.c: results and changelogs of one application in recorded topics, with one atomic commit (checkpoint/changelog.h).
 * @thread snap; init at start-up. Nothing here is shared with readers but the files.
 *
 * A commit: cut every batch; rewrite changelog partitions that have grown stale; sync the data and folders with new
 * names; replace the home's commit file (the moment of truth); then those of other folders; then remove rewritten
 * files. Stopped at any point, the next open finds the old or the new commit file in the home and brings everything to
 * it: files are truncated to their committed lengths, files of length 0 and files that are not listed (rolled into, or
 * rewritten, since) are removed, other folders' sections are written again. Which files are ours: those of a partition
 * from the lowest listed base offset on. */
#include "io/recorded/log.h"

#include "io/recorded/reader.h"
#include "io/recorded/recorded.h"
#include "io/recorded/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct log_topic {
	char *name;
	char *path; /* NULL: the home */
	enum weir_topic_kind kind;
	uint32_t part_count;
	struct weir_appender *parts;
	struct weir_live *live; /* changelogs only */
};
struct log {
	struct weir_log lg; /* first */
	char *home;         /* absolute */
	char *app;
	int lock_fd;
	struct weir_commit_section done; /* the home's section as it is on disk */
	bool unlisted;                   /* with topics that are not there yet: make stores them */
	struct log_topic *topics;
	uint32_t topic_count;
	struct weir_codec_ctx *cc;
	uint64_t compact_slack;
	uint64_t segment_bytes; /* 0: by kind */
	enum weir_err failed;   /* sticks */
	bool sync_fs;           /* one sync of a file system may stand for many of files */
	bool dirty;             /* something was appended since the last commit */
};

static const char *folder_of(const struct log *lg, const char *path)
{
	return path == NULL ? lg->home : path;
}

static bool same_path(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* ---- files ---- */

int weir_seg_remove(const char *dir, const struct weir_seg *s)
{
	static const char *const suffixes[] = {"log", "index"};
	int error = 0;
	for (size_t i = 0; i < WEIR_COUNT_OF(suffixes) && error == 0; i++) {
		char name[WEIR_SEG_NAME_BYTES];
		char *path = weir_path_join(dir, weir_seg_name(name, s->base, s->generation, suffixes[i]));
		error = weir_sys_unlink(path);
		free(path);
	}
	return error;
}

enum weir_err weir_app_lock(const char *folder, const char *app, int *fd, struct weir_diag **dg)
{
	char name[256];
	snprintf(name, sizeof name, "weir.%s.lock", app);
	char *path = weir_path_join(folder, name);
	enum weir_err err = WEIR_OK;
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (*fd < 0) {
		err = weir_sys_failed(dg, "open the lock", path, errno);
	} else if (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
		err = errno == EWOULDBLOCK ? weir_diag_set(dg, WEIR_E_UNAVAILABLE,
							   "application %s is running: %s is locked", app, path)
					   : weir_sys_failed(dg, "lock", path, errno);
		close(*fd);
		*fd = -1;
		if (dg != NULL && err == WEIR_E_UNAVAILABLE)
			weir_diag_mark_retriable(*dg);
	}
	free(path);
	return err;
}

/* Brings one listed file to its committed length. */
static enum weir_err file_recover(const char *path, uint64_t length, struct weir_diag **dg)
{
	struct stat st;
	uint64_t size = 0;
	if (stat(path, &st) == 0)
		size = (uint64_t)st.st_size;
	else if (errno != ENOENT)
		return weir_sys_failed(dg, "read", path, errno);
	if (size < length)
		return weir_diag_set(dg, WEIR_E_CORRUPT, "%s has %llu bytes, but %llu of it are committed", path,
				     (unsigned long long)size, (unsigned long long)length);
	if (size == length)
		return WEIR_OK;
	int fd, error = weir_sys_create(path, &fd);
	if (error != 0)
		return weir_sys_failed(dg, "open", path, error);
	error = weir_sys_truncate(fd, path, length);
	if (error == 0)
		error = weir_sys_sync(fd, path);
	close(fd);
	return error == 0 ? WEIR_OK : weir_sys_failed(dg, "truncate", path, error);
}

/* The listed segments of a partition, in order; limit and next as committed. */
static void listed_segs(const struct weir_commit_section *s, const char *path, const char *topic, uint32_t partition,
			struct weir_segs *ss)
{
	char prefix[256];
	int bytes = snprintf(prefix, sizeof prefix, "%s-%u/", topic, partition);
	memset(ss, 0, sizeof *ss);
	for (uint32_t i = 0; i < s->file_count; i++) {
		const struct weir_commit_file *f = &s->files[i];
		struct weir_seg g;
		if (!same_path(f->path, path) || strncmp(f->name, prefix, (size_t)bytes) != 0 ||
		    !weir_seg_parse(f->name + bytes, &g))
			continue;
		g.listed = true;
		g.limit = f->length;
		g.next = f->next;
		/* They are written in order, so this keeps it. */
		weir_segs_add(ss, &g);
	}
}

static enum weir_err partition_recover(struct log *lg, const struct weir_commit_topic *t, uint32_t partition,
				       struct weir_diag **dg)
{
	const char *folder = folder_of(lg, t->path);
	struct weir_segs listed, found;
	listed_segs(&lg->done, t->path, t->name, partition, &listed);
	if (listed.count == 0)
		return WEIR_OK;
	enum weir_err err = weir_segs_scan(&found, folder, t->name, partition, dg);
	char *dir = weir_partition_path(folder, t->name, partition);
	for (uint32_t i = 0; err == WEIR_OK && i < found.count; i++) {
		const struct weir_seg *f = &found.seg[i];
		bool keep = f->base < listed.seg[0].base;
		for (uint32_t j = 0; j < listed.count; j++)
			keep |= listed.seg[j].base == f->base && listed.seg[j].generation == f->generation &&
				listed.seg[j].limit != 0;
		if (!keep) {
			int error = weir_seg_remove(dir, f);
			if (error != 0)
				err = weir_sys_failed(dg, "remove an uncommitted file in", dir, error);
		}
	}
	for (uint32_t j = 0; err == WEIR_OK && j < listed.count; j++) {
		char name[WEIR_SEG_NAME_BYTES];
		char *path =
			weir_path_join(dir, weir_seg_name(name, listed.seg[j].base, listed.seg[j].generation, "log"));
		err = file_recover(path, listed.seg[j].limit, dg);
		free(path);
	}
	free(dir);
	weir_segs_fini(&listed);
	weir_segs_fini(&found);
	return err;
}

static enum weir_err recover(struct log *lg, struct weir_diag **dg)
{
	for (uint32_t i = 0; i < lg->done.topic_count; i++)
		for (uint32_t p = 0; p < lg->done.topics[i].partitions; p++) {
			enum weir_err err = partition_recover(lg, &lg->done.topics[i], p, dg);
			if (err != WEIR_OK) {
				if (dg != NULL)
					weir_diag_add_hint(*dg,
							   "to start the application over: weir reset %s %s --execute",
							   lg->app, lg->home);
				return err;
			}
		}
	return WEIR_OK;
}

/* ---- sections ---- */

/* The part of the home's section that concerns one folder, as that folder's readers see it. path NULL: the home, whole.
 */
static void section_for(const struct log *lg, const char *path, struct weir_commit_section *s)
{
	const struct weir_commit_section *from = &lg->done;
	memset(s, 0, sizeof *s);
	s->app = weir_xstrdup(lg->app);
	s->home = path == NULL ? NULL : weir_xstrdup(lg->home);
	s->epoch = from->epoch;
	for (uint32_t i = 0; i < from->topic_count; i++) {
		const struct weir_commit_topic *t = &from->topics[i];
		if (path == NULL || same_path(t->path, path))
			weir_commit_add_topic(s, path == NULL ? t->path : NULL, t->name, t->kind, t->partitions);
	}
	for (uint32_t i = 0; i < from->file_count; i++) {
		const struct weir_commit_file *f = &from->files[i];
		if (path == NULL || same_path(f->path, path))
			weir_commit_add_file(s, path == NULL ? f->path : NULL, f->name, f->length, f->next);
	}
}

/* Writes the sections of all folders but the home. */
static enum weir_err store_others(struct log *lg, struct weir_diag **dg)
{
	for (uint32_t i = 0; i < lg->done.topic_count; i++) {
		const char *path = lg->done.topics[i].path;
		bool first = path != NULL;
		for (uint32_t j = 0; j < i && first; j++)
			first = !same_path(lg->done.topics[j].path, path);
		if (!first)
			continue;
		struct weir_commit_section s;
		section_for(lg, path, &s);
		enum weir_err err = weir_commit_store(path, &s, false, dg);
		weir_commit_section_fini(&s);
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

/* ---- topics ---- */

static enum weir_err failed_before(const struct log *lg, struct weir_diag **dg)
{
	return weir_diag_set(dg, lg->failed,
			     "the log in %s failed before and takes nothing more until it is opened again", lg->home);
}

static struct log *log_of(struct weir_log *lg)
{
	return (struct log *)lg;
}

static const struct weir_commit_topic *done_topic(const struct log *lg, const char *path, const char *name)
{
	for (uint32_t i = 0; i < lg->done.topic_count; i++)
		if (same_path(lg->done.topics[i].path, path) && strcmp(lg->done.topics[i].name, name) == 0)
			return &lg->done.topics[i];
	return NULL;
}

static enum weir_err topic_existing(const struct log *lg, const struct weir_topic_spec *spec, const char *folder,
				    const struct weir_commit_topic *t, uint32_t *partitions, struct weir_diag **dg)
{
	if (t->kind != spec->kind && (t->kind == WEIR_TOPIC_CHANGELOG || spec->kind == WEIR_TOPIC_CHANGELOG))
		return weir_diag_set(dg, WEIR_E_CONF,
				     "topic %s in %s was written by application %s for another purpose", spec->name,
				     folder, lg->app);
	if (t->partitions != spec->partitions && spec->partitions_fixed)
		return weir_diag_set(dg, WEIR_E_CONF, "topic %s in %s has %u partitions, wanted are %u", spec->name,
				     folder, t->partitions, spec->partitions);
	*partitions = t->partitions;
	return WEIR_OK;
}

/* Where a partition with files of nobody ends. */
static enum weir_err foreign_end(const char *folder, const char *topic, uint32_t partition, int64_t *end,
				 struct weir_diag **dg)
{
	struct weir_segs ss;
	struct weir_reader_env env;
	struct weir_reader rd;
	*end = 0;
	enum weir_err err = weir_segs_scan(&ss, folder, topic, partition, dg);
	if (err != WEIR_OK || ss.count == 0)
		return err;
	weir_reader_env_init(&env);
	err = weir_reader_open(&rd, &env, folder, topic, partition, &ss, dg);
	if (err == WEIR_OK)
		*end = weir_reader_end(&rd);
	weir_reader_close(&rd);
	weir_reader_env_fini(&env);
	return err;
}

/* The section lists bytes of a topic. */
static bool has_bytes(const struct weir_commit_section *s, const char *topic)
{
	size_t bytes = strlen(topic);
	for (uint32_t i = 0; i < s->file_count; i++)
		if (s->files[i].length != 0 && strncmp(s->files[i].name, topic, bytes) == 0 &&
		    s->files[i].name[bytes] == '-' && strchr(s->files[i].name + bytes + 1, '-') == NULL)
			return true;
	return false;
}

/* Whether a topic that our home does not list is free in path (NULL: the home): another application's is not; and where
 * another folder lists results as ours that the home knows nothing of, it is the home that has been lost. */
static enum weir_err topic_free(const struct log *lg, const char *path, const char *topic, struct weir_diag **dg)
{
	struct weir_commit c;
	const char *folder = folder_of(lg, path);
	enum weir_err err = weir_commit_load(folder, &c, dg);
	for (uint32_t i = 0; err == WEIR_OK && i < c.section_count; i++) {
		const struct weir_commit_section *s = &c.sections[i];
		bool ours = strcmp(s->app, lg->app) == 0;
		if (ours && path != NULL && s->home != NULL && strcmp(s->home, lg->home) != 0)
			err = weir_diag_set(dg, WEIR_E_CONF, "the state of application %s lives in %s, not in %s",
					    lg->app, s->home, lg->home);
		for (uint32_t j = 0; j < s->topic_count && err == WEIR_OK; j++) {
			const char *name = s->topics[j].name;
			if (!ours && s->topics[j].path == NULL && strcmp(name, topic) == 0)
				err = weir_diag_set(dg, WEIR_E_CONF, "topic %s in %s belongs to application %s", topic,
						    folder, s->app);
			else if (ours && path != NULL && done_topic(lg, path, name) == NULL && has_bytes(s, name))
				err = weir_diag_set(
					dg, WEIR_E_STATE,
					"topic %s in %s holds results of application %s, whose state is not "
					"in %s any more: remove the folders %s/%s-* to start over",
					name, folder, lg->app, lg->home, folder, name);
		}
	}
	weir_commit_fini(&c);
	return err;
}

/* Records that nobody lists, and a changelog of our name that nobody lists either: they are ours, and the commit file
 * that said so has been lost. Results must not come behind what is there. */
static enum weir_err check_lost(const struct log *lg, const struct weir_topic_spec *spec, const char *folder,
				struct weir_diag **dg)
{
	char **names, *stray = NULL;
	uint32_t count;
	struct weir_commit c;
	enum weir_err err = weir_commit_load(lg->home, &c, dg);
	if (err == WEIR_OK)
		err = weir_folder_topics(lg->home, NULL, true, &names, &count, dg);
	if (err == WEIR_OK) {
		for (uint32_t i = 0; i < count && stray == NULL; i++)
			if (weir_changelog_is_of(names[i], lg->app) && !weir_commit_lists(&c, names[i]))
				stray = names[i];
		if (stray != NULL)
			err = weir_diag_set(
				dg, WEIR_E_STATE,
				"%s/%s has been lost or replaced: it lists neither the records of topic %s in "
				"%s nor the changelog %s of application %s. To start over, remove %s/%s-* "
				"and run: weir reset %s %s --execute",
				lg->home, WEIR_COMMIT_NAME, spec->name, folder, stray, lg->app, folder, spec->name,
				lg->app, lg->home);
		weir_names_free(names, count);
	}
	weir_commit_fini(&c);
	return err;
}

/* Lists a topic that no section knows, with length 0; stored by make, before anything of it is made. */
static enum weir_err topic_list_new(struct log *lg, const struct weir_topic_spec *spec, const char *path,
				    uint32_t *partitions, struct weir_diag **dg)
{
	const char *folder = folder_of(lg, path);
	enum weir_err err = topic_free(lg, path, spec->name, dg);
	if (err != WEIR_OK)
		return err;
	uint32_t there = weir_folder_partitions(folder, spec->name, NULL);
	err = weir_partition_count_check(folder, spec->name, there, dg);
	if (err != WEIR_OK)
		return err;
	if (there == 0 && spec->must_exist)
		return weir_diag_set(dg, WEIR_E_CONF, "%s has no topic %s, and topics.create is false", folder,
				     spec->name);
	if (there != 0 && spec->kind == WEIR_TOPIC_CHANGELOG)
		return weir_diag_set(dg, WEIR_E_STATE,
				     "%s has a topic %s, but its commit file does not list it for application %s; to "
				     "remove it: weir reset %s %s --execute",
				     folder, spec->name, lg->app, lg->app, lg->home);
	if (there != 0 && there != spec->partitions && spec->partitions_fixed)
		return weir_diag_set(dg, WEIR_E_CONF, "topic %s in %s has %u partitions, wanted are %u", spec->name,
				     folder, there, spec->partitions);
	*partitions = there != 0 ? there : spec->partitions;
	struct weir_commit_section *s = &lg->done;
	for (uint32_t p = 0; p < *partitions; p++) {
		char name[WEIR_SEG_NAME_BYTES], file[300];
		int64_t end;
		err = foreign_end(folder, spec->name, p, &end, dg);
		if (err == WEIR_OK && end > 0 && lg->done.epoch == 0)
			err = check_lost(lg, spec, folder, dg);
		if (err != WEIR_OK)
			return err;
		snprintf(file, sizeof file, "%s-%u/%s", spec->name, p, weir_seg_name(name, end, 0, "log"));
		weir_commit_add_file(s, path, file, 0, end);
	}
	weir_commit_add_topic(s, path, spec->name, spec->kind, *partitions);
	lg->unlisted = true;
	return WEIR_OK;
}

static enum weir_err topic_folders(struct log *lg, const struct log_topic *t, struct weir_diag **dg)
{
	bool any = false;
	for (uint32_t p = 0; p < t->part_count; p++) {
		bool made;
		int error = weir_sys_mkdir(t->parts[p].dir, &made);
		if (error != 0)
			return weir_sys_failed(dg, "make the folder", t->parts[p].dir, error);
		any |= made;
	}
	int error = any ? weir_sys_sync_folder(folder_of(lg, t->path)) : 0;
	return error == 0 ? WEIR_OK : weir_sys_failed(dg, "sync the folder", folder_of(lg, t->path), error);
}

static enum weir_err topic_open(struct log *lg, const struct weir_topic_spec *spec, char *path, enum weir_codec codec,
				uint32_t *partitions, struct weir_diag **dg)
{
	const struct weir_commit_topic *done = done_topic(lg, path, spec->name);
	enum weir_err err = done != NULL ? topic_existing(lg, spec, folder_of(lg, path), done, partitions, dg)
					 : topic_list_new(lg, spec, path, partitions, dg);
	if (err != WEIR_OK)
		return err;
	bool changelog = spec->kind == WEIR_TOPIC_CHANGELOG;
	lg->topics = weir_xrealloc(lg->topics, (lg->topic_count + 1) * sizeof *lg->topics);
	struct log_topic *t = &lg->topics[lg->topic_count++];
	*t = (struct log_topic){.name = weir_xstrdup(spec->name),
				.path = path == NULL ? NULL : weir_xstrdup(path),
				.kind = spec->kind,
				.part_count = *partitions,
				.parts = weir_xcalloc(*partitions, sizeof *t->parts),
				.live = changelog ? weir_xcalloc(*partitions, sizeof *t->live) : NULL};
	for (uint32_t p = 0; p < *partitions; p++) {
		struct weir_segs ss;
		listed_segs(&lg->done, path, spec->name, p, &ss);
		int64_t next = ss.count == 0 ? 0 : ss.seg[ss.count - 1].next;
		uint32_t generation = 0;
		uint64_t bytes = 0;
		for (uint32_t i = 0; i < ss.count; i++) {
			bytes += ss.seg[i].limit;
			generation = ss.seg[i].generation > generation ? ss.seg[i].generation : generation;
		}
		struct weir_appender *ap = &t->parts[p];
		weir_appender_init(ap, folder_of(lg, path), spec->name, p, &ss, next, codec, lg->cc);
		ap->generation = generation;
		ap->segment_bytes = lg->segment_bytes != 0 ? lg->segment_bytes
				    : changelog            ? WEIR_SEGMENT_BYTES_CHANGELOG
							   : WEIR_SEGMENT_BYTES;
		if (changelog)
			t->live[p].known = bytes == 0;
	}
	return WEIR_OK;
}

static enum weir_err log_topic(struct weir_log *lg_, const struct weir_topic_spec *spec, uint32_t *topic,
			       uint32_t *partitions, struct weir_diag **dg)
{
	struct log *lg = log_of(lg_);
	enum weir_codec codec = WEIR_CODEC_NONE;
	char *path = NULL;
	if (lg->failed != WEIR_OK)
		return failed_before(lg, dg);
	if (!weir_topic_name_ok(spec->name))
		return weir_diag_set(dg, WEIR_E_CONF,
				     "'%s' is no topic name: letters, digits, '.', '_' and '-', at most 200",
				     spec->name);
	if (spec->partitions == 0)
		return weir_diag_set(dg, WEIR_E_CONF, "topic %s: a topic has at least one partition", spec->name);
	enum weir_err err = spec->compression == NULL ? WEIR_OK : weir_codec_parse(&codec, spec->compression, dg);
	if (err == WEIR_OK && spec->path != NULL) {
		err = weir_sys_make_folder(spec->path, dg);
		if (err == WEIR_OK)
			path = weir_path_real(spec->path);
		if (path != NULL && strcmp(path, lg->home) == 0) {
			free(path);
			path = NULL;
		}
	}
	for (uint32_t i = 0; err == WEIR_OK && i < lg->topic_count; i++) /* two sinks into one topic */
		if (same_path(lg->topics[i].path, path) && strcmp(lg->topics[i].name, spec->name) == 0) {
			*topic = i;
			*partitions = lg->topics[i].part_count;
			free(path);
			return WEIR_OK;
		}
	if (err == WEIR_OK) {
		err = topic_open(lg, spec, path, codec, partitions, dg);
		if (err == WEIR_OK)
			*topic = lg->topic_count - 1;
		else if (err == WEIR_E_IO)
			lg->failed = err; /* what is listed is not known any more */
	}
	free(path);
	return err;
}

static enum weir_err log_make(struct weir_log *lg_, struct weir_diag **dg)
{
	struct log *lg = log_of(lg_);
	enum weir_err err = lg->failed != WEIR_OK ? failed_before(lg, dg) : WEIR_OK;
	if (err == WEIR_OK && lg->unlisted) {
		err = weir_commit_store(lg->home, &lg->done, false, dg);
		if (err == WEIR_OK)
			err = store_others(lg, dg);
		lg->unlisted = err != WEIR_OK;
	}
	for (uint32_t i = 0; i < lg->topic_count && err == WEIR_OK; i++)
		err = topic_folders(lg, &lg->topics[i], dg);
	if (err == WEIR_E_IO)
		lg->failed = err; /* what the commit file lists is not known any more */
	return err;
}

/* ---- writing ---- */

static enum weir_err log_append(struct weir_log *lg_, uint32_t topic, uint32_t partition, const struct weir_out *r,
				struct weir_diag **dg)
{
	struct log *lg = log_of(lg_);
	if (WEIR_UNLIKELY(lg->failed != WEIR_OK))
		return failed_before(lg, dg);
	WEIR_ASSERT(topic < lg->topic_count && partition < lg->topics[topic].part_count);
	struct log_topic *t = &lg->topics[topic];
	enum weir_err err = weir_appender_put(&t->parts[partition], r, dg);
	if (WEIR_UNLIKELY(err != WEIR_OK)) {
		lg->failed = err;
		return err;
	}
	lg->dirty = true;
	if (t->live != NULL && t->live[partition].known)
		weir_live_put(&t->live[partition], r->key.data, r->key.bytes, r->value.data == NULL, r->value.bytes);
	return WEIR_OK;
}

static enum weir_err cut_topics(struct log *lg, bool changelogs, struct weir_diag **dg)
{
	for (uint32_t i = 0; i < lg->topic_count; i++) {
		struct log_topic *t = &lg->topics[i];
		for (uint32_t p = 0; p < t->part_count && (changelogs || t->kind != WEIR_TOPIC_CHANGELOG); p++) {
			enum weir_err err = weir_appender_cut(&t->parts[p], dg);
			if (err != WEIR_OK)
				return lg->failed = err;
		}
	}
	return WEIR_OK;
}

static enum weir_err log_cut(struct weir_log *lg_, struct weir_diag **dg)
{
	struct log *lg = log_of(lg_);
	return lg->failed != WEIR_OK ? failed_before(lg, dg) : cut_topics(lg, false, dg);
}

/* ---- commit ---- */

/* Files to remove once they are not listed any more. */
struct stale {
	char *dir;
	struct weir_segs ss;
};
struct stales {
	struct stale *item;
	uint32_t count;
};

static void stales_fini(struct stales *st)
{
	for (uint32_t i = 0; i < st->count; i++) {
		free(st->item[i].dir);
		weir_segs_fini(&st->item[i].ss);
	}
	free(st->item);
}

static enum weir_err compact_topics(struct log *lg, struct stales *st, struct weir_diag **dg)
{
	for (uint32_t i = 0; i < lg->topic_count; i++) {
		struct log_topic *t = &lg->topics[i];
		for (uint32_t p = 0; t->live != NULL && p < t->part_count; p++) {
			struct weir_appender *ap = &t->parts[p];
			struct weir_live *lv = &t->live[p];
			const char *folder = folder_of(lg, t->path);
			enum weir_err err = WEIR_OK;
			if (!lv->known && weir_appender_bytes(ap) > lg->compact_slack)
				err = weir_live_scan(ap, folder, t->name, p, lv, dg);
			if (err != WEIR_OK)
				return err;
			if (!lv->known || lv->bytes_all - lv->bytes_live <= lv->bytes_live + lg->compact_slack)
				continue;
			struct weir_segs old;
			err = weir_compact_partition(ap, folder, t->name, p, lv, &old, dg);
			if (err != WEIR_OK)
				return err;
			st->item = weir_xrealloc(st->item, (st->count + 1) * sizeof *st->item);
			st->item[st->count++] = (struct stale){weir_xstrdup(ap->dir), old};
		}
	}
	return WEIR_OK;
}

/* Syncs one by one each wait for a journal commit and a flush of the device, 4 ms and more on the disks of clouds; from
 * SYNC_FS_FILES files on, one sync of their file system costs less than two such (measured: 32 files 150 ms, at once 10
 * to 50 ms). It writes other programs' data too, but so does a journal commit, mostly. */
enum { SYNC_FS_FILES = 4, SYNC_FS_MAX = 8 };

static enum weir_err sync_file_systems(struct log *lg, struct weir_diag **dg)
{
	dev_t done[SYNC_FS_MAX];
	uint32_t done_count = 0;
	for (uint32_t i = 0; i < lg->topic_count; i++)
		for (uint32_t p = 0; p < lg->topics[i].part_count; p++) {
			struct weir_appender *ap = &lg->topics[i].parts[p];
			struct stat st;
			bool seen = false;
			if (!ap->data_dirty)
				continue;
			if (fstat(ap->fd, &st) != 0)
				return weir_sys_failed(dg, "look at a file in", ap->dir, errno);
			for (uint32_t k = 0; k < done_count; k++)
				seen |= done[k] == st.st_dev;
			if (!seen && done_count == SYNC_FS_MAX)
				return WEIR_OK; /* the rest is synced one by one */
			if (!seen) {
				int error = weir_sys_sync_fs(ap->fd, ap->dir);
				if (error != 0)
					return weir_sys_failed(dg, "sync the file system of", ap->dir, error);
				done[done_count++] = st.st_dev;
			}
			weir_appender_synced(ap);
		}
	return WEIR_OK;
}

static enum weir_err sync_topics(struct log *lg, struct weir_diag **dg)
{
	uint32_t dirty = 0;
	for (uint32_t i = 0; i < lg->topic_count; i++)
		for (uint32_t p = 0; p < lg->topics[i].part_count; p++)
			dirty += lg->topics[i].parts[p].data_dirty;
	enum weir_err err = WEIR_OK;
	if (dirty >= SYNC_FS_FILES && lg->sync_fs)
		err = sync_file_systems(lg, dg);
	for (uint32_t i = 0; i < lg->topic_count; i++)
		for (uint32_t p = 0; p < lg->topics[i].part_count && err == WEIR_OK; p++)
			weir_appender_sync_start(&lg->topics[i].parts[p]);
	for (uint32_t i = 0; i < lg->topic_count; i++)
		for (uint32_t p = 0; p < lg->topics[i].part_count && err == WEIR_OK; p++)
			err = weir_appender_sync(&lg->topics[i].parts[p], dg);
	return err;
}

static bool is_open(const struct log *lg, const char *path, const char *topic, size_t topic_bytes)
{
	for (uint32_t i = 0; i < lg->topic_count; i++)
		if (same_path(lg->topics[i].path, path) && strlen(lg->topics[i].name) == topic_bytes &&
		    memcmp(lg->topics[i].name, topic, topic_bytes) == 0)
			return true;
	return false;
}

/* The section as it will be: open topics as they are now, topics of earlier runs as they were. */
static void section_next(const struct log *lg, uint64_t epoch, struct weir_commit_section *s)
{
	memset(s, 0, sizeof *s);
	s->app = weir_xstrdup(lg->app);
	s->epoch = epoch;
	for (uint32_t i = 0; i < lg->done.topic_count; i++) {
		const struct weir_commit_topic *t = &lg->done.topics[i];
		weir_commit_add_topic(s, t->path, t->name, t->kind, t->partitions);
	}
	for (uint32_t i = 0; i < lg->done.file_count; i++) {
		const struct weir_commit_file *f = &lg->done.files[i];
		const char *slash = strchr(f->name, '/');
		char dir[256];
		size_t topic_bytes = 0;
		uint32_t partition;
		snprintf(dir, sizeof dir, "%.*s", (int)(slash - f->name), f->name);
		if (weir_partition_parse(dir, &topic_bytes, &partition) && is_open(lg, f->path, f->name, topic_bytes))
			continue;
		weir_commit_add_file(s, f->path, f->name, f->length, f->next);
	}
	for (uint32_t i = 0; i < lg->topic_count; i++)
		for (uint32_t p = 0; p < lg->topics[i].part_count; p++) {
			const struct weir_segs *ss = &lg->topics[i].parts[p].ss;
			for (uint32_t k = 0; k < ss->count; k++) {
				char name[WEIR_SEG_NAME_BYTES], file[300];
				snprintf(file, sizeof file, "%s-%u/%s", lg->topics[i].name, p,
					 weir_seg_name(name, ss->seg[k].base, ss->seg[k].generation, "log"));
				weir_commit_add_file(s, lg->topics[i].path, file, ss->seg[k].limit, ss->seg[k].next);
			}
		}
}

static enum weir_err commit_all(struct log *lg, uint64_t epoch, struct stales *st, struct weir_diag **dg)
{
	enum weir_err err = cut_topics(lg, true, dg);
	if (err == WEIR_OK)
		err = compact_topics(lg, st, dg);
	if (err == WEIR_OK)
		err = sync_topics(lg, dg);
	if (err != WEIR_OK)
		return err;
	struct weir_commit_section next;
	section_next(lg, epoch, &next);
	err = weir_commit_store(lg->home, &next, false, dg);
	if (err != WEIR_OK) {
		weir_commit_section_fini(&next);
		return err;
	}
	weir_commit_section_fini(&lg->done);
	lg->done = next;
	lg->dirty = false;
	err = store_others(lg, dg);
	for (uint32_t i = 0; err == WEIR_OK && i < st->count; i++)
		for (uint32_t k = 0; k < st->item[i].ss.count; k++)
			(void)weir_seg_remove(st->item[i].dir, &st->item[i].ss.seg[k]); /* else the next open does */
	return err;
}

static enum weir_err log_commit(struct weir_log *lg_, uint64_t epoch, struct weir_diag **dg)
{
	struct log *lg = log_of(lg_);
	struct stales st = {0};
	if (lg->failed != WEIR_OK)
		return failed_before(lg, dg);
	enum weir_err err = commit_all(lg, epoch, &st, dg);
	if (err != WEIR_OK)
		lg->failed = err;
	stales_fini(&st);
	return err;
}

/* ---- reading back ---- */

static enum weir_err log_read(struct weir_log *lg_, uint32_t topic, uint32_t partition,
			      enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
			      void *ctx, struct weir_diag **dg)
{
	struct log *lg = log_of(lg_);
	WEIR_ASSERT(topic < lg->topic_count && partition < lg->topics[topic].part_count);
	struct log_topic *t = &lg->topics[topic];
	struct weir_live *lv = t->live != NULL && !lg->dirty ? &t->live[partition] : NULL;
	struct weir_commit_section section;
	struct weir_segs ss;
	struct weir_reader_env env;
	struct weir_reader rd;
	int64_t ts;
	enum weir_poll poll = WEIR_POLL_BOUND;
	section_for(lg, t->path, &section);
	for (uint32_t i = 0; i < section.file_count && t->path == NULL; i++) /* other folders' files are not meant */
		if (section.files[i].path != NULL)
			section.files[i].name[0] = '\0';
	const struct weir_commit c = {&section, 1};
	enum weir_err err = weir_segs_list(&ss, folder_of(lg, t->path), t->name, partition, &c, false, dg);
	if (err == WEIR_OK) {
		weir_reader_env_init(&env);
		env.batch_bytes_max = SIZE_MAX / 4;
		env.damaged_hint = NULL;
		err = weir_reader_open(&rd, &env, folder_of(lg, t->path), t->name, partition, &ss, dg);
		if (lv != NULL)
			weir_live_reset(lv);
		while (err == WEIR_OK && (poll = weir_reader_peek(&rd, &ts, dg)) == WEIR_POLL_UNIT) {
			struct weir_unit *u;
			err = weir_reader_take(&rd, &u, dg);
			if (err != WEIR_OK)
				break;
			for (uint32_t i = 0; err == WEIR_OK && i < u->count; i++) {
				const struct weir_record *r = &u->records[i];
				if (lv != NULL)
					weir_live_put(lv, r->key, r->key_bytes, r->value == NULL, r->value_bytes);
				err = each(ctx, r, dg);
			}
			weir_reader_release(&env, u);
		}
		if (err == WEIR_OK && poll == WEIR_POLL_ERROR)
			err = dg != NULL && *dg != NULL ? weir_diag_code(*dg) : WEIR_E_CORRUPT;
		if (err == WEIR_E_CORRUPT && dg != NULL)
			weir_diag_add_hint(*dg, "to start the application over: weir reset %s %s --execute", lg->app,
					   lg->home);
		if (lv != NULL)
			lv->known = err == WEIR_OK;
		weir_reader_close(&rd);
		weir_reader_env_fini(&env);
	}
	weir_commit_section_fini(&section);
	return err;
}

static uint64_t log_epoch(const struct weir_log *lg)
{
	return ((const struct log *)lg)->done.epoch;
}

/* ---- opening and closing ---- */

static void log_free(struct log *lg)
{
	for (uint32_t i = 0; i < lg->topic_count; i++) {
		struct log_topic *t = &lg->topics[i];
		for (uint32_t p = 0; p < t->part_count; p++) {
			weir_appender_fini(&t->parts[p]);
			if (t->live != NULL)
				weir_live_fini(&t->live[p]);
		}
		free(t->parts);
		free(t->live);
		free(t->name);
		free(t->path);
	}
	free(lg->topics);
	weir_commit_section_fini(&lg->done);
	weir_codec_destroy(lg->cc);
	if (lg->lock_fd >= 0)
		close(lg->lock_fd);
	free(lg->home);
	free(lg->app);
	free(lg);
}

static void log_close(struct weir_log *lg_)
{
	struct log *lg = log_of(lg_);
	/* Tidy at once; after an error the commit file may say more than lg->done, so that is left to the next open. */
	if (lg->failed == WEIR_OK && lg->dirty)
		(void)recover(lg, NULL);
	log_free(lg);
}

static const struct weir_log_ops log_ops = {
	.topic = log_topic,
	.make = log_make,
	.append = log_append,
	.cut = log_cut,
	.commit = log_commit,
	.read = log_read,
	.epoch = log_epoch,
	.close = log_close,
};

void weir_recorded_log_set_compact_slack(struct weir_log *lg, uint64_t bytes)
{
	log_of(lg)->compact_slack = bytes;
}

void weir_recorded_log_set_segment_bytes(struct weir_log *lg, uint64_t bytes)
{
	log_of(lg)->segment_bytes = bytes;
}

static enum weir_err log_load(struct log *lg, struct weir_diag **dg)
{
	struct weir_commit c;
	enum weir_err err = weir_commit_load(lg->home, &c, dg);
	struct weir_commit_section *s = err == WEIR_OK ? weir_commit_find(&c, lg->app) : NULL;
	if (s != NULL && s->home != NULL) {
		err = weir_diag_set(dg, WEIR_E_CONF, "the state of application %s lives in %s, not in %s", lg->app,
				    s->home, lg->home);
	} else if (s != NULL) {
		lg->done = *s;
		memset(s, 0, sizeof *s);
	} else if (err == WEIR_OK) {
		lg->done.app = weir_xstrdup(lg->app);
	}
	weir_commit_fini(&c);
	return err;
}

enum weir_err weir_recorded_log_open(struct weir_log **out, const char *home, const char *app, struct weir_diag **dg)
{
	if (!weir_topic_name_ok(app))
		return weir_diag_set(dg, WEIR_E_CONF,
				     "'%s' is no application name: letters, digits, '.', '_' and '-', at most 200",
				     app);
	enum weir_err err = weir_sys_make_folder(home, dg);
	if (err != WEIR_OK)
		return err;
	struct log *lg = weir_xcalloc(1, sizeof *lg);
	lg->lg.ops = &log_ops;
	lg->lock_fd = -1;
	lg->home = weir_path_real(home);
	lg->app = weir_xstrdup(app);
	lg->cc = weir_codec_create();
	lg->sync_fs = weir_sys_sync_fs_reports();
	lg->compact_slack = WEIR_COMPACT_SLACK_BYTES;
	err = weir_app_lock(lg->home, app, &lg->lock_fd, dg);
	if (err == WEIR_OK)
		err = log_load(lg, dg);
	if (err == WEIR_OK)
		err = recover(lg, dg);
	if (err == WEIR_OK)
		err = store_others(lg, dg);
	if (err != WEIR_OK) {
		log_free(lg);
		return err;
	}
	*out = &lg->lg;
	return WEIR_OK;
}
