/* format.c: which format does what: names, options, and the constructors behind them. @thread init. */
#include "hotpath/format/format.h"

#include <stdio.h>

#include "hotpath/core/diag.h"
#include "hotpath/format/number.h"

static const char *const KIND_NAME[] = {
	[WEIR_FORMAT_JSON] = "json",
	[WEIR_FORMAT_CSV] = "csv",
	[WEIR_FORMAT_RAW] = "raw",
	[WEIR_FORMAT_KAFKA] = "kafka",
	[WEIR_FORMAT_PACKED] = "packed",
	[WEIR_FORMAT_WINDOWED] = "windowed",
	[WEIR_FORMAT_CHANGELOG] = "changelog-json",
	[WEIR_FORMAT_DEBEZIUM] = "debezium-json",
};

const char *weir_format_name(enum weir_format_kind k)
{
	return KIND_NAME[k];
}

enum weir_err weir_format_kind_parse(enum weir_format_kind *out, const char *name, struct weir_diag **dg)
{
	for (size_t i = 0; i < WEIR_COUNT_OF(KIND_NAME); i++) {
		if (strcmp(name, KIND_NAME[i]) == 0) {
			*out = (enum weir_format_kind)i;
			return WEIR_OK;
		}
	}
	enum weir_err err = weir_diag_set(dg, WEIR_E_CONF,
					  "unknown format '%s': known are json, csv, raw, kafka, packed, for keys "
					  "windowed and, for values of sinks, changelog-json and debezium-json",
					  name);
	const char *near = weir_nearest_name(name, strlen(name), KIND_NAME, WEIR_COUNT_OF(KIND_NAME));
	if (near != NULL && dg != NULL)
		weir_diag_add_hint(*dg, "did you mean '%s'?", near);
	return err;
}

/* What an option's value looks like, and which member it sets. */
enum option_value {
	VALUE_BOOL,      /* true, false: a bool */
	VALUE_CHAR,      /* one byte, or \t, \\: a char */
	VALUE_TEXT,      /* anything: const char *, borrowed */
	VALUE_TIMESTAMP, /* SQL, ISO-8601: timestamp_iso8601 */
	VALUE_ENDIAN,    /* big-endian, little-endian: raw_little_endian */
	VALUE_CHARSET,   /* UTF-8 */
	VALUE_UNIT,      /* s, ms, us: unit_per_second */
	VALUE_COUNT      /* a number from 1: uint32_t */
};
struct option {
	enum option_value value;
	size_t offset;
};
#define OPTION_NAMES                                                                                                   \
	X("json.ignore-parse-errors", VALUE_BOOL, ignore_parse_errors)                                                 \
	X("json.fail-on-missing-field", VALUE_BOOL, fail_on_missing_field)                                             \
	X("json.timestamp-format.standard", VALUE_TIMESTAMP, timestamp_iso8601)                                        \
	X("json.timestamp-unit", VALUE_UNIT, unit_per_second)                                                          \
	X("json.encode.ignore-null-fields", VALUE_BOOL, ignore_null_fields)                                            \
	X("json.encode.decimal-as-plain-number", VALUE_BOOL, decimal_as_plain_number)                                  \
	X("json.depth.max", VALUE_COUNT, depth_max)                                                                    \
	X("csv.ignore-parse-errors", VALUE_BOOL, ignore_parse_errors)                                                  \
	X("csv.field-delimiter", VALUE_CHAR, csv_delimiter)                                                            \
	X("csv.quote-character", VALUE_CHAR, csv_quote)                                                                \
	X("csv.disable-quote-character", VALUE_BOOL, csv_disable_quote)                                                \
	X("csv.escape-character", VALUE_CHAR, csv_escape)                                                              \
	X("csv.allow-comments", VALUE_BOOL, csv_allow_comments)                                                        \
	X("csv.ignore-trailing-columns", VALUE_BOOL, csv_ignore_trailing)                                              \
	X("csv.null-literal", VALUE_TEXT, csv_null_literal)                                                            \
	X("csv.timestamp-unit", VALUE_UNIT, unit_per_second)                                                           \
	X("raw.charset", VALUE_CHARSET, raw_charset)                                                                   \
	X("raw.endianness", VALUE_ENDIAN, raw_little_endian)                                                           \
	X("record.bytes.max", VALUE_COUNT, record_bytes_max)
