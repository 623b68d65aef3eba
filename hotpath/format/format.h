/* format.h: payload bytes to columns (struct weir_decoder) and columns to payload bytes (struct weir_encoder): one
 * interface, one file per format. A decoder belongs to one worker at a time (it learns from the last record).
 *
 * A *field* is one column the plan needs: where it stands in the payload (a path), its SQL type, and whether it must be
 * there. Decoders write only the fields asked for, yet check the whole payload, so that a malformed record is refused
 * whichever columns a query reads. */
#ifndef WEIR_FORMAT_FORMAT_H
#define WEIR_FORMAT_FORMAT_H

#include "hotpath/core/batch.h"
#include "hotpath/core/mem.h"
#include "hotpath/core/utf8.h" /* weir_utf8_check */

enum weir_format_kind {
	WEIR_FORMAT_JSON,
	WEIR_FORMAT_CSV,
	WEIR_FORMAT_RAW,
	WEIR_FORMAT_KAFKA,
	WEIR_FORMAT_PACKED,
	WEIR_FORMAT_WINDOWED,  /* keys only; encoding of window columns behind the inner key */
	WEIR_FORMAT_CHANGELOG, /* values of sinks only: the row as JSON and its op */
	WEIR_FORMAT_DEBEZIUM   /* the same in Debezium's form */
};
/* Values say themselves whether a row comes, changes or goes: no key is needed, and a delete is no null. */
WEIR_INLINE bool weir_format_is_changelog(enum weir_format_kind k)
{
	return k == WEIR_FORMAT_CHANGELOG || k == WEIR_FORMAT_DEBEZIUM;
}

/* One step of a path into a nested value. */
struct weir_path_step {
	const char *name; /* member name (UTF-8, terminated), or NULL: index counts */
	uint32_t name_bytes;
	int32_t index; /* array element from 0 where name is NULL */
};

struct weir_field {
	const char *name; /* column name, for errors and as the default path */
	struct weir_type type;
	const struct weir_path_step *path; /* JSON: path_steps >= 1; other formats ignore it */
	uint32_t path_steps;
	uint32_t ordinal; /* position among the table's physical columns: CSV, packed */
};

/* Everything WITH says about one format; unset members are 0 / NULL. Lifetime: the plan's. */
struct weir_format_options {
	enum weir_format_kind kind;
	uint32_t record_bytes_max; /* 0: 16 MiB */
	uint32_t depth_max;        /* json.depth.max, 0: 128 */
	bool ignore_parse_errors;  /* json|csv.ignore-parse-errors: a bad field is NULL; a bad record is refused */
	bool fail_on_missing_field;
	bool timestamp_iso8601;       /* json.timestamp-format.standard = ISO-8601 */
	bool ignore_null_fields;      /* json.encode.ignore-null-fields */
	bool decimal_as_plain_number; /* encoding; always on, kept for Flink's option name */
	char csv_delimiter;           /* 0: ',' */
	char csv_quote;               /* 0: '"'; csv_disable_quote wins */
	bool csv_disable_quote;
	char csv_escape; /* 0: none */
	bool csv_allow_comments;
	bool csv_ignore_trailing;     /* more columns than declared are ignored */
	const char *csv_null_literal; /* NULL: none */
	bool raw_little_endian;       /* raw.endianness; big-endian is the default */
	const char *raw_charset;      /* only UTF-8 */
	int64_t unit_per_second;      /* integers read as time: 1000 (ms) default; 1 s, 1000000 us */
};

struct weir_decoder {
	/* Decodes rows sel->row[...] of records[] (the value, or the key where on_key) into cols[0..field_count), one
	 * per field in the order given at creation. Bad rows are appended to errors and leave sel; sel keeps its order.
	 * cols' nulls are cleared by the decoder first. Strings point into the payload, or into scratch where they had
	 * escapes. A record with a null payload gets all fields NULL and no error: the caller decides what a null value
	 * means.
	 * @thread worker */
	void (*decode)(struct weir_decoder *d, const struct weir_record *records, struct weir_sel *sel,
		       struct weir_col *cols, struct weir_scratch *scratch, struct weir_row_errors *errors);
	void (*destroy)(struct weir_decoder *d);
	bool on_key;
};

