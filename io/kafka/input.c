/* input.c: the group member that reads all Kafka sources: open and close, the streams that the engine reads, how far
 * polling runs ahead of it (input.h, member.h). @thread init and io */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io/kafka/member.h"
#include "io/kafka/property.h"

enum { FULL_MS = 1000 /* of back-pressure, before partitions are held */ };

static const struct weir_stream_ops kafka_ops;

/* ---- open, close ---- */

static bool conf_has(const struct weir_conf *cf, const char *wanted, const char **value)
{
	const char *name;
	for (uint32_t i = 0; weir_conf_kafka(cf, i, &name, value); i++) {
		char role;
		if (strcmp(weir_kafka_property_bare(name, &role), wanted) == 0 && role != 'p')
			return true;
	}
	return false;
}

/* Below BATCHES a call for several messages loses some where a cooperative rebalance pauses partitions that stay; from
 * SETTLED on all that is known to be wrong with such rebalances is mended. */
enum { BATCHES = 0x020100ff, SETTLED = 0x020a01ff };

static const char cooperative_sticky[] = "cooperative-sticky";

static enum weir_err check_strategy(const struct weir_conf *cf, const struct weir_kafka_input_spec *spec,
				    struct weir_diag **dg)
{
	const char *value;
	if (!conf_has(cf, "partition.assignment.strategy", &value) || strcmp(value, "range") == 0)
		return WEIR_OK;
	if (strcmp(value, cooperative_sticky) != 0)
		return weir_diag_set(
			dg, WEIR_E_CONF,
			"partition.assignment.strategy = %s: weir's groups use range, which gives partition "
			"i of every topic to one member, or cooperative-sticky, which moves single "
			"partitions while the others go on",
			value);
	if (spec->member && spec->range_only != NULL)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "partition.assignment.strategy = %s: %s. Say range, or leave it out", value,
				     spec->range_only);
	return WEIR_OK;
}

/* Checked before: what is not range is cooperative. */
static bool wants_cooperative(const struct weir_conf *cf, const struct weir_kafka_input_spec *spec)
{
	const char *value;
	if (!spec->member || spec->range_only != NULL)
		return false;
	if (conf_has(cf, "partition.assignment.strategy", &value))
		return strcmp(value, cooperative_sticky) == 0;
	return rd_kafka_version() >= SETTLED;
}

static enum weir_err check_conf(const struct weir_conf *cf, const struct weir_kafka_input_spec *spec,
				struct weir_diag **dg)
{
	const char *value;
	enum weir_err err = check_strategy(cf, spec, dg);
	if (err != WEIR_OK)
		return err;
	if (conf_has(cf, "group.protocol", &value) && strcmp(value, "classic") != 0)
		return weir_diag_set(dg, WEIR_E_CONF, "group.protocol = %s: weir's groups use classic", value);
	for (uint32_t s = 1; s < spec->scan_count; s++)
		if (spec->scans[s].read_uncommitted != spec->scans[0].read_uncommitted)
			return weir_diag_set(dg, WEIR_E_CONF,
					     "table %s and table %s: isolation.level must be the same for all tables "
					     "of a cluster",
					     spec->scans[0].table, spec->scans[s].table);
	return WEIR_OK;
}

static enum weir_err create_clients(struct weir_kafka_input *in, const struct weir_conf *cf,
				    const struct weir_kafka_input_spec *spec, const struct weir_kafka_log *lg,
				    struct weir_diag **dg)
{
	const char *value;
	/* A member with a name of its own may be away for a while before its partitions go to others. */
	const struct weir_kafka_setting extra[] = {
		{"session.timeout.ms", conf_has(cf, "group.instance.id", &value) ? "30000" : "10000"}, {NULL, NULL}};
	const struct weir_kafka_setting strategy = {"partition.assignment.strategy",
						    in->cooperative ? cooperative_sticky : "range"};
	const struct weir_kafka_setting forced[] = {{"group.id", spec->group}, strategy, {NULL, NULL}};
	const struct weir_kafka_setting uncommitted[] = {
		{"group.id", spec->group}, {"isolation.level", "read_uncommitted"}, strategy, {NULL, NULL}};
	const struct weir_kafka_setting committed[] = {
		{"group.id", spec->group}, {"isolation.level", "read_committed"}, {NULL, NULL}};
	enum weir_err err =
		weir_kafka_client_create_member(&in->kc, cf, extra, in->read_uncommitted ? uncommitted : forced,
						weir_kafka_group_on_rebalance, in, lg, dg);
	/* With read_uncommitted the library does not wait for offsets that are pending, and while a member joins its
	 * questions stand behind that, although it goes on reading: another handle asks. */
	if (err == WEIR_OK && (in->read_uncommitted || in->cooperative))
		err = weir_kafka_client_create_member(&in->asker, cf, NULL, committed, NULL, NULL, lg, dg);
	if (err == WEIR_OK)
		in->rk = weir_kafka_client_handle(in->kc);
	return err;
}

