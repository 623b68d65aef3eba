/* kernel_string.c: functions over strings. @thread worker.
 *
 * Positions and lengths count characters (code points) from 1, as SQL does; text is valid UTF-8, so a width is read off
 * the first byte. Results that are a part of an argument point into it; others live in the batch's scratch memory. A
 * result longer than WEIR_EXPR_STRING_BYTES_MAX is a row error. */
#include "hotpath/expr/kernel.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "hotpath/core/utf8.h"
#include "hotpath/format/base64.h"

static struct weir_str arg(const struct weir_kernel *k, uint32_t i, uint32_t r)
{
	return weir_arg_str(k, i, r);
}

static bool too_long(struct weir_kernel *k, uint32_t r, uint64_t bytes)
{
	if (WEIR_LIKELY(bytes <= WEIR_EXPR_STRING_BYTES_MAX))
		return false;
	weir_kernel_fail(k, r, WEIR_REASON_EXPR, "string longer than 16 MiB");
	return true;
}

/* Byte offset of character n (from 0), at most s.bytes. */
static uint32_t offset_of(struct weir_str s, uint64_t n)
{
	uint32_t at = 0;
	for (; n > 0 && at < s.bytes; n--)
		at += weir_utf8_width(s.data[at]);
	return at < s.bytes ? at : s.bytes;
}

static uint32_t chars(struct weir_str s)
{
	return (uint32_t)weir_utf8_count(s.data, s.bytes);
}

/* The part of s from character start, count characters. */
static struct weir_str part(struct weir_str s, uint64_t start, uint64_t count)
{
	uint32_t at = offset_of(s, start);
	struct weir_str rest = {s.data + at, s.bytes - at, 0};
	rest.bytes = offset_of(rest, count);
	return rest;
}

/* -- case -- */

/* Other case of a two-byte code point in Latin-1, Latin Extended-A, Greek or Cyrillic; those keep their width. */
static uint32_t upper_point(uint32_t c)
{
	if ((c >= 0xe0 && c <= 0xfe && c != 0xf7) || (c >= 0x3b1 && c <= 0x3c9 && c != 0x3c2) ||
	    (c >= 0x430 && c <= 0x44f))
		return c - 32;
	if (c >= 0x450 && c <= 0x45f)
		return c - 80;
	if (c == 0xff)
		return 0x178;
	if ((c >= 0x100 && c <= 0x137 && c != 0x131) || (c >= 0x14a && c <= 0x177) || (c >= 0x460 && c <= 0x481))
		return c & ~UINT32_C(1);
	if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
		return c - (c % 2 == 0);
	return c;
}

static uint32_t lower_point(uint32_t c)
{
	if ((c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 32;
	if (c >= 0x400 && c <= 0x40f)
		return c + 80;
	if (c == 0x178)
		return 0xff;
	if ((c >= 0x100 && c <= 0x137 && c != 0x130) || (c >= 0x14a && c <= 0x177) || (c >= 0x460 && c <= 0x481))
		return c | 1;
	if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
		return c + (c % 2 == 1);
	return c;
}

static void change_case(uint8_t *to, const uint8_t *from, uint32_t bytes, bool upper)
{
	for (uint32_t i = 0; i < bytes; i++) {
		uint8_t c = from[i];
		if (c < 0x80) {
			uint8_t base = upper ? 'a' : 'A';
			to[i] = (uint8_t)(c - base) < 26 ? c ^ 0x20 : c;
		} else if (c >= 0xc0 && c < 0xe0 && i + 1 < bytes) {
			uint32_t point = (uint32_t)(c & 0x1f) << 6 | (from[i + 1] & 0x3f);
			point = upper ? upper_point(point) : lower_point(point);
			to[i] = (uint8_t)(0xc0 | point >> 6);
			to[i + 1] = (uint8_t)(0x80 | (point & 0x3f));
			i++;
		} else {
			to[i] = c;
		}
	}
}

static void all_case(struct weir_kernel *k, bool upper)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		uint8_t *to = weir_kernel_take(k, s.bytes);
		change_case(to, s.data, s.bytes, upper);
		weir_out_str(k, r, to, s.bytes);
	}
}

WEIR_KERNEL(upper)
{
	all_case(k, true);
}

WEIR_KERNEL(lower)
{
	all_case(k, false);
}

