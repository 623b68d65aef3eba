/* group.c: the life of a group member (input.h): what the rebalance callback hears and how it is answered, the group's
 * committed offsets, and waiting for brokers that went away. @thread init and io
 *
 * An assignment is answered at once with nothing to fetch, so that the group is stable while state is restored; begin
 * assigns the partitions with their offsets: once in a generation, so that nothing is fetched that is thrown away, and
 * librdkafka never asks for offsets by itself. A revocation waits for its answer until release. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/kafka/member.h"

enum {
	CHECK_MS = 500,
	DOWN_SAY_MS = 10000,
	PROBE_MS = 200,
	COMMITTED_TRY_MS = 2000,
	DOUBT_MS = 10000,
	COUNT_MS = 10000, /* how often partitions are counted here: commits do so too */
	OTHERS_MS = 5000,
	WATCH_MS = 10000,
	HELD_SAY_MS = 60000,
	STALL_MS = 30000 /* longer than any retry of librdkafka's, but for an answer that never comes */
};

static bool stopped(const struct weir_kafka_input *in)
{
	return in->stop != NULL && atomic_load_explicit(in->stop, memory_order_relaxed);
}

static bool part_is_held(const struct weir_kafka_input *in, const struct weir_kafka_part *pt)
{
	return in->paused || in->held || pt->done || pt->ahead || pt->later;
}

static rd_kafka_topic_partition_t *list_add(const struct weir_kafka_input *in, rd_kafka_topic_partition_list_t *list,
					    const struct weir_kafka_part *pt)
{
	return rd_kafka_topic_partition_list_add(list, in->topics[pt->topic].name, (int32_t)pt->number);
}

static enum weir_err assign(struct weir_kafka_input *in, const rd_kafka_topic_partition_list_t *list,
			    struct weir_diag **dg)
{
	rd_kafka_resp_err_t code = rd_kafka_assign(in->rk, list);
	return code == 0 ? WEIR_OK : weir_kafka_fail(dg, code, NULL, "group %s: taking partitions", in->group);
}

/* ---- the callback ---- */

static void own(struct weir_kafka_input *in, const rd_kafka_topic_partition_t *tp)
{
	for (uint32_t t = 0; t < in->topic_count; t++) {
		if (strcmp(in->topics[t].name, tp->topic) != 0)
			continue;
		if (tp->partition >= 0 && (uint32_t)tp->partition < in->topics[t].part_count)
			in->parts[in->topics[t].part_base + (uint32_t)tp->partition].owned = true;
		else
			weir_kafka_group_stranger(in, tp);
		return;
	}
	weir_kafka_group_stranger(in, tp);
}

void weir_kafka_group_stranger(struct weir_kafka_input *in, const rd_kafka_topic_partition_t *tp)
{
	for (uint32_t t = 0; t < in->topic_count; t++)
		if (strcmp(in->topics[t].name, tp->topic) == 0) {
			(void)weir_diag_set(&in->broken, WEIR_E_CONF,
					    "topic %s had %u partitions when reading began and has more now: start "
					    "again",
					    tp->topic, in->topics[t].part_count);
			return;
		}
	/* Another member of the group subscribes to other topics: range hands out only what a member asked for. */
	weir_kafka_client_say(in->kc, 4, "group %s gave a partition of topic %s, which is not read here", in->group,
			      tp->topic);
}

/* A partition that is paused stays so through the next assignment, and nothing would be fetched from it. */
static void resume_held(struct weir_kafka_input *in)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)in->part_count);
	for (uint32_t p = 0; p < in->part_count; p++)
		if (in->parts[p].assigned && in->parts[p].told_hold) {
			(void)list_add(in, list, &in->parts[p]);
			in->parts[p].told_hold = false;
		}
	if (list->cnt != 0)
		(void)rd_kafka_resume_partitions(in->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
}

