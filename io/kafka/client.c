/* client.c: librdkafka handles: weir's defaults and the user's properties, errors and log lines, the wait for a broker.
 * One owner for each client; librdkafka's threads call only on_log and on_certificate. */
#include "io/kafka/client.h"

#include <errno.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "hotpath/core/mem.h"
#include "io/kafka/property.h"

/* librdkafka repeats the same error every 30 s: what was refused longer ago is over. */
enum { ERROR_TEXT_BYTES = 512, METADATA_TRY_MS = 250, RETRY_MS = 50, LEADERS_TURN_MS = 500, REFUSED_MS = 45000 };
enum { END_MS = 10000, END_LOOK_US = 1000, END_TURN_MS = 500 };

struct weir_kafka_client {
	rd_kafka_t *rk;
	char *brokers;
	struct weir_kafka_log log;
	void *user;
	void (*on_rebalance)(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts,
			     void *opaque);
	char last[ERROR_TEXT_BYTES]; /* what error_cb heard last, "" where nothing */
	char refused[ERROR_TEXT_BYTES];
	rd_kafka_resp_err_t refused_code; /* an error that waiting does not mend; 0: none */
	int64_t refused_ms;
	bool all_down;
	bool scram;              /* passwords are proven by SCRAM */
	_Atomic int certificate; /* why a broker's certificate was not taken last: X509_V_ERR_*, 0: none */
	atomic_bool ended;       /* librdkafka has let go of rk */
	atomic_bool left;        /* it does not, and nobody is here to hear its threads any more */
};

/* ---- the one translation of errors ---- */

enum weir_err weir_kafka_err(rd_kafka_resp_err_t code)
{
	switch ((int)code) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		return WEIR_OK;
	case RD_KAFKA_RESP_ERR__AUTHENTICATION:
	case RD_KAFKA_RESP_ERR__SSL:
	case RD_KAFKA_RESP_ERR__RESOLVE:
	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
	case RD_KAFKA_RESP_ERR__UNKNOWN_GROUP:
	case RD_KAFKA_RESP_ERR__INVALID_ARG:
	case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
	case RD_KAFKA_RESP_ERR__NOT_CONFIGURED:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
	case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
	case RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE:
	case RD_KAFKA_RESP_ERR_SECURITY_DISABLED:
	case RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION:
	case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
	case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
	case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
	case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
	case RD_KAFKA_RESP_ERR_INVALID_REQUEST:
	case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
	case RD_KAFKA_RESP_ERR_INVALID_GROUP_ID:
	case RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND:
	case RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS:
	case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
	case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
	case RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT:
		return WEIR_E_CONF;
	case RD_KAFKA_RESP_ERR__TRANSPORT:
	case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
	case RD_KAFKA_RESP_ERR__TIMED_OUT:
	case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
	case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
	case RD_KAFKA_RESP_ERR__WAIT_COORD:
	case RD_KAFKA_RESP_ERR__WAIT_CACHE:
	case RD_KAFKA_RESP_ERR__QUEUE_FULL:
	case RD_KAFKA_RESP_ERR__RETRY:
	case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
	case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
	case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_STALE_CTRL_EPOCH:
	case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
	case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
	case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
	case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
	case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
	case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
	case RD_KAFKA_RESP_ERR_NOT_CONTROLLER:
	case RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS:
	case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
	case RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND:
	case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
	case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
	case RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT:
	case RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED:
		return WEIR_E_UNAVAILABLE;
	case RD_KAFKA_RESP_ERR__FENCED:
	case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
	case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
	case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
	case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
		return WEIR_E_FENCED;
	case RD_KAFKA_RESP_ERR__BAD_MSG:
	case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
	case RD_KAFKA_RESP_ERR_INVALID_MSG:
		return WEIR_E_CORRUPT;
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
	case RD_KAFKA_RESP_ERR_INVALID_RECORD:
		return WEIR_E_RECORD;
	case RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE:
		return WEIR_E_NOMEM;
	case RD_KAFKA_RESP_ERR__DESTROY:
	case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
	case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
		return WEIR_E_STOPPED;
	default:
		return WEIR_E_IO;
	}
}

