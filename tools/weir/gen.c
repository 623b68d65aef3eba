/* gen.c: `weir gen KIND`: writes a recorded topic of events whose bytes depend on the arguments alone. Main thread.
 *
 * Marks. A late or bad record carries the header `weir-gen: late` or `bad`. A late one must be late for every correct
 * reader, whatever its windows, its poll sizes and the order in which it takes partitions with equal times: its event
 * time lies two to four hours before the recording begins, and it comes only when every partition is known to have been
 * read a little way:
 *
 *   record  0 ... warm-up ... | cut | first of each partition ............ the rest
 *             in order,       stored   ordinary, without disorder           late and bad ones among them
 *             ordinary        batches
 *                             end
 *
 * A reader that merges partitions by the first timestamp of their stored batches takes all batches before the cut
 * first. */
#include "tools/weir/cli.h"
#include "tools/weir/gen.h"
#include "hotpath/core/mem.h"
#include "io/recorded/recorded.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { MARK_NONE, MARK_LATE, MARK_BAD };
enum { PURPOSE_MARK = 100, PARTITIONS_MAX = 4096, BAD_FORMS = 12, NEST = 200, TWO_HOURS_MS = 7200000 };

/* Kafka's record headers: [varint length, name, varint length, value], lengths zigzag. */
static const uint8_t header_late[] = "\x10weir-gen\x08late";
static const uint8_t header_bad[] = "\x10weir-gen\x06"
				    "bad";

struct gen_plan {
	struct weir_gen g;
	const struct weir_gen_kind *kind;
	uint32_t key_column;
	uint32_t partitions;
	uint64_t zipf_micro;
	uint64_t late_micro;
	uint64_t bad_micro;
	enum weir_codec codec;
	const char *out;
	const char *topic;
	struct weir_topic_writer *w;
	bool *seen; /* by partition: has a record (before the cut), has one since (after it) */
	uint32_t seen_count;
	bool warming;
	int64_t seen_last_ms; /* when the last partition got its first record */
	uint64_t late;
	uint64_t bad;
	uint64_t bytes;
};

/* ---- bad values ---- */

/* Puts text where the value's first string begins. */
static void spoil_first_string(struct weir_gen_event *ev, const char *text)
{
	uint8_t *at = (uint8_t *)memchr(ev->value, ':', ev->value_bytes) + 2;
	size_t bytes = strlen(text);
	memmove(at + bytes, at, ev->value_bytes - (uint32_t)(at - ev->value));
	memcpy(at, text, bytes);
	ev->value_bytes += (uint32_t)bytes;
}

static void append(struct weir_gen_event *ev, const char *text)
{
	size_t bytes = strlen(text);
	memcpy(ev->value + ev->value_bytes, text, bytes);
	ev->value_bytes += (uint32_t)bytes;
}

static void append_nested(struct weir_gen_event *ev)
{
	append(ev, ",\"x\":");
	memset(ev->value + ev->value_bytes, '[', NEST);
	memset(ev->value + ev->value_bytes + NEST, ']', NEST);
	ev->value_bytes += 2 * NEST;
}

static void end_with_ts(struct weir_gen_event *ev, int64_t ts)
{
	append(ev, ",\"ts\":");
	ev->value_bytes = (uint32_t)(weir_gen_digits(ev->value + ev->value_bytes, (uint64_t)ts, 1) - ev->value);
	append(ev, "}");
}

