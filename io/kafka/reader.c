/* reader.c: reads a range of a topic by an assign()-only consumer: bounds looked up once, records as they come or
 * partition by partition. @thread: the owner's */
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/client.h"
#include "io/kafka/headers.h"
#include "io/kafka/held.h"

enum { POLL_RECORDS = 1000, HELD_MS = 3000, OFFSETS_MS = 5000, DOWN_MS_MAX = WEIR_KAFKA_WAIT_MS };

struct part {
	int64_t first; /* the range to read */
	int64_t end;   /* INT64_MAX where followed */
	int64_t shown_end;
	int64_t position;
	bool done;
	bool warned; /* of an open transaction */
};

struct weir_kafka_reader {
	struct weir_kafka_client *kc;
	const struct weir_conf *cf; /* borrowed until close */
	rd_kafka_queue_t *queue;
	char *topic;
	struct part *parts;
	uint32_t part_count;
	uint32_t undone; /* parts that are not done */
	int64_t current; /* in_order: the partition that is assigned, -1: none yet */
	bool in_order;
	bool follow;
	rd_kafka_message_t *polled[POLL_RECORDS];
	size_t polled_at;
	size_t polled_count;
	bool lent; /* the message before polled_at is the caller's record */
	struct weir_kafka_record record;
	struct weir_buf headers;
	int64_t heard_ms; /* when something last came */
};

enum weir_err weir_kafka_place_parse(struct weir_kafka_place *out, const char *text, struct weir_diag **dg)
{
	*out = (struct weir_kafka_place){WEIR_KAFKA_OFFSET, 0};
	if (strcmp(text, "beginning") == 0 || strcmp(text, "earliest") == 0) {
		out->kind = WEIR_KAFKA_BEGINNING;
		return WEIR_OK;
	}
	if (strcmp(text, "end") == 0 || strcmp(text, "latest") == 0) {
		out->kind = WEIR_KAFKA_END;
		return WEIR_OK;
	}
	const char *digits = text;
	if (strncmp(text, "s@", 2) == 0) {
		out->kind = WEIR_KAFKA_TIME;
		digits += 2;
	}
	bool negative = out->kind == WEIR_KAFKA_OFFSET && *digits == '-';
	const char *at = digits + negative;
	int64_t n = 0;
	bool ok = *at != '\0';
	for (; ok && *at != '\0'; at++)
		ok = *at >= '0' && *at <= '9' && !__builtin_mul_overflow(n, 10, &n) &&
		     !__builtin_add_overflow(n, *at - '0', &n);
	if (!ok)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "'%s' is no place: an offset, beginning, end, -N or s@MILLISECONDS", text);
	out->value = negative ? -n : n;
	if (negative && n == 0)
		out->kind = WEIR_KAFKA_END;
	return WEIR_OK;
}

/* ---- bounds ---- */

/* One try; *code: what is said of topic, 0: done. */
static enum weir_err look_up_once(struct weir_kafka_reader *rd, struct weir_kafka_client *kc, int64_t place,
				  uint32_t from, uint32_t to, int64_t *offsets, rd_kafka_resp_err_t *code,
				  struct weir_diag **dg)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)(to - from));
	for (uint32_t p = from; p < to; p++)
		rd_kafka_topic_partition_list_add(list, rd->topic, (int32_t)p)->offset = place;
	*code = rd_kafka_offsets_for_times(weir_kafka_client_handle(kc), list, OFFSETS_MS);
	enum weir_err err = WEIR_OK;
	if (*code != 0)
		err = weir_kafka_fail(dg, *code, NULL, "looking up offsets of topic %s", rd->topic);
	for (int i = 0; err == WEIR_OK && i < list->cnt; i++) {
		*code = list->elems[i].err;
		if (*code != 0)
			err = weir_kafka_fail(dg, *code, NULL, "looking up offsets of topic %s, partition %d",
					      rd->topic, list->elems[i].partition);
		offsets[list->elems[i].partition] = list->elems[i].offset;
	}
	rd_kafka_topic_partition_list_destroy(list);
	return err;
}

/* Offsets for a special place or a time in every partition of the range [from, to). A leader that moves, or a partition
 * that is called unknown and is there, is waited for. */
