/* json.c: the JSON projection decoder's interface: creation, choice of the instruction set, and what becomes of rows
 * that cannot be decoded. Start reading at json_private.h. @thread init to create, worker to decode
 *
 * Rules beyond semantics.md section 6:
 *   - the top level must be an object (an array only where a path begins with an index): else `type`
 *   - a path that meets a scalar or the wrong sort of container on its way: `type`; null on the way: NULL
 *   - STRING takes numbers, true and false as they stand, objects and arrays as compact JSON text
 *   - ARRAY takes arrays, MAP and ROW take objects: the compact text
 *   - BOOLEAN takes true and false (also as strings), BYTES standard base64
 *   - a missing member under fail-on-missing-field, and NULL for a NOT NULL column: `null`
 *   - a byte order mark, anything behind the document, and anything that RFC 8259 does not allow: `json`
 *   - under ignore-parse-errors nothing is refused but NULL for a NOT NULL column: a record that cannot be parsed is
 *     NULL in every column, and so is a bad value
 */
#include <stdlib.h>

#include "hotpath/core/diag.h"
#include "hotpath/format/json_private.h"
#include "hotpath/format/number.h"

/* Best first. AVX-512 comes behind AVX2: ids and names fit 32 bytes, and on orders it is some 5 % slower (bench_json).
 */
static const struct weir_json_variant *const variants[] = {
#if defined(__x86_64__)
	&weir_json_avx2,
	&weir_json_avx512,
	&weir_json_sse42,
#elif defined(__aarch64__)
	&weir_json_neon,
#endif
	&weir_json_scalar,
};

static const struct weir_json_variant *variant_best(void)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(variants); i++)
		if (variants[i]->available())
			return variants[i];
	return &weir_json_scalar;
}

bool weir_json_force(struct weir_decoder *d, const char *variant, bool speculate)
{
	struct weir_json *js = (struct weir_json *)d;
	js->speculate = speculate;
	js->call++; /* the layouts are bound to the old variant's code */
	if (variant == NULL) {
		js->variant = variant_best();
		return true;
	}
	for (size_t i = 0; i < WEIR_COUNT_OF(variants); i++)
		if (strcmp(variants[i]->name, variant) == 0 && variants[i]->available()) {
			js->variant = variants[i];
			return true;
		}
	return false;
}

void weir_json_counts(const struct weir_decoder *d, uint64_t *fast, uint64_t *general)
{
	const struct weir_json *js = (const struct weir_json *)d;
	*fast = js->fast_count;
	*general = js->general_count;
}

bool weir_json_refuse(struct weir_json *js, enum weir_reason reason, const uint8_t *at, const char *field,
		      const char *detail)
{
	js->error_reason = reason;
	js->error_at = at != NULL ? (uint32_t)(at - js->doc) : UINT32_MAX;
	js->error_field = field;
	js->error_detail = detail;
	return false;
}

void weir_json_row_reset(struct weir_json *js, uint32_t row)
{
	for (uint32_t i = 0; i < js->field_count; i++)
		if (js->cols[i].has_null)
			js->cols[i].nulls[row >> 6] &= ~(UINT64_C(1) << (row & 63));
}

/* Every column NULL, whatever is declared. */
void weir_json_row_null(struct weir_json *js, uint32_t row)
{
	for (uint32_t i = 0; i < js->field_count; i++) {
		struct weir_col *c = &js->cols[i];
		size_t bytes = weir_phys_bytes(c->phys);
		weir_col_set_null(c, row);
		memset((uint8_t *)c->data + row * bytes, 0, bytes);
	}
}

void weir_json_row_bad(struct weir_json *js, uint32_t row)
{
	weir_row_errors_add(js->errors, row, js->error_reason, js->error_at, js->error_field, js->error_detail);
}

bool weir_json_admit(struct weir_json *js, const uint8_t *value, uint32_t bytes)
{
	enum { FRAME_BYTES = 5 }; /* a zero byte and a schema id */
	if (bytes > js->record_bytes_max)
		return weir_json_refuse(js, WEIR_REASON_SIZE, NULL, NULL, "larger than record.bytes.max");
	if (bytes == 0)
		return weir_json_refuse(js, WEIR_REASON_JSON, value, NULL, "an empty value");
	if (bytes >= FRAME_BYTES && value[0] == 0)
		return weir_json_refuse(js, WEIR_REASON_FRAMING, value, NULL,
					"looks framed for a schema registry (a zero byte and a schema id)");
	return true;
}

/* Takes the rows that errors lists from error_first on out of sel; both are ascending. */
static void sel_compact(struct weir_sel *sel, const struct weir_row_errors *errors, uint32_t error_first)
{
	uint32_t out = 0, e = error_first;
	for (uint32_t i = 0; i < sel->count; i++) {
		if (e < errors->count && errors->e[e].row == sel->row[i])
			e++;
		else
			sel->row[out++] = sel->row[i];
	}
	sel->count = out;
}

