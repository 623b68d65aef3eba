/* shape.c: what a topology says of its topics (shape.h). Main thread. */
#include "tools/weir/shape.h"

#include "hotpath/topology/builder.h"

/* ---- from the topology ---- */

/* Whether the column stands in the key: named by key.fields, else by the primary key. */
static bool is_key(const struct weir_table_def *def, uint32_t column)
{
	const char *name = def->columns[column].name;
	size_t bytes = strlen(name);
	for (const char *at = def->options.key_fields; at != NULL;) {
		const char *end = strchr(at, ';');
		if ((end != NULL ? (size_t)(end - at) : strlen(at)) == bytes && memcmp(at, name, bytes) == 0)
			return true;
		at = end != NULL ? end + 1 : NULL;
	}
	for (uint32_t i = 0; def->options.key_fields == NULL && i < def->primary_key_count; i++)
		if (def->primary_key[i] == column)
			return true;
	return false;
}

static bool is_primitive(const struct weir_format_options *f, const struct weir_type *t)
{
	return (f->kind == WEIR_FORMAT_RAW || f->kind == WEIR_FORMAT_KAFKA) && !weir_kind_is_string(t->kind) &&
	       t->kind != WEIR_KIND_BYTES;
}

static void take_table(const struct weir_table_def *def, struct weir_shape *sh)
{
	uint32_t keys = 0, values = 0;
	sh->topics = def->options.topic != NULL ? def->options.topic : def->name; /* as the driver has it */
	sh->key_format = def->options.key_format;
	sh->value_format = def->options.value_format;
	for (uint32_t i = 0; i < def->column_count; i++) {
		const struct weir_table_column *c = &def->columns[i];
		bool key = is_key(def, i);
		if (c->kind != WEIR_COLUMN_PHYSICAL)
			continue;
		if (key && keys++ == 0)
			sh->key_type = c->type;
		if ((!key || !def->options.value_except_key) && values++ == 0)
			sh->value_type = c->type;
	}
	sh->has_key = keys == 1 && def->options.has_key_format && is_primitive(&sh->key_format, &sh->key_type);
	sh->has_value =
		values == 1 && def->options.has_value_format && is_primitive(&sh->value_format, &sh->value_type);
}

/* The size of the time windows that a sink's rows come from, 0 if there are none, or several. */
static int64_t window_ms(const struct weir_node *node)
{
	for (uint32_t depth = 0; depth < 1000 && node->input_count == 1; depth++, node = node->inputs[0]) {
		if (node->kind != WEIR_NODE_AGGREGATE)
			continue;
		bool time = node->window.kind == WEIR_WINDOW_TUMBLE || node->window.kind == WEIR_WINDOW_HOP;
		return time ? node->window.size_ms : 0;
	}
	return 0;
}

void weir_shapes_of(struct weir_topology *tp, struct weir_mem *mem, struct weir_shape **out, uint32_t *count)
{
	uint32_t nodes = weir_topology_node_count(tp);
	*out = weir_mem_take(mem, (nodes + 1) * sizeof **out);
	*count = 0;
	for (uint32_t i = 0; i < nodes; i++) {
		const struct weir_node *node = weir_topology_node(tp, i);
		bool sink = node->kind == WEIR_NODE_SINK;
		if ((!sink && node->kind != WEIR_NODE_SOURCE) || node->table == NULL)
			continue;
		struct weir_shape *sh = &(*out)[(*count)++];
		*sh = (struct weir_shape){.is_sink = sink, .window_ms = sink ? window_ms(node) : 0};
		take_table(node->table, sh);
		sh->topics = weir_mem_strdup(mem, sh->topics);
	}
}

const struct weir_shape *weir_shape_find(const struct weir_shape *shapes, uint32_t count, const char *topic, bool sink)
{
	size_t bytes = strlen(topic);
	for (uint32_t i = 0; i < count; i++)
		for (const char *at = shapes[i].topics; at != NULL && shapes[i].is_sink == sink;) {
			const char *end = strchr(at, ';');
			if ((end != NULL ? (size_t)(end - at) : strlen(at)) == bytes && memcmp(at, topic, bytes) == 0)
				return &shapes[i];
			at = end != NULL ? end + 1 : NULL;
		}
	return NULL;
}

/* ---- bytes ---- */

bool weir_shape_encode(const struct weir_shape *sh, bool key, struct weir_mem *mem, const char *text, size_t bytes,
		       struct weir_slice *out)
{
	if (sh == NULL || !(key ? sh->has_key : sh->has_value))
		return false;
	struct weir_field field = {.name = "value", .type = key ? sh->key_type : sh->value_type};
	struct weir_encoder *en = NULL;
	struct weir_diag *dg = NULL;
	struct weir_buf b = {0};
	struct weir_col col;
	weir_col_init(&col, weir_type_phys(&field.type));
	bool good = weir_text_parse(&field.type, text, bytes, &col, 0) == WEIR_REASON_NONE &&
		    weir_encoder_create(&en, key ? &sh->key_format : &sh->value_format, &field, 1, &dg) == WEIR_OK;
	if (good) {
		en->encode(en, &col, 0, &b);
		*out = (struct weir_slice){weir_mem_copy(mem, b.data, b.bytes), b.bytes};
		en->destroy(en);
	}
	weir_buf_fini(&b);
	weir_col_fini(&col);
	weir_diag_destroy(dg);
	return good;
}
