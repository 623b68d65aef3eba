/* reset.c: `weir reset APP DIR`: what an application keeps in a folder of recorded topics (its section of the commit
 * file, changelogs, result files), shown or, with --execute, removed, so that the next run starts over. Main thread. */
#include "tools/weir/cli.h"
#include "io/recorded/recorded.h"

enum { OPT_BROKERS = 1, OPT_APP, OPT_EXECUTE, OPT_EARLIEST, OPT_DRY, OPT_QUIET };

static const struct weir_flag reset_options[] = {
	{OPT_BROKERS, 'b', "brokers", "file:DIR", "the folder, instead of the second argument"},
	{OPT_BROKERS, 0, "bootstrap-server", "file:DIR", NULL},
	{OPT_APP, 'g', "group", "APP", "the application id, instead of the first argument"},
	{OPT_APP, 0, "application-id", "APP", NULL},
	{OPT_EARLIEST, 0, "to-earliest", NULL, "start over from the beginning (the default)"},
	{OPT_EXECUTE, 0, "execute", NULL, "do it; without this it is only shown"},
	{OPT_DRY, 0, "dry-run", NULL, NULL},
	{OPT_QUIET, 'q', "quiet", NULL, "say nothing on stderr"},
};

static void say(void *ctx, const char *line)
{
	(void)ctx;
	weir_data_printf("%s\n", line);
}

static int reset_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct weir_args ag;
	const char *app = NULL;
	const char *home = NULL;
	bool execute = false;
	weir_args_init(&ag, vb, argc, argv);
	for (int id; (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			return ag.exit_code;
		if (id == OPT_APP || (id == WEIR_ARGS_WORD && app == NULL))
			app = ag.value;
		else if (id == WEIR_ARGS_WORD && home == NULL)
			home = ag.value;
		else if (id == WEIR_ARGS_WORD)
			return weir_usage_error(vb, "%s is one argument too many: APP DIR", ag.value);
		else if (id == OPT_BROKERS && strncmp(ag.value, "file:", 5) != 0)
			return weir_usage_error(vb, "-b %s: reset works on recorded topics, -b file:DIR", ag.value);
		else if (id == OPT_BROKERS)
			home = ag.value + 5;
		else if (id == OPT_EXECUTE)
			execute = true;
		else if (id == OPT_QUIET)
			weir_talk_quiet();
	}
	if (app == NULL || home == NULL)
		return weir_usage_error(vb, "which %s? weir reset APP DIR", app == NULL ? "application" : "folder");
	struct weir_diag *dg = NULL;
	if (weir_recorded_reset(home, app, execute, say, NULL, &dg) != WEIR_OK)
		return weir_fail(dg);
	int code = weir_data_end(WEIR_EXIT_OK);
	if (!execute)
		weir_talk("nothing was changed; --execute does it");
	return code;
}

const struct weir_verb weir_verb_reset = {
	.name = "reset",
	.usage = "APP DIR [--execute]",
	.brief = "make an application start over: state, offsets and results together",
	.examples = "  weir reset revenue out\n"
		    "  weir reset revenue -b file:out --execute\n",
	.options = reset_options,
	.option_count = WEIR_COUNT_OF(reset_options),
	.run = reset_run,
};
