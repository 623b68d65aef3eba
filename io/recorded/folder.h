/* folder.h: the names in a folder of recorded topics, and which files of a partition a reader may see. @thread init,
 * io. */
#ifndef WEIR_IO_RECORDED_FOLDER_H
#define WEIR_IO_RECORDED_FOLDER_H

#include "hotpath/core/mem.h"
#include "io/recorded/commit.h"

/* One segment file: <20-digit base offset>.log, or <base>.<generation>.log when a rewriting replaced others. */
struct weir_seg {
	int64_t base;
	uint32_t generation;
	bool listed;    /* in some section of the commit file: limit and next are its */
	uint64_t limit; /* committed length; UINT64_MAX: as long as the file is */
	int64_t next;   /* listed: offset after the last committed record */
	uint64_t size;  /* bytes to read: the file's, at most limit; set by whoever opens it */
};
struct weir_segs {
	struct weir_seg *seg;
	uint32_t count;
};
void weir_segs_fini(struct weir_segs *ss);
void weir_segs_add(struct weir_segs *ss, const struct weir_seg *s);

#define WEIR_SEG_NAME_BYTES 40
/* "00000000000000000000.log"; returns buf. */
char *weir_seg_name(char buf[WEIR_SEG_NAME_BYTES], int64_t base, uint32_t generation, const char *suffix);
bool weir_seg_parse(const char *name, struct weir_seg *s);
/* "orders-12": topic is the first *topic_bytes of it. False for names that are no partition of a topic. */
bool weir_partition_parse(const char *name, size_t *topic_bytes, uint32_t *partition);
/* Kafka's rule for topic names; also used for applications. */
bool weir_topic_name_ok(const char *name);
/* FOLDER/<topic>-<partition>; the caller frees. */
char *weir_partition_path(const char *folder, const char *topic, uint32_t partition);

/* The segments of a partition in offset order, as a reader sees them: when the commit file lists any, the listed ones
 * up to their committed lengths and, before those, files of nobody; else every file whole. uncommitted: everything,
 * whole. An absent folder has none. The folder's commit may be NULL: none. */
WEIR_MUST_CHECK enum weir_err weir_segs_list(struct weir_segs *out, const char *folder, const char *topic,
					     uint32_t partition, const struct weir_commit *c, bool uncommitted,
					     struct weir_diag **dg);
/* Every .log file of the partition's folder, sorted, whoever it belongs to. */
WEIR_MUST_CHECK enum weir_err weir_segs_scan(struct weir_segs *out, const char *folder, const char *topic,
					     uint32_t partition, struct weir_diag **dg);

/* Whether a topic's number of partitions can be worked with: one folder's name alone can make it any number. */
WEIR_MUST_CHECK enum weir_err weir_partition_count_check(const char *folder, const char *topic, uint32_t count,
							 struct weir_diag **dg);
/* A partition of which nobody lists a file must have a folder, if only an empty one: part of a topic is no topic. */
WEIR_MUST_CHECK enum weir_err weir_partition_there_check(const char *folder, const char *topic, uint32_t partition,
							 struct weir_diag **dg);
/* Partitions by folders and by the commit file: 1 + the largest number. */
uint32_t weir_folder_partitions(const char *folder, const char *topic, const struct weir_commit *c);
/* Sorted topic names; internal: changelogs too. */
WEIR_MUST_CHECK enum weir_err weir_folder_topics(const char *folder, const struct weir_commit *c, bool internal,
						 char ***names, uint32_t *count, struct weir_diag **dg);
void weir_names_free(char **names, uint32_t count);

#endif
