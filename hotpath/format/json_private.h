/* json_private.h: what the files of the JSON projection decoder share; nobody else includes it.
 *
 *   json.c           create, dispatch to a variant, what happens to a bad row
 *   json_tree.c      the fields' paths as one tree; which of its nodes a document filled
 *   json_value.c     a checked token to a typed column value
 *   json_layout.c    learning the layout of a document for speculation
 *   json_parse.h     the general parser     \  compiled once per instruction set by
 *   json_fast.h      the speculative parser /  json_{scalar,sse42,avx2,avx512,neon}.c
 *
 * One document, one pass. The general parser checks all of RFC 8259, and notes for every node of the tree where its
 * value stands. Only when the document has proved well-formed are the noted values converted, so that the last of
 * duplicate members wins and a malformed document is refused as such. The speculative parser expects a *layout*: the
 * document as a chain of fixed bytes (names, punctuation, white space, as they stood in an earlier record) with a value
 * of a known sort between them. Comparing the fixed bytes and checking the values proves the document as well-formed as
 * the one that was learned from; anything unexpected sends the record to the general parser.
 *
 * Everything here is @thread worker once created: a decoder belongs to one worker at a time. */
#ifndef WEIR_FORMAT_JSON_PRIVATE_H
#define WEIR_FORMAT_JSON_PRIVATE_H

#include "hotpath/format/format.h"

#define WEIR_JSON_DEPTH_MAX   128         /* json.depth.max */
#define WEIR_JSON_RECORD_MAX  (16u << 20) /* record.bytes.max */
#define WEIR_JSON_NONE        UINT32_MAX
#define WEIR_JSON_LAYOUTS     8   /* layouts remembered at a time: optional members make several */
#define WEIR_JSON_STEPS       128 /* steps of one layout; a longer document is always parsed generally */
#define WEIR_JSON_VALUES      96  /* values of one learnable document */
#define WEIR_JSON_FIXED_BYTES 32  /* fixed bytes of one step */

enum weir_json_kind {
	WEIR_JSON_ABSENT,
	WEIR_JSON_NULL,
	WEIR_JSON_TRUE,
	WEIR_JSON_FALSE,
	WEIR_JSON_NUMBER,
	WEIR_JSON_STRING,         /* start and end exclude the quotes */
	WEIR_JSON_STRING_ESCAPED, /* the same, with at least one backslash */
	WEIR_JSON_OBJECT,         /* start and end include the brackets */
	WEIR_JSON_ARRAY
};

/* A place in the document that a field's path reaches or passes through. */
struct weir_json_node {
	struct weir_json_node *parent;
	const uint8_t *name; /* NULL: an array element; readable 8 bytes beyond its end */
	uint64_t name_head;  /* its first eight bytes, zero behind its end */
	uint32_t name_bytes;
	uint32_t index;          /* of an array element */
	uint32_t first_field;    /* fields that want this value, chained by next_field; WEIR_JSON_NONE: none */
	uint32_t member_count;   /* children by name: members[], in order of the fields */
	uint32_t element_count;  /* children by index: elements[], ascending */
	uint64_t member_lengths; /* bit length % 64 of each member's name */
	struct weir_json_node *members;
	struct weir_json_node *elements;
	uint16_t *member_slots; /* hash of members, for nodes with many; NULL: searched one by one */
	uint32_t member_slots_mask;
	/* Of the record with this generation: */
	uint64_t generation;
	enum weir_json_kind kind;
	uint32_t start, end;
};

/* Sixteen right-aligned characters to a number: weights of neighbouring digits, pairs and fours, and of the upper half.
 * A column's decimal point stands at one place among them, where the weight is 0. */
struct weir_json_weights {
	_Alignas(16) int8_t tens[16];
	int16_t hundreds[8];
	int16_t thousands[8];
	uint64_t upper;
};

struct weir_json_field {
	const char *name;
	struct weir_type type;
	enum weir_phys phys;
	struct weir_json_node *node;
	uint32_t next_field;      /* the next field of the same node */
	int64_t int_min, int_max; /* integers */
	/* DECIMAL in 64 bits whose digits, with a point, may fit 16 characters; else weights is NULL: */
	uint64_t whole_digits_max; /* digits before the point */
	uint64_t scale_and_point;  /* characters of the point and the digits behind it */
	const struct weir_json_weights *weights;
};

