/* start.c: what a group member (input.h) finds out before it reads: brokers, topics and their partitions, and where in
 * each of them reading begins and ends. @thread init */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/kafka/member.h"
#include "io/topics.h"

enum {
	SLICE_MS = 1000,
	SAY_MS = 10000,
	LOOK_UP_MS = 5000,
	LOOK_UP_TURN_MS = 6000,
	LOOK_AGAIN_MS = 500,
	MATCH_LOOKS = 4,
	UNKNOWN_MS = 60000
};

static bool stopped(const struct weir_kafka_input *in)
{
	return in->stop != NULL && atomic_load_explicit(in->stop, memory_order_relaxed);
}

/* ---- waiting ---- */

struct wait {
	struct weir_kafka_wait brokers; /* broker.wait.ms, where it has an end */
	int64_t said_ms;
};

static void begin_wait(const struct weir_kafka_input *in, struct wait *w)
{
	weir_kafka_wait_begin(&w->brokers, in->broker_wait_ms);
	w->said_ms = w->brokers.seen_ms;
}

/* After a failed try that may be repeated (*dg says what) and takes turn_ms at most: WEIR_OK to try again, *dg is gone
 * then. */
static enum weir_err wait_more(struct weir_kafka_input *in, struct wait *w, int64_t turn_ms, struct weir_diag **dg)
{
	int64_t now = weir_kafka_now_ms();
	if (stopped(in)) {
		weir_diag_destroy(*dg);
		*dg = NULL;
		return weir_diag_set(dg, WEIR_E_STOPPED, "stopped while waiting for %s",
				     weir_kafka_client_brokers(in->kc));
	}
	if (in->broker_wait_ms >= 0 && weir_kafka_wait_left(&w->brokers, turn_ms) == 0)
		return weir_diag_code(*dg);
	if (now - w->said_ms >= SAY_MS) {
		w->said_ms = now;
		weir_kafka_client_say(in->kc, 4, "waiting: %s", weir_diag_text(*dg));
	}
	weir_diag_destroy(*dg);
	*dg = NULL;
	return WEIR_OK;
}

/* Moves a report made here to the caller's, where the first stays. */
static enum weir_err report(enum weir_err err, struct weir_diag *own, struct weir_diag **dg)
{
	if (dg != NULL && *dg == NULL)
		*dg = own;
	else
		weir_diag_destroy(own);
	return err;
}

static enum weir_err wait_brokers(struct weir_kafka_input *in, struct weir_diag **dg)
{
	struct wait w;
	begin_wait(in, &w);
	for (;;) {
		const struct rd_kafka_metadata *md;
		struct weir_diag *own = NULL;
		int64_t left = in->broker_wait_ms < 0 ? SLICE_MS : w.brokers.left_ms;
		left = left < 1 ? 1 : left > SLICE_MS ? SLICE_MS : left;
		enum weir_err err = weir_kafka_client_metadata(in->kc, NULL, left, &md, &own);
		if (err == WEIR_OK) {
			rd_kafka_metadata_destroy(md);
			return WEIR_OK;
		}
		if (err == WEIR_E_UNAVAILABLE) {
			const char *why = weir_kafka_client_down(in->kc);
			weir_diag_destroy(own);
			own = NULL;
			(void)weir_diag_set(&own, err, "no broker at %s answers%s%s", weir_kafka_client_brokers(in->kc),
					    why != NULL && *why != 0 ? ": " : "", why != NULL ? why : "");
			weir_diag_mark_retriable(own);
			err = wait_more(in, &w, 2 * SLICE_MS, &own);
		}
		if (err != WEIR_OK)
			return report(err, own, dg);
	}
}

/* ---- topics ---- */

static enum weir_err all_topics(struct weir_kafka_input *in, const struct rd_kafka_metadata **md, struct weir_diag **dg)
{
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, WEIR_KAFKA_WAIT_MS);
	for (;;) {
		rd_kafka_resp_err_t code = rd_kafka_metadata(in->rk, 1, NULL, md, LOOK_UP_MS);
		if (code == 0)
			return WEIR_OK;
		if (!weir_kafka_err_is_retriable(code) || weir_kafka_wait_left(&w, LOOK_UP_TURN_MS) == 0)
			return weir_kafka_fail(dg, code, NULL, "listing topics of %s",
					       weir_kafka_client_brokers(in->kc));
		weir_kafka_client_poll(in->kc, 100);
	}
}

