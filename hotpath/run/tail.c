/* tail.c: branches into sinks: rows to encoded results (tail.h). Runs on the worker for stage-0 and CHANGES rows, on
 * snap for closed windows. */
#include "hotpath/run/tail.h"

#include "hotpath/expr/json_text.h"
#include "hotpath/format/base64.h"
#include "hotpath/run/exchange.h"

#include <math.h>
#include <stdlib.h>

enum { OWN_AHEAD = 1536 }; /* bytes: about a dozen rows */

struct weir_tail {
	const struct weir_plan_branch *br;
	const struct weir_plan_sink *sk;
	const struct weir_output *ou;
	void *printer;  /* PRINT */
	bool of_join;   /* it reads a join */
	bool plain;     /* into a topic, a value alone: no key, and head and value say nothing else of their row */
	int64_t gap_ms; /* of the session state it reads, for windowed session keys */
	struct weir_program *filter;
	struct weir_program *project;
	struct weir_program *time;        /* a repartition topic: event time of rows of a join, where it is a column */
	struct weir_program *project_key; /* key columns alone: deletes must not fail on a value expression */
	struct weir_encoder *key_encoder;
	struct weir_encoder *value_encoder;
	struct weir_field *key_fields; /* the encoders borrow them */
	struct weir_field *value_fields;
	const struct weir_col **out;     /* per sink column */
	const struct weir_col **key_out; /* per project_key expression */
	struct weir_col *expanded;       /* per sink column */
	struct weir_col *value_cols; /* what the encoders take: columns side by side; of a changelog op behind them */
	struct weir_col *key_cols;
	struct weir_col *delete_key_cols;
	double *key_numbers;        /* NULL: no key column is a floating point number */
	const struct weir_col **in; /* stage columns as pointers */
	struct weir_sel pass, gone;
	struct weir_col op;          /* a changelog's: what happens to each row */
	bool pairs;                  /* what a row was comes as a row of its own */
	const int64_t *exchange_run; /* a repartition topic: weir_tail_exchange */
	int64_t exchange_before;
	uint32_t upstream;
	bool leaving; /* the row that is written leaves its table */
	uint8_t *leaves;
	int64_t *event_time; /* by time */
	struct weir_row_errors errors;
	struct weir_buf scratch_key, scratch_value;
};

const struct weir_col *weir_col_expand(struct weir_col *to, const struct weir_col *c, uint32_t count)
{
	if (!c->is_const)
		return c;
	if (!to->data)
		weir_col_init(to, c->phys);
	weir_col_clear_nulls(to);
	to->is_const = false;
	if (weir_col_is_null(c, 0)) {
		for (uint32_t i = 0; i < count; i++)
			weir_col_set_null(to, i);
		return to;
	}
	size_t bytes = weir_phys_bytes(c->phys);
	for (uint32_t i = 0; i < count; i++)
		memcpy((uint8_t *)to->data + i * bytes, c->data, bytes);
	return to;
}

static void set_op(struct weir_tail *tl, uint32_t row, const char *op)
{
	tl->op.str[row] = (struct weir_str){(const uint8_t *)op, 2, 0};
}

static enum weir_err make_encoder(struct weir_encoder **out, struct weir_field **kept, const struct weir_plan_sink *sk,
				  const struct weir_format_options *fo, const uint32_t *columns, uint32_t count,
				  const char *strip, struct weir_diag **dg)
{
	struct weir_field *fields = *kept = weir_xcalloc(count + 2, sizeof *fields);
	size_t prefix = strip ? strlen(strip) : 0;
	for (uint32_t i = 0; i < count; i++) {
		const char *name = sk->column_names[columns[i]];
		fields[i].name = prefix && strncmp(name, strip, prefix) == 0 ? name + prefix : name;
		fields[i].type = sk->column_types[columns[i]];
		fields[i].ordinal = i;
	}
	if (weir_format_is_changelog(fo->kind)) {
		fields[count] = (struct weir_field){.name = "op",
						    .type = {.kind = WEIR_KIND_CHAR, .length = 2, .not_null = true},
						    .ordinal = count};
		count++;
	}
	return weir_encoder_create(out, fo, fields, count, dg);
}

