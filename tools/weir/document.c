/* document.c: parses and compares the JSON of test files; see document.h. Recursive, with a bound. Main thread. */
#include "tools/weir/document.h"
#include "hotpath/core/utf8.h"
#include "hotpath/format/number.h"

#include <ctype.h>

enum { DEPTH_MAX = 64 };

struct parser {
	struct weir_mem *mem;
	const char *file;
	const char *text;
	const char *at;
	const char *end;
	uint32_t depth;
	struct weir_diag **dg;
};

static enum weir_err fail(struct parser *ps, const char *what)
{
	const char *at = ps->at < ps->end ? ps->at : ps->end;
	return weir_diag_set_at(ps->dg, WEIR_E_CONF, ps->file != NULL ? ps->file : "JSON", ps->text,
				(size_t)(ps->end - ps->text), at, NULL, "%s", what);
}

static void skip_space(struct parser *ps)
{
	while (ps->at < ps->end && (*ps->at == ' ' || *ps->at == '\t' || *ps->at == '\n' || *ps->at == '\r'))
		ps->at++;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool take_unit(struct parser *ps, uint32_t *out)
{
	*out = 0;
	for (uint32_t i = 0; i < 4; i++, ps->at++) {
		int digit = ps->at < ps->end ? hex_digit(*ps->at) : -1;
		if (digit < 0)
			return false;
		*out = *out << 4 | (uint32_t)digit;
	}
	return true;
}

static char *put_code_point(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 63));
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	}
	return to;
}

/* Behind a backslash. NULL: no valid escape. */
static char *take_escape(struct parser *ps, char *to)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char meaning[] = "\"\\/\b\f\n\r\t";
	if (ps->at == ps->end)
		return NULL;
	char c = *ps->at++;
	if (c != 'u') {
		const char *found = c == 0 ? NULL : strchr(letters, c);
		if (found == NULL)
			return NULL;
		*to = meaning[found - letters];
		return to + 1;
	}
	uint32_t unit;
	uint32_t low;
	if (!take_unit(ps, &unit) || (unit >= 0xdc00 && unit <= 0xdfff))
		return NULL;
	if (unit < 0xd800 || unit > 0xdbff)
		return put_code_point(to, unit);
	if (ps->end - ps->at < 6 || ps->at[0] != '\\' || ps->at[1] != 'u')
		return NULL;
	ps->at += 2;
	if (!take_unit(ps, &low) || low < 0xdc00 || low > 0xdfff)
		return NULL;
	return put_code_point(to, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
}

static enum weir_err take_string(struct parser *ps, const char **out, size_t *out_bytes)
{
	const char *close = ps->at + 1;
	while (close < ps->end && *close != '"')
		close += *close == '\\' && close + 1 < ps->end ? 2 : 1;
	char *text = weir_mem_take(ps->mem, (size_t)(close - ps->at) + 1);
	char *to = text;
	ps->at++;
	while (ps->at < ps->end && *ps->at != '"') {
		if ((uint8_t)*ps->at < 0x20)
			return fail(ps, "a control character inside a string");
		if (*ps->at == '\\') {
			ps->at++;
			to = take_escape(ps, to);
			if (to == NULL)
				return fail(ps, "no valid escape");
		} else {
			*to++ = *ps->at++;
		}
	}
	if (ps->at >= ps->end)
		return fail(ps, "a string without an end");
	ps->at++;
	*out = text;
	*out_bytes = (size_t)(to - text);
	return weir_utf8_check((const uint8_t *)text, *out_bytes, NULL) ? WEIR_OK : fail(ps, "no UTF-8");
}

static enum weir_err take_number(struct parser *ps)
{
	const char *s = ps->at;
	while (ps->at < ps->end && (isdigit((unsigned char)*ps->at) || strchr("+-.eE", *ps->at) != NULL))
		ps->at++;
	struct weir_number n;
	bool leading_zero =
		s[*s == '-'] == '0' && ps->at - s > (*s == '-') + 1 && isdigit((unsigned char)s[(*s == '-') + 1]);
	if (*s == '+' || leading_zero || !weir_number_scan(s, (size_t)(ps->at - s), &n)) {
		ps->at = s;
		return fail(ps, "neither a value nor a number");
	}
	return WEIR_OK;
}

static bool take_word(struct parser *ps, const char *word)
{
	size_t bytes = strlen(word);
	if ((size_t)(ps->end - ps->at) < bytes || memcmp(ps->at, word, bytes) != 0)
		return false;
	ps->at += bytes;
	return true;
}

static enum weir_err take_value(struct parser *ps, struct weir_node **out);

/* The elements of an array or the members of an object, behind the opening bracket. */
static enum weir_err take_children(struct parser *ps, struct weir_node *nd, char close)
{
	struct weir_node **last = &nd->first;
	skip_space(ps);
	if (ps->at < ps->end && *ps->at == close) {
		ps->at++;
		return WEIR_OK;
	}
	for (;;) {
		const char *name = NULL;
		size_t name_bytes = 0;
		skip_space(ps);
		if (nd->kind == WEIR_NODE_OBJECT) {
			if (ps->at >= ps->end || *ps->at != '"')
				return fail(ps, "expected a member name");
			enum weir_err err = take_string(ps, &name, &name_bytes);
			if (err != WEIR_OK)
				return err;
			skip_space(ps);
			if (ps->at >= ps->end || *ps->at != ':')
				return fail(ps, "expected `:`");
			ps->at++;
		}
		enum weir_err err = take_value(ps, last);
		if (err != WEIR_OK)
			return err;
		(*last)->name = name;
		last = &(*last)->next;
		nd->count++;
		skip_space(ps);
		if (ps->at < ps->end && *ps->at == close) {
			ps->at++;
			return WEIR_OK;
		}
		if (ps->at >= ps->end || *ps->at != ',')
			return fail(ps, close == '}' ? "expected `,` or `}`" : "expected `,` or `]`");
		ps->at++;
	}
}

