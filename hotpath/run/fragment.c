/* fragment.c: decode, event time, filter, project, key: stage 0 of a batch, and the same for rows that leave a state
 * for another one (fragment.h). @thread worker */
#include "hotpath/run/fragment.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/core/varint.h"
#include "hotpath/format/base64.h"

static enum weir_err branches_create(struct weir_fragment *fr, const struct weir_fragment_conf *cf,
				     const uint32_t *branches, uint32_t count, struct weir_diag **dg)
{
	const struct weir_plan *pl = cf->plan;
	fr->branches = weir_xcalloc(count + 1, sizeof *fr->branches);
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < count && err == WEIR_OK; i++) {
		const struct weir_plan_branch *br = &pl->branches[branches[i]];
		if (br->to != WEIR_TO_STAGE)
			continue;
		struct weir_fragment_branch *fb = &fr->branches[fr->branch_count++];
		fb->branch = branches[i];
		fb->expr_count = br->expr_count;
		fb->out = weir_xcalloc(br->expr_count + 1, sizeof *fb->out);
		fb->expanded = weir_xcalloc(br->expr_count + 1, sizeof *fb->expanded);
		fb->rows = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *fb->rows);
		fb->start = weir_xcalloc(cf->worker_count + 1, sizeof *fb->start);
		if (br->table || br->retracts)
			fb->deletes = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *fb->deletes);
		err = weir_program_create(&fb->project, br->exprs, br->expr_count, dg);
		if (err == WEIR_OK && br->time)
			err = weir_program_create(&fb->time, &br->time, 1, dg);
		if (err == WEIR_OK && br->filter)
			err = weir_program_create(&fb->filter, &br->filter, 1, dg);
	}
	return err;
}

enum weir_err weir_fragment_create_scan(struct weir_fragment **out, const struct weir_fragment_conf *cf, uint32_t scan,
					struct weir_diag **dg)
{
	const struct weir_plan_scan *sc = &cf->plan->scans[scan];
	struct weir_fragment *fr = weir_xcalloc(1, sizeof *fr);
	fr->scan = scan;
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++)
		fr->rows_all[i] = (uint16_t)i;
	weir_scratch_init(&fr->scratch);
	if (sc->repartition >= 0)
		fr->unwrapped = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *fr->unwrapped),
		fr->exchange_leaves = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *fr->exchange_leaves),
		fr->exchange_run = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *fr->exchange_run);
	fr->cols = weir_xcalloc(sc->column_count + 1, sizeof *fr->cols);
	fr->col_ptrs = weir_xcalloc(sc->column_count + 1, sizeof *fr->col_ptrs);
	for (uint32_t c = 0; c < sc->column_count; c++) {
		weir_col_init(&fr->cols[c], weir_type_phys(&sc->column_types[c]));
		fr->col_ptrs[c] = &fr->cols[c];
	}
	/* The value is decoded even when no column is read: a malformed record is refused whatever a query reads. */
	enum weir_err err = weir_decoder_create(&fr->value_decoder, &sc->value_format, sc->value_fields,
						sc->value_count, sc->all_fields, sc->all_count, false, dg);
	if (err == WEIR_OK && sc->key_count)
		err = weir_decoder_create(&fr->key_decoder, &sc->key_format, sc->key_fields, sc->key_count,
					  sc->key_fields, sc->key_count, true, dg);
	if (err == WEIR_OK && sc->time)
		err = weir_program_create(&fr->time_program, &sc->time, 1, dg);
	if (err == WEIR_OK)
		err = branches_create(fr, cf, sc->branches, sc->branch_count, dg);
	if (err != WEIR_OK) {
		weir_fragment_destroy(fr);
		return err;
	}
	*out = fr;
	return WEIR_OK;
}

