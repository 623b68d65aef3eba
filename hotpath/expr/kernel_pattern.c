/* kernel_pattern.c: LIKE, and the regular expressions. @thread worker (kernels), init (rules, prepare, open).
 *
 * A constant LIKE pattern is compiled when the plan is made, and most of them need one comparison or one search.
 * Regular expressions are PCRE2's in UTF-8 (close to Java's), compiled per call site and program, so that match buffers
 * need no lock; how much a match may cost is limited, and beyond that the row fails. A pattern that is a column is
 * compiled when it changes. */
#include "hotpath/expr/kernel.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

/* -- LIKE -- */

enum like_form { LIKE_EXACT, LIKE_PREFIX, LIKE_SUFFIX, LIKE_INFIX, LIKE_AROUND, LIKE_GENERAL };

#define LIKE_ONE  256
#define LIKE_MANY 257

struct like {
	enum like_form form;
	uint32_t count;
	uint16_t *code;       /* bytes, LIKE_ONE, LIKE_MANY */
	struct weir_str text; /* the bytes, for all forms but LIKE_GENERAL */
	uint32_t prefix;      /* LIKE_AROUND: bytes before the % */
};

/* escape < 0: the implicit backslash, which before anything else stands for itself. code has room for pattern.bytes. */
static const char *like_compile(struct weir_str pattern, int escape, struct like *l)
{
	uint32_t n = 0, many = 0, one = 0;
	for (uint32_t i = 0; i < pattern.bytes; i++) {
		uint8_t c = pattern.data[i];
		if (c == (escape < 0 ? '\\' : escape)) {
			uint8_t next = i + 1 < pattern.bytes ? pattern.data[i + 1] : 0;
			if (i + 1 < pattern.bytes && (next == '%' || next == '_' || next == c)) {
				l->code[n++] = next;
				i++;
				continue;
			}
			if (escape >= 0)
				return "the escape character must stand before %, _ or itself";
		}
		if (c == '%') {
			if (n == 0 || l->code[n - 1] != LIKE_MANY) {
				l->code[n++] = LIKE_MANY;
				many++;
			}
		} else if (c == '_') {
			l->code[n++] = LIKE_ONE;
			one++;
		} else {
			l->code[n++] = c;
		}
	}
	l->count = n;
	bool first = n > 0 && l->code[0] == LIKE_MANY, last = n > 0 && l->code[n - 1] == LIKE_MANY;
	l->form = LIKE_GENERAL;
	if (one == 0 && many == 0)
		l->form = LIKE_EXACT;
	else if (one == 0 && many == 1 && last)
		l->form = LIKE_PREFIX;
	else if (one == 0 && many == 1 && first)
		l->form = LIKE_SUFFIX;
	else if (one == 0 && many == 2 && first && last)
		l->form = LIKE_INFIX;
	else if (one == 0 && many == 1)
		l->form = LIKE_AROUND;
	while (l->form == LIKE_AROUND && l->code[l->prefix] != LIKE_MANY)
		l->prefix++;
	return NULL;
}

static void like_set_text(struct like *l, uint8_t *to)
{
	uint32_t bytes = 0;
	for (uint32_t i = 0; i < l->count && l->form != LIKE_GENERAL; i++)
		if (l->code[i] != LIKE_MANY)
			to[bytes++] = (uint8_t)l->code[i];
	l->text = (struct weir_str){to, bytes, 0};
}

/* Linear but for the last %: on a mismatch that takes one byte more. */
static bool like_general(const struct like *l, struct weir_str s)
{
	uint32_t p = 0, i = 0, back_p = UINT32_MAX, back_i = 0;
	while (i < s.bytes) {
		if (p < l->count && l->code[p] == LIKE_MANY) {
			back_p = ++p;
			back_i = i;
		} else if (p < l->count && l->code[p] == LIKE_ONE) {
			i += weir_utf8_width(s.data[i]);
			p++;
		} else if (p < l->count && l->code[p] == s.data[i]) {
			i++;
			p++;
		} else if (back_p != UINT32_MAX) {
			p = back_p;
			back_i += weir_utf8_width(s.data[back_i]);
			i = back_i;
		} else {
			return false;
		}
	}
	while (p < l->count && l->code[p] == LIKE_MANY)
		p++;
	return p == l->count;
}

static bool like_match(const struct like *l, struct weir_str s)
{
	const struct weir_str *t = &l->text;
	switch (l->form) {
	case LIKE_EXACT:
		return weir_str_equal(s, *t);
	case LIKE_PREFIX:
		return s.bytes >= t->bytes && memcmp(s.data, t->data, t->bytes) == 0;
	case LIKE_SUFFIX:
		return s.bytes >= t->bytes && memcmp(s.data + s.bytes - t->bytes, t->data, t->bytes) == 0;
	case LIKE_INFIX:
		return memmem(s.data, s.bytes, t->data, t->bytes) != NULL;
	case LIKE_AROUND:
		return s.bytes >= t->bytes && memcmp(s.data, t->data, l->prefix) == 0 &&
		       memcmp(s.data + s.bytes - (t->bytes - l->prefix), t->data + l->prefix, t->bytes - l->prefix) ==
			       0;
	default:
		return like_general(l, s);
	}
}