static void add_topic(struct weir_kafka_input *in, const char *name)
{
	in->topics = weir_xrealloc(in->topics, (in->topic_count + 1) * sizeof *in->topics);
	in->topics[in->topic_count++] = (struct weir_kafka_topic){.name = weir_xstrdup(name)};
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct weir_kafka_topic *)a)->name, ((const struct weir_kafka_topic *)b)->name);
}

/* Kafka's own topics are nobody's input. */
static bool matches(const regex_t *re, const char *topic)
{
	return strncmp(topic, "__", 2) != 0 && regexec(re, topic, 0, NULL, 0) == 0;
}

static enum weir_err match_topics(struct weir_kafka_input *in, const struct weir_kafka_scan *sc, struct weir_diag **dg)
{
	const struct rd_kafka_metadata *md;
	regex_t re;
	if (!weir_topic_pattern_compile(&re, sc->topic_pattern))
		return weir_diag_set(dg, WEIR_E_CONF, "table %s: topic-pattern '%s' is no regular expression",
				     sc->table, sc->topic_pattern);
	uint32_t base = in->topic_count;
	enum weir_err err = WEIR_OK;
	/* As often as is looked for one that is named: a new one may not have been heard of by whoever is asked. */
	for (int look = 0; look < MATCH_LOOKS && err == WEIR_OK && in->topic_count == base; look++) {
		if (look > 0)
			weir_kafka_client_poll(in->kc, LOOK_AGAIN_MS);
		err = all_topics(in, &md, dg);
		for (int i = 0; err == WEIR_OK && i < md->topic_cnt; i++)
			if (matches(&re, md->topics[i].topic))
				add_topic(in, md->topics[i].topic);
		if (err == WEIR_OK)
			rd_kafka_metadata_destroy(md);
	}
	if (err == WEIR_OK) {
		if (in->topic_count == base)
			err = weir_diag_set(dg, WEIR_E_CONF, "table %s: no topic on %s matches '%s'", sc->table,
					    weir_kafka_client_brokers(in->kc), sc->topic_pattern);
		else
			qsort(in->topics + base, in->topic_count - base, sizeof *in->topics, by_name);
	}
	regfree(&re);
	return err;
}

static bool is_known(const struct weir_kafka_input *in, const char *topic)
{
	for (uint32_t t = 0; t < in->topic_count; t++)
		if (strcmp(in->topics[t].name, topic) == 0)
			return true;
	for (uint32_t t = 0; t < in->unread_count; t++)
		if (strcmp(in->unread[t], topic) == 0)
			return true;
	return false;
}

void weir_kafka_start_look_again(struct weir_kafka_input *in)
{
	enum { UNREAD_MAX = 1000 };
	const struct rd_kafka_metadata *md = NULL;
	for (uint32_t s = 0; s < in->stream_count; s++) {
		regex_t re;
		if (in->streams[s].pattern == NULL || in->streams[s].bounded ||
		    (md == NULL && rd_kafka_metadata(in->rk, 1, NULL, &md, LOOK_AGAIN_MS) != 0) ||
		    !weir_topic_pattern_compile(&re, in->streams[s].pattern))
			continue;
		for (int i = 0; i < md->topic_cnt && in->unread_count < UNREAD_MAX; i++) {
			const char *name = md->topics[i].topic;
			if (!matches(&re, name) || is_known(in, name))
				continue;
			in->unread = weir_xrealloc(in->unread, (in->unread_count + 1) * sizeof *in->unread);
			in->unread[in->unread_count++] = weir_xstrdup(name);
			weir_kafka_client_say(in->kc, 4,
					      "topic %s is new and matches the topic-pattern of table %s: it is read, "
					      "from its beginning, once this is started again",
					      name, in->streams[s].table);
		}
		regfree(&re);
	}
	if (md != NULL)
		rd_kafka_metadata_destroy(md);
}

