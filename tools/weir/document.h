/* document.h: JSON documents that keep their text: every value knows the bytes it was written as, so that decimals and
 * large integers of a test file reach the engine, and are compared, digit by digit. For test files: cold, one thread.
 */
#ifndef WEIR_TOOLS_WEIR_DOCUMENT_H
#define WEIR_TOOLS_WEIR_DOCUMENT_H

#include "hotpath/core/base.h"
#include "hotpath/core/diag.h"
#include "hotpath/core/mem.h"

enum weir_node_kind {
	WEIR_NODE_NULL,
	WEIR_NODE_FALSE,
	WEIR_NODE_TRUE,
	WEIR_NODE_NUMBER,
	WEIR_NODE_STRING,
	WEIR_NODE_ARRAY,
	WEIR_NODE_OBJECT
};
struct weir_node {
	enum weir_node_kind kind;
	const char *text; /* as written, in the parsed text; quotes and brackets included */
	size_t bytes;
	const char *string; /* STRING: unescaped and terminated; the node's memory */
	size_t string_bytes;
	const char *name;        /* of the member that holds this value, NULL in an array; unescaped, terminated */
	struct weir_node *first; /* ARRAY, OBJECT */
	struct weir_node *next;
	uint32_t count;
};

/* Parses one document; nodes live in mem and point into text. file names it in the error, NULL: `JSON`. */
WEIR_MUST_CHECK enum weir_err weir_document_parse(struct weir_node **out, struct weir_mem *mem, const char *file,
						  const char *text, size_t bytes, struct weir_diag **dg);
/* The member called name, NULL if there is none (or nd is no object, or NULL). The last of several. */
struct weir_node *weir_node_get(const struct weir_node *nd, const char *name);
/* An integer; false where nd is none. */
bool weir_node_int(const struct weir_node *nd, int64_t *out);

enum {
	WEIR_EQUAL_ANY_CASE = 1,    /* member names match in upper case, too */
	WEIR_EQUAL_NULL_ABSENT = 2, /* a member that is null may be missing on the other side */
};
/* Whether two values mean the same: members in any order, numbers digit by digit (1.50 equals 1.5) or within 1e-6. */
bool weir_node_equal(const struct weir_node *expected, const struct weir_node *actual, unsigned flags);

#endif
