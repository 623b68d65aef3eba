/* user.c: the program's own functions: calls and results as expressions, and the batch as such a function sees it
 * (user.h; weir.h has the public side). A function writes into columns of its call site, which the results copy from:
 * what they hand on must be a register of the program. @thread worker or snap, except where user.h says init. */
#include "hotpath/expr/user.h"

#include <stdlib.h>

#include "hotpath/core/mem.h"
#include "hotpath/core/utf8.h"
#include "hotpath/format/format.h"
#include "weir/weir.h"

/* Rows of results that a function can have emitted before they are encoded; the place behind them takes what a function
 * writes that has emitted nothing. JSON of one batch: beyond it records are refused. */
enum { EMITTED_MAX = WEIR_BATCH_ROWS - 1, FLAT_BYTES_MAX = 64 << 20 };

struct flat {
	struct weir_encoder *encoder;
	struct weir_field *fields;
	struct weir_buf json; /* the arrays of the batch, one behind the other */
	uint32_t emitted;
	uint16_t row[WEIR_BATCH_ROWS];  /* of each emitted one: the row it belongs to */
	uint32_t from[WEIR_BATCH_ROWS]; /* by row: where its array begins and ends in json; equal: it has none */
	uint32_t to[WEIR_BATCH_ROWS];
	uint32_t last; /* row of the last one */
};

struct weir_batch {
	const struct weir_user_function *fn;
	const struct weir_kernel *k; /* of the call that runs */
	const struct weir_type *in_types;
	uint32_t in_count;
	struct weir_col *constant;  /* arguments that are constants, as columns; made on first use */
	const struct weir_col **in; /* arguments without constants */
	struct weir_col *out;
	uint64_t refused[WEIR_NULL_WORDS];
	uint64_t bound[WEIR_NULL_WORDS]; /* rows of this run: no others are written */
	struct flat *flat;               /* of a call with any number of rows; else NULL */
};

static const struct weir_user_function *function_of(const struct weir_expr *e)
{
	return e->fn_data;
}

static void *user_open(const struct weir_expr *e)
{
	struct weir_batch *b = weir_xcalloc(1, sizeof *b);
	struct weir_type *types = weir_xcalloc(e->arg_count + 1, sizeof *types);
	b->fn = function_of(e);
	b->in_count = e->arg_count;
	b->in_types = types;
	for (uint32_t i = 0; i < e->arg_count; i++)
		types[i] = e->args[i]->type;
	b->constant = weir_xcalloc(e->arg_count + 1, sizeof *b->constant);
	b->in = weir_xcalloc(e->arg_count + 1, sizeof *b->in);
	b->out = weir_xcalloc(b->fn->out_count + 1, sizeof *b->out);
	for (uint32_t i = 0; i < b->fn->out_count; i++)
		weir_col_init(&b->out[i], weir_type_phys(&b->fn->out_types[i]));
	return b;
}

static void user_close(void *state)
{
	struct weir_batch *b = state;
	for (uint32_t i = 0; i < b->in_count; i++)
		if (b->constant[i].data != NULL)
			weir_col_fini(&b->constant[i]);
	for (uint32_t i = 0; i < b->fn->out_count; i++)
		weir_col_fini(&b->out[i]);
	if (b->flat != NULL) {
		if (b->flat->encoder != NULL)
			b->flat->encoder->destroy(b->flat->encoder);
		free(b->flat->fields);
		weir_buf_fini(&b->flat->json);
		free(b->flat);
	}
	free((void *)(uintptr_t)b->in_types);
	free(b->constant);
	free(b->in);
	free(b->out);
	free(b);
}

/* A constant for every row: the function is spared the difference. */
static const struct weir_col *spread(struct weir_col *to, const struct weir_col *c)
{
	if (to->data == NULL)
		weir_col_init(to, c->phys);
	weir_col_clear_nulls(to);
	size_t bytes = weir_phys_bytes(c->phys);
	for (uint32_t i = 0; i < WEIR_BATCH_ROWS; i++) {
		if (weir_col_is_null(c, 0))
			weir_col_set_null(to, i);
		memcpy((uint8_t *)to->data + i * bytes, c->data, bytes);
	}
	return to;
}

