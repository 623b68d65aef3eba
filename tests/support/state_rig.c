/* state_rig.c: see state_rig.h. One thread. */
#include "tests/support/state_rig.h"
#include "hotpath/core/arena.h"
#include "hotpath/core/diag.h"

#include <stdio.h>
#include <stdlib.h>

struct weir_type rig_type(enum rig_col c)
{
	switch (c) {
	case RIG_BIGINT:
		return (struct weir_type){.kind = WEIR_KIND_BIGINT};
	case RIG_DOUBLE:
		return (struct weir_type){.kind = WEIR_KIND_DOUBLE};
	case RIG_STRING:
		return (struct weir_type){.kind = WEIR_KIND_VARCHAR, .length = INT32_MAX};
	case RIG_DECIMAL38:
		return (struct weir_type){.kind = WEIR_KIND_DECIMAL, .precision = 38, .scale = 0};
	case RIG_BOOLEAN:
		return (struct weir_type){.kind = WEIR_KIND_BOOLEAN};
	case RIG_DECIMAL12:
		return (struct weir_type){.kind = WEIR_KIND_DECIMAL, .precision = 12, .scale = 2};
	default:
		return (struct weir_type){.kind = WEIR_KIND_INT};
	}
}

static void rig_agg(struct rig *rg, const char *spec)
{
	char name[64];
	int arg = -1, filter = -1;
	struct weir_agg *a = &rg->aggs[rg->def.agg_count++];
	sscanf(spec, "%63[A-Z_(*)]:%d:%d", name, &arg, &filter);
	bool star = strcmp(name, "COUNT(*)") == 0, distinct = strcmp(name, "COUNT_DISTINCT") == 0;
	if (star)
		sscanf(spec, "COUNT(*):%d", &filter);
	struct weir_type t = rig_type(star ? 0 : (enum rig_col)arg);
	enum weir_err err = weir_agg_resolve(a, star || distinct ? "COUNT" : name, distinct, star ? NULL : &t, NULL);
	WEIR_ASSERT(err == WEIR_OK);
	a->arg = star ? -1 : arg;
	a->filter = filter;
	a->text = spec;
}

void rig_create_slots(struct rig *rg)
{
	for (uint32_t i = 0; i < rg->slot_count; i++)
		rg->slots[i] = weir_slot_create(&rg->def, i, rg->ar);
}

void rig_destroy_slots(struct rig *rg)
{
	for (uint32_t i = 0; i < rg->slot_count; i++)
		weir_slot_destroy(rg->slots[i]);
}

void rig_init(struct rig *rg, const struct weir_state_def *def, const char *aggs, uint32_t slot_count)
{
	memset(rg, 0, sizeof *rg);
	rg->def = *def;
	rg->def.name = "rig";
	rg->key_type = rig_type(RIG_STRING);
	rg->def.key_count = 1;
	rg->def.key_types = &rg->key_type;
	rg->def.aggs = rg->aggs;
	char spec[64];
	int n;
	for (; sscanf(aggs, " %63s%n", spec, &n) == 1; aggs += n)
		rig_agg(rg, spec);
	for (uint32_t i = 0; i < rg->def.agg_count; i++)
		rg->aggs[i].text = "";
	struct weir_diag *dg = NULL;
	enum weir_err err = weir_state_def_init(&rg->def, &dg);
	if (err != WEIR_OK)
		fprintf(stderr, "%s\n", weir_diag_text(dg));
	WEIR_ASSERT(err == WEIR_OK);
	rg->ar = weir_arena_create();
	rg->slot_count = slot_count;
	rig_create_slots(rg);
	for (int c = 0; c < RIG_COLS; c++) {
		struct weir_type t = rig_type((enum rig_col)c);
		weir_col_init(&rg->cols[c], weir_type_phys(&t));
		rg->col_of[c] = &rg->cols[c];
	}
	weir_col_init(&rg->key_col, WEIR_PHYS_STR);
	weir_scratch_init(&rg->scratch);
	weir_rows_init(&rg->rows, &rg->def);
	rg->task_time = WEIR_TIME_UNSET;
	rg->end_max = INT64_MIN;
}

void rig_fini(struct rig *rg)
{
	rig_destroy_slots(rg);
	weir_arena_destroy(rg->ar);
	for (int c = 0; c < RIG_COLS; c++)
		weir_col_fini(&rg->cols[c]);
	weir_col_fini(&rg->key_col);
	weir_scratch_fini(&rg->scratch);
	weir_rows_fini(&rg->rows);
	weir_buf_fini(&rg->out);
}

static struct weir_str rig_str(struct rig *rg, const char *text)
{
	uint32_t n = (uint32_t)strlen(text);
	uint8_t *p = weir_scratch_take(&rg->scratch, n + 1);
	memcpy(p, text, n);
	return (struct weir_str){p, n, 0};
}

void rig_add(struct rig *rg, const struct rig_row *r)
{
	uint32_t i = rg->count++;
	char key[32];
	snprintf(key, sizeof key, "k%lld", (long long)r->key);
	rg->key_col.str[i] = rig_str(rg, key);
	rg->keyed.slot[i] = (uint16_t)r->slot;
	rg->keyed.time[i] = r->ts;
	rg->cols[RIG_BIGINT].i64[i] = r->value;
	rg->cols[RIG_INT].i64[i] = r->value;
	rg->cols[RIG_DECIMAL12].i64[i] = r->value;
	rg->cols[RIG_DOUBLE].f64[i] = r->real;
	rg->cols[RIG_STRING].str[i] = rig_str(rg, r->text != NULL ? r->text : "");
	rg->cols[RIG_DECIMAL38].i128[i] = r->wide;
	rg->cols[RIG_BOOLEAN].u8[i] = r->flag;
	if (r->null)
		for (int c = 0; c < RIG_COLS; c++)
			if (c != RIG_BOOLEAN)
				weir_col_set_null(&rg->cols[c], i);
}

