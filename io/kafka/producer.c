/* producer.c: a replaceable producer's handle and its topics (producer.h). @thread snap, init */
#include "io/kafka/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hotpath/core/mem.h"
#include "io/kafka/headers.h"

enum { METADATA_MS = 2000, SETTINGS_MAX = 16, MINUTE_MS = 60000, PAUSE_MS = 100, PAUSE_MS_MAX = 5000 };

const struct weir_kafka_setting weir_producer_queue[3] = {
	{"queue.buffering.max.messages", "200000"}, {"queue.buffering.max.kbytes", "65536"}, {NULL, NULL}};

/* ---- patience ---- */

bool weir_patience_try(struct weir_patience *pt, uint32_t most)
{
	int64_t now = weir_kafka_now_ms();
	bool last = pt->count + 1 >= most && now - pt->ms[(pt->count + 1 - most) % WEIR_PATIENCE_MAX] < MINUTE_MS;
	pt->ms[pt->count++ % WEIR_PATIENCE_MAX] = now;
	return most > 1 ? !last : false;
}

void weir_patience_pause(struct weir_patience *pt, const _Atomic bool *stop)
{
	int64_t now = weir_kafka_now_ms();
	if (now - pt->last_ms > MINUTE_MS)
		pt->pause_ms = 0;
	for (int64_t end = now + pt->pause_ms; now < end; now = weir_kafka_now_ms()) {
		if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed))
			break;
		usleep(20000);
	}
	pt->last_ms = now;
	pt->pause_ms = pt->pause_ms == 0 ? PAUSE_MS : pt->pause_ms * 2;
	pt->pause_ms = pt->pause_ms > PAUSE_MS_MAX ? PAUSE_MS_MAX : pt->pause_ms;
}

/* ---- the handle ---- */

enum weir_err weir_producer_open(struct weir_producer *pr, const struct weir_conf *cf,
				 const struct weir_kafka_setting *extra, const struct weir_kafka_setting *forced,
				 weir_on_delivery *on_delivery, void *user, const struct weir_kafka_log *log,
				 struct weir_diag **dg)
{
	struct weir_kafka_setting all[SETTINGS_MAX];
	char batch[24];
	uint32_t n = 0;
	for (; forced != NULL && forced->name != NULL && n + 2 < SETTINGS_MAX; forced++)
		all[n++] = *forced;
	snprintf(batch, sizeof batch, "%lld", (long long)pr->batch_bytes);
	if (pr->batch_bytes != 0)
		all[n++] = (struct weir_kafka_setting){"batch.size", batch};
	all[n] = (struct weir_kafka_setting){NULL, NULL};
	return weir_kafka_client_create_producer(&pr->kc, cf, extra, all, on_delivery, user, log, dg);
}

void weir_producer_close(struct weir_producer *pr)
{
	if (pr->kc == NULL)
		return;
	(void)rd_kafka_purge(weir_producer_handle(pr), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	for (uint32_t i = 0; i < pr->topic_count; i++)
		if (pr->topics[i].rkt != NULL) {
			rd_kafka_topic_destroy(pr->topics[i].rkt);
			pr->topics[i].rkt = NULL;
		}
	weir_kafka_client_destroy(pr->kc);
	pr->kc = NULL;
}

void weir_producer_fini(struct weir_producer *pr)
{
	weir_producer_close(pr);
	for (uint32_t i = 0; i < pr->topic_count; i++) {
		free(pr->topics[i].name);
		free(pr->topics[i].compression);
	}
	free(pr->topics);
	memset(pr, 0, sizeof *pr);
}

static enum weir_err know(struct weir_producer *pr, struct weir_producer_topic *t, struct weir_diag **dg)
{
	char why[256];
	if (t->name == NULL || t->rkt != NULL)
		return WEIR_OK;
	rd_kafka_t *rk = weir_producer_handle(pr);
	rd_kafka_topic_conf_t *conf = NULL;
	if (t->compression != NULL) {
		conf = rd_kafka_default_topic_conf_dup(rk);
		if (rd_kafka_topic_conf_set(conf, "compression.codec", t->compression, why, sizeof why) !=
		    RD_KAFKA_CONF_OK) {
			rd_kafka_topic_conf_destroy(conf);
			return weir_diag_set(dg, WEIR_E_CONF, "topic %s: compression %s: %s", t->name, t->compression,
					     why);
		}
	}
	t->rkt = rd_kafka_topic_new(rk, t->name, conf);
	if (t->rkt == NULL)
		return weir_kafka_fail(dg, rd_kafka_last_error(), NULL, "topic %s", t->name);
	const struct rd_kafka_metadata *md;
	if (rd_kafka_metadata(rk, 0, t->rkt, &md, METADATA_MS) == 0)
		rd_kafka_metadata_destroy(md);
	return WEIR_OK;
}

enum weir_err weir_producer_know(struct weir_producer *pr, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < pr->topic_count && err == WEIR_OK; i++)
		err = know(pr, &pr->topics[i], dg);
	return err;
}