enum weir_err weir_fragment_create_stage(struct weir_fragment **out, const struct weir_fragment_conf *cf,
					 uint32_t stage, struct weir_diag **dg)
{
	const struct weir_plan_stage *st = &cf->plan->stages[stage];
	struct weir_fragment *fr = weir_xcalloc(1, sizeof *fr);
	fr->stage = stage;
	weir_scratch_init(&fr->scratch);
	weir_rows_init(&fr->rows, &st->def);
	fr->col_ptrs = weir_xcalloc(st->column_count + 1, sizeof *fr->col_ptrs);
	for (uint32_t c = 0; c < st->column_count; c++)
		fr->col_ptrs[c] = &fr->rows.cols[c];
	enum weir_err err = branches_create(fr, cf, st->branches, st->branch_count, dg);
	if (err != WEIR_OK) {
		weir_fragment_destroy(fr);
		return err;
	}
	*out = fr;
	return WEIR_OK;
}

void weir_fragment_destroy(struct weir_fragment *fr)
{
	if (!fr)
		return;
	for (uint32_t i = 0; fr->branches && i < fr->branch_count; i++) {
		struct weir_fragment_branch *fb = &fr->branches[i];
		weir_program_destroy(fb->filter);
		weir_program_destroy(fb->project);
		weir_program_destroy(fb->time);
		free(fb->deletes);
		for (uint32_t c = 0; fb->expanded && c < fb->expr_count; c++)
			if (fb->expanded[c].data)
				weir_col_fini(&fb->expanded[c]);
		free(fb->out);
		free(fb->expanded);
		free(fb->rows);
		free(fb->start);
	}
	free(fr->branches);
	if (fr->value_decoder)
		fr->value_decoder->destroy(fr->value_decoder);
	if (fr->key_decoder)
		fr->key_decoder->destroy(fr->key_decoder);
	weir_program_destroy(fr->time_program);
	for (uint32_t c = 0; fr->cols && fr->col_ptrs[c]; c++)
		weir_col_fini(&fr->cols[c]);
	free(fr->unwrapped);
	free(fr->exchange_leaves);
	free(fr->exchange_run);
	free(fr->cols);
	free(fr->col_ptrs);
	if (fr->rows.cols)
		weir_rows_fini(&fr->rows);
	weir_scratch_fini(&fr->scratch);
	free(fr);
}

static void put_json_string(struct weir_buf *b, const uint8_t *s, size_t bytes)
{
	weir_buf_put_byte(b, '"');
	for (size_t i = 0; i < bytes; i++) {
		if (s[i] == '"' || s[i] == '\\')
			weir_buf_put_byte(b, '\\');
		if (s[i] < 0x20)
			weir_buf_printf(b, "\\u%04x", s[i]);
		else
			weir_buf_put_byte(b, s[i]);
	}
	weir_buf_put_byte(b, '"');
}

/* METADATA headers: a JSON object, values in base64. Cold: nobody reads headers at full speed. */
static struct weir_str headers_text(const struct weir_record *r, struct weir_scratch *scratch)
{
	struct weir_buf b = {0};
	const uint8_t *p = r->headers, *end = p + r->headers_bytes;
	weir_buf_put_byte(&b, '{');
	for (uint32_t h = 0; h < r->header_count && p < end; h++) {
		int64_t kn = 0, vn = 0;
		if (!weir_varint_take(&p, end, &kn) || kn < 0 || end - p < kn)
			break;
		const uint8_t *key = p;
		p += kn;
		if (!weir_varint_take(&p, end, &vn) || (vn > 0 && end - p < vn))
			break;
		const uint8_t *value = p;
		p += vn > 0 ? vn : 0;
		if (h)
			weir_buf_put_byte(&b, ',');
		put_json_string(&b, key, (size_t)kn);
		if (vn < 0) {
			weir_buf_puts(&b, ":null");
			continue;
		}
		weir_buf_puts(&b, ":\"");
		uint8_t *room = weir_buf_room(&b, weir_base64_text_bytes((size_t)vn));
		b.bytes += weir_base64_encode(value, (size_t)vn, (char *)room);
		weir_buf_put_byte(&b, '"');
	}
	weir_buf_put_byte(&b, '}');
	uint8_t *text = weir_scratch_take(scratch, b.bytes);
	memcpy(text, b.data, b.bytes);
	struct weir_str s = {text, (uint32_t)b.bytes, 0};
	weir_buf_fini(&b);
	return s;
}

