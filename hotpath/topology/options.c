/* options.c: table options (WITH, option strings) from text to struct weir_table_options. One list of names with the
 * connectors that take each, its kind and its allowed values; a name outside the list of its connector is an error that
 * names the nearest one. Cold path, @thread init. */
#include "hotpath/topology/options.h"

#include <stdio.h>
#include <strings.h>

enum { OPTIONS_MAX = 1000, PARTITIONS_MAX = 10000 };

/* Connectors as bits, in the order of enum weir_connector. */
#define BIT(c)     (1u << (c))
#define RECORDED   BIT(WEIR_CONNECTOR_RECORDED)
#define KAFKA      BIT(WEIR_CONNECTOR_KAFKA)
#define UPSERT     BIT(WEIR_CONNECTOR_UPSERT_KAFKA)
#define DATAGEN    BIT(WEIR_CONNECTOR_DATAGEN)
#define PRINT      BIT(WEIR_CONNECTOR_PRINT)
#define BLACKHOLE  BIT(WEIR_CONNECTOR_BLACKHOLE)
#define FILESYSTEM BIT(WEIR_CONNECTOR_FILESYSTEM)
#define TOPICS     (RECORDED | KAFKA | UPSERT)
#define SOURCES    (TOPICS | DATAGEN | FILESYSTEM)
#define EVERYTHING (SOURCES | PRINT | BLACKHOLE)

static const struct {
	const char *name;
	const char *takes; /* for messages: what it may be used as */
} connectors[] = {
	[WEIR_CONNECTOR_NONE] = {"", ""},
	[WEIR_CONNECTOR_RECORDED] = {"recorded", "source and sink"},
	[WEIR_CONNECTOR_KAFKA] = {"kafka", "source and sink"},
	[WEIR_CONNECTOR_UPSERT_KAFKA] = {"upsert-kafka", "source and sink"},
	[WEIR_CONNECTOR_DATAGEN] = {"datagen", "source"},
	[WEIR_CONNECTOR_PRINT] = {"print", "sink"},
	[WEIR_CONNECTOR_BLACKHOLE] = {"blackhole", "sink"},
	[WEIR_CONNECTOR_FILESYSTEM] = {"filesystem", "source"},
};

enum option_kind {
	OPT_TEXT, /* any text but an empty one */
	OPT_ANY,  /* any text */
	OPT_WORD, /* one of the words in values; the table's own spelling is stored */
	OPT_BOOL,
	OPT_I64, /* within [low, high] */
	OPT_I32,
	OPT_U64,
	OPT_MILLIS,   /* a number of milliseconds, kept as text */
	OPT_OFFSETS,  /* partition:0,offset:42;..., kept as text */
	OPT_DURATION, /* kept among the others */
	OPT_ERRORS,
	OPT_END,
	OPT_KEYS,   /* names separated by ';' */
	OPT_TOPICS, /* topic names separated by ';', each once */
	OPT_TOPIC,  /* one */
	OPT_IGNORED /* accepted so that a Flink file runs unchanged; has no effect */
};

struct option_def {
	const char *name;
	uint32_t connectors;
	enum option_kind kind;
	size_t at;          /* offset in struct weir_table_options */
	const char *values; /* OPT_WORD: separated by '|' */
	int64_t low, high;
};