/* Ends the value so that no reader of the documented columns can use it. */
static void end_badly(struct weir_gen_event *ev, struct weir_gen_rng *r)
{
	uint64_t form = weir_gen_below(r, BAD_FORMS);
	switch (form) {
	case 0: /* cut off */
		end_with_ts(ev, ev->ts);
		ev->value_bytes = 1 + (uint32_t)weir_gen_below(r, ev->value_bytes - 1);
		return;
	case 1: /* something behind the document */
		end_with_ts(ev, ev->ts);
		append(ev, "x");
		return;
	case 2: /* no UTF-8 */
		spoil_first_string(ev, "\xff\xfe");
		end_with_ts(ev, ev->ts);
		return;
	case 3: /* half a surrogate pair */
		spoil_first_string(ev, "\\ud800");
		end_with_ts(ev, ev->ts);
		return;
	case 4:
		append(ev, ",\"ts\":{\"at\":1}}");
		return;
	case 5:
		append(ev, ",\"ts\":true}");
		return;
	case 6:
		append(ev, ",\"ts\":99999999999999999999}");
		return;
	case 7:
		append(ev, ",\"ts\":\"yesterday\"}");
		return;
	case 8:
		append(ev, ",\"ts\":0x19b7}");
		return;
	case 9:
		append(ev, "}");
		return; /* no time at all */
	case 10:
		ev->value_bytes = 0;
		return; /* empty, which is not null */
	default:        /* nested too deep */
		append_nested(ev);
		end_with_ts(ev, ev->ts);
		return;
	}
}

/* ---- the loop ---- */

static int draw_mark(const struct gen_plan *pl, struct weir_gen_rng *r)
{
	uint64_t u = weir_gen_below(r, 1000000);
	if (u < pl->late_micro)
		return MARK_LATE;
	return u < pl->late_micro + pl->bad_micro ? MARK_BAD : MARK_NONE;
}

/* Warm-up is over when every partition that has keys was met, and time has moved on since. */
static bool warm(const struct gen_plan *pl, uint64_t i, int64_t arrival)
{
	bool all = pl->seen_count == pl->partitions || i >= (uint64_t)pl->g.keys + UINT64_C(64) * pl->partitions;
	return all && arrival > pl->seen_last_ms;
}

static enum weir_err end_warm_up(struct gen_plan *pl, struct weir_diag **dg)
{
	pl->warming = false;
	pl->g.sequential = false;
	memset(pl->seen, 0, pl->partitions * sizeof *pl->seen);
	return weir_topic_writer_cut(pl->w, dg);
}

/* Event time, mark and the end of the value. The draws are taken in any case, so that warm-up shifts nothing. */
static int finish_event(struct gen_plan *pl, struct weir_gen_event *ev, struct weir_gen_rng *r, int64_t arrival,
			bool ordinary)
{
	int mark = draw_mark(pl, r);
	int64_t disorder = (int64_t)weir_gen_below(r, (uint64_t)pl->g.disorder_ms + 1);
	int64_t lateness = TWO_HOURS_MS + (int64_t)weir_gen_below(r, TWO_HOURS_MS);
	if (ordinary) {
		mark = MARK_NONE;
		ev->ts = arrival;
	} else if (pl->g.payment == NULL) {
		ev->ts = weir_max_i64(arrival - disorder, WEIR_GEN_START_MS);
	}
	if (ev->value_null)
		return MARK_NONE;
	if (mark == MARK_LATE)
		ev->ts = WEIR_GEN_START_MS - lateness;
	if (mark == MARK_BAD)
		end_badly(ev, r);
	else
		end_with_ts(ev, ev->ts);
	return mark;
}

static enum weir_err put_event(struct gen_plan *pl, uint64_t i, struct weir_gen_event *ev, struct weir_diag **dg)
{
	int64_t arrival = pl->g.payment != NULL ? pl->g.payment[i].arrival : weir_gen_time(&pl->g, i);
	if (pl->warming && warm(pl, i, arrival)) {
		enum weir_err err = end_warm_up(pl, dg);
		if (err != WEIR_OK)
			return err;
	}
	ev->ts = arrival;
	ev->value_null = false;
	pl->kind->make(&pl->g, i, ev);
	const struct weir_gen_id *key = &ev->id[pl->key_column];
	uint32_t partition = (weir_murmur2(key->text, key->bytes) & 0x7fffffff) % pl->partitions;
	bool first = !pl->seen[partition];
	if (first) {
		pl->seen[partition] = true;
		pl->seen_count += pl->warming;
		pl->seen_last_ms = arrival;
	}
	struct weir_gen_rng r = weir_gen_rng_at(pl->g.seed, PURPOSE_MARK, i);
	int mark = finish_event(pl, ev, &r, arrival, pl->warming || first);
	pl->late += mark == MARK_LATE;
	pl->bad += mark == MARK_BAD;
	struct weir_out out = {
		.key = {key->text, key->bytes},
		.value = {ev->value_null ? NULL : ev->value, ev->value_null ? 0 : ev->value_bytes},
		.timestamp = ev->ts,
	};
	if (mark != MARK_NONE) {
		out.headers = mark == MARK_LATE ? header_late : header_bad;
		out.headers_bytes = (uint32_t)(mark == MARK_LATE ? sizeof header_late : sizeof header_bad) - 1;
		out.header_count = 1;
	}
	pl->bytes += out.key.bytes + out.value.bytes;
	return weir_topic_writer_put(pl->w, partition, &out, dg);
}

