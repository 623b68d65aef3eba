/* kafka_input.c: drives the member of a consumer group (io/kafka/input.h) as the engine would, on one thread, and says
 * what it sees: for kafka_input.sh.
 *   kafka_input BROKERS GROUP TOPIC[;TOPIC] [NAME=VALUE]...
 *     ~REGEX in place of topics is a pattern; + between them begins another table
 *     member=0            every partition, no group
 *     start=MODE          earliest (default), latest, group, time:MS, offsets:SPEC; group=0 with these: never the
 * group's bound=MODE          latest, group, time:MS, offsets:SPEC (default: none) records=N ms=N      leave after so
 * many records, after so long revoke.ms=N         how long a revocation is answered after it was heard commit=N commit
 * every N records and at a revocation, with the count of commits as the epoch (0: never) seek=P:N            seek of
 * partition P of the first table to N, -2: the first there is rejoin=N pause=N    after N records: leave and join
 * again; pause for 1.5 s slow=N              sleep N ms after each unit print=1             a line for each record
 *     uncommitted=1 headers=0 wait.ms=N; anything else is a property
 * Lines: "assigned T/P..", "revoked", "lost", "read T/P FIRST-LAST RECORDS GAPS", "committed T/P OFFSET EPOCH",
 * "again T/P OFFSET" (a record that was read before: never but after a rejoin), "error CODE TEXT", "done RECORDS" */
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/conf.h"
#include "io/kafka/input.h"

enum { TABLES = 4, PARTS = 256 };

static volatile sig_atomic_t stop_wanted;
static _Atomic bool stop;

struct seen {
	int64_t first, last, next; /* next: where the position is; -1: not read */
	long records, gaps;
	int64_t from; /* of the running assignment */
};
static struct seen seen[TABLES][PARTS];
static struct weir_kafka_input *in;
static uint32_t tables;
static long records, epoch;

static long opt_revoke_ms, opt_commit, opt_rejoin, opt_pause, opt_slow, opt_records, opt_ms, opt_print;
static long opt_log = 5;

static void on_signal(int sig)
{
	(void)sig;
	stop_wanted = 1;
	stop = true;
}

static void say(void *ctx, int level, const char *text)
{
	(void)ctx;
	if (level <= opt_log)
		fprintf(stderr, "%s\n", text);
}

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static int give_up(enum weir_err err, struct weir_diag *dg)
{
	printf("error %d %s\n", err, dg != NULL ? weir_diag_text(dg) : "");
	weir_diag_destroy(dg);
	weir_kafka_input_close(in);
	return 1;
}

static struct weir_stream_log *stream(uint32_t s)
{
	return weir_kafka_input_stream(in, s);
}
static uint32_t parts(uint32_t s)
{
	return stream(s)->ops->partitions(stream(s));
}
static const char *topic(uint32_t s, uint32_t p, uint32_t *number)
{
	return stream(s)->ops->topic(stream(s), p, number);
}

/* Commits the position of every owned partition. */
static void commit(void)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	char text[32];
	epoch++;
	snprintf(text, sizeof text, "%ld", epoch);
	for (uint32_t s = 0; s < tables; s++)
		for (uint32_t p = 0; p < parts(s); p++) {
			uint32_t number;
			const char *name = topic(s, p, &number);
			if (!weir_kafka_input_owned(in, s, p) || seen[s][p].next < 0)
				continue;
			rd_kafka_topic_partition_t *tp = rd_kafka_topic_partition_list_add(list, name, (int32_t)number);
			tp->offset = seen[s][p].next;
			tp->metadata = strdup(text);
			tp->metadata_size = strlen(text);
		}
	if (list->cnt != 0) {
		rd_kafka_resp_err_t code = rd_kafka_commit(weir_kafka_input_handle(in), list, 0);
		if (code != 0)
			printf("commit failed: %s\n", rd_kafka_err2name(code));
	}
	rd_kafka_topic_partition_list_destroy(list);
}

static enum weir_err print_committed(struct weir_diag **dg)
{
	int64_t offset_of[TABLES][PARTS], *offset[TABLES];
	uint64_t epoch_of[TABLES][PARTS], *epochs[TABLES];
	for (uint32_t s = 0; s < TABLES; s++) {
		offset[s] = offset_of[s];
		epochs[s] = epoch_of[s];
	}
	enum weir_err err = weir_kafka_input_committed(in, offset, epochs, dg);
	for (uint32_t s = 0; err == WEIR_OK && s < tables; s++)
		for (uint32_t p = 0; p < parts(s); p++) {
			uint32_t number;
			const char *name = topic(s, p, &number);
			if (weir_kafka_input_owned(in, s, p) && offset[s][p] >= 0)
				printf("committed %s/%u %lld %llu\n", name, number, (long long)offset[s][p],
				       (unsigned long long)epochs[s][p]);
		}
	return err;
}