/* What a step of a layout expects behind its fixed bytes. */
enum weir_json_step_op {
	WEIR_JSON_STEP_FIXED, /* more fixed bytes */
	WEIR_JSON_STEP_SKIP_STRING,
	WEIR_JSON_STEP_STRING,  /* to a STRING column as it stands */
	WEIR_JSON_STEP_INTEGER, /* to a column that takes every int64 */
	WEIR_JSON_STEP_SMALL,   /* to an integer column of a smaller range */
	WEIR_JSON_STEP_DECIMAL, /* to a DECIMAL column of 64 bits */
	WEIR_JSON_STEP_SKIP_NUMBER,
	WEIR_JSON_STEP_LITERAL,   /* true, false or null, skipped or to a BOOLEAN column */
	WEIR_JSON_STEP_ANY,       /* any scalar, by way of weir_json_convert */
	WEIR_JSON_STEP_CONTAINER, /* an object or array as a whole, skipped or converted */
	WEIR_JSON_STEP_END
};

struct weir_json_step {
	_Alignas(32) uint8_t fixed[WEIR_JSON_FIXED_BYTES]; /* zero behind fixed_bytes */
	uint8_t mask[WEIR_JSON_FIXED_BYTES];               /* 0xff where fixed counts */
	uint64_t fixed_bytes;
	const void *code;                /* of op, in the variant's decode_run; set by weir_json_bind */
	void *dest;                      /* the column's data; set by weir_json_bind */
	const struct weir_json_field *f; /* NULL: skipped */
	/* The value's length is foretold, so that where the next step stands does not wait for this one's bytes. In the
	 * variant's mask of a block, the value's bytes are `below`, the one behind it is `stop`, both together `upto`.
	 */
	uint64_t length, upto, stop, below;
	enum weir_json_step_op op;
	uint32_t depth;        /* open containers around the value */
	uint64_t other_length; /* a length that has come instead, */
	uint32_t other_count;  /* and how much more often than others */
	uint32_t missed;       /* rows of another length */
	bool foretell;
	uint64_t row_clock; /* of the last look at missed */
};

struct weir_json_layout {
	uint32_t step_count; /* 0: unused */
	uint32_t null_count; /* fields that this layout leaves NULL */
	uint32_t *null_fields;
	uint64_t used_at;    /* row clock of the last use, to replace the oldest */
	uint64_t bound_call; /* js->call that the steps' code and dest are of */
	struct weir_json_step *steps;
};

/* One value as the general parser met it, to learn a layout from. */
struct weir_json_value {
	uint32_t start, end; /* as in the node: strings without quotes */
	enum weir_json_kind kind;
	uint32_t depth;
	const struct weir_json_node *node; /* NULL: nobody wants it */
};

struct weir_json_frame {
	struct weir_json_node *node; /* NULL: nothing below is wanted */
	uint32_t next;               /* object: member expected next; array: position in node->elements */
	uint32_t index;              /* array: index of the current element */
	uint32_t start;              /* offset of the bracket */
	bool is_array;
	bool holds; /* began a value that is learned as a whole */
};

struct weir_json;
typedef void weir_json_decode_fn(struct weir_json *js, const struct weir_record *records, struct weir_sel *sel);

struct weir_json_variant {
	const char *name;
	bool (*available)(void);
	weir_json_decode_fn *decode;
};

struct weir_json {
	struct weir_decoder base; /* first: the interface */
	const struct weir_json_variant *variant;
	struct weir_json_field *fields;
	uint32_t field_count;
	uint32_t depth_max;
	uint32_t record_bytes_max;
	bool ignore_parse_errors;
	bool fail_on_missing;
	bool on_key;
	int64_t unit_per_second;
	struct weir_json_node root;
	struct weir_json_frame *stack; /* depth_max + 1 frames */
	uint8_t *name_buf;             /* a member name without its escapes */
	uint32_t name_bytes_max;       /* of the tree's names */

	/* Of the call: */
	struct weir_col *cols;
	uint64_t call; /* counts them */
	struct weir_scratch *scratch;
	struct weir_row_errors *errors;

	/* Of the record: */
	const uint8_t *doc;
	const uint8_t *end;
	uint32_t row;
	uint64_t generation;
	bool duplicate; /* a wanted member came twice: not learned from */
	enum weir_reason error_reason;
	uint32_t error_at;
	const char *error_field;
	const char *error_detail;

	/* Speculation. row_clock counts rows over the decoder's life. */
	bool speculate;
	bool noting;      /* the general parser notes values to learn from */
	uint32_t current; /* layout tried first */
	uint64_t row_clock;
	uint64_t missed_at;
	uint64_t paused_until;
	struct weir_json_step *step;        /* of fast_mend */
	uint32_t misses_close;              /* misses in close succession */
	uint32_t value_count;               /* > WEIR_JSON_VALUES: too many to learn */
	uint64_t fast_count, general_count; /* rows by way, for tests and statistics */
	struct weir_json_layout layouts[WEIR_JSON_LAYOUTS];
	struct weir_json_value values[WEIR_JSON_VALUES];
	struct weir_mem mem;
};

