/* log.c: results, changelogs and commits of one instance on a Kafka cluster (log.h). @thread snap; init at start-up.
 *
 * What goes where, by guarantee (T: the transactional producer, R: the plain idempotent one):
 *
 *                  results                      changelog, offsets          a commit
 *   at_least_once  R, as they come              T                           R acknowledged; T commits
 *   exactly_once   T                            T                           T commits
 *   at_most_once   kept; R, after the commit    T                           R's last ones settled; T commits
 *   without state  as above                     no changelog; offsets by the group's own commit, but for exactly_once
 *                                               and cooperative groups, where a commit that comes as the group moves to
 *                                               another generation would cost all partitions (librdkafka below 2.10)
 *
 *   EMPTY -append-> FILLING -commit-> EMPTY            drop: any -> EMPTY
 *   FILLING -trouble-> rebuild T; then the epoch turns out to be committed -> EMPTY,
 *                                 or its frames go again -> FILLING
 *   FILLING -the group gave our partitions away-> FENCED, until drop
 *
 * Frames of the running epoch that went into T are kept until it is committed; beyond keep_bytes_max they are not, and
 * trouble then ends the run: a new one starts from the last commit. */
#include "io/kafka/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "io/kafka/changelog_reader.h"
#include "io/kafka/claim.h"
#include "io/kafka/client.h"
#include "io/kafka/frames.h"
#include "io/kafka/growth.h"
#include "io/kafka/results.h"
#include "io/kafka/topic.h"
#include "io/kafka/transaction.h"

enum {
	WAIT_SLICE_MS = 2500,
	SAY_MS = 10000,
	TIMEOUT_MS = 10000,     /* transaction.timeout.ms: how long a crash holds readers back */
	BROKER_SCAN_MS = 15000, /* brokers look for timed-out transactions every 10 s */
	PACK_BYTES_MAX = 65536,
	RECORD_OVERHEAD = 1024,
	BATCH_BYTES = 1000000, /* batch.size (client.c) */
	BATCH_OVERHEAD = 512,  /* its header, and librdkafka's estimate of a record's */
	PURGE_MS = 10000,      /* how often records of repartition topics are deleted */
	COMMIT_TRIES_MS = 10000,
	CLOSE_MS = 10000,
	COUNT_MS = 500,
	GENERATION_MS = 20,
	KEEP_MB_MIN = 64
};

struct log_topic {
	char *name;
	enum weir_topic_kind kind;
	uint32_t partitions;
	bool absent; /* a changelog of an application that has none: offsets are in the group alone */
	bool unmade; /* to be made by log_make, with so many partitions */
	bool in_transaction;
	const char *compression; /* borrowed */
	int64_t batch_bytes_max;
	int64_t retention_ms; /* -1: no matter */
	bool keyless;         /* its records have no keys */
	int64_t old_ms;       /* a result older than this is deleted by the broker at once; INT64_MIN: no matter */
};
struct log_cluster {
	const struct weir_conf *cf;
	struct weir_kafka_client *admin; /* borrowed of the log for the first */
	struct weir_kafka_growth *growth;
};
struct log {
	struct weir_log base; /* first */
	const struct weir_conf *cf;
	struct weir_kafka_log log;
	struct weir_kafka_log_spec spec;
	char *app;
	char *id;
	int claim_fd;
	bool transactional;
	struct weir_kafka_client *admin;
	struct log_cluster *clusters; /* whose topics are counted; the first is this one */
	uint32_t cluster_count;
	/* Per changelog partition: behind what is known to be written of the (first) changelog, and as it was when last
	 * committed. */
	int64_t *fence_end, *fence_marked;
	uint32_t fence_topic, fence_count;
	struct weir_txn *tx;                  /* NULL: not transactional */
	struct weir_results *results;         /* NULL: exactly_once */
	struct weir_changelog_reader *reader; /* NULL until the first read */
	struct log_topic *topics;
	uint32_t topic_count;
	struct weir_frames frames;   /* of the running epoch, in T */
	bool frames_lost;            /* some were not kept */
	struct weir_frames later[2]; /* at_most_once: results of the running epoch, and of the last one, on their way */
	uint32_t later_now;
	rd_kafka_topic_partition_list_t *offsets; /* of the running epoch; NULL: none */
	rd_kafka_queue_t *commits;                /* answers to offset commits */
	rd_kafka_queue_t *deletions;              /* answers to deletions of records; NULL: none yet */
	int64_t deleted_ms;
	struct {
		uint64_t partitions, fetched, standby;
		int64_t began_ms;
		uint32_t topic, partition; /* the last one */
	} restore;                         /* the one that is going on; partitions 0: none */
	int64_t open_ms;                   /* of a reader beside another log; 0: its own transactions say */
	uint64_t epoch;                    /* last committed */
	bool fenced;                       /* until drop */
	enum weir_err failed;              /* sticks */
	char *failed_text;
};

static struct log *log_of(struct weir_log *base)
{
	return (struct log *)base;
}

static bool stopped(const struct log *lg)
{
	return lg->spec.stop != NULL && atomic_load_explicit(lg->spec.stop, memory_order_relaxed);
}

/* ---- errors ---- */

/* Keeps err for later calls; dg may be NULL. */
static enum weir_err fail(struct log *lg, enum weir_err err, struct weir_diag **dg)
{
	if (err == WEIR_OK || err == WEIR_E_FENCED || lg->failed != WEIR_OK)
		return err;
	lg->failed = err;
	lg->failed_text = weir_xstrdup(dg != NULL ? weir_diag_text(*dg) : "the log failed");
	return err;
}

static enum weir_err failed_before(const struct log *lg, struct weir_diag **dg)
{
	if (lg->fenced)
		return weir_diag_set(dg, WEIR_E_FENCED, "the group gave this instance's partitions to another one");
	return weir_diag_set(dg, lg->failed, "%s", lg->failed_text);
}

static enum weir_err trouble_diag(struct log *lg, const struct weir_txn_trouble *why, struct weir_diag **dg)
{
	if (why->result != WEIR_TXN_FENCED)
		return weir_kafka_fail(dg, why->code, why->text, "transactional id %s", lg->id);
	lg->fenced = true;
	return weir_diag_set(dg, WEIR_E_FENCED, "the group gave this instance's partitions to another one (%s)",
			     why->text);
}

static const char *user_property(const struct weir_conf *cf, const char *wanted)
{
	const char *name, *value, *found = NULL;
	for (uint32_t i = 0; weir_conf_kafka(cf, i, &name, &value); i++)
		if (strcmp(name, wanted) == 0 || (strncmp(name, "producer.", 9) == 0 && strcmp(name + 9, wanted) == 0))
			found = value;
	return found;
}

