/* fuzz_segment.c: libFuzzer target of stored batches: headers, all codecs, the walk over records, control markers. The
 * input is a segment. Each batch is tried as it is and, where its length fits, without regard to its CRC, so that
 * changed bytes reach the parts behind it. What comes out must lie inside the batch, and writing it again must give the
 * same records. */
#include <stdio.h>
#include <stdlib.h>

#include "io/recorded/cursor.h"
#include "io/recorded/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { INFLATED_BYTES_MAX = 1 << 20, PART = 7 };

static struct weir_codec_ctx *cc;
static struct weir_builder bb;
static struct weir_buf inflated;

static void require(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "fuzz_segment: %s\n", what);
		abort();
	}
}

static void check_slice(const uint8_t *p, uint32_t bytes, const uint8_t *start, const uint8_t *end)
{
	require(p == NULL || (p >= start && p <= end && bytes <= (size_t)(end - p)), "a slice lies outside its batch");
}

static bool same(const uint8_t *a, uint32_t a_bytes, const uint8_t *b, uint32_t b_bytes)
{
	return (a == NULL) == (b == NULL) && a_bytes == b_bytes && (a_bytes == 0 || memcmp(a, b, a_bytes) == 0);
}

/* One record, written and walked again. */
static void write_again(const struct weir_record *r)
{
	struct weir_out out = {.key = {r->key, r->key_bytes},
			       .value = {r->value, r->value_bytes},
			       .headers = r->headers,
			       .headers_bytes = r->headers_bytes,
			       .header_count = r->header_count,
			       .timestamp = r->timestamp};
	const uint8_t *data;
	size_t bytes;
	struct weir_stored sb;
	struct weir_walk wk;
	struct weir_record back;
	const char *why;
	uint32_t count;
	uint64_t payload = 0;
	weir_builder_put(&bb, r->offset, &out);
	require(weir_builder_finish(&bb, cc, WEIR_CODEC_NONE, &data, &bytes), "finish");
	require(weir_stored_header(data, bytes, &sb, &why) == WEIR_HEADER_OK && weir_stored_crc_ok(data, &sb),
		"header");
	weir_buf_room(&bb.buf, bytes + WEIR_PAYLOAD_PAD);
	data = bb.buf.data;
	weir_walk_init(&wk, &sb, data + WEIR_STORED_HEADER_BYTES, bytes - WEIR_STORED_HEADER_BYTES);
	require(weir_walk_records(&wk, &sb, &back, 1, &count, &payload) == NULL && count == 1, "walk");
	require(back.offset == r->offset && back.timestamp == r->timestamp && back.header_count == r->header_count &&
			same(back.key, back.key_bytes, r->key, r->key_bytes) &&
			same(back.value, back.value_bytes, r->value, r->value_bytes) &&
			same(back.headers, back.headers_bytes, r->headers, r->headers_bytes),
		"a record written again is another");
}

static void walk(const struct weir_stored *sb, const uint8_t *records, size_t bytes)
{
	struct weir_walk wk;
	struct weir_record r[PART];
	uint32_t count;
	uint64_t payload = 0, total = 0;
	(void)weir_stored_control_type(sb, records, bytes);
	weir_walk_init(&wk, sb, records, bytes);
	int64_t last = sb->base_offset - 1;
	while (wk.left != 0 && weir_walk_records(&wk, sb, r, PART, &count, &payload) == NULL) {
		for (uint32_t i = 0; i < count; i++) {
			check_slice(r[i].key, r[i].key_bytes, records, records + bytes);
			check_slice(r[i].value, r[i].value_bytes, records, records + bytes);
			check_slice(r[i].headers, r[i].headers_bytes, records, records + bytes);
			require(r[i].offset > last && r[i].offset <= weir_stored_last_offset(sb),
				"an offset is out of order");
			last = r[i].offset;
			total += r[i].key_bytes + r[i].value_bytes + r[i].headers_bytes;
		}
		write_again(&r[0]);
	}
	require(payload == total, "the payload is miscounted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (cc == NULL) {
		cc = weir_codec_create();
		weir_builder_init(&bb);
	}
	/* Exactly as much room as readers give: the pad and no more. */
	uint8_t *copy = malloc(bytes + WEIR_PAYLOAD_PAD);
	if (copy == NULL)
		return 0;
	memcpy(copy, data, bytes);
	memset(copy + bytes, 0, WEIR_PAYLOAD_PAD);
	for (size_t at = 0; at < bytes;) {
		struct weir_stored sb;
		const char *why = NULL;
		if (weir_stored_header(copy + at, bytes - at, &sb, &why) != WEIR_HEADER_OK)
			break;
		size_t whole = sb.bytes < bytes - at ? (size_t)sb.bytes : bytes - at;
		const uint8_t *records = copy + at + WEIR_STORED_HEADER_BYTES;
		size_t record_bytes = whole - WEIR_STORED_HEADER_BYTES;
		if (whole == sb.bytes)
			(void)weir_stored_crc_ok(copy + at, &sb);
		inflated.bytes = 0;
		if (weir_stored_codec(&sb) == WEIR_CODEC_NONE) {
			walk(&sb, records, record_bytes);
		} else if (weir_codec_inflate(cc, weir_stored_codec(&sb), records, record_bytes, &inflated,
					      INFLATED_BYTES_MAX, &why) == WEIR_INFLATE_OK) {
			require(inflated.bytes <= INFLATED_BYTES_MAX, "inflated beyond the bound");
			walk(&sb, inflated.data, inflated.bytes);
		}
		at += whole;
	}
	free(copy);
	return 0;
}