enum weir_err weir_tail_create(struct weir_tail **out, const struct weir_plan *pl, uint32_t branch,
			       const struct weir_output *ou, struct weir_diag **dg)
{
	struct weir_tail *tl = weir_xcalloc(1, sizeof *tl);
	const struct weir_plan_branch *br = tl->br = &pl->branches[branch];
	const struct weir_plan_sink *sk = tl->sk = &pl->sinks[br->target];
	tl->ou = ou;
	uint32_t in_count =
		br->from == WEIR_FROM_STAGE ? pl->stages[br->origin].column_count : pl->scans[br->origin].column_count;
	tl->of_join = br->from == WEIR_FROM_STAGE && pl->stages[br->origin].def.kind == WEIR_STATE_JOIN;
	if (br->from == WEIR_FROM_STAGE)
		tl->gap_ms = pl->stages[br->origin].def.gap_ms;
	tl->out = weir_xcalloc(br->expr_count + 1, sizeof *tl->out);
	tl->key_out = weir_xcalloc(br->expr_count + 1, sizeof *tl->key_out);
	tl->expanded = weir_xcalloc(br->expr_count + 1, sizeof *tl->expanded);
	tl->value_cols = weir_xcalloc(sk->value_count + 2, sizeof *tl->value_cols);
	if (sk->changelog) {
		weir_col_init(&tl->op, WEIR_PHYS_STR);
		tl->value_cols[sk->value_count] = tl->op;
	}
	tl->pairs = sk->whole && br->from == WEIR_FROM_STAGE && pl->stages[br->origin].retracts;
	tl->key_cols = weir_xcalloc(sk->key_count + 1, sizeof *tl->key_cols);
	tl->delete_key_cols = weir_xcalloc(sk->key_count + 1, sizeof *tl->delete_key_cols);
	bool any_number = false;
	for (uint32_t k = 0; k < sk->key_count && sk->has_key; k++)
		any_number |= weir_type_phys(&sk->column_types[sk->key_columns[k]]) == WEIR_PHYS_F64;
	if (any_number)
		tl->key_numbers = weir_xcalloc((size_t)2 * sk->key_count * WEIR_BATCH_ROWS, sizeof(double));
	tl->in = weir_xcalloc(in_count + 1, sizeof *tl->in);
	enum weir_err err = weir_program_create(&tl->project, br->exprs, br->expr_count, dg);
	if (err == WEIR_OK && br->filter)
		err = weir_program_create(&tl->filter, &br->filter, 1, dg);
	if (err == WEIR_OK && sk->repartition >= 0) {
		tl->leaves = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *tl->leaves);
		tl->event_time = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *tl->event_time);
	}
	if (err == WEIR_OK && br->time)
		err = weir_program_create(&tl->time, &br->time, 1, dg);
	if (err == WEIR_OK && sk->is_table && sk->has_key) {
		const struct weir_expr **exprs = weir_xcalloc(sk->key_count + 3, sizeof *exprs);
		uint32_t n = 0;
		for (; n < sk->key_count; n++)
			exprs[n] = br->exprs[sk->key_columns[n]];
		if (sk->key_windowed) {
			exprs[n++] = br->exprs[sk->window_start_column];
			if (sk->window_end_column >= 0)
				exprs[n++] = br->exprs[sk->window_end_column];
		}
		err = weir_program_create(&tl->project_key, exprs, n, dg);
		free(exprs);
	}
	tl->plain = ou->kind == WEIR_OUTPUT_TOPIC && !sk->has_key && !sk->changelog && sk->repartition < 0 &&
		    sk->timestamp_column < 0 && sk->headers_column < 0;
	if (err == WEIR_OK && ou->kind == WEIR_OUTPUT_PRINT)
		tl->printer = ou->print_open(ou->ctx);
	if (err == WEIR_OK && ou->kind == WEIR_OUTPUT_TOPIC) {
		const char *prefix = sk->table ? sk->table->options.key_fields_prefix : NULL;
		err = make_encoder(&tl->value_encoder, &tl->value_fields, sk, &sk->value_format, sk->value_columns,
				   sk->value_count, NULL, dg);
		if (err == WEIR_OK && sk->has_key)
			err = make_encoder(&tl->key_encoder, &tl->key_fields, sk, &sk->key_format, sk->key_columns,
					   sk->key_count, prefix, dg);
	}
	if (err != WEIR_OK) {
		weir_tail_destroy(tl);
		return err;
	}
	*out = tl;
	return WEIR_OK;
}

void weir_tail_destroy(struct weir_tail *tl)
{
	if (!tl)
		return;
	if (tl->printer)
		tl->ou->print_close(tl->printer);
	weir_program_destroy(tl->filter);
	weir_program_destroy(tl->project);
	weir_program_destroy(tl->project_key);
	weir_program_destroy(tl->time);
	free(tl->leaves);
	free(tl->event_time);
	if (tl->key_encoder)
		tl->key_encoder->destroy(tl->key_encoder);
	if (tl->value_encoder)
		tl->value_encoder->destroy(tl->value_encoder);
	for (uint32_t i = 0; i < tl->br->expr_count; i++)
		if (tl->expanded[i].data)
			weir_col_fini(&tl->expanded[i]);
	free(tl->out);
	free(tl->key_out);
	free(tl->expanded);
	free(tl->key_fields);
	free(tl->value_fields);
	if (tl->op.data)
		weir_col_fini(&tl->op);
	free(tl->value_cols);
	free(tl->key_cols);
	free(tl->delete_key_cols);
	free(tl->key_numbers);
	free(tl->in);
	weir_buf_fini(&tl->scratch_key);
	weir_buf_fini(&tl->scratch_value);
	free(tl);
}