static void print_assigned(void)
{
	static bool had[TABLES][PARTS]; /* a cooperative member reads on what stays with it */
	printf("assigned");
	for (uint32_t s = 0; s < tables; s++)
		for (uint32_t p = 0; p < parts(s); p++) {
			uint32_t number;
			const char *name = topic(s, p, &number);
			bool owned = weir_kafka_input_owned(in, s, p);
			if (!weir_kafka_input_cooperative(in) || !had[s][p] || !owned)
				seen[s][p].next = -1;
			had[s][p] = owned;
			if (owned)
				printf(" %s/%u", name, number);
		}
	printf("\n");
}

static void take_unit(uint32_t s, uint32_t p, const struct weir_unit *u)
{
	struct seen *sn = &seen[s][p];
	uint32_t number;
	const char *name = topic(s, p, &number);
	for (uint32_t i = 0; i < u->count; i++) {
		const struct weir_record *r = &u->records[i];
		volatile uint8_t over = 0; /* the pad can be read */
		if (r->value != NULL)
			over = r->value[r->value_bytes + WEIR_PAYLOAD_PAD - 1];
		if (r->key != NULL)
			over = r->key[r->key_bytes + WEIR_PAYLOAD_PAD - 1];
		(void)over;
		if (sn->records == 0)
			sn->first = r->offset;
		if (sn->next >= 0 && r->offset < sn->next)
			printf("again %s/%u %lld\n", name, number, (long long)r->offset);
		if (sn->next >= 0 && r->offset > sn->next)
			sn->gaps++;
		sn->last = r->offset > sn->last ? r->offset : sn->last;
		sn->next = r->offset + 1;
		sn->records++;
		records++;
		if (opt_print)
			printf("record %s/%u %lld ts=%lld key=%.*s value=%u headers=%u/%u\n", name, number,
			       (long long)r->offset, (long long)r->timestamp, r->key != NULL ? (int)r->key_bytes : 4,
			       r->key != NULL ? (const char *)r->key : "null", r->value != NULL ? r->value_bytes : 0,
			       r->header_count, r->headers_bytes);
	}
	if (u->next_offset > sn->next) /* behind a gap: that is no gap to us */
		sn->next = u->next_offset;
}

/* Reads what is there. *bound: everything has been read. */
static enum weir_err read_some(bool *moved, bool *bound, struct weir_diag **dg)
{
	*moved = false;
	*bound = true;
	for (uint32_t s = 0; s < tables; s++)
		for (uint32_t p = 0; p < parts(s); p++) {
			int64_t ts;
			enum weir_poll poll = stream(s)->ops->peek(stream(s), p, &ts, dg);
			if (poll == WEIR_POLL_ERROR)
				return weir_diag_code(*dg);
			*bound = *bound && poll == WEIR_POLL_BOUND;
			if (poll != WEIR_POLL_UNIT)
				continue;
			struct weir_unit *u;
			enum weir_err err = stream(s)->ops->take(stream(s), p, &u, dg);
			if (err != WEIR_OK)
				return err;
			take_unit(s, p, u);
			stream(s)->ops->release(stream(s), u);
			*moved = true;
			if (opt_slow)
				sleep_ms(opt_slow);
		}
	return WEIR_OK;
}

