/* commit.h: DIR/weir.commit, the file that says how much of a folder's files is committed. JSON, replaced by rename.
 *
 *   {"version": 2, "checksum": "6c1e9f0b51d3a2e4", "applications": {"revenue": {
 *      "epoch": 12,
 *      "home": "/srv/state",                              only in a folder that is not the application's home
 *      "topics": [{"name": "revenue-totals-changelog", "kind": "changelog", "partitions": 16, "path": "/srv/out"}],
 *      "files":  [{"file": "revenue-totals-changelog-0/00000000000000000000.log", "length": 4096, "next": 17, "path":
 * ...}]}}}
 *
 * The checksum is XXH3 of the applications as compact JSON: what an editor or a bad disk changed is noticed. Version 1,
 * which had none, is read.
 *
 * "path" stands only at what lies in another folder. The home's section decides: it also lists the application's files
 * in other folders, whose own sections are for their readers and are brought up to the home's when the log is opened.
 * "next" is the offset after the file's last committed record. A topic is listed, with files of length 0, before its
 * first byte; a file in no section belongs to nobody and is read whole.
 *
 * Reading takes no lock (a rename is atomic). weir_commit_store holds DIR/weir.lock while it reads, changes one section
 * and renames, so applications that share a folder do not lose each other's sections. @thread init, snap. */
#ifndef WEIR_IO_RECORDED_COMMIT_H
#define WEIR_IO_RECORDED_COMMIT_H

#include "checkpoint/changelog.h"

#define WEIR_COMMIT_NAME "weir.commit"
#define WEIR_COMMIT_LOCK "weir.lock"

struct weir_commit_file {
	char *path;      /* NULL: this folder */
	char *name;      /* "<topic>-<partition>/<segment>.log" */
	uint64_t length; /* committed bytes */
	int64_t next;    /* offset after the last committed record */
};
struct weir_commit_topic {
	char *path;
	char *name;
	enum weir_topic_kind kind;
	uint32_t partitions;
};
struct weir_commit_section {
	char *app;
	char *home; /* NULL in the home itself */
	uint64_t epoch;
	struct weir_commit_topic *topics;
	uint32_t topic_count;
	struct weir_commit_file *files;
	uint32_t file_count;
};
struct weir_commit {
	struct weir_commit_section *sections;
	uint32_t section_count;
};

/* An absent file is an empty commit. A damaged one: WEIR_E_CORRUPT naming it. Free by weir_commit_fini also on error.
 */
WEIR_MUST_CHECK enum weir_err weir_commit_load(const char *folder, struct weir_commit *c, struct weir_diag **dg);
void weir_commit_fini(struct weir_commit *c);
struct weir_commit_section *weir_commit_find(const struct weir_commit *c, const char *app);

/* Whether a section lists this topic of the commit file's own folder. */
bool weir_commit_lists(const struct weir_commit *c, const char *topic);
/* Whether a topic's name is that of a changelog of this application ("revenue" has "revenue-totals-changelog", and so
 * may "revenue-totals"). */
bool weir_changelog_is_of(const char *topic, const char *app);

/* Replaces the section of s->app by s (remove: takes it out), durably: written, synced, renamed, the folder synced. */
WEIR_MUST_CHECK enum weir_err weir_commit_store(const char *folder, const struct weir_commit_section *s, bool remove,
						struct weir_diag **dg);

/* ---- sections in memory ---- */
void weir_commit_section_fini(struct weir_commit_section *s);
void weir_commit_add_topic(struct weir_commit_section *s, const char *path, const char *name, enum weir_topic_kind kind,
			   uint32_t partitions);
void weir_commit_add_file(struct weir_commit_section *s, const char *path, const char *name, uint64_t length,
			  int64_t next);

#endif
