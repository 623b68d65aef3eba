/* transaction.h: the transactional producer of an instance, and what becomes of each of its errors. A handle that is in
 * doubt is never mended but replaced: init of the next one ends the predecessor's transaction. Included inside
 * io/kafka/ (and tests) only. @thread snap, init
 *
 *   open -> { begin -> put ... -> send_offsets -> commit } ... -> close
 *   any of these may answer WEIR_TXN_REBUILD: rebuild, then find out whether the epoch is there, then begin again */
#ifndef WEIR_IO_KAFKA_TRANSACTION_H
#define WEIR_IO_KAFKA_TRANSACTION_H

#include "io/kafka/client.h"
#include "io/kafka/frames.h"

enum weir_txn_result {
	WEIR_TXN_OK,
	WEIR_TXN_REBUILD, /* a new handle may do better */
	WEIR_TXN_FENCED,  /* the group gave our partitions to somebody else */
	WEIR_TXN_STOP     /* nobody can mend it but a person */
};
/* What a failed call means. @thread any */
enum weir_txn_result weir_txn_judge(rd_kafka_resp_err_t code);

struct weir_txn_trouble {
	enum weir_txn_result result;
	rd_kafka_resp_err_t code;
	bool late;    /* the transaction's time was over, or no answer came in time */
	bool awaited; /* a state of the cluster that passes: no reason to give up, however often it comes */
	bool fatal;   /* to the handle */
	char text[512];
};

struct weir_txn_conf {
	const struct weir_conf *cf;
	const struct weir_kafka_log *log;
	const char *id;
	int64_t timeout_ms; /* transaction.timeout.ms; grows by rebuilds after time-outs */
	const _Atomic bool *stop;
};
struct weir_txn;
/* The handle alone; rebuild or start connects. */
WEIR_MUST_CHECK enum weir_err weir_txn_create(struct weir_txn **out, const struct weir_txn_conf *conf,
					      struct weir_diag **dg);
void weir_txn_destroy(struct weir_txn *tx); /* aborts what is open, within seconds. NULL is fine */
/* Initialises the handle: resolves what the predecessor left. Waits as long as it takes and says for what, until stop
 * is set (WEIR_E_STOPPED); wait_ms >= 0 bounds it (WEIR_E_UNAVAILABLE). WEIR_E_CONF: refused for good. */
WEIR_MUST_CHECK enum weir_err weir_txn_start(struct weir_txn *tx, int64_t wait_ms, struct weir_diag **dg);
/* Replaces the handle after trouble and starts the new one. WEIR_E_IO and others: it came to nothing too often. */
WEIR_MUST_CHECK enum weir_err weir_txn_rebuild(struct weir_txn *tx, const struct weir_txn_trouble *why,
					       struct weir_diag **dg);
/* A topic to write, by the caller's number; its metadata are fetched before the first record. */
WEIR_MUST_CHECK enum weir_err weir_txn_topic(struct weir_txn *tx, uint32_t number, const char *name,
					     const char *compression, struct weir_diag **dg);
/* Before the first record: batches are no larger than this. */
WEIR_MUST_CHECK enum weir_err weir_txn_limit(struct weir_txn *tx, int64_t batch_bytes, struct weir_diag **dg);
/* A record into the transaction, which begins with it. f must stay where it is until commit or rebuild, unless copy. */
enum weir_txn_result weir_txn_put(struct weir_txn *tx, const struct weir_frame *f, bool copy,
				  struct weir_txn_trouble *why);
/* Whether the group still counts member as one of its own, by the metadata just taken. @thread any */
bool weir_kafka_is_member(rd_kafka_t *member, const rd_kafka_consumer_group_metadata_t *group);
/* The generation that member is in, -1: none, or it cannot be told. @thread any */
int32_t weir_kafka_generation(rd_kafka_t *member);
/* Serves delivery reports. */
void weir_txn_poll(struct weir_txn *tx);
/* Waits a second at most until what was put is acknowledged: whether it is, the commit says. */
void weir_txn_flush(struct weir_txn *tx);
/* The group's metadata are taken from member, a consumer's handle. */
enum weir_txn_result weir_txn_send_offsets(struct weir_txn *tx, const rd_kafka_topic_partition_list_t *offsets,
					   rd_kafka_t *member, struct weir_txn_trouble *why);
/* Nothing was begun: fine. *doubt: after an error, whether it may be committed all the same. */
enum weir_txn_result weir_txn_commit(struct weir_txn *tx, bool *doubt, struct weir_txn_trouble *why);
/* Gives up the open transaction; false where the handle is of no more use (rebuild it). */
bool weir_txn_abort(struct weir_txn *tx);
/* Keeps end[partition] behind what is acknowledged of a topic. Before the first record; end outlives tx. */
void weir_txn_watch(struct weir_txn *tx, uint32_t topic, int64_t *end);
bool weir_txn_is_open(const struct weir_txn *tx);
int64_t weir_txn_timeout_ms(const struct weir_txn *tx);
/* Where a record of the open (or just failed) transaction lies, to look for after a doubtful commit. False: none was
 * acknowledged. */
bool weir_txn_last_record(const struct weir_txn *tx, uint32_t *topic, uint32_t *partition, int64_t *offset);

#endif
