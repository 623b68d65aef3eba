/* kernel_json.c: JSON_VALUE and its kin over text, and access to ARRAY, MAP and ROW values. @thread worker (kernels),
 * init (rules).
 *
 * Paths are `$.name['name'].list[0]`, with `lax` (the default) or `strict` in front, which makes no difference here:
 * what is not there is NULL. Nested values are compact JSON text that a decoder made, so they need no check. */
#include "hotpath/expr/kernel.h"

#include "hotpath/expr/cast.h"
#include "hotpath/expr/json_text.h"
#include "hotpath/format/base64.h"
#include "hotpath/format/format.h"
#include "hotpath/format/number.h"

#define PATH_STEPS_MAX 32

struct path_step {
	const char *name; /* NULL: an index */
	uint32_t bytes;
	int64_t index;
};
struct path {
	uint32_t count;
	struct path_step step[PATH_STEPS_MAX];
};

static bool is_name_byte(char c)
{
	return c == '_' || c == '$' || c == '-' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       (c & 0x80);
}

/* [0] or ['name'] or ["name"]; *at stands behind the bracket. */
static const char *bracket_step(const char *s, size_t bytes, size_t *at, struct path_step *step)
{
	size_t i = *at;
	if (i < bytes && (s[i] == '\'' || s[i] == '"')) {
		char quote = s[i++];
		size_t from = i;
		while (i < bytes && s[i] != quote)
			i++;
		step->name = s + from;
		step->bytes = (uint32_t)(i - from);
		i++;
	} else {
		size_t from = i;
		step->index = 0;
		for (; i < bytes && s[i] >= '0' && s[i] <= '9' && i - from < 9; i++)
			step->index = step->index * 10 + (s[i] - '0');
		if (i == from)
			return "expected an index or a quoted name between the brackets (wildcards are not supported)";
	}
	if (i >= bytes || s[i] != ']')
		return "expected ]";
	*at = i + 1;
	return NULL;
}

static const char *path_compile(struct weir_str text, struct path *p)
{
	const char *s = (const char *)text.data;
	size_t bytes = text.bytes, at = 0;
	p->count = 0;
	if (bytes >= 4 && strncasecmp(s, "lax ", 4) == 0)
		at = 4;
	else if (bytes >= 7 && strncasecmp(s, "strict ", 7) == 0)
		at = 7;
	while (at < bytes && s[at] == ' ')
		at++;
	if (at >= bytes || s[at++] != '$')
		return "it must begin with $";
	while (at < bytes) {
		if (p->count == PATH_STEPS_MAX)
			return "it has too many steps";
		struct path_step *step = &p->step[p->count++];
		*step = (struct path_step){0};
		if (s[at] == '[') {
			at++;
			const char *problem = bracket_step(s, bytes, &at, step);
			if (problem != NULL)
				return problem;
			continue;
		}
		if (s[at++] != '.')
			return "expected . or [";
		size_t from = at;
		while (at < bytes && is_name_byte(s[at]))
			at++;
		if (at == from)
			return "expected a name after the point (wildcards are not supported)";
		step->name = s + from;
		step->bytes = (uint32_t)(at - from);
	}
	return NULL;
}

WEIR_PREPARE(json_path)
{
	const struct weir_expr *e = weir_const_arg(args, count, 1);
	if (e == NULL)
		return WEIR_OK;
	struct path *p = weir_mem_take(m, sizeof *p);
	const char *problem = path_compile(e->value.str, p);
	if (problem != NULL)
		return weir_diag_set(dg, WEIR_E_PLAN, "bad JSON path '%.*s': %s", (int)e->value.str.bytes,
				     (const char *)e->value.str.data, problem);
	*data = p;
	return WEIR_OK;
}

/* False: no such value, no JSON, or (a column's) no path. */
static bool path_find(const struct weir_kernel *k, uint32_t r, struct weir_json_text_slice *v)
{
	struct path row;
	const struct path *p = k->expr->fn_data;
	struct weir_str s = weir_arg_str(k, 0, r);
	if (p == NULL) {
		if (path_compile(weir_arg_str(k, 1, r), &row) != NULL)
			return false;
		p = &row;
	}
	if (!weir_json_text_whole(s.data, s.bytes, v))
		return false;
	for (uint32_t i = 0; i < p->count; i++) {
		const struct path_step *step = &p->step[i];
		bool ok = step->name != NULL ? weir_json_text_member(v, step->name, step->bytes, v)
					     : weir_json_text_element(v, step->index, v);
		if (!ok)
			return false;
	}
	return true;
}

/* A scalar's text: strings without quotes and escapes. */
static struct weir_str scalar_text(struct weir_kernel *k, const struct weir_json_text_slice *v)
{
	if (v->form != WEIR_JSON_TEXT_STRING)
		return (struct weir_str){v->data, v->bytes, 0};
	if (weir_json_text_is_plain(v))
		return (struct weir_str){v->data + 1, v->bytes - 2, 0};
	uint8_t *to = weir_kernel_take(k, v->bytes);
	return (struct weir_str){to, weir_json_text_unescape(v, to), 0};
}

