/* json_rig.c: see json_rig.h. @thread init */
#include "tests/support/json_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const char *const json_rig_variants[] = {"scalar", "sse4.2", "avx2", "avx512", "neon", NULL};

void json_rig_init(struct json_rig *rig)
{
	memset(rig, 0, sizeof *rig);
	rig->pad_byte = '"';
	weir_scratch_init(&rig->scratch);
}

struct weir_type *json_rig_field(struct json_rig *rig, const char *name, const char *path, enum weir_kind kind)
{
	struct weir_field *f = &rig->fields[rig->field_count];
	struct weir_path_step *steps = rig->steps[rig->field_count];
	f->name = name;
	f->type = (struct weir_type){.kind = kind, .length = INT32_MAX, .precision = 3};
	f->path = steps;
	for (const char *at = path != NULL ? path : name; at != NULL; f->path_steps++) {
		const char *slash = path != NULL ? strchr(at, '/') : NULL;
		size_t bytes = slash != NULL ? (size_t)(slash - at) : strlen(at);
		bool index = path != NULL && bytes != 0 && strspn(at, "0123456789") == bytes;
		steps[f->path_steps] = (struct weir_path_step){
			.name = index ? NULL : at, .name_bytes = (uint32_t)bytes, .index = index ? atoi(at) : 0};
		at = slash != NULL ? slash + 1 : NULL;
	}
	rig->field_count++;
	return &f->type;
}

bool json_rig_open(struct json_rig *rig, const char *variant, bool speculate)
{
	if (rig->d != NULL)
		rig->d->destroy(rig->d);
	rig->d = NULL;
	for (uint32_t i = 0; i < rig->field_count; i++)
		if (rig->cols[i].data == NULL)
			weir_col_init(&rig->cols[i], weir_type_phys(&rig->fields[i].type));
	enum weir_err err =
		weir_json_decoder_create(&rig->d, &rig->options, rig->fields, rig->field_count, false, NULL);
	WEIR_ASSERT(err == WEIR_OK);
	return weir_json_force(rig->d, variant, speculate);
}

static void forget(struct json_rig *rig)
{
	for (uint32_t i = 0; i < rig->count; i++)
		free(rig->payload[i]);
	rig->count = 0;
}

void json_rig_fini(struct json_rig *rig)
{
	forget(rig);
	if (rig->d != NULL)
		rig->d->destroy(rig->d);
	for (uint32_t i = 0; i < rig->field_count; i++)
		if (rig->cols[i].data != NULL)
			weir_col_fini(&rig->cols[i]);
	weir_scratch_fini(&rig->scratch);
}

static void add(struct json_rig *rig, const void *doc, size_t bytes, bool null)
{
	if (rig->count != 0 && rig->records[rig->count - 1].offset == -1)
		forget(rig); /* the batch has been run */
	WEIR_ASSERT(rig->count < WEIR_BATCH_ROWS);
	uint8_t *p = malloc(rig->misalign + bytes + WEIR_PAYLOAD_PAD);
	WEIR_ASSERT(p != NULL);
	memset(p, rig->pad_byte, rig->misalign + bytes + WEIR_PAYLOAD_PAD);
	if (bytes != 0)
		memcpy(p + rig->misalign, doc, bytes);
	rig->payload[rig->count] = p;
	rig->records[rig->count++] =
		(struct weir_record){.value = null ? NULL : p + rig->misalign, .value_bytes = (uint32_t)bytes};
}

void json_rig_add(struct json_rig *rig, const void *doc, size_t bytes)
{
	add(rig, doc, bytes, false);
}

void json_rig_add_null(struct json_rig *rig)
{
	add(rig, NULL, 0, true);
}

void json_rig_run(struct json_rig *rig)
{
	weir_scratch_reset(&rig->scratch);
	rig->errors.count = 0;
	weir_sel_all(&rig->sel, rig->count);
	rig->d->decode(rig->d, rig->records, &rig->sel, rig->cols, &rig->scratch, &rig->errors);
	WEIR_ASSERT(rig->sel.count + rig->errors.count == rig->count);
	rig->records[rig->count - 1].offset = -1;
}

void json_rig_run_shared(struct json_rig *rig, const struct json_rig *from)
{
	forget(rig);
	memcpy(rig->records, from->records, from->count * sizeof *rig->records);
	memset(rig->payload, 0, from->count * sizeof *rig->payload);
	rig->count = from->count;
	json_rig_run(rig);
}

