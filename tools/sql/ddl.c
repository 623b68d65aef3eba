/* ddl.c: CREATE TABLE, CREATE VIEW and DROP: declared columns, watermarks, keys and options to table definitions.
 * @thread init */
#include "tools/sql/sql.h"

#include <stdio.h>

enum { COLUMNS_MAX = 10000 };

/* One CREATE TABLE being read. */
struct create {
	struct weir_sql *sq;
	struct weir_buf columns; /* struct weir_table_column */
	struct weir_buf asts;    /* struct weir_ast *: of computed columns, NULL for others */
	struct weir_buf places;  /* uint32_t: token of each column's name */
	uint32_t count;
	const char *time_column;
	uint32_t time_at;
	struct weir_ast *time_expr;
	struct weir_buf key_names; /* const char * */
	struct weir_buf key_places;
	uint32_t key_count;
	struct weir_buf options; /* struct weir_option */
	struct weir_buf option_places;
	uint32_t option_count;
};

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

static enum weir_err expect_words(struct weir_sql *sq, const char *a, const char *b)
{
	enum weir_err err = expect(sq, a);
	return err == WEIR_OK ? expect(sq, b) : err;
}

static enum weir_err skip_comment(struct weir_sql *sq)
{
	if (!accept(sq, "COMMENT"))
		return WEIR_OK;
	if (weir_token_peek(&sq->ts, 0)->kind != WEIR_TOK_STRING)
		return sql_error(sq, sq->ts.next, NULL, "expected the comment as a string");
	sq->ts.next++;
	return WEIR_OK;
}

static struct weir_table_column *column_at(const struct create *cr, uint32_t i)
{
	return (struct weir_table_column *)cr->columns.data + i;
}

static uint32_t place_of(const struct weir_buf *places, uint32_t i)
{
	return ((const uint32_t *)places->data)[i];
}

/* Number of the column of that name, or -1. */
static int32_t find_column(const struct create *cr, const char *name)
{
	for (uint32_t i = 0; i < cr->count; i++)
		if (strcmp(column_at(cr, i)->name, name) == 0)
			return (int32_t)i;
	return -1;
}

static enum weir_err unknown_column(struct create *cr, const char *name, uint32_t at, const char *where)
{
	char hint[160];
	const char **names = weir_mem_take(cr->sq->m, (cr->count + 1) * sizeof *names);
	for (uint32_t i = 0; i < cr->count; i++)
		names[i] = column_at(cr, i)->name;
	const char *near = weir_nearest_name(name, strlen(name), names, cr->count);
	snprintf(hint, sizeof hint, "did you mean %.100s?", near == NULL ? "" : near);
	return sql_error(cr->sq, at, near == NULL ? NULL : hint, "%s: unknown column %s", where, name);
}

/* ---- columns ---- */

static const struct {
	const char *name;
	enum weir_kind kinds[2];
	const char *type;
} metadata_names[] = {
	{"topic", {WEIR_KIND_VARCHAR, WEIR_KIND_CHAR}, "STRING"},
	{"partition", {WEIR_KIND_INT, WEIR_KIND_BIGINT}, "INT"},
	{"offset", {WEIR_KIND_BIGINT, WEIR_KIND_BIGINT}, "BIGINT"},
	{"timestamp", {WEIR_KIND_TIMESTAMP_LTZ, WEIR_KIND_TIMESTAMP}, "TIMESTAMP_LTZ(3)"},
	{"timestamp-type", {WEIR_KIND_VARCHAR, WEIR_KIND_CHAR}, "STRING"},
	{"headers", {WEIR_KIND_MAP, WEIR_KIND_MAP}, "MAP<STRING, BYTES>"},
	{"leader-epoch", {WEIR_KIND_INT, WEIR_KIND_BIGINT}, "INT"},
};

