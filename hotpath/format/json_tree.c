/* json_tree.c: the paths of all fields as one tree, the look-up of member names in it, and the step from what a
 * document filled to columns. Built @thread init, used @thread worker. */
#include "hotpath/format/json_private.h"

#include "hotpath/core/diag.h"

enum { SEARCHED_MEMBERS_MAX = 8 }; /* more members than this are hashed */

static uint32_t name_hash(const uint8_t *name, uint32_t bytes)
{
	/* First and last eight bytes and the length; both readable beyond the name's end. */
	uint64_t first = weir_load_le64(name), last = first;
	if (bytes < 8)
		last = first &= (UINT64_C(1) << (bytes * 8)) - 1;
	else
		last = weir_load_le64(name + bytes - 8);
	uint64_t h = (first ^ bytes) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ (h >> 29) ^ last) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(h >> 32);
}

static uint32_t step_name_bytes(const struct weir_path_step *step)
{
	return step->name_bytes != 0 ? step->name_bytes : (uint32_t)strlen(step->name);
}

/* A node while the tree is built: children as lists, in the order of the fields. */
struct sketch {
	struct sketch *first_child, *last_child, *next;
	const struct weir_path_step *step;
	uint32_t first_field;
};

static bool step_equal(const struct weir_path_step *a, const struct weir_path_step *b)
{
	if (a->name == NULL || b->name == NULL)
		return a->name == b->name && a->index == b->index;
	uint32_t bytes = step_name_bytes(a);
	return bytes == step_name_bytes(b) && memcmp(a->name, b->name, bytes) == 0;
}

static struct sketch *sketch_child(struct weir_mem *m, struct sketch *of, const struct weir_path_step *step)
{
	for (struct sketch *c = of->first_child; c != NULL; c = c->next)
		if (step_equal(c->step, step))
			return c;
	struct sketch *c = weir_mem_take(m, sizeof *c);
	c->step = step;
	c->first_field = WEIR_JSON_NONE;
	if (of->last_child != NULL)
		of->last_child->next = c;
	else
		of->first_child = c;
	of->last_child = c;
	return c;
}

static void node_hash_members(struct weir_json *js, struct weir_json_node *node)
{
	uint32_t slots = 32;
	while (slots < node->member_count * 2)
		slots *= 2;
	node->member_slots_mask = slots - 1;
	node->member_slots = weir_mem_take(&js->mem, slots * sizeof *node->member_slots);
	for (uint32_t i = 0; i < node->member_count; i++) {
		uint32_t at = name_hash(node->members[i].name, node->members[i].name_bytes);
		while (node->member_slots[at & node->member_slots_mask] != 0)
			at++;
		node->member_slots[at & node->member_slots_mask] = (uint16_t)(i + 1);
	}
}

static void node_build(struct weir_json *js, struct weir_json_node *node, const struct sketch *sk)
{
	for (const struct sketch *c = sk->first_child; c != NULL; c = c->next)
		*(c->step->name != NULL ? &node->member_count : &node->element_count) += 1;
	node->members = weir_mem_take(&js->mem, (node->member_count + 1) * sizeof *node->members);
	node->elements = weir_mem_take(&js->mem, (node->element_count + 1) * sizeof *node->elements);
	uint32_t members = 0, elements = 0;
	for (const struct sketch *c = sk->first_child; c != NULL; c = c->next) {
		struct weir_json_node *child;
		if (c->step->name != NULL) {
			child = &node->members[members++];
			uint32_t bytes = step_name_bytes(c->step);
			uint8_t *name = weir_mem_take(&js->mem, bytes + 8);
			memcpy(name, c->step->name, bytes);
			child->name = name;
			child->name_bytes = bytes;
			node->member_lengths |= UINT64_C(1) << (bytes & 63);
			memcpy(&child->name_head, name, bytes < 8 ? bytes : 8);
			if (bytes > js->name_bytes_max)
				js->name_bytes_max = bytes;
		} else {
			/* Kept ascending; nobody has pointers to these nodes or children below them yet. */
			uint32_t at = elements++;
			for (; at > 0 && node->elements[at - 1].index > (uint32_t)c->step->index; at--)
				node->elements[at] = node->elements[at - 1];
			child = &node->elements[at];
			*child = (struct weir_json_node){.index = (uint32_t)c->step->index};
		}
		child->first_field = c->first_field;
	}
	/* Only now that the nodes stay where they are. */
	for (const struct sketch *c = sk->first_child; c != NULL; c = c->next) {
		struct weir_json_node *child = NULL;
		for (uint32_t i = 0; i < node->member_count && c->step->name != NULL; i++)
			if (node->members[i].name_bytes == step_name_bytes(c->step) &&
			    memcmp(node->members[i].name, c->step->name, node->members[i].name_bytes) == 0)
				child = &node->members[i];
		for (uint32_t i = 0; i < node->element_count && c->step->name == NULL; i++)
			if (node->elements[i].index == (uint32_t)c->step->index)
				child = &node->elements[i];
		WEIR_ASSERT(child != NULL);
		child->parent = node;
		for (uint32_t f = child->first_field; f != WEIR_JSON_NONE; f = js->fields[f].next_field)
			js->fields[f].node = child;
		node_build(js, child, c);
	}
	if (node->member_count > SEARCHED_MEMBERS_MAX)
		node_hash_members(js, node);
}

