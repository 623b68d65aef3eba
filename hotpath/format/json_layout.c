/* json_layout.c: the layout of a well-formed document, learned from what the general parser noted, as the chain of
 * fixed bytes and values that the speculative parser checks against the next records. @thread worker; nothing is
 * allocated once the decoder exists. */
#include "hotpath/format/json_private.h"

#include "hotpath/format/json_number.h"

void weir_json_layouts_init(struct weir_json *js)
{
	for (uint32_t i = 0; i < WEIR_JSON_LAYOUTS; i++) {
		struct weir_json_layout *l = &js->layouts[i];
		/* weir_mem aligns to 16, the steps' SIMD loads to 32. */
		uintptr_t steps = (uintptr_t)weir_mem_take(&js->mem, (WEIR_JSON_STEPS + 1) * sizeof *l->steps);
		l->steps = (struct weir_json_step *)weir_align_up(steps, _Alignof(struct weir_json_step));
		l->null_fields = weir_mem_take(&js->mem, (js->field_count + 1) * sizeof *l->null_fields);
	}
}

static void step_foretell(struct weir_json_step *s, uint64_t length)
{
	s->length = length;
	s->stop = UINT64_C(1) << (length & 63);
	s->below = s->stop - 1;
	s->upto = s->stop | s->below;
}

void weir_json_step_missed(struct weir_json_step *s, uint64_t length)
{
	s->missed++;
	if (s->other_count == 0)
		s->other_length = length;
	s->other_count += s->other_length == length ? 1 : -1;
}

/* A miss costs a branch missed and the work done twice: foretelling pays while it fails at most once in sixteen. Where
 * one other length makes up most of many misses, that one is foretold from now on. */
static void step_look(struct weir_json_step *s, uint64_t row_clock)
{
	enum { LOOK_ROWS = 512, AGAIN_ROWS = 65536 };
	uint64_t rows = row_clock - s->row_clock;
	if (rows < LOOK_ROWS || (!s->foretell && rows < AGAIN_ROWS))
		return;
	bool number = s->op == WEIR_JSON_STEP_INTEGER || s->op == WEIR_JSON_STEP_DECIMAL;
	s->foretell = (uint64_t)s->missed * 16 <= rows;
	if (!s->foretell && (uint64_t)s->missed * 2 > rows && (uint64_t)s->other_count * 2 > s->missed &&
	    (s->other_length != 0 || !number)) {
		step_foretell(s, s->other_length);
		s->foretell = true;
	}
	s->missed = 0;
	s->other_count = 0;
	s->row_clock = row_clock;
}

void weir_json_bind(struct weir_json *js, struct weir_json_layout *l, const void *const *code,
		    const void *const *code_foretold, uint32_t block_bytes)
{
	for (uint32_t i = 0; i < l->step_count; i++) {
		struct weir_json_step *s = &l->steps[i];
		step_look(s, js->row_clock);
		bool number = s->op == WEIR_JSON_STEP_INTEGER || s->op == WEIR_JSON_STEP_DECIMAL;
		bool foretold = s->foretell && code_foretold[s->op] != NULL && s->length < (number ? 16 : block_bytes);
		s->code = foretold ? code_foretold[s->op] : code[s->op];
		s->dest = s->f != NULL ? js->cols[s->f - js->fields].data : NULL;
	}
	l->bound_call = js->call;
}

/* A NULL is taken for what its column usually has. */
static enum weir_json_kind kind_of_null(const struct weir_json_field *f)
{
	switch (f->type.kind) {
	case WEIR_KIND_BOOLEAN:
		return WEIR_JSON_TRUE;
	case WEIR_KIND_ARRAY:
	case WEIR_KIND_MAP:
	case WEIR_KIND_ROW:
		return WEIR_JSON_OBJECT;
	default:
		return weir_kind_is_numeric(f->type.kind) ? WEIR_JSON_NUMBER : WEIR_JSON_STRING;
	}
}

