/* join.c: JOIN ... ON to a join of two relations: ON is taken apart into columns that are equal, bounds in time, and
 * the rest. @thread init
 *
 *   l.k = r.k                                       a key of the join
 *   r.t BETWEEN l.t - INTERVAL .. AND l.t + ..      bounds, of two streams; any comparison of the two time attributes
 *   l.fk = r.k, of two tables                       a foreign key, where r.k is the whole key of r
 *   l.window_start = r.window_start AND ...         both ends: rows of one window meet
 *   FROM l, r WHERE ..                              the same in WHERE: what it says of both
 *   anything else                                   a filter above an inner join; of an outer one, part of a match */
#include "tools/sql/sql.h"

#include <stdio.h>

#include "hotpath/expr/function.h"

struct condition {
	struct weir_sql *sq;
	const struct sql_join *jn;
	const struct sql_rel *side[2];
	uint32_t left_count; /* columns of the left side's node; the right side's follow */
	struct weir_buf keys[2];
	struct weir_join_spec spec;
	bool has_low, has_high;
	int64_t low, high;         /* bounds of r.time - l.time */
	bool same_start, same_end; /* ON compares the two sides' windows */
	bool by_months;            /* ON compares times that lie months apart */
	const struct weir_expr *rest;
	struct weir_buf pairs; /* struct pair: of two tables */
	bool swapped;          /* the right table refers to the left one */
	uint32_t left_kept;    /* columns of the result that are the left side's */
};

/* An equality of two tables' columns, before it is known which ones are keys. */
struct pair {
	const struct weir_expr *side[2];
	const struct weir_expr *e;
};

/* Sets reads[s] where e reads a column of side s. */
static void sides_read(const struct condition *cd, const struct weir_expr *e, bool reads[2])
{
	uint32_t count = cd->left_count + cd->side[1]->node->column_count;
	bool *used = weir_mem_take(cd->sq->m, count + 1);
	weir_expr_columns_used(e, used, count);
	reads[0] = reads[1] = false;
	for (uint32_t i = 0; i < count; i++)
		reads[i >= cd->left_count] |= used[i];
}

static bool is_call(const struct weir_expr *e, const char *name, uint32_t args)
{
	return e->op == WEIR_EXPR_CALL && e->arg_count == args && strcmp(e->fn->name, name) == 0;
}

static void add_rest(struct condition *cd, const struct weir_expr *e)
{
	cd->rest = weir_expr_and(cd->sq->m, cd->rest, e);
}

/* ---- keys ---- */

static bool is_table_key(const struct weir_node *in, const struct weir_expr *e)
{
	for (uint32_t k = 0; k < in->table_key_count; k++)
		if (e->op == WEIR_EXPR_COLUMN && e->column == in->table_key[k])
			return true;
	return false;
}

static bool has_key(const struct condition *cd, uint32_t side, const struct weir_expr *e)
{
	const struct weir_expr *const *keys = (const struct weir_expr *const *)(const void *)cd->keys[side].data;
	for (uint32_t i = 0; i < cd->keys[side].bytes / sizeof *keys; i++)
		if (weir_expr_equal(keys[i], e))
			return true;
	return false;
}

/* e, or in its place the column of a table's key that is the same in every row. */
static const struct weir_expr *as_table_key(struct weir_sql *sq, const struct weir_node *in, const struct weir_expr *e)
{
	for (uint32_t k = 0; in->is_table && k < in->table_key_count; k++) {
		const struct weir_column *c = &in->columns[in->table_key[k]];
		if (weir_node_is_key(in, e, k))
			return weir_expr_column(sq->m, in->table_key[k], &c->type, c->name);
	}
	return e;
}

/* A column of each side, made equal: true if the pair is a key. Of a table only its own key's columns are. */
static bool take_key(struct condition *cd, const struct weir_expr *e)
{
	bool a[2], b[2];
	if (!is_call(e, "=", 2))
		return false;
	sides_read(cd, e->args[0], a);
	sides_read(cd, e->args[1], b);
	uint32_t left = a[1];
	if (a[0] == a[1] || b[0] == b[1] || a[0] == b[0])
		return false;
	struct weir_type l = e->args[0]->type, r = e->args[1]->type;
	l.not_null = r.not_null = false;
	if (!weir_type_equal(&l, &r))
		return false;
	/* The right side's columns by their own numbers. */
	const struct weir_node *in = cd->side[1]->node;
	const struct weir_expr **map = weir_mem_take(cd->sq->m, (cd->left_count + in->column_count + 1) * sizeof *map);
	for (uint32_t i = 0; i < cd->left_count; i++)
		map[i] = weir_expr_bool(cd->sq->m, true);
	for (uint32_t i = 0; i < in->column_count; i++)
		map[cd->left_count + i] = weir_expr_column(cd->sq->m, i, &in->columns[i].type, in->columns[i].name);
	const struct weir_expr *key[2];
	key[0] = e->args[left];
	key[1] = weir_expr_substitute(e->args[1 - left], map, cd->left_count + in->column_count, cd->sq->m);
	for (uint32_t s = 0; s < 2; s++)
		key[s] = as_table_key(cd->sq, cd->side[s]->node, key[s]);
	if (cd->side[0]->node->is_table && cd->side[1]->node->is_table) {
		struct pair pr = {{key[0], key[1]}, e};
		weir_buf_put(&cd->pairs, &pr, sizeof pr);
		return true;
	}
	for (uint32_t s = 0; s < 2; s++)
		if (cd->side[s]->node->is_table && (!is_table_key(cd->side[s]->node, key[s]) || has_key(cd, s, key[s])))
			return false;
	for (uint32_t s = 0; s < 2; s++)
		weir_buf_put(&cd->keys[s], &key[s], sizeof key[s]);
	return true;
}

