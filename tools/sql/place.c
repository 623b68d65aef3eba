/* place.c: where the tables of a text and their options stand in it, for errors that planning or starting finds once
 * the text is compiled: these name a table, and nothing else tells them where it is. @thread init */
#include "tools/sql/sql.h"

#include <stdlib.h>

struct sql_place {
	char *table;
	char *option; /* NULL: the table itself */
	size_t at;    /* in the text as it was written */
};

static void keep(struct weir_sql *sq, const struct sql_table *t, const char *option, uint32_t token)
{
	const char *at = sql_written_at(&sq->written, sq->ts.token[token].at);
	struct sql_place pl = {.table = weir_xstrdup(t->name),
			       .option = option != NULL ? weir_xstrdup(option) : NULL,
			       .at = (size_t)(at - sq->written.text)};
	weir_buf_put(&sq->places, &pl, sizeof pl);
}

void sql_places_keep(struct weir_sql *sq)
{
	struct sql_table *const *tables = (struct sql_table *const *)sq->tables.data;
	for (size_t i = 0; i < sq->tables.bytes / sizeof *tables; i++) {
		const struct sql_table *t = tables[i];
		bool named = false;
		if (t->def == NULL || t->dropped)
			continue;
		for (uint32_t k = t->first_token; k + 1 < t->end_token; k++) {
			const struct weir_token *tok = &sq->ts.token[k];
			bool is_name = tok->kind == WEIR_TOK_NAME || tok->kind == WEIR_TOK_QUOTED;
			if (!named && is_name && strcmp(tok->text, t->name) == 0) {
				keep(sq, t, NULL, k);
				named = true;
			} else if (named && tok->kind == WEIR_TOK_STRING && sq->ts.token[k + 1].text_bytes == 1 &&
				   sq->ts.token[k + 1].kind == WEIR_TOK_SYMBOL && *sq->ts.token[k + 1].text == '=') {
				keep(sq, t, tok->text, k);
			}
		}
	}
	sq->place_file = sq->ts.file != NULL ? weir_xstrdup(sq->ts.file) : NULL;
	weir_buf_put(&sq->place_text, sq->written.text, sq->written.bytes);
}

void sql_places_fini(struct weir_sql *sq)
{
	struct sql_place *pl = (struct sql_place *)sq->places.data;
	for (size_t i = 0; i < sq->places.bytes / sizeof *pl; i++) {
		free(pl[i].table);
		free(pl[i].option);
	}
	weir_buf_fini(&sq->places);
	weir_buf_fini(&sq->place_text);
	free(sq->place_file);
}

static bool goes_on(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
	       c == '-';
}

/* Where text speaks of a table by this name, NULL: nowhere. */
static const char *speaks_of(const char *text, const char *name)
{
	static const char *const words[] = {"table ", "sink ", "source "};
	const char *first = NULL;
	for (size_t w = 0; w < WEIR_COUNT_OF(words); w++)
		for (const char *at = text; (at = strstr(at, words[w])) != NULL; at++) {
			const char *to = at + strlen(words[w]);
			to += *to == '\'';
			size_t bytes = strlen(name);
			bool whole = strncmp(to, name, bytes) == 0 &&
				     (!goes_on(to[bytes]) || (to[bytes] == '.' && !goes_on(to[bytes + 1])));
			if (whole && (at == text || !goes_on(at[-1])) && (first == NULL || at < first))
				first = at;
		}
	return first;
}

/* Where text names an option, quoted, NULL: nowhere. */
static const char *names_option(const char *text, const char *option)
{
	size_t bytes = strlen(option);
	for (const char *at = text; (at = strchr(at, '\'')) != NULL; at++)
		if (strncmp(at + 1, option, bytes) == 0 && at[1 + bytes] == '\'')
			return at;
	return NULL;
}

void weir_sql_add_place(const struct weir_sql *sq, struct weir_diag *dg)
{
	const struct sql_place *all = (const struct sql_place *)sq->places.data, *table = NULL, *option = NULL;
	size_t count = sq->places.bytes / sizeof *all;
	const char *text = weir_diag_text(dg), *at, *first = NULL;
	enum weir_err code = weir_diag_code(dg);
	if ((code != WEIR_E_CONF && code != WEIR_E_PLAN) || weir_diag_line(dg) > 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (all[i].option == NULL && (at = speaks_of(text, all[i].table)) != NULL &&
		    (first == NULL || at < first)) {
			table = &all[i];
			first = at;
		}
	first = NULL;
	for (size_t i = 0; i < count; i++) {
		if (all[i].option == NULL || (table != NULL && strcmp(all[i].table, table->table) != 0) ||
		    (at = names_option(text, all[i].option)) == NULL)
			continue;
		if (table == NULL && option != NULL && strcmp(all[i].table, option->table) != 0)
			return; /* two tables have such options: which one is meant? */
		if (first == NULL || at < first) {
			option = &all[i];
			first = at;
		}
	}
	const struct sql_place *found = option != NULL ? option : table;
	if (found == NULL)
		return;
	const char *written = (const char *)sq->place_text.data;
	weir_diag_set_file(dg, sq->place_file);
	weir_diag_move(dg, written, sq->place_text.bytes, written + found->at);
}