bool weir_kafka_err_is_retriable(rd_kafka_resp_err_t code)
{
	return weir_kafka_err(code) == WEIR_E_UNAVAILABLE;
}

/* A broker says that something may not be done, and not which right it looked for: what was being done tells. */
static void name_right(struct weir_diag *dg, rd_kafka_resp_err_t code, const char *what, const char *why)
{
	static const struct {
		const char *begins, *right;
	} topics[] = {{"reading", "READ on the topic"},
		      {"writing", "WRITE on the topic"},
		      {"sending offsets", "READ on the topics that are read"},
		      {"making", "CREATE on the topic (or on the cluster)"},
		      {"settings", "DESCRIBE_CONFIGS on the topic"},
		      {"deleting", "DELETE on the topic"},
		      {"", "DESCRIBE on the topic (which READ and WRITE give, too)"}};
	const char *right = NULL;
	switch ((int)code) {
	case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
		right = "READ on the consumer group, which is called as the application is";
		break;
	case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
		right = "WRITE on the transactional id (a prefix of the application's name, since every instance has "
			"its own)";
		break;
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
		right = strncmp(what, "making", 6) == 0 ? "CREATE on the topic (or on the cluster)"
							: "IDEMPOTENT_WRITE on the cluster";
		break;
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
		for (size_t i = 0; right == NULL; i++)
			if (strncmp(what, topics[i].begins, strlen(topics[i].begins)) == 0 ||
			    strncmp(why, topics[i].begins, strlen(topics[i].begins)) == 0)
				right = topics[i].right;
		break;
	default:
		return;
	}
	weir_diag_add_hint(dg, "the user lacks a right: %s", right);
}

enum weir_err weir_kafka_fail(struct weir_diag **dg, rd_kafka_resp_err_t code, const char *why, const char *fmt, ...)
{
	char what[ERROR_TEXT_BYTES];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	enum weir_err err = weir_kafka_err(code);
	err = err == WEIR_OK ? WEIR_E_IO : err;
	bool fresh = dg != NULL && *dg == NULL;
	(void)weir_diag_set(dg, err, "%s: %s", what, why != NULL && *why != 0 ? why : rd_kafka_err2str(code));
	if (fresh && weir_kafka_err_is_retriable(code))
		weir_diag_mark_retriable(*dg);
	if (fresh)
		name_right(*dg, code, what, why != NULL ? why : "");
	return err;
}