/* What a function does not write is 0, FALSE or the empty string: never what an earlier batch left. */
static void clear_results(struct weir_batch *b, const struct weir_kernel *k)
{
	for (uint32_t o = 0; o < b->fn->out_count; o++) {
		struct weir_col *c = &b->out[o];
		weir_col_clear_nulls(c);
		if (c->phys == WEIR_PHYS_STR)
			for (uint32_t i = 0; i < k->count; i++)
				c->str[k->row[i]] = (struct weir_str){(const uint8_t *)"", 0, 0};
		else
			memset(c->data, 0, weir_phys_bytes(c->phys) * (k->row[k->count - 1] + 1u));
	}
}

/* Integers of a type are between -limit - 1 and limit, decimals between -limit and limit; others have none. */
static void limit_of(const struct weir_type *t, int64_t *least, int64_t *most)
{
	switch (t->kind) {
	case WEIR_KIND_TINYINT:
		*most = INT8_MAX;
		break;
	case WEIR_KIND_SMALLINT:
		*most = INT16_MAX;
		break;
	case WEIR_KIND_INT:
		*most = INT32_MAX;
		break;
	case WEIR_KIND_DECIMAL:
		*most = 1;
		for (uint8_t i = 0; i < t->precision; i++)
			*most *= 10;
		*most -= 1;
		*least = -*most;
		return;
	default:
		return;
	}
	*least = -*most - 1;
}

/* Later steps rely on values that their types can hold: value number `at` of a result, which belongs to a row. */
static void check_value(struct weir_batch *b, uint32_t result, uint32_t at, uint32_t row, int64_t least, int64_t most)
{
	const struct weir_type *t = &b->fn->out_types[result];
	const struct weir_col *c = &b->out[result];
	if (weir_col_is_null(c, at)) {
		if (t->not_null)
			weir_batch_refuse(b, row, "a result is NULL, its type is NOT NULL");
	} else if (c->phys == WEIR_PHYS_U8) {
		c->u8[at] = c->u8[at] != 0;
	} else if (WEIR_UNLIKELY(c->phys == WEIR_PHYS_I64 && (c->i64[at] < least || c->i64[at] > most))) {
		weir_batch_refuse(b, row, "a result is out of its type's range");
	}
}

static void check_result(struct weir_batch *b, uint32_t result)
{
	int64_t least = INT64_MIN, most = INT64_MAX;
	limit_of(&b->fn->out_types[result], &least, &most);
	for (uint32_t i = 0; i < b->k->count; i++)
		check_value(b, result, b->k->row[i], b->k->row[i], least, most);
}

/* The same of the rows that have been emitted. */
static void check_emitted(struct weir_batch *b)
{
	for (uint32_t o = 0; o < b->fn->out_count; o++) {
		int64_t least = INT64_MIN, most = INT64_MAX;
		limit_of(&b->fn->out_types[o], &least, &most);
		for (uint32_t i = 0; i < b->flat->emitted; i++)
			check_value(b, o, i, b->flat->row[i], least, most);
	}
}

/* The rows that a function is called for. */
static void begin_rows(struct weir_batch *b, struct weir_kernel *k)
{
	b->k = k;
	for (uint32_t i = 0; i < b->in_count; i++)
		b->in[i] = k->in[i]->is_const ? spread(&b->constant[i], k->in[i]) : k->in[i];
	memset(b->refused, 0, sizeof b->refused);
	memset(b->bound, 0, sizeof b->bound);
	for (uint32_t i = 0; i < k->count; i++)
		b->bound[k->row[i] >> 6] |= UINT64_C(1) << (k->row[i] & 63);
}

static void user_kernel(struct weir_kernel *k)
{
	struct weir_batch *b = k->state;
	begin_rows(b, k);
	clear_results(b, k);
	b->fn->run(b, b->fn->ctx);
	for (uint32_t o = 0; o < b->fn->out_count; o++)
		check_result(b, o);
	b->k = NULL;
	/* The results find their columns by the call's own column, whose rows mean nothing else. */
	k->out->str[0] = (struct weir_str){(const uint8_t *)b, sizeof b, 0};
}

/* ---- any number of rows for each ---- */

static void *flat_open(const struct weir_expr *e)
{
	static const struct weir_format_options json = {.kind = WEIR_FORMAT_JSON};
	struct weir_batch *b = user_open(e);
	struct weir_diag *dg = NULL;
	struct flat *fl = b->flat = weir_xcalloc(1, sizeof *fl);
	fl->fields = weir_xcalloc(b->fn->out_count + 1, sizeof *fl->fields);
	for (uint32_t i = 0; i < b->fn->out_count; i++)
		fl->fields[i] =
			(struct weir_field){.name = b->fn->out_names[i], .type = b->fn->out_types[i], .ordinal = i};
	enum weir_err err = weir_encoder_create(&fl->encoder, &json, fl->fields, b->fn->out_count, &dg);
	WEIR_ASSERT(err == WEIR_OK); /* plain columns, default options */
	return b;
}