/* Forgets the assignment and what was read ahead of it. */
static void disown(struct weir_kafka_input *in)
{
	resume_held(in);
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		weir_kafka_unit_drop(in, pt);
		pt->owned = pt->later = pt->done = pt->assigned = pt->told_hold = false;
		pt->seek = pt->committed = -1;
	}
	in->held = in->fresh = in->committed_known = false;
}

static void own_all(struct weir_kafka_input *in)
{
	disown(in);
	for (uint32_t p = 0; p < in->part_count; p++)
		in->parts[p].owned = true;
	in->state = WEIR_GROUP_ASSIGNED;
}

static void on_assign(struct weir_kafka_input *in, const rd_kafka_topic_partition_list_t *parts)
{
	rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(1);
	disown(in);
	for (int i = 0; i < parts->cnt; i++)
		own(in, &parts->elems[i]);
	(void)rd_kafka_assign(in->rk, none);
	rd_kafka_topic_partition_list_destroy(none);
	in->leaving = in->unanswered = false;
	in->state = WEIR_GROUP_ASSIGNED;
}

static void on_revoke(struct weir_kafka_input *in)
{
	if (in->leaving || in->state == WEIR_GROUP_JOINING) {
		resume_held(in);
		(void)rd_kafka_assign(in->rk, NULL);
		in->leaving = false;
		return;
	}
	in->unanswered = true;
	in->state = rd_kafka_assignment_lost(in->rk) ? WEIR_GROUP_LOST : WEIR_GROUP_REVOKED;
}

void weir_kafka_group_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts,
				   void *opaque)
{
	struct weir_kafka_input *in = weir_kafka_client_user(opaque);
	if (in->cooperative) {
		weir_kafka_coop_on_rebalance(in, err, parts);
	} else if (in->closing) {
		(void)rd_kafka_assign(rk, NULL);
	} else if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		on_assign(in, parts);
	} else if (err == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
		on_revoke(in);
	} else {
		weir_kafka_client_say(in->kc, 4, "group %s: %s", in->group, rd_kafka_err2str(err));
		(void)rd_kafka_assign(rk, NULL);
		if (in->state != WEIR_GROUP_JOINING)
			in->state = WEIR_GROUP_LOST;
	}
}

void weir_kafka_group_hold(struct weir_kafka_input *in)
{
	rd_kafka_topic_partition_list_t *hold = rd_kafka_topic_partition_list_new((int)in->part_count);
	rd_kafka_topic_partition_list_t *let_go = rd_kafka_topic_partition_list_new((int)in->part_count);
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		bool want = part_is_held(in, pt);
		/* Resuming what was never paused rewinds it before 2.4.0. */
		if (!pt->assigned || pt->told_hold == want)
			continue;
		(void)list_add(in, want ? hold : let_go, pt);
		pt->told_hold = want;
	}
	if (hold->cnt != 0)
		(void)rd_kafka_pause_partitions(in->rk, hold);
	if (let_go->cnt != 0)
		(void)rd_kafka_resume_partitions(in->rk, let_go);
	rd_kafka_topic_partition_list_destroy(hold);
	rd_kafka_topic_partition_list_destroy(let_go);
}

/* ---- joining, answering ---- */

enum weir_err weir_kafka_input_join(struct weir_kafka_input *in, struct weir_diag **dg)
{
	if (!in->is_member) {
		own_all(in);
		return WEIR_OK;
	}
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)in->topic_count);
	for (uint32_t t = 0; t < in->topic_count; t++)
		rd_kafka_topic_partition_list_add(list, in->topics[t].name, RD_KAFKA_PARTITION_UA);
	rd_kafka_resp_err_t code = rd_kafka_subscribe(in->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	in->state = WEIR_GROUP_JOINING;
	in->subscribed = true;
	return code == 0 ? WEIR_OK : weir_kafka_fail(dg, code, NULL, "joining group %s", in->group);
}

