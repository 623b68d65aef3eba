/* builder.c: the relation graph of a topology: makes nodes, carries column types, roles, time attribute and grace from
 * node to node, and keeps the first error. Everything lies in the topology's own memory. Cold path, @thread init. */
#include "hotpath/topology/builder.h"

#include <stdio.h>
#include <stdlib.h>

#include "hotpath/weir.h"

enum { NODES_MAX = 10000, COLUMNS_MAX = 10000, WINDOWS_PER_RECORD_MAX = 100000, SOURCE_NAME_MAX = 1024 };
/* Sums of two times and a duration stay far from overflow. */
#define DURATION_MS_MAX (INT64_MAX / 16)

struct deferred {
	struct deferred *next;
	void (*destroy)(void *ctx);
	void *ctx;
};

struct weir_topology {
	struct weir_mem m;
	struct deferred *deferred;
	struct weir_node **nodes;
	uint32_t node_count;
	uint32_t node_room;
	struct weir_diag *error;
	struct last_number { /* of each base that names were made of: the next search starts there */
		const char *base;
		uint32_t number;
	} last[8];
};

struct weir_topology *weir_topology_create(void)
{
	struct weir_topology *tp = calloc(1, sizeof *tp);
	if (tp != NULL)
		weir_mem_init(&tp->m, 0);
	return tp;
}

void weir_topology_destroy(struct weir_topology *tp)
{
	if (tp == NULL)
		return;
	for (struct deferred *d = tp->deferred; d != NULL; d = d->next)
		d->destroy(d->ctx);
	weir_mem_fini(&tp->m);
	weir_diag_destroy(tp->error);
	free(tp->nodes);
	free(tp);
}

void weir_topology_defer(struct weir_topology *tp, void (*destroy)(void *ctx), void *ctx)
{
	if (destroy == NULL)
		return;
	struct deferred *d = weir_mem_take(&tp->m, sizeof *d);
	*d = (struct deferred){tp->deferred, destroy, ctx};
	tp->deferred = d;
}

struct weir_mem *weir_topology_mem(struct weir_topology *tp)
{
	return &tp->m;
}

void weir_topology_fail(struct weir_topology *tp, struct weir_diag *dg)
{
	WEIR_ASSERT(dg != NULL);
	if (tp->error == NULL)
		tp->error = dg;
	else
		weir_diag_destroy(dg);
}

const struct weir_diag *weir_topology_error(const struct weir_topology *tp)
{
	return tp->error;
}

uint32_t weir_topology_node_count(const struct weir_topology *tp)
{
	return tp->node_count;
}

struct weir_node *weir_topology_node(const struct weir_topology *tp, uint32_t id)
{
	WEIR_ASSERT(id < tp->node_count);
	return tp->nodes[id];
}

enum weir_err weir_topology_check(struct weir_topology *tp, struct weir_diag **out)
{
	if (tp == NULL)
		return weir_diag_set(out, WEIR_E_PLAN, "there is no topology");
	if (tp->error != NULL) {
		if (out != NULL && *out == NULL)
			*out = weir_diag_copy(tp->error);
		return weir_diag_code(tp->error);
	}
	for (uint32_t i = 0; i < tp->node_count; i++) {
		if (tp->nodes[i]->kind == WEIR_NODE_SINK)
			return WEIR_OK;
	}
	return weir_diag_set(out, WEIR_E_PLAN, "the topology has no sink: nothing would be written");
}

/* ---- nodes ---- */

#define FAIL(tp, ...)                                                                                                  \
	do {                                                                                                           \
		struct weir_diag *dg_ = NULL;                                                                          \
		(void)weir_diag_set(&dg_, WEIR_E_PLAN, __VA_ARGS__);                                                   \
		weir_topology_fail(tp, dg_);                                                                           \
	} while (0)

/* What calls on a broken topology return: a node that is in no list. */
static struct weir_node *broken(struct weir_topology *tp, struct weir_node *in)
{
	if (in != NULL)
		return in;
	struct weir_node *n = weir_mem_take(&tp->m, sizeof *n);
	n->kind = WEIR_NODE_SOURCE;
	n->name = "broken";
	n->rowtime = -1;
	return n;
}

static bool name_is_taken(const struct weir_topology *tp, const char *name)
{
	for (uint32_t i = 0; i < tp->node_count; i++) {
		if (strcmp(tp->nodes[i]->name, name) == 0)
			return true;
	}
	return false;
}

/* base itself, or base-2, base-3, ... when it is taken (from_one: base-1 first). */
static const char *unique_name(struct weir_topology *tp, const char *base, bool from_one)
{
	if (!from_one && !name_is_taken(tp, base))
		return weir_mem_strdup(&tp->m, base);
	char *name = weir_mem_take(&tp->m, strlen(base) + 16);
	struct last_number *last = &tp->last[0];
	while (last < &tp->last[WEIR_COUNT_OF(tp->last) - 1] && last->base != NULL && strcmp(last->base, base) != 0)
		last++;
	/* Names are never given back, so all below the last number are taken. */
	uint32_t i = from_one ? 1 : 2;
	if (last->base != NULL && strcmp(last->base, base) == 0)
		i = last->number + 1;
	for (;; i++) {
		snprintf(name, strlen(base) + 16, "%s-%u", base, i);
		if (!name_is_taken(tp, name))
			break;
	}
	*last = (struct last_number){weir_mem_strdup(&tp->m, base), i};
	return name;
}

static struct weir_node *add_node(struct weir_topology *tp, enum weir_node_kind kind, const char *name,
				  struct weir_node *const *inputs, uint32_t input_count, uint32_t column_count)
{
	struct weir_node *n = weir_mem_take(&tp->m, sizeof *n);
	n->kind = kind;
	n->id = tp->node_count;
	n->name = name;
	n->rowtime = -1;
	n->input_count = input_count;
	if (input_count != 0)
		n->inputs = weir_mem_copy(&tp->m, inputs, input_count * sizeof *inputs);
	n->column_count = column_count;
	n->columns = weir_mem_take(&tp->m, (column_count + 1) * sizeof *n->columns);
	if (tp->node_count == tp->node_room) {
		tp->node_room = tp->node_room != 0 ? tp->node_room * 2 : 16;
		tp->nodes = weir_xrealloc(tp->nodes, tp->node_room * sizeof(*tp->nodes));
	}
	tp->nodes[tp->node_count++] = n;
	return n;
}

/* The columns of a node that is being made. */
static struct weir_column *columns_of(struct weir_node *n)
{
	return (struct weir_column *)(uintptr_t)n->columns;
}