static enum weir_err path_check(const struct weir_json *js, const struct weir_field *f, struct weir_diag **dg)
{
	if (f->path_steps > js->depth_max)
		return weir_diag_set(dg, WEIR_E_CONF, "the path of column '%s' has %u steps, json.depth.max is %u",
				     f->name, f->path_steps, js->depth_max);
	for (uint32_t i = 0; i < f->path_steps; i++)
		if (f->path[i].name == NULL && f->path[i].index < 0)
			return weir_diag_set(dg, WEIR_E_CONF, "the path of column '%s' has the array index %d", f->name,
					     f->path[i].index);
	return WEIR_OK;
}

enum weir_err weir_json_tree_build(struct weir_json *js, const struct weir_field *fields, struct weir_diag **dg)
{
	struct weir_mem sketches;
	weir_mem_init(&sketches, 0);
	struct sketch root = {.first_field = WEIR_JSON_NONE};
	enum weir_err err = WEIR_OK;
	if (js->field_count >= UINT16_MAX)
		err = weir_diag_set(dg, WEIR_E_CONF, "%u columns of one JSON table are too many", js->field_count);
	for (uint32_t i = 0; i < js->field_count && err == WEIR_OK; i++) {
		err = path_check(js, &fields[i], dg);
		/* A field without a path is the member of its own name. */
		struct weir_path_step *own = weir_mem_take(&sketches, sizeof *own);
		*own = (struct weir_path_step){.name = fields[i].name, .name_bytes = (uint32_t)strlen(fields[i].name)};
		const struct weir_path_step *path = fields[i].path_steps != 0 ? fields[i].path : own;
		struct sketch *at = &root;
		for (uint32_t s = 0; s < (fields[i].path_steps != 0 ? fields[i].path_steps : 1) && err == WEIR_OK; s++)
			at = sketch_child(&sketches, at, &path[s]);
		js->fields[i].next_field = at->first_field;
		at->first_field = i;
	}
	if (err == WEIR_OK) {
		js->root.first_field = WEIR_JSON_NONE;
		node_build(js, &js->root, &root);
		js->name_buf = weir_mem_take(&js->mem, (size_t)js->name_bytes_max * 6 + 16);
	}
	weir_mem_fini(&sketches);
	return err;
}

/* head: the name's first eight bytes, zero behind its end. */
WEIR_INLINE bool name_is(const struct weir_json_node *member, const uint8_t *name, uint32_t bytes, uint64_t head)
{
	return member->name_head == head && member->name_bytes == bytes &&
	       (bytes <= 8 || memcmp(member->name + 8, name + 8, bytes - 8) == 0);
}

