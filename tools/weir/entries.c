/* entries.c: packs and page images of a changelog as JSON (entries.h). Nothing here trusts a length: whoever looks into
 * a changelog may be looking for what is wrong with it. Main thread. */
#include "tools/weir/entries.h"

#include <jansson.h>
#include <stdlib.h>

#include "checkpoint/record.h"
#include "hotpath/expr/ast.h"
#include "hotpath/format/format.h"
#include "hotpath/state/blob.h"
#include "hotpath/state/dirty.h"
#include "hotpath/state/page.h"
#include "hotpath/state/row.h"
#include "hotpath/topology/describe.h"

struct found_blob {
	uint32_t ref;
	const struct weir_entry *e;
};

struct weir_entries {
	struct weir_mem mem;
	struct weir_state_def def;
	bool known;
	struct weir_type *key_types;
	struct weir_agg *aggs;
	struct weir_field *fields; /* keys, then aggregates */
	struct weir_encoder *encoder;
	struct weir_col *cols;
	struct weir_scratch scratch;
	uint32_t slot;                           /* of the record at hand */
	uint32_t cut_slot, cut_page, cut_offset; /* where an entry goes on that a record could not hold; page 0: none */
	uint8_t *copy;                           /* the body at hand, aligned */
	struct weir_buf blobs;                   /* struct found_blob: those of the pack at hand */
	size_t copy_bytes;
};

struct weir_entries *weir_entries_create(void)
{
	struct weir_entries *en = weir_xcalloc(1, sizeof *en);
	weir_scratch_init(&en->scratch);
	return en;
}

static void forget(struct weir_entries *en)
{
	if (en->encoder != NULL)
		en->encoder->destroy(en->encoder);
	for (uint32_t i = 0; en->cols != NULL && i < en->def.key_count + en->def.agg_count; i++)
		if (en->cols[i].data != NULL)
			weir_col_fini(&en->cols[i]);
	free(en->cols);
	en->encoder = NULL;
	en->cols = NULL;
	en->known = false;
	memset(&en->def, 0, sizeof en->def);
}

void weir_entries_destroy(struct weir_entries *en)
{
	if (en == NULL)
		return;
	forget(en);
	weir_scratch_fini(&en->scratch);
	weir_mem_fini(&en->mem);
	weir_buf_fini(&en->blobs);
	free(en->copy);
	free(en);
}

bool weir_entries_knows(const struct weir_entries *en)
{
	return en->known;
}

/* ---- the layout ---- */

static bool take_type(struct weir_entries *en, const json_t *text, struct weir_type *out)
{
	struct weir_tokens ts;
	const char *s = json_string_value(text);
	return s != NULL && weir_tokens_init(&ts, &en->mem, NULL, s, strlen(s), 0, NULL) == WEIR_OK &&
	       weir_type_parse(&ts, &en->mem, out, NULL) == WEIR_OK;
}

/* `SUM(amount)`, `COUNT(DISTINCT id) FILTER (WHERE ok)`. */
static const char *call_text(struct weir_entries *en, const char *function, const char *arg, const char *filter)
{
	bool star = strcmp(function, "COUNT_STAR") == 0, distinct = strcmp(function, "COUNT_DISTINCT") == 0;
	return weir_mem_printf(&en->mem, "%s(%s%s)%s%s%s", star || distinct ? "COUNT" : function,
			       distinct ? "DISTINCT " : "", arg != NULL ? arg : "*",
			       filter != NULL ? " FILTER (WHERE " : "", filter != NULL ? filter : "",
			       filter != NULL ? ")" : "");
}

static bool take_aggregate(struct weir_entries *en, const json_t *item, uint32_t i)
{
	struct weir_agg *a = &en->aggs[i];
	struct weir_type type;
	const char *function = json_string_value(json_object_get(item, "function"));
	if (function == NULL)
		return false;
	bool star = strcmp(function, "COUNT_STAR") == 0, distinct = strcmp(function, "COUNT_DISTINCT") == 0;
	if (!star && !take_type(en, json_object_get(item, "type"), &type))
		return false;
	if (weir_agg_resolve(a, star || distinct ? "COUNT" : function, distinct, star ? NULL : &type, NULL) != WEIR_OK)
		return false;
	a->arg = star ? -1 : 0;
	a->filter = -1;
	a->text = call_text(en, function, json_string_value(json_object_get(item, "of")),
			    json_string_value(json_object_get(item, "where")));
	en->fields[en->def.key_count + i] = (struct weir_field){.name = a->text, .type = a->result_type};
	return true;
}

