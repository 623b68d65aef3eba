/* list.c: lists of values (list.h). Adding costs the value's bytes, taking out and computing a look at all of them:
 * lists are short, or a query would not ask for them. @thread worker. */
#include "hotpath/state/list.h"

#include <stdlib.h>

#include "hotpath/core/hash.h"
#include "hotpath/format/format.h"
#include "hotpath/state/row.h"

enum { LIST_SMALL = 512 };

/* A value as it stands in lists. */
struct element {
	const uint8_t *data;
	uint32_t bytes; /* 0: NULL */
};

static uint32_t fixed_bytes(enum weir_phys phys)
{
	return phys == WEIR_PHYS_U8 ? 1 : phys == WEIR_PHYS_I128 ? 16 : 8;
}

static uint8_t *payload_of(const struct weir_pages *pg, const struct agg_list *s)
{
	return s->ref != 0 ? weir_blob_data((const struct weir_entry *)(void *)weir_ref_get(pg, s->ref)) : NULL;
}

/* Bytes of value `row` of c, behind its length and flag: room for them in `to` where it is not NULL. */
static uint32_t element_bytes(const struct weir_col *c, uint32_t row)
{
	if (weir_col_is_null(c, row))
		return 1;
	return 1 + (c->phys == WEIR_PHYS_STR ? c->str[c->is_const ? 0 : row].bytes : fixed_bytes(c->phys));
}

static void element_put(const struct weir_col *c, uint32_t row, uint8_t *to)
{
	bool null = weir_col_is_null(c, row);
	row = c->is_const ? 0 : row;
	*to++ = null;
	if (null)
		return;
	switch (c->phys) {
	case WEIR_PHYS_U8:
		*to = c->u8[row];
		break;
	case WEIR_PHYS_F64: { /* -0.0 is 0.0, as in keys */
		double v = c->f64[row] == 0 ? 0 : c->f64[row];
		memcpy(to, &v, sizeof v);
		break;
	}
	case WEIR_PHYS_I64:
		memcpy(to, &c->i64[row], 8);
		break;
	case WEIR_PHYS_I128:
		memcpy(to, &c->i128[row], 16);
		break;
	case WEIR_PHYS_STR:
		if (c->str[row].bytes != 0)
			memcpy(to, c->str[row].data, c->str[row].bytes);
		break;
	}
}

static void list_drop(struct weir_gen *g, struct agg_list *s)
{
	if (s->ref != 0) {
		struct weir_entry *b = (struct weir_entry *)(void *)weir_ref_get(g->pages, s->ref);
		weir_gen_kill(g, b, weir_blob_bytes(b));
	}
	s->ref = s->used = 0;
}

/* Room for so many bytes more behind those used, zeroed; NULL: there would be too many. */
static uint8_t *list_room(const struct weir_agg *a, struct weir_gen *g, struct agg_list *s, uint64_t more)
{
	if (s->full || s->n > a->elements_max || s->used + more > WEIR_LIST_BYTES_MAX) {
		list_drop(g, s);
		s->full = 1;
		return NULL;
	}
	struct weir_text t = {s->ref, s->used};
	uint8_t *have = payload_of(g->pages, s);
	uint64_t capacity = have != NULL ? ((const struct weir_entry *)(void *)have - 1)->hash : 0;
	if (s->used + more > capacity) {
		uint64_t want = capacity * 2 > s->used + more ? capacity * 2 : s->used + more;
		uint8_t *copy = weir_xcalloc(1, want + 1);
		if (s->used != 0)
			memcpy(copy, have, s->used);
		weir_text_set(g, &t, copy, (uint32_t)want);
		free(copy);
		s->ref = t.ref;
	} else {
		weir_gen_mark(g, (struct weir_entry *)(void *)have - 1);
	}
	return payload_of(g->pages, s) + s->used;
}