/* Takes those pairs as keys whose columns on every side of `sides` (bits) are the table's own key, each once. False:
 * they do not make up the whole key there; then nothing is taken. */
static bool take_pairs(struct condition *cd, uint32_t sides)
{
	const struct pair *pr = (const struct pair *)(const void *)cd->pairs.data;
	uint32_t n = (uint32_t)(cd->pairs.bytes / sizeof *pr);
	const struct weir_expr *rest = cd->rest;
	cd->keys[0].bytes = cd->keys[1].bytes = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool key = true;
		for (uint32_t s = 0; s < 2; s++)
			if ((sides >> s & 1) != 0)
				key = key && is_table_key(cd->side[s]->node, pr[i].side[s]) &&
				      !has_key(cd, s, pr[i].side[s]);
		for (uint32_t s = 0; s < 2 && key; s++)
			weir_buf_put(&cd->keys[s], &pr[i].side[s], sizeof pr[i].side[s]);
		if (!key)
			add_rest(cd, pr[i].e);
	}
	bool whole = true;
	for (uint32_t s = 0; s < 2; s++)
		if ((sides >> s & 1) != 0)
			whole = whole && cd->side[s]->node->table_key != NULL &&
				cd->keys[s].bytes / sizeof(struct weir_expr *) == cd->side[s]->node->table_key_count;
	if (!whole)
		cd->rest = rest;
	return whole;
}

/* Two tables: by the keys of both, or by one's whole key and whatever the other one compares with it. */
static enum weir_err choose_keys(struct condition *cd)
{
	if (cd->pairs.bytes == 0 || take_pairs(cd, 3))
		return WEIR_OK;
	bool l = cd->side[0]->node->table_key != NULL, r = cd->side[1]->node->table_key != NULL;
	if (l && r && take_pairs(cd, 2)) {
		cd->spec.foreign = true;
	} else if (l && r && take_pairs(cd, 1)) {
		cd->spec.foreign = cd->swapped = true;
	} else {
		(void)take_pairs(cd, 3); /* what is missing will be said */
		return WEIR_OK;
	}
	enum weir_join_kind kept = cd->swapped ? WEIR_JOIN_RIGHT : WEIR_JOIN_LEFT;
	if (cd->jn->kind != WEIR_JOIN_INNER && cd->jn->kind != kept)
		return sql_error(cd->sq, cd->jn->at, "keep the rows of the table that refers to the other one",
				 "not supported yet: rows of a table without one that refers to them");
	return WEIR_OK;
}

/* ---- bounds in time ---- */

/* e as a time attribute and so many milliseconds; false if it is not of that form. */
static bool time_term(const struct condition *cd, const struct weir_expr *e, uint32_t *column, int64_t *ms)
{
	*ms = 0;
	for (;;) {
		bool plus = is_call(e, "+", 2), minus = is_call(e, "-", 2);
		const struct weir_expr *by = plus || minus ? e->args[1] : NULL, *of = by != NULL ? e->args[0] : NULL;
		if (plus && of->op == WEIR_EXPR_CONST && of->type.kind == WEIR_KIND_INTERVAL_MS) {
			by = e->args[0];
			of = e->args[1];
		}
		if (by != NULL && by->op == WEIR_EXPR_CONST && !by->is_null && by->type.kind == WEIR_KIND_INTERVAL_MS) {
			int64_t step = minus ? -by->value.i64 : by->value.i64;
			if (__builtin_add_overflow(*ms, step, ms))
				return false;
			e = of;
		} else if (e->op == WEIR_EXPR_CAST && weir_kind_is_timestamp(e->type.kind) &&
			   e->type.kind == e->args[0]->type.kind && e->type.precision >= e->args[0]->type.precision) {
			e = e->args[0];
		} else {
			break;
		}
	}
	if (e->op != WEIR_EXPR_COLUMN)
		return false;
	bool right = e->column >= cd->left_count;
	const struct weir_node *in = cd->side[right]->node;
	enum weir_column_role role = in->columns[e->column - (right ? cd->left_count : 0)].role;
	*column = e->column;
	return role == WEIR_ROLE_ROWTIME || role == WEIR_ROLE_WINDOW_TIME;
}

static void bound_low(struct condition *cd, int64_t ms)
{
	cd->low = cd->has_low ? weir_max_i64(cd->low, ms) : ms;
	cd->has_low = true;
}

static void bound_high(struct condition *cd, int64_t ms)
{
	cd->high = cd->has_high ? weir_min_i64(cd->high, ms) : ms;
	cd->has_high = true;
}

/* Whether months are added to something in e. */
static bool adds_months(const struct weir_expr *e)
{
	bool adds = false;
	for (uint32_t i = 0; i < e->arg_count; i++)
		adds = adds || e->args[i]->type.kind == WEIR_KIND_INTERVAL_MONTH || adds_months(e->args[i]);
	return adds;
}

