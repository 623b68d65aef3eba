/* member.h: inside of the group member (input.h), shared by input.c, start.c, group.c, cooperative.c and unit.c: what
 * is known of a partition, the units that wait in its queue, and the group's state. @thread init and io
 *
 *   input.c  opens, closes, the streams, pause and back-pressure
 *   start.c  topics and partitions, where reading begins and ends
 *   group.c  the rebalance callback and its answers, committed offsets, brokers that are gone
 *   cooperative.c  the same where partitions are moved one by one
 *   unit.c   from messages of librdkafka to units of records */
#ifndef WEIR_IO_KAFKA_MEMBER_H
#define WEIR_IO_KAFKA_MEMBER_H

#include "hotpath/core/mem.h"
#include "io/kafka/client.h"
#include "io/kafka/held.h"
#include "io/kafka/growth.h"
#include "io/kafka/input.h"

enum {
	WEIR_KAFKA_UNIT_RECORDS = 1024,  /* a batch of the engine's */
	WEIR_KAFKA_POLL_RECORDS = 1024,  /* taken out of librdkafka's queue at once */
	WEIR_KAFKA_MESSAGE_BYTES = 316,  /* what a message costs librdkafka beside its payload */
	WEIR_KAFKA_QUEUED_RECORDS = 2048 /* polled and not taken: beyond it the queue is left alone */
};
#define WEIR_KAFKA_QUEUED_BYTES (UINT64_C(8) << 20) /* likewise */

/* Messages of one partition as records, which point into them. Fixed in size and pooled. */
struct weir_kafka_unit {
	struct weir_unit u; /* first */
	struct weir_kafka_unit *next;
	struct weir_kafka_unit *all; /* every unit there is */
	uint32_t message_count;
	struct weir_scratch copies;
	rd_kafka_message_t *message[WEIR_KAFKA_UNIT_RECORDS];
	struct weir_record record[WEIR_KAFKA_UNIT_RECORDS];
};

struct weir_kafka_part {
	uint32_t topic; /* index */
	uint32_t number;
	uint32_t scan;
	int64_t low, end;   /* first offset, and the end for this reader; as last looked up */
	int64_t first;      /* where the startup mode begins */
	int64_t bound;      /* INT64_MAX: none */
	int64_t committed;  /* of the group, as last asked; -1: none */
	uint64_t epoch;     /* out of its metadata; 0: none */
	bool ended;         /* likewise: what it stands for was read to its bound */
	int64_t seek;       /* where begin starts; -1: as the startup mode says */
	int64_t next;       /* offset behind what is queued */
	int64_t end_ms;     /* since when at_end */
	int64_t short_eof;  /* the log was longer than this end of committed records when last compared; -1: was not */
	int64_t unheld_eof; /* likewise, twice, and no open transaction was found that ends it there */
	int64_t seen_next, seen_ms; /* where it was when it last moved, or had no reason to */
	int64_t last_ts;
	bool first_given; /* first is a number that somebody wrote down */
	int64_t taken;    /* offset behind what was taken out of the queue; -1: not known */
	bool owned;
	bool later;     /* but not read from the next begin on: its slots are restored */
	bool coming;    /* cooperative: given to us, and taken up at the next release */
	bool going;     /* cooperative: revoked, and given back by the next release */
	bool done;      /* everything below the bound is queued */
	bool assigned;  /* librdkafka has it */
	bool told_hold; /* and was told not to fetch it */
	bool at_end;    /* an end-of-partition event came at next: nothing more is in the log for now */
	bool ahead;     /* others are waited for, and enough of it is queued: not fetched meanwhile */
	struct weir_kafka_unit *head, *tail;
};
struct weir_kafka_topic {
	char *name;
	rd_kafka_topic_t *rkt; /* kept, so that messages are told apart by the pointer */
	uint32_t part_base, part_count;
};
struct weir_kafka_stream {
	struct weir_stream_log sl; /* first */
	struct weir_kafka_input *in;
	uint32_t part_base, part_count;
	char *table;
	char *pattern; /* NULL: topics are named */
	bool bounded, from_group, bound_from_group, headers;
	bool told_first; /* that it begins where the group has no offsets, or nobody is to be told */
};

