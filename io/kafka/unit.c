/* unit.c: messages out of librdkafka's queue as units of records that point into them (member.h). @thread io
 *
 * A slice must be readable WEIR_PAYLOAD_PAD bytes beyond its end, and the last message of a fetched buffer is followed
 * by nothing. Memory is mapped by whole pages, though: a slice whose last byte lies further than the pad from the end
 * of its page can be read over as it is; the others, two in a hundred, are copied. Sanitizers know allocations
 * to the byte, so under them everything is copied. */
#include <stdlib.h>

#include "io/kafka/member.h"

enum { PAGE_BYTES = 4096, WATERMARK_MS = 5000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COPY_ALL = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
enum { COPY_ALL = 1 };
#else
enum { COPY_ALL = 0 };
#endif
#else
enum { COPY_ALL = 0 };
#endif

static const uint8_t nothing[WEIR_PAYLOAD_PAD]; /* an empty value is not a null one */

/* ---- the pool ---- */

static struct weir_kafka_unit *unit_new(struct weir_kafka_input *in, const struct weir_kafka_part *pt)
{
	struct weir_kafka_unit *ku = in->pool;
	if (ku != NULL) {
		in->pool = ku->next;
	} else {
		ku = weir_xmalloc(sizeof *ku);
		weir_scratch_init(&ku->copies);
		ku->all = in->all;
		in->all = ku;
	}
	ku->u = (struct weir_unit){.partition = (uint32_t)(pt - in->parts) - in->streams[pt->scan].part_base,
				   .records = ku->record,
				   .memory = sizeof *ku,
				   .next_offset = pt->next};
	ku->next = NULL;
	ku->message_count = 0;
	return ku;
}

static void give_back(struct weir_kafka_unit *ku)
{
	for (uint32_t i = 0; i < ku->message_count; i++) {
		if (i + 8 < ku->message_count) {
			const char *q = (const char *)ku->message[i + 8];
			__builtin_prefetch(q - 64, 1);
			__builtin_prefetch(q, 1);
			__builtin_prefetch(q + 64, 1);
			__builtin_prefetch(q + 128, 1);
		}
		rd_kafka_message_destroy(ku->message[i]);
	}
	ku->message_count = 0;
}

static void unit_recycle(struct weir_kafka_input *in, struct weir_kafka_unit *ku)
{
	give_back(ku);
	weir_scratch_reset(&ku->copies);
	ku->next = in->pool;
	in->pool = ku;
}

void weir_kafka_unit_fini(struct weir_kafka_input *in)
{
	if (in->wake_queue != NULL) {
		rd_kafka_queue_destroy(in->wake_queue);
		rd_kafka_AdminOptions_destroy(in->wake_options);
	}
	for (struct weir_kafka_unit *ku = in->all, *next; ku != NULL; ku = next) {
		next = ku->all;
		give_back(ku);
		weir_scratch_fini(&ku->copies);
		free(ku);
	}
	in->all = in->pool = NULL;
}

/* ---- fetchers that sleep ---- */

/* A fetcher that finds the queue full looks again when something wakes it, after a second at the latest: before 2.2.0
 * that second is fixed, and a reader that empties the queue sooner waits for the rest of it (320,000 records a second
 * with the default queue, however fast the reader). Any request to a broker wakes its thread: so when a queue that was
 * full has become half empty, all brokers are asked for something small, and the answers are thrown away. */

enum { WAKES_OUT = 4, WAKE_MS = 1000, WAKE_BEFORE = 0x020200ff };

static uint64_t conf_number(const rd_kafka_conf_t *conf, const char *name)
{
	char text[32];
	size_t bytes = sizeof text;
	return rd_kafka_conf_get(conf, name, text, &bytes) == RD_KAFKA_CONF_OK ? strtoull(text, NULL, 10) : 0;
}

void weir_kafka_unit_init(struct weir_kafka_input *in)
{
	char why[128];
	in->full_records = conf_number(rd_kafka_conf(in->rk), "queued.min.messages");
	in->full_bytes = conf_number(rd_kafka_conf(in->rk), "queued.max.messages.kbytes") * 1024;
	in->ahead_bytes = in->full_bytes / 2;
	if (rd_kafka_version() >= WAKE_BEFORE)
		return;
	in->wake_queue = rd_kafka_queue_new(in->rk);
	in->wake_options = rd_kafka_AdminOptions_new(in->rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS);
	(void)rd_kafka_AdminOptions_set_request_timeout(in->wake_options, WAKE_MS, why, sizeof why);
	in->record_bytes = 1;
}

/* After a poll of n messages. Records may be taken between two looks, but no more than one poll's. */
static void wake(struct weir_kafka_input *in, size_t n)
{
	uint64_t waiting = rd_kafka_queue_length(in->queue), bytes = waiting * in->record_bytes;
	if (waiting + n >= in->full_records / 4 * 3 || bytes >= in->full_bytes / 4 * 3) {
		in->was_full = true;
		return;
	}
	if (!in->was_full || waiting >= in->full_records / 2 || bytes >= in->full_bytes / 2)
		return;
	rd_kafka_event_t *answer;
	while (in->wakes_out != 0 && (answer = rd_kafka_queue_poll(in->wake_queue, 0)) != NULL) {
		rd_kafka_event_destroy(answer);
		in->wakes_out--;
	}
	if (in->wakes_out == WAKES_OUT)
		return;
	rd_kafka_ListConsumerGroups(in->rk, in->wake_options, in->wake_queue);
	in->wakes_out++;
	in->was_full = false;
}

/* ---- queues ---- */

static struct weir_kafka_unit *tail_of(struct weir_kafka_input *in, struct weir_kafka_part *pt)
{
	struct weir_kafka_unit *ku = pt->tail;
	if (ku != NULL && ku->message_count < WEIR_KAFKA_UNIT_RECORDS)
		return ku;
	ku = unit_new(in, pt);
	if (pt->tail != NULL)
		pt->tail->next = ku;
	else
		pt->head = ku;
	pt->tail = ku;
	return ku;
}

struct weir_kafka_unit *weir_kafka_unit_take(struct weir_kafka_input *in, struct weir_kafka_part *pt)
{
	struct weir_kafka_unit *ku = pt->head;
	pt->head = ku->next;
	if (pt->head == NULL)
		pt->tail = NULL;
	in->queued_records -= ku->u.count;
	in->queued_bytes -= ku->u.bytes;
	in->units_out++;
	pt->taken = ku->u.next_offset;
	return ku;
}

void weir_kafka_unit_release(struct weir_kafka_input *in, struct weir_kafka_unit *ku)
{
	in->units_out--;
	unit_recycle(in, ku);
}

void weir_kafka_unit_drop(struct weir_kafka_input *in, struct weir_kafka_part *pt)
{
	for (struct weir_kafka_unit *ku = pt->head, *next; ku != NULL; ku = next) {
		next = ku->next;
		in->queued_records -= ku->u.count;
		in->queued_bytes -= ku->u.bytes;
		unit_recycle(in, ku);
	}
	pt->head = pt->tail = NULL;
}

/* ---- messages ---- */

static const uint8_t *padded(struct weir_kafka_unit *ku, const void *data, size_t bytes)
{
	if (data == NULL)
		return NULL;
	if (bytes == 0)
		return nothing;
	uintptr_t last = ((uintptr_t)data + bytes - 1) % PAGE_BYTES;
	if (WEIR_LIKELY(!COPY_ALL && last + WEIR_PAYLOAD_PAD < PAGE_BYTES))
		return data;
	ku->u.memory += bytes;
	return memcpy(weir_scratch_take(&ku->copies, bytes), data, bytes);
}

static void put_varint(struct weir_buf *b, int64_t n)
{
	for (uint64_t v = ((uint64_t)n << 1) ^ (uint64_t)(n >> 63);; v >>= 7) {
		weir_buf_put_byte(b, (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
		if (v <= 0x7f)
			return;
	}
}

/* librdkafka gives headers decoded; weir keeps Kafka's own bytes. It decodes them here: without any this costs a look.
 */
static void encode_headers(struct weir_kafka_input *in, struct weir_kafka_unit *ku, rd_kafka_message_t *m,
			   struct weir_record *r)
{
	rd_kafka_headers_t *hs;
	const char *name;
	const void *value;
	size_t bytes;
	if (WEIR_LIKELY(rd_kafka_message_headers(m, &hs) != RD_KAFKA_RESP_ERR_NO_ERROR))
		return;
	in->headers.bytes = 0;
	for (size_t i = 0; rd_kafka_header_get_all(hs, i, &name, &value, &bytes) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
		put_varint(&in->headers, (int64_t)strlen(name));
		weir_buf_put(&in->headers, name, strlen(name));
		put_varint(&in->headers, value != NULL ? (int64_t)bytes : -1);
		if (value != NULL)
			weir_buf_put(&in->headers, value, bytes);
		r->header_count++;
	}
	r->headers_bytes = (uint32_t)in->headers.bytes;
	r->headers = memcpy(weir_scratch_take(&ku->copies, in->headers.bytes), in->headers.data, in->headers.bytes);
	ku->u.memory += in->headers.bytes;
}

/* Queues a message of pt. Takes m. Cost: see bench/pipelines/kafka_drain. */
static void put(struct weir_kafka_input *in, struct weir_kafka_part *pt, rd_kafka_message_t *m)
{
	struct weir_kafka_unit *ku = tail_of(in, pt);
	struct weir_record *r = &ku->record[ku->u.count];
	rd_kafka_timestamp_type_t type;
	*r = (struct weir_record){.key_bytes = (uint32_t)m->key_len,
				  .value_bytes = (uint32_t)m->len,
				  .offset = m->offset,
				  .timestamp = rd_kafka_message_timestamp(m, &type)};
	r->key = padded(ku, m->key, m->key_len);
	r->value = padded(ku, m->payload, m->len);
	if (in->streams[pt->scan].headers)
		encode_headers(in, ku, m, r);
	uint64_t bytes = (uint64_t)r->key_bytes + r->value_bytes + r->headers_bytes;
	ku->message[ku->message_count++] = m;
	ku->u.count++;
	ku->u.bytes += bytes;
	ku->u.memory += bytes + WEIR_KAFKA_MESSAGE_BYTES;
	ku->u.next_offset = pt->next = m->offset + 1;
	pt->last_ts = r->timestamp;
	pt->at_end = false;
	in->queued_records++;
	in->queued_bytes += bytes;
	in->record_bytes = (in->record_bytes * 255 + bytes) / 256 + 1;
}

/* Reading goes on behind what is no record for us. */
static void advance(struct weir_kafka_input *in, struct weir_kafka_part *pt, int64_t offset)
{
	if (offset <= pt->next)
		return;
	pt->next = offset;
	tail_of(in, pt)->u.next_offset = offset;
}

/* Everything below the bound is queued: more would be fetched for nothing. */
static void set_done(struct weir_kafka_input *in, struct weir_kafka_part *pt)
{
	if (pt->done)
		return;
	advance(in, pt, pt->bound);
	pt->done = true;
	weir_kafka_group_hold(in);
}

/* Up to here there is nothing more to read. Behind the last record may lie markers of transactions, or what compaction
 * took. */
static void at_end(struct weir_kafka_input *in, struct weir_kafka_part *pt, int64_t offset)
{
	if (!pt->at_end || offset > pt->next)
		pt->end_ms = weir_kafka_now_ms();
	pt->at_end = true;
	advance(in, pt, offset);
	if (offset >= pt->bound)
		set_done(in, pt);
}

static struct weir_kafka_part *part_of(struct weir_kafka_input *in, const rd_kafka_message_t *m)
{
	struct weir_kafka_topic *tp = in->topic_last;
	if (WEIR_UNLIKELY(tp == NULL || tp->rkt != m->rkt)) {
		tp = NULL;
		for (uint32_t t = 0; m->rkt != NULL && t < in->topic_count; t++)
			if (in->topics[t].rkt == m->rkt)
				tp = &in->topics[t];
		if (tp == NULL)
			return NULL;
		in->topic_last = tp;
	}
	if (m->partition < 0 || (uint32_t)m->partition >= tp->part_count)
		return NULL;
	return &in->parts[tp->part_base + (uint32_t)m->partition];
}

/* Retention (or somebody) removed records before they were read. */
static enum weir_err offset_gone(struct weir_kafka_input *in, struct weir_kafka_part *pt, const char *why,
				 struct weir_diag **dg)
{
	const char *topic = in->topics[pt->topic].name;
	rd_kafka_resp_err_t code =
		rd_kafka_query_watermark_offsets(in->rk, topic, (int32_t)pt->number, &pt->low, &pt->end, WATERMARK_MS);
	enum weir_err err = code == 0 ? weir_kafka_start_check(in, pt, pt->next, false, dg) : WEIR_OK;
	if (err != WEIR_OK)
		return err;
	return weir_diag_set(dg, WEIR_E_IO, "topic %s, partition %u: offset %lld is not there: %s", topic, pt->number,
			     (long long)pt->next, why);
}

/* After a callback heard in this poll what came before it is nobody's; but what stays with a cooperative member goes on
 * coming, whatever becomes of the rest. */
static bool is_read(const struct weir_kafka_input *in, const struct weir_kafka_part *pt)
{
	if (pt == NULL || !pt->owned)
		return false;
	return in->cooperative ? pt->assigned && !pt->later : in->state == WEIR_GROUP_RUNNING;
}

/* A message that is no record. */
static enum weir_err take_error(struct weir_kafka_input *in, const rd_kafka_message_t *m, struct weir_diag **dg)
{
	struct weir_kafka_part *pt = part_of(in, m);
	bool reading = is_read(in, pt);
	if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
		if (reading && m->offset >= pt->next)
			at_end(in, pt, m->offset);
		return WEIR_OK;
	}
	const char *why = rd_kafka_message_errstr(m);
	if (m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET)
		return reading ? offset_gone(in, pt, why, dg) : WEIR_OK;
	/* librdkafka goes on trying, or tells the rest through the callback. */
	if (weir_kafka_err_is_retriable(m->err) || m->err == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED)
		return WEIR_OK;
	if (m->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || m->err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
	    m->err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) {
		/* Also what a broker says that has just started: looked at again later. */
		if (in->doubt_ms == 0)
			in->doubt_ms = weir_kafka_now_ms();
		weir_kafka_client_say(in->kc, 4, "%s: %s", m->rkt != NULL ? rd_kafka_topic_name(m->rkt) : in->group,
				      why);
		return WEIR_OK;
	}
	if (m->err == RD_KAFKA_RESP_ERR__FATAL)
		return weir_kafka_client_fatal(in->kc, dg);
	if (m->err == RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL)
		return weir_kafka_fail(
			dg, m->err, why,
			"group %s: its members do not agree on partition.assignment.strategy, which is %s "
			"here: all of them must have the same; to change it stop them all first",
			in->group, in->cooperative ? "cooperative-sticky" : "range");
	if (pt != NULL)
		return weir_kafka_fail(dg, m->err, why, "reading topic %s, partition %u, offset %lld",
				       in->topics[pt->topic].name, pt->number,
				       (long long)(m->offset >= 0 ? m->offset : pt->next));
	return weir_kafka_fail(dg, m->err, why, "group %s", in->group);
}

/* Takes m. */
static enum weir_err take_message(struct weir_kafka_input *in, rd_kafka_message_t *m, bool failed,
				  struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	if (WEIR_UNLIKELY(m->err != 0)) {
		if (!failed)
			err = take_error(in, m, dg);
		rd_kafka_message_destroy(m);
		return err;
	}
	struct weir_kafka_part *pt = part_of(in, m);
	if (WEIR_UNLIKELY(!is_read(in, pt) || pt->done || m->offset < pt->next)) {
		rd_kafka_message_destroy(m);
	} else if (WEIR_UNLIKELY(m->offset >= pt->bound)) {
		set_done(in, pt);
		rd_kafka_message_destroy(m);
	} else {
		put(in, pt, m);
		if (WEIR_UNLIKELY(pt->next >= pt->bound))
			set_done(in, pt);
	}
	return err;
}

/* Nothing may be in hand when the rebalance callback is called, which the calls do: it is taken before the next one. */
static enum weir_err poll_singly(struct weir_kafka_input *in, int timeout_ms, size_t *n, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	rd_kafka_message_t *m;
	for (*n = 0; *n < WEIR_KAFKA_POLL_RECORDS && err == WEIR_OK && !in->unanswered; (*n)++) {
		if (rd_kafka_consume_batch_queue(in->queue, *n == 0 ? timeout_ms : 0, &m, 1) != 1)
			break;
		err = take_message(in, m, false, dg);
	}
	return err;
}

static enum weir_err poll_many(struct weir_kafka_input *in, int timeout_ms, size_t *took, struct weir_diag **dg)
{
	/* A call for many waits the whole time unless so many come: one first, then what is there. */
	ssize_t n = 0;
	if (timeout_ms > 0)
		n = rd_kafka_consume_batch_queue(in->queue, timeout_ms, in->polled, 1);
	if (n >= 0 && (timeout_ms == 0 || n == 1)) {
		ssize_t more = rd_kafka_consume_batch_queue(in->queue, 0, in->polled + n,
							    (size_t)(WEIR_KAFKA_POLL_RECORDS - n));
		n += more > 0 ? more : 0;
	}
	enum weir_err err = WEIR_OK;
	*took = n > 0 ? (size_t)n : 0;
	for (ssize_t i = 0; i < n; i++) {
		enum weir_err own = take_message(in, in->polled[i], err != WEIR_OK, dg);
		err = err == WEIR_OK ? own : err;
	}
	return err;
}

enum weir_err weir_kafka_unit_poll(struct weir_kafka_input *in, int timeout_ms, bool *any, struct weir_diag **dg)
{
	size_t n = 0;
	enum weir_err err = in->one_by_one ? poll_singly(in, timeout_ms, &n, dg) : poll_many(in, timeout_ms, &n, dg);
	in->polled_ms = weir_kafka_now_ms();
	*any = n > 0;
	if (in->wake_queue != NULL && in->state == WEIR_GROUP_RUNNING)
		wake(in, n);
	return err;
}
