/* engine.c: weir_engine_*: the threads of a run. The only file that starts threads of weir's own: the caller's thread
 * is io, one thread per worker, one snapshotter. Each loop is: step; nothing moved for 20 us: sleep until woken. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hotpath/weir.h"
#include "io/core.h"
#include "io/recorded/recorded.h"

enum { ENGINE_SPIN_US = 20 };

struct engine_thread {
	pthread_t id;
	bool started;
	struct weir_engine *en;
	struct weir_worker *worker;
};

struct weir_engine {
	struct weir_core core;
	_Atomic int stops;  /* how often weir_engine_stop was called */
	_Atomic bool abort; /* threads leave at once */
	_Atomic bool snap_failed;
	struct weir_diag *snap_diag; /* @writer snap, read after join */
	enum weir_err snap_err;
	struct engine_thread *threads; /* workers, then snap */
	int64_t start_us;
	_Atomic int64_t end_us;
};

static int64_t now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static enum weir_err open_log(void *ctx, const char *home, const char *app, struct weir_log **out,
			      struct weir_diag **dg)
{
	(void)ctx;
	return weir_recorded_log_open(out, home, app, dg);
}

enum weir_err weir_engine_create(struct weir_engine **out, struct weir_topology *tp, struct weir_conf *cf,
				 struct weir_diag **diag)
{
	struct weir_engine *en = calloc(1, sizeof *en);
	if (!en) {
		weir_topology_destroy(tp);
		weir_conf_destroy(cf);
		return weir_diag_set(diag, WEIR_E_NOMEM, "no memory for an engine");
	}
	struct weir_diag *dg = NULL;
	struct weir_core *co = &en->core;
	co->threads = true;
	enum weir_err err = weir_core_plan(co, tp, cf, &dg);
	if (err == WEIR_OK) {
		co->streams = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->streams);
		co->recorded = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->recorded);
		co->warned = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->warned);
	}
	for (uint32_t s = 0; err == WEIR_OK && s < co->plan->scan_count; s++) {
		bool live;
		err = weir_source_open(&co->streams[s], co, s, &live, &dg);
		co->live |= live;
		enum weir_connector c = co->plan->scans[s].table->options.connector;
		co->recorded[s] = c != WEIR_CONNECTOR_DATAGEN && c != WEIR_CONNECTOR_FILESYSTEM && err == WEIR_OK;
	}
	if (err == WEIR_OK)
		err = weir_core_build(co, open_log, NULL, now_us, &dg);
	if (err != WEIR_OK) {
		weir_engine_destroy(en);
		if (diag)
			*diag = dg;
		else
			weir_diag_destroy(dg);
		return err;
	}
	*out = en;
	return WEIR_OK;
}

void weir_engine_destroy(struct weir_engine *en)
{
	if (!en)
		return;
	weir_core_fini(&en->core);
	weir_diag_destroy(en->snap_diag);
	free(en->threads);
	free(en);
}

void weir_engine_set_log(struct weir_engine *en, void (*log)(void *ctx, int level, const char *text), void *ctx)
{
	en->core.log_line = log;
	en->core.log_ctx = ctx;
}

void weir_engine_set_output(struct weir_engine *en, int (*write)(void *ctx, const char *data, size_t bytes), void *ctx)
{
	en->core.write_text = write;
	en->core.text_ctx = ctx;
}

const char *weir_engine_app(const struct weir_engine *en)
{
	return en->core.app;
}

void weir_engine_stop(struct weir_engine *en)
{
	/* A signal handler may be here: two atomic stores and an eventfd write, nothing else. */
	if (atomic_fetch_add_explicit(&en->stops, 1, memory_order_relaxed) > 0)
		atomic_store_explicit(&en->abort, true, memory_order_relaxed);
	if (en->core.feed) {
		int saved = errno;
		weir_feed_stop(en->core.feed);
		weir_park_wake(weir_feed_park(en->core.feed));
		errno = saved;
	}
}

void weir_engine_stats(const struct weir_engine *en, struct weir_stats *out)
{
	weir_core_stats(&en->core, out);
	int64_t end = atomic_load_explicit(&en->end_us, memory_order_relaxed);
	out->seconds = en->start_us ? (double)((end ? end : now_us()) - en->start_us) / 1e6 : 0;
}