/* METADATA [FROM 'name'] [VIRTUAL], after METADATA. */
static enum weir_err parse_metadata(struct create *cr, struct weir_table_column *c, uint32_t type_at)
{
	struct weir_sql *sq = cr->sq;
	const char *names[WEIR_COUNT_OF(metadata_names)];
	uint32_t at = sq->ts.next - 1;
	char hint[160];
	c->kind = WEIR_COLUMN_METADATA;
	c->metadata = c->name;
	if (accept(sq, "FROM")) {
		at = sq->ts.next;
		if (weir_token_peek(&sq->ts, 0)->kind != WEIR_TOK_STRING)
			return sql_error(sq, at, "write METADATA FROM 'timestamp'",
					 "expected the name of the metadata as a string");
		c->metadata = weir_token_peek(&sq->ts, 0)->text;
		sq->ts.next++;
	}
	c->is_virtual = accept(sq, "VIRTUAL");
	for (size_t i = 0; i < WEIR_COUNT_OF(metadata_names); i++) {
		names[i] = metadata_names[i].name;
		if (strcmp(c->metadata, names[i]) != 0)
			continue;
		if (c->type.kind == metadata_names[i].kinds[0] || c->type.kind == metadata_names[i].kinds[1])
			return WEIR_OK;
		snprintf(hint, sizeof hint, "metadata %s is %s", names[i], metadata_names[i].type);
		return sql_error(sq, type_at, hint, "column %s has the wrong type for its metadata", c->name);
	}
	const char *near = weir_nearest_name(c->metadata, strlen(c->metadata), names, WEIR_COUNT_OF(names));
	if (near != NULL)
		snprintf(hint, sizeof hint, "did you mean '%s'?", near);
	else
		snprintf(hint, sizeof hint,
			 "it is one of topic, partition, offset, timestamp, timestamp-type, headers, leader-epoch");
	return sql_error(sq, at, hint, "unknown metadata '%s'", c->metadata);
}

static void add_column(struct create *cr, const struct weir_table_column *c, struct weir_ast *ast, uint32_t at)
{
	weir_buf_put(&cr->columns, c, sizeof *c);
	weir_buf_put(&cr->asts, &ast, sizeof(struct weir_ast *));
	weir_buf_put(&cr->places, &at, sizeof at);
	cr->count++;
}

static void add_key(struct create *cr, const char *name, uint32_t at)
{
	weir_buf_put(&cr->key_names, &name, sizeof(const char *));
	weir_buf_put(&cr->key_places, &at, sizeof at);
	cr->key_count++;
}

static enum weir_err expect_not_enforced(struct weir_sql *sq)
{
	if (is(sq, "NOT") && weir_token_is_at(&sq->ts, 1, "ENFORCED")) {
		sq->ts.next += 2;
		return WEIR_OK;
	}
	return sql_error(sq, sq->ts.next, "nothing checks the key: say so", "expected NOT ENFORCED after PRIMARY KEY");
}

static enum weir_err parse_column(struct create *cr)
{
	struct weir_sql *sq = cr->sq;
	struct weir_table_column c = {.kind = WEIR_COLUMN_PHYSICAL};
	struct weir_ast *ast = NULL;
	uint32_t at = sq->ts.next;
	enum weir_err err = weir_token_name(&sq->ts, "a column name", &c.name, sq->dg);
	if (err != WEIR_OK)
		return err;
	if (find_column(cr, c.name) >= 0)
		return sql_error(sq, at, NULL, "column %s is declared twice", c.name);
	if (cr->count >= COLUMNS_MAX)
		return sql_error(sq, at, NULL, "more than %d columns", COLUMNS_MAX);
	if (accept(sq, "AS")) {
		c.kind = WEIR_COLUMN_COMPUTED;
		err = weir_expr_parse(&sq->ts, sq->m, &ast, sq->dg);
	} else {
		uint32_t type_at = sq->ts.next;
		err = weir_type_parse(&sq->ts, sq->m, &c.type, sq->dg);
		if (err == WEIR_OK && accept(sq, "METADATA"))
			err = parse_metadata(cr, &c, type_at);
		if (err == WEIR_OK && is(sq, "PRIMARY")) {
			sq->ts.next++;
			add_key(cr, c.name, at);
			err = expect(sq, "KEY");
			if (err == WEIR_OK)
				err = expect_not_enforced(sq);
		}
	}
	if (err == WEIR_OK)
		err = skip_comment(sq);
	if (err == WEIR_OK)
		add_column(cr, &c, ast, at);
	return err;
}

/* WATERMARK FOR c AS expr */
static enum weir_err parse_watermark(struct create *cr)
{
	struct weir_sql *sq = cr->sq;
	uint32_t at = sq->ts.next;
	sq->ts.next += 2;
	if (cr->time_column != NULL)
		return sql_error(sq, at, NULL, "a table has one WATERMARK");
	cr->time_at = sq->ts.next;
	enum weir_err err = weir_token_name(&sq->ts, "the time column", &cr->time_column, sq->dg);
	if (err == WEIR_OK && is(sq, "."))
		return sql_error(sq, sq->ts.next, "make it a computed column first",
				 "a nested column cannot be the time column");
	if (err == WEIR_OK)
		err = expect(sq, "AS");
	return err == WEIR_OK ? weir_expr_parse(&sq->ts, sq->m, &cr->time_expr, sq->dg) : err;
}

