/* driver.c: weir_driver_*: the whole engine on the caller's thread, topics in memory, time that moves only when told.
 * What `weir test` and tests run. The same feed, worker and snapshotter as engine.c, stepped in turn. @thread init, all
 * of it */
#include <stdio.h>
#include <stdlib.h>

#include "io/core.h"

/* ---- a source in memory: one partition, records pushed one by one ---- */

struct memory_record {
	struct weir_record r;
	uint8_t bytes[];
};

struct memory_stream {
	struct weir_stream_log base;
	const char *topic;
	struct memory_record *waiting; /* at most one: the driver runs after each push */
	struct weir_unit unit;
	int64_t next_offset;
};

static uint32_t memory_partitions(const struct weir_stream_log *sl)
{
	(void)sl;
	return 1;
}

static enum weir_poll memory_peek(struct weir_stream_log *sl, uint32_t p, int64_t *first_ts, struct weir_diag **dg)
{
	struct memory_stream *ms = (struct memory_stream *)sl;
	(void)p;
	(void)dg;
	if (!ms->waiting)
		return WEIR_POLL_EMPTY;
	*first_ts = ms->waiting->r.timestamp;
	return WEIR_POLL_UNIT;
}

static enum weir_err memory_take(struct weir_stream_log *sl, uint32_t p, struct weir_unit **out, struct weir_diag **dg)
{
	struct memory_stream *ms = (struct memory_stream *)sl;
	(void)p;
	(void)dg;
	struct memory_record *mr = ms->waiting;
	ms->waiting = NULL;
	ms->unit = (struct weir_unit){.count = 1,
				      .records = &mr->r,
				      .bytes = mr->r.key_bytes + mr->r.value_bytes + mr->r.headers_bytes,
				      .memory = sizeof *mr,
				      .next_offset = mr->r.offset + 1};
	*out = &ms->unit;
	return WEIR_OK;
}

static void memory_release(struct weir_stream_log *sl, struct weir_unit *u)
{
	(void)sl;
	free(u->records); /* the head of its struct memory_record */
	u->records = NULL;
}

static enum weir_err memory_seek(struct weir_stream_log *sl, uint32_t p, int64_t offset, struct weir_diag **dg)
{
	(void)sl;
	(void)p;
	(void)offset;
	(void)dg;
	return WEIR_OK;
}

static void memory_range(struct weir_stream_log *sl, uint32_t p, int64_t *first, int64_t *end)
{
	(void)sl;
	(void)p;
	*first = 0;
	*end = INT64_MAX;
}

static int memory_event_fd(const struct weir_stream_log *sl)
{
	(void)sl;
	return -1;
}

static const char *memory_topic(const struct weir_stream_log *sl, uint32_t p, uint32_t *partition)
{
	*partition = p;
	return ((const struct memory_stream *)sl)->topic;
}

static void memory_close(struct weir_stream_log *sl)
{
	struct memory_stream *ms = (struct memory_stream *)sl;
	free(ms->waiting);
	free(ms);
}

static const struct weir_stream_ops memory_stream_ops = {
	memory_partitions, memory_peek,  memory_take,  memory_release, memory_seek, memory_range,
	memory_event_fd,   memory_topic, memory_close, NULL,           NULL,        NULL};

/* ---- a log in memory: results wait in order until popped, changelogs are not kept ---- */

struct memory_result {
	struct memory_result *next;
	struct weir_driver_record r;
	uint8_t bytes[];
};

struct memory_topic {
	char *name;
	bool keep;
	struct memory_result *first, **last;
};

enum { DRIVER_TOPICS_MAX = 4096 };

struct memory_log {
	struct weir_log base;
	struct memory_topic *topics;
	uint32_t count;
};

static enum weir_err log_topic(struct weir_log *lg, const struct weir_topic_spec *spec, uint32_t *topic,
			       uint32_t *partitions, struct weir_diag **dg)
{
	struct memory_log *ml = (struct memory_log *)lg;
	*partitions = spec->kind == WEIR_TOPIC_CHANGELOG ? spec->partitions : 1;
	for (uint32_t i = 0; i < ml->count; i++)
		if (strcmp(ml->topics[i].name, spec->name) == 0) {
			*topic = i;
			return WEIR_OK;
		}
	if (ml->count == DRIVER_TOPICS_MAX)
		return weir_diag_set(dg, WEIR_E_CONF, "a test may have at most %d topics", DRIVER_TOPICS_MAX);
	struct memory_topic *mt = &ml->topics[ml->count];
	mt->name = weir_xstrdup(spec->name);
	mt->keep = spec->kind != WEIR_TOPIC_CHANGELOG;
	mt->last = &mt->first;
	*topic = ml->count++;
	return WEIR_OK;
}