bool weir_kafka_err_is_unknown(rd_kafka_resp_err_t code)
{
	return code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
	       code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

bool weir_kafka_err_is_passed_over(rd_kafka_resp_err_t code)
{
	return weir_kafka_err_is_retriable(code) || code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
}

enum weir_err weir_kafka_fail_error(struct weir_diag **dg, rd_kafka_error_t *e, const char *what)
{
	enum weir_err err = weir_kafka_fail(dg, rd_kafka_error_code(e), rd_kafka_error_string(e), "%s", what);
	rd_kafka_error_destroy(e);
	return err;
}

/* ---- callbacks ---- */

static void say(const struct weir_kafka_log *lg, int level, const char *fmt, va_list ap)
{
	char text[1024];
	if (lg == NULL || lg->say == NULL)
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	lg->say(lg->ctx, level, text);
}

void weir_kafka_log_say(const struct weir_kafka_log *lg, int level, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(lg, level, fmt, ap);
	va_end(ap);
}

void weir_kafka_client_say(const struct weir_kafka_client *kc, int level, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(&kc->log, level, fmt, ap);
	va_end(ap);
}

/* librdkafka's own threads call this too. What goes wrong with connections and certificates comes through on_error or
 * create() as well, and a property of the other kind of client is no mistake here: these are for -v. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	static const char *const details[] = {"FAIL",        "CONFWARN", "GETPID", "ERROR",  "SSL",
					      "SSLCERTVRFY", "TXNERR",   "FATAL",  "PARTCNT"};
	const struct weir_kafka_client *kc = rk != NULL ? rd_kafka_opaque(rk) : NULL;
	if (kc == NULL || atomic_load(&kc->left))
		return;
	bool detail = false;
	for (size_t i = 0; i < WEIR_COUNT_OF(details); i++)
		detail |= strcmp(facility, details[i]) == 0;
	weir_kafka_client_say(kc, detail ? 7 : level, "librdkafka %s: %s", facility, text);
}

/* Leaves out what means nothing to a reader: "[thrd:...]: ", "host:1/bootstrap: " and "(after 0ms in state ...)". */
static void tidy_text(char *to, size_t bytes, const char *text)
{
	const char *colon;
	if (strncmp(text, "[thrd:", 6) == 0 && (colon = strstr(text, "]: ")) != NULL)
		text = colon + 3;
	if ((colon = strstr(text, "/bootstrap: ")) != NULL)
		text = colon + strlen("/bootstrap: ");
	snprintf(to, bytes, "%s", text);
	char *after = strstr(to, " (after ");
	if (after != NULL)
		*after = '\0';
}

/* librdkafka tells only that some certificate could not be verified. Its thread of a broker calls this. */
static int on_certificate(rd_kafka_t *rk, const char *name, int32_t id, int *x509_error, int depth, const char *der,
			  size_t bytes, char *why, size_t why_bytes, void *opaque)
{
	struct weir_kafka_client *kc = opaque;
	(void)rk;
	(void)name;
	(void)id;
	(void)depth;
	(void)der;
	(void)bytes;
	if (*x509_error == 0)
		return 1;
	snprintf(why, why_bytes, "%s", X509_verify_cert_error_string(*x509_error));
	atomic_store_explicit(&kc->certificate, *x509_error, memory_order_relaxed);
	return 0;
}

static void certificate_text(char *to, size_t bytes, int x509_error)
{
	const char *why = X509_verify_cert_error_string(x509_error);
	if (x509_error == X509_V_ERR_HOSTNAME_MISMATCH || x509_error == X509_V_ERR_IP_ADDRESS_MISMATCH)
		snprintf(to, bytes, "the broker's certificate is for another host name (%s)", why);
	else
		snprintf(to, bytes, "the broker's certificate is not to be trusted (%s): is ssl.ca.location its CA?",
			 why);
}

/* Connections that end while they are being secured say it with the codes of a refusal, and so does a name server that
 * does not answer now: a broker that stops, or is not up yet. */
static bool is_passing(int code, const char *reason)
{
	static const char *const words[] = {"unexpected eof", "isconnect",         "onnection reset",
					    "roken pipe",     "transport failure", "imed out"};
	if (code == RD_KAFKA_RESP_ERR__RESOLVE)
		return strstr(reason, "emporary failure") != NULL;
	if (code != RD_KAFKA_RESP_ERR__SSL && code != RD_KAFKA_RESP_ERR__AUTHENTICATION)
		return false;
	for (size_t i = 0; i < WEIR_COUNT_OF(words); i++)
		if (strstr(reason, words[i]) != NULL)
			return true;
	return false;
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
	struct weir_kafka_client *kc = opaque;
	(void)rk;
	if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
		kc->all_down = true;
		return;
	}
	int x509_error = atomic_load_explicit(&kc->certificate, memory_order_relaxed);
	if (code == RD_KAFKA_RESP_ERR__SSL && x509_error != 0 && strstr(reason, "verif") != NULL)
		certificate_text(kc->last, sizeof kc->last, x509_error);
	else
		tidy_text(kc->last, sizeof kc->last, reason);
	if (weir_kafka_err((rd_kafka_resp_err_t)code) == WEIR_E_CONF && !is_passing(code, reason)) {
		memcpy(kc->refused, kc->last, sizeof kc->refused);
		kc->refused_code = (rd_kafka_resp_err_t)code;
		kc->refused_ms = weir_kafka_now_ms();
	}
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts, void *opaque)
{
	const struct weir_kafka_client *kc = opaque;
	kc->on_rebalance(rk, err, parts, opaque);
}

/* ---- configuration ---- */

static enum weir_err set(rd_kafka_conf_t *conf, const char *name, const char *value, bool optional,
			 struct weir_diag **dg)
{
	char why[ERROR_TEXT_BYTES];
	rd_kafka_conf_res_t res = rd_kafka_conf_set(conf, name, value, why, sizeof why);
	if (res == RD_KAFKA_CONF_OK || (optional && res == RD_KAFKA_CONF_UNKNOWN))
		return WEIR_OK;
	return weir_diag_set(dg, WEIR_E_CONF, "property '%s' does not suit librdkafka %s: %s", name,
			     rd_kafka_version_str(), weir_conf_is_secret(name) ? "a bad value" : why);
}

