/* reset.c: moves a group's offsets and deletes an application's internal topics (reset.h). One admin client, and the
 * lag report for offsets, ends and members. @thread: the caller's */
#include "io/kafka/reset.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "io/kafka/client.h"

enum { ADMIN_MS = 15000, LINE_BYTES = 1024 };

struct move {
	const char *topic; /* the report's */
	uint32_t partition;
	int64_t current, end, first, to; /* -1: not known; first: of the log */
};
struct reset {
	const struct weir_reset_spec *spec;
	struct weir_kafka_client *kc;
	struct weir_lag lag;
	struct move *moves;
	size_t move_count;
	char **doomed; /* internal topics */
	size_t doomed_count;
	void (*say)(void *ctx, const char *line);
	void *ctx;
};

static WEIR_PRINTF(2, 3) void line(const struct reset *rs, const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	rs->say(rs->ctx, text);
}

/* ---- which partitions ---- */

/* Whether "t" or "t:0,1" names the partition. */
static bool names(const char *scope, const char *topic, uint32_t partition)
{
	size_t bytes = strlen(topic);
	if (strncmp(scope, topic, bytes) != 0)
		return false;
	if (scope[bytes] == 0)
		return true;
	if (scope[bytes] != ':')
		return false;
	for (const char *at = scope + bytes + 1; *at;) {
		char *end;
		unsigned long p = strtoul(at, &end, 10);
		if (end == at)
			return false;
		if (p == partition)
			return true;
		at = *end == ',' ? end + 1 : end;
		if (*end != ',' && *end != 0)
			return false;
	}
	return false;
}

static bool ends_with(const char *s, const char *end)
{
	size_t a = strlen(s), b = strlen(end);
	return a >= b && strcmp(s + a - b, end) == 0;
}

/* A group that only fences (input.h) has offsets of its changelog, which goes. */
static bool is_doomed(const struct reset *rs, const char *topic)
{
	for (size_t i = 0; i < rs->doomed_count; i++)
		if (strcmp(rs->doomed[i], topic) == 0 && ends_with(topic, "-changelog"))
			return true;
	return false;
}

static enum weir_err choose(struct reset *rs, struct weir_diag **dg)
{
	const struct weir_reset_spec *spec = rs->spec;
	bool fences = false;
	rs->moves = weir_xcalloc(rs->lag.row_count + 1, sizeof *rs->moves);
	for (size_t i = 0; i < rs->lag.row_count; i++) {
		const struct weir_lag_row *row = &rs->lag.rows[i];
		bool wanted = spec->topic_count == 0;
		for (uint32_t t = 0; t < spec->topic_count; t++)
			wanted |= names(spec->topics[t], row->topic, row->partition);
		bool doomed = is_doomed(rs, row->topic);
		fences |= doomed;
		if (wanted && !doomed)
			rs->moves[rs->move_count++] =
				(struct move){row->topic, row->partition, row->current, row->end, -1, -1};
	}
	if (fences && (spec->topic_count != 0 || spec->to != WEIR_RESET_EARLIEST))
		return weir_diag_set(
			dg, WEIR_E_CONF,
			"%s reads what lies on another cluster or in a recording: its offsets stand in its "
			"changelog, which is deleted as a whole. Where it begins anew is for its sources' "
			"'scan.startup.mode' to say",
			spec->app);
	for (uint32_t t = 0; t < spec->topic_count; t++) {
		bool found = false;
		for (size_t i = 0; i < rs->move_count; i++)
			found |= names(spec->topics[t], rs->moves[i].topic, rs->moves[i].partition);
		if (!found)
			return weir_diag_set(dg, WEIR_E_CONF, "group %s has no offsets of %s", spec->app,
					     spec->topics[t]);
	}
	return WEIR_OK;
}

/* ---- where to ---- */

/* Fills into[i] with what offsets_for_times answers for `query` (a time, or RD_KAFKA_OFFSET_BEGINNING). */
static enum weir_err look_up(struct reset *rs, int64_t query, bool first, struct weir_diag **dg)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)rs->move_count + 1);
	for (size_t i = 0; i < rs->move_count; i++)
		rd_kafka_topic_partition_list_add(list, rs->moves[i].topic, (int32_t)rs->moves[i].partition)->offset =
			query;
	rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
	if (list->cnt)
		code = rd_kafka_offsets_for_times(weir_kafka_client_handle(rs->kc), list, ADMIN_MS);
	enum weir_err err = code == 0 ? WEIR_OK : weir_kafka_fail(dg, code, NULL, "looking up offsets");
	for (size_t i = 0; err == WEIR_OK && i < rs->move_count; i++) {
		const rd_kafka_topic_partition_t *tp = &list->elems[i];
		if (tp->err != 0)
			err = weir_kafka_fail(dg, tp->err, NULL, "%s-%u", rs->moves[i].topic, rs->moves[i].partition);
		else if (first)
			rs->moves[i].first = tp->offset;
		else
			rs->moves[i].to = tp->offset < 0 ? rs->moves[i].end : tp->offset;
	}
	rd_kafka_topic_partition_list_destroy(list);
	return err;
}

