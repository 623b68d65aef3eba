/* tree.c: passes over bound expressions: order, substitution, equality, printing. Expressions are shared DAGs of up to
 * a million nodes and any depth: every pass visits a node once, with a stack of its own. Cold path, @thread init. */
#include "hotpath/expr/tree.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hotpath/expr/function.h"
#include "hotpath/expr/user.h"
#include "hotpath/format/number.h"
#include "hotpath/time/civil.h"

#define PRINT_BYTES_MAX (64 * 1024)
#define EQUAL_STEPS_MAX 1000000

/* ---- a map from node to number ---- */

struct node_map {
	const struct weir_expr **key;
	uint32_t *value;
	size_t mask; /* slots - 1 */
	size_t count;
};

static size_t map_slot(const struct node_map *nm, const struct weir_expr *e)
{
	size_t i = (size_t)(((uintptr_t)e >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & nm->mask;
	while (nm->key[i] != NULL && nm->key[i] != e)
		i = (i + 1) & nm->mask;
	return i;
}

static void map_init(struct node_map *nm, size_t slots)
{
	nm->key = weir_xcalloc(slots, sizeof *nm->key);
	nm->value = weir_xcalloc(slots, sizeof *nm->value);
	nm->mask = slots - 1;
	nm->count = 0;
}

static void map_fini(struct node_map *nm)
{
	free(nm->key);
	free(nm->value);
}

static void map_put(struct node_map *nm, const struct weir_expr *e, uint32_t value)
{
	if (nm->count * 2 > nm->mask) {
		struct node_map more;
		map_init(&more, (nm->mask + 1) * 2);
		for (size_t i = 0; i <= nm->mask; i++)
			if (nm->key[i] != NULL)
				map_put(&more, nm->key[i], nm->value[i]);
		map_fini(nm);
		*nm = more;
	}
	size_t i = map_slot(nm, e);
	nm->count += nm->key[i] == NULL;
	nm->key[i] = e;
	nm->value[i] = value;
}

static bool map_get(const struct node_map *nm, const struct weir_expr *e, uint32_t *value)
{
	size_t i = map_slot(nm, e);
	if (nm->key[i] == NULL)
		return false;
	*value = nm->value[i];
	return true;
}

/* ---- order ---- */

struct visit {
	const struct weir_expr *e;
	uint32_t next;
};

/* Puts the nodes below exprs into *out, arguments first, and their numbers into nm. */
static size_t order(const struct weir_expr *const *exprs, uint32_t count, size_t limit, struct weir_buf *out,
		    struct node_map *nm)
{
	struct weir_buf stack = {0};
	uint32_t number;
	size_t n = 0;
	for (uint32_t i = 0; i < count && n <= limit; i++) {
		struct visit v = {exprs[i], 0};
		if (exprs[i] == NULL || map_get(nm, exprs[i], &number))
			continue;
		weir_buf_put(&stack, &v, sizeof v);
		while (stack.bytes > 0 && n <= limit) {
			struct visit *top = (struct visit *)(stack.data + stack.bytes) - 1;
			if (top->next < top->e->arg_count) {
				struct visit child = {top->e->args[top->next++], 0};
				if (!map_get(nm, child.e, &number))
					weir_buf_put(&stack, &child, sizeof child);
				continue;
			}
			stack.bytes -= sizeof *top;
			if (map_get(nm, top->e, &number))
				continue; /* pushed twice before it was done */
			map_put(nm, top->e, (uint32_t)n++);
			weir_buf_put(out, &top->e, sizeof top->e);
		}
	}
	weir_buf_fini(&stack);
	return n;
}

size_t weir_expr_order(const struct weir_expr *const *exprs, uint32_t count, size_t limit,
		       const struct weir_expr ***out)
{
	struct weir_buf nodes = {0};
	struct node_map nm;
	map_init(&nm, 64);
	size_t n = order(exprs, count, limit, &nodes, &nm);
	map_fini(&nm);
	if (out == NULL)
		weir_buf_fini(&nodes);
	else
		*out = (const struct weir_expr **)nodes.data;
	return n;
}

size_t weir_expr_count_nodes(const struct weir_expr *const *exprs, uint32_t count, size_t limit)
{
	return weir_expr_order(exprs, count, limit, NULL);
}

void weir_expr_columns_used(const struct weir_expr *e, bool *used, uint32_t count)
{
	const struct weir_expr **nodes = NULL;
	size_t n = weir_expr_order(&e, 1, SIZE_MAX - 1, &nodes);
	for (size_t i = 0; i < n; i++)
		if (nodes[i]->op == WEIR_EXPR_COLUMN && nodes[i]->column < count)
			used[nodes[i]->column] = true;
	free(nodes);
}

/* ---- substitution ---- */

/* e with other arguments: made again where constants may now fold, its text kept. */
static const struct weir_expr *rebuild(const struct weir_expr *e, const struct weir_expr *const *args,
				       struct weir_mem *m)
{
	struct weir_expr_problem pb;
	struct weir_diag *dg = NULL;
	bool any_const = false;
	for (uint32_t i = 0; i < e->arg_count; i++)
		any_const = any_const || (args[i]->op == WEIR_EXPR_CONST && e->args[i]->op != WEIR_EXPR_CONST);
	if (any_const && (e->op == WEIR_EXPR_AND || e->op == WEIR_EXPR_OR)) {
		const struct weir_expr *x =
			weir_expr_make_call(m, e->op == WEIR_EXPR_AND ? "AND" : "OR", args, e->arg_count, &pb);
		if (x != NULL)
			return x;
	}
	struct weir_expr *x = weir_mem_copy(m, e, sizeof *e);
	x->args = weir_mem_copy(m, args, e->arg_count * sizeof *args);
	if (any_const && e->op == WEIR_EXPR_CALL && e->fn->prepare != NULL) {
		const void *data = NULL;
		if (e->fn->prepare(x->args, x->arg_count, m, &data, &dg) == WEIR_OK)
			x->fn_data = data;
		weir_diag_destroy(dg); /* a bad pattern shows when a row meets it */
	}
	return weir_expr_fold(x, m);
}

const struct weir_expr *weir_expr_substitute(const struct weir_expr *e, const struct weir_expr *const *columns,
					     uint32_t column_count, struct weir_mem *m)
{
	struct weir_buf nodes = {0}, args = {0};
	struct node_map nm;
	map_init(&nm, 64);
	size_t n = order(&e, 1, SIZE_MAX - 1, &nodes, &nm);
	const struct weir_expr **old = (const struct weir_expr **)nodes.data;
	const struct weir_expr **fresh = weir_xcalloc(n + 1, sizeof *fresh);
	for (size_t i = 0; i < n; i++) {
		bool changed = false;
		fresh[i] = old[i];
		if (old[i]->op == WEIR_EXPR_COLUMN && old[i]->column < column_count &&
		    columns[old[i]->column] != NULL) {
			fresh[i] = columns[old[i]->column];
			/* A column read as a wider type of the same form stays so. */
			if (!weir_type_equal(&fresh[i]->type, &old[i]->type)) {
				const struct weir_expr *as = weir_expr_coerce(fresh[i], &old[i]->type, m);
				fresh[i] = as == NULL ? fresh[i] : as;
			}
			continue;
		}
		args.bytes = 0;
		for (uint32_t k = 0; k < old[i]->arg_count; k++) {
			uint32_t number = 0;
			bool known = map_get(&nm, old[i]->args[k], &number);
			WEIR_ASSERT(known);
			changed = changed || fresh[number] != old[i]->args[k];
			weir_buf_put(&args, &fresh[number], sizeof fresh[number]);
		}
		if (changed)
			fresh[i] = rebuild(old[i], (const struct weir_expr *const *)args.data, m);
	}
	const struct weir_expr *result = fresh[n - 1];
	free(fresh);
	map_fini(&nm);
	weir_buf_fini(&nodes);
	weir_buf_fini(&args);
	return result;
}

/* ---- equality ---- */

static bool same_value(const struct weir_expr *a, const struct weir_expr *b)
{
	if (a->is_null || b->is_null)
		return a->is_null == b->is_null;
	switch (weir_type_phys(&a->type)) {
	case WEIR_PHYS_F64:
		return memcmp(&a->value.f64, &b->value.f64, sizeof a->value.f64) == 0;
	case WEIR_PHYS_I128:
		return a->value.i128 == b->value.i128;
	case WEIR_PHYS_STR:
		return a->value.str.bytes == b->value.str.bytes &&
		       (a->value.str.bytes == 0 ||
			memcmp(a->value.str.data, b->value.str.data, a->value.str.bytes) == 0);
	default:
		return a->value.i64 == b->value.i64;
	}
}

/* Whether two nodes agree but for their arguments. */
static bool same_node(const struct weir_expr *a, const struct weir_expr *b)
{
	if (a->op != b->op || a->arg_count != b->arg_count || !weir_type_equal(&a->type, &b->type))
		return false;
	if (a->op == WEIR_EXPR_COLUMN)
		return a->column == b->column;
	if (a->op == WEIR_EXPR_CONST)
		return same_value(a, b);
	return a->op != WEIR_EXPR_CALL || a->fn == b->fn;
}

bool weir_expr_equal(const struct weir_expr *a, const struct weir_expr *b)
{
	struct weir_buf stack = {0}; /* pairs still to compare; the first argument is followed at once */
	const struct weir_expr *pair[2];
	bool equal = true;
	uint32_t steps = 0;
	for (;;) {
		/* Two DAGs that share much could take for ever; "not equal" is always a safe answer. */
		equal = a == b || (++steps < EQUAL_STEPS_MAX && same_node(a, b));
		if (!equal)
			break;
		for (uint32_t i = 1; a != b && i < a->arg_count; i++) {
			pair[0] = a->args[i];
			pair[1] = b->args[i];
			weir_buf_put(&stack, pair, sizeof pair);
		}
		if (a != b && a->arg_count > 0) {
			a = a->args[0];
			b = b->args[0];
			continue;
		}
		if (stack.bytes == 0)
			break;
		stack.bytes -= sizeof pair;
		memcpy(pair, stack.data + stack.bytes, sizeof pair);
		a = pair[0];
		b = pair[1];
	}
	weir_buf_fini(&stack);
	return equal;
}

/* ---- printing ---- */

static void put_quoted(struct weir_buf *out, const uint8_t *s, size_t bytes)
{
	weir_buf_put_byte(out, '\'');
	for (size_t i = 0; i < bytes; i++) {
		if (s[i] == '\'')
			weir_buf_put_byte(out, '\'');
		weir_buf_put_byte(out, s[i]);
	}
	weir_buf_put_byte(out, '\'');
}

/* The shortest digits that read back as the same double, always with an exponent or a point, so that it is no INTEGER.
 */
static void put_double(struct weir_buf *out, double d)
{
	char buf[WEIR_NUMBER_TEXT_MAX];
	size_t bytes = weir_print_double(d, buf);
	weir_buf_put(out, buf, bytes);
	if (!isnan(d) && !isinf(d) && memchr(buf, 'e', bytes) == NULL && memchr(buf, 'E', bytes) == NULL)
		weir_buf_puts(out, "e0");
}

static void put_const(struct weir_buf *out, const struct weir_expr *e)
{
	char buf[WEIR_CIVIL_TEXT_MAX], number[WEIR_NUMBER_TEXT_MAX];
	const struct weir_type *t = &e->type;
	if (e->is_null) {
		weir_buf_puts(out, "NULL");
		return;
	}
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		weir_buf_puts(out, e->value.i64 != 0 ? "TRUE" : "FALSE");
		break;
	case WEIR_KIND_FLOAT:
	case WEIR_KIND_DOUBLE:
		put_double(out, e->value.f64);
		break;
	case WEIR_KIND_DECIMAL:
		weir_buf_put(out, number,
			     weir_print_decimal(weir_type_phys(t) == WEIR_PHYS_I128 ? e->value.i128 : e->value.i64,
						t->scale, number));
		break;
	case WEIR_KIND_DATE:
		weir_buf_puts(out, "DATE ");
		put_quoted(out, (uint8_t *)buf, weir_civil_print_date(e->value.i64, buf));
		break;
	case WEIR_KIND_TIME:
		weir_buf_puts(out, "TIME ");
		put_quoted(out, (uint8_t *)buf, weir_civil_print_time(e->value.i64, t->precision, buf));
		break;
	case WEIR_KIND_TIMESTAMP:
	case WEIR_KIND_TIMESTAMP_LTZ:
		weir_buf_puts(out, t->kind == WEIR_KIND_TIMESTAMP ? "TIMESTAMP " : "TIMESTAMP_LTZ ");
		put_quoted(out, (uint8_t *)buf,
			   weir_civil_print_timestamp(e->value.i64, weir_ticks_per_ms(t), ' ', false, buf));
		break;
	case WEIR_KIND_INTERVAL_MS:
		weir_buf_printf(out, "INTERVAL '%" PRId64 "' MILLISECOND", e->value.i64);
		break;
	case WEIR_KIND_INTERVAL_MONTH:
		weir_buf_printf(out, "INTERVAL '%" PRId64 "' MONTH", e->value.i64);
		break;
	case WEIR_KIND_BYTES:
		weir_buf_puts(out, "X'");
		for (uint32_t i = 0; i < e->value.str.bytes && i < 64; i++)
			weir_buf_printf(out, "%02x", e->value.str.data[i]);
		weir_buf_puts(out, e->value.str.bytes > 64 ? "...'" : "'");
		break;
	default:
		if (weir_type_phys(t) == WEIR_PHYS_STR)
			put_quoted(out, e->value.str.data, e->value.str.bytes);
		else
			weir_buf_printf(out, "%" PRId64, e->value.i64);
	}
}

/* Either a node to print, or text, or the type of a cast. */
struct piece {
	const struct weir_expr *node;
	const char *text;
};

struct printer {
	struct weir_buf *out;
	const char *const *names;
	struct weir_buf stack;
	struct weir_buf pieces;
};

static void add(struct printer *pr, const struct weir_expr *node, const char *text)
{
	struct piece pc = {node, text};
	weir_buf_put(&pr->pieces, &pc, sizeof pc);
}

static void add_list(struct printer *pr, const struct weir_expr *e, uint32_t from, const char *a, const char *b,
		     const char *c)
{
	for (uint32_t i = from; i < e->arg_count; i++) {
		if (i > from) {
			add(pr, NULL, a);
			add(pr, NULL, b);
			add(pr, NULL, c);
		}
		add(pr, e->args[i], NULL);
	}
}

static void split_call(struct printer *pr, const struct weir_expr *e)
{
	const char *name = e->fn->name;
	if (weir_user_is_result(e, &name)) {
		add(pr, e->args[0], NULL);
		add(pr, NULL, ".");
		add(pr, NULL, name);
		return;
	}
	if (weir_user_is_call(e)) {
		add(pr, NULL, name);
		add(pr, NULL, "(");
		add_list(pr, e, 0, ", ", "", "");
		add(pr, NULL, ")");
		return;
	}
	bool word = name[0] >= 'A' && name[0] <= 'Z';
	if (e->arg_count == 1 && (strcmp(name, "NEG") == 0 || strcmp(name, "NOT") == 0)) {
		add(pr, NULL, name[2] == 'T' ? "(NOT " : "(-");
		add(pr, e->args[0], NULL);
		add(pr, NULL, ")");
	} else if (strncmp(name, "IS ", 3) == 0) {
		add(pr, NULL, "(");
		add(pr, e->args[0], NULL);
		add(pr, NULL, " ");
		add(pr, NULL, name);
		if (e->arg_count == 2) {
			add(pr, NULL, " ");
			add(pr, e->args[1], NULL);
		}
		add(pr, NULL, ")");
	} else if (strcmp(name, "IN") == 0) {
		add(pr, NULL, "(");
		add(pr, e->args[0], NULL);
		add(pr, NULL, " IN (");
		add_list(pr, e, 1, ", ", "", "");
		add(pr, NULL, "))");
	} else if (strcmp(name, "FIELD") == 0 && e->arg_count == 2 && e->args[1]->op == WEIR_EXPR_CONST) {
		add(pr, e->args[0], NULL);
		add(pr, NULL, ".");
		add(pr, e->args[1], "name");
	} else if (strcmp(name, "ITEM") == 0 && e->arg_count == 2) {
		add(pr, e->args[0], NULL);
		add(pr, NULL, "[");
		add(pr, e->args[1], NULL);
		add(pr, NULL, "]");
	} else if (e->arg_count == 2 && (!word || strcmp(name, "LIKE") == 0)) {
		add(pr, NULL, "(");
		add_list(pr, e, 0, " ", name, " ");
		add(pr, NULL, ")");
	} else {
		add(pr, NULL, name);
		add(pr, NULL, "(");
		add_list(pr, e, 0, ", ", "", "");
		add(pr, NULL, ")");
	}
}

static void split(struct printer *pr, const struct weir_expr *e)
{
	switch (e->op) {
	case WEIR_EXPR_COLUMN:
		if (pr->names != NULL)
			weir_buf_puts(pr->out, pr->names[e->column]);
		else
			weir_buf_printf(pr->out, "$%u", e->column);
		break;
	case WEIR_EXPR_CONST:
		put_const(pr->out, e);
		break;
	case WEIR_EXPR_CALL:
		split_call(pr, e);
		break;
	case WEIR_EXPR_CAST:
	case WEIR_EXPR_TRY_CAST:
		add(pr, NULL, e->op == WEIR_EXPR_CAST ? "CAST(" : "TRY_CAST(");
		add(pr, e->args[0], NULL);
		add(pr, NULL, " AS ");
		add(pr, e, "type");
		add(pr, NULL, ")");
		break;
	case WEIR_EXPR_CASE:
		add(pr, NULL, "CASE");
		for (uint32_t i = 0; i + 1 < e->arg_count; i += 2) {
			add(pr, NULL, " WHEN ");
			add(pr, e->args[i], NULL);
			add(pr, NULL, " THEN ");
			add(pr, e->args[i + 1], NULL);
		}
		add(pr, NULL, " ELSE ");
		add(pr, e->args[e->arg_count - 1], NULL);
		add(pr, NULL, " END");
		break;
	case WEIR_EXPR_AND:
	case WEIR_EXPR_OR:
		add(pr, NULL, "(");
		add_list(pr, e, 0, " ", e->op == WEIR_EXPR_AND ? "AND" : "OR", " ");
		add(pr, NULL, ")");
		break;
	case WEIR_EXPR_COALESCE:
		if (e->arg_count == 1) { /* only there to hold a type */
			add(pr, e->args[0], NULL);
			break;
		}
		add(pr, NULL, "COALESCE(");
		add_list(pr, e, 0, ", ", "", "");
		add(pr, NULL, ")");
		break;
	}
}

static void put_detail(struct weir_buf *out, const struct piece *pc)
{
	char type[256];
	struct weir_type t = pc->node->type;
	t.not_null = false;
	if (pc->text[0] == 't')
		weir_buf_puts(out, weir_type_text(&t, type, sizeof type));
	else
		weir_buf_put(out, pc->node->value.str.data, pc->node->value.str.bytes);
}

void weir_expr_print(const struct weir_expr *e, const char *const *names, struct weir_buf *out)
{
	struct printer pr = {.out = out, .names = names};
	size_t start = out->bytes;
	struct piece pc = {e, NULL};
	weir_buf_put(&pr.stack, &pc, sizeof pc);
	while (pr.stack.bytes > 0) {
		pr.stack.bytes -= sizeof pc;
		memcpy(&pc, pr.stack.data + pr.stack.bytes, sizeof pc);
		if (out->bytes - start > PRINT_BYTES_MAX) {
			weir_buf_puts(out, "...");
			break;
		}
		if (pc.node == NULL) {
			weir_buf_puts(out, pc.text);
			continue;
		}
		if (pc.text != NULL) {
			put_detail(out, &pc);
			continue;
		}
		pr.pieces.bytes = 0;
		split(&pr, pc.node);
		for (size_t n = pr.pieces.bytes; n > 0; n -= sizeof pc)
			weir_buf_put(&pr.stack, pr.pieces.data + n - sizeof pc, sizeof pc);
	}
	weir_buf_fini(&pr.stack);
	weir_buf_fini(&pr.pieces);
}
