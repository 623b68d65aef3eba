/* sql.c: compiles a text, statement by statement: SET, statement sets, EXPLAIN and what others handle; messages; the
 * public functions. @thread init */
#include "tools/sql/sql.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/conf.h"

/* ---- messages ---- */

enum weir_err sql_error(struct weir_sql *sq, uint32_t at, const char *hint, const char *fmt, ...)
{
	char text[600];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (at >= sq->ts.count)
		at = sq->ts.count - 1;
	return weir_token_error(&sq->ts, &sq->ts.token[at], sq->dg, hint, "%s", text);
}

/* Where an offset of the text stands in what was written: a filled-in value stands at its ${name}. */
const char *sql_written_at(const struct sql_written *wr, size_t offset)
{
	size_t at = offset;
	const struct sql_filled *f = (const struct sql_filled *)wr->filled.data;
	for (size_t i = 0; i < wr->filled.bytes / sizeof *f && f[i].at <= offset; i++)
		at = offset < f[i].at + f[i].bytes
			     ? f[i].written_at
			     : f[i].written_at + f[i].written_bytes + (offset - f[i].at - f[i].bytes);
	return wr->text + (at < wr->bytes ? at : wr->bytes);
}

/* Line and column of token `at`. */
static void place(const struct weir_sql *sq, uint32_t at, int *line, int *column)
{
	(void)weir_text_place(sq->written.text, sq->written.bytes, sql_written_at(&sq->written, sq->ts.token[at].at),
			      line, column);
}

void sql_warn(struct weir_sql *sq, uint32_t at, const char *fmt, ...)
{
	char text[400];
	int line, column;
	struct weir_buf b = {0};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	place(sq, at, &line, &column);
	weir_buf_printf(&b, "%s%s%d:%d: warning: %s", sq->ts.file == NULL ? "" : sq->ts.file,
			sq->ts.file == NULL ? "" : ":", line, column, text);
	weir_buf_put_byte(&b, 0);
	weir_buf_put(&sq->warnings, &b.data, sizeof b.data);
}

enum weir_err sql_error_from(struct weir_sql *sq, uint32_t at, struct weir_diag *inner)
{
	char hint[300];
	const char *found = strstr(weir_diag_report(inner), "hint: ");
	snprintf(hint, sizeof hint, "%s", found == NULL ? "" : found + strlen("hint: "));
	hint[strcspn(hint, "\n")] = 0;
	if (at >= sq->ts.count)
		at = sq->ts.count - 1;
	enum weir_err code = weir_diag_code(inner);
	(void)weir_diag_set_at(sq->dg, code, sq->ts.file, sq->ts.text, sq->ts.bytes, sq->ts.text + sq->ts.token[at].at,
			       hint[0] == 0 ? NULL : hint, "%s", weir_diag_text(inner));
	weir_diag_destroy(inner);
	return code;
}

enum weir_err sql_check_built(struct weir_sql *sq, uint32_t at)
{
	const struct weir_diag *dg = weir_topology_error(sq->tp);
	return dg == NULL ? WEIR_OK : sql_error_from(sq, at, weir_diag_copy(dg));
}

/* ---- catalog ---- */

enum weir_err sql_table_name(struct weir_sql *sq, const char *what, const char **out)
{
	enum weir_err err = weir_token_name(&sq->ts, what, out, sq->dg);
	const char *first = *out;
	if (err != WEIR_OK || !weir_token_is(&sq->ts, "."))
		return err;
	uint32_t at = sq->ts.next - 1;
	bool known = strcmp(first, "default_catalog") == 0 || strcmp(first, "default_database") == 0;
	while (known && weir_token_accept(&sq->ts, ".")) {
		err = weir_token_name(&sq->ts, what, out, sq->dg);
		if (err != WEIR_OK || !weir_token_is(&sq->ts, "."))
			return err;
		known = strcmp(*out, "default_database") == 0;
	}
	return known ? err
		     : sql_error(sq, at, "name the table alone, in `quotes` if it holds a dot",
				 "weir has no catalogs or databases");
}

struct sql_table *sql_find_table(struct weir_sql *sq, const char *name)
{
	struct sql_table *const *tables = (struct sql_table *const *)sq->tables.data;
	for (size_t i = 0; i < sq->tables.bytes / sizeof(struct sql_table *); i++)
		if (!tables[i]->dropped && strcmp(tables[i]->name, name) == 0)
			return tables[i];
	return NULL;
}

