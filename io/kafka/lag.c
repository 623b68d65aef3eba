/* lag.c: how far a consumer group is behind: committed offsets, ends of the logs, members, and the age of the oldest
 * record that was not read. One client asks (an idle consumer handle has no Fetch to wait behind), one reads the record
 * at each committed offset: where it finds the end of the log instead, only markers of transactions and aborted records
 * lie behind the offset, and nothing is waiting. A third looks at the age of what an open transaction holds back.
 * @thread: the owner's */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hotpath/core/mem.h"
#include "io/kafka/client.h"

enum { ADMIN_MS = 10000, AGE_MS_MAX = 5000 };

struct weir_kafka_lag {
	const struct weir_conf *cf;
	struct weir_kafka_log log;
	struct weir_kafka_client *kc;   /* asks */
	struct weir_kafka_client *peek; /* reads as the group does */
	struct weir_kafka_client *held; /* and what is not committed; NULL: nothing was held back so far */
};

static enum weir_err open_peek(struct weir_kafka_client **out, const struct weir_kafka_lag *kl, bool uncommitted,
			       struct weir_diag **dg)
{
	/* One record of each partition is wanted. */
	struct weir_kafka_setting peeking[] = {{"auto.offset.reset", "earliest"},
					       {"fetch.message.max.bytes", "65536"},
					       {"queued.max.messages.kbytes", "1024"},
					       {uncommitted ? "isolation.level" : NULL, "read_uncommitted"},
					       {NULL, NULL}};
	return weir_kafka_client_create(out, kl->cf, WEIR_KAFKA_READ, peeking, &kl->log, dg);
}

enum weir_err weir_kafka_lag_open(struct weir_kafka_lag **out, const struct weir_conf *cf,
				  const struct weir_kafka_log *lg, struct weir_diag **dg)
{
	struct weir_kafka_lag *kl = weir_xcalloc(1, sizeof *kl);
	kl->cf = cf;
	if (lg != NULL)
		kl->log = *lg;
	enum weir_err err = weir_kafka_client_create(&kl->kc, cf, WEIR_KAFKA_ADMIN, NULL, lg, dg);
	if (err == WEIR_OK)
		err = open_peek(&kl->peek, kl, false, dg);
	if (err != WEIR_OK) {
		weir_kafka_lag_close(kl);
		return err;
	}
	*out = kl;
	return WEIR_OK;
}

void weir_kafka_lag_close(struct weir_kafka_lag *kl)
{
	if (kl == NULL)
		return;
	struct weir_kafka_client *readers[] = {kl->peek, kl->held};
	for (size_t i = 0; i < WEIR_COUNT_OF(readers); i++) {
		if (readers[i] != NULL)
			(void)rd_kafka_consumer_close(weir_kafka_client_handle(readers[i]));
		weir_kafka_client_destroy(readers[i]);
	}
	weir_kafka_client_destroy(kl->kc);
	free(kl);
}

void weir_lag_fini(struct weir_lag *lag)
{
	for (size_t i = 0; i < lag->row_count; i++) {
		free(lag->rows[i].topic);
		free(lag->rows[i].consumer);
		free(lag->rows[i].host);
		free(lag->rows[i].client);
	}
	free(lag->rows);
	free(lag->group);
	free(lag->state);
	*lag = (struct weir_lag){0};
}

/* ---- rows ---- */

static struct weir_lag_row *row_of(struct weir_lag *lag, const char *topic, int32_t partition)
{
	for (size_t i = 0; i < lag->row_count; i++)
		if (lag->rows[i].partition == (uint32_t)partition && strcmp(lag->rows[i].topic, topic) == 0)
			return &lag->rows[i];
	lag->rows = weir_xrealloc(lag->rows, (lag->row_count + 1) * sizeof *lag->rows);
	struct weir_lag_row *row = &lag->rows[lag->row_count++];
	*row = (struct weir_lag_row){.topic = weir_xstrdup(topic),
				     .partition = (uint32_t)partition,
				     .current = -1,
				     .end = -1,
				     .lag = -1,
				     .lag_ms = -1};
	return row;
}

