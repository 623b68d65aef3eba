/* describe.c: a topology as Kafka Streams' text (which its viewers parse), as DOT and as JSON. A sub-topology is a
 * connected part of the graph; nodes stand in the order of their making, which is topological. Cold path, @thread any.
 */
#include "hotpath/topology/describe.h"

#include <stdlib.h>

#include "hotpath/weir.h"

void weir_json_put(struct weir_buf *out, const char *s)
{
	weir_buf_put_byte(out, '"');
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\') {
			weir_buf_put_byte(out, '\\');
			weir_buf_put_byte(out, c);
		} else if (c < 0x20 || c == 0x7f) {
			weir_buf_printf(out, "\\u%04x", c);
		} else {
			weir_buf_put_byte(out, c);
		}
	}
	weir_buf_put_byte(out, '"');
}

void weir_dot_put(struct weir_buf *out, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			weir_buf_put_byte(out, '\\');
		if (*s == '\n')
			weir_buf_puts(out, "\\n");
		else
			weir_buf_put_byte(out, (uint8_t)*s);
	}
}

void weir_duration_put(struct weir_buf *out, int64_t ms)
{
	static const struct {
		int64_t unit;
		const char *name;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}};
	size_t from = out->bytes;
	if (ms < 0) {
		weir_buf_puts(out, "-");
		ms = ms == INT64_MIN ? INT64_MAX : -ms;
		from++;
	}
	for (size_t i = 0; i < WEIR_COUNT_OF(units); i++) {
		if (ms >= units[i].unit)
			weir_buf_printf(out, "%lld%s", (long long)(ms / units[i].unit), units[i].name);
		ms %= units[i].unit;
	}
	if (ms == 0 && out->bytes != from)
		return;
	if (ms % 1000 == 0)
		weir_buf_printf(out, "%llds", (long long)(ms / 1000));
	else if (ms < 1000)
		weir_buf_printf(out, "%lldms", (long long)ms);
	else {
		weir_buf_printf(out, "%lld.%03lld", (long long)(ms / 1000), (long long)(ms % 1000));
		while (out->data[out->bytes - 1] == '0')
			out->bytes--;
		weir_buf_puts(out, "s");
	}
}

void weir_window_put(struct weir_buf *out, const struct weir_window_spec *w)
{
	switch (w->kind) {
	case WEIR_WINDOW_NONE:
		weir_buf_puts(out, "no window");
		return;
	case WEIR_WINDOW_TUMBLE:
		weir_buf_puts(out, "tumbling window of ");
		weir_duration_put(out, w->size_ms);
		break;
	case WEIR_WINDOW_HOP:
		weir_buf_puts(out, "hopping window of ");
		weir_duration_put(out, w->size_ms);
		weir_buf_puts(out, " by ");
		weir_duration_put(out, w->advance_ms);
		break;
	case WEIR_WINDOW_CUMULATE:
		weir_buf_puts(out, "cumulating windows of up to ");
		weir_duration_put(out, w->size_ms);
		weir_buf_puts(out, " by ");
		weir_duration_put(out, w->advance_ms);
		break;
	case WEIR_WINDOW_SLIDING:
		weir_buf_puts(out, "sliding windows of ");
		weir_duration_put(out, w->size_ms);
		break;
	case WEIR_WINDOW_SESSION:
		weir_buf_puts(out, w->shared && w->shared_keys == 0 ? "sessions of all keys" : "sessions");
		if (w->shared && w->shared_keys != 0)
			weir_buf_printf(out, " of the first %u group columns", w->shared_keys);
		weir_buf_puts(out, " with a gap of ");
		weir_duration_put(out, w->gap_ms);
		break;
	}
	if (w->offset_ms != 0) {
		weir_buf_puts(out, " offset ");
		weir_duration_put(out, w->offset_ms);
	}
}