static enum weir_err on_running(bool *over, struct weir_diag **dg)
{
	static long committed;
	bool moved, bound;
	enum weir_err err = read_some(&moved, &bound, dg);
	if (err != WEIR_OK)
		return err;
	if (opt_commit && records - committed >= opt_commit) {
		commit();
		committed = records;
	}
	if (opt_rejoin && records >= opt_rejoin) {
		opt_rejoin = 0;
		printf("rejoins\n");
		return weir_kafka_input_rejoin(in, dg);
	}
	if (opt_pause && records >= opt_pause) {
		long before = records, until = now_ms() + 1500;
		opt_pause = 0;
		weir_kafka_input_pause(in, true);
		while (err == WEIR_OK && now_ms() < until) {
			enum weir_kafka_group_state state;
			err = weir_kafka_input_serve(in, 100, &state, dg);
			if (err == WEIR_OK)
				err = read_some(&moved, &bound, dg);
		}
		printf("paused: %ld records\n", records - before);
		weir_kafka_input_pause(in, false);
		bound = false;
	}
	bool any_owned = false;
	for (uint32_t s = 0; s < tables; s++)
		for (uint32_t p = 0; p < parts(s); p++)
			any_owned |= weir_kafka_input_owned(in, s, p);
	*over = (bound && any_owned) || (opt_records && records >= opt_records);
	if (!moved && !*over) {
		struct pollfd pf = {stream(0)->ops->event_fd(stream(0)), POLLIN, 0};
		(void)poll(&pf, 1, 200);
	}
	return err;
}

static enum weir_err run(int64_t seek_part, int64_t seek_to, struct weir_diag **dg)
{
	long end = opt_ms ? now_ms() + opt_ms : 0, revoked_ms = 0;
	bool over = false;
	enum weir_err err = weir_kafka_input_join(in, dg);
	while (err == WEIR_OK && !over && !stop_wanted && (end == 0 || now_ms() < end)) {
		enum weir_kafka_group_state state;
		fflush(stdout);
		err = weir_kafka_input_serve(in, weir_kafka_input_state(in) == WEIR_GROUP_RUNNING ? 0 : 50, &state, dg);
		if (err != WEIR_OK)
			break;
		switch (state) {
		case WEIR_GROUP_JOINING:
			break;
		case WEIR_GROUP_ASSIGNED:
			print_assigned();
			err = print_committed(dg);
			if (err == WEIR_OK && seek_part >= 0)
				err = stream(0)->ops->seek(stream(0), (uint32_t)seek_part, seek_to, dg);
			if (err == WEIR_OK)
				err = weir_kafka_input_begin(in, dg);
			break;
		case WEIR_GROUP_RUNNING:
			err = on_running(&over, dg);
			break;
		case WEIR_GROUP_REVOKED:
		case WEIR_GROUP_LOST:
			if (revoked_ms == 0) {
				revoked_ms = now_ms();
				printf("%s\n", state == WEIR_GROUP_LOST ? "lost" : "revoked");
			}
			if (now_ms() - revoked_ms < opt_revoke_ms)
				break;
			if (opt_commit && state == WEIR_GROUP_REVOKED)
				commit();
			printf("releases\n");
			err = weir_kafka_input_release(in, dg);
			revoked_ms = 0;
			break;
		}
		if (err == WEIR_E_UNAVAILABLE) { /* rebalanced meanwhile */
			weir_diag_destroy(*dg);
			*dg = NULL;
			err = WEIR_OK;
		}
	}
	if (err == WEIR_OK && opt_commit && weir_kafka_input_state(in) == WEIR_GROUP_RUNNING)
		commit();
	return err;
}

