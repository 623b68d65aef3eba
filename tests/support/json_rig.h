/* json_rig.h: a JSON decoder with its columns, fed with documents and read as text, for the tests of the decoder. Each
 * document lies in a buffer of its own with exactly the pad that decoders may read, filled with bytes that would look
 * good to a parser that runs on. @thread init */
#ifndef WEIR_TESTS_JSON_RIG_H
#define WEIR_TESTS_JSON_RIG_H

#include "hotpath/format/json_private.h"

enum { JSON_RIG_FIELDS_MAX = 64, JSON_RIG_TEXT_MAX = 2048 };

struct json_rig {
	struct weir_decoder *d;
	struct weir_field fields[JSON_RIG_FIELDS_MAX];
	struct weir_path_step steps[JSON_RIG_FIELDS_MAX][8];
	uint32_t field_count;
	struct weir_format_options options;
	struct weir_col cols[JSON_RIG_FIELDS_MAX];
	struct weir_scratch scratch;
	struct weir_sel sel;
	struct weir_row_errors errors;
	struct weir_record records[WEIR_BATCH_ROWS];
	uint8_t *payload[WEIR_BATCH_ROWS];
	uint32_t count;
	uint8_t pad_byte;
	uint32_t misalign;
};

/* Zeroes the rig; then set options, add fields, and open it. */
void json_rig_init(struct json_rig *rig);
/* path: member names joined by '/', a step of digits only is an array index; NULL: the name. */
struct weir_type *json_rig_field(struct json_rig *rig, const char *name, const char *path, enum weir_kind kind);
/* False: the machine has no such variant. Call again to start afresh with another variant. */
bool json_rig_open(struct json_rig *rig, const char *variant, bool speculate);
void json_rig_fini(struct json_rig *rig);

/* Adds a document to the batch; json_rig_run decodes all of them and forgets them at the next add. */
void json_rig_add(struct json_rig *rig, const void *doc, size_t bytes);
void json_rig_add_null(struct json_rig *rig);
void json_rig_run(struct json_rig *rig);
/* Decodes the documents of another rig, which keeps them. */
void json_rig_run_shared(struct json_rig *rig, const struct json_rig *from);
/* Whether row came to the same in both, which have the same fields. */
bool json_rig_equal(struct json_rig *a, struct json_rig *b, uint32_t row);
/* What became of row: "a|NULL|3.5" or "!json at 7 field: why" in a static buffer (one per call of up to four). */
const char *json_rig_text(struct json_rig *rig, uint32_t row);
/* One document alone, decoded and read. */
const char *json_rig_one(struct json_rig *rig, const void *doc, size_t bytes);
/* Reason of row, WEIR_REASON_NONE if it was accepted. */
enum weir_reason json_rig_reason(struct json_rig *rig, uint32_t row);

/* Names of all variants, ended by NULL; those the machine lacks included. */
extern const char *const json_rig_variants[];

#endif