static void set_streams(struct weir_kafka_input *in, const struct weir_kafka_input_spec *spec)
{
	in->streams = weir_xcalloc(spec->scan_count + 1, sizeof *in->streams);
	in->stream_count = spec->scan_count;
	for (uint32_t s = 0; s < spec->scan_count; s++) {
		const struct weir_kafka_scan *sc = &spec->scans[s];
		in->streams[s] = (struct weir_kafka_stream){
			.sl = {&kafka_ops},
			.in = in,
			.table = weir_xstrdup(sc->table),
			.pattern = sc->topic_pattern != NULL ? weir_xstrdup(sc->topic_pattern) : NULL,
			.bounded = sc->bounded,
			.from_group = sc->from_group,
			.bound_from_group = sc->bounded && sc->bound_from_group,
			.told_first = sc->inner,
			.headers = !sc->headers_unused};
	}
}

enum weir_err weir_kafka_input_open(struct weir_kafka_input **out, const struct weir_conf *cf,
				    const struct weir_kafka_input_spec *spec, const struct weir_kafka_log *lg,
				    struct weir_diag **dg)
{
	enum weir_err err = check_conf(cf, spec, dg);
	if (err != WEIR_OK)
		return err;
	struct weir_kafka_input *in = weir_xcalloc(1, sizeof *in);
	in->group = weir_xstrdup(spec->group);
	in->is_member = spec->member;
	in->fence = spec->fence;
	in->cooperative = wants_cooperative(cf, spec);
	in->one_by_one = in->cooperative && rd_kafka_version() < BATCHES;
	in->read_uncommitted = spec->scan_count != 0 && spec->scans[0].read_uncommitted;
	in->broker_wait_ms = spec->broker_wait_ms;
	in->stop = spec->stop;
	in->state = WEIR_GROUP_JOINING;
	in->watch = weir_kafka_watch_create(cf, lg);
	in->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	set_streams(in, spec);
	if (in->event_fd < 0)
		err = weir_diag_set(dg, WEIR_E_IO, "eventfd: %s", strerror(errno));
	if (err == WEIR_OK)
		err = create_clients(in, cf, spec, lg, dg);
	if (err == WEIR_OK)
		err = weir_kafka_start(in, spec, dg);
	if (err != WEIR_OK) {
		weir_kafka_input_close(in);
		return err;
	}
	static const uint64_t one = 1;
	in->queue = rd_kafka_queue_get_consumer(in->rk);
	rd_kafka_queue_io_event_enable(in->queue, in->event_fd, &one, sizeof one);
	weir_kafka_unit_init(in);
	*out = in;
	return WEIR_OK;
}

void weir_kafka_input_close(struct weir_kafka_input *in)
{
	if (in == NULL)
		return;
	weir_kafka_unit_fini(in);
	weir_kafka_watch_destroy(in->watch);
	in->closing = true;
	if (in->queue != NULL) {
		if (in->cooperative)
			weir_kafka_coop_close(in);
		else if (in->state != WEIR_GROUP_JOINING || in->unanswered)
			(void)rd_kafka_assign(in->rk, NULL);
		rd_kafka_queue_io_event_enable(in->queue, -1, NULL, 0);
		rd_kafka_queue_destroy(in->queue);
		(void)rd_kafka_consumer_close(in->rk);
	}
	weir_kafka_growth_destroy(in->growth);
	for (uint32_t t = 0; t < in->topic_count; t++) {
		if (in->topics[t].rkt != NULL)
			rd_kafka_topic_destroy(in->topics[t].rkt);
		free(in->topics[t].name);
	}
	weir_kafka_client_destroy(in->asker);
	weir_kafka_client_destroy(in->kc);
	for (uint32_t s = 0; s < in->stream_count; s++) {
		free(in->streams[s].table);
		free(in->streams[s].pattern);
	}
	for (uint32_t t = 0; t < in->unread_count; t++)
		free(in->unread[t]);
	free(in->unread);
	if (in->event_fd >= 0)
		close(in->event_fd);
	weir_diag_destroy(in->broken);
	weir_buf_fini(&in->headers);
	free(in->streams);
	free(in->topics);
	free(in->parts);
	free(in->group);
	free(in->member_id);
	free(in);
}