#define AT(member) offsetof(struct weir_table_options, member)
static const struct option_def defs[] = {
	{"connector", EVERYTHING, OPT_TEXT, SIZE_MAX, NULL, 0, 0},
	{"path", RECORDED | FILESYSTEM, OPT_TEXT, AT(path), NULL, 0, 0},
	{"topic", TOPICS, OPT_TOPICS, AT(topic), NULL, 0, 0},
	{"topic-pattern", RECORDED | KAFKA, OPT_TEXT, AT(topic_pattern), NULL, 0, 0},
	{"properties.bootstrap.servers", KAFKA | UPSERT, OPT_TEXT, AT(bootstrap_servers), NULL, 0, 0},
	{"properties.group.id", TOPICS, OPT_TEXT, AT(group_id), NULL, 0, 0},
	{"properties.isolation.level", TOPICS, OPT_WORD, AT(isolation_level), "read_committed|read_uncommitted", 0, 0},
	{"format", TOPICS | FILESYSTEM, OPT_TEXT, SIZE_MAX, NULL, 0, 0},
	{"value.format", TOPICS, OPT_TEXT, SIZE_MAX, NULL, 0, 0},
	{"key.format", TOPICS, OPT_TEXT, SIZE_MAX, NULL, 0, 0},
	{"key.fields", RECORDED | KAFKA, OPT_KEYS, AT(key_fields), NULL, 0, 0},
	{"global", TOPICS, OPT_BOOL, AT(global), NULL, 0, 0},
	{"key.fields-prefix", TOPICS, OPT_ANY, AT(key_fields_prefix), NULL, 0, 0},
	{"value.fields-include", TOPICS, OPT_WORD, SIZE_MAX, "ALL|EXCEPT_KEY", 0, 0},
	{"scan.startup.mode", RECORDED, OPT_WORD, AT(scan_startup_mode),
	 "earliest-offset|latest-offset|timestamp|specific-offsets", 0, 0},
	{"scan.startup.mode", KAFKA, OPT_WORD, AT(scan_startup_mode),
	 "earliest-offset|latest-offset|group-offsets|timestamp|specific-offsets", 0, 0},
	{"scan.startup.timestamp-millis", RECORDED | KAFKA, OPT_MILLIS, AT(scan_startup_timestamp), NULL, 0, 0},
	{"scan.startup.specific-offsets", RECORDED | KAFKA, OPT_OFFSETS, AT(scan_startup_offsets), NULL, 0, 0},
	{"scan.bounded.mode", RECORDED, OPT_WORD, AT(scan_bounded_mode),
	 "latest-offset|unbounded|timestamp|specific-offsets", 0, 0},
	{"scan.bounded.mode", KAFKA | UPSERT, OPT_WORD, AT(scan_bounded_mode),
	 "unbounded|latest-offset|group-offsets|timestamp|specific-offsets", 0, 0},
	{"scan.bounded.timestamp-millis", TOPICS, OPT_MILLIS, AT(scan_bounded_timestamp), NULL, 0, 0},
	{"scan.bounded.specific-offsets", TOPICS, OPT_OFFSETS, AT(scan_bounded_offsets), NULL, 0, 0},
	{"scan.damaged", RECORDED, OPT_WORD, AT(scan_damaged), "stop|skip", 0, 0},
	{"scan.end-of-file", RECORDED, OPT_WORD, AT(scan_end_of_file), "wait|abort", 0, 0},
	{"scan.topic-partition-discovery.interval", KAFKA | UPSERT, OPT_DURATION, SIZE_MAX, NULL, 0, 0},
	{"scan.parallelism", TOPICS | DATAGEN, OPT_IGNORED, SIZE_MAX, NULL, 0, 0},
	{"sink.partitions", TOPICS, OPT_I32, AT(sink_partitions), NULL, 1, PARTITIONS_MAX},
	{"sink.compression", TOPICS, OPT_WORD, AT(sink_compression), "none|gzip|snappy|lz4|zstd", 0, 0},
	{"sink.partitioner", RECORDED, OPT_WORD, AT(sink_partitioner), "default", 0, 0},
	{"sink.partitioner", KAFKA, OPT_WORD, AT(sink_partitioner), "default|fixed|round-robin", 0, 0},
	{"sink.delivery-guarantee", TOPICS, OPT_WORD, AT(sink_delivery_guarantee), "at-least-once|exactly-once|none", 0,
	 0},
	{"sink.transactional-id-prefix", TOPICS, OPT_TEXT, AT(sink_transactional_id_prefix), NULL, 0, 0},
	{"sink.parallelism", TOPICS | PRINT | BLACKHOLE, OPT_IGNORED, SIZE_MAX, NULL, 0, 0},
	{"errors.policy", SOURCES, OPT_ERRORS, AT(errors_policy), NULL, 0, 0},
	{"errors.deadletterqueue.topic.name", SOURCES, OPT_TOPIC, AT(dead_letter_topic), NULL, 0, 0},
	{"late.topic", SOURCES, OPT_TOPIC, AT(late_topic), NULL, 0, 0},
	{"end.of.input", SOURCES, OPT_END, AT(end_of_input), NULL, 0, 0},
	{"print-identifier", PRINT, OPT_ANY, AT(print_identifier), NULL, 0, 0},
	{"standard-error", PRINT, OPT_BOOL, AT(print_standard_error), NULL, 0, 0},
	{"number-of-rows", DATAGEN, OPT_I64, AT(datagen_rows), NULL, 0, INT64_MAX},
	{"rows-per-second", DATAGEN, OPT_I64, AT(datagen_rate), NULL, 0, 1000000000},
	{"seed", DATAGEN, OPT_U64, AT(datagen_seed), NULL, 0, INT64_MAX},
};

/* Members of datagen's fields.<column>.<member>. Their values depend on the column's type: io/datagen.c checks them. */
static const char *const datagen_members[] = {"kind", "min",       "max",      "length", "start",
					      "end",  "null-rate", "max-past", "var-len"};