static const char bad_escape[] = "ESCAPE must be one ASCII character other than % and _";

/* -1: none given; -2: bad. */
static int escape_of(struct weir_str s)
{
	return s.bytes == 1 && s.data[0] < 0x80 && s.data[0] != '%' && s.data[0] != '_' ? s.data[0] : -2;
}

WEIR_PREPARE(like)
{
	const struct weir_expr *pattern = weir_const_arg(args, count, 1), *escape = weir_const_arg(args, count, 2);
	if (pattern == NULL || (count > 2 && escape == NULL))
		return WEIR_OK;
	int e = count > 2 ? escape_of(escape->value.str) : -1;
	if (e == -2)
		return weir_diag_set(dg, WEIR_E_PLAN, "%s", bad_escape);
	struct like *l = weir_mem_take(m, sizeof *l);
	l->code = weir_mem_take(m, (pattern->value.str.bytes + 1) * sizeof *l->code);
	const char *problem = like_compile(pattern->value.str, e, l);
	if (problem != NULL)
		return weir_diag_set(dg, WEIR_E_PLAN, "LIKE: %s", problem);
	like_set_text(l, weir_mem_take(m, l->count + 1));
	*data = l;
	return WEIR_OK;
}

WEIR_KERNEL(like)
{
	const struct like *l = k->expr->fn_data;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = weir_arg_str(k, 0, r);
		if (l != NULL) {
			k->out->u8[r] = like_match(l, s);
			continue;
		}
		struct weir_str pattern = weir_arg_str(k, 1, r);
		struct like row = {.code = weir_kernel_take(k, (pattern.bytes + 1) * sizeof *row.code)};
		int e = k->expr->arg_count > 2 ? escape_of(weir_arg_str(k, 2, r)) : -1;
		const char *problem = e == -2 ? bad_escape : like_compile(pattern, e, &row);
		if (problem != NULL) {
			weir_kernel_fail(k, r, WEIR_REASON_EXPR, problem);
			continue;
		}
		row.form = LIKE_GENERAL;
		k->out->u8[r] = like_match(&row, s);
	}
}

/* -- regular expressions -- */

struct regex {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *context;
	uint32_t groups;
	bool known; /* pattern holds what was last compiled; code NULL: it is no regular expression */
	struct weir_buf pattern;
	struct weir_buf text; /* a result on its way */
};

static pcre2_code *compile(struct weir_str s, char *message, size_t bytes, size_t *at)
{
	int error;
	PCRE2_SIZE offset;
	pcre2_code *code = pcre2_compile(s.data, s.bytes, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &offset, NULL);
	if (code == NULL && message != NULL) {
		pcre2_get_error_message(error, (PCRE2_UCHAR *)message, bytes);
		*at = offset;
	}
	return code;
}

WEIR_PREPARE(regex)
{
	(void)m, (void)data;
	char message[160] = "";
	size_t at = 0;
	const struct weir_expr *pattern = weir_const_arg(args, count, 1);
	if (pattern == NULL)
		return WEIR_OK;
	pcre2_code *code = compile(pattern->value.str, message, sizeof message, &at);
	if (code == NULL)
		return weir_diag_set(dg, WEIR_E_PLAN, "bad regular expression: %s at character %zu of '%.*s'", message,
				     at + 1, (int)pattern->value.str.bytes, (const char *)pattern->value.str.data);
	pcre2_code_free(code);
	return WEIR_OK;
}

static void regex_set(struct regex *x, struct weir_str s)
{
	pcre2_code_free(x->code);
	pcre2_match_data_free(x->match);
	x->match = NULL;
	x->groups = 0;
	x->code = compile(s, NULL, 0, NULL);
	x->known = true;
	x->pattern.bytes = 0;
	weir_buf_put(&x->pattern, s.data, s.bytes);
	if (x->code == NULL)
		return;
	(void)pcre2_jit_compile(x->code, PCRE2_JIT_COMPLETE); /* without it matching is slower, not other */
	x->match = pcre2_match_data_create_from_pattern(x->code, NULL);
	pcre2_pattern_info(x->code, PCRE2_INFO_CAPTURECOUNT, &x->groups);
}