/* [CONSTRAINT name] PRIMARY KEY (a, b) NOT ENFORCED */
static enum weir_err parse_primary_key(struct create *cr)
{
	struct weir_sql *sq = cr->sq;
	const char *name;
	enum weir_err err = WEIR_OK;
	uint32_t at = sq->ts.next;
	if (accept(sq, "CONSTRAINT"))
		err = weir_token_name(&sq->ts, "a constraint name", &name, sq->dg);
	if (err == WEIR_OK && is(sq, "UNIQUE"))
		return sql_error(sq, sq->ts.next, NULL, "not supported: UNIQUE");
	if (err == WEIR_OK && cr->key_count > 0)
		return sql_error(sq, at, NULL, "a table has one PRIMARY KEY");
	if (err == WEIR_OK)
		err = expect_words(sq, "PRIMARY", "KEY");
	if (err == WEIR_OK)
		err = expect(sq, "(");
	do {
		uint32_t name_at = sq->ts.next;
		if (err == WEIR_OK)
			err = weir_token_name(&sq->ts, "a column name", &name, sq->dg);
		if (err == WEIR_OK)
			add_key(cr, name, name_at);
	} while (err == WEIR_OK && accept(sq, ","));
	if (err == WEIR_OK)
		err = expect(sq, ")");
	return err == WEIR_OK ? expect_not_enforced(sq) : err;
}

static enum weir_err parse_elements(struct create *cr)
{
	struct weir_sql *sq = cr->sq;
	enum weir_err err = expect(sq, "(");
	do {
		if (err != WEIR_OK)
			break;
		if (is(sq, "WATERMARK") && weir_token_is_at(&sq->ts, 1, "FOR"))
			err = parse_watermark(cr);
		else if (is(sq, "CONSTRAINT") || (is(sq, "PRIMARY") && weir_token_is_at(&sq->ts, 1, "KEY")) ||
			 (is(sq, "UNIQUE") && weir_token_is_at(&sq->ts, 1, "(")))
			err = parse_primary_key(cr);
		else if (weir_token_is_at(&sq->ts, 1, "FOR") ||
			 (is(sq, "WATERMARK") && weir_token_is_at(&sq->ts, 2, "AS")))
			err = sql_error(sq, sq->ts.next, "write WATERMARK FOR c AS c - INTERVAL '5' SECOND",
					"expected a column or WATERMARK FOR");
		else
			err = parse_column(cr);
	} while (err == WEIR_OK && accept(sq, ","));
	return err == WEIR_OK ? expect(sq, ")") : err;
}

/* ---- WITH ---- */

static enum weir_err parse_options(struct create *cr)
{
	struct weir_sql *sq = cr->sq;
	enum weir_err err = expect(sq, "(");
	do {
		uint32_t at = sq->ts.next;
		const struct weir_token *name = weir_token_peek(&sq->ts, 0), *value = weir_token_peek(&sq->ts, 2);
		if (err != WEIR_OK)
			break;
		if (name->kind != WEIR_TOK_STRING)
			return sql_error(sq, at, "write 'connector' = 'kafka'",
					 "expected the name of an option as a string");
		if (!weir_token_is_at(&sq->ts, 1, "="))
			return sql_error(sq, at + 1, NULL, "expected = after the option's name");
		if (value->kind != WEIR_TOK_STRING)
			return sql_error(sq, at + 2, "write 'topic' = 'orders'",
					 "expected the value of an option as a string");
		struct weir_option o = {name->text, value->text};
		if (strlen(o.name) != name->text_bytes || strlen(o.value) != value->text_bytes)
			return sql_error(sq, at, NULL, "an option cannot hold a NUL byte");
		weir_buf_put(&cr->options, &o, sizeof o);
		weir_buf_put(&cr->option_places, &at, sizeof at);
		cr->option_count++;
		sq->ts.next += 3;
	} while (accept(sq, ","));
	return err == WEIR_OK ? expect(sq, ")") : err;
}

