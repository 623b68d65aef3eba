/* conf.h: the private side of the configuration: the checked struct that the engine reads, warnings, and the parsers of
 * durations, sizes and CPU lists. The public side is weir_conf_* in io/weir_engine.h. @thread init */
#ifndef WEIR_IO_CONF_H
#define WEIR_IO_CONF_H

#include <sched.h>

#include "hotpath/core/diag.h"
#include "hotpath/topology/options.h"
#include "io/weir_engine.h"

enum weir_guarantee { WEIR_AT_LEAST_ONCE, WEIR_EXACTLY_ONCE, WEIR_AT_MOST_ONCE };
enum weir_exchange_setting { WEIR_EXCHANGE_SETTING_AUTO, WEIR_EXCHANGE_SETTING_LOCAL, WEIR_EXCHANGE_SETTING_TOPIC };

/* Every property as a checked value. Texts are borrowed from the conf until its next set; NULL: not set. */
struct weir_settings {
	const char *application_id;
	const char *bootstrap_servers;
	const char *state_home;
	const char *state_dir;
	enum weir_guarantee guarantee;
	enum weir_exchange_setting exchange;
	uint64_t memory_max; /* bytes */
	uint32_t workers;
	bool worker_cpus_set;  /* worker.cpus was given */
	cpu_set_t worker_cpus; /* else the process's set */
	uint32_t cpu_count;    /* CPUs the process may use: pin when cpu_count >= workers + 2 */
	uint32_t slots;
	int64_t commit_records; /* 0: only at the end */
	int64_t commit_ms;
	int64_t emit_ms;
	int64_t idle_ms; /* 0: never idle */
	int64_t join_wait_ms;
	bool idle_advance_wall;
	bool task_time_max;
	bool end_of_input_keep;
	bool emit_coalesce;
	uint32_t aggregate_elements_max;
	int64_t state_ttl_ms; /* 0: none */
	bool allow_negative_time;
	int64_t time_future_max_ms; /* -1: off */
	uint64_t record_bytes_max;
	uint64_t batch_bytes_max;
	uint32_t json_depth_max;
	uint64_t sql_bytes_max;
	uint32_t sql_depth_max;
	enum weir_error_policy errors_policy;
	const char *dead_letter_topic;
	const char *late_topic;
	uint32_t epochs_in_flight;
	int64_t scan_rate; /* records a second, 0: no limit */
	bool topics_create;
	uint32_t standby_replicas;
	int64_t stop_wait_ms;   /* how long a stop waits for the last commit */
	int64_t broker_wait_ms; /* how long run waits for a first answer; 0: for ever */
	int64_t order_point_records;
	uint64_t order_point_bytes;
	uint32_t io_poll_records; /* 0: the log's own */
	bool rows_table;          /* bare SELECT: a table for a terminal, not JSON lines */
};

/* Reads every property into out; WEIR_E_CONF where values do not fit together or the machine. */
WEIR_MUST_CHECK enum weir_err weir_conf_settings(const struct weir_conf *cf, struct weir_settings *out,
						 struct weir_diag **dg);
/* What holds for one source: the job's properties, overridden by its WITH. */
struct weir_source_settings {
	enum weir_error_policy policy; /* FAIL, SKIP or DEAD_LETTER */
	const char *dead_letter_topic; /* NULL unless policy is DEAD_LETTER */
	const char *late_topic;        /* NULL: late records are only counted */
	bool end_of_input_keep;
};
WEIR_MUST_CHECK enum weir_err weir_settings_for_source(const struct weir_settings *st,
						       const struct weir_table_options *o, const char *table,
						       struct weir_source_settings *out, struct weir_diag **dg);
/* Appends why recorded input is committed less often than commit.interval.records says; false: it is not. */
bool weir_settings_commits_late(const struct weir_settings *st, struct weir_buf *out);
/* All that was set, without the warnings. The caller's. */
struct weir_conf *weir_conf_copy(const struct weir_conf *cf);
/* Settings that were accepted without effect ("table.exec.mini-batch.enabled has no effect"), for the log at start. */
uint32_t weir_conf_warning_count(const struct weir_conf *cf);
const char *weir_conf_warning(const struct weir_conf *cf, uint32_t i);
/* Property number i that was given for librdkafka, under librdkafka's own name (which may carry consumer. or
 * producer.); false beyond the last. Borrowed until the next set. */
bool weir_conf_kafka(const struct weir_conf *cf, uint32_t i, const char **name, const char **value);
/* The property that the environment variable WEIR_A_B sets, or NULL: WEIR_MEMORY_MAX is memory.max. */
const char *weir_conf_name_of_env(const char *env);
/* Passwords and keys: shown as ****. */
bool weir_conf_is_secret(const char *name);

/* "5m", "300s", "1h30m", "5 min", "PT5M", "P1DT2H", plain milliseconds. False when malformed, negative or too large. */
bool weir_duration_parse(const char *s, int64_t *ms);
/* "64MiB", "64mb", "1g", plain bytes; k, m, g and t are powers of 1024. */
bool weir_size_parse(const char *s, uint64_t *bytes);
/* "0-3,5". */
bool weir_cpus_parse(const char *s, cpu_set_t *out);
/* What the process may use: the smallest limit of its cgroup (v2, v1) and of the groups above it, and RAM. proc_cgroup
 * and sys_cgroup are the places to look ("/proc/self/cgroup", "/sys/fs/cgroup"). */
uint64_t weir_memory_limit(const char *proc_cgroup, const char *sys_cgroup);

#endif