static bool is_word(uint8_t c)
{
	return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

WEIR_KERNEL(initcap)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		uint8_t *to = weir_kernel_take(k, s.bytes);
		change_case(to, s.data, s.bytes, false);
		for (uint32_t i = 0; i < s.bytes; i++)
			if (is_word(to[i]) && (i == 0 || !is_word(to[i - 1])))
				change_case(to + i, to + i, weir_utf8_width(to[i]), true);
		weir_out_str(k, r, to, s.bytes);
	}
}

/* -- trimming -- */

static bool in_set(struct weir_str set, const uint8_t *c, uint32_t width)
{
	for (uint32_t i = 0; i + width <= set.bytes; i += weir_utf8_width(set.data[i]))
		if (memcmp(set.data + i, c, width) == 0)
			return true;
	return false;
}

static struct weir_str trim(struct weir_str s, struct weir_str set, bool left, bool right)
{
	while (left && s.bytes != 0) {
		uint32_t width = weir_utf8_width(s.data[0]);
		if (!in_set(set, s.data, width))
			break;
		s.data += width;
		s.bytes -= width;
	}
	while (right && s.bytes != 0) {
		uint32_t at = s.bytes - 1;
		while (at > 0 && (s.data[at] & 0xc0) == 0x80)
			at--;
		if (!in_set(set, s.data + at, s.bytes - at))
			break;
		s.bytes = at;
	}
	return s;
}

static const struct weir_str blank = {(const uint8_t *)" ", 1, 0};

static void trim_all(struct weir_kernel *k, bool left, bool right)
{
	bool has_set = k->expr->arg_count > 1;
	WEIR_FOR_ROWS(k, r)
	k->out->str[r] = trim(arg(k, 0, r), has_set ? arg(k, 1, r) : blank, left, right);
}

WEIR_KERNEL(btrim)
{
	trim_all(k, true, true);
}

WEIR_KERNEL(ltrim)
{
	trim_all(k, true, false);
}

WEIR_KERNEL(rtrim)
{
	trim_all(k, false, true);
}

static const char *const trim_modes[] = {"BOTH", "LEADING", "TRAILING"};

/* TRIM(mode, characters, s), as the grammar hands over TRIM(BOTH 'x' FROM s). */
WEIR_PREPARE(trim)
{
	(void)m;
	for (uint32_t i = 0; i < WEIR_COUNT_OF(trim_modes); i++)
		if (weir_const_is(weir_const_arg(args, count, 0), trim_modes[i])) {
			*data = trim_modes[i];
			return WEIR_OK;
		}
	return weir_diag_set(dg, WEIR_E_PLAN, "TRIM: expected BOTH, LEADING or TRAILING");
}

WEIR_KERNEL(trim)
{
	const char *mode = k->expr->fn_data;
	WEIR_FOR_ROWS(k, r)
	k->out->str[r] = trim(arg(k, 2, r), arg(k, 1, r), mode != trim_modes[2], mode != trim_modes[1]);
}

/* -- parts -- */

/* As Flink: position 0 is 1, a negative one counts from the end (before the start: ''), a negative length gives NULL.
 */
WEIR_KERNEL(substring)
{
	bool has_count = k->expr->arg_count > 2;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		int64_t at = weir_arg_i64(k, 1, r), count = has_count ? weir_arg_i64(k, 2, r) : INT64_MAX;
		if (count < 0) {
			weir_col_set_null(k->out, r);
			continue;
		}
		if (at < 0) {
			int64_t n = chars(s);
			if (at < -n)
				count = 0;
			at = count == 0 ? 1 : n + at + 1;
		}
		k->out->str[r] = part(s, at > 0 ? (uint64_t)at - 1 : 0, (uint64_t)count);
	}
}

WEIR_KERNEL(left)
{
	WEIR_FOR_ROWS(k, r)
	{
		int64_t n = weir_arg_i64(k, 1, r);
		k->out->str[r] = part(arg(k, 0, r), 0, n < 0 ? 0 : (uint64_t)n);
	}
}

WEIR_KERNEL(right)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		int64_t n = weir_arg_i64(k, 1, r), all = chars(s);
		n = n < 0 ? 0 : n > all ? all : n;
		k->out->str[r] = part(s, (uint64_t)(all - n), (uint64_t)n);
	}
}

/* Offset of needle in hay from byte `from` on, or -1. */
static int64_t find(struct weir_str hay, struct weir_str needle, uint32_t from)
{
	if (needle.bytes > hay.bytes - from)
		return -1;
	const uint8_t *p = memmem(hay.data + from, hay.bytes - from, needle.data, needle.bytes);
	return p == NULL ? -1 : p - hay.data;
}

