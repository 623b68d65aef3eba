/* feed_private.h: the inside of the feed, shared by feed.c (choosing, cutting, order points) and even.c (inputs of
 * joins that are read in step). @thread io, all of it */
#ifndef WEIR_IO_FEED_PRIVATE_H
#define WEIR_IO_FEED_PRIVATE_H

#include "io/feed.h"

/* A unit of the log and how many of its batches are out. Given back when all have returned. */
struct unit_ref {
	struct weir_unit *unit;
	uint32_t scan;
	uint32_t out;
	bool consumed;
};

/* Time spent waiting, as far as it was looked whether there is still a reason to. */
struct patience {
	int64_t seen_us, spent_us;
};

struct partition {
	uint32_t scan;
	uint32_t number; /* within the scan */
	enum weir_poll poll;
	bool peeked;
	bool bound_told;
	bool idle_told;
	bool first;  /* of a global table: before all others */
	bool loaded; /* and its end has been seen once */
	int64_t first_ts;
	int64_t next_offset;
	int64_t marked_offset; /* at the last barrier */
	int64_t doubt_end;     /* in doubt: up to where */
	int64_t data_us;       /* when data last came */
	bool meets;            /* feeds a join beside others */
	bool waited_out; /* it has more, but did not bring it in join_ms: not waited for until it brings something */
	int64_t read_ts; /* where its last unit began in time */
	int64_t last_ts; /* and ended */
	/* joins whose rows meet a table as it stands at their turn */
	bool turns;            /* feeds one beside others */
	int64_t sent_ts;       /* latest time handed on since the last order point */
	int64_t even_ts;       /* while they are brought even: up to where */
	int64_t upto_ts;       /* of its unit: up to where now */
	uint64_t looked;       /* when it was last asked whether it has a unit: of looks */
	struct unit_ref *rest; /* a unit that was begun, and goes on behind the order point */
	uint32_t rest_at;
};

struct weir_feed {
	struct weir_feed_conf cf;
	struct partition *part;
	uint32_t part_count;
	uint32_t bound_count;
	/* joins that wait */
	bool meets_direct; /* partitions meet those of their own number */
	bool waiting;
	struct patience wait;
	bool turns;   /* some partition's are */
	bool evening; /* an order point is due, and partitions are read up to where the others were */
	bool cramped; /* but there will be no room for more before it is made */
	struct patience even_wait;
	uint64_t looks; /* units taken; a partition that was looked at before may have got something since */
	/* the unit being cut */
	struct unit_ref *current;
	uint32_t current_part;
	uint32_t current_at;
	uint32_t opened_at; /* where it was when its turn came */
	/* pools */
	struct weir_input *inputs; /* all of them */
	struct weir_input **free_input;
	uint32_t free_count;
	uint32_t *outstanding; /* per worker */
	struct unit_ref *refs;
	struct unit_ref **free_ref;
	uint32_t free_ref_count, ref_count;
	struct weir_point *points;
	struct weir_point **free_point;
	uint32_t free_point_count;
	/* numbering */
	uint64_t seq;
	uint64_t epoch;
	int64_t point_records; /* since the last order point */
	uint64_t point_bytes;
	int64_t commit_records;     /* since the last barrier */
	int64_t commit_us, emit_us; /* when the last was made */
	bool may_be_quiet;          /* changes may wait at order points that come for their records, not their time */
	uint32_t quiet;             /* order points in a row at which they did */
	int64_t loud_us;            /* when the last was made at which they did not */
	bool in_doubt;              /* until every partition has been read to its doubt_end */
	bool told;                  /* an event since the last barrier that other instances have to hear of */
	bool skipped;               /* live: since the last barrier a position passed what is no record */
	int64_t all_idle_us;        /* idle_wall: up to when time has been moved on; 0: some partition is not idle */
	int64_t advance_ms;         /* what the next order point moves time on by */
	/* a control on its way to every worker */
	bool sending;
	struct weir_input control;
	struct weir_point *control_point;
	uint32_t sent_to;
	/* an order point the driver asked for */
	bool asked;
	int64_t asked_advance;
	bool asked_barrier, asked_last, asked_close;
	/* the end */
	_Atomic bool stop;
	_Atomic bool paused;
	bool last_sent;
	bool memory_stop;
	uint64_t stop_room; /* what states might have held then */
	uint32_t points_out;
	uint32_t barriers_out;
	uint64_t dirty_out;    /* what barriers_out have to write, about */
	uint64_t marked_state; /* bytes of state at the last barrier */
	uint64_t seen_state;   /* and when an order point last came back: by how much it had grown then, */
	uint64_t grown, grows; /* and what it has grown by twice in a row */
	bool full;             /* the last step found no room in a worker's ring */
	bool hungry;           /* the last step found nothing to read, and there was room for more */
	uint64_t point_cost;   /* what a recent order point held in bundles: reserved for the next */
	bool cost_known;       /* one has come back */
	uint64_t memory;       /* of units held */
	uint64_t memory_told;  /* of those whose stream does not say what it holds itself */
	_Atomic uint64_t memory_seen;
	uint64_t records, bytes; /* this run */
	_Atomic uint64_t records_seen, bytes_seen;
	int64_t rate_start_us;
	int64_t rate_records;
	struct weir_park park;
};

WEIR_INLINE int64_t weir_unit_ts(const struct unit_ref *rf, uint32_t at)
{
	return rf->unit->records[at].timestamp;
}

/* ---- even.c ---- */

/* Which partitions meet others in a join, now or behind other stages. Global tables are read before all others, and
 * repartition topics follow what is read here. */
void weir_even_find(struct weir_feed *fd);
/* Whether p, whose turn it is, meets partitions in a join that have earlier records which did not arrive yet: for at
 * most join_ms. */
bool weir_even_waits(struct weir_feed *fd, const struct partition *p);
/* Whether the order point that is due has to wait until inputs are even: for what is here, and at most join_ms for what
 * is not. */
bool weir_even_must(struct weir_feed *fd);
/* While they are brought even: whether p has records here from before the time it is to be read to, or may have. */
bool weir_even_is_behind(const struct weir_feed *fd, uint32_t p);
/* While they are brought even, after a look at all partitions: whether some are waited for. */
bool weir_even_look(struct weir_feed *fd);
/* How far a unit of p's may be read for now: to where the others are known. */
int64_t weir_even_upto(const struct weir_feed *fd, uint32_t p);
/* Leaves the unit being cut for later, where the others are not there yet. */
void weir_even_leave(struct weir_feed *fd);
/* Whether some partition has begun a unit and left it. */
bool weir_even_has_rest(const struct weir_feed *fd);

#endif
