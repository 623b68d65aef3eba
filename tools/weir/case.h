/* case.h: one test of `weir test`: what goes in, what must come out. Built from JSON by case.c, run by test.c on the
 * library's test driver. Main thread. */
#ifndef WEIR_TOOLS_WEIR_CASE_H
#define WEIR_TOOLS_WEIR_CASE_H

#include "tools/weir/document.h"
#include "tools/weir/shape.h"

enum weir_case_order { WEIR_ORDER_PER_KEY, WEIR_ORDER_STRICT, WEIR_ORDER_ANY };

/* One record as the file has it. Members that are absent are NULL. */
struct weir_case_record {
	const char *topic;
	const struct weir_node *key;
	const struct weir_node *value;
	const struct weir_node *headers; /* [{"KEY", "VALUE" in base64}], or {name: text} */
	const struct weir_node *window;  /* {"start", "end", "type": "time" | "session"}: part of the key */
	int64_t timestamp;
	bool has_timestamp;
};
struct weir_case {
	const char *name;
	struct weir_case_record *input;
	uint32_t input_count;
	struct weir_case_record *output;
	uint32_t output_count;
	enum weir_case_order order;
	int64_t advance_to;
	bool has_advance;
	int64_t late;     /* -1: not compared */
	int64_t rejected; /* -1: not compared */
	bool has_outputs; /* "outputs" is there, though maybe empty */
	bool ksql;        /* the three-file form */
};
/* All tests of one pair of files. */
struct weir_suite {
	const char *file;
	struct weir_case *test;
	uint32_t count;
	const char **
		topic; /* every topic that some test expects records in; where none expects any, all that are written */
	uint32_t topic_count;
	const struct weir_shape *shape; /* of the tables' topics, once the statements are compiled */
	uint32_t shape_count;
};

/* Reads `{"tests": [...]}`, or a bare `{"inputs", "outputs"}`, from the parsed document. */
WEIR_MUST_CHECK enum weir_err weir_suite_load(struct weir_suite *su, struct weir_mem *mem, const char *file,
					      const struct weir_node *root, struct weir_diag **dg);
/* ksqlDB's test-runner form: inputs from one document, outputs from another. */
WEIR_MUST_CHECK enum weir_err weir_suite_load_ksql(struct weir_suite *su, struct weir_mem *mem, const char *file,
						   const struct weir_node *inputs, const struct weir_node *outputs,
						   struct weir_diag **dg);
/* Once su->shape is known: where tests say what comes out (or with update are to say it), and none that anything does,
 * every topic is watched. */
void weir_suite_watch(struct weir_suite *su, struct weir_mem *mem, bool update);
/* The bytes that stand for a key or value in the log: a string is its characters, anything else its JSON text without
 * space between tokens; null and absent: a Kafka null. */
struct weir_slice weir_case_bytes(struct weir_mem *mem, const struct weir_node *nd);
/* The same for the key or value of an input: a number is as its table's format raw or kafka has it. */
struct weir_slice weir_case_input_bytes(const struct weir_suite *su, struct weir_mem *mem, const char *topic, bool key,
					const struct weir_node *nd);
/* Kafka's header bytes of a record's headers, in order; *count of them. */
WEIR_MUST_CHECK enum weir_err weir_case_headers(struct weir_mem *mem, const struct weir_node *headers,
						struct weir_slice *out, uint32_t *count, struct weir_diag **dg);

/* Bytes as a JSON string, and header bytes as {name: text}: how a test file would write them. */
void weir_case_put_string(struct weir_buf *b, struct weir_slice s);
void weir_case_put_headers(struct weir_buf *b, struct weir_slice headers, uint32_t count);

/* What came out. Copies in the suite's memory. */
struct weir_case_result {
	const char *topic;
	struct weir_slice key;
	struct weir_slice value;
	int64_t timestamp;
	struct weir_slice headers;
	uint32_t header_count;
	bool matched;
};
/* Compares; differences go into text, one line each. True: none. */
bool weir_case_compare(const struct weir_case *tc, struct weir_mem *mem, const struct weir_suite *su,
		       struct weir_case_result *result, uint32_t count, struct weir_buf *text);

#endif