WEIR_KERNEL(json_value)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_json_text_slice v;
		if (!path_find(k, r, &v) || v.form == WEIR_JSON_TEXT_NULL || v.form == WEIR_JSON_TEXT_OBJECT ||
		    v.form == WEIR_JSON_TEXT_ARRAY)
			weir_col_set_null(k->out, r);
		else
			k->out->str[r] = scalar_text(k, &v);
	}
}

WEIR_KERNEL(json_query)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_json_text_slice v;
		if (!path_find(k, r, &v) || (v.form != WEIR_JSON_TEXT_OBJECT && v.form != WEIR_JSON_TEXT_ARRAY)) {
			weir_col_set_null(k->out, r);
			continue;
		}
		uint8_t *to = weir_kernel_take(k, v.bytes);
		weir_out_str(k, r, to, weir_json_text_compact(&v, to));
	}
}

/* As Flink has it: a null is no value. */
WEIR_KERNEL(json_exists)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_json_text_slice v;
		k->out->u8[r] = path_find(k, r, &v) && v.form != WEIR_JSON_TEXT_NULL;
	}
}

/* The texts that are JSON of one of these forms. */
static inline void json_is(struct weir_kernel *k, uint32_t forms)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_json_text_slice v;
		struct weir_str s = weir_arg_str(k, 0, r);
		k->out->u8[r] = weir_json_text_whole(s.data, s.bytes, &v) && (forms >> v.form & 1) != 0;
	}
}

WEIR_KERNEL(is_json)
{
	json_is(k, ~0U);
}

WEIR_KERNEL(is_json_object)
{
	json_is(k, 1U << WEIR_JSON_TEXT_OBJECT);
}

WEIR_KERNEL(is_json_array)
{
	json_is(k, 1U << WEIR_JSON_TEXT_ARRAY);
}

WEIR_KERNEL(is_json_scalar)
{
	json_is(k, ~(1U << WEIR_JSON_TEXT_OBJECT | 1U << WEIR_JSON_TEXT_ARRAY));
}

/* -- nested values -- */

static bool is_nested(enum weir_kind k)
{
	return k == WEIR_KIND_ARRAY || k == WEIR_KIND_MAP || k == WEIR_KIND_ROW;
}

/* v as a t into row r of out. */
static bool put_value(struct weir_kernel *k, const struct weir_json_text_slice *v, const struct weir_type *t,
		      struct weir_col *out, uint32_t r)
{
	if (v->form == WEIR_JSON_TEXT_NULL) {
		weir_col_set_null(out, r);
		return true;
	}
	if (is_nested(t->kind)) {
		out->str[r] = (struct weir_str){v->data, v->bytes, 0};
		return v->form == WEIR_JSON_TEXT_OBJECT || v->form == WEIR_JSON_TEXT_ARRAY;
	}
	if (v->form == WEIR_JSON_TEXT_OBJECT || v->form == WEIR_JSON_TEXT_ARRAY) {
		out->str[r] = (struct weir_str){v->data, v->bytes, 0};
		return weir_kind_is_string(t->kind);
	}
	struct weir_str s = scalar_text(k, v);
	if (t->kind == WEIR_KIND_BYTES) {
		uint8_t *to = weir_kernel_take(k, weir_base64_data_bytes_max(s.bytes));
		size_t bytes = 0;
		bool ok = weir_base64_decode((const char *)s.data, s.bytes, to, &bytes);
		out->str[r] = (struct weir_str){to, ok ? (uint32_t)bytes : 0, 0};
		return ok;
	}
	if (v->form == WEIR_JSON_TEXT_NUMBER && weir_kind_is_timestamp(t->kind)) { /* milliseconds, as in a column */
		int64_t ms;
		return weir_parse_i64((const char *)s.data, s.bytes, &ms) == WEIR_NUMBER_OK &&
		       weir_unit_to_ticks(ms, 1000, weir_ticks_per_ms(t), &out->i64[r]);
	}
	bool word = v->form == WEIR_JSON_TEXT_TRUE || v->form == WEIR_JSON_TEXT_FALSE;
	bool fits = v->form == WEIR_JSON_TEXT_STRING || weir_kind_is_string(t->kind) ||
		    (word ? t->kind == WEIR_KIND_BOOLEAN : weir_kind_is_numeric(t->kind));
	/* Not CAST's rules, which cut 1.5 to 1: a member of a nested value is read as a column would be. */
	return fits && weir_text_parse(t, (const char *)s.data, s.bytes, out, r) == WEIR_REASON_NONE;
}

static void out_value(struct weir_kernel *k, uint32_t r, bool found, const struct weir_json_text_slice *v)
{
	if (!found)
		weir_col_set_null(k->out, r);
	else if (!put_value(k, v, &k->expr->type, k->out, r))
		weir_kernel_fail(k, r, WEIR_REASON_EXPR, "the element is of another type");
}

