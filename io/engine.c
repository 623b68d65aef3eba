/* engine.c: weir_engine_*: the threads of a run. The only file that starts threads of weir's own: the caller's thread
 * is io, one thread per worker, one snapshotter. Each loop is: step; nothing moved for 20 us: sleep until woken. With
 * standby.replicas one more thread follows the changelogs of other members for the whole of a run, and one restores
 * slots that are new here while a session runs those that were there before (aside.c).
 *
 * A run on recorded topics is one session of these threads. A member of a consumer group has a session for each
 * assignment: given partitions it restores and starts the threads; asked for them back it drains, commits, ends the
 * threads and answers the group. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "hotpath/weir.h"
#include "io/core.h"
#include "io/recorded/recorded.h"

/* A sleeper is woken by whoever has something for it; SLEEP_MS is for what nobody wakes it for (a clock that jumped).
 */
enum {
	ENGINE_SPIN_US = 20,
	SLEEP_MS = 1000,
	GROUP_SLEEP_MS = 500,
	STANDBY_MS = 100,
	JOIN_LOOK_MS = 100,
	JOIN_MORE_US = 2000000,
	SNAP_NICE = 5
};

struct engine_thread {
	pthread_t id;
	bool started;
	struct weir_engine *en;
	struct weir_worker *worker;
};

struct weir_engine {
	struct weir_core core;
	_Atomic int stops;       /* how often weir_engine_stop was called */
	_Atomic bool stop_asked; /* the same, for waits on brokers */
	_Atomic int64_t stop_us; /* when it was called first */
	bool stuck;              /* the snapshotter waits in a call that does not end: what it uses is left to it */
	_Atomic bool pause_asked;
	bool paused;        /* what the input was told last */
	bool begun;         /* some assignment has been taken up */
	int64_t alone_us;   /* when it was first seen that others hold partitions of a local exchange; 0: not yet */
	_Atomic bool abort; /* threads of this session leave at once */
	_Atomic bool snap_failed;
	struct weir_diag *snap_diag; /* @writer snap, read after join */
	enum weir_err snap_err;
	struct engine_thread *threads; /* workers, then snap */
	int64_t start_us;
	_Atomic int64_t end_us;
	pthread_t standby; /* follows what others own; started where core.standby is */
	bool standby_started;
	pthread_t aside; /* restores core.aside */
	bool aside_started;
	_Atomic bool standby_stop;
	bool kafka;                       /* some table lies on brokers: everything is opened by run */
	pthread_mutex_t gate;             /* a session's end against readers of statistics; no record passes it */
	_Atomic(struct weir_feed *) feed; /* of the session, for the signal handler */
};

static int64_t now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void say(void *ctx, int level, const char *text)
{
	weir_core_log(ctx, level, "%s", text);
}

/* Whether some stage is re-keyed within this process. */
static bool is_local(const struct weir_plan *pl)
{
	bool local = false;
	for (uint32_t s = 0; s < pl->stage_count; s++)
		local |= weir_plan_stage_alone(&pl->stages[s]);
	return local;
}

/* Whether there is anything to follow: state whose slots move with the input's partitions. */
static bool follows(const struct weir_core *co)
{
	return co->settings.standby_replicas != 0 && co->input && weir_plan_kept_stages(co->plan) != 0 &&
	       !is_local(co->plan);
}

/* What in reads without a bound. */
static struct weir_kafka_log_source *add_sources(struct weir_kafka_log_source *sources, uint32_t *count,
						 const struct weir_kafka_input *in, const struct weir_conf *cf)
{
	struct weir_kafka_log_source so = {.cf = cf};
	bool bounded;
	for (uint32_t i = 0; weir_kafka_input_topic(in, i, &so.topic, &so.partitions, &bounded); i++) {
		if (bounded)
			continue;
		sources = weir_xrealloc(sources, (*count + 1) * sizeof *sources);
		sources[(*count)++] = so;
	}
	return sources;
}

/* A member that restores for long is not to be taken for dead; and where the group wants to share its work anew, it is
 * not kept waiting until it throws the member out: who restores then does so with fewer slots. */
static enum weir_err serve_group(void *ctx, struct weir_diag **dg)
{
	struct weir_core *co = ctx;
	enum weir_kafka_group_state state;
	enum weir_err err = weir_kafka_input_serve(co->input, 0, &state, dg);
	if (err == WEIR_OK && state != WEIR_GROUP_ASSIGNED)
		err = weir_diag_set(dg, WEIR_E_UNAVAILABLE,
				    "the group took the partitions back while they were restored");
	return err;
}

