/* client.h: a librdkafka handle: its configuration out of weir's, waiting for a broker, and the one translation of
 * librdkafka's errors. Included inside io/kafka/ (and tests) only. @thread: one owner for each client */
#ifndef WEIR_IO_KAFKA_CLIENT_H
#define WEIR_IO_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>

#include "io/conf.h"
#include "io/kafka/kafka.h"

#if RD_KAFKA_VERSION < 0x020000ff
#error "librdkafka 2.0.0 or later is needed"
#endif

/* How long a client waits for a first answer of a broker before it says WEIR_E_UNAVAILABLE. */
#define WEIR_KAFKA_WAIT_MS 10000

enum weir_kafka_role {
	WEIR_KAFKA_READ, /* consumer, assign() only, read_committed */
	WEIR_KAFKA_WRITE,
	WEIR_KAFKA_ADMIN, /* consumer that never is assigned anything, read_uncommitted: sees the real end of a log */
	WEIR_KAFKA_MEMBER /* consumer of a group, by weir_kafka_client_create_member */
};
struct weir_kafka_setting {
	const char *name;
	const char *value;
};

struct weir_kafka_client;
/* The handle with weir's defaults, then extra (ends with a NULL name), then the user's properties, then what is not for
 * the user to choose. Connects to nobody. WEIR_E_CONF: a property does not fit. lg may be NULL and is copied. */
WEIR_MUST_CHECK enum weir_err weir_kafka_client_create(struct weir_kafka_client **out, const struct weir_conf *cf,
						       enum weir_kafka_role role,
						       const struct weir_kafka_setting *extra,
						       const struct weir_kafka_log *lg, struct weir_diag **dg);
/* A producer whose delivery reports go to on_delivery, out of polls. */
WEIR_MUST_CHECK enum weir_err
weir_kafka_client_create_writer(struct weir_kafka_client **out, const struct weir_conf *cf,
				void (*on_delivery)(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque),
				const struct weir_kafka_log *lg, struct weir_diag **dg);
/* The same between extra (the user's properties win) and forced (they do not; value NULL: librdkafka's default); both
 * end with a NULL name and may be NULL. user: what weir_kafka_client_user answers, for on_delivery, whose opaque is
 * the client. */
WEIR_MUST_CHECK enum weir_err
weir_kafka_client_create_producer(struct weir_kafka_client **out, const struct weir_conf *cf,
				  const struct weir_kafka_setting *extra, const struct weir_kafka_setting *forced,
				  void (*on_delivery)(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque),
				  void *user, const struct weir_kafka_log *lg, struct weir_diag **dg);
/* A consumer of a group, with the same extra, forced and user. on_rebalance is called out of what serves the consumer's
 * queue; its opaque is the client. Errors come by weir_kafka_client_poll as for the others: the consumer's queue is not
 * joined to the handle's own. */
WEIR_MUST_CHECK enum weir_err
weir_kafka_client_create_member(struct weir_kafka_client **out, const struct weir_conf *cf,
				const struct weir_kafka_setting *extra, const struct weir_kafka_setting *forced,
				void (*on_rebalance)(rd_kafka_t *rk, rd_kafka_resp_err_t err,
						     rd_kafka_topic_partition_list_t *parts, void *opaque),
				void *user, const struct weir_kafka_log *lg, struct weir_diag **dg);
void *weir_kafka_client_user(const struct weir_kafka_client *kc);
/* Everything taken from the handle has to be given back before. NULL is fine. */
void weir_kafka_client_destroy(struct weir_kafka_client *kc);
rd_kafka_t *weir_kafka_client_handle(const struct weir_kafka_client *kc);
const char *weir_kafka_client_brokers(const struct weir_kafka_client *kc);
void weir_kafka_log_say(const struct weir_kafka_log *lg, int level, const char *fmt, ...)
	WEIR_PRINTF(3, 4); /* NULL: nowhere */
void weir_kafka_client_say(const struct weir_kafka_client *kc, int level, const char *fmt, ...) WEIR_PRINTF(3, 4);

/* Waits until a broker answers. WEIR_E_CONF (a wrong password, CA or host name: waiting would not help) or, after
 * wait_ms, WEIR_E_UNAVAILABLE; both with what librdkafka said last. topic: its metadata in *out (give back with
 * rd_kafka_metadata_destroy); NULL: *out only names brokers. */
