/* held.c: reading the transactions' log for who holds a last stable offset back (held.h). @thread any, and a watch's
 * own */
#include "io/kafka/held.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hotpath/core/mem.h"
#include "io/kafka/client.h"

enum { LOOK_MS = 10000, ASK_MS = 5000, POLL_MS = 100, OPEN_MAX = 64, DAY_MS = 24 * 3600 * 1000 };
#define BYTES_MAX (UINT64_C(256) << 20)
static const char log_topic[] = "__transaction_state";

/* ---- the records ---- */

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static const uint8_t *take(struct cursor *c, size_t bytes)
{
	if (c->bad || (size_t)(c->end - c->at) < bytes) {
		c->bad = true;
		return NULL;
	}
	c->at += bytes;
	return c->at - bytes;
}

static int64_t take_int(struct cursor *c, size_t bytes)
{
	const uint8_t *p = take(c, bytes);
	uint64_t n = 0;
	for (size_t i = 0; p != NULL && i < bytes; i++)
		n = n << 8 | p[i];
	unsigned shift = (unsigned)(64 - 8 * bytes);
	return (int64_t)(n << shift) >> shift;
}

static uint64_t take_varint(struct cursor *c)
{
	uint64_t n = 0;
	for (unsigned shift = 0; shift < 35; shift += 7) {
		const uint8_t *p = take(c, 1);
		if (p == NULL)
			return 0;
		n |= (uint64_t)(*p & 0x7f) << shift;
		if (*p < 0x80)
			return n;
	}
	c->bad = true;
	return 0;
}

/* A length or count: of version 0 with fixed bytes, of flexible ones a varint of one more. -1: null. */
static int64_t take_count(struct cursor *c, bool flexible, size_t bytes)
{
	int64_t n = flexible ? (int64_t)take_varint(c) - 1 : take_int(c, bytes);
	return c->bad ? -1 : n;
}

static void skip_tags(struct cursor *c, bool flexible)
{
	for (uint64_t n = flexible ? take_varint(c) : 0; n > 0 && !c->bad; n--) {
		(void)take_varint(c);
		(void)take(c, take_varint(c));
	}
}

static bool list_has(struct cursor *c, bool flexible, const char *topic, uint32_t partition)
{
	bool has = false;
	size_t topic_bytes = strlen(topic);
	for (int64_t topics = take_count(c, flexible, 4); topics > 0 && !c->bad; topics--) {
		int64_t bytes = take_count(c, flexible, 2);
		const uint8_t *name = bytes >= 0 ? take(c, (size_t)bytes) : NULL;
		bool same = name != NULL && (size_t)bytes == topic_bytes && memcmp(name, topic, topic_bytes) == 0;
		for (int64_t parts = take_count(c, flexible, 4); parts > 0 && !c->bad; parts--)
			has |= take_int(c, 4) == (int64_t)partition && same;
		skip_tags(c, flexible);
	}
	return has;
}

bool weir_kafka_held_parse(const void *key, size_t key_bytes, const void *value, size_t value_bytes, const char *topic,
			   uint32_t partition, struct weir_kafka_holder *h, bool *open)
{
	struct cursor k = {key, (const uint8_t *)key + key_bytes, key == NULL};
	*h = (struct weir_kafka_holder){{0}, 0, 0, 0};
	*open = false;
	if (take_int(&k, 2) != 0)
		return false;
	int64_t id_bytes = take_int(&k, 2);
	const uint8_t *id = id_bytes >= 0 ? take(&k, (size_t)id_bytes) : NULL;
	if (id == NULL)
		return false;
	size_t shown = (size_t)id_bytes < sizeof h->id ? (size_t)id_bytes : sizeof h->id - 1;
	memcpy(h->id, id, shown);
	if (value == NULL)
		return true; /* forgotten */
	struct cursor c = {value, (const uint8_t *)value + value_bytes, false};
	int64_t version = take_int(&c, 2);
	if (c.bad || version < 0 || version > 1)
		return false;
	bool flexible = version > 0;
	h->producer_id = take_int(&c, 8);
	(void)take_int(&c, 2); /* its epoch */
	h->timeout_ms = take_int(&c, 4);
	int64_t status = take_int(&c, 1);
	bool has = list_has(&c, flexible, topic, partition);
	(void)take_int(&c, 8); /* last change */
	h->since_ms = take_int(&c, 8);
	*open = has && status >= 1 && status <= 3; /* ongoing, and being ended */
	return !c.bad;
}

/* ---- finding ---- */

/* Transactions that are open at a spot, as far as the log was read. */
struct open_list {
	struct weir_kafka_holder open[OPEN_MAX];
	uint32_t count;
};