static enum weir_err open_log(void *ctx, const char *home, const char *app, struct weir_log **out,
			      struct weir_diag **dg)
{
	struct weir_engine *en = ctx;
	struct weir_core *co = &en->core;
	if (!co->home_kafka)
		return weir_recorded_log_open(out, home, app, dg);
	struct weir_kafka_log lg = {say, co};
	if (follows(co)) {
		struct weir_standby_conf conf = {.cf = co->cf,
						 .log = &lg,
						 .group = co->app,
						 .member = co->input,
						 .replicas = co->settings.standby_replicas};
		enum weir_err err = weir_standby_create(&co->standby, &conf, dg);
		if (err != WEIR_OK)
			return err;
	}
	struct weir_kafka_log_spec spec = {.app = app,
					   .guarantee = co->settings.guarantee,
					   .stateless = weir_plan_kept_stages(co->plan) == 0,
					   .input = co->input,
					   .fenced = co->fenced,
					   .alive = co->input ? serve_group : NULL,
					   .alive_ctx = co,
					   .standby = co->standby,
					   .commit_ms = co->settings.commit_ms,
					   .broker_wait_ms =
						   co->settings.broker_wait_ms ? co->settings.broker_wait_ms : -1,
					   .stop = &en->stop_asked};
	struct weir_kafka_log_source *sources = NULL;
	if (co->input && !co->fenced)
		sources = add_sources(sources, &spec.source_count, co->input, co->cf);
	for (uint32_t r = 0; r < co->reader_count; r++)
		sources = add_sources(sources, &spec.source_count, co->readers[r],
				      weir_core_conf_of(co, weir_kafka_input_brokers(co->readers[r])));
	spec.sources = sources;
	enum weir_err err = weir_kafka_log_open(out, co->cf, &spec, &lg, dg);
	free(sources);
	return err;
}

/* Sources, log and topics. */
static enum weir_err open_all(struct weir_engine *en, struct weir_diag **dg)
{
	struct weir_core *co = &en->core;
	enum weir_err err = WEIR_OK;
	co->streams = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->streams);
	co->recorded = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->recorded);
	co->warned = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->warned);
	co->kafka_scan = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->kafka_scan);
	co->scan_input = weir_xcalloc(co->plan->scan_count + 1, sizeof *co->scan_input);
	for (uint32_t s = 0; err == WEIR_OK && s < co->plan->scan_count; s++) {
		bool live;
		if (weir_source_is_kafka(co, s))
			continue;
		err = weir_source_open(&co->streams[s], co, s, &live, dg);
		co->live |= live;
		co->endless |= live;
		enum weir_connector c = co->plan->scans[s].table->options.connector;
		co->recorded[s] = c != WEIR_CONNECTOR_DATAGEN && c != WEIR_CONNECTOR_FILESYSTEM && err == WEIR_OK;
	}
	if (err == WEIR_OK && en->kafka)
		err = weir_kafka_sources_open(co, &en->stop_asked, dg);
	return err == WEIR_OK ? weir_core_open(co, open_log, en, now_us, dg) : err;
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
	pthread_mutex_init(&en->gate, NULL);
	co->threads = true;
	enum weir_err err = weir_core_plan(co, tp, cf, &dg);
	if (err == WEIR_OK)
		err = weir_core_find_brokers(co, &en->kafka, &dg);
	if (err == WEIR_OK)
		err = weir_core_find_home(co, &dg);
	if (err == WEIR_OK && !en->kafka) {
		err = open_all(en, &dg);
		if (err == WEIR_OK)
			err = weir_core_begin(co, &dg);
	}
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
	if (!en || en->stuck)
		return;
	weir_core_fini(&en->core);
	weir_diag_destroy(en->snap_diag);
	free(en->threads);
	pthread_mutex_destroy(&en->gate);
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
	/* A signal handler may be here: a clock, atomic stores and an eventfd write, nothing else. */
	if (atomic_fetch_add_explicit(&en->stops, 1, memory_order_relaxed) > 0)
		atomic_store_explicit(&en->abort, true, memory_order_relaxed);
	else
		atomic_store_explicit(&en->stop_us, now_us(), memory_order_relaxed);
	atomic_store_explicit(&en->stop_asked, true, memory_order_relaxed);
	struct weir_feed *fd = atomic_load_explicit(&en->feed, memory_order_acquire);
	if (fd) {
		int saved = errno;
		weir_feed_stop(fd);
		weir_park_wake(weir_feed_park(fd));
		errno = saved;
	}
}

void weir_engine_pause(struct weir_engine *en, int paused)
{
	atomic_store_explicit(&en->pause_asked, paused != 0, memory_order_relaxed);
	struct weir_feed *fd = atomic_load_explicit(&en->feed, memory_order_acquire);
	if (fd) {
		int saved = errno;
		weir_feed_pause(fd, paused != 0);
		weir_park_wake(weir_feed_park(fd));
		errno = saved;
	}
}