static const struct weir_kafka_setting common[] = {
	{"client.id", "weir"},
	{"socket.nagle.disable", "true"}, /* on by default before 2.10.0 */
	{"socket.keepalive.enable", "true"},
	{"reconnect.backoff.max.ms", "5000"},
	{"allow.auto.create.topics", "false"},
#if RD_KAFKA_VERSION >= 0x020500ff
	{"enable.metrics.push", "false"}, /* an assertion in 2.5.0 to 2.5.2 */
#endif
	{NULL, NULL},
};
static const struct weir_kafka_setting reading[] = {
	{"group.id", "weir"}, /* the type wants one; nothing joins or commits */
	{"isolation.level", "read_committed"},
	{"check.crcs", "true"},
	{"fetch.wait.max.ms", "50"},
	{"fetch.message.max.bytes", "4194304"},
	{"queued.min.messages", "200000"},
	{"queued.max.messages.kbytes", "65536"},
	{"fetch.queue.backoff.ms", "10"}, /* from 2.2.0 */
	{"fetch.error.backoff.ms", "50"},
	{"auto.offset.reset", "error"},
	{NULL, NULL},
};
static const struct weir_kafka_setting reading_always[] = {
	{"enable.auto.commit", "false"},
	{"enable.auto.offset.store", "false"},
	{"enable.partition.eof", "true"},
	{NULL, NULL},
};
/* Every partition's prefetch lies in one queue. It is small, and so is a fetch: the rate is that of larger ones, the
 * memory is not (kafka_drain, 16 partitions, a reader that takes 1 us for a record: 70 MB against 335). That a full
 * queue stalls fetching is cured elsewhere (unit.c, and fetch.queue.backoff.ms). */
static const struct weir_kafka_setting member[] = {
	{"isolation.level", "read_committed"},
	{"check.crcs", "true"},
	{"session.timeout.ms", "10000"},
	{"heartbeat.interval.ms", "1000"},
	{"max.poll.interval.ms", "300000"},
	{"fetch.wait.max.ms", "200"},
	{"fetch.min.bytes", "1"},
	{"fetch.message.max.bytes", "524288"},
	{"fetch.max.bytes", "2097152"},
	{"queued.min.messages", "50000"},
	{"queued.max.messages.kbytes", "16384"},
	{"fetch.queue.backoff.ms", "2"}, /* from 2.2.0 */
	{"fetch.error.backoff.ms", "50"},
	{"auto.offset.reset", "error"}, /* nothing is jumped over in silence */
	{NULL, NULL},
};
static const struct weir_kafka_setting member_always[] = {
	{"enable.auto.commit", "false"},
	{"enable.auto.offset.store", "false"},
	{"enable.partition.eof", "true"},
	{"partition.assignment.strategy", "range"}, /* input.c may say otherwise */
	{NULL, NULL},
};
static const struct weir_kafka_setting writing[] = {
	{"linger.ms", "5"},
	{"batch.size", "1000000"},
	{"batch.num.messages", "10000"},
	{"compression.codec", "lz4"},
	{"queue.buffering.max.messages", "500000"},
	{"queue.buffering.max.kbytes", "262144"},
	{"message.timeout.ms", "60000"},
	{"retry.backoff.ms", "50"},
	{"partitioner", "murmur2_random"}, /* Java's */
	{NULL, NULL},
};
static const struct weir_kafka_setting writing_always[] = {
	{"enable.idempotence", "true"},
	{NULL, NULL},
};
static const struct weir_kafka_setting admin[] = {
	{"group.id", "weir"},
	{"socket.timeout.ms", "10000"},
	{NULL, NULL},
};
static const struct weir_kafka_setting admin_always[] = {
	{"enable.auto.commit", "false"},
	{"isolation.level", "read_uncommitted"}, /* else the end of a log is its last stable offset */
	{NULL, NULL},
};

static enum weir_err set_all(rd_kafka_conf_t *conf, const struct weir_kafka_setting *s, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	for (; err == WEIR_OK && s != NULL && s->name != NULL; s++)
		err = set(conf, s->name, s->value, true, dg);
	return err;
}

