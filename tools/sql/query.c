/* query.c: the grammar of queries: SELECT, FROM with window TVFs and sub-selects, UNION, EMIT. Untyped: names are
 * resolved when a query is compiled. @thread init */
#include "tools/sql/sql.h"

#include <stdio.h>

static bool is(const struct weir_sql *sq, const char *word)
{
	return weir_token_is(&sq->ts, word);
}

static bool accept(struct weir_sql *sq, const char *word)
{
	return weir_token_accept(&sq->ts, word);
}

static enum weir_err expect(struct weir_sql *sq, const char *word)
{
	return weir_token_expect(&sq->ts, word, sq->dg);
}

static enum weir_err parse_expr(struct weir_sql *sq, struct weir_ast **out)
{
	return weir_expr_parse(&sq->ts, sq->m, out, sq->dg);
}

static enum weir_err enter(struct weir_sql *sq)
{
	if (sq->ts.depth >= sq->ts.depth_max)
		return sql_error(sq, sq->ts.next, NULL, "nesting limit %u reached (sql.depth.max)", sq->ts.depth_max);
	sq->ts.depth++;
	return WEIR_OK;
}

/* Expressions separated by commas. */
static enum weir_err parse_list(struct weir_sql *sq, struct weir_ast ***out, uint32_t *count)
{
	struct weir_buf list = {0};
	enum weir_err err;
	do {
		struct weir_ast *a = NULL;
		err = parse_expr(sq, &a);
		if (err == WEIR_OK)
			weir_buf_put(&list, &a, sizeof a);
	} while (err == WEIR_OK && accept(sq, ","));
	if (err == WEIR_OK) {
		*count = (uint32_t)(list.bytes / sizeof **out);
		*out = weir_mem_copy(sq->m, list.data, list.bytes);
	}
	weir_buf_fini(&list);
	return err;
}

/* ---- FROM ---- */

/* Whether the current token can be an alias without AS. */
static bool alias_follows(const struct weir_sql *sq)
{
	const struct weir_token *t = weir_token_peek(&sq->ts, 0);
	if (t->kind == WEIR_TOK_QUOTED)
		return true;
	if (t->kind != WEIR_TOK_NAME || weir_word_is_reserved(t->text, t->text_bytes))
		return false;
	if (is(sq, "EMIT") && (weir_token_is_at(&sq->ts, 1, "CHANGES") || weir_token_is_at(&sq->ts, 1, "FINAL")))
		return false;
	/* Words that start a clause weir reports on. */
	return !is(sq, "MATCH_RECOGNIZE") && !is(sq, "TABLESAMPLE") && !is(sq, "QUALIFY") && !is(sq, "OFFSET") &&
	       !is(sq, "ASOF") && !is(sq, "PARTITION");
}

static enum weir_err parse_alias(struct weir_sql *sq, struct sql_from *f)
{
	bool as = accept(sq, "AS");
	enum weir_err err = WEIR_OK;
	if (!as && !alias_follows(sq))
		return WEIR_OK;
	err = weir_token_name(&sq->ts, "an alias", &f->alias, sq->dg);
	if (err != WEIR_OK || !accept(sq, "("))
		return err;
	struct weir_buf names = {0};
	do {
		const char *name = NULL;
		err = weir_token_name(&sq->ts, "a column name", &name, sq->dg);
		if (err == WEIR_OK)
			weir_buf_put(&names, &name, sizeof name);
	} while (err == WEIR_OK && accept(sq, ","));
	if (err == WEIR_OK)
		err = expect(sq, ")");
	f->name_count = (uint32_t)(names.bytes / sizeof *f->names);
	f->names = weir_mem_copy(sq->m, names.data, names.bytes);
	weir_buf_fini(&names);
	return err;
}