static void fill_meta(struct weir_fragment *fr, enum weir_meta meta, const struct weir_type *type, struct weir_col *c)
{
	const struct weir_input *in = fr->input;
	int64_t ticks = weir_ticks_per_ms(type);
	weir_col_clear_nulls(c);
	for (uint32_t i = 0; i < in->count; i++) {
		const struct weir_record *r = &in->records[i];
		switch (meta) {
		case WEIR_META_TOPIC:
			c->str[i] = (struct weir_str){(const uint8_t *)in->topic, (uint32_t)strlen(in->topic), 0};
			break;
		case WEIR_META_PARTITION:
			c->i64[i] = in->topic_partition;
			break;
		case WEIR_META_OFFSET:
			c->i64[i] = r->offset;
			break;
		case WEIR_META_TIMESTAMP:
			if (type->kind == WEIR_KIND_BIGINT)
				c->i64[i] = r->timestamp;
			else if (__builtin_mul_overflow(r->timestamp, ticks, &c->i64[i]))
				weir_col_set_null(c, i);
			break;
		case WEIR_META_TIMESTAMP_TYPE:
			c->str[i] = (struct weir_str){(const uint8_t *)"CreateTime", 10, 0};
			break;
		case WEIR_META_HEADERS:
			c->str[i] = headers_text(r, &fr->scratch);
			break;
		default:
			weir_col_set_null(c, i);
			c->i64[i] = 0;
			break;
		}
	}
}

/* Beyond +-2^53 ms (about 285,000 years) a window's arithmetic could overflow: such a time is no time. */
static const int64_t time_highest = INT64_C(1) << 53;

/* Four times at once; any alignment. */
typedef uint64_t times4 __attribute__((vector_size(32), aligned(8), may_alias));

#define TIMES4(from)  (*(const times4 *)(const void *)(from))
#define TIMES4_ANY(t) ((t)[0] | (t)[1] | (t)[2] | (t)[3])

/* Looks at all times of a batch, and at up to three behind them: *above has every bit that is set in some time less
 * lowest, the sign of *falls says that one is smaller than the one before it (unless a difference overflows). */
WEIR_INLINE void look_at_times_inline(const int64_t *from, uint32_t count, int64_t lowest, uint64_t *above,
				      uint64_t *falls)
{
	times4 bits = {0}, steps = {0}, low = {0};
	uint32_t i = 0;
	low += (uint64_t)lowest;
	for (; i + 4 < count; i += 4) {
		times4 t = TIMES4(from + i);
		steps |= TIMES4(from + i + 1) - t;
		bits |= t - low;
	}
	*falls = TIMES4_ANY(steps);
	if (i < count)
		bits |= TIMES4(from + i) - low;
	for (; i + 1 < count; i++)
		*falls |= (uint64_t)from[i + 1] - (uint64_t)from[i];
	*above = TIMES4_ANY(bits);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static WEIR_NOINLINE void
look_at_times_avx2(const int64_t *from, uint32_t count, int64_t lowest, uint64_t *above, uint64_t *falls)
{
	look_at_times_inline(from, count, lowest, above, falls);
}
#endif

static void look_at_times(const int64_t *from, uint32_t count, int64_t lowest, uint64_t *above, uint64_t *falls)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2")) {
		look_at_times_avx2(from, count, lowest, above, falls);
		return;
	}
#endif
	look_at_times_inline(from, count, lowest, above, falls);
}

/* Times that are milliseconds already and never NULL, all rows of the batch, the usual case. False: some time is out of
 * range (or the highest there is, or one behind the last row), so that the general way must look. Cost: about 3
 * instructions a record, 7 where times are out of order. */