void weir_engine_stats(const struct weir_engine *en, struct weir_stats *out)
{
	pthread_mutex_t *gate = (pthread_mutex_t *)&en->gate; /* the statistics do not change */
	pthread_mutex_lock(gate);
	weir_core_stats(&en->core, out);
	pthread_mutex_unlock(gate);
	int64_t end = atomic_load_explicit(&en->end_us, memory_order_relaxed);
	out->seconds = en->start_us ? (double)((end ? end : now_us()) - en->start_us) / 1e6 : 0;
}

static bool aborted(const struct weir_engine *en)
{
	return atomic_load_explicit(&en->abort, memory_order_relaxed);
}

/* Whether a stop has waited long enough for its last commit. */
static bool overdue(const struct weir_engine *en)
{
	int64_t since = atomic_load_explicit(&en->stop_us, memory_order_relaxed);
	return since != 0 && now_us() - since > en->core.settings.stop_wait_ms * 1000;
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
			weir_park_wait(&w->park, SLEEP_MS, -1);
			weir_reader_online();
		}
		idle = 0;
	}
	weir_reader_unregister();
	return NULL;
}

/* Whether the snapshotter has to do with what the other threads of a bounded run leave of their CPUs. */
static bool snap_shares(const struct weir_core *co)
{
	return !co->live && co->settings.cpu_count < co->worker_count + 2;
}

/* A bounded run takes as long as its workers do. Where there are fewer CPUs than busy threads, the snapshotter, which
 * works in bursts, runs in what the others leave; live, its work is what somebody waits for. Of this thread alone
 * (Linux). */
static void snap_yield(const struct weir_core *co)
{
	if (snap_shares(co))
		(void)nice(SNAP_NICE);
}

