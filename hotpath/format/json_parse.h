/* json_parse.h: the general parser, and the loop over a batch's rows. Included once by each json_<variant>.c, which
 * defines JSON_FN and JSON_INLINE (how every function here begins), vectors_get, block_special (a mask), and JSON_BLOCK
 * and JSON_SHIFT (bytes that it looks at, and the mask's bits for each as a power of two). @thread worker
 *
 * Iterative: nesting lives in js->stack, so stack use is constant. Every SIMD load starts at or before the end of the
 * document and thus stays within WEIR_PAYLOAD_PAD. */
#ifndef JSON_FN
#error "include this from json_<variant>.c"
#endif
#include "hotpath/format/json_number.h"

WEIR_INLINE const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
	if (WEIR_LIKELY(*p > ' '))
		return p;
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

/* The closing quote of a string that goes on at p, or NULL with the error noted. */
JSON_FN WEIR_NOINLINE const uint8_t *string_rest(struct weir_json *js, const uint8_t *p, bool *escaped)
{
	const struct vectors *k = vectors_get();
	for (;;) {
		uint64_t special = block_special(k, p);
		p += special != 0 ? (unsigned)__builtin_ctzll(special) >> JSON_SHIFT : JSON_BLOCK;
		if (WEIR_UNLIKELY(p >= js->end)) {
			weir_json_refuse(js, WEIR_REASON_JSON, js->end, NULL, "the string does not end");
			return NULL;
		}
		if (special == 0)
			continue;
		if (WEIR_LIKELY(*p == '"'))
			return p;
		if (*p == '\\') {
			*escaped = true;
			p = weir_json_escape_end(js, p);
		} else if (*p >= 0x80) {
			p = weir_json_utf8_end(js, p);
		} else {
			weir_json_refuse(js, WEIR_REASON_JSON, p, NULL, "a control character in a string");
			return NULL;
		}
		if (p == NULL)
			return NULL;
	}
}

/* The closing quote of the string whose first character is at p, or NULL with the error noted. */
JSON_INLINE const uint8_t *string_end(struct weir_json *js, const uint8_t *p, bool *escaped)
{
	uint64_t special = block_special(vectors_get(), p);
	if (WEIR_LIKELY(special != 0)) {
		const uint8_t *q = p + ((unsigned)__builtin_ctzll(special) >> JSON_SHIFT);
		if (WEIR_LIKELY(*q == '"' && q < js->end))
			return q;
	}
	return string_rest(js, p, escaped);
}

/* The end of true, false or null at p, or NULL (nothing is noted). */
WEIR_INLINE const uint8_t *literal_end(const uint8_t *p, const uint8_t *end, enum weir_json_kind *kind)
{
	uint32_t word = weir_load_le32(p);
	uint32_t bytes = 4;
	if (word == UINT32_C(0x65757274)) {
		*kind = WEIR_JSON_TRUE;
	} else if (word == UINT32_C(0x6c6c756e)) {
		*kind = WEIR_JSON_NULL;
	} else if (word == UINT32_C(0x736c6166) && p[4] == 'e') {
		*kind = WEIR_JSON_FALSE;
		bytes = 5;
	} else {
		return NULL;
	}
	return (size_t)(end - p) >= bytes ? p + bytes : NULL;
}

/* The end of the string, number or literal at p < js->end, its sort and its text without quotes. NULL: noted. */
JSON_INLINE const uint8_t *scalar_end(struct weir_json *js, const uint8_t *p, enum weir_json_kind *kind,
				      const uint8_t **start, const uint8_t **stop)
{
	const uint8_t *q;
	*start = p;
	if (*p == '"') {
		bool escaped = false;
		q = string_end(js, p + 1, &escaped);
		if (q == NULL)
			return NULL;
		*kind = escaped ? WEIR_JSON_STRING_ESCAPED : WEIR_JSON_STRING;
		*start = p + 1;
		*stop = q;
		return q + 1;
	}
	if (*p == '-' || weir_json_is_digit(*p)) {
		const uint8_t *bad = NULL;
		*kind = WEIR_JSON_NUMBER;
		*stop = q = weir_json_number_end(p, js->end, &bad);
		if (q == NULL)
			weir_json_refuse(js, WEIR_REASON_JSON, bad, NULL, "a malformed number");
		return q;
	}
	*stop = q = literal_end(p, js->end, kind);
	if (q == NULL)
		weir_json_refuse(js, WEIR_REASON_JSON, p, NULL, "expected a value");
	return q;
}