static bool has_room(struct weir_topology *tp, uint64_t column_count)
{
	if (tp->error != NULL)
		return false;
	if (tp->node_count >= NODES_MAX) {
		FAIL(tp, "the topology has more than %d nodes", NODES_MAX);
		return false;
	}
	if (column_count > COLUMNS_MAX) {
		FAIL(tp, "more than %d columns", COLUMNS_MAX);
		return false;
	}
	return true;
}

static struct weir_type timestamp_type(enum weir_kind kind)
{
	return (struct weir_type){.kind = kind, .precision = 3, .not_null = true};
}

static const char *type_text(const struct weir_type *t, char (*buf)[80])
{
	return weir_type_text(t, *buf, sizeof *buf);
}

static void pass_on(struct weir_node *n, const struct weir_node *in)
{
	n->grace_ms = in->grace_ms;
	n->is_table = in->is_table;
	n->doubles = in->doubles;
}

/* ---- sources, filters, projections, unions ---- */

bool weir_table_is_keyed(const struct weir_table_def *def)
{
	enum weir_connector c = def->options.connector;
	return def->primary_key_count > 0 && (c == WEIR_CONNECTOR_NONE || c == WEIR_CONNECTOR_RECORDED ||
					      c == WEIR_CONNECTOR_KAFKA || c == WEIR_CONNECTOR_UPSERT_KAFKA);
}

static void pass_on_key(struct weir_node *n, const struct weir_node *in)
{
	n->table_key = in->table_key;
	n->table_key_count = in->table_key_count;
}

struct weir_node *weir_build_source(struct weir_topology *tp, const struct weir_table_def *def)
{
	struct weir_diag *dg = NULL;
	if (!has_room(tp, def->column_count))
		return broken(tp, NULL);
	if (strlen(def->name) > SOURCE_NAME_MAX) { /* each commit writes it beside an offset */
		FAIL(tp, "table '%.40s..': its name has %zu bytes, and the name of a table that is read may have %d",
		     def->name, strlen(def->name), SOURCE_NAME_MAX);
		return broken(tp, NULL);
	}
	if (def->rowtime < -1 || def->rowtime >= (int32_t)def->column_count || def->grace_ms < 0 ||
	    def->grace_ms > DURATION_MS_MAX) {
		FAIL(tp, "table '%s': the time must be a column of it, and the delay from 0 to %lld ms", def->name,
		     (long long)DURATION_MS_MAX);
		return broken(tp, NULL);
	}
	if (def->options.connector != WEIR_CONNECTOR_NONE &&
	    weir_table_options_check_use(&def->options, false, def->name, &dg) != WEIR_OK) {
		weir_topology_fail(tp, dg);
		return broken(tp, NULL);
	}
	if (def->options.global && !weir_table_is_keyed(def)) {
		FAIL(tp, "table '%s': global = true needs a PRIMARY KEY: a global table is a table", def->name);
		return broken(tp, NULL);
	}
	struct weir_node *n =
		add_node(tp, WEIR_NODE_SOURCE, unique_name(tp, def->name, false), NULL, 0, def->column_count);
	for (uint32_t i = 0; i < def->column_count; i++) {
		columns_of(n)[i] =
			(struct weir_column){def->columns[i].name, def->columns[i].type,
					     (int32_t)i == def->rowtime ? WEIR_ROLE_ROWTIME : WEIR_ROLE_NONE};
	}
	n->table = def;
	n->rowtime = def->rowtime;
	n->grace_ms = def->grace_ms;
	n->is_table = weir_table_is_keyed(def);
	if (n->is_table) {
		n->table_key = def->primary_key;
		n->table_key_count = def->primary_key_count;
	}
	return n;
}

struct weir_node *weir_build_filter(struct weir_topology *tp, struct weir_node *in, const struct weir_expr *condition)
{
	char type[80];
	if (!has_room(tp, in->column_count))
		return broken(tp, in);
	if (condition->type.kind != WEIR_KIND_BOOLEAN && condition->type.kind != WEIR_KIND_NULL) {
		FAIL(tp, "a filter must be BOOLEAN, not %s", type_text(&condition->type, &type));
		return broken(tp, in);
	}
	struct weir_node *n = add_node(tp, WEIR_NODE_FILTER, unique_name(tp, "filter", true), &in, 1, in->column_count);
	memcpy(columns_of(n), in->columns, in->column_count * sizeof *in->columns);
	pass_on(n, in);
	pass_on_key(n, in);
	n->rowtime = in->rowtime;
	n->condition = condition;
	return n;
}

/* A key of the latest rows is the column it is made of. */
static uint32_t column_of_key(const struct weir_node *n, uint32_t c)
{
	uint32_t in = n->inputs[0]->column_count;
	return c >= in && n->keys[c - in]->op == WEIR_EXPR_COLUMN ? n->keys[c - in]->column : c;
}

bool weir_node_same_column(const struct weir_node *n, uint32_t a, uint32_t b)
{
	while (a != b && (n->kind == WEIR_NODE_FILTER || n->kind == WEIR_NODE_PROJECT)) {
		if (n->kind == WEIR_NODE_PROJECT) {
			if (n->exprs[a]->op != WEIR_EXPR_COLUMN || n->exprs[b]->op != WEIR_EXPR_COLUMN)
				return false;
			a = n->exprs[a]->column;
			b = n->exprs[b]->column;
		}
		n = n->inputs[0];
	}
	if (n->kind == WEIR_NODE_LATEST)
		return column_of_key(n, a) == column_of_key(n, b);
	if (a == b || n->kind != WEIR_NODE_JOIN)
		return a == b;
	uint32_t left = n->inputs[0]->column_count, low = a < b ? a : b, high = a < b ? b : a;
	if (high < left || low >= left) { /* of one side: where that is missing both are NULL */
		uint32_t first = high < left ? 0 : left;
		return weir_node_same_column(n->inputs[first != 0], low - first, high - first);
	}
	if (n->join->kind != WEIR_JOIN_INNER)
		return false;
	for (uint32_t k = 0; k < n->join->key_count; k++) {
		const struct weir_expr *l = n->join->keys[0][k], *r = n->join->keys[1][k];
		if (l->op == WEIR_EXPR_COLUMN && r->op == WEIR_EXPR_COLUMN &&
		    weir_node_same_column(n->inputs[0], l->column, low) &&
		    weir_node_same_column(n->inputs[1], r->column, high - left))
			return true;
	}
	return false;
}

bool weir_node_has_versions(const struct weir_node *n)
{
	while (n->kind == WEIR_NODE_FILTER || n->kind == WEIR_NODE_PROJECT)
		n = n->inputs[0];
	/* What a filter drops below the latest rows is no end of a row. */
	if (n->kind == WEIR_NODE_LATEST)
		for (n = n->inputs[0]; n->kind == WEIR_NODE_PROJECT;)
			n = n->inputs[0];
	return n->kind == WEIR_NODE_SOURCE;
}