static int64_t position(struct weir_str needle, struct weir_str hay, int64_t from)
{
	if (from < 1)
		return 0;
	if (needle.bytes == 0)
		return 1; /* as Flink, wherever the search begins */
	uint32_t start = offset_of(hay, (uint64_t)from - 1);
	int64_t at = find(hay, needle, start);
	return at < 0 ? 0 : (int64_t)weir_utf8_count(hay.data, (size_t)at) + 1;
}

WEIR_KERNEL(position)
{
	bool has_from = k->expr->arg_count > 2;
	WEIR_FOR_ROWS(k, r)
	k->out->i64[r] = position(arg(k, 0, r), arg(k, 1, r), has_from ? weir_arg_i64(k, 2, r) : 1);
}

WEIR_KERNEL(instr)
{
	WEIR_FOR_ROWS(k, r)
	k->out->i64[r] = position(arg(k, 1, r), arg(k, 0, r), 1);
}

WEIR_KERNEL(starts_with)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r), p = arg(k, 1, r);
		k->out->u8[r] = s.bytes >= p.bytes && memcmp(s.data, p.data, p.bytes) == 0;
	}
}

WEIR_KERNEL(ends_with)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r), p = arg(k, 1, r);
		k->out->u8[r] = s.bytes >= p.bytes && memcmp(s.data + s.bytes - p.bytes, p.data, p.bytes) == 0;
	}
}

/* SPLIT_INDEX(s, separator, n): part n from 0; NULL where there is none. */
WEIR_KERNEL(split_index)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r), sep = arg(k, 1, r);
		int64_t n = weir_arg_i64(k, 2, r), at = 0, end = -1;
		uint32_t from = 0;
		if (n < 0 || sep.bytes == 0 || s.bytes == 0) { /* no text, no parts: as Flink */
			weir_col_set_null(k->out, r);
			continue;
		}
		for (at = 0;; at++) {
			end = find(s, sep, from);
			if (at == n || end < 0)
				break;
			from = (uint32_t)end + sep.bytes;
		}
		if (at != n)
			weir_col_set_null(k->out, r);
		else
			weir_out_str(k, r, s.data + from, (end < 0 ? s.bytes : (uint32_t)end) - from);
	}
}

WEIR_KERNEL(char_length)
{
	WEIR_FOR_ROWS(k, r)
	k->out->i64[r] = chars(arg(k, 0, r));
}

WEIR_KERNEL(octet_length)
{
	WEIR_FOR_ROWS(k, r)
	k->out->i64[r] = arg(k, 0, r).bytes;
}

WEIR_KERNEL(ascii)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		k->out->i64[r] = s.bytes == 0 ? 0 : s.data[0];
	}
}

/* -- building -- */

WEIR_KERNEL(concat)
{
	uint32_t count = k->expr->arg_count;
	WEIR_FOR_ROWS(k, r)
	{
		uint64_t bytes = 0;
		for (uint32_t i = 0; i < count; i++)
			bytes += arg(k, i, r).bytes;
		if (too_long(k, r, bytes))
			continue;
		uint8_t *to = weir_kernel_take(k, bytes);
		weir_out_str(k, r, to, bytes);
		for (uint32_t i = 0; i < count; i++) {
			struct weir_str s = arg(k, i, r);
			memcpy(to, s.data, s.bytes);
			to += s.bytes;
		}
	}
}

/* NULL arguments are left out; a NULL separator gives NULL. */
WEIR_KERNEL(concat_ws)
{
	uint32_t count = k->expr->arg_count;
	WEIR_FOR_ROWS(k, r)
	{
		if (weir_col_is_null(k->in[0], r)) {
			weir_col_set_null(k->out, r);
			continue;
		}
		struct weir_str sep = arg(k, 0, r);
		uint64_t bytes = 0;
		for (uint32_t i = 1; i < count; i++)
			if (!weir_col_is_null(k->in[i], r))
				bytes += arg(k, i, r).bytes + sep.bytes;
		if (too_long(k, r, bytes))
			continue;
		uint8_t *to = weir_kernel_take(k, bytes), *at = to;
		bool first = true;
		for (uint32_t i = 1; i < count; i++) {
			if (weir_col_is_null(k->in[i], r))
				continue;
			struct weir_str s = arg(k, i, r);
			if (!first) {
				memcpy(at, sep.data, sep.bytes);
				at += sep.bytes;
			}
			first = false;
			memcpy(at, s.data, s.bytes);
			at += s.bytes;
		}
		weir_out_str(k, r, to, (size_t)(at - to));
	}
}

