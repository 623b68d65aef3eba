/* topic.c: looks topics up, makes them, reads their settings (topic.h). @thread: the client's owner */
#include "io/kafka/topic.h"

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/time/civil.h"

const struct weir_kafka_setting weir_kafka_changelog_settings[] = {{"cleanup.policy", "compact"},
								   {"segment.bytes", "16777216"},
								   {"min.cleanable.dirty.ratio", "0.1"},
								   {NULL, NULL}};

enum { ADMIN_MS = 15000, CREATE_MS = 25000, LEADER_MS = 30000, LEADER_TURN_MS = 500, LEADER_POLL_MS = 50 };

/* ---- partitions ---- */

static enum weir_err look(struct weir_kafka_client *kc, const char *name, uint32_t *partitions, bool *led,
			  struct weir_diag **dg)
{
	const struct rd_kafka_metadata *md;
	enum weir_err err = weir_kafka_client_metadata(kc, name, WEIR_KAFKA_WAIT_MS, &md, dg);
	if (err != WEIR_OK)
		return err;
	const rd_kafka_metadata_topic_t *t = md->topic_cnt == 1 ? &md->topics[0] : NULL;
	rd_kafka_resp_err_t code = t != NULL ? t->err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	*partitions = code == 0 ? (uint32_t)t->partition_cnt : 0;
	*led = *partitions > 0;
	for (uint32_t p = 0; p < *partitions; p++)
		*led &= t->partitions[p].leader >= 0;
	rd_kafka_metadata_destroy(md);
	if (code == 0 || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || weir_kafka_err_is_retriable(code))
		return WEIR_OK;
	return weir_kafka_fail(dg, code, NULL, "topic %s", name);
}

enum weir_err weir_kafka_topic_wait(struct weir_kafka_client *kc, const char *name, uint32_t *partitions,
				    struct weir_diag **dg)
{
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, LEADER_MS);
	for (;;) {
		bool led;
		enum weir_err err = look(kc, name, partitions, &led, dg);
		if (err != WEIR_OK || led)
			return err;
		if (weir_kafka_wait_left(&w, LEADER_TURN_MS) == 0)
			return weir_kafka_fail(dg, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, NULL,
					       "waiting for the leaders of topic %s", name);
		weir_kafka_client_poll(kc, LEADER_POLL_MS);
	}
}

/* ---- making ---- */

static enum weir_err create_result(rd_kafka_event_t *ev, const char *name, bool *created, struct weir_diag **dg)
{
	size_t n = 0;
	if (ev == NULL)
		return weir_kafka_fail(dg, RD_KAFKA_RESP_ERR__TIMED_OUT, NULL, "making topic %s", name);
	if (rd_kafka_event_error(ev) != 0)
		return weir_kafka_fail(dg, rd_kafka_event_error(ev), rd_kafka_event_error_string(ev), "making topic %s",
				       name);
	const rd_kafka_topic_result_t **res =
		rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(ev), &n);
	rd_kafka_resp_err_t code = n == 1 ? rd_kafka_topic_result_error(res[0]) : RD_KAFKA_RESP_ERR_UNKNOWN;
	*created = code == 0;
	if (code == 0 || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) /* by somebody else just now */
		return WEIR_OK;
	return weir_kafka_fail(dg, code, n == 1 ? rd_kafka_topic_result_error_string(res[0]) : NULL, "making topic %s",
			       name);
}

static enum weir_err create_once(struct weir_kafka_client *kc, rd_kafka_NewTopic_t *nt, const char *name, bool *created,
				 struct weir_diag **dg)
{
	char why[512];
	rd_kafka_t *rk = weir_kafka_client_handle(kc);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
	(void)rd_kafka_AdminOptions_set_request_timeout(options, ADMIN_MS, why, sizeof why);
	(void)rd_kafka_AdminOptions_set_operation_timeout(options, ADMIN_MS, why, sizeof why);
	rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
	rd_kafka_CreateTopics(rk, &nt, 1, options, q);
	rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 2 * ADMIN_MS);
	enum weir_err err = create_result(ev, name, created, dg);
	rd_kafka_event_destroy(ev);
	rd_kafka_queue_destroy(q);
	rd_kafka_AdminOptions_destroy(options);
	return err;
}

