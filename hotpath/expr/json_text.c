/* json_text.c: walking JSON text; see json_text.h. @thread any */
#include "hotpath/expr/json_text.h"

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t skip_blank(const uint8_t *s, size_t bytes, size_t at)
{
	while (at < bytes && is_blank(s[at]))
		at++;
	return at;
}

static bool is_hex(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* at stands on the opening quote; false: bad. */
static bool skip_string(const uint8_t *s, size_t bytes, size_t *at)
{
	size_t i = *at + 1;
	for (; i < bytes && s[i] != '"'; i++) {
		if (s[i] < 0x20)
			return false;
		if (s[i] != '\\')
			continue;
		if (++i >= bytes)
			return false;
		if (s[i] == 'u') {
			if (bytes - i < 5 || !is_hex(s[i + 1]) || !is_hex(s[i + 2]) || !is_hex(s[i + 3]) ||
			    !is_hex(s[i + 4]))
				return false;
			i += 4;
		} else if (s[i] == 0 || strchr("\"\\/bfnrt", s[i]) == NULL) {
			return false;
		}
	}
	*at = i + 1;
	return i < bytes;
}

static size_t skip_digits(const uint8_t *s, size_t bytes, size_t at)
{
	while (at < bytes && s[at] >= '0' && s[at] <= '9')
		at++;
	return at;
}

static bool skip_number(const uint8_t *s, size_t bytes, size_t *at)
{
	size_t i = *at + (s[*at] == '-'), from = i;
	i = skip_digits(s, bytes, i);
	if (i == from || (s[from] == '0' && i - from > 1))
		return false;
	if (i < bytes && s[i] == '.') {
		from = i + 1;
		i = skip_digits(s, bytes, from);
		if (i == from)
			return false;
	}
	if (i < bytes && (s[i] | 0x20) == 'e') {
		from = i + 1;
		if (from < bytes && (s[from] == '+' || s[from] == '-'))
			from++;
		i = skip_digits(s, bytes, from);
		if (i == from)
			return false;
	}
	*at = i;
	return true;
}

static bool skip_scalar(const uint8_t *s, size_t bytes, size_t *at, enum weir_json_text_form *form)
{
	static const struct {
		const char *word;
		enum weir_json_text_form form;
	} words[] = {{"true", WEIR_JSON_TEXT_TRUE}, {"false", WEIR_JSON_TEXT_FALSE}, {"null", WEIR_JSON_TEXT_NULL}};
	if (s[*at] == '"') {
		*form = WEIR_JSON_TEXT_STRING;
		return skip_string(s, bytes, at);
	}
	for (uint32_t i = 0; i < WEIR_COUNT_OF(words); i++) {
		size_t n = strlen(words[i].word);
		if (bytes - *at >= n && memcmp(s + *at, words[i].word, n) == 0) {
			*form = words[i].form;
			*at += n;
			return true;
		}
	}
	*form = WEIR_JSON_TEXT_NUMBER;
	return (s[*at] == '-' || (s[*at] >= '0' && s[*at] <= '9')) && skip_number(s, bytes, at);
}

bool weir_json_text_take(const uint8_t *s, size_t bytes, struct weir_json_text_slice *out, size_t *used)
{
	uint8_t open[WEIR_JSON_TEXT_DEPTH_MAX];
	uint32_t depth = 0;
	size_t at = skip_blank(s, bytes, 0), start = at;
	enum weir_json_text_form form;
	if (at >= bytes)
		return false;
	out->data = s + start;
	out->form = s[at] == '{' ? WEIR_JSON_TEXT_OBJECT : WEIR_JSON_TEXT_ARRAY;
	for (;;) { /* at stands on a value */
		if (at >= bytes)
			return false;
		if (s[at] == '{' || s[at] == '[') {
			if (depth == WEIR_JSON_TEXT_DEPTH_MAX)
				return false;
			open[depth++] = s[at];
			uint8_t close = s[at] == '{' ? '}' : ']';
			at = skip_blank(s, bytes, at + 1);
			if (at < bytes && s[at] == close)
				goto closed;
			if (close == '}')
				goto member;
			continue;
		}
		if (!skip_scalar(s, bytes, &at, &form))
			return false;
		if (depth == 0) {
			out->form = form;
			break;
		}
	after:
		at = skip_blank(s, bytes, at);
		if (at >= bytes)
			return false;
		if (s[at] == ',') {
			at = skip_blank(s, bytes, at + 1);
			if (open[depth - 1] == '[')
				continue;
		member:
			if (at >= bytes || s[at] != '"' || !skip_string(s, bytes, &at))
				return false;
			at = skip_blank(s, bytes, at);
			if (at >= bytes || s[at] != ':')
				return false;
			at = skip_blank(s, bytes, at + 1);
			continue;
		}
		if (s[at] != (open[depth - 1] == '{' ? '}' : ']'))
			return false;
	closed:
		at++;
		if (--depth == 0)
			break;
		goto after;
	}
	out->bytes = (uint32_t)(at - start);
	if (used != NULL)
		*used = skip_blank(s, bytes, at);
	return true;
}

bool weir_json_text_whole(const uint8_t *s, size_t bytes, struct weir_json_text_slice *out)
{
	size_t used;
	return weir_json_text_take(s, bytes, out, &used) && used == bytes;
}

static uint32_t hex4(const uint8_t *s)
{
	uint32_t v = 0;
	for (int i = 0; i < 4; i++)
		v = v << 4 | (uint32_t)(s[i] <= '9' ? s[i] - '0' : (s[i] | 0x20) - 'a' + 10);
	return v;
}

static uint8_t *put_point(uint8_t *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = (uint8_t)c;
	} else if (c < 0x800) {
		*to++ = (uint8_t)(0xc0 | c >> 6);
		*to++ = (uint8_t)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*to++ = (uint8_t)(0xe0 | c >> 12);
		*to++ = (uint8_t)(0x80 | (c >> 6 & 63));
		*to++ = (uint8_t)(0x80 | (c & 63));
	} else {
		*to++ = (uint8_t)(0xf0 | c >> 18);
		*to++ = (uint8_t)(0x80 | (c >> 12 & 63));
		*to++ = (uint8_t)(0x80 | (c >> 6 & 63));
		*to++ = (uint8_t)(0x80 | (c & 63));
	}
	return to;
}