void weir_list_add(const struct weir_agg *a, struct weir_gen *g, struct agg_list *s, const struct weir_col *c,
		   uint32_t row)
{
	uint32_t bytes = element_bytes(c, row);
	s->n++;
	uint8_t *to = list_room(a, g, s, 4 + (uint64_t)bytes);
	if (to == NULL)
		return;
	weir_store_le32(to, bytes);
	element_put(c, row, to + 4);
	s->used += 4 + bytes;
}

void weir_list_remove(const struct weir_agg *a, struct weir_gen *g, struct agg_list *s, const struct weir_col *c,
		      uint32_t row)
{
	uint8_t small[LIST_SMALL], *want = small, *payload = payload_of(g->pages, s);
	uint32_t bytes = element_bytes(c, row);
	(void)a;
	s->n--;
	if (s->full) {
		s->full = s->n != 0;
		return;
	}
	if (bytes > sizeof small)
		want = weir_xmalloc(bytes);
	element_put(c, row, want);
	for (uint32_t at = 0; at + 4 <= s->used;) {
		uint32_t n = weir_load_le32(payload + at);
		if (n == bytes && memcmp(payload + at + 4, want, n) == 0) {
			memmove(payload + at, payload + at + 4 + n, s->used - at - 4 - n);
			s->used -= 4 + n;
			memset(payload + s->used, 0, 4 + n);
			weir_gen_mark(g, (struct weir_entry *)(void *)payload - 1);
			break;
		}
		at += 4 + n;
	}
	if (s->n == 0)
		list_drop(g, s);
	if (want != small)
		free(want);
}

void weir_list_merge(const struct weir_agg *a, struct weir_gen *g, struct agg_list *to,
		     const struct weir_pages *from_pages, const struct agg_list *from)
{
	to->n += from->n;
	if (from->full) {
		list_drop(g, to);
		to->full = 1;
	}
	if (from->used == 0)
		return;
	uint8_t *at = list_room(a, g, to, from->used);
	if (at == NULL)
		return;
	memcpy(at, payload_of(from_pages, from), from->used);
	to->used += from->used;
}

/* The value at *at; false at the end. */
static bool list_next(const uint8_t *payload, uint32_t used, uint32_t *at, struct element *out)
{
	if (used - *at < 5)
		return false;
	uint32_t n = weir_load_le32(payload + *at);
	if (n == 0 || n > used - *at - 4)
		return false;
	bool null = payload[*at + 4] != 0;
	*out = (struct element){payload + *at + 5, null ? 0 : n - 1};
	if (!null && n == 1)
		out->bytes = 0;
	if (null)
		out->data = NULL;
	*at += 4 + n;
	return true;
}

/* e, of c's form, as row `row` of c. */
static void element_get(const struct element *e, struct weir_col *c, uint32_t row)
{
	if (e->data == NULL) {
		weir_row_set_null(c, 1, row);
		return;
	}
	switch (c->phys) {
	case WEIR_PHYS_U8:
		c->u8[row] = e->data[0];
		break;
	case WEIR_PHYS_I64:
	case WEIR_PHYS_F64:
		memcpy(&c->i64[row], e->data, 8);
		break;
	case WEIR_PHYS_I128:
		memcpy(&c->i128[row], e->data, 16);
		break;
	case WEIR_PHYS_STR:
		c->str[row] = (struct weir_str){e->data, e->bytes, 0};
		break;
	}
}

static int element_compare(enum weir_phys phys, const struct element *a, const struct element *b)
{
	if (phys == WEIR_PHYS_STR) {
		uint32_t n = a->bytes < b->bytes ? a->bytes : b->bytes;
		int c = n != 0 ? memcmp(a->data, b->data, n) : 0;
		return c != 0 ? c : (a->bytes > b->bytes) - (a->bytes < b->bytes);
	}
	if (phys == WEIR_PHYS_F64) {
		double x, y;
		memcpy(&x, a->data, 8);
		memcpy(&y, b->data, 8);
		return (x > y) - (x < y);
	}
	if (phys == WEIR_PHYS_I128) {
		weir_i128 x, y;
		memcpy(&x, a->data, 16);
		memcpy(&y, b->data, 16);
		return (x > y) - (x < y);
	}
	if (phys == WEIR_PHYS_U8)
		return (int)a->data[0] - (int)b->data[0];
	int64_t x, y;
	memcpy(&x, a->data, 8);
	memcpy(&y, b->data, 8);
	return (x > y) - (x < y);
}