static const void *put(uint8_t **at, const void *data, size_t bytes)
{
	uint8_t *to = *at;
	if (!data)
		return NULL;
	if (bytes)
		memcpy(to, data, bytes);
	*at += bytes;
	return to;
}

static enum weir_err log_append(struct weir_log *lg, uint32_t topic, uint32_t partition, const struct weir_out *r,
				struct weir_diag **dg)
{
	struct memory_topic *mt = &((struct memory_log *)lg)->topics[topic];
	(void)partition;
	(void)dg;
	if (!mt->keep)
		return WEIR_OK;
	struct memory_result *mr = weir_xcalloc(1, sizeof *mr + r->key.bytes + r->value.bytes + r->headers_bytes + 1);
	uint8_t *at = mr->bytes;
	mr->r.key = (struct weir_slice){put(&at, r->key.data, r->key.bytes), r->key.bytes};
	mr->r.value = (struct weir_slice){put(&at, r->value.data, r->value.bytes), r->value.bytes};
	mr->r.headers = put(&at, r->headers, r->headers_bytes);
	mr->r.headers_bytes = r->headers_bytes;
	mr->r.header_count = r->header_count;
	mr->r.timestamp_ms = r->timestamp;
	*mt->last = mr;
	mt->last = &mr->next;
	return WEIR_OK;
}

static enum weir_err log_cut(struct weir_log *lg, struct weir_diag **dg)
{
	(void)lg;
	(void)dg;
	return WEIR_OK;
}

static enum weir_err log_commit(struct weir_log *lg, uint64_t epoch, struct weir_diag **dg)
{
	(void)lg;
	(void)epoch;
	(void)dg;
	return WEIR_OK;
}

static enum weir_err log_read(struct weir_log *lg, uint32_t topic, uint32_t partition,
			      enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
			      void *ctx, struct weir_diag **dg)
{
	(void)lg;
	(void)topic;
	(void)partition;
	(void)each;
	(void)ctx;
	(void)dg;
	return WEIR_OK;
}

static uint64_t log_epoch(const struct weir_log *lg)
{
	(void)lg;
	return 0;
}

static void log_close(struct weir_log *lg)
{
	struct memory_log *ml = (struct memory_log *)lg;
	for (uint32_t i = 0; i < ml->count; i++) {
		for (struct memory_result *mr = ml->topics[i].first; mr;) {
			struct memory_result *next = mr->next;
			free(mr);
			mr = next;
		}
		free(ml->topics[i].name);
	}
	free(ml->topics);
	free(ml);
}

static const struct weir_log_ops memory_log_ops = {.topic = log_topic,
						   .append = log_append,
						   .cut = log_cut,
						   .commit = log_commit,
						   .read = log_read,
						   .epoch = log_epoch,
						   .close = log_close};

static enum weir_err open_memory_log(void *ctx, const char *home, const char *app, struct weir_log **out,
				     struct weir_diag **dg)
{
	(void)ctx;
	(void)home;
	(void)app;
	(void)dg;
	struct memory_log *ml = weir_xcalloc(1, sizeof *ml);
	ml->topics = weir_xcalloc(DRIVER_TOPICS_MAX, sizeof *ml->topics);
	ml->base.ops = &memory_log_ops;
	*out = &ml->base;
	return WEIR_OK;
}

/* ---- the driver ---- */

struct weir_driver {
	struct weir_core core;
	struct memory_result *popped;
	bool ended;
};

static int64_t virtual_us;

static int64_t virtual_now(void)
{
	return virtual_us; /* nothing in a driven engine waits for time: no rate, no live interval */
}

enum weir_err weir_driver_create(struct weir_driver **out, struct weir_topology *tp, struct weir_conf *cf,
				 struct weir_diag **diag)
{
	struct weir_driver *dr = weir_xcalloc(1, sizeof *dr);
	struct weir_core *co = &dr->core;
	co->virtual_topics = true;
	enum weir_err err = weir_core_plan(co, tp, cf, diag);
	co->settings.workers = 1;
	co->settings.scan_rate = 0;
	if (err == WEIR_OK)
		co->streams = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->streams);
	for (uint32_t s = 0; err == WEIR_OK && s < co->plan->scan_count; s++) {
		struct memory_stream *ms = weir_xcalloc(1, sizeof *ms);
		const struct weir_table_def *def = co->plan->scans[s].table;
		ms->base.ops = &memory_stream_ops;
		ms->topic = def->options.topic ? def->options.topic : def->name;
		co->streams[s] = &ms->base;
	}
	if (err == WEIR_OK)
		err = weir_core_build(co, open_memory_log, NULL, virtual_now, diag);
	if (err != WEIR_OK) {
		weir_driver_destroy(dr);
		return err;
	}
	*out = dr;
	return WEIR_OK;
}

