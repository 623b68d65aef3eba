/* token.c: splits SQL text into tokens and gives parsers a read position over them. Cold path, @thread init.
 *
 * Every token's text is unescaped into one block: a token takes at least one source byte, so text plus terminator of
 * all tokens fit into twice the source. */
#include "hotpath/expr/token.h"

#include <stdarg.h>
#include <stdio.h>

#include "hotpath/core/utf8.h"

#define TOKEN_BYTES_MAX (64 * 1024)
#define TOKEN_DEPTH_MAX 200

struct lexer {
	struct weir_tokens *ts;
	struct weir_diag **dg;
	const uint8_t *text;
	size_t bytes;
	size_t at;
	char *out; /* next free byte of the unescaped text */
	struct weir_buf tokens;
};

/* Words that end an expression or a clause; only these need quotes as names. Sorted for bsearch-free reading. */
static const char *const reserved_words[] = {
	"ALL",      "AND",      "AS",    "BETWEEN", "BY",     "CASE",   "CAST",    "CREATE",    "CROSS",
	"DISTINCT", "DROP",     "ELSE",  "END",     "EXCEPT", "EXISTS", "FALSE",   "FETCH",     "FOR",
	"FROM",     "FULL",     "GROUP", "HAVING",  "IN",     "INNER",  "INSERT",  "INTERSECT", "INTERVAL",
	"INTO",     "IS",       "JOIN",  "LEFT",    "LIKE",   "LIMIT",  "NATURAL", "NOT",       "NULL",
	"ON",       "OR",       "ORDER", "OUTER",   "RIGHT",  "SELECT", "SET",     "TABLE",     "THEN",
	"TRUE",     "TRY_CAST", "UNION", "USING",   "VALUES", "WHEN",   "WHERE",   "WINDOW",    "WITH",
};

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
}