/* ---- after trouble ---- */

static enum weir_err reader_of(struct log *lg, struct weir_diag **dg)
{
	if (lg->reader != NULL)
		return WEIR_OK;
	struct weir_changelog_reader_conf conf = {.cf = lg->cf,
						  .log = &lg->log,
						  .admin = lg->admin,
						  .keep_bytes_max = lg->frames.bytes_max * 2,
						  .stop = lg->spec.stop};
	return weir_changelog_reader_create(&lg->reader, &conf, dg);
}

/* The group's committed offsets are ours, with this epoch: then the transaction went through. */
static enum weir_err group_has_epoch(struct log *lg, bool *committed, struct weir_diag **dg)
{
	rd_kafka_t *member = weir_kafka_input_handle(lg->spec.input);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(lg->offsets);
	enum weir_err err = WEIR_OK;
	for (int64_t said = weir_kafka_now_ms();;) {
		rd_kafka_resp_err_t code = rd_kafka_committed(member, list, WAIT_SLICE_MS);
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
			break;
		if (!weir_kafka_err_is_retriable(code))
			err = weir_kafka_fail(dg, code, NULL, "committed offsets of group %s", lg->app);
		else if (stopped(lg))
			err = weir_diag_set(dg, WEIR_E_STOPPED, "stopped while waiting for the group's offsets");
		if (err != WEIR_OK)
			break;
		if (weir_kafka_now_ms() - said >= SAY_MS) {
			said = weir_kafka_now_ms();
			weir_kafka_client_say(lg->admin, 4, "still waiting for the committed offsets of group %s: %s",
					      lg->app, rd_kafka_err2str(code));
		}
	}
	*committed = err == WEIR_OK;
	for (int i = 0; i < list->cnt && *committed; i++) {
		const rd_kafka_topic_partition_t *theirs = &list->elems[i];
		const rd_kafka_topic_partition_t *ours =
			rd_kafka_topic_partition_list_find(lg->offsets, theirs->topic, theirs->partition);
		*committed = ours != NULL && theirs->err == 0 && theirs->offset == ours->offset &&
			     theirs->metadata_size == ours->metadata_size &&
			     memcmp(theirs->metadata, ours->metadata, ours->metadata_size) == 0;
	}
	rd_kafka_topic_partition_list_destroy(list);
	return err;
}

struct last_record {
	uint32_t topic;
	uint32_t partition;
	int64_t offset;
	bool known;
};

/* Whether the transaction that was in doubt is committed. Its successor's init has settled it. */
static enum weir_err find_out(struct log *lg, const struct last_record *last, bool *committed, struct weir_diag **dg)
{
	*committed = false;
	if (lg->offsets != NULL && lg->offsets->cnt > 0)
		return group_has_epoch(lg, committed, dg);
	if (!last->known) /* a record that was not acknowledged is in no committed transaction */
		return WEIR_OK;
	enum weir_err err = reader_of(lg, dg);
	if (err == WEIR_OK)
		err = weir_changelog_reader_probe(lg->reader, lg->topics[last->topic].name, last->partition,
						  last->offset, weir_txn_timeout_ms(lg->tx) + BROKER_SCAN_MS, committed,
						  dg);
	return err;
}

struct resend {
	struct log *lg;
	struct weir_txn_trouble *why;
};

static enum weir_err put_again(void *ctx, struct weir_frame *f, struct weir_diag **dg)
{
	const struct resend *rs = ctx;
	(void)dg;
	return weir_txn_put(rs->lg->tx, f, false, rs->why) == WEIR_TXN_OK ? WEIR_OK : WEIR_E_IO;
}

/* A transaction that fails again and again because a topic of it has gone is never repeated with success: that is
 * told. Without an answer nothing is known. */
static enum weir_err find_gone(struct log *lg, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t t = 0; err == WEIR_OK && t < lg->topic_count; t++)
		if (!lg->topics[t].absent && !lg->topics[t].unmade)
			err = weir_kafka_client_confirm(lg->admin, lg->topics[t].name, 1, dg);
	for (int i = 0; lg->offsets != NULL && err == WEIR_OK && i < lg->offsets->cnt; i++)
		if (i == 0 || strcmp(lg->offsets->elems[i].topic, lg->offsets->elems[i - 1].topic) != 0)
			err = weir_kafka_client_confirm(lg->admin, lg->offsets->elems[i].topic, 1, dg);
	return err;
}

static enum weir_err check_gone(struct log *lg, struct weir_diag **dg)
{
	struct weir_diag *own = NULL;
	enum weir_err err = find_gone(lg, &own);
	if (err == WEIR_E_CONF && dg != NULL && *dg == NULL) {
		*dg = own;
		own = NULL;
	}
	weir_diag_destroy(own);
	return err == WEIR_E_CONF ? err : WEIR_OK;
}

/* A new T; then either the epoch is committed, or its frames are in T again. */
static enum weir_err recover(struct log *lg, struct weir_txn_trouble *why, bool doubt, bool *committed,
			     struct weir_diag **dg)
{
	*committed = false;
	for (;;) {
		struct last_record last = {0};
		last.known = weir_txn_last_record(lg->tx, &last.topic, &last.partition, &last.offset);
		if (why->result != WEIR_TXN_REBUILD)
			return trouble_diag(lg, why, dg);
		enum weir_err err = weir_txn_rebuild(lg->tx, why, dg);
		if (err == WEIR_OK)
			err = check_gone(lg, dg);
		if (err == WEIR_OK && doubt)
			err = find_out(lg, &last, committed, dg);
		if (err != WEIR_OK || *committed)
			return err;
		if (lg->frames_lost)
			return weir_diag_set(
				dg, WEIR_E_UNAVAILABLE,
				"the transaction of an epoch that was too large to keep failed (%s): a new "
				"start goes on from the last commit",
				why->text);
		doubt = false;
		struct weir_txn_trouble again = {0};
		struct resend rs = {lg, &again};
		err = weir_frames_each(&lg->frames, put_again, &rs, NULL);
		if (err == WEIR_OK)
			return WEIR_OK;
		*why = again;
	}
}

/* ---- topics ---- */

/* Brokers delete by the records' own times, and a job over old records has old results. */
static const struct weir_kafka_setting result_settings[] = {{"retention.ms", "-1"}, {NULL, NULL}};

