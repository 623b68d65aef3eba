/* results.c: results by a plain idempotent producer (results.h). @thread snap, init; delivery reports come on it too,
 * out of polls. */
#include "io/kafka/results.h"

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/headers.h"
#include "io/kafka/producer.h"
#include "io/kafka/transaction.h"

enum { POLL_EVERY = 1000, SETTLE_MS = 200, SAY_MS = 10000, STOP_MS = 3000, PURGE_MS = 5000 };

struct weir_results {
	struct weir_results_conf conf;
	struct weir_producer pr;
	uint64_t put, acked; /* of this handle; acked counts what came back as well */
	uint64_t delivered;  /* of all handles */
	uint64_t seq;
	uint64_t given_up, given_up_said;
	struct weir_frames back;     /* came back unacknowledged, to be sent again */
	struct weir_buf headers;     /* scratch */
	rd_kafka_resp_err_t refused; /* for good; sticks */
	char refused_topic[128];
	bool broken; /* the handle is of no more use */
	bool dropping;
	rd_kafka_resp_err_t broken_by;
	struct weir_patience patience;
};

/* ---- delivery ---- */

/* Not for the record's sake, but for the handle's, the connection's or the time's. */
static bool may_pass(rd_kafka_resp_err_t code)
{
	return weir_txn_judge(code) == WEIR_TXN_REBUILD;
}

static const char *topic_of(const struct weir_results *rs, const rd_kafka_message_t *m, uint32_t *topic)
{
	for (*topic = 0; *topic < rs->pr.topic_count; ++*topic)
		if (rs->pr.topics[*topic].rkt == m->rkt)
			return rs->pr.topics[*topic].name;
	return "";
}

static void come_back(struct weir_results *rs, const rd_kafka_message_t *m, uint32_t topic)
{
	struct weir_record headers = {0};
	rd_kafka_timestamp_type_t type;
	weir_kafka_headers_encode(m, &rs->headers, &headers);
	struct weir_out r = {.key = {m->key, m->key_len},
			     .value = {m->payload, m->len},
			     .headers = headers.headers,
			     .headers_bytes = headers.headers_bytes,
			     .header_count = headers.header_count,
			     .timestamp = rd_kafka_message_timestamp(m, &type)};
	struct weir_frame *f = weir_frames_add(&rs->back, topic, (uint32_t)m->partition, &r);
	f->seq = (uint64_t)(uintptr_t)m->_private; /* no bound is set: never NULL; the producer's queue bounds it */
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
	struct weir_results *rs = weir_kafka_client_user(opaque);
	(void)rk;
	rs->acked++;
	if (m->err == 0) {
		rs->delivered++;
		return;
	}
	uint32_t topic;
	if (rs->dropping)
		return;
	if (rs->conf.once) {
		rs->given_up++;
	} else if (may_pass(m->err)) {
		bool purged = m->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || m->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
		if (!rs->broken && !purged)
			rs->broken_by = m->err;
		rs->broken = true;
		(void)topic_of(rs, m, &topic);
		come_back(rs, m, topic);
		return;
	}
	if (!may_pass(m->err) && rs->refused == 0) {
		rs->refused = m->err;
		snprintf(rs->refused_topic, sizeof rs->refused_topic, "%s", topic_of(rs, m, &topic));
	}
}

/* ---- the handle ---- */

static enum weir_err open_handle(struct weir_results *rs, struct weir_diag **dg)
{
	static const struct weir_kafka_setting forced[] = {{"transactional.id", NULL}, {NULL, NULL}};
	/* A record that timed out while a later one of its partition went through could not be sent again. */
	static const struct weir_kafka_setting for_ever[] = {
		{"transactional.id", NULL}, {"message.timeout.ms", "0"}, {NULL, NULL}};
	rs->put = rs->acked = 0;
	rs->broken = false;
	return weir_producer_open(&rs->pr, rs->conf.cf, weir_producer_queue, rs->conf.once ? forced : for_ever,
				  on_delivery, rs, rs->conf.log, dg);
}

static void close_handle(struct weir_results *rs)
{
	if (rs->pr.kc == NULL)
		return;
	if (rs->acked < rs->put) {
		rd_kafka_t *rk = weir_producer_handle(&rs->pr);
		(void)rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		for (int64_t end = weir_kafka_now_ms() + PURGE_MS; rs->acked < rs->put && weir_kafka_now_ms() < end;)
			(void)rd_kafka_flush(rk, SETTLE_MS);
	}
	weir_producer_close(&rs->pr);
}

enum weir_err weir_results_create(struct weir_results **out, const struct weir_results_conf *conf,
				  struct weir_diag **dg)
{
	struct weir_results *rs = weir_xcalloc(1, sizeof *rs);
	rs->conf = *conf;
	enum weir_err err = open_handle(rs, dg);
	if (err != WEIR_OK) {
		weir_results_destroy(rs);
		return err;
	}
	*out = rs;
	return WEIR_OK;
}

void weir_results_destroy(struct weir_results *rs)
{
	if (rs == NULL)
		return;
	rs->dropping = true;
	close_handle(rs);
	weir_producer_fini(&rs->pr);
	weir_frames_fini(&rs->back);
	weir_buf_fini(&rs->headers);
	free(rs);
}