static enum weir_err look_up(struct weir_kafka_reader *rd, struct weir_kafka_client *kc, int64_t place, uint32_t from,
			     uint32_t to, int64_t *offsets, struct weir_diag **dg)
{
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, WEIR_KAFKA_WAIT_MS);
	for (;;) {
		struct weir_diag *own = NULL;
		rd_kafka_resp_err_t code;
		enum weir_err err = look_up_once(rd, kc, place, from, to, offsets, &code, &own);
		if (err == WEIR_OK)
			return WEIR_OK;
		bool again = weir_kafka_err_is_retriable(code);
		if (weir_kafka_err_is_unknown(code)) {
			struct weir_diag *ignored = NULL;
			again = weir_kafka_client_confirm(kc, rd->topic, to, &ignored) == WEIR_OK;
			weir_diag_destroy(ignored);
		}
		if (!again || weir_kafka_wait_left(&w, OFFSETS_MS) == 0) {
			if (dg != NULL && *dg == NULL)
				*dg = own;
			else
				weir_diag_destroy(own);
			return err;
		}
		weir_diag_destroy(own);
		weir_kafka_client_poll(kc, 100);
	}
}

/* An offset that a time was looked up for: none is that late: the end. */
static int64_t or_end(int64_t offset, int64_t end)
{
	return offset < 0 || offset > end ? end : offset;
}

/* The ends of the logs themselves: under read_committed the reader's own end is what no open transaction holds back. */
static enum weir_err look_up_logs(struct weir_kafka_reader *rd, const struct weir_conf *cf, uint32_t from, uint32_t to,
				  int64_t *offsets, struct weir_diag **dg)
{
	struct weir_kafka_client *kc;
	const struct rd_kafka_metadata *md;
	enum weir_err err = weir_kafka_client_create(&kc, cf, WEIR_KAFKA_ADMIN, NULL, NULL, dg);
	if (err != WEIR_OK)
		return err;
	err = weir_kafka_client_metadata(kc, rd->topic, WEIR_KAFKA_WAIT_MS, &md, dg);
	if (err == WEIR_OK) {
		rd_kafka_metadata_destroy(md);
		err = look_up(rd, kc, RD_KAFKA_OFFSET_END, from, to, offsets, dg);
	}
	weir_kafka_client_destroy(kc);
	return err;
}

static void warn_held_back(struct weir_kafka_reader *rd, uint32_t p, int64_t offset)
{
	if (rd->parts[p].warned)
		return;
	rd->parts[p].warned = true;
	struct weir_kafka_spot spot = {.topic = rd->topic, .partition = p, .eof = offset, .suspect = true};
	char who[WEIR_KAFKA_HELD_TEXT];
	(void)weir_kafka_held_find(rd->cf, &spot, 1, HELD_MS, NULL);
	weir_kafka_held_text(&spot.holder, who, sizeof who);
	weir_kafka_client_say(rd->kc, 4, "%s, partition %u: %s holds back what follows offset %lld", rd->topic, p, who,
			      (long long)offset);
}

