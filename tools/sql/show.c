/* show.c: SHOW and DESCRIBE: what the catalog holds, as text. @thread init */
#include "tools/sql/sql.h"

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/core/utf8.h"
#include "hotpath/expr/function.h"

/* ---- tables of text ---- */

struct grid {
	struct weir_buf cells; /* char *, from the sql's memory */
	uint32_t columns;
};

static void put_cell(struct grid *g, const char *text)
{
	weir_buf_put(&g->cells, &text, sizeof text);
}

static size_t width_of(const char *s)
{
	return weir_utf8_count((const uint8_t *)s, strlen(s));
}

static void put_rule(struct weir_buf *out, const size_t *width, uint32_t columns)
{
	for (uint32_t c = 0; c < columns; c++) {
		weir_buf_puts(out, "+-");
		for (size_t i = 0; i < width[c]; i++)
			weir_buf_put_byte(out, '-');
		weir_buf_puts(out, "-");
	}
	weir_buf_puts(out, "+\n");
}

/* The cells with a frame, the first row as head. */
static void put_grid(struct weir_sql *sq, struct grid *g)
{
	const char *const *cell = (const char *const *)g->cells.data;
	uint32_t count = (uint32_t)(g->cells.bytes / sizeof *cell);
	size_t *width = weir_mem_take(sq->m, g->columns * sizeof *width);
	for (uint32_t i = 0; i < count; i++)
		if (width_of(cell[i]) > width[i % g->columns])
			width[i % g->columns] = width_of(cell[i]);
	put_rule(&sq->output, width, g->columns);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t c = i % g->columns;
		weir_buf_puts(&sq->output, c == 0 ? "| " : " | ");
		weir_buf_puts(&sq->output, cell[i]);
		for (size_t n = width_of(cell[i]); n < width[c]; n++)
			weir_buf_put_byte(&sq->output, ' ');
		if (c + 1 == g->columns)
			weir_buf_puts(&sq->output, " |\n");
		if (i + 1 == g->columns)
			put_rule(&sq->output, width, g->columns);
	}
	put_rule(&sq->output, width, g->columns);
	weir_buf_fini(&g->cells);
}

/* ---- SHOW ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One column of names, sorted. */
static void show_names(struct weir_sql *sq, const char *head, struct weir_buf *names)
{
	struct grid g = {.columns = 1};
	uint32_t count = (uint32_t)(names->bytes / sizeof(char *));
	const char *const *list = (const char *const *)names->data;
	if (count > 0)
		qsort(names->data, count, sizeof(char *), by_name);
	put_cell(&g, head);
	for (uint32_t i = 0; i < count; i++)
		if (i == 0 || strcmp(list[i], list[i - 1]) != 0)
			put_cell(&g, list[i]);
	put_grid(sq, &g);
	weir_buf_fini(names);
}

static void show_tables(struct weir_sql *sq, bool views_only)
{
	struct weir_buf names = {0};
	struct sql_table *const *tables = (struct sql_table *const *)sq->tables.data;
	for (size_t i = 0; i < sq->tables.bytes / sizeof(struct sql_table *); i++)
		if (!tables[i]->dropped && (!views_only || tables[i]->def == NULL))
			weir_buf_put(&names, &tables[i]->name, sizeof tables[i]->name);
	show_names(sq, views_only ? "view name" : "table name", &names);
}

static void put_function(struct grid *g, const char *name, const char *kind, const char *doc)
{
	if (name[0] == '$')
		return; /* what others are made of: nobody can write it */
	put_cell(g, name);
	put_cell(g, kind);
	put_cell(g, doc == NULL ? "" : doc);
}

static void show_functions(struct weir_sql *sq)
{
	struct grid g = {.columns = 3};
	const struct weir_function *fn;
	const struct weir_function_note *note;
	const char *name, *usage;
	put_cell(&g, "function");
	put_cell(&g, "kind");
	put_cell(&g, "what it does");
	for (uint32_t i = 0; (fn = weir_function_at(i)) != NULL; i++)
		put_function(&g, fn->name, "scalar", fn->doc);
	for (uint32_t i = 0; (note = weir_function_note_at(i)) != NULL; i++)
		put_function(&g, note->name, note->kind == WEIR_FUNCTION_AGGREGATE ? "aggregate" : "over", note->doc);
	for (uint32_t i = 0; (name = sql_window_at(i, &usage)) != NULL; i++)
		put_function(&g, name, "window", usage);
	put_function(&g, "UNNEST", "table", "JOIN UNNEST(array) [WITH ORDINALITY]: a row for each element");
	put_grid(sq, &g);
}

static void show_source(struct weir_sql *sq, const struct sql_table *t)
{
	const struct weir_token *first = &sq->ts.token[t->first_token], *last = &sq->ts.token[t->end_token - 1];
	weir_buf_put(&sq->output, sq->ts.text + first->at, last->at + last->bytes - first->at);
	weir_buf_puts(&sq->output, "\n");
}