enum weir_err sql_get_table(struct weir_sql *sq, const char *name, uint32_t at, struct sql_table **out)
{
	char hint[160];
	*out = sql_find_table(sq, name);
	if (*out != NULL)
		return WEIR_OK;
	struct sql_table *const *tables = (struct sql_table *const *)sq->tables.data;
	size_t count = sq->tables.bytes / sizeof(struct sql_table *), n = 0;
	const char **names = weir_mem_take(sq->m, (count + 1) * sizeof *names);
	for (size_t i = 0; i < count; i++)
		if (!tables[i]->dropped)
			names[n++] = tables[i]->name;
	const char *near = weir_nearest_name(name, strlen(name), names, n);
	snprintf(hint, sizeof hint, "did you mean %.100s?", near == NULL ? "" : near);
	return sql_error(sq, at, near == NULL ? NULL : hint, "unknown table %s", name);
}

const char *sql_state_name(struct weir_sql *sq, const char *what)
{
	char *base = weir_mem_printf(sq->m, "%s-%s", sq->sink_name, what);
	for (char *c = base; *c != 0; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '-' ||
		      *c == '_' || *c == '.'))
			*c = '_'; /* it becomes part of a topic's name */
	const char *name = base;
	for (uint32_t n = 2;; n++) {
		const char *const *taken = (const char *const *)sq->states.data;
		size_t count = sq->states.bytes / sizeof *taken, i = 0;
		while (i < count && strcmp(taken[i], name) != 0)
			i++;
		if (i == count)
			break;
		name = weir_mem_printf(sq->m, "%s-%u", base, n);
	}
	weir_buf_put(&sq->states, &name, sizeof name);
	return name;
}

/* ---- SET ---- */

/* The source text of tokens from the current one up to an = or the end of the statement. */
static const char *take_text(struct weir_sql *sq, bool stop_at_equals)
{
	const struct weir_token *first = weir_token_peek(&sq->ts, 0), *last = NULL, *t = first;
	while (t->kind != WEIR_TOK_END && strcmp(t->text, ";") != 0 && !(stop_at_equals && strcmp(t->text, "=") == 0)) {
		last = t;
		sq->ts.next++;
		t = weir_token_peek(&sq->ts, 0);
	}
	return last == NULL ? NULL
			    : weir_mem_strndup(sq->m, sq->ts.text + first->at, last->at + last->bytes - first->at);
}

static enum weir_err do_set(struct weir_sql *sq)
{
	uint32_t at = ++sq->ts.next;
	const struct weir_token *t = weir_token_peek(&sq->ts, 0);
	const char *name, *value;
	int line, column;
	struct weir_diag *inner = NULL;
	if (t->kind == WEIR_TOK_STRING) {
		name = t->text;
		sq->ts.next++;
	} else {
		name = take_text(sq, true);
	}
	if (name == NULL)
		return sql_error(sq, at, "write SET 'pipeline.name' = 'revenue'", "expected the name of a property");
	enum weir_err err = weir_token_expect(&sq->ts, "=", sq->dg);
	if (err != WEIR_OK)
		return err;
	uint32_t value_at = sq->ts.next;
	t = weir_token_peek(&sq->ts, 0);
	if (t->kind == WEIR_TOK_STRING) {
		value = t->text;
		sq->ts.next++;
	} else {
		value = take_text(sq, false);
	}
	if (value == NULL)
		return sql_error(sq, value_at, NULL, "expected a value");
	if (sq->cf == NULL)
		return sql_error(sq, at - 1, NULL, "SET cannot be used here");
	place(sq, at, &line, &column);
	const char *where = weir_mem_printf(sq->m, "%s:%d", sq->ts.file == NULL ? "sql" : sq->ts.file, line);
	err = weir_conf_set_from(sq->cf, name, value, WEIR_ORIGIN_FILE, where, &inner);
	return err == WEIR_OK ? err : sql_error_from(sq, at, inner);
}

static enum weir_err do_reset(struct weir_sql *sq)
{
	uint32_t at = sq->ts.next++;
	sql_warn(sq, at, "RESET has no effect: settings hold for the whole text");
	(void)take_text(sq, false);
	return WEIR_OK;
}

/* ---- statements ---- */

static enum weir_err do_insert(struct weir_sql *sq)
{
	if (sq->prints_rows && sq->action != WEIR_SQL_EXPLAIN)
		return sql_error(sq, sq->ts.next, "write its rows into a table WITH ('connector' = 'print')",
				 "a bare SELECT stands alone in a file");
	return sql_insert(sq);
}

