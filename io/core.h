/* core.h: one engine's parts wired together, without threads: streams, log, workers, snapshotter, feed. io/engine.c
 * runs it on threads, io/driver.c on one thread with topics in memory. @thread init for building and freeing
 *
 *   plan -> open (streams are there; log, topics) -> { begin (slots restored, feed) -> run -> end } ... -> fini
 *
 * begin to end is one assignment: the whole of a run but for a member of a consumer group, which goes through it again
 * whenever the group gives it other partitions. */
#ifndef WEIR_IO_CORE_H
#define WEIR_IO_CORE_H

#include "checkpoint/restore.h"
#include "io/conf.h"
#include "io/feed.h"
#include "io/kafka/log.h"

/* What an assignment leaves to the next (keep.c). markers NULL: this is no member of a group. */
struct weir_core_keep {
	struct weir_buf *markers;     /* per stage and changelog partition: the newest; empty: none */
	bool *kept;                   /* per changelog partition: its slots came from the assignment before */
	bool *fresh;                  /* of these: restored beside it */
	int64_t *offset;              /* per global partition: what the group says at this assignment; -1: nothing */
	uint64_t *epoch;              /* likewise, out of the offset's metadata; 0: none */
	uint64_t *had_epoch;          /* likewise, when the assignment before ended */
	bool *had;                    /* it was ours then, and drained */
	bool taken;                   /* this assignment has taken what it could */
	uint64_t log_epoch;           /* last committed when this assignment began */
	struct weir_worker **workers; /* of the assignment before; NULL: nothing is left of it */
};

/* Brokers on which some source lies, but no result and no state. */
struct weir_core_cluster {
	const char *brokers;
	struct weir_conf *cf; /* owned; the job's, with what its tables say */
};

struct weir_core {
	struct weir_topology *tp; /* owned: the plan lives in its memory */
	struct weir_conf *cf;     /* owned */
	struct weir_settings settings;
	struct weir_plan *plan;
	char *app;
	struct weir_stream_log **streams; /* per scan, owned */
	struct weir_log *log;             /* owned; NULL: keeps nothing */
	struct weir_output *outputs;      /* the plan's sinks, then dead-letter and late topics */
	uint32_t *output_topic;
	uint32_t output_count;
	struct weir_scan_policy *policies;
	uint32_t *state_topic;
	uint32_t changelog_partitions; /* of every changelog; what it first began with */
	struct weir_input_name *inputs;
	struct weir_worker **workers;
	uint32_t worker_count;
	struct weir_routes routes;
	struct weir_snapshot_conf sncf;
	struct weir_snapshot *snapshot;
	struct weir_feed *feed;
	struct weir_restored restored;
	struct weir_core_keep keep;
	struct weir_core_aside *aside; /* owned; slots that are restored beside those that run; NULL: none */
	/* Runs it on a thread of its own and waits a moment: true when it is over (joined). NULL: there are no threads.
	 */
	bool (*start_aside)(void *ctx, struct weir_core_aside *as);
	void *start_ctx;
	uint64_t beside_records;          /* that a session took while others restored */
	_Atomic uint64_t damaged;         /* @writer io */
	uint32_t *warned;                 /* per scan: warnings logged so far */
	bool *recorded;                   /* per scan: its stream is io/recorded's */
	struct weir_placement *placement; /* owned; NULL: nothing to look at. @writer io */
	bool live;
	bool consumed;          /* resumed, and nothing is left to read */
	uint64_t records_total; /* of the bounded input, 0 if unknown */
	bool threads;
	bool virtual_topics; /* the driver: every table's topic lies in memory, whatever its connector */
	int (*write_text)(void *ctx, const char *data, size_t bytes);
	void *text_ctx;
	void (*log_line)(void *ctx, int level, const char *text);
	void *log_ctx;
	const char *home;   /* the folder (or brokers) of markers and changelogs; NULL: nothing is kept */
	bool home_kafka;    /* home names brokers */
	bool brokers_given; /* for the job: no table has brokers of its own */
	struct weir_core_cluster *clusters; /* other than that of settings.bootstrap_servers */
	uint32_t cluster_count;
	struct weir_standby *standby;      /* owned; NULL: nothing is followed */
	struct weir_kafka_input *input;    /* owned; the group's member, or what stands for it without a group; NULL: no
					      table is read from brokers, and none needs a group */
	bool fenced;                       /* the member has changelog partitions, and reads none of the scans */
	struct weir_kafka_input **readers; /* owned; what else reads scans on brokers, one a cluster */
	uint32_t reader_count;
	struct weir_kafka_input **scan_input; /* per scan: what reads it; NULL: it is not on brokers */
	uint32_t *kafka_scan;                 /* per scan on brokers: its number there */
	bool *owned;                          /* per global partition: this assignment has it; NULL: all of them */
	bool endless;                         /* some input has no bound (live ones may have) */
	bool begun;
	uint64_t epoch;         /* the largest this engine has made or found */
	struct weir_stats past; /* of assignments before this one */
	int64_t (*now_us)(void);
	int64_t note_since_us; /* @writer snap: the current minute of lines about rejected records */
	uint32_t note_lines;
	uint64_t note_silent;
	struct weir_mem mem;
};