enum weir_err sql_show(struct weir_sql *sq)
{
	sq->ts.next++;
	if (weir_token_accept(&sq->ts, "TABLES")) {
		show_tables(sq, false);
	} else if (weir_token_accept(&sq->ts, "VIEWS")) {
		show_tables(sq, true);
	} else if (weir_token_accept(&sq->ts, "FUNCTIONS")) {
		show_functions(sq);
	} else if (weir_token_accept(&sq->ts, "CREATE")) {
		const char *name = NULL;
		struct sql_table *t = NULL;
		bool view = weir_token_is(&sq->ts, "VIEW");
		if (!view && !weir_token_is(&sq->ts, "TABLE"))
			return sql_error(sq, sq->ts.next, NULL, "expected TABLE or VIEW after SHOW CREATE");
		uint32_t at = ++sq->ts.next;
		enum weir_err err = sql_table_name(sq, "a table name", &name);
		if (err == WEIR_OK)
			err = sql_get_table(sq, name, at, &t);
		if (err != WEIR_OK)
			return err;
		if ((t->def == NULL) != view)
			return sql_error(sq, at, NULL, "%s is a %s", name, view ? "table" : "view");
		show_source(sq, t);
	} else {
		return sql_error(sq, sq->ts.next, NULL, "expected TABLES, VIEWS, FUNCTIONS or CREATE TABLE after SHOW");
	}
	return WEIR_OK;
}

/* ---- DESCRIBE ---- */

static const char *type_cell(struct weir_sql *sq, const struct weir_type *t)
{
	char buf[512];
	struct weir_type plain = *t;
	plain.not_null = false;
	return weir_mem_strdup(sq->m, weir_type_text(&plain, buf, sizeof buf));
}

static const char *key_cell(struct weir_sql *sq, const struct weir_table_def *def, uint32_t column)
{
	bool is_key = false;
	for (uint32_t i = 0; i < def->primary_key_count; i++)
		is_key = is_key || def->primary_key[i] == column;
	if (!is_key)
		return "";
	struct weir_buf b = {0};
	weir_buf_puts(&b, "PRI(");
	for (uint32_t i = 0; i < def->primary_key_count; i++) {
		weir_buf_puts(&b, i > 0 ? ", " : "");
		weir_buf_puts(&b, def->columns[def->primary_key[i]].name);
	}
	weir_buf_puts(&b, ")");
	const char *text = weir_mem_strndup(sq->m, (const char *)b.data, b.bytes);
	weir_buf_fini(&b);
	return text;
}

static const char *extras_cell(struct weir_sql *sq, const struct weir_table_column *c)
{
	if (c->kind == WEIR_COLUMN_METADATA)
		return weir_mem_printf(sq->m, "METADATA FROM '%s'%s", c->metadata, c->is_virtual ? " VIRTUAL" : "");
	if (c->kind == WEIR_COLUMN_COMPUTED)
		return weir_mem_printf(sq->m, "AS %s", c->expr->text);
	return "";
}

static void describe_table(struct weir_sql *sq, const struct weir_table_def *def)
{
	static const char *const heads[] = {"name", "type", "null", "key", "extras", "watermark"};
	struct grid g = {.columns = WEIR_COUNT_OF(heads)};
	for (uint32_t i = 0; i < g.columns; i++)
		put_cell(&g, heads[i]);
	for (uint32_t i = 0; i < def->column_count; i++) {
		const struct weir_table_column *c = &def->columns[i];
		put_cell(&g, c->name);
		put_cell(&g, weir_mem_printf(sq->m, "%s%s", type_cell(sq, &c->type),
					     (int32_t)i == def->rowtime ? " *ROWTIME*" : ""));
		put_cell(&g, c->type.not_null ? "FALSE" : "TRUE");
		put_cell(&g, key_cell(sq, def, i));
		put_cell(&g, extras_cell(sq, c));
		put_cell(&g, (int32_t)i != def->rowtime ? ""
			     : def->grace_ms == 0
				     ? c->name
				     : weir_mem_printf(sq->m, "%s - %lld ms", c->name, (long long)def->grace_ms));
	}
	put_grid(sq, &g);
}

static void describe_columns(struct weir_sql *sq, const struct sql_rel *rel)
{
	struct grid g = {.columns = 3};
	put_cell(&g, "name");
	put_cell(&g, "type");
	put_cell(&g, "null");
	for (uint32_t i = 0; i < rel->column_count; i++) {
		put_cell(&g, rel->node->columns[i].name);
		put_cell(&g, type_cell(sq, &rel->node->columns[i].type));
		put_cell(&g, rel->node->columns[i].type.not_null ? "FALSE" : "TRUE");
	}
	put_grid(sq, &g);
}

/* A view's columns come from compiling it, into a topology that is thrown away. */
static enum weir_err describe_view(struct weir_sql *sq, struct sql_table *t)
{
	struct weir_topology *tp = sq->tp;
	size_t states = sq->states.bytes;
	bool was[2] = {t->compiled[0], t->compiled[1]};
	struct sql_rel rel = t->rel[0];
	enum weir_err err = WEIR_OK;
	if (!was[0]) {
		sq->tp = weir_topology_create();
		if (sq->tp == NULL)
			err = weir_diag_set(sq->dg, WEIR_E_NOMEM, "no memory for the topology");
		else
			err = sql_compile_alone(sq, t->query, &rel);
	}
	if (err == WEIR_OK)
		describe_columns(sq, &rel);
	if (!was[0])
		weir_topology_destroy(sq->tp);
	sq->tp = tp;
	sq->states.bytes = states;
	return err;
}

enum weir_err sql_describe(struct weir_sql *sq)
{
	const char *name = NULL;
	struct sql_table *t = NULL;
	sq->ts.next++;
	weir_token_accept(&sq->ts, "EXTENDED");
	uint32_t at = sq->ts.next;
	enum weir_err err = sql_table_name(sq, "a table name", &name);
	if (err == WEIR_OK)
		err = sql_get_table(sq, name, at, &t);
	if (err != WEIR_OK)
		return err;
	if (t->def == NULL)
		return describe_view(sq, t);
	describe_table(sq, t->def);
	return WEIR_OK;
}