/* Writes what has been emitted behind the arrays of its rows. */
static void flush_emitted(struct weir_batch *b)
{
	struct flat *fl = b->flat;
	for (uint32_t i = 0; i < fl->emitted; i++) {
		uint32_t row = fl->row[i];
		bool first = fl->from[row] == fl->to[row];
		if ((b->refused[row >> 6] >> (row & 63)) & 1)
			continue;
		if (fl->json.bytes > FLAT_BYTES_MAX) {
			weir_batch_refuse(b, row, "too many rows for one batch");
			continue;
		}
		if (first)
			fl->from[row] = (uint32_t)fl->json.bytes;
		else
			fl->json.bytes--; /* its closing bracket: rows come in order, so it is the last byte */
		weir_buf_put_byte(&fl->json, first ? '[' : ',');
		fl->encoder->encode(fl->encoder, b->out, i, &fl->json);
		weir_buf_put_byte(&fl->json, ']');
		fl->to[row] = (uint32_t)fl->json.bytes;
	}
	fl->emitted = 0;
}

static void flat_kernel(struct weir_kernel *k)
{
	struct weir_batch *b = k->state;
	struct flat *fl = b->flat;
	begin_rows(b, k);
	fl->json.bytes = fl->emitted = fl->last = 0;
	memset(fl->from, 0, sizeof fl->from);
	memset(fl->to, 0, sizeof fl->to);
	b->fn->run(b, b->fn->ctx);
	check_emitted(b);
	flush_emitted(b);
	b->k = NULL;
	uint8_t *text = weir_scratch_take(k->scratch, fl->json.bytes);
	if (fl->json.bytes != 0)
		memcpy(text, fl->json.data, fl->json.bytes);
	for (uint32_t i = 0; i < k->count; i++) {
		uint32_t row = k->row[i], bytes = fl->to[row] - fl->from[row];
		k->out->str[row] = bytes != 0 ? (struct weir_str){text + fl->from[row], bytes, 0}
					      : (struct weir_str){(const uint8_t *)"[]", 2, 0};
	}
}

uint32_t weir_batch_emit(struct weir_batch *b, uint32_t row)
{
	struct flat *fl = b != NULL ? b->flat : NULL;
	if (fl == NULL || row >= WEIR_BATCH_ROWS || !((b->bound[row >> 6] >> (row & 63)) & 1))
		return EMITTED_MAX;
	if (row < fl->last) {
		weir_batch_refuse(b, row, "rows must be emitted in the order of the batch");
		return EMITTED_MAX;
	}
	if (fl->emitted == EMITTED_MAX) {
		check_emitted(b);
		flush_emitted(b);
	}
	fl->last = row;
	for (uint32_t o = 0; o < b->fn->out_count; o++) {
		struct weir_col *c = &b->out[o];
		if (fl->emitted == 0)
			weir_col_clear_nulls(c);
		if (c->phys == WEIR_PHYS_STR)
			c->str[fl->emitted] = (struct weir_str){(const uint8_t *)"", 0, 0};
		else
			memset((uint8_t *)c->data + fl->emitted * weir_phys_bytes(c->phys), 0,
			       weir_phys_bytes(c->phys));
	}
	fl->row[fl->emitted] = (uint16_t)row;
	return fl->emitted++;
}

#define COPY_ROWS(member)                                                                                              \
	do {                                                                                                           \
		for (uint32_t i = 0; i < k->count; i++)                                                                \
			k->out->member[k->row[i]] = from->member[k->row[i]];                                           \
	} while (0)

static void result_kernel(struct weir_kernel *k)
{
	const struct weir_batch *b = (const struct weir_batch *)(const void *)k->in[0]->str[0].data;
	const struct weir_col *from = &b->out[k->expr->value.i64];
	for (uint32_t i = 0; from->has_null && i < k->count; i++)
		if (weir_col_is_null(from, k->row[i]))
			weir_col_set_null(k->out, k->row[i]);
	switch (from->phys) {
	case WEIR_PHYS_U8:
		COPY_ROWS(u8);
		break;
	case WEIR_PHYS_I64:
		COPY_ROWS(i64);
		break;
	case WEIR_PHYS_F64:
		COPY_ROWS(f64);
		break;
	case WEIR_PHYS_I128:
		COPY_ROWS(i128);
		break;
	case WEIR_PHYS_STR:
		COPY_ROWS(str);
		break;
	}
}

