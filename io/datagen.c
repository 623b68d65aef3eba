/* datagen.c: the row generator. Values come from a counter-based mix of (seed, column, row), are written into columns
 * of a batch and encoded as packed rows, so that everything behind it runs as for a real topic. @thread io */
#include "io/datagen.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hotpath/core/hash.h"
#include "io/conf.h"

enum { LENGTH_MAX = 1 << 20, LENGTH_DEFAULT = 100 };
#define RATE_DEFAULT INT64_C(10000)
#define BASE_DEFAULT INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

struct generator {
	const struct weir_table_column *column;
	uint64_t stream; /* mixed into every value of the column */
	bool sequence;
	bool has_min, has_max, has_length;
	weir_i128 low, high; /* integers and DECIMAL (unscaled); sequences: start and end, not scaled */
	weir_i128 unit;      /* sequences of DECIMAL: 10^scale */
	double low_f, high_f;
	uint32_t length;
	bool var_len;
	int64_t max_past_ms;
	double null_rate;
};

struct datagen {
	struct weir_stream_log log;
	const struct weir_table_def *table;
	struct generator *generators;
	struct weir_col *cols;
	struct weir_field *fields;
	uint32_t count;
	struct weir_encoder *encoder;
	struct weir_scratch scratch;
	struct weir_buf payload;
	int64_t next; /* row */
	int64_t end;  /* INT64_MAX: unbounded */
	int64_t rate; /* of timestamps */
	bool paced;
	int64_t base_ms;
	int64_t start_ms; /* clock at the first peek, -1 before it */
	int64_t start_row;
	int64_t (*clock_ms)(void);
};

