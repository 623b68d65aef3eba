/* segment.c: decoding and encoding Kafka's record batch v2. @thread any: no state of its own. Drawn in segment.h. */
#include "io/recorded/segment.h"

#include "io/recorded/crc32c.h"

enum {
	AT_LENGTH = 8,
	AT_MAGIC = 16,
	AT_CRC = 17,
	AT_ATTRIBUTES = 21,
	AT_LAST_DELTA = 23,
	AT_BASE_TS = 27,
	AT_MAX_TS = 35,
	AT_PRODUCER = 43,
	AT_COUNT = 57
};
#define RECORD_BYTES_LIMIT (INT32_MAX - 1024) /* lengths are 32-bit and signed */

/* ---- headers ---- */

enum weir_header weir_stored_header(const uint8_t *p, size_t avail, struct weir_stored *sb, const char **why)
{
	if (avail < AT_MAGIC + 1)
		return WEIR_HEADER_SHORT;
	int32_t length = (int32_t)weir_load_be32(p + AT_LENGTH);
	sb->base_offset = (int64_t)weir_load_be64(p);
	*why = "the offset is negative";
	if (sb->base_offset < 0)
		return WEIR_HEADER_BAD;
	uint8_t magic = p[AT_MAGIC];
	if (magic < 2 && length >= 14) {
		*why = "the record format is version 0 or 1 (older than Kafka 0.11); only version 2 is read";
		return WEIR_HEADER_BAD;
	}
	*why = "the record format is unknown";
	if (magic != 2)
		return WEIR_HEADER_BAD;
	*why = "the length is less than a batch's header";
	if (length < WEIR_STORED_HEADER_BYTES - 12)
		return WEIR_HEADER_BAD;
	sb->bytes = (uint64_t)length + 12;
	if (avail < WEIR_STORED_HEADER_BYTES)
		return WEIR_HEADER_SHORT;
	sb->crc = weir_load_be32(p + AT_CRC);
	sb->attributes = weir_load_be16(p + AT_ATTRIBUTES);
	sb->last_offset_delta = (int32_t)weir_load_be32(p + AT_LAST_DELTA);
	sb->base_timestamp = (int64_t)weir_load_be64(p + AT_BASE_TS);
	sb->max_timestamp = (int64_t)weir_load_be64(p + AT_MAX_TS);
	sb->producer_id = (int64_t)weir_load_be64(p + AT_PRODUCER);
	sb->producer_epoch = (int16_t)weir_load_be16(p + AT_PRODUCER + 8);
	sb->count = (int32_t)weir_load_be32(p + AT_COUNT);
	*why = "the last offset delta is negative";
	if (sb->last_offset_delta < 0 || sb->base_offset > INT64_MAX - INT32_MAX - 1)
		return WEIR_HEADER_BAD;
	*why = "the record count does not fit the offsets";
	if (sb->count < 0 || sb->count > (int64_t)sb->last_offset_delta + 1)
		return WEIR_HEADER_BAD;
	*why = "the codec is unknown";
	if (weir_stored_codec(sb) > WEIR_CODEC_ZSTD)
		return WEIR_HEADER_BAD;
	*why = NULL;
	return WEIR_HEADER_OK;
}

bool weir_stored_crc_ok(const uint8_t *p, const struct weir_stored *sb)
{
	return weir_crc32c(0, p + AT_ATTRIBUTES, sb->bytes - AT_ATTRIBUTES) == sb->crc;
}

int64_t weir_stored_first_ts(const struct weir_stored *sb)
{
	return sb->attributes & WEIR_ATTR_DELETE_HORIZON ? sb->max_timestamp : sb->base_timestamp;
}

/* ---- walking ---- */

WEIR_NOINLINE static const uint8_t *varint_slow(const uint8_t *p, uint64_t *out)
{
	uint64_t v = 0;
	for (int shift = 0; shift < 70; shift += 7) {
		uint8_t b = *p++;
		v |= (uint64_t)(b & 0x7f) << (shift < 64 ? shift : 63);
		if (b < 0x80) {
			*out = v;
			return p;
		}
	}
	return NULL;
}

