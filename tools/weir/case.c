/* case.c: tests from JSON, and the comparison of what came out with what was expected. Main thread.
 *
 * A key or value in a test file is compared by meaning where both sides are JSON and by bytes where they are not.
 * Order: per_key: records with the same topic and key come in the order written, keys may interleave; strict: so do all
 * records of a topic; any: as many of each, in any order. Topics that no test of the file expects records in are not
 * looked at, unless the file expects none at all: then nothing may come. In ksqlDB's form order is strict within a
 * topic, a topic without expected records is not looked at, member names match in upper case, and a null member may be
 * missing. */
#include "tools/weir/case.h"
#include "hotpath/core/utf8.h"
#include "hotpath/format/base64.h"
#include "hotpath/format/number.h"

#include <stdlib.h>

/* ---- loading ---- */

static const struct weir_node *member(const struct weir_node *nd, const char *name, const char *upper)
{
	const struct weir_node *found = weir_node_get(nd, name);
	return found != NULL ? found : weir_node_get(nd, upper);
}

static enum weir_err load_record(struct weir_case_record *r, const char *file, const struct weir_node *nd,
				 struct weir_diag **dg)
{
	const struct weir_node *topic = weir_node_get(nd, "topic");
	const struct weir_node *timestamp = weir_node_get(nd, "timestamp");
	if (nd->kind != WEIR_NODE_OBJECT || topic == NULL || topic->kind != WEIR_NODE_STRING)
		return weir_diag_set(dg, WEIR_E_CONF, "%s: a record needs a topic: %.*s", file,
				     (int)(nd->bytes < 80 ? nd->bytes : 80), nd->text);
	r->topic = topic->string;
	r->key = weir_node_get(nd, "key");
	r->value = weir_node_get(nd, "value");
	r->headers = weir_node_get(nd, "headers");
	r->window = weir_node_get(nd, "window");
	r->has_timestamp = timestamp != NULL && timestamp->kind != WEIR_NODE_NULL;
	if (r->has_timestamp && !weir_node_int(timestamp, &r->timestamp))
		return weir_diag_set(dg, WEIR_E_CONF, "%s: timestamp %.*s is no integer", file, (int)timestamp->bytes,
				     timestamp->text);
	return WEIR_OK;
}

static enum weir_err load_records(struct weir_case_record **out, uint32_t *count, struct weir_mem *mem,
				  const char *file, const struct weir_node *list, const char *what,
				  struct weir_diag **dg)
{
	*count = 0;
	*out = NULL;
	if (list == NULL)
		return WEIR_OK;
	if (list->kind != WEIR_NODE_ARRAY)
		return weir_diag_set(dg, WEIR_E_CONF, "%s: %s is no array", file, what);
	*out = weir_mem_take(mem, list->count * sizeof **out + 1);
	for (const struct weir_node *nd = list->first; nd != NULL; nd = nd->next) {
		enum weir_err err = load_record(&(*out)[(*count)++], file, nd, dg);
		if (err != WEIR_OK)
			return err;
	}
	return WEIR_OK;
}