/* Two tables with one order: names alone are what weir_nearest_name wants. */
static const char *const OPTION_NAME[] = {
#define X(name, value, member) name,
	OPTION_NAMES
#undef X
};
static const struct option OPTION[] = {
#define X(name, value, member) {value, offsetof(struct weir_format_options, member)},
	OPTION_NAMES
#undef X
};

/* Equal but for ASCII case, whatever the locale. */
static bool is_same(const char *a, const char *b)
{
	for (; *a != '\0' && *b != '\0'; a++, b++) {
		char ca = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a,
		     cb = *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b;
		if (ca != cb)
			return false;
	}
	return *a == *b;
}

static bool set_char(char *to, const char *value)
{
	char c = value[0];
	if (c == '\\' && value[1] != '\0') {
		c = value[1] == 't' ? '\t' : value[1] == '\\' ? '\\' : '\0';
		value++;
	}
	/* A byte of a longer UTF-8 sequence is no character of its own; a line break ends the row. */
	if (c == '\0' || value[1] != '\0' || (unsigned char)c >= 0x80 || c == '\n' || c == '\r')
		return false;
	*to = c;
	return true;
}

static bool set_value(enum option_value kind, void *to, const char *value)
{
	int64_t n;
	switch (kind) {
	case VALUE_BOOL:
		*(bool *)to = is_same(value, "true");
		return *(bool *)to || is_same(value, "false");
	case VALUE_CHAR:
		return set_char(to, value);
	case VALUE_TEXT:
		*(const char **)to = value;
		return true;
	case VALUE_TIMESTAMP:
		*(bool *)to = is_same(value, "ISO-8601");
		return *(bool *)to || is_same(value, "SQL");
	case VALUE_ENDIAN:
		*(bool *)to = is_same(value, "little-endian");
		return *(bool *)to || is_same(value, "big-endian");
	case VALUE_CHARSET:
		*(const char **)to = "UTF-8";
		return is_same(value, "UTF-8") || is_same(value, "UTF8");
	case VALUE_UNIT:
		n = strcmp(value, "s") == 0    ? 1
		    : strcmp(value, "ms") == 0 ? 1000
		    : strcmp(value, "us") == 0 ? 1000000
					       : 0;
		if (n != 0)
			*(int64_t *)to = n;
		return n != 0;
	case VALUE_COUNT:
		if (weir_parse_i64(value, strlen(value), &n) != WEIR_NUMBER_OK || n < 1 || n > UINT32_C(1) << 30)
			return false;
		*(uint32_t *)to = (uint32_t)n;
		return true;
	}
	return false;
}

static const char *const VALUE_ALLOWED[] = {
	[VALUE_BOOL] = "true or false",
	[VALUE_CHAR] = "one ASCII character (\\t for a tab)",
	[VALUE_TEXT] = "any text",
	[VALUE_TIMESTAMP] = "SQL or ISO-8601",
	[VALUE_ENDIAN] = "big-endian or little-endian",
	[VALUE_CHARSET] = "UTF-8",
	[VALUE_UNIT] = "s, ms or us",
	[VALUE_COUNT] = "a number from 1 to 1073741824",
};

