/* cooperative.c: the life of a member of a group that moves partitions one by one (member.h): only those that go to
 * somebody else are revoked, the others stay as they are. @thread init and io
 *
 *   JOINING -> { ASSIGNED -> RUNNING -(some go, or come)-> REVOKED -(drain, commit, release)-> } ... JOINING
 *
 * The engine sees the states of the eager protocol: it drains and begins again in a moment, with the slots that stayed
 * in its memory; here their partitions stay assigned, and what is queued of them stays queued.
 *
 * librdkafka takes the next incremental_unassign for the answer to a revocation that it has asked for, whether we have
 * heard it yet or not: so it is called for nothing else, and a partition that is to be read from elsewhere is sought.
 * An assignment is answered at once with nothing to fetch; begin adds the partitions with their offsets.
 *
 * A member that the group took for gone while it was about to join comes back under another name, and librdkafka keeps
 * what it had without a word, although others may have had it meanwhile: that counts as lost. */
#include <stdlib.h>

#include "io/kafka/member.h"

enum { SEEK_TRY_MS = 2000, SEEK_MS = 30000, FIRST_MS = 12000, ASSERTS_BEFORE = 0x020300ff };

static rd_kafka_topic_partition_t *list_add(const struct weir_kafka_input *in, rd_kafka_topic_partition_list_t *list,
					    const struct weir_kafka_part *pt)
{
	return rd_kafka_topic_partition_list_add(list, in->topics[pt->topic].name, (int32_t)pt->number);
}

static enum weir_err outcome(const struct weir_kafka_input *in, rd_kafka_error_t *e, const char *what,
			     struct weir_diag **dg)
{
	if (e == NULL)
		return WEIR_OK;
	enum weir_err err =
		weir_kafka_fail(dg, rd_kafka_error_code(e), rd_kafka_error_string(e), "group %s: %s", in->group, what);
	rd_kafka_error_destroy(e);
	return err;
}

static struct weir_kafka_part *part_of(struct weir_kafka_input *in, const rd_kafka_topic_partition_t *tp)
{
	for (uint32_t t = 0; t < in->topic_count; t++)
		if (strcmp(in->topics[t].name, tp->topic) == 0)
			return tp->partition >= 0 && (uint32_t)tp->partition < in->topics[t].part_count
				       ? &in->parts[in->topics[t].part_base + (uint32_t)tp->partition]
				       : NULL;
	return NULL;
}

/* ---- coming and going ---- */

/* Forgets what is known of a partition that is ours no more, or not yet. */
static void forget(struct weir_kafka_input *in, struct weir_kafka_part *pt)
{
	weir_kafka_unit_drop(in, pt);
	pt->owned = pt->coming = pt->going = pt->later = pt->done = pt->at_end = pt->ahead = false;
	pt->seek = pt->committed = pt->taken = -1;
}

/* Unassigns those of the partitions that librdkafka has: what was never read is not there to be taken away. */
static rd_kafka_error_t *unassign(struct weir_kafka_input *in, bool all)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)in->part_count);
	rd_kafka_topic_partition_list_t *held = rd_kafka_topic_partition_list_new((int)in->part_count);
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		if (!pt->assigned || !(all || pt->going))
			continue;
		(void)list_add(in, list, pt);
		if (pt->told_hold) /* it would stay paused through the next assignment */
			(void)list_add(in, held, pt);
		pt->assigned = pt->told_hold = false;
	}
	if (held->cnt != 0)
		(void)rd_kafka_resume_partitions(in->rk, held);
	rd_kafka_error_t *e = rd_kafka_incremental_unassign(in->rk, list);
	rd_kafka_topic_partition_list_destroy(held);
	rd_kafka_topic_partition_list_destroy(list);
	in->unanswered = false;
	return e;
}

/* Under the name that we have now. */
static void note_member(struct weir_kafka_input *in)
{
	char *id = rd_kafka_memberid(in->rk);
	free(in->member_id);
	in->member_id = weir_xstrdup(id != NULL ? id : "");
	if (id != NULL)
		rd_kafka_mem_free(in->rk, id);
}

bool weir_kafka_input_is_same_member(const struct weir_kafka_input *in)
{
	char *id = rd_kafka_memberid(in->rk);
	bool same = id != NULL && in->member_id != NULL && strcmp(id, in->member_id) == 0;
	if (id != NULL)
		rd_kafka_mem_free(in->rk, id);
	return same;
}

/* Those that came are ours from here on. *any: something is. */
static void take_up(struct weir_kafka_input *in, bool *any)
{
	*any = false;
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		pt->owned |= pt->coming;
		pt->coming = false;
		pt->seek = -1;
		*any |= pt->owned;
	}
	in->fresh = in->committed_known = false;
	note_member(in);
}

bool weir_kafka_coop_any_coming(const struct weir_kafka_input *in)
{
	bool any = false;
	for (uint32_t p = 0; p < in->part_count; p++)
		any |= in->parts[p].coming;
	return any;
}

