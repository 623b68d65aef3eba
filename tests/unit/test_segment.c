/* test_segment.c: record batches built and walked again, headers refused, every byte damaged; walks against a naive
 * one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "io/recorded/crc32c.h"
#include "io/recorded/segment.h"

#define TEXT(s)                                                                                                        \
	{                                                                                                              \
		(s), sizeof(s) - 1                                                                                     \
	}

struct built {
	struct weir_codec_ctx *cc;
	struct weir_builder bb;
	const uint8_t *data;
	size_t bytes;
};

static void built_init(struct built *bt)
{
	bt->cc = weir_codec_create();
	weir_builder_init(&bt->bb);
}

static void built_fini(struct built *bt)
{
	weir_builder_fini(&bt->bb);
	weir_codec_destroy(bt->cc);
}

/* A header {"k": "v"} and one {"n": null}. */
static const uint8_t two_headers[] = {2, 'k', 2, 'v', 2, 'n', 1};

static void put_three(struct built *bt)
{
	weir_builder_put(&bt->bb, 1000,
			 &(struct weir_out){.key = TEXT("a"), .value = TEXT("first"), .timestamp = 5000});
	weir_builder_put(&bt->bb, 1001,
			 &(struct weir_out){.key = {NULL, 0},
					    .value = {NULL, 0},
					    .headers = two_headers,
					    .headers_bytes = sizeof two_headers,
					    .header_count = 2,
					    .timestamp = 4000});
	weir_builder_put(&bt->bb, 1300, &(struct weir_out){.key = TEXT(""), .value = TEXT(""), .timestamp = 900000});
}

/* The records of a stored batch; *why as weir_walk_records says. */
static uint32_t walk_all(const uint8_t *data, size_t bytes, struct weir_stored *sb, struct weir_record *out,
			 uint32_t max, const char **why)
{
	struct weir_walk wk;
	uint32_t count = 0;
	uint64_t payload = 0;
	assert_int_equal(weir_stored_header(data, bytes, sb, why), WEIR_HEADER_OK);
	weir_walk_init(&wk, sb, data + WEIR_STORED_HEADER_BYTES, bytes - WEIR_STORED_HEADER_BYTES);
	*why = weir_walk_records(&wk, sb, out, max, &count, &payload);
	return count;
}

static void test_build_and_walk(void **state)
{
	(void)state;
	struct built bt;
	struct weir_stored sb;
	struct weir_record r[4];
	const char *why;
	built_init(&bt);
	put_three(&bt);
	assert_true(weir_builder_finish(&bt.bb, bt.cc, WEIR_CODEC_NONE, &bt.data, &bt.bytes));
	uint8_t *copy = calloc(1, bt.bytes + WEIR_PAYLOAD_PAD);
	memcpy(copy, bt.data, bt.bytes);
	assert_int_equal(walk_all(copy, bt.bytes, &sb, r, 4, &why), 3);
	assert_null(why);
	assert_true(weir_stored_crc_ok(copy, &sb));
	assert_int_equal(sb.base_offset, 1000);
	assert_int_equal(sb.bytes, bt.bytes);
	assert_int_equal(weir_stored_last_offset(&sb), 1300);
	assert_int_equal(sb.count, 3);
	assert_int_equal(sb.base_timestamp, 5000);
	assert_int_equal(sb.max_timestamp, 900000);
	assert_int_equal(sb.producer_id, -1);
	assert_int_equal(weir_stored_first_ts(&sb), 5000);
	assert_int_equal(r[0].offset, 1000);
	assert_int_equal(r[0].timestamp, 5000);
	assert_memory_equal(r[0].key, "a", 1);
	assert_int_equal(r[0].value_bytes, 5);
	assert_memory_equal(r[0].value, "first", 5);
	assert_int_equal(r[0].header_count, 0);
	assert_null(r[1].key);
	assert_null(r[1].value);
	assert_int_equal(r[1].timestamp, 4000);
	assert_int_equal(r[1].header_count, 2);
	assert_int_equal(r[1].headers_bytes, sizeof two_headers);
	assert_memory_equal(r[1].headers, two_headers, sizeof two_headers);
	assert_non_null(r[2].key); /* empty is not null */
	assert_non_null(r[2].value);
	assert_int_equal(r[2].key_bytes, 0);
	assert_int_equal(r[2].offset, 1300);
	assert_int_equal(r[2].timestamp, 900000);
	free(copy);
	built_fini(&bt);
}