int64_t weir_kafka_group_start_of(const struct weir_kafka_input *in, const struct weir_kafka_part *pt)
{
	if (pt->seek >= 0)
		return pt->seek;
	return in->streams[pt->scan].from_group && pt->committed >= 0 ? pt->committed : pt->first;
}

/* Whoever has run before expects to go on: that a group has no offsets (yet, or any more) is said, once. */
static void say_first(struct weir_kafka_input *in)
{
	for (uint32_t s = 0; s < in->stream_count; s++) {
		struct weir_kafka_stream *st = &in->streams[s];
		uint32_t count = 0, owned = 0;
		for (uint32_t p = st->part_base; p < st->part_base + st->part_count; p++) {
			const struct weir_kafka_part *pt = &in->parts[p];
			bool asked = pt->owned && !pt->later && pt->seek < 0;
			owned += asked;
			count += asked && pt->committed < 0;
		}
		if (st->told_first || !st->from_group || count == 0)
			continue;
		st->told_first = true;
		weir_kafka_client_say(in->kc, 6,
				      "table %s: group %s has no offsets of %u of %u partitions: they are read "
				      "from the earliest",
				      st->table, in->group, count, owned);
	}
}

/* The group's offsets for partitions that begin there, if not asked for before. */
static enum weir_err ask_committed(struct weir_kafka_input *in, struct weir_diag **dg)
{
	bool need = false;
	for (uint32_t p = 0; p < in->part_count && !in->committed_known; p++)
		need |= in->parts[p].owned && !in->parts[p].later && in->parts[p].seek < 0 &&
			in->streams[in->parts[p].scan].from_group;
	enum weir_err err = need ? weir_kafka_group_ask(in, false, dg) : WEIR_OK;
	if (err == WEIR_OK)
		say_first(in);
	return err;
}

/* An offset somebody wrote down is only looked at where it is used: later runs go on elsewhere. */
static enum weir_err check_given(struct weir_kafka_input *in, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (uint32_t p = 0; err == WEIR_OK && p < in->part_count; p++) {
		const struct weir_kafka_part *pt = &in->parts[p];
		if (!pt->owned || pt->later || !pt->first_given || weir_kafka_group_start_of(in, pt) != pt->first)
			continue;
		if (!in->fresh)
			err = weir_kafka_start_refresh(in, false, dg);
		if (err == WEIR_OK)
			err = weir_kafka_start_check(in, pt, pt->first, true, dg);
	}
	return err;
}

enum weir_err weir_kafka_input_begin(struct weir_kafka_input *in, struct weir_diag **dg)
{
	WEIR_ASSERT(in->state == WEIR_GROUP_ASSIGNED);
	enum weir_err err = ask_committed(in, dg);
	if (err == WEIR_OK)
		err = check_given(in, dg);
	if (err != WEIR_OK)
		return err;
	if (in->cooperative)
		return weir_kafka_coop_begin(in, dg);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)in->part_count);
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		if (!pt->owned || pt->later)
			continue;
		pt->first = pt->next = weir_kafka_group_start_of(in, pt);
		pt->done = pt->next >= pt->bound;
		pt->told_hold = pt->at_end = false;
		pt->assigned = !pt->done && !in->fence;
		if (pt->assigned)
			list_add(in, list, pt)->offset = pt->next;
	}
	err = assign(in, list, dg);
	rd_kafka_topic_partition_list_destroy(list);
	if (err != WEIR_OK)
		return err;
	in->state = WEIR_GROUP_RUNNING;
	in->dry = false;
	in->waiting = in->any_ahead = false;
	for (uint32_t p = 0; p < in->part_count; p++)
		in->parts[p].ahead = false;
	if (in->paused)
		weir_kafka_group_hold(in);
	return WEIR_OK;
}

enum weir_err weir_kafka_input_take(struct weir_kafka_input *in, const bool *const *owned, struct weir_diag **dg)
{
	disown(in);
	for (uint32_t s = 0; s < in->stream_count; s++)
		for (uint32_t p = 0; p < in->streams[s].part_count; p++)
			in->parts[in->streams[s].part_base + p].owned = owned[s][p];
	in->state = WEIR_GROUP_ASSIGNED;
	return ask_committed(in, dg);
}

