/* transaction.c: begins, fills and commits transactions; classifies errors; replaces handles (transaction.h).
 * @thread snap, init; delivery reports come on it too, out of polls. */
#include "io/kafka/transaction.h"

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/producer.h"

enum {
	INIT_MS = 2500,     /* one call of init_transactions, between looks at stop */
	SAY_MS = 10000,     /* how often a wait is explained */
	FLUSH_MS = 1000,    /* a transaction that has failed keeps what is queued for longer */
	OFFSETS_MS = 10000, /* librdkafka does not keep to it while the group's coordinator is away */
	ABORT_MS = 5000,
	TIMEOUT_MS_MAX = 900000, /* brokers' transaction.max.timeout.ms */
	POLL_EVERY = 1000,
	FATAL_MAX = 3 /* fatal errors in a minute that were no time-outs: the last ends it */
};

struct weir_txn {
	struct weir_txn_conf conf;
	char *id;
	struct weir_producer pr;
	bool open;
	int64_t open_ms; /* when it was begun */
	uint64_t put, polled;
	rd_kafka_resp_err_t refused; /* the first record that was not taken */
	/* The last acknowledged record of the transaction. */
	bool last_known;
	int32_t last_partition;
	int64_t last_offset;
	uint32_t last_topic;
	uint32_t watched_topic;
	int64_t *watched_end; /* NULL: none is watched */
	struct weir_patience fatal, other;
};

/* ---- errors ---- */

enum weir_txn_result weir_txn_judge(rd_kafka_resp_err_t code)
{
	switch ((int)code) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		return WEIR_TXN_OK;
	case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
	case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
		return WEIR_TXN_FENCED;
	/* A topic that a broker does not know yet, or a name server's moment. */
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
	case RD_KAFKA_RESP_ERR__RESOLVE:
	case RD_KAFKA_RESP_ERR_INVALID_REQUEST:
	case RD_KAFKA_RESP_ERR__INVALID_ARG:
		return WEIR_TXN_REBUILD;
	case RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE:
		return WEIR_TXN_STOP;
	default:
		break;
	}
	enum weir_err err = weir_kafka_err(code);
	return err == WEIR_E_CONF || err == WEIR_E_RECORD ? WEIR_TXN_STOP : WEIR_TXN_REBUILD;
}

/* Coordinators do not say whether a time-out or a twin fenced us; the clock does. */
static bool is_late(const struct weir_txn *tx, rd_kafka_resp_err_t code)
{
	bool over = tx->open && weir_kafka_now_ms() - tx->open_ms >= tx->conf.timeout_ms;
	return over || code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT ||
	       code == RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE;
}

/* The transaction has failed already and takes nothing any more; only a commit, which is refused too, says why. */
static rd_kafka_resp_err_t reveal(struct weir_txn *tx, char *text, size_t bytes)
{
	rd_kafka_error_t *e = rd_kafka_commit_transaction(weir_producer_handle(&tx->pr), (int)tx->conf.timeout_ms);
	rd_kafka_resp_err_t code = e != NULL ? rd_kafka_error_code(e) : RD_KAFKA_RESP_ERR__STATE;
	snprintf(text, bytes, "%s", e != NULL ? rd_kafka_error_string(e) : rd_kafka_err2str(code));
	if (e != NULL)
		rd_kafka_error_destroy(e);
	return code;
}

static enum weir_txn_result trouble(struct weir_txn *tx, const char *what, rd_kafka_resp_err_t code, const char *text,
				    struct weir_txn_trouble *why)
{
	char fatal_text[256] = "", cause[256];
	rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(weir_producer_handle(&tx->pr), fatal_text, sizeof fatal_text);
	if (code == RD_KAFKA_RESP_ERR__STATE && fatal == 0 && tx->open) {
		code = reveal(tx, cause, sizeof cause);
		text = cause;
		fatal = rd_kafka_fatal_error(weir_producer_handle(&tx->pr), fatal_text, sizeof fatal_text);
	}
	/* The first refusal is the cause, what comes behind only says that there was one. */
	if (fatal != 0) {
		code = fatal;
		text = fatal_text;
	} else if (tx->refused != 0 && weir_txn_judge(code) == WEIR_TXN_REBUILD) {
		code = tx->refused;
		text = rd_kafka_err2str(code);
	}
	memset(why, 0, sizeof *why);
	why->code = code;
	why->fatal = fatal != 0;
	why->late = is_late(tx, code);
	why->awaited = weir_kafka_err_is_retriable(code);
	why->result = weir_txn_judge(code);
	snprintf(why->text, sizeof why->text, "%s: %s", what, text != NULL && *text ? text : rd_kafka_err2str(code));
	return why->result;
}