static void on_assign(struct weir_kafka_input *in, const rd_kafka_topic_partition_list_t *parts)
{
	rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(1);
	rd_kafka_error_t *e = rd_kafka_incremental_assign(in->rk, none);
	if (e != NULL)
		rd_kafka_error_destroy(e); /* librdkafka has logged it, and goes on to the next rebalance */
	rd_kafka_topic_partition_list_destroy(none);
	in->leaving = false;
	in->was_assigned = true;
	for (int i = 0; i < parts->cnt; i++) {
		struct weir_kafka_part *pt = part_of(in, &parts->elems[i]);
		if (pt != NULL)
			pt->coming = true;
		else
			weir_kafka_group_stranger(in, &parts->elems[i]);
	}
	bool any;
	if (in->state == WEIR_GROUP_JOINING) {
		take_up(in, &any);
		in->state = WEIR_GROUP_ASSIGNED;
	} else if (!weir_kafka_input_is_same_member(in)) {
		in->state = WEIR_GROUP_LOST;
	} else if (in->state == WEIR_GROUP_RUNNING && weir_kafka_coop_any_coming(in)) {
		in->state = WEIR_GROUP_REVOKED; /* nothing is: but the session has to end */
	}
}

static void on_revoke(struct weir_kafka_input *in, const rd_kafka_topic_partition_list_t *parts)
{
	bool ours = false;
	for (int i = 0; i < parts->cnt; i++) {
		struct weir_kafka_part *pt = part_of(in, &parts->elems[i]);
		if (pt == NULL)
			continue;
		pt->coming = false;
		pt->going = true;
		ours |= pt->owned;
	}
	if (ours && !in->leaving && in->state != WEIR_GROUP_JOINING) {
		in->unanswered = true;
		in->state = rd_kafka_assignment_lost(in->rk) ? WEIR_GROUP_LOST : WEIR_GROUP_REVOKED;
		return;
	}
	rd_kafka_error_t *e = unassign(in, false);
	if (e != NULL)
		rd_kafka_error_destroy(e);
	for (uint32_t p = 0; p < in->part_count; p++)
		if (in->parts[p].going)
			forget(in, &in->parts[p]);
}

void weir_kafka_coop_on_rebalance(struct weir_kafka_input *in, rd_kafka_resp_err_t err,
				  const rd_kafka_topic_partition_list_t *parts)
{
	rd_kafka_error_t *e = NULL;
	if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && in->closing) {
		rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(1);
		e = rd_kafka_incremental_assign(in->rk, none);
		in->was_assigned = true;
		rd_kafka_topic_partition_list_destroy(none);
	} else if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		on_assign(in, parts);
	} else if (err == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS && !in->closing) {
		on_revoke(in, parts);
	} else {
		if (err != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
			weir_kafka_client_say(in->kc, 4, "group %s: %s", in->group, rd_kafka_err2str(err));
		e = unassign(in, true);
		for (uint32_t p = 0; p < in->part_count; p++)
			in->parts[p].going = true;
		if (in->state != WEIR_GROUP_JOINING)
			in->state = WEIR_GROUP_LOST;
	}
	if (e != NULL)
		rd_kafka_error_destroy(e);
}

static void say_change(struct weir_kafka_input *in)
{
	uint32_t had = 0, going = 0, coming = 0;
	for (uint32_t p = 0; p < in->part_count; p++) {
		const struct weir_kafka_part *pt = &in->parts[p];
		had += pt->owned;
		going += pt->owned && pt->going;
		coming += pt->coming;
	}
	weir_kafka_client_say(in->kc, 6, "group %s: %u partitions go, %u come, %u stay", in->group, going, coming,
			      had - going);
}

enum weir_err weir_kafka_coop_release(struct weir_kafka_input *in, struct weir_diag **dg)
{
	bool any;
	enum weir_err err = WEIR_OK;
	say_change(in);
	if (in->unanswered)
		err = outcome(in, unassign(in, false), "giving partitions back", dg);
	for (uint32_t p = 0; p < in->part_count; p++)
		if (in->parts[p].going)
			forget(in, &in->parts[p]);
	take_up(in, &any);
	/* After a revocation librdkafka says what came, though it be nothing. */
	in->state = any ? WEIR_GROUP_ASSIGNED : WEIR_GROUP_JOINING;
	return err;
}

enum weir_err weir_kafka_coop_leave(struct weir_kafka_input *in, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	if (in->unanswered)
		err = outcome(in, unassign(in, false), "giving partitions back", dg);
	for (uint32_t p = 0; p < in->part_count; p++)
		forget(in, &in->parts[p]);
	in->leaving = true; /* what is assigned yet goes when librdkafka asks for it */
	in->state = WEIR_GROUP_JOINING;
	return err;
}

/* Up to 2.2.x a member that is in the group and was never given anything must not be closed: the assignor asserts that
 * it has a state. What holds up a join that has not come through by then is another member's session. */
void weir_kafka_coop_close(struct weir_kafka_input *in)
{
	int64_t end = weir_kafka_now_ms() + FIRST_MS;
	while (in->subscribed && !in->was_assigned && rd_kafka_version() < ASSERTS_BEFORE &&
	       weir_kafka_now_ms() < end) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(in->rk, 50);
		if (m != NULL)
			rd_kafka_message_destroy(m);
	}
	rd_kafka_error_t *e = unassign(in, true);
	if (e != NULL)
		rd_kafka_error_destroy(e);
}

