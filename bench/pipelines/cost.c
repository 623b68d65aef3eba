/* cost.c: what a run of the engine costs, by wall time and by thread (cost.h) */
#include "bench/pipelines/cost.h"

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

enum { THREADS_MAX = 64 };

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

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

double weir_cost_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

bool weir_cost_set(struct weir_conf *cf, const char *name, const char *value)
{
	struct weir_diag *dg = NULL;
	if (weir_conf_set(cf, name, value, &dg) == WEIR_OK)
		return true;
	fprintf(stderr, "%s\n", weir_diag_text(dg));
	return false;
}

void weir_cost_clear(const char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool weir_cost_run(struct weir_cost *best, struct weir_topology *tp, struct weir_conf *cf)
{
	struct weir_diag *dg = NULL;
	struct weir_engine *en = NULL;
	if (weir_engine_create(&en, tp, cf, &dg) != WEIR_OK) {
		fprintf(stderr, "%s\n", weir_diag_text(dg));
		return false;
	}
	sync(); /* what the last run left to be written is not this one's */
	sampler.count = 0;
	atomic_store(&sampler.stop, false);
	double io = weir_rig_cpu(), start = weir_cost_now();
	if (pthread_create(&sampler.id, NULL, sampler_main, NULL) != 0)
		return false;
	enum weir_err err = weir_engine_run(en, &dg);
	double wall = weir_cost_now() - start;
	io = weir_rig_cpu() - io;
	atomic_store(&sampler.stop, true);
	pthread_join(sampler.id, NULL);
	struct weir_stats st;
	weir_engine_stats(en, &st);
	weir_engine_destroy(en);
	if (err != WEIR_OK) {
		fprintf(stderr, "%s\n", weir_diag_text(dg));
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

void weir_cost_report(const char *name, const struct weir_cost *r)
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