/* INSERT ...; INSERT ...; up to END. */
static enum weir_err do_set_body(struct weir_sql *sq)
{
	enum weir_err err = WEIR_OK;
	uint32_t at = sq->ts.next, count = 0;
	while (err == WEIR_OK && !weir_token_is(&sq->ts, "END")) {
		if (weir_token_accept(&sq->ts, ";"))
			continue;
		if (!weir_token_is(&sq->ts, "INSERT"))
			return sql_error(sq, sq->ts.next, NULL, "expected INSERT INTO or END in a statement set");
		err = do_insert(sq);
		count++;
		if (err == WEIR_OK && !weir_token_is(&sq->ts, "END"))
			err = weir_token_expect(&sq->ts, ";", sq->dg);
	}
	if (err == WEIR_OK && count == 0)
		err = sql_error(sq, at, NULL, "an empty statement set");
	if (err == WEIR_OK)
		sq->ts.next++;
	return err;
}

/* EXECUTE STATEMENT SET BEGIN ... END, BEGIN STATEMENT SET; ... END, EXECUTE INSERT ... */
static enum weir_err do_execute(struct weir_sql *sq)
{
	enum weir_err err;
	bool begin_first = weir_token_is(&sq->ts, "BEGIN");
	sq->ts.next++;
	if (!begin_first && weir_token_is(&sq->ts, "INSERT"))
		return do_insert(sq);
	err = weir_token_expect(&sq->ts, "STATEMENT", sq->dg);
	if (err == WEIR_OK)
		err = weir_token_expect(&sq->ts, "SET", sq->dg);
	if (err == WEIR_OK)
		err = weir_token_expect(&sq->ts, begin_first ? ";" : "BEGIN", sq->dg);
	return err == WEIR_OK ? do_set_body(sq) : err;
}

static enum weir_err do_explain(struct weir_sql *sq)
{
	static const char *const details[] = {"ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE"};
	uint32_t at = sq->ts.next++;
	if (sq->insert_count > sq->explain_count)
		return sql_error(sq, at, "weir explain shows the plan of a whole file",
				 "EXPLAIN cannot stand beside what is to be run");
	if (weir_token_accept(&sq->ts, "PLAN")) {
		enum weir_err err = weir_token_expect(&sq->ts, "FOR", sq->dg);
		if (err != WEIR_OK)
			return err;
	}
	for (size_t i = 0; i < WEIR_COUNT_OF(details); i++)
		if (weir_token_accept(&sq->ts, details[i])) {
			weir_token_accept(&sq->ts, ",");
			i = (size_t)-1; /* several may stand in any order */
		}
	sq->action = WEIR_SQL_EXPLAIN;
	enum weir_err err;
	if (weir_token_is(&sq->ts, "INSERT"))
		err = do_insert(sq);
	else if (weir_token_is(&sq->ts, "SELECT") || weir_token_is(&sq->ts, "("))
		err = sql_bare_select(sq);
	else if (weir_token_is(&sq->ts, "EXECUTE"))
		err = do_execute(sq);
	else if (weir_token_accept(&sq->ts, "STATEMENT") && weir_token_accept(&sq->ts, "SET") &&
		 weir_token_accept(&sq->ts, "BEGIN"))
		err = do_set_body(sq);
	else
		err = sql_error(sq, sq->ts.next, NULL, "expected INSERT, SELECT or STATEMENT SET BEGIN after EXPLAIN");
	sq->explain_count = sq->insert_count;
	return err;
}

/* Flink statements without a meaning here. */
static enum weir_err do_ignore(struct weir_sql *sq)
{
	uint32_t at = sq->ts.next;
	sql_warn(sq, at, "%s is ignored", sq->ts.token[at].text);
	(void)take_text(sq, false);
	return WEIR_OK;
}

static enum weir_err do_unsupported(struct weir_sql *sq)
{
	return sql_error(sq, sq->ts.next, NULL, "not supported yet: %s", weir_token_peek(&sq->ts, 0)->text);
}