enum { LEAVES_MAX = 64 };

/* Columns that an expression is the first of, as far down as they come: the node where one begins, and by which sides
 * of joins it was reached. */
struct leaves {
	uint32_t count; /* LEAVES_MAX: too many, or something else than columns */
	struct leaf {
		const struct weir_node *n;
		uint32_t column;
		uint64_t path;
	} leaf[LEAVES_MAX];
};

static void add_leaves(struct leaves *lv, const struct weir_node *n, const struct weir_expr *e, uint64_t path)
{
	uint32_t c = e->column;
	if (e->op == WEIR_EXPR_COALESCE) {
		for (uint32_t i = 0; i < e->arg_count && lv->count < LEAVES_MAX; i++)
			add_leaves(lv, n, e->args[i], path);
		return;
	}
	if (e->op != WEIR_EXPR_COLUMN || lv->count == LEAVES_MAX) {
		lv->count = LEAVES_MAX;
		return;
	}
	while (n->kind == WEIR_NODE_FILTER || n->kind == WEIR_NODE_PROJECT || n->kind == WEIR_NODE_JOIN) {
		uint32_t side = 0;
		if (n->kind == WEIR_NODE_PROJECT && n->exprs[c]->op != WEIR_EXPR_COLUMN) {
			add_leaves(lv, n->inputs[0], n->exprs[c], path);
			return;
		}
		if (n->kind == WEIR_NODE_PROJECT)
			c = n->exprs[c]->column;
		if (n->kind == WEIR_NODE_JOIN) {
			side = c >= n->inputs[0]->column_count;
			c -= side != 0 ? n->inputs[0]->column_count : 0;
			path = path * 2 + side;
		}
		n = n->inputs[side];
	}
	lv->leaf[lv->count++] = (struct leaf){n, c, path};
}

static bool has_leaf(const struct leaves *lv, const struct leaf *want)
{
	for (uint32_t i = 0; i < lv->count; i++)
		if (lv->leaf[i].n == want->n && lv->leaf[i].column == want->column && lv->leaf[i].path == want->path)
			return true;
	return false;
}

bool weir_node_is_key(const struct weir_node *n, const struct weir_expr *e, uint32_t k)
{
	struct weir_expr key = {.op = WEIR_EXPR_COLUMN, .column = n->table_key[k]};
	struct leaves a = {.count = 0}, b = {.count = 0};
	if (e->op == WEIR_EXPR_COLUMN && weir_node_same_column(n, e->column, key.column))
		return true;
	add_leaves(&a, n, e, 1);
	add_leaves(&b, n, &key, 1);
	/* Where both are there they are equal: in whatever order. */
	if (a.count != b.count || a.count == LEAVES_MAX)
		return false;
	for (uint32_t i = 0; i < a.count; i++)
		if (!has_leaf(&a, &b.leaf[i]) || !has_leaf(&b, &a.leaf[i]))
			return false;
	return true;
}

/* A table's key under the numbers that a projection gives its columns; none where one of them is gone. */
static void project_key(struct weir_topology *tp, struct weir_node *n, const struct weir_node *in,
			const struct weir_expr *const *exprs, uint32_t count)
{
	uint32_t *key = weir_mem_take(&tp->m, (in->table_key_count + 1) * sizeof *key), found = 0;
	for (uint32_t k = 0; k < in->table_key_count; k++)
		for (uint32_t i = 0; i < count; i++)
			if (weir_node_is_key(in, exprs[i], k)) {
				key[found++] = i;
				break;
			}
	if (in->table_key == NULL || found != in->table_key_count)
		return;
	n->table_key = key;
	n->table_key_count = found;
}

struct weir_node *weir_build_project(struct weir_topology *tp, struct weir_node *in, const char *const *names,
				     const struct weir_expr *const *exprs, uint32_t count)
{
	if (!has_room(tp, count))
		return broken(tp, in);
	struct weir_node *n = add_node(tp, WEIR_NODE_PROJECT, unique_name(tp, "project", true), &in, 1, count);
	pass_on(n, in);
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_expr *e = exprs[i];
		enum weir_column_role role = WEIR_ROLE_NONE;
		if (e->op == WEIR_EXPR_COLUMN) {
			WEIR_ASSERT(e->column < in->column_count);
			role = in->columns[e->column].role;
			if (n->rowtime < 0 && in->rowtime == (int32_t)e->column)
				n->rowtime = (int32_t)i;
		}
		columns_of(n)[i] = (struct weir_column){weir_mem_strdup(&tp->m, names[i]), e->type, role};
	}
	n->exprs = weir_mem_copy(&tp->m, exprs, count * sizeof *exprs);
	project_key(tp, n, in, exprs, count);
	return n;
}

bool weir_node_knows_rows(const struct weir_node *n)
{
	while (n->kind == WEIR_NODE_FILTER || n->kind == WEIR_NODE_PROJECT)
		n = n->inputs[0];
	for (uint32_t i = 0; n->kind == WEIR_NODE_UNION && i < n->input_count; i++)
		if (!weir_node_knows_rows(n->inputs[i]))
			return false;
	return n->is_table && (n->kind != WEIR_NODE_AGGREGATE || n->table_key != NULL);
}

/* The constant that column c of n is in every row; NULL: it is none. */
static const struct weir_expr *constant_of(const struct weir_node *n, uint32_t c)
{
	for (; n->kind == WEIR_NODE_FILTER || n->kind == WEIR_NODE_PROJECT; n = n->inputs[0]) {
		const struct weir_expr *e = n->kind == WEIR_NODE_PROJECT ? n->exprs[c] : NULL;
		if (e != NULL && e->op == WEIR_EXPR_CONST)
			return e->is_null ? NULL : e;
		if (e != NULL && e->op != WEIR_EXPR_COLUMN)
			return NULL;
		c = e != NULL ? e->column : c;
	}
	return NULL;
}

/* Whether column c tells the rows of each input from those of all others. */
static bool tells_apart(struct weir_node *const *in, uint32_t count, uint32_t c)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_expr *e = constant_of(in[i], c);
		for (uint32_t k = 0; k < i && e != NULL; k++)
			if (weir_expr_equal(e, constant_of(in[k], c)))
				e = NULL;
		if (e == NULL)
			return false;
	}
	return true;
}

static bool has_key_column(const struct weir_node *n, uint32_t c)
{
	for (uint32_t k = 0; k < n->table_key_count; k++)
		if (weir_node_same_column(n, n->table_key[k], c))
			return true;
	return false;
}