/* What to write in place of a name that is none: the nearest one, or those that the format has. */
static void name_hint(const char *name, int before, const char *written, struct weir_diag *dg)
{
	const char *near = weir_nearest_name(name, strlen(name), OPTION_NAME, WEIR_COUNT_OF(OPTION_NAME));
	size_t format = strcspn(name, ".") + 1, at = 0;
	char all[512] = "";
	if (near != NULL && strncmp(near, name, format) == 0) {
		weir_diag_add_hint(dg, "did you mean '%.*s%s'?", before, written, near);
		return;
	}
	for (size_t i = 0; i < WEIR_COUNT_OF(OPTION_NAME) && at < sizeof all; i++)
		if (strncmp(OPTION_NAME[i], name, format) == 0)
			at += (size_t)snprintf(all + at, sizeof all - at, "%s%.*s%s", at == 0 ? "" : ", ", before,
					       written, OPTION_NAME[i]);
	if (at != 0)
		weir_diag_add_hint(dg, "there are %s", all);
}

enum weir_err weir_format_option_set(struct weir_format_options *o, const char *name, const char *written,
				     const char *value, struct weir_diag **dg)
{
	int before = (int)(strlen(written) - strlen(name));
	for (size_t i = 0; i < WEIR_COUNT_OF(OPTION); i++) {
		if (strcmp(name, OPTION_NAME[i]) != 0)
			continue;
		if (!set_value(OPTION[i].value, (char *)o + OPTION[i].offset, value))
			return weir_diag_set(dg, WEIR_E_CONF, "'%s' cannot be '%s': it takes %s", written, value,
					     VALUE_ALLOWED[OPTION[i].value]);
		return WEIR_OK;
	}
	enum weir_err err = weir_diag_set(dg, WEIR_E_CONF, "unknown format option '%s'", written);
	if (dg != NULL && *dg != NULL)
		name_hint(name, before, written, *dg);
	return err;
}

static enum weir_err no_windowed(struct weir_diag **dg)
{
	return weir_diag_set(dg, WEIR_E_CONF, "format 'windowed' is for the keys of a sink alone");
}

enum weir_err weir_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
				  const struct weir_field *fields, uint32_t field_count,
				  const struct weir_field *all_fields, uint32_t all_count, bool on_key,
				  struct weir_diag **dg)
{
	if (options->ignore_parse_errors && options->fail_on_missing_field)
		return weir_diag_set(dg, WEIR_E_CONF,
				     "'json.fail-on-missing-field' and 'json.ignore-parse-errors' exclude each other");
	switch (options->kind) {
	case WEIR_FORMAT_JSON:
		return weir_json_decoder_create(out, options, fields, field_count, on_key, dg);
	case WEIR_FORMAT_CSV:
		return weir_csv_decoder_create(out, options, fields, field_count, all_fields, all_count, on_key, dg);
	case WEIR_FORMAT_RAW:
	case WEIR_FORMAT_KAFKA:
		return weir_raw_decoder_create(out, options, fields, field_count, on_key, dg);
	case WEIR_FORMAT_PACKED:
		return weir_packed_decoder_create(out, options, fields, field_count, all_fields, all_count, on_key, dg);
	case WEIR_FORMAT_CHANGELOG:
	case WEIR_FORMAT_DEBEZIUM:
		return weir_diag_set(dg, WEIR_E_CONF, "format '%s' is for the values of sinks alone",
				     KIND_NAME[options->kind]);
	case WEIR_FORMAT_WINDOWED:
		break;
	}
	return no_windowed(dg);
}

enum weir_err weir_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
				  const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg)
{
	switch (options->kind) {
	case WEIR_FORMAT_JSON:
		return weir_json_encoder_create(out, options, fields, field_count, dg);
	case WEIR_FORMAT_CSV:
		return weir_csv_encoder_create(out, options, fields, field_count, dg);
	case WEIR_FORMAT_RAW:
	case WEIR_FORMAT_KAFKA:
		return weir_raw_encoder_create(out, options, fields, field_count, dg);
	case WEIR_FORMAT_PACKED:
		return weir_packed_encoder_create(out, options, fields, field_count, dg);
	case WEIR_FORMAT_CHANGELOG:
	case WEIR_FORMAT_DEBEZIUM:
		return weir_changelog_encoder_create(out, options, fields, field_count, dg);
	case WEIR_FORMAT_WINDOWED:
		break;
	}
	return no_windowed(dg);
}