static void note(struct open_list *l, const struct weir_kafka_holder *h, bool open)
{
	uint32_t i = 0;
	while (i < l->count && strcmp(l->open[i].id, h->id) != 0)
		i++;
	if (open && i < OPEN_MAX) {
		l->open[i] = *h;
		l->count += i == l->count;
	} else if (!open && i < l->count) {
		l->open[i] = l->open[--l->count];
	}
}

static void name_holders(struct weir_kafka_spot *spots, uint32_t count, const struct open_list *lists)
{
	for (uint32_t s = 0; s < count; s++) {
		spots[s].holder.id[0] = '\0';
		for (uint32_t i = 0; i < lists[s].count; i++)
			if (spots[s].holder.id[0] == '\0' || lists[s].open[i].since_ms < spots[s].holder.since_ms)
				spots[s].holder = lists[s].open[i];
	}
}

/* Every partition of the log from its place a day ago. *left: how many. */
static bool assign_log(struct weir_kafka_client *kc, uint32_t *left)
{
	struct weir_diag *dg = NULL;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	enum weir_err err = weir_kafka_client_partitions(kc, log_topic, left, &dg);
	weir_diag_destroy(dg);
	if (err != WEIR_OK || *left == 0)
		return false;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)*left);
	for (uint32_t p = 0; p < *left; p++)
		rd_kafka_topic_partition_list_add(list, log_topic, (int32_t)p)->offset =
			(int64_t)now.tv_sec * 1000 - DAY_MS;
	bool ok = rd_kafka_offsets_for_times(weir_kafka_client_handle(kc), list, ASK_MS) == 0;
	ok = ok && rd_kafka_assign(weir_kafka_client_handle(kc), list) == 0;
	rd_kafka_topic_partition_list_destroy(list);
	return ok;
}

bool weir_kafka_held_find(const struct weir_conf *cf, struct weir_kafka_spot *spots, uint32_t count, int64_t wait_ms,
			  const _Atomic bool *stop)
{
	struct weir_kafka_client *kc;
	struct weir_diag *dg = NULL;
	if (count == 0)
		return true;
	enum weir_err err = weir_kafka_client_create(&kc, cf, WEIR_KAFKA_READ, NULL, NULL, &dg);
	weir_diag_destroy(dg);
	if (err != WEIR_OK)
		return false;
	struct open_list *lists = weir_xcalloc(count, sizeof *lists);
	uint32_t left = 0;
	uint64_t bytes = 0;
	int64_t began = weir_kafka_now_ms();
	bool ok = assign_log(kc, &left);
	rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(weir_kafka_client_handle(kc));
	while (ok && left > 0) {
		rd_kafka_message_t *m = rd_kafka_consume_queue(queue, POLL_MS);
		ok = weir_kafka_now_ms() - began < wait_ms && bytes < BYTES_MAX &&
		     !(stop != NULL && atomic_load_explicit(stop, memory_order_relaxed));
		if (m == NULL)
			continue;
		if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
			left--;
		else if (m->err != 0)
			ok = ok && weir_kafka_err_is_passed_over(m->err);
		bytes += m->err == 0 ? m->key_len + m->len : 0;
		for (uint32_t s = 0; m->err == 0 && s < count; s++) {
			struct weir_kafka_holder h;
			bool open;
			if (weir_kafka_held_parse(m->key, m->key_len, m->payload, m->len, spots[s].topic,
						  spots[s].partition, &h, &open))
				note(&lists[s], &h, open);
		}
		rd_kafka_message_destroy(m);
	}
	if (ok)
		name_holders(spots, count, lists);
	free(lists);
	(void)rd_kafka_assign(weir_kafka_client_handle(kc), NULL);
	rd_kafka_queue_destroy(queue);
	(void)rd_kafka_consumer_close(weir_kafka_client_handle(kc));
	weir_kafka_client_destroy(kc);
	return ok;
}

