/* json_fast.h: the speculative parser: a run of records against one learned layout. Included by json_parse.h for each
 * variant, which also defines block_match, digits_integer, digits_decimal and digits_skip. @thread worker
 *
 * Cost: an order of six members, three of them wanted, takes 215 instructions (AVX2, bench_json --instructions) and 21
 * ns on a Xeon of 2.3 GHz. Reads go at most WEIR_PAYLOAD_PAD beyond the end: p <= end before each value, a value's
 * blocks start at or before the end, and the fixed bytes behind a value start less than 32 bytes beyond it (foretold
 * lengths are shorter, and with blocks of 64 bytes a string that ends beyond the end is given up at once). The layout's
 * last step demands that the document ends exactly where its bytes do, so whatever was read beyond the end can only
 * make it fail. */

_Static_assert((JSON_BLOCK <= 32 && 31 + WEIR_JSON_FIXED_BYTES <= WEIR_PAYLOAD_PAD) || JSON_BLOCK == 64,
	       "over-reads stay in the pad");

/* Any scalar at p: checked, and converted where wanted. The way for everything that has no shorter one. */
JSON_FN WEIR_NOINLINE const uint8_t *fast_any(struct weir_json *js, const struct weir_json_step *s, const uint8_t *p,
					      const uint8_t *end, uint32_t row)
{
	enum weir_json_kind kind;
	const uint8_t *start, *stop;
	js->doc = p;
	js->end = end;
	if (p >= end)
		return NULL;
	p = scalar_end(js, p, &kind, &start, &stop);
	if (p == NULL || s->f == NULL)
		return p;
	return weir_json_convert(js, s->f, kind, start, stop, row) ? p : NULL;
}

JSON_FN WEIR_NOINLINE const uint8_t *fast_container(struct weir_json *js, const struct weir_json_step *s,
						    const uint8_t *p, const uint8_t *end, uint32_t row)
{
	js->doc = p;
	js->end = end;
	js->noting = false;
	if (p >= end || (*p != '{' && *p != '['))
		return fast_any(js, s, p, end, row); /* null, mostly */
	const uint8_t *q = parse_value(js, p, NULL, s->depth);
	if (q == NULL || s->f == NULL)
		return q;
	enum weir_json_kind kind = *p == '{' ? WEIR_JSON_OBJECT : WEIR_JSON_ARRAY;
	return weir_json_convert(js, s->f, kind, p, q, row) ? q : NULL;
}

/* Goes on with the value before step s that stopped early at p: a string at an escape or at a character beyond ASCII, a
 * number at a point or exponent that its column does not usually have. Its end, with the value set again, or NULL. */
JSON_FN const uint8_t *fast_resume(struct weir_json *js, const struct weir_json_step *before, const uint8_t *p,
				   const uint8_t *end, uint32_t row)
{
	bool escaped = false;
	switch (before->op) {
	case WEIR_JSON_STEP_INTEGER:
	case WEIR_JSON_STEP_SMALL:
	case WEIR_JSON_STEP_DECIMAL:
	case WEIR_JSON_STEP_SKIP_NUMBER:
		if (*p != '.' && *p != 'e' && *p != 'E')
			return NULL;
		/* Back to its start: no character of a number can stand before one. All of it, for fast_any may have
		 * been here before: then it ends where it ended then, and the layout fails. */
		while (weir_json_is_digit(p[-1]) || p[-1] == '.' || p[-1] == '-' || p[-1] == '+' ||
		       (p[-1] | 0x20) == 'e')
			p--;
		return fast_any(js, before, p, end, row);
	case WEIR_JSON_STEP_STRING:
	case WEIR_JSON_STEP_SKIP_STRING:
		if (*p != '\\' && *p < 0x80)
			return NULL;
		js->doc = p;
		js->end = end;
		p = string_rest(js, p, &escaped);
		if (p == NULL || before->op == WEIR_JSON_STEP_SKIP_STRING)
			return p;
		struct weir_str *str = &((struct weir_str *)before->dest)[row];
		if (!weir_json_convert(js, before->f, escaped ? WEIR_JSON_STRING_ESCAPED : WEIR_JSON_STRING, str->data,
				       p, row))
			return NULL;
		return p;
	default:
		return NULL;
	}
}