static bool take_layout(struct weir_entries *en, const json_t *layout)
{
	static const char *const kinds[] = {[WEIR_STATE_WINDOW] = "window",
					    [WEIR_STATE_SESSION] = "session",
					    [WEIR_STATE_TABLE] = "table",
					    [WEIR_STATE_SLIDING] = "sliding"};
	struct weir_state_def *def = &en->def;
	const char *kind = json_string_value(json_object_get(layout, "kind"));
	const json_t *keys = json_object_get(layout, "keys"), *aggs = json_object_get(layout, "aggregates");
	uint32_t k = 0;
	while (kind != NULL && k < WEIR_COUNT_OF(kinds) && (kinds[k] == NULL || strcmp(kind, kinds[k]) != 0))
		k++;
	if (kind == NULL || k == WEIR_COUNT_OF(kinds) || !json_is_array(keys) || !json_is_array(aggs))
		return false;
	def->name = "state";
	def->kind = (enum weir_state_kind)k;
	def->size_ms = json_integer_value(json_object_get(layout, "size"));
	def->advance_ms = json_integer_value(json_object_get(layout, "advance"));
	def->gap_ms = json_integer_value(json_object_get(layout, "gap"));
	def->changes = json_is_true(json_object_get(layout, "changes"));
	def->key_count = (uint32_t)json_array_size(keys);
	def->agg_count = (uint32_t)json_array_size(aggs);
	uint32_t count = def->key_count + def->agg_count;
	def->key_types = en->key_types = weir_mem_take(&en->mem, (def->key_count + 1) * sizeof *en->key_types);
	def->aggs = en->aggs = weir_mem_take(&en->mem, (def->agg_count + 1) * sizeof *en->aggs);
	en->fields = weir_mem_take(&en->mem, (count + 1) * sizeof *en->fields);
	for (uint32_t i = 0; i < def->key_count; i++) {
		const json_t *item = json_array_get(keys, i);
		const char *name = json_string_value(json_object_get(item, "of"));
		if (name == NULL || !take_type(en, json_object_get(item, "type"), &en->key_types[i]))
			return false;
		en->fields[i] = (struct weir_field){.name = weir_mem_strdup(&en->mem, name), .type = en->key_types[i]};
	}
	for (uint32_t i = 0; i < def->agg_count; i++)
		if (!take_aggregate(en, json_array_get(aggs, i), i))
			return false;
	struct weir_format_options json = {.kind = WEIR_FORMAT_JSON};
	if (weir_state_def_init(def, NULL) != WEIR_OK ||
	    weir_encoder_create(&en->encoder, &json, en->fields, count, NULL) != WEIR_OK)
		return false;
	en->cols = weir_xcalloc(count + 1, sizeof *en->cols);
	for (uint32_t i = 0; i < count; i++)
		weir_col_init(&en->cols[i], weir_type_phys(&en->fields[i].type));
	return true;
}

void weir_entries_learn(struct weir_entries *en, const struct weir_record *r)
{
	enum weir_record_kind kind;
	uint32_t slot, number, part;
	struct weir_diag *dg = NULL;
	bool schema = weir_record_key_parse(r->key, r->key_bytes, &kind, &slot, &number, &part, &dg) == WEIR_OK &&
		      kind == WEIR_RECORD_SCHEMA && r->value != NULL;
	weir_diag_destroy(dg);
	if (!schema)
		return;
	forget(en);
	json_error_t error;
	json_t *root = json_loadb((const char *)r->value, r->value_bytes, 0, &error);
	const json_t *layout = json_object_get(root, "layout");
	en->known = layout != NULL && take_layout(en, layout);
	if (!en->known)
		forget(en);
	json_decref(root);
}

/* ---- entries ---- */