static enum weir_err load_case(struct weir_case *tc, struct weir_mem *mem, const char *file, const struct weir_node *nd,
			       struct weir_diag **dg)
{
	static const char *const known[] = {"name", "inputs", "outputs", "order", "late", "rejected", "advance_to"};
	const struct weir_node *name = weir_node_get(nd, "name");
	const struct weir_node *order = weir_node_get(nd, "order");
	const struct weir_node *late = weir_node_get(nd, "late");
	const struct weir_node *rejected = weir_node_get(nd, "rejected");
	const struct weir_node *advance = weir_node_get(nd, "advance_to");
	if (nd->kind != WEIR_NODE_OBJECT)
		return weir_diag_set(dg, WEIR_E_CONF, "%s: a test is an object with inputs and outputs", file);
	for (const struct weir_node *m = nd->first; m != NULL; m = m->next) {
		bool found = false;
		for (size_t i = 0; i < WEIR_COUNT_OF(known); i++)
			found = found || strcmp(m->name, known[i]) == 0;
		const char *near =
			found ? NULL : weir_nearest_name(m->name, strlen(m->name), known, WEIR_COUNT_OF(known));
		if (!found)
			return weir_diag_set(dg, WEIR_E_CONF, "%s: unknown member %s%s%s", file, m->name,
					     near != NULL ? "; did you mean " : "", near != NULL ? near : "");
	}
	tc->name = name != NULL && name->kind == WEIR_NODE_STRING ? name->string : "test";
	tc->late = -1;
	if (late != NULL && !weir_node_int(late, &tc->late))
		return weir_diag_set(dg, WEIR_E_CONF, "%s: late %.*s is no integer", file, (int)late->bytes,
				     late->text);
	tc->rejected = -1;
	if (rejected != NULL && !weir_node_int(rejected, &tc->rejected))
		return weir_diag_set(dg, WEIR_E_CONF, "%s: rejected %.*s is no integer", file, (int)rejected->bytes,
				     rejected->text);
	tc->has_advance = advance != NULL;
	if (advance != NULL && !weir_node_int(advance, &tc->advance_to))
		return weir_diag_set(dg, WEIR_E_CONF, "%s: advance_to %.*s is no integer", file, (int)advance->bytes,
				     advance->text);
	const char *word = order != NULL && order->kind == WEIR_NODE_STRING ? order->string : "per_key";
	if (strcmp(word, "strict") != 0 && strcmp(word, "any") != 0 && strcmp(word, "per_key") != 0)
		return weir_diag_set(dg, WEIR_E_CONF, "%s: order is strict, per_key or any, not %s", file, word);
	tc->order = *word == 's' ? WEIR_ORDER_STRICT : *word == 'a' ? WEIR_ORDER_ANY : WEIR_ORDER_PER_KEY;
	enum weir_err err =
		load_records(&tc->input, &tc->input_count, mem, file, weir_node_get(nd, "inputs"), "inputs", dg);
	const struct weir_node *outputs = weir_node_get(nd, "outputs");
	tc->has_outputs = outputs != NULL;
	if (err == WEIR_OK)
		err = load_records(&tc->output, &tc->output_count, mem, file, outputs, "outputs", dg);
	return err;
}

/* Every topic that some test expects something in: a record there that no test expects is an error, too. */
static void collect_topics(struct weir_suite *su, struct weir_mem *mem)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < su->count; i++)
		most += su->test[i].output_count;
	su->topic = weir_mem_take(mem, most * sizeof *su->topic + 1);
	for (uint32_t i = 0; i < su->count; i++)
		for (uint32_t k = 0; k < su->test[i].output_count; k++) {
			const char *topic = su->test[i].output[k].topic;
			bool known = false;
			for (uint32_t t = 0; t < su->topic_count; t++)
				known = known || strcmp(su->topic[t], topic) == 0;
			if (!known)
				su->topic[su->topic_count++] = topic;
		}
}

void weir_suite_watch(struct weir_suite *su, struct weir_mem *mem, bool update)
{
	bool says = update && su->count != 0 && !su->test[0].ksql;
	for (uint32_t i = 0; i < su->count; i++)
		says |= su->test[i].has_outputs;
	if (su->topic_count != 0 || !says)
		return;
	su->topic = weir_mem_take(mem, su->shape_count * sizeof *su->topic + 1);
	for (uint32_t i = 0; i < su->shape_count; i++) {
		bool known = !su->shape[i].is_sink;
		for (uint32_t t = 0; t < su->topic_count; t++)
			known = known || strcmp(su->topic[t], su->shape[i].topics) == 0;
		if (!known)
			su->topic[su->topic_count++] = su->shape[i].topics;
	}
}

enum weir_err weir_suite_load(struct weir_suite *su, struct weir_mem *mem, const char *file,
			      const struct weir_node *root, struct weir_diag **dg)
{
	const struct weir_node *tests = weir_node_get(root, "tests");
	*su = (struct weir_suite){.file = file};
	if (tests != NULL && tests->kind != WEIR_NODE_ARRAY)
		return weir_diag_set(dg, WEIR_E_CONF, "%s: tests is no array", file);
	if (tests == NULL && weir_node_get(root, "inputs") == NULL)
		return weir_diag_set(dg, WEIR_E_CONF, "%s: neither tests nor inputs", file);
	su->test = weir_mem_take(mem, (tests != NULL ? tests->count : 1) * sizeof *su->test + 1);
	for (const struct weir_node *nd = tests != NULL ? tests->first : root; nd != NULL;
	     nd = tests != NULL ? nd->next : NULL) {
		enum weir_err err = load_case(&su->test[su->count++], mem, file, nd, dg);
		if (err != WEIR_OK)
			return err;
	}
	collect_topics(su, mem);
	return WEIR_OK;
}