bool weir_json_text_is_plain(const struct weir_json_text_slice *v)
{
	return v->bytes < 2 || memchr(v->data + 1, '\\', v->bytes - 2) == NULL;
}

/* A lone surrogate becomes U+FFFD. */
uint32_t weir_json_text_unescape(const struct weir_json_text_slice *v, uint8_t *to)
{
	uint8_t *at = to;
	const uint8_t *s = v->data + 1, *end = v->data + v->bytes - 1;
	while (s < end) {
		if (*s != '\\') {
			*at++ = *s++;
			continue;
		}
		uint8_t c = s[1];
		s += 2;
		if (c != 'u') {
			static const char from[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
			*at++ = (uint8_t)plain[strchr(from, c) - from];
			continue;
		}
		uint32_t point = hex4(s);
		s += 4;
		if (point >= 0xd800 && point < 0xe000) {
			uint32_t low = end - s >= 6 && s[0] == '\\' && s[1] == 'u' ? hex4(s + 2) : 0;
			if (point < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
				point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
				s += 6;
			} else {
				point = 0xfffd;
			}
		}
		at = put_point(at, point);
	}
	return (uint32_t)(at - to);
}

static bool name_is(const struct weir_json_text_slice *key, const char *name, size_t bytes)
{
	if (weir_json_text_is_plain(key))
		return key->bytes - 2 == bytes && memcmp(key->data + 1, name, bytes) == 0;
	uint8_t text[256];
	return key->bytes <= sizeof text && weir_json_text_unescape(key, text) == bytes &&
	       memcmp(text, name, bytes) == 0;
}

/* Next element of an array, or member of an object (key set). The slice is known to be JSON. */
static bool next(const struct weir_json_text_slice *v, uint32_t *at, struct weir_json_text_slice *key,
		 struct weir_json_text_slice *out)
{
	size_t i = *at == 0 ? 1 : *at, used;
	i = skip_blank(v->data, v->bytes, i);
	if (*at != 0 && i < v->bytes && v->data[i] == ',')
		i = skip_blank(v->data, v->bytes, i + 1);
	if (i + 1 >= v->bytes)
		return false;
	if (v->form == WEIR_JSON_TEXT_OBJECT) {
		if (!weir_json_text_take(v->data + i, v->bytes - i, key, &used))
			return false;
		i += used + 1; /* the colon */
	}
	if (!weir_json_text_take(v->data + i, v->bytes - i, out, &used))
		return false;
	*at = (uint32_t)(i + used);
	return true;
}

bool weir_json_text_next(const struct weir_json_text_slice *v, uint32_t *at, struct weir_json_text_slice *out)
{
	struct weir_json_text_slice key;
	return (v->form == WEIR_JSON_TEXT_ARRAY || v->form == WEIR_JSON_TEXT_OBJECT) && next(v, at, &key, out);
}

bool weir_json_text_member(const struct weir_json_text_slice *v, const char *name, size_t bytes,
			   struct weir_json_text_slice *out)
{
	struct weir_json_text_slice key, value, last;
	uint32_t at = 0;
	bool found = false;
	if (v->form != WEIR_JSON_TEXT_OBJECT)
		return false;
	while (next(v, &at, &key, &value))
		if (name_is(&key, name, bytes)) {
			last = value;
			found = true;
		}
	if (found)
		*out = last; /* may be v itself */
	return found;
}

bool weir_json_text_element(const struct weir_json_text_slice *v, int64_t index, struct weir_json_text_slice *out)
{
	struct weir_json_text_slice one;
	uint32_t at = 0;
	if (v->form != WEIR_JSON_TEXT_ARRAY || index < 0)
		return false;
	while (weir_json_text_next(v, &at, &one))
		if (index-- == 0) {
			*out = one; /* may be v itself */
			return true;
		}
	return false;
}

uint32_t weir_json_text_count(const struct weir_json_text_slice *v)
{
	struct weir_json_text_slice ignored;
	uint32_t at = 0, n = 0;
	while (weir_json_text_next(v, &at, &ignored))
		n++;
	return n;
}

uint32_t weir_json_text_compact(const struct weir_json_text_slice *v, uint8_t *to)
{
	uint32_t n = 0;
	bool quoted = false;
	for (uint32_t i = 0; i < v->bytes; i++) {
		uint8_t c = v->data[i];
		if (!quoted && is_blank(c))
			continue;
		to[n++] = c;
		if (quoted && c == '\\')
			to[n++] = v->data[++i];
		else if (c == '"')
			quoted = !quoted;
	}
	return n;
}