static bool fill_time_plain(struct weir_fragment *fr, const int64_t *from, int64_t lowest)
{
	uint32_t count = fr->sel.count;
	uint64_t above, falls;
	look_at_times(from, count, lowest, &above, &falls);
	/* The number of times is a power of two, whichever is the lowest. */
	if (above >= (uint64_t)(time_highest - lowest) || count == 0)
		return false;
	memcpy(fr->time, from, count * sizeof *from);
	fr->time_max = from[count - 1];
	if (falls >> 63 == 0) {
		memcpy(fr->run, from, count * sizeof *from);
		return true;
	}
	int64_t max = WEIR_TIME_UNSET;
#pragma GCC unroll 4
	for (uint32_t i = 0; i < count; i++) {
		max = from[i] > max ? from[i] : max;
		fr->run[i] = max;
	}
	fr->time_max = max;
	return true;
}

/* Whether a time in milliseconds is rather one in seconds (of 1973 to 2286) or in micro- or nanoseconds (year 10000 is
 * no date of ours). The first day of 1970 is left alone: tests live there. */
static bool time_is_implausible(int64_t ms)
{
	return (ms >= INT64_C(100000000) && ms < INT64_C(10000000000)) || ms >= INT64_C(253402300800000);
}

/* Counts them where the batch's largest time is one: a wrong unit is wrong in all of a topic's records. Cold. */
static void count_implausible(struct weir_fragment *fr)
{
	for (uint32_t i = 0; i < fr->sel.count; i++) {
		uint32_t row = fr->sel.row[i];
		if (!time_is_implausible(fr->time[row]))
			continue;
		if (fr->implausible++ == 0)
			fr->implausible_row = row;
	}
}

/* Event times of the accepted records, and the running maximum of the partition within the batch. A null value has no
 * columns to take a time from: there the record's timestamp counts. Cost: about 1 ns a record for a BIGINT of
 * milliseconds. */
static void fill_time(struct weir_fragment *fr, const struct weir_plan_scan *sc)
{
	const struct weir_record *records = fr->unwrapped ? fr->unwrapped : fr->input->records;
	const char *name = "the record's timestamp";
	int64_t lowest = sc->allow_negative_time ? -time_highest : 0;
	if (sc->time) {
		const struct weir_col *c;
		weir_program_run(fr->time_program, fr->col_ptrs, &fr->sel, &fr->scratch, &c, &fr->errors);
		int64_t ticks = weir_kind_is_timestamp(sc->time->type.kind) ? weir_ticks_per_ms(&sc->time->type) : 1;
		if (ticks == 1 && !c->has_null && !c->is_const && fr->sel.count == fr->input->count &&
		    fill_time_plain(fr, c->i64, lowest))
			return;
		name = sc->table->rowtime >= 0 ? sc->table->columns[sc->table->rowtime].name : "event time";
		for (uint32_t i = 0; i < fr->sel.count; i++) {
			uint32_t row = fr->sel.row[i];
			int64_t v = c->i64[c->is_const ? 0 : row];
			if (WEIR_UNLIKELY(ticks != 1))
				v = weir_floor_div(v, ticks);
			if (WEIR_UNLIKELY(weir_col_is_null(c, row)))
				v = records[row].value == NULL ? records[row].timestamp : INT64_MIN;
			fr->time[row] = v;
		}
	} else {
		for (uint32_t i = 0; i < fr->sel.count; i++)
			fr->time[fr->sel.row[i]] = records[fr->sel.row[i]].timestamp;
	}
	int64_t max = WEIR_TIME_UNSET;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < fr->sel.count; i++) {
		uint32_t row = fr->sel.row[i];
		int64_t t = fr->time[row];
		if (WEIR_UNLIKELY(t < lowest || t > time_highest)) {
			weir_row_errors_add(&fr->errors, row, WEIR_REASON_TIMESTAMP, UINT32_MAX, name,
					    t == INT64_MIN ? "no event time"
					    : t < 0        ? "negative event time"
							   : "event time out of range");
			continue;
		}
		max = t > max ? t : max;
		fr->run[row] = max;
		fr->sel.row[kept++] = (uint16_t)row;
	}
	fr->sel.count = kept;
	fr->time_max = max;
}