static enum weir_err set_user(rd_kafka_conf_t *conf, const struct weir_conf *cf, char role, struct weir_diag **dg)
{
	enum weir_err err = WEIR_OK;
	const char *name;
	const char *value;
	/* A narrowed property wins over one for both kinds. */
	for (int narrowed = 0; narrowed < 2; narrowed++) {
		for (uint32_t i = 0; err == WEIR_OK && weir_conf_kafka(cf, i, &name, &value); i++) {
			char of;
			const char *bare = weir_kafka_property_bare(name, &of);
			if (of == (narrowed ? role : 0))
				err = set(conf, bare, value, false, dg);
		}
	}
	return err;
}

static bool is_scram(const rd_kafka_conf_t *conf)
{
	char value[64] = "";
	size_t bytes = sizeof value;
	return rd_kafka_conf_get(conf, "sasl.mechanisms", value, &bytes) == RD_KAFKA_CONF_OK &&
	       strncmp(value, "SCRAM-", 6) == 0;
}

/* Of a file that is not there OpenSSL says "system lib". */
static enum weir_err not_taken(const rd_kafka_conf_t *conf, const char *why, struct weir_diag **dg)
{
	static const char *const files[] = {"ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
					    "ssl.keystore.location", "ssl.crl.location"};
	for (size_t i = 0; i < WEIR_COUNT_OF(files); i++) {
		char path[4096] = "";
		size_t bytes = sizeof path;
		if (rd_kafka_conf_get(conf, files[i], path, &bytes) == RD_KAFKA_CONF_OK && path[0] != 0 &&
		    strcmp(path, "probe") != 0 && access(path, R_OK) != 0)
			return weir_diag_set(dg, WEIR_E_CONF, "property '%s': %s cannot be read: %s", files[i], path,
					     strerror(errno));
	}
	return weir_diag_set(dg, WEIR_E_CONF, "librdkafka does not take this configuration: %s", why);
}

typedef void on_delivery_fn(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque);

static enum weir_err create(struct weir_kafka_client **out, const struct weir_conf *cf, enum weir_kafka_role role,
			    const struct weir_kafka_setting *extra, const struct weir_kafka_setting *forced,
			    on_delivery_fn *on_delivery, const struct weir_kafka_log *lg, struct weir_diag **dg)
{
	static const struct weir_kafka_setting *const defaults[] = {reading, writing, admin, member};
	static const struct weir_kafka_setting *const always[] = {reading_always, writing_always, admin_always,
								  member_always};
	const char *brokers = weir_conf_get(cf, "bootstrap.servers");
	if (brokers == NULL || *brokers == 0)
		return weir_diag_set(dg, WEIR_E_CONF, "which brokers? -b HOST:PORT (bootstrap.servers)");
	if (strncmp(brokers, "file:", 5) == 0)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "%s is a folder of recorded topics: brokers are wanted here, -b HOST:PORT",
				     brokers);
	struct weir_kafka_client *kc = weir_xcalloc(1, sizeof *kc);
	if (lg != NULL)
		kc->log = *lg;
	kc->brokers = weir_xstrdup(brokers);
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set_opaque(conf, kc);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rd_kafka_conf_set_error_cb(conf, on_error);
	(void)rd_kafka_conf_set_ssl_cert_verify_cb(conf, on_certificate); /* a librdkafka without TLS says no */
	if (on_delivery != NULL)
		rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	if (role == WEIR_KAFKA_MEMBER)
		rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
	enum weir_err err = set_all(conf, common, dg);
	if (err == WEIR_OK)
		err = set_all(conf, defaults[role], dg);
	if (err == WEIR_OK)
		err = set_all(conf, extra, dg);
	if (err == WEIR_OK)
		err = set_user(conf, cf, role == WEIR_KAFKA_WRITE ? 'p' : 'c', dg);
	if (err == WEIR_OK)
		err = set_all(conf, always[role], dg);
	if (err == WEIR_OK)
		err = set_all(conf, forced, dg);
	if (err == WEIR_OK)
		err = set(conf, "bootstrap.servers", brokers, false, dg);
	if (err == WEIR_OK) {
		char why[ERROR_TEXT_BYTES];
		kc->scram = is_scram(conf);
		kc->rk = rd_kafka_new(role == WEIR_KAFKA_WRITE ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, why,
				      sizeof why);
		if (kc->rk == NULL)
			err = not_taken(conf, why, dg);
	}
	if (err != WEIR_OK) {
		rd_kafka_conf_destroy(conf);
		weir_kafka_client_destroy(kc);
		return err;
	}
	*out = kc;
	return WEIR_OK;
}