/* Log append time: every record has the batch's maximum; a delete horizon: the merge key is the maximum. */
static void test_attributes(void **state)
{
	(void)state;
	struct built bt;
	struct weir_stored sb;
	struct weir_record r[3];
	const char *why;
	built_init(&bt);
	put_three(&bt);
	assert_true(weir_builder_finish(&bt.bb, bt.cc, WEIR_CODEC_NONE, &bt.data, &bt.bytes));
	uint8_t *copy = calloc(1, bt.bytes + WEIR_PAYLOAD_PAD);
	memcpy(copy, bt.data, bt.bytes);
	copy[22] = WEIR_ATTR_APPEND_TIME;
	assert_int_equal(walk_all(copy, bt.bytes, &sb, r, 3, &why), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(r[i].timestamp, 900000);
	assert_int_equal(weir_stored_first_ts(&sb), 5000);
	copy[22] = WEIR_ATTR_DELETE_HORIZON;
	assert_int_equal(walk_all(copy, bt.bytes, &sb, r, 3, &why), 3);
	assert_int_equal(weir_stored_first_ts(&sb), 900000);
	assert_int_equal(r[1].timestamp, 4000);
	free(copy);
	built_fini(&bt);
}

static void test_parts_and_extremes(void **state)
{
	(void)state;
	struct built bt;
	struct weir_stored sb;
	struct weir_walk wk;
	struct weir_record r[128];
	const char *why;
	uint32_t count, total = 0;
	uint64_t payload = 0;
	built_init(&bt);
	for (int i = 0; i < 5000; i++)
		weir_builder_put(&bt.bb, INT64_C(1) << 40 | (uint32_t)i * 400000u,
				 &(struct weir_out){.key = {&i, sizeof i},
						    .value = TEXT("value"),
						    .timestamp = i % 3 == 0   ? INT64_MIN
								 : i % 3 == 1 ? INT64_MAX
									      : i});
	assert_true(weir_builder_finish(&bt.bb, bt.cc, WEIR_CODEC_NONE, &bt.data, &bt.bytes));
	uint8_t *copy = calloc(1, bt.bytes + WEIR_PAYLOAD_PAD);
	memcpy(copy, bt.data, bt.bytes);
	assert_int_equal(weir_stored_header(copy, bt.bytes, &sb, &why), WEIR_HEADER_OK);
	weir_walk_init(&wk, &sb, copy + WEIR_STORED_HEADER_BYTES, bt.bytes - WEIR_STORED_HEADER_BYTES);
	while (wk.left != 0) {
		assert_null(weir_walk_records(&wk, &sb, r, 128, &count, &payload));
		for (uint32_t k = 0; k < count; k++, total++) {
			int i;
			memcpy(&i, r[k].key, sizeof i);
			assert_int_equal(i, total);
			assert_int_equal(r[k].offset, INT64_C(1) << 40 | total * 400000u);
			assert_int_equal(r[k].timestamp, i % 3 == 0 ? INT64_MIN : i % 3 == 1 ? INT64_MAX : i);
		}
	}
	assert_int_equal(total, 5000);
	assert_int_equal(payload, 5000 * 9);
	free(copy);
	built_fini(&bt);
}

static void test_headers_refused(void **state)
{
	static const struct {
		int at;
		uint8_t byte;
		const char *word;
	} cases[] = {{16, 1, "version 0 or 1"}, {16, 0, "version 0 or 1"}, {16, 9, "unknown"},  {0, 0x80, "negative"},
		     {22, 7, "codec"},          {23, 0x80, "negative"},    {57, 0x80, "count"}, {58, 1, "count"}};
	(void)state;
	struct built bt;
	struct weir_stored sb;
	const char *why;
	built_init(&bt);
	put_three(&bt);
	assert_true(weir_builder_finish(&bt.bb, bt.cc, WEIR_CODEC_NONE, &bt.data, &bt.bytes));
	uint8_t copy[WEIR_STORED_HEADER_BYTES];
	for (size_t i = 0; i < WEIR_COUNT_OF(cases); i++) {
		memcpy(copy, bt.data, sizeof copy);
		copy[cases[i].at] = cases[i].byte;
		assert_int_equal(weir_stored_header(copy, sizeof copy, &sb, &why), WEIR_HEADER_BAD);
		assert_non_null(strstr(why, cases[i].word));
	}
	memcpy(copy, bt.data, sizeof copy);
	weir_store_be32(copy + 8, 48);
	assert_int_equal(weir_stored_header(copy, sizeof copy, &sb, &why), WEIR_HEADER_BAD);
	for (size_t bytes = 0; bytes < sizeof copy; bytes++)
		assert_int_equal(weir_stored_header(bt.data, bytes, &sb, &why), WEIR_HEADER_SHORT);
	built_fini(&bt);
}

/* Every byte of the records changed to every value of a few: the CRC says so, and the walk neither crashes nor hands
 * out a slice beyond the batch. */
static void test_every_byte_damaged(void **state)
{
	(void)state;
	struct built bt;
	struct weir_stored sb;
	struct weir_record r[3];
	const char *why;
	static const uint8_t flips[] = {0x01, 0x02, 0x40, 0x80, 0xff, 0x7f};
	unsigned refused = 0;
	built_init(&bt);
	put_three(&bt);
	assert_true(weir_builder_finish(&bt.bb, bt.cc, WEIR_CODEC_NONE, &bt.data, &bt.bytes));
	uint8_t *copy = calloc(1, bt.bytes + WEIR_PAYLOAD_PAD);
	for (size_t at = 21; at < bt.bytes; at++)
		for (size_t f = 0; f < WEIR_COUNT_OF(flips); f++) {
			memcpy(copy, bt.data, bt.bytes);
			copy[at] ^= flips[f];
			if (weir_stored_header(copy, bt.bytes, &sb, &why) != WEIR_HEADER_OK)
				continue;
			assert_false(weir_stored_crc_ok(copy, &sb));
			if (at < WEIR_STORED_HEADER_BYTES)
				continue;
			uint32_t count = walk_all(copy, bt.bytes, &sb, r, 3, &why);
			refused += why != NULL;
			for (uint32_t i = 0; i < count; i++) {
				const uint8_t *end = copy + bt.bytes;
				assert_true(r[i].key == NULL || (r[i].key >= copy && r[i].key + r[i].key_bytes <= end));
				assert_true(r[i].value == NULL ||
					    (r[i].value >= copy && r[i].value + r[i].value_bytes <= end));
				assert_true(r[i].headers >= copy && r[i].headers + r[i].headers_bytes <= end);
			}
		}
	assert_true(refused > 100);
	free(copy);
	built_fini(&bt);
}

/* ---- against a walk without shortcuts ---- */

static uint64_t random_state;

static uint64_t random_next(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return random_state >> 24;
}

/* False: no varint within [*p, end). */
static bool naive_varint(const uint8_t **p, const uint8_t *end, int64_t *out)
{
	uint64_t v = 0;
	for (int i = 0; i < 10; i++) {
		if (*p >= end)
			return false;
		uint8_t b = *(*p)++;
		v |= (uint64_t)(b & 0x7f) << (7 * i);
		if (b < 0x80) {
			*out = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
			return true;
		}
	}
	return false;
}

static bool naive_slice(const uint8_t **p, const uint8_t *end, int64_t least, const uint8_t **data, uint32_t *bytes)
{
	int64_t n;
	if (!naive_varint(p, end, &n) || n < least || n > end - *p)
		return false;
	*data = n < 0 ? NULL : *p;
	*bytes = n < 0 ? 0 : (uint32_t)n;
	*p += *bytes;
	return true;
}

static bool naive_record(const uint8_t **p, const uint8_t *end, const struct weir_stored *sb, int64_t *last,
			 struct weir_record *r)
{
	int64_t bytes, ts, delta, headers;
	const uint8_t *data;
	uint32_t n;
	if (!naive_varint(p, end, &bytes) || bytes < WEIR_STORED_RECORD_BYTES_MIN - 1 || bytes > end - *p)
		return false;
	end = *p + bytes;
	++*p;
	if (!naive_varint(p, end, &ts) || !naive_varint(p, end, &delta) || delta <= *last ||
	    delta > sb->last_offset_delta || !naive_slice(p, end, -1, &r->key, &r->key_bytes) ||
	    !naive_slice(p, end, -1, &r->value, &r->value_bytes) || !naive_varint(p, end, &headers) || headers < 0 ||
	    headers > end - *p)
		return false;
	*last = delta;
	r->offset = sb->base_offset + delta;
	r->timestamp = sb->attributes & WEIR_ATTR_APPEND_TIME ? sb->max_timestamp
							      : (int64_t)((uint64_t)sb->base_timestamp + (uint64_t)ts);
	r->headers = *p;
	r->headers_bytes = (uint32_t)(end - *p);
	r->header_count = (uint32_t)headers;
	for (int64_t i = 0; i < headers; i++)
		if (!naive_slice(p, end, 0, &data, &n) || !naive_slice(p, end, -1, &data, &n))
			return false;
	return *p == end;
}

enum { NAIVE_RECORDS = 40 };

static bool naive_walk(const uint8_t *p, const uint8_t *end, const struct weir_stored *sb, struct weir_record *r)
{
	int64_t last = -1;
	for (int32_t i = 0; i < sb->count; i++)
		if (!naive_record(&p, end, sb, &last, &r[i]))
			return false;
	return p == end;
}

/* Lengths, gaps and times of one, two, three and more bytes. */
static uint64_t random_size(void)
{
	static const uint64_t most[] = {1, 8, 62, 66, 130, 8185, 8200, 20000};
	return random_next() % (most[random_next() % WEIR_COUNT_OF(most)] + 1);
}

static void random_batch(struct built *bt, const uint8_t *bytes)
{
	int64_t offset = (int64_t)(random_next() % 100000), ts = 1700000000000;
	uint32_t count = 1 + (uint32_t)(random_next() % NAIVE_RECORDS);
	bool steady = random_next() % 2; /* most are alike */
	for (uint32_t i = 0; i < count; i++) {
		struct weir_out r = {.key = {bytes, 8}, .value = {bytes, 120}, .timestamp = ts + (int64_t)i * 7};
		if (!steady || random_next() % 16 == 0) {
			r.key.bytes = random_next() % 4 ? random_next() % 80 : random_size();
			r.value.bytes = random_size();
			r.timestamp = ts + (int64_t)random_size() * (random_next() % 3 ? 1 : -1000);
			if (random_next() % 8 == 0)
				r.key = (struct weir_slice){NULL, 0};
			if (random_next() % 8 == 0)
				r.value = (struct weir_slice){NULL, 0};
			if (random_next() % 8 == 0) {
				r.headers = two_headers;
				r.headers_bytes = sizeof two_headers;
				r.header_count = 2;
			}
		}
		offset += 1 + (random_next() % 8 ? 0 : (int64_t)random_size());
		weir_builder_put(&bt->bb, offset, &r);
	}
	assert_true(weir_builder_finish(&bt->bb, bt->cc, WEIR_CODEC_NONE, &bt->data, &bt->bytes));
}

/* Batches of all shapes, sound and with a byte or two changed: taken and refused alike, with the same records. */
static void test_walk_as_a_naive_one(void **state)
{
	(void)state;
	static uint8_t bytes[20000];
	static struct weir_record naive[NAIVE_RECORDS], r[NAIVE_RECORDS];
	unsigned sound = 0, refused = 0, alike = 0;
	struct built bt;
	random_state = 7;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)random_next();
	built_init(&bt);
	for (int round = 0; round < 400; round++) {
		random_batch(&bt, bytes);
		/* Exactly so much memory, for who looks at reads beyond it. */
		uint8_t *copy = malloc(bt.bytes + WEIR_PAYLOAD_PAD);
		for (int change = 0; change < 60; change++) {
			memcpy(copy, bt.data, bt.bytes);
			memset(copy + bt.bytes, 0x85, WEIR_PAYLOAD_PAD); /* a varint that does not end */
			for (int k = 0; change != 0 && k <= change % 2; k++) {
				size_t all = bt.bytes - WEIR_STORED_HEADER_BYTES, near = all < 24 ? all : 24;
				size_t at = random_next() % (random_next() % 2 ? near : all);
				copy[WEIR_STORED_HEADER_BYTES + at] = (uint8_t)random_next();
			}
			if (change % 3 == 2)
				copy[22] |= WEIR_ATTR_APPEND_TIME;
			struct weir_stored sb;
			const char *why;
			uint32_t count = walk_all(copy, bt.bytes, &sb, r, NAIVE_RECORDS, &why);
			bool ok = naive_walk(copy + WEIR_STORED_HEADER_BYTES, copy + bt.bytes, &sb, naive);
			assert_int_equal(why == NULL, ok);
			assert_true(change != 0 || ok);
			sound += ok;
			refused += !ok;
			if (!ok)
				continue;
			assert_int_equal(count, sb.count);
			for (uint32_t i = 0; i < count; i++) {
				assert_memory_equal(&r[i], &naive[i], sizeof r[i]);
				alike++;
			}
		}
		free(copy);
	}
	built_fini(&bt);
	assert_true(sound > 2000 && refused > 2000 && alike > 40000);
}