/* The planner's word for the exchange property. */
int weir_plan_exchange_of(const struct weir_settings *st);
/* Takes tp and cf. Plans: core->plan is set, nothing is opened. */
WEIR_MUST_CHECK enum weir_err weir_core_plan(struct weir_core *co, struct weir_topology *tp, struct weir_conf *cf,
					     struct weir_diag **dg);
/* What a sink, dead-letter or late topic is called and where it lies; path NULL: the log's home. */
struct weir_core_topic {
	const char *name;
	const char *path;
	uint32_t partitions; /* 0: as many as the largest source */
	bool partitions_fixed, keyless;
	const char *compression;
	enum weir_topic_kind kind;
};
/* Opens the log of a folder; the driver gives one in memory. */
typedef enum weir_err weir_core_open_log(void *ctx, const char *home, const char *app, struct weir_log **out,
					 struct weir_diag **dg);
/* What sinks say of the guarantee, where the job says nothing. Out of find_brokers. */
WEIR_MUST_CHECK enum weir_err weir_core_take_guarantee(struct weir_core *co, struct weir_diag **dg);
/* Whether the sinks (or state.home) put markers and changelogs on brokers: co->home and home_kafka are set. */
WEIR_MUST_CHECK enum weir_err weir_core_find_home(struct weir_core *co, struct weir_diag **dg);
/* The name of a stage's changelog, in m. Without any stage that of the markers. */
const char *weir_core_changelog(const struct weir_core *co, uint32_t stage, struct weir_mem *m);
/* With core->streams and plan set, and home found: binds the plan, opens log and topics. */
WEIR_MUST_CHECK enum weir_err weir_core_open(struct weir_core *co, weir_core_open_log *open_log, void *ctx,
					     int64_t (*now_us)(void), struct weir_diag **dg);
/* find_home, open and begin in one: for what has no group. */
WEIR_MUST_CHECK enum weir_err weir_core_build(struct weir_core *co, weir_core_open_log *open_log, void *ctx,
					      int64_t (*now_us)(void), struct weir_diag **dg);
/* Builds workers, restores what core->owned names, builds the feed. */
WEIR_MUST_CHECK enum weir_err weir_core_begin(struct weir_core *co, struct weir_diag **dg);
/* Slots are restored and reading begins: the changelogs of what others own are followed from here on, where that is
 * wanted. */
void weir_core_follow(struct weir_core *co);
/* Undoes begin: slots are dropped; what was committed stands. Also after a begin that failed. */
void weir_core_end(struct weir_core *co);
void weir_core_fini(struct weir_core *co);

/* ---- keep.c ---- */

void weir_keep_init(struct weir_core *co);
void weir_keep_fini(struct weir_core *co);
/* Before end: leaves the slots to the next assignment. Everything that was applied is committed. whole: all that is
 * owned, else only what had been kept from the one before; ran: workers were started. */
void weir_keep_leave(struct weir_core *co, bool whole, bool ran);
/* Out of begin, between building workers and restoring: takes what has not changed. The group was asked before. */
void weir_keep_take(struct weir_core *co);
/* The group's committed offsets and epochs into keep. */
WEIR_MUST_CHECK enum weir_err weir_keep_ask_group(struct weir_core *co, struct weir_diag **dg);
/* An owned partition whose committed group offset is not where the state stands: somebody moved the group alone. */
WEIR_MUST_CHECK enum weir_err weir_keep_check_group(struct weir_core *co, struct weir_diag **dg);

/* Workers of the plan, not begun. */
WEIR_MUST_CHECK enum weir_err weir_core_workers(const struct weir_core *co, struct weir_worker ***out,
						struct weir_routes *routes, struct weir_diag **dg);