static enum weir_err check_settings(struct log *lg, struct log_topic *t, struct weir_diag **dg)
{
	struct weir_kafka_topic_settings st;
	weir_kafka_topic_settings(lg->admin, t->name, &st);
	t->retention_ms = -1;
	if (!st.known)
		return WEIR_OK;
	if (t->kind == WEIR_TOPIC_CHANGELOG && (!st.compact || st.remove))
		return weir_diag_set(dg, WEIR_E_CONF,
				     "topic %s is a changelog and must be compacted, never deleted from, but its "
				     "cleanup.policy is %s",
				     t->name, st.compact ? "compact,delete" : "delete");
	if (t->kind == WEIR_TOPIC_REPARTITION && st.compact)
		return weir_diag_set(
			dg, WEIR_E_CONF,
			"topic %s is a repartition topic, whose every record counts, but its cleanup.policy "
			"is compact",
			t->name);
	if (t->keyless && st.compact) {
		enum weir_err err = weir_diag_set(dg, WEIR_E_CONF,
						  "topic %s is compacted and takes no record without a key, and the "
						  "results that go there have none",
						  t->name);
		weir_diag_add_hint(dg != NULL ? *dg : NULL, "'key.format' and 'key.fields' of the sink make one");
		return err;
	}
	if (t->kind == WEIR_TOPIC_CHANGELOG && st.message_bytes_max < PACK_BYTES_MAX + RECORD_OVERHEAD)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "topic %s is a changelog and takes messages of up to %d bytes, but its "
				     "max.message.bytes is %" PRId64,
				     t->name, PACK_BYTES_MAX + RECORD_OVERHEAD, st.message_bytes_max);
	if (t->kind != WEIR_TOPIC_CHANGELOG && st.remove && !st.append_time)
		t->retention_ms = st.retention_ms;
	t->batch_bytes_max = st.message_bytes_max - BATCH_OVERHEAD;
	return WEIR_OK;
}

/* Brokers refuse a batch that is larger than a topic's max.message.bytes, however small its records are. */
static enum weir_err limit_batches(struct log *lg, const struct log_topic *t, struct weir_diag **dg)
{
	if (t->batch_bytes_max >= BATCH_BYTES)
		return WEIR_OK;
	const char *wanted = user_property(lg->cf, "batch.size");
	if (wanted != NULL && strtoll(wanted, NULL, 10) <= t->batch_bytes_max)
		return WEIR_OK;
	return t->in_transaction ? weir_txn_limit(lg->tx, t->batch_bytes_max, dg)
				 : weir_results_limit(lg->results, t->batch_bytes_max, dg);
}

static enum weir_err create_topic(struct log *lg, struct log_topic *t, uint32_t partitions,
				  const struct weir_kafka_setting *settings, bool *created, struct weir_diag **dg)
{
	enum weir_err err =
		weir_kafka_topic_create(lg->admin, t->name, partitions, settings, created, &t->partitions, dg);
	if (err == WEIR_OK && *created)
		weir_kafka_client_say(lg->admin, 6, "made topic %s with %u partitions", t->name, t->partitions);
	return err;
}

/* The producer that writes it learns of a topic that is there. */
static enum weir_err know_topic(struct log *lg, uint32_t number, struct weir_diag **dg)
{
	const struct log_topic *t = &lg->topics[number];
	enum weir_err err = limit_batches(lg, t, dg);
	if (err != WEIR_OK)
		return err;
	return t->in_transaction ? weir_txn_topic(lg->tx, number, t->name, t->compression, dg)
				 : weir_results_topic(lg->results, number, t->name, t->compression, dg);
}

static enum weir_err open_topic(struct log *lg, struct log_topic *t, const struct weir_topic_spec *spec,
				struct weir_diag **dg)
{
	bool created = false;
	enum weir_err err = spec->must_exist ? weir_kafka_client_await_topic(lg->admin, t->name, &t->partitions, dg)
					     : weir_kafka_client_partitions(lg->admin, t->name, &t->partitions, dg);
	if (err == WEIR_OK && t->partitions == 0 && spec->must_exist)
		err = weir_diag_set(dg, WEIR_E_CONF, "no topic %s on %s, and topics.create is false", t->name,
				    weir_kafka_client_brokers(lg->admin));
	if (err == WEIR_OK && t->partitions == 0 && t->kind != WEIR_TOPIC_CHANGELOG) {
		t->unmade = true;
		t->partitions = spec->partitions;
		return WEIR_OK;
	}
	if (err == WEIR_OK && t->partitions == 0) {
		err = create_topic(lg, t, spec->partitions, weir_kafka_changelog_settings, &created, dg);
	} else if (err == WEIR_OK) {
		err = weir_kafka_topic_wait(lg->admin, t->name, &t->partitions, dg);
	}
	if (err == WEIR_OK && spec->partitions_fixed && t->partitions != spec->partitions)
		err = weir_diag_set(dg, WEIR_E_CONF, "topic %s has %u partitions, wanted are %u", t->name,
				    t->partitions, spec->partitions);
	lg->base.used |= err == WEIR_OK && !created && t->kind == WEIR_TOPIC_CHANGELOG;
	return err == WEIR_OK && !created ? check_settings(lg, t, dg) : err;
}

/* Results older than this are deleted as they come. */
static void set_old(struct log_topic *t)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (t->retention_ms > 0)
		t->old_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - t->retention_ms;
}