static int compare_rows(const void *a, const void *b)
{
	const struct weir_lag_row *x = a, *y = b;
	int c = strcmp(x->topic, y->topic);
	return c != 0 ? c : x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* ---- the group ---- */

static enum weir_err take_offsets(struct weir_lag *lag, rd_kafka_event_t *ev, struct weir_diag **dg)
{
	size_t n = 0;
	if (rd_kafka_event_error(ev) != 0)
		return weir_kafka_fail(dg, rd_kafka_event_error(ev), rd_kafka_event_error_string(ev),
				       "offsets of group %s", lag->group);
	const rd_kafka_group_result_t **groups =
		rd_kafka_ListConsumerGroupOffsets_result_groups(rd_kafka_event_ListConsumerGroupOffsets_result(ev), &n);
	if (n != 1)
		return weir_diag_set(dg, WEIR_E_IO, "offsets of group %s: no answer", lag->group);
	const rd_kafka_error_t *e = rd_kafka_group_result_error(groups[0]);
	if (e != NULL)
		return weir_kafka_fail(dg, rd_kafka_error_code(e), rd_kafka_error_string(e), "offsets of group %s",
				       lag->group);
	const rd_kafka_topic_partition_list_t *list = rd_kafka_group_result_partitions(groups[0]);
	for (int i = 0; list != NULL && i < list->cnt; i++)
		if (list->elems[i].offset >= 0)
			row_of(lag, list->elems[i].topic, list->elems[i].partition)->current = list->elems[i].offset;
	return WEIR_OK;
}

static enum weir_err query_offsets(struct weir_kafka_lag *kl, struct weir_lag *lag, struct weir_diag **dg)
{
	char why[256];
	rd_kafka_t *rk = weir_kafka_client_handle(kl->kc);
	rd_kafka_ListConsumerGroupOffsets_t *req = rd_kafka_ListConsumerGroupOffsets_new(lag->group, NULL);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
	(void)rd_kafka_AdminOptions_set_request_timeout(options, ADMIN_MS, why, sizeof why);
	rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
	rd_kafka_ListConsumerGroupOffsets(rk, &req, 1, options, q);
	rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 2 * ADMIN_MS);
	enum weir_err err =
		ev != NULL ? take_offsets(lag, ev, dg)
			   : weir_kafka_fail(dg, RD_KAFKA_RESP_ERR__TIMED_OUT, NULL, "offsets of group %s", lag->group);
	rd_kafka_event_destroy(ev);
	rd_kafka_queue_destroy(q);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_ListConsumerGroupOffsets_destroy(req);
	return err;
}

static enum weir_err take_members(struct weir_lag *lag, rd_kafka_event_t *ev, struct weir_diag **dg)
{
	size_t n = 0;
	if (rd_kafka_event_error(ev) != 0)
		return weir_kafka_fail(dg, rd_kafka_event_error(ev), rd_kafka_event_error_string(ev), "group %s",
				       lag->group);
	const rd_kafka_ConsumerGroupDescription_t **groups =
		rd_kafka_DescribeConsumerGroups_result_groups(rd_kafka_event_DescribeConsumerGroups_result(ev), &n);
	if (n != 1)
		return weir_diag_set(dg, WEIR_E_IO, "group %s: no answer", lag->group);
	const rd_kafka_error_t *e = rd_kafka_ConsumerGroupDescription_error(groups[0]);
	rd_kafka_resp_err_t code = e != NULL ? rd_kafka_error_code(e) : RD_KAFKA_RESP_ERR_NO_ERROR;
	if (code != 0 && code != RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
		return weir_kafka_fail(dg, code, rd_kafka_error_string(e), "group %s", lag->group);
	lag->state = weir_xstrdup(
		code != 0 ? "Dead"
			  : rd_kafka_consumer_group_state_name(rd_kafka_ConsumerGroupDescription_state(groups[0])));
	lag->members = code != 0 ? 0 : (uint32_t)rd_kafka_ConsumerGroupDescription_member_count(groups[0]);
	for (uint32_t m = 0; m < lag->members; m++) {
		const rd_kafka_MemberDescription_t *md = rd_kafka_ConsumerGroupDescription_member(groups[0], m);
		const rd_kafka_MemberAssignment_t *ma = rd_kafka_MemberDescription_assignment(md);
		const rd_kafka_topic_partition_list_t *list =
			ma != NULL ? rd_kafka_MemberAssignment_partitions(ma) : NULL;
		for (int i = 0; list != NULL && i < list->cnt; i++) {
			struct weir_lag_row *row = row_of(lag, list->elems[i].topic, list->elems[i].partition);
			if (row->consumer != NULL)
				continue;
			row->consumer = weir_xstrdup(rd_kafka_MemberDescription_consumer_id(md));
			row->host = weir_xstrdup(rd_kafka_MemberDescription_host(md));
			row->client = weir_xstrdup(rd_kafka_MemberDescription_client_id(md));
		}
	}
	return WEIR_OK;
}

static enum weir_err query_members(struct weir_kafka_lag *kl, struct weir_lag *lag, struct weir_diag **dg)
{
	char why[256];
	rd_kafka_t *rk = weir_kafka_client_handle(kl->kc);
	const char *groups[] = {lag->group};
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS);
	(void)rd_kafka_AdminOptions_set_request_timeout(options, ADMIN_MS, why, sizeof why);
	rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
	rd_kafka_DescribeConsumerGroups(rk, groups, 1, options, q);
	rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 2 * ADMIN_MS);
	enum weir_err err = ev != NULL
				    ? take_members(lag, ev, dg)
				    : weir_kafka_fail(dg, RD_KAFKA_RESP_ERR__TIMED_OUT, NULL, "group %s", lag->group);
	rd_kafka_event_destroy(ev);
	rd_kafka_queue_destroy(q);
	rd_kafka_AdminOptions_destroy(options);
	return err;
}