/* Kafka's `topic,partition,offset` and rpk's `TOPIC PARTITION OFFSET`. */
static enum weir_err read_file(struct reset *rs, struct weir_diag **dg)
{
	FILE *f = fopen(rs->spec->file, "r");
	if (f == NULL)
		return weir_diag_set(dg, WEIR_E_CONF, "%s: %s", rs->spec->file, strerror(errno));
	char text[LINE_BYTES], topic[256];
	enum weir_err err = WEIR_OK;
	for (unsigned number = 1; err == WEIR_OK && fgets(text, sizeof text, f) != NULL; number++) {
		unsigned partition;
		long long offset;
		for (char *c = text; *c; c++)
			*c = *c == ',' || *c == '\t' || *c == '"' ? ' ' : *c;
		if (sscanf(text, "%255s %u %lld", topic, &partition, &offset) != 3) {
			if (strspn(text, " \r\n") != strlen(text))
				err = weir_diag_set(dg, WEIR_E_CONF, "%s:%u: it is topic,partition,offset",
						    rs->spec->file, number);
			continue;
		}
		bool found = false;
		for (size_t i = 0; i < rs->move_count; i++)
			if (rs->moves[i].partition == partition && strcmp(rs->moves[i].topic, topic) == 0) {
				rs->moves[i].to = offset;
				found = true;
			}
		if (!found)
			err = weir_diag_set(dg, WEIR_E_CONF, "%s:%u: group %s has no offset of %s-%u", rs->spec->file,
					    number, rs->spec->app, topic, partition);
	}
	fclose(f);
	return err;
}

static enum weir_err compute(struct reset *rs, struct weir_diag **dg)
{
	const struct weir_reset_spec *spec = rs->spec;
	enum weir_err err = look_up(rs, RD_KAFKA_OFFSET_BEGINNING, true, dg);
	if (err == WEIR_OK && spec->to == WEIR_RESET_TIME)
		err = look_up(rs, spec->value, false, dg);
	if (err == WEIR_OK && spec->to == WEIR_RESET_FILE)
		err = read_file(rs, dg);
	for (size_t i = 0; err == WEIR_OK && i < rs->move_count; i++) {
		struct move *mv = &rs->moves[i];
		switch (spec->to) {
		case WEIR_RESET_EARLIEST:
			mv->to = mv->first;
			break;
		case WEIR_RESET_LATEST:
			mv->to = mv->end;
			break;
		case WEIR_RESET_CURRENT:
			mv->to = mv->current;
			break;
		case WEIR_RESET_OFFSET:
			mv->to = spec->value;
			break;
		case WEIR_RESET_SHIFT:
			mv->to = (mv->current >= 0 ? mv->current : mv->first) + spec->value;
			break;
		case WEIR_RESET_FILE:
			mv->to = mv->to < 0 ? mv->current : mv->to;
			break;
		default:
			break;
		}
		/* As Kafka's own tool: what lies outside of the log becomes its begin or end. */
		if (mv->to >= 0 && mv->first >= 0 && mv->to < mv->first)
			mv->to = mv->first;
		if (mv->end >= 0 && mv->to > mv->end)
			mv->to = mv->end;
	}
	return err;
}