static enum weir_err log_topic(struct weir_log *base, const struct weir_topic_spec *spec, uint32_t *topic,
			       uint32_t *partitions, struct weir_diag **dg)
{
	struct log *lg = log_of(base);
	for (uint32_t i = 0; i < lg->topic_count; i++)
		if (strcmp(lg->topics[i].name, spec->name) == 0) {
			*topic = i;
			*partitions = lg->topics[i].partitions;
			return WEIR_OK;
		}
	lg->topics = weir_xrealloc(lg->topics, (lg->topic_count + 1) * sizeof *lg->topics);
	struct log_topic *t = &lg->topics[lg->topic_count];
	*t = (struct log_topic){.name = weir_xstrdup(spec->name),
				.kind = spec->kind,
				.keyless = spec->keyless,
				.partitions = spec->partitions,
				.compression = spec->compression,
				.batch_bytes_max = INT64_MAX,
				.retention_ms = -1,
				.old_ms = INT64_MIN};
	uint32_t number = lg->topic_count++;
	t->absent =
		spec->kind == WEIR_TOPIC_CHANGELOG && lg->spec.stateless && lg->spec.input != NULL && !lg->spec.fenced;
	t->in_transaction =
		spec->kind == WEIR_TOPIC_CHANGELOG || spec->kind == WEIR_TOPIC_REPARTITION || lg->results == NULL;
	enum weir_err err = WEIR_OK;
	if (!t->absent) {
		err = open_topic(lg, t, spec, dg);
		if (err == WEIR_OK && !t->unmade)
			err = know_topic(lg, number, dg);
	}
	if (err == WEIR_OK && t->kind == WEIR_TOPIC_CHANGELOG && !t->absent)
		err = reader_of(lg, dg);
	if (err == WEIR_OK && t->kind == WEIR_TOPIC_CHANGELOG && !t->absent)
		weir_changelog_reader_warm(lg->reader, t->name);
	if (err == WEIR_OK && t->kind == WEIR_TOPIC_CHANGELOG && !t->absent && lg->spec.standby != NULL)
		weir_standby_topic(lg->spec.standby, t->name, t->partitions);
	if (err == WEIR_OK && t->kind == WEIR_TOPIC_CHANGELOG && lg->spec.fenced && lg->fence_count == 0) {
		lg->fence_topic = number;
		lg->fence_count = t->partitions;
		lg->fence_end = weir_xcalloc(t->partitions, sizeof *lg->fence_end);
		lg->fence_marked = weir_xcalloc(t->partitions, sizeof *lg->fence_marked);
		weir_txn_watch(lg->tx, number, lg->fence_end);
	}
	set_old(t);
	*topic = number;
	*partitions = t->partitions;
	return err;
}

static enum weir_err log_make(struct weir_log *base, struct weir_diag **dg)
{
	struct log *lg = log_of(base);
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < lg->topic_count && err == WEIR_OK; i++) {
		struct log_topic *t = &lg->topics[i];
		uint32_t wanted = t->partitions;
		bool created;
		if (!t->unmade)
			continue;
		err = create_topic(lg, t, wanted, result_settings, &created, dg);
		/* Rows have been told where they go by the number that was wanted. */
		if (err == WEIR_OK && t->partitions != wanted)
			err = weir_diag_set(dg, WEIR_E_UNAVAILABLE,
					    "topic %s was made by somebody else meanwhile, with %u partitions and not "
					    "%u: a new start takes it as it is",
					    t->name, t->partitions, wanted);
		if (err == WEIR_OK && !created)
			err = check_settings(lg, t, dg);
		if (err == WEIR_OK)
			err = know_topic(lg, i, dg);
		set_old(t);
		t->unmade = err != WEIR_OK;
	}
	return err;
}

/* ---- appending ---- */

static enum weir_err append_transaction(struct log *lg, uint32_t topic, uint32_t partition, const struct weir_out *r,
					struct weir_diag **dg)
{
	struct weir_frame alone = {.r = *r, .topic = topic, .partition = partition};
	struct weir_frame *f = lg->frames_lost ? NULL : weir_frames_add(&lg->frames, topic, partition, r);
	if (f == NULL) {
		lg->frames_lost = true;
		f = &alone;
	}
	struct weir_txn_trouble why;
	if (weir_txn_put(lg->tx, f, f == &alone, &why) == WEIR_TXN_OK)
		return WEIR_OK;
	bool committed;
	return recover(lg, &why, false, &committed, dg);
}

static enum weir_err append_later(struct log *lg, uint32_t topic, uint32_t partition, const struct weir_out *r,
				  struct weir_diag **dg)
{
	if (weir_frames_add(&lg->later[lg->later_now], topic, partition, r) != NULL)
		return WEIR_OK;
	return weir_diag_set(dg, WEIR_E_STATE,
			     "the results of one epoch, which at_most_once keeps until it is committed, take more than "
			     "%" PRIu64 " MB: set commit.interval.ms lower or memory.max higher",
			     lg->later[0].bytes_max >> 20);
}

static void warn_old(struct log *lg, struct log_topic *t, int64_t timestamp)
{
	char text[WEIR_KAFKA_TOPIC_OLD_MAX];
	weir_kafka_client_say(lg->admin, 4, "%s", weir_kafka_topic_old(text, t->name, t->retention_ms, timestamp));
	t->old_ms = INT64_MIN;
	t->retention_ms = -1;
}

static enum weir_err log_append(struct weir_log *base, uint32_t topic, uint32_t partition, const struct weir_out *r,
				struct weir_diag **dg)
{
	struct log *lg = log_of(base);
	if (WEIR_UNLIKELY(lg->failed != WEIR_OK || lg->fenced))
		return failed_before(lg, dg);
	struct log_topic *t = &lg->topics[topic];
	if (t->absent)
		return WEIR_OK;
	WEIR_DASSERT(partition < t->partitions);
	if (WEIR_UNLIKELY(r->timestamp < t->old_ms && r->timestamp > 0))
		warn_old(lg, t, r->timestamp);
	enum weir_err err = t->in_transaction ? append_transaction(lg, topic, partition, r, dg)
			    : lg->spec.guarantee == WEIR_AT_MOST_ONCE
				    ? append_later(lg, topic, partition, r, dg)
				    : weir_results_put(lg->results, topic, partition, r, true, dg);
	return WEIR_LIKELY(err == WEIR_OK) ? WEIR_OK : fail(lg, err, dg);
}

static enum weir_err log_cut(struct weir_log *base, struct weir_diag **dg)
{
	struct log *lg = log_of(base);
	if (lg->failed != WEIR_OK || lg->fenced)
		return failed_before(lg, dg);
	if (lg->tx != NULL)
		weir_txn_poll(lg->tx);
	return lg->results != NULL ? fail(lg, weir_results_poll(lg->results, dg), dg) : WEIR_OK;
}

/* ---- committing ---- */

static void forget_offsets(struct log *lg)
{
	if (lg->offsets != NULL)
		rd_kafka_topic_partition_list_destroy(lg->offsets);
	lg->offsets = NULL;
}

/* Which offset does not matter, only that there is one; for those who look at the group it is the changelog's end
 * (end_fence). */
static void fence_offsets(struct log *lg, const struct weir_commit_input *inputs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *name = lg->topics[lg->fence_topic].name;
		int32_t p = (int32_t)inputs[i].changelog_partition;
		if (rd_kafka_topic_partition_list_find(lg->offsets, name, p) == NULL)
			rd_kafka_topic_partition_list_add(lg->offsets, name, p)->offset = lg->fence_end[p];
	}
}

