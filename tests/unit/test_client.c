/* test_client.c: librdkafka's errors as weir's, a broker that is not there, and, by librdkafka's mock cluster, errors
 * put into produce and fetch: retriable ones are ridden out, permanent ones end with one clear line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <librdkafka/rdkafka_mock.h> /* wants the other one first */

#include "io/kafka/client.h"

enum { PRODUCE = 0, FETCH = 1, RECORDS = 50 };

static rd_kafka_t *mock_handle;
static rd_kafka_mock_cluster_t *mock;

static int setup(void **state)
{
	char why[256];
	(void)state;
	mock_handle = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
	mock = mock_handle != NULL ? rd_kafka_mock_cluster_new(mock_handle, 1) : NULL;
	return mock == NULL;
}

static int teardown(void **state)
{
	(void)state;
	rd_kafka_mock_cluster_destroy(mock);
	rd_kafka_destroy(mock_handle);
	return 0;
}

static struct weir_conf *conf_of(const char *brokers)
{
	struct weir_conf *cf = weir_conf_create();
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", brokers, NULL), WEIR_OK);
	return cf;
}

static void say_nothing(void *ctx, int level, const char *text)
{
	(void)ctx;
	(void)level;
	(void)text;
}
static const struct weir_kafka_log quiet = {say_nothing, NULL};

static struct weir_kafka_writer *open_writer(const char *topic)
{
	struct weir_conf *cf = conf_of(rd_kafka_mock_cluster_bootstraps(mock));
	struct weir_kafka_writer *w = NULL;
	struct weir_diag *dg = NULL;
	struct weir_kafka_write_spec spec = {.topic = topic};
	if (weir_kafka_writer_open(&w, cf, &spec, &quiet, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	weir_conf_destroy(cf);
	return w;
}

static enum weir_err put_some(struct weir_kafka_writer *w, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (int i = 0; err == WEIR_OK && i < RECORDS; i++) {
		struct weir_out out = {.key = {"k", 1}, .value = {&i, sizeof i}, .timestamp = 1000 + i};
		err = weir_kafka_writer_put(w, 0, &out, dg);
	}
	return err == WEIR_OK ? weir_kafka_writer_flush(w, dg) : err;
}

static void test_codes(void **state)
{
	static const struct {
		rd_kafka_resp_err_t code;
		enum weir_err err;
	} table[] = {
		{RD_KAFKA_RESP_ERR_NO_ERROR, WEIR_OK},
		{RD_KAFKA_RESP_ERR__AUTHENTICATION, WEIR_E_CONF},
		{RD_KAFKA_RESP_ERR__SSL, WEIR_E_CONF},
		{RD_KAFKA_RESP_ERR__RESOLVE, WEIR_E_CONF},
		{RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, WEIR_E_CONF},
		{RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, WEIR_E_CONF},
		{RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, WEIR_E_CONF},
		{RD_KAFKA_RESP_ERR__TRANSPORT, WEIR_E_UNAVAILABLE},
		{RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, WEIR_E_UNAVAILABLE},
		{RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, WEIR_E_UNAVAILABLE},
		{RD_KAFKA_RESP_ERR_NOT_COORDINATOR, WEIR_E_UNAVAILABLE},
		{RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, WEIR_E_UNAVAILABLE},
		{RD_KAFKA_RESP_ERR_PRODUCER_FENCED, WEIR_E_FENCED},
		{RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, WEIR_E_FENCED},
		{RD_KAFKA_RESP_ERR_INVALID_MSG, WEIR_E_CORRUPT},
		{RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, WEIR_E_RECORD},
		{RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, WEIR_E_IO},
		{RD_KAFKA_RESP_ERR_UNKNOWN, WEIR_E_IO},
	};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		if (weir_kafka_err(table[i].code) != table[i].err)
			fail_msg("%s", rd_kafka_err2name(table[i].code));
		struct weir_diag *dg = NULL;
		(void)weir_kafka_fail(&dg, table[i].code, NULL, "topic %s", "t");
		assert_int_equal(weir_diag_is_retriable(dg), table[i].err == WEIR_E_UNAVAILABLE);
		assert_non_null(strstr(weir_diag_text(dg), "topic t: "));
		assert_non_null(strstr(weir_diag_text(dg), rd_kafka_err2str(table[i].code)));
		weir_diag_destroy(dg);
	}
}

static void test_nobody_answers(void **state)
{
	(void)state;
	struct weir_conf *cf = conf_of("127.0.0.1:1");
	struct weir_kafka_client *kc = NULL;
	struct weir_diag *dg = NULL;
	const struct rd_kafka_metadata *md = NULL;
	assert_int_equal(weir_kafka_client_create(&kc, cf, WEIR_KAFKA_ADMIN, NULL, &quiet, &dg), WEIR_OK);
	assert_int_equal(weir_kafka_client_metadata(kc, NULL, 1500, &md, &dg), WEIR_E_UNAVAILABLE);
	assert_true(weir_diag_is_retriable(dg));
	assert_non_null(strstr(weir_diag_text(dg), "no broker at 127.0.0.1:1 answered within 1.5 s: "));
	assert_non_null(strstr(weir_diag_text(dg), "Connection refused"));
	weir_diag_destroy(dg);
	weir_kafka_client_destroy(kc);
	weir_conf_destroy(cf);
}

static void test_configuration(void **state)
{
	(void)state;
	struct weir_conf *cf = weir_conf_create();
	struct weir_kafka_client *kc = NULL;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_kafka_client_create(&kc, cf, WEIR_KAFKA_READ, NULL, NULL, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "which brokers"));
	weir_diag_destroy(dg);
	dg = NULL;
	/* A pair that does not fit is found when the handle is made. */
	assert_int_equal(weir_conf_set(cf, "bootstrap.servers", "127.0.0.1:1", NULL), WEIR_OK);
	assert_int_equal(weir_conf_set(cf, "producer.acks", "1", NULL), WEIR_OK);
	assert_int_equal(weir_kafka_client_create(&kc, cf, WEIR_KAFKA_WRITE, NULL, NULL, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "acks"));
	weir_diag_destroy(dg);
	/* It is narrowed to producers. */
	assert_int_equal(weir_kafka_client_create(&kc, cf, WEIR_KAFKA_READ, NULL, NULL, NULL), WEIR_OK);
	weir_kafka_client_destroy(kc);
	weir_conf_destroy(cf);
}