/* What the value of this sort is checked and converted by; the field is the only one of its node. */
static enum weir_json_step_op step_op(const struct weir_json *js, const struct weir_json_value *v, uint32_t *field)
{
	const struct weir_json_field *f = NULL;
	*field = WEIR_JSON_NONE;
	if (v->node != NULL && v->node->first_field != WEIR_JSON_NONE) {
		*field = v->node->first_field;
		f = &js->fields[*field];
	}
	switch (v->kind == WEIR_JSON_NULL && f != NULL ? kind_of_null(f) : v->kind) {
	case WEIR_JSON_STRING:
	case WEIR_JSON_STRING_ESCAPED:
		if (f == NULL)
			return WEIR_JSON_STEP_SKIP_STRING;
		return weir_kind_is_string(f->type.kind) && f->type.length == INT32_MAX ? WEIR_JSON_STEP_STRING
											: WEIR_JSON_STEP_ANY;
	case WEIR_JSON_NUMBER:
		if (f == NULL)
			return WEIR_JSON_STEP_SKIP_NUMBER;
		if (weir_kind_is_integer(f->type.kind))
			return f->type.kind == WEIR_KIND_BIGINT ? WEIR_JSON_STEP_INTEGER : WEIR_JSON_STEP_SMALL;
		if (weir_kind_is_timestamp(f->type.kind) && js->unit_per_second == 1000 * weir_ticks_per_ms(&f->type))
			return WEIR_JSON_STEP_INTEGER; /* the ticks as they stand */
		if (f->type.kind == WEIR_KIND_DECIMAL && f->phys == WEIR_PHYS_I64 && f->type.scale == 0)
			return WEIR_JSON_STEP_SMALL;
		return f->weights != NULL ? WEIR_JSON_STEP_DECIMAL : WEIR_JSON_STEP_ANY;
	case WEIR_JSON_TRUE:
	case WEIR_JSON_FALSE:
		return f == NULL || f->type.kind == WEIR_KIND_BOOLEAN ? WEIR_JSON_STEP_LITERAL : WEIR_JSON_STEP_ANY;
	case WEIR_JSON_NULL:
		return WEIR_JSON_STEP_LITERAL;
	default:
		return WEIR_JSON_STEP_CONTAINER;
	}
}

/* Appends steps for the fixed bytes [from, to) and the value behind them; with a quote before and behind them where one
 * is to be added. False: too many. */
static bool layout_add(const struct weir_json *js, struct weir_json_layout *l, const uint8_t *from, const uint8_t *to,
		       bool quote_before, bool quote_behind, enum weir_json_step_op op, uint32_t field, uint32_t depth,
		       uint64_t length)
{
	size_t left = (size_t)(to - from) + quote_before + quote_behind;
	do {
		if (l->step_count == WEIR_JSON_STEPS)
			return false;
		struct weir_json_step *s = &l->steps[l->step_count++];
		bool last = left <= WEIR_JSON_FIXED_BYTES;
		uint32_t bytes = last ? (uint32_t)left : WEIR_JSON_FIXED_BYTES;
		memset(s, 0, sizeof *s);
		for (uint32_t i = 0; i < bytes; i++, left--) {
			s->fixed[i] = quote_before || from == to ? '"' : *from++;
			s->mask[i] = 0xff;
			quote_before = false;
		}
		s->fixed_bytes = bytes;
		s->op = last ? op : WEIR_JSON_STEP_FIXED;
		s->f = last && field != WEIR_JSON_NONE ? &js->fields[field] : NULL;
		s->depth = depth;
		s->foretell = true;
		s->row_clock = js->row_clock;
		step_foretell(s, length);
	} while (left > 0);
	return true;
}

