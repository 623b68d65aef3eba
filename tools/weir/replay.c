/* replay.c: `weir replay DIR TOPIC -b BROKERS`: a recorded topic to a topic of Kafka's, in the order of its timestamps,
 * at its own pace, a multiple of it, a rate, or as fast as it goes. Main thread. */
#include "hotpath/core/mem.h"
#include "io/recorded/recorded.h"
#include "tools/weir/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SPEED_MAX = 0, MICRO = 1000000 };

struct replay_plan {
	struct weir_job job;
	const char *dir;
	const char *topic;
	const char *to; /* Kafka's topic */
	const char *partitioner;
	int64_t partition;
	uint64_t speed; /* millionths; SPEED_MAX: no pace */
	uint64_t rate;  /* records a second, 0: no limit */
	uint64_t loops; /* 0: until stopped */
	uint64_t count_max;
	bool shift;
};

/* One partition's next record. */
struct head {
	int64_t ts;
	struct weir_unit *unit;
	uint32_t at;
};

struct replay {
	struct replay_plan *pl;
	struct weir_stream_log *sl;
	struct weir_kafka_writer *w;
	struct weir_progress pg;
	struct head *heads; /* by partition */
	uint32_t *heap;     /* partitions by their heads' ts, then number */
	uint32_t heap_count;
	uint32_t part_count;
	bool by_number; /* the recorded partition's number, not the key */
	int64_t started_us;
	int64_t loop_us; /* when this loop began */
	int64_t loop_ts; /* timestamp of its first record */
	int64_t shift_ms;
	int64_t last_ts; /* largest timestamp sent */
	bool first;      /* the next record is the loop's first */
};

/* ---- merging partitions by time ---- */

static bool before(const struct replay *re, uint32_t a, uint32_t b)
{
	return re->heads[a].ts != re->heads[b].ts ? re->heads[a].ts < re->heads[b].ts : a < b;
}

static void sift_down(struct replay *re, uint32_t i)
{
	for (uint32_t child; (child = 2 * i + 1) < re->heap_count; i = child) {
		if (child + 1 < re->heap_count && before(re, re->heap[child + 1], re->heap[child]))
			child++;
		if (!before(re, re->heap[child], re->heap[i]))
			return;
		uint32_t p = re->heap[i];
		re->heap[i] = re->heap[child];
		re->heap[child] = p;
	}
}

/* Moves partition p's head to its next record; *any false: it has none. */
static enum weir_err advance(struct replay *re, uint32_t p, bool *any, struct weir_diag **dg)
{
	struct head *h = &re->heads[p];
	struct weir_stream_log *sl = re->sl;
	if (h->unit != NULL)
		h->at++;
	while (h->unit == NULL || h->at == h->unit->count) {
		int64_t ts;
		if (h->unit != NULL)
			sl->ops->release(sl, h->unit);
		*h = (struct head){0};
		enum weir_poll poll = sl->ops->peek(sl, p, &ts, dg);
		if (poll == WEIR_POLL_ERROR)
			return weir_diag_code(*dg) != WEIR_OK ? weir_diag_code(*dg) : WEIR_E_IO;
		*any = poll == WEIR_POLL_UNIT;
		if (!*any)
			return WEIR_OK;
		enum weir_err err = sl->ops->take(sl, p, &h->unit, dg);
		if (err != WEIR_OK)
			return err;
	}
	h->ts = h->unit->records[h->at].timestamp;
	*any = true;
	return WEIR_OK;
}

static enum weir_err open_source(struct replay *re, struct weir_diag **dg)
{
	struct weir_recorded_source_spec spec = {
		.path = re->pl->dir,
		.topics = &re->pl->topic,
		.topic_count = 1,
		.startup = WEIR_STARTUP_EARLIEST,
		.bounded = WEIR_STARTUP_LATEST,
		.open_transaction_abort = true,
	};
	enum weir_err err = weir_recorded_source_open(&re->sl, &spec, dg);
	re->heap_count = 0;
	for (uint32_t p = 0; err == WEIR_OK && p < re->part_count; p++) {
		bool any = false;
		if (re->pl->partition < 0 || re->pl->partition == (int64_t)p)
			err = advance(re, p, &any, dg);
		if (any)
			re->heap[re->heap_count++] = p;
	}
	for (uint32_t i = re->heap_count / 2; err == WEIR_OK && i-- > 0;)
		sift_down(re, i);
	return err;
}