static const struct {
	const char *word;
	enum weir_err (*run)(struct weir_sql *sq);
} statements[] = {
	{"CREATE", sql_create},      {"DROP", sql_drop},
	{"INSERT", do_insert},       {"SELECT", sql_bare_select},
	{"(", sql_bare_select},      {"EXECUTE", do_execute},
	{"BEGIN", do_execute},       {"SET", do_set},
	{"RESET", do_reset},         {"EXPLAIN", do_explain},
	{"SHOW", sql_show},          {"DESCRIBE", sql_describe},
	{"DESC", sql_describe},      {"ADD", do_ignore},
	{"REMOVE", do_ignore},       {"USE", do_ignore},
	{"LOAD", do_ignore},         {"UNLOAD", do_ignore},
	{"WITH", sql_bare_select},   {"VALUES", sql_bare_select},
	{"ALTER", do_unsupported},   {"UPDATE", do_unsupported},
	{"DELETE", do_unsupported},  {"TRUNCATE", do_unsupported},
	{"ANALYZE", do_unsupported}, {"COMPILE", do_unsupported},
	{"CALL", do_unsupported},    {"UPSERT", do_unsupported},
};

static enum weir_err compile_statement(struct weir_sql *sq)
{
	const char *names[WEIR_COUNT_OF(statements)];
	char upper[32], hint[64];
	uint32_t at = sq->ts.next;
	const struct weir_token *t = weir_token_peek(&sq->ts, 0);
	for (size_t i = 0; i < WEIR_COUNT_OF(statements); i++) {
		names[i] = statements[i].word;
		if (weir_token_is(&sq->ts, statements[i].word))
			return statements[i].run(sq);
	}
	size_t n = t->text_bytes < sizeof upper ? t->text_bytes : sizeof upper - 1;
	for (size_t i = 0; i < n; i++)
		upper[i] = t->text[i] >= 'a' && t->text[i] <= 'z' ? (char)(t->text[i] - 32) : t->text[i];
	const char *near = t->kind == WEIR_TOK_NAME ? weir_nearest_name(upper, n, names, WEIR_COUNT_OF(names)) : NULL;
	snprintf(hint, sizeof hint, "did you mean %s?", near == NULL ? "" : near);
	return sql_error(sq, at, near == NULL ? NULL : hint, "expected a statement: CREATE, INSERT, SELECT, SET, ...");
}

/* Whether what comes is to be run, a query or a set of them. */
static bool is_to_run(const struct weir_sql *sq)
{
	static const char *const words[] = {"INSERT", "EXECUTE", "BEGIN", "SELECT", "("};
	for (size_t i = 0; i < WEIR_COUNT_OF(words); i++)
		if (weir_token_is(&sq->ts, words[i]))
			return true;
	return false;
}

static enum weir_err compile_all(struct weir_sql *sq)
{
	enum weir_err err = WEIR_OK;
	while (err == WEIR_OK) {
		if (weir_token_accept(&sq->ts, ";"))
			continue;
		if (weir_token_peek(&sq->ts, 0)->kind == WEIR_TOK_END)
			break;
		if (sq->action == WEIR_SQL_EXPLAIN && is_to_run(sq))
			return sql_error(sq, sq->ts.next, "weir explain shows the plan of a whole file",
					 "EXPLAIN cannot stand beside what is to be run");
		err = compile_statement(sq);
		const struct weir_token *t = weir_token_peek(&sq->ts, 0);
		if (err == WEIR_OK && t->kind != WEIR_TOK_END && !weir_token_is(&sq->ts, ";"))
			err = sql_error(sq, sq->ts.next, NULL, "expected ; or the end of the statement, found '%.*s'",
					t->text_bytes > 40 ? 40 : (int)t->text_bytes, t->text);
	}
	if (err == WEIR_OK && sq->insert_count > 0 && sq->action == WEIR_SQL_NOTHING)
		sq->action = WEIR_SQL_RUN;
	return err;
}

/* ---- ${name} ---- */

static bool is_variable_byte(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (!first && ((c >= '0' && c <= '9') || c == '.' || c == '-'));
}

/* Bytes of the comment that starts at p, 0 where none does. */
static size_t comment_bytes(const char *p, const char *end)
{
	const char *close = NULL;
	if (end - p >= 2 && p[0] == '-' && p[1] == '-')
		close = memchr(p, '\n', (size_t)(end - p));
	else if (end - p >= 2 && p[0] == '/' && p[1] == '*')
		close = memmem(p + 2, (size_t)(end - p) - 2, "*/", 2);
	else
		return 0;
	return (size_t)((close != NULL ? close : end) - p);
}