void weir_kafka_held_text(const struct weir_kafka_holder *h, char *out, size_t bytes)
{
	if (h->id[0] == '\0') {
		snprintf(out, bytes, "an unfinished transaction of somebody not found in %s", log_topic);
		return;
	}
	time_t since = (time_t)(h->since_ms / 1000);
	struct tm tm;
	char text[64] = "";
	if (gmtime_r(&since, &tm) != NULL)
		snprintf(text, sizeof text, "%04d-%02d-%02d %02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
			 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	snprintf(out, bytes, "the unfinished transaction of %s (producer %lld, begun %s UTC, time-out %lld s)", h->id,
		 (long long)h->producer_id, text, (long long)(h->timeout_ms / 1000));
}

/* ---- a look beside the reader ---- */

struct weir_kafka_watch {
	struct weir_conf *cf;
	struct weir_kafka_log log;
	struct weir_kafka_client *admin; /* the thread's, once it was needed */
	struct weir_kafka_spot *spots;
	uint32_t count, capacity;
	pthread_t thread;
	bool started; /* there is a thread to join */
	bool looked;  /* spots have their answers */
	_Atomic bool over, stop;
};

struct weir_kafka_watch *weir_kafka_watch_create(const struct weir_conf *cf, const struct weir_kafka_log *lg)
{
	struct weir_kafka_watch *w = weir_xcalloc(1, sizeof *w);
	w->cf = weir_conf_copy(cf);
	if (lg != NULL)
		w->log = *lg;
	return w;
}

static void join(struct weir_kafka_watch *w)
{
	if (!w->started)
		return;
	(void)pthread_join(w->thread, NULL);
	w->started = false;
	w->looked = true;
}

void weir_kafka_watch_destroy(struct weir_kafka_watch *w)
{
	if (w == NULL)
		return;
	atomic_store(&w->stop, true);
	join(w);
	weir_kafka_client_destroy(w->admin);
	weir_conf_destroy(w->cf);
	free(w->spots);
	free(w);
}

static bool is_busy(struct weir_kafka_watch *w)
{
	if (w->started && atomic_load_explicit(&w->over, memory_order_acquire))
		join(w);
	return w->started;
}

struct weir_kafka_spot *weir_kafka_watch_room(struct weir_kafka_watch *w, uint32_t most)
{
	if (is_busy(w))
		return NULL;
	if (most > w->capacity) {
		w->spots = weir_xrealloc(w->spots, most * sizeof *w->spots);
		w->capacity = most;
	}
	w->looked = false;
	return w->spots;
}

/* The real ends of the spots' logs. */
static bool compare(struct weir_kafka_watch *w)
{
	struct weir_diag *dg = NULL;
	if (w->admin == NULL &&
	    weir_kafka_client_create(&w->admin, w->cf, WEIR_KAFKA_ADMIN, NULL, NULL, &dg) != WEIR_OK) {
		weir_diag_destroy(dg);
		return false;
	}
	/* A handle asks for the end of what it has heard of only. */
	for (uint32_t s = 0; s < w->count; s++) {
		uint32_t partitions;
		if (s > 0 && strcmp(w->spots[s].topic, w->spots[s - 1].topic) == 0)
			continue;
		if (weir_kafka_client_partitions(w->admin, w->spots[s].topic, &partitions, &dg) != WEIR_OK) {
			weir_diag_destroy(dg);
			return false;
		}
	}
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)w->count);
	for (uint32_t s = 0; s < w->count; s++)
		rd_kafka_topic_partition_list_add(list, w->spots[s].topic, (int32_t)w->spots[s].partition)->offset =
			RD_KAFKA_OFFSET_END;
	bool ok = rd_kafka_offsets_for_times(weir_kafka_client_handle(w->admin), list, ASK_MS) == 0;
	for (uint32_t s = 0; ok && s < w->count; s++)
		w->spots[s].is_shorter = list->elems[s].err == 0 && list->elems[s].offset > w->spots[s].eof;
	rd_kafka_topic_partition_list_destroy(list);
	return ok;
}

static void *look(void *arg)
{
	struct weir_kafka_watch *w = arg;
	for (uint32_t s = 0; s < w->count; s++) {
		w->spots[s].is_shorter = false;
		w->spots[s].holder.id[0] = '\0';
	}
	/* Those that are held come first: only they are looked for. */
	uint32_t held = 0;
	bool known = compare(w);
	for (uint32_t s = 0; known && s < w->count; s++) {
		if (!w->spots[s].suspect || !w->spots[s].is_shorter)
			continue;
		struct weir_kafka_spot spot = w->spots[s];
		w->spots[s] = w->spots[held];
		w->spots[held++] = spot;
	}
	if (held > 0)
		(void)weir_kafka_held_find(w->cf, w->spots, held, LOOK_MS, &w->stop);
	for (uint32_t s = 0; s < held && !atomic_load(&w->stop); s++) {
		char who[WEIR_KAFKA_HELD_TEXT];
		weir_kafka_held_text(&w->spots[s].holder, who, sizeof who);
		weir_kafka_log_say(&w->log, 4, "topic %s, partition %u: %s holds back what follows offset %lld",
				   w->spots[s].topic, w->spots[s].partition, who, (long long)w->spots[s].eof);
	}
	atomic_store_explicit(&w->over, true, memory_order_release);
	return NULL;
}

void weir_kafka_watch_begin(struct weir_kafka_watch *w, uint32_t count)
{
	w->count = count;
	atomic_store(&w->over, false);
	w->started = pthread_create(&w->thread, NULL, look, w) == 0;
}

const struct weir_kafka_spot *weir_kafka_watch_result(struct weir_kafka_watch *w, uint32_t *count)
{
	if (is_busy(w) || !w->looked)
		return NULL;
	*count = w->count;
	return w->spots;
}