static enum weir_err log_offsets(struct weir_log *base, const struct weir_commit_input *inputs, uint32_t count,
				 struct weir_diag **dg)
{
	struct log *lg = log_of(base);
	if (lg->failed != WEIR_OK || lg->fenced)
		return failed_before(lg, dg);
	forget_offsets(lg);
	if (lg->spec.input == NULL)
		return WEIR_OK;
	lg->offsets = rd_kafka_topic_partition_list_new((int)count);
	if (lg->spec.fenced)
		fence_offsets(lg, inputs, count);
	for (uint32_t i = 0; i < count && !lg->spec.fenced; i++)
		if (inputs[i].offset >= 0)
			rd_kafka_topic_partition_list_add(lg->offsets, inputs[i].topic, (int32_t)inputs[i].partition)
				->offset = inputs[i].offset;
	return WEIR_OK;
}

/* The changelog as it will be: with what this transaction wrote, and the marker that ends it. */
static void end_fence(struct log *lg)
{
	weir_txn_flush(lg->tx);
	for (int i = 0; i < lg->offsets->cnt; i++) {
		int32_t p = lg->offsets->elems[i].partition;
		if (lg->fence_end[p] > lg->fence_marked[p])
			lg->fence_end[p]++;
		lg->fence_marked[p] = lg->fence_end[p];
		lg->offsets->elems[i].offset = lg->fence_end[p];
	}
}

/* Each offset carries the epoch as its metadata. */
static void mark_offsets(struct log *lg, uint64_t epoch)
{
	char text[24];
	int bytes = snprintf(text, sizeof text, "%" PRIu64, epoch);
	for (int i = 0; lg->offsets != NULL && i < lg->offsets->cnt; i++) {
		rd_kafka_topic_partition_t *tp = &lg->offsets->elems[i];
		free(tp->metadata);
		tp->metadata = weir_xstrdup(text);
		tp->metadata_size = (size_t)bytes;
	}
}

/* A cooperative member goes on while its group moves to another generation, so a commit may be too late by a moment,
 * for the generation only: what it is about is still ours, because nothing leaves us before the session has ended.
 * Waits until librdkafka knows the next generation. False: we are out of the group. */
static bool await_generation(struct log *lg, int32_t refused)
{
	rd_kafka_t *member = weir_kafka_input_handle(lg->spec.input);
	int64_t end = weir_kafka_now_ms() + weir_kafka_input_session_ms(lg->spec.input);
	while (!stopped(lg) && weir_kafka_now_ms() < end) {
		int32_t now = weir_kafka_generation(member);
		if (rd_kafka_assignment_lost(member) || now < 0 || !weir_kafka_input_is_same_member(lg->spec.input))
			return false;
		if (now != refused)
			return true;
		weir_kafka_client_poll(lg->admin, GENERATION_MS);
	}
	return false;
}

static enum weir_err commit_transaction(struct log *lg, struct weir_diag **dg)
{
	bool cooperative = lg->spec.input != NULL && weir_kafka_input_cooperative(lg->spec.input);
	for (;;) {
		struct weir_txn_trouble why;
		int32_t generation = cooperative ? weir_kafka_generation(weir_kafka_input_handle(lg->spec.input)) : -1;
		bool doubt = false, committed = false;
		enum weir_txn_result res = WEIR_TXN_OK;
		if (lg->spec.fenced && lg->offsets != NULL)
			end_fence(lg);
		if (lg->offsets != NULL && lg->offsets->cnt > 0)
			res = weir_txn_send_offsets(lg->tx, lg->offsets, weir_kafka_input_handle(lg->spec.input), &why);
		if (res == WEIR_TXN_OK && cooperative && !weir_kafka_input_is_same_member(lg->spec.input)) {
			why = (struct weir_txn_trouble){.result = WEIR_TXN_FENCED,
							.code = RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID};
			snprintf(why.text, sizeof why.text, "the group took this instance for gone");
			res = why.result;
		}
		if (res == WEIR_TXN_OK)
			res = weir_txn_commit(lg->tx, &doubt, &why);
		if (res == WEIR_TXN_OK)
			return WEIR_OK;
		if (cooperative && why.code == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION && !why.fatal &&
		    await_generation(lg, generation)) {
			why.result = WEIR_TXN_REBUILD;
			why.awaited = true;
		}
		enum weir_err err = recover(lg, &why, doubt, &committed, dg);
		if (err != WEIR_OK || committed)
			return err;
	}
}

/* The answer to an offset commit, or its time-out. */
static rd_kafka_resp_err_t commit_answer(struct log *lg)
{
	rd_kafka_event_t *ev = rd_kafka_queue_poll(lg->commits, COMMIT_TRIES_MS);
	if (ev == NULL)
		return RD_KAFKA_RESP_ERR__TIMED_OUT;
	rd_kafka_resp_err_t code = rd_kafka_event_error(ev);
	const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(ev);
	for (int i = 0; code == 0 && list != NULL && i < list->cnt; i++)
		code = list->elems[i].err;
	rd_kafka_event_destroy(ev);
	return code;
}

/* Offsets alone, by the group. */
static enum weir_err commit_group(struct log *lg, struct weir_diag **dg)
{
	if (lg->offsets == NULL || lg->offsets->cnt == 0)
		return WEIR_OK;
	for (int64_t said = weir_kafka_now_ms();;) {
		rd_kafka_t *member = weir_kafka_input_handle(lg->spec.input);
		rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(member);
		rd_kafka_resp_err_t code = group != NULL && weir_kafka_is_member(member, group)
						   ? RD_KAFKA_RESP_ERR_NO_ERROR
						   : RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
		if (group != NULL)
			rd_kafka_consumer_group_metadata_destroy(group);
		if (lg->commits == NULL)
			lg->commits = rd_kafka_queue_new(member);
		if (code == 0)
			code = rd_kafka_commit_queue(member, lg->offsets, lg->commits, NULL, NULL);
		if (code == 0)
			code = commit_answer(lg);
		if (code == 0 || code == RD_KAFKA_RESP_ERR__NO_OFFSET)
			return WEIR_OK;
		if (weir_txn_judge(code) == WEIR_TXN_FENCED) {
			lg->fenced = true;
			return weir_diag_set(dg, WEIR_E_FENCED,
					     "the group gave this instance's partitions to another one (%s)",
					     rd_kafka_err2str(code));
		}
		if (!weir_kafka_err_is_retriable(code))
			return weir_kafka_fail(dg, code, NULL, "committing offsets of group %s", lg->app);
		/* A late answer to this try must not be taken for one to the next. */
		rd_kafka_queue_destroy(lg->commits);
		lg->commits = NULL;
		if (stopped(lg))
			return weir_diag_set(dg, WEIR_E_STOPPED, "stopped while committing offsets");
		if (weir_kafka_now_ms() - said >= SAY_MS) {
			said = weir_kafka_now_ms();
			weir_kafka_client_say(lg->admin, 4, "still waiting for group %s to take a commit: %s", lg->app,
					      rd_kafka_err2str(code));
		}
		weir_kafka_client_poll(lg->admin, 100);
	}
}

