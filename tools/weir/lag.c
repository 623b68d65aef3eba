/* lag.c: `weir lag APP -b BROKERS`: how far a consumer group is behind, in records and in seconds: Kafka's nine columns
 * first, then ours. Main thread. */
#include "tools/weir/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hotpath/core/mem.h"

enum lag_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };
enum lag_by { BY_PARTITION, BY_TOPIC, BY_MEMBER, BY_APP };
#define NO_PARTITION UINT32_MAX /* a row is the sum of several */
enum { COLUMNS = 10, CELL_BYTES = 256 };

/* '>N' or '>Ns' */
struct lag_limit {
	bool given;
	uint64_t above;
	bool seconds; /* it is about time, not records */
};
struct lag_plan {
	struct weir_job job;
	const char *app;
	enum lag_format format;
	enum lag_by by;
	uint64_t watch_ms; /* 0: once */
	struct lag_limit fail, show;
	bool failed;
};

static const char *const columns[COLUMNS] = {"GROUP", "TOPIC",       "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET",
					     "LAG",   "CONSUMER-ID", "HOST",      "CLIENT-ID",      "LAG-SECONDS"};

/* ---- printing ---- */

static void number_cell(char *to, int64_t v)
{
	if (v < 0)
		snprintf(to, CELL_BYTES, "-");
	else
		snprintf(to, CELL_BYTES, "%lld", (long long)v);
}

static void text_cell(char *to, const char *text)
{
	snprintf(to, CELL_BYTES, "%s", text != NULL ? text : "-");
}

/* 1.234 */
static void seconds_cell(char *to, int64_t ms)
{
	if (ms < 0)
		snprintf(to, CELL_BYTES, "-");
	else
		snprintf(to, CELL_BYTES, "%lld.%03lld", (long long)(ms / 1000), (long long)(ms % 1000));
}

static void row_cells(const struct weir_lag *lag, const struct weir_lag_row *row, char cells[COLUMNS][CELL_BYTES])
{
	text_cell(cells[0], lag->group);
	text_cell(cells[1], row->topic);
	number_cell(cells[2], row->partition == NO_PARTITION ? -1 : (int64_t)row->partition);
	number_cell(cells[3], row->current);
	number_cell(cells[4], row->end);
	number_cell(cells[5], row->lag);
	text_cell(cells[6], row->consumer);
	text_cell(cells[7], row->host);
	text_cell(cells[8], row->client);
	seconds_cell(cells[9], row->lag_ms);
}

static void put_table(const struct weir_lag *lag)
{
	char cells[COLUMNS][CELL_BYTES];
	size_t width[COLUMNS];
	for (int c = 0; c < COLUMNS; c++)
		width[c] = strlen(columns[c]);
	for (size_t i = 0; i < lag->row_count; i++) {
		row_cells(lag, &lag->rows[i], cells);
		for (int c = 0; c < COLUMNS; c++)
			width[c] = strlen(cells[c]) > width[c] ? strlen(cells[c]) : width[c];
	}
	for (int c = 0; c < COLUMNS; c++)
		weir_data_printf("%-*s%s", c + 1 < COLUMNS ? (int)width[c] : 0, columns[c],
				 c + 1 < COLUMNS ? "  " : "\n");
	for (size_t i = 0; i < lag->row_count; i++) {
		row_cells(lag, &lag->rows[i], cells);
		for (int c = 0; c < COLUMNS; c++)
			weir_data_printf("%-*s%s", c + 1 < COLUMNS ? (int)width[c] : 0, cells[c],
					 c + 1 < COLUMNS ? "  " : "\n");
	}
}

static void put_csv_cell(const char *text)
{
	if (strpbrk(text, ",\"\r\n") == NULL) {
		weir_data_puts(text);
		return;
	}
	weir_data_puts("\"");
	for (; *text != 0; text++) {
		weir_data_put(text, 1);
		if (*text == '"')
			weir_data_puts("\"");
	}
	weir_data_puts("\"");
}

