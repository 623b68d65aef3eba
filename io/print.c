/* print.c: rows as text: the print connector's lines, a table for a terminal, JSON lines. @thread snap
 *
 *   rows                       table                                        JSON
 *   id> +I[a, 14999, 1.50]     +----+----------+-------------+              {"op":"+U","k":"a","n":2}
 *                              | op |        k |           n |
 *                              +----+----------+-------------+
 *                              | +U |        a |           2 |
 *                              +----+----------+-------------+
 *                              Received a total of 1 row
 *
 * A table is printed while it grows, so widths come from the types, as Flink's do; what is longer is cut with "...". */
#include "io/print.h"

#include <stdlib.h>

#include "hotpath/format/format.h"

enum { WIDTH_MAX = 30, NULL_WIDTH = 6 };

struct weir_printer {
	struct weir_printer_spec spec;
	struct weir_encoder *json;
	struct weir_field *fields;
	uint32_t *widths;
	uint64_t rows;
	struct weir_buf cell; /* of the row being printed */
};

static const char *const op_texts[] = {
	[WEIR_OP_INSERT] = "+I", [WEIR_OP_UPDATE] = "+U", [WEIR_OP_DELETE] = "-D", [WEIR_OP_BEFORE] = "-U"};

/* Ranges of code points that take two columns. */
static uint32_t char_width(uint32_t c)
{
	static const uint32_t wide[][2] = {{0x1100, 0x115f},   {0x2e80, 0xa4cf},  {0xac00, 0xd7a3}, {0xf900, 0xfaff},
					   {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6}, {0x1f300, 0x1f64f},
					   {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
	if (c < 0x300)
		return 1;
	if (c <= 0x36f || (c >= 0x200b && c <= 0x200f) || (c >= 0xfe00 && c <= 0xfe0f))
		return 0;
	for (size_t i = 0; i < WEIR_COUNT_OF(wide); i++) {
		if (c >= wide[i][0] && c <= wide[i][1])
			return 2;
	}
	return 1;
}

/* The code point at s (valid UTF-8, or any byte as itself) and its length. */
static uint32_t code_point(const uint8_t *s, size_t bytes, size_t *length)
{
	uint8_t c = s[0];
	size_t n = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	*length = n <= bytes ? n : bytes;
	if (n == 1 || n > bytes)
		return c;
	uint32_t v = c & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		v = v << 6 | (s[i] & 0x3f);
	return v;
}

uint32_t weir_text_width(const uint8_t *s, size_t bytes)
{
	uint32_t width = 0;
	size_t n;
	for (size_t at = 0; at < bytes; at += n)
		width += char_width(code_point(s + at, bytes - at, &n));
	return width;
}

static uint32_t type_width(const struct weir_type *t)
{
	switch (t->kind) {
	case WEIR_KIND_BOOLEAN:
		return 5;
	case WEIR_KIND_TINYINT:
		return 4;
	case WEIR_KIND_SMALLINT:
		return 6;
	case WEIR_KIND_INT:
		return 11;
	case WEIR_KIND_BIGINT:
		return 20;
	case WEIR_KIND_DECIMAL:
		return t->precision + 3u;
	case WEIR_KIND_DATE:
		return 10;
	case WEIR_KIND_TIME:
		return t->precision == 0 ? 8 : t->precision + 9u;
	case WEIR_KIND_TIMESTAMP:
		return t->precision == 0 ? 19 : t->precision + 20u;
	case WEIR_KIND_TIMESTAMP_LTZ: /* a Z behind it */
		return t->precision == 0 ? 20 : t->precision + 21u;
	case WEIR_KIND_CHAR:
	case WEIR_KIND_VARCHAR:
		return t->length < WIDTH_MAX ? (uint32_t)t->length : WIDTH_MAX;
	default:
		return WIDTH_MAX;
	}
}

enum weir_err weir_printer_create(struct weir_printer **out, const struct weir_printer_spec *spec,
				  struct weir_diag **dg)
{
	struct weir_printer *pr = weir_xcalloc(1, sizeof *pr);
	pr->spec = *spec;
	if (pr->spec.identifier != NULL && pr->spec.identifier[0] == '\0')
		pr->spec.identifier = NULL;
	pr->widths = weir_xcalloc(spec->column_count + 1, sizeof *pr->widths);
	for (uint32_t i = 0; i < spec->column_count; i++) {
		uint32_t name = weir_text_width((const uint8_t *)spec->names[i], strlen(spec->names[i]));
		uint32_t width = type_width(&spec->types[i]);
		if (!spec->types[i].not_null && width < NULL_WIDTH)
			width = NULL_WIDTH;
		width = width > name ? width : name;
		pr->widths[i] = width > 3 ? width : 3; /* "..." must fit */
	}
	if (spec->form == WEIR_PRINT_JSON) {
		struct weir_format_options options = {.kind = WEIR_FORMAT_JSON};
		pr->fields = weir_xcalloc(spec->column_count + 1, sizeof *pr->fields);
		for (uint32_t i = 0; i < spec->column_count; i++)
			pr->fields[i] =
				(struct weir_field){.name = spec->names[i], .type = spec->types[i], .ordinal = i};
		enum weir_err err = weir_encoder_create(&pr->json, &options, pr->fields, spec->column_count, dg);
		if (err != WEIR_OK) {
			weir_printer_destroy(pr);
			return err;
		}
	}
	*out = pr;
	return WEIR_OK;
}

void weir_printer_destroy(struct weir_printer *pr)
{
	if (pr == NULL)
		return;
	if (pr->json != NULL)
		pr->json->destroy(pr->json);
	free(pr->fields);
	free(pr->widths);
	weir_buf_fini(&pr->cell);
	free(pr);
}

/* ---- tables ---- */

static void put_many(struct weir_buf *out, char c, uint32_t count)
{
	memset(weir_buf_room(out, count), c, count);
	out->bytes += count;
}

static void put_border(const struct weir_printer *pr, struct weir_buf *out)
{
	if (pr->spec.is_table)
		weir_buf_puts(out, "+----");
	for (uint32_t i = 0; i < pr->spec.column_count; i++) {
		weir_buf_put_byte(out, '+');
		put_many(out, '-', pr->widths[i] + 2);
	}
	weir_buf_puts(out, "+\n");
}

/* Text at the right of a cell; what is too wide is cut, control characters are blanks. */
static void put_cell(struct weir_buf *out, const uint8_t *s, size_t bytes, uint32_t width)
{
	uint32_t have = weir_text_width(s, bytes);
	bool cut = have > width;
	weir_buf_puts(out, "| ");
	if (!cut)
		put_many(out, ' ', width - have);
	uint32_t room = cut ? width - 3 : width, used = 0;
	size_t n;
	for (size_t at = 0; at < bytes; at += n) {
		uint32_t c = code_point(s + at, bytes - at, &n), w = char_width(c);
		if (cut && used + w > room)
			break;
		used += w;
		if (c < 0x20 || c == 0x7f)
			weir_buf_put_byte(out, ' ');
		else
			weir_buf_put(out, s + at, n);
	}
	if (cut) {
		weir_buf_puts(out, "...");
		put_many(out, ' ', room - used);
	}
	weir_buf_put_byte(out, ' ');
}

static void put_table_row(struct weir_printer *pr, const struct weir_col *cols, uint32_t row, enum weir_op op,
			  struct weir_buf *out)
{
	if (pr->spec.is_table)
		weir_buf_printf(out, "| %s ", op_texts[op]);
	for (uint32_t i = 0; i < pr->spec.column_count; i++) {
		pr->cell.bytes = 0;
		if (weir_col_is_null(&cols[i], row))
			weir_buf_puts(&pr->cell, "<NULL>");
		else if (pr->spec.types[i].kind == WEIR_KIND_BOOLEAN) /* as Flink's client */
			weir_buf_puts(&pr->cell, cols[i].u8[cols[i].is_const ? 0 : row] ? "TRUE" : "FALSE");
		else
			weir_text_print(&pr->spec.types[i], &cols[i], row, false, &pr->cell);
		put_cell(out, pr->cell.data, pr->cell.bytes, pr->widths[i]);
	}
	weir_buf_puts(out, "|\n");
}

void weir_printer_head(struct weir_printer *pr, struct weir_buf *out)
{
	if (pr->spec.form != WEIR_PRINT_TABLE)
		return;
	put_border(pr, out);
	if (pr->spec.is_table)
		weir_buf_puts(out, "| op ");
	for (uint32_t i = 0; i < pr->spec.column_count; i++)
		put_cell(out, (const uint8_t *)pr->spec.names[i], strlen(pr->spec.names[i]), pr->widths[i]);
	weir_buf_puts(out, "|\n");
	put_border(pr, out);
}

void weir_printer_set_rows(struct weir_printer *pr, uint64_t rows)
{
	pr->rows = rows;
}

void weir_printer_foot(struct weir_printer *pr, struct weir_buf *out)
{
	if (pr->spec.form != WEIR_PRINT_TABLE)
		return;
	if (pr->rows != 0)
		put_border(pr, out);
	weir_buf_printf(out, "Received a total of %llu row%s\n", (unsigned long long)pr->rows,
			pr->rows == 1 ? "" : "s");
}

/* ---- lines ---- */

static void put_row(struct weir_printer *pr, const struct weir_col *cols, uint32_t row, enum weir_op op,
		    struct weir_buf *out)
{
	if (pr->spec.identifier != NULL)
		weir_buf_printf(out, "%s> ", pr->spec.identifier);
	weir_buf_printf(out, "%s[", op_texts[op]);
	for (uint32_t i = 0; i < pr->spec.column_count; i++) {
		if (i != 0)
			weir_buf_puts(out, ", ");
		if (weir_col_is_null(&cols[i], row))
			weir_buf_puts(out, "null");
		else
			weir_text_print(&pr->spec.types[i], &cols[i], row, true, out);
	}
	weir_buf_puts(out, "]\n");
}

static void put_json(struct weir_printer *pr, const struct weir_col *cols, uint32_t row, enum weir_op op,
		     struct weir_buf *out)
{
	if (!pr->spec.is_table) {
		pr->json->encode(pr->json, cols, row, out);
	} else {
		pr->cell.bytes = 0;
		pr->json->encode(pr->json, cols, row, &pr->cell);
		weir_buf_printf(out, "{\"op\":\"%s\"%s", op_texts[op], pr->spec.column_count != 0 ? "," : "");
		weir_buf_put(out, pr->cell.data + 1, pr->cell.bytes - 1);
	}
	weir_buf_put_byte(out, '\n');
}

void weir_printer_row(struct weir_printer *pr, const struct weir_col *cols, uint32_t row, enum weir_op op,
		      struct weir_buf *out)
{
	pr->rows++;
	switch (pr->spec.form) {
	case WEIR_PRINT_ROWS:
		put_row(pr, cols, row, op, out);
		return;
	case WEIR_PRINT_TABLE:
		put_table_row(pr, cols, row, op, out);
		return;
	case WEIR_PRINT_JSON:
		put_json(pr, cols, row, op, out);
		return;
	}
}