static void test_codecs_and_reuse(void **state)
{
	(void)state;
	struct built bt;
	struct weir_stored sb;
	struct weir_record r[3];
	const char *why;
	built_init(&bt);
	for (int codec = WEIR_CODEC_NONE; codec <= WEIR_CODEC_ZSTD; codec++) {
		struct weir_buf out = {0};
		put_three(&bt);
		assert_true(weir_builder_finish(&bt.bb, bt.cc, codec, &bt.data, &bt.bytes));
		assert_int_equal(bt.bb.count, 0);
		assert_int_equal(weir_stored_header(bt.data, bt.bytes, &sb, &why), WEIR_HEADER_OK);
		assert_int_equal(weir_stored_codec(&sb), codec);
		assert_true(weir_stored_crc_ok(bt.data, &sb));
		assert_int_equal(weir_codec_inflate(bt.cc, codec, bt.data + WEIR_STORED_HEADER_BYTES,
						    bt.bytes - WEIR_STORED_HEADER_BYTES, &out, 10000, &why),
				 WEIR_INFLATE_OK);
		struct weir_walk wk;
		uint32_t count;
		uint64_t payload = 0;
		weir_walk_init(&wk, &sb, out.data, out.bytes);
		assert_null(weir_walk_records(&wk, &sb, r, 3, &count, &payload));
		assert_int_equal(count, 3);
		assert_memory_equal(r[0].value, "first", 5);
		weir_buf_fini(&out);
	}
	built_fini(&bt);
}

static void test_record_bound(void **state)
{
	(void)state;
	struct weir_out r = {.value = {"x", (size_t)INT32_MAX}};
	assert_int_equal(weir_builder_record_bytes_max(&r), 0);
	r.value.bytes = 100;
	assert_true(weir_builder_record_bytes_max(&r) >= 107);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_and_walk),     cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_parts_and_extremes), cmocka_unit_test(test_headers_refused),
		cmocka_unit_test(test_every_byte_damaged), cmocka_unit_test(test_codecs_and_reuse),
		cmocka_unit_test(test_record_bound),       cmocka_unit_test(test_walk_as_a_naive_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