enum weir_err weir_results_topic(struct weir_results *rs, uint32_t number, const char *name, const char *compression,
				 struct weir_diag **dg)
{
	return weir_producer_topic(&rs->pr, number, name, compression, dg);
}

enum weir_err weir_results_limit(struct weir_results *rs, int64_t batch_bytes, struct weir_diag **dg)
{
	if (!weir_producer_limit(&rs->pr, batch_bytes))
		return WEIR_OK;
	close_handle(rs);
	enum weir_err err = open_handle(rs, dg);
	return err == WEIR_OK ? weir_producer_know(&rs->pr, dg) : err;
}

static bool stopped(const struct weir_results *rs)
{
	return rs->conf.stop != NULL && atomic_load_explicit(rs->conf.stop, memory_order_relaxed);
}

/* ---- sending ---- */

static enum weir_err refusal(struct weir_results *rs, struct weir_diag **dg)
{
	return weir_kafka_fail(dg, rs->refused, NULL, "writing topic %s", rs->refused_topic);
}

/* Tries once. *full: poll and try again. */
static enum weir_err offer(struct weir_results *rs, uint32_t topic, uint32_t partition, const struct weir_out *r,
			   int flags, bool *full, struct weir_diag **dg)
{
	*full = false;
	rd_kafka_resp_err_t code = weir_producer_put(&rs->pr, topic, partition, r, (void *)(uintptr_t)rs->seq, flags);
	if (WEIR_LIKELY(code == RD_KAFKA_RESP_ERR_NO_ERROR)) {
		rs->put++;
		rs->seq++;
		return WEIR_OK;
	}
	if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL || may_pass(code)) {
		*full = true;
		rs->broken |= code != RD_KAFKA_RESP_ERR__QUEUE_FULL;
		return WEIR_OK;
	}
	return weir_kafka_fail(dg, code, NULL, "writing topic %s: a record of %zu bytes", rs->pr.topics[topic].name,
			       r->key.bytes + r->value.bytes);
}

struct wait {
	int64_t end_ms; /* INT64_MAX: no bound */
	int64_t said_ms;
	int64_t moved_ms;
	uint64_t delivered;
};

static struct wait wait_of(const struct weir_results *rs, int64_t wait_ms)
{
	int64_t now = weir_kafka_now_ms();
	return (struct wait){wait_ms < 0 ? INT64_MAX : now + wait_ms, now, now, rs->delivered};
}

/* Whether to go on waiting. A stop gives what is moving the time to end. */
static enum weir_err waits(struct weir_results *rs, struct wait *w, struct weir_diag **dg)
{
	int64_t now = weir_kafka_now_ms();
	if (rs->delivered != w->delivered)
		w->moved_ms = now;
	w->delivered = rs->delivered;
	if (now >= w->end_ms || (stopped(rs) && now - w->moved_ms >= STOP_MS))
		return weir_diag_set(dg, WEIR_E_STOPPED, "stopped while %llu results were not acknowledged by %s",
				     (unsigned long long)(rs->put - rs->acked), weir_kafka_client_brokers(rs->pr.kc));
	if (now - w->said_ms < SAY_MS)
		return WEIR_OK;
	w->said_ms = now;
	weir_kafka_client_say(rs->pr.kc, 4, "still waiting for %s: %llu results are not acknowledged",
			      weir_kafka_client_brokers(rs->pr.kc), (unsigned long long)(rs->put - rs->acked));
	return WEIR_OK;
}

static int compare_frames(const void *a, const void *b)
{
	const struct weir_frame *const *x = a, *const *y = b;
	return (*x)->seq < (*y)->seq ? -1 : (*x)->seq > (*y)->seq;
}

struct collect {
	struct weir_frame **frames;
	size_t count;
};

static enum weir_err collect(void *ctx, struct weir_frame *f, struct weir_diag **dg)
{
	struct collect *c = ctx;
	(void)dg;
	c->frames[c->count++] = f;
	return WEIR_OK;
}

/* One record once more. Where the handle breaks again, the rest waits its turn with what has come back. */
static enum weir_err send_frame(struct weir_results *rs, const struct weir_frame *f, struct wait *w,
				struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (bool full = true; err == WEIR_OK && full;) {
		if (rs->broken) {
			struct weir_frame *again = weir_frames_add(&rs->back, f->topic, f->partition, &f->r);
			again->seq = rs->seq++;
			return WEIR_OK;
		}
		err = offer(rs, f->topic, f->partition, &f->r, RD_KAFKA_MSG_F_COPY, &full, dg);
		if (err == WEIR_OK && full) {
			weir_kafka_client_poll(rs->pr.kc, 20);
			err = waits(rs, w, dg);
		}
	}
	return err;
}