enum weir_err weir_kafka_topic_create(struct weir_kafka_client *kc, const char *name, uint32_t partitions,
				      const struct weir_kafka_setting *config, bool *created, uint32_t *partitions_out,
				      struct weir_diag **dg)
{
	char why[512];
	rd_kafka_NewTopic_t *nt = rd_kafka_NewTopic_new(name, (int)partitions, -1, why, sizeof why);
	if (nt == NULL)
		return weir_diag_set(dg, WEIR_E_CONF, "making topic %s: %s", name, why);
	for (; config != NULL && config->name != NULL; config++)
		(void)rd_kafka_NewTopic_set_config(nt, config->name, config->value);
	/* Asked again where no answer came: a request that got through, or this process stood still meanwhile. That it
	 * is there by then is fine. */
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, CREATE_MS);
	enum weir_err err;
	for (;;) {
		struct weir_diag *own = NULL;
		err = create_once(kc, nt, name, created, &own);
		if (err != WEIR_E_UNAVAILABLE || weir_kafka_wait_left(&w, ADMIN_MS) == 0) {
			if (dg != NULL && *dg == NULL)
				*dg = own;
			else
				weir_diag_destroy(own);
			break;
		}
		weir_diag_destroy(own);
		weir_kafka_client_poll(kc, 100);
	}
	rd_kafka_NewTopic_destroy(nt);
	/* The brokers tell each other of it in their own time. */
	return err == WEIR_OK ? weir_kafka_topic_wait(kc, name, partitions_out, dg) : err;
}

/* ---- settings ---- */

static void take_setting(struct weir_kafka_topic_settings *out, const char *name, const char *value)
{
	if (strcmp(name, "cleanup.policy") == 0) {
		out->compact = strstr(value, "compact") != NULL;
		out->remove = strstr(value, "delete") != NULL;
	} else if (strcmp(name, "retention.ms") == 0) {
		out->retention_ms = strtoll(value, NULL, 10);
	} else if (strcmp(name, "max.message.bytes") == 0) {
		out->message_bytes_max = strtoll(value, NULL, 10);
	} else if (strcmp(name, "message.timestamp.type") == 0) {
		out->append_time = strcmp(value, "LogAppendTime") == 0;
	}
}

static rd_kafka_resp_err_t take_settings(rd_kafka_event_t *ev, struct weir_kafka_topic_settings *out)
{
	size_t n = 0, entries = 0;
	if (ev == NULL)
		return RD_KAFKA_RESP_ERR__TIMED_OUT;
	if (rd_kafka_event_error(ev) != 0)
		return rd_kafka_event_error(ev);
	const rd_kafka_ConfigResource_t **res =
		rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(ev), &n);
	if (n != 1)
		return RD_KAFKA_RESP_ERR_UNKNOWN;
	if (rd_kafka_ConfigResource_error(res[0]) != 0)
		return rd_kafka_ConfigResource_error(res[0]);
	const rd_kafka_ConfigEntry_t **entry = rd_kafka_ConfigResource_configs(res[0], &entries);
	for (size_t i = 0; i < entries; i++)
		if (rd_kafka_ConfigEntry_value(entry[i]) != NULL)
			take_setting(out, rd_kafka_ConfigEntry_name(entry[i]), rd_kafka_ConfigEntry_value(entry[i]));
	out->known = true;
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The request's time-out is socket.timeout.ms. */
void weir_kafka_topic_settings(struct weir_kafka_client *kc, const char *name, struct weir_kafka_topic_settings *out)
{
	rd_kafka_t *rk = weir_kafka_client_handle(kc);
	*out = (struct weir_kafka_topic_settings){.retention_ms = -1, .message_bytes_max = INT64_MAX};
	rd_kafka_ConfigResource_t *topic = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name);
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
	rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
	rd_kafka_DescribeConfigs(rk, &topic, 1, options, q);
	rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 2 * ADMIN_MS);
	rd_kafka_resp_err_t code = take_settings(ev, out);
	if (code != 0)
		weir_kafka_client_say(kc, 5, "the settings of topic %s cannot be looked up: %s", name,
				      rd_kafka_err2str(code));
	rd_kafka_event_destroy(ev);
	rd_kafka_queue_destroy(q);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_ConfigResource_destroy(topic);
}

const char *weir_kafka_topic_old(char text[WEIR_KAFKA_TOPIC_OLD_MAX], const char *name, int64_t retention_ms,
				 int64_t timestamp)
{
	char time[WEIR_CIVIL_TEXT_MAX];
	int bytes = (int)weir_civil_print_timestamp(timestamp, 1, ' ', true, time);
	snprintf(text, WEIR_KAFKA_TOPIC_OLD_MAX,
		 "topic %.250s keeps records for %" PRId64 " s by their own times, and results are older than that "
		 "(%.*s): the broker deletes them soon. Set its retention.ms to -1",
		 name, retention_ms / 1000, bytes, time);
	return text;
}
