/* weir_engine.h: configure an engine, run a topology, read its counters; the test driver. Public, installed as
 * <weir/weir_engine.h>.
 *
 * Threads: conf and engine handles belong to one thread (@thread init) except where a function says otherwise. */
#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

#include "weir/weir_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_topology;
struct weir_conf;
struct weir_engine;

/* ---- configuration: strings, one table of names (weir_conf_describe enumerates it) ---- */

/* Every property at its default. NULL only when there is no memory. */
WEIR_API struct weir_conf *weir_conf_create(void);
/* NULL is fine. Not after it was given to weir_engine_create. */
WEIR_API void weir_conf_destroy(struct weir_conf *cf);

/* Where a value came from, weakest first: a stronger origin is never overwritten by a weaker one. */
enum weir_origin {
	WEIR_ORIGIN_DEFAULT,
	WEIR_ORIGIN_FILE, /* a configuration file, or SET in SQL */
	WEIR_ORIGIN_ENV,
	WEIR_ORIGIN_PROPERTY, /* -X, or the program */
	WEIR_ORIGIN_FLAG
};
/* Sets a property from text ("5m", "64MiB", "true"). WEIR_E_CONF names the property, what it takes and the nearest
 * name. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_conf_set(struct weir_conf *cf, const char *name, const char *value,
						     struct weir_diag **out);
/* The same with its origin; place (may be NULL) is shown by weir_conf_dump ("weir.conf:3"). */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_conf_set_from(struct weir_conf *cf, const char *name, const char *value,
							  enum weir_origin origin, const char *place,
							  struct weir_diag **out);
/* Reads `name = value` lines (# comments), as kcat's and librdkafka's files. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_conf_load(struct weir_conf *cf, const char *path, struct weir_diag **out);
/* Current text of a property (its default if not set), NULL if there is no such name. Borrowed until the next set. */
WEIR_API const char *weir_conf_get(const struct weir_conf *cf, const char *name);
/* Whether a value other than the default was given. */
WEIR_API int weir_conf_is_set(const struct weir_conf *cf, const char *name);
/* Property number i: 1 and its texts, or 0 beyond the last. Static storage. Any out pointer may be NULL. */
WEIR_API int weir_conf_describe(unsigned i, const char **name, const char **default_value, const char **range,
				const char **doc);
/* `name = value  # origin` lines of the effective configuration, secrets as ****. Give back with weir_free. */
WEIR_API char *weir_conf_dump(const struct weir_conf *cf);

/* ---- engine ---- */

/* Plans tp and opens sources, sinks and state; starts no thread. Takes tp and cf whether it succeeds or not. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_engine_create(struct weir_engine **out, struct weir_topology *tp,
							  struct weir_conf *cf, struct weir_diag **diag);
/* Restores, runs until stopped or to the end of bounded input, commits, joins its threads. WEIR_OK after a clean stop.
 */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_engine_run(struct weir_engine *en, struct weir_diag **diag);
/* Asks run to finish: bounded input goes on to the next order point, live input makes one at once; then commit and
 * return. A second call skips the order point: what is not committed is given up. @thread any, async-signal-safe */
WEIR_API void weir_engine_stop(struct weir_engine *en);
/* Pauses or resumes reading: nothing more is taken from the inputs, what was taken is finished and committed, and a
 * member stays in its consumer group. @thread any, async-signal-safe */
WEIR_API void weir_engine_pause(struct weir_engine *en, int paused);
/* NULL is fine. Not while weir_engine_run is inside. */
WEIR_API void weir_engine_destroy(struct weir_engine *en);

/* Log lines (warnings, progress of restore, rate-limited record errors). level is syslog's: 3 error, 4 warning, 6 info.
 * The text has no newline. Default: nothing is printed. @thread any of the engine's */
WEIR_API void weir_engine_set_log(struct weir_engine *en, void (*log)(void *ctx, int level, const char *text),
				  void *ctx);
/* Where print sinks and bare SELECTs write; default: nothing. Calls come from one thread, whole lines. A nonzero return
 * (a closed pipe) ends the run as weir_engine_stop does. */
