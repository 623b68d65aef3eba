/* insert.c: INSERT INTO and bare SELECT: a query's columns to a sink's, and the rules of keys and emission. @thread
 * init */
#include "tools/sql/sql.h"

#include <stdio.h>

#include "io/conf.h"

/* ---- Kafka tables over recorded topics ---- */

/* With brokers named file:DIR, the recorded topics of DIR stand for Kafka's. Reading ends at the end found at start
 * unless the table says otherwise. */
static void map_to_recorded(struct weir_sql *sq, struct weir_table_options *o, const char *dir)
{
	o->connector = WEIR_CONNECTOR_RECORDED;
	o->path = weir_mem_strdup(sq->m, dir);
	if (o->scan_startup_mode != NULL && strcmp(o->scan_startup_mode, "group-offsets") == 0)
		o->scan_startup_mode = "earliest-offset"; /* the marker is what a group's offsets are on Kafka */
	if (o->scan_bounded_mode != NULL && strcmp(o->scan_bounded_mode, "group-offsets") == 0)
		o->scan_bounded_mode = "latest-offset";
}

enum weir_err sql_use_table(struct weir_sql *sq, struct sql_table *t, bool sink, uint32_t at)
{
	struct weir_table_options *o = &t->def->options;
	struct weir_diag *inner = NULL;
	bool kafka = o->connector == WEIR_CONNECTOR_KAFKA || o->connector == WEIR_CONNECTOR_UPSERT_KAFKA;
	if (kafka) {
		const char *brokers = sq->cf == NULL ? NULL : weir_conf_get(sq->cf, "bootstrap.servers");
		if (brokers == NULL || brokers[0] == 0)
			brokers = o->bootstrap_servers;
		if (brokers == NULL || brokers[0] == 0)
			return sql_error(sq, at,
					 "-b HOST:PORT or 'properties.bootstrap.servers' in WITH names them; "
					 "-b file:DIR reads recorded topics in their place",
					 "table %s is on Kafka: which brokers?", t->name);
		if (strncmp(brokers, "file:", 5) == 0)
			map_to_recorded(sq, o, brokers + 5);
	}
	if (weir_table_options_check_use(o, sink, t->name, &inner) != WEIR_OK)
		return sql_error_from(sq, at, inner);
	if (sink || o->group_id == NULL)
		return WEIR_OK;
	/* The group is the application unless something stronger names it: sql_name_application looks. */
	if (sq->group_id != NULL && strcmp(sq->group_id, o->group_id) != 0 && sq->other_group_id == NULL) {
		sq->other_group_id = o->group_id;
		sq->other_group_at = at;
	}
	if (sq->group_id == NULL)
		sq->group_id = o->group_id;
	return WEIR_OK;
}

enum weir_err sql_name_application(struct weir_sql *sq)
{
	struct weir_diag *inner = NULL;
	if (sq->cf == NULL || sq->group_id == NULL)
		return WEIR_OK;
	/* As weak as a default: a SET, a configuration file and the command line win. */
	if (weir_conf_set_from(sq->cf, "application.id", sq->group_id, WEIR_ORIGIN_DEFAULT, "properties.group.id",
			       &inner) != WEIR_OK)
		return sql_error_from(sq, 0, inner);
	const char *app = weir_conf_get(sq->cf, "application.id");
	if (sq->other_group_id != NULL && app != NULL && strcmp(app, sq->group_id) == 0)
		return sql_error(sq, sq->other_group_at, "name the application: SET 'pipeline.name' = '...'",
				 "two groups: 'properties.group.id' of this table is %s, of another source it is %s",
				 sq->other_group_id, sq->group_id);
	return WEIR_OK;
}

/* ---- keys and emission ---- */

static bool in_list(const char *list, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = list; p != NULL && *p != 0;) {
		const char *end = strchr(p, ';');
		size_t bytes = end == NULL ? strlen(p) : (size_t)(end - p);
		if (bytes == n && memcmp(p, name, n) == 0)
			return true;
		p = end == NULL ? NULL : end + 1;
	}
	return false;
}