enum weir_err weir_suite_load_ksql(struct weir_suite *su, struct weir_mem *mem, const char *file,
				   const struct weir_node *inputs, const struct weir_node *outputs,
				   struct weir_diag **dg)
{
	*su = (struct weir_suite){.file = file, .count = 1, .test = weir_mem_take(mem, sizeof *su->test)};
	struct weir_case *tc = su->test;
	tc->name = file;
	tc->ksql = true;
	tc->late = -1;
	tc->rejected = -1;
	tc->order = WEIR_ORDER_STRICT;
	enum weir_err err =
		load_records(&tc->input, &tc->input_count, mem, file, weir_node_get(inputs, "inputs"), "inputs", dg);
	if (err == WEIR_OK)
		err = load_records(&tc->output, &tc->output_count, mem, file, weir_node_get(outputs, "outputs"),
				   "outputs", dg);
	if (err == WEIR_OK && tc->input_count == 0)
		err = weir_diag_set(dg, WEIR_E_CONF, "%s: no inputs", file);
	collect_topics(su, mem);
	return err;
}

/* ---- bytes ---- */

/* JSON text without the space between tokens. */
static void put_compact(struct weir_buf *b, const struct weir_node *nd)
{
	if (nd->kind != WEIR_NODE_ARRAY && nd->kind != WEIR_NODE_OBJECT) {
		weir_buf_put(b, nd->text, nd->bytes);
		return;
	}
	bool quoted = false;
	for (size_t i = 0; i < nd->bytes; i++) {
		char c = nd->text[i];
		if (!quoted && (c == ' ' || c == '\n' || c == '\t' || c == '\r'))
			continue;
		weir_buf_put_byte(b, (uint8_t)c);
		if (quoted && c == '\\')
			weir_buf_put_byte(b, (uint8_t)nd->text[++i]);
		else if (c == '"')
			quoted = !quoted;
	}
}

struct weir_slice weir_case_bytes(struct weir_mem *mem, const struct weir_node *nd)
{
	if (nd == NULL || nd->kind == WEIR_NODE_NULL)
		return (struct weir_slice){NULL, 0};
	if (nd->kind == WEIR_NODE_STRING)
		return (struct weir_slice){nd->string, nd->string_bytes};
	struct weir_buf b = {0};
	put_compact(&b, nd);
	struct weir_slice out = {weir_mem_strndup(mem, (const char *)b.data, b.bytes), b.bytes};
	weir_buf_fini(&b);
	return out;
}

/* nd as a primitive of the topic, if it has one and nd is one. */
static bool primitive(const struct weir_suite *su, struct weir_mem *mem, const char *topic, bool sink, bool key,
		      const struct weir_node *nd, struct weir_slice *out)
{
	if (nd == NULL || (nd->kind != WEIR_NODE_NUMBER && nd->kind != WEIR_NODE_TRUE && nd->kind != WEIR_NODE_FALSE))
		return false;
	const struct weir_shape *sh = weir_shape_find(su->shape, su->shape_count, topic, sink);
	return weir_shape_encode(sh, key, mem, nd->text, nd->bytes, out);
}

struct weir_slice weir_case_input_bytes(const struct weir_suite *su, struct weir_mem *mem, const char *topic, bool key,
					const struct weir_node *nd)
{
	struct weir_slice out;
	return primitive(su, mem, topic, false, key, nd, &out) ? out : weir_case_bytes(mem, nd);
}

static void put_varint(struct weir_buf *b, int64_t v)
{
	uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
	for (; z >= 0x80; z >>= 7)
		weir_buf_put_byte(b, (uint8_t)(z | 0x80));
	weir_buf_put_byte(b, (uint8_t)z);
}

