/* codec.c: none, gzip, snappy, lz4 and zstd for whole record batches. @thread io (inflate), snap (deflate): a context
 * belongs to one of them. Output is bounded by the caller: a batch that claims to be small and is not stops at the
 * bound. */
#include "io/recorded/codec.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

struct weir_codec_ctx {
	z_stream inflater;
	z_stream deflater;
	bool inflater_ready;
	bool deflater_ready;
	LZ4F_dctx *lz4_in;
	ZSTD_DCtx *zstd_in;
	ZSTD_CCtx *zstd_out;
};

static const char *const codec_names[] = {"none", "gzip", "snappy", "lz4", "zstd"};

enum weir_err weir_codec_parse(enum weir_codec *out, const char *name, struct weir_diag **dg)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(codec_names); i++)
		if (strcmp(name, codec_names[i]) == 0) {
			*out = (enum weir_codec)i;
			return WEIR_OK;
		}
	return weir_diag_set(dg, WEIR_E_CONF, "compression '%s' is not one of none, gzip, snappy, lz4, zstd", name);
}

const char *weir_codec_name(enum weir_codec codec)
{
	return (unsigned)codec < WEIR_COUNT_OF(codec_names) ? codec_names[codec] : "unknown";
}

struct weir_codec_ctx *weir_codec_create(void)
{
	return weir_xcalloc(1, sizeof(struct weir_codec_ctx));
}

void weir_codec_destroy(struct weir_codec_ctx *cc)
{
	if (cc == NULL)
		return;
	if (cc->inflater_ready)
		inflateEnd(&cc->inflater);
	if (cc->deflater_ready)
		deflateEnd(&cc->deflater);
	LZ4F_freeDecompressionContext(cc->lz4_in);
	ZSTD_freeDCtx(cc->zstd_in);
	ZSTD_freeCCtx(cc->zstd_out);
	free(cc);
}

/* ---- inflating ---- */

/* Room for the next piece of output: at least one byte, at most what the bound leaves plus one, so that going beyond
 * the bound is seen. The first guess is what the buffer has. */
static uint8_t *inflate_room(struct weir_buf *out, size_t start, size_t bytes_max, size_t src_bytes, size_t *room)
{
	size_t made = out->bytes - start;
	size_t left = bytes_max - made + 1;
	size_t free_bytes =
		out->capacity > out->bytes + WEIR_PAYLOAD_PAD ? out->capacity - out->bytes - WEIR_PAYLOAD_PAD : 0;
	if (free_bytes == 0) {
		free_bytes = made != 0 ? made : src_bytes * 4 + 64;
		if (free_bytes > left)
			free_bytes = left;
		weir_buf_room(out, free_bytes + WEIR_PAYLOAD_PAD);
	}
	*room = free_bytes < left ? free_bytes : left;
	return out->data + out->bytes;
}

static enum weir_inflate inflate_gzip(struct weir_codec_ctx *cc, const uint8_t *src, size_t src_bytes,
				      struct weir_buf *out, size_t bytes_max, const char **why)
{
	size_t start = out->bytes;
	z_stream *z = &cc->inflater;
	if (!cc->inflater_ready) {
		if (inflateInit2(z, 15 + 16) != Z_OK) {
			*why = "zlib gave no memory";
			return WEIR_INFLATE_BAD;
		}
		cc->inflater_ready = true;
	} else {
		inflateReset(z);
	}
	z->next_in = (Bytef *)(uintptr_t)src;
	z->avail_in = (uInt)src_bytes;
	for (;;) {
		size_t room;
		z->next_out = inflate_room(out, start, bytes_max, src_bytes, &room);
		z->avail_out = (uInt)room;
		int rc = inflate(z, Z_NO_FLUSH);
		out->bytes += room - z->avail_out;
		if (out->bytes - start > bytes_max)
			return WEIR_INFLATE_TOO_LARGE;
		if (rc == Z_STREAM_END) {
			if (z->avail_in == 0)
				return WEIR_INFLATE_OK;
			inflateReset(z); /* a further member */
		} else if (rc != Z_OK && !(rc == Z_BUF_ERROR && z->avail_out == 0)) {
			*why = z->avail_in == 0 ? "the gzip data ends early" : "the gzip data is damaged";
			return WEIR_INFLATE_BAD;
		} else if (z->avail_in == 0 && z->avail_out != 0) {
			*why = "the gzip data ends early";
			return WEIR_INFLATE_BAD;
		}
	}
}

