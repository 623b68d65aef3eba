/* transfer.h: what the verbs that move records from or to Kafka share: stop by signal, log lines, progress. Main
 * thread; log lines come from librdkafka's threads as well. */
#ifndef WEIR_TOOLS_WEIR_TRANSFER_H
#define WEIR_TOOLS_WEIR_TRANSFER_H

#include "io/kafka/kafka.h"
#include "io/recorded/recorded.h"
#include "tools/weir/job.h"

/* SIGTERM and SIGINT end the verb after what it is at; a second one ends the process. */
void weir_transfer_catch_signals(void);
bool weir_transfer_stopped(void);
/* What was noticed in a recorded source: files cut off, transactions without an end. To stderr. */
void weir_transfer_warnings(const struct weir_stream_log *sl);
/* Warnings, and with -v everything, as talk. jb has to outlive it. */
struct weir_kafka_log weir_transfer_log(const struct weir_job *jb);
int64_t weir_transfer_now_us(void); /* monotonic */

struct weir_progress {
	const char *name;
	uint64_t total; /* records; 0: not known */
	uint64_t records;
	uint64_t bytes;
	int64_t started_us;
	int64_t next_us;
	bool shown; /* stderr is a terminal */
};
void weir_progress_begin(struct weir_progress *pg, const char *name, uint64_t total);
/* Draws twice a second at most; cheap between. */
void weir_progress_step(struct weir_progress *pg);
/* Clears the line and says "NAME: N records, M MB in S s (R/s)" and, behind it, more. */
void weir_progress_end(struct weir_progress *pg, const char *more);

#endif