bool weir_user_type_is_supported(const struct weir_type *t)
{
	return weir_type_phys(t) != WEIR_PHYS_I128;
}

static struct weir_expr *call_node(struct weir_mem *m, const struct weir_user_function *fn, struct weir_function *f,
				   const struct weir_expr *const *args, uint32_t arg_count)
{
	struct weir_expr *call = weir_mem_take(m, sizeof *call);
	call->op = WEIR_EXPR_CALL;
	call->fn = f;
	call->fn_data = fn;
	call->arg_count = arg_count;
	call->args = arg_count != 0 ? weir_mem_copy(m, args, arg_count * sizeof *args) : weir_mem_take(m, sizeof *args);
	call->text = fn->name;
	return call;
}

void weir_user_call(struct weir_mem *m, const struct weir_user_function *fn, const struct weir_expr *const *args,
		    uint32_t arg_count, const struct weir_expr **out)
{
	/* Never folded: what it does with constants is its own. Two functions, and two results, are never equal. */
	struct weir_function *f = weir_mem_take(m, (1 + fn->out_count) * sizeof *f);
	f[0] = (struct weir_function){.name = fn->name,
				      .args_max = 255,
				      .volatile_ = true,
				      .kernel = user_kernel,
				      .open = user_open,
				      .close = user_close};
	struct weir_expr *call = call_node(m, fn, &f[0], args, arg_count);
	call->type = (struct weir_type){.kind = WEIR_KIND_BYTES, .not_null = true};
	for (uint32_t i = 0; i < fn->out_count; i++) {
		f[1 + i] = (struct weir_function){.name = fn->out_names[i],
						  .args_min = 1,
						  .args_max = 1,
						  .volatile_ = true,
						  .kernel = result_kernel};
		struct weir_expr *e = weir_mem_take(m, sizeof *e);
		const struct weir_expr **arg = weir_mem_take(m, sizeof *arg);
		*arg = call;
		e->op = WEIR_EXPR_CALL;
		e->type = fn->out_types[i];
		e->fn = &f[1 + i];
		e->value.i64 = i;
		e->arg_count = 1;
		e->args = arg;
		e->text = fn->out_names[i];
		out[i] = e;
	}
}

const struct weir_expr *weir_user_flat_call(struct weir_mem *m, const struct weir_user_function *fn,
					    const struct weir_expr *const *args, uint32_t arg_count)
{
	struct weir_function *f = weir_mem_take(m, sizeof *f);
	struct weir_type *row = weir_mem_take(m, sizeof *row);
	*f = (struct weir_function){.name = fn->name,
				    .args_max = 255,
				    .volatile_ = true,
				    .kernel = flat_kernel,
				    .open = flat_open,
				    .close = user_close};
	*row = (struct weir_type){.kind = WEIR_KIND_ROW,
				  .not_null = true,
				  .field_count = (uint16_t)fn->out_count,
				  .fields = fn->out_types,
				  .field_names = fn->out_names};
	struct weir_expr *call = call_node(m, fn, f, args, arg_count);
	call->type = (struct weir_type){.kind = WEIR_KIND_ARRAY, .not_null = true, .field_count = 1, .fields = row};
	return call;
}

bool weir_user_is_call(const struct weir_expr *e)
{
	return e->op == WEIR_EXPR_CALL && (e->fn->kernel == user_kernel || e->fn->kernel == flat_kernel);
}

bool weir_user_is_result(const struct weir_expr *e, const char **name)
{
	if (e->op != WEIR_EXPR_CALL || e->fn->kernel != result_kernel)
		return false;
	*name = e->fn->name;
	return true;
}

/* ---- the batch as a function sees it: weir.h ---- */

uint32_t weir_batch_count(const struct weir_batch *b)
{
	return b != NULL ? b->k->count : 0;
}

const uint16_t *weir_batch_rows(const struct weir_batch *b)
{
	return b != NULL ? b->k->row : NULL;
}