enum weir_err weir_kafka_input_release(struct weir_kafka_input *in, struct weir_diag **dg)
{
	if (in->cooperative)
		return weir_kafka_coop_release(in, dg);
	disown(in);
	enum weir_err err = assign(in, NULL, dg);
	in->unanswered = false;
	in->state = WEIR_GROUP_JOINING;
	if (!in->is_member)
		own_all(in);
	return err;
}

enum weir_err weir_kafka_input_rejoin(struct weir_kafka_input *in, struct weir_diag **dg)
{
	bool unanswered = in->unanswered;
	enum weir_err err = in->cooperative ? weir_kafka_coop_leave(in, dg) : weir_kafka_input_release(in, dg);
	if (err != WEIR_OK || !in->is_member)
		return err;
	/* A revocation that was heard is answered by now; else leaving brings one. */
	if (!in->cooperative)
		in->leaving = !unanswered;
	rd_kafka_resp_err_t code = rd_kafka_unsubscribe(in->rk);
	if (code != 0)
		return weir_kafka_fail(dg, code, NULL, "leaving group %s", in->group);
	return weir_kafka_input_join(in, dg);
}

/* ---- committed offsets ---- */

/* Behind the epoch in an offset's metadata: bounded input was read to its end. */
static const char end_word[] = " end";

static bool says_end(const void *metadata, size_t bytes)
{
	size_t word = sizeof end_word - 1;
	return bytes > word && memcmp((const char *)metadata + bytes - word, end_word, word) == 0;
}

/* The epoch in an offset's metadata: a decimal number and at most that word. */
static uint64_t parse_epoch(const void *metadata, size_t bytes)
{
	const char *text = metadata;
	uint64_t n = 0;
	if (says_end(metadata, bytes))
		bytes -= sizeof end_word - 1;
	for (size_t i = 0; i < bytes; i++)
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(n, UINT64_C(10), &n) ||
		    __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n))
			return 0;
	return n;
}

/* One try: a code that is retriable for "not now". */
static enum weir_err try_committed(struct weir_kafka_input *in, rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list,
				   bool *again, struct weir_diag **dg)
{
	rd_kafka_resp_err_t code = rd_kafka_committed(rk, list, COMMITTED_TRY_MS);
	for (int i = 0; code == 0 && i < list->cnt; i++)
		code = list->elems[i].err;
	*again = code != 0 && weir_kafka_err_is_retriable(code);
	return code == 0 || *again ? WEIR_OK : weir_kafka_fail(dg, code, NULL, "offsets of group %s", in->group);
}

static rd_kafka_topic_partition_list_t *list_of(const struct weir_kafka_input *in, bool all)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)in->part_count);
	for (uint32_t p = 0; p < in->part_count; p++)
		if (all || (in->parts[p].owned && !in->parts[p].later))
			(void)list_add(in, list, &in->parts[p]);
	return list;
}

static void note_committed(struct weir_kafka_input *in, const rd_kafka_topic_partition_list_t *list, bool all)
{
	int i = 0; /* the list is in the order of parts */
	for (uint32_t p = 0; p < in->part_count; p++) {
		if (!all && (!in->parts[p].owned || in->parts[p].later))
			continue;
		const rd_kafka_topic_partition_t *tp = &list->elems[i++];
		in->parts[p].committed = tp->offset >= 0 ? tp->offset : -1;
		in->parts[p].epoch = tp->offset >= 0 ? parse_epoch(tp->metadata, tp->metadata_size) : 0;
		in->parts[p].ended = tp->offset >= 0 && says_end(tp->metadata, tp->metadata_size);
	}
	in->committed_known = true;
}

