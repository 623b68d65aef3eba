/* job.c: configuration and SQL text for the verbs that take an SQL file; see job.h. Main thread.
 *
 * Who wins: named flag > -X > $WEIR_A_B > -F file > ./weir.conf > $XDG_CONFIG_HOME/weir/weir.conf > /etc/weir/weir.conf
 * > default. SET in the SQL ranks with the files, so that an operator wins over a file in version control. */
#include "tools/weir/job.h"
#include "io/app_name.h"
#include "io/conf.h"
#include "io/kafka/property.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

enum { FILE_BYTES_MAX = 256 << 20 };

void weir_job_init(struct weir_job *jb, const struct weir_verb *vb)
{
	*jb = (struct weir_job){.vb = vb, .cf = weir_conf_create()};
	weir_mem_init(&jb->mem, 0);
}

void weir_job_fini(struct weir_job *jb)
{
	weir_sql_close(jb->sq);
	weir_conf_destroy(jb->cf);
	weir_mem_fini(&jb->mem);
}

/* ---- options ---- */

static int list_properties(void)
{
	const char *name;
	const char *value;
	const char *range;
	const char *doc;
	for (unsigned i = 0; weir_conf_describe(i, &name, &value, &range, &doc); i++)
		weir_data_printf("%-36s  %-14s  %s\n%-36s  %s\n", name, value != NULL ? value : "",
				 range != NULL ? range : "", "", doc != NULL ? doc : "");
	char *table = weir_kafka_property_table();
	weir_data_printf("\nThose of librdkafka %s, for clients of Kafka:\n", weir_kafka_library_version());
	weir_data_puts(table);
	weir_free(table);
	return weir_data_end(WEIR_EXIT_OK);
}

/* `a=1,b=2` means two properties to whoever typed it; only a value that goes on with a known name is meant. */
static const char *second_property(const char *value)
{
	const char *name;
	for (const char *comma = strchr(value, ','); comma != NULL; comma = strchr(comma + 1, ','))
		for (unsigned i = 0; weir_conf_describe(i, &name, NULL, NULL, NULL); i++)
			if (strncmp(comma + 1, name, strlen(name)) == 0 && comma[1 + strlen(name)] == '=')
				return comma + 1;
	return NULL;
}

static int set_property(struct weir_job *jb, const char *text)
{
	if (strcmp(text, "list") == 0)
		return list_properties();
	if (strcmp(text, "dump") == 0) {
		jb->dump = true;
		return -1;
	}
	const char *equals = strchr(text, '=');
	if (equals == NULL)
		return weir_usage_error(jb->vb, "-X %s: NAME=VALUE, list or dump", text);
	const char *second = second_property(equals + 1);
	if (second != NULL)
		return weir_usage_error(jb->vb, "-X takes one property: write -X %.*s -X %s", (int)(second - 1 - text),
					text, second);
	const char *name = weir_mem_strndup(&jb->mem, text, (size_t)(equals - text));
	struct weir_diag *dg = NULL;
	if (weir_conf_set_from(jb->cf, name, equals + 1, WEIR_ORIGIN_PROPERTY, "-X", &dg) != WEIR_OK)
		return weir_fail(dg);
	return -1;
}

static int set_flag(struct weir_job *jb, const char *name, const char *value, const char *flag)
{
	struct weir_diag *dg = NULL;
	if (weir_conf_set_from(jb->cf, name, value, WEIR_ORIGIN_FLAG, flag, &dg) != WEIR_OK)
		return weir_fail(dg);
	return -1;
}

static int add_define(struct weir_job *jb, const char *text)
{
	const char *equals = strchr(text, '=');
	if (equals == NULL || equals == text)
		return weir_usage_error(jb->vb, "--define %s: NAME=VALUE", text);
	if (jb->define_count == WEIR_JOB_DEFINES_MAX)
		return weir_usage_error(jb->vb, "--define: %d at most", WEIR_JOB_DEFINES_MAX);
	jb->define[jb->define_count++] =
		(struct weir_sql_variable){weir_mem_strndup(&jb->mem, text, (size_t)(equals - text)), equals + 1};
	return -1;
}