/* The key of a union of tables. */
static void union_key(struct weir_topology *tp, struct weir_node *n, struct weir_node *const *in, uint32_t count)
{
	uint32_t keys = in[0]->table_key_count, tag = 0;
	uint32_t *key = weir_mem_take(&tp->m, (keys + 1) * sizeof *key);
	bool known = true;
	while (tag < n->column_count && !tells_apart(in, count, tag))
		tag++;
	for (uint32_t i = 0; i < count; i++) {
		known = known && in[i]->is_table && in[i]->table_key != NULL && !in[i]->doubles &&
			in[i]->table_key_count == keys;
		for (uint32_t k = 0; k < keys && known; k++)
			known = has_key_column(in[i], in[0]->table_key[k]);
	}
	n->doubles = !known || tag == n->column_count;
	if (n->doubles)
		return;
	for (uint32_t k = 0; k < keys; k++)
		key[k] = in[0]->table_key[k];
	key[keys] = tag;
	n->table_key = key;
	n->table_key_count = keys + 1;
}

struct weir_node *weir_build_union(struct weir_topology *tp, struct weir_node *const *in, uint32_t count)
{
	char a[80], b[80];
	if (count == 0)
		return broken(tp, NULL);
	if (!has_room(tp, in[0]->column_count))
		return broken(tp, in[0]);
	for (uint32_t i = 1; i < count; i++) {
		if (in[i]->column_count != in[0]->column_count) {
			FAIL(tp, "UNION ALL needs equal columns: %u and %u", in[0]->column_count, in[i]->column_count);
			return broken(tp, in[0]);
		}
		for (uint32_t c = 0; c < in[0]->column_count; c++) {
			if (!weir_type_equal(&in[0]->columns[c].type, &in[i]->columns[c].type)) {
				FAIL(tp, "UNION ALL needs equal columns: '%s' is %s and %s", in[0]->columns[c].name,
				     type_text(&in[0]->columns[c].type, &a), type_text(&in[i]->columns[c].type, &b));
				return broken(tp, in[0]);
			}
		}
	}
	struct weir_node *n =
		add_node(tp, WEIR_NODE_UNION, unique_name(tp, "union", true), in, count, in[0]->column_count);
	struct weir_column *columns = columns_of(n);
	memcpy(columns, in[0]->columns, in[0]->column_count * sizeof *columns);
	pass_on(n, in[0]);
	n->rowtime = in[0]->rowtime;
	for (uint32_t i = 1; i < count; i++) {
		n->grace_ms = weir_max_i64(n->grace_ms, in[i]->grace_ms);
		n->is_table = n->is_table || in[i]->is_table;
		n->doubles = n->doubles || in[i]->doubles;
		if (in[i]->rowtime != n->rowtime)
			n->rowtime = -1;
		for (uint32_t c = 0; c < n->column_count; c++) {
			if (in[i]->columns[c].role != columns[c].role)
				columns[c].role = WEIR_ROLE_NONE;
			columns[c].type.not_null = columns[c].type.not_null && in[i]->columns[c].type.not_null;
		}
	}
	if (n->is_table && count > 1)
		union_key(tp, n, in, count);
	return n;
}

/* ---- windows and aggregates ---- */

static bool check_window(struct weir_topology *tp, const struct weir_window_spec *w)
{
	switch (w->kind) {
	case WEIR_WINDOW_NONE:
		FAIL(tp, "a window needs a kind");
		return false;
	case WEIR_WINDOW_SESSION:
		if (w->gap_ms <= 0 || w->gap_ms > DURATION_MS_MAX) {
			FAIL(tp, "the gap of a session must be from 1 to %lld ms", (long long)DURATION_MS_MAX);
			return false;
		}
		return true;
	case WEIR_WINDOW_SLIDING:
		if (w->size_ms < 0 || w->size_ms > DURATION_MS_MAX) {
			FAIL(tp, "the length of sliding windows must be from 0 to %lld ms", (long long)DURATION_MS_MAX);
			return false;
		}
		return true;
	case WEIR_WINDOW_TUMBLE:
	case WEIR_WINDOW_HOP:
		break;
	case WEIR_WINDOW_CUMULATE:
		if (w->advance_ms > 0 && w->size_ms > 0 && w->size_ms % w->advance_ms != 0) {
			FAIL(tp, "the largest size of cumulating windows must be a multiple of their step");
			return false;
		}
		break;
	}
	if (w->size_ms <= 0 || w->size_ms > DURATION_MS_MAX) {
		FAIL(tp, "the size of a window must be from 1 to %lld ms", (long long)DURATION_MS_MAX);
		return false;
	}
	if (w->advance_ms <= 0 || w->advance_ms > w->size_ms) {
		FAIL(tp, "a hopping window must advance by more than 0 and at most its size");
		return false;
	}
	if (w->size_ms / w->advance_ms > WINDOWS_PER_RECORD_MAX) {
		FAIL(tp, "every record would enter %lld windows: at most %d", (long long)(w->size_ms / w->advance_ms),
		     WINDOWS_PER_RECORD_MAX);
		return false;
	}
	if (w->offset_ms < -DURATION_MS_MAX || w->offset_ms > DURATION_MS_MAX) {
		FAIL(tp, "the offset of a window must be from -%lld to %lld ms", (long long)DURATION_MS_MAX,
		     (long long)DURATION_MS_MAX);
		return false;
	}
	return true;
}

struct weir_node *weir_build_window(struct weir_topology *tp, struct weir_node *in, int32_t time_column,
				    const struct weir_window_spec *window)
{
	if (!has_room(tp, in->column_count + 3u) || !check_window(tp, window))
		return broken(tp, in);
	WEIR_ASSERT(time_column >= -1 && time_column < (int32_t)in->column_count);
	static const char *const base[] = {"window", "tumble", "hop", "session", "cumulate", "sliding"};
	struct weir_node *n =
		add_node(tp, WEIR_NODE_WINDOW, unique_name(tp, base[window->kind], true), &in, 1, in->column_count + 3);
	struct weir_column *columns = columns_of(n);
	memcpy(columns, in->columns, in->column_count * sizeof *columns);
	for (uint32_t i = 0; i < in->column_count; i++) /* an earlier window's bounds are data from here on */
		columns[i].role = (int32_t)i == time_column ? WEIR_ROLE_ROWTIME : WEIR_ROLE_NONE;
	struct weir_type time_type = timestamp_type(WEIR_KIND_TIMESTAMP_LTZ);
	if (time_column >= 0 && weir_kind_is_timestamp(in->columns[time_column].type.kind))
		time_type.kind = in->columns[time_column].type.kind;
	columns += in->column_count;
	columns[0] = (struct weir_column){"window_start", timestamp_type(WEIR_KIND_TIMESTAMP), WEIR_ROLE_WINDOW_START};
	columns[1] = (struct weir_column){"window_end", timestamp_type(WEIR_KIND_TIMESTAMP), WEIR_ROLE_WINDOW_END};
	columns[2] = (struct weir_column){"window_time", time_type, WEIR_ROLE_WINDOW_TIME};
	pass_on(n, in);
	n->rowtime = time_column;
	n->window = *window;
	return n;
}

