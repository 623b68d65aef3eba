/* commit.c: reading and replacing the commit file of a folder of recorded topics. @thread init, snap. Drawn in
 * commit.h. */
#include "io/recorded/commit.h"

#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "io/recorded/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMIT_VERSION = 2, COMMIT_VERSION_PLAIN = 1 /* without a checksum */ };
#define COMMIT_BYTES_MAX (256u << 20) /* two million files */

static const char *const kind_names[] = {
	[WEIR_TOPIC_RESULT] = "result", [WEIR_TOPIC_CHANGELOG] = "changelog", [WEIR_TOPIC_DEAD_LETTER] = "dead_letter"};

/* ---- sections in memory ---- */

void weir_commit_section_fini(struct weir_commit_section *s)
{
	for (uint32_t i = 0; i < s->topic_count; i++) {
		free(s->topics[i].path);
		free(s->topics[i].name);
	}
	for (uint32_t i = 0; i < s->file_count; i++) {
		free(s->files[i].path);
		free(s->files[i].name);
	}
	free(s->topics);
	free(s->files);
	free(s->app);
	free(s->home);
	memset(s, 0, sizeof *s);
}

void weir_commit_fini(struct weir_commit *c)
{
	for (uint32_t i = 0; i < c->section_count; i++)
		weir_commit_section_fini(&c->sections[i]);
	free(c->sections);
	memset(c, 0, sizeof *c);
}

struct weir_commit_section *weir_commit_find(const struct weir_commit *c, const char *app)
{
	for (uint32_t i = 0; i < c->section_count; i++)
		if (strcmp(c->sections[i].app, app) == 0)
			return &c->sections[i];
	return NULL;
}

bool weir_commit_lists(const struct weir_commit *c, const char *topic)
{
	for (uint32_t i = 0; i < c->section_count; i++)
		for (uint32_t j = 0; j < c->sections[i].topic_count; j++)
			if (c->sections[i].topics[j].path == NULL && strcmp(c->sections[i].topics[j].name, topic) == 0)
				return true;
	return false;
}

bool weir_changelog_is_of(const char *topic, const char *app)
{
	static const char ending[] = "-changelog";
	size_t bytes = strlen(topic), app_bytes = strlen(app);
	return bytes >= app_bytes + sizeof ending && strncmp(topic, app, app_bytes) == 0 && topic[app_bytes] == '-' &&
	       strcmp(topic + bytes - (sizeof ending - 1), ending) == 0;
}

/* Room for one more in an array that grows at powers of two. */
static void *grow_by_one(void *array, uint32_t count, size_t item_bytes)
{
	return (count & (count - 1)) == 0 ? weir_xrealloc(array, (count == 0 ? 1 : 2 * (size_t)count) * item_bytes)
					  : array;
}

void weir_commit_add_topic(struct weir_commit_section *s, const char *path, const char *name, enum weir_topic_kind kind,
			   uint32_t partitions)
{
	s->topics = grow_by_one(s->topics, s->topic_count, sizeof *s->topics);
	s->topics[s->topic_count++] = (struct weir_commit_topic){path == NULL ? NULL : weir_xstrdup(path),
								 weir_xstrdup(name), kind, partitions};
}

void weir_commit_add_file(struct weir_commit_section *s, const char *path, const char *name, uint64_t length,
			  int64_t next)
{
	s->files = grow_by_one(s->files, s->file_count, sizeof *s->files);
	s->files[s->file_count++] =
		(struct weir_commit_file){path == NULL ? NULL : weir_xstrdup(path), weir_xstrdup(name), length, next};
}

/* Of what the file says, however it is laid out. */
static bool checksum(const json_t *apps, char out[17])
{
	char *text = json_dumps(apps, JSON_COMPACT | JSON_PRESERVE_ORDER);
	if (text == NULL)
		return false;
	snprintf(out, 17, "%016llx", (unsigned long long)weir_hash(text, strlen(text)));
	free(text);
	return true;
}

/* ---- reading ---- */

static enum weir_err corrupt(const char *path, const char *what, struct weir_diag **dg)
{
	return weir_diag_set(dg, WEIR_E_CORRUPT, "the commit file %s is damaged: %s", path, what);
}

