/* program.c: compiles bound expressions to a straight list of instructions over columns and runs it. Compiling: @thread
 * init; running: the worker (or snapshotter) that owns the program.
 *
 * Compiling numbers the distinct nodes of the DAG (equal sub-expressions share a number), then emits instructions that
 * write virtual columns, then maps those to few registers by their lifetimes: the list only jumps forward, so a
 * lifetime is an interval. All three passes keep their own stacks: a chain of 100,000 terms costs heap, not stack.
 *
 * Selections have levels: level 0 is the caller's selection; AND, OR, COALESCE and CASE run later arguments at a deeper
 * level that holds only the rows still undecided. A value computed at one level serves everything below it until that
 * level ends, as deeper rows are a subset. A row that fails leaves every level.
 *
 *   a AND f(b)          slot 1 <- a            level 0
 *                       slot 2 <- slot 1, rows not FALSE go to level 1; none: jump
 *                       slot 3 <- f(b)         level 1
 *                       slot 2 <- AND slot 3   level 1, narrowed */
#include "hotpath/expr/program.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/core/mem.h"
#include "hotpath/expr/cast.h"
#include "hotpath/expr/kernel.h"

#define NONE UINT32_MAX

enum op {
	OP_CALL,
	OP_CAST,
	OP_CLEAR,     /* out: no row null */
	OP_MOVE,      /* out <- in for the rows of level */
	OP_NULL,      /* out null for the rows of level */
	OP_AND_FIRST, /* out <- in at level; level + 1: rows not FALSE */
	OP_AND_NEXT,  /* out <- out AND in at level; level narrowed */
	OP_OR_FIRST,
	OP_OR_NEXT,
	OP_COALESCE_FIRST, /* out <- in at level; level + 1: rows that are NULL */
	OP_COALESCE_NEXT,
	OP_CASE_BEGIN, /* level + 1: a copy of level */
	OP_CASE_WHEN,  /* level + 1: rows of level where in is TRUE; they leave level; none: jump */
	OP_JUMP_EMPTY  /* level empty: jump */
};

struct insn {
	enum op op;
	uint32_t level;
	uint32_t out;
	uint32_t in;   /* a slot; for OP_CALL the first of arg_count slots in operand[] */
	uint32_t jump; /* while compiling: the next instruction with the same, yet unknown, target */
	const struct weir_expr *e;
	void *state;
};

struct weir_program {
	struct insn *insn;
	uint32_t insn_count;
	uint32_t *operand;
	const struct weir_col **slot; /* inputs, constants, registers: what operands number */
	struct weir_col *column;      /* constants, then registers: slot[input_count ...] */
	uint32_t *input;              /* slot[i] is the caller's column input[i], i < input_count */
	uint32_t input_count, const_count, register_count;
	uint32_t *result; /* slots of the expressions */
	uint32_t result_count;
	struct weir_sel **level; /* level[0] is the caller's */
	uint32_t level_count;
	const struct weir_col **args; /* of the call that runs */
	uint16_t *rows;               /* rows of a call without NULL arguments */
	struct weir_buf text;
	const struct weir_col **filter_out;
};

/* -- numbering -- */

struct node {
	const struct weir_expr *e;
	uint32_t child; /* first of e->arg_count numbers in child[] */
	uint64_t hash;
};

struct vec {
	void *data;
	uint32_t count, capacity;
	uint32_t item_bytes;
};

static void *vec_add(struct vec *v, uint32_t n)
{
	if (v->capacity - v->count < n) {
		v->capacity = v->capacity * 2 + n + 16;
		v->data = weir_xrealloc(v->data, (size_t)v->capacity * v->item_bytes);
	}
	void *p = v->data == NULL ? NULL : (char *)v->data + (size_t)v->count * v->item_bytes;
	if (n != 0)
		memset(p, 0, (size_t)n * v->item_bytes);
	v->count += n;
	return p;
}

/* A virtual column. */
struct virt {
	enum { VIRT_INPUT, VIRT_CONST, VIRT_REGISTER } kind;
	uint32_t place; /* input column; constant or register number */
	const struct weir_expr *e;
	enum weir_phys phys;
	uint32_t first, last; /* instructions: VIRT_REGISTER lives from first to last */
};

struct frame {
	uint32_t node;
	uint32_t next;    /* argument to evaluate next */
	uint32_t operand; /* CALL: first operand */
	uint32_t out;     /* virtual column, lazy operators */
	uint32_t level;
	uint32_t exits;   /* instructions that jump to the end of this node */
	uint32_t pending; /* CASE: the OP_CASE_WHEN whose jump is the next WHEN */
};

struct compiler {
	struct weir_program *pg;
	struct vec node, child, insn, operand, virt, frame, undo, walk;
	uint32_t *by_pointer, *by_value; /* open addressing: number + 1 */
	uint32_t table_mask, pointer_mask;
	const struct weir_expr **pointer_key;
	uint32_t pointer_count;
	uint32_t *memo; /* virtual column that holds a node's value here, or NONE */
	uint32_t level, level_max;
};