static enum weir_txn_result trouble_of(struct weir_txn *tx, const char *what, rd_kafka_error_t *e,
				       struct weir_txn_trouble *why)
{
	enum weir_txn_result res = trouble(tx, what, rd_kafka_error_code(e), rd_kafka_error_string(e), why);
	rd_kafka_error_destroy(e);
	return res;
}

/* ---- the handle ---- */

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
	struct weir_txn *tx = weir_kafka_client_user(opaque);
	(void)rk;
	if (m->err == 0) {
		tx->last_known = m->offset >= 0;
		tx->last_partition = m->partition;
		tx->last_offset = m->offset;
		tx->last_topic = (uint32_t)(uintptr_t)m->_private;
		if (tx->watched_end != NULL && tx->last_topic == tx->watched_topic)
			tx->watched_end[m->partition] = weir_max_i64(tx->watched_end[m->partition], m->offset + 1);
		return;
	}
	bool purged = m->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || m->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
	if (tx->refused == 0 && !purged)
		tx->refused = m->err;
}

static enum weir_err open_handle(struct weir_txn *tx, struct weir_diag **dg)
{
	char timeout[24], message[24];
	/* A record may not outlive its transaction, else librdkafka refuses the configuration. */
	snprintf(timeout, sizeof timeout, "%lld", (long long)tx->conf.timeout_ms);
	snprintf(message, sizeof message, "%lld", (long long)(tx->conf.timeout_ms - tx->conf.timeout_ms / 10));
	const struct weir_kafka_setting extra[] = {
		weir_producer_queue[0], weir_producer_queue[1], {"retry.backoff.ms", "10"}, {NULL, NULL}};
	const struct weir_kafka_setting forced[] = {{"transactional.id", tx->id},
						    {"transaction.timeout.ms", timeout},
						    {"message.timeout.ms", message},
						    {NULL, NULL}};
	tx->open = false;
	tx->refused = 0;
	tx->last_known = false;
	return weir_producer_open(&tx->pr, tx->conf.cf, extra, forced, on_delivery, tx, tx->conf.log, dg);
}

static void close_handle(struct weir_txn *tx)
{
	weir_producer_close(&tx->pr);
	tx->open = false;
}

enum weir_err weir_txn_create(struct weir_txn **out, const struct weir_txn_conf *conf, struct weir_diag **dg)
{
	struct weir_txn *tx = weir_xcalloc(1, sizeof *tx);
	tx->conf = *conf;
	tx->id = weir_xstrdup(conf->id);
	enum weir_err err = open_handle(tx, dg);
	if (err != WEIR_OK) {
		weir_txn_destroy(tx);
		return err;
	}
	*out = tx;
	return WEIR_OK;
}

void weir_txn_destroy(struct weir_txn *tx)
{
	if (tx == NULL)
		return;
	if (tx->open)
		(void)weir_txn_abort(tx);
	weir_producer_fini(&tx->pr);
	free(tx->id);
	free(tx);
}

static bool stopped(const struct weir_txn *tx)
{
	return tx->conf.stop != NULL && atomic_load_explicit(tx->conf.stop, memory_order_relaxed);
}

/* One call; *again: it timed out and is to be called again. */
static enum weir_err init_once(struct weir_txn *tx, bool *again, struct weir_txn_trouble *why, struct weir_diag **dg)
{
	*again = false;
	rd_kafka_error_t *e = rd_kafka_init_transactions(weir_producer_handle(&tx->pr), INIT_MS);
	if (e == NULL)
		return WEIR_OK;
	bool fatal = rd_kafka_error_is_fatal(e) != 0, retriable = rd_kafka_error_is_retriable(e) != 0;
	enum weir_txn_result res = trouble_of(tx, "init_transactions", e, why);
	if (res == WEIR_TXN_STOP)
		return weir_kafka_fail(dg, why->code, why->text, "transactional id %s", tx->id);
	*again = retriable && !fatal;
	return *again ? weir_kafka_client_check(tx->pr.kc, dg) : WEIR_E_IO;
}

static enum weir_err init(struct weir_txn *tx, int64_t wait_ms, struct weir_txn_trouble *why, struct weir_diag **dg)
{
	int64_t began = weir_kafka_now_ms(), said = began;
	enum weir_err err = WEIR_OK;
	for (bool again = true; again && err == WEIR_OK;) {
		err = init_once(tx, &again, why, dg);
		if (err != WEIR_OK || !again)
			break;
		int64_t now = weir_kafka_now_ms();
		if (stopped(tx))
			err = weir_diag_set(dg, WEIR_E_STOPPED,
					    "stopped while waiting for the transaction coordinator");
		else if (wait_ms >= 0 && now - began >= wait_ms)
			err = weir_kafka_fail(dg, RD_KAFKA_RESP_ERR__TIMED_OUT, why->text, "transactional id %s",
					      tx->id);
		else if (now - said >= SAY_MS) {
			said = now;
			weir_kafka_client_say(tx->pr.kc, 4, "still waiting for the transaction coordinator at %s (%s)",
					      weir_kafka_client_brokers(tx->pr.kc), why->text);
		}
	}
	return err == WEIR_OK ? weir_producer_know(&tx->pr, dg) : err;
}

