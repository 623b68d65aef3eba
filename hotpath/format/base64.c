/* base64.c: BYTES as text (RFC 4648). Pure functions, @thread any. */
#include "hotpath/format/base64.h"

static const char ALPHABET[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t weir_base64_encode(const uint8_t *data, size_t bytes, char *to)
{
	char *start = to;
	size_t i = 0;
	for (; i + 3 <= bytes; i += 3) {
		uint32_t v = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];
		*to++ = ALPHABET[v >> 18];
		*to++ = ALPHABET[(v >> 12) & 63];
		*to++ = ALPHABET[(v >> 6) & 63];
		*to++ = ALPHABET[v & 63];
	}
	if (i < bytes) {
		bool two = i + 2 == bytes;
		uint32_t v = (uint32_t)data[i] << 16 | (two ? (uint32_t)data[i + 1] << 8 : 0);
		*to++ = ALPHABET[v >> 18];
		*to++ = ALPHABET[(v >> 12) & 63];
		*to++ = two ? ALPHABET[(v >> 6) & 63] : '=';
		*to++ = '=';
	}
	return (size_t)(to - start);
}

/* 0..63, or 64 for what is no base64. */
static inline uint32_t value_of(char ch)
{
	unsigned c = (unsigned char)ch;
	if (c - 'A' < 26)
		return c - 'A';
	if (c - 'a' < 26)
		return c - 'a' + 26;
	if (c - '0' < 10)
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool weir_base64_decode(const char *s, size_t bytes, uint8_t *to, size_t *to_bytes)
{
	if (bytes % 4 == 0 && bytes > 0 && s[bytes - 1] == '=')
		bytes -= s[bytes - 2] == '=' ? 2 : 1;
	size_t i = 0, n = 0;
	for (; i + 4 <= bytes; i += 4) {
		uint32_t a = value_of(s[i]), b = value_of(s[i + 1]), c = value_of(s[i + 2]), d = value_of(s[i + 3]);
		if ((a | b | c | d) & 64)
			return false;
		uint32_t v = a << 18 | b << 12 | c << 6 | d;
		to[n++] = (uint8_t)(v >> 16);
		to[n++] = (uint8_t)(v >> 8);
		to[n++] = (uint8_t)v;
	}
	size_t left = bytes - i;
	if (left == 1)
		return false;
	if (left != 0) {
		uint32_t a = value_of(s[i]), b = value_of(s[i + 1]), c = left == 3 ? value_of(s[i + 2]) : 0;
		uint32_t v = a << 18 | b << 12 | c << 6;
		if (((a | b | c) & 64) || (v & (left == 3 ? 0xff : 0xffff)))
			return false;
		to[n++] = (uint8_t)(v >> 16);
		if (left == 3)
			to[n++] = (uint8_t)(v >> 8);
	}
	*to_bytes = n;
	return true;
}