/* The bytes at p are not those of step s. Where the value before them stopped early, goes on with it; where null
 * stands in place of the string that the step leads to, takes it. Then what follows the fixed bytes, with *s perhaps
 * some steps further on. NULL: the layout fails. */
JSON_FN WEIR_NOINLINE const uint8_t *fast_mend(struct weir_json *js, const struct weir_json_layout *l,
					       struct weir_json_step *s, const uint8_t *p, const uint8_t *end,
					       uint32_t row)
{
	if (p >= end)
		return NULL;
	if (s != l->steps && (*p == '\\' || *p >= 0x80 || *p == '.' || (*p | 0x20) == 'e')) {
		p = fast_resume(js, s - 1, p, end, row);
		if (p == NULL)
			return NULL;
	}
	/* After a null the fixed bytes lack the quote that they begin with, before one the quote that they end with. */
	for (uint32_t lacking = 0;; lacking = 1) {
		const uint8_t *fixed = s->fixed + lacking;
		size_t bytes = (size_t)s->fixed_bytes - lacking;
		if ((size_t)(end - p) < bytes)
			return NULL;
		if (memcmp(p, fixed, bytes) == 0) {
			js->step = s;
			return p + bytes;
		}
		if ((s->op != WEIR_JSON_STEP_STRING && s->op != WEIR_JSON_STEP_SKIP_STRING) || bytes == 0 ||
		    (size_t)(end - p) < bytes + 3 || memcmp(p, fixed, bytes - 1) != 0 ||
		    memcmp(p + bytes - 1, "null", 4) != 0)
			return NULL;
		js->doc = p;
		if (s->f != NULL && !weir_json_convert_null(js, s->f, p, row))
			return NULL;
		p += bytes + 3;
		s++;
	}
}

JSON_FN WEIR_NOINLINE bool fast_nulls(struct weir_json *js, const struct weir_json_layout *l, uint32_t row)
{
	for (uint32_t i = 0; i < l->null_count; i++)
		if (!weir_json_convert_null(js, &js->fields[l->null_fields[i]], NULL, row))
			return false;
	return true;
}

/* The string's end, or what interrupts it; NULL: beyond the document's end. */
JSON_INLINE const uint8_t *fast_string(const struct vectors *k, const uint8_t *p, const uint8_t *end)
{
	for (;;) {
		uint64_t special = block_special(k, p);
		if (WEIR_LIKELY(special != 0)) {
			p += (unsigned)__builtin_ctzll(special) >> JSON_SHIFT;
			break;
		}
		p += JSON_BLOCK;
		if (WEIR_UNLIKELY(p > end))
			return NULL;
	}
#if JSON_BLOCK == 64
	return p <= end ? p : NULL;
#else
	return p;
#endif
}

#if JSON_SHIFT == 0
/* Where a string of another length than foretold ends, or JSON_BLOCK. */
JSON_FN WEIR_NOINLINE uint64_t string_length(const struct vectors *k, const uint8_t *p)
{
	uint64_t special = block_special(k, p);
	return special != 0 ? (unsigned)__builtin_ctzll(special) : JSON_BLOCK;
}
#endif

/* Rows i.. of sel by layout l, up to the first that it does not fit or that has a bad value; that one's place in sel.
 * The columns of that row may have been written to. */