static const struct {
	const char *name;
	const char *hint;
} java_properties[] = {
	{"sasl.jaas.config", "use sasl.username and sasl.password"},
	{"sasl.client.callback.handler.class", "use sasl.mechanism with sasl.oauthbearer.*"},
	{"sasl.login.callback.handler.class", "use sasl.mechanism with sasl.oauthbearer.*"},
	{"ssl.truststore.location", "use ssl.ca.location (a PEM file; keytool -exportcert -rfc writes one)"},
	{"ssl.truststore.password", "use ssl.ca.location (a PEM file needs no password)"},
	{"ssl.truststore.type", "use ssl.ca.location (a PEM file)"},
	{"ssl.truststore.certificates", "use ssl.ca.pem"},
	{"ssl.keystore.type", "use ssl.certificate.location and ssl.key.location (PEM files)"},
	{"ssl.keystore.certificate.chain", "use ssl.certificate.pem"},
	{"ssl.keystore.key", "use ssl.key.pem"},
	{"ssl.protocol", "not needed: leave it out"},
	{"ssl.trustmanager.algorithm", "not needed: leave it out"},
	{"key.serializer", "not needed: leave it out"},
	{"value.serializer", "not needed: leave it out"},
	{"key.deserializer", "not needed: leave it out"},
	{"value.deserializer", "not needed: leave it out"},
	{"max.poll.records", "not needed: leave it out"},
	{"fetch.max.wait.ms", "use fetch.wait.max.ms"},
	{"buffer.memory", "use queue.buffering.max.kbytes"},
	{"max.block.ms", "not needed: leave it out"},
	{"request.timeout.ms", "use socket.timeout.ms"},
	{"delivery.timeout.ms", "use message.timeout.ms"},
	{"default.api.timeout.ms", "not needed: leave it out"},
	{"interceptor.classes", "not needed: leave it out"},
	{"partitioner.class", "use sink.partitioner"},
	{"flink.partition-discovery.interval-millis", "use scan.topic-partition-discovery.interval"},
	{"default.deserialization.exception.handler", "use errors.policy"},
	{"default.production.exception.handler", "use errors.policy"},
	{"deserialization.exception.handler", "use errors.policy"},
	{"production.exception.handler", "use errors.policy"},
	{"processing.exception.handler", "use errors.policy"},
	{"errors.dead.letter.queue.topic.name", "use errors.deadletterqueue.topic.name"},
	{"default.timestamp.extractor", "use WATERMARK FOR in CREATE TABLE"},
	{"default.key.serde", "use key.format"},
	{"default.value.serde", "use value.format"},
	{"replication.factor", "set it on the topics"},
	{"cache.max.bytes.buffering", "use emit.interval.ms and memory.max"},
	{"statestore.cache.max.bytes", "use emit.interval.ms and memory.max"},
	{"rocksdb.config.setter", "not needed: state is in memory"},
	{"default.dsl.store", "not needed: state is in memory"},
	{"dsl.store.suppliers.class", "not needed: state is in memory"},
	{"state.cleanup.delay.ms", "not needed: state is in memory"},
	{"buffered.records.per.partition", "use memory.max"},
	{"input.buffer.max.bytes", "use memory.max"},
	{"acceptable.recovery.lag", "use standby.replicas"},
	{"max.warmup.replicas", "use standby.replicas"},
	{"probing.rebalance.interval.ms", "use standby.replicas"},
	{"window.size.ms", "use key.format = windowed"},
	{"windowed.inner.class.serde", "use key.format = windowed"},
	{"default.windowed.key.serde.inner", "use key.format = windowed"},
	{"default.windowed.value.serde.inner", "use value.format"},
	{"windowstore.changelog.additional.retention.ms", "not needed: leave it out"},
	{"repartition.purge.interval.ms", "not needed: what was read is deleted at every commit"},
	{"topology.optimization", "not needed: leave it out"},
	{"upgrade.from", "not needed: leave it out"},
	{"poll.ms", "not needed: leave it out"},
	{"task.timeout.ms", "not needed: leave it out"},
	{"default.client.supplier", "not needed: leave it out"},
	{"built.in.metrics.version", "not needed: leave it out"},
	{"metrics.recording.level", "not needed: leave it out"},
	{"metrics.num.samples", "not needed: leave it out"},
	{"metrics.sample.window.ms", "not needed: leave it out"},
	{"metric.reporters", "not needed: leave it out"},
	{"client.dns.lookup", "not needed: leave it out"},
	{"security.providers", "not needed: leave it out"},
	{"send.buffer.bytes", "use socket.send.buffer.bytes"},
	{"receive.buffer.bytes", "use socket.receive.buffer.bytes"},
	{"application.server", "not needed yet: leave it out"},
};

/* Whom a property is for, in front of its name. Those of consumer. and producer. are known. */
static const struct {
	const char *prefix;
	const char *hint;
} java_prefixes[] = {
	{"main.consumer.", "use consumer.NAME"},
	{"restore.consumer.", "use consumer.NAME"},
	{"global.consumer.", "use consumer.NAME"},
	{"admin.", "leave out admin. in front of the name"},
	{"rack.aware.assignment.", "not needed: leave it out"},
};

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

const char *weir_java_property_hint(const char *name)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(java_properties); i++) {
		if (strcmp(name, java_properties[i].name) == 0)
			return java_properties[i].hint;
	}
	for (size_t i = 0; i < WEIR_COUNT_OF(java_prefixes); i++) {
		if (starts_with(name, java_prefixes[i].prefix))
			return java_prefixes[i].hint;
	}
	if (starts_with(name, "consumer.") || starts_with(name, "producer."))
		return weir_java_property_hint(strchr(name, '.') + 1);
	return NULL;
}

const char *weir_connector_name(enum weir_connector c)
{
	return (size_t)c < WEIR_COUNT_OF(connectors) ? connectors[c].name : "";
}

bool weir_text_to_i64(const char *s, int64_t *out)
{
	bool minus = *s == '-';
	s += minus;
	if (*s == '\0')
		return false;
	int64_t v = 0;
	for (; *s != '\0'; s++) {
		if (*s < '0' || *s > '9')
			return false;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    (minus ? __builtin_sub_overflow(v, *s - '0', &v) : __builtin_add_overflow(v, *s - '0', &v)))
			return false;
	}
	*out = v;
	return true;
}

bool weir_text_to_bool(const char *s, bool *out)
{
	if (strcasecmp(s, "true") != 0 && strcasecmp(s, "false") != 0)
		return false;
	*out = strcasecmp(s, "true") == 0;
	return true;
}

/* ---- one parse ---- */

struct parse {
	struct weir_table_options *out;
	const struct weir_option *options;
	uint32_t count;
	struct weir_mem *m;
	uint32_t bit; /* of the connector */
	struct weir_option *other;
	uint32_t other_count;
	struct weir_diag **dg;
};

/* The value in the table's spelling if it is one of the words in "a|b|c", else NULL. Case does not count. */
static const char *find_word(struct weir_mem *m, const char *values, const char *value)
{
	size_t bytes = strlen(value);
	for (const char *at = values; at != NULL;) {
		const char *bar = strchr(at, '|');
		size_t n = bar != NULL ? (size_t)(bar - at) : strlen(at);
		if (n == bytes && strncasecmp(at, value, n) == 0)
			return weir_mem_strndup(m, at, n);
		at = bar != NULL ? bar + 1 : NULL;
	}
	return NULL;
}

static bool parse_offsets(const char *s)
{
	for (;;) {
		int64_t n;
		char digits[24];
		for (int part = 0; part < 2; part++) {
			const char *word = part == 0 ? "partition:" : "offset:";
			size_t bytes = strlen(word);
			if (strncmp(s, word, bytes) != 0)
				return false;
			s += bytes;
			size_t d = strspn(s, "0123456789");
			if (d == 0 || d >= sizeof digits)
				return false;
			memcpy(digits, s, d);
			digits[d] = '\0';
			if (!weir_text_to_i64(digits, &n) || (part == 0 && n > PARTITIONS_MAX))
				return false;
			s += d;
			if (part == 0 && *s++ != ',')
				return false;
		}
		if (*s == '\0')
			return true;
		if (*s++ != ';')
			return false;
		if (*s == '\0') /* Flink allows a trailing ';' */
			return true;
	}
}