/* A listener that takes connections and closes them, as a broker that stops. */
static void *close_all(void *arg)
{
	const int *listener = arg;
	int fd;
	while ((fd = accept(*listener, NULL, NULL)) >= 0) {
		char hello[4096]; /* all of it: else the connection is reset */
		(void)!read(fd, hello, sizeof hello);
		(void)shutdown(fd, SHUT_RDWR);
		close(fd);
	}
	return NULL;
}

/* librdkafka says of a handshake that was cut off what it says of a refusal: it is none. */
static void test_cut_handshake(void **state)
{
	(void)state;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t th;
	char brokers[32];
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(listener, 16), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
	assert_int_equal(pthread_create(&th, NULL, close_all, &listener), 0);
	snprintf(brokers, sizeof brokers, "127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
	struct weir_conf *cf = conf_of(brokers);
	struct weir_kafka_client *kc = NULL;
	struct weir_diag *dg = NULL;
	const struct rd_kafka_metadata *md = NULL;
	assert_int_equal(weir_conf_set(cf, "security.protocol", "ssl", NULL), WEIR_OK);
	assert_int_equal(weir_kafka_client_create(&kc, cf, WEIR_KAFKA_ADMIN, NULL, &quiet, &dg), WEIR_OK);
	assert_int_equal(weir_kafka_client_metadata(kc, NULL, 3000, &md, &dg), WEIR_E_UNAVAILABLE);
	assert_true(weir_diag_is_retriable(dg));
	assert_non_null(strstr(weir_diag_text(dg), "no broker at 127.0.0.1"));
	assert_int_equal(weir_kafka_client_check(kc, NULL), WEIR_OK);
	weir_diag_destroy(dg);
	weir_kafka_client_destroy(kc);
	weir_conf_destroy(cf);
	(void)shutdown(listener, SHUT_RDWR);
	pthread_join(th, NULL);
	close(listener);
}

static void test_no_such_file(void **state)
{
	(void)state;
	struct weir_conf *cf = conf_of("127.0.0.1:1");
	struct weir_kafka_client *kc = NULL;
	struct weir_diag *dg = NULL;
	assert_int_equal(weir_conf_set(cf, "security.protocol", "ssl", NULL), WEIR_OK);
	assert_int_equal(weir_conf_set(cf, "ssl.ca.location", "/no/such.pem", NULL), WEIR_OK);
	assert_int_equal(weir_kafka_client_create(&kc, cf, WEIR_KAFKA_READ, NULL, &quiet, &dg), WEIR_E_CONF);
	assert_string_equal(weir_diag_text(dg),
			    "property 'ssl.ca.location': /no/such.pem cannot be read: No such file or directory");
	weir_diag_destroy(dg);
	weir_conf_destroy(cf);
}

static void test_produce_retriable(void **state)
{
	(void)state;
	assert_int_equal(rd_kafka_mock_topic_create(mock, "retriable", 1, 1), 0);
	struct weir_kafka_writer *w = open_writer("retriable");
	struct weir_diag *dg = NULL;
	rd_kafka_mock_push_request_errors(mock, PRODUCE, 4, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
					  RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
					  RD_KAFKA_RESP_ERR__TRANSPORT);
	if (put_some(w, &dg) != WEIR_OK)
		fail_msg("%s", weir_diag_text(dg));
	assert_int_equal(weir_kafka_writer_acked(w), RECORDS);
	weir_kafka_writer_close(w);
}

static void test_produce_permanent(void **state)
{
	static const struct {
		rd_kafka_resp_err_t code;
		enum weir_err err;
	} table[] = {
		{RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, WEIR_E_RECORD},
		{RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, WEIR_E_CONF},
		{RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, WEIR_E_RECORD},
	};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(table); i++) {
		char topic[32];
		snprintf(topic, sizeof topic, "permanent%zu", i);
		assert_int_equal(rd_kafka_mock_topic_create(mock, topic, 1, 1), 0);
		struct weir_kafka_writer *w = open_writer(topic);
		struct weir_diag *dg = NULL, *again = NULL;
		rd_kafka_mock_push_request_errors(mock, PRODUCE, 1, table[i].code);
		assert_int_equal(put_some(w, &dg), table[i].err);
		assert_non_null(strstr(weir_diag_text(dg), topic));
		assert_non_null(strstr(weir_diag_text(dg), rd_kafka_err2str(table[i].code)));
		struct weir_out out = {.value = {"x", 1}, .timestamp = 1};
		assert_int_equal(weir_kafka_writer_put(w, 0, &out, &again), table[i].err); /* it sticks */
		weir_diag_destroy(dg);
		weir_diag_destroy(again);
		weir_kafka_writer_close(w);
	}
}

