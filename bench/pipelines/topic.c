/* topic.c: the whole engine on a recorded topic of orders, main job with EMIT FINAL into a recorded topic, one worker:
 * against the hot path on the same records in the same process, and against itself without checkpoints.
 *
 *   topic IN DIR [--runs N] [--only NAME]
 * IN: a folder with the recorded topic order.placed; DIR: where results and changelogs go, removed before each run.
 *
 * Runs alternate (hot path, engine with its default commit every million records under at-least-once, exactly-once,
 * engine that commits at the end only), N rounds; the best of each counts: a neighbour on the machine only ever adds
 * time. The engine has three busy threads (io, worker, snapshotter); besides wall time each thread's CPU time is
 * printed, and what the run would take if every thread had a CPU to itself: the time of the busiest one. @thread init;
 * one more thread samples the CPU times. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>
#include <weir/weir_engine.h>

#include "bench/pipelines/rig.h"

enum { THREADS_MAX = 64, HOT_BATCHES = 8, HOT_ROUND = 1024 };

/* ---- CPU time by thread name, sampled: threads are gone when a run returns. Files stay open, as looking for threads
 * costs ten times as much as reading their times, and what sampling takes the engine has not ---- */

struct sample {
	long tid;
	int fd; /* of its schedstat */
	char name[32];
	double seconds;
};
static struct sampler {
	pthread_t id;
	_Atomic bool stop;
	struct sample of[THREADS_MAX];
	uint32_t count;
} sampler;

static bool read_text(int fd, char *text, size_t bytes)
{
	ssize_t n = pread(fd, text, bytes - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return n > 0;
}

static int open_of(long tid, const char *file)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%ld/%s", tid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void sample_find(void)
{
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		long tid = strtol(e->d_name, NULL, 10);
		uint32_t i = 0;
		while (i < sampler.count && sampler.of[i].tid != tid)
			i++;
		if (tid == 0 || i == THREADS_MAX)
			continue;
		/* A thread names itself, or is named, after it has started. */
		struct sample *sm = &sampler.of[i];
		int comm = open_of(tid, "comm");
		if (i == sampler.count && comm >= 0 && (sm->fd = open_of(tid, "schedstat")) >= 0) {
			sm->tid = tid;
			sm->seconds = 0;
			sampler.count++;
		}
		if (i < sampler.count && comm >= 0)
			(void)read_text(comm, sm->name, sizeof sm->name);
		if (comm >= 0)
			close(comm);
	}
	if (d)
		closedir(d);
}

static void *sampler_main(void *arg)
{
	(void)arg;
	for (uint32_t round = 0; !atomic_load_explicit(&sampler.stop, memory_order_relaxed); round++) {
		char text[64];
		if (round % 32 == 0 || round == 1)
			sample_find();
		for (uint32_t i = 0; i < sampler.count; i++)
			if (read_text(sampler.of[i].fd, text, sizeof text))
				sampler.of[i].seconds = strtod(text, NULL) / 1e9;
		nanosleep(&(struct timespec){0, 5000000}, NULL);
	}
	for (uint32_t i = 0; i < sampler.count; i++)
		close(sampler.of[i].fd);
	return NULL;
}

static double sampled(const char *prefix)
{
	double seconds = 0;
	for (uint32_t i = 0; i < sampler.count; i++)
		if (strncmp(sampler.of[i].name, prefix, strlen(prefix)) == 0)
			seconds += sampler.of[i].seconds;
	return seconds;
}

/* ---- one run of the engine ---- */