static enum weir_err parse_duration(struct weir_sql *sq, const char *what, int64_t *out)
{
	uint32_t at = sq->ts.next;
	enum weir_kind kind = WEIR_KIND_INTERVAL_MS;
	if (!is(sq, "INTERVAL"))
		return sql_error(sq, at, "write INTERVAL '5' MINUTE", "expected an INTERVAL for the %s", what);
	enum weir_err err = weir_interval_parse(&sq->ts, sq->m, out, &kind, sq->dg);
	if (err == WEIR_OK && kind != WEIR_KIND_INTERVAL_MS)
		return sql_error(sq, at, "months have no fixed length: use days", "the %s cannot be in months or years",
				 what);
	return err;
}

/* Whether the parenthesis here is all there is up to the next comma: a list, no part of an expression. */
static bool is_list(const struct weir_sql *sq)
{
	uint32_t depth = 0, k = 0;
	if (!weir_token_is_at(&sq->ts, 0, "("))
		return false;
	do {
		if (weir_token_peek(&sq->ts, k)->kind == WEIR_TOK_END)
			return false;
		depth += weir_token_is_at(&sq->ts, k, "(");
		depth -= weir_token_is_at(&sq->ts, k, ")");
		k++;
	} while (depth != 0);
	return weir_token_is_at(&sq->ts, k, ",");
}

/* TABLE t [PARTITION BY ...], or a sub-select. */
static enum weir_err parse_window_data(struct weir_sql *sq, struct sql_from *f)
{
	enum weir_err err;
	f->at = sq->ts.next;
	if (accept(sq, "(")) {
		err = enter(sq);
		if (err == WEIR_OK)
			err = sql_parse_query(sq, false, &f->query);
		if (err == WEIR_OK)
			sq->ts.depth--;
		return err == WEIR_OK ? expect(sq, ")") : err;
	}
	if (!accept(sq, "TABLE"))
		return sql_error(sq, f->at, "write TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL '5' MINUTES)",
				 "expected TABLE and a table name");
	f->at = sq->ts.next;
	err = sql_table_name(sq, "a table name", &f->table);
	if (err != WEIR_OK || !accept(sq, "PARTITION"))
		return err;
	err = expect(sq, "BY");
	if (err != WEIR_OK)
		return err;
	/* PARTITION BY a, b or, as Flink has it, (a, b). A comma may also lead to the next argument of the TVF. */
	struct weir_buf list = {0};
	bool bracket = is_list(sq) && accept(sq, "(");
	do {
		struct weir_ast *a = NULL;
		err = parse_expr(sq, &a);
		if (err == WEIR_OK)
			weir_buf_put(&list, &a, sizeof a);
	} while (err == WEIR_OK && is(sq, ",") && !weir_token_is_at(&sq->ts, 1, "DESCRIPTOR") &&
		 !weir_token_is_at(&sq->ts, 2, "=>") && accept(sq, ","));
	if (err == WEIR_OK && bracket)
		err = expect(sq, ")");
	f->partition_count = (uint32_t)(list.bytes / sizeof *f->partition);
	f->partition = weir_mem_copy(sq->m, list.data, list.bytes);
	weir_buf_fini(&list);
	return err;
}

static enum weir_err parse_descriptor(struct weir_sql *sq, struct sql_from *f)
{
	if (!is(sq, "DESCRIPTOR"))
		return sql_error(sq, sq->ts.next, "write DESCRIPTOR(event_time)",
				 "expected DESCRIPTOR and the time column");
	sq->ts.next++;
	enum weir_err err = expect(sq, "(");
	f->time_at = sq->ts.next;
	if (err == WEIR_OK)
		err = weir_token_name(&sq->ts, "the time column", &f->time_column, sq->dg);
	return err == WEIR_OK ? expect(sq, ")") : err;
}

struct window_form {
	const char *name;
	enum weir_window_kind kind;
	const char *args[5]; /* in positional order; the last may be left out if it is OFFSET */
	uint32_t count;
	const char *example;
};