WEIR_API void weir_engine_set_output(struct weir_engine *en, int (*write)(void *ctx, const char *data, size_t bytes),
				     void *ctx);

/* What a run did so far. Counters of this run only, except where noted. */
struct weir_stats {
	uint64_t records_read;
	uint64_t bytes_read; /* uncompressed keys, values and headers */
	uint64_t records_applied;
	uint64_t records_late;
	uint64_t late_windows;
	uint64_t records_rejected;
	uint64_t records_filtered;
	uint64_t results_written;
	uint64_t windows_closed;
	uint64_t aggregate_errors;  /* results that did not fit their type: NULL */
	uint64_t times_implausible; /* event times that look like seconds, or micro- or nanoseconds, read as ms */
	uint64_t epochs_committed;
	uint64_t records_damaged; /* in stored batches that scan.damaged=skip passed over, by their headers */
	uint64_t records_total;   /* records of the bounded input that are to be read, 0 if unknown */
	uint64_t state_entries;
	uint64_t state_bytes;
	uint64_t memory_bytes;       /* state, in-flight and what workers hold besides: what memory.max bounds */
	uint64_t standby_partitions; /* changelog partitions of other members that are followed */
	uint64_t standby_behind;     /* offsets to their ends; UINT64_MAX: not known yet */
	uint64_t standby_records;    /* taken in so far */
	uint64_t standby_bytes;      /* of memory that they take */
	double seconds;              /* of wall clock since the first record */
	int resumed;                 /* 1: a marker was found; 2: and its input is wholly consumed */
};
/* @thread any: a snapshot that may be torn between fields while the engine runs */
WEIR_API void weir_engine_stats(const struct weir_engine *en, struct weir_stats *out);
/* The application id in force. Borrowed for the engine's life. */
WEIR_API const char *weir_engine_app(const struct weir_engine *en);
/* The plan as text, DOT or JSON, without opening anything: what `weir explain` prints. Give it back with weir_free; tp
 * and cf stay the caller's. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_engine_explain(struct weir_topology *tp, struct weir_conf *cf, int form,
							   char **out, struct weir_diag **diag);

/* ---- test driver: the whole engine on the caller's thread, virtual time, topics in memory ---- */

struct weir_driver;
/* Takes tp and cf whether it succeeds or not. Every table's topic is a virtual one of one partition. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_driver_create(struct weir_driver **out, struct weir_topology *tp,
							  struct weir_conf *cf, struct weir_diag **diag);
/* One record; key and value data NULL: a Kafka null. Its results can be popped at once. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_driver_push(struct weir_driver *dr, const char *topic,
							struct weir_slice key, struct weir_slice value,
							int64_t timestamp_ms, struct weir_diag **diag);
/* Moves the wall clock and every partition's time to at least ms. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_driver_advance(struct weir_driver *dr, int64_t ms, struct weir_diag **diag);
/* Ends the input: windows close unless end.of.input=keep. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_driver_end(struct weir_driver *dr, struct weir_diag **diag);
struct weir_driver_record {
	struct weir_slice key; /* data NULL: null. Valid until the next call on dr */
	struct weir_slice value;
	int64_t timestamp_ms;
	const void *headers; /* Kafka's record header bytes, header_count of them */
	size_t headers_bytes;
	uint32_t header_count;
};
/* The same for a record with headers. Everything is copied. */
WEIR_API WEIR_MUST_CHECK enum weir_err weir_driver_push_record(struct weir_driver *dr, const char *topic,
							       const struct weir_driver_record *record,
							       struct weir_diag **diag);
/* The next result of topic, in order: 1, or 0 when there is none. */
WEIR_API int weir_driver_pop(struct weir_driver *dr, const char *topic, struct weir_driver_record *out);
/* The counters of a driver, as weir_engine_stats. */
WEIR_API void weir_driver_stats(const struct weir_driver *dr, struct weir_stats *out);
/* NULL is fine. */
WEIR_API void weir_driver_destroy(struct weir_driver *dr);

#ifdef __cplusplus
}
#endif
#endif
