/* log.h: results, changelogs and commits on a Kafka cluster: checkpoint/changelog.h over librdkafka. @thread snap, init
 *
 * Changelog records (and the input offsets) of an epoch are one transaction, whatever the guarantee; results leave by
 * guarantee (design.md section 5): at_least_once by a plain idempotent producer as they come, all acknowledged before
 * the epoch commits; exactly_once inside the transaction; at_most_once after the commit, acknowledged or given up
 * before the next. An application without state and without exactly_once has no transaction, but in a cooperative
 * group: offsets alone are committed through the group. Frames of the running epoch are kept until it is known to be
 * committed: after an abort, a time-out or a doubtful commit the producer is rebuilt, the group's committed offsets
 * with their epoch say whether the epoch is there, and it is sent again or dropped. */
#ifndef WEIR_IO_KAFKA_LOG_H
#define WEIR_IO_KAFKA_LOG_H

#include "io/conf.h"
#include "io/kafka/input.h"
#include "io/kafka/standby.h"

/* A topic whose partitions are counted before every commit: an epoch that was read after they changed is not committed,
 * because keys may have come to slots that do not hold their state. */
struct weir_kafka_log_source {
	const struct weir_conf *cf; /* of its cluster; borrowed until close */
	const char *topic;
	uint32_t partitions;
};
struct weir_kafka_log_spec {
	const char *app;
	enum weir_guarantee guarantee;
	bool stateless;                 /* no stage keeps state */
	struct weir_kafka_input *input; /* the group whose offsets are committed; NULL: input lies elsewhere */
	bool fenced; /* so it does here, too: the group is that of the (first) changelog topic, and each transaction
			carries an offset of every partition of it that is ours, to be fenced by */
	const struct weir_kafka_log_source *sources; /* what is read without a bound, as it was when reading began */
	uint32_t source_count;
	struct weir_standby *standby; /* what it has followed is not read again; NULL: nothing is followed */
	int64_t commit_ms;
	int64_t broker_wait_ms;
	const _Atomic bool *stop; /* gives up waiting when set; may be NULL */
	/* Called often while a changelog is read, however slowly it comes; an error ends that. NULL: nobody waits. */
	enum weir_err (*alive)(void *ctx, struct weir_diag **dg);
	void *alive_ctx;
};
/* Connects, claims a transactional id for this instance (APP-INSTANCE with group.instance.id, else APP-HOST-N, where N
 * is the smallest number that no running instance on this machine has, so that a restarted one fences its own past at
 * once; transactional.id, if set, stands for APP) and resolves the predecessor's transaction. cf is borrowed until
 * close: a replaced producer is configured from it again. Offsets are committed for the generation that the input is in
 * at the commit: call commit only between weir_kafka_input_begin and weir_kafka_input_release. */
WEIR_MUST_CHECK enum weir_err weir_kafka_log_open(struct weir_log **out, const struct weir_conf *cf,
						  const struct weir_kafka_log_spec *spec,
						  const struct weir_kafka_log *lg, struct weir_diag **dg);

/* Another reader of lg's topics, which have the same numbers in it: only read, expect, restored and close are for it.
 * For a thread of its own beside lg's, until lg is closed. stop ends its waits. */
WEIR_MUST_CHECK enum weir_err weir_kafka_log_aside(struct weir_log **out, struct weir_log *lg, const _Atomic bool *stop,
						   struct weir_diag **dg);

/* The repartition topics of an application: made, with as many partitions as its sources (which must have equally
 * many), before it subscribes to them. */
struct weir_kafka_repartition_spec {
	const char *app;
	const char *const *topics;
	uint32_t topic_count;
	const char *const *sources;
	uint32_t source_count;
	bool create; /* topics.create */
	int64_t broker_wait_ms;
	const _Atomic bool *stop;
};
/* The changelog topic of an application whose member subscribes to it: made, unless it is there. */
struct weir_kafka_changelog_spec {
	const char *topic;
	uint32_t partitions;
	bool create; /* topics.create */
	int64_t broker_wait_ms;
	const _Atomic bool *stop;
};
WEIR_MUST_CHECK enum weir_err weir_kafka_changelog_create(const struct weir_conf *cf,
							  const struct weir_kafka_changelog_spec *spec,
							  const struct weir_kafka_log *lg, struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_kafka_repartition_create(const struct weir_conf *cf,
							    const struct weir_kafka_repartition_spec *spec,
							    const struct weir_kafka_log *lg, struct weir_diag **dg);

#endif