struct weir_kafka_input {
	struct weir_kafka_client *kc;
	struct weir_kafka_client *asker; /* for committed offsets; NULL: kc itself */
	rd_kafka_t *rk;
	rd_kafka_queue_t *queue;
	int event_fd;
	char *group;
	bool is_member;
	bool fence;
	bool read_uncommitted;
	int64_t broker_wait_ms;
	const _Atomic bool *stop;

	struct weir_kafka_topic *topics;
	uint32_t topic_count;
	struct weir_kafka_part *parts; /* scan by scan, topic by topic */
	uint32_t part_count;
	struct weir_kafka_stream *streams;
	uint32_t stream_count;

	enum weir_kafka_group_state state;
	bool cooperative; /* partitions are moved one by one, and what stays goes on being fetched */
	bool one_by_one;  /* cooperative, and a call for several messages would lose some: below 2.1.0 */
	bool subscribed;
	char *member_id;          /* cooperative: as what we were given what is ours */
	bool was_assigned;        /* cooperative: something, or nothing, was assigned to us once */
	bool leaving;             /* a revocation is answered where it is heard */
	bool closing;             /* and an assignment too */
	bool fresh;               /* low and end were looked up under this assignment */
	bool committed_known;     /* and so was committed */
	bool unanswered;          /* a revocation */
	struct weir_diag *broken; /* sticks: every peek says it */

	struct weir_kafka_topic *topic_last; /* of the last message */
	struct weir_kafka_unit *pool, *all;
	struct weir_buf headers;
	uint64_t queued_bytes;
	uint32_t queued_records;
	uint32_t units_out;

	uint32_t peeked; /* last partition that was peeked at: a smaller one begins a new round */
	bool dry;        /* the queue was empty when last polled in this round */
	bool paused;     /* on request */
	bool held;       /* after a second of back-pressure, until there is room */
	bool waiting;    /* somebody waits for a partition that has more than is queued of it: input.c */
	bool any_ahead;
	uint64_t ahead_bytes; /* of messages that are queued at most while it is so */
	int64_t polled_ms, held_ms, checked_ms;
	struct weir_kafka_growth *growth; /* of topics that are read without a bound */
	int64_t counted_ms;
	char **unread; /* topics that match a pattern and came later: said once each */
	uint32_t unread_count;
	struct weir_kafka_watch *watch; /* of partitions at whose end somebody may have a transaction open */
	int64_t watched_ms;
	int64_t down_ms;  /* when a line about brokers that are gone was last due; 0: they are there */
	int64_t doubt_ms; /* when a topic was first said not to be there; 0: none */

	/* waking fetchers that found the queue full (unit.c) */
	rd_kafka_queue_t *wake_queue; /* NULL: this library does not need it */
	rd_kafka_AdminOptions_t *wake_options;
	uint32_t wakes_out;
	bool was_full;
	uint64_t full_records, full_bytes; /* librdkafka's queued.min.messages, queued.max.messages.kbytes */
	uint64_t record_bytes;             /* of a record, about */

	rd_kafka_message_t *polled[WEIR_KAFKA_POLL_RECORDS];
};

/* ---- start.c ---- */

/* Waits for brokers; topics and parts; where reading begins and ends. The streams are there. */
WEIR_MUST_CHECK enum weir_err weir_kafka_start(struct weir_kafka_input *in, const struct weir_kafka_input_spec *spec,
					       struct weir_diag **dg);