/* Notes a value to learn from. */
WEIR_INLINE void note_value(struct weir_json *js, enum weir_json_kind kind, const uint8_t *start, const uint8_t *end,
			    uint32_t depth, const struct weir_json_node *node)
{
	if (js->value_count < WEIR_JSON_VALUES)
		js->values[js->value_count] = (struct weir_json_value){(uint32_t)(start - js->doc),
								       (uint32_t)(end - js->doc), kind, depth, node};
	js->value_count++;
}

WEIR_INLINE bool is_leaf(const struct weir_json_node *node)
{
	return node->first_field != WEIR_JSON_NONE && node->member_count + node->element_count == 0;
}

/* The end of the value at p, checked; what the tree wants of it is noted in its nodes. base: containers open around it.
 * NULL: malformed, and noted. */
JSON_FN const uint8_t *parse_value(struct weir_json *js, const uint8_t *p, struct weir_json_node *node, uint32_t base)
{
	const uint8_t *const end = js->end;
	struct weir_json_frame *frame = &js->stack[base], *const bottom = frame;
	const char *wanted;
	bool note = js->noting;

value:
	wanted = "expected a value";
	if (WEIR_UNLIKELY(p >= end))
		goto unexpected;
	if (*p == '{' || *p == '[') {
		bool is_array = *p == '[';
		if (WEIR_UNLIKELY((size_t)(frame - js->stack) == js->depth_max)) {
			weir_json_refuse(js, WEIR_REASON_DEPTH, p, NULL, "nested deeper than json.depth.max");
			goto refused;
		}
		frame++;
		*frame = (struct weir_json_frame){.node = node, .start = (uint32_t)(p - js->doc), .is_array = is_array};
		if (node != NULL)
			weir_json_note(js, node, is_array ? WEIR_JSON_ARRAY : WEIR_JSON_OBJECT, p, p);
		if (note) {
			/* Arrays vary in length, and what is wanted whole needs no inside: one value of the layout. */
			if (is_array ? node == NULL || is_leaf(node) : node != NULL && is_leaf(node)) {
				frame->holds = true;
				note = false;
			} else if (node != NULL && node->first_field != WEIR_JSON_NONE) {
				js->value_count = WEIR_JSON_VALUES + 1;
			}
		}
		p = skip_space(p + 1, end);
		if (WEIR_UNLIKELY(p >= end))
			goto unexpected;
		if (is_array) {
			if (*p == ']')
				goto close;
			goto element;
		}
		if (*p == '}')
			goto close;
		goto member;
	}
	{
		enum weir_json_kind kind;
		const uint8_t *start, *stop;
		p = scalar_end(js, p, &kind, &start, &stop);
		if (WEIR_UNLIKELY(p == NULL))
			goto refused;
		if (node != NULL)
			weir_json_note(js, node, kind, start, stop);
		if (note)
			note_value(js, kind, start, stop, (uint32_t)(frame - js->stack), node);
	}

after_value:
	if (frame == bottom)
		return p;
	p = skip_space(p, end);
	node = NULL;
	if (frame->is_array) {
		wanted = "expected ',' or ']'";
		if (WEIR_UNLIKELY(p >= end))
			goto unexpected;
		if (*p == ']')
			goto close;
		if (*p != ',')
			goto unexpected;
		p = skip_space(p + 1, end);
		frame->index++;
		goto element;
	}
	wanted = "expected ',' or '}'";
	if (WEIR_UNLIKELY(p >= end))
		goto unexpected;
	if (*p == '}')
		goto close;
	if (*p != ',')
		goto unexpected;
	p = skip_space(p + 1, end);

member:
	node = NULL;
	wanted = "expected a member name";
	if (WEIR_UNLIKELY(p >= end || *p != '"'))
		goto unexpected;
	{
		bool escaped = false;
		const uint8_t *name = p + 1;
		p = string_end(js, name, &escaped);
		if (WEIR_UNLIKELY(p == NULL))
			goto refused;
		if (frame->node != NULL && (escaped || (frame->node->member_lengths >> ((p - name) & 63) & 1) != 0))
			node = weir_json_member(js, frame->node, name, (uint32_t)(p - name), escaped, &frame->next);
	}
	p = skip_space(p + 1, end);
	wanted = "expected ':'";
	if (WEIR_UNLIKELY(p >= end || *p != ':'))
		goto unexpected;
	p = skip_space(p + 1, end);
	goto value;

element:
	node = NULL;
	if (frame->node != NULL && frame->next < frame->node->element_count &&
	    frame->node->elements[frame->next].index == frame->index)
		node = &frame->node->elements[frame->next++];
	goto value;

close:
	p++;
	node = frame->node;
	if (node != NULL)
		node->end = (uint32_t)(p - js->doc);
	if (frame->holds) {
		note = true;
		note_value(js, frame->is_array ? WEIR_JSON_ARRAY : WEIR_JSON_OBJECT, js->doc + frame->start, p,
			   (uint32_t)(frame - js->stack) - 1, node);
	}
	frame--;
	goto after_value;

unexpected:
	weir_json_refuse(js, WEIR_REASON_JSON, p, NULL, p >= end ? "the document ends too early" : wanted);
refused:
	/* The wanted value that it happened in, however deep. */
	for (; node == NULL && frame != bottom; frame--)
		node = frame->node;
	if (node != NULL && node->first_field != WEIR_JSON_NONE)
		js->error_field = js->fields[node->first_field].name;
	return NULL;
}