static struct node *node_at(struct compiler *c, uint32_t i)
{
	return (struct node *)c->node.data + i;
}
static struct insn *insn_at(struct compiler *c, uint32_t i)
{
	return (struct insn *)c->insn.data + i;
}
static struct virt *virt_at(struct compiler *c, uint32_t i)
{
	return (struct virt *)c->virt.data + i;
}
static struct frame *frame_top(struct compiler *c)
{
	return (struct frame *)c->frame.data + c->frame.count - 1;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ (h >> 29);
}

static uint64_t node_hash(const struct compiler *c, const struct weir_expr *e, const uint32_t *child)
{
	(void)c;
	uint64_t h = mix(e->op, ((uint64_t)e->type.kind << 32) | ((uint32_t)e->type.precision << 8) | e->type.scale);
	h = mix(h, e->column);
	h = mix(h, (uintptr_t)e->fn);
	if (e->op == WEIR_EXPR_CONST && !e->is_null) {
		if (weir_type_phys(&e->type) == WEIR_PHYS_STR)
			h = mix(h, weir_hash(e->value.str.data, e->value.str.bytes));
		else
			h = mix(h, (uint64_t)e->value.i64);
	}
	for (uint32_t i = 0; i < e->arg_count; i++)
		h = mix(h, child[i]);
	return h;
}

static bool const_equal(const struct weir_expr *a, const struct weir_expr *b)
{
	if (a->is_null || b->is_null)
		return a->is_null == b->is_null;
	switch (weir_type_phys(&a->type)) {
	case WEIR_PHYS_STR:
		return weir_str_equal(a->value.str, b->value.str);
	case WEIR_PHYS_I128:
		return a->value.i128 == b->value.i128;
	default:
		return a->value.i64 == b->value.i64; /* doubles by their bits */
	}
}

static bool node_equal(struct compiler *c, const struct node *n, const struct weir_expr *e, const uint32_t *child)
{
	const struct weir_expr *o = n->e;
	if (o->op != e->op || o->fn != e->fn || o->arg_count != e->arg_count || !weir_type_equal(&o->type, &e->type))
		return false;
	if (e->op == WEIR_EXPR_COLUMN)
		return o->column == e->column;
	if (e->op == WEIR_EXPR_CONST)
		return const_equal(o, e);
	return e->arg_count == 0 ||
	       memcmp((const uint32_t *)c->child.data + n->child, child, e->arg_count * sizeof *child) == 0;
}

static uint32_t *pointer_find(struct compiler *c, const struct weir_expr *e)
{
	uint32_t i = (uint32_t)mix(0, (uintptr_t)e) & c->pointer_mask;
	while (c->pointer_key[i] != NULL && c->pointer_key[i] != e)
		i = (i + 1) & c->pointer_mask;
	return &c->by_pointer[i];
}

static void pointer_put(struct compiler *c, const struct weir_expr *e, uint32_t number)
{
	if (c->pointer_count * 2 > c->pointer_mask) {
		const struct weir_expr **key = c->pointer_key;
		uint32_t *value = c->by_pointer, old = c->pointer_mask;
		c->pointer_mask = old * 2 + 1;
		c->pointer_key = weir_xcalloc(c->pointer_mask + 1, sizeof *c->pointer_key);
		c->by_pointer = weir_xcalloc(c->pointer_mask + 1, sizeof *c->by_pointer);
		c->pointer_count = 0;
		for (uint32_t i = 0; i <= old; i++)
			if (key[i] != NULL)
				pointer_put(c, key[i], value[i] - 1);
		free(key);
		free(value);
	}
	uint32_t *at = pointer_find(c, e);
	c->pointer_key[at - c->by_pointer] = e;
	*at = number + 1;
	c->pointer_count++;
}

static void value_grow(struct compiler *c)
{
	if (c->node.count * 2 <= c->table_mask)
		return;
	free(c->by_value);
	c->table_mask = c->table_mask * 2 + 1;
	c->by_value = weir_xcalloc(c->table_mask + 1, sizeof *c->by_value);
	for (uint32_t n = 0; n < c->node.count; n++) {
		uint32_t i = (uint32_t)node_at(c, n)->hash & c->table_mask;
		while (c->by_value[i] != 0)
			i = (i + 1) & c->table_mask;
		c->by_value[i] = n + 1;
	}
}

/* The number of e, whose arguments are numbered. */
static uint32_t number_one(struct compiler *c, const struct weir_expr *e)
{
	uint32_t first = c->child.count;
	uint32_t *child = vec_add(&c->child, e->arg_count);
	for (uint32_t i = 0; i < e->arg_count; i++)
		child[i] = *pointer_find(c, e->args[i]) - 1;
	uint64_t h = node_hash(c, e, child);
	uint32_t i = (uint32_t)h & c->table_mask;
	for (; c->by_value[i] != 0; i = (i + 1) & c->table_mask) {
		uint32_t n = c->by_value[i] - 1;
		if (node_at(c, n)->hash == h && node_equal(c, node_at(c, n), e, child)) {
			c->child.count = first;
			return n;
		}
	}
	c->by_value[i] = c->node.count + 1;
	*(struct node *)vec_add(&c->node, 1) = (struct node){e, first, h};
	value_grow(c);
	return c->node.count - 1;
}