/* Bytes of the entry at e, of which room are there; 0 where they do not even say. */
static uint64_t entry_bytes(const struct weir_state_def *def, const struct weir_entry *e, size_t room)
{
	if (room < sizeof *e)
		return 0;
	if ((e->flags & WEIR_ENTRY_BLOB) != 0)
		return e->hash % 8 == 0 ? weir_blob_bytes(e) : 0;
	if (e->key_bytes == WEIR_KEY_LONG && room < weir_def_key_at(def) + 8)
		return 0;
	return weir_entry_bytes(def, e);
}

static void put_place(struct weir_buf *out, bool *first, uint32_t page, uint32_t offset)
{
	weir_buf_printf(out, "%s{\"page\":%u,\"offset\":%u", *first ? "" : ",", page, offset);
	*first = false;
}

/* Notes the blobs that stand whole in `bytes` of a page from `offset`. */
static void find_blobs(struct weir_entries *en, uint32_t page, uint32_t offset, const uint8_t *data, size_t bytes)
{
	for (size_t at = 0; en->known && at < bytes;) {
		const struct weir_entry *e = (const struct weir_entry *)(const void *)(data + at);
		uint64_t n = entry_bytes(&en->def, e, bytes - at);
		if (n == 0 || n > bytes - at)
			return;
		struct found_blob f = {page << WEIR_REF_SHIFT | (uint32_t)((offset + at) / 8), e};
		if ((e->flags & (WEIR_ENTRY_BLOB | WEIR_ENTRY_DEAD)) == WEIR_ENTRY_BLOB)
			weir_buf_put(&en->blobs, &f, sizeof f);
		at += n;
	}
}

/* The string an aggregate refers to, if it stands in the same pack. */
static bool find_text(const struct weir_entries *en, const struct weir_agg *a, const uint8_t *state,
		      struct weir_str *out)
{
	const struct found_blob *f = (const struct found_blob *)(const void *)en->blobs.data;
	const struct weir_text *t = weir_agg_text(a, state);
	for (size_t i = 0; i < en->blobs.bytes / sizeof *f; i++)
		if (f[i].ref == t->ref && t->bytes <= f[i].e->hash) {
			*out = (struct weir_str){weir_blob_data(f[i].e), t->bytes, 0};
			return true;
		}
	return false;
}

/* Keys and results of one whole entry; strings of aggregates may stand elsewhere: where. */
static void put_row(struct weir_entries *en, const struct weir_entry *e, struct weir_buf *out)
{
	const struct weir_state_def *def = &en->def;
	uint32_t n, texts = 0;
	weir_scratch_reset(&en->scratch);
	for (uint32_t i = 0; i < def->key_count + def->agg_count; i++)
		weir_col_clear_nulls(&en->cols[i]);
	const uint8_t *key = weir_entry_key(def, e, &n);
	weir_key_decode(key, n, def->key_types, def->key_count, en->cols, 0, &en->scratch);
	for (uint32_t i = 0; i < def->agg_count; i++) {
		const struct weir_agg *a = &def->aggs[i];
		const uint8_t *state = (const uint8_t *)e + def->head_bytes + a->state_at;
		struct weir_col *c = &en->cols[def->key_count + i];
		if (a->list) { /* its values stand in a blob */
			weir_row_set_null(c, 1, 0);
		} else if (weir_agg_blob(a, state) != 0 && a->kind != WEIR_AGG_COUNT_DISTINCT) {
			c->str[0] = (struct weir_str){NULL, 0, 0};
			if (!find_text(en, a, state, &c->str[0]))
				weir_col_set_null(c, 0);
		} else {
			(void)weir_agg_final(a, state, NULL, c, 0);
		}
	}
	weir_buf_puts(out, ",\"row\":");
	en->encoder->encode(en->encoder, en->cols, 0, out);
	for (uint32_t i = 0; i < def->agg_count; i++) {
		const struct weir_agg *a = &def->aggs[i];
		uint32_t ref = weir_agg_blob(a, (const uint8_t *)e + def->head_bytes + a->state_at);
		if (ref == 0)
			continue;
		weir_buf_puts(out, texts++ == 0 ? ",\"blobs\":{" : ",");
		weir_json_put(out, a->text);
		weir_buf_printf(out, ":{\"page\":%u,\"offset\":%u}", ref >> WEIR_REF_SHIFT,
				(ref & ((1u << WEIR_REF_SHIFT) - 1)) * 8);
	}
	weir_buf_puts(out, texts != 0 ? "}" : "");
}