static void say_waiting(struct weir_kafka_input *in, int64_t *said_ms)
{
	if (weir_kafka_now_ms() - *said_ms < DOWN_SAY_MS)
		return;
	*said_ms = weir_kafka_now_ms();
	weir_kafka_client_say(in->kc, 4,
			      "waiting for the offsets of group %s: a transaction is open, or the group's coordinator "
			      "does not answer",
			      in->group);
}

/* Between two tries: the group goes on meanwhile, and may take away what we ask about. */
static enum weir_err between_tries(struct weir_kafka_input *in, int64_t *said_ms, struct weir_diag **dg)
{
	enum weir_kafka_group_state before = in->state, now;
	if (stopped(in))
		return weir_diag_set(dg, WEIR_E_STOPPED, "stopped while waiting for the offsets of group %s",
				     in->group);
	if (in->queue != NULL) {
		enum weir_err err = weir_kafka_input_serve(in, 50, &now, dg);
		if (err != WEIR_OK)
			return err;
		if (now != before) {
			err = weir_diag_set(dg, WEIR_E_UNAVAILABLE, "group %s rebalances", in->group);
			if (dg != NULL && *dg != NULL)
				weir_diag_mark_retriable(*dg);
			return err;
		}
	} else {
		weir_kafka_client_poll(in->kc, 50);
	}
	say_waiting(in, said_ms);
	return WEIR_OK;
}

enum weir_err weir_kafka_group_ask(struct weir_kafka_input *in, bool all, struct weir_diag **dg)
{
	rd_kafka_t *rk = in->asker != NULL ? weir_kafka_client_handle(in->asker) : in->rk;
	int64_t said_ms = weir_kafka_now_ms();
	bool again = true;
	enum weir_err err = WEIR_OK;
	while (err == WEIR_OK && again) {
		rd_kafka_topic_partition_list_t *list = list_of(in, all);
		again = false;
		if (list->cnt != 0)
			err = try_committed(in, rk, list, &again, dg);
		if (err == WEIR_OK && !again)
			note_committed(in, list, all);
		rd_kafka_topic_partition_list_destroy(list);
		if (err == WEIR_OK && again)
			err = between_tries(in, &said_ms, dg);
	}
	return err;
}

/* ---- a part of what is owned ---- */

void weir_kafka_input_only(struct weir_kafka_input *in, const bool *const *now)
{
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		bool later = pt->owned && !now[pt->scan][p - in->streams[pt->scan].part_base];
		if (in->cooperative)
			weir_kafka_coop_set_later(in, pt, later);
		pt->later = later;
	}
	in->committed_known = false;
}

enum weir_err weir_kafka_input_await_stable(struct weir_kafka_input *in, const _Atomic bool *stop,
					    struct weir_diag **dg)
{
	rd_kafka_t *rk = in->asker != NULL ? weir_kafka_client_handle(in->asker) : in->rk;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)in->part_count);
	for (uint32_t p = 0; p < in->part_count; p++)
		if (in->parts[p].owned && in->parts[p].later)
			(void)list_add(in, list, &in->parts[p]);
	int64_t said_ms = weir_kafka_now_ms();
	bool again = list->cnt != 0;
	enum weir_err err = WEIR_OK;
	while (err == WEIR_OK && again) {
		err = try_committed(in, rk, list, &again, dg);
		if (err == WEIR_OK && again && atomic_load_explicit(stop, memory_order_relaxed))
			err = weir_diag_set(dg, WEIR_E_STOPPED, "stopped while waiting for the offsets of group %s",
					    in->group);
		if (err == WEIR_OK && again) {
			say_waiting(in, &said_ms);
			usleep(50000);
		}
	}
	rd_kafka_topic_partition_list_destroy(list);
	return err;
}