static bool aborted(const struct weir_engine *en)
{
	return atomic_load_explicit(&en->abort, memory_order_relaxed);
}

/* Spins for ENGINE_SPIN_US since *idle_since, then says that it is time to sleep. */
static bool tired(int64_t *idle_since)
{
	int64_t now = now_us();
	if (*idle_since == 0)
		*idle_since = now;
	return now - *idle_since >= ENGINE_SPIN_US;
}

static void *worker_main(void *arg)
{
	struct engine_thread *th = arg;
	struct weir_worker *w = th->worker;
	int64_t idle = 0;
	weir_reader_register();
	while (!aborted(th->en) && !atomic_load_explicit(&w->done, memory_order_acquire)) {
		bool moved = weir_worker_step(w);
		weir_reader_quiescent();
		if (moved) {
			idle = 0;
			continue;
		}
		if (!tired(&idle))
			continue;
		weir_park_prepare(&w->park);
		if (weir_worker_step(w) || atomic_load_explicit(&w->done, memory_order_acquire)) {
			weir_park_cancel(&w->park);
		} else {
			weir_reader_offline();
			weir_park_wait(&w->park, 100, -1);
			weir_reader_online();
		}
		idle = 0;
	}
	weir_reader_unregister();
	return NULL;
}

static void *snap_main(void *arg)
{
	struct engine_thread *th = arg;
	struct weir_engine *en = th->en;
	struct weir_park *pk = weir_snapshot_park(en->core.snapshot);
	int64_t idle = 0;
	while (!aborted(en)) {
		bool moved, again;
		enum weir_err err = weir_snapshot_step(en->core.snapshot, &moved, &en->snap_diag);
		if (err == WEIR_OK && !moved && tired(&idle)) {
			weir_park_prepare(pk);
			err = weir_snapshot_step(en->core.snapshot, &again, &en->snap_diag);
			if (err != WEIR_OK || again)
				weir_park_cancel(pk);
			else
				weir_park_wait(pk, 100, -1);
			idle = 0;
		} else if (moved) {
			idle = 0;
		}
		if (err != WEIR_OK) {
			en->snap_err = err;
			atomic_store_explicit(&en->snap_failed, true, memory_order_release);
			weir_park_wake(weir_feed_park(en->core.feed));
			break;
		}
		if (weir_snapshot_text_closed(en->core.snapshot))
			weir_feed_stop(en->core.feed);
	}
	return NULL;
}

/* Pins worker w to the w-th CPU of its set, if CPUs are to spare or a list was given. */
static void pin(struct weir_engine *en, uint32_t w, pthread_attr_t *attr)
{
	const struct weir_settings *st = &en->core.settings;
	uint32_t count = (uint32_t)CPU_COUNT(&st->worker_cpus);
	bool pinned = count > 0 && (st->worker_cpus_set ? count >= en->core.worker_count
							: st->cpu_count >= en->core.worker_count + 2);
	cpu_set_t set = st->worker_cpus;
	if (pinned) {
		CPU_ZERO(&set);
		uint32_t seen = 0;
		for (int c = 0; c < CPU_SETSIZE; c++)
			if (CPU_ISSET(c, &st->worker_cpus) && seen++ == w)
				CPU_SET(c, &set);
	}
	if (CPU_COUNT(&set) > 0)
		(void)pthread_attr_setaffinity_np(attr, sizeof set, &set);
}

static enum weir_err start_threads(struct weir_engine *en, struct weir_diag **dg)
{
	uint32_t workers = en->core.worker_count;
	en->threads = weir_xcalloc(workers + 1, sizeof *en->threads);
	for (uint32_t i = 0; i <= workers; i++) {
		struct engine_thread *th = &en->threads[i];
		char name[16];
		pthread_attr_t attr;
		pthread_attr_init(&attr);
		th->en = en;
		th->worker = i < workers ? en->core.workers[i] : NULL;
		if (th->worker)
			pin(en, i, &attr);
		int rc = pthread_create(&th->id, &attr, th->worker ? worker_main : snap_main, th);
		pthread_attr_destroy(&attr);
		if (rc != 0)
			return weir_diag_set(dg, WEIR_E_IO, "cannot start a thread: error %d", rc);
		th->started = true;
		if (th->worker)
			snprintf(name, sizeof name, "weir-worker-%u", i % 100);
		else
			snprintf(name, sizeof name, "weir-snap");
		(void)pthread_setname_np(th->id, name);
	}
	return WEIR_OK;
}