static void put_entry(struct weir_entries *en, const struct weir_entry *e, struct weir_buf *out)
{
	if ((e->flags & WEIR_ENTRY_BLOB) != 0) {
		weir_buf_printf(out, ",\"blob\":%u}", e->hash);
		return;
	}
	if (en->def.kind == WEIR_STATE_SESSION) {
		const struct weir_session *s = (const struct weir_session *)(const void *)e;
		weir_buf_printf(out, ",\"first\":%lld,\"last\":%lld", (long long)s->start, (long long)s->last);
	} else if (en->def.kind == WEIR_STATE_SLIDING) {
		const struct weir_session *s = (const struct weir_session *)(const void *)e;
		weir_buf_printf(out, ",\"start\":%lld,\"end\":%lld,\"last\":%lld", (long long)s->start,
				(long long)(s->start + en->def.size_ms), (long long)s->last);
	} else if (en->def.stamped) {
		weir_buf_printf(out, ",\"time\":%lld", (long long)((const struct weir_stamped *)(const void *)e)->time);
	}
	if ((e->flags & WEIR_ENTRY_EMITTED) != 0)
		weir_buf_puts(out, ",\"emitted\":true");
	put_row(en, e, out);
	weir_buf_puts(out, "}");
}

/* The entries in `bytes` of a page from `offset`. */
static void put_range(struct weir_entries *en, uint32_t page, uint32_t offset, const uint8_t *data, size_t bytes,
		      bool *first, struct weir_buf *out)
{
	bool goes_on = page != 0 && en->cut_slot == en->slot && en->cut_page == page && en->cut_offset == offset;
	en->cut_page = 0;
	if (!en->known || goes_on) {
		put_place(out, first, page, offset);
		weir_buf_printf(out, ",\"bytes\":%zu%s}", bytes, goes_on ? ",\"continues\":true" : "");
		if (goes_on) {
			en->cut_slot = en->slot;
			en->cut_page = page;
			en->cut_offset = offset + (uint32_t)bytes;
		}
		return;
	}
	for (size_t at = 0; at < bytes;) {
		const struct weir_entry *e = (const struct weir_entry *)(const void *)(data + at);
		uint64_t n = entry_bytes(&en->def, e, bytes - at);
		bool dead = bytes - at >= sizeof *e && (e->flags & WEIR_ENTRY_DEAD) != 0;
		put_place(out, first, page, offset + (uint32_t)at);
		if (dead) {
			weir_buf_puts(out, ",\"dead\":true}");
		} else if (n == 0 || n > bytes - at) {
			weir_buf_printf(out, ",\"bytes\":%zu,\"cut\":true}", bytes - at);
			en->cut_slot = en->slot;
			en->cut_page = page;
			en->cut_offset = offset + (uint32_t)bytes;
		} else {
			put_entry(en, e, out);
		}
		if (n == 0 || n > bytes - at)
			return;
		at += n;
	}
}

/* Calls nothing but find_blobs for every item. */
static void look_through(struct weir_entries *en, const uint8_t *body, size_t bytes)
{
	const uint8_t *at = body + sizeof(struct weir_pack_head), *end = body + bytes;
	en->blobs.bytes = 0;
	while (at < end && (size_t)(end - at) >= sizeof(struct weir_pack_run)) {
		const struct weir_pack_run *run = (const struct weir_pack_run *)(const void *)at;
		at += sizeof *run;
		for (uint32_t i = 0; i < run->items && (size_t)(end - at) >= sizeof(struct weir_pack_item); i++) {
			const struct weir_pack_item *it = (const struct weir_pack_item *)(const void *)at;
			at += sizeof *it;
			if (it->bytes % 8 != 0 || it->bytes > (size_t)(end - at))
				return;
			find_blobs(en, it->page, it->offset, at, it->bytes);
			at += it->bytes;
		}
	}
}

