/* json_twin.h: jansson as the naive twin of the JSON decoder, for the model test and the fuzzer: what it says to a
 * document, as far as both follow the same rules. Header only, @thread any. */
#ifndef WEIR_TESTS_JSON_TWIN_H
#define WEIR_TESTS_JSON_TWIN_H

#include <jansson.h>
#include <math.h>

#include "tests/support/json_rig.h"

enum json_twin_verdict { JSON_TWIN_ACCEPTS, JSON_TWIN_REFUSES, JSON_TWIN_UNSURE };

/* *out: the document, to be given back, where it is accepted. */
static inline enum json_twin_verdict json_twin_parse(const void *doc, size_t bytes, json_t **out)
{
	json_error_t error;
	*out = NULL;
	if (memchr(doc, 0, bytes) != NULL)
		return JSON_TWIN_UNSURE; /* jansson passes over a zero byte behind a number */
	*out = json_loadb(doc, bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (*out != NULL)
		return JSON_TWIN_ACCEPTS;
	switch (json_error_code(&error)) {
	case json_error_numeric_overflow: /* weir holds no number that nobody reads */
	case json_error_stack_overflow:   /* other bounds of depth */
	case json_error_null_byte_in_key: /* jansson cannot */
	case json_error_out_of_memory:
		return JSON_TWIN_UNSURE;
	default:
		return JSON_TWIN_REFUSES;
	}
}

/* The fields that the twin knows: s STRING, i BIGINT, f DOUBLE, b BOOLEAN, o.x BIGINT, l[1] BIGINT. */
enum { TWIN_S, TWIN_I, TWIN_F, TWIN_B, TWIN_OX, TWIN_L1, TWIN_FIELDS };
static inline void json_twin_fields(struct json_rig *rig)
{
	json_rig_field(rig, "s", NULL, WEIR_KIND_VARCHAR);
	json_rig_field(rig, "i", NULL, WEIR_KIND_BIGINT);
	json_rig_field(rig, "f", NULL, WEIR_KIND_DOUBLE);
	json_rig_field(rig, "b", NULL, WEIR_KIND_BOOLEAN);
	json_rig_field(rig, "ox", "o/x", WEIR_KIND_BIGINT);
	json_rig_field(rig, "l1", "l/1", WEIR_KIND_BIGINT);
	/* Beyond the twin: compared only among the ways of decoding. */
	struct weir_type *d = json_rig_field(rig, "d", NULL, WEIR_KIND_DECIMAL);
	d->precision = 12;
	d->scale = 2;
	json_rig_field(rig, "n", NULL, WEIR_KIND_INT);
	json_rig_field(rig, "t", NULL, WEIR_KIND_TIMESTAMP);
}

enum json_twin_value { JSON_TWIN_NULL, JSON_TWIN_VALUE, JSON_TWIN_BAD, JSON_TWIN_SKIP };

/* What field must become: *out is the value where there is one to compare. */
static inline enum json_twin_value json_twin_value(const json_t *root, int field, const json_t **out)
{
	static const char *const names[] = {"s", "i", "f", "b", "o", "l"};
	const json_t *v = json_object_get(root, names[field]);
	if (v == NULL || json_is_null(v))
		return JSON_TWIN_NULL;
	if (field == TWIN_OX) {
		if (!json_is_object(v))
			return JSON_TWIN_BAD;
		v = json_object_get(v, "x");
	} else if (field == TWIN_L1) {
		if (!json_is_array(v))
			return JSON_TWIN_BAD;
		v = json_array_get(v, 1);
	}
	if (v == NULL || json_is_null(v))
		return JSON_TWIN_NULL;
	*out = v;
	switch (field) {
	case TWIN_S:
		return json_is_string(v) ? JSON_TWIN_VALUE : JSON_TWIN_SKIP; /* texts of other values: unit tests */
	case TWIN_F:
		return json_is_number(v) ? JSON_TWIN_VALUE : json_is_string(v) ? JSON_TWIN_SKIP : JSON_TWIN_BAD;
	case TWIN_B:
		return json_is_boolean(v) ? JSON_TWIN_VALUE : json_is_string(v) ? JSON_TWIN_SKIP : JSON_TWIN_BAD;
	default:
		if (json_is_integer(v))
			return JSON_TWIN_VALUE;
		return json_is_string(v) || json_is_real(v) ? JSON_TWIN_SKIP : JSON_TWIN_BAD;
	}
}

static inline bool json_twin_equal(const json_t *v, int field, const struct weir_col *c, uint32_t row)
{
	switch (field) {
	case TWIN_S:
		return c->str[row].bytes == json_string_length(v) &&
		       memcmp(c->str[row].data, json_string_value(v), c->str[row].bytes) == 0;
	case TWIN_F:
		return c->f64[row] == json_number_value(v);
	case TWIN_B:
		return c->u8[row] == json_is_true(v);
	default:
		return c->i64[row] == json_integer_value(v);
	}
}

/* NULL, or how row of rig (one document, decoded) and the twin differ. */
static inline const char *json_twin_compare(struct json_rig *rig, uint32_t row, const void *doc, size_t bytes)
{
	json_t *root;
	enum json_twin_verdict verdict = json_twin_parse(doc, bytes, &root);
	enum weir_reason reason = json_rig_reason(rig, row);
	const char *differs = NULL;
	bool accepted = reason == WEIR_REASON_NONE || reason == WEIR_REASON_TYPE || reason == WEIR_REASON_RANGE;
	if (reason == WEIR_REASON_DEPTH || verdict == JSON_TWIN_UNSURE)
		goto done;
	if (accepted != (verdict == JSON_TWIN_ACCEPTS)) {
		differs = accepted ? "accepted, the twin refuses it" : "refused, the twin accepts it";
		goto done;
	}
	if (!accepted)
		goto done;
	if (!json_is_object(root)) {
		differs = reason == WEIR_REASON_TYPE ? NULL : "not an object, yet decoded";
		goto done;
	}
	bool bad = false, unsure = false;
	for (uint32_t i = 0; i < rig->errors.count; i++) {
		const struct weir_row_error *e = &rig->errors.e[i];
		for (uint32_t f = TWIN_FIELDS; f < rig->field_count && e->row == row; f++)
			unsure |= e->field == rig->fields[f].name; /* refused for a field that the twin does not have */
	}
	for (int f = 0; f < TWIN_FIELDS && differs == NULL; f++) {
		const json_t *v = NULL;
		enum json_twin_value want = json_twin_value(root, f, &v);
		bad |= want == JSON_TWIN_BAD;
		unsure |= want == JSON_TWIN_SKIP;
		if (reason != WEIR_REASON_NONE)
			continue;
		bool null = weir_col_is_null(&rig->cols[f], row);
		if (want == JSON_TWIN_NULL && !null)
			differs = "a value that is not there";
		if (want == JSON_TWIN_VALUE && (null || !json_twin_equal(v, f, &rig->cols[f], row)))
			differs = "another value";
	}
	if (differs == NULL && !unsure && bad != (reason != WEIR_REASON_NONE))
		differs = bad ? "a value of another type was accepted" : "a value was refused";
done:
	if (root != NULL)
		json_decref(root);
	return differs;
}

#endif