static void number_all(struct compiler *c, const struct weir_expr *root)
{
	*(const struct weir_expr **)vec_add(&c->walk, 1) = root;
	while (c->walk.count != 0) {
		const struct weir_expr *e = ((const struct weir_expr **)c->walk.data)[c->walk.count - 1];
		if (*pointer_find(c, e) != 0) {
			c->walk.count--;
			continue;
		}
		uint32_t before = c->walk.count;
		for (uint32_t i = 0; i < e->arg_count; i++)
			if (*pointer_find(c, e->args[i]) == 0)
				*(const struct weir_expr **)vec_add(&c->walk, 1) = e->args[i];
		if (c->walk.count == before) {
			pointer_put(c, e, number_one(c, e));
			c->walk.count--;
		}
	}
}

/* -- emitting -- */

static uint32_t add_virt(struct compiler *c, struct virt v)
{
	v.first = v.last = NONE;
	*(struct virt *)vec_add(&c->virt, 1) = v;
	return c->virt.count - 1;
}

static uint32_t add_register(struct compiler *c, const struct weir_expr *e)
{
	return add_virt(c, (struct virt){.kind = VIRT_REGISTER, .phys = weir_type_phys(&e->type)});
}

static void touch(struct compiler *c, uint32_t virt, uint32_t at)
{
	struct virt *v = virt_at(c, virt);
	if (v->first == NONE)
		v->first = at;
	v->last = at;
}

static uint32_t emit(struct compiler *c, enum op op, uint32_t level, uint32_t out, uint32_t in,
		     const struct weir_expr *e)
{
	uint32_t at = c->insn.count;
	*(struct insn *)vec_add(&c->insn, 1) =
		(struct insn){.op = op, .level = level, .out = out, .in = in, .jump = NONE, .e = e};
	if (out != NONE)
		touch(c, out, at);
	if (op == OP_CALL)
		for (uint32_t i = 0; i < e->arg_count; i++)
			touch(c, ((uint32_t *)c->operand.data)[in + i], at);
	else if (in != NONE)
		touch(c, in, at);
	return at;
}

static void patch(struct compiler *c, uint32_t list)
{
	while (list != NONE) {
		uint32_t next = insn_at(c, list)->jump;
		insn_at(c, list)->jump = c->insn.count;
		list = next;
	}
}

static void add_exit(struct compiler *c, struct frame *f, uint32_t insn)
{
	insn_at(c, insn)->jump = f->exits;
	f->exits = insn;
}

struct undo {
	uint32_t node, level;
};

static void remember(struct compiler *c, uint32_t node, uint32_t virt)
{
	c->memo[node] = virt;
	*(struct undo *)vec_add(&c->undo, 1) = (struct undo){node, c->level};
}

/* Ends all levels above level: what was computed there is not valid for the others' rows. */
static void leave_to(struct compiler *c, uint32_t level)
{
	while (c->undo.count != 0) {
		struct undo *u = (struct undo *)c->undo.data + c->undo.count - 1;
		if (u->level <= level)
			break;
		c->memo[u->node] = NONE;
		c->undo.count--;
	}
	c->level = level;
}

static void enter(struct compiler *c, uint32_t level)
{
	c->level = level;
	if (level > c->level_max)
		c->level_max = level;
}

static bool is_if(const struct weir_expr *e)
{
	return e->op == WEIR_EXPR_CALL && e->fn->kernel == weir_kernel_if;
}

/* One step of a strict call: the next argument, or the call itself. */
static uint32_t step_call(struct compiler *c, struct frame *f, const struct weir_expr *e, uint32_t got)
{
	if (f->next == 0) {
		f->operand = c->operand.count;
		vec_add(&c->operand, e->arg_count);
	} else {
		((uint32_t *)c->operand.data)[f->operand + f->next - 1] = got;
	}
	if (f->next < e->arg_count)
		return NONE;
	uint32_t out = add_register(c, e);
	emit(c, OP_CALL, c->level, out, f->operand, e);
	return out;
}

static uint32_t step_cast(struct compiler *c, struct frame *f, const struct weir_expr *e, uint32_t got)
{
	if (f->next == 0)
		return NONE;
	if (weir_cast_is_noop(&e->args[0]->type, &e->type))
		return got;
	uint32_t out = add_register(c, e);
	emit(c, OP_CAST, c->level, out, got, e);
	return out;
}

