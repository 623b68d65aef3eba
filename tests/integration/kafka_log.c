/* kafka_log.c: drives the log on a Kafka cluster (io/kafka/log.h) without the engine, for kafka_log.sh.
 *   kafka_log BROKERS APP GUARANTEE VERB [ARGUMENT]... [-X name=value]...
 *   epochs FIRST COUNT RESULTS    commits COUNT epochs, each with RESULTS results and a pack and a marker for each of
 * the 3 changelog partitions; prints "committed E" kill FIRST COUNT RESULTS      the same, but dies (SIGKILL) in the
 * last one, everything sent, before the commit pause FIRST COUNT RESULTS     the same, but in the last one prints
 * "open" and waits for a line on stdin first drop FIRST COUNT RESULTS      the same, but gives the last one up read
 * reads every partition of the changelog twice; prints "P KEY VALUE" of the first elsewhere FIRST COUNT RESULTS as
 * epochs, but the input lies on no cluster: no offsets Epoch e: results r0.. of value "e<e>" and timestamp
 * 1700000000000 + e; key "k<p>" = "<e>"; key "m<p>" = "marker <e>"; offset of input partition p: e * 10 + p. GUARANTEE:
 * at_least_once, exactly_once, at_most_once; with "-stateless" behind it the application keeps no state. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/kafka/client.h"
#include "io/kafka/log.h"

enum { PARTS = 3 };

static rd_kafka_t *member;
static struct weir_diag *dg;

/* The group's member of this test stands in for io/kafka/input.c. */
void *weir_kafka_input_handle(const struct weir_kafka_input *in)
{
	return (void *)(uintptr_t)in;
}

bool weir_kafka_input_cooperative(const struct weir_kafka_input *in)
{
	(void)in;
	return false;
}

bool weir_kafka_input_is_same_member(const struct weir_kafka_input *in)
{
	(void)in;
	return true;
}

int64_t weir_kafka_input_session_ms(const struct weir_kafka_input *in)
{
	(void)in;
	return 0;
}

static void die(const char *what)
{
	fprintf(stderr, "kafka_log: %s: %s\n", what, weir_diag_text(dg));
	printf("failed %d\n", (int)weir_diag_code(dg));
	fflush(stdout);
	_exit(1);
}

static void check(const char *what, enum weir_err err)
{
	if (err != WEIR_OK)
		die(what);
}

static void say(void *ctx, int level, const char *text)
{
	(void)ctx;
	fprintf(stderr, "<%d> %s\n", level, text);
}

static void join(const char *brokers, const char *app, const char *instance)
{
	char why[512], topic[128];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why);
	rd_kafka_conf_set(conf, "group.id", app, why, sizeof why);
	rd_kafka_conf_set(conf, "enable.auto.commit", "false", why, sizeof why);
	rd_kafka_conf_set(conf, "session.timeout.ms", "6000", why, sizeof why);
	rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", why, sizeof why);
	rd_kafka_conf_set(conf, "log_level", "2", why, sizeof why);
	if (instance != NULL)
		rd_kafka_conf_set(conf, "group.instance.id", instance, why, sizeof why);
	member = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
	rd_kafka_poll_set_consumer(member);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	snprintf(topic, sizeof topic, "%s-in", app);
	rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA);
	rd_kafka_subscribe(member, list);
	rd_kafka_topic_partition_list_destroy(list);
	for (int i = 0; i < 600; i++) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(member, 50);
		if (m != NULL)
			rd_kafka_message_destroy(m);
		rd_kafka_topic_partition_list_t *mine = NULL;
		rd_kafka_assignment(member, &mine);
		int count = mine->cnt;
		rd_kafka_topic_partition_list_destroy(mine);
		if (count == PARTS)
			return;
	}
	fprintf(stderr, "kafka_log: no assignment\n");
	exit(1);
}

static void leave(void)
{
	if (member == NULL)
		return;
	rd_kafka_consumer_close(member);
	rd_kafka_destroy(member);
}

struct job {
	struct weir_log *log;
	const char *app;
	uint32_t out, state;
	bool input;
};

static void put(struct job *jb, uint32_t topic, uint32_t partition, const char *key, const char *value, int64_t ts)
{
	struct weir_out r = {
		.key = {key, strlen(key)}, .value = {value, value != NULL ? strlen(value) : 0}, .timestamp = ts};
	check("append", jb->log->ops->append(jb->log, topic, partition, &r, &dg));
}

static void fill(struct job *jb, long epoch, long results)
{
	char key[64], value[64], topic[128];
	for (long i = 0; i < results; i++) {
		snprintf(key, sizeof key, "r%ld", i);
		snprintf(value, sizeof value, "e%ld", epoch);
		put(jb, jb->out, (uint32_t)i % PARTS, key, value, 1700000000000 + epoch);
	}
	check("cut", jb->log->ops->cut(jb->log, &dg));
	for (uint32_t p = 0; p < PARTS; p++) {
		snprintf(key, sizeof key, "k%u", p);
		snprintf(value, sizeof value, "%ld", epoch);
		put(jb, jb->state, p, key, value, 0);
		snprintf(key, sizeof key, "m%u", p);
		snprintf(value, sizeof value, "marker %ld", epoch);
		put(jb, jb->state, p, key, value, 0);
	}
	if (!jb->input)
		return;
	struct weir_commit_input in[PARTS];
	snprintf(topic, sizeof topic, "%s-in", jb->app);
	for (uint32_t p = 0; p < PARTS; p++)
		in[p] = (struct weir_commit_input){topic, p, epoch * 10 + p, p};
	check("offsets", jb->log->ops->offsets(jb->log, in, PARTS, &dg));
}