/* ---- what is asked of it ---- */

struct weir_stream_log *weir_kafka_input_stream(struct weir_kafka_input *in, uint32_t scan)
{
	return &in->streams[scan].sl;
}

bool weir_kafka_input_live(const struct weir_kafka_input *in, uint32_t scan)
{
	return !in->streams[scan].bounded;
}

enum weir_kafka_group_state weir_kafka_input_state(const struct weir_kafka_input *in)
{
	return in->state;
}

bool weir_kafka_input_owned(const struct weir_kafka_input *in, uint32_t scan, uint32_t p)
{
	return in->parts[in->streams[scan].part_base + p].owned;
}

bool weir_kafka_input_cooperative(const struct weir_kafka_input *in)
{
	return in->cooperative;
}

bool weir_kafka_input_topic(const struct weir_kafka_input *in, uint32_t i, const char **name, uint32_t *partitions,
			    bool *bounded)
{
	if (i >= in->topic_count)
		return false;
	*name = in->topics[i].name;
	*partitions = in->topics[i].part_count;
	*bounded = in->streams[in->parts[in->topics[i].part_base].scan].bounded;
	return true;
}

const char *weir_kafka_input_brokers(const struct weir_kafka_input *in)
{
	return weir_kafka_client_brokers(in->kc);
}

void *weir_kafka_input_handle(const struct weir_kafka_input *in)
{
	return in->rk;
}

void weir_kafka_input_pause(struct weir_kafka_input *in, bool paused)
{
	in->paused = paused;
	weir_kafka_group_hold(in);
}

enum weir_err weir_kafka_input_committed(struct weir_kafka_input *in, int64_t **offset, uint64_t **epoch,
					 struct weir_diag **dg)
{
	enum weir_err err = weir_kafka_group_ask(in, false, dg);
	for (uint32_t p = 0; err == WEIR_OK && p < in->part_count; p++) {
		const struct weir_kafka_part *pt = &in->parts[p];
		uint32_t n = p - in->streams[pt->scan].part_base;
		offset[pt->scan][n] = pt->owned ? pt->committed : -1;
		epoch[pt->scan][n] = pt->owned && pt->committed >= 0 ? pt->epoch : 0;
	}
	return err;
}

/* ---- polling and how far it runs ahead ---- */

/* A first error sticks: every later call says it too. */
static enum weir_err stick(struct weir_kafka_input *in, enum weir_err err, struct weir_diag **dg)
{
	if (err != WEIR_OK && in->broken == NULL && dg != NULL && *dg != NULL)
		in->broken = weir_diag_copy(*dg);
	return err;
}

static enum weir_err broken(const struct weir_kafka_input *in, struct weir_diag **dg)
{
	if (dg != NULL && *dg == NULL)
		*dg = weir_diag_copy(in->broken);
	return weir_diag_code(in->broken);
}

/* A partition is waited for whose records stand in librdkafka's queue behind those of others, or were not even fetched:
 * polling goes on past the others, which are kept; and when they are as many as librdkafka itself would keep, they are
 * not fetched any further (which throws away what was), so that nothing else comes. */
static void run_ahead(struct weir_kafka_input *in)
{
	bool more = false;
	for (uint32_t p = 0; p < in->part_count && in->any_ahead; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		more |= pt->ahead && pt->head == NULL; /* used up: it is the one that is waited for now */
		pt->ahead = pt->ahead && pt->head != NULL;
	}
	if (more)
		weir_kafka_group_hold(in);
	more = false;
	if (in->queued_bytes + (uint64_t)in->queued_records * WEIR_KAFKA_MESSAGE_BYTES < in->ahead_bytes)
		return;
	for (uint32_t p = 0; p < in->part_count; p++) {
		struct weir_kafka_part *pt = &in->parts[p];
		if (pt->head == NULL || pt->ahead)
			continue;
		pt->ahead = more = true;
	}
	in->any_ahead |= more;
	if (more)
		weir_kafka_group_hold(in);
}