/* Place of option name, or of the statement. */
static uint32_t option_at(const struct create *cr, const char *name, uint32_t otherwise)
{
	const struct weir_option *o = (const struct weir_option *)cr->options.data;
	for (uint32_t i = 0; i < cr->option_count; i++)
		if (strcmp(o[i].name, name) == 0)
			return place_of(&cr->option_places, i);
	return otherwise;
}

/* ---- names and types, once everything is read ---- */

/* Computed columns see every physical and metadata column, and computed ones before them. */
static enum weir_err bind_computed(struct create *cr)
{
	struct weir_sql *sq = cr->sq;
	struct weir_scope_column *sc = weir_mem_take(sq->m, (cr->count + 1) * sizeof *sc);
	struct weir_ast *const *asts = (struct weir_ast *const *)cr->asts.data;
	for (uint32_t i = 0; i < cr->count; i++) {
		const struct weir_table_column *c = column_at(cr, i);
		/* A computed one that is not bound yet is nameless. */
		sc[i] = (struct weir_scope_column){c->kind == WEIR_COLUMN_COMPUTED ? "" : c->name, NULL, c->type,
						   false};
	}
	struct weir_scope scope = {
		.columns = sc, .count = cr->count, .aggregate_error = "a computed column cannot hold an aggregate"};
	for (uint32_t i = 0; i < cr->count; i++) {
		struct weir_table_column *c = column_at(cr, i);
		if (c->kind != WEIR_COLUMN_COMPUTED)
			continue;
		enum weir_err err = sql_bind(sq, &scope, asts[i], &c->expr);
		if (err != WEIR_OK)
			return err;
		c->type = c->expr->type;
		sc[i].name = c->name;
		sc[i].type = c->type;
	}
	return WEIR_OK;
}

/* The watermark is the column itself or the column minus an interval. */
static enum weir_err read_watermark(struct create *cr, struct weir_table_def *def)
{
	struct weir_sql *sq = cr->sq;
	const struct weir_ast *a = cr->time_expr, *column = a;
	char type[80];
	def->rowtime = -1;
	if (cr->time_column == NULL)
		return WEIR_OK;
	def->rowtime = find_column(cr, cr->time_column);
	if (def->rowtime < 0)
		return unknown_column(cr, cr->time_column, cr->time_at, "WATERMARK");
	struct weir_type t = column_at(cr, (uint32_t)def->rowtime)->type;
	t.not_null = false;
	if (!weir_kind_is_timestamp(t.kind))
		return sql_error(
			sq, cr->time_at,
			"add a computed column: event_time AS TO_TIMESTAMP_LTZ(ts, 3), and WATERMARK FOR event_time",
			"the time column must be TIMESTAMP(3) or TIMESTAMP_LTZ(3), not %s",
			weir_type_text(&t, type, sizeof type));
	if (t.precision > 3)
		return sql_error(sq, cr->time_at, "declare it with precision 3",
				 "the time column has at most milliseconds, not %s",
				 weir_type_text(&t, type, sizeof type));
	if (a->kind == WEIR_AST_CALL && strcmp(a->text, "-") == 0 && a->arg_count == 2) {
		column = a->args[0];
		if (a->args[1]->kind != WEIR_AST_INTERVAL || a->args[1]->type.kind != WEIR_KIND_INTERVAL_MS)
			return sql_error(sq, a->args[1]->at, "write WATERMARK FOR c AS c - INTERVAL '5' SECOND",
					 "expected an INTERVAL of days or less");
		def->grace_ms = a->args[1]->value;
	}
	if (column->kind != WEIR_AST_COLUMN || column->qualifier != NULL || strcmp(column->text, cr->time_column) != 0)
		return sql_error(sq, a->at, "write WATERMARK FOR c AS c - INTERVAL '5' SECOND",
				 "the watermark must be the time column itself, or it minus an INTERVAL");
	if (def->grace_ms < 0)
		return sql_error(sq, a->args[1]->at, NULL, "a watermark cannot be ahead of its time column");
	return WEIR_OK;
}

