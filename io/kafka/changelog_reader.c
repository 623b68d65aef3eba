/* changelog_reader.c: reads a changelog partition by an assign()-only consumer (changelog_reader.h). @thread: one owner
 *
 * The end H is asked of the admin handle, which sees uncommitted records: the last stable offset may still lie before
 * records whose commit the group's offsets show already. Done when an end-of-partition offset reaches H: the last
 * record's offset says nothing where the tail was aborted, compacted away or is a marker of a transaction.
 *
 * Reading always begins at a number, never at RD_KAFKA_OFFSET_BEGINNING: librdkafka (2.0.2) forgets that a partition
 * was given back while it asked for its beginning, and fetches it for ever once the answer comes. */
#include "io/kafka/changelog_reader.h"

#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/frames.h"
#include "io/kafka/headers.h"
#include "io/kafka/held.h"

enum {
	ASK_MS = 2500,
	HELD_MS = 10000,
	POLL_MS = 100,
	TURN_MS = 1000,
	SAY_MS = 10000,
	SLOW_MS = 1000,
	KEPT_MS = 5000,
	ALIVE_MS = 200
};

typedef enum weir_err each_fn(void *ctx, const struct weir_record *r, struct weir_diag **dg);

struct weir_changelog_reader {
	struct weir_changelog_reader_conf conf;
	struct weir_kafka_client *kc;
	rd_kafka_queue_t *queue;
	struct weir_buf headers;
	/* What was read last, for a second read. */
	struct weir_frames kept;
	char *kept_topic; /* NULL: nothing */
	uint32_t kept_partition;
	int64_t kept_ms; /* when it was whole */
	bool keeping;
	/* What comes after the next read; NULL: nothing known. */
	char *expected_topic;
	uint32_t expected_partition;
	/* What the consumer is assigned, to be read next; NULL: nothing. */
	char *ahead_topic;
	uint32_t ahead_partition;
	int64_t ahead_from;
	/* The read that is going on. */
	const char *topic;
	uint32_t partition;
	int64_t low, high;
	int64_t stop_at;  /* the end, or of a probe behind its record */
	int64_t position; /* behind the last record or end of partition seen */
	int64_t eof;      /* the last end of partition seen, -1: none */
	each_fn *each;
	void *ctx;
	struct weir_diag **dg;
	enum weir_err err;
	bool done;
	bool doubt; /* it was called unknown */
	uint64_t records, bytes;
	uint64_t fetched; /* bytes of all reads since last asked */
	int64_t began_ms, moved_ms, said_ms;
	struct weir_kafka_wait open; /* since it last moved, */
	int64_t open_ms;             /* which was then */
	enum weir_err (*alive)(void *ctx, struct weir_diag **dg);
	void *alive_ctx;
	int64_t alive_ms; /* when it was called last */
};

enum weir_err weir_changelog_reader_create(struct weir_changelog_reader **out,
					   const struct weir_changelog_reader_conf *conf, struct weir_diag **dg)
{
	static const struct weir_kafka_setting quick[] = {{"fetch.wait.max.ms", "1"}, {NULL, NULL}};
	struct weir_kafka_client *kc;
	enum weir_err err = weir_kafka_client_create(&kc, conf->cf, WEIR_KAFKA_READ, quick, conf->log, dg);
	if (err != WEIR_OK)
		return err;
	struct weir_changelog_reader *cr = weir_xcalloc(1, sizeof *cr);
	cr->conf = *conf;
	cr->kc = kc;
	cr->queue = rd_kafka_queue_get_consumer(weir_kafka_client_handle(kc));
	cr->kept.bytes_max = conf->keep_bytes_max;
	*out = cr;
	return WEIR_OK;
}

void weir_changelog_reader_destroy(struct weir_changelog_reader *cr)
{
	if (cr == NULL)
		return;
	weir_changelog_reader_forget(cr);
	free(cr->ahead_topic);
	free(cr->expected_topic);
	rd_kafka_queue_destroy(cr->queue);
	(void)rd_kafka_consumer_close(weir_kafka_client_handle(cr->kc));
	weir_kafka_client_destroy(cr->kc);
	weir_buf_fini(&cr->headers);
	free(cr);
}

void weir_changelog_reader_forget(struct weir_changelog_reader *cr)
{
	weir_frames_fini(&cr->kept);
	cr->kept.bytes_max = cr->conf.keep_bytes_max;
	free(cr->kept_topic);
	cr->kept_topic = NULL;
	cr->keeping = false;
}