/* The WINDOW node that an aggregate over in closes: below filters and projections only. */
static const struct weir_node *window_below(const struct weir_node *in)
{
	while (in->kind == WEIR_NODE_FILTER || in->kind == WEIR_NODE_PROJECT)
		in = in->inputs[0];
	return in->kind == WEIR_NODE_WINDOW ? in : NULL;
}

/* What build_aggregate was given, checked. */
static bool check_aggregate(struct weir_topology *tp, const struct weir_node *in, const char *state_name,
			    const char *const *key_names, const struct weir_expr *const *keys, uint32_t key_count,
			    const struct weir_agg *aggs, uint32_t agg_count, uint32_t agg_arg_count,
			    const struct weir_window_spec *window, int64_t grace_ms)
{
	char type[80];
	if (state_name == NULL || state_name[0] == '\0') {
		FAIL(tp, "an aggregate needs a state name");
		return false;
	}
	if (window != NULL) {
		const struct weir_node *w = window_below(in);
		if (w == NULL || !check_window(tp, window)) {
			if (tp->error == NULL)
				FAIL(tp, "state '%s': no window below the aggregate", state_name);
			return false;
		}
		if (w->rowtime >= 0 && in->rowtime < 0) {
			FAIL(tp, "state '%s': the time column '%s' is lost before the aggregate", state_name,
			     w->columns[w->rowtime].name);
			return false;
		}
	}
	for (uint32_t i = 0; i < key_count; i++) {
		enum weir_kind k = keys[i]->type.kind;
		if (k == WEIR_KIND_ARRAY || k == WEIR_KIND_MAP || k == WEIR_KIND_ROW) {
			FAIL(tp, "state '%s': cannot group by '%s': it is %s", state_name, key_names[i],
			     type_text(&keys[i]->type, &type));
			return false;
		}
	}
	for (uint32_t i = 0; i < agg_count; i++) {
		WEIR_ASSERT(aggs[i].arg < (int32_t)agg_arg_count && aggs[i].filter < (int32_t)agg_arg_count);
		WEIR_ASSERT(aggs[i].arg >= 0 || aggs[i].kind == WEIR_AGG_COUNT_STAR);
	}
	if (grace_ms < -1 || grace_ms > DURATION_MS_MAX) {
		FAIL(tp, "state '%s': the grace must be from 0 to %lld ms", state_name, (long long)DURATION_MS_MAX);
		return false;
	}
	for (uint32_t i = 0; i < tp->node_count; i++) {
		if (tp->nodes[i]->state_name != NULL && strcmp(tp->nodes[i]->state_name, state_name) == 0) {
			FAIL(tp, "two states are named '%s'", state_name);
			return false;
		}
	}
	return true;
}

struct weir_node *weir_build_aggregate(struct weir_topology *tp, struct weir_node *in, const char *state_name,
				       const char *const *key_names, const struct weir_expr *const *keys,
				       uint32_t key_count, const char *const *agg_names, const struct weir_agg *aggs,
				       uint32_t agg_count, const struct weir_expr *const *agg_args,
				       uint32_t agg_arg_count, const struct weir_window_spec *window, int64_t grace_ms,
				       bool changes)
{
	uint64_t column_count = (uint64_t)key_count + agg_count + (window != NULL ? 3 : 0);
	if (!has_room(tp, column_count) || !check_aggregate(tp, in, state_name, key_names, keys, key_count, aggs,
							    agg_count, agg_arg_count, window, grace_ms))
		return broken(tp, in);
	struct weir_node *n =
		add_node(tp, WEIR_NODE_AGGREGATE, unique_name(tp, state_name, false), &in, 1, (uint32_t)column_count);
	struct weir_column *columns = columns_of(n);
	for (uint32_t i = 0; i < key_count; i++)
		*columns++ = (struct weir_column){weir_mem_strdup(&tp->m, key_names[i]), keys[i]->type, WEIR_ROLE_NONE};
	for (uint32_t i = 0; i < agg_count; i++)
		*columns++ = (struct weir_column){weir_mem_strdup(&tp->m, agg_names[i]), aggs[i].result_type,
						  WEIR_ROLE_NONE};
	if (window != NULL) {
		const struct weir_node *w = window_below(in);
		memcpy(columns, w->columns + w->column_count - 3, 3 * sizeof *columns);
		n->window = *window;
		n->rowtime = (int32_t)column_count - 1;
	}
	n->is_table = window == NULL || changes;
	if (window == NULL) {
		uint32_t *key = weir_mem_take(&tp->m, (key_count + 1) * sizeof *key);
		for (uint32_t i = 0; i < key_count; i++)
			key[i] = i;
		n->table_key = key;
		n->table_key_count = key_count;
	}
	n->changes = window == NULL || changes;
	n->keys = weir_mem_copy(&tp->m, keys, key_count * sizeof *keys);
	n->key_count = key_count;
	n->aggs = weir_mem_copy(&tp->m, aggs, agg_count * sizeof *aggs);
	n->agg_count = agg_count;
	n->agg_args = weir_mem_copy(&tp->m, agg_args, agg_arg_count * sizeof *agg_args);
	n->agg_arg_count = agg_arg_count;
	n->state_name = weir_mem_strdup(&tp->m, state_name);
	n->state_grace_ms = grace_ms >= 0 ? grace_ms : in->grace_ms;
	return n;
}

/* ---- joins ---- */

/* A table is looked up by its whole key: every column of it is a key of the join, and no other one. */
static bool check_table_side(struct weir_topology *tp, const struct weir_node *in, const char *state_name,
			     const struct weir_expr *const *keys, uint32_t key_count)
{
	if (in->table_key == NULL) {
		FAIL(tp, "state '%s': table '%s' has no key among its columns: it cannot be joined", state_name,
		     in->name);
		return false;
	}
	for (uint32_t k = 0; k < in->table_key_count; k++) {
		bool found = false;
		for (uint32_t i = 0; i < key_count; i++)
			found |= keys[i]->op == WEIR_EXPR_COLUMN && keys[i]->column == in->table_key[k];
		if (!found) {
			FAIL(tp, "state '%s': table '%s' is joined by its whole key: column '%s' is not compared",
			     state_name, in->name, in->columns[in->table_key[k]].name);
			return false;
		}
	}
	for (uint32_t i = 0; i < key_count; i++) {
		bool found = false;
		for (uint32_t k = 0; k < in->table_key_count; k++)
			found |= keys[i]->op == WEIR_EXPR_COLUMN && keys[i]->column == in->table_key[k];
		if (!found) {
			FAIL(tp, "state '%s': table '%s' is joined by its key, and by nothing else", state_name,
			     in->name);
			return false;
		}
	}
	return true;
}

