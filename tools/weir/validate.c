/* validate.c: `weir validate FILE.sql`: does it parse, type and plan, are the folders and topics it reads there, and
 * can those it writes be made. Nothing is run or written. Main thread. */
#include "tools/weir/job.h"
#include "io/conf.h"
#include "io/recorded/recorded.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_NO_ENVIRONMENT = 1 };

/* One finding for every topic of the list `a;b` that is not in folder. */
static int find_topics(struct weir_job *jb, const char *name, const char *folder, const char *topics)
{
	int findings = 0;
	while (*topics != 0) {
		size_t bytes = strcspn(topics, ";");
		const char *topic = weir_mem_strndup(&jb->mem, topics, bytes);
		if (*topic != 0 && weir_recorded_partitions(folder, topic) == 0) {
			fprintf(stderr, "%s: source %s: there is no topic %s in %s\n", jb->file, name, topic, folder);
			findings++;
		}
		struct weir_diag *dg = NULL;
		if (*topic != 0 && weir_recorded_check(folder, topic, &dg) != WEIR_OK) {
			fprintf(stderr, "%s: source %s: %s\n", jb->file, name, weir_diag_text(dg));
			findings++;
		}
		weir_diag_destroy(dg);
		topics += bytes + (topics[bytes] == ';');
	}
	return findings;
}

/* The folder that a table's topics lie in: its path, or that of -b file:DIR; NULL: none is known. */
static const char *folder_of(struct weir_job *jb, const char *connector, const char *path)
{
	const char *brokers = weir_conf_get(jb->cf, "bootstrap.servers");
	bool kafka = strcmp(connector, "kafka") == 0 || strcmp(connector, "upsert-kafka") == 0;
	bool recorded = brokers != NULL && strncmp(brokers, "file:", 5) == 0;
	if (kafka)
		return recorded ? brokers + 5 : NULL;
	return path == NULL && recorded ? brokers + 5 : path;
}

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* One finding if the folder is not there and could not be made, or cannot be written. */
static int find_folder(struct weir_job *jb, const char *name, const char *folder)
{
	char *at = weir_mem_strdup(&jb->mem, folder);
	while (access(at, F_OK) != 0) {
		char *slash = strrchr(at, '/');
		if (slash == NULL || slash == at) {
			at = weir_mem_strdup(&jb->mem, slash == NULL ? "." : "/");
			break;
		}
		*slash = 0;
	}
	if (is_folder(at) && access(at, W_OK | X_OK) == 0)
		return 0;
	fprintf(stderr, "%s: sink %s: cannot write to %s: %s is not a folder that may be written\n", jb->file, name,
		folder, at);
	return 1;
}

/* What is wrong with where one sink of the plan's JSON lies; *first is the folder of those before it. */
static int find_sink(struct weir_job *jb, const json_t *sink, const char **first)
{
	const char *name = json_string_value(json_object_get(sink, "name"));
	const char *connector = json_string_value(json_object_get(sink, "connector"));
	if (connector == NULL)
		return 0;
	const char *folder = folder_of(jb, connector, json_string_value(json_object_get(sink, "path")));
	bool recorded = strcmp(connector, "recorded") == 0;
	if (folder == NULL && recorded) {
		fprintf(stderr, "%s: sink %s: there is no 'path', and no -b file:DIR\n", jb->file, name);
		return 1;
	}
	if (folder == NULL || (!recorded && strstr(connector, "kafka") == NULL))
		return 0;
	int findings = find_folder(jb, name, folder);
	const char *home = weir_conf_get(jb->cf, "state.home");
	if (*first != NULL && strcmp(*first, folder) != 0 && (home == NULL || *home == 0)) {
		fprintf(stderr,
			"%s: sink %s: it lies in %s, others in %s: say which keeps the state, -X state.home=%s\n",
			jb->file, name, folder, *first, *first);
		findings++;
	}
	*first = *first != NULL ? *first : folder;
	return findings;
}