static const struct window_form forms[] = {
	{"TUMBLE",
	 WEIR_WINDOW_TUMBLE,
	 {"DATA", "TIMECOL", "SIZE", "OFFSET"},
	 4,
	 "TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL '5' MINUTES)"},
	{"HOP",
	 WEIR_WINDOW_HOP,
	 {"DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"},
	 5,
	 "HOP(TABLE t, DESCRIPTOR(c), INTERVAL '10' SECONDS, INTERVAL '1' MINUTE): the slide, then the size"},
	{"CUMULATE",
	 WEIR_WINDOW_CUMULATE,
	 {"DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"},
	 5,
	 "CUMULATE(TABLE t, DESCRIPTOR(c), INTERVAL '1' HOUR, INTERVAL '1' DAY): the step, then the largest size"},
	{"SESSION",
	 WEIR_WINDOW_SESSION,
	 {"DATA", "TIMECOL", "GAP"},
	 3,
	 "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(c), INTERVAL '5' MINUTES)"},
};

const char *sql_window_at(uint32_t i, const char **usage)
{
	if (i >= WEIR_COUNT_OF(forms))
		return NULL;
	*usage = forms[i].example;
	return forms[i].name;
}

static enum weir_err parse_window_arg(struct weir_sql *sq, struct sql_from *f, const char *arg)
{
	if (strcmp(arg, "DATA") == 0)
		return parse_window_data(sq, f);
	if (strcmp(arg, "TIMECOL") == 0)
		return parse_descriptor(sq, f);
	if (strcmp(arg, "SIZE") == 0)
		return parse_duration(sq, "size", &f->window.size_ms);
	if (strcmp(arg, "SLIDE") == 0)
		return parse_duration(sq, "slide", &f->window.advance_ms);
	if (strcmp(arg, "STEP") == 0)
		return parse_duration(sq, "step", &f->window.advance_ms);
	if (strcmp(arg, "GAP") == 0)
		return parse_duration(sq, "gap", &f->window.gap_ms);
	return parse_duration(sq, "offset", &f->window.offset_ms);
}

/* A negative or zero duration is caught here, where its window is known. */
static enum weir_err check_window(struct weir_sql *sq, struct sql_from *f)
{
	struct weir_window_spec *w = &f->window;
	if (w->kind == WEIR_WINDOW_SESSION)
		return w->gap_ms > 0 ? WEIR_OK
				     : sql_error(sq, f->window_at, NULL, "the gap of a session must be positive");
	if (w->kind == WEIR_WINDOW_TUMBLE)
		w->advance_ms = w->size_ms;
	if (w->size_ms <= 0)
		return sql_error(sq, f->window_at, NULL, "the size of a window must be positive");
	if (w->kind == WEIR_WINDOW_CUMULATE && (w->advance_ms <= 0 || w->size_ms % w->advance_ms != 0))
		return sql_error(sq, f->window_at, "CUMULATE takes the step first, then the largest size",
				 "the step of CUMULATE must be positive, and the size a multiple of it");
	if (w->advance_ms <= 0)
		return sql_error(sq, f->window_at, NULL, "the slide of a window must be positive");
	if (w->advance_ms > w->size_ms)
		return sql_error(sq, f->window_at, "HOP takes the slide first, then the size",
				 "a window that slides further than its size would skip records");
	return WEIR_OK;
}

/* NAME(...), after the name and its parenthesis. */
static enum weir_err parse_window_args(struct weir_sql *sq, struct sql_from *f, const struct window_form *form)
{
	bool given[5] = {false};
	uint32_t next = 0;
	enum weir_err err = WEIR_OK;
	f->window.kind = form->kind;
	do {
		uint32_t arg = next, at = sq->ts.next;
		if (weir_token_is_at(&sq->ts, 1, "=>")) {
			for (arg = 0; arg < form->count && !is(sq, form->args[arg]); arg++)
				;
			if (arg == form->count)
				return sql_error(sq, at, form->example, "%s has no argument %s", form->name,
						 weir_token_peek(&sq->ts, 0)->text);
			sq->ts.next += 2;
		} else if (arg >= form->count) {
			return sql_error(sq, at, form->example, "too many arguments for %s", form->name);
		}
		if (given[arg])
			return sql_error(sq, at, NULL, "argument %s is given twice", form->args[arg]);
		err = parse_window_arg(sq, f, form->args[arg]);
		given[arg] = true;
		next = arg + 1;
	} while (err == WEIR_OK && accept(sq, ","));
	if (err == WEIR_OK)
		err = expect(sq, ")");
	for (uint32_t i = 0; err == WEIR_OK && i < form->count; i++)
		if (!given[i] && strcmp(form->args[i], "OFFSET") != 0)
			err = sql_error(sq, f->window_at, form->example, "%s needs its argument %s", form->name,
					form->args[i]);
	return err == WEIR_OK ? check_window(sq, f) : err;
}

