/* standby.c: one consumer that follows changelog partitions into replicas (standby.h). @thread standby, but for what
 * hands over to others, under the lock. A partition that restore holds is left alone by the thread. Following begins at
 * a number that was asked for before, as reading does (changelog_reader.c): librdkafka (2.0.2) fetches for ever what
 * was given back while it looked for its beginning itself. */
#include "io/kafka/standby.h"

#include <pthread.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/replica.h"

enum { GROUP_MS = 1000, AGAIN_MS = 500, UNSETTLED_MS = 20000, CHECK_MS = 500 };

struct follow {
	struct weir_replica image;
	bool wanted;   /* by the last choice */
	bool held;     /* restore reads it */
	bool whole;    /* and has read its tail */
	bool given_up; /* until the next choice */
	bool doubt;    /* its topic was called unknown: is it there? */
	bool at_end;   /* everything that was there has been taken in */
	bool started;  /* start is known */
	int64_t start; /* where its log begins: where an empty image does */
};

struct followed_topic {
	char *name;
	uint32_t partitions;
	struct follow *parts;
};

struct weir_standby {
	struct weir_standby_conf conf;
	struct weir_kafka_log log;
	struct weir_kafka_client *kc;
	rd_kafka_queue_t *queue;
	pthread_mutex_t gate;
	struct followed_topic *topics; /* do not change once the thread runs; parts: under the gate */
	uint32_t topic_count;
	/* Under the gate. */
	bool *owned;
	uint32_t owned_count;
	bool chosen;       /* for what is owned now */
	uint64_t serial;   /* of assignments */
	bool moved;        /* the consumer is to be told anew */
	bool caught_up;    /* has been said */
	uint64_t bytes;    /* of all images */
	uint64_t records;  /* taken in */
	uint64_t followed; /* partitions that the consumer has */
	uint64_t behind;
	/* The thread's own. */
	int64_t asked_ms, again_ms, checked_ms, start_ms, doubt_ms;
	uint64_t asked_serial;
	bool broken;
};

enum weir_err weir_standby_create(struct weir_standby **out, const struct weir_standby_conf *conf,
				  struct weir_diag **dg)
{
	static const struct weir_kafka_setting calm[] = {
		{"fetch.wait.max.ms", "100"}, {"queued.max.messages.kbytes", "32768"}, {NULL, NULL}};
	struct weir_kafka_client *kc;
	enum weir_err err = weir_kafka_client_create(&kc, conf->cf, WEIR_KAFKA_READ, calm, conf->log, dg);
	if (err != WEIR_OK)
		return err;
	struct weir_standby *sb = weir_xcalloc(1, sizeof *sb);
	sb->conf = *conf;
	if (conf->log != NULL)
		sb->log = *conf->log;
	sb->kc = kc;
	sb->queue = rd_kafka_queue_get_consumer(weir_kafka_client_handle(kc));
	sb->chosen = true;
	sb->caught_up = true;
	sb->behind = UINT64_MAX;
	pthread_mutex_init(&sb->gate, NULL);
	*out = sb;
	return WEIR_OK;
}

void weir_standby_destroy(struct weir_standby *sb)
{
	if (sb == NULL)
		return;
	for (uint32_t t = 0; t < sb->topic_count; t++) {
		for (uint32_t p = 0; p < sb->topics[t].partitions; p++)
			weir_replica_fini(&sb->topics[t].parts[p].image);
		free(sb->topics[t].parts);
		free(sb->topics[t].name);
	}
	free(sb->topics);
	free(sb->owned);
	rd_kafka_queue_destroy(sb->queue);
	(void)rd_kafka_consumer_close(weir_kafka_client_handle(sb->kc));
	weir_kafka_client_destroy(sb->kc);
	pthread_mutex_destroy(&sb->gate);
	free(sb);
}

