/* standby.h: follows the changelogs of slots that other members of the group own, so that taking one over reads only
 * the tail of its changelog. The engine starts a thread that does nothing but weir_standby_step.
 *
 *   assigned --choose--> followed: replica.h as of a position --taken over--> held: restore reads the tail and replays
 *                                                                 |
 *      ^--- another assignment, or restoring came to nothing -----+--- ours: dropped once the session runs
 *
 * Which: standby.replicas=N members may go away at once without a slot being restored from its start. By the range
 * assignor a member's place says which partitions it would own then, so nobody has to be asked but the group for its
 * members. Memory: what memory.max leaves; a partition that does not fit is not followed.
 *
 * @thread standby: the thread of step. The others hand over under a lock, which is never held while waiting. */
#ifndef WEIR_IO_KAFKA_STANDBY_H
#define WEIR_IO_KAFKA_STANDBY_H

#include "io/kafka/changelog_reader.h"
#include "io/kafka/input.h"
#include "io/kafka/kafka.h"

struct weir_standby;
struct weir_standby_conf {
	const struct weir_conf *cf; /* borrowed */
	const struct weir_kafka_log *log;
	const char *group;                     /* borrowed */
	const struct weir_kafka_input *member; /* whose place in the group counts; NULL: everything is followed */
	uint32_t replicas;
};
/* @thread init */
WEIR_MUST_CHECK enum weir_err weir_standby_create(struct weir_standby **out, const struct weir_standby_conf *conf,
						  struct weir_diag **dg);
void weir_standby_destroy(struct weir_standby *sb); /* the thread is gone. NULL is fine */
/* A changelog, before the first step. Every one of an application has as many partitions. @thread init */
void weir_standby_topic(struct weir_standby *sb, const char *name, uint32_t partitions);
/* The group has given us the partitions that are true in owned, and their slots are restored: others are followed from
 * here on. @thread init, io */
void weir_standby_assign(struct weir_standby *sb, const bool *owned);
/* Follows for at most timeout_ms, within room bytes. @thread standby */
void weir_standby_step(struct weir_standby *sb, int timeout_ms, uint64_t room);

/* Whether something of the partition is there for restore. @thread init */
bool weir_standby_has(struct weir_standby *sb, const char *topic, uint32_t partition);
/* As weir_changelog_reader_read: what has been followed, after the tail that cr reads once between here and release.
 * *done false: nothing is there, or it does not fit the log any more; nothing was read then. */
WEIR_MUST_CHECK enum weir_err
weir_standby_read(struct weir_standby *sb, struct weir_changelog_reader *cr, const char *topic, uint32_t partition,
		  int64_t open_ms, enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
		  void *ctx, bool *done, uint64_t *bytes, struct weir_diag **dg);
/* Restoring is over, whether it succeeded or not. @thread init */
void weir_standby_release(struct weir_standby *sb);

/* @thread any */
struct weir_standby_stats {
	uint64_t partitions; /* followed */
	uint64_t behind;     /* offsets to the ends of their logs; UINT64_MAX: not known yet */
	uint64_t records;    /* taken in so far */
	uint64_t bytes;      /* of memory */
	uint64_t waiting;    /* fetched and not yet taken in */
};
void weir_standby_stats(struct weir_standby *sb, struct weir_standby_stats *out);

/* Whether the member at place index of count owns partition p of partitions once gone others or fewer have left. */
bool weir_standby_may_own(uint32_t index, uint32_t count, uint32_t partitions, uint32_t gone, uint32_t p);

#endif
