/* test_codec.c: every codec there and back, foreign framings, bounds, damaged input. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "io/recorded/codec.h"

static uint8_t *text_make(size_t bytes, bool random)
{
	uint8_t *p = malloc(bytes + 1);
	for (size_t i = 0; i < bytes; i++)
		p[i] = random ? (uint8_t)rand() : (uint8_t)("{\"order\":12,\"cents\":99}"[i % 23] + (i / 997) % 2);
	return p;
}

static void test_there_and_back(void **state)
{
	static const size_t sizes[] = {0, 1, 61, 4096, 32 * 1024, 32 * 1024 + 1, 1000000};
	(void)state;
	struct weir_codec_ctx *cc = weir_codec_create();
	for (int codec = WEIR_CODEC_NONE; codec <= WEIR_CODEC_ZSTD; codec++)
		for (size_t i = 0; i < WEIR_COUNT_OF(sizes); i++)
			for (int random = 0; random < 2; random++) {
				struct weir_buf packed = {0}, back = {0};
				const char *why;
				uint8_t *data = text_make(sizes[i], random);
				weir_buf_put(&packed, "head", 4); /* it appends */
				weir_buf_put(&back, "head", 4);
				assert_true(weir_codec_deflate(cc, codec, data, sizes[i], &packed));
				assert_int_equal(weir_codec_inflate(cc, codec, packed.data + 4, packed.bytes - 4, &back,
								    sizes[i], &why),
						 WEIR_INFLATE_OK);
				assert_int_equal(back.bytes, sizes[i] + 4);
				assert_memory_equal(back.data + 4, data, sizes[i]);
				assert_true(back.capacity >= back.bytes + WEIR_PAYLOAD_PAD);
				if (codec != WEIR_CODEC_NONE && sizes[i] >= 4096 && !random)
					assert_true(packed.bytes < sizes[i] / 2);
				free(data);
				weir_buf_fini(&packed);
				weir_buf_fini(&back);
			}
	weir_codec_destroy(cc);
}

/* One byte less than the data inflates to is refused, whatever the input claims, and memory stays near the bound. */
static void test_bound(void **state)
{
	enum { BYTES = 8 << 20 };
	(void)state;
	struct weir_codec_ctx *cc = weir_codec_create();
	uint8_t *zeros = calloc(1, BYTES);
	for (int codec = WEIR_CODEC_NONE; codec <= WEIR_CODEC_ZSTD; codec++) {
		struct weir_buf packed = {0}, back = {0};
		const char *why;
		assert_true(weir_codec_deflate(cc, codec, zeros, BYTES, &packed));
		assert_int_equal(weir_codec_inflate(cc, codec, packed.data, packed.bytes, &back, BYTES - 1, &why),
				 WEIR_INFLATE_TOO_LARGE);
		back.bytes = 0;
		assert_int_equal(weir_codec_inflate(cc, codec, packed.data, packed.bytes, &back, 1000, &why),
				 WEIR_INFLATE_TOO_LARGE);
		back.bytes = 0;
		assert_int_equal(weir_codec_inflate(cc, codec, packed.data, packed.bytes, &back, BYTES, &why),
				 WEIR_INFLATE_OK);
		assert_int_equal(back.bytes, BYTES);
		assert_true(back.capacity <= 4 * (size_t)BYTES);
		weir_buf_fini(&packed);
		weir_buf_fini(&back);
	}
	free(zeros);
	weir_codec_destroy(cc);
}

/* Truncated at every length and with every byte changed: an answer, never more than the bound, no crash (ASan). */
static void test_damaged(void **state)
{
	(void)state;
	struct weir_codec_ctx *cc = weir_codec_create();
	uint8_t *data = text_make(3000, false);
	for (int codec = WEIR_CODEC_GZIP; codec <= WEIR_CODEC_ZSTD; codec++) {
		struct weir_buf packed = {0}, back = {0};
		const char *why;
		unsigned refused = 0;
		assert_true(weir_codec_deflate(cc, codec, data, 3000, &packed));
		uint8_t *copy = malloc(packed.bytes);
		for (size_t bytes = 0; bytes < packed.bytes; bytes++) {
			memcpy(copy, packed.data, packed.bytes);
			back.bytes = 0;
			enum weir_inflate rc = weir_codec_inflate(cc, codec, copy, bytes, &back, 100000, &why);
			if (codec != WEIR_CODEC_SNAPPY) /* a xerial stream may end after any block */
				assert_int_equal(rc, WEIR_INFLATE_BAD);
		}
		for (size_t at = 0; at < packed.bytes; at++) {
			memcpy(copy, packed.data, packed.bytes);
			copy[at] ^= 0x5a;
			back.bytes = 0;
			refused += weir_codec_inflate(cc, codec, copy, packed.bytes, &back, 100000, &why) !=
				   WEIR_INFLATE_OK;
			assert_true(back.bytes <= 100001);
		}
		assert_true(refused > 0);
		/* and the context is still good */
		back.bytes = 0;
		assert_int_equal(weir_codec_inflate(cc, codec, packed.data, packed.bytes, &back, 100000, &why),
				 WEIR_INFLATE_OK);
		free(copy);
		weir_buf_fini(&packed);
		weir_buf_fini(&back);
	}
	free(data);
	weir_codec_destroy(cc);
}