static enum weir_err read_primary_key(struct create *cr, struct weir_table_def *def)
{
	uint32_t *key = weir_mem_take(cr->sq->m, (cr->key_count + 1) * sizeof *key);
	const char *const *names = (const char *const *)cr->key_names.data;
	for (uint32_t i = 0; i < cr->key_count; i++) {
		int32_t c = find_column(cr, names[i]);
		uint32_t at = place_of(&cr->key_places, i);
		if (c < 0)
			return unknown_column(cr, names[i], at, "PRIMARY KEY");
		if (column_at(cr, (uint32_t)c)->kind != WEIR_COLUMN_PHYSICAL)
			return sql_error(cr->sq, at, NULL, "PRIMARY KEY: %s is not a physical column", names[i]);
		for (uint32_t k = 0; k < i; k++)
			if (key[k] == (uint32_t)c)
				return sql_error(cr->sq, at, NULL, "PRIMARY KEY: %s stands twice", names[i]);
		key[i] = (uint32_t)c;
		column_at(cr, (uint32_t)c)->type.not_null = true;
	}
	def->primary_key = key;
	def->primary_key_count = cr->key_count;
	return WEIR_OK;
}

/* Names in options must be columns: key.fields, datagen's fields.<column>. */
static enum weir_err check_option_names(struct create *cr, const struct weir_table_def *def, uint32_t at)
{
	struct weir_sql *sq = cr->sq;
	const struct weir_table_options *o = &def->options;
	for (const char *p = o->key_fields; p != NULL && *p != 0;) {
		const char *end = strchr(p, ';');
		const char *name = weir_mem_strndup(sq->m, p, end == NULL ? strlen(p) : (size_t)(end - p));
		if (find_column(cr, name) < 0)
			return unknown_column(cr, name, option_at(cr, "key.fields", at), "key.fields");
		if (column_at(cr, (uint32_t)find_column(cr, name))->kind != WEIR_COLUMN_PHYSICAL)
			return sql_error(sq, option_at(cr, "key.fields", at), "name physical columns",
					 "key.fields: column %s does not stand in the record", name);
		p = end == NULL ? NULL : end + 1;
	}
	const struct weir_option *all = (const struct weir_option *)cr->options.data;
	for (uint32_t i = 0; i < cr->option_count; i++) {
		if (o->connector != WEIR_CONNECTOR_DATAGEN || strncmp(all[i].name, "fields.", 7) != 0)
			continue;
		const char *dot = strrchr(all[i].name, '.');
		const char *name = weir_mem_strndup(sq->m, all[i].name + 7,
						    dot > all[i].name + 7 ? (size_t)(dot - all[i].name - 7) : 0);
		if (find_column(cr, name) < 0)
			return unknown_column(cr, name, place_of(&cr->option_places, i), "datagen");
	}
	if (o->has_key_format && o->key_fields == NULL && def->primary_key_count == 0 &&
	    o->connector != WEIR_CONNECTOR_UPSERT_KAFKA)
		return sql_error(sq, option_at(cr, "key.format", at),
				 "add 'key.fields', or PRIMARY KEY (...) NOT ENFORCED",
				 "option 'key.format' needs 'key.fields' or a PRIMARY KEY");
	if (o->connector == WEIR_CONNECTOR_UPSERT_KAFKA && def->primary_key_count == 0)
		return sql_error(sq, at, "add PRIMARY KEY (...) NOT ENFORCED",
				 "connector 'upsert-kafka' needs a PRIMARY KEY");
	if (o->connector == WEIR_CONNECTOR_KAFKA && def->primary_key_count > 0 &&
	    !weir_format_is_changelog(o->value_format.kind))
		return sql_error(sq, place_of(&cr->key_places, 0), "use connector 'upsert-kafka', or 'key.fields'",
				 "connector 'kafka' takes no PRIMARY KEY");
	return WEIR_OK;
}

/* A table without 'connector': perhaps it is misspelt. */
static enum weir_err no_connector(struct create *cr, const struct weir_table_def *def, uint32_t at)
{
	static const char *const word[] = {"connector"};
	const struct weir_option *o = (const struct weir_option *)cr->options.data;
	for (uint32_t i = 0; i < cr->option_count; i++)
		if (weir_nearest_name(o[i].name, strlen(o[i].name), word, 1) != NULL)
			return sql_error(cr->sq, place_of(&cr->option_places, i), "did you mean 'connector'?",
					 "unknown option '%s'", o[i].name);
	return sql_error(cr->sq, at,
			 "add 'connector' = 'recorded', 'kafka', 'datagen', 'print', 'blackhole' or 'filesystem'",
			 "table %s has no connector", def->name);
}

static uint32_t count_names(const char *list)
{
	uint32_t n = list != NULL && *list != 0;
	for (; list != NULL && *list != 0; list++)
		n += *list == ';' && list[1] != 0;
	return n;
}