/* Those that ran ahead are fetched again, once little of them is left. */
static void fall_back(struct weir_kafka_input *in)
{
	if (!in->any_ahead || in->waiting || in->queued_records > WEIR_KAFKA_QUEUED_RECORDS / 2)
		return;
	for (uint32_t p = 0; p < in->part_count; p++)
		in->parts[p].ahead = false;
	in->any_ahead = false;
	weir_kafka_group_hold(in);
}

/* Records polled and not taken are bounded: beyond that nothing is polled, and librdkafka stops fetching by itself. But
 * rebalances come through the same queue, behind what was fetched before: so after a second of this all partitions are
 * held, which empties it, until there is room and another second has gone by (holding throws away what was fetched). */
static bool may_poll(struct weir_kafka_input *in)
{
	bool full = weir_kafka_unit_full(in);
	if (in->waiting && !in->held) {
		run_ahead(in);
		return true;
	}
	if (in->held) {
		int64_t now = weir_kafka_now_ms();
		if (in->queued_records <= WEIR_KAFKA_QUEUED_RECORDS / 2 && now - in->held_ms >= FULL_MS) {
			in->held = false;
			weir_kafka_group_hold(in);
		}
		return true;
	}
	if (!full)
		return true;
	int64_t now = weir_kafka_now_ms();
	if (now - in->polled_ms < FULL_MS)
		return false;
	in->held = true;
	in->held_ms = now;
	weir_kafka_group_hold(in);
	return true;
}

enum weir_err weir_kafka_input_serve(struct weir_kafka_input *in, int timeout_ms, enum weir_kafka_group_state *state,
				     struct weir_diag **dg)
{
	if (in->broken != NULL)
		return broken(in, dg);
	enum weir_err err = weir_kafka_group_check(in, dg);
	bool any;
	if (err != WEIR_OK) {
		/* said below */
	} else if (in->unanswered) {
		/* What is still fetched belongs to nobody: left alone until the answer. */
		weir_kafka_client_poll(in->kc, timeout_ms);
	} else if (in->state == WEIR_GROUP_RUNNING || in->cooperative) {
		if (may_poll(in))
			err = weir_kafka_unit_poll(in, in->queued_records != 0 ? 0 : timeout_ms, &any, dg);
	} else {
		err = weir_kafka_unit_poll(in, timeout_ms, &any, dg);
	}
	*state = in->state;
	return stick(in, err, dg);
}

/* ---- the streams ---- */

static struct weir_kafka_part *part_at(const struct weir_stream_log *sl, uint32_t p)
{
	const struct weir_kafka_stream *st = (const struct weir_kafka_stream *)sl;
	return &st->in->parts[st->part_base + p];
}

static uint32_t kafka_partitions(const struct weir_stream_log *sl)
{
	return ((const struct weir_kafka_stream *)sl)->part_count;
}

/* Polls for a partition whose queue is empty: after a poll that found nothing only once in each round over the
 * partitions. */
static enum weir_err poll_for(struct weir_kafka_input *in, uint32_t p, struct weir_diag **dg)
{
	bool any = true;
	if (in->dry && p > in->peeked)
		return WEIR_OK;
	fall_back(in);
	if (in->dry) { /* told now, so that what comes from here on is told again */
		uint64_t count;
		(void)!read(in->event_fd, &count, sizeof count);
	}
	if (!may_poll(in))
		return WEIR_OK;
	enum weir_err err = weir_kafka_unit_poll(in, 0, &any, dg);
	in->dry = !any;
	return err;
}

/* Whether an empty queue says nothing about the partition: it has records that were not fetched yet, or nobody can
 * tell. */
static bool is_behind(const struct weir_kafka_input *in, const struct weir_kafka_part *pt)
{
	int64_t low, high;
	if (weir_kafka_client_down(in->kc) != NULL)
		return true;
	if (pt->at_end)
		return false;
	/* What the last fetch said; none yet: below 0. */
	return rd_kafka_get_watermark_offsets(in->rk, in->topics[pt->topic].name, (int32_t)pt->number, &low, &high) !=
		       0 ||
	       high < 0 || high > pt->next;
}

