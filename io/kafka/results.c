/* results.c: results by a plain idempotent producer (results.h). @thread snap, init; delivery reports come on it too,
 * out of polls. */
#include "io/kafka/results.h"

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/headers.h"

enum { POLL_EVERY = 1000, SETTLE_MS = 200, SAY_MS = 10000, BACKOFF_MS = 200, BACKOFF_MS_MAX = 5000, BREAKS_MAX = 10 };

struct weir_results {
	struct weir_results_conf conf;
	struct weir_kafka_client *kc;
	char **topics;
	rd_kafka_topic_t **rkts;
	uint32_t topic_count;
	uint64_t put, acked; /* of this handle; acked counts what came back as well */
	uint64_t seq;
	uint64_t given_up, given_up_said;
	struct weir_frames back;     /* came back unacknowledged, to be sent again */
	struct weir_buf headers;     /* scratch */
	rd_kafka_resp_err_t refused; /* for good; sticks */
	char refused_topic[128];
	bool broken; /* the handle is of no more use */
	bool dropping;
	uint32_t breaks; /* in a row, without an acknowledgement between */
};

/* ---- delivery ---- */

/* Not for the record's sake, but for the handle's, the connection's or the time's. */
static bool may_pass(rd_kafka_resp_err_t code)
{
	switch ((int)code) {
	case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
	case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
	case RD_KAFKA_RESP_ERR__FATAL:
	case RD_KAFKA_RESP_ERR__STATE:
	case RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
	case RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER:
	case RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID:
	case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
	case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING:
	case RD_KAFKA_RESP_ERR_INVALID_MSG: /* a batch was damaged on its way */
		return true;
	default:
		return weir_kafka_err_is_retriable(code);
	}
}

static const char *topic_of(const struct weir_results *rs, const rd_kafka_message_t *m, uint32_t *topic)
{
	for (*topic = 0; *topic < rs->topic_count; ++*topic)
		if (rs->rkts[*topic] == m->rkt)
			return rs->topics[*topic];
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
		rs->breaks = 0;
		return;
	}
	uint32_t topic;
	if (rs->dropping)
		return;
	if (rs->conf.once) {
		rs->given_up++;
	} else if (may_pass(m->err)) {
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
	return weir_kafka_client_create_producer(&rs->kc, rs->conf.cf, NULL, rs->conf.once ? forced : for_ever,
						 on_delivery, rs, rs->conf.log, dg);
}

static void close_handle(struct weir_results *rs)
{
	if (rs->kc == NULL)
		return;
	if (rs->acked < rs->put) {
		rd_kafka_t *rk = weir_kafka_client_handle(rs->kc);
		(void)rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		for (int64_t end = weir_kafka_now_ms() + 5000; rs->acked < rs->put && weir_kafka_now_ms() < end;)
			(void)rd_kafka_flush(rk, SETTLE_MS);
	}
	for (uint32_t i = 0; i < rs->topic_count; i++)
		if (rs->rkts[i] != NULL) {
			rd_kafka_topic_destroy(rs->rkts[i]);
			rs->rkts[i] = NULL;
		}
	weir_kafka_client_destroy(rs->kc);
	rs->kc = NULL;
}

static enum weir_err know_topic(struct weir_results *rs, uint32_t i, struct weir_diag **dg)
{
	if (rs->topics[i] == NULL || rs->rkts[i] != NULL)
		return WEIR_OK;
	rs->rkts[i] = rd_kafka_topic_new(weir_kafka_client_handle(rs->kc), rs->topics[i], NULL);
	if (rs->rkts[i] == NULL)
		return weir_kafka_fail(dg, rd_kafka_last_error(), NULL, "topic %s", rs->topics[i]);
	const struct rd_kafka_metadata *md; /* else the first record waits a second for them */
	if (rd_kafka_metadata(weir_kafka_client_handle(rs->kc), 0, rs->rkts[i], &md, 2000) == 0)
		rd_kafka_metadata_destroy(md);
	return WEIR_OK;
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
	for (uint32_t i = 0; i < rs->topic_count; i++)
		free(rs->topics[i]);
	free(rs->topics);
	free(rs->rkts);
	weir_frames_fini(&rs->back);
	weir_buf_fini(&rs->headers);
	free(rs);
}