static bool check_join(struct weir_topology *tp, struct weir_node *const in[2], const char *state_name,
		       const struct weir_join_spec *spec)
{
	char a[80], b[80];
	if (state_name == NULL || state_name[0] == '\0') {
		FAIL(tp, "a join needs a state name");
		return false;
	}
	for (uint32_t i = 0; i < tp->node_count; i++)
		if (tp->nodes[i]->state_name != NULL && strcmp(tp->nodes[i]->state_name, state_name) == 0) {
			FAIL(tp, "two states are named '%s'", state_name);
			return false;
		}
	if (spec->kind > WEIR_JOIN_FULL) {
		FAIL(tp, "state '%s': no such kind of join", state_name);
		return false;
	}
	if (spec->before_ms > DURATION_MS_MAX || spec->before_ms < -DURATION_MS_MAX ||
	    spec->after_ms > DURATION_MS_MAX || spec->after_ms < -DURATION_MS_MAX) {
		FAIL(tp, "state '%s': the join's bounds are out of range", state_name);
		return false;
	}
	if (spec->before_ms + spec->after_ms < 0) {
		FAIL(tp, "state '%s': the join's bounds leave no time: %lld ms before and %lld ms after", state_name,
		     (long long)spec->before_ms, (long long)spec->after_ms);
		return false;
	}
	if (spec->key_count == 0) {
		FAIL(tp, "state '%s': a join needs a column of each side that are equal", state_name);
		return false;
	}
	for (uint32_t k = 0; k < spec->key_count; k++) {
		struct weir_type l = spec->keys[0][k]->type, r = spec->keys[1][k]->type;
		l.not_null = r.not_null = false;
		if (!weir_type_equal(&l, &r)) {
			FAIL(tp, "state '%s': a join compares %s with %s", state_name, type_text(&l, &a),
			     type_text(&r, &b));
			return false;
		}
		if (l.kind == WEIR_KIND_ARRAY || l.kind == WEIR_KIND_MAP || l.kind == WEIR_KIND_ROW) {
			FAIL(tp, "state '%s': cannot join by %s", state_name, type_text(&l, &a));
			return false;
		}
	}
	bool tables = in[0]->is_table && in[1]->is_table;
	if (tables && spec->residual != NULL && spec->kind == WEIR_JOIN_FULL) {
		FAIL(tp, "state '%s': more than equal keys in a full join of two tables is not supported", state_name);
		return false;
	}
	for (uint32_t s = 0; s < 2 && spec->window.kind != WEIR_WINDOW_NONE; s++) {
		const struct weir_node *w = window_below(in[s]);
		if (w == NULL || !check_window(tp, &spec->window) || spec->window.kind == WEIR_WINDOW_SESSION ||
		    spec->window.kind == WEIR_WINDOW_CUMULATE || spec->window.kind == WEIR_WINDOW_SLIDING ||
		    w->window.kind != spec->window.kind || w->window.size_ms != spec->window.size_ms ||
		    w->window.advance_ms != spec->window.advance_ms || w->window.offset_ms != spec->window.offset_ms) {
			if (tp->error == NULL)
				FAIL(tp,
				     "state '%s': a join of windows takes two streams in equal TUMBLE or HOP windows",
				     state_name);
			return false;
		}
		if (w->rowtime >= 0 && in[s]->rowtime < 0) {
			FAIL(tp, "state '%s': the time column '%s' is lost before the join", state_name,
			     w->columns[w->rowtime].name);
			return false;
		}
	}
	if (spec->foreign &&
	    (!tables || in[0]->table_key == NULL || spec->kind == WEIR_JOIN_RIGHT || spec->kind == WEIR_JOIN_FULL)) {
		FAIL(tp,
		     "state '%s': a join by a foreign key takes two tables with keys, and is inner or keeps the left "
		     "one's rows",
		     state_name);
		return false;
	}
	bool stream_stream = !in[0]->is_table && !in[1]->is_table;
	if (stream_stream != spec->within) {
		FAIL(tp,
		     stream_stream ? "state '%s': a join of two streams needs bounds in time"
				   : "state '%s': a join with a table takes no bounds in time",
		     state_name);
		return false;
	}
	for (uint32_t s = 0; s < 2; s++) {
		bool outer_table =
			spec->kind == WEIR_JOIN_FULL || spec->kind == (s == 0 ? WEIR_JOIN_LEFT : WEIR_JOIN_RIGHT);
		if (!in[s]->is_table)
			continue;
		if (outer_table && !tables) {
			FAIL(tp,
			     "state '%s': rows of a table cannot be kept in a join with a stream: keep the "
			     "stream's (%s JOIN)",
			     state_name, s == 0 ? "RIGHT" : "LEFT");
			return false;
		}
		if (spec->foreign && s == 0)
			continue;
		if (!check_table_side(tp, in[s], state_name, spec->keys[s], spec->key_count))
			return false;
	}
	return true;
}

