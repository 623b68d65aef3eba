/* conf.c: the configuration: one table of every property with its range, default and meaning; values with origins; text
 * to a checked struct weir_settings. Cold path, @thread init. */
#include "io/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "hotpath/core/mem.h"
#include "io/app_name.h"
#include "io/kafka/property.h"

enum { WARNINGS_MAX = 100, FILE_BYTES_MAX = 1 << 20, VALUE_BYTES_MAX = 1 << 16 };

enum conf_kind {
	CONF_TEXT,
	CONF_NAME, /* letters, digits, . _ - : a topic or application */
	CONF_WORD, /* values "a|b|c": its number goes into an enum */
	CONF_BOOL,
	CONF_FLAG, /* values "no|yes": a bool with words of its own */
	CONF_I64,
	CONF_U32,
	CONF_MILLIS,
	CONF_MILLIS_OR_OFF, /* off: -1 */
	CONF_BYTES,
	CONF_MEMORY,  /* CONF_BYTES or auto */
	CONF_WORKERS, /* CONF_U32 or auto */
	CONF_CPUS,    /* a list or auto */
	CONF_GUARANTEE,
	CONF_ZONE,
	CONF_NOTHING /* taken, without effect, with a warning */
};

struct conf_def {
	const char *name;
	enum conf_kind kind;
	const char *default_value; /* NULL: not set */
	const char *values;        /* CONF_WORD, CONF_FLAG */
	int64_t low, high;
	size_t at; /* offset in struct weir_settings; SIZE_MAX: none */
	const char *range;
	const char *doc;
};