void weir_standby_topic(struct weir_standby *sb, const char *name, uint32_t partitions)
{
	sb->topics = weir_xrealloc(sb->topics, (sb->topic_count + 1) * sizeof *sb->topics);
	sb->topics[sb->topic_count++] =
		(struct followed_topic){.name = weir_xstrdup(name),
					.partitions = partitions,
					.parts = weir_xcalloc(partitions, sizeof *sb->topics->parts)};
	if (partitions > sb->owned_count) {
		sb->owned = weir_xrealloc(sb->owned, partitions * sizeof *sb->owned);
		sb->owned_count = partitions;
	}
}

static struct follow *find(const struct weir_standby *sb, const char *topic, uint32_t partition)
{
	for (uint32_t t = 0; t < sb->topic_count; t++)
		if (strcmp(sb->topics[t].name, topic) == 0)
			return partition < sb->topics[t].partitions ? &sb->topics[t].parts[partition] : NULL;
	return NULL;
}

/* Forgets what is held of a partition; it begins anew if it is still wanted. */
static void forget(struct weir_standby *sb, struct follow *fo)
{
	sb->bytes -= fo->image.bytes;
	weir_replica_fini(&fo->image);
	fo->at_end = fo->whole = fo->started = false;
	sb->moved = true;
}

static bool is_followed(const struct follow *fo)
{
	return fo->wanted && !fo->held && !fo->given_up;
}

/* ---- which ---- */

/* The range assignor: the first partitions % count members have one more. */
static void range_of(uint32_t index, uint32_t count, uint32_t partitions, uint32_t *first, uint32_t *end)
{
	uint32_t each = partitions / count, more = partitions % count;
	*first = index * each + (index < more ? index : more);
	*end = *first + each + (index < more);
}

