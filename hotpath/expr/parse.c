/* parse.c: the expression grammar, hand-written by precedence. Cold path, @thread init.
 *
 * Precedence as in Flink (Calcite), loosest first:
 *   OR | AND | NOT | IS ... | = <> < <= > >= IS DISTINCT FROM | BETWEEN IN LIKE | + - | * / % || | unary + - | [] .
 *
 * Chains of one level are loops, so their length costs no stack; every true nesting (a parenthesis, an argument list,
 * NOT, a sign, CASE) counts in tokens->depth and stops at depth_max. Functions return NULL after reporting. */
#include "hotpath/expr/ast.h"

#include <stdio.h>

enum {
	PREC_OR = 1,
	PREC_AND,
	PREC_NOT,
	PREC_IS,
	PREC_COMPARE,
	PREC_IN, /* BETWEEN, IN, LIKE */
	PREC_ADD,
	PREC_MUL,
	PREC_SIGN,
	PREC_POSTFIX
};

struct parser {
	struct weir_tokens *ts;
	struct weir_mem *m;
	struct weir_diag **dg;
	uint32_t first; /* token where the whole expression starts: a `*` may stand only there */
};

/* Arguments being collected. */
struct list {
	struct weir_buf buf;
};

static struct weir_ast *parse_expr(struct parser *p, int prec);
static struct weir_ast *parse_operand(struct parser *p, int prec);

static const struct weir_token *peek(const struct parser *p)
{
	return weir_token_peek(p->ts, 0);
}

static bool is(const struct parser *p, const char *word)
{
	return weir_token_is(p->ts, word);
}

static bool accept(struct parser *p, const char *word)
{
	return weir_token_accept(p->ts, word);
}

static bool expect(struct parser *p, const char *word)
{
	return weir_token_expect(p->ts, word, p->dg) == WEIR_OK;
}

static struct weir_ast *fail(struct parser *p, const struct weir_token *t, const char *hint, const char *what)
{
	(void)!weir_token_error(p->ts, t, p->dg, hint, "%s", what);
	return NULL;
}

static bool enter(struct parser *p)
{
	if (p->ts->depth >= p->ts->depth_max) {
		(void)!weir_token_error(p->ts, peek(p), p->dg, NULL, "nesting limit %u reached (sql.depth.max)",
					p->ts->depth_max);
		return false;
	}
	p->ts->depth++;
	return true;
}

static void leave(struct parser *p)
{
	p->ts->depth--;
}

static struct weir_ast *new_node(struct parser *p, enum weir_ast_kind kind, uint32_t at)
{
	struct weir_ast *a = weir_mem_take(p->m, sizeof *a);
	if (a == NULL) {
		(void)!weir_diag_set(p->dg, WEIR_E_NOMEM, "no memory for the expression");
		return NULL;
	}
	a->kind = kind;
	a->at = at;
	a->text = "";
	a->end = p->ts->next;
	return a;
}

static struct weir_ast *set_text(struct weir_ast *a, const char *text)
{
	if (a != NULL) {
		a->text = text;
		a->text_bytes = (uint32_t)strlen(text);
	}
	return a;
}

static bool list_add(struct list *l, struct weir_ast *a)
{
	if (a != NULL)
		weir_buf_put(&l->buf, &a, sizeof a);
	return a != NULL;
}

/* Gives l's nodes to a (may be NULL) and frees l. ok false: only frees. */
static struct weir_ast *list_take(struct parser *p, struct list *l, struct weir_ast *a, bool ok)
{
	if (ok && a != NULL) {
		a->arg_count = (uint32_t)(l->buf.bytes / sizeof a);
		a->args = weir_mem_copy(p->m, l->buf.data, l->buf.bytes);
		a->end = p->ts->next;
	}
	weir_buf_fini(&l->buf);
	return ok ? a : NULL;
}

static struct weir_ast *with_args(struct parser *p, struct weir_ast *a, uint32_t count, struct weir_ast *x,
				  struct weir_ast *y, struct weir_ast *z)
{
	struct weir_ast *args[3] = {x, y, z};
	if (a == NULL)
		return NULL;
	a->arg_count = count;
	a->args = weir_mem_copy(p->m, args, count * sizeof x);
	a->end = p->ts->next;
	return a;
}

static struct weir_ast *new_call(struct parser *p, const char *name, uint32_t at, uint32_t count, struct weir_ast *x,
				 struct weir_ast *y, struct weir_ast *z)
{
	return with_args(p, set_text(new_node(p, WEIR_AST_CALL, at), name), count, x, y, z);
}

/* ---- primaries ---- */

