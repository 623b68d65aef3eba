/* base64.h: BYTES as text in JSON and CSV (RFC 4648, with padding). Pure functions, @thread any. */
#ifndef WEIR_FORMAT_BASE64_H
#define WEIR_FORMAT_BASE64_H

#include "hotpath/core/base.h"

/* Bytes of text for bytes of data, and at most how many bytes of data some text makes. */
WEIR_INLINE size_t weir_base64_text_bytes(size_t bytes)
{
	return (bytes + 2) / 3 * 4;
}
WEIR_INLINE size_t weir_base64_data_bytes_max(size_t text_bytes)
{
	return text_bytes / 4 * 3 + 3;
}
/* Writes weir_base64_text_bytes(bytes) bytes at to and returns their number. */
size_t weir_base64_encode(const uint8_t *data, size_t bytes, char *to);
/* Writes at most weir_base64_data_bytes_max(bytes) bytes at to. False if it is no base64: another character, a wrong
 * length, bits left over that are not zero. Padding may be missing altogether. */
bool weir_base64_decode(const char *s, size_t bytes, uint8_t *to, size_t *to_bytes);

#endif