static volatile sig_atomic_t stopped_by;

static void on_signal(int number)
{
	stopped_by = number;
}

static enum weir_err write_topic(struct gen_plan *pl, struct weir_diag **dg)
{
	enum weir_err err = weir_topic_writer_open(&pl->w, pl->out, pl->topic, pl->partitions, pl->codec, dg);
	if (err != WEIR_OK)
		return err;
	bool progress = isatty(STDERR_FILENO) != 0;
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	struct weir_gen_event *ev = weir_xcalloc(1, sizeof *ev);
	for (uint64_t i = 0; i < pl->g.records && err == WEIR_OK; i++) {
		err = put_event(pl, i, ev, dg);
		if (err == WEIR_OK && stopped_by != 0)
			err = weir_diag_set(dg, WEIR_E_STOPPED,
					    "stopped by a signal after %llu records: nothing is kept",
					    (unsigned long long)(i + 1));
		if (progress && i % 1000000 == 999999)
			weir_talk("%llu of %llu records", (unsigned long long)(i + 1),
				  (unsigned long long)pl->g.records);
	}
	free(ev);
	if (err == WEIR_OK)
		err = weir_topic_writer_cut(pl->w, dg);
	if (err == WEIR_OK)
		return weir_topic_writer_close(pl->w, dg);
	weir_topic_writer_drop(pl->w);
	return err;
}

/* ---- the command line ---- */

enum {
	OPT_RECORDS = 1,
	OPT_KEYS,
	OPT_PARTITIONS,
	OPT_SEED,
	OPT_RATE,
	OPT_KEY,
	OPT_ZIPF,
	OPT_DISORDER,
	OPT_LATE,
	OPT_BAD,
	OPT_CODEC,
	OPT_OUT,
	OPT_TOPIC,
	OPT_QUIET
};

static const struct weir_flag gen_options[] = {
	{OPT_RECORDS, 'c', "records", "N", "how many (1M; payments: orders they belong to)"},
	{OPT_KEYS, 0, "keys", "K", "merchants, products or users (1000)"},
	{OPT_PARTITIONS, 0, "partitions", "P", "partitions of the topic (4)"},
	{OPT_SEED, 0, "seed", "S", "another seed, other events (1)"},
	{OPT_RATE, 0, "rate", "R", "records a second of event time (10000)"},
	{OPT_KEY, 0, "key", "COLUMN", "the column that is the Kafka key"},
	{OPT_ZIPF, 0, "zipf", "Z", "key number k has weight 1/(k+1)^Z (0: all alike)"},
	{OPT_DISORDER, 0, "disorder-ms", "D", "event times lie up to D ms before their place (0)"},
	{OPT_LATE, 0, "late", "SHARE", "share of records hours late, marked in a header (0)"},
	{OPT_BAD, 0, "bad", "SHARE", "share of malformed records, marked in a header (0)"},
	{OPT_CODEC, 'z', "codec", "CODEC", "none, gzip, snappy, lz4 or zstd (none)"},
	{OPT_OUT, 0, "out", "DIR", "the folder; the topic must not be there yet"},
	{OPT_TOPIC, 't', "topic", "NAME", "instead of the kind's own topic name"},
	{OPT_QUIET, 'q', "quiet", NULL, "say nothing on stderr"},
};

static int number_error(const struct weir_verb *vb, const char *option, const char *value, const char *wanted)
{
	return weir_usage_error(vb, "--%s: %s is not %s", option, value, wanted);
}