static void keep_other(struct parse *ps, const struct weir_option *o)
{
	ps->other[ps->other_count++] =
		(struct weir_option){weir_mem_strdup(ps->m, o->name), weir_mem_strdup(ps->m, o->value)};
}

static enum weir_err bad_value(struct parse *ps, const struct weir_option *o, const char *takes)
{
	return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' takes %s, not '%s'", o->name, takes, o->value);
}

static enum weir_err bad_words(struct parse *ps, const struct weir_option *o, const char *values)
{
	struct weir_buf b = {0};
	for (const char *at = values; *at != '\0'; at++) {
		if (*at == '|')
			weir_buf_puts(&b, strchr(at + 1, '|') != NULL ? ", " : " or ");
		else
			weir_buf_put_byte(&b, (uint8_t)*at);
	}
	weir_buf_put_byte(&b, 0);
	enum weir_err err = bad_value(ps, o, (const char *)b.data);
	weir_buf_fini(&b);
	return err;
}

static enum weir_err set_number(struct parse *ps, const struct option_def *d, const struct weir_option *o)
{
	int64_t v;
	if (!weir_text_to_i64(o->value, &v) || v < d->low || v > d->high) {
		char takes[80];
		if (d->high == INT64_MAX)
			snprintf(takes, sizeof takes, "a whole number from %lld", (long long)d->low);
		else
			snprintf(takes, sizeof takes, "a whole number from %lld to %lld", (long long)d->low,
				 (long long)d->high);
		return bad_value(ps, o, takes);
	}
	void *to = (char *)ps->out + d->at;
	if (d->kind == OPT_I32)
		*(int32_t *)to = (int32_t)v;
	else if (d->kind == OPT_U64)
		*(uint64_t *)to = (uint64_t)v;
	else
		*(int64_t *)to = v;
	return WEIR_OK;
}

static enum weir_err set_errors_policy(struct parse *ps, const struct weir_option *o)
{
	static const char *const words[] = {"default", "fail", "skip", "dead-letter"};
	for (int i = WEIR_ERRORS_FAIL; i <= WEIR_ERRORS_DEAD_LETTER; i++) {
		if (strcasecmp(o->value, words[i]) == 0) {
			ps->out->errors_policy = (enum weir_error_policy)i;
			return WEIR_OK;
		}
	}
	return bad_value(ps, o, "fail, skip or dead-letter");
}

static enum weir_err set_end_of_input(struct parse *ps, const struct weir_option *o)
{
	if (strcasecmp(o->value, "close") == 0)
		ps->out->end_of_input = WEIR_END_CLOSE;
	else if (strcasecmp(o->value, "keep") == 0)
		ps->out->end_of_input = WEIR_END_KEEP;
	else
		return bad_value(ps, o, "close or keep");
	return WEIR_OK;
}

static enum weir_err set_keys(struct parse *ps, const struct option_def *d, const struct weir_option *o)
{
	const char *v = o->value;
	size_t bytes = strlen(v);
	if (bytes == 0 || v[0] == ';' || v[bytes - 1] == ';' || strstr(v, ";;") != NULL)
		return bad_value(ps, o, "column names separated by ';'");
	if (strchr(v, ',') != NULL) {
		enum weir_err err = bad_value(ps, o, "column names separated by ';'");
		if (ps->dg != NULL)
			weir_diag_add_hint(*ps->dg, "write ';' instead of ','");
		return err;
	}
	*(const char **)((char *)ps->out + d->at) = weir_mem_strdup(ps->m, v);
	return WEIR_OK;
}

enum { TOPIC_BYTES_MAX = 249 }; /* Kafka's */

/* Bytes of the topic name at v, 0 where there is none. */
static size_t topic_bytes(const char *v)
{
	size_t n = strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
	bool dots = (n == 1 && v[0] == '.') || (n == 2 && v[0] == '.' && v[1] == '.');
	return dots || n > TOPIC_BYTES_MAX ? 0 : n;
}

static enum weir_err set_topics(struct parse *ps, const struct option_def *d, const struct weir_option *o)
{
	static const char wanted[] = "names of at most 249 letters, digits, '.', '_' and '-', separated by ';'";
	const char *v = o->value;
	if (*v == 0)
		return bad_value(ps, o, "a text that is not empty");
	for (const char *at = v;; at++) {
		size_t n = topic_bytes(at);
		if (n == 0 || (at[n] != 0 && (at[n] != ';' || d->kind == OPT_TOPIC)))
			return bad_value(ps, o, d->kind == OPT_TOPIC ? "a topic name" : wanted);
		for (const char *before = v; before < at; before += strcspn(before, ";") + 1)
			if (strcspn(before, ";") == n && memcmp(before, at, n) == 0)
				return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' names %.*s twice", o->name,
						     (int)n, at);
		at += n;
		if (*at == 0)
			break;
	}
	*(const char **)((char *)ps->out + d->at) = weir_mem_strdup(ps->m, v);
	return WEIR_OK;
}