static uint32_t step_chain(struct compiler *c, struct frame *f, const struct weir_expr *e, uint32_t got)
{
	enum op first = e->op == WEIR_EXPR_AND ? OP_AND_FIRST : e->op == WEIR_EXPR_OR ? OP_OR_FIRST : OP_COALESCE_FIRST;
	if (f->next == 0) {
		f->level = c->level;
		return NONE;
	}
	if (f->next == 1) {
		if (e->arg_count == 1)
			return got;
		f->out = add_register(c, e);
		add_exit(c, f, emit(c, first, f->level, f->out, got, e));
		enter(c, f->level + 1);
	} else {
		uint32_t at = emit(c, first + 1, f->level + 1, f->out, got, e);
		add_exit(c, f, at);
	}
	if (f->next < e->arg_count)
		return NONE;
	leave_to(c, f->level);
	patch(c, f->exits);
	return f->out;
}

/* Arguments: [when, then]* [else]. */
static uint32_t step_case(struct compiler *c, struct frame *f, const struct weir_expr *e, uint32_t got)
{
	if (f->next == 0) {
		f->level = c->level;
		f->out = add_register(c, e);
		emit(c, OP_CLEAR, f->level, f->out, NONE, e);
		emit(c, OP_CASE_BEGIN, f->level, NONE, NONE, e);
		enter(c, f->level + 1);
		if (e->arg_count != 0)
			return NONE;
	} else if (f->next % 2 == 1 && f->next < e->arg_count) { /* a WHEN */
		f->pending = emit(c, OP_CASE_WHEN, f->level + 1, NONE, got, e);
		enter(c, f->level + 2);
		return NONE;
	} else if (f->next % 2 == 0) { /* a THEN */
		emit(c, OP_MOVE, f->level + 2, f->out, got, e);
		leave_to(c, f->level + 1);
		patch(c, f->pending);
		add_exit(c, f, emit(c, OP_JUMP_EMPTY, f->level + 1, NONE, NONE, e));
		if (f->next < e->arg_count)
			return NONE;
	}
	if (e->arg_count % 2 == 1)
		emit(c, OP_MOVE, f->level + 1, f->out, got, e);
	else
		emit(c, OP_NULL, f->level + 1, f->out, NONE, e);
	leave_to(c, f->level);
	patch(c, f->exits);
	return f->out;
}

/* Emits node and what it needs; returns the virtual column of its value. */
static uint32_t emit_node(struct compiler *c, uint32_t root)
{
	uint32_t got = NONE;
	*(struct frame *)vec_add(&c->frame, 1) = (struct frame){.node = root, .exits = NONE, .pending = NONE};
	while (c->frame.count != 0) {
		struct frame *f = frame_top(c);
		const struct weir_expr *e = node_at(c, f->node)->e;
		uint32_t done = f->next == 0 ? c->memo[f->node] : NONE;
		bool known = done != NONE;
		if (!known) {
			if (e->op == WEIR_EXPR_COLUMN)
				done = add_virt(c, (struct virt){.kind = VIRT_INPUT, .place = e->column});
			else if (e->op == WEIR_EXPR_CONST)
				done = add_virt(c, (struct virt){.kind = VIRT_CONST, .e = e});
			else if (e->op == WEIR_EXPR_CASE || is_if(e))
				done = step_case(c, f, e, got);
			else if (e->op == WEIR_EXPR_CALL)
				done = step_call(c, f, e, got);
			else if (e->op == WEIR_EXPR_CAST || e->op == WEIR_EXPR_TRY_CAST)
				done = step_cast(c, f, e, got);
			else
				done = step_chain(c, f, e, got);
		}
		if (done == NONE) {
			uint32_t child = ((uint32_t *)c->child.data)[node_at(c, f->node)->child + f->next++];
			*(struct frame *)vec_add(&c->frame, 1) =
				(struct frame){.node = child, .exits = NONE, .pending = NONE};
			continue;
		}
		if (!known) {
			/* Columns and constants are valid everywhere: no undo. */
			if (e->op == WEIR_EXPR_COLUMN || e->op == WEIR_EXPR_CONST)
				c->memo[f->node] = done;
			else
				remember(c, f->node, done);
		}
		got = done;
		c->frame.count--;
	}
	return got;
}

/* -- registers -- */

static void fill_constant(struct weir_col *col, const struct weir_expr *e)
{
	col->phys = weir_type_phys(&e->type);
	col->is_const = true;
	size_t bytes = weir_phys_bytes(col->phys);
	col->data = aligned_alloc(16, weir_align_up(bytes, 16));
	WEIR_ASSERT(col->data != NULL);
	col->nulls = weir_xcalloc(WEIR_NULL_WORDS, sizeof *col->nulls);
	memset(col->data, 0, bytes);
	if (e->is_null) {
		weir_col_set_null(col, 0);
		if (col->phys == WEIR_PHYS_STR)
			col->str[0].data = (const uint8_t *)"";
		return;
	}
	if (col->phys == WEIR_PHYS_U8)
		col->u8[0] = (uint8_t)e->value.i64;
	else
		memcpy(col->data, &e->value, bytes);
}