struct weir_json_node *weir_json_member(struct weir_json *js, const struct weir_json_node *node, const uint8_t *name,
					uint32_t bytes, bool escaped, uint32_t *next)
{
	if (WEIR_UNLIKELY(escaped)) {
		/* An escape takes at most six bytes for each byte of the name. */
		if (bytes / 6 > js->name_bytes_max)
			return NULL;
		bytes = (uint32_t)weir_json_unescape(name, name + bytes, js->name_buf);
		name = js->name_buf;
	}
	if ((node->member_lengths >> (bytes & 63) & 1) == 0)
		return NULL;
	uint64_t head = weir_load_le64(name); /* both are readable beyond their end */
	if (bytes < 8)
		head &= (UINT64_C(1) << (bytes * 8)) - 1;
	uint32_t count = node->member_count;
	struct weir_json_node *members = node->members;
	if (*next < count && name_is(&members[*next], name, bytes, head))
		return &members[(*next)++];
	if (node->member_slots != NULL) {
		for (uint32_t at = name_hash(name, bytes);; at++) {
			uint32_t slot = node->member_slots[at & node->member_slots_mask];
			if (slot == 0)
				return NULL;
			if (name_is(&members[slot - 1], name, bytes, head)) {
				*next = slot;
				return &members[slot - 1];
			}
		}
	}
	for (uint32_t i = 0; i < count; i++)
		if (name_is(&members[i], name, bytes, head)) {
			*next = i + 1;
			return &members[i];
		}
	return NULL;
}

/* The node below `of` that comes after `at` in a walk over the whole subtree without recursion; NULL: done. */
static struct weir_json_node *next_below(const struct weir_json_node *of, struct weir_json_node *at)
{
	if (at->member_count != 0)
		return at->members;
	if (at->element_count != 0)
		return at->elements;
	while (at != of) {
		struct weir_json_node *parent = at->parent;
		if (at >= parent->members && at < parent->members + parent->member_count) {
			if (at + 1 < parent->members + parent->member_count)
				return at + 1;
			if (parent->element_count != 0)
				return parent->elements;
		} else if (at + 1 < parent->elements + parent->element_count) {
			return at + 1;
		}
		at = parent;
	}
	return NULL;
}

void weir_json_forget(struct weir_json *js, struct weir_json_node *node)
{
	js->duplicate = true;
	for (struct weir_json_node *n = next_below(node, node); n != NULL; n = next_below(node, n))
		n->generation = 0;
}

/* The field's value is not in the document: is a member missing, or something on the way not what the path needs? */
static bool finish_absent(struct weir_json *js, const struct weir_json_field *f, uint32_t row)
{
	const struct weir_json_node *below = f->node, *at = below->parent;
	while (at->generation != js->generation) {
		below = at;
		at = at->parent;
	}
	const uint8_t *place = js->doc + at->start;
	enum weir_json_kind wanted = below->name != NULL ? WEIR_JSON_OBJECT : WEIR_JSON_ARRAY;
	if (at->kind == wanted) {
		if (!js->fail_on_missing || js->ignore_parse_errors)
			return weir_json_convert_null(js, f, NULL, row);
		return weir_json_refuse(js, WEIR_REASON_NULL, NULL, f->name, "the member is missing");
	}
	if (at->kind == WEIR_JSON_NULL && at != &js->root)
		return weir_json_convert_null(js, f, place, row);
	if (at->kind == WEIR_JSON_STRING || at->kind == WEIR_JSON_STRING_ESCAPED)
		place--;
	if (js->ignore_parse_errors && at != &js->root)
		return weir_json_convert_null(js, f, NULL, row);
	return weir_json_refuse(js, WEIR_REASON_TYPE, place, f->name,
				wanted == WEIR_JSON_OBJECT ? "expected an object" : "expected an array");
}

bool weir_json_finish(struct weir_json *js, uint32_t row)
{
	/* A record is an object, also for a query that reads none of its columns. */
	if (js->root.kind != WEIR_JSON_OBJECT && (js->root.kind != WEIR_JSON_ARRAY || js->root.element_count == 0)) {
		const uint8_t *at = js->doc + js->root.start;
		if (js->root.kind == WEIR_JSON_STRING || js->root.kind == WEIR_JSON_STRING_ESCAPED)
			at--;
		return weir_json_refuse(js, WEIR_REASON_TYPE, at, NULL, "expected an object");
	}
	for (uint32_t i = 0; i < js->field_count; i++) {
		const struct weir_json_field *f = &js->fields[i];
		const struct weir_json_node *node = f->node;
		if (node->generation != js->generation) {
			if (!finish_absent(js, f, row))
				return false;
		} else if (!weir_json_convert(js, f, node->kind, js->doc + node->start, js->doc + node->end, row)) {
			return false;
		}
	}
	return true;
}