/* MODE, MODE:VALUE */
static bool startup(const char *text, enum weir_startup *mode, int64_t *ts, const char **offsets, bool *group)
{
	*group = strcmp(text, "group") == 0;
	if (strcmp(text, "earliest") == 0 || *group)
		*mode = WEIR_STARTUP_EARLIEST;
	else if (strcmp(text, "latest") == 0)
		*mode = WEIR_STARTUP_LATEST;
	else if (strncmp(text, "time:", 5) == 0)
		*mode = WEIR_STARTUP_TIMESTAMP, *ts = atoll(text + 5);
	else if (strncmp(text, "offsets:", 8) == 0)
		*mode = WEIR_STARTUP_OFFSETS, *offsets = text + 8;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	static const char *names[TABLES][16];
	static const char *const tables_of[TABLES] = {"one", "two", "three", "four"};
	struct weir_kafka_scan scans[TABLES] = {{0}};
	struct weir_kafka_input_spec spec = {.member = true, .scans = scans, .broker_wait_ms = 10000, .stop = &stop};
	struct weir_kafka_log lg = {say, NULL};
	struct weir_diag *dg = NULL;
	int64_t seek_part = -1, seek_to = 0;
	if (argc < 4)
		return 2;
	struct weir_conf *cf = weir_conf_create();
	if (weir_conf_set(cf, "bootstrap.servers", argv[1], &dg) != WEIR_OK)
		return give_up(WEIR_E_CONF, dg);
	spec.group = argv[2];
	for (char *at = argv[3]; at != NULL && tables < TABLES; tables++) {
		struct weir_kafka_scan *sc = &scans[tables];
		char *plus = strchr(at, '+');
		if (plus != NULL)
			*plus++ = '\0';
		sc->table = tables_of[tables];
		sc->from_group = true;
		if (*at == '~')
			sc->topic_pattern = at + 1;
		else
			for (char *t = strtok(at, ";"); t != NULL && sc->topic_count < 16; t = strtok(NULL, ";"))
				names[tables][sc->topic_count++] = t;
		sc->topics = sc->topic_pattern != NULL ? NULL : names[tables];
		at = plus;
	}
	spec.scan_count = tables;
	for (int i = 4; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		if (value == NULL)
			return 2;
		*value++ = '\0';
		const char *name = argv[i];
		bool unused, ok = true;
		for (uint32_t s = 0; s < tables; s++) {
			if (strcmp(name, "start") == 0)
				ok = startup(value, &scans[s].startup, &scans[s].startup_ts, &scans[s].startup_offsets,
					     &unused);
			else if (strcmp(name, "bound") == 0)
				scans[s].bounded = ok = startup(value, &scans[s].bound, &scans[s].bound_ts,
								&scans[s].bound_offsets, &scans[s].bound_from_group);
			else if (strcmp(name, "group") == 0)
				scans[s].from_group = atoi(value) != 0;
			else if (strcmp(name, "uncommitted") == 0)
				scans[s].read_uncommitted = atoi(value) != 0;
			else if (strcmp(name, "headers") == 0)
				scans[s].headers_unused = atoi(value) == 0;
		}
		if (!ok)
			return 2;
		if (strcmp(name, "start") == 0 || strcmp(name, "bound") == 0 || strcmp(name, "group") == 0 ||
		    strcmp(name, "uncommitted") == 0 || strcmp(name, "headers") == 0)
			continue;
		if (strcmp(name, "member") == 0)
			spec.member = atoi(value) != 0;
		else if (strcmp(name, "records") == 0)
			opt_records = atol(value);
		else if (strcmp(name, "ms") == 0)
			opt_ms = atol(value);
		else if (strcmp(name, "revoke.ms") == 0)
			opt_revoke_ms = atol(value);
		else if (strcmp(name, "commit") == 0)
			opt_commit = atol(value);
		else if (strcmp(name, "rejoin") == 0)
			opt_rejoin = atol(value);
		else if (strcmp(name, "pause") == 0)
			opt_pause = atol(value);
		else if (strcmp(name, "slow") == 0)
			opt_slow = atol(value);
		else if (strcmp(name, "print") == 0)
			opt_print = atol(value);
		else if (strcmp(name, "log") == 0)
			opt_log = atol(value);
		else if (strcmp(name, "wait.ms") == 0)
			spec.broker_wait_ms = atol(value);
		else if (strcmp(name, "seek") == 0) {
			seek_part = atoll(value);
			seek_to = atoll(strchr(value, ':') + 1);
		} else if (weir_conf_set(cf, name, value, &dg) != WEIR_OK)
			return give_up(WEIR_E_CONF, dg);
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	enum weir_err err = weir_kafka_input_open(&in, cf, &spec, &lg, &dg);
	weir_conf_destroy(cf);
	if (err != WEIR_OK)
		return give_up(err, dg);
	for (uint32_t s = 0; s < tables; s++)
		for (uint32_t p = 0; p < parts(s); p++) {
			int64_t first, end;
			uint32_t number;
			const char *name = topic(s, p, &number);
			seen[s][p] = (struct seen){.next = -1, .last = -1};
			stream(s)->ops->range(stream(s), p, &first, &end);
			printf("range %s/%u %lld-%lld\n", name, number, (long long)first, (long long)end);
		}
	err = run(seek_part, seek_to, &dg);
	for (uint32_t s = 0; s < tables; s++)
		for (uint32_t p = 0; p < parts(s); p++) {
			uint32_t number;
			const char *name = topic(s, p, &number);
			if (seen[s][p].records != 0)
				printf("read %s/%u %lld-%lld %ld %ld\n", name, number, (long long)seen[s][p].first,
				       (long long)seen[s][p].last, seen[s][p].records, seen[s][p].gaps);
		}
	if (err != WEIR_OK)
		return give_up(err, dg);
	weir_kafka_input_close(in);
	printf("done %ld\n", records);
	return 0;
}