static enum weir_err set_option(struct parse *ps, const struct option_def *d, const struct weir_option *o)
{
	const char **text = (const char **)((char *)ps->out + d->at);
	switch (d->kind) {
	case OPT_TEXT:
		if (o->value[0] == '\0')
			return bad_value(ps, o, "a text that is not empty");
		if (d->at != SIZE_MAX)
			*text = weir_mem_strdup(ps->m, o->value);
		return WEIR_OK;
	case OPT_TOPICS:
	case OPT_TOPIC:
		return set_topics(ps, d, o);
	case OPT_ANY:
		*text = weir_mem_strdup(ps->m, o->value);
		return WEIR_OK;
	case OPT_WORD: {
		const char *word = find_word(ps->m, d->values, o->value);
		if (word == NULL)
			return bad_words(ps, o, d->values);
		if (d->at != SIZE_MAX)
			*text = word;
		else
			ps->out->value_except_key = strcmp(word, "EXCEPT_KEY") == 0;
		return WEIR_OK;
	}
	case OPT_BOOL:
		if (!weir_text_to_bool(o->value, (bool *)((char *)ps->out + d->at)))
			return bad_value(ps, o, "true or false");
		return WEIR_OK;
	case OPT_I64:
	case OPT_I32:
	case OPT_U64:
		return set_number(ps, d, o);
	case OPT_MILLIS: {
		int64_t ms;
		if (!weir_text_to_i64(o->value, &ms) || ms < 0)
			return bad_value(ps, o, "a time in milliseconds since 1970");
		*text = weir_mem_strdup(ps->m, o->value);
		return WEIR_OK;
	}
	case OPT_OFFSETS:
		if (!parse_offsets(o->value))
			return bad_value(ps, o, "partition:0,offset:42;partition:1,offset:300");
		*text = weir_mem_strdup(ps->m, o->value);
		return WEIR_OK;
	case OPT_DURATION:
		if (o->value[0] < '0' || o->value[0] > '9')
			return bad_value(ps, o, "a duration such as 5min");
		keep_other(ps, o);
		return WEIR_OK;
	case OPT_ERRORS:
		return set_errors_policy(ps, o);
	case OPT_END:
		return set_end_of_input(ps, o);
	case OPT_KEYS:
		return set_keys(ps, d, o);
	case OPT_IGNORED:
		return WEIR_OK;
	}
	return WEIR_OK;
}

/* ---- names ---- */

static const struct option_def *find_def(uint32_t bit, const char *name)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(defs); i++) {
		if ((defs[i].connectors & bit) != 0 && strcmp(defs[i].name, name) == 0)
			return &defs[i];
	}
	return NULL;
}

static enum weir_err unknown_name(struct parse *ps, const char *name)
{
	const char *const connector = connectors[ps->out->connector].name;
	uint32_t elsewhere = 0;
	const char *names[WEIR_COUNT_OF(defs)];
	size_t n = 0;
	for (size_t i = 0; i < WEIR_COUNT_OF(defs); i++) {
		if ((defs[i].connectors & ps->bit) != 0)
			names[n++] = defs[i].name;
		else if (strcmp(defs[i].name, name) == 0)
			elsewhere |= defs[i].connectors;
	}
	const char *near = weir_nearest_name(name, strlen(name), names, n);
	enum weir_err err = weir_diag_set(ps->dg, WEIR_E_CONF, "connector '%s' has no option '%s'%s%s%s", connector,
					  name, near != NULL ? ": did you mean '" : "", near != NULL ? near : "",
					  near != NULL ? "'?" : "");
	if (ps->dg == NULL)
		return err;
	if (elsewhere != 0 && ps->out->connector == WEIR_CONNECTOR_UPSERT_KAFKA && starts_with(name, "scan.startup."))
		weir_diag_add_hint(*ps->dg, "an upsert table is always read from the beginning");
	else if (elsewhere != 0) {
		for (size_t c = 1; c < WEIR_COUNT_OF(connectors); c++) {
			if (elsewhere & BIT(c)) {
				weir_diag_add_hint(*ps->dg, "it is an option of connector '%s'", connectors[c].name);
				break;
			}
		}
	}
	return err;
}

static enum weir_err set_property(struct parse *ps, const struct weir_option *o)
{
	const char *hint = weir_java_property_hint(o->name + strlen("properties."));
	if (hint != NULL) {
		enum weir_err err =
			weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' is for Java clients: %s", o->name, hint);
		return err;
	}
	keep_other(ps, o);
	return WEIR_OK;
}

static enum weir_err set_datagen_field(struct parse *ps, const struct weir_option *o)
{
	const char *dot = strrchr(o->name, '.');
	if (dot <= o->name + strlen("fields."))
		return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' must be fields.<column>.<member>", o->name);
	for (size_t i = 0; i < WEIR_COUNT_OF(datagen_members); i++) {
		if (strcmp(dot + 1, datagen_members[i]) == 0) {
			keep_other(ps, o);
			return WEIR_OK;
		}
	}
	const char *near = weir_nearest_name(dot + 1, strlen(dot + 1), datagen_members, WEIR_COUNT_OF(datagen_members));
	return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s': datagen has no '%s'%s%s%s", o->name, dot + 1,
			     near != NULL ? ": did you mean '" : "", near != NULL ? near : "",
			     near != NULL ? "'?" : "");
}

/* ---- formats ---- */

/* "json" of "json.ignore-parse-errors" if it is a format's name: such options are the format's. */
static bool is_format_option(const char *name)
{
	size_t n = strcspn(name, ".");
	if (name[n] == '\0')
		return false;
	for (int i = WEIR_FORMAT_JSON; i <= WEIR_FORMAT_DEBEZIUM; i++) {
		const char *format = weir_format_name((enum weir_format_kind)i);
		if (strlen(format) == n && strncmp(name, format, n) == 0)
			return true;
	}
	return false;
}