static enum weir_poll kafka_peek(struct weir_stream_log *sl, uint32_t p, int64_t *first_ts, struct weir_diag **dg)
{
	struct weir_kafka_part *pt = part_at(sl, p);
	struct weir_kafka_input *in = ((struct weir_kafka_stream *)sl)->in;
	uint32_t number = (uint32_t)(pt - in->parts);
	if (WEIR_UNLIKELY(in->broken != NULL)) {
		(void)broken(in, dg);
		return WEIR_POLL_ERROR;
	}
	if (!pt->owned)
		return WEIR_POLL_BOUND;
	if (in->state != WEIR_GROUP_RUNNING || in->paused)
		return WEIR_POLL_LATER;
	if (pt->head == NULL && !pt->done) {
		enum weir_err err = stick(in, poll_for(in, number, dg), dg);
		in->peeked = number;
		if (err != WEIR_OK)
			return WEIR_POLL_ERROR;
		if (in->state != WEIR_GROUP_RUNNING)
			return pt->owned ? WEIR_POLL_LATER : WEIR_POLL_BOUND;
	}
	if (pt->head == NULL)
		return pt->done ? WEIR_POLL_BOUND : is_behind(in, pt) ? WEIR_POLL_LATER : WEIR_POLL_EMPTY;
	*first_ts = pt->head->u.count != 0 ? pt->head->record[0].timestamp : pt->last_ts;
	return WEIR_POLL_UNIT;
}

static enum weir_err kafka_take(struct weir_stream_log *sl, uint32_t p, struct weir_unit **out, struct weir_diag **dg)
{
	struct weir_kafka_part *pt = part_at(sl, p);
	(void)dg;
	WEIR_ASSERT(pt->head != NULL);
	*out = &weir_kafka_unit_take(((struct weir_kafka_stream *)sl)->in, pt)->u;
	return WEIR_OK;
}

static void kafka_release(struct weir_stream_log *sl, struct weir_unit *u)
{
	weir_kafka_unit_release(((struct weir_kafka_stream *)sl)->in, (struct weir_kafka_unit *)u);
}

static enum weir_err kafka_seek(struct weir_stream_log *sl, uint32_t p, int64_t offset, struct weir_diag **dg)
{
	struct weir_kafka_part *pt = part_at(sl, p);
	struct weir_kafka_input *in = ((struct weir_kafka_stream *)sl)->in;
	enum weir_err err = in->fresh ? WEIR_OK : weir_kafka_start_refresh(in, false, dg);
	if (err != WEIR_OK)
		return err;
	int64_t to = offset == WEIR_START_FIRST ? pt->low : offset;
	err = weir_kafka_start_check(in, pt, to, false, dg);
	if (err == WEIR_OK)
		pt->seek = to;
	return err;
}

static void kafka_range(struct weir_stream_log *sl, uint32_t p, int64_t *first, int64_t *end)
{
	const struct weir_kafka_part *pt = part_at(sl, p);
	const struct weir_kafka_stream *st = (struct weir_kafka_stream *)sl;
	*first = pt->seek >= 0 ? pt->seek : st->from_group && pt->committed >= 0 ? pt->committed : pt->first;
	*end = weir_min_i64(pt->end, pt->bound);
}

static void kafka_wait(struct weir_stream_log *sl, bool on)
{
	((struct weir_kafka_stream *)sl)->in->waiting = on;
}

static int64_t kafka_last_ts(const struct weir_stream_log *sl, uint32_t p)
{
	const struct weir_kafka_part *pt = part_at(sl, p);
	const struct weir_kafka_unit *ku = pt->head;
	return ku->u.count != 0 ? ku->record[ku->u.count - 1].timestamp : pt->last_ts;
}

static int kafka_event_fd(const struct weir_stream_log *sl)
{
	return ((const struct weir_kafka_stream *)sl)->in->event_fd;
}

static const char *kafka_topic(const struct weir_stream_log *sl, uint32_t p, uint32_t *partition)
{
	const struct weir_kafka_stream *st = (const struct weir_kafka_stream *)sl;
	const struct weir_kafka_part *pt = &st->in->parts[st->part_base + p];
	*partition = pt->number;
	return st->in->topics[pt->topic].name;
}

static void kafka_close(struct weir_stream_log *sl)
{
	(void)sl; /* the input's */
}

static const struct weir_stream_ops kafka_ops = {
	.partitions = kafka_partitions,
	.peek = kafka_peek,
	.take = kafka_take,
	.release = kafka_release,
	.seek = kafka_seek,
	.range = kafka_range,
	.event_fd = kafka_event_fd,
	.wait = kafka_wait,
	.last_ts = kafka_last_ts,
	.topic = kafka_topic,
	.close = kafka_close,
};
