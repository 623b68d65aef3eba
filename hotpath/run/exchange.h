/* exchange.h: the bytes of a repartition topic and the times they carry. Every row has a head before its packed
 * columns:
 *
 *   row   upstream slot:le32  its time as of the row:le64  event time:le64  the columns (format packed)
 *   time  0xffffffff:le32  count:le32  { upstream slot:le32  time:le64  flags:u8 }
 *
 * The highest bit of a row's upstream slot says that the row leaves the table it is of (a delete; what a row was, taken
 * out of an aggregate). A time record stands in every partition behind the rows of an order
 * point at which some source partition's time had moved (a stage's slot: of an epoch). @thread worker (reading), worker
 * or snap (writing) */
#ifndef WEIR_RUN_EXCHANGE_H
#define WEIR_RUN_EXCHANGE_H

#include "hotpath/run/clock.h"
#include "hotpath/run/run.h"

enum { WEIR_EXCHANGE_HEAD = 20, WEIR_EXCHANGE_TIME_BYTES = 13 };

void weir_exchange_head(struct weir_buf *out, uint32_t upstream, int64_t time, int64_t event_time, bool leaves);
/* Begins a time record; then one _put for each upstream slot. Returns where the count stands, for _put. */
void weir_exchange_time_begin(struct weir_buf *out);
void weir_exchange_time_put(struct weir_buf *out, uint32_t upstream, int64_t time, uint32_t flags);

/* Before decoding fr (a batch of a repartition topic): takes the heads off, applies time records and leaves them out of
 * fr->sel, and notes the partition's time as of each row and whether it leaves. What is none of ours is left to the
 * decoder to refuse. */
void weir_exchange_unwrap(struct weir_fragment *fr, struct weir_times *tm);
/* After decoding: rows are judged by the upstream slots' times, not by their own. */
void weir_exchange_times(struct weir_fragment *fr);

#endif