static enum weir_inflate snappy_block(const uint8_t *src, size_t src_bytes, struct weir_buf *out, size_t start,
				      size_t bytes_max, const char **why)
{
	size_t bytes;
	*why = "the snappy data is damaged";
	if (snappy_uncompressed_length((const char *)src, src_bytes, &bytes) != SNAPPY_OK)
		return WEIR_INFLATE_BAD;
	if (bytes > bytes_max - (out->bytes - start))
		return WEIR_INFLATE_TOO_LARGE;
	uint8_t *to = weir_buf_room(out, bytes + WEIR_PAYLOAD_PAD);
	size_t room = bytes;
	if (snappy_uncompress((const char *)src, src_bytes, (char *)to, &room) != SNAPPY_OK || room != bytes)
		return WEIR_INFLATE_BAD;
	out->bytes += bytes;
	return WEIR_INFLATE_OK;
}

/* xerial: 82 'SNAPPY' 00, version, oldest compatible version (4 bytes each), then blocks of {length, raw snappy}.
 * Without that head the whole is one raw block (librdkafka writes so). */
static const uint8_t xerial_magic[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};

static enum weir_inflate inflate_snappy(const uint8_t *src, size_t src_bytes, struct weir_buf *out, size_t bytes_max,
					const char **why)
{
	size_t start = out->bytes;
	if (src_bytes < 16 || memcmp(src, xerial_magic, sizeof xerial_magic) != 0)
		return snappy_block(src, src_bytes, out, start, bytes_max, why);
	size_t at = 16;
	while (at < src_bytes) {
		if (src_bytes - at >= 16 && memcmp(src + at, xerial_magic, sizeof xerial_magic) == 0) {
			at += 16; /* streams may be concatenated */
			continue;
		}
		uint32_t bytes = src_bytes - at >= 4 ? weir_load_be32(src + at) : UINT32_MAX;
		if (src_bytes - at < 4 || bytes > src_bytes - at - 4) {
			*why = "a snappy block reaches beyond the batch";
			return WEIR_INFLATE_BAD;
		}
		enum weir_inflate rc = snappy_block(src + at + 4, bytes, out, start, bytes_max, why);
		if (rc != WEIR_INFLATE_OK)
			return rc;
		at += 4 + bytes;
	}
	return WEIR_INFLATE_OK;
}

static enum weir_inflate inflate_lz4(struct weir_codec_ctx *cc, const uint8_t *src, size_t src_bytes,
				     struct weir_buf *out, size_t bytes_max, const char **why)
{
	size_t start = out->bytes, at = 0, hint = 1;
	if (cc->lz4_in == NULL && LZ4F_isError(LZ4F_createDecompressionContext(&cc->lz4_in, LZ4F_VERSION))) {
		*why = "lz4 gave no memory";
		return WEIR_INFLATE_BAD;
	}
	LZ4F_resetDecompressionContext(cc->lz4_in);
	/* hint is 0 when a frame has ended; another may follow. */
	while (at < src_bytes || hint != 0) {
		size_t room, taken = src_bytes - at;
		uint8_t *to = inflate_room(out, start, bytes_max, src_bytes, &room);
		hint = LZ4F_decompress(cc->lz4_in, to, &room, src + at, &taken, NULL);
		if (LZ4F_isError(hint)) {
			*why = "the lz4 data is damaged";
			return WEIR_INFLATE_BAD;
		}
		out->bytes += room;
		at += taken;
		if (out->bytes - start > bytes_max)
			return WEIR_INFLATE_TOO_LARGE;
		if (room == 0 && taken == 0 && hint != 0) {
			*why = "the lz4 data ends early";
			return WEIR_INFLATE_BAD;
		}
	}
	return WEIR_INFLATE_OK;
}