enum weir_err weir_results_topic(struct weir_results *rs, uint32_t number, const char *name, struct weir_diag **dg)
{
	if (number >= rs->topic_count) {
		rs->topics = weir_xrealloc(rs->topics, (number + 1) * sizeof *rs->topics);
		rs->rkts = weir_xrealloc(rs->rkts, (number + 1) * sizeof *rs->rkts);
		for (; rs->topic_count <= number; rs->topic_count++) {
			rs->topics[rs->topic_count] = NULL;
			rs->rkts[rs->topic_count] = NULL;
		}
	}
	rs->topics[number] = weir_xstrdup(name);
	return know_topic(rs, number, dg);
}

static bool stopped(const struct weir_results *rs)
{
	return rs->conf.stop != NULL && atomic_load_explicit(rs->conf.stop, memory_order_relaxed);
}

/* ---- sending ---- */

/* Cost beside librdkafka's own: nothing worth measuring (bench/pipelines/kafka_produce). */
static rd_kafka_error_t *produce(struct weir_results *rs, uint32_t topic, uint32_t partition, const struct weir_out *r,
				 rd_kafka_headers_t *hs, int flags)
{
	rd_kafka_vu_t vus[8] = {
		{.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = rs->rkts[topic]},
		{.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = (int32_t)partition},
		{.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = flags},
		{.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = (void *)(uintptr_t)rs->seq},
		{.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)r->key.data, r->key.bytes}},
		{.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)r->value.data, r->value.bytes}},
	};
	size_t n = 6;
	if (r->timestamp > 0) /* 0 means now to librdkafka */
		vus[n++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = r->timestamp};
	if (hs != NULL)
		vus[n++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = hs};
	return rd_kafka_produceva(weir_kafka_client_handle(rs->kc), vus, n);
}

static enum weir_err refusal(struct weir_results *rs, struct weir_diag **dg)
{
	return weir_kafka_fail(dg, rs->refused, NULL, "writing topic %s", rs->refused_topic);
}

/* Tries once. *full: poll and try again. */
static enum weir_err offer(struct weir_results *rs, uint32_t topic, uint32_t partition, const struct weir_out *r,
			   int flags, bool *full, struct weir_diag **dg)
{
	rd_kafka_headers_t *hs = NULL;
	*full = false;
	if (r->header_count != 0 && (hs = weir_kafka_headers_decode(r)) == NULL)
		return weir_diag_set(dg, WEIR_E_CORRUPT, "topic %s: a record's headers are malformed",
				     rs->topics[topic]);
	rd_kafka_error_t *e = produce(rs, topic, partition, r, hs, flags);
	if (e == NULL) {
		rs->put++;
		rs->seq++;
		return WEIR_OK;
	}
	if (hs != NULL)
		rd_kafka_headers_destroy(hs);
	rd_kafka_resp_err_t code = rd_kafka_error_code(e);
	if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL || may_pass(code)) {
		*full = true;
		rs->broken |= code != RD_KAFKA_RESP_ERR__QUEUE_FULL;
		rd_kafka_error_destroy(e);
		return WEIR_OK;
	}
	char what[300];
	snprintf(what, sizeof what, "writing topic %s: a record of %zu bytes", rs->topics[topic],
		 r->key.bytes + r->value.bytes);
	return weir_kafka_fail_error(dg, e, what);
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

static enum weir_err send_again(struct weir_results *rs, struct weir_diag **dg)
{
	struct weir_frames back = rs->back; /* what comes back meanwhile is collected anew */
	memset(&rs->back, 0, sizeof rs->back);
	struct collect c = {.frames = weir_xcalloc(back.count + 1, sizeof *c.frames)};
	enum weir_err err = weir_frames_each(&back, collect, &c, dg);
	qsort(c.frames, c.count, sizeof *c.frames, compare_frames);
	for (size_t i = 0; i < c.count && err == WEIR_OK; i++) {
		const struct weir_frame *f = c.frames[i];
		bool full = false;
		do {
			if (rs->broken) { /* once more: the rest waits its turn with what came back */
				struct weir_frame *again = weir_frames_add(&rs->back, f->topic, f->partition, &f->r);
				again->seq = rs->seq++;
				break;
			}
			err = offer(rs, f->topic, f->partition, &f->r, RD_KAFKA_MSG_F_COPY, &full, dg);
			if (full)
				weir_kafka_client_poll(rs->kc, 20);
		} while (err == WEIR_OK && full && !stopped(rs));
	}
	free(c.frames);
	weir_frames_fini(&back);
	return err;
}