/* Reads at most 10 bytes, which WEIR_PAYLOAD_PAD makes readable anywhere inside the records. NULL: longer than that. */
WEIR_INLINE const uint8_t *varint(const uint8_t *p, int64_t *out)
{
	uint64_t v = p[0];
	if (WEIR_LIKELY(v < 0x80)) {
		p += 1;
	} else if (WEIR_LIKELY(p[1] < 0x80)) {
		v = (v & 0x7f) | (uint64_t)p[1] << 7;
		p += 2;
	} else if (p[2] < 0x80) {
		v = (v & 0x7f) | (uint64_t)(p[1] & 0x7f) << 7 | (uint64_t)p[2] << 14;
		p += 3;
	} else {
		p = varint_slow(p, &v);
	}
	*out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
	return p;
}

void weir_walk_init(struct weir_walk *wk, const struct weir_stored *sb, const uint8_t *records, size_t bytes)
{
	wk->at = records;
	wk->end = records + bytes;
	wk->left = (uint32_t)sb->count;
	wk->last_delta = -1;
}

/* True when count headers fill [p, end) exactly. */
WEIR_NOINLINE static bool headers_ok(const uint8_t *p, const uint8_t *end, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		int64_t bytes;
		p = varint(p, &bytes);
		if (p == NULL || bytes < 0 || p > end || bytes > end - p)
			return false;
		p = varint(p + bytes, &bytes);
		if (p == NULL || bytes < -1 || p > end || bytes > end - p)
			return false;
		p += bytes < 0 ? 0 : bytes;
	}
	return p == end;
}

/* What all records of a batch share. */
struct walk_batch {
	const uint8_t *end;
	int64_t last_delta_max; /* what the header says of the last record's */
	int64_t base_offset;
	int64_t base_timestamp;
	int64_t timestamp_mask; /* 0: every record has the base's */
};

/* One record of any shape. NULL, or what is wrong with it. */
WEIR_NOINLINE static const char *walk_any(const uint8_t **at, struct walk_batch wb, int64_t last_delta,
					  struct weir_record *r)
{
	const uint8_t *p = *at, *const end = wb.end;
	int64_t bytes, ts_delta, delta, key_bytes, value_bytes, headers;

	/* One byte of a record must be there before its length is looked at; the pad covers the rest of it. */
	if (p >= end)
		return "the batch has fewer records than its header says";
	p = varint(p, &bytes);
	if (p == NULL || bytes < WEIR_STORED_RECORD_BYTES_MIN - 1 || p > end || bytes > end - p)
		return "a record reaches beyond its batch";
	const uint8_t *const stop = p + bytes;
	p = varint(p + 1, &ts_delta);
	if (p == NULL)
		return "a record's timestamp is no number";
	p = varint(p, &delta);
	if (p == NULL || delta <= last_delta || delta > wb.last_delta_max)
		return "a record's offset is out of order";
	p = varint(p, &key_bytes);
	if (p == NULL || key_bytes < -1 || p > stop || key_bytes > stop - p)
		return "a record's key reaches beyond the record";
	r->key = key_bytes < 0 ? NULL : p;
	r->key_bytes = key_bytes < 0 ? 0 : (uint32_t)key_bytes;
	p += r->key_bytes;
	if (p >= stop)
		return "a record ends after its key";
	p = varint(p, &value_bytes);
	if (p == NULL || value_bytes < -1 || p > stop || value_bytes > stop - p)
		return "a record's value reaches beyond the record";
	r->value = value_bytes < 0 ? NULL : p;
	r->value_bytes = value_bytes < 0 ? 0 : (uint32_t)value_bytes;
	p += r->value_bytes;
	if (p >= stop)
		return "a record ends after its value";
	p = varint(p, &headers);
	if (p == NULL || p > stop || headers < 0 || headers > stop - p)
		return "a record's headers reach beyond the record";
	r->headers = p;
	r->headers_bytes = (uint32_t)(stop - p);
	r->header_count = (uint32_t)headers;
	if (p != stop && !headers_ok(p, stop, headers))
		return "a record's headers do not fill the record";
	r->offset = wb.base_offset + delta;
	r->timestamp = (int64_t)((uint64_t)wb.base_timestamp + (uint64_t)(ts_delta & wb.timestamp_mask));
	*at = stop;
	return NULL;
}