/* Fetching goes on by itself until there is another assignment. */
static void unassign(struct weir_changelog_reader *cr)
{
	(void)rd_kafka_assign(weir_kafka_client_handle(cr->kc), NULL);
	free(cr->ahead_topic);
	cr->ahead_topic = NULL;
}

void weir_changelog_reader_rest(struct weir_changelog_reader *cr)
{
	weir_changelog_reader_forget(cr);
	if (cr->ahead_topic != NULL)
		unassign(cr);
	free(cr->expected_topic);
	cr->expected_topic = NULL;
}

uint64_t weir_changelog_reader_waiting(const struct weir_changelog_reader *cr)
{
	return rd_kafka_queue_length(cr->queue);
}

static bool stopped(const struct weir_changelog_reader *cr)
{
	return cr->conf.stop != NULL && atomic_load_explicit(cr->conf.stop, memory_order_relaxed);
}

void weir_changelog_reader_warm(struct weir_changelog_reader *cr, const char *topic)
{
	rd_kafka_t *rk = weir_kafka_client_handle(cr->kc);
	rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
	const struct rd_kafka_metadata *md;
	if (rkt == NULL)
		return;
	if (rd_kafka_metadata(rk, 0, rkt, &md, ASK_MS) == RD_KAFKA_RESP_ERR_NO_ERROR)
		rd_kafka_metadata_destroy(md);
	rd_kafka_topic_destroy(rkt);
}

/* ---- what is kept ---- */

struct replay {
	each_fn *each;
	void *ctx;
};

static enum weir_err replay_one(void *ctx, struct weir_frame *f, struct weir_diag **dg)
{
	const struct replay *rp = ctx;
	struct weir_record r = {.key = f->r.key.data,
				.value = f->r.value.data,
				.key_bytes = (uint32_t)f->r.key.bytes,
				.value_bytes = (uint32_t)f->r.value.bytes,
				.headers = f->r.headers,
				.headers_bytes = f->r.headers_bytes,
				.header_count = f->r.header_count,
				.offset = (int64_t)f->seq,
				.timestamp = f->r.timestamp};
	return rp->each(rp->ctx, &r, dg);
}

static void keep(struct weir_changelog_reader *cr, const struct weir_record *r)
{
	const struct weir_out o = {.key = {r->key, r->key_bytes},
				   .value = {r->value, r->value_bytes},
				   .headers = r->headers,
				   .headers_bytes = r->headers_bytes,
				   .header_count = r->header_count,
				   .timestamp = r->timestamp};
	struct weir_frame *f = weir_frames_add(&cr->kept, 0, cr->partition, &o);
	if (f == NULL)
		weir_changelog_reader_forget(cr); /* too large: it is fetched again */
	else
		f->seq = (uint64_t)r->offset;
}

static bool is_kept(const struct weir_changelog_reader *cr, const char *topic, uint32_t partition)
{
	return cr->kept_topic != NULL && cr->kept_partition == partition && strcmp(cr->kept_topic, topic) == 0 &&
	       weir_kafka_now_ms() - cr->kept_ms < KEPT_MS;
}

/* ---- bounds ---- */

static rd_kafka_resp_err_t ask_bounds(const struct weir_changelog_reader *cr, const char *topic, uint32_t partition,
				      int64_t *low, int64_t *high)
{
	return rd_kafka_query_watermark_offsets(weir_kafka_client_handle(cr->conf.admin), topic, (int32_t)partition,
						low, high, ASK_MS);
}

void weir_changelog_reader_set_alive(struct weir_changelog_reader *cr,
				     enum weir_err (*alive)(void *ctx, struct weir_diag **dg), void *ctx)
{
	cr->alive = alive;
	cr->alive_ctx = ctx;
}

static enum weir_err be_alive(struct weir_changelog_reader *cr, struct weir_diag **dg)
{
	int64_t now = weir_kafka_now_ms();
	if (cr->alive == NULL || now - cr->alive_ms < ALIVE_MS)
		return WEIR_OK;
	cr->alive_ms = now;
	return cr->alive(cr->alive_ctx, dg);
}