/* The current token as a literal node, its sign in front. */
static struct weir_ast *parse_literal(struct parser *p, bool minus)
{
	static const enum weir_ast_kind kinds[] = {
		[WEIR_TOK_STRING] = WEIR_AST_STRING,   [WEIR_TOK_BYTES] = WEIR_AST_BYTES,
		[WEIR_TOK_INTEGER] = WEIR_AST_INTEGER, [WEIR_TOK_DECIMAL] = WEIR_AST_DECIMAL,
		[WEIR_TOK_DOUBLE] = WEIR_AST_DOUBLE,
	};
	const struct weir_token *t = peek(p);
	uint32_t at = p->ts->next++;
	struct weir_ast *a = new_node(p, kinds[t->kind], at);
	if (a == NULL)
		return NULL;
	a->text = minus ? weir_mem_printf(p->m, "-%s", t->text) : t->text;
	a->text_bytes = t->text_bytes + minus;
	return a;
}

static bool is_number(const struct weir_token *t)
{
	return t->kind == WEIR_TOK_INTEGER || t->kind == WEIR_TOK_DECIMAL || t->kind == WEIR_TOK_DOUBLE;
}

/* DATE '...' and its like; the keyword is current. */
static struct weir_ast *parse_time_literal(struct parser *p, enum weir_ast_kind kind)
{
	uint32_t at = p->ts->next++;
	struct weir_ast *a = parse_literal(p, false);
	if (a != NULL) {
		a->kind = kind;
		a->at = at;
	}
	return a;
}

static struct weir_ast *parse_interval(struct parser *p)
{
	uint32_t at = p->ts->next;
	int64_t value = 0;
	enum weir_kind kind = WEIR_KIND_INTERVAL_MS;
	if (weir_interval_parse(p->ts, p->m, &value, &kind, p->dg) != WEIR_OK)
		return NULL;
	struct weir_ast *a = new_node(p, WEIR_AST_INTERVAL, at);
	if (a != NULL) {
		a->value = value;
		a->type.kind = kind;
		a->type.not_null = true;
	}
	return a;
}

/* CASE [x] WHEN v THEN r ... [ELSE e] END */
static struct weir_ast *parse_case(struct parser *p)
{
	uint32_t at = p->ts->next++;
	struct list l = {{0}};
	struct weir_ast *a = new_node(p, WEIR_AST_CASE, at), *x = NULL;
	bool ok = a != NULL;
	if (ok && !is(p, "WHEN")) {
		x = parse_expr(p, PREC_OR);
		ok = x != NULL;
	}
	if (ok && !is(p, "WHEN"))
		ok = expect(p, "WHEN");
	while (ok && is(p, "WHEN")) {
		uint32_t when_at = p->ts->next++;
		struct weir_ast *when = parse_expr(p, PREC_OR);
		if (when != NULL && x != NULL)
			when = new_call(p, "=", when_at, 2, x, when, NULL);
		ok = list_add(&l, when) && expect(p, "THEN") && list_add(&l, parse_expr(p, PREC_OR));
	}
	if (ok && accept(p, "ELSE")) {
		a->has_else = true;
		ok = list_add(&l, parse_expr(p, PREC_OR));
	}
	ok = ok && expect(p, "END");
	return list_take(p, &l, a, ok);
}

/* CAST(e AS type) */
static struct weir_ast *parse_cast(struct parser *p, enum weir_ast_kind kind)
{
	uint32_t at = p->ts->next++;
	struct weir_ast *a = new_node(p, kind, at);
	if (a == NULL || !expect(p, "("))
		return NULL;
	struct weir_ast *e = parse_expr(p, PREC_OR);
	if (e == NULL || !expect(p, "AS") || weir_type_parse(p->ts, p->m, &a->type, p->dg) != WEIR_OK ||
	    !expect(p, ")"))
		return NULL;
	return with_args(p, a, 1, e, NULL, NULL);
}

static const char *const unit_names[] = {
	"MILLENNIUM", "CENTURY", "DECADE",  "YEAR", "QUARTER", "MONTH",  "WEEK",        "DAY",         "DOY",
	"DOW",        "ISODOW",  "ISOYEAR", "HOUR", "MINUTE",  "SECOND", "MILLISECOND", "MICROSECOND", "EPOCH",
};

/* A time unit word, also with SQL_TSI_ in front, as a node; NULL without a report when the token is none. */
static struct weir_ast *accept_unit(struct parser *p)
{
	const struct weir_token *t = peek(p);
	if (t->kind != WEIR_TOK_NAME)
		return NULL;
	for (size_t i = 0; i < WEIR_COUNT_OF(unit_names); i++) {
		char tsi[32];
		snprintf(tsi, sizeof tsi, "SQL_TSI_%s", unit_names[i]);
		if (is(p, unit_names[i]) || is(p, tsi)) {
			uint32_t at = p->ts->next++;
			return set_text(new_node(p, WEIR_AST_UNIT, at), unit_names[i]);
		}
	}
	return NULL;
}

static struct weir_ast *parse_unit(struct parser *p)
{
	const struct weir_token *t = peek(p);
	struct weir_ast *a = accept_unit(p);
	if (a == NULL)
		return fail(p, t, NULL, "expected a time unit: YEAR, MONTH, DAY, HOUR, MINUTE or SECOND");
	return a;
}