static enum weir_err send_again(struct weir_results *rs, struct weir_diag **dg)
{
	struct weir_frames back = rs->back; /* what comes back meanwhile is collected anew */
	memset(&rs->back, 0, sizeof rs->back);
	struct collect c = {.frames = weir_xcalloc(back.count + 1, sizeof *c.frames)};
	struct wait w = wait_of(rs, -1);
	enum weir_err err = weir_frames_each(&back, collect, &c, dg);
	qsort(c.frames, c.count, sizeof *c.frames, compare_frames);
	for (size_t i = 0; i < c.count && err == WEIR_OK; i++)
		err = send_frame(rs, c.frames[i], &w, dg);
	free(c.frames);
	weir_frames_fini(&back);
	return err;
}

static enum weir_err replace(struct weir_results *rs, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	while (rs->broken && err == WEIR_OK && rs->refused == 0) {
		char why[256] = "";
		rd_kafka_resp_err_t code = rd_kafka_fatal_error(weir_producer_handle(&rs->pr), why, sizeof why);
		if (code == 0)
			code = rs->broken_by;
		if (*why == 0)
			snprintf(why, sizeof why, "%s", rd_kafka_err2str(code));
		if (!weir_kafka_err_is_retriable(code) && !weir_patience_try(&rs->patience, WEIR_PATIENCE_MAX))
			return weir_diag_set(dg, WEIR_E_IO, "results are refused again and again: %s", why);
		close_handle(rs); /* everything unacknowledged comes back */
		weir_kafka_log_say(rs->conf.log, 4, "the results' producer starts over (%s); %llu records go again",
				   why, (unsigned long long)rs->back.count);
		weir_patience_pause(&rs->patience, rs->conf.stop);
		err = open_handle(rs, dg);
		if (err == WEIR_OK)
			err = weir_producer_know(&rs->pr, dg);
		if (err == WEIR_OK)
			err = send_again(rs, dg);
	}
	return err;
}

static enum weir_err tend(struct weir_results *rs, struct weir_diag **dg)
{
	if (rs->given_up > rs->given_up_said) {
		weir_kafka_log_say(rs->conf.log, 4, "%llu results were given up: not acknowledged in time, or refused",
				   (unsigned long long)(rs->given_up - rs->given_up_said));
		rs->given_up_said = rs->given_up;
	}
	if (rs->refused != 0)
		return refusal(rs, dg);
	if (!rs->broken && rd_kafka_fatal_error(weir_producer_handle(&rs->pr), NULL, 0) != 0)
		rs->broken = true;
	if (rs->broken) {
		enum weir_err err = replace(rs, dg);
		return err == WEIR_OK && rs->refused != 0 ? refusal(rs, dg) : err;
	}
	return weir_kafka_client_check(rs->pr.kc, dg);
}

enum weir_err weir_results_poll(struct weir_results *rs, struct weir_diag **dg)
{
	weir_kafka_client_poll(rs->pr.kc, 0);
	return tend(rs, dg);
}

/* The queue was full, or the handle broke. */
static enum weir_err put_slowly(struct weir_results *rs, uint32_t topic, uint32_t partition, const struct weir_out *r,
				int flags, struct weir_diag **dg)
{
	struct wait w = wait_of(rs, -1);
	enum weir_err err = WEIR_OK;
	for (bool full = true; err == WEIR_OK && full;) {
		weir_kafka_client_poll(rs->pr.kc, 20);
		err = tend(rs, dg);
		if (err == WEIR_OK)
			err = offer(rs, topic, partition, r, flags, &full, dg);
		if (err == WEIR_OK && full)
			err = waits(rs, &w, dg);
	}
	return err;
}

enum weir_err weir_results_put(struct weir_results *rs, uint32_t topic, uint32_t partition, const struct weir_out *r,
			       bool copy, struct weir_diag **dg)
{
	int flags = copy ? RD_KAFKA_MSG_F_COPY : 0;
	bool full;
	enum weir_err err = offer(rs, topic, partition, r, flags, &full, dg);
	if (WEIR_UNLIKELY(err == WEIR_OK && full))
		err = put_slowly(rs, topic, partition, r, flags, dg);
	if (err == WEIR_OK && rs->put % POLL_EVERY == 0)
		err = weir_results_poll(rs, dg);
	return err;
}

enum weir_err weir_results_settle(struct weir_results *rs, int64_t wait_ms, struct weir_diag **dg)
{
	struct wait w = wait_of(rs, wait_ms);
	enum weir_err err = weir_results_poll(rs, dg);
	while (err == WEIR_OK && (rs->acked < rs->put || rs->broken)) {
		(void)rd_kafka_flush(weir_producer_handle(&rs->pr), SETTLE_MS);
		err = tend(rs, dg);
		if (err == WEIR_OK && (rs->acked < rs->put || rs->broken))
			err = waits(rs, &w, dg);
	}
	return err;
}

enum weir_err weir_results_drop(struct weir_results *rs, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	weir_kafka_client_poll(rs->pr.kc, 0);
	if (rs->acked < rs->put) {
		rs->dropping = true;
		close_handle(rs);
		rs->dropping = false;
		err = open_handle(rs, dg);
		if (err == WEIR_OK)
			err = weir_producer_know(&rs->pr, dg);
	}
	weir_frames_reset(&rs->back);
	return err;
}

uint64_t weir_results_given_up(const struct weir_results *rs)
{
	return rs->given_up;
}