/* The low two bytes as a varint of two. */
WEIR_INLINE uint64_t varint_two(uint64_t w)
{
	return (w & 0x7f) | (w >> 1 & 0x3f80);
}

/* One record of the usual shape: 64 to 8,191 bytes, its offset less than 8,192 behind the batch's and its timestamp
 * less than 4,096 ms from it, a key of at most 63 bytes or none, a value, no headers. Its end, or NULL: it is of
 * another shape, or damaged. p is before the end; less than 8 bytes beyond that are read. */
WEIR_INLINE const uint8_t *walk_usual(const uint8_t *p, struct walk_batch wb, int64_t last_delta, struct weir_record *r)
{
	uint64_t w = weir_load_le64(p);
	if (WEIR_UNLIKELY((w & 0x8080) != 0x80))
		return NULL;
	uint64_t bytes = varint_two(w); /* zigzag: twice the number, odd if it is negative */
	const uint8_t *const stop = p + 2 + (bytes >> 1);
	if (WEIR_UNLIKELY((int64_t)(bytes >> 1) > wb.end - p - 2))
		return NULL;
	/* attributes, timestamp delta, offset delta */
	uint64_t ts, delta;
	w >>= 24;
	if (WEIR_LIKELY((w & 0x8080) == 0x80)) {
		ts = varint_two(w);
		w >>= 16;
		p += 5;
	} else if ((w & 0x80) == 0) {
		ts = w & 0x7f;
		w >>= 8;
		p += 4;
	} else {
		return NULL;
	}
	if (WEIR_LIKELY((w & 0x8080) == 0x80)) {
		delta = varint_two(w);
		w >>= 16;
		p += 3;
	} else if ((w & 0x80) == 0) {
		delta = w & 0x7f;
		w >>= 8;
		p += 2;
	} else {
		return NULL;
	}
	/* key; 1 is the length of none */
	uint64_t key_bytes = w & 0xff;
	r->key = p;
	if (WEIR_UNLIKELY(key_bytes & 0x81)) {
		if (key_bytes != 1)
			return NULL;
		r->key = NULL;
	}
	key_bytes >>= 1;
	p += key_bytes;
	if (WEIR_UNLIKELY(p >= stop))
		return NULL;
	uint64_t value_bytes = *p++;
	if (WEIR_LIKELY(value_bytes & 0x80)) {
		uint64_t high = *p++;
		if (WEIR_UNLIKELY(high & 0x80))
			return NULL;
		value_bytes = (value_bytes & 0x7f) | high << 7;
	}
	r->value = p;
	p += value_bytes >> 1;
	if (WEIR_UNLIKELY(p + 1 != stop) || WEIR_UNLIKELY(*p != 0) ||
	    WEIR_UNLIKELY(((bytes | delta | value_bytes) & 1) != 0))
		return NULL;
	/* last_delta < at <= last_delta_max */
	int64_t at = (int64_t)(delta >> 1);
	if (WEIR_UNLIKELY((uint64_t)(at - last_delta - 1) >= (uint64_t)(wb.last_delta_max - last_delta)))
		return NULL;
	r->key_bytes = (uint32_t)key_bytes;
	r->value_bytes = (uint32_t)value_bytes >> 1;
	r->headers = stop;
	r->headers_bytes = 0;
	r->header_count = 0;
	r->offset = wb.base_offset + at;
	int64_t ts_delta = (int64_t)(ts >> 1) ^ -(int64_t)(ts & 1);
	r->timestamp = (int64_t)((uint64_t)wb.base_timestamp + (uint64_t)(ts_delta & wb.timestamp_mask));
	return stop;
}