/* EXTRACT(unit FROM t), after the parenthesis. */
static struct weir_ast *parse_extract(struct parser *p, uint32_t at)
{
	struct weir_ast *unit = parse_unit(p);
	if (unit == NULL || !expect(p, "FROM"))
		return NULL;
	struct weir_ast *t = parse_expr(p, PREC_OR);
	if (t == NULL || !expect(p, ")"))
		return NULL;
	return new_call(p, "EXTRACT", at, 2, unit, t, NULL);
}

/* TIMESTAMPADD(unit, n, t), TIMESTAMPDIFF(unit, a, b) */
static struct weir_ast *parse_timestamp_call(struct parser *p, uint32_t at, const char *name)
{
	struct weir_ast *unit = parse_unit(p);
	if (unit == NULL || !expect(p, ","))
		return NULL;
	struct weir_ast *x = parse_expr(p, PREC_OR);
	if (x == NULL || !expect(p, ","))
		return NULL;
	struct weir_ast *y = parse_expr(p, PREC_OR);
	if (y == NULL || !expect(p, ")"))
		return NULL;
	return new_call(p, name, at, 3, unit, x, y);
}

/* FLOOR(x), FLOOR(t TO unit) */
static struct weir_ast *parse_floor(struct parser *p, uint32_t at, const char *name)
{
	struct weir_ast *unit = NULL, *x = parse_expr(p, PREC_OR);
	if (x == NULL)
		return NULL;
	if (accept(p, "TO")) {
		unit = parse_unit(p);
		if (unit == NULL)
			return NULL;
	}
	if (!expect(p, ")"))
		return NULL;
	return new_call(p, name, at, unit == NULL ? 1 : 2, x, unit, NULL);
}

/* TRIM([[BOTH | LEADING | TRAILING] [chars] FROM] s) */
static struct weir_ast *parse_trim(struct parser *p, uint32_t at)
{
	const char *name = "TRIM";
	bool side = true;
	if (accept(p, "LEADING"))
		name = "LTRIM";
	else if (accept(p, "TRAILING"))
		name = "RTRIM";
	else
		side = accept(p, "BOTH");
	struct weir_ast *s = NULL, *chars = NULL;
	if (!side || !is(p, "FROM")) {
		chars = parse_expr(p, PREC_OR);
		if (chars == NULL)
			return NULL;
	}
	if (accept(p, "FROM")) {
		s = parse_expr(p, PREC_OR);
		if (s == NULL)
			return NULL;
	} else if (side) {
		return expect(p, "FROM") ? NULL : NULL;
	} else {
		s = chars;
		chars = NULL;
		if (accept(p, ",")) {
			chars = parse_expr(p, PREC_OR);
			if (chars == NULL)
				return NULL;
		}
	}
	if (!expect(p, ")"))
		return NULL;
	return new_call(p, name, at, chars == NULL ? 1 : 2, s, chars, NULL);
}

/* POSITION(a IN b) */
static struct weir_ast *parse_position(struct parser *p, uint32_t at)
{
	struct weir_ast *a = parse_operand(p, PREC_IN + 1), *b = NULL;
	if (a == NULL || (!accept(p, "IN") && !expect(p, ",")))
		return NULL;
	b = parse_expr(p, PREC_OR);
	if (b == NULL || !expect(p, ")"))
		return NULL;
	return new_call(p, "POSITION", at, 2, a, b, NULL);
}

/* Words that take the place of a comma: SUBSTRING(s FROM a FOR n), OVERLAY(s PLACING r FROM a FOR n). */
static bool accept_comma(struct parser *p, const char *name)
{
	if (accept(p, ","))
		return true;
	bool overlay = strcmp(name, "OVERLAY") == 0;
	if (!overlay && strcmp(name, "SUBSTRING") != 0)
		return false;
	return accept(p, "FROM") || accept(p, "FOR") || (overlay && accept(p, "PLACING"));
}