enum weir_err weir_case_headers(struct weir_mem *mem, const struct weir_node *headers, struct weir_slice *out,
				uint32_t *count, struct weir_diag **dg)
{
	*count = 0;
	*out = (struct weir_slice){NULL, 0};
	bool plain = headers != NULL && headers->kind == WEIR_NODE_OBJECT;
	if (headers == NULL || (headers->kind != WEIR_NODE_ARRAY && !plain) || headers->count == 0)
		return WEIR_OK;
	struct weir_buf b = {0};
	for (const struct weir_node *nd = headers->first; nd != NULL; nd = nd->next) {
		if (plain) { /* {name: text} */
			bool null = nd->kind != WEIR_NODE_STRING;
			put_varint(&b, (int64_t)strlen(nd->name));
			weir_buf_puts(&b, nd->name);
			put_varint(&b, null ? -1 : (int64_t)nd->string_bytes);
			weir_buf_put(&b, nd->string, null ? 0 : nd->string_bytes);
			(*count)++;
			continue;
		}
		const struct weir_node *key = member(nd, "key", "KEY");
		const struct weir_node *value = member(nd, "value", "VALUE");
		if (key == NULL || key->kind != WEIR_NODE_STRING) {
			weir_buf_fini(&b);
			return weir_diag_set(dg, WEIR_E_CONF, "a header needs a KEY: %.*s", (int)nd->bytes, nd->text);
		}
		put_varint(&b, (int64_t)key->string_bytes);
		weir_buf_put(&b, key->string, key->string_bytes);
		if (value == NULL || value->kind != WEIR_NODE_STRING) {
			put_varint(&b, -1);
		} else {
			size_t bytes;
			uint8_t *data = weir_mem_take(mem, weir_base64_data_bytes_max(value->string_bytes));
			if (!weir_base64_decode(value->string, value->string_bytes, data, &bytes)) {
				weir_buf_fini(&b);
				return weir_diag_set(dg, WEIR_E_CONF, "header %s: the value is no base64", key->string);
			}
			put_varint(&b, (int64_t)bytes);
			weir_buf_put(&b, data, bytes);
		}
		(*count)++;
	}
	*out = (struct weir_slice){weir_mem_copy(mem, b.data, b.bytes), b.bytes};
	weir_buf_fini(&b);
	return WEIR_OK;
}

static int64_t take_varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t z = 0;
	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;
		z |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
	}
	return (int64_t)(z >> 1) ^ -(int64_t)(z & 1);
}