int weir_job_option(struct weir_job *jb, int id, const char *value)
{
	switch (id) {
	case WEIR_ARGS_WORD:
	case WEIR_OPT_FILE:
		if (jb->file != NULL)
			return weir_usage_error(jb->vb, "one SQL file at a time: %s and then %s", jb->file, value);
		jb->file = value;
		return -1;
	case WEIR_OPT_PROPERTY:
		return set_property(jb, value);
	case WEIR_OPT_CONFIG:
		jb->config = value;
		return -1;
	case WEIR_OPT_BROKERS:
		return set_flag(jb, "bootstrap.servers", value, "-b");
	case WEIR_OPT_APP:
		return set_flag(jb, "application.id", value, "-g");
	case WEIR_OPT_WORKERS:
		return set_flag(jb, "workers", value, "--workers");
	case WEIR_OPT_DEFINE:
		return add_define(jb, value);
	case WEIR_OPT_QUIET:
		weir_talk_quiet();
		return -1;
	case WEIR_OPT_VERBOSE:
		jb->verbose = true;
		return -1;
	default:
		return -1;
	}
}

/* ---- loading ---- */

enum weir_err weir_file_read(struct weir_mem *mem, const char *path, const char **text, size_t *bytes,
			     struct weir_diag **dg)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *f = is_stdin ? stdin : fopen(path, "rbe");
	if (f == NULL)
		return weir_diag_set(dg, WEIR_E_CONF, "cannot read %s: %s", path, strerror(errno));
	struct weir_buf buf = {0};
	size_t n;
	do {
		n = fread(weir_buf_room(&buf, 1 << 16), 1, 1 << 16, f);
		buf.bytes += n;
	} while (n != 0 && buf.bytes < FILE_BYTES_MAX);
	bool failed = ferror(f) != 0;
	int error = errno;
	if (!is_stdin)
		fclose(f);
	*text = weir_mem_strndup(mem, (const char *)buf.data, buf.bytes);
	*bytes = buf.bytes;
	weir_buf_fini(&buf);
	if (failed)
		return weir_diag_set(dg, WEIR_E_CONF, "cannot read %s: %s", path, strerror(error));
	if (n != 0)
		return weir_diag_set(dg, WEIR_E_CONF, "%s is larger than %d MiB", path, FILE_BYTES_MAX >> 20);
	return WEIR_OK;
}

static enum weir_err load_if_there(struct weir_job *jb, const char *path, struct weir_diag **dg)
{
	if (access(path, R_OK) != 0)
		return WEIR_OK;
	weir_talk("configuration: %s", path);
	return weir_conf_load(jb->cf, path, dg);
}

/* Weakest first: a later file overwrites an earlier one, never a stronger origin. */
static enum weir_err load_configuration(struct weir_job *jb, struct weir_diag **dg)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	enum weir_err err = load_if_there(jb, "/etc/weir/weir.conf", dg);
	if (err == WEIR_OK && xdg != NULL && *xdg != 0)
		err = load_if_there(jb, weir_mem_printf(&jb->mem, "%s/weir/weir.conf", xdg), dg);
	else if (err == WEIR_OK && home != NULL)
		err = load_if_there(jb, weir_mem_printf(&jb->mem, "%s/.config/weir/weir.conf", home), dg);
	if (err == WEIR_OK)
		err = load_if_there(jb, "weir.conf", dg);
	if (err == WEIR_OK && jb->config != NULL)
		err = weir_conf_load(jb->cf, jb->config, dg);
	for (char **entry = environ; err == WEIR_OK && *entry != NULL; entry++) {
		const char *equals = strchr(*entry, '=');
		if (equals == NULL || strncmp(*entry, "WEIR_", 5) != 0)
			continue;
		const char *variable = weir_mem_strndup(&jb->mem, *entry, (size_t)(equals - *entry));
		const char *name = weir_conf_name_of_env(variable);
		if (name != NULL)
			err = weir_conf_set_from(jb->cf, name, equals + 1, WEIR_ORIGIN_ENV, variable, dg);
	}
	return err;
}