/* ROWS or RANGE, behind it: BETWEEN from AND CURRENT ROW, or from alone. */
static bool parse_frame(struct parser *p, struct weir_ast_over *ov)
{
	bool between = accept(p, "BETWEEN");
	const struct weir_token *t = peek(p);
	enum weir_kind kind = WEIR_KIND_INTERVAL_MS;
	ov->framed = true;
	if (accept(p, "UNBOUNDED")) {
		ov->preceding = -1;
	} else if (is(p, "CURRENT")) {
		ov->preceding = 0;
	} else if (ov->rows) {
		if (t->kind != WEIR_TOK_INTEGER)
			return fail(p, t, "write ROWS BETWEEN 5 PRECEDING AND CURRENT ROW",
				    "expected a number of rows") != NULL;
		ov->preceding = 0;
		for (uint32_t i = 0; i < t->text_bytes; i++) {
			ov->preceding = ov->preceding * 10 + (t->text[i] - '0');
			if (ov->preceding > INT32_MAX)
				return fail(p, t, NULL, "a frame of too many rows") != NULL;
		}
		p->ts->next++;
	} else if (!is(p, "INTERVAL")) {
		return fail(p, t, "write RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW",
			    "expected an INTERVAL") != NULL;
	} else if (weir_interval_parse(p->ts, p->m, &ov->preceding, &kind, p->dg) != WEIR_OK) {
		return false;
	}
	if (kind != WEIR_KIND_INTERVAL_MS)
		return fail(p, t, "months have no fixed length: use days", "a frame cannot be in months or years") !=
		       NULL;
	if (ov->preceding < -1)
		return fail(p, t, NULL, "a frame cannot begin behind its row") != NULL;
	if (ov->preceding == 0 && accept(p, "CURRENT")) {
		if (!expect(p, "ROW"))
			return false;
	} else if (is(p, "FOLLOWING")) {
		return fail(p, peek(p), NULL, "not supported: FOLLOWING: a stream's rows to come are not known") !=
		       NULL;
	} else if (!expect(p, "PRECEDING")) {
		return false;
	}
	if (!between)
		return true;
	if (!expect(p, "AND"))
		return false;
	if (!is(p, "CURRENT"))
		return fail(p, peek(p), "end the frame with CURRENT ROW",
			    "not supported yet: a frame that does not end with its row") != NULL;
	p->ts->next++;
	return expect(p, "ROW");
}

/* The frame as SQL, for ast.c. */
static const char *frame_text(struct parser *p, const struct weir_ast_over *ov)
{
	if (ov->preceding < 0)
		return ov->rows ? " ROWS UNBOUNDED PRECEDING" : " RANGE UNBOUNDED PRECEDING";
	return weir_mem_printf(p->m, ov->rows ? " ROWS %lld PRECEDING" : " RANGE INTERVAL '%lld' MILLISECOND PRECEDING",
			       (long long)ov->preceding);
}

/* PARTITION BY a, b ORDER BY t frame ), behind the opening parenthesis. */
static bool parse_over_spec(struct parser *p, struct weir_ast_over *ov)
{
	struct list keys = {{0}}, order = {{0}};
	bool ok = true;
	if (accept(p, "PARTITION")) {
		ok = expect(p, "BY");
		while (ok && (ok = list_add(&keys, parse_expr(p, PREC_OR))) && accept(p, ","))
			;
	}
	if (ok && accept(p, "ORDER")) {
		ok = expect(p, "BY");
		do {
			ok = ok && list_add(&order, parse_expr(p, PREC_OR));
			accept(p, "ASC");
			ov->descending |= accept(p, "DESC");
		} while (ok && accept(p, ","));
	}
	ov->partition_count = (uint32_t)(keys.buf.bytes / sizeof(struct weir_ast *));
	ov->partition = weir_mem_copy(p->m, keys.buf.data, keys.buf.bytes);
	ov->order_count = (uint32_t)(order.buf.bytes / sizeof(struct weir_ast *));
	ov->order = weir_mem_copy(p->m, order.buf.data, order.buf.bytes);
	weir_buf_fini(&keys.buf);
	weir_buf_fini(&order.buf);
	ov->preceding = -1;
	ov->frame = "";
	ov->rows = ok && is(p, "ROWS");
	if (ok && (accept(p, "ROWS") || accept(p, "RANGE"))) {
		ok = parse_frame(p, ov);
		if (ok)
			ov->frame = frame_text(p, ov);
	}
	return ok && expect(p, ")");
}

/* OVER name, or OVER ( ... ); the word is current. */
static struct weir_ast *parse_over(struct parser *p, struct weir_ast *a)
{
	struct weir_ast_over *ov = weir_mem_take(p->m, sizeof *ov);
	ov->at = p->ts->next++;
	if (accept(p, "(")) {
		if (!parse_over_spec(p, ov))
			return NULL;
	} else if (weir_token_name(p->ts, "a window's name or (", &ov->name, p->dg) != WEIR_OK) {
		return NULL;
	}
	a->over = ov;
	a->end = p->ts->next;
	return a;
}

/* What may follow a call: FILTER (WHERE ...), OVER. */
static struct weir_ast *parse_call_tail(struct parser *p, struct weir_ast *a)
{
	if (is(p, "WITHIN") && weir_token_is_at(p->ts, 1, "GROUP"))
		return fail(p, peek(p), NULL, "not supported yet: WITHIN GROUP");
	if (is(p, "FILTER") && weir_token_is_at(p->ts, 1, "(")) {
		p->ts->next += 2;
		if (!expect(p, "WHERE"))
			return NULL;
		a->filter = parse_expr(p, PREC_OR);
		if (a->filter == NULL || !expect(p, ")"))
			return NULL;
		a->end = p->ts->next;
	}
	return is(p, "OVER") ? parse_over(p, a) : a;
}