static void close_source(struct replay *re)
{
	for (uint32_t p = 0; p < re->part_count; p++) {
		if (re->heads[p].unit != NULL)
			re->sl->ops->release(re->sl, re->heads[p].unit);
		re->heads[p] = (struct head){0};
	}
	if (re->sl != NULL)
		re->sl->ops->close(re->sl);
	re->sl = NULL;
}

/* ---- pace ---- */

static int64_t wall_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A loop's first record: its pace and, with --shift-to-now, its distance to now are counted from here. */
static void begin_loop(struct replay *re, int64_t ts)
{
	re->first = false;
	re->loop_us = weir_transfer_now_us();
	re->loop_ts = ts;
	if (!re->pl->shift)
		return;
	int64_t now = wall_ms();
	int64_t from = now > re->last_ts ? now : re->last_ts + 1; /* a later loop is never older than an earlier one */
	re->shift_ms = from - ts;
}

/* When the record of this time is due. Microseconds of the monotonic clock. */
static int64_t due_us(const struct replay *re, int64_t ts)
{
	int64_t due = re->loop_us;
	if (re->pl->speed != SPEED_MAX)
		due += (int64_t)((double)(ts - re->loop_ts) * 1000.0 * MICRO / (double)re->pl->speed);
	if (re->pl->rate != 0) {
		int64_t by_rate = re->started_us + (int64_t)((double)re->pg.records * MICRO / (double)re->pl->rate);
		due = by_rate > due ? by_rate : due;
	}
	return due;
}

static enum weir_err wait_until(struct replay *re, int64_t due, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	while (err == WEIR_OK && !weir_transfer_stopped()) {
		int64_t left_ms = (due - weir_transfer_now_us()) / 1000;
		if (left_ms <= 0)
			break;
		err = weir_kafka_writer_poll(re->w, left_ms > 100 ? 100 : (int)left_ms, dg);
	}
	return err;
}

/* ---- sending ---- */

static enum weir_err send_one(struct replay *re, struct weir_diag **dg)
{
	uint32_t p = re->heap[0];
	const struct weir_record *r = &re->heads[p].unit->records[re->heads[p].at];
	if (re->first)
		begin_loop(re, r->timestamp);
	enum weir_err err = WEIR_OK;
	if (re->pl->speed != SPEED_MAX || re->pl->rate != 0)
		err = wait_until(re, due_us(re, r->timestamp), dg);
	if (err != WEIR_OK || weir_transfer_stopped())
		return err;
	struct weir_out out = {.key = {r->key, r->key_bytes},
			       .value = {r->value, r->value_bytes},
			       .headers = r->headers,
			       .headers_bytes = r->headers_bytes,
			       .header_count = r->header_count,
			       .timestamp = r->timestamp + re->shift_ms};
	re->last_ts = out.timestamp > re->last_ts ? out.timestamp : re->last_ts;
	err = weir_kafka_writer_put(re->w, re->by_number ? (int64_t)p : -1, &out, dg);
	if (err != WEIR_OK)
		return err;
	re->pg.records++;
	re->pg.bytes += r->key_bytes + r->value_bytes + r->headers_bytes;
	weir_progress_step(&re->pg);
	bool any;
	err = advance(re, p, &any, dg);
	if (err == WEIR_OK && !any)
		re->heap[0] = re->heap[--re->heap_count];
	if (err == WEIR_OK)
		sift_down(re, 0);
	return err;
}

static enum weir_err send_all(struct replay *re, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	re->started_us = weir_transfer_now_us();
	re->last_ts = INT64_MIN / 2;
	for (uint64_t loop = 0; err == WEIR_OK && (re->pl->loops == 0 || loop < re->pl->loops); loop++) {
		err = open_source(re, dg);
		re->first = true;
		bool empty = re->heap_count == 0;
		while (err == WEIR_OK && re->heap_count != 0 && re->pg.records < re->pl->count_max &&
		       !weir_transfer_stopped())
			err = send_one(re, dg);
		if (loop == 0 && re->sl != NULL)
			weir_transfer_warnings(re->sl);
		close_source(re);
		if (empty || re->pg.records >= re->pl->count_max || weir_transfer_stopped())
			break;
	}
	return err == WEIR_OK ? weir_kafka_writer_flush(re->w, dg) : err;
}