/* Cost: about 7 ns a record of the usual shape (callgrind: 110 instructions). */
const char *weir_walk_records(struct weir_walk *wk, const struct weir_stored *sb, struct weir_record *out, uint32_t max,
			      uint32_t *count, uint64_t *payload_bytes)
{
	const uint8_t *p = wk->at;
	const uint32_t n = wk->left < max ? wk->left : max;
	const bool append_time = sb->attributes & WEIR_ATTR_APPEND_TIME;
	const struct walk_batch wb = {.end = wk->end,
				      .last_delta_max = sb->last_offset_delta,
				      .base_offset = sb->base_offset,
				      .base_timestamp = append_time ? sb->max_timestamp : sb->base_timestamp,
				      .timestamp_mask = append_time ? 0 : -1};
	int64_t last_delta = wk->last_delta;
	uint64_t payload = 0;

	*count = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct weir_record *r = &out[i];
		const uint8_t *stop = WEIR_LIKELY(p < wb.end) ? walk_usual(p, wb, last_delta, r) : NULL;
		if (WEIR_LIKELY(stop != NULL)) {
			p = stop;
		} else {
			const uint8_t *at = p;
			const char *bad = walk_any(&at, wb, last_delta, r);
			if (WEIR_UNLIKELY(bad != NULL))
				return bad;
			p = at;
		}
		last_delta = r->offset - wb.base_offset;
		payload += r->key_bytes + r->value_bytes + r->headers_bytes;
	}
	wk->at = p;
	wk->left -= n;
	wk->last_delta = last_delta;
	if (WEIR_UNLIKELY(wk->left == 0 && p != wb.end))
		return "bytes follow the last record of a batch";
	*count = n;
	*payload_bytes += payload;
	return NULL;
}

int weir_stored_control_type(const struct weir_stored *sb, const uint8_t *records, size_t bytes)
{
	struct weir_walk wk;
	struct weir_record r;
	uint32_t count;
	uint64_t payload = 0;
	weir_walk_init(&wk, sb, records, bytes);
	if (weir_walk_records(&wk, sb, &r, 1, &count, &payload) != NULL || count != 1)
		return -1;
	/* key: version (2 bytes), type (2 bytes) */
	if (r.key == NULL || r.key_bytes < 4)
		return -1;
	uint16_t type = weir_load_be16(r.key + 2);
	return type <= 1 ? (int)type : -1;
}

/* ---- building ---- */

