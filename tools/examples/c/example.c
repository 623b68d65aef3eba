/* example.c: arguments, configuration, signals and exit codes of the example programs (example.h). Main thread. */
#include "example.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct weir_engine *running;

static void on_signal(int number)
{
	(void)number;
	weir_engine_stop(running); /* commits at the next order point; a second one ends at once */
}

static const char *join(const char *given, const char *more)
{
	static char text[4096];
	(void)snprintf(text, sizeof text, "%s %s", given, more);
	return text;
}

const char *example_source(char **argv, const char *more)
{
	return join(argv[1], more);
}

const char *example_sink(char **argv, const char *more)
{
	return join(argv[2], more);
}

int example_arguments(int argc, char **argv)
{
	if (argc >= 3)
		return 1;
	fprintf(stderr,
		"usage: %s SOURCE SINK [property=value]...\n"
		"  on recorded topics  %s path=rec path=out workers=2\n"
		"  on Kafka            %s connector=kafka connector=kafka bootstrap.servers=localhost:9092\n",
		argv[0], argv[0], argv[0]);
	return 0;
}

/* `property=value` of the command line, as `weir run` takes them behind -X. */
static enum weir_err set_properties(struct weir_conf *cf, int argc, char **argv, struct weir_diag **dg)
{
	for (int i = 3; i < argc; i++) {
		char name[128];
		const char *equals = strchr(argv[i], '=');
		size_t bytes = equals != NULL ? (size_t)(equals - argv[i]) : 0;
		if (bytes == 0 || bytes >= sizeof name)
			return weir_conf_set(cf, argv[i], "", dg); /* says what is wrong with it */
		memcpy(name, argv[i], bytes);
		name[bytes] = '\0';
		enum weir_err err = weir_conf_set(cf, name, equals + 1, dg);
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

static void say(void *ctx, int level, const char *text)
{
	if (level <= 4)
		fprintf(stderr, "%s: %s\n", (const char *)ctx, text);
}

static int put(void *ctx, const char *data, size_t bytes)
{
	(void)ctx;
	return fwrite(data, 1, bytes, stdout) != bytes || fflush(stdout) != 0;
}

int example_run(struct weir_topology *tp, const char *application, int argc, char **argv)
{
	struct weir_diag *dg = NULL;
	struct weir_engine *en = NULL;
	struct weir_conf *cf = weir_conf_create();
	enum weir_err err = weir_conf_set_from(cf, "application.id", application, WEIR_ORIGIN_FILE, argv[0], &dg);
	if (err == WEIR_OK)
		err = set_properties(cf, argc, argv, &dg);
	if (err == WEIR_OK) {
		err = weir_engine_create(&en, tp, cf, &dg); /* takes tp and cf, whether it succeeds or not */
	} else {
		weir_topology_destroy(tp);
		weir_conf_destroy(cf);
	}
	if (err == WEIR_OK) {
		struct weir_stats st;
		weir_engine_set_log(en, say, argv[0]);
		weir_engine_set_output(en, put, NULL);
		running = en;
		signal(SIGINT, on_signal);
		signal(SIGTERM, on_signal);
		err = weir_engine_run(en, &dg);
		weir_engine_stats(en, &st);
		if (err == WEIR_OK)
			fprintf(stderr, "%s: %llu records, %llu late, %llu rejected, %llu results\n", application,
				(unsigned long long)st.records_read, (unsigned long long)st.records_late,
				(unsigned long long)st.records_rejected, (unsigned long long)st.results_written);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
	}
	if (err != WEIR_OK)
		fprintf(stderr, "%s\n", weir_diag_report(dg));
	int code = err == WEIR_OK                             ? 0
		   : weir_diag_is_retriable(dg)               ? 75
		   : err == WEIR_E_CONF || err == WEIR_E_PLAN ? 78
							      : 1;
	weir_engine_destroy(en);
	weir_diag_destroy(dg);
	return code;
}
