/* reset.c: `weir reset APP`: what an application keeps, shown or, with --execute, undone, so that the next run starts
 * over: in a folder of recorded topics its section of the commit file, changelogs and result files; on brokers its
 * group's offsets, changelogs and repartition topics together. Main thread. */
#include <time.h>

#include "hotpath/time/civil.h"
#include "io/conf.h"
#include "io/kafka/reset.h"
#include "io/recorded/recorded.h"
#include "tools/weir/transfer.h"

enum {
	OPT_EXECUTE = 1,
	OPT_DRY,
	OPT_EARLIEST,
	OPT_LATEST,
	OPT_CURRENT,
	OPT_OFFSET,
	OPT_SHIFT,
	OPT_TIME,
	OPT_DURATION,
	OPT_FROM_FILE,
	OPT_TOPIC
};
enum { TOPICS_MAX = 256 };

struct reset_plan {
	struct weir_job job;
	const char *app;
	const char *home;
	struct weir_reset_spec spec;
	const char *topics[TOPICS_MAX];
	int to; /* the option that said where to; 0: none did */
};

static const struct weir_flag reset_options[] = {
	{WEIR_OPT_BROKERS, 'b', "brokers", "LIST", "host:port,... or file:DIR (also as the second argument)"},
	{WEIR_OPT_BROKERS, 0, "bootstrap-server", "LIST", NULL},
	{WEIR_OPT_APP, 'g', "group", "APP", "the application id, instead of the first argument"},
	{WEIR_OPT_APP, 0, "application-id", "APP", NULL},
	{OPT_EARLIEST, 0, "to-earliest", NULL, "start over from the beginning (the default)"},
	{OPT_LATEST, 0, "to-latest", NULL, "from the end: what is there now is passed over"},
	{OPT_CURRENT, 0, "to-current", NULL, "where the group stands, with empty state"},
	{OPT_OFFSET, 0, "to-offset", "N", "from offset N of every partition"},
	{OPT_SHIFT, 0, "shift-by", "N", "N records on, or (-N) back"},
	{OPT_TIME, 0, "to-datetime", "TIME", "from the first record not older: YYYY-MM-DDTHH:mm:SS.sss, in UTC"},
	{OPT_DURATION, 0, "by-duration", "DURATION", "from the first record not older than that: PT2H, 90m"},
	{OPT_FROM_FILE, 0, "from-file", "FILE", "offsets from lines of topic,partition,offset"},
	{OPT_TOPIC, 0, "topic", "TOPIC[:P,...]", "move these offsets alone (again for several); state goes anyway"},
	{OPT_TOPIC, 0, "input-topics", "TOPIC", NULL},
	{OPT_EXECUTE, 0, "execute", NULL, "do it; without this it is only shown"},
	{OPT_DRY, 0, "dry-run", NULL, NULL},
	WEIR_CLUSTER_OPTIONS,
};

static void say(void *ctx, const char *line)
{
	(void)ctx;
	weir_data_printf("%s\n", line);
}

static int64_t wall_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int set_to(const struct weir_verb *vb, struct reset_plan *pl, int id, const char *value)
{
	static const enum weir_reset_to kinds[] = {
		[OPT_EARLIEST] = WEIR_RESET_EARLIEST, [OPT_LATEST] = WEIR_RESET_LATEST,
		[OPT_CURRENT] = WEIR_RESET_CURRENT,   [OPT_OFFSET] = WEIR_RESET_OFFSET,
		[OPT_SHIFT] = WEIR_RESET_SHIFT,       [OPT_TIME] = WEIR_RESET_TIME,
		[OPT_DURATION] = WEIR_RESET_TIME,     [OPT_FROM_FILE] = WEIR_RESET_FILE};
	if (pl->to != 0 && pl->to != id)
		return weir_usage_error(vb, "one of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, "
					    "--to-datetime, --by-duration, --from-file, not two");
	pl->to = id;
	pl->spec.to = kinds[id];
	int64_t number = 0;
	switch (id) {
	case OPT_OFFSET:
		if (!weir_text_to_i64(value, &number) || number < 0)
			return weir_usage_error(vb, "--to-offset: %s is not an offset", value);
		break;
	case OPT_SHIFT:
		if (!weir_text_to_i64(value, &number))
			return weir_usage_error(vb, "--shift-by: %s is not a number", value);
		break;
	case OPT_TIME:
		if (weir_civil_parse_timestamp(value, strlen(value), 3, 1, &number, NULL) != WEIR_CIVIL_OK)
			return weir_usage_error(vb, "--to-datetime: %s is not YYYY-MM-DDTHH:mm:SS.sss", value);
		break;
	case OPT_DURATION:
		if (!weir_duration_parse(value, &number))
			return weir_usage_error(vb, "--by-duration: %s is not a duration such as PT2H or 90m", value);
		number = wall_ms() - number;
		break;
	case OPT_FROM_FILE:
		pl->spec.file = value;
		break;
	default:
		break;
	}
	pl->spec.value = number;
	return -1;
}