static void put_csv(const struct weir_lag *lag, bool head)
{
	char cells[COLUMNS][CELL_BYTES];
	if (head)
		weir_data_puts("group,topic,partition,current_offset,log_end_offset,lag,consumer_id,host,client_id,"
			       "lag_seconds\n");
	for (size_t i = 0; i < lag->row_count; i++) {
		row_cells(lag, &lag->rows[i], cells);
		for (int c = 0; c < COLUMNS; c++) {
			weir_data_puts(c != 0 ? "," : "");
			if (strcmp(cells[c], "-") != 0) /* nothing known: an empty field */
				put_csv_cell(cells[c]);
		}
		weir_data_puts("\n");
	}
}

static void put_json_text(const char *name, const char *text)
{
	weir_data_printf("\"%s\":", name);
	if (text != NULL)
		weir_data_json((const uint8_t *)text, strlen(text));
	else
		weir_data_puts("null");
}

static void put_json_number(const char *name, int64_t v)
{
	if (v < 0)
		weir_data_printf(",\"%s\":null", name);
	else
		weir_data_printf(",\"%s\":%lld", name, (long long)v);
}

static void put_json_seconds(const char *name, int64_t ms)
{
	char text[CELL_BYTES];
	seconds_cell(text, ms);
	weir_data_printf(",\"%s\":%s", name, ms < 0 ? "null" : text);
}

static void put_json(const struct weir_lag *lag, enum lag_by by)
{
	weir_data_puts("{");
	put_json_text("group", lag->group);
	weir_data_puts(",");
	put_json_text("state", lag->state);
	weir_data_printf(",\"members\":%u", lag->members);
	put_json_number("lag", lag->lag);
	put_json_seconds("lag_seconds", lag->lag_ms);
	weir_data_puts(by == BY_PARTITION ? ",\"partitions\":[" : ",\"rows\":[");
	for (size_t i = 0; i < lag->row_count; i++) {
		const struct weir_lag_row *row = &lag->rows[i];
		weir_data_puts(i != 0 ? ",{" : "{");
		put_json_text("topic", row->topic);
		put_json_number("partition", row->partition == NO_PARTITION ? -1 : (int64_t)row->partition);
		put_json_number("current_offset", row->current);
		put_json_number("log_end_offset", row->end);
		put_json_number("lag", row->lag);
		weir_data_puts(",");
		put_json_text("consumer_id", row->consumer);
		weir_data_puts(",");
		put_json_text("host", row->host);
		weir_data_puts(",");
		put_json_text("client_id", row->client);
		put_json_seconds("lag_seconds", row->lag_ms);
		weir_data_puts("}");
	}
	weir_data_puts("]}\n");
}

/* ---- the report ---- */

static bool same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* What a row is summed into: borrows its texts. */
static struct weir_lag_row head_of(const struct weir_lag_row *row, enum lag_by by)
{
	struct weir_lag_row sum = {.partition = NO_PARTITION, .current = -1, .end = -1, .lag = -1, .lag_ms = -1};
	if (by == BY_TOPIC)
		sum.topic = row->topic;
	if (by == BY_MEMBER) {
		sum.consumer = row->consumer;
		sum.host = row->host;
		sum.client = row->client;
	}
	return sum;
}

/* A report with a row for each topic or member, or one alone; rows borrow from lag. */
static struct weir_lag roll_up(const struct weir_lag *lag, enum lag_by by)
{
	struct weir_lag out = *lag;
	out.rows = weir_xcalloc(lag->row_count + 1, sizeof *out.rows);
	out.row_count = 0;
	for (size_t i = 0; i < lag->row_count; i++) {
		const struct weir_lag_row *row = &lag->rows[i];
		const struct weir_lag_row head = head_of(row, by);
		size_t at = 0;
		if (by == BY_PARTITION) {
			out.rows[out.row_count++] = *row;
			continue;
		}
		while (at < out.row_count &&
		       !(same_text(out.rows[at].topic, head.topic) && same_text(out.rows[at].consumer, head.consumer)))
			at++;
		if (at == out.row_count)
			out.rows[out.row_count++] = head;
		struct weir_lag_row *sum = &out.rows[at];
		if (row->lag >= 0)
			sum->lag = sum->lag < 0 ? row->lag : sum->lag + row->lag;
		sum->lag_ms = row->lag_ms > sum->lag_ms ? row->lag_ms : sum->lag_ms;
	}
	return out;
}