void *weir_open_regex(const struct weir_expr *e)
{
	struct regex *x = weir_xcalloc(1, sizeof *x);
	x->context = pcre2_match_context_create(NULL);
	if (x->context != NULL) {
		pcre2_set_match_limit(x->context, 1000000);
		pcre2_set_depth_limit(x->context, 100000);
		pcre2_set_heap_limit(x->context, 16384);
	}
	(void)weir_buf_room(&x->text, 1024);
	const struct weir_expr *pattern = weir_const_arg(e->args, e->arg_count, 1);
	if (pattern != NULL)
		regex_set(x, pattern->value.str);
	return x;
}

void weir_close_regex(void *state)
{
	struct regex *x = state;
	pcre2_code_free(x->code);
	pcre2_match_data_free(x->match);
	pcre2_match_context_free(x->context);
	weir_buf_fini(&x->pattern);
	weir_buf_fini(&x->text);
	free(x);
}

/* False: not a regular expression. */
static bool regex_ready(struct weir_kernel *k, uint32_t r)
{
	struct regex *x = k->state;
	struct weir_str s = weir_arg_str(k, 1, r);
	if (!x->known || x->pattern.bytes != s.bytes || (s.bytes != 0 && memcmp(x->pattern.data, s.data, s.bytes) != 0))
		regex_set(x, s);
	return x->code != NULL && x->match != NULL;
}

/* 1 found, 0 not found, -1 the row failed. */
static int regex_find(struct weir_kernel *k, uint32_t r, struct weir_str s, size_t from, uint32_t options)
{
	struct regex *x = k->state;
	int n = pcre2_match(x->code, s.data, s.bytes, from, PCRE2_NO_UTF_CHECK | options, x->match, x->context);
	if (n >= 0)
		return 1;
	if (n == PCRE2_ERROR_NOMATCH)
		return 0;
	weir_kernel_fail(k, r, WEIR_REASON_EXPR, "the regular expression takes too long on this value");
	return -1;
}

WEIR_KERNEL(regexp)
{
	WEIR_FOR_ROWS(k, r)
	{
		int found = regex_ready(k, r) ? regex_find(k, r, weir_arg_str(k, 0, r), 0, 0) : 0;
		k->out->u8[r] = found > 0;
	}
}

/* REGEXP_EXTRACT(s, pattern[, group]): NULL where nothing matches or there is no such group. */
WEIR_KERNEL(regexp_extract)
{
	struct regex *x = k->state;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = weir_arg_str(k, 0, r);
		int64_t group = k->expr->arg_count > 2 ? weir_arg_i64(k, 2, r) : 0;
		int found = regex_ready(k, r) && group >= 0 && group <= x->groups ? regex_find(k, r, s, 0, 0) : 0;
		if (found < 0)
			continue;
		const PCRE2_SIZE *at = found ? pcre2_get_ovector_pointer(x->match) + group * 2 : NULL;
		if (at == NULL || at[0] == PCRE2_UNSET || at[1] < at[0])
			weir_col_set_null(k->out, r);
		else
			weir_out_str(k, r, s.data + at[0], at[1] - at[0]);
	}
}

/* 1 done (the text is in x->text), 0 bad, -1 the row failed. */
static int replace_all(struct weir_kernel *k, uint32_t r, struct weir_str s, struct weir_str with)
{
	struct regex *x = k->state;
	size_t copied = 0, from = 0;
	x->text.bytes = 0;
	while (from <= s.bytes) {
		int found = regex_find(k, r, s, from, 0);
		if (found < 0)
			return -1;
		if (found == 0)
			break;
		const PCRE2_SIZE *at = pcre2_get_ovector_pointer(x->match);
		size_t start = at[0], end = at[1];
		if (end < start)
			return 0;
		weir_buf_put(&x->text, s.data + copied, start - copied);
		weir_buf_put(&x->text, with.data, with.bytes); /* as it is: in Flink, too, $ and \\ have no meaning */
		if (x->text.bytes > WEIR_EXPR_STRING_BYTES_MAX) {
			weir_kernel_fail(k, r, WEIR_REASON_EXPR, "string longer than 16 MiB");
			return -1;
		}
		copied = end;
		from = end;
		if (end == start)
			from += end < s.bytes ? weir_utf8_width(s.data[end]) : 1;
	}
	if (copied < s.bytes)
		weir_buf_put(&x->text, s.data + copied, s.bytes - copied);
	return 1;
}

WEIR_KERNEL(regexp_replace)
{
	struct regex *x = k->state;
	WEIR_FOR_ROWS(k, r)
	{
		int done = regex_ready(k, r) ? replace_all(k, r, weir_arg_str(k, 0, r), weir_arg_str(k, 2, r)) : 0;
		if (done == 0)
			weir_col_set_null(k->out, r);
		else if (done > 0)
			weir_out_copy(k, r, x->text.data, x->text.bytes);
	}
}