/* Steps everything in turn until nothing moves. */
static enum weir_err settle(struct weir_driver *dr, struct weir_diag **dg)
{
	struct weir_core *co = &dr->core;
	for (bool any = true; any;) {
		bool moved;
		int wait_ms;
		enum weir_err err = weir_feed_step(co->feed, &moved, &wait_ms, dg);
		any = moved;
		if (err != WEIR_OK)
			return err;
		any |= weir_worker_step(co->workers[0]);
		err = weir_snapshot_step(co->snapshot, &moved, dg);
		any |= moved;
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

static enum weir_err point(struct weir_driver *dr, int64_t advance, bool last, bool close_all, struct weir_diag **dg)
{
	enum weir_err err = settle(dr, dg);
	if (err != WEIR_OK)
		return err;
	weir_feed_point(dr->core.feed, advance, false, last, close_all);
	return settle(dr, dg);
}

/* Whether one of the names in list (separated by ';') is topic. */
static bool names_topic(const char *list, const char *topic)
{
	size_t bytes = strlen(topic);
	for (const char *at = list; at;) {
		const char *end = strchr(at, ';');
		if ((end ? (size_t)(end - at) : strlen(at)) == bytes && memcmp(at, topic, bytes) == 0)
			return true;
		at = end ? end + 1 : NULL;
	}
	return false;
}

enum weir_err weir_driver_push_record(struct weir_driver *dr, const char *topic,
				      const struct weir_driver_record *record, struct weir_diag **diag)
{
	struct weir_core *co = &dr->core;
	struct weir_slice key = record->key, value = record->value;
	bool found = false;
	if (dr->ended)
		return weir_diag_set(diag, WEIR_E_STOPPED, "the input has ended");
	for (uint32_t s = 0; s < co->plan->scan_count; s++) {
		struct memory_stream *ms = (struct memory_stream *)co->streams[s];
		if (!names_topic(ms->topic, topic))
			continue;
		found = true;
		size_t bytes = (key.data ? key.bytes : 0) + (value.data ? value.bytes : 0) + record->headers_bytes;
		struct memory_record *mr = weir_xcalloc(1, sizeof *mr + bytes + WEIR_PAYLOAD_PAD);
		uint8_t *at = mr->bytes;
		mr->r.key = put(&at, key.data, key.bytes);
		mr->r.key_bytes = key.data ? (uint32_t)key.bytes : 0;
		if (record->headers_bytes != 0)
			mr->r.headers = put(&at, record->headers, record->headers_bytes);
		mr->r.headers_bytes = (uint32_t)record->headers_bytes;
		mr->r.header_count = record->header_count;
		mr->r.value = put(&at, value.data, value.bytes);
		mr->r.value_bytes = value.data ? (uint32_t)value.bytes : 0;
		mr->r.offset = ms->next_offset++;
		mr->r.timestamp = record->timestamp_ms;
		ms->waiting = mr;
	}
	if (!found)
		return weir_diag_set(diag, WEIR_E_CONF, "no source reads topic %s", topic);
	return point(dr, WEIR_TIME_UNSET, false, false, diag);
}

enum weir_err weir_driver_push(struct weir_driver *dr, const char *topic, struct weir_slice key,
			       struct weir_slice value, int64_t timestamp_ms, struct weir_diag **diag)
{
	struct weir_driver_record record = {.key = key, .value = value, .timestamp_ms = timestamp_ms};
	return weir_driver_push_record(dr, topic, &record, diag);
}

enum weir_err weir_driver_advance(struct weir_driver *dr, int64_t ms, struct weir_diag **diag)
{
	return point(dr, ms, false, false, diag);
}

enum weir_err weir_driver_end(struct weir_driver *dr, struct weir_diag **diag)
{
	if (dr->ended)
		return WEIR_OK;
	dr->ended = true;
	return point(dr, WEIR_TIME_UNSET, true, !dr->core.settings.end_of_input_keep, diag);
}

int weir_driver_pop(struct weir_driver *dr, const char *topic, struct weir_driver_record *out)
{
	struct memory_log *ml = (struct memory_log *)dr->core.log;
	for (uint32_t i = 0; i < ml->count; i++) {
		struct memory_topic *mt = &ml->topics[i];
		if (strcmp(mt->name, topic) != 0)
			continue;
		struct memory_result *mr = mt->first;
		if (!mr)
			return 0;
		mt->first = mr->next;
		if (!mt->first)
			mt->last = &mt->first;
		free(dr->popped);
		dr->popped = mr;
		*out = mr->r;
		return 1;
	}
	return 0;
}

void weir_driver_stats(const struct weir_driver *dr, struct weir_stats *out)
{
	weir_core_stats(&dr->core, out);
}

void weir_driver_destroy(struct weir_driver *dr)
{
	if (!dr)
		return;
	free(dr->popped);
	weir_core_fini(&dr->core);
	free(dr);
}