/* Looks low and end up again, of all partitions or of owned ones. */
WEIR_MUST_CHECK enum weir_err weir_kafka_start_refresh(struct weir_kafka_input *in, bool all, struct weir_diag **dg);
/* Topics that match a pattern by now and are not read: said once each. */
void weir_kafka_start_look_again(struct weir_kafka_input *in);
/* Whether the log has offset: an error naming what it has where not; given: the statements name it, they are wrong. */
WEIR_MUST_CHECK enum weir_err weir_kafka_start_check(const struct weir_kafka_input *in,
						     const struct weir_kafka_part *pt, int64_t offset, bool given,
						     struct weir_diag **dg);

/* ---- group.c ---- */

void weir_kafka_group_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts,
				   void *opaque);
/* Now and then: errors, brokers that are gone, a lost assignment. */
WEIR_MUST_CHECK enum weir_err weir_kafka_group_check(struct weir_kafka_input *in, struct weir_diag **dg);
/* The group's committed offsets and epochs into parts, of all or of owned ones. Waits while one is pending. */
WEIR_MUST_CHECK enum weir_err weir_kafka_group_ask(struct weir_kafka_input *in, bool all, struct weir_diag **dg);
/* Tells librdkafka which partitions to fetch: owned, not done, nothing held. */
void weir_kafka_group_hold(struct weir_kafka_input *in);
/* Where reading a partition begins. */
int64_t weir_kafka_group_start_of(const struct weir_kafka_input *in, const struct weir_kafka_part *pt);
/* The group gave us what is not read here. */
void weir_kafka_group_stranger(struct weir_kafka_input *in, const rd_kafka_topic_partition_t *tp);

/* ---- cooperative.c: what group.c's functions do for such a member ---- */

void weir_kafka_coop_on_rebalance(struct weir_kafka_input *in, rd_kafka_resp_err_t err,
				  const rd_kafka_topic_partition_list_t *parts);
WEIR_MUST_CHECK enum weir_err weir_kafka_coop_begin(struct weir_kafka_input *in, struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_kafka_coop_release(struct weir_kafka_input *in, struct weir_diag **dg);
void weir_kafka_coop_again(struct weir_kafka_input *in);
/* Everything is given up, before unsubscribing. */
WEIR_MUST_CHECK enum weir_err weir_kafka_coop_leave(struct weir_kafka_input *in, struct weir_diag **dg);
/* Before the consumer is closed. */
void weir_kafka_coop_close(struct weir_kafka_input *in);
void weir_kafka_coop_set_later(struct weir_kafka_input *in, struct weir_kafka_part *pt, bool later);
/* Whether the next release takes something up. */
bool weir_kafka_coop_any_coming(const struct weir_kafka_input *in);

/* ---- unit.c ---- */

void weir_kafka_unit_init(struct weir_kafka_input *in);
/* Gives the messages of every unit back, taken or not: one that lives keeps the handle from being destroyed for ever.
 */
void weir_kafka_unit_fini(struct weir_kafka_input *in);
/* Polls once, waiting at most timeout_ms for a first message, and queues what came. *any: something did. */
WEIR_MUST_CHECK enum weir_err weir_kafka_unit_poll(struct weir_kafka_input *in, int timeout_ms, bool *any,
						   struct weir_diag **dg);
/* The head of a queue, which has one. */
struct weir_kafka_unit *weir_kafka_unit_take(struct weir_kafka_input *in, struct weir_kafka_part *pt);
void weir_kafka_unit_release(struct weir_kafka_input *in, struct weir_kafka_unit *ku);
/* Forgets what is queued. */
void weir_kafka_unit_drop(struct weir_kafka_input *in, struct weir_kafka_part *pt);
/* Whether enough is queued. */
WEIR_INLINE bool weir_kafka_unit_full(const struct weir_kafka_input *in)
{
	return in->queued_records >= WEIR_KAFKA_QUEUED_RECORDS || in->queued_bytes >= WEIR_KAFKA_QUEUED_BYTES;
}

#endif