void weir_result_put(struct weir_buf *out, struct weir_slice key, struct weir_slice value, struct weir_slice headers,
		     uint32_t header_count, int64_t timestamp, int32_t partition)
{
	struct weir_result head = {.key_bytes = key.data ? (uint32_t)key.bytes : UINT32_MAX,
				   .value_bytes = value.data ? (uint32_t)value.bytes : UINT32_MAX,
				   .headers_bytes = (uint32_t)headers.bytes,
				   .header_count = header_count,
				   .timestamp = timestamp,
				   .partition = partition};
	weir_buf_put(out, &head, sizeof head);
	if (key.data)
		weir_buf_put(out, key.data, key.bytes);
	if (value.data)
		weir_buf_put(out, value.data, value.bytes);
	weir_buf_put(out, headers.data, headers.bytes);
}

size_t weir_result_get(const struct weir_buf *b, size_t at, struct weir_result *head, const uint8_t **key,
		       const uint8_t **value, const uint8_t **headers)
{
	memcpy(head, b->data + at, sizeof *head);
	at += sizeof *head;
	*key = head->key_bytes == UINT32_MAX ? NULL : b->data + at;
	at += *key ? head->key_bytes : 0;
	*value = head->value_bytes == UINT32_MAX ? NULL : b->data + at;
	at += *value ? head->value_bytes : 0;
	*headers = b->data + at;
	return at + head->headers_bytes;
}

static int64_t to_ms(const struct weir_col *c, const struct weir_type *t, uint32_t row)
{
	return weir_floor_div(c->i64[row], weir_ticks_per_ms(t));
}

/* Key bytes of a row: the encoder's, and the window's bounds behind them where the key is windowed. */
static void put_key(struct weir_tail *tl, const struct weir_col *key_cols, const struct weir_col *start,
		    const struct weir_col *end, uint32_t row, struct weir_buf *out)
{
	const struct weir_plan_sink *sk = tl->sk;
	tl->key_encoder->encode(tl->key_encoder, key_cols, row, out);
	if (!sk->key_windowed)
		return;
	uint8_t bound[8];
	if (end && tl->gap_ms > 0) { /* a session: its end as Kafka Streams writes it is the last record's time */
		weir_store_be64(bound,
				(uint64_t)(to_ms(end, &sk->column_types[sk->window_end_column], row) - tl->gap_ms));
		weir_buf_put(out, bound, sizeof bound);
	}
	weir_store_be64(bound, (uint64_t)to_ms(start, &sk->column_types[sk->window_start_column], row));
	weir_buf_put(out, bound, sizeof bound);
}

/* RAW and KAFKA have no bytes for NULL: a Kafka null stands for it. */
static bool is_null_payload(const struct weir_encoder *e, const struct weir_col *cols, uint32_t row)
{
	return e->null_payload && weir_col_is_null(cols, row);
}

static void put_varint(struct weir_buf *b, int64_t v)
{
	uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
	for (; z >= 0x80; z >>= 7)
		weir_buf_put_byte(b, (uint8_t)(z | 0x80));
	weir_buf_put_byte(b, (uint8_t)z);
}

/* Kafka's header bytes of a MAP<STRING, BYTES>: compact JSON whose values are base64. Returns how many there are. */
static uint32_t put_headers(struct weir_str map, struct weir_buf *scratch, struct weir_buf *out)
{
	struct weir_json_text_slice name, value;
	uint32_t count = 0;
	size_t used;
	for (size_t at = 1; at < map.bytes && weir_json_text_take(map.data + at, map.bytes - at, &name, &used);) {
		at += used + 1; /* the colon */
		if (at >= map.bytes || !weir_json_text_take(map.data + at, map.bytes - at, &value, &used))
			break;
		at += used + 1; /* a comma or the end */
		scratch->bytes = 0;
		weir_buf_room(scratch, (size_t)name.bytes + value.bytes + weir_base64_data_bytes_max(value.bytes));
		uint8_t *text = scratch->data, *data = text + name.bytes + value.bytes;
		uint32_t bytes = weir_json_text_unescape(&name, text);
		put_varint(out, bytes);
		weir_buf_put(out, text, bytes);
		if (value.form == WEIR_JSON_TEXT_STRING) {
			bytes = weir_json_text_unescape(&value, text);
			size_t data_bytes = 0;
			if (!weir_base64_decode((const char *)text, bytes, data, &data_bytes))
				data_bytes = 0;
			put_varint(out, (int64_t)data_bytes);
			weir_buf_put(out, data, data_bytes);
		} else {
			put_varint(out, -1);
		}
		count++;
	}
	return count;
}