WEIR_KERNEL(replace)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r), from = arg(k, 1, r), to = arg(k, 2, r);
		uint64_t hits = 0;
		int64_t at = 0;
		if (from.bytes != 0)
			for (uint32_t i = 0; (at = find(s, from, i)) >= 0; i = (uint32_t)at + from.bytes)
				hits++;
		if (hits == 0) {
			k->out->str[r] = s;
			continue;
		}
		uint64_t bytes = s.bytes + hits * to.bytes - hits * from.bytes;
		if (too_long(k, r, bytes))
			continue;
		uint8_t *out = weir_kernel_take(k, bytes);
		weir_out_str(k, r, out, bytes);
		uint32_t i = 0;
		while ((at = find(s, from, i)) >= 0) {
			memcpy(out, s.data + i, (uint32_t)at - i);
			out += (uint32_t)at - i;
			memcpy(out, to.data, to.bytes);
			out += to.bytes;
			i = (uint32_t)at + from.bytes;
		}
		memcpy(out, s.data + i, s.bytes - i);
	}
}

/* OVERLAY(s, with, start[, count]): as Flink, s itself where start is outside of it. */
WEIR_KERNEL(overlay)
{
	bool has_count = k->expr->arg_count > 3;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r), with = arg(k, 1, r);
		int64_t start = weir_arg_i64(k, 2, r), all = chars(s);
		int64_t count = has_count ? weir_arg_i64(k, 3, r) : (int64_t)chars(with);
		if (start <= 0 || start > all) {
			k->out->str[r] = s;
			continue;
		}
		struct weir_str head = part(s, 0, (uint64_t)start - 1), tail = {s.data, 0, 0};
		if (count >= 0 && count <= all - start)
			tail = part(s, (uint64_t)(start - 1 + count), UINT32_MAX);
		uint64_t bytes = (uint64_t)head.bytes + with.bytes + tail.bytes;
		if (too_long(k, r, bytes))
			continue;
		uint8_t *to = weir_kernel_take(k, bytes);
		memcpy(to, head.data, head.bytes);
		memcpy(to + head.bytes, with.data, with.bytes);
		memcpy(to + head.bytes + with.bytes, tail.data, tail.bytes);
		weir_out_str(k, r, to, bytes);
	}
}

static uint8_t *put_pad(uint8_t *to, struct weir_str fill, uint64_t count)
{
	uint32_t at = 0;
	for (; count > 0; count--) {
		uint32_t width = weir_utf8_width(fill.data[at]);
		memcpy(to, fill.data + at, width);
		to += width;
		at = at + width < fill.bytes ? at + width : 0;
	}
	return to;
}

/* Cut or filled to n characters; NULL for a negative n or nothing to fill with. */
static void pad(struct weir_kernel *k, bool left)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r), fill = arg(k, 2, r);
		int64_t n = weir_arg_i64(k, 1, r), all = chars(s);
		if (n < 0 || fill.bytes == 0) {
			weir_col_set_null(k->out, r);
			continue;
		}
		if (n <= all) {
			k->out->str[r] = part(s, 0, (uint64_t)n);
			continue;
		}
		uint64_t more = (uint64_t)(n - all);
		if (too_long(k, r, more > WEIR_EXPR_STRING_BYTES_MAX ? more : s.bytes + more * 4))
			continue;
		uint8_t *to = weir_kernel_take(k, s.bytes + more * 4), *end = to;
		if (left)
			end = put_pad(end, fill, more);
		memcpy(end, s.data, s.bytes);
		end += s.bytes;
		if (!left)
			end = put_pad(end, fill, more);
		weir_out_str(k, r, to, (size_t)(end - to));
	}
}

WEIR_KERNEL(lpad)
{
	pad(k, true);
}

WEIR_KERNEL(rpad)
{
	pad(k, false);
}