/* A value inside quotes stays inside: each such quote in it is doubled. */
static void put_value(struct weir_buf *b, const char *value, char quote)
{
	for (; *value != 0; value++) {
		if (*value == quote)
			weir_buf_put_byte(b, (uint8_t)quote);
		weir_buf_put_byte(b, (uint8_t)*value);
	}
}

/* What wr holds, filled, and terminated; notes where values were put. */
static enum weir_err fill(const char *file, struct sql_written *wr, const struct weir_sql_variable *variables,
			  size_t count, struct weir_buf *b, struct weir_diag **diag)
{
	const char *sql = wr->text;
	size_t bytes = wr->bytes;
	char hint[160];
	char quote = 0; /* the one the text is inside of: ' " or ` */
	for (size_t i = 0; i < bytes;) {
		size_t comment = quote == 0 ? comment_bytes(sql + i, sql + bytes) : 0;
		if (comment != 0 || sql[i] != '$' || i + 1 >= bytes || sql[i + 1] != '{') {
			if (quote == 0 && (sql[i] == '\'' || sql[i] == '"' || sql[i] == '`'))
				quote = sql[i];
			else if (sql[i] == quote) /* a doubled one closes and opens */
				quote = 0;
			weir_buf_put(b, sql + i, comment != 0 ? comment : 1);
			i += comment != 0 ? comment : 1;
			continue;
		}
		size_t from = i + 2, to = from, v = 0;
		while (to < bytes && is_variable_byte(sql[to], to == from))
			to++;
		if (to == from || to >= bytes || sql[to] != '}')
			return weir_diag_set_at(diag, WEIR_E_PLAN, file, sql, bytes, sql + i, NULL,
						"expected a name and } after ${");
		while (v < count && (strlen(variables[v].name) != to - from ||
				     memcmp(variables[v].name, sql + from, to - from) != 0))
			v++;
		if (v == count) {
			snprintf(hint, sizeof hint, "give it with --define %.*s=VALUE",
				 (int)(to - from > 60 ? 60 : to - from), sql + from);
			return weir_diag_set_at(diag, WEIR_E_PLAN, file, sql, bytes, sql + i, hint,
						"${%.*s} is not defined", (int)(to - from > 60 ? 60 : to - from),
						sql + from);
		}
		struct sql_filled f = {.at = b->bytes, .written_at = i, .written_bytes = to + 1 - i};
		put_value(b, variables[v].value, quote);
		f.bytes = b->bytes - f.at;
		weir_buf_put(&wr->filled, &f, sizeof f);
		i = to + 1;
	}
	weir_buf_put_byte(b, 0);
	return WEIR_OK;
}

/* ---- public ---- */

static size_t limit(const struct weir_conf *cf, const char *name, size_t otherwise)
{
	uint64_t v = 0;
	const char *text = cf == NULL ? NULL : weir_conf_get(cf, name);
	return text != NULL && weir_size_parse(text, &v) && v > 0 ? (size_t)v : otherwise;
}

/* A sub-select in an expression. */
static enum weir_err parse_sub_select(void *ctx, void **out)
{
	struct sql_query *q = NULL;
	enum weir_err err = sql_parse_query(ctx, false, &q);
	*out = q;
	return err;
}

/* Compiles text, which was made of what was written. */
static enum weir_err open_text(struct weir_sql **out, struct weir_conf *cf, const char *file, const char *text,
			       size_t bytes, const struct sql_written *written, struct weir_diag **diag)
{
	struct weir_sql *sq = weir_xcalloc(1, sizeof *sq);
	struct weir_diag *own = NULL;
	sq->cf = cf;
	sq->dg = diag == NULL ? &own : diag;
	sq->written = *written;
	sq->tp = weir_topology_create();
	if (sq->tp == NULL) {
		weir_sql_close(sq);
		return weir_diag_set(diag, WEIR_E_NOMEM, "no memory for the topology");
	}
	sq->m = weir_topology_mem(sq->tp);
	enum weir_err err =
		weir_tokens_init(&sq->ts, sq->m, file, text, bytes, limit(cf, "sql.bytes.max", 64 * 1024), sq->dg);
	sq->ts.depth_max = (uint32_t)limit(cf, "sql.depth.max", 200);
	sq->ts.query = parse_sub_select;
	sq->ts.query_ctx = sq;
	if (err == WEIR_OK)
		err = compile_all(sq);
	if (err == WEIR_OK)
		err = sql_name_application(sq);
	size_t at = err != WEIR_OK ? weir_diag_offset(*sq->dg) : SIZE_MAX;
	if (err == WEIR_OK)
		sql_places_keep(sq);
	if (at <= bytes)
		weir_diag_move(*sq->dg, written->text, written->bytes, sql_written_at(written, at));
	weir_diag_destroy(own);
	weir_buf_fini(&sq->tables);
	weir_buf_fini(&sq->states);
	weir_buf_put_byte(&sq->output, 0);
	if (err != WEIR_OK) {
		weir_sql_close(sq);
		return err;
	}
	if (sq->action == WEIR_SQL_NOTHING) {
		weir_topology_destroy(sq->tp);
		sq->tp = NULL;
	}
	*out = sq;
	return WEIR_OK;
}