static enum weir_err put_later(void *ctx, struct weir_frame *f, struct weir_diag **dg)
{
	struct log *lg = ctx;
	return weir_results_put(lg->results, f->topic, f->partition, &f->r, false, dg);
}

static enum weir_err commit(struct log *lg, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	if (lg->results != NULL)
		err = weir_results_settle(lg->results, -1, dg);
	if (err == WEIR_OK && lg->spec.guarantee == WEIR_AT_MOST_ONCE)
		weir_frames_reset(&lg->later[!lg->later_now]);
	if (err == WEIR_OK)
		err = lg->transactional ? commit_transaction(lg, dg) : commit_group(lg, dg);
	if (err != WEIR_OK || lg->spec.guarantee != WEIR_AT_MOST_ONCE)
		return err;
	struct weir_frames *now = &lg->later[lg->later_now];
	lg->later_now = !lg->later_now;
	return weir_frames_each(now, put_later, lg, dg);
}

static bool is_repartition(const struct log *lg, const char *name)
{
	for (uint32_t i = 0; i < lg->topic_count; i++)
		if (lg->topics[i].kind == WEIR_TOPIC_REPARTITION && strcmp(lg->topics[i].name, name) == 0)
			return true;
	return false;
}

/* Records of repartition topics that are read and committed have done their work. Nobody waits for the answer; what is
 * not deleted now is the next time. */
static void delete_read(struct log *lg)
{
	int64_t now = weir_kafka_now_ms();
	if (lg->offsets == NULL || now - lg->deleted_ms < PURGE_MS)
		return;
	lg->deleted_ms = now;
	rd_kafka_t *rk = weir_kafka_client_handle(lg->admin);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(lg->offsets->cnt);
	for (int i = 0; i < lg->offsets->cnt; i++) {
		const rd_kafka_topic_partition_t *tp = &lg->offsets->elems[i];
		if (tp->offset > 0 && is_repartition(lg, tp->topic))
			rd_kafka_topic_partition_list_add(list, tp->topic, tp->partition)->offset = tp->offset;
	}
	if (list->cnt > 0) {
		if (lg->deletions == NULL)
			lg->deletions = rd_kafka_queue_new(rk);
		for (rd_kafka_event_t *ev; (ev = rd_kafka_queue_poll(lg->deletions, 0)) != NULL;) {
			if (rd_kafka_event_error(ev) != 0)
				weir_kafka_client_say(lg->admin, 5, "deleting what was read of repartition topics: %s",
						      rd_kafka_event_error_string(ev));
			rd_kafka_event_destroy(ev);
		}
		rd_kafka_DeleteRecords_t *what = rd_kafka_DeleteRecords_new(list);
		rd_kafka_DeleteRecords(rk, &what, 1, NULL, lg->deletions);
		rd_kafka_DeleteRecords_destroy(what);
	}
	rd_kafka_topic_partition_list_destroy(list);
}

static enum weir_err log_commit(struct weir_log *base, uint64_t epoch, struct weir_diag **dg)
{
	struct log *lg = log_of(base);
	if (lg->failed != WEIR_OK || lg->fenced)
		return failed_before(lg, dg);
	if (lg->reader != NULL)
		weir_changelog_reader_rest(lg->reader);
	mark_offsets(lg, epoch);
	enum weir_err err = WEIR_OK;
	for (uint32_t c = 0; err == WEIR_OK && c < lg->cluster_count; c++)
		err = weir_kafka_growth_check(lg->clusters[c].growth, COUNT_MS, dg);
	if (err == WEIR_OK)
		err = commit(lg, dg);
	if (err != WEIR_OK)
		return fail(lg, err, dg);
	lg->epoch = epoch;
	weir_frames_reset(&lg->frames);
	lg->frames_lost = false;
	delete_read(lg);
	forget_offsets(lg);
	for (uint32_t i = 0; i < lg->topic_count; i++)
		set_old(&lg->topics[i]);
	return WEIR_OK;
}

static enum weir_err log_drop(struct weir_log *base, struct weir_diag **dg)
{
	struct log *lg = log_of(base);
	if (lg->failed != WEIR_OK)
		return failed_before(lg, dg);
	lg->fenced = false;
	lg->base.used = true; /* what was sent of the epoch stays */
	enum weir_err err = WEIR_OK;
	if (lg->tx != NULL && !weir_txn_abort(lg->tx)) {
		struct weir_txn_trouble why = {.result = WEIR_TXN_REBUILD, .awaited = true, .text = "it was given up"};
		err = weir_txn_rebuild(lg->tx, &why, dg);
	}
	if (err == WEIR_OK && lg->results != NULL && lg->spec.guarantee != WEIR_AT_MOST_ONCE)
		err = weir_results_drop(lg->results, dg);
	weir_frames_reset(&lg->frames);
	lg->frames_lost = false;
	weir_frames_reset(&lg->later[lg->later_now]);
	forget_offsets(lg);
	if (lg->reader != NULL)
		weir_changelog_reader_rest(lg->reader);
	return fail(lg, err, dg);
}

/* ---- reading ---- */

/* How long others' transactions may be open. */
static int64_t open_ms(const struct log *lg)
{
	if (lg->open_ms != 0)
		return lg->open_ms;
	return (lg->tx != NULL ? weir_txn_timeout_ms(lg->tx) : TIMEOUT_MS) + BROKER_SCAN_MS;
}

/* A partition is read twice. */
static void note_restore(struct log *lg, uint32_t topic, uint32_t partition)
{
	if (lg->restore.partitions == 0)
		lg->restore.began_ms = weir_kafka_now_ms();
	if (lg->restore.partitions == 0 || lg->restore.topic != topic || lg->restore.partition != partition)
		lg->restore.partitions++;
	lg->restore.topic = topic;
	lg->restore.partition = partition;
}