static enum weir_inflate inflate_zstd(struct weir_codec_ctx *cc, const uint8_t *src, size_t src_bytes,
				      struct weir_buf *out, size_t bytes_max, const char **why)
{
	size_t start = out->bytes, hint = 1;
	if (cc->zstd_in == NULL && (cc->zstd_in = ZSTD_createDCtx()) == NULL) {
		*why = "zstd gave no memory";
		return WEIR_INFLATE_BAD;
	}
	/* One frame that says its size needs no window of its own: straight into place. */
	unsigned long long said = ZSTD_getFrameContentSize(src, src_bytes);
	if (said != ZSTD_CONTENTSIZE_ERROR && said != ZSTD_CONTENTSIZE_UNKNOWN &&
	    ZSTD_findFrameCompressedSize(src, src_bytes) == src_bytes) {
		if (said > bytes_max)
			return WEIR_INFLATE_TOO_LARGE;
		uint8_t *to = weir_buf_room(out, (size_t)said + WEIR_PAYLOAD_PAD);
		size_t made = ZSTD_decompressDCtx(cc->zstd_in, to, (size_t)said, src, src_bytes);
		if (ZSTD_isError(made)) {
			*why = "the zstd data is damaged";
			return WEIR_INFLATE_BAD;
		}
		out->bytes += made;
		return WEIR_INFLATE_OK;
	}
	ZSTD_DCtx_reset(cc->zstd_in, ZSTD_reset_session_only);
	ZSTD_DCtx_setParameter(cc->zstd_in, ZSTD_d_windowLogMax, 27); /* what Kafka's highest level writes */
	ZSTD_inBuffer in = {src, src_bytes, 0};
	while (in.pos < in.size || hint != 0) {
		size_t room, before = in.pos;
		uint8_t *to = inflate_room(out, start, bytes_max, src_bytes, &room);
		ZSTD_outBuffer to_buffer = {to, room, 0};
		hint = ZSTD_decompressStream(cc->zstd_in, &to_buffer, &in);
		if (ZSTD_isError(hint)) {
			*why = "the zstd data is damaged";
			return WEIR_INFLATE_BAD;
		}
		out->bytes += to_buffer.pos;
		if (out->bytes - start > bytes_max)
			return WEIR_INFLATE_TOO_LARGE;
		if (to_buffer.pos == 0 && in.pos == before && hint != 0) {
			*why = "the zstd data ends early";
			return WEIR_INFLATE_BAD;
		}
	}
	return WEIR_INFLATE_OK;
}

enum weir_inflate weir_codec_inflate(struct weir_codec_ctx *cc, enum weir_codec codec, const uint8_t *src,
				     size_t src_bytes, struct weir_buf *out, size_t bytes_max, const char **why)
{
	*why = "";
	weir_buf_room(out, WEIR_PAYLOAD_PAD);
	if (src_bytes > INT32_MAX) {
		*why = "the batch is larger than 2 GiB";
		return WEIR_INFLATE_BAD;
	}
	switch (codec) {
	case WEIR_CODEC_NONE:
		if (src_bytes > bytes_max)
			return WEIR_INFLATE_TOO_LARGE;
		weir_buf_room(out, src_bytes + WEIR_PAYLOAD_PAD);
		weir_buf_put(out, src, src_bytes);
		return WEIR_INFLATE_OK;
	case WEIR_CODEC_GZIP:
		return inflate_gzip(cc, src, src_bytes, out, bytes_max, why);
	case WEIR_CODEC_SNAPPY:
		return inflate_snappy(src, src_bytes, out, bytes_max, why);
	case WEIR_CODEC_LZ4:
		return inflate_lz4(cc, src, src_bytes, out, bytes_max, why);
	case WEIR_CODEC_ZSTD:
		return inflate_zstd(cc, src, src_bytes, out, bytes_max, why);
	}
	*why = "the codec is unknown";
	return WEIR_INFLATE_BAD;
}