WEIR_KERNEL(repeat)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		int64_t n = weir_arg_i64(k, 1, r);
		if (n <= 0 || s.bytes == 0) {
			weir_out_str(k, r, s.data, 0);
			continue;
		}
		if (too_long(k, r, n > WEIR_EXPR_STRING_BYTES_MAX ? (uint64_t)n : (uint64_t)n * s.bytes))
			continue;
		uint8_t *to = weir_kernel_take(k, (size_t)n * s.bytes);
		weir_out_str(k, r, to, (size_t)n * s.bytes);
		for (int64_t i = 0; i < n; i++, to += s.bytes)
			memcpy(to, s.data, s.bytes);
	}
}

WEIR_KERNEL(reverse)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		uint8_t *to = weir_kernel_take(k, s.bytes);
		for (uint32_t i = 0; i < s.bytes;) {
			uint32_t width = weir_utf8_width(s.data[i]);
			memcpy(to + s.bytes - i - width, s.data + i, width);
			i += width;
		}
		weir_out_str(k, r, to, s.bytes);
	}
}

/* CHR(n): the character of code n modulo 256. */
WEIR_KERNEL(chr)
{
	WEIR_FOR_ROWS(k, r)
	{
		int64_t n = weir_arg_i64(k, 0, r);
		uint32_t c = n < 0 ? 0 : (uint32_t)(n & 0xff);
		uint8_t text[2] = {(uint8_t)c, 0};
		if (c >= 0x80) {
			text[0] = (uint8_t)(0xc0 | c >> 6);
			text[1] = (uint8_t)(0x80 | (c & 0x3f));
		}
		weir_out_copy(k, r, text, n < 0 ? 0 : c >= 0x80 ? 2 : 1);
	}
}

static void put_digits(struct weir_kernel *k, uint32_t r, uint64_t v, uint32_t bits)
{
	char text[64];
	uint32_t at = sizeof text;
	do {
		text[--at] = "0123456789ABCDEF"[v & ((1u << bits) - 1)];
		v >>= bits;
	} while (v != 0);
	weir_out_copy(k, r, text + at, sizeof text - at);
}

WEIR_KERNEL(bin)
{
	WEIR_FOR_ROWS(k, r)
	put_digits(k, r, (uint64_t)weir_arg_i64(k, 0, r), 1);
}

WEIR_KERNEL(hex_int)
{
	WEIR_FOR_ROWS(k, r)
	put_digits(k, r, (uint64_t)weir_arg_i64(k, 0, r), 4);
}

static void out_hex(struct weir_kernel *k, uint32_t r, const uint8_t *data, uint32_t bytes, const char *digits)
{
	uint8_t *to = weir_kernel_take(k, (size_t)bytes * 2);
	weir_out_str(k, r, to, (size_t)bytes * 2);
	for (uint32_t i = 0; i < bytes; i++) {
		*to++ = (uint8_t)digits[data[i] >> 4];
		*to++ = (uint8_t)digits[data[i] & 15];
	}
}

WEIR_KERNEL(hex_text)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		if (!too_long(k, r, (uint64_t)s.bytes * 2))
			out_hex(k, r, s.data, s.bytes, "0123456789ABCDEF");
	}
}

static int hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL where s is no hexadecimal text; an odd one gets a leading 0. */
WEIR_KERNEL(unhex)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		uint32_t bytes = (s.bytes + 1) / 2, odd = s.bytes & 1;
		uint8_t *to = weir_kernel_take(k, bytes);
		weir_out_str(k, r, to, bytes);
		memset(to, 0, bytes);
		for (uint32_t i = 0; i < s.bytes; i++) {
			int v = hex_value(s.data[i]);
			if (v < 0) {
				weir_col_set_null(k->out, r);
				break;
			}
			to[(i + odd) / 2] = (uint8_t)(to[(i + odd) / 2] << 4 | v);
		}
	}
}

/* -- codes -- */

WEIR_KERNEL(to_base64)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		size_t bytes = weir_base64_text_bytes(s.bytes);
		if (too_long(k, r, bytes))
			continue;
		char *to = weir_kernel_take(k, bytes);
		weir_out_str(k, r, to, weir_base64_encode(s.data, s.bytes, to));
	}
}

WEIR_KERNEL(from_base64)
{
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		uint8_t *to = weir_kernel_take(k, weir_base64_data_bytes_max(s.bytes));
		size_t bytes;
		if (!weir_base64_decode((const char *)s.data, s.bytes, to, &bytes))
			weir_kernel_fail(k, r, WEIR_REASON_EXPR, "FROM_BASE64: not base64");
		else if (!weir_utf8_check(to, bytes, NULL))
			weir_kernel_fail(k, r, WEIR_REASON_EXPR, "FROM_BASE64: the bytes are not UTF-8");
		else
			weir_out_str(k, r, to, bytes);
	}
}