static bool is_above(const struct lag_limit *lm, int64_t lag, int64_t lag_ms)
{
	int64_t value = lm->seconds ? lag_ms / 1000 : lag;
	return value > 0 && (uint64_t)value > lm->above;
}

/* Leaves rows out that lack no more than asked for. */
static void pick(struct weir_lag *lag, const struct lag_limit *lm)
{
	size_t n = 0;
	for (size_t i = 0; i < lag->row_count; i++)
		if (!lm->given || is_above(lm, lag->rows[i].lag, lag->rows[i].lag_ms))
			lag->rows[n++] = lag->rows[i];
	lag->row_count = n;
}

static void report(struct lag_plan *pl, const struct weir_lag *lag, bool first)
{
	if (lag->members == 0)
		weir_talk("group %s has no active members", lag->group);
	struct weir_lag shown = roll_up(lag, pl->by);
	pick(&shown, &pl->show);
	if (pl->format == FORMAT_JSON)
		put_json(&shown, pl->by);
	else if (pl->format == FORMAT_CSV)
		put_csv(&shown, first);
	else
		put_table(&shown);
	free(shown.rows);
	pl->failed = pl->fail.given && is_above(&pl->fail, lag->lag, lag->lag_ms);
	if (pl->failed)
		weir_talk("the lag of group %s is %lld%s: more than %llu", lag->group,
			  (long long)(pl->fail.seconds ? lag->lag_ms / 1000 : lag->lag), pl->fail.seconds ? " s" : "",
			  (unsigned long long)pl->fail.above);
}

static enum weir_err watch(struct lag_plan *pl, struct weir_diag **dg)
{
	const struct weir_kafka_log lg = weir_transfer_log(&pl->job);
	struct weir_kafka_lag *kl;
	enum weir_err err = weir_kafka_lag_open(&kl, pl->job.cf, &lg, dg);
	if (err != WEIR_OK)
		return err;
	if (pl->watch_ms != 0)
		weir_transfer_catch_signals();
	bool first = true;
	do {
		struct weir_lag lag;
		int64_t next = weir_transfer_now_us() + (int64_t)pl->watch_ms * 1000;
		err = weir_kafka_lag_query(kl, pl->app, &lag, dg);
		if (err != WEIR_OK)
			break;
		if (!first && pl->format == FORMAT_TABLE)
			weir_data_puts("\n");
		report(pl, &lag, first);
		weir_lag_fini(&lag);
		first = false;
		if (pl->watch_ms == 0 || pl->failed || weir_data_end(WEIR_EXIT_OK) != WEIR_EXIT_OK)
			break;
		while (!weir_transfer_stopped() && weir_transfer_now_us() < next)
			usleep(20000);
	} while (!weir_transfer_stopped() && !weir_data_closed());
	weir_kafka_lag_close(kl);
	return err;
}

/* ---- the command line ---- */

enum { OPT_FORMAT = 1, OPT_WATCH, OPT_FAIL, OPT_BY, OPT_SHOW };

static const struct weir_flag lag_options[] = {
	WEIR_BROKER_OPTIONS,
	{WEIR_OPT_APP, 'g', "group", "APP", "the application id or group, instead of the argument"},
	{OPT_FORMAT, 0, "format", "table|json|csv", "table (default), json: one document, csv"},
	{OPT_BY, 0, "by", "partition|topic|member|app", "a row for each of these: records added up, the largest time"},
	{OPT_SHOW, 0, "lag", "'>N'", "only rows that lack more than N records, or >Ns: seconds"},
	{OPT_WATCH, 0, "watch", "SECONDS", "again and again until stopped, or until --fail-on-lag"},
	{OPT_WATCH, 'i', "interval", "SECONDS", NULL},
	{OPT_FAIL, 0, "fail-on-lag", "'>N'", "exit code 1 when the group lacks more than N records, or >Ns: seconds"},
	WEIR_CLUSTER_OPTIONS,
};

static int set_limit(const struct weir_verb *vb, struct lag_limit *lm, const char *option, const char *value)
{
	char digits[32];
	const char *at = *value == '>' ? value + 1 : value;
	while (*at == ' ')
		at++;
	size_t bytes = strlen(at);
	lm->seconds = bytes != 0 && at[bytes - 1] == 's';
	bytes -= lm->seconds;
	snprintf(digits, sizeof digits, "%.*s", bytes < sizeof digits ? (int)bytes : 0, at);
	lm->given = true;
	if (!weir_arg_u64(digits, 0, INT64_MAX, &lm->above))
		return weir_usage_error(vb, "--%s: %s is not '>N' or '>Ns'", option, value);
	return -1;
}