static enum weir_err set_format_option(struct parse *ps, const struct weir_option *o)
{
	bool key = starts_with(o->name, "key.");
	const char *name = o->name + (key ? 4 : starts_with(o->name, "value.") ? 6 : 0);
	struct weir_format_options *f = key ? &ps->out->key_format : &ps->out->value_format;
	if (!(key ? ps->out->has_key_format : ps->out->has_value_format))
		return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' needs '%s'", o->name,
				     key ? "key.format" : "format");
	size_t n = strcspn(name, ".");
	if (strlen(weir_format_name(f->kind)) != n || strncmp(name, weir_format_name(f->kind), n) != 0)
		return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' does not fit: the %s format is '%s'", o->name,
				     key ? "key" : "value", weir_format_name(f->kind));
	if (weir_format_is_changelog(f->kind)) /* the row's JSON has JSON's options: changelog-json.encode... */
		name = strchr(name, '-') + 1;
	return weir_format_option_set(f, name, o->name, weir_mem_strdup(ps->m, o->value), ps->dg); /* keeps the text */
}

static enum weir_err set_formats(struct parse *ps, uint32_t *at)
{
	for (uint32_t i = 0; i < ps->count; i++) {
		const struct weir_option *o = &ps->options[i];
		bool key = strcmp(o->name, "key.format") == 0, value = strcmp(o->name, "value.format") == 0;
		bool both = strcmp(o->name, "format") == 0;
		if (!key && !value && !both)
			continue;
		*at = i;
		if (find_def(ps->bit, o->name) == NULL)
			return unknown_name(ps, o->name);
		if (!key && ps->out->has_value_format)
			return weir_diag_set(ps->dg, WEIR_E_CONF,
					     "both 'format' and 'value.format' are given: leave one out");
		struct weir_format_options *f = key ? &ps->out->key_format : &ps->out->value_format;
		enum weir_err err = weir_format_kind_parse(&f->kind, o->value, ps->dg);
		if (err != WEIR_OK)
			return err;
		if (!key && f->kind == WEIR_FORMAT_WINDOWED)
			return weir_diag_set(ps->dg, WEIR_E_CONF,
					     "format 'windowed' is for keys only: use it as key.format");
		if (weir_format_is_changelog(f->kind) && key)
			return weir_diag_set(
				ps->dg, WEIR_E_CONF,
				"format '%s' is for values only: use it as value.format, and raw or json for keys",
				o->value);
		if (weir_format_is_changelog(f->kind) && ps->bit == UPSERT)
			return weir_diag_set(
				ps->dg, WEIR_E_CONF,
				"format '%s' says what changes by an op, and connector 'upsert-kafka' says by its keys "
				"what changes: use connector 'kafka'",
				o->value);
		if (ps->bit == FILESYSTEM && f->kind != WEIR_FORMAT_JSON && f->kind != WEIR_FORMAT_CSV)
			return weir_diag_set(ps->dg, WEIR_E_CONF,
					     "connector 'filesystem' takes format json or csv, not '%s'", o->value);
		*(key ? &ps->out->has_key_format : &ps->out->has_value_format) = true;
	}
	return WEIR_OK;
}

/* ---- the whole ---- */

static enum weir_err find_connector(struct parse *ps, uint32_t *at)
{
	const char *names[WEIR_COUNT_OF(connectors) - 1];
	for (size_t c = 1; c < WEIR_COUNT_OF(connectors); c++)
		names[c - 1] = connectors[c].name;
	for (uint32_t i = 0; i < ps->count; i++) {
		if (strcmp(ps->options[i].name, "connector") != 0)
			continue;
		const char *value = ps->options[i].value;
		*at = i;
		for (size_t c = 1; c < WEIR_COUNT_OF(connectors); c++) {
			if (strcmp(value, connectors[c].name) == 0) {
				ps->out->connector = (enum weir_connector)c;
				ps->bit = BIT(c);
				return WEIR_OK;
			}
		}
		const char *near = weir_nearest_name(value, strlen(value), names, WEIR_COUNT_OF(names));
		return weir_diag_set(ps->dg, WEIR_E_CONF, "unknown connector '%s'%s%s%s", value,
				     near != NULL ? ": did you mean '"
						  : "; there are recorded, kafka, upsert-kafka, datagen, "
						    "print, blackhole and filesystem",
				     near != NULL ? near : "", near != NULL ? "'?" : "");
	}
	return weir_diag_set(ps->dg, WEIR_E_CONF,
			     "option 'connector' is missing: recorded, kafka, upsert-kafka, datagen, print, blackhole "
			     "or filesystem");
}

static enum weir_err check_duplicates(struct parse *ps, uint32_t *at)
{
	for (uint32_t i = 1; i < ps->count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(ps->options[i].name, ps->options[j].name) == 0) {
				*at = i;
				return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' is given twice",
						     ps->options[i].name);
			}
		}
	}
	return WEIR_OK;
}

static uint32_t index_of(const struct parse *ps, const char *name)
{
	for (uint32_t i = 0; i < ps->count; i++) {
		if (strcmp(ps->options[i].name, name) == 0)
			return i;
	}
	return UINT32_MAX;
}

/* A mode and the option that it needs, or that needs it. */
static enum weir_err check_mode(struct parse *ps, const char *side, const char *mode, const char *mode_value,
				const char *option, const char *option_value, uint32_t *at)
{
	bool wanted = mode != NULL && strcmp(mode, mode_value) == 0;
	if (wanted == (option_value != NULL))
		return WEIR_OK;
	char name[64], mode_name[32];
	snprintf(name, sizeof name, "scan.%s.%s", side, option);
	snprintf(mode_name, sizeof mode_name, "scan.%s.mode", side);
	*at = index_of(ps, wanted ? mode_name : name);
	if (wanted)
		return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' = '%s' needs '%s'", mode_name, mode_value, name);
	return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' needs '%s' = '%s'", name, mode_name, mode_value);
}

static enum weir_err missing(struct parse *ps, const char *name)
{
	return weir_diag_set(ps->dg, WEIR_E_CONF, "connector '%s' needs the option '%s'",
			     connectors[ps->out->connector].name, name);
}