static bool same_word(const char *a, size_t bytes, const char *b)
{
	for (size_t i = 0; i < bytes; i++)
		if (b[i] == 0 || upper(a[i]) != upper(b[i]))
			return false;
	return b[bytes] == 0;
}

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_start(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_name_byte(uint8_t c)
{
	return is_name_start(c) || is_digit(c) || c == '$';
}

static enum weir_err lex_error(struct lexer *lx, size_t at, const char *hint, const char *what)
{
	return weir_diag_set_at(lx->dg, WEIR_E_PLAN, lx->ts->file, lx->ts->text, lx->bytes, lx->ts->text + at, hint,
				"%s", what);
}

static enum weir_err check_bytes(struct lexer *lx)
{
	size_t bad = 0;
	const uint8_t *nul = lx->bytes == 0 ? NULL : memchr(lx->text, 0, lx->bytes);
	bool utf8 = weir_utf8_check(lx->text, lx->bytes, &bad);
	if (nul != NULL && (utf8 || (size_t)(nul - lx->text) < bad))
		return lex_error(lx, (size_t)(nul - lx->text), NULL, "a NUL byte in the text");
	return utf8 ? WEIR_OK : lex_error(lx, bad, "SQL text is UTF-8", "invalid UTF-8");
}

static void add_token(struct lexer *lx, enum weir_tok kind, size_t at, const char *text)
{
	*lx->out++ = 0;
	struct weir_token t = {kind, text, (uint32_t)(lx->out - 1 - text), (uint32_t)at, (uint32_t)(lx->at - at)};
	weir_buf_put(&lx->tokens, &t, sizeof t);
}

/* Copies source bytes [from, at) as the token's text. */
static void add_plain(struct lexer *lx, enum weir_tok kind, size_t from)
{
	const char *text = lx->out;
	memcpy(lx->out, lx->text + from, lx->at - from);
	lx->out += lx->at - from;
	add_token(lx, kind, from, text);
}

/* A quoted text from lx->at, which stands on the opening quote; a doubled quote is one. start is where the token began.
 */
static enum weir_err lex_quoted(struct lexer *lx, enum weir_tok kind, size_t start)
{
	uint8_t quote = lx->text[lx->at++];
	const char *text = lx->out;
	for (;;) {
		if (lx->at >= lx->bytes)
			return lex_error(lx, start, quote == '\'' ? "a quote inside is written twice: 'it''s'" : NULL,
					 quote == '\'' ? "this string has no end" : "this quoted name has no end");
		uint8_t c = lx->text[lx->at++];
		if (c == quote) {
			if (lx->at >= lx->bytes || lx->text[lx->at] != quote)
				break;
			lx->at++;
		}
		*lx->out++ = (char)c;
	}
	if (kind == WEIR_TOK_QUOTED && lx->out == text)
		return lex_error(lx, start, NULL, "an empty name");
	add_token(lx, kind, start, text);
	return WEIR_OK;
}

static int hex_digit(uint8_t c)
{
	return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* X'00ff' */
static enum weir_err lex_bytes(struct lexer *lx)
{
	size_t start = lx->at;
	const char *text = lx->out;
	lx->at += 2;
	for (;;) {
		if (lx->at >= lx->bytes)
			return lex_error(lx, start, NULL, "this byte string has no end");
		if (lx->text[lx->at] == '\'')
			break;
		int high = hex_digit(lx->text[lx->at]);
		int low = lx->at + 1 < lx->bytes ? hex_digit(lx->text[lx->at + 1]) : -1;
		if (high < 0 || low < 0)
			return lex_error(lx, lx->at, NULL, "a byte string holds pairs of hexadecimal digits");
		*lx->out++ = (char)(high * 16 + low);
		lx->at += 2;
	}
	lx->at++;
	add_token(lx, WEIR_TOK_BYTES, start, text);
	return WEIR_OK;
}

static enum weir_err lex_number(struct lexer *lx)
{
	size_t start = lx->at;
	enum weir_tok kind = WEIR_TOK_INTEGER;
	while (lx->at < lx->bytes && is_digit(lx->text[lx->at]))
		lx->at++;
	if (lx->at < lx->bytes && lx->text[lx->at] == '.') {
		kind = WEIR_TOK_DECIMAL;
		lx->at++;
		while (lx->at < lx->bytes && is_digit(lx->text[lx->at]))
			lx->at++;
	}
	if (lx->at < lx->bytes && (lx->text[lx->at] | 32) == 'e') {
		size_t e = lx->at + 1;
		if (e < lx->bytes && (lx->text[e] == '+' || lx->text[e] == '-'))
			e++;
		if (e < lx->bytes && is_digit(lx->text[e])) {
			kind = WEIR_TOK_DOUBLE;
			while (e < lx->bytes && is_digit(lx->text[e]))
				e++;
			lx->at = e;
		}
	}
	if (lx->at < lx->bytes && is_name_start(lx->text[lx->at]))
		return lex_error(lx, start, "a name that starts with a digit needs quotes: `1st`",
				 "a number runs into a name");
	add_plain(lx, kind, start);
	return WEIR_OK;
}

/* Whether '.' at lx->at continues a path (a.b, f(x).b) rather than starting a number (.5). */
static bool dot_is_path(const struct lexer *lx)
{
	size_t count = lx->tokens.bytes / sizeof(struct weir_token);
	if (count == 0)
		return false;
	const struct weir_token *t = (const struct weir_token *)lx->tokens.data + count - 1;
	if ((size_t)t->at + t->bytes != lx->at)
		return false;
	return t->kind == WEIR_TOK_NAME || t->kind == WEIR_TOK_QUOTED ||
	       (t->kind == WEIR_TOK_SYMBOL && (t->text[0] == ')' || t->text[0] == ']'));
}

static enum weir_err lex_symbol(struct lexer *lx)
{
	static const char *const pairs[] = {"<=", ">=", "<>", "!=", "||", "=>"};
	size_t start = lx->at;
	uint8_t c = lx->text[start];
	for (size_t i = 0; i < WEIR_COUNT_OF(pairs); i++) {
		if (start + 1 < lx->bytes && memcmp(lx->text + start, pairs[i], 2) == 0) {
			lx->at += 2;
			add_plain(lx, WEIR_TOK_SYMBOL, start);
			return WEIR_OK;
		}
	}
	if (strchr("(),;.+-*/%=<>[]:", c) == NULL) {
		char what[64];
		const char *hint = c == '$'   ? "${name} is filled by --define name=value"
				   : c == '@' ? "a name with special characters needs quotes: `@type`"
					      : NULL;
		snprintf(what, sizeof what,
			 c < 0x20 || c == 0x7f ? "unexpected byte 0x%02x" : "unexpected character '%c'", c);
		return lex_error(lx, start, hint, what);
	}
	lx->at++;
	add_plain(lx, WEIR_TOK_SYMBOL, start);
	return WEIR_OK;
}

/* Skips blanks and comments. */
static enum weir_err skip_blank(struct lexer *lx)
{
	while (lx->at < lx->bytes) {
		uint8_t c = lx->text[lx->at];
		uint8_t d = lx->at + 1 < lx->bytes ? lx->text[lx->at + 1] : 0;
		if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v') {
			lx->at++;
		} else if (c == '-' && d == '-') {
			while (lx->at < lx->bytes && lx->text[lx->at] != '\n')
				lx->at++;
		} else if (c == '/' && d == '*') {
			size_t start = lx->at;
			if (start + 2 < lx->bytes && lx->text[start + 2] == '+')
				return lex_error(lx, start, "put the options into the table's WITH (...)",
						 "not supported yet: hints /*+ ... */");
			const uint8_t *end = memmem(lx->text + start + 2, lx->bytes - start - 2, "*/", 2);
			if (end == NULL)
				return lex_error(lx, start, NULL, "this comment has no end");
			lx->at = (size_t)(end - lx->text) + 2;
		} else if (lx->at == 0 && lx->bytes >= 3 && memcmp(lx->text, "\xef\xbb\xbf", 3) == 0) {
			lx->at = 3; /* a byte-order mark as editors on Windows leave it */
		} else {
			break;
		}
	}
	return WEIR_OK;
}

static enum weir_err lex_one(struct lexer *lx)
{
	size_t start = lx->at;
	uint8_t c = lx->text[start];
	uint8_t d = start + 1 < lx->bytes ? lx->text[start + 1] : 0;
	if ((c | 32) == 'x' && d == '\'')
		return lex_bytes(lx);
	if (is_name_start(c)) {
		while (lx->at < lx->bytes && is_name_byte(lx->text[lx->at]))
			lx->at++;
		add_plain(lx, WEIR_TOK_NAME, start);
		return WEIR_OK;
	}
	if (is_digit(c) || (c == '.' && is_digit(d) && !dot_is_path(lx)))
		return lex_number(lx);
	if (c == '\'')
		return lex_quoted(lx, WEIR_TOK_STRING, start);
	if (c == '`' || c == '"')
		return lex_quoted(lx, WEIR_TOK_QUOTED, start);
	return lex_symbol(lx);
}

enum weir_err weir_tokens_init(struct weir_tokens *ts, struct weir_mem *m, const char *file, const char *text,
			       size_t bytes, size_t bytes_max, struct weir_diag **dg)
{
	size_t limit = bytes_max == 0 ? TOKEN_BYTES_MAX : bytes_max;
	*ts = (struct weir_tokens){.file = file, .text = text, .bytes = bytes, .depth_max = TOKEN_DEPTH_MAX};
	if (bytes > limit || bytes > UINT32_MAX / 2)
		return weir_diag_set_at(dg, WEIR_E_PLAN, file, NULL, 0, NULL, "split it, or raise sql.bytes.max",
					"the SQL text has %zu bytes, more than sql.bytes.max = %zu", bytes, limit);
	char *block = weir_mem_take(m, bytes * 2 + 2);
	if (block == NULL)
		return weir_diag_set(dg, WEIR_E_NOMEM, "no memory for the SQL text");
	struct lexer lx = {.ts = ts, .dg = dg, .text = (const uint8_t *)text, .bytes = bytes, .out = block};
	enum weir_err err = check_bytes(&lx);
	while (err == WEIR_OK) {
		err = skip_blank(&lx);
		if (err != WEIR_OK || lx.at >= lx.bytes)
			break;
		err = lex_one(&lx);
	}
	if (err == WEIR_OK) {
		add_token(&lx, WEIR_TOK_END, lx.at, lx.out);
		ts->count = (uint32_t)(lx.tokens.bytes / sizeof(struct weir_token));
		ts->token = weir_mem_copy(m, lx.tokens.data, lx.tokens.bytes);
		if (ts->token == NULL)
			err = weir_diag_set(dg, WEIR_E_NOMEM, "no memory for the SQL text");
	}
	weir_buf_fini(&lx.tokens);
	return err;
}

const struct weir_token *weir_token_peek(const struct weir_tokens *ts, uint32_t k)
{
	uint32_t last = ts->count - 1;
	return &ts->token[k > last - ts->next ? last : ts->next + k];
}

bool weir_token_is_at(const struct weir_tokens *ts, uint32_t k, const char *word)
{
	const struct weir_token *t = weir_token_peek(ts, k);
	if (t->kind == WEIR_TOK_NAME)
		return same_word(t->text, t->text_bytes, word);
	return t->kind == WEIR_TOK_SYMBOL && strcmp(t->text, word) == 0;
}

bool weir_token_is(const struct weir_tokens *ts, const char *word)
{
	return weir_token_is_at(ts, 0, word);
}

bool weir_token_accept(struct weir_tokens *ts, const char *word)
{
	if (!weir_token_is(ts, word))
		return false;
	ts->next++;
	return true;
}

/* What a message calls token t. */
static const char *token_name(const struct weir_token *t, char *buf, size_t bytes)
{
	int shown = t->text_bytes > 40 ? 40 : (int)t->text_bytes;
	while (shown > 0 && (uint32_t)shown < t->text_bytes && ((uint8_t)t->text[shown] & 0xc0) == 0x80)
		shown--; /* never cut inside a character */
	const char *more = (uint32_t)shown < t->text_bytes ? "..." : "";
	switch (t->kind) {
	case WEIR_TOK_END:
		snprintf(buf, bytes, "the end of the text");
		break;
	case WEIR_TOK_STRING:
		snprintf(buf, bytes, "the string '%.*s%s'", shown, t->text, more);
		break;
	case WEIR_TOK_QUOTED:
		snprintf(buf, bytes, "`%.*s%s`", shown, t->text, more);
		break;
	case WEIR_TOK_BYTES:
		snprintf(buf, bytes, "a byte string");
		break;
	default:
		snprintf(buf, bytes, "'%.*s%s'", shown, t->text, more);
	}
	return buf;
}

enum weir_err weir_token_expect(struct weir_tokens *ts, const char *word, struct weir_diag **dg)
{
	char buf[80];
	if (weir_token_accept(ts, word))
		return WEIR_OK;
	const struct weir_token *t = weir_token_peek(ts, 0);
	return weir_token_error(ts, t, dg, NULL, "expected %s, found %s", word, token_name(t, buf, sizeof buf));
}

bool weir_word_is_reserved(const char *word, size_t bytes)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(reserved_words); i++)
		if (same_word(word, bytes, reserved_words[i]))
			return true;
	return false;
}

enum weir_err weir_token_name(struct weir_tokens *ts, const char *what, const char **out, struct weir_diag **dg)
{
	char buf[80], hint[80];
	const struct weir_token *t = weir_token_peek(ts, 0);
	bool reserved = t->kind == WEIR_TOK_NAME && weir_word_is_reserved(t->text, t->text_bytes);
	if ((t->kind == WEIR_TOK_NAME && !reserved) || t->kind == WEIR_TOK_QUOTED) {
		*out = t->text;
		ts->next++;
		return WEIR_OK;
	}
	snprintf(hint, sizeof hint, "a keyword as a name needs quotes: `%s`", reserved ? t->text : "");
	return weir_token_error(ts, t, dg, reserved ? hint : NULL, "expected %s, found %s", what,
				token_name(t, buf, sizeof buf));
}

enum weir_err weir_token_error(const struct weir_tokens *ts, const struct weir_token *t, struct weir_diag **dg,
			       const char *hint, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return weir_diag_set_at(dg, WEIR_E_PLAN, ts->file, ts->text, ts->bytes, ts->text + t->at, hint, "%s", text);
}