static enum weir_err log_read(struct weir_log *base, uint32_t topic, uint32_t partition,
			      enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
			      void *ctx, struct weir_diag **dg)
{
	struct log *lg = log_of(base);
	if (lg->topics[topic].absent)
		return WEIR_OK;
	enum weir_err err = reader_of(lg, dg);
	if (err != WEIR_OK)
		return err;
	int64_t most_ms = open_ms(lg);
	bool done = false;
	uint64_t bytes = 0;
	note_restore(lg, topic, partition);
	if (lg->open_ms == 0)
		weir_changelog_reader_set_alive(lg->reader, lg->spec.alive, lg->spec.alive_ctx);
	if (lg->spec.standby != NULL)
		err = weir_standby_read(lg->spec.standby, lg->reader, lg->topics[topic].name, partition, most_ms, each,
					ctx, &done, &bytes, dg);
	if (err == WEIR_OK && !done)
		err = weir_changelog_reader_read(lg->reader, lg->topics[topic].name, partition, most_ms, each, ctx, dg);
	weir_changelog_reader_set_alive(lg->reader, NULL, NULL);
	if (err == WEIR_OK && !done && lg->fence_end != NULL && topic == lg->fence_topic)
		lg->fence_end[partition] = lg->fence_marked[partition] =
			weir_max_i64(lg->fence_end[partition], weir_changelog_reader_end(lg->reader));
	lg->restore.standby += bytes;
	lg->restore.fetched += weir_changelog_reader_fetched(lg->reader);
	return err;
}

static void log_expect(struct weir_log *base, uint32_t topic, uint32_t partition)
{
	struct log *lg = log_of(base);
	if (lg->reader != NULL && !lg->topics[topic].absent &&
	    (lg->spec.standby == NULL || !weir_standby_has(lg->spec.standby, lg->topics[topic].name, partition)))
		weir_changelog_reader_expect(lg->reader, lg->topics[topic].name, partition);
}

static void log_restored(struct weir_log *base)
{
	struct log *lg = log_of(base);
	if (lg->reader != NULL)
		weir_changelog_reader_rest(lg->reader);
	if (lg->spec.standby != NULL)
		weir_standby_release(lg->spec.standby);
	if (lg->restore.fetched + lg->restore.standby != 0)
		weir_kafka_client_say(lg->admin, 6,
				      "restored from %" PRIu64 " changelog partitions in %lld ms: %" PRIu64
				      " bytes read, %" PRIu64 " bytes followed before",
				      lg->restore.partitions, (long long)(weir_kafka_now_ms() - lg->restore.began_ms),
				      lg->restore.fetched, lg->restore.standby);
	memset(&lg->restore, 0, sizeof lg->restore);
}

static uint64_t log_epoch(const struct weir_log *base)
{
	return ((const struct log *)base)->epoch;
}

/* ---- life ---- */

static void log_close(struct weir_log *base)
{
	struct log *lg = log_of(base);
	if (lg == NULL)
		return;
	/* at_most_once: the last epoch's results are on their way. */
	if (lg->results != NULL && lg->failed == WEIR_OK && lg->spec.guarantee == WEIR_AT_MOST_ONCE) {
		struct weir_diag *dg = NULL;
		if (weir_results_settle(lg->results, CLOSE_MS, &dg) != WEIR_OK)
			weir_diag_destroy(dg);
	}
	weir_results_destroy(lg->results);
	weir_txn_destroy(lg->tx);
	weir_changelog_reader_destroy(lg->reader);
	if (lg->commits != NULL)
		rd_kafka_queue_destroy(lg->commits);
	if (lg->deletions != NULL)
		rd_kafka_queue_destroy(lg->deletions);
	forget_offsets(lg);
	for (uint32_t c = 0; c < lg->cluster_count; c++) {
		weir_kafka_growth_destroy(lg->clusters[c].growth);
		if (lg->clusters[c].admin != lg->admin)
			weir_kafka_client_destroy(lg->clusters[c].admin);
	}
	free(lg->clusters);
	free(lg->fence_end);
	free(lg->fence_marked);
	weir_kafka_client_destroy(lg->admin);
	weir_frames_fini(&lg->frames);
	weir_frames_fini(&lg->later[0]);
	weir_frames_fini(&lg->later[1]);
	for (uint32_t i = 0; i < lg->topic_count; i++)
		free(lg->topics[i].name);
	free(lg->topics);
	if (lg->claim_fd >= 0)
		close(lg->claim_fd);
	free(lg->failed_text);
	free(lg->app);
	free(lg->id);
	free(lg);
}

static const struct weir_log_ops log_ops = {.topic = log_topic,
					    .make = log_make,
					    .append = log_append,
					    .cut = log_cut,
					    .commit = log_commit,
					    .offsets = log_offsets,
					    .drop = log_drop,
					    .expect = log_expect,
					    .restored = log_restored,
					    .read = log_read,
					    .epoch = log_epoch,
					    .close = log_close};

/* PREFIX-INSTANCE, where the instance is the static member's name, or the host's with a number. */
static enum weir_err claim_id(struct log *lg, struct weir_diag **dg)
{
	const char *prefix = user_property(lg->cf, "transactional.id");
	const char *instance = user_property(lg->cf, "group.instance.id");
	char id[512], host[128] = "localhost";
	if (prefix == NULL || *prefix == 0)
		prefix = lg->app;
	if (instance != NULL && *instance != 0) {
		snprintf(id, sizeof id, "%s-%s", prefix, instance);
	} else {
		uint32_t n;
		enum weir_err err = weir_kafka_claim(lg->app, &n, &lg->claim_fd, dg);
		if (err != WEIR_OK)
			return err;
		if (gethostname(host, sizeof host - 1) != 0 || host[0] == 0)
			snprintf(host, sizeof host, "localhost");
		snprintf(id, sizeof id, "%s-%s-%u", prefix, host, n);
	}
	lg->id = weir_xstrdup(id);
	return WEIR_OK;
}