/* Less does not hold the data in flight and what state may grow by between two order points. */
#define MEMORY_LEAST (48 << 20)
#define AT(member)   offsetof(struct weir_settings, member)
#define MS_MAX       INT64_C(31536000000000) /* a thousand years */
static const struct conf_def defs[] = {
	{"application.id", CONF_NAME, NULL, NULL, 1, 200, AT(application_id), "letters, digits, . _ -",
	 "Names the application: consumer group and prefix of its changelogs. Default: the SQL file's name."},
	{"bootstrap.servers", CONF_TEXT, NULL, NULL, 0, 0, AT(bootstrap_servers), "host:9092,... or file:DIR",
	 "Brokers, or a folder of recorded topics that stand for Kafka topics."},
	{"processing.guarantee", CONF_GUARANTEE, "at_least_once", "at_least_once|exactly_once|at_most_once", 0, 0,
	 AT(guarantee), "at_least_once, exactly_once, at_most_once",
	 "How results travel; state is exact in all three."},
	{"memory.max", CONF_MEMORY, "auto", NULL, MEMORY_LEAST, INT64_MAX, AT(memory_max), "48MiB.., auto",
	 "One budget for state, data in flight and what workers hold besides. Code, libraries and stacks come on top, "
	 "16 MiB or so. A job that needs more is refused. auto: half of the smaller of the cgroup's limit and RAM, or "
	 "what it needs."},
	{"workers", CONF_WORKERS, "auto", NULL, 1, 1024, AT(workers), "1..1024, auto",
	 "Worker threads. auto: one for each CPU of worker.cpus, else CPUs of the process less one, at least 1."},
	{"worker.cpus", CONF_CPUS, "auto", NULL, 0, 0, AT(worker_cpus), "a list such as 0-3,5, auto",
	 "CPUs that workers may run on. auto: the CPUs of the process."},
	{"slots", CONF_U32, "64", NULL, 1, 65535, AT(slots), "1..65535",
	 "Slots of a re-keyed state; fixed when the application first starts."},
	{"exchange", CONF_WORD, "auto", "auto|local|topic", 0, 0, AT(exchange), "auto, local, topic",
	 "How re-keyed records reach their slot: inside the process or over a topic."},
	{"commit.interval.records", CONF_I64, "1000000", NULL, 0, INT64_MAX, AT(commit_records), "0..",
	 "Records between commits on recorded topics, which fall on order points; 0: only at the end."},
	{"commit.interval.ms", CONF_MILLIS, "1000", NULL, 1, MS_MAX, AT(commit_ms), "a duration from 1ms",
	 "Time between commits of live input. 100 under exactly_once unless set."},
	{"emit.interval.ms", CONF_MILLIS, "100", NULL, 1, MS_MAX, AT(emit_ms), "a duration from 1ms",
	 "Live input: how often coalesced EMIT CHANGES leave; other results wait at most this long."},
	{"idle.timeout.ms", CONF_MILLIS, "30000", NULL, 0, MS_MAX, AT(idle_ms), "a duration, 0: never",
	 "A live partition without data for this long no longer holds task time back."},
	{"join.wait.ms", CONF_MILLIS, "5000", NULL, 0, MS_MAX, AT(join_wait_ms), "a duration, 0: not at all",
	 "How long records of one input of a live join wait for another that is known to have more, so that both are "
	 "read by time. A silent input is not waited for."},
	{"idle.advance", CONF_FLAG, "none", "none|wall", 0, 0, AT(idle_advance_wall), "none, wall",
	 "wall: task time goes on with the wall clock while every partition is idle."},
	{"task.time", CONF_FLAG, "min", "min|max", 0, 0, AT(task_time_max), "min, max",
	 "Task time over source partitions: their minimum, or their maximum as in Kafka Streams."},
	{"time.future.max.ms", CONF_MILLIS_OR_OFF, "off", NULL, 0, MS_MAX, AT(time_future_max_ms), "a duration, off",
	 "Records further ahead of task time than this are rejected. They move no time: set it above the longest gap "
	 "in the "
	 "data and above what one partition may lag behind another."},
	{"time.negative", CONF_FLAG, "reject", "reject|allow", 0, 0, AT(allow_negative_time), "reject, allow",
	 "Whether event times before 1970 are taken."},
	{"end.of.input", CONF_FLAG, "close", "close|keep", 0, 0, AT(end_of_input_keep), "close, keep",
	 "What the end of bounded input does with open windows. A source's WITH may override it."},
	{"emit.coalesce", CONF_BOOL, "true", NULL, 0, 0, AT(emit_coalesce), "true, false",
	 "EMIT CHANGES: the last value at each order point (live: in each emit interval), or every update (false)."},
	{"aggregate.elements.max", CONF_U32, "10000", NULL, 1, 10000000, AT(aggregate_elements_max), "1..10000000",
	 "Values of a group that ARRAY_AGG, and over a table MIN, MAX and the like, keep; with more the result is "
	 "NULL."},
	{"state.ttl", CONF_MILLIS, "0", NULL, 0, MS_MAX, AT(state_ttl_ms), "a duration, 0: never",
	 "Rows of tables and groups without a window that nothing has touched for so long, by event time, go."},
	{"state.home", CONF_TEXT, NULL, NULL, 0, 0, AT(state_home), "a folder or brokers",
	 "Where changelog and markers live when the sinks do not decide it."},
	{"state.dir", CONF_TEXT, NULL, NULL, 0, 0, AT(state_dir), "a folder",
	 "Kept for state larger than memory; not used yet."},
	{"record.bytes.max", CONF_BYTES, "16MiB", NULL, 1, INT64_C(1) << 30, AT(record_bytes_max), "1..1GiB",
	 "Larger records are rejected (reason size)."},
	{"batch.bytes.max", CONF_BYTES, "64MiB", NULL, 1024, INT64_C(1) << 31, AT(batch_bytes_max), "1KiB..2GiB",
	 "Stored batches that inflate to more are damage."},
	{"json.depth.max", CONF_U32, "128", NULL, 1, 1000, AT(json_depth_max), "1..1000", "Nesting of JSON records."},
	{"sql.bytes.max", CONF_BYTES, "64KiB", NULL, 1024, 64 << 20, AT(sql_bytes_max), "1KiB..64MiB",
	 "Length of an SQL file."},
	{"sql.depth.max", CONF_U32, "200", NULL, 10, 2000, AT(sql_depth_max), "10..2000",
	 "Nesting of SQL expressions."},
	{"errors.policy", CONF_WORD, "auto", "auto|fail|skip|dead-letter", 0, 0, AT(errors_policy),
	 "auto, fail, skip, dead-letter",
	 "What happens to bad records. auto: dead-letter where a topic is named, else skip. A source's WITH may "
	 "override it."},
	{"errors.deadletterqueue.topic.name", CONF_NAME, NULL, NULL, 1, 249, AT(dead_letter_topic), "a topic name",
	 "Where bad records go. A source's WITH may override it."},
	{"late.topic", CONF_NAME, NULL, NULL, 1, 249, AT(late_topic), "a topic name",
	 "Where late records go. A source's WITH may override it."},
	{"epochs.in.flight", CONF_U32, "4", NULL, 1, 64, AT(epochs_in_flight), "1..64",
	 "Epochs that may await their commit before input pauses."},
	{"scan.rate", CONF_I64, "0", NULL, 0, INT64_MAX, AT(scan_rate), "0..",
	 "Records a second that are read at most; 0: no limit. For tests and demonstrations."},
	{"standby.replicas", CONF_U32, "0", NULL, 0, 100, AT(standby_replicas), "0..100",
	 "How many instances may go away at once with the others taking over their slots by reading only the tail of "
	 "the changelog: they follow it before, in memory."},
	{"broker.wait.ms", CONF_MILLIS, "0", NULL, 0, MS_MAX, AT(broker_wait_ms), "a duration, 0: for ever",
	 "How long run waits for brokers that do not answer when it starts."},
	{"stop.wait.ms", CONF_MILLIS, "30000", NULL, 100, MS_MAX, AT(stop_wait_ms), "a duration",
	 "how long a stop waits for the commit of what has been read; then it is given up, and read again next time"},
	{"topics.create", CONF_BOOL, "true", NULL, 0, 0, AT(topics_create), "true, false",
	 "Whether missing result topics are created."},
	{"order.point.records", CONF_I64, "65536", NULL, 1, 1000000000, AT(order_point_records), "1..1000000000",
	 "Input records between order points. Changing it changes the cuts of output batches."},
	{"order.point.bytes", CONF_BYTES, "16MiB", NULL, 1024, INT64_C(1) << 34, AT(order_point_bytes), "1KiB..16GiB",
	 "Uncompressed input bytes between order points. Changing it changes the cuts of output batches."},
	{"rows.format", CONF_FLAG, "json", "json|table", 0, 0, AT(rows_table), "json, table",
	 "How a bare SELECT prints its rows; the command takes table on a terminal."},
	{"io.poll.records", CONF_U32, "0", NULL, 0, 1 << 20, AT(io_poll_records), "0..1048576",
	 "Records taken from a log at once; 0: its own size. Changes no output; for tests."},
	{"table.local-time-zone", CONF_ZONE, "UTC", NULL, 0, 0, SIZE_MAX, "UTC",
	 "Zone in which TIMESTAMP_LTZ is read and printed."},
};
enum { DEFS = WEIR_COUNT_OF(defs) };

/* Other tools' names for the same. */
static const struct {
	const char *alias;
	const char *name;
} aliases[] = {
	{"pipeline.name", "application.id"},
	{"table.exec.state.ttl", "state.ttl"},
	{"num.stream.threads", "workers"},
	{"parallelism.default", "workers"},
	{"table.exec.resource.default-parallelism", "workers"},
	{"execution.checkpointing.interval", "commit.interval.ms"},
	{"table.exec.source.idle-timeout", "idle.timeout.ms"},
	{"metadata.broker.list", "bootstrap.servers"},
	{"num.standby.replicas", "standby.replicas"},
	{"max.task.idle.ms", "join.wait.ms"},
};

/* Flink settings of these families are taken with a warning when weir has none of that name. */
static const char *const flink_families[] = {
	"table.",        "execution.",        "sql-client.",      "pipeline.",   "restart-strategy",
	"state.backend", "state.checkpoints", "state.savepoints", "jobmanager.", "taskmanager.",
	"rest.",         "parallelism."};