static enum weir_err find_bounds(struct weir_kafka_reader *rd, const struct weir_conf *cf,
				 const struct weir_kafka_read_spec *spec, struct weir_diag **dg)
{
	uint32_t from = spec->partition >= 0 ? (uint32_t)spec->partition : 0;
	uint32_t to = spec->partition >= 0 ? from + 1 : rd->part_count;
	int64_t *low = weir_xcalloc(5 * (size_t)rd->part_count, sizeof *low);
	int64_t *high = low + rd->part_count, *start = high + rd->part_count, *stop = start + rd->part_count;
	int64_t *logs = stop + rd->part_count;
	enum weir_err err = look_up(rd, rd->kc, RD_KAFKA_OFFSET_BEGINNING, from, to, low, dg);
	if (err == WEIR_OK && !spec->uncommitted) /* before the reader's own, which goes on meanwhile */
		err = look_up_logs(rd, cf, from, to, logs, dg);
	if (err == WEIR_OK)
		err = look_up(rd, rd->kc, RD_KAFKA_OFFSET_END, from, to, high, dg);
	if (err == WEIR_OK && spec->start.kind == WEIR_KAFKA_TIME)
		err = look_up(rd, rd->kc, spec->start.value, from, to, start, dg);
	if (err == WEIR_OK && spec->end_ts >= 0)
		err = look_up(rd, rd->kc, spec->end_ts, from, to, stop, dg);
	for (uint32_t p = 0; err == WEIR_OK && p < rd->part_count; p++) {
		struct part *pt = &rd->parts[p];
		if (p < from || p >= to) {
			pt->done = true;
			continue;
		}
		int64_t end = spec->end_ts >= 0 ? or_end(stop[p], high[p]) : high[p];
		int64_t first = spec->start.kind == WEIR_KAFKA_BEGINNING ? low[p]
				: spec->start.kind == WEIR_KAFKA_END     ? high[p]
				: spec->start.kind == WEIR_KAFKA_TIME    ? or_end(start[p], high[p])
				: spec->start.value >= 0                 ? spec->start.value
									 : high[p] + spec->start.value;
		first = first < low[p] ? low[p] : first;
		bool follow = spec->follow && !(spec->end_ts >= 0 && stop[p] >= 0);
		if (first > end && !follow)
			first = end;
		*pt = (struct part){.first = first,
				    .end = follow ? INT64_MAX : end,
				    .shown_end = end,
				    .position = first,
				    .done = !follow && first >= end};
		rd->undone += !pt->done;
		if (logs[p] > high[p])
			warn_held_back(rd, p, high[p]);
	}
	free(low);
	return err;
}

static enum weir_err assign(struct weir_kafka_reader *rd, uint32_t from, uint32_t to, struct weir_diag **dg)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)(to - from));
	for (uint32_t p = from; p < to; p++)
		if (!rd->parts[p].done)
			rd_kafka_topic_partition_list_add(list, rd->topic, (int32_t)p)->offset = rd->parts[p].position;
	rd_kafka_resp_err_t code = rd_kafka_assign(weir_kafka_client_handle(rd->kc), list);
	rd_kafka_topic_partition_list_destroy(list);
	return code == 0 ? WEIR_OK : weir_kafka_fail(dg, code, NULL, "reading topic %s", rd->topic);
}

static enum weir_err open_range(struct weir_kafka_reader *rd, const struct weir_conf *cf,
				const struct weir_kafka_read_spec *spec, struct weir_diag **dg)
{
	enum weir_err err = weir_kafka_client_await_topic(rd->kc, spec->topic, &rd->part_count, dg);
	if (err != WEIR_OK)
		return err;
	if (rd->part_count == 0)
		return weir_diag_set(dg, WEIR_E_CONF, "no topic %s on %s", spec->topic,
				     weir_kafka_client_brokers(rd->kc));
	if (spec->partition >= (int64_t)rd->part_count)
		return weir_diag_set(dg, WEIR_E_CONF, "-p %lld: topic %s has %u partitions", (long long)spec->partition,
				     spec->topic, rd->part_count);
	rd->parts = weir_xcalloc(rd->part_count, sizeof *rd->parts);
	err = find_bounds(rd, cf, spec, dg);
	if (err == WEIR_OK && !rd->in_order && rd->undone != 0)
		err = assign(rd, 0, rd->part_count, dg);
	return err;
}

enum weir_err weir_kafka_reader_open(struct weir_kafka_reader **out, const struct weir_conf *cf,
				     const struct weir_kafka_read_spec *spec, const struct weir_kafka_log *lg,
				     struct weir_diag **dg)
{
	static const struct weir_kafka_setting uncommitted[] = {{"isolation.level", "read_uncommitted"}, {NULL, NULL}};
	struct weir_kafka_client *kc;
	enum weir_err err =
		weir_kafka_client_create(&kc, cf, WEIR_KAFKA_READ, spec->uncommitted ? uncommitted : NULL, lg, dg);
	if (err != WEIR_OK)
		return err;
	struct weir_kafka_reader *rd = weir_xcalloc(1, sizeof *rd);
	rd->kc = kc;
	rd->cf = cf;
	rd->topic = weir_xstrdup(spec->topic);
	rd->in_order = spec->in_order && !spec->follow;
	rd->follow = spec->follow;
	rd->current = -1;
	rd->queue = rd_kafka_queue_get_consumer(weir_kafka_client_handle(kc));
	rd->heard_ms = weir_kafka_now_ms();
	err = open_range(rd, cf, spec, dg);
	if (err != WEIR_OK) {
		weir_kafka_reader_close(rd);
		return err;
	}
	*out = rd;
	return WEIR_OK;
}