/* ---- the logs ---- */

static enum weir_err query_ends(struct weir_kafka_lag *kl, struct weir_lag *lag, struct weir_diag **dg)
{
	if (lag->row_count == 0)
		return WEIR_OK;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)lag->row_count);
	for (size_t i = 0; i < lag->row_count; i++)
		rd_kafka_topic_partition_list_add(list, lag->rows[i].topic, (int32_t)lag->rows[i].partition)->offset =
			RD_KAFKA_OFFSET_END;
	rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(weir_kafka_client_handle(kl->kc), list, ADMIN_MS);
	enum weir_err err = WEIR_OK;
	/* A topic that was deleted has no end, and the other rows still do. */
	if (code != 0 && weir_kafka_err(code) != WEIR_E_CONF)
		err = weir_kafka_fail(dg, code, NULL, "looking up the ends of partitions");
	for (int i = 0; err == WEIR_OK && code == 0 && i < list->cnt; i++) {
		if (list->elems[i].err == 0 && list->elems[i].offset >= 0)
			row_of(lag, list->elems[i].topic, list->elems[i].partition)->end = list->elems[i].offset;
	}
	rd_kafka_topic_partition_list_destroy(list);
	return err;
}

static int64_t wall_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Where a partition is read from, and where what is held back begins; -1: not, or not any more. */
struct place {
	int64_t from, held;
};

/* Takes one answer: a record tells the age; the end of what is committed, that nothing before it is a record, and where
 * that begins which an open transaction holds back. */
static bool take_age(struct weir_lag *lag, struct place *places, const rd_kafka_message_t *m)
{
	if (m->rkt == NULL || (m->err != 0 && m->err != RD_KAFKA_RESP_ERR__PARTITION_EOF))
		return false;
	struct weir_lag_row *row = row_of(lag, rd_kafka_topic_name(m->rkt), m->partition);
	struct place *pl = &places[row - lag->rows];
	if (pl->from < 0)
		return false;
	pl->from = -1;
	rd_kafka_timestamp_type_t type;
	int64_t ts = m->err == 0 ? rd_kafka_message_timestamp(m, &type) : -1;
	int64_t age = ts < 0 ? 0 : wall_ms() - ts;
	row->lag_ms = age > 0 ? age : 0;
	if (m->err != 0 || m->offset >= row->end) {
		row->lag = row->end > m->offset ? row->end - m->offset : 0;
		pl->held = row->lag > 0 ? m->offset : -1;
	}
	return true;
}

/* Reads one record of every partition that has such a place, or finds its end. What does not answer in time stays as
 * it is: the rest of the report is worth having. */
