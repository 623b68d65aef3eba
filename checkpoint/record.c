/* record.c: bytes of changelog records (drawn in record.h). @thread snap, init or any: no state of its own */
#include "checkpoint/record.h"

#include <inttypes.h>

#include "hotpath/core/hash.h"

static const char kinds[] = {'P', 'I', 'S', 'M'};

size_t weir_record_key(uint8_t *out, enum weir_record_kind kind, uint32_t slot, uint32_t number, uint32_t part)
{
	out[0] = (uint8_t)kinds[kind];
	if (kind == WEIR_RECORD_SCHEMA || kind == WEIR_RECORD_MARKER)
		return 1;
	weir_store_be32(out + 1, slot);
	weir_store_be32(out + 5, number);
	if (kind == WEIR_RECORD_PACK)
		return 9;
	weir_store_be32(out + 9, part);
	return 13;
}

enum weir_err weir_record_key_parse(const uint8_t *key, size_t bytes, enum weir_record_kind *kind, uint32_t *slot,
				    uint32_t *number, uint32_t *part, struct weir_diag **dg)
{
	static const size_t want[] = {9, 13, 1, 1};
	*slot = *number = *part = 0;
	for (int k = 0; k < 4; k++) {
		if (!key || bytes != want[k] || key[0] != (uint8_t)kinds[k])
			continue;
		*kind = (enum weir_record_kind)k;
		if (bytes > 1) {
			*slot = weir_load_be32(key + 1);
			*number = weir_load_be32(key + 5);
		}
		if (bytes == 13)
			*part = weir_load_be32(key + 9);
		return WEIR_OK;
	}
	return weir_diag_set(dg, WEIR_E_CORRUPT, "not a changelog record of weir: its key has %zu bytes",
			     key ? bytes : 0);
}

uint64_t weir_record_frame(struct weir_buf *out, const uint8_t *key, size_t key_bytes, uint64_t epoch,
			   const uint8_t *body, size_t bytes)
{
	size_t at = out->bytes;
	weir_buf_put_byte(out, WEIR_RECORD_VERSION);
	weir_buf_put(out, &epoch, sizeof epoch);
	weir_buf_put(out, body, bytes);
	uint64_t sum = XXH3_64bits_withSeed(out->data + at, out->bytes - at, weir_hash(key, key_bytes));
	weir_buf_put(out, &sum, sizeof sum);
	return sum;
}

enum weir_err weir_record_open(const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t bytes,
			       uint64_t *epoch, const uint8_t **body, size_t *body_bytes, uint64_t *sum,
			       struct weir_diag **dg)
{
	if (bytes < 17)
		return weir_diag_set(dg, WEIR_E_CORRUPT, "a changelog record of %zu bytes is too short", bytes);
	if (value[0] != WEIR_RECORD_VERSION)
		return weir_diag_set(dg, WEIR_E_STATE,
				     "changelog format version %u is not known (this weir reads version %u)", value[0],
				     WEIR_RECORD_VERSION);
	uint64_t stored = weir_load_le64(value + bytes - 8);
	if (XXH3_64bits_withSeed(value, bytes - 8, weir_hash(key, key_bytes)) != stored)
		return weir_diag_set(dg, WEIR_E_CORRUPT, "a changelog record's checksum is wrong");
	*epoch = weir_load_le64(value + 1);
	*body = value + 9;
	*body_bytes = bytes - 17;
	*sum = stored;
	return WEIR_OK;
}

static void put32(struct weir_buf *b, uint32_t v)
{
	weir_buf_put(b, &v, sizeof v);
}

static void put64(struct weir_buf *b, uint64_t v)
{
	weir_buf_put(b, &v, sizeof v);
}

