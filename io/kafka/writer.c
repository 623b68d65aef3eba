/* writer.c: writes a topic by an idempotent producer; makes the topic where it is missing. @thread: the owner's;
 * delivery reports come on it too, out of polls. */
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/client.h"
#include "io/kafka/headers.h"
#include "io/kafka/topic.h"

enum { POLL_EVERY = 1000 };

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
	/* Brokers delete by the records' own times, and replayed ones are old. */
	static const struct weir_kafka_setting keep_all[] = {{"retention.ms", "-1"}, {NULL, NULL}};
	struct weir_kafka_client *kc;
	enum weir_err err = weir_kafka_client_create_writer(&kc, cf, on_delivery, lg, dg);
	if (err != WEIR_OK)
		return err;
	struct weir_kafka_writer *w = weir_xcalloc(1, sizeof *w);
	w->kc = kc;
	w->topic = weir_xstrdup(spec->topic);
	err = spec->partitions == 0 ? weir_kafka_client_await_topic(kc, spec->topic, &w->partitions, dg)
				    : weir_kafka_client_partitions(kc, spec->topic, &w->partitions, dg);
	if (err == WEIR_OK && w->partitions == 0 && spec->partitions == 0)
		err = weir_diag_set(dg, WEIR_E_CONF, "no topic %s on %s", spec->topic, weir_kafka_client_brokers(kc));
	if (err == WEIR_OK && w->partitions == 0)
		err = weir_kafka_topic_create(kc, spec->topic, spec->partitions, keep_all, &w->created, &w->partitions,
					      dg);
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

enum weir_err weir_kafka_writer_put(struct weir_kafka_writer *w, int64_t partition, const struct weir_out *r,
				    struct weir_diag **dg)
{
	rd_kafka_headers_t *hs = NULL;
	enum weir_err err = check(w, dg);
	if (err == WEIR_OK && r->header_count != 0 && (hs = weir_kafka_headers_decode(r)) == NULL)
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
