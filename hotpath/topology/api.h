/* api.h: what the files behind weir.h (api*.c) share: a stream, and the start and end of a call. The small functions
 * are here so that each file has them under short names. Cold path, @thread init. */
#ifndef WEIR_TOPOLOGY_API_H
#define WEIR_TOPOLOGY_API_H

#include "hotpath/expr/expr.h"
#include "hotpath/topology/builder.h"
#include "hotpath/weir.h"

enum { LIST_MAX = 1000 };
#define TIME_COLUMN "$time"

struct weir_stream {
	struct weir_topology *tp;
	struct weir_node *node;     /* NULL: a source that nothing reads yet, see def */
	struct weir_table_def *def; /* of that source; weir_event_time may still change it */
	uint32_t visible;           /* the first columns of node; hidden ones follow */
	uint32_t left;              /* of a join: the first of them are l's, the others r's; 0: not a join's */
	bool keyed;
	const char *const *key_names;
	uint32_t key_count;
	struct weir_window_spec window;
	enum weir_emit emit;
	bool emit_set;
};

struct weir_table {
	struct weir_stream *st;
};

/* What a call needs to parse and bind its text. */
struct call {
	struct weir_topology *tp;
	struct weir_mem *m;
	struct weir_diag *dg;
	struct weir_tokens ts;
};

/* An item of a list: expression [AS name]. */
struct item {
	const struct weir_ast *ast; /* NULL: a star stood here and column is meant */
	uint32_t column;
	const char *name;
};

static inline struct weir_stream *new_stream(struct weir_topology *tp, const struct weir_stream *from)
{
	struct weir_stream *st = weir_mem_take(weir_topology_mem(tp), sizeof *st);
	if (from != NULL)
		*st = *from;
	st->tp = tp;
	return st;
}

/* The end of every call that failed: the topology keeps the error, the caller gets a stream that does nothing. */
static inline struct weir_stream *failed(struct call *c, const struct weir_stream *st)
{
	WEIR_ASSERT(c->dg != NULL);
	weir_topology_fail(c->tp, c->dg);
	return new_stream(c->tp, st);
}

static inline bool is_broken(const struct weir_stream *st)
{
	return weir_topology_error(st->tp) != NULL;
}

static inline struct call begin(struct weir_topology *tp)
{
	return (struct call){.tp = tp, .m = weir_topology_mem(tp)};
}

/* Tokens of a text that a call was given; file is the call's name, shown before line and column. */
static inline enum weir_err tokens_of(struct call *c, const char *file, const char *text)
{
	if (text == NULL)
		return weir_diag_set(&c->dg, WEIR_E_PLAN, "%s: a text is missing", file);
	text = weir_mem_strdup(c->m, text);
	return weir_tokens_init(&c->ts, c->m, file, text, strlen(text), 0, &c->dg);
}

static inline enum weir_err expect_end(struct call *c)
{
	const struct weir_token *t = weir_token_peek(&c->ts, 0);
	if (t->kind == WEIR_TOK_END)
		return WEIR_OK;
	return weir_token_error(&c->ts, t, &c->dg, NULL, "expected the end, found '%.*s'", (int)t->bytes,
				c->ts.text + t->at);
}

/* The node of st, made now if it is a source that nothing has read before. */
static inline struct weir_node *node_of(struct weir_stream *st)
{
	if (st->node == NULL && !is_broken(st))
		st->node = weir_build_source(st->tp, st->def);
	return st->node;
}

/* Names that expressions on st may use. */
static inline struct weir_scope scope_of(struct weir_mem *m, const struct weir_stream *st, const struct weir_node *node,
					 const char *aggregate_error)
{
	uint32_t visible = st->visible;
	struct weir_scope_column *columns = weir_mem_take(m, (visible + 1) * sizeof *columns);
	for (uint32_t i = 0; i < visible; i++)
		columns[i] = (struct weir_scope_column){.name = node->columns[i].name,
							.qualifier = st->left == 0  ? NULL
								     : i < st->left ? "l"
										    : "r",
							.type = node->columns[i].type};
	return (struct weir_scope){.columns = columns, .count = visible, .aggregate_error = aggregate_error};
}

/* The column of that name among the visible ones; -1: there is none. */
static inline int32_t find_column(const struct weir_node *node, uint32_t visible, const char *name)
{
	for (uint32_t i = 0; i < visible; i++) {
		if (strcmp(node->columns[i].name, name) == 0)
			return (int32_t)i;
	}
	return -1;
}

/* name TYPE [METADATA ...] | name AS expr, separated by commas; *out has room for one more. */
enum weir_err weir_api_columns(struct call *c, struct weir_table_column **out, uint32_t *count_out);
/* Whether a name can name a state, which is part of a topic's; call is named in the error. */
enum weir_err weir_api_state_name(struct call *c, const char *call, const char *state_name);
/* Items of a list up to its end. Star stands for the visible columns of node (NULL: not allowed). */
enum weir_err weir_api_items(struct call *c, const struct weir_node *node, uint32_t visible, struct item **out,
			     uint32_t *count_out);
/* A projection of node to exprs, and behind them the time column where exprs leave it out: both arrays have room for
 * it. */
struct weir_stream *weir_api_project(struct call *c, const struct weir_stream *st, struct weir_node *node,
				     const char **names, const struct weir_expr **exprs, uint32_t count);

#endif