static const struct window_form *window_follows(const struct weir_sql *sq)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(forms); i++)
		if (is(sq, forms[i].name) && weir_token_is_at(&sq->ts, 1, "("))
			return &forms[i];
	return NULL;
}

static enum weir_err parse_window(struct weir_sql *sq, struct sql_from *f)
{
	const struct window_form *form = window_follows(sq);
	f->window_at = sq->ts.next;
	if (form == NULL)
		return sql_error(sq, f->window_at, forms[0].example, "expected TUMBLE, HOP, CUMULATE or SESSION");
	sq->ts.next += 2;
	return parse_window_args(sq, f, form);
}

/* How many tokens a comma or CROSS JOIN has; 0: neither is there. */
static uint32_t words_of_cross(const struct weir_sql *sq)
{
	return is(sq, ",") ? 1 : is(sq, "CROSS") && weir_token_is_at(&sq->ts, 1, "JOIN") ? 2 : 0;
}

/* CROSS JOIN UNNEST, or a comma and UNNEST; words: out, how many tokens stand before it. */
static bool unnest_follows(const struct weir_sql *sq, uint32_t *words)
{
	uint32_t n = words_of_cross(sq);
	if (words != NULL)
		*words = n;
	return n != 0 && weir_token_is_at(&sq->ts, n, "UNNEST") && weir_token_is_at(&sq->ts, n + 1, "(");
}

/* What may not follow a table. */
static enum weir_err check_after_from(struct weir_sql *sq)
{
	uint32_t side = is(sq, "LEFT") || is(sq, "RIGHT");
	bool anti = weir_token_is_at(&sq->ts, side, "ANTI");
	if (unnest_follows(sq, NULL))
		return WEIR_OK;
	if ((anti || weir_token_is_at(&sq->ts, side, "SEMI")) && weir_token_is_at(&sq->ts, side + 1, "JOIN"))
		return sql_error(sq, sq->ts.next,
				 anti ? "write WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = x)"
				      : "write WHERE EXISTS (SELECT 1 FROM t WHERE t.k = x)",
				 "not supported yet: %s JOIN", anti ? "ANTI" : "SEMI");
	if (is(sq, "NATURAL"))
		return sql_error(sq, sq->ts.next, "write JOIN t USING (k)", "not supported yet: NATURAL JOIN");
	if (is(sq, "MATCH_RECOGNIZE"))
		return sql_error(sq, sq->ts.next, NULL, "not supported: MATCH_RECOGNIZE");
	if (is(sq, "TABLESAMPLE"))
		return sql_error(sq, sq->ts.next, NULL, "not supported yet: TABLESAMPLE");
	return WEIR_OK;
}

/* FOR SYSTEM_TIME AS OF expression. */
static enum weir_err parse_as_of(struct weir_sql *sq, struct sql_from *f)
{
	sq->ts.next += 2;
	enum weir_err err = expect(sq, "AS");
	if (err == WEIR_OK)
		err = expect(sq, "OF");
	return err == WEIR_OK ? parse_expr(sq, &f->as_of) : err;
}