struct weir_node *weir_build_join(struct weir_topology *tp, struct weir_node *left, struct weir_node *right,
				  const char *state_name, const struct weir_join_spec *spec)
{
	struct weir_node *in[2] = {left, right};
	uint64_t column_count = (uint64_t)left->column_count + right->column_count;
	if (!has_room(tp, column_count) || !check_join(tp, in, state_name, spec))
		return broken(tp, left);
	struct weir_node *n =
		add_node(tp, WEIR_NODE_JOIN, unique_name(tp, state_name, false), in, 2, (uint32_t)column_count);
	struct weir_column *columns = columns_of(n);
	struct weir_join_spec *copy = weir_mem_copy(&tp->m, spec, sizeof *spec);
	for (uint32_t s = 0, c = 0; s < 2; s++) {
		bool missing =
			spec->kind == WEIR_JOIN_FULL || spec->kind == (s == 0 ? WEIR_JOIN_RIGHT : WEIR_JOIN_LEFT);
		for (uint32_t i = 0; i < in[s]->column_count; i++, c++) {
			columns[c] = in[s]->columns[i];
			bool time = !in[s]->is_table && !missing && !(in[0]->is_table && in[1]->is_table) &&
				    ((columns[c].role == WEIR_ROLE_ROWTIME && spec->window.kind == WEIR_WINDOW_NONE) ||
				     columns[c].role == WEIR_ROLE_WINDOW_TIME);
			columns[c].role = time ? WEIR_ROLE_ROWTIME : WEIR_ROLE_NONE;
			columns[c].type.not_null = columns[c].type.not_null && !missing;
		}
		copy->keys[s] = weir_mem_copy(&tp->m, spec->keys[s], spec->key_count * sizeof(struct weir_expr *));
	}
	if (left->is_table && right->is_table) {
		bool of_right = spec->kind == WEIR_JOIN_RIGHT; /* both may be one node: a view joined with itself */
		const struct weir_node *by = of_right ? right : left;
		uint32_t *key = weir_mem_take(&tp->m, (by->table_key_count + 1) * sizeof *key);
		for (uint32_t k = 0; k < by->table_key_count; k++)
			key[k] = by->table_key[k] + (of_right ? left->column_count : 0);
		n->is_table = true;
		/* Of a full join either side's may be missing. */
		n->table_key = spec->kind == WEIR_JOIN_FULL ? NULL : key;
		n->table_key_count = spec->kind == WEIR_JOIN_FULL ? 0 : by->table_key_count;
	} else if (!spec->within) {
		uint32_t stream = left->is_table;
		if (in[stream]->rowtime >= 0)
			n->rowtime = in[stream]->rowtime + (stream == 1 ? (int32_t)left->column_count : 0);
	}
	n->state_grace_ms =
		spec->within && spec->grace_ms >= 0 ? spec->grace_ms : weir_max_i64(left->grace_ms, right->grace_ms);
	n->state_name = weir_mem_strdup(&tp->m, state_name);
	n->join = copy;
	return n;
}

/* ---- functions OVER ---- */

static bool check_over(struct weir_topology *tp, const struct weir_node *in, const char *state_name,
		       const struct weir_over_spec *spec)
{
	char type[80];
	if (state_name == NULL || state_name[0] == '\0') {
		FAIL(tp, "functions OVER need a state name");
		return false;
	}
	for (uint32_t i = 0; i < tp->node_count; i++)
		if (tp->nodes[i]->state_name != NULL && strcmp(tp->nodes[i]->state_name, state_name) == 0) {
			FAIL(tp, "two states are named '%s'", state_name);
			return false;
		}
	if (in->is_table) {
		FAIL(tp, "state '%s': %s for a stream, not for a table", state_name,
		     spec->unnest ? "UNNEST is" : "functions OVER are");
		return false;
	}
	for (uint32_t k = 0; k < spec->key_count; k++) {
		enum weir_kind kind = spec->keys[k]->type.kind;
		if (kind == WEIR_KIND_ARRAY || kind == WEIR_KIND_MAP || kind == WEIR_KIND_ROW) {
			FAIL(tp, "state '%s': cannot partition by %s", state_name,
			     type_text(&spec->keys[k]->type, &type));
			return false;
		}
	}
	for (uint32_t f = 0; f < spec->fn_count; f++)
		WEIR_ASSERT(spec->fns[f].arg < (int32_t)spec->arg_count &&
			    spec->fns[f].fallback < (int32_t)spec->arg_count);
	return true;
}

