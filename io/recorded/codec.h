/* codec.h: the five codecs of Kafka's record batches over whole blocks of memory. A context keeps the libraries'
 * working memory, so that a warmed-up one allocates nothing; one owner at a time. */
#ifndef WEIR_IO_RECORDED_CODEC_H
#define WEIR_IO_RECORDED_CODEC_H

#include "hotpath/core/mem.h"
#include "io/recorded/recorded.h"

struct weir_codec_ctx;
struct weir_codec_ctx *weir_codec_create(void);
void weir_codec_destroy(struct weir_codec_ctx *cc); /* NULL is fine */

const char *weir_codec_name(enum weir_codec codec);

enum weir_inflate { WEIR_INFLATE_OK, WEIR_INFLATE_BAD, WEIR_INFLATE_TOO_LARGE };
/* Appends the inflated bytes of src to out, which keeps WEIR_PAYLOAD_PAD bytes of room beyond them. Never makes more
 * than bytes_max bytes, whatever the input claims. *why is static text on WEIR_INFLATE_BAD. WEIR_CODEC_NONE copies. */
enum weir_inflate weir_codec_inflate(struct weir_codec_ctx *cc, enum weir_codec codec, const uint8_t *src,
				     size_t src_bytes, struct weir_buf *out, size_t bytes_max, const char **why);
/* Appends the deflated bytes of src to out. False only when a library refuses (out of memory, beyond 2 GiB). snappy is
 * written in the xerial framing that Java writes and reads, lz4 as a frame of independent blocks (Java refuses others).
 */
bool weir_codec_deflate(struct weir_codec_ctx *cc, enum weir_codec codec, const uint8_t *src, size_t src_bytes,
			struct weir_buf *out);

#endif