/* ---- what goes ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum weir_err find_doomed(struct reset *rs, struct weir_diag **dg)
{
	const struct rd_kafka_metadata *md;
	rd_kafka_resp_err_t code = rd_kafka_metadata(weir_kafka_client_handle(rs->kc), 1, NULL, &md, ADMIN_MS);
	if (code != 0)
		return weir_kafka_fail(dg, code, NULL, "listing topics");
	size_t prefix = strlen(rs->spec->app);
	rs->doomed = weir_xcalloc((size_t)md->topic_cnt + 1, sizeof *rs->doomed);
	for (int i = 0; i < md->topic_cnt; i++) {
		const char *name = md->topics[i].topic;
		if (strncmp(name, rs->spec->app, prefix) == 0 && name[prefix] == '-' &&
		    (ends_with(name, "-changelog") || ends_with(name, "-repartition")))
			rs->doomed[rs->doomed_count++] = weir_xstrdup(name);
	}
	rd_kafka_metadata_destroy(md);
	if (rs->doomed_count)
		qsort(rs->doomed, rs->doomed_count, sizeof *rs->doomed, compare_names);
	return WEIR_OK;
}

static void report(const struct reset *rs)
{
	size_t width = strlen("TOPIC");
	for (size_t i = 0; i < rs->move_count; i++)
		width = strlen(rs->moves[i].topic) > width ? strlen(rs->moves[i].topic) : width;
	line(rs, "%-*s  PARTITION  CURRENT-OFFSET  NEW-OFFSET", (int)width, "TOPIC");
	for (size_t i = 0; i < rs->move_count; i++) {
		const struct move *mv = &rs->moves[i];
		char current[32] = "-";
		if (mv->current >= 0)
			snprintf(current, sizeof current, "%lld", (long long)mv->current);
		line(rs, "%-*s  %-9u  %-14s  %lld", (int)width, mv->topic, mv->partition, current, (long long)mv->to);
	}
	for (size_t i = 0; i < rs->doomed_count; i++)
		line(rs, "%s topic %s", rs->spec->execute ? "deleting" : "would delete", rs->doomed[i]);
}

/* ---- doing it ---- */

static enum weir_err move_offsets(struct reset *rs, struct weir_diag **dg)
{
	char why[256];
	if (rs->move_count == 0)
		return WEIR_OK;
	rd_kafka_t *rk = weir_kafka_client_handle(rs->kc);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)rs->move_count);
	for (size_t i = 0; i < rs->move_count; i++)
		if (rs->moves[i].to >= 0)
			rd_kafka_topic_partition_list_add(list, rs->moves[i].topic, (int32_t)rs->moves[i].partition)
				->offset = rs->moves[i].to;
	rd_kafka_AlterConsumerGroupOffsets_t *req = rd_kafka_AlterConsumerGroupOffsets_new(rs->spec->app, list);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS);
	(void)rd_kafka_AdminOptions_set_request_timeout(options, ADMIN_MS, why, sizeof why);
	rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
	rd_kafka_AlterConsumerGroupOffsets(rk, &req, 1, options, q);
	rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 2 * ADMIN_MS);
	enum weir_err err = WEIR_OK;
	if (ev == NULL) {
		err = weir_kafka_fail(dg, RD_KAFKA_RESP_ERR__TIMED_OUT, NULL, "moving the offsets of group %s",
				      rs->spec->app);
	} else if (rd_kafka_event_error(ev) != 0) {
		err = weir_kafka_fail(dg, rd_kafka_event_error(ev), rd_kafka_event_error_string(ev),
				      "moving the offsets of group %s", rs->spec->app);
	} else {
		size_t n = 0;
		const rd_kafka_group_result_t **groups = rd_kafka_AlterConsumerGroupOffsets_result_groups(
			rd_kafka_event_AlterConsumerGroupOffsets_result(ev), &n);
		const rd_kafka_error_t *e = n == 1 ? rd_kafka_group_result_error(groups[0]) : NULL;
		if (e != NULL)
			err = weir_kafka_fail(dg, rd_kafka_error_code(e), rd_kafka_error_string(e),
					      "moving the offsets of group %s", rs->spec->app);
		const rd_kafka_topic_partition_list_t *done =
			n == 1 ? rd_kafka_group_result_partitions(groups[0]) : NULL;
		for (int i = 0; err == WEIR_OK && done != NULL && i < done->cnt; i++)
			if (done->elems[i].err != 0)
				err = weir_kafka_fail(dg, done->elems[i].err, NULL, "moving the offset of %s-%d",
						      done->elems[i].topic, (int)done->elems[i].partition);
	}
	if (ev != NULL)
		rd_kafka_event_destroy(ev);
	rd_kafka_queue_destroy(q);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_AlterConsumerGroupOffsets_destroy(req);
	rd_kafka_topic_partition_list_destroy(list);
	return err;
}