static enum weir_err take_value(struct parser *ps, struct weir_node **out)
{
	skip_space(ps);
	if (ps->at == ps->end)
		return fail(ps, "the document ends too early");
	struct weir_node *nd = weir_mem_take(ps->mem, sizeof *nd);
	nd->text = ps->at;
	enum weir_err err = WEIR_OK;
	if (*ps->at == '"') {
		nd->kind = WEIR_NODE_STRING;
		err = take_string(ps, &nd->string, &nd->string_bytes);
	} else if (*ps->at == '{' || *ps->at == '[') {
		nd->kind = *ps->at == '{' ? WEIR_NODE_OBJECT : WEIR_NODE_ARRAY;
		if (++ps->depth > DEPTH_MAX)
			return fail(ps, "nested too deep");
		ps->at++;
		err = take_children(ps, nd, nd->kind == WEIR_NODE_OBJECT ? '}' : ']');
		ps->depth--;
	} else if (take_word(ps, "null")) {
		nd->kind = WEIR_NODE_NULL;
	} else if (take_word(ps, "true")) {
		nd->kind = WEIR_NODE_TRUE;
	} else if (take_word(ps, "false")) {
		nd->kind = WEIR_NODE_FALSE;
	} else {
		nd->kind = WEIR_NODE_NUMBER;
		err = take_number(ps);
	}
	nd->bytes = (size_t)(ps->at - nd->text);
	*out = nd;
	return err;
}

enum weir_err weir_document_parse(struct weir_node **out, struct weir_mem *mem, const char *file, const char *text,
				  size_t bytes, struct weir_diag **dg)
{
	struct parser ps = {.mem = mem, .file = file, .text = text, .at = text, .end = text + bytes, .dg = dg};
	struct weir_node *nd;
	enum weir_err err = take_value(&ps, &nd);
	if (err != WEIR_OK)
		return err;
	skip_space(&ps);
	if (ps.at != ps.end)
		return fail(&ps, "something behind the document");
	*out = nd;
	return WEIR_OK;
}

struct weir_node *weir_node_get(const struct weir_node *nd, const char *name)
{
	struct weir_node *found = NULL;
	if (nd == NULL || nd->kind != WEIR_NODE_OBJECT)
		return NULL;
	for (struct weir_node *member = nd->first; member != NULL; member = member->next)
		if (strcmp(member->name, name) == 0)
			found = member;
	return found;
}

bool weir_node_int(const struct weir_node *nd, int64_t *out)
{
	return nd != NULL && nd->kind == WEIR_NODE_NUMBER && weir_parse_i64(nd->text, nd->bytes, out) == WEIR_NUMBER_OK;
}

static bool equal_numbers(const struct weir_node *a, const struct weir_node *b)
{
	if (a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0)
		return true;
	weir_i128 x;
	weir_i128 y;
	double p;
	double q;
	bool whole = memchr(a->text, '.', a->bytes) == NULL && memchr(b->text, '.', b->bytes) == NULL;
	if (whole && weir_parse_decimal(a->text, a->bytes, 38, 0, &x) == WEIR_NUMBER_OK &&
	    weir_parse_decimal(b->text, b->bytes, 38, 0, &y) == WEIR_NUMBER_OK)
		return x == y;
	if (weir_parse_double(a->text, a->bytes, &p) != WEIR_NUMBER_OK ||
	    weir_parse_double(b->text, b->bytes, &q) != WEIR_NUMBER_OK)
		return false;
	double distance = p < q ? q - p : p - q;
	double size = p < 0 ? -p : p;
	return distance <= 1e-6 || distance <= size * 1e-14;
}

static bool equal_names(const char *a, const char *b, unsigned flags)
{
	if (strcmp(a, b) == 0)
		return true;
	if ((flags & WEIR_EQUAL_ANY_CASE) == 0)
		return false;
	while (*a != 0 && toupper((unsigned char)*a) == toupper((unsigned char)*b)) {
		a++;
		b++;
	}
	return *a == 0 && *b == 0;
}

/* Every member of a has its equal in b. */
static bool members_within(const struct weir_node *a, const struct weir_node *b, unsigned flags)
{
	for (const struct weir_node *x = a->first; x != NULL; x = x->next) {
		const struct weir_node *y = b->first;
		while (y != NULL && !equal_names(x->name, y->name, flags))
			y = y->next;
		if (y == NULL && x->kind == WEIR_NODE_NULL && (flags & WEIR_EQUAL_NULL_ABSENT) != 0)
			continue;
		if (y == NULL || !weir_node_equal(x, y, flags))
			return false;
	}
	return true;
}

bool weir_node_equal(const struct weir_node *expected, const struct weir_node *actual, unsigned flags)
{
	if (expected->kind != actual->kind)
		return false;
	switch (expected->kind) {
	case WEIR_NODE_NUMBER:
		return equal_numbers(expected, actual);
	case WEIR_NODE_STRING:
		return expected->string_bytes == actual->string_bytes &&
		       memcmp(expected->string, actual->string, expected->string_bytes) == 0;
	case WEIR_NODE_OBJECT:
		return members_within(expected, actual, flags) && members_within(actual, expected, flags);
	case WEIR_NODE_ARRAY:
		if (expected->count != actual->count)
			return false;
		for (const struct weir_node *x = expected->first, *y = actual->first; x != NULL;
		     x = x->next, y = y->next)
			if (!weir_node_equal(x, y, flags))
				return false;
		return true;
	default:
		return true;
	}
}