static void join_threads(struct weir_engine *en)
{
	atomic_store_explicit(&en->abort, true, memory_order_relaxed);
	for (uint32_t i = 0; en->threads && i <= en->core.worker_count; i++) {
		if (!en->threads[i].started)
			continue;
		weir_park_wake(i < en->core.worker_count ? &en->core.workers[i]->park
							 : weir_snapshot_park(en->core.snapshot));
		pthread_join(en->threads[i].id, NULL);
	}
}

static enum weir_err io_loop(struct weir_engine *en, struct weir_diag **dg)
{
	struct weir_feed *fd = en->core.feed;
	struct weir_park *pk = weir_feed_park(fd);
	int64_t idle = 0;
	while (!weir_feed_done(fd)) {
		bool moved;
		int wait_ms;
		if (atomic_load_explicit(&en->snap_failed, memory_order_acquire))
			return WEIR_OK; /* its error is reported after the join */
		if (aborted(en))
			return weir_diag_set(dg, WEIR_E_STOPPED,
					     "stopped by a second signal: what was not committed is given up");
		enum weir_err err = weir_feed_step(fd, &moved, &wait_ms, dg);
		weir_reader_quiescent();
		if (err != WEIR_OK)
			return err;
		if (moved) {
			idle = 0;
			continue;
		}
		if (!tired(&idle))
			continue;
		weir_core_source_warnings(&en->core);
		weir_park_prepare(pk);
		err = weir_feed_step(fd, &moved, &wait_ms, dg);
		if (err != WEIR_OK || moved || weir_feed_done(fd) ||
		    atomic_load_explicit(&en->snap_failed, memory_order_acquire))
			weir_park_cancel(pk);
		else
			weir_reader_offline(), weir_park_wait(pk, wait_ms < 0 || wait_ms > 100 ? 100 : wait_ms,
							      weir_feed_event_fd(fd));
		weir_reader_online();
		if (err != WEIR_OK)
			return err;
		idle = 0;
	}
	return weir_feed_result(fd, dg);
}

enum weir_err weir_engine_run(struct weir_engine *en, struct weir_diag **diag)
{
	struct weir_diag *dg = NULL;
	struct weir_core *co = &en->core;
	for (uint32_t i = 0; i < weir_conf_warning_count(co->cf); i++)
		weir_core_log(co, 4, "%s", weir_conf_warning(co->cf, i));
	weir_core_source_warnings(co);
	if (co->consumed) {
		weir_core_log(
			co, 5,
			"the input of %s is wholly consumed: nothing to do. To start over: weir reset %s %s --execute",
			co->app, co->app, co->home ? co->home : "DIR");
		return WEIR_OK;
	}
	if (co->restored.found)
		weir_core_log(co, 5, "resuming at epoch %llu, after %llu records",
			      (unsigned long long)co->restored.epoch, (unsigned long long)co->restored.records);
	for (uint32_t s = 0; s < co->plan->stage_count && co->restored.found; s++)
		if (co->restored.schema_missing[s])
			weir_core_log(co, 4, "state %s is new: it begins with what is read from here on",
				      co->plan->stages[s].name);
	weir_core_print_frame(co, true, 0);
	en->start_us = now_us();
	enum weir_err err = start_threads(en, &dg);
	if (err == WEIR_OK) {
		weir_reader_register(); /* io routes batches by the slot map */
		err = io_loop(en, &dg);
		weir_reader_unregister();
	}
	join_threads(en);
	weir_core_source_warnings(co);
	if (en->snap_err != WEIR_OK && (err == WEIR_OK || err == WEIR_E_STOPPED)) {
		weir_diag_destroy(dg);
		err = en->snap_err;
		dg = en->snap_diag;
		en->snap_diag = NULL;
	}
	atomic_store_explicit(&en->end_us, now_us(), memory_order_relaxed);
	struct weir_stats st;
	weir_core_stats(co, &st);
	if (err == WEIR_OK)
		weir_core_print_frame(co, false, st.results_written);
	if (diag)
		*diag = dg;
	else
		weir_diag_destroy(dg);
	return err;
}
