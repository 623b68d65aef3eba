/* plan_sink.c: a sink's columns, key and formats, and its branches (plan.h). @thread init. */
#include "hotpath/topology/planner.h"

static int32_t column_named(const struct weir_plan_sink *sk, const char *name)
{
	for (uint32_t c = 0; c < sk->column_count; c++)
		if (strcmp(sk->column_names[c], name) == 0)
			return (int32_t)c;
	return -1;
}

/* Which columns make the key: key.fields, else the primary key. */
static enum weir_err sink_key(struct weir_planner *p, struct weir_plan_sink *sk, const struct weir_node *node)
{
	const struct weir_table_def *def = sk->table;
	uint32_t *keys = weir_mem_take(p->m, (sk->column_count + 1) * sizeof *keys);
	if (def->options.key_fields) {
		for (const char *at = def->options.key_fields; at && *at;) {
			const char *end = strchr(at, ';');
			const char *name = weir_mem_strndup(p->m, at, end ? (size_t)(end - at) : strlen(at));
			int32_t c = column_named(sk, name);
			if (c < 0)
				return weir_diag_set(p->dg, WEIR_E_CONF,
						     "table %s: key.fields names %s, which is not one of its columns",
						     def->name, name);
			if (sk->key_count < sk->column_count)
				keys[sk->key_count++] = (uint32_t)c;
			at = end ? end + 1 : NULL;
		}
	} else {
		for (uint32_t i = 0; i < def->primary_key_count; i++) {
			int32_t c = column_named(sk, def->columns[def->primary_key[i]].name);
			if (c >= 0)
				keys[sk->key_count++] = (uint32_t)c;
		}
	}
	sk->key_columns = keys;
	sk->has_key = sk->key_count > 0;
	if (def->options.has_key_format) {
		sk->key_format = def->options.key_format;
	} else {
		bool one_string = sk->key_count == 1 && weir_kind_is_string(sk->column_types[keys[0]].kind);
		sk->key_format.kind = one_string ? WEIR_FORMAT_RAW : WEIR_FORMAT_JSON;
	}
	if (sk->key_format.kind == WEIR_FORMAT_WINDOWED && sk->has_key) {
		const struct weir_node *up = node->inputs[0];
		sk->key_windowed = true;
		uint32_t inner = 0;
		for (uint32_t c = 0; c < up->column_count && c < sk->column_count; c++) {
			if (up->columns[c].role == WEIR_ROLE_WINDOW_START)
				sk->window_start_column = (int32_t)c;
			if (up->columns[c].role == WEIR_ROLE_WINDOW_END)
				sk->window_end_column = (int32_t)c;
		}
		for (uint32_t k = 0; k < sk->key_count; k++)
			if ((int32_t)keys[k] != sk->window_start_column && (int32_t)keys[k] != sk->window_end_column)
				keys[inner++] = keys[k];
		sk->key_count = inner;
		if (sk->window_start_column < 0 || inner == 0)
			return weir_diag_set(p->dg, WEIR_E_PLAN,
					     "table %s: key.format=windowed needs window_start among its columns and a "
					     "key column beside it",
					     def->name);
		if (inner == 1 && weir_kind_is_string(sk->column_types[keys[0]].kind))
			sk->key_format.kind = WEIR_FORMAT_RAW;
		else
			sk->key_format.kind = inner == 1 ? WEIR_FORMAT_KAFKA : WEIR_FORMAT_JSON;
	}
	return WEIR_OK;
}

static bool topic_of(const struct weir_table_def *def)
{
	return def->options.connector == WEIR_CONNECTOR_RECORDED || def->options.connector == WEIR_CONNECTOR_KAFKA ||
	       def->options.connector == WEIR_CONNECTOR_UPSERT_KAFKA;
}

