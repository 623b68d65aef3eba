/* explain.c: `weir explain FILE.sql`: the plan and topology as text, as a graph or as JSON. Nothing is run or written.
 * Main thread. */
#include "tools/weir/job.h"

enum { OPT_DOT = 1, OPT_JSON };

static void print_plan(const char *text)
{
	size_t bytes = strlen(text);
	weir_data_put(text, bytes);
	if (bytes != 0 && text[bytes - 1] != '\n')
		weir_data_puts("\n");
}

static int explain_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct weir_job jb;
	struct weir_args ag;
	enum weir_describe form = WEIR_DESCRIBE_TEXT;
	char *text = NULL;
	int code = -1;
	weir_job_init(&jb, vb);
	weir_args_init(&ag, vb, argc, argv);
	for (int id; code < 0 && (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			code = ag.exit_code;
		else if (id == OPT_DOT || id == OPT_JSON)
			form = id == OPT_DOT ? WEIR_DESCRIBE_DOT : WEIR_DESCRIBE_JSON;
		else
			code = weir_job_option(&jb, id, ag.value);
	}
	if (code < 0)
		code = weir_job_load(&jb);
	if (code < 0)
		code = weir_job_compile(&jb);
	if (code < 0)
		code = weir_job_plan(&jb, form, &text);
	if (code < 0) {
		print_plan(text);
		code = weir_data_end(WEIR_EXIT_OK);
	}
	weir_free(text);
	weir_job_fini(&jb);
	return code;
}

static const struct weir_flag explain_options[] = {
	{OPT_DOT, 0, "dot", NULL, "as a graph for `dot -Tsvg`"},
	{OPT_JSON, 0, "json", NULL, "as one JSON document"},
	WEIR_JOB_OPTIONS,
};

const struct weir_verb weir_verb_explain = {
	.name = "explain",
	.usage = "FILE.sql|- [--dot|--json] [OPTIONS]",
	.brief = "show the plan: stages, exchanges, state and its bytes per entry",
	.examples = "  weir explain revenue.sql --define in=rec --define out=out\n",
	.options = explain_options,
	.option_count = WEIR_COUNT_OF(explain_options),
	.run = explain_run,
};