struct weir_node *weir_build_timed(struct weir_topology *tp, struct weir_node *in, uint32_t column)
{
	if (in->is_table || in->rowtime >= 0 || in->columns[column].role != WEIR_ROLE_ROWTIME)
		return in;
	const char **names = weir_mem_take(&tp->m, in->column_count * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(&tp->m, in->column_count * sizeof *exprs);
	for (uint32_t c = 0; c < in->column_count; c++) {
		names[c] = in->columns[c].name;
		exprs[c] = weir_expr_column(&tp->m, c, &in->columns[c].type, names[c]);
	}
	struct weir_node *n = weir_build_project(tp, in, names, exprs, in->column_count);
	if (n->kind != WEIR_NODE_PROJECT)
		return n; /* broken */
	/* The other side's time lags behind this one's: rows that are held until this one has come would be late by it.
	 */
	for (uint32_t c = 0; c < n->column_count; c++)
		columns_of(n)[c].role = c == column ? WEIR_ROLE_ROWTIME : WEIR_ROLE_NONE;
	n->rowtime = (int32_t)column;
	return n;
}

struct weir_node *weir_build_over(struct weir_topology *tp, struct weir_node *in, const char *state_name,
				  const struct weir_over_spec *spec, const char *const *names)
{
	if (!has_room(tp, (uint64_t)in->column_count + spec->fn_count) || !check_over(tp, in, state_name, spec))
		return broken(tp, in);
	struct weir_node *n = add_node(tp, WEIR_NODE_OVER, unique_name(tp, state_name, false), &in, 1,
				       in->column_count + spec->fn_count);
	struct weir_over_spec *copy = weir_mem_copy(&tp->m, spec, sizeof *spec);
	struct weir_column *columns = columns_of(n);
	memcpy(columns, in->columns, in->column_count * sizeof *columns);
	columns += in->column_count;
	for (uint32_t f = 0; f < spec->fn_count; f++)
		columns[f] = (struct weir_column){weir_mem_strdup(&tp->m, names[f]), spec->fns[f].agg.result_type,
						  WEIR_ROLE_NONE};
	if (spec->key_count != 0)
		copy->keys = weir_mem_copy(&tp->m, spec->keys, spec->key_count * sizeof *spec->keys);
	if (spec->arg_count != 0)
		copy->args = weir_mem_copy(&tp->m, spec->args, spec->arg_count * sizeof *spec->args);
	copy->fns = weir_mem_copy(&tp->m, spec->fns, spec->fn_count * sizeof *spec->fns);
	n->rowtime = in->rowtime;
	n->state_grace_ms = in->grace_ms;
	n->state_name = weir_mem_strdup(&tp->m, state_name);
	n->over = copy;
	return n;
}

/* Rows go where their first plain column says: it need not mean anything, only spread them. */
static const struct weir_expr *spread_by(struct weir_topology *tp, const struct weir_node *in)
{
	for (uint32_t c = 0; c < in->column_count; c++) {
		enum weir_kind k = in->columns[c].type.kind;
		if (k != WEIR_KIND_ARRAY && k != WEIR_KIND_MAP && k != WEIR_KIND_ROW && k != WEIR_KIND_FLOAT &&
		    k != WEIR_KIND_DOUBLE)
			return weir_expr_column(&tp->m, c, &in->columns[c].type, in->columns[c].name);
	}
	return NULL;
}

struct weir_node *weir_build_unnest(struct weir_topology *tp, struct weir_node *in, const char *state_name,
				    const struct weir_expr *array, bool outer)
{
	char type[80];
	const struct weir_expr *key = spread_by(tp, in);
	struct weir_over_spec *spec = weir_mem_take(&tp->m, sizeof *spec);
	*spec = (struct weir_over_spec){.key_count = key != NULL,
					.keys = weir_mem_copy(&tp->m, &key, sizeof(struct weir_expr *)),
					.arg_count = 1,
					.args = weir_mem_copy(&tp->m, &array, sizeof(struct weir_expr *)),
					.unnest = true,
					.outer = outer};
	if (!has_room(tp, (uint64_t)in->column_count + 2) || !check_over(tp, in, state_name, spec))
		return broken(tp, in);
	if (array->type.kind != WEIR_KIND_ARRAY) {
		FAIL(tp, "state '%s': UNNEST takes an ARRAY, not %s", state_name, type_text(&array->type, &type));
		return broken(tp, in);
	}
	struct weir_node *n =
		add_node(tp, WEIR_NODE_OVER, unique_name(tp, state_name, false), &in, 1, in->column_count + 2);
	struct weir_column *columns = columns_of(n);
	memcpy(columns, in->columns, in->column_count * sizeof *columns);
	columns += in->column_count;
	columns[0] = (struct weir_column){"element", array->type, WEIR_ROLE_NONE};
	columns[1] = (struct weir_column){"ordinality", {.kind = WEIR_KIND_BIGINT}, WEIR_ROLE_NONE};
	columns[0].type.not_null = false;
	n->rowtime = in->rowtime;
	n->state_grace_ms = in->grace_ms;
	n->state_name = weir_mem_strdup(&tp->m, state_name);
	n->over = spec;
	return n;
}

/* ---- the latest rows of a stream ---- */

static bool check_latest(struct weir_topology *tp, const struct weir_node *in, const char *state_name,
			 const struct weir_expr *const *keys, uint32_t key_count)
{
	char type[80];
	for (uint32_t i = 0; i < tp->node_count; i++)
		if (tp->nodes[i]->state_name != NULL && strcmp(tp->nodes[i]->state_name, state_name) == 0) {
			FAIL(tp, "two states are named '%s'", state_name);
			return false;
		}
	if (in->is_table || in->rowtime < 0) {
		FAIL(tp, "state '%s': the latest rows are those of a stream with a time attribute", state_name);
		return false;
	}
	for (uint32_t k = 0; k < key_count; k++) {
		enum weir_kind kind = keys[k]->type.kind;
		if (kind == WEIR_KIND_ARRAY || kind == WEIR_KIND_MAP || kind == WEIR_KIND_ROW) {
			FAIL(tp, "state '%s': cannot partition by %s", state_name, type_text(&keys[k]->type, &type));
			return false;
		}
	}
	return true;
}

struct weir_node *weir_build_latest(struct weir_topology *tp, struct weir_node *in, const char *state_name,
				    const char *const *key_names, const struct weir_expr *const *keys,
				    uint32_t key_count)
{
	uint32_t column_count = in->column_count + key_count;
	if (!has_room(tp, column_count) || !check_latest(tp, in, state_name, keys, key_count))
		return broken(tp, in);
	struct weir_node *n = add_node(tp, WEIR_NODE_LATEST, unique_name(tp, state_name, false), &in, 1, column_count);
	struct weir_column *columns = columns_of(n);
	uint32_t *key = weir_mem_take(&tp->m, (key_count + 1) * sizeof *key);
	memcpy(columns, in->columns, in->column_count * sizeof *columns);
	for (uint32_t c = 0; c < in->column_count; c++)
		columns[c].role = WEIR_ROLE_NONE;
	for (uint32_t k = 0; k < key_count; k++) {
		key[k] = in->column_count + k;
		columns[key[k]] =
			(struct weir_column){weir_mem_strdup(&tp->m, key_names[k]), keys[k]->type, WEIR_ROLE_NONE};
	}
	n->is_table = true;
	n->table_key = key;
	n->table_key_count = key_count;
	n->keys = weir_mem_copy(&tp->m, keys, key_count * sizeof *keys);
	n->key_count = key_count;
	n->grace_ms = n->state_grace_ms = in->grace_ms;
	n->state_name = weir_mem_strdup(&tp->m, state_name);
	return n;
}

/* ---- sinks ---- */

static bool is_persisted(const struct weir_table_column *c)
{
	return c->kind == WEIR_COLUMN_PHYSICAL || (c->kind == WEIR_COLUMN_METADATA && !c->is_virtual);
}

static bool check_sink(struct weir_topology *tp, const struct weir_node *in, const struct weir_table_def *def)
{
	char a[80], b[80];
	struct weir_diag *dg = NULL;
	if (def->options.connector != WEIR_CONNECTOR_NONE &&
	    weir_table_options_check_use(&def->options, true, def->name, &dg) != WEIR_OK) {
		weir_topology_fail(tp, dg);
		return false;
	}
	uint32_t at = 0;
	for (uint32_t i = 0; i < def->column_count; i++) {
		if (!is_persisted(&def->columns[i]))
			continue;
		if (at < in->column_count && !weir_type_equal(&in->columns[at].type, &def->columns[i].type)) {
			FAIL(tp, "sink '%s': column '%s' is %s, the query gives %s", def->name, def->columns[i].name,
			     type_text(&def->columns[i].type, &a), type_text(&in->columns[at].type, &b));
			return false;
		}
		at++;
	}
	if (at != in->column_count) {
		FAIL(tp, "sink '%s' has %u columns, the query gives %u", def->name, at, in->column_count);
		return false;
	}
	return true;
}

struct weir_node *weir_build_sink(struct weir_topology *tp, struct weir_node *in, const struct weir_table_def *def,
				  bool prints_rows)
{
	WEIR_ASSERT(def != NULL || prints_rows);
	if (!has_room(tp, in->column_count) || (def != NULL && !check_sink(tp, in, def)))
		return broken(tp, in);
	const char *name = def != NULL ? def->name : "select";
	struct weir_node *n = add_node(tp, WEIR_NODE_SINK, unique_name(tp, name, false), &in, 1, in->column_count);
	struct weir_column *columns = columns_of(n);
	memcpy(columns, in->columns, in->column_count * sizeof *columns);
	uint32_t at = 0;
	for (uint32_t i = 0; def != NULL && i < def->column_count; i++) {
		if (is_persisted(&def->columns[i]))
			columns[at++].name = def->columns[i].name;
	}
	pass_on(n, in);
	n->rowtime = in->rowtime;
	n->table = def;
	n->prints_rows = prints_rows;
	return n;
}