struct pool {
	struct vec free[WEIR_PHYS_STR + 1];
	struct vec phys; /* of every register */
};

static void release(struct compiler *c, struct pool *p, uint32_t virt, uint32_t at)
{
	struct virt *v = virt_at(c, virt);
	if (v->kind == VIRT_REGISTER && v->last == at) {
		*(uint32_t *)vec_add(&p->free[v->phys], 1) = v->place;
		v->last = NONE - 1; /* once, though the instruction may name it twice */
	}
}

static void assign_registers(struct compiler *c, struct pool *p)
{
	for (uint32_t i = 0; i < c->insn.count; i++) {
		struct insn *in = insn_at(c, i);
		if (in->out != NONE && virt_at(c, in->out)->first == i) {
			struct virt *v = virt_at(c, in->out);
			struct vec *list = &p->free[v->phys];
			if (list->count != 0) {
				v->place = ((uint32_t *)list->data)[--list->count];
			} else {
				v->place = p->phys.count;
				*(enum weir_phys *)vec_add(&p->phys, 1) = v->phys;
			}
		}
		if (in->op == OP_CALL)
			for (uint32_t a = 0; a < in->e->arg_count; a++)
				release(c, p, ((uint32_t *)c->operand.data)[in->in + a], i);
		else if (in->in != NONE)
			release(c, p, in->in, i);
		if (in->out != NONE)
			release(c, p, in->out, i);
	}
}

/* Virtual columns to slots. */
static void assign_slots(struct compiler *c, struct pool *p)
{
	struct weir_program *pg = c->pg;
	for (uint32_t i = 0; i < c->virt.count; i++) {
		pg->input_count += virt_at(c, i)->kind == VIRT_INPUT;
		pg->const_count += virt_at(c, i)->kind == VIRT_CONST;
	}
	pg->register_count = p->phys.count;
	uint32_t own = pg->const_count + pg->register_count;
	pg->input = weir_xcalloc(pg->input_count + 1, sizeof *pg->input);
	pg->slot = weir_xcalloc(pg->input_count + own + 1, sizeof *pg->slot);
	pg->column = weir_xcalloc(own + 1, sizeof *pg->column);
	uint32_t inputs = 0, constants = 0;
	for (uint32_t i = 0; i < c->virt.count; i++) {
		struct virt *v = virt_at(c, i);
		if (v->kind == VIRT_INPUT) {
			pg->input[inputs] = v->place;
			v->place = inputs++;
		} else if (v->kind == VIRT_CONST) {
			fill_constant(&pg->column[constants], v->e);
			v->place = pg->input_count + constants++;
		} else {
			v->place += pg->input_count + pg->const_count;
		}
	}
	for (uint32_t i = 0; i < pg->register_count; i++)
		weir_col_init(&pg->column[pg->const_count + i], ((enum weir_phys *)p->phys.data)[i]);
	for (uint32_t i = 0; i < own; i++)
		pg->slot[pg->input_count + i] = &pg->column[i];
	for (uint32_t i = 0; i < c->operand.count; i++)
		((uint32_t *)c->operand.data)[i] = virt_at(c, ((uint32_t *)c->operand.data)[i])->place;
	for (uint32_t i = 0; i < pg->result_count; i++)
		pg->result[i] = virt_at(c, pg->result[i])->place;
	for (uint32_t i = 0; i < c->insn.count; i++) {
		struct insn *in = insn_at(c, i);
		if (in->out != NONE)
			in->out = virt_at(c, in->out)->place;
		if (in->op != OP_CALL && in->in != NONE)
			in->in = virt_at(c, in->in)->place;
	}
}

static void finish(struct compiler *c)
{
	struct weir_program *pg = c->pg;
	struct pool p = {.phys = {.item_bytes = sizeof(enum weir_phys)}};
	for (uint32_t i = 0; i <= WEIR_PHYS_STR; i++)
		p.free[i].item_bytes = sizeof(uint32_t);
	for (uint32_t i = 0; i < pg->result_count; i++)
		virt_at(c, pg->result[i])->last = c->insn.count; /* alive to the end */
	assign_registers(c, &p);
	assign_slots(c, &p);
	for (uint32_t i = 0; i <= WEIR_PHYS_STR; i++)
		free(p.free[i].data);
	free(p.phys.data);
	uint32_t args_max = 1;
	pg->insn = c->insn.data;
	pg->insn_count = c->insn.count;
	pg->operand = c->operand.data;
	c->insn.data = c->operand.data = NULL;
	for (uint32_t i = 0; i < pg->insn_count; i++) {
		struct insn *in = &pg->insn[i];
		if (in->op != OP_CALL)
			continue;
		if (in->e->arg_count > args_max)
			args_max = in->e->arg_count;
		if (in->e->fn->open != NULL)
			in->state = in->e->fn->open(in->e);
	}
	pg->args = weir_xcalloc(args_max, sizeof *pg->args);
	pg->level_count = c->level_max + 1;
	pg->level = weir_xcalloc(pg->level_count, sizeof *pg->level);
	for (uint32_t i = 1; i < pg->level_count; i++)
		pg->level[i] = weir_xcalloc(1, sizeof **pg->level);
	pg->rows = weir_xcalloc(WEIR_BATCH_ROWS, sizeof *pg->rows);
	pg->filter_out = weir_xcalloc(pg->result_count + 1, sizeof *pg->filter_out);
	(void)weir_buf_room(&pg->text, 256);
}