/* RAW is one column's bytes. */
static enum weir_err check_raw(struct create *cr, const struct weir_table_def *def, uint32_t at)
{
	const struct weir_table_options *o = &def->options;
	uint32_t keys = o->key_fields != NULL ? count_names(o->key_fields) : def->primary_key_count, values = 0;
	for (uint32_t i = 0; i < cr->count; i++)
		values += column_at(cr, i)->kind == WEIR_COLUMN_PHYSICAL;
	if (o->value_except_key)
		values -= keys < values ? keys : values;
	enum weir_format_kind value = o->value_format.kind, key = o->key_format.kind;
	if (o->has_value_format && (value == WEIR_FORMAT_RAW || value == WEIR_FORMAT_KAFKA) && values != 1)
		return sql_error(cr->sq, option_at(cr, "value.format", option_at(cr, "format", at)),
				 "use json or csv, or declare one column", "format '%s' takes exactly 1 column, not %u",
				 value == WEIR_FORMAT_RAW ? "raw" : "kafka", values);
	if (o->has_key_format && (key == WEIR_FORMAT_RAW || key == WEIR_FORMAT_KAFKA) && keys > 1)
		return sql_error(cr->sq, option_at(cr, "key.format", at), "use 'key.format' = 'json'",
				 "key format '%s' takes exactly 1 column, not %u",
				 key == WEIR_FORMAT_RAW ? "raw" : "kafka", keys);
	return WEIR_OK;
}

static enum weir_err finish_table(struct create *cr, struct weir_table_def *def, uint32_t at)
{
	struct weir_sql *sq = cr->sq;
	struct weir_diag *inner = NULL;
	uint32_t bad = UINT32_MAX;
	if (cr->count == 0)
		return sql_error(sq, at, NULL, "a table needs columns");
	enum weir_err err = bind_computed(cr);
	if (err == WEIR_OK)
		err = read_watermark(cr, def);
	if (err == WEIR_OK)
		err = read_primary_key(cr, def);
	if (err != WEIR_OK)
		return err;
	if (option_at(cr, "connector", UINT32_MAX) == UINT32_MAX)
		return no_connector(cr, def, at);
	err = weir_table_options_parse(&def->options, (const struct weir_option *)cr->options.data, cr->option_count,
				       sq->m, &bad, &inner);
	if (err != WEIR_OK)
		return sql_error_from(sq, bad < cr->option_count ? place_of(&cr->option_places, bad) : at, inner);
	for (uint32_t i = 0; i < cr->option_count; i++) {
		const struct weir_option *o = (const struct weir_option *)cr->options.data + i;
		const char *why = weir_table_option_idle(o);
		if (why != NULL)
			sql_warn(sq, place_of(&cr->option_places, i), "option '%s' has no effect: %s", o->name, why);
	}
	def->columns = weir_mem_copy(sq->m, cr->columns.data, cr->columns.bytes);
	def->column_count = cr->count;
	err = check_raw(cr, def, at);
	return err == WEIR_OK ? check_option_names(cr, def, at) : err;
}

static void create_fini(struct create *cr)
{
	weir_buf_fini(&cr->columns);
	weir_buf_fini(&cr->asts);
	weir_buf_fini(&cr->places);
	weir_buf_fini(&cr->key_names);
	weir_buf_fini(&cr->key_places);
	weir_buf_fini(&cr->options);
	weir_buf_fini(&cr->option_places);
}

static void add_table(struct weir_sql *sq, struct sql_table *t)
{
	t->end_token = sq->ts.next;
	weir_buf_put(&sq->tables, &t, sizeof(struct sql_table *));
}

/* Clauses of Flink's CREATE TABLE that are not there. */
static enum weir_err check_later(struct weir_sql *sq)
{
	static const char *const later[] = {"PARTITIONED", "DISTRIBUTED", "LIKE", "AS"};
	for (size_t i = 0; i < WEIR_COUNT_OF(later); i++)
		if (is(sq, later[i]))
			return sql_error(sq, sq->ts.next, NULL, "not supported yet: CREATE TABLE ... %s", later[i]);
	return WEIR_OK;
}

