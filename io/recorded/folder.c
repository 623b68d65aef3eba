/* folder.c: names and listings of recorded topics. @thread init; io when it follows files. No state of its own. */
#include "io/recorded/folder.h"

#include "io/recorded/recorded.h"
#include "io/recorded/sys.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BASE_DIGITS = 20, PARTITIONS_MAX = 10000 };

void weir_segs_fini(struct weir_segs *ss)
{
	free(ss->seg);
	memset(ss, 0, sizeof *ss);
}

void weir_segs_add(struct weir_segs *ss, const struct weir_seg *s)
{
	if ((ss->count & (ss->count - 1)) == 0)
		ss->seg = weir_xrealloc(ss->seg, (ss->count == 0 ? 1 : 2 * (size_t)ss->count) * sizeof *ss->seg);
	ss->seg[ss->count++] = *s;
}

char *weir_seg_name(char buf[WEIR_SEG_NAME_BYTES], int64_t base, uint32_t generation, const char *suffix)
{
	if (generation == 0)
		snprintf(buf, WEIR_SEG_NAME_BYTES, "%020lld.%.5s", (long long)base, suffix);
	else
		snprintf(buf, WEIR_SEG_NAME_BYTES, "%020lld.%u.%.5s", (long long)base, generation, suffix);
	return buf;
}

bool weir_seg_parse(const char *name, struct weir_seg *s)
{
	uint64_t base = 0;
	uint64_t generation = 0;
	for (int i = 0; i < BASE_DIGITS; i++) {
		if (name[i] < '0' || name[i] > '9' || base > INT64_MAX / 10)
			return false;
		base = base * 10 + (uint64_t)(name[i] - '0');
	}
	const char *p = name + BASE_DIGITS;
	if (base > INT64_MAX || *p != '.')
		return false;
	p++;
	if (*p >= '1' && *p <= '9') {
		for (; *p >= '0' && *p <= '9' && generation <= UINT32_MAX; p++)
			generation = generation * 10 + (uint64_t)(*p - '0');
		if (generation > UINT32_MAX || *p++ != '.')
			return false;
	}
	if (strcmp(p, "log") != 0)
		return false;
	*s = (struct weir_seg){.base = (int64_t)base, .generation = (uint32_t)generation, .limit = UINT64_MAX};
	return true;
}