enum weir_err weir_program_create(struct weir_program **out, const struct weir_expr *const *exprs, uint32_t count,
				  struct weir_diag **dg)
{
	(void)dg;
	struct weir_program *pg = weir_xcalloc(1, sizeof *pg);
	struct compiler c = {.pg = pg, .table_mask = 63, .pointer_mask = 63};
	c.node.item_bytes = sizeof(struct node);
	c.child.item_bytes = c.operand.item_bytes = sizeof(uint32_t);
	c.insn.item_bytes = sizeof(struct insn);
	c.virt.item_bytes = sizeof(struct virt);
	c.frame.item_bytes = sizeof(struct frame);
	c.undo.item_bytes = sizeof(struct undo);
	c.walk.item_bytes = sizeof(struct weir_expr *);
	c.by_value = weir_xcalloc(c.table_mask + 1, sizeof *c.by_value);
	c.by_pointer = weir_xcalloc(c.pointer_mask + 1, sizeof *c.by_pointer);
	c.pointer_key = weir_xcalloc(c.pointer_mask + 1, sizeof *c.pointer_key);
	for (uint32_t i = 0; i < count; i++)
		number_all(&c, exprs[i]);
	c.memo = weir_xmalloc((c.node.count + 1) * sizeof *c.memo);
	memset(c.memo, 0xff, (c.node.count + 1) * sizeof *c.memo);
	pg->result_count = count;
	pg->result = weir_xcalloc(count + 1, sizeof *pg->result);
	for (uint32_t i = 0; i < count; i++)
		pg->result[i] = emit_node(&c, *pointer_find(&c, exprs[i]) - 1);
	finish(&c);
	free(c.node.data);
	free(c.child.data);
	free(c.virt.data);
	free(c.frame.data);
	free(c.undo.data);
	free(c.walk.data);
	free(c.by_value);
	free(c.by_pointer);
	free(c.pointer_key);
	free(c.memo);
	*out = pg;
	return WEIR_OK;
}

void weir_program_destroy(struct weir_program *pg)
{
	if (pg == NULL)
		return;
	for (uint32_t i = 0; i < pg->insn_count; i++)
		if (pg->insn[i].op == OP_CALL && pg->insn[i].e->fn->close != NULL)
			pg->insn[i].e->fn->close(pg->insn[i].state);
	for (uint32_t i = 0; i < pg->const_count; i++) {
		free(pg->column[i].data);
		free(pg->column[i].nulls);
	}
	for (uint32_t i = 0; i < pg->register_count; i++)
		weir_col_fini(&pg->column[pg->const_count + i]);
	for (uint32_t i = 1; i < pg->level_count; i++)
		free(pg->level[i]);
	free(pg->level);
	free(pg->insn);
	free(pg->operand);
	free(pg->slot);
	free(pg->column);
	free(pg->input);
	free(pg->result);
	free(pg->args);
	free(pg->rows);
	free(pg->filter_out);
	weir_buf_fini(&pg->text);
	free(pg);
}

/* -- running -- */

/* Takes the rows of the errors from `before` on out of all levels. */
static WEIR_COLD void drop_failed(struct weir_program *pg, uint32_t level, const struct weir_row_errors *errors,
				  uint32_t before)
{
	uint64_t bad[WEIR_NULL_WORDS] = {0};
	for (uint32_t i = before; i < errors->count; i++)
		bad[errors->e[i].row >> 6] |= UINT64_C(1) << (errors->e[i].row & 63);
	for (uint32_t l = 0; l <= level; l++) {
		struct weir_sel *s = pg->level[l];
		uint32_t n = 0;
		for (uint32_t i = 0; i < s->count; i++)
			if (((bad[s->row[i] >> 6] >> (s->row[i] & 63)) & 1) == 0)
				s->row[n++] = s->row[i];
		s->count = n;
	}
}

/* Marks rows null in out that are null in any argument; true if there are any. */
static bool merge_nulls(struct weir_col *out, const struct weir_col *const *in, uint32_t count)
{
	bool any = false;
	for (uint32_t a = 0; a < count; a++) {
		if (!in[a]->has_null)
			continue;
		if (in[a]->is_const) {
			if (in[a]->nulls[0] & 1) {
				memset(out->nulls, 0xff, WEIR_NULL_WORDS * sizeof *out->nulls);
				any = true;
			}
			continue;
		}
		for (uint32_t w = 0; w < WEIR_NULL_WORDS; w++)
			out->nulls[w] |= in[a]->nulls[w];
		any = true;
	}
	out->has_null = any;
	return any;
}