enum weir_err weir_kafka_input_again(struct weir_kafka_input *in, struct weir_diag **dg)
{
	WEIR_ASSERT(in->state == WEIR_GROUP_RUNNING);
	if (in->cooperative) {
		weir_kafka_coop_again(in);
		return WEIR_OK;
	}
	rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(1);
	resume_held(in);
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		weir_kafka_unit_drop(in, pt);
		pt->done = pt->assigned = pt->told_hold = pt->at_end = false;
		pt->seek = -1;
	}
	in->held = in->fresh = in->committed_known = false;
	enum weir_err err = assign(in, none, dg);
	rd_kafka_topic_partition_list_destroy(none);
	in->state = WEIR_GROUP_ASSIGNED;
	return err;
}

/* ---- the end of bounded input ---- */

/* Some partition of another member's is short of its bound, as far as the group's offsets say. */
static bool others_lag(const struct weir_kafka_input *in)
{
	for (uint32_t p = 0; p < in->part_count; p++) {
		const struct weir_kafka_part *pt = &in->parts[p];
		int64_t at = pt->committed >= 0 ? pt->committed : pt->first;
		if (!pt->owned && (in->fence ? !pt->ended : at < weir_min_i64(pt->bound, pt->end)))
			return true;
	}
	return false;
}

void weir_kafka_input_say_end(struct weir_kafka_input *in)
{
	struct weir_diag *dg = NULL;
	enum weir_err err = weir_kafka_group_ask(in, false, &dg);
	rd_kafka_topic_partition_list_t *list = list_of(in, false);
	int i = 0; /* the list is in the order of parts */
	for (uint32_t p = 0; p < in->part_count; p++) {
		char text[40];
		if (!in->parts[p].owned || in->parts[p].later)
			continue;
		rd_kafka_topic_partition_t *tp = &list->elems[i++];
		tp->metadata_size = (size_t)snprintf(text, sizeof text, "%" PRIu64 "%s", in->parts[p].epoch, end_word);
		tp->metadata = weir_xstrdup(text);
		tp->offset = in->parts[p].committed >= 0 ? in->parts[p].committed : 0;
	}
	/* Nobody depends on it: without it others wait for a session, in vain. */
	if (err == WEIR_OK && list->cnt != 0)
		(void)rd_kafka_commit(in->rk, list, 0);
	rd_kafka_topic_partition_list_destroy(list);
	weir_diag_destroy(dg);
}

uint32_t weir_kafka_input_others(struct weir_kafka_input *in)
{
	char instance[256] = "";
	size_t bytes = sizeof instance;
	const struct rd_kafka_group_list *list = NULL;
	uint32_t others = 0;
	if (!in->is_member)
		return 0;
	(void)rd_kafka_conf_get(rd_kafka_conf(in->rk), "group.instance.id", instance, &bytes);
	/* Part of an answer (some broker is away) is one: the group's own broker is in it, or nobody can join. */
	(void)rd_kafka_list_groups(in->rk, in->group, &list, OTHERS_MS);
	for (int g = 0; list != NULL && g < list->group_cnt; g++)
		for (int m = 0; m < list->groups[g].member_cnt; m++) {
			/* A broker calls a static member by its instance, a stroke and a random number. */
			const char *id = list->groups[g].members[m].member_id;
			size_t n = strlen(instance);
			others += n == 0 || strncmp(id, instance, n) != 0 || id[n] != '-';
		}
	if (list != NULL)
		rd_kafka_group_list_destroy(list);
	return others;
}

int64_t weir_kafka_input_session_ms(const struct weir_kafka_input *in)
{
	char text[16] = "";
	size_t bytes = sizeof text;
	(void)rd_kafka_conf_get(rd_kafka_conf(in->rk), "session.timeout.ms", text, &bytes);
	return strtoll(text, NULL, 10) + OTHERS_MS;
}