static bool is_key(const struct weir_table_def *def, uint32_t column)
{
	if (def->options.key_fields != NULL)
		return in_list(def->options.key_fields, def->columns[column].name);
	for (uint32_t i = 0; i < def->primary_key_count; i++)
		if (def->primary_key[i] == column)
			return true;
	return false;
}

/* One INSERT: what fills each persisted column of the sink. */
struct target {
	const struct weir_table_def *def;
	uint32_t at;       /* token of the sink's name */
	uint32_t *columns; /* of def, persisted ones in order */
	int64_t *from;     /* column of the query, -1: NULL */
	uint32_t count;
};

/* Whether windows of one key may have the same start. */
static bool needs_end(enum weir_window_kind kind)
{
	return kind == WEIR_WINDOW_SESSION || kind == WEIR_WINDOW_CUMULATE;
}

/* 'key.fields' that would do, for the hint. */
static void wanted_key(const struct sql_rel *rel, char *buf, size_t bytes)
{
	size_t at = (size_t)snprintf(buf, bytes, "the key must hold ");
	for (uint32_t i = 0; i < rel->group_count && at < bytes; i++)
		at += (size_t)snprintf(buf + at, bytes - at, "%s%.60s", i > 0 ? ", " : "", rel->group_names[i]);
	if (rel->group_window != WEIR_WINDOW_NONE && at < bytes)
		snprintf(buf + at, bytes - at, "%swindow_start%s", rel->group_count > 0 ? ", " : "",
			 needs_end(rel->group_window) ? ", window_end" : "");
}

/* Whether a column of n is column `want` of the join under it. */
static bool is_join_column(const struct weir_node *n, uint32_t column, uint32_t want)
{
	for (; n->kind != WEIR_NODE_JOIN; n = n->inputs[0]) {
		if (n->kind == WEIR_NODE_PROJECT && n->exprs[column]->op != WEIR_EXPR_COLUMN)
			return false;
		column = n->kind == WEIR_NODE_PROJECT ? n->exprs[column]->column : column;
	}
	return column == want;
}

/* Whether a column of n is COALESCE of the columns l and r of the join under it. */
static bool is_either(const struct weir_node *n, uint32_t column, uint32_t l, uint32_t r)
{
	for (; n->kind != WEIR_NODE_JOIN; n = n->inputs[0]) {
		const struct weir_expr *e = n->kind == WEIR_NODE_PROJECT ? n->exprs[column] : NULL;
		if (e != NULL && e->op == WEIR_EXPR_COALESCE && e->arg_count == 2 &&
		    e->args[0]->op == WEIR_EXPR_COLUMN && e->args[1]->op == WEIR_EXPR_COLUMN) {
			uint32_t a = e->args[0]->column, b = e->args[1]->column;
			return (is_join_column(n->inputs[0], a, l) && is_join_column(n->inputs[0], b, r)) ||
			       (is_join_column(n->inputs[0], a, r) && is_join_column(n->inputs[0], b, l));
		}
		if (e != NULL && e->op != WEIR_EXPR_COLUMN)
			return false;
		column = e != NULL ? e->column : column;
	}
	return false;
}