/* JSON_VALUE(... RETURNING type [NULL ON EMPTY] [NULL ON ERROR]): the clauses before the parenthesis. */
static struct weir_ast *parse_json_tail(struct parser *p, struct weir_ast *call, struct list *l)
{
	struct weir_ast *cast = NULL;
	if (is(p, "RETURNING")) {
		cast = new_node(p, WEIR_AST_TRY_CAST, p->ts->next++);
		if (cast == NULL || weir_type_parse(p->ts, p->m, &cast->type, p->dg) != WEIR_OK)
			return list_take(p, l, NULL, false);
	}
	while (is(p, "NULL") && weir_token_is_at(p->ts, 1, "ON")) {
		p->ts->next += 2;
		if (!accept(p, "EMPTY") && !expect(p, "ERROR"))
			return list_take(p, l, NULL, false);
	}
	if (is(p, "DEFAULT") || is(p, "ERROR") || is(p, "WITH") || is(p, "WITHOUT")) {
		fail(p, peek(p), "use COALESCE(JSON_VALUE(...), ...)",
		     "not supported yet: this clause of a JSON function");
		return list_take(p, l, NULL, false);
	}
	bool ok = expect(p, ")");
	call = list_take(p, l, call, ok);
	return call == NULL || cast == NULL ? call : with_args(p, cast, 1, call, NULL, NULL);
}

/* SELECT ... and the parenthesis behind it. */
static struct weir_ast *parse_query(struct parser *p, uint32_t at, const char *else_what)
{
	const struct weir_token *first = peek(p);
	struct weir_ast *a = new_node(p, WEIR_AST_QUERY, at);
	if (a == NULL || !is(p, "SELECT") || p->ts->query == NULL)
		return fail(p, first, NULL,
			    else_what != NULL && !is(p, "SELECT") ? else_what : "a sub-select cannot stand here");
	if (!enter(p) || p->ts->query(p->ts->query_ctx, &a->query) != WEIR_OK)
		return NULL;
	leave(p);
	const struct weir_token *last = peek(p);
	if (!expect(p, ")"))
		return NULL;
	a->text = weir_mem_printf(p->m, "(%.*s)", (int)(last->at - first->at), p->ts->text + first->at);
	a->text_bytes = (uint32_t)strlen(a->text);
	a->end = p->ts->next;
	return a;
}

/* name(...): the name is current, the parenthesis next. */
static struct weir_ast *parse_call(struct parser *p)
{
	const struct weir_token *t = peek(p);
	uint32_t at = p->ts->next;
	char *name = weir_mem_strndup(p->m, t->text, t->text_bytes);
	for (char *c = name; c != NULL && *c != 0; c++)
		*c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
	p->ts->next += 2;
	if (strcmp(name, "EXTRACT") == 0)
		return parse_extract(p, at);
	if (strcmp(name, "TIMESTAMPADD") == 0 || strcmp(name, "TIMESTAMPDIFF") == 0)
		return parse_timestamp_call(p, at, name);
	if (strcmp(name, "FLOOR") == 0 || strcmp(name, "CEIL") == 0 || strcmp(name, "CEILING") == 0)
		return parse_floor(p, at, name[4] == 'I' ? "CEIL" : name);
	if (strcmp(name, "TRIM") == 0)
		return parse_trim(p, at);
	if (strcmp(name, "POSITION") == 0)
		return parse_position(p, at);
	if (strcmp(name, "ROW") == 0)
		return fail(p, t, NULL, "not supported yet: ROW constructors");
	if (strcmp(name, "EXISTS") == 0)
		return parse_query(p, at, "EXISTS takes a sub-select");
	struct weir_ast *a = set_text(new_node(p, WEIR_AST_CALL, at), name);
	struct list l = {{0}};
	if (a == NULL)
		return NULL;
	if (is(p, "*") && weir_token_is_at(p->ts, 1, ")")) {
		a->star_arg = true;
		p->ts->next += 2;
		a->end = p->ts->next;
		return parse_call_tail(p, a);
	}
	bool ok = true;
	if (accept(p, "DISTINCT"))
		a->distinct = true;
	else
		accept(p, "ALL");
	if (!is(p, ")") || a->distinct) {
		do
			ok = list_add(&l, parse_expr(p, PREC_OR));
		while (ok && accept_comma(p, name));
	}
	if (ok && strncmp(name, "JSON_", 5) == 0 && !is(p, ")"))
		return parse_json_tail(p, a, &l);
	if (ok && is(p, "ORDER"))
		ok = fail(p, peek(p), NULL, "not supported yet: ORDER BY inside an aggregate") != NULL;
	ok = ok && expect(p, ")");
	a = list_take(p, &l, a, ok);
	return a == NULL ? NULL : parse_call_tail(p, a);
}

/* name, name.name, name.*; deeper paths are FIELDs, which parse_postfix adds. */
static struct weir_ast *parse_column(struct parser *p)
{
	uint32_t at = p->ts->next;
	const char *name, *second;
	if (weir_token_name(p->ts, "an expression", &name, p->dg) != WEIR_OK)
		return NULL;
	if (!is(p, "."))
		return set_text(new_node(p, WEIR_AST_COLUMN, at), name);
	p->ts->next++;
	if (is(p, "*") && at == p->first) {
		p->ts->next++;
		struct weir_ast *star = new_node(p, WEIR_AST_STAR, at);
		if (star != NULL)
			star->qualifier = name;
		return star;
	}
	if (weir_token_name(p->ts, "a column name", &second, p->dg) != WEIR_OK)
		return NULL;
	struct weir_ast *a = set_text(new_node(p, WEIR_AST_COLUMN, at), second);
	if (a != NULL)
		a->qualifier = name;
	return a;
}