/* What other writers make: raw snappy, lz4 with linked blocks and a content size, zstd without one, two gzip members.
 */
static void test_foreign_framings(void **state)
{
	(void)state;
	struct weir_codec_ctx *cc = weir_codec_create();
	struct weir_buf back = {0};
	const char *why;
	size_t bytes = 200000;
	uint8_t *data = text_make(bytes, false), *packed = malloc(2 * bytes + 1000);

	size_t made = 2 * bytes;
	assert_int_equal(snappy_compress((char *)data, bytes, (char *)packed, &made), SNAPPY_OK);
	assert_int_equal(weir_codec_inflate(cc, WEIR_CODEC_SNAPPY, packed, made, &back, bytes, &why), WEIR_INFLATE_OK);
	assert_int_equal(back.bytes, bytes);
	assert_memory_equal(back.data, data, bytes);

	LZ4F_preferences_t prefs = {.frameInfo = {.blockMode = LZ4F_blockLinked,
						  .contentSize = bytes,
						  .contentChecksumFlag = LZ4F_contentChecksumEnabled}};
	made = LZ4F_compressFrame(packed, 2 * bytes, data, bytes, &prefs);
	back.bytes = 0;
	assert_int_equal(weir_codec_inflate(cc, WEIR_CODEC_LZ4, packed, made, &back, bytes, &why), WEIR_INFLATE_OK);
	assert_memory_equal(back.data, data, bytes);

	ZSTD_CCtx *zc = ZSTD_createCCtx();
	ZSTD_inBuffer in = {data, bytes, 0};
	ZSTD_outBuffer out = {packed, 2 * bytes, 0};
	while (in.pos < in.size)
		assert_false(ZSTD_isError(ZSTD_compressStream2(zc, &out, &in, ZSTD_e_continue)));
	while (ZSTD_compressStream2(zc, &out, &in, ZSTD_e_end) != 0)
		;
	assert_true(ZSTD_getFrameContentSize(packed, out.pos) == ZSTD_CONTENTSIZE_UNKNOWN);
	back.bytes = 0;
	assert_int_equal(weir_codec_inflate(cc, WEIR_CODEC_ZSTD, packed, out.pos, &back, bytes, &why), WEIR_INFLATE_OK);
	assert_int_equal(back.bytes, bytes);
	assert_memory_equal(back.data, data, bytes);
	ZSTD_freeCCtx(zc);

	struct weir_buf two = {0};
	assert_true(weir_codec_deflate(cc, WEIR_CODEC_GZIP, data, 1000, &two));
	assert_true(weir_codec_deflate(cc, WEIR_CODEC_GZIP, data + 1000, 500, &two));
	back.bytes = 0;
	assert_int_equal(weir_codec_inflate(cc, WEIR_CODEC_GZIP, two.data, two.bytes, &back, bytes, &why),
			 WEIR_INFLATE_OK);
	assert_int_equal(back.bytes, 1500);
	assert_memory_equal(back.data, data, 1500);
	weir_buf_fini(&two);
	weir_buf_fini(&back);
	free(packed);
	free(data);
	weir_codec_destroy(cc);
}

static void test_names(void **state)
{
	(void)state;
	enum weir_codec codec;
	struct weir_diag *dg = NULL;
	for (int c = WEIR_CODEC_NONE; c <= WEIR_CODEC_ZSTD; c++) {
		assert_int_equal(weir_codec_parse(&codec, weir_codec_name(c), &dg), WEIR_OK);
		assert_int_equal(codec, c);
	}
	assert_int_equal(weir_codec_parse(&codec, "brotli", &dg), WEIR_E_CONF);
	assert_non_null(strstr(weir_diag_text(dg), "brotli"));
	weir_diag_destroy(dg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_bound),
					   cmocka_unit_test(test_damaged), cmocka_unit_test(test_foreign_framings),
					   cmocka_unit_test(test_names)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