/* A comparison of the two sides' time attributes: l.t + a OP r.t + b. */
static bool take_time(struct condition *cd, const struct weir_expr *e)
{
	static const char *const names[] = {"<", "<=", ">", ">=", "="};
	uint32_t op = 0, column[2];
	int64_t ms[2];
	while (op < WEIR_COUNT_OF(names) && !is_call(e, names[op], 2))
		op++;
	if (op == WEIR_COUNT_OF(names))
		return false;
	cd->by_months = cd->by_months || adds_months(e);
	if (!time_term(cd, e->args[0], &column[0], &ms[0]) || !time_term(cd, e->args[1], &column[1], &ms[1]))
		return false;
	uint32_t left = column[0] >= cd->left_count;
	if ((column[1] >= cd->left_count) == left)
		return false;
	if (left == 1 && op < 4)
		op = (op + 2) % 4; /* the other way round */
	int32_t l = (int32_t)column[left], r = (int32_t)(column[1 - left] - cd->left_count);
	if ((cd->has_low || cd->has_high) && (cd->spec.time[0] != l || cd->spec.time[1] != r))
		return false; /* of another pair of times: bounds come from one */
	cd->spec.time[0] = l;
	cd->spec.time[1] = r;
	int64_t by = ms[left] - ms[1 - left]; /* r.t - l.t is compared with this */
	if (op == 0 || op == 1)
		bound_low(cd, by + (op == 0));
	if (op == 2 || op == 3)
		bound_high(cd, by - (op == 2));
	if (op == 4) {
		bound_low(cd, by);
		bound_high(cd, by);
	}
	return true;
}

/* ---- windows ---- */

/* l.window_start = r.window_start, or their ends. Of rows that are aggregated already the columns are keys, too. */
static bool take_window(struct condition *cd, const struct weir_expr *e)
{
	enum weir_column_role role[2];
	if (!is_call(e, "=", 2) || e->args[0]->op != WEIR_EXPR_COLUMN || e->args[1]->op != WEIR_EXPR_COLUMN)
		return false;
	uint32_t left = e->args[0]->column >= cd->left_count;
	uint32_t l = e->args[left]->column, r = e->args[1 - left]->column;
	if (l >= cd->left_count || r < cd->left_count)
		return false;
	role[0] = cd->side[0]->node->columns[l].role;
	role[1] = cd->side[1]->node->columns[r - cd->left_count].role;
	if (role[0] != role[1] || (role[0] != WEIR_ROLE_WINDOW_START && role[0] != WEIR_ROLE_WINDOW_END))
		return false;
	cd->same_start |= role[0] == WEIR_ROLE_WINDOW_START;
	cd->same_end |= role[0] == WEIR_ROLE_WINDOW_END;
	return cd->side[0]->window != NULL || take_key(cd, e);
}

/* ON compares both ends of the windows: the rows that meet have one time. */
static enum weir_err use_windows(struct condition *cd)
{
	struct weir_sql *sq = cd->sq;
	const struct weir_window_spec *l = cd->side[0]->window, *r = cd->side[1]->window;
	static const char *const hint = "write ON l.k = r.k AND l.window_start = r.window_start AND "
					"l.window_end = r.window_end";
	uint32_t at = cd->jn->on != NULL ? cd->jn->on->at : cd->jn->at;
	if (l == NULL && r == NULL) {
		if (!cd->same_start || !cd->same_end || cd->has_low || cd->has_high)
			return WEIR_OK;
		cd->has_low = cd->has_high = true; /* windows of equal ends: window_time is equal */
		return WEIR_OK;
	}
	if (l == NULL || r == NULL)
		return sql_error(sq, cd->jn->at, "put both into TUMBLE or HOP, or aggregate both",
				 "a join of rows in windows with rows that are in none");
	if (l->kind == WEIR_WINDOW_SESSION || r->kind == WEIR_WINDOW_SESSION)
		return sql_error(sq, cd->jn->at, "aggregate with GROUP BY window_start, window_end first",
				 "not supported yet: joins of rows in SESSION windows");
	if (l->kind == WEIR_WINDOW_CUMULATE || r->kind == WEIR_WINDOW_CUMULATE)
		return sql_error(sq, cd->jn->at, "aggregate with GROUP BY window_start, window_end first",
				 "not supported yet: joins of rows in CUMULATE windows");
	if (l->kind != r->kind || l->size_ms != r->size_ms || l->advance_ms != r->advance_ms ||
	    l->offset_ms != r->offset_ms)
		return sql_error(sq, cd->jn->at, NULL, "a join of windows takes windows of one kind, size and offset");
	if (!cd->same_start || !cd->same_end)
		return sql_error(sq, at, hint, "a join of rows in windows compares both ends of the windows");
	if (cd->has_low || cd->has_high)
		return sql_error(sq, at, NULL, "not supported yet: bounds in time in a join of windows");
	cd->spec.window = *l;
	cd->has_low = cd->has_high = true;
	return WEIR_OK;
}

/* ---- the whole ---- */

static void take_condition(struct condition *cd, const struct weir_expr *e)
{
	bool streams = !cd->side[0]->node->is_table && !cd->side[1]->node->is_table;
	if (e->op == WEIR_EXPR_AND) {
		for (uint32_t i = 0; i < e->arg_count; i++)
			take_condition(cd, e->args[i]);
		return;
	}
	if (streams && (take_window(cd, e) || take_time(cd, e)))
		return;
	if (take_key(cd, e))
		return;
	if (e->op == WEIR_EXPR_CONST && !e->is_null && e->type.kind == WEIR_KIND_BOOLEAN && e->value.i64 != 0)
		return;
	add_rest(cd, e);
}

