/* token.h: one lexer for statements and expressions, C and SQL alike. Cold path, @thread init.
 *
 * Flink SQL's lexical rules: keywords in any case, identifiers case-sensitive, `quoted``names`, 'it''s' (backslash is
 * literal), X'00ff', numbers 1 1.5 .5 1e3, comments -- and block. A NUL byte, invalid UTF-8 or an unterminated quote is
 * an error with its position. */
#ifndef WEIR_EXPR_TOKEN_H
#define WEIR_EXPR_TOKEN_H

#include "hotpath/core/base.h"
#include "hotpath/core/diag.h"
#include "hotpath/core/mem.h"

enum weir_tok {
	WEIR_TOK_END,
	WEIR_TOK_NAME,    /* identifier or keyword as written; weir_token_is() compares without case */
	WEIR_TOK_QUOTED,  /* `name`, never a keyword; text is unescaped */
	WEIR_TOK_STRING,  /* 'text'; text is unescaped */
	WEIR_TOK_BYTES,   /* X'hex'; text holds the bytes */
	WEIR_TOK_INTEGER, /* digits */
	WEIR_TOK_DECIMAL, /* digits with a point, no exponent */
	WEIR_TOK_DOUBLE,  /* with an exponent */
	WEIR_TOK_SYMBOL   /* ( ) , ; . + - * / % = < > <= >= <> != || [ ] => : */
};

struct weir_token {
	enum weir_tok kind;
	const char *text; /* unescaped, terminated; lives in the mem given to the lexer */
	uint32_t text_bytes;
	uint32_t at;    /* byte offset in the source */
	uint32_t bytes; /* length in the source */
};

/* The whole text as tokens, with a read position that statement and expression parsers share. */
struct weir_tokens {
	const char *file; /* for messages, may be NULL */
	const char *text;
	size_t bytes;
	struct weir_token *token; /* count of them, the last is WEIR_TOK_END */
	uint32_t count;
	uint32_t next;
	uint32_t depth;     /* nesting of the parser, bounded by depth_max */
	uint32_t depth_max; /* sql.depth.max, 200 */
	/* Parses the sub-select at the current token, SELECT, for an expression that holds one; NULL: none may. */
	enum weir_err (*query)(void *ctx, void **out);
	void *query_ctx;
};

/* Splits text (borrowed as long as ts is used; bytes <= bytes_max, 0 for 64 KiB) into tokens held in m. */
WEIR_MUST_CHECK enum weir_err weir_tokens_init(struct weir_tokens *ts, struct weir_mem *m, const char *file,
					       const char *text, size_t bytes, size_t bytes_max, struct weir_diag **dg);
/* The current token and the one k ahead (END beyond the end). */
const struct weir_token *weir_token_peek(const struct weir_tokens *ts, uint32_t k);
/* Whether the current token is this keyword (any case, not quoted) or symbol. */
bool weir_token_is(const struct weir_tokens *ts, const char *word);
/* The same for the token k ahead. */
bool weir_token_is_at(const struct weir_tokens *ts, uint32_t k, const char *word);
/* Takes the current token if it is word. */
bool weir_token_accept(struct weir_tokens *ts, const char *word);
/* Takes it or reports "expected word, found ...". */
WEIR_MUST_CHECK enum weir_err weir_token_expect(struct weir_tokens *ts, const char *word, struct weir_diag **dg);
/* Takes an identifier (plain and not reserved, or quoted). what names it in the error. */
WEIR_MUST_CHECK enum weir_err weir_token_name(struct weir_tokens *ts, const char *what, const char **out,
					      struct weir_diag **dg);
bool weir_word_is_reserved(const char *word, size_t bytes);
/* Reports at token t: `file:line:col: error: ...` with the line, a caret and hint (may be NULL). Returns WEIR_E_PLAN.
 */
enum weir_err weir_token_error(const struct weir_tokens *ts, const struct weir_token *t, struct weir_diag **dg,
			       const char *hint, const char *fmt, ...) WEIR_PRINTF(5, 6);

#endif