enum weir_err weir_kafka_input_await_others(struct weir_kafka_input *in, bool *again, struct weir_diag **dg)
{
	int64_t end = weir_kafka_now_ms() + weir_kafka_input_session_ms(in);
	bool mine = true;
	for (uint32_t p = 0; p < in->part_count; p++)
		mine = mine && in->parts[p].owned;
	*again = false;
	while (!mine && !stopped(in) && weir_kafka_now_ms() < end) {
		struct weir_diag *own = NULL;
		enum weir_err err = weir_kafka_group_ask(in, true, &own);
		enum weir_kafka_group_state state = in->state;
		if (err == WEIR_OK && !others_lag(in))
			return WEIR_OK;
		for (int i = 0;
		     i < 10 && err == WEIR_OK && (state == WEIR_GROUP_RUNNING || state == WEIR_GROUP_ASSIGNED); i++)
			err = weir_kafka_input_serve(in, 100, &state, &own);
		if (in->state == WEIR_GROUP_ASSIGNED && in->cooperative && weir_kafka_coop_any_coming(in))
			in->state = WEIR_GROUP_REVOKED;
		*again = in->state == WEIR_GROUP_REVOKED || in->state == WEIR_GROUP_LOST;
		if (*again) {
			weir_diag_destroy(own);
			return weir_kafka_input_release(in, dg);
		}
		weir_diag_destroy(own);
		if (err != WEIR_OK) /* what is ours is done */
			return WEIR_OK;
	}
	return WEIR_OK;
}

/* ---- now and then ---- */

/* Brokers that are gone come back some day: said every 10 s. */
static void check_down(struct weir_kafka_input *in, int64_t now)
{
	const char *why = weir_kafka_client_down(in->kc);
	if (why == NULL) {
		in->down_ms = 0;
		return;
	}
	if (in->down_ms == 0)
		in->down_ms = now;
	if (now - in->down_ms < DOWN_SAY_MS)
		return;
	in->down_ms = now;
	const struct rd_kafka_metadata *md;
	if (rd_kafka_metadata(in->rk, 0, in->topics[0].rkt, &md, PROBE_MS) == 0) {
		rd_kafka_metadata_destroy(md);
		weir_kafka_client_is_up(in->kc);
		return;
	}
	const char *refusal = weir_kafka_client_refusal(in->kc);
	weir_kafka_client_say(in->kc, 4,
			      refusal != NULL ? "the brokers at %s refuse us, waiting: %s"
					      : "no broker at %s answers, waiting: %s",
			      weir_kafka_client_brokers(in->kc), refusal != NULL ? refusal : why);
}

/* A topic was said not to be there a while ago: is that so? */
static enum weir_err check_topics(struct weir_kafka_input *in, struct weir_diag **dg)
{
	in->doubt_ms = 0;
	for (uint32_t t = 0; t < in->topic_count; t++) {
		struct weir_diag *why = NULL;
		enum weir_err err =
			weir_kafka_client_confirm(in->kc, in->topics[t].name, in->topics[t].part_count, &why);
		if (err == WEIR_E_CONF && dg != NULL && *dg == NULL) {
			*dg = why;
			why = NULL;
		}
		weir_diag_destroy(why);
		if (err == WEIR_E_CONF)
			return err;
	}
	return WEIR_OK;
}

/* Committed records may end in front of somebody's open transaction: what has been at its end for a while is compared
 * with the log's own end, and who holds it back is named when it was shorter twice. */