enum weir_err weir_kafka_client_create(struct weir_kafka_client **out, const struct weir_conf *cf,
				       enum weir_kafka_role role, const struct weir_kafka_setting *extra,
				       const struct weir_kafka_log *lg, struct weir_diag **dg)
{
	return create(out, cf, role, extra, NULL, NULL, lg, dg);
}

enum weir_err weir_kafka_client_create_writer(struct weir_kafka_client **out, const struct weir_conf *cf,
					      void (*on_delivery)(rd_kafka_t *rk, const rd_kafka_message_t *m,
								  void *opaque),
					      const struct weir_kafka_log *lg, struct weir_diag **dg)
{
	return create(out, cf, WEIR_KAFKA_WRITE, NULL, NULL, on_delivery, lg, dg);
}

enum weir_err
weir_kafka_client_create_producer(struct weir_kafka_client **out, const struct weir_conf *cf,
				  const struct weir_kafka_setting *extra, const struct weir_kafka_setting *forced,
				  void (*on_delivery)(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque),
				  void *user, const struct weir_kafka_log *lg, struct weir_diag **dg)
{
	enum weir_err err = create(out, cf, WEIR_KAFKA_WRITE, extra, forced, on_delivery, lg, dg);
	if (err == WEIR_OK)
		(*out)->user = user;
	return err;
}

enum weir_err weir_kafka_client_create_member(struct weir_kafka_client **out, const struct weir_conf *cf,
					      const struct weir_kafka_setting *extra,
					      const struct weir_kafka_setting *forced,
					      void (*rebalance)(rd_kafka_t *rk, rd_kafka_resp_err_t err,
								rd_kafka_topic_partition_list_t *parts, void *opaque),
					      void *user, const struct weir_kafka_log *lg, struct weir_diag **dg)
{
	enum weir_err err = create(out, cf, WEIR_KAFKA_MEMBER, extra, forced, NULL, lg, dg);
	if (err == WEIR_OK) {
		(*out)->user = user;
		(*out)->on_rebalance = rebalance; /* before anything is subscribed to */
	}
	return err;
}

void *weir_kafka_client_user(const struct weir_kafka_client *kc)
{
	return kc->user;
}

static void *end_handle(void *ctx)
{
	struct weir_kafka_client *kc = ctx;
	rd_kafka_destroy(kc->rk);
	atomic_store(&kc->ended, true);
	return NULL;
}

/* librdkafka may wait for itself for ever there (2.0.2, of a consumer whose topic has gone). False: it does. */
static bool end_in_time(struct weir_kafka_client *kc)
{
	struct weir_kafka_wait w;
	pthread_t thread;
	if (pthread_create(&thread, NULL, end_handle, kc) != 0) {
		rd_kafka_destroy(kc->rk);
		return true;
	}
	weir_kafka_wait_begin(&w, END_MS);
	while (!atomic_load(&kc->ended) && weir_kafka_wait_left(&w, END_TURN_MS) != 0)
		usleep(END_LOOK_US);
	if (atomic_load(&kc->ended)) {
		(void)pthread_join(thread, NULL);
		return true;
	}
	(void)pthread_detach(thread);
	return false;
}

void weir_kafka_client_destroy(struct weir_kafka_client *kc)
{
	if (kc == NULL)
		return;
	if (kc->rk != NULL && !end_in_time(kc)) {
		weir_kafka_client_say(kc, 7, "librdkafka does not let go of a client: it is left behind");
		atomic_store(&kc->left, true);
		return; /* its threads still have kc */
	}
	free(kc->brokers);
	free(kc);
}

rd_kafka_t *weir_kafka_client_handle(const struct weir_kafka_client *kc)
{
	return kc->rk;
}

const char *weir_kafka_client_brokers(const struct weir_kafka_client *kc)
{
	return kc->brokers;
}