enum charset { CHARSET_UTF8 = 1, CHARSET_ASCII, CHARSET_LATIN1 };
static const enum charset charsets[] = {0, CHARSET_UTF8, CHARSET_ASCII, CHARSET_LATIN1};

WEIR_PREPARE(charset)
{
	(void)m;
	const struct weir_expr *e = weir_const_arg(args, count, 1);
	if (weir_const_is(e, "UTF-8") || weir_const_is(e, "UTF8"))
		*data = &charsets[CHARSET_UTF8];
	else if (weir_const_is(e, "US-ASCII") || weir_const_is(e, "ASCII"))
		*data = &charsets[CHARSET_ASCII];
	else if (weir_const_is(e, "ISO-8859-1") || weir_const_is(e, "LATIN1"))
		*data = &charsets[CHARSET_LATIN1];
	else
		return weir_diag_set(dg, WEIR_E_PLAN, "the character set must be 'UTF-8', 'US-ASCII' or 'ISO-8859-1'");
	return WEIR_OK;
}

/* Characters that the set lacks become '?', as in Java. */
WEIR_KERNEL(encode)
{
	enum charset set = *(const enum charset *)k->expr->fn_data;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		if (set == CHARSET_UTF8) {
			k->out->str[r] = s;
			continue;
		}
		uint8_t *to = weir_kernel_take(k, s.bytes), *at = to;
		for (uint32_t i = 0; i < s.bytes; i += weir_utf8_width(s.data[i])) {
			uint8_t c = s.data[i];
			if (c >= 0x80)
				c = set == CHARSET_LATIN1 && c < 0xc4 ? (uint8_t)(c << 6 | (s.data[i + 1] & 0x3f))
								      : '?';
			*at++ = c;
		}
		weir_out_str(k, r, to, (size_t)(at - to));
	}
}

WEIR_KERNEL(decode)
{
	enum charset set = *(const enum charset *)k->expr->fn_data;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		if (set == CHARSET_UTF8) {
			if (weir_utf8_check(s.data, s.bytes, NULL))
				k->out->str[r] = s;
			else
				weir_kernel_fail(k, r, WEIR_REASON_EXPR, "DECODE: the bytes are not UTF-8");
			continue;
		}
		if (too_long(k, r, (uint64_t)s.bytes * 2))
			continue;
		uint8_t *to = weir_kernel_take(k, (size_t)s.bytes * 2), *at = to;
		for (uint32_t i = 0; i < s.bytes; i++) {
			uint8_t c = s.data[i];
			if (c >= 0x80 && set == CHARSET_ASCII)
				c = '?';
			if (c >= 0x80)
				*at++ = (uint8_t)(0xc0 | c >> 6);
			*at++ = c >= 0x80 ? (uint8_t)(0x80 | (c & 0x3f)) : c;
		}
		weir_out_str(k, r, to, (size_t)(at - to));
	}
}

/* Digests. Looking an algorithm up costs more than most digests: it is done once, at open. */
struct digest {
	EVP_MD_CTX *context;
	EVP_MD *md;
};

void *weir_open_digest(const struct weir_expr *e)
{
	struct digest *d = weir_xcalloc(1, sizeof *d);
	d->context = EVP_MD_CTX_new();
	d->md = EVP_MD_fetch(NULL, e->fn->name, NULL);
	return d;
}

void weir_close_digest(void *state)
{
	struct digest *d = state;
	EVP_MD_CTX_free(d->context);
	EVP_MD_free(d->md);
	free(d);
}

WEIR_KERNEL(digest)
{
	struct digest *d = k->state;
	uint8_t sum[EVP_MAX_MD_SIZE];
	unsigned bytes = 0;
	WEIR_FOR_ROWS(k, r)
	{
		struct weir_str s = arg(k, 0, r);
		bool ok = d->context != NULL && d->md != NULL && EVP_DigestInit_ex2(d->context, d->md, NULL) == 1 &&
			  EVP_DigestUpdate(d->context, s.data, s.bytes) == 1 &&
			  EVP_DigestFinal_ex(d->context, sum, &bytes) == 1;
		if (ok)
			out_hex(k, r, sum, bytes, "0123456789abcdef");
		else
			weir_kernel_fail(k, r, WEIR_REASON_EXPR, "the digest is not available");
	}
}