static uint32_t rows_not_null(const struct weir_col *c, const struct weir_sel *sel, uint16_t *rows)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < sel->count; i++) {
		uint32_t r = sel->row[i];
		rows[n] = (uint16_t)r;
		n += !((c->nulls[r >> 6] >> (r & 63)) & 1);
	}
	return n;
}

static void run_call(struct weir_program *pg, const struct insn *in, struct weir_col *out, struct weir_scratch *scratch,
		     struct weir_row_errors *errors)
{
	const struct weir_sel *sel = pg->level[in->level];
	const struct weir_expr *e = in->e;
	for (uint32_t i = 0; i < e->arg_count; i++)
		pg->args[i] = pg->slot[pg->operand[in->in + i]];
	struct weir_kernel k = {.expr = e,
				.in = pg->args,
				.out = out,
				.row = sel->row,
				.count = sel->count,
				.scratch = scratch,
				.errors = errors,
				.state = in->state};
	weir_col_clear_nulls(out);
	if (e->fn->null_in_null_out && merge_nulls(out, pg->args, e->arg_count) && !e->fn->total) {
		k.count = rows_not_null(out, sel, pg->rows);
		k.row = pg->rows;
	}
	if (k.count != 0)
		e->fn->kernel(&k);
}

static void run_cast(struct weir_program *pg, const struct insn *in, struct weir_col *out, struct weir_scratch *scratch,
		     struct weir_row_errors *errors)
{
	const struct weir_sel *sel = pg->level[in->level];
	const struct weir_col *from = pg->slot[in->in];
	const uint16_t *row = sel->row;
	uint32_t count = sel->count;
	weir_col_clear_nulls(out);
	if (merge_nulls(out, &from, 1)) {
		count = rows_not_null(out, sel, pg->rows);
		row = pg->rows;
	}
	weir_cast_run(in->e, from, out, row, count, scratch, &pg->text, errors);
}

#define MOVE_ROWS(member)                                                                                              \
	do {                                                                                                           \
		for (uint32_t i = 0; i < sel->count; i++)                                                              \
			out->member[sel->row[i]] = in->member[sel->row[i] & mask];                                     \
	} while (0)

static void run_move(struct weir_col *out, const struct weir_col *in, const struct weir_sel *sel)
{
	uint32_t mask = in->is_const ? 0 : UINT32_MAX;
	if (in->has_null)
		for (uint32_t i = 0; i < sel->count; i++)
			if (weir_col_is_null(in, sel->row[i]))
				weir_col_set_null(out, sel->row[i]);
	if (in->phys != out->phys) /* a bare NULL of another form: every row is null */
		return;
	switch (out->phys) {
	case WEIR_PHYS_U8:
		MOVE_ROWS(u8);
		break;
	case WEIR_PHYS_I64:
		MOVE_ROWS(i64);
		break;
	case WEIR_PHYS_F64:
		MOVE_ROWS(f64);
		break;
	case WEIR_PHYS_I128:
		MOVE_ROWS(i128);
		break;
	case WEIR_PHYS_STR:
		MOVE_ROWS(str);
		break;
	}
}

/* AND (stop FALSE) and OR (stop TRUE): out <- in, or out <- out op in; the rows not yet at stop go to `to`, which may
 * be `sel`. */
static void run_logic(struct weir_col *out, const struct weir_col *in, const struct weir_sel *sel, struct weir_sel *to,
		      bool first, uint8_t stop)
{
	uint32_t mask = in->is_const ? 0 : UINT32_MAX, n = 0, count = sel->count;
	if (first)
		weir_col_clear_nulls(out);
	if (!in->has_null && !out->has_null) {
		/* What is undecided holds the other value, so the result is in's: no branches. */
		for (uint32_t i = 0; i < count; i++) {
			uint32_t r = sel->row[i];
			uint8_t v = in->u8[r & mask];
			out->u8[r] = v;
			to->row[n] = (uint16_t)r;
			n += v != stop;
		}
	} else {
		for (uint32_t i = 0; i < count; i++) {
			uint32_t r = sel->row[i];
			bool null = weir_col_is_null(in, r);
			uint8_t v = in->u8[r & mask];
			bool stops = !null && v == stop;
			if (null) {
				weir_col_set_null(out, r);
			} else if (stops) {
				out->u8[r] = v;
				if (out->has_null)
					out->nulls[r >> 6] &= ~(UINT64_C(1) << (r & 63));
			} else if (first) {
				out->u8[r] = v;
			}
			to->row[n] = (uint16_t)r;
			n += !stops;
		}
	}
	to->count = n;
}