void rig_apply_clock(struct rig *rg, const struct weir_clock *clock)
{
	struct weir_sel sel;
	const struct weir_col *key_cols[] = {&rg->key_col};
	int64_t run = INT64_MIN;
	weir_sel_all(&sel, rg->count);
	rg->keyed.count = rg->count;
	rg->keyed.cols = rg->col_of;
	for (uint32_t i = 0; i < rg->count; i++) {
		run = weir_max_i64(run, rg->keyed.time[i]);
		rg->keyed.run[i] = run;
	}
	weir_key_encode(key_cols, rg->def.key_types, 1, &sel, &rg->scratch, &rg->keyed);
	weir_state_apply(&rg->def, rg->slots, &rg->keyed, sel.row, sel.count, clock, &rg->applied);
	WEIR_ASSERT(rg->applied.applied + rg->applied.late == rg->count);
	rg->count = 0;
	weir_scratch_reset(&rg->scratch);
	for (int c = 0; c < RIG_COLS; c++)
		weir_col_clear_nulls(&rg->cols[c]);
}

void rig_apply(struct rig *rg)
{
	struct weir_clock ck = {rg->task_time, INT64_MAX, rg->task_time};
	int64_t t = rg->task_time;
	for (uint32_t i = 0; i < rg->count; i++)
		t = weir_max_i64(t, rg->keyed.time[i]);
	rig_apply_clock(rg, &ck);
	rg->task_time = t;
}

void rig_put(struct rig *rg, int64_t key, int64_t ts, int64_t value)
{
	rig_add(rg, &(struct rig_row){
			    .key = key, .ts = ts, .value = value, .real = (double)value, .wide = value, .text = "x"});
	rig_apply(rg);
}

static void rig_print_col(struct weir_buf *out, const struct weir_col *c, uint32_t row)
{
	if (weir_col_is_null(c, row)) {
		weir_buf_puts(out, " null");
		return;
	}
	switch (c->phys) {
	case WEIR_PHYS_U8:
		weir_buf_printf(out, " %u", c->u8[row]);
		break;
	case WEIR_PHYS_I64:
		weir_buf_printf(out, " %lld", (long long)c->i64[row]);
		break;
	case WEIR_PHYS_F64:
		weir_buf_printf(out, " %.15g", c->f64[row]);
		break;
	case WEIR_PHYS_I128: {
		weir_i128 v = c->i128[row];
		weir_u128 u = v < 0 ? -(weir_u128)v : (weir_u128)v;
		char digits[48];
		int at = sizeof digits - 1;
		digits[at] = 0;
		do {
			digits[--at] = (char)('0' + (int)(u % 10));
			u /= 10;
		} while (u != 0);
		weir_buf_printf(out, " %s%s", v < 0 ? "-" : "", digits + at);
		break;
	}
	case WEIR_PHYS_STR:
		weir_buf_puts(out, " ");
		weir_buf_put(out, c->str[row].data, c->str[row].bytes);
		break;
	}
}

void rig_print(struct rig *rg)
{
	const struct weir_rows *r = &rg->rows;
	const struct weir_state_def *def = &rg->def;
	rg->agg_errors += r->agg_errors;
	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t w = def->key_count + def->agg_count;
		weir_buf_puts(&rg->out, r->op[i] == WEIR_OP_INSERT ? "+I" : r->op[i] == WEIR_OP_UPDATE ? "+U" : "-D");
		rig_print_col(&rg->out, &r->cols[0], i);
		if (def->kind != WEIR_STATE_TABLE)
			weir_buf_printf(&rg->out, " [%lld,%lld)", (long long)r->cols[w].i64[i],
					(long long)r->cols[w + 1].i64[i]);
		for (uint32_t a = 0; a < def->agg_count && r->op[i] != WEIR_OP_DELETE; a++)
			rig_print_col(&rg->out, &r->cols[1 + a], i);
		weir_buf_printf(&rg->out, " @%lld\n", (long long)r->time[i]);
	}
}

void rig_close(struct rig *rg, int64_t t, bool all)
{
	for (uint32_t s = 0; s < rg->slot_count; s++) {
		struct weir_closed *cl;
		while ((cl = weir_slot_close(rg->slots[s], t, all, &rg->end_max)) != NULL) {
			weir_closed_sort(cl);
			for (uint32_t from = 0; from < weir_closed_count(cl); from += rg->rows.count) {
				weir_closed_read(cl, from, &rg->rows);
				rig_print(rg);
			}
			weir_closed_release(rg->slots[s], cl);
		}
	}
}

void rig_changes(struct rig *rg)
{
	for (uint32_t s = 0; s < rg->slot_count; s++) {
		while (weir_slot_changes(rg->slots[s], &rg->rows) != 0) {
			rig_print(rg);
			for (uint32_t i = 0; i < rg->rows.count; i++)
				if (rg->rows.entry[i] != NULL)
					weir_slot_set_emitted(rg->slots[s], rg->rows.entry[i], true);
		}
	}
}

const char *rig_text(struct rig *rg)
{
	weir_buf_put_byte(&rg->out, 0);
	rg->out.bytes = 0;
	return (const char *)rg->out.data;
}