static void json_decode(struct weir_decoder *d, const struct weir_record *records, struct weir_sel *sel,
			struct weir_col *cols, struct weir_scratch *scratch, struct weir_row_errors *errors)
{
	struct weir_json *js = (struct weir_json *)d;
	uint32_t error_first = errors->count;
	js->cols = cols;
	js->scratch = scratch;
	js->errors = errors;
	js->call++;
	for (uint32_t i = 0; i < js->field_count; i++) {
		WEIR_DASSERT(cols[i].phys == js->fields[i].phys);
		weir_col_clear_nulls(&cols[i]);
		cols[i].is_const = false;
	}
	js->variant->decode(js, records, sel);
	if (errors->count != error_first)
		sel_compact(sel, errors, error_first);
}

static void json_destroy(struct weir_decoder *d)
{
	struct weir_json *js = (struct weir_json *)d;
	weir_mem_fini(&js->mem);
	free(js);
}

static int64_t integer_max(enum weir_kind kind)
{
	switch (kind) {
	case WEIR_KIND_TINYINT:
		return INT8_MAX;
	case WEIR_KIND_SMALLINT:
		return INT16_MAX;
	case WEIR_KIND_INT:
		return INT32_MAX;
	default:
		return INT64_MAX;
	}
}

/* Digits left in a group of characters whose first is at `at`: one less where the point is among them. */
static int digits_in(int at, int count, int point)
{
	return count - (point >= at && point < at + count);
}

/* Prepares the short way for the usual form: digits, a point, exactly the scale's digits, in at most 16 characters. */
static void decimal_prepare(struct weir_json *js, struct weir_json_field *f)
{
	enum { WIDTH = 16 };
	static const int16_t powers[5] = {1, 10, 100, 1000, 10000};
	int scale = f->type.scale, point = WIDTH - 1 - scale;
	if (f->type.kind != WEIR_KIND_DECIMAL || f->phys != WEIR_PHYS_I64 || scale == 0 || point < 1)
		return;
	struct weir_json_weights *w = weir_mem_take(&js->mem, sizeof *w);
	for (int i = 0; i < WIDTH; i += 2) {
		w->tens[i] = (int8_t)(i == point ? 0 : powers[digits_in(i + 1, 1, point)]);
		w->tens[i + 1] = i + 1 != point;
	}
	for (int i = 0; i < WIDTH / 2; i += 2) {
		w->hundreds[i] = powers[digits_in(2 * i + 2, 2, point)];
		w->hundreds[i + 1] = 1;
	}
	for (int i = 0; i < WIDTH / 2; i += 2) { /* over the fours of both halves; packed twice */
		w->thousands[i] = powers[digits_in(4 * (i % 4) + 4, 4, point)];
		w->thousands[i + 1] = 1;
	}
	w->upper = point >= WIDTH / 2 ? 10000000 : 100000000;
	f->weights = w;
	f->scale_and_point = (uint64_t)scale + 1;
	f->whole_digits_max = (uint64_t)weir_min_i64(f->type.precision - scale, point);
}

static void field_init(struct weir_json *js, struct weir_json_field *f, const struct weir_field *from)
{
	f->name = from->name;
	f->type = from->type;
	f->phys = weir_type_phys(&from->type);
	f->int_max = integer_max(from->type.kind);
	f->int_min = -f->int_max - 1;
	if (from->type.kind == WEIR_KIND_DECIMAL &&
	    f->phys == WEIR_PHYS_I64) { /* read as integers where the scale is 0 */
		f->int_max = (int64_t)weir_pow10_u64[from->type.precision] - 1;
		f->int_min = -f->int_max;
	}
	decimal_prepare(js, f);
}

enum weir_err weir_json_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
				       const struct weir_field *fields, uint32_t field_count, bool on_key,
				       struct weir_diag **dg)
{
	enum { DEPTH_BOUND = 1 << 20 };
	if (options->depth_max > DEPTH_BOUND)
		return weir_diag_set(dg, WEIR_E_CONF, "json.depth.max is %u, at most %u is possible",
				     options->depth_max, (unsigned)DEPTH_BOUND);
	struct weir_json *js = weir_xcalloc(1, sizeof *js);
	weir_mem_init(&js->mem, 0);
	js->base.decode = json_decode;
	js->base.destroy = json_destroy;
	js->base.on_key = js->on_key = on_key;
	js->variant = variant_best();
	js->speculate = true;
	js->field_count = field_count;
	js->depth_max = options->depth_max != 0 ? options->depth_max : WEIR_JSON_DEPTH_MAX;
	js->record_bytes_max = options->record_bytes_max != 0 ? options->record_bytes_max : WEIR_JSON_RECORD_MAX;
	js->ignore_parse_errors = options->ignore_parse_errors;
	js->fail_on_missing = options->fail_on_missing_field;
	js->unit_per_second = options->unit_per_second != 0 ? options->unit_per_second : 1000;
	js->fields = weir_mem_take(&js->mem, (field_count + 1) * sizeof *js->fields);
	js->stack = weir_mem_take(&js->mem, (js->depth_max + 1) * sizeof *js->stack);
	for (uint32_t i = 0; i < field_count; i++)
		field_init(js, &js->fields[i], &fields[i]);
	enum weir_err err = weir_json_tree_build(js, fields, dg);
	if (err != WEIR_OK) {
		json_destroy(&js->base);
		return err;
	}
	weir_json_layouts_init(js);
	*out = &js->base;
	return WEIR_OK;
}