void weir_marker_encode(const struct weir_marker *mk, struct weir_buf *out)
{
	size_t at = out->bytes;
	weir_buf_put_byte(out, WEIR_RECORD_VERSION);
	put64(out, mk->epoch);
	put64(out, mk->records);
	put64(out, mk->bytes);
	put64(out, mk->sum);
	put32(out, mk->count);
	put32(out, mk->input_count);
	for (uint32_t i = 0; i < mk->input_count; i++) {
		const struct weir_marker_input *in = &mk->inputs[i];
		uint32_t bytes = in->topic_bytes + (in->table_bytes != 0) + in->table_bytes;
		uint16_t n = (uint16_t)bytes;
		WEIR_ASSERT(n == bytes);
		weir_buf_put(out, &n, sizeof n);
		weir_buf_put(out, in->topic, in->topic_bytes);
		if (in->table_bytes != 0) {
			weir_buf_put_byte(out, 0);
			weir_buf_put(out, in->table, in->table_bytes);
		}
		put32(out, in->partition);
		put64(out, (uint64_t)in->offset);
		put64(out, (uint64_t)in->time);
	}
	put32(out, mk->slot_count);
	for (uint32_t i = 0; i < mk->slot_count; i++) {
		const struct weir_marker_slot *s = &mk->slots[i];
		put32(out, s->slot);
		put64(out, (uint64_t)s->task_time);
		put32(out, s->saved_bytes);
		weir_buf_put(out, s->saved, s->saved_bytes);
	}
	put64(out, weir_hash(out->data + at, out->bytes - at));
}

/* A cursor that turns sticky-short instead of reading beyond the end. */
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static const uint8_t *get(struct cursor *c, size_t bytes)
{
	static const uint8_t zero[8];
	if (c->bad || (size_t)(c->end - c->at) < bytes) {
		c->bad = true;
		return bytes <= sizeof zero ? zero : NULL;
	}
	const uint8_t *p = c->at;
	c->at += bytes;
	return p;
}

enum weir_err weir_marker_decode(struct weir_marker *mk, const uint8_t *value, size_t bytes, struct weir_mem *m,
				 struct weir_diag **dg)
{
	memset(mk, 0, sizeof *mk);
	if (bytes < 9 || value[0] != WEIR_RECORD_VERSION ||
	    weir_hash(value, bytes - 8) != weir_load_le64(value + bytes - 8))
		return weir_diag_set(dg, WEIR_E_CORRUPT,
				     "a changelog marker is damaged (its checksum or version is wrong)");
	struct cursor c = {value + 1, value + bytes - 8, false};
	mk->epoch = weir_load_le64(get(&c, 8));
	mk->records = weir_load_le64(get(&c, 8));
	mk->bytes = weir_load_le64(get(&c, 8));
	mk->sum = weir_load_le64(get(&c, 8));
	mk->count = weir_load_le32(get(&c, 4));
	mk->input_count = weir_load_le32(get(&c, 4));
	if (mk->input_count > (size_t)(c.end - c.at) / 22)
		c.bad = true;
	mk->inputs = c.bad ? NULL : weir_mem_take(m, (mk->input_count + 1) * sizeof *mk->inputs);
	for (uint32_t i = 0; i < mk->input_count && !c.bad; i++) {
		uint16_t n;
		memcpy(&n, get(&c, 2), 2);
		struct weir_marker_input *in = &mk->inputs[i];
		const char *text = (const char *)get(&c, n), *end = n != 0 ? memchr(text, 0, n) : NULL;
		*in = (struct weir_marker_input){.topic = text, .topic_bytes = n};
		if (end != NULL && !c.bad) {
			in->topic_bytes = (uint32_t)(end - text);
			in->table = end + 1;
			in->table_bytes = n - in->topic_bytes - 1;
		}
		mk->inputs[i].partition = weir_load_le32(get(&c, 4));
		mk->inputs[i].offset = (int64_t)weir_load_le64(get(&c, 8));
		mk->inputs[i].time = (int64_t)weir_load_le64(get(&c, 8));
	}
	mk->slot_count = weir_load_le32(get(&c, 4));
	if (mk->slot_count > (size_t)(c.end - c.at) / 16)
		c.bad = true;
	mk->slots = c.bad ? NULL : weir_mem_take(m, (mk->slot_count + 1) * sizeof *mk->slots);
	for (uint32_t i = 0; i < mk->slot_count && !c.bad; i++) {
		mk->slots[i].slot = weir_load_le32(get(&c, 4));
		mk->slots[i].task_time = (int64_t)weir_load_le64(get(&c, 8));
		mk->slots[i].saved_bytes = weir_load_le32(get(&c, 4));
		mk->slots[i].saved = get(&c, mk->slots[i].saved_bytes);
	}
	if (c.bad || c.at != c.end)
		return weir_diag_set(dg, WEIR_E_CORRUPT, "a changelog marker is damaged (its lengths do not add up)");
	return WEIR_OK;
}