WEIR_INLINE uint8_t *varint_put(uint8_t *p, int64_t n)
{
	uint64_t v = ((uint64_t)n << 1) ^ (uint64_t)(n >> 63);
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

WEIR_INLINE size_t varint_bytes(int64_t n)
{
	uint64_t v = ((uint64_t)n << 1) ^ (uint64_t)(n >> 63);
	return (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
}

void weir_builder_init(struct weir_builder *bb)
{
	memset(bb, 0, sizeof *bb);
	weir_builder_reset(bb);
}

void weir_builder_fini(struct weir_builder *bb)
{
	weir_buf_fini(&bb->buf);
	weir_buf_fini(&bb->packed);
}

void weir_builder_reset(struct weir_builder *bb)
{
	bb->count = 0;
	bb->buf.bytes = 0;
}

size_t weir_builder_record_bytes_max(const struct weir_out *r)
{
	if (r->key.bytes > RECORD_BYTES_LIMIT || r->value.bytes > RECORD_BYTES_LIMIT)
		return 0;
	/* 41: length 5, attributes 1, timestamp 10, offset 5, key, value and header count 5 each, rounded up */
	size_t bytes = r->key.bytes + r->value.bytes + r->headers_bytes + 41;
	return bytes > RECORD_BYTES_LIMIT ? 0 : bytes;
}

void weir_builder_put(struct weir_builder *bb, int64_t offset, const struct weir_out *r)
{
	if (bb->count == 0) {
		weir_buf_room(&bb->buf, WEIR_STORED_HEADER_BYTES);
		bb->buf.bytes = WEIR_STORED_HEADER_BYTES;
		bb->base_offset = offset;
		bb->base_timestamp = bb->max_timestamp = r->timestamp;
	}
	WEIR_DASSERT(bb->count == 0 || offset > bb->last_offset);
	uint8_t *p = weir_buf_room(&bb->buf, weir_builder_record_bytes_max(r));
	int64_t ts_delta = (int64_t)((uint64_t)r->timestamp - (uint64_t)bb->base_timestamp);
	int64_t key_bytes = r->key.data == NULL ? -1 : (int64_t)r->key.bytes;
	int64_t value_bytes = r->value.data == NULL ? -1 : (int64_t)r->value.bytes;
	size_t body = 1 + varint_bytes(ts_delta) + varint_bytes(offset - bb->base_offset) + varint_bytes(key_bytes) +
		      varint_bytes(value_bytes) + varint_bytes(r->header_count) + r->headers_bytes +
		      (key_bytes < 0 ? 0 : r->key.bytes) + (value_bytes < 0 ? 0 : r->value.bytes);
	p = varint_put(p, (int64_t)body);
	*p++ = 0;
	p = varint_put(p, ts_delta);
	p = varint_put(p, offset - bb->base_offset);
	p = varint_put(p, key_bytes);
	if (key_bytes > 0)
		p = (uint8_t *)memcpy(p, r->key.data, r->key.bytes) + r->key.bytes;
	p = varint_put(p, value_bytes);
	if (value_bytes > 0)
		p = (uint8_t *)memcpy(p, r->value.data, r->value.bytes) + r->value.bytes;
	p = varint_put(p, r->header_count);
	if (r->headers_bytes != 0)
		p = (uint8_t *)memcpy(p, r->headers, r->headers_bytes) + r->headers_bytes;
	bb->buf.bytes = (size_t)(p - bb->buf.data);
	bb->count++;
	bb->last_offset = offset;
	bb->max_timestamp = weir_max_i64(bb->max_timestamp, r->timestamp);
}

bool weir_builder_finish(struct weir_builder *bb, struct weir_codec_ctx *cc, enum weir_codec codec,
			 const uint8_t **data, size_t *bytes)
{
	WEIR_ASSERT(bb->count != 0);
	struct weir_buf *b = &bb->buf;
	if (codec != WEIR_CODEC_NONE) {
		b = &bb->packed;
		b->bytes = 0;
		weir_buf_room(b, WEIR_STORED_HEADER_BYTES);
		b->bytes = WEIR_STORED_HEADER_BYTES;
		if (!weir_codec_deflate(cc, codec, bb->buf.data + WEIR_STORED_HEADER_BYTES,
					bb->buf.bytes - WEIR_STORED_HEADER_BYTES, b))
			return false;
	}
	uint8_t *p = b->data;
	weir_store_be64(p, (uint64_t)bb->base_offset);
	weir_store_be32(p + AT_LENGTH, (uint32_t)(b->bytes - 12));
	weir_store_be32(p + 12, 0); /* leader epoch */
	p[AT_MAGIC] = 2;
	weir_store_be16(p + AT_ATTRIBUTES, (uint16_t)codec);
	weir_store_be32(p + AT_LAST_DELTA, (uint32_t)(bb->last_offset - bb->base_offset));
	weir_store_be64(p + AT_BASE_TS, (uint64_t)bb->base_timestamp);
	weir_store_be64(p + AT_MAX_TS, (uint64_t)bb->max_timestamp);
	weir_store_be64(p + AT_PRODUCER, UINT64_MAX);      /* no producer id */
	weir_store_be16(p + AT_PRODUCER + 8, UINT16_MAX);  /* no producer epoch */
	weir_store_be32(p + AT_PRODUCER + 10, UINT32_MAX); /* no sequence */
	weir_store_be32(p + AT_COUNT, bb->count);
	weir_store_be32(p + AT_CRC, weir_crc32c(0, p + AT_ATTRIBUTES, b->bytes - AT_ATTRIBUTES));
	*data = p;
	*bytes = b->bytes;
	weir_builder_reset(bb);
	return true;
}