static const struct weir_gen_kind *find_kind(const char *name)
{
	for (const struct weir_gen_kind *kd = weir_gen_kinds; kd->name != NULL; kd++)
		if (strcmp(kd->name, name) == 0)
			return kd;
	return NULL;
}

static int kind_error(const struct weir_verb *vb, const char *name)
{
	const char *names[16];
	size_t count = 0;
	for (const struct weir_gen_kind *kd = weir_gen_kinds; kd->name != NULL; kd++)
		names[count++] = kd->name;
	const char *near = weir_nearest_name(name, strlen(name), names, count);
	if (near != NULL)
		return weir_usage_error(vb, "unknown kind %s; did you mean %s?", name, near);
	return weir_usage_error(
		vb, "unknown kind %s: orders, payments, prices, products, sales, logins, devices or alerts", name);
}

static bool find_column(const struct weir_gen_kind *kd, const char *name, uint32_t *column)
{
	for (uint32_t i = 0; i < WEIR_GEN_IDS && kd->columns[i] != NULL; i++) {
		*column = i;
		if (strcmp(kd->columns[i], name) == 0)
			return true;
	}
	return false;
}

static int key_error(const struct weir_verb *vb, const struct weir_gen_kind *kd, const char *name)
{
	size_t count = 0;
	while (count < WEIR_GEN_IDS && kd->columns[count] != NULL)
		count++;
	const char *near = weir_nearest_name(name, strlen(name), kd->columns, count);
	return weir_usage_error(vb, "--key: %s cannot be keyed by %s; did you mean %s?", kd->name, name,
				near != NULL ? near : kd->columns[0]);
}

/* Puts one option's value into the plan; nonzero: an exit code. */
static int set_option(const struct weir_verb *vb, struct gen_plan *pl, int id, const char *value)
{
	uint64_t v = 0;
	switch (id) {
	case OPT_RECORDS:
		if (!weir_arg_u64(value, 0, UINT64_C(1000000000000), &pl->g.records))
			return number_error(vb, "records", value, "a number of records");
		return 0;
	case OPT_KEYS:
		if (!weir_arg_u64(value, 1, WEIR_GEN_KEYS_MAX, &v))
			return number_error(vb, "keys", value, "a number from 1 to 16777216");
		pl->g.keys = (uint32_t)v;
		return 0;
	case OPT_PARTITIONS:
		if (!weir_arg_u64(value, 1, PARTITIONS_MAX, &v))
			return number_error(vb, "partitions", value, "a number from 1 to 4096");
		pl->partitions = (uint32_t)v;
		return 0;
	case OPT_SEED:
		return weir_arg_u64(value, 0, UINT64_MAX, &pl->g.seed) ? 0
								       : number_error(vb, "seed", value, "a number");
	case OPT_RATE:
		return weir_arg_u64(value, 1, UINT64_C(1000000000), &pl->g.rate)
			       ? 0
			       : number_error(vb, "rate", value, "a rate above 0");
	case OPT_ZIPF:
		if (!weir_arg_micro(value, 10000000, &v))
			return number_error(vb, "zipf", value, "a number from 0 to 10");
		pl->zipf_micro = v;
		return 0;
	case OPT_DISORDER:
		if (!weir_arg_u64(value, 0, 86400000, &v))
			return number_error(vb, "disorder-ms", value, "a number of milliseconds up to a day");
		pl->g.disorder_ms = (int64_t)v;
		return 0;
	case OPT_LATE:
		return weir_arg_micro(value, 500000, &pl->late_micro)
			       ? 0
			       : number_error(vb, "late", value, "a share from 0 to 0.5");
	case OPT_BAD:
		return weir_arg_micro(value, 500000, &pl->bad_micro)
			       ? 0
			       : number_error(vb, "bad", value, "a share from 0 to 0.5");
	case OPT_CODEC: {
		struct weir_diag *dg = NULL;
		if (weir_codec_parse(&pl->codec, value, &dg) == WEIR_OK)
			return 0;
		int code = weir_usage_error(vb, "--codec: %s", weir_diag_text(dg));
		weir_diag_destroy(dg);
		return code;
	}
	case OPT_OUT:
		pl->out = value;
		return 0;
	case OPT_TOPIC:
		pl->topic = value;
		return 0;
	default:
		weir_talk_quiet();
		return 0;
	}
}