/* Of a full join of tables either side's key may be missing: the sink's key holds both, or what is there of them. */
static enum weir_err check_full_join(struct weir_sql *sq, const struct target *tg, const struct weir_node *node)
{
	const struct weir_node *jn = node;
	while (jn->kind == WEIR_NODE_FILTER || jn->kind == WEIR_NODE_PROJECT)
		jn = jn->inputs[0];
	if (jn->kind != WEIR_NODE_JOIN || jn->join->kind != WEIR_JOIN_FULL)
		return WEIR_OK;
	for (uint32_t k = 0; k < jn->join->key_count; k++) {
		uint32_t l = jn->join->keys[0][k]->column, r = jn->join->keys[1][k]->column;
		const char *names[2] = {jn->inputs[0]->columns[l].name, jn->inputs[1]->columns[r].name};
		bool either = false, left = false, right = false;
		r += jn->inputs[0]->column_count;
		for (uint32_t i = 0; i < tg->count; i++) {
			if (tg->from[i] < 0 || !is_key(tg->def, tg->columns[i]))
				continue;
			either = either || is_either(node, (uint32_t)tg->from[i], l, r);
			left = left || is_join_column(node, (uint32_t)tg->from[i], l);
			right = right || is_join_column(node, (uint32_t)tg->from[i], r);
		}
		char hint[300];
		snprintf(hint, sizeof hint,
			 "the key must hold COALESCE(l.%.60s, r.%.60s) of the sides l and r, or both columns; or use "
			 "'format' = 'changelog-json'",
			 names[0], names[1]);
		if (!either && !(left && right))
			return sql_error(sq, tg->at, hint,
					 "the key of sink %s does not determine the row: of a full join %s of either "
					 "side may be NULL",
					 tg->def->name, names[0]);
	}
	return WEIR_OK;
}

/* Whether the sink's key holds what names a row of the query. */
static bool holds_key(const struct target *tg, const struct weir_node *n)
{
	for (uint32_t k = 0; k < n->table_key_count; k++) {
		bool held = false;
		for (uint32_t i = 0; i < tg->count; i++)
			held = held || (tg->from[i] >= 0 && is_key(tg->def, tg->columns[i]) &&
					weir_node_same_column(n, (uint32_t)tg->from[i], n->table_key[k]));
		if (!held)
			return false;
	}
	return n->table_key != NULL;
}

/* Rows that change need a key that determines the row. */
static enum weir_err check_changes(struct weir_sql *sq, const struct target *tg, const struct sql_rel *rel)
{
	const struct weir_table_options *o = &tg->def->options;
	char hint[400];
	bool windowed_key = o->has_key_format && o->key_format.kind == WEIR_FORMAT_WINDOWED;
	bool start = windowed_key, end = windowed_key;
	if (!rel->node->is_table || o->connector == WEIR_CONNECTOR_PRINT || o->connector == WEIR_CONNECTOR_BLACKHOLE ||
	    weir_format_is_changelog(o->value_format.kind))
		return WEIR_OK;
	if (rel->node->doubles)
		return sql_error(
			sq, tg->at,
			"give each SELECT of a UNION ALL a constant that tells them apart, and the sink's key "
			"that column; or use 'format' = 'changelog-json' or 'debezium-json'",
			"two rows of the query may have one key (UNION ALL of tables, a full join on more than "
			"equal keys): sink %s would keep one of them",
			tg->def->name);
	wanted_key(rel, hint, sizeof hint);
	if (rel->group_window == WEIR_WINDOW_NONE && tg->def->primary_key_count == 0)
		return sql_error(sq, tg->at,
				 "give the sink a PRIMARY KEY (...) NOT ENFORCED or 'format' = 'changelog-json', or "
				 "GROUP BY a window",
				 "a plain GROUP BY or a table is rows that change: sink %s only appends",
				 tg->def->name);
	if (o->key_fields == NULL && tg->def->primary_key_count == 0)
		return sql_error(sq, tg->at, hint,
				 "EMIT CHANGES needs a key: sink %s has no 'key.fields' or PRIMARY KEY", tg->def->name);
	bool holds = holds_key(tg, rel->node);
	if (rel->hidden_key && !holds)
		return sql_error(sq, tg->at,
				 "SELECT COALESCE(l.k, r.k) of all sides of the full join, for the sink's key",
				 "the key of sink %s does not determine the row: the keys of a full join may be NULL",
				 tg->def->name);
	enum weir_err err = holds ? WEIR_OK : check_full_join(sq, tg, rel->node);
	if (err != WEIR_OK)
		return err;
	for (uint32_t k = 0; k < rel->group_count && !holds; k++) {
		bool held = false;
		for (uint32_t i = 0; i < tg->count; i++)
			held = held || (tg->from[i] >= 0 && rel->group_of != NULL &&
					rel->group_of[tg->from[i]] == (int32_t)k && is_key(tg->def, tg->columns[i]));
		if (!held)
			return sql_error(sq, tg->at, hint,
					 "the key of sink %s does not determine the row: column %s is not in it",
					 tg->def->name, rel->group_names[k]);
	}
	for (uint32_t i = 0; i < tg->count; i++) {
		if (tg->from[i] < 0 || !is_key(tg->def, tg->columns[i]))
			continue;
		enum weir_column_role r = rel->node->columns[tg->from[i]].role;
		start = start || r == WEIR_ROLE_WINDOW_START;
		end = end || r == WEIR_ROLE_WINDOW_END || r == WEIR_ROLE_WINDOW_TIME;
	}
	if (rel->group_window == WEIR_WINDOW_CUMULATE && windowed_key)
		return sql_error(sq, tg->at, hint,
				 "the key of sink %s does not determine the row: key.format=windowed holds the start "
				 "alone, and cumulating windows share it",
				 tg->def->name);
	if (needs_end(rel->group_window) && (!start || !end))
		return sql_error(sq, tg->at, hint, "the key of sink %s does not determine the row: it lacks %s",
				 tg->def->name,
				 rel->group_window == WEIR_WINDOW_SESSION ? "the session's window"
									  : "window_start or window_end");
	if (rel->group_window != WEIR_WINDOW_NONE && !start && !end)
		sql_warn(sq, tg->at, "the key of sink %s lacks window_start: windows overwrite each other",
			 tg->def->name);
	return WEIR_OK;
}