int64_t weir_kafka_now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- waiting ---- */

void weir_kafka_wait_begin(struct weir_kafka_wait *w, int64_t wait_ms)
{
	*w = (struct weir_kafka_wait){wait_ms, weir_kafka_now_ms()};
}

int64_t weir_kafka_wait_left(struct weir_kafka_wait *w, int64_t turn_ms)
{
	int64_t now = weir_kafka_now_ms(), gone = now - w->seen_ms;
	w->seen_ms = now;
	w->left_ms -= gone < turn_ms ? gone : turn_ms;
	w->left_ms = w->left_ms > 0 ? w->left_ms : 0;
	return w->left_ms;
}

void weir_kafka_client_poll(struct weir_kafka_client *kc, int timeout_ms)
{
	(void)rd_kafka_poll(kc->rk, timeout_ms);
}

enum weir_err weir_kafka_client_fatal(struct weir_kafka_client *kc, struct weir_diag **dg)
{
	char why[ERROR_TEXT_BYTES] = "";
	rd_kafka_resp_err_t code = rd_kafka_fatal_error(kc->rk, why, sizeof why);
	return code == 0 ? WEIR_OK : weir_kafka_fail(dg, code, why, "librdkafka gave up");
}

const char *weir_kafka_client_last(const struct weir_kafka_client *kc)
{
	return kc->last;
}

const char *weir_kafka_client_down(const struct weir_kafka_client *kc)
{
	return kc->all_down ? kc->last : NULL;
}

void weir_kafka_client_is_up(struct weir_kafka_client *kc)
{
	kc->all_down = false;
}

static bool is_refused(const struct weir_kafka_client *kc)
{
	return kc->refused_code != 0 && weir_kafka_now_ms() - kc->refused_ms < REFUSED_MS;
}

const char *weir_kafka_client_refusal(const struct weir_kafka_client *kc)
{
	return is_refused(kc) ? kc->refused : NULL;
}

static enum weir_err refuse(const struct weir_kafka_client *kc, struct weir_diag **dg)
{
	bool fresh = dg != NULL && *dg == NULL;
	enum weir_err err = weir_kafka_fail(dg, kc->refused_code, kc->refused, "%s", kc->brokers);
	bool login = kc->refused_code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
		     kc->refused_code == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED;
	/* It sends a nonce that brokers from 4.0 on do not take. */
	if (fresh && login && kc->scram && rd_kafka_version() < 0x020601ff)
		weir_diag_add_hint(*dg,
				   "if user and password are right: librdkafka %s cannot log in to Kafka 4 by SCRAM, "
				   "2.6.1 can; sasl.mechanisms=PLAIN works with both",
				   rd_kafka_version_str());
	return err;
}

enum weir_err weir_kafka_client_check(struct weir_kafka_client *kc, struct weir_diag **dg)
{
	weir_kafka_client_poll(kc, 0);
	enum weir_err err = weir_kafka_client_fatal(kc, dg);
	if (err != WEIR_OK)
		return err;
	return is_refused(kc) && kc->all_down ? refuse(kc, dg) : WEIR_OK;
}

/* A broker that refuses us may stand beside one that does not: decided once none is left. */
static enum weir_err wait_over(struct weir_kafka_client *kc, bool timed_out, int64_t wait_ms, struct weir_diag **dg)
{
	if (is_refused(kc) && (kc->all_down || timed_out))
		return refuse(kc, dg);
	if (!timed_out)
		return WEIR_OK;
	return weir_kafka_fail(dg, RD_KAFKA_RESP_ERR__TRANSPORT, kc->last,
			       "no broker at %s answered within %lld.%lld s", kc->brokers, (long long)(wait_ms / 1000),
			       (long long)(wait_ms % 1000 / 100));
}

