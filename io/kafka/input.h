/* input.h: the member of a consumer group that reads all Kafka sources of an application on one cluster: one consumer,
 * a stream (io/stream.h) for each scan, and the group's life as states that the engine follows; or one of the two alone
 * (a reader in no group, a fence that reads nothing). librdkafka does not show. @thread init and io, unless a function
 * says otherwise
 *
 *   open -> join -> { JOINING -> ASSIGNED -(restore, begin)-> RUNNING -> REVOKED -(drain, commit, release)-> JOINING }
 *                                                                    -> LOST    -(drop, release)----------> JOINING
 *
 * By eager range an assignment comes and goes as a whole: only range gives partition i of joined topics to one member.
 * Where one topic is read, partition.assignment.strategy=cooperative-sticky moves single partitions (cooperative.c), by
 * default from librdkafka 2.10.1 on: REVOKED then also says that some partitions go, or come, and release leads to
 * ASSIGNED with those that are ours; what stays with us is neither given back nor fetched again, and its slots are
 * kept. Below 2.1.0 messages are then taken one by one, because a call for several loses records of partitions that
 * stay.
 *
 * The rebalance callback never blocks: it notes what happened, fetches nothing, and the answer to the group is given by
 * begin (after restore) or release (after the last commit). Partitions are assigned by begin. */
#ifndef WEIR_IO_KAFKA_INPUT_H
#define WEIR_IO_KAFKA_INPUT_H

#include "io/kafka/kafka.h"
#include "io/recorded/recorded.h" /* enum weir_startup */

/* One scan: what the table's WITH says. Texts are copied. */
struct weir_kafka_scan {
	const char *table;         /* for messages */
	const char *const *topics; /* NULL with a pattern */
	uint32_t topic_count;
	const char *topic_pattern; /* POSIX extended regex over the cluster's topic names, whole names */
	bool from_group;           /* scan.startup.mode = group-offsets, and the default: where startup counts only for
				      partitions without a committed offset */
	enum weir_startup startup; /* of partitions that neither a marker nor (from_group) the group knows */
	int64_t startup_ts;
	const char *startup_offsets; /* partition:0,offset:42;partition:1,offset:300 */
	bool bounded;                /* scan.bounded.mode is not unbounded */
	enum weir_startup bound;     /* LATEST: the read_committed end found at open; TIMESTAMP, OFFSETS as given */
	int64_t bound_ts;
	const char *bound_offsets;
	bool bound_from_group; /* scan.bounded.mode = group-offsets: bound counts only where the group has no offset */
	bool inner;            /* a repartition topic: that it begins at its beginning is no news */
	bool read_uncommitted; /* of all scans or of none: it is the consumer's */
	const char *const *written; /* topics that the job itself writes, ended by NULL; NULL: none */
	bool headers_unused; /* nobody reads headers, dead letters and late.topic included: records come without */
};
struct weir_kafka_input_spec {
	const char *group; /* application id; also for consumers that join no group */
	bool member;       /* false: reads every partition by assign(): the offsets are kept elsewhere (a recorded home,
			      or nowhere), and ASSIGNED with all partitions comes at once */
	bool fence; /* a member that reads nothing: its partitions stand for what others read, and its generation for
		       the right to write */
	const char *range_only; /* why partitions cannot be moved one by one; NULL: they can */
	const struct weir_kafka_scan *scans;
	uint32_t scan_count;
	int64_t broker_wait_ms; /* broker.wait.ms: how long open waits for a first answer, saying so every 10 s; -1: for
				   ever */
	uint64_t batch_bytes_max, record_bytes_max;
	const _Atomic bool *stop; /* gives up waiting when set; may be NULL */
};

enum weir_kafka_group_state {
	WEIR_GROUP_JOINING,  /* nothing to read; serve */
	WEIR_GROUP_ASSIGNED, /* owned() says which; restore, seek, then begin */
	WEIR_GROUP_RUNNING,
	WEIR_GROUP_REVOKED, /* drain, commit, release: some go, or (cooperative) only come */
	WEIR_GROUP_LOST     /* drop everything uncommitted, release */
};

struct weir_kafka_input;
/* Connects, looks topics and partitions up (a missing one: WEIR_E_CONF naming table and
 * topic), resolves bounds. */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_open(struct weir_kafka_input **out, const struct weir_conf *cf,
						    const struct weir_kafka_input_spec *spec,
						    const struct weir_kafka_log *lg, struct weir_diag **dg);
/* Leaves the group (static members do not) and frees. Its streams must be closed. NULL is fine. */
void weir_kafka_input_close(struct weir_kafka_input *in);
/* The stream of a scan; owned by in: its close op does nothing. partitions() counts all of the topics' partitions in
 * spec order, whoever owns them; peek of one that is not owned is WEIR_POLL_BOUND,
 * and WEIR_POLL_LATER while not RUNNING, paused, behind the log's end or without brokers. seek decides where begin
 * starts. */