static int64_t exchange_time(const struct weir_tail *tl, uint32_t row)
{
	return tl->exchange_run ? weir_max_i64(tl->exchange_run[row], tl->exchange_before) : WEIR_TIME_UNSET;
}

static void print_row(struct weir_tail *tl, uint32_t row, enum weir_op op, int64_t time, struct weir_buf *out)
{
	tl->scratch_value.bytes = 0;
	tl->ou->print(tl->printer, tl->value_cols, row, op, &tl->scratch_value);
	weir_result_put(out, (struct weir_slice){0},
			(struct weir_slice){tl->scratch_value.data, tl->scratch_value.bytes}, (struct weir_slice){0}, 0,
			time, 0);
}

/* Field by field: read back as a whole, head would have to wait until all stores before it have left the store buffer,
 * those of results too, whose lines another core may hold. */
static inline void put_head(uint8_t *to, struct weir_result head)
{
	memcpy(to + offsetof(struct weir_result, key_bytes), &head.key_bytes, sizeof head.key_bytes);
	memcpy(to + offsetof(struct weir_result, value_bytes), &head.value_bytes, sizeof head.value_bytes);
	memcpy(to + offsetof(struct weir_result, headers_bytes), &head.headers_bytes, sizeof head.headers_bytes);
	memcpy(to + offsetof(struct weir_result, header_count), &head.header_count, sizeof head.header_count);
	memcpy(to + offsetof(struct weir_result, timestamp), &head.timestamp, sizeof head.timestamp);
	memcpy(to + offsetof(struct weir_result, partition), &head.partition, sizeof head.partition);
	memcpy(to + offsetof(struct weir_result, pad), &head.pad, sizeof head.pad);
}

/* Encodes row of tl->out (or, deleted, of the key columns alone) as one result. Reserves the head and fills it in
 * after, so that key and value are written straight into out. */
static void put_row(struct weir_tail *tl, uint32_t row, bool deleted, int64_t time, uint32_t slot, struct weir_buf *out)
{
	const struct weir_plan_sink *sk = tl->sk;
	size_t at = out->bytes;
	struct weir_result head = {
		.key_bytes = UINT32_MAX, .value_bytes = UINT32_MAX, .timestamp = time, .partition = -1};
	weir_buf_room(out, sizeof head);
	out->bytes += sizeof head;
	const struct weir_col *key_cols = deleted ? tl->delete_key_cols : tl->key_cols;
	if (sk->has_key && (sk->key_windowed || !is_null_payload(tl->key_encoder, key_cols, row))) {
		size_t from = out->bytes;
		const struct weir_col *start, *end;
		if (deleted) {
			start = sk->key_windowed ? tl->key_out[sk->key_count] : NULL;
			end = sk->key_windowed && sk->window_end_column >= 0 ? tl->key_out[sk->key_count + 1] : NULL;
		} else {
			start = sk->key_windowed ? tl->out[sk->window_start_column] : NULL;
			end = sk->key_windowed && sk->window_end_column >= 0 ? tl->out[sk->window_end_column] : NULL;
		}
		put_key(tl, key_cols, start, end, row, out);
		head.key_bytes = (uint32_t)(out->bytes - from);
	} else {
		/* Rows without a key belong together where the next stage groups by nothing. */
		head.partition = sk->repartition >= 0 ? 0 : (int32_t)(slot % tl->ou->partitions);
	}
	if (!deleted) {
		size_t from = out->bytes;
		if (!is_null_payload(tl->value_encoder, tl->value_cols, row)) {
			if (WEIR_UNLIKELY(sk->repartition >= 0))
				weir_exchange_head(out, tl->upstream, exchange_time(tl, row), time, tl->leaving);
			tl->value_encoder->encode(tl->value_encoder, tl->value_cols, row, out);
			head.value_bytes = (uint32_t)(out->bytes - from);
		}
		if (sk->timestamp_column >= 0 && !weir_col_is_null(tl->out[sk->timestamp_column], row))
			head.timestamp =
				to_ms(tl->out[sk->timestamp_column], &sk->column_types[sk->timestamp_column], row);
		from = out->bytes;
		if (sk->headers_column >= 0 && !weir_col_is_null(tl->out[sk->headers_column], row))
			head.header_count = put_headers(tl->out[sk->headers_column]->str[row], &tl->scratch_value, out);
		head.headers_bytes = (uint32_t)(out->bytes - from);
	}
	put_head(out->data + at, head);
}