/* Whether it is worth another handle. */
static bool has_patience(struct weir_txn *tx, const struct weir_txn_trouble *why)
{
	if (why->late || (why->awaited && !why->fatal))
		return true;
	return why->fatal ? weir_patience_try(&tx->fatal, FATAL_MAX) : weir_patience_try(&tx->other, WEIR_PATIENCE_MAX);
}

enum weir_err weir_txn_start(struct weir_txn *tx, int64_t wait_ms, struct weir_diag **dg)
{
	struct weir_txn_trouble why = {0};
	enum weir_err err = init(tx, wait_ms, &why, dg);
	if (err != WEIR_OK && why.result == WEIR_TXN_REBUILD && why.fatal)
		return weir_txn_rebuild(tx, &why, dg);
	return err;
}

enum weir_err weir_txn_rebuild(struct weir_txn *tx, const struct weir_txn_trouble *first, struct weir_diag **dg)
{
	struct weir_txn_trouble why = *first;
	for (;;) {
		if (!has_patience(tx, &why))
			return weir_diag_set(dg, WEIR_E_IO, "transactions of %s fail again and again: %s%s", tx->id,
					     why.text,
					     weir_kafka_err(why.code) == WEIR_E_FENCED
						     ? ". Does another program use this transactional id?"
						     : "");
		if (why.late && tx->conf.timeout_ms < TIMEOUT_MS_MAX) {
			tx->conf.timeout_ms *= 2;
			if (tx->conf.timeout_ms > TIMEOUT_MS_MAX)
				tx->conf.timeout_ms = TIMEOUT_MS_MAX;
		}
		weir_kafka_client_say(tx->pr.kc, 4, "transaction of %s: %s; starting over", tx->id, why.text);
		weir_patience_pause(&tx->other, tx->conf.stop);
		close_handle(tx);
		enum weir_err err = open_handle(tx, dg);
		if (err != WEIR_OK)
			return err;
		memset(&why, 0, sizeof why);
		struct weir_diag *said = NULL;
		err = init(tx, -1, &why, &said);
		if (err == WEIR_OK || !why.fatal || why.result != WEIR_TXN_REBUILD || said != NULL) {
			if (err != WEIR_OK)
				(void)weir_diag_set(dg, err, "%s", said != NULL ? weir_diag_text(said) : why.text);
			weir_diag_destroy(said);
			return err;
		}
	}
}

enum weir_err weir_txn_topic(struct weir_txn *tx, uint32_t number, const char *name, const char *compression,
			     struct weir_diag **dg)
{
	return weir_producer_topic(&tx->pr, number, name, compression, dg);
}

enum weir_err weir_txn_limit(struct weir_txn *tx, int64_t batch_bytes, struct weir_diag **dg)
{
	if (!weir_producer_limit(&tx->pr, batch_bytes))
		return WEIR_OK;
	close_handle(tx);
	enum weir_err err = open_handle(tx, dg);
	return err == WEIR_OK ? weir_txn_start(tx, -1, dg) : err;
}

/* ---- transactions ---- */

static enum weir_txn_result begin(struct weir_txn *tx, struct weir_txn_trouble *why)
{
	if (tx->open)
		return WEIR_TXN_OK;
	tx->refused = 0;
	tx->last_known = false;
	rd_kafka_error_t *e = rd_kafka_begin_transaction(weir_producer_handle(&tx->pr));
	if (e != NULL)
		return trouble_of(tx, "begin_transaction", e, why);
	tx->open = true;
	tx->open_ms = weir_kafka_now_ms();
	return WEIR_TXN_OK;
}

enum weir_txn_result weir_txn_put(struct weir_txn *tx, const struct weir_frame *f, bool copy,
				  struct weir_txn_trouble *why)
{
	enum weir_txn_result res = begin(tx, why);
	if (res != WEIR_TXN_OK)
		return res;
	for (;;) {
		rd_kafka_resp_err_t code =
			weir_producer_put(&tx->pr, f->topic, f->partition, &f->r, (void *)(uintptr_t)f->topic,
					  copy ? RD_KAFKA_MSG_F_COPY : 0);
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
			break;
		if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
			char what[300];
			snprintf(what, sizeof what, "writing topic %s, a record of %zu bytes",
				 tx->pr.topics[f->topic].name, f->r.key.bytes + f->r.value.bytes);
			return trouble(tx, what, code, NULL, why);
		}
		/* Not for ever: what is queued is taken, or fails by message.timeout.ms. */
		weir_kafka_client_poll(tx->pr.kc, 100);
		if (tx->refused != 0)
			return trouble(tx, "writing", tx->refused, NULL, why);
	}
	if (++tx->put % POLL_EVERY == 0)
		weir_kafka_client_poll(tx->pr.kc, 0);
	return WEIR_TXN_OK;
}