static enum weir_err parse_from(struct weir_sql *sq, struct sql_from *f)
{
	enum weir_err err;
	f->at = sq->ts.next;
	if (accept(sq, "(")) {
		if (!is(sq, "SELECT") && !is(sq, "("))
			return sql_error(sq, sq->ts.next, NULL, "expected SELECT");
		err = enter(sq);
		if (err == WEIR_OK)
			err = sql_parse_query(sq, false, &f->query);
		if (err != WEIR_OK)
			return err;
		sq->ts.depth--;
		err = expect(sq, ")");
	} else if (is(sq, "TABLE") && weir_token_is_at(&sq->ts, 1, "(")) {
		sq->ts.next += 2;
		err = parse_window(sq, f);
		if (err == WEIR_OK)
			err = expect(sq, ")");
	} else if (window_follows(sq) != NULL) {
		err = parse_window(sq, f);
	} else if (is(sq, "LATERAL") || (is(sq, "UNNEST") && weir_token_is_at(&sq->ts, 1, "("))) {
		err = sql_error(sq, f->at,
				is(sq, "LATERAL") ? "join the table itself: JOIN t ON a.k = t.k"
						  : "write FROM t CROSS JOIN UNNEST(t.items) AS i (item)",
				"not supported yet: %s", weir_token_peek(&sq->ts, 0)->text);
	} else {
		err = sql_table_name(sq, "a table name", &f->table);
		if (err == WEIR_OK && is(sq, "("))
			err = sql_error(sq, f->at,
					"write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL '5' MINUTES))",
					"unknown table function %s", f->table);
	}
	if (err == WEIR_OK)
		err = check_after_from(sq);
	if (err == WEIR_OK && is(sq, "FOR") && weir_token_is_at(&sq->ts, 1, "SYSTEM_TIME"))
		err = parse_as_of(sq, f);
	if (err == WEIR_OK)
		err = parse_alias(sq, f);
	return err == WEIR_OK ? check_after_from(sq) : err;
}

/* ---- joins ---- */

/* INNER, LEFT, RIGHT or FULL [OUTER] JOIN; false: no join follows. */
static bool accept_join(struct weir_sql *sq, enum weir_join_kind *kind)
{
	static const struct {
		const char *word;
		enum weir_join_kind kind;
	} kinds[] = {{"INNER", WEIR_JOIN_INNER},
		     {"LEFT", WEIR_JOIN_LEFT},
		     {"RIGHT", WEIR_JOIN_RIGHT},
		     {"FULL", WEIR_JOIN_FULL}};
	*kind = WEIR_JOIN_INNER;
	if (accept(sq, "JOIN"))
		return true;
	for (size_t i = 0; i < WEIR_COUNT_OF(kinds); i++) {
		uint32_t words = 1;
		if (!is(sq, kinds[i].word))
			continue;
		if (kinds[i].kind != WEIR_JOIN_INNER && weir_token_is_at(&sq->ts, words, "OUTER"))
			words++;
		if (!weir_token_is_at(&sq->ts, words, "JOIN"))
			return false;
		sq->ts.next += words + 1;
		*kind = kinds[i].kind;
		return true;
	}
	return false;
}

static enum weir_err parse_using(struct weir_sql *sq, struct sql_join *jn)
{
	struct weir_buf names = {0};
	enum weir_err err = expect(sq, "(");
	while (err == WEIR_OK) {
		const char *name = NULL;
		err = weir_token_name(&sq->ts, "a column name", &name, sq->dg);
		if (err == WEIR_OK)
			weir_buf_put(&names, &name, sizeof name);
		if (!accept(sq, ","))
			break;
	}
	if (err == WEIR_OK)
		err = expect(sq, ")");
	jn->using_count = (uint32_t)(names.bytes / sizeof *jn->using);
	jn->using = weir_mem_copy(sq->m, names.data, names.bytes);
	weir_buf_fini(&names);
	return err;
}

/* UNNEST(array) [WITH ORDINALITY] [AS] t (x, n); the word is current. */
static enum weir_err parse_unnest(struct weir_sql *sq, struct sql_join *jn)
{
	jn->right.at = sq->ts.next;
	sq->ts.next += 2;
	enum weir_err err = parse_expr(sq, &jn->unnest);
	if (err == WEIR_OK)
		err = expect(sq, ")");
	if (err == WEIR_OK && accept(sq, "WITH")) {
		jn->ordinality = true;
		err = expect(sq, "ORDINALITY");
	}
	return err == WEIR_OK ? parse_alias(sq, &jn->right) : err;
}