struct conf_value {
	char *text; /* NULL: the default */
	char *place;
	enum weir_origin origin;
};

/* A property of librdkafka's, under its name. */
struct conf_foreign {
	char *name;
	struct conf_value value;
};

struct weir_conf {
	struct conf_value values[DEFS];
	struct conf_foreign *foreign;
	uint32_t foreign_count;
	char *warnings[WARNINGS_MAX];
	uint32_t warning_count;
};

struct weir_conf *weir_conf_create(void)
{
	return calloc(1, sizeof(struct weir_conf));
}

static struct conf_value value_copy(const struct conf_value *v)
{
	struct conf_value c = *v;
	c.text = v->text ? weir_xstrdup(v->text) : NULL;
	c.place = v->place ? weir_xstrdup(v->place) : NULL;
	return c;
}

struct weir_conf *weir_conf_copy(const struct weir_conf *cf)
{
	struct weir_conf *copy = weir_xcalloc(1, sizeof *copy);
	for (size_t i = 0; i < DEFS; i++)
		copy->values[i] = value_copy(&cf->values[i]);
	copy->foreign = weir_xcalloc(cf->foreign_count + 1, sizeof *copy->foreign);
	for (; copy->foreign_count < cf->foreign_count; copy->foreign_count++) {
		const struct conf_foreign *f = &cf->foreign[copy->foreign_count];
		copy->foreign[copy->foreign_count] =
			(struct conf_foreign){.name = weir_xstrdup(f->name), .value = value_copy(&f->value)};
	}
	return copy;
}

void weir_conf_destroy(struct weir_conf *cf)
{
	if (cf == NULL)
		return;
	for (size_t i = 0; i < DEFS; i++) {
		free(cf->values[i].text);
		free(cf->values[i].place);
	}
	for (uint32_t i = 0; i < cf->foreign_count; i++) {
		free(cf->foreign[i].name);
		free(cf->foreign[i].value.text);
		free(cf->foreign[i].value.place);
	}
	free(cf->foreign);
	for (uint32_t i = 0; i < cf->warning_count; i++)
		free(cf->warnings[i]);
	free(cf);
}

static int find_def(const char *name)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(aliases); i++) {
		if (strcmp(name, aliases[i].alias) == 0) {
			name = aliases[i].name;
			break;
		}
	}
	for (int i = 0; i < DEFS; i++) {
		if (strcmp(name, defs[i].name) == 0)
			return i;
	}
	return -1;
}

/* ---- values ---- */

/* Reads digits; false on overflow or when there are none. */
static bool read_digits(const char **s, int64_t *out)
{
	int64_t v = 0;
	const char *from = *s;
	for (; **s >= '0' && **s <= '9'; (*s)++) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, **s - '0', &v))
			return false;
	}
	*out = v;
	return *s != from;
}

static bool add_scaled(int64_t *sum, int64_t n, int64_t unit)
{
	int64_t v;
	return !__builtin_mul_overflow(n, unit, &v) && !__builtin_add_overflow(*sum, v, sum);
}

/* P1DT2H3M4.5S */
static bool parse_iso_duration(const char *s, int64_t *ms)
{
	static const struct {
		char letter;
		bool time;
		int64_t unit;
	} parts[] = {{'D', false, 86400000}, {'H', true, 3600000}, {'M', true, 60000}, {'S', true, 1000}};
	size_t next = 0;
	bool time = false, any = false;
	int64_t sum = 0;
	for (s++; *s != '\0';) {
		if ((*s == 'T' || *s == 't') && !time) {
			time = true;
			any = false;
			s++;
			continue;
		}
		int64_t n, fraction = 0;
		if (!read_digits(&s, &n))
			return false;
		bool has_fraction = *s == '.';
		if (has_fraction) {
			int64_t unit = 100;
			for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
				fraction += (*s - '0') * unit;
		}
		char letter = *s >= 'a' && *s <= 'z' ? (char)(*s - 32) : *s;
		while (next < WEIR_COUNT_OF(parts) && (parts[next].letter != letter || parts[next].time != time))
			next++;
		if (next == WEIR_COUNT_OF(parts) || (has_fraction && letter != 'S'))
			return false;
		if (!add_scaled(&sum, n, parts[next].unit) || !add_scaled(&sum, fraction, 1))
			return false;
		next++;
		any = true;
		s++;
	}
	*ms = sum;
	return any;
}

bool weir_duration_parse(const char *s, int64_t *ms)
{
	static const struct {
		const char *name;
		int64_t unit;
	} units[] = {
		{"ms", 1},          {"milli", 1},      {"millis", 1},      {"millisecond", 1}, {"milliseconds", 1},
		{"s", 1000},        {"sec", 1000},     {"secs", 1000},     {"second", 1000},   {"seconds", 1000},
		{"m", 60000},       {"min", 60000},    {"mins", 60000},    {"minute", 60000},  {"minutes", 60000},
		{"h", 3600000},     {"hour", 3600000}, {"hours", 3600000}, {"d", 86400000},    {"day", 86400000},
		{"days", 86400000},
	};
	if (*s == 'P' || *s == 'p')
		return parse_iso_duration(s, ms);
	int64_t sum = 0, last = INT64_MAX;
	do {
		int64_t n, unit = 0;
		if (!read_digits(&s, &n))
			return false;
		if (*s == '\0' && last == INT64_MAX) { /* a plain number */
			*ms = n;
			return true;
		}
		while (*s == ' ')
			s++;
		size_t bytes = 0;
		while ((s[bytes] >= 'a' && s[bytes] <= 'z') || (s[bytes] >= 'A' && s[bytes] <= 'Z'))
			bytes++;
		for (size_t i = 0; i < WEIR_COUNT_OF(units); i++) {
			if (strlen(units[i].name) == bytes && strncasecmp(s, units[i].name, bytes) == 0)
				unit = units[i].unit;
		}
		if (unit == 0 || unit >= last || !add_scaled(&sum, n, unit))
			return false;
		last = unit;
		s += bytes;
		while (*s == ' ')
			s++;
	} while (*s != '\0');
	*ms = sum;
	return true;
}