void weir_join_put(struct weir_buf *out, const struct weir_node *n)
{
	static const char *const kinds[] = {"inner", "left", "right", "full"};
	const struct weir_join_spec *sp = n->join;
	const char **names[2];
	weir_buf_puts(out, kinds[sp->kind]);
	for (int s = 0; s < 2; s++) {
		names[s] = weir_xcalloc(n->inputs[s]->column_count + 1, sizeof **names);
		for (uint32_t c = 0; c < n->inputs[s]->column_count; c++)
			names[s][c] = n->inputs[s]->columns[c].name;
	}
	for (uint32_t k = 0; k < sp->key_count; k++) {
		weir_buf_puts(out, k == 0 ? " by " : ", ");
		weir_expr_print(sp->keys[0][k], names[0], out);
		weir_buf_puts(out, " = ");
		weir_expr_print(sp->keys[1][k], names[1], out);
	}
	free(names[0]);
	free(names[1]);
	if (sp->foreign)
		weir_buf_puts(out, ", a foreign key");
	if (sp->window.kind != WEIR_WINDOW_NONE) {
		weir_buf_puts(out, ", ");
		weir_window_put(out, &sp->window);
		return;
	}
	if (!sp->within)
		return;
	weir_buf_puts(out, ", ");
	weir_duration_put(out, sp->before_ms);
	weir_buf_puts(out, " before to ");
	weir_duration_put(out, sp->after_ms);
	weir_buf_puts(out, " after");
}

const char *weir_node_kind_name(enum weir_node_kind kind)
{
	static const char *const names[] = {
		[WEIR_NODE_SOURCE] = "source", [WEIR_NODE_FILTER] = "filter", [WEIR_NODE_PROJECT] = "project",
		[WEIR_NODE_UNION] = "union",   [WEIR_NODE_WINDOW] = "window", [WEIR_NODE_AGGREGATE] = "aggregate",
		[WEIR_NODE_JOIN] = "join",     [WEIR_NODE_OVER] = "over",     [WEIR_NODE_LATEST] = "latest",
		[WEIR_NODE_SINK] = "sink"};
	return names[kind];
}

const char *weir_table_topic(const struct weir_table_def *def)
{
	const struct weir_table_options *o = &def->options;
	if (o->topic != NULL)
		return o->topic;
	if (o->topic_pattern != NULL)
		return o->topic_pattern;
	if (o->path != NULL)
		return o->path;
	return o->connector == WEIR_CONNECTOR_PRINT || o->connector == WEIR_CONNECTOR_BLACKHOLE
		       ? weir_connector_name(o->connector)
		       : def->name;
}

static const char *sink_topic(const struct weir_node *n)
{
	return n->table != NULL ? weir_table_topic(n->table) : "stdout";
}

/* ---- Kafka Streams' text ---- */

/* The text that is being written. */
struct text {
	const struct weir_topology *tp;
	const struct weir_plan *pl;
	const struct weir_cut *cuts;
	uint32_t cut_count;
	struct weir_buf *out;
};

static const struct weir_cut *cut_at(const struct text *tx, const struct weir_node *n, uint32_t input)
{
	for (uint32_t i = 0; i < tx->cut_count; i++)
		if (tx->cuts[i].node == n->id && tx->cuts[i].input == input)
			return &tx->cuts[i];
	return NULL;
}

/* Names separated by ", ": the nodes that n feeds, or "none". */
static void put_successors(const struct text *tx, const struct weir_node *n)
{
	size_t from = tx->out->bytes;
	for (uint32_t i = n->id + 1; i < weir_topology_node_count(tx->tp); i++) {
		const struct weir_node *to = weir_topology_node(tx->tp, i);
		const char *last = "";
		for (uint32_t k = 0; k < to->input_count; k++) {
			const struct weir_cut *cut = to->inputs[k] == n ? cut_at(tx, to, k) : NULL;
			const char *name = cut != NULL ? cut->name : to->name;
			if (to->inputs[k] != n || strcmp(name, last) == 0)
				continue;
			weir_buf_printf(tx->out, "%s%s%s", tx->out->bytes == from ? "" : ", ", name,
					cut != NULL ? "-sink" : "");
			last = name;
		}
	}
	if (tx->out->bytes == from)
		weir_buf_puts(tx->out, "none");
}

static void put_predecessors(const struct text *tx, const struct weir_node *n)
{
	for (uint32_t k = 0; k < n->input_count; k++) {
		const struct weir_cut *cut = cut_at(tx, n, k);
		weir_buf_printf(tx->out, "%s%s%s", k == 0 ? "" : ", ", cut != NULL ? cut->name : n->inputs[k]->name,
				cut != NULL ? "-source" : "");
	}
}

static void put_topics(const char *topics, struct weir_buf *out)
{
	for (; *topics != '\0'; topics++) {
		if (*topics == ';')
			weir_buf_puts(out, ", ");
		else
			weir_buf_put_byte(out, (uint8_t)*topics);
	}
}