/* ON TRUE, which a join with UNNEST other than CROSS needs. */
static enum weir_err parse_on_true(struct weir_sql *sq, const struct sql_join *jn)
{
	if (jn->kind != WEIR_JOIN_INNER && jn->kind != WEIR_JOIN_LEFT)
		return sql_error(sq, jn->at, "use CROSS JOIN or LEFT JOIN", "only rows of the left side can be kept");
	enum weir_err err = expect(sq, "ON");
	if (err == WEIR_OK && !accept(sq, "TRUE"))
		err = sql_error(sq, sq->ts.next, "write ON TRUE, and the condition in WHERE",
				"not supported yet: a condition on a join with UNNEST");
	return err;
}

/* A join without its condition: what stands there instead often says what is missing. */
static enum weir_err no_condition(struct weir_sql *sq)
{
	const char *hint = "write JOIN t ON a.k = t.k";
	if (is(sq, "FOR"))
		hint = "the table's other name comes last: JOIN t FOR SYSTEM_TIME AS OF a.event_time AS x ON a.k = x.k";
	else if (is(sq, "WITHIN"))
		hint = "bounds in time stand in ON: a.k = t.k AND t.event_time BETWEEN "
		       "a.event_time - INTERVAL '1' HOUR AND a.event_time + INTERVAL '1' HOUR";
	return sql_error(sq, sq->ts.next, hint, "expected ON after JOIN");
}

static enum weir_err parse_joins(struct weir_sql *sq, struct sql_query *q)
{
	struct weir_buf joins = {0};
	enum weir_err err = WEIR_OK;
	for (;;) {
		struct sql_join jn = {.at = sq->ts.next};
		uint32_t words = 0;
		if (unnest_follows(sq, &words)) {
			sq->ts.next += words;
			err = parse_unnest(sq, &jn);
			if (err == WEIR_OK)
				err = check_after_from(sq);
			if (err != WEIR_OK)
				break;
			weir_buf_put(&joins, &jn, sizeof jn);
			continue;
		}
		words = words_of_cross(sq);
		if (words > 0) {
			sq->ts.next += words;
			jn.by_where = true;
			err = parse_from(sq, &jn.right);
			if (err != WEIR_OK)
				break;
			weir_buf_put(&joins, &jn, sizeof jn);
			continue;
		}
		if (!accept_join(sq, &jn.kind))
			break;
		if (is(sq, "UNNEST") && weir_token_is_at(&sq->ts, 1, "(")) {
			err = parse_unnest(sq, &jn);
			if (err == WEIR_OK)
				err = parse_on_true(sq, &jn);
			if (err == WEIR_OK)
				err = check_after_from(sq);
			if (err != WEIR_OK)
				break;
			weir_buf_put(&joins, &jn, sizeof jn);
			continue;
		}
		err = parse_from(sq, &jn.right);
		if (err == WEIR_OK && accept(sq, "ON"))
			err = parse_expr(sq, &jn.on);
		else if (err == WEIR_OK && accept(sq, "USING"))
			err = parse_using(sq, &jn);
		else if (err == WEIR_OK)
			err = no_condition(sq);
		if (err != WEIR_OK)
			break;
		weir_buf_put(&joins, &jn, sizeof jn);
	}
	q->join_count = (uint32_t)(joins.bytes / sizeof *q->joins);
	q->joins = weir_mem_copy(sq->m, joins.data, joins.bytes);
	weir_buf_fini(&joins);
	return err;
}

/* ---- SELECT ---- */