static int set_by(const struct weir_verb *vb, struct lag_plan *pl, const char *value)
{
	static const char *const words[] = {"partition", "topic", "member", "app"};
	for (size_t i = 0; i < WEIR_COUNT_OF(words); i++)
		if (strcmp(value, words[i]) == 0) {
			pl->by = (enum lag_by)i;
			return -1;
		}
	return weir_usage_error(vb, "--by: %s is not partition, topic, member or app", value);
}

static int set_option(void *plan, int id, const char *value)
{
	struct lag_plan *pl = plan;
	const struct weir_verb *vb = pl->job.vb;
	switch (id) {
	case WEIR_ARGS_WORD:
	case WEIR_OPT_APP:
		if (pl->app != NULL)
			return weir_usage_error(vb, "%s is one argument too many: APP", value);
		pl->app = value;
		return -1;
	case OPT_FORMAT:
		if (strcmp(value, "table") == 0)
			pl->format = FORMAT_TABLE;
		else if (strcmp(value, "json") == 0)
			pl->format = FORMAT_JSON;
		else if (strcmp(value, "csv") == 0)
			pl->format = FORMAT_CSV;
		else
			return weir_usage_error(vb, "--format: %s is not table, json or csv", value);
		return -1;
	case OPT_WATCH:
		if (!weir_arg_micro(value, UINT64_C(86400000000), &pl->watch_ms) || pl->watch_ms < 100000)
			return weir_usage_error(vb, "--watch: %s is not a number of seconds from 0.1", value);
		pl->watch_ms /= 1000;
		return -1;
	case OPT_FAIL:
		return set_limit(vb, &pl->fail, "fail-on-lag", value);
	case OPT_BY:
		return set_by(vb, pl, value);
	case OPT_SHOW:
		return set_limit(vb, &pl->show, "lag", value);
	default:
		return weir_job_option(&pl->job, id, value);
	}
}

static int read_arguments(const struct weir_verb *vb, struct lag_plan *pl, int argc, char **argv)
{
	int code = weir_job_arguments(&pl->job, argc, argv, set_option, pl);
	if (code >= 0)
		return code;
	const char *configured = weir_conf_get(pl->job.cf, "application.id");
	if (pl->app == NULL && configured != NULL && *configured != 0)
		pl->app = configured;
	if (pl->app == NULL)
		return weir_usage_error(vb, "which application? weir lag APP -b BROKERS");
	return -1;
}

static int lag_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct lag_plan pl = {0};
	struct weir_diag *dg = NULL;
	weir_job_init(&pl.job, vb);
	int code = read_arguments(vb, &pl, argc, argv);
	if (code < 0) {
		enum weir_err err = watch(&pl, &dg);
		code = weir_data_end(pl.failed ? WEIR_EXIT_FAILED : WEIR_EXIT_OK);
		code = err == WEIR_OK ? code : weir_fail(dg);
	}
	weir_job_fini(&pl.job);
	return code;
}

const struct weir_verb weir_verb_lag = {
	.name = "lag",
	.usage = "APP -b BROKERS [OPTIONS]",
	.brief = "show how far an application (any consumer group) is behind",
	.examples = "  weir lag revenue -b localhost:9092\n"
		    "  weir lag revenue -b localhost:9092 --watch 2\n"
		    "  weir lag revenue -b localhost:9092 --format json | jq .lag\n"
		    "  weir lag revenue -b localhost:9092 --by topic --lag '>0'\n"
		    "  weir lag revenue -b localhost:9092 --fail-on-lag '>1000'\n",
	.options = lag_options,
	.option_count = WEIR_COUNT_OF(lag_options),
	.notes = "Kafka's own nine columns come first; - is what is not known. LAG is END - CURRENT, but 0 where only "
		 "markers\nof transactions or aborted records are left. LAG-SECONDS is the age, by its timestamp, of "
		 "the oldest\nrecord that was not read; 0 where none is waiting.\n",
	.run = lag_run,
};