/* ---- aside.c ---- */

/* Whether some slots might go on while others restore: those of their own source partition do. */
bool weir_aside_possible(const struct weir_core *co);
/* Has the member ask about and read only some inputs. */
void weir_aside_limit(struct weir_core *co, const bool *now);
/* Out of begin: what is owned and not kept is to be restored; run does so, on its own thread. */
WEIR_MUST_CHECK enum weir_err weir_aside_create(struct weir_core *co, struct weir_diag **dg);
void weir_aside_run(struct weir_core_aside *as);
/* Asks run to end. @thread any */
void weir_aside_stop(struct weir_core_aside *as);
bool weir_aside_done(const struct weir_core_aside *as); /* NULL: false. @thread any */
uint32_t weir_aside_count(const struct weir_core_aside *as);
/* The rest once run's thread is joined. What became of it: */
WEIR_MUST_CHECK enum weir_err weir_aside_result(struct weir_core *co, struct weir_diag **dg);
/* Out of keep_take: marks what it restored as kept; moves its slots into the workers, and ends it. */
void weir_aside_choose(struct weir_core *co);
/* meanwhile: records that the session beside it took; UINT64_MAX: there was none. */
void weir_aside_adopt(struct weir_core *co, uint64_t meanwhile);
void weir_aside_destroy(struct weir_core *co);

/* ---- clusters.c ---- */

/* The brokers of a table that lies on some: the job's, or its own. */
const char *weir_table_brokers(const struct weir_core *co, const struct weir_table_def *def);
/* Whether any scan or sink lies on brokers; settings.bootstrap_servers is then the cluster of the sinks, or without
 * any of the first source. WEIR_E_CONF: sinks on two. */
WEIR_MUST_CHECK enum weir_err weir_core_find_brokers(struct weir_core *co, bool *any, struct weir_diag **dg);
/* Whether sources lie elsewhere than where the group would be. After find_home. */
bool weir_core_is_apart(const struct weir_core *co);
/* The configuration for clients of brokers. */
const struct weir_conf *weir_core_conf_of(const struct weir_core *co, const char *brokers);
/* Closes the readers, the streams of which are closed. */
void weir_clusters_fini(struct weir_core *co);
/* Whether partition p of a scan is ours in this assignment. */
bool weir_core_owns(const struct weir_core *co, uint32_t scan, uint32_t p);
/* The readers learn what of theirs is owned; they begin (with the member), are served, paused and end. */
WEIR_MUST_CHECK enum weir_err weir_clusters_take(struct weir_core *co, struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_clusters_begin(struct weir_core *co, struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_clusters_serve(struct weir_core *co, struct weir_diag **dg);
void weir_clusters_pause(struct weir_core *co, bool paused);
void weir_clusters_end(struct weir_core *co);

void weir_core_log(const struct weir_core *co, int level, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* Logs what there is to say of sources since the last call: recorded ones of torn ends, open transactions and damage
 * passed over; all that a plan takes as they lie, of keys that are not where they should be (end: what is known by
 * now). @thread io, or after the threads */
void weir_core_source_warnings(struct weir_core *co, bool end);
/* Prints the head (before the run) or foot (after it, with the number of rows) of bare SELECTs. */
void weir_core_print_frame(struct weir_core *co, bool head, uint64_t rows);
void weir_core_stats(const struct weir_core *co, struct weir_stats *out);

/* streams.c: opens the source of scan s as its table's connector says; *live: it has no end. Scans on brokers are
 * opened together by weir_kafka_sources_open. */
WEIR_MUST_CHECK enum weir_err weir_source_open(struct weir_stream_log **out, const struct weir_core *co, uint32_t scan,
					       bool *live, struct weir_diag **dg);
/* Whether a table lies on brokers, not on recorded topics that stand for them. */
bool weir_table_on_brokers(const struct weir_core *co, const struct weir_table_def *def);
/* Whether scan s reads from brokers. */
bool weir_source_is_kafka(const struct weir_core *co, uint32_t scan);
/* Opens core->input and the streams of all scans on brokers, if there are any. stop gives up waiting. */
WEIR_MUST_CHECK enum weir_err weir_kafka_sources_open(struct weir_core *co, const _Atomic bool *stop,
						      struct weir_diag **dg);
/* Folder of a table on recorded topics: its path, or what brokers=file:DIR says; NULL if it has none. */
const char *weir_table_folder(const struct weir_core *co, const struct weir_table_def *def);

#endif