bool weir_standby_may_own(uint32_t index, uint32_t count, uint32_t partitions, uint32_t gone, uint32_t p)
{
	for (uint32_t k = 1; k <= gone && k < count; k++)
		for (uint32_t before = 0; before <= k && before <= index; before++) {
			uint32_t first, end;
			if (k - before > count - 1 - index)
				continue;
			range_of(index - before, count - k, partitions, &first, &end);
			if (p >= first && p < end)
				return true;
		}
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* This member's place among count, by the assignor's order of names; false where the group does not stand still. */
static bool ask_group(struct weir_standby *sb, uint32_t *index, uint32_t *count)
{
	const struct rd_kafka_group_list *list;
	rd_kafka_t *member = weir_kafka_input_handle(sb->conf.member);
	char *own = rd_kafka_memberid(member);
	bool found = false;
	if (own == NULL)
		return false;
	rd_kafka_resp_err_t code =
		rd_kafka_list_groups(weir_kafka_client_handle(sb->kc), sb->conf.group, &list, GROUP_MS);
	if (code == 0 || code == RD_KAFKA_RESP_ERR__PARTIAL) {
		for (int g = 0; g < list->group_cnt && !found; g++) {
			const struct rd_kafka_group_info *gi = &list->groups[g];
			if (strcmp(gi->group, sb->conf.group) != 0 || gi->err != 0 || strcmp(gi->state, "Stable") != 0)
				continue;
			const char **names = weir_xcalloc((size_t)gi->member_cnt + 1, sizeof *names);
			for (int m = 0; m < gi->member_cnt; m++)
				names[m] = gi->members[m].member_id;
			qsort(names, (size_t)gi->member_cnt, sizeof *names, by_text);
			*count = (uint32_t)gi->member_cnt;
			for (int m = 0; m < gi->member_cnt && !found; m++) {
				*index = (uint32_t)m;
				found = strcmp(names[m], own) == 0;
			}
			free(names);
		}
		rd_kafka_group_list_destroy(list);
	}
	rd_kafka_mem_free(member, own);
	return found;
}

/* Whether the place gives just what is owned: static members are ordered by names that the group does not tell. */
static bool place_fits(const struct weir_standby *sb, uint32_t index, uint32_t count)
{
	uint32_t first, end;
	range_of(index, count, sb->owned_count, &first, &end);
	for (uint32_t p = 0; p < sb->owned_count; p++)
		if (sb->owned[p] != (p >= first && p < end))
			return false;
	return true;
}

static bool find_place(const struct weir_standby *sb, uint32_t *index, uint32_t count)
{
	bool fits = place_fits(sb, *index, count);
	for (uint32_t i = 0; i < count && !fits; i++)
		if (place_fits(sb, i, count)) {
			*index = i;
			fits = true;
		}
	return fits;
}

/* Under the gate. all: the place in the group is not known. */
static void choose_by(struct weir_standby *sb, uint32_t index, uint32_t count, bool all)
{
	uint32_t wanted = 0, others = 0;
	all = all || count <= sb->conf.replicas + 1 || !find_place(sb, &index, count);
	for (uint32_t t = 0; t < sb->topic_count; t++)
		for (uint32_t p = 0; p < sb->topics[t].partitions; p++) {
			struct follow *fo = &sb->topics[t].parts[p];
			bool want = !sb->owned[p] &&
				    (all || weir_standby_may_own(index, count, sb->owned_count, sb->conf.replicas, p));
			sb->moved |= want != fo->wanted || (want && fo->given_up);
			fo->wanted = want;
			fo->given_up = false;
			if (!want && !fo->held && fo->image.position != 0)
				forget(sb, fo);
			wanted += want;
			others += !sb->owned[p];
		}
	sb->chosen = true;
	sb->caught_up = wanted == 0;
	if (others != 0)
		weir_kafka_log_say(&sb->log, 6, "standby: following %u of %u changelog partitions of other members",
				   wanted, others);
}

static void choose(struct weir_standby *sb)
{
	int64_t now = weir_kafka_now_ms();
	pthread_mutex_lock(&sb->gate);
	bool need = !sb->chosen;
	uint64_t serial = sb->serial;
	pthread_mutex_unlock(&sb->gate);
	if (!need || (serial == sb->asked_serial && now < sb->again_ms))
		return;
	if (serial != sb->asked_serial)
		sb->asked_ms = now;
	sb->asked_serial = serial;
	uint32_t index = 0, count = 1;
	bool known = sb->conf.member != NULL && ask_group(sb, &index, &count);
	if (!known && sb->conf.member != NULL && now - sb->asked_ms < UNSETTLED_MS) {
		sb->again_ms = weir_kafka_now_ms() + AGAIN_MS;
		return;
	}
	pthread_mutex_lock(&sb->gate);
	if (serial == sb->serial)
		choose_by(sb, index, count, !known);
	pthread_mutex_unlock(&sb->gate);
}

void weir_standby_assign(struct weir_standby *sb, const bool *owned)
{
	pthread_mutex_lock(&sb->gate);
	memcpy(sb->owned, owned, sb->owned_count * sizeof *owned);
	for (uint32_t t = 0; t < sb->topic_count; t++)
		for (uint32_t p = 0; p < sb->topics[t].partitions; p++) {
			struct follow *fo = &sb->topics[t].parts[p];
			if (!owned[p])
				continue;
			if (fo->wanted || fo->image.position != 0)
				forget(sb, fo);
			fo->wanted = false;
		}
	sb->serial++;
	sb->chosen = false;
	pthread_mutex_unlock(&sb->gate);
}

/* ---- following ---- */

static void on_message(rd_kafka_message_t *m, void *opaque)
{
	struct weir_standby *sb = opaque;
	struct follow *fo;
	pthread_mutex_lock(&sb->gate);
	if (m->rkt == NULL || (fo = find(sb, rd_kafka_topic_name(m->rkt), (uint32_t)m->partition)) == NULL ||
	    !is_followed(fo)) {
		/* Of an assignment before, or of the handle: weir_kafka_client_check knows. */
	} else if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		if (m->offset >= fo->image.position) {
			const struct weir_record r = {.key = m->key,
						      .value = m->payload,
						      .key_bytes = (uint32_t)m->key_len,
						      .value_bytes = (uint32_t)m->len,
						      .offset = m->offset};
			sb->bytes -= fo->image.bytes;
			weir_replica_put(&fo->image, &r);
			sb->bytes += fo->image.bytes;
			sb->records++;
		}
	} else if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
		if (m->offset > fo->image.position)
			fo->image.position = m->offset;
		fo->at_end = true;
	} else if (weir_kafka_err_is_unknown(m->err)) {
		fo->doubt = true;
	} else if (!weir_kafka_err_is_passed_over(m->err)) {
		/* The log does not go on where we stand, or cannot be read: from the start at the next assignment. */
		weir_kafka_log_say(&sb->log, 4, "standby: topic %s, partition %d is not followed any more: %s",
				   rd_kafka_topic_name(m->rkt), (int)m->partition, rd_kafka_message_errstr(m));
		forget(sb, fo);
		fo->given_up = true;
	}
	pthread_mutex_unlock(&sb->gate);
}