struct weir_scope sql_both_scopes(struct weir_sql *sq, const struct sql_rel *l, const struct sql_rel *r,
				  const char ***qualifiers)
{
	struct weir_scope a = sql_scope(sq, l, NULL), b = sql_scope(sq, r, NULL);
	uint32_t left = l->node->column_count, count = left + r->node->column_count;
	struct weir_scope_column *c = weir_mem_take(sq->m, (count + 1) * sizeof *c);
	*qualifiers = weir_mem_take(sq->m, (count + 1) * sizeof **qualifiers);
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_scope *of = i < left ? &a : &b;
		uint32_t at = i < left ? i : i - left;
		if (at < of->count)
			c[i] = of->columns[at];
		else
			c[i] = (struct weir_scope_column){"$hidden", "$hidden", {.kind = WEIR_KIND_BOOLEAN}, true};
		(*qualifiers)[i] = c[i].qualifier;
	}
	return (struct weir_scope){.columns = c, .count = count, .aggregate_error = "ON cannot hold an aggregate"};
}

/* Whether e bounds how far the times of two streams lie apart. */
static bool is_bound(const struct condition *cd, const struct weir_expr *e)
{
	struct condition trial = *cd;
	bool is = take_time(&trial, e);
	for (uint32_t i = 0; e->op == WEIR_EXPR_AND && i < e->arg_count; i++)
		is |= is_bound(cd, e->args[i]);
	return is;
}

/* Takes from WHERE what it says of both sides of an inner join: all of it where there is no ON; else bounds in time,
 * where ON has none. */
static enum weir_err take_where(struct condition *cd, const struct weir_scope *scope, struct sql_where *wh)
{
	struct weir_sql *sq = cd->sq;
	struct weir_scope all = *scope;
	bool streams = !cd->side[0]->node->is_table && !cd->side[1]->node->is_table;
	bool bounds = streams && cd->side[0]->window == NULL && cd->side[1]->window == NULL && !cd->same_start &&
		      (!cd->has_low || !cd->has_high);
	if (cd->jn->kind != WEIR_JOIN_INNER || (!cd->jn->by_where && !bounds))
		return WEIR_OK;
	all.aggregate_error = "WHERE cannot hold an aggregate: use HAVING";
	for (uint32_t i = 0; i < wh->count; i++) {
		struct weir_diag *inner = NULL, **dg = sq->dg;
		const struct weir_expr *e = NULL;
		bool reads[2];
		if (wh->taken[i] || sql_is_semi(wh->parts[i]))
			continue;
		sq->dg = &inner;
		enum weir_err err = sql_bind_condition(sq, &all, wh->parts[i], "WHERE", &e);
		sq->dg = dg;
		if (err != WEIR_OK && wh->last && cd->jn->by_where) {
			*dg = inner;
			return err;
		}
		weir_diag_destroy(inner);
		if (err != WEIR_OK)
			continue; /* of other tables; or WHERE will say what is wrong with it */
		sides_read(cd, e, reads);
		if (!reads[0] || !reads[1] || (!cd->jn->by_where && !is_bound(cd, e)))
			continue;
		take_condition(cd, e);
		wh->taken[i] = true;
	}
	return WEIR_OK;
}

/* USING (a, b): l.a = r.a AND l.b = r.b. */
static enum weir_err take_using(struct condition *cd, const struct weir_scope *scope)
{
	struct weir_sql *sq = cd->sq;
	for (uint32_t i = 0; i < cd->jn->using_count; i++) {
		const struct weir_expr *args[2] = {NULL, NULL}, *e = NULL;
		struct weir_diag *inner = NULL;
		for (uint32_t c = 0; c < scope->count; c++)
			if (strcmp(scope->columns[c].name, cd->jn->using[i]) == 0 && !scope->columns[c].hidden)
				args[c >= cd->left_count] =
					weir_expr_column(sq->m, c, &scope->columns[c].type, scope->columns[c].name);
		if (args[0] == NULL || args[1] == NULL)
			return sql_error(sq, cd->jn->at, NULL, "USING: column %s is not in both tables",
					 cd->jn->using[i]);
		if (weir_expr_call(sq->m, "=", args, 2, &e, &inner) != WEIR_OK)
			return sql_error_from(sq, cd->jn->at, inner);
		take_condition(cd, e);
	}
	return WEIR_OK;
}

/* Whether rows come from a full join of tables: either side's key may be missing in them. */
static bool is_full_join(const struct weir_node *n)
{
	while (n->kind == WEIR_NODE_FILTER || n->kind == WEIR_NODE_PROJECT)
		n = n->inputs[0];
	return n->doubles || (n->kind == WEIR_NODE_JOIN && n->join->kind == WEIR_JOIN_FULL);
}

static const char *full_name(struct weir_sql *sq, const struct sql_rel *rel, uint32_t c)
{
	const char *of = rel->qualifiers == NULL || c >= rel->column_count ? rel->qualifier : rel->qualifiers[c];
	const char *name = rel->node->columns[c].name;
	return of == NULL ? name : weir_mem_printf(sq->m, "%s.%s", of, name);
}

/* A visible column of that role; NULL: there is none. */
static const char *name_of_role(struct weir_sql *sq, const struct sql_rel *rel, enum weir_column_role role)
{
	for (uint32_t c = 0; c < rel->column_count; c++)
		if (rel->node->columns[c].role == role)
			return full_name(sq, rel, c);
	return NULL;
}