enum weir_err weir_kafka_client_metadata(struct weir_kafka_client *kc, const char *topic, int64_t wait_ms,
					 const struct rd_kafka_metadata **out, struct weir_diag **dg)
{
	rd_kafka_topic_t *rkt = NULL;
	if (topic != NULL) {
		rkt = rd_kafka_topic_new(kc->rk, topic, NULL);
		if (rkt == NULL)
			return weir_kafka_fail(dg, rd_kafka_last_error(), NULL, "topic %s", topic);
	}
	enum weir_err err = WEIR_OK;
	int64_t left = wait_ms;
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, wait_ms);
	/* Errors are heard between tries: short ones first, so that a refusal is told soon, then longer ones, for a
	 * broker that is slow to answer. */
	int64_t longest = METADATA_TRY_MS;
	for (bool done = false; err == WEIR_OK && !done; longest += longest < 4000 ? longest : 0) {
		int try_ms = left > longest ? (int)longest : left > 1 ? (int)left : 1;
		rd_kafka_resp_err_t code = rd_kafka_metadata(kc->rk, 0, rkt, out, try_ms);
		weir_kafka_client_poll(kc, 0);
		done = code == RD_KAFKA_RESP_ERR_NO_ERROR;
		if (done)
			break;
		left = weir_kafka_wait_left(&w, try_ms + RETRY_MS);
		if (!weir_kafka_err_is_retriable(code))
			err = weir_kafka_fail(dg, code, NULL, "%s", kc->brokers);
		else
			err = wait_over(kc, left == 0, wait_ms, dg);
		if (err == WEIR_OK) /* not to spin where the call comes back at once */
			weir_kafka_client_poll(kc, RETRY_MS);
	}
	if (err == WEIR_OK)
		kc->all_down = false;
	if (rkt != NULL)
		rd_kafka_topic_destroy(rkt);
	return err;
}

/* *brokers: how many there are. */
static enum weir_err ask_partitions(struct weir_kafka_client *kc, const char *topic, uint32_t *count, int *brokers,
				    struct weir_diag **dg)
{
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, WEIR_KAFKA_WAIT_MS);
	for (;;) {
		const struct rd_kafka_metadata *md;
		enum weir_err err = weir_kafka_client_metadata(kc, topic, WEIR_KAFKA_WAIT_MS, &md, dg);
		if (err != WEIR_OK)
			return err;
		rd_kafka_resp_err_t code =
			md->topic_cnt == 1 ? md->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
		*count = code == 0 ? (uint32_t)md->topics[0].partition_cnt : 0;
		*brokers = md->broker_cnt;
		rd_kafka_metadata_destroy(md);
		if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
			return WEIR_OK;
		if (!weir_kafka_err_is_retriable(code) || weir_kafka_wait_left(&w, LEADERS_TURN_MS) == 0)
			return weir_kafka_fail(dg, code, NULL, "topic %s", topic);
		weir_kafka_client_poll(kc, 100); /* its leaders are being chosen */
	}
}

enum weir_err weir_kafka_client_partitions(struct weir_kafka_client *kc, const char *topic, uint32_t *count,
					   struct weir_diag **dg)
{
	int brokers;
	return ask_partitions(kc, topic, count, &brokers, dg);
}

enum weir_err weir_kafka_client_await_topic(struct weir_kafka_client *kc, const char *topic, uint32_t *count,
					    struct weir_diag **dg)
{
	enum { ANSWERS = 3, ONE_MS = 1000, SEVERAL_MS = 3000, POLL_MS = 200, TURN_MS = 500 };
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, ONE_MS);
	for (uint32_t answers = 0;;) {
		int brokers;
		enum weir_err err = ask_partitions(kc, topic, count, &brokers, dg);
		if (err != WEIR_OK || *count != 0)
			return err;
		if (answers == 0 && brokers > 1)
			weir_kafka_wait_begin(&w, SEVERAL_MS);
		if (++answers > ANSWERS && weir_kafka_wait_left(&w, TURN_MS) == 0)
			return WEIR_OK;
		weir_kafka_client_poll(kc, POLL_MS);
	}
}

enum weir_err weir_kafka_client_confirm(struct weir_kafka_client *kc, const char *topic, uint32_t partitions,
					struct weir_diag **dg)
{
	uint32_t count;
	enum weir_err err = weir_kafka_client_await_topic(kc, topic, &count, dg);
	if (err == WEIR_OK && count == 0)
		return weir_diag_set(dg, WEIR_E_CONF, "topic %s is not there any more", topic);
	if (err == WEIR_OK && count < partitions)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "topic %s had %u partitions when reading began and has %u now: was it made anew?",
				     topic, partitions, count);
	return err;
}