/* Flink's rules: fields and a format make a key together, and a prefix is part of every field's name. (A key without
 * fields may be a PRIMARY KEY's, which the table's columns say.) */
static enum weir_err check_key(struct parse *ps, uint32_t *at)
{
	const struct weir_table_options *o = ps->out;
	const char *prefix = o->key_fields_prefix != NULL ? o->key_fields_prefix : "";
	if (o->key_fields != NULL && !o->has_key_format) {
		*at = index_of(ps, "key.fields");
		return weir_diag_set(ps->dg, WEIR_E_CONF,
				     "option 'key.fields' needs 'key.format' (raw for one STRING column, or json)");
	}
	*at = index_of(ps, "key.fields-prefix");
	if (prefix[0] != '\0' && !o->value_except_key)
		return weir_diag_set(ps->dg, WEIR_E_CONF,
				     "option 'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY'");
	for (const char *p = o->key_fields; p != NULL && *p != '\0';
	     p = strchr(p, ';') != NULL ? strchr(p, ';') + 1 : NULL)
		if (!starts_with(p, prefix))
			return weir_diag_set(
				ps->dg, WEIR_E_CONF,
				"option 'key.fields-prefix': '%.*s' of 'key.fields' does not begin with '%s'",
				(int)strcspn(p, ";"), p, prefix);
	*at = UINT32_MAX;
	return WEIR_OK;
}

/* Offsets by partition do not say of which topic. */
static enum weir_err check_one_topic(struct parse *ps, const char *name, const char *value, uint32_t *at)
{
	const struct weir_table_options *o = ps->out;
	if (value == NULL || (o->topic_pattern == NULL && (o->topic == NULL || strchr(o->topic, ';') == NULL)))
		return WEIR_OK;
	*at = index_of(ps, name);
	return weir_diag_set(ps->dg, WEIR_E_CONF, "option '%s' needs a single topic", name);
}

/* What a whole table needs, whichever way it is used. */
static enum weir_err check_whole(struct parse *ps, uint32_t *at)
{
	const struct weir_table_options *o = ps->out;
	*at = UINT32_MAX;
	if ((ps->bit & TOPICS) != 0 && o->topic == NULL && o->topic_pattern == NULL)
		return missing(ps, "topic");
	if (o->topic != NULL && o->topic_pattern != NULL) {
		*at = index_of(ps, "topic-pattern");
		return weir_diag_set(ps->dg, WEIR_E_CONF, "both 'topic' and 'topic-pattern' are given: leave one out");
	}
	if (ps->bit == FILESYSTEM && o->path == NULL)
		return missing(ps, "path");
	if ((ps->bit & (TOPICS | FILESYSTEM)) != 0 && !o->has_value_format)
		return missing(ps, ps->bit == UPSERT ? "value.format" : "format");
	if (ps->bit == UPSERT && !o->has_key_format)
		return missing(ps, "key.format");
	enum weir_err err = check_key(ps, at);
	if (err == WEIR_OK)
		err = check_one_topic(ps, "scan.startup.specific-offsets", o->scan_startup_offsets, at);
	if (err == WEIR_OK)
		err = check_one_topic(ps, "scan.bounded.specific-offsets", o->scan_bounded_offsets, at);
	if (err != WEIR_OK)
		return err;
	err = check_mode(ps, "startup", o->scan_startup_mode, "timestamp", "timestamp-millis",
			 o->scan_startup_timestamp, at);
	if (err == WEIR_OK)
		err = check_mode(ps, "startup", o->scan_startup_mode, "specific-offsets", "specific-offsets",
				 o->scan_startup_offsets, at);
	if (err == WEIR_OK)
		err = check_mode(ps, "bounded", o->scan_bounded_mode, "timestamp", "timestamp-millis",
				 o->scan_bounded_timestamp, at);
	if (err == WEIR_OK)
		err = check_mode(ps, "bounded", o->scan_bounded_mode, "specific-offsets", "specific-offsets",
				 o->scan_bounded_offsets, at);
	return err;
}

static enum weir_err set_one(struct parse *ps, const struct weir_option *o)
{
	if (strcmp(o->name, "connector") == 0 || strcmp(o->name, "format") == 0 ||
	    strcmp(o->name, "value.format") == 0 || strcmp(o->name, "key.format") == 0)
		return WEIR_OK; /* done before the others */
	const struct option_def *d = find_def(ps->bit, o->name);
	if (d != NULL)
		return set_option(ps, d, o);
	if ((ps->bit & (KAFKA | UPSERT)) != 0 && starts_with(o->name, "properties."))
		return set_property(ps, o);
	if (ps->bit == DATAGEN && starts_with(o->name, "fields."))
		return set_datagen_field(ps, o);
	const char *bare = o->name + (starts_with(o->name, "key.") ? 4 : starts_with(o->name, "value.") ? 6 : 0);
	if ((ps->bit & (TOPICS | FILESYSTEM)) != 0 && is_format_option(bare))
		return set_format_option(ps, o);
	return unknown_name(ps, o->name);
}