void weir_txn_poll(struct weir_txn *tx)
{
	weir_kafka_client_poll(tx->pr.kc, 0);
}

void weir_txn_flush(struct weir_txn *tx)
{
	if (tx->open && tx->refused == 0)
		(void)rd_kafka_flush(weir_producer_handle(&tx->pr), FLUSH_MS);
}

/* The library's own form of the metadata: "CGMDv2:", the generation, names. False: it has another one. */
static bool generation_of(const rd_kafka_consumer_group_metadata_t *group, int32_t *generation)
{
	static const char magic[] = "CGMDv2:";
	void *data = NULL;
	size_t bytes = 0;
	bool known = false;
	rd_kafka_error_t *e = rd_kafka_consumer_group_metadata_write(group, &data, &bytes);
	if (e != NULL) {
		rd_kafka_error_destroy(e);
	} else {
		known = bytes >= sizeof magic - 1 + sizeof *generation && memcmp(data, magic, sizeof magic - 1) == 0;
		if (known)
			memcpy(generation, (const char *)data + sizeof magic - 1, sizeof *generation);
		rd_kafka_mem_free(NULL, data);
	}
	return known;
}

bool weir_kafka_is_member(rd_kafka_t *member, const rd_kafka_consumer_group_metadata_t *group)
{
	int32_t generation = -1;
	bool known = generation_of(group, &generation);
	char *id = rd_kafka_memberid(member);
	bool named = id != NULL && *id != 0;
	if (id != NULL)
		rd_kafka_mem_free(member, id);
	return named && (!known || generation >= 0);
}

int32_t weir_kafka_generation(rd_kafka_t *member)
{
	int32_t generation = -1;
	rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(member);
	if (group == NULL)
		return -1;
	if (!weir_kafka_is_member(member, group) || !generation_of(group, &generation))
		generation = -1;
	rd_kafka_consumer_group_metadata_destroy(group);
	return generation;
}

enum weir_txn_result weir_txn_send_offsets(struct weir_txn *tx, const rd_kafka_topic_partition_list_t *offsets,
					   rd_kafka_t *member, struct weir_txn_trouble *why)
{
	enum weir_txn_result res = begin(tx, why);
	if (res != WEIR_TXN_OK)
		return res;
	rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(member);
	/* Without a generation brokers take offsets from anybody: a member that the group has thrown out must not try.
	 */
	if (group == NULL || !weir_kafka_is_member(member, group)) {
		if (group != NULL)
			rd_kafka_consumer_group_metadata_destroy(group);
		return trouble(tx, "the consumer group", RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, NULL, why);
	}
	rd_kafka_error_t *e =
		rd_kafka_send_offsets_to_transaction(weir_producer_handle(&tx->pr), offsets, group, OFFSETS_MS);
	rd_kafka_consumer_group_metadata_destroy(group);
	return e != NULL ? trouble_of(tx, "sending offsets to the transaction", e, why) : WEIR_TXN_OK;
}

enum weir_txn_result weir_txn_commit(struct weir_txn *tx, bool *doubt, struct weir_txn_trouble *why)
{
	*doubt = false;
	if (!tx->open)
		return WEIR_TXN_OK;
	rd_kafka_error_t *e = rd_kafka_commit_transaction(weir_producer_handle(&tx->pr), (int)tx->conf.timeout_ms);
	if (e != NULL) {
		*doubt = true;
		return trouble_of(tx, "committing a transaction", e, why);
	}
	tx->open = false;
	return WEIR_TXN_OK;
}

bool weir_txn_abort(struct weir_txn *tx)
{
	if (!tx->open)
		return true;
	rd_kafka_error_t *e = rd_kafka_abort_transaction(weir_producer_handle(&tx->pr), ABORT_MS);
	if (e != NULL) {
		rd_kafka_error_destroy(e);
		return false;
	}
	tx->open = false;
	return true;
}

void weir_txn_watch(struct weir_txn *tx, uint32_t topic, int64_t *end)
{
	tx->watched_topic = topic;
	tx->watched_end = end;
}

bool weir_txn_is_open(const struct weir_txn *tx)
{
	return tx->open;
}

int64_t weir_txn_timeout_ms(const struct weir_txn *tx)
{
	return tx->conf.timeout_ms;
}

bool weir_txn_last_record(const struct weir_txn *tx, uint32_t *topic, uint32_t *partition, int64_t *offset)
{
	if (!tx->last_known)
		return false;
	*topic = tx->last_topic;
	*partition = (uint32_t)tx->last_partition;
	*offset = tx->last_offset;
	return true;
}
