/* log.h: inside of the recorded log, shared by log.c, compact.c and tests. @thread snap. */
#ifndef WEIR_IO_RECORDED_LOG_H
#define WEIR_IO_RECORDED_LOG_H

#include "io/recorded/commit.h"
#include "io/recorded/topic.h"

/* A changelog partition is rewritten when its dead bytes exceed its live ones + this. */
#define WEIR_COMPACT_SLACK_BYTES (64u << 20)

/* How much of a changelog partition is live: the newest record of each key, tombstones aside. Keys by their hash: it
 * only decides when to rewrite. Bytes are uncompressed keys + values + WEIR_LIVE_RECORD_BYTES. */
enum { WEIR_LIVE_RECORD_BYTES = 16 };
struct weir_live_entry {
	uint64_t hash; /* 0: free */
	uint64_t bytes;
};
struct weir_live {
	bool known; /* counts cover every record in the files and the builder */
	struct weir_live_entry *entries;
	uint32_t entry_count;
	uint32_t mask;
	uint64_t bytes_all;
	uint64_t bytes_live;
};
void weir_live_fini(struct weir_live *lv);
void weir_live_reset(struct weir_live *lv);
void weir_live_put(struct weir_live *lv, const void *key, size_t key_bytes, bool tombstone, size_t value_bytes);

/* Rewrites a partition, whose builder is empty, into files of the next generation: the newest record of each key with
 * its offset, no tombstones (nothing older is left that they would hide). ap writes to the new files then, which are
 * synced; the old ones are in *old for the caller to remove once the commit file no longer lists them. lv is counted
 * anew. */
WEIR_MUST_CHECK enum weir_err weir_compact_partition(struct weir_appender *ap, const char *folder, const char *topic,
						     uint32_t partition, struct weir_live *lv, struct weir_segs *old,
						     struct weir_diag **dg);
/* Counts lv from the files. */
WEIR_MUST_CHECK enum weir_err weir_live_scan(const struct weir_appender *ap, const char *folder, const char *topic,
					     uint32_t partition, struct weir_live *lv, struct weir_diag **dg);

struct weir_log;
/* For tests: the default is WEIR_COMPACT_SLACK_BYTES. */
void weir_recorded_log_set_compact_slack(struct weir_log *lg, uint64_t bytes);
/* For tests: segment size of the topics opened from now on; 0: the defaults. */
void weir_recorded_log_set_segment_bytes(struct weir_log *lg, uint64_t bytes);

/* Removes a segment's files. 0 or errno. */
int weir_seg_remove(const char *dir, const struct weir_seg *s);
/* Opens and locks FOLDER/weir.<app>.lock: one engine of an application at a time. */
WEIR_MUST_CHECK enum weir_err weir_app_lock(const char *folder, const char *app, int *fd, struct weir_diag **dg);

#endif
