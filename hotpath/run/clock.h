/* clock.h: task time as one worker knows it (design.md section 3): the times of source partitions and upstream slots,
 * and for each stage the minimum that it judges lateness by. @thread worker, all of it */
#ifndef WEIR_RUN_CLOCK_H
#define WEIR_RUN_CLOCK_H

#include "hotpath/run/run.h"

struct weir_times;

struct weir_times *weir_times_create(const struct weir_plan *pl); /* @thread init */
void weir_times_destroy(struct weir_times *tm);

/* Restore: what a marker said. @thread init */
void weir_times_set_part(struct weir_times *tm, uint32_t part, int64_t time);
void weir_times_set_task(struct weir_times *tm, uint32_t stage, uint32_t slot, int64_t time);

/* How rows that come from partition `part` into (stage, slot) are judged; slot matters to direct stages only. */
struct weir_clock weir_times_clock(const struct weir_times *tm, uint32_t stage, uint32_t slot, uint32_t part);
/* The same for rows that come from upstream slot `from` by branch. */
struct weir_clock weir_times_clock_up(const struct weir_times *tm, uint32_t stage, uint32_t branch, uint32_t from);

/* A fragment of part has been applied everywhere: its largest event time counts now. slot: the direct slot it feeds. */
void weir_times_advance(struct weir_times *tm, uint32_t scan, uint32_t part, int64_t time_max);
/* Upstream slot `from` has handed on everything up to stage_time. */
void weir_times_advance_up(struct weir_times *tm, uint32_t branch, uint32_t from, int64_t stage_time, bool out);
/* What a repartition topic says of an upstream slot besides its time. */
enum { WEIR_UPSTREAM_OUT = 1 /* idle or at its bound */, WEIR_UPSTREAM_BOUND = 2 };
/* A repartition topic's partition `part`: upstream slot `from` has handed on everything up to time. Returns the time of
 * the partition now: the minimum over upstream slots that count (WEIR_TIME_UNSET while one of them has said nothing),
 * the largest of all when none does: then the partition is out of the minimum itself. Once every slot is at its bound
 * the partition is. Cost: O(1), O(upstream slots)
 * when the minimum or a flag moves. */
int64_t weir_times_upstream(struct weir_times *tm, uint32_t part, uint32_t from, int64_t time, uint32_t flags);
void weir_times_event(struct weir_times *tm, uint32_t part, enum weir_event event);
/* Moves every partition that has a time on by ms: all are idle and the wall clock goes on. */
void weir_times_advance_by(struct weir_times *tm, int64_t ms);
/* Moves every partition to at least ms (the test driver). */
void weir_times_advance_all(struct weir_times *tm, int64_t ms);
/* Brings the stage's task times up to its inputs. At order points, before it closes anything. */
void weir_times_refresh(struct weir_times *tm, uint32_t stage);
/* Task time of a slot; at least `time` from now on (end of input: the end of what was closed, plus grace). */
int64_t weir_times_task(const struct weir_times *tm, uint32_t stage, uint32_t slot);
void weir_times_raise(struct weir_times *tm, uint32_t stage, uint32_t slot, int64_t time);
int64_t weir_times_part(const struct weir_times *tm, uint32_t part);
/* The time of a source partition or of an upstream slot, and whether it is out of the minimum. */
int64_t weir_times_source(const struct weir_times *tm, uint32_t part, bool *out);
int64_t weir_times_up(const struct weir_times *tm, uint32_t branch, uint32_t from, bool *out);
/* WEIR_UPSTREAM_* of a source partition. */
uint32_t weir_times_part_flags(const struct weir_times *tm, uint32_t part);
/* Whether everything that feeds a direct slot is at its bound (*bound) or out of the minimum (result). */
bool weir_times_slot_out(const struct weir_times *tm, uint32_t stage, uint32_t slot, bool *bound);

#endif