/* Until a broker answers: broker_wait_ms, or for ever, saying so. */
static enum weir_err wait_for_brokers(struct log *lg, struct weir_diag **dg)
{
	int64_t began = weir_kafka_now_ms(), said = began;
	for (;;) {
		struct weir_diag *why = NULL;
		const struct rd_kafka_metadata *md;
		int64_t left =
			lg->spec.broker_wait_ms < 0 ? INT64_MAX : began + lg->spec.broker_wait_ms - weir_kafka_now_ms();
		enum weir_err err = weir_kafka_client_metadata(
			lg->admin, NULL, left < WAIT_SLICE_MS ? (left > 0 ? left : 1) : WAIT_SLICE_MS, &md, &why);
		if (err == WEIR_OK) {
			rd_kafka_metadata_destroy(md);
			return WEIR_OK;
		}
		if (err == WEIR_E_UNAVAILABLE && stopped(lg))
			err = weir_diag_set(dg, WEIR_E_STOPPED, "stopped while waiting for %s",
					    weir_kafka_client_brokers(lg->admin));
		else if (err != WEIR_E_UNAVAILABLE || left <= WAIT_SLICE_MS) {
			(void)weir_diag_set(dg, err, "%s", weir_diag_text(why));
			if (dg != NULL && err == WEIR_E_UNAVAILABLE)
				weir_diag_mark_retriable(*dg);
		} else {
			if (weir_kafka_now_ms() - said >= SAY_MS) {
				said = weir_kafka_now_ms();
				weir_kafka_client_say(lg->admin, 4, "still waiting: %s", weir_diag_text(why));
			}
			err = WEIR_OK;
		}
		weir_diag_destroy(why);
		if (err != WEIR_OK)
			return err;
	}
}

static enum weir_err open_producers(struct log *lg, struct weir_diag **dg)
{
	const char *timeout = user_property(lg->cf, "transaction.timeout.ms");
	int64_t floor = lg->spec.guarantee == WEIR_EXACTLY_ONCE ? 3 * lg->spec.commit_ms : 0;
	enum weir_err err = WEIR_OK;
	if (lg->transactional) {
		struct weir_txn_conf conf = {.cf = lg->cf,
					     .log = &lg->log,
					     .timeout_ms = timeout != NULL      ? strtoll(timeout, NULL, 10)
							   : floor > TIMEOUT_MS ? floor
										: TIMEOUT_MS,
					     .stop = lg->spec.stop};
		err = claim_id(lg, dg);
		conf.id = lg->id;
		if (err == WEIR_OK)
			err = weir_txn_create(&lg->tx, &conf, dg);
		if (err == WEIR_OK)
			err = weir_txn_start(lg->tx, lg->spec.broker_wait_ms, dg);
	}
	if (err == WEIR_OK && lg->spec.guarantee != WEIR_EXACTLY_ONCE) {
		struct weir_results_conf conf = {.cf = lg->cf,
						 .log = &lg->log,
						 .once = lg->spec.guarantee == WEIR_AT_MOST_ONCE,
						 .stop = lg->spec.stop};
		err = weir_results_create(&lg->results, &conf, dg);
	}
	return err;
}

/* Its partitions are counted before every commit, on its own cluster. */
static enum weir_err count_source(struct log *lg, const struct weir_kafka_log_source *so, struct weir_diag **dg)
{
	uint32_t c = 0;
	while (c < lg->cluster_count && lg->clusters[c].cf != so->cf)
		c++;
	if (c == lg->cluster_count) {
		struct weir_kafka_client *admin = lg->admin;
		enum weir_err err = WEIR_OK;
		if (so->cf != lg->cf)
			err = weir_kafka_client_create(&admin, so->cf, WEIR_KAFKA_ADMIN, NULL, &lg->log, dg);
		if (err != WEIR_OK)
			return err;
		lg->clusters = weir_xrealloc(lg->clusters, (c + 1) * sizeof *lg->clusters);
		lg->clusters[lg->cluster_count++] =
			(struct log_cluster){so->cf, admin, weir_kafka_growth_create(admin, lg->app)};
	}
	weir_kafka_growth_add(lg->clusters[c].growth, so->topic, so->partitions);
	return WEIR_OK;
}

enum weir_err weir_kafka_log_open(struct weir_log **out, const struct weir_conf *cf,
				  const struct weir_kafka_log_spec *spec, const struct weir_kafka_log *log,
				  struct weir_diag **dg)
{
	struct weir_settings st;
	enum weir_err err = weir_conf_settings(cf, &st, dg);
	if (err != WEIR_OK)
		return err;
	struct log *lg = weir_xcalloc(1, sizeof *lg);
	lg->base.ops = &log_ops;
	lg->base.early = spec->guarantee == WEIR_AT_LEAST_ONCE;
	lg->cf = cf;
	if (log != NULL)
		lg->log = *log;
	lg->spec = *spec;
	lg->app = weir_xstrdup(spec->app);
	lg->claim_fd = -1;
	lg->transactional = spec->guarantee == WEIR_EXACTLY_ONCE || !spec->stateless || spec->input == NULL ||
			    spec->fenced || weir_kafka_input_cooperative(spec->input);
	uint64_t keep = st.memory_max / 8;
	if (keep < (uint64_t)KEEP_MB_MIN << 20)
		keep = (uint64_t)KEEP_MB_MIN << 20;
	lg->frames.bytes_max = lg->later[0].bytes_max = lg->later[1].bytes_max = keep;
	err = weir_kafka_client_create(&lg->admin, cf, WEIR_KAFKA_ADMIN, NULL, &lg->log, dg);
	for (uint32_t i = 0; err == WEIR_OK && i < spec->source_count; i++)
		err = count_source(lg, &spec->sources[i], dg);
	if (err == WEIR_OK)
		err = wait_for_brokers(lg, dg);
	if (err == WEIR_OK)
		err = open_producers(lg, dg);
	if (err != WEIR_OK) {
		log_close(&lg->base);
		return err;
	}
	*out = &lg->base;
	return WEIR_OK;
}

enum weir_err weir_kafka_log_aside(struct weir_log **out, struct weir_log *base, const _Atomic bool *stop,
				   struct weir_diag **dg)
{
	const struct log *of = log_of(base);
	struct log *lg = weir_xcalloc(1, sizeof *lg);
	lg->base.ops = &log_ops;
	lg->cf = of->cf;
	lg->log = of->log;
	lg->spec = of->spec;
	lg->spec.stop = stop;
	lg->app = weir_xstrdup(of->app);
	lg->claim_fd = -1;
	lg->frames.bytes_max = of->frames.bytes_max;
	lg->open_ms = open_ms(of);
	lg->topics = weir_xcalloc(of->topic_count + 1, sizeof *lg->topics);
	for (; lg->topic_count < of->topic_count; lg->topic_count++) {
		lg->topics[lg->topic_count] = of->topics[lg->topic_count];
		lg->topics[lg->topic_count].name = weir_xstrdup(of->topics[lg->topic_count].name);
	}
	enum weir_err err = weir_kafka_client_create(&lg->admin, lg->cf, WEIR_KAFKA_ADMIN, NULL, &lg->log, dg);
	if (err != WEIR_OK) {
		log_close(&lg->base);
		return err;
	}
	*out = &lg->base;
	return WEIR_OK;
}