/* put_row of a plain tail. */
WEIR_INLINE void put_plain(struct weir_tail *tl, uint32_t row, int64_t time, int32_t partition, struct weir_buf *out)
{
	struct weir_result head = {
		.key_bytes = UINT32_MAX, .value_bytes = UINT32_MAX, .timestamp = time, .partition = partition};
	size_t at = out->bytes;
	weir_buf_room(out, sizeof head);
	out->bytes += sizeof head;
	if (WEIR_LIKELY(!is_null_payload(tl->value_encoder, tl->value_cols, row))) {
		tl->value_encoder->encode(tl->value_encoder, tl->value_cols, row, out);
		head.value_bytes = (uint32_t)(out->bytes - at - sizeof head);
	}
	put_head(out->data + at, head);
}

/* Takes rows out of sel that have a NULL where the sink declares NOT NULL. */
static void require_values(struct weir_tail *tl, struct weir_sel *sel)
{
	const struct weir_plan_sink *sk = tl->sk;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < sel->count; i++) {
		uint16_t row = sel->row[i];
		uint32_t at = 0;
		while (at < sk->required_count && !weir_col_is_null(tl->out[sk->required[at]], row))
			at++;
		if (at == sk->required_count)
			sel->row[kept++] = row;
		else
			weir_row_errors_add(&tl->errors, row, WEIR_REASON_NULL, UINT32_MAX,
					    sk->column_names[sk->required[at]], "NULL in a NOT NULL column");
	}
	sel->count = kept;
}

/* Numbers that are one key to the engine are one key in the topic: 0.0 and -0.0, and any NaN. Else a table's row would
 * stay there under the key that it had before, and a group's rows go to several partitions. */
static struct weir_col key_col(struct weir_tail *tl, const struct weir_col *from, const struct weir_sel *sel,
			       uint32_t place)
{
	struct weir_col to = *from;
	if (WEIR_LIKELY(tl->key_numbers == NULL || from->phys != WEIR_PHYS_F64))
		return to;
	to.f64 = tl->key_numbers + (size_t)place * WEIR_BATCH_ROWS;
	for (uint32_t i = 0; i < sel->count; i++) {
		uint32_t row = from->is_const ? 0 : sel->row[i];
		double v = from->f64[row];
		to.f64[row] = v != v ? (double)NAN : v + 0.0; /* -0.0 + 0.0 is 0.0 */
	}
	return to;
}

/* Runs the projection over sel and lines its columns up for the encoders. */
static void project(struct weir_tail *tl, const struct weir_col *const *in, struct weir_sel *sel, uint32_t count,
		    struct weir_scratch *scratch)
{
	const struct weir_plan_sink *sk = tl->sk;
	weir_program_run(tl->project, in, sel, scratch, tl->out, &tl->errors);
	for (uint32_t c = 0; c < tl->br->expr_count; c++)
		tl->out[c] = weir_col_expand(&tl->expanded[c], tl->out[c], count);
	if (sk->required_count)
		require_values(tl, sel);
	for (uint32_t i = 0; i < sk->value_count; i++)
		tl->value_cols[i] = *tl->out[sk->value_columns[i]];
	for (uint32_t i = 0; i < sk->key_count; i++)
		tl->key_cols[i] = key_col(tl, tl->out[sk->key_columns[i]], sel, i);
}

void weir_tail_exchange(struct weir_tail *tl, const int64_t *run, int64_t before, uint32_t upstream)
{
	tl->exchange_before = before;
	tl->exchange_run = run;
	tl->upstream = upstream;
}

/* Filters sel and runs the projection over what passes (tl->pass). */
static struct weir_tail_done pass_rows(struct weir_tail *tl, const struct weir_col *const *in,
				       const struct weir_sel *sel, struct weir_scratch *scratch)
{
	struct weir_tail_done done = {.errors = &tl->errors, .passed = &tl->pass};
	tl->errors.count = 0;
	tl->pass.count = sel->count;
	memcpy(tl->pass.row, sel->row, sel->count * sizeof *sel->row);
	if (tl->filter)
		done.filtered = weir_program_filter(tl->filter, in, &tl->pass, scratch, &tl->errors);
	if (tl->pass.count != 0)
		project(tl, in, &tl->pass, tl->pass.row[tl->pass.count - 1] + 1u, scratch);
	done.results = tl->pass.count;
	return done;
}

WEIR_INLINE void put_insert(struct weir_tail *tl, uint32_t row, int64_t time, uint32_t slot, struct weir_buf *out)
{
	if (tl->sk->changelog)
		set_op(tl, row, "+I");
	if (tl->ou->kind == WEIR_OUTPUT_TOPIC)
		put_row(tl, row, false, time, slot, out);
	else if (tl->ou->kind == WEIR_OUTPUT_PRINT)
		print_row(tl, row, WEIR_OP_INSERT, time, out);
}

/* Asks, for writing, for lines of out from *own on that results are about to be written to: the buffer comes back from
 * snap, whose core has them, and a row's stores would wait for each. A write prefetch is part of x86-64, though the
 * compiler makes one of the builtin for newer CPUs only; where there is none it does nothing. */