/* What is not there of one source of the plan's JSON. */
static int find_source(struct weir_job *jb, const json_t *scan)
{
	const char *name = json_string_value(json_object_get(scan, "name"));
	const char *connector = json_string_value(json_object_get(scan, "connector"));
	const char *path = json_string_value(json_object_get(scan, "path"));
	const char *topic = json_string_value(json_object_get(scan, "topic"));
	if (connector == NULL)
		return 0;
	if (strcmp(connector, "filesystem") == 0 && path != NULL && access(path, R_OK) != 0) {
		fprintf(stderr, "%s: source %s: cannot read %s\n", jb->file, name, path);
		return 1;
	}
	bool kafka = strcmp(connector, "kafka") == 0 || strcmp(connector, "upsert-kafka") == 0;
	path = folder_of(jb, connector, path);
	if (strcmp(connector, "recorded") == 0 && path == NULL) {
		fprintf(stderr, "%s: source %s: there is no 'path', and no -b file:DIR\n", jb->file, name);
		return 1;
	}
	if ((kafka || strcmp(connector, "recorded") == 0) && path != NULL && topic != NULL)
		return find_topics(jb, name, path, topic);
	return 0;
}

/* What settings do less than they say; a scan of the plan's JSON on brokers commits by time. */
static void warn_settings(struct weir_job *jb, const json_t *scans)
{
	struct weir_settings st;
	struct weir_diag *dg = NULL;
	struct weir_buf text = {0};
	size_t i;
	json_t *scan;
	bool live = false;
	json_array_foreach(scans, i, scan)
	{
		const char *connector = json_string_value(json_object_get(scan, "connector"));
		live |= connector != NULL && strstr(connector, "kafka") != NULL &&
			folder_of(jb, connector, NULL) == NULL;
	}
	for (uint32_t w = 0; w < weir_conf_warning_count(jb->cf); w++)
		weir_talk("%s", weir_conf_warning(jb->cf, w));
	if (weir_conf_settings(jb->cf, &st, &dg) == WEIR_OK && !live && weir_settings_commits_late(&st, &text))
		weir_talk("%.*s", (int)text.bytes, (const char *)text.data);
	weir_diag_destroy(dg);
	weir_buf_fini(&text);
}

static int find_all(struct weir_job *jb, const char *plan, bool environment)
{
	json_error_t error;
	json_t *root = json_loads(plan, 0, &error);
	size_t i;
	json_t *item;
	const char *first = NULL;
	int findings = 0;
	warn_settings(jb, json_object_get(root, "scans"));
	if (environment) {
		json_array_foreach(json_object_get(root, "scans"), i, item) findings += find_source(jb, item);
		json_array_foreach(json_object_get(root, "sinks"), i, item) findings += find_sink(jb, item, &first);
	}
	json_decref(root);
	return findings;
}

static int validate_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct weir_job jb;
	struct weir_args ag;
	bool environment = true;
	char *text = NULL;
	int code = -1;
	weir_job_init(&jb, vb);
	weir_args_init(&ag, vb, argc, argv);
	for (int id; code < 0 && (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			code = ag.exit_code;
		else if (id == OPT_NO_ENVIRONMENT)
			environment = false;
		else
			code = weir_job_option(&jb, id, ag.value);
	}
	if (code < 0)
		code = weir_job_load(&jb);
	if (code < 0)
		code = weir_job_compile(&jb);
	if (code < 0)
		code = weir_job_plan(&jb, WEIR_DESCRIBE_JSON, &text);
	if (code < 0) {
		int findings = find_all(&jb, text, environment);
		if (findings == 0)
			weir_talk("%s: ok", jb.file);
		code = findings == 0 ? WEIR_EXIT_OK : WEIR_EXIT_FAILED;
	}
	weir_free(text);
	weir_job_fini(&jb);
	return code;
}

static const struct weir_flag validate_options[] = {
	{OPT_NO_ENVIRONMENT, 0, "no-environment", NULL, "do not look whether folders and recorded topics are there"},
	WEIR_JOB_OPTIONS,
};

const struct weir_verb weir_verb_validate = {
	.name = "validate",
	.usage = "FILE.sql|- [OPTIONS]",
	.brief = "parse, type and plan a file; check that what it reads is there and what it writes can be",
	.examples = "  weir validate revenue.sql --define in=rec --define out=out\n",
	.options = validate_options,
	.option_count = WEIR_COUNT_OF(validate_options),
	.notes = "Exit codes: 0 fine, 78 the file is refused, 1 a folder or topic it reads is missing, or one it "
		 "writes cannot be made.\n",
	.run = validate_run,
};
