/* distinct.c: SELECT DISTINCT and UNION without ALL: a GROUP BY of all columns. Over windows it is one of each window,
 * over rows that change what is there at least once. @thread init */
#include "tools/sql/sql.h"

#include <jansson.h>

enum weir_err sql_number_names(struct weir_sql *sq, struct sql_rel *rel, uint32_t at)
{
	uint32_t count = rel->column_count, changed = 0;
	const char **names = weir_mem_take(sq->m, (count + 1) * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (count + 1) * sizeof *exprs);
	json_t *taken = json_object();
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_column *c = &rel->node->columns[i];
		json_t *number = json_object_get(taken, c->name); /* the next one to be tried */
		names[i] = c->name;
		exprs[i] = weir_expr_column(sq->m, i, &c->type, c->name);
		changed += number != NULL;
		for (json_int_t n = json_integer_value(number); json_object_get(taken, names[i]); n++) {
			names[i] = weir_mem_printf(sq->m, "%s%u", c->name, (unsigned)n);
			(void)json_integer_set(number, n + 1);
		}
		(void)json_object_set_new_nocheck(taken, names[i], json_integer(0));
	}
	json_decref(taken);
	return changed == 0 ? WEIR_OK : sql_project(sq, rel, names, exprs, count, at, rel);
}

enum weir_err sql_group_all(struct weir_sql *sq, struct sql_rel *rel, uint32_t at, bool changes, struct sql_rel *out)
{
	struct sql_query group = {.at = at, .from = {.at = at}, .has_group = true};
	enum weir_err err = sql_number_names(sq, rel, at);
	if (err != WEIR_OK)
		return err;
	rel->qualifier = NULL;
	rel->qualifiers = NULL;
	rel->using = NULL;
	group.item_count = group.group_count = rel->column_count;
	group.items = weir_mem_take(sq->m, (rel->column_count + 1) * sizeof *group.items);
	group.group_by = weir_mem_take(sq->m, (rel->column_count + 1) * sizeof *group.group_by);
	for (uint32_t i = 0; i < rel->column_count; i++) {
		struct weir_ast *a = weir_mem_take(sq->m, sizeof *a);
		a->kind = WEIR_AST_COLUMN;
		a->at = a->end = at;
		a->text = rel->node->columns[i].name;
		a->text_bytes = (uint32_t)strlen(a->text);
		group.items[i].ast = group.group_by[i] = a;
	}
	return sql_compile_group(sq, &group, rel, changes, out);
}

enum weir_err sql_compile_distinct(struct weir_sql *sq, const struct sql_query *q, bool changes, struct sql_rel *out)
{
	struct sql_query all = *q;
	struct sql_rel in;
	all.distinct = false;
	all.is_set = true;
	enum weir_err err = sql_compile_query(sq, &all, false, &in);
	return err == WEIR_OK ? sql_group_all(sq, &in, q->at, changes, out) : err;
}