static int read_arguments(const struct weir_verb *vb, struct gen_plan *pl, int argc, char **argv, bool *done)
{
	struct weir_args ag;
	const char *key = NULL;
	weir_args_init(&ag, vb, argc, argv);
	*done = true;
	for (int id; (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			return ag.exit_code;
		int code = 0;
		if (id == OPT_KEY)
			key = ag.value;
		else if (id != WEIR_ARGS_WORD)
			code = set_option(vb, pl, id, ag.value);
		else if (pl->kind != NULL)
			code = weir_usage_error(vb, "one kind at a time: %s and then %s", pl->kind->name, ag.value);
		else if ((pl->kind = find_kind(ag.value)) == NULL)
			code = kind_error(vb, ag.value);
		if (code != 0)
			return code;
	}
	if (pl->kind == NULL)
		return weir_usage_error(
			vb, "which kind? orders, payments, prices, products, sales, logins, devices or alerts");
	if (pl->out == NULL || *pl->out == 0)
		return weir_usage_error(vb, "--out DIR is missing");
	if (key != NULL && !find_column(pl->kind, key, &pl->key_column))
		return key_error(vb, pl->kind, key);
	*done = false;
	return 0;
}

static int gen_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct gen_plan pl = {
		.g = {.seed = 1, .records = 1000000, .rate = 10000, .keys = 1000, .sequential = true},
		.partitions = 4,
		.warming = true,
	};
	bool done;
	int code = read_arguments(vb, &pl, argc, argv, &done);
	if (done)
		return code;
	if (pl.topic == NULL)
		pl.topic = pl.kind->topic;
	struct weir_diag *dg = NULL;
	if (weir_recorded_partitions(pl.out, pl.topic) != 0)
		return weir_fail((weir_diag_set(&dg, WEIR_E_CONF,
						"%s already has a topic %s: remove its folders or choose --topic",
						pl.out, pl.topic),
				  dg));
	weir_gen_zipf_init(&pl.g.zipf, pl.g.keys, pl.zipf_micro);
	pl.seen = weir_xcalloc(pl.partitions, sizeof *pl.seen);
	enum weir_err err = WEIR_OK;
	if (pl.kind->begin != NULL && !pl.kind->begin(&pl.g))
		err = weir_diag_set(&dg, WEIR_E_CONF, "--records: too many for %s (200M at most)", pl.kind->name);
	if (err == WEIR_OK)
		err = write_topic(&pl, &dg);
	if (err == WEIR_OK)
		weir_talk("%s: %llu records (%llu late, %llu bad), %llu MB, %u partitions in %s", pl.topic,
			  (unsigned long long)pl.g.records, (unsigned long long)pl.late, (unsigned long long)pl.bad,
			  (unsigned long long)(pl.bytes / 1000000), pl.partitions, pl.out);
	free(pl.seen);
	weir_gen_end(&pl.g);
	code = err == WEIR_OK ? WEIR_EXIT_OK : weir_fail(dg);
	return stopped_by != 0 && err != WEIR_OK ? 128 + stopped_by : code;
}

const struct weir_verb weir_verb_gen = {
	.name = "gen",
	.usage = "KIND [OPTIONS] --out DIR",
	.brief = "write a recorded topic of made-up events",
	.examples =
		"  weir gen orders --records 10M --keys 100000 --partitions 16 --out rec\n"
		"  weir gen logins --records 1M --keys 20000 --late 0.001 --bad 0.001 --disorder-ms 2000 --out rec\n",
	.options = gen_options,
	.option_count = WEIR_COUNT_OF(gen_options),
	.notes = "Kinds: orders, payments, prices, products, sales, logins, devices, alerts. The bytes depend on the "
		 "arguments\n"
		 "alone. Event time starts at 2026-01-01T00:00:00Z. Records go to partition murmur2(key) % P, as "
		 "Java's producer\n"
		 "does. Late and bad records carry the header `weir-gen`.\n",
	.run = gen_run,
};