WEIR_INLINE void own_ahead(const struct weir_buf *out, size_t *own)
{
	size_t to = out->bytes + OWN_AHEAD < out->capacity ? out->bytes + OWN_AHEAD : out->capacity;
	for (; *own < to; *own += WEIR_CACHE_LINE) {
#if defined(__x86_64__)
		__asm__ volatile("prefetchw %0" ::"m"(out->data[*own]));
#else
		__builtin_prefetch(&out->data[*own], 1, 3);
#endif
	}
}

/* Where it starts; a few rows are not worth it. */
static size_t own_from(const struct weir_tail_done *done, const struct weir_buf *out)
{
	return done->results >= 16 ? out->bytes : SIZE_MAX;
}

struct weir_tail_done weir_tail_stream(struct weir_tail *tl, const struct weir_col *const *in,
				       const struct weir_sel *sel, const int64_t *time, uint32_t slot,
				       struct weir_scratch *scratch, struct weir_buf *out)
{
	struct weir_tail_done done = pass_rows(tl, in, sel, scratch);
	if (tl->ou->kind == WEIR_OUTPUT_BLACKHOLE)
		return done;
	size_t own = own_from(&done, out);
	int32_t partition = tl->plain ? (int32_t)(slot % tl->ou->partitions) : 0;
	for (uint32_t i = 0; i < done.results; i++) {
		uint32_t row = tl->pass.row[i];
		own_ahead(out, &own);
		if (tl->plain)
			put_plain(tl, row, time[row], partition, out);
		else
			put_insert(tl, row, time[row], slot, out);
	}
	return done;
}

/* Brings rows of one slot together, in their order, so that snap, which reads slot by slot, finds results side by side;
 * slots that agree in their low bits may be mixed. Cost: about 10 instructions a row. */
static void group_by_slot(struct weir_sel *sel, const uint16_t *slot)
{
	enum { GROUPS = 64, FEW = 32 };
	uint16_t place[GROUPS] = {0}, row[WEIR_BATCH_ROWS];
	if (sel->count < FEW)
		return;
	for (uint32_t i = 0; i < sel->count; i++)
		place[slot[sel->row[i]] % GROUPS]++;
	if (place[slot[sel->row[0]] % GROUPS] == sel->count)
		return;
	for (uint32_t g = 0, at = 0; g < GROUPS; g++) {
		uint32_t n = place[g];
		place[g] = (uint16_t)at;
		at += n;
	}
	memcpy(row, sel->row, sel->count * sizeof *row);
	for (uint32_t i = 0; i < sel->count; i++)
		sel->row[place[slot[row[i]] % GROUPS]++] = row[i];
}

struct weir_tail_done weir_tail_spread(struct weir_tail *tl, const struct weir_col *const *in,
				       const struct weir_sel *sel, const int64_t *time, const uint16_t *slot,
				       struct weir_scratch *scratch, struct weir_buf *out, uint64_t *at)
{
	struct weir_tail_done done = pass_rows(tl, in, sel, scratch);
	if (tl->ou->kind == WEIR_OUTPUT_BLACKHOLE)
		return done;
	group_by_slot(&tl->pass, slot);
	size_t own = own_from(&done, out);
	uint32_t slot_before = UINT32_MAX;
	int32_t partition = 0;
	for (uint32_t i = 0; i < done.results; i++) {
		uint32_t row = tl->pass.row[i];
		at[i] = out->bytes;
		own_ahead(out, &own);
		if (WEIR_UNLIKELY(!tl->plain)) {
			put_insert(tl, row, time[row], slot[row], out);
			continue;
		}
		if (slot[row] != slot_before) {
			slot_before = slot[row];
			partition = (int32_t)(slot_before % tl->ou->partitions);
		}
		put_plain(tl, row, time[row], partition, out);
	}
	return done;
}

bool weir_tail_exchanges(const struct weir_tail *tl)
{
	return tl->sk->repartition >= 0;
}

/* Which rows leave the table they are of (tl->leaves), and which pass (tl->pass): into a table all do. */
static uint32_t split_exchange(struct weir_tail *tl, const struct weir_exchange_rows *er, struct weir_scratch *scratch)
{
	uint32_t filtered = 0;
	tl->pass.count = er->sel->count;
	memcpy(tl->pass.row, er->sel->row, er->sel->count * sizeof *er->sel->row);
	memset(tl->leaves, 0, WEIR_BATCH_ROWS);
	if (tl->filter)
		filtered = weir_program_filter(tl->filter, er->in, &tl->pass, scratch, &tl->errors);
	if (tl->br->table) {
		tl->errors.count = 0; /* a condition that cannot be computed is not TRUE */
		for (uint32_t i = 0; i < er->sel->count && tl->filter; i++)
			tl->leaves[er->sel->row[i]] = 1;
		for (uint32_t i = 0; i < tl->pass.count && tl->filter; i++)
			tl->leaves[tl->pass.row[i]] = 0;
		tl->pass.count = er->sel->count;
		memcpy(tl->pass.row, er->sel->row, er->sel->count * sizeof *er->sel->row);
		filtered = 0;
	}
	for (uint32_t i = 0; i < tl->pass.count && (tl->br->table || tl->br->retracts); i++) {
		uint32_t row = tl->pass.row[i];
		if (er->records ? er->records[row].value == NULL : er->op && er->op[row] == WEIR_OP_DELETE)
			tl->leaves[row] = 1;
	}
	return filtered;
}