/* Two streams without bounds in time, or with one: what to write, in the names of the query. */
static enum weir_err no_bounds(const struct condition *cd, uint32_t at)
{
	struct weir_sql *sq = cd->sq;
	const char *time[2], *start[2], *end[2], *hint;
	static const char *const text = "a join of two streams needs bounds in time: how far their time attributes may "
					"lie apart, both ways";
	for (uint32_t s = 0; s < 2; s++) {
		const struct sql_rel *rel = cd->side[s];
		start[s] = name_of_role(sq, rel, WEIR_ROLE_WINDOW_START);
		end[s] = name_of_role(sq, rel, WEIR_ROLE_WINDOW_END);
		time[s] = name_of_role(sq, rel, WEIR_ROLE_ROWTIME);
		if (time[s] == NULL)
			time[s] = name_of_role(sq, rel, WEIR_ROLE_WINDOW_TIME);
	}
	for (uint32_t s = 0; s < 2; s++) {
		const struct sql_rel *rel = cd->side[s];
		if (time[s] != NULL || start[s] != NULL)
			continue;
		for (uint32_t c = 0; c < rel->column_count; c++)
			if (sql_time_may_be_missing(rel->node, c))
				return sql_error(sq, at, SQL_KEPT_TIME,
						 "%s: %s is none any more, it is NULL in rows that an "
						 "outer join keeps without a match",
						 text, full_name(sq, rel, c));
		const char *name = rel->qualifier != NULL ? rel->qualifier
				   : s == 0               ? "the left side"
							  : "the right side";
		hint = rel->node->kind == WEIR_NODE_SOURCE
			       ? weir_mem_printf(
					 sq->m,
					 "%s has none: declare WATERMARK FOR t AS t - INTERVAL '5' SECOND where it is "
					 "created, or PRIMARY KEY (k) NOT ENFORCED if it is to be a table",
					 name)
			       : weir_mem_printf(sq->m,
						 "%s hands none on: let it select the column of WATERMARK FOR, too",
						 name);
		return sql_error(sq, at, hint, "%s", text);
	}
	if (start[0] != NULL && start[1] != NULL && end[0] != NULL && end[1] != NULL)
		hint = weir_mem_printf(sq->m, "add %s = %s AND %s = %s", start[1], start[0], end[1], end[0]);
	else if (time[0] == NULL || time[1] == NULL)
		hint = "hand window_start and window_end, or the time attribute, on from both sides";
	else if (cd->by_months)
		hint = weir_mem_printf(
			sq->m, "months are not equally long, write days: %s BETWEEN %s AND %s + INTERVAL '30' DAY",
			time[1], time[0], time[0]);
	else
		hint = weir_mem_printf(sq->m, "add %s BETWEEN %s - INTERVAL '1' HOUR AND %s + INTERVAL '1' HOUR",
				       time[1], time[0], time[0]);
	return sql_error(sq, at, hint, "%s", text);
}

static enum weir_err check_condition(const struct condition *cd)
{
	struct weir_sql *sq = cd->sq;
	const struct sql_join *jn = cd->jn;
	const struct weir_node *l = cd->side[0]->node, *r = cd->side[1]->node;
	uint32_t at = jn->on != NULL ? jn->on->at : jn->at;
	uint32_t keys = (uint32_t)(cd->keys[0].bytes / sizeof(struct weir_expr *));
	bool tables = l->is_table && r->is_table;
	for (uint32_t s = 0; s < 2; s++) {
		const struct weir_node *in = cd->side[s]->node;
		bool kept = jn->kind == WEIR_JOIN_FULL || jn->kind == (s == 0 ? WEIR_JOIN_LEFT : WEIR_JOIN_RIGHT);
		if (!in->is_table || cd->spec.foreign)
			continue;
		if (kept && !tables)
			return sql_error(sq, jn->at, "keep the stream's rows: stream LEFT JOIN table",
					 "rows of a table cannot be kept in a join with a stream");
		if (in->table_key == NULL && is_full_join(in))
			return sql_error(sq, jn->at, "FULL JOIN last, or write its result to a topic and join that",
					 "not supported yet: joining what a full join of tables makes");
		if (in->table_key == NULL)
			return sql_error(sq, jn->at, "hand its PRIMARY KEY or GROUP BY columns on",
					 "a table is joined by its key, which is not among its columns");
		for (uint32_t k = 0; k < in->table_key_count; k++) {
			const struct weir_column *c = &in->columns[in->table_key[k]];
			if (!has_key(cd, s, weir_expr_column(sq->m, in->table_key[k], &c->type, c->name)))
				return sql_error(
					sq, at,
					tables ? "compare the whole key of one table with columns of the other, of "
						 "the same types"
					       : "compare it with a column of the stream, of the same type",
					"a table is joined by its whole key: %s does not compare %s",
					jn->by_where ? "WHERE" : "ON", c->name);
		}
	}
	if (keys == 0)
		return sql_error(sq, at,
				 jn->by_where ? "compare a column of each side: WHERE a.k = b.k"
					      : "compare a column of each side: a.k = b.k",
				 "a join needs columns that are equal");
	if (!l->is_table && !r->is_table && (!cd->has_low || !cd->has_high))
		return no_bounds(cd, at);
	if ((cd->has_low || cd->has_high) && cd->low > cd->high)
		return sql_error(sq, at, "BETWEEN takes the earlier bound first", "the bounds in time leave nothing");
	return WEIR_OK;
}

/* FOR SYSTEM_TIME AS OF the left side's time attribute. A table that is read has its history, as have the last rows
 * (rank.c) of a stream that is read; what a GROUP BY makes is taken as it stands at the row's turn. */