/* Under the gate: gives up the largest until the rest fits. */
static void fit(struct weir_standby *sb, uint64_t room)
{
	while (sb->bytes > room) {
		struct follow *largest = NULL;
		const struct followed_topic *of = NULL;
		for (uint32_t t = 0; t < sb->topic_count; t++)
			for (uint32_t p = 0; p < sb->topics[t].partitions; p++) {
				struct follow *fo = &sb->topics[t].parts[p];
				if (is_followed(fo) && (largest == NULL || fo->image.bytes > largest->image.bytes)) {
					largest = fo;
					of = &sb->topics[t];
				}
			}
		if (largest == NULL || largest->image.bytes == 0)
			return;
		weir_kafka_log_say(&sb->log, 4,
				   "standby: topic %s, partition %u does not fit into the %llu MB that memory.max "
				   "leaves: it is not followed",
				   of->name, (uint32_t)(largest - of->parts), (unsigned long long)(room >> 20));
		forget(sb, largest);
		largest->given_up = true;
	}
}

static bool wants_start(const struct follow *fo)
{
	return is_followed(fo) && fo->image.position == 0 && !fo->started;
}

/* Asks where the logs begin that are followed from there. What cannot be told now is asked again. */
static void find_starts(struct weir_standby *sb)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	pthread_mutex_lock(&sb->gate);
	for (uint32_t t = 0; t < sb->topic_count; t++)
		for (uint32_t p = 0; p < sb->topics[t].partitions; p++)
			if (wants_start(&sb->topics[t].parts[p]))
				rd_kafka_topic_partition_list_add(list, sb->topics[t].name, (int32_t)p)->offset =
					RD_KAFKA_OFFSET_BEGINNING;
	pthread_mutex_unlock(&sb->gate);
	if (list->cnt != 0 && weir_kafka_now_ms() >= sb->start_ms) {
		rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(weir_kafka_client_handle(sb->kc), list, GROUP_MS);
		int known = 0;
		pthread_mutex_lock(&sb->gate);
		for (int i = 0; code == 0 && i < list->cnt; i++) {
			const rd_kafka_topic_partition_t *tp = &list->elems[i];
			struct follow *fo = find(sb, tp->topic, (uint32_t)tp->partition);
			if (tp->err != 0 || tp->offset < 0)
				continue;
			fo->started = true;
			fo->start = tp->offset;
			known++;
		}
		sb->moved |= known != 0;
		pthread_mutex_unlock(&sb->gate);
		if (known != list->cnt)
			sb->start_ms = weir_kafka_now_ms() + AGAIN_MS;
	}
	rd_kafka_topic_partition_list_destroy(list);
}

/* Under the gate: tells the consumer what to fetch, from where. What it has queued of the assignment before comes
 * first and in order, and what comes twice is passed over. */