enum weir_err weir_sql_open(struct weir_sql **out, struct weir_conf *cf, const char *file, const char *sql,
			    size_t bytes, struct weir_diag **diag)
{
	return open_text(out, cf, file, sql, bytes, &(struct sql_written){sql, bytes, {0}}, diag);
}

enum weir_err weir_sql_open_filled(struct weir_sql **out, struct weir_conf *cf, const char *file, const char *sql,
				   size_t bytes, const struct weir_sql_variable *variables, size_t count,
				   struct weir_diag **diag)
{
	struct sql_written written = {sql, bytes, {0}};
	struct weir_buf text = {0};
	struct weir_diag *own = NULL;
	if (diag == NULL)
		diag = &own;
	enum weir_err err = fill(file, &written, variables, count, &text, diag);
	if (err == WEIR_OK)
		err = open_text(out, cf, file, (const char *)text.data, text.bytes - 1, &written, diag);
	weir_buf_fini(&text);
	weir_buf_fini(&written.filled);
	weir_diag_destroy(own);
	return err;
}

void weir_sql_close(struct weir_sql *sq)
{
	if (sq == NULL)
		return;
	char **warnings = (char **)sq->warnings.data;
	for (size_t i = 0; i < sq->warnings.bytes / sizeof(char *); i++)
		free(warnings[i]);
	weir_buf_fini(&sq->warnings);
	weir_buf_fini(&sq->output);
	sql_places_fini(sq);
	weir_topology_destroy(sq->tp);
	free(sq);
}

enum weir_sql_action weir_sql_action(const struct weir_sql *sq)
{
	return sq->action;
}

int weir_sql_prints_rows(const struct weir_sql *sq)
{
	return sq->prints_rows;
}

const char *weir_sql_output(const struct weir_sql *sq)
{
	return (const char *)sq->output.data;
}

const char *weir_sql_warning(const struct weir_sql *sq, unsigned i)
{
	char *const *warnings = (char *const *)sq->warnings.data;
	return i < sq->warnings.bytes / sizeof(char *) ? warnings[i] : NULL;
}

struct weir_topology *weir_sql_take_topology(struct weir_sql *sq)
{
	struct weir_topology *tp = sq->tp;
	sq->tp = NULL;
	return tp;
}

enum weir_err weir_sql_compile(struct weir_topology **out, struct weir_conf *cf, const char *file, const char *sql,
			       size_t bytes, struct weir_diag **diag)
{
	struct weir_sql *sq = NULL;
	enum weir_err err = weir_sql_open(&sq, cf, file, sql, bytes, diag);
	if (err != WEIR_OK)
		return err;
	if (sq->action == WEIR_SQL_NOTHING)
		err = weir_diag_set_at(diag, WEIR_E_PLAN, file, NULL, 0, NULL,
				       "add INSERT INTO ... SELECT, or a SELECT", "%s%sthe text holds nothing to run",
				       file == NULL ? "" : file, file == NULL ? "" : ": ");
	else
		*out = weir_sql_take_topology(sq);
	weir_sql_close(sq);
	return err;
}

enum weir_err weir_sql_expand(const char *file, const char *sql, size_t bytes,
			      const struct weir_sql_variable *variables, size_t count, char **out, size_t *out_bytes,
			      struct weir_diag **diag)
{
	struct sql_written written = {sql, bytes, {0}};
	struct weir_buf b = {0};
	enum weir_err err = fill(file, &written, variables, count, &b, diag);
	weir_buf_fini(&written.filled);
	if (err != WEIR_OK) {
		weir_buf_fini(&b);
		return err;
	}
	*out = (char *)b.data;
	*out_bytes = b.bytes - 1;
	return WEIR_OK;
}