/* A topic that comes from the job itself, in front of what reads it. */
static bool is_written(const struct weir_kafka_scan *sc, const char *topic)
{
	for (uint32_t i = 0; sc->written != NULL && sc->written[i] != NULL; i++)
		if (strcmp(sc->written[i], topic) == 0)
			return true;
	return false;
}

static void hint_written(const struct weir_kafka_input *in, const char *topic, struct weir_diag *dg)
{
	uint32_t most = 0;
	char partitions[16] = "N";
	for (uint32_t t = 0; t < in->topic_count; t++)
		most = in->topics[t].part_count > most ? in->topics[t].part_count : most;
	if (most > 0)
		snprintf(partitions, sizeof partitions, "%u", most);
	weir_diag_add_hint(dg,
			   "this job writes it, too, and what is read must be there before anything is made: "
			   "kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions %s "
			   "--config retention.ms=-1",
			   weir_kafka_client_brokers(in->kc), topic, partitions);
}

static enum weir_err no_topic(struct weir_kafka_input *in, const struct weir_kafka_scan *sc, const char *name,
			      struct weir_diag **dg)
{
	const struct rd_kafka_metadata *md;
	enum weir_err err = weir_diag_set(dg, WEIR_E_CONF, "table %s: there is no topic '%s' on %s", sc->table, name,
					  weir_kafka_client_brokers(in->kc));
	if (dg != NULL && *dg != NULL && is_written(sc, name)) {
		hint_written(in, name, *dg);
		return err;
	}
	if (dg == NULL || *dg == NULL || all_topics(in, &md, NULL) != WEIR_OK)
		return err;
	const char **names = weir_xcalloc((size_t)md->topic_cnt + 1, sizeof *names);
	for (int i = 0; i < md->topic_cnt; i++)
		names[i] = md->topics[i].topic;
	const char *near = weir_nearest_name(name, strlen(name), names, (uint32_t)md->topic_cnt);
	if (near != NULL)
		weir_diag_add_hint(*dg, "did you mean '%s'?", near);
	else
		weir_diag_add_hint(*dg,
				   "what is read must be there: kafka-topics.sh --bootstrap-server %s --create --topic "
				   "%s --partitions N",
				   weir_kafka_client_brokers(in->kc), name);
	free(names);
	rd_kafka_metadata_destroy(md);
	return err;
}

static enum weir_err find_partitions(struct weir_kafka_input *in, uint32_t scan, const struct weir_kafka_scan *sc,
				     struct weir_kafka_topic *tp, struct weir_diag **dg)
{
	enum weir_err err = weir_kafka_client_await_topic(in->kc, tp->name, &tp->part_count, dg);
	if (err != WEIR_OK)
		return err;
	if (tp->part_count == 0)
		return no_topic(in, sc, tp->name, dg);
	tp->rkt = rd_kafka_topic_new(in->rk, tp->name, NULL);
	if (tp->rkt == NULL)
		return weir_kafka_fail(dg, rd_kafka_last_error(), NULL, "topic %s", tp->name);
	tp->part_base = in->part_count;
	in->parts = weir_xrealloc(in->parts, (in->part_count + tp->part_count) * sizeof *in->parts);
	for (uint32_t n = 0; n < tp->part_count; n++)
		in->parts[in->part_count++] = (struct weir_kafka_part){.topic = (uint32_t)(tp - in->topics),
								       .number = n,
								       .scan = scan,
								       .bound = INT64_MAX,
								       .committed = -1,
								       .seek = -1,
								       .short_eof = -1,
								       .unheld_eof = -1,
								       .seen_next = -1,
								       .last_ts = -1};
	return WEIR_OK;
}

/* A consumer reads a partition once: two tables over one topic would have to share it. */
static enum weir_err check_twice(const struct weir_kafka_input *in, uint32_t t,
				 const struct weir_kafka_input_spec *spec, uint32_t scan, struct weir_diag **dg)
{
	for (uint32_t o = 0; o < t; o++)
		if (strcmp(in->topics[o].name, in->topics[t].name) == 0)
			return weir_diag_set(
				dg, WEIR_E_CONF, "topic %s is read by table %s and by table %s: let one table read it",
				in->topics[t].name, spec->scans[in->parts[in->topics[o].part_base].scan].table,
				spec->scans[scan].table);
	return WEIR_OK;
}