static struct weir_json_layout *layout_oldest(struct weir_json *js)
{
	struct weir_json_layout *oldest = &js->layouts[0];
	for (uint32_t i = 1; i < WEIR_JSON_LAYOUTS; i++)
		if (js->layouts[i].step_count == 0 ||
		    (oldest->step_count != 0 && js->layouts[i].used_at < oldest->used_at))
			oldest = &js->layouts[i];
	return oldest;
}

/* A field whose value, perhaps null, the steps set themselves. */
static bool value_is_set(const struct weir_json *js, const struct weir_json_field *f)
{
	return f->node->generation == js->generation;
}

bool weir_json_miss(struct weir_json *js)
{
	enum { CLOSE_ROWS = 8, CLOSE_MISSES_MAX = 24, PAUSE_ROWS = 2048 };
	if (js->row_clock - js->missed_at >= CLOSE_ROWS)
		js->misses_close /= 2;
	else if (++js->misses_close > CLOSE_MISSES_MAX) {
		/* Layouts do not repeat in this stream for now: learning and failing would only cost. */
		js->misses_close = CLOSE_MISSES_MAX / 2;
		js->paused_until = js->row_clock + PAUSE_ROWS;
	}
	js->missed_at = js->row_clock;
	return js->row_clock >= js->paused_until;
}

void weir_json_learn(struct weir_json *js)
{
	if (js->duplicate || js->value_count > WEIR_JSON_VALUES || js->root.kind != WEIR_JSON_OBJECT)
		return;
	/* With ignore_parse_errors a value may have become NULL for being bad: such a record teaches nothing. */
	for (uint32_t i = 0; i < js->field_count; i++) {
		const struct weir_json_field *f = &js->fields[i];
		if (f->next_field != WEIR_JSON_NONE)
			return; /* two columns of one value: rare, left to the general parser */
		if (js->ignore_parse_errors && value_is_set(js, f) && f->node->kind != WEIR_JSON_NULL &&
		    weir_col_is_null(&js->cols[i], js->row))
			return;
	}
	struct weir_json_layout *l = layout_oldest(js);
	l->step_count = 0;
	l->null_count = 0;
	const uint8_t *at = js->doc;
	bool quote_first = false;
	for (uint32_t i = 0; i < js->value_count; i++) {
		const struct weir_json_value *v = &js->values[i];
		uint32_t field;
		enum weir_json_step_op op = step_op(js, v, &field);
		if (v->kind == WEIR_JSON_NULL && v->node != NULL && field == WEIR_JSON_NONE)
			continue; /* what is wanted lies below it: the null stands among the fixed bytes */
		/* Others are wanted below this node: what they become depends on the sort of value here. */
		if (v->node != NULL && v->node->member_count + v->node->element_count != 0)
			goto unlearnable;
		const uint8_t *start = js->doc + v->start, *end = js->doc + v->end;
		uint64_t length = v->end - v->start;
		if (op == WEIR_JSON_STEP_ANY && (v->kind == WEIR_JSON_STRING || v->kind == WEIR_JSON_STRING_ESCAPED)) {
			start--; /* the quotes belong to the value: it may as well be a number next time */
			end++;
		}
		bool quoted = false;
		if (op == WEIR_JSON_STEP_STRING && v->kind == WEIR_JSON_NULL) {
			quoted = true; /* as if an empty string stood there */
			length = 0;
		}
		if (!layout_add(js, l, at, start, quote_first, quoted, op, field, v->depth, length))
			goto unlearnable;
		quote_first = quoted;
		at = end;
	}
	if (!layout_add(js, l, at, js->end, quote_first, false, WEIR_JSON_STEP_END, WEIR_JSON_NONE, 0, 0))
		goto unlearnable;
	for (uint32_t i = 0; i < js->field_count; i++)
		if (!value_is_set(js, &js->fields[i]))
			l->null_fields[l->null_count++] = i;
	l->used_at = js->row_clock;
	l->bound_call = 0;
	js->current = (uint32_t)(l - js->layouts);
	return;
unlearnable:
	l->step_count = 0;
}