static int set_option(void *plan, int id, const char *value)
{
	struct reset_plan *pl = plan;
	const struct weir_verb *vb = pl->job.vb;
	switch (id) {
	case WEIR_ARGS_WORD:
		if (pl->app != NULL && pl->home != NULL)
			return weir_usage_error(vb, "%s is one argument too many: APP DIR", value);
		*(pl->app == NULL ? &pl->app : &pl->home) = value;
		return -1;
	case WEIR_OPT_APP:
		pl->app = value;
		return -1;
	case WEIR_OPT_BROKERS:
		if (strncmp(value, "file:", 5) == 0) {
			pl->home = value + 5;
			return -1;
		}
		return weir_job_option(&pl->job, id, value);
	case OPT_EXECUTE:
		pl->spec.execute = true;
		return -1;
	case OPT_DRY:
		pl->spec.execute = false;
		return -1;
	case OPT_TOPIC:
		if (pl->spec.topic_count == TOPICS_MAX)
			return weir_usage_error(vb, "--topic: more than %d", TOPICS_MAX);
		pl->topics[pl->spec.topic_count++] = value;
		return -1;
	default:
		return id > 0 && id <= OPT_FROM_FILE ? set_to(vb, pl, id, value) : weir_job_option(&pl->job, id, value);
	}
}

static int reset_folder(const struct weir_verb *vb, const struct reset_plan *pl)
{
	struct weir_diag *dg = NULL;
	if ((pl->to != 0 && pl->to != OPT_EARLIEST) || pl->spec.topic_count != 0)
		return weir_usage_error(vb, "a folder of recorded topics starts over from the beginning only");
	if (weir_recorded_reset(pl->home, pl->app, pl->spec.execute, say, NULL, &dg) != WEIR_OK)
		return weir_fail(dg);
	return -1;
}

static int reset_brokers(struct reset_plan *pl)
{
	struct weir_diag *dg = NULL;
	struct weir_kafka_log lg = weir_transfer_log(&pl->job);
	pl->spec.app = pl->app;
	pl->spec.topics = pl->topics;
	return weir_kafka_reset(pl->job.cf, &pl->spec, say, NULL, &lg, &dg) == WEIR_OK ? -1 : weir_fail(dg);
}

static int read_arguments(const struct weir_verb *vb, struct reset_plan *pl, int argc, char **argv)
{
	int code = weir_job_arguments(&pl->job, argc, argv, set_option, pl);
	if (code >= 0)
		return code;
	const char *brokers = weir_conf_get(pl->job.cf, "bootstrap.servers");
	const char *app = weir_conf_get(pl->job.cf, "application.id");
	if (pl->home == NULL && brokers != NULL && strncmp(brokers, "file:", 5) == 0)
		pl->home = brokers + 5;
	if (pl->app == NULL && app != NULL && *app != 0)
		pl->app = app;
	if (pl->app == NULL)
		return weir_usage_error(vb, "which application? weir reset APP DIR, or weir reset APP -b BROKERS");
	if (pl->home == NULL && (brokers == NULL || *brokers == 0))
		return weir_usage_error(
			vb, "which folder, or which brokers? weir reset APP DIR, or weir reset APP -b BROKERS");
	return -1;
}

static int reset_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct reset_plan pl = {0};
	weir_job_init(&pl.job, vb);
	int code = read_arguments(vb, &pl, argc, argv);
	if (code < 0)
		code = pl.home != NULL ? reset_folder(vb, &pl) : reset_brokers(&pl);
	if (code < 0) {
		code = weir_data_end(WEIR_EXIT_OK);
		if (!pl.spec.execute)
			weir_talk("nothing was changed; --execute does it");
	}
	weir_job_fini(&pl.job);
	return code;
}

const struct weir_verb weir_verb_reset = {
	.name = "reset",
	.usage = "APP DIR|-b BROKERS [--to-...] [--execute]",
	.brief = "make an application start over: state and offsets together",
	.examples = "  weir reset revenue out\n"
		    "  weir reset revenue -b file:out --execute\n"
		    "  weir reset revenue -b localhost:9092 --to-datetime 2026-01-01T00:00:00.000 --execute\n",
	.options = reset_options,
	.option_count = WEIR_COUNT_OF(reset_options),
	.notes =
		"In a folder the application's results go too. On brokers they stay, and later ones go behind them; it "
		"refuses\nwhile the application runs.\n",
	.run = reset_run,
};