static struct weir_ast *parse_paren(struct parser *p)
{
	p->ts->next++;
	if (is(p, "SELECT"))
		return fail(p, peek(p),
			    "join with it: LEFT JOIN (SELECT k, MAX(x) AS x FROM t GROUP BY k) AS g ON a.k = g.k",
			    "not supported yet: a sub-query as a value");
	struct weir_ast *a = parse_expr(p, PREC_OR);
	if (a == NULL)
		return NULL;
	if (is(p, ","))
		return fail(p, peek(p), NULL, "not supported yet: row values (a, b)");
	return expect(p, ")") ? a : NULL;
}

static struct weir_ast *parse_name(struct parser *p)
{
	uint32_t at = p->ts->next;
	const struct weir_token *next = weir_token_peek(p->ts, 1);
	bool paren = weir_token_is_at(p->ts, 1, "(");
	if (is(p, "NULL"))
		return p->ts->next++, new_node(p, WEIR_AST_NULL, at);
	if (is(p, "TRUE"))
		return p->ts->next++, new_node(p, WEIR_AST_TRUE, at);
	if (is(p, "FALSE"))
		return p->ts->next++, new_node(p, WEIR_AST_FALSE, at);
	if (is(p, "CASE"))
		return parse_case(p);
	if (is(p, "CAST"))
		return parse_cast(p, WEIR_AST_CAST);
	if (is(p, "TRY_CAST"))
		return parse_cast(p, WEIR_AST_TRY_CAST);
	if (is(p, "INTERVAL"))
		return parse_interval(p);
	if (next->kind == WEIR_TOK_STRING) {
		if (is(p, "DATE"))
			return parse_time_literal(p, WEIR_AST_DATE);
		if (is(p, "TIME"))
			return parse_time_literal(p, WEIR_AST_TIME);
		if (is(p, "TIMESTAMP"))
			return parse_time_literal(p, WEIR_AST_TIMESTAMP);
	}
	if ((is(p, "ARRAY") || is(p, "MAP")) && weir_token_is_at(p->ts, 1, "["))
		return fail(p, peek(p), NULL, "not supported yet: ARRAY and MAP constructors");
	const struct weir_token *t = peek(p);
	bool callable =
		!weir_word_is_reserved(t->text, t->text_bytes) || is(p, "LEFT") || is(p, "RIGHT") || is(p, "EXISTS");
	if (paren && callable)
		return parse_call(p);
	return parse_column(p);
}

static struct weir_ast *parse_primary(struct parser *p)
{
	const struct weir_token *t = peek(p);
	switch (t->kind) {
	case WEIR_TOK_STRING:
	case WEIR_TOK_BYTES:
	case WEIR_TOK_INTEGER:
	case WEIR_TOK_DECIMAL:
	case WEIR_TOK_DOUBLE:
		return parse_literal(p, false);
	case WEIR_TOK_QUOTED:
		return weir_token_is_at(p->ts, 1, "(") ? parse_call(p) : parse_column(p);
	case WEIR_TOK_NAME:
		return parse_name(p);
	default:
		break;
	}
	if (is(p, "("))
		return parse_paren(p);
	if (is(p, "*") && p->ts->next == p->first) {
		uint32_t at = p->ts->next++;
		return new_node(p, WEIR_AST_STAR, at);
	}
	return parse_column(p); /* reports what was expected */
}

/* The operand of NOT or a sign. */
static struct weir_ast *parse_operand(struct parser *p, int prec)
{
	if (!enter(p))
		return NULL;
	struct weir_ast *a = parse_expr(p, prec);
	leave(p);
	return a;
}

/* A sign, NOT, or a primary. */
static struct weir_ast *parse_prefix(struct parser *p)
{
	uint32_t at = p->ts->next;
	struct weir_ast *a;
	if (accept(p, "NOT")) {
		a = parse_operand(p, PREC_NOT);
		return a == NULL ? NULL : new_call(p, "NOT", at, 1, a, NULL, NULL);
	}
	if (is(p, "-") && is_number(weir_token_peek(p->ts, 1))) {
		p->ts->next++;
		return parse_literal(p, true);
	}
	if (accept(p, "-")) {
		a = parse_operand(p, PREC_SIGN);
		return a == NULL ? NULL : new_call(p, "NEG", at, 1, a, NULL, NULL);
	}
	if (accept(p, "+"))
		return parse_operand(p, PREC_SIGN);
	return parse_primary(p);
}

/* ---- operators ---- */