static bool parse_topic(struct weir_commit_section *s, json_t *item)
{
	const char *path = json_string_value(json_object_get(item, "path"));
	const char *name = json_string_value(json_object_get(item, "name"));
	const char *kind = json_string_value(json_object_get(item, "kind"));
	json_int_t partitions = json_integer_value(json_object_get(item, "partitions"));
	if (name == NULL || kind == NULL || partitions < 1 || partitions > INT32_MAX)
		return false;
	for (size_t k = 0; k < WEIR_COUNT_OF(kind_names); k++)
		if (strcmp(kind, kind_names[k]) == 0) {
			weir_commit_add_topic(s, path, name, (enum weir_topic_kind)k, (uint32_t)partitions);
			return true;
		}
	return false;
}

static bool parse_file(struct weir_commit_section *s, json_t *item)
{
	const char *path = json_string_value(json_object_get(item, "path"));
	const char *name = json_string_value(json_object_get(item, "file"));
	json_t *length = json_object_get(item, "length"), *next = json_object_get(item, "next");
	if (name == NULL || strchr(name, '/') == NULL || strstr(name, "..") != NULL || name[0] == '/')
		return false;
	if (!json_is_integer(length) || !json_is_integer(next) || json_integer_value(length) < 0 ||
	    json_integer_value(next) < 0)
		return false;
	weir_commit_add_file(s, path, name, (uint64_t)json_integer_value(length), (int64_t)json_integer_value(next));
	return true;
}

static bool parse_section(struct weir_commit_section *s, const char *app, json_t *value)
{
	const char *home = json_string_value(json_object_get(value, "home"));
	json_t *epoch = json_object_get(value, "epoch"), *item;
	json_t *topics = json_object_get(value, "topics"), *files = json_object_get(value, "files");
	size_t i;
	s->app = weir_xstrdup(app);
	s->home = home == NULL ? NULL : weir_xstrdup(home);
	if (!json_is_integer(epoch) || json_integer_value(epoch) < 0 || !json_is_array(topics) || !json_is_array(files))
		return false;
	s->epoch = (uint64_t)json_integer_value(epoch);
	json_array_foreach(topics, i, item) if (!parse_topic(s, item)) return false;
	json_array_foreach(files, i, item) if (!parse_file(s, item)) return false;
	return true;
}

/* The whole of a small file, or NULL with errno. */
static char *read_text(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct stat st;
	char *text = NULL;
	int error = 0;
	if (fstat(fd, &st) != 0) {
		error = errno;
	} else if (st.st_size < 0 || (uint64_t)st.st_size > COMMIT_BYTES_MAX) {
		error = EFBIG;
	} else {
		size_t at = 0;
		text = weir_xmalloc((size_t)st.st_size + 1);
		while (at < (size_t)st.st_size) {
			ssize_t n = read(fd, text + at, (size_t)st.st_size - at);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				break;
			at += (size_t)n;
		}
		*bytes = at;
	}
	close(fd);
	if (text == NULL)
		errno = error;
	return text;
}

static bool checksum_fits(const json_t *root, const json_t *apps)
{
	char sum[17];
	const char *said = json_string_value(json_object_get(root, "checksum"));
	return said != NULL && checksum(apps, sum) && strcmp(said, sum) == 0;
}

enum weir_err weir_commit_load(const char *folder, struct weir_commit *c, struct weir_diag **dg)
{
	memset(c, 0, sizeof *c);
	char *path = weir_path_join(folder, WEIR_COMMIT_NAME);
	size_t bytes = 0;
	char *text = read_text(path, &bytes);
	enum weir_err err = WEIR_OK;
	json_t *root = NULL;
	if (text == NULL) {
		if (errno != ENOENT && errno != ENOTDIR)
			err = weir_sys_failed(dg, "read", path, errno);
		goto done;
	}
	json_error_t je;
	root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &je);
	if (root == NULL) {
		err = corrupt(path, je.text, dg);
		goto done;
	}
	json_t *version = json_object_get(root, "version"), *apps = json_object_get(root, "applications"), *value;
	if (!json_is_integer(version) || !json_is_object(apps)) {
		err = corrupt(path, "it has no version or no applications", dg);
	} else if (json_integer_value(version) != COMMIT_VERSION &&
		   json_integer_value(version) != COMMIT_VERSION_PLAIN) {
		err = weir_diag_set(dg, WEIR_E_STATE, "the commit file %s has version %lld; this weir reads version %d",
				    path, (long long)json_integer_value(version), COMMIT_VERSION);
	} else if ((json_integer_value(version) == COMMIT_VERSION || json_object_get(root, "checksum") != NULL) &&
		   !checksum_fits(root, apps)) {
		err = corrupt(path, "its checksum does not fit: it has been changed after weir wrote it", dg);
	} else {
		const char *app;
		c->sections = weir_xcalloc(json_object_size(apps) + 1, sizeof *c->sections);
		json_object_foreach(apps, app, value)
		{
			if (!parse_section(&c->sections[c->section_count++], app, value)) {
				err = corrupt(path, "a section lacks a member or has one of another type", dg);
				break;
			}
		}
	}