/* The sources of the repartition topics that n reads. */
static void put_cut_sources(const struct text *tx, const struct weir_node *n)
{
	for (uint32_t k = 0; k < n->input_count; k++) {
		const struct weir_cut *cut = cut_at(tx, n, k);
		if (cut != NULL)
			weir_buf_printf(tx->out, "    Source: %s-source (topics: [%s])\n      --> %s\n", cut->name,
					cut->topic, n->name);
	}
}

/* The sinks of the repartition topics that n writes. */
static void put_cut_sinks(const struct text *tx, const struct weir_node *n)
{
	for (uint32_t i = 0; i < tx->cut_count; i++) {
		const struct weir_cut *cut = &tx->cuts[i];
		if (weir_topology_node(tx->tp, cut->node)->inputs[cut->input] == n)
			weir_buf_printf(tx->out, "    Sink: %s-sink (topic: %s)\n      <-- %s\n", cut->name, cut->topic,
					n->name);
	}
}

/* Names of the states that n has, separated by ", ". */
static void put_stores(const struct text *tx, const struct weir_node *n)
{
	const char *before = "";
	if (tx->pl == NULL && n->state_name != NULL)
		weir_buf_puts(tx->out, n->state_name);
	for (uint32_t s = 0; tx->pl != NULL && s < tx->pl->stage_count; s++) {
		if (tx->pl->stages[s].node != n->id)
			continue;
		weir_buf_printf(tx->out, "%s%s", before, tx->pl->stages[s].name);
		before = ", ";
	}
}

/* A table's topic goes to a processor that is the table, with its state where it has one of its own: the others', which
 * reads it, holds its rows otherwise. */
static void put_source(const struct text *tx, const struct weir_node *n)
{
	struct weir_buf *out = tx->out;
	bool pattern = n->table->options.topic_pattern != NULL;
	weir_buf_printf(out, "    Source: %s%s (topics: %s", n->name, n->is_table ? "-source" : "", pattern ? "" : "[");
	put_topics(weir_table_topic(n->table), out);
	weir_buf_printf(out, "%s)\n      --> ", pattern ? "" : "]");
	if (n->is_table) {
		weir_buf_printf(out, "%s\n    Processor: %s (stores: [", n->name, n->name);
		put_stores(tx, n);
		weir_buf_puts(out, "])\n      --> ");
	}
	put_successors(tx, n);
	if (n->is_table)
		weir_buf_printf(out, "\n      <-- %s-source", n->name);
	weir_buf_puts(out, "\n");
}

static void put_node(const struct text *tx, const struct weir_node *n)
{
	struct weir_buf *out = tx->out;
	put_cut_sources(tx, n);
	switch (n->kind) {
	case WEIR_NODE_SOURCE:
		put_source(tx, n);
		break;
	case WEIR_NODE_SINK:
		weir_buf_printf(out, "    Sink: %s (topic: %s)\n      <-- ", n->name, sink_topic(n));
		put_predecessors(tx, n);
		weir_buf_puts(out, "\n");
		break;
	default:
		weir_buf_printf(out, "    Processor: %s (stores: [", n->name);
		put_stores(tx, n);
		weir_buf_puts(out, "])\n      --> ");
		put_successors(tx, n);
		weir_buf_puts(out, "\n      <-- ");
		put_predecessors(tx, n);
		weir_buf_puts(out, "\n");
		break;
	}
	put_cut_sinks(tx, n);
}

static uint32_t root_of(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i) {
		parent[i] = parent[parent[i]];
		i = parent[i];
	}
	return i;
}

void weir_topology_put_text(const struct weir_topology *tp, const struct weir_plan *pl, const struct weir_cut *cuts,
			    uint32_t cut_count, struct weir_buf *out)
{
	struct text tx = {tp, pl, cuts, cut_count, out};
	uint32_t count = weir_topology_node_count(tp), part = 0;
	uint32_t *parent = weir_xcalloc(count + 1, sizeof *parent);
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_node *n = weir_topology_node(tp, i);
		parent[i] = i;
		for (uint32_t k = 0; k < n->input_count;
		     k++) { /* the smaller number is the root: parts in order of creation */
			uint32_t a = root_of(parent, i), b = root_of(parent, n->inputs[k]->id);
			if (cut_at(&tx, n, k) == NULL)
				parent[a > b ? a : b] = a > b ? b : a;
		}
	}
	weir_buf_puts(out, "Topologies:\n ");
	for (uint32_t root = 0; root < count; root++) {
		if (parent[root] != root)
			continue;
		weir_buf_printf(out, "  Sub-topology: %u\n", part++);
		for (uint32_t i = root; i < count; i++) {
			if (root_of(parent, i) == root)
				put_node(&tx, weir_topology_node(tp, i));
		}
		weir_buf_puts(out, "\n");
	}
	free(parent);
}