static void tell(struct weir_standby *sb)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	for (uint32_t t = 0; t < sb->topic_count; t++)
		for (uint32_t p = 0; p < sb->topics[t].partitions; p++) {
			struct follow *fo = &sb->topics[t].parts[p];
			if (!is_followed(fo) || wants_start(fo))
				continue;
			fo->at_end = false;
			rd_kafka_topic_partition_list_add(list, sb->topics[t].name, (int32_t)p)->offset =
				fo->image.position != 0 ? fo->image.position : fo->start;
		}
	sb->followed = (uint64_t)list->cnt;
	rd_kafka_resp_err_t code = rd_kafka_assign(weir_kafka_client_handle(sb->kc), list);
	if (code != 0)
		weir_kafka_log_say(&sb->log, 4, "standby: %s", rd_kafka_err2str(code));
	rd_kafka_topic_partition_list_destroy(list);
	sb->moved = false;
}

/* A topic that was called unknown and is not there may be made anew, and what is held would be another log's. Without
 * an answer it is asked for again. */
static void check_doubts(struct weir_standby *sb)
{
	if (weir_kafka_now_ms() < sb->doubt_ms)
		return;
	for (uint32_t t = 0; t < sb->topic_count; t++) {
		struct followed_topic *ft = &sb->topics[t];
		const struct rd_kafka_metadata *md;
		struct weir_diag *ignored = NULL;
		bool doubt = false, gone = false;
		pthread_mutex_lock(&sb->gate);
		for (uint32_t p = 0; p < ft->partitions; p++)
			doubt |= ft->parts[p].doubt;
		pthread_mutex_unlock(&sb->gate);
		if (!doubt)
			continue;
		sb->doubt_ms = weir_kafka_now_ms() + AGAIN_MS;
		enum weir_err err = weir_kafka_client_metadata(sb->kc, ft->name, GROUP_MS, &md, &ignored);
		weir_diag_destroy(ignored);
		if (err != WEIR_OK)
			continue;
		gone = md->topic_cnt != 1 || weir_kafka_err_is_unknown(md->topics[0].err) ||
		       (md->topics[0].err == 0 && (uint32_t)md->topics[0].partition_cnt < ft->partitions);
		rd_kafka_metadata_destroy(md);
		pthread_mutex_lock(&sb->gate);
		for (uint32_t p = 0; p < ft->partitions; p++) {
			struct follow *fo = &ft->parts[p];
			fo->doubt = false;
			if (!gone || !is_followed(fo))
				continue;
			forget(sb, fo);
			fo->given_up = true;
		}
		pthread_mutex_unlock(&sb->gate);
		if (gone)
			weir_kafka_log_say(&sb->log, 4, "standby: topic %s is not there any more: it is not followed",
					   ft->name);
	}
}

/* Under the gate: how far behind, and whether that is nothing for the first time. */
static void look(struct weir_standby *sb)
{
	rd_kafka_t *rk = weir_kafka_client_handle(sb->kc);
	uint64_t behind = 0;
	bool at_end = true;
	for (uint32_t t = 0; t < sb->topic_count; t++)
		for (uint32_t p = 0; p < sb->topics[t].partitions; p++) {
			const struct follow *fo = &sb->topics[t].parts[p];
			int64_t low, high = -1;
			if (!is_followed(fo))
				continue;
			at_end &= fo->at_end;
			if (rd_kafka_get_watermark_offsets(rk, sb->topics[t].name, (int32_t)p, &low, &high) != 0 ||
			    high < 0)
				behind = UINT64_MAX;
			else if (behind != UINT64_MAX && high > fo->image.position)
				behind += (uint64_t)(high - fo->image.position);
		}
	sb->behind = behind;
	if (!at_end || sb->caught_up || !sb->chosen || sb->moved)
		return;
	sb->caught_up = true;
	weir_kafka_log_say(&sb->log, 6, "standby: caught up with %llu changelog partitions, which take %llu KB",
			   (unsigned long long)sb->followed, (unsigned long long)(sb->bytes >> 10));
}