/* Notes the error of the current record and returns false. */
WEIR_COLD bool weir_json_refuse(struct weir_json *js, enum weir_reason reason, const uint8_t *at, const char *field,
				const char *detail);

/* json.c: what a row becomes that has no payload, or whose record is refused (js->error_*). */
void weir_json_row_null(struct weir_json *js, uint32_t row);
void weir_json_row_bad(struct weir_json *js, uint32_t row);
/* Takes back the nulls of a row that was begun and is decoded again. */
void weir_json_row_reset(struct weir_json *js, uint32_t row);
/* Whether the payload may be parsed at all: bounds, framing. */
bool weir_json_admit(struct weir_json *js, const uint8_t *value, uint32_t bytes);
/* Each only where the architecture has it; json.c lists them, best first. */
extern const struct weir_json_variant weir_json_scalar, weir_json_sse42, weir_json_avx2, weir_json_avx512,
	weir_json_neon;
/* For tests and benchmarks: decodes by this variant ("scalar", "avx2", ...; NULL: the best) from now on, with
 * or without speculation. False where the build or the machine has no such variant. */
bool weir_json_force(struct weir_decoder *d, const char *variant, bool speculate);
/* Rows decoded by each way so far. */
void weir_json_counts(const struct weir_decoder *d, uint64_t *fast, uint64_t *general);

/* json_tree.c */
enum weir_err weir_json_tree_build(struct weir_json *js, const struct weir_field *fields, struct weir_diag **dg);
/* The child of node for this member name as it stands between its quotes, or NULL. *next: where to look first.
 */
struct weir_json_node *weir_json_member(struct weir_json *js, const struct weir_json_node *node, const uint8_t *name,
					uint32_t bytes, bool escaped, uint32_t *next);
/* node got a second value: forgets what was noted below it. */
WEIR_COLD void weir_json_forget(struct weir_json *js, struct weir_json_node *node);
/* After a well-formed document: converts every field. False: refused. */
bool weir_json_finish(struct weir_json *js, uint32_t row);

/* json_value.c */
/* Converts one checked token into row of field's column. False: refused with reason, offset and field. */
bool weir_json_convert(struct weir_json *js, const struct weir_json_field *f, enum weir_json_kind kind,
		       const uint8_t *s, const uint8_t *e, uint32_t row);
/* JSON null or a member that is not there. */
bool weir_json_convert_null(struct weir_json *js, const struct weir_json_field *f, const uint8_t *at, uint32_t row);
/* Takes the escapes out of a checked string; out has room for e - s bytes. Returns the bytes written. */
size_t weir_json_unescape(const uint8_t *s, const uint8_t *e, uint8_t *out);
/* The checked escape at s (a backslash): its end, or NULL with the error noted. @thread worker */
const uint8_t *weir_json_escape_end(struct weir_json *js, const uint8_t *s);
/* The end of the run of multi-byte UTF-8 sequences at s, or NULL with the error noted. */
const uint8_t *weir_json_utf8_end(struct weir_json *js, const uint8_t *s);

/* json_layout.c: learns from the record that the general parser has just accepted. */
void weir_json_layouts_init(struct weir_json *js);
/* Sets the steps' code (by enum weir_json_step_op) and columns for this call. code_foretold: for values of a foretold
 * length, NULL where there is none; strings shorter than block_bytes can be. */
void weir_json_bind(struct weir_json *js, struct weir_json_layout *l, const void *const *code,
		    const void *const *code_foretold, uint32_t block_bytes);
/* A value was not of the foretold length but of this. */
WEIR_COLD void weir_json_step_missed(struct weir_json_step *s, uint64_t length);
void weir_json_learn(struct weir_json *js);
/* Whether to learn from the record that no layout fitted; counts it as a miss and pauses when nearly all miss.
 */
bool weir_json_miss(struct weir_json *js);

/* A value of the current record for node, at [start, end). */
WEIR_INLINE void weir_json_note(struct weir_json *js, struct weir_json_node *node, enum weir_json_kind kind,
				const uint8_t *start, const uint8_t *end)
{
	if (WEIR_UNLIKELY(node->generation == js->generation))
		weir_json_forget(js, node);
	node->generation = js->generation;
	node->kind = kind;
	node->start = (uint32_t)(start - js->doc);
	node->end = (uint32_t)(end - js->doc);
}

#endif