/* ---- reading begins, or goes on ---- */

static enum weir_err seek_once(struct weir_kafka_input *in, rd_kafka_topic_partition_list_t *list, bool *again,
			       struct weir_diag **dg)
{
	*again = false;
	rd_kafka_error_t *e = rd_kafka_seek_partitions(in->rk, list, SEEK_TRY_MS);
	if (e != NULL) {
		*again = rd_kafka_error_is_retriable(e) || rd_kafka_error_code(e) == RD_KAFKA_RESP_ERR__TIMED_OUT;
		if (!*again)
			return outcome(in, e, "going back to where the last commit ended", dg);
		rd_kafka_error_destroy(e);
		return WEIR_OK;
	}
	/* Fetching that has not begun yet, or stops: in a moment. */
	for (int i = list->cnt - 1; i >= 0; i--) {
		rd_kafka_resp_err_t code = list->elems[i].err;
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
			rd_kafka_topic_partition_list_del_by_idx(list, i);
			continue;
		}
		*again = true;
		if (code != RD_KAFKA_RESP_ERR__STATE && code != RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS &&
		    !weir_kafka_err_is_retriable(code))
			return weir_kafka_fail(dg, code, NULL, "topic %s, partition %d: going back to offset %lld",
					       list->elems[i].topic, (int)list->elems[i].partition,
					       (long long)list->elems[i].offset);
	}
	return WEIR_OK;
}

static enum weir_err seek(struct weir_kafka_input *in, rd_kafka_topic_partition_list_t *list, struct weir_diag **dg)
{
	int64_t end = weir_kafka_now_ms() + SEEK_MS;
	bool again = list->cnt != 0;
	enum weir_err err = WEIR_OK;
	while (err == WEIR_OK && again) {
		err = seek_once(in, list, &again, dg);
		if (err != WEIR_OK || !again)
			break;
		if (weir_kafka_now_ms() > end)
			return weir_diag_set(dg, WEIR_E_UNAVAILABLE,
					     "group %s: going back to where the last commit ended: no answer",
					     in->group);
		weir_kafka_client_poll(in->kc, 20);
	}
	return err;
}

/* Where one partition goes on. */
static void begin_part(struct weir_kafka_input *in, struct weir_kafka_part *pt, rd_kafka_topic_partition_list_t *add,
		       rd_kafka_topic_partition_list_t *back)
{
	int64_t start = weir_kafka_group_start_of(in, pt);
	pt->first = start;
	if (pt->assigned && pt->taken == start)
		return; /* what is queued is what comes next */
	weir_kafka_unit_drop(in, pt);
	pt->next = pt->taken = start;
	pt->done = start >= pt->bound;
	pt->at_end = false;
	if (pt->assigned) {
		list_add(in, back, pt)->offset = start;
	} else if (!pt->done) {
		list_add(in, add, pt)->offset = start;
		pt->assigned = true;
		pt->told_hold = false;
	}
}

enum weir_err weir_kafka_coop_begin(struct weir_kafka_input *in, struct weir_diag **dg)
{
	rd_kafka_topic_partition_list_t *add = rd_kafka_topic_partition_list_new((int)in->part_count);
	rd_kafka_topic_partition_list_t *back = rd_kafka_topic_partition_list_new((int)in->part_count);
	enum weir_err err = WEIR_OK;
	for (uint32_t p = 0; p < in->part_count; p++)
		if (in->parts[p].owned && !in->parts[p].later)
			begin_part(in, &in->parts[p], add, back);
	if (add->cnt != 0)
		err = outcome(in, rd_kafka_incremental_assign(in->rk, add), "taking partitions", dg);
	if (err == WEIR_OK)
		err = seek(in, back, dg);
	rd_kafka_topic_partition_list_destroy(add);
	rd_kafka_topic_partition_list_destroy(back);
	if (err != WEIR_OK)
		return err;
	in->dry = in->waiting = in->any_ahead = false;
	for (uint32_t p = 0; p < in->part_count; p++)
		in->parts[p].ahead = false;
	weir_kafka_group_hold(in);
	in->state = weir_kafka_coop_any_coming(in) ? WEIR_GROUP_REVOKED : WEIR_GROUP_RUNNING;
	return WEIR_OK;
}

void weir_kafka_coop_again(struct weir_kafka_input *in)
{
	for (uint32_t p = 0; p < in->part_count; p++)
		in->parts[p].seek = -1;
	in->fresh = in->committed_known = false;
	in->state = WEIR_GROUP_ASSIGNED;
}

void weir_kafka_coop_set_later(struct weir_kafka_input *in, struct weir_kafka_part *pt, bool later)
{
	if (later && !pt->later) { /* it is read from elsewhere when it is there again */
		weir_kafka_unit_drop(in, pt);
		pt->taken = -1;
	}
	pt->later = later;
}