/* left AND right AND ...: one node however long. word is the current token. */
static struct weir_ast *parse_chain(struct parser *p, struct weir_ast *left, const char *word, int prec)
{
	uint32_t at = p->ts->next;
	struct weir_ast *a = set_text(new_node(p, WEIR_AST_CALL, at), word);
	struct list l = {{0}};
	bool ok = a != NULL && list_add(&l, left);
	while (ok && accept(p, word))
		ok = list_add(&l, parse_expr(p, prec + 1));
	return list_take(p, &l, a, ok);
}

/* IS [NOT] NULL | TRUE | FALSE | UNKNOWN | JSON [VALUE | OBJECT | ARRAY | SCALAR] | DISTINCT FROM e */
static struct weir_ast *parse_is(struct parser *p, struct weir_ast *left)
{
	static const char *const words[] = {"NULL", "TRUE", "FALSE", "UNKNOWN"};
	uint32_t at = p->ts->next++;
	struct weir_ast *a = new_node(p, WEIR_AST_IS, at);
	if (a == NULL)
		return NULL;
	a->negated = accept(p, "NOT");
	if (accept(p, "DISTINCT")) {
		if (!expect(p, "FROM"))
			return NULL;
		struct weir_ast *right = parse_expr(p, PREC_COMPARE + 1);
		return right == NULL ? NULL : with_args(p, set_text(a, "DISTINCT FROM"), 2, left, right, NULL);
	}
	for (size_t i = 0; i < WEIR_COUNT_OF(words); i++)
		if (accept(p, words[i]))
			return with_args(p, set_text(a, words[i]), 1, left, NULL, NULL);
	if (accept(p, "JSON")) { /* NULL is no JSON */
		const char *form = accept(p, "VALUE")    ? "IS JSON"
				   : accept(p, "OBJECT") ? "IS JSON OBJECT"
				   : accept(p, "ARRAY")  ? "IS JSON ARRAY"
				   : accept(p, "SCALAR") ? "IS JSON SCALAR"
							 : "IS JSON";
		struct weir_ast *json = new_call(p, form, at, 1, left, NULL, NULL);
		return json == NULL ? NULL
				    : new_call(p, a->negated ? "IS NOT TRUE" : "IS TRUE", at, 1, json, NULL, NULL);
	}
	return fail(p, peek(p), NULL, "expected NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM after IS");
}

/* [NOT] IN (...), after IN. */
static struct weir_ast *parse_in(struct parser *p, struct weir_ast *left, uint32_t at, bool negated)
{
	struct weir_ast *a = new_node(p, WEIR_AST_IN, at);
	struct list l = {{0}};
	if (a == NULL || !expect(p, "("))
		return NULL;
	a->negated = negated;
	bool ok = list_add(&l, left);
	if (is(p, "SELECT")) {
		ok = ok && list_add(&l, parse_query(p, p->ts->next, NULL));
		return list_take(p, &l, a, ok);
	}
	do
		ok = ok && list_add(&l, parse_expr(p, PREC_OR));
	while (ok && accept(p, ","));
	ok = ok && expect(p, ")");
	return list_take(p, &l, a, ok);
}

/* [NOT] BETWEEN [SYMMETRIC] b AND c, after BETWEEN. */
static struct weir_ast *parse_between(struct parser *p, struct weir_ast *left, uint32_t at, bool negated)
{
	struct weir_ast *a = new_node(p, WEIR_AST_BETWEEN, at);
	if (a == NULL)
		return NULL;
	a->negated = negated;
	if (is(p, "SYMMETRIC"))
		return fail(p, peek(p), NULL, "not supported yet: BETWEEN SYMMETRIC");
	accept(p, "ASYMMETRIC");
	struct weir_ast *low = parse_expr(p, PREC_IN + 1);
	if (low == NULL || !expect(p, "AND"))
		return NULL;
	struct weir_ast *high = parse_expr(p, PREC_IN + 1);
	return high == NULL ? NULL : with_args(p, a, 3, left, low, high);
}

/* [NOT] LIKE pattern [ESCAPE c], after LIKE. */
static struct weir_ast *parse_like(struct parser *p, struct weir_ast *left, uint32_t at, bool negated)
{
	struct weir_ast *a = new_node(p, WEIR_AST_LIKE, at);
	struct weir_ast *pattern = parse_expr(p, PREC_IN + 1), *escape = NULL;
	if (a == NULL || pattern == NULL)
		return NULL;
	a->negated = negated;
	if (accept(p, "ESCAPE")) {
		escape = parse_expr(p, PREC_IN + 1);
		if (escape == NULL)
			return NULL;
	}
	return with_args(p, a, escape == NULL ? 2 : 3, left, pattern, escape);
}

static struct weir_ast *parse_predicate(struct parser *p, struct weir_ast *left)
{
	uint32_t at = p->ts->next;
	bool negated = accept(p, "NOT");
	if (accept(p, "IN"))
		return parse_in(p, left, at, negated);
	if (accept(p, "BETWEEN"))
		return parse_between(p, left, at, negated);
	if (accept(p, "LIKE"))
		return parse_like(p, left, at, negated);
	return fail(p, peek(p), "use REGEXP(s, pattern)", "not supported yet: SIMILAR TO");
}