bool weir_size_parse(const char *s, uint64_t *bytes)
{
	int64_t n;
	if (!read_digits(&s, &n))
		return false;
	while (*s == ' ')
		s++;
	static const char letters[] = "kmgt";
	int shift = 0;
	if (*s != '\0' && strcasecmp(s, "b") != 0 && strcasecmp(s, "bytes") != 0) {
		char c = *s >= 'A' && *s <= 'Z' ? (char)(*s + 32) : *s;
		const char *at = c != '\0' ? strchr(letters, c) : NULL;
		if (at == NULL)
			return false;
		shift = 10 * (int)(at - letters + 1);
		s++;
		if (*s != '\0' && strcasecmp(s, "b") != 0 && strcasecmp(s, "ib") != 0)
			return false;
	}
	if (n > INT64_MAX >> shift)
		return false;
	*bytes = (uint64_t)n << shift;
	return true;
}

bool weir_cpus_parse(const char *s, cpu_set_t *out)
{
	CPU_ZERO(out);
	for (;;) {
		int64_t from, to;
		while (*s == ' ')
			s++;
		if (!read_digits(&s, &from))
			return false;
		to = from;
		if (*s == '-') {
			s++;
			if (!read_digits(&s, &to))
				return false;
		}
		if (to < from || to >= CPU_SETSIZE)
			return false;
		for (int64_t c = from; c <= to; c++)
			CPU_SET((size_t)c, out);
		while (*s == ' ')
			s++;
		if (*s == '\0')
			return true;
		if (*s++ != ',')
			return false;
	}
}

static int word_number(const char *values, const char *value)
{
	size_t bytes = strlen(value);
	int n = 0;
	for (const char *at = values; at != NULL; n++) {
		const char *bar = strchr(at, '|');
		size_t word = bar != NULL ? (size_t)(bar - at) : strlen(at);
		if (word == bytes && strncasecmp(at, value, word) == 0)
			return n;
		at = bar != NULL ? bar + 1 : NULL;
	}
	return -1;
}

