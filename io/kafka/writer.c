/* writer.c: writes a topic by an idempotent producer; makes the topic where it is missing. @thread: the owner's;
 * delivery reports come on it too, out of polls. */
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/client.h"

enum { ADMIN_MS = 15000, POLL_EVERY = 1000 };

struct weir_kafka_writer {
	struct weir_kafka_client *kc;
	char *topic;
	rd_kafka_topic_t *rkt;
	uint32_t partitions;
	bool created;
	uint64_t put;
	uint64_t acked;
	enum weir_err failed; /* the first refusal; sticks */
	char why[512];
	rd_kafka_resp_err_t code;
};

/* ---- topics ---- */

static enum weir_err topic_result(rd_kafka_event_t *ev, const char *topic, bool *created, struct weir_diag **dg)
{
	size_t n = 0;
	if (rd_kafka_event_error(ev) != 0)
		return weir_kafka_fail(dg, rd_kafka_event_error(ev), rd_kafka_event_error_string(ev), "making topic %s",
				       topic);
	const rd_kafka_topic_result_t **res =
		rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(ev), &n);
	rd_kafka_resp_err_t code = n == 1 ? rd_kafka_topic_result_error(res[0]) : RD_KAFKA_RESP_ERR_UNKNOWN;
	*created = code == 0;
	if (code == 0 || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) /* by somebody else just now */
		return WEIR_OK;
	return weir_kafka_fail(dg, code, n == 1 ? rd_kafka_topic_result_error_string(res[0]) : NULL, "making topic %s",
			       topic);
}

static enum weir_err create_topic(struct weir_kafka_writer *w, uint32_t partitions, struct weir_diag **dg)
{
	char why[512];
	rd_kafka_t *rk = weir_kafka_client_handle(w->kc);
	rd_kafka_NewTopic_t *nt = rd_kafka_NewTopic_new(w->topic, (int)partitions, -1, why, sizeof why);
	if (nt == NULL)
		return weir_diag_set(dg, WEIR_E_CONF, "making topic %s: %s", w->topic, why);
	(void)rd_kafka_NewTopic_set_config(nt, "retention.ms", "-1");
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
	(void)rd_kafka_AdminOptions_set_request_timeout(options, ADMIN_MS, why, sizeof why);
	(void)rd_kafka_AdminOptions_set_operation_timeout(options, ADMIN_MS, why, sizeof why);
	rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
	rd_kafka_CreateTopics(rk, &nt, 1, options, q);
	rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 2 * ADMIN_MS);
	enum weir_err err =
		ev != NULL ? topic_result(ev, w->topic, &w->created, dg)
			   : weir_kafka_fail(dg, RD_KAFKA_RESP_ERR__TIMED_OUT, NULL, "making topic %s", w->topic);
	rd_kafka_event_destroy(ev);
	rd_kafka_queue_destroy(q);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_NewTopic_destroy(nt);
	/* The brokers tell each other of it in their own time. */
	for (int64_t end = weir_kafka_now_ms() + WEIR_KAFKA_WAIT_MS; err == WEIR_OK && w->partitions == 0;) {
		err = weir_kafka_client_partitions(w->kc, w->topic, &w->partitions, dg);
		if (err == WEIR_OK && w->partitions == 0 && weir_kafka_now_ms() >= end)
			err = weir_kafka_fail(dg, RD_KAFKA_RESP_ERR__TIMED_OUT, NULL, "waiting for topic %s", w->topic);
		if (err == WEIR_OK && w->partitions == 0)
			weir_kafka_client_poll(w->kc, 50);
	}
	return err;
}

/* ---- the producer ---- */

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
	struct weir_kafka_writer *w = m->_private;
	(void)rk;
	(void)opaque;
	if (m->err == 0) {
		w->acked++;
		return;
	}
	if (w->failed != WEIR_OK)
		return;
	w->code = m->err;
	w->failed = weir_kafka_err(m->err);
	w->failed = w->failed == WEIR_OK ? WEIR_E_IO : w->failed;
	snprintf(w->why, sizeof w->why, "partition %d: %s", m->partition, rd_kafka_err2str(m->err));
}

enum weir_err weir_kafka_writer_open(struct weir_kafka_writer **out, const struct weir_conf *cf,
				     const struct weir_kafka_write_spec *spec, const struct weir_kafka_log *lg,
				     struct weir_diag **dg)
{
	struct weir_kafka_client *kc;
	enum weir_err err = weir_kafka_client_create_writer(&kc, cf, on_delivery, lg, dg);
	if (err != WEIR_OK)
		return err;
	struct weir_kafka_writer *w = weir_xcalloc(1, sizeof *w);
	w->kc = kc;
	w->topic = weir_xstrdup(spec->topic);
	err = weir_kafka_client_partitions(kc, spec->topic, &w->partitions, dg);
	if (err == WEIR_OK && w->partitions == 0 && spec->partitions == 0)
		err = weir_diag_set(dg, WEIR_E_CONF, "no topic %s on %s", spec->topic, weir_kafka_client_brokers(kc));
	if (err == WEIR_OK && w->partitions == 0)
		err = create_topic(w, spec->partitions, dg);
	if (err == WEIR_OK) {
		w->rkt = rd_kafka_topic_new(weir_kafka_client_handle(kc), spec->topic, NULL);
		if (w->rkt == NULL)
			err = weir_kafka_fail(dg, rd_kafka_last_error(), NULL, "topic %s", spec->topic);
	}
	if (err != WEIR_OK) {
		weir_kafka_writer_close(w);
		return err;
	}
	*out = w;
	return WEIR_OK;
}