JSON_FN WEIR_NOINLINE uint32_t decode_run(struct weir_json *js, struct weir_json_layout *l,
					  const struct weir_record *records, const struct weir_sel *sel, uint32_t i)
{
	/* By enum weir_json_step_op. Each step jumps on to the next one's code by itself: the branch predictor then
	 * knows the place in the document. */
	static const void *const code[] = {&&fixed,       &&skip_string, &&string, &&integer,   &&small, &&decimal,
					   &&skip_number, &&literal,     &&any,    &&container, &&done};
#if JSON_SHIFT == 0
	static const void *const code_foretold[] = {NULL,
						    &&skip_string_foretold,
						    &&string_foretold,
						    &&integer_foretold,
						    NULL,
						    &&decimal_foretold,
						    NULL,
						    NULL,
						    NULL,
						    NULL,
						    NULL};
#else
	static const void *const code_foretold[WEIR_JSON_STEP_END + 1] = {NULL};
#endif

	/* Payloads of a batch mostly follow each other in memory; about fourteen records ahead. */
	enum { AHEAD_BYTES = 2048 };
	if (l->bound_call != js->call)
		weir_json_bind(js, l, code, code_foretold, JSON_BLOCK < 32 ? JSON_BLOCK : 32); /* over-reads, above */
	const size_t data_at = js->on_key ? offsetof(struct weir_record, key) : offsetof(struct weir_record, value);
	const size_t bytes_at =
		js->on_key ? offsetof(struct weir_record, key_bytes) : offsetof(struct weir_record, value_bytes);
	const struct vectors *k = vectors_get();
	const uint16_t *next = sel->row + i, *const stop = sel->row + sel->count;
	struct weir_json_step *s;
	const uint8_t *p, *end;
	uint32_t bytes;
	size_t row;
	uint64_t n, number;

/* Expects the fixed bytes of the step and goes to its value. */
#define JSON_STEP()                                                                                                    \
	do {                                                                                                           \
		if (WEIR_UNLIKELY(!block_match(p, s)))                                                                 \
			goto mismatch;                                                                                 \
		p += s->fixed_bytes;                                                                                   \
		if (WEIR_UNLIKELY(p > end))                                                                            \
			goto failed;                                                                                   \
		goto * s->code;                                                                                        \
	} while (0)

/* The asm keeps GCC from computing the next step ahead of the jump, in one more register. */
#define JSON_ADVANCE()                                                                                                 \
	do {                                                                                                           \
		s++;                                                                                                   \
		__asm__("" : "+r"(s));                                                                                 \
	} while (0)

record:
	if (next == stop)
		return sel->count;
	row = *next;
	{
		const uint8_t *r = (const uint8_t *)&records[row];
		p = *(const uint8_t *const *)(const void *)(r + data_at);
		bytes = *(const uint32_t *)(const void *)(r + bytes_at);
	}
	/* Every line of a record of up to 192 bytes: another core has written them. */
	__builtin_prefetch((const void *)((uintptr_t)p + AHEAD_BYTES));
	__builtin_prefetch((const void *)((uintptr_t)p + AHEAD_BYTES + 64));
	__builtin_prefetch((const void *)((uintptr_t)p + AHEAD_BYTES + 128));
	if (WEIR_UNLIKELY(p == NULL || bytes > js->record_bytes_max))
		goto failed;
	end = p + bytes;
	s = l->steps;
	JSON_STEP();

fixed:
	JSON_ADVANCE();
	JSON_STEP();

string : {
	struct weir_str *str = &((struct weir_str *)s->dest)[row];
	str->data = p;
	const uint8_t *q = fast_string(k, p, end);
	if (WEIR_UNLIKELY(q == NULL))
		goto failed;
	str->bytes = (uint32_t)(q - p);
	p = q;
	JSON_ADVANCE();
	JSON_STEP();
}
skip_string:
	p = fast_string(k, p, end);
	if (WEIR_UNLIKELY(p == NULL))
		goto failed;
	JSON_ADVANCE();
	JSON_STEP();

integer:
	n = digits_integer(k, p, &number);
	if (WEIR_UNLIKELY(n == 0))
		goto any;
	((int64_t *)s->dest)[row] = (int64_t)number;
	p += n;
	JSON_ADVANCE();
	JSON_STEP();

small:
	n = digits_integer(k, p, &number);
	if (WEIR_UNLIKELY(n == 0 || (int64_t)number > s->f->int_max))
		goto any;
	((int64_t *)s->dest)[row] = (int64_t)number;
	p += n;
	JSON_ADVANCE();
	JSON_STEP();

decimal:
	n = digits_decimal(k, p, s->f, &number);
	if (WEIR_UNLIKELY(n == 0))
		goto any;
	((int64_t *)s->dest)[row] = (int64_t)number;
	p += n;
	JSON_ADVANCE();
	JSON_STEP();

skip_number:
	n = digits_skip(k, p);
	if (WEIR_UNLIKELY(n == 0))
		goto any;
	p += n;
	JSON_ADVANCE();
	JSON_STEP();

literal : {
	enum weir_json_kind kind;
	const uint8_t *q = literal_end(p, end, &kind);
	if (WEIR_UNLIKELY(q == NULL || (kind == WEIR_JSON_NULL && s->f != NULL)))
		goto any;
	if (s->f != NULL)
		((uint8_t *)s->dest)[row] = kind == WEIR_JSON_TRUE;
	p = q;
	JSON_ADVANCE();
	JSON_STEP();
}

#if JSON_SHIFT == 0
string_foretold:
	if (WEIR_UNLIKELY((block_plain(k, p) & s->upto) != s->below)) {
		weir_json_step_missed(s, string_length(k, p));
		goto string;
	}
	{
		struct weir_str *str = &((struct weir_str *)s->dest)[row];
		str->data = p;
		str->bytes = (uint32_t)s->length;
	}
	p += s->length;
	JSON_ADVANCE();
	JSON_STEP();

skip_string_foretold:
	if (WEIR_UNLIKELY((block_plain(k, p) & s->upto) != s->below)) {
		weir_json_step_missed(s, string_length(k, p));
		goto skip_string;
	}
	p += s->length;
	JSON_ADVANCE();
	JSON_STEP();

integer_foretold:
	if (WEIR_UNLIKELY(!foretold_integer(k, p, s, &number))) {
		weir_json_step_missed(s, digits_integer(k, p, &number));
		goto integer;
	}
	((int64_t *)s->dest)[row] = (int64_t)number;
	p += s->length;
	JSON_ADVANCE();
	JSON_STEP();

decimal_foretold:
	if (WEIR_UNLIKELY(!foretold_decimal(k, p, s, &number))) {
		weir_json_step_missed(s, digits_decimal(k, p, s->f, &number));
		goto decimal;
	}
	((int64_t *)s->dest)[row] = (int64_t)number;
	p += s->length;
	JSON_ADVANCE();
	JSON_STEP();
#endif

any:
	p = fast_any(js, s, p, end, (uint32_t)row);
	if (WEIR_UNLIKELY(p == NULL))
		goto failed;
	JSON_ADVANCE();
	JSON_STEP();

container:
	p = fast_container(js, s, p, end, (uint32_t)row);
	if (WEIR_UNLIKELY(p == NULL))
		goto failed;
	JSON_ADVANCE();
	JSON_STEP();

mismatch:
	p = fast_mend(js, l, s, p, end, (uint32_t)row);
	if (p == NULL || p > end)
		goto failed;
	s = js->step;
	goto * s->code;

done:
	if (WEIR_UNLIKELY(p != end))
		goto failed;
	if (WEIR_UNLIKELY(l->null_count != 0) && !fast_nulls(js, l, (uint32_t)row))
		goto failed;
	next++;
	goto record;

failed:
	return (uint32_t)(next - sel->row);
#undef JSON_STEP
#undef JSON_ADVANCE
}
