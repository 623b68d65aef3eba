/* reset.c: takes an application out of a folder of recorded topics (weir reset). @thread init: no engine runs.
 * Files go before the section that lists them, so that a reset which was interrupted can be run again. */
#include "io/recorded/recorded.h"

#include "io/recorded/log.h"
#include "io/recorded/sys.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct reset {
	const char *home;
	bool execute;
	void (*say)(void *ctx, const char *line);
	void *ctx;
};

static WEIR_PRINTF(2, 3) void say(const struct reset *rs, const char *fmt, ...)
{
	char line[4600];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (rs->say != NULL)
		rs->say(rs->ctx, line);
}

/* Every file of a partition's folder, and the folder. */
static enum weir_err remove_folder(const char *dir, struct weir_diag **dg)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int error = 0;
	if (d == NULL)
		return errno == ENOENT ? WEIR_OK : weir_sys_failed(dg, "read the folder", dir, errno);
	while (error == 0 && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		char *path = weir_path_join(dir, e->d_name);
		error = weir_sys_unlink(path);
		free(path);
	}
	closedir(d);
	if (error == 0)
		error = weir_sys_rmdir(dir);
	return error == 0 ? WEIR_OK : weir_sys_failed(dg, "remove", dir, error);
}

/* The files the section lists for a partition, and the folder if nothing else is in it. */
static enum weir_err remove_listed(const struct weir_commit_section *s, const char *path, const char *topic,
				   uint32_t partition, const char *dir, struct weir_diag **dg)
{
	char prefix[256];
	int bytes = snprintf(prefix, sizeof prefix, "%s-%u/", topic, partition), error = 0;
	struct weir_seg g;
	for (uint32_t i = 0; i < s->file_count && error == 0; i++) {
		const struct weir_commit_file *f = &s->files[i];
		bool here = f->path == NULL || path == NULL ? f->path == path : strcmp(f->path, path) == 0;
		if (here && strncmp(f->name, prefix, (size_t)bytes) == 0 && weir_seg_parse(f->name + bytes, &g))
			error = weir_seg_remove(dir, &g);
	}
	if (error == 0)
		error = weir_sys_rmdir(dir);
	return error == 0 ? WEIR_OK : weir_sys_failed(dg, "remove files in", dir, error);
}

static enum weir_err reset_topic(const struct reset *rs, const struct weir_commit_section *s,
				 const struct weir_commit_topic *t, struct weir_diag **dg)
{
	const char *folder = t->path == NULL ? rs->home : t->path;
	bool changelog = t->kind == WEIR_TOPIC_CHANGELOG;
	say(rs, "%s %s %s in %s (%u partition%s)", rs->execute ? "removing" : "would remove",
	    changelog ? "changelog" : "results", t->name, folder, t->partitions, t->partitions == 1 ? "" : "s");
	for (uint32_t p = 0; rs->execute && p < t->partitions; p++) {
		char *dir = weir_partition_path(folder, t->name, p);
		enum weir_err err = changelog ? remove_folder(dir, dg) : remove_listed(s, t->path, t->name, p, dir, dg);
		free(dir);
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

static enum weir_err reset_section(const struct reset *rs, const struct weir_commit_section *s, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; err == WEIR_OK && i < s->topic_count; i++)
		err = reset_topic(rs, s, &s->topics[i], dg);
	say(rs, "%s the committed offsets and epoch %llu of application %s in %s",
	    rs->execute ? "removing" : "would remove", (unsigned long long)s->epoch, s->app, rs->home);
	for (uint32_t i = 0; err == WEIR_OK && rs->execute && i < s->topic_count; i++) {
		const char *path = s->topics[i].path;
		bool first = path != NULL && access(path, F_OK) == 0;
		for (uint32_t j = 0; j < i && first; j++)
			first = s->topics[j].path == NULL || strcmp(s->topics[j].path, path) != 0;
		if (first)
			err = weir_commit_store(path, s, true, dg);
	}
	if (err == WEIR_OK && rs->execute)
		err = weir_commit_store(rs->home, s, true, dg);
	return err;
}

/* Changelogs of the application's name that no section lists: their commit file has been lost. A running application's
 * are listed before they are made. */
static enum weir_err reset_strays(const struct reset *rs, const char *app, const struct weir_commit *c, bool *any,
				  struct weir_diag **dg)
{
	char **names;
	uint32_t count;
	bool stray = false;
	enum weir_err err = weir_folder_topics(rs->home, NULL, true, &names, &count, dg);
	if (err != WEIR_OK)
		return err;
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		if (!weir_changelog_is_of(names[i], app) || weir_commit_lists(c, names[i]))
			continue;
		struct weir_commit_topic t = {.name = names[i],
					      .kind = WEIR_TOPIC_CHANGELOG,
					      .partitions = weir_folder_partitions(rs->home, names[i], NULL)};
		*any = true;
		stray = true;
		err = reset_topic(rs, NULL, &t, dg);
	}
	/* Which results were its own only the commit file knew. */
	for (uint32_t i = 0; i < count && err == WEIR_OK && stray; i++)
		if (!weir_commit_lists(c, names[i]) && !weir_changelog_is_of(names[i], app))
			say(rs, "topic %s in %s is in no commit file: if it holds results of %s, remove %s/%s-*",
			    names[i], rs->home, app, rs->home, names[i]);
	weir_names_free(names, count);
	return err;
}

static enum weir_err reset_folder(const struct reset *rs, const char *app, bool *any, struct weir_diag **dg)
{
	struct weir_commit c = {0};
	enum weir_err err = weir_commit_load(rs->home, &c, dg);
	const struct weir_commit_section *s = err == WEIR_OK ? weir_commit_find(&c, app) : NULL;
	*any = s != NULL;
	if (s != NULL && s->home != NULL)
		err = weir_diag_set(dg, WEIR_E_CONF, "the state of application %s lives in %s: reset it there", app,
				    s->home);
	else if (err == WEIR_OK)
		err = reset_strays(rs, app, &c, any, dg);
	if (err == WEIR_OK && s != NULL)
		err = reset_section(rs, s, dg);
	weir_commit_fini(&c);
	return err;
}

/* Looking takes no lock and leaves no lock file behind: whoever may only read the folder may look, and an application
 * that is not there stays without a trace. */
enum weir_err weir_recorded_reset(const char *home, const char *app, bool execute,
				  void (*say_fn)(void *ctx, const char *line), void *ctx, struct weir_diag **dg)
{
	if (!weir_topic_name_ok(app))
		return weir_diag_set(dg, WEIR_E_CONF, "'%s' is no application name", app);
	if (access(home, F_OK) != 0)
		return weir_diag_set(dg, WEIR_E_CONF, "there is no folder %s", home);
	char *real = weir_path_real(home);
	struct reset rs = {.home = real, .say = execute ? NULL : say_fn, .ctx = ctx};
	bool any = false;
	int lock_fd = -1;
	enum weir_err err = reset_folder(&rs, app, &any, dg);
	rs.say = say_fn;
	rs.execute = execute;
	if (err == WEIR_OK && !any)
		say(&rs, "application %s has nothing in %s", app, real);
	if (err == WEIR_OK && any && execute)
		err = weir_app_lock(real, app, &lock_fd, dg);
	if (err == WEIR_OK && lock_fd >= 0)
		err = reset_folder(&rs, app, &any, dg);
	if (lock_fd >= 0)
		close(lock_fd);
	free(real);
	return err;
}