bool weir_topic_name_ok(const char *name)
{
	size_t bytes = strlen(name);
	if (bytes == 0 || bytes > 200 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == bytes;
}

bool weir_partition_parse(const char *name, size_t *topic_bytes, uint32_t *partition)
{
	const char *dash = strrchr(name, '-');
	if (dash == NULL || dash == name || dash[1] == '\0' || (dash[1] == '0' && dash[2] != '\0') ||
	    strlen(dash + 1) > 9)
		return false;
	uint32_t n = 0;
	for (const char *p = dash + 1; *p != '\0'; p++) {
		if (*p < '0' || *p > '9')
			return false;
		n = n * 10 + (uint32_t)(*p - '0');
	}
	*topic_bytes = (size_t)(dash - name);
	*partition = n;
	return true;
}

char *weir_partition_path(const char *folder, const char *topic, uint32_t partition)
{
	size_t bytes = strlen(folder) + strlen(topic) + 16;
	char *path = weir_xmalloc(bytes);
	snprintf(path, bytes, "%s/%s-%u", folder, topic, partition);
	return path;
}

static int compare_segs(const void *a, const void *b)
{
	const struct weir_seg *x = a, *y = b;
	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	return x->generation < y->generation ? -1 : x->generation > y->generation;
}

static void sort_segs(struct weir_segs *ss)
{
	if (ss->count > 1)
		qsort(ss->seg, ss->count, sizeof *ss->seg, compare_segs);
}

enum weir_err weir_segs_scan(struct weir_segs *out, const char *folder, const char *topic, uint32_t partition,
			     struct weir_diag **dg)
{
	memset(out, 0, sizeof *out);
	char *path = weir_partition_path(folder, topic, partition);
	DIR *d = opendir(path);
	enum weir_err err = WEIR_OK;
	if (d == NULL) {
		if (errno != ENOENT)
			err = weir_sys_failed(dg, "read the folder", path, errno);
	} else {
		struct dirent *e;
		struct weir_seg s;
		while ((e = readdir(d)) != NULL)
			if (weir_seg_parse(e->d_name, &s))
				weir_segs_add(out, &s);
		closedir(d);
		sort_segs(out);
	}
	free(path);
	return err;
}

/* The committed files of the partition, from every section. */
static void list_committed(struct weir_segs *out, const char *topic, uint32_t partition, const struct weir_commit *c)
{
	char prefix[256];
	int bytes = snprintf(prefix, sizeof prefix, "%s-%u/", topic, partition);
	for (uint32_t i = 0; c != NULL && i < c->section_count; i++)
		for (uint32_t j = 0; j < c->sections[i].file_count; j++) {
			const struct weir_commit_file *f = &c->sections[i].files[j];
			struct weir_seg s;
			if (f->path != NULL || strncmp(f->name, prefix, (size_t)bytes) != 0 ||
			    !weir_seg_parse(f->name + bytes, &s))
				continue;
			s.listed = true;
			s.limit = f->length;
			s.next = f->next;
			weir_segs_add(out, &s);
		}
	sort_segs(out);
}

enum weir_err weir_segs_list(struct weir_segs *out, const char *folder, const char *topic, uint32_t partition,
			     const struct weir_commit *c, bool uncommitted, struct weir_diag **dg)
{
	struct weir_segs listed = {0}, found;
	memset(out, 0, sizeof *out);
	enum weir_err err = weir_segs_scan(&found, folder, topic, partition, dg);
	if (err != WEIR_OK)
		return err;
	list_committed(&listed, topic, partition, c);
	for (uint32_t i = 0; i < found.count; i++)
		if (listed.count == 0 || found.seg[i].base < listed.seg[0].base)
			weir_segs_add(out, &found.seg[i]);
	for (uint32_t i = 0; i < listed.count; i++) {
		if (uncommitted)
			listed.seg[i].limit = UINT64_MAX;
		weir_segs_add(out, &listed.seg[i]);
	}
	/* What a writer has rolled into since its last commit. */
	for (uint32_t i = 0; uncommitted && listed.count != 0 && i < found.count; i++)
		if (found.seg[i].base > listed.seg[listed.count - 1].base)
			weir_segs_add(out, &found.seg[i]);
	weir_segs_fini(&listed);
	weir_segs_fini(&found);
	return WEIR_OK;
}

uint32_t weir_folder_partitions(const char *folder, const char *topic, const struct weir_commit *c)
{
	uint32_t count = 0, partition;
	size_t bytes, topic_bytes = strlen(topic);
	for (uint32_t i = 0; c != NULL && i < c->section_count; i++)
		for (uint32_t j = 0; j < c->sections[i].topic_count; j++) {
			const struct weir_commit_topic *t = &c->sections[i].topics[j];
			if (t->path == NULL && strcmp(t->name, topic) == 0 && t->partitions > count)
				count = t->partitions;
		}
	DIR *d = opendir(folder);
	if (d == NULL)
		return count;
	struct dirent *e;
	while ((e = readdir(d)) != NULL)
		if (weir_partition_parse(e->d_name, &bytes, &partition) && bytes == topic_bytes &&
		    memcmp(e->d_name, topic, bytes) == 0 && partition >= count)
			count = partition + 1;
	closedir(d);
	return count;
}

enum weir_err weir_partition_count_check(const char *folder, const char *topic, uint32_t count, struct weir_diag **dg)
{
	if (count <= PARTITIONS_MAX)
		return WEIR_OK;
	return weir_diag_set(dg, WEIR_E_CONF, "topic %s in %s: there is a partition %u, but %d partitions are the most",
			     topic, folder, count - 1, PARTITIONS_MAX);
}

enum weir_err weir_partition_there_check(const char *folder, const char *topic, uint32_t partition,
					 struct weir_diag **dg)
{
	char *path = weir_partition_path(folder, topic, partition);
	enum weir_err err = WEIR_OK;
	if (access(path, F_OK) != 0 && errno == ENOENT) {
		err = weir_diag_set(dg, WEIR_E_CONF,
				    "topic %s in %s has partitions with larger numbers than %u, but there is no folder "
				    "%s: that partition's records are missing",
				    topic, folder, partition, path);
		if (dg != NULL)
			weir_diag_add_hint(*dg, "copy it there, too; if it never held a record: mkdir %s", path);
	}
	free(path);
	return err;
}

void weir_names_free(char **names, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_changelog(const struct weir_commit *c, const char *topic, size_t bytes)
{
	for (uint32_t i = 0; c != NULL && i < c->section_count; i++)
		for (uint32_t j = 0; j < c->sections[i].topic_count; j++) {
			const struct weir_commit_topic *t = &c->sections[i].topics[j];
			if (t->kind == WEIR_TOPIC_CHANGELOG && t->path == NULL && strlen(t->name) == bytes &&
			    memcmp(t->name, topic, bytes) == 0)
				return true;
		}
	return false;
}

struct names {
	char **name;
	uint32_t count;
};

static void add_name(struct names *ns, const char *name, size_t bytes)
{
	if ((ns->count & (ns->count - 1)) == 0)
		ns->name = weir_xrealloc(ns->name, (ns->count == 0 ? 1 : 2 * (size_t)ns->count) * sizeof *ns->name);
	char *copy = weir_xmalloc(bytes + 1);
	memcpy(copy, name, bytes);
	copy[bytes] = '\0';
	ns->name[ns->count++] = copy;
}

enum weir_err weir_folder_topics(const char *folder, const struct weir_commit *c, bool internal, char ***names,
				 uint32_t *count, struct weir_diag **dg)
{
	struct names ns = {0};
	DIR *d = opendir(folder);
	if (d == NULL)
		return weir_sys_failed(dg, "read the folder", folder, errno);
	struct dirent *e;
	size_t bytes;
	uint32_t partition;
	while ((e = readdir(d)) != NULL)
		if (weir_partition_parse(e->d_name, &bytes, &partition) &&
		    (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN || e->d_type == DT_LNK) &&
		    (internal || !is_changelog(c, e->d_name, bytes)))
			add_name(&ns, e->d_name, bytes);
	closedir(d);
	for (uint32_t i = 0; c != NULL && i < c->section_count; i++)
		for (uint32_t j = 0; j < c->sections[i].topic_count; j++) {
			const struct weir_commit_topic *t = &c->sections[i].topics[j];
			if (t->path == NULL && (internal || t->kind != WEIR_TOPIC_CHANGELOG))
				add_name(&ns, t->name, strlen(t->name));
		}
	uint32_t kept = 0;
	if (ns.count > 1)
		qsort(ns.name, ns.count, sizeof *ns.name, compare_names);
	for (uint32_t i = 0; i < ns.count; i++) {
		if (kept != 0 && strcmp(ns.name[kept - 1], ns.name[i]) == 0)
			free(ns.name[i]);
		else
			ns.name[kept++] = ns.name[i];
	}
	*names = ns.name;
	*count = kept;
	return WEIR_OK;
}

enum weir_err weir_recorded_check(const char *path, const char *topic, struct weir_diag **dg)
{
	struct weir_commit c;
	enum weir_err err = weir_commit_load(path, &c, dg);
	uint32_t count = err == WEIR_OK ? weir_folder_partitions(path, topic, &c) : 0;
	if (err == WEIR_OK)
		err = weir_partition_count_check(path, topic, count, dg);
	for (uint32_t p = 0; err == WEIR_OK && p < count; p++) {
		struct weir_segs ss;
		err = weir_segs_list(&ss, path, topic, p, &c, false, dg);
		if (err == WEIR_OK && ss.count == 0)
			err = weir_partition_there_check(path, topic, p, dg);
		weir_segs_fini(&ss);
	}
	weir_commit_fini(&c);
	return err;
}

uint32_t weir_recorded_partitions(const char *path, const char *topic)
{
	struct weir_commit c;
	struct weir_diag *dg = NULL;
	/* A damaged commit file is reported by whoever opens the topic. */
	if (weir_commit_load(path, &c, &dg) != WEIR_OK)
		weir_diag_destroy(dg);
	uint32_t count = weir_folder_partitions(path, topic, &c);
	weir_commit_fini(&c);
	return count;
}

enum weir_err weir_recorded_topics(const char *path, char ***names, uint32_t *count, struct weir_diag **dg)
{
	struct weir_commit c;
	enum weir_err err = weir_commit_load(path, &c, dg);
	if (err == WEIR_OK)
		err = weir_folder_topics(path, &c, true, names, count, dg);
	weir_commit_fini(&c);
	return err;
}
