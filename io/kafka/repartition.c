/* repartition.c: makes the repartition topics of an application, or its changelog, before it subscribes to them
 * (log.h).
 * @thread init */
#include "io/kafka/client.h"
#include "io/kafka/log.h"
#include "io/kafka/topic.h"

/* Records go once every reader has committed them (log.c), never by age: their times may lie in the past. */
static const struct weir_kafka_setting settings[] = {
	{"cleanup.policy", "delete"}, {"retention.ms", "-1"}, {NULL, NULL}};

/* Where it may be made, one answer is enough: whoever makes it finds out. */
static enum weir_err look_for(struct weir_kafka_client *kc, const char *topic, bool create, uint32_t *partitions,
			      struct weir_diag **dg)
{
	return create ? weir_kafka_client_partitions(kc, topic, partitions, dg)
		      : weir_kafka_client_await_topic(kc, topic, partitions, dg);
}

static enum weir_err ensure(struct weir_kafka_client *kc, const struct weir_kafka_repartition_spec *spec,
			    struct weir_diag **dg)
{
	uint32_t most = 0, partitions = 0;
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < spec->source_count && err == WEIR_OK; i++) {
		uint32_t n = 0;
		err = weir_kafka_client_await_topic(kc, spec->sources[i], &n, dg);
		if (err == WEIR_OK && n == 0)
			err = weir_diag_set(dg, WEIR_E_CONF, "no topic %s on %s", spec->sources[i],
					    weir_kafka_client_brokers(kc));
		if (err == WEIR_OK && most != 0 && n != most)
			err = weir_diag_set(
				dg, WEIR_E_CONF,
				"exchange = topic wants sources of equal partition counts: %s has %u, %s has %u",
				spec->sources[0], most, spec->sources[i], n);
		most = most == 0 ? n : most;
	}
	for (uint32_t i = 0; i < spec->topic_count && err == WEIR_OK; i++) {
		bool created = false;
		err = look_for(kc, spec->topics[i], spec->create, &partitions, dg);
		if (err == WEIR_OK && partitions == 0 && !spec->create)
			err = weir_diag_set(dg, WEIR_E_CONF, "no topic %s on %s, and topics.create is false",
					    spec->topics[i], weir_kafka_client_brokers(kc));
		if (err == WEIR_OK && partitions == 0)
			err = weir_kafka_topic_create(kc, spec->topics[i], most, settings, &created, &partitions, dg);
		if (err == WEIR_OK && partitions != most)
			err = weir_diag_set(
				dg, WEIR_E_CONF,
				"topic %s has %u partitions, its application's sources have %u: an instance "
				"takes partition i of all of them. To start over: weir reset %s -b %s --execute",
				spec->topics[i], partitions, most, spec->app, weir_kafka_client_brokers(kc));
		if (err == WEIR_OK && created)
			weir_kafka_client_say(kc, 6, "made topic %s with %u partitions", spec->topics[i], partitions);
	}
	return err;
}

static enum weir_err wait_broker(struct weir_kafka_client *kc, int64_t broker_wait_ms, const _Atomic bool *stop,
				 struct weir_diag **dg)
{
	struct weir_kafka_wait w;
	weir_kafka_wait_begin(&w, broker_wait_ms);
	for (;;) {
		const struct rd_kafka_metadata *md;
		int64_t left = broker_wait_ms < 0 ? WEIR_KAFKA_WAIT_MS : weir_kafka_wait_left(&w, WEIR_KAFKA_WAIT_MS);
		int64_t wait_ms = left < WEIR_KAFKA_WAIT_MS ? left : WEIR_KAFKA_WAIT_MS;
		enum weir_err err = weir_kafka_client_metadata(kc, NULL, wait_ms, &md, dg);
		if (err == WEIR_OK)
			rd_kafka_metadata_destroy(md);
		bool stopped = stop && atomic_load_explicit(stop, memory_order_relaxed);
		bool over = broker_wait_ms >= 0 && left <= WEIR_KAFKA_WAIT_MS;
		if (err != WEIR_E_UNAVAILABLE || stopped || over)
			return err;
		weir_kafka_client_say(kc, 4, "waiting: %s", weir_diag_text(*dg));
		weir_diag_destroy(*dg);
		*dg = NULL;
	}
}

enum weir_err weir_kafka_repartition_create(const struct weir_conf *cf, const struct weir_kafka_repartition_spec *spec,
					    const struct weir_kafka_log *lg, struct weir_diag **dg)
{
	struct weir_kafka_client *kc = NULL;
	enum weir_err err = weir_kafka_client_create(&kc, cf, WEIR_KAFKA_ADMIN, NULL, lg, dg);
	if (err == WEIR_OK)
		err = wait_broker(kc, spec->broker_wait_ms, spec->stop, dg);
	if (err == WEIR_OK)
		err = ensure(kc, spec, dg);
	weir_kafka_client_destroy(kc);
	return err;
}

enum weir_err weir_kafka_changelog_create(const struct weir_conf *cf, const struct weir_kafka_changelog_spec *spec,
					  const struct weir_kafka_log *lg, struct weir_diag **dg)
{
	struct weir_kafka_client *kc = NULL;
	uint32_t partitions = 0;
	bool created = false;
	enum weir_err err = weir_kafka_client_create(&kc, cf, WEIR_KAFKA_ADMIN, NULL, lg, dg);
	if (err == WEIR_OK)
		err = wait_broker(kc, spec->broker_wait_ms, spec->stop, dg);
	if (err == WEIR_OK)
		err = look_for(kc, spec->topic, spec->create, &partitions, dg);
	if (err == WEIR_OK && partitions == 0 && !spec->create)
		err = weir_diag_set(dg, WEIR_E_CONF, "no topic %s on %s, and topics.create is false", spec->topic,
				    weir_kafka_client_brokers(kc));
	if (err == WEIR_OK && partitions == 0)
		err = weir_kafka_topic_create(kc, spec->topic, spec->partitions, weir_kafka_changelog_settings,
					      &created, &partitions, dg);
	if (err == WEIR_OK && created)
		weir_kafka_client_say(kc, 6, "made topic %s with %u partitions", spec->topic, partitions);
	weir_kafka_client_destroy(kc);
	return err;
}
