/* kafka_produce.c: puts known records into a Kafka topic for the interop tests, by librdkafka.
 *   kafka_produce BROKERS TOPIC CODEC plain|keyed FIRST COUNT
 *   kafka_produce BROKERS TOPIC CODEC commit|abort|open FIRST COUNT     one transaction; open: never ended
 * Record i: key "k<i>", value "value <i> ..." of up to 300 bytes, timestamp 1700000000000 + 1000 i, a header "n" = i;
 * every seventh has no key (unless keyed), every eleventh a null value. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *why)
{
	fprintf(stderr, "kafka_produce: %s: %s\n", what, why);
	exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[512];
	if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
		die(name, why);
}

static void check(const char *what, rd_kafka_error_t *error)
{
	if (error != NULL)
		die(what, rd_kafka_error_string(error));
}

static void produce(rd_kafka_t *rk, const char *topic, int i, int keyed)
{
	int no_key = i % 7 == 0 && !keyed;
	char key[32], value[400], header[32];
	snprintf(key, sizeof key, "k%d", i);
	snprintf(header, sizeof header, "%d", i);
	int bytes = snprintf(value, sizeof value, "value %d ", i);
	while (bytes < 20 + i % 280)
		value[bytes++] = (char)('a' + i % 26);
	rd_kafka_vu_t vus[] = {
		{.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
		{.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = 0},
		{.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
		{.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = 1700000000000LL + 1000LL * i},
		{.vtype = RD_KAFKA_VTYPE_HEADER, .u.header = {"n", header, (ssize_t)strlen(header)}},
		{.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {no_key ? NULL : key, no_key ? 0 : strlen(key)}},
		{.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {i % 11 == 0 ? NULL : value, i % 11 == 0 ? 0 : (size_t)bytes}},
	};
	check("produce", rd_kafka_produceva(rk, vus, sizeof vus / sizeof vus[0]));
}

int main(int argc, char **argv)
{
	char why[512];
	if (argc != 7) {
		fprintf(stderr, "usage: kafka_produce BROKERS TOPIC CODEC plain|keyed|commit|abort|open FIRST COUNT\n");
		return 2;
	}
	int first = atoi(argv[5]), count = atoi(argv[6]);
	int keyed = strcmp(argv[4], "keyed") == 0;
	int transaction = strcmp(argv[4], "plain") != 0 && !keyed;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	set(conf, "bootstrap.servers", argv[1]);
	set(conf, "compression.codec", argv[3]);
	set(conf, "batch.num.messages", "40"); /* several batches */
	set(conf, "linger.ms", "20");
	if (transaction)
		set(conf, "transactional.id", argv[4]);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	if (rk == NULL)
		die("producer", why);
	if (transaction) {
		check("init_transactions", rd_kafka_init_transactions(rk, 30000));
		check("begin_transaction", rd_kafka_begin_transaction(rk));
	}
	for (int i = first; i < first + count; i++)
		produce(rk, argv[2], i, keyed);
	if (rd_kafka_flush(rk, 30000) != RD_KAFKA_RESP_ERR_NO_ERROR)
		die("flush", "not everything was acknowledged");
	if (strcmp(argv[4], "commit") == 0)
		check("commit_transaction", rd_kafka_commit_transaction(rk, 30000));
	else if (strcmp(argv[4], "abort") == 0)
		check("abort_transaction", rd_kafka_abort_transaction(rk, 30000));
	else if (transaction)
		_Exit(0); /* gone, as a crashed producer is: destroying it would abort */
	rd_kafka_destroy(rk);
	return 0;
}