static void drop_polled(struct weir_kafka_reader *rd)
{
	for (; rd->polled_at < rd->polled_count; rd->polled_at++)
		rd_kafka_message_destroy(rd->polled[rd->polled_at]);
	rd->polled_at = rd->polled_count = 0;
}

static void give_back(struct weir_kafka_reader *rd)
{
	if (rd->lent)
		rd_kafka_message_destroy(rd->polled[rd->polled_at - 1]);
	rd->lent = false;
}

void weir_kafka_reader_close(struct weir_kafka_reader *rd)
{
	if (rd == NULL)
		return;
	give_back(rd);
	drop_polled(rd);
	rd_kafka_queue_destroy(rd->queue);
	(void)rd_kafka_consumer_close(weir_kafka_client_handle(rd->kc));
	weir_kafka_client_destroy(rd->kc);
	weir_buf_fini(&rd->headers);
	free(rd->parts);
	free(rd->topic);
	free(rd);
}

uint32_t weir_kafka_reader_partitions(const struct weir_kafka_reader *rd)
{
	return rd->part_count;
}

void weir_kafka_reader_range(const struct weir_kafka_reader *rd, uint32_t p, int64_t *first, int64_t *end)
{
	*first = rd->parts[p].first;
	*end = rd->parts[p].shown_end;
}

int64_t weir_kafka_reader_position(const struct weir_kafka_reader *rd, uint32_t p)
{
	return rd->parts[p].position;
}

/* ---- records ---- */

static void decode(struct weir_kafka_reader *rd, rd_kafka_message_t *m)
{
	struct weir_kafka_record *kr = &rd->record;
	rd_kafka_timestamp_type_t type;
	*kr = (struct weir_kafka_record){.partition = (uint32_t)m->partition, .broker = rd_kafka_message_broker_id(m)};
	kr->r.offset = m->offset;
	kr->r.timestamp = rd_kafka_message_timestamp(m, &type);
	kr->tstype = type == RD_KAFKA_TIMESTAMP_CREATE_TIME       ? WEIR_TSTYPE_CREATE
		     : type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? WEIR_TSTYPE_APPEND
								  : WEIR_TSTYPE_UNKNOWN;
	kr->r.key = m->key;
	kr->r.key_bytes = (uint32_t)m->key_len;
	kr->r.value = m->payload;
	kr->r.value_bytes = (uint32_t)m->len;
	weir_kafka_headers_encode(m, &rd->headers, &kr->r);
}

static void set_done(struct weir_kafka_reader *rd, uint32_t p, bool pause)
{
	struct part *pt = &rd->parts[p];
	if (pt->done)
		return;
	pt->done = true;
	rd->undone--;
	if (!pause || rd->in_order)
		return;
	/* More of it would be fetched for nothing. */
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(list, rd->topic, (int32_t)p);
	(void)rd_kafka_pause_partitions(weir_kafka_client_handle(rd->kc), list);
	rd_kafka_topic_partition_list_destroy(list);
}

/* The end of a partition for now. Behind it, with read_committed, may lie what an open transaction holds back. */
static void at_end(struct weir_kafka_reader *rd, uint32_t p, int64_t offset)
{
	struct part *pt = &rd->parts[p];
	int64_t low = 0, high = 0;
	pt->position = offset > pt->position ? offset : pt->position;
	if (rd_kafka_get_watermark_offsets(weir_kafka_client_handle(rd->kc), rd->topic, (int32_t)p, &low, &high) == 0 &&
	    high > offset)
		warn_held_back(rd, p, offset);
	if (offset >= pt->end)
		set_done(rd, p, false);
}