enum weir_err weir_producer_topic(struct weir_producer *pr, uint32_t number, const char *name, const char *compression,
				  struct weir_diag **dg)
{
	if (number >= pr->topic_count) {
		pr->topics = weir_xrealloc(pr->topics, (number + 1) * sizeof *pr->topics);
		memset(pr->topics + pr->topic_count, 0, (number + 1 - pr->topic_count) * sizeof *pr->topics);
		pr->topic_count = number + 1;
	}
	struct weir_producer_topic *t = &pr->topics[number];
	t->name = weir_xstrdup(name);
	t->compression = compression != NULL ? weir_xstrdup(compression) : NULL;
	return know(pr, t, dg);
}

bool weir_producer_limit(struct weir_producer *pr, int64_t batch_bytes)
{
	if (batch_bytes < 1 || (pr->batch_bytes != 0 && pr->batch_bytes <= batch_bytes))
		return false;
	pr->batch_bytes = batch_bytes;
	return true;
}

/* With headers: parsing them is not for the common path. */
static rd_kafka_resp_err_t put_headers(struct weir_producer *pr, rd_kafka_vu_t *vus, size_t n, const struct weir_out *r)
{
	rd_kafka_headers_t *hs = weir_kafka_headers_decode(r);
	if (hs == NULL)
		return RD_KAFKA_RESP_ERR_INVALID_RECORD;
	vus[n++] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = hs};
	rd_kafka_error_t *e = rd_kafka_produceva(weir_producer_handle(pr), vus, n);
	if (e == NULL)
		return RD_KAFKA_RESP_ERR_NO_ERROR; /* hs is librdkafka's */
	rd_kafka_resp_err_t code = rd_kafka_error_code(e);
	rd_kafka_error_destroy(e);
	rd_kafka_headers_destroy(hs);
	return code;
}

/* Cost beside librdkafka's own: bench/pipelines/kafka_results. */
rd_kafka_resp_err_t weir_producer_put(struct weir_producer *pr, uint32_t topic, uint32_t partition,
				      const struct weir_out *r, void *opaque, int flags)
{
	rd_kafka_topic_t *rkt = pr->topics[topic].rkt;
	if (r->timestamp <= 0 && r->header_count == 0) { /* the cheaper call; the timestamp is now */
		int res = rd_kafka_produce(rkt, (int32_t)partition, flags, (void *)(uintptr_t)r->value.data,
					   r->value.bytes, r->key.data, r->key.bytes, opaque);
		return res == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_last_error();
	}
	rd_kafka_vu_t vus[8] = {
		{.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = rkt},
		{.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = (int32_t)partition},
		{.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = flags},
		{.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = opaque},
		{.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)r->key.data, r->key.bytes}},
		{.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)r->value.data, r->value.bytes}},
		{.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = r->timestamp > 0 ? r->timestamp : 0},
	};
	if (r->header_count != 0)
		return put_headers(pr, vus, 7, r);
	rd_kafka_error_t *e = rd_kafka_produceva(weir_producer_handle(pr), vus, 7);
	if (e == NULL)
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	rd_kafka_resp_err_t code = rd_kafka_error_code(e);
	rd_kafka_error_destroy(e);
	return code;
}
