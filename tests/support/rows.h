/* rows.h: for tests of formats: types by short names, a batch of columns, one record in and one row out. Header only,
 * the test's one thread. Include after cmocka.h. */
#ifndef WEIR_TESTS_ROWS_H
#define WEIR_TESTS_ROWS_H

#include <stdlib.h>

#include "hotpath/format/format.h"

#define TYPE_BOOLEAN       ((struct weir_type){.kind = WEIR_KIND_BOOLEAN})
#define TYPE_TINYINT       ((struct weir_type){.kind = WEIR_KIND_TINYINT})
#define TYPE_SMALLINT      ((struct weir_type){.kind = WEIR_KIND_SMALLINT})
#define TYPE_INT           ((struct weir_type){.kind = WEIR_KIND_INT})
#define TYPE_BIGINT        ((struct weir_type){.kind = WEIR_KIND_BIGINT})
#define TYPE_FLOAT         ((struct weir_type){.kind = WEIR_KIND_FLOAT})
#define TYPE_DOUBLE        ((struct weir_type){.kind = WEIR_KIND_DOUBLE})
#define TYPE_DECIMAL(p, s) ((struct weir_type){.kind = WEIR_KIND_DECIMAL, .precision = (p), .scale = (s)})
#define TYPE_STRING        ((struct weir_type){.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX})
#define TYPE_VARCHAR(n)    ((struct weir_type){.kind = WEIR_KIND_VARCHAR, .length = (n)})
#define TYPE_BYTES         ((struct weir_type){.kind = WEIR_KIND_BYTES})
#define TYPE_DATE          ((struct weir_type){.kind = WEIR_KIND_DATE})
#define TYPE_TIME          ((struct weir_type){.kind = WEIR_KIND_TIME, .precision = 3})
#define TYPE_TIMESTAMP(p)  ((struct weir_type){.kind = WEIR_KIND_TIMESTAMP, .precision = (p)})
#define TYPE_LTZ(p)        ((struct weir_type){.kind = WEIR_KIND_TIMESTAMP_LTZ, .precision = (p)})

enum { ROWS_COLS_MAX = 16 };

/* A batch that is filled one record at a time. */
struct rows {
	struct weir_field fields[ROWS_COLS_MAX];
	uint32_t field_count;
	struct weir_col cols[ROWS_COLS_MAX];
	struct weir_scratch scratch;
	struct weir_sel sel;
	struct weir_row_errors errors;
	struct weir_buf out;
	uint32_t pad; /* readable bytes behind a payload: 0 unless the test of a SIMD decoder sets WEIR_PAYLOAD_PAD */
};

static inline void rows_add(struct rows *r, const char *name, struct weir_type type)
{
	uint32_t i = r->field_count++;
	r->fields[i] = (struct weir_field){.name = name, .type = type, .ordinal = i};
	weir_col_init(&r->cols[i], weir_type_phys(&type));
}

static inline void rows_fini(struct rows *r)
{
	for (uint32_t i = 0; i < r->field_count; i++)
		weir_col_fini(&r->cols[i]);
	weir_scratch_fini(&r->scratch);
	weir_buf_fini(&r->out);
	free(r);
}

/* Decodes one payload (NULL: a Kafka null) as row 0. The reason it was refused for, or NONE. The payload is copied to a
 * place of exactly its size first, so that ASan sees every read beyond it; the copy lives until the next call. */
static inline enum weir_reason rows_decode(struct rows *r, struct weir_decoder *d, const void *payload, size_t bytes)
{
	static uint8_t *copy;
	free(copy);
	copy = calloc(1, bytes + r->pad + 1 - (bytes != 0));
	if (bytes != 0 && payload != NULL)
		memcpy(copy, payload, bytes);
	struct weir_record rec = {0};
	if (d->on_key) {
		rec.key = payload == NULL ? NULL : copy;
		rec.key_bytes = (uint32_t)bytes;
	} else {
		rec.value = payload == NULL ? NULL : copy;
		rec.value_bytes = (uint32_t)bytes;
	}
	weir_sel_all(&r->sel, 1);
	r->errors.count = 0;
	weir_scratch_reset(&r->scratch);
	d->decode(d, &rec, &r->sel, r->cols, &r->scratch, &r->errors);
	assert_int_equal(r->sel.count + r->errors.count, 1);
	return r->errors.count == 0 ? WEIR_REASON_NONE : (enum weir_reason)r->errors.e[0].reason;
}

/* Row 0 of a string column, terminated; valid until the next call. "<null>" for NULL. */
static inline const char *rows_str(struct rows *r, uint32_t col)
{
	static char *text;
	if (weir_col_is_null(&r->cols[col], 0))
		return "<null>";
	const struct weir_str *s = &r->cols[col].str[0];
	text = realloc(text, s->bytes + 1);
	memcpy(text, s->data, s->bytes);
	text[s->bytes] = '\0';
	return text;
}

/* The encoding of row 0, terminated; valid until the next call. */
static inline const char *rows_encode(struct rows *r, struct weir_encoder *e)
{
	r->out.bytes = 0;
	e->encode(e, r->cols, 0, &r->out);
	weir_buf_put_byte(&r->out, '\0');
	r->out.bytes--;
	return (const char *)r->out.data;
}

static inline void rows_set_str(struct rows *r, uint32_t col, const char *s)
{
	r->cols[col].str[0] = (struct weir_str){(const uint8_t *)s, (uint32_t)strlen(s), 0};
}

#endif