static void put_pack(struct weir_entries *en, const uint8_t *body, size_t bytes, struct weir_buf *out)
{
	struct weir_pack_head head;
	bool first_run = true;
	const uint8_t *at = body + sizeof head, *end = body + bytes;
	if (bytes < sizeof head)
		return;
	look_through(en, body, bytes);
	while ((size_t)(end - at) >= sizeof(struct weir_pack_run)) {
		struct weir_pack_run run;
		bool first = true;
		memcpy(&run, at, sizeof run);
		at += sizeof run;
		weir_buf_printf(out, "%s{\"window\":%lld,\"entries\":[", first_run ? "" : ",", (long long)run.window);
		first_run = false;
		for (uint32_t i = 0; i < run.items && (size_t)(end - at) >= sizeof(struct weir_pack_item); i++) {
			struct weir_pack_item it;
			memcpy(&it, at, sizeof it);
			at += sizeof it;
			if (it.bytes % 8 != 0 || it.bytes > (size_t)(end - at)) {
				weir_buf_puts(out, "]}"); /* no body that weir wrote */
				return;
			}
			if (it.page_bytes == WEIR_PACK_GIVEN) {
				put_place(out, &first, it.page, it.offset);
				weir_buf_puts(out, ",\"gone\":true}");
			} else {
				put_range(en, it.page, it.offset, at, it.bytes, &first, out);
			}
			at += it.bytes;
		}
		weir_buf_puts(out, "]}");
	}
}

static void put_image(struct weir_entries *en, uint32_t page, uint32_t part, const uint8_t *body, size_t bytes,
		      struct weir_buf *out)
{
	struct weir_image_head head;
	bool first = true;
	if (bytes < sizeof head)
		return;
	en->blobs.bytes = 0;
	memcpy(&head, body, sizeof head);
	weir_buf_printf(out, "{\"window\":%lld,\"page_bytes\":%u,\"used\":%u,\"entries\":[", (long long)head.window,
			head.page_bytes, head.used);
	uint64_t from = WEIR_PAGE_HEAD + (uint64_t)part * WEIR_IMAGE_PART;
	if (bytes > sizeof head && from + bytes < UINT32_MAX)
		put_range(en, page, (uint32_t)from, body + sizeof head, bytes - sizeof head, &first, out);
	weir_buf_puts(out, "]}");
}

/* Bodies consist of multiples of 8 bytes, and keys are read a word at a time. */
static const uint8_t *align(struct weir_entries *en, const uint8_t *body, size_t bytes)
{
	if (bytes + 16 > en->copy_bytes) {
		free(en->copy);
		en->copy_bytes = bytes + 16;
		en->copy = weir_xmalloc(en->copy_bytes);
	}
	memcpy(en->copy, body, bytes);
	memset(en->copy + bytes, 0, 16);
	return en->copy;
}

void weir_entries_add(struct weir_entries *en, const struct weir_record *r, struct weir_buf *out)
{
	enum weir_record_kind kind;
	uint32_t slot, number, part;
	uint64_t epoch, sum;
	const uint8_t *body;
	size_t bytes;
	struct weir_diag *dg = NULL;
	weir_entries_learn(en, r);
	bool body_there = weir_record_key_parse(r->key, r->key_bytes, &kind, &slot, &number, &part, &dg) == WEIR_OK &&
			  (kind == WEIR_RECORD_PACK || kind == WEIR_RECORD_PAGE) && r->value != NULL &&
			  weir_record_open(r->key, r->key_bytes, r->value, r->value_bytes, &epoch, &body, &bytes, &sum,
					   &dg) == WEIR_OK;
	weir_diag_destroy(dg);
	if (!body_there || out->bytes == 0 || out->data[out->bytes - 1] != '}')
		return;
	body = align(en, body, bytes);
	en->slot = slot;
	out->bytes--;
	weir_buf_puts(out, ",\"windows\":[");
	if (kind == WEIR_RECORD_PACK)
		put_pack(en, body, bytes, out);
	else
		put_image(en, number, part, body, bytes, out);
	weir_buf_puts(out, "]}");
}