/* ---- DOT and JSON ---- */

/* The detail of a node on one line: a condition, a list, keys, a topic. */
static void put_detail(const struct weir_node *n, struct weir_buf *out)
{
	const struct weir_node *in = n->input_count != 0 ? n->inputs[0] : NULL;
	const char **names = weir_xcalloc((in != NULL ? in->column_count : 0) + 1, sizeof *names);
	for (uint32_t i = 0; in != NULL && i < in->column_count; i++)
		names[i] = in->columns[i].name;
	switch (n->kind) {
	case WEIR_NODE_SOURCE:
		weir_buf_puts(out, weir_table_topic(n->table));
		break;
	case WEIR_NODE_SINK:
		weir_buf_puts(out, sink_topic(n));
		break;
	case WEIR_NODE_FILTER:
		weir_expr_print(n->condition, names, out);
		break;
	case WEIR_NODE_PROJECT:
		for (uint32_t i = 0; i < n->column_count; i++) {
			size_t from = out->bytes + (i == 0 ? 0 : 2);
			weir_buf_puts(out, i == 0 ? "" : ", ");
			weir_expr_print(n->exprs[i], names, out);
			const char *name = n->columns[i].name;
			if (out->bytes - from != strlen(name) || memcmp(out->data + from, name, strlen(name)) != 0)
				weir_buf_printf(out, " AS %s", name);
		}
		break;
	case WEIR_NODE_WINDOW:
		weir_window_put(out, &n->window);
		break;
	case WEIR_NODE_AGGREGATE:
		for (uint32_t i = 0; i < n->agg_count; i++)
			weir_buf_printf(out, "%s%s", i == 0 ? "" : ", ",
					n->aggs[i].text != NULL ? n->aggs[i].text : n->columns[n->key_count + i].name);
		for (uint32_t i = 0; i < n->key_count; i++)
			weir_buf_printf(out, "%s%s", i == 0 ? " BY " : ", ", n->columns[i].name);
		break;
	case WEIR_NODE_JOIN:
		weir_join_put(out, n);
		break;
	case WEIR_NODE_LATEST:
		weir_buf_puts(out, "the latest row");
		for (uint32_t k = 0; k < n->key_count; k++) {
			weir_buf_puts(out, k == 0 ? " BY " : ", ");
			weir_expr_print(n->keys[k], names, out);
		}
		break;
	case WEIR_NODE_OVER:
		if (n->over->unnest) {
			weir_buf_puts(out, "UNNEST ");
			weir_expr_print(n->over->args[0], names, out);
			break;
		}
		for (uint32_t f = 0; f < n->over->fn_count; f++)
			weir_buf_printf(out, "%s%s", f == 0 ? "" : ", ", n->over->fns[f].agg.text);
		for (uint32_t k = 0; k < n->over->key_count; k++) {
			weir_buf_puts(out, k == 0 ? " BY " : ", ");
			weir_expr_print(n->over->keys[k], names, out);
		}
		break;
	case WEIR_NODE_UNION:
		break;
	}
	free(names);
}

static void put_dot(const struct weir_topology *tp, struct weir_buf *out)
{
	weir_buf_puts(out, "digraph weir {\n  rankdir=LR;\n  node [shape=box];\n");
	for (uint32_t i = 0; i < weir_topology_node_count(tp); i++) {
		const struct weir_node *n = weir_topology_node(tp, i);
		const char *shape = n->kind == WEIR_NODE_AGGREGATE                             ? ", shape=cylinder"
				    : n->kind == WEIR_NODE_SOURCE || n->kind == WEIR_NODE_SINK ? ", shape=cds"
											       : "";
		struct weir_buf detail = {0};
		put_detail(n, &detail);
		weir_buf_put_byte(&detail, 0);
		weir_buf_printf(out, "  n%u [label=\"", i);
		weir_dot_put(out, n->name);
		if (detail.bytes > 1) {
			weir_buf_puts(out, "\\n");
			weir_dot_put(out, (const char *)detail.data);
		}
		weir_buf_printf(out, "\"%s];\n", shape);
		weir_buf_fini(&detail);
		for (uint32_t k = 0; k < n->input_count; k++)
			weir_buf_printf(out, "  n%u -> n%u;\n", n->inputs[k]->id, i);
	}
	weir_buf_puts(out, "}\n");
}