static enum weir_err check_emit(struct weir_sql *sq, const struct sql_query *q, const struct sql_rel *rel)
{
	if (q->emit == SQL_EMIT_FINAL && rel->node->is_table)
		return sql_error(sq, q->emit_at, "GROUP BY a window to have final rows",
				 "a plain GROUP BY never has final rows");
	return WEIR_OK;
}

/* ---- columns ---- */

static bool is_persisted(const struct weir_table_column *c)
{
	return c->kind == WEIR_COLUMN_PHYSICAL || (c->kind == WEIR_COLUMN_METADATA && !c->is_virtual);
}

static enum weir_err unknown_target(struct weir_sql *sq, const struct weir_table_def *def, const char *name,
				    uint32_t at)
{
	char hint[160];
	const char **names = weir_mem_take(sq->m, (def->column_count + 1) * sizeof *names);
	for (uint32_t i = 0; i < def->column_count; i++)
		names[i] = def->columns[i].name;
	const char *near = weir_nearest_name(name, strlen(name), names, def->column_count);
	snprintf(hint, sizeof hint, "did you mean %.100s?", near == NULL ? "" : near);
	return sql_error(sq, at, near == NULL ? NULL : hint, "table %s has no column %s", def->name, name);
}

/* (a, b) after the table: from[] of the columns named, the others are NULL. */
static enum weir_err parse_target_columns(struct weir_sql *sq, struct target *tg, uint32_t *given)
{
	uint32_t n = 0;
	enum weir_err err = WEIR_OK;
	for (uint32_t i = 0; i < tg->count; i++)
		tg->from[i] = -1;
	do {
		const char *name = NULL;
		uint32_t at = sq->ts.next, i = 0;
		err = weir_token_name(&sq->ts, "a column name", &name, sq->dg);
		if (err != WEIR_OK)
			return err;
		while (i < tg->count && strcmp(tg->def->columns[tg->columns[i]].name, name) != 0)
			i++;
		if (i == tg->count)
			return unknown_target(sq, tg->def, name, at);
		if (tg->from[i] >= 0)
			return sql_error(sq, at, NULL, "column %s stands twice", name);
		tg->from[i] = n++;
	} while (weir_token_accept(&sq->ts, ","));
	for (uint32_t i = 0; i < tg->count; i++)
		if (tg->from[i] < 0 && tg->def->columns[tg->columns[i]].type.not_null)
			return sql_error(sq, tg->at, NULL, "column %s is NOT NULL and gets no value",
					 tg->def->columns[tg->columns[i]].name);
	*given = n;
	return weir_token_expect(&sq->ts, ")", sq->dg);
}

