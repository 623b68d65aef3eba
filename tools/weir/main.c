/* main.c: the command `weir`: finds the verb and runs it. Everything else is one file per verb. */
#include "tools/weir/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

const struct weir_verb *const weir_verbs[] = {
	&weir_verb_run, &weir_verb_test,  &weir_verb_explain, &weir_verb_validate,
	&weir_verb_gen, &weir_verb_dump,  &weir_verb_record,  &weir_verb_replay,
	&weir_verb_lag, &weir_verb_reset, &weir_verb_version, &weir_verb_help,
	NULL,
};

const struct weir_verb *weir_verb_find(const char *name)
{
	for (size_t i = 0; weir_verbs[i] != NULL; i++)
		if (strcmp(weir_verbs[i]->name, name) == 0)
			return weir_verbs[i];
	return NULL;
}

static int unknown_verb(const char *name)
{
	const char *names[WEIR_COUNT_OF(weir_verbs)];
	size_t count = 0;
	for (size_t i = 0; weir_verbs[i] != NULL; i++)
		names[count++] = weir_verbs[i]->name;
	const char *near = weir_nearest_name(name, strlen(name), names, count);
	if (near != NULL)
		return weir_usage_error(NULL, "unknown verb %s; did you mean %s?", name, near);
	return weir_usage_error(NULL, "unknown verb %s (weir help lists them)", name);
}

#ifdef WEIR_JEMALLOC
/* Read by jemalloc at start, which finds it only where it is exported: there is one arena (workers make their own), so
 * that what one thread takes and another gives back, as every fetched record, is there for both; and what a burst freed
 * goes back to the system within a second, so that memory.max bounds what the process really holds. Sooner, it would be
 * taken again at once, page by page. */
extern const char *malloc_conf __attribute__((visibility("default")));
const char *malloc_conf = "narenas:1,dirty_decay_ms:1000,muzzy_decay_ms:0";
#endif

/* A file opened later must not become stdin, stdout or stderr, and take what is written there: closed ones are opened
 * the wrong way round, so that using them fails as it would have. */
static void occupy_standard_files(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

/* Recordings that nobody writes any more are read where the page cache has them. One that is cut all the same ends the
 * process, as safely as kill -9 does. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	static const char text[] = "weir: error: a recorded file has become shorter while it was read\n";
	(void)context;
	if (info->si_code == BUS_ADRERR) {
		(void)!write(STDERR_FILENO, text, sizeof text - 1);
		_exit(1);
	}
	signal(number, SIG_DFL);
}

int main(int argc, char **argv)
{
	const struct sigaction bus = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
	occupy_standard_files();
	signal(SIGPIPE, SIG_IGN); /* a closed stdout ends quietly: data.c sees EPIPE */
	signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error of the write, as a full disk is */
	sigaction(SIGBUS, &bus, NULL);
	if (argc < 2)
		return weir_usage_error(NULL, "which verb? (weir help lists them)");
	const char *name = argv[1];
	if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
		name = "help";
	else if (strcmp(name, "-V") == 0 || strcmp(name, "--version") == 0)
		name = "version";
	const struct weir_verb *vb = weir_verb_find(name);
	if (vb == NULL)
		return unknown_verb(name);
	return vb->run(vb, argc - 1, argv + 1);
}