struct weir_stream_log *weir_kafka_input_stream(struct weir_kafka_input *in, uint32_t scan);
/* Whether reading scan has no end. */
bool weir_kafka_input_live(const struct weir_kafka_input *in, uint32_t scan);

/* Subscribes. */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_join(struct weir_kafka_input *in, struct weir_diag **dg);
/* Serves the consumer's queue for at most timeout_ms without taking records from the streams' queues, and says where
 * the group stands. Must be called at least once a second, also while restoring (any thread that has nothing else to
 * do with in at that time). An error: the group refuses us for good (authorization, fenced static member). */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_serve(struct weir_kafka_input *in, int timeout_ms,
						     enum weir_kafka_group_state *state, struct weir_diag **dg);
/* The state as last seen, without serving. peek and take of the streams serve the queue too and may change it. */
enum weir_kafka_group_state weir_kafka_input_state(const struct weir_kafka_input *in);
bool weir_kafka_input_owned(const struct weir_kafka_input *in, uint32_t scan, uint32_t p);
/* Committed offset of every owned partition and the epoch its metadata carries (a decimal number), into the caller's
 * arrays offset[scan][p] and epoch[scan][p]; -1 and 0 where the group has none or p is not owned, epoch 0 where
 * metadata is no number. Waits while a transaction of somebody is pending there (UNSTABLE_OFFSET_COMMIT).
 * WEIR_E_UNAVAILABLE: the group rebalanced meanwhile, state() says how. */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_committed(struct weir_kafka_input *in, int64_t **offset /* [scan][p] */,
							 uint64_t **epoch, struct weir_diag **dg);
/* Reading starts: each owned partition at its seek, else where the startup mode says. ASSIGNED -> RUNNING. */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_begin(struct weir_kafka_input *in, struct weir_diag **dg);
/* Not a member: what of its streams is read from here on, owned[scan][p]. Any state -> ASSIGNED. */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_take(struct weir_kafka_input *in, const bool *const *owned,
						    struct weir_diag **dg);
/* Of what is owned only this is asked about and read, from the next committed and begin on; all of it until then.
 * now[scan][p]. */
void weir_kafka_input_only(struct weir_kafka_input *in, const bool *const *now);
/* Waits until the group's offsets of what is not read are stable, without serving. @thread any, while nobody calls
 * only, take or release */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_await_stable(struct weir_kafka_input *in, const _Atomic bool *stop,
							    struct weir_diag **dg);
/* The same assignment begins once more: RUNNING -> ASSIGNED. Forgets units not taken. */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_again(struct weir_kafka_input *in, struct weir_diag **dg);
/* Answers a revocation or loss; forgets units not taken of what is not ours any more. Units taken stay valid until
 * their release. -> JOINING; cooperative: ASSIGNED with what is left and what came, if that is anything. */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_release(struct weir_kafka_input *in, struct weir_diag **dg);
/* Leaves and subscribes again, after a commit that the group refused. */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_rejoin(struct weir_kafka_input *in, struct weir_diag **dg);
/* How long a member that crashed may stay in the group: its session, and some seconds for the group to notice. */
int64_t weir_kafka_input_session_ms(const struct weir_kafka_input *in);
/* How many members the group has that are not this one, nor what this one (a static member) was before, as the brokers
 * say; 0 where they do not say. Before join; waits for an answer up to 5 s. */
uint32_t weir_kafka_input_others(struct weir_kafka_input *in);
/* Of a fence: bounded input of what is owned came to its end, everything committed. Others learn it by
 * await_others. */
void weir_kafka_input_say_end(struct weir_kafka_input *in);
/* After bounded input came to its end here, everything committed: partitions of a member that crashed come to us once
 * its session is over. Waits for that, for one session at most, and only while others' partitions are short of their
 * bounds. *again: the group gives out partitions anew (released already). */
WEIR_MUST_CHECK enum weir_err weir_kafka_input_await_others(struct weir_kafka_input *in, bool *again,
							    struct weir_diag **dg);
/* Whether partitions are moved one by one. @thread any */
bool weir_kafka_input_cooperative(const struct weir_kafka_input *in);
/* Cooperative: whether the group has known us all the time since it gave us what is ours. @thread any, while nobody
 * calls release */
bool weir_kafka_input_is_same_member(const struct weir_kafka_input *in);
/* Topic number i of all that are read, as it was at open; false beyond the last. bounded: what comes later is not read.
 */
bool weir_kafka_input_topic(const struct weir_kafka_input *in, uint32_t i, const char **name, uint32_t *partitions,
			    bool *bounded);
/* bootstrap.servers. */
const char *weir_kafka_input_brokers(const struct weir_kafka_input *in);
/* Pause on request (SIGUSR2): fetching stops, the member stays. */
void weir_kafka_input_pause(struct weir_kafka_input *in, bool paused);
/* The rd_kafka_t, for the group's metadata at a commit (rd_kafka_consumer_group_metadata and rd_kafka_commit are
 * thread-safe). Inside io/kafka/ only. @thread any */
void *weir_kafka_input_handle(const struct weir_kafka_input *in);

#endif