static void check_held(struct weir_kafka_input *in, int64_t now)
{
	uint32_t n = 0;
	if (in->read_uncommitted || in->state != WEIR_GROUP_RUNNING || in->paused || in->down_ms != 0 ||
	    now - in->watched_ms < WATCH_MS)
		return;
	const struct weir_kafka_spot *last = weir_kafka_watch_result(in->watch, &n);
	bool said = false;
	for (uint32_t i = 0; last != NULL && i < n; i++) {
		in->parts[last[i].tag].short_eof = last[i].is_shorter ? last[i].eof : -1;
		said |= last[i].is_shorter && last[i].suspect;
		if (last[i].is_shorter && last[i].suspect && last[i].holder.id[0] == '\0')
			in->parts[last[i].tag].unheld_eof = last[i].eof;
	}
	if (said && now - in->watched_ms < HELD_SAY_MS)
		return;
	struct weir_kafka_spot *spot = weir_kafka_watch_room(in->watch, in->part_count);
	if (spot == NULL)
		return;
	in->watched_ms = now;
	n = 0;
	for (uint32_t p = 0; p < in->part_count; p++) {
		const struct weir_kafka_part *pt = &in->parts[p];
		if (!pt->owned || pt->done || !pt->at_end || pt->told_hold || now - pt->end_ms < WATCH_MS)
			continue;
		spot[n++] = (struct weir_kafka_spot){.topic = in->topics[pt->topic].name,
						     .partition = pt->number,
						     .eof = pt->next,
						     .tag = p,
						     .suspect = pt->short_eof == pt->next};
	}
	if (n > 0)
		weir_kafka_watch_begin(in->watch, n);
}

/* What is not at its end, although all that came has been taken, has something in its way: a record that librdkafka's
 * limits do not let through, a leader that is not found. It goes on by itself or never: that is said, each time it
 * lasts. */
static void check_stalled(struct weir_kafka_input *in, int64_t now)
{
	bool waits = in->state == WEIR_GROUP_RUNNING && !in->paused && in->down_ms == 0 &&
		     rd_kafka_queue_length(in->queue) == 0;
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		if (!waits || !pt->owned || pt->done || (pt->at_end && pt->unheld_eof != pt->next) || pt->told_hold ||
		    pt->next != pt->seen_next) {
			pt->seen_next = pt->next;
			pt->seen_ms = now;
			continue;
		}
		if (now - pt->seen_ms < STALL_MS)
			continue;
		pt->seen_ms = now;
		const char *why = weir_kafka_client_last(in->kc);
		weir_kafka_client_say(
			in->kc, 4,
			"topic %s, partition %u: nothing has come from offset %lld on for %d s, and it does not "
			"end there%s%s",
			in->topics[pt->topic].name, pt->number, (long long)pt->next, STALL_MS / 1000,
			why[0] != 0 ? ". librdkafka says: " : "", why);
	}
}

/* Partitions and topics that were not there when reading began. Asked of brokers that answer only. */
static enum weir_err check_growth(struct weir_kafka_input *in, int64_t now, struct weir_diag **dg)
{
	if (weir_kafka_client_down(in->kc) != NULL || now - in->counted_ms < COUNT_MS)
		return WEIR_OK;
	in->counted_ms = now;
	weir_kafka_start_look_again(in);
	enum weir_err err = weir_kafka_growth_check(in->growth, PROBE_MS, dg);
	/* A group whose topic is gone gives it to nobody, without an error. */
	if (err == WEIR_OK && weir_kafka_growth_missing(in->growth))
		err = check_topics(in, dg);
	return err;
}

enum weir_err weir_kafka_group_check(struct weir_kafka_input *in, struct weir_diag **dg)
{
	int64_t now = weir_kafka_now_ms();
	if (now - in->checked_ms < CHECK_MS)
		return WEIR_OK;
	in->checked_ms = now;
	weir_kafka_client_poll(in->kc, 0);
	enum weir_err err = weir_kafka_client_fatal(in->kc, dg);
	if (err == WEIR_OK && in->broken != NULL) {
		if (dg != NULL && *dg == NULL)
			*dg = weir_diag_copy(in->broken);
		return weir_diag_code(in->broken);
	}
	if (in->state == WEIR_GROUP_REVOKED && rd_kafka_assignment_lost(in->rk))
		in->state = WEIR_GROUP_LOST;
	check_down(in, now);
	check_held(in, now);
	check_stalled(in, now);
	if (err == WEIR_OK && in->doubt_ms != 0 && now - in->doubt_ms >= DOUBT_MS)
		err = check_topics(in, dg);
	return err == WEIR_OK ? check_growth(in, now, dg) : err;
}