static int64_t monotonic_ms(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t wall_ms(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- values ---- */

/* 64 bits that look random, from anything: the finaliser of SplitMix64. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t draw(const struct generator *g, int64_t row, uint32_t n)
{
	return mix(mix(g->stream ^ (uint64_t)row) + n);
}

/* [0, 1) */
static double draw_double(const struct generator *g, int64_t row, uint32_t n)
{
	return (double)(draw(g, row, n) >> 11) * 0x1p-53;
}

/* [low, high] */
static weir_i128 draw_between(const struct generator *g, int64_t row)
{
	weir_u128 span = (weir_u128)g->high - (weir_u128)g->low + 1;
	weir_u128 r = (weir_u128)draw(g, row, 0) << 64 | draw(g, row, 1);
	if (span != 0 && span <= (weir_u128)UINT64_MAX)
		r = ((r >> 64) * span) >> 64;
	else if (span != 0)
		r %= span;
	return (weir_i128)((weir_u128)g->low + r);
}

static int64_t time_of(const struct datagen *d, int64_t row)
{
	return d->base_ms + row / d->rate * 1000 + row % d->rate * 1000 / d->rate;
}

static void set_integer(struct weir_col *c, uint32_t at, weir_i128 v)
{
	if (c->phys == WEIR_PHYS_I128)
		c->i128[at] = v;
	else
		c->i64[at] = (int64_t)v;
}

static void set_text(struct datagen *d, const struct generator *g, struct weir_col *c, uint32_t at, int64_t row)
{
	static const char hex[] = "0123456789abcdef";
	uint32_t bytes = g->length;
	if (g->var_len && bytes > 1)
		bytes = 1 + (uint32_t)(((weir_u128)draw(g, row, 2) * bytes) >> 64);
	uint8_t *s = weir_scratch_take(&d->scratch, bytes);
	bool raw = g->column->type.kind == WEIR_KIND_BYTES;
	uint32_t per_draw = raw ? 8 : 16;
	for (uint32_t i = 0; i < bytes; i += per_draw) {
		uint64_t r = draw(g, row, 3 + i / per_draw);
		for (uint32_t k = 0; k < per_draw && i + k < bytes; k++)
			s[i + k] = raw ? (uint8_t)(r >> (8 * k)) : (uint8_t)hex[(r >> (4 * k)) & 15];
	}
	c->str[at] = (struct weir_str){.data = s, .bytes = bytes};
}

static void set_sequence(struct datagen *d, const struct generator *g, struct weir_col *c, uint32_t at, int64_t row)
{
	weir_i128 v = g->low + row;
	switch (g->column->type.kind) {
	case WEIR_KIND_FLOAT:
	case WEIR_KIND_DOUBLE:
		c->f64[at] = (double)v;
		return;
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR: {
		char *s = weir_scratch_take(&d->scratch, 24);
		int bytes = snprintf(s, 24, "%lld", (long long)v);
		c->str[at] = (struct weir_str){.data = (const uint8_t *)s, .bytes = (uint32_t)bytes};
		return;
	}
	default:
		set_integer(c, at, v * g->unit);
		return;
	}
}

static void set_value(struct datagen *d, const struct generator *g, struct weir_col *c, uint32_t at, int64_t row)
{
	const struct weir_type *t = &g->column->type;
	int64_t past;
	if (g->null_rate > 0 && draw_double(g, row, 4000000000u) < g->null_rate) {
		weir_col_set_null(c, at);
		return;
	}
	if (g->sequence) {
		set_sequence(d, g, c, at, row);
		return;
	}
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		c->u8[at] = draw(g, row, 0) & 1;
		return;
	case WEIR_KIND_FLOAT:
	case WEIR_KIND_DOUBLE: {
		double v = g->low_f + draw_double(g, row, 0) * (g->high_f - g->low_f);
		c->f64[at] = t->kind == WEIR_KIND_FLOAT ? (double)(float)v : v;
		return;
	}
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR:
	case WEIR_KIND_BYTES:
		set_text(d, g, c, at, row);
		return;
	case WEIR_KIND_DATE:
		c->i64[at] = weir_floor_div(time_of(d, row), 86400000);
		return;
	case WEIR_KIND_TIME:
		past = time_of(d, row);
		c->i64[at] = past - weir_floor_div(past, 86400000) * 86400000;
		return;
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		past = g->max_past_ms == 0
			       ? 0
			       : (int64_t)(((weir_u128)draw(g, row, 0) * ((weir_u128)g->max_past_ms + 1)) >> 64);
		c->i64[at] = (time_of(d, row) - past) * weir_ticks_per_ms(t);
		return;
	default:
		set_integer(c, at, draw_between(g, row));
		return;
	}
}

/* ---- options ---- */

static weir_i128 power_of_ten(uint32_t n)
{
	weir_i128 v = 1;
	while (n-- > 0)
		v *= 10;
	return v;
}

/* Range of an integer or DECIMAL type. */
static void default_range(struct generator *g)
{
	const struct weir_type *t = &g->column->type;
	static const int bits[] = {
		[WEIR_KIND_TINYINT] = 8, [WEIR_KIND_SMALLINT] = 16, [WEIR_KIND_INT] = 32, [WEIR_KIND_BIGINT] = 64};
	if (weir_kind_is_integer(t->kind)) {
		g->low = -((weir_i128)1 << (bits[t->kind] - 1));
		g->high = -g->low - 1;
	} else if (t->kind == WEIR_KIND_DECIMAL) {
		g->high = power_of_ten(t->precision) - 1;
		g->low = -g->high;
	}
	g->unit = t->kind == WEIR_KIND_DECIMAL ? power_of_ten(t->scale) : 1;
	g->low_f = 0;
	g->high_f = 1;
}

static bool is_text(const struct weir_type *t)
{
	return weir_kind_is_string(t->kind) || t->kind == WEIR_KIND_BYTES;
}

static enum weir_err bad(const struct weir_option *o, struct weir_diag **dg, const char *takes)
{
	return weir_diag_set(dg, WEIR_E_CONF, "option '%s' takes %s, not '%s'", o->name, takes, o->value);
}

/* min or max of a numeric column, read as a value of its type. c is the column's own, used as a scratch pad. */
static enum weir_err set_bound(struct generator *g, struct weir_col *c, const struct weir_option *o, bool low,
			       struct weir_diag **dg)
{
	const struct weir_type *t = &g->column->type;
	if (!weir_kind_is_numeric(t->kind))
		return weir_diag_set(dg, WEIR_E_CONF, "option '%s': only numbers have a min and a max", o->name);
	if (weir_text_parse(t, o->value, strlen(o->value), c, 0) != WEIR_REASON_NONE)
		return bad(o, dg, "a value of the column's type");
	if (c->phys == WEIR_PHYS_F64)
		*(low ? &g->low_f : &g->high_f) = c->f64[0];
	else
		*(low ? &g->low : &g->high) = c->phys == WEIR_PHYS_I128 ? c->i128[0] : c->i64[0];
	*(low ? &g->has_min : &g->has_max) = true;
	return WEIR_OK;
}

static enum weir_err set_member(struct generator *g, struct weir_col *c, const struct weir_option *o,
				const char *member, struct weir_diag **dg)
{
	const struct weir_type *t = &g->column->type;
	int64_t n;
	if (strcmp(member, "kind") == 0)
		return WEIR_OK; /* done */
	if (strcmp(member, "start") == 0 || strcmp(member, "end") == 0) {
		bool start = member[0] == 's';
		if (!g->sequence)
			return weir_diag_set(dg, WEIR_E_CONF, "option '%s' needs the kind 'sequence'", o->name);
		if (!weir_text_to_i64(o->value, &n))
			return bad(o, dg, "a whole number");
		*(start ? &g->low : &g->high) = n;
		*(start ? &g->has_min : &g->has_max) = true;
		return WEIR_OK;
	}
	if (strcmp(member, "null-rate") == 0) {
		struct weir_col rate;
		struct weir_type type = {.kind = WEIR_KIND_DOUBLE};
		weir_col_init(&rate, WEIR_PHYS_F64);
		enum weir_reason r = weir_text_parse(&type, o->value, strlen(o->value), &rate, 0);
		g->null_rate = rate.f64[0];
		weir_col_fini(&rate);
		if (r != WEIR_REASON_NONE || !(g->null_rate >= 0 && g->null_rate <= 1))
			return bad(o, dg, "a number from 0 to 1");
		if (g->null_rate > 0 && t->not_null)
			return weir_diag_set(dg, WEIR_E_CONF, "option '%s': the column is NOT NULL", o->name);
		return WEIR_OK;
	}
	if (g->sequence)
		return weir_diag_set(dg, WEIR_E_CONF, "option '%s' needs the kind 'random'", o->name);
	if (strcmp(member, "min") == 0 || strcmp(member, "max") == 0)
		return set_bound(g, c, o, member[1] == 'i', dg);
	if (strcmp(member, "max-past") == 0) {
		if (!weir_kind_is_timestamp(t->kind))
			return weir_diag_set(dg, WEIR_E_CONF, "option '%s': only timestamps have a max-past", o->name);
		return weir_duration_parse(o->value, &g->max_past_ms) ? WEIR_OK : bad(o, dg, "a duration such as 1h");
	}
	if (!is_text(t))
		return weir_diag_set(dg, WEIR_E_CONF, "option '%s': only strings and bytes have a length", o->name);
	if (strcmp(member, "var-len") == 0)
		return weir_text_to_bool(o->value, &g->var_len) ? WEIR_OK : bad(o, dg, "true or false");
	if (!weir_text_to_i64(o->value, &n) || n < 1 || n > LENGTH_MAX || (t->kind != WEIR_KIND_BYTES && n > t->length))
		return bad(o, dg, "a length that the type allows");
	g->length = (uint32_t)n;
	return WEIR_OK;
}

/* The column that fields.<name>.<member> names; member is what stands behind it. */
static struct generator *find_generator(struct datagen *d, const struct weir_option *o, const char **member,
					struct weir_diag **dg)
{
	const char *name = o->name + strlen("fields."), *dot = strrchr(o->name, '.');
	const char **names = weir_xcalloc(d->count + 1, sizeof *names);
	struct generator *found = NULL;
	for (uint32_t i = 0; i < d->count && found == NULL; i++) {
		names[i] = d->generators[i].column->name;
		if (strlen(names[i]) == (size_t)(dot - name) && strncmp(names[i], name, (size_t)(dot - name)) == 0)
			found = &d->generators[i];
	}
	if (found == NULL) {
		const char *near = weir_nearest_name(name, (size_t)(dot - name), names, d->count);
		(void)weir_diag_set(dg, WEIR_E_CONF, "option '%s': table '%s' has no such column to generate%s%s%s",
				    o->name, d->table->name, near != NULL ? ": did you mean '" : "",
				    near != NULL ? near : "", near != NULL ? "'?" : "");
	}
	free(names);
	*member = dot + 1;
	return found;
}

static enum weir_err check_generator(struct datagen *d, struct generator *g, struct weir_diag **dg)
{
	const char *name = g->column->name;
	if (!g->sequence) {
		if (g->low > g->high || g->low_f > g->high_f)
			return weir_diag_set(dg, WEIR_E_CONF, "datagen column '%s': min is above max", name);
		return WEIR_OK;
	}
	if (!g->has_min || !g->has_max)
		return weir_diag_set(dg, WEIR_E_CONF, "datagen column '%s': a sequence needs start and end", name);
	if (g->low > g->high)
		return weir_diag_set(dg, WEIR_E_CONF, "datagen column '%s': start is above end", name);
	struct generator range = {.column = g->column};
	default_range(&range);
	if (range.high != 0 && (g->low * g->unit < range.low || g->high * g->unit > range.high))
		return weir_diag_set(dg, WEIR_E_CONF, "datagen column '%s': the sequence is beyond the column's type",
				     name);
	weir_i128 rows = g->high - g->low + 1;
	if (rows < d->end)
		d->end = (int64_t)rows;
	return WEIR_OK;
}

static enum weir_err set_options(struct datagen *d, struct weir_diag **dg)
{
	const struct weir_table_options *o = &d->table->options;
	const char *member;
	for (int pass = 0; pass < 2; pass++) { /* kinds first: the others depend on them */
		for (uint32_t i = 0; i < o->other_count; i++) {
			if (strncmp(o->other[i].name, "fields.", 7) != 0)
				continue;
			struct generator *g = find_generator(d, &o->other[i], &member, dg);
			if (g == NULL)
				return WEIR_E_CONF;
			if (pass == 0 && strcmp(member, "kind") == 0) {
				const struct weir_type *t = &g->column->type;
				g->sequence = strcmp(o->other[i].value, "sequence") == 0;
				if (!g->sequence && strcmp(o->other[i].value, "random") != 0)
					return bad(&o->other[i], dg, "random or sequence");
				if (g->sequence && !weir_kind_is_numeric(t->kind) && !weir_kind_is_string(t->kind))
					return weir_diag_set(dg, WEIR_E_CONF,
							     "option '%s': a sequence needs a number or a string",
							     o->other[i].name);
			}
			enum weir_err err =
				pass == 0 ? WEIR_OK
					  : set_member(g, &d->cols[g - d->generators], &o->other[i], member, dg);
			if (err != WEIR_OK)
				return err;
		}
	}
	for (uint32_t i = 0; i < d->count; i++) {
		enum weir_err err = check_generator(d, &d->generators[i], dg);
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

/* ---- the log ---- */

static uint32_t datagen_partitions(const struct weir_stream_log *sl)
{
	(void)sl;
	return 1;
}

/* Rows that may be read now. */
static int64_t due(struct datagen *d)
{
	if (!d->paced)
		return d->end;
	int64_t now = d->clock_ms();
	if (d->start_ms < 0) {
		d->start_ms = now;
		d->start_row = d->next;
	}
	weir_i128 rows = d->start_row + (weir_i128)(now - d->start_ms) * d->rate / 1000 + 1;
	return rows < d->end ? (int64_t)rows : d->end;
}

static enum weir_poll datagen_peek(struct weir_stream_log *sl, uint32_t p, int64_t *first_ts, struct weir_diag **dg)
{
	struct datagen *d = (struct datagen *)sl;
	(void)p;
	(void)dg;
	if (d->next >= d->end)
		return WEIR_POLL_BOUND;
	if (d->next >= due(d))
		return WEIR_POLL_EMPTY;
	*first_ts = time_of(d, d->next);
	return WEIR_POLL_UNIT;
}

static enum weir_err datagen_take(struct weir_stream_log *sl, uint32_t p, struct weir_unit **out, struct weir_diag **dg)
{
	struct datagen *d = (struct datagen *)sl;
	size_t ends[WEIR_BATCH_ROWS];
	(void)p;
	(void)dg;
	int64_t left = due(d) - d->next;
	uint32_t count = left > WEIR_BATCH_ROWS ? WEIR_BATCH_ROWS : left > 0 ? (uint32_t)left : 0;
	weir_scratch_reset(&d->scratch);
	d->payload.bytes = 0;
	for (uint32_t i = 0; i < d->count; i++) {
		weir_col_clear_nulls(&d->cols[i]);
		for (uint32_t at = 0; at < count; at++)
			set_value(d, &d->generators[i], &d->cols[i], at, d->next + at);
	}
	for (uint32_t at = 0; at < count; at++) {
		d->encoder->encode(d->encoder, d->cols, at, &d->payload);
		ends[at] = d->payload.bytes;
	}
	size_t head = weir_align_up(sizeof(struct weir_unit) + count * sizeof(struct weir_record), 64);
	size_t memory = head + d->payload.bytes + WEIR_PAYLOAD_PAD;
	uint8_t *block = weir_xmalloc(memory);
	struct weir_unit *u = (struct weir_unit *)block;
	uint8_t *payload = block + head;
	if (d->payload.bytes != 0)
		memcpy(payload, d->payload.data, d->payload.bytes);
	memset(payload + d->payload.bytes, 0, WEIR_PAYLOAD_PAD);
	*u = (struct weir_unit){.partition = 0,
				.count = count,
				.records = (struct weir_record *)(u + 1),
				.bytes = d->payload.bytes,
				.memory = memory,
				.next_offset = d->next + count};
	for (uint32_t at = 0; at < count; at++) {
		size_t from = at == 0 ? 0 : ends[at - 1];
		u->records[at] = (struct weir_record){.value = payload + from,
						      .value_bytes = (uint32_t)(ends[at] - from),
						      .offset = d->next + at,
						      .timestamp = time_of(d, d->next + at)};
	}
	d->next += count;
	*out = u;
	return WEIR_OK;
}

static void datagen_release(struct weir_stream_log *sl, struct weir_unit *u)
{
	(void)sl;
	free(u);
}

static enum weir_err datagen_seek(struct weir_stream_log *sl, uint32_t p, int64_t offset, struct weir_diag **dg)
{
	struct datagen *d = (struct datagen *)sl;
	(void)p;
	if (offset < 0)
		return weir_diag_set(dg, WEIR_E_IO, "datagen table '%s' has no row %lld", d->table->name,
				     (long long)offset);
	d->next = offset;
	d->start_ms = -1;
	return WEIR_OK;
}

static void datagen_range(struct weir_stream_log *sl, uint32_t p, int64_t *first, int64_t *end)
{
	(void)p;
	*first = 0;
	*end = ((struct datagen *)sl)->end;
}

static int datagen_event_fd(const struct weir_stream_log *sl)
{
	(void)sl;
	return -1;
}

static const char *datagen_topic(const struct weir_stream_log *sl, uint32_t p, uint32_t *partition)
{
	*partition = p;
	return ((const struct datagen *)sl)->table->name;
}

static void datagen_close(struct weir_stream_log *sl)
{
	struct datagen *d = (struct datagen *)sl;
	if (d == NULL)
		return;
	for (uint32_t i = 0; i < d->count; i++)
		weir_col_fini(&d->cols[i]);
	if (d->encoder != NULL)
		d->encoder->destroy(d->encoder);
	weir_scratch_fini(&d->scratch);
	weir_buf_fini(&d->payload);
	free(d->generators);
	free(d->cols);
	free(d->fields);
	free(d);
}

static const struct weir_stream_ops datagen_ops = {
	.partitions = datagen_partitions,
	.peek = datagen_peek,
	.take = datagen_take,
	.release = datagen_release,
	.seek = datagen_seek,
	.range = datagen_range,
	.event_fd = datagen_event_fd,
	.topic = datagen_topic,
	.close = datagen_close,
};

static void add_column(struct datagen *d, const struct weir_table_column *c)
{
	struct generator *g = &d->generators[d->count];
	g->column = c;
	g->stream = mix(d->table->options.datagen_seed ^ weir_hash(c->name, strlen(c->name)));
	g->length = LENGTH_DEFAULT;
	if (weir_kind_is_string(c->type.kind) && c->type.length < LENGTH_DEFAULT)
		g->length = (uint32_t)c->type.length;
	default_range(g);
	weir_col_init(&d->cols[d->count], weir_type_phys(&c->type));
	d->fields[d->count] = (struct weir_field){.name = c->name, .type = c->type, .ordinal = d->count};
	d->count++;
}

enum weir_err weir_datagen_open(struct weir_stream_log **out, const struct weir_datagen_spec *spec, bool *live,
				struct weir_diag **dg)
{
	const struct weir_table_def *t = spec->table;
	struct datagen *d = weir_xcalloc(1, sizeof *d);
	d->log.ops = &datagen_ops;
	d->table = t;
	d->clock_ms = spec->clock_ms != NULL ? spec->clock_ms : monotonic_ms;
	d->start_ms = -1;
	weir_scratch_init(&d->scratch);
	d->generators = weir_xcalloc(t->column_count + 1, sizeof *d->generators);
	d->cols = weir_xcalloc(t->column_count + 1, sizeof *d->cols);
	d->fields = weir_xcalloc(t->column_count + 1, sizeof *d->fields);
	for (uint32_t i = 0; i < t->column_count; i++) {
		if (t->columns[i].kind == WEIR_COLUMN_PHYSICAL)
			add_column(d, &t->columns[i]);
	}
	d->end = t->options.datagen_rows >= 0 ? t->options.datagen_rows : INT64_MAX;
	struct weir_format_options packed = {.kind = WEIR_FORMAT_PACKED};
	enum weir_err err = weir_encoder_create(&d->encoder, &packed, d->fields, d->count, dg);
	if (err == WEIR_OK)
		err = set_options(d, dg);
	if (err != WEIR_OK) {
		datagen_close(&d->log);
		return err;
	}
	bool bounded = d->end != INT64_MAX;
	int64_t rate = t->options.datagen_rate;
	d->paced = rate > 0 || (rate < 0 && !bounded);
	d->rate = rate > 0 ? rate : RATE_DEFAULT;
	d->base_ms = spec->base_ms != 0 ? spec->base_ms : bounded ? BASE_DEFAULT : wall_ms();
	if (live != NULL)
		*live = !bounded;
	*out = &d->log;
	return WEIR_OK;
}
