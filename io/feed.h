/* feed.h: the io thread's work: chooses the next stored batch, cuts batches, numbers them, makes order points and
 * barriers, admits by memory, hands over to workers. weir_feed_step() never waits. @thread io
 *
 * Which batch comes next is decided by the stored batches' own timestamps alone (design.md section 3); how far feeding
 * runs ahead is decided by memory, rings and epochs in flight, and changes nothing in the output. */
#ifndef WEIR_IO_FEED_H
#define WEIR_IO_FEED_H

#include "checkpoint/snapshot.h"
#include "io/placement.h"
#include "io/stream.h"

struct weir_feed_conf {
	const struct weir_plan *plan;
	struct weir_stream_log **streams; /* per scan */
	struct weir_worker **workers;
	uint32_t worker_count;
	uint32_t input_capacity; /* inputs outstanding per worker */
	uint32_t points;         /* order points in flight: at most a worker's bundles */
	struct weir_snapshot *snapshot;
	const int64_t *start;                /* per global partition: offset to start at, -1: the stream's own start */
	uint64_t records, bytes;             /* read in earlier runs */
	uint64_t epoch;                      /* of the last marker */
	int64_t point_records;               /* an order point every so many records */
	uint64_t point_bytes;                /* or bytes */
	int64_t commit_records;              /* bounded: a barrier every so many records; 0: only at the end */
	int64_t commit_ms, emit_ms, idle_ms; /* live */
	int64_t join_ms;                     /* live: a join waits so long for an input that has more, 0: not */
	bool coalesce;                       /* EMIT CHANGES: the last value of each key, not every one */
	bool idle_wall;                      /* idle.advance=wall: time goes on when every partition is idle */
	bool live;                           /* some input is on brokers, or read without a bound */
	bool endless;                        /* some input is read without a bound: reading never ends by itself */
	const bool *owned; /* per global partition: read here; NULL: all. Others are as if at their bound */
	bool in_doubt;     /* what the streams hold now may have been applied before a crash: doubt.h */
	bool keep_windows; /* end.of.input=keep */
	uint32_t epochs_in_flight;
	int64_t rate; /* records a second, 0: no limit */
	uint64_t memory_max;
	uint32_t poll_records; /* largest batch, 0: 1,024. For tests: a smaller hand-over must not change any output */
	struct weir_placement *placement; /* sees every unit; NULL: nobody wants to */
	int64_t (*now_us)(void);          /* monotonic */
};

struct weir_feed;
WEIR_MUST_CHECK enum weir_err weir_feed_create(struct weir_feed **out, const struct weir_feed_conf *cf,
					       struct weir_diag **dg);
void weir_feed_destroy(struct weir_feed *fd);
/* Does what can be done now; *moved says whether anything was, *wait_ms (when nothing was) how long at most until time
 * itself gives something to do, -1: for ever. */
WEIR_MUST_CHECK enum weir_err weir_feed_step(struct weir_feed *fd, bool *moved, int *wait_ms, struct weir_diag **dg);
/* Ask for the end: bounded input goes on to the next order point, live input makes one now. */
void weir_feed_stop(struct weir_feed *fd);
/* The last step could not hand over: a worker has as many inputs as it may have. No use in spinning. */
bool weir_feed_full(const struct weir_feed *fd);
/* Takes no further records while paused; order points, commits and the group go on. @thread any, async-signal-safe */
void weir_feed_pause(struct weir_feed *fd, bool paused);
/* The last order point is written (and committed), and every input has come back. */
bool weir_feed_done(const struct weir_feed *fd);
/* An order point now, for the driver: advance moves every partition's time (WEIR_TIME_UNSET: not); last ends the run.
 */
void weir_feed_point(struct weir_feed *fd, int64_t advance, bool barrier, bool last, bool close_all);
/* Why the run ended early: WEIR_OK, or WEIR_E_STATE when state outgrew memory.max (dg says so). */
enum weir_err weir_feed_result(const struct weir_feed *fd, struct weir_diag **dg);
/* The last epoch it has begun to commit. After the threads have ended */
uint64_t weir_feed_epoch(const struct weir_feed *fd);
uint64_t weir_feed_records(const struct weir_feed *fd); /* read by this run. @thread any */
uint64_t weir_feed_bytes(const struct weir_feed *fd);
uint64_t weir_feed_memory(const struct weir_feed *fd); /* all that is held now but state. @thread any */
struct weir_park *weir_feed_park(struct weir_feed *fd);
/* A descriptor that becomes readable when there is more to read, or -1: there is none, or the last step had no use for
 * more, and it would only keep whoever waits awake. */
int weir_feed_event_fd(const struct weir_feed *fd);

#endif