static enum weir_err take_as_of(struct condition *cd, const struct weir_scope *scope)
{
	struct weir_sql *sq = cd->sq;
	const struct weir_ast *as_of = cd->jn->right.as_of;
	const struct weir_expr *e = NULL;
	const struct weir_node *l = cd->side[0]->node, *r = cd->side[1]->node;
	uint32_t column = 0;
	int64_t ms = 0;
	struct weir_scope left = *scope;
	if (as_of == NULL)
		return WEIR_OK;
	if (!r->is_table || l->is_table)
		return sql_error(sq, as_of->at, "give the table a PRIMARY KEY (...) NOT ENFORCED",
				 "FOR SYSTEM_TIME AS OF joins a stream with a table on its right");
	left.count = cd->left_count;
	enum weir_err err = sql_bind(sq, &left, as_of, &e);
	if (err != WEIR_OK)
		return err;
	if (!time_term(cd, e, &column, &ms) || ms != 0 || column >= cd->left_count)
		return sql_error(sq, as_of->at, "name the stream's time attribute, of its WATERMARK FOR",
				 "FOR SYSTEM_TIME AS OF takes the time attribute of the left side");
	while (r->kind == WEIR_NODE_FILTER || r->kind == WEIR_NODE_PROJECT)
		r = r->inputs[0];
	cd->spec.versioned = weir_node_has_versions(r);
	if (r->kind == WEIR_NODE_LATEST && !cd->spec.versioned)
		return sql_error(
			sq, as_of->at, "write them into a topic and join that, as a table with a PRIMARY KEY",
			"not supported yet: FOR SYSTEM_TIME AS OF the last rows of a query with a WHERE, or of "
			"more than one table");
	cd->spec.time[0] = cd->spec.versioned ? (int32_t)column : -1;
	return WEIR_OK;
}

/* The columns of a join's second input in front of those of its first, which has `first`. */
static struct weir_node *left_first(struct weir_sql *sq, struct weir_node *node, uint32_t first)
{
	uint32_t count = node->column_count;
	const char **names = weir_mem_take(sq->m, (count + 1) * sizeof *names);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (count + 1) * sizeof *exprs);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = (i + first) % count;
		names[i] = node->columns[at].name;
		exprs[i] = weir_expr_column(sq->m, at, &node->columns[at].type, names[i]);
	}
	return weir_build_project(sq->tp, node, names, exprs, count);
}

/* e over the columns of both sides, for a join whose first input is the right side. */
static const struct weir_expr *right_first(const struct condition *cd, const struct weir_expr *e)
{
	uint32_t right = cd->side[1]->node->column_count, count = cd->left_count + right;
	const struct weir_expr **map = weir_mem_take(cd->sq->m, (count + 1) * sizeof *map);
	for (uint32_t i = 0; i < count; i++) {
		bool left = i < cd->left_count;
		const struct weir_column *c =
			left ? &cd->side[0]->node->columns[i] : &cd->side[1]->node->columns[i - cd->left_count];
		map[i] = weir_expr_column(cd->sq->m, left ? i + right : i - cd->left_count, &c->type, c->name);
	}
	return weir_expr_substitute(e, map, count, cd->sq->m);
}

/* FULL JOIN of two tables on more than equal keys: rows of one key that do not fit each other both stand alone. So it
 * is what keeps the left one's rows, and beside it the rows of the right one that have no match. */
static struct weir_node *build_both_kept(struct condition *cd, struct weir_node *const in[2])
{
	struct weir_sql *sq = cd->sq;
	const char *name = sql_state_name(sq, "join");
	struct weir_join_spec spec = cd->spec;
	spec.kind = WEIR_JOIN_LEFT;
	struct weir_node *kept[2] = {weir_build_join(sq->tp, in[0], in[1], name, &spec)};
	spec.kind = WEIR_JOIN_RIGHT;
	struct weir_node *alone =
		weir_build_join(sq->tp, in[0], in[1], weir_mem_printf(sq->m, "%s-right", name), &spec);
	if (sql_check_built(sq, cd->jn->at) != WEIR_OK)
		return alone;
	/* A match has no NULL in what it is joined by. */
	uint32_t key = in[0]->table_key[0];
	const struct weir_expr *column =
		weir_expr_column(sq->m, key, &alone->columns[key].type, alone->columns[key].name);
	const struct weir_expr *missing = NULL;
	if (weir_expr_call(sq->m, "IS NULL", &column, 1, &missing, sq->dg) != WEIR_OK)
		return alone;
	kept[1] = weir_build_filter(sq->tp, alone, missing);
	struct weir_node *both = weir_build_union(sq->tp, kept, 2);
	both->doubles = true;
	return both;
}

/* What names a row of joined tables where no one column does: COALESCE of the keys of a full join, behind the visible
 * columns; and of a join over such a one its column, which goes behind them. */