/* Same numbers where the topic has as many partitions as the recording; else where a key belongs. */
static enum weir_err choose_partitioner(struct replay *re, struct weir_diag **dg)
{
	uint32_t there = weir_kafka_writer_partitions(re->w);
	const char *how = re->pl->partitioner;
	re->by_number = how != NULL ? strcmp(how, "recorded") == 0 : there == re->part_count;
	if (re->by_number && there < re->part_count)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "topic %s has %u partitions and the recording %u: --partitioner key", re->pl->to,
				     there, re->part_count);
	if (how == NULL && !re->by_number)
		weir_talk("topic %s has %u partitions and the recording %u: records go where their keys belong",
			  re->pl->to, there, re->part_count);
	return WEIR_OK;
}

static uint64_t expected(struct replay *re)
{
	struct weir_diag *dg = NULL;
	uint64_t n = 0;
	if (open_source(re, &dg) == WEIR_OK) {
		for (uint32_t p = 0; p < re->part_count; p++) {
			int64_t first;
			int64_t end;
			re->sl->ops->range(re->sl, p, &first, &end);
			if (re->pl->partition < 0 || re->pl->partition == (int64_t)p)
				n += end > first ? (uint64_t)(end - first) : 0;
		}
	}
	close_source(re);
	weir_diag_destroy(dg); /* sending will meet it again */
	n *= re->pl->loops;
	return n < re->pl->count_max ? n : re->pl->count_max;
}

static enum weir_err replay(struct replay_plan *pl, struct weir_diag **dg)
{
	const struct weir_kafka_log lg = weir_transfer_log(&pl->job);
	struct replay re = {.pl = pl, .part_count = weir_recorded_partitions(pl->dir, pl->topic)};
	if (re.part_count == 0)
		return weir_diag_set(dg, WEIR_E_CONF, "no topic %s in %s", pl->topic, pl->dir);
	if (pl->partition >= (int64_t)re.part_count)
		return weir_diag_set(dg, WEIR_E_CONF, "-p %lld: topic %s has %u partitions", (long long)pl->partition,
				     pl->topic, re.part_count);
	weir_transfer_catch_signals();
	struct weir_kafka_write_spec spec = {.topic = pl->to, .partitions = re.part_count};
	enum weir_err err = weir_kafka_writer_open(&re.w, pl->job.cf, &spec, &lg, dg);
	if (err != WEIR_OK)
		return err;
	if (weir_kafka_writer_created(re.w))
		weir_talk("made topic %s with %u partitions, retention.ms=-1", pl->to, re.part_count);
	re.heads = weir_xcalloc(re.part_count, sizeof *re.heads);
	re.heap = weir_xcalloc(re.part_count, sizeof *re.heap);
	err = choose_partitioner(&re, dg);
	if (err == WEIR_OK) {
		weir_progress_begin(&re.pg, pl->topic, expected(&re));
		err = send_all(&re, dg);
		re.pg.records = err == WEIR_OK ? re.pg.records : weir_kafka_writer_acked(re.w);
		char more[300];
		snprintf(more, sizeof more, " to %s%s", pl->to,
			 err != WEIR_OK            ? "; not all of it"
			 : weir_transfer_stopped() ? "; stopped"
						   : "");
		weir_progress_end(&re.pg, more);
	}
	weir_kafka_writer_close(re.w);
	free(re.heads);
	free(re.heap);
	return err;
}

/* ---- the command line ---- */

enum { OPT_TOPIC = 1, OPT_SPEED, OPT_RATE, OPT_LOOP, OPT_KEEP, OPT_SHIFT, OPT_PARTITION, OPT_COUNT, OPT_PARTITIONER };

static const struct weir_flag replay_options[] = {
	WEIR_BROKER_OPTIONS,
	{OPT_TOPIC, 't', "topic", "TOPIC", "the topic to write (the recorded one's name)"},
	{OPT_SPEED, 0, "speed", "S", "1: its own pace, 2.5: that many times it, max (max)"},
	{OPT_RATE, 0, "rate", "N", "at most N records a second"},
	{OPT_LOOP, 0, "loop", "N", "N times over; 0: until stopped (1)"},
	{OPT_KEEP, 0, "keep-timestamps", NULL, "as recorded (the default)"},
	{OPT_SHIFT, 0, "shift-to-now", NULL, "the first record is of now, distances are kept"},
	{OPT_PARTITION, 'p', "partition", "P", "this recorded partition only"},
	{OPT_COUNT, 'c', "count", "N", "stop after N records"},
	{OPT_PARTITIONER, 0, "partitioner", "P", "recorded: the same numbers; key: Java's, by the key's murmur2"},
	WEIR_CLUSTER_OPTIONS,
};