JSON_FN bool parse_document(struct weir_json *js)
{
	const uint8_t *p = skip_space(js->doc, js->end);
	p = parse_value(js, p, &js->root, 0);
	if (WEIR_UNLIKELY(p == NULL))
		return false;
	p = skip_space(p, js->end);
	return WEIR_LIKELY(p == js->end) ||
	       weir_json_refuse(js, WEIR_REASON_JSON, p, NULL, "something follows the document");
}

#include "hotpath/format/json_fast.h"

/* A row that no layout fits: the general parser, which may learn from it. */
JSON_FN WEIR_NOINLINE void decode_row(struct weir_json *js, const uint8_t *value, uint32_t bytes, uint32_t row)
{
	js->row = row;
	weir_json_row_reset(js, row);
	if (value == NULL) {
		weir_json_row_null(js, row);
		return;
	}
	js->doc = value;
	js->end = value + bytes;
	if (!weir_json_admit(js, value, bytes)) {
		weir_json_row_bad(js, row);
		return;
	}
	js->generation++;
	js->duplicate = false;
	js->value_count = 0;
	js->noting = js->speculate && js->row_clock >= js->paused_until;
	js->general_count++;
	if (!parse_document(js) || !weir_json_finish(js, row))
		weir_json_row_bad(js, row);
	else if (js->noting && weir_json_miss(js))
		weir_json_learn(js);
}

/* Rows i.. by whichever layout fits row i; the place in sel of the first row that none fits. */
JSON_FN uint32_t decode_fast(struct weir_json *js, const struct weir_record *records, const struct weir_sel *sel,
			     uint32_t i)
{
	uint32_t tried = 0;
	while (i < sel->count && tried < WEIR_JSON_LAYOUTS) {
		struct weir_json_layout *l = &js->layouts[js->current];
		uint32_t next = i;
		if (l->step_count != 0)
			next = decode_run(js, l, records, sel, i);
		tried++;
		if (next != i) {
			js->row_clock += next - i;
			js->fast_count += next - i;
			l->used_at = js->row_clock;
			tried = 1; /* this one fails at row next */
			i = next;
		}
		if (i < sel->count) {
			weir_json_row_reset(js, sel->row[i]);
			js->current = (js->current + 1) % WEIR_JSON_LAYOUTS;
		}
	}
	return i;
}

JSON_FN void decode_rows(struct weir_json *js, const struct weir_record *records, struct weir_sel *sel)
{
	uint32_t i = 0;
	while (i < sel->count) {
		if (js->speculate && js->row_clock >= js->paused_until)
			i = decode_fast(js, records, sel, i);
		if (i == sel->count)
			break;
		const struct weir_record *r = &records[sel->row[i]];
		decode_row(js, js->on_key ? r->key : r->value, js->on_key ? r->key_bytes : r->value_bytes, sel->row[i]);
		js->row_clock++;
		i++;
	}
}