static enum weir_err hide_keys(struct condition *cd, struct sql_rel *rel)
{
	struct weir_sql *sq = cd->sq;
	struct weir_node *in = rel->node;
	uint32_t left = cd->left_count, count = in->column_count, keys = 0, kept = 0;
	bool full = cd->jn->kind == WEIR_JOIN_FULL && !in->doubles;
	const char **names = weir_mem_take(sq->m, (2 * count + 1) * sizeof *names);
	const char **qualifiers = weir_mem_take(sq->m, (2 * count + 1) * sizeof *qualifiers);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (2 * count + 1) * sizeof *exprs);
	uint32_t *key = weir_mem_take(sq->m, (count + 1) * sizeof *key);
	bool *hidden = weir_mem_take(sq->m, count + 1), any_hidden = false;
	for (uint32_t c = 0; c < count; c++) {
		hidden[c] = c < left ? c >= cd->side[0]->column_count : c - left >= cd->side[1]->column_count;
		any_hidden = any_hidden || hidden[c];
		if (hidden[c])
			continue;
		names[kept] = in->columns[c].name;
		qualifiers[kept] = rel->qualifiers[c];
		exprs[kept] = weir_expr_column(sq->m, c, &in->columns[c].type, names[kept]);
		kept++;
		cd->left_kept += c < left;
	}
	if (!any_hidden && !full)
		return WEIR_OK;
	uint32_t total = kept;
	for (uint32_t k = 0; full && k < cd->spec.key_count; k++) {
		uint32_t at[2] = {cd->spec.keys[0][k]->column, cd->spec.keys[1][k]->column + left};
		const struct weir_expr *pair[2];
		for (uint32_t s = 0; s < 2; s++)
			pair[s] = weir_expr_column(sq->m, at[s], &in->columns[at[s]].type, in->columns[at[s]].name);
		if (weir_expr_call(sq->m, "COALESCE", pair, 2, &exprs[total], sq->dg) != WEIR_OK)
			return weir_diag_code(*sq->dg);
		names[total] = weir_mem_printf(sq->m, "COALESCE(%s, %s)", full_name(sq, cd->side[0], at[0]),
					       full_name(sq, cd->side[1], at[1] - left));
		key[keys++] = total++;
	}
	for (uint32_t k = 0; k < in->table_key_count; k++) {
		uint32_t c = in->table_key[k];
		if (!hidden[c])
			continue;
		names[total] = in->columns[c].name;
		exprs[total] = weir_expr_column(sq->m, c, &in->columns[c].type, names[total]);
		total++;
		rel->hidden_key = true;
	}
	rel->node = weir_build_project(sq->tp, in, names, exprs, total);
	rel->column_count = kept;
	rel->qualifiers = qualifiers;
	if (full) {
		/* Over another full join its keys are not there by name. */
		rel->hidden_key = any_hidden;
		rel->node->table_key = key;
		rel->node->table_key_count = keys;
	}
	return sql_check_built(sq, cd->jn->at);
}

static enum weir_err build(struct condition *cd, const char *const *qualifiers, struct sql_rel *rel)
{
	struct weir_sql *sq = cd->sq;
	struct weir_join_spec *spec = &cd->spec;
	spec->kind = cd->jn->kind;
	spec->key_count = (uint32_t)(cd->keys[0].bytes / sizeof(struct weir_expr *));
	for (uint32_t s = 0; s < 2; s++)
		spec->keys[s] = weir_mem_copy(sq->m, cd->keys[s].data, cd->keys[s].bytes);
	spec->within = cd->has_low;
	spec->before_ms = cd->has_low ? -cd->low : 0;
	spec->after_ms = cd->has_high ? cd->high : 0;
	spec->grace_ms = -1;
	bool inner = spec->kind == WEIR_JOIN_INNER;
	spec->residual = inner ? NULL : cd->rest;
	struct weir_node *in[2] = {cd->side[0]->node, cd->side[1]->node};
	if (cd->swapped) {
		const struct weir_expr *const *keys = spec->keys[0];
		spec->keys[0] = spec->keys[1];
		spec->keys[1] = keys;
		spec->kind = inner ? WEIR_JOIN_INNER : WEIR_JOIN_LEFT;
		if (spec->residual != NULL)
			spec->residual = right_first(cd, spec->residual);
	}
	bool twice = in[0]->is_table && in[1]->is_table && spec->kind == WEIR_JOIN_FULL && spec->residual != NULL;
	struct weir_node *node =
		twice ? build_both_kept(cd, in)
		      : weir_build_join(sq->tp, in[cd->swapped], in[!cd->swapped], sql_state_name(sq, "join"), spec);
	enum weir_err err = sql_check_built(sq, cd->jn->at);
	if (err == WEIR_OK && cd->swapped)
		node = left_first(sq, node, in[1]->column_count);
	if (err == WEIR_OK && inner && cd->rest != NULL) {
		node = weir_build_filter(sq->tp, node, cd->rest);
		err = sql_check_built(sq, cd->jn->at);
	}
	*rel = (struct sql_rel){.node = node, .column_count = node->column_count, .qualifiers = qualifiers};
	if (err == WEIR_OK && node->is_table)
		err = hide_keys(cd, rel);
	else
		cd->left_kept = cd->left_count;
	if (err == WEIR_OK && rel->node->is_table && !rel->hidden_key && spec->kind != WEIR_JOIN_FULL)
		sql_name_table_key(sq, rel);
	return err;
}

/* What USING makes of the columns: of each pair one is meant by the name alone, the one that is there; of a full join a
 * further column, what is there of both. */