void weir_fragment_decode(struct weir_fragment *fr, const struct weir_plan *pl)
{
	const struct weir_plan_scan *sc = &pl->scans[fr->scan];
	const struct weir_input *in = fr->input;
	const struct weir_record *records = fr->unwrapped ? fr->unwrapped : in->records;
	weir_scratch_reset(&fr->scratch);
	fr->errors.count = 0;
	memset(fr->refused, 0, sizeof fr->refused);
	if (!fr->unwrapped) {
		fr->sel.count = in->count;
		memcpy(fr->sel.row, fr->rows_all, in->count * sizeof *fr->sel.row);
	}
	fr->value_decoder->decode(fr->value_decoder, records, &fr->sel, fr->cols, &fr->scratch, &fr->errors);
	if (fr->key_decoder)
		fr->key_decoder->decode(fr->key_decoder, in->records, &fr->sel, fr->cols + sc->value_count,
					&fr->scratch, &fr->errors);
	for (uint32_t i = 0; i < sc->meta_count; i++)
		fill_meta(fr, sc->metas[i], &sc->meta_types[i], &fr->cols[sc->value_count + sc->key_count + i]);
	fill_time(fr, sc);
	fr->implausible = 0;
	if (WEIR_UNLIKELY(time_is_implausible(fr->time_max)))
		count_implausible(fr);
}

/* weir_key_by: a record whose key columns are all NULL is refused. */
static void reject_null_keys(struct weir_fragment_branch *fb, const struct weir_plan_stage *st,
			     struct weir_row_errors *errors)
{
	uint32_t kept = 0;
	for (uint32_t k = 0; k < st->key_count; k++)
		if (!fb->out[k]->has_null)
			return;
	for (uint32_t i = 0; i < fb->sel.count; i++) {
		uint32_t row = fb->sel.row[i];
		bool all_null = st->key_count > 0;
		for (uint32_t k = 0; k < st->key_count && all_null; k++)
			all_null = weir_col_is_null(fb->out[k], row);
		if (all_null)
			weir_row_errors_add(errors, row, WEIR_REASON_NULL_KEY, UINT32_MAX, st->column_names[0],
					    "every key column is NULL");
		else
			fb->sel.row[kept++] = (uint16_t)row;
	}
	fb->sel.count = kept;
}

/* The place in sel of the first record without a value. */
static uint32_t first_null_value(const struct weir_fragment *fr, const struct weir_sel *sel)
{
	uint32_t i = 0;
	while (i < sel->count && fr->input->records[sel->row[i]].value != NULL)
		i++;
	return i;
}

static void null_value(uint32_t row, struct weir_row_errors *errors)
{
	weir_row_errors_add(errors, row, WEIR_REASON_NULL, UINT32_MAX, NULL, "null value on a stream");
}

/* Takes the records without a value out of sel. */
static void drop_null_values(const struct weir_fragment *fr, struct weir_sel *sel, struct weir_row_errors *errors)
{
	uint32_t kept = first_null_value(fr, sel);
	for (uint32_t i = kept; i < sel->count; i++) {
		uint32_t row = sel->row[i];
		if (fr->input->records[row].value == NULL)
			null_value(row, errors);
		else
			sel->row[kept++] = (uint16_t)row;
	}
	sel->count = kept;
}

void weir_fragment_valued(const struct weir_fragment *fr, struct weir_sel *sel, struct weir_row_errors *errors)
{
	sel->count = fr->sel.count;
	memcpy(sel->row, fr->sel.row, fr->sel.count * sizeof *sel->row);
	drop_null_values(fr, sel, errors);
}

static void reject_null_values(struct weir_fragment *fr, struct weir_fragment_branch *fb,
			       const struct weir_plan_scan *sc, struct weir_row_errors *errors)
{
	/* A record without a value is NULL in every column of the value, so the first one tells that there is none. */
	if (sc->value_count == 0 || fr->unwrapped || fr->cols[0].has_null)
		drop_null_values(fr, &fb->sel, errors);
}