enum weir_err weir_table_options_parse(struct weir_table_options *out, const struct weir_option *options,
				       uint32_t count, struct weir_mem *m, uint32_t *bad, struct weir_diag **dg)
{
	uint32_t at = UINT32_MAX;
	memset(out, 0, sizeof *out);
	out->datagen_rows = -1;
	out->datagen_rate = -1;
	struct parse ps = {out, options, count, m, 0, NULL, 0, dg};
	enum weir_err err = WEIR_OK;
	if (count > OPTIONS_MAX)
		err = weir_diag_set(dg, WEIR_E_CONF, "more than %d options", OPTIONS_MAX);
	if (err == WEIR_OK)
		err = check_duplicates(&ps, &at);
	if (err == WEIR_OK)
		err = find_connector(&ps, &at);
	if (err == WEIR_OK)
		err = set_formats(&ps, &at);
	ps.other = err == WEIR_OK ? weir_mem_take(m, (count + 1) * sizeof *ps.other) : NULL;
	for (uint32_t i = 0; err == WEIR_OK && i < count; i++) {
		err = set_one(&ps, &options[i]);
		at = i;
	}
	if (err == WEIR_OK)
		err = check_whole(&ps, &at);
	if (err == WEIR_OK && ps.bit == DATAGEN) { /* what the generator writes */
		out->value_format.kind = WEIR_FORMAT_PACKED;
		out->has_value_format = true;
	}
	out->other = ps.other;
	out->other_count = ps.other_count;
	if (bad != NULL)
		*bad = err == WEIR_OK ? UINT32_MAX : at;
	return err;
}

const char *weir_table_option_idle(const struct weir_option *o)
{
	static const struct {
		const char *name;
		const char *value; /* NULL: whatever it is */
		const char *why;
	} idle[] = {
		{"scan.parallelism", NULL, "--workers says how many threads work"},
		{"sink.parallelism", NULL, "--workers says how many threads work"},
		{"scan.topic-partition-discovery.interval", NULL, "partitions are looked for when the job starts"},
		{"sink.transactional-id-prefix", NULL, "the application id names transactions"},
		{"sink.partitioner", "fixed", "records go by their key"},
		{"sink.partitioner", "round-robin", "records go by their key"},
		{"standard-error", "true", "rows go to standard output"},
	};
	for (size_t i = 0; i < WEIR_COUNT_OF(idle); i++)
		if (strcmp(o->name, idle[i].name) == 0 &&
		    (idle[i].value == NULL || strcmp(o->value, idle[i].value) == 0))
			return idle[i].why;
	return NULL;
}

enum weir_err weir_table_options_check_use(const struct weir_table_options *o, bool sink, const char *table,
					   struct weir_diag **dg)
{
	const char *connector = connectors[o->connector].name, *takes = connectors[o->connector].takes;
	if (strstr(takes, sink ? "sink" : "source") == NULL)
		return weir_diag_set(dg, WEIR_E_PLAN, "table '%s' cannot be %s: connector '%s' is a %s only", table,
				     sink ? "written to" : "read", connector, takes);
	if (!sink && o->has_value_format && weir_format_is_changelog(o->value_format.kind))
		return weir_diag_set(dg, WEIR_E_PLAN, "table '%s' cannot be read: format '%s' is for sinks alone",
				     table, weir_format_name(o->value_format.kind));
	if (!sink)
		return WEIR_OK;
	if (o->topic_pattern != NULL)
		return weir_diag_set(dg, WEIR_E_PLAN,
				     "table '%s' cannot be written to: it has a 'topic-pattern'; name one topic",
				     table);
	if (o->topic != NULL && strchr(o->topic, ';') != NULL)
		return weir_diag_set(dg, WEIR_E_PLAN, "table '%s' cannot be written to: 'topic' names several topics",
				     table);
	return WEIR_OK;
}

/* ---- option strings of weir.h ---- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Reads '...' with '' for a quote; *at stands behind the closing quote afterwards. NULL: no closing quote. */
static const char *read_quoted(const char **at, struct weir_mem *m)
{
	const char *s = *at + 1;
	char *value = weir_mem_take(m, strlen(s) + 1);
	size_t bytes = 0;
	for (;; s++) {
		if (*s == '\0')
			return NULL;
		if (*s == '\'' && *++s != '\'')
			break;
		value[bytes++] = *s;
	}
	*at = s;
	return value;
}

enum weir_err weir_option_string_split(const char *text, struct weir_mem *m, struct weir_option **out, uint32_t *count,
				       struct weir_diag **dg)
{
	const char *at = text != NULL ? text : "";
	size_t bytes = strlen(at);
	const char *whole = at;
	uint32_t n = 0, n_max = 0;
	for (const char *c = at; *c != '\0' && n_max < OPTIONS_MAX; c++)
		n_max += *c == '=';
	struct weir_option *options = weir_mem_take(m, (n_max + 1) * sizeof *options);
	for (;;) {
		while (is_space(*at))
			at++;
		if (*at == '\0')
			break;
		const char *name = at;
		while (*at != '\0' && *at != '=' && *at != '\'' && !is_space(*at))
			at++;
		size_t name_bytes = (size_t)(at - name);
		if (*at != '=' || name_bytes == 0)
			return weir_diag_set_at(dg, WEIR_E_CONF, NULL, whole, bytes, name,
						"write name=value, values with spaces in '...'",
						"expected name=value in the options");
		const char *value_at = ++at;
		const char *value;
		if (*at == '\'') {
			value = read_quoted(&at, m);
			if (value == NULL)
				return weir_diag_set_at(dg, WEIR_E_CONF, NULL, whole, bytes, value_at, NULL,
							"the quote of option '%.*s' is not closed", (int)name_bytes,
							name);
			if (*at != '\0' && !is_space(*at))
				return weir_diag_set_at(dg, WEIR_E_CONF, NULL, whole, bytes, at, NULL,
							"expected a space after the value of '%.*s'", (int)name_bytes,
							name);
		} else {
			while (*at != '\0' && !is_space(*at))
				at++;
			value = weir_mem_strndup(m, value_at, (size_t)(at - value_at));
		}
		if (n == n_max)
			return weir_diag_set(dg, WEIR_E_CONF, "more than %d options", OPTIONS_MAX);
		options[n++] = (struct weir_option){weir_mem_strndup(m, name, name_bytes), value};
	}
	*out = options;
	*count = n;
	return WEIR_OK;
}