/* Where the query's column i is written, for messages. */
static uint32_t item_at(const struct sql_query *q, uint32_t i)
{
	while (q->arm_count > 0)
		q = q->arms[0];
	for (uint32_t k = 0; k < q->item_count; k++)
		if (q->items[k].ast->kind == WEIR_AST_STAR)
			return q->at;
	return i < q->item_count ? q->items[i].ast->at : q->at;
}

static enum weir_err build_sink(struct weir_sql *sq, const struct target *tg, const struct sql_query *q,
				const struct sql_rel *rel)
{
	char a[80], b[80];
	const char **names = weir_mem_take(sq->m, (tg->count + 1) * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (tg->count + 1) * sizeof *exprs);
	for (uint32_t i = 0; i < tg->count; i++) {
		const struct weir_table_column *to = &tg->def->columns[tg->columns[i]];
		struct weir_type null = {.kind = WEIR_KIND_NULL};
		names[i] = to->name;
		if (tg->from[i] < 0) {
			const struct weir_expr *e = NULL;
			struct weir_ast nothing = {.kind = WEIR_AST_NULL, .at = tg->at, .text = ""};
			struct weir_scope scope = {0};
			enum weir_err err = sql_bind(sq, &scope, &nothing, &e);
			if (err != WEIR_OK)
				return err;
			exprs[i] = weir_expr_coerce(e, &to->type, sq->m);
			continue;
		}
		const struct weir_column *c = &rel->node->columns[tg->from[i]];
		const struct weir_expr *e = weir_expr_column(sq->m, (uint32_t)tg->from[i], &c->type, c->name);
		exprs[i] = weir_expr_coerce(e, &to->type, sq->m);
		if (exprs[i] == NULL) {
			struct weir_type want = to->type, have = c->type;
			want.not_null = have.not_null = null.not_null;
			return sql_error(sq, item_at(q, (uint32_t)tg->from[i]), "CAST it",
					 "column %s of %s is %s, the query gives %s", to->name, tg->def->name,
					 weir_type_text(&want, a, sizeof a), weir_type_text(&have, b, sizeof b));
		}
	}
	struct weir_node *node = weir_build_project(sq->tp, rel->node, names, exprs, tg->count);
	enum weir_err err = sql_check_built(sq, tg->at);
	if (err != WEIR_OK)
		return err;
	(void)weir_build_sink(sq->tp, node, tg->def, false);
	return sql_check_built(sq, tg->at);
}

/* ---- statements ---- */

/* Rows of an open HOP or SESSION window belong to several windows at once. */
static enum weir_err check_open_window(struct weir_sql *sq, const struct sql_rel *rel)
{
	if (rel->window == NULL || rel->window->kind == WEIR_WINDOW_TUMBLE)
		return WEIR_OK;
	return sql_error(sq, rel->window_at, "aggregate with GROUP BY window_start, window_end",
			 "not supported yet: rows of HOP or SESSION windows that are not aggregated");
}

static enum weir_err compile_outermost(struct weir_sql *sq, struct sql_query *q, struct sql_rel *rel)
{
	enum weir_err err = sql_compile_query(sq, q, q->emit == SQL_EMIT_CHANGES, rel);
	if (err == WEIR_OK)
		err = check_open_window(sq, rel);
	return err == WEIR_OK ? check_emit(sq, q, rel) : err;
}