static enum weir_err parse_items(struct weir_sql *sq, struct sql_query *q)
{
	struct weir_buf items = {0};
	enum weir_err err;
	do {
		struct sql_item item = {0};
		err = parse_expr(sq, &item.ast);
		if (err == WEIR_OK && item.ast->kind != WEIR_AST_STAR && (accept(sq, "AS") || alias_follows(sq)))
			err = weir_token_name(&sq->ts, "a column alias", &item.alias, sq->dg);
		if (err == WEIR_OK)
			weir_buf_put(&items, &item, sizeof item);
	} while (err == WEIR_OK && accept(sq, ","));
	q->item_count = (uint32_t)(items.bytes / sizeof *q->items);
	q->items = weir_mem_copy(sq->m, items.data, items.bytes);
	weir_buf_fini(&items);
	return err;
}

static enum weir_err parse_group_by(struct weir_sql *sq, struct sql_query *q)
{
	static const char *const sets[] = {"ROLLUP", "CUBE", "GROUPING"};
	sq->ts.next++;
	enum weir_err err = expect(sq, "BY");
	if (err != WEIR_OK)
		return err;
	for (size_t i = 0; i < WEIR_COUNT_OF(sets); i++)
		if (is(sq, sets[i]))
			return sql_error(sq, sq->ts.next, NULL, "not supported yet: GROUPING SETS, ROLLUP and CUBE");
	q->has_group = true;
	if (is(sq, "(") && weir_token_is_at(&sq->ts, 1, ")")) {
		sq->ts.next += 2;
		return WEIR_OK;
	}
	return parse_list(sq, &q->group_by, &q->group_count);
}

/* WINDOW w AS (...), ... */
static enum weir_err parse_windows(struct weir_sql *sq, struct sql_query *q)
{
	struct weir_buf list = {0};
	enum weir_err err;
	do {
		struct sql_named_window w = {0};
		err = weir_token_name(&sq->ts, "a window's name", &w.name, sq->dg);
		if (err == WEIR_OK)
			err = expect(sq, "AS");
		if (err == WEIR_OK)
			err = weir_over_parse(&sq->ts, sq->m, &w.over, sq->dg);
		if (err == WEIR_OK)
			weir_buf_put(&list, &w, sizeof w);
	} while (err == WEIR_OK && accept(sq, ","));
	q->window_count = (uint32_t)(list.bytes / sizeof *q->windows);
	q->windows = weir_mem_copy(sq->m, list.data, list.bytes);
	weir_buf_fini(&list);
	return err;
}

static enum weir_err parse_select(struct weir_sql *sq, struct sql_query *q)
{
	enum weir_err err = expect(sq, "SELECT");
	if (err != WEIR_OK)
		return err;
	q->distinct = accept(sq, "DISTINCT");
	if (!q->distinct)
		accept(sq, "ALL");
	err = parse_items(sq, q);
	if (err != WEIR_OK)
		return err;
	if (!is(sq, "FROM")) {
		const struct weir_token *t = weir_token_peek(&sq->ts, 0);
		if (t->kind == WEIR_TOK_END || is(sq, ";") || is(sq, ")"))
			return sql_error(sq, sq->ts.next, NULL, "not supported yet: SELECT without FROM");
	}
	err = expect(sq, "FROM");
	if (err == WEIR_OK)
		err = parse_from(sq, &q->from);
	if (err == WEIR_OK && q->from.as_of != NULL)
		err = sql_error(sq, q->from.as_of->at, "write a JOIN t FOR SYSTEM_TIME AS OF a.time ON a.k = t.k",
				"FOR SYSTEM_TIME AS OF belongs to the right side of a join");
	if (err == WEIR_OK)
		err = parse_joins(sq, q);
	if (err == WEIR_OK && accept(sq, "WHERE"))
		err = parse_expr(sq, &q->where);
	if (err == WEIR_OK && is(sq, "GROUP"))
		err = parse_group_by(sq, q);
	if (err == WEIR_OK && accept(sq, "HAVING"))
		err = parse_expr(sq, &q->having);
	if (err == WEIR_OK && accept(sq, "WINDOW"))
		err = parse_windows(sq, q);
	if (err == WEIR_OK && is(sq, "QUALIFY"))
		err = sql_error(sq, sq->ts.next, NULL, "not supported yet: %s", weir_token_peek(&sq->ts, 0)->text);
	return err;
}