/* Reads topic to its end; the number of records, -1 on an error. */
static int read_all(const char *topic, struct weir_diag **dg)
{
	struct weir_conf *cf = conf_of(rd_kafka_mock_cluster_bootstraps(mock));
	struct weir_kafka_read_spec spec = {.topic = topic, .partition = -1, .end_ts = -1, .uncommitted = true};
	struct weir_kafka_reader *rd = NULL;
	const struct weir_kafka_record *kr;
	int n = 0;
	enum weir_poll poll = WEIR_POLL_ERROR;
	if (weir_kafka_reader_open(&rd, cf, &spec, &quiet, dg) == WEIR_OK) {
		do {
			poll = weir_kafka_reader_next(rd, 1000, &kr, dg);
			n += poll == WEIR_POLL_UNIT;
		} while (poll == WEIR_POLL_UNIT || poll == WEIR_POLL_EMPTY);
	}
	weir_kafka_reader_close(rd);
	weir_conf_destroy(cf);
	return poll == WEIR_POLL_BOUND ? n : -1;
}

static void test_fetch_errors(void **state)
{
	(void)state;
	struct weir_diag *dg = NULL;
	assert_int_equal(rd_kafka_mock_topic_create(mock, "fetched", 2, 1), 0);
	struct weir_kafka_writer *w = open_writer("fetched");
	assert_int_equal(put_some(w, &dg), WEIR_OK);
	weir_kafka_writer_close(w);
	assert_int_equal(read_all("fetched", &dg), RECORDS);
	rd_kafka_mock_push_request_errors(mock, FETCH, 3, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
					  RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, RD_KAFKA_RESP_ERR__TRANSPORT);
	if (read_all("fetched", &dg) != RECORDS)
		fail_msg("%s", weir_diag_text(dg));
	rd_kafka_mock_topic_set_error(mock, "fetched", RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(read_all("fetched", &dg), -1);
	assert_int_equal(weir_diag_code(dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "fetched"));
	weir_diag_destroy(dg);
}

static void test_places(void **state)
{
	static const struct {
		const char *text;
		enum weir_kafka_place_kind kind;
		int64_t value;
	} good[] = {{"beginning", WEIR_KAFKA_BEGINNING, 0}, {"end", WEIR_KAFKA_END, 0},    {"0", WEIR_KAFKA_OFFSET, 0},
		    {"42", WEIR_KAFKA_OFFSET, 42},          {"-7", WEIR_KAFKA_OFFSET, -7}, {"-0", WEIR_KAFKA_END, 0},
		    {"s@1500", WEIR_KAFKA_TIME, 1500}};
	static const char *const bad[] = {"", "-", "x", "4x", "s@", "s@-5", "99999999999999999999"};
	(void)state;
	for (size_t i = 0; i < WEIR_COUNT_OF(good); i++) {
		struct weir_kafka_place pl;
		assert_int_equal(weir_kafka_place_parse(&pl, good[i].text, NULL), WEIR_OK);
		assert_int_equal(pl.kind, good[i].kind);
		assert_int_equal(pl.value, good[i].value);
	}
	for (size_t i = 0; i < WEIR_COUNT_OF(bad); i++) {
		struct weir_kafka_place pl;
		assert_int_equal(weir_kafka_place_parse(&pl, bad[i], NULL), WEIR_E_CONF);
	}
}

/* Time in which this process stood still is not waited, however much it was. */
static void test_wait(void **state)
{
	(void)state;
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, 100);
	usleep(150000); /* of what takes 20 ms at most */
	int64_t left = weir_kafka_wait_left(&w, 20);
	assert_int_equal(left, 80);
	for (int i = 0; i < 3; i++) {
		usleep(30000);
		left = weir_kafka_wait_left(&w, 20);
	}
	assert_int_equal(left, 20);
	usleep(30000);
	assert_int_equal(weir_kafka_wait_left(&w, 20), 0);
	assert_int_equal(weir_kafka_wait_left(&w, 20), 0);
}