static enum weir_err find_end(struct weir_changelog_reader *cr, struct weir_diag **dg)
{
	for (int64_t said = weir_kafka_now_ms();;) {
		rd_kafka_resp_err_t code = ask_bounds(cr, cr->topic, cr->partition, &cr->low, &cr->high);
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
			return WEIR_OK;
		enum weir_err err = WEIR_OK;
		if (weir_kafka_err_is_unknown(code))
			err = weir_kafka_client_confirm(cr->conf.admin, cr->topic, cr->partition + 1, dg);
		else if (!weir_kafka_err_is_retriable(code))
			err = weir_kafka_fail(dg, code, NULL, "topic %s, partition %u", cr->topic, cr->partition);
		if (err == WEIR_OK)
			err = weir_kafka_client_check(cr->conf.admin, dg);
		if (err == WEIR_OK)
			err = be_alive(cr, dg);
		if (err != WEIR_OK)
			return err;
		if (stopped(cr))
			return weir_diag_set(dg, WEIR_E_STOPPED, "stopped while waiting for brokers");
		if (weir_kafka_now_ms() - said >= SAY_MS) {
			said = weir_kafka_now_ms();
			weir_kafka_client_say(
				cr->kc, 4, "still waiting for %s, to restore from topic %s, partition %u: %s",
				weir_kafka_client_brokers(cr->kc), cr->topic, cr->partition, rd_kafka_err2str(code));
		}
		weir_kafka_client_poll(cr->conf.admin, POLL_MS);
	}
}

static enum weir_err assign(struct weir_changelog_reader *cr, const char *topic, uint32_t partition, int64_t offset,
			    struct weir_diag **dg)
{
	free(cr->ahead_topic);
	cr->ahead_topic = NULL;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(list, topic, (int32_t)partition)->offset = offset;
	rd_kafka_resp_err_t code = rd_kafka_assign(weir_kafka_client_handle(cr->kc), list);
	rd_kafka_topic_partition_list_destroy(list);
	return code == 0 ? WEIR_OK : weir_kafka_fail(dg, code, NULL, "reading topic %s", topic);
}

/* From its start, where it may be on its way already. */
static enum weir_err assign_whole(struct weir_changelog_reader *cr, struct weir_diag **dg)
{
	if (cr->ahead_topic != NULL && cr->ahead_partition == cr->partition && cr->ahead_from == cr->low &&
	    strcmp(cr->ahead_topic, cr->topic) == 0)
		return WEIR_OK;
	return assign(cr, cr->topic, cr->partition, cr->low, dg);
}

/* While the caller is busy with what it has read, the next partition comes in. Not if there is nothing in it, or
 * brokers do not say: its own read finds out why. */
static enum weir_err fetch_ahead(struct weir_changelog_reader *cr, struct weir_diag **dg)
{
	int64_t low, high;
	if (cr->expected_topic == NULL ||
	    ask_bounds(cr, cr->expected_topic, cr->expected_partition, &low, &high) != RD_KAFKA_RESP_ERR_NO_ERROR ||
	    high <= low)
		return WEIR_OK;
	enum weir_err err = assign(cr, cr->expected_topic, cr->expected_partition, low, dg);
	if (err != WEIR_OK)
		return err;
	cr->ahead_topic = cr->expected_topic;
	cr->ahead_partition = cr->expected_partition;
	cr->ahead_from = low;
	cr->expected_topic = NULL;
	return WEIR_OK;
}

void weir_changelog_reader_expect(struct weir_changelog_reader *cr, const char *topic, uint32_t partition)
{
	free(cr->expected_topic);
	cr->expected_topic = weir_xstrdup(topic);
	cr->expected_partition = partition;
}

/* ---- records ---- */

static void take_record(struct weir_changelog_reader *cr, const rd_kafka_message_t *m)
{
	rd_kafka_timestamp_type_t type;
	struct weir_record r = {.key = m->key,
				.value = m->payload,
				.key_bytes = (uint32_t)m->key_len,
				.value_bytes = (uint32_t)m->len,
				.offset = m->offset,
				.timestamp = rd_kafka_message_timestamp(m, &type)};
	weir_kafka_headers_encode(m, &cr->headers, &r);
	cr->position = m->offset + 1;
	if (cr->keeping)
		keep(cr, &r);
	cr->records++;
	cr->bytes += m->key_len + m->len;
	cr->fetched += m->key_len + m->len;
	cr->err = cr->each(cr->ctx, &r, cr->dg);
}