static void put_columns(const struct weir_node *n, struct weir_buf *out)
{
	char type[128];
	weir_buf_puts(out, ",\"columns\":[");
	for (uint32_t i = 0; i < n->column_count; i++) {
		weir_buf_puts(out, i == 0 ? "{\"name\":" : ",{\"name\":");
		weir_json_put(out, n->columns[i].name);
		weir_buf_puts(out, ",\"type\":");
		weir_json_put(out, weir_type_text(&n->columns[i].type, type, sizeof type));
		weir_buf_puts(out, (int32_t)i == n->rowtime ? ",\"rowtime\":true}" : "}");
	}
	weir_buf_puts(out, "]");
}

void weir_topology_put_json(const struct weir_topology *tp, struct weir_buf *out)
{
	weir_buf_puts(out, "\"nodes\":[");
	for (uint32_t i = 0; i < weir_topology_node_count(tp); i++) {
		const struct weir_node *n = weir_topology_node(tp, i);
		struct weir_buf detail = {0};
		put_detail(n, &detail);
		weir_buf_put_byte(&detail, 0);
		weir_buf_printf(out, "%s{\"id\":%u,\"kind\":\"%s\",\"name\":", i == 0 ? "" : ",", i,
				weir_node_kind_name(n->kind));
		weir_json_put(out, n->name);
		weir_buf_puts(out, ",\"inputs\":[");
		for (uint32_t k = 0; k < n->input_count; k++)
			weir_buf_printf(out, "%s%u", k == 0 ? "" : ",", n->inputs[k]->id);
		weir_buf_puts(out, "]");
		if (detail.bytes > 1) {
			weir_buf_puts(out, n->kind == WEIR_NODE_SOURCE || n->kind == WEIR_NODE_SINK ? ",\"topic\":"
												    : ",\"detail\":");
			weir_json_put(out, (const char *)detail.data);
		}
		if (n->table != NULL) {
			weir_buf_puts(out, ",\"connector\":");
			weir_json_put(out, weir_connector_name(n->table->options.connector));
		}
		if (n->state_name != NULL) {
			weir_buf_puts(out, ",\"state\":");
			weir_json_put(out, n->state_name);
			weir_buf_printf(out, ",\"grace_ms\":%lld,\"emit\":\"%s\"", (long long)n->state_grace_ms,
					n->changes ? "changes" : "final");
		}
		if (n->is_table)
			weir_buf_puts(out, ",\"table\":true");
		put_columns(n, out);
		weir_buf_puts(out, "}");
		weir_buf_fini(&detail);
	}
	weir_buf_puts(out, "]");
}

char *weir_topology_describe(const struct weir_topology *tp, enum weir_describe form)
{
	struct weir_buf b = {0};
	struct weir_diag *none = NULL;
	if (tp == NULL)
		(void)weir_diag_set(&none, WEIR_E_PLAN, "there is no topology");
	const struct weir_diag *error = tp != NULL ? weir_topology_error(tp) : none;
	switch (form) {
	case WEIR_DESCRIBE_DOT:
		if (error != NULL) {
			weir_buf_puts(&b, "digraph weir {\n  error [label=\"");
			weir_dot_put(&b, weir_diag_report(error));
			weir_buf_puts(&b, "\"];\n}\n");
		} else {
			put_dot(tp, &b);
		}
		break;
	case WEIR_DESCRIBE_JSON:
		weir_buf_puts(&b, "{");
		if (error != NULL) {
			weir_buf_puts(&b, "\"error\":");
			weir_json_put(&b, weir_diag_report(error));
		} else {
			weir_topology_put_json(tp, &b);
		}
		weir_buf_puts(&b, "}\n");
		break;
	case WEIR_DESCRIBE_TEXT:
	default:
		if (error != NULL)
			weir_buf_printf(&b, "%s\n", weir_diag_report(error));
		else
			weir_topology_put_text(tp, NULL, NULL, 0, &b);
		break;
	}
	weir_diag_destroy(none);
	weir_buf_put_byte(&b, 0);
	return (char *)b.data;
}