static enum weir_err find_topics(struct weir_kafka_input *in, const struct weir_kafka_input_spec *spec, uint32_t scan,
				 struct weir_diag **dg)
{
	const struct weir_kafka_scan *sc = &spec->scans[scan];
	struct weir_kafka_stream *st = &in->streams[scan];
	uint32_t base = in->topic_count;
	enum weir_err err = WEIR_OK;
	if (sc->topic_pattern != NULL)
		err = match_topics(in, sc, dg);
	for (uint32_t t = 0; sc->topic_pattern == NULL && t < sc->topic_count; t++)
		add_topic(in, sc->topics[t]);
	st->part_base = in->part_count;
	for (uint32_t t = base; err == WEIR_OK && t < in->topic_count; t++) {
		err = check_twice(in, t, spec, scan, dg);
		if (err == WEIR_OK)
			err = find_partitions(in, scan, sc, &in->topics[t], dg);
	}
	st->part_count = in->part_count - st->part_base;
	return err;
}

/* ---- offsets ---- */

/* librdkafka may call a request's topics unknown without saying which: all are asked for. */
static enum weir_err confirm(struct weir_kafka_input *in, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t t = 0; err == WEIR_OK && t < in->topic_count; t++)
		err = weir_kafka_client_confirm(in->kc, in->topics[t].name, in->topics[t].part_count, dg);
	return err;
}

/* Looks up an offset of every partition for which place has one (a time, or librdkafka's word for an end of the log),
 * INT64_MIN: none; the answers replace them. One request for each broker. */
static enum weir_err look_up(struct weir_kafka_input *in, rd_kafka_t *rk, int64_t *place, struct weir_diag **dg)
{
	struct weir_kafka_wait unknown;
	struct wait w;
	begin_wait(in, &w);
	weir_kafka_wait_begin(&unknown, UNKNOWN_MS);
	for (;;) {
		struct weir_diag *own = NULL;
		rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)in->part_count);
		for (uint32_t p = 0; p < in->part_count; p++)
			if (place[p] != INT64_MIN)
				rd_kafka_topic_partition_list_add(list, in->topics[in->parts[p].topic].name,
								  (int32_t)in->parts[p].number)
					->offset = place[p];
		rd_kafka_resp_err_t code = list->cnt != 0 ? rd_kafka_offsets_for_times(rk, list, LOOK_UP_MS) : 0;
		const char *topic = in->topics[0].name;
		for (int i = 0; code == 0 && i < list->cnt; i++) {
			code = list->elems[i].err;
			topic = list->elems[i].topic;
		}
		enum weir_err err = WEIR_OK;
		if (code != 0)
			err = weir_kafka_fail(&own, code, NULL, "looking up offsets of topic %s", topic);
		int n = 0; /* the list is in the order of parts */
		for (uint32_t p = 0; code == 0 && p < in->part_count; p++)
			if (place[p] != INT64_MIN)
				place[p] = list->elems[n++].offset;
		rd_kafka_topic_partition_list_destroy(list);
		if (err == WEIR_OK)
			return WEIR_OK;
		/* Unknown: the partitions were there a moment ago, and are as long as brokers say so. */
		if (weir_kafka_err_is_unknown(code) && weir_kafka_wait_left(&unknown, LOOK_UP_TURN_MS) != 0) {
			struct weir_diag *gone = NULL;
			err = confirm(in, &gone);
			if (err != WEIR_E_CONF)
				code = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
			if (err != WEIR_OK) {
				weir_diag_destroy(own);
				own = gone;
			}
		}
		if (weir_kafka_err_is_retriable(code)) {
			weir_kafka_client_poll(in->kc, 100);
			err = wait_more(in, &w, LOOK_UP_TURN_MS, &own);
		}
		if (err != WEIR_OK)
			return report(err, own, dg);
	}
}