static enum weir_err replace(struct weir_results *rs, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	while (rs->broken && err == WEIR_OK && rs->refused == 0 && !stopped(rs)) {
		char why[256] = "";
		rd_kafka_resp_err_t code = rd_kafka_fatal_error(weir_kafka_client_handle(rs->kc), why, sizeof why);
		if (++rs->breaks > BREAKS_MAX)
			return weir_kafka_fail(dg, code != 0 ? code : RD_KAFKA_RESP_ERR__FATAL, why,
					       "results are refused again and again");
		close_handle(rs); /* everything unacknowledged comes back */
		weir_kafka_log_say(rs->conf.log, 4, "the results' producer is replaced (%s); %llu records go again",
				   *why ? why : "records were not delivered", (unsigned long long)rs->back.count);
		err = open_handle(rs, dg);
		for (uint32_t i = 0; i < rs->topic_count && err == WEIR_OK; i++)
			err = know_topic(rs, i, dg);
		int64_t wait = rs->breaks < 2 ? 0 : BACKOFF_MS << (rs->breaks - 2);
		for (int64_t end = weir_kafka_now_ms() + (wait > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : wait);
		     err == WEIR_OK && weir_kafka_now_ms() < end && !stopped(rs);)
			weir_kafka_client_poll(rs->kc, 50);
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
	if (!rs->broken && rd_kafka_fatal_error(weir_kafka_client_handle(rs->kc), NULL, 0) != 0)
		rs->broken = true;
	if (rs->broken) {
		enum weir_err err = replace(rs, dg);
		return err == WEIR_OK && rs->refused != 0 ? refusal(rs, dg) : err;
	}
	return weir_kafka_client_check(rs->kc, dg);
}

enum weir_err weir_results_poll(struct weir_results *rs, struct weir_diag **dg)
{
	weir_kafka_client_poll(rs->kc, 0);
	return tend(rs, dg);
}

static enum weir_err waits(struct weir_results *rs, int64_t *said, struct weir_diag **dg)
{
	int64_t now = weir_kafka_now_ms();
	if (stopped(rs))
		return weir_diag_set(dg, WEIR_E_STOPPED, "stopped while results were waiting for their brokers");
	if (*said == 0)
		*said = now;
	if (now - *said < SAY_MS)
		return WEIR_OK;
	*said = now;
	weir_kafka_client_say(rs->kc, 4, "still waiting for %s: %llu results are not acknowledged",
			      weir_kafka_client_brokers(rs->kc), (unsigned long long)(rs->put - rs->acked));
	return WEIR_OK;
}

enum weir_err weir_results_put(struct weir_results *rs, uint32_t topic, uint32_t partition, const struct weir_out *r,
			       bool copy, struct weir_diag **dg)
{
	bool full = false;
	int64_t said = 0;
	enum weir_err err;
	do {
		err = offer(rs, topic, partition, r, copy ? RD_KAFKA_MSG_F_COPY : 0, &full, dg);
		if (err != WEIR_OK || !full)
			break;
		weir_kafka_client_poll(rs->kc, 100);
		err = tend(rs, dg);
		if (err == WEIR_OK)
			err = waits(rs, &said, dg);
	} while (err == WEIR_OK);
	if (err == WEIR_OK && rs->put % POLL_EVERY == 0)
		err = weir_results_poll(rs, dg);
	return err;
}

enum weir_err weir_results_settle(struct weir_results *rs, struct weir_diag **dg)
{
	int64_t said = 0;
	enum weir_err err = weir_results_poll(rs, dg);
	while (err == WEIR_OK && rs->acked < rs->put) {
		(void)rd_kafka_flush(weir_kafka_client_handle(rs->kc), SETTLE_MS);
		err = tend(rs, dg);
		if (err == WEIR_OK && rs->acked < rs->put)
			err = waits(rs, &said, dg);
	}
	return err;
}

enum weir_err weir_results_drop(struct weir_results *rs, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	if (rs->acked < rs->put) {
		rs->dropping = true;
		close_handle(rs);
		rs->dropping = false;
		err = open_handle(rs, dg);
		for (uint32_t i = 0; i < rs->topic_count && err == WEIR_OK; i++)
			err = know_topic(rs, i, dg);
	}
	weir_frames_reset(&rs->back);
	return err;
}

uint64_t weir_results_given_up(const struct weir_results *rs)
{
	return rs->given_up;
}