static int set_option(void *plan, int id, const char *value)
{
	struct replay_plan *pl = plan;
	const struct weir_verb *vb = pl->job.vb;
	uint64_t v;
	switch (id) {
	case WEIR_ARGS_WORD:
		if (pl->dir == NULL)
			pl->dir = value;
		else if (pl->topic == NULL)
			pl->topic = value;
		else
			return weir_usage_error(vb, "%s is one argument too many: DIR TOPIC", value);
		return -1;
	case OPT_TOPIC:
		pl->to = value;
		return -1;
	case OPT_SPEED:
		if (strcmp(value, "max") == 0)
			pl->speed = SPEED_MAX;
		else if (!weir_arg_micro(value, UINT64_C(1000000) * MICRO, &pl->speed) || pl->speed == 0)
			return weir_usage_error(vb, "--speed: %s is not max or a number such as 1 or 2.5", value);
		return -1;
	case OPT_RATE:
		if (!weir_arg_u64(value, 1, 1000000000, &pl->rate))
			return weir_usage_error(vb, "--rate: %s is not a number of records a second", value);
		return -1;
	case OPT_LOOP:
		if (!weir_arg_u64(value, 0, 1000000000, &pl->loops))
			return weir_usage_error(vb, "--loop: %s is not a number of times", value);
		return -1;
	case OPT_KEEP:
	case OPT_SHIFT:
		pl->shift = id == OPT_SHIFT;
		return -1;
	case OPT_PARTITION:
		if (!weir_arg_u64(value, 0, INT32_MAX, &v))
			return weir_usage_error(vb, "-p: %s is not a partition", value);
		pl->partition = (int64_t)v;
		return -1;
	case OPT_COUNT:
		if (!weir_arg_u64(value, 0, UINT64_MAX - 1, &pl->count_max))
			return weir_usage_error(vb, "-c: %s is not a number of records", value);
		return -1;
	case OPT_PARTITIONER:
		if (strcmp(value, "recorded") != 0 && strcmp(value, "key") != 0)
			return weir_usage_error(vb, "--partitioner: %s is not recorded or key", value);
		pl->partitioner = value;
		return -1;
	default:
		return weir_job_option(&pl->job, id, value);
	}
}

static int read_arguments(const struct weir_verb *vb, struct replay_plan *pl, int argc, char **argv)
{
	int code = weir_job_arguments(&pl->job, argc, argv, set_option, pl);
	if (code >= 0)
		return code;
	if (pl->dir == NULL || pl->topic == NULL)
		return weir_usage_error(vb, "which %s? weir replay DIR TOPIC -b BROKERS",
					pl->dir == NULL ? "folder" : "topic");
	pl->to = pl->to != NULL ? pl->to : pl->topic;
	return -1;
}

static int replay_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct replay_plan pl = {.count_max = UINT64_MAX, .loops = 1, .partition = -1};
	struct weir_diag *dg = NULL;
	weir_job_init(&pl.job, vb);
	int code = read_arguments(vb, &pl, argc, argv);
	if (code < 0)
		code = replay(&pl, &dg) == WEIR_OK ? weir_data_end(WEIR_EXIT_OK) : weir_fail(dg);
	weir_job_fini(&pl.job);
	return code;
}

const struct weir_verb weir_verb_replay = {
	.name = "replay",
	.usage = "DIR TOPIC -b BROKERS [OPTIONS]",
	.brief = "write a recorded topic to a topic of Kafka's, at any pace",
	.examples = "  weir replay rec order.placed -b localhost:9092\n"
		    "  weir replay rec order.placed -b localhost:9092 -t orders.test --speed 2.5 --shift-to-now\n"
		    "  weir replay rec order.placed -b localhost:9092 --rate 1000 --loop 0\n",
	.options = replay_options,
	.option_count = WEIR_COUNT_OF(replay_options),
	.notes =
		"Records go out in the order of their timestamps over all partitions; --speed takes its pace from the\n"
		"distances between them. A missing topic is made with the recording's partitions and retention.ms=-1: "
		"a\nbroker deletes by the records' own timestamps. With --loop, timestamps repeat unless they are "
		"shifted.\n",
	.run = replay_run,
};