enum weir_err weir_kafka_start_refresh(struct weir_kafka_input *in, bool all, struct weir_diag **dg)
{
	int64_t *low = weir_xcalloc(2 * (size_t)in->part_count + 1, sizeof *low), *end = low + in->part_count;
	for (uint32_t p = 0; p < in->part_count; p++) {
		bool want = all || in->parts[p].owned;
		low[p] = want ? RD_KAFKA_OFFSET_BEGINNING : INT64_MIN;
		end[p] = want ? RD_KAFKA_OFFSET_END : INT64_MIN;
	}
	enum weir_err err = look_up(in, in->rk, low, dg);
	if (err == WEIR_OK)
		err = look_up(in, in->rk, end, dg);
	for (uint32_t p = 0; err == WEIR_OK && p < in->part_count; p++)
		if (low[p] != INT64_MIN) {
			in->parts[p].low = low[p];
			in->parts[p].end = end[p];
		}
	free(low);
	in->fresh |= err == WEIR_OK;
	return err;
}

/* Where an offset of the statements may lie, in words for a person. */
static enum weir_err refuse_given(const struct weir_kafka_input *in, const struct weir_kafka_part *pt, int64_t offset,
				  struct weir_diag **dg)
{
	enum weir_err err = weir_diag_set(
		dg, WEIR_E_CONF,
		"table %s: 'scan.startup.specific-offsets': topic %s, partition %u cannot be read from offset %lld: "
		"it %s at %lld%s",
		in->streams[pt->scan].table, in->topics[pt->topic].name, pt->number, (long long)offset,
		offset > pt->end ? "ends" : "begins", (long long)(offset > pt->end ? pt->end : pt->low),
		offset > pt->end && !in->read_uncommitted ? " (or an open transaction begins there)" : "");
	if (dg != NULL && *dg != NULL)
		weir_diag_add_hint(*dg,
				   "an offset from %lld to %lld, or 'scan.startup.mode' = 'earliest-offset' or "
				   "'latest-offset'",
				   (long long)pt->low, (long long)pt->end);
	return err;
}

enum weir_err weir_kafka_start_check(const struct weir_kafka_input *in, const struct weir_kafka_part *pt,
				     int64_t offset, bool given, struct weir_diag **dg)
{
	const char *topic = in->topics[pt->topic].name;
	const char *hint;
	enum weir_err err;
	if (offset >= pt->low && offset <= pt->end)
		return WEIR_OK;
	if (given)
		return refuse_given(in, pt, offset, dg);
	if (offset > pt->end) {
		err = weir_diag_set(dg, WEIR_E_IO,
				    "topic %s, partition %u cannot be read from offset %lld: it ends at %lld%s", topic,
				    pt->number, (long long)offset, (long long)pt->end,
				    in->read_uncommitted ? "" : " (or an open transaction begins there)");
		hint = "records that were read are gone: was the topic made anew, or restored from an older copy?";
	} else {
		err = weir_diag_set(dg, WEIR_E_IO,
				    "topic %s, partition %u cannot be read from offset %lld: it begins at %lld, %lld "
				    "offsets were removed before they were read",
				    topic, pt->number, (long long)offset, (long long)pt->low,
				    (long long)(pt->low - offset));
		hint = "longer retention (retention.ms, retention.bytes) keeps records until they are read;";
	}
	if (dg != NULL && *dg != NULL)
		weir_diag_add_hint(*dg, "%s weir reset %s -b BROKERS --execute starts over", hint, in->group);
	return err;
}

/* Flink's partition:0,offset:42;partition:1,offset:300. */
static bool offset_for(const char *text, uint32_t partition, int64_t *offset, bool *found)
{
	*found = false;
	for (const char *p = text; *p != '\0';) {
		unsigned long part, at;
		int used = 0;
		if (sscanf(p, "partition:%9lu,offset:%18lu%n", &part, &at, &used) != 2 ||
		    (p[used] != ';' && p[used] != '\0'))
			return false;
		if (part == partition) {
			*offset = (int64_t)at;
			*found = true;
		}
		p += used;
		p += *p == ';';
	}
	return true;
}

static enum weir_err check_offsets(const struct weir_kafka_scan *sc, const char *option, const char *text,
				   struct weir_diag **dg)
{
	int64_t offset;
	bool found;
	if (text != NULL && offset_for(text, 0, &offset, &found))
		return WEIR_OK;
	return weir_diag_set(dg, WEIR_E_CONF,
			     "table %s: '%s' = '%s' is not of the form partition:0,offset:42;partition:1,offset:300",
			     sc->table, option, text != NULL ? text : "");
}