static bool is_name(const char *s, int64_t bytes_max)
{
	size_t bytes = strlen(s);
	if (bytes == 0 || bytes > (size_t)bytes_max || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == bytes;
}

static bool is_utc(const char *zone)
{
	static const char *const names[] = {"UTC", "Z", "GMT", "Etc/UTC", "+00:00", "UTC+00:00", "GMT+00:00"};
	for (size_t i = 0; i < WEIR_COUNT_OF(names); i++) {
		if (strcasecmp(zone, names[i]) == 0)
			return true;
	}
	return false;
}

/* Whether s is a value of d; stores it at to (may be NULL). auto stores nothing: weir_conf_settings works it out. */
static bool parse_value(const struct conf_def *d, const char *s, void *to)
{
	int64_t n = 0;
	uint64_t bytes = 0;
	bool flag = false;
	int word;
	cpu_set_t cpus;
	switch (d->kind) {
	case CONF_TEXT:
		if (*s == '\0' || strcmp(s, "file:") == 0) /* a folder without a name would be / */
			return false;
		break;
	case CONF_NAME:
		if (!is_name(s, d->high))
			return false;
		break;
	case CONF_GUARANTEE:
		if (strcasecmp(s, "exactly_once_v2") == 0 || strcasecmp(s, "exactly_once_beta") == 0 ||
		    strcasecmp(s, "exactly-once") == 0)
			s = "exactly_once";
		else if (strcasecmp(s, "at-least-once") == 0)
			s = "at_least_once";
		/* fall through */
	case CONF_WORD:
		word = word_number(d->values, s);
		if (word < 0)
			return false;
		if (to != NULL)
			memcpy(to, &word, sizeof word);
		return true;
	case CONF_FLAG:
		word = word_number(d->values, s);
		if (word < 0)
			return false;
		flag = word == 1;
		break;
	case CONF_BOOL:
		if (!weir_text_to_bool(s, &flag))
			return false;
		break;
	case CONF_MILLIS_OR_OFF:
		if (strcasecmp(s, "off") == 0) {
			n = -1;
			break;
		}
		/* fall through */
	case CONF_MILLIS:
		if (!weir_duration_parse(s, &n) || n < d->low || n > d->high)
			return false;
		break;
	case CONF_WORKERS:
		if (strcasecmp(s, "auto") == 0)
			return true;
		/* fall through */
	case CONF_U32:
	case CONF_I64:
		if (!weir_text_to_i64(s, &n) || n < d->low || n > d->high)
			return false;
		break;
	case CONF_MEMORY:
		if (strcasecmp(s, "auto") == 0)
			return true;
		/* fall through */
	case CONF_BYTES:
		if (!weir_size_parse(s, &bytes) || (int64_t)bytes < d->low || (int64_t)bytes > d->high)
			return false;
		break;
	case CONF_CPUS:
		if (strcasecmp(s, "auto") == 0)
			return true;
		if (!weir_cpus_parse(s, &cpus))
			return false;
		break;
	case CONF_ZONE:
		return is_utc(s);
	case CONF_NOTHING:
		return true;
	}
	if (to == NULL)
		return true;
	switch (d->kind) {
	case CONF_TEXT:
	case CONF_NAME:
		*(const char **)to = s;
		break;
	case CONF_FLAG:
	case CONF_BOOL:
		*(bool *)to = flag;
		break;
	case CONF_WORKERS:
	case CONF_U32:
		*(uint32_t *)to = (uint32_t)n;
		break;
	case CONF_MEMORY:
	case CONF_BYTES:
		*(uint64_t *)to = bytes;
		break;
	case CONF_CPUS:
		*(cpu_set_t *)to = cpus;
		break;
	default:
		*(int64_t *)to = n;
		break;
	}
	return true;
}

/* ---- setting ---- */

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static void warn(struct weir_conf *cf, const char *name)
{
	struct weir_buf b = {0};
	weir_buf_printf(&b, "property %s has no effect in weir", name);
	weir_buf_put_byte(&b, 0);
	for (uint32_t i = 0; i < cf->warning_count; i++) {
		if (strcmp(cf->warnings[i], (const char *)b.data) == 0) {
			weir_buf_fini(&b);
			return;
		}
	}
	if (cf->warning_count < WARNINGS_MAX)
		cf->warnings[cf->warning_count++] = (char *)b.data;
	else
		weir_buf_fini(&b);
}

enum { NEAREST_NAMES_MAX = 512 };

static enum weir_err unknown_name(struct weir_conf *cf, const char *name, struct weir_diag **dg)
{
	const char *names[NEAREST_NAMES_MAX];
	size_t n = 0;
	_Static_assert(DEFS + WEIR_COUNT_OF(aliases) < NEAREST_NAMES_MAX, "room for librdkafka's names");
	for (size_t i = 0; i < WEIR_COUNT_OF(flink_families); i++) {
		if (starts_with(name, flink_families[i])) {
			warn(cf, name);
			return WEIR_OK;
		}
	}
	const char *bare = starts_with(name, "properties.") ? name + strlen("properties.") : name;
	const char *hint = weir_java_property_hint(bare);
	if (hint != NULL)
		return weir_diag_set(dg, WEIR_E_CONF, "property '%s' is for Java programs: %s", name, hint);
	for (size_t i = 0; i < DEFS; i++)
		names[n++] = defs[i].name;
	for (size_t i = 0; i < WEIR_COUNT_OF(aliases); i++)
		names[n++] = aliases[i].alias;
	for (size_t i = 0; n < NEAREST_NAMES_MAX && weir_kafka_property_name(i) != NULL; i++)
		names[n++] = weir_kafka_property_name(i);
	const char *near = weir_nearest_name(bare, strlen(bare), names, n);
	return weir_diag_set(dg, WEIR_E_CONF, "unknown property '%s'%s%s%s", name,
			     near != NULL ? ": did you mean '" : "", near != NULL ? near : "",
			     near != NULL ? "'?" : "");
}

/* "a=1,b=2" where repetition was meant: the name after the comma, or NULL. */
static const char *second_name(const char *value)
{
	for (const char *comma = strchr(value, ','); comma != NULL; comma = strchr(comma + 1, ',')) {
		const char *equals = strchr(comma, '=');
		if (equals == NULL)
			return NULL;
		for (size_t i = 0; i < DEFS; i++) {
			size_t bytes = strlen(defs[i].name);
			if (bytes == (size_t)(equals - comma - 1) && strncmp(comma + 1, defs[i].name, bytes) == 0)
				return defs[i].name;
		}
	}
	return NULL;
}

static enum weir_err bad_value(const struct conf_def *d, const char *name, const char *value, struct weir_diag **dg)
{
	const char *second = second_name(value);
	bool secret = weir_conf_is_secret(name);
	if (second != NULL)
		return weir_diag_set(dg, WEIR_E_CONF, "property '%s' takes %s, not '%s': give '%s' on its own", name,
				     d->range, value, second);
	if (d->kind == CONF_ZONE)
		return weir_diag_set(
			dg, WEIR_E_CONF,
			"property '%s': times are read and printed in UTC only, not in '%s'; where a query "
			"wants local time: CONVERT_TZ(CAST(t AS STRING), 'UTC', '%s')",
			name, value, value);
	return weir_diag_set(dg, WEIR_E_CONF, "property '%s' takes %s, not '%s'", name, d->range,
			     secret ? "****" : value);
}

/* Takes a stronger or equal origin's value. */
static void keep_value(struct conf_value *v, const char *value, enum weir_origin origin, const char *place)
{
	if (v->text != NULL && origin < v->origin)
		return;
	char *text = weir_xstrdup(value), *at = place != NULL ? weir_xstrdup(place) : NULL;
	free(v->text);
	free(v->place);
	*v = (struct conf_value){text, at, origin};
}

/* A secret is given as @FILE, so that it stands on no command line: the file's first line. */
static enum weir_err read_secret(const char *name, const char *value, char **out, struct weir_diag **dg)
{
	FILE *f = fopen(value + 1, "re");
	struct weir_buf b = {0};
	while (f != NULL && b.bytes <= VALUE_BYTES_MAX) {
		size_t got = fread(weir_buf_room(&b, 4096), 1, 4096, f);
		b.bytes += got;
		if (got == 0)
			break;
	}
	bool failed = f == NULL || ferror(f) != 0;
	if (f != NULL)
		(void)fclose(f);
	while (b.bytes != 0 && (b.data[b.bytes - 1] == '\n' || b.data[b.bytes - 1] == '\r'))
		b.bytes--;
	enum weir_err err = WEIR_OK;
	if (failed)
		err = weir_diag_set(dg, WEIR_E_CONF, "property '%s': cannot read the file '%s'", name, value + 1);
	else if (b.bytes > VALUE_BYTES_MAX || (b.bytes != 0 && memchr(b.data, 0, b.bytes) != NULL))
		err = weir_diag_set(dg, WEIR_E_CONF, "property '%s': '%s' holds no secret: text of at most %d bytes",
				    name, value + 1, VALUE_BYTES_MAX);
	else
		weir_buf_put_byte(&b, 0);
	if (err != WEIR_OK)
		weir_buf_fini(&b);
	*out = (char *)b.data;
	return err;
}

static struct conf_value *find_foreign(const struct weir_conf *cf, const char *name)
{
	for (uint32_t i = 0; i < cf->foreign_count; i++)
		if (strcmp(cf->foreign[i].name, name) == 0)
			return &cf->foreign[i].value;
	return NULL;
}

/* Sets a property that librdkafka knows; *known false: it does not. */
static enum weir_err set_foreign(struct weir_conf *cf, const char *name, const char *value, enum weir_origin origin,
				 const char *place, bool *known, struct weir_diag **dg)
{
	char why[512], *secret = NULL;
	if (starts_with(name, "properties."))
		name += strlen("properties.");
	if (weir_kafka_property_check(name, NULL, NULL, 0) == WEIR_PROPERTY_UNKNOWN) {
		*known = false;
		return WEIR_OK;
	}
	*known = true;
	bool is_secret = weir_conf_is_secret(name);
	if (is_secret && value[0] == '@') {
		enum weir_err err = read_secret(name, value, &secret, dg);
		if (err != WEIR_OK)
			return err;
		value = secret;
	}
	enum weir_err err = WEIR_OK;
	if (weir_kafka_property_check(name, value, why, sizeof why) == WEIR_PROPERTY_BAD) {
		const char *hint = weir_java_property_hint(name); /* librdkafka refuses some of Java's by name */
		err = hint != NULL
			      ? weir_diag_set(dg, WEIR_E_CONF, "property '%s' is for Java programs: %s", name, hint)
			      : weir_diag_set(dg, WEIR_E_CONF, "property '%s' of librdkafka: %s", name,
					      is_secret ? "a value that it does not take" : why);
	} else {
		struct conf_value *v = find_foreign(cf, name);
		if (v == NULL) {
			cf->foreign = weir_xrealloc(cf->foreign, (cf->foreign_count + 1) * sizeof *cf->foreign);
			cf->foreign[cf->foreign_count] = (struct conf_foreign){.name = weir_xstrdup(name)};
			v = &cf->foreign[cf->foreign_count++].value;
		}
		keep_value(v, value, origin, place);
	}
	free(secret);
	return err;
}

enum weir_err weir_conf_set_from(struct weir_conf *cf, const char *name, const char *value, enum weir_origin origin,
				 const char *place, struct weir_diag **out)
{
	if (name == NULL || value == NULL)
		return weir_diag_set(out, WEIR_E_CONF, "a property needs a name and a value");
	if (strlen(value) > VALUE_BYTES_MAX)
		return weir_diag_set(out, WEIR_E_CONF, "the value of property '%s' is longer than %d bytes", name,
				     VALUE_BYTES_MAX);
	if (strcmp(name, "max.task.idle.ms") == 0 && strcmp(value, "-1") == 0)
		value = "0"; /* Kafka Streams' word for not at all */
	int i = find_def(starts_with(name, "properties.bootstrap.servers") ? name + strlen("properties.") : name);
	if (i < 0) {
		bool known;
		enum weir_err err = set_foreign(cf, name, value, origin, place, &known, out);
		return known ? err : unknown_name(cf, name, out);
	}
	struct weir_mem m = {0};
	/* Flink's jobs are called as people call them. */
	if (strcmp(name, "pipeline.name") == 0 && *value != 0)
		value = weir_app_name(&m, value, strlen(value));
	enum weir_err err = WEIR_OK;
	if (!parse_value(&defs[i], value, NULL)) {
		err = bad_value(&defs[i], name, value, out);
	} else {
		if (defs[i].kind == CONF_NOTHING || strcmp(defs[i].name, "state.dir") == 0)
			warn(cf, name);
		keep_value(&cf->values[i], value, origin, place);
	}
	weir_mem_fini(&m);
	return err;
}

bool weir_conf_kafka(const struct weir_conf *cf, uint32_t i, const char **name, const char **value)
{
	if (i >= cf->foreign_count)
		return false;
	*name = cf->foreign[i].name;
	*value = cf->foreign[i].value.text;
	return true;
}

enum weir_err weir_conf_set(struct weir_conf *cf, const char *name, const char *value, struct weir_diag **out)
{
	return weir_conf_set_from(cf, name, value, WEIR_ORIGIN_PROPERTY, NULL, out);
}

/* ---- files ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* One line [at, end) of text; number counts from 1. */
static enum weir_err load_line(struct weir_conf *cf, const char *path, const char *text, size_t bytes, const char *at,
			       const char *end, uint32_t number, struct weir_diag **out)
{
	while (at < end && is_blank(*at))
		at++;
	while (end > at && is_blank(end[-1]))
		end--;
	if (at == end || *at == '#')
		return WEIR_OK;
	const char *equals = memchr(at, '=', (size_t)(end - at));
	const char *name_end = equals;
	while (equals != NULL && name_end > at && is_blank(name_end[-1]))
		name_end--;
	if (equals == NULL || name_end == at)
		return weir_diag_set_at(out, WEIR_E_CONF, path, text, bytes, at, NULL, "expected name = value");
	struct weir_mem m;
	weir_mem_init(&m, 0);
	char *name = weir_mem_strndup(&m, at, (size_t)(name_end - at));
	const char *value_at = equals + 1;
	while (value_at < end && is_blank(*value_at))
		value_at++;
	char *value = weir_mem_strndup(&m, value_at, (size_t)(end - value_at));
	char *remark = weir_conf_is_secret(name) ? NULL : strstr(value, " #"); /* as weir_conf_dump writes */
	if (remark != NULL) {
		while (remark > value && is_blank(remark[-1]))
			remark--;
		*remark = '\0';
	}
	struct weir_diag *inner = NULL;
	enum weir_err err = weir_conf_set_from(cf, name, value, WEIR_ORIGIN_FILE,
					       weir_mem_printf(&m, "%s:%u", path, number), &inner);
	if (err != WEIR_OK)
		(void)weir_diag_set_at(out, err, path, text, bytes, at, NULL, "%s", weir_diag_text(inner));
	weir_diag_destroy(inner);
	weir_mem_fini(&m);
	return err;
}

enum weir_err weir_conf_load(struct weir_conf *cf, const char *path, struct weir_diag **out)
{
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return weir_diag_set(out, WEIR_E_CONF, "cannot open configuration file '%s'", path);
	struct weir_buf b = {0};
	size_t got;
	do {
		got = fread(weir_buf_room(&b, 65536), 1, 65536, f);
		b.bytes += got;
	} while (got != 0 && b.bytes <= FILE_BYTES_MAX);
	bool failed = ferror(f) != 0;
	(void)fclose(f);
	enum weir_err err = WEIR_OK;
	if (failed)
		err = weir_diag_set(out, WEIR_E_IO, "cannot read configuration file '%s'", path);
	else if (b.bytes > FILE_BYTES_MAX || (b.bytes != 0 && memchr(b.data, 0, b.bytes) != NULL))
		err = weir_diag_set(out, WEIR_E_CONF, "'%s' is no configuration file: text of at most 1 MiB", path);
	const char *text = (const char *)b.data, *at = text, *end = text + b.bytes;
	if (b.bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	for (uint32_t number = 1; err == WEIR_OK && at < end; number++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		if (stop == NULL)
			stop = end;
		err = load_line(cf, path, text, b.bytes, at, stop, number, out);
		at = stop + 1;
	}
	weir_buf_fini(&b);
	return err;
}

/* ---- reading ---- */

bool weir_conf_is_secret(const char *name)
{
	static const char *const ends[] = {"password", "secret", "sasl.jaas.config", "ssl.key.pem", "token"};
	size_t bytes = strlen(name);
	for (size_t i = 0; i < WEIR_COUNT_OF(ends); i++) {
		size_t n = strlen(ends[i]);
		if (bytes >= n && strcasecmp(name + bytes - n, ends[i]) == 0)
			return true;
	}
	return false;
}

static bool is_exactly_once(const struct weir_conf *cf)
{
	enum weir_guarantee g = WEIR_AT_LEAST_ONCE;
	int i = find_def("processing.guarantee");
	if (cf->values[i].text != NULL)
		(void)parse_value(&defs[i], cf->values[i].text, &g);
	return g == WEIR_EXACTLY_ONCE;
}

static const char *text_of(const struct weir_conf *cf, int i)
{
	if (cf->values[i].text != NULL)
		return cf->values[i].text;
	if (defs[i].at == AT(commit_ms) && is_exactly_once(cf))
		return "100";
	return defs[i].default_value;
}

const char *weir_conf_get(const struct weir_conf *cf, const char *name)
{
	int i = find_def(name);
	if (i < 0) {
		const struct conf_value *v = find_foreign(cf, name);
		return v != NULL ? v->text : NULL;
	}
	const char *text = text_of(cf, i);
	return text != NULL ? text : "";
}

int weir_conf_is_set(const struct weir_conf *cf, const char *name)
{
	int i = find_def(name);
	return i >= 0 ? cf->values[i].text != NULL : find_foreign(cf, name) != NULL;
}

int weir_conf_describe(unsigned i, const char **name, const char **default_value, const char **range, const char **doc)
{
	if (i >= DEFS)
		return 0;
	if (name != NULL)
		*name = defs[i].name;
	if (default_value != NULL)
		*default_value = defs[i].default_value != NULL ? defs[i].default_value : "";
	if (range != NULL)
		*range = defs[i].range;
	if (doc != NULL)
		*doc = defs[i].doc;
	return 1;
}

uint32_t weir_conf_warning_count(const struct weir_conf *cf)
{
	return cf->warning_count;
}

const char *weir_conf_warning(const struct weir_conf *cf, uint32_t i)
{
	return i < cf->warning_count ? cf->warnings[i] : NULL;
}

static bool env_is(const char *a, const char *b)
{
	for (; *a != '\0' && *b != '\0'; a++, b++) {
		char c = *b == '.' || *b == '-' ? '_' : *b >= 'a' && *b <= 'z' ? (char)(*b - 32) : *b;
		if (*a != c)
			return false;
	}
	return *a == '\0' && *b == '\0';
}

const char *weir_conf_name_of_env(const char *env)
{
	if (!starts_with(env, "WEIR_"))
		return NULL;
	for (size_t i = 0; i < DEFS; i++)
		if (env_is(env + strlen("WEIR_"), defs[i].name))
			return defs[i].name;
	for (size_t i = 0; weir_kafka_property_name(i) != NULL; i++)
		if (env_is(env + strlen("WEIR_"), weir_kafka_property_name(i)))
			return weir_kafka_property_name(i);
	return NULL;
}

char *weir_conf_dump(const struct weir_conf *cf)
{
	static const char *const origins[] = {"default", "file", "environment", "property", "flag"};
	struct weir_buf b = {0};
	struct weir_settings s;
	struct weir_diag *dg = NULL;
	bool resolved = weir_conf_settings(cf, &s, &dg) == WEIR_OK;
	weir_diag_destroy(dg);
	for (int i = 0; i < DEFS; i++) {
		const struct conf_def *d = &defs[i];
		const char *text = text_of(cf, i);
		const struct conf_value *v = &cf->values[i];
		if (text == NULL) {
			weir_buf_printf(&b, "# %s is not set\n", d->name);
			continue;
		}
		weir_buf_printf(&b, "%s = ", d->name);
		bool is_auto = strcasecmp(text, "auto") == 0;
		if (weir_conf_is_secret(d->name))
			weir_buf_puts(&b, "****");
		else if (is_auto && resolved && d->kind == CONF_MEMORY)
			weir_buf_printf(&b, "%llu", (unsigned long long)s.memory_max);
		else if (is_auto && resolved && d->kind == CONF_WORKERS)
			weir_buf_printf(&b, "%u", s.workers);
		else
			weir_buf_puts(&b, text);
		weir_buf_printf(&b, "  # %s%s%s\n", v->text == NULL ? "default" : origins[v->origin],
				v->place != NULL ? " " : "", v->place != NULL ? v->place : "");
	}
	for (uint32_t i = 0; i < cf->foreign_count; i++) {
		const struct conf_value *v = &cf->foreign[i].value;
		weir_buf_printf(&b, "%s = %s  # %s%s%s\n", cf->foreign[i].name,
				weir_conf_is_secret(cf->foreign[i].name) ? "****" : v->text, origins[v->origin],
				v->place != NULL ? " " : "", v->place != NULL ? v->place : "");
	}
	weir_buf_put_byte(&b, 0);
	return (char *)b.data;
}

/* ---- the machine ---- */

/* A number from a small file; UINT64_MAX when it is not there or says max. */
static uint64_t read_limit(const char *dir, const char *group, size_t group_bytes, const char *file)
{
	char path[4096], text[64] = "";
	if (snprintf(path, sizeof path, "%s%.*s/%s", dir, (int)group_bytes, group, file) >= (int)sizeof path)
		return UINT64_MAX;
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return UINT64_MAX;
	size_t got = fread(text, 1, sizeof text - 1, f);
	(void)fclose(f);
	while (got > 0 && (text[got - 1] == '\n' || text[got - 1] == ' '))
		text[--got] = '\0';
	int64_t n;
	return weir_text_to_i64(text, &n) && n > 0 ? (uint64_t)n : UINT64_MAX;
}

/* The smallest limit of the group and of every group above it. */
static uint64_t group_limit(const char *dir, const char *group, const char *file)
{
	size_t bytes = strlen(group);
	uint64_t limit = UINT64_MAX;
	for (;;) {
		while (bytes > 0 && group[bytes - 1] == '/')
			bytes--;
		uint64_t here = read_limit(dir, group, bytes, file);
		limit = here < limit ? here : limit;
		if (bytes == 0)
			return limit;
		while (bytes > 0 && group[bytes - 1] != '/')
			bytes--;
	}
}

static uint64_t ram_bytes(void)
{
	char line[256];
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	while (f != NULL && kib == 0 && fgets(line, sizeof line, f) != NULL) {
		if (sscanf(line, "MemTotal: %llu kB", &kib) != 1)
			kib = 0;
	}
	if (f != NULL)
		(void)fclose(f);
	return kib != 0 ? kib * 1024 : (uint64_t)1 << 30;
}

uint64_t weir_memory_limit(const char *proc_cgroup, const char *sys_cgroup)
{
	uint64_t limit = ram_bytes();
	char line[4096], v1[4096];
	snprintf(v1, sizeof v1, "%s/memory", sys_cgroup);
	FILE *f = fopen(proc_cgroup, "re");
	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		char *controllers = strchr(line, ':');
		char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
		if (group == NULL)
			continue;
		*group++ = '\0';
		uint64_t here = UINT64_MAX;
		if (controllers[1] == '\0') { /* 0::/group is version 2 */
			here = group_limit(sys_cgroup, group, "memory.max");
		} else {
			for (char *c = controllers + 1, *next; c != NULL; c = next) {
				next = strchr(c, ',');
				if (next != NULL)
					*next++ = '\0';
				if (strcmp(c, "memory") == 0)
					here = group_limit(v1, group, "memory.limit_in_bytes");
			}
		}
		limit = here < limit ? here : limit;
	}
	if (f != NULL)
		(void)fclose(f);
	return limit;
}

enum weir_err weir_conf_settings(const struct weir_conf *cf, struct weir_settings *out, struct weir_diag **dg)
{
	memset(out, 0, sizeof *out);
	for (int i = 0; i < DEFS; i++) {
		const char *text = text_of(cf, i);
		if (text != NULL && defs[i].at != SIZE_MAX && !parse_value(&defs[i], text, (char *)out + defs[i].at))
			return bad_value(&defs[i], defs[i].name, text, dg);
	}
	cpu_set_t mine;
	if (sched_getaffinity(0, sizeof mine, &mine) != 0) {
		CPU_ZERO(&mine);
		CPU_SET(0, &mine);
	}
	out->cpu_count = (uint32_t)CPU_COUNT(&mine);
	out->worker_cpus_set = CPU_COUNT(&out->worker_cpus) != 0;
	if (out->worker_cpus_set) {
		cpu_set_t both;
		CPU_AND(&both, &mine, &out->worker_cpus);
		if (!CPU_EQUAL(&both, &out->worker_cpus))
			return weir_diag_set(dg, WEIR_E_CONF,
					     "property 'worker.cpus' = '%s' names CPUs that the process may not use",
					     weir_conf_get(cf, "worker.cpus"));
	} else {
		out->worker_cpus = mine;
	}
	if (out->workers == 0) {
		uint32_t cpus = out->worker_cpus_set ? (uint32_t)CPU_COUNT(&out->worker_cpus) : out->cpu_count - 1;
		out->workers = cpus == 0 ? 1 : cpus > 1024 ? 1024 : cpus;
	}
	if (out->memory_max == 0) {
		out->memory_max = weir_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup") / 2;
		if (out->memory_max < MEMORY_LEAST)
			out->memory_max = MEMORY_LEAST;
	}
	return WEIR_OK;
}

bool weir_settings_commits_late(const struct weir_settings *st, struct weir_buf *out)
{
	if (st->commit_records == 0 || st->commit_records >= st->order_point_records)
		return false;
	weir_buf_printf(
		out,
		"commit.interval.records = %lld has the effect of %lld: commits fall on order points, which come "
		"every order.point.records = %lld records, or sooner by their bytes",
		(long long)st->commit_records, (long long)st->order_point_records, (long long)st->order_point_records);
	return true;
}

enum weir_err weir_settings_for_source(const struct weir_settings *st, const struct weir_table_options *o,
				       const char *table, struct weir_source_settings *out, struct weir_diag **dg)
{
	out->late_topic = o->late_topic != NULL ? o->late_topic : st->late_topic;
	out->dead_letter_topic = o->dead_letter_topic != NULL ? o->dead_letter_topic : st->dead_letter_topic;
	out->end_of_input_keep =
		o->end_of_input == WEIR_END_DEFAULT ? st->end_of_input_keep : o->end_of_input == WEIR_END_KEEP;
	out->policy = o->errors_policy != WEIR_ERRORS_DEFAULT ? o->errors_policy : st->errors_policy;
	if (out->policy == WEIR_ERRORS_DEFAULT)
		out->policy = out->dead_letter_topic != NULL ? WEIR_ERRORS_DEAD_LETTER : WEIR_ERRORS_SKIP;
	if (out->policy == WEIR_ERRORS_DEAD_LETTER && out->dead_letter_topic == NULL)
		return weir_diag_set(
			dg, WEIR_E_CONF,
			"table '%s': 'errors.policy' = 'dead-letter' needs 'errors.deadletterqueue.topic.name'", table);
	if (out->policy != WEIR_ERRORS_DEAD_LETTER)
		out->dead_letter_topic = NULL;
	return WEIR_OK;
}