static enum weir_err merge_using(struct condition *cd, struct sql_rel *rel)
{
	struct weir_sql *sq = cd->sq;
	const struct sql_join *jn = cd->jn;
	const struct weir_node *in = rel->node;
	uint32_t count = rel->column_count, most = count + jn->using_count;
	bool full = jn->kind == WEIR_JOIN_FULL;
	const char **names = weir_mem_take(sq->m, (most + 1) * sizeof *names);
	const char **qualifiers = weir_mem_take(sq->m, (most + 1) * sizeof *qualifiers);
	const struct weir_expr **exprs = weir_mem_take(sq->m, (most + 1) * sizeof *exprs);
	uint8_t *using = weir_mem_take(sq->m, most + 1);
	if (jn->using_count == 0 && cd->side[0]->using == NULL)
		return WEIR_OK;
	for (uint32_t c = 0; c < count; c++) {
		names[c] = in->columns[c].name;
		qualifiers[c] = rel->qualifiers[c];
		exprs[c] = weir_expr_column(sq->m, c, &in->columns[c].type, names[c]);
		if (cd->side[0]->using != NULL && c < cd->side[0]->column_count)
			using[c] = cd->side[0]->using[c];
	}
	for (uint32_t i = 0; i < jn->using_count; i++) {
		const struct weir_expr *pair[2] = {NULL, NULL};
		for (uint32_t c = 0; c < count; c++)
			if (strcmp(names[c], jn->using[i]) == 0 && using[c] != SQL_USING_QUALIFIED)
				pair[c >= cd->left_kept] = exprs[c];
		for (uint32_t s = 0; s < 2; s++) {
			bool here = !full && s == (jn->kind == WEIR_JOIN_RIGHT);
			using[pair[s]->column] = here ? SQL_USING_FIRST : SQL_USING_QUALIFIED;
		}
		if (!full)
			continue;
		names[count + i] = jn->using[i];
		using[count + i] = SQL_USING_FIRST;
		if (weir_expr_call(sq->m, "COALESCE", pair, 2, &exprs[count + i], sq->dg) != WEIR_OK)
			return weir_diag_code(*sq->dg);
	}
	struct sql_rel of = *rel;
	enum weir_err err = full ? sql_project(sq, &of, names, exprs, most, jn->at, rel) : WEIR_OK;
	rel->qualifiers = qualifiers;
	rel->using = using;
	return err;
}

/* The conditions are taken: the join. */
static enum weir_err finish(struct condition *cd, const char *const *qualifiers, struct sql_rel *rel)
{
	enum weir_err err = use_windows(cd);
	if (err == WEIR_OK)
		err = choose_keys(cd);
	if (err == WEIR_OK)
		err = check_condition(cd);
	return err == WEIR_OK ? build(cd, qualifiers, rel) : err;
}

static void fini(struct condition *cd)
{
	weir_buf_fini(&cd->keys[0]);
	weir_buf_fini(&cd->keys[1]);
	weir_buf_fini(&cd->pairs);
}

/* Two tables of one name: neither could be meant by it. */
static enum weir_err check_names(struct weir_sql *sq, const struct sql_join *jn, const struct sql_rel *left,
				 const struct sql_rel *right)
{
	bool same = false;
	for (uint32_t c = 0; right->qualifier != NULL && c < left->column_count; c++) {
		const char *of = left->qualifiers != NULL ? left->qualifiers[c] : left->qualifier;
		same = same || (of != NULL && strcmp(of, right->qualifier) == 0);
	}
	return !same ? WEIR_OK
		     : sql_error(sq, jn->right.at,
				 weir_mem_printf(sq->m, "give one of them another name: %s AS %s2",
						 jn->right.table != NULL ? jn->right.table : "(SELECT ..)",
						 right->qualifier),
				 "two tables are called %s", right->qualifier);
}

enum weir_err sql_compile_join(struct weir_sql *sq, const struct sql_join *jn, struct sql_where *wh,
			       struct sql_rel *rel)
{
	struct sql_rel left = *rel, right;
	if (jn->unnest != NULL)
		return sql_compile_unnest(sq, jn, rel);
	enum weir_err err = sql_compile_from(sq, &jn->right, false, &right);
	if (err != WEIR_OK)
		return err;
	err = check_names(sq, jn, &left, &right);
	if (err != WEIR_OK)
		return err;
	struct condition cd = {.sq = sq,
			       .jn = jn,
			       .side = {&left, &right},
			       .left_count = left.node->column_count,
			       .spec = {.time = {-1, -1}}};
	const char **qualifiers = NULL;
	struct weir_scope scope = sql_both_scopes(sq, &left, &right, &qualifiers);
	if (jn->on != NULL) {
		const struct weir_expr *e = NULL;
		err = sql_bind_condition(sq, &scope, jn->on, "ON", &e);
		if (err == WEIR_OK)
			take_condition(&cd, e);
	} else {
		err = take_using(&cd, &scope);
	}
	if (err == WEIR_OK && wh != NULL)
		err = take_where(&cd, &scope, wh);
	if (err == WEIR_OK)
		err = take_as_of(&cd, &scope);
	if (err == WEIR_OK)
		err = finish(&cd, qualifiers, rel);
	if (err == WEIR_OK)
		err = merge_using(&cd, rel);
	fini(&cd);
	return err;
}

enum weir_err sql_join_by(struct weir_sql *sq, const struct sql_join *jn, const struct sql_rel *left,
			  const struct sql_rel *right, const struct weir_expr *const *on, uint32_t count,
			  struct sql_rel *out)
{
	struct condition cd = {.sq = sq,
			       .jn = jn,
			       .side = {left, right},
			       .left_count = left->node->column_count,
			       .spec = {.time = {-1, -1}}};
	const char **qualifiers = NULL;
	(void)sql_both_scopes(sq, left, right, &qualifiers);
	for (uint32_t i = 0; i < count; i++)
		take_condition(&cd, on[i]);
	enum weir_err err = finish(&cd, qualifiers, out);
	fini(&cd);
	return err;
}