/* Whether a row leaves the table it is of: it came without a value, its state said so, or the exchange does. */
static bool leaves(const struct weir_fragment *fr, bool scan, uint32_t row)
{
	if (fr->exchange_leaves)
		return fr->exchange_leaves[row] != 0;
	return scan ? fr->input->records[row].value == NULL : fr->rows.op[row] == WEIR_OP_DELETE;
}

/* Into a table: what the filter drops, what came without a value, and what left the table before, is deleted. All rows
 * stay in: their keys say what goes. */
static void mark_deletes(struct weir_fragment *fr, struct weir_fragment_branch *fb, bool scan,
			 struct weir_row_errors *errors)
{
	memset(fb->deletes, 0, WEIR_BATCH_ROWS);
	if (fb->filter) {
		struct weir_sel pass = fb->sel;
		uint32_t before = errors->count;
		memset(fb->deletes, 1, WEIR_BATCH_ROWS);
		weir_program_filter(fb->filter, fr->col_ptrs, &pass, &fr->scratch, errors);
		/* A condition that cannot be computed is not TRUE. */
		errors->count = before;
		for (uint32_t i = 0; i < pass.count; i++)
			fb->deletes[pass.row[i]] = 0;
	}
	for (uint32_t i = 0; i < fb->sel.count; i++) {
		uint32_t row = fb->sel.row[i];
		if (leaves(fr, scan, row))
			fb->deletes[row] = 1;
	}
}

/* Event times of rows of a join that goes by a column. */
static void column_times(struct weir_fragment *fr, struct weir_fragment_branch *fb, const struct weir_expr *time,
			 struct weir_row_errors *errors)
{
	struct weir_keyed *k = &fb->keyed;
	const struct weir_col *c;
	uint32_t kept = 0;
	int64_t ticks = weir_kind_is_timestamp(time->type.kind) ? weir_ticks_per_ms(&time->type) : 1;
	weir_program_run(fb->time, fr->col_ptrs, &fb->sel, &fr->scratch, &c, errors);
	for (uint32_t i = 0; i < fb->sel.count; i++) {
		uint32_t row = fb->sel.row[i];
		int64_t v = c->i64[c->is_const ? 0 : row];
		v = ticks == 1 ? v : weir_floor_div(v, ticks);
		if (weir_col_is_null(c, row) || v > time_highest || v < -time_highest) {
			weir_row_errors_add(errors, row, WEIR_REASON_TIMESTAMP, UINT32_MAX, NULL, "no event time");
			continue;
		}
		k->time[row] = v;
		fb->sel.row[kept++] = (uint16_t)row;
	}
	fb->sel.count = kept;
}

/* Groups the selected rows by the worker that owns their slot, ascending within one. */
static void group_by_owner(struct weir_fragment_branch *fb, const struct weir_routes *routes, uint32_t workers)
{
	const struct weir_keyed *k = &fb->keyed;
	if (workers == 1) {
		memcpy(fb->rows, fb->sel.row, fb->sel.count * sizeof *fb->rows);
		fb->start[0] = 0;
		fb->start[1] = fb->sel.count;
		return;
	}
	const struct weir_route *rt = weir_routes_read(routes);
	uint16_t owner[WEIR_BATCH_ROWS];
	memset(fb->start, 0, (workers + 1) * sizeof *fb->start);
	for (uint32_t i = 0; i < fb->sel.count; i++) {
		owner[i] = rt->owner[k->slot[fb->sel.row[i]]];
		fb->start[owner[i] + 1]++;
	}
	for (uint32_t w = 0; w < workers; w++)
		fb->start[w + 1] += fb->start[w];
	uint32_t at[256];
	WEIR_DASSERT(workers <= 256);
	memcpy(at, fb->start, workers * sizeof *at);
	for (uint32_t i = 0; i < fb->sel.count; i++)
		fb->rows[at[owner[i]]++] = fb->sel.row[i];
}