static enum weir_err parse_primary(struct weir_sql *sq, struct sql_query **out)
{
	struct sql_query *q = weir_mem_take(sq->m, sizeof *q);
	q->at = sq->ts.next;
	*out = q;
	if (is(sq, "WITH"))
		return sql_error(sq, q->at, "use CREATE TEMPORARY VIEW", "not supported yet: WITH");
	if (is(sq, "VALUES"))
		return sql_error(sq, q->at, NULL, "not supported yet: VALUES");
	if (!is(sq, "("))
		return parse_select(sq, q);
	enum weir_err err = enter(sq);
	sq->ts.next++;
	if (err == WEIR_OK)
		err = sql_parse_query(sq, false, out);
	if (err != WEIR_OK)
		return err;
	sq->ts.depth--;
	return expect(sq, ")");
}

static enum weir_err parse_emit(struct weir_sql *sq, bool outermost, struct sql_query *q)
{
	uint32_t at = sq->ts.next;
	sq->ts.next++;
	if (!outermost)
		return sql_error(sq, at, "EMIT ends the whole query and sets how its last stage emits",
				 "EMIT cannot stand in a sub-query");
	if (accept(sq, "CHANGES"))
		q->emit = SQL_EMIT_CHANGES;
	else if (accept(sq, "FINAL"))
		q->emit = SQL_EMIT_FINAL;
	else
		return sql_error(sq, sq->ts.next, NULL, "expected CHANGES or FINAL after EMIT");
	q->emit_at = at;
	return WEIR_OK;
}

/* The arms of a UNION so far as one query; it is the only one then. What is the same anyway is not said twice. */
static void take_arms(struct weir_sql *sq, struct weir_buf *arms, bool distinct)
{
	if (arms->bytes == sizeof(struct sql_query *))
		return;
	struct sql_query *q = weir_mem_take(sq->m, sizeof *q);
	q->arm_count = (uint32_t)(arms->bytes / sizeof q);
	q->arms = weir_mem_copy(sq->m, arms->data, arms->bytes);
	q->at = q->arms[0]->at;
	q->distinct = distinct;
	for (uint32_t i = 0; distinct && i < q->arm_count; i++)
		q->arms[i]->distinct = false;
	arms->bytes = 0;
	weir_buf_put(arms, &q, sizeof q);
}

enum weir_err sql_parse_query(struct weir_sql *sq, bool outermost, struct sql_query **out)
{
	static const char *const later[] = {"ORDER", "LIMIT", "OFFSET", "FETCH", "INTERSECT", "EXCEPT", "MINUS"};
	struct weir_buf arms = {0};
	struct sql_query *q = NULL;
	enum weir_err err = parse_primary(sq, &q);
	if (err == WEIR_OK)
		weir_buf_put(&arms, &q, sizeof q);
	while (err == WEIR_OK && accept(sq, "UNION")) {
		bool distinct = !accept(sq, "ALL");
		if (distinct)
			accept(sq, "DISTINCT");
		err = parse_primary(sq, &q);
		if (err == WEIR_OK)
			weir_buf_put(&arms, &q, sizeof q);
		if (err == WEIR_OK && distinct)
			take_arms(sq, &arms, true);
	}
	if (err == WEIR_OK) {
		take_arms(sq, &arms, false);
		q = *(struct sql_query **)(void *)arms.data;
	}
	weir_buf_fini(&arms);
	for (size_t i = 0; err == WEIR_OK && i < WEIR_COUNT_OF(later); i++)
		if (is(sq, later[i]))
			err = sql_error(sq, sq->ts.next, NULL, "not supported yet: %s", later[i]);
	if (err == WEIR_OK && is(sq, "EMIT"))
		err = parse_emit(sq, outermost, q);
	if (err == WEIR_OK)
		*out = q;
	return err;
}