/* Adds NAME=define_default for every ${NAME} that was not given. */
static void default_defines(struct weir_job *jb)
{
	const char *at = jb->sql;
	const char *end = jb->sql + jb->sql_bytes;
	const char *close;
	while ((at = memmem(at, (size_t)(end - at), "${", 2)) != NULL &&
	       (close = memchr(at, '}', (size_t)(end - at))) != NULL) {
		const char *name = weir_mem_strndup(&jb->mem, at + 2, (size_t)(close - at) - 2);
		bool given = false;
		for (uint32_t i = 0; i < jb->define_count; i++)
			given = given || strcmp(jb->define[i].name, name) == 0;
		if (!given && jb->define_count < WEIR_JOB_DEFINES_MAX)
			jb->define[jb->define_count++] = (struct weir_sql_variable){name, jb->define_default};
		at = close;
	}
}

/* The application id of last resort: the file's name without folder and ending. */
static const char *stem(struct weir_job *jb)
{
	if (strcmp(jb->file, "-") == 0)
		return "weir";
	const char *slash = strrchr(jb->file, '/');
	const char *name = slash != NULL ? slash + 1 : jb->file;
	const char *dot = strrchr(name, '.');
	return weir_app_name(&jb->mem, name, dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name));
}

int weir_job_arguments(struct weir_job *jb, int argc, char **argv, int (*set)(void *plan, int id, const char *value),
		       void *plan)
{
	struct weir_args ag;
	weir_args_init(&ag, jb->vb, argc, argv);
	for (int id; (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			return ag.exit_code;
		int code = set(plan, id, ag.value);
		if (code >= 0)
			return code;
	}
	return weir_job_configure(jb);
}

int weir_job_configure(struct weir_job *jb)
{
	struct weir_diag *dg = NULL;
	if (load_configuration(jb, &dg) != WEIR_OK)
		return weir_fail(dg);
	if (!jb->dump)
		return -1;
	char *text = weir_conf_dump(jb->cf);
	weir_data_puts(text != NULL ? text : "");
	weir_free(text);
	return weir_data_end(WEIR_EXIT_OK);
}

int weir_job_load(struct weir_job *jb)
{
	struct weir_diag *dg = NULL;
	int code = weir_job_configure(jb);
	if (code >= 0)
		return code;
	if (jb->file == NULL)
		return weir_usage_error(jb->vb, "which file? weir %s FILE.sql", jb->vb->name);
	enum weir_err err = weir_file_read(&jb->mem, jb->file, &jb->sql, &jb->sql_bytes, &dg);
	if (err == WEIR_OK)
		err = weir_conf_set_from(jb->cf, "application.id", stem(jb), WEIR_ORIGIN_DEFAULT, jb->file, &dg);
	if (err == WEIR_OK && jb->define_default != NULL)
		default_defines(jb);
	return err == WEIR_OK ? -1 : weir_fail(dg);
}

int weir_job_compile(struct weir_job *jb)
{
	struct weir_diag *dg = NULL;
	const char *warning;
	if (weir_sql_open_filled(&jb->sq, jb->cf, strcmp(jb->file, "-") == 0 ? "stdin" : jb->file, jb->sql,
				 jb->sql_bytes, jb->define, jb->define_count, &dg) != WEIR_OK)
		return weir_fail(dg);
	for (unsigned i = 0; (warning = weir_sql_warning(jb->sq, i)) != NULL; i++)
		weir_talk("%s", warning);
	return -1;
}

int weir_job_fail(const struct weir_job *jb, struct weir_diag *dg)
{
	weir_sql_add_place(jb->sq, dg);
	return weir_fail(dg);
}

int weir_job_plan(struct weir_job *jb, enum weir_describe form, char **text)
{
	struct weir_topology *tp = weir_sql_take_topology(jb->sq);
	if (tp == NULL)
		return weir_usage_error(jb->vb, "%s has no INSERT and no SELECT: there is nothing to plan", jb->file);
	struct weir_diag *dg = NULL;
	enum weir_err err = weir_engine_explain(tp, jb->cf, (int)form, text, &dg);
	weir_topology_destroy(tp);
	return err == WEIR_OK ? -1 : weir_job_fail(jb, dg);
}