static void describe_marker(const struct weir_record *r, struct weir_buf *out)
{
	struct weir_mem m = {0};
	struct weir_marker mk;
	struct weir_diag *dg = NULL;
	if (weir_marker_decode(&mk, r->value, r->value_bytes, &m, &dg) != WEIR_OK) {
		weir_buf_puts(out, ",\"damaged\":true}");
		weir_diag_destroy(dg);
		weir_mem_fini(&m);
		return;
	}
	weir_buf_printf(
		out, ",\"epoch\":%" PRIu64 ",\"records\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"frames\":%u,\"inputs\":[",
		mk.epoch, mk.records, mk.bytes, mk.count);
	for (uint32_t i = 0; i < mk.input_count; i++) {
		const struct weir_marker_input *in = &mk.inputs[i];
		weir_buf_printf(out, "%s{\"topic\":\"%.*s\",\"partition\":%u,\"offset\":%" PRId64 ",\"time\":%" PRId64,
				i ? "," : "", (int)in->topic_bytes, in->topic, in->partition, in->offset,
				in->time == INT64_MIN ? -1 : in->time);
		if (in->table_bytes != 0)
			weir_buf_printf(out, ",\"table\":\"%.*s\"", (int)in->table_bytes, in->table);
		weir_buf_puts(out, "}");
	}
	weir_buf_puts(out, "],\"slots\":[");
	for (uint32_t i = 0; i < mk.slot_count; i++)
		weir_buf_printf(out, "%s{\"slot\":%u,\"task_time\":%" PRId64 ",\"bytes\":%u}", i ? "," : "",
				mk.slots[i].slot, mk.slots[i].task_time == INT64_MIN ? -1 : mk.slots[i].task_time,
				mk.slots[i].saved_bytes);
	weir_buf_puts(out, "]}");
	weir_mem_fini(&m);
}

void weir_record_describe(const struct weir_record *r, struct weir_buf *out)
{
	enum weir_record_kind kind;
	uint32_t slot, number, part;
	struct weir_diag *dg = NULL;
	if (weir_record_key_parse(r->key, r->key_bytes, &kind, &slot, &number, &part, &dg) != WEIR_OK) {
		weir_diag_destroy(dg);
		weir_buf_puts(out, "{\"kind\":\"unknown\"}");
		return;
	}
	if (kind == WEIR_RECORD_SCHEMA) {
		weir_buf_puts(out, "{\"kind\":\"schema\",\"schema\":");
		weir_buf_put(out, r->value, r->value_bytes);
		weir_buf_puts(out, "}");
		return;
	}
	if (kind == WEIR_RECORD_MARKER) {
		weir_buf_puts(out, "{\"kind\":\"marker\"");
		describe_marker(r, out);
		return;
	}
	weir_buf_printf(out, "{\"kind\":\"%s\",\"slot\":%u,\"%s\":%u", kind == WEIR_RECORD_PACK ? "pack" : "page", slot,
			kind == WEIR_RECORD_PACK ? "k" : "page", number);
	if (kind == WEIR_RECORD_PAGE)
		weir_buf_printf(out, ",\"part\":%u", part);
	uint64_t epoch, sum;
	const uint8_t *body;
	size_t bytes;
	if (!r->value)
		weir_buf_puts(out, ",\"tombstone\":true");
	else if (weir_record_open(r->key, r->key_bytes, r->value, r->value_bytes, &epoch, &body, &bytes, &sum, &dg) ==
		 WEIR_OK)
		weir_buf_printf(out, ",\"epoch\":%" PRIu64 ",\"bytes\":%zu", epoch, bytes);
	else
		weir_buf_puts(out, ",\"damaged\":true");
	weir_diag_destroy(dg);
	weir_buf_puts(out, "}");
}