done:
	json_decref(root);
	free(text);
	free(path);
	return err;
}

/* ---- writing ---- */

static json_t *section_json(const struct weir_commit_section *s)
{
	json_t *value = json_object(), *topics = json_array(), *files = json_array();
	json_object_set_new(value, "epoch", json_integer((json_int_t)s->epoch));
	if (s->home != NULL)
		json_object_set_new(value, "home", json_string(s->home));
	for (uint32_t i = 0; i < s->topic_count; i++) {
		const struct weir_commit_topic *t = &s->topics[i];
		json_t *item = json_pack("{s:s, s:s, s:I}", "name", t->name, "kind", kind_names[t->kind], "partitions",
					 (json_int_t)t->partitions);
		if (t->path != NULL)
			json_object_set_new(item, "path", json_string(t->path));
		json_array_append_new(topics, item);
	}
	for (uint32_t i = 0; i < s->file_count; i++) {
		const struct weir_commit_file *f = &s->files[i];
		json_t *item = json_pack("{s:s, s:I, s:I}", "file", f->name, "length", (json_int_t)f->length, "next",
					 (json_int_t)f->next);
		if (f->path != NULL)
			json_object_set_new(item, "path", json_string(f->path));
		json_array_append_new(files, item);
	}
	json_object_set_new(value, "topics", topics);
	json_object_set_new(value, "files", files);
	return value;
}

static char *commit_text(const struct weir_commit *c, const struct weir_commit_section *s, bool remove)
{
	json_t *root = json_object(), *apps = json_object();
	char sum[17];
	json_object_set_new(root, "version", json_integer(COMMIT_VERSION));
	for (uint32_t i = 0; i < c->section_count; i++)
		if (strcmp(c->sections[i].app, s->app) != 0)
			json_object_set_new(apps, c->sections[i].app, section_json(&c->sections[i]));
	if (!remove)
		json_object_set_new(apps, s->app, section_json(s));
	if (!checksum(apps, sum)) { /* a name in it is not UTF-8 */
		json_decref(apps);
		json_decref(root);
		return NULL;
	}
	json_object_set_new(root, "checksum", json_string(sum));
	json_object_set_new(root, "applications", apps);
	char *text = json_dumps(root, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	json_decref(root);
	return text;
}

static int replace_file(const char *folder, const char *text)
{
	char *path = weir_path_join(folder, WEIR_COMMIT_NAME), *tmp = weir_path_join(folder, WEIR_COMMIT_NAME ".tmp");
	int fd = -1;
	int error = weir_sys_create(tmp, &fd);
	if (error == 0)
		error = weir_sys_truncate(fd, tmp, 0);
	if (error == 0)
		error = weir_sys_write(fd, tmp, text, strlen(text), 0);
	if (error == 0)
		error = weir_sys_sync(fd, tmp);
	if (fd >= 0)
		close(fd);
	if (error == 0)
		error = weir_sys_rename(tmp, path);
	if (error == 0)
		error = weir_sys_sync_folder(folder);
	free(path);
	free(tmp);
	return error;
}

enum weir_err weir_commit_store(const char *folder, const struct weir_commit_section *s, bool remove,
				struct weir_diag **dg)
{
	char *lock_path = weir_path_join(folder, WEIR_COMMIT_LOCK);
	struct weir_commit c = {0};
	char *text = NULL;
	enum weir_err err = WEIR_OK;
	int lock_fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (lock_fd < 0) {
		err = weir_sys_failed(dg, "open the lock", lock_path, errno);
		goto done;
	}
	while (flock(lock_fd, LOCK_EX) != 0)
		if (errno != EINTR) {
			err = weir_sys_failed(dg, "lock", lock_path, errno);
			goto done;
		}
	err = weir_commit_load(folder, &c, dg);
	if (err != WEIR_OK)
		goto done;
	text = commit_text(&c, s, remove);
	if (text == NULL) {
		err = weir_diag_set(dg, WEIR_E_CONF,
				    "the commit file of %s cannot be written: a name in it is not UTF-8", folder);
		goto done;
	}
	int error = replace_file(folder, text);
	if (error != 0)
		err = weir_sys_failed(dg, "replace the commit file in", folder, error);
done:
	if (lock_fd >= 0)
		close(lock_fd); /* gives the lock back */
	free(text);
	weir_commit_fini(&c);
	free(lock_path);
	return err;
}