void weir_standby_step(struct weir_standby *sb, int timeout_ms, uint64_t room)
{
	int64_t now = weir_kafka_now_ms();
	choose(sb);
	check_doubts(sb);
	find_starts(sb);
	pthread_mutex_lock(&sb->gate);
	fit(sb, room);
	if (sb->moved)
		tell(sb);
	if (now - sb->checked_ms >= CHECK_MS)
		look(sb);
	pthread_mutex_unlock(&sb->gate);
	if (now - sb->checked_ms >= CHECK_MS) {
		struct weir_diag *dg = NULL;
		sb->checked_ms = now;
		if (weir_kafka_client_check(sb->kc, &dg) != WEIR_OK && !sb->broken) {
			sb->broken = true;
			weir_kafka_log_say(&sb->log, 4, "standby: %s", weir_diag_text(dg));
		}
		weir_diag_destroy(dg);
	}
	(void)rd_kafka_consume_callback_queue(sb->queue, timeout_ms, on_message, sb);
}

/* ---- for restore ---- */

bool weir_standby_has(struct weir_standby *sb, const char *topic, uint32_t partition)
{
	pthread_mutex_lock(&sb->gate);
	const struct follow *fo = find(sb, topic, partition);
	bool has = fo != NULL && fo->image.position != 0;
	pthread_mutex_unlock(&sb->gate);
	return has;
}

static enum weir_err put_tail(void *ctx, const struct weir_record *r, struct weir_diag **dg)
{
	struct follow *fo = ctx;
	(void)dg;
	weir_replica_put(&fo->image, r);
	return WEIR_OK;
}

/* The partition, ours until release. */
static struct follow *hold(struct weir_standby *sb, const char *topic, uint32_t partition)
{
	pthread_mutex_lock(&sb->gate);
	struct follow *fo = find(sb, topic, partition);
	if (fo != NULL && !fo->held && fo->image.position != 0) {
		fo->held = true;
		fo->whole = false;
		sb->moved = true;
	}
	bool held = fo != NULL && fo->held;
	pthread_mutex_unlock(&sb->gate);
	return held ? fo : NULL;
}

enum weir_err weir_standby_read(struct weir_standby *sb, struct weir_changelog_reader *cr, const char *topic,
				uint32_t partition, int64_t open_ms,
				enum weir_err (*each)(void *ctx, const struct weir_record *r, struct weir_diag **dg),
				void *ctx, bool *done, uint64_t *bytes, struct weir_diag **dg)
{
	struct follow *fo = hold(sb, topic, partition);
	*done = false;
	*bytes = 0;
	if (fo == NULL)
		return WEIR_OK;
	if (!fo->whole) {
		uint64_t before = fo->image.bytes, payload = weir_replica_payload(&fo->image);
		int64_t end = fo->image.position;
		bool fits;
		enum weir_err err =
			weir_changelog_reader_tail(cr, topic, partition, end, open_ms, put_tail, fo, &end, &fits, dg);
		pthread_mutex_lock(&sb->gate);
		sb->bytes += fo->image.bytes - before;
		if (!fits) {
			fo->held = false;
			forget(sb, fo);
		} else if (err == WEIR_OK) {
			fo->image.position = end;
			fo->whole = true;
		}
		pthread_mutex_unlock(&sb->gate);
		if (err != WEIR_OK || !fits)
			return err;
		*bytes = payload;
	}
	*done = true;
	return weir_replica_each(&fo->image, each, ctx, dg);
}

void weir_standby_release(struct weir_standby *sb)
{
	pthread_mutex_lock(&sb->gate);
	for (uint32_t t = 0; t < sb->topic_count; t++)
		for (uint32_t p = 0; p < sb->topics[t].partitions; p++) {
			struct follow *fo = &sb->topics[t].parts[p];
			sb->moved |= fo->held;
			fo->held = fo->whole = false;
		}
	pthread_mutex_unlock(&sb->gate);
}

void weir_standby_stats(struct weir_standby *sb, struct weir_standby_stats *out)
{
	pthread_mutex_lock(&sb->gate);
	*out = (struct weir_standby_stats){
		.partitions = sb->followed, .behind = sb->behind, .records = sb->records, .bytes = sb->bytes};
	out->waiting = rd_kafka_queue_length(sb->queue);
	pthread_mutex_unlock(&sb->gate);
}