static void peek(struct weir_kafka_client *kc, struct weir_lag *lag, struct place *places)
{
	rd_kafka_t *rk = weir_kafka_client_handle(kc);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)lag->row_count + 1);
	for (size_t i = 0; i < lag->row_count; i++)
		if (places[i].from >= 0)
			rd_kafka_topic_partition_list_add(list, lag->rows[i].topic, (int32_t)lag->rows[i].partition)
				->offset = places[i].from;
	int missing = list->cnt;
	if (missing != 0 && rd_kafka_assign(rk, list) == 0) {
		rd_kafka_queue_t *q = rd_kafka_queue_get_consumer(rk);
		int64_t end = weir_kafka_now_ms() + AGE_MS_MAX;
		for (int64_t left; missing > 0 && (left = end - weir_kafka_now_ms()) > 0;) {
			rd_kafka_message_t *m = NULL;
			weir_kafka_client_poll(kc, 0);
			if (rd_kafka_consume_batch_queue(q, (int)left, &m, 1) != 1)
				break;
			missing -= take_age(lag, places, m);
			rd_kafka_message_destroy(m);
		}
		rd_kafka_queue_destroy(q);
		(void)rd_kafka_assign(rk, NULL);
	}
	rd_kafka_topic_partition_list_destroy(list);
}

/* Ages stay unknown where nobody answers. */
static void query_ages(struct weir_kafka_lag *kl, struct weir_lag *lag)
{
	struct place *places = weir_xcalloc(lag->row_count + 1, sizeof *places);
	bool held = false;
	for (size_t i = 0; i < lag->row_count; i++) {
		struct weir_lag_row *row = &lag->rows[i];
		places[i] = (struct place){row->lag > 0 ? row->current : -1, -1};
		if (row->lag == 0)
			row->lag_ms = 0;
	}
	peek(kl->peek, lag, places);
	for (size_t i = 0; i < lag->row_count; i++) {
		places[i] = (struct place){places[i].held, -1};
		held |= places[i].from >= 0;
	}
	if (held && kl->held == NULL) {
		struct weir_diag *ignored = NULL;
		held = open_peek(&kl->held, kl, true, &ignored) == WEIR_OK;
		weir_diag_destroy(ignored);
	}
	if (held)
		peek(kl->held, lag, places);
	free(places);
}

enum weir_err weir_kafka_lag_query(struct weir_kafka_lag *kl, const char *group, struct weir_lag *out,
				   struct weir_diag **dg)
{
	struct weir_lag lag = {.group = weir_xstrdup(group)};
	const struct rd_kafka_metadata *md;
	enum weir_err err = weir_kafka_client_metadata(kl->kc, NULL, WEIR_KAFKA_WAIT_MS, &md, dg);
	if (err == WEIR_OK) {
		rd_kafka_metadata_destroy(md);
		err = query_members(kl, &lag, dg);
	}
	if (err == WEIR_OK)
		err = query_offsets(kl, &lag, dg);
	if (err == WEIR_OK && lag.row_count == 0 && lag.members == 0 && strcmp(lag.state, "Empty") != 0)
		err = weir_diag_set(dg, WEIR_E_CONF, "no group %s on %s", group, weir_kafka_client_brokers(kl->kc));
	if (err == WEIR_OK)
		err = query_ends(kl, &lag, dg);
	if (err != WEIR_OK) {
		weir_lag_fini(&lag);
		return err;
	}
	for (size_t i = 0; i < lag.row_count; i++) {
		struct weir_lag_row *row = &lag.rows[i];
		if (row->current >= 0 && row->end >= 0)
			row->lag = row->end > row->current ? row->end - row->current : 0;
	}
	query_ages(kl, &lag);
	if (lag.row_count != 0)
		qsort(lag.rows, lag.row_count, sizeof *lag.rows, compare_rows);
	for (size_t i = 0; i < lag.row_count; i++) {
		lag.lag += lag.rows[i].lag > 0 ? lag.rows[i].lag : 0;
		lag.lag_ms = lag.rows[i].lag_ms > lag.lag_ms ? lag.rows[i].lag_ms : lag.lag_ms;
	}
	*out = lag;
	return WEIR_OK;
}