struct weir_encoder {
	bool null_payload; /* RAW, KAFKA: a NULL column is a Kafka null, which the caller writes instead of encoding */
	/* Appends the encoding of row `row` of cols[0..field_count) to out. @thread worker or snap (one at a time) */
	void (*encode)(struct weir_encoder *e, const struct weir_col *cols, uint32_t row, struct weir_buf *out);
	void (*destroy)(struct weir_encoder *e);
};

/* Builds a decoder for fields (borrowed for its life). all_fields/all_count: every physical column of the table in
 * order (CSV and packed need the layout of columns that are not read). @thread init */
WEIR_MUST_CHECK enum weir_err weir_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
						  const struct weir_field *fields, uint32_t field_count,
						  const struct weir_field *all_fields, uint32_t all_count, bool on_key,
						  struct weir_diag **dg);
WEIR_MUST_CHECK enum weir_err weir_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
						  const struct weir_field *fields, uint32_t field_count,
						  struct weir_diag **dg);
/* Sets option `name` ("json.ignore-parse-errors", "csv.field-delimiter", ...; without a key./value. prefix),
 * which stands in the text as `written`, of which it is the end. WEIR_E_CONF with the nearest name when unknown, with
 * the allowed values when malformed. A text option (csv.null-literal) keeps value itself: it must live as long as o. */
WEIR_MUST_CHECK enum weir_err weir_format_option_set(struct weir_format_options *o, const char *name,
						     const char *written, const char *value, struct weir_diag **dg);
/* Its name in WITH. */
const char *weir_format_name(enum weir_format_kind k);
/* "json" -> kind; WEIR_E_CONF names the formats. */
WEIR_MUST_CHECK enum weir_err weir_format_kind_parse(enum weir_format_kind *out, const char *name,
						     struct weir_diag **dg);

/* The per-format constructors that format.c dispatches to (same contract). */
enum weir_err weir_json_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
				       const struct weir_field *fields, uint32_t field_count, bool on_key,
				       struct weir_diag **dg);
/* One value, not NULL, as JSON; row `row` of c, which may be const. */
void weir_json_put_value(const struct weir_type *t, const struct weir_col *c, uint32_t row, struct weir_buf *out);
enum weir_err weir_json_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
				       const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg);
enum weir_err weir_csv_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
				      const struct weir_field *fields, uint32_t field_count,
				      const struct weir_field *all_fields, uint32_t all_count, bool on_key,
				      struct weir_diag **dg);
enum weir_err weir_csv_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
				      const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg);
enum weir_err weir_raw_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
				      const struct weir_field *fields, uint32_t field_count, bool on_key,
				      struct weir_diag **dg); /* RAW and KAFKA: one field */
enum weir_err weir_raw_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
				      const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg);
enum weir_err weir_packed_decoder_create(struct weir_decoder **out, const struct weir_format_options *options,
					 const struct weir_field *fields, uint32_t field_count,
					 const struct weir_field *all_fields, uint32_t all_count, bool on_key,
					 struct weir_diag **dg);
enum weir_err weir_packed_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
					 const struct weir_field *fields, uint32_t field_count, struct weir_diag **dg);

/* One field more than the row has: the op, `+I`, `-U`, `+U` or `-D`. */
enum weir_err weir_changelog_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
					    const struct weir_field *fields, uint32_t field_count,
					    struct weir_diag **dg);

/* Text to value, shared by JSON strings, CSV cells and CAST: parses [s, s + bytes) as t into row `row` of c.
 * Exact for integers and DECIMAL, correctly rounded for DOUBLE, locale-free. REASON_NONE, _TYPE, _RANGE or _UTF8.
 * TIMESTAMP takes `2026-01-01 00:00:00[.f]` and ISO 8601 (T, Z, +hh:mm). Blanks around anything but strings are
 * skipped. STR results borrow s; BYTES takes the bytes of s as they are (CAST): a format decodes base64 first
 * (base64.h). A string longer than its type is _RANGE; nested types are _TYPE. Null bits are
 * the caller's, and the value is written only if nothing was wrong. */
enum weir_reason weir_text_parse(const struct weir_type *t, const char *s, size_t bytes, struct weir_col *c,
				 uint32_t row);
/* Value to text as semantics.md section 6 prints it (without quotes; BYTES as base64): appends to out. */
void weir_text_print(const struct weir_type *t, const struct weir_col *c, uint32_t row, bool iso8601,
		     struct weir_buf *out);
#endif