/* Event times of the rows that pass; those that have none are refused. */
static const int64_t *exchange_event_times(struct weir_tail *tl, const struct weir_exchange_rows *er,
					   struct weir_scratch *scratch)
{
	const struct weir_col *c;
	if (!tl->time)
		return er->time;
	const struct weir_type *type = &tl->br->time->type;
	uint32_t kept = 0;
	weir_program_run(tl->time, er->in, &tl->pass, scratch, &c, &tl->errors);
	for (uint32_t i = 0; i < tl->pass.count; i++) {
		uint32_t row = tl->pass.row[i];
		if (weir_col_is_null(c, row)) {
			weir_row_errors_add(&tl->errors, row, WEIR_REASON_TIMESTAMP, UINT32_MAX, NULL, "no event time");
			continue;
		}
		int64_t v = c->i64[c->is_const ? 0 : row];
		tl->event_time[row] =
			weir_kind_is_timestamp(type->kind) ? weir_floor_div(v, weir_ticks_per_ms(type)) : v;
		tl->pass.row[kept++] = (uint16_t)row;
	}
	tl->pass.count = kept;
	return tl->event_time;
}

struct weir_tail_done weir_tail_send(struct weir_tail *tl, const struct weir_exchange_rows *er,
				     struct weir_scratch *scratch, struct weir_buf *out)
{
	struct weir_tail_done done = {.errors = &tl->errors};
	tl->errors.count = 0;
	done.filtered = split_exchange(tl, er, scratch);
	const int64_t *time = exchange_event_times(tl, er, scratch);
	if (tl->pass.count == 0)
		return done;
	project(tl, er->in, &tl->pass, tl->pass.row[tl->pass.count - 1] + 1u, scratch);
	for (uint32_t i = 0; i < tl->pass.count; i++) {
		uint32_t row = tl->pass.row[i];
		tl->leaving = tl->leaves[row] != 0;
		put_row(tl, row, false, time[row], 0, out);
		if (tl->br->table && er->entry && er->entry[row] && er->op[row] != WEIR_OP_DELETE)
			weir_slot_set_emitted(er->sl, er->entry[row], true);
	}
	tl->leaving = false;
	done.results = tl->pass.count;
	return done;
}

/* Leaves in sel what is in other, too. */
static void keep_common(struct weir_sel *sel, const struct weir_sel *other)
{
	uint32_t kept = 0;
	for (uint32_t i = 0, k = 0; i < sel->count; i++) {
		while (k < other->count && other->row[k] < sel->row[i])
			k++;
		if (k < other->count && other->row[k] == sel->row[i])
			sel->row[kept++] = sel->row[i];
	}
	sel->count = kept;
}

/* Whether the key that tl->delete_key_cols has for row is none. */
static bool has_no_key(const struct weir_tail *tl, uint32_t row)
{
	for (uint32_t k = 0; k < tl->sk->key_count; k++)
		if (!weir_col_is_null(&tl->delete_key_cols[k], row))
			return false;
	return true;
}

/* Splits the rows: those that pass go to tl->pass; those that are deleted, or fail the filter after having been
 * emitted, to tl->gone; the rest are dropped. */
static uint32_t split_changes(struct weir_tail *tl, struct weir_slot *sl, struct weir_rows *rows)
{
	tl->pass.count = tl->gone.count = 0;
	for (uint32_t i = 0; i < rows->count; i++)
		if (rows->op[i] != WEIR_OP_DELETE)
			tl->pass.row[tl->pass.count++] = (uint16_t)i;
	uint32_t filtered = 0;
	bool in_doubt = weir_slot_in_doubt(sl);
	if (tl->filter)
		filtered = weir_program_filter(tl->filter, tl->in, &tl->pass, &rows->scratch, &tl->errors);
	for (uint32_t i = 0, p = 0; i < rows->count; i++) {
		bool pass = p < tl->pass.count && tl->pass.row[p] == i;
		p += pass;
		bool gone =
			rows->op[i] == WEIR_OP_DELETE ||
			(!pass && (rows->op[i] == WEIR_OP_UPDATE || (in_doubt && weir_slot_may_stand(rows->entry[i]))));
		if (gone)
			tl->gone.row[tl->gone.count++] = (uint16_t)i;
		if (rows->op[i] != WEIR_OP_DELETE && rows->entry[i])
			weir_slot_set_emitted(sl, rows->entry[i], pass);
	}
	return filtered;
}