/* A record that this read is not about may still be in the queue, of the assignment before. */
static void on_message(rd_kafka_message_t *m, void *opaque)
{
	struct weir_changelog_reader *cr = opaque;
	if (cr->err != WEIR_OK || cr->done)
		return;
	bool mine = m->rkt != NULL && m->partition == (int32_t)cr->partition &&
		    strcmp(rd_kafka_topic_name(m->rkt), cr->topic) == 0;
	if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		if (mine && m->offset >= cr->position && m->offset < cr->stop_at) {
			cr->moved_ms = weir_kafka_now_ms();
			take_record(cr, m);
		}
		cr->done |= mine && m->offset >= cr->stop_at - 1;
	} else if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
		if (!mine)
			return;
		if (m->offset > cr->eof)
			cr->moved_ms = weir_kafka_now_ms();
		cr->eof = m->offset;
		cr->done = m->offset >= cr->stop_at;
	} else if (weir_kafka_err_is_unknown(m->err)) {
		cr->doubt = true;
	} else if (!weir_kafka_err_is_passed_over(m->err)) {
		cr->err = weir_kafka_fail(cr->dg, m->err, rd_kafka_message_errstr(m), "reading topic %s, partition %u",
					  cr->topic, cr->partition);
	}
}

static void say_progress(struct weir_changelog_reader *cr, int64_t now)
{
	double done = cr->high > cr->low ? (double)(cr->position - cr->low) / (double)(cr->high - cr->low) : 1;
	int64_t spent = now - cr->began_ms;
	weir_kafka_client_say(
		cr->kc, 6, "restoring from topic %s, partition %u: %llu records, %llu MB, %d%% done, about %lld s left",
		cr->topic, cr->partition, (unsigned long long)cr->records, (unsigned long long)(cr->bytes >> 20),
		(int)(done * 100), (long long)(done > 0 ? (double)spent * (1 - done) / done / 1000 : 0));
}

/* Nothing more comes for now: why, and is it worth waiting? */
static enum weir_err wait_longer(struct weir_changelog_reader *cr, int64_t open_ms, struct weir_diag **dg)
{
	int64_t now = weir_kafka_now_ms();
	enum weir_err err = weir_kafka_client_check(cr->kc, dg);
	if (err == WEIR_OK && cr->doubt)
		err = weir_kafka_client_confirm(cr->conf.admin, cr->topic, cr->partition + 1, dg);
	cr->doubt = false;
	if (err != WEIR_OK)
		return err;
	if (stopped(cr))
		return weir_diag_set(dg, WEIR_E_STOPPED, "stopped while restoring from topic %s", cr->topic);
	bool held = cr->eof >= 0 && cr->eof >= cr->position;
	if (cr->open_ms != cr->moved_ms) {
		cr->open_ms = cr->moved_ms;
		weir_kafka_wait_begin(&cr->open, open_ms);
	}
	if (held && weir_kafka_wait_left(&cr->open, TURN_MS) == 0)
		return weir_kafka_fail(
			dg, RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT, "it goes on for too long",
			"topic %s, partition %u: an unfinished transaction holds back what follows offset "
			"%lld",
			cr->topic, cr->partition, (long long)cr->eof);
	if (now - cr->said_ms < SAY_MS)
		return WEIR_OK;
	cr->said_ms = now;
	if (held) {
		struct weir_kafka_spot spot = {
			.topic = cr->topic, .partition = cr->partition, .eof = cr->eof, .suspect = true};
		char who[WEIR_KAFKA_HELD_TEXT];
		(void)weir_kafka_held_find(cr->conf.cf, &spot, 1, HELD_MS, cr->conf.stop);
		weir_kafka_held_text(&spot.holder, who, sizeof who);
		weir_kafka_client_say(cr->kc, 4,
				      "topic %s, partition %u: waiting for %s, which holds back what follows offset "
				      "%lld; the end is %lld",
				      cr->topic, cr->partition, who, (long long)cr->eof, (long long)cr->high);
	} else if (now - cr->moved_ms >= SAY_MS)
		weir_kafka_client_say(cr->kc, 4, "still waiting for %s, to read topic %s, partition %u",
				      weir_kafka_client_brokers(cr->kc), cr->topic, cr->partition);
	return WEIR_OK;
}

/* Reads what is assigned until the end of the partition reaches stop_at, or the record before it was seen. */
static enum weir_err run(struct weir_changelog_reader *cr, int64_t from, int64_t stop_at, int64_t open_ms,
			 each_fn *each, void *ctx, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	cr->position = from;
	cr->stop_at = stop_at;
	cr->eof = -1;
	cr->each = each;
	cr->ctx = ctx;
	cr->dg = dg;
	cr->err = WEIR_OK;
	cr->done = cr->doubt = false;
	cr->open_ms = 0;
	cr->records = cr->bytes = 0;
	cr->began_ms = cr->moved_ms = cr->said_ms = weir_kafka_now_ms();
	int64_t next = cr->began_ms + SLOW_MS;
	while (err == WEIR_OK && !cr->done) {
		int served = rd_kafka_consume_callback_queue(cr->queue, POLL_MS, on_message, cr);
		err = cr->err;
		int64_t now = weir_kafka_now_ms();
		if (err == WEIR_OK && !cr->done && (served <= 0 || now - cr->moved_ms > POLL_MS))
			err = wait_longer(cr, open_ms, dg);
		if (err == WEIR_OK && !cr->done)
			err = be_alive(cr, dg);
		if (now >= next && cr->records > 0) {
			say_progress(cr, now);
			next = now + SAY_MS;
		}
	}
	return err;
}