WEIR_MUST_CHECK enum weir_err weir_kafka_client_metadata(struct weir_kafka_client *kc, const char *topic,
							 int64_t wait_ms, const struct rd_kafka_metadata **out,
							 struct weir_diag **dg);
/* Partitions of a topic, 0 where the broker that was asked knows no such topic. Waits as above. */
WEIR_MUST_CHECK enum weir_err weir_kafka_client_partitions(struct weir_kafka_client *kc, const char *topic,
							   uint32_t *count, struct weir_diag **dg);
/* The same of a topic that should be there: brokers hear of a new one in their own time, so several answers within a
 * second or three are needed for 0. */
WEIR_MUST_CHECK enum weir_err weir_kafka_client_await_topic(struct weir_kafka_client *kc, const char *topic,
							    uint32_t *count, struct weir_diag **dg);
/* Of a topic or partition that librdkafka or a broker called unknown: WEIR_OK if it is there all the same, as it
 * mostly is (librdkafka forgets what it does not get confirmed in time, a broker that starts knows nothing yet), and
 * librdkafka has heard of it by this. partitions: as many as it had. */
WEIR_MUST_CHECK enum weir_err weir_kafka_client_confirm(struct weir_kafka_client *kc, const char *topic,
							uint32_t partitions, struct weir_diag **dg);
/* Serves the callbacks of a handle without a consumer group (errors, delivery reports). */
void weir_kafka_client_poll(struct weir_kafka_client *kc, int timeout_ms);
/* The handle can never work again (fatal) or credentials were refused meanwhile: the error, else WEIR_OK. */
WEIR_MUST_CHECK enum weir_err weir_kafka_client_check(struct weir_kafka_client *kc, struct weir_diag **dg);

/* Why brokers refuse this client (a password, a certificate), NULL: they do not, as far as was heard lately. */
const char *weir_kafka_client_refusal(const struct weir_kafka_client *kc);
/* Every broker is gone and none has answered since: what was heard last of it (may be ""), else NULL. */
const char *weir_kafka_client_down(const struct weir_kafka_client *kc);
/* What librdkafka said last of its errors, "" where nothing: of any broker, and it may be over. */
const char *weir_kafka_client_last(const struct weir_kafka_client *kc);
/* Some broker answered. */
void weir_kafka_client_is_up(struct weir_kafka_client *kc);
/* The handle can never work again, whatever brokers do. Polls nothing. */
WEIR_MUST_CHECK enum weir_err weir_kafka_client_fatal(struct weir_kafka_client *kc, struct weir_diag **dg);

/* What a code of librdkafka or of a broker means for weir. */
enum weir_err weir_kafka_err(rd_kafka_resp_err_t code);
/* The same call may succeed later without a change. */
bool weir_kafka_err_is_retriable(rd_kafka_resp_err_t code);
/* A topic or partition is said not to be there: confirm. */
bool weir_kafka_err_is_unknown(rd_kafka_resp_err_t code);
/* What a consumer that is assigned its partitions and in no group need not mind: librdkafka goes on, or asks for the
 * coordinator of a group that is there in name only. */
bool weir_kafka_err_is_passed_over(rd_kafka_resp_err_t code);
/* Sets *dg to "WHAT: text" with the translated code, marked retriable where it is. why NULL: the code's own text. */
enum weir_err weir_kafka_fail(struct weir_diag **dg, rd_kafka_resp_err_t code, const char *why, const char *fmt, ...)
	WEIR_PRINTF(4, 5);
/* Takes e (not NULL). */
enum weir_err weir_kafka_fail_error(struct weir_diag **dg, rd_kafka_error_t *e, const char *what);
int64_t weir_kafka_now_ms(void); /* monotonic */

/* A wait that has an end. Time in which this process stood still (SIGSTOP, a machine that sleeps, or has no CPU for it)
 * is not waited: nobody could have been heard in it. */
struct weir_kafka_wait {
	int64_t left_ms, seen_ms;
};
void weir_kafka_wait_begin(struct weir_kafka_wait *w, int64_t wait_ms);
/* What is left, 0: it is over. turn_ms: how long what was done since the last look, or the beginning, takes at most by
 * itself; more does not count. */
int64_t weir_kafka_wait_left(struct weir_kafka_wait *w, int64_t turn_ms);

#endif
