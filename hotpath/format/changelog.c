/* changelog.c: rows as changes, for sinks: JSON of the row, and around it what happens to it. The last column that the
 * encoder gets is the op: +I, -U, +U or -D. @thread worker or snap (one at a time).
 *
 *   changelog-json   {"data":{..},"op":"-U"}
 *   debezium-json    {"before":{..},"after":null,"op":"d"} for -U and -D, {"before":null,"after":{..},"op":"c"} for the
 *                    others: as Flink writes it */
#include "hotpath/format/format.h"

#include <stdlib.h>

struct changelog_encoder {
	struct weir_encoder base;
	struct weir_encoder *row;
	bool debezium;
	uint32_t op; /* column */
};

static void put_text(struct weir_buf *out, const char *text)
{
	weir_buf_put(out, text, strlen(text));
}

static void encode(struct weir_encoder *base, const struct weir_col *cols, uint32_t row, struct weir_buf *out)
{
	const struct changelog_encoder *e = (const struct changelog_encoder *)base;
	const struct weir_str *op = &cols[e->op].str[row];
	WEIR_DASSERT(op->bytes == 2);
	bool before = op->data[0] == '-';
	put_text(out, !e->debezium ? "{\"data\":" : before ? "{\"before\":" : "{\"before\":null,\"after\":");
	e->row->encode(e->row, cols, row, out);
	if (e->debezium) {
		put_text(out, before ? ",\"after\":null,\"op\":\"d\"}" : ",\"op\":\"c\"}");
		return;
	}
	put_text(out, ",\"op\":\"");
	weir_buf_put(out, op->data, op->bytes);
	put_text(out, "\"}");
}

static void destroy(struct weir_encoder *base)
{
	struct changelog_encoder *e = (struct changelog_encoder *)base;
	e->row->destroy(e->row);
	free(e);
}

enum weir_err weir_changelog_encoder_create(struct weir_encoder **out, const struct weir_format_options *options,
					    const struct weir_field *fields, uint32_t field_count,
					    struct weir_diag **dg)
{
	WEIR_ASSERT(field_count > 0);
	struct changelog_encoder *e = weir_xcalloc(1, sizeof *e);
	e->base.encode = encode;
	e->base.destroy = destroy;
	e->debezium = options->kind == WEIR_FORMAT_DEBEZIUM;
	e->op = field_count - 1;
	enum weir_err err = weir_json_encoder_create(&e->row, options, fields, field_count - 1, dg);
	if (err != WEIR_OK) {
		free(e);
		return err;
	}
	*out = &e->base;
	return WEIR_OK;
}