static enum weir_err create_table(struct weir_sql *sq, const char *name, uint32_t at, uint32_t first, bool skip)
{
	struct create cr = {.sq = sq};
	struct weir_table_def *def = weir_mem_take(sq->m, sizeof *def);
	def->name = name;
	enum weir_err err = check_later(sq);
	if (err == WEIR_OK)
		err = parse_elements(&cr);
	if (err == WEIR_OK)
		err = skip_comment(sq);
	if (err == WEIR_OK)
		err = check_later(sq);
	if (err == WEIR_OK && accept(sq, "WITH"))
		err = parse_options(&cr);
	else if (err == WEIR_OK && !is(sq, ";") && weir_token_peek(&sq->ts, 0)->kind != WEIR_TOK_END)
		err = sql_error(sq, sq->ts.next, "write WITH ('connector' = 'recorded', ...)",
				"expected WITH, found '%.*s'", (int)weir_token_peek(&sq->ts, 0)->text_bytes,
				weir_token_peek(&sq->ts, 0)->text);
	if (err == WEIR_OK)
		err = check_later(sq);
	if (err == WEIR_OK)
		err = finish_table(&cr, def, at);
	create_fini(&cr);
	if (err == WEIR_OK && !skip) {
		struct sql_table *t = weir_mem_take(sq->m, sizeof *t);
		t->name = name;
		t->first_token = first;
		t->def = def;
		add_table(sq, t);
	}
	return err;
}

/* ---- views ---- */

static enum weir_err parse_view_columns(struct weir_sql *sq, struct sql_table *t)
{
	struct weir_buf names = {0};
	enum weir_err err = WEIR_OK;
	if (!accept(sq, "("))
		return WEIR_OK;
	do {
		const char *name = NULL;
		err = weir_token_name(&sq->ts, "a column name", &name, sq->dg);
		if (err == WEIR_OK)
			weir_buf_put(&names, &name, sizeof name);
		if (err == WEIR_OK)
			err = skip_comment(sq);
	} while (err == WEIR_OK && accept(sq, ","));
	t->name_count = (uint32_t)(names.bytes / sizeof *t->names);
	t->names = weir_mem_copy(sq->m, names.data, names.bytes);
	weir_buf_fini(&names);
	return err == WEIR_OK ? expect(sq, ")") : err;
}

/* A view is compiled once into a topology that is thrown away, so that its mistakes show where they stand. */
static enum weir_err check_view(struct weir_sql *sq, struct sql_table *t, uint32_t at)
{
	struct weir_topology *tp = sq->tp;
	size_t states = sq->states.bytes, warnings = sq->warnings.bytes;
	struct sql_rel rel = {0};
	uint32_t count = (uint32_t)(sq->tables.bytes / sizeof(struct sql_table *));
	bool *was = weir_mem_take(sq->m, 2 * count + 1);
	struct sql_table **tables = (struct sql_table **)sq->tables.data;
	for (uint32_t i = 0; i < 2 * count; i++) {
		was[i] = tables[i / 2]->compiled[i % 2];
		tables[i / 2]->compiled[i % 2] = false; /* its nodes are in the real topology */
	}
	sq->tp = weir_topology_create();
	sq->sink_name = t->name;
	enum weir_err err = sq->tp == NULL ? weir_diag_set(sq->dg, WEIR_E_NOMEM, "no memory for the topology")
					   : sql_compile_alone(sq, t->query, &rel);
	if (err == WEIR_OK && t->name_count > 0 && t->name_count != rel.column_count)
		err = sql_error(sq, at, NULL, "view %s names %u columns, its query has %u", t->name, t->name_count,
				rel.column_count);
	weir_topology_destroy(sq->tp);
	sq->tp = tp;
	sq->states.bytes = states;
	/* Warnings come again, with a place, when the view is used; if it never is, they do not matter. */
	while (sq->warnings.bytes > warnings) {
		sq->warnings.bytes -= sizeof(char *);
		char *text;
		memcpy(&text, sq->warnings.data + sq->warnings.bytes, sizeof text);
		weir_free(text);
	}
	for (uint32_t i = 0; i < 2 * count; i++)
		tables[i / 2]->compiled[i % 2] = was[i];
	return err;
}

static enum weir_err create_view(struct weir_sql *sq, const char *name, uint32_t at, uint32_t first, bool skip)
{
	struct sql_table *t = weir_mem_take(sq->m, sizeof *t);
	t->name = name;
	t->first_token = first;
	enum weir_err err = parse_view_columns(sq, t);
	if (err == WEIR_OK)
		err = skip_comment(sq);
	if (err == WEIR_OK)
		err = expect(sq, "AS");
	if (err == WEIR_OK)
		err = sql_parse_query(sq, false, &t->query);
	if (err == WEIR_OK)
		err = check_view(sq, t, at);
	if (err == WEIR_OK && !skip)
		add_table(sq, t);
	return err;
}