enum weir_err weir_planner_sink_add(struct weir_planner *p, const struct weir_node *node)
{
	p->sinks = weir_planner_grow(p->m, p->sinks, p->sink_count, &p->sink_capacity, sizeof *p->sinks);
	uint32_t index = p->sink_count++;
	struct weir_plan_sink *sk = &p->sinks[index];
	memset(sk, 0, sizeof *sk);
	const struct weir_node *in = node->inputs[0];
	const struct weir_table_def *def = node->table;
	sk->table = def;
	sk->name = def ? def->name : "rows";
	sk->prints_rows = node->prints_rows;
	sk->repartition = -1;
	sk->window_start_column = sk->window_end_column = sk->timestamp_column = sk->headers_column = -1;
	sk->is_table = in->is_table;
	sk->whole = in->doubles;
	sk->column_count = in->column_count;
	const char **names = weir_mem_take(p->m, (in->column_count + 1) * sizeof *names);
	struct weir_type *types = weir_mem_take(p->m, (in->column_count + 1) * sizeof *types);
	uint32_t *values = weir_mem_take(p->m, (in->column_count + 1) * sizeof *values);
	bool *wants_value = weir_mem_take(p->m, in->column_count + 1);
	for (uint32_t c = 0; c < in->column_count; c++) {
		names[c] = in->columns[c].name;
		types[c] = in->columns[c].type;
	}
	sk->column_names = names;
	sk->column_types = types;
	sk->value_columns = values;
	if (def && !node->prints_rows) {
		uint32_t c = 0;
		for (uint32_t d = 0; d < def->column_count && c < in->column_count; d++) {
			const struct weir_table_column *col = &def->columns[d];
			if (col->kind == WEIR_COLUMN_COMPUTED || (col->kind == WEIR_COLUMN_METADATA && col->is_virtual))
				continue;
			names[c] = col->name;
			wants_value[c] = col->type.not_null;
			if (col->kind == WEIR_COLUMN_METADATA) {
				enum weir_meta meta = weir_planner_meta(col->metadata ? col->metadata : col->name);
				if (meta == WEIR_META_TIMESTAMP)
					sk->timestamp_column = (int32_t)c;
				else if (meta == WEIR_META_HEADERS)
					sk->headers_column = (int32_t)c;
				else
					return weir_diag_set(p->dg, WEIR_E_PLAN,
							     "table %s: column %s: a sink can write the metadata "
							     "timestamp and headers only; declare it VIRTUAL",
							     def->name, col->name);
			}
			c++;
		}
		enum weir_err err = sink_key(p, sk, node);
		if (err != WEIR_OK)
			return err;
		sk->value_format = def->options.value_format;
		sk->changelog = topic_of(def) && weir_format_is_changelog(sk->value_format.kind);
		sk->whole = sk->whole || sk->changelog;
		uint32_t *required = weir_mem_take(p->m, (in->column_count + 1) * sizeof *required);
		sk->required = required;
		for (c = 0; c < in->column_count; c++) {
			bool is_key = false;
			for (uint32_t k = 0; k < sk->key_count; k++)
				is_key |= sk->key_columns[k] == c;
			if (wants_value[c] && !is_key && !in->columns[c].type.not_null)
				required[sk->required_count++] = c;
			if ((int32_t)c != sk->timestamp_column && (int32_t)c != sk->headers_column &&
			    !(is_key && def->options.value_except_key))
				values[sk->value_count++] = c;
		}
		if (in->doubles && topic_of(def) && !sk->changelog)
			return weir_diag_set(p->dg, WEIR_E_PLAN,
					     "table %s: two rows may have one key (a union of tables, a full join on "
					     "more than equal keys): use format changelog-json or debezium-json",
					     def->name);
		if (sk->is_table && topic_of(def) && !sk->has_key && !sk->changelog)
			return weir_diag_set(p->dg, WEIR_E_PLAN,
					     "table %s takes updates (EMIT CHANGES or a plain GROUP BY) but has no "
					     "key: add PRIMARY KEY (...) NOT "
					     "ENFORCED or 'key.fields' with every group column and window_start",
					     def->name);
	} else {
		for (uint32_t c = 0; c < in->column_count; c++)
			values[sk->value_count++] = c;
	}
	const struct weir_expr **exprs = weir_mem_take(p->m, (in->column_count + 1) * sizeof *exprs);
	for (uint32_t c = 0; c < in->column_count; c++)
		exprs[c] = weir_expr_column(p->m, c, &in->columns[c].type, in->columns[c].name);
	return weir_planner_walk(
		p, in,
		(struct weir_plan_load){.exprs = exprs, .count = in->column_count, .to = WEIR_TO_SINK, .target = index},
		0);
}
