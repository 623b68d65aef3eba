/* run.c: `weir run FILE.sql`: compiles the file, runs the engine until the input ends or a signal comes, and says what
 * was done. The engine runs on the main thread and those it starts; a terminal gets progress from a thread of this
 * file, which only reads counters. */
#include "tools/weir/job.h"
#include "io/conf.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { OPT_NO_PROGRESS = 1 };

static struct weir_engine *_Atomic running; /* for the signal handler */
static volatile sig_atomic_t stops;
static volatile sig_atomic_t stop_signal;

static bool silent;                 /* -q */
static _Atomic bool progress_shown; /* the cursor stands on a progress line */
#define CLEAR_LINE "\r\033[K"

/* In a signal handler: the engine may not be there yet (it restores state then, and cannot be asked to stop). */
static void on_signal(int number)
{
	static const char first[] =
		CLEAR_LINE "weir: stopping at the next order point; a second signal stops at once\n";
	static int64_t first_ms;
	struct weir_engine *en = running;
	struct timespec now = {0};
	int saved = errno;
	/* timeout(1) and shells signal the process and its group: the same request, twice within a moment. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	if (stops == 1 && number == stop_signal && now_ms - first_ms < 50)
		return;
	if (stops == 0)
		first_ms = now_ms;
	stops++;
	stop_signal = number;
	size_t skip = progress_shown ? 0 : sizeof CLEAR_LINE - 1;
	if (stops == 1 && !silent)
		(void)!write(STDERR_FILENO, first + skip, sizeof first - 1 - skip);
	if (en != NULL) {
		weir_engine_stop(en);
	} else if (stops > 1) {
		signal(number, SIG_DFL);
		raise(number);
	}
	errno = saved;
}

static bool stopped_twice(void)
{
	return stops > 1;
}

/* From here on signals reach the engine, and one that came before does so now: once, since twice means at once. */
static void hand_signals_to(struct weir_engine *en)
{
	sigset_t both;
	sigset_t before;
	sigemptyset(&both);
	sigaddset(&both, SIGTERM);
	sigaddset(&both, SIGINT);
	pthread_sigmask(SIG_BLOCK, &both, &before);
	running = en;
	if (stops != 0)
		weir_engine_stop(en);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* SIGUSR2 pauses, and again resumes. */
static void on_pause(int number)
{
	static volatile sig_atomic_t paused;
	struct weir_engine *en = running;
	(void)number;
	paused = !paused;
	if (en)
		weir_engine_pause(en, paused);
}

static void catch_signals(void)
{
	struct sigaction pause_sa = {.sa_handler = on_pause, .sa_flags = SA_RESTART};
	sigemptyset(&pause_sa.sa_mask);
	sigaction(SIGUSR2, &pause_sa, NULL);
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigemptyset(&sa.sa_mask);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
}

static void on_log(void *ctx, int level, const char *text)
{
	bool verbose = *(bool *)ctx;
	if (progress_shown)
		fputs(CLEAR_LINE, stderr);
	if (level <= 3)
		fprintf(stderr, "weir: %s\n", text);
	else if (level <= 6 || verbose)
		weir_talk("%s", text);
}

static int on_output(void *ctx, const char *data, size_t bytes)
{
	(void)ctx;
	weir_data_put(data, bytes);
	return weir_data_closed();
}

/* ---- progress ---- */

struct progress {
	pthread_t thread;
	bool started;
	sem_t done;
	const struct weir_engine *en;
};

/* `1,234,567` into to[32]. */
static const char *grouped(uint64_t v, char to[32])
{
	char *at = to + 31;
	*at = 0;
	for (uint32_t digits = 0; digits == 0 || v != 0; digits++, v /= 10) {
		if (digits != 0 && digits % 3 == 0)
			*--at = ',';
		*--at = (char)('0' + v % 10);
	}
	return at;
}

static void print_progress(const struct weir_engine *en)
{
	struct weir_stats st;
	char read[32];
	char rate[32];
	weir_engine_stats(en, &st);
	double per_second = st.seconds > 0 ? (double)st.records_read / st.seconds : 0;
	if (st.records_total > st.records_read && per_second > 0)
		fprintf(stderr, "\r%3u %%  %s records, %s/s, %.0f s left\033[K",
			(unsigned)(st.records_read * 100 / st.records_total), grouped(st.records_read, read),
			grouped((uint64_t)per_second, rate), (double)(st.records_total - st.records_read) / per_second);
	else
		fprintf(stderr, "\r%s records, %s/s\033[K", grouped(st.records_read, read),
			grouped((uint64_t)per_second, rate));
}

static void *progress_main(void *arg)
{
	struct progress *pg = arg;
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	for (;;) {
		until.tv_sec += 1;
		if (sem_timedwait(&pg->done, &until) == 0)
			break;
		if (errno == ETIMEDOUT) {
			progress_shown = true;
			print_progress(pg->en);
		}
	}
	fputs(CLEAR_LINE, stderr);
	progress_shown = false;
	return NULL;
}

static void progress_begin(struct progress *pg, const struct weir_engine *en)
{
	sigset_t all;
	sigset_t before;
	pg->en = en;
	sem_init(&pg->done, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
	pg->started = pthread_create(&pg->thread, NULL, progress_main, pg) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void progress_end(struct progress *pg)
{
	if (!pg->started)
		return;
	sem_post(&pg->done);
	pthread_join(pg->thread, NULL);
	sem_destroy(&pg->done);
}

/* ---- the run ---- */

static void print_summary(const struct weir_engine *en, uint32_t workers, bool verbose)
{
	struct weir_stats st;
	char rate[32];
	weir_engine_stats(en, &st);
	const char *app = weir_engine_app(en);
	weir_talk("%s: %llu records in %.2f s (%s/s, %u worker%s): %llu applied, %llu late, %llu rejected, %llu "
		  "filtered; "
		  "%llu results, %llu windows",
		  app, (unsigned long long)st.records_read, st.seconds,
		  grouped(st.seconds > 0 ? (uint64_t)((double)st.records_read / st.seconds) : 0, rate), workers,
		  workers == 1 ? "" : "s", (unsigned long long)st.records_applied, (unsigned long long)st.records_late,
		  (unsigned long long)st.records_rejected, (unsigned long long)st.records_filtered,
		  (unsigned long long)st.results_written, (unsigned long long)st.windows_closed);
	if (st.records_damaged != 0)
		weir_talk("%s: %llu records lie in damaged batches that scan.damaged=skip passed over", app,
			  (unsigned long long)st.records_damaged);
	if (st.times_implausible != 0)
		weir_talk("%s: %llu event times look like those of another unit", app,
			  (unsigned long long)st.times_implausible);
	if (st.aggregate_errors != 0)
		weir_talk("%s: %llu results did not fit their type and are NULL", app,
			  (unsigned long long)st.aggregate_errors);
	if (verbose)
		weir_talk("%s: %llu bytes read, %llu epochs committed, %llu entries of state in %llu bytes, %llu bytes "
			  "of memory",
			  app, (unsigned long long)st.bytes_read, (unsigned long long)st.epochs_committed,
			  (unsigned long long)st.state_entries, (unsigned long long)st.state_bytes,
			  (unsigned long long)st.memory_bytes);
	if (verbose && st.standby_records != 0)
		weir_talk("%s: %llu records of other members' changelogs followed", app,
			  (unsigned long long)st.standby_records);
}

static int run_engine(struct weir_job *jb, struct weir_topology *tp, bool progress)
{
	struct weir_diag *dg = NULL;
	struct weir_settings settings = {0};
	if (isatty(STDOUT_FILENO) && !weir_conf_is_set(jb->cf, "rows.format") &&
	    weir_conf_set_from(jb->cf, "rows.format", "table", WEIR_ORIGIN_DEFAULT, NULL, &dg) != WEIR_OK) {
		weir_topology_destroy(tp);
		return weir_fail(dg);
	}
	if (weir_conf_settings(jb->cf, &settings, &dg) != WEIR_OK) {
		weir_topology_destroy(tp);
		return weir_fail(dg);
	}
	uint32_t workers = settings.workers;
	struct weir_engine *en = NULL;
	catch_signals();
	weir_data_give_up_when(stopped_twice);
	enum weir_err err = weir_engine_create(&en, tp, jb->cf, &dg);
	jb->cf = NULL;
	if (err != WEIR_OK)
		return weir_job_fail(jb, dg);
	weir_engine_set_log(en, on_log, &jb->verbose);
	weir_engine_set_output(en, on_output, NULL);
	hand_signals_to(en);
	struct progress pg = {0};
	if (progress)
		progress_begin(&pg, en);
	err = weir_engine_run(en, &dg);
	progress_end(&pg);
	running = NULL;
	int code = weir_data_end(err == WEIR_OK ? WEIR_EXIT_OK : WEIR_EXIT_FAILED);
	if (err == WEIR_OK || weir_diag_code(dg) == WEIR_E_STATE)
		print_summary(en, workers, jb->verbose);
	if (err != WEIR_OK)
		code = weir_job_fail(jb, dg);
	weir_engine_destroy(en);
	return stops > 1 && err != WEIR_OK ? 128 + stop_signal : code;
}

/* What the file says: print what SHOW and DESCRIBE found, then run, or explain, or nothing more. */
static int run_statements(struct weir_job *jb, bool progress)
{
	struct weir_diag *dg = NULL;
	char *plan = NULL;
	weir_data_puts(weir_sql_output(jb->sq));
	enum weir_sql_action action = weir_sql_action(jb->sq);
	struct weir_topology *tp = weir_sql_take_topology(jb->sq);
	if (action == WEIR_SQL_RUN)
		return run_engine(jb, tp, progress && !(weir_sql_prints_rows(jb->sq) && isatty(STDOUT_FILENO)));
	if (action == WEIR_SQL_EXPLAIN) {
		enum weir_err err = weir_engine_explain(tp, jb->cf, WEIR_DESCRIBE_TEXT, &plan, &dg);
		weir_topology_destroy(tp);
		if (err != WEIR_OK)
			return weir_job_fail(jb, dg);
		weir_data_puts(plan);
		weir_free(plan);
	} else if (*weir_sql_output(jb->sq) == 0) {
		weir_talk("%s has no INSERT and no SELECT: there is nothing to run", jb->file);
	}
	return weir_data_end(WEIR_EXIT_OK);
}

static int run_run(const struct weir_verb *vb, int argc, char **argv)
{
	struct weir_args ag;
	struct weir_job jb;
	bool progress = isatty(STDERR_FILENO) != 0;
	int code = -1;
	weir_job_init(&jb, vb);
	weir_args_init(&ag, vb, argc, argv);
	for (int id; code < 0 && (id = weir_args_next(&ag)) != WEIR_ARGS_END;) {
		if (id == WEIR_ARGS_STOP)
			code = ag.exit_code;
		else if (id == OPT_NO_PROGRESS || id == WEIR_OPT_QUIET)
			progress = false;
		silent = silent || id == WEIR_OPT_QUIET;
		if (code < 0)
			code = weir_job_option(&jb, id, ag.value);
	}
	if (code < 0)
		code = weir_job_load(&jb);
	if (code < 0)
		code = weir_job_compile(&jb);
	if (code < 0)
		code = run_statements(&jb, progress);
	weir_job_fini(&jb);
	return code;
}

static const struct weir_flag run_options[] = {
	WEIR_JOB_OPTIONS,
	{OPT_NO_PROGRESS, 0, "no-progress", NULL, "no progress line, even on a terminal"},
};

const struct weir_verb weir_verb_run = {
	.name = "run",
	.usage = "FILE.sql|- [OPTIONS]",
	.brief = "run until the input ends (recorded topics) or a signal comes",
	.examples = "  weir run revenue.sql --define in=rec --define out=out --workers 2\n"
		    "  weir run revenue.sql -b file:rec -X processing.guarantee=exactly_once\n",
	.options = run_options,
	.option_count = WEIR_COUNT_OF(run_options),
	.notes = "Rows of a bare SELECT and of print tables go to stdout, the summary to stderr. SIGTERM or SIGINT: "
		 "commit at the\n"
		 "next order point and end with 0; a second one ends at once. SIGUSR2: pause reading, and again: "
		 "resume; a "
		 "member\nstays in its consumer group meanwhile.\n",
	.run = run_run,
};