struct run {
	double wall, io, worker, snap, busiest; /* seconds; the best run */
	uint64_t records, results, epochs;
	uint32_t runs;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool set(struct weir_conf *cf, const char *name, const char *value)
{
	struct weir_diag *dg = NULL;
	if (weir_conf_set(cf, name, value, &dg) == WEIR_OK)
		return true;
	fprintf(stderr, "topic: %s\n", weir_diag_text(dg));
	return false;
}

static bool engine_run(struct run *best, const char *in, const char *out, const char *guarantee, const char *commit)
{
	struct weir_diag *dg = NULL;
	nftw(out, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	struct weir_conf *cf = weir_conf_create();
	if (!set(cf, "workers", "1") || !set(cf, "processing.guarantee", guarantee) ||
	    !set(cf, "commit.interval.records", commit))
		return false;
	struct weir_topology *tp = weir_rig_topology(in, out, &dg);
	struct weir_engine *en = NULL;
	if (!tp || weir_engine_create(&en, tp, cf, &dg) != WEIR_OK) {
		fprintf(stderr, "topic: %s\n", weir_diag_text(dg));
		return false;
	}
	sync(); /* what the last run left to be written is not this one's */
	sampler.count = 0;
	atomic_store(&sampler.stop, false);
	double io = weir_rig_cpu(), start = now();
	if (pthread_create(&sampler.id, NULL, sampler_main, NULL) != 0)
		return false;
	enum weir_err err = weir_engine_run(en, &dg);
	double wall = now() - start;
	io = weir_rig_cpu() - io;
	atomic_store(&sampler.stop, true);
	pthread_join(sampler.id, NULL);
	struct weir_stats st;
	weir_engine_stats(en, &st);
	weir_engine_destroy(en);
	if (err != WEIR_OK) {
		fprintf(stderr, "topic: %s\n", weir_diag_text(dg));
		return false;
	}
	double worker = sampled("weir-worker"), snap = sampled("weir-snap");
	double busiest = io > worker ? io : worker;
	busiest = snap > busiest ? snap : busiest;
	if (best->runs++ == 0 || wall < best->wall)
		best->wall = wall;
	if (best->runs == 1 || busiest < best->busiest) {
		best->io = io;
		best->worker = worker;
		best->snap = snap;
		best->busiest = busiest;
	}
	best->records = st.records_read;
	best->results = st.results_written;
	best->epochs = st.epochs_committed;
	return true;
}

static void report(const char *name, const struct run *r)
{
	double million = (double)r->records / 1e6;
	if (r->runs == 0)
		return;
	printf("%-22s %6.2f M records/s by wall, %6.2f by the busiest thread; CPU s per million: io %.3f worker %.3f "
	       "snap %.3f, "
	       "together %.3f; %llu results, %llu epochs\n",
	       name, million / r->wall, million / r->busiest, r->io / million, r->worker / million, r->snap / million,
	       (r->io + r->worker + r->snap) / million, (unsigned long long)r->results, (unsigned long long)r->epochs);
	printf("result %s_wall_ns %.2f\nresult %s_busiest_ns %.2f\nresult %s_cpu_ns %.2f\n", name,
	       r->wall * 1e9 / (double)r->records, name, r->busiest * 1e9 / (double)r->records, name,
	       (r->io + r->worker + r->snap) * 1e9 / (double)r->records);
}

int main(int argc, char **argv)
{
	static const struct form {
		const char *name, *guarantee, *commit;
	} forms[] = {{"at_least_once", "at_least_once", "1000000"},
		     {"exactly_once", "exactly_once", "1000000"},
		     {"no_checkpoint", "at_least_once", "0"}};
	static struct run runs[WEIR_COUNT_OF(forms)];
	unsigned rounds = 5;
	const char *only = NULL;
	for (int i = 3; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--runs") == 0)
			rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
	}
	if (argc < 3 || argc % 2 == 0) {
		fprintf(stderr, "usage: topic IN DIR [--runs N] [--only at_least_once|exactly_once|no_checkpoint]\n");
		return 2;
	}
	struct weir_rig *rig;
	struct weir_diag *dg = NULL;
	if (weir_rig_create(&rig, argv[1], HOT_BATCHES, 1, &dg) != WEIR_OK) {
		fprintf(stderr, "topic: %s\n", weir_diag_text(dg));
		return 1;
	}
	double hot = 1e9, hot_wall = 1e9;
	for (unsigned r = 0; r < rounds; r++) {
		for (size_t f = 0; f < WEIR_COUNT_OF(forms); f++) {
			if (only && strcmp(only, forms[f].name) != 0)
				continue;
			for (int i = 0; i < 5; i++) {
				double cpu = weir_rig_cpu(), wall = now();
				weir_rig_run(rig, HOT_ROUND);
				cpu = weir_rig_cpu() - cpu;
				wall = now() - wall;
				hot = cpu < hot ? cpu : hot;
				hot_wall = wall < hot_wall ? wall : hot_wall;
			}
			if (!engine_run(&runs[f], argv[1], argv[2], forms[f].guarantee, forms[f].commit))
				return 1;
		}
	}
	double per = 1e9 / ((double)HOT_ROUND * WEIR_BATCH_ROWS);
	printf("%-22s %6.2f M records/s by wall, %6.2f by CPU time\n", "hot path", 1e3 / (hot_wall * per),
	       1e3 / (hot * per));
	printf("result hot_ns %.2f\nresult hot_wall_ns %.2f\n", hot * per, hot_wall * per);
	for (size_t f = 0; f < WEIR_COUNT_OF(forms); f++)
		report(forms[f].name, &runs[f]);
	weir_rig_destroy(rig);
	nftw(argv[2], remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