void weir_kafka_writer_close(struct weir_kafka_writer *w)
{
	if (w == NULL)
		return;
	if (w->acked < w->put) {
		(void)rd_kafka_purge(weir_kafka_client_handle(w->kc),
				     RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		(void)rd_kafka_flush(weir_kafka_client_handle(w->kc), 1000);
	}
	if (w->rkt != NULL)
		rd_kafka_topic_destroy(w->rkt);
	weir_kafka_client_destroy(w->kc);
	free(w->topic);
	free(w);
}

uint32_t weir_kafka_writer_partitions(const struct weir_kafka_writer *w)
{
	return w->partitions;
}

bool weir_kafka_writer_created(const struct weir_kafka_writer *w)
{
	return w->created;
}

uint64_t weir_kafka_writer_acked(const struct weir_kafka_writer *w)
{
	return w->acked;
}

static enum weir_err check(struct weir_kafka_writer *w, struct weir_diag **dg)
{
	if (w->failed != WEIR_OK)
		return weir_kafka_fail(dg, w->code, w->why, "writing topic %s", w->topic);
	return WEIR_OK;
}

enum weir_err weir_kafka_writer_poll(struct weir_kafka_writer *w, int timeout_ms, struct weir_diag **dg)
{
	weir_kafka_client_poll(w->kc, timeout_ms);
	enum weir_err err = check(w, dg);
	return err != WEIR_OK ? err : weir_kafka_client_check(w->kc, dg);
}

enum weir_err weir_kafka_writer_flush(struct weir_kafka_writer *w, struct weir_diag **dg)
{
	enum weir_err err = check(w, dg);
	while (err == WEIR_OK && w->acked < w->put) { /* message.timeout.ms bounds it */
		(void)rd_kafka_flush(weir_kafka_client_handle(w->kc), 200);
		err = weir_kafka_writer_poll(w, 0, dg);
	}
	return err;
}

static bool take_varint(const uint8_t **p, const uint8_t *end, int64_t *out)
{
	uint64_t v = 0;
	for (uint32_t shift = 0; *p < end && shift < 64; shift += 7) {
		uint8_t c = *(*p)++;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80) {
			*out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
			return true;
		}
	}
	return false;
}

/* Kafka's bytes to librdkafka's list; NULL where they are malformed. */
static rd_kafka_headers_t *decode_headers(const struct weir_out *r)
{
	const uint8_t *p = r->headers, *end = p + r->headers_bytes;
	rd_kafka_headers_t *hs = rd_kafka_headers_new(r->header_count);
	for (uint32_t i = 0; i < r->header_count; i++) {
		int64_t name_bytes, bytes;
		bool ok = take_varint(&p, end, &name_bytes) && name_bytes >= 0 && name_bytes <= end - p;
		const uint8_t *name = p;
		p += ok ? name_bytes : 0;
		ok = ok && take_varint(&p, end, &bytes) && bytes >= -1 && bytes <= end - p;
		if (!ok) {
			rd_kafka_headers_destroy(hs);
			return NULL;
		}
		(void)rd_kafka_header_add(hs, (const char *)name, name_bytes, bytes < 0 ? NULL : p,
					  bytes < 0 ? 0 : bytes);
		p += bytes < 0 ? 0 : bytes;
	}
	return hs;
}

enum weir_err weir_kafka_writer_put(struct weir_kafka_writer *w, int64_t partition, const struct weir_out *r,
				    struct weir_diag **dg)
{
	rd_kafka_headers_t *hs = NULL;
	enum weir_err err = check(w, dg);
	if (err == WEIR_OK && r->header_count != 0 && (hs = decode_headers(r)) == NULL)
		err = weir_diag_set(dg, WEIR_E_CORRUPT, "topic %s: a record's headers are malformed", w->topic);
	while (err == WEIR_OK) {
		rd_kafka_vu_t vus[8] = {
			{.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = w->rkt},
			{.vtype = RD_KAFKA_VTYPE_PARTITION,
			 .u.i32 = partition < 0 ? RD_KAFKA_PARTITION_UA : (int32_t)partition},
			{.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
			{.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = w},
			{.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)r->key.data, r->key.bytes}},
			{.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)r->value.data, r->value.bytes}},
		};
		size_t n = 6;
		if (r->timestamp > 0) /* 0 means now to librdkafka */
			vus[n++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = r->timestamp};
		if (hs != NULL)
			vus[n++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = hs};
		rd_kafka_error_t *e = rd_kafka_produceva(weir_kafka_client_handle(w->kc), vus, n);
		if (e == NULL) {
			hs = NULL; /* librdkafka's now */
			w->put++;
			break;
		}
		if (rd_kafka_error_code(e) != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
			char what[300];
			snprintf(what, sizeof what, "writing topic %s: a record of %zu bytes", w->topic,
				 r->key.bytes + r->value.bytes);
			err = weir_kafka_fail_error(dg, e, what);
			break;
		}
		rd_kafka_error_destroy(e);
		err = weir_kafka_writer_poll(w, 100, dg);
	}
	if (hs != NULL)
		rd_kafka_headers_destroy(hs);
	if (err == WEIR_OK && w->put % POLL_EVERY == 0)
		err = weir_kafka_writer_poll(w, 0, dg);
	return err;
}
