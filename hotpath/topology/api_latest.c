/* api_latest.c: weir.h: a stream's latest records as a table. Cold path, @thread init. */
#include "hotpath/topology/api.h"

static enum weir_err check_latest(struct call *c, const struct weir_stream *st, const struct weir_node *in)
{
	if (!st->keyed)
		return weir_diag_set(&c->dg, WEIR_E_PLAN, "weir_latest: of each what? weir_key_by comes before");
	if (st->window.kind != WEIR_WINDOW_NONE)
		return weir_diag_set(&c->dg, WEIR_E_PLAN, "weir_latest: takes no window: it is one row of each key");
	if (in->is_table || in->rowtime < 0)
		return weir_diag_set(&c->dg, WEIR_E_PLAN,
				     "weir_latest: takes a stream with an event time (weir_event_time)");
	return WEIR_OK;
}

struct weir_table *weir_latest(struct weir_stream *st, const char *state_name)
{
	if (st == NULL)
		return NULL;
	struct call c = begin(st->tp);
	struct weir_table *tb = weir_mem_take(c.m, sizeof *tb);
	struct weir_node *in = node_of(st);
	tb->st = st;
	if (is_broken(st))
		return tb;
	enum weir_err err = weir_api_state_name(&c, "weir_latest", state_name);
	if (err == WEIR_OK)
		err = check_latest(&c, st, in);
	const struct weir_expr **keys = weir_mem_take(c.m, (st->key_count + 1) * sizeof *keys);
	for (uint32_t k = 0; k < st->key_count && err == WEIR_OK; k++) {
		int32_t at = find_column(in, st->visible, st->key_names[k]);
		if (at < 0)
			err = weir_diag_set(&c.dg, WEIR_E_PLAN, "weir_latest: key column '%s' was lost by weir_select",
					    st->key_names[k]);
		else
			keys[k] = weir_expr_column(c.m, (uint32_t)at, &in->columns[at].type, st->key_names[k]);
	}
	if (err != WEIR_OK) {
		tb->st = failed(&c, st);
		return tb;
	}
	struct weir_node *node = weir_build_latest(st->tp, in, state_name, st->key_names, keys, st->key_count);
	tb->st = new_stream(st->tp, st);
	tb->st->node = node;
	node->reject_null_key = true;
	return tb;
}
