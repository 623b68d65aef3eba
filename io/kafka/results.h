/* results.h: the plain idempotent producer, for results that do not travel in a transaction. Until acknowledged, a
 * record lives in librdkafka alone; when a handle breaks, its records come back by their delivery reports and go, in
 * their order, through the next handle: readers may see some twice, none is lost and no older one follows a newer one.
 * Included inside io/kafka/ (and tests) only. @thread snap, init */
#ifndef WEIR_IO_KAFKA_RESULTS_H
#define WEIR_IO_KAFKA_RESULTS_H

#include "io/kafka/client.h"
#include "io/kafka/frames.h"

struct weir_results_conf {
	const struct weir_conf *cf;
	const struct weir_kafka_log *log;
	bool once; /* at most once: a record that was not acknowledged in message.timeout.ms is given up, never sent
		      again; else it is tried for as long as it takes */
	const _Atomic bool *stop;
};
struct weir_results;
WEIR_MUST_CHECK enum weir_err weir_results_create(struct weir_results **out, const struct weir_results_conf *conf,
						  struct weir_diag **dg);
void weir_results_destroy(struct weir_results *rs); /* drops what is not acknowledged. NULL is fine */
WEIR_MUST_CHECK enum weir_err weir_results_topic(struct weir_results *rs, uint32_t number, const char *name,
						 const char *compression, struct weir_diag **dg);
/* Before the first record: batches are no larger than this. */
WEIR_MUST_CHECK enum weir_err weir_results_limit(struct weir_results *rs, int64_t batch_bytes, struct weir_diag **dg);
/* copy false: r's bytes stay where they are until settled. Blocks while the queue is full. */
WEIR_MUST_CHECK enum weir_err weir_results_put(struct weir_results *rs, uint32_t topic, uint32_t partition,
					       const struct weir_out *r, bool copy, struct weir_diag **dg);
/* Serves delivery reports; replaces a broken handle. An error: a record was refused for good. */
WEIR_MUST_CHECK enum weir_err weir_results_poll(struct weir_results *rs, struct weir_diag **dg);
/* Returns when everything is acknowledged (once: or given up). Says every 10 s what it waits for. WEIR_E_STOPPED: stop
 * is set and nothing moves, or wait_ms (-1: no bound) are over. */
WEIR_MUST_CHECK enum weir_err weir_results_settle(struct weir_results *rs, int64_t wait_ms, struct weir_diag **dg);
/* Forgets what is not acknowledged. */
WEIR_MUST_CHECK enum weir_err weir_results_drop(struct weir_results *rs, struct weir_diag **dg);
uint64_t weir_results_given_up(const struct weir_results *rs);

#endif