static void *snap_main(void *arg)
{
	struct engine_thread *th = arg;
	struct weir_engine *en = th->en;
	struct weir_park *pk = weir_snapshot_park(en->core.snapshot);
	int64_t idle = 0;
	bool spins = !snap_shares(&en->core); /* else it would spin on a CPU that io could use */
	snap_yield(&en->core);
	while (!aborted(en)) {
		bool moved, again;
		enum weir_err err = weir_snapshot_step(en->core.snapshot, &moved, &en->snap_diag);
		if (err == WEIR_OK && !moved && (!spins || tired(&idle))) {
			weir_park_prepare(pk);
			err = weir_snapshot_step(en->core.snapshot, &again, &en->snap_diag);
			if (err != WEIR_OK || again)
				weir_park_cancel(pk);
			else
				weir_park_wait(pk, SLEEP_MS, -1);
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

/* Waits for a thread to end. False: a stop has waited long enough. Calls of librdkafka may wait for a coordinator that
 * is away, whatever their time-outs say; nothing can end them, and nothing they use may be freed. */
static bool join(const struct weir_engine *en, pthread_t id)
{
	int64_t began = now_us();
	for (;;) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += JOIN_LOOK_MS * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_timedjoin_np(id, NULL, &until) == 0)
			return true;
		bool twice = atomic_load_explicit(&en->stops, memory_order_relaxed) > 1;
		if ((overdue(en) || twice) && now_us() - began > JOIN_MORE_US) {
			pthread_detach(id);
			return false;
		}
	}
}

static void join_threads(struct weir_engine *en)
{
	atomic_store_explicit(&en->abort, true, memory_order_relaxed);
	for (uint32_t i = 0; en->threads && i <= en->core.worker_count; i++) {
		if (!en->threads[i].started)
			continue;
		weir_park_wake(i < en->core.worker_count ? &en->core.workers[i]->park
							 : weir_snapshot_park(en->core.snapshot));
		en->stuck |= !join(en, en->threads[i].id);
	}
	if (en->stuck)
		return; /* its argument is among them */
	free(en->threads);
	en->threads = NULL;
}

/* Looks where the group stands: partitions asked back end the session at an order point, lost ones at once. The
 * streams serve the consumer whenever they are asked for records; while memory or rings hold the feed back, this does.
 */
static enum weir_err follow_group(struct weir_engine *en, int64_t *serve_us, struct weir_diag **dg)
{
	enum { SERVE_US = 500000, SERVE_FENCED_US = 100000 };
	struct weir_kafka_input *in = en->core.input;
	enum weir_kafka_group_state state = weir_kafka_input_state(in);
	int64_t now = now_us();
	/* No stream asks for records of a member that reads none. */
	if (now - *serve_us > (en->core.fenced ? SERVE_FENCED_US : SERVE_US)) {
		*serve_us = now;
		enum weir_err err = weir_kafka_input_serve(in, 0, &state, dg);
		if (err == WEIR_OK)
			err = weir_clusters_serve(&en->core, dg);
		if (err != WEIR_OK)
			return err;
	}
	if (state == WEIR_GROUP_REVOKED || weir_aside_done(en->core.aside))
		weir_feed_stop(en->core.feed);
	else if (state == WEIR_GROUP_LOST)
		return weir_diag_set(dg, WEIR_E_FENCED,
				     "the group took the partitions back before they were committed");
	return WEIR_OK;
}

/* Says a pause or its end, and lets the consumer fetch no more than is there already. */
static void follow_pause(struct weir_engine *en)
{
	bool paused = atomic_load_explicit(&en->pause_asked, memory_order_relaxed);
	if (paused == en->paused)
		return;
	en->paused = paused;
	if (en->core.input)
		weir_clusters_pause(&en->core, paused);
	weir_core_log(&en->core, 5, paused ? "paused: nothing more is read until it is resumed" : "resumed");
}

static enum weir_err io_loop(struct weir_engine *en, struct weir_diag **dg)
{
	struct weir_feed *fd = en->core.feed;
	struct weir_park *pk = weir_feed_park(fd);
	int64_t idle = 0, serve_us = 0;
	while (!weir_feed_done(fd)) {
		bool moved;
		int wait_ms;
		if (atomic_load_explicit(&en->snap_failed, memory_order_acquire))
			return WEIR_OK; /* its error is reported after the join */
		if (aborted(en))
			return weir_diag_set(dg, WEIR_E_STOPPED,
					     "stopped by a second signal: what was not committed is given up");
		if (overdue(en))
			return weir_diag_set(dg, WEIR_E_UNAVAILABLE,
					     "stopped, but what was read last could not be committed within %lld s "
					     "(stop.wait.ms): it is read again next time",
					     (long long)(en->core.settings.stop_wait_ms / 1000));
		follow_pause(en);
		enum weir_err err = en->core.input ? follow_group(en, &serve_us, dg) : WEIR_OK;
		if (err == WEIR_OK)
			err = weir_feed_step(fd, &moved, &wait_ms, dg);
		weir_reader_quiescent();
		if (err != WEIR_OK)
			return err;
		if (moved) {
			idle = 0;
			continue;
		}
		for (uint32_t w = 0; w < en->core.worker_count; w++) /* there is time */
			weir_arena_back(en->core.workers[w]->arena);
		/* A consumer's queue says when it has something: asking again and again costs more than a sleep. */
		if (!en->core.input && !weir_feed_full(fd) && !tired(&idle))
			continue;
		weir_core_source_warnings(&en->core, false);
		weir_park_prepare(pk);
		err = weir_feed_step(fd, &moved, &wait_ms, dg);
		if (err != WEIR_OK || moved || weir_feed_done(fd) ||
		    atomic_load_explicit(&en->snap_failed, memory_order_acquire))
			weir_park_cancel(pk);
		else
			weir_reader_offline(),
				weir_park_wait(pk, wait_ms < 0 || wait_ms > GROUP_SLEEP_MS ? GROUP_SLEEP_MS : wait_ms,
					       weir_feed_event_fd(fd));
		weir_reader_online();
		if (err != WEIR_OK)
			return err;
		idle = 0;
	}
	return weir_feed_result(fd, dg);
}

/* A stop that brokers who are away did not let commit: what was read last is read again next time, as where the stop
 * has waited its whole time. Whoever stops twice wants to end, whatever becomes of it. */
static enum weir_err stopped_short(const struct weir_engine *en, struct weir_diag **dg)
{
	if (atomic_load_explicit(&en->stops, memory_order_relaxed) > 1)
		return WEIR_E_STOPPED;
	struct weir_diag *why = *dg;
	*dg = NULL;
	enum weir_err err = weir_diag_set(dg, WEIR_E_UNAVAILABLE, "%s: what was not committed is read again next time",
					  weir_diag_text(why));
	weir_diag_destroy(why);
	return err;
}

/* The threads, from restored slots to the last order point. */
static enum weir_err run_session(struct weir_engine *en, struct weir_diag **dg)
{
	struct weir_core *co = &en->core;
	atomic_store_explicit(&en->feed, co->feed, memory_order_release);
	if (atomic_load_explicit(&en->stop_asked, memory_order_relaxed))
		weir_feed_stop(co->feed); /* asked before there was a feed */
	weir_feed_pause(co->feed, atomic_load_explicit(&en->pause_asked, memory_order_relaxed));
	enum weir_err err = start_threads(en, dg);
	if (err == WEIR_OK) {
		weir_reader_register(); /* io routes batches by the slot map */
		err = io_loop(en, dg);
		weir_reader_unregister();
	}
	join_threads(en);
	atomic_store_explicit(&en->feed, NULL, memory_order_release);
	if (en->stuck)
		return err != WEIR_OK ? err : weir_diag_set(dg, WEIR_E_UNAVAILABLE, "stopped before the last commit");
	weir_core_source_warnings(co, true);
	if (en->snap_err != WEIR_OK && (err == WEIR_OK || err == WEIR_E_STOPPED || err == WEIR_E_FENCED)) {
		weir_diag_destroy(*dg);
		err = en->snap_err;
		*dg = en->snap_diag;
		en->snap_diag = NULL;
	}
	return err == WEIR_E_STOPPED ? stopped_short(en, dg) : err;
}

static void say_resumed(const struct weir_core *co)
{
	if (co->restored.found)
		weir_core_log(co, 5, "resuming at epoch %llu, after %llu records",
			      (unsigned long long)co->restored.epoch, (unsigned long long)co->restored.records);
	for (uint32_t s = 0; s < weir_plan_kept_stages(co->plan) && co->restored.found; s++)
		if (co->restored.schema_missing[s])
			weir_core_log(co, 4, "state %s is new: it begins with what is read from here on",
				      co->plan->stages[s].name);
}

static void say_consumed(const struct weir_core *co)
{
	weir_core_log(co, 5,
		      "the input of %s is wholly consumed: nothing to do. To start over: weir reset %s %s%s --execute",
		      co->app, co->app, co->home_kafka ? "-b " : "", co->home ? co->home : "DIR");
}

/* ---- a member of a group ---- */

/* Waits for an assignment; *given false: stopped meanwhile. */
static enum weir_err wait_assigned(struct weir_engine *en, bool *given, struct weir_diag **dg)
{
	struct weir_kafka_input *in = en->core.input;
	enum weir_kafka_group_state state = weir_kafka_input_state(in);
	enum weir_err err = WEIR_OK;
	*given = false;
	while (err == WEIR_OK && !*given) {
		if (atomic_load_explicit(&en->stop_asked, memory_order_relaxed))
			return WEIR_OK;
		if (state == WEIR_GROUP_ASSIGNED)
			*given = true;
		else if (state == WEIR_GROUP_REVOKED || state == WEIR_GROUP_LOST)
			err = weir_kafka_input_release(in, dg);
		if (err == WEIR_OK && !*given)
			err = weir_kafka_input_serve(in, 100, &state, dg);
	}
	return err;
}

/* A local exchange keeps all slots in one process, so it needs all partitions. */
static enum weir_err check_alone(const struct weir_core *co, bool *all, struct weir_diag **dg)
{
	uint32_t owned = 0;
	for (uint32_t s = 0; s < co->plan->scan_count; s++)
		for (uint32_t p = 0; p < co->plan->scans[s].partition_count; p++)
			owned += weir_core_owns(co, s, p);
	*all = owned == co->plan->partition_count;
	if (*all || !is_local(co->plan))
		return WEIR_OK;
	return weir_diag_set(
		dg, WEIR_E_CONF,
		"group %s has other members, and this query re-keys within one process (exchange=local): it "
		"was given %u of %u partitions. Stop the others, or give it another application.id",
		co->app, owned, co->plan->partition_count);
}

/* Waits until the group takes the assignment back, or until end_us. */
static enum weir_err wait_revoked(struct weir_engine *en, int64_t end_us, struct weir_diag **dg)
{
	enum weir_kafka_group_state state = weir_kafka_input_state(en->core.input);
	enum weir_err err = WEIR_OK;
	while (err == WEIR_OK && state == WEIR_GROUP_ASSIGNED && now_us() < end_us &&
	       !atomic_load_explicit(&en->stop_asked, memory_order_relaxed))
		err = weir_kafka_input_serve(en->core.input, GROUP_SLEEP_MS, &state, dg);
	return err;
}

static void say_waiting(struct weir_engine *en, int64_t session_us)
{
	en->alone_us = now_us();
	weir_core_log(&en->core, 5, "the group has other members: waiting up to %lld s for those that may have crashed",
		      (long long)(session_us / 1000000));
}

/* Before a local exchange joins the group, which would take partitions from those that are there: waits for members
 * that crashed, which are in it until their session ends. */
static enum weir_err ask_alone(struct weir_engine *en, struct weir_diag **dg)
{
	struct weir_kafka_input *in = en->core.input;
	const int64_t session_us = weir_kafka_input_session_ms(in) * 1000;
	enum weir_kafka_group_state state;
	enum weir_err err = WEIR_OK;
	uint32_t others;
	while (err == WEIR_OK && !atomic_load_explicit(&en->stop_asked, memory_order_relaxed) &&
	       (others = weir_kafka_input_others(in)) != 0) {
		if (en->alone_us == 0)
			say_waiting(en, session_us);
		else if (now_us() >= en->alone_us + session_us)
			return weir_diag_set(
				dg, WEIR_E_CONF,
				"group %s has other members (%u), and this query re-keys within one process "
				"(exchange=local). Stop the others, or give it another application.id",
				en->core.app, others);
		err = weir_kafka_input_serve(in, GROUP_SLEEP_MS, &state, dg);
	}
	return err;
}

/* A local exchange that is not given everything. Later on it waits for that. At first others may be this application's
 * own past: members that crashed are in the group until their session ends, so that is waited for, and only then it is
 * refused. */
static enum weir_err wait_alone(struct weir_engine *en, bool *again, struct weir_diag **dg)
{
	int64_t end_us = INT64_MAX;
	if (!en->begun) {
		int64_t session_us = weir_kafka_input_session_ms(en->core.input) * 1000;
		if (en->alone_us == 0)
			say_waiting(en, session_us);
		end_us = en->alone_us + session_us;
		if (now_us() >= end_us)
			return weir_diag_code(*dg);
	} else {
		weir_core_log(&en->core, 4, "%s", weir_diag_text(*dg));
	}
	struct weir_diag *why = *dg;
	*dg = NULL;
	enum weir_err err = wait_revoked(en, end_us, dg);
	*again = err == WEIR_OK;
	if (err == WEIR_OK && weir_kafka_input_state(en->core.input) == WEIR_GROUP_ASSIGNED &&
	    !atomic_load_explicit(&en->stop_asked, memory_order_relaxed)) {
		*again = false;
		*dg = why;
		return weir_diag_code(why);
	}
	weir_diag_destroy(why);
	return err;
}

/* Gives back what the group has taken or is taking. */
static enum weir_err answer_group(struct weir_engine *en, bool leave, struct weir_diag **dg)
{
	struct weir_kafka_input *in = en->core.input;
	switch (weir_kafka_input_state(in)) {
	case WEIR_GROUP_RUNNING:
		return leave ? weir_kafka_input_rejoin(in, dg) : WEIR_OK;
	case WEIR_GROUP_REVOKED:
	case WEIR_GROUP_LOST:
		return weir_kafka_input_release(in, dg);
	case WEIR_GROUP_JOINING:
	case WEIR_GROUP_ASSIGNED: /* it has gone on already */
	default:
		return WEIR_OK;
	}
}

static void say_and_forget(struct weir_engine *en, const char *what, struct weir_diag **dg)
{
	weir_core_log(&en->core, 4, "%s%s", weir_diag_text(*dg), what);
	weir_diag_destroy(*dg);
	*dg = NULL;
}

/* The threads of this session are gone; the next one starts clean. */
static void forget_session(struct weir_engine *en)
{
	en->snap_err = WEIR_OK;
	atomic_store_explicit(&en->snap_failed, false, memory_order_relaxed);
	atomic_store_explicit(&en->abort, false, memory_order_relaxed);
}

/* ---- restoring beside a session ---- */

static void *aside_main(void *arg)
{
	weir_aside_run(arg);
	return NULL;
}

static void join_aside(struct weir_engine *en)
{
	if (en->aside_started)
		pthread_join(en->aside, NULL);
	en->aside_started = false;
}

static void cancel_aside(struct weir_engine *en)
{
	if (en->core.aside)
		weir_aside_stop(en->core.aside);
	join_aside(en);
	weir_aside_destroy(&en->core);
}

/* Waits until the restore is over, the group wants something else, or end_us. */
static void wait_aside(struct weir_engine *en, int64_t end_us)
{
	enum { SLICE_MS = 10 };
	enum weir_kafka_group_state before = weir_kafka_input_state(en->core.input), now = before;
	while (now == before && now_us() < end_us && !weir_aside_done(en->core.aside) &&
	       !atomic_load_explicit(&en->stop_asked, memory_order_relaxed)) {
		struct weir_diag *dg = NULL;
		if (weir_kafka_input_serve(en->core.input, SLICE_MS, &now, &dg) != WEIR_OK) {
			weir_diag_destroy(dg); /* it sticks: the next to ask hears it */
			return;
		}
	}
}

static bool start_aside(void *ctx, struct weir_core_aside *as)
{
	enum { MOMENT_US = 300000 };
	struct weir_engine *en = ctx;
	en->aside_started = pthread_create(&en->aside, NULL, aside_main, as) == 0;
	if (!en->aside_started) {
		weir_aside_run(as);
		return true;
	}
	(void)pthread_setname_np(en->aside, "weir-restore");
	wait_aside(en, now_us() + MOMENT_US);
	if (!weir_aside_done(as))
		return false;
	join_aside(en);
	return true;
}

/* The session of what was there is over. *merge: the rest is restored, and the same assignment begins again. */
static enum weir_err end_beside(struct weir_engine *en, bool *merge, struct weir_diag **dg)
{
	struct weir_core *co = &en->core;
	wait_aside(en, INT64_MAX);
	*merge = weir_aside_done(co->aside) && weir_kafka_input_state(co->input) == WEIR_GROUP_RUNNING &&
		 !atomic_load_explicit(&en->stop_asked, memory_order_relaxed);
	if (!*merge)
		return WEIR_OK;
	join_aside(en);
	enum weir_err err = weir_aside_result(co, dg);
	return err == WEIR_OK ? weir_kafka_input_again(co->input, dg) : err;
}

/* One assignment: restore, run, commit, give back. *again: another will come. */
static enum weir_err run_assignment(struct weir_engine *en, bool *again, struct weir_diag **dg)
{
	struct weir_core *co = &en->core;
	bool all;
	*again = false;
	enum weir_err err = check_alone(co, &all, dg);
	if (err != WEIR_OK)
		return wait_alone(en, again, dg);
	bool first = !en->begun;
	en->begun = true;
	err = weir_core_begin(co, dg);
	if (err == WEIR_OK && first)
		say_resumed(co);
	if (err == WEIR_OK && co->consumed && first)
		say_consumed(co);
	if (err == WEIR_OK && co->consumed && co->fenced)
		weir_kafka_input_say_end(co->input);
	if (err == WEIR_OK && co->consumed) {
		err = weir_kafka_input_await_others(co->input, again, dg);
		if (*again) {
			weir_keep_leave(co, true, false);
			pthread_mutex_lock(&en->gate);
			weir_core_end(co);
			pthread_mutex_unlock(&en->gate);
			forget_session(en);
		}
		return err;
	}
	if (err == WEIR_OK && weir_kafka_input_state(co->input) != WEIR_GROUP_ASSIGNED)
		err = weir_diag_set(dg, WEIR_E_UNAVAILABLE,
				    "the group took the partitions back while they were restored");
	if (err == WEIR_OK)
		err = weir_clusters_begin(co, dg);
	bool began = err == WEIR_OK;
	if (began) {
		weir_core_follow(co);
		err = run_session(en, dg);
	}
	bool stopping = atomic_load_explicit(&en->stops, memory_order_relaxed) != 0;
	enum weir_kafka_group_state state = weir_kafka_input_state(co->input);
	co->beside_records = co->feed ? weir_feed_records(co->feed) : 0;
	if (!stopping && (!began || err == WEIR_OK))
		weir_keep_leave(co, began, began);
	pthread_mutex_lock(&en->gate);
	weir_core_end(co);
	pthread_mutex_unlock(&en->gate);
	if (co->aside && err == WEIR_OK && !stopping && state == WEIR_GROUP_RUNNING) {
		forget_session(en);
		err = end_beside(en, again, dg);
		if (err != WEIR_OK || *again)
			return err;
		stopping = atomic_load_explicit(&en->stops, memory_order_relaxed) != 0;
		state = weir_kafka_input_state(co->input);
		if (state == WEIR_GROUP_LOST) {
			cancel_aside(en);
			*again = true;
			return weir_kafka_input_release(co->input, dg);
		}
	}
	cancel_aside(en);
	if (err == WEIR_E_STOPPED && !began) { /* while it waited or restored: nothing was read since the last commit */
		weir_diag_destroy(*dg);
		*dg = NULL;
		return WEIR_OK;
	}
	/* The group went on while state was restored: what could not be looked up belongs to somebody else by now. */
	bool overtaken = err == WEIR_E_UNAVAILABLE && state != WEIR_GROUP_ASSIGNED && state != WEIR_GROUP_RUNNING;
	if ((err == WEIR_E_FENCED || overtaken) && !stopping) {
		bool leave = err == WEIR_E_FENCED;
		say_and_forget(en, ": joining again", dg);
		err = co->log && co->log->ops->drop ? co->log->ops->drop(co->log, dg) : WEIR_OK;
		if (err == WEIR_OK)
			err = answer_group(en, leave, dg);
		forget_session(en);
		*again = true;
		return err;
	}
	if (err == WEIR_E_FENCED) { /* stopping: nothing is left to commit, and nothing is lost by that */
		say_and_forget(en, ": what was not committed is read there", dg);
		return WEIR_OK;
	}
	if (err != WEIR_OK || stopping)
		return err;
	forget_session(en);
	*again = state == WEIR_GROUP_REVOKED;
	if (!*again && co->fenced)
		weir_kafka_input_say_end(co->input);
	return *again ? weir_kafka_input_release(co->input, dg) : weir_kafka_input_await_others(co->input, again, dg);
}

/* What memory.max leaves to it besides data in flight (a quarter) and state. */
static uint64_t standby_room(const struct weir_engine *en)
{
	uint64_t most = en->core.settings.memory_max / 4 * 3;
	struct weir_stats st;
	weir_engine_stats(en, &st);
	return st.state_bytes < most ? most - st.state_bytes : 0;
}

static void *standby_main(void *arg)
{
	struct weir_engine *en = arg;
	while (!atomic_load_explicit(&en->standby_stop, memory_order_relaxed))
		weir_standby_step(en->core.standby, STANDBY_MS, standby_room(en));
	return NULL;
}

static enum weir_err start_standby(struct weir_engine *en, struct weir_diag **dg)
{
	if (!en->core.standby)
		return WEIR_OK;
	int rc = pthread_create(&en->standby, NULL, standby_main, en);
	if (rc != 0)
		return weir_diag_set(dg, WEIR_E_IO, "cannot start a thread: error %d", rc);
	en->standby_started = true;
	(void)pthread_setname_np(en->standby, "weir-standby");
	return WEIR_OK;
}

static void stop_standby(struct weir_engine *en)
{
	if (!en->standby_started)
		return;
	atomic_store_explicit(&en->standby_stop, true, memory_order_relaxed);
	pthread_join(en->standby, NULL);
	en->standby_started = false;
}

static enum weir_err run_group(struct weir_engine *en, struct weir_diag **dg)
{
	en->core.start_aside = start_aside;
	en->core.start_ctx = en;
	enum weir_err err = start_standby(en, dg);
	if (err == WEIR_OK && is_local(en->core.plan))
		err = ask_alone(en, dg);
	if (err == WEIR_OK)
		err = weir_kafka_input_join(en->core.input, dg);
	bool again = true;
	while (err == WEIR_OK && again) {
		bool given;
		err = wait_assigned(en, &given, dg);
		if (err != WEIR_OK || !given)
			break;
		err = run_assignment(en, &again, dg);
	}
	cancel_aside(en);
	stop_standby(en);
	return err;
}

/* Input without an end, and state that nothing bounds: said before it has to be found out. */
static void say_growing(const struct weir_core *co)
{
	struct weir_buf keys = {0}, always = {0};
	for (uint32_t s = 0; s < co->plan->stage_count; s++) {
		const struct weir_plan_stage *st = &co->plan->stages[s];
		enum weir_plan_growth growth = weir_plan_growth_of(co->plan, st);
		struct weir_buf *names = growth == WEIR_GROWTH_KEYS          ? &keys
					 : growth == WEIR_GROWTH_KEYS_ALWAYS ? &always
									     : NULL;
		if (names != NULL)
			weir_buf_printf(names, "%s%s", names->bytes != 0 ? ", " : "", st->name);
	}
	if (keys.bytes != 0)
		weir_core_log(
			co, 6,
			"state grows with its keys: %.*s. state.ttl (table.exec.state.ttl) drops keys that nothing "
			"has touched for so long",
			(int)keys.bytes, (const char *)keys.data);
	if (always.bytes != 0)
		weir_core_log(co, 6, "state grows with its keys, which state.ttl does not change: %.*s",
			      (int)always.bytes, (const char *)always.data);
	weir_buf_fini(&keys);
	weir_buf_fini(&always);
}

/* A setting that does less than it says. */
static void say_commits(const struct weir_core *co)
{
	struct weir_buf text = {0};
	if (!co->live && co->log && weir_settings_commits_late(&co->settings, &text))
		weir_core_log(co, 4, "%.*s", (int)text.bytes, (const char *)text.data);
	weir_buf_fini(&text);
}

enum weir_err weir_engine_run(struct weir_engine *en, struct weir_diag **diag)
{
	struct weir_diag *dg = NULL;
	struct weir_core *co = &en->core;
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < weir_conf_warning_count(co->cf); i++)
		weir_core_log(co, 4, "%s", weir_conf_warning(co->cf, i));
	if (en->kafka) {
		err = open_all(en, &dg);
		if (err == WEIR_OK && !co->input)
			err = weir_core_begin(co, &dg);
	}
	if (err == WEIR_OK && co->settings.standby_replicas != 0 && !co->standby)
		weir_core_log(co, 4, "standby.replicas has no effect: no slots of this query move between instances");
	if (err == WEIR_OK)
		weir_core_source_warnings(co, false);
	static const char *const guarantees[] = {"at_least_once", "exactly_once", "at_most_once"};
	weir_core_log(co, 7, "application %s, guarantee %s", co->app, guarantees[co->settings.guarantee]);
	if (err == WEIR_OK && !co->input && co->consumed) {
		say_consumed(co);
		return WEIR_OK;
	}
	if (err == WEIR_OK && !co->input)
		say_resumed(co);
	if (err == WEIR_OK)
		say_commits(co);
	if (err == WEIR_OK && co->endless)
		say_growing(co);
	if (err == WEIR_OK)
		weir_core_print_frame(co, true, 0);
	en->start_us = now_us();
	if (err == WEIR_OK)
		err = co->input ? run_group(en, &dg) : run_session(en, &dg);
	atomic_store_explicit(&en->end_us, now_us(), memory_order_relaxed);
	struct weir_stats st;
	weir_engine_stats(en, &st);
	if (err == WEIR_OK)
		weir_core_print_frame(co, false, st.results_written);
	if (diag)
		*diag = dg;
	else
		weir_diag_destroy(dg);
	return err;
}
