/* explain.c: `weir explain FILE.sql` (plan and topology) and `weir validate FILE.sql` (does it parse, type, plan; is
 * what it names there). Nothing is run, nothing is written. Main thread. */
#include "tools/weir/job.h"

#include <stdio.h>

enum { OPT_DOT = 1, OPT_JSON, OPT_NO_ENVIRONMENT };

struct explain_args {
	enum weir_describe form;
	bool environment;
};

/* Reads the arguments, the file and plans it; *text is the plan. -1: done; else the exit code. */
static int plan_file(struct weir_job *jb, struct explain_args *ea, int argc, char **argv, char **text)
{
	struct weir_args ag;
	int code = -1;
	weir_args_init(&ag, jb->vb, argc, argv);
	for (int id; code < 0 && (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			return ag.exit_code;
		if (id == OPT_DOT)
			ea->form = WEIR_DESCRIBE_DOT;
		else if (id == OPT_JSON)
			ea->form = WEIR_DESCRIBE_JSON;
		else if (id == OPT_NO_ENVIRONMENT)
			ea->environment = false;
		else
			code = weir_job_option(jb, id, ag.value);
	}
	if (code < 0)
		code = weir_job_load(jb);
	if (code < 0)
		code = weir_job_compile(jb);
	if (code >= 0)
		return code;
	struct weir_topology *tp = weir_sql_take_topology(jb->sq);
	if (tp == NULL)
		return weir_usage_error(jb->vb, "%s has no INSERT and no SELECT: there is nothing to plan", jb->file);
	struct weir_diag *dg = NULL;
	enum weir_err err = weir_engine_explain(tp, jb->cf, (int)ea->form, text, &dg);
	weir_topology_destroy(tp);
	return err == WEIR_OK ? -1 : weir_fail(dg);
}

static int explain_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct weir_job jb;
	struct explain_args ea = {.form = WEIR_DESCRIBE_TEXT};
	char *text = NULL;
	weir_job_init(&jb, vb);
	int code = plan_file(&jb, &ea, argc, argv, &text);
	if (code < 0) {
		size_t bytes = strlen(text);
		weir_data_put(text, bytes);
		if (bytes != 0 && text[bytes - 1] != '\n')
			weir_data_puts("\n");
		code = weir_data_end(WEIR_EXIT_OK);
	}
	weir_free(text);
	weir_job_fini(&jb);
	return code;
}

static int validate_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct weir_job jb;
	struct explain_args ea = {.form = WEIR_DESCRIBE_TEXT, .environment = true};
	char *text = NULL;
	weir_job_init(&jb, vb);
	int code = plan_file(&jb, &ea, argc, argv, &text);
	if (code < 0) {
		weir_talk("%s: ok", jb.file);
		code = WEIR_EXIT_OK;
	}
	weir_free(text);
	weir_job_fini(&jb);
	return code;
}

static const struct weir_flag validate_options[] = {
	{OPT_NO_ENVIRONMENT, 0, "no-environment", NULL, "do not look whether folders and topics are there"},
	WEIR_JOB_OPTIONS,
};

const struct weir_verb weir_verb_validate = {
	.name = "validate",
	.usage = "FILE.sql|- [OPTIONS]",
	.brief = "parse, type and plan a file; check what it names",
	.examples = "  weir validate revenue.sql --define in=rec --define out=out\n",
	.options = validate_options,
	.option_count = WEIR_COUNT_OF(validate_options),
	.notes = "Exit codes: 0 fine, 78 the file is refused, 1 a folder or topic it reads is missing.\n",
	.run = validate_run,
};

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