/* a[i], a.b */
static struct weir_ast *parse_postfix(struct parser *p, struct weir_ast *left)
{
	uint32_t at = p->ts->next;
	const char *name;
	if (accept(p, "[")) {
		struct weir_ast *index = parse_expr(p, PREC_OR);
		if (index == NULL || !expect(p, "]"))
			return NULL;
		return with_args(p, new_node(p, WEIR_AST_INDEX, at), 2, left, index, NULL);
	}
	p->ts->next++;
	if (weir_token_name(p->ts, "a field name", &name, p->dg) != WEIR_OK)
		return NULL;
	return with_args(p, set_text(new_node(p, WEIR_AST_FIELD, at), name), 1, left, NULL, NULL);
}

struct infix {
	const char *word;
	const char *call; /* what the call is named */
	int prec;
};

static const struct infix infixes[] = {
	{"+", "+", PREC_ADD},       {"-", "-", PREC_ADD},     {"*", "*", PREC_MUL},       {"/", "/", PREC_MUL},
	{"%", "%", PREC_MUL},       {"||", "||", PREC_MUL},   {"=", "=", PREC_COMPARE},   {"<>", "<>", PREC_COMPARE},
	{"!=", "<>", PREC_COMPARE}, {"<", "<", PREC_COMPARE}, {"<=", "<=", PREC_COMPARE}, {">", ">", PREC_COMPARE},
	{">=", ">=", PREC_COMPARE},
};

static const struct infix *find_infix(const struct weir_token *t)
{
	for (size_t i = 0; t->kind == WEIR_TOK_SYMBOL && i < WEIR_COUNT_OF(infixes); i++)
		if (strcmp(t->text, infixes[i].word) == 0)
			return &infixes[i];
	return NULL;
}

/* Whether a predicate of PREC_IN starts here. */
static bool predicate_follows(const struct parser *p)
{
	uint32_t k = is(p, "NOT") ? 1 : 0;
	const struct weir_tokens *ts = p->ts;
	return weir_token_is_at(ts, k, "IN") || weir_token_is_at(ts, k, "BETWEEN") || weir_token_is_at(ts, k, "LIKE") ||
	       (weir_token_is_at(ts, k, "SIMILAR") && weir_token_is_at(ts, k + 1, "TO"));
}

/* Everything that binds at least as tight as prec. */
static struct weir_ast *parse_operators(struct parser *p, int prec)
{
	struct weir_ast *left = parse_prefix(p);
	while (left != NULL) {
		const struct weir_token *t = peek(p);
		const struct infix *op = find_infix(t);
		if (op != NULL) {
			if (op->prec < prec)
				break;
			uint32_t at = p->ts->next++;
			struct weir_ast *right = parse_expr(p, op->prec + 1);
			left = right == NULL ? NULL : new_call(p, op->call, at, 2, left, right, NULL);
		} else if (is(p, "[") || is(p, ".")) {
			left = parse_postfix(p, left);
		} else if (t->kind != WEIR_TOK_NAME) {
			break;
		} else if (prec <= PREC_IN && predicate_follows(p)) {
			left = parse_predicate(p, left);
		} else if (prec <= PREC_IS && is(p, "IS")) {
			left = parse_is(p, left);
		} else if (prec <= PREC_AND && is(p, "AND")) {
			left = parse_chain(p, left, "AND", PREC_AND);
		} else if (prec <= PREC_OR && is(p, "OR")) {
			left = parse_chain(p, left, "OR", PREC_OR);
		} else {
			break;
		}
	}
	return left;
}

/* A whole sub-expression is the one place where nesting is counted, beside operands of NOT and signs: right operands
 * bind tighter each time, so they go nine deep at most. */
static struct weir_ast *parse_expr(struct parser *p, int prec)
{
	if (prec > PREC_OR)
		return parse_operators(p, prec);
	if (!enter(p))
		return NULL;
	struct weir_ast *a = parse_operators(p, prec);
	leave(p);
	return a;
}

enum weir_err weir_expr_parse(struct weir_tokens *ts, struct weir_mem *m, struct weir_ast **out, struct weir_diag **dg)
{
	struct parser p = {ts, m, dg, ts->next};
	uint32_t depth = ts->depth;
	struct weir_ast *a = parse_expr(&p, PREC_OR);
	ts->depth = depth;
	if (a == NULL)
		return WEIR_E_PLAN;
	*out = a;
	return WEIR_OK;
}

enum weir_err weir_over_parse(struct weir_tokens *ts, struct weir_mem *m, struct weir_ast_over **out,
			      struct weir_diag **dg)
{
	struct parser p = {ts, m, dg, ts->next};
	struct weir_ast_over *ov = weir_mem_take(m, sizeof *ov);
	ov->at = ts->next;
	if (!expect(&p, "(") || !parse_over_spec(&p, ov))
		return WEIR_E_PLAN;
	*out = ov;
	return WEIR_OK;
}