/* One slot for all rows, four at a time: those behind the last one do not matter. */
static void fill_slots(struct weir_keyed *k, uint16_t slot)
{
	uint64_t four = slot * UINT64_C(0x0001000100010001);
	for (uint32_t r = 0; r < k->count; r += 4)
		memcpy(&k->slot[r], &four, sizeof four);
}

uint32_t weir_fragment_run(struct weir_fragment *fr, const struct weir_fragment_conf *cf, uint32_t i,
			   struct weir_row_errors *errors)
{
	struct weir_fragment_branch *fb = &fr->branches[i];
	const struct weir_plan_branch *br = &cf->plan->branches[fb->branch];
	const struct weir_plan_stage *st = &cf->plan->stages[br->target];
	struct weir_keyed *k = &fb->keyed;
	uint32_t filtered = 0;
	bool scan = br->from == WEIR_FROM_SCAN;
	if (scan) {
		fb->sel.count = fr->sel.count;
		memcpy(fb->sel.row, fr->sel.row, fr->sel.count * sizeof *fr->sel.row);
		k->count = fr->input->count;
	} else {
		weir_sel_all(&fb->sel, fr->rows.count);
		k->count = fr->rows.count;
	}
	if (br->reject_null_value)
		reject_null_values(fr, fb, &cf->plan->scans[fr->scan], errors);
	if (br->table)
		mark_deletes(fr, fb, scan, errors);
	else if (fb->filter)
		filtered = weir_program_filter(fb->filter, fr->col_ptrs, &fb->sel, &fr->scratch, errors);
	weir_program_run(fb->project, fr->col_ptrs, &fb->sel, &fr->scratch, fb->out, errors);
	for (uint32_t c = 0; c < br->expr_count; c++)
		fb->out[c] = weir_col_expand(&fb->expanded[c], fb->out[c], k->count);
	if (scan) {
		memcpy(k->time, fr->time, k->count * sizeof *k->time);
		memcpy(k->run, fr->run, k->count * sizeof *k->run);
	} else {
		memcpy(k->time, fr->rows.time, k->count * sizeof *k->time);
		for (uint32_t r = 0; r < k->count; r++)
			k->run[r] = WEIR_TIME_UNSET; /* stage time moves only after the rows it made final */
	}
	if (fb->time)
		column_times(fr, fb, br->time, errors);
	if (st->reject_null_key || br->needs_key)
		reject_null_keys(fb, st, errors);
	weir_key_encode(fb->out, st->def.key_types, st->key_count, &fb->sel, &fr->scratch, k);
	if (st->exchange == WEIR_EXCHANGE_DIRECT) {
		uint16_t slot = br->global ? 0 : (uint16_t)(fr->input->partition); /* global: all of them */
		fill_slots(k, slot);
	} else if (st->def.shared || st->def.foreign != 0) {
		uint32_t columns = st->def.foreign != 0 ? st->def.foreign : st->def.shared_keys;
		for (uint32_t r = 0; r < fb->sel.count; r++) {
			uint32_t row = fb->sel.row[r];
			uint32_t n = weir_key_prefix(k->key[row], k->key_bytes[row], st->def.key_types, columns);
			k->slot[row] = (uint16_t)weir_hash_slot(weir_hash(k->key[row], n), st->slot_count);
		}
	} else {
		for (uint32_t r = 0; r < fb->sel.count; r++)
			k->slot[fb->sel.row[r]] = (uint16_t)weir_hash_slot(k->hash[fb->sel.row[r]], st->slot_count);
	}
	k->cols = fb->out + st->key_count;
	k->deletes = fb->deletes;
	for (uint32_t r = 0; r < k->count && br->retracts; r++)
		fb->deletes[r] = leaves(fr, scan, r);
	/* What a row was and what it is now stand side by side. */
	for (uint32_t r = 0; r + 1 < k->count && br->retracts && !scan; r++)
		if (fr->rows.op[r] == WEIR_OP_DELETE && fr->rows.op[r + 1] == WEIR_OP_UPDATE)
			fb->deletes[r] = WEIR_REPLACED;
	group_by_owner(fb, cf->routes, cf->worker_count);
	return filtered;
}
