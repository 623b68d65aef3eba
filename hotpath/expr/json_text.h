/* json_text.h: walking JSON text without building anything: check, skip, find a path, take a scalar. For JSON_VALUE and
 * for reading ARRAY, MAP and ROW values, which are JSON text. @thread any */
#ifndef WEIR_EXPR_JSON_TEXT_H
#define WEIR_EXPR_JSON_TEXT_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"

#define WEIR_JSON_TEXT_DEPTH_MAX 128

enum weir_json_text_form {
	WEIR_JSON_TEXT_OBJECT,
	WEIR_JSON_TEXT_ARRAY,
	WEIR_JSON_TEXT_STRING,
	WEIR_JSON_TEXT_NUMBER,
	WEIR_JSON_TEXT_TRUE,
	WEIR_JSON_TEXT_FALSE,
	WEIR_JSON_TEXT_NULL
};

/* Where a value stands, with its quotes or brackets. */
struct weir_json_text_slice {
	const uint8_t *data;
	uint32_t bytes;
	enum weir_json_text_form form;
};

/* The value at the start of [s, s + bytes), blanks around it skipped; false when it is no JSON or nested beyond the
 * depth. *used (may be NULL) is what was read with the blanks behind it. */
bool weir_json_text_take(const uint8_t *s, size_t bytes, struct weir_json_text_slice *out, size_t *used);
/* The whole text as one value. */
bool weir_json_text_whole(const uint8_t *s, size_t bytes, struct weir_json_text_slice *out);
/* Member name (raw bytes, not escaped) of an object: the last of that name; false when there is none. */
bool weir_json_text_member(const struct weir_json_text_slice *v, const char *name, size_t bytes,
			   struct weir_json_text_slice *out);
/* Element index, from 0, of an array. */
bool weir_json_text_element(const struct weir_json_text_slice *v, int64_t index, struct weir_json_text_slice *out);
/* Members or elements of an object or array. */
uint32_t weir_json_text_count(const struct weir_json_text_slice *v);
/* Steps through an array: *at starts at 0; false at the end. */
bool weir_json_text_next(const struct weir_json_text_slice *v, uint32_t *at, struct weir_json_text_slice *out);
/* A string's text without quotes and escapes: into to, which has room for v->bytes; returns the bytes. */
uint32_t weir_json_text_unescape(const struct weir_json_text_slice *v, uint8_t *to);
/* Whether a string has no escapes, so that its text is data + 1, bytes - 2. */
bool weir_json_text_is_plain(const struct weir_json_text_slice *v);
/* v without blanks between its tokens, into to (room v->bytes); returns the bytes. */
uint32_t weir_json_text_compact(const struct weir_json_text_slice *v, uint8_t *to);

#endif
