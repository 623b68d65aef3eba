/* ast.h: what the expression grammar produces: untyped trees over names. Cold path, @thread init.
 *
 * The grammar stops at the first token that cannot continue the expression, so that statement parsers go on from there.
 * Left-deep chains (a + b + c ..., AND, OR, ||) may be 100,000 long: passes over trees walk argument 0 iteratively or
 * the parser makes such chains n-ary; nesting beyond tokens->depth_max is an error at its line and column. */
#ifndef WEIR_EXPR_AST_H
#define WEIR_EXPR_AST_H

#include "hotpath/core/type.h"
#include "hotpath/expr/token.h"

enum weir_ast_kind {
	WEIR_AST_NULL,
	WEIR_AST_TRUE,
	WEIR_AST_FALSE,
	WEIR_AST_INTEGER,   /* text */
	WEIR_AST_DECIMAL,   /* text */
	WEIR_AST_DOUBLE,    /* text */
	WEIR_AST_STRING,    /* text */
	WEIR_AST_BYTES,     /* text */
	WEIR_AST_DATE,      /* DATE '...' */
	WEIR_AST_TIME,      /* TIME '...' */
	WEIR_AST_TIMESTAMP, /* TIMESTAMP '...' */
	WEIR_AST_INTERVAL,  /* INTERVAL '5' MINUTE: value holds ms or months, type its kind */
	WEIR_AST_COLUMN,    /* text; qualifier may be NULL; `a.b.c` is FIELD(FIELD(a, b), c) or qualifier a column b:
			       binder decides */
	WEIR_AST_STAR,      /* * or t.* */
	WEIR_AST_CALL,      /* text: function or operator in upper case ("+", "AND", "UPPER", "COUNT"), args */
	WEIR_AST_CAST,      /* CAST(arg0 AS type) */
	WEIR_AST_TRY_CAST,
	WEIR_AST_CASE,    /* args: [when, then]* [else]; `CASE x WHEN` is rewritten to x = v; has_else */
	WEIR_AST_IN,      /* arg0 IN (arg1 ...); negated */
	WEIR_AST_BETWEEN, /* arg0 BETWEEN arg1 AND arg2; negated */
	WEIR_AST_LIKE,    /* arg0 LIKE arg1 [ESCAPE arg2]; negated */
	WEIR_AST_IS,      /* arg0 IS [NOT] NULL | TRUE | FALSE | UNKNOWN | [NOT] DISTINCT FROM arg1: text is the word */
	WEIR_AST_INDEX,   /* arg0[arg1] */
	WEIR_AST_FIELD,   /* arg0.text */
	WEIR_AST_QUERY,   /* (SELECT ...): EXISTS of it, or what IN looks in */
	WEIR_AST_UNIT /* a time unit as an argument: FLOOR(t TO MINUTE), EXTRACT(HOUR FROM t), TIMESTAMPADD(DAY, ..):
			 text */
};

/* OVER (PARTITION BY a, b ORDER BY t frame), or OVER name. */
struct weir_ast_over {
	uint32_t at;
	const char *name; /* of a WINDOW clause; NULL: written out */
	struct weir_ast **partition;
	uint32_t partition_count;
	struct weir_ast **order;
	uint32_t order_count;
	bool descending;   /* some column of ORDER BY is */
	bool framed;       /* the frame is written out: ROWS or RANGE ... */
	bool rows;         /* ROWS, else RANGE */
	int64_t preceding; /* rows or ms before the row; -1: UNBOUNDED PRECEDING */
	const char *frame; /* as text; "" if it is not written out */
};

struct weir_ast {
	enum weir_ast_kind kind;
	bool negated;
	bool distinct; /* COUNT(DISTINCT x) */
	bool has_else;
	bool star_arg; /* COUNT(*) */
	uint32_t at;   /* token index in tokens: place of errors */
	uint32_t end;  /* one beyond its last token */
	const char *text;
	uint32_t text_bytes;
	const char *qualifier;
	int64_t value;
	struct weir_type type; /* CAST, INTERVAL */
	uint32_t arg_count;
	struct weir_ast **args;
	struct weir_ast *filter;    /* AGG(...) FILTER (WHERE filter) */
	struct weir_ast_over *over; /* CALL: FN(...) OVER ... */
	void *query;                /* QUERY: what tokens->query made of it */
};

/* Parses one expression. Nodes live in m. */
WEIR_MUST_CHECK enum weir_err weir_expr_parse(struct weir_tokens *ts, struct weir_mem *m, struct weir_ast **out,
					      struct weir_diag **dg);
/* Parses a SQL type: STRING, DECIMAL(12,2), TIMESTAMP_LTZ(3), ROW<a INT, b STRING>, ARRAY<T>, MAP<STRING, T>, [NOT
 * NULL]. */
WEIR_MUST_CHECK enum weir_err weir_type_parse(struct weir_tokens *ts, struct weir_mem *m, struct weir_type *out,
					      struct weir_diag **dg);
/* Parses INTERVAL '5' MINUTE (singular or plural, DAY TO SECOND forms too) or a plain duration; the next token must be
 * INTERVAL. */
WEIR_MUST_CHECK enum weir_err weir_interval_parse(struct weir_tokens *ts, struct weir_mem *m, int64_t *value,
						  enum weir_kind *kind, struct weir_diag **dg);
/* Parses ( [PARTITION BY ...] ORDER BY ... [ROWS | RANGE ...] ), as behind OVER and in WINDOW w AS. */
WEIR_MUST_CHECK enum weir_err weir_over_parse(struct weir_tokens *ts, struct weir_mem *m, struct weir_ast_over **out,
					      struct weir_diag **dg);
/* Structural equality (names case-sensitive, functions not). */
bool weir_ast_equal(const struct weir_ast *a, const struct weir_ast *b);
/* Back to SQL text, for explain and generated column names. */
void weir_ast_print(const struct weir_ast *a, struct weir_buf *out);

#endif