/* A changelog of what rows were and are, side by side: each passes the filter by itself. */
static struct weir_tail_done put_pairs(struct weir_tail *tl, struct weir_rows *rows, uint32_t slot,
				       struct weir_buf *out)
{
	struct weir_tail_done done = {.errors = &tl->errors};
	weir_sel_all(&tl->pass, rows->count);
	if (tl->filter)
		done.filtered = weir_program_filter(tl->filter, tl->in, &tl->pass, &rows->scratch, &tl->errors);
	if (tl->pass.count == 0)
		return done;
	project(tl, tl->in, &tl->pass, rows->count, &rows->scratch);
	for (uint32_t i = 0; i < tl->pass.count; i++) {
		uint32_t row = tl->pass.row[i];
		bool was = rows->op[row] == WEIR_OP_DELETE;
		/* The other one of the pair, if it passes. */
		bool next =
			i + 1 < tl->pass.count && tl->pass.row[i + 1] == row + 1 && rows->op[row + 1] == WEIR_OP_UPDATE;
		bool before = i > 0 && tl->pass.row[i - 1] + 1u == row && rows->op[row - 1] == WEIR_OP_DELETE;
		bool update = rows->op[row] == WEIR_OP_UPDATE && before;
		if (tl->ou->kind == WEIR_OUTPUT_TOPIC) {
			set_op(tl, row, was ? (next ? "-U" : "-D") : update ? "+U" : "+I");
			put_row(tl, row, false, rows->time[row], slot, out);
		} else if (tl->ou->kind == WEIR_OUTPUT_PRINT) {
			print_row(tl, row,
				  was      ? (next ? WEIR_OP_BEFORE : WEIR_OP_DELETE)
				  : update ? WEIR_OP_UPDATE
					   : WEIR_OP_INSERT,
				  rows->time[row], out);
		}
	}
	done.results = tl->pass.count;
	return done;
}

struct weir_tail_done weir_tail_changes(struct weir_tail *tl, struct weir_slot *sl, struct weir_rows *rows,
					uint32_t slot, struct weir_buf *out)
{
	struct weir_tail_done done = {.errors = &tl->errors};
	tl->errors.count = 0;
	for (uint32_t c = 0; c < rows->col_count; c++)
		tl->in[c] = &rows->cols[c];
	if (tl->pairs)
		return put_pairs(tl, rows, slot, out);
	done.filtered = split_changes(tl, sl, rows);
	if (tl->ou->kind == WEIR_OUTPUT_BLACKHOLE) {
		done.results = tl->pass.count + tl->gone.count;
		return done;
	}
	bool whole = tl->ou->kind == WEIR_OUTPUT_PRINT || tl->sk->changelog; /* rows that go are shown, too */
	if (whole) {
		struct weir_sel all;
		weir_sel_all(&all, rows->count);
		project(tl, tl->in, &all, rows->count, &rows->scratch);
		keep_common(&tl->pass, &all);
		keep_common(&tl->gone, &all);
	} else {
		if (tl->pass.count)
			project(tl, tl->in, &tl->pass, rows->count, &rows->scratch);
		if (tl->gone.count && tl->project_key) {
			struct weir_sel gone = tl->gone;
			weir_program_run(tl->project_key, tl->in, &gone, &rows->scratch, tl->key_out, &tl->errors);
			for (uint32_t k = 0; k < tl->sk->key_count; k++)
				tl->delete_key_cols[k] = key_col(tl, tl->key_out[k], &gone, tl->sk->key_count + k);
		}
	}
	for (uint32_t i = 0, p = 0, g = 0; i < rows->count; i++) {
		bool pass = p < tl->pass.count && tl->pass.row[p] == i;
		bool gone = g < tl->gone.count && tl->gone.row[g] == i;
		p += pass;
		g += gone;
		if (!pass && !gone)
			continue;
		/* Made of sides that are not there: no row of the sink can have had it. */
		if (gone && tl->of_join && weir_slot_in_doubt(sl) && has_no_key(tl, i))
			continue;
		if (tl->sk->changelog)
			set_op(tl, i, gone ? "-D" : rows->op[i] == WEIR_OP_UPDATE ? "+U" : "+I");
		if (tl->ou->kind == WEIR_OUTPUT_TOPIC) {
			put_row(tl, i, gone && !whole, rows->time[i], slot, out);
		} else {
			print_row(tl, i, gone ? WEIR_OP_DELETE : (enum weir_op)rows->op[i], rows->time[i], out);
		}
		done.results++;
	}
	return done;
}
