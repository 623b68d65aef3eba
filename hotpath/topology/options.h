/* options.h: what WITH (...) and the option strings of weir.h say about a table: one list of names for SQL and C,
 * checked once. Pure text to struct; nothing is opened. Cold path, @thread init. */
#ifndef WEIR_TOPOLOGY_OPTIONS_H
#define WEIR_TOPOLOGY_OPTIONS_H

#include "hotpath/core/diag.h"
#include "hotpath/core/mem.h"
#include "hotpath/format/format.h"

enum weir_connector {
	WEIR_CONNECTOR_NONE,
	WEIR_CONNECTOR_RECORDED,
	WEIR_CONNECTOR_KAFKA,
	WEIR_CONNECTOR_UPSERT_KAFKA,
	WEIR_CONNECTOR_DATAGEN,
	WEIR_CONNECTOR_PRINT,
	WEIR_CONNECTOR_BLACKHOLE,
	WEIR_CONNECTOR_FILESYSTEM
};

/* end.of.input of one source; DEFAULT: the job's. */
enum weir_end_of_input { WEIR_END_DEFAULT, WEIR_END_CLOSE, WEIR_END_KEEP };

enum weir_error_policy { WEIR_ERRORS_DEFAULT, WEIR_ERRORS_FAIL, WEIR_ERRORS_SKIP, WEIR_ERRORS_DEAD_LETTER };

/* One name = value as written, for connectors with open-ended names (datagen fields.*, properties.*). */
struct weir_option {
	const char *name;
	const char *value;
};

struct weir_table_options {
	enum weir_connector connector;
	const char *path;  /* recorded, filesystem */
	const char *topic; /* one, or several separated by ';' (sources) */
	const char *topic_pattern;
	const char *group_id; /* properties.group.id */
	const char *bootstrap_servers;
	struct weir_format_options value_format;
	struct weir_format_options key_format;
	bool has_value_format;
	bool has_key_format;
	const char *key_fields; /* names separated by ';' */
	const char *key_fields_prefix;
	bool global; /* a table that is loaded before anything else is read, and whose time holds nothing back */
	bool value_except_key; /* value.fields-include = EXCEPT_KEY */
	const char *scan_startup_mode;
	const char *scan_startup_timestamp;
	const char *scan_startup_offsets;
	const char *scan_bounded_mode;
	const char *scan_bounded_timestamp;
	const char *scan_bounded_offsets;
	const char *scan_damaged;     /* stop | skip */
	const char *scan_end_of_file; /* wait | abort */
	const char *isolation_level;  /* properties.isolation.level */
	int32_t sink_partitions;      /* 0: default */
	const char *sink_compression;
	const char *sink_partitioner;
	const char *sink_delivery_guarantee;
	const char *sink_transactional_id_prefix;
	enum weir_error_policy errors_policy;
	const char *dead_letter_topic;
	const char *late_topic;
	enum weir_end_of_input end_of_input;
	const char *print_identifier;
	bool print_standard_error;       /* print: standard-error = true */
	int64_t datagen_rows;            /* number-of-rows, -1: unbounded */
	int64_t datagen_rate;            /* rows-per-second, 0: as fast as possible, -1: not given (io/datagen.h) */
	uint64_t datagen_seed;           /* seed: equal seeds give equal rows */
	const struct weir_option *other; /* datagen fields.*, properties.* not named above */
	uint32_t other_count;
};

/* Fills *out from names and values (lifetime: m's). Every name is checked against the connector's list and values are
 * parsed; an error names the option, what it takes, and the nearest name. *bad (may be NULL) is the index of the option
 * at fault, or UINT32_MAX, so that SQL can point at it. */
WEIR_MUST_CHECK enum weir_err weir_table_options_parse(struct weir_table_options *out,
						       const struct weir_option *options, uint32_t count,
						       struct weir_mem *m, uint32_t *bad, struct weir_diag **dg);
/* Why an option that is taken, so that a Flink file runs unchanged, has no effect here; NULL: it has one. */
const char *weir_table_option_idle(const struct weir_option *o);
/* Whether the table can be used as a source (sink false) or as a sink: print and blackhole are sinks only, datagen and
 * filesystem sources only, a list of topics or a pattern can only be read. table names it in the error. */
WEIR_MUST_CHECK enum weir_err weir_table_options_check_use(const struct weir_table_options *o, bool sink,
							   const char *table, struct weir_diag **dg);
/* "topic=order.placed format=json x='a b'" split into names and values. */
WEIR_MUST_CHECK enum weir_err weir_option_string_split(const char *text, struct weir_mem *m, struct weir_option **out,
						       uint32_t *count, struct weir_diag **dg);
const char *weir_connector_name(enum weir_connector c);
/* What to write instead of a property that only Java clients know (sasl.jaas.config, key.serializer, ...), or NULL.
 * name has no properties. prefix. Shared with the configuration (io/conf.c). */
const char *weir_java_property_hint(const char *name);
/* Value text of options and properties: whole text, decimal, no spaces; false when it is no number or out of range. */
bool weir_text_to_i64(const char *s, int64_t *out);
/* true|false in any case. */
bool weir_text_to_bool(const char *s, bool *out);

#endif