static void run_coalesce(struct weir_col *out, const struct weir_col *in, const struct weir_sel *sel,
			 struct weir_sel *to, bool first)
{
	if (first)
		weir_col_clear_nulls(out);
	else if (out->has_null)
		for (uint32_t i = 0; i < sel->count; i++)
			out->nulls[sel->row[i] >> 6] &= ~(UINT64_C(1) << (sel->row[i] & 63));
	run_move(out, in, sel);
	uint32_t n = 0;
	if (in->has_null)
		for (uint32_t i = 0; i < sel->count; i++)
			if (weir_col_is_null(in, sel->row[i]))
				to->row[n++] = sel->row[i];
	to->count = n;
}

static void run_when(const struct weir_col *in, struct weir_sel *rest, struct weir_sel *taken)
{
	uint32_t mask = in->is_const ? 0 : UINT32_MAX, n = 0, t = 0;
	for (uint32_t i = 0; i < rest->count; i++) {
		uint16_t r = rest->row[i];
		bool yes = in->u8[r & mask] != 0 && !weir_col_is_null(in, r);
		taken->row[t] = r;
		rest->row[n] = r;
		t += yes;
		n += !yes;
	}
	taken->count = t;
	rest->count = n;
}

void weir_program_run(struct weir_program *pg, const struct weir_col *const *in, struct weir_sel *sel,
		      struct weir_scratch *scratch, const struct weir_col **out, struct weir_row_errors *errors)
{
	for (uint32_t i = 0; i < pg->input_count; i++)
		pg->slot[i] = in[pg->input[i]];
	pg->level[0] = sel;
	for (uint32_t at = 0; at < pg->insn_count; at++) {
		const struct insn *n = &pg->insn[at];
		struct weir_sel *level = pg->level[n->level];
		/* Registers are ours: out is never an input or a constant. */
		struct weir_col *to = n->out == NONE ? NULL : &pg->column[n->out - pg->input_count];
		const struct weir_col *from = n->op == OP_CALL || n->in == NONE ? NULL : pg->slot[n->in];
		uint32_t failed = errors->count;
		switch (n->op) {
		case OP_CALL:
			run_call(pg, n, to, scratch, errors);
			break;
		case OP_CAST:
			run_cast(pg, n, to, scratch, errors);
			break;
		case OP_CLEAR:
			weir_col_clear_nulls(to);
			break;
		case OP_MOVE:
			run_move(to, from, level);
			break;
		case OP_NULL:
			for (uint32_t i = 0; i < level->count; i++)
				weir_col_set_null(to, level->row[i]);
			break;
		case OP_AND_FIRST:
		case OP_OR_FIRST:
			run_logic(to, from, level, pg->level[n->level + 1], true, n->op == OP_OR_FIRST);
			if (pg->level[n->level + 1]->count == 0)
				at = n->jump - 1;
			break;
		case OP_AND_NEXT:
		case OP_OR_NEXT:
			run_logic(to, from, level, level, false, n->op == OP_OR_NEXT);
			if (level->count == 0)
				at = n->jump - 1;
			break;
		case OP_COALESCE_FIRST:
			run_coalesce(to, from, level, pg->level[n->level + 1], true);
			if (pg->level[n->level + 1]->count == 0)
				at = n->jump - 1;
			break;
		case OP_COALESCE_NEXT:
			run_coalesce(to, from, level, level, false);
			if (level->count == 0)
				at = n->jump - 1;
			break;
		case OP_CASE_BEGIN:
			pg->level[n->level + 1]->count = level->count;
			memcpy(pg->level[n->level + 1]->row, level->row, level->count * sizeof *level->row);
			break;
		case OP_CASE_WHEN:
			run_when(from, level, pg->level[n->level + 1]);
			if (pg->level[n->level + 1]->count == 0)
				at = n->jump - 1;
			break;
		case OP_JUMP_EMPTY:
			if (level->count == 0)
				at = n->jump - 1;
			break;
		}
		if (WEIR_UNLIKELY(errors->count != failed))
			drop_failed(pg, n->level, errors, failed);
	}
	for (uint32_t i = 0; i < pg->result_count; i++)
		out[i] = pg->slot[pg->result[i]];
}

uint32_t weir_program_filter(struct weir_program *pg, const struct weir_col *const *in, struct weir_sel *sel,
			     struct weir_scratch *scratch, struct weir_row_errors *errors)
{
	weir_program_run(pg, in, sel, scratch, pg->filter_out, errors);
	const struct weir_col *c = pg->filter_out[0];
	uint32_t mask = c->is_const ? 0 : UINT32_MAX, n = 0, before = sel->count;
	if (c->phys != WEIR_PHYS_U8) { /* a bare NULL */
		sel->count = 0;
		return before;
	}
	for (uint32_t i = 0; i < before; i++) {
		uint16_t r = sel->row[i];
		sel->row[n] = r;
		n += c->u8[r & mask] != 0 && !weir_col_is_null(c, r);
	}
	sel->count = n;
	return before - n;
}