static int64_t count_distinct(const uint8_t *payload, uint32_t used, uint32_t n)
{
	uint32_t slots = 8, at = 0;
	struct element e;
	int64_t count = 0;
	while (slots < n * 2)
		slots *= 2;
	struct element *seen = weir_xcalloc(slots, sizeof *seen);
	while (list_next(payload, used, &at, &e)) {
		uint32_t i = (uint32_t)weir_hash(e.data, e.bytes) & (slots - 1);
		while (seen[i].data != NULL && (seen[i].bytes != e.bytes || memcmp(seen[i].data, e.data, e.bytes) != 0))
			i = (i + 1) & (slots - 1);
		count += seen[i].data == NULL;
		seen[i] = e;
	}
	free(seen);
	return count;
}

static void put_array(const struct weir_agg *a, const uint8_t *payload, uint32_t used, struct weir_col *c, uint32_t row,
		      struct weir_scratch *scratch)
{
	weir_i128 wide = 0;
	struct weir_str text = {0};
	uint64_t nulls[WEIR_NULL_WORDS] = {0};
	struct weir_col one = {.phys = weir_type_phys(&a->arg_type), .nulls = nulls};
	struct weir_buf out = {0};
	struct element e;
	uint32_t at = 0;
	one.data = one.phys == WEIR_PHYS_STR ? (void *)&text : (void *)&wide;
	weir_buf_put_byte(&out, '[');
	while (list_next(payload, used, &at, &e)) {
		if (out.bytes > 1)
			weir_buf_put_byte(&out, ',');
		if (e.data == NULL) {
			weir_buf_puts(&out, "null");
			continue;
		}
		element_get(&e, &one, 0);
		weir_json_put_value(&a->arg_type, &one, 0, &out);
	}
	weir_buf_put_byte(&out, ']');
	uint8_t *own = weir_scratch_take(scratch, out.bytes);
	memcpy(own, out.data, out.bytes);
	c->str[row] = (struct weir_str){own, (uint32_t)out.bytes, 0};
	weir_buf_fini(&out);
}

bool weir_list_final(const struct weir_agg *a, const struct agg_list *s, const struct weir_pages *pages,
		     struct weir_col *c, uint32_t row, struct weir_scratch *scratch)
{
	const uint8_t *payload = payload_of(pages, s);
	enum weir_phys phys = weir_type_phys(&a->arg_type);
	struct element e, best = {0};
	uint32_t at = 0;
	if (s->full || (s->n == 0 && a->kind != WEIR_AGG_COUNT_DISTINCT)) {
		weir_row_set_null(c, 1, row);
		return !s->full;
	}
	if (a->kind == WEIR_AGG_COUNT_DISTINCT) {
		c->i64[row] = payload != NULL ? count_distinct(payload, s->used, s->n) : 0;
		return true;
	}
	if (a->kind == WEIR_AGG_ARRAY_AGG) {
		put_array(a, payload, s->used, c, row, scratch);
		return true;
	}
	while (list_next(payload, s->used, &at, &e)) {
		bool take = best.data == NULL || a->kind == WEIR_AGG_LAST_VALUE ||
			    (a->kind == WEIR_AGG_MIN && element_compare(phys, &e, &best) < 0) ||
			    (a->kind == WEIR_AGG_MAX && element_compare(phys, &e, &best) > 0);
		best = take ? e : best;
	}
	element_get(&best, c, row);
	return true;
}

bool weir_list_check(const struct agg_list *s, const uint8_t *payload, uint32_t capacity)
{
	uint32_t at = 0, n = 0;
	struct element e;
	if (payload == NULL || s->used > capacity)
		return payload == NULL && s->used == 0;
	while (list_next(payload, s->used, &at, &e))
		n++;
	return at == s->used && n == s->n && !s->full;
}