/* What a mode means in every partition of a scan: an offset out of low and end, or a time to look up. */
static enum weir_err places(struct weir_kafka_input *in, const struct weir_kafka_input_spec *spec, bool bound,
			    int64_t *offset, struct weir_diag **dg)
{
	int64_t *time = weir_xcalloc((size_t)in->part_count + 1, sizeof *time);
	enum weir_err err = WEIR_OK;
	for (uint32_t p = 0; err == WEIR_OK && p < in->part_count; p++) {
		const struct weir_kafka_part *pt = &in->parts[p];
		const struct weir_kafka_scan *sc = &spec->scans[pt->scan];
		enum weir_startup mode = bound ? sc->bound : sc->startup;
		const char *given = bound ? sc->bound_offsets : sc->startup_offsets;
		bool found;
		time[p] = INT64_MIN;
		/* What is not named: all of it. */
		offset[p] = bound || mode == WEIR_STARTUP_LATEST ? pt->end : pt->low;
		if (bound && !sc->bounded) {
			offset[p] = INT64_MAX;
		} else if (mode == WEIR_STARTUP_TIMESTAMP) {
			time[p] = bound ? sc->bound_ts : sc->startup_ts;
			time[p] = time[p] < 0 ? 0 : time[p];
		} else if (mode == WEIR_STARTUP_OFFSETS) {
			err = check_offsets(sc,
					    bound ? "scan.bounded.specific-offsets" : "scan.startup.specific-offsets",
					    given, dg);
			if (err == WEIR_OK)
				(void)offset_for(given, pt->number, &offset[p], &found);
		}
	}
	if (err == WEIR_OK)
		err = look_up(in, in->rk, time, dg);
	for (uint32_t p = 0; err == WEIR_OK && p < in->part_count; p++)
		if (time[p] != INT64_MIN) /* a time that nothing is as late as: the end */
			offset[p] = time[p] < 0 || time[p] > in->parts[p].end ? in->parts[p].end : time[p];
	free(time);
	return err;
}

static enum weir_err find_bounds(struct weir_kafka_input *in, const struct weir_kafka_input_spec *spec,
				 struct weir_diag **dg)
{
	int64_t *offset = weir_xcalloc((size_t)in->part_count + 1, sizeof *offset);
	bool ask = false;
	enum weir_err err = places(in, spec, false, offset, dg);
	for (uint32_t p = 0; err == WEIR_OK && p < in->part_count; p++) {
		const struct weir_kafka_scan *sc = &spec->scans[in->parts[p].scan];
		in->parts[p].first = offset[p];
		in->parts[p].first_given = sc->startup == WEIR_STARTUP_OFFSETS;
		ask |= sc->bounded && sc->bound_from_group;
	}
	if (err == WEIR_OK)
		err = places(in, spec, true, offset, dg);
	for (uint32_t p = 0; err == WEIR_OK && p < in->part_count; p++)
		in->parts[p].bound = offset[p];
	free(offset);
	if (err == WEIR_OK && ask)
		err = weir_kafka_group_ask(in, true, dg);
	for (uint32_t p = 0; err == WEIR_OK && ask && p < in->part_count; p++)
		if (in->streams[in->parts[p].scan].bound_from_group && in->parts[p].committed >= 0)
			in->parts[p].bound = in->parts[p].committed;
	return err;
}

enum weir_err weir_kafka_start(struct weir_kafka_input *in, const struct weir_kafka_input_spec *spec,
			       struct weir_diag **dg)
{
	enum weir_err err = wait_brokers(in, dg);
	for (uint32_t s = 0; err == WEIR_OK && s < in->stream_count; s++)
		err = find_topics(in, spec, s, dg);
	in->growth = weir_kafka_growth_create(in->kc, in->group);
	for (uint32_t t = 0; err == WEIR_OK && t < in->topic_count; t++)
		if (!in->streams[in->parts[in->topics[t].part_base].scan].bounded)
			weir_kafka_growth_add(in->growth, in->topics[t].name, in->topics[t].part_count);
	if (err == WEIR_OK)
		err = weir_kafka_start_refresh(in, true, dg);
	if (err == WEIR_OK)
		err = find_bounds(in, spec, dg);
	return err;
}