void weir_case_put_string(struct weir_buf *b, struct weir_slice s)
{
	weir_buf_puts(b, "\"");
	for (size_t i = 0; i < s.bytes; i++) {
		uint8_t c = ((const uint8_t *)s.data)[i];
		if (c < 0x20)
			weir_buf_printf(b, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			weir_buf_printf(b, "\\%c", c);
		else
			weir_buf_put_byte(b, c);
	}
	weir_buf_puts(b, "\"");
}

void weir_case_put_headers(struct weir_buf *b, struct weir_slice headers, uint32_t count)
{
	const uint8_t *at = headers.data;
	const uint8_t *end = at + headers.bytes;
	weir_buf_puts(b, "{");
	for (uint32_t i = 0; i < count && at < end; i++) {
		int64_t bytes = take_varint(&at, end);
		if (bytes < 0 || bytes > end - at)
			break;
		weir_buf_puts(b, i == 0 ? "" : ", ");
		weir_case_put_string(b, (struct weir_slice){at, (size_t)bytes});
		at += bytes;
		bytes = take_varint(&at, end);
		weir_buf_puts(b, ": ");
		if (bytes > end - at)
			break;
		if (bytes < 0)
			weir_buf_puts(b, "null");
		else
			weir_case_put_string(b, (struct weir_slice){at, (size_t)bytes});
		at += bytes > 0 ? bytes : 0;
	}
	weir_buf_puts(b, "}");
}

/* ---- comparing ---- */

static unsigned flags_of(const struct weir_case *tc)
{
	return tc->ksql ? WEIR_EQUAL_ANY_CASE | WEIR_EQUAL_NULL_ABSENT : 0;
}

/* What is no JSON: the KAFKA format's big-endian numbers, and BYTES, written as base64. */
static bool same_binary(const struct weir_case *tc, struct weir_mem *mem, const struct weir_node *nd,
			struct weir_slice got)
{
	int64_t wanted;
	double real, wanted_real;
	if (nd->kind == WEIR_NODE_STRING && (tc->ksql || !weir_utf8_check(got.data, got.bytes, NULL))) {
		size_t bytes;
		uint8_t *data = weir_mem_take(mem, weir_base64_data_bytes_max(nd->string_bytes) + 1);
		return weir_base64_decode(nd->string, nd->string_bytes, data, &bytes) && bytes == got.bytes &&
		       memcmp(data, got.data, bytes) == 0;
	}
	if (nd->kind != WEIR_NODE_NUMBER || (got.bytes != 4 && got.bytes != 8))
		return false;
	uint64_t v = got.bytes == 8 ? weir_load_be64(got.data) : (uint64_t)(int64_t)(int32_t)weir_load_be32(got.data);
	if (weir_node_int(nd, &wanted) && (int64_t)v == wanted)
		return true;
	memcpy(&real, &v, sizeof real);
	return got.bytes == 8 && weir_parse_double(nd->text, nd->bytes, &wanted_real) == WEIR_NUMBER_OK &&
	       real - wanted_real <= 1e-6 && wanted_real - real <= 1e-6;
}

/* Whether bytes are what the test file means by nd. */
static bool same_bytes(const struct weir_case *tc, struct weir_mem *mem, const struct weir_node *nd,
		       struct weir_slice got)
{
	if (nd == NULL || nd->kind == WEIR_NODE_NULL)
		return got.data == NULL;
	if (got.data == NULL)
		return false;
	if (nd->kind == WEIR_NODE_STRING && nd->string_bytes == got.bytes &&
	    memcmp(nd->string, got.data, got.bytes) == 0)
		return true;
	struct weir_node *parsed;
	struct weir_diag *dg = NULL;
	const char *text = weir_mem_strndup(mem, got.data, got.bytes);
	if (weir_document_parse(&parsed, mem, NULL, text, got.bytes, &dg) != WEIR_OK) {
		weir_diag_destroy(dg);
		return same_binary(tc, mem, nd, got);
	}
	return weir_node_equal(nd, parsed, flags_of(tc));
}

/* The same for a topic whose keys or values are primitives. */
static bool same_part(const struct weir_case *tc, const struct weir_suite *su, struct weir_mem *mem, const char *topic,
		      bool key, const struct weir_node *nd, struct weir_slice got)
{
	struct weir_slice want;
	if (primitive(su, mem, topic, true, key, nd, &want) && got.data != NULL && got.bytes == want.bytes &&
	    memcmp(got.data, want.data, got.bytes) == 0)
		return true;
	return same_bytes(tc, mem, nd, got);
}

/* Takes the window bytes off a windowed key and compares them. A time window's end stands in no key: it follows from
 * the size of the topic's windows (0: unknown). */
static bool same_window(const struct weir_node *window, int64_t size_ms, struct weir_slice *key)
{
	int64_t start;
	int64_t end;
	const struct weir_node *type = member(window, "type", "TYPE");
	if (!weir_node_int(member(window, "start", "START"), &start) ||
	    !weir_node_int(member(window, "end", "END"), &end) || type == NULL)
		return false;
	bool session = type->kind == WEIR_NODE_STRING && (type->string[0] == 's' || type->string[0] == 'S');
	size_t bytes = session ? 16 : 8;
	if (key->data == NULL || key->bytes < bytes)
		return false;
	const uint8_t *at = (const uint8_t *)key->data + key->bytes - bytes;
	key->bytes -= bytes;
	if (session ? (int64_t)weir_load_be64(at) != end : size_ms != 0 && end - start != size_ms)
		return false;
	return (int64_t)weir_load_be64(at + bytes - 8) == start;
}

static bool same_record(const struct weir_case *tc, const struct weir_suite *su, struct weir_mem *mem,
			const struct weir_case_record *want, const struct weir_case_result *got)
{
	const struct weir_shape *sh = weir_shape_find(su->shape, su->shape_count, want->topic, true);
	struct weir_slice key = got->key;
	if (strcmp(want->topic, got->topic) != 0)
		return false;
	if (want->window != NULL && want->window->kind == WEIR_NODE_OBJECT &&
	    !same_window(want->window, sh != NULL ? sh->window_ms : 0, &key))
		return false;
	if (!same_part(tc, su, mem, want->topic, true, want->key, key) ||
	    !same_part(tc, su, mem, want->topic, false, want->value, got->value))
		return false;
	if (want->has_timestamp && want->timestamp != got->timestamp)
		return false;
	struct weir_slice headers;
	uint32_t count;
	if (want->headers == NULL)
		return true;
	return weir_case_headers(mem, want->headers, &headers, &count, NULL) == WEIR_OK && count == got->header_count &&
	       headers.bytes == got->headers.bytes &&
	       (count == 0 || memcmp(headers.data, got->headers.data, headers.bytes) == 0);
}

static void put_result(struct weir_buf *text, char sign, const struct weir_case_result *r)
{
	weir_buf_printf(text, "    %c %s  ", sign, r->topic);
	if (r->key.data == NULL)
		weir_buf_puts(text, "null");
	for (size_t i = 0; i < r->key.bytes; i++) {
		uint8_t c = ((const uint8_t *)r->key.data)[i];
		if (c >= 0x20 && c != 0x7f)
			weir_buf_put_byte(text, c);
		else
			weir_buf_printf(text, "\\x%02x", c);
	}
	weir_buf_printf(text, "  %lld  %.*s", (long long)r->timestamp, r->value.data != NULL ? (int)r->value.bytes : 4,
			r->value.data != NULL ? (const char *)r->value.data : "null");
	if (r->header_count != 0) {
		weir_buf_puts(text, "  ");
		weir_case_put_headers(text, r->headers, r->header_count);
	}
	weir_buf_puts(text, "\n");
}

static void put_wanted(struct weir_buf *text, const struct weir_case_record *r)
{
	weir_buf_printf(text, "    - %s  ", r->topic);
	if (r->key != NULL)
		put_compact(text, r->key);
	else
		weir_buf_puts(text, "null");
	if (r->window != NULL)
		put_compact(text, r->window);
	if (r->has_timestamp)
		weir_buf_printf(text, "  %lld  ", (long long)r->timestamp);
	else
		weir_buf_puts(text, "  any time  ");
	if (r->value != NULL)
		put_compact(text, r->value);
	else
		weir_buf_puts(text, "null");
	if (r->headers != NULL) {
		weir_buf_puts(text, "  ");
		put_compact(text, r->headers);
	}
	weir_buf_puts(text, "\n");
}

static bool is_expected_topic(const struct weir_case *tc, const struct weir_suite *su, const char *topic)
{
	for (uint32_t i = 0; tc->ksql && i < tc->output_count; i++)
		if (strcmp(tc->output[i].topic, topic) == 0)
			return true;
	for (uint32_t i = 0; !tc->ksql && i < su->topic_count; i++)
		if (strcmp(su->topic[i], topic) == 0)
			return true;
	return false;
}

/* Expected record w takes the first result that may be its own by the order: for `any` whichever is equal; for `strict`
 * the first of the topic that is left; for `per_key` the first of the topic that has its key. NULL: none. */
static struct weir_case_result *match(const struct weir_case *tc, const struct weir_suite *su, struct weir_mem *mem,
				      const struct weir_case_record *want, struct weir_case_result *result,
				      uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct weir_case_result *r = &result[i];
		if (r->matched || strcmp(r->topic, want->topic) != 0)
			continue;
		if (same_record(tc, su, mem, want, r))
			return r;
		if (tc->order == WEIR_ORDER_STRICT)
			return NULL;
		if (tc->order == WEIR_ORDER_PER_KEY && want->window == NULL &&
		    same_part(tc, su, mem, want->topic, true, want->key, r->key))
			return NULL;
	}
	return NULL;
}

bool weir_case_compare(const struct weir_case *tc, struct weir_mem *mem, const struct weir_suite *su,
		       struct weir_case_result *result, uint32_t count, struct weir_buf *text)
{
	bool same = true;
	for (uint32_t w = 0; w < tc->output_count; w++) {
		struct weir_case_result *r = match(tc, su, mem, &tc->output[w], result, count);
		if (r != NULL) {
			r->matched = true;
			continue;
		}
		same = false;
		put_wanted(text, &tc->output[w]);
		/* Beside it what came in its place, so that the records behind it still find theirs. */
		for (uint32_t i = 0; i < count; i++)
			if (!result[i].matched && strcmp(result[i].topic, tc->output[w].topic) == 0 &&
			    (tc->order == WEIR_ORDER_STRICT ||
			     same_part(tc, su, mem, tc->output[w].topic, true, tc->output[w].key, result[i].key))) {
				put_result(text, '+', &result[i]);
				result[i].matched = true;
				break;
			}
	}
	for (uint32_t i = 0; i < count; i++)
		if (!result[i].matched && is_expected_topic(tc, su, result[i].topic)) {
			same = false;
			put_result(text, '+', &result[i]);
		}
	return same;
}