static enum weir_err delete_topics(struct reset *rs, struct weir_diag **dg)
{
	char why[256];
	if (rs->doomed_count == 0)
		return WEIR_OK;
	rd_kafka_t *rk = weir_kafka_client_handle(rs->kc);
	rd_kafka_DeleteTopic_t **del = weir_xcalloc(rs->doomed_count, sizeof *del);
	for (size_t i = 0; i < rs->doomed_count; i++)
		del[i] = rd_kafka_DeleteTopic_new(rs->doomed[i]);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DELETETOPICS);
	(void)rd_kafka_AdminOptions_set_request_timeout(options, ADMIN_MS, why, sizeof why);
	(void)rd_kafka_AdminOptions_set_operation_timeout(options, ADMIN_MS, why, sizeof why);
	rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
	rd_kafka_DeleteTopics(rk, del, rs->doomed_count, options, q);
	rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 2 * ADMIN_MS);
	enum weir_err err = WEIR_OK;
	if (ev == NULL || rd_kafka_event_error(ev) != 0) {
		err = weir_kafka_fail(dg, ev != NULL ? rd_kafka_event_error(ev) : RD_KAFKA_RESP_ERR__TIMED_OUT,
				      ev != NULL ? rd_kafka_event_error_string(ev) : NULL, "deleting topics");
	} else {
		size_t n = 0;
		const rd_kafka_topic_result_t **topics =
			rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(ev), &n);
		for (size_t i = 0; i < n && err == WEIR_OK; i++) {
			rd_kafka_resp_err_t code = rd_kafka_topic_result_error(topics[i]);
			if (code != 0 && code != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
				err = weir_kafka_fail(dg, code, rd_kafka_topic_result_error_string(topics[i]),
						      "deleting topic %s", rd_kafka_topic_result_name(topics[i]));
		}
	}
	if (ev != NULL)
		rd_kafka_event_destroy(ev);
	rd_kafka_queue_destroy(q);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_DeleteTopic_destroy_array(del, rs->doomed_count);
	free(del);
	return err;
}

static enum weir_err find(struct reset *rs, const struct weir_conf *cf, const struct weir_kafka_log *lg,
			  struct weir_diag **dg)
{
	struct weir_kafka_lag *kl = NULL;
	struct weir_diag *none = NULL;
	enum weir_err err = weir_kafka_lag_open(&kl, cf, lg, dg);
	enum weir_err lagging = err == WEIR_OK ? weir_kafka_lag_query(kl, rs->spec->app, &rs->lag, &none) : err;
	weir_kafka_lag_close(kl);
	if (err == WEIR_OK)
		err = find_doomed(rs, dg);
	if (err == WEIR_OK && lagging != WEIR_OK && (weir_diag_code(none) != WEIR_E_CONF || rs->doomed_count == 0)) {
		*dg = none; /* no such group, and nothing of the application either */
		return lagging;
	}
	weir_diag_destroy(none);
	if (err == WEIR_OK && rs->lag.members > 0)
		err = weir_diag_set(dg, WEIR_E_STATE,
				    "group %s has %u running member%s (%s at %s): stop the application, then reset it",
				    rs->spec->app, rs->lag.members, rs->lag.members == 1 ? "" : "s",
				    rs->lag.row_count && rs->lag.rows[0].client ? rs->lag.rows[0].client : "weir",
				    rs->lag.row_count && rs->lag.rows[0].host ? rs->lag.rows[0].host : "?");
	return err;
}

enum weir_err weir_kafka_reset(const struct weir_conf *cf, const struct weir_reset_spec *spec,
			       void (*say)(void *ctx, const char *line), void *ctx, const struct weir_kafka_log *lg,
			       struct weir_diag **dg)
{
	struct reset rs = {.spec = spec, .say = say, .ctx = ctx};
	const struct rd_kafka_metadata *md;
	enum weir_err err = weir_kafka_client_create(&rs.kc, cf, WEIR_KAFKA_ADMIN, NULL, lg, dg);
	if (err == WEIR_OK)
		err = weir_kafka_client_metadata(rs.kc, NULL, WEIR_KAFKA_WAIT_MS, &md, dg);
	if (err == WEIR_OK) {
		rd_kafka_metadata_destroy(md);
		err = find(&rs, cf, lg, dg);
	}
	if (err == WEIR_OK)
		err = choose(&rs, dg);
	if (err == WEIR_OK)
		err = compute(&rs, dg);
	if (err == WEIR_OK)
		report(&rs);
	if (err == WEIR_OK && spec->execute)
		err = move_offsets(&rs, dg);
	if (err == WEIR_OK && spec->execute)
		err = delete_topics(&rs, dg);
	for (size_t i = 0; i < rs.doomed_count; i++)
		free(rs.doomed[i]);
	free(rs.doomed);
	free(rs.moves);
	weir_lag_fini(&rs.lag);
	weir_kafka_client_destroy(rs.kc);
	return err;
}