/* A message that is no record. */
static enum weir_err take_error(struct weir_kafka_reader *rd, const rd_kafka_message_t *m, struct weir_diag **dg)
{
	bool known = m->rkt != NULL && m->partition >= 0 && (uint32_t)m->partition < rd->part_count;
	if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
		if (known)
			at_end(rd, (uint32_t)m->partition, m->offset);
		return WEIR_OK;
	}
	if (weir_kafka_err_is_passed_over(m->err)) /* librdkafka goes on trying */
		return WEIR_OK;
	if (weir_kafka_err_is_unknown(m->err))
		return weir_kafka_client_confirm(rd->kc, rd->topic, rd->part_count, dg);
	const char *why = rd_kafka_message_errstr(m);
	if (m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET)
		return weir_diag_set(dg, WEIR_E_IO,
				     "topic %s, partition %d: retention removed records before they were read: %s",
				     rd->topic, m->partition, why);
	return weir_kafka_fail(dg, m->err, why, "reading topic %s", rd->topic);
}

/* in_order: the next partition that has something, when the current one is done. */
static enum weir_err next_partition(struct weir_kafka_reader *rd, struct weir_diag **dg)
{
	if (rd->current >= 0 && !rd->parts[rd->current].done)
		return WEIR_OK;
	drop_polled(rd);
	do
		rd->current++;
	while (rd->parts[rd->current].done); /* undone != 0: there is one */
	return assign(rd, (uint32_t)rd->current, (uint32_t)rd->current + 1, dg);
}

static enum weir_err poll_more(struct weir_kafka_reader *rd, int timeout_ms, struct weir_diag **dg)
{
	rd->polled_at = rd->polled_count = 0;
	/* A call for many waits the whole time unless so many come: one first, then what is there. */
	ssize_t n = rd_kafka_consume_batch_queue(rd->queue, timeout_ms, rd->polled, 1);
	if (n == 1) {
		ssize_t more = rd_kafka_consume_batch_queue(rd->queue, 0, rd->polled + 1, POLL_RECORDS - 1);
		n += more > 0 ? more : 0;
	}
	rd->polled_count = n > 0 ? (size_t)n : 0;
	if (n > 0) {
		rd->heard_ms = weir_kafka_now_ms();
		weir_kafka_client_poll(rd->kc, 0);
		return WEIR_OK;
	}
	enum weir_err err = weir_kafka_client_check(rd->kc, dg);
	if (err != WEIR_OK || weir_kafka_now_ms() - rd->heard_ms < DOWN_MS_MAX)
		return err;
	/* Long silence: is somebody there? */
	const struct rd_kafka_metadata *md;
	err = weir_kafka_client_metadata(rd->kc, rd->topic, DOWN_MS_MAX, &md, dg);
	if (err == WEIR_OK)
		rd_kafka_metadata_destroy(md);
	rd->heard_ms = weir_kafka_now_ms();
	return err;
}

enum weir_poll weir_kafka_reader_next(struct weir_kafka_reader *rd, int timeout_ms,
				      const struct weir_kafka_record **out, struct weir_diag **dg)
{
	give_back(rd);
	while (rd->undone != 0) {
		if (rd->in_order && next_partition(rd, dg) != WEIR_OK)
			return WEIR_POLL_ERROR;
		if (rd->polled_at == rd->polled_count) {
			if (poll_more(rd, timeout_ms, dg) != WEIR_OK)
				return WEIR_POLL_ERROR;
			if (rd->polled_count == 0)
				return WEIR_POLL_EMPTY;
		}
		rd_kafka_message_t *m = rd->polled[rd->polled_at++];
		enum weir_err err = m->err != 0 ? take_error(rd, m, dg) : WEIR_OK;
		bool mine = m->err == 0 && (uint32_t)m->partition < rd->part_count && !rd->parts[m->partition].done;
		struct part *pt = mine ? &rd->parts[m->partition] : NULL;
		if (mine && m->offset < pt->end) {
			decode(rd, m);
			rd->lent = true;
			pt->position = m->offset + 1;
			if (pt->position >= pt->end)
				set_done(rd, (uint32_t)m->partition, true);
			*out = &rd->record;
			return WEIR_POLL_UNIT;
		}
		if (mine)
			set_done(rd, (uint32_t)m->partition, true);
		rd_kafka_message_destroy(m);
		if (err != WEIR_OK)
			return WEIR_POLL_ERROR;
	}
	return WEIR_POLL_BOUND;
}