static const struct weir_row_error *error_of(const struct json_rig *rig, uint32_t row)
{
	for (uint32_t i = 0; i < rig->errors.count; i++)
		if (rig->errors.e[i].row == row)
			return &rig->errors.e[i];
	return NULL;
}

bool json_rig_equal(struct json_rig *a, struct json_rig *b, uint32_t row)
{
	const struct weir_row_error *x = error_of(a, row), *y = error_of(b, row);
	if (x != NULL || y != NULL)
		return x != NULL && y != NULL && x->reason == y->reason && x->at == y->at &&
		       (x->field == NULL) == (y->field == NULL) &&
		       (x->field == NULL || strcmp(x->field, y->field) == 0) && strcmp(x->detail, y->detail) == 0;
	for (uint32_t i = 0; i < a->field_count; i++) {
		const struct weir_col *c = &a->cols[i], *d = &b->cols[i];
		if (weir_col_is_null(c, row) != weir_col_is_null(d, row))
			return false;
		if (weir_col_is_null(c, row))
			continue;
		size_t bytes = weir_phys_bytes(c->phys);
		if (c->phys == WEIR_PHYS_STR) {
			if (c->str[row].bytes != d->str[row].bytes ||
			    memcmp(c->str[row].data, d->str[row].data, c->str[row].bytes) != 0)
				return false;
		} else if (memcmp(c->u8 + row * bytes, d->u8 + row * bytes, bytes) != 0) {
			return false;
		}
	}
	return true;
}

enum weir_reason json_rig_reason(struct json_rig *rig, uint32_t row)
{
	for (uint32_t i = 0; i < rig->errors.count; i++)
		if (rig->errors.e[i].row == row)
			return rig->errors.e[i].reason;
	for (uint32_t i = 0; i < rig->sel.count; i++)
		if (rig->sel.row[i] == row)
			return WEIR_REASON_NONE;
	WEIR_ASSERT(false && "the row is neither selected nor refused");
	return WEIR_REASON_NONE;
}

static int value_text(const struct weir_type *t, const struct weir_col *c, uint32_t row, char *out, size_t room)
{
	if (weir_col_is_null(c, row))
		return snprintf(out, room, "NULL");
	switch (c->phys) {
	case WEIR_PHYS_STR:
		return snprintf(out, room, "%.*s", (int)c->str[row].bytes, (const char *)c->str[row].data);
	case WEIR_PHYS_F64:
		return snprintf(out, room, "%.17g", c->f64[row]);
	case WEIR_PHYS_U8:
		return snprintf(out, room, "%s", c->u8[row] == 1 ? "true" : c->u8[row] == 0 ? "false" : "?");
	case WEIR_PHYS_I64:
		return snprintf(out, room, "%" PRId64, c->i64[row]);
	default: {
		struct weir_buf b = {0};
		weir_text_print(t, c, row, false, &b);
		int n = snprintf(out, room, "%.*s", (int)b.bytes, (const char *)b.data);
		weir_buf_fini(&b);
		return n;
	}
	}
}

const char *json_rig_text(struct json_rig *rig, uint32_t row)
{
	static char texts[4][JSON_RIG_TEXT_MAX];
	static uint32_t turn;
	char *out = texts[turn++ % 4];
	if (json_rig_reason(rig, row) != WEIR_REASON_NONE) {
		for (uint32_t i = 0; i < rig->errors.count; i++) {
			const struct weir_row_error *e = &rig->errors.e[i];
			if (e->row != row)
				continue;
			WEIR_ASSERT(e->detail != NULL);
			snprintf(out, JSON_RIG_TEXT_MAX, "!%s at %d %s: %s", weir_reason_name(e->reason), (int)e->at,
				 e->field != NULL ? e->field : "-", e->detail);
		}
		return out;
	}
	size_t at = 0;
	out[0] = 0;
	for (uint32_t i = 0; i < rig->field_count && at < JSON_RIG_TEXT_MAX; i++) {
		at += (size_t)snprintf(out + at, JSON_RIG_TEXT_MAX - at, i == 0 ? "" : "|");
		if (at < JSON_RIG_TEXT_MAX)
			at += (size_t)value_text(&rig->fields[i].type, &rig->cols[i], row, out + at,
						 JSON_RIG_TEXT_MAX - at);
	}
	return out;
}

const char *json_rig_one(struct json_rig *rig, const void *doc, size_t bytes)
{
	json_rig_add(rig, doc, bytes);
	json_rig_run(rig);
	return json_rig_text(rig, rig->count - 1);
}