static void epochs(struct job *jb, const char *verb, char **argv)
{
	long first = atol(argv[0]), count = atol(argv[1]), results = atol(argv[2]);
	for (long e = first; e < first + count; e++) {
		bool last = e == first + count - 1;
		fill(jb, e, results);
		if (last && strcmp(verb, "kill") == 0) {
			for (int i = 0; i < 10; i++, usleep(50000))
				check("cut", jb->log->ops->cut(jb->log, &dg));
			raise(SIGKILL);
		}
		if (last && strncmp(verb, "pause", 5) == 0) {
			char line[16];
			printf("open\n");
			fflush(stdout);
			if (fgets(line, sizeof line, stdin) == NULL)
				return;
		}
		if (last && strcmp(verb, "drop") == 0) {
			check("drop", jb->log->ops->drop(jb->log, &dg));
			return;
		}
		enum weir_err err = jb->log->ops->commit(jb->log, (uint64_t)e, &dg);
		if (err == WEIR_E_FENCED) { /* as the engine does: give it up, and restore what the group gives next */
			printf("fenced\n");
			fprintf(stderr, "kafka_log: %s\n", weir_diag_text(dg));
			check("drop", jb->log->ops->drop(jb->log, NULL));
			return;
		}
		check("commit", err);
		printf("committed %ld\n", e);
		fflush(stdout);
	}
}

struct pass {
	uint32_t partition;
	uint64_t count, sum;
	bool print;
};

static enum weir_err each(void *ctx, const struct weir_record *r, struct weir_diag **d)
{
	struct pass *ps = ctx;
	(void)d;
	ps->count++;
	for (uint32_t i = 0; i < r->value_bytes; i++)
		ps->sum = ps->sum * 31 + r->value[i];
	ps->sum = ps->sum * 31 + (uint64_t)r->offset;
	if (ps->print)
		printf("%u %.*s %.*s\n", ps->partition, (int)r->key_bytes, (const char *)r->key, (int)r->value_bytes,
		       (const char *)r->value);
	return WEIR_OK;
}

static void read_twice(struct job *jb)
{
	for (uint32_t p = 0; p < PARTS; p++) {
		struct pass ps[2] = {{.partition = p, .print = true}, {.partition = p}};
		for (int i = 0; i < 2; i++)
			check("read", jb->log->ops->read(jb->log, jb->state, p, each, &ps[i], &dg));
		if (ps[0].count != ps[1].count || ps[0].sum != ps[1].sum)
			printf("the second read of partition %u differs\n", p);
	}
}

int main(int argc, char **argv)
{
	const char *instance = NULL;
	struct weir_conf *cf = weir_conf_create();
	int n = 0;
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "-X") != 0 || i + 1 == argc) {
			argv[n++] = argv[i];
			continue;
		}
		char *name = argv[++i], *value = strchr(name, '=');
		if (value == NULL)
			return 2;
		*value++ = 0;
		check(name, weir_conf_set(cf, name, value, &dg));
		if (strcmp(name, "group.instance.id") == 0)
			instance = value;
	}
	if (n < 5)
		return 2;
	const char *brokers = argv[1], *guarantee = argv[3], *verb = argv[4];
	struct job jb = {.app = argv[2], .input = strstr(verb, "elsewhere") == NULL};
	check("brokers", weir_conf_set(cf, "bootstrap.servers", brokers, &dg));
	if (jb.input && strcmp(verb, "read") != 0)
		join(brokers, jb.app, instance);
	struct weir_kafka_log_spec spec = {.app = jb.app,
					   .guarantee = strncmp(guarantee, "exactly", 7) == 0   ? WEIR_EXACTLY_ONCE
							: strncmp(guarantee, "at_most", 7) == 0 ? WEIR_AT_MOST_ONCE
												: WEIR_AT_LEAST_ONCE,
					   .stateless = strstr(guarantee, "stateless") != NULL,
					   .input = (struct weir_kafka_input *)member,
					   .commit_ms = 100,
					   .broker_wait_ms = 30000};
	const struct weir_kafka_log to = {say, NULL};
	check("open", weir_kafka_log_open(&jb.log, cf, &spec, &to, &dg));
	char name[128];
	uint32_t partitions;
	snprintf(name, sizeof name, "%s-out", jb.app);
	struct weir_topic_spec topic = {.name = name, .kind = WEIR_TOPIC_RESULT, .partitions = PARTS};
	check("topic", jb.log->ops->topic(jb.log, &topic, &jb.out, &partitions, &dg));
	snprintf(name, sizeof name, "%s-s-changelog", jb.app);
	topic.kind = WEIR_TOPIC_CHANGELOG;
	topic.partitions_fixed = true;
	check("topic", jb.log->ops->topic(jb.log, &topic, &jb.state, &partitions, &dg));
	if (strstr(guarantee, "repartition") != NULL) {
		uint32_t number;
		snprintf(name, sizeof name, "%s-in", jb.app);
		topic.kind = WEIR_TOPIC_REPARTITION;
		check("topic", jb.log->ops->topic(jb.log, &topic, &number, &partitions, &dg));
	}
	check("make", jb.log->ops->make(jb.log, &dg));
	if (strcmp(verb, "read") == 0)
		read_twice(&jb);
	else if (n == 8)
		epochs(&jb, verb, argv + 5);
	jb.log->ops->close(jb.log);
	leave();
	weir_conf_destroy(cf);
	return 0;
}