/* ---- CREATE, DROP ---- */

enum weir_err sql_accept_if(struct weir_sql *sq, bool not_exists, bool *out)
{
	*out = false;
	if (!is(sq, "IF"))
		return WEIR_OK;
	sq->ts.next++;
	if (not_exists) {
		enum weir_err err = expect(sq, "NOT");
		if (err != WEIR_OK)
			return err;
	}
	*out = true;
	return expect(sq, "EXISTS");
}

enum weir_err sql_create(struct weir_sql *sq)
{
	uint32_t first = sq->ts.next++;
	bool if_not_exists = false;
	const char *name = NULL;
	if (accept(sq, "OR"))
		return sql_error(sq, sq->ts.next - 1, NULL, "not supported yet: CREATE OR REPLACE");
	if (is(sq, "TEMPORARY") && weir_token_is_at(&sq->ts, 1, "SYSTEM"))
		return sql_error(sq, sq->ts.next, NULL, "not supported yet: CREATE FUNCTION");
	accept(sq, "TEMPORARY");
	bool view = is(sq, "VIEW");
	if (is(sq, "CATALOG") || is(sq, "DATABASE")) {
		sql_warn(sq, first, "CREATE %s is ignored: weir has no catalogs", weir_token_peek(&sq->ts, 0)->text);
		while (!is(sq, ";") && weir_token_peek(&sq->ts, 0)->kind != WEIR_TOK_END)
			sq->ts.next++;
		return WEIR_OK;
	}
	if (is(sq, "FUNCTION"))
		return sql_error(sq, sq->ts.next, NULL, "not supported yet: CREATE FUNCTION");
	if (is(sq, "STREAM"))
		return sql_error(sq, sq->ts.next, "write CREATE TABLE ... WITH ('connector' = 'kafka', ...)",
				 "not supported yet: ksqlDB's CREATE STREAM");
	if (!view && !is(sq, "TABLE"))
		return sql_error(sq, sq->ts.next, NULL, "expected TABLE or VIEW after CREATE");
	sq->ts.next++;
	enum weir_err err = sql_accept_if(sq, true, &if_not_exists);
	uint32_t at = sq->ts.next;
	if (err == WEIR_OK)
		err = sql_table_name(sq, view ? "a view name" : "a table name", &name);
	if (err != WEIR_OK)
		return err;
	bool exists = sql_find_table(sq, name) != NULL;
	if (exists && !if_not_exists)
		return sql_error(sq, at, NULL, "%s exists already", name);
	return view ? create_view(sq, name, at, first, exists) : create_table(sq, name, at, first, exists);
}

enum weir_err sql_drop(struct weir_sql *sq)
{
	bool if_exists = false;
	const char *name = NULL;
	uint32_t first = sq->ts.next++;
	accept(sq, "TEMPORARY");
	if (is(sq, "CATALOG") || is(sq, "DATABASE") || is(sq, "FUNCTION")) {
		sql_warn(sq, first, "DROP %s is ignored", weir_token_peek(&sq->ts, 0)->text);
		while (!is(sq, ";") && weir_token_peek(&sq->ts, 0)->kind != WEIR_TOK_END)
			sq->ts.next++;
		return WEIR_OK;
	}
	bool view = is(sq, "VIEW");
	if (!view && !is(sq, "TABLE"))
		return sql_error(sq, sq->ts.next, NULL, "expected TABLE or VIEW after DROP");
	sq->ts.next++;
	enum weir_err err = sql_accept_if(sq, false, &if_exists);
	uint32_t at = sq->ts.next;
	if (err == WEIR_OK)
		err = sql_table_name(sq, view ? "a view name" : "a table name", &name);
	if (err != WEIR_OK)
		return err;
	struct sql_table *t = sql_find_table(sq, name);
	if (t == NULL)
		return if_exists ? WEIR_OK : sql_get_table(sq, name, at, &t);
	if ((t->def == NULL) != view)
		return sql_error(sq, at, NULL, "%s is a %s", name, view ? "table" : "view");
	t->dropped = true;
	return WEIR_OK;
}