/* ITEM(array, n) from 1, ITEM(map, key). */
WEIR_RESOLVE(item)
{
	(void)args, (void)count;
	bool ok = (want[0].kind == WEIR_KIND_ARRAY && weir_kind_is_integer(want[1].kind)) ||
		  (want[0].kind == WEIR_KIND_MAP && weir_kind_is_string(want[1].kind));
	if (!ok)
		return false;
	*result = want[0].fields[want[0].kind == WEIR_KIND_MAP ? 1 : 0];
	result->not_null = false;
	want[1] = want[0].kind == WEIR_KIND_MAP ? weir_type_string() : weir_type_of(WEIR_KIND_BIGINT);
	return true;
}

WEIR_KERNEL(item)
{
	bool map = k->expr->args[0]->type.kind == WEIR_KIND_MAP;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = weir_arg_str(k, 0, r);
		struct weir_json_text_slice v;
		bool found = weir_json_text_take(s.data, s.bytes, &v, NULL);
		if (map) {
			struct weir_str key = weir_arg_str(k, 1, r);
			found = found && weir_json_text_member(&v, (const char *)key.data, key.bytes, &v);
		} else {
			int64_t n = weir_arg_i64(k, 1, r);
			found = found && n > 0 && weir_json_text_element(&v, n - 1, &v);
		}
		out_value(k, r, found, &v);
	}
}

/* FIELD(row, 'name') */
WEIR_RESOLVE(field)
{
	const struct weir_expr *name = weir_const_arg(args, count, 1);
	if (want[0].kind != WEIR_KIND_ROW || name == NULL || weir_type_phys(&name->type) != WEIR_PHYS_STR)
		return false;
	for (uint32_t i = 0; i < want[0].field_count; i++)
		if (strlen(want[0].field_names[i]) == name->value.str.bytes &&
		    memcmp(want[0].field_names[i], name->value.str.data, name->value.str.bytes) == 0) {
			*result = want[0].fields[i];
			result->not_null = false;
			return true;
		}
	return false;
}

WEIR_KERNEL(field)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = weir_arg_str(k, 0, r), name = weir_arg_str(k, 1, r);
		struct weir_json_text_slice v;
		bool found = weir_json_text_take(s.data, s.bytes, &v, NULL) &&
			     weir_json_text_member(&v, (const char *)name.data, name.bytes, &v);
		out_value(k, r, found, &v);
	}
}

WEIR_KERNEL(cardinality)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = weir_arg_str(k, 0, r);
		struct weir_json_text_slice v;
		if (weir_json_text_take(s.data, s.bytes, &v, NULL) &&
		    (v.form == WEIR_JSON_TEXT_ARRAY || v.form == WEIR_JSON_TEXT_OBJECT))
			k->out->i64[r] = weir_json_text_count(&v);
		else
			weir_col_set_null(k->out, r);
	}
}

WEIR_RESOLVE(element)
{
	(void)args, (void)count;
	if (want[0].kind != WEIR_KIND_ARRAY)
		return false;
	*result = want[0].fields[0];
	result->not_null = false;
	return true;
}

WEIR_KERNEL(element)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = weir_arg_str(k, 0, r);
		struct weir_json_text_slice v, one, more;
		uint32_t at = 0;
		bool found = weir_json_text_take(s.data, s.bytes, &v, NULL) && weir_json_text_next(&v, &at, &one);
		if (found && weir_json_text_next(&v, &at, &more))
			weir_kernel_fail(k, r, WEIR_REASON_EXPR, "ELEMENT: the array has more than one element");
		else
			out_value(k, r, found, &one);
	}
}

WEIR_RESOLVE(array_contains)
{
	(void)args, (void)count;
	if (want[0].kind != WEIR_KIND_ARRAY || is_nested(want[0].fields[0].kind))
		return false;
	*result = weir_type_of(WEIR_KIND_BOOLEAN);
	result->not_null = want[0].not_null && want[1].not_null;
	want[1] = want[0].fields[0];
	return true;
}

WEIR_KERNEL(array_contains)
{
	const struct weir_type *t = &k->expr->args[0]->type.fields[0];
	struct weir_str cell = {0};
	weir_i128 wide = 0;
	uint64_t nulls[WEIR_NULL_WORDS] = {0};
	struct weir_col one = {.phys = weir_type_phys(t), .nulls = nulls};
	one.data = one.phys == WEIR_PHYS_STR ? (void *)&cell : (void *)&wide;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = weir_arg_str(k, 0, r);
		struct weir_json_text_slice v, e;
		uint32_t at = 0;
		bool has = false;
		if (weir_json_text_take(s.data, s.bytes, &v, NULL))
			while (!has && weir_json_text_next(&v, &at, &e))
				has = e.form != WEIR_JSON_TEXT_NULL && put_value(k, &e, t, &one, 0) &&
				      weir_compare_values(t, &one, 0, t, k->in[1], r) == 0;
		k->out->u8[r] = has;
	}
}