/* ---- deflating ---- */

static bool deflate_gzip(struct weir_codec_ctx *cc, const uint8_t *src, size_t src_bytes, struct weir_buf *out)
{
	z_stream *z = &cc->deflater;
	if (!cc->deflater_ready) {
		if (deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
			return false;
		cc->deflater_ready = true;
	} else {
		deflateReset(z);
	}
	size_t bound = deflateBound(z, src_bytes);
	z->next_in = (Bytef *)(uintptr_t)src;
	z->avail_in = (uInt)src_bytes;
	z->next_out = weir_buf_room(out, bound);
	z->avail_out = (uInt)bound;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return false;
	out->bytes += bound - z->avail_out;
	return true;
}

static bool deflate_snappy(const uint8_t *src, size_t src_bytes, struct weir_buf *out)
{
	enum { BLOCK = 32 * 1024 }; /* what Java's writer uses */
	weir_buf_put(out, xerial_magic, sizeof xerial_magic);
	uint8_t versions[8];
	weir_store_be32(versions, 1);
	weir_store_be32(versions + 4, 1);
	weir_buf_put(out, versions, sizeof versions);
	for (size_t at = 0; at < src_bytes; at += BLOCK) {
		size_t bytes = src_bytes - at < BLOCK ? src_bytes - at : BLOCK;
		size_t made = snappy_max_compressed_length(bytes);
		uint8_t *to = weir_buf_room(out, made + 4);
		if (snappy_compress((const char *)src + at, bytes, (char *)to + 4, &made) != SNAPPY_OK)
			return false;
		weir_store_be32(to, (uint32_t)made);
		out->bytes += made + 4;
	}
	return true;
}

static bool deflate_lz4(const uint8_t *src, size_t src_bytes, struct weir_buf *out)
{
	LZ4F_preferences_t prefs = {.frameInfo = {.blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent}};
	size_t bound = LZ4F_compressFrameBound(src_bytes, &prefs);
	size_t made = LZ4F_compressFrame(weir_buf_room(out, bound), bound, src, src_bytes, &prefs);
	if (LZ4F_isError(made))
		return false;
	out->bytes += made;
	return true;
}

static bool deflate_zstd(struct weir_codec_ctx *cc, const uint8_t *src, size_t src_bytes, struct weir_buf *out)
{
	if (cc->zstd_out == NULL && (cc->zstd_out = ZSTD_createCCtx()) == NULL)
		return false;
	size_t bound = ZSTD_compressBound(src_bytes);
	size_t made = ZSTD_compressCCtx(cc->zstd_out, weir_buf_room(out, bound), bound, src, src_bytes, 3);
	if (ZSTD_isError(made))
		return false;
	out->bytes += made;
	return true;
}

bool weir_codec_deflate(struct weir_codec_ctx *cc, enum weir_codec codec, const uint8_t *src, size_t src_bytes,
			struct weir_buf *out)
{
	if (src_bytes > INT32_MAX)
		return false;
	switch (codec) {
	case WEIR_CODEC_NONE:
		weir_buf_put(out, src, src_bytes);
		return true;
	case WEIR_CODEC_GZIP:
		return deflate_gzip(cc, src, src_bytes, out);
	case WEIR_CODEC_SNAPPY:
		return deflate_snappy(src, src_bytes, out);
	case WEIR_CODEC_LZ4:
		return deflate_lz4(src, src_bytes, out);
	case WEIR_CODEC_ZSTD:
		return deflate_zstd(cc, src, src_bytes, out);
	}
	return false;
}