enum weir_err sql_insert(struct weir_sql *sq)
{
	struct target tg = {0};
	struct sql_table *t = NULL;
	struct sql_query *q = NULL;
	struct sql_rel rel;
	const char *name = NULL;
	uint32_t given = UINT32_MAX;
	sq->ts.next++;
	if (weir_token_is(&sq->ts, "OVERWRITE"))
		return sql_error(sq, sq->ts.next, "results are appended", "not supported: INSERT OVERWRITE");
	enum weir_err err = weir_token_expect(&sq->ts, "INTO", sq->dg);
	tg.at = sq->ts.next;
	if (err == WEIR_OK)
		err = sql_table_name(sq, "a table name", &name);
	if (err == WEIR_OK)
		err = sql_get_table(sq, name, tg.at, &t);
	if (err == WEIR_OK && t->def == NULL)
		err = sql_error(sq, tg.at, NULL, "%s is a view: it cannot be written to", name);
	if (err == WEIR_OK)
		err = sql_use_table(sq, t, true, tg.at);
	if (err != WEIR_OK)
		return err;
	tg.def = t->def;
	tg.columns = weir_mem_take(sq->m, (t->def->column_count + 1) * sizeof *tg.columns);
	tg.from = weir_mem_take(sq->m, (t->def->column_count + 1) * sizeof *tg.from);
	for (uint32_t i = 0; i < t->def->column_count; i++) {
		const struct weir_table_column *c = &t->def->columns[i];
		if (!is_persisted(c))
			continue;
		if (c->kind == WEIR_COLUMN_METADATA && strcmp(c->metadata, "timestamp") != 0 &&
		    strcmp(c->metadata, "headers") != 0)
			return sql_error(sq, tg.at, "declare it VIRTUAL",
					 "column %s of %s cannot be written: metadata '%s' is read-only", c->name, name,
					 c->metadata);
		tg.columns[tg.count] = i;
		tg.from[tg.count] = tg.count;
		tg.count++;
	}
	if (weir_token_is(&sq->ts, "PARTITION"))
		return sql_error(sq, sq->ts.next, NULL, "not supported: INSERT INTO ... PARTITION");
	if (weir_token_is(&sq->ts, "(") && !weir_token_is_at(&sq->ts, 1, "SELECT") &&
	    !weir_token_is_at(&sq->ts, 1, "(")) {
		sq->ts.next++;
		err = parse_target_columns(sq, &tg, &given);
	}
	if (err == WEIR_OK)
		err = sql_parse_query(sq, true, &q);
	sq->sink_name = name;
	sq->insert_count++;
	if (err == WEIR_OK)
		err = compile_outermost(sq, q, &rel);
	if (err != WEIR_OK)
		return err;
	uint32_t want = given == UINT32_MAX ? tg.count : given;
	if (rel.column_count != want)
		return sql_error(sq, q->at, NULL, "%s takes %u columns, the query gives %u", name, want,
				 rel.column_count);
	err = check_changes(sq, &tg, &rel);
	return err == WEIR_OK ? build_sink(sq, &tg, q, &rel) : err;
}

enum weir_err sql_bare_select(struct weir_sql *sq)
{
	struct sql_query *q = NULL;
	struct sql_rel rel;
	uint32_t at = sq->ts.next;
	if (sq->insert_count > 0 && sq->action != WEIR_SQL_EXPLAIN)
		return sql_error(sq, at, "write its rows into a table WITH ('connector' = 'print')",
				 "a bare SELECT stands alone in a file");
	sq->insert_count++;
	sq->prints_rows = true;
	sq->sink_name = "select";
	enum weir_err err = sql_parse_query(sq, true, &q);
	if (err == WEIR_OK)
		err = compile_outermost(sq, q, &rel);
	if (err == WEIR_OK)
		err = sql_number_names(sq, &rel, at);
	if (err != WEIR_OK)
		return err;
	if (rel.column_count < rel.node->column_count) {
		/* The time column behind the visible ones. */
		const char **names = weir_mem_take(sq->m, (rel.column_count + 1) * sizeof *names);
		const struct weir_expr **exprs = weir_mem_take(sq->m, (rel.column_count + 1) * sizeof *exprs);
		for (uint32_t i = 0; i < rel.column_count; i++) {
			names[i] = rel.node->columns[i].name;
			exprs[i] = weir_expr_column(sq->m, i, &rel.node->columns[i].type, names[i]);
		}
		rel.node = weir_build_project(sq->tp, rel.node, names, exprs, rel.column_count);
	}
	(void)weir_build_sink(sq->tp, rel.node, NULL, true);
	return sql_check_built(sq, at);
}