enum weir_err weir_changelog_reader_read(struct weir_changelog_reader *cr, const char *topic, uint32_t partition,
					 int64_t open_ms, each_fn *each, void *ctx, struct weir_diag **dg)
{
	if (is_kept(cr, topic, partition)) {
		struct replay rp = {each, ctx};
		enum weir_err err = weir_frames_each(&cr->kept, replay_one, &rp, dg);
		weir_changelog_reader_forget(cr);
		return err;
	}
	weir_changelog_reader_forget(cr);
	cr->topic = topic;
	cr->partition = partition;
	enum weir_err err = find_end(cr, dg);
	if (err != WEIR_OK)
		return err;
	if (cr->high <= cr->low) {
		if (cr->ahead_topic != NULL)
			unassign(cr);
		return fetch_ahead(cr, dg);
	}
	cr->keeping = true;
	err = assign_whole(cr, dg);
	if (err == WEIR_OK)
		err = run(cr, cr->low, cr->high, open_ms, each, ctx, dg);
	unassign(cr);
	if (err == WEIR_OK)
		err = fetch_ahead(cr, dg);
	if (err == WEIR_OK && cr->keeping) {
		cr->kept_topic = weir_xstrdup(topic);
		cr->kept_partition = partition;
		cr->kept_ms = weir_kafka_now_ms();
	} else {
		weir_changelog_reader_forget(cr);
	}
	int64_t spent = weir_kafka_now_ms() - cr->began_ms;
	if (err == WEIR_OK && spent >= SLOW_MS)
		weir_kafka_client_say(cr->kc, 6,
				      "restored from topic %s, partition %u: %llu records, %llu MB in %lld ms", topic,
				      partition, (unsigned long long)cr->records, (unsigned long long)(cr->bytes >> 20),
				      (long long)spent);
	return err;
}

enum weir_err weir_changelog_reader_tail(struct weir_changelog_reader *cr, const char *topic, uint32_t partition,
					 int64_t from, int64_t open_ms, each_fn *each, void *ctx, int64_t *end,
					 bool *fits, struct weir_diag **dg)
{
	weir_changelog_reader_forget(cr);
	cr->topic = topic;
	cr->partition = partition;
	*fits = true;
	enum weir_err err = find_end(cr, dg);
	if (err != WEIR_OK)
		return err;
	*fits = from >= cr->low && from <= cr->high;
	if (!*fits)
		return WEIR_OK;
	*end = cr->high;
	if (from < cr->high) {
		err = assign(cr, topic, partition, from, dg);
		if (err == WEIR_OK)
			err = run(cr, from, cr->high, open_ms, each, ctx, dg);
	}
	unassign(cr);
	return err == WEIR_OK ? fetch_ahead(cr, dg) : err;
}

int64_t weir_changelog_reader_end(const struct weir_changelog_reader *cr)
{
	return cr->high;
}

uint64_t weir_changelog_reader_fetched(struct weir_changelog_reader *cr)
{
	uint64_t bytes = cr->fetched;
	cr->fetched = 0;
	return bytes;
}

static enum weir_err note_offset(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	int64_t *offset = ctx;
	(void)dg;
	if (r->offset == *offset)
		*offset = -1;
	return WEIR_OK;
}

enum weir_err weir_changelog_reader_probe(struct weir_changelog_reader *cr, const char *topic, uint32_t partition,
					  int64_t offset, int64_t open_ms, bool *committed, struct weir_diag **dg)
{
	weir_changelog_reader_forget(cr);
	cr->topic = topic;
	cr->partition = partition;
	cr->low = cr->high = -1;
	int64_t found = offset;
	enum weir_err err = assign(cr, topic, partition, offset, dg);
	if (err == WEIR_OK)
		err = run(cr, offset, offset + 1, open_ms, note_offset, &found, dg);
	unassign(cr);
	*committed = found == -1;
	return err;
}