/* What is called unknown and is there is not lost; what is not there, or has become less, is said to be so. */
static void test_confirm(void **state)
{
	(void)state;
	struct weir_conf *cf = conf_of(rd_kafka_mock_cluster_bootstraps(mock));
	struct weir_kafka_client *kc = NULL;
	struct weir_diag *dg = NULL;
	rd_kafka_mock_topic_create(mock, "kept", 3, 1);
	assert_int_equal(weir_kafka_client_create(&kc, cf, WEIR_KAFKA_ADMIN, NULL, &quiet, &dg), WEIR_OK);
	assert_int_equal(weir_kafka_client_confirm(kc, "kept", 3, &dg), WEIR_OK);
	assert_int_equal(weir_kafka_client_confirm(kc, "kept", 4, &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "topic kept had 4 partitions when reading began and has 3 now"));
	weir_diag_destroy(dg);
	dg = NULL;
	rd_kafka_mock_topic_set_error(mock, "lost", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	assert_int_equal(weir_kafka_client_confirm(kc, "lost", 1, &dg), WEIR_E_CONF);
	assert_string_equal(weir_diag_text(dg), "topic lost is not there any more");
	weir_diag_destroy(dg);
	weir_kafka_client_destroy(kc);
	weir_conf_destroy(cf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_nobody_answers),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_cut_handshake),
		cmocka_unit_test(test_no_such_file),
		cmocka_unit_test(test_produce_retriable),
		cmocka_unit_test(test_produce_permanent),
		cmocka_unit_test(test_fetch_errors),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_confirm),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