static const struct weir_col *input(const struct weir_batch *b, uint32_t column, enum weir_phys phys)
{
	return b != NULL && column < b->in_count && b->in[column]->phys == phys ? b->in[column] : NULL;
}

const uint8_t *weir_batch_booleans(const struct weir_batch *b, uint32_t column)
{
	const struct weir_col *c = input(b, column, WEIR_PHYS_U8);
	return c != NULL ? c->u8 : NULL;
}

const int64_t *weir_batch_integers(const struct weir_batch *b, uint32_t column)
{
	const struct weir_col *c = input(b, column, WEIR_PHYS_I64);
	return c != NULL ? c->i64 : NULL;
}

const double *weir_batch_doubles(const struct weir_batch *b, uint32_t column)
{
	const struct weir_col *c = input(b, column, WEIR_PHYS_F64);
	return c != NULL ? c->f64 : NULL;
}

struct weir_slice weir_batch_string(const struct weir_batch *b, uint32_t column, uint32_t row)
{
	const struct weir_col *c = input(b, column, WEIR_PHYS_STR);
	if (c == NULL || row >= WEIR_BATCH_ROWS || weir_col_is_null(c, row))
		return (struct weir_slice){NULL, 0};
	return (struct weir_slice){c->str[row].data, c->str[row].bytes};
}

int weir_batch_is_null(const struct weir_batch *b, uint32_t column, uint32_t row)
{
	return b == NULL || column >= b->in_count || row >= WEIR_BATCH_ROWS || weir_col_is_null(b->in[column], row);
}

static struct weir_col *output(struct weir_batch *b, uint32_t result, enum weir_phys phys)
{
	return b != NULL && result < b->fn->out_count && b->out[result].phys == phys ? &b->out[result] : NULL;
}

uint8_t *weir_batch_put_booleans(struct weir_batch *b, uint32_t result)
{
	struct weir_col *c = output(b, result, WEIR_PHYS_U8);
	return c != NULL ? c->u8 : NULL;
}

int64_t *weir_batch_put_integers(struct weir_batch *b, uint32_t result)
{
	struct weir_col *c = output(b, result, WEIR_PHYS_I64);
	return c != NULL ? c->i64 : NULL;
}

double *weir_batch_put_doubles(struct weir_batch *b, uint32_t result)
{
	struct weir_col *c = output(b, result, WEIR_PHYS_F64);
	return c != NULL ? c->f64 : NULL;
}

/* Whether results may be put at number row. */
static bool is_bound(const struct weir_batch *b, uint32_t row)
{
	if (b->flat != NULL)
		return row < b->flat->emitted;
	return row < WEIR_BATCH_ROWS && ((b->bound[row >> 6] >> (row & 63)) & 1);
}

void weir_batch_put_string(struct weir_batch *b, uint32_t result, uint32_t row, const void *data, size_t bytes)
{
	struct weir_col *c = output(b, result, WEIR_PHYS_STR);
	if (c == NULL || !is_bound(b, row) || bytes > UINT32_MAX / 2)
		return;
	const char *why = NULL;
	if (data == NULL && bytes != 0)
		why = "a result has a length, but no data";
	else if (weir_kind_is_string(b->fn->out_types[result].kind) && bytes != 0 &&
		 !weir_utf8_check(data, bytes, NULL))
		why = "a result is no UTF-8";
	if (why != NULL) {
		weir_batch_refuse(b, b->flat != NULL ? b->flat->row[row] : row, why);
		return;
	}
	uint8_t *copy = weir_scratch_take(b->k->scratch, bytes);
	memcpy(copy, bytes != 0 ? data : "", bytes);
	c->str[row] = (struct weir_str){copy, (uint32_t)bytes, 0};
}

void weir_batch_put_null(struct weir_batch *b, uint32_t result, uint32_t row)
{
	if (b != NULL && result < b->fn->out_count && is_bound(b, row))
		weir_col_set_null(&b->out[result], row);
}

void weir_batch_refuse(struct weir_batch *b, uint32_t row, const char *why)
{
	if (b == NULL || row >= WEIR_BATCH_ROWS || !((b->bound[row >> 6] >> (row & 63)) & 1) ||
	    ((b->refused[row >> 6] >> (row & 63)) & 1))
		return;
	b->refused[row >> 6] |= UINT64_C(1) << (row & 63);
	weir_row_errors_add(b->k->errors, row, WEIR_REASON_EXPR, UINT32_MAX, b->fn->name,
			    why != NULL ? why : "refused");
}
